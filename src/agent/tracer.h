/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the observed process: tracers, and what a thread needs to write its ring (docs/live.md).
 * Everything here is libc only. No function of the agent prints, aborts, or allocates from the heap
 * on the way of an event; on failure a tracer turns itself off, counts, and leaves a message in its
 * area.
 *
 * What must not survive fork() lies in pages that are wiped on fork (struct core, struct writer),
 * so that a child, however it was made, finds zeros and starts anew. What must survive is in struct
 * ts_tracer.
 */
#ifndef TS_AGENT_TRACER_H
#define TS_AGENT_TRACER_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/backend.h>
#include <tracesmith/emit.h>
#include <tracesmith/replay.h>

#include "live/local/counter.h"
#include "live/local/live_records.h"

#define AGENT_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define AGENT_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/*
 * A thread's access to a ring. Wiped on fork, which closes it. The first four members are all that
 * the hot path needs.
 */
struct writer {
	uint32_t open;  /* 0: inside an emit, or not attached; WRITER_SLOW: the hot path must not */
	uint32_t clock; /* enum ts_live_clock */
	char *at;       /* where the next record goes */
	char *until;    /* may write up to here without asking */
	struct ts_live_ring *ring; /* NULL: not attached */
	char *bytes;               /* of the ring */
	uint64_t mask;
	struct ts_tracer *tracer;
	struct core *core;
	struct writer *side; /* for emits inside signal handlers that interrupt an emit */
	struct writer *next; /* the thread's writers of tracers made by hand; or the free list */
	struct ts_live_oldest consumed; /* as last seen, whole */
	uint64_t full_at;               /* exhausted: the position up to which there was room */
	uint32_t index;                 /* of the ring */
	uint32_t tid, serial;
	bool exhausted; /* full, and no larger ring can be had until it has room again */
	bool stunted;   /* flight: no larger ring could be had */
	bool is_side;
} __attribute__((aligned(128))); /* two threads never share a line */

/* How a writer is open: hot where events are stamped with the raw counter. */
enum writer_open { WRITER_CLOSED = 0, WRITER_HOT = 1, WRITER_SLOW = 2 };

enum core_state { CORE_NEW = 0, CORE_BUSY, CORE_READY, CORE_OFF };

/* What the environment asks for. */
struct agent_settings {
	bool wanted;
	bool start_recorder;
	bool enabled;
	bool redact;
	bool has_no_directory; /* its path is too long */
	uint32_t mode;
	uint32_t role;        /* enum ts_live_role */
	uint32_t output_base; /* bytes of `output` in which % is only that */
	uint64_t session;
	uint64_t budget;     /* 0: default */
	uint32_t ring_bytes; /* of a first ring; 0: default */
	int64_t step_open, step_close, max_steps;
	uint32_t python; /* AGENT_PYTHON_*: whose stacks are asked for */
	uint32_t stacks; /* TS_STACKS_*: of calls, by number */
	struct ts_replay_settings replay;
	char backends[256];
	char directory[1024]; /* of live areas, absolute; empty: the default */
	char output[1024];    /* absolute */
};

/* Signals and cancellation of a thread as they were: see agent_block_signals(). */
struct agent_signals {
	sigset_t mask;
	int cancel_state;
	int error;
};

/*
 * The lossless channel of the process-wide tracer (replay_channel.c): a ring that all threads
 * write, one at a time. All members but the first two are those of who holds the lock.
 */
struct channel {
	uint32_t lock;
	uint32_t broken; /* atomic; for good */
	bool in_window;
	uint64_t window; /* the last one's number */
	uint64_t sequence;
	uint64_t blobs;                     /* numbers given out */
	uint64_t blob, blob_bytes, blob_at; /* the one that is being written, 0: none */
	uint64_t nudged_at;                 /* where the recorder was last called */
	int64_t exit_wait_ns;               /* waited for room since the process exits */
	struct agent_signals signals;
	struct writer writer;
};

/* What a process has of a tracer. Wiped on fork. */
struct core {
	uint32_t state;        /* enum core_state */
	uint32_t lock;         /* held with all signals blocked */
	uint32_t window_lock;  /* the same, for the next alone */
	uint32_t window_depth; /* ranges that hold the window open (step_windows.c) */
	struct ts_live_control *control;
	struct ts_live_ring *rings;
	char *dictionary;
	uint64_t pool_end;      /* bytes of the file that are spoken for */
	uint64_t directory_end; /* bytes of the directory that are allocated */
	uint64_t dictionary_end;
	uint32_t sites; /* in the dictionary */
	uint32_t serials;
	struct writer *free_writers;
	int fd; /* of the area; checked before each use */
	dev_t device;
	ino_t inode;
	uint32_t ring_bytes;  /* of a first ring */
	int error;            /* why it is off, 0: it is not, or is not wanted */
	bool relies_on_other; /* a recorder that was there already, and held the output */
	struct agent_settings settings;
	char scratch[4096]; /* of the thread that starts it: handlers may have small stacks */
	char path[2048];    /* of the area */
	struct channel channel;
	char *mapped[TS_LIVE_RING_LIMIT]; /* bytes of each ring, as mapped here */
};

/* Survives fork. */
struct ts_tracer {
	struct core *core;      /* NULL: never started */
	struct ts_tracer *next; /* of those made by hand */
	uint32_t is_off;        /* made by ts_tracer_disabled(), or closed */
	uint32_t by_hand;
	bool was_ready; /* its core, when the process forked */
	/* The newest area that this process or an ancestor made: dictionary for a child to copy. */
	struct ts_live_control *inherited;
	uint32_t inherited_ring_bytes;
	uint32_t output_base; /* as in struct agent_settings */
	char output[1024];    /* absolute; empty: none */
};

extern struct ts_tracer ts_process_tracer;

/* ---- tracer.c: starting, and who is who ---- */

/* The core, started if need be; NULL while it is off. Signals are blocked. */
struct core *agent_start(struct ts_tracer *tracer);

/* Turns a tracer off for good, with the reason in its area. */
void agent_disable(struct ts_tracer *tracer, const char *why, int error);

/*
 * Around all that takes the lock or calls the system: no handler runs, so that none waits for its
 * own thread; the thread cannot be cancelled, and errno is as it was.
 */
void agent_block_signals(struct agent_signals *saved);
/*
 * The same, but for faults: what is copied may be memory that the program's own handler brings in.
 */
void agent_block_signals_but_faults(struct agent_signals *saved);
void agent_restore_signals(const struct agent_signals *saved);
void agent_lock(struct core *core);
void agent_unlock(struct core *core);

/* To be called in a loop that waits for another thread; `spins` counts its turns. */
void agent_relax(unsigned int spins);

/*
 * Zeroed; NULL on failure. The second kind a forked child finds zeroed again, where the kernel
 * knows how.
 */
void *agent_memory(size_t bytes);
void *agent_wiped_memory(size_t bytes);

/* Asks for agent_thread_exit() at the end of the calling thread. */
void agent_watch_thread(struct writer *writer);

/* When the agent comes into a process, and when that ends. */
void agent_load(void);
void agent_unload(void);

/* Points ts_emit_switch at what now says whether the process-wide tracer is on. */
void agent_set_switch(struct core *core);

/* ---- agent_settings.c ---- */

void agent_settings_read(struct agent_settings *settings, const struct ts_tracer *tracer);

/*
 * Reads the environment for good: programs change it, and their directory, before their first
 * event. True where something is asked for; *ret_at_once: an area is to be made at load.
 */
bool agent_settings_remember(bool *ret_at_once);

/* In place of the environment: an area of that session, of a recorder. */
void agent_settings_host(uint64_t session, uint32_t ring_bytes);

/* False before the C library has begun: then there is no environment yet. */
bool agent_settings_are_known(void);

/*
 * "x-%p.sbt" becomes "/where/it/is/x-%p.sbt"; *ret_base is where the given path begins. 0, or an
 * errno.
 */
int agent_absolute_path(const char *path, char *ret_path, size_t bytes, uint32_t *ret_base);

/* ---- make_area.c ---- */

/* 0, or an errno. Fills core's mapping, fd and path. */
int agent_make_area(struct core *core);

/* Closes the area's descriptor; the area stays as it is, and grows no more. */
void agent_close_area(struct core *core);

/* Allocates a part of the file within the budget, so that it can be touched; 0 or an errno. */
int agent_allocate(struct core *core, uint64_t offset, uint64_t bytes);
void agent_give_back(struct core *core, uint64_t offset, uint64_t bytes);

int agent_grow_directory(struct core *core);
int agent_grow_dictionary(struct core *core);

/* Wakes the recorder, if it sleeps. Never on the way of an event. */
void agent_nudge_recorder(struct core *core);

/* Maps a part of the area's file; NULL on failure. */
void *agent_map(struct core *core, uint64_t offset, uint64_t bytes);

void agent_update_anchor(struct core *core);

/* ---- ring_alloc.c: the slow path ---- */

/*
 * Room for a record of `bytes`: the writer to use, or NULL where the
 * event is lost (and counted, if `counts`). To be called with the thread's writer as it is.
 */
struct writer *agent_ring_alloc(struct ts_tracer *tracer, struct core *core, struct writer *writer,
				uint64_t bytes, bool counts);

/*
 * Drops and counts an event of `bytes` if the ring was full and nobody has drained it. False: ask
 * agent_ring_alloc().
 */
bool agent_drop(struct writer *writer, uint64_t bytes);

/* The thread's writer of a tracer made by hand, or NULL before its first event. */
struct writer *agent_find_writer(struct ts_tracer *tracer);

/*
 * A ring of `bytes`, or less where that cannot be had, but not of less than `least`, for a writer
 * that is no thread's: it is told as one of that name, and stays open. False: there is none.
 * Signals are blocked.
 */
bool agent_attach_shared(struct core *core, struct writer *writer, uint64_t bytes, uint64_t least,
			 const char *name);

/* The calling thread's number in the area. Signals are blocked. */
uint32_t agent_serial(struct core *core);

/* Gives the calling thread's rings back. */
void agent_thread_exit(void *unused);

/*
 * Around a fork of the calling thread: the child's writers are its parent's. It may return into an
 * emit that a handler interrupted; what that still writes must not reach the parent.
 */
void agent_keep_writers(void);
void agent_release_kept(void);
void agent_forget_writers(void);

/* Private memory in place of what is shared with the parent, with nothing in it. */
bool agent_unshare(void *address, size_t bytes);

/* ---- site.c ---- */

/* Registers; false where the dictionary is full: then the dynamic form is to be used. */
bool agent_register_site(struct core *core, struct ts_emit_site *site);
/*
 * An entry for a function that frames name: its number; 0: there is no room. Not looked for among
 * those that are there.
 */
uint32_t agent_register_code(struct core *core, unsigned int kind, const char *name,
			     const char *file, uint32_t line);
/*
 * The core's lock is held: entries for a stack, and for a file that frames are in. 0: there is no
 * room.
 */
uint32_t agent_add_stack(struct core *core, uint32_t caller, uint64_t frame);
uint32_t agent_add_module(struct core *core, const char *path, const char *build_id,
			  const struct ts_live_module *where);
void agent_copy_dictionary(struct ts_tracer *tracer, struct core *core);

/* ---- spawn_recorder.c ---- */

/*
 * Starts `tracesmith record --detached` for the area, unless a recorder holds that output already.
 * 0, or an errno (ENOENT: there is no recorder).
 */
int agent_start_recorder(struct core *core, const char *output);

/* ---- flush.c ---- */

/*
 * Marks the area as one whose process is about to end; waits for its recorder where it started one.
 */
void agent_exiting(struct ts_tracer *tracer);

/* ---- replay_channel.c ---- */

/* From here on all waiting for room together takes no longer than one otherwise. */
void agent_channel_exiting(void);

/* How long it waits; a variable for tests. */
extern int64_t agent_channel_patience_ns;

/* ---- backends.c ---- */

/*
 * Ours, in the order in which they start; ends with NULL. In agent_load.c, which the tool has not:
 * there it has no address. Not registered at load, since events may come before that.
 */
extern const struct ts_backend *const agent_backends[] __attribute__((weak));
void agent_start_backends(const char *list);
void agent_stop_backends(void);

#endif
