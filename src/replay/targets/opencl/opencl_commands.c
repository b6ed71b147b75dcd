/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submits one command to the driver, as recorded. Everything it needs was prepared by
 * opencl_steps.c.
 */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "replay/targets/opencl/opencl_session.h"

/* A command being submitted. */
struct call {
	struct ts_replay_session *session;
	const struct ts_opencl_api *api;
	struct ts_opencl_step *step;
	const struct ts_replay_command_info *command;
	cl_command_queue queue;
	uint32_t count;       /* number of waits in session->list */
	const cl_event *list; /* NULL if there are none */
};

static cl_mem memory_of(const struct call *call, uint32_t memory)
{
	return call->session->objects[memory].memory.handle;
}

static char *svm_of(const struct ts_replay_session *session, uint32_t memory)
{
	return memory == TS_REPLAY_NONE ? NULL : session->objects[memory].memory.svm;
}

/* ---- bytes in and out ---- */

cl_int ts_opencl_write(struct ts_replay_session *session, cl_command_queue queue,
		       const struct ts_replay_range *range, const void *from, bool blocking,
		       uint32_t count, cl_event *event)
{
	const struct ts_opencl_object *memory = &session->objects[range->memory];
	const cl_event *list = count ? session->list : NULL;

	if (ts_opencl_info(session, range->memory)->image)
		return ts_opencl_write_image(session, queue, range->memory, from, blocking, count,
					     event);
	if (memory->memory.svm)
		return session->api.clEnqueueSVMMemcpy(queue, blocking,
						       memory->memory.svm + range->offset, from,
						       range->bytes, count, list, event);
	return session->api.clEnqueueWriteBuffer(queue, memory->memory.handle, blocking,
						 range->offset, range->bytes, from, count, list,
						 event);
}

cl_int ts_opencl_read(struct ts_replay_session *session, cl_command_queue queue,
		      const struct ts_replay_range *range, void *to, bool blocking, uint32_t count,
		      cl_event *event)
{
	const struct ts_opencl_object *memory = &session->objects[range->memory];
	const cl_event *list = count ? session->list : NULL;

	if (ts_opencl_info(session, range->memory)->image)
		return ts_opencl_read_image(session, queue, range->memory, to, blocking, count,
					    event);
	if (memory->memory.svm)
		return session->api.clEnqueueSVMMemcpy(queue, blocking, to,
						       memory->memory.svm + range->offset,
						       range->bytes, count, list, event);
	return session->api.clEnqueueReadBuffer(queue, memory->memory.handle, blocking,
						range->offset, range->bytes, to, count, list,
						event);
}

/* ---- launches ---- */

static bool is_same(const struct ts_opencl_arg *a, const struct ts_opencl_arg *b)
{
	if (a->kind != b->kind || a->size != b->size)
		return false;
	return a->value == b->value ||
	       (a->kind == TS_REPLAY_ARG_BYTES && memcmp(a->value, b->value, a->size) == 0);
}

static cl_int set_arg(const struct call *call, cl_kernel kernel, uint32_t number)
{
	const struct ts_opencl_arg *arg = &call->step->args[number];

	if (arg->kind == TS_REPLAY_ARG_SVM)
		return call->api->clSetKernelArgSVMPointer(kernel, number, arg->value);
	return call->api->clSetKernelArg(kernel, number, arg->size, arg->value);
}

/* Sets only arguments that differ from the kernel's last launch: each call costs time. */
static cl_int set_args(const struct call *call, struct ts_opencl_object *function)
{
	const struct ts_opencl_step *step = call->step, *last = function->function.last;
	cl_int code = CL_SUCCESS;

	if (function->function.epoch != call->session->epoch)
		last = NULL;
	for (uint32_t i = 0; i < call->command->arg_count && !code; i++) {
		bool is_set = last && i < last->command->arg_count &&
			      is_same(&last->args[i], &step->args[i]);

		if (!is_set)
			code = set_arg(call, function->function.handle, i);
	}
	if (!code && step->pointer_count)
		code = call->api->clSetKernelExecInfo(
			function->function.handle, CL_KERNEL_EXEC_INFO_SVM_PTRS,
			step->pointer_count * sizeof(void *), step->pointers);
	function->function.last = code ? NULL : step;
	function->function.epoch = call->session->epoch;
	return code;
}

static cl_int launch(const struct call *call)
{
	const struct ts_replay_command_info *command = call->command;
	struct ts_replay_session *session = call->session;
	struct ts_opencl_object *function = &session->objects[command->object];
	size_t global[3], local[3], offset[3];
	cl_int code = set_args(call, function);

	if (code)
		return code;
	for (uint32_t i = 0; i < 3; i++) {
		global[i] = command->global[i];
		local[i] = command->local[i];
		offset[i] = command->global_offset[i];
	}
	/* Some drivers compile here, or run the kernel. */
	__atomic_store_n(&session->launching, (uint32_t)(call->step - session->steps) + 1,
			 __ATOMIC_RELEASE);
	code = call->api->clEnqueueNDRangeKernel(
		call->queue, function->function.handle, command->dimensions, offset, global,
		local[0] ? local : NULL, call->count, call->list, &call->step->event);
	__atomic_store_n(&session->launching, 0, __ATOMIC_RELEASE);
	return code;
}

/* ---- images ---- */

static bool names_image(const struct ts_replay_command_info *command)
{
	return command->image != TS_REPLAY_NONE || command->other_image != TS_REPLAY_NONE;
}

/* `host`: bytes to be written, or space for those to be read; NULL: neither. */
static cl_int submit_image(const struct call *call, const void *host, bool blocking)
{
	return ts_opencl_submit_image(call->session, call->queue, call->command,
				      (void *)(uintptr_t)host, blocking, call->count,
				      &call->step->event);
}

/* ---- copies ---- */

/*
 * One side of a rectangle. An additional offset (the origin of a sub-buffer) is added to its
 * origin.
 */
struct corner {
	size_t at[3], row, slice;
};

static struct corner corner_of(const struct ts_replay_rect_side *side, uint64_t offset)
{
	uint64_t first = offset + side->origin[0] + side->origin[1] * side->row +
			 side->origin[2] * side->slice;

	return (struct corner){ .at = { first % side->slice % side->row,
					first % side->slice / side->row, first / side->slice },
				.row = side->row,
				.slice = side->slice };
}

static void region_of(const struct ts_replay_command_info *command, size_t ret_region[3])
{
	for (int i = 0; i < 3; i++)
		ret_region[i] = command->region[i];
}

static cl_int write_rect(const struct call *call, const void *host, cl_bool blocking)
{
	static const size_t nowhere[3];
	const struct ts_replay_command_info *c = call->command;
	struct corner to = corner_of(&c->to, c->offset);
	size_t region[3];

	region_of(c, region);
	return call->api->clEnqueueWriteBufferRect(call->queue, memory_of(call, c->object),
						   blocking, to.at, nowhere, region, to.row,
						   to.slice, region[0], region[0] * region[1], host,
						   call->count, call->list, &call->step->event);
}

static cl_int read_rect(const struct call *call, void *host)
{
	static const size_t nowhere[3];
	const struct ts_replay_command_info *c = call->command;
	struct corner from = corner_of(&c->from, c->other_offset);
	size_t region[3];

	region_of(c, region);
	return call->api->clEnqueueReadBufferRect(call->queue, memory_of(call, c->other), CL_FALSE,
						  from.at, nowhere, region, from.row, from.slice,
						  region[0], region[0] * region[1], host,
						  call->count, call->list, &call->step->event);
}

static cl_int copy_rect(const struct call *call)
{
	const struct ts_replay_command_info *c = call->command;
	struct corner to = corner_of(&c->to, c->offset),
		      from = corner_of(&c->from, c->other_offset);
	size_t region[3];

	region_of(c, region);
	return call->api->clEnqueueCopyBufferRect(call->queue, memory_of(call, c->other),
						  memory_of(call, c->object), from.at, to.at,
						  region, from.row, from.slice, to.row, to.slice,
						  call->count, call->list, &call->step->event);
}

static cl_int copy_memory(const struct call *call)
{
	const struct ts_replay_command_info *c = call->command;
	char *to = svm_of(call->session, c->object), *from = svm_of(call->session, c->other);

	if (to && from)
		return call->api->clEnqueueSVMMemcpy(call->queue, CL_FALSE, to + c->offset,
						     from + c->other_offset, c->bytes, call->count,
						     call->list, &call->step->event);
	/* No OpenCL call does that, so it is never recorded. */
	if (to || from)
		return CL_INVALID_OPERATION;
	return call->api->clEnqueueCopyBuffer(
		call->queue, memory_of(call, c->other), memory_of(call, c->object), c->other_offset,
		c->offset, c->bytes, call->count, call->list, &call->step->event);
}

static cl_int write_bytes(const struct call *call, const void *host, bool blocking)
{
	const struct ts_replay_command_info *c = call->command;
	struct ts_replay_range range = { c->object, c->offset, c->bytes };

	if (names_image(c))
		return submit_image(call, host, blocking);
	if (c->is_rect)
		return write_rect(call, host, blocking);
	return ts_opencl_write(call->session, call->queue, &range, host, blocking, call->count,
			       &call->step->event);
}

/*
 * Writes bytes that are not staged. The buffer must live until the driver has read it, so this
 * waits for the command, unless that depends on an event that is set later: then the session keeps
 * the buffer.
 */
static int write_unstaged(const struct call *call, cl_int *ret_code, struct ts_error *err)
{
	const struct ts_replay_blob_ref *blob = &call->command->blob;
	bool blocking = !call->step->gate;
	TS_AUTO_FREE void *temporary = blocking ? ts_alloc_array(blob->bytes, 1) : NULL;
	void *data = blocking ? temporary : ts_arena_alloc(&call->session->arena, blob->bytes);
	int rc;

	if (!data)
		return ts_error_set(err, TS_ENOMEM, "no memory for %" PRIu64 " bytes to be written",
				    blob->bytes);
	/* The read may take long: what was submitted runs meanwhile. */
	rc = ts_opencl_flush(call->session, err);
	if (!rc)
		rc = ts_replay_blob_read(call->session->stream->reader, blob, data, err);
	if (!rc)
		*ret_code = write_bytes(call, data, blocking);
	return rc;
}

static int write_host(const struct call *call, cl_int *ret_code, struct ts_error *err)
{
	if (!call->step->host)
		return write_unstaged(call, ret_code, err);
	*ret_code = write_bytes(call, call->step->host, false);
	return TS_OK;
}

/* The data goes to the command's first output. */
static int read_host(const struct call *call, cl_int *ret_code, struct ts_error *err)
{
	const struct ts_replay_command_info *c = call->command;
	struct ts_replay_range range = { c->other, c->other_offset, c->bytes };
	struct ts_opencl_output *output = &call->session->outputs[call->step->first_output];
	int rc = ts_opencl_output_reserve(call->session, output, err);

	if (rc)
		return rc;
	*ret_code = names_image(c) ? submit_image(call, output->data, false)
		    : c->is_rect   ? read_rect(call, output->data)
				 : ts_opencl_read(call->session, call->queue, &range, output->data,
						  false, call->count, &call->step->event);
	return TS_OK;
}

static int copy(const struct call *call, cl_int *ret_code, struct ts_error *err)
{
	const struct ts_replay_command_info *c = call->command;

	if (c->object == TS_REPLAY_NONE)
		return read_host(call, ret_code, err);
	if (c->other == TS_REPLAY_NONE)
		return write_host(call, ret_code, err);
	*ret_code = names_image(c) ? submit_image(call, NULL, false)
		    : c->is_rect   ? copy_rect(call)
				   : copy_memory(call);
	return TS_OK;
}

static cl_int fill(const struct call *call)
{
	const struct ts_replay_command_info *c = call->command;
	char *svm = svm_of(call->session, c->object);

	if (names_image(c))
		return submit_image(call, call->step->host, false);
	if (svm)
		return call->api->clEnqueueSVMMemFill(call->queue, svm + c->offset,
						      call->step->host, c->blob.bytes, c->bytes,
						      call->count, call->list, &call->step->event);
	return call->api->clEnqueueFillBuffer(call->queue, memory_of(call, c->object),
					      call->step->host, c->blob.bytes, c->offset, c->bytes,
					      call->count, call->list, &call->step->event);
}

/* ---- dispatch ---- */

static cl_int mark(const struct call *call)
{
	return call->api->clEnqueueMarkerWithWaitList(call->queue, call->count, call->list,
						      &call->step->event);
}

static int enqueue(const struct call *call, cl_int *ret_code, struct ts_error *err)
{
	const struct ts_replay_command_info *c = call->command;

	if (call->step->is_marker || (c->kind == TS_COMMAND_COPY && !c->bytes)) {
		*ret_code = mark(call);
		return TS_OK;
	}
	switch (c->kind) {
	case TS_COMMAND_LAUNCH:
		*ret_code = launch(call);
		return TS_OK;
	case TS_COMMAND_COPY:
		return copy(call, ret_code, err);
	case TS_COMMAND_HOST_WRITE:
		return write_host(call, ret_code, err);
	case TS_COMMAND_FILL:
		*ret_code = fill(call);
		return TS_OK;
	case TS_COMMAND_WAIT:
		*ret_code = call->api->clEnqueueBarrierWithWaitList(call->queue, call->count,
								    call->list, &call->step->event);
		return TS_OK;
	default:
		*ret_code = mark(call);
		return TS_OK;
	}
}

static int submit(struct ts_replay_session *session, uint32_t position, struct ts_error *err)
{
	struct ts_opencl_step *step = &session->steps[position];
	struct call call = { .session = session,
			     .api = &session->api,
			     .step = step,
			     .command = step->command,
			     .queue = session->objects[step->command->queue].queue.handle,
			     .count = ts_opencl_gather_waits(session, position) };
	cl_int code = CL_SUCCESS;
	int rc;

	call.list = call.count ? session->list : NULL;
	rc = enqueue(&call, &code, err);
	if (rc)
		return rc;
	if (code) {
		rc = ts_opencl_fail_command(session, position, code, err);
		if (!step->is_marker)
			ts_replay_reject_launches(session->replay, session->plan->order[position],
						  err);
		return rc;
	}
	step->waitable = step->event;
	step->given = ts_clock_monotonic_ns();
	rc = ts_opencl_submitted(session, position, err);
	if (!rc && step->output_count)
		rc = ts_opencl_copy_outputs(session, position, err);
	if (!rc && step->command->blocking)
		rc = ts_opencl_wait(session, position, position, err);
	return rc;
}

/* ---- commands without a queue ---- */

static int host_wait(struct ts_replay_session *session, uint32_t position, struct ts_error *err)
{
	const struct ts_opencl_step *step = &session->steps[position];
	int rc = TS_OK;

	if (step->command->queue != TS_REPLAY_NONE)
		return ts_opencl_wait_queue(session, step->command->queue, position, err);
	for (uint32_t i = 0; i < step->wait_count && !rc; i++)
		rc = ts_opencl_wait(session, step->waits[i], position, err);
	return rc;
}

static int set_user_event(struct ts_replay_session *session, uint32_t position,
			  struct ts_error *err)
{
	const struct ts_replay_command_info *command = session->steps[position].command;
	cl_event event;
	cl_int code;

	if (command->user_event == TS_REPLAY_NONE)
		return TS_OK;
	event = session->objects[command->user_event].event;
	/* The call may run what waits for it: that is no longer held back. */
	__atomic_store_n(&session->submitted, position + 1, __ATOMIC_RELEASE);
	code = session->api.clSetUserEventStatus(event, (cl_int)command->status);
	return code ? ts_opencl_fail_command(session, position, code, err) : TS_OK;
}

/*
 * The host wrote to memory that it shares with the device: commands that use it have ended, or
 * begin later.
 */
static int host_write(struct ts_replay_session *session, uint32_t position, struct ts_error *err)
{
	struct ts_opencl_step *step = &session->steps[position];
	uint32_t context = ts_opencl_info(session, step->command->object)->parent;
	struct call call = { .session = session,
			     .api = &session->api,
			     .step = step,
			     .command = step->command,
			     .queue = session->objects[context].context.queue };
	cl_int code = CL_SUCCESS;
	int rc = ts_opencl_wait_queue(session, TS_REPLAY_NONE, position, err);

	if (!rc)
		rc = write_host(&call, &code, err);
	if (!rc && !code)
		code = session->api.clFinish(call.queue);
	if (!rc && step->event) {
		session->api.clReleaseEvent(step->event);
		step->event = NULL;
	}
	return !rc && code ? ts_opencl_fail_command(session, position, code, err) : rc;
}

static int act(struct ts_replay_session *session, uint32_t position, struct ts_error *err)
{
	switch (session->steps[position].command->kind) {
	case TS_COMMAND_ALLOC:
		return ts_opencl_begin_life(session, position, err);
	case TS_COMMAND_FREE:
		ts_opencl_end_life(session, position);
		return TS_OK;
	case TS_COMMAND_SYNC:
		return host_wait(session, position, err);
	case TS_COMMAND_RECORD:
		return set_user_event(session, position, err);
	case TS_COMMAND_HOST_WRITE:
		return host_write(session, position, err);
	default:
		return TS_OK;
	}
}

int ts_opencl_submit(struct ts_replay_session *session, uint32_t position, struct ts_error *err)
{
	const struct ts_opencl_step *step = &session->steps[position];
	int rc = TS_OK;

	if (ts_opencl_has_event(step))
		return submit(session, position, err);
	if (step->is_host_wait)
		rc = ts_opencl_wait_queue(session, TS_REPLAY_NONE, position, err);
	else if (!step->is_marker)
		rc = act(session, position, err);
	if (rc || !step->output_count)
		return rc;
	/* Captures memory after a command of the host. */
	rc = ts_opencl_wait_queue(session, TS_REPLAY_NONE, position, err);
	return rc ? rc : ts_opencl_copy_outputs(session, position, err);
}
