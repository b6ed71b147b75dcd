/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts what was read in order: ranks, devices, streams and threads get their final numbers, rows are sorted lane by
 * lane, commands find their calls, and the part that was not asked for is left out. Then what was not as it should be
 * is counted. Must not read the trace.
 */
#include <stdlib.h>
#include <string.h>

#include "state/work_parts.h"

/* ---- new numbers for ranks, devices, streams, threads ---- */

struct place {
	int64_t keys[4];
	uint32_t old;
};

static int compare_places(const void *a_, const void *b_)
{
	const struct place *a = a_, *b = b_;

	for (size_t i = 0; i < TS_ARRAY_SIZE(a->keys); i++)
		if (a->keys[i] != b->keys[i])
			return a->keys[i] < b->keys[i] ? -1 : 1;
	return a->old < b->old ? -1 : a->old > b->old;
}

/*
 * Sorts `items` by their places, which the caller has filled in; gives the new number of each old one. Caller frees.
 */
static uint32_t *renumber(void *items, uint32_t count, size_t bytes, struct place *places)
{
	uint32_t *numbers = ts_alloc_array(count, sizeof(*numbers));
	TS_AUTO_FREE char *copy = ts_alloc_array(count, bytes);

	if (!numbers || !copy) {
		free(numbers);
		return NULL;
	}
	if (count)
		memcpy(copy, items, count * bytes);
	qsort(places, count, sizeof(*places), compare_places);
	for (uint32_t i = 0; i < count; i++) {
		memcpy((char *)items + i * bytes, copy + (size_t)places[i].old * bytes, bytes);
		numbers[places[i].old] = i;
	}
	return numbers;
}

static uint32_t *renumber_ranks(struct ts_work *work)
{
	TS_AUTO_FREE struct place *places = calloc(work->rank_count + 1, sizeof(*places));

	if (!places)
		return NULL;
	for (uint32_t i = 0; i < work->rank_count; i++)
		places[i] = (struct place){ .keys = { work->ranks[i].rank }, .old = i };
	return renumber(work->ranks, work->rank_count, sizeof(*work->ranks), places);
}

static uint32_t *renumber_devices(struct ts_work *work)
{
	TS_AUTO_FREE struct place *places = calloc(work->device_count + 1, sizeof(*places));

	if (!places)
		return NULL;
	for (uint32_t i = 0; i < work->device_count; i++) {
		const struct ts_work_device *device = &work->devices[i];

		places[i] = (struct place){ { device->rank, device->number, device->id, 0 }, i };
	}
	return renumber(work->devices, work->device_count, sizeof(*work->devices), places);
}

static uint32_t *renumber_streams(struct ts_work *work)
{
	TS_AUTO_FREE struct place *places = calloc(work->stream_count + 1, sizeof(*places));

	if (!places)
		return NULL;
	for (uint32_t i = 0; i < work->stream_count; i++) {
		const struct ts_work_stream *stream = &work->streams[i];

		places[i] = (struct place){
			{ stream->rank, stream->device, stream->number, stream->id }, i
		};
	}
	return renumber(work->streams, work->stream_count, sizeof(*work->streams), places);
}

static uint32_t *renumber_threads(struct ts_work *work)
{
	TS_AUTO_FREE struct place *places = calloc(work->thread_count + 1, sizeof(*places));

	if (!places)
		return NULL;
	for (uint32_t i = 0; i < work->thread_count; i++)
		places[i] = (struct place){ .keys = { work->threads[i].rank }, .old = i };
	return renumber(work->threads, work->thread_count, sizeof(*work->threads), places);
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
			continue; /* an arrow without an end */
		flow.from_thread = numbers[flow.from_thread];
		flow.to_thread = numbers[flow.to_thread];
		work->flows[kept++] = flow;
	}
	work->flow_count = kept;
	return TS_OK;
}

/* ---- rows lane by lane ---- */

/* How rows of one array are sorted. The lane is a uint32_t member. */
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
			qsort(rows, count, order->bytes, order->compare);
			return;
		}
	}
}

/* Counting sort by lane, then each lane that is not in order already. firsts has lanes + 1 items. */
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
		uint32_t here = firsts[i];

		firsts[i] = sum;
		sum += here;
	}
	for (uint32_t i = 0; i < count; i++) {
		const char *row = from + i * order->bytes;

		memcpy(sorted + (size_t)firsts[lane_of(order, row)]++ * order->bytes, row,
		       order->bytes);
	}
	/* Each place now holds the end of its lane, which is the start of the next one. */
	memmove(firsts + 1, firsts, lanes * sizeof(*firsts));
	firsts[0] = 0;
	for (uint32_t i = 0; i < lanes; i++)
		sort_lane(order, sorted + (size_t)firsts[i] * order->bytes,
			  firsts[i + 1] - firsts[i]);
	free(from);
	*rows = sorted;
	return TS_OK;
}

#define COMPARE(a, b) ((a) < (b) ? -1 : (a) > (b))

static int compare_commands(const void *a_, const void *b_)
{
	const struct ts_work_command *a = a_, *b = b_;

	return a->start != b->start ? COMPARE(a->start, b->start) : COMPARE(a->row, b->row);
}

static int compare_calls(const void *a_, const void *b_)
{
	const struct ts_work_call *a = a_, *b = b_;

	return a->start != b->start ? COMPARE(a->start, b->start) : COMPARE(a->row, b->row);
}

/* Of equal starts the longer one is outside. */
static int compare_slices(const void *a_, const void *b_)
{
	const struct ts_work_slice *a = a_, *b = b_;

	if (a->start != b->start)
		return COMPARE(a->start, b->start);
	return a->end != b->end ? COMPARE(b->end, a->end) : COMPARE(a->row, b->row);
}

static int compare_syncs(const void *a_, const void *b_)
{
	const struct ts_work_sync *a = a_, *b = b_;

	return a->start != b->start ? COMPARE(a->start, b->start) : COMPARE(a->row, b->row);
}

static int compare_steps(const void *a_, const void *b_)
{
	const struct ts_work_step *a = a_, *b = b_;

	return a->start != b->start ? COMPARE(a->start, b->start) : COMPARE(a->number, b->number);
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

/* Rows that did not end last until the end of their thread's. */
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
		if (work->steps[i].end == INT64_MAX)
			work->steps[i].end =
				TS_MAX(ends[work->steps[i].thread], work->steps[i].start);
	return TS_OK;
}

static int sort_all(struct ts_work *work)
{
	uint32_t lanes = TS_MAX(TS_MAX(work->rank_count, work->stream_count), work->thread_count);
	TS_AUTO_FREE uint32_t *firsts = ts_alloc_array((size_t)lanes + 2, sizeof(*firsts));

	if (!firsts ||
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
	return TS_OK;
}

/* ---- commands and their calls ---- */

/* Correlations of one rank's calls: an array where they are dense, else a map. */
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
	uint64_t place = (uint64_t)correlation - (uint64_t)known->lowest, value;

	if (known->calls)
		return place < known->range ? known->calls[place] : TS_WORK_NONE;
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

/* 0 is what drivers give to calls that have none. */
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

/* Of several calls with one correlation that counts which enqueues, and of several of these the first. */
static bool is_better(const struct ts_work_call *call, const struct ts_work_call *known)
{
	bool enqueues = ts_call_is_enqueue(call->kind),
	     known_does = ts_call_is_enqueue(known->kind);

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

/* Rows are by rank: calls, commands and syncs of a rank are neighbours. */
static int join(struct ts_work *work)
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

/* ---- the part that was asked for ---- */

/* Starts in [from, to) are kept. */
struct bounds {
	int64_t from, to;
	bool by_step; /* commands are where their calls are; those without call are in no step */
};

static bool is_inside(const struct bounds *bounds, int64_t time)
{
	return time >= bounds->from && time < bounds->to;
}

/* Where the last step begins, if there are two different ones. */
static void cut_last_step(const struct ts_work *work, uint32_t first, uint32_t end,
			  struct bounds *bounds)
{
	const struct ts_work_step *last = &work->steps[end - 1];

	for (uint32_t i = first; i < end; i++) {
		if (work->steps[i].number != last->number) {
			bounds->to = work->ranks[last->rank].last_step_start;
			bounds->by_step = true;
			return;
		}
	}
}

static void choose_steps(const struct ts_work *work, uint32_t first, uint32_t end,
			 struct bounds *bounds)
{
	const struct ts_work_options *options = &work->options;
	struct bounds chosen = { INT64_MAX, INT64_MIN, true };

	for (uint32_t i = first; i < end; i++) {
		const struct ts_work_step *step = &work->steps[i];

		if ((options->from_step != TS_ABSENT && step->number < options->from_step) ||
		    (options->to_step != TS_ABSENT && step->number > options->to_step))
			continue;
		chosen.from = TS_MIN(chosen.from, step->start);
		chosen.to = TS_MAX(chosen.to, step->end);
	}
	*bounds = chosen;
}

static void choose_bounds(const struct ts_work *work, uint32_t first, uint32_t end,
			  struct bounds *bounds)
{
	const struct ts_work_options *options = &work->options;
	bool by_step = options->from_step != TS_ABSENT || options->to_step != TS_ABSENT;
	bool by_time = options->from != TS_ABSENT || options->to != TS_ABSENT;

	*bounds = (struct bounds){ INT64_MIN, INT64_MAX, false };
	if (by_step)
		choose_steps(work, first, end, bounds);
	else if (!options->all && !by_time && end > first)
		cut_last_step(work, first, end, bounds);
	if (options->from != TS_ABSENT)
		bounds->from = TS_MAX(bounds->from, options->from);
	if (options->to != TS_ABSENT && options->to < INT64_MAX)
		bounds->to = TS_MIN(bounds->to, options->to + 1);
}

/* Bounds of each rank, and its steps that are left. */
static void choose_all(struct ts_work *work, struct bounds *bounds)
{
	uint32_t kept = 0, first = 0;

	for (uint32_t rank = 0; rank < work->rank_count; rank++) {
		uint32_t end = first;

		while (end < work->step_count && work->steps[end].rank == rank)
			end++;
		work->ranks[rank].steps_in_trace = end - first;
		choose_bounds(work, first, end, &bounds[rank]);
		work->ranks[rank].first_step = kept;
		for (; first < end; first++)
			if (is_inside(&bounds[rank], work->steps[first].start))
				work->steps[kept++] = work->steps[first];
		work->ranks[rank].step_count = kept - work->ranks[rank].first_step;
	}
	work->step_count = kept;
}

/* New numbers of calls that are kept; TS_WORK_NONE for the others. */
static void filter_calls(struct ts_work *work, const struct bounds *bounds, uint32_t *numbers)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < work->call_count; i++) {
		const struct ts_work_call call = work->calls[i];

		numbers[i] = TS_WORK_NONE;
		if (!is_inside(&bounds[call.rank], call.start))
			continue;
		numbers[i] = kept;
		work->calls[kept++] = call;
	}
	work->call_count = kept;
}

/* Where no command of a rank has its call, steps cannot be told by calls. */
static void find_call_less_ranks(const struct ts_work *work, struct bounds *bounds)
{
	TS_AUTO_FREE bool *has_call = calloc(work->rank_count + 1, sizeof(*has_call));

	if (!has_call)
		return;
	for (uint32_t i = 0; i < work->command_count; i++)
		if (work->commands[i].call != TS_WORK_NONE)
			has_call[work->commands[i].rank] = true;
	for (uint32_t rank = 0; rank < work->rank_count; rank++)
		bounds[rank].by_step &= has_call[rank];
}

static bool keeps_command(const struct bounds *bounds, struct ts_work_command *command,
			  const uint32_t *call_numbers)
{
	if (command->call == TS_WORK_NONE)
		return !bounds->by_step && is_inside(bounds, command->start);
	command->call = call_numbers[command->call];
	return command->call != TS_WORK_NONE;
}

static void filter_commands(struct ts_work *work, const struct bounds *bounds,
			    const uint32_t *call_numbers)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < work->command_count; i++) {
		struct ts_work_command command = work->commands[i];

		if (keeps_command(&bounds[command.rank], &command, call_numbers))
			work->commands[kept++] = command;
		else
			work->dropped_commands++;
	}
	work->command_count = kept;
}

static void filter_syncs(struct ts_work *work, const struct bounds *bounds,
			 const uint32_t *call_numbers)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < work->sync_count; i++) {
		struct ts_work_sync sync = work->syncs[i];
		bool inside = is_inside(&bounds[sync.rank], sync.start);

		if (sync.call != TS_WORK_NONE) {
			sync.call = call_numbers[sync.call];
			inside = sync.call != TS_WORK_NONE;
		}
		if (inside)
			work->syncs[kept++] = sync;
	}
	work->sync_count = kept;
}

static void filter_slices(struct ts_work *work, const struct bounds *bounds)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < work->slice_count; i++)
		if (is_inside(&bounds[work->slices[i].rank], work->slices[i].start))
			work->slices[kept++] = work->slices[i];
	work->slice_count = kept;
}

static void filter_flows(struct ts_work *work, const struct bounds *bounds)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < work->flow_count; i++) {
		const struct ts_work_flow *flow = &work->flows[i];

		if (is_inside(&bounds[work->threads[flow->from_thread].rank], flow->from_time) &&
		    is_inside(&bounds[work->threads[flow->to_thread].rank], flow->to_time))
			work->flows[kept++] = *flow;
	}
	work->flow_count = kept;
}

/* Collectives in the order of their commands; those whose command was left out vanish. */
static int order_collectives(struct ts_work *work)
{
	struct ts_work_collective *ordered =
		ts_alloc_array(work->collective_count, sizeof(*ordered));
	uint32_t count = 0;

	if (!ordered)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < work->command_count; i++) {
		struct ts_work_command *command = &work->commands[i];

		if (command->collective == TS_WORK_NONE)
			continue;
		ordered[count] = work->collectives[command->collective];
		ordered[count].command = i;
		command->collective = count++;
	}
	free(work->collectives);
	work->collectives = ordered;
	work->collective_count = count;
	return TS_OK;
}

static int filter(struct ts_work *work)
{
	TS_AUTO_FREE struct bounds *bounds = ts_alloc_array(work->rank_count, sizeof(*bounds));
	TS_AUTO_FREE uint32_t *numbers = ts_alloc_array(work->call_count, sizeof(*numbers));

	if (!bounds || !numbers)
		return TS_ENOMEM;
	choose_all(work, bounds);
	find_call_less_ranks(work, bounds);
	filter_calls(work, bounds, numbers);
	filter_commands(work, bounds, numbers);
	filter_syncs(work, bounds, numbers);
	filter_slices(work, bounds);
	filter_flows(work, bounds);
	return order_collectives(work);
}

/* ---- what follows from the order ---- */

static void find_ranges(struct ts_work *work)
{
	for (uint32_t i = 0; i < work->device_count; i++) {
		struct ts_work_rank *rank = &work->ranks[work->devices[i].rank];

		if (rank->device_count++ == 0)
			rank->first_device = i;
	}
	for (uint32_t i = 0; i < work->stream_count; i++) {
		struct ts_work_rank *rank = &work->ranks[work->streams[i].rank];
		struct ts_work_device *device = &work->devices[work->streams[i].device];

		if (rank->stream_count++ == 0)
			rank->first_stream = i;
		if (device->stream_count++ == 0)
			device->first_stream = i;
	}
	for (uint32_t i = 0; i < work->thread_count; i++) {
		struct ts_work_rank *rank = &work->ranks[work->threads[i].rank];

		if (rank->thread_count++ == 0)
			rank->first_thread = i;
	}
}

static void widen(struct ts_work_rank *rank, int64_t from, int64_t to)
{
	rank->from = TS_MIN(rank->from, from);
	rank->to = TS_MAX(rank->to, TS_MAX(from, to));
}

static void count_commands(struct ts_work *work)
{
	for (uint32_t i = 0; i < work->command_count; i++) {
		const struct ts_work_command *command = &work->commands[i];
		struct ts_work_rank *rank = &work->ranks[command->rank];
		struct ts_work_stream *stream = &work->streams[command->stream];

		if (rank->command_count++ == 0)
			rank->first_command = i;
		if (stream->command_count++ == 0)
			stream->first_command = i;
		widen(rank, command->start, command->end);
	}
}

static void count_host_rows(struct ts_work *work)
{
	for (uint32_t i = 0; i < work->call_count; i++) {
		const struct ts_work_call *call = &work->calls[i];
		struct ts_work_thread *thread = &work->threads[call->thread];

		if (thread->call_count++ == 0)
			thread->first_call = i;
		widen(&work->ranks[call->rank], call->start, call->end);
	}
	for (uint32_t i = 0; i < work->slice_count; i++) {
		const struct ts_work_slice *slice = &work->slices[i];
		struct ts_work_thread *thread = &work->threads[slice->thread];

		if (thread->slice_count++ == 0)
			thread->first_slice = i;
		widen(&work->ranks[slice->rank], slice->start, slice->end);
	}
}

/* The slices around each: a stack through their parents. */
static void find_parents(struct ts_work *work)
{
	uint32_t inner = TS_WORK_NONE;

	for (uint32_t i = 0; i < work->slice_count; i++) {
		struct ts_work_slice *slice = &work->slices[i];

		if (inner != TS_WORK_NONE && work->slices[inner].thread != slice->thread)
			inner = TS_WORK_NONE;
		while (inner != TS_WORK_NONE && work->slices[inner].end <= slice->start)
			inner = work->slices[inner].parent;
		slice->parent = inner;
		inner = i;
	}
}

/* A command of a call that issued several. */
struct chain_key {
	int64_t start;
	uint32_t call, command;
};

static int compare_chain_keys(const void *a_, const void *b_)
{
	const struct chain_key *a = a_, *b = b_;

	if (a->call != b->call)
		return COMPARE(a->call, b->call);
	return a->start != b->start ? COMPARE(a->start, b->start) : COMPARE(a->command, b->command);
}

/* Those of calls with several commands, by call and start. */
static size_t collect_chains(const struct ts_work *work, struct chain_key *keys)
{
	size_t count = 0;

	for (uint32_t i = 0; i < work->command_count; i++) {
		const struct ts_work_command *command = &work->commands[i];

		if (command->call != TS_WORK_NONE && work->calls[command->call].command_count > 1)
			keys[count++] = (struct chain_key){ command->start, command->call, i };
	}
	qsort(keys, count, sizeof(*keys), compare_chain_keys);
	return count;
}

static size_t count_of_calls(struct ts_work *work)
{
	size_t shared = 0;

	for (uint32_t i = 0; i < work->command_count; i++) {
		uint32_t call = work->commands[i].call;

		work->next_of_call[i] = TS_WORK_NONE;
		if (call == TS_WORK_NONE)
			continue;
		work->calls[call].command = i;
		shared += ++work->calls[call].command_count > 1 ? 2 : 0;
	}
	return shared;
}

/* Commands of each call as a list by start. */
static int chain_commands(struct ts_work *work)
{
	TS_AUTO_FREE struct chain_key *keys = NULL;
	size_t count;

	work->next_of_call = ts_alloc_array(work->command_count, sizeof(*work->next_of_call));
	if (!work->next_of_call)
		return TS_ENOMEM;
	count = count_of_calls(work);
	if (count == 0)
		return TS_OK;
	keys = ts_alloc_array(count, sizeof(*keys));
	if (!keys)
		return TS_ENOMEM;
	count = collect_chains(work, keys);
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || keys[i - 1].call != keys[i].call)
			work->calls[keys[i].call].command = keys[i].command;
		else
			work->next_of_call[keys[i - 1].command] = keys[i].command;
	}
	return TS_OK;
}

/* The step around an instant: the last one that began, if it has not ended. */
static uint32_t step_at(const struct ts_work *work, uint32_t rank, int64_t time)
{
	uint32_t low = work->ranks[rank].first_step;
	uint32_t high = low + work->ranks[rank].step_count, first = low;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (work->steps[middle].start <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low > first && time < work->steps[low - 1].end ? low - 1 : TS_WORK_NONE;
}

static void judge_call(struct ts_work *work, struct ts_work_command *command)
{
	const struct ts_work_call *call;

	if (command->call == TS_WORK_NONE) {
		work->commands_without_call++;
	} else {
		call = &work->calls[command->call];
		command->issued = call->start;
		if (call->command_count > 1)
			command->flags |= TS_COMMAND_SHARES_CALL;
	}
	if (command->issued != TS_ABSENT && command->start < command->issued) {
		command->flags |= TS_COMMAND_EARLY;
		work->early_commands++;
		work->earliest_ns = TS_MAX(work->earliest_ns, command->issued - command->start);
	}
	command->step = step_at(work, command->rank,
				command->issued == TS_ABSENT ? command->start : command->issued);
	work->untimed_commands += command->flags & TS_COMMAND_UNTIMED ? 1 : 0;
}

/* Against those that began earlier in the same stream. */
static void judge_order(struct ts_work *work, struct ts_work_command *command, int64_t *end,
			int64_t *issued)
{
	if (command->start < *end) {
		command->flags |= TS_COMMAND_CONCURRENT;
		work->concurrent_commands++;
	}
	if (command->issued != TS_ABSENT && command->issued < *issued) {
		command->flags |= TS_COMMAND_DISORDERED;
		work->disordered_commands++;
	}
	*end = TS_MAX(*end, command->end);
	if (command->issued != TS_ABSENT)
		*issued = TS_MAX(*issued, command->issued);
}

static void judge(struct ts_work *work)
{
	int64_t end = INT64_MIN, issued = INT64_MIN;
	uint32_t stream = TS_WORK_NONE;

	for (uint32_t i = 0; i < work->command_count; i++) {
		struct ts_work_command *command = &work->commands[i];

		if (command->stream != stream) {
			stream = command->stream;
			end = issued = INT64_MIN;
		}
		judge_call(work, command);
		judge_order(work, command, &end, &issued);
	}
	for (uint32_t i = 0; i < work->call_count; i++)
		if (ts_call_is_enqueue(work->calls[i].kind) &&
		    work->calls[i].command == TS_WORK_NONE)
			work->calls_without_command++;
}

int ts_work_order(struct ts_work *work, struct ts_error *err)
{
	if (apply_ranks(work) || apply_devices(work) || apply_streams(work) ||
	    apply_threads(work) || close_rows(work) || sort_all(work) || join(work) ||
	    filter(work) || chain_commands(work))
		return ts_error_set(err, TS_ENOMEM, "no memory for the work of this trace");
	find_ranges(work);
	count_commands(work);
	count_host_rows(work);
	find_parents(work);
	judge(work);
	return TS_OK;
}
