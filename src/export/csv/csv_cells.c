/* SPDX-License-Identifier: Apache-2.0 */
/* Cache of the texts of ids; see csv_cells.h. */
#include "export/csv/csv_cells.h"

#include <stdlib.h>
#include <string.h>

#include "trace/json_row.h"
#include "trace/stack_lists.h"

/* Direct-mapped: a later id replaces an earlier one in its slot. */
#define SLOTS ((size_t)1 << 14)
#define KEPT_BYTES ((size_t)32 << 20)
#define LONGEST_KEPT ((size_t)4096)

struct ts_csv_slot {
	int64_t id; /* 0: free */
	size_t at;
	size_t length;
};

int ts_csv_cells_init(struct ts_csv_cells *cells, struct ts_reader *reader, struct ts_error *err)
{
	*cells = (struct ts_csv_cells){ .reader = reader };
	cells->slots = calloc(SLOTS * TS_CSV_KINDS, sizeof(*cells->slots));
	return cells->slots ? TS_OK : ts_error_set(err, TS_ENOMEM, "no memory");
}

void ts_csv_cells_release(struct ts_csv_cells *cells)
{
	free(cells->slots);
	ts_text_release(&cells->texts);
	ts_text_release(&cells->scratch);
}

/* ---- texts ---- */

void ts_csv_put_inner(struct ts_text *out, const char *text, size_t length)
{
	const char *end = text + length;

	while (text < end) {
		const char *quote = memchr(text, '"', (size_t)(end - text));
		size_t plain = quote ? (size_t)(quote - text) + 1 : (size_t)(end - text);

		ts_text_append(out, text, plain);
		if (quote)
			ts_text_append_char(out, '"');
		text += plain;
	}
}

/* Leading and trailing spaces are quoted too: some programs drop them otherwise. */
static bool needs_quotes(const char *text, size_t length)
{
	if (length && (text[0] == ' ' || text[length - 1] == ' '))
		return true;
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == ',' || c == '"' || c < 0x20 || c == 0x7f)
			return true;
	}
	return false;
}

/* Most CSV readers end a text at a NUL, or reject the file. */
static void put_without_nul(struct ts_text *out, const char *text, size_t length)
{
	const char *end = text + length;

	while (text < end) {
		const char *nul = memchr(text, 0, (size_t)(end - text));
		size_t plain = nul ? (size_t)(nul - text) : (size_t)(end - text);

		ts_csv_put_inner(out, text, plain);
		if (nul)
			ts_text_append_str(out, "\xef\xbf\xbd");
		text += plain + (nul != NULL);
	}
}

static void put_valid(struct ts_text *out, const char *text, size_t length)
{
	if (!needs_quotes(text, length)) {
		ts_text_append(out, text, length);
		return;
	}
	ts_text_append_char(out, '"');
	put_without_nul(out, text, length);
	ts_text_append_char(out, '"');
}

void ts_csv_put_text(struct ts_text *out, const char *text, size_t length)
{
	TS_SCOPED(ts_text) valid = { 0 };

	if (ts_utf8_valid(text, length)) {
		put_valid(out, text, length);
		return;
	}
	ts_utf8_sanitize(&valid, text, length);
	put_valid(out, valid.data, valid.length);
	out->failed |= valid.failed;
}

/* ---- what stands beside ids ---- */

static void put_string(struct ts_csv_cells *cells, struct ts_text *out, int64_t string)
{
	struct ts_string text = ts_reader_string(cells->reader, string);

	ts_csv_put_text(out, text.data, text.length);
}

/* A number, or the text of a source without numbers. */
static void put_number(struct ts_csv_cells *cells, struct ts_text *out, int64_t number,
		       int64_t text)
{
	ts_text_append_char(out, ',');
	if (number != TS_ABSENT)
		ts_text_append_int(out, number);
	else if (text)
		put_string(cells, out, text);
}

static void put_name(struct ts_csv_cells *cells, struct ts_text *out, int64_t name)
{
	ts_text_append_char(out, ',');
	if (name)
		put_string(cells, out, name);
}

static void put_pid(struct ts_csv_cells *cells, struct ts_text *out, int64_t id)
{
	const struct ts_process_row *row = ts_reader_entity(cells->reader, TS_TABLE_PROCESS, id);

	put_number(cells, out, row ? row->pid : TS_ABSENT, row ? row->pid_text : 0);
}

static void put_process(struct ts_csv_cells *cells, struct ts_text *out, int64_t id)
{
	const struct ts_process_row *row = ts_reader_entity(cells->reader, TS_TABLE_PROCESS, id);

	put_pid(cells, out, id);
	put_name(cells, out, row ? row->name : 0);
}

static void put_thread(struct ts_csv_cells *cells, struct ts_text *out, int64_t id)
{
	const struct ts_thread_row *row = ts_reader_entity(cells->reader, TS_TABLE_THREAD, id);

	put_pid(cells, out, row ? row->process : 0);
	put_number(cells, out, row ? row->tid : TS_ABSENT, row ? row->tid_text : 0);
	put_name(cells, out, row ? row->name : 0);
}

static void put_device(struct ts_csv_cells *cells, struct ts_text *out, int64_t id)
{
	const struct ts_device_row *row = ts_reader_entity(cells->reader, TS_TABLE_DEVICE, id);

	put_number(cells, out, row ? row->number : TS_ABSENT, 0);
	put_name(cells, out, row ? row->name : 0);
}

static void put_stream(struct ts_csv_cells *cells, struct ts_text *out, int64_t id)
{
	const struct ts_stream_row *row = ts_reader_entity(cells->reader, TS_TABLE_STREAM, id);

	put_number(cells, out, row ? row->number : TS_ABSENT, 0);
}

static void put_source(struct ts_csv_cells *cells, struct ts_text *out, int64_t id)
{
	const struct ts_source_row *row = ts_reader_entity(cells->reader, TS_TABLE_SOURCE, id);

	put_name(cells, out, row ? row->name : 0);
}

static void put_mapping(struct ts_csv_cells *cells, struct ts_text *out, int64_t id)
{
	const struct ts_mapping_row *row = ts_reader_entity(cells->reader, TS_TABLE_MAPPING, id);

	put_name(cells, out, row ? row->path : 0);
}

static void put_frame(struct ts_csv_cells *cells, struct ts_text *out, int64_t id)
{
	ts_text_append_char(out, ',');
	if (!id)
		return;
	ts_text_clear(&cells->scratch);
	ts_frame_append_function(cells->reader, &cells->scratch, id);
	ts_csv_put_text(out, cells->scratch.data, cells->scratch.length);
}

static void put_stack(struct ts_csv_cells *cells, struct ts_text *out, int64_t id)
{
	const struct ts_stack_row *row = id ? ts_reader_entity(cells->reader, TS_TABLE_STACK, id)
					    : NULL;

	put_frame(cells, out, row ? row->frame : 0);
}

/* ---- JSON ---- */

static void put_json(struct ts_csv_cells *cells, struct ts_text *out, int64_t string)
{
	ts_text_clear(&cells->scratch);
	ts_json_row_raw(cells->reader, &cells->scratch, string);
	ts_csv_put_text(out, cells->scratch.data, cells->scratch.length);
}

static void put_inner_json(struct ts_csv_cells *cells, struct ts_text *out, int64_t string)
{
	ts_text_clear(&cells->scratch);
	ts_json_row_raw(cells->reader, &cells->scratch, string);
	ts_csv_put_inner(out, cells->scratch.data, cells->scratch.length);
}

static void put_inner_string(struct ts_csv_cells *cells, struct ts_text *out, int64_t string)
{
	ts_text_clear(&cells->scratch);
	ts_json_row_string(cells->reader, &cells->scratch, string);
	ts_csv_put_inner(out, cells->scratch.data, cells->scratch.length);
}

/* ---- one table of all ---- */

static const struct {
	const char *table; /* NULL: no ids of rows */
	const char *names;
	void (*put)(struct ts_csv_cells *cells, struct ts_text *out, int64_t id);
} kinds[TS_CSV_KINDS] = {
	[TS_CSV_STRING] = { NULL, "", put_string },
	[TS_CSV_JSON] = { NULL, "", put_json },
	[TS_CSV_INNER_STRING] = { NULL, "", put_inner_string },
	[TS_CSV_INNER_JSON] = { NULL, "", put_inner_json },
	[TS_CSV_SOURCE] = { "source", "name", put_source },
	[TS_CSV_PROCESS] = { "process", "pid name", put_process },
	[TS_CSV_THREAD] = { "thread", "pid tid name", put_thread },
	[TS_CSV_DEVICE] = { "device", "number name", put_device },
	[TS_CSV_STREAM] = { "stream", "number", put_stream },
	[TS_CSV_MAPPING] = { "mapping", "path", put_mapping },
	[TS_CSV_FRAME] = { "frame", "function", put_frame },
	[TS_CSV_STACK] = { "stack", "function", put_stack },
};

const char *ts_csv_beside(const char *table, enum ts_csv_kind *ret_kind)
{
	for (unsigned int kind = 0; kind < TS_CSV_KINDS; kind++) {
		if (kinds[kind].table && !strcmp(kinds[kind].table, table)) {
			*ret_kind = (enum ts_csv_kind)kind;
			return kinds[kind].names;
		}
	}
	return "";
}

static void keep(struct ts_csv_cells *cells, struct ts_csv_slot *slot, int64_t id, const char *text,
		 size_t length)
{
	if (length > LONGEST_KEPT)
		return;
	if (cells->texts.length + length > KEPT_BYTES) {
		ts_text_clear(&cells->texts);
		memset(cells->slots, 0, SLOTS * TS_CSV_KINDS * sizeof(*cells->slots));
	}
	*slot = (struct ts_csv_slot){ .id = id, .at = cells->texts.length, .length = length };
	ts_text_append(&cells->texts, text, length);
	if (ts_text_status(&cells->texts))
		slot->id = 0;
}

void ts_csv_put(struct ts_csv_cells *cells, struct ts_text *out, enum ts_csv_kind kind, int64_t id)
{
	struct ts_csv_slot *slot = &cells->slots[kind * SLOTS + ((uint64_t)id & (SLOTS - 1))];
	size_t before = out->length;

	if (slot->id == id && id) {
		ts_text_append(out, cells->texts.data + slot->at, slot->length);
		return;
	}
	kinds[kind].put(cells, out, id);
	out->failed |= cells->scratch.failed;
	if (id && !ts_text_status(out))
		keep(cells, slot, id, out->data + before, out->length - before);
}
