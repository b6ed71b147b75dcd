/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry of all live objects, inside and outside of windows, and their descriptions in the
 * stream. An object stays in it while the program holds it or something created from it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/stream/capture_internal.h"

#define PRIORITY_KEY 0x1096 /* CL_QUEUE_PRIORITY_KHR: 1 high, 2 medium, 4 low */

static struct {
	pthread_mutex_t lock;
	struct ocl_stream *first, *last;
	uint32_t contexts;
} registry = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- lifetime ---- */

struct ocl_stream *stream_object_hold(struct ocl_stream *stream)
{
	if (!stream)
		return NULL;
	pthread_mutex_lock(&registry.lock);
	stream->references++;
	pthread_mutex_unlock(&registry.lock);
	return stream;
}

struct ocl_stream *stream_object_new(enum ocl_kind kind, void *handle, struct ocl_stream *parent)
{
	struct ocl_stream *stream = calloc(1, sizeof(*stream));

	if (!stream) {
		ts_replay_fail_window("no memory for an object");
		return NULL;
	}
	stream->kind = kind;
	stream->handle = handle;
	stream->references = 1;
	stream->parent = stream_object_hold(parent);
	pthread_mutex_lock(&registry.lock);
	stream->number = ts_replay_new_object();
	stream->previous = registry.last;
	if (registry.last)
		registry.last->next = stream;
	else
		registry.first = stream;
	registry.last = stream;
	registry.contexts += kind == OCL_CONTEXT;
	pthread_mutex_unlock(&registry.lock);
	return stream;
}

/* True if this was the last reference: then it was removed from the registry. */
static bool forget(struct ocl_stream *stream)
{
	bool was_last;

	pthread_mutex_lock(&registry.lock);
	was_last = --stream->references == 0;
	if (was_last) {
		*(stream->previous ? &stream->previous->next : &registry.first) = stream->next;
		*(stream->next ? &stream->next->previous : &registry.last) = stream->previous;
		registry.contexts -= stream->kind == OCL_CONTEXT;
	}
	pthread_mutex_unlock(&registry.lock);
	return was_last;
}

static bool is_root_memory(const struct ocl_stream *stream)
{
	return (stream->kind == OCL_MEMORY || stream->kind == OCL_SVM) &&
	       !stream->as.memory.is_view;
}

static void emit_gone(const struct ocl_stream *stream)
{
	if (stream->window != ts_replay_window() || !ts_replay_lock_window())
		return;
	if (is_root_memory(stream) && !stream->unreplayable)
		stream_memory_command(stream, TS_COMMAND_FREE);
	ts_replay_gone(stream->number);
	ts_replay_unlock();
}

static void release_context(struct stream_context *context)
{
	for (uint32_t i = 0; i < context->device_count; i++)
		stream_object_drop(context->devices[i]);
	free(context->devices);
	stream_release_later(context->reader, context->staging, NULL);
}

static void release_members(struct ocl_stream *stream)
{
	switch (stream->kind) {
	case OCL_CONTEXT:
		release_context(&stream->as.context);
		break;
	case OCL_QUEUE:
		stream_object_drop(stream->as.queue.device);
		break;
	case OCL_SVM:
	case OCL_MEMORY:
		stream_memory_release(stream);
		break;
	case OCL_PROGRAM:
		stream_module_release(&stream->as.module);
		break;
	case OCL_KERNEL:
		stream_function_release(&stream->as.function);
		break;
	default:
		break;
	}
}

void stream_object_drop(struct ocl_stream *stream)
{
	while (stream && forget(stream)) {
		struct ocl_stream *parent = stream->parent;

		if (is_root_memory(stream))
			stream_each_gone(stream);
		emit_gone(stream);
		release_members(stream);
		free(stream->unreplayable);
		free(stream);
		stream = parent;
	}
}

struct ocl_stream *stream_object_first(void)
{
	return registry.first;
}

struct ocl_stream *stream_object_next(enum ocl_kind kind, struct ocl_stream *object)
{
	struct ocl_stream *next;

	pthread_mutex_lock(&registry.lock);
	next = object ? object->next : registry.first;
	while (next && next->kind != kind)
		next = next->next;
	if (next)
		next->references++;
	pthread_mutex_unlock(&registry.lock);
	stream_object_drop(object);
	return next;
}

bool stream_any_context(void)
{
	return registry.contexts > 0;
}

void stream_objects_forked(void)
{
	pthread_mutex_init(&registry.lock, NULL);
	stream_svm_forked();
}

void stream_what_blocks(char *why, size_t size)
{
	struct ocl_stream *stream;

	snprintf(why, size, "commands were running all the time");
	pthread_mutex_lock(&registry.lock);
	for (stream = registry.first; stream; stream = stream->next) {
		if (stream->kind == OCL_EVENT && atomic_load(&stream->as.event.is_waited_for)) {
			snprintf(why, size, "user event %" PRIu64 " is not set", stream->number);
			break;
		}
	}
	pthread_mutex_unlock(&registry.lock);
}

void stream_gone(struct ocl_object *object)
{
	struct ocl_stream *stream = object->stream;

	if (!stream)
		return;
	/* Iterations over the registry have the gate exclusively. */
	stream_enter();
	object->stream = NULL;
	if (stream->kind == OCL_EVENT) {
		stream_event_gone(stream->handle);
		stream_event_set(stream, CL_COMPLETE);
	}
	if (stream->kind == OCL_SVM)
		stream_svm_remove(stream);
	if (stream->kind == OCL_QUEUE)
		stream_each_queue_gone(stream);
	stream_object_drop(stream);
	stream_leave();
}

/* ---- description ---- */

static void describe_device(const struct ocl_stream *stream, struct stream_text *text)
{
	const struct stream_device *device = &stream->as.device;

	stream_text_uint(text, "index", device->index);
	stream_text_string(text, "platform", device->platform);
	stream_text_string(text, "vendor", device->vendor);
	stream_text_string(text, "version", device->version);
	stream_text_string(text, "driver", device->driver);
	stream_text_string(text, "type", device->type);
}

static void describe_queue(const struct ocl_stream *stream, struct stream_text *text)
{
	const struct stream_queue *queue = &stream->as.queue;

	stream_text_uint(text, "index", queue->index);
	if (queue->device)
		stream_text_uint(text, "device", queue->device->number);
	if (queue->out_of_order)
		stream_text_true(text, "out_of_order");
	if (queue->priority != TS_UNKNOWN)
		stream_text_int(text, "priority", queue->priority);
}

static void describe_context(const struct ocl_stream *stream, struct stream_text *text)
{
	stream_text_open(text, "devices", '[');
	for (uint32_t i = 0; i < stream->as.context.device_count; i++)
		stream_text_item(text, stream->as.context.devices[i]->number);
	stream_text_close(text, '[');
}

static void describe_memory(const struct ocl_stream *stream, struct stream_text *text)
{
	static const struct {
		cl_mem_flags flag;
		const char *flag_name;
	} flag_names[] = {
		{ CL_MEM_READ_WRITE, "read_write" },
		{ CL_MEM_WRITE_ONLY, "write_only" },
		{ CL_MEM_READ_ONLY, "read_only" },
		{ CL_MEM_USE_HOST_PTR, "use_host_ptr" },
		{ CL_MEM_ALLOC_HOST_PTR, "alloc_host_ptr" },
		{ CL_MEM_COPY_HOST_PTR, "copy_host_ptr" },
		{ CL_MEM_HOST_WRITE_ONLY, "host_write_only" },
		{ CL_MEM_HOST_READ_ONLY, "host_read_only" },
		{ CL_MEM_HOST_NO_ACCESS, "host_no_access" },
		{ CL_MEM_SVM_FINE_GRAIN_BUFFER, "svm_fine_grain_buffer" },
		{ CL_MEM_SVM_ATOMICS, "svm_atomics" },
	};

	stream_text_open(text, "flags", '[');
	for (size_t i = 0; i < sizeof(flag_names) / sizeof(flag_names[0]); i++) {
		if (stream->as.memory.flags & flag_names[i].flag)
			stream_text_element(text, flag_names[i].flag_name);
	}
	stream_text_close(text, '[');
	if (stream->as.memory.is_view)
		stream_text_uint(text, "origin", stream->as.memory.origin);
	if (stream->as.memory.is_svm)
		stream_text_true(text, "svm");
	if (stream->as.memory.image)
		stream_image_describe(stream->as.memory.image, text);
}

static void describe(struct ocl_stream *stream, struct stream_text *text)
{
	switch (stream->kind) {
	case OCL_DEVICE:
		describe_device(stream, text);
		break;
	case OCL_CONTEXT:
		describe_context(stream, text);
		break;
	case OCL_QUEUE:
		describe_queue(stream, text);
		break;
	case OCL_MEMORY:
	case OCL_SVM:
		describe_memory(stream, text);
		break;
	case OCL_PROGRAM:
		stream_module_emit(stream, text);
		break;
	case OCL_KERNEL:
		stream_function_describe(stream, text);
		break;
	case OCL_EVENT:
		stream_text_true(text, "user");
		break;
	default:
		break;
	}
	if (stream->unreplayable)
		stream_text_string(text, "unreplayable", stream->unreplayable);
}

static void emit_needed(struct ocl_stream *stream)
{
	if (stream->parent)
		stream_object_emit(stream->parent, 0);
	if (stream->kind == OCL_QUEUE && stream->as.queue.device)
		stream_object_emit(stream->as.queue.device, 0);
	for (uint32_t i = 0; stream->kind == OCL_CONTEXT && i < stream->as.context.device_count;
	     i++)
		stream_object_emit(stream->as.context.devices[i], 0);
	for (uint32_t i = 0; stream->kind == OCL_PROGRAM && i < stream->as.module.device_count; i++)
		stream_object_emit(stream->as.module.devices[i], 0);
}

/* User events that were set are complete, and need no description. */
static bool is_of_interest(const struct ocl_stream *stream)
{
	if (stream->kind == OCL_PROGRAM)
		return stream_module_is_emitted(stream);
	if (stream->kind == OCL_EVENT)
		return atomic_load(&stream->as.event.status) > CL_COMPLETE;
	return stream->kind != OCL_SAMPLER;
}

void stream_object_emit(struct ocl_stream *stream, uint64_t blob)
{
	static const uint32_t kinds[OCL_KINDS] = {
		[OCL_DEVICE] = TS_OBJECT_DEVICE,  [OCL_CONTEXT] = TS_OBJECT_CONTEXT,
		[OCL_QUEUE] = TS_OBJECT_STREAM,   [OCL_MEMORY] = TS_OBJECT_MEMORY,
		[OCL_PROGRAM] = TS_OBJECT_MODULE, [OCL_KERNEL] = TS_OBJECT_FUNCTION,
		[OCL_EVENT] = TS_OBJECT_EVENT,    [OCL_SVM] = TS_OBJECT_MEMORY,
	};
	struct stream_text text;
	struct ts_replay_object row = {
		.size = sizeof(row),
		.kind = kinds[stream->kind],
		.number = stream->number,
		.parent = stream->parent ? stream->parent->number : 0,
		.address = (uint64_t)(uintptr_t)stream->handle,
		.blob = blob,
		.bytes = TS_UNKNOWN,
	};

	if (stream->window == ts_replay_window() || !is_of_interest(stream))
		return;
	stream->window = ts_replay_window();
	emit_needed(stream);
	stream_text_begin(&text);
	describe(stream, &text);
	row.details = stream_text_end(&text);
	if (!row.details)
		row.details = "{\"unreplayable\":\"its description is too long\"}";
	if (stream->kind == OCL_DEVICE)
		row.name = stream->as.device.name;
	if (stream->kind == OCL_KERNEL)
		row.name = stream->as.function.name;
	if (stream->kind == OCL_MEMORY || stream->kind == OCL_SVM)
		row.bytes = (int64_t)stream->as.memory.bytes;
	if (stream->kind == OCL_PROGRAM)
		row.blob = stream->as.module.source_blob;
	ts_replay_object(&row);
}

void stream_object_lock_and_emit(struct ocl_stream *stream)
{
	if (!ts_replay_is_open() || !ts_replay_lock_window())
		return;
	stream_object_emit(stream, 0);
	ts_replay_unlock();
}

void stream_object_emit_again(struct ocl_stream *stream)
{
	if (!ts_replay_is_open() || !ts_replay_lock_window())
		return;
	if (stream->window == ts_replay_window()) {
		stream->window = 0;
		stream_object_emit(stream, 0);
	}
	ts_replay_unlock();
}

/* ---- devices, contexts, queues, user events ---- */

static void get_text(cl_device_id device, cl_device_info what, char *to, size_t size)
{
	if (ocl.next.clGetDeviceInfo(device, what, size, to, NULL))
		to[0] = 0;
	to[size - 1] = 0;
}

static void get_platform(cl_device_id device, char *to, size_t size)
{
	cl_platform_id platform = NULL;

	to[0] = 0;
	if (ocl.next.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(platform), &platform, NULL))
		return;
	if (ocl.next.clGetPlatformInfo(platform, CL_PLATFORM_NAME, size, to, NULL))
		to[0] = 0;
	to[size - 1] = 0;
}

static const char *device_type(cl_device_id device)
{
	cl_device_type type = 0;

	ocl.next.clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof(type), &type, NULL);
	return type & CL_DEVICE_TYPE_GPU           ? "gpu"
	       : type & CL_DEVICE_TYPE_CPU         ? "cpu"
	       : type & CL_DEVICE_TYPE_ACCELERATOR ? "accelerator"
						   : "other";
}

/* Deprecated, but the only question about it. */
static bool has_host_memory(cl_device_id device)
{
	cl_bool is_unified = CL_FALSE;

	return ocl.next.clGetDeviceInfo(device, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof(is_unified),
					&is_unified, NULL) == CL_SUCCESS &&
	       is_unified;
}

static void fill_device(struct ocl_stream *stream, const struct ocl_object *object)
{
	struct stream_device *device = &stream->as.device;
	cl_device_id id = object->handle, parent = NULL;

	device->index = object->number;
	device->type = device_type(id);
	device->is_cpu = strcmp(device->type, "cpu") == 0;
	device->is_unified = has_host_memory(id);
	get_text(id, CL_DEVICE_NAME, device->name, sizeof(device->name));
	get_text(id, CL_DEVICE_VENDOR, device->vendor, sizeof(device->vendor));
	get_text(id, CL_DEVICE_VERSION, device->version, sizeof(device->version));
	get_text(id, CL_DRIVER_VERSION, device->driver, sizeof(device->driver));
	get_platform(id, device->platform, sizeof(device->platform));
	ocl.next.clGetDeviceInfo(id, CL_DEVICE_PARENT_DEVICE, sizeof(parent), &parent, NULL);
	if (parent)
		stream->unreplayable = strdup("a sub-device");
}

struct ocl_stream *stream_device_of(cl_device_id device)
{
	static pthread_mutex_t one_by_one = PTHREAD_MUTEX_INITIALIZER;
	struct ocl_object *object = ocl_device(device);

	if (!object)
		return NULL;
	/* Two threads may see a device first; under this lock, the driver is only queried. */
	pthread_mutex_lock(&one_by_one);
	if (!object->stream) {
		struct ocl_stream *stream = stream_object_new(OCL_DEVICE, device, NULL);

		if (stream)
			fill_device(stream, object);
		object->stream = stream;
	}
	pthread_mutex_unlock(&one_by_one);
	return object->stream;
}

void stream_created_context(struct ocl_object *context, const cl_device_id *devices, cl_uint count)
{
	struct ocl_stream *held[64], *stream;
	uint32_t found = 0;

	/* Before the context, so that objects have higher numbers than those that they need. */
	for (cl_uint i = 0; i < count && found < 64; i++) {
		struct ocl_stream *device = stream_device_of(devices[i]);

		if (device)
			held[found++] = stream_object_hold(device);
	}
	stream = stream_object_new(OCL_CONTEXT, context->handle, NULL);
	if (stream)
		stream->as.context.devices = malloc((found + 1) * sizeof(held[0]));
	if (!stream || !stream->as.context.devices)
		return;
	memcpy(stream->as.context.devices, held, found * sizeof(held[0]));
	stream->as.context.device_count = found;
	context->stream = stream;
	stream_object_lock_and_emit(stream);
}

static int64_t queue_priority(const struct ocl_object *queue)
{
	/* Greater values are more urgent. */
	for (uint32_t i = 0; i + 1 < queue->property_count && queue->property_list[i]; i += 2) {
		if (queue->property_list[i] == PRIORITY_KEY)
			return queue->property_list[i + 1] & 1   ? 1
			       : queue->property_list[i + 1] & 4 ? -1
								 : 0;
	}
	return TS_UNKNOWN;
}

void stream_created_queue(struct ocl_object *queue)
{
	struct ocl_stream *device = queue->device ? stream_device_of(queue->device->handle) : NULL;
	struct ocl_stream *stream =
		stream_object_new(OCL_QUEUE, queue->handle, stream_object_of(queue->context));

	if (!stream)
		return;
	stream->as.queue.device = stream_object_hold(device);
	stream->as.queue.index = queue->number;
	stream->as.queue.out_of_order = queue->out_of_order;
	stream->as.queue.priority = queue_priority(queue);
	queue->stream = stream;
	stream_object_lock_and_emit(stream);
}

void stream_created_user_event(struct ocl_object *event)
{
	struct ocl_stream *stream =
		stream_object_new(OCL_EVENT, event->handle, stream_object_of(event->context));

	if (!stream)
		return;
	atomic_init(&stream->as.event.status, CL_SUBMITTED);
	event->stream = stream;
	stream_event_add(event->handle, stream);
	stream_object_lock_and_emit(stream);
}

/* ---- others ---- */

void stream_created_other(struct ocl_object *object, const char *what)
{
	struct ocl_stream *stream, *context = stream_object_of(object->context);
	char kind[96];

	snprintf(kind, sizeof(kind), "OpenCL objects: %s", what);
	stream_lost(kind, "they are not captured for replay");
	if (object->kind == OCL_MEMORY)
		context = stream_memory_context(object);
	if (object->kind == OCL_PROGRAM)
		context = stream_module_context(object);
	stream = stream_object_new(object->kind, object->handle, context);
	if (!stream)
		return;
	stream->unreplayable = strdup(what);
	if (object->kind == OCL_PROGRAM) {
		pthread_mutex_init(&stream->as.module.lock, NULL);
		stream->as.module.from = strstr(what, "IL") ? "il" : "builtin";
	}
	if (object->kind == OCL_MEMORY)
		stream->as.memory.bytes = object->bytes;
	object->stream = stream;
	stream_object_lock_and_emit(stream);
}
