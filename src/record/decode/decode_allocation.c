/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes memory allocations and frees into rows of `allocation`. */
#include "record/decode/decode_internal.h"

#define NO_STREAM UINT32_MAX

static int64_t size_or_absent(int64_t size)
{
	return size >= 0 ? size : TS_ABSENT;
}

/* Sets device and queue of an allocation. False: no memory, or too many devices. */
static bool set_device(struct ts_decoder *decoder, struct decode_area *area,
		       const struct decode_event *event, struct ts_allocation_row *row)
{
	const struct ts_live_allocation *allocation = event->allocation;
	uint32_t number = ts_live_device_of((uint32_t)allocation->device_kind);
	const struct decode_device *device;
	const struct decode_stream *queue;

	if (number == TS_LIVE_DEVICE_MASK)
		return true;
	device = decode_use_device(decoder, area, number);
	if (!device)
		return false;
	row->device = device->id;
	if (allocation->stream == NO_STREAM)
		return true;
	queue = decode_use_stream(decoder, area, number, allocation->stream, allocation->context);
	row->stream = queue ? queue->id : 0;
	return queue != NULL;
}

bool decode_allocation(struct ts_decoder *decoder, struct decode_area *area,
		       struct decode_ring *ring, const struct decode_event *event)
{
	const struct ts_live_allocation *allocation = event->allocation;
	struct ts_allocation_row row = ts_allocation_none;

	row.kind = ts_live_kind_of((uint32_t)allocation->device_kind);
	if (row.kind > TS_ALLOCATION_FREE || !set_device(decoder, area, event, &row)) {
		decode_lose(decoder, ring, LOSS_UNKNOWN_EVENT, 1, event->ns, event->ns);
		return false;
	}
	row.start = event->ns;
	row.thread = event->thread->id;
	row.address = (int64_t)allocation->address;
	row.bytes = size_or_absent(allocation->bytes);
	row.pool = event->name;
	row.total_bytes = size_or_absent(allocation->total);
	row.reserved_bytes = size_or_absent(allocation->reserved);
	row.stack = decode_stack(decoder, area, ring, event->stack, event->ns);
	row.shape = event->shape;
	ts_writer_add(decoder->writer, TS_TABLE_ALLOCATION, &row, event->values);
	return true;
}
