/* SPDX-License-Identifier: Apache-2.0 */
/* Reads values of a JSON stream across buffer refills. */
#include "import/common/json_stream.h"

#include <inttypes.h>

void ts_json_stream_init(struct ts_json_stream *stream, struct ts_import *import,
			 struct ts_error *err)
{
	*stream = (struct ts_json_stream){ .import = import, .js = &import->stream.js, .err = err };
}

void ts_json_stream_release(struct ts_json_stream *stream)
{
	ts_text_release(&stream->key);
	ts_text_release(&stream->scratch);
}

bool ts_json_stream_refill(struct ts_json_stream *stream, const char *from, int *rc)
{
	*rc = ts_import_refill(stream->import, from, stream->err);
	if (*rc)
		stream->has_message = true;
	return *rc == TS_OK;
}

int ts_json_stream_bom(struct ts_json_stream *stream)
{
	int rc;

	do {
		rc = ts_json_skip_bom(stream->js);
	} while (ts_json_stream_again(stream, stream->js->next, &rc));
	return rc;
}

int ts_json_stream_enter(struct ts_json_stream *stream, char open, bool *ret_more)
{
	const char *from;
	int rc;

	do {
		from = stream->js->next;
		rc = ts_json_enter(stream->js, open, ret_more);
	} while (ts_json_stream_again(stream, from, &rc));
	return rc;
}

int ts_json_stream_peek(struct ts_json_stream *stream, int *ret_first)
{
	const char *from;
	int rc;

	do {
		from = stream->js->next;
		*ret_first = ts_json_peek(stream->js);
		rc = *ret_first < 0 ? ts_json_cut(stream->js) : TS_OK;
	} while (ts_json_stream_again(stream, from, &rc));
	return rc;
}

/* Unescaped and valid, into stream->key. */
static int keep_key(struct ts_json_stream *stream, const struct ts_json_string *key)
{
	const char *text = key->text;
	size_t length = key->length;

	if (key->escaped) {
		ts_text_clear(&stream->scratch);
		ts_json_unescape(key, &stream->scratch);
		text = ts_text_cstr(&stream->scratch);
		length = stream->scratch.length;
	}
	ts_text_clear(&stream->key);
	if (ts_utf8_valid(text, length))
		ts_text_append(&stream->key, text, length);
	else
		ts_utf8_sanitize(&stream->key, text, length);
	return stream->scratch.failed ? TS_ENOMEM : ts_text_status(&stream->key);
}

int ts_json_stream_key(struct ts_json_stream *stream)
{
	struct ts_json_string key = { 0 };
	const char *from;
	int rc;

	do {
		from = stream->js->next;
		rc = ts_json_scan_key(stream->js, &key);
	} while (ts_json_stream_again(stream, from, &rc));
	if (rc)
		return rc;
	if (key.length > TS_IMPORT_MAX_STRING)
		return ts_json_bad(stream->js, key.text, "a string is longer than 64 MiB");
	return keep_key(stream, &key);
}

int ts_json_stream_value(struct ts_json_stream *stream, int (*read)(void *context), void *context)
{
	const char *from;
	int rc;

	do {
		from = stream->js->next;
		rc = read(context);
	} while (ts_json_stream_again(stream, from, &rc));
	return rc;
}

static int skip(void *context)
{
	return ts_json_skip(context);
}

int ts_json_stream_skip(struct ts_json_stream *stream)
{
	return ts_json_stream_value(stream, skip, stream->js);
}

int ts_json_stream_fail(struct ts_json_stream *stream, int rc)
{
	const struct ts_import *import = stream->import;
	const char *kept =
		import->result.events ? "everything before it was kept; to get the rest, " : "";
	int status = ts_writer_status(import->writer, stream->err);

	if (status || stream->has_message)
		return status ? status : rc;
	if (rc == TS_ENOMEM)
		return ts_error_set(stream->err, rc, "input '%s': byte %" PRIu64 ": out of memory",
				    import->path,
				    ts_input_stream_at(&import->stream, stream->js->next));
	if (ts_json_stream_is_cut(stream, rc))
		return ts_import_cut(import,
				     ts_input_stream_at(&import->stream, stream->js->error_at),
				     stream->err);
	return ts_error_set(stream->err, rc,
			    "input '%s': byte %" PRIu64 ": %s; %sfix the file there", import->path,
			    ts_input_stream_at(&import->stream, stream->js->error_at),
			    stream->js->reason ? stream->js->reason : "not valid JSON", kept);
}
