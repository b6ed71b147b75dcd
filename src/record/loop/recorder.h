/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder loop: finds targets, drains them into a recording, opens and closes windows, saves,
 * rotates, stops. Single-threaded. It never prints: messages go to `note`.
 */
#ifndef TS_RECORD_LOOP_RECORDER_H
#define TS_RECORD_LOOP_RECORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

#include "backends/recorder/backend_table.h"
#include "base/memory.h"
#include "live/journal.h"
#include "sample/metrics/metric_rows.h"
#include "sample/python/python_sampler.h"

/* What opens a window: flag:PATH, steps:A-B, time:A-B, command, or a window kind of a backend. */
enum ts_window_kind {
	TS_WINDOW_ALWAYS,
	TS_WINDOW_FLAG,
	TS_WINDOW_STEPS,
	TS_WINDOW_TIME,
	TS_WINDOW_COMMAND,
	TS_WINDOW_BACKEND, /* a backend in the target, such as nvtx:NAME */
};

struct ts_window_spec {
	enum ts_window_kind kind;
	char path[1024];     /* flag: its path; backend: the text that the agent gets */
	int64_t first, last; /* steps: numbers, inclusive; time: ns since the start */
	const struct ts_known_backend *backend;
	const struct ts_backend_window *marked;
};
/* True for windows that the target itself opens and closes. */
static inline bool ts_window_is_of_target(const struct ts_window_spec *spec)
{
	return spec->kind == TS_WINDOW_STEPS || spec->kind == TS_WINDOW_BACKEND;
}
int ts_window_parse(const char *text, struct ts_window_spec *ret_spec, struct ts_error *err);

struct ts_recorder_options {
	/* T.sbt, or T.json or T.folded: then T.json.sbt is recorded and exported at each save. */
	const char *output;
	/*
	 * One trace for each rank: at the end the recorded one is split, and removed unless it has
	 * no rank. A name with patterns (base/local/path_pattern.h), of which %r is the rank. NULL:
	 * no.
	 */
	const char *rank_pattern;
	struct ts_rank rank; /* of all processes that have no other */
	/* A rank that is not of the recorded job: its launcher has it, too, and passes it on. */
	struct ts_rank outer_rank;
	uint64_t session;  /* 0: random */
	const pid_t *pids; /* processes to attach to (record -p); their areas need no session */
	size_t pid_count;
	int64_t duration_ns;   /* 0: until all targets are gone */
	uint64_t max_bytes;    /* 0: no limit */
	uint64_t rotate_bytes; /* 0: no rotation */
	int64_t rotate_ns;
	unsigned int rotate_keep; /* 0: all */
	int64_t autosave_ns;      /* 0: none */
	int64_t snapshot_ns;      /* 0: none */
	struct ts_window_spec window;
	int64_t max_steps; /* 0: none */
	bool split;        /* a trace for each window and process */
	bool redact;
	bool sync;
	bool resume;             /* continue what a dead recorder left */
	bool stop_when_full;     /* default: count losses until there is space again */
	bool detached;           /* started by a target: exits a second after the last target */
	uint64_t area;           /* area of the target that started the recorder; 0: none */
	int64_t area_created_ns; /* its creation, CLOCK_MONOTONIC */
	bool sampled; /* ts_recorder_sample() or ts_recorder_sample_python() follows: processes
			 without an agent can be recorded, too */
	bool outside; /* record samples only: do not attach to the agents of programs */
	bool endless; /* run until stopped or until `duration_ns` is over, even without a process */
	/*
	 * Exports a finished trace as text, or leaves no file at `path`; `exporter` is a name. Only
	 * needed for an output that ends in .json or .folded.
	 */
	int (*export_text)(const char *exporter, const char *trace, const char *path,
			   struct ts_error *err);
	const char *json_exporter; /* exporter for .json; NULL: "chrome-array" */
	/* Called for each trace that the recorder will not change any more. May be NULL. */
	void (*completed)(void *context, const char *trace);
	/*
	 * Called when the last trace is finished, before its text export; its lock is still held.
	 * May be NULL.
	 */
	void (*before_text)(void *context, const char *trace);
	void (*note)(void *context, const char *message);
	void *context;
};

struct ts_recorder;

/* Opens the recording. Starts no program. */
int ts_recorder_open(struct ts_recorder **ret_recorder, const struct ts_recorder_options *options,
		     struct ts_error *err);

/* The session id that targets must name (see launch_target.h). */
uint64_t ts_recorder_session(const struct ts_recorder *recorder);

/* The trace that is being written; a rotation changes it. Borrowed until the next pass or close. */
const char *ts_recorder_trace(const struct ts_recorder *recorder);

/*
 * Samples metrics of the machine, its devices and all recorded processes every `interval_ns`,
 * unless their settings (config sample_rate) say otherwise. `names`: comma list of sources; NULL:
 * all. The consumer emits rows into an area of this process and session, which the recorder finds
 * like any other area. The consumer must outlive the recorder.
 */
int ts_recorder_sample(struct ts_recorder *recorder, const char *names, int64_t interval_ns,
		       const struct ts_metrics_consumer *consumer, struct ts_error *err);

/*
 * Samples Python stacks of all recorded Python processes every `interval_ns`, unless their settings
 * (config python_interval) say otherwise. Consumer as above.
 */
int ts_recorder_sample_python(struct ts_recorder *recorder, int64_t interval_ns,
			      const struct ts_python_sampler_options *options,
			      const struct ts_python_consumer *consumer, struct ts_error *err);

/*
 * Status of the Python sampler. False if it does not run; then *ret_status is its last status, if
 * any.
 */
bool ts_recorder_python_status(const struct ts_recorder *recorder,
			       struct ts_python_sampler_status *ret_status);

/* Attaches to a running process and its descendants, as for `pids`. */
void ts_recorder_attach(struct ts_recorder *recorder, pid_t pid);

/*
 * Follows a process that was started for this recording, and its descendants. The recording is done
 * when the process (ts_recorder_exited()) and all targets have exited.
 */
void ts_recorder_follow(struct ts_recorder *recorder, pid_t pid);

/* Reports the wait status of a followed process or one of its descendants. */
void ts_recorder_exited(struct ts_recorder *recorder, pid_t pid, int wait_status);

/*
 * One pass: discovers, drains, switches windows, and saves if due. *ret_wait_ns is how long the
 * caller may sleep; *ret_done is set when there is nothing left to record. Errors are final.
 */
int ts_recorder_pass(struct ts_recorder *recorder, int64_t *ret_wait_ns, bool *ret_done,
		     struct ts_error *err);

/*
 * File descriptor that becomes readable when a pass is due early (inotify on the flag and the live
 * directories), or -1.
 */
int ts_recorder_fd(const struct ts_recorder *recorder);

/* Processes whose events are not in the trace, and unknown in number. */
struct ts_untraced {
	uint64_t count;
	/* The one that started first; one that the caller started precedes others. */
	pid_t pid;
	uint64_t start_time;
	bool is_started;
	char name[64];
	char reason[192], advice[192];
	/*
	 * Programs that a recorded one ran for moments, such as ldconfig: no losses. The one that
	 * started first.
	 */
	uint64_t brief_count;
	pid_t brief_pid;
	uint64_t brief_start_time;
	char brief_name[64];
};

/* The trace of a rank. */
struct ts_recorder_rank {
	int64_t rank, world_size; /* world_size TS_ABSENT: unknown */
	uint64_t events, lost, unknown_losses;
	char path[1024];
};

struct ts_recorder_summary {
	/* As `tracesmith info` counts them; of several files: events and losses of all of them. */
	uint64_t events, lost, unknown_losses;
	uint64_t lost_by_buffers; /* of them, that larger buffers would hold */
	bool disk_was_full;       /* which also fills buffers: then larger ones do not help */
	uint64_t processes, threads, devices; /* of the last file */
	uint64_t trace_bytes, windows, files;
	/*
	 * Of these files, those that a rotation has not deleted, their events, and the bytes of all
	 * but the last.
	 */
	uint64_t kept_files, kept_events, kept_bytes;
	uint64_t metrics; /* metric rows among the events */
	uint64_t samples; /* stacks among the events */
	bool has_traced;  /* some process had a live area */
	struct ts_untraced untraced;
	/*
	 * Python stacks handed over for storage; stacks that failed validation; sweeps skipped
	 * because they were late or too expensive.
	 */
	uint64_t stacks, stacks_rejected, stacks_left_out;
	/* Command streams (docs/replay.md); not counted as events. */
	uint64_t commands;
	uint64_t blob_bytes; /* stored content: code, memory, arguments */
	uint64_t replayable_windows, failed_windows;
	uint64_t checks, kept_checks; /* kept: with contents */
	char not_replayable[256];     /* reason of the last failure; empty: none failed */
	/*
	 * A target of the session arrived while the trace was being finished: open another
	 * recorder.
	 */
	bool again;
	char path[1024]; /* the last file */
	/*
	 * Ranks that processes of the recording had, other than its own. Their traces, if each has
	 * one: an array that the caller frees.
	 */
	uint64_t ranks;
	struct ts_recorder_rank *rank_files; /* `ranks` of them; NULL: all ranks are in `path` */
	char not_split[256]; /* why they are, although each should have a trace; empty: no reason */
};

/* Drains what is left, closes windows and finishes the trace. */
int ts_recorder_finish(struct ts_recorder *recorder, struct ts_recorder_summary *ret_summary,
		       struct ts_error *err);
void ts_recorder_close(struct ts_recorder *recorder);
TS_DEFINE_AUTO(ts_recorder, ts_recorder_close);

#endif
