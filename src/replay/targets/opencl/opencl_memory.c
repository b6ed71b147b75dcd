/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory, views and initial content. All memory is allocated when a session opens. If that is too
 * much for a device, memory that the program allocated and freed lives as long as it did in the
 * program.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "replay/targets/opencl/opencl_session.h"

/* ---- memory ---- */

cl_mem_flags ts_opencl_access_flags(uint32_t flags)
{
	return flags & TS_REPLAY_READ_ONLY    ? CL_MEM_READ_ONLY
	       : flags & TS_REPLAY_WRITE_ONLY ? CL_MEM_WRITE_ONLY
					      : CL_MEM_READ_WRITE;
}

static int make_svm(struct ts_replay_session *session, uint32_t memory, struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_opencl_info(session, memory);
	cl_context context = session->objects[info->parent].context.handle;

	if (session->api.clSVMAlloc && session->api.clEnqueueSVMMemcpy)
		session->objects[memory].memory.svm = session->api.clSVMAlloc(
			context, ts_opencl_access_flags(info->flags), info->bytes, 0);
	if (!session->objects[memory].memory.svm)
		return ts_error_set(err, TS_ECAP,
				    "memory %" PRIu64 ": %" PRIu64
				    " bytes of shared virtual memory cannot be allocated on '%s'",
				    info->number, info->bytes,
				    ts_opencl_device_name(session, memory));
	return TS_OK;
}

/* ---- views ---- */

/* An image in a part of a buffer keeps its sub-buffer alive. */
static int make_view_image(struct ts_replay_session *session, struct ts_opencl_view *view,
			   struct ts_error *err)
{
	cl_mem in = view->handle;
	int rc = ts_opencl_make_image(session, view->image, in, &view->handle, err);

	if (rc)
		view->handle = NULL;
	if (in != session->objects[view->memory].memory.handle)
		session->api.clReleaseMemObject(in);
	return rc;
}

static int make_sub_buffer(struct ts_replay_session *session, struct ts_opencl_view *view,
			   struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_opencl_info(session, view->memory);
	cl_mem root = session->objects[view->memory].memory.handle;
	cl_buffer_region region = { .origin = view->offset, .size = view->bytes };
	cl_int code;

	if (!view->offset && view->bytes == info->bytes) {
		view->handle = root;
		return TS_OK;
	}
	view->handle = session->api.clCreateSubBuffer(root, ts_opencl_access_flags(info->flags),
						      CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
	if (view->handle)
		return TS_OK;
	return ts_error_set(err, ts_opencl_error_code(code),
			    "a part of memory %" PRIu64 " (%" PRIu64 " bytes at %" PRIu64
			    ") cannot be allocated: %s on '%s'",
			    info->number, view->bytes, view->offset, ts_opencl_error_name(code),
			    ts_opencl_device_name(session, view->memory));
}

static int make_handle(struct ts_replay_session *session, struct ts_opencl_view *view,
		       struct ts_error *err)
{
	int rc = make_sub_buffer(session, view, err);

	return rc || view->image == TS_REPLAY_NONE ? rc : make_view_image(session, view, err);
}

static int add_view(struct ts_replay_session *session, const struct ts_opencl_view *like,
		    struct ts_opencl_view **ret_view, struct ts_error *err)
{
	struct ts_opencl_object *object = &session->objects[like->memory];
	struct ts_opencl_view *view = ts_arena_copy(&session->arena, like, sizeof(*like));
	int rc = TS_OK;

	if (!view)
		return ts_error_set(err, TS_ENOMEM, "no memory for a view");
	/* Views of memory that is created later are created with it. */
	if (object->memory.handle)
		rc = make_handle(session, view, err);
	if (rc)
		return rc;
	view->sibling = object->memory.views;
	object->memory.views = view;
	*ret_view = view;
	return TS_OK;
}

int ts_opencl_make_view(struct ts_replay_session *session, uint32_t memory, uint64_t offset,
			uint64_t bytes, uint32_t image, struct ts_opencl_view **ret_view,
			struct ts_error *err)
{
	struct ts_opencl_view like = {
		.memory = memory, .image = image, .offset = offset, .bytes = bytes
	};
	uint64_t *first = ts_pairmap_insert(&session->views, memory, offset, NULL);
	struct ts_opencl_view *view;
	int rc;

	if (!first)
		return ts_error_set(err, TS_ENOMEM, "no memory for a view");
	/* Views that begin at the same byte form a list. */
	like.next = (struct ts_opencl_view *)(uintptr_t)*first;
	for (view = like.next; view; view = view->next) {
		if (view->bytes == bytes && view->image == image) {
			*ret_view = view;
			return TS_OK;
		}
	}
	rc = add_view(session, &like, ret_view, err);
	if (!rc)
		*first = (uintptr_t)*ret_view;
	return rc;
}

/* ---- lifetime ---- */

static int make_buffer(struct ts_replay_session *session, uint32_t memory, struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_opencl_info(session, memory);
	cl_int code;
	cl_mem handle = session->api.clCreateBuffer(session->objects[info->parent].context.handle,
						    ts_opencl_access_flags(info->flags),
						    info->bytes, NULL, &code);

	session->objects[memory].memory.handle = handle;
	if (handle)
		return TS_OK;
	return ts_error_set(err, ts_opencl_error_code(code),
			    "memory %" PRIu64 ": a buffer of %" PRIu64
			    " bytes cannot be created: %s (%d) on '%s'",
			    info->number, info->bytes, ts_opencl_error_name(code), code,
			    ts_opencl_device_name(session, memory));
}

static int make_now(struct ts_replay_session *session, uint32_t memory, struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_opencl_info(session, memory);
	struct ts_opencl_object *object = &session->objects[memory];
	int rc;

	if (info->flags & TS_REPLAY_HAS_SVM)
		return make_svm(session, memory, err);
	if (info->image)
		rc = ts_opencl_make_image(session, memory, NULL, &object->memory.handle, err);
	else
		rc = make_buffer(session, memory, err);
	for (struct ts_opencl_view *view = object->memory.views; view && !rc; view = view->sibling)
		rc = make_handle(session, view, err);
	/* Arguments that are set refer to the previous handles. */
	session->epoch++;
	return rc;
}

void ts_opencl_free_memory(struct ts_replay_session *session, uint32_t memory)
{
	struct ts_opencl_object *object = &session->objects[memory];
	uint32_t context = ts_opencl_info(session, memory)->parent;

	for (struct ts_opencl_view *view = object->memory.views; view; view = view->sibling) {
		if (view->handle && view->handle != object->memory.handle)
			session->api.clReleaseMemObject(view->handle);
		view->handle = NULL;
	}
	if (object->memory.handle)
		session->api.clReleaseMemObject(object->memory.handle);
	if (object->memory.svm)
		session->api.clSVMFree(session->objects[context].context.handle,
				       object->memory.svm);
	object->memory.handle = NULL;
	object->memory.svm = NULL;
}

/*
 * Is the memory created during the run, by a command of the plan? SVM never is: its addresses are
 * in arguments, which are prepared before the run.
 */
static bool is_created_later(const struct ts_replay_session *session, uint32_t memory)
{
	const struct ts_replay_object_info *info = ts_opencl_info(session, memory);

	return session->is_lazy && !(info->flags & TS_REPLAY_HAS_SVM) &&
	       info->created_by != TS_REPLAY_NONE &&
	       session->positions[info->created_by] != TS_REPLAY_NONE;
}

int ts_opencl_make_memory(struct ts_replay_session *session, uint32_t memory, struct ts_error *err)
{
	return is_created_later(session, memory) ? TS_OK : make_now(session, memory, err);
}

/* ---- memory limit ---- */

/* Half of the memory is left to the driver and other users of the device. */
static uint64_t limit_of(const struct ts_replay_session *session)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < session->stream->object_count; i++) {
		cl_ulong bytes = 0;

		if (!session->objects[i].is_needed ||
		    ts_opencl_info(session, i)->kind != TS_OBJECT_DEVICE)
			continue;
		if (!session->api.clGetDeviceInfo(session->devices[session->objects[i].device].id,
						  CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(bytes), &bytes,
						  NULL))
			least = TS_MIN(least, bytes / 2);
	}
	return least;
}

uint64_t ts_opencl_memory_limit;

bool ts_opencl_is_too_much(const struct ts_replay_session *session)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < session->stream->object_count; i++)
		if (session->objects[i].is_needed &&
		    ts_opencl_info(session, i)->kind == TS_OBJECT_MEMORY &&
		    __builtin_add_overflow(sum, ts_opencl_info(session, i)->bytes, &sum))
			return true;
	return sum > (ts_opencl_memory_limit ? ts_opencl_memory_limit : limit_of(session));
}

/* ---- content ---- */

/* Writes content that was too large to stage. */
static int write_unstaged(struct ts_replay_session *session, uint32_t memory, struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_opencl_info(session, memory);
	struct ts_replay_range range = { memory, 0, info->blob.bytes };
	TS_AUTO_FREE char *data = ts_alloc_array(info->blob.bytes, 1);
	cl_int code;
	int rc;

	if (!data)
		return ts_error_set(err, TS_ENOMEM, "no memory for the content of memory %" PRIu64,
				    info->number);
	rc = ts_replay_blob_read(session->stream->reader, &info->blob, data, err);
	if (rc)
		return rc;
	code = ts_opencl_write(session, session->objects[info->parent].context.queue, &range, data,
			       true, 0, NULL);
	return code ? ts_opencl_fail_object(session, memory, code, err) : TS_OK;
}

static cl_int fill_zeros(struct ts_replay_session *session, cl_command_queue queue, uint32_t memory)
{
	static const char zeros[16];
	struct ts_opencl_object *object = &session->objects[memory];
	size_t bytes = ts_opencl_info(session, memory)->bytes;
	/* A longer pattern is faster, but must divide the size. */
	size_t pattern = bytes % sizeof(zeros) ? 1 : sizeof(zeros);

	if (ts_opencl_info(session, memory)->image)
		return ts_opencl_clear_image(session, queue, memory);
	if (object->memory.svm)
		return session->api.clEnqueueSVMMemFill(queue, object->memory.svm, zeros, pattern,
							bytes, 0, NULL, NULL);
	return session->api.clEnqueueFillBuffer(queue, object->memory.handle, zeros, pattern, 0,
						bytes, 0, NULL, NULL);
}

static int fill_memory(struct ts_replay_session *session, uint32_t memory, struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_opencl_info(session, memory);
	cl_command_queue queue = session->objects[info->parent].context.queue;
	struct ts_replay_range range = { memory, 0, info->blob.bytes };
	const void *content = NULL;
	cl_int code;
	int rc;

	if (info->blob.id) {
		rc = ts_opencl_stage(session, &info->blob, &content, err);
		if (rc || !content)
			return rc ? rc : write_unstaged(session, memory, err);
		code = ts_opencl_write(session, queue, &range, content, false, 0, NULL);
	} else {
		code = fill_zeros(session, queue, memory);
	}
	return code ? ts_opencl_fail_object(session, memory, code, err) : TS_OK;
}

int ts_opencl_restore_memory(struct ts_replay_session *session, uint32_t memory,
			     struct ts_error *err)
{
	struct ts_opencl_object *object = &session->objects[memory];
	int rc = TS_OK;

	if (is_created_later(session, memory)) {
		ts_opencl_free_memory(session, memory);
		return TS_OK;
	}
	if (!object->memory.handle && !object->memory.svm)
		rc = make_now(session, memory, err);
	return rc ? rc : fill_memory(session, memory, err);
}

int ts_opencl_begin_life(struct ts_replay_session *session, uint32_t position, struct ts_error *err)
{
	uint32_t memory = session->steps[position].command->object, context;
	cl_int code;
	int rc;

	if (memory == TS_REPLAY_NONE || !session->objects[memory].is_needed ||
	    !is_created_later(session, memory) ||
	    ts_opencl_info(session, memory)->created_by != session->plan->order[position])
		return TS_OK;
	/* Reading the content may take long: what was submitted runs meanwhile. */
	rc = ts_opencl_flush(session, err);
	if (!rc)
		rc = make_now(session, memory, err);
	if (!rc)
		rc = fill_memory(session, memory, err);
	if (rc)
		return rc;
	context = ts_opencl_info(session, memory)->parent;
	code = session->api.clFinish(session->objects[context].context.queue);
	return code ? ts_opencl_fail_object(session, memory, code, err) : TS_OK;
}

void ts_opencl_end_life(struct ts_replay_session *session, uint32_t position)
{
	uint32_t memory = session->steps[position].command->object;

	if (memory == TS_REPLAY_NONE || !session->objects[memory].is_needed || !session->is_lazy ||
	    ts_opencl_info(session, memory)->freed_by != session->plan->order[position] ||
	    ts_opencl_info(session, memory)->flags & TS_REPLAY_HAS_SVM)
		return;
	ts_opencl_free_memory(session, memory);
}
