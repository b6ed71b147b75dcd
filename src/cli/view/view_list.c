/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints tables without time: entities by their newest row, all others in file order.
 */
#include "cli/view/view.h"
#include "trace/trace_totals.h"

static bool is_full(const struct ts_view *view)
{
	return view->limit >= 0 && view->rows >= (uint64_t)view->limit;
}

static int print_if_wanted(struct ts_view *view, const struct ts_row *row, struct ts_error *err)
{
	return ts_filter_row(view->filter, row) ? ts_view_print_row(view, row, err) : TS_OK;
}

static int list_entities(struct ts_view *view, const struct ts_table_info *table,
			 struct ts_error *err)
{
	struct ts_row row = { .table = table };
	size_t cursor = 0;
	int64_t id;
	int rc = TS_OK;

	while (!rc && !is_full(view) &&
	       (row.columns = ts_reader_entity_next(view->reader, table->id, &cursor, &id)))
		rc = print_if_wanted(view, &row, err);
	return rc;
}

static int list_chunk(struct ts_view *view, struct ts_batch *batch, size_t chunk,
		      struct ts_error *err)
{
	uint64_t first_id = ts_reader_chunk(view->reader, chunk)->first_id;
	int64_t columns[TS_MAX_COLUMNS];
	int rc = ts_batch_read(batch, chunk, TS_MASK_ALL, err);

	for (uint32_t i = 0; !rc && i < batch->rows && !is_full(view); i++) {
		struct ts_row row = { .table = batch->table, .columns = columns };

		ts_batch_row(batch, i, columns);
		if (batch->table->kind == TS_KIND_DICTIONARY)
			row.id = (int64_t)(first_id + i);
		if (batch->bytes) {
			const uint64_t *offsets = &batch->byte_offsets[i];

			/* Values are NUL-terminated. */
			row.bytes = batch->bytes + offsets[0];
			row.bytes_length = (size_t)(offsets[1] - offsets[0] - 1);
		}
		rc = print_if_wanted(view, &row, err);
	}
	/* No string of the reader is in use here. */
	ts_reader_trim(view->reader, (size_t)64 << 20);
	return rc;
}

static int list_chunks(struct ts_view *view, const struct ts_table_info *table,
		       struct ts_error *err)
{
	TS_AUTO(ts_batch) batch = NULL;
	int rc = ts_batch_new(&batch, view->reader, err);

	for (size_t i = 0; !rc && !is_full(view) && i < ts_reader_chunk_count(view->reader); i++) {
		if (ts_reader_chunk(view->reader, i)->table == table->id)
			rc = list_chunk(view, batch, i, err);
	}
	return rc;
}

int ts_view_list_tables(struct ts_view *view, struct ts_error *err)
{
	int rc = TS_OK;

	for (unsigned int id = 0; !rc && id < TS_TABLE_COUNT; id++) {
		const struct ts_table_info *table = ts_table_info(id);

		if (!table || !(view->tables & TS_TABLE_BIT(id)) || table->kind == TS_KIND_EVENT)
			continue;
		if (table->kind == TS_KIND_ENTITY)
			rc = list_entities(view, table, err);
		else
			rc = list_chunks(view, table, err);
	}
	return rc;
}
