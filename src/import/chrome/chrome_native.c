/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads TraceSmith's extension of Chrome's format: columns by name for any table of the schema, the
 * "tracesmith" member of events, and rows of tables without Chrome events.
 */
#include "import/chrome/chrome_import.h"

/* ---- columns ---- */

static int64_t reference(struct ts_chrome *c, const char *refers, const struct ts_chrome_raw *raw)
{
	struct ts_json js = ts_chrome_reopen(raw);
	int table = ts_table_by_name(refers);
	int64_t number;
	uint32_t frame;

	/* Stacks are identified by the keys of "stackFrames". */
	if (table == TS_TABLE_STACK) {
		frame = ts_chrome_frame_key(c, raw);
		return frame ? ts_chrome_walk(c, c->stacks.frames, frame) : 0;
	}
	if (table < 0 || !ts_chrome_scan_int(&js, &number))
		return 0;
	return ts_native_rows_id(&c->native.shared, (enum ts_table_id)table, number);
}

/* An integer column. Some hold ids without being references. */
static bool int_column(struct ts_chrome *c, const struct ts_table_info *info, int column,
		       const struct ts_chrome_raw *raw, int64_t *cell)
{
	struct ts_json js = ts_chrome_reopen(raw);
	enum ts_table_id table;

	if (!ts_chrome_scan_int(&js, cell))
		return false;
	if (ts_native_rows_is_id(info, column, &table))
		*cell = ts_native_rows_id(&c->native.shared, table, *cell);
	return true;
}

static bool text_column(struct ts_chrome *c, const struct ts_column_info *column,
			const struct ts_chrome_raw *raw, int64_t *cell)
{
	struct ts_json js = ts_chrome_reopen(raw);
	struct ts_json_string text = { 0 };

	/* A value without a name in the build that wrote it. */
	if (column->type == TS_COLUMN_ENUM && ts_chrome_scan_int(&js, cell))
		return true;
	if (*raw->at != '"' || ts_json_scan_string(&js, &text))
		return false;
	if (column->type == TS_COLUMN_ENUM)
		return !ts_enum_value(column->refers, text.text, text.length, cell);
	*cell = ts_chrome_string(c, &text);
	return true;
}

static bool float_column(const struct ts_chrome_raw *raw, int64_t *cell)
{
	struct ts_json js = ts_chrome_reopen(raw);
	struct ts_json_number number = { 0 };
	double real;

	if (*raw->at == '"' || ts_json_scan_number(&js, &number))
		return false;
	real = number.kind == TS_JSON_INT ? (double)number.integer : number.real;
	memcpy(cell, &real, sizeof(real));
	return true;
}

/* Sets one column; false: invalid value. */
static bool set_column(struct ts_chrome *c, const struct ts_table_info *info, int index,
		       const struct ts_chrome_raw *raw, int64_t offset, int64_t *cell)
{
	const struct ts_column_info *column = &info->columns[index];
	struct ts_json js = ts_chrome_reopen(raw);
	enum ts_json_literal literal = TS_JSON_TRUE;
	bool is_literal = (*raw->at == 't' || *raw->at == 'f' || *raw->at == 'n') &&
			  !ts_json_scan_literal(&js, &literal);

	if (is_literal && literal == TS_JSON_NULL && column->type != TS_COLUMN_JSON) {
		*cell = column->none;
		return true;
	}
	switch (column->type) {
	case TS_COLUMN_JSON:
		*cell = ts_chrome_raw_json(c, raw);
		return true;
	case TS_COLUMN_STRING:
	case TS_COLUMN_ENUM:
		return text_column(c, column, raw, cell);
	case TS_COLUMN_REF:
		*cell = reference(c, column->refers, raw);
		return true;
	case TS_COLUMN_FLOAT:
		return float_column(raw, cell);
	case TS_COLUMN_BOOL:
		*cell = literal == TS_JSON_TRUE;
		return is_literal;
	case TS_COLUMN_TIME:
		if (!ts_chrome_scan_int(&js, cell))
			return false;
		*cell = ts_native_rows_to_clock(*cell, offset);
		return true;
	case TS_COLUMN_DURATION:
		return ts_chrome_scan_int(&js, cell) && *cell >= -1;
	case TS_COLUMN_INT:
		return int_column(c, info, index, raw, cell);
	default:
		return false;
	}
}

void ts_chrome_set_columns(struct ts_chrome *c, const struct ts_chrome_raw *object,
			   const struct ts_table_info *info, int64_t offset, int64_t *row)
{
	struct ts_json_string key = { 0 };
	struct ts_chrome_raw value = { 0 };
	bool more;
	struct ts_json js = ts_chrome_open(object, '{', &more);

	while (ts_chrome_next_member(&js, &more, &key, &value)) {
		for (int i = 0; i < info->column_count; i++) {
			const struct ts_column_info *column = &info->columns[i];

			if (!ts_chrome_is(&key, column->name))
				continue;
			if (!set_column(c, info, i, &value, offset, &row[i])) {
				row[i] = column->none;
				ts_chrome_lose(c, TS_CHROME_LOSS_MEMBER, 1);
			}
		}
	}
}

/* ---- events ---- */

/* The table that a "table" member names; -1: none. */
static int named_table(const struct ts_chrome_raw *object)
{
	struct ts_json_string key = { 0 }, text = { 0 };
	struct ts_chrome_raw value = { 0 };
	char name[32];
	bool more;
	struct ts_json js = ts_chrome_open(object, '{', &more);

	while (ts_chrome_next_member(&js, &more, &key, &value)) {
		struct ts_json at = ts_chrome_reopen(&value);

		if (!ts_json_string_is(&key, "table"))
			continue;
		if (*value.at != '"' || ts_json_scan_string(&at, &text) || !text.text ||
		    text.length >= sizeof(name))
			return -1;
		memcpy(name, text.text, text.length);
		name[text.length] = '\0';
		return ts_table_by_name(name);
	}
	return -1;
}

bool ts_chrome_native_is_drawn(const struct ts_chrome_event *event)
{
	struct ts_json js = ts_chrome_reopen(&event->native);
	struct ts_json_string key = { 0 };
	bool more;

	return !ts_json_enter(&js, '{', &more) && more && !ts_json_scan_key(&js, &key) &&
	       ts_json_string_is(&key, "drawn");
}

bool ts_chrome_native_has_no_thread(const struct ts_chrome_event *event)
{
	struct ts_json_string key = { 0 };
	struct ts_chrome_raw value = { 0 };
	bool more;
	struct ts_json js = ts_chrome_open(&event->native, '{', &more);

	while (ts_chrome_next_member(&js, &more, &key, &value))
		if (ts_json_string_is(&key, "thread"))
			return *value.at == 'n';
	return false;
}

enum ts_table_id ts_chrome_native_table(const struct ts_chrome_event *event, enum ts_table_id table)
{
	int named = named_table(&event->native);

	return named < 0 ? table : (enum ts_table_id)named;
}

void ts_chrome_native_columns(struct ts_chrome *c, const struct ts_chrome_event *event,
			      enum ts_table_id table, uint32_t thread, void *row)
{
	const struct ts_table_info *info = ts_table_info(table);
	int64_t start = *(int64_t *)row, offset;

	ts_native_rows_clock(&c->native.shared, c->threads[thread].source, &offset);
	ts_chrome_set_columns(c, &event->native, info, offset, row);
	/* An event takes its time from "ts". */
	if (*(int64_t *)row == TS_ABSENT)
		*(int64_t *)row = start;
}

/* ---- rows of tables that have no events ---- */

static int read_row_args(struct ts_chrome *c, const struct ts_chrome_raw *object,
			 struct ts_chrome_args *args)
{
	struct ts_json_string key = { 0 };
	struct ts_chrome_raw value = { 0 };
	bool more;
	int rc = TS_OK;

	ts_chrome_start_args(c, args, TS_TABLE_SLICE, 0);
	/* Arguments first, then extra members, whatever their order in the file. */
	for (int beside = 0; beside < 2 && !rc; beside++) {
		struct ts_json js = ts_chrome_open(object, '{', &more);

		while (!rc && ts_chrome_next_member(&js, &more, &key, &value)) {
			struct ts_json at = ts_chrome_reopen(&value);

			if (ts_chrome_is(&key, beside ? "beside" : "args") && *value.at == '{')
				rc = ts_chrome_read_args(c, &at, args, beside);
		}
	}
	if (rc == TS_CHROME_TOO_MANY || rc == TS_EFORMAT) {
		ts_chrome_lose(c, TS_CHROME_LOSS_MANY, 1);
		ts_chrome_start_args(c, args, TS_TABLE_SLICE, 0);
		rc = TS_OK;
	}
	return rc;
}

static bool is_storable(const struct ts_table_info *info)
{
	return info->kind == TS_KIND_EVENT || info->kind == TS_KIND_ENTITY ||
	       info->kind == TS_KIND_RECORD;
}

static int base64_digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Decodes base64; false if invalid. */
static bool decode_base64(struct ts_text *out, const struct ts_json_string *text)
{
	unsigned int bits = 0, have = 0;
	size_t length = text->length;

	while (length && text->text[length - 1] == '=')
		length--;
	for (size_t i = 0; i < length; i++) {
		int digit = base64_digit(text->text[i]);

		if (digit < 0)
			return false;
		bits = bits << 6 | (unsigned int)digit;
		have += 6;
		if (have >= 8) {
			have -= 8;
			ts_text_append_char(out, (char)(bits >> have));
		}
	}
	return true;
}

/* A row of `blob`. Its number in the file is its position, unless it says otherwise. */
static int store_blob(struct ts_chrome *c, const struct ts_chrome_raw *object)
{
	struct ts_json_string key = { 0 }, text = { 0 };
	struct ts_chrome_raw value = { 0 };
	int64_t id = ++c->native.blobs, previous = 0;
	bool more, has_data = false, is_good = false;
	int rc = TS_OK;
	struct ts_json js = ts_chrome_open(object, '{', &more);

	ts_text_clear(&c->scratch);
	while (ts_chrome_next_member(&js, &more, &key, &value)) {
		struct ts_json at = ts_chrome_reopen(&value);

		if (ts_json_string_is(&key, "id"))
			ts_chrome_scan_int(&at, &id);
		else if (ts_json_string_is(&key, "previous"))
			ts_chrome_scan_int(&at, &previous);
		else if (ts_json_string_is(&key, "data") && *value.at == '"')
			has_data = !ts_json_scan_string(&at, &text) && !text.escaped &&
				   decode_base64(&c->scratch, &text);
	}
	if (c->scratch.failed)
		return TS_ENOMEM;
	if (has_data)
		rc = ts_native_rows_add_blob(&c->native.shared, id, previous,
					     c->scratch.length ? c->scratch.data : "",
					     c->scratch.length, &is_good);
	if (!is_good && !rc)
		ts_chrome_lose(c, TS_CHROME_LOSS_ROW, 1);
	return rc;
}

void ts_chrome_native_add(struct ts_chrome *c, const struct ts_table_info *info, int64_t *row,
			  const int64_t *values)
{
	int64_t source = ts_native_rows_source_of(&c->native.shared, info, row);
	uint32_t clock = ts_native_rows_set_clock(&c->native.shared, info, source, row, c->clock);

	ts_chrome_add_in_clock(c, clock, (enum ts_table_id)info->id, row, values);
}

int ts_chrome_store_native_row(struct ts_chrome *c, struct ts_chrome_event *event)
{
	int table = event->has & TS_CHROME_HAS_ARGS ? named_table(&event->args) : -1;
	const struct ts_table_info *info = table < 0 ? NULL : ts_table_info((uint32_t)table);
	int64_t row[TS_MAX_COLUMNS] = { 0 };
	int rc;

	if (table == TS_TABLE_BLOB)
		return store_blob(c, &event->args);
	if (!info || !is_storable(info)) {
		ts_chrome_lose(c, TS_CHROME_LOSS_ROW, 1);
		return TS_OK;
	}
	for (int i = 0; i < info->column_count; i++)
		row[i] = info->columns[i].none;
	ts_chrome_set_columns(c, &event->args, info, 0, row);
	rc = read_row_args(c, &event->args, event->arguments);
	if (rc)
		return rc;
	if (!ts_native_rows_is_valid(info, row)) {
		ts_chrome_lose(c, TS_CHROME_LOSS_ROW, 1);
		return TS_OK;
	}
	if (info->shape >= 0)
		row[info->shape] = ts_chrome_shape(c, event->arguments);
	ts_chrome_native_add(c, info, row, event->arguments->values);
	return TS_OK;
}
