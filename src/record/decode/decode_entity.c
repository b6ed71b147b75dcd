/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entities that events belong to: source, host, processes, threads, tracks. A row is written when a
 * file first needs it, and again after a rotation.
 */
#include "record/decode/decode_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include <tracesmith/accelerator.h>

#define ASYNC_TRACKS 65536u

/* ---- texts ---- */

uint32_t decode_string(struct ts_decoder *decoder, const char *text, size_t length)
{
	if (TS_LIKELY(ts_utf8_valid(text, length)))
		return ts_writer_string(decoder->writer, text, length);
	ts_text_clear(&decoder->scratch);
	ts_utf8_sanitize(&decoder->scratch, text, length);
	if (ts_text_status(&decoder->scratch)) {
		decode_no_memory(decoder);
		return 0;
	}
	return ts_writer_string(decoder->writer, decoder->scratch.data, decoder->scratch.length);
}

uint32_t decode_text(struct ts_decoder *decoder, const char *text)
{
	return ts_writer_string(decoder->writer, text, strlen(text));
}

uint32_t decode_fixed(struct ts_decoder *decoder, const char *text, size_t bytes)
{
	return decode_string(decoder, text, strnlen(text, bytes));
}

/* ---- source, host, facts ---- */

void decode_meta(struct ts_decoder *decoder, int64_t process, const char *key, const char *json)
{
	struct ts_meta_row row = ts_meta_none;

	row.source = DECODE_SOURCE_OF_RECORDING;
	row.process = process;
	row.key = decode_text(decoder, key);
	row.value = decode_text(decoder, json);
	ts_writer_add(decoder->writer, TS_TABLE_META, &row, NULL);
}

static void meta_number(struct ts_decoder *decoder, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	decode_meta(decoder, 0, key, text);
}

static void meta_text(struct ts_decoder *decoder, const char *key, const char *text, size_t bytes)
{
	TS_SCOPED(ts_text) json = { 0 };

	ts_text_append_json(&json, text, strnlen(text, bytes));
	decode_meta(decoder, 0, key, ts_text_cstr(&json));
}

static void host_row(struct ts_decoder *decoder)
{
	const struct ts_block_open *open = &decoder->open;
	struct ts_host_row row = ts_host_none;
	char boot_id[40] = "";
	size_t length = 0;

	for (size_t i = 0; i < sizeof(open->boot_id); i++)
		length += (size_t)snprintf(boot_id + length, sizeof(boot_id) - length, "%s%02x",
					   i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
					   open->boot_id[i]);
	row.id = decoder->host;
	row.name = decode_fixed(decoder, open->host, sizeof(open->host));
	row.boot_id = decode_text(decoder, boot_id);
	row.system = decode_fixed(decoder, open->system, sizeof(open->system));
	if (open->processors && open->processors < INT32_MAX)
		row.processors = (int64_t)open->processors;
	if (open->memory_bytes && open->memory_bytes < INT64_MAX)
		row.memory_bytes = (int64_t)open->memory_bytes;
	ts_writer_add(decoder->writer, TS_TABLE_HOST, &row, NULL);
}

void decode_preamble(struct ts_decoder *decoder)
{
	const struct ts_block_open *open = &decoder->open;

	decode_write_origin(decoder);
	host_row(decoder);
	meta_text(decoder, "recorder", open->recorder, sizeof(open->recorder));
	meta_number(decoder, "recorder_pid", open->recorder_pid);
	meta_number(decoder, "session", open->session);
	decode_meta(decoder, 0, "clock",
		    open->clock == TS_LIVE_CLOCK_COUNTER ? "\"counter\"" : "\"monotonic\"");
	meta_number(decoder, "counter_mult", open->counter_mult);
	meta_number(decoder, "counter_start", open->started_counter);
	decode_meta(decoder, 0, "redact", open->redact ? "true" : "false");
	decode_clock_rows(decoder);
}

/* ---- processes ---- */

struct decode_process *decode_get_process(struct ts_decoder *decoder, uint64_t pid,
					  uint64_t start_time, uint64_t image, bool any_image)
{
	uint64_t newest;

	if (!ts_map_get(&decoder->pids, pid, &newest))
		return NULL;
	/* From the newest back: pids are reused, and images replace each other. */
	for (size_t i = newest + 1; i > 0; i--) {
		struct decode_process *process = decoder->processes[i - 1];

		if (process->pid == pid && process->start_time == start_time &&
		    (any_image || process->image == image))
			return process;
	}
	return NULL;
}

void decode_free_process(struct decode_process *process)
{
	free(process->name);
	free(process->command);
	free(process);
}

/* Drops the older half of the ended processes, so that memory stays bounded. */
static void forget_processes(struct ts_decoder *decoder)
{
	size_t kept = 0, dropped = 0;

	for (size_t i = 0; i < decoder->process_count; i++)
		decoder->processes[i]->used = false;
	for (size_t i = 0; i < decoder->area_count; i++) {
		struct decode_area *area = decoder->areas[i];

		if (area->ended)
			area->process = NULL;
		else if (area->process)
			area->process->used = true;
	}
	ts_map_clear(&decoder->pids);
	for (size_t i = 0; i < decoder->process_count; i++) {
		struct decode_process *process = decoder->processes[i];

		if (process->ended && !process->used && dropped < DECODE_PROCESSES / 2) {
			decode_free_process(process);
			dropped++;
			continue;
		}
		decoder->processes[kept] = process;
		if (ts_map_put(&decoder->pids, process->pid, kept++))
			decode_no_memory(decoder);
	}
	decoder->process_count = kept;
}

struct decode_process *decode_add_process(struct ts_decoder *decoder, uint64_t pid)
{
	struct decode_process *process;

	if (decoder->process_count >= DECODE_PROCESSES)
		forget_processes(decoder);
	process = calloc(1, sizeof(*process));
	if (!process ||
	    ts_grow_array((void **)&decoder->processes, &decoder->process_capacity,
			  decoder->process_count + 1, sizeof(struct decode_process *)) ||
	    ts_map_put(&decoder->pids, pid, decoder->process_count)) {
		free(process);
		decode_no_memory(decoder);
		return NULL;
	}
	process->pid = pid;
	process->start_ns = process->end_ns = process->exit_status = TS_ABSENT;
	decoder->processes[decoder->process_count++] = process;
	return process;
}

/* Converts NUL-terminated arguments to a JSON list. */
static char *command_json(const char *command, size_t bytes)
{
	struct ts_text json = { 0 };
	size_t at = 0;

	ts_text_append_char(&json, '[');
	while (at < bytes && command[at]) {
		size_t length = strnlen(command + at, bytes - at);

		if (at)
			ts_text_append_char(&json, ',');
		ts_text_append_json(&json, command + at, length);
		at += length + 1;
	}
	ts_text_append(&json, "]", 2);
	return json.data; /* NULL without memory: a process without a command */
}

void decode_set_process_texts(struct ts_decoder *decoder, struct decode_process *process,
			      const char *name, size_t name_bytes, const char *command,
			      size_t command_bytes)
{
	free(process->name);
	process->name = strndup(name, name_bytes);
	process->name_id = 0;
	if (command_bytes && command[0] && !decoder->open.redact) {
		free(process->command);
		process->command = command_json(command, command_bytes);
		process->command_id = 0;
	}
}

static int64_t parent_of(const struct ts_decoder *decoder, const struct decode_process *process)
{
	uint64_t index;

	if (process->parent == process->pid || !ts_map_get(&decoder->pids, process->parent, &index))
		return 0;
	/* The recorder's own process has a row only if something refers to it. */
	if (decoder->processes[index]->of_recorder &&
	    decoder->processes[index]->epoch != decoder->epoch)
		return 0;
	return decoder->processes[index]->id;
}

void decode_write_process(struct ts_decoder *decoder, struct decode_process *process)
{
	struct ts_process_row row = ts_process_none;

	if (process->epoch != decoder->epoch)
		process->name_id = process->command_id = 0;
	if (process->name && !process->name_id)
		process->name_id = decode_string(decoder, process->name, strlen(process->name));
	if (process->command && !process->command_id)
		process->command_id =
			decode_string(decoder, process->command, strlen(process->command));
	row.id = process->id;
	row.source = decode_source_of(decoder, process);
	row.host = decoder->host;
	row.pid = (int64_t)process->pid;
	row.parent = parent_of(decoder, process);
	row.name = process->name_id;
	row.command = process->command_id;
	row.start = process->start_ns;
	row.end = process->end_ns;
	/* The end is the recorder's word, the start only that of the process. */
	if (row.end != TS_ABSENT)
		row.start = TS_MIN(row.start, row.end);
	row.exit_status = process->exit_status;
	ts_writer_add(decoder->writer, TS_TABLE_PROCESS, &row, NULL);
	process->epoch = decoder->epoch;
}

/* Writes the last row of a process. The texts are in the file. */
void decode_end_process(struct ts_decoder *decoder, struct decode_process *process)
{
	process->ended = true;
	decode_write_process(decoder, process);
	free(TS_STEAL(process->name));
	free(TS_STEAL(process->command));
}

/* ---- subjects of counters ---- */

struct decode_process *decode_find_external(struct ts_decoder *decoder, uint64_t pid)
{
	struct decode_process *process = decode_get_process(decoder, pid, 0, 0, false);

	return process && process->external ? process : NULL;
}

void decode_know_process(struct ts_decoder *decoder, struct decode_process *process)
{
	decoder->external_count -= process->external;
	process->external = false;
}

/* The end of an external process is not reported: if there are many, forgets earlier ones. */
static void forget_external(struct ts_decoder *decoder)
{
	for (size_t i = 0; i < decoder->process_count; i++) {
		struct decode_process *process = decoder->processes[i];

		if (process->external)
			process->ended = true;
		process->external = false;
	}
	decoder->external_count = 0;
}

static struct decode_process *add_external(struct ts_decoder *decoder, uint64_t pid,
					   uint64_t start_time)
{
	struct decode_process *process;

	if (decoder->external_count >= DECODE_EXTERNAL_PROCESSES)
		forget_external(decoder);
	process = decode_add_process(decoder, pid);
	if (!process)
		return NULL;
	process->id = decoder->next_process++;
	process->start_time = start_time;
	process->external = true;
	decoder->external_count++;
	return process;
}

/* The image of a process at that time; the first one if none is that old. */
static struct decode_process *find_image(const struct ts_decoder *decoder, uint64_t newest,
					 uint64_t start_time, int64_t ns)
{
	uint64_t pid = decoder->processes[newest]->pid;
	struct decode_process *found = NULL;

	for (size_t i = newest + 1; i > 0; i--) {
		struct decode_process *process = decoder->processes[i - 1];

		if (process->pid != pid || process->start_time != start_time)
			continue;
		found = process;
		if (process->start_ns == TS_ABSENT || process->start_ns <= ns)
			break;
	}
	return found;
}

/* The process with that start time, or the newest unless it is known to be another one. */
static struct decode_process *find_subject(struct ts_decoder *decoder, uint64_t pid,
					   uint64_t start_time, int64_t ns)
{
	struct decode_process *process = NULL;
	uint64_t newest;

	if (!ts_map_get(&decoder->pids, pid, &newest))
		return NULL;
	if (start_time)
		process = find_image(decoder, newest, start_time, ns);
	if (process || (start_time && (decoder->processes[newest]->start_time ||
				       decoder->processes[newest]->ended)))
		return process;
	process = decoder->processes[newest];
	if (start_time)
		process->start_time = start_time;
	return process;
}

/* An area of another pid namespace can only refer to processes known from that namespace. */
static struct decode_process *find_inside(const struct ts_decoder *decoder,
					  const struct decode_area *area, uint32_t pid)
{
	uint64_t space = area->about->control.pid_namespace;

	for (size_t i = decoder->area_count; i > 0; i--) {
		const struct decode_area *other = decoder->areas[i - 1];

		if (other->about && other->about->control.pid == pid &&
		    other->about->control.pid_namespace == space)
			return other->process;
	}
	return NULL;
}

struct decode_process *decode_subject_process(struct ts_decoder *decoder,
					      const struct decode_area *area, uint32_t pid,
					      uint64_t start_time, int64_t ns)
{
	const struct ts_block_area *about = area->about;
	bool is_inside = about->pid && about->pid != about->control.pid;
	struct decode_process *process;

	if (is_inside)
		process = find_inside(decoder, area, pid);
	else
		process = find_subject(decoder, pid, start_time, ns);
	if (!process && !is_inside)
		process = add_external(decoder, pid, start_time);
	if (process && process->epoch != decoder->epoch)
		decode_write_process(decoder, process);
	return process;
}

/* ---- threads ---- */

void decode_release_thread(struct decode_thread *thread)
{
	if (--thread->holders)
		return;
	if (thread->memo)
		*thread->memo->total_bytes -= sizeof(*thread->memo);
	free(thread->memo);
	for (size_t i = 0; i < TS_ARRAY_SIZE(thread->stacks); i++) {
		ts_text_release(&thread->stacks[i].records);
		free(thread->stacks[i].starts);
	}
	free(thread);
}

void decode_disown_thread(struct decode_thread *thread)
{
	thread->is_owned = false;
	decode_release_thread(thread);
}

static bool is_idle(const struct decode_area *area, const struct decode_thread *thread)
{
	if (thread->is_track || thread->stacks[0].count || thread->stacks[1].count)
		return false;
	for (size_t i = 0; i < area->ring_count; i++)
		if (area->rings[i] && area->rings[i]->thread == thread)
			return false;
	return true;
}

void decode_forget_threads(struct decode_area *area)
{
	size_t kept = 0;

	ts_map_clear(&area->serials);
	ts_map_clear(&area->tracks);
	for (size_t i = 0; i < area->thread_count; i++) {
		struct decode_thread *thread = area->threads[i];

		/* The map keeps its memory, so inserting fewer entries cannot fail. */
		if (is_idle(area, thread) ||
		    ts_map_put(thread->is_track ? &area->tracks : &area->serials, thread->key,
			       kept)) {
			decode_disown_thread(thread);
			continue;
		}
		area->threads[kept++] = thread;
	}
	area->thread_count = kept;
}

static struct decode_thread *add_thread(struct ts_decoder *decoder, struct decode_area *area,
					uint64_t key, bool is_track)
{
	struct decode_thread *thread;

	if (!is_track && area->thread_count - area->track_count >= DECODE_THREADS)
		decode_forget_threads(area);
	if (is_track ? area->track_count >= DECODE_TRACKS
		     : area->thread_count - area->track_count >= DECODE_THREADS)
		return NULL;
	thread = calloc(1, sizeof(*thread));
	if (!thread ||
	    ts_grow_array((void **)&area->threads, &area->thread_capacity, area->thread_count + 1,
			  sizeof(struct decode_thread *)) ||
	    ts_map_put(is_track ? &area->tracks : &area->serials, key, area->thread_count)) {
		free(thread);
		decode_no_memory(decoder);
		return NULL;
	}
	thread->id = decoder->next_thread++;
	thread->holders = 1;
	thread->is_owned = true;
	thread->area = area->id;
	thread->key = key;
	thread->is_track = is_track;
	area->threads[area->thread_count++] = thread;
	area->track_count += is_track;
	return thread;
}

static bool is_async_track(uint64_t key)
{
	return key - (uint64_t)TS_TRACK_ASYNC < ASYNC_TRACKS;
}

struct decode_thread *decode_get_thread(struct ts_decoder *decoder, struct decode_area *area,
					uint64_t key, bool is_track)
{
	struct decode_thread *thread;
	uint64_t index;

	if (ts_map_get(is_track ? &area->tracks : &area->serials, key, &index))
		return area->threads[index];
	thread = add_thread(decoder, area, key, is_track);
	if (thread && is_track && key == 0)
		snprintf(thread->name, sizeof(thread->name), "engine");
	else if (thread && is_track && (key & TS_TRACK_RANGES) && key >> 41 == 0)
		snprintf(thread->name, sizeof(thread->name), "ranges %llu",
			 (unsigned long long)key - TS_TRACK_RANGES + 1);
	else if (thread && is_track && is_async_track(key))
		snprintf(thread->name, sizeof(thread->name), "async %llu",
			 (unsigned long long)(key - (uint64_t)TS_TRACK_ASYNC));
	else if (thread && is_track)
		snprintf(thread->name, sizeof(thread->name), "track %lld", (long long)key);
	return thread;
}

void decode_write_thread(struct ts_decoder *decoder, struct decode_area *area,
			 struct decode_thread *thread)
{
	struct ts_thread_row row = ts_thread_none;

	if (area && area->process && area->process->epoch != decoder->epoch)
		decode_write_process(decoder, area->process);
	row.id = thread->id;
	row.process = area && area->process ? area->process->id : thread->process;
	if (thread->is_track)
		row.tid = (int64_t)thread->key;
	else if (thread->tid)
		row.tid = thread->tid;
	if (thread->name[0])
		row.name = decode_fixed(decoder, thread->name, sizeof(thread->name));
	ts_writer_add(decoder->writer, TS_TABLE_THREAD, &row, NULL);
	thread->epoch = decoder->epoch;
}

void decode_name_thread(struct ts_decoder *decoder, struct decode_area *area,
			struct decode_thread *thread, const char *name, size_t bytes,
			enum decode_namer namer)
{
	size_t length = TS_MIN(strnlen(name, bytes), sizeof(thread->name) - 1);

	if (!length || namer < (enum decode_namer)thread->named_by)
		return;
	thread->named_by = (uint8_t)namer;
	if (strncmp(thread->name, name, length) == 0 && !thread->name[length])
		return;
	memcpy(thread->name, name, length);
	thread->name[length] = 0;
	if (thread->epoch == decoder->epoch)
		decode_write_thread(decoder, area, thread);
}

void decode_use_thread(struct ts_decoder *decoder, struct decode_area *area,
		       struct decode_thread *thread)
{
	if (TS_UNLIKELY(thread->epoch != decoder->epoch))
		decode_write_thread(decoder, area, thread);
}
