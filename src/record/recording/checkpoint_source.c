/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saves and loads the ranks of a recording, and which processes and devices are whose
 * (docs/live.md, section 6). Loaded state is validated.
 */
#include <stdlib.h>

#include "record/decode/decode_internal.h"
#include "record/recording/checkpoint_state.h"

struct state_sources {
	struct state_head head;
	uint32_t sources, processes, devices, reserved;
};

/* An entity of a rank other than the recording's. */
struct state_of_source {
	int64_t id;
	uint64_t source; /* from 1 */
};

/* ---- writing ---- */

static uint32_t save_one(struct ts_text *out, int64_t id, uint32_t source)
{
	struct state_of_source state = { .id = id, .source = source };

	if (source)
		ts_text_append(out, &state, sizeof(state));
	return source != 0;
}

int decode_save_sources(const struct ts_decoder *decoder, const struct ts_block_sink *sink,
			struct ts_text *out, struct ts_error *err)
{
	struct state_sources state = { .head = { .kind = STATE_SOURCES, .bytes = sizeof(state) },
				       .sources = (uint32_t)decoder->source_count };

	if (!decoder->source_count)
		return TS_OK;
	ts_text_clear(out);
	ts_text_append(out, &state, sizeof(state));
	for (size_t i = 0; i < decoder->source_count; i++)
		ts_text_append(out, &decoder->sources[i].rank, sizeof(struct ts_rank));
	for (size_t i = 0; i < decoder->process_count; i++)
		state.processes +=
			save_one(out, decoder->processes[i]->id, decoder->processes[i]->source);
	for (size_t i = 0; i < decoder->device_count; i++)
		state.devices +=
			save_one(out, decoder->devices[i]->id, decoder->devices[i]->source);
	if (!ts_text_status(out))
		memcpy(out->data, &state, sizeof(state));
	return decode_put_state(sink, 0, out, err);
}

/* ---- reading ---- */

static bool load_source(struct ts_decoder *decoder, struct state_reading *in)
{
	struct ts_rank rank;

	if (!state_take(in, &rank, sizeof(rank)) || !decode_add_source(decoder, &rank))
		return false;
	decoder->sources[decoder->source_count - 1].epoch =
		decode_has_rows(decoder) ? decoder->epoch : 0;
	return true;
}

static bool take_one(const struct ts_decoder *decoder, struct state_reading *in,
		     struct state_of_source *ret_state)
{
	return state_take(in, ret_state, sizeof(*ret_state)) && ret_state->source >= 1 &&
	       ret_state->source <= decoder->source_count;
}

/* Both are in the order in which they were saved, which is that in memory. */
static bool load_processes(struct ts_decoder *decoder, struct state_reading *in, uint32_t count)
{
	size_t at = 0;

	for (; count; count--) {
		struct state_of_source state;

		if (!take_one(decoder, in, &state))
			return false;
		while (at < decoder->process_count && decoder->processes[at]->id != state.id)
			at++;
		if (at == decoder->process_count)
			return false;
		decoder->processes[at++]->source = (uint32_t)state.source;
	}
	return true;
}

static bool load_devices(struct ts_decoder *decoder, struct state_reading *in, uint32_t count)
{
	for (; count; count--) {
		struct decode_device *device;
		struct state_of_source state;

		if (!take_one(decoder, in, &state))
			return false;
		device = decode_find_device(decoder, state.id);
		if (!device)
			return false;
		device->source = (uint32_t)state.source;
		decode_index_device(decoder, device);
	}
	return true;
}

bool decode_load_sources(struct ts_decoder *decoder, const void *payload, size_t bytes)
{
	struct state_reading in = { .next = payload, .left = bytes };
	struct state_sources state;

	if (!state_take_head(&in, STATE_SOURCES, &state, sizeof(state), sizeof(state)) ||
	    decoder->source_count || state.sources > DECODE_SOURCES)
		return false;
	for (uint32_t i = 0; i < state.sources; i++)
		if (!load_source(decoder, &in))
			return false;
	return load_processes(decoder, &in, state.processes) &&
	       load_devices(decoder, &in, state.devices);
}
