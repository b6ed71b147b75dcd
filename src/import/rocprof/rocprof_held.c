/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that come before the names that they refer to: their text is buffered in a private file
 * in $TMPDIR (/tmp) and read once the rest of their process is known, so memory does not grow with
 * their number.
 */
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/temporary.h"
#include "import/rocprof/rocprof.h"

#define FLUSH_BYTES ((size_t)1 << 20)

struct header {
	uint64_t bytes;
	uint32_t name, section;
};

static int open_file(struct ts_rocprof *r)
{
	int rc = ts_temporary_open(&r->held, r->in.err);

	if (rc) {
		ts_error_prefix(r->in.err, "input '%s': buffering records", r->import->path);
		r->in.has_message = true;
	}
	return rc;
}

static int flush(struct ts_rocprof *r)
{
	int rc = r->held < 0 ? open_file(r) : TS_OK;

	if (rc)
		return rc;
	rc = ts_write_all(r->held, r->held_bytes.data, r->held_bytes.length, r->in.err);
	if (rc) {
		ts_error_prefix(
			r->in.err,
			"input '%s': buffering records in a temporary file (set TMPDIR to choose the folder)",
			r->import->path);
		r->in.has_message = true;
	}
	ts_text_clear(&r->held_bytes);
	return rc;
}

int ts_rocprof_hold(struct ts_rocprof *r, const char *text, size_t length)
{
	struct header header = { .bytes = length,
				 .name = r->list.name,
				 .section = r->list.section };

	ts_text_append(&r->held_bytes, &header, sizeof(header));
	ts_text_append(&r->held_bytes, text, length);
	if (r->held_bytes.failed)
		return TS_ENOMEM;
	r->held_count++;
	return r->held_bytes.length < FLUSH_BYTES ? TS_OK : flush(r);
}

/* ---- reading them again ---- */

/* Reads bytes of the file, followed by what is still in memory. */
static bool read_at(struct ts_rocprof *r, uint64_t *at, uint64_t in_file, void *to, size_t bytes)
{
	size_t done = *at < in_file ? (size_t)TS_MIN((uint64_t)bytes, in_file - *at) : 0;

	if (ts_temporary_read(r->held, to, done, *at, NULL))
		return false;
	*at += done;
	if (bytes - done > r->held_bytes.length - (*at - in_file))
		return false;
	if (done < bytes)
		memcpy((char *)to + done, r->held_bytes.data + (*at - in_file), bytes - done);
	*at += bytes - done;
	return true;
}

static int store_all(struct ts_rocprof *r, uint64_t in_file, struct ts_text *text)
{
	struct header header;
	uint64_t at = 0;
	int rc = TS_OK;

	r->js = &r->held_js;
	while (r->held_count && !rc) {
		r->held_count--;
		if (!read_at(r, &at, in_file, &header, sizeof(header)))
			return TS_EIO;
		ts_text_clear(text);
		if (!ts_text_reserve(text, header.bytes))
			return TS_ENOMEM;
		if (!read_at(r, &at, in_file, text->data, header.bytes))
			return TS_EIO;
		r->list =
			(struct ts_rocprof_list){ .section = header.section, .name = header.name };
		ts_json_init(&r->held_js, text->data, header.bytes, true);
		/* The grammar was checked before. */
		rc = ts_rocprof_read_record(r);
		if (!rc)
			ts_rocprof_store(r);
		if (!rc)
			rc = ts_writer_status(r->rows.writer, NULL);
	}
	return rc;
}

int ts_rocprof_store_held(struct ts_rocprof *r)
{
	off_t in_file = r->held < 0 ? 0 : lseek(r->held, 0, SEEK_END);
	struct ts_rocprof_list list = r->list;
	struct ts_text text = { 0 };
	int rc;

	if (!r->held_count)
		return TS_OK;
	rc = in_file < 0 ? TS_EIO : store_all(r, (uint64_t)in_file, &text);
	ts_text_release(&text);
	ts_text_clear(&r->held_bytes);
	r->held_count = 0;
	r->list = list;
	r->js = r->in.js;
	if (r->held >= 0 && (ftruncate(r->held, 0) || lseek(r->held, 0, SEEK_SET)))
		rc = rc ? rc : TS_EIO;
	if (rc == TS_EIO && !r->in.has_message) {
		ts_error_set(r->in.err, rc,
			     "input '%s': cannot read back the records buffered in $TMPDIR",
			     r->import->path);
		r->in.has_message = true;
	}
	return rc;
}

void ts_rocprof_held_release(struct ts_rocprof *r)
{
	if (r->held >= 0)
		close(r->held);
	ts_text_release(&r->held_bytes);
}
