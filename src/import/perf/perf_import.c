/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux perf: parses the output of perf script line by line. An event is a header line and the
 * lines of its stack, innermost frame first; it is added when the next one begins.
 */
#include "import/perf/perf_import.h"

#include <stdlib.h>
#include <string.h>

#include "import/common/text_lines.h"
#include "import/import.h"

/* Lines without an event that may precede the first event. */
#define PROBE_LINES 4096
#define LONGEST_LINE ((size_t)1 << 16)

static const struct ts_loss_kind loss_line = {
	.what = "line",
	.one = "line not recognized as perf script output",
	.many = "lines not recognized as perf script output",
};
static const struct ts_loss_kind loss_time = {
	.what = "event",
	.one = "event whose time exceeds 64 bits",
	.many = "events whose time exceeds 64 bits",
};
static const struct ts_loss_kind loss_args = {
	.what = "argument",
	.one = "argument beyond the limit of a row",
	.many = "arguments beyond the limit of a row",
};

/* ---- is it perf script's? ---- */

int ts_perf_probe(const char *data, size_t bytes)
{
	const char *end = data + bytes, *line;
	struct ts_perf_head head;
	size_t length;

	for (int i = 0; i < PROBE_LINES && (line = ts_probe_next_line(&data, end, &length)); i++) {
		if (length > LONGEST_LINE)
			return 0;
		if (length && line[0] != '#')
			return ts_perf_parse_head(line, length, &head) && ts_perf_is_sure(&head);
		/* The header of a perf.data file: nothing else writes it. */
		if (length > 14 && !memcmp(line, "# captured on", 13))
			return 1;
	}
	return 0;
}

/* ---- lines ---- */

static void begin_event(struct ts_perf *p, const struct ts_perf_head *head)
{
	ts_perf_end(p);
	p->is_skipping = head->is_time_too_large;
	if (head->is_time_too_large)
		ts_entities_add_loss(&p->entities, &loss_time, 1);
	else if (head->record.length)
		ts_perf_record(p, head);
	else
		ts_perf_begin(p, head);
}

/* False: not perf script output. */
static bool take_line(struct ts_perf *p, struct ts_perf_text line)
{
	struct ts_perf_text text = ts_perf_trim(line.text, line.length);
	bool is_indented = line.length && (line.text[0] == ' ' || line.text[0] == '\t');
	struct ts_perf_head head;

	if (!text.length) {
		ts_perf_end(p);
		p->is_skipping = false;
		return true;
	}
	if (line.text[0] == '#') {
		ts_perf_comment(p, text);
		return true;
	}
	/* Most lines are frames; nothing else begins with a tab. */
	if (line.text[0] == '\t' && ts_perf_continue(p, text))
		return true;
	if (ts_perf_parse_head(line.text, line.length, &head)) {
		begin_event(p, &head);
		return true;
	}
	return is_indented && (p->is_skipping || ts_perf_continue(p, text));
}

static int read_lines(struct ts_perf *p, struct ts_error *err)
{
	struct ts_text_line line;

	while (!p->rc && !(p->rc = ts_import_next_line(p->import, &line, err)) && line.text) {
		/* A truncated line may be a shorter name of something else: ignored. */
		if (!line.is_complete) {
			p->open.is_open = false;
			return ts_import_cut(
				p->import, ts_input_stream_at(&p->import->stream, line.text), err);
		}
		if (take_line(p, (struct ts_perf_text){ line.text, line.length }))
			p->lines++;
		else
			ts_entities_add_loss(&p->entities, &loss_line, 1);
	}
	if (p->rc == TS_ENOMEM)
		ts_error_set(err, TS_ENOMEM, "input '%s': out of memory", p->import->path);
	if (p->rc)
		return p->rc;
	ts_perf_end(p);
	if (!p->lines)
		return ts_import_bad(p->import, 0, "no line looks like perf script output", err);
	return ts_writer_status(p->writer, err);
}

int ts_perf_run(struct ts_import *import, struct ts_error *err)
{
	struct ts_perf *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return ts_error_set(err, TS_ENOMEM, "input '%s': out of memory", import->path);
	p->import = import;
	p->writer = import->writer;
	ts_perf_frames_init(p);
	rc = ts_entities_start(&p->entities, import, err);
	ts_perf_rows_init(p);
	if (!rc)
		rc = read_lines(p, err);
	if (rc == TS_EFORMAT || rc == TS_ECANCELED)
		ts_entities_add_loss(&p->entities, &ts_loss_rest, 1);
	if (p->args.left_out)
		ts_entities_add_loss(&p->entities, &loss_args, p->args.left_out);
	if (rc != TS_ENOMEM && !ts_writer_status(p->writer, NULL))
		ts_entities_finish(&p->entities);
	ts_entities_release(&p->entities);
	ts_perf_rows_release(p);
	ts_perf_frames_release(p);
	free(p);
	return rc;
}
