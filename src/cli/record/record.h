/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State and functions shared by the files of `tracesmith record`:
 *
 *	verb_record.c             command line
 *	record_detached.c         the recorder that an agent starts
 *	record_options.c          options shared with `tracesmith sniff`
 *	record_run.c              runs the recording and stands in for the started program
 *	record_signals.c          signals: who is meant, and how they are read
 *	record_control.c          the program that started the recorder
 *	record_metrics.c          metric samples
 *	record_python.c           Python stacks: options, and conversion to events
 *	record_backends.c         backends: names, options, settings for the program
 *	record_output.c           files: names, leftovers of an earlier recording
 *	record_rank.c             ranks of a job, and patterns in the name of the output
 *	record_messages.c         summary
 *	record_backend_summary.c  summaries of backends
 *
 * `tracesmith sniff` (verb_sniff.c, sniff_*.c) is another command line for the same recording.
 */
#ifndef TS_CLI_RECORD_RECORD_H
#define TS_CLI_RECORD_RECORD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include "base/text.h"
#include "record/launch/launch_target.h"
#include "record/loop/recorder.h"
#include "sample/python/python_sampler.h"

#define TS_RECORD_FUNCTIONS 64

/* Settings of Python stacks. */
struct ts_record_python {
	bool samples; /* sample from outside; otherwise at most the agent adds stacks to events */
	int64_t interval_ns;
	struct ts_python_sampler_options options;
	const char *functions[TS_RECORD_FUNCTIONS + 1]; /* storage of options.functions */
	char stacks[32];                                /* for the agent: "marks,calls" */
	bool no_counters;                               /* no counters of the sampling overhead */
	struct ts_record_stacks *stacks_out;            /* while recording */
};

struct ts_record {
	char **command; /* program to start, or NULL */
	struct ts_recorder_options options;
	struct ts_launch_options launch;
	bool quiet, json;
	/*
	 * Socket of the program that started the recorder, which gets the summary; 0: none.
	 */
	int control_fd;
	bool is_controlled, control_started, control_finished;
	bool command_ended;  /* wait_status is known */
	bool has_ranks;      /* it may record several ranks */
	bool no_symbols;     /* native frames stay addresses */
	bool names_backends; /* the user gave --backends */
	char settings[1024]; /* settings of backends: "key=value;key=value" */
	int wait_status;     /* of the program, once it has exited */
	uint64_t stacks;     /* Python stacks that were read, after the end */
	/* Called when the output is open. May be NULL. */
	void (*opened)(struct ts_record *record);
	/* Detached: why the output cannot be written, which is not reported; code TS_OK: it can. */
	struct ts_error open_error;
	/* Completed traces; their native frames are symbolized after the recording. */
	char **files;
	size_t file_count, file_capacity;
	/* Metrics. */
	bool samples;
	int64_t interval_ns;
	char sources[256];        /* comma-separated; empty: all available */
	char agent_backends[256]; /* backends that run in the program */
	struct ts_metrics_consumer consumer;
	struct ts_record_python python;
	/*
	 * Called after each pass, and at the latest at the time it returned (ns, CLOCK_MONOTONIC).
	 * May be NULL.
	 */
	int64_t (*tick)(struct ts_record *record, struct ts_recorder *recorder, int64_t now_ns);
	void *context; /* of `tick` and `opened` */
};

/* Runs the recording. Returns the exit code, which is the program's if there is one. */
int ts_record_run(struct ts_record *record);

/* ---- record_detached.c ---- */

/* `tracesmith record --detached`; `argv` begins with "--detached". */
int ts_record_detached(int argc, char **argv);

/* ---- record_options.c ---- */

#define TS_RECORD_PIDS 1024

/* Prints a message of the recorder on stderr; `context` is the struct ts_record. */
void ts_record_note(void *context, const char *message);

struct ts_string_list;
/* Parses --pid; returns an exit code. `pids`: TS_RECORD_PIDS elements. */
int ts_record_pids(struct ts_record *record, const struct ts_string_list *list, pid_t *pids);

/* ---- record_signals.c ---- */

struct ts_record_signals {
	sigset_t mask;      /* the caller's, restored for the program */
	sigset_t ignored;   /* ignored in the program, but not here */
	sigset_t not_typed; /* ignored by the caller: counts only if a process sent it */
	int fd;             /* a signalfd */
};

/*
 * From here on, signals that ask for an action are blocked and read from `fd`, in this thread and
 * those started later. What the caller ignores stays ignored.
 */
int ts_record_signals_take(struct ts_record_signals *signals, struct ts_error *err);

/* Reads the next signal; false: none is pending. */
bool ts_record_signals_next(const struct ts_record_signals *signals,
			    struct signalfd_siginfo *ret_info);

/* True if the program got the signal as well, from the terminal or from itself. */
bool ts_record_signal_is_shared(const struct signalfd_siginfo *info, pid_t program);

/*
 * Exits as the program did: returns its exit code, or dies of the same signal, so that a shell sees
 * no difference.
 */
int ts_record_end_as(int wait_status);

/* ---- record_control.c ---- */

/* The descriptor of that number, or -1: it is not open. */
int ts_record_control_open(const char *text);
/* The recorder has made its first pass. Further calls do nothing. */
void ts_record_control_started(struct ts_record *record);
void ts_record_control_finished(struct ts_record *record, const struct ts_text *json);
/* At the end, with the last error that was reported, unless the recording was finished. */
void ts_record_control_failed(struct ts_record *record, int exit_code);
/* Does the program ask to stop? */
bool ts_record_control_wants_stop(struct ts_record *record);

/* ---- record_metrics.c ---- */

/* Opens the recorder's own area for samples; false on failure, which is reported. */
bool ts_record_host(const struct ts_record *record, struct ts_recorder *recorder, const char *what);
/* Starts sampling if requested. A failure is only a warning. */
void ts_record_sample(struct ts_record *record, struct ts_recorder *recorder);

/* ---- record_python.c ---- */

/* Parses --python-interval: seconds, as in `tracesmith config`. */
int ts_record_python_interval(const char *text, int64_t *ret_ns);
/* Parses a word of --python-on. */
int ts_record_python_on(struct ts_record *record, const char *condition);
/* Starts sampling stacks if requested. A failure is only a warning. */
void ts_record_sample_python(struct ts_record *record, struct ts_recorder *recorder);
/* Call after the recording. */
void ts_record_python_release(struct ts_record *record);

/* ---- record_backends.c ---- */

#define TS_RECORD_BACKEND_OPTIONS 64

struct ts_option;
struct ts_text;

/* An option of a backend, and its value on the command line. */
struct ts_record_option {
	const struct ts_backend *backend;
	const struct ts_backend_option *option; /* NULL after the last */
	const char *text;
	bool flag;
	char help[512];
};

/*
 * Loads the backends that --backends or $TRACESMITH_BACKENDS names, before the command line is
 * parsed. `options`: the options of record itself.
 */
void ts_record_load_backends(const struct ts_option *options, size_t count, int argc, char **argv);

/*
 * Appends the options of all known backends; returns the new count. `values` has an element for
 * each, and one more that stays zero.
 */
size_t ts_record_add_options(struct ts_record_option *values, struct ts_option *options,
			     size_t count, size_t capacity);

/*
 * Adds the windows and names of known backends to the help of --window and --backends; `help` holds
 * the texts.
 */
void ts_record_complete_help(struct ts_option *options, size_t count, char help[2][2048]);

/* Parses --backends (NULL: not given); returns an exit code. */
int ts_record_backends(struct ts_record *record, const char *list);

/* True if the backend runs in the program. Call after ts_record_backends(). */
bool ts_record_runs_in_program(const struct ts_record *record, const char *name);

/* Reports an error unless the commands of a selected backend can be replayed. */
int ts_record_check_replayable(const struct ts_record *record);
/* Refuses a program that keeps a backend from recording what it starts; returns an exit code. */
int ts_record_check_launcher(const struct ts_record *record);

/*
 * Checks the options and windows of backends and builds their settings. Call after
 * ts_record_backends().
 */
int ts_record_read_settings(struct ts_record *record, const struct ts_record_option *options);

/* ---- record_output.c ---- */

/* The trace recorded for an output: T.sbt itself, T.json.sbt for T.json, T.sbt for T. */
void ts_record_trace_path(const char *output, char *buffer, size_t bytes);

/* Who has locked a trace. */
enum ts_record_holder {
	TS_HOLDER_NONE,
	TS_HOLDER_READER,  /* with a shared lock */
	TS_HOLDER_WRITER,  /* a recorder, or a tool that changes the trace */
	TS_HOLDER_SESSION, /* a recorder of this session */
};

/*
 * Waits a moment for a holder that is about to end; returns who is left. `session` 0: none, and the
 * wait is shorter.
 */
enum ts_record_holder ts_record_wait_for(const char *trace, uint64_t session);

/* True if the trace was left unfinished: it has a journal. */
bool ts_record_is_unfinished(const char *trace);

/*
 * TS_ENOTFOUND if the trace is an empty file: its recorder was killed before it stored anything.
 * The message says which processes may still hold their events.
 */
int ts_record_check_begun(const char *trace, struct ts_error *err);

/*
 * Moves an unfinished trace of a killed recorder out of the way before a new one is made, and
 * reports that. Fails if a live recorder has it.
 */
int ts_record_settle(const char *trace, struct ts_error *err);

/* Exports a finished trace as text; `exporter` is a name. */
int ts_record_export_text(const char *exporter, const char *trace, const char *path,
			  struct ts_error *err);

/* ---- record_rank.c ---- */

/* Finds the rank that is recorded. Call when command and pids are known. */
void ts_record_find_rank(struct ts_record *record);

/*
 * Replaces the patterns of the output, and creates its folders if it has any. `path`: PATH_MAX
 * bytes. Returns an exit code.
 */
int ts_record_name_output(struct ts_record *record, const char *output, char *path);

/* ---- record_backend_summary.c ---- */

/* Prints the summaries of backends; members for a JSON object go to `ret_json`. */
void ts_record_summarize_backends(const struct ts_record *record,
				  const struct ts_recorder_summary *recorded,
				  struct ts_text *ret_json);

/* ---- record_replay.c ---- */

/* Says what of a recording for replay can be replayed; a member for JSON goes to `ret_json`. */
void ts_record_report_replay(const struct ts_record *record,
			     const struct ts_recorder_summary *summary, struct ts_text *ret_json);

/* ---- record_messages.c ---- */

/* Prints the summary on stderr, losses with advice, and JSON if requested. */
void ts_record_report(struct ts_record *record, const struct ts_recorder_summary *summary);

#endif
