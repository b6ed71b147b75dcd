/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters: each value is a row. Thread time and instruction counters belong to the event instead.
 */
#include "import/perfetto/perfetto_import_event.h"
#include "import/perfetto/perfetto_kinds.h"

/* Accumulates incremental counters; they restart with the state of the sequence. */
static void make_absolute(struct ts_perfetto_track *track,
			  const struct ts_perfetto_sequence *sequence, int64_t *integer,
			  double *real)
{
	if (__builtin_mul_overflow(*integer, track->multiplier, integer))
		*integer = INT64_MAX;
	*real *= (double)track->multiplier;
	if (!track->is_incremental)
		return;
	if (track->generation != sequence->generation) {
		track->generation = sequence->generation;
		track->integer = 0;
		track->real = 0;
	}
	if (__builtin_add_overflow(track->integer, *integer, integer))
		*integer = track->integer;
	*real += track->real;
	track->integer = *integer;
	track->real = *real;
}

static void add_row(struct ts_perfetto *p, size_t index, int64_t time, enum ts_arg_type type,
		    int64_t value)
{
	const struct ts_perfetto_track *track = &p->tracks[index - 1], *above = NULL;
	struct ts_field field = { .key = p->key_value, .type = (uint8_t)type };
	struct ts_counter_row row = ts_counter_none;
	uint64_t parent;

	if (track->parent && ts_map_get(&p->track_index, track->parent, &parent) && parent)
		above = &p->tracks[parent - 1];
	row.start = time;
	row.process = ts_perfetto_track_process(p, index);
	if (track->kind == TS_PERFETTO_TRACK_THREAD)
		row.thread = track->thread;
	else if (above && above->kind == TS_PERFETTO_TRACK_THREAD)
		row.thread = above->thread;
	row.name = track->name;
	row.category = track->category;
	row.shape = ts_writer_shape(p->writer, &field, 1);
	ts_perfetto_add(p, TS_TABLE_COUNTER, &row, &value);
}

static void add_integer(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			size_t index, int64_t time, int64_t value)
{
	double real = 0;

	make_absolute(&p->tracks[index - 1], sequence, &value, &real);
	add_row(p, index, time, TS_ARG_INT, value);
}

static void add_real(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
		     size_t index, int64_t time, double value)
{
	int64_t integer = 0, bits;

	make_absolute(&p->tracks[index - 1], sequence, &integer, &value);
	memcpy(&bits, &value, sizeof(bits));
	add_row(p, index, time, TS_ARG_DOUBLE, bits);
}

int ts_perfetto_add_counter(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			    const struct ts_perfetto_event *event)
{
	struct ts_perfetto_track *track = &p->tracks[event->slot - 1];

	if (!event->value.number) {
		ts_perfetto_lose(p, &ts_perfetto_loss_counter, 1);
		return TS_OK;
	}
	if (!track->name)
		track->name = event->span.name;
	if (!track->category)
		track->category = event->span.category;
	if (event->value.number == 30)
		add_integer(p, sequence, event->slot, event->span.start,
			    (int64_t)event->value.value);
	else
		add_real(p, sequence, event->slot, event->span.start,
			 ts_proto_double(event->value.value));
	return TS_OK;
}

/* ---- further values ---- */

/* Iterates over a repeated number field, packed or not. */
struct numbers {
	struct ts_proto_reader message, packed;
	uint32_t number;
	bool is_fixed;
};

static bool next_number(struct numbers *numbers, uint64_t *ret_value)
{
	struct ts_proto_field field;

	for (;;) {
		if (numbers->packed.next < numbers->packed.end) {
			if (!numbers->is_fixed)
				return ts_proto_varint(&numbers->packed, ret_value);
			if (numbers->packed.end - numbers->packed.next < 8)
				return false;
			memcpy(ret_value, numbers->packed.next, 8);
			numbers->packed.next += 8;
			return true;
		}
		do {
			if (!ts_proto_next(&numbers->message, &field))
				return false;
		} while (field.number != numbers->number);
		if (field.type != TS_PROTO_BYTES) {
			*ret_value = field.value;
			return true;
		}
		numbers->packed = ts_proto_message(&field);
	}
}

static struct numbers numbers_of(const struct ts_perfetto_event *event, uint32_t number,
				 bool is_fixed)
{
	return (struct numbers){ .message = ts_proto_message(event->from),
				 .number = number,
				 .is_fixed = is_fixed };
}

/* Thread times are part of the event. */
static bool take_thread_counter(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
				size_t index, int64_t value, struct ts_perfetto_event *event)
{
	struct ts_perfetto_track *track = &p->tracks[index - 1];
	double real = 0;

	if (!track->is_thread_time && !track->is_instructions)
		return false;
	make_absolute(track, sequence, &value, &real);
	if (track->is_thread_time)
		event->span.thread_time = value;
	else
		event->span.instructions = value;
	return true;
}

static void add_extra(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
		      struct ts_perfetto_event *event, bool is_real)
{
	struct numbers uuids = numbers_of(event, is_real ? 45 : 31, false);
	struct numbers values = numbers_of(event, is_real ? 46 : 12, is_real);
	const struct ts_text *defaults = sequence->extra_tracks;
	size_t at = is_real ? (size_t)sequence->extra_integer : 0;
	size_t end = !defaults ? 0
		     : is_real ? defaults->length / 8
			       : (size_t)sequence->extra_integer;
	bool use_defaults = true;
	uint64_t uuid, value;

	while (next_number(&values, &value)) {
		size_t index;
		bool has_track = next_number(&uuids, &uuid);

		if (has_track)
			use_defaults = false;
		if (!has_track && use_defaults && at < end) {
			memcpy(&uuid, defaults->data + 8 * at++, sizeof(uuid));
			has_track = true;
		}
		index = has_track ? ts_perfetto_track(p, uuid) : 0;
		if (!index)
			ts_perfetto_lose(p, &ts_perfetto_loss_counter, 1);
		else if (is_real)
			add_real(p, sequence, index, event->span.start, ts_proto_double(value));
		else if (!take_thread_counter(p, sequence, index, (int64_t)value, event))
			add_integer(p, sequence, index, event->span.start, (int64_t)value);
	}
}

void ts_perfetto_add_extra(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			   struct ts_perfetto_event *event)
{
	if (event->lists & TS_PERFETTO_EXTRA_INTEGER)
		add_extra(p, sequence, event, false);
	if (event->lists & TS_PERFETTO_EXTRA_REAL)
		add_extra(p, sequence, event, true);
}
