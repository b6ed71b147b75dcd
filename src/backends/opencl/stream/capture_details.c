/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills in the row and details of a command, by its verb: what it reads and writes, relative to
 * root memory (docs/replay.md, 2.3). Runs before the driver's call.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/stream/capture_internal.h"

void stream_unreplayable(struct stream_frozen *frozen, const char *kind, const char *format, ...)
{
	va_list arguments;

	if (frozen->unreplayable[0])
		return; /* the first reason is enough */
	va_start(arguments, format);
	vsnprintf(frozen->unreplayable, sizeof(frozen->unreplayable), format, arguments);
	va_end(arguments);
	frozen->unreplayable_kind = kind;
}

/* Written ranges come first. */
void stream_use(struct stream_frozen *frozen, struct ocl_stream *memory, uint64_t offset,
		uint64_t bytes, bool writes)
{
	struct stream_range *range;

	if (frozen->use_count == frozen->use_capacity) {
		uint32_t capacity = frozen->use_capacity ? 2 * frozen->use_capacity : 8;
		struct stream_range *uses = realloc(frozen->uses, capacity * sizeof(*uses));

		if (!uses) {
			stream_unreplayable(frozen, "commands", "no memory for its sets");
			return;
		}
		frozen->uses = uses;
		frozen->use_capacity = capacity;
	}
	range = &frozen->uses[frozen->use_count++];
	*range = (struct stream_range){ memory, offset, bytes };
	if (writes) {
		struct stream_range first = frozen->uses[frozen->write_count];

		frozen->uses[frozen->write_count++] = *range;
		*range = first;
	}
}

/* ---- memory ---- */

struct ocl_stream *stream_find_root(struct stream_frozen *frozen, cl_mem memory,
				    uint64_t *ret_origin)
{
	struct ocl_stream *root = stream_memory_root(memory, ret_origin);

	if (root && !root->unreplayable)
		return root;
	stream_unreplayable(frozen, "copies of memory that cannot be replayed", "its memory is %s",
			    root ? root->unreplayable : "unknown");
	return NULL;
}

static void set_object(struct stream_frozen *frozen, struct ocl_stream *root, uint64_t offset,
		       uint64_t bytes)
{
	frozen->row.object = root->number;
	frozen->row.offset = (int64_t)offset;
	frozen->row.bytes = (int64_t)bytes;
	stream_use(frozen, root, offset, bytes, true);
}

static void set_other(struct stream_frozen *frozen, struct ocl_stream *root, uint64_t offset,
		      uint64_t bytes)
{
	frozen->row.other = root->number;
	frozen->row.other_offset = (int64_t)offset;
	frozen->row.bytes = (int64_t)bytes;
	stream_use(frozen, root, offset, bytes, false);
}

void stream_set_destination(struct stream_frozen *frozen, const void *host, uint64_t bytes)
{
	frozen->destination = (struct stream_foreign){ host, bytes, NULL };
	frozen->check = "read";
	stream_reads_settle(host, bytes, true);
}

void stream_set_data(struct stream_frozen *frozen, const void *host, uint64_t bytes)
{
	frozen->data = (struct stream_foreign){ host, bytes, NULL };
	if (!stream_reads_settle(host, bytes, false))
		stream_unreplayable(frozen, "writes whose source is a pending read",
				    "its source is still being read into");
}

/* ---- copies ---- */

static void describe_read(struct stream_frozen *frozen, const struct ocl_command *command)
{
	uint64_t origin;
	struct ocl_stream *root = stream_find_root(frozen, command->memory, &origin);

	if (!root)
		return;
	set_other(frozen, root, origin + command->offset, command->bytes);
	stream_set_destination(frozen, command->host, command->bytes);
}

static void describe_write(struct stream_frozen *frozen, const struct ocl_command *command)
{
	uint64_t origin;
	struct ocl_stream *root = stream_find_root(frozen, command->memory, &origin);

	if (!root)
		return;
	set_object(frozen, root, origin + command->offset, command->bytes);
	stream_set_data(frozen, command->host_source, command->bytes);
}

static void describe_copy(struct stream_frozen *frozen, const struct ocl_command *command)
{
	uint64_t origin, source_origin;
	struct ocl_stream *root = stream_find_root(frozen, command->memory, &origin);
	struct ocl_stream *source = stream_find_root(frozen, command->source, &source_origin);

	if (!root || !source)
		return;
	set_object(frozen, root, origin + command->offset, command->bytes);
	set_other(frozen, source, source_origin + command->source_offset, command->bytes);
}

static void describe_fill(struct stream_frozen *frozen, const struct ocl_command *command)
{
	uint64_t origin;
	struct ocl_stream *root = stream_find_root(frozen, command->memory, &origin);

	if (!root)
		return;
	set_object(frozen, root, origin + command->offset, command->bytes);
	frozen->data =
		(struct stream_foreign){ command->host_source, command->pattern_bytes, NULL };
}

/* ---- maps ---- */

bool stream_map_region(struct stream_frozen *frozen, const struct ocl_command *command,
		       struct ocl_stream *root, uint64_t offset, uint64_t bytes)
{
	struct stream_region *region = calloc(1, sizeof(*region));

	if (!region) {
		ts_replay_fail_window("no memory for a map");
		return false;
	}
	region->area.offset = offset;
	region->area.bytes = bytes;
	region->flags = command->map_flags;
	frozen->region = region;
	frozen->mapped = root;
	if (command->map_flags & CL_MAP_WRITE_INVALIDATE_REGION) {
		frozen->row.kind = TS_COMMAND_RECORD;
		stream_use(frozen, root, offset, bytes, false);
		return false;
	}
	if (command->map_flags & CL_MAP_READ)
		frozen->check = "map";
	return true;
}

static void describe_mapping(struct stream_frozen *frozen, const struct ocl_command *command,
			     struct ocl_stream *root, uint64_t offset)
{
	if (stream_map_region(frozen, command, root, offset, command->bytes))
		set_other(frozen, root, offset, command->bytes);
}

static void describe_map(struct stream_frozen *frozen, const struct ocl_command *command)
{
	uint64_t origin;
	struct ocl_stream *root = stream_find_root(frozen, command->memory, &origin);

	if (root)
		describe_mapping(frozen, command, root, origin + command->offset);
}

static void describe_svm_map(struct stream_frozen *frozen, const struct ocl_command *command)
{
	uint64_t offset = 0;
	struct ocl_stream *root = stream_svm_find(command->host, &offset);

	if (root && !root->unreplayable)
		describe_mapping(frozen, command, root, offset);
	else
		stream_unreplayable(frozen, "maps of SVM", "its memory is %s",
				    root ? root->unreplayable : "unknown");
}

/*
 * What the host may have written, if it was mapped for writing and the program could know that it
 * was mapped.
 */
static void describe_unmapping(struct stream_frozen *frozen, struct ocl_stream *root,
			       const void *host)
{
	struct stream_region *region = stream_region_take(root, host);
	const struct stream_area *area;
	struct stream_foreign foreign;
	uint64_t span;

	frozen->mapped = root;
	frozen->region = region;
	if (!region) {
		frozen->row.kind = TS_COMMAND_HOST_WRITE;
		set_object(frozen, root, 0, root->as.memory.bytes);
		stream_unreplayable(frozen, "unmaps", "its map is unknown");
		return;
	}
	area = &region->area;
	span = stream_area_span(area);
	stream_reads_settle(area->host, stream_area_extent(area), true);
	if (!stream_region_is_written(region)) {
		stream_use(frozen, root, area->offset, span, false);
		return;
	}
	frozen->row.kind = TS_COMMAND_HOST_WRITE;
	set_object(frozen, root, area->offset, span);
	if (area->image) {
		frozen->row.object = area->image;
		frozen->row.offset = 0;
		frozen->row.bytes = (int64_t)area->bytes;
		stream_text_rect(&frozen->text, &area->rect, NULL);
	}
	foreign = stream_area_foreign(area);
	/* After the call, its memory may be released. */
	if (!ts_replay_lock_window())
		return;
	if (!stream_foreign_read(&foreign, NULL, &frozen->row.blob))
		stream_unreplayable(frozen, "unmaps", "the memory that it unmaps is gone");
	ts_replay_unlock();
}

static void describe_unmap(struct stream_frozen *frozen, const struct ocl_command *command)
{
	uint64_t origin;
	struct ocl_stream *root = stream_find_root(frozen, command->memory, &origin);

	if (root)
		describe_unmapping(frozen, root, command->host);
	else
		frozen->row.kind = TS_COMMAND_RECORD;
}

static void describe_svm_unmap(struct stream_frozen *frozen, const struct ocl_command *command)
{
	struct ocl_stream *root = stream_svm_find(command->host, NULL);

	if (root && !root->unreplayable) {
		describe_unmapping(frozen, root, command->host);
		return;
	}
	frozen->row.kind = TS_COMMAND_RECORD;
	stream_unreplayable(frozen, "unmaps of SVM", "its memory is %s",
			    root ? root->unreplayable : "unknown");
}

/* ---- SVM ---- */

/* False: SVM that cannot be replayed. *ret_memory NULL: plain host memory. */
static bool find_svm(struct stream_frozen *frozen, const void *address,
		     struct ocl_stream **ret_memory, uint64_t *ret_offset)
{
	*ret_memory = stream_svm_find(address, ret_offset);
	if (!*ret_memory || !(*ret_memory)->unreplayable)
		return true;
	stream_unreplayable(frozen, "copies of memory that cannot be replayed", "its memory is %s",
			    (*ret_memory)->unreplayable);
	return false;
}

static void describe_svm_copy(struct stream_frozen *frozen, const struct ocl_command *command)
{
	struct ocl_stream *to, *from;
	uint64_t to_offset = 0, from_offset = 0;

	frozen->row.bytes = (int64_t)command->bytes;
	if (!find_svm(frozen, command->host, &to, &to_offset) ||
	    !find_svm(frozen, command->host_source, &from, &from_offset))
		return;
	if (!to && !from) {
		frozen->row.kind = TS_COMMAND_HOST;
		stream_unreplayable(frozen, "copies from host to host",
				    "it copies from host to host");
		return;
	}
	if (to)
		set_object(frozen, to, to_offset, command->bytes);
	else
		stream_set_destination(frozen, command->host, command->bytes);
	if (from)
		set_other(frozen, from, from_offset, command->bytes);
	else
		stream_set_data(frozen, command->host_source, command->bytes);
}

static void describe_svm_fill(struct stream_frozen *frozen, const struct ocl_command *command)
{
	struct ocl_stream *to;
	uint64_t offset = 0;

	if (!find_svm(frozen, command->host, &to, &offset))
		return;
	if (!to) {
		stream_unreplayable(frozen, "fills of unknown memory", "its memory is unknown");
		return;
	}
	set_object(frozen, to, offset, command->bytes);
	frozen->data =
		(struct stream_foreign){ command->host_source, command->pattern_bytes, NULL };
}

/* ---- launches and others ---- */

static void describe_launch(struct stream_frozen *frozen, const struct ocl_command *command)
{
	/* Since OpenCL 2.1 a launch without sizes has no work items, as one of size 0. */
	static const size_t nothing[3];
	struct ocl_stream *kernel = command->kernel ? command->kernel->stream : NULL;
	/* The driver refuses more dimensions, and does not read their sizes. */
	cl_uint dimensions = command->dimensions > 3 ? 0 : command->dimensions;

	stream_text_sizes(&frozen->text, "global", command->global ? command->global : nothing,
			  dimensions);
	if (command->local)
		stream_text_sizes(&frozen->text, "local", command->local, dimensions);
	if (command->global_offset)
		stream_text_sizes(&frozen->text, "offset", command->global_offset, dimensions);
	if (!kernel) {
		stream_unreplayable(frozen, "unknown kernels", "its kernel is unknown");
		return;
	}
	frozen->row.object = kernel->number;
	if (kernel->unreplayable)
		stream_unreplayable(frozen, "kernels of programs that cannot be replayed",
				    "its kernel belongs to %s", kernel->unreplayable);
	stream_freeze_arguments(frozen, command->kernel);
}

static void describe_nothing(struct stream_frozen *frozen, const struct ocl_command *command)
{
	/* clEnqueueWaitForEvents: all later commands of the queue wait. */
	if (strcmp(command->call->site->name, "clEnqueueWaitForEvents") == 0)
		frozen->row.kind = TS_COMMAND_WAIT;
}

static void describe_native(struct stream_frozen *frozen, const struct ocl_command *command)
{
	(void)command;
	stream_unreplayable(frozen, "native kernels", "it runs a host function");
}

static void describe_other(struct stream_frozen *frozen, const struct ocl_command *command)
{
	stream_unreplayable(frozen, command->call->site->name,
			    "memory of other APIs is not captured");
}

/* ---- all verbs ---- */

static const struct {
	uint32_t kind;
	void (*describe)(struct stream_frozen *frozen, const struct ocl_command *command);
} verbs[OCL_VERBS] = {
	[OCL_LAUNCH] = { TS_COMMAND_LAUNCH, describe_launch },
	[OCL_READ] = { TS_COMMAND_COPY, describe_read },
	[OCL_WRITE] = { TS_COMMAND_COPY, describe_write },
	[OCL_COPY] = { TS_COMMAND_COPY, describe_copy },
	[OCL_FILL] = { TS_COMMAND_FILL, describe_fill },
	[OCL_READ_RECT] = { TS_COMMAND_COPY, stream_read_rect },
	[OCL_WRITE_RECT] = { TS_COMMAND_COPY, stream_write_rect },
	[OCL_COPY_RECT] = { TS_COMMAND_COPY, stream_copy_rect },
	[OCL_MAP] = { TS_COMMAND_COPY, describe_map },
	[OCL_UNMAP] = { TS_COMMAND_RECORD, describe_unmap },
	[OCL_MARKER] = { TS_COMMAND_RECORD, describe_nothing },
	[OCL_BARRIER] = { TS_COMMAND_WAIT, describe_nothing },
	[OCL_MIGRATE] = { TS_COMMAND_RECORD, describe_nothing },
	[OCL_SVM_COPY] = { TS_COMMAND_COPY, describe_svm_copy },
	[OCL_SVM_FILL] = { TS_COMMAND_FILL, describe_svm_fill },
	[OCL_SVM_MAP] = { TS_COMMAND_COPY, describe_svm_map },
	[OCL_SVM_UNMAP] = { TS_COMMAND_RECORD, describe_svm_unmap },
	[OCL_SVM_FREE] = { TS_COMMAND_RECORD, describe_nothing },
	[OCL_SVM_MIGRATE] = { TS_COMMAND_RECORD, describe_nothing },
	[OCL_NATIVE] = { TS_COMMAND_HOST, describe_native },
	[OCL_READ_IMAGE] = { TS_COMMAND_COPY, stream_read_image },
	[OCL_WRITE_IMAGE] = { TS_COMMAND_COPY, stream_write_image },
	[OCL_COPY_IMAGE] = { TS_COMMAND_COPY, stream_copy_image },
	[OCL_IMAGE_TO_BUFFER] = { TS_COMMAND_COPY, stream_copy_image_to_buffer },
	[OCL_BUFFER_TO_IMAGE] = { TS_COMMAND_COPY, stream_copy_buffer_to_image },
	[OCL_FILL_IMAGE] = { TS_COMMAND_FILL, stream_fill_image },
	[OCL_MAP_IMAGE] = { TS_COMMAND_COPY, stream_map_image },
	[OCL_OTHER] = { TS_COMMAND_COPY, describe_other },
};

static uint64_t number_of(struct stream_frozen *frozen, cl_event event)
{
	uint64_t number = stream_event_number(event);

	if (!stream_event_wait(event))
		stream_unreplayable(frozen, "commands that wait for failed user events",
				    "it waits for a user event that failed");
	return number;
}

/* A list that may exceed one record: markers of our own gather it. */
static void describe_many(struct stream_frozen *frozen, const struct ocl_command *command)
{
	size_t most = command->wait_count + command->wait_count / (STREAM_WAITS - 1) + 1;
	uint64_t *numbers = malloc(most * sizeof(*numbers));
	size_t first = 0, end = 0;

	if (!numbers) {
		ts_replay_fail_window("no memory for a wait list");
		return;
	}
	for (cl_uint i = 0; i < command->wait_count; i++) {
		uint64_t number = number_of(frozen, command->waits[i]);

		if (number)
			numbers[end++] = number;
	}
	frozen->waits = numbers;
	frozen->wait_count = end;
	for (; end - first > STREAM_WAITS; first += STREAM_WAITS)
		numbers[end++] = ts_replay_new_object();
	frozen->marker_count = end - frozen->wait_count;
	for (; first < end; first++)
		stream_text_item(&frozen->text, numbers[first]);
}

/*
 * Events from before the window are complete, so a list may be empty. This differs from no list,
 * which may mean "all before".
 */
static void describe_waits(struct stream_frozen *frozen, const struct ocl_command *command)
{
	if (!command->wait_count || !command->waits)
		return;
	stream_text_open(&frozen->text, "wait", '[');
	if (command->wait_count > STREAM_WAITS)
		describe_many(frozen, command);
	for (cl_uint i = 0; !frozen->waits && i < command->wait_count; i++) {
		uint64_t number = number_of(frozen, command->waits[i]);

		if (number)
			stream_text_item(&frozen->text, number);
	}
	stream_text_close(&frozen->text, '[');
}

void stream_describe(struct stream_frozen *frozen, struct ocl_command *command)
{
	frozen->row = stream_row(verbs[command->verb].kind);
	frozen->row.queue = command->queue->stream->number;
	frozen->row.correlation = command->call->correlation;
	stream_text_begin(&frozen->text);
	stream_text_string(&frozen->text, "call", command->call->site->name);
	if (command->blocking)
		stream_text_true(&frozen->text, "blocking");
	describe_waits(frozen, command);
	frozen->essential = frozen->text.used;
	verbs[command->verb].describe(frozen, command);
	/* Only for the list: it moves no bytes. */
	if (frozen->row.kind == TS_COMMAND_RECORD && frozen->mapped)
		stream_text_uint(&frozen->text, "memory", frozen->mapped->number);
}
