/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the target opencl: recorded objects as recreated on this machine, commands
 * prepared for submission, and their results.
 *
 *	target_opencl.c          the target's descriptor; a run from first to last command
 *	opencl_api.c             functions of the OpenCL loader
 *	opencl_device.c          maps recorded devices to devices of this machine
 *	opencl_options.c         which build options a compiler gets
 *	opencl_modules.c         programs and kernels
 *	opencl_replay_objects.c  contexts, queues, user events
 *	opencl_memory.c          memory, views, initial content
 *	opencl_images.c          images, samplers, and commands that copy images
 *	opencl_order.c           what each command waits for, and when it can end
 *	opencl_steps.c           prepares everything a command needs before the clock starts
 *	opencl_commands.c        submits one command to the driver
 *	opencl_waits.c           waits for commands, reads their times
 *	opencl_content.c         copies out memory that is compared
 *	opencl_watch.c           tells a monitor which command the device works on
 *
 * Single-threaded, except for opencl_watch.c. Positions are indices of plan->order; commands and
 * objects are indices of the stream.
 */
#ifndef TS_REPLAY_TARGETS_OPENCL_OPENCL_SESSION_H
#define TS_REPLAY_TARGETS_OPENCL_OPENCL_SESSION_H

#include "replay/targets/opencl/opencl_api.h"

#include "base/arena.h"
#include "base/map.h"
#include "replay/replay.h"

#define TS_OPENCL_NAME_BYTES 128

struct ts_opencl_device {
	cl_device_id id;
	cl_platform_id platform;
	char name[TS_OPENCL_NAME_BYTES], platform_name[TS_OPENCL_NAME_BYTES];
};

/*
 * A recorded object on this machine. Its kind selects the union member; objects that no command
 * needs are zero.
 */
struct ts_opencl_object {
	bool is_needed;
	union {
		uint32_t device; /* index of session->devices; TS_REPLAY_NONE: not chosen */
		struct {
			cl_context handle;
			cl_command_queue queue; /* internal, in order, on its first device */
		} context;
		struct {
			cl_command_queue handle;
			uint32_t unflushed; /* commands submitted since the last flush */
			uint32_t pending;   /* commands submitted since the last finish */
			uint32_t gate;      /* the highest gate of pending commands */
		} queue;
		cl_program module;
		struct {
			cl_kernel handle;
			const struct ts_opencl_step *last; /* the step whose arguments are set */
			uint32_t epoch;                    /* session->epoch when they were set */
		} function;
		struct {
			cl_mem handle;
			char *svm;                    /* SVM: used instead of a handle */
			struct ts_opencl_view *views; /* views of this memory */
			struct ts_opencl_view *view;  /* a view that is an image: itself */
		} memory;
		cl_event event; /* user event */
	};
};

/* A --replace-kernel file, built in place of a module. */
struct ts_opencl_replaced {
	uint32_t module;
	const struct ts_replay_replacement *by;
	cl_program handle;
};

/* Memory as an argument sees it: a sub-buffer, an image, or all of its root memory. */
struct ts_opencl_view {
	uint32_t memory;
	uint32_t image; /* object that describes it; TS_REPLAY_NONE: not an image, or its root */
	uint64_t offset, bytes;
	cl_mem handle;
	struct ts_opencl_view *next;    /* next view that begins at the same byte */
	struct ts_opencl_view *sibling; /* next view of the same memory */
};

struct ts_opencl_sampler {
	uint32_t context;
	const struct ts_replay_arg *like;
	cl_sampler handle;
	struct ts_opencl_sampler *next;
};

struct ts_opencl_arg {
	enum ts_replay_arg_kind kind;
	size_t size;
	const void *value; /* BYTES: the bytes; SVM: the address; MEMORY, SAMPLER: address of the
			      handle, or NULL */
};

/* Bytes that a run returns: what a command reads, or a range that is copied out after it. */
struct ts_opencl_output {
	uint32_t position;
	struct ts_replay_range range; /* memory TS_REPLAY_NONE: what the command itself reads */
	uint32_t capture;             /* capture that receives it; TS_REPLAY_NONE: none */
	uint64_t at;                  /* offset in the staging memory */
	uint32_t after; /* number of outputs that must be delivered before it may be written */
	/* State of the current run. */
	cl_event event;
	char *data;
	bool is_allocated; /* data is malloc()ed because staging was full */
};

/* A command prepared for submission. */
struct ts_opencl_step {
	const struct ts_replay_command_info *command;
	uint32_t gate; /* 1 + position of the last user event that must be set before it can end; 0:
			  none */
	uint32_t last_use;     /* the last position that waits for it */
	const uint32_t *waits; /* positions of commands, or where a user event is set */
	uint32_t wait_count;
	uint32_t first_output, output_count;
	const void *host; /* bytes from the host; NULL with a blob: not staged, read on demand */
	const struct ts_opencl_arg *args;
	void **pointers; /* memory that a kernel reaches without an argument */
	uint32_t pointer_count;
	bool is_marker;    /* kept only for its order */
	bool is_host_wait; /* the same, in a queue that does not exist: the host waits instead */
	/* State of the current run. */
	int64_t given;     /* when the submitting call returned; host ns */
	cl_event event;    /* the command's own event */
	cl_event waitable; /* what others wait for: the same, or the event of its last output */
};

struct ts_replay_session {
	struct ts_replay *replay;
	const struct ts_replay_stream *stream;
	const struct ts_replay_plan *plan;
	struct ts_opencl_api api;
	struct ts_arena arena;
	char text[256]; /* description of the devices */

	struct ts_opencl_device *devices; /* all devices of this machine */
	uint32_t device_count;
	struct ts_opencl_object *objects; /* indexed as stream->objects */
	uint32_t *queues;                 /* object indices of needed queues */
	uint32_t queue_count;
	struct ts_opencl_replaced *replaced;
	size_t replaced_count, replaced_capacity;
	struct ts_pairmap views; /* (memory, offset) -> address of a view there */
	struct ts_opencl_sampler *samplers;
	bool is_lazy;   /* too much memory to allocate all of it at once */
	uint32_t epoch; /* incremented for each memory that is created */

	uint32_t *positions; /* per command of the stream; TS_REPLAY_NONE: skipped */
	struct ts_opencl_step *steps;
	cl_event *list;       /* capacity: the longest wait list, plus one */
	struct ts_map staged; /* blob id -> address */
	uint64_t staged_bytes;
	bool expects_errors; /* a user event is set to an error: what waits for it will not run */

	struct ts_opencl_output *outputs;
	uint32_t output_count;
	char *staging; /* outputs in flight */
	uint64_t staging_bytes;
	/* State of the current run. */
	struct ts_replay_outcome *outcome;
	uint32_t delivered; /* number of outputs delivered */
	uint32_t oldest;    /* the first step that is not harvested */
	uint32_t submitted; /* 1 + the last position that was submitted; atomic */
	uint32_t launching; /* 1 + the position whose launch the driver is called for; 0: none;
			       atomic */
	struct ts_target_watch *watch; /* NULL: nobody watches */
};

/* The recorded object. */
static inline const struct ts_replay_object_info *ts_opencl_info(
	const struct ts_replay_session *session, uint32_t object)
{
	return &session->stream->objects[object];
}

static inline bool ts_opencl_is_ordered(const struct ts_replay_session *session, uint32_t queue)
{
	return !(session->stream->objects[queue].flags & TS_REPLAY_OUT_OF_ORDER);
}

/* Neither computes nor copies. */
static inline bool ts_opencl_only_orders(enum ts_command_kind kind)
{
	return kind == TS_COMMAND_RECORD || kind == TS_COMMAND_WAIT || kind == TS_COMMAND_SYNC ||
	       kind == TS_COMMAND_ALLOC || kind == TS_COMMAND_FREE || kind == TS_COMMAND_LOAD;
}

/* Is submitted to a queue and so has an event. */
static inline bool ts_opencl_has_event(const struct ts_opencl_step *step)
{
	return step->command->queue != TS_REPLAY_NONE && !step->is_host_wait &&
	       (step->is_marker || (step->command->kind >= TS_COMMAND_LAUNCH &&
				    step->command->kind != TS_COMMAND_SYNC));
}

/* For messages: the name of the device of a queue or context. */
const char *ts_opencl_device_name(const struct ts_replay_session *session, uint32_t object);

/* Sets the error of a call: "kernel 'saxpy', command 17: CL_INVALID_VALUE on 'pthread'". */
int ts_opencl_fail_command(const struct ts_replay_session *session, uint32_t position, cl_int code,
			   struct ts_error *err);
/* The same for an object: "memory 7: CL_OUT_OF_RESOURCES on 'pthread'". */
int ts_opencl_fail_object(const struct ts_replay_session *session, uint32_t object, cl_int code,
			  struct ts_error *err);

/* opencl_device.c: finds all devices and maps each recorded device to one. */
int ts_opencl_choose_devices(struct ts_replay_session *session, struct ts_error *err);
/*
 * The devices of a context, without duplicates; returns their number. `ret_devices` has space for
 * all devices of the machine.
 */
uint32_t ts_opencl_context_devices(const struct ts_replay_session *session, uint32_t context,
				   cl_device_id *ret_devices);

/* opencl_modules.c: all needed functions, with their modules. */
int ts_opencl_make_functions(struct ts_replay_session *session, struct ts_error *err);
void ts_opencl_free_functions(struct ts_replay_session *session);

/* opencl_replay_objects.c */
int ts_opencl_make_objects(struct ts_replay_session *session, struct ts_error *err);
void ts_opencl_free_objects(struct ts_replay_session *session);
/* Restores the initial state of memory, arguments and user events. */
int ts_opencl_restore(struct ts_replay_session *session, struct ts_error *err);
/*
 * After a run: releases user events. After a failure, commands that still wait for one are
 * unblocked first.
 */
void ts_opencl_drop_user_events(struct ts_replay_session *session);

/* opencl_memory.c */
/* Flags of clCreateBuffer() for TS_REPLAY_* flags. */
cl_mem_flags ts_opencl_access_flags(uint32_t flags);
int ts_opencl_make_memory(struct ts_replay_session *session, uint32_t memory, struct ts_error *err);
void ts_opencl_free_memory(struct ts_replay_session *session, uint32_t memory);
/* A view of root memory, created once. `image`: as in struct ts_opencl_view. */
int ts_opencl_make_view(struct ts_replay_session *session, uint32_t memory, uint64_t offset,
			uint64_t bytes, uint32_t image, struct ts_opencl_view **ret_view,
			struct ts_error *err);
/* Does the needed memory exceed the limit? Tests set it; 0: half of the device's memory. */
bool ts_opencl_is_too_much(const struct ts_replay_session *session);
extern uint64_t ts_opencl_memory_limit;
/* Restores the initial content, through the context's internal queue. */
int ts_opencl_restore_memory(struct ts_replay_session *session, uint32_t memory,
			     struct ts_error *err);
/* alloc and free of memory that does not live for the entire run. */
int ts_opencl_begin_life(struct ts_replay_session *session, uint32_t position,
			 struct ts_error *err);
void ts_opencl_end_life(struct ts_replay_session *session, uint32_t position);

/* opencl_images.c */
/* Creates an image; `in`: the memory that it is a view of, or NULL. */
int ts_opencl_make_image(struct ts_replay_session *session, uint32_t image, cl_mem in,
			 cl_mem *ret_handle, struct ts_error *err);
/* The handle of an image that a command names; it is created if it is a view. */
int ts_opencl_make_image_view(struct ts_replay_session *session, uint32_t image,
			      struct ts_error *err);
/* Reads or writes all of an image that is root memory; else like ts_opencl_read(). */
cl_int ts_opencl_read_image(struct ts_replay_session *session, cl_command_queue queue,
			    uint32_t image, void *to, bool blocking, uint32_t count,
			    cl_event *event);
cl_int ts_opencl_write_image(struct ts_replay_session *session, cl_command_queue queue,
			     uint32_t image, const void *from, bool blocking, uint32_t count,
			     cl_event *event);
cl_int ts_opencl_clear_image(struct ts_replay_session *session, cl_command_queue queue,
			     uint32_t image);
/*
 * Submits a copy, fill or host write that names an image. `host`: its bytes on the host's side, or
 * NULL.
 */
cl_int ts_opencl_submit_image(struct ts_replay_session *session, cl_command_queue queue,
			      const struct ts_replay_command_info *command, void *host,
			      bool blocking, uint32_t count, cl_event *event);
/* A sampler for a kernel of this context, created once. */
int ts_opencl_make_sampler(struct ts_replay_session *session, uint32_t context,
			   const struct ts_replay_arg *like, const cl_sampler **ret_handle,
			   struct ts_error *err);
void ts_opencl_free_samplers(struct ts_replay_session *session);

/* opencl_order.c: positions, waits and gates of all steps. */
int ts_opencl_make_order(struct ts_replay_session *session, struct ts_error *err);

/* opencl_steps.c */
/* Marks the objects that the plan needs; an unreplayable one is an error. */
int ts_opencl_mark_needed(struct ts_replay_session *session, struct ts_error *err);
/* Prepares arguments, bytes from the host and views. */
int ts_opencl_make_steps(struct ts_replay_session *session, struct ts_error *err);
/*
 * The blob's bytes, valid until the session ends. *ret_data is NULL if there are too many: the
 * caller reads them on demand.
 */
int ts_opencl_stage(struct ts_replay_session *session, const struct ts_replay_blob_ref *blob,
		    const void **ret_data, struct ts_error *err);

/* opencl_commands.c: submits one command. */
int ts_opencl_submit(struct ts_replay_session *session, uint32_t position, struct ts_error *err);
/*
 * Writes bytes to memory, or reads them, through a queue; also for SVM. Waits for the first `count`
 * events of session->list; `event` may be NULL.
 */
cl_int ts_opencl_write(struct ts_replay_session *session, cl_command_queue queue,
		       const struct ts_replay_range *range, const void *from, bool blocking,
		       uint32_t count, cl_event *event);
cl_int ts_opencl_read(struct ts_replay_session *session, cl_command_queue queue,
		      const struct ts_replay_range *range, void *to, bool blocking, uint32_t count,
		      cl_event *event);

/* opencl_waits.c */
/* CL_QUEUED to CL_COMPLETE, or an error; CL_COMPLETE also if it has no event (any more). */
cl_int ts_opencl_status(const struct ts_replay_session *session, uint32_t position);
/*
 * Sets the error of a command that was accepted, and failed on the device. An invalid access on a
 * GPU fails everything after it as well: the first command that failed is named.
 */
int ts_opencl_fail_execution(const struct ts_replay_session *session, uint32_t position,
			     cl_int status, struct ts_error *err);
/* Collects the events that a step waits for in session->list; returns their number. */
uint32_t ts_opencl_gather_waits(struct ts_replay_session *session, uint32_t position);
/* The host waits for a step, unless that step cannot end before position `now`. */
int ts_opencl_wait(struct ts_replay_session *session, uint32_t position, uint32_t now,
		   struct ts_error *err);
/* The same for all steps of a queue before `now`; TS_REPLAY_NONE: all queues. */
int ts_opencl_wait_queue(struct ts_replay_session *session, uint32_t queue, uint32_t now,
			 struct ts_error *err);
int ts_opencl_flush(struct ts_replay_session *session, struct ts_error *err);
/* Counts a step submitted to its queue, and flushes the queue from time to time. */
int ts_opencl_submitted(struct ts_replay_session *session, uint32_t position, struct ts_error *err);
/*
 * Reads the times of completed steps, from the oldest on, and releases their events. `all`: the
 * caller knows that all steps before `end` are complete.
 */
int ts_opencl_harvest(struct ts_replay_session *session, uint32_t end, bool all,
		      struct ts_error *err);
/* Converts device times to the host's clock. */
void ts_opencl_align_times(struct ts_replay_session *session);
/* After a run, successful or not: releases all events. */
void ts_opencl_drop_events(struct ts_replay_session *session);

/*
 * opencl_watch.c: for the time of a run, a thread that tells the monitor which command is not
 * complete. Nothing happens without a monitor.
 */
int ts_opencl_watch_start(struct ts_replay_session *session, struct ts_error *err);

/* opencl_content.c */
int ts_opencl_make_outputs(struct ts_replay_session *session, struct ts_error *err);
void ts_opencl_free_outputs(struct ts_replay_session *session);
/* After a run, successful or not: drops outputs that were not delivered. */
void ts_opencl_drop_outputs(struct ts_replay_session *session);
/* Reserves space for an output's bytes; delivers older outputs to make space. */
int ts_opencl_output_reserve(struct ts_replay_session *session, struct ts_opencl_output *output,
			     struct ts_error *err);
/* After a command was submitted: copies out the memory to compare. */
int ts_opencl_copy_outputs(struct ts_replay_session *session, uint32_t position,
			   struct ts_error *err);
/* Delivers outputs below `until`, waiting for each. */
int ts_opencl_deliver(struct ts_replay_session *session, uint32_t until, uint32_t now,
		      struct ts_error *err);
/* Delivers the captures of the end, when all commands are complete. */
int ts_opencl_final_content(struct ts_replay_session *session, struct ts_error *err);

#endif
