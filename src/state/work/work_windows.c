/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recording windows: between them nothing was recorded, which is no idle time, and a step that
 * TS_STEP() announced lasts until its window closes at most. Where the program itself closes the
 * window, at a step or at the end of a range, that is where the step ends; elsewhere it is cut.
 */
#include <stdlib.h>
#include <string.h>

#include "base/ns.h"
#include "state/work/work_internal.h"

/* Closed by the recorder, at any time. */
static bool cuts_steps(struct ts_reader *reader, int64_t closed_by)
{
	static const char *const causes[] = { "flag", "time", "command", "end" };
	const char *cause = ts_reader_string(reader, closed_by).data;

	for (size_t i = 0; i < TS_ARRAY_SIZE(causes); i++)
		if (!strcmp(cause, causes[i]))
			return true;
	return false;
}

int ts_work_load_windows(struct ts_work *work, const struct ts_batch *batch, uint64_t first,
			 uint32_t clock)
{
	struct ts_work_load *load = work->load;

	(void)first;
	(void)clock;
	if (ts_grow_array((void **)&load->windows, &load->window_capacity,
			  load->window_count + batch->rows, sizeof(*load->windows)))
		return TS_ENOMEM;
	for (uint32_t i = 0; i < batch->rows; i++) {
		struct ts_window_row row;

		ts_batch_row(batch, i, &row);
		load->windows[load->window_count++] = (struct ts_work_window){
			.process = row.process,
			.start = row.start,
			.end = row.duration < 0 ? INT64_MAX : ts_ns_add(row.start, row.duration),
			.cuts = cuts_steps(load->reader, row.closed_by),
		};
	}
	load->are_windows_sorted = false;
	return TS_OK;
}

static int compare_windows(const void *a_, const void *b_)
{
	const struct ts_work_window *a = a_, *b = b_;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return a->start < b->start ? -1 : a->start > b->start;
}

/* Windows of a process that overlap or touch become one. */
static void sort_windows(struct ts_work_load *load)
{
	struct ts_work_window *windows = load->windows;
	size_t kept = 0;

	if (load->window_count)
		qsort(windows, load->window_count, sizeof(*windows), compare_windows);
	for (size_t i = 0; i < load->window_count; i++) {
		struct ts_work_window *last = kept ? &windows[kept - 1] : NULL;

		if (!last || last->process != windows[i].process || last->end < windows[i].start) {
			windows[kept++] = windows[i];
		} else if (windows[i].end > last->end) {
			last->end = windows[i].end;
			last->cuts = windows[i].cuts;
		}
	}
	load->window_count = kept;
	load->are_windows_sorted = true;
}

int64_t ts_work_window_end(struct ts_work_load *load, int64_t thread, int64_t time, bool *ret_cuts)
{
	const struct ts_thread_row *row = ts_reader_entity(load->reader, TS_TABLE_THREAD, thread);
	struct ts_work_window key = { .process = row ? row->process : 0, .start = time };
	size_t low = 0, high;

	if (!load->are_windows_sorted)
		sort_windows(load);
	high = load->window_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_windows(&load->windows[middle], &key) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_cuts = false;
	if (!low || load->windows[low - 1].process != key.process ||
	    load->windows[low - 1].end < time)
		return INT64_MAX;
	*ret_cuts = load->windows[low - 1].cuts;
	return load->windows[low - 1].end;
}

static int compare_starts(const void *a_, const void *b_)
{
	const struct ts_work_window *a = a_, *b = b_;

	return a->start < b->start ? -1 : a->start > b->start;
}

int ts_work_find_gaps(struct ts_work *work)
{
	struct ts_work_load *load = work->load;
	struct ts_work_window *windows = load->windows;
	int64_t end = INT64_MAX;

	if (load->window_count)
		qsort(windows, load->window_count, sizeof(*windows), compare_starts);
	load->are_windows_sorted = false;
	for (size_t i = 0; i < load->window_count; i++) {
		if (i && end < windows[i].start) {
			struct ts_work_gap *gap = TS_WORK_ADD(work, gaps, gap);

			if (!gap)
				return TS_ENOMEM;
			*gap = (struct ts_work_gap){ load->trace, end, windows[i].start };
		}
		end = i ? TS_MAX(end, windows[i].end) : windows[i].end;
	}
	return TS_OK;
}
