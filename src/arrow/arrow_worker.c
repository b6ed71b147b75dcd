/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a unit and fills the columns of its batch; see arrow_source.h. */
#include <stdlib.h>
#include <string.h>

#include "arrow/arrow_source.h"
#include "base/memory.h"
#include "base/ns.h"

int ts_arrow_no_memory(struct ts_arrow_worker *worker)
{
	return ts_error_set(worker->err, TS_ENOMEM, "no memory");
}

void *ts_arrow_worker_alloc(struct ts_arrow_worker *worker, size_t bytes)
{
	return ts_arrow_alloc(&worker->allocator, &worker->batch->kept, bytes);
}

/* Words that are output as they are go to the batch, others to memory that is used again. */
static int64_t *place(void *context, int column, uint32_t rows)
{
	struct ts_arrow_worker *worker = context;

	if (worker->placed >> column & 1)
		return ts_arrow_worker_alloc(worker, (size_t)rows * sizeof(int64_t));
	if (ts_grow_array((void **)&worker->scratch[column], &worker->scratch_capacity[column],
			  (size_t)rows + 1, sizeof(int64_t)))
		return NULL;
	return worker->scratch[column];
}

int ts_arrow_worker_init(struct ts_arrow_worker *worker, struct ts_arrow_source *source)
{
	const struct ts_table_info *table = source->fields.table;

	*worker = (struct ts_arrow_worker){ .source = source };
	worker->allocator.memory = source->memory;
	worker->forms.place = place;
	worker->forms.context = worker;
	for (int i = 0; i < table->column_count; i++)
		if (i != table->shape && table->columns[i].type != TS_COLUMN_BYTES)
			worker->forms.mask |= UINT64_C(1) << i;
	for (size_t i = 0; i < source->fields.count; i++) {
		const struct ts_arrow_field *field = &source->fields.list[i];

		if (field->kind == TS_ARROW_INTEGER || field->kind == TS_ARROW_FLOAT)
			worker->placed |= UINT64_C(1) << field->source;
	}
	return TS_OK;
}

void ts_arrow_worker_release(struct ts_arrow_worker *worker)
{
	ts_arrow_allocator_release(&worker->allocator);
	ts_batch_free(worker->input);
	for (int i = 0; i < TS_MAX_COLUMNS; i++)
		free(worker->scratch[i]);
	free(worker->mapped);
	free(worker->selected);
	ts_text_release(&worker->text);
	*worker = (struct ts_arrow_worker){ 0 };
}

/* ---- input ---- */

static uint64_t mask_of_unit(const struct ts_arrow_source *source, const struct ts_arrow_unit *unit)
{
	const struct ts_table_info *table = source->fields.table;
	uint64_t mask = source->fields.mask;

	if (unit->is_partial && table->start >= 0)
		mask |= UINT64_C(1) << table->start;
	if (unit->is_partial && table->duration >= 0)
		mask |= UINT64_C(1) << table->duration;
	/* Arguments may be columns of the row. */
	for (int i = 0; table->shape >= 0 && (mask >> table->shape & 1) && i < table->column_count;
	     i++)
		if (table->columns[i].type != TS_COLUMN_BYTES)
			mask |= UINT64_C(1) << i;
	return mask;
}

static int read_chunk(struct ts_arrow_worker *worker, const struct ts_arrow_unit *unit)
{
	struct ts_reader *reader = worker->source->readers[unit->reader];
	int result = TS_OK;

	if (worker->reader != reader) {
		ts_batch_free(worker->input);
		worker->input = NULL;
		worker->reader = reader;
		result = ts_batch_new(&worker->input, reader, worker->err);
	}
	if (!result)
		result = sbt_batch_read_forms(worker->input, unit->chunk,
					      mask_of_unit(worker->source, unit), &worker->forms,
					      worker->err);
	if (!result)
		worker->batch->rows = worker->input->rows;
	return result;
}

static void view_chunk(const struct ts_arrow_worker *worker, struct ts_arrow_view *views)
{
	for (int i = 0; i < worker->source->fields.table->column_count; i++) {
		const struct sbt_form *form = &worker->forms.columns[i];

		views[i] = (struct ts_arrow_view){ .kind = form->kind,
						   .index_bytes = form->index_bytes,
						   .stride = 1,
						   .constant = form->constant,
						   .entries = form->entries,
						   .indices = form->indices,
						   .entry_count = form->entry_count,
						   .words = worker->input->columns[i] };
	}
}

static void view_rows(struct ts_arrow_worker *worker, const struct ts_arrow_unit *unit,
		      struct ts_arrow_view *views)
{
	size_t stride = worker->source->fields.table->column_count;

	/* The batch of another trace is not this one's; rows in memory have no arguments. */
	ts_batch_free(worker->input);
	worker->input = NULL;
	worker->reader = worker->source->readers[unit->reader];
	worker->batch->rows = unit->count;
	for (size_t i = 0; i < stride; i++)
		views[i] = (struct ts_arrow_view){ .kind = SBT_FORM_WORDS,
						   .stride = stride,
						   .words = unit->rows->words +
							    unit->first * stride + i };
}

/* ---- the range ---- */

static int select_rows(struct ts_arrow_worker *worker, const struct ts_arrow_view *views)
{
	const struct ts_arrow_source *source = worker->source;
	const struct ts_table_info *table = source->fields.table;
	const struct ts_arrow_view *start = &views[table->start];
	const struct ts_arrow_view *duration = table->duration < 0 ? NULL : &views[table->duration];
	uint32_t count = 0;

	if (ts_grow_array((void **)&worker->selected, &worker->selected_capacity,
			  (size_t)worker->batch->rows + 1, sizeof(*worker->selected)))
		return ts_arrow_no_memory(worker);
	for (uint32_t row = 0; row < worker->batch->rows; row++) {
		int64_t at = ts_arrow_view_value(start, row);
		int64_t length = duration ? ts_arrow_view_value(duration, row) : 0;

		worker->selected[count] = row;
		count += at <= source->to && (length < 0 || ts_ns_add(at, length) >= source->from);
	}
	worker->batch->rows = count;
	return TS_OK;
}

/* Moves the selected rows to the front, in memory that is this worker's. */
static void keep_selected(const struct ts_arrow_worker *worker, struct ts_arrow_view *view)
{
	uint32_t rows = worker->batch->rows;
	const uint32_t *selected = worker->selected;

	if (view->kind == SBT_FORM_WORDS && view->words) {
		int64_t *words = (int64_t *)(uintptr_t)view->words;

		for (uint32_t i = 0; i < rows; i++)
			words[i] = words[selected[i]];
	} else if (view->kind == SBT_FORM_INDEXED && view->index_bytes == 1) {
		uint8_t *indices = (uint8_t *)(uintptr_t)view->indices;

		for (uint32_t i = 0; i < rows; i++)
			indices[i] = indices[selected[i]];
	} else if (view->kind == SBT_FORM_INDEXED) {
		uint32_t *indices = (uint32_t *)(uintptr_t)view->indices;

		for (uint32_t i = 0; i < rows; i++)
			indices[i] = indices[selected[i]];
	}
}

static int apply_range(struct ts_arrow_worker *worker, struct ts_arrow_view *views)
{
	const struct ts_table_info *table = worker->source->fields.table;
	int result = select_rows(worker, views);

	/* The SHAPE column is the batch's: arguments are read by their first row number. */
	for (int i = 0; !result && i < table->column_count; i++)
		if (i != table->shape)
			keep_selected(worker, &views[i]);
	return result;
}

/* ---- output ---- */

static int fill_row_ids(struct ts_arrow_worker *worker, struct ts_arrow_data *data)
{
	uint32_t rows = worker->batch->rows;
	int64_t first = (int64_t)ts_reader_chunk(worker->reader, worker->unit->chunk)->first_id;
	int64_t *ids = ts_arrow_worker_alloc(worker, (size_t)rows * sizeof(*ids));

	if (!ids)
		return ts_arrow_no_memory(worker);
	for (uint32_t row = 0; row < rows; row++)
		ids[row] = (int64_t)((uint64_t)first + row);
	data->values = ids;
	return TS_OK;
}

static int fill_trace(struct ts_arrow_worker *worker, size_t field)
{
	struct ts_arrow_view view = { .kind = SBT_FORM_CONSTANT, .constant = worker->unit->reader };

	return ts_arrow_fill_values(worker, field, &view);
}

static int fill_field(struct ts_arrow_worker *worker, size_t index,
		      const struct ts_arrow_view *views)
{
	const struct ts_arrow_field *field = &worker->source->fields.list[index];

	switch (field->kind) {
	case TS_ARROW_TRACE:
		return fill_trace(worker, index);
	case TS_ARROW_ROW_ID:
		return fill_row_ids(worker, &worker->batch->data[index]);
	case TS_ARROW_TEXT:
	case TS_ARROW_BYTES:
	case TS_ARROW_BINARY:
	case TS_ARROW_ARGUMENTS:
		return ts_arrow_fill_texts(worker, index, views);
	default:
		return ts_arrow_fill_values(worker, index, &views[field->source]);
	}
}

static int convert(struct ts_arrow_worker *worker, const struct ts_arrow_unit *unit)
{
	struct ts_arrow_view views[TS_MAX_COLUMNS];
	int result = TS_OK;

	if (unit->rows) {
		view_rows(worker, unit, views);
	} else {
		result = read_chunk(worker, unit);
		if (!result)
			view_chunk(worker, views);
	}
	if (!result && unit->is_partial)
		result = apply_range(worker, views);
	for (size_t i = 0; !result && worker->batch->rows && i < worker->source->fields.count;
	     i++) {
		result = fill_field(worker, i, views);
		if (!result && worker->source->fields.list[i].kind == TS_ARROW_NAME &&
		    !worker->source->shares_dictionaries)
			result = ts_arrow_make_local(worker, i);
	}
	return result;
}

int ts_arrow_worker_convert(struct ts_arrow_worker *worker, const struct ts_arrow_unit *unit,
			    struct ts_arrow_batch **ret_batch, struct ts_error *err)
{
	int result;

	worker->unit = unit;
	worker->err = err;
	worker->batch = ts_arrow_batch_new(worker->source->memory, worker->source->fields.count);
	if (!worker->batch)
		return ts_arrow_no_memory(worker);
	result = convert(worker, unit);
	if (result)
		ts_arrow_batch_drop(worker->batch);
	else
		*ret_batch = worker->batch;
	worker->batch = NULL;
	return result;
}
