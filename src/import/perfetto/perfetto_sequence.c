/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences: packets of one writer, in order. Interned data and defaults stay valid until they are
 * cleared.
 */
#include <stdlib.h>

#include "import/perfetto/perfetto_import.h"
#include "import/perfetto/perfetto_kinds.h"

#define FLAG_CLEARED 1u
#define FLAG_NEEDS_STATE 2u

static void forget(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence)
{
	if (sequence->interned)
		ts_pairmap_clear(sequence->interned);
	if (sequence->extra_tracks)
		ts_text_clear(sequence->extra_tracks);
	sequence->extra_integer = 0;
	sequence->has_track = false;
	sequence->clock = 0;
	sequence->pid = sequence->tid = TS_ABSENT;
	sequence->has_time = false;
	sequence->time_ns = sequence->thread_time_ns = sequence->instructions = 0;
	sequence->generation = ++p->generations;
}

static struct ts_perfetto_sequence *find(struct ts_perfetto *p,
					 const struct ts_perfetto_packet *packet)
{
	uint64_t key = (uint64_t)packet->machine << 32 | packet->sequence_id;
	bool is_new;
	uint64_t *index;

	index = ts_map_insert(&p->sequence_index, key, &is_new);
	if (!index)
		return NULL;
	if (!is_new)
		return &p->sequences[*index];
	if (ts_grow_array((void **)&p->sequences, &p->sequence_capacity, p->sequence_count + 1,
			  sizeof(*p->sequences)))
		return NULL;
	*index = p->sequence_count++;
	p->sequences[*index] = (struct ts_perfetto_sequence){ .key = key };
	forget(p, &p->sequences[*index]);
	return &p->sequences[*index];
}

struct ts_perfetto_sequence *ts_perfetto_sequence(struct ts_perfetto *p,
						  const struct ts_perfetto_packet *packet,
						  bool *ret_usable)
{
	struct ts_perfetto_sequence *sequence = find(p, packet);

	if (!sequence)
		return NULL;
	if (TS_UNLIKELY(packet->dropped)) {
		/* The very first packet counts as a cleared state. */
		if (!packet->first)
			ts_perfetto_lose(p, &ts_perfetto_loss_dropped, 1);
		sequence->is_valid = false;
	}
	if (TS_UNLIKELY(packet->cleared || packet->flags & FLAG_CLEARED)) {
		forget(p, sequence);
		sequence->is_valid = true;
	}
	*ret_usable = sequence->is_valid || !(packet->flags & FLAG_NEEDS_STATE);
	return sequence;
}

void ts_perfetto_sequences_release(struct ts_perfetto *p)
{
	for (size_t i = 0; i < p->sequence_count; i++) {
		if (p->sequences[i].interned)
			ts_pairmap_release(p->sequences[i].interned);
		free(p->sequences[i].interned);
		if (p->sequences[i].extra_tracks)
			ts_text_release(p->sequences[i].extra_tracks);
		free(p->sequences[i].extra_tracks);
	}
	free(p->sequences);
	ts_map_release(&p->sequence_index);
}

/* ---- interned data ---- */

int ts_perfetto_intern(struct ts_perfetto_sequence *sequence, enum ts_perfetto_interned kind,
		       uint64_t iid, uint64_t value)
{
	if (!sequence->interned)
		sequence->interned = calloc(1, sizeof(*sequence->interned));
	if (!sequence->interned)
		return TS_ENOMEM;
	return ts_pairmap_put(sequence->interned, kind, iid, value);
}

bool ts_perfetto_interned(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			  enum ts_perfetto_interned kind, uint64_t iid, uint64_t *ret_value)
{
	if (TS_LIKELY(sequence->interned &&
		      ts_pairmap_get(sequence->interned, kind, iid, ret_value)))
		return true;
	ts_perfetto_lose(p, &ts_perfetto_loss_iid, 1);
	return false;
}

uint32_t ts_perfetto_interned_string(struct ts_perfetto *p,
				     const struct ts_perfetto_sequence *sequence,
				     enum ts_perfetto_interned kind, uint64_t iid)
{
	uint64_t value;

	return ts_perfetto_interned(p, sequence, kind, iid, &value) ? (uint32_t)value : 0;
}

/* Build ids are shown in hexadecimal; some writers convert them already. */
static uint32_t build_id(struct ts_perfetto *p, const struct ts_proto_field *text)
{
	static const char digits[] = "0123456789abcdef";
	bool is_hex = text->length >= 16;

	for (size_t i = 0; i < text->length && is_hex; i++) {
		char c = text->bytes[i];

		is_hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
	}
	if (is_hex || !text->length)
		return ts_perfetto_string(p, text);
	ts_text_clear(&p->text);
	for (size_t i = 0; i < text->length; i++) {
		ts_text_append_char(&p->text, digits[(unsigned char)text->bytes[i] >> 4]);
		ts_text_append_char(&p->text, digits[(unsigned char)text->bytes[i] & 15]);
	}
	return p->text.failed ? 0 : ts_writer_string(p->writer, p->text.data, p->text.length);
}

/* An entry with iid and text. */
static int read_text(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
		     const struct ts_proto_field *entry)
{
	enum ts_perfetto_interned kind = (enum ts_perfetto_interned)entry->number;
	struct ts_proto_reader message = ts_proto_message(entry);
	struct ts_proto_field field, text = { 0 };
	uint64_t iid = 0, value;

	while (ts_proto_next(&message, &field)) {
		if (field.number == 1)
			iid = field.value;
		else if (field.number == 2 && field.type == TS_PROTO_BYTES)
			text = field;
	}
	if (kind == TS_PERFETTO_BUILD_ID)
		value = build_id(p, &text);
	else
		value = ts_import_string(p->import, text.bytes ? text.bytes : "", text.length);
	return ts_perfetto_intern(sequence, kind, iid, value);
}

static int read_location(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
			 const struct ts_proto_field *entry)
{
	struct ts_proto_reader message = ts_proto_message(entry);
	struct ts_perfetto_location location = { .line = TS_ABSENT };
	struct ts_proto_field field;
	uint64_t iid = 0;

	if (ts_grow_array((void **)&p->locations, &p->location_capacity, p->location_count + 1,
			  sizeof(*p->locations)))
		return TS_ENOMEM;
	while (ts_proto_next(&message, &field)) {
		switch (field.number) {
		case 1:
			iid = field.value;
			break;
		case 2:
			location.file = ts_perfetto_string(p, &field);
			break;
		case 3:
			location.function = ts_perfetto_string(p, &field);
			break;
		case 4:
			location.line = (int64_t)field.value;
			break;
		}
	}
	p->locations[p->location_count] = location;
	return ts_perfetto_intern(sequence, TS_PERFETTO_LOCATION, iid, p->location_count++);
}

static int read_gpu_spec(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
			 const struct ts_proto_field *entry)
{
	struct ts_proto_reader message = ts_proto_message(entry);
	struct ts_proto_field field;
	uint64_t iid = 0, name = 0, category = 0;

	while (ts_proto_next(&message, &field)) {
		switch (field.number) {
		case 1:
			iid = field.value;
			break;
		case 2:
			name = ts_perfetto_string(p, &field);
			break;
		case 4:
			category = field.value & 0xff;
			break;
		}
	}
	return ts_perfetto_intern(sequence, TS_PERFETTO_GPU_SPEC, iid, name | category << 32);
}

static int read_gpu_context(struct ts_perfetto_sequence *sequence,
			    const struct ts_proto_field *entry)
{
	struct ts_proto_reader message = ts_proto_message(entry);
	struct ts_proto_field field;
	uint64_t iid = 0, pid = 0;

	while (ts_proto_next(&message, &field)) {
		if (field.number == 1)
			iid = field.value;
		else if (field.number == 2)
			pid = field.value;
	}
	return ts_perfetto_intern(sequence, TS_PERFETTO_GPU_CONTEXT, iid, pid);
}

static int read_gpu_counters(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
			     const struct ts_proto_field *entry)
{
	struct ts_proto_reader message = ts_proto_message(entry);
	struct ts_proto_field field, descriptor = { 0 };
	uint64_t iid = 0, number = ++p->descriptors;
	int rc;

	while (ts_proto_next(&message, &field)) {
		if (field.number == 1)
			iid = field.value;
		else if (field.number == 2)
			descriptor = field;
	}
	rc = ts_perfetto_intern(sequence, TS_PERFETTO_GPU_COUNTERS, iid, number);
	return rc ? rc : ts_perfetto_read_gpu_descriptor(p, number, &descriptor);
}

/* The round in which an entry is read: its references are in earlier ones. 0: not needed. */
static int round_of(uint32_t number)
{
	switch (number) {
	case TS_PERFETTO_CATEGORY:
	case TS_PERFETTO_NAME:
	case TS_PERFETTO_ARG_NAME:
	case TS_PERFETTO_LOCATION:
	case TS_PERFETTO_FUNCTION:
	case TS_PERFETTO_BUILD_ID:
	case TS_PERFETTO_MAPPING_PATH:
	case TS_PERFETTO_SOURCE_PATH:
	case TS_PERFETTO_LOG_BODY:
	case TS_PERFETTO_GPU_CONTEXT:
	case TS_PERFETTO_GPU_SPEC:
	case TS_PERFETTO_KERNEL_SYMBOL:
	case TS_PERFETTO_ARG_STRING:
	case TS_PERFETTO_CORRELATION:
	case TS_PERFETTO_GPU_COUNTERS:
		return 1;
	case TS_PERFETTO_MAPPING:
		return 2;
	case TS_PERFETTO_FRAME:
		return 3;
	case TS_PERFETTO_STACK:
		return 4;
	default:
		return 0;
	}
}

static int read_entry(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
		      const struct ts_proto_field *entry)
{
	switch (entry->number) {
	case TS_PERFETTO_LOCATION:
		return read_location(p, sequence, entry);
	case TS_PERFETTO_GPU_CONTEXT:
		return read_gpu_context(sequence, entry);
	case TS_PERFETTO_GPU_SPEC:
		return read_gpu_spec(p, sequence, entry);
	case TS_PERFETTO_GPU_COUNTERS:
		return read_gpu_counters(p, sequence, entry);
	case TS_PERFETTO_MAPPING:
		return ts_perfetto_read_mapping(p, sequence, entry);
	case TS_PERFETTO_FRAME:
		return ts_perfetto_read_frame(p, sequence, entry);
	case TS_PERFETTO_STACK:
		return ts_perfetto_read_stack(p, sequence, entry);
	default:
		return read_text(p, sequence, entry);
	}
}

int ts_perfetto_read_interned(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
			      const struct ts_proto_field *field)
{
	/* TraceSmith exports store stacks as rows. */
	int rounds = 1, last = p->native ? 1 : 4, rc = TS_OK;

	for (int round = 1; round <= rounds && round <= last && !rc; round++) {
		struct ts_proto_reader message = ts_proto_message(field);
		struct ts_proto_field entry;

		while (!rc && ts_proto_next(&message, &entry)) {
			int at = entry.type == TS_PROTO_BYTES ? round_of(entry.number) : 0;

			rounds = TS_MAX(rounds, at);
			if (at == round)
				rc = read_entry(p, sequence, &entry);
		}
		if (message.failed && round == 1)
			ts_perfetto_lose(p, &ts_perfetto_loss_broken, 1);
	}
	return rc;
}

/* ---- defaults ---- */

static void read_track_defaults(struct ts_perfetto_sequence *sequence,
				const struct ts_proto_field *from)
{
	struct ts_proto_reader message;
	struct ts_proto_field field;
	uint64_t count = 0;

	if (!sequence->extra_tracks)
		sequence->extra_tracks = calloc(1, sizeof(*sequence->extra_tracks));
	if (!sequence->extra_tracks)
		return;
	ts_text_clear(sequence->extra_tracks);
	for (uint32_t number = 31; number <= 45; number += 14) {
		message = ts_proto_message(from);
		while (ts_proto_next(&message, &field)) {
			struct ts_proto_reader packed = ts_proto_message(&field);
			uint64_t value = field.value;

			if (field.number == 11) {
				sequence->track = field.value;
				sequence->has_track = true;
			}
			if (field.number != number)
				continue;
			do {
				if (field.type == TS_PROTO_BYTES &&
				    (packed.next == packed.end ||
				     !ts_proto_varint(&packed, &value)))
					break;
				ts_text_append(sequence->extra_tracks, &value, sizeof(value));
				count++;
			} while (field.type == TS_PROTO_BYTES);
		}
		if (number == 31)
			sequence->extra_integer = count;
	}
}

/* PerfSampleDefaults: what the samples of this sequence count. */
static void read_perf_defaults(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
			       const struct ts_proto_field *from)
{
	struct ts_proto_reader message = ts_proto_message(from), timebase;
	struct ts_proto_field field, inner;

	while (ts_proto_next(&message, &field)) {
		if (field.number != 1)
			continue;
		timebase = ts_proto_message(&field);
		while (ts_proto_next(&timebase, &inner))
			if (inner.number == 10)
				sequence->perf_name = ts_perfetto_string(p, &inner);
	}
}

void ts_perfetto_read_defaults(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
			       const struct ts_proto_field *field)
{
	struct ts_proto_reader message = ts_proto_message(field);
	struct ts_proto_field inner;

	sequence->has_track = false;
	sequence->clock = 0;
	while (ts_proto_next(&message, &inner)) {
		if (inner.number == 58)
			sequence->clock = (uint32_t)inner.value;
		else if (inner.number == 11)
			read_track_defaults(sequence, &inner);
		else if (inner.number == 12)
			read_perf_defaults(p, sequence, &inner);
	}
}
