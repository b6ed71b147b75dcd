/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes the arguments of synchronisations and collectives (Kineto) and of wait lists (OpenCL).
 * Keys are compared once per shape; there are few shapes.
 */
#include <string.h>

#include "base/json.h"
#include "state/work/work_internal.h"

/* Walks the arguments of a row. */
struct arg_walk {
	struct ts_reader *reader;
	const struct ts_shape *shape;
	const int64_t *values;
	uint32_t next;
};

static bool start_walk(struct arg_walk *walk, struct ts_work *work, const struct ts_batch *batch,
		       uint32_t row)
{
	const int64_t *shapes = batch->columns[TS_COLUMN_OF(gpu_op, shape)];

	if (!shapes)
		return false;
	walk->reader = work->load->reader;
	walk->shape = ts_reader_shape(walk->reader, shapes[row]);
	walk->values = batch->arg_values ? batch->arg_values + batch->arg_offsets[row] : NULL;
	walk->next = 0;
	return walk->values != NULL;
}

/* The next argument that has a value. */
static bool next_arg(struct arg_walk *walk, struct ts_string *ret_key, uint8_t *ret_type,
		     int64_t *ret_value)
{
	while (walk->next < walk->shape->field_count) {
		const struct ts_field *field = &walk->shape->fields[walk->next++];

		if (!ts_arg_has_value(field->type))
			continue;
		*ret_key = ts_reader_string(walk->reader, field->key);
		*ret_type = field->type;
		*ret_value = *walk->values++;
		return true;
	}
	return false;
}

/* ---- synchronisations ---- */

static uint8_t sync_kind(const char *name)
{
	static const struct {
		const char *name;
		uint8_t kind;
	} kinds[] = {
		{ "Stream Sync", TS_SYNC_STREAM },   { "Stream Synchronize", TS_SYNC_STREAM },
		{ "Event Sync", TS_SYNC_EVENT },     { "Event Synchronize", TS_SYNC_EVENT },
		{ "Context Sync", TS_SYNC_CONTEXT }, { "Context Synchronize", TS_SYNC_CONTEXT },
		{ "Device Sync", TS_SYNC_CONTEXT },  { "Stream Wait Event", TS_SYNC_STREAM_WAIT },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(kinds); i++)
		if (!strcmp(name, kinds[i].name))
			return kinds[i].kind;
	return TS_SYNC_OTHER;
}

/* Lane of a stream number on the sync's device; -1, which Kineto may write unsigned, means none. */
static int lane_of(struct ts_work *work, uint32_t device, int64_t number, uint32_t *ret_lane)
{
	*ret_lane = TS_WORK_NONE;
	if (number < 0 || number == UINT32_MAX)
		return TS_OK;
	*ret_lane = ts_work_lane(work, device, number, 0);
	return *ret_lane == TS_WORK_NONE ? TS_ENOMEM : TS_OK;
}

static void read_sync_args(struct ts_work *work, const struct ts_batch *batch, uint32_t row,
			   struct ts_work_sync *sync, int64_t *ret_on_stream)
{
	struct arg_walk walk;
	struct ts_string key;
	uint8_t type;
	int64_t value;

	if (!start_walk(&walk, work, batch, row))
		return;
	while (next_arg(&walk, &key, &type, &value)) {
		if (type != TS_ARG_INT || value < 0)
			continue;
		if (!strcmp(key.data, "wait_on_stream"))
			*ret_on_stream = value;
		else if (!strcmp(key.data, "wait_on_cuda_event_record_corr_id"))
			sync->record_correlation = value;
		else if (!strcmp(key.data, "wait_on_cuda_event_id"))
			sync->event = value;
	}
}

int ts_work_add_sync(struct ts_work *work, const struct ts_batch *batch, uint32_t row,
		     struct ts_work_sync *sync)
{
	int64_t id = batch->columns[TS_COLUMN_OF(gpu_op, stream)][row];
	const struct ts_stream_row *stream =
		id ? ts_reader_entity(work->load->reader, TS_TABLE_STREAM, id) : NULL;
	int64_t on_stream = -1;

	sync->kind = sync_kind(ts_work_text(work, sync->name));
	sync->record_correlation = sync->event = TS_ABSENT;
	sync->row_stream = stream ? stream->number : TS_ABSENT;
	read_sync_args(work, batch, row, sync, &on_stream);
	if (lane_of(work, sync->device, stream ? stream->number : -1, &sync->stream))
		return TS_ENOMEM;
	return lane_of(work, sync->device, on_stream, &sync->on_stream);
}

/* ---- collectives ---- */

static uint32_t text_of(struct ts_work *work, uint8_t type, int64_t value)
{
	return type == TS_ARG_STRING ? ts_work_facts(work, value)->name : 0;
}

static void take_arg(struct ts_work *work, struct ts_work_collective *collective, const char *key,
		     uint8_t type, int64_t value)
{
	int64_t number = type == TS_ARG_INT ? value : TS_ABSENT;

	if (!strcmp(key, "Process Group Name"))
		collective->group = text_of(work, type, value);
	else if (!strcmp(key, "Collective name"))
		collective->operation = text_of(work, type, value);
	else if (!strcmp(key, "dtype"))
		collective->type = text_of(work, type, value);
	else if (!strcmp(key, "Group size"))
		collective->group_size = number;
	else if (!strcmp(key, "Seq"))
		collective->sequence = number;
	else if (!strcmp(key, "In msg nelems"))
		collective->in_elements = number;
	else if (!strcmp(key, "Out msg nelems"))
		collective->out_elements = number;
}

int ts_work_add_collective(struct ts_work *work, const struct ts_batch *batch, uint32_t row,
			   uint32_t command)
{
	struct ts_work_collective *collective;
	struct arg_walk walk;
	struct ts_string key;
	uint8_t type;
	int64_t value;

	if (!start_walk(&walk, work, batch, row))
		return TS_OK;
	if (ts_grow_array((void **)&work->collectives, &work->load->collective_capacity,
			  (size_t)work->collective_count + 1, sizeof(*work->collectives)))
		return TS_ENOMEM;
	collective = &work->collectives[work->collective_count];
	*collective = (struct ts_work_collective){
		.command = command,
		.group_size = TS_ABSENT,
		.sequence = TS_ABSENT,
		.in_elements = TS_ABSENT,
		.out_elements = TS_ABSENT,
	};
	work->commands[command].collective = work->collective_count++;
	while (next_arg(&walk, &key, &type, &value))
		take_arg(work, collective, key.data, type, value);
	return TS_OK;
}

/* ---- waits ---- */

static int add_wait(struct ts_work_load *load, uint64_t row, int64_t correlation)
{
	if (ts_grow_array((void **)&load->waits, &load->wait_capacity, load->wait_count + 1,
			  sizeof(*load->waits)))
		return TS_ENOMEM;
	load->waits[load->wait_count++] = (struct ts_pending_wait){ .row = row,
								    .correlation = correlation,
								    .trace = load->trace };
	return TS_OK;
}

/* Ignores values that are not lists of numbers. */
static int add_list(struct ts_work_load *load, uint64_t row, struct ts_string list)
{
	struct ts_json_number number = { .kind = TS_JSON_NONFINITE };
	struct ts_json_walk walk = { .open = '[' };
	struct ts_json js;

	ts_json_init(&js, list.data, list.length, true);
	while (ts_json_walk_next(&walk, &js)) {
		walk.rc = ts_json_scan_number(&js, &number);
		if (!walk.rc && number.kind == TS_JSON_INT && add_wait(load, row, number.integer))
			return TS_ENOMEM;
	}
	return TS_OK;
}

int ts_work_add_waits(struct ts_work *work, const struct ts_batch *batch, uint32_t row,
		      uint64_t number)
{
	struct arg_walk walk;
	struct ts_string key;
	uint8_t type;
	int64_t value;
	int code = TS_OK;

	if (!start_walk(&walk, work, batch, row))
		return TS_OK;
	while (!code && next_arg(&walk, &key, &type, &value)) {
		if (strcmp(key.data, TS_WAITS_KEY) != 0)
			continue;
		if (type == TS_ARG_JSON || type == TS_ARG_STRING)
			code = add_list(work->load, number, ts_reader_string(walk.reader, value));
		else if (type == TS_ARG_INT)
			code = add_wait(work->load, number, value);
	}
	return code;
}
