/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks of a Perfetto file. A thread track is that thread; any other track with events is a row of
 * `thread` without a number, below its process. Descriptors may come after their events.
 */
#include <stdlib.h>

#include "import/perfetto/perfetto_import.h"
#include "import/perfetto/perfetto_kinds.h"

/* Distinguishes tracks from threads among the keys of a process. */
#define TRACK_KEY (UINT64_C(1) << 63)

/* ---- processes and threads ---- */

int64_t ts_perfetto_process(struct ts_perfetto *p, uint32_t machine, int64_t pid)
{
	int64_t host = machine ? ts_entities_host(&p->entities, machine) : 0;

	return ts_entities_process_of(&p->entities, host, (uint64_t)pid, pid);
}

int64_t ts_perfetto_thread(struct ts_perfetto *p, uint32_t machine, int64_t pid, int64_t tid)
{
	int64_t process = ts_perfetto_process(p, machine, pid);

	return ts_entities_thread(&p->entities, process, (uint64_t)tid & ~TRACK_KEY, tid);
}

/* ---- tracks ---- */

static size_t add_track(struct ts_perfetto *p, uint64_t uuid)
{
	if (ts_grow_array((void **)&p->tracks, &p->track_capacity, p->track_count + 1,
			  sizeof(*p->tracks)))
		return 0;
	p->tracks[p->track_count] = (struct ts_perfetto_track){ .uuid = uuid, .multiplier = 1 };
	return ++p->track_count;
}

size_t ts_perfetto_track(struct ts_perfetto *p, uint64_t uuid)
{
	uint64_t *index;

	if (TS_LIKELY(p->last_track && p->last_uuid == uuid))
		return p->last_track;
	index = ts_map_insert(&p->track_index, uuid, NULL);
	if (!index)
		return 0;
	if (!*index)
		*index = add_track(p, uuid);
	p->last_uuid = uuid;
	p->last_track = *index;
	return *index;
}

size_t ts_perfetto_async_track(struct ts_perfetto *p, uint64_t what, uint64_t id)
{
	uint64_t *index = ts_pairmap_insert(&p->async_index, what, id, NULL);

	if (!index)
		return 0;
	if (!*index)
		*index = add_track(p, id);
	return *index;
}

void ts_perfetto_tracks_release(struct ts_perfetto *p)
{
	for (size_t i = 0; i < p->track_count; i++) {
		struct ts_perfetto_open *open = p->tracks[i].open;

		if (!open)
			continue;
		free(open->spans);
		free(open->values);
		free(open->ends);
		free(open);
	}
	free(p->tracks);
	ts_map_release(&p->track_index);
	ts_pairmap_release(&p->async_index);
}

int64_t ts_perfetto_track_process(struct ts_perfetto *p, size_t index)
{
	const struct ts_perfetto_track *track = &p->tracks[index - 1];
	uint64_t above;

	/* A crafted file may have cycles of tracks. */
	for (int depth = 0; depth < TS_PERFETTO_MAX_DEPTH; depth++) {
		if (track->process)
			return track->process;
		if (!track->parent || !ts_map_get(&p->track_index, track->parent, &above) || !above)
			return 0;
		track = &p->tracks[above - 1];
	}
	return 0;
}

/* Updates its row with what is known now. */
static void describe(struct ts_perfetto *p, size_t index)
{
	struct ts_perfetto_track *track = &p->tracks[index - 1];
	struct ts_thread_row row;
	int64_t process = ts_perfetto_track_process(p, index);

	if (!track->thread || track->kind == TS_PERFETTO_TRACK_THREAD)
		return;
	row = *(const struct ts_thread_row *)(p->entities.threads.rows +
					      (size_t)(track->thread -
						       p->entities.threads.first_id) *
						      sizeof(row));
	if (row.process == process && row.name == track->name &&
	    (!track->order_set || row.sort_index == track->order))
		return;
	row.process = process;
	row.name = track->name;
	if (track->order_set)
		row.sort_index = track->order;
	*ts_entities_thread_row(&p->entities, track->thread) = row;
}

int64_t ts_perfetto_track_thread(struct ts_perfetto *p, size_t index)
{
	struct ts_perfetto_track *track = &p->tracks[index - 1];

	if (TS_LIKELY(track->thread))
		return track->thread;
	track->thread = ts_entities_thread(&p->entities, ts_perfetto_track_process(p, index),
					   ts_hash_mix64(track->uuid) | TRACK_KEY, TS_ABSENT);
	if (track->thread)
		describe(p, index);
	return track->thread;
}

void ts_perfetto_finish_tracks(struct ts_perfetto *p)
{
	for (size_t i = 1; i <= p->track_count; i++)
		describe(p, i);
}

/* ---- descriptors ---- */

static void append_list(struct ts_text *json, const struct ts_proto_field *text)
{
	ts_text_append_char(json, json->length ? ',' : '[');
	ts_text_append_json(json, text->bytes ? text->bytes : "", text->length);
}

/* Ends the command line. 0: empty. */
static uint32_t close_list(struct ts_perfetto *p)
{
	if (!p->json.length)
		return 0;
	ts_text_append_char(&p->json, ']');
	return ts_writer_string(p->writer, p->json.data, p->json.length);
}

/* ProcessDescriptor. 0: no pid. */
static int64_t read_process(struct ts_perfetto *p, uint32_t machine,
			    const struct ts_proto_field *from)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;
	int64_t pid = TS_ABSENT, order = TS_ABSENT, start = TS_ABSENT, process;
	uint32_t name = 0, first = 0, command;
	struct ts_process_row *row;

	ts_text_clear(&p->json);
	ts_text_clear(&p->text);
	while (ts_proto_next(&message, &field)) {
		switch (field.number) {
		case 1:
			pid = (int32_t)field.value;
			break;
		case 2:
			append_list(&p->json, &field);
			if (!first)
				first = ts_perfetto_string(p, &field);
			break;
		case 3:
			order = (int32_t)field.value;
			break;
		case 6:
			name = ts_perfetto_string(p, &field);
			break;
		case 7:
			start = (int64_t)field.value;
			break;
		case 8:
			if (p->text.length)
				ts_text_append_char(&p->text, ',');
			ts_text_append(&p->text, field.bytes, field.length);
			break;
		}
	}
	command = close_list(p);
	if (pid == TS_ABSENT)
		return 0;
	process = ts_perfetto_process(p, machine, pid);
	if (!process)
		return 0;
	row = ts_entities_process_row(&p->entities, process);
	if (name || first)
		row->name = name ? name : first;
	if (command)
		row->command = command;
	if (order != TS_ABSENT)
		row->sort_index = order;
	if (start > 0)
		row->start = start;
	if (p->text.length)
		row->labels = ts_import_string(p->import, p->text.data, p->text.length);
	return process;
}

struct thread_facts {
	int64_t pid, tid, order, time_us, thread_time_us, instructions;
	uint32_t name;
};

static void read_thread(struct ts_perfetto *p, const struct ts_proto_field *from,
			struct thread_facts *facts)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;

	*facts = (struct thread_facts){ .pid = TS_ABSENT, .tid = TS_ABSENT, .order = TS_ABSENT };
	while (ts_proto_next(&message, &field)) {
		switch (field.number) {
		case 1:
			facts->pid = (int32_t)field.value;
			break;
		case 2:
			facts->tid = (int64_t)field.value;
			break;
		case 3:
			facts->order = (int32_t)field.value;
			break;
		case 5:
			facts->name = ts_perfetto_string(p, &field);
			break;
		case 6:
			facts->time_us = (int64_t)field.value;
			break;
		case 7:
			facts->thread_time_us = (int64_t)field.value;
			break;
		case 8:
			facts->instructions = (int64_t)field.value;
			break;
		}
	}
}

static int64_t describe_thread(struct ts_perfetto *p, uint32_t machine,
			       const struct thread_facts *facts, uint32_t other_name)
{
	int64_t thread;
	struct ts_thread_row *row;

	if (facts->pid == TS_ABSENT || facts->tid == TS_ABSENT)
		return 0;
	thread = ts_perfetto_thread(p, machine, facts->pid, facts->tid);
	if (!thread || (!facts->name && !other_name && facts->order == TS_ABSENT))
		return thread;
	row = ts_entities_thread_row(&p->entities, thread);
	if (facts->name || (other_name && !row->name))
		row->name = facts->name ? facts->name : other_name;
	if (facts->order != TS_ABSENT)
		row->sort_index = facts->order;
	return thread;
}

/* CounterDescriptor: the unit becomes part of the name. */
static void read_counter(struct ts_perfetto *p, const struct ts_proto_field *from, size_t index,
			 bool is_named)
{
	static const char *const units[] = { "", "ns", "count", "bytes" };
	struct ts_perfetto_track *track = &p->tracks[index - 1];
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;
	const char *name;
	size_t length = 0;

	ts_text_clear(&p->text);
	track->is_counter = true;
	track->is_incremental = false;
	track->multiplier = 1;
	while (ts_proto_next(&message, &field)) {
		switch (field.number) {
		case 1:
			track->is_thread_time = field.value == 1;
			track->is_instructions = field.value == 2;
			break;
		case 2:
			track->category = ts_perfetto_string(p, &field);
			break;
		case 3:
			if (field.value > 0 && field.value < TS_ARRAY_SIZE(units) &&
			    !p->text.length)
				ts_text_append_str(&p->text, units[field.value]);
			break;
		case 4:
			if (field.value)
				track->multiplier = (int64_t)field.value;
			break;
		case 5:
			track->is_incremental = field.value != 0;
			break;
		case 6:
			ts_text_clear(&p->text);
			if (field.type == TS_PROTO_BYTES)
				ts_text_append(&p->text, field.bytes, field.length);
			break;
		}
	}
	/* Descriptors are repeated. */
	if (!p->text.length || (track->name && !is_named))
		return;
	name = track->name ? ts_writer_text(p->writer, track->name, &length) : NULL;
	ts_text_clear(&p->json);
	ts_text_append(&p->json, name ? name : "", name ? length : 0);
	ts_text_append_str(&p->json, name ? " (" : "(");
	ts_text_append(&p->json, p->text.data, p->text.length);
	ts_text_append_char(&p->json, ')');
	if (!p->json.failed)
		track->name = ts_import_string(p->import, p->json.data, p->json.length);
}

struct track_facts {
	uint64_t uuid, parent;
	struct ts_proto_field process, thread, counter;
	uint32_t name;
	int32_t order;
	bool has_order;
};

static void read_facts(struct ts_perfetto *p, const struct ts_proto_field *from,
		       struct track_facts *facts)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;

	*facts = (struct track_facts){ 0 };
	while (ts_proto_next(&message, &field)) {
		switch (field.number) {
		case 1:
			facts->uuid = field.value;
			break;
		case 2:
		case 10:
		case 13:
			facts->name = ts_perfetto_string(p, &field);
			break;
		case 3:
			facts->process = field;
			break;
		case 4:
			facts->thread = field;
			break;
		case 5:
			facts->parent = field.value;
			break;
		case 8:
			facts->counter = field;
			break;
		case 12:
			facts->order = (int32_t)field.value;
			facts->has_order = true;
			break;
		}
	}
}

void ts_perfetto_read_track(struct ts_perfetto *p, const struct ts_perfetto_packet *packet)
{
	struct track_facts facts;
	struct thread_facts thread_facts;
	struct ts_perfetto_track *track;
	size_t index;
	int64_t thread = 0, process = 0;

	read_facts(p, &packet->data, &facts);
	index = ts_perfetto_track(p, facts.uuid);
	if (!index)
		return;
	track = &p->tracks[index - 1];
	if (facts.name)
		track->name = facts.name;
	if (facts.parent && facts.parent != facts.uuid)
		track->parent = facts.parent;
	if (facts.has_order) {
		track->order = facts.order;
		track->order_set = 1;
	}
	if (facts.process.number)
		process = read_process(p, packet->machine, &facts.process);
	if (facts.thread.number) {
		read_thread(p, &facts.thread, &thread_facts);
		thread = describe_thread(p, packet->machine, &thread_facts, facts.name);
		if (thread)
			process = ts_perfetto_process(p, packet->machine, thread_facts.pid);
	}
	if (track->kind == TS_PERFETTO_TRACK_UNKNOWN)
		track->kind = TS_PERFETTO_TRACK_PLAIN;
	if (process) {
		track->process = process;
		track->kind = thread ? TS_PERFETTO_TRACK_THREAD : TS_PERFETTO_TRACK_PROCESS;
	}
	if (thread)
		track->thread = thread;
	if (facts.counter.number)
		read_counter(p, &facts.counter, index, facts.name != 0);
}

/* ---- the old way ---- */

void ts_perfetto_read_old_thread(struct ts_perfetto *p, struct ts_perfetto_sequence *sequence,
				 const struct ts_perfetto_packet *packet)
{
	struct thread_facts facts;

	read_thread(p, &packet->data, &facts);
	describe_thread(p, packet->machine, &facts, 0);
	sequence->pid = facts.pid;
	sequence->tid = facts.tid;
	sequence->has_time = true;
	if (__builtin_mul_overflow(facts.time_us, 1000, &sequence->time_ns))
		sequence->time_ns = 0;
	if (__builtin_mul_overflow(facts.thread_time_us, 1000, &sequence->thread_time_ns))
		sequence->thread_time_ns = 0;
	sequence->instructions = facts.instructions;
}

void ts_perfetto_read_old_process(struct ts_perfetto *p, const struct ts_perfetto_packet *packet)
{
	read_process(p, packet->machine, &packet->data);
}
