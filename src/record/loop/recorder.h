/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder's loop: finds targets, drains them into a recording, opens and closes windows,
 * saves, rotates, stops. One thread; it never prints: what it has to say goes to `note`.
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
	TS_WINDOW_BACKEND, /* a backend in the target, as nvtx:NAME */
};

struct ts_window_spec {
	enum ts_window_kind kind;
	char path[1024];     /* of the flag; of a backend: the text, for the agent */
	int64_t first, last; /* steps: numbers, both inside; time: ns since the start */
	const struct ts_known_backend *backend;
	const struct ts_backend_window *marked;
};
/* Opened and closed inside the target. */
static inline bool ts_window_is_of_target(const struct ts_window_spec *spec)
{
	return spec->kind == TS_WINDOW_STEPS || spec->kind == TS_WINDOW_BACKEND;
}
int ts_window_parse(const char *text, struct ts_window_spec *ret_spec, struct ts_error *err);

struct ts_recorder_options {
	/* T.sbt, or T.json or T.folded: then T.json.sbt is recorded and exported at each save. */
	const char *output;
	uint64_t session;  /* 0: drawn */
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
	bool resume;         /* go on with what a dead recorder left */
	bool stop_when_full; /* else: count losses until there is space again */
	bool detached;       /* started by a target: linger a second after the last one */
	uint64_t area;       /* the area of the target that started it, 0: none */
	bool sampled; /* ts_recorder_sample() or its like will follow: processes without an agent
			 have something to record, too */
	bool outside; /* only what is sampled: programs' areas are left alone */
	bool endless; /* until it is stopped, or `duration_ns` is over: others may come */
	/*
	 * Makes a text of a finished trace, by the name of an exporter; needed for an output that
	 * ends in .json or .folded only.
	 */
	int (*export_text)(const char *exporter, const char *trace, const char *path,
			   struct ts_error *err);
	const char *json_exporter; /* what .json means; NULL: "chrome-array" */
	/*
	 * Of each trace that stays as it is from now on, but for what the caller does; NULL: nobody
	 * wants to know.
	 */
	void (*completed)(void *context, const char *trace);
	/*
	 * The last trace is finished, and becomes a text next; its lock is still held. May be NULL.
	 */
	void (*before_text)(void *context, const char *trace);
	void (*note)(void *context, const char *message);
	void *context;
};

struct ts_recorder;

/* Opens the recording. Nothing is running yet. */
int ts_recorder_open(struct ts_recorder **ret_recorder, const struct ts_recorder_options *options,
		     struct ts_error *err);

/* The session that targets must name (see launch_target.h). */
uint64_t ts_recorder_session(const struct ts_recorder *recorder);

/*
 * Samples metrics of the machine, its devices and all processes that take part, every `interval_ns`
 * unless their settings (config sample_rate) say otherwise. `names`: of sources; NULL: all. The
 * consumer emits rows into an area of this process and this session, which the recorder then finds
 * as it finds all others; it outlives the recorder.
 */
int ts_recorder_sample(struct ts_recorder *recorder, const char *names, int64_t interval_ns,
		       const struct ts_metrics_consumer *consumer, struct ts_error *err);

/*
 * Samples Python stacks of all processes that take part and are Pythons, every `interval_ns` unless
 * their settings (config python_interval) say otherwise. The consumer as above.
 */
int ts_recorder_sample_python(struct ts_recorder *recorder, int64_t interval_ns,
			      const struct ts_python_sampler_options *options,
			      const struct ts_python_consumer *consumer, struct ts_error *err);

/* How that goes; false: there is none, or none any more (then: how it went). */
bool ts_recorder_python_status(const struct ts_recorder *recorder,
			       struct ts_python_sampler_status *ret_status);

/* A process that runs, and its descendants, from now on; as those of `pids`. */
void ts_recorder_attach(struct ts_recorder *recorder, pid_t pid);

/*
 * A process that was started for this recording: its descendants are followed. The recording is
 * done when it has ended (ts_recorder_exited()), and all targets have.
 */
void ts_recorder_follow(struct ts_recorder *recorder, pid_t pid);

/* The wait status of a followed process or of one of its descendants, for its row. */
void ts_recorder_exited(struct ts_recorder *recorder, pid_t pid, int wait_status);

/*
 * One pass: discovery, draining, windows, saves as they are due. *ret_wait_ns is how long the
 * caller may sleep; *ret_done is set when there is nothing left to record. Errors are final.
 */
int ts_recorder_pass(struct ts_recorder *recorder, int64_t *ret_wait_ns, bool *ret_done,
		     struct ts_error *err);

/*
 * A file descriptor that becomes readable when a pass is due early (inotify on flag and directory),
 * or -1.
 */
int ts_recorder_fd(const struct ts_recorder *recorder);

struct ts_recorder_summary {
	uint64_t events, lost, trace_bytes, processes, threads, windows, files;
	uint64_t metrics; /* rows of what was measured; not among the events */
	uint64_t samples; /* stacks; not among the events */
	/*
	 * Python stacks: given to be stored; that did not validate. Sweeps that were late, or too
	 * dear.
	 */
	uint64_t stacks, stacks_rejected, stacks_left_out;
	/* Of the processes: those without an agent; nothing is known of their events. */
	uint64_t not_entered;
	/* Command streams (docs/replay.md); not among the events. */
	uint64_t commands;
	uint64_t blob_bytes; /* content that programs gave: code, memory, arguments */
	uint64_t replayable_windows, failed_windows;
	char not_replayable[256]; /* why the last of those failed; empty: none did */
	/* A target of the session came while the trace was finished: open another recorder. */
	bool again;
	char path[1024]; /* of the last file */
};

/* Takes what is left, closes windows, finishes the trace. */
int ts_recorder_finish(struct ts_recorder *recorder, struct ts_recorder_summary *ret_summary,
		       struct ts_error *err);
void ts_recorder_close(struct ts_recorder *recorder);
TS_DEFINE_AUTO(ts_recorder, ts_recorder_close);

#endif
