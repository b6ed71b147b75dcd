/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a recording of running processes, or of a command. The recorder is a separate process
 * (`tracesmith record`), so that nothing is lost if the program that started it crashes.
 *
 *	const pid_t pids[] = { getpid() };
 *	struct ts_record_options options = {
 *		.size = sizeof(options), .output = "run.sbt", .pids = pids, .pid_count = 1,
 *	};
 *	struct ts_record_session *session;
 *	struct ts_record_summary summary = { .size = sizeof(summary) };
 *
 *	if (ts_record_start(&session, &options, &err))
 *		return fail(err.message);
 *	... the work to record ...
 *	if (ts_record_stop(session, &summary, &err))
 *		return fail(err.message);
 *	printf("%llu events in %s\n", (unsigned long long)summary.events, summary.file);
 *	ts_record_close(session);
 *
 * The tool is $TRACESMITH_RECORDER, or `tracesmith` beside this library, in ../bin or ../../bin
 * from there, or in $PATH.
 *
 * Threads: a recording is used by one thread at a time. This process is not affected: there is no
 * signal handler, no SIGCHLD, no child that wait() would return, no inherited descriptor.
 */
#ifndef TRACESMITH_RECORD_H
#define TRACESMITH_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TS_RECORD_REDACT 1u     /* leave out values: docs/privacy.md */
#define TS_RECORD_REPLAYABLE 2u /* store what `tracesmith replay` needs */
#define TS_RECORD_NATIVE 4u     /* Python stacks include native frames */
#define TS_RECORD_LOCALS 8u     /* Python stacks include local variables, shortened */
#define TS_RECORD_SPLIT 16u     /* one trace per window and process */

/*
 * Zero in any member means its default, which is that of the option of `tracesmith record` of the
 * same name. `size` is sizeof(struct ts_record_options). Pointers are not
 * used after the call.
 */
struct ts_record_options {
	size_t size;
	unsigned int flags; /* TS_RECORD_* */
	const char *output; /* the trace to write; NULL: tracesmith-PID.sbt */
	/* Running processes to record; or ... */
	const pid_t *pids;
	size_t pid_count;
	/*
	 * ... a command to run and record, NULL-terminated. It inherits standard streams and
	 * environment.
	 */
	const char *const *command;
	const char *backends;       /* "python,host", "none" */
	const char *window;         /* "steps:10-12", "nvtx:step", "time:10s-20s", "command" */
	int64_t max_steps;          /* close a window after this many steps */
	int64_t duration_ns;        /* stop after this time */
	int64_t sample_interval_ns; /* between samples of metrics; -1: no metrics */
	int64_t python_interval_ns; /* between samples of Python stacks */
	uint64_t max_bytes;         /* stop at this size on disk */
	/* More options of the tool, NULL-terminated: { "--rotate", "64M", NULL }. */
	const char *const *extra;
	int64_t timeout_ns; /* to wait for the recorder to start; default: 30 s */
};

struct ts_record_session;

/*
 * Starts a recorder and returns when recording has begun: the processes have been found, or the
 * command has been started.
 *
 * TS_ENOTFOUND: the tool was not found. Other errors: the recorder did not start; the message has
 * its reason.
 */
int ts_record_start(struct ts_record_session **ret_session, const struct ts_record_options *options,
		    struct ts_error *err);

/* Process id of the recorder. */
pid_t ts_record_pid(const struct ts_record_session *session);

/* The summary of a recording. The caller sets `size` to sizeof(struct ts_record_summary). */
struct ts_record_summary {
	size_t size;
	const char *file; /* the trace that was written, the last one of several */
	uint64_t events, lost;
	uint64_t bytes; /* of all files */
	uint64_t processes, threads, devices, windows, files, metrics, stacks;
	/* Exit status of the command as of waitpid(); -1: there was none, or it still runs. */
	int command_status;
	const char *json; /* all of it, as `tracesmith record --json` prints it */
};

/*
 * Ends the recording and waits until the trace is complete; the recorded processes continue. If the
 * recording has ended, it only returns the summary. `ret_summary` may be NULL; its strings are
 * borrowed until ts_record_close().
 */
int ts_record_stop(struct ts_record_session *session, struct ts_record_summary *ret_summary,
		   struct ts_error *err);

/*
 * Waits until the recording ends by itself: the processes have exited, or `duration_ns` or
 * `max_bytes` is reached. *ret_ended is false if `timeout_ns` (-1: none) passed first. May be
 * repeated.
 */
int ts_record_wait(struct ts_record_session *session, int64_t timeout_ns, bool *ret_ended,
		   struct ts_error *err);

/* Frees the handle; a recording that was not stopped continues. Accepts NULL. */
void ts_record_close(struct ts_record_session *session);

#ifdef __cplusplus
}
#endif

#endif
