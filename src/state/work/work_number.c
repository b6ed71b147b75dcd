/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assigns final numbers: ranks by rank number, devices and streams by their numbers, threads by
 * rank; then updates all references.
 */
#include <stdlib.h>
#include <string.h>

#include "state/work/work_internal.h"

struct sort_key {
	int64_t keys[4];
	uint32_t old;
};

static int compare_sort_keys(const void *a_, const void *b_)
{
	const struct sort_key *a = a_, *b = b_;

	for (size_t i = 0; i < TS_ARRAY_SIZE(a->keys); i++)
		if (a->keys[i] != b->keys[i])
			return a->keys[i] < b->keys[i] ? -1 : 1;
	return a->old < b->old ? -1 : a->old > b->old;
}

/*
 * Sorts `items` by their sort keys, which the caller has filled in; returns the new number of each
 * old item. Caller frees.
 */
static uint32_t *renumber(void *items, uint32_t count, size_t bytes, struct sort_key *sorted)
{
	uint32_t *numbers = ts_alloc_array(count, sizeof(*numbers));
	TS_AUTO_FREE char *copy = ts_alloc_array(count, bytes);

	if (!numbers || !copy) {
		free(numbers);
		return NULL;
	}
	if (count)
		memcpy(copy, items, count * bytes);
	ts_sort(sorted, count, sizeof(*sorted), compare_sort_keys);
	for (uint32_t i = 0; i < count; i++) {
		memcpy((char *)items + i * bytes, copy + (size_t)sorted[i].old * bytes, bytes);
		numbers[sorted[i].old] = i;
	}
	return numbers;
}

static uint32_t *renumber_ranks(struct ts_work *work)
{
	TS_AUTO_FREE struct sort_key *sorted = calloc(work->rank_count + 1, sizeof(*sorted));

	if (!sorted)
		return NULL;
	for (uint32_t i = 0; i < work->rank_count; i++)
		sorted[i] = (struct sort_key){ .keys = { work->ranks[i].rank }, .old = i };
	return renumber(work->ranks, work->rank_count, sizeof(*work->ranks), sorted);
}

static uint32_t *renumber_devices(struct ts_work *work)
{
	TS_AUTO_FREE struct sort_key *sorted = calloc(work->device_count + 1, sizeof(*sorted));

	if (!sorted)
		return NULL;
	for (uint32_t i = 0; i < work->device_count; i++) {
		const struct ts_work_device *device = &work->devices[i];

		sorted[i] = (struct sort_key){ { device->rank, device->number, device->id, 0 }, i };
	}
	return renumber(work->devices, work->device_count, sizeof(*work->devices), sorted);
}

static uint32_t *renumber_streams(struct ts_work *work)
{
	TS_AUTO_FREE struct sort_key *sorted = calloc(work->stream_count + 1, sizeof(*sorted));

	if (!sorted)
		return NULL;
	for (uint32_t i = 0; i < work->stream_count; i++) {
		const struct ts_work_stream *stream = &work->streams[i];

		sorted[i] = (struct sort_key){
			{ stream->rank, stream->device, stream->number, stream->id }, i
		};
	}
	return renumber(work->streams, work->stream_count, sizeof(*work->streams), sorted);
}

static uint32_t *renumber_threads(struct ts_work *work)
{
	TS_AUTO_FREE struct sort_key *sorted = calloc(work->thread_count + 1, sizeof(*sorted));

	if (!sorted)
		return NULL;
	for (uint32_t i = 0; i < work->thread_count; i++)
		sorted[i] = (struct sort_key){ .keys = { work->threads[i].rank }, .old = i };
	return renumber(work->threads, work->thread_count, sizeof(*work->threads), sorted);
}

static int apply_ranks(struct ts_work *work)
{
	TS_AUTO_FREE uint32_t *numbers = renumber_ranks(work);

	if (!numbers)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < work->device_count; i++)
		work->devices[i].rank = numbers[work->devices[i].rank];
	for (uint32_t i = 0; i < work->stream_count; i++)
		work->streams[i].rank = numbers[work->streams[i].rank];
	for (uint32_t i = 0; i < work->thread_count; i++)
		work->threads[i].rank = numbers[work->threads[i].rank];
	for (uint32_t i = 0; i < work->step_count; i++)
		work->steps[i].rank = numbers[work->steps[i].rank];
	for (uint32_t i = 0; i < work->sync_count; i++)
		work->syncs[i].rank = numbers[work->syncs[i].rank];
	for (uint32_t i = 0; i < work->command_count; i++)
		work->commands[i].rank = numbers[work->commands[i].rank];
	for (uint32_t i = 0; i < work->call_count; i++)
		work->calls[i].rank = numbers[work->calls[i].rank];
	for (uint32_t i = 0; i < work->slice_count; i++)
		work->slices[i].rank = numbers[work->slices[i].rank];
	return TS_OK;
}

static int apply_devices(struct ts_work *work)
{
	TS_AUTO_FREE uint32_t *numbers = renumber_devices(work);

	if (!numbers)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < work->stream_count; i++)
		work->streams[i].device = numbers[work->streams[i].device];
	for (uint32_t i = 0; i < work->sync_count; i++)
		work->syncs[i].device = numbers[work->syncs[i].device];
	return TS_OK;
}

static int apply_streams(struct ts_work *work)
{
	TS_AUTO_FREE uint32_t *numbers = renumber_streams(work);

	if (!numbers)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < work->command_count; i++)
		work->commands[i].stream = numbers[work->commands[i].stream];
	for (uint32_t i = 0; i < work->sync_count; i++) {
		struct ts_work_sync *sync = &work->syncs[i];

		if (sync->stream != TS_WORK_NONE)
			sync->stream = numbers[sync->stream];
		if (sync->on_stream != TS_WORK_NONE)
			sync->on_stream = numbers[sync->on_stream];
	}
	return TS_OK;
}

static int apply_threads(struct ts_work *work)
{
	TS_AUTO_FREE uint32_t *numbers = renumber_threads(work);
	uint32_t kept = 0;

	if (!numbers)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < work->call_count; i++)
		work->calls[i].thread = numbers[work->calls[i].thread];
	for (uint32_t i = 0; i < work->slice_count; i++)
		work->slices[i].thread = numbers[work->slices[i].thread];
	for (uint32_t i = 0; i < work->step_count; i++)
		work->steps[i].thread = numbers[work->steps[i].thread];
	for (uint32_t i = 0; i < work->flow_count; i++) {
		struct ts_work_flow flow = work->flows[i];

		if (flow.to_thread == TS_WORK_NONE)
			continue; /* a flow without an end */
		flow.from_thread = numbers[flow.from_thread];
		flow.to_thread = numbers[flow.to_thread];
		work->flows[kept++] = flow;
	}
	work->flow_count = kept;
	return TS_OK;
}

int ts_work_number(struct ts_work *work)
{
	if (apply_ranks(work) || apply_devices(work) || apply_streams(work) || apply_threads(work))
		return TS_ENOMEM;
	return TS_OK;
}
