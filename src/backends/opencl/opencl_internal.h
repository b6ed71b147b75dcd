/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the OpenCL backend share (docs/replay.md, section 3). The backend runs inside
 * observed programs: it uses libc and the public headers only, and never prints or aborts. OpenCL
 * is called only through `ocl.next`, the rest of the loader's chain.
 *
 *	opencl_layer.c      how the layer is loaded and stopped; the table of hooks
 *	opencl_calls*.c     a hook per function: times it, forwards it, informs the files below
 *	                    (opencl_calls.h, opencl_calls.def)
 *	opencl_objects.c    live handles: kind, context, device
 *	opencl_devices.c    descriptions of devices and platforms
 *	opencl_profile.c    pending commands and their device times
 *	opencl_helper.c     the thread that collects them while the program does something else
 *	opencl_events.c     events that the program holds: their commands, and our references
 *	opencl_clock.c      the device clock relative to the host clock
 *	capture_*.c         the command stream: everything for a replay (capture_stream.h)
 *
 * Locks, in the order in which they are taken: the gate (shared by each call that matters to the
 * stream; exclusive for a window that opens or closes), a queue's lock (across the driver's call,
 * in replayable recordings), a queue's `looking` (trylock only), the locks of pending commands,
 * events and objects, then the channel's lock (ts_replay_lock()). Only capture_*.c takes the gate
 * and the channel. Of these locks, only the gate, a queue's lock and `looking` are held while the
 * driver is called. If the driver calls back (event callbacks, build callbacks) on a thread that is
 * inside a hook, that thread does not take the gate twice and does not wait for a queue's lock:
 * `ocl_depth` counts.
 */
#ifndef TS_BACKENDS_OPENCL_OPENCL_INTERNAL_H
#define TS_BACKENDS_OPENCL_OPENCL_INTERNAL_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/accelerator.h>
#include <tracesmith/backend.h>
#include <tracesmith/replay.h>

extern const struct ts_backend ts_opencl_backend;

/* ---- the layer ---- */

struct ocl {
	cl_icd_dispatch next; /* what comes behind us; entries may be NULL */
	uint32_t active;      /* hooks are in the way of calls; 0: everything passes */
	bool replayable;      /* ts_replay_settings()->mode, for hooks to ask */
	bool by_preload;
};
extern struct ocl ocl;

/* ---- live handles ---- */

enum ocl_kind {
	OCL_DEVICE,
	OCL_CONTEXT,
	OCL_QUEUE,
	OCL_MEMORY,
	OCL_PROGRAM,
	OCL_KERNEL,
	OCL_EVENT, /* user events, and those that programs hold inside replayable windows */
	OCL_SAMPLER,
	OCL_SVM, /* its handle is the address */
	OCL_KINDS
};

struct ocl_stream; /* what stream*.c knows of an object */
struct ocl_pending;
struct ocl_clock;
struct ocl_description;

/*
 * One of them. Its memory is never given back, only used again for another of its kind: when the
 * program has released it, and nobody has a count of `users` (ocl_hold()). A program that releases
 * what another of its threads uses is wrong anyway, so hooks need no count. Members that do not
 * change after it is made may be read without a lock.
 */
struct ocl_object {
	enum ocl_kind kind;
	void *handle;
	uint32_t number;     /* of its kind, from 0 for devices, else from 1: what traces call it */
	uint32_t references; /* of the program, as far as we saw them */
	uint32_t users;
	bool is_gone;                        /* released; no longer found */
	struct ocl_object *next;             /* of its bucket */
	struct ocl_object *before, *behind;  /* of its kind, in the order in which they were made */
	struct ocl_object *context, *device; /* where it has one; held */
	struct ocl_stream *stream;           /* NULL: not replayable, or not looked at yet */
	/* queue */
	pthread_mutex_t lock;         /* across the driver's call; may be taken twice by a thread */
	pthread_mutex_t looking;      /* somebody looks at its pending commands */
	pthread_mutex_t pending_lock; /* of the four below `out_of_order` */
	cl_command_queue_properties properties; /* as the program asked for them */
	bool has_list;                          /* made by the call that takes a list */
	cl_queue_properties *property_list;     /* the program's, or NULL */
	uint32_t property_count;                /* words of it, with the ending 0 */
	bool out_of_order;
	struct ocl_pending *first, *last; /* given, not yet looked at; in order */
	struct ocl_pending *spare;        /* to be used again */
	uint32_t pending_count, since_look, look_every;
	struct ocl_object *next_profiled; /* of opencl_helper.c */
	bool is_profiled;                 /* in that list */
	bool has_times;                   /* the driver took it with profiling */
	/* kernel */
	struct ts_emit_site *site; /* with its name; never freed */
	/* memory */
	size_t bytes;
	/* device */
	struct ocl_clock *clock; /* profiling clock */
	struct ocl_description *description;
};

struct ocl_object *ocl_find(enum ocl_kind kind, const void *handle); /* NULL: not known */
struct ocl_object *ocl_add(enum ocl_kind kind, void *handle); /* references 1; NULL: no memory */
/* The same, of a context, which it holds. */
struct ocl_object *ocl_add_in(cl_context context, enum ocl_kind kind, void *handle);
void ocl_retain(enum ocl_kind kind, void *handle);
/*
 * Before the driver's release: true where this was the last reference; then stream_gone() was told,
 * and it is no longer found.
 */
bool ocl_release(enum ocl_kind kind, void *handle);
/* Calls back for each live object of a kind, under the objects' lock; for windows that open. */
void ocl_each(enum ocl_kind kind, void (*visit)(struct ocl_object *object, void *context),
	      void *context);
void ocl_hold(struct ocl_object *object); /* NULL: nothing, as below */
void ocl_drop(struct ocl_object *object);
/* The site of a kernel's name, the same for all kernels of that name; NULL: no memory. */
struct ts_emit_site *ocl_kernel_site(const char *text);
/* In a forked child, whose locks may have been held by threads that are not there. */
void ocl_objects_forked(void);

/* The device as traces know it; described when first seen. NULL: no memory. */
struct ocl_object *ocl_device(cl_device_id device);
/* Says once how OpenCL was found, and with which platforms. */
void ocl_tell_platforms(void);
/* Of a queue, ahead of its first command. */
void ocl_tell_queue(const struct ocl_object *queue);
/* In a forked child: its trace does not know them yet. */
void ocl_tell_again(void);

/* ---- a call ---- */

/* On the stack of each hook; begun and ended by the functions of opencl_calls.h. */
struct ocl_call {
	struct ts_emit_site *site;
	uint64_t start;       /* ts_now() */
	uint64_t correlation; /* 0: none */
};

/* ---- a command on its way ---- */

enum ocl_verb {
	OCL_LAUNCH, /* clEnqueueNDRangeKernel, clEnqueueTask */
	OCL_READ,
	OCL_WRITE,
	OCL_COPY,
	OCL_FILL,
	OCL_READ_RECT,
	OCL_WRITE_RECT,
	OCL_COPY_RECT,
	OCL_MAP,
	OCL_UNMAP,
	OCL_MARKER, /* also clEnqueueMarker, clEnqueueWaitForEvents */
	OCL_BARRIER,
	OCL_MIGRATE,
	OCL_SVM_COPY,
	OCL_SVM_FILL,
	OCL_SVM_MAP,
	OCL_SVM_UNMAP,
	OCL_SVM_FREE,
	OCL_SVM_MIGRATE,
	OCL_NATIVE,
	OCL_IMAGE, /* anything with images, pipes, GL ...: never replayable */
	OCL_VERBS
};

struct ocl_rect {
	const size_t *buffer_origin, *host_origin,
		*region; /* copy: source's origin is host_origin */
	size_t buffer_row, buffer_slice, host_row, host_slice;
};

/* What a hook knows of the command that it passes on. Members that its verb does not have are 0. */
struct ocl_command {
	struct ocl_call *call; /* its own, below */
	struct ocl_call own_call;
	enum ocl_verb verb;
	bool is_locked;   /* the queue's lock is ours */
	bool is_deferred; /* blocking, but passed on as if it were not: see ocl_blocks() */
	struct ts_emit_site *op_site; /* name and category of the gpu_op */
	uint8_t kind, copy_kind;      /* of the gpu_op */
	struct ocl_object *queue;     /* NULL: a handle that we do not know */
	cl_uint wait_count;
	const cl_event *waits;
	cl_event *program_event; /* where the program wants its event; NULL: it wants none */
	cl_event event;          /* what the driver gave: the program's or ours; NULL: none */
	cl_event *event_place;   /* for the driver's call: where it puts the event, or NULL */
	cl_bool blocking;
	cl_mem memory; /* read, write, fill, map, unmap: the buffer; copy: the destination */
	cl_mem source; /* copy */
	size_t offset, source_offset, bytes;
	void *host; /* read: destination; map: what the driver gave; SVM: destination */
	const void *host_source; /* write: source; fill: pattern; SVM: source or pattern */
	size_t pattern_bytes;
	cl_map_flags map_flags;
	struct ocl_rect rect;
	/* launch */
	struct ocl_object *kernel;
	cl_uint dimensions;
	const size_t *global_offset, *global, *local;
	/* SVM free: pointers */
	cl_uint pointer_count;
	void *const *pointers;
	bool waits_for_all; /* marker, barrier: no list, so for all before */
	uint64_t sequence;  /* set by the stream */
	void *stream;       /* of the stream, between its before and after */
};

/* ---- opencl_profile.c ---- */

/*
 * Behind a successful enqueue: takes the event over (or a reference of its own where the program
 * has it, too). `before` and `after`: ts_now() around the driver's call. `op` has everything but
 * times; its waits are made from the command's. True where the queue should be looked at.
 */
bool ocl_profile_given(const struct ocl_command *command, const struct ts_gpu_op *op,
		       uint64_t before, uint64_t after);
/* Emits what is complete: of a queue, or (NULL) of all. Not with a queue's lock held. */
void ocl_profile_look(struct ocl_object *queue);
/* The same when that is due (above): learns how dear it is. */
void ocl_profile_look_between(struct ocl_object *queue);
/* A queue was made: its commands are to be looked at. */
void ocl_profile_queue(struct ocl_object *queue);
/* In a forked child: what is pending there is the parent's. */
void ocl_profile_forked(struct ocl_object *queue);

/* ---- opencl_helper.c ---- */

/*
 * A queue is to be looked at now and then, from now on until it is gone and nothing of it is
 * pending.
 */
void ocl_helper_add(struct ocl_object *queue);
/* Something is pending again. */
void ocl_helper_wake(void);
/* Looks at all queues. */
void ocl_helper_look(void);
/* Ends all looking: the driver is not asked any more. */
void ocl_helper_stop(void);
void ocl_helper_forked(void);

/* ---- opencl_events.c: events that the program holds ---- */

/* A command's event that the program was given. `queue` may be NULL. */
void ocl_event_add(cl_event event, uint64_t correlation, struct ocl_object *queue, bool we_hold);
void ocl_event_retain(cl_event event);
/* True where this was the program's last reference: it is not known any more. */
bool ocl_event_release(cl_event event);
/* We do not hold it any more. */
void ocl_event_unhold(cl_event event);
/*
 * The correlation of the command whose event this is; 0: not known (any more). *ret_queue (or
 * NULL): its queue, or NULL.
 */
uint64_t ocl_event_find(cl_event event, struct ocl_object **ret_queue);
/* References to an event that are ours, to be taken off what the program sees. */
cl_uint ocl_event_holds(cl_event event);
void ocl_events_forked(void);

/* ---- opencl_clock.c ---- */

/*
 * Ahead of a device's first queue: ties its clock to ours with commands of our own, in a queue of
 * our own.
 */
void ocl_clock_start(struct ocl_object *device, cl_context context);
/* A command's QUEUED was `queued` somewhere between `before` and `after`. */
void ocl_clock_bracket(struct ocl_object *device, int64_t queued, uint64_t before, uint64_t after);
/* Ahead of commands: tells how the clock stands, if it is time for that. */
void ocl_clock_tell(struct ocl_object *device);
/* What the device's clock showed at that ts_now(), as far as we know; TS_UNKNOWN: nothing. */
int64_t ocl_clock_estimate(struct ocl_object *device, uint64_t at);
void ocl_clock_forked(struct ocl_object *device);

/* ---- opencl_layer.c ---- */

/* Has ocl_exiting() called at exit, ahead of what the driver has registered so far. */
void ocl_at_exit(void);
/* How many hooks this thread is inside of. */
extern __thread uint32_t ocl_depth __attribute__((tls_model("initial-exec")));

/*
 * For loaders without layers (opencl_preload.c): gives the hooks to be called in place of `next`,
 * which is copied; NULL where nothing is recorded, or a layer is in already.
 */
TS_EMIT_API const cl_icd_dispatch *ts_opencl_preload(const cl_icd_dispatch *next);

/* ---- what hooks tell the command stream; does nothing unless ocl.replayable ---- */
#include "backends/opencl/stream/capture_stream.h"

#endif
