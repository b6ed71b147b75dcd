/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saves and loads the state of calls, queues, device clocks and command streams (docs/live.md,
 * section 6). Ids of texts and blobs are valid in one file only and are dropped after a rotation.
 * Loaded state is validated.
 */
#include <stdlib.h>

#include "record/decode/decode_internal.h"
#include "record/recording/checkpoint_state.h"

/* Of the recording. */
struct state_numbers {
	struct state_head head;
	int64_t next_stream, next_object;
	uint32_t next_clock, next_correlations;
	uint64_t commands, blob_bytes, replayable_windows, failed_windows, checks, kept_checks;
	char not_replayable[256];
	uint64_t processes;
};

/* Of the recording, too: points of devices' clocks that wait for an anchor. */
struct state_points {
	struct state_head head;
	uint64_t points;
};

struct state_point {
	uint32_t clock, is_guessed;
	struct decode_clock_point point;
	char method[32];
};

struct state_correlations {
	int64_t process;
	uint64_t correlations;
};

/*
 * Of an area. Facts are stored unchanged. Correlations of calls are in STATE_CALLS, since there may
 * be millions.
 */
struct state_accelerator {
	struct state_head head;
	uint32_t streams, clocks;
	uint32_t calls, fact_bytes;
};

struct state_calls {
	struct state_head head;
	uint64_t pages, given_up;
};

struct state_stream {
	int64_t id;
	uint32_t device, stream, context, out_of_order;
	int64_t priority;
	char name[64];
};

struct state_clock {
	uint32_t number, id, count, is_guessed;
	struct decode_clock_point points[2];
	char method[32];
};

struct state_objects {
	struct state_head head;
	uint32_t objects, generation;
	uint64_t in_window;
};

struct state_object {
	uint64_t number;
	uint64_t generation;
	struct ts_object_row row;
};

struct state_blobs {
	struct state_head head;
	uint64_t blobs;
	uint64_t number, broken, bytes, done;
	uint32_t previous, piece_bytes;
	struct ts_hash_stream hash;
	uint64_t spool; /* position below which everything is decoded */
	uint64_t gone_blob;
};

struct state_blob {
	uint64_t number;
	uint32_t id, is_kept;
};

/* ---- fields, for saving and loading ---- */

#define FIELD(member) STATE_FIELD(STATE_COPY, state_numbers, member, ts_decoder, member)
#define COUNTER(type, member) STATE_FIELD(type, state_numbers, member, ts_decoder, counts.member)
static const struct state_field numbers_fields[] = {
	FIELD(next_stream),
	FIELD(next_object),
	FIELD(next_clock),
	FIELD(next_correlations),
	COUNTER(STATE_COPY, commands),
	COUNTER(STATE_COPY, blob_bytes),
	COUNTER(STATE_COPY, replayable_windows),
	COUNTER(STATE_COPY, failed_windows),
	COUNTER(STATE_COPY, checks),
	COUNTER(STATE_COPY, kept_checks),
	COUNTER(STATE_TEXT, not_replayable),
};
#undef COUNTER
#undef FIELD

#define FIELD(type, member) STATE_FIELD(type, state_point, member, decode_waiting_point, member)
static const struct state_field point_fields[] = {
	FIELD(STATE_COPY, clock),
	FIELD(STATE_FLAG, is_guessed),
	FIELD(STATE_COPY, point),
	FIELD(STATE_TEXT, method),
};
#undef FIELD

#define FIELD(type, member) STATE_FIELD(type, state_stream, member, decode_stream, member)
static const struct state_field stream_fields[] = {
	FIELD(STATE_COPY, id),      FIELD(STATE_COPY, device),       FIELD(STATE_COPY, stream),
	FIELD(STATE_COPY, context), FIELD(STATE_FLAG, out_of_order), FIELD(STATE_COPY, priority),
	FIELD(STATE_TEXT, name),
};
#undef FIELD

#define FIELD(type, member) STATE_FIELD(type, state_clock, member, decode_device_clock, member)
static const struct state_field clock_fields[] = {
	FIELD(STATE_COPY, id),     FIELD(STATE_COPY, count),  FIELD(STATE_FLAG, is_guessed),
	FIELD(STATE_COPY, points), FIELD(STATE_TEXT, method),
};
#undef FIELD

static const struct state_field channel_fields[] = {
	STATE_FIELD(STATE_COPY, state_objects, generation, decode_channel, generation),
	STATE_FIELD(STATE_FLAG, state_objects, in_window, decode_channel, in_window),
};

static const struct state_field object_fields[] = {
	STATE_FIELD(STATE_COPY, state_object, number, decode_object, number),
	STATE_FIELD(STATE_INTEGER, state_object, generation, decode_object, generation),
	STATE_FIELD(STATE_COPY, state_object, row, decode_object, row),
};

#define FIELD(member) STATE_FIELD(STATE_COPY, state_blobs, member, decode_half_blob, member)
static const struct state_field half_fields[] = {
	FIELD(number), FIELD(broken), FIELD(bytes), FIELD(done), FIELD(previous), FIELD(hash),
};
#undef FIELD

/* ---- writing ---- */

int decode_save_numbers(const struct ts_decoder *decoder, const struct ts_block_sink *sink,
			struct ts_text *out, struct ts_error *err)
{
	struct state_numbers state = {
		.head = { .kind = STATE_NUMBERS, .bytes = sizeof(state) },
	};

	STATE_SAVE(numbers_fields, &state, decoder);
	/* All are at their initial values. */
	if (state.next_stream == 1 && state.next_object == 1 && !state.next_correlations &&
	    state.next_clock == DECODE_FIRST_DEVICE_CLOCK && !state.commands && !state.blob_bytes &&
	    !state.replayable_windows && !state.failed_windows)
		return TS_OK;
	for (size_t i = 0; i < decoder->process_count; i++)
		state.processes += decoder->processes[i]->correlations != 0;
	ts_text_clear(out);
	ts_text_append(out, &state, sizeof(state));
	for (size_t i = 0; i < decoder->process_count; i++) {
		struct state_correlations process = { .process = decoder->processes[i]->id,
						      .correlations =
							      decoder->processes[i]->correlations };

		if (process.correlations)
			ts_text_append(out, &process, sizeof(process));
	}
	return decode_put_state(sink, 0, out, err);
}

int decode_save_points(const struct ts_decoder *decoder, const struct ts_block_sink *sink,
		       struct ts_text *out, struct ts_error *err)
{
	struct state_points state = { .head = { .kind = STATE_POINTS, .bytes = sizeof(state) },
				      .points = decoder->point_count };

	if (!decoder->point_count)
		return TS_OK;
	ts_text_clear(out);
	ts_text_append(out, &state, sizeof(state));
	for (size_t i = 0; i < decoder->point_count; i++) {
		struct state_point point = { 0 };

		STATE_SAVE(point_fields, &point, &decoder->points[i]);
		ts_text_append(out, &point, sizeof(point));
	}
	return decode_put_state(sink, 0, out, err);
}

static void save_streams(const struct decode_area *area, struct ts_text *out)
{
	for (size_t i = 0; i < area->stream_count; i++) {
		struct state_stream state = { 0 };

		STATE_SAVE(stream_fields, &state, &area->streams[i]);
		ts_text_append(out, &state, sizeof(state));
	}
}

static void save_clocks(const struct decode_area *area, struct ts_text *out)
{
	for (size_t i = 0; i < area->device_count; i++) {
		const struct decode_device_clock *clock = &area->devices[i].clock;
		struct state_clock state = { .number = area->devices[i].number };

		if (!clock->id)
			continue;
		STATE_SAVE(clock_fields, &state, clock);
		ts_text_append(out, &state, sizeof(state));
	}
}

/* True if each call of the page has its command. */
static bool is_settled(const struct decode_call_page *page)
{
	return memcmp(page->called, page->done, sizeof(page->called)) == 0;
}

static int save_calls(const struct decode_area *area, const struct ts_block_sink *sink,
		      struct ts_text *out, struct ts_error *err)
{
	const struct decode_calls *calls = &area->calls;
	struct state_calls state = { .head = { .kind = STATE_CALLS, .bytes = sizeof(state) },
				     .given_up = calls->given_up };

	ts_text_clear(out);
	ts_text_append(out, &state, sizeof(state));
	for (size_t i = 0; i < calls->count; i++) {
		if (is_settled(&calls->pages[i]))
			continue;
		ts_text_append(out, &calls->pages[i], sizeof(calls->pages[i]));
		state.pages++;
	}
	if (!state.pages && !state.given_up)
		return TS_OK;
	if (!ts_text_status(out))
		memcpy(out->data, &state, sizeof(state));
	return decode_put_state(sink, area->id, out, err);
}

static int save_accelerator(const struct decode_area *area, const struct ts_block_sink *sink,
			    struct ts_text *out, struct ts_error *err)
{
	struct state_accelerator state = {
		.head = { .kind = STATE_ACCELERATOR, .bytes = sizeof(state) },
		.streams = (uint32_t)area->stream_count,
		.fact_bytes = (uint32_t)area->facts.length,
	};

	for (size_t i = 0; i < area->device_count; i++)
		state.clocks += area->devices[i].clock.id != 0;
	if (!state.streams && !state.clocks && !state.fact_bytes)
		return TS_OK;
	ts_text_clear(out);
	ts_text_append(out, &state, sizeof(state));
	save_streams(area, out);
	save_clocks(area, out);
	ts_text_append(out, area->facts.data, area->facts.length);
	return decode_put_state(sink, area->id, out, err);
}

/* Saves live objects only: nothing refers to the others any more. */
static int save_objects(const struct decode_area *area, const struct ts_block_sink *sink,
			struct ts_text *out, struct ts_error *err)
{
	const struct decode_channel *channel = area->channel;
	struct state_objects state = {
		.head = { .kind = STATE_OBJECTS, .bytes = sizeof(state) },
		.objects = (uint32_t)(channel->object_count - channel->gone_count),
	};

	STATE_SAVE(channel_fields, &state, channel);
	ts_text_clear(out);
	ts_text_append(out, &state, sizeof(state));
	for (size_t i = 0; i < channel->object_count; i++) {
		const struct decode_object *object = &channel->objects[i];
		struct state_object row = { 0 };

		if (object->is_gone)
			continue;
		STATE_SAVE(object_fields, &row, object);
		ts_text_append(out, &row, sizeof(row));
	}
	return decode_put_state(sink, area->id, out, err);
}

static void save_blob_numbers(const struct decode_channel *channel, struct ts_text *out,
			      uint64_t *ret_count)
{
	uint64_t number, id;
	size_t cursor = 0;

	for (size_t i = 0; i < channel->blob_slots; i++) {
		struct state_blob state = { .number = channel->blobs[i].number,
					    .id = channel->blobs[i].id };

		if (!state.number)
			continue;
		ts_text_append(out, &state, sizeof(state));
		++*ret_count;
	}
	while (ts_map_next(&channel->kept_blobs, &cursor, &number, &id)) {
		struct state_blob state = { .number = number, .id = (uint32_t)id, .is_kept = 1 };

		ts_text_append(out, &state, sizeof(state));
		++*ret_count;
	}
}

static int save_blobs(const struct ts_decoder *decoder, const struct decode_area *area,
		      const struct ts_block_sink *sink, struct ts_text *out, struct ts_error *err)
{
	const struct decode_half_blob *half = &area->channel->half;
	struct state_blobs state = {
		.head = { .kind = STATE_BLOBS, .bytes = sizeof(state) },
		.piece_bytes = half->number ? (uint32_t)half->piece.length : 0,
		.spool = ts_spools_position(decoder->options.spools, area->id),
		.gone_blob = area->channel->gone_blob,
	};

	STATE_SAVE(half_fields, &state, half);
	ts_text_clear(out);
	ts_text_append(out, &state, sizeof(state));
	state_append_padded(out, half->piece.data, state.piece_bytes);
	save_blob_numbers(area->channel, out, &state.blobs);
	if (!ts_text_status(out))
		memcpy(out->data, &state, sizeof(state));
	return decode_put_state(sink, area->id, out, err);
}

int decode_save_accelerator(const struct ts_decoder *decoder, const struct decode_area *area,
			    const struct ts_block_sink *sink, struct ts_text *out,
			    struct ts_error *err)
{
	int result = save_accelerator(area, sink, out, err);

	if (!result)
		result = save_calls(area, sink, out, err);
	if (!result && area->channel)
		result = save_objects(area, sink, out, err);
	if (!result && area->channel)
		result = save_blobs(decoder, area, sink, out, err);
	return result;
}

/* ---- reading ---- */

/* Whether ids of texts and blobs, and rows that were written, are those of this file. */
static bool is_same_file(const struct ts_decoder *decoder)
{
	return decoder->open.trace_bytes != 0;
}

/* Processes are in the order in which they were saved, with others between them. */
static bool load_correlations(struct ts_decoder *decoder, uint64_t count, struct state_reading *in)
{
	size_t index = 0;

	for (uint64_t i = 0; i < count; i++) {
		struct state_correlations process;

		if (!state_take(in, &process, sizeof(process)))
			return false;
		while (index < decoder->process_count &&
		       decoder->processes[index]->id != process.process)
			index++;
		if (index == decoder->process_count)
			return false;
		decoder->processes[index]->correlations = (uint32_t)process.correlations;
	}
	return true;
}

static bool is_free_id(int64_t id)
{
	return id >= 1 && id < INT64_MAX / 2;
}

static bool load_numbers(struct ts_decoder *decoder, struct state_reading *in)
{
	struct state_numbers state;

	if (!state_take_head(in, STATE_NUMBERS, &state, sizeof(state), sizeof(state)) ||
	    !is_free_id(state.next_stream) || !is_free_id(state.next_object) ||
	    state.next_clock < decoder->next_clock || state.next_clock > INT32_MAX ||
	    state.next_correlations > INT32_MAX)
		return false;
	STATE_LOAD(numbers_fields, decoder, &state);
	return load_correlations(decoder, state.processes, in);
}

/* Not loaded in another file: there they are written again when their clocks are used. */
static bool load_points(struct ts_decoder *decoder, struct state_reading *in)
{
	struct state_points state;

	if (!state_take_head(in, STATE_POINTS, &state, sizeof(state), sizeof(state)) ||
	    decoder->point_count || state.points > DECODE_CLOCK_POINTS)
		return false;
	for (uint64_t i = 0; is_same_file(decoder) && i < state.points; i++) {
		struct decode_waiting_point waiting = { 0 };
		struct state_point point;

		if (!state_take(in, &point, sizeof(point)) || !decode_is_point(&point.point) ||
		    point.clock < DECODE_FIRST_DEVICE_CLOCK || point.clock >= decoder->next_clock)
			return false;
		STATE_LOAD(point_fields, &waiting, &point);
		if (!decode_put_point(decoder, &waiting))
			return false;
	}
	return true;
}

static bool load_stream(struct ts_decoder *decoder, struct decode_area *area,
			struct state_reading *in)
{
	struct decode_stream stream = { 0 };
	struct state_stream state;

	if (!state_take(in, &state, sizeof(state)) || state.id < 1 ||
	    state.id >= decoder->next_stream || area->stream_count >= DECODE_AREA_STREAMS)
		return false;
	STATE_LOAD(stream_fields, &stream, &state);
	stream.device &= TS_LIVE_DEVICE_MASK;
	stream.epoch = decode_has_rows(decoder) ? decoder->epoch : 0;
	return decode_add_stream(decoder, area, &stream);
}

static bool load_clock(struct ts_decoder *decoder, struct decode_area *area,
		       struct state_reading *in)
{
	struct decode_device_number *device;
	struct state_clock state;

	if (!state_take(in, &state, sizeof(state)) || state.id >= decoder->next_clock ||
	    state.count > TS_ARRAY_SIZE(state.points))
		return false;
	device = decode_find_number(area, state.number);
	if (!device)
		return false;
	for (uint32_t i = 0; i < state.count; i++)
		if (!decode_is_point(&state.points[i]))
			return false;
	STATE_LOAD(clock_fields, &device->clock, &state);
	device->clock.epoch = decode_has_rows(decoder) ? decoder->epoch : 0;
	return true;
}

/* Checks that the bytes are records whose sizes add up. */
static bool are_records(const char *bytes, size_t count)
{
	while (count) {
		uint16_t words;

		memcpy(&words, bytes, sizeof(words));
		if (words < 2 || (size_t)words * 8 > count)
			return false;
		bytes += (size_t)words * 8;
		count -= (size_t)words * 8;
	}
	return true;
}

static bool load_facts(struct ts_decoder *decoder, struct decode_area *area, size_t bytes,
		       struct state_reading *in)
{
	const char *facts = bytes <= DECODE_AREA_FACT_BYTES ? state_take_bytes(in, bytes) : NULL;

	if (!facts || bytes % 8 || !are_records(facts, bytes))
		return false;
	ts_text_append(&area->facts, facts, bytes);
	if (!decode_has_rows(decoder))
		decode_facts(decoder, area);
	return !ts_text_status(&area->facts);
}

static bool load_accelerator(struct ts_decoder *decoder, struct decode_area *area,
			     struct state_reading *in)
{
	struct state_accelerator state;

	if (!state_take_head(in, STATE_ACCELERATOR, &state, sizeof(state), sizeof(state)) ||
	    area->stream_count || area->facts.length)
		return false;
	for (uint32_t i = 0; i < state.streams; i++)
		if (!load_stream(decoder, area, in))
			return false;
	for (uint32_t i = 0; i < state.clocks; i++)
		if (!load_clock(decoder, area, in))
			return false;
	for (uint32_t i = 0; i < state.calls; i++) {
		uint64_t correlation;

		if (!state_take(in, &correlation, sizeof(correlation)) ||
		    !decode_wait_for_call(decoder, area, correlation))
			return false;
	}
	return load_facts(decoder, area, state.fact_bytes, in);
}

static bool load_calls(struct ts_decoder *decoder, struct decode_area *area,
		       struct state_reading *in)
{
	struct decode_call_page page;
	struct state_calls state;

	if (!state_take_head(in, STATE_CALLS, &state, sizeof(state), sizeof(state)) ||
	    state.pages > DECODE_CALL_PAGES)
		return false;
	area->calls.given_up = TS_MIN(state.given_up, (uint64_t)INT32_MAX);
	for (uint64_t i = 0; i < state.pages; i++)
		if (!state_take(in, &page, sizeof(page)) || !decode_put_calls(decoder, area, &page))
			return false;
	return true;
}

static bool load_object(struct ts_decoder *decoder, struct decode_channel *channel,
			struct state_reading *in)
{
	struct decode_object object = { 0 };
	struct state_object state;

	if (!state_take(in, &state, sizeof(state)) || !state.number || state.row.id < 1 ||
	    state.row.id >= decoder->next_object)
		return false;
	STATE_LOAD(object_fields, &object, &state);
	object.id = state.row.id;
	if (is_same_file(decoder))
		object.epoch = decoder->epoch;
	else
		object.row.name = object.row.details = object.row.blob = 0;
	return decode_put_object(decoder, channel, &object);
}

static bool load_objects(struct ts_decoder *decoder, struct decode_channel *channel,
			 struct state_reading *in)
{
	struct state_objects state;

	if (!state_take_head(in, STATE_OBJECTS, &state, sizeof(state), sizeof(state)) ||
	    channel->object_count)
		return false;
	STATE_LOAD(channel_fields, channel, &state);
	for (uint32_t i = 0; i < state.objects; i++)
		if (!load_object(decoder, channel, in))
			return false;
	return true;
}

static bool is_half(const struct state_blobs *state, uint64_t next_id)
{
	return state->done < state->bytes && state->bytes <= INT64_MAX &&
	       state->piece_bytes < DECODE_BLOB_PIECE && state->piece_bytes <= state->done &&
	       ts_hash_stream_is_sound(&state->hash) && state->hash.bytes == state->done &&
	       state->previous < next_id;
}

static bool load_half(struct decode_channel *channel, const struct state_blobs *state,
		      const char *piece)
{
	struct decode_half_blob *half = &channel->half;

	STATE_LOAD(half_fields, half, state);
	ts_text_clear(&half->piece);
	ts_text_append(&half->piece, piece, state->piece_bytes);
	return !ts_text_status(&half->piece);
}

static bool load_blob_number(struct ts_decoder *decoder, struct decode_channel *channel,
			     uint64_t next_id, struct state_reading *in)
{
	struct state_blob state;

	if (!state_take(in, &state, sizeof(state)) || !state.number || !state.id ||
	    state.id >= next_id)
		return false;
	if (!state.is_kept)
		return decode_put_blob(decoder, channel, state.number, state.id);
	return ts_map_count(&channel->kept_blobs) < DECODE_AREA_KEPT_BLOBS &&
	       !ts_map_put(&channel->kept_blobs, state.number, state.id);
}

static bool load_blobs(struct ts_decoder *decoder, struct decode_area *area,
		       struct state_reading *in)
{
	struct decode_channel *channel = area->channel;
	struct ts_writer_ids ids;
	struct state_blobs state;
	uint64_t next_id;
	const char *piece;

	if (!state_take_head(in, STATE_BLOBS, &state, sizeof(state),
			     offsetof(struct state_blobs, spool)) ||
	    channel->half.number || channel->blob_slots)
		return false;
	if (area->about)
		ts_spools_resume(decoder->options.spools, &area->about->control, state.spool);
	channel->gone_blob = state.gone_blob;
	piece = state_take_bytes(in, state.piece_bytes);
	if (!piece)
		return false;
	ts_writer_ids(decoder->writer, &ids);
	next_id = TS_MAX(ids.next[TS_TABLE_BLOB], 1);
	/* Its rows are in another file. */
	if (!is_same_file(decoder)) {
		channel->half.broken = state.number;
		return true;
	}
	if (state.number && (!is_half(&state, next_id) || !load_half(channel, &state, piece)))
		return false;
	for (uint64_t i = 0; i < state.blobs; i++)
		if (!load_blob_number(decoder, channel, next_id, in))
			return false;
	return true;
}

bool decode_is_more_state(const void *payload, size_t bytes)
{
	struct state_head head;

	if (bytes < sizeof(head))
		return false;
	memcpy(&head, payload, sizeof(head));
	return head.kind >= STATE_NUMBERS && head.kind <= STATE_SOURCES;
}

bool decode_load_more_state(struct ts_decoder *decoder, uint64_t id, const void *payload,
			    size_t bytes)
{
	struct state_reading in = { .next = payload, .left = bytes };
	struct decode_area *area = decode_find_area(decoder, id);
	struct decode_channel *channel;
	struct state_head head;

	memcpy(&head, payload, sizeof(head));
	if (head.kind == STATE_NUMBERS)
		return id == 0 && load_numbers(decoder, &in);
	if (head.kind == STATE_POINTS)
		return id == 0 && load_points(decoder, &in);
	if (head.kind == STATE_SEEN)
		return id == 0 && decode_load_seen(decoder, payload, bytes);
	if (head.kind == STATE_SOURCES)
		return id == 0 && decode_load_sources(decoder, payload, bytes);
	if (!area || !area->about)
		return false;
	if (head.kind == STATE_ACCELERATOR)
		return load_accelerator(decoder, area, &in);
	if (head.kind == STATE_CALLS)
		return load_calls(decoder, area, &in);
	channel = decode_get_channel(decoder, area);
	if (!channel)
		return false;
	return head.kind == STATE_OBJECTS ? load_objects(decoder, channel, &in)
					  : load_blobs(decoder, area, &in);
}
