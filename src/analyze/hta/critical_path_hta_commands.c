/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTA's edges of commands: their own time, the delay after their launch or the previous command,
 * and the waits of commands and host.
 */
#include "analyze/hta/critical_path_hta.h"

#include <string.h>

/* HTA attributes longer gaps between two commands to an unknown cause and adds no edge. */
#define KERNEL_DELAY_MAX_NS 1500000

struct launch {
	int64_t time;
	uint32_t thread, lane, call;
};

struct queue_point {
	int64_t time;
	uint32_t lane, event;
};

struct device_row {
	int64_t time; /* a command's start, a synchronisation's end */
	uint32_t event;
};

struct commands_pass {
	struct ts_hta_graph *graph;
	/*
	 * HTA identifies streams by number only: the rank's first stream of a number stands for
	 * all.
	 */
	uint32_t *lane; /* of each stream of the rank */
	uint32_t *last; /* of each lane: the end of its last command; TS_WORK_NONE */
	uint32_t *used; /* lanes in the order of their first command */
	uint32_t used_count;
	struct launch *by_stream; /* launches sorted by stream (in `lane`), time */
	struct launch *by_thread; /* launches sorted by thread, lane, time */
	size_t launch_count;
	struct ts_map records;                   /* correlation of cudaEventRecord to call */
	int32_t *queue_at_call, *queue_at_start; /* of each call and command; -1: unknown */
	uint32_t *waits_for; /* of each command: the command it waits for; TS_WORK_NONE: none */
	struct device_row *rows;
	size_t row_count;
};

static int no_memory(struct ts_error *err)
{
	return ts_error_set(err, TS_ENOMEM, "no memory for HTA's critical path");
}

static uint32_t stream_lane(const struct commands_pass *pass, uint32_t stream)
{
	return stream - pass->graph->work->ranks[pass->graph->rank].first_stream;
}

static uint32_t lane_of(const struct commands_pass *pass, uint32_t stream)
{
	return pass->lane[stream_lane(pass, stream)];
}

static int find_lanes(struct commands_pass *pass)
{
	const struct ts_work *work = pass->graph->work;
	const struct ts_work_rank *rank = &work->ranks[pass->graph->rank];
	struct ts_map numbers = { 0 };
	int rc = TS_OK;

	pass->lane = ts_alloc_array(rank->stream_count, sizeof(*pass->lane));
	pass->last = ts_alloc_array(rank->stream_count, sizeof(*pass->last));
	pass->used = ts_alloc_array(rank->stream_count, sizeof(*pass->used));
	if (!pass->lane || !pass->last || !pass->used)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < rank->stream_count && !rc; i++) {
		int64_t number = work->streams[rank->first_stream + i].number;
		bool is_new = false;
		uint64_t *lane = ts_map_insert(&numbers, (uint64_t)number, &is_new);

		if (lane && is_new)
			*lane = i;
		rc = lane ? TS_OK : TS_ENOMEM;
		pass->lane[i] = lane ? (uint32_t)*lane : 0;
		pass->last[i] = TS_WORK_NONE;
	}
	ts_map_release(&numbers);
	return rc;
}

/* ---- launches ---- */

static bool is_launch(const struct ts_hta_graph *graph, uint32_t call)
{
	return graph->work->calls[call].rank == graph->rank &&
	       graph->work->calls[call].command != TS_WORK_NONE &&
	       (graph->flags[graph->work->calls[call].name] & TS_HTA_LAUNCH);
}

static int compare_by_stream(const void *a, const void *b)
{
	const struct launch *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (x->call > y->call) - (x->call < y->call);
}

static int compare_by_thread(const void *a, const void *b)
{
	const struct launch *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return compare_by_stream(a, b);
}

static int find_launches(struct commands_pass *pass)
{
	const struct ts_work *work = pass->graph->work;
	size_t count = 0;

	pass->by_stream = ts_alloc_array(work->call_count, sizeof(*pass->by_stream));
	pass->by_thread = ts_alloc_array(work->call_count, sizeof(*pass->by_thread));
	if (!pass->by_stream || !pass->by_thread)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < work->call_count; i++) {
		const struct ts_work_call *call = &work->calls[i];
		uint32_t stream;

		if (!is_launch(pass->graph, i))
			continue;
		stream = work->commands[pass->graph->command_of_call[i]].stream;
		pass->by_stream[count] = (struct launch){
			.time = call->start,
			.lane = stream_lane(pass, stream),
			.call = i,
		};
		pass->by_thread[count] = pass->by_stream[count];
		pass->by_thread[count].thread = call->thread;
		pass->by_thread[count++].lane = lane_of(pass, stream);
	}
	pass->launch_count = count;
	qsort(pass->by_stream, count, sizeof(*pass->by_stream), compare_by_stream);
	qsort(pass->by_thread, count, sizeof(*pass->by_thread), compare_by_thread);
	return TS_OK;
}

/* Number of launches at or before `key` in sort order. */
static size_t launches_before(const struct launch *launches, size_t count, const struct launch *key,
			      int (*compare)(const void *, const void *))
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare(&launches[middle], key) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * The last command launched into a stream before an event was recorded there; TS_WORK_NONE: none.
 */
static uint32_t command_before_record(const struct commands_pass *pass, uint32_t record,
				      uint32_t stream)
{
	const struct ts_work *work = pass->graph->work;
	struct launch key = {
		.time = work->calls[record].start,
		.lane = stream_lane(pass, stream),
		.call = TS_WORK_NONE,
	};
	size_t count =
		launches_before(pass->by_stream, pass->launch_count, &key, compare_by_stream);

	if (!count || pass->by_stream[count - 1].lane != key.lane)
		return TS_WORK_NONE;
	return pass->graph->command_of_call[pass->by_stream[count - 1].call];
}

/* The next command that the same thread launches into the waiting stream; TS_WORK_NONE: none. */
static uint32_t command_behind_wait(const struct commands_pass *pass, uint32_t call,
				    uint32_t stream)
{
	const struct ts_work *work = pass->graph->work;
	struct launch key = {
		.time = work->calls[call].start,
		.thread = work->calls[call].thread,
		.lane = lane_of(pass, stream),
		.call = TS_WORK_NONE,
	};
	size_t count =
		launches_before(pass->by_thread, pass->launch_count, &key, compare_by_thread);

	if (count == pass->launch_count || pass->by_thread[count].thread != key.thread ||
	    pass->by_thread[count].lane != key.lane)
		return TS_WORK_NONE;
	return pass->graph->command_of_call[pass->by_thread[count].call];
}

static int find_records(struct commands_pass *pass)
{
	const struct ts_work *work = pass->graph->work;

	for (uint32_t i = 0; i < work->call_count; i++) {
		const struct ts_work_call *call = &work->calls[i];

		if (call->rank != pass->graph->rank || call->correlation == TS_ABSENT ||
		    !(pass->graph->flags[call->name] & TS_HTA_RECORD))
			continue;
		if (ts_map_put(&pass->records, (uint64_t)call->correlation, i))
			return TS_ENOMEM;
	}
	return TS_OK;
}

/* ---- queues ---- */

/* At equal times launches come first. */
static int compare_queue_points(const void *a, const void *b)
{
	const struct queue_point *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (x->event > y->event) - (x->event < y->event);
}

static size_t collect_queue_points(const struct commands_pass *pass, struct queue_point *points)
{
	const struct ts_hta_graph *graph = pass->graph;
	const struct ts_work *work = graph->work;
	size_t count = 0;

	for (uint32_t i = 0; i < work->command_count; i++) {
		const struct ts_work_command *command = &work->commands[i];

		if (command->rank != graph->rank || command->call == TS_WORK_NONE ||
		    !is_launch(graph, command->call))
			continue;
		points[count++] = (struct queue_point){
			.time = work->calls[command->call].start,
			.lane = lane_of(pass, command->stream),
			.event = graph->first_call + command->call,
		};
		points[count++] = (struct queue_point){
			.time = command->start,
			.lane = lane_of(pass, command->stream),
			.event = graph->first_command + i,
		};
	}
	return count;
}

/* Computes the queue length of a stream after each launch and each start. */
static int measure_queues(struct commands_pass *pass)
{
	const struct ts_hta_graph *graph = pass->graph;
	const struct ts_work *work = graph->work;
	TS_AUTO_FREE struct queue_point *points =
		ts_alloc_array((size_t)work->command_count * 2, sizeof(*points));
	size_t count;
	int32_t length = 0;

	pass->queue_at_call = ts_alloc_array(work->call_count, sizeof(int32_t));
	pass->queue_at_start = ts_alloc_array(work->command_count, sizeof(int32_t));
	if (!points || !pass->queue_at_call || !pass->queue_at_start)
		return TS_ENOMEM;
	memset(pass->queue_at_call, 0xff, work->call_count * sizeof(int32_t));
	memset(pass->queue_at_start, 0xff, work->command_count * sizeof(int32_t));
	count = collect_queue_points(pass, points);
	qsort(points, count, sizeof(*points), compare_queue_points);
	for (size_t i = 0; i < count; i++) {
		uint32_t event = points[i].event;

		if (i && points[i].lane != points[i - 1].lane)
			length = 0;
		if (ts_hta_is_call(graph, event))
			pass->queue_at_call[event - graph->first_call] = ++length;
		else
			pass->queue_at_start[event - graph->first_command] = --length;
	}
	return TS_OK;
}

/* ---- synchronisations ---- */

static bool has_points(const struct ts_hta_graph *graph, uint32_t command)
{
	return command != TS_WORK_NONE && ts_hta_has_points(graph, graph->first_command + command);
}

/* The host call returns when the command that ends at `point` is done. */
static int add_host_wait(struct ts_hta_graph *graph, uint32_t point, uint32_t call,
			 struct ts_error *err)
{
	if (call == TS_WORK_NONE || !ts_hta_has_points(graph, graph->first_call + call))
		return TS_OK;
	return ts_hta_add_edge(graph, point, ts_hta_end(graph->first_call + call), TS_HTA_SYNC, 0,
			       err);
}

/*
 * Event wait: the host, or a stream's next command, waits for the command before the event record.
 */
static int add_event_wait(struct commands_pass *pass, const struct ts_work_sync *sync,
			  struct ts_error *err)
{
	struct ts_hta_graph *graph = pass->graph;
	uint64_t record;
	uint32_t source, target;

	if (sync->record_correlation == TS_ABSENT || sync->on_stream == TS_WORK_NONE ||
	    !ts_map_get(&pass->records, (uint64_t)sync->record_correlation, &record))
		return TS_OK;
	source = command_before_record(pass, (uint32_t)record, sync->on_stream);
	if (source == TS_WORK_NONE)
		return TS_OK;
	if (sync->kind == TS_SYNC_EVENT)
		return has_points(graph, source)
			       ? add_host_wait(graph, ts_hta_end(graph->first_command + source),
					       sync->call, err)
			       : TS_OK;
	if (sync->call == TS_WORK_NONE || sync->stream == TS_WORK_NONE)
		return TS_OK;
	target = command_behind_wait(pass, sync->call, sync->stream);
	if (target != TS_WORK_NONE)
		pass->waits_for[target] = source;
	return TS_OK;
}

static int add_sync(struct commands_pass *pass, const struct ts_work_sync *sync,
		    struct ts_error *err)
{
	int rc = TS_OK;

	switch ((enum ts_sync_kind)sync->kind) {
	case TS_SYNC_EVENT:
	case TS_SYNC_STREAM_WAIT:
		return add_event_wait(pass, sync, err);
	case TS_SYNC_STREAM:
		if (sync->stream == TS_WORK_NONE ||
		    pass->last[lane_of(pass, sync->stream)] == TS_WORK_NONE)
			return TS_OK;
		return add_host_wait(pass->graph, pass->last[lane_of(pass, sync->stream)],
				     sync->call, err);
	case TS_SYNC_CONTEXT:
		for (uint32_t i = 0; i < pass->used_count && !rc; i++)
			rc = add_host_wait(pass->graph, pass->last[pass->used[i]], sync->call, err);
		return rc;
	default:
		return TS_OK;
	}
}

/* ---- commands ---- */

static bool is_before(const struct ts_hta_graph *graph, uint32_t point, int64_t time)
{
	return point == TS_WORK_NONE || ts_hta_point_time(graph, point) < time;
}

/* Did the launch alone determine when the command began? */
static bool launch_decides(const struct commands_pass *pass, uint32_t index, uint32_t last,
			   uint32_t awaited)
{
	const struct ts_work *work = pass->graph->work;
	uint32_t call = work->commands[index].call;

	return pass->queue_at_call[call] == 1 && pass->queue_at_start[index] == 0 &&
	       is_before(pass->graph, last, work->calls[call].start) &&
	       is_before(pass->graph, awaited, work->calls[call].start);
}

static int add_delay(struct commands_pass *pass, uint32_t index, uint32_t last, uint32_t awaited,
		     struct ts_error *err)
{
	struct ts_hta_graph *graph = pass->graph;
	const struct ts_work_command *command = &graph->work->commands[index];
	uint32_t start = ts_hta_start(graph->first_command + index);
	int64_t gap;

	if (launch_decides(pass, index, last, awaited)) {
		uint32_t call = graph->first_call + command->call;

		return ts_hta_add_edge(
			graph, ts_hta_start(call), start, TS_HTA_LAUNCH_DELAY,
			ts_ns_sub(command->start, ts_hta_point_time(graph, ts_hta_start(call))),
			err);
	}
	if (last == TS_WORK_NONE)
		return TS_OK;
	gap = ts_ns_sub(command->start, ts_hta_point_time(graph, last));
	if (gap >= KERNEL_DELAY_MAX_NS ||
	    !is_before(graph, awaited, ts_hta_point_time(graph, last)))
		return TS_OK;
	return ts_hta_add_edge(graph, last, start, TS_HTA_KERNEL_DELAY, gap, err);
}

static int add_command(struct commands_pass *pass, uint32_t index, struct ts_error *err)
{
	struct ts_hta_graph *graph = pass->graph;
	const struct ts_work_command *command = &graph->work->commands[index];
	uint32_t event = graph->first_command + index, lane = lane_of(pass, command->stream);
	uint32_t last = pass->last[lane], awaited = TS_WORK_NONE;
	int rc = ts_hta_add_edge(graph, ts_hta_start(event), ts_hta_end(event), TS_HTA_OPERATOR,
				 ts_ns_sub(command->end, command->start), err);

	if (!rc && has_points(graph, pass->waits_for[index])) {
		awaited = ts_hta_end(graph->first_command + pass->waits_for[index]);
		rc = ts_hta_add_edge(graph, awaited, ts_hta_start(event), TS_HTA_SYNC, 0, err);
	}
	if (!rc)
		rc = add_delay(pass, index, last, awaited, err);
	if (last == TS_WORK_NONE)
		pass->used[pass->used_count++] = lane;
	pass->last[lane] = ts_hta_end(event);
	return rc;
}

static int compare_rows(const void *a, const void *b)
{
	const struct device_row *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (x->event > y->event) - (x->event < y->event);
}

static int order_rows(struct commands_pass *pass)
{
	const struct ts_hta_graph *graph = pass->graph;
	size_t count = 0;

	pass->rows = ts_alloc_array(graph->event_count - graph->first_command, sizeof(*pass->rows));
	if (!pass->rows)
		return TS_ENOMEM;
	for (uint32_t event = graph->first_command; event < graph->event_count; event++) {
		const struct ts_work *work = graph->work;

		if (!graph->kept[event])
			continue;
		pass->rows[count++] = (struct device_row){
			.time = ts_hta_is_command(graph, event)
					? work->commands[event - graph->first_command].start
					: work->syncs[event - graph->first_sync].end,
			.event = event,
		};
	}
	qsort(pass->rows, count, sizeof(*pass->rows), compare_rows);
	pass->row_count = count;
	return TS_OK;
}

static int prepare(struct commands_pass *pass)
{
	uint32_t commands = pass->graph->work->command_count;

	pass->waits_for = ts_alloc_array(commands, sizeof(*pass->waits_for));
	if (!pass->waits_for)
		return TS_ENOMEM;
	memset(pass->waits_for, 0xff, commands * sizeof(*pass->waits_for));
	if (find_lanes(pass) || find_launches(pass) || find_records(pass) || measure_queues(pass))
		return TS_ENOMEM;
	return order_rows(pass);
}

int ts_hta_add_commands(struct ts_hta_graph *graph, struct ts_error *err)
{
	struct commands_pass pass = { .graph = graph };
	int rc = prepare(&pass) ? no_memory(err) : TS_OK;

	for (size_t i = 0; i < pass.row_count && !rc; i++) {
		uint32_t event = pass.rows[i].event;

		if (ts_hta_is_command(graph, event))
			rc = add_command(&pass, event - graph->first_command, err);
		else
			rc = add_sync(&pass, &graph->work->syncs[event - graph->first_sync], err);
	}
	free(pass.lane);
	free(pass.last);
	free(pass.used);
	free(pass.by_stream);
	free(pass.by_thread);
	ts_map_release(&pass.records);
	free(pass.queue_at_call);
	free(pass.queue_at_start);
	free(pass.waits_for);
	free(pass.rows);
	return rc;
}
