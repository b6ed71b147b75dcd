/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the rows of a trace into a struct ts_work: who and where first, then slices (steps are among them), calls and
 * commands, column by column. Must not judge: joining and ordering is work_order.c's.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "state/work_parts.h"

/* String ids below this have their facts in an array. */
#define DENSE_FACTS (1u << 22)
/* Rows between two reports of progress. */
#define PROGRESS_ROWS 65536u

static int no_memory(struct ts_error *err)
{
	return ts_error_set(err, TS_ENOMEM, "no memory for the work of this trace");
}

/* A new item at the end of one of work's arrays; NULL: no memory, or as many as an index can tell. */
static void *add_item(void **array, size_t *capacity, uint32_t *count, size_t bytes)
{
	char *item;

	if (*count == TS_WORK_NONE - 1 || ts_grow_array(array, capacity, (size_t)*count + 1, bytes))
		return NULL;
	item = (char *)*array + bytes * *count;
	memset(item, 0, bytes);
	(*count)++;
	return item;
}

#define ADD(work, items, singular)                                            \
	add_item((void **)&(work)->items, &(work)->load->singular##_capacity, \
		 &(work)->singular##_count, sizeof(*(work)->items))

/* ---- times ---- */

int64_t ts_work_clamp(int64_t time)
{
	return time > TS_WORK_TIME_LIMIT    ? TS_WORK_TIME_LIMIT
	       : time < -TS_WORK_TIME_LIMIT ? -TS_WORK_TIME_LIMIT
					    : time;
}

/* HTA's: us as doubles, in the file's own time; the start goes up, the end down, and may then lie before it. */
static void round_times(int64_t base, int64_t *start, int64_t *end)
{
	double from = (double)(*start - base) / 1000.0;
	double length = (double)(*end - *start) / 1000.0;
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

/* ---- texts ---- */

uint32_t ts_work_intern(struct ts_work *work, const char *text, size_t length)
{
	uint32_t id = ts_strmap_intern(&work->names, text, length, NULL);

	return id == TS_STRMAP_NONE ? 0 : id;
}

static const struct {
	const char *category;
	uint8_t class;
} slice_classes[] = {
	{ "cpu_op", TS_SLICE_OP },
	{ "Operator", TS_SLICE_OP },
	{ "user_annotation", TS_SLICE_ANNOTATION },
	{ "gpu_user_annotation", TS_SLICE_GPU_ANNOTATION },
	{ "python_function", TS_SLICE_PYTHON },
	{ "Trace", TS_SLICE_DROPPED }, /* Kineto's span of the whole recording */
};

static uint8_t slice_class(struct ts_string text)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(slice_classes); i++)
		if (!strcmp(text.data, slice_classes[i].category))
			return slice_classes[i].class;
	return TS_SLICE_OTHER;
}

/* "ProfilerStep#12" */
static bool parse_step(struct ts_string text, int64_t *ret_step)
{
	static const char word[] = "ProfilerStep#";
	size_t length = sizeof(word) - 1;
	int64_t step = 0;

	if (text.length <= length || text.length > length + 18 || memcmp(text.data, word, length))
		return false;
	for (size_t i = length; i < text.length; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return false;
		step = step * 10 + (text.data[i] - '0');
	}
	*ret_step = step;
	return true;
}

static void find_facts(struct ts_work *work, int64_t string, struct ts_text_facts *facts)
{
	struct ts_string text = ts_reader_string(work->load->reader, string);

	facts->met = true;
	facts->name = ts_work_intern(work, text.data, text.length);
	facts->call_kind = (uint8_t)ts_call_kind(text.data, text.length);
	facts->slice_class = slice_class(text);
	facts->is_step = parse_step(text, &facts->step);
	memset(facts->classes, TS_CLASS_UNMET, sizeof(facts->classes));
}

static struct ts_text_facts *far_facts(struct ts_work_load *load, int64_t string)
{
	bool is_new;
	uint64_t *place = ts_map_insert(&load->far_facts, (uint64_t)string, &is_new);

	if (!place)
		return NULL;
	if (is_new) {
		if (ts_grow_array((void **)&load->far, &load->far_capacity, load->far_count + 1,
				  sizeof(*load->far)))
			return NULL;
		memset(&load->far[load->far_count], 0, sizeof(*load->far));
		*place = load->far_count++;
	}
	return &load->far[*place];
}

/* Room for the ids that the trace can have, once a trace. */
static int start_facts(struct ts_work_load *load)
{
	free(load->facts);
	load->fact_count = TS_MIN(ts_reader_string_end(load->reader), DENSE_FACTS);
	load->facts = calloc(load->fact_count + 1, sizeof(*load->facts));
	load->far_count = 0;
	ts_map_clear(&load->far_facts);
	return load->facts ? TS_OK : TS_ENOMEM;
}

static struct ts_text_facts *facts_of(struct ts_work *work, int64_t string)
{
	struct ts_work_load *load = work->load;
	struct ts_text_facts *facts;

	if (string >= 0 && (uint64_t)string < load->fact_count)
		facts = &load->facts[string];
	else
		facts = far_facts(load, string);
	if (facts && !facts->met)
		find_facts(work, string, facts);
	return facts;
}

const struct ts_text_facts *ts_work_facts(struct ts_work *work, int64_t string)
{
	static const struct ts_text_facts none = { .met = true };
	const struct ts_text_facts *facts = facts_of(work, string);

	return facts ? facts : &none;
}

/* The class of a command: found out once a name and kind. */
static uint8_t class_of(struct ts_work *work, int64_t string, int64_t kind)
{
	struct ts_text_facts *facts = facts_of(work, string);
	const char *text;
	size_t length;
	uint8_t *class;

	if (kind < 0 || kind > TS_GPU_OP_COLLECTIVE)
		kind = TS_GPU_OP_OTHER;
	if (!facts)
		return TS_CLASS_OTHER;
	class = &facts->classes[kind];
	if (*class == TS_CLASS_UNMET) {
		text = ts_strmap_text(&work->names, facts->name, &length);
		*class = (uint8_t)(work->options.rounding == TS_ROUNDING_HTA
					   ? ts_command_class_hta(text, length)
					   : ts_command_class((enum ts_gpu_op_kind)kind, text,
							      length));
	}
	return *class;
}

static uint32_t name_of(struct ts_work *work, int64_t string)
{
	return string ? ts_work_facts(work, string)->name : 0;
}

/* ---- who and where ---- */

static int add_rank(struct ts_work *work, int64_t id, const struct ts_source_row *source)
{
	struct ts_work_rank *rank = ADD(work, ranks, rank);
	uint32_t place = work->rank_count - 1;

	if (!rank)
		return TS_ENOMEM;
	rank->rank = source->rank == TS_ABSENT ? (int64_t)place : source->rank;
	rank->world_size = source->world_size;
	rank->name = name_of(work, source->name);
	rank->trace = work->load->trace;
	rank->source = id;
	rank->clock = (uint32_t)source->clock;
	rank->uncertainty_ns = TS_ABSENT;
	rank->last_step_start = INT64_MIN;
	rank->from = INT64_MAX;
	rank->to = INT64_MIN;
	if (ts_map_put(&work->load->ranks, (uint64_t)id, place) ||
	    ts_map_put(&work->load->clock_ranks, rank->clock, place))
		return TS_ENOMEM;
	return TS_OK;
}

static int add_ranks(struct ts_work *work)
{
	struct ts_work_load *load = work->load;
	const struct ts_source_row *source;
	uint32_t before = work->rank_count;
	size_t cursor = 0;
	int64_t id;

	while ((source = ts_reader_entity_next(load->reader, TS_TABLE_SOURCE, &cursor, &id)))
		if (add_rank(work, id, source))
			return TS_ENOMEM;
	if (work->rank_count > before)
		return TS_OK;
	return add_rank(work, 0, &ts_source_none); /* a trace whose writer named no source */
}

/* Of a source, else of a clock, else the trace's first. */
static uint32_t rank_of(const struct ts_work_load *load, int64_t source, uint32_t clock)
{
	uint64_t place;

	if (source && ts_map_get(&load->ranks, (uint64_t)source, &place))
		return (uint32_t)place;
	if (ts_map_get(&load->clock_ranks, clock, &place))
		return (uint32_t)place;
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

static uint32_t device_of(struct ts_work *work, int64_t id, uint32_t clock)
{
	struct ts_work_load *load = work->load;
	const struct ts_device_row *row;
	struct ts_work_device *device;
	bool is_new;
	uint64_t *place = ts_map_insert(&load->devices, (uint64_t)id, &is_new);

	if (!place)
		return TS_WORK_NONE;
	if (!is_new)
		return (uint32_t)*place;
	*place = work->device_count;
	row = ts_reader_entity(load->reader, TS_TABLE_DEVICE, id);
	device = ADD(work, devices, device);
	if (!device)
		return TS_WORK_NONE;
	device->id = id;
	device->number = row ? row->number : TS_ABSENT;
	device->name = row ? name_of(work, row->name) : 0;
	device->rank = known_rank(work, row ? row->source : 0, clock);
	return work->device_count - 1;
}

/* Lanes of a known number are one for each (device, number); others one for each id. */
uint32_t ts_work_lane(struct ts_work *work, uint32_t device, int64_t number, int64_t id)
{
	uint64_t key = number == TS_ABSENT ? (uint64_t)id : (uint64_t)number;
	uint64_t owner = (uint64_t)device * 2 + (number == TS_ABSENT);
	struct ts_work_stream *stream;
	bool is_new;
	uint64_t *place = ts_pairmap_insert(&work->load->lanes, owner, key, &is_new);

	if (!place)
		return TS_WORK_NONE;
	if (!is_new)
		return (uint32_t)*place;
	*place = work->stream_count;
	stream = ADD(work, streams, stream);
	if (!stream)
		return TS_WORK_NONE;
	stream->device = device;
	stream->rank = work->devices[device].rank;
	stream->number = number;
	stream->id = id;
	return work->stream_count - 1;
}

static uint32_t stream_of(struct ts_work *work, int64_t id, uint32_t device)
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
	if (row && row->name && !work->streams[lane].name)
		work->streams[lane].name = name_of(work, row->name);
	return lane;
}

static uint32_t thread_of(struct ts_work *work, int64_t id, uint32_t clock)
{
	struct ts_work_load *load = work->load;
	const struct ts_thread_row *row;
	const struct ts_process_row *process;
	struct ts_work_thread *thread;
	bool is_new;
	/* Threads that are not there differ by their rank. */
	uint64_t *place =
		ts_map_insert(&load->threads, id ? (uint64_t)id : UINT64_MAX - clock, &is_new);

	if (!place)
		return TS_WORK_NONE;
	if (!is_new)
		return (uint32_t)*place;
	*place = work->thread_count;
	row = ts_reader_entity(load->reader, TS_TABLE_THREAD, id);
	process = row ? ts_reader_entity(load->reader, TS_TABLE_PROCESS, row->process) : NULL;
	thread = ADD(work, threads, thread);
	if (!thread)
		return TS_WORK_NONE;
	thread->id = id;
	thread->pid = process ? process->pid : TS_ABSENT;
	thread->tid = row ? row->tid : TS_ABSENT;
	thread->name = row ? name_of(work, row->name) : 0;
	thread->rank = known_rank(work, process ? process->source : 0, clock);
	return work->thread_count - 1;
}

/* ---- rows ---- */

/* The device's span of a step is no step, but tells that the step was whole. */
static int add_step(struct ts_work *work, const struct ts_work_slice *slice, int64_t number)
{
	struct ts_work_rank *rank = &work->ranks[slice->rank];
	struct ts_work_step *step;

	rank->last_step_start = TS_MAX(rank->last_step_start, slice->start);
	if (slice->class == TS_SLICE_GPU_ANNOTATION)
		return TS_OK;
	step = ADD(work, steps, step);
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
	unsigned int parts = work->options.parts;

	if (class == TS_SLICE_DROPPED)
		return false;
	return parts & (class == TS_SLICE_PYTHON ? TS_WORK_PYTHON : TS_WORK_SLICES);
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
				       .name = name->name,
				       .class = class,
				       .parent = TS_WORK_NONE };
	struct ts_work_slice *item;
	bool open;

	slice.rank = work->threads[thread].rank;
	open = ts_work_times(work, slice.rank, batch->columns[TS_COLUMN_OF(slice, start)][row],
			     batch->columns[TS_COLUMN_OF(slice, duration)][row], &slice.start,
			     &slice.end);
	if (open)
		slice.end = INT64_MAX; /* until work_order.c knows better */
	slice.category = category ? ts_work_facts(work, category)->name : 0;
	if (name->is_step && add_step(work, &slice, name->step))
		return TS_ENOMEM;
	if (!wants_slice(work, class))
		return TS_OK;
	item = ADD(work, slices, slice);
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
			thread = thread_of(work, last, clock);
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
		struct ts_work_call *call = ADD(work, calls, call);
		const struct ts_text_facts *name =
			ts_work_facts(work, batch->columns[TS_COLUMN_OF(api_call, name)][row]);

		if (!call)
			return TS_ENOMEM;
		call->thread =
			thread_of(work, batch->columns[TS_COLUMN_OF(api_call, thread)][row], clock);
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
	}
	return TS_OK;
}

#define OP(column) (batch->columns[TS_COLUMN_OF(gpu_op, column)][row])

static int32_t small_id(int64_t value)
{
	return value < 0 || value > INT32_MAX ? -1 : (int32_t)value;
}

static int fill_command(struct ts_work *work, const struct ts_batch *batch, uint32_t row,
			uint32_t device, struct ts_work_command *command)
{
	command->stream = stream_of(work, OP(stream), device);
	if (command->stream == TS_WORK_NONE)
		return TS_ENOMEM;
	command->rank = work->streams[command->stream].rank;
	if (ts_work_times(work, command->rank, OP(start), OP(duration), &command->start,
			  &command->end))
		command->flags |= TS_COMMAND_UNTIMED;
	command->issued = OP(queued) == TS_ABSENT ? TS_ABSENT : ts_work_clamp(OP(queued));
	command->correlation = OP(correlation);
	command->bytes = OP(bytes);
	command->name = name_of(work, OP(name));
	command->category = name_of(work, OP(category));
	command->kind = (uint8_t)(OP(kind) < 0 || OP(kind) > TS_GPU_OP_COLLECTIVE ? 0 : OP(kind));
	command->copy_kind = (uint8_t)(OP(copy_kind) < 0 || OP(copy_kind) > TS_COPY_PEER_TO_PEER
					       ? 0
					       : OP(copy_kind));
	command->class = class_of(work, OP(name), OP(kind));
	command->graph = small_id(OP(graph));
	command->graph_node = small_id(OP(graph_node));
	command->call = command->collective = command->step = TS_WORK_NONE;
	return TS_OK;
}

static int add_command(struct ts_work *work, const struct ts_batch *batch, uint32_t row,
		       uint64_t number, uint32_t device)
{
	struct ts_work_command *command = ADD(work, commands, command);

	if (!command || fill_command(work, batch, row, device, command))
		return TS_ENOMEM;
	command->row = number;
	if (command->class != TS_CLASS_COMMUNICATION || !(work->options.parts & TS_WORK_DETAILS))
		return TS_OK;
	return ts_work_add_collective(work, batch, row, work->command_count - 1);
}

static int add_sync(struct ts_work *work, const struct ts_batch *batch, uint32_t row,
		    uint64_t number, uint32_t device)
{
	struct ts_work_sync *sync = ADD(work, syncs, sync);

	if (!sync)
		return TS_ENOMEM;
	sync->row = number;
	sync->device = device;
	sync->rank = work->devices[device].rank;
	sync->correlation = OP(correlation);
	sync->name = name_of(work, OP(name));
	sync->call = TS_WORK_NONE;
	ts_work_times(work, sync->rank, OP(start), OP(duration), &sync->start, &sync->end);
	return ts_work_add_sync(work, batch, row, sync);
}

/* A synchronisation has no device time of its own: Kineto's rows of it are the host's. */
static int load_commands(struct ts_work *work, const struct ts_batch *batch, uint64_t first,
			 uint32_t clock)
{
	for (uint32_t row = 0; row < batch->rows; row++) {
		uint32_t device = device_of(work, OP(device), clock);
		int code;

		if (device == TS_WORK_NONE)
			return TS_ENOMEM;
		code = OP(kind) == TS_GPU_OP_SYNC
			       ? add_sync(work, batch, row, first + row, device)
			       : add_command(work, batch, row, first + row, device);
		if (code)
			return code;
	}
	return TS_OK;
}

#undef OP

/* Kineto's arrows from calls to commands: correlations tell the same. */
static bool is_launch_arrow(const char *category)
{
	return !strcmp(category, "ac2g") || !strcmp(category, "async");
}

/* A further point of an arrow: one flow for each step from point to point. */
static int add_flow(struct ts_work *work, const struct ts_batch *batch, uint32_t row,
		    uint32_t thread)
{
	int64_t id = batch->columns[TS_COLUMN_OF(flow, id)][row];
	uint32_t category = name_of(work, batch->columns[TS_COLUMN_OF(flow, category)][row]);
	uint64_t key = ((uint64_t)id * 0x9e3779b97f4a7c15u) ^ ((uint64_t)category << 32) ^
		       work->threads[thread].rank;
	int64_t kind = batch->columns[TS_COLUMN_OF(flow, kind)][row];
	int64_t time, end;
	struct ts_work_flow *flow;
	uint64_t place;

	if (is_launch_arrow(ts_work_text(work, category)))
		return TS_OK;
	ts_work_times(work, work->threads[thread].rank,
		      batch->columns[TS_COLUMN_OF(flow, start)][row], 0, &time, &end);
	if (kind != TS_FLOW_START) {
		if (!ts_map_get(&work->load->flow_starts, key, &place))
			return TS_OK;
		work->flows[place].to_time = time;
		work->flows[place].to_thread = thread;
	}
	if (kind == TS_FLOW_END)
		return TS_OK;
	flow = ADD(work, flows, flow);
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
		uint32_t thread =
			thread_of(work, batch->columns[TS_COLUMN_OF(flow, thread)][row], clock);

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
#define FLOW_COLUMNS                                                                   \
	(TS_MASK_OF(flow, start) | TS_MASK_OF(flow, thread) | TS_MASK_OF(flow, kind) | \
	 TS_MASK_OF(flow, id) | TS_MASK_OF(flow, category))

struct table_loader {
	enum ts_table_id table;
	uint64_t columns;
	unsigned int parts; /* 0: always */
	int (*load)(struct ts_work *work, const struct ts_batch *batch, uint64_t first,
		    uint32_t clock);
};

static const struct table_loader loaders[] = {
	{ TS_TABLE_SLICE, SLICE_COLUMNS, 0, load_slices },
	{ TS_TABLE_API_CALL, CALL_COLUMNS, 0, load_calls },
	{ TS_TABLE_GPU_OP, COMMAND_COLUMNS, 0, load_commands },
	{ TS_TABLE_FLOW, FLOW_COLUMNS, TS_WORK_FLOWS, load_flows },
};

static int tell_progress(struct ts_work *work, uint32_t rows, struct ts_error *err)
{
	struct ts_work_load *load = work->load;

	load->rows_done += rows;
	if (work->options.progress && rows &&
	    work->options.progress(work->options.context, load->rows_done, load->rows_total))
		return ts_error_set(err, TS_ECANCELED, "stopped");
	return TS_OK;
}

/* Arguments are decoded only in chunks that hold rows of which they are wanted. */
static bool wants_args(const struct ts_work *work, const struct ts_batch *batch)
{
	const int64_t *kinds = batch->columns[TS_COLUMN_OF(gpu_op, kind)];
	bool details = work->options.parts & TS_WORK_DETAILS;

	for (uint32_t row = 0; row < batch->rows; row++)
		if (kinds[row] == TS_GPU_OP_SYNC || (details && kinds[row] == TS_GPU_OP_COLLECTIVE))
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
		code = tell_progress(work, chunk->rows, err);
		if (code)
			return code;
	}
	return TS_OK;
}

/* Where Kineto's baseTimeNanoseconds is: the first point of the rank's clock. */
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

static void clear_places(struct ts_work_load *load)
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
	clear_places(load);
	for (size_t i = 0; i < TS_ARRAY_SIZE(loaders); i++)
		load->rows_total += ts_reader_rows(reader, loaders[i].table);
	if (start_facts(load))
		return no_memory(err);
	return ts_batch_new(&load->batch, reader, err);
}

int ts_work_add(struct ts_work *work, struct ts_reader *reader, struct ts_error *err)
{
	int code = start_trace(work, reader, err);

	if (!code && add_ranks(work))
		code = no_memory(err);
	if (!code)
		code = load_bases(work, err);
	for (size_t i = 0; !code && i < TS_ARRAY_SIZE(loaders); i++)
		if (!loaders[i].parts || (work->options.parts & loaders[i].parts))
			code = load_table(work, &loaders[i], err);
	return code ? code : ts_reader_status(reader, err);
}
