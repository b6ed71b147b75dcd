/* SPDX-License-Identifier: Apache-2.0 */
/* The table of exporters. Must not know any format. */
#include "export/export.h"

#include <string.h>

#include "base/memory.h"

static const struct ts_exporter exporters[] = {
	{
		.name = "chrome",
		.doc = "Chrome trace-event JSON, for Perfetto, chrome://tracing and HTA",
		.run = ts_export_chrome,
	},
	{
		.name = "chrome-array",
		.doc = "a plain JSON array of Chrome events: spans, instants and counters, nothing else",
		.run = ts_export_chrome_array,
	},
};

const struct ts_exporter *ts_exporter_list(size_t *ret_count)
{
	*ret_count = TS_ARRAY_SIZE(exporters);
	return exporters;
}

const struct ts_exporter *ts_exporter_find(const char *name)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(exporters); i++)
		if (strcmp(exporters[i].name, name) == 0)
			return &exporters[i];
	return NULL;
}
