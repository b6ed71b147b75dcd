/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chrome trace-event JSON files: array or object form, read one value at a time. Reports errors
 * with their position and keeps everything before them.
 */
#include "import/chrome/chrome_import.h"

#include "import/import.h"
#include "model/kineto_names.h"

int ts_chrome_probe(const char *data, size_t bytes)
{
	struct ts_json js;
	int first;

	ts_json_init(&js, data, bytes, true);
	if (ts_json_skip_bom(&js))
		return 0;
	first = ts_json_peek(&js);
	return first == '[' || first == '{';
}

/* Bytes searched for signs of Kineto. */
#define PROBE_BYTES ((size_t)64 << 10)

int ts_kineto_probe(const char *data, size_t bytes)
{
	struct ts_json js;
	struct ts_json_string key = { 0 };
	bool more;

	ts_json_init(&js, data, TS_MIN(bytes, PROBE_BYTES), true);
	if (ts_json_skip_bom(&js) || ts_json_enter(&js, '{', &more) || !more ||
	    ts_json_scan_key(&js, &key) || ts_json_string_is(&key, "tracesmith"))
		return 0;
	return ts_kineto_is_in(data, (size_t)(js.end - data));
}

/* Reads one value with a function that consumes all of it or nothing. */
static int read_value(struct ts_chrome *c, int (*read)(struct ts_chrome *c))
{
	const char *from;
	int rc;

	do {
		from = c->js->next;
		rc = read(c);
	} while (ts_json_stream_again(&c->in, from, &rc));
	return rc;
}

static bool key_is(const struct ts_chrome *c, const char *name)
{
	return ts_json_stream_key_is(&c->in, name);
}

/* ---- lists of events ---- */

static int read_events(struct ts_chrome *c,
		       int (*store)(struct ts_chrome *, struct ts_chrome_event *))
{
	const char *from;
	bool more;
	int rc = c->native.active ? TS_OK : ts_chrome_start_source(c), first;

	if (!rc)
		rc = ts_json_stream_enter(&c->in, '[', &more);
	while (!rc && more) {
		do {
			from = c->js->next;
			rc = ts_chrome_read_event(c, &c->event);
		} while (ts_json_stream_again(&c->in, from, &rc));
		if (TS_UNLIKELY(ts_json_stream_is_cut(&c->in, rc)))
			c->cut_event = true;
		if (TS_LIKELY(!rc))
			rc = store(c, &c->event);
		if (TS_LIKELY(!rc))
			rc = ts_json_stream_next(&c->in, ']', &more);
		/* A trailing comma is common: programs that stream events leave it. */
		if (!rc && more && (rc = ts_json_stream_peek(&c->in, &first)) == TS_OK &&
		    first == ']') {
			c->js->next++;
			more = false;
		}
	}
	return rc;
}

/* The array form may end between any two events: its writer may have been killed. */
static int read_array(struct ts_chrome *c)
{
	int rc = read_events(c, ts_chrome_store);

	if (!ts_json_stream_is_cut(&c->in, rc))
		return rc;
	if (c->cut_event)
		ts_chrome_lose(c, TS_CHROME_LOSS_CUT, 1);
	c->js->next = c->js->end;
	return TS_OK;
}

/* ---- the object form ---- */

static int read_stack_frames(struct ts_chrome *c)
{
	bool more;
	int rc = ts_json_stream_enter(&c->in, '{', &more);

	while (!rc && more) {
		rc = read_value(c, ts_chrome_read_frame);
		if (!rc)
			rc = ts_json_stream_next(&c->in, '}', &more);
	}
	if (rc)
		return rc;
	c->stacks.read = true;
	ts_chrome_store_held_samples(c);
	return TS_OK;
}

static int read_native_table(struct ts_chrome *c)
{
	const struct ts_table_info *info;
	const char *from;
	bool more;
	int table = ts_table_by_name(ts_text_cstr(&c->in.key)), rc;

	info = table < 0 ? NULL : ts_table_info((uint32_t)table);
	if (!info)
		return ts_json_stream_skip(&c->in);
	rc = ts_json_stream_enter(&c->in, '[', &more);
	while (!rc && more) {
		do {
			from = c->js->next;
			rc = ts_chrome_read_native_row(c, info);
		} while (ts_json_stream_again(&c->in, from, &rc));
		if (!rc)
			rc = ts_json_stream_next(&c->in, ']', &more);
	}
	return rc;
}

static int read_native_rows(struct ts_chrome *c)
{
	bool more;
	int rc = ts_json_stream_enter(&c->in, '{', &more);

	while (!rc && more) {
		rc = ts_json_stream_key(&c->in);
		if (!rc)
			rc = read_native_table(c);
		if (!rc)
			rc = ts_json_stream_next(&c->in, '}', &more);
	}
	return rc;
}

static int check_format(struct ts_chrome *c)
{
	struct ts_json_number number = { 0 };
	int rc = ts_json_scan_number(c->js, &number);

	if (rc)
		return rc;
	if (number.kind == TS_JSON_INT && number.integer <= 1)
		return TS_OK;
	c->in.has_message = true;
	return ts_error_set(c->in.err, TS_EVERSION,
			    "input '%s': exported by a newer TraceSmith (format %.*s); use that "
			    "version to import it",
			    c->import->path, (int)TS_MIN(number.length, (size_t)32), number.text);
}

/* The "tracesmith" member, which is the first one in TraceSmith exports. */
static int read_native(struct ts_chrome *c)
{
	bool more;
	int rc = ts_json_stream_enter(&c->in, '{', &more);

	c->native.active = true;
	c->import->result.format = "tracesmith";
	ts_native_rows_init(&c->native.shared, c->writer);
	while (!rc && more) {
		rc = ts_json_stream_key(&c->in);
		if (!rc && key_is(c, "format"))
			rc = read_value(c, check_format);
		else if (!rc && key_is(c, "rows"))
			rc = read_native_rows(c);
		else if (!rc)
			rc = ts_json_stream_skip(&c->in);
		if (!rc)
			rc = ts_json_stream_next(&c->in, '}', &more);
	}
	return rc ? rc : ts_chrome_add_native_rows(c);
}

/* What the members of an object have shown it to be. */
struct content {
	bool is_trace;
	bool has_schema, has_nodes, has_graph; /* of an execution trace */
};

static int read_member(struct ts_chrome *c, bool is_first, struct content *content)
{
	int rc = ts_json_stream_key(&c->in), first;

	if (!rc)
		rc = ts_json_stream_peek(&c->in, &first);
	if (rc)
		return rc;
	if (first == '{' && is_first && key_is(c, "tracesmith")) {
		content->is_trace = true;
		return read_native(c);
	}
	if (first == '[' && key_is(c, "traceEvents")) {
		content->is_trace = true;
		if (c->native.active)
			ts_chrome_shift_times(c);
		return read_events(c, ts_chrome_store);
	}
	if (first == '[' && key_is(c, "samples")) {
		content->is_trace = true;
		return read_events(c, ts_chrome_store_sample);
	}
	if (first == '{' && key_is(c, "stackFrames"))
		return read_stack_frames(c);
	content->has_schema |= first == '"' && key_is(c, "schema");
	content->has_nodes |= first == '[' && key_is(c, "nodes");
	content->has_graph |= first == '[' && key_is(c, "workload_graph");
	return read_value(c, ts_chrome_read_top);
}

static int read_object(struct ts_chrome *c)
{
	struct content content = { 0 };
	bool more, is_first = true;
	int rc = ts_json_stream_enter(&c->in, '{', &more);

	while (!rc && more) {
		rc = read_member(c, is_first, &content);
		is_first = false;
		if (!rc)
			rc = ts_json_stream_next(&c->in, '}', &more);
	}
	if (rc || content.is_trace)
		return rc;
	c->in.has_message = true;
	if (content.has_graph || (content.has_schema && content.has_nodes))
		return ts_error_set(
			c->in.err, TS_EFORMAT,
			"input '%s': an execution trace of PyTorch (Chakra): a graph of operators, "
			"not a timeline; import what torch.profiler's export_chrome_trace() writes",
			c->import->path);
	return ts_error_set(
		c->in.err, TS_EFORMAT,
		"input '%s': JSON without \"traceEvents\": not a Chrome or Kineto trace",
		c->import->path);
}

/* ---- the file ---- */

static int read_file(struct ts_chrome *c)
{
	int first, rc;

	rc = ts_json_stream_bom(&c->in);
	if (!rc)
		rc = ts_json_stream_peek(&c->in, &first);
	if (rc)
		return rc;
	rc = first == '[' ? read_array(c) : read_object(c);
	if (rc)
		return rc;
	/* Only white space may follow. */
	rc = ts_json_stream_peek(&c->in, &first);
	if (ts_json_stream_is_cut(&c->in, rc))
		return TS_OK;
	return rc ? rc
		  : ts_json_bad(c->js, c->js->next, "unexpected data after the end of the trace");
}

/*
 * Flushes what waited for the end of the file; also after an error, so that the rows so far are
 * complete.
 */
static int finish(struct ts_chrome *c)
{
	int rc = ts_chrome_finish_pairs(c);

	ts_chrome_store_held_samples(c);
	ts_chrome_write_changed(c);
	ts_chrome_write_losses(c);
	c->import->result.events = c->events;
	return rc;
}

static int fail(struct ts_chrome *c, int rc)
{
	c->import->result.events = c->events;
	return ts_json_stream_fail(&c->in, rc);
}

static void release(struct ts_chrome *c)
{
	ts_chrome_args_release(c);
	ts_chrome_entities_release(c);
	ts_chrome_pairs_release(c);
	ts_chrome_stacks_release(c);
	ts_chrome_profiles_release(c);
	ts_chrome_native_release(c);
	ts_text_release(&c->scratch);
	ts_text_release(&c->other);
	ts_json_stream_release(&c->in);
	free(c);
}

int ts_chrome_run(struct ts_import *import, struct ts_error *err)
{
	struct ts_chrome *c = calloc(1, sizeof(*c));
	int rc, end;

	if (!c)
		return ts_error_set(err, TS_ENOMEM, "input '%s': out of memory", import->path);
	c->import = import;
	c->writer = import->writer;
	c->js = &import->stream.js;
	ts_json_stream_init(&c->in, import, err);
	ts_chrome_stacks_init(c);
	ts_chrome_native_init(c);
	rc = ts_chrome_entities_init(c);
	if (!rc)
		rc = ts_chrome_args_init(c);
	if (!rc)
		rc = read_file(c);
	if (rc)
		rc = fail(c, rc);
	if (rc == TS_EFORMAT || rc == TS_ECANCELED)
		ts_chrome_lose(c, TS_CHROME_LOSS_REST, 1);
	/* The first error counts; cleanup must not hide it. */
	if (rc != TS_ENOMEM && !ts_writer_status(c->writer, NULL)) {
		end = finish(c);
		if (end && !rc)
			rc = fail(c, end);
	}
	release(c);
	return rc;
}
