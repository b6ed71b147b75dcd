/* SPDX-License-Identifier: Apache-2.0 */
/* Results as JSON. */
#include "analyze/result_json.h"

#include <math.h>
#include <string.h>

bool ts_cell_is_text(enum ts_cell_type type)
{
	return type == TS_CELL_TEXT || type == TS_CELL_AMOUNT;
}

bool ts_cell_is_null(const struct ts_cell *cell, enum ts_cell_type type)
{
	bool real = type == TS_CELL_REAL || type == TS_CELL_PERCENT;

	return cell->none || (real && !isfinite(cell->real));
}

void ts_cell_append_value(struct ts_text *out, const struct ts_cell *cell, enum ts_cell_type type)
{
	switch (type) {
	case TS_CELL_TIME:
		ts_text_append_us(out, cell->integer);
		break;
	case TS_CELL_REAL:
	case TS_CELL_PERCENT:
		ts_text_append_double(out, cell->real);
		break;
	case TS_CELL_BOOL:
		ts_text_append_str(out, cell->integer ? "true" : "false");
		break;
	default:
		ts_text_append_int(out, cell->integer);
		break;
	}
}

static void append_cell(struct ts_text *out, enum ts_cell_type type, const struct ts_cell *cell)
{
	if (ts_cell_is_null(cell, type))
		ts_text_append_str(out, "null");
	else if (ts_cell_is_text(type))
		ts_text_append_json(out, cell->text, strlen(cell->text));
	else
		ts_cell_append_value(out, cell, type);
}

static void append_row(struct ts_text *out, const struct ts_result_table *table, size_t row)
{
	const struct ts_cell *cells = &table->cells[row * table->column_count];

	ts_text_append_str(out, row ? ",\n{" : "{");
	for (size_t i = 0; i < table->column_count; i++) {
		ts_text_append_str(out, i ? ", " : "");
		ts_text_append_json(out, table->columns[i].key, strlen(table->columns[i].key));
		ts_text_append_str(out, ": ");
		append_cell(out, table->columns[i].type, &cells[i]);
	}
	ts_text_append_char(out, '}');
}

static int append_table(const struct ts_result_table *table, struct ts_text *out,
			int (*drain)(struct ts_error *err), struct ts_error *err)
{
	size_t rows = ts_result_rows(table);
	int rc = TS_OK;

	ts_text_append_char(out, '[');
	for (size_t row = 0; !rc && row < rows; row++) {
		append_row(out, table, row);
		rc = drain ? drain(err) : TS_OK;
	}
	ts_text_append_char(out, ']');
	return rc;
}

int ts_result_append_json(const struct ts_result *result, struct ts_text *out,
			  int (*drain)(struct ts_error *err), struct ts_error *err)
{
	const struct ts_result_table *table = result->tables;
	int rc = TS_OK;

	if (table && !table->next)
		return append_table(table, out, drain, err);
	ts_text_append_str(out, table ? "{" : "[]");
	for (; !rc && table; table = table->next) {
		ts_text_append_json(out, table->name, strlen(table->name));
		ts_text_append_str(out, ": ");
		rc = append_table(table, out, drain, err);
		ts_text_append_str(out, table->next ? ",\n" : "}");
	}
	return rc;
}

int ts_result_json(const struct ts_result *result, char **ret_json, size_t *ret_bytes,
		   struct ts_error *err)
{
	struct ts_text text = { 0 };
	size_t bytes;

	/* Without a callback, only memory can fail. */
	(void)ts_result_append_json(result, &text, NULL, err);
	bytes = text.length;
	ts_text_append_char(&text, '\0');
	if (ts_text_status(&text)) {
		ts_text_release(&text);
		return ts_error_set(err, TS_ENOMEM, "no memory for the results as JSON");
	}
	if (ret_bytes)
		*ret_bytes = bytes;
	*ret_json = text.data;
	return TS_OK;
}
