/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts with their settings, streams and events, as recorded. */
#include <inttypes.h>
#include <string.h>

#include "replay/targets/cuda/cuda_session.h"

#define EVENTS_MOST (1u << 20)

int ts_cuda_enter(struct ts_replay_session *session, void *context)
{
	int code;

	if (session->current == context)
		return 0;
	code = session->cu.CtxSetCurrent(context);
	if (!code)
		session->current = context;
	return code;
}

/* ---- contexts ---- */

static int make_primary(struct ts_replay_session *session, struct ts_cuda_device *device,
			unsigned int flags, struct ts_error *err)
{
	int code;

	if (device->context)
		return TS_OK;
	/* It may be active in another part of this process: then its flags stay. */
	session->cu.DevicePrimaryCtxSetFlags(device->ordinal, flags);
	code = session->cu.DevicePrimaryCtxRetain(&device->context, device->ordinal);
	return code ? ts_cuda_fail(session, code, err, "no context on '%s'", device->name) : TS_OK;
}

int ts_cuda_set_limit(struct ts_replay_session *session, int limit, uint64_t value)
{
	size_t now = 0;
	int code = 0;

	if (session->cu.CtxGetLimit(&now, limit) || now != value)
		code = session->cu.CtxSetLimit(limit, value);
	/* After a run some cannot be changed any more; results do not depend on them. */
	if (session->number && (code == CUDA_INVALID_VALUE || code == CUDA_UNSUPPORTED_LIMIT))
		code = 0;
	return code;
}

static int apply_limits(struct ts_replay_session *session, uint32_t index, struct ts_error *err)
{
	const struct ts_cuda_details *details = &session->objects[index].details;
	int code = ts_cuda_enter(session, session->objects[index].handle);

	for (uint32_t i = 0; i < details->limit_count && !code; i++)
		code = ts_cuda_set_limit(session, (int)details->limits[i].id,
					 details->limits[i].number);
	if (!code && details->cache)
		code = session->cu.CtxSetCacheConfig((int)details->cache);
	return code ? ts_cuda_fail_object(session, index, code, err) : TS_OK;
}

static uint32_t device_of(const struct ts_replay_session *session, uint32_t context)
{
	uint32_t parent = ts_cuda_info(session, context)->parent;

	if (parent == TS_REPLAY_NONE && ts_cuda_info(session, context)->device_count)
		parent = ts_cuda_info(session, context)->devices[0];
	return parent;
}

static int make_context(struct ts_replay_session *session, uint32_t index, struct ts_error *err)
{
	struct ts_cuda_object *object = &session->objects[index];
	uint32_t parent = device_of(session, index);
	struct ts_cuda_device *device;
	int code, rc;

	if (parent == TS_REPLAY_NONE || ts_cuda_info(session, parent)->kind != TS_OBJECT_DEVICE)
		return ts_error_set(err, TS_EFORMAT, "context %" PRIu64 " has no device",
				    ts_cuda_info(session, index)->number);
	object->device = session->objects[parent].device;
	device = &session->devices[object->device];
	if (object->details.is_primary) {
		rc = make_primary(session, device, (unsigned int)object->details.flags, err);
		object->handle = device->context;
		return rc ? rc : apply_limits(session, index, err);
	}
	code = session->cu.CtxCreate(&object->handle, (unsigned int)object->details.flags,
				     device->ordinal);
	/* It is current now. */
	session->current = NULL;
	if (code)
		return ts_cuda_fail_object(session, index, code, err);
	object->is_owned = true;
	return apply_limits(session, index, err);
}

int ts_cuda_make_contexts(struct ts_replay_session *session, struct ts_error *err)
{
	int rc = TS_OK;

	session->contexts = ts_arena_alloc_zeroed(
		&session->arena, session->stream->object_count + 1u, sizeof(*session->contexts));
	if (!session->contexts)
		return ts_error_set(err, TS_ENOMEM, "no memory for contexts");
	for (uint32_t i = 0; i < session->stream->object_count && !rc; i++) {
		if (ts_cuda_info(session, i)->kind != TS_OBJECT_CONTEXT ||
		    !session->objects[i].is_needed)
			continue;
		rc = make_context(session, i, err);
		session->contexts[session->context_count++] = i;
	}
	/* Of devices that have only other contexts: for memory and its hashes. */
	for (uint32_t i = 0; i < session->device_count && !rc; i++)
		rc = make_primary(session, &session->devices[i], 0, err);
	if (!rc && !session->context_count)
		rc = ts_error_set(err, TS_EFORMAT, "the trace names no context");
	return rc;
}

void ts_cuda_free_contexts(struct ts_replay_session *session)
{
	for (uint32_t i = 0; i < session->context_count; i++) {
		struct ts_cuda_object *object = &session->objects[session->contexts[i]];

		if (object->is_owned && object->handle)
			session->cu.CtxDestroy(object->handle);
	}
	for (uint32_t i = 0; i < session->device_count; i++)
		if (session->devices[i].context)
			session->cu.DevicePrimaryCtxRelease(session->devices[i].ordinal);
}

/* ---- streams ---- */

/* Attributes that are numbers or begin with an address. */
static const uint8_t stream_attributes[] = { 1, 3, 8, 9, 10, 16 };
#define ATTRIBUTE_ACCESS_POLICY 1

/*
 * What is so already is left alone: a driver returns values that it does not accept. All are hints
 * about speed: one that is refused here is noted.
 */
static int set_value(struct ts_replay_session *session, void *stream, int id, const uint8_t *value)
{
	uint8_t now[64] = { 0 };
	int code;

	if (!session->cu.StreamGetAttribute(stream, id, now) && !memcmp(now, value, sizeof(now)))
		return 0;
	code = session->cu.StreamSetAttribute(stream, id, value);
	if (code && !ts_cuda_is_sticky(code)) {
		ts_cuda_note(session, "attribute %d of a stream cannot be set", id);
		code = 0;
	}
	return code;
}

int ts_cuda_set_stream(struct ts_replay_session *session, uint32_t stream,
		       const struct ts_cuda_pair *attribute)
{
	uint8_t value[64] = { 0 };

	for (size_t i = 0; i < sizeof(stream_attributes); i++) {
		if (stream_attributes[i] != attribute->id)
			continue;
		memcpy(value,
		       attribute->bytes ? (const void *)attribute->bytes : &attribute->number,
		       attribute->bytes ? TS_MIN(attribute->byte_count, sizeof(value))
					: sizeof(int));
		if (attribute->id == ATTRIBUTE_ACCESS_POLICY)
			ts_cuda_move_forth(session, value, 8, 0);
		return set_value(session, session->objects[stream].handle, (int)attribute->id,
				 value);
	}
	return CUDA_NOT_SUPPORTED;
}

static int make_stream(struct ts_replay_session *session, uint32_t index, struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_cuda_info(session, index);
	struct ts_cuda_object *object = &session->objects[index];
	const char *which = object->details.legacy_or_thread;
	int64_t priority = info->priority == TS_ABSENT ? 0 : info->priority;
	int code;

	if (info->parent == TS_REPLAY_NONE ||
	    ts_cuda_info(session, info->parent)->kind != TS_OBJECT_CONTEXT)
		return ts_error_set(err, TS_EFORMAT, "stream %" PRIu64 " has no context",
				    info->number);
	if (which && !strcmp(which, "legacy")) {
		object->handle = (void *)CUDA_STREAM_LEGACY;
		return TS_OK;
	}
	code = ts_cuda_enter(session, session->objects[info->parent].handle);
	/*
	 * Those of several threads are different streams in one thread: each is an ordinary one
	 * that waits for the legacy stream.
	 */
	if (!code)
		code = session->cu.StreamCreateWithPriority(
			&object->handle, which ? 0 : (unsigned int)object->details.flags & 1u,
			(int)priority);
	if (code)
		return ts_cuda_fail_object(session, index, code, err);
	object->is_owned = true;
	for (uint32_t i = 0; i < object->details.attribute_count && !code; i++)
		code = ts_cuda_set_stream(session, index, &object->details.attributes[i]);
	return code ? ts_cuda_fail_object(session, index, code, err) : TS_OK;
}

/* Events of the window, also those inside graphs. */
static int make_event(struct ts_replay_session *session, void *context, uint64_t number,
		      struct ts_error *err)
{
	uint64_t *slot;
	bool is_new = false;
	void *event = NULL;
	int code;

	if (!number)
		return TS_OK;
	slot = ts_map_insert(&session->events, number, &is_new);
	if (!slot || ts_map_count(&session->events) > EVENTS_MOST)
		return ts_error_set(err, TS_ENOMEM, "no memory for events");
	if (!is_new)
		return TS_OK;
	code = ts_cuda_enter(session, context);
	if (!code)
		code = session->cu.EventCreate(&event, CUDA_EVENT_DISABLE_TIMING);
	*slot = (uintptr_t)event;
	return code ? ts_cuda_fail(session, code, err, "event %" PRIu64, number) : TS_OK;
}

static int make_events(struct ts_replay_session *session, uint32_t index, struct ts_error *err)
{
	const struct ts_replay_command_info *command = &session->stream->commands[index];
	uint32_t parent;

	if (command->kind != TS_COMMAND_RECORD || command->queue == TS_REPLAY_NONE)
		return TS_OK;
	parent = ts_cuda_info(session, command->queue)->parent;
	return make_event(session, session->objects[parent].handle, command->event, err);
}

int ts_cuda_make_streams(struct ts_replay_session *session, struct ts_error *err)
{
	int rc = TS_OK;

	for (uint32_t i = 0; i < session->stream->object_count && !rc; i++)
		if (ts_cuda_info(session, i)->kind == TS_OBJECT_STREAM &&
		    session->objects[i].is_needed)
			rc = make_stream(session, i, err);
	for (uint32_t i = 0; i < session->plan->count && !rc; i++)
		rc = make_events(session, session->plan->order[i], err);
	return rc;
}

void ts_cuda_free_streams(struct ts_replay_session *session)
{
	size_t cursor = 0;
	uint64_t number, event;

	while (ts_map_next(&session->events, &cursor, &number, &event))
		if (event)
			session->cu.EventDestroy((void *)(uintptr_t)event);
	ts_map_release(&session->events);
	for (uint32_t i = 0; i < session->stream->object_count; i++)
		if (session->objects[i].is_owned &&
		    ts_cuda_info(session, i)->kind == TS_OBJECT_STREAM)
			session->cu.StreamDestroy(session->objects[i].handle);
}

/* ---- settings ---- */

static int reset_stream(struct ts_replay_session *session, uint32_t stream)
{
	const struct ts_cuda_details *details = &session->objects[stream].details;
	int code = 0;

	for (uint32_t i = 0; i < details->attribute_count && !code; i++)
		code = ts_cuda_set_stream(session, stream, &details->attributes[i]);
	return code;
}

static int reset_function(struct ts_replay_session *session, const struct ts_cuda_step *step)
{
	uint32_t function = step->command->object;
	const char *what = step->details->what;

	if (what && !strcmp(what, "cache"))
		return session->cu.FuncSetCacheConfig(
			session->objects[function].handle,
			(int)session->objects[function].details.cache);
	return ts_cuda_set_function_attribute(session, function, (int)step->details->id,
					      step->before);
}

static int reset_setting(struct ts_replay_session *session, const struct ts_cuda_step *step,
			 struct ts_error *err)
{
	uint32_t object = step->command->object;
	int code = 0;

	switch (ts_cuda_info(session, object)->kind) {
	case TS_OBJECT_CONTEXT:
		return apply_limits(session, object, err);
	case TS_OBJECT_STREAM:
		code = reset_stream(session, object);
		break;
	case TS_OBJECT_FUNCTION:
		code = reset_function(session, step);
		break;
	default:
		break;
	}
	return code ? ts_cuda_fail_object(session, object, code, err) : TS_OK;
}

bool ts_cuda_sets_function(const struct ts_replay_session *session, const struct ts_cuda_step *step)
{
	return step->command->kind == TS_COMMAND_SET && !step->is_skipped &&
	       step->command->object != TS_REPLAY_NONE &&
	       ts_cuda_info(session, step->command->object)->kind == TS_OBJECT_FUNCTION;
}

int ts_cuda_reset_settings(struct ts_replay_session *session, bool of_functions,
			   struct ts_error *err)
{
	int rc = TS_OK;

	for (uint32_t i = 0; i < session->plan->count && !rc; i++) {
		const struct ts_cuda_step *step = &session->steps[i];

		if (step->command->kind != TS_COMMAND_SET || step->is_skipped ||
		    step->command->object == TS_REPLAY_NONE ||
		    (of_functions && !ts_cuda_sets_function(session, step)))
			continue;
		rc = ts_cuda_enter(session, step->context) ? TS_OK
							   : reset_setting(session, step, err);
	}
	return rc;
}
