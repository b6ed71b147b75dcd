/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks of a Perfetto file. A snapshot has the readings of several clocks at one instant; one of
 * the clocks is the trace's time, and each reading of another becomes a sync point of that clock.
 */
#include <stdlib.h>

#include "import/perfetto/perfetto_import.h"
#include "import/perfetto/perfetto_kinds.h"

/* First clock id that is local to a sequence. */
#define FIRST_OF_SEQUENCE 64
#define LAST_OF_SEQUENCE 127
/* Limit on clocks per snapshot. */
#define MAX_READINGS 64
/* Limit on deferred snapshots. */
#define MAX_WAITING ((size_t)64 << 10)
#define MAX_ROUNDS 256

struct reading {
	uint32_t clock;
	bool is_incremental;
	uint64_t unit_ns;
	uint64_t key; /* sequence, for sequence-local clocks */
	int64_t ns;
};

static uint64_t scope(const struct ts_perfetto_sequence *sequence, uint32_t clock)
{
	return clock >= FIRST_OF_SEQUENCE && clock <= LAST_OF_SEQUENCE ? sequence->key + 1 : 0;
}

static struct ts_perfetto_clock *find(struct ts_perfetto *p, uint64_t key, uint32_t clock)
{
	uint64_t index;

	return ts_pairmap_get(&p->clock_index, key, clock, &index) ? &p->clocks[index] : NULL;
}

static struct ts_perfetto_clock *find_or_make(struct ts_perfetto *p, uint64_t key, uint32_t clock)
{
	struct ts_perfetto_clock *known = find(p, key, clock);

	if (known)
		return known;
	if (ts_grow_array((void **)&p->clocks, &p->clock_capacity, p->clock_count + 1,
			  sizeof(*p->clocks)) ||
	    ts_pairmap_put(&p->clock_index, key, clock, p->clock_count))
		return NULL;
	p->clocks[p->clock_count] = (struct ts_perfetto_clock){ .unit_ns = 1 };
	return &p->clocks[p->clock_count++];
}

void ts_perfetto_clocks_release(struct ts_perfetto *p)
{
	for (size_t i = 0; i < p->clock_count; i++)
		free(p->clocks[i].points);
	free(p->clocks);
	ts_pairmap_release(&p->clock_index);
	ts_text_release(&p->waiting);
}

/* By the latest point not after the time; by the first point for earlier times. */
static bool convert(struct ts_perfetto_clock *clock, int64_t ns, int64_t *ret_ns)
{
	size_t low = 0, high = clock->count, at = clock->last;

	if (at >= clock->count || clock->points[at].clock_ns > ns ||
	    (at + 1 < clock->count && clock->points[at + 1].clock_ns <= ns)) {
		while (high - low > 1) {
			size_t middle = low + (high - low) / 2;

			if (clock->points[middle].clock_ns <= ns)
				low = middle;
			else
				high = middle;
		}
		at = clock->last = low;
	}
	return !__builtin_sub_overflow(ns, clock->points[at].clock_ns, ret_ns) &&
	       !__builtin_add_overflow(*ret_ns, clock->points[at].trace_ns, ret_ns) &&
	       *ret_ns != TS_ABSENT;
}

/* ---- snapshots ---- */

static bool read_reading(const struct ts_perfetto_sequence *sequence,
			 const struct ts_proto_field *from, struct reading *reading)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;
	uint64_t time = 0, ns;

	*reading = (struct reading){ .unit_ns = 1 };
	while (ts_proto_next(&message, &field)) {
		switch (field.number) {
		case 1:
			reading->clock = (uint32_t)field.value;
			break;
		case 2:
			time = field.value;
			break;
		case 3:
			reading->is_incremental = field.value != 0;
			break;
		case 4:
			reading->unit_ns = field.value ? field.value : 1;
			break;
		}
	}
	reading->key = scope(sequence, reading->clock);
	if (__builtin_mul_overflow(time, reading->unit_ns, &ns) || ns > INT64_MAX)
		return false;
	reading->ns = (int64_t)ns;
	return reading->clock != 0;
}

/* Instant of a snapshot in the trace's time; false: none of its clocks is known. */
static bool find_instant(struct ts_perfetto *p, const struct reading *readings, size_t count,
			 int64_t *ret_ns)
{
	for (size_t i = 0; i < count; i++)
		if (readings[i].clock == p->primary && !readings[i].key) {
			*ret_ns = readings[i].ns;
			return true;
		}
	for (size_t i = 0; i < count; i++) {
		struct ts_perfetto_clock *clock = find(p, readings[i].key, readings[i].clock);

		if (clock && clock->count && !clock->is_incremental &&
		    convert(clock, readings[i].ns, ret_ns))
			return true;
	}
	return false;
}

static int add_point(struct ts_perfetto *p, const struct reading *reading, int64_t instant)
{
	struct ts_perfetto_clock *clock = find_or_make(p, reading->key, reading->clock);

	if (!clock)
		return TS_ENOMEM;
	clock->is_incremental = reading->is_incremental;
	clock->unit_ns = reading->unit_ns;
	clock->running_ns = reading->ns;
	if (clock->count && clock->points[clock->count - 1].clock_ns > reading->ns) {
		/* A sequence-local clock may restart; others must not go backwards. */
		if (!reading->key) {
			ts_perfetto_lose(p, &ts_perfetto_loss_snapshot, 1);
			return TS_OK;
		}
		clock->count = 0;
	}
	/* An unchanged offset adds nothing. */
	if (clock->count &&
	    (uint64_t)clock->points[clock->count - 1].trace_ns - (uint64_t)instant ==
		    (uint64_t)clock->points[clock->count - 1].clock_ns - (uint64_t)reading->ns)
		return TS_OK;
	if (ts_grow_array((void **)&clock->points, &clock->capacity, clock->count + 1,
			  sizeof(*clock->points)))
		return TS_ENOMEM;
	clock->points[clock->count++] =
		(struct ts_perfetto_point){ .clock_ns = reading->ns, .trace_ns = instant };
	return TS_OK;
}

/* The time of day, once. */
static void add_day(struct ts_perfetto *p, int64_t day, int64_t instant)
{
	struct ts_clock_sync_row row = ts_clock_sync_none;

	if (p->has_day)
		return;
	p->has_day = true;
	row.clock = p->entities.clock;
	row.time = instant;
	row.reference = day;
	row.method = ts_perfetto_text(p, "clock_snapshot");
	ts_writer_add(p->writer, TS_TABLE_CLOCK_SYNC, &row, NULL);
}

/*
 * Chooses the trace's time: the clock declared as such, or the one all recorders read; any other
 * only if a time is needed.
 */
static void choose_primary(struct ts_perfetto *p, uint64_t declared, const struct reading *readings,
			   size_t count)
{
	static const uint32_t order[] = { TS_PERFETTO_BOOTTIME, TS_PERFETTO_MONOTONIC, 5, 4, 2,
					  TS_PERFETTO_REALTIME };
	size_t choices = p->any_clock ? TS_ARRAY_SIZE(order) : 1;

	if (p->primary)
		return;
	if (declared && declared < FIRST_OF_SEQUENCE)
		p->primary = (uint32_t)declared;
	for (size_t k = 0; k < choices && !p->primary; k++)
		for (size_t i = 0; i < count; i++)
			if (readings[i].clock == order[k])
				p->primary = order[k];
}

/* *ret_known: its sync points were added. */
static int read_snapshot(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			 const struct ts_proto_field *from, bool *ret_known)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct reading readings[MAX_READINGS];
	struct ts_proto_field field;
	size_t count = 0;
	uint64_t declared = 0;
	int64_t instant;
	int rc = TS_OK;

	while (ts_proto_next(&message, &field)) {
		if (field.number == 2)
			declared = field.value;
		if (field.number == 1 && count < MAX_READINGS &&
		    read_reading(sequence, &field, &readings[count]))
			count++;
	}
	choose_primary(p, declared, readings, count);
	*ret_known = find_instant(p, readings, count, &instant);
	for (size_t i = 0; i < count && *ret_known && !rc; i++) {
		rc = add_point(p, &readings[i], instant);
		if (readings[i].clock == TS_PERFETTO_REALTIME)
			add_day(p, readings[i].ns, instant);
	}
	return rc;
}

struct waiting {
	uint64_t key; /* of its sequence */
	size_t bytes;
};

static int wait(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
		const struct ts_proto_field *field)
{
	struct waiting head = { .key = sequence->key, .bytes = field->length };

	if (p->waiting.length + field->length > MAX_WAITING) {
		ts_perfetto_lose(p, &ts_perfetto_loss_snapshot_alone, 1);
		return TS_OK;
	}
	ts_text_append(&p->waiting, &head, sizeof(head));
	ts_text_append(&p->waiting, field->bytes, field->length);
	return ts_text_status(&p->waiting);
}

/*
 * Snapshots that came before anything that links them to the trace's time. One that must wait again
 * goes to the end.
 */
static int read_waiting(struct ts_perfetto *p)
{
	struct ts_text held = p->waiting;
	struct waiting head;
	int rc = TS_OK;

	p->waiting = (struct ts_text){ 0 };
	for (size_t at = 0; at < held.length && !rc; at += sizeof(head) + head.bytes) {
		struct ts_proto_field field = { .type = TS_PROTO_BYTES };
		struct ts_perfetto_sequence sequence = { 0 };
		bool known;

		memcpy(&head, held.data + at, sizeof(head));
		field.bytes = held.data + at + sizeof(head);
		field.length = head.bytes;
		sequence.key = head.key;
		rc = read_snapshot(p, &sequence, &field, &known);
		if (!rc && !known)
			rc = wait(p, &sequence, &field);
	}
	ts_text_release(&held);
	return rc;
}

int ts_perfetto_read_snapshot(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			      const struct ts_proto_field *field)
{
	bool known;
	size_t before = p->clock_count;
	int rc = read_snapshot(p, sequence, field, &known);

	if (rc || !known)
		return rc ? rc : wait(p, sequence, field);
	/* Only a new clock can help deferred snapshots. */
	if (!p->waiting.length || p->clock_count == before || p->waiting_rounds == MAX_ROUNDS)
		return TS_OK;
	p->waiting_rounds++;
	return read_waiting(p);
}

/* ---- times ---- */

/*
 * A time is needed and no snapshot has defined the trace's time: use the first clock in use, or one
 * linked to it.
 */
static void settle(struct ts_perfetto *p, uint64_t key, uint32_t id)
{
	if (!key)
		p->primary = id;
	p->any_clock = true;
	if (p->waiting.length)
		read_waiting(p);
	if (!p->primary)
		p->primary = TS_PERFETTO_BOOTTIME;
}

bool ts_perfetto_time(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
		      uint32_t id, uint64_t time, int64_t *ret_ns)
{
	struct ts_perfetto_clock *clock;
	uint64_t key = scope(sequence, id), ns = time;

	if (TS_UNLIKELY(!p->primary))
		settle(p, key, id);
	clock = id == p->primary && !key ? NULL : find(p, key, id);
	if (TS_UNLIKELY((clock || id != p->primary || key) && (!clock || !clock->count))) {
		ts_perfetto_lose(p, &ts_perfetto_loss_clock, 1);
		return false;
	}
	if ((clock && __builtin_mul_overflow(time, clock->unit_ns, &ns)) || ns > INT64_MAX)
		goto beyond;
	*ret_ns = (int64_t)ns;
	if (clock && clock->is_incremental) {
		if (__builtin_add_overflow(clock->running_ns, *ret_ns, ret_ns))
			goto beyond;
		clock->running_ns = *ret_ns;
	}
	if (!clock || convert(clock, *ret_ns, ret_ns)) {
		p->last_time = *ret_ns;
		return true;
	}
beyond:
	ts_perfetto_lose(p, &ts_perfetto_loss_time, 1);
	return false;
}

bool ts_perfetto_packet_time(struct ts_perfetto *p, const struct ts_perfetto_sequence *sequence,
			     const struct ts_perfetto_packet *packet, int64_t *ret_ns)
{
	uint32_t clock = packet->has_clock ? packet->clock : sequence->clock;

	*ret_ns = TS_ABSENT;
	if (!packet->has_timestamp)
		return true;
	if (!clock)
		clock = p->primary ? p->primary : TS_PERFETTO_BOOTTIME;
	return ts_perfetto_time(p, sequence, clock, packet->timestamp, ret_ns);
}
