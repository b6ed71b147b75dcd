/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sliding buffer over a stream of JSON: one value at a time is in memory, whatever the file's
 * size. The buffer grows only for a value that does not fit.
 *
 * `js` looks into the buffer. When a scan function says TS_JSON_MORE, call ts_input_stream_refill() with
 * the place to go on from (the value's first byte) and start that value again; all other pointers
 * into the buffer are then void.
 */
#ifndef TS_IMPORT_COMMON_INPUT_STREAM_H
#define TS_IMPORT_COMMON_INPUT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "base/json.h"

/* Where the bytes come from; as ts_input_read(). */
struct ts_input_stream_source {
	int (*read)(void *context, void *buffer, size_t bytes, size_t *ret_bytes,
		    struct ts_error *err);
	void *context;
};

struct ts_input_stream {
	struct ts_json js;
	struct ts_input_stream_source source;
	const char *path; /* for messages; borrowed */
	char *buffer;
	size_t capacity;
	uint64_t offset;         /* of buffer[0] in the stream */
	struct ts_error failure; /* of a read whose bytes are not used up yet; code 0: none */
};

/* One value may be this large; a string less (TS_IMPORT_MAX_STRING). */
#define TS_INPUT_STREAM_MAX_VALUE ((size_t)256 << 20)
#define TS_INPUT_STREAM_BYTES ((size_t)1 << 20)

/* `capacity` bytes at first, 0: TS_INPUT_STREAM_BYTES. Nothing is read before the first refill. */
int ts_input_stream_init(struct ts_input_stream *stream, const struct ts_input_stream_source *source,
		   const char *path, size_t capacity, struct ts_error *err);
void ts_input_stream_release(struct ts_input_stream *stream);

/*
 * Keeps the bytes from `keep` on, reads more behind them, and sets js to the first of them. An
 * error comes after the bytes that were read before it.
 */
int ts_input_stream_refill(struct ts_input_stream *stream, const char *keep, struct ts_error *err);

/* Where a byte of the buffer stands in the stream. */
static inline uint64_t ts_input_stream_at(const struct ts_input_stream *stream, const char *p)
{
	return stream->offset + (uint64_t)(p - stream->buffer);
}

#endif
