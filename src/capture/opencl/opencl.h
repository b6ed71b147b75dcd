/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the OpenCL backend share (docs/replay.md, section 3). It runs inside observed programs: libc and the
 * public headers only; it never prints or aborts. OpenCL is reached through `ocl.next` alone, which is the rest of the loader.
 *
 *	layer.c      how it gets in; the table of hooks; functions asked for by name
 *	calls*.c     a hook a function: times it, passes it on, tells the others below
 *	objects.c    live handles: what they are, in which queue, of which device
 *	profile.c    commands that have been given and not yet looked at; device times; the helper thread
 *	clock.c      the device's clock against the host's
 *	stream*.c    the command stream: everything for a replay (stream.h)
 *
 * Locks, in the order in which they are taken: gate (shared by each call; alone by a window that opens or closes), a queue's
 * lock (across the driver's call), objects' lock, then the channel's lock (ts_replay_lock()). Only stream*.c takes the gate and the channel.
 * No lock but the gate and the queue's is held while the driver is called. A thread inside a hook that the driver calls back from (event
 * callbacks, build callbacks) does not take the gate twice: `ocl_depth` counts.
 */
#ifndef TS_CAPTURE_OPENCL_H
#define TS_CAPTURE_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 300
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

/*
 * One of them. Found by handle under the objects' lock; stays valid after that for whoever holds the gate or a count of
 * `users`, since it is freed only when both are gone. Members that do not change after it is made may be read without a lock.
 */
struct ocl_object {
	enum ocl_kind kind;
	void *handle;
	uint32_t number;     /* of its kind, from 0 for devices, else from 1: what traces call it */
	uint32_t references; /* of the program, as far as we saw them */
	uint32_t users;
	struct ocl_object *next;             /* of its bucket */
	struct ocl_object *context, *device; /* where it has one */
	struct ocl_stream *stream;           /* NULL: not replayable, or not looked at yet */
	/* queue */
	pthread_mutex_t lock;
	cl_command_queue_properties properties; /* as the program asked for them */
	cl_queue_properties *
		property_list; /* the program's, or NULL: made with the old call, or without a list */
	uint32_t property_count; /* words of it, with the ending 0 */
	bool out_of_order;
	struct ocl_pending *first, *last; /* given, not yet looked at; in order */
	uint32_t pending_count, since_look;
	/* kernel */
	struct ts_emit_site *site; /* with its name; never freed */
	/* memory */
	size_t bytes;
	/* device: profiling clock */
	struct ocl_clock *clock;
};

struct ocl_object *ocl_find(enum ocl_kind kind,
			    const void *handle);              /* takes the lock; NULL: not known */
struct ocl_object *ocl_add(enum ocl_kind kind, void *handle); /* references 1 */
void ocl_retain(enum ocl_kind kind, void *handle);
/* Before the driver's release: true where this was the last reference; then stream_gone() was told, and it is no longer found. */
bool ocl_release(enum ocl_kind kind, void *handle);
/* Calls back for each live object of a kind, under the objects' lock; for windows that open. */
void ocl_each(enum ocl_kind kind, void (*visit)(struct ocl_object *object, void *context),
	      void *context);

/* The device as traces know it; described when first seen. */
struct ocl_object *ocl_device(cl_device_id device);

/* ---- a call ---- */

/* On the stack of each hook. */
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
	struct ocl_call *call;
	enum ocl_verb verb;
	struct ocl_object *queue; /* NULL: a handle that we do not know */
	cl_uint wait_count;
	const cl_event *waits;
	cl_event *program_event; /* where the program wants its event; NULL: it wants none */
	cl_event event;          /* what the driver gave: the program's or ours */
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

/* ---- profile.c ---- */

/*
 * Behind a successful enqueue, with the queue's lock held: takes the event in (retains it where the program has it, too).
 * `before` and `after`: ts_now() around the driver's call. `op` has everything but times; its waits are made from the command's.
 */
void ocl_profile_given(const struct ocl_command *command, struct ts_emit_site *site,
		       const struct ts_gpu_op *op, uint64_t before, uint64_t after);
/* Looks at what is complete: of a queue, or (NULL) of all. Not with a queue's lock held. */
void ocl_profile_look(struct ocl_object *queue);
/* The correlation of the command whose event this is; 0: not known (any more). */
uint64_t ocl_profile_correlation(cl_event event);
/* References to an event that are ours, to be taken off what the program sees. */
cl_uint ocl_profile_holds(cl_event event);
void ocl_profile_stop(void);

/* ---- what hooks tell the command stream; does nothing unless ocl.replayable ---- */
#include "capture/opencl/stream.h"

#endif
