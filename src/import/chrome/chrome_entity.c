/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entities of a Chrome file: source, categories, processes, threads, devices and streams. Rows are
 * added on first use, so that events refer to known ids, and again at the end of the file if they
 * changed.
 */
#include "import/chrome/chrome_import.h"

#include <string.h>

int ts_chrome_entities_init(struct ts_chrome *c)
{
	ts_strmap_init(&c->texts, 1);
	/* Category 0: none. */
	if (ts_grow_array((void **)&c->categories, &c->category_capacity, 16,
			  sizeof(*c->categories)))
		return TS_ENOMEM;
	c->categories[0] = (struct ts_chrome_category){ .meaning = { .table = TS_TABLE_SLICE } };
	c->category_count = 1;
	return TS_OK;
}

void ts_chrome_entities_release(struct ts_chrome *c)
{
	ts_strmap_release(&c->texts);
	ts_map_release(&c->category_by_text);
	ts_pairmap_release(&c->pids);
	ts_pairmap_release(&c->tids);
	ts_pairmap_release(&c->device_by_number);
	ts_pairmap_release(&c->stream_keys);
	ts_pairmap_release(&c->stream_by_key);
	free(c->categories);
	free(c->pid_process);
	free(c->processes);
	free(c->threads);
	free(c->devices);
	free(c->streams);
}

uint32_t ts_chrome_keep_text(struct ts_chrome *c, const struct ts_json_string *string)
{
	struct ts_json_string clean = ts_chrome_clean(c, string);
	uint32_t id = ts_strmap_intern(&c->texts, clean.text, clean.length, NULL);

	return id == TS_STRMAP_NONE ? 0 : id;
}

/* The trace's id of a kept text. */
static uint32_t kept_string(struct ts_chrome *c, uint32_t text)
{
	size_t length;
	const char *bytes = ts_strmap_text(&c->texts, text, &length);

	return bytes ? ts_writer_string(c->writer, bytes, length) : 0;
}

/* ---- the source ---- */

int ts_chrome_start_source(struct ts_chrome *c)
{
	const char *name = strrchr(c->import->path, '/');

	if (c->source)
		return TS_OK;
	name = name && name[1] ? name + 1 : c->import->path;
	c->source = ts_writer_new_id(c->writer, TS_TABLE_SOURCE);
	if (!c->source)
		return ts_writer_status(c->writer, NULL);
	c->source_row = ts_source_none;
	c->source_row.id = c->source;
	c->source_row.name = ts_chrome_string(
		c, &(struct ts_json_string){ .text = name, .length = strlen(name) });
	c->source_row.format = ts_chrome_text(c, c->import->result.format);
	c->source_row.clock = c->source;
	c->clock = (uint32_t)c->source;
	ts_writer_set_clock(c->writer, c->clock);
	return ts_writer_add(c->writer, TS_TABLE_SOURCE, &c->source_row, NULL);
}

/* ---- categories ---- */

static uint32_t new_category(struct ts_chrome *c, uint32_t text)
{
	struct ts_chrome_category *category;
	size_t length;
	const char *bytes = ts_strmap_text(&c->texts, text, &length);

	if (ts_grow_array((void **)&c->categories, &c->category_capacity, c->category_count + 1,
			  sizeof(*c->categories)))
		return UINT32_MAX;
	category = &c->categories[c->category_count];
	*category = (struct ts_chrome_category){
		.meaning = ts_kineto_category(bytes, length),
		.string = ts_writer_string(c->writer, bytes, length),
		.is_arrow = length == strlen(TS_KINETO_ARROW) &&
			    memcmp(bytes, TS_KINETO_ARROW, length) == 0,
	};
	if (ts_map_put(&c->category_by_text, text, c->category_count))
		return UINT32_MAX;
	return (uint32_t)c->category_count++;
}

uint32_t ts_chrome_category(struct ts_chrome *c, const struct ts_json_string *text)
{
	size_t slot = 0;
	uint64_t category;
	uint32_t kept;

	if (text->length)
		slot = (text->length + (unsigned char)text->text[0] +
			3 * (size_t)(unsigned char)text->text[text->length - 1]) %
		       TS_ARRAY_SIZE(c->category_cache);
	if (TS_LIKELY(!text->escaped && c->category_cache[slot].text &&
		      c->category_cache[slot].length == text->length &&
		      memcmp(c->category_cache[slot].text, text->text, text->length) == 0))
		return c->category_cache[slot].category;
	kept = ts_chrome_keep_text(c, text);
	if (!kept)
		return UINT32_MAX;
	if (!ts_map_get(&c->category_by_text, kept, &category)) {
		category = new_category(c, kept);
		if (category == UINT32_MAX)
			return UINT32_MAX;
	}
	c->category_cache[slot].text = ts_strmap_text(&c->texts, kept, NULL);
	c->category_cache[slot].length = (uint32_t)text->length;
	c->category_cache[slot].category = (uint32_t)category;
	/* Differs from the bytes in the file: never equal to them. */
	if (text->escaped || !ts_chrome_is_ascii(text->text, text->length))
		c->category_cache[slot].text = NULL;
	return (uint32_t)category;
}

/* ---- processes and threads ---- */

static uint32_t find_pid(struct ts_chrome *c, const struct ts_chrome_id *pid)
{
	bool is_new;
	uint64_t *index = ts_pairmap_insert(&c->pids, pid->text != 0,
					    pid->text ? pid->text : (uint64_t)pid->number, &is_new);

	if (!index)
		return UINT32_MAX;
	if (is_new) {
		if (ts_grow_array((void **)&c->pid_process, &c->pid_capacity, c->pid_count + 1,
				  sizeof(*c->pid_process)))
			return UINT32_MAX;
		c->pid_process[c->pid_count] = 0;
		*index = c->pid_count++;
	}
	return (uint32_t)*index;
}

static uint32_t process_of(struct ts_chrome *c, uint32_t index, const struct ts_chrome_id *pid)
{
	struct ts_process_row row = ts_process_none;

	if (index == UINT32_MAX)
		return UINT32_MAX;
	if (c->pid_process[index])
		return c->pid_process[index] - 1;
	if (ts_chrome_start_source(c) || ts_grow_array((void **)&c->processes, &c->process_capacity,
						       c->process_count + 1, sizeof(*c->processes)))
		return UINT32_MAX;
	row.id = ts_writer_new_id(c->writer, TS_TABLE_PROCESS);
	row.source = c->source;
	if (pid->text)
		row.pid_text = kept_string(c, pid->text);
	else
		row.pid = pid->number;
	ts_writer_add(c->writer, TS_TABLE_PROCESS, &row, NULL);
	c->processes[c->process_count++] = (struct ts_chrome_process){ .row = row };
	c->pid_process[index] = (uint32_t)c->process_count;
	return c->pid_process[index] - 1;
}

uint32_t ts_chrome_process(struct ts_chrome *c, const struct ts_chrome_id *pid)
{
	return process_of(c, find_pid(c, pid), pid);
}

static uint64_t *find_tid(struct ts_chrome *c, uint32_t pid, const struct ts_chrome_id *tid,
			  bool *ret_new)
{
	return ts_pairmap_insert(&c->tids, (uint64_t)pid << 1 | (tid->text != 0),
				 tid->text ? tid->text : (uint64_t)tid->number, ret_new);
}

/* For events of a TraceSmith export without a thread: exists in our lists only. */
static uint32_t no_thread(struct ts_chrome *c)
{
	if (ts_grow_array((void **)&c->processes, &c->process_capacity, c->process_count + 1,
			  sizeof(*c->processes)) ||
	    ts_grow_array((void **)&c->threads, &c->thread_capacity, c->thread_count + 1,
			  sizeof(*c->threads)))
		return UINT32_MAX;
	c->processes[c->process_count] = (struct ts_chrome_process){ .row = ts_process_none };
	c->threads[c->thread_count] =
		(struct ts_chrome_thread){ .row = ts_thread_none,
					   .process = (uint32_t)c->process_count++,
					   .shift = c->base_ns,
					   .nowhere = true };
	return (uint32_t)c->thread_count++;
}

static uint32_t new_thread(struct ts_chrome *c, uint32_t process, const struct ts_chrome_id *tid)
{
	struct ts_chrome_thread thread = { .row = ts_thread_none, .process = process };

	if (process == UINT32_MAX || ts_grow_array((void **)&c->threads, &c->thread_capacity,
						   c->thread_count + 1, sizeof(*c->threads)))
		return UINT32_MAX;
	thread.row.id = ts_writer_new_id(c->writer, TS_TABLE_THREAD);
	thread.row.process = c->processes[process].row.id;
	thread.source = c->source;
	thread.clock = (uint32_t)c->source;
	if (c->native.active)
		thread.shift = c->base_ns;
	if (tid->text)
		thread.row.tid_text = kept_string(c, tid->text);
	else
		thread.row.tid = tid->number;
	ts_writer_add(c->writer, TS_TABLE_THREAD, &thread.row, NULL);
	c->threads[c->thread_count] = thread;
	return (uint32_t)c->thread_count++;
}

uint32_t ts_chrome_thread_slow(struct ts_chrome *c, const struct ts_chrome_id *pid,
			       const struct ts_chrome_id *tid)
{
	size_t slot = ts_chrome_thread_slot(pid, tid);
	uint32_t index = find_pid(c, pid), thread;
	uint64_t *entry;

	if (index == UINT32_MAX)
		return UINT32_MAX;
	entry = find_tid(c, index, tid, NULL);
	if (!entry)
		return UINT32_MAX;
	if (!*entry) {
		bool is_zero = !pid->text && !pid->number && !tid->text && !tid->number;

		thread = c->native.active && is_zero
				 ? no_thread(c)
				 : new_thread(c, process_of(c, index, pid), tid);
		if (thread == UINT32_MAX)
			return UINT32_MAX;
		*entry = (uint64_t)thread + 1;
	}
	thread = (uint32_t)(*entry - 1);
	c->thread_cache[slot].pid = *pid;
	c->thread_cache[slot].tid = *tid;
	c->thread_cache[slot].thread = thread + 1;
	return thread;
}

int ts_chrome_adopt_thread(struct ts_chrome *c, const struct ts_chrome_id *pid,
			   const struct ts_chrome_id *tid, uint32_t thread)
{
	uint32_t index = find_pid(c, pid);
	uint64_t *entry = index == UINT32_MAX ? NULL : find_tid(c, index, tid, NULL);

	if (!entry)
		return TS_ENOMEM;
	*entry = (uint64_t)thread + 1;
	if (!c->pid_process[index])
		c->pid_process[index] = c->threads[thread].process + 1;
	return TS_OK;
}

/* ---- devices and streams ---- */

int ts_chrome_adopt_device(struct ts_chrome *c, const struct ts_device_row *row)
{
	bool is_new;
	uint64_t *entry;

	if (ts_grow_array((void **)&c->devices, &c->device_capacity, c->device_count + 1,
			  sizeof(*c->devices)))
		return TS_ENOMEM;
	c->devices[c->device_count] = (struct ts_chrome_device){ .row = *row };
	entry = ts_pairmap_insert(&c->device_by_number, (uint64_t)row->source,
				  (uint64_t)row->number, &is_new);
	if (!entry)
		return TS_ENOMEM;
	if (is_new)
		*entry = c->device_count;
	c->device_count++;
	return TS_OK;
}

uint32_t ts_chrome_device(struct ts_chrome *c, int64_t source, int64_t number)
{
	struct ts_device_row row = ts_device_none;
	uint64_t index;

	if (ts_pairmap_get(&c->device_by_number, (uint64_t)source, (uint64_t)number, &index))
		return (uint32_t)index;
	row.id = ts_writer_new_id(c->writer, TS_TABLE_DEVICE);
	row.source = source;
	row.number = number;
	ts_writer_add(c->writer, TS_TABLE_DEVICE, &row, NULL);
	return ts_chrome_adopt_device(c, &row) ? UINT32_MAX : (uint32_t)c->device_count - 1;
}

/* Map entry of a stream's index (plus 1). */
static uint64_t *find_stream(struct ts_chrome *c, int64_t device, int64_t number, int64_t thread)
{
	uint64_t *key =
		ts_pairmap_insert(&c->stream_keys, (uint64_t)device, (uint64_t)number, NULL);

	if (!key)
		return NULL;
	if (!*key)
		*key = c->stream_keys.used + c->stream_keys.has_zero;
	return ts_pairmap_insert(&c->stream_by_key, *key, (uint64_t)thread, NULL);
}

int ts_chrome_adopt_stream(struct ts_chrome *c, const struct ts_stream_row *row,
			   uint32_t *ret_stream)
{
	uint64_t *entry = find_stream(c, row->device, row->number, row->thread);

	if (!entry || ts_grow_array((void **)&c->streams, &c->stream_capacity, c->stream_count + 1,
				    sizeof(*c->streams)))
		return TS_ENOMEM;
	c->streams[c->stream_count] = (struct ts_chrome_stream){ .row = *row };
	*ret_stream = (uint32_t)c->stream_count++;
	if (!*entry)
		*entry = c->stream_count;
	return TS_OK;
}

/* Index of the stream of a device (id; 0: none) that a thread shows, added on first use. */
static uint32_t stream_of(struct ts_chrome *c, int64_t device, int64_t number, int64_t thread)
{
	struct ts_stream_row row = ts_stream_none;
	const uint64_t *entry = find_stream(c, device, number, thread);
	uint32_t stream;

	if (!entry)
		return UINT32_MAX;
	if (*entry)
		return (uint32_t)(*entry - 1);
	row.id = ts_writer_new_id(c->writer, TS_TABLE_STREAM);
	row.device = device;
	row.number = number;
	row.thread = thread;
	ts_writer_add(c->writer, TS_TABLE_STREAM, &row, NULL);
	return ts_chrome_adopt_stream(c, &row, &stream) ? UINT32_MAX : stream;
}

static int find_gpu_stream(struct ts_chrome *c, uint32_t thread, int64_t device_number,
			   int64_t stream_number)
{
	struct ts_chrome_thread *entry = &c->threads[thread];
	int64_t device = 0;
	uint32_t index;

	if (device_number != TS_ABSENT) {
		index = ts_chrome_device(c, entry->source, device_number);
		if (index == UINT32_MAX)
			return TS_ENOMEM;
		device = c->devices[index].row.id;
	}
	index = stream_of(c, device, stream_number, entry->row.id);
	if (index == UINT32_MAX)
		return TS_ENOMEM;
	entry->stream = index + 1;
	entry->device_number = device_number;
	entry->stream_number = stream_number;
	return TS_OK;
}

int ts_chrome_set_gpu_op_entities(struct ts_chrome *c, uint32_t thread,
				  const struct ts_chrome_args *args, struct ts_gpu_op_row *row)
{
	const struct ts_chrome_thread *entry = &c->threads[thread];
	int64_t device = args->in_column & UINT32_C(1) << TS_KINETO_ARG_DEVICE
				 ? args->column[TS_KINETO_ARG_DEVICE]
				 : c->processes[entry->process].row.pid;
	int64_t stream = args->in_column & UINT32_C(1) << TS_KINETO_ARG_STREAM
				 ? args->column[TS_KINETO_ARG_STREAM]
				 : entry->row.tid;
	const struct ts_stream_row *found;

	if (entry->nowhere)
		return TS_OK;
	if (!entry->fixed_stream &&
	    (!entry->stream || entry->device_number != device || entry->stream_number != stream)) {
		int rc = find_gpu_stream(c, thread, device, stream);

		if (rc)
			return rc;
		entry = &c->threads[thread];
	}
	found = &c->streams[(entry->fixed_stream ? entry->fixed_stream : entry->stream) - 1].row;
	row->device = found->device;
	row->stream = found->id;
	return TS_OK;
}

void ts_chrome_write_changed(struct ts_chrome *c)
{
	for (size_t i = 0; i < c->process_count; i++)
		if (c->processes[i].changed)
			ts_writer_add(c->writer, TS_TABLE_PROCESS, &c->processes[i].row, NULL);
	for (size_t i = 0; i < c->thread_count; i++)
		if (c->threads[i].changed)
			ts_writer_add(c->writer, TS_TABLE_THREAD, &c->threads[i].row, NULL);
	for (size_t i = 0; i < c->device_count; i++)
		if (c->devices[i].changed)
			ts_writer_add(c->writer, TS_TABLE_DEVICE, &c->devices[i].row, NULL);
	if (c->source_changed)
		ts_writer_add(c->writer, TS_TABLE_SOURCE, &c->source_row, NULL);
}
