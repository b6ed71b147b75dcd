/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments of rows, and columns worth showing, as debug annotations. What is the same in all rows
 * of a shape is encoded once.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "export/perfetto/perfetto_export.h"

/* Fields of DebugAnnotation. */
enum {
	NOTE_NAME = 1,
	NOTE_BOOL = 2,
	NOTE_INT = 4,
	NOTE_DOUBLE = 5,
	NOTE_ARRAY = 12,
	NOTE_STRING = 17
};
#define NOTE_TAG (4 << 3 | TS_PROTO_BYTES)

/* ---- shapes ---- */

static bool begins_with_ts(struct ts_string text)
{
	return text.length >= 3 && memcmp(text.data, "ts.", 3) == 0;
}

static uint64_t columns_shown(const struct ts_table_info *table, const struct ts_field *field)
{
	int position = ts_column_by_id(table, field->column);

	if (position >= 0)
		return UINT64_C(1) << position;
	if (table->id != TS_TABLE_GPU_OP)
		return 0;
	if (field->column == TS_COMPUTED_GRID)
		return UINT64_C(7) << TS_COLUMN_OF(gpu_op, grid_x);
	if (field->column == TS_COMPUTED_BLOCK)
		return UINT64_C(7) << TS_COLUMN_OF(gpu_op, block_x);
	return 0;
}

/* Tag of the value of an argument; 0: differs between rows. */
static uint32_t tag_of_type(unsigned int type)
{
	switch (type) {
	case TS_ARG_COLUMN:
		return 0;
	case TS_ARG_DOUBLE:
		return NOTE_DOUBLE << 3 | TS_PROTO_FIXED64;
	case TS_ARG_STRING:
	case TS_ARG_JSON:
	case TS_ARG_NULL:
		return NOTE_STRING << 3 | TS_PROTO_VARINT;
	case TS_ARG_BOOL:
		return NOTE_BOOL << 3 | TS_PROTO_VARINT;
	default:
		return NOTE_INT << 3 | TS_PROTO_VARINT;
	}
}

/* Name iids have at most 5 bytes: there are fewer than 2^33 strings and generated texts. */
static void begin_note(struct ts_pf_note *note, uint64_t name, uint32_t value_tag)
{
	unsigned char *to = note->data;

	*to++ = NOTE_TAG;
	*to++ = 0;
	to = ts_proto_encode_varint(ts_pf_tag(to, NOTE_NAME, TS_PROTO_VARINT), name);
	if (value_tag)
		to = ts_proto_encode_varint(to, value_tag);
	note->bytes = (uint8_t)(to - note->data);
}

/* Returns where the value goes. Annotations are shorter than 128 bytes: one length byte. */
static unsigned char *put_note(unsigned char *to, const struct ts_pf_note *note)
{
	memcpy(to, note->data, sizeof(note->data));
	return to + note->bytes;
}

static unsigned char *end_note(unsigned char *begin, unsigned char *end)
{
	begin[1] = (unsigned char)(end - begin - 2);
	return end;
}

static void add_field(struct ts_pf_export *x, struct ts_pf_shape *shape,
		      const struct ts_table_info *table, const struct ts_field *field)
{
	struct ts_pf_field *to = &shape->fields[shape->count++];
	unsigned char *end;

	*to = (struct ts_pf_field){ .type = field->type,
				    .beside = field->beside,
				    .column = field->column,
				    .position = -1 };
	begin_note(&to->note, ts_pf_intern(x, TS_PF_KEY, field->key), tag_of_type(field->type));
	end = ts_proto_encode_varint(to->native, ts_pf_intern(x, TS_PF_VALUE, field->key));
	end = ts_proto_encode_varint(end, field->type);
	end = ts_proto_encode_varint(end, field->beside);
	end = ts_proto_encode_varint(end, field->column);
	to->native_bytes = (uint8_t)(end - to->native);
	if (field->type == TS_ARG_COLUMN) {
		to->position = (int8_t)ts_column_by_id(table, field->column);
		shape->shown |= columns_shown(table, field);
	}
	if (field->beside || field->type == TS_ARG_JSON || field->type < TS_ARG_INT ||
	    field->type > TS_ARG_BOOL || begins_with_ts(ts_reader_string(x->reader, field->key)))
		shape->is_plain = false;
}

static const struct ts_pf_shape *add_shape(struct ts_pf_export *x,
					   const struct ts_table_info *table, int64_t id,
					   uint64_t *slot)
{
	const struct ts_shape *fields = ts_reader_shape(x->reader, id);
	struct ts_pf_shape *shape;

	if (ts_grow_array((void **)&x->shapes, &x->shape_capacity, x->shape_count + 1,
			  sizeof(*x->shapes)))
		return NULL;
	shape = &x->shapes[x->shape_count];
	*shape = (struct ts_pf_shape){ .is_plain = true };
	shape->fields = ts_alloc_array(fields->field_count, sizeof(*shape->fields));
	if (!shape->fields)
		return NULL;
	*slot = ++x->shape_count;
	for (uint32_t i = 0; i < fields->field_count; i++)
		add_field(x, shape, table, &fields->fields[i]);
	return shape;
}

const struct ts_pf_shape *ts_pf_shape(struct ts_pf_export *x, const struct ts_table_info *table,
				      int64_t id)
{
	static const struct ts_pf_shape none = { .is_plain = true };
	/* Shape ids have 32 bits. */
	uint64_t *slot;

	if (!id)
		return &none;
	if (id == x->last_shape[table->id])
		return &x->shapes[x->last_shape_index[table->id] - 1];
	slot = ts_map_insert(&x->shape_index, (uint64_t)id << 6 | table->id, NULL);
	if (!slot || (!*slot && !add_shape(x, table, id, slot)))
		return NULL;
	x->last_shape[table->id] = id;
	x->last_shape_index[table->id] = *slot;
	return &x->shapes[*slot - 1];
}

void ts_pf_shapes_release(struct ts_pf_export *x)
{
	for (size_t i = 0; i < x->shape_count; i++)
		free(x->shapes[i].fields);
	free(x->shapes);
	ts_map_release(&x->shape_index);
}

/* ---- annotations ---- */

static unsigned char *put_double(unsigned char *to, uint64_t bits)
{
	*to++ = NOTE_DOUBLE << 3 | TS_PROTO_FIXED64;
	return ts_pf_fixed64(to, bits);
}

/* The value of an annotation that is a column. */
static unsigned char *put_column_value(struct ts_pf_export *x, unsigned char *to,
				       const struct ts_table_info *table, int position,
				       int64_t value)
{
	const struct ts_column_info *column = &table->columns[position];
	uint64_t iid = 0;

	switch (column->type) {
	case TS_COLUMN_FLOAT:
		return put_double(to, (uint64_t)value);
	case TS_COLUMN_BOOL:
		return ts_pf_uint(to, NOTE_BOOL, value != 0);
	case TS_COLUMN_STRING:
	case TS_COLUMN_JSON:
		return ts_pf_uint(to, NOTE_STRING, ts_pf_intern(x, TS_PF_VALUE, value));
	case TS_COLUMN_ENUM:
		iid = ts_pf_intern_enum(x, table, position, value);
		if (iid)
			return ts_pf_uint(to, NOTE_STRING, iid);
		break;
	default:
		break;
	}
	return ts_pf_uint(to, NOTE_INT, (uint64_t)value);
}

/* Three consecutive number columns. */
static unsigned char *put_triple(unsigned char *to, const struct ts_pf_cursor *cursor,
				 size_t position)
{
	for (size_t i = 0; i < 3; i++) {
		int64_t value = cursor->merge.batch->columns[position + i][cursor->merge.row];
		unsigned char *element = to;

		to = ts_pf_uint(to + 2, NOTE_INT, value == TS_ABSENT ? 0 : (uint64_t)value);
		element[0] = NOTE_ARRAY << 3 | TS_PROTO_BYTES;
		element[1] = (unsigned char)(to - element - 2);
	}
	return to;
}

static int64_t value_at(const struct ts_pf_cursor *cursor, size_t position)
{
	return cursor->merge.batch->columns[position][cursor->merge.row];
}

/* A column computed by the source; returns `to` if it is empty. */
static unsigned char *put_computed(struct ts_pf_export *x, unsigned char *to,
				   const struct ts_pf_cursor *cursor, unsigned int column)
{
	int64_t number;
	double bandwidth;
	uint64_t bits;

	if (cursor->merge.batch->table->id != TS_TABLE_GPU_OP)
		return to;
	switch (column) {
	case TS_COMPUTED_GRID:
		return value_at(cursor, TS_COLUMN_OF(gpu_op, grid_x)) == TS_ABSENT
			       ? to
			       : put_triple(to, cursor, TS_COLUMN_OF(gpu_op, grid_x));
	case TS_COMPUTED_BLOCK:
		return value_at(cursor, TS_COLUMN_OF(gpu_op, block_x)) == TS_ABSENT
			       ? to
			       : put_triple(to, cursor, TS_COLUMN_OF(gpu_op, block_x));
	case TS_COMPUTED_BANDWIDTH:
		if (value_at(cursor, TS_COLUMN_OF(gpu_op, duration)) <= 0)
			return to;
		bandwidth = (double)value_at(cursor, TS_COLUMN_OF(gpu_op, bytes)) /
			    (double)value_at(cursor, TS_COLUMN_OF(gpu_op, duration));
		memcpy(&bits, &bandwidth, sizeof(bits));
		return put_double(to, bits);
	case TS_COMPUTED_DEVICE:
		number = ts_pf_device_number(x, value_at(cursor, TS_COLUMN_OF(gpu_op, device)));
		return number == TS_ABSENT ? to : ts_pf_uint(to, NOTE_INT, (uint64_t)number);
	case TS_COMPUTED_STREAM:
		number = ts_pf_stream_number(x, value_at(cursor, TS_COLUMN_OF(gpu_op, stream)));
		return number == TS_ABSENT ? to : ts_pf_uint(to, NOTE_INT, (uint64_t)number);
	default:
		return to;
	}
}

static unsigned char *put_shown_column(struct ts_pf_export *x, unsigned char *to,
				       const struct ts_pf_cursor *cursor,
				       const struct ts_pf_field *field)
{
	const struct ts_table_info *table = cursor->merge.batch->table;
	int64_t value;

	if (field->position < 0)
		return put_computed(x, to, cursor, field->column);
	value = value_at(cursor, (size_t)field->position);
	return value == table->columns[field->position].none
		       ? to
		       : put_column_value(x, to, table, field->position, value);
}

static unsigned char *put_field(struct ts_pf_export *x, unsigned char *to,
				const struct ts_pf_cursor *cursor, const struct ts_pf_field *field,
				const int64_t *value)
{
	unsigned char *begin = to, *content = put_note(to, &field->note);

	switch (field->type) {
	case TS_ARG_DOUBLE:
		to = ts_pf_fixed64(content, (uint64_t)*value);
		break;
	case TS_ARG_STRING:
	case TS_ARG_JSON:
		to = ts_pf_varint(content, ts_pf_intern(x, TS_PF_VALUE, *value));
		break;
	case TS_ARG_BOOL:
		to = ts_pf_varint(content, *value != 0);
		break;
	case TS_ARG_COLUMN:
		to = put_shown_column(x, content, cursor, field);
		/* No value, no annotation. */
		if (to == content)
			return begin;
		break;
	case TS_ARG_NULL:
		to = ts_pf_varint(content,
				  ts_pf_intern_synthetic(x, TS_PF_VALUE, TS_PF_NULL, "null", 4));
		break;
	default:
		to = ts_pf_varint(content, (uint64_t)*value);
		break;
	}
	return end_note(begin, to);
}

uint64_t ts_pf_columns_wanted(uint32_t table)
{
	switch (table) {
	case TS_TABLE_SLICE:
		return TS_MASK_OF(slice, id);
	case TS_TABLE_API_CALL:
		return TS_MASK_OF(api_call, correlation) | TS_MASK_OF(api_call, result);
	case TS_TABLE_GPU_OP:
		return TS_MASK_OF(gpu_op, kind) | TS_MASK_OF(gpu_op, correlation) |
		       TS_MASK_OF(gpu_op, context) | TS_MASK_OF(gpu_op, grid_x) |
		       TS_MASK_OF(gpu_op, block_x) | TS_MASK_OF(gpu_op, registers) |
		       TS_MASK_OF(gpu_op, shared_bytes) | TS_MASK_OF(gpu_op, bytes) |
		       TS_MASK_OF(gpu_op, copy_kind) | TS_MASK_OF(gpu_op, graph) |
		       TS_MASK_OF(gpu_op, graph_node);
	case TS_TABLE_MARK:
		return TS_MASK_OF(mark, scope) | TS_MASK_OF(mark, phase) | TS_MASK_OF(mark, id);
	case TS_TABLE_WINDOW:
		return TS_MASK_OF(window, opened_by) | TS_MASK_OF(window, closed_by) |
		       TS_MASK_OF(window, first_step) | TS_MASK_OF(window, last_step);
	case TS_TABLE_LOSS:
		return TS_MASK_OF(loss, what) | TS_MASK_OF(loss, count) | TS_MASK_OF(loss, reason);
	default:
		return 0;
	}
}

/* Three columns form one annotation. */
static bool is_triple(const struct ts_table_info *table, int position)
{
	return table->id == TS_TABLE_GPU_OP && (position == (int)TS_COLUMN_OF(gpu_op, grid_x) ||
						position == (int)TS_COLUMN_OF(gpu_op, block_x));
}

static const struct ts_pf_note *note_of_column(struct ts_pf_export *x,
					       const struct ts_table_info *table, int position)
{
	struct ts_pf_note *note = &x->notes[table->id][position];
	bool is_grid = position == (int)TS_COLUMN_OF(gpu_op, grid_x);

	if (TS_LIKELY(note->bytes))
		return note;
	begin_note(note,
		   !is_triple(table, position) ? ts_pf_intern_column(x, table, position)
		   : is_grid ? ts_pf_intern_synthetic(x, TS_PF_KEY, TS_PF_GRID, "ts.grid", 7)
			     : ts_pf_intern_synthetic(x, TS_PF_KEY, TS_PF_BLOCK, "ts.block", 8),
		   0);
	return note;
}

static unsigned char *put_column(struct ts_pf_export *x, unsigned char *to,
				 const struct ts_pf_cursor *cursor, int position, int64_t value)
{
	const struct ts_table_info *table = cursor->merge.batch->table;
	unsigned char *content = put_note(to, note_of_column(x, table, position));

	return end_note(to, is_triple(table, position)
				    ? put_triple(content, cursor, (size_t)position)
				    : put_column_value(x, content, table, position, value));
}

unsigned char *ts_pf_put_args(struct ts_pf_export *x, unsigned char *to,
			      const struct ts_pf_cursor *cursor, const struct ts_pf_shape *shape)
{
	const struct ts_batch *batch = cursor->merge.batch;
	const int64_t *value =
		shape->count ? batch->arg_values + batch->arg_offsets[cursor->merge.row] : NULL;

	for (uint32_t i = 0; i < shape->count; i++) {
		const struct ts_pf_field *field = &shape->fields[i];

		to = put_field(x, to, cursor, field, value);
		value += ts_arg_has_value(field->type) ? 1 : 0;
	}
	for (unsigned int i = 0; i < cursor->shown_count; i++) {
		const struct ts_pf_column *column = &cursor->active[cursor->shown[i]];
		int64_t shown = column->values[cursor->merge.row];

		if (shown != column->none && !(shape->shown >> column->position & 1))
			to = put_column(x, to, cursor, column->position, shown);
	}
	return to;
}
