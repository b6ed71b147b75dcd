/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens what a user calls a trace: an SBT file, or any file that an importer knows, which is
 * imported on the fly into memory or an unnamed temporary file. Several operands make a set: the
 * ranks of a job.
 *
 * Nothing here prints. Errors are returned; everything else goes to the callbacks of
 * struct ts_open_options, on the calling thread.
 */
#ifndef TS_OPEN_TRACE_OPEN_H
#define TS_OPEN_TRACE_OPEN_H

#include <stddef.h>
#include <stdint.h>

#include <tracesmith/reader.h>

struct ts_text;

/* Zero in any member: not wanted. */
struct ts_open_options {
	/* The trace can be used, but is damaged, incomplete or still being written. */
	void (*warning)(void *context, const char *text);
	/* The trace is being finished, which may take seconds: opening it waits. */
	void (*waiting)(void *context, const char *text);
	/* A second line for the error that is returned: why the file cannot be imported either. */
	void (*note)(void *context, const char *text);
	/* Progress of the import of `path`, in bytes; not 0 ends it with TS_ECANCELED. */
	int (*progress)(void *context, const char *path, uint64_t done, uint64_t total);
	void *context;
};

/* "-" is standard input, to be imported. `options` may be NULL. */
int ts_trace_open(struct ts_reader **ret_reader, const char *path,
		  const struct ts_open_options *options, struct ts_error *err);

/* ---- who writes it ---- */

enum ts_trace_writing {
	TS_TRACE_AT_REST, /* nobody, as far as can be seen */
	TS_TRACE_GROWING, /* somebody still does */
	/* Its recorder was killed, or could not finish it: the journal beside it may have more. */
	TS_TRACE_CUT_OFF,
};

struct ts_trace_writer {
	enum ts_trace_writing writing;
	uint64_t recorder_pid; /* of a growing trace; 0: unknown, or not a recorder */
};

void ts_trace_look(const char *path, struct ts_trace_writer *ret_writer);

/*
 * The same, but first waits for whoever still writes the trace to finish, up to ten seconds, if
 * that is in sight. ts_trace_open() begins with it and warns about what it finds. `options` may be
 * NULL.
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

/* ---- several traces ---- */

/* A zeroed struct is an empty set. */
struct ts_trace_set {
	struct ts_reader **readers;
	size_t count;
	int64_t start; /* of the earliest trace, in trace time */
};

/* Opens all of them, or none. */
int ts_trace_set_open(struct ts_trace_set *set, char *const *paths, size_t count,
		      const struct ts_open_options *options, struct ts_error *err);
void ts_trace_set_close(struct ts_trace_set *set);

/* The index of the first path that names the same file as one before it, or -1. */
int ts_trace_set_find_duplicate(char *const *paths, size_t count);

#endif
