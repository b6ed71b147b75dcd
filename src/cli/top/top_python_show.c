/* SPDX-License-Identifier: Apache-2.0 */
/* Functions and threads of Python programs as tables, as JSON, and on a screen. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cli/common/cli_output.h"
#include "cli/common/text_table.h"
#include "cli/stack/stack_verb.h"
#include "cli/top/top.h"
#include "cli/top/top_python.h"

#define CELL 1100u

/* ---- rows and columns ---- */

struct column {
	const char *title;
	bool right;
	unsigned int width; /* on a screen; 0: the rest of the line */
};

static const struct column function_columns[] = {
	{ "OWN%", true, 6 },  { "TOTAL%", true, 6 },    { "OWN", true, 8 },
	{ "TOTAL", true, 8 }, { "FUNCTION", false, 0 },
};
static const struct column thread_columns[] = {
	{ "PID", true, 7 },     { "TID", true, 7 },  { "STATE", false, 15 },
	{ "ACTIVE%", true, 7 }, { "GIL%", true, 6 }, { "THREAD", false, 16 },
	{ "AT", false, 0 },
};

static void format_seconds(char *cell, size_t bytes, int64_t ns)
{
	snprintf(cell, bytes, "%.2fs", (double)ns / 1e9);
}

/* Share of the interval; 100 is one thread all the time. */
static double percent_of(const struct ts_top_python_snapshot *picture, int64_t ns)
{
	return picture->elapsed_s > 0 ? (double)ns / 1e7 / picture->elapsed_s : 0;
}

static void format_function(const struct ts_top_python_snapshot *picture, size_t row, size_t column,
			    char *cell, size_t bytes)
{
	const struct ts_top_function *function = &picture->functions[row];

	if (column == 0)
		ts_top_format_percent(cell, bytes, percent_of(picture, function->recent_self_ns));
	else if (column == 1)
		ts_top_format_percent(cell, bytes, percent_of(picture, function->recent_total_ns));
	else if (column == 2)
		format_seconds(cell, bytes, function->self_ns);
	else if (column == 3)
		format_seconds(cell, bytes, function->total_ns);
	else
		snprintf(cell, bytes, "%s (%s:%" PRId32 ")", function->name, function->file,
			 function->line);
}

static void format_thread(const struct ts_top_python_snapshot *picture, size_t row, size_t column,
			  char *cell, size_t bytes)
{
	const struct ts_top_python_thread *thread = &picture->threads[row];

	if (column == 0)
		snprintf(cell, bytes, "%d", (int)thread->pid);
	else if (column == 1)
		snprintf(cell, bytes, "%d", (int)thread->tid);
	else if (column == 2)
		snprintf(cell, bytes, "%s", ts_stack_state_name(thread->state));
	else if (column == 3)
		ts_top_format_percent(cell, bytes, thread->active_percent);
	else if (column == 4)
		ts_top_format_percent(cell, bytes, thread->gil_percent);
	else if (column == 5)
		snprintf(cell, bytes, "%s%s%s", thread->name, thread->task[0] ? "/" : "",
			 thread->task);
	else if (thread->function)
		snprintf(cell, bytes, "%s (%s:%" PRId32 ")", thread->function, thread->file,
			 thread->line);
	else
		snprintf(cell, bytes, "-");
}

struct list {
	const struct column *columns;
	size_t column_count, row_count;
	void (*format)(const struct ts_top_python_snapshot *picture, size_t row, size_t column,
		       char *cell, size_t bytes);
};

static struct list list_of(const struct ts_top_python_snapshot *picture, enum ts_top_pane pane)
{
	if (pane == TS_TOP_PANE_THREADS)
		return (struct list){ thread_columns, TS_ARRAY_SIZE(thread_columns),
				      picture->thread_count, format_thread };
	return (struct list){ function_columns, TS_ARRAY_SIZE(function_columns),
			      picture->function_count, format_function };
}

void ts_top_python_describe(const struct ts_top_python_snapshot *picture, struct ts_text *out)
{
	uint64_t tries = picture->samples + picture->rejected;

	if (!picture->processes) {
		ts_text_printf(out, "python: %s",
			       picture->message[0] ? picture->message : "no Python stacks yet");
		return;
	}
	ts_text_printf(out, "python: %zu process%s, %zu thread%s, %.0f samples/s, %.2f%% rejected",
		       picture->processes, picture->processes == 1 ? "" : "es",
		       picture->thread_count, picture->thread_count == 1 ? "" : "s",
		       (double)picture->samples / picture->elapsed_s,
		       tries ? 100 * (double)picture->rejected / (double)tries : 0.0);
	ts_text_printf(out, ", GIL %.1f%%", picture->gil_percent);
	if (picture->message[0])
		ts_text_printf(out, "; %s", picture->message);
}

/* ---- text ---- */

static int put_table(const struct ts_top_python_snapshot *picture, enum ts_top_pane pane,
		     struct ts_error *err)
{
	struct list list = list_of(picture, pane);
	struct ts_text_table table;
	int rc;

	ts_text_table_init(&table);
	for (size_t i = 0; i < list.column_count; i++)
		ts_text_table_add_column(&table, list.columns[i].title, list.columns[i].right);
	for (size_t row = 0; row < list.row_count; row++) {
		for (size_t i = 0; i < list.column_count; i++) {
			char cell[CELL];

			list.format(picture, row, i, cell, sizeof(cell));
			ts_text_table_str(&table, cell);
		}
		ts_text_table_end_row(&table);
	}
	rc = ts_text_table_finish(&table, err);
	ts_text_table_release(&table);
	return rc;
}

int ts_top_python_put_text(const struct ts_top_python_snapshot *picture, struct ts_error *err)
{
	struct ts_text *out = ts_stdout();
	TS_SCOPED(ts_text) title = { 0 };
	int rc = TS_OK;

	ts_top_python_describe(picture, &title);
	ts_text_append_char(out, '\n');
	ts_text_append_shown(out, title.data, title.length);
	ts_text_append_char(out, '\n');
	if (picture->function_count)
		rc = put_table(picture, TS_TOP_PANE_FUNCTIONS, err);
	if (!rc && picture->thread_count) {
		ts_text_append_char(out, '\n');
		rc = put_table(picture, TS_TOP_PANE_THREADS, err);
	}
	return rc;
}

/* ---- JSON ---- */

static void put_string(struct ts_text *out, const char *key, const char *text)
{
	ts_text_printf(out, ",\"%s\":", key);
	ts_text_append_json(out, text, strlen(text));
}

static void put_real(struct ts_text *out, const char *key, double value)
{
	ts_text_printf(out, ",\"%s\":", key);
	ts_text_append_double(out, value);
}

static void put_json_function(struct ts_text *out, const struct ts_top_python_snapshot *picture,
			      const struct ts_top_function *function)
{
	ts_text_append_str(out, "{\"func\":");
	ts_text_append_json(out, function->name, strlen(function->name));
	put_string(out, "file", function->file);
	ts_text_printf(out, ",\"lineno\":%" PRId32, function->line);
	put_real(out, "own_percent", percent_of(picture, function->recent_self_ns));
	put_real(out, "total_percent", percent_of(picture, function->recent_total_ns));
	put_real(out, "own_s", (double)function->self_ns / 1e9);
	put_real(out, "total_s", (double)function->total_ns / 1e9);
	ts_text_append_char(out, '}');
}

static void put_json_thread(struct ts_text *out, const struct ts_top_python_thread *thread)
{
	ts_text_printf(out, "{\"pid\":%d,\"tid\":%d", (int)thread->pid, (int)thread->tid);
	put_string(out, "name", thread->name);
	put_string(out, "state", ts_stack_state_name(thread->state));
	put_real(out, "active_percent", thread->active_percent);
	put_real(out, "gil_percent", thread->gil_percent);
	if (thread->task[0])
		put_string(out, "task", thread->task);
	if (thread->function) {
		put_string(out, "func", thread->function);
		put_string(out, "file", thread->file);
		ts_text_printf(out, ",\"lineno\":%" PRId32, thread->line);
	}
	ts_text_append_char(out, '}');
}

void ts_top_python_put_json(struct ts_text *out, const struct ts_top_python_snapshot *picture)
{
	ts_text_printf(out, "{\"processes\":%zu,\"samples\":%" PRIu64 ",\"rejected\":%" PRIu64,
		       picture->processes, picture->samples, picture->rejected);
	put_real(out, "elapsed_s", picture->elapsed_s);
	put_real(out, "gil_percent", picture->gil_percent);
	if (picture->message[0])
		put_string(out, "message", picture->message);
	ts_text_append_str(out, ",\"functions\":[");
	for (size_t i = 0; i < picture->function_count; i++) {
		if (i)
			ts_text_append_char(out, ',');
		put_json_function(out, picture, &picture->functions[i]);
	}
	ts_text_append_str(out, "],\"threads\":[");
	for (size_t i = 0; i < picture->thread_count; i++) {
		if (i)
			ts_text_append_char(out, ',');
		put_json_thread(out, &picture->threads[i]);
	}
	ts_text_append_str(out, "]}");
}

/* ---- the screen ---- */

unsigned int ts_top_python_rows(const struct ts_top_python_snapshot *picture, enum ts_top_pane pane)
{
	struct list list = list_of(picture, pane);

	if (pane == TS_TOP_PANE_NONE)
		return 0;
	return list.row_count ? (unsigned int)TS_MIN(list.row_count, 1000u) + 2 : 1;
}

static void draw_cell(struct ts_screen *screen, enum ts_style style, const struct column *column,
		      const char *text)
{
	if (column->width)
		ts_screen_cell(screen, style, text, column->width, column->right);
	else
		ts_screen_str(screen, style, text);
	if (column->width)
		ts_screen_str(screen, style, " ");
}

void ts_top_python_draw(struct ts_screen *screen, const struct ts_top_python_snapshot *picture,
			enum ts_top_pane pane, unsigned int row, unsigned int end)
{
	struct list list = list_of(picture, pane);
	TS_SCOPED(ts_text) title = { 0 };

	if (row >= end)
		return;
	ts_top_python_describe(picture, &title);
	ts_screen_row(screen, row++);
	ts_screen_str(screen, TS_STYLE_BOLD, ts_text_cstr(&title));
	if (!list.row_count || row >= end)
		return;
	ts_screen_row(screen, row++);
	for (size_t i = 0; i < list.column_count; i++)
		draw_cell(screen, TS_STYLE_REVERSE, &list.columns[i], list.columns[i].title);
	ts_screen_pad(screen, TS_STYLE_REVERSE, screen->columns);
	for (size_t k = 0; k < list.row_count && row < end; k++) {
		ts_screen_row(screen, row++);
		for (size_t i = 0; i < list.column_count; i++) {
			char cell[CELL];

			list.format(picture, k, i, cell, sizeof(cell));
			draw_cell(screen, TS_STYLE_PLAIN, &list.columns[i], cell);
		}
	}
}
