/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of plain text: JSON, arguments, bytes, and strings with TS_ARROW_PLAIN_STRINGS. */
#include <string.h>

#include "arrow/arrow_source.h"
#include "base/memory.h"
#include "trace/json_row.h"

/*
 * Of one column of a batch. A few bytes of a hostile file can name a text of 64 MiB in every row.
 */
#define MOST_BYTES ((size_t)1 << 30)

/* A column that is being filled. */
struct texts {
	struct ts_arrow_worker *worker;
	const struct ts_arrow_field *field;
	const struct ts_arrow_view *views;
	struct ts_text out;
	struct ts_text scratch;
	int64_t last_id; /* of the text at last .. last_end */
	size_t last, last_end;
	int64_t last_shape;
	bool has_columns; /* that shape has arguments that are columns of the row */
};

/* Row of the input: those of a partial unit were selected. */
static uint32_t input_row(const struct texts *texts, uint32_t row)
{
	return texts->worker->unit->is_partial ? texts->worker->selected[row] : row;
}

static void append_valid(struct texts *texts, const char *text, size_t length)
{
	if (ts_utf8_valid(text, length))
		ts_text_append(&texts->out, text, length);
	else
		ts_utf8_sanitize(&texts->out, text, length);
}

static bool put_name(struct texts *texts, uint32_t row)
{
	int64_t id = ts_arrow_view_value(&texts->views[texts->field->source], row);
	size_t before = texts->out.length;
	bool any;

	if (id && id == texts->last_id) {
		/* Reserved before, since a text must not be appended to itself while it moves. */
		if (ts_text_reserve(&texts->out, texts->last_end - texts->last))
			ts_text_append(&texts->out, texts->out.data + texts->last,
				       texts->last_end - texts->last);
		return true;
	}
	ts_text_clear(&texts->scratch);
	any = texts->field->lookup->text(texts->worker->reader, id, &texts->scratch);
	if (!any)
		return false;
	append_valid(texts, texts->scratch.length ? texts->scratch.data : "",
		     texts->scratch.length);
	texts->out.failed |= texts->scratch.failed;
	texts->last_id = id;
	texts->last = before;
	texts->last_end = texts->out.length;
	return true;
}

static bool put_bytes(struct texts *texts, uint32_t row)
{
	const struct ts_batch *input = texts->worker->input;
	/* A NUL follows each. */
	size_t length = (size_t)(input->byte_offsets[row + 1] - input->byte_offsets[row] - 1);
	const char *bytes = input->bytes + input->byte_offsets[row];

	if (texts->field->kind == TS_ARROW_BYTES)
		append_valid(texts, bytes, length);
	else
		ts_text_append(&texts->out, bytes, length);
	return true;
}

static void find_shape(struct texts *texts, int64_t id)
{
	const struct ts_shape *shape = ts_reader_shape(texts->worker->reader, id);

	texts->last_shape = id;
	texts->has_columns = false;
	for (uint32_t i = 0; i < shape->field_count; i++)
		texts->has_columns |= shape->fields[i].type == TS_ARG_COLUMN;
}

static bool put_arguments(struct texts *texts, uint32_t row)
{
	struct ts_arrow_worker *worker = texts->worker;
	const struct ts_table_info *table = worker->source->fields.table;
	int64_t columns[TS_MAX_COLUMNS];
	uint32_t from = input_row(texts, row);
	struct ts_row input = { .table = table, .columns = columns };
	int64_t shape;
	size_t before = texts->out.length;

	if (!worker->input || !worker->input->arg_offsets || !worker->input->columns[table->shape])
		return false;
	shape = worker->input->columns[table->shape][from];
	if (!shape)
		return false;
	if (shape != texts->last_shape)
		find_shape(texts, shape);
	input.values = worker->input->arg_values + worker->input->arg_offsets[from];
	for (int i = 0; texts->has_columns && i < table->column_count; i++)
		columns[i] = i == table->shape || table->columns[i].type == TS_COLUMN_BYTES
				     ? 0
				     : ts_arrow_view_value(&texts->views[i], row);
	columns[table->shape] = shape;
	ts_text_append_char(&texts->out, '{');
	if (!ts_json_row_fields(worker->reader, &texts->out, &input, texts->field->beside)) {
		texts->out.length = before;
		return false;
	}
	ts_json_row_close(&texts->out, '}');
	return true;
}

static bool put_text(struct texts *texts, uint32_t row)
{
	switch (texts->field->kind) {
	case TS_ARROW_ARGUMENTS:
		return put_arguments(texts, row);
	case TS_ARROW_TEXT:
		return put_name(texts, row);
	default:
		return put_bytes(texts, row);
	}
}

static int check(struct texts *texts)
{
	if (ts_text_status(&texts->out))
		return ts_arrow_no_memory(texts->worker);
	if (texts->out.length > MOST_BYTES)
		return ts_error_set(texts->worker->err, TS_ENOSPC,
				    "column '%s' has more than 1 GiB of text in one chunk: leave "
				    "it out",
				    texts->field->name);
	return TS_OK;
}

static int put_rows(struct texts *texts, int64_t *offsets, uint64_t *valid, uint32_t *ret_nulls)
{
	uint32_t rows = texts->worker->batch->rows;

	memset(valid, 0, ((size_t)rows + 63) / 64 * 8);
	for (uint32_t row = 0; row < rows; row++) {
		int result;

		offsets[row] = (int64_t)texts->out.length;
		if (put_text(texts, row))
			valid[row / 64] |= UINT64_C(1) << (row & 63);
		else
			(*ret_nulls)++;
		result = check(texts);
		if (result)
			return result;
	}
	offsets[rows] = (int64_t)texts->out.length;
	return TS_OK;
}

static int fill(struct texts *texts, struct ts_arrow_data *data)
{
	struct ts_arrow_worker *worker = texts->worker;
	uint32_t rows = worker->batch->rows, nulls = 0;
	int64_t *offsets = ts_arrow_worker_alloc(worker, ((size_t)rows + 1) * sizeof(*offsets));
	uint64_t *valid = ts_arrow_worker_alloc(worker, ((size_t)rows + 63) / 64 * 8);
	int result;

	if (!offsets || !valid)
		return ts_arrow_no_memory(worker);
	result = put_rows(texts, offsets, valid, &nulls);
	if (result)
		return result;
	data->values = offsets;
	data->text = ts_arrow_zeros();
	if (nulls) {
		data->validity = valid;
		data->null_count = nulls;
	}
	if (!texts->out.data)
		return TS_OK;
	data->text = texts->out.data;
	if (ts_arrow_keep_heap(&worker->batch->kept, TS_STEAL(texts->out.data)))
		return ts_arrow_no_memory(worker);
	return TS_OK;
}

int ts_arrow_fill_texts(struct ts_arrow_worker *worker, size_t field,
			const struct ts_arrow_view *views)
{
	struct texts texts = { .worker = worker,
			       .field = &worker->source->fields.list[field],
			       .views = views };
	int result = fill(&texts, &worker->batch->data[field]);

	ts_text_release(&texts.out);
	ts_text_release(&texts.scratch);
	return result;
}
