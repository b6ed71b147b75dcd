/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command stream of a program for replay, written by a backend inside it (docs/replay.md,
 * sections 1, 2 and 4): objects, commands, blobs. Nothing may be lost, so these functions may wait
 * for the recorder, up to some seconds; a backend calls them inside replayable windows only.
 *
 * Between ts_replay_lock() and ts_replay_unlock() only the calling thread writes the stream; all
 * others below must be called inside. After a failure the stream is broken: all calls return
 * immediately and do nothing, and the trace says why.
 */
#ifndef TRACESMITH_REPLAY_H
#define TRACESMITH_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/emit.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ts_replay_mode { TS_REPLAY_OFF = 0, TS_REPLAY_PLAIN = 1, TS_REPLAY_CHECKED = 2 };

struct ts_replay_settings {
	enum ts_replay_mode mode;
	bool from_start; /* no window was requested: the stream begins with the process */
	uint64_t snapshot_limit;
	int64_t window_timeout_ns;
	uint64_t keep_contents; /* bytes of checks whose contents a window stores; 0: hashes only */
};
/*
 * The recorder's request; constant for the life of the process. Valid from start() of a backend on.
 */
TS_EMIT_API const struct ts_replay_settings *ts_replay_settings(void);

/* False if it is broken, or nobody records: do not lock then. */
TS_EMIT_API bool ts_replay_lock(void);
TS_EMIT_API void ts_replay_unlock(void);
TS_EMIT_API bool ts_replay_is_broken(void);

/*
 * Allocates a number, one sequence each for objects and blobs; may be called without the lock.
 * Never 0.
 */
TS_EMIT_API uint64_t ts_replay_new_object(void);

/*
 * True if the trace has space for a snapshot of that size, or nobody knows. Otherwise `why` says
 * so, and what to do: it fails the window.
 */
TS_EMIT_API bool ts_replay_has_space(uint64_t bytes, char *why, size_t why_bytes);

/* Stores bytes; returns the blob's number, 0 if broken. `bytes` 0 also gives 0. */
TS_EMIT_API uint64_t ts_replay_blob(const void *data, uint64_t bytes);
/* The same for memory of the caller, which is there: the program's may be gone. */
TS_EMIT_API uint64_t ts_replay_blob_own(const void *data, uint64_t bytes);
/*
 * The same in parts, in order and without another blob in between: begin, then parts that add up to
 * `bytes`.
 */
TS_EMIT_API uint64_t ts_replay_blob_begin(uint64_t bytes);
TS_EMIT_API void ts_replay_blob_part(const void *data, uint64_t bytes);
/*
 * The next part without a copy: memory for at most *bytes, which the call may reduce; fill it, for
 * example from a device, then commit what was filled. NULL: use ts_replay_blob_part().
 */
TS_EMIT_API void *ts_replay_blob_space(uint64_t *bytes);
TS_EMIT_API void ts_replay_blob_filled(uint64_t bytes);
/* Bytes of the newest blob that could not be read, as its memory is gone: they are zeros. */
TS_EMIT_API uint64_t ts_replay_blob_unread(void);

/*
 * Bulk: several blobs of at most 4 MiB that several threads write at the same time, without the
 * lock. Expected by a backend that stores snapshots, before it stores anything: the spool may then
 * become as large as memory allows, instead of 256 MiB.
 */
#define TS_REPLAY_BULK_AT_MOST 128u
#define TS_REPLAY_BULK_BYTES (UINT64_C(4) << 20)
TS_EMIT_API void ts_replay_bulk_expect(void);
/*
 * Reserves space for the first of these blobs, and returns for how many; 0: there is none now,
 * which may change when the recorder has read more. Nothing else may begin bulk until it ended.
 * TS_REPLAY_BULK_NEVER: shared memory is too small for the first one.
 */
#define TS_REPLAY_BULK_NEVER UINT32_MAX
TS_EMIT_API uint32_t ts_replay_bulk_begin(uint32_t count, const uint64_t *bytes);
/*
 * Without the lock, by any thread: copies bytes of a blob. False: memory is full; the blob has to
 * be stored in another way, after the end.
 */
TS_EMIT_API bool ts_replay_bulk_write(uint32_t index, uint64_t offset, const void *data,
				      uint64_t bytes);
/*
 * With the lock again: each that was written becomes a blob, in ascending order. Its number, or 0.
 */
TS_EMIT_API uint64_t ts_replay_bulk_blob(uint32_t index);
/* Gives the memory of all others back. Also without the lock, if ts_replay_lock() fails. */
TS_EMIT_API void ts_replay_bulk_end(void);

/*
 * Like the record OBJECT of docs/replay.md, 2.1. Strings are copied; details is a JSON object, or
 * NULL.
 */
struct ts_replay_object {
	uint32_t size;
	uint32_t kind; /* enum ts_object_kind */
	uint64_t number, parent, address, blob;
	int64_t bytes;
	const char *name, *details;
};
TS_EMIT_API void ts_replay_object(const struct ts_replay_object *object);
TS_EMIT_API void ts_replay_gone(uint64_t number);

/*
 * Like the record COMMAND; INT64_MIN and 0 mean "none" as there. Returns its sequence number, 0 if
 * broken.
 */
struct ts_replay_command {
	uint32_t size;
	uint32_t kind;     /* enum ts_command_kind */
	uint64_t sequence; /* for a check or close: that of the command it belongs to; else 0:
			      allocated */
	uint64_t queue, object, other, blob, correlation;
	int64_t offset, other_offset, bytes;
	const char *details;
};
TS_EMIT_API uint64_t ts_replay_command(const struct ts_replay_command *command);

/* Ends the window as not replayable, with the reason. Another one may open. */
TS_EMIT_API void ts_replay_fail(const char *why);

/*
 * ---- windows (docs/replay.md, section 4) ----
 *
 * Every call of the program that may change what a window needs is between ts_replay_enter() and
 * ts_replay_leave(): it holds the gate, shared. A window that is due is opened or closed by the
 * thread that notices, in ts_replay_enter(), with the gate held exclusively. A call that may block
 * on what only the program can end uses ts_replay_step() instead, and does not hold the gate.
 */
enum ts_replay_end {
	TS_REPLAY_END_CLOSED,     /* still nothing runs */
	TS_REPLAY_END_UNCHECKED,  /* closed without final checks: something ran all the time */
	TS_REPLAY_END_NOT_OPENED, /* opening failed */
	TS_REPLAY_END_FAILED,     /* in a call, whose locks are held */
};
struct ts_replay_client {
	uint32_t size;
	/* Is there something that only the program can end? Cheap: asked by each call meanwhile. */
	bool (*is_blocked)(char *why, size_t bytes);
	/*
	 * The gate is held: waits until all queues are empty. False: not by then, or
	 * ts_replay_is_awaited() became true.
	 */
	bool (*finish)(int64_t deadline_ns, char *why, size_t bytes);
	/* Nothing happened before, so that a window would begin with the process. */
	bool (*is_unused)(void);
	/*
	 * Nothing runs: describes all objects, with ts_replay_lock(). NULL, or why that failed: in
	 * `why`, or constant.
	 */
	const char *(*open)(char *why, size_t bytes, uint64_t *ret_snapshot_bytes);
	/* OPEN was written; still nothing runs. May be NULL. */
	void (*opened)(void);
	/* Nothing runs: final checks. NULL, or why the window cannot be replayed. */
	const char *(*close)(char *why, size_t bytes);
	/* Of the snapshot, for OPEN or CLOSE; UINT64_MAX: not known yet. May be NULL. */
	uint64_t (*pieces)(void);
	/* `why`: what the trace says of a window that is not replayable; NULL if it says nothing.
	 */
	void (*ended)(enum ts_replay_end how, const char *why);
	/* In a child after fork(): true if windows may open here. */
	bool (*forked)(void);
};
/* False: another client is there; it gets no windows any more either. Later calls do nothing. */
TS_EMIT_API bool ts_replay_start(const struct ts_replay_client *client);
/* At exit, while drivers still respond: closes the window. */
TS_EMIT_API void ts_replay_stop(void);

TS_EMIT_API void ts_replay_enter(void); /* may be nested */
TS_EMIT_API bool ts_replay_leave(void); /* true: the outermost */
/*
 * A fast ts_replay_enter(): true if no window is open or due, and this is the thread's outermost
 * call; ts_replay_sequence_at_entry() is not updated. False: not entered, call ts_replay_enter().
 */
TS_EMIT_API bool ts_replay_pass(void);
TS_EMIT_API void ts_replay_step(void);
/*
 * Around a function of the program that the driver calls: this thread opens or closes no window
 * meanwhile, and waits at the gate for a second at most. May be nested.
 */
TS_EMIT_API void ts_replay_callback_begin(void);
TS_EMIT_API void ts_replay_callback_end(void);
TS_EMIT_API bool ts_replay_in_callback(void);
TS_EMIT_API bool ts_replay_is_awaited(void); /* a callback waits at the gate */

/* A window is open, or closing. */
TS_EMIT_API bool ts_replay_is_open(void);
TS_EMIT_API bool ts_replay_is_opening(void); /* in open() of a client, on its thread */
TS_EMIT_API uint64_t ts_replay_window(void); /* the number of the last one */
TS_EMIT_API uint64_t ts_replay_last_sequence(void);
/* What that was when this thread passed the gate. */
TS_EMIT_API uint64_t ts_replay_sequence_at_entry(void);

/* As ts_replay_lock(), inside an open window; false: none is open (any more). */
TS_EMIT_API bool ts_replay_lock_window(void);
/* As ts_replay_command(); also remembers the sequence number. Inside the lock. */
TS_EMIT_API uint64_t ts_replay_append(const struct ts_replay_command *command);
/*
 * The same without the lock, which it takes itself, and with a blob of the caller's memory, whose
 * number the command gets; `bytes` 0: none. Much cheaper than each alone: in most cases no system
 * call is made, so signals are not blocked meanwhile. A handler that uses the device just then ends
 * the stream, with that reason. 0: no window is open.
 */
TS_EMIT_API uint64_t ts_replay_append_with(struct ts_replay_command *command, const void *data,
					   uint64_t bytes);
/*
 * The open window, or the one that the caller is opening, fails. Without one: nothing happens.
 * Not inside the lock.
 */
TS_EMIT_API void ts_replay_fail_window(const char *why);

TS_EMIT_API int64_t ts_replay_clock_ns(void); /* of deadlines */
/* Sleeps; the program cannot cancel its thread meanwhile. Less than a second. */
TS_EMIT_API void ts_replay_nap(int64_t ns);

/* XXH3, 64 bits, of memory, as stored in checks. */
TS_EMIT_API uint64_t ts_replay_hash(const void *data, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
