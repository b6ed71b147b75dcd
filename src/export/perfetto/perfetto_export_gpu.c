/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device work as GPU render stages, which is what Perfetto's tools expect: a queue per stream, a
 * stage per name. Also device properties.
 */
#include "base/memory.h"
#include "export/perfetto/perfetto_export.h"

/* Fields of GpuRenderStageEvent and of InternedGpuRenderStageSpecification. */
enum {
	STAGE_ID = 1,
	STAGE_DURATION = 2,
	STAGE_SUBMISSION = 10,
	STAGE_GPU = 11,
	STAGE_QUEUE = 13,
	STAGE_NAME = 14
};
enum { SPECIFICATION = 24, CATEGORY_OTHER = 0, CATEGORY_COMPUTE = 2 };

/* Queues have odd numbers, stages even ones. */
static void put_specification(struct ts_pf_export *x, uint64_t iid, const char *name, size_t length,
			      unsigned int category)
{
	bool is_new = false;
	size_t open;

	if (ts_map_insert(&x->specifications, iid, &is_new) && !is_new)
		return;
	open = ts_proto_open(&x->interned, SPECIFICATION);
	ts_proto_put_uint(&x->interned, 1, iid);
	ts_proto_put_bytes(&x->interned, 2, name, length);
	if (category)
		ts_proto_put_uint(&x->interned, 4, category);
	ts_proto_close(&x->interned, open);
}

static uint64_t queue_of(struct ts_pf_export *x, const struct ts_pf_group *group, uint64_t track)
{
	struct ts_string name = ts_reader_string(x->reader, group->name);
	uint64_t iid = track << 1 | 1;

	if (iid == x->last_queue)
		return iid;
	if (group->text)
		put_specification(x, iid, group->text, strlen(group->text), 0);
	else
		put_specification(x, iid, name.data, name.length, 0);
	x->last_queue = iid;
	return iid;
}

static uint64_t stage_of(struct ts_pf_export *x, int64_t name, int64_t kind)
{
	unsigned int category = kind == TS_GPU_OP_KERNEL || kind == TS_GPU_OP_COLLECTIVE
					? CATEGORY_COMPUTE
					: CATEGORY_OTHER;
	struct ts_string text = { "device", 6 };
	uint64_t iid = ((uint64_t)name + 1) << 1;

	if ((uint64_t)name < x->string_end &&
	    x->stages[(uint64_t)name / 64] >> ((uint64_t)name % 64) & 1)
		return iid;
	if ((uint64_t)name < x->string_end)
		x->stages[(uint64_t)name / 64] |= UINT64_C(1) << ((uint64_t)name % 64);
	if (name)
		text = ts_reader_string(x->reader, name);
	put_specification(x, iid, text.data, text.length, category);
	return iid;
}

int64_t ts_pf_device_number(struct ts_pf_export *x, int64_t id)
{
	const struct ts_device_row *device;

	if (!id)
		return TS_ABSENT;
	if (id == x->last_device)
		return x->last_device_number;
	device = ts_reader_entity(x->reader, TS_TABLE_DEVICE, id);
	x->last_device = id;
	x->last_device_number = device ? device->number : TS_ABSENT;
	return x->last_device_number;
}

int64_t ts_pf_stream_number(struct ts_pf_export *x, int64_t id)
{
	const struct ts_stream_row *stream;

	if (!id)
		return TS_ABSENT;
	if (id == x->last_stream)
		return x->last_stream_number;
	stream = ts_reader_entity(x->reader, TS_TABLE_STREAM, id);
	x->last_stream = id;
	x->last_stream_number = stream ? stream->number : TS_ABSENT;
	return x->last_stream_number;
}

/* For a 31-bit field. */
static uint32_t number_of(struct ts_pf_export *x, int64_t id)
{
	int64_t number = ts_pf_device_number(x, id);

	return (uint32_t)((number == TS_ABSENT ? id : number) & INT32_MAX);
}

int ts_pf_put_stage(struct ts_pf_export *x, const struct ts_pf_cursor *cursor,
		    const struct ts_pf_group *group, uint64_t track)
{
	const int64_t *const *columns = cursor->merge.batch->columns;
	int64_t correlation = columns[TS_COLUMN_OF(gpu_op, correlation)][cursor->merge.row];
	uint64_t queue = queue_of(x, group, track);
	uint64_t stage = stage_of(x, columns[TS_COLUMN_OF(gpu_op, name)][cursor->merge.row],
				  columns[TS_COLUMN_OF(gpu_op, kind)][cursor->merge.row]);
	unsigned char *to;

	if (!ts_text_reserve(&x->event, 128))
		return ts_error_set(x->err, TS_ENOMEM, "no memory");
	to = ts_pf_uint((unsigned char *)x->event.data, STAGE_ID, ++x->stage_count);
	to = ts_pf_uint(to, STAGE_DURATION,
			(uint64_t)cursor->merge.end - (uint64_t)cursor->merge.start);
	to = ts_pf_uint(to, STAGE_QUEUE, queue);
	to = ts_pf_uint(to, STAGE_NAME, stage);
	to = ts_pf_uint(to, STAGE_GPU,
			number_of(x, columns[TS_COLUMN_OF(gpu_op, device)][cursor->merge.row]));
	if (correlation >= 0 && correlation <= UINT32_MAX)
		to = ts_pf_uint(to, STAGE_SUBMISSION, (uint64_t)correlation);
	x->event.length = (size_t)((char *)to - x->event.data);
	ts_pf_put_packet(x, cursor->merge.start, TS_PF_GPU_STAGE, NULL, 0);
	return TS_OK;
}

static void put_text(struct ts_pf_export *x, uint32_t field, int64_t string)
{
	struct ts_string text = ts_reader_string(x->reader, string);

	if (string)
		ts_proto_put_bytes(&x->event, field, text.data, text.length);
}

void ts_pf_put_gpus(struct ts_pf_export *x)
{
	const struct ts_device_row *device;
	size_t cursor = 0;
	int64_t id;

	while ((device = ts_reader_entity_next(x->reader, TS_TABLE_DEVICE, &cursor, &id))) {
		size_t open = ts_proto_open(&x->event, 1);

		put_text(x, 1, device->name);
		put_text(x, 2, device->vendor);
		put_text(x, 3, device->name);
		put_text(x, 5, device->uuid);
		ts_proto_close(&x->event, open);
	}
	if (x->event.length)
		ts_pf_put_packet(x, TS_ABSENT, TS_PF_GPU_INFO, NULL, 0);
}
