/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who events belong to and what they are called: source, host, processes, threads, tracks. A row
 * is written when a file first needs it; after a rotation that is anew.
 */
#include "record/decode/decode_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include <tracesmith/accelerator.h>

/* ---- texts ---- */

uint32_t encode_string(struct ts_encoder *encoder, const char *text, size_t length)
{
	if (TS_LIKELY(ts_utf8_valid(text, length)))
		return ts_writer_string(encoder->writer, text, length);
	ts_text_clear(&encoder->scratch);
	ts_utf8_sanitize(&encoder->scratch, text, length);
	if (ts_text_status(&encoder->scratch)) {
		encode_no_memory(encoder);
		return 0;
	}
	return ts_writer_string(encoder->writer, encoder->scratch.data, encoder->scratch.length);
}

uint32_t encode_text(struct ts_encoder *encoder, const char *text)
{
	return ts_writer_string(encoder->writer, text, strlen(text));
}

uint32_t encode_fixed(struct ts_encoder *encoder, const char *text, size_t bytes)
{
	return encode_string(encoder, text, strnlen(text, bytes));
}

/* ---- about the trace ---- */

void encode_meta(struct ts_encoder *encoder, int64_t process, const char *key, const char *json)
{
	struct ts_meta_row row = ts_meta_none;

	row.source = encoder->source;
	row.process = process;
	row.key = encode_text(encoder, key);
	row.value = encode_text(encoder, json);
	ts_writer_add(encoder->writer, TS_TABLE_META, &row, NULL);
}

static void meta_number(struct ts_encoder *encoder, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	encode_meta(encoder, 0, key, text);
}

static void meta_text(struct ts_encoder *encoder, const char *key, const char *text, size_t bytes)
{
	TS_SCOPED(ts_text) json = { 0 };

	ts_text_append_json(&json, text, strnlen(text, bytes));
	encode_meta(encoder, 0, key, ts_text_cstr(&json));
}

static void source_row(struct ts_encoder *encoder)
{
	struct ts_source_row row = ts_source_none;

	row.id = encoder->source;
	row.name = encode_text(encoder, encoder->name ? encoder->name : "");
	row.format = encode_text(encoder, "tracesmith");
	row.clock = 1;
	ts_writer_add(encoder->writer, TS_TABLE_SOURCE, &row, NULL);
}

static void host_row(struct ts_encoder *encoder)
{
	const struct ts_block_open *open = &encoder->open;
	struct ts_host_row row = ts_host_none;
	char boot_id[40] = "";
	size_t length = 0;

	for (size_t i = 0; i < sizeof(open->boot_id); i++)
		length += (size_t)snprintf(boot_id + length, sizeof(boot_id) - length, "%s%02x",
					   i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
					   open->boot_id[i]);
	row.id = encoder->host;
	row.name = encode_fixed(encoder, open->host, sizeof(open->host));
	row.boot_id = encode_text(encoder, boot_id);
	row.system = encode_fixed(encoder, open->system, sizeof(open->system));
	if (open->processors && open->processors < INT32_MAX)
		row.processors = (int64_t)open->processors;
	if (open->memory_bytes && open->memory_bytes < INT64_MAX)
		row.memory_bytes = (int64_t)open->memory_bytes;
	ts_writer_add(encoder->writer, TS_TABLE_HOST, &row, NULL);
}

void encode_preamble(struct ts_encoder *encoder)
{
	const struct ts_block_open *open = &encoder->open;

	source_row(encoder);
	host_row(encoder);
	meta_text(encoder, "recorder", open->recorder, sizeof(open->recorder));
	meta_number(encoder, "recorder_pid", open->recorder_pid);
	meta_number(encoder, "session", open->session);
	encode_meta(encoder, 0, "clock",
		    open->clock == TS_LIVE_CLOCK_COUNTER ? "\"counter\"" : "\"monotonic\"");
	meta_number(encoder, "counter_mult", open->counter_mult);
	meta_number(encoder, "counter_start", open->started_counter);
	encode_meta(encoder, 0, "redact", open->redact ? "true" : "false");
	encode_clock_rows(encoder);
}

/* ---- processes ---- */

struct encode_process *encode_get_process(struct ts_encoder *encoder, uint64_t pid,
					  uint64_t start_time, uint64_t image, bool any_image)
{
	uint64_t newest;

	if (!ts_map_get(&encoder->pids, pid, &newest))
		return NULL;
	/* From the newest back: a pid comes again, an image is newer than another. */
	for (size_t i = newest + 1; i > 0; i--) {
		struct encode_process *process = encoder->processes[i - 1];

		if (process->pid == pid && process->start_time == start_time &&
		    (any_image || process->image == image))
			return process;
	}
	return NULL;
}

void encode_free_process(struct encode_process *process)
{
	free(process->name);
	free(process->command);
	free(process);
}

/* Drops the older half of those that have ended, so that endless recordings need bounded memory. */
static void forget_processes(struct ts_encoder *encoder)
{
	size_t kept = 0, dropped = 0;

	for (size_t i = 0; i < encoder->process_count; i++)
		encoder->processes[i]->used = false;
	for (size_t i = 0; i < encoder->area_count; i++) {
		struct encode_area *area = encoder->areas[i];

		if (area->ended)
			area->process = NULL;
		else if (area->process)
			area->process->used = true;
	}
	ts_map_clear(&encoder->pids);
	for (size_t i = 0; i < encoder->process_count; i++) {
		struct encode_process *process = encoder->processes[i];

		if (process->ended && !process->used && dropped < ENCODE_PROCESSES / 2) {
			encode_free_process(process);
			dropped++;
			continue;
		}
		encoder->processes[kept] = process;
		if (ts_map_put(&encoder->pids, process->pid, kept++))
			encode_no_memory(encoder);
	}
	encoder->process_count = kept;
}

struct encode_process *encode_add_process(struct ts_encoder *encoder, uint64_t pid)
{
	struct encode_process *process;

	if (encoder->process_count >= ENCODE_PROCESSES)
		forget_processes(encoder);
	process = calloc(1, sizeof(*process));
	if (!process ||
	    ts_grow_array((void **)&encoder->processes, &encoder->process_capacity,
			  encoder->process_count + 1, sizeof(struct encode_process *)) ||
	    ts_map_put(&encoder->pids, pid, encoder->process_count)) {
		free(process);
		encode_no_memory(encoder);
		return NULL;
	}
	process->pid = pid;
	process->start_ns = process->end_ns = process->exit_status = TS_ABSENT;
	encoder->processes[encoder->process_count++] = process;
	return process;
}

/* Arguments, each ended by NUL, as a JSON list. */
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
	return json.data; /* NULL where there was no memory: a process without a command */
}

void encode_set_process_texts(struct ts_encoder *encoder, struct encode_process *process,
			      const char *name, size_t name_bytes, const char *command,
			      size_t command_bytes)
{
	free(process->name);
	process->name = strndup(name, name_bytes);
	process->name_id = 0;
	if (command_bytes && command[0] && !encoder->open.redact) {
		free(process->command);
		process->command = command_json(command, command_bytes);
		process->command_id = 0;
	}
}

static int64_t parent_of(const struct ts_encoder *encoder, const struct encode_process *process)
{
	uint64_t place;

	if (process->parent == process->pid || !ts_map_get(&encoder->pids, process->parent, &place))
		return 0;
	/* That of the recorder has no row, unless something stands there. */
	if (encoder->processes[place]->of_recorder &&
	    encoder->processes[place]->epoch != encoder->epoch)
		return 0;
	return encoder->processes[place]->id;
}

void encode_write_process(struct ts_encoder *encoder, struct encode_process *process)
{
	struct ts_process_row row = ts_process_none;

	if (process->epoch != encoder->epoch)
		process->name_id = process->command_id = 0;
	if (process->name && !process->name_id)
		process->name_id = encode_string(encoder, process->name, strlen(process->name));
	if (process->command && !process->command_id)
		process->command_id =
			encode_string(encoder, process->command, strlen(process->command));
	row.id = process->id;
	row.source = encoder->source;
	row.host = encoder->host;
	row.pid = (int64_t)process->pid;
	row.parent = parent_of(encoder, process);
	row.name = process->name_id;
	row.command = process->command_id;
	row.start = process->start_ns;
	row.end = process->end_ns;
	row.exit_status = process->exit_status;
	ts_writer_add(encoder->writer, TS_TABLE_PROCESS, &row, NULL);
	process->epoch = encoder->epoch;
}

/* Its last row; the texts are in the file. */
void encode_end_process(struct ts_encoder *encoder, struct encode_process *process)
{
	process->ended = true;
	encode_write_process(encoder, process);
	free(TS_STEAL(process->name));
	free(TS_STEAL(process->command));
}

/* ---- processes that counters are about ---- */

struct encode_process *encode_find_stranger(struct ts_encoder *encoder, uint64_t pid)
{
	struct encode_process *process = encode_get_process(encoder, pid, 0, 0, false);

	return process && process->stranger ? process : NULL;
}

void encode_know_process(struct ts_encoder *encoder, struct encode_process *process)
{
	encoder->stranger_count -= process->stranger;
	process->stranger = false;
}

/* Nobody says when a stranger ends: when there are many, those of before may be forgotten. */
static void give_up_strangers(struct ts_encoder *encoder)
{
	for (size_t i = 0; i < encoder->process_count; i++) {
		struct encode_process *process = encoder->processes[i];

		if (process->stranger)
			process->ended = true;
		process->stranger = false;
	}
	encoder->stranger_count = 0;
}

static struct encode_process *add_stranger(struct ts_encoder *encoder, uint64_t pid,
					   uint64_t start_time)
{
	struct encode_process *process;

	if (encoder->stranger_count >= ENCODE_STRANGERS)
		give_up_strangers(encoder);
	process = encode_add_process(encoder, pid);
	if (!process)
		return NULL;
	process->id = encoder->next_process++;
	process->start_time = start_time;
	process->stranger = true;
	encoder->stranger_count++;
	return process;
}

/* The image that a process had at that time; the first, where none is that old. */
static struct encode_process *find_image(const struct ts_encoder *encoder, uint64_t newest,
					 uint64_t start_time, int64_t ns)
{
	uint64_t pid = encoder->processes[newest]->pid;
	struct encode_process *found = NULL;

	for (size_t i = newest + 1; i > 0; i--) {
		struct encode_process *process = encoder->processes[i - 1];

		if (process->pid != pid || process->start_time != start_time)
			continue;
		found = process;
		if (process->start_ns == TS_ABSENT || process->start_ns <= ns)
			break;
	}
	return found;
}

/* Of that start time, else the newest where nothing says that it is another. */
static struct encode_process *find_subject(struct ts_encoder *encoder, uint64_t pid,
					   uint64_t start_time, int64_t ns)
{
	struct encode_process *process = NULL;
	uint64_t newest;

	if (!ts_map_get(&encoder->pids, pid, &newest))
		return NULL;
	if (start_time)
		process = find_image(encoder, newest, start_time, ns);
	if (process || (start_time && (encoder->processes[newest]->start_time ||
				       encoder->processes[newest]->ended)))
		return process;
	process = encoder->processes[newest];
	if (start_time)
		process->start_time = start_time;
	return process;
}

/*
 * An area of another pid namespace than ours can only speak of those whom we know from there, too.
 */
static struct encode_process *find_inside(const struct ts_encoder *encoder,
					  const struct encode_area *area, uint32_t pid)
{
	uint64_t space = area->about->control.pid_namespace;

	for (size_t i = encoder->area_count; i > 0; i--) {
		const struct encode_area *other = encoder->areas[i - 1];

		if (other->about && other->about->control.pid == pid &&
		    other->about->control.pid_namespace == space)
			return other->process;
	}
	return NULL;
}

struct encode_process *encode_subject_process(struct ts_encoder *encoder,
					      const struct encode_area *area, uint32_t pid,
					      uint64_t start_time, int64_t ns)
{
	const struct ts_block_area *about = area->about;
	bool is_inside = about->pid && about->pid != about->control.pid;
	struct encode_process *process;

	if (is_inside)
		process = find_inside(encoder, area, pid);
	else
		process = find_subject(encoder, pid, start_time, ns);
	if (!process && !is_inside)
		process = add_stranger(encoder, pid, start_time);
	if (process && process->epoch != encoder->epoch)
		encode_write_process(encoder, process);
	return process;
}

/* ---- threads ---- */

void encode_release_thread(struct encode_thread *thread)
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

void encode_disown_thread(struct encode_thread *thread)
{
	thread->is_owned = false;
	encode_release_thread(thread);
}

static bool is_idle(const struct encode_area *area, const struct encode_thread *thread)
{
	if (thread->is_track || thread->stacks[0].count || thread->stacks[1].count)
		return false;
	for (size_t i = 0; i < area->ring_count; i++)
		if (area->rings[i] && area->rings[i]->thread == thread)
			return false;
	return true;
}

void encode_forget_threads(struct encode_area *area)
{
	size_t kept = 0;

	ts_map_clear(&area->serials);
	ts_map_clear(&area->tracks);
	for (size_t i = 0; i < area->thread_count; i++) {
		struct encode_thread *thread = area->threads[i];

		/* The map keeps its memory, so that putting fewer back cannot fail. */
		if (is_idle(area, thread) ||
		    ts_map_put(thread->is_track ? &area->tracks : &area->serials, thread->key,
			       kept)) {
			encode_disown_thread(thread);
			continue;
		}
		area->threads[kept++] = thread;
	}
	area->thread_count = kept;
}

static struct encode_thread *add_thread(struct ts_encoder *encoder, struct encode_area *area,
					uint64_t key, bool is_track)
{
	struct encode_thread *thread;

	if (!is_track && area->thread_count - area->track_count >= ENCODE_THREADS)
		encode_forget_threads(area);
	if (is_track ? area->track_count >= ENCODE_TRACKS
		     : area->thread_count - area->track_count >= ENCODE_THREADS)
		return NULL;
	thread = calloc(1, sizeof(*thread));
	if (!thread ||
	    ts_grow_array((void **)&area->threads, &area->thread_capacity, area->thread_count + 1,
			  sizeof(struct encode_thread *)) ||
	    ts_map_put(is_track ? &area->tracks : &area->serials, key, area->thread_count)) {
		free(thread);
		encode_no_memory(encoder);
		return NULL;
	}
	thread->id = encoder->next_thread++;
	thread->holders = 1;
	thread->is_owned = true;
	thread->area = area->id;
	thread->key = key;
	thread->is_track = is_track;
	area->threads[area->thread_count++] = thread;
	area->track_count += is_track;
	return thread;
}

struct encode_thread *encode_get_thread(struct ts_encoder *encoder, struct encode_area *area,
					uint64_t key, bool is_track)
{
	struct encode_thread *thread;
	uint64_t place;

	if (ts_map_get(is_track ? &area->tracks : &area->serials, key, &place))
		return area->threads[place];
	thread = add_thread(encoder, area, key, is_track);
	if (thread && is_track && key == 0)
		snprintf(thread->name, sizeof(thread->name), "engine");
	else if (thread && is_track && (key & TS_TRACK_RANGES) && key >> 41 == 0)
		snprintf(thread->name, sizeof(thread->name), "ranges %llu",
			 (unsigned long long)key - TS_TRACK_RANGES + 1);
	else if (thread && is_track)
		snprintf(thread->name, sizeof(thread->name), "track %lld", (long long)key);
	return thread;
}

void encode_write_thread(struct ts_encoder *encoder, struct encode_area *area,
			 struct encode_thread *thread)
{
	struct ts_thread_row row = ts_thread_none;

	if (area && area->process && area->process->epoch != encoder->epoch)
		encode_write_process(encoder, area->process);
	row.id = thread->id;
	row.process = area && area->process ? area->process->id : thread->process;
	if (thread->is_track)
		row.tid = (int64_t)thread->key;
	else if (thread->tid)
		row.tid = thread->tid;
	if (thread->name[0])
		row.name = encode_fixed(encoder, thread->name, sizeof(thread->name));
	ts_writer_add(encoder->writer, TS_TABLE_THREAD, &row, NULL);
	thread->epoch = encoder->epoch;
}

void encode_name_thread(struct ts_encoder *encoder, struct encode_area *area,
			struct encode_thread *thread, const char *name, size_t bytes,
			enum encode_namer namer)
{
	size_t length = TS_MIN(strnlen(name, bytes), sizeof(thread->name) - 1);

	if (!length || namer < (enum encode_namer)thread->named_by)
		return;
	thread->named_by = (uint8_t)namer;
	if (strncmp(thread->name, name, length) == 0 && !thread->name[length])
		return;
	memcpy(thread->name, name, length);
	thread->name[length] = 0;
	if (thread->epoch == encoder->epoch)
		encode_write_thread(encoder, area, thread);
}

void encode_use_thread(struct ts_encoder *encoder, struct encode_area *area,
		       struct encode_thread *thread)
{
	if (TS_UNLIKELY(thread->epoch != encoder->epoch))
		encode_write_thread(encoder, area, thread);
}
