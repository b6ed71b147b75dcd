/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded gpu_op rows of the replayed commands. */
#include <string.h>

#include "base/ns.h"
#include "replay/output/replay_output.h"
#include "replay/stream/stream_internal.h"

TS_DEFINE_AUTO(ts_batch, ts_batch_free);

/* Collects the correlations of commands that run. */
static int collect(struct ts_map *wanted, const struct ts_replay *replay)
{
	for (uint32_t i = 0; i < replay->plan.count; i++) {
		uint32_t index = replay->plan.order[i];
		int64_t correlation = replay->stream->commands[index].correlation;

		if (replay->plan.kept[index] != TS_REPLAY_ORDER && correlation > 0 &&
		    ts_map_put(wanted, (uint64_t)correlation, i))
			return TS_ENOMEM;
	}
	return TS_OK;
}

static int add(struct ts_replay_recorded *recorded, const struct ts_gpu_op_row *row)
{
	uint64_t *first;

	if (ts_grow_array((void **)&recorded->rows, &recorded->capacity, recorded->count + 1,
			  sizeof(*recorded->rows)))
		return TS_ENOMEM;
	first = ts_map_insert(&recorded->firsts, (uint64_t)row->correlation, NULL);
	if (!first)
		return TS_ENOMEM;
	recorded->rows[recorded->count] =
		(struct ts_replay_recorded_row){ .row = *row, .next = *first };
	*first = ++recorded->count;
	return TS_OK;
}

static int read_chunk(struct ts_replay_recorded *recorded, const struct ts_batch *batch,
		      const struct ts_map *wanted, int64_t process)
{
	for (uint32_t i = 0; i < batch->rows; i++) {
		struct ts_gpu_op_row row;
		uint64_t unused;

		ts_batch_row(batch, i, &row);
		if (row.correlation <= 0 || (row.process && row.process != process) ||
		    !ts_map_get(wanted, (uint64_t)row.correlation, &unused))
			continue;
		if (add(recorded, &row))
			return TS_ENOMEM;
	}
	return TS_OK;
}

/* ---- rows of commands ---- */

static bool is_named(const struct ts_replay *replay, const struct ts_gpu_op_row *row,
		     const struct ts_replay_command_info *command)
{
	const struct ts_replay_object_info *function;
	const char *name;

	if (command->kind == TS_COMMAND_COPY)
		return row->kind == TS_GPU_OP_COPY;
	if (command->kind == TS_COMMAND_FILL)
		return row->kind == TS_GPU_OP_FILL;
	if (command->kind != TS_COMMAND_LAUNCH || command->object == TS_REPLAY_NONE)
		return false;
	function = &replay->stream->objects[command->object];
	name = ts_reader_string(replay->reader, row->name).data;
	return !strcmp(name, function->demangled) || !strcmp(name, function->name);
}

/*
 * Of the rows of a graph's launch, the first one with the node's name that no other node has. Rows
 * are chained from the last one.
 */
static uint64_t find_node(struct ts_replay_recorded *recorded, uint64_t first, uint32_t index)
{
	const struct ts_replay_command_info *command = &recorded->replay->stream->commands[index];
	uint64_t found = 0;

	for (uint64_t i = first; i; i = recorded->rows[i - 1].next)
		if (!recorded->rows[i - 1].is_taken &&
		    is_named(recorded->replay, &recorded->rows[i - 1].row, command))
			found = i;
	if (found)
		recorded->rows[found - 1].is_taken = true;
	return found;
}

static int assign(struct ts_replay_recorded *recorded)
{
	const struct ts_replay_plan *plan = &recorded->replay->plan;

	recorded->of_position = calloc(plan->count + 1u, sizeof(*recorded->of_position));
	for (uint32_t i = 0; recorded->of_position && i < plan->count; i++) {
		const struct ts_replay_command_info *command =
			&recorded->replay->stream->commands[plan->order[i]];
		uint64_t first;

		if (command->correlation <= 0 ||
		    !ts_map_get(&recorded->firsts, (uint64_t)command->correlation, &first))
			continue;
		recorded->of_position[i] = command->graph == TS_REPLAY_NONE
						   ? first
						   : find_node(recorded, first, plan->order[i]);
	}
	return recorded->of_position ? TS_OK : TS_ENOMEM;
}

const struct ts_gpu_op_row *ts_replay_recorded_row(const struct ts_replay_recorded *recorded,
						   uint32_t position)
{
	uint64_t index = recorded->of_position[position];

	return index ? &recorded->rows[index - 1].row : NULL;
}

int ts_replay_recorded_load(struct ts_replay_recorded *recorded, const struct ts_replay *replay,
			    struct ts_error *err)
{
	TS_SCOPED(ts_map) wanted = { 0 };
	TS_AUTO(ts_batch) batch = NULL;
	int rc = ts_batch_new(&batch, replay->reader, err);

	*recorded = (struct ts_replay_recorded){ .replay = replay };
	if (!rc && collect(&wanted, replay))
		rc = ts_replay_no_memory(err);
	for (size_t i = 0; !rc && i < ts_reader_chunk_count(replay->reader); i++) {
		if (ts_reader_chunk(replay->reader, i)->table != TS_TABLE_GPU_OP)
			continue;
		rc = ts_batch_read(batch, i, TS_MASK_ALL & ~TS_MASK_OF(gpu_op, shape), err);
		if (!rc && read_chunk(recorded, batch, &wanted, replay->stream->process))
			rc = ts_replay_no_memory(err);
	}
	if (!rc && assign(recorded))
		rc = ts_replay_no_memory(err);
	if (rc)
		ts_replay_recorded_release(recorded);
	return rc;
}

void ts_replay_recorded_release(struct ts_replay_recorded *recorded)
{
	ts_map_release(&recorded->firsts);
	free(recorded->of_position);
	free(recorded->rows);
	*recorded = (struct ts_replay_recorded){ 0 };
}

int64_t ts_replay_recorded_span(const struct ts_replay_recorded *recorded)
{
	int64_t from = INT64_MAX, to = INT64_MIN;

	for (size_t i = 0; i < recorded->count; i++) {
		const struct ts_gpu_op_row *row = &recorded->rows[i].row;

		if (row->start == TS_ABSENT || row->duration < 0)
			continue;
		from = TS_MIN(from, row->start);
		to = TS_MAX(to, ts_ns_add(row->start, row->duration));
	}
	return from <= to ? ts_ns_sub(to, from) : TS_ABSENT;
}

/* ---- busy time ---- */

struct interval {
	int64_t start, end;
};

static int compare_intervals(const void *a, const void *b)
{
	return TS_COMPARE(((const struct interval *)a)->start, ((const struct interval *)b)->start);
}

/* The length of their union. */
static int64_t cover(struct interval *intervals, size_t count)
{
	int64_t busy = 0, end = INT64_MIN;

	ts_sort(intervals, count, sizeof(*intervals), compare_intervals);
	for (size_t i = 0; i < count; i++) {
		int64_t start = TS_MAX(intervals[i].start, end);

		if (intervals[i].end > start)
			busy = ts_ns_add(busy, ts_ns_sub(intervals[i].end, start));
		end = TS_MAX(end, intervals[i].end);
	}
	return busy;
}

int ts_replay_recorded_busy(const struct ts_replay_recorded *recorded,
			    const struct ts_replay_times *times, int64_t *ret_recorded_ns,
			    int64_t *ret_ns)
{
	uint32_t total = recorded->replay->plan.count;
	TS_AUTO_FREE struct interval *before = ts_alloc_array(total + 1u, sizeof(*before));
	TS_AUTO_FREE struct interval *after = ts_alloc_array(total + 1u, sizeof(*after));
	size_t count = 0;

	*ret_recorded_ns = *ret_ns = TS_ABSENT;
	if (!before || !after)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < total; i++) {
		const struct ts_gpu_op_row *row = ts_replay_recorded_row(recorded, i);

		if (!row || row->start == TS_ABSENT || row->duration < 0 ||
		    times[i].start == TS_ABSENT || times[i].end == TS_ABSENT)
			continue;
		before[count] =
			(struct interval){ row->start, ts_ns_add(row->start, row->duration) };
		after[count++] = (struct interval){ times[i].start, times[i].end };
	}
	if (count) {
		*ret_recorded_ns = cover(before, count);
		*ret_ns = cover(after, count);
	}
	return TS_OK;
}
