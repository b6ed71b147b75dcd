/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sliding buffer over an input: one value at a time is in memory, whatever the file size. The
 * buffer grows only for a value that does not fit.
 *
 * `js` points into the buffer. When a scan function returns TS_JSON_MORE, call
 * ts_input_stream_refill() with the first byte of the value and start that value again; all other
 * pointers into the buffer are then invalid.
 */
#ifndef TS_IMPORT_COMMON_INPUT_STREAM_H
#define TS_IMPORT_COMMON_INPUT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "base/json.h"

/* Where the bytes come from; like ts_input_read(). */
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
	struct ts_error failure; /* read error, reported after the bytes read before it are
				    consumed; code 0: none */
};

/* Limit for one value; strings have a lower limit (TS_IMPORT_MAX_STRING). */
#define TS_INPUT_STREAM_MAX_VALUE ((size_t)256 << 20)
#define TS_INPUT_STREAM_BYTES ((size_t)1 << 20)

/* Starts with `capacity` bytes, 0: TS_INPUT_STREAM_BYTES. Reads nothing before the first refill. */
int ts_input_stream_init(struct ts_input_stream *stream,
			 const struct ts_input_stream_source *source, const char *path,
			 size_t capacity, struct ts_error *err);
void ts_input_stream_release(struct ts_input_stream *stream);

/*
 * Keeps the bytes from `keep` on, reads more after them, and sets js to the first of them. An error
 * is reported after the bytes read before it.
 */
int ts_input_stream_refill(struct ts_input_stream *stream, const char *keep, struct ts_error *err);

/* Offset of a buffer byte in the stream. */
static inline uint64_t ts_input_stream_at(const struct ts_input_stream *stream, const char *p)
{
	return stream->offset + (uint64_t)(p - stream->buffer);
}

#endif
