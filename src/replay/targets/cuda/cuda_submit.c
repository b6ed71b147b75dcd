/* SPDX-License-Identifier: Apache-2.0 */
/* Submits one command to the driver, as recorded. Everything it needs was prepared before. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "replay/targets/cuda/cuda_session.h"

#define MAX_DYNAMIC_SHARED 8 /* CUfunction_attribute */

enum { MEMORY_HOST = 1, MEMORY_DEVICE = 2, MEMORY_UNIFIED = 4 };

/* ---- copies and fills ---- */

static uint64_t corner(const struct ts_replay_session *session, uint32_t memory, uint64_t offset,
		       const struct ts_replay_rect_side *side)
{
	return ts_cuda_address(session, memory, offset) + side->origin[0] +
	       side->origin[1] * side->row + side->origin[2] * side->slice;
}

void ts_cuda_describe_rect(const struct ts_replay_session *session, const struct ts_cuda_step *step,
			   struct cuda_copy_3d *copy)
{
	const struct ts_replay_command_info *command = step->command;
	const void *host = step->host ? step->host : session->scratch;

	*copy = (struct cuda_copy_3d){ .width = command->region[0],
				       .height = command->region[1],
				       .depth = command->region[2] };
	/* Bytes of pageable memory are packed. */
	copy->from_type = copy->to_type = MEMORY_UNIFIED;
	copy->from_pitch = copy->to_pitch = command->region[0];
	copy->from_height = copy->to_height = command->region[1];
	if (command->other != TS_REPLAY_NONE && !command->blob.id) {
		copy->from_device =
			corner(session, command->other, command->other_offset, &command->from);
		copy->from_pitch = command->from.row;
		copy->from_height = command->from.row ? command->from.slice / command->from.row : 0;
	} else {
		copy->from_type = MEMORY_HOST;
		copy->from_host = host;
	}
	if (command->object != TS_REPLAY_NONE) {
		copy->to_device = corner(session, command->object, command->offset, &command->to);
		copy->to_pitch = command->to.row;
		copy->to_height = command->to.row ? command->to.slice / command->to.row : 0;
	} else {
		copy->to_type = MEMORY_HOST;
		copy->to_host = step->scratch ? step->scratch : session->scratch;
	}
}

/* Slices need not be a number of rows apart: then each is copied by itself. */
static int copy_rect(struct ts_replay_session *session, const struct ts_cuda_step *step)
{
	const struct ts_replay_command_info *command = step->command;
	struct cuda_copy_3d copy, slice;
	int code = 0;

	ts_cuda_describe_rect(session, step, &copy);
	if (copy.depth <= 1)
		copy.from_height = copy.to_height = TS_MAX(copy.height, (size_t)1);
	if (copy.depth <= 1 ||
	    ((copy.from_type == MEMORY_HOST ||
	      command->from.slice == copy.from_height * copy.from_pitch) &&
	     (copy.to_type == MEMORY_HOST || command->to.slice == copy.to_height * copy.to_pitch)))
		return session->cu.Memcpy3DAsync(&copy, step->stream);
	for (size_t z = 0; z < copy.depth && !code; z++) {
		slice = copy;
		slice.depth = 1;
		slice.from_height = slice.to_height = copy.height;
		if (copy.from_type == MEMORY_HOST)
			slice.from_host = (const char *)copy.from_host +
					  z * copy.width * copy.height;
		else
			slice.from_device += z * command->from.slice;
		if (copy.to_type == MEMORY_HOST)
			slice.to_host = (char *)copy.to_host + z * copy.width * copy.height;
		else
			slice.to_device += z * command->to.slice;
		code = session->cu.Memcpy3DAsync(&slice, step->stream);
	}
	return code;
}

static int copy_bytes(struct ts_replay_session *session, const struct ts_cuda_step *step)
{
	const struct ts_replay_command_info *command = step->command;
	uint64_t to, from;

	if (command->object != TS_REPLAY_NONE)
		to = ts_cuda_address(session, command->object, command->offset);
	else
		to = (uintptr_t)(step->scratch ? step->scratch : session->scratch);
	if (command->blob.id)
		from = (uintptr_t)step->host;
	else
		from = ts_cuda_address(session, command->other, command->other_offset);
	return session->cu.MemcpyAsync(to, from, command->bytes, step->stream);
}

/* Bytes that were too many to keep. */
static int copy_unstaged(struct ts_replay_session *session, const struct ts_cuda_step *step,
			 int *ret_code, struct ts_error *err)
{
	const struct ts_replay_command_info *command = step->command;
	TS_AUTO_FREE void *data = ts_alloc_array(command->blob.bytes, 1);
	struct ts_cuda_step now = *step;
	int rc;

	if (!data)
		return ts_error_set(err, TS_ENOMEM, "no memory for %" PRIu64 " bytes",
				    command->blob.bytes);
	rc = ts_replay_blob_read(session->stream->reader, &command->blob, data, err);
	if (rc)
		return rc;
	ts_cuda_move_forth(
		session, data, command->blob.bytes,
		command->is_rect ? 0 : ts_cuda_address(session, command->object, command->offset));
	now.host = data;
	*ret_code = command->is_rect ? copy_rect(session, &now) : copy_bytes(session, &now);
	if (!*ret_code)
		*ret_code = session->cu.StreamSynchronize(step->stream);
	return TS_OK;
}

static int submit_copy(struct ts_replay_session *session, const struct ts_cuda_step *step,
		       int *ret_code, struct ts_error *err)
{
	const struct ts_replay_command_info *command = step->command;

	if (!command->bytes && !command->is_rect)
		return TS_OK;
	if (command->object == TS_REPLAY_NONE && command->other == TS_REPLAY_NONE)
		return TS_OK;
	if (command->blob.id && !step->host)
		return copy_unstaged(session, step, ret_code, err);
	*ret_code = command->is_rect ? copy_rect(session, step) : copy_bytes(session, step);
	return TS_OK;
}

uint32_t ts_cuda_pattern(const struct ts_cuda_step *step, uint32_t *ret_bytes)
{
	uint32_t value = 0;

	*ret_bytes = (uint32_t)step->command->blob.bytes;
	memcpy(&value, step->host, *ret_bytes);
	return value;
}

static int submit_fill(struct ts_replay_session *session, const struct ts_cuda_step *step)
{
	const struct ts_replay_command_info *command = step->command;
	const struct cuda_driver_functions *cu = &session->cu;
	uint64_t to = ts_cuda_address(session, command->object, command->offset);
	uint32_t bytes, value = ts_cuda_pattern(step, &bytes);
	uint64_t width = command->region[0] / bytes, count = command->bytes / bytes;
	uint64_t pitch = command->to.row, height = command->region[1];

	if (command->is_rect) {
		to = corner(session, command->object, command->offset, &command->to);
		if (bytes == 1)
			return cu->MemsetD2D8Async(to, pitch, (unsigned char)value, width, height,
						   step->stream);
		if (bytes == 2)
			return cu->MemsetD2D16Async(to, pitch, (unsigned short)value, width, height,
						    step->stream);
		return cu->MemsetD2D32Async(to, pitch, value, width, height, step->stream);
	}
	if (!count)
		return 0;
	if (bytes == 1)
		return cu->MemsetD8Async(to, (unsigned char)value, count, step->stream);
	if (bytes == 2)
		return cu->MemsetD16Async(to, (unsigned short)value, count, step->stream);
	return cu->MemsetD32Async(to, value, count, step->stream);
}

/* ---- launches ---- */

int ts_cuda_launch(struct ts_replay_session *session, const struct ts_cuda_step *step)
{
	const struct cuda_driver_functions *cu = &session->cu;
	struct ts_cuda_launch *launch = step->launch;
	int shared = (int)launch->config.shared_bytes, allowed = 0, code = 0;
	void *extra[] = { CUDA_LAUNCH_PARAM_BUFFER_POINTER, launch->params,
			  CUDA_LAUNCH_PARAM_BUFFER_SIZE, &launch->param_bytes,
			  CUDA_LAUNCH_PARAM_END };
	/* A node of a graph that runs by itself: its settings are those when the graph was made. */
	bool is_raised = step->command->graph != TS_REPLAY_NONE && shared &&
			 !cu->FuncGetAttribute(&allowed, MAX_DYNAMIC_SHARED, launch->function) &&
			 allowed < shared;

	if (is_raised)
		code = cu->FuncSetAttribute(launch->function, MAX_DYNAMIC_SHARED, shared);
	if (!code)
		code = cu->LaunchKernelEx(&launch->config, launch->function, NULL,
					  launch->param_bytes ? extra : NULL);
	if (is_raised)
		cu->FuncSetAttribute(launch->function, MAX_DYNAMIC_SHARED, allowed);
	return code;
}

/* ---- order ---- */

/* Events are recorded once more in each run; one of before the window has no handle. */
static void *event_of(const struct ts_replay_session *session, uint64_t number)
{
	uint64_t event = 0;

	ts_map_get(&session->events, number, &event);
	return (void *)(uintptr_t)event;
}

static int submit_wait(struct ts_replay_session *session, const struct ts_cuda_step *step)
{
	int code = 0;

	for (uint32_t i = 0; i < step->command->event_count && !code; i++) {
		void *event = event_of(session, step->command->events[i]);

		if (event)
			code = session->cu.StreamWaitEvent(step->stream, event, 0);
	}
	return code;
}

int ts_cuda_wait_all(struct ts_replay_session *session, uint32_t position, struct ts_error *err)
{
	int code = 0;

	for (uint32_t i = 0; i < session->context_count && !code; i++) {
		code = ts_cuda_enter(session, session->objects[session->contexts[i]].handle);
		if (!code)
			code = session->cu.CtxSynchronize();
	}
	if (code)
		return ts_cuda_fail_command(session, position, code, err);
	session->is_pending = false;
	return TS_OK;
}

static int host_wait(struct ts_replay_session *session, uint32_t position, struct ts_error *err)
{
	const struct ts_cuda_step *step = &session->steps[position];
	const struct ts_replay_command_info *command = step->command;
	uint32_t queue = command->named_queue != TS_REPLAY_NONE ? command->named_queue
								: command->queue;
	int code = 0;

	if (command->event_count) {
		for (uint32_t i = 0; i < command->event_count && !code; i++) {
			void *event = event_of(session, command->events[i]);

			if (event)
				code = session->cu.EventSynchronize(event);
		}
	} else if (queue != TS_REPLAY_NONE && session->objects[queue].handle) {
		code = session->cu.StreamSynchronize(session->objects[queue].handle);
	} else if (command->object != TS_REPLAY_NONE) {
		code = session->cu.CtxSynchronize();
	} else {
		return ts_cuda_wait_all(session, position, err);
	}
	return code ? ts_cuda_fail_command(session, position, code, err) : TS_OK;
}

/* ---- settings and host memory ---- */

static int set_stream(struct ts_replay_session *session, const struct ts_cuda_step *step)
{
	struct ts_cuda_pair value = step->details->value;

	value.id = step->details->id;
	return ts_cuda_set_stream(session, step->command->object, &value);
}

static int set_function(struct ts_replay_session *session, const struct ts_cuda_step *step)
{
	void *function = session->objects[step->command->object].handle;
	int value = (int)step->details->value.number;

	if (step->details->what && !strcmp(step->details->what, "cache"))
		return session->cu.FuncSetCacheConfig(function, value);
	return session->cu.FuncSetAttribute(function, (int)step->details->id, value);
}

int ts_cuda_apply_setting(struct ts_replay_session *session, const struct ts_cuda_step *step)
{
	uint32_t object = step->command->object;

	if (object == TS_REPLAY_NONE)
		return 0;
	switch (ts_cuda_info(session, object)->kind) {
	case TS_OBJECT_STREAM:
		return set_stream(session, step);
	case TS_OBJECT_FUNCTION:
		return set_function(session, step);
	case TS_OBJECT_CONTEXT:
		if (step->details->what && !strcmp(step->details->what, "cache"))
			return session->cu.CtxSetCacheConfig((int)step->details->value.number);
		return ts_cuda_set_limit(session, (int)step->details->id,
					 step->details->value.number);
	default:
		return 0;
	}
}

/* Commands that may still read the memory end before. */
static int host_write(struct ts_replay_session *session, uint32_t position, struct ts_error *err)
{
	const struct ts_cuda_step *step = &session->steps[position];
	const struct ts_replay_command_info *command = step->command;
	void *to;
	int rc = session->is_pending ? ts_cuda_wait_all(session, position, err) : TS_OK;

	if (rc || command->object == TS_REPLAY_NONE || !ts_cuda_is_host(session, command->object))
		return rc;
	to = (void *)(uintptr_t)ts_cuda_address(session, command->object, command->offset);
	if (step->host) {
		memcpy(to, step->host, command->blob.bytes);
		return TS_OK;
	}
	rc = ts_replay_blob_read(session->stream->reader, &command->blob, to, err);
	if (!rc)
		ts_cuda_move_forth(session, to, command->blob.bytes, (uintptr_t)to);
	return rc;
}

static int free_range(struct ts_replay_session *session, uint32_t position, struct ts_error *err)
{
	const struct ts_replay_command_info *command = session->steps[position].command;
	int rc = session->is_tight ? ts_cuda_wait_all(session, position, err) : TS_OK;

	return rc ? rc
		  : ts_cuda_free_range(session, command->object, command->offset, command->bytes,
				       err);
}

/* ---- one command ---- */

/* Commands of the host, which have no stream. */
static int act(struct ts_replay_session *session, uint32_t position, bool *ret_is_done,
	       struct ts_error *err)
{
	const struct ts_replay_command_info *command = session->steps[position].command;

	*ret_is_done = true;
	switch (command->kind) {
	case TS_COMMAND_ALLOC:
		return ts_cuda_alloc_range(session, command->object, command->offset,
					   command->bytes, err);
	case TS_COMMAND_FREE:
		return free_range(session, position, err);
	case TS_COMMAND_SYNC:
		return host_wait(session, position, err);
	case TS_COMMAND_HOST_WRITE:
		return host_write(session, position, err);
	default:
		*ret_is_done = false;
		return TS_OK;
	}
}

static int enqueue(struct ts_replay_session *session, uint32_t position, int *ret_code,
		   struct ts_error *err)
{
	const struct ts_cuda_step *step = &session->steps[position];
	void *event;

	switch (step->command->kind) {
	case TS_COMMAND_LAUNCH:
		*ret_code = ts_cuda_launch(session, step);
		return TS_OK;
	case TS_COMMAND_COPY:
		return submit_copy(session, step, ret_code, err);
	case TS_COMMAND_FILL:
		*ret_code = submit_fill(session, step);
		return TS_OK;
	case TS_COMMAND_RECORD:
		event = event_of(session, step->command->event);
		if (event)
			*ret_code = session->cu.EventRecord(event, step->stream);
		return TS_OK;
	case TS_COMMAND_WAIT:
		*ret_code = submit_wait(session, step);
		return TS_OK;
	case TS_COMMAND_SET:
		*ret_code = ts_cuda_apply_setting(session, step);
		return TS_OK;
	default:
		return TS_OK;
	}
}

static bool is_timed(const struct ts_cuda_step *step)
{
	return step->command->kind == TS_COMMAND_LAUNCH || step->command->kind == TS_COMMAND_COPY ||
	       step->command->kind == TS_COMMAND_FILL;
}

/* Between two events, if its times are wanted. */
static int enqueue_timed(struct ts_replay_session *session, uint32_t position, int *ret_code,
			 struct ts_error *err)
{
	struct ts_cuda_step *step = &session->steps[position];
	int rc;

	if (!is_timed(step) || !step->stream)
		return enqueue(session, position, ret_code, err);
	/* CUPTI has the times; a watcher still wants to know which command runs. */
	if (session->is_serial || !session->has_activity)
		step->begin = ts_cuda_take_event(session, step->context);
	step->end = ts_cuda_take_event(session, step->context);
	if (step->begin && step->end)
		*ret_code = session->cu.EventRecord(step->begin, step->stream);
	if (*ret_code)
		return TS_OK;
	session->is_pending = true;
	rc = enqueue(session, position, ret_code, err);
	if (!rc && !*ret_code && step->end)
		*ret_code = session->cu.EventRecord(step->end, step->stream);
	return rc;
}

int ts_cuda_submit(struct ts_replay_session *session, uint32_t position, struct ts_error *err)
{
	const struct ts_cuda_step *step = &session->steps[position];
	bool is_done = false;
	int code, rc;

	if (step->is_skipped || step->command->would_deadlock)
		return TS_OK;
	code = ts_cuda_enter(session, step->context);
	if (code)
		return ts_cuda_fail_command(session, position, code, err);
	rc = act(session, position, &is_done, err);
	if (rc || is_done)
		return rc;
	rc = enqueue_timed(session, position, &code, err);
	/* The program went on when the copy had ended. */
	if (!rc && !code && step->command->blocking && is_timed(step) && step->stream)
		code = session->cu.StreamSynchronize(step->stream);
	return !rc && code ? ts_cuda_fail_command(session, position, code, err) : rc;
}
