/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native rows in an extension field that Perfetto's readers skip: docs/formats/perfetto.md, section
 * 1.
 */
#include "base/memory.h"
#include "export/perfetto/perfetto_export.h"

/* Approximate size of a packet of native rows. */
#define PACKET_BYTES 16384

enum { ROW_TABLE = 1, ROW_COLUMNS = 2, ROW_BYTES = 3, ROW_ID = 4, ROW_TAKEN = 5, ROW_ARGS = 6 };
enum { SEQUENCE_ROW = 3 };

size_t ts_pf_row_max_bytes(const struct ts_pf_cursor *cursor, const struct ts_pf_shape *shape)
{
	/* A column: its number and value, and an annotation. An argument: twice as much. */
	return 256 + (size_t)cursor->merge.batch->table->column_count * 64 +
	       (size_t)shape->count * 96;
}

static bool is_text(unsigned int type)
{
	return type == TS_COLUMN_STRING || type == TS_COLUMN_JSON;
}

static unsigned char *put_columns(struct ts_pf_export *x, unsigned char *to,
				  const struct ts_pf_cursor *cursor, uint64_t skip)
{
	unsigned char *open;

	*to++ = ROW_COLUMNS << 3 | TS_PROTO_BYTES;
	open = ++to;
	for (unsigned int i = 0; i < cursor->active_count; i++) {
		const struct ts_pf_column *column = &cursor->active[i];
		int64_t value = column->values[cursor->merge.row];

		if (value == column->none || skip >> column->position & 1)
			continue;
		*to++ = column->id;
		if (column->is_text)
			value = (int64_t)ts_pf_intern(x, TS_PF_VALUE, value);
		to = ts_pf_zigzag(to, value);
	}
	return to == open ? open - 2 : ts_pf_close(open, to);
}

static unsigned char *put_arguments(struct ts_pf_export *x, unsigned char *to,
				    const struct ts_pf_cursor *cursor,
				    const struct ts_pf_shape *shape)
{
	const struct ts_batch *batch = cursor->merge.batch;
	const int64_t *value = batch->arg_values + batch->arg_offsets[cursor->merge.row];
	unsigned char *open;

	*to++ = ROW_ARGS << 3 | TS_PROTO_BYTES;
	open = ++to;
	for (uint32_t i = 0; i < shape->count; i++) {
		const struct ts_pf_field *field = &shape->fields[i];

		memcpy(to, field->native, sizeof(field->native));
		to += field->native_bytes;
		if (field->type == TS_ARG_STRING || field->type == TS_ARG_JSON)
			to = ts_pf_zigzag(to, (int64_t)ts_pf_intern(x, TS_PF_VALUE, *value++));
		else if (ts_arg_has_value(field->type))
			to = ts_pf_zigzag(to, *value++);
	}
	return ts_pf_close(open, to);
}

unsigned char *ts_pf_put_native_row(struct ts_pf_export *x, unsigned char *to,
				    const struct ts_pf_cursor *cursor,
				    const struct ts_pf_shape *shape, uint64_t skip,
				    unsigned int taken)
{
	unsigned char *row;

	*to++ = SEQUENCE_ROW << 3 | TS_PROTO_BYTES;
	row = ++to;
	to = ts_pf_uint(to, ROW_TABLE, cursor->merge.batch->table->id);
	to = put_columns(x, to, cursor, skip);
	if (taken)
		to = ts_pf_uint(to, ROW_TAKEN, taken);
	if (shape->count && !(taken & TS_PF_ARGS))
		to = put_arguments(x, to, cursor, shape);
	return ts_pf_close(row, to);
}

unsigned char *ts_pf_put_native(struct ts_pf_export *x, unsigned char *to,
				const struct ts_pf_cursor *cursor, const struct ts_pf_shape *shape,
				uint64_t skip, unsigned int taken, const struct ts_text *more)
{
	unsigned char *native;

	to = ts_pf_tag(to, TS_PF_NATIVE, TS_PROTO_BYTES);
	native = ++to;
	to = ts_pf_put_native_row(x, to, cursor, shape, skip, taken);
	if (more && more->length) {
		memcpy(to, more->data, more->length);
		to += more->length;
	}
	return ts_pf_close(native, to);
}

/* ---- tables without time ---- */

/* Writes the rows in x->event, the content of the extension field. */
static void put_rows(struct ts_pf_export *x)
{
	if (x->event.length)
		ts_pf_put_packet(x, TS_ABSENT, TS_PF_NATIVE, NULL, 0);
}

static int put_row(struct ts_pf_export *x, const struct ts_table_info *table,
		   const int64_t *columns, int64_t id, const char *bytes, size_t length)
{
	struct ts_text *to = &x->event;
	size_t row = ts_proto_open(to, SEQUENCE_ROW), open;

	ts_proto_put_uint(to, ROW_TABLE, table->id);
	open = ts_proto_open(to, ROW_COLUMNS);
	for (int i = 0; i < table->column_count; i++) {
		const struct ts_column_info *column = &table->columns[i];
		int64_t value = columns[i];

		if (value == column->none || column->type == TS_COLUMN_SHAPE ||
		    column->type == TS_COLUMN_BYTES)
			continue;
		if (is_text(column->type))
			value = (int64_t)ts_pf_intern(x, TS_PF_VALUE, value);
		ts_proto_put_varint(to, column->id);
		ts_proto_put_varint(to, ts_proto_from_signed(value));
	}
	ts_proto_close(to, open);
	if (bytes)
		ts_proto_put_bytes(to, ROW_BYTES, bytes, length);
	if (table->kind == TS_KIND_DICTIONARY)
		ts_proto_put_uint(to, ROW_ID, (uint64_t)id);
	ts_proto_close(to, row);
	if (to->length >= PACKET_BYTES)
		put_rows(x);
	return ts_pf_flush(x, TS_PF_FLUSH_BYTES);
}

static int put_chunk(struct ts_pf_export *x, struct ts_batch *batch, size_t chunk)
{
	int result = ts_batch_read(batch, chunk, TS_MASK_ALL, x->err);
	uint64_t first = ts_reader_chunk(x->reader, chunk)->first_id;

	for (uint32_t row = 0; !result && row < batch->rows; row++) {
		int64_t columns[TS_MAX_COLUMNS];
		const char *bytes = NULL;
		size_t length = 0;

		ts_batch_row(batch, row, columns);
		if (batch->bytes) {
			bytes = batch->bytes + batch->byte_offsets[row];
			/* Each one is followed by a NUL. */
			length = (size_t)(batch->byte_offsets[row + 1] - batch->byte_offsets[row] -
					  1);
		}
		result = put_row(x, batch->table, columns, (int64_t)(first + row), bytes, length);
	}
	ts_reader_trim(x->reader, TS_PF_TEXT_BYTES);
	return result;
}

static int put_chunks(struct ts_pf_export *x, enum ts_table_id table)
{
	struct ts_batch *batch;
	int result = ts_batch_new(&batch, x->reader, x->err);

	for (size_t i = 0; !result && i < ts_reader_chunk_count(x->reader); i++)
		if (ts_reader_chunk(x->reader, i)->table == table)
			result = put_chunk(x, batch, i);
	ts_batch_free(batch);
	return result;
}

/* The newest row of each id. */
static int put_entities(struct ts_pf_export *x, const struct ts_table_info *table)
{
	const int64_t *columns;
	size_t cursor = 0;
	int result = TS_OK;
	int64_t id;

	while (!result && (columns = ts_reader_entity_next(x->reader, table->id, &cursor, &id)))
		result = put_row(x, table, columns, id, NULL, 0);
	return result;
}

int ts_pf_put_tables(struct ts_pf_export *x)
{
	static const enum ts_table_id tables[] = {
		TS_TABLE_SOURCE, TS_TABLE_CLOCK_SYNC, TS_TABLE_HOST,   TS_TABLE_PROCESS,
		TS_TABLE_THREAD, TS_TABLE_DEVICE,     TS_TABLE_STREAM, TS_TABLE_MAPPING,
		TS_TABLE_FRAME,  TS_TABLE_STACK,      TS_TABLE_SYMBOL, TS_TABLE_BLOB,
		TS_TABLE_OBJECT, TS_TABLE_META,
	};
	int result = TS_OK;

	for (size_t i = 0; !result && i < TS_ARRAY_SIZE(tables); i++) {
		const struct ts_table_info *table = ts_table_info(tables[i]);

		result = table->kind == TS_KIND_ENTITY ? put_entities(x, table)
						       : put_chunks(x, tables[i]);
		if (!result)
			put_rows(x);
	}
	return result;
}
