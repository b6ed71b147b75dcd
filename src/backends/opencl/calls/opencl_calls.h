/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers for hooks: begin and end of a call, the path of a command, and the declarations of all
 * hooks. Only for opencl_calls*.c and opencl_layer.c.
 *
 *	A call:
 *		struct ocl_call call;
 *
 *		OCL_BEGIN(&call, "clFlush");
 *		result = ocl.next.clFlush(queue);
 *		ocl_emit_call(&call, result);
 *		... what follows from it ...
 *		ocl_end(&call);
 *
 *	A command:
 *		struct ocl_command command = { .verb = OCL_READ, ... };
 *
 *		ocl_give(&command, queue, wait_count, waits, event);
 *		result = ocl.next.clEnqueueReadBuffer(..., command.event_out);
 *		return ocl_given(&command, result);
 */
#ifndef TS_BACKENDS_OPENCL_CALLS_OPENCL_CALLS_H
#define TS_BACKENDS_OPENCL_CALLS_OPENCL_CALLS_H

#include "backends/opencl/opencl_internal.h"

/* Whether calls and commands are recorded. Objects are tracked in any case. */
static inline bool ocl_is_watched(void)
{
	return ts_enabled() || ocl.replayable;
}

static inline void ocl_begin(struct ocl_call *call, struct ts_emit_site *site)
{
	call->site = site;
	call->correlation = 0;
	ocl_depth++;
	if (ocl.replayable)
		stream_enter();
	call->start = ts_now();
}

/* Has its own call site for each use. */
#define OCL_BEGIN(call, name)                                                    \
	do {                                                                     \
		static struct ts_emit_site site_ = TS_CALL_SITE(name, "opencl"); \
		ocl_begin((call), &site_);                                       \
	} while (0)

/* Right after the driver's call, so that its duration includes nothing of ours. */
static inline void ocl_emit_call(const struct ocl_call *call, cl_int result)
{
	ts_accelerator_call(call->site, call->start, call->correlation, result);
}

static inline void ocl_end(const struct ocl_call *call)
{
	(void)call;
	if (ocl.replayable)
		stream_leave();
	ocl_depth--;
}

/* For calls that return their error through a pointer, which may be NULL. */
static inline void ocl_give_error(cl_int *ret_error, cl_int error)
{
	if (ret_error)
		*ret_error = error;
}

/* Before the driver's call. `command` has what its verb needs; everything else is set here. */
void ocl_give(struct ocl_command *command, cl_command_queue queue, cl_uint wait_count,
	      const cl_event *waits, cl_event *event);
/*
 * The value to forward as a command's `blocking`. We never wait for the driver with the queue's
 * lock held, because another thread may need the queue for what this one waits for. The wait comes
 * after the lock is released.
 */
static inline cl_bool ocl_blocks(struct ocl_command *command)
{
	command->is_deferred = command->is_locked && command->blocking;
	return command->blocking && !command->is_deferred;
}

/* After the driver's call; returns the result. */
cl_int ocl_given(struct ocl_command *command, cl_int result);

/*
 * Both call sites of a command, before ocl_give(): of the call, and of the device operation
 * (kernels have their own).
 */
#define OCL_SITES(command, call_name, op_name, category, kind_, copy_kind_)           \
	do {                                                                          \
		static struct ts_emit_site call_ = TS_CALL_SITE(call_name, "opencl"); \
		static struct ts_emit_site op_ = TS_GPU_OP_SITE(op_name, category);   \
		(command)->call_storage.site = &call_;                                \
		(command)->op_site = &op_;                                            \
		(command)->kind = TS_GPU_OP_##kind_;                                  \
		(command)->copy_kind = TS_COPY_##copy_kind_;                          \
	} while (0)

/* Creates a queue with any function that takes a list of properties. */
typedef cl_command_queue(CL_API_CALL *ocl_make_queue)(cl_context, cl_device_id,
						      const cl_queue_properties *, cl_int *);
cl_command_queue ocl_queue_with_list(struct ocl_call *call, ocl_make_queue make, cl_context context,
				     cl_device_id device, const cl_queue_properties *properties,
				     cl_int *ret_error);
/* An object that cannot be replayed was created. */
void ocl_created_other(cl_context context, enum ocl_kind kind, void *handle, const char *what);
/* The kernel's object; created if it is not known yet. */
struct ocl_object *ocl_kernel(cl_kernel handle);
/* What a lookup by name returns, given the address that the next layer returned. */
void *ocl_extension(const char *name, void *address);
/* A hook by the name of its function, or NULL. */
void *ocl_hook(const char *name);

/* ---- all hooks ---- */
#define OCL_INT(how, name, parameters, arguments) cl_int CL_API_CALL hook_##name parameters;
#define OCL_POINTER(type, name, parameters, arguments) type CL_API_CALL hook_##name parameters;
#define OCL_VALUE(type, name, parameters, arguments) type CL_API_CALL hook_##name parameters;
#define OCL_VOID(name, parameters, arguments) void CL_API_CALL hook_##name parameters;
#define OCL_MAKES(type, name, parameters, arguments, kind, what) \
	type CL_API_CALL hook_##name parameters;
#define OCL_RETAIN(name, type, kind) cl_int CL_API_CALL hook_##name(type handle);
#define OCL_RELEASE(name, type, kind) cl_int CL_API_CALL hook_##name(type handle);
#define OCL_COMMAND(name, parameters, arguments, what, kind, copy_kind) \
	cl_int CL_API_CALL hook_##name parameters;
#define OCL_WINDOWS(name)
#include "backends/opencl/calls/opencl_calls.def"

#endif
