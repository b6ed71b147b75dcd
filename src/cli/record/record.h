/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `tracesmith record` was asked for, shared by its files:
 *
 *	verb_record.c     the command line
 *	record_options.c    what both command lines share
 *	record_run.c      the recording, and standing in for the program that it started
 *	record_signals.c  signals: whose they are, and how they come to us
 *	record_metrics.c  what is measured beside it
 *	record_python.c   Python stacks: options, and how they become events
 *	record_backends.c  backends: names, options, settings for the program
 *	record_output.c   files: names, what an earlier recording has left
 *	record_messages.c     the summary
 *	record_backend_summary.c  what backends say of the finished trace
 *
 * `tracesmith sniff` (verb_sniff.c, sniff_*.c) is another command line for the same.
 */
#ifndef TS_CLI_RECORD_RECORD_H
#define TS_CLI_RECORD_RECORD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include "record/launch/launch_target.h"
#include "record/loop/recorder.h"
#include "sample/python/python_sampler.h"

#define TS_RECORD_FUNCTIONS 64

/* What is asked for of Python stacks. */
struct ts_record_python {
	bool samples; /* from outside; else at most the agent adds stacks to events */
	int64_t interval_ns;
	struct ts_python_sampler_options options;
	const char *functions[TS_RECORD_FUNCTIONS + 1]; /* what options.functions points to */
	char stacks[32];                                /* for the agent: "marks,calls" */
	bool no_counters;                               /* of what sampling itself costs */
	struct ts_record_stacks *stacks_out;            /* while it is recorded */
};

struct ts_record {
	char **command; /* the program to start, or NULL */
	struct ts_recorder_options options;
	struct ts_launch_options launch;
	bool quiet, json;
	bool no_symbols;     /* frames of native code stay addresses */
	bool names_backends; /* the user named them */
	char settings[1024]; /* of backends: "key=value;key=value" */
	bool outrun;         /* another recorder has the output already */
	/* Traces that were completed: their native frames get names when the recording is over. */
	char **files;
	size_t file_count, file_capacity;
	/* Metrics. */
	bool samples;
	int64_t interval_ns;
	char sources[256];        /* with commas; empty: all that there are */
	char agent_backends[256]; /* what runs in the program */
	struct ts_metrics_consumer consumer;
	struct ts_record_python python;
	/*
	 * Called after each pass, and not later than when it said (ns, CLOCK_MONOTONIC); NULL:
	 * nothing to do.
	 */
	int64_t (*tick)(struct ts_record *record, struct ts_recorder *recorder, int64_t now_ns);
	void *context; /* of the tick */
};

/* Records as asked; the exit code, which is that of the program where there is one. */
int ts_record_run(struct ts_record *record);

/* ---- record_options.c ---- */

#define TS_RECORD_PIDS 1024

/* What the recorder has to say, on stderr; `context` is the struct ts_record. */
void ts_record_note(void *context, const char *message);

struct ts_word_list;
/* The words of --pid; an exit code where one is no pid. `pids`: room for TS_RECORD_PIDS. */
int ts_record_pids(struct ts_record *record, const struct ts_word_list *words, pid_t *pids);

/* ---- record_signals.c ---- */

struct ts_record_signals {
	sigset_t mask;      /* our caller's, for the program */
	sigset_t ignored;   /* what the program must ignore and we do not */
	sigset_t not_typed; /* what our caller ignores: counts only if it comes from a process */
	int fd;             /* a signalfd */
};

/*
 * From here on signals that ask us to do something only become readable, in this thread and those
 * started later. What our caller ignores stays ignored.
 */
int ts_record_signals_take(struct ts_record_signals *signals, struct ts_error *err);

/* The next one; false: none is waiting. */
bool ts_record_signals_next(const struct ts_record_signals *signals,
			    struct signalfd_siginfo *ret_info);

/* Did the program get it as well, from the terminal or from itself? */
bool ts_record_signal_is_shared(const struct signalfd_siginfo *info, pid_t program);

/*
 * Ends as the program has ended: gives its exit code, or dies of the same signal, so that a shell
 * sees no difference.
 */
int ts_record_end_as(int wait_status);

/* ---- record_metrics.c ---- */

/* The area that what we measure goes to; false: there is none, which was told. */
bool ts_record_host(const struct ts_record *record, struct ts_recorder *recorder, const char *what);
/* Begins to sample, if that is asked for. Failing is no more than a warning. */
void ts_record_sample(struct ts_record *record, struct ts_recorder *recorder);

/* ---- record_python.c ---- */

/* Seconds, as the setting of a running target. */
int ts_record_python_interval(const char *text, int64_t *ret_ns);
/* A word of --python-on. */
int ts_record_python_on(struct ts_record *record, const char *word);
/* Begins to sample stacks, if that is asked for. Failing is no more than a warning. */
void ts_record_sample_python(struct ts_record *record, struct ts_recorder *recorder);
/* After the recording. */
void ts_record_python_release(struct ts_record *record);

/* ---- record_backends.c ---- */

#define TS_RECORD_BACKEND_OPTIONS 64

struct ts_option;
struct ts_text;

/* An option of a backend, and what the command line says of it. */
struct ts_record_option {
	const struct ts_backend *backend;
	const struct ts_backend_option *option; /* NULL behind the last */
	const char *text;
	bool flag;
	char help[512];
};

/*
 * Before the command line is parsed: loads the backends that --backends or $TRACESMITH_BACKENDS
 * names. `options`: those that record has without them.
 */
void ts_record_load_backends(const struct ts_option *options, size_t count, int argc, char **argv);

/* Appends the options of all known backends; the new count. `values`: one more than room. */
size_t ts_record_add_options(struct ts_record_option *values, struct ts_option *options,
			     size_t count, size_t capacity);

/* Adds to the help of --window and --backends what known backends bring; `help` holds the texts. */
void ts_record_complete_help(struct ts_option *options, size_t count, char help[2][2048]);

/* Reads --backends (NULL: not given); an exit code where a name is not valid. */
int ts_record_backends(struct ts_record *record, const char *list);

/* Is that backend among those that run in the program? After ts_record_backends(). */
bool ts_record_runs_in_program(const struct ts_record *record, const char *name);

/* Can the commands of one of them be replayed? */
bool ts_record_has_replayable(const struct ts_record *record);

/* After ts_record_backends(): checks options and the window of backends, for the program. */
int ts_record_read_settings(struct ts_record *record, const struct ts_record_option *options);

/* ---- record_output.c ---- */

/* What is recorded for an output: T.sbt itself, T.json.sbt for T.json, T.sbt for T. */
void ts_record_trace_path(const char *output, char *buffer, size_t bytes);

/* Does a living recorder write this trace? */
bool ts_record_is_held(const char *trace);

/* Was it left unfinished: is there a journal? */
bool ts_record_is_unfinished(const char *trace);

/*
 * Before a new trace is made: moves what a killed recorder has left there out of the way, and
 * tells. Fails where a living recorder has it.
 */
int ts_record_settle(const char *trace, struct ts_error *err);

/* Makes a text of a finished trace, by the name of an exporter. */
int ts_record_export_text(const char *exporter, const char *trace, const char *path,
			  struct ts_error *err);

/* ---- record_backend_summary.c ---- */

/* Prints what backends say of the trace; members of a JSON object go to `ret_json`. */
void ts_record_summarize_backends(const struct ts_record *record,
				  const struct ts_recorder_summary *recorded,
				  struct ts_text *ret_json);

/* ---- record_messages.c ---- */

/* A line on stderr, losses with what to do about them, JSON where it was asked for. */
void ts_record_tell(const struct ts_record *record, const struct ts_recorder_summary *summary);

#endif
