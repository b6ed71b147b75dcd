/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes instruction samples of a device into rows of `sample` without a thread: one frame is the
 * instruction, the state is the stall reason. If the launch is known, its correlation is an
 * argument, as in api_call and gpu_op.
 */
#include <tracesmith/sample.h>

#include "record/decode/decode_internal.h"

/* A key of decoder->shapes, distinct from those of accelerator events. */
#define WITH_LAUNCH (UINT64_C(1) << 32)

static uint32_t launch_shape(struct ts_decoder *decoder)
{
	struct ts_field field = { .type = TS_ARG_INT };
	uint64_t shape;

	if (TS_LIKELY(ts_pairmap_get(&decoder->shapes, 0, WITH_LAUNCH, &shape)))
		return (uint32_t)shape;
	field.key = decode_text(decoder, "correlation");
	shape = ts_writer_shape(decoder->writer, &field, 1);
	if (ts_pairmap_put(&decoder->shapes, 0, WITH_LAUNCH, shape))
		decode_no_memory(decoder);
	return (uint32_t)shape;
}

bool decode_is_instruction(const struct decode_event *event)
{
	return (event->sample.state & TS_SAMPLE_ON_DEVICE) &&
	       !(event->flags & TS_LIVE_FLAG_SUBJECT);
}

bool decode_instruction(struct ts_decoder *decoder, struct decode_area *area,
			struct decode_ring *ring, const struct decode_event *event)
{
	struct ts_sample_row row = ts_sample_none;
	int64_t launch = decode_correlation(decoder, area->process, event->sample.tid);

	row.start = event->ns;
	row.stack = decode_any_stack(decoder, area, ring, event->thread, event);
	row.name = event->name;
	row.state = event->category;
	if (event->sample.weight_ns && event->sample.weight_ns <= INT64_MAX)
		row.weight = (int64_t)event->sample.weight_ns;
	if (launch != TS_ABSENT)
		row.shape = launch_shape(decoder);
	ts_writer_add(decoder->writer, TS_TABLE_SAMPLE, &row, &launch);
	decoder->counts.samples++;
	return true;
}
