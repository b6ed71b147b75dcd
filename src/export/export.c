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
	{
		.name = "timeline",
		.doc = "Chrome JSON with sampled stacks drawn over time, for Perfetto and chrome://tracing",
		.takes = TS_EXPORT_NO_IDLE,
		.run = ts_export_timeline,
	},
	{
		.name = "folded",
		.doc = "sampled stacks and their counts, a line each, for flamegraph.pl and speedscope",
		.takes = TS_EXPORT_NO_LINES | TS_EXPORT_NO_THREADS | TS_EXPORT_NO_IDLE |
			 TS_EXPORT_TIME | TS_EXPORT_DEVICE,
		.run = ts_export_folded,
	},
	{
		.name = "speedscope",
		.doc = "sampled stacks as a profile a thread, for speedscope",
		.takes = TS_EXPORT_NO_LINES | TS_EXPORT_NO_IDLE | TS_EXPORT_DEVICE,
		.run = ts_export_speedscope,
	},
};

unsigned int ts_export_flags(const struct ts_export_options *options)
{
	size_t known = offsetof(struct ts_export_options, flags) + sizeof(options->flags);

	return options && options->size >= known ? options->flags : 0;
}

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
