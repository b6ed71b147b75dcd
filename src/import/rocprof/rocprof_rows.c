/* SPDX-License-Identifier: Apache-2.0 */
/* Records of rocprofv3 as rows. */
#include "import/rocprof/rocprof_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/kineto_names.h"

const struct ts_rocprof_event ts_rocprof_event_none = { .start = TS_ABSENT,
							.end = TS_ABSENT,
							.registers = TS_ABSENT,
							.shared_bytes = TS_ABSENT,
							.bytes = TS_ABSENT,
							.result = TS_ABSENT };

const struct ts_loss_kind ts_rocprof_lost_time = { .what = "record",
						   .one = "record without times",
						   .many = "records without times" };
const struct ts_loss_kind ts_rocprof_lost_record = { .what = "record",
						     .one = "value that is not a record",
						     .many = "values that are not records" };
const struct ts_loss_kind ts_rocprof_lost_section = { .what = "section",
						      .one = "entry of a section without times",
						      .many = "entries of sections without times" };
const struct ts_loss_kind ts_rocprof_lost_value = { .what = "value",
						    .one = "value without time or event",
						    .many = "values without time or event" };

static const struct ts_loss_kind lost_end = {
	.what = "duration",
	.one = "duration of a record that ends before it starts",
	.many = "durations of records that end before they start"
};
static const struct ts_loss_kind lost_correlation = { .what = "correlation",
						      .one = "correlation id out of range",
						      .many = "correlation ids out of range" };
static const struct ts_loss_kind lost_argument = {
	.what = "argument",
	.one = "argument of a record with too many arguments",
	.many = "arguments of records with too many arguments"
};

static const char *const key_names[TS_ROCPROF_KEY_COUNT] = {
	[TS_ROCPROF_KEY_THREAD] = "thread_id",
	[TS_ROCPROF_KEY_QUEUE] = "queue_id",
	[TS_ROCPROF_KEY_KERNEL] = "kernel_id",
	[TS_ROCPROF_KEY_DISPATCH] = "dispatch_id",
	[TS_ROCPROF_KEY_PRIVATE] = "private_segment_size",
	[TS_ROCPROF_KEY_ACCUM_VGPR] = "accum_vgpr_count",
	[TS_ROCPROF_KEY_SGPR] = "sgpr_count",
	[TS_ROCPROF_KEY_EXTERNAL] = "external_correlation_id",
	[TS_ROCPROF_KEY_GRID_X] = "grid_size_x",
	[TS_ROCPROF_KEY_GRID_Y] = "grid_size_y",
	[TS_ROCPROF_KEY_GRID_Z] = "grid_size_z",
	[TS_ROCPROF_KEY_SRC_AGENT] = "src_agent_id",
	[TS_ROCPROF_KEY_DST_AGENT] = "dst_agent_id",
	[TS_ROCPROF_KEY_AGENT] = "agent_id",
	[TS_ROCPROF_KEY_OPERATION] = "operation",
	[TS_ROCPROF_KEY_DURATION] = "duration_ns",
	[TS_ROCPROF_KEY_VALUE] = "value",
	[TS_ROCPROF_KEY_FLAGS] = "flags",
};

void ts_rocprof_rows_init(struct ts_rocprof_rows *rows, struct ts_entities *entities)
{
	memset(rows, 0, sizeof(*rows));
	rows->entities = entities;
	rows->import = entities->import;
	rows->writer = entities->writer;
	for (size_t i = 0; i < TS_ROCPROF_KEY_COUNT; i++)
		rows->keys[i] = ts_rocprof_text(rows, key_names[i]);
}

void ts_rocprof_rows_release(struct ts_rocprof_rows *rows)
{
	free(rows->fields);
	free(rows->blocks);
	ts_pairmap_release(&rows->streams);
	ts_map_release(&rows->addresses);
}

/* ---- what names say ---- */

static bool has(const char *name, size_t length, const char *part)
{
	size_t bytes = strlen(part);

	for (size_t i = 0; i + bytes <= length; i++)
		if (!strncasecmp(name + i, part, bytes))
			return true;
	return false;
}

static bool begins(const char *name, size_t length, const char *part)
{
	size_t bytes = strlen(part);

	return length >= bytes && !memcmp(name, part, bytes);
}

/* AMD API calls whose name implies a submission to a device. */
static bool is_launch(const char *name, size_t length)
{
	static const char *const substrings[] = {
		"launch", "memcpy", "memset", "memory_copy", "memory_async_copy", "memory_fill"
	};

	if (begins(name, length, "nccl"))
		return has(name, length, "All") || has(name, length, "Reduce") ||
		       has(name, length, "Broadcast") || has(name, length, "Send") ||
		       has(name, length, "Recv");
	for (size_t i = 0; i < TS_ARRAY_SIZE(substrings); i++)
		if (has(name, length, substrings[i]))
			return true;
	return false;
}

enum ts_rocprof_operation ts_rocprof_operation(const char *name, size_t length)
{
	static const struct {
		const char *part;
		enum ts_rocprof_operation operation;
	} copies[] = {
		{ "HOST_TO_HOST", TS_ROCPROF_HOST_TO_HOST },
		{ "HOST_TO_DEVICE", TS_ROCPROF_HOST_TO_DEVICE },
		{ "DEVICE_TO_HOST", TS_ROCPROF_DEVICE_TO_HOST },
		{ "DEVICE_TO_DEVICE", TS_ROCPROF_DEVICE_TO_DEVICE },
	};

	if (begins(name, length, "roctxMark"))
		return TS_ROCPROF_MARK;
	if (begins(name, length, "roctxRangePush") || begins(name, length, "roctxThreadRange"))
		return TS_ROCPROF_RANGE;
	if (begins(name, length, "roctxRangeStart") || begins(name, length, "roctxProcessRange"))
		return TS_ROCPROF_PROCESS_RANGE;
	if (begins(name, length, "MEMORY_ALLOCATION_"))
		return has(name, length, "FREE")    ? TS_ROCPROF_FREE
		       : has(name, length, "ALLOC") ? TS_ROCPROF_ALLOCATE
						    : TS_ROCPROF_PLAIN;
	for (size_t i = 0; i < TS_ARRAY_SIZE(copies); i++)
		if (has(name, length, copies[i].part))
			return copies[i].operation;
	return is_launch(name, length) ? TS_ROCPROF_LAUNCH : TS_ROCPROF_PLAIN;
}

bool ts_rocprof_is_call(const char *name, size_t length)
{
	static const char *const interfaces[] = { "hip_", "hsa_", "rccl_", "rocdecode_",
						  "rocjpeg_" };

	if (!has(name, length, "_api"))
		return false;
	for (size_t i = 0; i < TS_ARRAY_SIZE(interfaces); i++)
		if (length >= strlen(interfaces[i]) &&
		    !strncasecmp(name, interfaces[i], strlen(interfaces[i])))
			return true;
	return false;
}

/* ---- fields of rows ---- */

void ts_rocprof_arg_unsigned(struct ts_rocprof_rows *rows, uint32_t key, uint64_t value)
{
	char text[24];

	if (value <= INT64_MAX) {
		ts_row_args_add(&rows->args, key, TS_ARG_INT, (int64_t)value);
		return;
	}
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	ts_row_args_add(&rows->args, key, TS_ARG_JSON, ts_rocprof_text(rows, text));
}

int64_t ts_rocprof_stream(struct ts_rocprof_rows *rows, int64_t device, uint64_t process_index,
			  bool is_queue, uint64_t handle)
{
	bool is_new;
	uint64_t *key =
		ts_pairmap_insert(&rows->streams, process_index << 1 | is_queue, handle, &is_new);
	int64_t id;

	if (!key)
		return 0;
	if (is_new)
		*key = ts_pairmap_count(&rows->streams);
	id = ts_entities_stream(rows->entities, device, *key,
				handle <= INT64_MAX ? (int64_t)handle : TS_ABSENT);
	if (is_new && is_queue && id) {
		char name[40];

		snprintf(name, sizeof(name), "queue %llu", (unsigned long long)handle);
		ts_entities_stream_row(rows->entities, id)->name = ts_rocprof_text(rows, name);
	}
	return id;
}

/*
 * A unique number for each pair of process and correlation id; those of the first process are
 * unchanged.
 */
static int64_t correlation(struct ts_rocprof_rows *rows, const struct ts_rocprof_event *event)
{
	const unsigned int bits = 44;

	if (!event->correlation)
		return TS_ABSENT;
	if (event->correlation >> bits == 0 && event->process_index >> (62 - bits) == 0)
		return (int64_t)(event->process_index << bits | event->correlation);
	ts_entities_add_loss(rows->entities, &lost_correlation, 1);
	return TS_ABSENT;
}

/* False: no times; counted as lost. */
static bool span(struct ts_rocprof_rows *rows, const struct ts_rocprof_event *event,
		 int64_t *ret_duration)
{
	int64_t start = event->start, end = event->end;

	/* Commands whose signal was never stamped have zeros. */
	if (start == TS_ABSENT || (start == 0 && (end == 0 || end == TS_ABSENT))) {
		ts_entities_add_loss(rows->entities, &ts_rocprof_lost_time, 1);
		ts_row_args_clear(&rows->args);
		return false;
	}
	rows->entities->time = start;
	*ret_duration = 0;
	if (end == TS_ABSENT || (end == 0 && start > 0))
		*ret_duration = -1;
	else if (__builtin_sub_overflow(end, start, ret_duration) || *ret_duration < 0) {
		ts_entities_add_loss(rows->entities, &lost_end, 1);
		*ret_duration = 0;
	}
	return true;
}

/* The shape of rows->args; the fields of the last row are tried first. */
static uint32_t shape(struct ts_rocprof_rows *rows)
{
	struct ts_row_args *args = &rows->args;
	size_t bytes = args->field_count * sizeof(*args->fields);

	if (args->left_out)
		ts_entities_add_loss(rows->entities, &lost_argument, args->left_out);
	args->left_out = 0;
	if (!args->field_count)
		return 0;
	if (args->field_count == rows->field_count && !memcmp(rows->fields, args->fields, bytes))
		return rows->shape;
	rows->shape = ts_row_args_shape(args, rows->writer);
	rows->field_count = 0;
	if (!ts_grow_array((void **)&rows->fields, &rows->field_capacity, args->field_count,
			   sizeof(*args->fields))) {
		memcpy(rows->fields, args->fields, bytes);
		rows->field_count = args->field_count;
	}
	return rows->shape;
}

static void add(struct ts_rocprof_rows *rows, enum ts_table_id table, const void *row)
{
	ts_writer_add(rows->writer, table, row, rows->args.values);
	ts_row_args_clear(&rows->args);
	if (table != TS_TABLE_ALLOCATION)
		rows->import->result.events++;
}

/* ---- commands ---- */

/* Grid in blocks; the work-items stay as arguments if they are not a multiple of a block. */
static void set_sizes(struct ts_rocprof_rows *rows, const struct ts_rocprof_event *event,
		      struct ts_gpu_op_row *row)
{
	int64_t *const grids[3] = { &row->grid_x, &row->grid_y, &row->grid_z };
	int64_t *const blocks[3] = { &row->block_x, &row->block_y, &row->block_z };
	bool is_complete = true;

	for (int i = 0; i < 3; i++) {
		uint64_t block = event->block[i], grid = event->grid[i];

		is_complete &= block && block <= INT64_MAX && grid <= INT64_MAX &&
			       grid % block == 0;
		if (block <= INT64_MAX)
			*blocks[i] = (int64_t)block;
		if (block && grid <= INT64_MAX)
			*grids[i] = (int64_t)(grid / block + (grid % block != 0));
	}
	for (int i = 0; i < 3 && !is_complete; i++)
		ts_rocprof_arg_unsigned(rows, rows->keys[TS_ROCPROF_KEY_GRID_X + i],
					event->grid[i]);
}

static bool start_command(struct ts_rocprof_rows *rows, const struct ts_rocprof_event *event,
			  struct ts_gpu_op_row *row)
{
	*row = ts_gpu_op_none;
	if (!span(rows, event, &row->duration))
		return false;
	row->start = event->start;
	row->device = event->device;
	row->stream = event->stream;
	row->process = event->process;
	row->name = event->name;
	row->category = event->category;
	row->correlation = correlation(rows, event);
	if (row->correlation != TS_ABSENT)
		row->arrow = TS_ARROW_IN;
	row->bytes = event->bytes;
	return true;
}

void ts_rocprof_add_kernel(struct ts_rocprof_rows *rows, const struct ts_rocprof_event *event)
{
	struct ts_gpu_op_row row;

	if (!start_command(rows, event, &row))
		return;
	row.kind = event->is_collective ? TS_GPU_OP_COLLECTIVE : TS_GPU_OP_KERNEL;
	row.registers = event->registers;
	row.shared_bytes = event->shared_bytes;
	if (event->has_size)
		set_sizes(rows, event, &row);
	row.shape = shape(rows);
	add(rows, TS_TABLE_GPU_OP, &row);
}

static enum ts_copy_kind copy_kind(const struct ts_rocprof_event *event)
{
	bool to = event->device, from = event->other_device;

	switch (event->operation) {
	case TS_ROCPROF_HOST_TO_HOST:
		return TS_COPY_HOST_TO_HOST;
	case TS_ROCPROF_HOST_TO_DEVICE:
		return TS_COPY_HOST_TO_DEVICE;
	case TS_ROCPROF_DEVICE_TO_HOST:
		return TS_COPY_DEVICE_TO_HOST;
	default:
		break;
	}
	if (to && from)
		return event->device == event->other_device ? TS_COPY_DEVICE_TO_DEVICE
							    : TS_COPY_PEER_TO_PEER;
	if (event->operation == TS_ROCPROF_DEVICE_TO_DEVICE)
		return TS_COPY_DEVICE_TO_DEVICE;
	return to ? TS_COPY_HOST_TO_DEVICE : from ? TS_COPY_DEVICE_TO_HOST : TS_COPY_UNKNOWN;
}

void ts_rocprof_add_copy(struct ts_rocprof_rows *rows, const struct ts_rocprof_event *event)
{
	struct ts_gpu_op_row row;

	if (!start_command(rows, event, &row))
		return;
	row.kind = TS_GPU_OP_COPY;
	row.copy_kind = copy_kind(event);
	if (!row.device)
		row.device = event->other_device;
	row.shape = shape(rows);
	add(rows, TS_TABLE_GPU_OP, &row);
}

/* ---- the host ---- */

void ts_rocprof_add_call(struct ts_rocprof_rows *rows, const struct ts_rocprof_event *event)
{
	struct ts_api_call_row row = ts_api_call_none;

	if (!span(rows, event, &row.duration))
		return;
	row.start = event->start;
	row.thread = event->thread;
	row.name = event->name;
	row.category = event->category;
	row.correlation = correlation(rows, event);
	/* Every call has a number: flows leave those that may have launched something. */
	if (row.correlation != TS_ABSENT && event->operation == TS_ROCPROF_LAUNCH)
		row.arrow = TS_ARROW_OUT;
	row.result = event->result;
	row.shape = shape(rows);
	add(rows, TS_TABLE_API_CALL, &row);
}

static void add_mark(struct ts_rocprof_rows *rows, const struct ts_rocprof_event *event)
{
	struct ts_mark_row row = ts_mark_none;

	row.start = event->start;
	row.thread = event->thread;
	row.name = event->name;
	row.category = event->category;
	row.scope = TS_SCOPE_THREAD;
	row.shape = shape(rows);
	add(rows, TS_TABLE_MARK, &row);
}

void ts_rocprof_add_range(struct ts_rocprof_rows *rows, const struct ts_rocprof_event *event)
{
	struct ts_slice_row row = ts_slice_none;

	if (!span(rows, event, &row.duration))
		return;
	if (event->operation == TS_ROCPROF_MARK) {
		add_mark(rows, event);
		return;
	}
	row.start = event->start;
	row.thread = event->thread;
	row.name = event->name;
	row.category = event->category;
	if (event->operation == TS_ROCPROF_PROCESS_RANGE) {
		char id[48];

		snprintf(id, sizeof(id), "\"%llu.%llu\"", (unsigned long long)event->process_index,
			 (unsigned long long)event->correlation);
		row.kind = TS_SLICE_ASYNC;
		row.id = ts_rocprof_text(rows, id);
	}
	row.shape = shape(rows);
	add(rows, TS_TABLE_SLICE, &row);
}

/* ---- memory and counters ---- */

/* The allocation at this address; NULL: none, or out of memory. */
static struct ts_rocprof_block *find_block(struct ts_rocprof_rows *rows, uint64_t address)
{
	bool is_new;
	uint64_t *index = ts_map_insert(&rows->addresses, address, &is_new);

	if (!index)
		return NULL;
	if (is_new) {
		*index = rows->block_count;
		if (ts_grow_array((void **)&rows->blocks, &rows->block_capacity,
				  rows->block_count + 1, sizeof(*rows->blocks)))
			return NULL;
		rows->blocks[rows->block_count++] = (struct ts_rocprof_block){ .bytes = TS_ABSENT };
	}
	return *index < rows->block_count ? &rows->blocks[*index] : NULL;
}

void ts_rocprof_add_allocation(struct ts_rocprof_rows *rows, const struct ts_rocprof_event *event)
{
	struct ts_allocation_row row = ts_allocation_none;
	struct ts_rocprof_block *block;
	int64_t duration;

	if (!span(rows, event, &duration))
		return;
	row.start = event->start;
	row.thread = event->thread;
	row.device = event->device;
	row.stream = event->stream;
	row.address = (int64_t)event->address;
	row.bytes = event->bytes;
	block = find_block(rows, event->address);
	if (event->operation == TS_ROCPROF_FREE) {
		row.kind = TS_ALLOCATION_FREE;
		if (block && !row.device)
			row.device = block->device;
		if (block && (row.bytes == TS_ABSENT || row.bytes == 0))
			row.bytes = block->bytes;
	} else if (block) {
		*block = (struct ts_rocprof_block){ .device = row.device, .bytes = row.bytes };
	}
	if (duration >= 0)
		ts_rocprof_arg(rows, TS_ROCPROF_KEY_DURATION, duration);
	row.shape = shape(rows);
	add(rows, TS_TABLE_ALLOCATION, &row);
}

void ts_rocprof_add_counter(struct ts_rocprof_rows *rows, const struct ts_rocprof_event *event,
			    double value)
{
	struct ts_counter_row row = ts_counter_none;

	ts_row_args_clear(&rows->args);
	if (event->start == TS_ABSENT || event->start == 0) {
		ts_entities_add_loss(rows->entities, &ts_rocprof_lost_value, 1);
		return;
	}
	rows->entities->time = event->start;
	row.start = event->start;
	row.device = event->device;
	row.process = event->device ? 0 : event->process;
	row.name = event->name;
	row.category = event->category;
	ts_row_args_add_double(&rows->args, rows->keys[TS_ROCPROF_KEY_VALUE], value);
	row.shape = shape(rows);
	add(rows, TS_TABLE_COUNTER, &row);
}
