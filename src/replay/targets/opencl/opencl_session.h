/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the target opencl share: recorded objects as they are here, commands made ready
 * to be given, and what comes back of them.
 *
 *	target_opencl.c           the target's struct; a run from first to last command
 *	opencl_api.c       the loader's functions
 *	opencl_device.c    which device takes the place of which
 *	opencl_source.c    source and options that may be compiled
 *	opencl_modules.c   programs and kernels
 *	opencl_replay_objects.c   contexts, queues, user events
 *	opencl_memory.c    memory, views of it, its content at the beginning
 *	opencl_order.c     what each command waits for, and when it can end
 *	opencl_steps.c     everything a command needs, made ready before the clock starts
 *	opencl_commands.c  one command given to the driver
 *	opencl_waits.c    waiting for commands, and their times
 *	opencl_content.c   memory that is compared, on its way out
 *
 * One thread. Places are positions in plan->order; commands and objects are indices of the stream.
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
 * A recorded object, here. Which member holds follows from its kind; those that no command needs
 * are zero.
 */
struct ts_opencl_object {
	bool is_needed;
	union {
		uint32_t device; /* index of session->devices; TS_REPLAY_NONE: not chosen */
		struct {
			cl_context handle;
			cl_command_queue queue; /* our own, in order, on its first device */
		} context;
		struct {
			cl_command_queue handle;
			uint32_t unflushed; /* commands given since it was last flushed */
			uint32_t pending;   /* since it was last finished */
			uint32_t gate;      /* the highest of these */
		} queue;
		cl_program module;
		struct {
			cl_kernel handle;
			const struct ts_opencl_step *last; /* whose arguments are set */
			uint32_t epoch;                    /* when that was */
		} function;
		struct {
			cl_mem handle;
			char *svm;                    /* instead of a handle */
			struct ts_opencl_view *views; /* of it */
		} memory;
		cl_event event; /* user event */
	};
};

/* A file of --replace-kernel, built in place of a module. */
struct ts_opencl_replaced {
	uint32_t module;
	const struct ts_replay_replacement *by;
	cl_program handle;
};

/* Memory as an argument sees it; a sub-buffer unless it is all of its root. */
struct ts_opencl_view {
	uint32_t memory;
	uint64_t offset, bytes;
	cl_mem handle;
	struct ts_opencl_view *next;    /* that begins at the same byte */
	struct ts_opencl_view *sibling; /* of the same memory */
};

struct ts_opencl_arg {
	enum ts_replay_arg_kind kind;
	size_t size;
	const void *value; /* BYTES: the bytes; SVM: the address; MEMORY: of the handle, or NULL */
};

/* Bytes that come back of a run: what a command reads, or a range that is copied out behind it. */
struct ts_opencl_output {
	uint32_t position;
	struct ts_replay_range range; /* memory TS_REPLAY_NONE: what the command itself reads */
	uint32_t capture;             /* who wants it; TS_REPLAY_NONE: nobody */
	uint64_t at;                  /* in the staging memory */
	uint32_t after; /* so many outputs must have been handed over before it may be written */
	/* Of a run. */
	cl_event event;
	char *data;
	bool is_own; /* data is of malloc(), since staging was full */
};

/* A command made ready. */
struct ts_opencl_step {
	const struct ts_replay_command_info *command;
	uint32_t gate; /* 1 + place of the last user event that must be set before it can end; 0:
			  none */
	uint32_t last_use;     /* the last place that waits for it */
	const uint32_t *waits; /* places: commands, or where a user event will be set */
	uint32_t wait_count;
	uint32_t first_output, output_count;
	const void *host; /* bytes from the host; NULL with a blob: not staged, read when needed */
	const struct ts_opencl_arg *args;
	void **pointers; /* memory that a kernel reaches without an argument */
	uint32_t pointer_count;
	bool is_marker; /* only its order is needed */
	/* Of a run. */
	bool is_harvested;
	int64_t given;  /* when the call that gave it returned; the host's ns */
	cl_event event; /* the command's own */
	cl_event
		waitable; /* what others wait for: the same, or that of the last output behind it */
};

struct ts_replay_session {
	struct ts_replay *replay;
	const struct ts_replay_stream *stream;
	const struct ts_replay_plan *plan;
	struct ts_opencl_api api;
	struct ts_arena arena;
	char text[256]; /* devices, in words */

	struct ts_opencl_device *devices; /* all of this machine */
	uint32_t device_count;
	struct ts_opencl_object *objects; /* as those of the stream */
	uint32_t *queues;                 /* those that are needed */
	uint32_t queue_count;
	struct ts_opencl_replaced *replaced;
	size_t replaced_count, replaced_capacity;
	struct ts_pairmap views; /* (memory, offset): address of a view there */
	bool is_lazy;            /* there is too much memory to have all of it at once */
	uint32_t epoch;          /* counts memory that was made */

	uint32_t *positions; /* of each command of the stream; TS_REPLAY_NONE: left out */
	struct ts_opencl_step *steps;
	cl_event *list;       /* room for the longest list of waits, and one more */
	struct ts_map staged; /* blob id -> address */
	uint64_t staged_bytes;
	bool expects_errors; /* a user event is set to one: what waits for it will not run */

	struct ts_opencl_output *outputs;
	uint32_t output_count;
	char *staging; /* outputs on their way */
	uint64_t staging_bytes;
	/* Of a run. */
	struct ts_replay_outcome *outcome;
	uint32_t delivered; /* outputs that were handed over */
	uint32_t oldest;    /* the first step that is not harvested */
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

/* Is given to a queue, so that it has an event. */
static inline bool ts_opencl_has_event(const struct ts_opencl_step *step)
{
	return step->command->queue != TS_REPLAY_NONE &&
	       (step->is_marker || (step->command->kind >= TS_COMMAND_LAUNCH &&
				    step->command->kind != TS_COMMAND_SYNC));
}

/* A name of the device that a queue or a context is on, for messages. */
const char *ts_opencl_device_name(const struct ts_replay_session *session, uint32_t object);

/* The error of a call: "kernel 'saxpy', command 17: CL_INVALID_VALUE on 'pthread'". */
int ts_opencl_fail_command(const struct ts_replay_session *session, uint32_t position, cl_int code,
			   struct ts_error *err);
/* "memory 7: CL_OUT_OF_RESOURCES on 'pthread'": of an object. */
int ts_opencl_fail_object(const struct ts_replay_session *session, uint32_t object, cl_int code,
			  struct ts_error *err);

/* opencl_device.c: finds all devices and gives one to each recorded one. */
int ts_opencl_choose_devices(struct ts_replay_session *session, struct ts_error *err);
/*
 * The devices of a context, each once; returns their number. `ret_devices` has room for all of the
 * machine.
 */
uint32_t ts_opencl_context_devices(const struct ts_replay_session *session, uint32_t context,
				   cl_device_id *ret_devices);

/* opencl_modules.c: all functions that are needed, with their modules. */
int ts_opencl_make_functions(struct ts_replay_session *session, struct ts_error *err);
void ts_opencl_free_functions(struct ts_replay_session *session);

/* opencl_replay_objects.c */
int ts_opencl_make_objects(struct ts_replay_session *session, struct ts_error *err);
void ts_opencl_free_objects(struct ts_replay_session *session);
/* Memory, arguments and user events as they were at the beginning. */
int ts_opencl_restore(struct ts_replay_session *session, struct ts_error *err);
/* After a run: user events go; what still waits for one (after a failure) is let go first. */
void ts_opencl_drop_user_events(struct ts_replay_session *session);

/* opencl_memory.c */
int ts_opencl_make_memory(struct ts_replay_session *session, uint32_t memory, struct ts_error *err);
void ts_opencl_free_memory(struct ts_replay_session *session, uint32_t memory);
/* A view of root memory, made once. */
int ts_opencl_make_view(struct ts_replay_session *session, uint32_t memory, uint64_t offset,
			uint64_t bytes, struct ts_opencl_view **ret_view, struct ts_error *err);
/*
 * Is all memory that is needed more than a device has? Tests set the limit; 0: half of the
 * device's.
 */
bool ts_opencl_is_too_much(const struct ts_replay_session *session);
extern uint64_t ts_opencl_memory_limit;
/* Its content as it was at the beginning; given to the context's own queue. */
int ts_opencl_restore_memory(struct ts_replay_session *session, uint32_t memory,
			     struct ts_error *err);
/* alloc and free, of memory that does not live all the time. */
int ts_opencl_begin_life(struct ts_replay_session *session, uint32_t position,
			 struct ts_error *err);
void ts_opencl_end_life(struct ts_replay_session *session, uint32_t position);

/* opencl_order.c: places, waits and gates of all steps. */
int ts_opencl_make_order(struct ts_replay_session *session, struct ts_error *err);

/* opencl_steps.c */
/* Marks the objects that the plan needs; what cannot be replayed is an error. */
int ts_opencl_mark_needed(struct ts_replay_session *session, struct ts_error *err);
/* Arguments, bytes from the host, views. */
int ts_opencl_make_steps(struct ts_replay_session *session, struct ts_error *err);
/*
 * The blob's bytes, kept until the session ends; *ret_data NULL where there are too many: to be
 * read when they are needed.
 */
int ts_opencl_stage(struct ts_replay_session *session, const struct ts_replay_blob_ref *blob,
		    const void **ret_data, struct ts_error *err);

/* opencl_commands.c: gives one command. */
int ts_opencl_submit(struct ts_replay_session *session, uint32_t position, struct ts_error *err);
/*
 * Puts bytes into memory, or gets them, through a queue; SVM as well. It waits for `count` events
 * of session->list; `event` may be NULL.
 */
cl_int ts_opencl_write(struct ts_replay_session *session, cl_command_queue queue,
		       const struct ts_replay_range *range, const void *from, bool blocking,
		       uint32_t count, cl_event *event);
cl_int ts_opencl_read(struct ts_replay_session *session, cl_command_queue queue,
		      const struct ts_replay_range *range, void *to, bool blocking, uint32_t count,
		      cl_event *event);

/* opencl_waits.c */
/* The events that a step waits for, into session->list; returns their number. */
uint32_t ts_opencl_gather_waits(struct ts_replay_session *session, uint32_t position);
/* The host waits for a step; not for one that cannot end before `now`. */
int ts_opencl_wait(struct ts_replay_session *session, uint32_t position, uint32_t now,
		   struct ts_error *err);
/* The same for all steps of a queue before `now`; TS_REPLAY_NONE: of all queues. */
int ts_opencl_wait_queue(struct ts_replay_session *session, uint32_t queue, uint32_t now,
			 struct ts_error *err);
int ts_opencl_flush(struct ts_replay_session *session, struct ts_error *err);
/* A step was given to its queue: it counts, and now and then the queue is flushed. */
int ts_opencl_submitted(struct ts_replay_session *session, uint32_t position, struct ts_error *err);
/*
 * Takes the times of steps from the oldest on that are complete (the caller knows that `all` are),
 * and lets their events go.
 */
int ts_opencl_harvest(struct ts_replay_session *session, uint32_t end, bool all,
		      struct ts_error *err);
/* Device times into the host's clock. */
void ts_opencl_align_times(struct ts_replay_session *session);
/* After a run, however it ended: lets all events go. */
void ts_opencl_drop_events(struct ts_replay_session *session);

/* opencl_content.c */
int ts_opencl_make_outputs(struct ts_replay_session *session, struct ts_error *err);
void ts_opencl_free_outputs(struct ts_replay_session *session);
/* After a run, however it ended: lets go of what was not handed over. */
void ts_opencl_drop_outputs(struct ts_replay_session *session);
/* Where an output's bytes go to; hands older ones over where room is needed. */
int ts_opencl_output_reserve(struct ts_replay_session *session, struct ts_opencl_output *output,
			     struct ts_error *err);
/* Behind a command that was given: copies out what is to be compared. */
int ts_opencl_copy_outputs(struct ts_replay_session *session, uint32_t position,
			   struct ts_error *err);
/* Hands over outputs below `until`, waiting for each. */
int ts_opencl_deliver(struct ts_replay_session *session, uint32_t until, uint32_t now,
		      struct ts_error *err);
/* What is wanted of memory at the end, when all commands are complete. */
int ts_opencl_final_content(struct ts_replay_session *session, struct ts_error *err);

#endif
