/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses the library to ask a trace, or the ranks of a job, three questions: how busy was each rank,
 * what did each stream wait for, and what does TraceSmith advise. Try
 *
 *	build/examples/library_idle tests/data/real/kineto/nccl_ranks/rank*.json.gz
 *
 * After `make install`: cc library_idle.c $(pkg-config --cflags --libs tracesmith)
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/analyze.h>
#include <tracesmith/state.h>

#define REASONS 16

struct wait {
	const char *reason;
	int64_t ns;
};

static int fail(const struct ts_error *err)
{
	fprintf(stderr, "library_idle: %s\n", err->message);
	return 1;
}

static void warn(void *context, const char *text)
{
	(void)context;
	fprintf(stderr, "library_idle: warning: %s\n", text);
}

/* A cell of a row, by the key that JSON has, too; NULL: no value. */
static const struct ts_cell *cell_of(const struct ts_result_table *table, size_t row,
				     const char *key)
{
	int column = ts_result_column_find(table, key);
	const struct ts_cell *cell = NULL;

	if (column >= 0)
		cell = ts_result_cell(table, row, (size_t)column);
	return cell && !cell->none ? cell : NULL;
}

static int show_breakdown(struct ts_job *job, struct ts_error *err)
{
	const struct ts_result_table *table;
	struct ts_result *result;

	if (ts_analyze(job, "breakdown", NULL, &result, err))
		return -1;
	table = ts_result_table_at(result, 0);
	for (size_t row = 0; table && row < ts_result_row_count(table); row++) {
		const struct ts_cell *rank = cell_of(table, row, "rank");
		const struct ts_cell *idle = cell_of(table, row, "idle_pct");

		if (rank && idle)
			printf("rank %" PRId64 ": idle %.1f %% of the time\n", rank->integer,
			       idle->real);
	}
	ts_result_free(result);
	return 0;
}

static void add(struct wait *waits, const char *reason, int64_t ns)
{
	for (size_t i = 0; i < REASONS; i++) {
		if (waits[i].reason && strcmp(waits[i].reason, reason) != 0)
			continue;
		waits[i].reason = reason;
		waits[i].ns += ns;
		return;
	}
}

static int show_waits(struct ts_job *job, struct ts_error *err)
{
	struct wait waits[REASONS] = { { NULL, 0 } };
	struct ts_state_cursor *cursor;
	struct ts_state_span span;

	if (ts_state_open(&cursor, job, TS_STATE_COMMANDS, NULL, err))
		return -1;
	while (ts_state_next(cursor, &span))
		if (span.state == TS_STATE_WAIT && span.reason)
			add(waits, span.reason, span.duration);
	for (size_t i = 0; i < REASONS && waits[i].reason; i++)
		printf("commands waited %.3f ms: %s\n", (double)waits[i].ns / 1e6, waits[i].reason);
	ts_state_close(cursor);
	return 0;
}

static int show_advice(struct ts_job *job, struct ts_error *err)
{
	const struct ts_result_table *table;
	struct ts_result *result;
	const char *note;

	if (ts_analyze(job, "advice", NULL, &result, err))
		return -1;
	table = ts_result_table_at(result, 0);
	for (size_t row = 0; table && row < ts_result_row_count(table); row++) {
		const struct ts_cell *finding = cell_of(table, row, "finding");

		if (finding)
			printf("%zu. %s\n", row + 1, finding->text);
	}
	for (size_t i = 0; (note = ts_result_note_at(result, i)); i++)
		printf("note: %s\n", note);
	ts_result_free(result);
	return 0;
}

int main(int argc, char **argv)
{
	struct ts_open_options options = { .size = sizeof(options), .warning = warn };
	struct ts_error err;
	struct ts_job *job;
	int rc;

	if (argc < 2) {
		fprintf(stderr, "usage: library_idle TRACE...\n");
		return 2;
	}
	if (ts_job_open(&job, (const char *const *)argv + 1, (size_t)argc - 1, &options, &err))
		return fail(&err);
	rc = show_breakdown(job, &err);
	if (!rc)
		rc = show_waits(job, &err);
	if (!rc)
		rc = show_advice(job, &err);
	if (rc)
		fail(&err);
	ts_job_close(job);
	return rc ? 1 : 0;
}
