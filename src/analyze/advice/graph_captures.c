/* SPDX-License-Identifier: Apache-2.0 */
/* Finds captures of graphs by the names of calls, which CUDA and HIP share. */
#include "analyze/advice/graph_captures.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static bool is_named(const struct ts_work *work, const struct ts_work_call *call, const char *part)
{
	return call->kind == TS_API_OTHER && strstr(ts_work_text(work, call->name), part);
}

static int add(struct ts_graph_captures *captures, uint32_t rank, int64_t start, int64_t end)
{
	if (ts_grow_array((void **)&captures->items, &captures->capacity, captures->count + 1,
			  sizeof(*captures->items)))
		return TS_ENOMEM;
	captures->items[captures->count++] = (struct ts_graph_capture){ rank, start, end };
	return TS_OK;
}

/* A capture that does not end in the trace lasts until the last call of its thread. */
static int add_thread(struct ts_graph_captures *captures, const struct ts_work *work,
		      const struct ts_work_thread *thread)
{
	const struct ts_work_call *calls = &work->calls[thread->first_call];
	int64_t start = TS_ABSENT;

	for (uint32_t i = 0; i < thread->call_count; i++) {
		bool is_last = i + 1 == thread->call_count;

		if (start == TS_ABSENT && is_named(work, &calls[i], "StreamBeginCapture"))
			start = calls[i].start;
		if (start == TS_ABSENT)
			continue;
		captures->launches += ts_api_is_enqueue((enum ts_api_kind)calls[i].kind) &&
				      calls[i].command == TS_WORK_NONE;
		if (!is_last && !is_named(work, &calls[i], "StreamEndCapture"))
			continue;
		if (add(captures, thread->rank, start, calls[i].end))
			return TS_ENOMEM;
		start = TS_ABSENT;
	}
	return TS_OK;
}

static int compare(const void *left, const void *right)
{
	const struct ts_graph_capture *a = left, *b = right;

	return a->rank != b->rank ? TS_COMPARE(a->rank, b->rank) : TS_COMPARE(a->start, b->start);
}

static void merge(struct ts_graph_captures *captures)
{
	size_t kept = 0;

	ts_sort(captures->items, captures->count, sizeof(*captures->items), compare);
	for (size_t i = 0; i < captures->count; i++) {
		const struct ts_graph_capture *item = &captures->items[i];
		struct ts_graph_capture *last = kept ? &captures->items[kept - 1] : NULL;

		if (last && last->rank == item->rank && item->start <= last->end)
			last->end = TS_MAX(last->end, item->end);
		else
			captures->items[kept++] = *item;
	}
	captures->count = kept;
}

int ts_graph_captures_init(struct ts_graph_captures *captures, const struct ts_work *work)
{
	*captures = (struct ts_graph_captures){ 0 };
	for (uint32_t i = 0; i < work->thread_count; i++)
		if (add_thread(captures, work, &work->threads[i])) {
			ts_graph_captures_release(captures);
			return TS_ENOMEM;
		}
	merge(captures);
	return TS_OK;
}

void ts_graph_captures_release(struct ts_graph_captures *captures)
{
	free(captures->items);
	*captures = (struct ts_graph_captures){ 0 };
}

/* The first capture of a rank that ends after an instant; NULL: none. */
static const struct ts_graph_capture *find(const struct ts_graph_captures *captures, uint32_t rank,
					   int64_t time)
{
	size_t low = 0, high = captures->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct ts_graph_capture *item = &captures->items[middle];

		if (item->rank < rank || (item->rank == rank && item->end <= time))
			low = middle + 1;
		else
			high = middle;
	}
	return low < captures->count && captures->items[low].rank == rank ? &captures->items[low]
									  : NULL;
}

bool ts_graph_captures_skip(const struct ts_graph_captures *captures, uint32_t rank, int64_t *from,
			    int64_t to, int64_t *ret_start, int64_t *ret_end)
{
	while (*from < to) {
		const struct ts_graph_capture *capture = find(captures, rank, *from);
		int64_t start = *from;

		if (!capture || capture->start > start) {
			*ret_start = start;
			*ret_end = capture ? TS_MIN(capture->start, to) : to;
			*from = capture ? TS_MAX(capture->end, *ret_end) : to;
			return true;
		}
		*from = capture->end;
	}
	return false;
}
