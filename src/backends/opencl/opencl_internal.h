/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the OpenCL backend share (docs/replay.md, section 3). The backend runs inside
 * observed programs: it uses libc, base/local and the public headers only, and never prints or
 * aborts. OpenCL is called only through `ocl.next`, the rest of the loader's chain.
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
	cl_icd_dispatch next; /* the next functions in the chain; entries may be NULL */
	uint32_t active;      /* hooks do their work; 0: they only forward */
	bool replayable;      /* copy of ts_replay_settings()->mode for hooks */
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

struct ocl_stream; /* what capture_*.c knows of an object */
struct ocl_pending;
struct ocl_clock;
struct ocl_description;

/*
 * A live handle. Its memory is never freed, only reused for another object of its kind: when the
 * program has released it and `users` (ocl_hold()) is 0. Hooks need no count, because a program
 * that releases what another of its threads uses is wrong anyway. Members that do not change after
 * creation may be read without a lock.
 */
struct ocl_object {
	enum ocl_kind kind;
	void *handle;
	uint32_t number;     /* by kind, from 0 for devices, else from 1; its number in traces */
	uint32_t references; /* the program's, as far as we saw */
	uint32_t users;
	bool is_gone;                        /* released; lookups do not find it */
	struct ocl_object *next;             /* in its bucket */
	struct ocl_object *before, *behind;  /* by kind, in order of creation */
	struct ocl_object *context, *device; /* if it has one; held */
	struct ocl_stream *stream;           /* NULL: not replayable, or not captured yet */
	/* queue */
	pthread_mutex_t lock;         /* across the driver's call; recursive */
	pthread_mutex_t looking;      /* held while a thread collects its pending commands */
	pthread_mutex_t pending_lock; /* guards the four below `out_of_order` */
	cl_command_queue_properties properties; /* as the program requested */
	bool has_list;                          /* created by the call that takes a list */
	cl_queue_properties *property_list;     /* the program's, or NULL */
	uint32_t property_count;                /* words, including the final 0 */
	bool out_of_order;
	struct ocl_pending *first, *last; /* pending, in order */
	struct ocl_pending *spare;        /* for reuse */
	uint32_t pending_count, since_look, look_every;
	struct ocl_object *next_profiled; /* of opencl_helper.c */
	bool is_profiled;                 /* in that list */
	bool has_times;                   /* the driver accepted it with profiling */
	/* kernel */
	struct ts_emit_site *site; /* has its name; never freed */
	/* memory */
	size_t bytes;
	/* device */
	struct ocl_clock *clock; /* profiling clock */
	struct ocl_description *description;
};

struct ocl_object *ocl_find(enum ocl_kind kind, const void *handle); /* NULL: not known */
struct ocl_object *ocl_add(enum ocl_kind kind, void *handle); /* references 1; NULL: no memory */
/* The same; the object holds its context. */
struct ocl_object *ocl_add_in(cl_context context, enum ocl_kind kind, void *handle);
void ocl_retain(enum ocl_kind kind, void *handle);
/*
 * Call before the driver's release. True if this was the last reference: then stream_gone() was
 * called, and lookups do not find the object any more.
 */
bool ocl_release(enum ocl_kind kind, void *handle);
/* Calls back for each live object of a kind, under the objects' lock. For opening windows. */
void ocl_each(enum ocl_kind kind, void (*visit)(struct ocl_object *object, void *context),
	      void *context);
void ocl_hold(struct ocl_object *object); /* both ignore NULL */
void ocl_drop(struct ocl_object *object);
/* The call site of a kernel name, shared by all kernels of that name; NULL: no memory. */
struct ts_emit_site *ocl_kernel_site(const char *text);
/* In a forked child: locks may have been held by threads that do not exist there. */
void ocl_objects_forked(void);

/* The object of a device; described in the trace when first seen. NULL: no memory. */
struct ocl_object *ocl_device(cl_device_id device);
/* Emits, once, how the backend was loaded, and the platforms. */
void ocl_emit_platforms(void);
/* Describes a queue, before its first command. */
void ocl_emit_queue(const struct ocl_object *queue);
/* In a forked child: devices and platforms are to be described again. */
void ocl_emit_again(void);

/* ---- a call ---- */

/* On the stack of each hook; used by the functions of opencl_calls.h. */
struct ocl_call {
	struct ts_emit_site *site;
	uint64_t start;       /* ts_now() */
	uint64_t correlation; /* 0: none */
};

/* ---- a command ---- */

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
	OCL_READ_IMAGE,
	OCL_WRITE_IMAGE,
	OCL_COPY_IMAGE,
	OCL_IMAGE_TO_BUFFER,
	OCL_BUFFER_TO_IMAGE,
	OCL_FILL_IMAGE,
	OCL_MAP_IMAGE,
	OCL_OTHER, /* anything with GL, EGL, D3D ...: not replayable */
	OCL_VERBS
};

/* In bytes for buffers, in pixels for images. Pointers are the program's, and may be NULL. */
struct ocl_rect {
	const size_t *buffer_origin, *host_origin,
		*region; /* copies: host_origin is the source's */
	size_t buffer_row, buffer_slice, host_row, host_slice;
};

/* What a hook knows of the command that it forwards. Members that its verb does not use are 0. */
struct ocl_command {
	struct ocl_call *call; /* points to call_storage */
	struct ocl_call call_storage;
	enum ocl_verb verb;
	bool is_locked;   /* we hold the queue's lock */
	bool is_deferred; /* blocking, but forwarded as non-blocking: see ocl_blocks() */
	struct ts_emit_site *op_site; /* name and category of the gpu_op */
	uint8_t kind, copy_kind;      /* of the gpu_op */
	struct ocl_object *queue;     /* NULL: unknown handle */
	cl_uint wait_count;
	const cl_event *waits;
	cl_event *program_event; /* where the program wants its event; NULL: nowhere */
	cl_event event;          /* from the driver, for the program or us; NULL: none */
	cl_event *event_out;     /* argument for the driver: where to put the event, or NULL */
	cl_bool blocking;
	cl_mem memory; /* read, write, fill, map, unmap: the buffer; copy: the destination */
	cl_mem source; /* copy */
	size_t offset, source_offset, bytes;
	void *host;              /* read, SVM: destination; map: the driver's result */
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
	bool waits_for_all; /* marker, barrier: no list, so waits for all before */
	uint64_t sequence;  /* set by the stream */
	void *stream;       /* the stream's, from stream_before() to stream_after() */
};

/* ---- opencl_profile.c ---- */

/*
 * After a successful enqueue: takes over the event (or a reference of its own if the program has
 * it, too). `before` and `after`: ts_now() around the driver's call. `op` has everything but times;
 * its waits are made from the command's. True if the queue should be collected.
 */
bool ocl_profile_given(const struct ocl_command *command, const struct ts_gpu_op *op,
		       uint64_t before, uint64_t after);
/* Emits completed commands: of a queue, or (NULL) of all. Not with a queue's lock held. */
void ocl_profile_look(struct ocl_object *queue);
/* The same, when ocl_profile_given() says so: measures its cost. */
void ocl_profile_look_between(struct ocl_object *queue);
/* A queue was created: its commands are to be collected. */
void ocl_profile_queue(struct ocl_object *queue);
/* In a forked child: pending commands are the parent's. */
void ocl_profile_forked(struct ocl_object *queue);

/* ---- opencl_helper.c ---- */

/* Collects a queue periodically, until it is released and nothing of it is pending. */
void ocl_helper_add(struct ocl_object *queue);
/* A command is pending again. */
void ocl_helper_wake(void);
/* Collects all queues. */
void ocl_helper_look(void);
/* Stops collecting: the driver is not called any more. */
void ocl_helper_stop(void);
void ocl_helper_forked(void);

/* ---- opencl_events.c: events that the program holds ---- */

/* The program got the event of a command. `queue` may be NULL. */
void ocl_event_add(cl_event event, uint64_t correlation, struct ocl_object *queue, bool we_hold);
void ocl_event_retain(cl_event event);
/* True if this was the program's last reference: the event is forgotten. */
bool ocl_event_release(cl_event event);
/* We released our reference. */
void ocl_event_unhold(cl_event event);
/*
 * The correlation of the event's command; 0: not known (any more). *ret_queue (if not NULL): its
 * queue, or NULL.
 */
uint64_t ocl_event_find(cl_event event, struct ocl_object **ret_queue);
/* Our references to an event, to be subtracted from what the program sees. */
cl_uint ocl_event_holds(cl_event event);
void ocl_events_forked(void);

/* ---- opencl_clock.c ---- */

/*
 * Before the first queue of a device: relates its clock to ours, with commands in a private queue.
 */
void ocl_clock_start(struct ocl_object *device, cl_context context);
/* A command's QUEUED time is `queued`, and lies between `before` and `after`. */
void ocl_clock_bracket(struct ocl_object *device, int64_t queued, uint64_t before, uint64_t after);
/* Before commands: emits the clock's offset, if that is due. */
void ocl_clock_emit(struct ocl_object *device);
/* An estimate of the device clock at that ts_now(); TS_UNKNOWN: none. */
int64_t ocl_clock_estimate(struct ocl_object *device, uint64_t at);
void ocl_clock_forked(struct ocl_object *device);

/* ---- opencl_layer.c ---- */

/*
 * Registers our exit handler, which then runs before the handlers that the driver has registered so
 * far.
 */
void ocl_at_exit(void);
/* How many hooks this thread is inside. */
extern __thread uint32_t ocl_depth __attribute__((tls_model("initial-exec")));

/*
 * For loaders without layers (opencl_preload.c): returns the hooks to call instead of `next`, which
 * is copied; NULL if nothing is recorded or the layer is loaded already.
 */
TS_EMIT_API const cl_icd_dispatch *ts_opencl_preload(const cl_icd_dispatch *next);

/* ---- what hooks report to the command stream; only if ocl.replayable ---- */
#include "backends/opencl/stream/capture_stream.h"

#endif
