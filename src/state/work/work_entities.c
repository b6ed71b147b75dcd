/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks, devices, streams and threads of a trace as indices into the arrays of struct ts_work. Only
 * those that rows refer to are added.
 */
#include "state/work/work_internal.h"

static int add_rank(struct ts_work *work, int64_t id, const struct ts_source_row *source)
{
	struct ts_work_rank *rank = TS_WORK_ADD(work, ranks, rank);
	uint32_t index = work->rank_count - 1;

	if (!rank)
		return TS_ENOMEM;
	rank->rank = source->rank == TS_ABSENT ? (int64_t)index : source->rank;
	rank->world_size = source->world_size;
	rank->name = ts_work_name(work, source->name);
	rank->trace = work->load->trace;
	rank->source = id;
	rank->clock = (uint32_t)source->clock;
	rank->uncertainty_ns = TS_ABSENT;
	rank->last_step_start = rank->trace_end = INT64_MIN;
	rank->from = rank->rows_from = INT64_MAX;
	rank->to = rank->rows_to = INT64_MIN;
	if (ts_map_put(&work->load->ranks, (uint64_t)id, index) ||
	    ts_map_put(&work->load->clock_ranks, rank->clock, index))
		return TS_ENOMEM;
	return TS_OK;
}

/*
 * A recording of a launcher has a source without a rank besides those of the ranks that it started.
 */
static void number_others(struct ts_work *work, uint32_t before)
{
	struct ts_work_load *load = work->load;
	int64_t next = -1;

	for (uint32_t i = before; i < work->rank_count; i++) {
		const struct ts_source_row *source =
			ts_reader_entity(load->reader, TS_TABLE_SOURCE, work->ranks[i].source);

		work->ranks[i].is_besides = source && source->rank == TS_ABSENT;
		if (!work->ranks[i].is_besides && work->ranks[i].rank < INT64_MAX)
			next = TS_MAX(next, work->ranks[i].rank + 1);
	}
	for (uint32_t i = before; i < work->rank_count; i++) {
		work->ranks[i].is_besides &= next >= 0;
		if (work->ranks[i].is_besides)
			work->ranks[i].rank = next++;
	}
}

int ts_work_add_ranks(struct ts_work *work)
{
	struct ts_work_load *load = work->load;
	const struct ts_source_row *source;
	uint32_t before = work->rank_count;
	size_t cursor = 0;
	int64_t id;

	while ((source = ts_reader_entity_next(load->reader, TS_TABLE_SOURCE, &cursor, &id)))
		if (add_rank(work, id, source))
			return TS_ENOMEM;
	number_others(work, before);
	if (work->rank_count > before)
		return TS_OK;
	return add_rank(work, 0, &ts_source_none); /* a trace without a source row */
}

/* Rank of a source, else of a clock, else the first rank of the trace. */
static uint32_t rank_of(const struct ts_work_load *load, int64_t source, uint32_t clock)
{
	uint64_t index;

	if (source && ts_map_get(&load->ranks, (uint64_t)source, &index))
		return (uint32_t)index;
	if (ts_map_get(&load->clock_ranks, clock, &index))
		return (uint32_t)index;
	return TS_WORK_NONE;
}

static uint32_t first_rank(const struct ts_work *work)
{
	for (uint32_t i = 0; i < work->rank_count; i++)
		if (work->ranks[i].trace == work->load->trace)
			return i;
	return 0;
}

static uint32_t known_rank(const struct ts_work *work, int64_t source, uint32_t clock)
{
	uint32_t rank = rank_of(work->load, source, clock);

	return rank == TS_WORK_NONE ? first_rank(work) : rank;
}

uint32_t ts_work_device(struct ts_work *work, int64_t id, uint32_t clock)
{
	struct ts_work_load *load = work->load;
	const struct ts_device_row *row;
	struct ts_work_device *device;
	bool is_new;
	uint64_t *index = ts_map_insert(&load->devices, (uint64_t)id, &is_new);

	if (!index)
		return TS_WORK_NONE;
	if (!is_new)
		return (uint32_t)*index;
	*index = work->device_count;
	row = ts_reader_entity(load->reader, TS_TABLE_DEVICE, id);
	device = TS_WORK_ADD(work, devices, device);
	if (!device)
		return TS_WORK_NONE;
	device->id = id;
	device->number = row ? row->number : TS_ABSENT;
	device->name = row ? ts_work_name(work, row->name) : 0;
	device->rank = known_rank(work, row ? row->source : 0, clock);
	return work->device_count - 1;
}

/* Lanes with a known number are shared by (device, number); others are one per id. */
uint32_t ts_work_lane(struct ts_work *work, uint32_t device, int64_t number, int64_t id)
{
	uint64_t key = number == TS_ABSENT ? (uint64_t)id : (uint64_t)number;
	uint64_t owner = (uint64_t)device * 2 + (number == TS_ABSENT);
	struct ts_work_stream *stream;
	bool is_new;
	uint64_t *index = ts_pairmap_insert(&work->load->lanes, owner, key, &is_new);

	if (!index)
		return TS_WORK_NONE;
	if (!is_new)
		return (uint32_t)*index;
	*index = work->stream_count;
	stream = TS_WORK_ADD(work, streams, stream);
	if (!stream)
		return TS_WORK_NONE;
	stream->device = device;
	stream->rank = work->devices[device].rank;
	stream->number = number;
	stream->id = id;
	stream->priority = TS_ABSENT;
	return work->stream_count - 1;
}

static void describe_stream(struct ts_work *work, struct ts_work_stream *stream,
			    const struct ts_stream_row *row)
{
	if (row->name && !stream->name)
		stream->name = ts_work_name(work, row->name);
	if (stream->priority == TS_ABSENT)
		stream->priority = row->priority;
	if (row->out_of_order == 1)
		stream->flags |= TS_STREAM_OUT_OF_ORDER;
}

uint32_t ts_work_stream(struct ts_work *work, int64_t id, uint32_t device)
{
	struct ts_work_load *load = work->load;
	const struct ts_stream_row *row;
	uint64_t known;
	uint32_t lane;

	if (id && ts_map_get(&load->streams, (uint64_t)id, &known))
		return (uint32_t)known;
	row = id ? ts_reader_entity(load->reader, TS_TABLE_STREAM, id) : NULL;
	lane = ts_work_lane(work, device, row ? row->number : TS_ABSENT, id);
	if (lane == TS_WORK_NONE || (id && ts_map_put(&load->streams, (uint64_t)id, lane)))
		return TS_WORK_NONE;
	if (row)
		describe_stream(work, &work->streams[lane], row);
	return lane;
}

uint32_t ts_work_thread(struct ts_work *work, int64_t id, uint32_t clock)
{
	struct ts_work_load *load = work->load;
	const struct ts_thread_row *row;
	const struct ts_process_row *process;
	struct ts_work_thread *thread;
	bool is_new;
	/* Unknown threads are distinguished by rank. */
	uint64_t *index =
		ts_map_insert(&load->threads, id ? (uint64_t)id : UINT64_MAX - clock, &is_new);

	if (!index)
		return TS_WORK_NONE;
	if (!is_new)
		return (uint32_t)*index;
	*index = work->thread_count;
	row = ts_reader_entity(load->reader, TS_TABLE_THREAD, id);
	process = row ? ts_reader_entity(load->reader, TS_TABLE_PROCESS, row->process) : NULL;
	thread = TS_WORK_ADD(work, threads, thread);
	if (!thread)
		return TS_WORK_NONE;
	thread->id = id;
	thread->pid = process ? process->pid : TS_ABSENT;
	thread->tid = row ? row->tid : TS_ABSENT;
	thread->name = row ? ts_work_name(work, row->name) : 0;
	thread->rank = known_rank(work, process ? process->source : 0, clock);
	return work->thread_count - 1;
}
