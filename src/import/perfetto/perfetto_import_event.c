/* SPDX-License-Identifier: Apache-2.0 */
/* Track events: type, time, track and arguments. Begins and ends go to perfetto_slice.c. */
#include <inttypes.h>

#include "import/perfetto/perfetto_import.h"
#include "import/perfetto/perfetto_import_event.h"
#include "import/perfetto/perfetto_kinds.h"

enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4, TYPE_STATE = 5 };

/* ---- reading ---- */

/* Several categories become one text. */
static void add_category(struct ts_perfetto *p, struct ts_perfetto_event *event, uint32_t category)
{
	const char *text;
	size_t length = 0;

	if (TS_LIKELY(!event->span.category) || !category) {
		event->span.category = category ? category : event->span.category;
		return;
	}
	ts_text_clear(&p->text);
	text = ts_writer_text(p->writer, event->span.category, &length);
	ts_text_append(&p->text, text ? text : "", text ? length : 0);
	ts_text_append_char(&p->text, ',');
	text = ts_writer_text(p->writer, category, &length);
	ts_text_append(&p->text, text ? text : "", text ? length : 0);
	/* A crafted file may have millions in one event. */
	if (!p->text.failed && p->text.length < 4096)
		event->span.category = ts_writer_string(p->writer, p->text.data, p->text.length);
}

static void read_category_iids(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			       const struct ts_proto_field *field, struct ts_perfetto_event *event)
{
	struct ts_proto_reader packed = ts_proto_message(field);
	uint64_t iid = field->value;

	if (TS_LIKELY(field->type != TS_PROTO_BYTES))
		add_category(p, event,
			     ts_perfetto_interned_string(p, sequence, TS_PERFETTO_CATEGORY, iid));
	while (packed.next < packed.end && ts_proto_varint(&packed, &iid))
		add_category(p, event,
			     ts_perfetto_interned_string(p, sequence, TS_PERFETTO_CATEGORY, iid));
}

static void read_legacy(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			const struct ts_proto_field *from, struct ts_perfetto_event *event)
{
	struct ts_perfetto_legacy *legacy = &event->legacy;
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;

	event->has_legacy = true;
	*legacy = (struct ts_perfetto_legacy){ .pid = TS_ABSENT, .tid = TS_ABSENT };
	while (ts_proto_next(&message, &field)) {
		switch (field.number) {
		case 1:
			event->span.name = ts_perfetto_interned_string(
				p, sequence, TS_PERFETTO_NAME, field.value);
			break;
		case 2:
			legacy->phase = (int32_t)field.value;
			break;
		case 3:
			legacy->duration_us = (int64_t)field.value;
			legacy->has_duration = true;
			break;
		case 4:
			ts_row_args_add(&p->args, p->key_thread_dur, TS_ARG_INT,
					(int64_t)(field.value * 1000));
			break;
		case 15:
			ts_row_args_add(&p->args, p->key_instruction_delta, TS_ARG_INT,
					(int64_t)field.value);
			break;
		case 6:
		case 10:
		case 11:
			legacy->id = field.value;
			legacy->id_kind = field.number;
			break;
		case 7:
			legacy->scope = ts_perfetto_string(p, &field);
			break;
		case 8:
			legacy->bind_id = field.value;
			legacy->has_bind = true;
			break;
		case 12:
			legacy->enclosing = field.value != 0;
			break;
		case 13:
			legacy->direction = (uint32_t)field.value;
			break;
		case 14:
			legacy->instant_scope = (uint32_t)field.value;
			break;
		case 18:
			legacy->pid = (int32_t)field.value;
			break;
		case 19:
			legacy->tid = (int32_t)field.value;
			break;
		}
	}
}

static void keep_list(struct ts_perfetto_event *event, unsigned int list,
		      const struct ts_proto_field *field)
{
	if (!event->lists)
		event->first_list = *field;
	event->lists |= list;
}

/* Rare fields, kept out of the hot path. */
static void read_rare_field(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			    const struct ts_proto_field *field, struct ts_perfetto_event *event)
{
	uint64_t value;

	switch (field->number) {
	case 2:
		event->thread_time_us = (int64_t)field->value;
		event->has_thread_delta = true;
		break;
	case 17:
		event->thread_time_us = (int64_t)field->value;
		event->has_thread_absolute = true;
		break;
	case 8:
		event->instructions = (int64_t)field->value;
		event->has_instructions_delta = true;
		break;
	case 20:
		event->span.instructions = (int64_t)field->value;
		break;
	case 31:
	case 12:
		keep_list(event, TS_PERFETTO_EXTRA_INTEGER, field);
		break;
	case 45:
	case 46:
		keep_list(event, TS_PERFETTO_EXTRA_REAL, field);
		break;
	case 36:
	case 42:
	case 47:
	case 48:
		keep_list(event, TS_PERFETTO_FLOWS, field);
		break;
	case 55:
		event->span.stack = ts_perfetto_inline_stack(p, field);
		break;
	case 56:
		if (ts_perfetto_interned(p, sequence, TS_PERFETTO_STACK, field->value, &value))
			event->span.stack = (uint32_t)value;
		break;
	case 57:
		ts_row_args_add(&p->args, ts_perfetto_text(p, "callstack_weight"), TS_ARG_DOUBLE,
				(int64_t)field->value);
		break;
	default:
		ts_perfetto_read_typed(p, sequence, field);
	}
}

static bool read_fields(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			const struct ts_proto_field *from, struct ts_perfetto_event *event)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;

	while (ts_proto_next(&message, &field)) {
		switch (field.number) {
		case 1:
			event->time_us = (int64_t)field.value;
			event->has_delta = true;
			break;
		case 16:
			event->time_us = (int64_t)field.value;
			event->has_absolute = true;
			break;
		case 3:
			read_category_iids(p, sequence, &field, event);
			break;
		case 4:
			ts_perfetto_read_annotation(p, sequence, &field);
			break;
		case 6:
			read_legacy(p, sequence, &field, event);
			break;
		case 9:
			event->type = (uint32_t)field.value;
			break;
		case 10:
			event->span.name = ts_perfetto_interned_string(
				p, sequence, TS_PERFETTO_NAME, field.value);
			break;
		case 11:
			event->track = field.value;
			event->has_track = true;
			break;
		case 22:
			add_category(p, event, ts_perfetto_string(p, &field));
			break;
		case 23:
			event->span.name = ts_perfetto_string(p, &field);
			break;
		case 30:
			event->value = field;
			break;
		case 44:
			event->value = field;
			break;
		default:
			read_rare_field(p, sequence, &field, event);
		}
	}
	return !message.failed;
}

/* ---- when ---- */

static bool add_us(int64_t *ns, int64_t us)
{
	int64_t more;

	return !__builtin_mul_overflow(us, 1000, &more) && !__builtin_add_overflow(*ns, more, ns);
}

/* Thread time uses the running times of the sequence too. */
static void find_thread_time(struct ts_perfetto_sequence *sequence, struct ts_perfetto_event *event)
{
	if (event->has_thread_delta && add_us(&sequence->thread_time_ns, event->thread_time_us))
		event->span.thread_time = sequence->thread_time_ns;
	if (event->has_thread_absolute) {
		event->span.thread_time = 0;
		if (!add_us(&event->span.thread_time, event->thread_time_us))
			event->span.thread_time = TS_ABSENT;
	}
	if (event->has_instructions_delta &&
	    !__builtin_add_overflow(sequence->instructions, event->instructions,
				    &sequence->instructions))
		event->span.instructions = sequence->instructions;
}

/* Events have the packet's time, or their own in the legacy clock: monotonic microseconds. */
static bool find_time(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
		      const struct ts_perfetto_packet *packet, struct ts_perfetto_event *event)
{
	int64_t ns = 0;

	if (TS_UNLIKELY(event->has_thread_delta || event->has_thread_absolute ||
			event->has_instructions_delta))
		find_thread_time(sequence, event);
	if (TS_LIKELY(!event->has_delta && !event->has_absolute)) {
		if (!ts_perfetto_packet_time(p, sequence, packet, &event->span.start))
			return false;
		if (event->span.start == TS_ABSENT)
			event->span.start = p->last_time;
		return true;
	}
	if (event->has_delta ? !add_us(&sequence->time_ns, event->time_us)
			     : !add_us(&ns, event->time_us)) {
		ts_perfetto_lose(p, &ts_perfetto_loss_time, 1);
		return false;
	}
	if (event->has_delta)
		ns = sequence->time_ns;
	if (ns < 0) {
		ts_perfetto_lose(p, &ts_perfetto_loss_time, 1);
		return false;
	}
	return ts_perfetto_time(p, sequence, TS_PERFETTO_MONOTONIC, (uint64_t)ns,
				&event->span.start);
}

/* ---- where ---- */

static bool find_track(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
		       const struct ts_perfetto_packet *packet, struct ts_perfetto_event *event)
{
	const struct ts_perfetto_legacy *legacy = &event->legacy;
	int64_t pid = sequence->pid, tid = sequence->tid;
	bool is_other = false;

	if (event->has_legacy && (legacy->pid != TS_ABSENT || legacy->tid != TS_ABSENT)) {
		pid = legacy->pid != TS_ABSENT ? legacy->pid : pid;
		tid = legacy->tid != TS_ABSENT ? legacy->tid : tid;
		is_other = pid != TS_ABSENT && tid != TS_ABSENT;
	}
	if (!is_other && (event->has_track || sequence->has_track)) {
		event->slot =
			ts_perfetto_track(p, event->has_track ? event->track : sequence->track);
	} else if (pid != TS_ABSENT && tid != TS_ABSENT) {
		/* A thread without a track in the file. */
		event->slot = ts_perfetto_async_track(
			p, (uint64_t)packet->machine << 32 | (uint32_t)pid, (uint64_t)tid);
		if (event->slot && !p->tracks[event->slot - 1].thread) {
			struct ts_perfetto_track *track = &p->tracks[event->slot - 1];

			track->kind = TS_PERFETTO_TRACK_THREAD;
			track->process = ts_perfetto_process(p, packet->machine, pid);
			track->thread = ts_perfetto_thread(p, packet->machine, pid, tid);
		}
	} else {
		event->slot = ts_perfetto_track(p, 0);
	}
	return event->slot != 0;
}

/* ---- what ---- */

static void add_mark(struct ts_perfetto *p, const struct ts_perfetto_event *event)
{
	static const enum ts_mark_scope scopes[] = { TS_SCOPE_UNSAID, TS_SCOPE_GLOBAL,
						     TS_SCOPE_PROCESS, TS_SCOPE_THREAD };
	struct ts_mark_row row = ts_mark_none;
	uint8_t kind = p->tracks[event->slot - 1].kind;

	row.start = event->span.start;
	row.thread = event->span.thread;
	row.name = event->span.name;
	row.category = event->span.category;
	row.stack = event->span.stack;
	if (event->has_legacy && event->legacy.instant_scope < TS_ARRAY_SIZE(scopes))
		row.scope = scopes[event->legacy.instant_scope];
	if (row.scope == TS_SCOPE_UNSAID)
		row.scope = kind == TS_PERFETTO_TRACK_THREAD    ? TS_SCOPE_THREAD
			    : kind == TS_PERFETTO_TRACK_PROCESS ? TS_SCOPE_PROCESS
								: TS_SCOPE_UNSAID;
	row.shape = ts_row_args_shape(&p->args, p->writer);
	ts_perfetto_add(p, TS_TABLE_MARK, &row, p->args.values);
}

static int add_state_event(struct ts_perfetto *p)
{
	ts_perfetto_lose(p, &ts_perfetto_loss_state_event, 1);
	return TS_OK;
}

static int add_event(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
		     struct ts_perfetto_event *event)
{
	uint32_t type = event->type;

	if (type == TYPE_COUNTER)
		return ts_perfetto_add_counter(p, sequence, event);
	event->span.thread = ts_perfetto_track_thread(p, event->slot);
	if (event->lists & TS_PERFETTO_FLOWS)
		ts_perfetto_add_flows(p, event);
	if (type == TYPE_BEGIN)
		return ts_perfetto_begin(p, event->slot, &event->span);
	if (type == TYPE_END)
		return ts_perfetto_end(p, event->slot, &event->span);
	if (type == TYPE_STATE)
		return add_state_event(p);
	if (type == TYPE_INSTANT) {
		add_mark(p, event);
		return TS_OK;
	}
	if (event->has_legacy)
		return ts_perfetto_add_legacy(p, event);
	ts_perfetto_lose(p, &ts_perfetto_loss_event, 1);
	return TS_OK;
}

void ts_perfetto_add_instant(struct ts_perfetto *p, const struct ts_perfetto_event *event)
{
	add_mark(p, event);
}

int ts_perfetto_read_event(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
			   const struct ts_perfetto_packet *packet)
{
	struct ts_perfetto_event event;

	event = (struct ts_perfetto_event){
		.from = &packet->data,
		.span = { .thread_time = TS_ABSENT, .instructions = TS_ABSENT },
	};
	ts_row_args_clear(&p->args);
	if (!read_fields(p, sequence, &packet->data, &event)) {
		ts_perfetto_lose(p, &ts_perfetto_loss_broken, 1);
		return TS_OK;
	}
	if (!find_time(p, sequence, packet, &event))
		return TS_OK;
	p->entities.time = event.span.start;
	if (!find_track(p, sequence, packet, &event))
		return TS_ENOMEM;
	if (TS_UNLIKELY(event.lists & (TS_PERFETTO_EXTRA_INTEGER | TS_PERFETTO_EXTRA_REAL)))
		ts_perfetto_add_extra(p, sequence, &event);
	return add_event(p, sequence, &event);
}
