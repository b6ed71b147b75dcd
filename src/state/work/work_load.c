/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the rows of a trace into a struct ts_work, column by column: slices (including steps),
 * calls, commands and flows.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "state/work/work_internal.h"
#include "trace/step_mark.h"

static int no_memory(struct ts_error *err)
{
	return ts_error_set(err, TS_ENOMEM, "out of memory while loading the trace");
}

/* ---- times ---- */

int64_t ts_work_clamp(int64_t time)
{
	return time > TS_WORK_TIME_LIMIT    ? TS_WORK_TIME_LIMIT
	       : time < -TS_WORK_TIME_LIMIT ? -TS_WORK_TIME_LIMIT
					    : time;
}

/*
 * The nearest double, as a JSON parser would read it: converting ns directly would lose precision.
 */
static double us_of(int64_t ns)
{
	int64_t us = ns / 1000, rest_ns = ns % 1000;

	return (double)us + (double)rest_ns / 1000.0;
}

/*
 * HTA rounding: us as doubles in the file's time base; starts go up, ends go down and may then
 * precede the start.
 */
static void round_times(int64_t base, int64_t *start, int64_t *end)
{
	double from = us_of(*start - base);
	double length = us_of(*end - *start);
	double to = floor(from + length);

	from = ceil(from);
	*start = (int64_t)from * 1000 + base;
	*end = (int64_t)to * 1000 + base;
}

bool ts_work_times(const struct ts_work *work, uint32_t rank, int64_t start, int64_t duration,
		   int64_t *ret_start, int64_t *ret_end)
{
	bool open = duration < 0;

	*ret_start = ts_work_clamp(start);
	*ret_end = ts_work_clamp(*ret_start + TS_MIN(open ? 0 : duration, 2 * TS_WORK_TIME_LIMIT));
	if (work->options.rounding == TS_ROUNDING_HTA)
		round_times(work->ranks[rank].base_ns, ret_start, ret_end);
	return open;
}

/* ---- rows ---- */

/*
 * A device span is not a step. HTA takes it for host work: its last step begins with the last span.
 */
static int add_step(struct ts_work *work, const struct ts_work_slice *slice, int64_t number)
{
	struct ts_work_rank *rank = &work->ranks[slice->rank];
	struct ts_work_step *step;

	if (slice->class != TS_SLICE_GPU_ANNOTATION || work->options.rounding == TS_ROUNDING_HTA)
		rank->last_step_start = TS_MAX(rank->last_step_start, slice->start);
	if (slice->class == TS_SLICE_GPU_ANNOTATION)
		return TS_OK;
	step = TS_WORK_ADD(work, steps, step);
	if (!step)
		return TS_ENOMEM;
	step->thread = slice->thread;
	step->rank = slice->rank;
	step->number = number;
	step->start = slice->start;
	step->end = slice->end;
	return TS_OK;
}

static bool wants_slice(const struct ts_work *work, uint8_t class)
{
	unsigned int load_flags = work->options.load_flags;

	if (class == TS_SLICE_DROPPED)
		return false;
	return load_flags & (class == TS_SLICE_PYTHON ? TS_WORK_PYTHON : TS_WORK_SLICES);
}

static int add_slice(struct ts_work *work, const struct ts_batch *batch, uint32_t row,
		     uint64_t number, uint32_t thread)
{
	int64_t category = batch->columns[TS_COLUMN_OF(slice, category)][row];
	const struct ts_text_facts *name =
		ts_work_facts(work, batch->columns[TS_COLUMN_OF(slice, name)][row]);
	uint8_t class = category ? ts_work_facts(work, category)->slice_class : TS_SLICE_OTHER;
	struct ts_work_slice slice = { .thread = thread,
				       .row = number,
				       .name = class == TS_SLICE_OP ? name->code_name : name->name,
				       .class = class,
				       .parent = TS_WORK_NONE };
	struct ts_work_slice *item;
	bool open;

	slice.rank = work->threads[thread].rank;
	open = ts_work_times(work, slice.rank, batch->columns[TS_COLUMN_OF(slice, start)][row],
			     batch->columns[TS_COLUMN_OF(slice, duration)][row], &slice.start,
			     &slice.end);
	if (open)
		slice.end = INT64_MAX; /* until work_sort.c knows better */
	ts_work_extend(&work->ranks[slice.rank], open ? slice.start : slice.end);
	slice.category = category ? ts_work_facts(work, category)->name : 0;
	if (name->is_step && add_step(work, &slice, name->step))
		return TS_ENOMEM;
	if (!wants_slice(work, class))
		return TS_OK;
	item = TS_WORK_ADD(work, slices, slice);
	if (!item)
		return TS_ENOMEM;
	*item = slice;
	return TS_OK;
}

static int load_slices(struct ts_work *work, const struct ts_batch *batch, uint64_t first,
		       uint32_t clock)
{
	const int64_t *threads = batch->columns[TS_COLUMN_OF(slice, thread)];
	const int64_t *kinds = batch->columns[TS_COLUMN_OF(slice, kind)];
	uint32_t thread = TS_WORK_NONE;
	int64_t last = 0;

	for (uint32_t row = 0; row < batch->rows; row++) {
		if (kinds[row] == TS_SLICE_ASYNC)
			continue;
		if (thread == TS_WORK_NONE || threads[row] != last) {
			last = threads[row];
			thread = ts_work_thread(work, last, clock);
		}
		if (thread == TS_WORK_NONE || add_slice(work, batch, row, first + row, thread))
			return TS_ENOMEM;
	}
	return TS_OK;
}

static int load_calls(struct ts_work *work, const struct ts_batch *batch, uint64_t first,
		      uint32_t clock)
{
	for (uint32_t row = 0; row < batch->rows; row++) {
		struct ts_work_call *call = TS_WORK_ADD(work, calls, call);
		const struct ts_text_facts *name =
			ts_work_facts(work, batch->columns[TS_COLUMN_OF(api_call, name)][row]);

		if (!call)
			return TS_ENOMEM;
		call->thread = ts_work_thread(
			work, batch->columns[TS_COLUMN_OF(api_call, thread)][row], clock);
		if (call->thread == TS_WORK_NONE)
			return TS_ENOMEM;
		call->rank = work->threads[call->thread].rank;
		call->row = first + row;
		call->name = name->name;
		call->kind = name->call_kind;
		call->command = TS_WORK_NONE;
		call->correlation = batch->columns[TS_COLUMN_OF(api_call, correlation)][row];
		if (ts_work_times(work, call->rank,
				  batch->columns[TS_COLUMN_OF(api_call, start)][row],
				  batch->columns[TS_COLUMN_OF(api_call, duration)][row],
				  &call->start, &call->end))
			call->end = INT64_MAX;
		ts_work_extend(&work->ranks[call->rank],
			       call->end == INT64_MAX ? call->start : call->end);
	}
	return TS_OK;
}

#define OP(column) (batch->columns[TS_COLUMN_OF(gpu_op, column)][row])

static int32_t small_id(int64_t value)
{
	return value < 0 || value > INT32_MAX ? -1 : (int32_t)value;
}

/* Only code has arguments: copies have their direction in parentheses. */
static void name_command(struct ts_work *work, int64_t string, int64_t kind,
			 struct ts_work_command *command)
{
	const struct ts_text_facts *facts = ts_work_facts(work, string);
	bool is_code = kind == TS_GPU_OP_KERNEL || kind == TS_GPU_OP_COLLECTIVE;

	if (!string)
		return;
	command->name = is_code ? facts->code_name : facts->name;
	if (kind == TS_GPU_OP_KERNEL && facts->traits & TS_KERNEL_ELEMENTWISE)
		command->flags |= TS_COMMAND_ELEMENTWISE;
	if (kind == TS_GPU_OP_KERNEL && facts->traits & TS_KERNEL_SINGLE_PRECISION)
		command->flags |= TS_COMMAND_SINGLE_PRECISION;
}

static int fill_command(struct ts_work *work, const struct ts_batch *batch, uint32_t row,
			uint32_t device, struct ts_work_command *command)
{
	command->stream = ts_work_stream(work, OP(stream), device);
	if (command->stream == TS_WORK_NONE)
		return TS_ENOMEM;
	command->rank = work->streams[command->stream].rank;
	if (ts_work_times(work, command->rank, OP(start), OP(duration), &command->start,
			  &command->end))
		command->flags |= TS_COMMAND_UNTIMED;
	ts_work_extend(&work->ranks[command->rank], command->end);
	command->issued = OP(queued) == TS_ABSENT ? TS_ABSENT : ts_work_clamp(OP(queued));
	command->correlation = OP(correlation);
	command->bytes = OP(bytes);
	name_command(work, OP(name), OP(kind), command);
	command->category = ts_work_name(work, OP(category));
	command->kind = (uint8_t)(OP(kind) < 0 || OP(kind) > TS_GPU_OP_COLLECTIVE ? 0 : OP(kind));
	command->copy_kind = (uint8_t)(OP(copy_kind) < 0 || OP(copy_kind) > TS_COPY_PEER_TO_PEER
					       ? 0
					       : OP(copy_kind));
	command->class = ts_work_class(work, OP(name), OP(kind));
	command->graph = small_id(OP(graph));
	command->graph_node = small_id(OP(graph_node));
	command->call = command->collective = command->step = TS_WORK_NONE;
	return TS_OK;
}

static int add_command(struct ts_work *work, const struct ts_batch *batch, uint32_t row,
		       uint64_t number, uint32_t device)
{
	struct ts_work_command *command = TS_WORK_ADD(work, commands, command);

	if (!command || fill_command(work, batch, row, device, command))
		return TS_ENOMEM;
	command->row = number;
	if (work->load->has_waits && ts_work_add_waits(work, batch, row, number))
		return TS_ENOMEM;
	if (command->class != TS_CLASS_COMMUNICATION ||
	    !(work->options.load_flags & TS_WORK_DETAILS))
		return TS_OK;
	return ts_work_add_collective(work, batch, row, work->command_count - 1);
}

static int add_sync(struct ts_work *work, const struct ts_batch *batch, uint32_t row,
		    uint64_t number, uint32_t device)
{
	struct ts_work_sync *sync = TS_WORK_ADD(work, syncs, sync);

	if (!sync)
		return TS_ENOMEM;
	sync->row = number;
	sync->device = device;
	sync->rank = work->devices[device].rank;
	sync->correlation = OP(correlation);
	sync->name = ts_work_name(work, OP(name));
	sync->call = TS_WORK_NONE;
	ts_work_times(work, sync->rank, OP(start), OP(duration), &sync->start, &sync->end);
	return ts_work_add_sync(work, batch, row, sync);
}

/*
 * Kineto's synchronisation rows are host time, not device time. A marker in a queue has device
 * time.
 */
static bool is_sync(struct ts_work *work, const struct ts_batch *batch, uint32_t row)
{
	return OP(kind) == TS_GPU_OP_SYNC && !ts_work_facts(work, OP(category))->is_marker;
}

static int load_commands(struct ts_work *work, const struct ts_batch *batch, uint64_t first,
			 uint32_t clock)
{
	for (uint32_t row = 0; row < batch->rows; row++) {
		uint32_t device = ts_work_device(work, OP(device), clock);
		int code;

		if (device == TS_WORK_NONE)
			return TS_ENOMEM;
		code = is_sync(work, batch, row)
			       ? add_sync(work, batch, row, first + row, device)
			       : add_command(work, batch, row, first + row, device);
		if (code)
			return code;
	}
	return TS_OK;
}

#undef OP

/* Kineto's flows from calls to commands duplicate correlation ids. */
static bool is_launch_arrow(const char *category)
{
	return !strcmp(category, "ac2g") || !strcmp(category, "async");
}

/* A further point of a flow: one flow per pair of consecutive points. */
static int add_flow(struct ts_work *work, const struct ts_batch *batch, uint32_t row,
		    uint32_t thread)
{
	int64_t id = batch->columns[TS_COLUMN_OF(flow, id)][row];
	uint32_t category = ts_work_name(work, batch->columns[TS_COLUMN_OF(flow, category)][row]);
	uint64_t key = ((uint64_t)id * 0x9e3779b97f4a7c15u) ^ ((uint64_t)category << 32) ^
		       work->threads[thread].rank;
	int64_t kind = batch->columns[TS_COLUMN_OF(flow, kind)][row];
	int64_t time, end;
	struct ts_work_flow *flow;
	uint64_t index;

	if (is_launch_arrow(ts_work_text(work, category)))
		return TS_OK;
	ts_work_times(work, work->threads[thread].rank,
		      batch->columns[TS_COLUMN_OF(flow, start)][row], 0, &time, &end);
	if (kind != TS_FLOW_START) {
		if (!ts_map_get(&work->load->flow_starts, key, &index))
			return TS_OK;
		work->flows[index].to_time = time;
		work->flows[index].to_thread = thread;
	}
	if (kind == TS_FLOW_END)
		return TS_OK;
	flow = TS_WORK_ADD(work, flows, flow);
	if (!flow)
		return TS_ENOMEM;
	flow->from_time = time;
	flow->from_thread = thread;
	flow->to_thread = TS_WORK_NONE;
	flow->category = category;
	return ts_map_put(&work->load->flow_starts, key, work->flow_count - 1);
}

static int load_flows(struct ts_work *work, const struct ts_batch *batch, uint64_t first,
		      uint32_t clock)
{
	(void)first;
	for (uint32_t row = 0; row < batch->rows; row++) {
		uint32_t thread = ts_work_thread(
			work, batch->columns[TS_COLUMN_OF(flow, thread)][row], clock);

		if (batch->columns[TS_COLUMN_OF(flow, id)][row] == TS_ABSENT)
			continue;
		if (thread == TS_WORK_NONE || add_flow(work, batch, row, thread))
			return TS_ENOMEM;
	}
	return TS_OK;
}

/* ---- a whole trace ---- */

#define SLICE_COLUMNS                                                                         \
	(TS_MASK_OF(slice, start) | TS_MASK_OF(slice, duration) | TS_MASK_OF(slice, thread) | \
	 TS_MASK_OF(slice, name) | TS_MASK_OF(slice, category) | TS_MASK_OF(slice, kind))
#define CALL_COLUMNS                                                    \
	(TS_MASK_OF(api_call, start) | TS_MASK_OF(api_call, duration) | \
	 TS_MASK_OF(api_call, thread) | TS_MASK_OF(api_call, name) |    \
	 TS_MASK_OF(api_call, correlation))
#define COMMAND_COLUMNS                                                                           \
	(TS_MASK_OF(gpu_op, start) | TS_MASK_OF(gpu_op, duration) | TS_MASK_OF(gpu_op, device) |  \
	 TS_MASK_OF(gpu_op, stream) | TS_MASK_OF(gpu_op, kind) | TS_MASK_OF(gpu_op, name) |       \
	 TS_MASK_OF(gpu_op, category) | TS_MASK_OF(gpu_op, correlation) |                         \
	 TS_MASK_OF(gpu_op, queued) | TS_MASK_OF(gpu_op, bytes) | TS_MASK_OF(gpu_op, copy_kind) | \
	 TS_MASK_OF(gpu_op, graph) | TS_MASK_OF(gpu_op, graph_node))
#define MARK_COLUMNS                                                                   \
	(TS_MASK_OF(mark, start) | TS_MASK_OF(mark, thread) | TS_MASK_OF(mark, name) | \
	 TS_MASK_OF(mark, category) | TS_MASK_OF(mark, shape))
#define WINDOW_COLUMNS                                                                            \
	(TS_MASK_OF(window, start) | TS_MASK_OF(window, duration) | TS_MASK_OF(window, process) | \
	 TS_MASK_OF(window, closed_by))
#define FLOW_COLUMNS                                                                   \
	(TS_MASK_OF(flow, start) | TS_MASK_OF(flow, thread) | TS_MASK_OF(flow, kind) | \
	 TS_MASK_OF(flow, id) | TS_MASK_OF(flow, category))

struct table_loader {
	enum ts_table_id table;
	uint64_t columns;
	unsigned int load_flags; /* 0: always */
	int (*load)(struct ts_work *work, const struct ts_batch *batch, uint64_t first,
		    uint32_t clock);
};

static const struct table_loader loaders[] = {
	{ TS_TABLE_SLICE, SLICE_COLUMNS, 0, load_slices },
	{ TS_TABLE_API_CALL, CALL_COLUMNS, 0, load_calls },
	{ TS_TABLE_GPU_OP, COMMAND_COLUMNS, 0, load_commands },
	{ TS_TABLE_FLOW, FLOW_COLUMNS, TS_WORK_FLOWS, load_flows },
	{ TS_TABLE_WINDOW, WINDOW_COLUMNS, 0, ts_work_load_windows }, /* before marks */
	{ TS_TABLE_MARK, MARK_COLUMNS, 0, ts_work_load_marks },
};

static int report_progress(struct ts_work *work, uint32_t rows, struct ts_error *err)
{
	struct ts_work_load *load = work->load;

	load->rows_done += rows;
	if (work->options.progress && rows &&
	    work->options.progress(work->options.context, load->rows_done, load->rows_total))
		return ts_error_set(err, TS_ECANCELED, "stopped");
	return TS_OK;
}

/* Arguments are decoded only in chunks with rows that need them. */
static bool wants_args(struct ts_work *work, const struct ts_batch *batch)
{
	const int64_t *kinds = batch->columns[TS_COLUMN_OF(gpu_op, kind)];
	const int64_t *names = batch->columns[TS_COLUMN_OF(gpu_op, name)];
	bool details = work->options.load_flags & TS_WORK_DETAILS;

	if (work->load->has_waits)
		return true;
	for (uint32_t row = 0; row < batch->rows; row++)
		if (kinds[row] == TS_GPU_OP_SYNC ||
		    (details &&
		     ts_work_class(work, names[row], kinds[row]) == TS_CLASS_COMMUNICATION))
			return true;
	return false;
}

static int read_chunk(struct ts_work *work, const struct table_loader *loader, size_t chunk,
		      struct ts_error *err)
{
	struct ts_batch *batch = work->load->batch;
	int code = ts_batch_read(batch, chunk, loader->columns, err);

	if (!code && loader->table == TS_TABLE_GPU_OP && wants_args(work, batch))
		code = ts_batch_read(batch, chunk, loader->columns | TS_MASK_OF(gpu_op, shape),
				     err);
	return code;
}

static bool wants_table(const struct ts_work *work, const struct table_loader *loader)
{
	if (loader->table == TS_TABLE_MARK)
		return work->load->has_marks && !work->options.step_span;
	return !loader->load_flags || work->options.load_flags & loader->load_flags;
}

static int load_table(struct ts_work *work, const struct table_loader *loader, struct ts_error *err)
{
	struct ts_reader *reader = work->load->reader;
	uint64_t first = 0;

	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(reader, i);
		int code;

		if (chunk->table != loader->table)
			continue;
		code = read_chunk(work, loader, i, err);
		if (code)
			return code;
		if (loader->load(work, work->load->batch, first, chunk->clock))
			return no_memory(err);
		first += chunk->rows;
		code = report_progress(work, chunk->rows, err);
		if (code)
			return code;
	}
	return TS_OK;
}

/* Kineto's baseTimeNanoseconds is the first sync point of the rank's clock. */
static int load_bases(struct ts_work *work, struct ts_error *err)
{
	struct ts_work_load *load = work->load;

	for (size_t i = 0; i < ts_reader_chunk_count(load->reader); i++) {
		if (ts_reader_chunk(load->reader, i)->table != TS_TABLE_CLOCK_SYNC)
			continue;
		int code = ts_batch_read(load->batch, i, TS_MASK_ALL, err);

		if (code)
			return code;
		for (uint32_t row = 0; row < load->batch->rows; row++) {
			struct ts_clock_sync_row sync;
			uint64_t rank;

			ts_batch_row(load->batch, row, &sync);
			if (sync.time == 0 && sync.generation == 0 &&
			    ts_map_get(&load->clock_ranks, (uint64_t)sync.clock, &rank))
				work->ranks[rank].base_ns = ts_work_clamp(sync.reference);
		}
	}
	return TS_OK;
}

/* Detects wait lists and marked steps in this trace by its shapes. */
static int look_at_shapes(struct ts_work_load *load, struct ts_error *err)
{
	load->has_waits = load->has_marks = false;
	for (size_t i = 0; i < ts_reader_chunk_count(load->reader); i++) {
		if (ts_reader_chunk(load->reader, i)->table != TS_TABLE_SHAPE)
			continue;
		int code = ts_batch_read(load->batch, i, TS_MASK_OF(shape, key), err);
		const int64_t *keys = load->batch->columns[TS_COLUMN_OF(shape, key)];

		if (code)
			return code;
		for (uint32_t row = 0; row < load->batch->rows; row++) {
			const char *key = ts_reader_string(load->reader, keys[row]).data;

			load->has_waits |= !strcmp(key, TS_WAITS_KEY);
			load->has_marks |= !strcmp(key, TS_STEP_MARK);
		}
	}
	return TS_OK;
}

static void clear_entities(struct ts_work_load *load)
{
	ts_map_clear(&load->ranks);
	ts_map_clear(&load->devices);
	ts_map_clear(&load->streams);
	ts_map_clear(&load->threads);
	ts_map_clear(&load->clock_ranks);
	ts_map_clear(&load->flow_starts);
}

static int start_trace(struct ts_work *work, struct ts_reader *reader, struct ts_error *err)
{
	struct ts_work_load *load = work->load;
	struct ts_reader **readers;

	readers = realloc(work->readers, (work->trace_count + 1) * sizeof(struct ts_reader *));
	if (!readers)
		return no_memory(err);
	work->readers = readers;
	readers[work->trace_count] = reader;
	load->reader = reader;
	load->trace = work->trace_count++;
	ts_batch_free(load->batch);
	load->batch = NULL;
	clear_entities(load);
	load->window_count = 0;
	for (size_t i = 0; i < TS_ARRAY_SIZE(loaders); i++)
		load->rows_total += ts_reader_rows(reader, loaders[i].table);
	if (ts_work_start_texts(load))
		return no_memory(err);
	return ts_batch_new(&load->batch, reader, err);
}

int ts_work_add(struct ts_work *work, struct ts_reader *reader, struct ts_error *err)
{
	int code = start_trace(work, reader, err);

	if (!code && ts_work_add_ranks(work))
		code = no_memory(err);
	if (!code && !ts_work_wants_trace(work))
		return TS_OK;
	if (!code)
		code = load_bases(work, err);
	if (!code)
		code = look_at_shapes(work->load, err);
	for (size_t i = 0; !code && i < TS_ARRAY_SIZE(loaders); i++)
		if (wants_table(work, &loaders[i]))
			code = load_table(work, &loaders[i], err);
	if (!code && ts_work_find_gaps(work))
		code = no_memory(err);
	return code ? code : ts_reader_status(reader, err);
}
