/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks, the text that flame graphs are made of: a stack and a number per line. See
 * docs/formats/stacks.md for the mapping.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "import/common/entities.h"
#include "import/common/frame_file.h"
#include "import/common/text_lines.h"
#include "import/import.h"

/* A file that begins with this many lines of folded stacks is one. */
#define PROBE_LINES 64

static const struct ts_loss_kind loss_line = {
	.what = "line",
	.one = "line that is not a stack and a number",
	.many = "lines that are not a stack and a number",
};

struct folded_import {
	struct ts_import *import;
	struct ts_entities entities;
	struct ts_sample_row row;
	struct ts_strmap frames; /* texts of frames to index */
	uint32_t *frame_ids;
	size_t frame_capacity;
};

/* ---- lines ---- */

struct folded_line {
	const char *stack;
	size_t length;
	int64_t count;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* "outer;inner 12": the number follows the last blank, since names have blanks, too. */
static bool parse_line(const char *text, size_t length, struct folded_line *ret_line)
{
	const char *number;
	struct ts_json js;

	while (length && is_blank(text[length - 1]))
		length--;
	number = text + length;
	while (number > text && !is_blank(number[-1]))
		number--;
	ts_json_init(&js, number, (size_t)(text + length - number), true);
	/* flamegraph.pl allows fractions. */
	if (number == text + length || ts_json_scan_decimal(&js, 0, &ret_line->count) ||
	    js.next != text + length)
		return false;
	length = (size_t)(number - text);
	while (length && is_blank(text[length - 1]))
		length--;
	ret_line->stack = text;
	ret_line->length = length;
	return length != 0;
}

static bool is_comment(const char *text, size_t length)
{
	return !length || text[0] == '#' || (length == 1 && text[0] == '\r');
}

int ts_folded_probe(const char *data, size_t bytes)
{
	const char *end = data + bytes, *line;
	struct folded_line parsed;
	bool has_stack = false;
	size_t length;

	for (int i = 0; i < PROBE_LINES && (line = ts_probe_next_line(&data, end, &length)); i++) {
		if (is_comment(line, length))
			continue;
		if (!parse_line(line, length, &parsed))
			/* The rest of a line may not be among the bytes. */
			return has_stack && line + length == end;
		has_stack |= memchr(parsed.stack, ';', parsed.length) != NULL;
	}
	return has_stack;
}

/* ---- rows ---- */

/* "function (file:line)", as in our exports and py-spy's, or any other text: a name. */
static uint32_t make_frame(struct folded_import *f, const char *text, size_t length)
{
	struct ts_frame_row row = ts_frame_none;
	struct ts_frame_file file;

	ts_frame_file_split(text, length, &file);
	row.kind = ts_frame_file_kind(file.path, file.path_length);
	if (file.name_length)
		row.name = ts_import_string(f->import, text, file.name_length);
	if (file.path_length)
		row.file = ts_import_string(f->import, file.path, file.path_length);
	row.line = file.line;
	return ts_writer_frame(f->import->writer, &row);
}

/* 0: out of memory, or the writer has failed. */
static uint32_t find_frame(struct folded_import *f, const char *text, size_t length)
{
	bool is_new = false;
	uint32_t index = ts_strmap_intern(&f->frames, text, length, &is_new);

	if (index == TS_STRMAP_NONE ||
	    (is_new && ts_grow_array((void **)&f->frame_ids, &f->frame_capacity, (size_t)index + 1,
				     sizeof(*f->frame_ids))))
		return 0;
	if (is_new)
		f->frame_ids[index] = make_frame(f, text, length);
	return f->frame_ids[index];
}

static int add_line(struct folded_import *f, const struct folded_line *line)
{
	const char *at = line->stack, *end = at + line->length;

	f->row.stack = 0;
	f->row.weight = line->count;
	while (at <= end) {
		const char *stop = at < end ? memchr(at, ';', (size_t)(end - at)) : NULL;
		uint32_t frame;

		stop = stop ? stop : end;
		frame = find_frame(f, at, (size_t)(stop - at));
		if (!frame)
			return TS_ENOMEM;
		f->row.stack = ts_writer_stack(f->import->writer, (uint32_t)f->row.stack, frame);
		at = stop + 1;
	}
	ts_writer_add(f->import->writer, TS_TABLE_SAMPLE, &f->row, NULL);
	f->import->result.events++;
	return TS_OK;
}

static int read_lines(struct folded_import *f, struct ts_error *err)
{
	struct folded_line parsed;
	struct ts_text_line line;
	int rc;

	while (!(rc = ts_import_next_line(f->import, &line, err)) && line.text) {
		if (is_comment(line.text, line.length))
			continue;
		if (!parse_line(line.text, line.length, &parsed))
			ts_entities_add_loss(&f->entities, &loss_line, 1);
		else if (add_line(f, &parsed) && !ts_writer_status(f->import->writer, NULL))
			return ts_error_set(err, TS_ENOMEM, "input '%s': out of memory",
					    f->import->path);
	}
	if (!rc && !f->import->result.events)
		return ts_import_bad(f->import, 0, "no line is a stack and a number", err);
	return rc ? rc : ts_writer_status(f->import->writer, err);
}

/* The stacks are of no thread in particular, but samples need one. */
static int start(struct folded_import *f, struct ts_error *err)
{
	int rc = ts_entities_start(&f->entities, f->import, err);
	int64_t process;

	if (rc)
		return rc;
	process = ts_entities_process_of(&f->entities, 0, 0, TS_ABSENT);
	f->row = ts_sample_none;
	f->row.start = 0;
	f->row.thread = process ? ts_entities_thread(&f->entities, process, 0, TS_ABSENT) : 0;
	f->row.name = ts_import_string(f->import, "samples/count", 13);
	if (!f->row.thread && !ts_writer_status(f->import->writer, err))
		return ts_error_set(err, TS_ENOMEM, "input '%s': out of memory", f->import->path);
	return ts_writer_status(f->import->writer, err);
}

int ts_folded_run(struct ts_import *import, struct ts_error *err)
{
	struct folded_import f = { .import = import };
	int rc = start(&f, err);

	ts_strmap_init(&f.frames, 0);
	if (!rc)
		rc = read_lines(&f, err);
	if (rc == TS_EFORMAT || rc == TS_ECANCELED)
		ts_entities_add_loss(&f.entities, &ts_loss_rest, 1);
	if (rc != TS_ENOMEM && !ts_writer_status(import->writer, NULL))
		ts_entities_finish(&f.entities);
	ts_entities_release(&f.entities);
	ts_strmap_release(&f.frames);
	free(f.frame_ids);
	return rc;
}
