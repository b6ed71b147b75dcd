/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State and functions shared by the files of the recorder: recorder.c (the loop), store_blocks.c
 * (blocks), watch_areas.c and targets.c (areas), children.c and execs.c (processes without an
 * area), windows.c and window_files.c, sample_targets.c, sample_metrics.c and sample_python.c,
 * output_files.c and rotated_files.c. Private to this folder. Everything runs on the recorder's
 * thread, except one callback of the decoder in windows.c.
 */
#ifndef TS_RECORD_LOOP_RECORD_INTERNAL_H
#define TS_RECORD_LOOP_RECORD_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>
#include <tracesmith/schema.h>

#include "base/map.h"
#include "live/area.h"
#include "live/area_spool.h"
#include "live/config.h"
#include "live/discover.h"
#include "record/loop/counter_clock.h"
#include "record/loop/recorder.h"
#include "record/recording/recording.h"
#include "sample/metrics/metrics_sampler.h"
#include "sample/python/python_sampler.h"
#include "trace/trace_totals.h"

#define TS_NS_PER_MS INT64_C(1000000)
#define TS_NS_PER_S INT64_C(1000000000)
#define TS_PATH_BYTES 1024

/* ---- a recorded area ---- */

struct ts_target {
	struct ts_area *area;
	uint64_t area_id;
	uint64_t image;
	int directory; /* fd of its live directory; owned by its ts_live_directory */
	uid_t owner;   /* of its file, and of the directory */
	dev_t device;
	ino_t inode;
	int64_t created_ns; /* CLOCK_MONOTONIC */
	pid_t pid;          /* in this pid namespace; 0: it had exited before its area was found */
	pid_t was_pid;      /* of the followed process that it was, then; 0: none */
	pid_t parent;
	uint64_t start_time;
	int pidfd;       /* -1: polled once a second */
	bool dead;       /* set by epoll */
	bool announced;  /* its AREA block is stored */
	bool takes_over; /* another recording may have left parts in its spool */
	bool is_self;    /* of this process: holds the samples */
	uint32_t paced;  /* bits: config words that have an interval */
	bool sweep_seen; /* sweep_requested is valid */
	uint64_t sweep_requested;
	bool of_session; /* on leaving, enabled is cleared; others return to flight mode */
	bool superseded; /* by an exec */
	bool replaced;   /* by an exec, but the new image has no area (yet) */
	bool damaged;
	bool ended; /* END is stored: done */
	bool was_enabled;
	/* Windows. */
	bool open;   /* an OPEN block is stored, no CLOSE yet */
	bool wanted; /* a window should be open */
	uint32_t serial;
	bool implied;     /* open from the start, without an OPEN block */
	uint64_t closing; /* counter at which events were switched off; 0: not closing */
	int64_t closed_ns;
	char cause[16];
	/* Times, CLOCK_MONOTONIC. */
	int64_t beat_ns;
	int64_t looked_ns;
	int64_t died_ns;
	uint64_t flush_wanted; /* flush_request that waits for a save; 0: none */
};

/* ---- a live directory ---- */

struct ts_live_directory {
	int fd;
	int watch;              /* inotify watch; -1: none */
	uint64_t pid_namespace; /* ts_live_directory_namespace() */
	dev_t device;
	ino_t inode;
	int64_t modified_ns; /* mtime at the last listing */
	bool settled;        /* listed long enough after that mtime */
	bool due;            /* list it in this pass */
};

/* ---- a followed process ---- */

struct ts_child {
	pid_t pid;
	pid_t parent;
	uint64_t start_time;
	uid_t user; /* effective, at the last check */
	int64_t seen_ns;
	int64_t check_ns; /* next check */
	uint32_t checks;
	bool is_others; /* this tool, or started by it: another recorder's, if anybody's */
	bool root;      /* named by the caller */
	bool launched;  /* started for this recording */
	bool exited;    /* reported by the caller */
	bool gone;
	bool reported;            /* its PROCESS and LOSS blocks are stored */
	bool described;           /* its PROCESS block is stored */
	bool executed;            /* has called exec since we know it */
	bool has_area;            /* in its current image */
	bool had_area;            /* in any image */
	int64_t area_ns;          /* when its newest area was made; CLOCK_MONOTONIC */
	int64_t without_agent_ns; /* since when the program is seen without the agent; 0: it is not
				   */
	uint64_t stack;           /* of that program: exec changes it */
	bool in_scan;
	int64_t status; /* wait status, or TS_ABSENT */
	char name[64];
	struct ts_rank rank;
};

/* Cache entry: a process that is not followed. */
struct ts_unfollowed {
	pid_t pid;
	int64_t until_ns;
};

/* ---- windows ---- */

struct ts_closed_window {
	uint64_t area;
	struct ts_block_window opened, closed;
};

struct ts_windows {
	bool open;  /* for all targets, by flag or time */
	bool moved; /* a window closed in this pass: save, unless split */
	uint64_t opened_counter;
	uint64_t counted;   /* windows closed so far */
	int64_t look_ns;    /* next look at the flag file */
	int64_t retry_ns;   /* next attempt of a failed export */
	int64_t settled_ns; /* when the last CLOSE was stored */
	int flag_watch;
	/* Filled on the decoder's thread. */
	pthread_mutex_t lock;
	struct ts_closed_window *closed;
	size_t closed_count, closed_capacity;
};

/* ---- files ---- */

/* Complete files of a rotation, oldest first; the current one is not among them. */
struct ts_rotated_file {
	uint32_t number;
	uint64_t inode;
	int64_t created_ns; /* inodes are reused; 0: the file system does not say */
	uint64_t events;    /* 0: a predecessor of this recorder wrote it */
};

struct ts_rotation {
	struct ts_rotated_file *files;
	size_t count, capacity;
};

struct ts_saves {
	char stem[TS_PATH_BYTES - 64]; /* output path without its ending */
	const char *ending;            /* ".sbt", ".json", ".folded" */
	const char *exporter;          /* text exporter; NULL: none */
	bool rotates;
	uint32_t number; /* number of the current file of a rotation */
	struct ts_rotation rotation;
	uint64_t files;
	struct ts_trace_totals totals;           /* of the finished files */
	uint64_t last_events;                    /* of the last of them */
	char public_path[TS_PATH_BYTES];         /* path that the user gave */
	char trace_path[TS_PATH_BYTES];          /* path of the recorded trace */
	int64_t save_ns, snapshot_ns, rotate_ns; /* next times; 0: never */
	/*
	 * Estimate of the trace size: base_bytes at the last measurement, when the journal was
	 * journal_bytes long. Of each journal byte since then, ratio / 65536 may go into the trace.
	 */
	uint64_t base_bytes, journal_bytes;
	uint64_t ratio;
	uint64_t limit_bytes;     /* size limit of the trace; 0: none */
	uint64_t refused_bytes;   /* size of a block that had to wait; 0: none */
	uint64_t refused_spooled; /* bytes that it refers to */
	uint64_t ranks;           /* as in struct ts_recorder_summary */
	struct ts_recorder_rank *rank_files;
	char not_split[256];
};

/* ---- sampling from outside ---- */

/* Default interval of a sampler; a target's config may override it. */
struct ts_sampling_pace {
	unsigned int word; /* index of its config word */
	int64_t interval_ns, least_ns;
	bool waits; /* skip a process that may still get an area */
};

/* The processes to sample now. */
struct ts_sampled_list {
	struct ts_sampled_process *processes;
	size_t count, capacity;
	int64_t default_ns;  /* interval of processes without settings */
	int64_t shortest_ns; /* of all intervals */
};

struct ts_recorder_metrics {
	struct ts_metrics_sampler *sampler; /* NULL: off */
	struct ts_sampling_pace pace;
	struct ts_sampled_list list;
	int64_t renew_ns; /* next update of the list */
};

struct ts_recorder_python {
	struct ts_python_sampler *sampler; /* NULL: off */
	struct ts_sampling_pace pace;
	struct ts_sampled_list list;
	int64_t renew_ns;
	bool is_reading;                      /* some process runs Python */
	struct ts_python_sampler_status last; /* status when it was stopped */
};

/* When to drain our own area. */
struct ts_self_pace {
	int64_t took_ns, take_ns, wait_ns;
};

struct ts_recorder {
	struct ts_recorder_options options;
	char output[TS_PATH_BYTES];
	pid_t *pids;
	struct ts_recording *recording;
	struct ts_clocks clocks;
	struct ts_block_clock anchor; /* the newest */
	uint64_t session;
	uint64_t started_counter;
	int64_t started_ns; /* CLOCK_MONOTONIC */
	int64_t now_ns;     /* of this pass */
	pid_t self;
	uint64_t self_start;
	uint64_t self_namespace;
	uint64_t self_mounts;

	int epoll;
	int inotify;
	bool notified; /* set by epoll: inotify has events */
	int execs;     /* process connector socket; -1: unavailable */
	bool execs_ready, execs_armed;
	int64_t execs_ns, execs_pause_ns; /* when to listen again */
	struct ts_unfollowed unfollowed[256];

	struct ts_target **targets;
	size_t target_count, target_capacity;
	struct ts_spools *spools; /* of all areas */
	struct ts_live_directory *directories;
	size_t directory_count, directory_capacity;
	struct ts_child *children;
	size_t child_count, child_capacity;
	struct ts_map refused; /* ids of areas already noted, and refused names */
	struct ts_map seen;    /* area ids to pids, of all areas ever attached */
	/* Pids and start times of forgotten processes to users; only if we are root. */
	struct ts_pairmap users;
	/* Pids and start times to when the newest area was made, of all areas ever attached. */
	struct ts_pairmap traced;
	bool has_traced; /* some process had a live area */
	struct ts_untraced untraced;
	int64_t scan_ns;   /* next scan of the process tree */
	int64_t look_ns;   /* next check whether there are new processes at all */
	pid_t newest_pid;  /* as of the last scan */
	int64_t rescan_ns; /* next check of the directories' mtimes */
	int64_t clock_ns;  /* next anchor */
	int64_t empty_ns;  /* since when there is no target; 0: there is one, or none yet */

	struct ts_windows windows;
	struct ts_saves saves;
	struct ts_recorder_metrics metrics;
	struct ts_recorder_python python;
	struct ts_self_pace self_pace;

	int64_t wait_ns;               /* adaptive */
	int64_t take_ns, take_cost_ns; /* next drain; CPU time of the last one */
	int64_t moved_ns;              /* when data was last drained */
	uint64_t fill;                 /* of the fullest ring in this pass, in 1/256 */
	bool settling;    /* a window is closing, or a block waits: run the next pass soon */
	bool flush_saves; /* a flush waits for a save */

	bool full;       /* the disk is full */
	bool full_noted; /* reported to the caller */
	bool was_full;   /* at any time */
	int64_t full_look_ns, full_pause_ns;
	bool limited; /* max_bytes is reached */
	bool finishing;
	bool done;
};

/* ---- recorder.c ---- */

/* Sends a message to the caller. */
void ts_recorder_note(struct ts_recorder *recorder, const char *format, ...) TS_PRINTF_LIKE(2, 3);
/* Reports a trace that will not be written to any more. */
void ts_recorder_completed(struct ts_recorder *recorder, const char *trace);

/*
 * Raises the limit of open files to its maximum. Called late, so that started programs do not
 * inherit it.
 */
void ts_recorder_raise_limit(void);

/* Watches fd with epoll; *ready becomes true when fd is readable. */
int ts_recorder_watch(struct ts_recorder *recorder, int fd, bool *ready);

/* ---- store_blocks.c ---- */

/*
 * Appends a block of `type` for an area (0: the recording). TS_ENOSPC: the disk is full. The caller
 * of the recorder is told, and the block can be retried in a later pass. Other errors are final.
 */
int ts_recorder_append(struct ts_recorder *recorder, enum ts_block_type type, uint64_t area,
		       const void *payload, size_t bytes, struct ts_error *err);

/*
 * Appends a LOSS block of unknown count for an area (0: the recording): from the counter `since`
 * (0: now) until now.
 */
int ts_recorder_lose(struct ts_recorder *recorder, uint64_t area, pid_t pid, const char *what,
		     const char *reason, uint64_t since, struct ts_error *err);

/* Drains the new records of a target. */
int ts_recorder_drain(struct ts_recorder *recorder, struct ts_target *target, unsigned int flags,
		      struct ts_error *err);

/* Checks, if due, whether a full disk has space again. Reports each change once. */
void ts_store_check_space(struct ts_recorder *recorder);
bool ts_store_has_space(const struct ts_recorder *recorder);
/* Bytes that may still be stored, by the disk and the size limit; UINT64_MAX: unknown. */
uint64_t ts_store_space(struct ts_recorder *recorder);

/* ---- watch_areas.c ---- */

/*
 * Finds live directories and areas, before the recording exists. Fails if no named process can be
 * recorded.
 */
int ts_targets_open(struct ts_recorder *recorder, struct ts_error *err);
/* Lists the directories that have changed and attaches to new areas. */
int ts_targets_scan(struct ts_recorder *recorder, struct ts_error *err);
/*
 * Adds the live directory of a user as `root_pid` sees it; 0: as this process does. Known ones are
 * skipped.
 */
int ts_targets_add_directory(struct ts_recorder *recorder, uid_t uid, pid_t root_pid,
			     struct ts_error *err);
/* True if an area of the session is not attached: it came too late. */
bool ts_targets_waiting(struct ts_recorder *recorder);

/* ---- targets.c ---- */

/* Attaches to an area. An area that is unreadable or has another recorder is noted once. */
int ts_targets_attach(struct ts_recorder *recorder, struct ts_live_directory *directory,
		      const struct ts_area_info *info, struct ts_error *err);
bool ts_targets_of_session(const struct ts_recorder *recorder,
			   const struct ts_live_control *control);
/* The live recorder of an area, other than this one; 0: none. */
pid_t ts_targets_other_recorder(const struct ts_recorder *recorder,
				const struct ts_area_info *info);
/* True on the first call for an area. */
bool ts_targets_note_once(struct ts_recorder *recorder, uint64_t area_id);

void ts_targets_close(struct ts_recorder *recorder);
/* Marks dead targets, by pidfd or by polling once a second. */
void ts_targets_check(struct ts_recorder *recorder);
/* Ends a target: last drain, END block. TS_ENOSPC: retry later. */
int ts_targets_end(struct ts_recorder *recorder, struct ts_target *target, struct ts_error *err);
/* Drops ended targets and removes the files of dead ones. */
void ts_targets_sweep(struct ts_recorder *recorder);
/* Ends the target as replaced by an exec, unless its process still maps the area. */
void ts_target_supersede(struct ts_target *target);
/* Detaches from a live target. */
void ts_targets_leave(struct ts_recorder *recorder, struct ts_target *target);
int ts_target_set(struct ts_target *target, size_t offset, uint64_t value, unsigned int bytes);
/* How much the trace may grow: a target compares the size of a snapshot. */
void ts_target_tell_space(struct ts_recorder *recorder, struct ts_target *target);
/* The program that started this recorder has ended the recording, and lives on. */
bool ts_target_has_stopped(const struct ts_recorder *recorder, const struct ts_target *target);

#define TS_TARGET_SET(target, field, value)                                               \
	ts_target_set(target, offsetof(struct ts_live_control, field), (uint64_t)(value), \
		      sizeof(((struct ts_live_control *)0)->field))

/* ---- children.c ---- */

void ts_children_close(struct ts_recorder *recorder);
struct ts_child *ts_children_add(struct ts_recorder *recorder, pid_t pid, pid_t parent);
/* Reads its name, which exec changes. A process that is gone keeps the last one. */
void ts_children_name(struct ts_child *child);
/* True if the process runs this tool, in which the agent does nothing, or was started by it. */
bool ts_children_is_others(struct ts_recorder *recorder, pid_t pid, pid_t parent);
struct ts_child *ts_children_find(struct ts_recorder *recorder, pid_t pid);
/* The user that a followed process was last seen as; false: not known. */
bool ts_children_user(struct ts_recorder *recorder, pid_t pid, uint64_t start_time,
		      uid_t *ret_user);
/* The process of a target, even if it had exited before its area was found. */
struct ts_child *ts_children_of(struct ts_recorder *recorder, const struct ts_target *target);
/* Finds all current descendants and their live directories. */
void ts_children_walk(struct ts_recorder *recorder);
/* Scans the process tree and checks its members, if due. */
int ts_children_scan(struct ts_recorder *recorder, struct ts_error *err);
/* When the next scan is due; INT64_MAX: never. */
int64_t ts_children_due(const struct ts_recorder *recorder);
/* Stores the PROCESS block of a process without an area. */
int ts_children_describe(struct ts_recorder *recorder, struct ts_child *child,
			 struct ts_error *err);
/* True while a process that the caller named or started is alive. */
bool ts_children_root_alive(const struct ts_recorder *recorder);

/* ---- execs.c ---- */

/* Starts listening, if permitted. */
void ts_execs_open(struct ts_recorder *recorder);
void ts_execs_close(struct ts_recorder *recorder);
/* Follows processes that exec and descend from a followed one; schedules their check. */
void ts_execs_pass(struct ts_recorder *recorder);
int64_t ts_execs_due(const struct ts_recorder *recorder);

/* ---- windows.c ---- */

int ts_windows_open(struct ts_recorder *recorder, struct ts_error *err);
void ts_windows_close(struct ts_recorder *recorder);
/* Configures a newly attached target and sets its window to the current state. */
int ts_windows_attach(struct ts_recorder *recorder, struct ts_target *target, bool known,
		      struct ts_error *err);
/* Opens and closes the windows of all targets by flag and time. */
int ts_windows_evaluate(struct ts_recorder *recorder, struct ts_error *err);
/* Handles requests of `tracesmith window` for a target, and pending ones. */
int ts_windows_serve(struct ts_recorder *recorder, struct ts_target *target, struct ts_error *err);
/* After a drain: stores CLOSE for a window that was switched off in an earlier pass. */
int ts_windows_settle(struct ts_recorder *recorder, struct ts_target *target, struct ts_error *err);
/* True while draining must wait because a window is about to end at an exact time. */
bool ts_windows_holds(const struct ts_recorder *recorder);
/* Switches events off, at the end of the recording or of the target. */
void ts_windows_stop(struct ts_recorder *recorder, struct ts_target *target, const char *cause);
/* Writes the traces of complete windows. */
int ts_windows_export(struct ts_recorder *recorder, struct ts_error *err);
int64_t ts_windows_due(const struct ts_recorder *recorder);
/* Callback of the decoder; the context is the recorder. */
void ts_windows_closed(void *context, uint64_t area, const struct ts_block_window *opened,
		       const struct ts_block_window *closed);

/* ---- sample_targets.c ---- */

/* False outside of windows, and while samples cannot be stored. */
bool ts_sampled_now(const struct ts_recorder *recorder);
/* Rebuilds the list of sampled processes, each with its interval (0: not now). */
int ts_sampled_renew(struct ts_recorder *recorder, const struct ts_sampling_pace *pace,
		     struct ts_sampled_list *list, struct ts_error *err);
void ts_sampled_release(struct ts_sampled_list *list);
/* Removes our interval from a target's settings. */
void ts_sampled_leave(struct ts_target *target, const struct ts_sampling_pace *pace);
/* Drains our own area. */
int ts_sampled_take(struct ts_recorder *recorder, struct ts_error *err);

/* ---- sample_metrics.c ---- */

/* Tells the sampler which processes to sample. */
int ts_metrics_pass(struct ts_recorder *recorder, struct ts_error *err);
/* Stops sampling. No sample is taken after this. */
void ts_metrics_stop(struct ts_recorder *recorder);
void ts_metrics_close(struct ts_recorder *recorder);

/* ---- sample_python.c ---- */

/* The same for Python stacks. */
int ts_python_pass(struct ts_recorder *recorder, struct ts_error *err);
void ts_python_stop(struct ts_recorder *recorder);
/* Stores the number of rejected stacks, after the stop. */
int ts_python_report_status(struct ts_recorder *recorder, struct ts_error *err);
void ts_python_release(struct ts_recorder *recorder);

/* ---- output_files.c ---- */

/*
 * Builds the file names; finds the last file of a rotation. Called before the recording is opened.
 */
int ts_saves_open(struct ts_recorder *recorder, struct ts_error *err);
/* Starts the timers. */
void ts_saves_start(struct ts_recorder *recorder);
/* Autosaves, snapshots, rotates and enforces limits, if due. */
int ts_saves_pass(struct ts_recorder *recorder, struct ts_error *err);
/* Saves: afterwards the trace, and its text export if any, are complete files. */
int ts_saves_save(struct ts_recorder *recorder, struct ts_error *err);
/* Exports a trace as JSON or another text, through a temporary file. */
int ts_saves_export_text(struct ts_recorder *recorder, const char *trace, const char *path,
			 struct ts_error *err);
/* True if a block of `bytes` might exceed the size limit: it has to wait for a later pass. */
bool ts_saves_refuses(struct ts_recorder *recorder, uint64_t bytes, uint64_t spooled_bytes);
/* Bytes below the size limit; UINT64_MAX: there is none. */
uint64_t ts_saves_space(struct ts_recorder *recorder);
/* Writes the text export after the recording is finished. */
int ts_saves_finish(struct ts_recorder *recorder, struct ts_error *err);

/* STEM-<UTC>ENDING, with -2, -3 ... before the ending if the name is taken. */
int ts_saves_snapshot_path(char *buffer, size_t bytes, const char *stem, int64_t realtime_ns,
			   const char *ending);
/* STEM_pid<pid>_<ms>ENDING */
void ts_saves_window_path(char *buffer, size_t bytes, const char *stem, uint64_t pid,
			  int64_t realtime_ms, const char *ending);
/*
 * Splits "a/b.sbt" into "a/b" and ".sbt"; also knows ".json" and ".folded". Any other name is all
 * stem, with the ending ".sbt".
 */
int ts_saves_split_name(const char *output, char *stem, size_t bytes, const char **ret_ending,
			struct ts_error *err);
/* Copies a file through a temporary name, so that no partial file is ever visible. */
int ts_saves_copy(const char *from, const char *to, struct ts_error *err);
/*
 * At the end of a recording no later pass makes space: after a block was refused, starts the next
 * file of a rotation. TS_ENOSPC: there is no rotation.
 */
int ts_saves_make_space(struct ts_recorder *recorder, struct ts_error *err);
void ts_saves_release(struct ts_saves *saves);

/* ---- rank_files.c ---- */

/*
 * Splits the finished trace into one for each rank, and removes it. *ret_done false: it stays, as
 * no process had a rank, or, as the summary says, since not all of them could be written.
 */
int ts_ranks_split(struct ts_recorder *recorder, bool *ret_done, struct ts_error *err);
/* The rank of a process that this recording says; not one that its launcher passes on. */
struct ts_rank ts_ranks_choose(const struct ts_recorder *recorder, const struct ts_rank *rank);

/* ---- rotated_files.c ---- */

/* STEM.NNNN.ENDING */
void ts_rotation_path(char *buffer, size_t bytes, const char *stem, uint32_t number,
		      const char *ending);
/* Its number; 0: another name. */
uint32_t ts_rotation_number(const char *path, const char *stem, const char *ending);
/* The highest number of the files that exist; 0: there are none. */
uint32_t ts_rotation_greatest(const char *stem, const char *ending);
/* Notes a complete file that this recording wrote. */
void ts_rotation_add(struct ts_rotation *rotation, const char *stem, const char *ending,
		     uint32_t number, uint64_t events);
/* Notes the traces with lower numbers that predecessors wrote in the same session. */
void ts_rotation_find(struct ts_rotation *rotation, const char *stem, const char *ending,
		      uint32_t before, uint64_t session);
/*
 * Deletes the oldest of the noted files until at most `keep` files (0: any number) of at most
 * `bytes` (0: any) are left, with the current one, which counts as `current_bytes`. Returns the
 * bytes that are left.
 */
uint64_t ts_rotation_expire(struct ts_rotation *rotation, const char *stem, const char *ending,
			    uint64_t current_bytes, unsigned int keep, uint64_t bytes);
void ts_rotation_release(struct ts_rotation *rotation);

#endif
