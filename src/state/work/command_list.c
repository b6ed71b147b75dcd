/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the command list from commands, from calls that record, wait or synchronise, and from
 * synchronisation rows; then reads launch parameters from the trace in one pass.
 */
#include "state/work/command_list.h"

/* ---- what there is ---- */

struct builder {
	const struct ts_work *work;
	struct ts_command_list *result;
	size_t capacity;
	uint32_t *sync_of_call;   /* per call: the sync row that describes it, or TS_WORK_NONE */
	struct ts_pairmap waited; /* (rank, correlation) of an event record to the sync that names
				     it, plus 1 */
};

static const struct ts_command_entry NOTHING = {
	.issued = TS_ABSENT,
	.start = TS_ABSENT,
	.end = TS_ABSENT,
	.correlation = TS_ABSENT,
	.bytes = TS_ABSENT,
	.grid = { TS_ABSENT, TS_ABSENT, TS_ABSENT },
	.block = { TS_ABSENT, TS_ABSENT, TS_ABSENT },
	.registers = TS_ABSENT,
	.shared_bytes = TS_ABSENT,
	.event = TS_ABSENT,
	.record_correlation = TS_ABSENT,
	.device = TS_WORK_NONE,
	.stream = TS_WORK_NONE,
	.on_stream = TS_WORK_NONE,
	.thread = TS_WORK_NONE,
	.command = TS_WORK_NONE,
	.call = TS_WORK_NONE,
	.sync = TS_WORK_NONE,
	.graph = -1,
	.graph_node = -1,
};

static struct ts_command_entry *add(struct builder *builder)
{
	struct ts_command_list *result = builder->result;

	if (ts_grow_array((void **)&result->list, &builder->capacity, result->count + 1,
			  sizeof(*result->list)))
		return NULL;
	result->list[result->count] = NOTHING;
	return &result->list[result->count++];
}

static enum ts_command_kind kind_of_command(uint8_t kind)
{
	switch (kind) {
	case TS_GPU_OP_COPY:
		return TS_COMMAND_COPY;
	case TS_GPU_OP_FILL:
		return TS_COMMAND_FILL;
	case TS_GPU_OP_WAIT:
		return TS_COMMAND_WAIT;
	case TS_GPU_OP_SYNC: /* a marker: other syncs are not commands */
		return TS_COMMAND_RECORD;
	case TS_GPU_OP_HOST:
		return TS_COMMAND_HOST;
	case TS_GPU_OP_KERNEL:
	case TS_GPU_OP_COLLECTIVE:
	case TS_GPU_OP_GRAPH:
		return TS_COMMAND_LAUNCH;
	default:
		return TS_COMMAND_UNKNOWN;
	}
}

static int add_command(struct builder *builder, uint32_t index)
{
	const struct ts_work_command *command = &builder->work->commands[index];
	struct ts_command_entry *one = add(builder);

	if (!one)
		return TS_ENOMEM;
	one->issued = command->issued;
	one->start = command->start;
	one->end = command->end;
	one->correlation = command->correlation;
	one->bytes = command->bytes;
	one->rank = command->rank;
	one->stream = command->stream;
	one->name = command->name;
	one->command = index;
	one->call = command->call;
	one->graph = command->graph;
	one->graph_node = command->graph_node;
	one->copy_kind = command->copy_kind;
	one->kind = (uint8_t)kind_of_command(command->kind);
	if (command->flags & TS_COMMAND_UNTIMED)
		one->end = TS_ABSENT;
	if (command->call != TS_WORK_NONE)
		one->thread = builder->work->calls[command->call].thread;
	return TS_OK;
}

/* Command kind of a call that is a list entry by itself; TS_COMMAND_UNKNOWN: it is not. */
static enum ts_command_kind kind_of_call(const struct ts_work_call *call)
{
	switch (call->kind) {
	case TS_API_EVENT_RECORD:
		return call->command == TS_WORK_NONE ? TS_COMMAND_RECORD : TS_COMMAND_UNKNOWN;
	case TS_API_STREAM_WAIT:
		return call->command == TS_WORK_NONE ? TS_COMMAND_WAIT : TS_COMMAND_UNKNOWN;
	case TS_API_EVENT_SYNC:
	case TS_API_STREAM_SYNC:
	case TS_API_DEVICE_SYNC:
		return TS_COMMAND_SYNC;
	case TS_API_COPY:
		return call->command == TS_WORK_NONE ? TS_COMMAND_COPY : TS_COMMAND_UNKNOWN;
	case TS_API_FILL:
		return call->command == TS_WORK_NONE ? TS_COMMAND_FILL : TS_COMMAND_UNKNOWN;
	case TS_API_LAUNCH:
	case TS_API_GRAPH:
		return call->command == TS_WORK_NONE ? TS_COMMAND_LAUNCH : TS_COMMAND_UNKNOWN;
	default:
		return TS_COMMAND_UNKNOWN;
	}
}

/* Operands from a synchronisation row. */
static void add_operands(struct ts_command_entry *one, const struct ts_work *work, uint32_t index)
{
	const struct ts_work_sync *sync = &work->syncs[index];

	one->sync = index;
	one->stream = sync->stream;
	one->on_stream = sync->on_stream;
	one->device = sync->device;
	one->event = sync->event;
	one->record_correlation = sync->record_correlation;
}

/* Only the waiters name the stream that an event was recorded on. */
static void add_record_operands(struct builder *builder, struct ts_command_entry *one)
{
	const struct ts_work_sync *sync;
	uint64_t found;

	if (one->correlation == TS_ABSENT ||
	    !ts_pairmap_get(&builder->waited, one->rank, (uint64_t)one->correlation, &found))
		return;
	sync = &builder->work->syncs[found];
	one->stream = sync->on_stream;
	one->device = sync->device;
	one->event = sync->event;
}

static int add_call(struct builder *builder, uint32_t index)
{
	const struct ts_work_call *call = &builder->work->calls[index];
	enum ts_command_kind kind = kind_of_call(call);
	struct ts_command_entry *one;

	if (kind == TS_COMMAND_UNKNOWN)
		return TS_OK;
	one = add(builder);
	if (!one)
		return TS_ENOMEM;
	one->kind = (uint8_t)kind;
	one->issued = call->start;
	one->correlation = call->correlation;
	one->rank = call->rank;
	one->thread = call->thread;
	one->name = call->name;
	one->call = index;
	if (kind == TS_COMMAND_SYNC) {
		one->start = call->start;
		one->end = call->end;
	}
	if (ts_api_is_enqueue((enum ts_api_kind)call->kind))
		one->flags |= TS_COMMAND_ENTRY_MISSING;
	if (builder->sync_of_call[index] != TS_WORK_NONE)
		add_operands(one, builder->work, builder->sync_of_call[index]);
	else if (kind == TS_COMMAND_RECORD)
		add_record_operands(builder, one);
	return TS_OK;
}

/* A synchronisation whose call is not in the trace. */
static int add_sync(struct builder *builder, uint32_t index)
{
	const struct ts_work_sync *sync = &builder->work->syncs[index];
	struct ts_command_entry *one;

	if (sync->call != TS_WORK_NONE)
		return TS_OK;
	one = add(builder);
	if (!one)
		return TS_ENOMEM;
	one->kind = sync->kind == TS_SYNC_STREAM_WAIT ? TS_COMMAND_WAIT : TS_COMMAND_SYNC;
	one->issued = sync->start;
	if (one->kind == TS_COMMAND_SYNC) {
		one->start = sync->start;
		one->end = sync->end;
	}
	one->correlation = sync->correlation;
	one->rank = sync->rank;
	one->name = sync->name;
	add_operands(one, builder->work, index);
	return TS_OK;
}

static int find_syncs(struct builder *builder)
{
	const struct ts_work *work = builder->work;

	builder->sync_of_call = ts_alloc_array(work->call_count, sizeof(*builder->sync_of_call));
	if (!builder->sync_of_call)
		return TS_ENOMEM;
	memset(builder->sync_of_call, 0xff, work->call_count * sizeof(*builder->sync_of_call));
	for (uint32_t i = 0; i < work->sync_count; i++) {
		const struct ts_work_sync *sync = &work->syncs[i];

		if (sync->call != TS_WORK_NONE)
			builder->sync_of_call[sync->call] = i;
		if (sync->record_correlation != TS_ABSENT &&
		    ts_pairmap_put(&builder->waited, sync->rank, (uint64_t)sync->record_correlation,
				   i))
			return TS_ENOMEM;
	}
	return TS_OK;
}

static int collect(struct builder *builder)
{
	const struct ts_work *work = builder->work;
	int rc = find_syncs(builder);

	for (uint32_t i = 0; !rc && i < work->command_count; i++)
		rc = add_command(builder, i);
	for (uint32_t i = 0; !rc && i < work->call_count; i++)
		rc = add_call(builder, i);
	for (uint32_t i = 0; !rc && i < work->sync_count; i++)
		rc = add_sync(builder, i);
	return rc;
}

/* ---- in order ---- */

static int compare_numbers(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

/* Issue time, or the start time if that is unknown. */
static int64_t order_time(const struct ts_command_entry *one)
{
	return one->issued != TS_ABSENT ? one->issued : one->start;
}

static int compare_entries(const void *one, const void *other)
{
	const struct ts_command_entry *a = one, *b = other;
	int order = compare_numbers(a->rank, b->rank);

	if (!order)
		order = compare_numbers(a->stream, b->stream);
	if (!order)
		order = compare_numbers(order_time(a), order_time(b));
	if (!order)
		order = compare_numbers(a->correlation, b->correlation);
	if (!order)
		order = compare_numbers(a->start, b->start);
	if (!order)
		order = compare_numbers(a->command, b->command);
	if (!order)
		order = compare_numbers(a->call, b->call);
	return order ? order : compare_numbers(a->sync, b->sync);
}

static void put_in_order(struct ts_command_list *result)
{
	const struct ts_work *work = result->work;

	if (result->count)
		ts_sort(result->list, result->count, sizeof(*result->list), compare_entries);
	for (size_t i = 0; i < result->count; i++) {
		struct ts_command_entry *one = &result->list[i];

		if (i && one[-1].rank == one->rank && one[-1].stream == one->stream)
			one->sequence = one[-1].sequence + 1;
		if (one->stream != TS_WORK_NONE)
			one->device = work->streams[one->stream].device;
	}
}

/* ---- launch parameters ---- */

#define LAUNCH_MASK                                                                                \
	(TS_MASK_OF(gpu_op, grid_x) | TS_MASK_OF(gpu_op, grid_y) | TS_MASK_OF(gpu_op, grid_z) |    \
	 TS_MASK_OF(gpu_op, block_x) | TS_MASK_OF(gpu_op, block_y) | TS_MASK_OF(gpu_op, block_z) | \
	 TS_MASK_OF(gpu_op, registers) | TS_MASK_OF(gpu_op, shared_bytes))

static void add_launch(struct ts_command_entry *one, const struct ts_batch *batch, uint32_t row)
{
	one->grid[0] = batch->columns[TS_COLUMN_OF(gpu_op, grid_x)][row];
	one->grid[1] = batch->columns[TS_COLUMN_OF(gpu_op, grid_y)][row];
	one->grid[2] = batch->columns[TS_COLUMN_OF(gpu_op, grid_z)][row];
	one->block[0] = batch->columns[TS_COLUMN_OF(gpu_op, block_x)][row];
	one->block[1] = batch->columns[TS_COLUMN_OF(gpu_op, block_y)][row];
	one->block[2] = batch->columns[TS_COLUMN_OF(gpu_op, block_z)][row];
	one->registers = batch->columns[TS_COLUMN_OF(gpu_op, registers)][row];
	one->shared_bytes = batch->columns[TS_COLUMN_OF(gpu_op, shared_bytes)][row];
}

/* Maps rows of a trace's gpu_op table to list entries; SIZE_MAX: none. */
static size_t *by_row(const struct ts_command_list *result, uint32_t trace, uint64_t rows)
{
	const struct ts_work *work = result->work;
	size_t *positions = ts_alloc_array(rows, sizeof(*positions));

	if (!positions)
		return NULL;
	memset(positions, 0xff, rows * sizeof(*positions));
	for (size_t i = 0; i < result->count; i++) {
		const struct ts_command_entry *one = &result->list[i];

		if (one->command != TS_WORK_NONE && work->ranks[one->rank].trace == trace &&
		    work->commands[one->command].row < rows)
			positions[work->commands[one->command].row] = i;
	}
	return positions;
}

static int read_rows(struct ts_command_list *result, struct ts_reader *reader,
		     struct ts_batch *batch, const size_t *positions, struct ts_error *err)
{
	uint64_t first = 0;

	for (size_t c = 0; c < ts_reader_chunk_count(reader); c++) {
		int rc;

		if (ts_reader_chunk(reader, c)->table != TS_TABLE_GPU_OP)
			continue;
		rc = ts_batch_read(batch, c, LAUNCH_MASK, err);
		if (rc)
			return rc;
		for (uint32_t r = 0; r < batch->rows; r++) {
			if (positions[first + r] != SIZE_MAX)
				add_launch(&result->list[positions[first + r]], batch, r);
		}
		first += batch->rows;
	}
	return TS_OK;
}

static int read_trace(struct ts_command_list *result, uint32_t trace, struct ts_error *err)
{
	struct ts_reader *reader = result->work->readers[trace];
	uint64_t rows = ts_reader_rows(reader, TS_TABLE_GPU_OP);
	TS_AUTO_FREE size_t *positions = NULL;
	struct ts_batch *batch = NULL;
	int rc;

	if (rows == 0)
		return TS_OK;
	positions = by_row(result, trace, rows);
	if (!positions)
		return ts_error_set(err, TS_ENOMEM, "out of memory for the command list");
	rc = ts_batch_new(&batch, reader, err);
	if (!rc)
		rc = read_rows(result, reader, batch, positions, err);
	ts_batch_free(batch);
	return rc;
}

/* ---- numbers of a recorded command stream ---- */

#define NUMBER_MASK                                                  \
	(TS_MASK_OF(command, sequence) | TS_MASK_OF(command, kind) | \
	 TS_MASK_OF(command, correlation))

static int read_numbers(struct ts_map *numbers, struct ts_reader *reader, struct ts_error *err)
{
	struct ts_batch *batch = NULL;
	int rc = ts_batch_new(&batch, reader, err);

	for (size_t c = 0; !rc && c < ts_reader_chunk_count(reader); c++) {
		if (ts_reader_chunk(reader, c)->table != TS_TABLE_COMMAND)
			continue;
		rc = ts_batch_read(batch, c, NUMBER_MASK, err);
		for (uint32_t r = 0; !rc && r < batch->rows; r++) {
			int64_t number = batch->columns[TS_COLUMN_OF(command, sequence)][r];
			int64_t correlation = batch->columns[TS_COLUMN_OF(command, correlation)][r];
			int64_t kind = batch->columns[TS_COLUMN_OF(command, kind)][r];

			if (number > 0 && correlation > 0 && kind != TS_COMMAND_CHECK &&
			    ts_map_put(numbers, (uint64_t)correlation, (uint64_t)number))
				rc = ts_error_set(err, TS_ENOMEM,
						  "out of memory for the command list");
		}
	}
	ts_batch_free(batch);
	return rc;
}

/* One number for a command everywhere: where the stream has none, there is none. */
static int number_commands(struct ts_command_list *result, uint32_t trace, struct ts_error *err)
{
	struct ts_reader *reader = result->work->readers[trace];
	TS_SCOPED(ts_map) numbers = { 0 };
	int rc = TS_OK;

	if (ts_reader_rows(reader, TS_TABLE_COMMAND))
		rc = read_numbers(&numbers, reader, err);
	for (size_t i = 0; !rc && ts_map_count(&numbers) && i < result->count; i++) {
		struct ts_command_entry *one = &result->list[i];
		uint64_t number = 0;

		if (result->work->ranks[one->rank].trace != trace)
			continue;
		one->sequence =
			one->correlation > 0 &&
					ts_map_get(&numbers, (uint64_t)one->correlation, &number)
				? (int64_t)number
				: TS_ABSENT;
	}
	return rc;
}

/* ---- entry points ---- */

int ts_command_list_new(struct ts_command_list **ret_list, const struct ts_work *work,
			struct ts_error *err)
{
	TS_AUTO(ts_command_list) result = calloc(1, sizeof(*result));
	struct builder builder = { .work = work, .result = result };
	int rc = result ? TS_OK : TS_ENOMEM;

	if (!rc) {
		result->work = work;
		rc = collect(&builder);
	}
	free(builder.sync_of_call);
	ts_pairmap_release(&builder.waited);
	if (rc)
		return ts_error_set(err, rc, "out of memory for the command list");
	put_in_order(result);
	for (uint32_t t = 0; !rc && t < work->trace_count; t++)
		rc = read_trace(result, t, err);
	for (uint32_t t = 0; !rc && t < work->trace_count; t++)
		rc = number_commands(result, t, err);
	if (rc)
		return rc;
	*ret_list = TS_STEAL(result);
	return TS_OK;
}

void ts_command_list_free(struct ts_command_list *commands)
{
	if (!commands)
		return;
	free(commands->list);
	free(commands);
}
