/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: waiting for them, querying them, their callbacks. The program sees one reference less of
 * events that we hold, and no times of those from queues that it created without profiling.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/calls/opencl_calls.h"

/* ---- references ---- */

cl_int CL_API_CALL hook_clRetainEvent(cl_event event)
{
	struct ocl_call call;
	cl_int result;

	OCL_BEGIN(&call, "clRetainEvent");
	result = ocl.next.clRetainEvent(event);
	ocl_emit_call(&call, result);
	if (result == CL_SUCCESS) {
		ocl_event_retain(event);
		ocl_retain(OCL_EVENT, event);
	}
	ocl_end(&call);
	return result;
}

cl_int CL_API_CALL hook_clReleaseEvent(cl_event event)
{
	struct ocl_call call;
	cl_int result;

	OCL_BEGIN(&call, "clReleaseEvent");
	/* Once the driver has released it, the handle may be reused. */
	if (ocl_event_release(event) && ocl.replayable)
		stream_event_gone(event);
	ocl_release(OCL_EVENT, event);
	call.start = ts_now();
	result = ocl.next.clReleaseEvent(event);
	ocl_emit_call(&call, result);
	ocl_end(&call);
	return result;
}

/* ---- waiting ---- */

/* Collects the queues of events that were waited for; repeated ones in a row only once. */
static void look_at_queues(cl_uint count, const cl_event *events)
{
	struct ocl_object *last = NULL, *queue;

	for (cl_uint i = 0; i < count; i++) {
		ocl_event_find(events[i], &queue);
		if (queue && queue != last)
			ocl_profile_look(queue);
		last = queue;
	}
}

cl_int CL_API_CALL hook_clWaitForEvents(cl_uint num_events, const cl_event *event_list)
{
	struct ocl_call call;
	cl_int result;

	if (!ocl_is_watched())
		return ocl.next.clWaitForEvents(num_events, event_list);
	OCL_BEGIN(&call, "clWaitForEvents");
	result = ocl.next.clWaitForEvents(num_events, event_list);
	ocl_emit_call(&call, result);
	if (result == CL_SUCCESS && ocl.replayable)
		stream_waited(num_events, event_list);
	ocl_end(&call);
	if (result == CL_SUCCESS)
		look_at_queues(num_events, event_list);
	return result;
}

/* ---- user events ---- */

cl_event CL_API_CALL hook_clCreateUserEvent(cl_context context, cl_int *ret_error)
{
	cl_int error = CL_SUCCESS;
	struct ocl_object *object;
	struct ocl_call call;
	cl_event event;

	OCL_BEGIN(&call, "clCreateUserEvent");
	event = ocl.next.clCreateUserEvent(context, &error);
	ocl_emit_call(&call, error);
	object = event && ocl.replayable ? ocl_add_in(context, OCL_EVENT, event) : NULL;
	if (object)
		stream_created_user_event(object);
	ocl_end(&call);
	ocl_give_error(ret_error, error);
	return event;
}

cl_int CL_API_CALL hook_clSetUserEventStatus(cl_event event, cl_int execution_status)
{
	struct ocl_object *object;
	struct ocl_call call;
	cl_int result;

	if (!ocl_is_watched())
		return ocl.next.clSetUserEventStatus(event, execution_status);
	OCL_BEGIN(&call, "clSetUserEventStatus");
	/* The driver refuses other values. */
	object = ocl.replayable && execution_status <= CL_COMPLETE ? ocl_find(OCL_EVENT, event)
								   : NULL;
	if (object)
		stream_user_event(object, execution_status);
	call.start = ts_now();
	result = ocl.next.clSetUserEventStatus(event, execution_status);
	ocl_emit_call(&call, result);
	ocl_end(&call);
	return result;
}

/* ---- callbacks ---- */

/* Passed to the driver instead of the program's own. */
struct notice {
	void(CL_CALLBACK *notify)(cl_event, cl_int, void *);
	void *user_data;
};

/* Runs on a thread of the driver, or inside a call of the program. */
static void CL_CALLBACK called_back(cl_event event, cl_int status, void *user_data)
{
	struct notice notice = *(struct notice *)user_data;

	free(user_data);
	ts_replay_callback_begin();
	if (status == CL_COMPLETE) {
		stream_enter();
		stream_seen_complete(event);
		stream_leave();
	}
	notice.notify(event, status, notice.user_data);
	ts_replay_callback_end();
}

cl_int CL_API_CALL hook_clSetEventCallback(cl_event event, cl_int command_exec_callback_type,
					   void(CL_CALLBACK *pfn_notify)(cl_event, cl_int, void *),
					   void *user_data)
{
	struct notice *notice = pfn_notify && ocl.replayable ? malloc(sizeof(*notice)) : NULL;
	struct ocl_call call;
	cl_int result;

	if (notice) {
		notice->notify = pfn_notify;
		notice->user_data = user_data;
	}
	OCL_BEGIN(&call, "clSetEventCallback");
	if (notice)
		result = ocl.next.clSetEventCallback(event, command_exec_callback_type, called_back,
						     notice);
	else
		result = ocl.next.clSetEventCallback(event, command_exec_callback_type, pfn_notify,
						     user_data);
	ocl_emit_call(&call, result);
	/* Refused: it will not be called. */
	if (result != CL_SUCCESS)
		free(notice);
	ocl_end(&call);
	return result;
}

/* ---- queries: answers as without us ---- */

static void take_off(cl_event event, void *value)
{
	cl_uint references, ours = ocl_event_holds(event);

	if (ocl.replayable)
		ours += stream_event_holds(event);
	memcpy(&references, value, sizeof(references));
	references -= references > ours ? ours : 0;
	memcpy(value, &references, sizeof(references));
}

/*
 * While the count is read, our reference must not be released, which threads do that collect its
 * queue.
 */
static cl_int query_references(cl_event event, size_t size, void *value, size_t *ret_size)
{
	struct ocl_object *queue;
	bool is_locked = false;
	cl_int result;

	ocl_event_find(event, &queue);
	if (queue) {
		ocl_profile_look(queue);
		is_locked = !pthread_mutex_trylock(&queue->looking);
	}
	result = ocl.next.clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, size, value, ret_size);
	if (result == CL_SUCCESS && value)
		take_off(event, value);
	if (is_locked)
		pthread_mutex_unlock(&queue->looking);
	return result;
}

cl_int CL_API_CALL hook_clGetEventInfo(cl_event event, cl_event_info name, size_t size, void *value,
				       size_t *ret_size)
{
	struct ocl_call call;
	cl_int result, status;

	OCL_BEGIN(&call, "clGetEventInfo");
	if (name == CL_EVENT_REFERENCE_COUNT)
		result = query_references(event, size, value, ret_size);
	else
		result = ocl.next.clGetEventInfo(event, name, size, value, ret_size);
	ocl_emit_call(&call, result);
	if (ocl.replayable && name == CL_EVENT_COMMAND_EXECUTION_STATUS && result == CL_SUCCESS &&
	    value) {
		memcpy(&status, value, sizeof(status));
		if (status == CL_COMPLETE)
			stream_seen_complete(event);
	}
	ocl_end(&call);
	return result;
}

/*
 * True if the program created the event's queue without profiling: without us, it would get no
 * times.
 */
static bool has_hidden_times(cl_event event)
{
	const struct ocl_object *object;
	cl_command_queue queue = NULL;

	if (ocl.next.clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof(queue), &queue, NULL) !=
	    CL_SUCCESS)
		return false;
	object = ocl_find(OCL_QUEUE, queue);
	return object && !(object->properties & CL_QUEUE_PROFILING_ENABLE);
}

cl_int CL_API_CALL hook_clGetEventProfilingInfo(cl_event event, cl_profiling_info name, size_t size,
						void *value, size_t *ret_size)
{
	struct ocl_call call;
	cl_int result;

	OCL_BEGIN(&call, "clGetEventProfilingInfo");
	if (has_hidden_times(event))
		result = CL_PROFILING_INFO_NOT_AVAILABLE;
	else
		result = ocl.next.clGetEventProfilingInfo(event, name, size, value, ret_size);
	ocl_emit_call(&call, result);
	ocl_end(&call);
	return result;
}
