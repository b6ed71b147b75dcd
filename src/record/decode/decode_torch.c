/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes executions of PyTorch modules into rows of `torch_trace`. A row whose device time is
 * still to come is held back, in its ring's list: serials rise within a ring, so it is found by
 * binary search. A time that another thread stored, and whose ring is drained first, waits for its
 * row. Nothing is held across a checkpoint.
 */
#include <math.h>
#include <stdlib.h>

#include "record/decode/decode_internal.h"

/* Rows held of an area; then a quarter of those of one ring is written. */
#define HELD_MOST 131072u
/* Times of an area that wait for their rows; others are lost. */
#define EARLY_MOST 262144u
/* Times may be this far from the order of their rows. */
#define OUT_OF_ORDER_MOST 4096u
#define SERIAL_POSITION UINT64_C(0xffffffffffff)
#define NS_PER_S 1e9

struct held {
	uint64_t serial;
	bool is_written; /* its device time came */
	struct ts_torch_trace_row row;
};

/* Rows `first` .. `count` are held, and as many times, both in the order of their serials. */
struct decode_torch {
	struct held *rows;
	size_t first, count, capacity;
	struct ts_live_torch_time *early;
	size_t early_first, early_count, early_capacity;
};

static void write_row(struct ts_decoder *decoder, const struct ts_torch_trace_row *row)
{
	ts_writer_add(decoder->writer, TS_TABLE_TORCH_TRACE, row, NULL);
}

static void lose(struct ts_decoder *decoder, struct decode_ring *ring, uint64_t count)
{
	int64_t now = ring->last_ns ? ring->last_ns : decoder->now_ns;

	decode_lose(decoder, ring, LOSS_LATE_TORCH_TIME, count, now, now);
}

/* ---- lists ---- */

static void drop_written(struct decode_area *area, struct decode_torch *torch)
{
	while (torch->first < torch->count && torch->rows[torch->first].is_written) {
		torch->first++;
		area->held_torch--;
	}
	if (torch->first == torch->count)
		torch->first = torch->count = 0;
}

/* Writes the oldest rows of a list, without a device time. */
static void write_oldest(struct ts_decoder *decoder, struct decode_area *area,
			 struct decode_torch *torch, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct held *held = &torch->rows[torch->first + i];

		if (!held->is_written)
			write_row(decoder, &held->row);
		held->is_written = true;
	}
	drop_written(area, torch);
}

/* Drops times of rows before that serial, which do not exist or were written. */
static void drop_early(struct ts_decoder *decoder, struct decode_area *area,
		       struct decode_ring *ring, uint64_t serial)
{
	struct decode_torch *torch = ring->torch;
	size_t from = torch->early_first;

	while (torch->early_first < torch->early_count &&
	       torch->early[torch->early_first].serial < serial)
		torch->early_first++;
	area->early_torch -= torch->early_first - from;
	lose(decoder, ring, torch->early_first - from);
	if (torch->early_first == torch->early_count)
		torch->early_first = torch->early_count = 0;
}

/* The time that came before its row; TS_ABSENT: none. */
static int64_t take_early(struct ts_decoder *decoder, struct decode_area *area,
			  struct decode_ring *ring, uint64_t serial)
{
	struct decode_torch *torch = ring->torch;
	int64_t device_ns;

	if (!torch || torch->early_first == torch->early_count)
		return TS_ABSENT;
	drop_early(decoder, area, ring, serial);
	if (torch->early_first == torch->early_count ||
	    torch->early[torch->early_first].serial != serial)
		return TS_ABSENT;
	device_ns = torch->early[torch->early_first++].device_ns;
	area->early_torch--;
	return device_ns;
}

void decode_write_torch(struct ts_decoder *decoder, struct decode_area *area)
{
	for (size_t i = 0; i < area->ring_count && area->held_torch; i++) {
		struct decode_torch *torch = area->rings[i] ? area->rings[i]->torch : NULL;

		if (torch)
			write_oldest(decoder, area, torch, torch->count - torch->first);
	}
	for (size_t i = 0; i < area->ring_count && area->early_torch; i++)
		if (area->rings[i] && area->rings[i]->torch)
			drop_early(decoder, area, area->rings[i], UINT64_MAX);
}

/* The list that holds most is the one whose device is furthest behind. */
static void make_space(struct ts_decoder *decoder, struct decode_area *area)
{
	struct decode_torch *longest = NULL;

	for (size_t i = 0; i < area->ring_count; i++) {
		struct decode_torch *torch = area->rings[i] ? area->rings[i]->torch : NULL;

		if (torch &&
		    (!longest || torch->count - torch->first > longest->count - longest->first))
			longest = torch;
	}
	if (longest)
		write_oldest(decoder, area, longest, (longest->count - longest->first + 3) / 4);
}

static struct decode_torch *lists_of(struct decode_ring *ring)
{
	if (!ring->torch)
		ring->torch = calloc(1, sizeof(*ring->torch));
	return ring->torch;
}

/* Moves a full list to the front of its memory, if at least half of that is free. */
static void make_room(void *items, size_t bytes, size_t *first, size_t *count, size_t capacity)
{
	if (*count < capacity || *first < *count - *first)
		return;
	if (items)
		memmove(items, (char *)items + *first * bytes, (*count - *first) * bytes);
	*count -= *first;
	*first = 0;
}

/* Inserts a time; nearly all of them come in order. False: too many, or no memory. */
static bool keep_early(struct decode_area *area, struct decode_ring *ring,
		       const struct ts_live_torch_time *time)
{
	struct decode_torch *torch = lists_of(ring);
	size_t at;

	if (!torch)
		return false;
	make_room(torch->early, sizeof(*torch->early), &torch->early_first, &torch->early_count,
		  torch->early_capacity);
	if (area->early_torch >= EARLY_MOST ||
	    ts_grow_array((void **)&torch->early, &torch->early_capacity, torch->early_count + 1,
			  sizeof(*torch->early)))
		return false;
	for (at = torch->early_count;
	     at > torch->early_first && torch->early[at - 1].serial > time->serial; at--)
		if (torch->early_count - at > OUT_OF_ORDER_MOST)
			return false;
	memmove(&torch->early[at + 1], &torch->early[at],
		(torch->early_count - at) * sizeof(*torch->early));
	torch->early[at] = *time;
	torch->early_count++;
	area->early_torch++;
	return true;
}

/* False: no memory. */
static bool hold(struct ts_decoder *decoder, struct decode_area *area, struct decode_ring *ring,
		 const struct held *held)
{
	struct decode_torch *torch = lists_of(ring);

	if (!torch)
		return false;
	if (area->held_torch >= HELD_MOST)
		make_space(decoder, area);
	make_room(torch->rows, sizeof(*torch->rows), &torch->first, &torch->count, torch->capacity);
	if (ts_grow_array((void **)&torch->rows, &torch->capacity, torch->count + 1,
			  sizeof(*torch->rows)))
		return false;
	torch->rows[torch->count++] = *held;
	area->held_torch++;
	return true;
}

static struct held *find(const struct decode_torch *torch, uint64_t serial)
{
	size_t from = torch->first, to = torch->count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (torch->rows[middle].serial == serial)
			return &torch->rows[middle];
		if (torch->rows[middle].serial < serial)
			from = middle + 1;
		else
			to = middle;
	}
	return NULL;
}

void decode_free_torch(struct decode_ring *ring)
{
	if (ring && ring->torch) {
		free(ring->torch->rows);
		free(ring->torch->early);
		free(ring->torch);
		ring->torch = NULL;
	}
}

/* ---- records ---- */

static double amount(double megabytes)
{
	return isfinite(megabytes) && megabytes > 0 ? megabytes : 0;
}

/* False: too many devices, or no memory. */
static bool fill_row(struct ts_decoder *decoder, struct decode_area *area,
		     const struct decode_event *event, struct ts_torch_trace_row *row)
{
	const struct ts_live_torch *torch = event->torch;
	uint32_t number = ts_live_device_of(torch->device_stage);

	*row = ts_torch_trace_none;
	if (number != TS_LIVE_DEVICE_MASK) {
		const struct decode_device *device = decode_use_device(decoder, area, number);

		if (!device)
			return false;
		row->device = device->id;
	}
	row->start = TS_MAX(decode_monotonic(decoder, torch->start_ns), area->bound_ns);
	row->process = area->process ? area->process->id : 0;
	row->thread = event->thread->id;
	row->step = torch->step;
	row->seq = torch->sequence;
	row->module = event->name;
	row->stage = ts_live_kind_of(torch->device_stage);
	row->allocated = amount(torch->allocated);
	row->max_allocated = amount(torch->max_allocated);
	row->cached = amount(torch->cached);
	row->duration = torch->duration_ns > 0 ? (double)torch->duration_ns / NS_PER_S : 0;
	row->rank = torch->rank >= 0 ? torch->rank : TS_ABSENT;
	row->device_time = torch->device_ns > 0 ? (double)torch->device_ns / NS_PER_S : 0;
	return true;
}

bool decode_torch(struct ts_decoder *decoder, struct decode_area *area, struct decode_ring *ring,
		  const struct decode_event *event)
{
	struct held held = { .serial = event->torch->serial };
	int64_t early_ns;

	if (ts_live_kind_of(event->torch->device_stage) > TS_STAGE_RECOMPUTE ||
	    !fill_row(decoder, area, event, &held.row)) {
		decode_lose(decoder, ring, LOSS_UNKNOWN_EVENT, 1, event->ns, event->ns);
		return false;
	}
	early_ns = take_early(decoder, area, ring, held.serial);
	if (early_ns > 0)
		held.row.device_time = (double)early_ns / NS_PER_S;
	if (!held.row.device || event->torch->device_ns != TS_ABSENT || early_ns != TS_ABSENT ||
	    !hold(decoder, area, ring, &held))
		write_row(decoder, &held.row);
	return true;
}

/* The ring is not decoded up to the row yet. */
static bool is_early(const struct decode_ring *ring, uint64_t serial)
{
	return (ring->position & SERIAL_POSITION) <= (serial & SERIAL_POSITION);
}

bool decode_torch_time(struct ts_decoder *decoder, struct decode_area *area,
		       struct decode_ring *ring, const struct decode_event *event)
{
	struct decode_cursor cursor = { .next = event->record + 2,
					.end = event->record + event->words };
	struct decode_torch *torch;
	struct decode_ring *of = NULL;
	struct ts_live_torch_time time;
	struct held *held = NULL;
	uint32_t number;

	decode_take(&cursor, &time, sizeof(time));
	if (cursor.bad)
		return false;
	number = ts_live_torch_ring(time.serial);
	if (number < TS_LIVE_RING_LIMIT)
		of = decode_get_ring(decoder, area, number);
	torch = of ? of->torch : NULL;
	if (torch)
		held = find(torch, time.serial);
	if (!held || held->is_written) {
		if (held || !of || !is_early(of, time.serial) || !keep_early(area, of, &time))
			lose(decoder, ring, 1);
		return true;
	}
	if (time.device_ns > 0)
		held->row.device_time = (double)time.device_ns / NS_PER_S;
	write_row(decoder, &held->row);
	held->is_written = true;
	drop_written(area, torch);
	return true;
}
