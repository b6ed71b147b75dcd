/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts rows by lane: commands by stream, calls and slices by thread, synchronisations and steps by
 * rank; then by start. Uses a counting sort, because most lanes are already sorted.
 */
#include <stdlib.h>
#include <string.h>

#include "state/work/work_internal.h"

/* Sort order of one array. The lane is a uint32_t member. */
struct row_order {
	size_t bytes, lane_offset;
	int (*compare)(const void *a, const void *b);
};

static uint32_t lane_of(const struct row_order *order, const char *row)
{
	uint32_t lane;

	memcpy(&lane, row + order->lane_offset, sizeof(lane));
	return lane;
}

static void sort_lane(const struct row_order *order, char *rows, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++) {
		if (order->compare(rows + (i - 1) * order->bytes, rows + i * order->bytes) > 0) {
			ts_sort(rows, count, order->bytes, order->compare);
			return;
		}
	}
}

/* Counting sort by lane, then sorts each lane that is out of order. firsts has lanes + 1 items. */
static int sort_rows(const struct row_order *order, void **rows, uint32_t count, uint32_t lanes,
		     uint32_t *firsts)
{
	char *sorted = ts_alloc_array(count, order->bytes), *from = *rows;

	if (!sorted)
		return TS_ENOMEM;
	memset(firsts, 0, ((size_t)lanes + 1) * sizeof(*firsts));
	for (uint32_t i = 0; i < count; i++)
		firsts[lane_of(order, from + i * order->bytes)]++;
	for (uint32_t i = 0, sum = 0; i <= lanes; i++) {
		uint32_t in_lane = firsts[i];

		firsts[i] = sum;
		sum += in_lane;
	}
	for (uint32_t i = 0; i < count; i++) {
		const char *row = from + i * order->bytes;

		memcpy(sorted + (size_t)firsts[lane_of(order, row)]++ * order->bytes, row,
		       order->bytes);
	}
	/* Each entry now holds the end of its lane, which is the start of the next. */
	memmove(firsts + 1, firsts, lanes * sizeof(*firsts));
	firsts[0] = 0;
	for (uint32_t i = 0; i < lanes; i++)
		sort_lane(order, sorted + (size_t)firsts[i] * order->bytes,
			  firsts[i + 1] - firsts[i]);
	free(from);
	*rows = sorted;
	return TS_OK;
}

static int compare_commands(const void *a_, const void *b_)
{
	const struct ts_work_command *a = a_, *b = b_;

	return a->start != b->start ? TS_COMPARE(a->start, b->start) : TS_COMPARE(a->row, b->row);
}

static int compare_calls(const void *a_, const void *b_)
{
	const struct ts_work_call *a = a_, *b = b_;

	return a->start != b->start ? TS_COMPARE(a->start, b->start) : TS_COMPARE(a->row, b->row);
}

/* For equal starts the longer slice encloses the other. */
static int compare_slices(const void *a_, const void *b_)
{
	const struct ts_work_slice *a = a_, *b = b_;

	if (a->start != b->start)
		return TS_COMPARE(a->start, b->start);
	return a->end != b->end ? TS_COMPARE(b->end, a->end) : TS_COMPARE(a->row, b->row);
}

static int compare_syncs(const void *a_, const void *b_)
{
	const struct ts_work_sync *a = a_, *b = b_;

	return a->start != b->start ? TS_COMPARE(a->start, b->start) : TS_COMPARE(a->row, b->row);
}

static int compare_steps(const void *a_, const void *b_)
{
	const struct ts_work_step *a = a_, *b = b_;

	return a->start != b->start ? TS_COMPARE(a->start, b->start)
				    : TS_COMPARE(a->number, b->number);
}

static const struct row_order command_order = { sizeof(struct ts_work_command),
						offsetof(struct ts_work_command, stream),
						compare_commands };
static const struct row_order call_order = { sizeof(struct ts_work_call),
					     offsetof(struct ts_work_call, thread), compare_calls };
static const struct row_order slice_order = { sizeof(struct ts_work_slice),
					      offsetof(struct ts_work_slice, thread),
					      compare_slices };
static const struct row_order sync_order = { sizeof(struct ts_work_sync),
					     offsetof(struct ts_work_sync, rank), compare_syncs };
static const struct row_order step_order = { sizeof(struct ts_work_step),
					     offsetof(struct ts_work_step, rank), compare_steps };

/* Rows without an end last until the end of their thread's rows. */
static int close_rows(struct ts_work *work)
{
	TS_AUTO_FREE int64_t *ends = calloc(work->thread_count + 1, sizeof(*ends));

	if (!ends)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < work->thread_count; i++)
		ends[i] = INT64_MIN;
	for (uint32_t i = 0; i < work->slice_count; i++) {
		const struct ts_work_slice *slice = &work->slices[i];
		int64_t end = slice->end == INT64_MAX ? slice->start : slice->end;

		ends[slice->thread] = TS_MAX(ends[slice->thread], end);
	}
	for (uint32_t i = 0; i < work->call_count; i++) {
		const struct ts_work_call *call = &work->calls[i];
		int64_t end = call->end == INT64_MAX ? call->start : call->end;

		ends[call->thread] = TS_MAX(ends[call->thread], end);
	}
	for (uint32_t i = 0; i < work->slice_count; i++)
		if (work->slices[i].end == INT64_MAX)
			work->slices[i].end = ends[work->slices[i].thread];
	for (uint32_t i = 0; i < work->call_count; i++)
		if (work->calls[i].end == INT64_MAX)
			work->calls[i].end = ends[work->calls[i].thread];
	for (uint32_t i = 0; i < work->step_count; i++)
		if (work->steps[i].end == INT64_MAX && !work->steps[i].is_mark)
			work->steps[i].end =
				TS_MAX(ends[work->steps[i].thread], work->steps[i].start);
	return TS_OK;
}

int ts_work_sort(struct ts_work *work)
{
	uint32_t lanes = TS_MAX(TS_MAX(work->rank_count, work->stream_count), work->thread_count);
	TS_AUTO_FREE uint32_t *firsts = ts_alloc_array((size_t)lanes + 2, sizeof(*firsts));

	if (!firsts || close_rows(work) ||
	    sort_rows(&command_order, (void **)&work->commands, work->command_count,
		      work->stream_count, firsts) ||
	    sort_rows(&call_order, (void **)&work->calls, work->call_count, work->thread_count,
		      firsts) ||
	    sort_rows(&slice_order, (void **)&work->slices, work->slice_count, work->thread_count,
		      firsts) ||
	    sort_rows(&sync_order, (void **)&work->syncs, work->sync_count, work->rank_count,
		      firsts) ||
	    sort_rows(&step_order, (void **)&work->steps, work->step_count, work->rank_count,
		      firsts))
		return TS_ENOMEM;
	return ts_work_finish_steps(work);
}
