/* SPDX-License-Identifier: Apache-2.0 */
/*
 * States of each stream, device and command of a job over time, and the dependencies between them:
 * the derived tables `state` and `edge` (docs/state.md).
 *
 *	struct ts_state_cursor *cursor;
 *	struct ts_state_span span;
 *
 *	if (ts_state_open(&cursor, job, TS_STATE_COMMANDS, NULL, &err))
 *		return fail(err.message);
 *	while (ts_state_next(cursor, &span))
 *		if (span.state == TS_STATE_WAIT)
 *			printf("%s waited %lld ns: %s\n", span.name, (long long)span.duration,
 *			       span.reason);
 *	ts_state_close(cursor);
 *
 * Threads: a cursor, and the job it reads, are used by one thread at a time. Close cursors before
 * the job. Texts of rows are borrowed until the cursor is closed.
 */
#ifndef TRACESMITH_STATE_H
#define TRACESMITH_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>
#include <tracesmith/open.h>
#include <tracesmith/schema.h>
#include <tracesmith/selection.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ts_state_source {
	TS_STATE_COMMANDS = 0, /* phases of each command: pending, wait, running */
	/*
	 * Intervals of each device and of each stream, without gaps between the first and the last
	 * row of its rank, including idle time.
	 */
	TS_STATE_LANES = 1,
};

/* Zero in any member means its default. `size` is sizeof(struct ts_state_options). */
struct ts_state_options {
	size_t size;
	/*
	 * NULL: everything. Work outside the selection appears as waits and idle time. `from` and
	 * `to` are ignored.
	 */
	const struct ts_selection *selection;
	const int64_t *devices; /* only these numbers; device_count 0: all */
	size_t device_count;
	const int64_t *streams; /* only these numbers; stream_count 0: all, and devices */
	size_t stream_count;
	/*
	 * Only rows that overlap this time: "1.5ms" after the start of the job, or "@" and ns of
	 * trace time. NULL: no bound.
	 */
	const char *from, *to;
	/* As in struct ts_analyze_options. */
	int (*progress)(void *context, uint64_t done, uint64_t total);
	void *context;
};

/* TS_ABSENT: unknown, or none. Times are trace time in ns, aligned between the ranks of the job. */
struct ts_state_span {
	int64_t start, duration;
	int64_t rank, device, stream; /* numbers; stream TS_ABSENT: the entire device */
	int64_t correlation;          /* of the command */
	int64_t gpu_op;               /* row of the command in table gpu_op of its trace */
	int64_t trace;                /* index of the command's trace in the job */
	enum ts_execution_state state;
	const char *reason; /* why it waits or is idle: "event"; NULL: none */
	const char *name;   /* of the command; NULL: none */
};

struct ts_state_cursor;

/* Opens a cursor before the first row. `options` may be NULL. */
int ts_state_open(struct ts_state_cursor **ret_cursor, struct ts_job *job,
		  enum ts_state_source source, const struct ts_state_options *options,
		  struct ts_error *err);

/* The next row, by device, stream and time. False: there are no more. */
bool ts_state_next(struct ts_state_cursor *cursor, struct ts_state_span *ret_span);

void ts_state_close(struct ts_state_cursor *cursor); /* accepts NULL */

/* ---- dependencies ---- */

/* The start or end of a row that an edge joins. */
struct ts_dependency_point {
	/* TS_TABLE_GPU_OP, _API_CALL or _SLICE (host work in a slice); TS_ABSENT: outside of all */
	int64_t table;
	int64_t row; /* in that table of its trace; TS_ABSENT */
	int64_t trace;
	int64_t time;
	bool is_end;      /* the row's end, otherwise its start */
	const char *name; /* "" if it has none */
};

/* `to` could not happen before `from`. */
struct ts_dependency {
	const char *kind; /* "launch", "stream", "event" ...: docs/state.md */
	bool is_inferred; /* not recorded in the trace */
	struct ts_dependency_point from, to;
};

struct ts_dependency_cursor;

/*
 * Opens a cursor before the first dependency. Devices and streams of `options`, which may be NULL,
 * are ignored.
 */
int ts_dependency_open(struct ts_dependency_cursor **ret_cursor, struct ts_job *job,
		       const struct ts_state_options *options, struct ts_error *err);
bool ts_dependency_next(struct ts_dependency_cursor *cursor, struct ts_dependency *ret_dependency);
void ts_dependency_close(struct ts_dependency_cursor *cursor); /* accepts NULL */

#ifdef __cplusplus
}
#endif

#endif
