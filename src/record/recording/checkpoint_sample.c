/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saves and loads the threads known from samples (docs/live.md, section 6), so that a successor
 * continues their rows. Threads of areas are saved with their area; here only who named them.
 * Loaded state is validated.
 */
#include <stdlib.h>

#include "record/decode/decode_internal.h"
#include "record/recording/checkpoint_state.h"

/* Samples of an ended process may still arrive for this long. */
#define LATE_NS INT64_C(60000000000)

struct state_seen {
	struct state_head head;
	uint64_t samples; /* so far */
	uint64_t threads;
};

struct state_seen_thread {
	int64_t process, id, last_ns;
	uint64_t area, key;
	uint32_t tid, named_by, is_owned, is_written;
	char name[64];
};

/* For saving and loading. */
#define FIELD(type, member) STATE_FIELD(type, state_seen_thread, member, decode_thread, member)
static const struct state_field thread_fields[] = {
	FIELD(STATE_COPY, process),     FIELD(STATE_COPY, id),   FIELD(STATE_TIME, last_ns),
	FIELD(STATE_COPY, area),        FIELD(STATE_COPY, key),  FIELD(STATE_COPY, tid),
	FIELD(STATE_INTEGER, named_by), FIELD(STATE_TEXT, name),
};
#undef FIELD

/* ---- writing ---- */

static int list_processes(const struct ts_decoder *decoder, struct ts_map *processes)
{
	int result = TS_OK;

	for (size_t i = 0; i < decoder->process_count && !result; i++)
		if (!decoder->processes[i]->ended)
			result = ts_map_put(processes, (uint64_t)decoder->processes[i]->id, 1);
	return result;
}

/* True if a successor could not learn of the thread otherwise. */
static bool is_wanted(const struct ts_decoder *decoder, const struct ts_map *processes,
		      const struct decode_thread *thread)
{
	uint64_t unused;

	if (thread->is_owned)
		return thread->named_by > NAMED_BY_KERNEL;
	return ts_map_get(processes, (uint64_t)thread->process, &unused) ||
	       thread->last_ns + LATE_NS > decoder->now_ns;
}

static void save_thread(const struct ts_decoder *decoder, struct ts_text *out,
			const struct decode_thread *thread)
{
	struct state_seen_thread state = { .is_owned = thread->is_owned,
					   .is_written = thread->epoch == decoder->epoch };

	STATE_SAVE(thread_fields, &state, thread);
	ts_text_append(out, &state, sizeof(state));
}

int decode_save_seen(struct ts_decoder *decoder, const struct ts_block_sink *sink,
		     struct ts_text *out, struct ts_error *err)
{
	struct state_seen state = { .head = { .kind = STATE_SEEN, .bytes = sizeof(state) },
				    .samples = decoder->counts.samples };
	struct ts_map processes = { 0 };
	int result = list_processes(decoder, &processes);

	ts_text_clear(out);
	ts_text_append(out, &state, sizeof(state));
	for (size_t i = 0; i < decoder->seen_count && !result; i++) {
		if (!is_wanted(decoder, &processes, decoder->seen[i]))
			continue;
		save_thread(decoder, out, decoder->seen[i]);
		state.threads++;
	}
	ts_map_release(&processes);
	if (result)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	if (!state.threads && !state.samples)
		return TS_OK;
	if (!ts_text_status(out))
		memcpy(out->data, &state, sizeof(state));
	return decode_put_state(sink, 0, out, err);
}

/* ---- reading ---- */

/* For a thread that its area has already loaded. */
static void load_namer(struct ts_decoder *decoder, const struct state_seen_thread *state)
{
	const struct decode_area *area = decode_find_area(decoder, state->area);
	uint64_t index;

	if (!area || !ts_map_get(&area->serials, state->key, &index))
		return;
	area->threads[index]->named_by = (uint8_t)state->named_by;
	area->threads[index]->last_ns = state->last_ns;
}

static bool load_thread(struct ts_decoder *decoder, const struct state_seen_thread *state)
{
	struct decode_thread *thread = calloc(1, sizeof(*thread));
	bool is_good;

	if (!thread) {
		decode_no_memory(decoder);
		return false;
	}
	thread->holders = 1;
	STATE_LOAD(thread_fields, thread, state);
	thread->epoch = decode_has_rows(decoder) && state->is_written ? decoder->epoch : 0;
	is_good = decode_see_thread(decoder, state->process, thread);
	decode_release_thread(thread);
	return is_good;
}

bool decode_load_seen(struct ts_decoder *decoder, const void *payload, size_t bytes)
{
	struct state_reading in = { .next = payload, .left = bytes };
	struct state_seen_thread thread;
	struct state_seen state;

	if (!state_take_head(&in, STATE_SEEN, &state, sizeof(state), sizeof(state)) ||
	    state.threads > DECODE_SEEN_THREADS)
		return false;
	decoder->counts.samples = state.samples;
	for (uint64_t i = 0; i < state.threads; i++) {
		if (!state_take(&in, &thread, sizeof(thread)) || thread.id < 1 ||
		    thread.id >= decoder->next_thread || thread.process < 1 ||
		    thread.process >= decoder->next_process || thread.named_by > NAMED_BY_PROGRAM)
			return false;
		thread.last_ns = TS_MAX(0, TS_MIN(thread.last_ns, DECODE_LATEST_NS));
		if (thread.is_owned)
			load_namer(decoder, &thread);
		else if (!load_thread(decoder, &thread))
			return false;
	}
	return true;
}
