/* SPDX-License-Identifier: Apache-2.0 */
/* Table of device metric sources. */
#include "sample/metrics/metric_sources.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <tracesmith/backend.h>

/* Built in. To add one: a folder beside this file, and a line here. */
static const struct ts_metrics_source *const table[] = {
	&ts_metrics_nvml,
	&ts_metrics_npu_smi,
	&ts_metrics_amd,
	NULL,
};

const struct ts_metrics_source *const *ts_metrics_sources(void)
{
	return table;
}

/* NULL if the object does not exist. It stays loaded: its threads may run until the end. */
static const struct ts_backend *load(const char *name)
{
	char file[128];
	void *library;

	snprintf(file, sizeof(file), "libtracesmith-backend-%.64s.so", name);
	library = strchr(name, '/') ? NULL : dlopen(file, RTLD_NOW | RTLD_LOCAL);
	return library ? dlsym(library, "ts_backend") : NULL;
}

static const struct ts_metrics_source *metrics_of(const struct ts_backend *backend)
{
	const struct ts_metrics_source *source;

	if (backend->abi != TS_BACKEND_ABI ||
	    backend->size < offsetof(struct ts_backend, metrics) + sizeof(backend->metrics))
		return NULL;
	source = backend->metrics;
	return source && source->abi == TS_METRICS_ABI && source->size >= sizeof(*source) ? source
											  : NULL;
}

int ts_metrics_source_find(const char *name, const struct ts_metrics_source **ret_source,
			   struct ts_error *err)
{
	const struct ts_backend *backend;

	for (size_t i = 0; table[i]; i++) {
		if (strcmp(table[i]->name, name) == 0) {
			*ret_source = table[i];
			return TS_OK;
		}
	}
	backend = load(name);
	if (!backend) {
		const char *why = dlerror();

		return ts_error_set(err, TS_ENOTFOUND, "no backend or metric source '%s': %s", name,
				    why ? why : "not built in");
	}
	*ret_source = metrics_of(backend);
	if (!*ret_source)
		return ts_error_set(
			err, TS_ECAP,
			"backend '%s' has no metrics, or was built for another version of the interface",
			name);
	return TS_OK;
}
