/* SPDX-License-Identifier: Apache-2.0 */
/* The table of exporters. */
#include "export/export.h"

#include <string.h>

#include "base/memory.h"

#define COMPRESSED ".gz"

static const struct ts_exporter exporters[] = {
	{
		.name = "chrome",
		.doc = "Chrome trace-event JSON, for Perfetto, chrome://tracing and HTA",
		.run = ts_export_chrome,
		.endings = { ".json" },
	},
	{
		.name = "chrome-array",
		.doc = "plain array of Chrome events: names, spans, instants and counters",
		.run = ts_export_chrome_array,
	},
	{
		.name = "perfetto",
		.doc = "Perfetto protobuf, for ui.perfetto.dev and trace_processor",
		.takes = TS_EXPORT_NO_GPU_STAGES,
		.run = ts_export_perfetto,
		.endings = { ".pftrace", ".perfetto-trace" },
	},
	{
		.name = "csv",
		.doc = "one table as CSV, with ids resolved to names",
		.takes = TS_EXPORT_TABLE | TS_EXPORT_RANGE | TS_EXPORT_LIMIT,
		.run = ts_export_csv,
		.endings = { ".csv" },
	},
	{
		.name = "dot",
		.doc = "dependency graph of up to a few hundred commands, for Graphviz",
		.takes = TS_EXPORT_RANGE | TS_EXPORT_LIMIT,
		.run = ts_export_dot,
		.endings = { ".dot", ".gv" },
	},
	{
		.name = "timeline",
		.doc = "Chrome JSON with sampled stacks over time, for Perfetto",
		.takes = TS_EXPORT_NO_IDLE,
		.run = ts_export_timeline,
	},
	{
		.name = "folded",
		.doc = "folded stacks with weights, for flamegraph.pl and speedscope",
		.takes = TS_EXPORT_NO_LINES | TS_EXPORT_NO_THREADS | TS_EXPORT_NO_IDLE |
			 TS_EXPORT_TIME | TS_EXPORT_DEVICE | TS_EXPORT_CALLS | TS_EXPORT_MEMORY |
			 TS_EXPORT_SPANS,
		.run = ts_export_folded,
		.endings = { ".folded" },
	},
	{
		.name = "speedscope",
		.doc = "stacks as one profile per thread, for speedscope",
		.takes = TS_EXPORT_NO_LINES | TS_EXPORT_NO_IDLE | TS_EXPORT_DEVICE |
			 TS_EXPORT_CALLS | TS_EXPORT_MEMORY | TS_EXPORT_SPANS,
		.run = ts_export_speedscope,
		.endings = { ".speedscope.json" },
	},
};

struct ts_export_options ts_export_options(const struct ts_export_options *options)
{
	struct ts_export_options all = { .size = sizeof(all) };

	if (options)
		memcpy(&all, options, TS_MIN(options->size, sizeof(all)));
	all.size = sizeof(all);
	return all;
}

void ts_export_left_out(const struct ts_export_options *options, const char *table, uint64_t rows,
			const char *reason)
{
	struct ts_export_options all = ts_export_options(options);

	if (all.left_out && rows)
		all.left_out(all.context, table, rows, reason);
}

unsigned int ts_export_flags(const struct ts_export_options *options)
{
	return ts_export_options(options).flags;
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

/* How many of the first `length` bytes of a name are an ending of the exporter. */
static size_t ending_of(const struct ts_exporter *exporter, const char *name, size_t length)
{
	for (size_t i = 0; i < TS_EXPORT_ENDINGS && exporter->endings[i]; i++) {
		size_t tail = strlen(exporter->endings[i]);

		if (length > tail && !strncmp(name + length - tail, exporter->endings[i], tail))
			return tail;
	}
	return 0;
}

const struct ts_exporter *ts_exporter_for_file(const char *name)
{
	const struct ts_exporter *best = NULL;
	size_t length = strlen(name), longest = 0;

	if (ts_export_is_compressed(name))
		length -= strlen(COMPRESSED);
	for (size_t i = 0; i < TS_ARRAY_SIZE(exporters); i++) {
		size_t tail = ending_of(&exporters[i], name, length);

		if (tail > longest) {
			longest = tail;
			best = &exporters[i];
		}
	}
	return best;
}

bool ts_export_is_compressed(const char *name)
{
	size_t length = strlen(name), tail = strlen(COMPRESSED);

	return length > tail && !strcmp(name + length - tail, COMPRESSED);
}
