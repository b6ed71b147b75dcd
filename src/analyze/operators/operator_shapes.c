/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the input shapes of operators: an argument of their rows, which the work does not have.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "analyze/operators/operators.h"
#include "base/memory.h"
#include "trace/trace_totals.h"

#define NO_POSITION UINT64_MAX

/* Position of the input shapes among the arguments of rows. PyTorch has spelt them both ways. */
static uint64_t position_of(struct ts_reader *reader, const struct ts_shape *shape)
{
	uint64_t position = 0;

	for (uint32_t i = 0; i < shape->field_count; i++) {
		const struct ts_field *field = &shape->fields[i];
		bool is_text = field->type == TS_ARG_JSON || field->type == TS_ARG_STRING;

		if (!strcasecmp(ts_reader_string(reader, field->key).data, "Input Dims"))
			return is_text ? position : NO_POSITION;
		position += ts_arg_has_value(field->type);
	}
	return NO_POSITION;
}

/* State while the rows of one trace are read. */
struct reading {
	struct ts_operator_shapes *shapes;
	struct ts_reader *reader;
	struct ts_map positions; /* by the id of the arguments' shape */
	uint32_t *slice_of_row;  /* plus 1; 0: not in the work */
};

static int read_row(struct reading *reading, const struct ts_batch *batch, uint32_t row,
		    uint32_t slice)
{
	int64_t shape = batch->columns[TS_COLUMN_OF(slice, shape)][row];
	bool is_new;
	uint64_t *position = ts_map_insert(&reading->positions, (uint64_t)shape, &is_new);
	struct ts_string text;
	uint32_t id;

	if (!position)
		return TS_ENOMEM;
	if (is_new)
		*position = position_of(reading->reader, ts_reader_shape(reading->reader, shape));
	if (*position == NO_POSITION || !batch->arg_values)
		return TS_OK;
	text = ts_reader_string(reading->reader,
				batch->arg_values[batch->arg_offsets[row] + *position]);
	id = ts_strmap_intern(&reading->shapes->texts, text.data, text.length, NULL);
	if (id == TS_STRMAP_NONE)
		return TS_ENOMEM;
	reading->shapes->of_slice[slice] = id;
	return TS_OK;
}

static int read_chunks(struct reading *reading, struct ts_error *err)
{
	TS_AUTO(ts_batch) batch = NULL;
	uint64_t first = 0;
	int rc = ts_batch_new(&batch, reading->reader, err);

	for (size_t i = 0; !rc && i < ts_reader_chunk_count(reading->reader); i++) {
		if (ts_reader_chunk(reading->reader, i)->table != TS_TABLE_SLICE)
			continue;
		rc = ts_batch_read(batch, i, TS_MASK_OF(slice, shape), err);
		for (uint32_t row = 0; !rc && row < batch->rows; row++) {
			uint32_t slice = reading->slice_of_row[first + row];

			if (slice && read_row(reading, batch, row, slice - 1))
				rc = ts_error_set(err, TS_ENOMEM, "no memory for the shapes");
		}
		first += ts_reader_chunk(reading->reader, i)->rows;
	}
	return rc;
}

static int read_trace(struct ts_operator_shapes *shapes, const struct ts_work *work, uint32_t trace,
		      struct ts_error *err)
{
	struct reading reading = { .shapes = shapes, .reader = work->readers[trace] };
	uint64_t rows = ts_reader_rows(reading.reader, TS_TABLE_SLICE);
	int rc = TS_OK;

	reading.slice_of_row = calloc(rows + 1, sizeof(*reading.slice_of_row));
	if (!reading.slice_of_row)
		return ts_error_set(err, TS_ENOMEM, "no memory for the shapes");
	for (uint32_t i = 0; i < work->slice_count; i++) {
		const struct ts_work_slice *slice = &work->slices[i];

		if (work->ranks[slice->rank].trace == trace && slice->class == TS_SLICE_OP &&
		    slice->row < rows)
			reading.slice_of_row[slice->row] = i + 1;
	}
	rc = read_chunks(&reading, err);
	ts_map_release(&reading.positions);
	free(reading.slice_of_row);
	return rc;
}

int ts_operator_shapes_init(struct ts_operator_shapes *shapes, const struct ts_work *work,
			    struct ts_error *err)
{
	int rc = TS_OK;

	*shapes = (struct ts_operator_shapes){ 0 };
	ts_strmap_init(&shapes->texts, 0);
	shapes->of_slice = calloc((size_t)work->slice_count + 1, sizeof(*shapes->of_slice));
	if (!shapes->of_slice || ts_strmap_intern(&shapes->texts, "", 0, NULL) == TS_STRMAP_NONE)
		rc = ts_error_set(err, TS_ENOMEM, "no memory for the shapes");
	for (uint32_t i = 0; !rc && i < work->trace_count; i++)
		rc = read_trace(shapes, work, i, err);
	if (rc)
		ts_operator_shapes_release(shapes);
	return rc;
}

void ts_operator_shapes_release(struct ts_operator_shapes *shapes)
{
	ts_strmap_release(&shapes->texts);
	free(shapes->of_slice);
	*shapes = (struct ts_operator_shapes){ 0 };
}
