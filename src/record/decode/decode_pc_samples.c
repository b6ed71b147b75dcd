/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions that a device was seen at, as rows of `sample` without a thread: one frame, which
 * instruction; the state says why it waited. Where the launch is known, its number is an argument,
 * as api_call and gpu_op have it.
 */
#include <tracesmith/sample.h>

#include "record/decode/decode_internal.h"

/* A key of encoder->shapes beside those that events of accelerators have. */
#define WITH_LAUNCH (UINT64_C(1) << 32)

static uint32_t launch_shape(struct ts_encoder *encoder)
{
	struct ts_field field = { .type = TS_ARG_INT };
	uint64_t shape;

	if (TS_LIKELY(ts_pairmap_get(&encoder->shapes, 0, WITH_LAUNCH, &shape)))
		return (uint32_t)shape;
	field.key = encode_text(encoder, "correlation");
	shape = ts_writer_shape(encoder->writer, &field, 1);
	if (ts_pairmap_put(&encoder->shapes, 0, WITH_LAUNCH, shape))
		encode_no_memory(encoder);
	return (uint32_t)shape;
}

bool encode_is_instruction(const struct encode_event *event)
{
	return (event->who >> 32 & TS_SAMPLE_ON_DEVICE) && !(event->flags & TS_LIVE_FLAG_SUBJECT);
}

bool encode_instruction(struct ts_encoder *encoder, struct encode_area *area,
			struct encode_ring *ring, const struct encode_event *event)
{
	struct ts_sample_row row = ts_sample_none;
	int64_t launch = encode_correlation(encoder, area->process, (uint32_t)event->who);

	row.start = event->ns;
	row.stack = encode_any_stack(encoder, area, ring, event->thread, event);
	row.name = event->name;
	row.state = event->category;
	if (event->weight && event->weight <= INT64_MAX)
		row.weight = (int64_t)event->weight;
	if (launch != TS_ABSENT)
		row.shape = launch_shape(encoder);
	ts_writer_add(encoder->writer, TS_TABLE_SAMPLE, &row, &launch);
	encoder->counts.samples++;
	return true;
}
