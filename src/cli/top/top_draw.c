/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws `top` on a screen of any size: header, table, and a bottom line. Small windows lose the
 * header first.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/top/top.h"

/* Rows that the table gets before the header: its titles and three processes. */
#define TABLE_LEAST 4u
#define BAR_LEAST 6u
#define BAR_GREATEST 30u
#define MESSAGES_SHOWN 2u
#define PANE_LEAST 3u

/* ---- the header ---- */

static enum ts_style style_of(double percent)
{
	return percent >= 90 ? TS_STYLE_RED : percent >= 60 ? TS_STYLE_YELLOW : TS_STYLE_GREEN;
}

static void put_bar(struct ts_screen *screen, double percent)
{
	unsigned int width = TS_MIN(TS_MAX(screen->columns / 4, BAR_LEAST), BAR_GREATEST);
	double share = isnan(percent) ? 0 : TS_MAX(TS_MIN(percent, 100.0), 0.0);
	unsigned int full = (unsigned int)(share * width / 100 + 0.5);
	char number[32];

	ts_screen_str(screen, TS_STYLE_PLAIN, "[");
	for (unsigned int i = 0; i < full; i++)
		ts_screen_str(screen, style_of(percent), screen->utf8 ? "\xe2\x96\x88" : "|");
	ts_screen_cell(screen, TS_STYLE_PLAIN, "", width - full, false);
	ts_screen_str(screen, TS_STYLE_PLAIN, "] ");
	ts_top_format_percent(number, sizeof(number), percent);
	ts_screen_cell(screen, TS_STYLE_BOLD, number, 5, true);
	ts_screen_str(screen, TS_STYLE_PLAIN, "%");
}

static void put_labelled(struct ts_screen *screen, const char *label, const char *value)
{
	ts_screen_str(screen, TS_STYLE_DIM, label);
	ts_screen_str(screen, TS_STYLE_PLAIN, value);
}

static void draw_title(struct ts_top_session *session)
{
	struct ts_screen *screen = &session->screen;
	const struct ts_top *top = session->top;
	char text[160];

	ts_screen_str(screen, TS_STYLE_BOLD, "tracesmith top  ");
	ts_top_format_host(text, sizeof(text));
	ts_screen_str(screen, TS_STYLE_PLAIN, text);
	ts_top_format_load(top, text, sizeof(text));
	ts_screen_str(screen, TS_STYLE_PLAIN, "  ");
	ts_screen_str(screen, TS_STYLE_PLAIN, text);
	snprintf(text, sizeof(text), "  %zu process%s, every %.4g s", top->process_count,
		 top->process_count == 1 ? "" : "es", (double)top->delay_ns / 1e9);
	ts_screen_str(screen, TS_STYLE_PLAIN, text);
}

static void draw_cpu(struct ts_top_session *session)
{
	const double *system = session->top->system;
	struct ts_screen *screen = &session->screen;
	char text[32];

	ts_screen_str(screen, TS_STYLE_PLAIN, "cpu ");
	put_bar(screen, ts_top_busy_percent(session->top));
	put_labelled(screen, "  user ",
		     ts_top_format_percent(text, sizeof(text), system[TS_TOP_CPU_USER]));
	put_labelled(screen, "  system ",
		     ts_top_format_percent(text, sizeof(text), system[TS_TOP_CPU_SYSTEM]));
	put_labelled(screen, "  iowait ",
		     ts_top_format_percent(text, sizeof(text), system[TS_TOP_CPU_IOWAIT]));
	if (system[TS_TOP_CPU_STEAL] >= 0.05)
		put_labelled(screen, "  steal ",
			     ts_top_format_percent(text, sizeof(text), system[TS_TOP_CPU_STEAL]));
}

static void draw_memory(struct ts_top_session *session)
{
	const double *system = session->top->system;
	struct ts_screen *screen = &session->screen;
	double total = session->top->memory_total, used = system[TS_TOP_MEMORY_USED];
	char text[32];

	ts_screen_str(screen, TS_STYLE_PLAIN, "mem ");
	put_bar(screen, 100 * used / total);
	put_labelled(screen, "  used ", ts_top_format_bytes(text, sizeof(text), used));
	put_labelled(screen, "/", ts_top_format_bytes(text, sizeof(text), total));
	put_labelled(screen, "  available ",
		     ts_top_format_bytes(text, sizeof(text), system[TS_TOP_MEMORY_AVAILABLE]));
	put_labelled(screen, "  swap ",
		     ts_top_format_bytes(text, sizeof(text), system[TS_TOP_SWAP_USED]));
}

static void draw_device(struct ts_top_session *session, const struct ts_top_device *device)
{
	const struct ts_top_subject *values = ts_top_device_values(session->top, device->number);
	struct ts_screen *screen = &session->screen;
	TS_SCOPED(ts_text) text = { 0 };
	char name[128];

	ts_top_format_device_name(device, name, sizeof(name));
	ts_screen_cell(screen, TS_STYLE_PLAIN, name,
		       TS_MIN((unsigned int)sizeof(name), TS_MAX(screen->columns / 4, 9u)), false);
	ts_screen_str(screen, TS_STYLE_PLAIN, " ");
	if (!values) {
		ts_screen_str(screen, TS_STYLE_DIM, "no data");
		return;
	}
	put_bar(screen, values->values[TS_TOP_DEVICE_PERCENT]);
	ts_top_describe_device(device, values, &text);
	ts_screen_str(screen, values->throttled[0] ? TS_STYLE_YELLOW : TS_STYLE_PLAIN,
		      ts_text_cstr(&text));
}

static void draw_message(struct ts_top_session *session, const struct ts_top_message *message)
{
	struct ts_screen *screen = &session->screen;

	ts_screen_str(screen, TS_STYLE_YELLOW, message->source);
	ts_screen_str(screen, TS_STYLE_YELLOW, ": ");
	ts_screen_str(screen, TS_STYLE_DIM, message->text);
}

/* Devices share the remaining lines; if there are too many the last line says so. */
static unsigned int draw_devices(struct ts_top_session *session, unsigned int row, unsigned int end)
{
	const struct ts_top *top = session->top;
	char text[48];

	for (size_t i = 0; i < top->device_count && row < end; i++) {
		size_t left = top->device_count - i;

		ts_screen_row(&session->screen, row++);
		if (row == end && left > 1) {
			snprintf(text, sizeof(text), "+ %zu more devices", left);
			ts_screen_str(&session->screen, TS_STYLE_DIM, text);
			break;
		}
		draw_device(session, &top->devices[i]);
	}
	return row;
}

/* Returns the row below it. */
static unsigned int draw_header(struct ts_top_session *session, unsigned int end)
{
	static void (*const lines[])(struct ts_top_session *) = { draw_title, draw_cpu,
								  draw_memory };
	const struct ts_top *top = session->top;
	unsigned int row = 0;
	size_t first = top->message_count > MESSAGES_SHOWN ? top->message_count - MESSAGES_SHOWN
							   : 0;

	for (size_t i = 0; i < TS_ARRAY_SIZE(lines) && row < end; i++) {
		ts_screen_row(&session->screen, row++);
		lines[i](session);
	}
	row = draw_devices(session, row, end);
	for (size_t i = first; i < top->message_count && row < end; i++) {
		ts_screen_row(&session->screen, row++);
		draw_message(session, &top->messages[i]);
	}
	if (top->note[0] && row < end) {
		ts_screen_row(&session->screen, row++);
		ts_screen_str(&session->screen, TS_STYLE_DIM, top->note);
	}
	return row;
}

/* ---- the table ---- */

static void draw_titles(struct ts_top_session *session, const bool shown[TS_TOP_COLUMNS])
{
	struct ts_screen *screen = &session->screen;
	const struct ts_top_view *view = &session->view;
	bool first = true;

	for (size_t i = 0; i < TS_TOP_COLUMNS; i++) {
		const struct ts_top_column_info *column = ts_top_column((enum ts_top_column)i);
		enum ts_style style = i == view->sort ? TS_STYLE_BOLD : TS_STYLE_REVERSE;

		if (!shown[i])
			continue;
		if (!first)
			ts_screen_str(screen, TS_STYLE_REVERSE, " ");
		first = false;
		if (i == TS_TOP_COLUMN_COMMAND)
			ts_screen_str(screen, style, column->title);
		else
			ts_screen_cell(screen, style, column->title, view->widths[i],
				       column->right);
	}
	ts_screen_pad(screen, TS_STYLE_REVERSE, screen->columns);
}

static enum ts_style style_of_cell(const struct ts_top_process *process, size_t column,
				   const char *text)
{
	if (!strcmp(text, "-"))
		return TS_STYLE_DIM;
	if (column == TS_TOP_COLUMN_LOST && process->lost > 0)
		return process->loses ? TS_STYLE_RED : TS_STYLE_YELLOW;
	if (column == TS_TOP_COLUMN_RECORDER && process->recorded == TS_TOP_RECORDED)
		return TS_STYLE_GREEN;
	if (column == TS_TOP_COLUMN_RECORDER && process->recorded != TS_TOP_FLIGHT)
		return TS_STYLE_YELLOW;
	if (column == TS_TOP_COLUMN_STATE && process->state == 'R')
		return TS_STYLE_GREEN;
	return TS_STYLE_PLAIN;
}

/* A long command can be scrolled, by complete characters of any width. */
static const char *scrolled(const char *text, unsigned int characters)
{
	for (; *text && characters; text++)
		characters -= ((unsigned char)text[1] & 0xc0) != 0x80;
	return text;
}

/* The text of a cell, NUL-terminated; device lists are cut after a complete one. */
static const char *text_of_cell(const struct ts_top_view *view,
				const struct ts_top_process *process, enum ts_top_column column,
				char buffer[TS_TOP_CELL_BYTES])
{
	const char *text;

	if (column == TS_TOP_COLUMN_DEVICES)
		return ts_top_device_list_format(
			&process->devices, buffer,
			TS_MIN(view->widths[column] + 1, TS_TOP_CELL_BYTES));
	ts_top_format_cell(process, column, view->full_command, buffer, &text);
	return text;
}

static void draw_row(struct ts_top_session *session, size_t index, const bool shown[TS_TOP_COLUMNS])
{
	struct ts_screen *screen = &session->screen;
	const struct ts_top_view *view = &session->view;
	const struct ts_top_process *process = view->rows[index];
	bool selected = index == view->selected, first = true;

	for (size_t i = 0; i < TS_TOP_COLUMNS; i++) {
		char buffer[TS_TOP_CELL_BYTES];
		const char *text;
		enum ts_style style;

		if (!shown[i])
			continue;
		text = text_of_cell(view, process, (enum ts_top_column)i, buffer);
		style = selected ? TS_STYLE_REVERSE : style_of_cell(process, i, text);
		if (!first)
			ts_screen_str(screen, selected ? TS_STYLE_REVERSE : TS_STYLE_PLAIN, " ");
		first = false;
		if (i == TS_TOP_COLUMN_COMMAND)
			ts_screen_str(screen, style, scrolled(text, view->column_offset));
		else
			ts_screen_cell(screen, style, text, view->widths[i],
				       ts_top_column((enum ts_top_column)i)->right);
	}
	if (selected)
		ts_screen_pad(screen, TS_STYLE_REVERSE, screen->columns);
}

static void draw_empty(struct ts_top_session *session, unsigned int row)
{
	ts_screen_row(&session->screen, row);
	ts_screen_str(
		&session->screen, TS_STYLE_DIM,
		session->view.filter[0] ? "no process name matches"
		: session->top->requested_count
			? "the process has exited"
			: "no process has a TraceSmith agent or uses an accelerator: start one with 'tracesmith record -- CMD', or see all with -a");
}

/* Keeps the selected row on the screen. */
static void scroll(struct ts_top_view *view, unsigned int page)
{
	if (view->selected < view->first)
		view->first = view->selected;
	if (page && view->selected >= view->first + page)
		view->first = view->selected + 1 - page;
	if (view->first + page > view->row_count)
		view->first = view->row_count > page ? view->row_count - page : 0;
}

static void draw_table(struct ts_top_session *session, unsigned int row, unsigned int end)
{
	struct ts_top_view *view = &session->view;
	bool shown[TS_TOP_COLUMNS];

	ts_top_view_fit(view, session->top, session->screen.columns, shown);
	if (row < end) {
		ts_screen_row(&session->screen, row++);
		draw_titles(session, shown);
	}
	session->page = end - row;
	scroll(view, session->page);
	if (!view->row_count && row < end)
		draw_empty(session, row);
	for (size_t i = view->first; i < view->row_count && row < end; i++) {
		ts_screen_row(&session->screen, row++);
		draw_row(session, i, shown);
	}
}

/* ---- the last line ---- */

static void draw_question(struct ts_top_session *session, const char *question)
{
	struct ts_screen *screen = &session->screen;

	ts_screen_str(screen, TS_STYLE_BOLD, question);
	ts_screen_str(screen, TS_STYLE_PLAIN, session->answer);
	ts_screen_str(screen, TS_STYLE_REVERSE, " ");
}

static void draw_hints(struct ts_top_session *session)
{
	struct ts_screen *screen = &session->screen;

	if (session->message[0]) {
		ts_screen_str(screen, TS_STYLE_BOLD, session->message);
		return;
	}
	if (session->view.filter[0]) {
		ts_screen_str(screen, TS_STYLE_CYAN, "only '");
		ts_screen_str(screen, TS_STYLE_CYAN, session->view.filter);
		ts_screen_str(screen, TS_STYLE_CYAN, "'  ");
	}
	ts_screen_str(
		screen, TS_STYLE_DIM,
		"q quit  h help  P M N T E < > R sort  / filter  k signal  d delay  c command  y python");
}

static void draw_bottom(struct ts_top_session *session)
{
	const struct ts_top_process *victim = ts_top_find_process(session->top, session->victim);
	char question[160];

	ts_screen_row(&session->screen, session->screen.rows - 1);
	switch (session->mode) {
	case TS_TOP_PROMPT_DELAY:
		snprintf(question, sizeof(question), "refresh interval in seconds [%.4g]: ",
			 (double)session->top->delay_ns / 1e9);
		break;
	case TS_TOP_PROMPT_FILTER:
		snprintf(question, sizeof(question), "show only names containing (empty: all): ");
		break;
	case TS_TOP_PROMPT_SIGNAL:
		snprintf(question, sizeof(question),
			 "signal for %d (%s), Enter sends, Esc cancels [TERM]: ",
			 (int)session->victim, victim ? victim->name : "gone");
		break;
	default:
		draw_hints(session);
		return;
	}
	draw_question(session, question);
}

/* ---- help ---- */

static void draw_help(struct ts_top_session *session)
{
	static const char *const lines[] = {
		"q, F10        quit                       h, ?, F1    this help",
		"P M N T E     sort by CPU, memory, pid, time, events",
		"< >           sort by the column to the left or right",
		"R             reverse the order",
		"arrows, PgUp, PgDn, Home, End    select a process; left and right scroll the command",
		"space         refresh now                d, s        set the interval",
		"k, F9         send a signal              /, F, F4    filter by name",
		"c             name or command line       Ctrl-L      redraw",
		"y             Python functions, threads or neither",
		"o, i          sort functions by own or total time; include idle threads or not",
		"",
	};
	struct ts_screen *screen = &session->screen;
	unsigned int row = 0;

	for (size_t i = 0; i < TS_ARRAY_SIZE(lines); i++) {
		ts_screen_row(screen, row++);
		ts_screen_str(screen, TS_STYLE_PLAIN, lines[i]);
	}
	for (size_t i = 0; i < TS_TOP_COLUMNS; i++) {
		const struct ts_top_column_info *column = ts_top_column((enum ts_top_column)i);

		ts_screen_row(screen, row++);
		ts_screen_cell(screen, TS_STYLE_BOLD, column->title, 9, false);
		ts_screen_str(screen, TS_STYLE_PLAIN, column->doc);
	}
	ts_screen_row(screen, row);
	ts_screen_str(
		screen, TS_STYLE_DIM,
		"'-' is not available; events overwritten in flight mode do not count as lost");
	if (screen->rows < row + 2)
		return;
	ts_screen_row(screen, screen->rows - 1);
	ts_screen_str(screen, TS_STYLE_BOLD, "press any key to return");
}

/*
 * Rows for functions or threads: what the process table does not need, and at least half of what
 * the header leaves.
 */
static unsigned int rows_of_pane(const struct ts_top_session *session, unsigned int row,
				 unsigned int bottom)
{
	const struct ts_top *top = session->top;
	unsigned int left = bottom > row ? bottom - row : 0;
	unsigned int table = (unsigned int)TS_MIN(session->view.row_count, 1000u) + 2;
	unsigned int wanted = ts_top_python_rows(&top->python_snapshot, session->pane);

	/* Not requested, and there is no Python. */
	if (!top->python_snapshot.processes && !session->wants_pane)
		return 0;
	if (left < TABLE_LEAST + PANE_LEAST)
		return 0;
	return TS_MIN(wanted, TS_MAX(left / 2, left > table ? left - table : 0));
}

void ts_top_draw(struct ts_top_session *session)
{
	struct ts_screen *screen = &session->screen;
	unsigned int bottom = screen->rows > 2 ? screen->rows - 1 : screen->rows;
	unsigned int space = bottom > TABLE_LEAST ? bottom - TABLE_LEAST : 0, row, pane;

	ts_screen_begin(screen);
	if (session->mode == TS_TOP_HELP) {
		draw_help(session);
		return;
	}
	row = draw_header(session, TS_MIN(space, TS_MAX(screen->rows / 2, 3u)));
	pane = rows_of_pane(session, row, bottom);
	draw_table(session, row, bottom - pane);
	ts_top_python_draw(screen, &session->top->python_snapshot, session->pane, bottom - pane,
			   bottom);
	if (screen->rows > 2 || session->mode != TS_TOP_TABLE) {
		ts_screen_clear_row(screen, screen->rows - 1);
		draw_bottom(session);
	}
}
