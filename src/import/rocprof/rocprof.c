/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rocprofv3 JSON files: {"rocprofiler-sdk-tool": [process, ...]}, each with several sections in any
 * order. Reports errors with their position and keeps everything before them.
 */
#include "import/rocprof/rocprof.h"

#include <stdlib.h>

#define TOP "rocprofiler-sdk-tool"

/* What records refer to; records that come earlier are held back. */
enum {
	SEEN_METADATA = 1,
	SEEN_AGENTS = 2,
	SEEN_STRINGS = 4,
	SEEN_SYMBOLS = 8,
	SEEN_COUNTERS = 16,
	SEEN_RECORDS = 32,
	SEEN_NAMES = SEEN_METADATA | SEEN_AGENTS | SEEN_STRINGS | SEEN_SYMBOLS | SEEN_COUNTERS,
};

int ts_rocprof_probe(const char *data, size_t bytes)
{
	struct ts_json_string key = { 0 };
	struct ts_json js;
	bool more;

	ts_json_init(&js, data, bytes, true);
	return !ts_json_skip_bom(&js) && !ts_json_enter(&js, '{', &more) && more &&
	       !ts_json_scan_key(&js, &key) && ts_json_string_is(&key, TOP);
}

/* ---- lists ---- */

/* Calls a function for each item; skips anything that is not a list. */
static int read_list(struct ts_rocprof *r, int (*read)(void *context))
{
	bool more;
	int first, rc = ts_json_stream_peek(&r->in, &first);

	if (rc)
		return rc;
	if (first != '[')
		return ts_json_stream_skip(&r->in);
	rc = ts_json_stream_enter(&r->in, '[', &more);
	while (!rc && more) {
		rc = ts_json_stream_value(&r->in, read, r);
		if (!rc)
			rc = ts_json_stream_next(&r->in, ']', &more);
	}
	return rc;
}

/* Sections without times, item by item, so that they may be large. */
static int skip_section(struct ts_rocprof *r, bool is_lost)
{
	bool more;
	int first, rc = ts_json_stream_peek(&r->in, &first);

	if (rc || (first != '[' && first != '{'))
		return rc ? rc : ts_json_stream_skip(&r->in);
	rc = ts_json_stream_enter(&r->in, (char)first, &more);
	while (!rc && more) {
		if (first == '{')
			rc = ts_json_stream_key(&r->in);
		if (!rc)
			rc = ts_json_stream_skip(&r->in);
		if (!rc && is_lost)
			ts_entities_add_loss(r->rows.entities, &ts_rocprof_lost_section, 1);
		if (!rc)
			rc = ts_json_stream_next(&r->in, first == '[' ? ']' : '}', &more);
	}
	return rc;
}

/* An object whose members are read by `member`; the key is in r->in.key. */
static int read_object(struct ts_rocprof *r, int (*member)(struct ts_rocprof *r))
{
	bool more;
	int first, rc = ts_json_stream_peek(&r->in, &first);

	if (rc)
		return rc;
	if (first != '{')
		return skip_section(r, true);
	rc = ts_json_stream_enter(&r->in, '{', &more);
	while (!rc && more) {
		rc = ts_json_stream_key(&r->in);
		if (!rc)
			rc = member(r);
		if (!rc)
			rc = ts_json_stream_next(&r->in, '}', &more);
	}
	return rc;
}

/* ---- records ---- */

static bool key_begins(const struct ts_rocprof *r, const char *text)
{
	return r->in.key.length >= strlen(text) && !memcmp(r->in.key.data, text, strlen(text));
}

static enum ts_rocprof_section section_of(const struct ts_rocprof *r)
{
	if (ts_json_stream_key_is(&r->in, "kernel_dispatch"))
		return TS_ROCPROF_SECTION_KERNEL;
	if (ts_json_stream_key_is(&r->in, "memory_copy"))
		return TS_ROCPROF_SECTION_COPY;
	if (ts_json_stream_key_is(&r->in, "memory_allocation"))
		return TS_ROCPROF_SECTION_ALLOCATION;
	if (ts_json_stream_key_is(&r->in, "counter_collection"))
		return TS_ROCPROF_SECTION_COUNTER;
	if (key_begins(r, "marker_api"))
		return TS_ROCPROF_SECTION_MARKER;
	if (key_begins(r, "pc_sample"))
		return TS_ROCPROF_SECTION_SAMPLE;
	if (r->in.key.length && ts_rocprof_is_call(r->in.key.data, r->in.key.length))
		return TS_ROCPROF_SECTION_CALL;
	return TS_ROCPROF_SECTION_OTHER;
}

static int read_record_list(struct ts_rocprof *r, bool must_wait)
{
	const char *from;
	bool more;
	int rc = ts_json_stream_enter(&r->in, '[', &more);

	while (!rc && more) {
		do {
			from = r->js->next;
			rc = must_wait ? ts_json_skip(r->js) : ts_rocprof_read_record(r);
		} while (ts_json_stream_again(&r->in, from, &rc));
		if (!rc && r->list.section == TS_ROCPROF_SECTION_KERNEL)
			r->dispatches++;
		if (!rc && must_wait)
			rc = ts_rocprof_hold(r, from, (size_t)(r->js->next - from));
		else if (!rc)
			ts_rocprof_store(r);
		if (!rc)
			rc = ts_json_stream_next(&r->in, ']', &more);
	}
	return rc;
}

static int read_records(struct ts_rocprof *r)
{
	enum ts_rocprof_section section = section_of(r);
	/* Only after the records is it known whether dispatches have records of their own. */
	unsigned int needed = SEEN_NAMES |
			      (section == TS_ROCPROF_SECTION_COUNTER ? SEEN_RECORDS : 0);
	int first, rc = ts_json_stream_peek(&r->in, &first);

	if (rc)
		return rc;
	if (first != '[')
		return skip_section(r, true);
	r->list.section = section;
	r->list.name = ts_writer_string(r->rows.writer, ts_text_cstr(&r->in.key), r->in.key.length);
	return read_record_list(r, (r->seen & needed) != needed);
}

/* ---- names ---- */

static int read_correlation_strings(struct ts_rocprof *r)
{
	if (ts_json_stream_key_is(&r->in, "external"))
		return read_list(r, ts_rocprof_read_external);
	return skip_section(r, false);
}

static int read_strings(struct ts_rocprof *r)
{
	if (ts_json_stream_key_is(&r->in, "buffer_records"))
		return read_list(r, ts_rocprof_read_kind);
	if (ts_json_stream_key_is(&r->in, "marker_api"))
		return read_list(r, ts_rocprof_read_message);
	if (ts_json_stream_key_is(&r->in, "correlation_id"))
		return read_object(r, read_correlation_strings);
	if (ts_json_stream_key_is(&r->in, "pc_sample_instructions"))
		return read_list(r, ts_rocprof_read_instruction);
	if (ts_json_stream_key_is(&r->in, "pc_sample_comments"))
		return read_list(r, ts_rocprof_read_comment);
	/* Names of callbacks, of dimensions, of other files. */
	return skip_section(r, false);
}

/* ---- processes ---- */

static int read_section(struct ts_rocprof *r)
{
	if (ts_json_stream_key_is(&r->in, "metadata")) {
		r->seen |= SEEN_METADATA;
		return ts_json_stream_value(&r->in, ts_rocprof_read_metadata, r);
	}
	if (ts_json_stream_key_is(&r->in, "agents")) {
		r->seen |= SEEN_AGENTS;
		return read_list(r, ts_rocprof_read_agent);
	}
	if (ts_json_stream_key_is(&r->in, "counters")) {
		r->seen |= SEEN_COUNTERS;
		return read_list(r, ts_rocprof_read_counter);
	}
	if (ts_json_stream_key_is(&r->in, "strings")) {
		r->seen |= SEEN_STRINGS;
		return read_object(r, read_strings);
	}
	if (ts_json_stream_key_is(&r->in, "kernel_symbols")) {
		r->seen |= SEEN_SYMBOLS;
		return read_list(r, ts_rocprof_read_symbol);
	}
	if (ts_json_stream_key_is(&r->in, "buffer_records")) {
		int rc = read_object(r, read_records);

		r->seen |= SEEN_RECORDS;
		return rc;
	}
	if (ts_json_stream_key_is(&r->in, "callback_records"))
		return read_object(r, read_records);
	/* Code descriptions and sums: not part of the timeline. */
	if (ts_json_stream_key_is(&r->in, "code_objects") ||
	    ts_json_stream_key_is(&r->in, "host_functions") ||
	    ts_json_stream_key_is(&r->in, "summary"))
		return skip_section(r, false);
	return skip_section(r, true);
}

static int read_process(struct ts_rocprof *r)
{
	int rc = read_object(r, read_section);

	if (!rc)
		rc = ts_rocprof_store_held(r);
	if (rc)
		return rc;
	ts_rocprof_next_process(r);
	r->index++;
	return TS_OK;
}

static int read_processes(struct ts_rocprof *r)
{
	bool more;
	int rc = ts_json_stream_enter(&r->in, '[', &more);

	while (!rc && more) {
		rc = read_process(r);
		if (!rc)
			rc = ts_json_stream_next(&r->in, ']', &more);
	}
	return rc;
}

static int read_top(struct ts_rocprof *r)
{
	int first, rc;

	if (!ts_json_stream_key_is(&r->in, TOP))
		return skip_section(r, true);
	rc = ts_json_stream_peek(&r->in, &first);
	/* Older versions wrote a single process without a list. */
	if (rc || first == '[')
		return rc ? rc : read_processes(r);
	return read_process(r);
}

static int read_file(struct ts_rocprof *r)
{
	int first, rc = ts_json_stream_bom(&r->in);

	if (!rc)
		rc = ts_json_stream_peek(&r->in, &first);
	if (!rc && first != '{')
		rc = ts_json_bad(r->js, r->js->next,
				 "expected the top-level object of rocprofv3 JSON");
	if (!rc)
		rc = read_object(r, read_top);
	if (rc)
		return rc;
	/* Only white space may follow. */
	rc = ts_json_stream_peek(&r->in, &first);
	if (ts_json_stream_is_cut(&r->in, rc))
		return TS_OK;
	return rc ? rc
		  : ts_json_bad(r->js, r->js->next, "unexpected data after the end of the trace");
}

/* ---- the file ---- */

/* Stores held records of the process; also after an error, which counts. */
static int finish(struct ts_rocprof *r, int rc)
{
	int end;

	if (rc == TS_ENOMEM || ts_writer_status(r->rows.writer, NULL))
		return rc;
	if (rc == TS_EFORMAT || rc == TS_ECANCELED) {
		struct ts_error *err = r->in.err;

		r->in.err = NULL;
		ts_rocprof_store_held(r);
		r->in.err = err;
		ts_entities_add_loss(r->rows.entities, &ts_loss_rest, 1);
	}
	ts_entities_finish(r->rows.entities);
	end = ts_writer_status(r->rows.writer, r->in.err);
	return rc ? rc : end;
}

static void release(struct ts_rocprof *r)
{
	ts_rocprof_held_release(r);
	ts_rocprof_info_release(r);
	ts_rocprof_rows_release(&r->rows);
	ts_entities_release(&r->entities);
	ts_json_stream_release(&r->in);
	ts_text_release(&r->scratch);
	ts_text_release(&r->other);
	free(r->values);
	free(r);
}

int ts_rocprof_run(struct ts_import *import, struct ts_error *err)
{
	struct ts_rocprof *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return ts_error_set(err, TS_ENOMEM, "input '%s': out of memory", import->path);
	r->import = import;
	r->js = &import->stream.js;
	r->held = -1;
	ts_json_stream_init(&r->in, import, err);
	rc = ts_entities_start(&r->entities, import, err);
	ts_rocprof_rows_init(&r->rows, &r->entities);
	if (!rc) {
		rc = read_file(r);
		if (rc)
			rc = ts_json_stream_fail(&r->in, rc);
		rc = finish(r, rc);
	}
	release(r);
	return rc;
}
