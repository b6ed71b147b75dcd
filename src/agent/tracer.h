/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the traced process: tracers, and a thread's access to its ring (docs/live.md). libc only.
 * No function of the agent prints, aborts, or allocates on the emit path. On failure a tracer
 * disables itself, counts losses, and leaves a message in its area. State that must not survive
 * fork() is in pages that are wiped on fork (struct core, struct writer), so that a child starts
 * from zeros however it was created. State that must survive is in struct ts_tracer.
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

#include "base/local/path_pattern.h"
#include "live/local/counter.h"
#include "live/local/live_records.h"

/* The smallest first ring of a thread. */
#define AGENT_SMALL_RING_BYTES (16u << 10)

#define AGENT_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define AGENT_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/*
 * A thread's access to a ring. Wiped on fork, which closes it. The hot path uses only the first
 * four members.
 */
struct writer {
	uint32_t open;  /* 0: inside an emit, or not attached; WRITER_SLOW: not for the hot path */
	uint32_t clock; /* enum ts_live_clock */
	char *at;       /* where the next record goes */
	char *until;    /* end of the space checked so far */
	struct ts_live_ring *ring; /* NULL: not attached */
	char *bytes;               /* of the ring */
	uint64_t mask;
	struct ts_tracer *tracer;
	struct core *core;
	struct writer *side; /* for emits inside signal handlers that interrupt an emit */
	struct writer *next; /* the thread's writers of other tracers; or the free list */
	struct ts_live_oldest consumed; /* last consistent reading */
	uint64_t full_at;               /* exhausted: the position up to which there was space */
	uint32_t index;                 /* of the ring */
	uint32_t tid, serial;
	bool exhausted; /* full, and no larger ring is available */
	bool stunted;   /* flight mode: no larger ring was available */
	bool is_side;
} __attribute__((aligned(128))); /* two threads never share a cache line */

/* State of an open writer: hot if events are stamped with the raw counter. */
enum writer_open { WRITER_CLOSED = 0, WRITER_HOT = 1, WRITER_SLOW = 2 };

enum core_state { CORE_NEW = 0, CORE_BUSY, CORE_READY, CORE_OFF };

/* Settings from the environment. */
struct agent_settings {
	bool wanted;
	bool start_recorder;
	bool enabled;
	bool redact;
	bool always_redact;    /* the process asks for it, whatever its recorder wants */
	bool has_no_directory; /* its path is too long */
	bool makes_folders;    /* the output is a pattern: the recorder creates its folders */
	uint32_t mode;
	uint32_t role;        /* enum ts_live_role */
	uint32_t output_base; /* length of the prefix of `output` in which % is literal */
	struct ts_rank rank;
	uint64_t session;
	uint64_t budget;     /* 0: default */
	uint32_t ring_bytes; /* of a first ring; 0: default */
	int64_t step_open, step_close, max_steps;
	uint32_t python; /* AGENT_PYTHON_*: events that get a Python stack */
	uint32_t stacks; /* TS_STACKS_*: stacks of calls */
	struct ts_replay_settings replay;
	char backends[256];
	char directory[1024]; /* of live areas, absolute; empty: the default */
	char output[1024];    /* absolute */
	/* Why the output that was asked for cannot be named; empty: it can. */
	char why_not[TS_PATH_WHY_BYTES];
};

/* Saved signal mask and cancellation state: see agent_block_signals(). */
struct agent_signals {
	sigset_t mask;
	int cancel_state;
	int error;
};

/* Where the channel's bulk data goes (replay_spool.c). */
struct spool {
	struct ts_live_spool *header; /* NULL: none */
	char *data;
	uint64_t bytes;          /* of the data; a power of two */
	uint64_t from, to;       /* what is allocated of these */
	uint64_t head, consumed; /* positions; what is between is in use */
	uint64_t returned;       /* of the header, when that was known to be allocated */
	uint64_t nudged_at;      /* head when the recorder was last woken */
	dev_t device;
	ino_t inode;
	bool has_lanes;    /* the files for bulk exist */
	bool has_no_lanes; /* they could not be made */
	unsigned int lane; /* the last one that was given a part */
	bool is_off;       /* it could not be made */
	bool is_full;      /* a step could not be allocated, */
	uint64_t full_at;  /* and is not tried again while this is `consumed` */
};

/*
 * The lossless channel of the process-wide tracer (replay_channel.c): a ring that all threads
 * write, one at a time. The lock guards all members but the first two.
 */
struct channel {
	uintptr_t lock;  /* 0: free; otherwise see replay_channel.c */
	uint32_t broken; /* atomic; permanent */
	bool in_window;
	uint64_t window; /* number of the last one */
	uint64_t sequence;
	uint64_t blobs;                     /* last number assigned */
	uint64_t blob, blob_bytes, blob_at; /* the one being written, 0: none */
	uint64_t blob_unread;               /* bytes of it that could not be read */
	bool is_own;                        /* its bytes are those of a backend, and there */
	uint64_t space_at, space_bytes;     /* given out by ts_replay_blob_space() */
	/* Given out by ts_replay_bulk_begin(); until it ends, other blobs take the ring. */
	bool is_bulk; /* atomic */
	uint32_t bulk_count;
	uint64_t bulk_from; /* head of the spool before that */
	struct {
		uint64_t word, bytes;
		bool is_referred;
	} bulk[TS_REPLAY_BULK_AT_MOST];
	uint64_t room_until;  /* position; the ring has space up to there */
	bool is_interrupted;  /* broken by a signal handler; the last record is missing */
	uint64_t nudge_at;    /* head at which the recorder may have to be woken */
	int64_t exit_wait_ns; /* time spent waiting since the process began to exit */
	struct agent_signals signals;
	struct writer writer;
	struct spool spool;
};

/* A tracer's state in one process. Wiped on fork. */
struct core {
	uint32_t state;        /* enum core_state */
	uint32_t lock;         /* held with all signals blocked */
	uint32_t window_lock;  /* the same, guards window_depth only */
	uint32_t window_depth; /* ranges that hold the window open (step_windows.c) */
	struct ts_live_control *control;
	struct ts_live_ring *rings;
	char *dictionary;
	uint64_t pool_end;      /* end of the file's allocated part */
	uint64_t directory_end; /* end of the directory's allocated part */
	uint64_t dictionary_end;
	uint32_t sites; /* in the dictionary */
	uint32_t serials;
	struct writer *free_writers;
	int fd; /* of the area; checked before each use */
	dev_t device;
	ino_t inode;
	/*
	 * For everything but the small rings of threads that find it used up. control->budget
	 * includes those.
	 */
	uint64_t budget;
	uint32_t ring_bytes;  /* of a first ring */
	int error;            /* errno why it is disabled; 0: it is not, or was not requested */
	bool relies_on_other; /* another recorder already had the output */
	pid_t recorder;       /* that this process started; 0: none */
	struct agent_settings settings;
	/* For the thread that starts it: signal stacks may be small. */
	_Alignas(16) char scratch[4096];
	char path[2048]; /* of the area */
	struct channel channel;
	char *mapped[TS_LIVE_RING_LIMIT]; /* bytes of each ring, as mapped here */
};

#define STRANDED_RINGS 4u

/*
 * Rings and control block of a forked child's parent, replaced by private memory. If the child was
 * forked inside an emit, its part of that emit ends here, where no recorder sees it.
 */
struct stranded {
	const struct ts_live_control *control; /* NULL: none */
	uint64_t lost;                         /* in it, at the fork */
	unsigned int rings;
	struct {
		const struct ts_live_ring *ring;
		const char *bytes;
		uint64_t mask;
		uint64_t head, dropped; /* at the fork */
	} ring[STRANDED_RINGS];
};

/* Survives fork. */
struct ts_tracer {
	struct core *core;      /* NULL: never started */
	struct ts_tracer *next; /* of those created by ts_tracer_new() */
	uint32_t is_off;        /* created by ts_tracer_disabled(), or closed */
	uint32_t by_hand;
	bool was_ready; /* its core, when the process forked */
	/* The newest area of this process or an ancestor: a child copies its dictionary. */
	struct ts_live_control *inherited;
	uint32_t inherited_ring_bytes;
	struct stranded stranded;
	uint32_t output_base; /* as in struct agent_settings */
	bool makes_folders;
	char output[1024]; /* absolute; empty: none */
};

extern struct ts_tracer ts_process_tracer;

/* ---- tracer.c: lifecycle ---- */

/* The core, started if needed; NULL while the tracer is off. Blocks signals. */
struct core *agent_start(struct ts_tracer *tracer);

/*
 * The same if it was found off because nobody had requested it, or no area could be made.
 * *ret_error says why it is still off.
 */
struct core *agent_start_again(struct ts_tracer *tracer, int *ret_error);

/* Disables a tracer permanently, with the reason in its area. */
void agent_disable(struct ts_tracer *tracer, const char *why, int error);

/*
 * Put around code that takes the lock or makes system calls: no handler runs, so none can deadlock
 * on its own thread; the thread cannot be cancelled, and errno is restored.
 */
void agent_block_signals(struct agent_signals *saved);
/*
 * The same without blocking faults: the program's own handler may page in the memory that is
 * copied.
 */
void agent_block_signals_but_faults(struct agent_signals *saved);
void agent_restore_signals(const struct agent_signals *saved);
void agent_lock(struct core *core);
void agent_unlock(struct core *core);

/* Call in a loop that waits for another thread; `spins` counts the iterations. */
void agent_relax(unsigned int spins);

/*
 * Zeroed memory; NULL on failure. The second kind is zeroed again in a forked child, if the kernel
 * supports it.
 */
void *agent_memory(size_t bytes);
void *agent_wiped_memory(size_t bytes);

/* Arranges for agent_thread_exit() when the calling thread exits. */
void agent_watch_thread(struct writer *writer);

/* Prints a line on standard error, if that is harmless. Call with signals blocked. */
void agent_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Called when the agent is loaded, and at process exit. */
void agent_load(void);
void agent_unload(void);

/* Points ts_emit_switch at the current enabled flag of the process-wide tracer. */
void agent_set_switch(struct core *core);

/* ---- start_stop.c ---- */

/* In a forked child: its parent's starts are not its own. */
void agent_forget_starts(void);

/* ---- agent_settings.c ---- */

void agent_settings_read(struct agent_settings *settings, const struct ts_tracer *tracer);

/*
 * Reads the environment once, since programs change it and their directory before their first
 * event. True if tracing is requested; *ret_at_once: create an area at load.
 */
bool agent_settings_remember(bool *ret_at_once);

/* Instead of the environment: a recorder's area of that session. */
void agent_settings_host(uint64_t session, uint32_t ring_bytes, bool redact);

/*
 * Settings of a process that starts or stops its tracer itself, and of children that it forks
 * later; NULL: those of the environment. Not by two threads at once. The second one fills in what
 * such settings begin with.
 */
void agent_settings_set(const struct agent_settings *settings);
void agent_settings_common(struct agent_settings *settings);

/* False before the C library is initialised: there is no environment yet. */
bool agent_settings_are_known(void);

/*
 * "%r-%p.sbt" becomes "/current/dir/3-%p.sbt": the process id differs after a fork. *ret_base is
 * the offset of the given path in it. False: `ret_why`, of TS_PATH_WHY_BYTES, says why.
 */
bool agent_prepare_output(const char *path, char *ret_path, size_t bytes, uint32_t *ret_base,
			  char *ret_why);

/* The same with %p as the pid; for outputs. */
bool agent_output_path(const char *path, char *ret_path, size_t bytes, char *ret_why);

/* ---- make_area.c ---- */

/* 0, or an errno. Fills core's mapping, fd and path. */
int agent_make_area(struct core *core);

/* Closes the area's descriptor; the area remains, but can no longer grow. */
void agent_close_area(struct core *core);

/*
 * Allocates a range of the file, so that touching it cannot fault, if the file then has at most
 * `limit` bytes allocated; 0 or an errno.
 */
int agent_allocate(struct core *core, uint64_t offset, uint64_t bytes, uint64_t limit);
void agent_give_back(struct core *core, uint64_t offset, uint64_t bytes);

/* Reads a small file; returns the number of bytes, 0 also if there is none. */
size_t agent_read_file(const char *path, char *buffer, size_t bytes);

/* False: a file of that size would raise SIGXFSZ. */
bool agent_within_file_limit(uint64_t end);

int agent_grow_directory(struct core *core);
int agent_grow_dictionary(struct core *core);

/* A random number, never 0. */
uint64_t agent_draw_id(void);

/* The user's budget, for an area that exists; 0: the default stays. */
void agent_set_budget(struct core *core, uint64_t budget);

/* Removes the area's file; its memory stays mapped. */
void agent_unlink_area(struct core *core);

/* Wakes the recorder if it sleeps. Never on the emit path. */
void agent_nudge_recorder(struct core *core);

/* Maps a range of the area's file; NULL on failure. */
void *agent_map(struct core *core, uint64_t offset, uint64_t bytes);

void agent_update_anchor(struct core *core);

/* Field 22 of /proc/PID/stat, read into `text`; false: no such process is visible and alive. */
bool agent_start_time(pid_t pid, char *text, size_t size, uint64_t *ret_start_time);

/* ---- ring_alloc.c: the slow path ---- */

/*
 * Allocates ring space for a record of `bytes`. Returns the writer to use, or NULL if the event is
 * lost (and counted, if `counts`). `writer` is the thread's current writer.
 */
struct writer *agent_ring_alloc(struct ts_tracer *tracer, struct core *core, struct writer *writer,
				uint64_t bytes, bool counts);

/*
 * Drops and counts an event of `bytes` if the ring was full and has not been drained since. False:
 * call agent_ring_alloc().
 */
bool agent_drop(struct writer *writer, uint64_t bytes);

/* The calling thread's writer of a tracer; agent_no_writer() before its first event. */
struct writer *agent_find_writer(struct ts_tracer *tracer);

/*
 * Attaches a writer that belongs to no thread to a ring of `bytes`, or of at least `least` if
 * memory is short. The ring's THREAD record has that name. False: no ring available. Call with
 * signals blocked.
 */
bool agent_attach_shared(struct core *core, struct writer *writer, uint64_t bytes, uint64_t least,
			 const char *name);

/* The calling thread's number in the area. Call with signals blocked. */
uint32_t agent_serial(struct core *core);
/* It is known already: then signals need not be blocked. */
bool agent_has_serial(const struct core *core);

/* Releases the calling thread's rings. */
void agent_thread_exit(void *unused);

/*
 * Called around fork(): a child inherits its parent's writers. It may return into an emit that a
 * handler interrupted, whose writes must not reach the parent.
 */
void agent_keep_writers(void);
void agent_release_kept(void);
void agent_forget_writers(void);

/* Replaces memory shared with the parent by private, zeroed memory. */
bool agent_unshare(void *address, size_t bytes);

/* From now on such memory is copied on fork, not wiped: an emit that uses it is still to end. */
void agent_keep_on_fork(void *address, size_t bytes);

/*
 * Counts events that ended in memory of the parent as lost; call with the core's lock held. Called
 * when a thread gets a ring and at exit.
 */
void agent_count_stranded(struct ts_tracer *tracer, struct core *core);
bool agent_has_stranded(const struct ts_tracer *tracer);

/* What ended there until now belongs to this process, not to a child that is forked now. */
void agent_forget_stranded(struct ts_tracer *tracer);

/* ---- site.c ---- */

/* Registers a site. False: the dictionary is full; use the dynamic form. */
bool agent_register_site(struct core *core, struct ts_emit_site *site);
/*
 * Adds an entry for a function that frames refer to. Returns its number; 0: the dictionary is full.
 * Does not search for an existing entry.
 */
uint32_t agent_register_code(struct core *core, unsigned int kind, const char *name,
			     const char *file, uint32_t line);
/*
 * Add an entry for a stack, and for a file that contains frames. 0: the dictionary is full. Call
 * with the core's lock held.
 */
uint32_t agent_add_stack(struct core *core, uint32_t caller, uint64_t frame);
uint32_t agent_add_module(struct core *core, const char *path, const char *build_id,
			  const struct ts_live_module *where);
void agent_copy_dictionary(struct ts_tracer *tracer, struct core *core);

/* ---- spawn_recorder.c ---- */

/*
 * Starts `tracesmith record --detached` for the area, unless a recorder already has that output;
 * with `anyway` even then. 0, or an errno (ENOENT: no recorder found).
 */
int agent_start_recorder(struct core *core, const char *output, bool anyway);

/* ---- flush.c ---- */

/* Marks the area's process as exiting; waits for its recorder if it started one. */
void agent_exiting(struct ts_tracer *tracer);

/*
 * True if the process that drains the area is alive, even if it is blocked and its heartbeat is
 * old. False also if it is in a pid namespace that is not visible.
 */
bool agent_recorder_lives(const struct core *core);
/* Waits until the recorder has ended. 0; EPIPE: it did not take its leave; ETIMEDOUT. */
int agent_wait_for_end(struct core *core);

/* ---- replay_wait.c ---- */

/* From now on the total time spent waiting is limited to that of a single wait. */
void agent_channel_exiting(void);

/* Longest wait; a variable for tests. */
extern int64_t agent_channel_patience_ns;

/* ---- replay_spool.c ---- */

/* Greatest size of a spool; a variable for tests. */
extern uint64_t agent_spool_bytes;

/* ---- backends.c ---- */

/*
 * Built-in backends, in start order; ends with NULL. Defined in agent_load.c, which is not in the
 * tool: there the weak symbol is NULL. Not registered at load, since events may come earlier.
 */
extern const struct ts_backend *const agent_backends[] __attribute__((weak));
void agent_start_backends(const char *list);
/* The same while others run. Those of the list that run are started again. */
void agent_add_backends(const char *list);
/* Stops them until agent_add_backends(): they report what devices have done so far. */
void agent_pause_backends(void);
void agent_stop_backends(void);

#endif
