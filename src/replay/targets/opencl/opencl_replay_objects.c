/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts, queues and user events: created once, and reset before each run together with memory
 * (opencl_memory.c).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "replay/targets/opencl/opencl_session.h"

int ts_opencl_fail_object(const struct ts_replay_session *session, uint32_t object, cl_int code,
			  struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_opencl_info(session, object);

	return ts_error_set(err, ts_opencl_error_code(code), "%s %" PRIu64 ": %s (%d) on '%s'",
			    ts_enum_name("object_kind", info->kind), info->number,
			    ts_opencl_error_name(code), code,
			    ts_opencl_device_name(session, object));
}

/* ---- contexts and queues ---- */

/* The devices chosen for a context must be on one platform. */
static int one_platform(const struct ts_replay_session *session, uint32_t context,
			cl_platform_id *ret_platform, struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_opencl_info(session, context);
	cl_platform_id platform = NULL;

	for (uint32_t i = 0; i < info->device_count; i++) {
		const struct ts_opencl_device *device =
			&session->devices[session->objects[info->devices[i]].device];

		if (platform && device->platform != platform)
			return ts_error_set(
				err, TS_ECAP,
				"context %" PRIu64
				" spans devices of two platforms; select one device with --device",
				info->number);
		platform = device->platform;
	}
	if (!platform)
		return ts_error_set(err, TS_EFORMAT, "context %" PRIu64 " has no devices",
				    info->number);
	*ret_platform = platform;
	return TS_OK;
}

static int make_context(struct ts_replay_session *session, uint32_t context, struct ts_error *err)
{
	struct ts_opencl_object *object = &session->objects[context];
	TS_AUTO_FREE cl_device_id *devices =
		ts_alloc_array(session->device_count, sizeof(cl_device_id));
	cl_platform_id platform = NULL;
	uint32_t count;
	cl_int code;
	int rc;

	if (!devices)
		return ts_error_set(err, TS_ENOMEM, "no memory for a context");
	rc = one_platform(session, context, &platform, err);
	if (rc)
		return rc;
	count = ts_opencl_context_devices(session, context, devices);
	object->context.handle = session->api.clCreateContext(
		(cl_context_properties[]){ CL_CONTEXT_PLATFORM, (cl_context_properties)platform,
					   0 },
		count, devices, NULL, NULL, &code);
	if (!object->context.handle)
		return ts_opencl_fail_object(session, context, code, err);
	object->context.queue =
		session->api.clCreateCommandQueue(object->context.handle, devices[0], 0, &code);
	return object->context.queue ? TS_OK : ts_opencl_fail_object(session, context, code, err);
}

static int make_queue(struct ts_replay_session *session, uint32_t queue, struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_opencl_info(session, queue);
	const struct ts_opencl_device *device =
		&session->devices[session->objects[info->device].device];
	cl_command_queue_properties properties = CL_QUEUE_PROFILING_ENABLE;
	cl_int code;

	if (info->flags & TS_REPLAY_OUT_OF_ORDER)
		properties |= CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
	session->objects[queue].queue.handle = session->api.clCreateCommandQueue(
		session->objects[info->parent].context.handle, device->id, properties, &code);
	if (!session->objects[queue].queue.handle)
		return ts_opencl_fail_object(session, queue, code, err);
	session->queues[session->queue_count++] = queue;
	return TS_OK;
}

/* ---- all objects ---- */

int ts_opencl_make_objects(struct ts_replay_session *session, struct ts_error *err)
{
	static const struct {
		enum ts_object_kind kind;
		int (*make)(struct ts_replay_session *session, uint32_t object,
			    struct ts_error *err);
	} makers[] = {
		{ TS_OBJECT_CONTEXT, make_context },
		{ TS_OBJECT_STREAM, make_queue },
		{ TS_OBJECT_MEMORY, ts_opencl_make_memory },
	};
	int failure = TS_OK;

	session->queues = ts_arena_alloc_zeroed(&session->arena, session->stream->object_count,
						sizeof(*session->queues));
	if (!session->queues)
		return ts_error_set(err, TS_ENOMEM, "no memory for queues");
	session->is_lazy = ts_opencl_is_too_much(session);
	for (size_t m = 0; m < TS_ARRAY_SIZE(makers); m++) {
		for (uint32_t i = 0; i < session->stream->object_count; i++) {
			int rc = TS_OK;

			if (session->objects[i].is_needed &&
			    ts_opencl_info(session, i)->kind == makers[m].kind)
				rc = makers[m].make(session, i, err);
			if (!rc)
				continue;
			failure = rc;
			/* Without a context there is nothing to go on with. */
			if (makers[m].kind == TS_OBJECT_CONTEXT ||
			    !ts_replay_reject_object(session->replay, i, err))
				return rc;
		}
	}
	return failure;
}

static void free_context(struct ts_replay_session *session, uint32_t context)
{
	struct ts_opencl_object *object = &session->objects[context];

	if (object->context.queue)
		session->api.clReleaseCommandQueue(object->context.queue);
	if (object->context.handle)
		session->api.clReleaseContext(object->context.handle);
}

static void free_queue(struct ts_replay_session *session, uint32_t queue)
{
	if (session->objects[queue].queue.handle)
		session->api.clReleaseCommandQueue(session->objects[queue].queue.handle);
}

void ts_opencl_free_objects(struct ts_replay_session *session)
{
	static const struct {
		enum ts_object_kind kind;
		void (*release)(struct ts_replay_session *session, uint32_t object);
	} releasers[] = {
		{ TS_OBJECT_MEMORY, ts_opencl_free_memory },
		{ TS_OBJECT_STREAM, free_queue },
		{ TS_OBJECT_CONTEXT, free_context },
	};

	for (size_t r = 0; session->objects && r < TS_ARRAY_SIZE(releasers); r++)
		for (uint32_t i = 0; i < session->stream->object_count; i++)
			if (session->objects[i].is_needed &&
			    ts_opencl_info(session, i)->kind == releasers[r].kind)
				releasers[r].release(session, i);
	ts_pairmap_release(&session->views);
	ts_opencl_free_samplers(session);
}

/* ---- before each run ---- */

static int make_user_event(struct ts_replay_session *session, uint32_t event, struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_opencl_info(session, event);
	cl_int code;

	session->objects[event].event = session->api.clCreateUserEvent(
		session->objects[info->parent].context.handle, &code);
	return session->objects[event].event ? TS_OK
					     : ts_opencl_fail_object(session, event, code, err);
}

static int finish_contexts(struct ts_replay_session *session, struct ts_error *err)
{
	for (uint32_t i = 0; i < session->stream->object_count; i++) {
		cl_int code = CL_SUCCESS;

		if (session->objects[i].is_needed &&
		    ts_opencl_info(session, i)->kind == TS_OBJECT_CONTEXT)
			code = session->api.clFinish(session->objects[i].context.queue);
		if (code)
			return ts_opencl_fail_object(session, i, code, err);
	}
	return TS_OK;
}

int ts_opencl_restore(struct ts_replay_session *session, struct ts_error *err)
{
	int rc = TS_OK;

	for (uint32_t i = 0; i < session->stream->object_count && !rc; i++) {
		enum ts_object_kind kind = ts_opencl_info(session, i)->kind;

		if (!session->objects[i].is_needed)
			continue;
		if (kind == TS_OBJECT_MEMORY)
			rc = ts_opencl_restore_memory(session, i, err);
		else if (kind == TS_OBJECT_EVENT)
			rc = make_user_event(session, i, err);
		else if (kind == TS_OBJECT_FUNCTION)
			session->objects[i].function.last = NULL;
	}
	return rc ? rc : finish_contexts(session, err);
}

void ts_opencl_drop_user_events(struct ts_replay_session *session)
{
	for (uint32_t i = 0; i < session->stream->object_count; i++) {
		struct ts_opencl_object *object = &session->objects[i];

		if (!object->is_needed || ts_opencl_info(session, i)->kind != TS_OBJECT_EVENT ||
		    !object->event)
			continue;
		/* For an event that is already set this fails, which is harmless. */
		session->api.clSetUserEventStatus(object->event, CL_COMPLETE);
		session->api.clReleaseEvent(object->event);
		object->event = NULL;
	}
}
