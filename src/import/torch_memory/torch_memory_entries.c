/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_traces: what the allocator of each device did, in order. The first round finds what was in
 * use before the first entry (freed, but never allocated) and when; the last one adds rows.
 */
#include <stdlib.h>

#include "base/ns.h"
#include "import/torch_memory/torch_memory.h"

/* What one round does with each entry. */
struct round {
	void (*take)(struct torch_memory *m, struct torch_device *device,
		     struct torch_entry *entry);
	uint32_t from, to;  /* notes of entries not yet visited in this round, and visited */
	bool counts_losses; /* counts losses: once is enough */
};

/* ---- one entry ---- */

static void take_member(struct torch_memory *m, struct torch_entry *entry, ts_pickle_value key,
			ts_pickle_value value)
{
	switch (ts_pickle_text(key)) {
	case TEXT_ACTION:
		entry->action = ts_pickle_text(value);
		break;
	case TEXT_ADDR:
		ts_pickle_int(&m->pickle, value, &entry->address);
		break;
	case TEXT_SIZE:
		ts_pickle_int(&m->pickle, value, &entry->bytes);
		break;
	case TEXT_STREAM:
		ts_pickle_int(&m->pickle, value, &entry->stream);
		break;
	case TEXT_TIME_US:
		torch_time(m, value, &entry->time);
		break;
	case TEXT_FRAMES:
		entry->frames = value;
		break;
	default:
		entry->extras++;
	}
}

static struct torch_entry read_entry(struct torch_memory *m, ts_pickle_value dict)
{
	struct torch_entry entry = { .value = dict, .action = TS_STRMAP_NONE };
	struct ts_pickle_items items = ts_pickle_items(&m->pickle, dict);
	ts_pickle_value key, value;

	entry.address = entry.bytes = entry.stream = entry.time = TS_ABSENT;
	while (ts_pickle_next_pair(&items, &key, &value))
		take_member(m, &entry, key, value);
	return entry;
}

/*
 * The order is authoritative: entries are made under the allocator's lock, and sums follow it.
 * Without times it is used instead, 1 ns per entry; a time that goes backwards, which happens
 * across CPUs, becomes that of the previous entry.
 */
static void set_time(struct torch_memory *m, struct torch_entry *entry, bool counts_losses)
{
	bool is_timed = entry->time != TS_ABSENT;

	if (!is_timed)
		entry->time = m->last_time == TS_ABSENT ? 0 : ts_ns_add(m->last_time, 1);
	else if (!m->has_time || entry->time < m->first_time)
		m->first_time = entry->time;
	m->has_time = m->has_time || is_timed;
	if (counts_losses && !is_timed)
		ts_entities_add_loss(&m->entities, &torch_loss_time, 1);
	if (entry->time < m->last_time) {
		entry->time = m->last_time;
		if (counts_losses)
			ts_entities_add_loss(&m->entities, &torch_loss_back, 1);
	}
	m->last_time = entry->time;
	m->entities.time = entry->time;
}

static bool is_memory(const struct torch_entry *entry)
{
	return entry->action >= TEXT_ALLOC && entry->action <= TEXT_SEGMENT_UNMAP;
}

static bool is_usable(const struct torch_entry *entry)
{
	if (entry->action == TS_STRMAP_NONE)
		return false;
	return !is_memory(entry) || (entry->address != TS_ABSENT && entry->bytes >= 0);
}

/* Is the entry visited in this round? Duplicates are not. */
static bool takes_turn(struct torch_memory *m, const struct round *round, ts_pickle_value value,
		       enum ts_pickle_kind kind)
{
	uint32_t *note;

	if (ts_pickle_kind(value) == kind) {
		note = ts_pickle_note(&m->pickle, value);
		if (*note == round->from) {
			*note = round->to;
			return true;
		}
		/* A truncated entry is part of the unread rest of the file. */
		if (*note == TS_PICKLE_NOTE_CUT)
			return false;
	}
	if (round->counts_losses)
		ts_entities_add_loss(
			&m->entities,
			ts_pickle_kind(value) == kind ? &torch_loss_twice : &torch_loss_entry, 1);
	return false;
}

static void walk_device(struct torch_memory *m, const struct round *round, ts_pickle_value list,
			int64_t number)
{
	struct ts_pickle_items items = ts_pickle_items(&m->pickle, list);
	ts_pickle_value value;

	while (torch_step(m) && ts_pickle_next(&items, &value)) {
		struct torch_device *device = torch_device(m, number);
		struct torch_entry entry;

		if (!device || !takes_turn(m, round, value, TS_PICKLE_DICT))
			continue;
		entry = read_entry(m, value);
		set_time(m, &entry, round->counts_losses);
		if (!device->has_time) {
			device->has_time = true;
			device->first_time = entry.time;
		}
		if (is_usable(&entry))
			round->take(m, device, &entry);
		else if (round->counts_losses)
			ts_entities_add_loss(&m->entities, &torch_loss_entry, 1);
	}
}

static void walk(struct torch_memory *m, const struct round *round, ts_pickle_value traces,
		 void (*end)(struct torch_memory *m, struct torch_device *device))
{
	struct ts_pickle_items items = ts_pickle_items(&m->pickle, traces);
	ts_pickle_value list;
	int64_t number = 0;

	for (; torch_step(m) && ts_pickle_next(&items, &list); number++) {
		m->last_time = TS_ABSENT;
		if (!ts_pickle_count(&m->pickle, list) ||
		    !takes_turn(m, round, list, TS_PICKLE_LIST))
			continue;
		walk_device(m, round, list, number);
		if (end && !m->rc)
			end(m, torch_device(m, number));
	}
}

/* ---- the first round ---- */

static uint64_t *life_of(struct torch_memory *m, struct ts_pairmap *map,
			 const struct torch_device *device, const struct torch_entry *entry)
{
	uint64_t *life =
		ts_pairmap_insert(map, (uint64_t)device->number, (uint64_t)entry->address, NULL);

	if (!life)
		torch_no_memory(m);
	return life;
}

/* What is freed but was never allocated existed before. */
static void note_free(struct torch_memory *m, struct torch_device *device,
		      const struct torch_entry *entry, struct ts_pairmap *map,
		      void (*add)(struct torch_memory *, struct torch_device *,
				  const struct torch_entry *, enum ts_allocation_kind, bool))
{
	uint64_t *life = life_of(m, map, device, entry);
	struct torch_entry before = *entry;
	bool was_allocated = life && *life == LIFE_NONE;

	if (life)
		*life = LIFE_GIVEN;
	if (!was_allocated)
		return;
	/* Its stack is that of its free, or of an allocation without a time. */
	before.frames = TS_PICKLE_NONE;
	before.time = device->first_time;
	add(m, device, &before, TS_ALLOCATION_ALLOC, true);
	if (map == &m->segments)
		device->before_segments = ts_ns_add(device->before_segments, entry->bytes);
}

static void note_take(struct torch_memory *m, struct torch_device *device,
		      const struct torch_entry *entry, struct ts_pairmap *map)
{
	uint64_t *life = life_of(m, map, device, entry);

	if (life)
		*life = LIFE_TAKEN;
}

static void learn(struct torch_memory *m, struct torch_device *device, struct torch_entry *entry)
{
	switch (entry->action) {
	case TEXT_ALLOC:
		note_take(m, device, entry, &m->blocks);
		break;
	case TEXT_FREE_REQUESTED:
		if (torch_requests_free(device))
			note_free(m, device, entry, &m->blocks, torch_add_allocation);
		break;
	case TEXT_FREE_COMPLETED:
		note_free(m, device, entry, &m->blocks, torch_add_allocation);
		break;
	case TEXT_SEGMENT_ALLOC:
		note_take(m, device, entry, &m->segments);
		device->taken = ts_ns_add(device->taken, entry->bytes);
		break;
	case TEXT_SEGMENT_FREE:
		note_free(m, device, entry, &m->segments, torch_add_segment);
		device->given = ts_ns_add(device->given, entry->bytes);
		break;
	case TEXT_SEGMENT_MAP:
		device->taken = ts_ns_add(device->taken, entry->bytes);
		break;
	case TEXT_SEGMENT_UNMAP:
		device->given = ts_ns_add(device->given, entry->bytes);
		break;
	default:
		break;
	}
}

/* A recording may omit kinds of entries. */
static void find_free(struct torch_memory *m, struct torch_device *device,
		      struct torch_entry *entry)
{
	if (entry->action == TEXT_FREE_COMPLETED)
		device->has_completions = true;
	else if (entry->action == TEXT_FREE_REQUESTED)
		device->has_requests = true;
}

void torch_first_round(struct torch_memory *m, ts_pickle_value traces)
{
	static const struct round frees = { .take = find_free, .to = NOTE_FREES };
	static const struct round round = {
		.take = learn, .from = NOTE_FREES, .to = NOTE_SEEN, .counts_losses = true
	};

	walk(m, &frees, traces, NULL);
	walk(m, &round, traces, NULL);
}

/* ---- the last round ---- */

/* Requests waiting for their completion, by address; 0: completed. */
static void report_request(struct torch_memory *m, struct torch_device *device, uint64_t request,
			   int64_t time)
{
	struct torch_entry entry = read_entry(m, request);

	entry.time = entry.time == TS_ABSENT ? time : entry.time;
	torch_add_mark(m, device, &entry);
}

static void take_request(struct torch_memory *m, struct torch_device *device,
			 const struct torch_entry *entry)
{
	uint64_t *request = ts_map_insert(&m->requests, (uint64_t)entry->address, NULL);
	uint64_t earlier;

	if (!request) {
		torch_no_memory(m);
		return;
	}
	earlier = *request;
	*request = entry->value;
	if (earlier)
		report_request(m, device, earlier, entry->time);
}

/*
 * A request that equals its completion apart from the time becomes an argument of it; otherwise a
 * mark.
 */
static void take_completion(struct torch_memory *m, struct torch_device *device,
			    const struct torch_entry *entry)
{
	uint64_t *slot = ts_map_insert(&m->requests, (uint64_t)entry->address, NULL);
	struct torch_entry request;
	bool has_time;

	if (!slot) {
		torch_no_memory(m);
		return;
	}
	if (*slot) {
		request = read_entry(m, *slot);
		*slot = 0;
		has_time = request.time != TS_ABSENT;
		request.time = has_time ? request.time : entry->time;
		if (torch_stack(m, request.frames) != torch_stack(m, entry->frames) ||
		    request.bytes != entry->bytes || request.stream != entry->stream ||
		    !torch_same_extras(m, &request, entry))
			torch_add_mark(m, device, &request);
		if (has_time)
			ts_row_args_add(&m->args, torch_key(m, "pending_ns"), TS_ARG_INT,
					ts_ns_sub(entry->time, request.time));
	}
	torch_add_allocation(m, device, entry, TS_ALLOCATION_FREE, false);
}

static void make_row(struct torch_memory *m, struct torch_device *device, struct torch_entry *entry)
{
	switch (entry->action) {
	case TEXT_ALLOC:
		torch_add_allocation(m, device, entry, TS_ALLOCATION_ALLOC, false);
		break;
	case TEXT_FREE_REQUESTED:
		if (torch_requests_free(device))
			torch_add_allocation(m, device, entry, TS_ALLOCATION_FREE, false);
		else
			take_request(m, device, entry);
		break;
	case TEXT_FREE_COMPLETED:
		take_completion(m, device, entry);
		break;
	case TEXT_SEGMENT_ALLOC:
	case TEXT_SEGMENT_MAP:
		torch_add_segment(m, device, entry, TS_ALLOCATION_ALLOC, false);
		break;
	case TEXT_SEGMENT_FREE:
	case TEXT_SEGMENT_UNMAP:
		torch_add_segment(m, device, entry, TS_ALLOCATION_FREE, false);
		break;
	default:
		torch_add_mark(m, device, entry);
	}
}

static int compare_values(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return TS_COMPARE(*x, *y);
}

/* Requests without a completion, in order. */
static void report_waiting(struct torch_memory *m, struct torch_device *device)
{
	TS_AUTO_FREE uint64_t *waiting =
		ts_alloc_array(ts_map_count(&m->requests), sizeof(*waiting));
	uint64_t address, request;
	size_t cursor = 0, count = 0;

	if (!waiting) {
		torch_no_memory(m);
		return;
	}
	while (ts_map_next(&m->requests, &cursor, &address, &request))
		if (request)
			waiting[count++] = request;
	ts_sort(waiting, count, sizeof(*waiting), compare_values);
	for (size_t i = 0; device && i < count; i++)
		report_request(m, device, waiting[i], m->last_time);
	ts_map_clear(&m->requests);
}

void torch_last_round(struct torch_memory *m, ts_pickle_value traces)
{
	static const struct round round = { .take = make_row, .from = NOTE_SEEN, .to = NOTE_DONE };

	walk(m, &round, traces, report_waiting);
}
