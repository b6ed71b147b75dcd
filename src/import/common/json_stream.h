/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads JSON one value at a time: at the end of the buffer each function refills it and starts the
 * value again. The file may have any size; one value must fit in memory.
 *
 *	rc = ts_json_stream_enter(&stream, '{', &more);
 *	while (!rc && more) {
 *		rc = ts_json_stream_key(&stream);       the key is in stream.key
 *		if (!rc)
 *			rc = ts_json_stream_value(&stream, read_it, context);
 *		if (!rc)
 *			rc = ts_json_stream_next(&stream, '}', &more);
 *	}
 *	if (rc)
 *		rc = ts_json_stream_fail(&stream, rc);
 *
 * Each returns 0 or a negative error, and invalidates pointers into the buffer.
 */
#ifndef TS_IMPORT_COMMON_JSON_STREAM_H
#define TS_IMPORT_COMMON_JSON_STREAM_H

#include <stdbool.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "import/import.h"

struct ts_json_stream {
	struct ts_import *import;
	struct ts_json *js; /* of the import */
	struct ts_error *err;
	bool has_message; /* err has been written */
	struct ts_text key, scratch;
};

void ts_json_stream_init(struct ts_json_stream *stream, struct ts_import *import,
			 struct ts_error *err);
void ts_json_stream_release(struct ts_json_stream *stream);

/* For ts_json_stream_again(). */
bool ts_json_stream_refill(struct ts_json_stream *stream, const char *from, int *rc);

/* After a scan that began at `from`: true if the buffer was too short and has been refilled. */
static inline bool ts_json_stream_again(struct ts_json_stream *stream, const char *from, int *rc)
{
	if (TS_LIKELY(*rc != TS_JSON_MORE))
		return false;
	return ts_json_stream_refill(stream, from, rc);
}

int ts_json_stream_bom(struct ts_json_stream *stream);
int ts_json_stream_enter(struct ts_json_stream *stream, char open, bool *ret_more);
int ts_json_stream_peek(struct ts_json_stream *stream, int *ret_first);

static inline int ts_json_stream_next(struct ts_json_stream *stream, char close, bool *ret_more)
{
	const char *from;
	int rc;

	do {
		from = stream->js->next;
		rc = ts_json_next(stream->js, close, ret_more);
	} while (ts_json_stream_again(stream, from, &rc));
	return rc;
}

/* Reads a key and copies it to stream->key: later reads may move the buffer. */
int ts_json_stream_key(struct ts_json_stream *stream);

static inline bool ts_json_stream_key_is(const struct ts_json_stream *stream, const char *name)
{
	size_t length = strlen(name);

	return stream->key.length == length &&
	       (!length || memcmp(stream->key.data, name, length) == 0);
}

/* Reads one value with a function that consumes all of it or nothing. */
int ts_json_stream_value(struct ts_json_stream *stream, int (*read)(void *context), void *context);
int ts_json_stream_skip(struct ts_json_stream *stream);

/* Does the error mean that the file is truncated? */
static inline bool ts_json_stream_is_cut(const struct ts_json_stream *stream, int rc)
{
	return rc == TS_EFORMAT && !stream->has_message && stream->js->last &&
	       stream->js->error_at == stream->js->end;
}

/*
 * Writes the error message, unless that is done; import->result.events tells whether something is
 * kept.
 */
int ts_json_stream_fail(struct ts_json_stream *stream, int rc);

#endif
