/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command stream of a program that is to be replayed, given by a backend inside it
 * (docs/replay.md, sections 1, 2 and 4): objects, commands, blobs. Nothing of it may be lost, so
 * these functions may wait for the recorder, up to some seconds; a backend calls them inside
 * replayable windows only.
 *
 * Between ts_replay_lock() and ts_replay_unlock() the calling thread alone writes the stream; all
 * others below must be called inside. After a failure the stream is broken: all calls return at
 * once and do nothing, and the trace says why.
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
	bool from_start; /* no window was asked for: the stream begins with the process */
	uint64_t snapshot_limit;
	int64_t window_timeout_ns;
};
/* What the recorder asked for; constant while the process lives. From start() of a backend on. */
TS_EMIT_API const struct ts_replay_settings *ts_replay_settings(void);

/* False where it is broken, or nobody records: do not lock then. */
TS_EMIT_API bool ts_replay_lock(void);
TS_EMIT_API void ts_replay_unlock(void);
TS_EMIT_API bool ts_replay_is_broken(void);

/*
 * Numbers are drawn, one sequence each for objects and blobs; may be called without the lock. Never
 * 0.
 */
TS_EMIT_API uint64_t ts_replay_new_object(void);

/* Stores bytes; returns the blob's number, 0 where it is broken. `bytes` 0 gives 0, too. */
TS_EMIT_API uint64_t ts_replay_blob(const void *data, uint64_t bytes);
/*
 * The same in parts, in order and without another blob between them: begin, parts that sum up to
 * `bytes`.
 */
TS_EMIT_API uint64_t ts_replay_blob_begin(uint64_t bytes);
TS_EMIT_API void ts_replay_blob_part(const void *data, uint64_t bytes);

/*
 * As the record OBJECT of docs/replay.md, 2.1. Texts are copied; details is a JSON object, or NULL.
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
 * As the record COMMAND; INT64_MIN and 0 are "none" as there. Returns its sequence number, 0 where
 * it is broken.
 */
struct ts_replay_command {
	uint32_t size;
	uint32_t kind; /* enum ts_command_kind */
	uint64_t
		sequence; /* of a check or close: the command's that it belongs to; else 0: drawn */
	uint64_t queue, object, other, blob, correlation;
	int64_t offset, other_offset, bytes;
	const char *details;
};
TS_EMIT_API uint64_t ts_replay_command(const struct ts_replay_command *command);

/* Ends the window as not replayable, and says why. Another one may open. */
TS_EMIT_API void ts_replay_fail(const char *why);

/* XXH3, 64 bits, of memory: what checks hold. */
TS_EMIT_API uint64_t ts_replay_hash(const void *data, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
