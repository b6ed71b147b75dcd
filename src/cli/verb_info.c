/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith info`: what a trace holds, for people or as JSON. Only headers and the small tables
 * are read. Must not know the bytes of the file.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/info.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/report.h"
#include "cli/trace.h"
#include "cli/verbs.h"

static void count_tables(struct ts_info *info)
{
	for (size_t i = 0; i < ts_reader_chunk_count(info->reader); i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(info->reader, i);
		struct ts_info_table *table;

		/* Tables of a later version are counted together. */
		table = chunk->table < TS_TABLE_COUNT ? &info->tables[chunk->table]
						      : &info->unknown;
		table->rows += chunk->rows;
		table->bytes += chunk->bytes;
		table->chunks++;
	}
}

static int collect(struct ts_info *info, const char *path, struct ts_error *err)
{
	info->path = path;
	info->state = ts_reader_state(info->reader);
	info->events = ts_trace_events(info->reader);
	info->sources = ts_trace_entities(info->reader, TS_TABLE_SOURCE);
	info->processes = ts_trace_entities(info->reader, TS_TABLE_PROCESS);
	info->threads = ts_trace_entities(info->reader, TS_TABLE_THREAD);
	info->devices = ts_trace_entities(info->reader, TS_TABLE_DEVICE);
	info->streams = ts_trace_entities(info->reader, TS_TABLE_STREAM);
	count_tables(info);
	ts_show_init(&info->show, info->reader);
	return ts_trace_range(info->reader, &info->range, err);
}

static int show_trace(const char *path, bool json)
{
	TS_AUTO(ts_reader) reader = NULL;
	struct ts_info info = { 0 };
	struct ts_error err;
	int rc;

	rc = ts_reader_open(&reader, path, &err);
	info.reader = reader;
	if (!rc)
		rc = collect(&info, path, &err);
	if (!rc)
		rc = json ? ts_info_show_json(&info, &err) : ts_info_show_text(&info, &err);
	if (!rc)
		rc = ts_reader_status(reader, &err);
	return rc ? ts_report_error(&err) : TS_EXIT_DONE;
}

int ts_verb_info(int argc, char **argv)
{
	bool json = false;
	const struct ts_option options[] = {
		TS_OPTION_FLAG("json", 0, &json, "one JSON object a trace, with all of 'meta'"),
	};
	const struct ts_command command = {
		.verb = "info",
		.operands = "TRACE...",
		.about =
			"Says what a trace holds: sources, time range, processes, devices, rows and bytes by\n"
			"table, what was lost, and facts about the trace.\n",
		.examples = "tracesmith info run.sbt\n"
			    "tracesmith info --json run.sbt | python3 -m json.tool",
		.exits = "0  done\n2  usage\n3  bad input",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
		.minimum_operands = 1,
		.maximum_operands = -1,
	};
	int worst = TS_EXIT_DONE;

	if (!ts_command_parse(&command, &argc, argv, &worst))
		return worst;
	for (int i = 0; i < argc; i++) {
		int exit_code;

		if (i > 0 && !json)
			ts_text_append_char(ts_stdout(), '\n');
		exit_code = show_trace(argv[i], json);
		worst = TS_MAX(worst, exit_code);
	}
	return worst;
}
