/* SPDX-License-Identifier: Apache-2.0 */
/* The table of `top`: columns as data, cell texts, sorting, filtering, and which columns fit. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/top/top.h"

/* Minimum useful width of the command. */
#define COMMAND_COLUMNS 16u

static const struct ts_top_column_info columns[] = {
	[TS_TOP_COLUMN_PID] = { "PID", "pid", "process", true, false, 7, 0, false },
	[TS_TOP_COLUMN_USER] = { "USER", "user", "owner", false, false, 8, 4, false },
	[TS_TOP_COLUMN_STATE] = { "S", "state",
				  "R running, S sleeping, D uninterruptible, T stopped, Z zombie",
				  false, false, 1, 6, false },
	[TS_TOP_COLUMN_RECORDER] = { "REC", "rec",
				     "pid of its recorder (in parentheses: window closed), flight, dead, off; - no agent",
				     false, false, 7, 9, false },
	[TS_TOP_COLUMN_CPU] = { "CPU%", "cpu", "100 is one core", true, true, 5, 0, false },
	[TS_TOP_COLUMN_RSS] = { "RES", "mem", "memory in use", true, true, 6, 11, false },
	[TS_TOP_COLUMN_VMS] = { "VIRT", "virt", "address space", true, true, 6, 1, false },
	[TS_TOP_COLUMN_THREADS] = { "THR", "threads", "threads", true, true, 4, 3, false },
	[TS_TOP_COLUMN_DEVICES] = { "DEV", "dev", "accelerators: NV0 is NVIDIA 0", false, false, 3,
				    7, true },
	[TS_TOP_COLUMN_DEVICE_PERCENT] = { "DEV%", "gpu", "accelerator utilization, if reported",
					   true, true, 5, 2, true },
	[TS_TOP_COLUMN_DEVICE_MEMORY] = { "DMEM", "gpumem", "accelerator memory", true, true, 6, 8,
					  true },
	[TS_TOP_COLUMN_EVENTS] = { "EV/S", "events", "events stored per second (~ estimated)", true,
				   true, 7, 12, false },
	[TS_TOP_COLUMN_LOST] = { "LOST", "lost", "events lost so far", true, true, 5, 10, false },
	[TS_TOP_COLUMN_TIME] = { "TIME+", "time", "CPU time so far", true, true, 8, 5, false },
	[TS_TOP_COLUMN_COMMAND] = { "COMMAND", "command", "name; c shows the command line", false,
				    false, 7, 0, false },
};

const struct ts_top_column_info *ts_top_column(enum ts_top_column column)
{
	return &columns[column];
}

/* ---- cells ---- */

static void format_recorder(const struct ts_top_process *process, char *buffer, size_t size)
{
	static const char *const states[] = {
		[TS_TOP_NO_AGENT] = "-",
		[TS_TOP_FLIGHT] = "flight",
		[TS_TOP_RECORDER_DEAD] = "dead",
		[TS_TOP_DISABLED] = "off",
	};

	if (process->recorded != TS_TOP_RECORDED)
		snprintf(buffer, size, "%s", states[process->recorded]);
	else
		snprintf(buffer, size, process->window_closed ? "(%d)" : "%d",
			 (int)process->recorder);
}

static void format_rate(const struct ts_top_process *process, char *buffer, size_t size)
{
	char number[32];

	ts_top_format_count(number, sizeof(number), process->events_per_s);
	snprintf(buffer, size, "%s%s",
		 process->estimated && !isnan(process->events_per_s) ? "~" : "", number);
}

static const char *text_of(const struct ts_top_process *process, enum ts_top_column column,
			   bool full_command)
{
	if (column == TS_TOP_COLUMN_USER)
		return process->user;
	if (column == TS_TOP_COLUMN_COMMAND)
		return full_command ? process->command : process->name;
	return NULL;
}

static double value_of(const struct ts_top_process *process, enum ts_top_column column)
{
	static const enum ts_top_metric metrics[TS_TOP_COLUMNS] = {
		[TS_TOP_COLUMN_CPU] = TS_TOP_CPU,
		[TS_TOP_COLUMN_RSS] = TS_TOP_RSS,
		[TS_TOP_COLUMN_VMS] = TS_TOP_VMS,
		[TS_TOP_COLUMN_THREADS] = TS_TOP_THREADS,
		[TS_TOP_COLUMN_DEVICE_PERCENT] = TS_TOP_DEVICE_PERCENT,
		[TS_TOP_COLUMN_DEVICE_MEMORY] = TS_TOP_DEVICE_MEMORY,
	};

	if (column == TS_TOP_COLUMN_EVENTS)
		return process->events_per_s;
	if (column == TS_TOP_COLUMN_LOST)
		return process->lost;
	if (column == TS_TOP_COLUMN_TIME)
		return process->cpu_time_s;
	if (column == TS_TOP_COLUMN_PID)
		return (double)process->pid;
	return process->values[metrics[column]];
}

static void format_number(const struct ts_top_process *process, enum ts_top_column column,
			  char *buffer, size_t size)
{
	double value = value_of(process, column);

	switch (column) {
	case TS_TOP_COLUMN_PID:
		snprintf(buffer, size, "%d", (int)process->pid);
		break;
	case TS_TOP_COLUMN_CPU:
	case TS_TOP_COLUMN_DEVICE_PERCENT:
		ts_top_format_percent(buffer, size, value);
		break;
	case TS_TOP_COLUMN_TIME:
		ts_top_format_time(buffer, size, value);
		break;
	case TS_TOP_COLUMN_THREADS:
	case TS_TOP_COLUMN_LOST:
		ts_top_format_count(buffer, size, value);
		break;
	default:
		ts_top_format_bytes(buffer, size, value);
	}
}

void ts_top_format_cell(const struct ts_top_process *process, enum ts_top_column column,
			bool full_command, char buffer[TS_TOP_CELL_BYTES], const char **ret_text)
{
	const char *text = text_of(process, column, full_command);

	*ret_text = text ? text : buffer;
	if (text)
		return;
	if (column == TS_TOP_COLUMN_STATE)
		snprintf(buffer, TS_TOP_CELL_BYTES, "%c", process->state);
	else if (column == TS_TOP_COLUMN_RECORDER)
		format_recorder(process, buffer, TS_TOP_CELL_BYTES);
	else if (column == TS_TOP_COLUMN_EVENTS)
		format_rate(process, buffer, TS_TOP_CELL_BYTES);
	else if (column == TS_TOP_COLUMN_DEVICES)
		ts_top_device_list_format(&process->devices, buffer, TS_TOP_CELL_BYTES);
	else
		format_number(process, column, buffer, TS_TOP_CELL_BYTES);
}

/* ---- rows ---- */

static int compare_numbers(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(b) - isnan(a);
	return a < b ? -1 : a > b;
}

/* By vendor, then device. */
static int compare_devices_used(const struct ts_top_process *a, const struct ts_top_process *b)
{
	const struct ts_top_used_device *x = a->devices.devices, *y = b->devices.devices;
	int order;

	if (!a->devices.count || !b->devices.count)
		return (a->devices.count == 0) - (b->devices.count == 0);
	order = strcmp(x->vendor, y->vendor);
	return order ? order : (x->number > y->number) - (x->number < y->number);
}

static int compare_recorders(const struct ts_top_process *a, const struct ts_top_process *b)
{
	if (a->recorded != b->recorded)
		return a->recorded > b->recorded ? 1 : -1;
	return (a->recorder > b->recorder) - (a->recorder < b->recorder);
}

static int compare_cells(const struct ts_top_process *a, const struct ts_top_process *b,
			 const struct ts_top_view *view)
{
	if (view->sort == TS_TOP_COLUMN_STATE)
		return (a->state > b->state) - (a->state < b->state);
	if (view->sort == TS_TOP_COLUMN_RECORDER)
		return compare_recorders(a, b);
	if (view->sort == TS_TOP_COLUMN_DEVICES)
		return compare_devices_used(a, b);
	if (view->sort == TS_TOP_COLUMN_USER || view->sort == TS_TOP_COLUMN_COMMAND)
		return strcmp(text_of(a, view->sort, view->full_command),
			      text_of(b, view->sort, view->full_command));
	return compare_numbers(value_of(a, view->sort), value_of(b, view->sort));
}

/* Missing values come last in either order; ties sort by pid. */
static int compare_rows(const void *a, const void *b, void *context)
{
	const struct ts_top_process *x = *(const struct ts_top_process *const *)a;
	const struct ts_top_process *y = *(const struct ts_top_process *const *)b;
	const struct ts_top_view *view = context;
	const struct ts_top_column_info *column = &columns[view->sort];
	bool has_numbers = column->descends;
	int order = compare_cells(x, y, view);

	if (has_numbers) {
		bool x_absent = isnan(value_of(x, view->sort));
		bool y_absent = isnan(value_of(y, view->sort));

		if (x_absent != y_absent)
			return x_absent ? 1 : -1;
	}
	if (column->descends != view->reverse)
		order = -order;
	return order ? order : (x->pid > y->pid) - (x->pid < y->pid);
}

static bool matches(const struct ts_top_view *view, const struct ts_top_process *process)
{
	char pid[16];

	if (!view->filter[0])
		return true;
	snprintf(pid, sizeof(pid), "%d", (int)process->pid);
	return strcasestr(process->name, view->filter) ||
	       strcasestr(process->command, view->filter) || !strcmp(pid, view->filter);
}

static void find_selected(struct ts_top_view *view)
{
	for (size_t i = 0; view->follows && i < view->row_count; i++) {
		if (view->rows[i]->pid == view->selected_pid &&
		    view->rows[i]->start_time == view->selected_start)
			view->selected = i;
	}
	ts_top_view_select(view, view->selected);
}

void ts_top_view_select(struct ts_top_view *view, size_t index)
{
	view->selected = view->row_count ? TS_MIN(index, view->row_count - 1) : 0;
	if (!view->row_count)
		return;
	view->selected_pid = view->rows[view->selected]->pid;
	view->selected_start = view->rows[view->selected]->start_time;
}

int ts_top_view_arrange(struct ts_top_view *view, const struct ts_top *top)
{
	if (ts_grow_array((void **)&view->rows, &view->row_capacity, TS_MAX(top->process_count, 1u),
			  sizeof(*view->rows)))
		return TS_ENOMEM;
	view->row_count = 0;
	for (size_t i = 0; i < top->process_count; i++) {
		if (matches(view, &top->processes[i]))
			view->rows[view->row_count++] = &top->processes[i];
	}
	if (view->row_count)
		qsort_r(view->rows, view->row_count, sizeof(*view->rows), compare_rows, view);
	find_selected(view);
	return TS_OK;
}

void ts_top_view_release(struct ts_top_view *view)
{
	free(view->rows);
	view->rows = NULL;
	view->row_count = view->row_capacity = 0;
}

/* ---- columns that fit ---- */

static void widen(struct ts_top_view *view)
{
	for (size_t column = 0; column < TS_TOP_COLUMN_COMMAND; column++) {
		unsigned int *width = &view->widths[column];

		*width = TS_MAX(*width, columns[column].width);
		for (size_t i = 0; i < view->row_count; i++) {
			char buffer[TS_TOP_CELL_BYTES];
			const char *text;

			ts_top_format_cell(view->rows[i], (enum ts_top_column)column, false, buffer,
					   &text);
			*width = TS_MAX(*width, (unsigned int)strlen(text));
		}
		/* A long user name must not push out everything else. */
		*width = TS_MIN(*width, 12u);
	}
	view->widths[TS_TOP_COLUMN_COMMAND] = COMMAND_COLUMNS;
}

static unsigned int width_of(const struct ts_top_view *view, const bool shown[TS_TOP_COLUMNS])
{
	unsigned int width = 0;

	for (size_t i = 0; i < TS_TOP_COLUMNS; i++)
		width += shown[i] ? view->widths[i] + 1 : 0;
	return width - 1;
}

/* The least important visible column other than the sort column; TS_TOP_COLUMNS: none. */
static size_t lightest(const struct ts_top_view *view, const bool shown[TS_TOP_COLUMNS])
{
	size_t found = TS_TOP_COLUMNS;

	for (size_t i = 0; i < TS_TOP_COLUMNS; i++) {
		if (shown[i] && columns[i].weight && i != view->sort &&
		    (found == TS_TOP_COLUMNS || columns[i].weight < columns[found].weight))
			found = i;
	}
	return found;
}

void ts_top_view_fit(struct ts_top_view *view, const struct ts_top *top, unsigned int line,
		     bool ret_shown[TS_TOP_COLUMNS])
{
	size_t out;

	widen(view);
	for (size_t i = 0; i < TS_TOP_COLUMNS; i++)
		ret_shown[i] = !columns[i].of_devices || top->uses_accelerators;
	while (width_of(view, ret_shown) > line &&
	       (out = lightest(view, ret_shown)) != TS_TOP_COLUMNS)
		ret_shown[out] = false;
}
