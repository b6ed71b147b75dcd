/* SPDX-License-Identifier: Apache-2.0 */
/* rocprofv3 CSV files: lines and fields. */
#include "import/rocprof/rocprof_csv.h"

#include <stdlib.h>
#include <string.h>

static const struct ts_loss_kind lost_line = { .what = "line",
					       .one = "line with the wrong number of fields",
					       .many = "lines with the wrong number of fields" };

/*
 * End of a quoted field, `p` is after the opening quote: the closing quote; NULL: not in these
 * bytes.
 */
static const char *find_quote(const char *p, const char *end, bool is_last,
			      struct ts_rocprof_field *field)
{
	while ((p = memchr(p, '"', (size_t)(end - p)))) {
		if (p + 1 == end)
			return is_last ? p : NULL;
		if (p[1] != '"')
			return p;
		field->has_quotes = true;
		p += 2;
	}
	return NULL;
}

/*
 * Splits one line into fields at commas; quoted fields may contain commas, line breaks and doubled
 * quotes. *ret_next is what follows. False: the line does not end in these bytes. Fields beyond the
 * limit are only counted.
 */
static bool split(const char *p, const char *end, bool is_last, struct ts_rocprof_field *fields,
		  size_t *ret_count, const char **ret_next)
{
	for (size_t count = 0;; p++) {
		struct ts_rocprof_field field = { .text = p };
		bool is_quoted = p < end && *p == '"';

		if (is_quoted) {
			field.text = p + 1;
			p = find_quote(p + 1, end, is_last, &field);
			if (!p)
				return false;
			field.length = (size_t)(p - field.text);
		}
		while (p < end && *p != ',' && *p != '\n')
			p++;
		if (p == end && !is_last)
			return false;
		if (!is_quoted) {
			field.length = (size_t)(p - field.text);
			if (field.length && field.text[field.length - 1] == '\r')
				field.length--;
		}
		if (count < TS_ROCPROF_CSV_MAX_COLUMNS)
			fields[count] = field;
		count++;
		if (p == end || *p == '\n') {
			*ret_count = count;
			*ret_next = p == end ? p : p + 1;
			return true;
		}
	}
}

int ts_rocprof_csv_probe(const char *data, size_t bytes)
{
	struct ts_rocprof_field fields[TS_ROCPROF_CSV_MAX_COLUMNS];
	const char *next;
	size_t count;

	/* Bytes that cannot start such a line are not searched for its end. */
	if (!bytes || (data[0] != '"' && data[0] != 'K' && data[0] != 'D' && data[0] != 'C' &&
		       data[0] != 'I' && data[0] != 'S'))
		return 0;
	return split(data, data + TS_MIN(bytes, (size_t)16384), true, fields, &count, &next) &&
	       count <= TS_ROCPROF_CSV_MAX_COLUMNS && ts_rocprof_csv_is_header(fields, count);
}

static uint64_t end_of(const struct ts_rocprof_csv *csv)
{
	return ts_input_stream_at(&csv->import->stream, csv->import->stream.js.end);
}

/*
 * Reads the next line into csv->fields; *ret_more false: there is none. Valid until the next call.
 */
static int next_line(struct ts_rocprof_csv *csv, bool *ret_more)
{
	struct ts_json *js = &csv->import->stream.js;
	const char *next;
	int rc;

	for (;;) {
		*ret_more = js->next < js->end;
		if (*ret_more &&
		    split(js->next, js->end, js->last, csv->fields, &csv->field_count, &next)) {
			js->next = next;
			return TS_OK;
		}
		if (js->last)
			break;
		if ((size_t)(js->end - js->next) > TS_IMPORT_MAX_STRING)
			return ts_import_bad(csv->import,
					     ts_input_stream_at(&csv->import->stream, js->next),
					     "a line is longer than 64 MiB", csv->err);
		rc = ts_import_refill(csv->import, js->next, csv->err);
		if (rc)
			return rc;
	}
	if (!*ret_more)
		return TS_OK;
	return ts_import_cut(csv->import, end_of(csv), csv->err);
}

/* Was the last line read the end of the file, without a line end? */
static bool is_cut(const struct ts_rocprof_csv *csv)
{
	const struct ts_json *js = &csv->import->stream.js;

	return js->last && js->next == js->end && js->end[-1] != '\n';
}

static int read_lines(struct ts_rocprof_csv *csv)
{
	bool more = true;
	int rc = TS_OK;

	while (!rc && more) {
		rc = next_line(csv, &more);
		if (rc || !more || (csv->field_count == 1 && !csv->fields[0].length))
			continue;
		if (csv->field_count < csv->column_count && is_cut(csv))
			rc = ts_import_cut(csv->import, end_of(csv), csv->err);
		else if (csv->field_count != csv->column_count)
			ts_entities_add_loss(&csv->entities, &lost_line, 1);
		else
			csv->add(csv);
	}
	return rc;
}

static int read_file(struct ts_rocprof_csv *csv)
{
	bool more;
	int rc = next_line(csv, &more);

	if (!rc && !more)
		csv->field_count = 0;
	if (!rc)
		rc = ts_rocprof_csv_header(csv);
	return rc ? rc : read_lines(csv);
}

int ts_rocprof_csv_run(struct ts_import *import, struct ts_error *err)
{
	struct ts_rocprof_csv *csv = calloc(1, sizeof(*csv));
	int rc;

	if (!csv)
		return ts_error_set(err, TS_ENOMEM, "input '%s': out of memory", import->path);
	csv->import = import;
	csv->err = err;
	rc = ts_entities_start(&csv->entities, import, err);
	ts_rocprof_rows_init(&csv->rows, &csv->entities);
	if (!rc)
		rc = read_file(csv);
	if (rc == TS_EFORMAT || rc == TS_ECANCELED)
		ts_entities_add_loss(&csv->entities, &ts_loss_rest, 1);
	if (!ts_writer_status(import->writer, NULL))
		ts_entities_finish(&csv->entities);
	for (size_t i = 0; i < TS_ARRAY_SIZE(csv->cache); i++)
		free(csv->cache[i].text);
	ts_map_release(&csv->processes);
	ts_rocprof_rows_release(&csv->rows);
	ts_entities_release(&csv->entities);
	ts_text_release(&csv->scratch);
	free(csv);
	return rc;
}
