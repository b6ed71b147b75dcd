/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds who is writing a trace, or failed to finish it. Traces are opened by <tracesmith/open.h>.
 *
 * Nothing here prints: messages go to the callbacks of struct ts_open_options, on the calling
 * thread.
 */
#ifndef TS_OPEN_TRACE_OPEN_H
#define TS_OPEN_TRACE_OPEN_H

#include <stdint.h>

#include <tracesmith/open.h>

struct ts_text;

enum ts_trace_writing {
	TS_TRACE_AT_REST, /* no process is known to write it */
	TS_TRACE_GROWING, /* a process still writes it */
	/* Its recorder was killed, or could not finish it: the journal beside it may have more. */
	TS_TRACE_CUT_OFF,
};

struct ts_trace_writer {
	enum ts_trace_writing writing;
	uint64_t recorder_pid; /* of a growing trace; 0: unknown, or not a recorder */
};

void ts_trace_look(const char *path, struct ts_trace_writer *ret_writer);

/*
 * The same, but if a process is about to finish the trace, first waits for it, up to ten seconds.
 * ts_open() begins with it and warns about what it finds. `options` may be NULL.
 */
void ts_trace_await(const char *path, const struct ts_open_options *options,
		    struct ts_trace_writer *ret_writer);

/*
 * Appends "trace 'PATH' is still being written by its recorder, process 4711", or "trace 'PATH':
 * the recording was cut off". Not for one at rest.
 */
void ts_trace_describe_writer(struct ts_text *text, const char *path,
			      const struct ts_trace_writer *writer);

/* Appends the command that recovers the trace: "tracesmith recover 'my run.sbt' -o good.sbt". */
void ts_trace_append_recover(struct ts_text *text, const char *path);

#endif
