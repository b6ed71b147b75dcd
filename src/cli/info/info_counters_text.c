/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith info --counters` as text: a block for each process or device, a line and a graph for
 * each series.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/common/cli_output.h"
#include "cli/common/sparkline.h"
#include "cli/common/terminal.h"
#include "cli/common/text_table.h"
#include "cli/info/info_counters.h"

#define INDENT 2
#define GAP 2
#define PIPED_GRAPH 40   /* columns, without a terminal */
#define LEAST_GRAPH 16   /* minimum columns; others are dropped first */
#define GREATEST_NAME 32 /* maximum columns of a name on a terminal */
#define LEAST_NAME 10    /* the same on a narrow one */
#define LEAST_SERIES 6

enum column {
	COUNTER,
	SERIES,
	LEAST,
	MEAN,
	GREATEST,
	LAST,
	COLUMNS,
};

static const char *const titles[COLUMNS] = { "counter", "series", "min", "mean", "max", "last" };

/* Columns dropped on a narrow terminal, in this order. */
static const enum column given_up[] = { LEAST, LAST, GREATEST };

struct layout {
	enum ts_sparkline_style style;
	size_t widths[COLUMNS]; /* 0: not shown */
	size_t graph;
};

/* ---- cells ---- */

static void append_string(const struct ts_counters *all, struct ts_text *out, int64_t string)
{
	struct ts_string text = ts_reader_string(all->reader, string);

	ts_text_append_shown(out, text.data, text.length);
}

static void append_name(const struct ts_counters *all, struct ts_text *out,
			const struct ts_counter_row *row)
{
	append_string(all, out, row->name);
	if (row->id) {
		ts_text_append_str(out, " id ");
		append_string(all, out, row->id);
	}
}

static double value_of(const struct ts_counter_series *series, enum column column)
{
	switch (column) {
	case LEAST:
		return series->least;
	case GREATEST:
		return series->greatest;
	case MEAN:
		return ts_resample_mean(series->graph);
	default:
		return series->newest;
	}
}

/* Replaces `out` by the text of a cell. */
static void make_cell(const struct ts_counters *all, struct ts_text *out,
		      const struct ts_counter_series *series, enum column column)
{
	const struct ts_counter_row *row = &all->counters[series->counter].row;
	struct ts_string name = ts_reader_string(all->reader, row->name);

	ts_text_clear(out);
	if (column == COUNTER)
		append_name(all, out, row);
	else if (column == SERIES)
		append_string(all, out, series->key);
	else if (series->values)
		ts_counter_append_value(out, ts_counter_unit(name.data, name.length),
					value_of(series, column));
	else
		ts_text_append_char(out, '-');
}

/* ---- layout ---- */

static size_t total_width(const struct layout *layout)
{
	size_t needed = INDENT;

	for (size_t i = 0; i < COLUMNS; i++)
		needed += layout->widths[i] ? layout->widths[i] + GAP : 0;
	return needed;
}

/* Narrows a column, but not below `least`, if a line with a graph is too long. */
static void narrow(struct layout *layout, size_t line, enum column column, size_t least)
{
	size_t needed = total_width(layout) + LEAST_GRAPH, *width = &layout->widths[column];

	if (needed > line && *width > least)
		*width -= TS_MIN(needed - line, *width - least);
}

/* On a terminal, truncates names and drops columns to make space for a graph. */
static void fit(struct layout *layout, size_t line)
{
	layout->graph = PIPED_GRAPH;
	if (!line)
		return;
	layout->widths[COUNTER] = TS_MIN(layout->widths[COUNTER], GREATEST_NAME);
	layout->widths[SERIES] = TS_MIN(layout->widths[SERIES], GREATEST_NAME / 2);
	for (size_t i = 0; i < TS_ARRAY_SIZE(given_up); i++) {
		if (total_width(layout) + LEAST_GRAPH > line)
			layout->widths[given_up[i]] = 0;
	}
	narrow(layout, line, COUNTER, LEAST_NAME);
	narrow(layout, line, SERIES, LEAST_SERIES);
	layout->graph = 1;
	if (line > total_width(layout))
		layout->graph = TS_MIN(line - total_width(layout), TS_RESAMPLE_BINS);
}

static void plan(const struct ts_counters *all, struct layout *layout, struct ts_text *cell)
{
	*layout = (struct layout){ .style = ts_sparkline_style() };
	for (size_t i = 0; i < COLUMNS; i++) {
		layout->widths[i] = strlen(titles[i]);
		for (size_t k = 0; k < all->series_count; k++) {
			size_t width;

			make_cell(all, cell, &all->series[k], (enum column)i);
			width = ts_text_shown_width(cell->data, cell->length);
			layout->widths[i] = TS_MAX(layout->widths[i], width);
		}
	}
	fit(layout, ts_terminal_stdout_width());
}

/* ---- lines ---- */

static void append_spaces(struct ts_text *out, size_t count)
{
	while (count--)
		ts_text_append_char(out, ' ');
}

/* Bytes of the first `width` characters of a text. */
static size_t bytes_of(const struct ts_text *text, size_t width)
{
	size_t at = 0;

	while (at < text->length && ts_text_shown_width(text->data, at + 1) <= width)
		at++;
	return at;
}

static void append_cell(struct ts_text *out, const struct layout *layout, struct ts_text *cell,
			enum column column)
{
	size_t needed = layout->widths[column];
	size_t width = ts_text_shown_width(cell->data, cell->length);

	if (!needed)
		return;
	if (width > needed) {
		cell->length = bytes_of(cell, needed - 1);
		ts_text_append_str(cell, layout->style == TS_SPARKLINE_BLOCKS ? "\u2026" : "~");
		width = needed;
	}
	if (column >= LEAST)
		append_spaces(out, needed - width);
	ts_text_append(out, cell->data, cell->length);
	if (column < LEAST)
		append_spaces(out, needed - width);
	append_spaces(out, GAP);
}

static void append_graph(const struct ts_counters *all, struct ts_text *out,
			 const struct layout *layout, const struct ts_counter_series *series)
{
	double points[TS_RESAMPLE_BINS], low, high;

	if (series->graph) {
		ts_resample_values(series->graph, points, layout->graph);
		if (ts_sparkline_range(points, layout->graph, &low, &high))
			ts_sparkline_append(out, layout->style, points, layout->graph, low, high);
	}
	if (series->not_drawn)
		ts_text_printf(out, "%s%" PRIu64 " value%s that cannot be drawn",
			       series->graph ? " and " : "", series->not_drawn,
			       series->not_drawn == 1 ? "" : "s");
	if (series->texts) {
		ts_text_printf(out, "%s%" PRIu64 " %s, last ",
			       series->graph || series->not_drawn ? " and " : "", series->texts,
			       series->texts == 1 ? "text" : "texts");
		append_string(all, out, series->newest_text);
	}
}

static void end_line(struct ts_text *out)
{
	while (out->length && out->data[out->length - 1] == ' ')
		out->length--;
	ts_text_append_char(out, '\n');
}

static void append_titles(const struct ts_counters *all, struct ts_text *out,
			  const struct layout *layout, struct ts_text *cell)
{
	char span[TS_FORMAT_BYTES];
	size_t begin;
	int64_t ns;

	ts_text_append_char(out, '\n');
	append_spaces(out, INDENT);
	for (size_t i = 0; i < COLUMNS; i++) {
		ts_text_clear(cell);
		ts_text_append_str(cell, titles[i]);
		append_cell(out, layout, cell, (enum column)i);
	}
	begin = out->length;
	ts_text_append_str(out, "over ");
	if (__builtin_sub_overflow(all->range.to, all->range.from, &ns))
		ts_text_append_str(out, "time");
	else
		ts_text_append_str(out, ts_format_duration_ns(span, sizeof(span), ns));
	if (out->length > begin + layout->graph)
		out->length = begin + layout->graph;
	end_line(out);
}

static void append_series(const struct ts_counters *all, struct ts_text *out,
			  const struct layout *layout, const struct ts_counter_series *series,
			  struct ts_text *cell)
{
	append_spaces(out, INDENT);
	for (size_t i = 0; i < COLUMNS; i++) {
		make_cell(all, cell, series, (enum column)i);
		append_cell(out, layout, cell, (enum column)i);
	}
	append_graph(all, out, layout, series);
	end_line(out);
}

static void append_summary(const struct ts_counters *all, struct ts_text *out)
{
	char count[TS_FORMAT_BYTES];

	ts_text_append_str(out, "trace      ");
	ts_text_append_shown(out, all->path, strlen(all->path));
	ts_text_printf(out, "\ncounters   %zu series", all->series_count);
	ts_text_printf(out, " in %s row%s\n",
		       ts_format_count(count, sizeof(count), (int64_t)all->rows),
		       all->rows == 1 ? "" : "s");
	if (all->series_count)
		ts_text_append_str(out, "means      weighted by time: rates since the last value, "
					"others until the next\n");
	if (all->left_out)
		ts_text_printf(
			out, "left out   %s values: more than %d series; select some with --name\n",
			ts_format_count(count, sizeof(count), (int64_t)all->left_out),
			TS_COUNTERS_SERIES);
}

static void append_subject(struct ts_text *out, const char *where)
{
	ts_text_append_shown(out, where, strlen(where));
	ts_text_append_char(out, '\n');
}

static void append_left_out(struct ts_text *out, const struct layout *layout)
{
	TS_SCOPED(ts_text) names = { 0 };

	for (size_t i = 0; i < COLUMNS; i++)
		if (!layout->widths[i])
			ts_text_printf(&names, "%s%s", names.length ? ", " : "", titles[i]);
	if (names.length) {
		ts_text_append_char(out, '\n');
		ts_text_table_append_left_out(out, ts_text_cstr(&names),
					      ts_terminal_stdout_width());
	}
}

int ts_counters_show_text(const struct ts_counters *all, struct ts_error *err)
{
	struct ts_text *out = ts_stdout();
	TS_SCOPED(ts_text) cell = { 0 };
	const char *where = "";
	struct layout layout;
	int rc = TS_OK;

	append_summary(all, out);
	plan(all, &layout, &cell);
	if (all->series_count)
		append_titles(all, out, &layout, &cell);
	for (size_t i = 0; !rc && i < all->series_count; i++) {
		const struct ts_counter_series *series = &all->series[i];

		if (i == 0 || strcmp(where, all->counters[series->counter].where)) {
			where = all->counters[series->counter].where;
			ts_text_append_str(out, i ? "\n" : "");
			append_subject(out, where);
		}
		append_series(all, out, &layout, series, &cell);
		rc = ts_stdout_drain(err);
	}
	if (all->series_count)
		append_left_out(out, &layout);
	return rc;
}
