/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks that only time a call and forward it, generated from opencl_calls.def, and the path that
 * every command takes. All other hooks are in opencl_calls_*.c.
 */
#include <tracesmith/schema.h>

#include "backends/opencl/calls/opencl_calls.h"

/* ---- calls that are only timed ---- */

#define OCL_INT(how, name, parameters, arguments) OCL_INT_##how(name, parameters, arguments)
#define OCL_INT_HAND(name, parameters, arguments)
#define OCL_INT_PLAIN(name, parameters, arguments)                               \
	cl_int CL_API_CALL hook_##name parameters                                \
	{                                                                        \
		static struct ts_emit_site site = TS_CALL_SITE(#name, "opencl"); \
		uint64_t start;                                                  \
		cl_int result;                                                   \
                                                                                 \
		if (!ts_enabled())                                               \
			return ocl.next.name arguments;                          \
		start = ts_now();                                                \
		result = ocl.next.name arguments;                                \
		ts_accelerator_call(&site, start, 0, result);                    \
		return result;                                                   \
	}

/* Objects that cannot be replayed. */
#define OCL_MAKES(type, name, parameters, arguments, kind, what) \
	type CL_API_CALL hook_##name parameters                  \
	{                                                        \
		cl_int error = CL_SUCCESS, *wanted = ret_error;  \
		struct ocl_call call;                            \
		type created;                                    \
                                                                 \
		if (!ocl_is_watched())                           \
			return ocl.next.name arguments;          \
		OCL_BEGIN(&call, #name);                         \
		ret_error = &error;                              \
		created = ocl.next.name arguments;               \
		ocl_emit_call(&call, error);                     \
		ocl_created_other(context, kind, created, what); \
		ocl_end(&call);                                  \
		ocl_give_error(wanted, error);                   \
		return created;                                  \
	}

/*
 * Counted whether calls are recorded or not. Ours is released first: once the driver has released
 * it, the handle may be reused.
 */
#define OCL_RETAIN(name, type, kind)                \
	cl_int CL_API_CALL hook_##name(type handle) \
	{                                           \
		struct ocl_call call;               \
		cl_int result;                      \
                                                    \
		OCL_BEGIN(&call, #name);            \
		result = ocl.next.name(handle);     \
		ocl_emit_call(&call, result);       \
		if (result == CL_SUCCESS)           \
			ocl_retain(kind, handle);   \
		ocl_end(&call);                     \
		return result;                      \
	}

#define OCL_RELEASE(name, type, kind)               \
	cl_int CL_API_CALL hook_##name(type handle) \
	{                                           \
		struct ocl_call call;               \
		cl_int result;                      \
                                                    \
		if ((kind) == OCL_CONTEXT)          \
			ocl_profile_look(NULL);     \
		OCL_BEGIN(&call, #name);            \
		ocl_release(kind, handle);          \
		call.start = ts_now();              \
		result = ocl.next.name(handle);     \
		ocl_emit_call(&call, result);       \
		ocl_end(&call);                     \
		return result;                      \
	}

/* Commands that cannot be replayed. */
#define OCL_COMMAND(name, parameters, arguments, what, kind, copy_kind)     \
	cl_int CL_API_CALL hook_##name parameters                           \
	{                                                                   \
		if (!ocl_is_watched())                                      \
			return ocl.next.name arguments;                     \
		struct ocl_command command = { .verb = OCL_OTHER };         \
                                                                            \
		OCL_SITES(&command, #name, what, "other", kind, copy_kind); \
		ocl_give(&command, queue, wait_count, waits, event);        \
		event = command.event_out;                                  \
		return ocl_given(&command, ocl.next.name arguments);        \
	}

#define OCL_POINTER(type, name, parameters, arguments)
#define OCL_VALUE(type, name, parameters, arguments)
#define OCL_VOID(name, parameters, arguments)
#define OCL_WINDOWS(name)
#include "backends/opencl/calls/opencl_calls.def"

void ocl_created_other(cl_context context, enum ocl_kind kind, void *handle, const char *what)
{
	struct ocl_object *object;

	if (!handle || !ocl.replayable)
		return;
	object = ocl_add_in(context, kind, handle);
	if (object)
		stream_created_other(object, what);
}

/* ---- the path of a command ---- */

static uint64_t new_correlation(void)
{
	static uint64_t last;

	return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

/*
 * The order of the stream is that of the queue, so the queue's lock is held across the driver's
 * call in replayable recordings. A callback does not wait for it: its holder may wait for this
 * callback.
 */
static void lock_queue(struct ocl_command *command)
{
	pthread_mutex_t *lock = &command->queue->lock;

	if (ocl_depth > 1)
		command->is_locked = !pthread_mutex_trylock(lock);
	else
		command->is_locked = !pthread_mutex_lock(lock);
}

void ocl_give(struct ocl_command *command, cl_command_queue queue, cl_uint wait_count,
	      const cl_event *waits, cl_event *event)
{
	command->call = &command->call_storage;
	ocl_begin(command->call, command->call->site);
	command->call->correlation = new_correlation();
	command->queue = ocl_find(OCL_QUEUE, queue);
	command->wait_count = waits ? wait_count : 0;
	command->waits = waits;
	command->program_event = event;
	/* Outside of windows, no event is requested that the program does not want. */
	if (event || ts_enabled() || (ocl.replayable && command->blocking))
		command->event_out = &command->event;
	if (ocl.replayable) {
		if (command->queue)
			lock_queue(command);
		stream_before(command);
		command->call->start = ts_now();
	}
}

static void fill_geometry(const struct ocl_command *command, struct ts_gpu_op *op)
{
	for (cl_uint i = 0; i < 3 && command->local && command->global; i++) {
		size_t local = i < command->dimensions ? command->local[i] : 1;
		size_t global = i < command->dimensions ? command->global[i] : 1;

		if (!local)
			return;
		op->block[i] = (uint32_t)local;
		op->grid[i] = (uint32_t)((global + local - 1) / local);
	}
}

static int64_t bytes_of(const struct ocl_command *command)
{
	const size_t *region = command->rect.region;

	if (command->bytes)
		return (int64_t)command->bytes;
	return region ? (int64_t)(region[0] * region[1] * region[2]) : TS_UNKNOWN;
}

static bool profile(const struct ocl_command *command, uint64_t after)
{
	const struct ocl_object *queue = command->queue;
	struct ts_gpu_op op = { .size = sizeof(op),
				.kind = command->kind,
				.copy_kind = command->copy_kind,
				.stream = queue->number,
				.correlation = command->call->correlation,
				.bytes = bytes_of(command) };

	op.device = queue->device ? queue->device->number : 0;
	op.context = queue->context ? queue->context->number : 0;
	if (command->verb == OCL_LAUNCH)
		fill_geometry(command, &op);
	return ocl_profile_given(command, &op, command->call->start, after);
}

/* Its event is the program's, ours, or both. */
static bool take_in(struct ocl_command *command, uint64_t after)
{
	bool is_profiled = command->queue && ts_enabled(), is_due = false;

	/* First: once it is in the list, the helper may release its event at any time. */
	if (ocl.replayable)
		stream_after(command, CL_SUCCESS);
	if (is_profiled)
		is_due = profile(command, after);
	else if (command->program_event)
		ocl_event_add(command->event, command->call->correlation, command->queue, false);
	if (command->program_event)
		*command->program_event = command->event;
	/* Nobody needs it. */
	if (!is_profiled && !command->program_event && command->event)
		ocl.next.clReleaseEvent(command->event);
	return is_due || (is_profiled && command->blocking);
}

/* Without locks. `event` is our own reference, because the list's may be released by now. */
static cl_int wait_deferred(cl_event event)
{
	cl_int result = ocl.next.clWaitForEvents(1, &event);

	ocl.next.clReleaseEvent(event);
	if (result == CL_SUCCESS)
		stream_returned();
	return result;
}

cl_int ocl_given(struct ocl_command *command, cl_int result)
{
	uint64_t after = ts_now();
	bool is_due = false, is_deferred = command->is_deferred && result == CL_SUCCESS &&
					   command->event &&
					   ocl.next.clRetainEvent(command->event) == CL_SUCCESS;
	cl_event event = command->event;

	if (!is_deferred)
		ocl_emit_call(command->call, result);
	if (result == CL_SUCCESS)
		is_due = take_in(command, after);
	else if (ocl.replayable)
		stream_after(command, result);
	if (command->is_locked)
		pthread_mutex_unlock(&command->queue->lock);
	if (is_deferred) {
		result = wait_deferred(event);
		ocl_emit_call(command->call, result);
	}
	if (result == CL_SUCCESS && !command->queue)
		ts_accelerator_lost("gpu_op", 1, "its queue was created by an unknown function");
	ocl_end(command->call);
	if (is_due && command->blocking)
		ocl_profile_look(command->queue);
	else if (is_due)
		ocl_profile_look_between(command->queue);
	return result;
}
