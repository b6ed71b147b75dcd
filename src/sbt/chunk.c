/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes complete chunks. */
#include "sbt/chunk.h"

#include <stdlib.h>
#include <string.h>

#include "base/local/hash.h"
#include "base/map.h"
#include "base/memory.h"

void sbt_chunk_encoder_release(struct sbt_chunk_encoder *encoder)
{
	sbt_encoder_release(&encoder->columns);
	ts_text_release(&encoder->payload);
	free(encoder->directory);
	free(encoder->order);
	free(encoder->values);
	memset(encoder, 0, sizeof(*encoder));
}

/* ---- order of rows ---- */

/* NULL for a column that is missing or constant. */
static const int64_t *varying_column(const struct ts_table *table, int column)
{
	return column >= 0 && !ts_table_is_constant(table, column) ? table->columns[column] : NULL;
}

/* Bottom-up merge sort of row numbers by start: stable, and cheap on sorted runs. */
static int sort_rows(uint32_t *order, uint32_t rows, const int64_t *start)
{
	TS_AUTO_FREE uint32_t *spare = ts_alloc_array(rows, sizeof(*spare));
	uint32_t *from = order, *to = spare;

	if (!spare)
		return TS_ENOMEM;
	for (uint32_t width = 1; width < rows; width *= 2) {
		for (uint32_t low = 0; low < rows; low += 2 * width) {
			uint32_t middle = TS_MIN(low + width, rows);
			uint32_t high = TS_MIN(low + 2 * width, rows);
			uint32_t a = low, b = middle, out = low;

			if (middle == high || start[from[middle - 1]] <= start[from[middle]]) {
				memcpy(to + low, from + low, (high - low) * sizeof(*to));
				continue;
			}
			while (a < middle && b < high)
				to[out++] = start[from[b]] < start[from[a]] ? from[b++] : from[a++];
			memcpy(to + out, from + a, (middle - a) * sizeof(*to));
			memcpy(to + out + (middle - a), from + b, (high - b) * sizeof(*to));
		}
		uint32_t *swap = from;

		from = to;
		to = swap;
	}
	if (from != order)
		memcpy(order, from, rows * sizeof(*order));
	return TS_OK;
}

/* Fills encoder->order. *ret_rows may be smaller than the table if long rows are left out. */
static int order_rows(struct sbt_chunk_encoder *encoder, const struct sbt_chunk_input *input,
		      uint32_t *ret_rows)
{
	const struct ts_table *table = input->table;
	const int64_t *start = varying_column(table, table->info->start);
	const int64_t *duration = NULL;
	uint32_t rows = 0;
	bool sorted = true;

	if (input->longest != INT64_MAX)
		duration = varying_column(table, table->info->duration);
	if (ts_grow_array((void **)&encoder->order, &encoder->order_capacity, table->rows,
			  sizeof(*encoder->order)))
		return TS_ENOMEM;
	for (uint32_t i = 0; i < table->rows; i++) {
		if (duration && (duration[i] > input->longest || duration[i] == -1))
			continue;
		if (start && rows && start[i] < start[encoder->order[rows - 1]])
			sorted = false;
		encoder->order[rows++] = i;
	}
	*ret_rows = rows;
	encoder->in_order = sorted && rows == table->rows;
	return sorted ? TS_OK : sort_rows(encoder->order, rows, start);
}

static void time_bounds(const struct sbt_chunk_encoder *encoder, const struct ts_table *table,
			struct sbt_chunk_header *header)
{
	int start = table->info->start, duration = table->info->duration;
	int64_t max_end = INT64_MIN;

	header->min_start = header->max_start = header->max_end = TS_ABSENT;
	if (start < 0 || header->rows == 0)
		return;
	for (uint32_t i = 0; i < header->rows; i++) {
		uint32_t row = encoder->order[i];
		int64_t end = sbt_row_end(ts_table_value(table, start, row),
					  duration < 0 ? 0 : ts_table_value(table, duration, row));

		max_end = end > max_end ? end : max_end;
	}
	header->min_start = ts_table_value(table, start, encoder->order[0]);
	header->max_start = ts_table_value(table, start, encoder->order[header->rows - 1]);
	header->max_end = max_end;
}

/* ---- columns ---- */

static enum sbt_hint hint_of_column(const struct ts_column_info *column)
{
	switch (column->type) {
	case TS_COLUMN_TIME:
	case TS_COLUMN_DURATION:
		return SBT_HINT_TIME;
	case TS_COLUMN_FLOAT:
		return SBT_HINT_DOUBLE;
	default:
		return SBT_HINT_NUMBER;
	}
}

static struct sbt_column *new_column(struct sbt_chunk_encoder *encoder,
				     struct sbt_chunk_header *header)
{
	struct sbt_column *column;

	if (ts_grow_array((void **)&encoder->directory, &encoder->directory_capacity,
			  header->columns + 1, sizeof(*column)))
		return NULL;
	column = &encoder->directory[header->columns++];
	memset(column, 0, sizeof(*column));
	return column;
}

/* The values of a column in chunk order. */
static const int64_t *ordered(struct sbt_chunk_encoder *encoder, const int64_t *values,
			      uint32_t rows)
{
	if (encoder->in_order)
		return values;
	for (uint32_t i = 0; i < rows; i++)
		encoder->values[i] = values[encoder->order[i]];
	return encoder->values;
}

static int encode_schema_column(struct sbt_chunk_encoder *encoder,
				const struct sbt_chunk_input *input, int position,
				struct sbt_chunk_header *header)
{
	const struct ts_table *table = input->table;
	const struct ts_column_info *info = &table->info->columns[position];
	bool constant = ts_table_is_constant(table, position);
	struct sbt_column *column;
	const int64_t *values;

	if (constant && info->type != TS_COLUMN_BYTES && position != table->info->start &&
	    table->constants[position] == info->none)
		return TS_OK;
	column = new_column(encoder, header);
	if (!column)
		return TS_ENOMEM;
	column->column = info->id;
	column->type = (uint8_t)(SBT_TYPE_OF_COLUMN + info->type);
	if (constant && info->type != TS_COLUMN_BYTES) {
		sbt_encode_constant(table->constants[position], header->rows, column);
		return TS_OK;
	}
	if (constant) {
		for (uint32_t i = 0; i < header->rows; i++)
			encoder->values[i] = table->constants[position];
		values = encoder->values;
	} else {
		values = ordered(encoder, table->columns[position], header->rows);
	}
	encoder->columns.leave_raw = encoder->is_apart && table->info->shape < 0 &&
				     position == table->info->column_count - 1;
	if (info->type == TS_COLUMN_BYTES)
		return sbt_encode_bytes(&encoder->columns, values, header->rows, input->bytes,
					input->byte_count, &encoder->payload, column);
	return sbt_encode_column(&encoder->columns, values, header->rows, hint_of_column(info),
				 &encoder->payload, column);
}

/* ---- arguments ---- */

struct arg_column {
	uint32_t key;
	uint8_t type;
	uint32_t count;
	uint32_t first; /* its values start here in encoder->values */
};

/* The argument columns of a chunk, and for each shape which of them its fields go to. */
struct arg_plan {
	struct ts_map columns; /* key << 8 | type to index */
	struct ts_map shapes;  /* shape to its first entry in `targets` */
	struct arg_column *list;
	size_t count, capacity;
	uint32_t *targets; /* for each shape: number of values, then a column for each value */
	size_t target_count, target_capacity;
};

static void arg_plan_release(struct arg_plan *plan)
{
	ts_map_release(&plan->columns);
	ts_map_release(&plan->shapes);
	free(plan->list);
	free(plan->targets);
}

static int plan_column(struct arg_plan *plan, const struct ts_field *field, uint32_t *ret_column)
{
	bool is_new;
	uint64_t *slot =
		ts_map_insert(&plan->columns, (uint64_t)field->key << 8 | field->type, &is_new);

	if (!slot)
		return TS_ENOMEM;
	if (is_new) {
		*slot = plan->count;
		if (ts_grow_array((void **)&plan->list, &plan->capacity, plan->count + 1,
				  sizeof(*plan->list)))
			return TS_ENOMEM;
		plan->list[plan->count++] =
			(struct arg_column){ .key = field->key, .type = field->type };
	}
	*ret_column = (uint32_t)*slot;
	return TS_OK;
}

/* The first target of a shape; targets are created when a shape is first seen. */
static int plan_shape(struct arg_plan *plan, struct ts_shapes *shapes, uint32_t id,
		      size_t *ret_first)
{
	struct ts_shape shape;
	bool is_new;
	uint64_t *slot = ts_map_insert(&plan->shapes, id, &is_new);

	if (!slot)
		return TS_ENOMEM;
	if (!is_new) {
		*ret_first = *slot;
		return TS_OK;
	}
	*ret_first = *slot = plan->target_count;
	shape = ts_shapes_get(shapes, id);
	if (ts_grow_array((void **)&plan->targets, &plan->target_capacity,
			  plan->target_count + 1 + shape.value_count, sizeof(*plan->targets)))
		return TS_ENOMEM;
	plan->targets[plan->target_count++] = shape.value_count;
	for (uint32_t i = 0; i < shape.field_count; i++) {
		if (!ts_arg_has_value(shape.fields[i].type))
			continue;
		if (plan_column(plan, &shape.fields[i], &plan->targets[plan->target_count]))
			return TS_ENOMEM;
		plan->target_count++;
	}
	return TS_OK;
}

/* Counts the values of each column (pass 0) or stores them (pass 1). */
static int spread_values(struct sbt_chunk_encoder *encoder, const struct sbt_chunk_input *input,
			 struct arg_plan *plan, uint32_t rows, bool put)
{
	const struct ts_table *table = input->table;
	int64_t last = 0;
	size_t first = 0;

	for (uint32_t i = 0; i < rows; i++) {
		uint32_t row = encoder->order[i];
		const int64_t *values = table->arg_values + table->arg_offsets[row];
		int64_t shape = ts_table_value(table, table->info->shape, row);
		const uint32_t *targets;

		if (shape == 0)
			continue;
		if (shape != last) {
			last = shape;
			if (plan_shape(plan, input->shapes, (uint32_t)last, &first))
				return TS_ENOMEM;
		}
		targets = plan->targets + first;
		for (uint32_t k = 0; k < targets[0]; k++) {
			struct arg_column *column = &plan->list[targets[1 + k]];

			if (put)
				encoder->values[column->first + column->count] = values[k];
			column->count++;
		}
	}
	return TS_OK;
}

static int encode_planned(struct sbt_chunk_encoder *encoder, const struct sbt_chunk_input *input,
			  struct arg_plan *plan, struct sbt_chunk_header *header)
{
	uint32_t total = 0;

	if (spread_values(encoder, input, plan, header->rows, false))
		return TS_ENOMEM;
	for (size_t i = 0; i < plan->count; i++) {
		plan->list[i].first = total;
		total += plan->list[i].count;
		plan->list[i].count = 0;
	}
	header->values = total;
	if (ts_grow_array((void **)&encoder->values, &encoder->value_capacity, total,
			  sizeof(*encoder->values)) ||
	    spread_values(encoder, input, plan, header->rows, true))
		return TS_ENOMEM;
	for (size_t i = 0; i < plan->count; i++) {
		struct arg_column *arg = &plan->list[i];
		struct sbt_column *column = new_column(encoder, header);
		enum sbt_hint hint = arg->type == TS_ARG_DOUBLE ? SBT_HINT_DOUBLE : SBT_HINT_NUMBER;

		if (!column)
			return TS_ENOMEM;
		column->column = SBT_COLUMN_ARGUMENT;
		column->type = arg->type;
		column->key = arg->key;
		if (sbt_encode_column(&encoder->columns, encoder->values + arg->first, arg->count,
				      hint, &encoder->payload, column))
			return TS_ENOMEM;
	}
	return TS_OK;
}

static int encode_args(struct sbt_chunk_encoder *encoder, const struct sbt_chunk_input *input,
		       struct sbt_chunk_header *header)
{
	struct arg_plan plan = { 0 };
	int result;

	if (input->table->info->shape < 0 || input->table->values == 0)
		return TS_OK;
	result = encode_planned(encoder, input, &plan, header);
	arg_plan_release(&plan);
	return result;
}

/* ---- entry points ---- */

static void close_header(struct sbt_chunk_encoder *encoder, const struct sbt_chunk_input *input,
			 struct sbt_chunk_header *header)
{
	size_t directory_bytes = header->columns * sizeof(struct sbt_column);

	memcpy(header->magic, SBT_CHUNK_MAGIC, SBT_MAGIC_BYTES);
	header->header_bytes = (uint32_t)(sizeof(*header) + directory_bytes);
	header->chunk_bytes = header->header_bytes + encoder->payload.length +
			      encoder->columns.raw_bytes;
	if (input->table->info->id == TS_TABLE_INDEX)
		header->chunk_bytes += sizeof(struct sbt_trailer);
	header->directory_checksum = ts_hash64(encoder->directory, directory_bytes);
	header->checksum = ts_hash64(header, offsetof(struct sbt_chunk_header, checksum));
}

static int encode(struct sbt_chunk_encoder *encoder, const struct sbt_chunk_input *input,
		  struct ts_text *out, struct sbt_chunk_header *ret_header)
{
	struct sbt_chunk_header header = { .sequence = input->sequence,
					   .table = input->table->info->id,
					   .flags = input->flags,
					   .clock = input->clock,
					   .first_id = input->first_id };

	ts_text_clear(&encoder->payload);
	encoder->columns.raw = NULL;
	encoder->columns.raw_bytes = 0;
	if (order_rows(encoder, input, &header.rows) ||
	    ts_grow_array((void **)&encoder->values, &encoder->value_capacity, header.rows,
			  sizeof(*encoder->values)))
		return TS_ENOMEM;
	time_bounds(encoder, input->table, &header);
	for (int i = 0; header.rows && i < input->table->info->column_count; i++)
		if (encode_schema_column(encoder, input, i, &header))
			return TS_ENOMEM;
	if (encode_args(encoder, input, &header))
		return TS_ENOMEM;
	close_header(encoder, input, &header);
	ts_text_append(out, &header, sizeof(header));
	ts_text_append(out, encoder->directory, header.columns * sizeof(struct sbt_column));
	*ret_header = header;
	return ts_text_status(out);
}

int sbt_chunk_encode_apart(struct sbt_chunk_encoder *encoder, const struct sbt_chunk_input *input,
			   struct ts_text *out, struct sbt_chunk_header *ret_header)
{
	encoder->is_apart = true;
	return encode(encoder, input, out, ret_header);
}

int sbt_chunk_encode(struct sbt_chunk_encoder *encoder, const struct sbt_chunk_input *input,
		     struct ts_text *out, struct sbt_chunk_header *ret_header)
{
	int result;

	encoder->is_apart = false;
	result = encode(encoder, input, out, ret_header);
	ts_text_append(out, encoder->payload.data, encoder->payload.length);
	return result ? result : ts_text_status(out);
}
