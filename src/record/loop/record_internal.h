/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the recorder share: recorder.c (the loop), store_blocks.c (blocks),
 * watch_areas.c and targets.c (areas), children.c and execs.c (processes without one), windows.c
 * and window_files.c, sample_targets.c, sample_metrics.c and sample_python.c, output_files.c.
 * Nobody else includes this. All runs on the recorder's thread but for one callback of the decoder
 * in windows.c.
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
#include "live/config.h"
#include "live/discover.h"
#include "record/loop/counter_clock.h"
#include "record/loop/recorder.h"
#include "record/recording/recording.h"
#include "sample/metrics/metrics_sampler.h"
#include "sample/python/python_sampler.h"

#define TS_NS_PER_MS INT64_C(1000000)
#define TS_NS_PER_S INT64_C(1000000000)
#define TS_PATH_BYTES 1024

/* ---- an area that is recorded ---- */

struct ts_target {
	struct ts_area *area;
	uint64_t area_id;
	uint64_t image;
	int directory; /* fd of its live directory; the place's */
	pid_t pid;     /* seen from here */
	pid_t parent;
	uint64_t start_time;
	int pidfd;       /* -1: looked at once a second */
	bool dead;       /* set by epoll */
	bool announced;  /* its AREA block is stored */
	bool own;        /* ours: what we measure ourselves */
	uint32_t paced;  /* bits: words of its config that have an interval */
	bool sweep_seen; /* what its config said of a Python sweep, to notice a change */
	uint64_t sweep_asked;
	bool of_session; /* enabled is cleared when we leave; else it goes back to flight mode */
	bool superseded; /* by an exec */
	bool replaced;   /* by an exec too, but the new image has no area, or none yet */
	bool damaged;
	bool ended; /* END is stored: nothing more to do */
	bool was_enabled;
	/* Windows. */
	bool open;   /* an OPEN block is stored, no CLOSE yet */
	bool wanted; /* a window should be open */
	uint32_t serial;
	bool implied;     /* open from the start, without a block */
	uint64_t closing; /* counter at which events were switched off, 0: not closing */
	int64_t closed_ns;
	char cause[16];
	/* Times, CLOCK_MONOTONIC. */
	int64_t beat_ns;
	int64_t looked_ns;
	int64_t died_ns;
	uint64_t flush_wanted; /* a flush_request that waits for a save, 0: none */
};

/* ---- a live directory ---- */

struct ts_place {
	int fd;
	int watch;           /* inotify's, -1: none */
	pid_t namespace_pid; /* reached through its /proc/PID/root, 0: our own */
	dev_t device;
	ino_t inode;
	int64_t modified_ns; /* its mtime when it was listed */
	bool settled;        /* it was listed long enough after that mtime */
	bool due;            /* to be listed in this pass */
};

/* ---- a process that is followed ---- */

struct ts_child {
	pid_t pid;
	pid_t parent;
	uint64_t start_time;
	int64_t seen_ns;
	int64_t check_ns; /* when to look again what it is */
	uint32_t checks;
	bool root;     /* given by the caller */
	bool launched; /* started for this recording */
	bool exited;   /* the caller told */
	bool gone;
	bool told;       /* its PROCESS and LOSS blocks are stored */
	bool described;  /* its PROCESS block is */
	bool executed;   /* a program, since it is known */
	bool has_area;   /* as the program that it is now */
	bool had_area;   /* at some time */
	int64_t area_ns; /* when the newest of them was made, in CLOCK_MONOTONIC */
	bool in_scan;
	int64_t status; /* wait status or TS_ABSENT */
	char name[64];
};

/* One that is not, as was found some time ago. */
struct ts_foreign {
	pid_t pid;
	int64_t until_ns;
};

/* ---- windows ---- */

struct ts_closed_window {
	uint64_t area;
	struct ts_block_window opened, closed;
};

struct ts_windows {
	bool open;  /* for all targets: the flag is there, or the time has come */
	bool moved; /* a window closed in this pass: save when nothing is split */
	uint64_t opened_counter;
	uint64_t counted;   /* windows closed so far */
	int64_t look_ns;    /* when to look at the flag */
	int64_t retry_ns;   /* when to try a failed export again */
	int64_t settled_ns; /* when the last CLOSE was stored */
	int flag_watch;
	/* Filled by the decoder's thread. */
	pthread_mutex_t lock;
	struct ts_closed_window *closed;
	size_t closed_count, closed_capacity;
};

/* ---- files ---- */

struct ts_saves {
	char stem[TS_PATH_BYTES - 64]; /* the output without its ending */
	const char *ending;            /* ".sbt", ".json", ".folded" */
	const char *exporter;          /* what makes a text of a trace; NULL: none is wanted */
	bool rotates;
	uint32_t number; /* of the current file of a rotation */
	uint64_t files;
	uint64_t threads;                        /* in the finished files */
	char public_path[TS_PATH_BYTES];         /* what the user asked for */
	char trace_path[TS_PATH_BYTES];          /* what is recorded */
	int64_t save_ns, snapshot_ns, rotate_ns; /* next times; 0: never */
	/*
	 * What the trace's size is reckoned from: it was base_bytes long at the last look, and
	 * since then the journal has grown from journal_bytes on, of which so many 65536ths may go
	 * into the trace.
	 */
	uint64_t base_bytes, journal_bytes;
	uint64_t ratio;
	uint64_t room_bytes;    /* of the trace; 0: any */
	uint64_t refused_bytes; /* a block that had to wait, 0: none */
};

/* ---- what is sampled from outside ---- */

/* How often, and where a target's settings say otherwise. */
struct ts_sampling_pace {
	unsigned int word; /* of its config */
	int64_t interval_ns, least_ns;
	bool waits; /* a process that may still get an area is left for later */
};

/* Who, now. */
struct ts_sampled_list {
	struct ts_sampled_process *processes;
	size_t count, capacity;
	int64_t own_ns;      /* interval of those without settings of their own */
	int64_t shortest_ns; /* of all intervals */
};

struct ts_recorder_metrics {
	struct ts_metrics_sampler *sampler; /* NULL: nothing is sampled */
	struct ts_sampling_pace pace;
	struct ts_sampled_list list;
	int64_t renew_ns; /* when to look again who is sampled */
};

struct ts_recorder_python {
	struct ts_python_sampler *sampler; /* NULL: nothing is sampled */
	struct ts_sampling_pace pace;
	struct ts_sampled_list list;
	int64_t renew_ns;
	struct ts_python_sampler_status last; /* when it was stopped */
};

/* When our own area is drained. */
struct ts_own_pace {
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
	bool notified; /* set by epoll: inotify has something */
	int execs;     /* the kernel's process connector, -1: not to be had */
	bool execs_ready, execs_armed;
	int64_t execs_ns, execs_pause_ns; /* when to listen to it again */
	struct ts_foreign foreign[256];

	struct ts_target **targets;
	size_t target_count, target_capacity;
	struct ts_place *places;
	size_t place_count, place_capacity;
	struct ts_child *children;
	size_t child_count, child_capacity;
	struct ts_map refused; /* area ids that were spoken of */
	struct ts_map seen;    /* area ids to pids, of all that were ever attached */
	uint64_t processes, not_entered;
	int64_t scan_ns;   /* next look at the process tree */
	int64_t rescan_ns; /* next look at the directories' mtimes */
	int64_t clock_ns;  /* next anchor */
	int64_t empty_ns;  /* since when there is no target, 0: there is one, or was none yet */

	struct ts_windows windows;
	struct ts_saves saves;
	struct ts_recorder_metrics metrics;
	struct ts_recorder_python python;
	struct ts_own_pace own;

	int64_t wait_ns;               /* adaptive */
	int64_t take_ns, take_cost_ns; /* when rings are looked at again; what that took */
	int64_t moved_ns;              /* when something was last taken */
	uint64_t fill;                 /* of the fullest ring in this pass, in 1/256 */
	bool settling;                 /* a window is closing, or somebody waits: come back soon */
	bool flush_saves;              /* a flush waits for a save */

	bool full;       /* the disk is */
	bool full_noted; /* and the caller knows */
	int64_t full_look_ns, full_pause_ns;
	bool limited; /* max_bytes is reached */
	bool finishing;
	bool done;
};

/* ---- recorder.c ---- */

/* Tells the caller something in words. */
void ts_recorder_note(struct ts_recorder *recorder, const char *format, ...) TS_PRINTF_LIKE(2, 3);
/* Tells of a trace that nobody writes to any more. */
void ts_recorder_completed(struct ts_recorder *recorder, const char *trace);

/*
 * As many descriptors as the system allows: asked for late, so that programs that are started do
 * not inherit it.
 */
void ts_recorder_raise_limit(void);

/* Watches fd with epoll: *ready becomes true when it is readable. */
int ts_recorder_watch(struct ts_recorder *recorder, int fd, bool *ready);

/* ---- store_blocks.c ---- */

/*
 * Appends a block of `type` for an area (0: the recording). TS_ENOSPC: the disk is full, which is
 * noted and lasts until there is room; try again in a later pass. Other errors are final.
 */
int ts_recorder_append(struct ts_recorder *recorder, enum ts_block_type type, uint64_t area,
		       const void *payload, size_t bytes, struct ts_error *err);

/* Appends a LOSS block of the recording, or of an area. */
int ts_recorder_lose(struct ts_recorder *recorder, uint64_t area, pid_t pid, const char *what,
		     const char *reason, struct ts_error *err);

/* Takes what is new of a target. */
int ts_recorder_drain(struct ts_recorder *recorder, struct ts_target *target, unsigned int flags,
		      struct ts_error *err);

/* Looks, when it is due, whether a full disk has room again; tells the caller once each way. */
void ts_store_look_for_room(struct ts_recorder *recorder);
bool ts_store_has_room(const struct ts_recorder *recorder);

/* ---- watch_areas.c ---- */

/*
 * Looks, and fails where nothing can be recorded of processes that were named. Before there is a
 * recording.
 */
int ts_targets_open(struct ts_recorder *recorder, struct ts_error *err);
/* Looks for areas where something has changed, and attaches. */
int ts_targets_scan(struct ts_recorder *recorder, struct ts_error *err);
/* A directory as this process sees it; 0 of a process: our own. Known ones are passed over. */
int ts_targets_add_place(struct ts_recorder *recorder, uid_t uid, pid_t root_pid,
			 struct ts_error *err);
/* True where an area of the session is there that is not ours: it came too late. */
bool ts_targets_waiting(struct ts_recorder *recorder);

/* ---- targets.c ---- */

/* Takes hold of an area. One that another recorder has, or that cannot be read, is noted once. */
int ts_targets_attach(struct ts_recorder *recorder, struct ts_place *place,
		      const struct ts_area_info *info, struct ts_error *err);
bool ts_targets_of_session(const struct ts_recorder *recorder,
			   const struct ts_live_control *control);
/* The recorder that has it, 0: none that is alive. */
pid_t ts_targets_other_recorder(const struct ts_recorder *recorder,
				const struct ts_live_control *control);
/* True the first time that it is asked of an area. */
bool ts_targets_note_once(struct ts_recorder *recorder, uint64_t area_id);

void ts_targets_close(struct ts_recorder *recorder);
/* Marks those that are dead, by pidfd or by a look once a second. */
void ts_targets_check(struct ts_recorder *recorder);
/* Ends a target: last drain, END block. TS_ENOSPC: not yet. */
int ts_targets_end(struct ts_recorder *recorder, struct ts_target *target, struct ts_error *err);
/* Drops those that are ended, and removes the files of those that are dead. */
void ts_targets_sweep(struct ts_recorder *recorder);
/* Gives a live target back to itself. */
void ts_targets_leave(struct ts_recorder *recorder, struct ts_target *target);
int ts_target_set(struct ts_target *target, size_t offset, uint64_t value, unsigned int bytes);

#define TS_TARGET_SET(target, field, value)                                               \
	ts_target_set(target, offsetof(struct ts_live_control, field), (uint64_t)(value), \
		      sizeof(((struct ts_live_control *)0)->field))

/* ---- children.c ---- */

void ts_children_close(struct ts_recorder *recorder);
struct ts_child *ts_children_add(struct ts_recorder *recorder, pid_t pid, pid_t parent);
struct ts_child *ts_children_find(struct ts_recorder *recorder, pid_t pid);
/* All descendants that are there now, and the live directories that they see. */
void ts_children_walk(struct ts_recorder *recorder);
/* Looks at the process tree and at what became of its members, as is due. */
int ts_children_scan(struct ts_recorder *recorder, struct ts_error *err);
/* The next time at which a scan is due, INT64_MAX: never. */
int64_t ts_children_due(const struct ts_recorder *recorder);
/* Stores what it is called, where no area has said so. */
int ts_children_describe(struct ts_recorder *recorder, struct ts_child *child,
			 struct ts_error *err);
/* True while a process lives that the caller named or started. */
bool ts_children_root_alive(const struct ts_recorder *recorder);

/* ---- execs.c ---- */

/* Listens from now on, where that is allowed. */
void ts_execs_open(struct ts_recorder *recorder);
void ts_execs_close(struct ts_recorder *recorder);
/* Adds those who descend from a child to the children; they are due for a check. */
void ts_execs_pass(struct ts_recorder *recorder);
int64_t ts_execs_due(const struct ts_recorder *recorder);

/* ---- windows.c ---- */

int ts_windows_open(struct ts_recorder *recorder, struct ts_error *err);
void ts_windows_close(struct ts_recorder *recorder);
/* Sets the words of a target that was just attached, and its window as it is now. */
int ts_windows_attach(struct ts_recorder *recorder, struct ts_target *target, bool known,
		      struct ts_error *err);
/* Flag and time: opens and closes for all targets. */
int ts_windows_evaluate(struct ts_recorder *recorder, struct ts_error *err);
/* What the verb `window` asks of a target, and what is still to be done for it. */
int ts_windows_serve(struct ts_recorder *recorder, struct ts_target *target, struct ts_error *err);
/* After a drain: stores CLOSE for a window that was switched off in an earlier pass. */
int ts_windows_settle(struct ts_recorder *recorder, struct ts_target *target, struct ts_error *err);
/* True while nothing should be taken, since a window is about to end that must end exactly. */
bool ts_windows_holds(const struct ts_recorder *recorder);
/* Switches off, for the end of the recording or of the target. */
void ts_windows_stop(struct ts_recorder *recorder, struct ts_target *target, const char *cause);
/* Writes the traces of windows that are whole by now. */
int ts_windows_export(struct ts_recorder *recorder, struct ts_error *err);
int64_t ts_windows_due(const struct ts_recorder *recorder);
/* Told by the decoder; the context is the recorder. */
void ts_windows_closed(void *context, uint64_t area, const struct ts_block_window *opened,
		       const struct ts_block_window *closed);

/* ---- sample_targets.c ---- */

/* Whether anything is to be sampled now: not outside of windows, nor where it cannot be stored. */
bool ts_sampled_now(const struct ts_recorder *recorder);
/* Makes the list of those who take part anew, each with its interval, 0: not now. */
int ts_sampled_renew(struct ts_recorder *recorder, const struct ts_sampling_pace *pace,
		     struct ts_sampled_list *list, struct ts_error *err);
void ts_sampled_release(struct ts_sampled_list *list);
/* Takes our interval out of a target's settings again. */
void ts_sampled_leave(struct ts_target *target, const struct ts_sampling_pace *pace);
/* Drains our own area. */
int ts_sampled_take(struct ts_recorder *recorder, struct ts_error *err);

/* ---- sample_metrics.c ---- */

/* Tells the sampler who takes part now. */
int ts_metrics_pass(struct ts_recorder *recorder, struct ts_error *err);
/* No sample is taken after this. */
void ts_metrics_stop(struct ts_recorder *recorder);
void ts_metrics_close(struct ts_recorder *recorder);

/* ---- sample_python.c ---- */

/* The same of Python stacks. */
int ts_python_pass(struct ts_recorder *recorder, struct ts_error *err);
void ts_python_stop(struct ts_recorder *recorder);
/* Stores how many stacks were not to be had, behind the stop. */
int ts_python_tell(struct ts_recorder *recorder, struct ts_error *err);
void ts_python_release(struct ts_recorder *recorder);

/* ---- output_files.c ---- */

/* Works out names; finds the last file of a rotation. Before the recording is opened. */
int ts_saves_open(struct ts_recorder *recorder, struct ts_error *err);
/* Starts the times. */
void ts_saves_start(struct ts_recorder *recorder);
/* Autosave, snapshot, rotation and limits, as they are due. */
int ts_saves_pass(struct ts_recorder *recorder, struct ts_error *err);
/* The trace is a finished file after this, and the text beside it, too. */
int ts_saves_save(struct ts_recorder *recorder, struct ts_error *err);
/* JSON or another text of a trace, under a temporary name first. */
int ts_saves_export_text(struct ts_recorder *recorder, const char *trace, const char *path,
			 struct ts_error *err);
/*
 * True where a block of so many bytes might bring the trace beyond what it may have: not in this
 * pass.
 */
bool ts_saves_refuses(struct ts_recorder *recorder, uint64_t bytes);
/* After the recording is finished: the text. */
int ts_saves_finish(struct ts_recorder *recorder, struct ts_error *err);

/* STEM.NNNN.ENDING */
void ts_saves_rotated_path(char *buffer, size_t bytes, const char *stem, uint32_t number,
			   const char *ending);
/* STEM-<UTC>ENDING, with -2, -3 ... before the ending where that is taken. */
int ts_saves_snapshot_path(char *buffer, size_t bytes, const char *stem, int64_t realtime_ns,
			   const char *ending);
/* STEM_pid<pid>_<ms>ENDING */
void ts_saves_window_path(char *buffer, size_t bytes, const char *stem, uint64_t pid,
			  int64_t realtime_ms, const char *ending);
/*
 * "a/b.sbt" gives "a/b" and ".sbt"; ".json" and ".folded" likewise; anything else is all stem, and
 * the ending is ".sbt".
 */
int ts_saves_split_name(const char *output, char *stem, size_t bytes, const char **ret_ending,
			struct ts_error *err);
/* Copies a file under a temporary name and renames it: nobody sees half of it. */
int ts_saves_copy(const char *from, const char *to, struct ts_error *err);
/*
 * The numbers of files STEM.NNNN.ENDING that are there: least, greatest, count; their bytes in all.
 */
struct ts_rotation {
	uint32_t least, greatest, count;
	uint64_t bytes;
};
void ts_saves_look(const char *stem, const char *ending, struct ts_rotation *ret_rotation);
/*
 * Deletes the oldest until at most `keep` files (0: any number) of at most `bytes` (0: any) are
 * left; never one with the number `current` or above, whose bytes are `current_bytes`. Gives the
 * bytes of those kept.
 */
uint64_t ts_saves_expire(const char *stem, const char *ending, uint32_t current,
			 uint64_t current_bytes, unsigned int keep, uint64_t bytes);

#endif
