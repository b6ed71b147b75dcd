/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith info`: summarises a trace, as text or JSON. Reads only chunk headers and small
 * tables, the command stream if there is one, and counters if asked for.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/common/cli_output.h"
#include "cli/common/options.h"
#include "cli/common/report.h"
#include "cli/common/terminal.h"
#include "cli/common/trace_input.h"
#include "cli/info/info.h"
#include "cli/info/info_counters.h"
#include "cli/verbs.h"
#include "trace/trace_append.h"
#include "trace/trace_totals.h"

static void count_tables(struct ts_info *info)
{
	for (size_t i = 0; i < ts_reader_chunk_count(info->reader); i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(info->reader, i);
		struct ts_info_table *table;

		/* Unknown tables (of a later version) are counted together. */
		table = chunk->table < TS_TABLE_COUNT ? &info->tables[chunk->table]
						      : &info->unknown;
		table->rows += chunk->rows;
		table->bytes += chunk->bytes;
		table->chunks++;
	}
}

/* A pipe can only be imported. */
static void look_at_file(struct ts_info *info)
{
	struct stat status;

	if (stat(info->path, &status) || !S_ISREG(status.st_mode))
		status.st_size = 0;
	info->imported = !status.st_size || !ts_trace_is_sbt(info->path);
	info->bytes = info->imported ? (uint64_t)status.st_size : info->state->file_bytes;
}

static int collect(struct ts_info *info, struct ts_error *err)
{
	int rc = ts_trace_totals(info->reader, &info->totals, err);

	info->state = ts_reader_state(info->reader);
	if (info->pid) {
		info->bytes = info->state->file_bytes;
	} else {
		look_at_file(info);
		ts_trace_look(info->path, &info->writer);
	}
	count_tables(info);
	ts_show_init(&info->show, info->reader);
	if (!rc)
		rc = ts_trace_range(info->reader, &info->range, err);
	if (!rc)
		rc = ts_replay_facts_load(&info->replay, info->reader, err);
	/* Commands without a window are no stream: hashes of a replay, rows of an import. */
	if (!rc && !info->replay->window_count && !info->replay->was_requested) {
		ts_replay_facts_free(info->replay);
		info->replay = NULL;
	}
	return rc;
}

/* A trace, or a snapshot of a process. */
struct subject {
	const char *path; /* or what messages call the process */
	pid_t pid;        /* 0: a trace */
};

static int show_trace(const struct subject *subject, bool json)
{
	TS_AUTO(ts_reader) reader = NULL;
	struct ts_info info = { .path = subject->path, .pid = subject->pid };
	struct ts_error err;
	int rc, exit_code = subject->pid ? ts_trace_input_open_live(&reader, subject->pid)
					 : ts_trace_input_open(&reader, subject->path);

	if (exit_code)
		return exit_code;
	info.reader = reader;
	rc = collect(&info, &err);
	if (!rc)
		rc = json ? ts_info_show_json(&info, &err) : ts_info_show_text(&info, &err);
	if (!rc)
		rc = ts_reader_status(reader, &err);
	ts_replay_facts_free(info.replay);
	return rc ? ts_report_error(&err) : TS_EXIT_DONE;
}

static void note_no_match(const char *path, const struct ts_filter_options *filters)
{
	const struct {
		const char *option;
		const struct ts_string_list *values;
	} given[] = {
		{ "name", &filters->names },
		{ "category", &filters->categories },
		{ "process", &filters->processes },
		{ "device", &filters->devices },
	};
	TS_SCOPED(ts_text) text = { 0 };

	for (size_t i = 0; i < TS_ARRAY_SIZE(given); i++)
		for (size_t j = 0; j < given[i].values->count; j++)
			ts_text_printf(&text, " --%s %s", given[i].option,
				       given[i].values->items[j]);
	if (text.length)
		ts_report_note("no counter of '%s' matches%s", path, ts_text_cstr(&text));
}

static int show_counters(const struct subject *subject, struct ts_filter_options *filters,
			 bool json)
{
	TS_AUTO(ts_reader) reader = NULL;
	struct ts_counters counters = { 0 };
	struct ts_error err;
	int rc, exit_code;

	exit_code = subject->pid ? ts_trace_input_open_filtered(&reader, subject->pid,
								&filters->processes)
				 : ts_trace_input_open(&reader, subject->path);
	if (exit_code)
		return exit_code;
	counters.reader = reader;
	rc = ts_counters_collect(&counters, subject->path, filters, &err);
	if (!rc)
		rc = json ? ts_counters_show_json(&counters, &err)
			  : ts_counters_show_text(&counters, &err);
	if (!rc && !counters.series_count)
		note_no_match(subject->path, filters);
	if (!rc)
		rc = ts_reader_status(reader, &err);
	ts_counters_release(&counters);
	if (rc && err.message[0])
		return ts_report_error(&err);
	return ts_report_exit_code(rc);
}

struct question {
	bool json, counters;
	struct ts_filter_options filters;
};

static int check_question(const struct question *question, int count, pid_t pid)
{
	const struct ts_filter_options *filters = &question->filters;

	if (!count && !pid)
		return ts_report_usage("TRACE or -p PID is missing");
	if (!question->counters && (filters->names.count || filters->categories.count ||
				    filters->devices.count || (filters->processes.count && !pid)))
		return ts_report_usage("filters need '--counters'");
	return TS_EXIT_DONE;
}

static int show_subject(struct question *question, const struct subject *subject)
{
	return question->counters ? show_counters(subject, &question->filters, question->json)
				  : show_trace(subject, question->json);
}

static int show_traces(struct question *question, int count, char **paths)
{
	int worst = TS_EXIT_DONE;

	for (int i = 0; i < count; i++) {
		int exit_code;

		if (i > 0 && !question->json)
			ts_text_append_char(ts_stdout(), '\n');
		exit_code = show_subject(question, &(struct subject){ .path = paths[i] });
		worst = TS_MAX(worst, exit_code);
	}
	return worst;
}

static int show_live(struct question *question, pid_t pid)
{
	char name[TS_TRACE_INPUT_NAME_BYTES];
	const struct subject subject = { ts_trace_input_live_name(pid, name), pid };

	return show_subject(question, &subject);
}

int ts_verb_info(int argc, char **argv)
{
	struct question question = { 0 };
	const struct ts_option options[] = {
		TS_OPTION_FLAG("counters", 0, &question.counters,
			       "every counter: minimum, mean, maximum and last value, and a graph "
			       "over time"),
		TS_OPTION_REPEATED("name", 'n', "GLOB", &question.filters.names,
				   "only counters with this name; may be repeated"),
		TS_OPTION_REPEATED("category", 'c', "GLOB", &question.filters.categories,
				   "only counters of this category: system, process, device"),
		TS_OPTION_REPEATED("process", 'p', "PID|NAME", &question.filters.processes,
				   "only counters of this process; without TRACE: what has been "
				   "recorded of it so far"),
		TS_OPTION_REPEATED("device", 'd', "N", &question.filters.devices,
				   "only counters of this device"),
		TS_TERMINAL_WIDTH_OPTION,
		TS_OPTION_FLAG("json", 0, &question.json,
			       "one JSON object per trace, with all metadata or all counters"),
	};
	const struct ts_command command = {
		.verb = "info",
		.operands = "TRACE... | -p PID",
		.about = "Summarizes a trace: sources, time range, processes, devices, rows and "
			 "bytes by table, "
			 "losses and metadata. With --counters, the counters.\n"
			 "With -p PID and no TRACE, summarizes what has been recorded of a "
			 "process so far, without disturbing it or its recorder. The process may "
			 "have ended.\n",
		.examples = "tracesmith info run.sbt\n"
			    "tracesmith info --json run.sbt | python3 -m json.tool\n"
			    "tracesmith info --counters run.sbt\n"
			    "tracesmith info --counters --name '*_percent' run.sbt\n"
			    "tracesmith info -p 4711",
		.exits = "0  done\n2  usage error\n3  bad input",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
		.maximum_operands = -1,
	};
	int exit_code;

	if (ts_command_parse(&command, &argc, argv, &exit_code)) {
		pid_t pid = ts_trace_input_live_pid(argc, &question.filters.processes);

		exit_code = check_question(&question, argc, pid);
		if (!exit_code)
			exit_code = pid ? show_live(&question, pid)
					: show_traces(&question, argc, argv);
	}
	ts_filter_options_release(&question.filters);
	return exit_code;
}
