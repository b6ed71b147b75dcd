/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks of processes, threads, devices, streams, async spans and counters. Spans of a track must
 * nest; those of a thread or stream that do not are spread over lanes, tracks that viewers show as
 * one.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "export/perfetto/perfetto_export.h"

/* Fields of TrackDescriptor. */
enum {
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8,
	TRACK_CHILD_ORDER = 11,
	TRACK_RANK = 12,
	TRACK_MERGE = 15,
	TRACK_MERGE_KEY = 17,
};
enum { ORDER_EXPLICIT = 3 };
enum { MERGE_NONE = 2, MERGE_BY_KEY = 3 };

/*
 * Beyond this many lanes each span that does not nest gets a track of its own, which is not stored.
 */
#define MAX_LANES 1024
#define SYNTHETIC UINT32_C(1000000000)

static uint32_t number_of(const struct ts_chrome_number *number, int64_t id)
{
	/* To Perfetto 0 is the idle task. */
	if (!number || number->text || number->number <= 0 || number->number > INT32_MAX)
		return SYNTHETIC + (uint32_t)((uint64_t)id % SYNTHETIC);
	return (uint32_t)number->number;
}

uint32_t ts_pf_pid(const struct ts_pf_export *x, int64_t process)
{
	const struct ts_chrome_track *track = ts_chrome_track_of_process(&x->chrome, process);

	return number_of(track ? &track->pid : NULL, process);
}

uint32_t ts_pf_tid(const struct ts_pf_export *x, int64_t thread)
{
	const struct ts_chrome_track *track = ts_chrome_track_of_thread(&x->chrome, thread);

	return number_of(track ? &track->tid : NULL, thread);
}

/* ---- descriptors ---- */

static void put_string(struct ts_pf_export *x, uint32_t field, int64_t string)
{
	struct ts_string text = ts_reader_string(x->reader, string);

	ts_proto_put_bytes(&x->text, field, text.data, text.length);
}

/* x->text is the descriptor. It may be written while a row is being encoded. */
static void put_descriptor(struct ts_pf_export *x)
{
	size_t open = ts_proto_open(&x->out, 1), inner;

	ts_proto_put_uint(&x->out, TS_PF_SEQUENCE, 1);
	inner = ts_proto_open(&x->out, TS_PF_TRACK_DESCRIPTOR);
	ts_text_append(&x->out, x->text.data, x->text.length);
	ts_proto_close(&x->out, inner);
	ts_proto_close(&x->out, open);
	if (x->text.failed)
		x->out.failed = true;
	ts_text_clear(&x->text);
}

static void begin_descriptor(struct ts_pf_export *x, uint64_t uuid, uint64_t parent)
{
	ts_text_clear(&x->text);
	ts_proto_put_uint(&x->text, TRACK_UUID, uuid);
	if (parent)
		ts_proto_put_uint(&x->text, TRACK_PARENT, parent);
}

static void put_rank(struct ts_pf_export *x, int64_t rank)
{
	if (rank >= INT32_MIN && rank <= INT32_MAX)
		ts_proto_put_int(&x->text, TRACK_RANK, rank);
}

/* ---- groups ---- */

static struct ts_pf_group *add_group(struct ts_pf_export *x, uint64_t *slot, uint64_t parent)
{
	struct ts_pf_group *group;

	if (!slot || ts_grow_array((void **)&x->groups, &x->group_capacity, x->group_count + 1,
				   sizeof(*x->groups)))
		return NULL;
	group = &x->groups[x->group_count];
	*group = (struct ts_pf_group){ .parent = parent, .uuid = ++x->uuids, .rank = TS_ABSENT };
	*slot = x->group_count++;
	return group;
}

static struct ts_pf_group *find(struct ts_pf_export *x, const struct ts_map *map, int64_t id)
{
	uint64_t slot;

	return ts_map_get(map, (uint64_t)id, &slot) ? &x->groups[slot] : NULL;
}

static uint64_t uuid_in(struct ts_pf_export *x, const struct ts_map *map, int64_t id)
{
	struct ts_pf_group *group = find(x, map, id);

	return group ? group->uuid : 0;
}

/* Common name of the lanes of a group. */
static void put_group_name(struct ts_pf_export *x, const struct ts_pf_group *group)
{
	if (group->text)
		ts_proto_put_bytes(&x->text, TRACK_NAME, group->text, strlen(group->text));
	else if (group->name)
		put_string(x, TRACK_NAME, group->name);
}

static void put_merge(struct ts_pf_export *x, const struct ts_pf_group *group)
{
	ts_proto_put_uint(&x->text, TRACK_MERGE, MERGE_BY_KEY);
	ts_proto_put_uint(&x->text, TRACK_MERGE_KEY, group->uuid);
}

static void put_plain_group(struct ts_pf_export *x, const struct ts_pf_group *group, uint64_t uuid)
{
	begin_descriptor(x, uuid, group->parent);
	put_group_name(x, group);
	put_rank(x, group->rank);
	put_merge(x, group);
	put_descriptor(x);
}

/* A track for spans that do not nest with the others of its group. */
static void put_lane(struct ts_pf_export *x, const struct ts_pf_group *group, uint64_t uuid)
{
	if (group->lanes_are_siblings) {
		put_plain_group(x, group, uuid);
		return;
	}
	/* Under the track of the thread. */
	begin_descriptor(x, uuid, group->uuid);
	if (group->text || group->name)
		put_group_name(x, group);
	else
		ts_proto_put_bytes(&x->text, TRACK_NAME, "overlapping", 11);
	put_merge(x, group);
	put_descriptor(x);
}

/* ---- lanes ---- */

static bool lane_takes(struct ts_pf_lane *lane, int64_t start, int64_t end, bool is_apart)
{
	if (start < lane->last)
		return false;
	while (lane->depth && lane->ends[lane->depth - 1] <= start)
		lane->depth--;
	return !lane->depth || (!is_apart && lane->ends[lane->depth - 1] >= end);
}

static uint64_t add_lane(struct ts_pf_export *x, struct ts_pf_group *group)
{
	struct ts_pf_lane *lane;

	if (ts_grow_array((void **)&group->lanes, &group->lane_capacity, group->lane_count + 1,
			  sizeof(*group->lanes)))
		return 0;
	lane = &group->lanes[group->lane_count++];
	*lane = (struct ts_pf_lane){ .uuid = group->lane_count == 1 ? group->uuid : ++x->uuids,
				     .last = INT64_MIN };
	if (group->lane_count > 1)
		put_lane(x, group, lane->uuid);
	return lane->uuid;
}

uint64_t ts_pf_lane_for(struct ts_pf_export *x, struct ts_pf_group *group, int64_t start,
			int64_t end)
{
	struct ts_pf_lane *lane = NULL;
	size_t i;

	for (i = 0; i < group->lane_count; i++) {
		lane = &group->lanes[i];
		if (lane_takes(lane, start, end, group->is_apart))
			break;
	}
	if (i == MAX_LANES) {
		put_lane(x, group, ++x->uuids);
		return x->uuids;
	}
	if (i == group->lane_count) {
		if (!add_lane(x, group))
			return 0;
		lane = &group->lanes[i];
	}
	if (lane->depth == lane->capacity && ts_grow_array((void **)&lane->ends, &lane->capacity,
							   lane->depth + 1, sizeof(*lane->ends)))
		return 0;
	lane->ends[lane->depth++] = end;
	lane->last = start;
	return lane->uuid;
}

/* ---- processes and threads ---- */

static void append_source(struct ts_pf_export *x, struct ts_text *to, int64_t id)
{
	const struct ts_source_row *source = ts_reader_entity(x->reader, TS_TABLE_SOURCE, id);

	if (!source || ts_map_count(&x->chrome.tracks.sources) < 2)
		return;
	if (source->rank != TS_ABSENT)
		ts_text_printf(to, " (rank %lld)", (long long)source->rank);
	else
		ts_text_printf(to, " (source %lld)", (long long)source->id);
}

static void append_string(struct ts_pf_export *x, struct ts_text *to, int64_t string)
{
	struct ts_string text = ts_reader_string(x->reader, string);

	ts_text_append(to, text.data, text.length);
}

static void append_process_name(struct ts_pf_export *x, struct ts_text *to,
				const struct ts_process_row *process)
{
	append_string(x, to, process->name ? process->name : process->pid_text);
	append_source(x, to, process->source);
}

/* Processes that only show a device in their source: its streams are their threads. */
static int find_device_processes(struct ts_pf_export *x)
{
	const struct ts_stream_row *stream;
	size_t cursor = 0;
	int64_t id;

	while ((stream = ts_reader_entity_next(x->reader, TS_TABLE_STREAM, &cursor, &id))) {
		const struct ts_thread_row *thread =
			ts_reader_entity(x->reader, TS_TABLE_THREAD, stream->thread);

		if (thread && ts_map_put(&x->device_processes, (uint64_t)thread->process, 1))
			return TS_ENOMEM;
	}
	return TS_OK;
}

static bool shows_device(const struct ts_pf_export *x, int64_t process)
{
	uint64_t one;

	return ts_map_get(&x->device_processes, (uint64_t)process, &one);
}

static void put_process(struct ts_pf_export *x, uint64_t uuid, int64_t id,
			const struct ts_process_row *process)
{
	TS_SCOPED(ts_text) name = { 0 };
	size_t open;

	append_process_name(x, &name, process);
	begin_descriptor(x, uuid, 0);
	put_rank(x, process->sort_index);
	if (shows_device(x, id)) {
		if (process->labels) {
			ts_text_append_str(&name, name.length ? ", " : "");
			append_string(x, &name, process->labels);
		}
		ts_proto_put_bytes(&x->text, TRACK_NAME, name.data, name.length);
		ts_proto_put_uint(&x->text, TRACK_MERGE, MERGE_NONE);
		ts_proto_put_uint(&x->text, TRACK_CHILD_ORDER, ORDER_EXPLICIT);
	} else {
		open = ts_proto_open(&x->text, TRACK_PROCESS);
		ts_proto_put_uint(&x->text, 1, ts_pf_pid(x, id));
		if (process->command)
			put_string(x, 2, process->command);
		if (name.length)
			ts_proto_put_bytes(&x->text, 6, name.data, name.length);
		if (process->sort_index >= INT32_MIN && process->sort_index <= INT32_MAX)
			ts_proto_put_int(&x->text, 3, process->sort_index);
		if (process->start > x->base_ns)
			ts_proto_put_uint(&x->text, 7, ts_pf_time(x, process->start));
		if (process->labels)
			put_string(x, 8, process->labels);
		ts_proto_close(&x->text, open);
	}
	put_descriptor(x);
}

static int add_processes(struct ts_pf_export *x)
{
	const struct ts_process_row *process;
	size_t cursor = 0;
	int64_t id;

	while ((process = ts_reader_entity_next(x->reader, TS_TABLE_PROCESS, &cursor, &id))) {
		struct ts_pf_group *group =
			add_group(x, ts_map_insert(&x->processes, (uint64_t)id, NULL), 0);

		if (!group)
			return TS_ENOMEM;
		group->process = id;
		put_process(x, group->uuid, id, process);
		if (ts_pf_flush(x, TS_PF_FLUSH_BYTES))
			return x->err->code;
	}
	return TS_OK;
}

static void put_thread(struct ts_pf_export *x, struct ts_pf_group *group, int64_t id,
		       const struct ts_thread_row *thread)
{
	size_t open;

	group->process = thread->process;
	group->name = thread->name ? thread->name : thread->tid_text;
	group->rank = thread->sort_index;
	if (shows_device(x, thread->process)) {
		group->lanes_are_siblings = true;
		put_plain_group(x, group, group->uuid);
		return;
	}
	begin_descriptor(x, group->uuid, group->parent);
	put_rank(x, group->rank);
	open = ts_proto_open(&x->text, TRACK_THREAD);
	ts_proto_put_uint(&x->text, 1, ts_pf_pid(x, thread->process));
	ts_proto_put_uint(&x->text, 2, ts_pf_tid(x, id));
	if (group->name)
		put_string(x, 5, group->name);
	if (thread->sort_index >= INT32_MIN && thread->sort_index <= INT32_MAX)
		ts_proto_put_int(&x->text, 3, thread->sort_index);
	ts_proto_close(&x->text, open);
	put_descriptor(x);
}

static int add_threads(struct ts_pf_export *x)
{
	const struct ts_thread_row *thread;
	size_t cursor = 0;
	int64_t id;

	while ((thread = ts_reader_entity_next(x->reader, TS_TABLE_THREAD, &cursor, &id))) {
		struct ts_pf_group *group =
			add_group(x, ts_map_insert(&x->threads, (uint64_t)id, NULL),
				  uuid_in(x, &x->processes, thread->process));

		if (!group)
			return TS_ENOMEM;
		put_thread(x, group, id, thread);
		if (ts_pf_flush(x, TS_PF_FLUSH_BYTES))
			return x->err->code;
	}
	return TS_OK;
}

/* ---- devices and streams ---- */

static void put_device(struct ts_pf_export *x, uint64_t uuid, const struct ts_device_row *device)
{
	TS_SCOPED(ts_text) name = { 0 };

	ts_text_append_str(&name, "device ");
	ts_text_append_int(&name, device->number == TS_ABSENT ? device->id : device->number);
	if (device->name) {
		ts_text_append_str(&name, ": ");
		append_string(x, &name, device->name);
	}
	append_source(x, &name, device->source);
	begin_descriptor(x, uuid, 0);
	ts_proto_put_bytes(&x->text, TRACK_NAME, name.data, name.length);
	ts_proto_put_uint(&x->text, TRACK_MERGE, MERGE_NONE);
	put_descriptor(x);
}

/* Only devices with events: sources often list devices that did nothing. */
static struct ts_pf_group *device_group(struct ts_pf_export *x, int64_t id)
{
	const struct ts_device_row *device = ts_reader_entity(x->reader, TS_TABLE_DEVICE, id);
	struct ts_pf_group *group = find(x, &x->devices, device ? id : 0);
	struct ts_device_row lost = ts_device_none;

	if (group)
		return group;
	group = add_group(x, ts_map_insert(&x->devices, (uint64_t)(device ? id : 0), NULL), 0);
	if (group)
		put_device(x, group->uuid, device ? device : &lost);
	return group;
}

static char *stream_name(struct ts_pf_export *x, int64_t id, const struct ts_stream_row *stream)
{
	TS_SCOPED(ts_text) name = { 0 };

	ts_text_append_str(&name, "stream ");
	ts_text_append_int(&name, !stream || stream->number == TS_ABSENT ? id : stream->number);
	if (stream && stream->name) {
		ts_text_append_str(&name, ": ");
		append_string(x, &name, stream->name);
	}
	return strdup(ts_text_cstr(&name));
}

struct ts_pf_group *ts_pf_stream_group(struct ts_pf_export *x, int64_t device, int64_t id)
{
	const struct ts_stream_row *stream;
	struct ts_pf_group *group = find(x, &x->streams, id), *parent;
	uint64_t uuid;

	if (group)
		return group;
	stream = ts_reader_entity(x->reader, TS_TABLE_STREAM, id);
	group = stream ? find(x, &x->threads, stream->thread) : NULL;
	if (group) {
		/* Cached for the next lookup. */
		uint64_t slot = (uint64_t)(group - x->groups);

		return ts_map_put(&x->streams, (uint64_t)id, slot) ? NULL : group;
	}
	parent = device_group(x, stream ? stream->device : device);
	uuid = parent ? parent->uuid : 0;
	group = add_group(x, ts_map_insert(&x->streams, (uint64_t)id, NULL), uuid);
	if (!group)
		return NULL;
	group->text = stream_name(x, id, stream);
	group->lanes_are_siblings = true;
	group->rank = stream && stream->number != TS_ABSENT ? stream->number : id;
	put_plain_group(x, group, group->uuid);
	return group;
}

/* ---- the rest ---- */

struct ts_pf_group *ts_pf_thread_group(struct ts_pf_export *x, int64_t thread)
{
	struct ts_pf_group *group = find(x, &x->threads, thread);

	if (group)
		return group;
	/* No thread, or a missing one: one track for all of them. */
	group = find(x, &x->threads, 0);
	if (group)
		return group;
	group = add_group(x, ts_map_insert(&x->threads, 0, NULL), 0);
	if (!group)
		return NULL;
	group->text = strdup("no thread");
	group->lanes_are_siblings = true;
	put_plain_group(x, group, group->uuid);
	return group;
}

struct ts_pf_group *ts_pf_process_group(struct ts_pf_export *x, int64_t process)
{
	struct ts_pf_group *group = find(x, &x->processes, process);

	return group ? group : ts_pf_thread_group(x, 0);
}

struct ts_pf_group *ts_pf_async_group(struct ts_pf_export *x, int64_t thread, int64_t name)
{
	struct ts_pf_group *owner = ts_pf_thread_group(x, thread), *group;
	bool is_new = false;
	uint64_t parent, *slot;

	if (!owner)
		return NULL;
	parent = owner->uuid;
	slot = ts_pairmap_insert(&x->async, parent, (uint64_t)name, &is_new);
	if (!slot)
		return NULL;
	if (!is_new)
		return &x->groups[*slot];
	group = add_group(x, slot, parent);
	if (!group)
		return NULL;
	group->name = name;
	group->is_apart = group->lanes_are_siblings = true;
	put_plain_group(x, group, group->uuid);
	return group;
}

/* ---- counters ---- */

/* Units by name suffix, for our own counters and others. */
static void put_unit(struct ts_pf_export *x, struct ts_string name)
{
	static const struct {
		const char *end;
		int unit;
		const char *text;
	} units[] = {
		/* Longer suffixes first. */
		{ "_bytes_per_s", 0, "B/s" },
		{ "_per_s", 0, "1/s" },
		{ "_bytes", 3, NULL },
		{ "_ns", 1, NULL },
		{ "_W", 0, "W" },
		{ "_MHz", 0, "MHz" },
		{ "_C", 0, "C" },
		{ "_percent", 0, "%" },
		{ "_J", 0, "J" },
		{ "_ms", 0, "ms" },
		{ "_us", 0, "us" },
		{ "_s", 0, "s" },
		{ "_count", 2, NULL },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(units); i++) {
		size_t length = strlen(units[i].end);

		if (name.length < length ||
		    memcmp(name.data + name.length - length, units[i].end, length) != 0)
			continue;
		if (units[i].unit)
			ts_proto_put_int(&x->text, 3, units[i].unit);
		else
			ts_proto_put_bytes(&x->text, 6, units[i].text, strlen(units[i].text));
		return;
	}
}

static uint64_t counter_parent(struct ts_pf_export *x, const struct ts_counter_row *counter)
{
	struct ts_pf_group *group = NULL;

	if (counter->thread)
		group = find(x, &x->threads, counter->thread);
	else if (counter->process)
		group = find(x, &x->processes, counter->process);
	else if (counter->device)
		group = device_group(x, counter->device);
	return group ? group->uuid : 0;
}

static void put_counter(struct ts_pf_export *x, uint64_t uuid, const struct ts_counter_row *counter,
			int64_t key, uint32_t series)
{
	struct ts_string name = ts_reader_string(x->reader, counter->name);
	struct ts_string serial = ts_reader_string(x->reader, key);
	uint64_t parent = counter_parent(x, counter);
	TS_SCOPED(ts_text) text = { 0 };
	size_t open;

	ts_text_append(&text, name.data, name.length);
	if (counter->id) {
		ts_text_append_char(&text, ' ');
		append_string(x, &text, counter->id);
	}
	if (counter->device && (counter->process || counter->thread)) {
		const struct ts_device_row *device =
			ts_reader_entity(x->reader, TS_TABLE_DEVICE, counter->device);

		ts_text_printf(&text, " device %lld",
			       (long long)(device && device->number != TS_ABSENT
						   ? device->number
						   : counter->device));
	}
	/* A single value has no series name. */
	if (series > 1) {
		ts_text_append_char(&text, ' ');
		ts_text_append(&text, serial.data, serial.length);
	}
	begin_descriptor(x, uuid, parent);
	ts_proto_put_bytes(&x->text, TRACK_NAME, text.data, text.length);
	ts_proto_put_uint(&x->text, TRACK_MERGE, MERGE_NONE);
	open = ts_proto_open(&x->text, TRACK_COUNTER);
	put_unit(x, series > 1 && memchr(serial.data, '_', serial.length) ? serial : name);
	ts_proto_close(&x->text, open);
	put_descriptor(x);
}

uint64_t ts_pf_counter_track(struct ts_pf_export *x, const struct ts_counter_row *counter,
			     int64_t key, uint32_t series)
{
	const int64_t what[] = { counter->thread, counter->device, counter->process,
				 counter->name,   counter->id,     key };
	bool is_new = false;
	uint32_t number = ts_strmap_intern(&x->counters, (const char *)what, sizeof(what), &is_new);

	if (number == TS_STRMAP_NONE)
		return 0;
	/* Above all others, so that no table is needed. */
	if (is_new)
		put_counter(x, (UINT64_C(1) << 32) + number, counter, key, series);
	return (UINT64_C(1) << 32) + number;
}

int ts_pf_tracks_init(struct ts_pf_export *x)
{
	int result;

	ts_strmap_init(&x->counters, 1);
	result = ts_chrome_tracks_init(&x->chrome);
	if (!result && find_device_processes(x))
		result = TS_ENOMEM;
	if (!result)
		result = add_processes(x);
	if (!result)
		result = add_threads(x);
	return result == TS_ENOMEM ? ts_error_set(x->err, TS_ENOMEM, "no memory") : result;
}

void ts_pf_tracks_release(struct ts_pf_export *x)
{
	for (size_t i = 0; i < x->group_count; i++) {
		for (size_t k = 0; k < x->groups[i].lane_count; k++)
			free(x->groups[i].lanes[k].ends);
		free(x->groups[i].lanes);
		ts_pf_flows_free(x->groups[i].flows);
		free(x->groups[i].text);
	}
	free(x->groups);
	ts_map_release(&x->processes);
	ts_map_release(&x->threads);
	ts_map_release(&x->devices);
	ts_map_release(&x->streams);
	ts_map_release(&x->device_processes);
	ts_pairmap_release(&x->async);
	ts_strmap_release(&x->counters);
	ts_chrome_tracks_release(&x->chrome.tracks);
}
