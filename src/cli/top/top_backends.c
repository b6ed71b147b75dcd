/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the metric sources of `top`: given names, those of the environment, or all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/top/top.h"
#include "sample/metrics/metric_sources.h"

static int add_source(struct ts_top_backends *backends, const char *name, struct ts_error *err)
{
	const struct ts_metrics_source **slot = &backends->chosen[backends->source_count];
	int rc;

	if (backends->source_count == TS_TOP_SOURCES)
		return ts_error_set(err, TS_EINVAL, "more than %u metric sources", TS_TOP_SOURCES);
	rc = ts_metrics_source_find(name, slot, err);
	if (rc)
		*slot = NULL;
	else
		backends->source_count++;
	return rc;
}

/* "host" has no library: the sampler reads /proc. */
static int add_name(struct ts_top_backends *backends, const char *name, struct ts_error *err)
{
	size_t used = strlen(backends->list);
	int rc = strcmp(name, "host") ? add_source(backends, name, err) : TS_OK;

	if (rc)
		return rc;
	if (used + strlen(name) + 2 > sizeof(backends->list))
		return ts_error_set(err, TS_EINVAL, "the list of backends is too long at '%s'",
				    name);
	snprintf(backends->list + used, sizeof(backends->list) - used, "%s%s", used ? "," : "",
		 name);
	return TS_OK;
}

/* The variable also serves `record`: names that only work inside programs are ignored. */
static bool is_passed_over(int rc, bool is_named)
{
	return !is_named && (rc == TS_ENOTFOUND || rc == TS_ECAP);
}

int ts_top_backends_choose(struct ts_top_backends *backends, const char *named,
			   struct ts_error *err)
{
	const char *list = named ? named : getenv("TRACESMITH_BACKENDS");

	*backends = (struct ts_top_backends){ .sources = ts_metrics_sources() };
	if (!list || !*list)
		return TS_OK;
	backends->names = backends->list;
	backends->sources = backends->chosen;
	if (!strcmp(list, "none"))
		return TS_OK;
	while (*list) {
		size_t length = strcspn(list, ",");
		char name[64];
		int rc = TS_OK;

		snprintf(name, sizeof(name), "%.*s", (int)TS_MIN(length, sizeof(name) - 1), list);
		if (length)
			rc = add_name(backends, name, err);
		if (rc && !is_passed_over(rc, named != NULL)) {
			ts_error_prefix(err, "option '--backends'");
			/* A misspelt name is a usage error. */
			return err->code = rc == TS_ENOTFOUND ? TS_EINVAL : rc;
		}
		list += length + (list[length] == ',');
	}
	return TS_OK;
}
