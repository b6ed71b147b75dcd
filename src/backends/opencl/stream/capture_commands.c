/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures a command before the driver's call and appends it after; also waits and user events of
 * the host.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/stream/capture_internal.h"

#define CHECK_WAIT_NS INT64_C(60000000000)
#define SMALL 4096u /* bytes that are cheaper to copy than to ask the system for */

/*
 * Checked recordings enqueue one command at a time, so that what it wrote can be told from what
 * others write.
 */
static pthread_mutex_t serial = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_unsettled; /* a user event was set, and nobody waited for the commands that it
				    released */

static bool is_map(const struct ocl_command *command)
{
	return command->verb == OCL_MAP || command->verb == OCL_MAP_IMAGE ||
	       command->verb == OCL_SVM_MAP;
}

static bool is_unmap(const struct ocl_command *command)
{
	return command->verb == OCL_UNMAP || command->verb == OCL_SVM_UNMAP;
}

/* ---- before the call ---- */

/* A command that waits for one that another thread is yet to enqueue must not block that thread. */
static bool lock_serial(void)
{
	struct timespec limit;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 1;
	return pthread_mutex_timedlock(&serial, &limit) == 0;
}

static void compare_pages(const struct stream_frozen *frozen)
{
	bool any = false;

	for (uint32_t i = 0; i < frozen->use_count && !any; i++)
		any = frozen->uses[i].memory->as.memory.area.host ||
		      atomic_load(&frozen->uses[i].memory->as.memory.mapped_writing);
	if (!any)
		return;
	pthread_mutex_lock(&stream_host_lock);
	for (uint32_t i = 0; i < frozen->use_count; i++)
		stream_pages_compare(frozen->uses[i].memory, &frozen->uses[i]);
	pthread_mutex_unlock(&stream_host_lock);
}

static struct stream_frozen *freeze(struct ocl_command *command)
{
	struct stream_frozen *frozen;

	if (!command->queue || !command->queue->stream) {
		stream_lost("commands in unknown queues", "their queue is unknown");
		return NULL;
	}
	frozen = malloc(sizeof(*frozen));
	if (!frozen) {
		ts_replay_fail_window("no memory for a command");
		return NULL;
	}
	memset(frozen, 0, offsetof(struct stream_frozen, text));
	if (stream_is_checked() && !ts_replay_in_callback())
		frozen->is_serial = lock_serial();
	stream_describe(frozen, command);
	/* An unmap describes what the host wrote. */
	if (!is_unmap(command))
		compare_pages(frozen);
	if (frozen->is_serial)
		stream_each_before(frozen, command);
	return frozen;
}

void stream_before(struct ocl_command *command)
{
	command->stream = NULL;
	if (ts_replay_is_open()) {
		command->stream = freeze(command);
		return;
	}
	/* An opening window must know which user events have commands waiting. */
	if (__builtin_expect(command->wait_count && stream_events_unset(), 0)) {
		for (cl_uint i = 0; command->waits && i < command->wait_count; i++)
			stream_event_wait(command->waits[i]);
	}
}

/* ---- after the call ---- */

/* Whether its call waited for it. */
static bool is_complete(const struct ocl_command *command)
{
	return command->blocking && !command->is_deferred;
}

/* The driver has just read these bytes, and the caller keeps them until its call returns. */
static bool can_be_copied(const struct stream_foreign *data, const struct ocl_command *command)
{
	return is_complete(command) && !data->rect && data->bytes <= SMALL;
}

static bool emit_data(struct stream_frozen *frozen, const struct ocl_command *command)
{
	const struct stream_foreign *data = &frozen->data;
	unsigned char copy[SMALL]; /* hash and bytes agree, whatever other threads do */

	if (!can_be_copied(data, command))
		return stream_foreign_read(data, NULL, &frozen->row.blob);
	memcpy(copy, data->base, data->bytes);
	frozen->row.blob = ts_replay_blob(copy, data->bytes);
	return true;
}

static void emit_blob(struct stream_frozen *frozen, const struct ocl_command *command)
{
	if (frozen->row.blob || frozen->unreplayable[0])
		return;
	if (frozen->block_bytes)
		frozen->row.blob = ts_replay_blob(frozen->block, frozen->block_bytes);
	else if (frozen->data.base && !emit_data(frozen, command))
		stream_unreplayable(frozen, "commands without their data",
				    "the memory that it copies from is gone");
}

/* The channel is locked. */
static void emit_markers(const struct stream_frozen *frozen)
{
	struct ts_replay_command row = stream_row(TS_COMMAND_RECORD);
	struct stream_text text;

	row.queue = frozen->row.queue;
	for (size_t i = 0; i < frozen->marker_count; i++) {
		stream_text_begin(&text);
		stream_text_string(&text, "call", "clEnqueueMarkerWithWaitList");
		stream_text_open(&text, "wait", '[');
		for (size_t n = 0; n < STREAM_WAITS; n++)
			stream_text_item(&text, frozen->waits[i * STREAM_WAITS + n]);
		stream_text_close(&text, '[');
		stream_text_uint(&text, "event", frozen->waits[frozen->wait_count + i]);
		row.details = stream_text_end(&text);
		ts_replay_append(&row);
	}
}

static void end_text(struct stream_frozen *frozen, uint64_t event)
{
	struct stream_text *text = &frozen->text;

	if (event)
		stream_text_uint(text, "event", event);
	if (frozen->is_ambiguous)
		stream_text_true(text, "ambiguous");
	if (frozen->unreplayable[0])
		stream_text_string(text, "unreplayable", frozen->unreplayable);
	frozen->row.details = stream_text_end(text);
	if (frozen->row.details)
		return;
	stream_unreplayable(frozen, "commands with long details", "its details are too long");
	text->used = frozen->essential;
	text->is_full = false;
	if (event)
		stream_text_uint(text, "event", event);
	stream_text_string(text, "unreplayable", frozen->unreplayable);
	frozen->row.details = stream_text_end(text);
}

/* Describes the objects that it names, whatever other threads did to them. */
static uint64_t append(struct stream_frozen *frozen, const struct ocl_command *command,
		       uint64_t event)
{
	uint64_t sequence;

	if (!ts_replay_lock_window())
		return 0;
	emit_blob(frozen, command);
	end_text(frozen, event);
	emit_markers(frozen);
	sequence = ts_replay_append(&frozen->row);
	ts_replay_unlock();
	if (frozen->unreplayable[0])
		stream_lost(frozen->unreplayable_kind, "they cannot be replayed");
	return sequence;
}

static void remember_region(struct stream_frozen *frozen, const struct ocl_command *command)
{
	struct stream_region *region = frozen->region;

	region->area.host = command->host;
	if (command->verb == OCL_MAP_IMAGE)
		stream_image_mapped(&region->area, command);
	if (!is_complete(command) && command->event &&
	    ocl.next.clRetainEvent(command->event) == CL_SUCCESS)
		region->event = command->event;
	if (frozen->check)
		frozen->destination = stream_area_foreign(&region->area);
	frozen->rect = region->area.host_rect;
	stream_region_add(frozen->mapped, region);
	frozen->region = NULL;
}

/* Records which memory it writes, and the writers of memory that host and device share. */
static void remember_writes(const struct stream_frozen *frozen, const struct ocl_command *command)
{
	for (uint32_t i = 0; i < frozen->write_count; i++)
		stream_memory_written(frozen->uses[i].memory);
	if (!command->event)
		return;
	pthread_mutex_lock(&stream_host_lock);
	for (uint32_t i = 0; i < frozen->write_count; i++)
		stream_pages_written(frozen->uses[i].memory, frozen->uses[i].offset,
				     frozen->uses[i].bytes, command->event);
	/* A map uses its region; the driver may update the host side. */
	if (frozen->mapped && frozen->use_count && !frozen->write_count)
		stream_pages_written(frozen->mapped, frozen->uses[0].offset, frozen->uses[0].bytes,
				     command->event);
	pthread_mutex_unlock(&stream_host_lock);
}

/* Commands released by a user event run concurrently: waits for them, too. */
static bool settle(const struct ocl_command *command)
{
	int64_t deadline = ts_replay_clock_ns() + CHECK_WAIT_NS;

	if (stream_events_blocking() || !command->event ||
	    !stream_event_finish(command->event, deadline))
		return false;
	if (!atomic_load(&is_unsettled))
		return true;
	atomic_store(&is_unsettled, false);
	if (stream_queues_finish(deadline))
		return true;
	atomic_store(&is_unsettled, true);
	return false;
}

static void check_each(const struct stream_frozen *frozen, const struct ocl_command *command)
{
	if (frozen->is_serial && stream_each_after(frozen, command))
		return;
	if (!frozen->is_serial || !settle(command)) {
		stream_lost("checks of commands",
			    "not checked, because commands may wait for the program");
		return;
	}
	stream_look();
	stream_each_now(frozen, command->sequence);
}

static void given(struct stream_frozen *frozen, struct ocl_command *command)
{
	uint64_t event = 0;

	if (command->program_event && command->event)
		event = stream_event_add(command->event, NULL);
	command->sequence = append(frozen, command, event);
	if (frozen->region && is_map(command))
		remember_region(frozen, command);
	remember_writes(frozen, command);
	if (frozen->check && frozen->destination.base && command->sequence)
		stream_read_given(frozen, command);
	if (is_complete(command))
		stream_look();
	if (stream_is_checked() && command->sequence)
		check_each(frozen, command);
}

/* Outside of windows: tracks only which regions are mapped. */
static void keep_track(const struct ocl_command *command)
{
	struct ocl_stream *root = NULL;
	struct stream_region *region;
	uint64_t origin = 0;

	if (command->verb == OCL_MAP || command->verb == OCL_MAP_IMAGE ||
	    command->verb == OCL_UNMAP)
		root = stream_memory_root(command->memory, &origin);
	else if (command->verb == OCL_SVM_MAP || command->verb == OCL_SVM_UNMAP)
		root = stream_svm_find(command->host, &origin);
	if (!root)
		return;
	if (!is_map(command)) {
		stream_region_free(stream_region_take(root, command->host));
		return;
	}
	region = calloc(1, sizeof(*region));
	if (!region)
		return;
	region->area.host = command->host;
	region->area.offset = origin + command->offset;
	region->area.bytes = command->bytes;
	region->flags = command->map_flags;
	if (command->verb == OCL_MAP_IMAGE)
		stream_image_mapped(&region->area, command);
	stream_region_add(root, region);
}

void stream_after(struct ocl_command *command, cl_int result)
{
	struct stream_frozen *frozen = command->stream;

	command->stream = NULL;
	if (!frozen) {
		if (result == CL_SUCCESS)
			keep_track(command);
		return;
	}
	if (result == CL_SUCCESS)
		given(frozen, command);
	else if (frozen->region && !is_map(command))
		stream_region_add(frozen->mapped, frozen->region); /* still mapped */
	if (frozen->region && (result == CL_SUCCESS || is_map(command)))
		stream_region_free(frozen->region);
	if (frozen->is_serial)
		pthread_mutex_unlock(&serial);
	free(frozen->uses);
	free(frozen->block);
	free(frozen->waits);
	free(frozen);
}

/* ---- the host ---- */

void stream_user_event(struct ocl_object *event, cl_int status)
{
	struct ocl_stream *stream = event->stream;
	struct stream_text text;
	struct ts_replay_command row = stream_row(TS_COMMAND_RECORD);

	if (!stream || atomic_load(&stream->as.event.status) <= CL_COMPLETE)
		return;
	if (ts_replay_is_open()) {
		row.object = stream->number;
		stream_text_begin(&text);
		stream_text_string(&text, "call", "clSetUserEventStatus");
		stream_text_uint(&text, "event", stream->number);
		stream_text_int(&text, "status", status);
		row.details = stream_text_end(&text);
		ts_replay_append_with(&row, NULL, 0);
	}
	stream_event_set(stream, status);
	atomic_store(&is_unsettled, true);
}

/* `what`: queue, events or seen. */
static void emit_sync(const char *what, uint64_t queue, struct stream_text *text)
{
	struct ts_replay_command row = stream_row(TS_COMMAND_SYNC);

	row.queue = queue;
	stream_text_string(text, "what", what);
	row.details = stream_text_end(text);
	if (row.details)
		ts_replay_append_with(&row, NULL, 0);
}

/*
 * Commands that other threads enqueued during the wait were not waited for: "until" is the last
 * command that certainly was.
 */
void stream_finished(struct ocl_object *queue)
{
	struct stream_text text;

	if (!ts_replay_is_open() || !queue || !queue->stream)
		return;
	stream_text_begin(&text);
	stream_text_uint(&text, "until", ts_replay_sequence_at_entry());
	emit_sync("queue", queue->stream->number, &text);
	stream_look();
}

static void emit_waited(cl_uint count, const cl_event *events)
{
	struct stream_text text;
	bool any = false;

	stream_text_begin(&text);
	stream_text_open(&text, "wait", '[');
	for (cl_uint i = 0; i < count; i++) {
		uint64_t number = stream_event_number(events[i]);

		if (number)
			stream_text_item(&text, number);
		any = any || number;
	}
	stream_text_close(&text, '[');
	if (any)
		emit_sync("events", 0, &text);
}

void stream_waited(cl_uint count, const cl_event *events)
{
	if (!ts_replay_is_open())
		return;
	/* As many as fit into one record. */
	for (cl_uint at = 0; at < count; at += STREAM_WAITS) {
		cl_uint left = count - at;

		emit_waited(left < STREAM_WAITS ? left : STREAM_WAITS, events + at);
	}
	stream_look();
}

void stream_returned(void)
{
	if (ts_replay_is_open())
		stream_look();
}

void stream_seen_complete(cl_event event)
{
	struct stream_text text;
	uint64_t number;

	if (!ts_replay_is_open() || !stream_event_see(event, &number))
		return;
	stream_text_begin(&text);
	stream_text_open(&text, "wait", '[');
	stream_text_item(&text, number);
	stream_text_close(&text, '[');
	emit_sync("seen", 0, &text);
	stream_look();
}
