/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call stacks: mappings, frames and frame lists (outermost first), identified by iid; and samples.
 */
#include "import/perfetto/perfetto_import.h"
#include "import/perfetto/perfetto_kinds.h"

/* ---- binaries ---- */

static uint32_t mapping_row(struct ts_perfetto *p, const struct ts_mapping_row *row)
{
	if (ts_writer_add(p->writer, TS_TABLE_MAPPING, row, NULL))
		return 0;
	return (uint32_t)ts_writer_rows(p->writer, TS_TABLE_MAPPING);
}

/* A path is a list of names. */
static uint32_t read_path(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			  const struct ts_proto_field *from)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;

	ts_text_clear(&p->text);
	while (ts_proto_next(&message, &field)) {
		struct ts_proto_reader packed = ts_proto_message(&field);
		uint64_t iid = field.value;

		if (field.number != 7)
			continue;
		do {
			const char *text;
			size_t length = 0;
			uint32_t name;

			if (field.type == TS_PROTO_BYTES &&
			    (packed.next == packed.end || !ts_proto_varint(&packed, &iid)))
				break;
			name = ts_perfetto_interned_string(p, sequence, TS_PERFETTO_MAPPING_PATH,
							   iid);
			text = name ? ts_writer_text(p->writer, name, &length) : NULL;
			/* A crafted file may refer to a long one repeatedly. */
			if (!length || p->text.length + length > 65536)
				continue;
			if (text[0] != '/' && text[0] != '[')
				ts_text_append_char(&p->text, '/');
			ts_text_append(&p->text, text, length);
		} while (field.type == TS_PROTO_BYTES);
	}
	return p->text.length ? ts_writer_string(p->writer, p->text.data, p->text.length) : 0;
}

int ts_perfetto_read_mapping(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
			     const struct ts_proto_field *from)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_mapping_row row = ts_mapping_none;
	struct ts_proto_field field;
	uint64_t iid = 0, start = 0, end = 0;

	while (ts_proto_next(&message, &field)) {
		switch (field.number) {
		case 1:
			iid = field.value;
			break;
		case 2:
			if (field.value)
				row.build_id = ts_perfetto_interned_string(
					p, sequence, TS_PERFETTO_BUILD_ID, field.value);
			break;
		case 4:
			start = field.value;
			break;
		case 5:
			end = field.value;
			break;
		case 8:
			row.file_offset = (int64_t)field.value;
			break;
		}
	}
	row.path = read_path(p, sequence, from);
	if (end > start) {
		row.address = (int64_t)start;
		row.bytes = (int64_t)(end - start);
	}
	return ts_perfetto_intern(sequence, TS_PERFETTO_MAPPING, iid, mapping_row(p, &row));
}

/* ---- frames ---- */

static enum ts_frame_kind frame_kind(uint64_t kind)
{
	switch (kind) {
	case 1:
		return TS_FRAME_NATIVE;
	case 2:
		return TS_FRAME_KERNEL;
	case 3:
	case 4:
		return TS_FRAME_SCRIPT;
	default:
		return TS_FRAME_UNKNOWN;
	}
}

int ts_perfetto_read_frame(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
			   const struct ts_proto_field *from)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_frame_row row = ts_frame_none;
	struct ts_proto_field field;
	uint64_t iid = 0, mapping;

	while (ts_proto_next(&message, &field)) {
		switch (field.number) {
		case 1:
			iid = field.value;
			break;
		case 2:
			if (field.value)
				row.name = ts_perfetto_interned_string(
					p, sequence, TS_PERFETTO_FUNCTION, field.value);
			break;
		case 3:
			if (field.value && ts_perfetto_interned(p, sequence, TS_PERFETTO_MAPPING,
								field.value, &mapping))
				row.mapping = (int64_t)mapping;
			break;
		case 4:
			row.pc = (int64_t)field.value;
			break;
		case 5:
			if (field.value)
				row.file = ts_perfetto_interned_string(
					p, sequence, TS_PERFETTO_SOURCE_PATH, field.value);
			break;
		case 6:
			row.line = (int64_t)field.value;
			break;
		case 7:
			row.kind = frame_kind(field.value);
			break;
		case 8:
			row.category = ts_perfetto_string(p, &field);
			break;
		}
	}
	return ts_perfetto_intern(sequence, TS_PERFETTO_FRAME, iid,
				  ts_writer_frame(p->writer, &row));
}

/* ---- stacks ---- */

int ts_perfetto_read_stack(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
			   const struct ts_proto_field *from)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;
	uint64_t iid = 0, frame;
	uint32_t stack = 0;

	while (ts_proto_next(&message, &field)) {
		struct ts_proto_reader packed = ts_proto_message(&field);
		uint64_t id = field.value;

		if (field.number == 1)
			iid = field.value;
		if (field.number != 2)
			continue;
		do {
			if (field.type == TS_PROTO_BYTES &&
			    (packed.next == packed.end || !ts_proto_varint(&packed, &id)))
				break;
			if (ts_perfetto_interned(p, sequence, TS_PERFETTO_FRAME, id, &frame))
				stack = ts_writer_stack(p->writer, stack, (uint32_t)frame);
		} while (field.type == TS_PROTO_BYTES);
	}
	return ts_perfetto_intern(sequence, TS_PERFETTO_STACK, iid, stack);
}

uint32_t ts_perfetto_inline_stack(struct ts_perfetto *p, const struct ts_proto_field *from)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field, inner;
	uint32_t stack = 0;

	while (ts_proto_next(&message, &field)) {
		struct ts_proto_reader frame = ts_proto_message(&field);
		struct ts_frame_row row = ts_frame_none;

		if (field.number != 1)
			continue;
		while (ts_proto_next(&frame, &inner)) {
			if (inner.number == 1)
				row.name = ts_perfetto_string(p, &inner);
			else if (inner.number == 2)
				row.file = ts_perfetto_string(p, &inner);
			else if (inner.number == 3)
				row.line = (int64_t)inner.value;
		}
		stack = ts_writer_stack(p->writer, stack, ts_writer_frame(p->writer, &row));
	}
	return stack;
}

/* ---- samples ---- */

void ts_perfetto_read_perf_sample(struct ts_perfetto *p,
				  const struct ts_perfetto_sequence *sequence,
				  const struct ts_perfetto_packet *packet, int64_t time)
{
	struct ts_proto_reader message = ts_proto_message(&packet->data);
	struct ts_sample_row row = ts_sample_none;
	struct ts_proto_field field;
	int64_t pid = TS_ABSENT, tid = TS_ABSENT;
	bool is_sample = true, has_stack = false;
	uint64_t stack;

	while (ts_proto_next(&message, &field)) {
		switch (field.number) {
		case 1:
			row.cpu = (int64_t)field.value;
			break;
		case 2:
			pid = (int32_t)field.value;
			break;
		case 3:
			tid = (int32_t)field.value;
			break;
		case 4:
			has_stack = true;
			if (ts_perfetto_interned(p, sequence, TS_PERFETTO_STACK, field.value,
						 &stack))
				row.stack = (int64_t)stack;
			break;
		case 17:
			ts_perfetto_lose(p, &ts_perfetto_loss_kernel, field.value);
			is_sample = false;
			break;
		case 18:
			ts_perfetto_lose(p, &ts_perfetto_loss_skipped, 1);
			is_sample = false;
			break;
		case 19:
			is_sample = false;
			break;
		}
	}
	if (!is_sample && !has_stack)
		return;
	row.start = time;
	if (pid != TS_ABSENT && tid != TS_ABSENT)
		row.thread = ts_perfetto_thread(p, packet->machine, pid, tid);
	row.weight = 1;
	row.name = sequence->perf_name ? sequence->perf_name : ts_perfetto_text(p, "perf");
	ts_perfetto_add(p, TS_TABLE_SAMPLE, &row, NULL);
}

/* The thread of a sequence: of its default track, or of the legacy descriptor. */
static int64_t sequence_thread(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			       uint32_t machine)
{
	size_t track;

	if (sequence->has_track) {
		track = ts_perfetto_track(p, sequence->track);
		return track ? ts_perfetto_track_thread(p, track) : 0;
	}
	if (sequence->pid == TS_ABSENT || sequence->tid == TS_ABSENT)
		return 0;
	return ts_perfetto_thread(p, machine, sequence->pid, sequence->tid);
}

/* The next number of a packed or unpacked list; false at its end. */
static bool next_number(struct ts_proto_reader *message, struct ts_proto_reader *packed,
			uint32_t number, uint64_t *ret_value)
{
	struct ts_proto_field field;

	while (packed->next >= packed->end) {
		if (!ts_proto_next(message, &field))
			return false;
		if (field.number != number)
			continue;
		*ret_value = field.value;
		if (field.type != TS_PROTO_BYTES)
			return true;
		*packed = ts_proto_message(&field);
	}
	return ts_proto_varint(packed, ret_value);
}

void ts_perfetto_read_samples(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
			      const struct ts_perfetto_packet *packet, int64_t time)
{
	struct ts_proto_reader stacks = ts_proto_message(&packet->data), times = stacks;
	struct ts_proto_reader packed_stacks = { 0 }, packed_times = { 0 };
	struct ts_sample_row row = ts_sample_none;
	uint64_t iid, delta_us, stack;
	int64_t delta;

	/* Without a timestamp the packet has the time of the events of its sequence. */
	if (!packet->has_timestamp && sequence->has_time &&
	    !ts_perfetto_time(p, sequence, TS_PERFETTO_MONOTONIC, (uint64_t)sequence->time_ns,
			      &time))
		return;
	row.thread = sequence_thread(p, sequence, packet->machine);
	row.weight = 1;
	while (next_number(&stacks, &packed_stacks, 1, &iid)) {
		if (next_number(&times, &packed_times, 2, &delta_us) &&
		    (__builtin_mul_overflow((int64_t)delta_us, 1000, &delta) ||
		     __builtin_add_overflow(time, delta, &time) || time == TS_ABSENT)) {
			ts_perfetto_lose(p, &ts_perfetto_loss_time, 1);
			return;
		}
		row.start = time;
		row.stack = ts_perfetto_interned(p, sequence, TS_PERFETTO_STACK, iid, &stack)
				    ? (int64_t)stack
				    : 0;
		ts_perfetto_add(p, TS_TABLE_SAMPLE, &row, NULL);
	}
}
