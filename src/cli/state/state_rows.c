/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists intervals of lanes, or of commands (the derived table `state`), as text, JSON or CSV. Rows
 * are written as they are found, so memory does not grow with their number.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/ns.h"
#include "base/text.h"
#include "cli/common/cli_output.h"
#include "cli/common/text_table.h"
#include "cli/state/state_show.h"

struct printer {
	const struct ts_state_view *view;
	struct ts_text_table grid;
	uint64_t rows;
};

static const char *const columns[] = { "rank",  "device", "stream",      "start_ns", "duration_us",
				       "state", "reason", "correlation", "name" };

/* ---- cells ---- */

static void cell_number(struct ts_text_table *grid, int64_t number)
{
	char text[TS_FORMAT_BYTES];

	snprintf(text, sizeof(text), "%" PRId64, number);
	ts_text_table_str(grid, number == TS_ABSENT ? "-" : text);
}

/* To the ns, as in `view`, so that it can be found there. */
static void cell_instant(struct ts_text_table *grid, int64_t instant, int64_t start)
{
	char text[TS_FORMAT_BYTES];

	ts_text_table_str(grid,
			  ts_format_instant_ns(text, sizeof(text), ts_ns_between(start, instant)));
}

static void print_text(struct printer *printer, const struct ts_state_span *row)
{
	struct ts_text_table *grid = &printer->grid;
	char text[TS_FORMAT_BYTES];

	cell_number(grid, row->rank);
	cell_number(grid, row->device);
	cell_number(grid, row->stream);
	cell_instant(grid, row->start, printer->view->start);
	ts_text_table_str(grid, ts_format_duration_ns(text, sizeof(text), row->duration));
	ts_text_table_str(grid, ts_state_name(row->state));
	ts_text_table_str(grid, row->reason ? row->reason : "");
	cell_number(grid, row->correlation);
	ts_text_table_str(grid, row->name ? row->name : "");
	ts_text_table_end_row(grid);
}

static void member_number(struct ts_text *out, const char *key, int64_t number)
{
	if (number == TS_ABSENT)
		ts_text_printf(out, "\"%s\": null, ", key);
	else
		ts_text_printf(out, "\"%s\": %" PRId64 ", ", key, number);
}

static void print_json(struct printer *printer, const struct ts_state_span *row)
{
	struct ts_text *out = ts_stdout();

	ts_text_append_str(out, printer->rows ? ",\n{" : "{");
	member_number(out, "rank", row->rank);
	member_number(out, "device", row->device);
	member_number(out, "stream", row->stream);
	ts_text_printf(out, "\"start_ns\": %" PRId64 ", \"duration_us\": ", row->start);
	ts_text_append_us(out, row->duration);
	ts_text_printf(out, ", \"state\": \"%s\", \"reason\": ", ts_state_name(row->state));
	if (row->reason)
		ts_text_printf(out, "\"%s\", ", row->reason);
	else
		ts_text_append_str(out, "null, ");
	member_number(out, "correlation", row->correlation);
	ts_text_append_str(out, "\"name\": ");
	if (row->name && row->name[0])
		ts_text_append_json(out, row->name, strlen(row->name));
	else
		ts_text_append_str(out, "null");
	ts_text_append_char(out, '}');
}

static void field_number(struct ts_text *out, int64_t number)
{
	if (number != TS_ABSENT)
		ts_text_append_int(out, number);
	ts_text_append_char(out, ',');
}

/* RFC 4180, as in all CSV output of the tool. */
static void field_text(struct ts_text *out, const char *text)
{
	bool quoted = text[strcspn(text, ",\"\r\n")] != 0;

	if (quoted)
		ts_text_append_char(out, '"');
	for (; *text; text++) {
		if (*text == '"')
			ts_text_append_char(out, '"');
		ts_text_append_char(out, *text);
	}
	if (quoted)
		ts_text_append_char(out, '"');
}

static void print_csv(const struct ts_state_span *row)
{
	struct ts_text *out = ts_stdout();

	field_number(out, row->rank);
	field_number(out, row->device);
	field_number(out, row->stream);
	field_number(out, row->start);
	ts_text_append_us(out, row->duration);
	ts_text_printf(out, ",%s,%s,", ts_state_name(row->state), row->reason ? row->reason : "");
	field_number(out, row->correlation);
	field_text(out, row->name ? row->name : "");
	ts_text_append_char(out, '\n');
}

/* ---- rows ---- */

static void begin(struct printer *printer, const struct ts_state_view *view)
{
	static const struct {
		const char *title;
		bool right;
		unsigned int detail; /* text_table.h */
	} titles[] = {
		{ "rank", true, 3 },    { "device", true, 2 },      { "stream", true, 1 },
		{ "start", true, 0 },   { "duration", true, 0 },    { "state", false, 0 },
		{ "reason", false, 0 }, { "correlation", true, 4 }, { "name", false, 0 },
	};
	struct ts_text *out = ts_stdout();

	*printer = (struct printer){ .view = view };
	if (view->format == TS_STATE_JSON)
		ts_text_append_char(out, '[');
	for (size_t i = 0; view->format == TS_STATE_CSV && i < TS_ARRAY_SIZE(columns); i++)
		ts_text_printf(out, "%s%s", columns[i],
			       i + 1 < TS_ARRAY_SIZE(columns) ? "," : "\n");
	if (view->format != TS_STATE_TEXT)
		return;
	ts_text_table_init(&printer->grid);
	for (size_t i = 0; i < TS_ARRAY_SIZE(titles); i++) {
		ts_text_table_add_column(&printer->grid, titles[i].title, titles[i].right);
		ts_text_table_set_detail(&printer->grid, titles[i].detail);
	}
}

static int print(struct printer *printer, const struct ts_state_span *row, struct ts_error *err)
{
	if (printer->view->format == TS_STATE_JSON)
		print_json(printer, row);
	else if (printer->view->format == TS_STATE_CSV)
		print_csv(row);
	else
		print_text(printer, row);
	printer->rows++;
	return ts_stdout_drain(err);
}

static int finish(struct printer *printer, int rc, struct ts_error *err)
{
	int finished = TS_OK;

	if (printer->view->format == TS_STATE_JSON)
		ts_text_append_str(ts_stdout(), "]\n");
	if (printer->view->format == TS_STATE_TEXT) {
		finished = ts_text_table_finish(&printer->grid, rc ? NULL : err);
		ts_text_table_release(&printer->grid);
	}
	return rc ? rc : finished;
}

int ts_state_show_rows(const struct ts_state_view *view, enum ts_state_source source,
		       struct ts_error *err)
{
	struct ts_state_walk walk = { view->states, &view->filter, source, 0, 0 };
	struct printer printer;
	struct ts_state_span row;
	int rc = TS_OK;

	begin(&printer, view);
	while (!rc && ts_state_walk_next(&walk, &row))
		rc = print(&printer, &row, err);
	return finish(&printer, rc, err);
}
