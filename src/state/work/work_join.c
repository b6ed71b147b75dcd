/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins commands and synchronisations to the calls that issued them, by correlation id, one rank at
 * a time.
 */
#include <stdlib.h>
#include <string.h>

#include "state/work/work_internal.h"

/* Correlation ids of one rank's calls: an array if they are dense, else a map. */
struct correlations {
	int64_t lowest;
	uint64_t range;  /* of the array */
	uint32_t *calls; /* NULL: the map counts */
	struct ts_map map;
};

static void release_correlations(struct correlations *known)
{
	free(known->calls);
	ts_map_release(&known->map);
}

static uint32_t find_call(const struct correlations *known, int64_t correlation)
{
	uint64_t index = (uint64_t)correlation - (uint64_t)known->lowest, value;

	if (known->calls)
		return index < known->range ? known->calls[index] : TS_WORK_NONE;
	return ts_map_get(&known->map, (uint64_t)correlation, &value) ? (uint32_t)value
								      : TS_WORK_NONE;
}

static int put_call(struct correlations *known, int64_t correlation, uint32_t call)
{
	if (!known->calls)
		return ts_map_put(&known->map, (uint64_t)correlation, call);
	known->calls[(uint64_t)correlation - (uint64_t)known->lowest] = call;
	return TS_OK;
}

/* Drivers use 0 for calls without a correlation id. */
static bool has_correlation(int64_t correlation)
{
	return correlation != TS_ABSENT && correlation != 0;
}

static int start_correlations(struct correlations *known, const struct ts_work *work,
			      uint32_t first, uint32_t end)
{
	int64_t lowest = INT64_MAX, highest = INT64_MIN;

	for (uint32_t i = first; i < end; i++) {
		if (!has_correlation(work->calls[i].correlation))
			continue;
		lowest = TS_MIN(lowest, work->calls[i].correlation);
		highest = TS_MAX(highest, work->calls[i].correlation);
	}
	known->lowest = lowest;
	known->range = highest < lowest ? 1 : (uint64_t)highest - (uint64_t)lowest + 1;
	if (known->range == 0 || known->range > 16 * (uint64_t)(end - first) + 1024)
		return TS_OK;
	known->calls = ts_alloc_array(known->range, sizeof(*known->calls));
	if (!known->calls)
		return TS_ENOMEM;
	memset(known->calls, 0xff, known->range * sizeof(*known->calls));
	return TS_OK;
}

/* Of several calls with one correlation id, prefer those that enqueue, then the first. */
static bool is_better(const struct ts_work_call *call, const struct ts_work_call *known)
{
	bool enqueues = ts_api_is_enqueue(call->kind), known_does = ts_api_is_enqueue(known->kind);

	return enqueues != known_does ? enqueues : call->start < known->start;
}

static int collect_calls(struct ts_work *work, struct correlations *known, uint32_t first,
			 uint32_t end)
{
	for (uint32_t i = first; i < end; i++) {
		const struct ts_work_call *call = &work->calls[i];
		uint32_t other;

		if (!has_correlation(call->correlation))
			continue;
		other = find_call(known, call->correlation);
		if (other != TS_WORK_NONE) {
			work->shared_calls++;
			if (!is_better(call, &work->calls[other]))
				continue;
		}
		if (put_call(known, call->correlation, i))
			return TS_ENOMEM;
	}
	return TS_OK;
}

static void join_rank(struct ts_work *work, const struct correlations *known, uint32_t rank,
		      uint32_t *command, uint32_t *sync)
{
	for (; *command < work->command_count && work->commands[*command].rank == rank;
	     ++*command) {
		struct ts_work_command *joined = &work->commands[*command];

		if (has_correlation(joined->correlation))
			joined->call = find_call(known, joined->correlation);
	}
	for (; *sync < work->sync_count && work->syncs[*sync].rank == rank; ++*sync) {
		struct ts_work_sync *joined = &work->syncs[*sync];

		if (has_correlation(joined->correlation))
			joined->call = find_call(known, joined->correlation);
	}
}

/* Rows are sorted by rank: calls, commands and syncs of a rank are adjacent. */
int ts_work_join(struct ts_work *work)
{
	uint32_t call = 0, command = 0, sync = 0;

	for (uint32_t rank = 0; rank < work->rank_count; rank++) {
		struct correlations known = { 0 };
		uint32_t end = call;
		int code;

		while (end < work->call_count && work->calls[end].rank == rank)
			end++;
		code = start_correlations(&known, work, call, end);
		if (!code)
			code = collect_calls(work, &known, call, end);
		if (!code)
			join_rank(work, &known, rank, &command, &sync);
		release_correlations(&known);
		if (code)
			return code;
		call = end;
	}
	return TS_OK;
}
