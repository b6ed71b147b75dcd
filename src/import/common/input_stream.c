/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sliding buffer of the importers. Fills the buffer completely, so that a value is restarted at
 * most once per buffer, and doubles it for a value that does not fit: the work stays linear in the
 * input size.
 */
#include "import/common/input_stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int ts_input_stream_init(struct ts_input_stream *stream,
			 const struct ts_input_stream_source *source, const char *path,
			 size_t capacity, struct ts_error *err)
{
	*stream =
		(struct ts_input_stream){ .source = *source,
					  .path = path,
					  .capacity = capacity ? capacity : TS_INPUT_STREAM_BYTES };
	stream->buffer = malloc(stream->capacity);
	if (!stream->buffer)
		return ts_error_set(err, TS_ENOMEM, "input '%s': out of memory", path);
	ts_json_init(&stream->js, stream->buffer, 0, false);
	return TS_OK;
}

void ts_input_stream_release(struct ts_input_stream *stream)
{
	free(stream->buffer);
	stream->buffer = NULL;
}

static int reserve(struct ts_input_stream *stream, size_t held, struct ts_error *err)
{
	size_t capacity = stream->capacity * 2;
	char *buffer;

	if (held < stream->capacity)
		return TS_OK;
	if (capacity > TS_INPUT_STREAM_MAX_VALUE)
		return ts_error_set(err, TS_EFORMAT,
				    "input '%s': byte %" PRIu64
				    ": a value is larger than %zu MiB; remove it from the file",
				    stream->path, stream->offset, TS_INPUT_STREAM_MAX_VALUE >> 20);
	buffer = realloc(stream->buffer, capacity);
	if (!buffer)
		return ts_error_set(err, TS_ENOMEM,
				    "input '%s': byte %" PRIu64
				    ": out of memory for a value of more than %zu MiB",
				    stream->path, stream->offset, stream->capacity >> 20);
	stream->buffer = buffer;
	stream->capacity = capacity;
	return TS_OK;
}

int ts_input_stream_refill(struct ts_input_stream *stream, const char *keep, struct ts_error *err)
{
	size_t held = (size_t)(stream->js.end - keep), before = held;
	bool last = stream->js.last;
	int rc;

	stream->offset = ts_input_stream_at(stream, keep);
	memmove(stream->buffer, keep, held);
	rc = reserve(stream, held, err);
	while (!rc && held < stream->capacity && !last && !stream->failure.code) {
		size_t got = 0;

		if (stream->source.read(stream->source.context, stream->buffer + held,
					stream->capacity - held, &got, &stream->failure))
			break;
		held += got;
		last = got == 0;
	}
	ts_json_init(&stream->js, stream->buffer, held, last);
	if (!rc && stream->failure.code && held == before) {
		rc = stream->failure.code;
		if (err)
			*err = stream->failure;
	}
	return rc;
}
