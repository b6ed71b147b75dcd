/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank selection: drops the other ranks, and launchers of ranks, with everything that belongs to
 * them before sorting, and updates all indices.
 */
#include "state/work/work_internal.h"

static bool is_wanted(const struct ts_work *work, int64_t rank)
{
	for (size_t i = 0; i < work->options.rank_count; i++)
		if (work->options.ranks[i] == rank)
			return true;
	return work->options.rank_count == 0;
}

bool ts_work_wants_trace(const struct ts_work *work)
{
	for (uint32_t i = 0; i < work->rank_count; i++)
		if (work->ranks[i].trace == work->load->trace &&
		    is_wanted(work, work->ranks[i].rank))
			return true;
	return false;
}

/* An array of the work whose items belong to a rank. */
struct items {
	void *items;
	uint32_t *count;
	size_t bytes, rank_at;
};

#define ITEMS(work, array, number)                                      \
	(struct items)                                                  \
	{                                                               \
		(work)->array, &(work)->number, sizeof(*(work)->array), \
			offsetof(__typeof__(*(work)->array), rank)      \
	}

/*
 * Keeps items of ranks that have a new number. `numbers`, if not NULL, receives the new index of
 * each old item.
 */
static void keep(struct items of, const uint32_t *ranks, uint32_t *numbers)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < *of.count; i++) {
		char *item = (char *)of.items + i * of.bytes;
		uint32_t rank;

		memcpy(&rank, item + of.rank_at, sizeof(rank));
		if (numbers)
			numbers[i] = ranks[rank] == TS_WORK_NONE ? TS_WORK_NONE : kept;
		if (ranks[rank] == TS_WORK_NONE)
			continue;
		memcpy(item + of.rank_at, &ranks[rank], sizeof(rank));
		if (kept != i)
			memcpy((char *)of.items + kept * of.bytes, item, of.bytes);
		kept++;
	}
	*of.count = kept;
}

/* True if a source besides the ranks has work of its own: otherwise it is their launcher. */
static bool has_work(const struct ts_work *work, uint32_t rank)
{
	for (uint32_t i = 0; i < work->command_count; i++)
		if (work->commands[i].rank == rank)
			return true;
	for (uint32_t i = 0; i < work->call_count; i++)
		if (work->calls[i].rank == rank)
			return true;
	return false;
}

static bool is_kept(const struct ts_work *work, uint32_t rank)
{
	return is_wanted(work, work->ranks[rank].rank) &&
	       (!work->ranks[rank].is_besides || has_work(work, rank));
}

static bool are_all_kept(const struct ts_work *work)
{
	for (uint32_t i = 0; i < work->rank_count; i++)
		if (!is_kept(work, i))
			return false;
	return true;
}

static void keep_ranks(struct ts_work *work, uint32_t *numbers)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < work->rank_count; i++) {
		numbers[i] = TS_WORK_NONE;
		if (!is_kept(work, i))
			continue;
		numbers[i] = kept;
		work->ranks[kept++] = work->ranks[i];
	}
	work->rank_count = kept;
}

static void keep_flows(struct ts_work *work, const uint32_t *threads)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < work->flow_count; i++) {
		struct ts_work_flow flow = work->flows[i];

		flow.from_thread = threads[flow.from_thread];
		if (flow.to_thread != TS_WORK_NONE)
			flow.to_thread = threads[flow.to_thread];
		if (flow.from_thread != TS_WORK_NONE && flow.to_thread != TS_WORK_NONE)
			work->flows[kept++] = flow;
	}
	work->flow_count = kept;
}

/* Rows on a device are already filtered, but still hold old indices. */
static void move_streams(struct ts_work *work, const uint32_t *devices, const uint32_t *streams)
{
	for (uint32_t i = 0; i < work->stream_count; i++)
		work->streams[i].device = devices[work->streams[i].device];
	for (uint32_t i = 0; i < work->command_count; i++)
		work->commands[i].stream = streams[work->commands[i].stream];
	for (uint32_t i = 0; i < work->sync_count; i++) {
		struct ts_work_sync *sync = &work->syncs[i];

		sync->device = devices[sync->device];
		if (sync->stream != TS_WORK_NONE)
			sync->stream = streams[sync->stream];
		if (sync->on_stream != TS_WORK_NONE)
			sync->on_stream = streams[sync->on_stream];
	}
}

static void move_threads(struct ts_work *work, const uint32_t *threads)
{
	for (uint32_t i = 0; i < work->call_count; i++)
		work->calls[i].thread = threads[work->calls[i].thread];
	for (uint32_t i = 0; i < work->slice_count; i++)
		work->slices[i].thread = threads[work->slices[i].thread];
	for (uint32_t i = 0; i < work->step_count; i++)
		work->steps[i].thread = threads[work->steps[i].thread];
}

int ts_work_choose_ranks(struct ts_work *work)
{
	TS_AUTO_FREE uint32_t *ranks = NULL, *devices = NULL, *streams = NULL, *threads = NULL;

	if (are_all_kept(work))
		return TS_OK;
	ranks = ts_alloc_array(work->rank_count, sizeof(*ranks));
	devices = ts_alloc_array(work->device_count, sizeof(*devices));
	streams = ts_alloc_array(work->stream_count, sizeof(*streams));
	threads = ts_alloc_array(work->thread_count, sizeof(*threads));
	if (!ranks || !devices || !streams || !threads)
		return TS_ENOMEM;
	keep_ranks(work, ranks);
	keep(ITEMS(work, devices, device_count), ranks, devices);
	keep(ITEMS(work, streams, stream_count), ranks, streams);
	keep(ITEMS(work, threads, thread_count), ranks, threads);
	keep(ITEMS(work, steps, step_count), ranks, NULL);
	keep(ITEMS(work, commands, command_count), ranks, NULL);
	keep(ITEMS(work, calls, call_count), ranks, NULL);
	keep(ITEMS(work, syncs, sync_count), ranks, NULL);
	keep(ITEMS(work, slices, slice_count), ranks, NULL);
	keep_flows(work, threads);
	move_streams(work, devices, streams);
	move_threads(work, threads);
	return TS_OK;
}
