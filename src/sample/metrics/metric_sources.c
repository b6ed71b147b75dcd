/* SPDX-License-Identifier: Apache-2.0 */
/* Table of device metric sources. */
#include "sample/metrics/metric_sources.h"

#include <string.h>

#include "backends/recorder/backend_table.h"

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

static const struct ts_metrics_source *metrics_of(const struct ts_backend *backend)
{
	const struct ts_metrics_source *source = backend->metrics;

	return source && source->abi == TS_METRICS_ABI && source->size >= sizeof(*source) ? source
											  : NULL;
}

int ts_metrics_source_find(const char *name, const struct ts_metrics_source **ret_source,
			   struct ts_error *err)
{
	const struct ts_known_backend *known;
	int rc;

	for (size_t i = 0; table[i]; i++) {
		if (strcmp(table[i]->name, name) == 0) {
			*ret_source = table[i];
			return TS_OK;
		}
	}
	rc = ts_backend_load(name, &known, err);
	if (rc)
		return rc;
	*ret_source = metrics_of(&known->backend);
	if (!*ret_source)
		return ts_error_set(
			err, TS_ECAP,
			"backend '%s' has no metrics, or was built for another version of the interface",
			name);
	return TS_OK;
}
