/* SPDX-License-Identifier: Apache-2.0 */
/* Flows between events, and legacy (Chrome) events, whose phase gives their type. */
#include <inttypes.h>

#include "import/perfetto/perfetto_import_event.h"
#include "import/perfetto/perfetto_kinds.h"

static void add_flow(struct ts_perfetto *p, const struct ts_perfetto_event *event,
		     enum ts_flow_kind kind, uint64_t id, bool is_named, bool enclosing)
{
	struct ts_flow_row row = ts_flow_none;

	row.start = event->span.start;
	row.thread = event->span.thread;
	row.kind = kind;
	row.enclosing = enclosing;
	row.id = (int64_t)id;
	if (row.id == TS_ABSENT) {
		row.id_json = ts_perfetto_text(p, "9223372036854775808");
	}
	if (is_named) {
		row.name = event->span.name;
		row.category = event->span.category;
	}
	ts_writer_add(p->writer, TS_TABLE_FLOW, &row, NULL);
}

/* The first event of a flow is its start, each further one a step, unless marked as the end. */
static void add_point(struct ts_perfetto *p, const struct ts_perfetto_event *event, uint64_t id,
		      bool ends)
{
	uint64_t *is_open = ts_map_insert(&p->flows, id, NULL);
	enum ts_flow_kind kind;

	if (!is_open)
		return;
	kind = ends ? TS_FLOW_END : *is_open ? TS_FLOW_STEP : TS_FLOW_START;
	*is_open = !ends;
	add_flow(p, event, kind, id, false, true);
}

void ts_perfetto_add_flows(struct ts_perfetto *p, const struct ts_perfetto_event *event)
{
	struct ts_proto_reader message = ts_proto_message(event->from);
	struct ts_proto_field field;

	while (ts_proto_next(&message, &field)) {
		bool ends = field.number == 42 || field.number == 48;
		struct ts_proto_reader packed = ts_proto_message(&field);
		uint64_t id;

		if (!ends && field.number != 36 && field.number != 47)
			continue;
		if (field.type != TS_PROTO_BYTES)
			add_point(p, event, field.value, ends);
		else if (field.number >= 47)
			for (; packed.end - packed.next >= 8; packed.next += 8) {
				memcpy(&id, packed.next, sizeof(id));
				add_point(p, event, id, ends);
			}
		else
			while (packed.next < packed.end && ts_proto_varint(&packed, &id))
				add_point(p, event, id, ends);
	}
}

/* bind_id with a direction: in, out or both. */
static void add_bound(struct ts_perfetto *p, const struct ts_perfetto_event *event)
{
	static const enum ts_flow_kind kinds[] = { TS_FLOW_STEP, TS_FLOW_END, TS_FLOW_START,
						   TS_FLOW_STEP };
	uint32_t direction = event->legacy.direction;

	if (event->legacy.has_bind && direction && direction < TS_ARRAY_SIZE(kinds))
		add_flow(p, event, kinds[direction], event->legacy.bind_id, false, true);
}

/* Ids are distinguished by kind, by process if local, and by scope or category. */
static size_t async_index(struct ts_perfetto *p, struct ts_perfetto_event *event)
{
	const struct ts_perfetto_legacy *legacy = &event->legacy;
	uint64_t process =
		legacy->id_kind == 10 ? (uint64_t)ts_perfetto_track_process(p, event->slot) : 0;
	uint32_t scope = legacy->scope ? legacy->scope : event->span.category;
	uint64_t what = ts_hash_mix64(process << 8 | legacy->id_kind) ^ scope;

	ts_text_clear(&p->text);
	ts_text_printf(&p->text, "\"0x%" PRIx64 "\"", legacy->id);
	event->span.id = ts_writer_string(p->writer, p->text.data, p->text.length);
	/* Disjoint from thread keys, whose first half is machine and pid. */
	return ts_perfetto_async_track(p, what | UINT64_C(1) << 63, legacy->id);
}

static int add_async(struct ts_perfetto *p, struct ts_perfetto_event *event)
{
	size_t slot = async_index(p, event);

	if (!slot)
		return TS_ENOMEM;
	switch (event->legacy.phase) {
	case 'b':
	case 'S':
		return ts_perfetto_begin(p, slot, &event->span);
	case 'e':
	case 'F':
		return ts_perfetto_end(p, slot, &event->span);
	default:
		ts_perfetto_add_instant(p, event);
		return TS_OK;
	}
}

static void add_complete(struct ts_perfetto *p, struct ts_perfetto_event *event)
{
	int64_t duration = -1;

	if (event->legacy.has_duration &&
	    (__builtin_mul_overflow(event->legacy.duration_us, 1000, &duration) || duration < 0)) {
		ts_perfetto_lose(p, &ts_perfetto_loss_backwards, 1);
		duration = 0;
	}
	ts_perfetto_slice(p, &event->span, duration);
}

int ts_perfetto_add_legacy(struct ts_perfetto *p, struct ts_perfetto_event *event)
{
	add_bound(p, event);
	switch (event->legacy.phase) {
	case 'B':
		return ts_perfetto_begin(p, event->slot, &event->span);
	case 'E':
		return ts_perfetto_end(p, event->slot, &event->span);
	case 'X':
		add_complete(p, event);
		return TS_OK;
	case 'b':
	case 'e':
	case 'n':
	case 'S':
	case 'F':
	case 'T':
	case 'p':
		return add_async(p, event);
	case 'I':
	case 'i':
	case 'R':
		ts_perfetto_add_instant(p, event);
		return TS_OK;
	case 's':
		add_flow(p, event, TS_FLOW_START, event->legacy.id, true, true);
		return TS_OK;
	case 't':
		add_flow(p, event, TS_FLOW_STEP, event->legacy.id, true, true);
		return TS_OK;
	case 'f':
		add_flow(p, event, TS_FLOW_END, event->legacy.id, true, event->legacy.enclosing);
		return TS_OK;
	default:
		ts_perfetto_lose(p, &ts_perfetto_loss_phase, 1);
		return TS_OK;
	}
}
