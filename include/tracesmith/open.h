/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens traces: SBT files, files of other tools, which are imported on the fly, and what has been
 * recorded of a process so far. Traces that belong together, such as the ranks of a run, are a job:
 *
 *	const char *const ranks[] = { "rank0.sbt", "rank1.json.gz" };
 *	struct ts_error err;
 *	struct ts_job *job;
 *
 *	if (ts_job_open(&job, ranks, 2, NULL, &err))
 *		return fail(err.message);
 *	for (size_t i = 0; i < ts_job_count(job); i++)
 *		printf("%zu chunks\n", ts_reader_chunk_count(ts_job_reader(job, i)));
 *	ts_job_close(job);
 *
 * Nothing here prints. Errors are returned; everything else goes to the callbacks of
 * struct ts_open_options, on the calling thread, while the call runs.
 *
 * Threads: any thread may open traces, several at the same time. A job may be used by one thread at
 * a time; its readers follow the rules of reader.h.
 */
#ifndef TRACESMITH_OPEN_H
#define TRACESMITH_OPEN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>
#include <tracesmith/reader.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Callbacks may be NULL. `size` is sizeof(struct ts_open_options). */
struct ts_open_options {
	size_t size;
	/* The trace can be used, but is damaged, incomplete or still being written. */
	void (*warning)(void *context, const char *text);
	/* A recorder is finishing the trace: opening waits for it, up to seconds. */
	void (*waiting)(void *context, const char *text);
	/* A second line for the returned error: why the file cannot be imported either. */
	void (*note)(void *context, const char *text);
	/*
	 * Progress of the import of `path`, in bytes (total 0: unknown); return nonzero to cancel
	 * with TS_ECANCELED.
	 */
	int (*progress)(void *context, const char *path, uint64_t done, uint64_t total);
	void *context;
};

/*
 * Opens one trace: an SBT file as it is; any other file that an importer knows (import.h) is
 * imported into memory, or a large one into an unnamed temporary file in $TMPDIR; "-" imports
 * standard input. `options` may be NULL. Close it with ts_reader_close().
 */
int ts_open(struct ts_reader **ret_reader, const char *operand,
	    const struct ts_open_options *options, struct ts_error *err);

/*
 * Opens what has been recorded of a process so far: the chunks and the journal of its recorder, and
 * the events in its rings. The process may have ended. The reader is a snapshot, which does not
 * change while the process continues. Close it with ts_reader_close().
 *
 * TS_ENOTFOUND: nothing is recorded of the process. TS_EIO: it belongs to another user.
 */
int ts_open_pid(struct ts_reader **ret_reader, pid_t pid, const struct ts_open_options *options,
		struct ts_error *err);

/* ---- several traces that belong together ---- */

struct ts_job;

/*
 * Opens all operands as ts_open() does; if one fails, none stays open. The same file twice is
 * TS_EINVAL. `count` may be 0 for an empty job, to which traces are added.
 */
int ts_job_open(struct ts_job **ret_job, const char *const *operands, size_t count,
		const struct ts_open_options *options, struct ts_error *err);

/* Adds a trace at the end. On success, the job takes the reader, and closes it. */
int ts_job_add(struct ts_job *job, struct ts_reader *reader, struct ts_error *err);

/* Adds a snapshot of a process: ts_open_pid(), then ts_job_add(). */
int ts_job_add_pid(struct ts_job *job, pid_t pid, const struct ts_open_options *options,
		   struct ts_error *err);

/* Closes the job and its traces. Accepts NULL. */
void ts_job_close(struct ts_job *job);

size_t ts_job_count(const struct ts_job *job);

/* The trace at this index, in the order of opening; borrowed until the job is closed. */
struct ts_reader *ts_job_reader(const struct ts_job *job, size_t index);

/* The start of the earliest trace, in trace time; TS_ABSENT for an empty job. */
int64_t ts_job_start(const struct ts_job *job);

#ifdef __cplusplus
}
#endif

#endif
