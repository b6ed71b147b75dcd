/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saves the decoder's state as journal blocks and loads it: what a successor needs that is no
 * longer in the journal because it is in the trace (docs/live.md, section 6). Loaded state is
 * validated like everything in a journal.
 */
#include <stdlib.h>

#include "record/decode/decode_internal.h"
#include "record/recording/checkpoint_state.h"

/* All members are 8 bytes or pairs of 4, so stored structs have no padding. */
struct state_recording {
	struct state_head head;
	int64_t next_process, next_thread;
	int64_t now_ns;
	uint64_t events, lost, outside;
	uint32_t processes, closed;
	/* Since there are devices. */
	int64_t next_device;
	uint32_t devices, reserved;
};

struct state_process {
	int64_t id;
	uint64_t pid, parent, start_time, image;
	int64_t start_ns, end_ns, exit_status;
	uint32_t name_bytes, command_bytes; /* 0: none. The texts follow, padded to 8 */
	uint32_t ended, external;
};

struct state_device {
	int64_t id;
	uint64_t area;
	int64_t memory_bytes;
	uint32_t number, reserved;
	char vendor[64], model[128], uuid[96], bus[32];
};

struct state_area {
	struct state_head head;
	uint64_t dictionary;
	uint32_t rings, threads, windows, gates;
	uint32_t ended, damaged, target_windows, reserved;
	uint64_t outside, reported_nested, reported_no_ring, reported_cut, reported_outside;
	/* Since there are devices. */
	uint32_t devices, reserved_1;
};

struct state_ring {
	uint32_t ring, damaged;
	uint64_t position, events, dropped;
	uint64_t thread; /* key plus 1; 0: none */
	int64_t last_ns;
};

struct state_thread {
	int64_t id;
	uint64_t key;
	uint32_t tid, is_track;
	char name[64];
	uint32_t spans[2]; /* the records of each stack follow, each preceded by a word of flags */
};

struct state_window {
	uint64_t by_target;
	int64_t start_ns;
	struct ts_block_window opened;
};

struct state_gate {
	int64_t from_ns;
	uint64_t open;
};

struct state_device_number {
	uint64_t number;
	int64_t device;
};

struct state_closed {
	uint64_t area;
	uint32_t waits, reserved;
	struct ts_block_window opened, closed;
};

/* ---- fields, for saving and loading ---- */

#define FIELD(type, member) STATE_FIELD(type, state_recording, member, ts_decoder, member)
#define COUNTER(member) STATE_FIELD(STATE_COPY, state_recording, member, ts_decoder, counts.member)
static const struct state_field recording_fields[] = {
	FIELD(STATE_COPY, next_process),
	FIELD(STATE_COPY, next_thread),
	FIELD(STATE_TIME, now_ns),
	COUNTER(events),
	COUNTER(lost),
	COUNTER(outside),
	FIELD(STATE_COPY, next_device),
};
#undef COUNTER
#undef FIELD

#define FIELD(type, member) STATE_FIELD(type, state_process, member, decode_process, member)
static const struct state_field process_fields[] = {
	FIELD(STATE_COPY, id),         FIELD(STATE_COPY, pid),         FIELD(STATE_COPY, parent),
	FIELD(STATE_COPY, start_time), FIELD(STATE_COPY, image),       FIELD(STATE_COPY, start_ns),
	FIELD(STATE_COPY, end_ns),     FIELD(STATE_COPY, exit_status), FIELD(STATE_FLAG, ended),
	FIELD(STATE_FLAG, external),
};
#undef FIELD

#define FIELD(type, member) STATE_FIELD(type, state_device, member, decode_device, member)
static const struct state_field device_fields[] = {
	FIELD(STATE_COPY, id),     FIELD(STATE_COPY, area),   FIELD(STATE_COPY, memory_bytes),
	FIELD(STATE_COPY, number), FIELD(STATE_TEXT, vendor), FIELD(STATE_TEXT, model),
	FIELD(STATE_TEXT, uuid),   FIELD(STATE_TEXT, bus),
};
#undef FIELD

#define FIELD(type, member) STATE_FIELD(type, state_closed, member, decode_closed, member)
static const struct state_field closed_fields[] = {
	FIELD(STATE_COPY, area),
	FIELD(STATE_COPY, waits),
	FIELD(STATE_COPY, opened),
	FIELD(STATE_COPY, closed),
};
#undef FIELD

/* `ended` is saved separately: an area that has ended but is still described ends again. */
#define FIELD(type, member) STATE_FIELD(type, state_area, member, decode_area, member)
static const struct state_field area_fields[] = {
	STATE_FIELD(STATE_COPY, state_area, dictionary, decode_area, dictionary_end),
	FIELD(STATE_FLAG, damaged),
	FIELD(STATE_COPY, target_windows),
	FIELD(STATE_COPY, outside),
	FIELD(STATE_COPY, reported_nested),
	FIELD(STATE_COPY, reported_no_ring),
	FIELD(STATE_COPY, reported_cut),
	FIELD(STATE_COPY, reported_outside),
};
#undef FIELD

#define FIELD(type, member) STATE_FIELD(type, state_ring, member, decode_ring, member)
static const struct state_field ring_fields[] = {
	FIELD(STATE_FLAG, damaged), FIELD(STATE_COPY, position), FIELD(STATE_COPY, events),
	FIELD(STATE_COPY, dropped), FIELD(STATE_TIME, last_ns),
};
#undef FIELD

/* `key` and `is_track` find or add the thread when it is loaded. */
#define FIELD(type, member) STATE_FIELD(type, state_thread, member, decode_thread, member)
static const struct state_field thread_fields[] = {
	FIELD(STATE_COPY, id),
	FIELD(STATE_COPY, tid),
	FIELD(STATE_TEXT, name),
};
#undef FIELD

#define FIELD(type, member) STATE_FIELD(type, state_window, member, decode_window, member)
static const struct state_field window_fields[] = {
	FIELD(STATE_FLAG, by_target),
	FIELD(STATE_TIME, start_ns),
	FIELD(STATE_COPY, opened),
};
#undef FIELD

#define FIELD(type, member) STATE_FIELD(type, state_gate, member, decode_gate, member)
static const struct state_field gate_fields[] = {
	FIELD(STATE_COPY, from_ns),
	FIELD(STATE_FLAG, open),
};
#undef FIELD

/* ---- writing ---- */

static void save_process(struct ts_text *out, const struct decode_process *process)
{
	struct state_process state = {
		.name_bytes = process->name ? (uint32_t)strlen(process->name) : 0,
		.command_bytes = process->command ? (uint32_t)strlen(process->command) : 0,
	};

	STATE_SAVE(process_fields, &state, process);
	ts_text_append(out, &state, sizeof(state));
	state_append_padded(out, process->name, state.name_bytes);
	state_append_padded(out, process->command, state.command_bytes);
}

static void save_device(struct ts_text *out, const struct decode_device *device)
{
	struct state_device state = { 0 };

	STATE_SAVE(device_fields, &state, device);
	ts_text_append(out, &state, sizeof(state));
}

static void save_recording(const struct ts_decoder *decoder, struct ts_text *out)
{
	struct state_recording state = {
		.head = { .kind = STATE_RECORDING, .bytes = sizeof(state) },
		.processes = (uint32_t)decoder->process_count,
		.closed = (uint32_t)decoder->closed_count,
		.devices = (uint32_t)decoder->device_count,
	};

	STATE_SAVE(recording_fields, &state, decoder);
	ts_text_append(out, &state, sizeof(state));
	for (size_t i = 0; i < decoder->process_count; i++)
		save_process(out, decoder->processes[i]);
	for (size_t i = 0; i < decoder->closed_count; i++) {
		struct state_closed row = { 0 };

		STATE_SAVE(closed_fields, &row, &decoder->closed[i]);
		ts_text_append(out, &row, sizeof(row));
	}
	for (size_t i = 0; i < decoder->device_count; i++)
		save_device(out, decoder->devices[i]);
}

static void save_rings(const struct decode_area *area, struct ts_text *out)
{
	for (size_t i = 0; i < area->ring_count; i++) {
		const struct decode_ring *ring = area->rings[i];
		struct state_ring state = { .ring = (uint32_t)i };

		if (!ring)
			continue;
		STATE_SAVE(ring_fields, &state, ring);
		state.thread = ring->thread ? ring->thread->key + 1 : 0;
		ts_text_append(out, &state, sizeof(state));
	}
}

static void save_thread(const struct decode_thread *thread, struct ts_text *out)
{
	struct state_thread state = { .key = thread->key, .is_track = thread->is_track };

	STATE_SAVE(thread_fields, &state, thread);
	for (int k = 0; k < 2; k++)
		state.spans[k] = (uint32_t)thread->stacks[k].count;
	ts_text_append(out, &state, sizeof(state));
	for (int k = 0; k < 2; k++) {
		const struct decode_stack *stack = &thread->stacks[k];

		for (size_t i = 0; i < stack->count; i++) {
			uint64_t flags = stack->starts[i] & STACK_OUTSIDE;
			const char *record = stack->records.data +
					     (stack->starts[i] & ~STACK_OUTSIDE);
			uint16_t words;

			memcpy(&words, record, sizeof(words));
			ts_text_append(out, &flags, sizeof(flags));
			ts_text_append(out, record, (size_t)words * 8);
		}
	}
}

static void save_area(const struct decode_area *area, struct ts_text *out)
{
	struct state_area state = {
		.head = { .kind = STATE_AREA, .bytes = sizeof(state) },
		.threads = (uint32_t)area->thread_count,
		.windows = (uint32_t)area->window_count,
		.gates = area->gate_count,
		.ended = area->ended,
		.devices = (uint32_t)area->device_count,
	};

	STATE_SAVE(area_fields, &state, area);
	for (size_t i = 0; i < area->ring_count; i++)
		state.rings += area->rings[i] != NULL;
	ts_text_append(out, &state, sizeof(state));
	save_rings(area, out);
	for (size_t i = 0; i < area->thread_count; i++)
		save_thread(area->threads[i], out);
	for (size_t i = 0; i < area->window_count; i++) {
		struct state_window window = { 0 };

		STATE_SAVE(window_fields, &window, &area->windows[i]);
		ts_text_append(out, &window, sizeof(window));
	}
	for (uint32_t i = 0; i < area->gate_count; i++) {
		struct state_gate gate = { 0 };

		STATE_SAVE(gate_fields, &gate, &area->gates[i]);
		ts_text_append(out, &gate, sizeof(gate));
	}
	for (size_t i = 0; i < area->device_count; i++) {
		struct state_device_number device = { .number = area->devices[i].number,
						      .device = area->devices[i].device->id };

		ts_text_append(out, &device, sizeof(device));
	}
}

static int put(const struct ts_block_sink *sink, enum ts_block_type type, uint64_t area,
	       const void *payload, size_t bytes, struct ts_error *err)
{
	struct ts_block block = { .type = (uint16_t)type,
				  .bytes = (uint32_t)bytes,
				  .area = area,
				  .to = type == TS_BLOCK_DICTIONARY ? bytes : 0 };

	if (bytes > TS_JOURNAL_BLOCK_BYTES)
		return ts_error_set(err, TS_ENOMEM, "the state of the recording is too large");
	return sink->append(sink->context, &block, payload, err);
}

static int put_area(const struct ts_decoder *decoder, struct decode_area *area,
		    const struct ts_block_sink *sink, struct ts_text *out, struct ts_error *err)
{
	int result = TS_OK;

	if (area->thread_count > 1024)
		decode_forget_threads(area);
	if (area->about)
		result = put(sink, TS_BLOCK_AREA, area->id, area->about, sizeof(*area->about), err);
	if (!result && area->about && area->dictionary.length)
		result = put(sink, TS_BLOCK_DICTIONARY, area->id, area->dictionary.data,
			     area->dictionary.length, err);
	ts_text_clear(out);
	save_area(area, out);
	if (!result)
		result = decode_put_state(sink, area->id, out, err);
	return result ? result : decode_save_accelerator(decoder, area, sink, out, err);
}

int decode_put_state(const struct ts_block_sink *sink, uint64_t area, const struct ts_text *out,
		     struct ts_error *err)
{
	if (ts_text_status(out))
		return ts_error_set(err, TS_ENOMEM, "no memory");
	return put(sink, TS_BLOCK_STATE, area, out->data, out->length, err);
}

int ts_decoder_save_state(struct ts_decoder *decoder, const struct ts_block_sink *sink,
			  struct ts_error *err)
{
	TS_SCOPED(ts_text) out = { 0 };
	uint32_t anchor = decoder->anchor_count > 2 ? decoder->anchor_count - 2 : 0;
	int result = TS_OK;

	save_recording(decoder, &out);
	result = decode_put_state(sink, 0, &out, err);
	if (!result)
		result = decode_save_sources(decoder, sink, &out, err);
	if (!result)
		result = decode_save_numbers(decoder, sink, &out, err);
	if (!result)
		result = decode_save_points(decoder, sink, &out, err);
	for (; !result && anchor < decoder->anchor_count; anchor++)
		result = put(sink, TS_BLOCK_CLOCK, 0, &decoder->anchors[anchor],
			     sizeof(decoder->anchors[anchor]), err);
	for (size_t i = 0; !result && i < decoder->area_count; i++)
		result = put_area(decoder, decoder->areas[i], sink, &out, err);
	return result ? result : decode_save_seen(decoder, sink, &out, err);
}

/* ---- reading ---- */

static bool take_recording(struct state_reading *in, struct state_recording *ret_state)
{
	return state_take_head(in, STATE_RECORDING, ret_state, sizeof(*ret_state),
			       offsetof(struct state_recording, next_device));
}

static bool take_area(struct state_reading *in, struct state_area *ret_state)
{
	return state_take_head(in, STATE_AREA, ret_state, sizeof(*ret_state),
			       offsetof(struct state_area, devices));
}

/* Copies unterminated bytes into a string; NULL: no memory. */
static char *copy_text(const char *bytes, size_t length)
{
	char *copy = malloc(length + 1);

	if (copy) {
		memcpy(copy, bytes, length);
		copy[length] = '\0';
	}
	return copy;
}

static bool load_process(struct ts_decoder *decoder, struct state_reading *in)
{
	struct decode_process *process;
	struct state_process state;
	const char *name, *command;

	if (!state_take(in, &state, sizeof(state)))
		return false;
	name = state_take_bytes(in, state.name_bytes);
	command = name ? state_take_bytes(in, state.command_bytes) : NULL;
	if (!command)
		return false;
	process = decode_add_process(decoder, state.pid);
	if (!process)
		return false;
	STATE_LOAD(process_fields, process, &state);
	process->external = state.external == 1;
	decoder->external_count += process->external;
	process->epoch = decode_has_rows(decoder) ? decoder->epoch : 0;
	if (!state.ended || state.name_bytes)
		process->name = copy_text(name, state.name_bytes);
	if (state.command_bytes)
		process->command = copy_text(command, state.command_bytes);
	return true;
}

static bool load_device(struct ts_decoder *decoder, struct state_reading *in)
{
	size_t count = decoder->device_count;
	int64_t newest = count ? decoder->devices[count - 1]->id : 0;
	struct decode_device *device;
	struct state_device state;

	if (!state_take(in, &state, sizeof(state)) || state.id <= newest ||
	    state.id >= decoder->next_device)
		return false;
	device = decode_add_device(decoder, state.id);
	if (!device)
		return false;
	STATE_LOAD(device_fields, device, &state);
	device->epoch = decode_has_rows(decoder) ? decoder->epoch : 0;
	decode_index_device(decoder, device);
	return true;
}

static bool load_closed(struct ts_decoder *decoder, struct state_reading *in)
{
	struct decode_closed *closed;
	struct state_closed state;

	if (!state_take(in, &state, sizeof(state)))
		return false;
	if (!decoder->options.window_closed)
		return true;
	if (ts_grow_array((void **)&decoder->closed, &decoder->closed_capacity,
			  decoder->closed_count + 1, sizeof(*decoder->closed)))
		return false;
	closed = &decoder->closed[decoder->closed_count++];
	*closed = (struct decode_closed){ 0 };
	STATE_LOAD(closed_fields, closed, &state);
	closed->waits = TS_MIN(closed->waits, 10);
	return true;
}

static bool load_recording(struct ts_decoder *decoder, struct state_reading *in)
{
	struct state_recording state;

	if (!take_recording(in, &state) || decoder->area_count || decoder->process_count ||
	    state.processes > DECODE_PROCESSES || state.closed > DECODE_CLOSED_WINDOWS ||
	    state.devices > DECODE_DEVICES || state.next_process < 1 || state.next_thread < 1 ||
	    state.next_device < 0)
		return false;
	decoder->counts = (struct ts_decoder_counts){ 0 };
	STATE_LOAD(recording_fields, decoder, &state);
	decoder->next_device = TS_MAX(decoder->next_device, 1);
	for (uint32_t i = 0; i < state.processes; i++)
		if (!load_process(decoder, in))
			return false;
	for (uint32_t i = 0; i < state.closed; i++)
		if (!load_closed(decoder, in))
			return false;
	for (uint32_t i = 0; i < state.devices; i++)
		if (!load_device(decoder, in))
			return false;
	return true;
}

static bool load_span(struct decode_area *area, struct decode_stack *stack,
		      struct state_reading *in)
{
	uint64_t flags, first;
	const char *record;
	size_t words;

	if (!state_take(in, &flags, sizeof(flags)) || in->left < 16)
		return false;
	memcpy(&first, in->next, sizeof(first));
	words = ts_live_head_words(first);
	if (words < 2 || words > TS_LIVE_RECORD_WORDS)
		return false;
	record = state_take_bytes(in, words * 8);
	return record &&
	       decode_push(area, stack, record, words * 8, (uint32_t)flags & STACK_OUTSIDE);
}

static bool load_thread(struct ts_decoder *decoder, struct decode_area *area,
			struct state_reading *in)
{
	struct decode_thread *thread;
	struct state_thread state;

	if (!state_take(in, &state, sizeof(state)))
		return false;
	thread = decode_get_thread(decoder, area, state.key, state.is_track);
	if (!thread)
		return false;
	STATE_LOAD(thread_fields, thread, &state);
	if (thread->id >= decoder->next_thread && thread->id < INT64_MAX / 2)
		decoder->next_thread = thread->id + 1;
	thread->epoch = decode_has_rows(decoder) ? decoder->epoch : 0;
	thread->named_by = thread->name[0] ? NAMED_BY_KERNEL : NAMED_BY_NOBODY;
	if (area->process && !state.is_track && state.tid &&
	    !decode_see_thread(decoder, area->process->id, thread))
		return false;
	for (int k = 0; k < 2; k++)
		for (uint32_t i = 0; i < state.spans[k]; i++)
			if (!load_span(area, &thread->stacks[k], in))
				return false;
	return true;
}

static bool load_ring(struct ts_decoder *decoder, struct decode_area *area,
		      const struct state_ring *state)
{
	struct decode_ring *ring = decode_get_ring(decoder, area, state->ring);

	if (!ring)
		return false;
	STATE_LOAD(ring_fields, ring, state);
	ring->is_known = true;
	if (state->thread && area->about)
		ring->thread = decode_get_thread(decoder, area, state->thread - 1, false);
	return true;
}

static bool load_windows(struct decode_area *area, const struct state_area *state,
			 struct state_reading *in)
{
	for (uint32_t i = 0; i < state->windows; i++) {
		struct state_window window;

		if (!state_take(in, &window, sizeof(window)) ||
		    ts_grow_array((void **)&area->windows, &area->window_capacity,
				  area->window_count + 1, sizeof(*area->windows)))
			return false;
		area->windows[area->window_count] = (struct decode_window){ 0 };
		STATE_LOAD(window_fields, &area->windows[area->window_count++], &window);
	}
	area->gate_count = 0;
	for (uint32_t i = 0; i < state->gates; i++) {
		struct state_gate gate;

		if (!state_take(in, &gate, sizeof(gate)))
			return false;
		STATE_LOAD(gate_fields, &area->gates[area->gate_count++], &gate);
	}
	return true;
}

static bool load_devices(struct ts_decoder *decoder, struct decode_area *area, uint32_t count,
			 struct state_reading *in)
{
	for (uint32_t i = 0; i < count; i++) {
		struct state_device_number state;
		struct decode_device *device;

		if (!state_take(in, &state, sizeof(state)) || state.number > TS_LIVE_DEVICE_MASK)
			return false;
		device = decode_find_device(decoder, state.device);
		if (!device || !decode_call_device(decoder, area, (uint32_t)state.number, device))
			return false;
	}
	return true;
}

static bool load_rings(struct ts_decoder *decoder, struct decode_area *area, uint32_t count,
		       struct state_reading *in)
{
	for (uint32_t i = 0; i < count; i++) {
		struct state_ring ring;

		if (!state_take(in, &ring, sizeof(ring)) || !load_ring(decoder, area, &ring))
			return false;
	}
	area->has_state = true;
	return true;
}

static bool load_area(struct ts_decoder *decoder, uint64_t id, struct state_reading *in)
{
	struct decode_area *area = decode_add_area(decoder, id);
	struct state_reading rings;
	uint64_t dictionary_end;
	struct state_area state;

	if (!area || area->ring_count || area->thread_count || area->device_count ||
	    !take_area(in, &state) || state.rings > TS_LIVE_RING_LIMIT ||
	    state.gates > DECODE_GATES || state.windows > DECODE_GATES)
		return false;
	dictionary_end = area->dictionary_end;
	STATE_LOAD(area_fields, area, &state);
	area->dictionary_end = TS_MAX(area->dictionary_end, dictionary_end);
	/* Rings refer to threads, which come after them. */
	rings = *in;
	if (!state_take_bytes(in, state.rings * sizeof(struct state_ring)))
		return false;
	/* Times of spans cannot be converted without the target's clock; counts remain valid. */
	if (!area->about && (state.threads || state.windows || state.devices)) {
		load_rings(decoder, area, state.rings, &rings);
		return false;
	}
	for (uint32_t i = 0; i < state.threads; i++)
		if (!load_thread(decoder, area, in))
			return false;
	if (!load_windows(area, &state, in) || !load_devices(decoder, area, state.devices, in))
		return false;
	if (!load_rings(decoder, area, state.rings, &rings))
		return false;
	if (state.ended && !area->ended && !area->about) {
		area->ended = true;
		decoder->ended_count++;
	}
	return true;
}

int decode_load_state(struct ts_decoder *decoder, const struct ts_block *block, const void *payload)
{
	struct state_reading in = { .next = payload, .left = block->bytes };
	bool is_good;

	if (decode_is_more_state(payload, block->bytes))
		is_good = decode_load_more_state(decoder, block->area, payload, block->bytes);
	else if (block->area)
		is_good = load_area(decoder, block->area, &in);
	else
		is_good = load_recording(decoder, &in);
	decoder->damaged_blocks += !is_good;
	decoder->lost_state |= !is_good;
	return decoder->failure;
}

bool ts_state_read_positions(const void *payload, size_t bytes,
			     struct ts_state_positions *ret_positions,
			     void (*ring)(void *context, uint32_t ring, uint64_t position,
					  uint64_t events, uint64_t dropped),
			     void *context)
{
	struct state_reading in = { .next = payload, .left = bytes };
	struct state_area state;

	if (!take_area(&in, &state) || state.rings > in.left / sizeof(struct state_ring))
		return false;
	*ret_positions = (struct ts_state_positions){ .dictionary = state.dictionary,
						      .rings = state.rings,
						      .ended = state.ended != 0 };
	for (uint32_t i = 0; i < state.rings; i++) {
		struct state_ring at = { 0 };

		state_take(&in, &at, sizeof(at));
		if (ring)
			ring(context, at.ring, at.position, at.events, at.dropped);
	}
	return true;
}
