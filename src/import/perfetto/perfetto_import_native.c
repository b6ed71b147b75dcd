/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TraceSmith exports: rows are in an extension field next to what viewers show
 * (docs/formats/perfetto.md, section 1), and only the rows are imported.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "import/common/native_rows.h"
#include "import/perfetto/perfetto_import.h"
#include "import/perfetto/perfetto_kinds.h"

#define VERSION 1

/* What a row takes from its event. */
enum { TAKE_START = 1, TAKE_NAME = 2, TAKE_CATEGORY = 4, TAKE_ARGS = 8 };

/* State of a string: was it checked, and is it JSON? */
#define JSON_KNOWN (UINT64_C(1) << 32)
#define JSON_GOOD (UINT64_C(1) << 33)

struct ts_perfetto_native {
	struct ts_native_rows rows;
	int64_t zero_ns; /* trace time of the file's time 0 */
};

/* A row being read. */
struct row {
	const struct ts_table_info *info;
	struct ts_proto_field columns, bytes, args;
	uint64_t taken;
	int64_t id;
	bool has_bytes;
	int64_t cells[TS_MAX_COLUMNS];
};

int ts_perfetto_native_start(struct ts_perfetto *p, const struct ts_perfetto_packet *packet)
{
	struct ts_proto_reader message = ts_proto_message(&packet->native);
	struct ts_proto_field field;
	uint64_t version = 0;
	int64_t zero_ns = 0;

	while (packet->has_native && ts_proto_next(&message, &field)) {
		if (field.number == 1)
			version = field.value;
		else if (field.number == 2)
			zero_ns = ts_proto_zigzag(field.value);
	}
	if (!version)
		return TS_OK;
	if (version > VERSION)
		return ts_error_set(p->err, TS_EVERSION,
				    "input '%s': exported by a newer TraceSmith (format %" PRIu64
				    "); use that version to import it",
				    p->import->path, version);
	p->native = calloc(1, sizeof(*p->native));
	if (!p->native)
		return TS_ENOMEM;
	p->native->zero_ns = zero_ns;
	ts_native_rows_init(&p->native->rows, p->writer);
	p->import->result.format = "tracesmith";
	return TS_OK;
}

void ts_perfetto_native_free(struct ts_perfetto_native *native)
{
	if (native)
		ts_native_rows_release(&native->rows);
	free(native);
}

void ts_perfetto_native_finish(struct ts_perfetto *p, const struct ts_loss_kind *rest)
{
	if (rest)
		ts_perfetto_lose(p, rest, 1);
	if (p->args.left_out)
		ts_perfetto_lose(p, &ts_perfetto_loss_many, p->args.left_out);
	ts_writer_set_clock(p->writer, 0);
	ts_import_losses_write(&p->entities.losses, p->import, 0, p->entities.time);
}

/* ---- texts ---- */

static bool is_json(const char *text, size_t length)
{
	struct ts_json js;

	if (!text)
		return false;
	ts_json_init(&js, text, length, true);
	if (ts_json_skip(&js))
		return false;
	ts_json_skip_space(&js);
	return js.next == js.end;
}

/* A string by its iid; 0 if it is missing, or must be JSON and is not. */
static int64_t string_of(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence, uint64_t iid,
			 bool has_to_be_json)
{
	uint64_t value;
	size_t length = 0;
	const char *text;

	if (!iid || !ts_perfetto_interned(p, sequence, TS_PERFETTO_ARG_STRING, iid, &value))
		return 0;
	if (TS_LIKELY(!has_to_be_json || value & JSON_GOOD))
		return (uint32_t)value;
	if (!(value & JSON_KNOWN)) {
		text = ts_writer_text(p->writer, (uint32_t)value, &length);
		value |= JSON_KNOWN | (is_json(text, length) ? JSON_GOOD : 0);
		ts_perfetto_intern(sequence, TS_PERFETTO_ARG_STRING, iid, value);
	}
	if (value & JSON_GOOD)
		return (uint32_t)value;
	ts_perfetto_lose(p, &ts_perfetto_loss_row, 1);
	return 0;
}

/* ---- columns ---- */

static int64_t cell(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
		    const struct ts_table_info *info, int column, int64_t value)
{
	const struct ts_column_info *at = &info->columns[column];
	enum ts_table_id table;
	int refers;

	switch (at->type) {
	case TS_COLUMN_STRING:
	case TS_COLUMN_JSON:
		return string_of(p, sequence, (uint64_t)value, at->type == TS_COLUMN_JSON);
	case TS_COLUMN_REF:
		refers = ts_table_by_name(at->refers);
		return refers > 0 ? ts_native_rows_id(&p->native->rows, (enum ts_table_id)refers,
						      value)
				  : 0;
	case TS_COLUMN_INT:
		if (ts_native_rows_is_id(info, column, &table))
			return ts_native_rows_id(&p->native->rows, table, value);
		return value;
	case TS_COLUMN_BOOL:
		return value == at->none ? value : value != 0;
	case TS_COLUMN_DURATION:
		return value < -1 ? at->none : value;
	case TS_COLUMN_SHAPE:
	case TS_COLUMN_BYTES:
		return at->none;
	default:
		return value;
	}
}

static void read_columns(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
			 struct row *row)
{
	struct ts_proto_reader packed = ts_proto_message(&row->columns);
	uint64_t id, value;
	int column;

	for (int i = 0; i < row->info->column_count; i++)
		row->cells[i] = row->info->columns[i].none;
	while (packed.next < packed.end) {
		if (!ts_proto_varint(&packed, &id) || !ts_proto_varint(&packed, &value)) {
			ts_perfetto_lose(p, &ts_perfetto_loss_row, 1);
			return;
		}
		column = id <= UINT32_MAX ? ts_column_by_id(row->info, (uint32_t)id) : -1;
		if (column >= 0)
			row->cells[column] =
				cell(p, sequence, row->info, column, ts_proto_zigzag(value));
		else
			ts_perfetto_lose(p, &ts_perfetto_loss_row, 1);
	}
}

/* ---- arguments ---- */

static bool is_column(const struct ts_table_info *info, uint64_t column)
{
	return (column >= TS_COMPUTED_GRID && column <= TS_COMPUTED_STREAM) ||
	       (column <= UINT16_MAX && ts_column_by_id(info, (uint32_t)column) >= 0);
}

static void add_arg(struct ts_row_args *args, const struct ts_field *field, int64_t value)
{
	uint32_t at = args->field_count;

	ts_row_args_add(args, field->key, (enum ts_arg_type)field->type, value);
	if (args->field_count > at)
		args->fields[at] = *field;
}

/* Arguments stored in the row. */
static void read_args(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
		      const struct row *row)
{
	struct ts_proto_reader packed = ts_proto_message(&row->args);
	uint64_t key, type, beside, column, value;
	int64_t number;

	while (packed.next < packed.end) {
		if (!ts_proto_varint(&packed, &key) || !ts_proto_varint(&packed, &type) ||
		    !ts_proto_varint(&packed, &beside) || !ts_proto_varint(&packed, &column) ||
		    type < TS_ARG_INT || type > TS_ARG_COLUMN ||
		    (ts_arg_has_value((unsigned int)type) && !ts_proto_varint(&packed, &value)) ||
		    (type == TS_ARG_COLUMN && !is_column(row->info, column))) {
			ts_perfetto_lose(p, &ts_perfetto_loss_row, 1);
			return;
		}
		number = ts_arg_has_value((unsigned int)type) ? ts_proto_zigzag(value) : 0;
		if (type == TS_ARG_STRING || type == TS_ARG_JSON)
			number = string_of(p, sequence, (uint64_t)number, type == TS_ARG_JSON);
		if (type == TS_ARG_BOOL)
			number = number != 0;
		if (type == TS_ARG_JSON && !number)
			type = TS_ARG_NULL;
		add_arg(&p->args,
			&(struct ts_field){
				.key = (uint32_t)string_of(p, sequence, key, false),
				.type = (uint8_t)type,
				.beside = beside != 0,
				.column = type == TS_ARG_COLUMN ? (uint16_t)column : 0,
			},
			number);
	}
}

/* One annotation of the event, unless it only serves viewers. */
static void take_annotation(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
			    const struct ts_proto_field *from)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;
	enum ts_arg_type type = TS_ARG_NULL;
	uint32_t key = 0;
	int64_t value = 0;
	const char *name = NULL;
	size_t length = 0;

	while (ts_proto_next(&message, &field)) {
		switch (field.number) {
		case 1:
			key = ts_perfetto_interned_string(p, sequence, TS_PERFETTO_ARG_NAME,
							  field.value);
			break;
		case 10:
			key = ts_import_string(p->import, field.bytes ? field.bytes : "",
					       field.length);
			break;
		case 2:
			type = TS_ARG_BOOL;
			value = field.value != 0;
			break;
		case 4:
			type = TS_ARG_INT;
			value = (int64_t)field.value;
			break;
		case 5:
			type = TS_ARG_DOUBLE;
			value = (int64_t)field.value;
			break;
		case 6:
			type = TS_ARG_STRING;
			value = ts_import_string(p->import, field.bytes ? field.bytes : "",
						 field.length);
			break;
		case 9:
			type = is_json(field.bytes, field.length) ? TS_ARG_JSON : TS_ARG_STRING;
			value = ts_import_string(p->import, field.bytes ? field.bytes : "",
						 field.length);
			break;
		case 17:
			type = TS_ARG_STRING;
			value = string_of(p, sequence, field.value, false);
			break;
		}
	}
	if (key)
		name = ts_writer_text(p->writer, key, &length);
	if (name && length >= 3 && memcmp(name, "ts.", 3) == 0)
		return;
	ts_row_args_add(&p->args, key, type, value);
}

/* ---- what is taken from the event ---- */

static int column_named(const struct row *row, const char *name)
{
	int column = ts_column_by_name(row->info, name);

	return column >= 0 && row->info->columns[column].type == TS_COLUMN_STRING ? column : -1;
}

static void take(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
		 const struct ts_perfetto_packet *packet, struct row *row)
{
	struct ts_proto_reader message = ts_proto_message(&packet->data);
	struct ts_proto_field field;
	int name = row->taken & TAKE_NAME ? column_named(row, "name") : -1;
	int category = row->taken & TAKE_CATEGORY ? column_named(row, "category") : -1;
	int64_t start;

	if (row->taken & TAKE_START && row->info->start == 0 && packet->has_timestamp &&
	    !__builtin_add_overflow((int64_t)packet->timestamp, p->native->zero_ns, &start))
		row->cells[0] = start;
	while (ts_proto_next(&message, &field)) {
		switch (field.number) {
		case 3:
			if (category >= 0)
				row->cells[category] = ts_perfetto_interned_string(
					p, sequence, TS_PERFETTO_CATEGORY, field.value);
			category = -1;
			break;
		case 22:
			if (category >= 0)
				row->cells[category] = ts_perfetto_string(p, &field);
			category = -1;
			break;
		case 10:
			if (name >= 0)
				row->cells[name] = ts_perfetto_interned_string(
					p, sequence, TS_PERFETTO_NAME, field.value);
			break;
		case 23:
			if (name >= 0)
				row->cells[name] = ts_import_string(
					p->import, field.bytes ? field.bytes : "", field.length);
			break;
		case 4:
			if (row->taken & TAKE_ARGS)
				take_annotation(p, sequence, &field);
			break;
		}
	}
}

/* ---- rows ---- */

static bool take_apart(const struct ts_proto_field *from, struct row *row)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;

	row->info = NULL;
	row->columns = row->bytes = row->args = (struct ts_proto_field){ 0 };
	row->taken = 0;
	row->id = 0;
	row->has_bytes = false;
	while (ts_proto_next(&message, &field)) {
		switch (field.number) {
		case 1:
			row->info = field.value < TS_TABLE_COUNT
					    ? ts_table_info((uint32_t)field.value)
					    : NULL;
			break;
		case 2:
			row->columns = field;
			break;
		case 3:
			row->bytes = field;
			row->has_bytes = true;
			break;
		case 4:
			row->id = (int64_t)field.value;
			break;
		case 5:
			row->taken = field.value;
			break;
		case 6:
			row->args = field;
			break;
		}
	}
	return row->info && !message.failed && row->info->kind != TS_KIND_INTERNAL &&
	       row->info->kind != TS_KIND_DERIVED && row->info->id != TS_TABLE_STRING;
}

static bool is_counted(uint16_t table)
{
	return table == TS_TABLE_SLICE || table == TS_TABLE_GPU_OP || table == TS_TABLE_API_CALL ||
	       table == TS_TABLE_SAMPLE || table == TS_TABLE_MARK || table == TS_TABLE_COUNTER;
}

/* `previous` of a blob is an id of the file: not resolved with the columns. */
static int add_blob(struct ts_perfetto *p, const struct row *row, bool *ret_good)
{
	struct ts_proto_reader packed = ts_proto_message(&row->columns);
	uint64_t id, value;
	int64_t previous = 0;

	while (packed.next < packed.end && ts_proto_varint(&packed, &id) &&
	       ts_proto_varint(&packed, &value))
		if (id == 3)
			previous = ts_proto_zigzag(value);
	*ret_good = false;
	if (!row->has_bytes && !row->columns.length)
		return TS_OK;
	return ts_native_rows_add_blob(&p->native->rows, row->id, previous,
				       row->bytes.bytes ? row->bytes.bytes : "", row->bytes.length,
				       ret_good);
}

static int read_row(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
		    const struct ts_perfetto_packet *packet, const struct ts_proto_field *from)
{
	struct row row;
	bool is_good = false;
	int rc = TS_OK;

	if (take_apart(from, &row)) {
		if (row.info->id == TS_TABLE_BLOB) {
			rc = add_blob(p, &row, &is_good);
		} else {
			ts_row_args_clear(&p->args);
			read_columns(p, sequence, &row);
			if (row.taken && packet->data.number == 11)
				take(p, sequence, packet, &row);
			read_args(p, sequence, &row);
			if (row.info->shape >= 0)
				row.cells[row.info->shape] = ts_row_args_shape(&p->args, p->writer);
			rc = ts_native_rows_add(&p->native->rows, row.info, row.id, row.cells,
						p->args.values, &is_good);
		}
	}
	if (!is_good && !rc)
		ts_perfetto_lose(p, &ts_perfetto_loss_row, 1);
	else if (!rc && is_counted(row.info->id))
		p->import->result.events++;
	return rc;
}

int ts_perfetto_native_packet(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
			      const struct ts_perfetto_packet *packet)
{
	struct ts_proto_reader message = ts_proto_message(&packet->native);
	struct ts_proto_field field;
	int rc = TS_OK;

	while (!rc && packet->has_native && ts_proto_next(&message, &field))
		if (field.number == 3)
			rc = read_row(p, sequence, packet, &field);
	if (packet->has_native && message.failed)
		ts_perfetto_lose(p, &ts_perfetto_loss_row, 1);
	return rc;
}
