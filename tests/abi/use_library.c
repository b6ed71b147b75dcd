/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user of the installed library, compiled as C and as C++: reads rows, runs an analysis,
 *compares, exports, walks states and dependencies, and prints what it found; install.sh compares
 *that with the tool's output.
 *
 *	use_library rows|state|edges|csv TRACE    use_library analyze|errors TRACE
 *	use_library ranks RANK0 RANK1             use_library diff A B
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracesmith/analyze.h>
#include <tracesmith/diff.h>
#include <tracesmith/export.h>
#include <tracesmith/import.h>
#include <tracesmith/open.h>
#include <tracesmith/reader.h>
#include <tracesmith/record.h>
#include <tracesmith/result.h>
#include <tracesmith/state.h>
#include <tracesmith/writer.h>

static struct ts_error err;

static void check(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: %s: %s\n", what, ts_error_name(rc), err.message);
	exit(1);
}

static void expect(int is_true, const char *what)
{
	if (is_true)
		return;
	fprintf(stderr, "not true: %s\n", what);
	exit(1);
}

static struct ts_job *open_job(const char *const *paths, size_t count)
{
	struct ts_job *job = NULL;

	check(ts_job_open(&job, paths, count, NULL, &err), "open");
	expect(ts_job_count(job) == count, "the job has all traces");
	return job;
}

/* Device rows and their time, read column by column. */
static void rows(struct ts_job *job)
{
	struct ts_reader *reader = ts_job_reader(job, 0);
	uint64_t mask = TS_MASK_OF(gpu_op, duration) | TS_MASK_OF(gpu_op, kind);
	struct ts_batch *batch = NULL;
	uint64_t count = 0;
	int64_t total_ns = 0;

	check(ts_batch_new(&batch, reader, &err), "batch");
	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
		const int64_t *duration, *kind;

		if (ts_reader_chunk(reader, i)->table != TS_TABLE_GPU_OP)
			continue;
		check(ts_batch_read(batch, i, mask, &err), "read");
		duration = batch->columns[TS_COLUMN_OF(gpu_op, duration)];
		kind = batch->columns[TS_COLUMN_OF(gpu_op, kind)];
		for (uint32_t r = 0; r < batch->rows; r++) {
			if (kind[r] == TS_GPU_OP_SYNC)
				continue;
			count++;
			total_ns += duration[r];
		}
	}
	printf("commands %" PRIu64 " device_ns %" PRId64 "\n", count, total_ns);
	ts_batch_free(batch);
}

static void print_json(const struct ts_result *result)
{
	size_t bytes = 0;
	char *json = NULL;

	check(ts_result_json(result, &json, &bytes, &err), "json");
	expect(strlen(json) == bytes, "the length of the JSON text");
	puts(json);
	free(json);
}

/* As `tracesmith analyze TRACE idle --wait 20us --steps all --json`. */
static void analyze(struct ts_job *job)
{
	struct ts_analyze_options options;
	struct ts_selection selection;
	struct ts_option_value option;
	struct ts_result *result = NULL;

	memset(&options, 0, sizeof(options));
	memset(&selection, 0, sizeof(selection));
	option.name = "wait";
	option.value = "20us";
	selection.size = sizeof(selection);
	selection.steps = "all";
	options.size = sizeof(options);
	options.selection = &selection;
	options.options = &option;
	options.option_count = 1;
	check(ts_analyze(job, "idle", &options, &result, &err), "analyze");
	/* The answer does not need the job. */
	ts_job_forget(job);
	print_json(result);
	ts_result_free(result);
}

/* The sum of a column, and the same by its address. */
static void ranks(struct ts_job *job)
{
	const struct ts_result_table *table;
	struct ts_result *result = NULL;
	int64_t idle_ns = 0;
	int column;

	for (int round = 0; round < 3; round++) {
		/* The second one moves times: the others must not notice. */
		ts_result_free(result);
		result = NULL;
		check(ts_analyze(job, round == 1 ? "stragglers" : "breakdown", NULL, &result, &err),
		      "analyze");
		print_json(result);
	}
	table = ts_result_table_find(result, "breakdown");
	expect(table && table == ts_result_table_at(result, 0), "the table");
	expect(ts_result_row_count(table) >= ts_job_count(job), "a row for each rank");
	column = ts_result_column_find(table, "idle_us");
	expect(column >= 0 && ts_result_column_find(table, "none") < 0, "the column");
	expect(ts_result_column(table, (size_t)column)->type == TS_CELL_TIME, "its type");
	for (size_t row = 0; row < ts_result_row_count(table); row++) {
		const struct ts_cell *first = ts_result_cell(table, row, 0);
		const struct ts_cell *cell = ts_result_cell(table, row, (size_t)column);

		expect(cell == first + column, "cells are an array");
		idle_ns += cell->none ? 0 : cell->integer;
	}
	expect(!ts_result_cell(table, ts_result_row_count(table), 0), "no more rows");
	printf("idle_ns %" PRId64 "\n", idle_ns);
	ts_result_free(result);
}

static void state(struct ts_job *job)
{
	struct ts_state_cursor *cursor = NULL;
	struct ts_state_span span;
	int64_t running_ns = 0, last = -1, lanes_ns = 0;
	uint64_t count = 0, commands = 0;

	check(ts_state_open(&cursor, job, TS_STATE_COMMANDS, NULL, &err), "state");
	/* A cursor outlives what the job keeps. */
	ts_job_forget(job);
	while (ts_state_next(cursor, &span)) {
		count++;
		commands += span.gpu_op != last;
		last = span.gpu_op;
		if (span.state == TS_STATE_RUNNING)
			running_ns += span.duration;
		expect(span.trace == 0 && span.name != NULL, "the command of a span");
	}
	ts_state_close(cursor);
	check(ts_state_open(&cursor, job, TS_STATE_LANES, NULL, &err), "state");
	while (ts_state_next(cursor, &span))
		if (span.stream == TS_ABSENT)
			lanes_ns += span.duration;
	ts_state_close(cursor);
	printf("rows %" PRIu64 " commands %" PRIu64 " running_ns %" PRId64 " device_ns %" PRId64
	       "\n",
	       count, commands, running_ns, lanes_ns);
}

static void edges(struct ts_job *job)
{
	struct ts_dependency_cursor *cursor = NULL;
	struct ts_dependency edge;
	uint64_t count = 0, launches = 0;

	check(ts_dependency_open(&cursor, job, NULL, &err), "edges");
	while (ts_dependency_next(cursor, &edge)) {
		count++;
		launches += !strcmp(edge.kind, "launch");
		expect(edge.from.time <= edge.to.time, "no edge goes back in time");
	}
	ts_dependency_close(cursor);
	printf("edges %" PRIu64 " launches %" PRIu64 "\n", count, launches);
}

static void csv(struct ts_job *job)
{
	const struct ts_exporter *exporter = ts_exporter_find("csv");
	struct ts_export_options options;

	memset(&options, 0, sizeof(options));
	options.size = sizeof(options);
	options.table = "gpu_op";
	expect(exporter != NULL, "there is an exporter for CSV");
	fflush(stdout);
	check(exporter->run(ts_job_reader(job, 0), STDOUT_FILENO, &options, &err), "export");
}

static void diff(struct ts_job *a, const char *path_b)
{
	static const char *const names[] = { "identical", "alike", "different" };
	enum ts_diff_outcome outcome;
	struct ts_result *result = NULL;
	struct ts_job *b = open_job(&path_b, 1);

	check(ts_diff(a, b, NULL, &outcome, &result, &err), "diff");
	print_json(result);
	ts_result_free(result);
	check(ts_diff(a, a, NULL, &outcome, &result, &err), "diff of one job with itself");
	printf("%s", names[outcome]);
	ts_result_free(result);
	check(ts_diff(b, a, NULL, &outcome, &result, &err), "diff");
	printf(" %s\n", names[outcome]);
	ts_result_free(result);
	ts_job_close(b);
}

static void fails(int rc, int want, const char *text)
{
	if (rc == want && strstr(err.message, text))
		return;
	fprintf(stderr, "%d instead of %d: %s\n", rc, want, err.message);
	exit(1);
}

/* What a caller can do wrong. Outputs stay untouched. */
static void errors(struct ts_job *job, const char *path)
{
	const char *twice[2];
	struct ts_analyze_options options;
	struct ts_record_options record;
	struct ts_record_session *session = NULL;
	struct ts_selection selection;
	struct ts_option_value option;
	struct ts_option_info info;
	struct ts_result *result = NULL;
	struct ts_job *other = NULL;

	twice[0] = twice[1] = path;
	memset(&options, 0, sizeof(options));
	memset(&record, 0, sizeof(record));
	memset(&selection, 0, sizeof(selection));
	options.size = sizeof(options);
	options.selection = &selection;
	options.options = &option;
	record.size = sizeof(record);
	selection.size = sizeof(selection);
	fails(ts_job_open(&other, twice, 2, NULL, &err), TS_EINVAL, "given twice");
	fails(ts_analyze(job, "nothing", NULL, &result, &err), TS_EINVAL, "no analysis 'nothing'");
	selection.steps = "5-3";
	fails(ts_analyze(job, "idle", &options, &result, &err), TS_EINVAL, "ends before it begins");
	selection.steps = "999";
	fails(ts_analyze(job, "idle", &options, &result, &err), TS_ENOTFOUND, "no step 999");
	selection.steps = NULL;
	option.name = "long";
	option.value = "1us";
	options.option_count = 1;
	fails(ts_analyze(job, "idle", &options, &result, &err), TS_EINVAL, "it has wait, top");
	option.name = "wait";
	option.value = "1";
	fails(ts_analyze(job, "idle", &options, &result, &err), TS_EINVAL, "has no unit");
	fails(ts_record_start(&session, &record, &err), TS_EINVAL, "nothing to record");
	expect(!result && !other && !session, "outputs are untouched");
	expect(ts_analysis_option(ts_analysis_find("idle"), 0, &info), "idle has options");
	expect(!strcmp(info.name, "wait") && info.value && info.doc, "the first one is wait");
	/* An options struct of an older program ends before members that were added. */
	options.size = sizeof(options.size) + sizeof(options.selection);
	check(ts_analyze(job, "idle", &options, &result, &err), "options of an older program");
	ts_result_free(result);
	puts("all refused");
}

int main(int argc, char **argv)
{
	const char *const *paths = (const char *const *)argv + 2;
	const char *what = argc > 2 ? argv[1] : "";
	struct ts_job *job;

	if (argc < 3)
		return 2;
	job = open_job(paths, strcmp(what, "ranks") ? 1 : (size_t)argc - 2);
	if (!strcmp(what, "rows"))
		rows(job);
	else if (!strcmp(what, "analyze"))
		analyze(job);
	else if (!strcmp(what, "ranks"))
		ranks(job);
	else if (!strcmp(what, "state"))
		state(job);
	else if (!strcmp(what, "edges"))
		edges(job);
	else if (!strcmp(what, "csv"))
		csv(job);
	else if (!strcmp(what, "diff"))
		diff(job, argv[3]);
	else
		errors(job, argv[2]);
	ts_job_close(job);
	return 0;
}
