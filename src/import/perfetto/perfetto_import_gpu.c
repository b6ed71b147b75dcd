/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of a Perfetto file: properties, work per queue, and counters. */
#include <inttypes.h>

#include "import/perfetto/perfetto_import.h"
#include "import/perfetto/perfetto_kinds.h"

/* A device without a number is the only one. */
static int64_t device_of(struct ts_perfetto *p, uint32_t machine, int64_t number)
{
	int64_t host = machine ? ts_entities_host(&p->entities, machine) : 0;

	return ts_entities_device(&p->entities, host, (uint64_t)number, number);
}

/* ---- stages ---- */

struct stage {
	uint64_t duration, queue_iid, stage_iid, context;
	int64_t gpu, queue, stage;
	bool has_duration, has_queue_iid, has_stage_iid, has_context, has_launch;
	uint32_t name;
	struct ts_proto_field specifications, launch;
};

/*
 * Name lists, sent once per sequence; later events refer to them by index: hw_queue (2) and stage
 * (3).
 */
static void read_specifications(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
				const struct ts_proto_field *from)
{
	struct ts_proto_reader message = ts_proto_message(from), inner;
	struct ts_proto_field field, part;
	uint64_t numbers[4] = { 0 }, context, pid;

	while (ts_proto_next(&message, &field)) {
		uint32_t name = 0;

		if (field.number < 1 || field.number > 3)
			continue;
		inner = ts_proto_message(&field);
		context = pid = 0;
		while (ts_proto_next(&inner, &part)) {
			if (field.number == 1 && part.number == 1)
				context = part.value;
			else if (field.number == 1 && part.number == 2)
				pid = part.value;
			else if (part.number == 1)
				name = ts_perfetto_string(p, &part);
		}
		if (field.number == 1)
			ts_pairmap_put(&p->gpu_specs, 1, context, pid + 1);
		else
			ts_pairmap_put(&p->gpu_specs, sequence->key << 2 | field.number,
				       numbers[field.number]++, name);
	}
}

static void add_extra(struct ts_perfetto *p, const struct ts_proto_field *from)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;
	uint32_t key = 0, value = 0;

	while (ts_proto_next(&message, &field)) {
		if (field.number == 1)
			key = ts_perfetto_string(p, &field);
		else if (field.number == 2)
			value = ts_import_string(p->import, field.bytes ? field.bytes : "",
						 field.length);
	}
	ts_row_args_add(&p->args, key, value ? TS_ARG_STRING : TS_ARG_NULL, value);
}

static void add_number(struct ts_perfetto *p, const char *key, uint64_t value)
{
	if (value <= INT64_MAX) {
		ts_row_args_add(&p->args, ts_perfetto_text(p, key), TS_ARG_INT, (int64_t)value);
		return;
	}
	ts_text_clear(&p->text);
	ts_text_printf(&p->text, "0x%" PRIx64, value);
	ts_row_args_add(&p->args, ts_perfetto_text(p, key), TS_ARG_STRING,
			ts_writer_string(p->writer, p->text.data, p->text.length));
}

static const char *number_name(uint32_t number)
{
	switch (number) {
	case 1:
		return "event_id";
	case 8:
		return "render_target_handle";
	case 9:
		return "render_pass_handle";
	case 10:
		return "submission_id";
	case 12:
		return "command_buffer_handle";
	case 15:
		return "render_subpass_index_mask";
	case 16:
		return "render_pass_instance_id";
	case 18:
		return "event_wait_id";
	default:
		return NULL;
	}
}

static void read_stage(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
		       const struct ts_proto_field *from, struct stage *stage)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;

	*stage = (struct stage){ .queue = TS_ABSENT, .stage = TS_ABSENT };
	while (ts_proto_next(&message, &field)) {
		switch (field.number) {
		case 2:
			stage->duration = field.value;
			stage->has_duration = true;
			break;
		case 3:
			stage->queue = (int32_t)field.value;
			break;
		case 4:
			stage->stage = (int32_t)field.value;
			break;
		case 5:
			stage->context = field.value;
			stage->has_context = true;
			break;
		case 6:
			add_extra(p, &field);
			break;
		case 7:
			read_specifications(p, sequence, &field);
			break;
		case 11:
			stage->gpu = (int32_t)field.value;
			break;
		case 13:
			stage->queue_iid = field.value;
			stage->has_queue_iid = true;
			break;
		case 14:
			stage->stage_iid = field.value;
			stage->has_stage_iid = true;
			break;
		case 17:
			stage->name = ts_perfetto_string(p, &field);
			break;
		case 20:
			stage->name = ts_perfetto_interned_string(p, sequence, TS_PERFETTO_NAME,
								  field.value);
			break;
		case 21:
			stage->launch = field;
			stage->has_launch = true;
			break;
		default:
			if (field.type != TS_PROTO_BYTES && number_name(field.number))
				add_number(p, number_name(field.number), field.value);
		}
	}
}

static void read_sizes(const struct ts_proto_field *from, int64_t *x, int64_t *y, int64_t *z)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;

	*x = *y = *z = 1;
	while (ts_proto_next(&message, &field)) {
		if (field.number == 1)
			*x = (int64_t)field.value;
		else if (field.number == 2)
			*y = (int64_t)field.value;
		else if (field.number == 3)
			*z = (int64_t)field.value;
	}
}

static void read_launch(const struct ts_proto_field *from, struct ts_gpu_op_row *row)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;

	while (ts_proto_next(&message, &field)) {
		if (field.number == 1)
			read_sizes(&field, &row->grid_x, &row->grid_y, &row->grid_z);
		else if (field.number == 2)
			read_sizes(&field, &row->block_x, &row->block_y, &row->block_z);
	}
}

static uint32_t old_name(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			 uint64_t kind, int64_t number)
{
	uint64_t name = 0;

	if (number >= 0)
		ts_pairmap_get(&p->gpu_specs, sequence->key << 2 | kind, (uint64_t)number, &name);
	return (uint32_t)name;
}

static int64_t stream_of(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			 const struct stage *stage, int64_t device)
{
	uint64_t spec = 0, key;
	uint32_t name;
	int64_t stream;

	if (stage->has_queue_iid) {
		ts_perfetto_interned(p, sequence, TS_PERFETTO_GPU_SPEC, stage->queue_iid, &spec);
		name = (uint32_t)spec;
		/* Each sequence has its own iids for the same queues. */
		key = name | UINT64_C(1) << 32;
	} else if (stage->queue != TS_ABSENT) {
		name = old_name(p, sequence, 2, stage->queue);
		key = (uint32_t)stage->queue;
	} else {
		return 0;
	}
	stream = ts_entities_stream(&p->entities, device, key,
				    stage->has_queue_iid ? TS_ABSENT : stage->queue);
	if (stream && name && !ts_entities_stream_row(&p->entities, stream)->name)
		ts_entities_stream_row(&p->entities, stream)->name = name;
	return stream;
}

/* The process of a context, if known. */
static int64_t process_of(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			  uint32_t machine, const struct stage *stage)
{
	uint64_t pid;

	if (sequence->interned &&
	    ts_pairmap_get(sequence->interned, TS_PERFETTO_GPU_CONTEXT, stage->context, &pid))
		return ts_perfetto_process(p, machine, (int32_t)pid);
	if (ts_pairmap_get(&p->gpu_specs, 1, stage->context, &pid))
		return ts_perfetto_process(p, machine, (int32_t)(pid - 1));
	return 0;
}

/* OTHER, GRAPHICS, COMPUTE of InternedGpuRenderStageSpecification. */
#define CATEGORY_COMPUTE 2

void ts_perfetto_read_gpu_stage(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
				const struct ts_perfetto_packet *packet, int64_t time)
{
	struct ts_gpu_op_row row = ts_gpu_op_none;
	struct stage stage;
	uint64_t spec = 0;

	ts_row_args_clear(&p->args);
	read_stage(p, sequence, &packet->data, &stage);
	/* A packet that only defines names is not an event. */
	if (!stage.has_duration && !stage.has_stage_iid && stage.stage == TS_ABSENT)
		return;
	row.start = time;
	row.duration = stage.duration > INT64_MAX ? INT64_MAX : (int64_t)stage.duration;
	row.device = device_of(p, packet->machine, stage.gpu);
	row.stream = stream_of(p, sequence, &stage, row.device);
	if (stage.has_context) {
		row.context = (int64_t)stage.context;
		row.process = process_of(p, sequence, packet->machine, &stage);
	}
	if (stage.has_stage_iid)
		ts_perfetto_interned(p, sequence, TS_PERFETTO_GPU_SPEC, stage.stage_iid, &spec);
	else
		spec = old_name(p, sequence, 3, stage.stage);
	row.category = (uint32_t)spec;
	row.name = stage.name ? stage.name : (uint32_t)spec;
	if (spec >> 32 == CATEGORY_COMPUTE || stage.has_launch)
		row.kind = TS_GPU_OP_KERNEL;
	if (stage.has_launch)
		read_launch(&stage.launch, &row);
	row.shape = ts_row_args_shape(&p->args, p->writer);
	ts_perfetto_add(p, TS_TABLE_GPU_OP, &row, p->args.values);
}

/* ---- counters ---- */

static int read_spec(struct ts_perfetto *p, uint64_t number, const struct ts_proto_field *from)
{
	static const char *const units[] = {
		"",    "bit",    "kbit",  "Mbit",     "Gbit", "Tbit", "Pbit",      "B",
		"kB",  "MB",     "GB",    "TB",       "PB",   "Hz",   "kHz",       "MHz",
		"GHz", "THz",    "PHz",   "ns",       "us",   "ms",   "s",         "min",
		"h",   "vertex", "pixel", "triangle", "mW",   "W",    "kW",        "J",
		"V",   "A",      "C",     "F",        "K",    "%",    "primitive", "fragment",
	};
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;
	uint64_t id = 0, above = 0, below = 0;

	ts_text_clear(&p->text);
	while (ts_proto_next(&message, &field)) {
		if (field.number == 1)
			id = field.value;
		else if (field.number == 2)
			ts_text_append(&p->text, field.bytes, field.length);
		else if (field.number == 7 && field.type != TS_PROTO_BYTES)
			above = field.value;
		else if (field.number == 8 && field.type != TS_PROTO_BYTES)
			below = field.value;
	}
	if (above && above < TS_ARRAY_SIZE(units))
		ts_text_printf(&p->text, " (%s%s%s)", units[above],
			       below && below < TS_ARRAY_SIZE(units) ? "/" : "",
			       below < TS_ARRAY_SIZE(units) ? units[below] : "");
	if (p->text.failed)
		return TS_ENOMEM;
	return ts_pairmap_put(
		&p->gpu_counters, number, id,
		ts_import_string(p->import, p->text.length ? p->text.data : "", p->text.length));
}

int ts_perfetto_read_gpu_descriptor(struct ts_perfetto *p, uint64_t number,
				    const struct ts_proto_field *from)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;
	int rc = TS_OK;

	while (!rc && ts_proto_next(&message, &field))
		if (field.number == 1)
			rc = read_spec(p, number, &field);
	return rc;
}

static void add_counter(struct ts_perfetto *p, uint64_t descriptor, int64_t device, int64_t time,
			const struct ts_proto_field *from)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_counter_row row = ts_counter_none;
	struct ts_field key = { .key = p->key_value };
	struct ts_proto_field field;
	uint64_t id = 0, name = 0;
	int64_t value = 0;

	while (ts_proto_next(&message, &field)) {
		if (field.number == 1)
			id = field.value;
		if (field.number != 2 && field.number != 3)
			continue;
		value = (int64_t)field.value;
		key.type = field.number == 2 ? TS_ARG_INT : TS_ARG_DOUBLE;
	}
	if (!key.type || !ts_pairmap_get(&p->gpu_counters, descriptor, id, &name)) {
		ts_perfetto_lose(p, &ts_perfetto_loss_counter, 1);
		return;
	}
	row.start = time;
	row.device = device;
	row.name = (int64_t)name;
	row.shape = ts_writer_shape(p->writer, &key, 1);
	ts_perfetto_add(p, TS_TABLE_COUNTER, &row, &value);
}

void ts_perfetto_read_gpu_counters(struct ts_perfetto *p,
				   const struct ts_perfetto_sequence *sequence,
				   const struct ts_perfetto_packet *packet, int64_t time)
{
	struct ts_proto_reader message = ts_proto_message(&packet->data);
	struct ts_proto_field field;
	uint64_t descriptor = 0;
	int64_t number = 0, device;

	while (ts_proto_next(&message, &field)) {
		if (field.number == 1)
			ts_perfetto_read_gpu_descriptor(p, 0, &field);
		else if (field.number == 3)
			number = (int32_t)field.value;
		else if (field.number == 4)
			ts_perfetto_interned(p, sequence, TS_PERFETTO_GPU_COUNTERS, field.value,
					     &descriptor);
	}
	device = device_of(p, packet->machine, number);
	message = ts_proto_message(&packet->data);
	while (ts_proto_next(&message, &field))
		if (field.number == 2)
			add_counter(p, descriptor, device, time, &field);
}

/* ---- what they are ---- */

static uint32_t hex_string(struct ts_perfetto *p, const struct ts_proto_field *field)
{
	ts_text_clear(&p->text);
	for (size_t i = 0; i < field->length; i++)
		ts_text_printf(&p->text, "%02x", (unsigned char)field->bytes[i]);
	return p->text.length ? ts_writer_string(p->writer, p->text.data, p->text.length) : 0;
}

static void read_gpu(struct ts_perfetto *p, uint32_t machine, int64_t number,
		     const struct ts_proto_field *from)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;
	struct ts_device_row facts = ts_device_none, *row;
	uint32_t model = 0;
	int64_t device;

	while (ts_proto_next(&message, &field)) {
		switch (field.number) {
		case 1:
			facts.name = ts_perfetto_string(p, &field);
			break;
		case 2:
			facts.vendor = ts_perfetto_string(p, &field);
			break;
		case 3:
			model = ts_perfetto_string(p, &field);
			break;
		case 5:
			facts.uuid = hex_string(p, &field);
			break;
		}
	}
	device = device_of(p, machine, number);
	if (!device)
		return;
	row = ts_entities_device_row(&p->entities, device);
	row->name = facts.name ? facts.name : model;
	row->vendor = facts.vendor;
	row->uuid = facts.uuid;
}

void ts_perfetto_read_gpu_info(struct ts_perfetto *p, const struct ts_perfetto_packet *packet)
{
	struct ts_proto_reader message = ts_proto_message(&packet->data);
	struct ts_proto_field field;
	int64_t number = 0;

	while (ts_proto_next(&message, &field))
		if (field.number == 1)
			read_gpu(p, packet->machine, number++, &field);
}
