/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table as CSV (RFC 4180): one line per row in file order, with ids resolved in extra columns.
 * docs/formats/tables.md describes the columns. Memory does not grow with the number of rows.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/ns.h"
#include "export/csv/csv_cells.h"
#include "export/export.h"
#include "trace/json_row.h"

#define FLUSH_BYTES ((size_t)1 << 20)
#define TEXT_BYTES ((size_t)64 << 20)
/* Longer blobs are left out: cells of megabytes are useless. */
#define LONGEST_BYTES 4096

struct csv {
	struct ts_reader *reader;
	int fd;
	struct ts_export_options options;
	struct ts_error *err;
	const struct ts_table_info *table;
	struct ts_csv_cells cells;
	int64_t from, to;
	uint64_t rows, limit;
	uint64_t long_bytes; /* cells left out */
	struct ts_text out, scratch;
	/* For columns with references: resolved columns next to them. */
	bool has_beside[TS_MAX_COLUMNS];
	enum ts_csv_kind beside[TS_MAX_COLUMNS];
};

static int flush(struct csv *csv, size_t unless_below)
{
	int rc;

	if (ts_text_status(&csv->out) || ts_text_status(&csv->scratch))
		return ts_error_set(csv->err, TS_ENOMEM, "no memory");
	if (csv->out.length < unless_below)
		return TS_OK;
	rc = ts_write_all(csv->fd, csv->out.data, csv->out.length, csv->err);
	ts_text_clear(&csv->out);
	return rc;
}

/* ---- the first line ---- */

static bool is_dictionary(const struct csv *csv)
{
	return csv->table->kind == TS_KIND_DICTIONARY;
}

/* "thread_pid,thread_tid,thread_name" */
static void put_beside_names(struct csv *csv, const char *column, const char *names)
{
	while (*names) {
		size_t length = strcspn(names, " ");

		ts_text_append_char(&csv->out, ',');
		ts_text_append_str(&csv->out, column);
		ts_text_append_char(&csv->out, '_');
		ts_text_append(&csv->out, names, length);
		names += length;
		names += strspn(names, " ");
	}
}

static void put_head(struct csv *csv)
{
	if (is_dictionary(csv))
		ts_text_append_str(&csv->out, "id,");
	for (int i = 0; i < csv->table->column_count; i++) {
		const struct ts_column_info *column = &csv->table->columns[i];

		ts_text_append_str(&csv->out, i ? "," : "");
		if (column->type == TS_COLUMN_SHAPE) {
			ts_text_append_str(&csv->out, "args,beside");
			continue;
		}
		ts_text_append_str(&csv->out, column->name);
		if (column->type == TS_COLUMN_REF) {
			const char *names = ts_csv_beside(column->refers, &csv->beside[i]);

			csv->has_beside[i] = *names != 0;
			put_beside_names(csv, column->name, names);
		}
	}
	ts_text_append_char(&csv->out, '\n');
}

/* ---- arguments ---- */

static bool put_argument(struct csv *csv, const struct ts_field *field, int64_t value)
{
	struct ts_text *out = &csv->out;
	double real;

	switch (field->type) {
	case TS_ARG_INT:
		ts_text_append_int(out, value);
		return true;
	case TS_ARG_DOUBLE:
		memcpy(&real, &value, sizeof(real));
		/* JSON quotes NaN. */
		if (isnan(real))
			ts_text_append_str(out, "\"\"NaN\"\"");
		else
			ts_text_append_double(out, real);
		return true;
	case TS_ARG_STRING:
		ts_csv_put(&csv->cells, out, TS_CSV_INNER_STRING, value);
		return true;
	case TS_ARG_BOOL:
		ts_text_append_str(out, value ? "true" : "false");
		return true;
	case TS_ARG_JSON:
		ts_csv_put(&csv->cells, out, TS_CSV_INNER_JSON, value);
		return true;
	case TS_ARG_NULL:
		ts_text_append_str(out, "null");
		return true;
	default:
		return false;
	}
}

/* Arguments that all have values of their own, the common case. */
static bool put_shape_arguments(struct csv *csv, const struct ts_shape *shape, const int64_t *next,
				int beside)
{
	bool any = false;

	for (uint32_t i = 0; i < shape->field_count; i++) {
		const struct ts_field *field = &shape->fields[i];
		int64_t value = next && ts_arg_has_value(field->type) ? *next++ : 0;
		size_t before = csv->out.length;

		if (field->beside != beside)
			continue;
		ts_text_append_str(&csv->out, any ? "," : "");
		ts_csv_put(&csv->cells, &csv->out, TS_CSV_INNER_STRING, field->key);
		ts_text_append_char(&csv->out, ':');
		if (put_argument(csv, field, value))
			any = true;
		else
			csv->out.length = before;
	}
	return any;
}

/* Arguments some of which are columns of the row. */
static bool put_all_arguments(struct csv *csv, const struct ts_row *row, int beside)
{
	ts_text_clear(&csv->scratch);
	if (!ts_json_row_fields(csv->reader, &csv->scratch, row, beside))
		return false;
	/* Drops the comma after the last one. */
	ts_csv_put_inner(&csv->out, csv->scratch.data, csv->scratch.length - 1);
	return true;
}

static bool has_columns(const struct ts_shape *shape)
{
	for (uint32_t i = 0; i < shape->field_count; i++)
		if (shape->fields[i].type == TS_ARG_COLUMN)
			return true;
	return false;
}

static void put_arguments(struct csv *csv, const struct ts_row *row, const struct ts_shape *shape,
			  int beside)
{
	size_t before = csv->out.length;
	bool any;

	ts_text_append_str(&csv->out, "\"{");
	any = has_columns(shape) ? put_all_arguments(csv, row, beside)
				 : put_shape_arguments(csv, shape, row->values, beside);
	if (any)
		ts_text_append_str(&csv->out, "}\"");
	else
		csv->out.length = before;
}

/* ---- cells ---- */

static void put_real(struct ts_text *out, int64_t bits)
{
	double real;

	memcpy(&real, &bits, sizeof(real));
	if (isnan(real))
		ts_text_append_str(out, "NaN");
	else if (isinf(real))
		ts_text_append_str(out, real < 0 ? "-inf" : "inf");
	else
		ts_text_append_double(out, real);
}

static void put_enum(struct ts_text *out, const struct ts_column_info *column, int64_t value)
{
	const char *name = ts_enum_name(column->refers, value);

	if (name)
		ts_text_append_str(out, name);
	else
		ts_text_append_int(out, value);
}

static void put_bytes(struct csv *csv, const struct ts_batch *batch, uint32_t row)
{
	/* Separated by NULs. */
	size_t length = (size_t)(batch->byte_offsets[row + 1] - batch->byte_offsets[row] - 1);
	const char *bytes = batch->bytes + batch->byte_offsets[row];

	if (csv->table->id == TS_TABLE_STRING) {
		ts_csv_put_text(&csv->out, bytes, length);
		return;
	}
	if (length > LONGEST_BYTES) {
		csv->long_bytes++;
		return;
	}
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)bytes[i];

		ts_text_append_char(&csv->out, "0123456789abcdef"[c >> 4]);
		ts_text_append_char(&csv->out, "0123456789abcdef"[c & 15]);
	}
}

static void put_reference(struct csv *csv, int position, int64_t value)
{
	if (value)
		ts_text_append_int(&csv->out, value);
	if (csv->has_beside[position])
		ts_csv_put(&csv->cells, &csv->out, csv->beside[position], value);
}

static void put_cell(struct csv *csv, int position, int64_t value)
{
	const struct ts_column_info *column = &csv->table->columns[position];
	struct ts_text *out = &csv->out;

	switch (column->type) {
	case TS_COLUMN_TIME:
	case TS_COLUMN_INT:
		if (value != TS_ABSENT)
			ts_text_append_int(out, value);
		break;
	case TS_COLUMN_DURATION:
		/* -1: no end. */
		if (value != -1)
			ts_text_append_int(out, value);
		break;
	case TS_COLUMN_FLOAT:
		/* 0.0: not measured. */
		if (value)
			put_real(out, value);
		break;
	case TS_COLUMN_BOOL:
		if (value != TS_ABSENT)
			ts_text_append_str(out, value ? "true" : "false");
		break;
	case TS_COLUMN_STRING:
	case TS_COLUMN_JSON:
		if (value)
			ts_csv_put(&csv->cells, out,
				   column->type == TS_COLUMN_STRING ? TS_CSV_STRING : TS_CSV_JSON,
				   value);
		break;
	case TS_COLUMN_REF:
		put_reference(csv, position, value);
		break;
	case TS_COLUMN_ENUM:
		put_enum(out, column, value);
		break;
	default:
		break;
	}
}

/* ---- rows ---- */

static void put_shape(struct csv *csv, const struct ts_row *row)
{
	int64_t id = row->columns[csv->table->shape];
	const struct ts_shape *shape = id ? ts_reader_shape(csv->reader, id) : NULL;

	if (shape)
		put_arguments(csv, row, shape, 0);
	ts_text_append_char(&csv->out, ',');
	if (shape)
		put_arguments(csv, row, shape, 1);
}

/* `batch` is NULL for a row without arguments and blobs. */
static int put_row(struct csv *csv, const int64_t *columns, const struct ts_batch *batch,
		   uint32_t row)
{
	struct ts_row table_row = { .table = csv->table, .columns = columns };

	if (batch && batch->arg_offsets)
		table_row.values = batch->arg_values + batch->arg_offsets[row];
	if (batch && is_dictionary(csv)) {
		ts_text_append_uint(&csv->out,
				    ts_reader_chunk(csv->reader, batch->chunk)->first_id + row);
		ts_text_append_char(&csv->out, ',');
	}
	for (int i = 0; i < csv->table->column_count; i++) {
		ts_text_append_str(&csv->out, i ? "," : "");
		if (csv->table->columns[i].type == TS_COLUMN_SHAPE)
			put_shape(csv, &table_row);
		else if (csv->table->columns[i].type != TS_COLUMN_BYTES)
			put_cell(csv, i, columns[i]);
		else if (batch)
			put_bytes(csv, batch, row);
	}
	ts_text_append_char(&csv->out, '\n');
	csv->rows++;
	return flush(csv, FLUSH_BYTES);
}

/* Same rule as `view`: rows without an end never end. */
static bool is_requested(const struct csv *csv, const int64_t *columns)
{
	int64_t start, duration = 0;

	if (csv->table->start < 0)
		return true;
	start = columns[csv->table->start];
	if (csv->table->duration >= 0)
		duration = columns[csv->table->duration];
	return start <= csv->to && (duration < 0 || ts_ns_add(start, duration) >= csv->from);
}

static int put_chunk(struct csv *csv, struct ts_batch *batch, size_t chunk)
{
	int rc = ts_batch_read(batch, chunk, TS_MASK_ALL, csv->err);

	for (uint32_t row = 0; !rc && row < batch->rows && csv->rows < csv->limit; row++) {
		int64_t columns[TS_MAX_COLUMNS];

		ts_batch_row(batch, row, columns);
		if (is_requested(csv, columns))
			rc = put_row(csv, columns, batch, row);
	}
	/* No row is referenced any more. */
	ts_reader_trim(csv->reader, TEXT_BYTES);
	return rc;
}

static int report_progress(struct csv *csv, const struct ts_chunk *chunk)
{
	if (csv->options.progress &&
	    csv->options.progress(csv->options.context, chunk->offset,
				  ts_reader_state(csv->reader)->file_bytes))
		return ts_error_set(csv->err, TS_ECANCELED, "interrupted");
	return TS_OK;
}

static int put_chunks(struct csv *csv)
{
	struct ts_batch *batch = NULL;
	int rc = ts_batch_new(&batch, csv->reader, csv->err);

	for (size_t i = 0; !rc && i < ts_reader_chunk_count(csv->reader); i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(csv->reader, i);

		if (chunk->table != csv->table->id || csv->rows >= csv->limit)
			continue;
		rc = report_progress(csv, chunk);
		if (!rc && ts_chunk_overlaps(chunk, csv->from, csv->to))
			rc = put_chunk(csv, batch, i);
	}
	ts_batch_free(batch);
	return rc;
}

/* Of rows with the same id only the latest. */
static int put_entities(struct csv *csv)
{
	enum ts_table_id table = (enum ts_table_id)csv->table->id;
	const int64_t *columns;
	size_t cursor = 0;
	int64_t id;
	int rc = TS_OK;

	while (!rc && csv->rows < csv->limit &&
	       (columns = ts_reader_entity_next(csv->reader, table, &cursor, &id)))
		rc = put_row(csv, columns, NULL, 0);
	return rc;
}

static int put_table(struct csv *csv)
{
	int rc;

	put_head(csv);
	rc = csv->table->kind == TS_KIND_ENTITY ? put_entities(csv) : put_chunks(csv);
	if (!rc)
		rc = flush(csv, 0);
	if (!rc)
		ts_export_left_out(&csv->options, csv->table->name, csv->long_bytes,
				   "blob longer than 4096 bytes");
	return rc;
}

static int choose_table(struct csv *csv)
{
	const char *name = csv->options.table;
	int id = name ? ts_table_by_name(name) : -1;

	if (!name)
		return ts_error_set(csv->err, TS_EINVAL, "CSV holds one table: choose one");
	csv->table = id < 0 ? NULL : ts_table_info((uint32_t)id);
	if (!csv->table)
		return ts_error_set(csv->err, TS_EINVAL, "unknown table '%s'", name);
	if (csv->table->kind == TS_KIND_DERIVED || csv->table->kind == TS_KIND_INTERNAL)
		return ts_error_set(csv->err, TS_EINVAL, "table '%s' is derived, not stored", name);
	return TS_OK;
}

int ts_export_csv(struct ts_reader *reader, int fd, const struct ts_export_options *options,
		  struct ts_error *err)
{
	struct ts_error local_err = { 0 };
	struct csv csv = { .reader = reader,
			   .fd = fd,
			   .options = ts_export_options(options),
			   .err = err ? err : &local_err,
			   .from = INT64_MIN,
			   .to = INT64_MAX };
	int rc = choose_table(&csv);

	if (csv.options.from || csv.options.to) {
		csv.from = csv.options.from;
		csv.to = csv.options.to;
	}
	csv.limit = csv.options.limit ? csv.options.limit : UINT64_MAX;
	if (!rc)
		rc = ts_csv_cells_init(&csv.cells, reader, csv.err);
	if (!rc)
		rc = put_table(&csv);
	ts_csv_cells_release(&csv.cells);
	ts_text_release(&csv.out);
	ts_text_release(&csv.scratch);
	return rc;
}
