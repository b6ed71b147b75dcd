/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What hooks report to the command stream (docs/replay.md, 3.3 and 4). Hooks call these functions
 * only if `ocl.replayable`. Included by opencl_internal.h, after its types.
 *
 *	Order in a hook:
 *		stream_enter()             takes the gate; opens or closes a window that is due
 *		[queue lock]
 *		stream_before(&command)    captures what the driver will read; may wait for a
 *		                           pending read
 *		the driver's call
 *		stream_after(&command, result)   appends the command
 *		[queue unlock]
 *		stream_leave()
 *
 * Calls that create, change or release objects: stream_enter(), the driver's call, stream_made_*(),
 * stream_leave().
 */
#ifndef TS_BACKENDS_OPENCL_STREAM_CAPTURE_STREAM_H
#define TS_BACKENDS_OPENCL_STREAM_CAPTURE_STREAM_H

/* Take and release the gate, shared. May be nested. */
void stream_enter(void);
void stream_leave(void);
/* ---- objects; called after the driver created them and `object` was added ---- */
void stream_created_context(struct ocl_object *context, const cl_device_id *devices, cl_uint count);
void stream_created_queue(struct ocl_object *queue);
void stream_created_buffer(struct ocl_object *memory, cl_mem_flags flags, size_t bytes,
			   const void *host);
void stream_created_sub_buffer(struct ocl_object *memory, struct ocl_object *parent,
			       cl_mem_flags flags, size_t origin, size_t bytes);
void stream_created_image(struct ocl_object *memory, cl_mem_flags flags,
			  const cl_image_format *format, const cl_image_desc *description,
			  const void *host);
void stream_created_sampler(struct ocl_object *sampler);
/* Pipe, IL, built-in kernels ...: `what` names it. The object cannot be replayed. */
void stream_created_other(struct ocl_object *object, const char *what);
void stream_created_source(struct ocl_object *program, cl_uint count, const char **strings,
			   const size_t *lengths);
void stream_created_binary(struct ocl_object *program, cl_uint count, const cl_device_id *devices,
			   const size_t *lengths, const unsigned char **binaries);
void stream_built(struct ocl_object *program, const char *options, cl_int result); /* or compiled */
void stream_linked(struct ocl_object *program, const char *options);
void stream_created_kernel(struct ocl_object *kernel, struct ocl_object *program, const char *name,
			   const struct ocl_object *cloned_from);
void stream_set_argument(struct ocl_object *kernel, cl_uint index, size_t bytes, const void *value);
void stream_set_argument_svm(struct ocl_object *kernel, cl_uint index, const void *pointer);
void stream_set_exec_info(struct ocl_object *kernel, cl_kernel_exec_info name, size_t bytes,
			  const void *value);
void stream_created_user_event(struct ocl_object *event);
void stream_created_svm(struct ocl_object *memory, cl_svm_mem_flags flags, size_t bytes);
/*
 * The last reference is about to be released. Releases object->stream. Calls neither the driver nor
 * ocl_*().
 */
void stream_gone(struct ocl_object *object);

/*
 * ---- commands ----
 *
 * stream_after() uses command->event, which must not be released meanwhile: call it before the
 * event goes to the list of pending commands. In a callback, do not wait for the queue's lock: its
 * holder may wait for this very thread of the driver.
 */
void stream_before(struct ocl_command *command);
void stream_after(struct ocl_command *command, cl_int result);

/* ---- the host ---- */
/* Before clSetUserEventStatus. */
void stream_user_event(struct ocl_object *event, cl_int status);
/* After a successful wait: for a queue (clFinish), or for events. */
void stream_finished(struct ocl_object *queue);
void stream_waited(cl_uint count, const cl_event *events);
/*
 * A blocking command that was forwarded as non-blocking is complete, and its call is about to
 * return.
 */
void stream_returned(void);
/*
 * Before a query of reference counts: releases our private objects, which hold their context, and
 * takes the checks whose reads hold their queue.
 */
void stream_let_go(void);
/*
 * The program queried the status or times of an event and learned that it is complete, or a
 * callback is about to run.
 */
void stream_seen_complete(cl_event event);
/* The program released its last reference to an event: the handle may be reused. */
void stream_event_gone(cl_event event);
/* The stream's references to an event, in addition to ocl_event_holds(). */
cl_uint stream_event_holds(cl_event event);

/* Something that the stream lacks entirely, e.g. an unknown function that was looked up by name. */
void stream_unhandled(const char *what);

/* At exit, while the driver still responds: closes the window. */
void stream_stop(void);

#endif
