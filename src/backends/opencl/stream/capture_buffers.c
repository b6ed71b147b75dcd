/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory as an object: its creation, its rows and first content in a window, and how it is found,
 * by handle or, if it is SVM, by address.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/stream/capture_internal.h"

/* ---- rows ---- */

static const char *memory_call(const struct ocl_stream *stream, uint32_t kind)
{
	if (stream->kind == OCL_SVM)
		return kind == TS_COMMAND_ALLOC ? "clSVMAlloc" : "clSVMFree";
	if (kind == TS_COMMAND_FREE)
		return "clReleaseMemObject";
	return stream->as.memory.image ? "clCreateImage" : "clCreateBuffer";
}

void stream_memory_command(const struct ocl_stream *stream, uint32_t kind)
{
	struct stream_text text;
	struct ts_replay_command row = stream_row(kind);

	row.object = stream->number;
	stream_text_begin(&text);
	stream_text_string(&text, "call", memory_call(stream, kind));
	row.details = stream_text_end(&text);
	ts_replay_append(&row);
}

void stream_memory_is_gone(struct ocl_stream *stream)
{
	if (!stream->unreplayable)
		stream->unreplayable = strdup("memory whose host memory is gone");
}

/* The channel is locked. */
static void emit_created(struct ocl_stream *stream, const void *content)
{
	struct stream_foreign foreign = { content, stream->as.memory.bytes, NULL };
	bool is_there = true;
	uint64_t blob = 0;

	if (stream->as.memory.image)
		foreign.rect = &stream->as.memory.image->host;
	if (stream->as.memory.area.host)
		is_there = stream_pages_begin(stream, &blob);
	else if (content)
		is_there = stream_foreign_read(&foreign, NULL, &blob);
	if (!is_there)
		stream_memory_is_gone(stream);
	stream_object_emit(stream, blob);
	if (!stream->as.memory.is_view && !stream->unreplayable)
		stream_memory_command(stream, TS_COMMAND_ALLOC);
}

void stream_memory_emit(struct ocl_stream *stream, const void *content)
{
	if (!ts_replay_is_open())
		return;
	if (!content && !stream->as.memory.is_view && !stream->unreplayable)
		stream_clear(stream);
	pthread_mutex_lock(&stream_host_lock);
	if (ts_replay_lock_window()) {
		emit_created(stream, content);
		ts_replay_unlock();
	}
	pthread_mutex_unlock(&stream_host_lock);
}

/* ---- creation ---- */

struct ocl_stream *stream_memory_context(const struct ocl_object *memory)
{
	cl_context context = NULL;

	if (memory->context)
		return memory->context->stream;
	if (ocl.next.clGetMemObjectInfo(memory->handle, CL_MEM_CONTEXT, sizeof(context), &context,
					NULL))
		return NULL;
	return stream_object_of(ocl_find(OCL_CONTEXT, context));
}

void stream_created_buffer(struct ocl_object *memory, cl_mem_flags flags, size_t bytes,
			   const void *host)
{
	struct ocl_stream *stream =
		stream_object_new(OCL_MEMORY, memory->handle, stream_memory_context(memory));

	if (!stream)
		return;
	stream->as.memory.bytes = bytes;
	stream->as.memory.flags = flags;
	if (!(flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR)))
		host = NULL;
	if (flags & CL_MEM_USE_HOST_PTR) {
		stream->as.memory.area.host = host;
		stream->as.memory.area.bytes = bytes;
		if (stream_svm_find(host, NULL))
			stream->unreplayable = strdup("a buffer in SVM");
	}
	memory->stream = stream;
	stream_memory_emit(stream, host);
}

void stream_created_sub_buffer(struct ocl_object *memory, struct ocl_object *parent,
			       cl_mem_flags flags, size_t origin, size_t bytes)
{
	struct ocl_stream *stream =
		stream_object_new(OCL_MEMORY, memory->handle, stream_object_of(parent));

	if (!stream)
		return;
	stream->as.memory.is_view = true;
	stream->as.memory.bytes = bytes;
	stream->as.memory.origin = origin;
	stream->as.memory.flags = flags;
	if (!stream->parent || stream->parent->unreplayable)
		stream->unreplayable = strdup("a view of memory that cannot be replayed");
	memory->stream = stream;
	stream_memory_emit(stream, NULL);
}

void stream_created_svm(struct ocl_object *memory, cl_svm_mem_flags flags, size_t bytes)
{
	struct ocl_stream *stream =
		stream_object_new(OCL_SVM, memory->handle, stream_object_of(memory->context));

	if (!stream)
		return;
	stream->as.memory.bytes = bytes;
	stream->as.memory.flags = flags;
	stream->as.memory.is_svm = true;
	if (flags & CL_MEM_SVM_FINE_GRAIN_BUFFER) {
		stream->unreplayable = strdup("fine-grained SVM");
		stream_lost("fine-grained SVM", "the host may write it at any time");
	}
	memory->stream = stream;
	stream_svm_add(stream);
	stream_memory_emit(stream, NULL);
}

/* ---- roots ---- */

struct ocl_stream *stream_memory_root(cl_mem memory, uint64_t *ret_origin)
{
	const struct ocl_object *object = memory ? ocl_find(OCL_MEMORY, memory) : NULL;
	struct ocl_stream *stream = stream_object_of(object);

	*ret_origin = 0;
	if (!stream || !stream->as.memory.is_view)
		return stream;
	*ret_origin = stream->as.memory.origin;
	return stream->parent;
}

/* ---- SVM by address ---- */

/* In order. */
static struct {
	pthread_mutex_t lock;
	struct ocl_stream **memory;
	size_t count, capacity;
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

void stream_svm_forked(void)
{
	pthread_mutex_init(&table.lock, NULL);
}

/* How many allocations begin at or below the address. */
static size_t svm_position(uintptr_t address)
{
	size_t low = 0, high = table.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if ((uintptr_t)table.memory[middle]->handle <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool svm_reserve(void)
{
	size_t capacity = table.capacity ? 2 * table.capacity : 16;
	struct ocl_stream **memory;

	if (table.count < table.capacity)
		return true;
	memory = realloc(table.memory, capacity * sizeof(struct ocl_stream *));
	if (!memory)
		return false;
	table.memory = memory;
	table.capacity = capacity;
	return true;
}

void stream_svm_add(struct ocl_stream *memory)
{
	pthread_mutex_lock(&table.lock);
	if (svm_reserve()) {
		size_t position = svm_position((uintptr_t)memory->handle);

		memmove(&table.memory[position + 1], &table.memory[position],
			(table.count - position) * sizeof(struct ocl_stream *));
		table.memory[position] = memory;
		table.count++;
	}
	pthread_mutex_unlock(&table.lock);
}

void stream_svm_remove(struct ocl_stream *memory)
{
	size_t position;

	pthread_mutex_lock(&table.lock);
	position = svm_position((uintptr_t)memory->handle);
	if (position > 0 && table.memory[position - 1] == memory) {
		table.count--;
		memmove(&table.memory[position - 1], &table.memory[position],
			(table.count - (position - 1)) * sizeof(struct ocl_stream *));
	}
	pthread_mutex_unlock(&table.lock);
}

struct ocl_stream *stream_svm_find(const void *address, uint64_t *ret_offset)
{
	struct ocl_stream *found = NULL;
	uint64_t offset = 0;
	size_t position;

	pthread_mutex_lock(&table.lock);
	position = svm_position((uintptr_t)address);
	if (position > 0) {
		found = table.memory[position - 1];
		offset = (uintptr_t)address - (uintptr_t)found->handle;
		if (offset >= found->as.memory.bytes)
			found = NULL;
	}
	pthread_mutex_unlock(&table.lock);
	if (found && ret_offset)
		*ret_offset = offset;
	return found;
}
