/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accelerator activity, reported by a backend inside the program (<tracesmith/backend.h>): driver
 * calls, executed commands, queues, and how the device clock relates to the host's. They become
 * rows of api_call, gpu_op, stream and clock_sync. For a program's own events use
 * <tracesmith/emit.h>.
 *
 * Unless stated otherwise, functions are thread-safe, cost tens of nanoseconds, take no lock and
 * keep no pointer they are given. While events are off (ts_enabled()) calls are not stored.
 * Commands are: check ts_enabled() when one is submitted, and report it when it has completed,
 * possibly after its window.
 */
#ifndef TRACESMITH_ACCELERATOR_H
#define TRACESMITH_ACCELERATOR_H

#include <stdint.h>

#include <tracesmith/emit.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TS_UNKNOWN INT64_MIN /* an unknown number or time */

/*
 * A driver function or a kernel name. Created once and kept for the life of the process: its name
 * goes to shared memory once, and each record refers to it by number. Strings are borrowed forever.
 */
#define TS_CALL_SITE(name, category)                      \
	{                                                 \
		0, name, category, NULL, 0, 7, 1, 3, 0, 0 \
	}
#define TS_ALLOCATION_SITE(name, category)                 \
	{                                                  \
		0, name, category, NULL, 0, 10, 0, 6, 0, 0 \
	}
#define TS_GPU_OP_SITE(name, category)                    \
	{                                                 \
		0, name, category, NULL, 0, 8, 0, 0, 0, 0 \
	}

/*
 * A driver call, reported at its end. `start`: ts_now() at its start. `correlation` joins it to the
 * commands it caused (unique in the process; 0: none); `result`: its return value.
 */
TS_EMIT_API void ts_accelerator_call(struct ts_emit_site *site, uint64_t start,
				     uint64_t correlation, int64_t result);

/*
 * The call stack of the calling thread, native and Python frames as the recorder requested: a
 * number valid for the life of the process; 0: not requested, or no space left. A few hundred ns.
 * Our own innermost frames are left out.
 */
TS_EMIT_API uint32_t ts_accelerator_stack(void);
/*
 * Works even while events are off, if there is an area: for objects created now and used in a later
 * window.
 */
TS_EMIT_API uint32_t ts_accelerator_stack_always(void);

/*
 * Like ts_accelerator_call(), which captures a stack itself if requested; here the caller has
 * captured it, or wants none.
 */
struct ts_accelerator_call {
	uint32_t size;
	uint32_t stack;      /* from ts_accelerator_stack(); 0: none */
	uint64_t start, end; /* from ts_now(); end 0: now */
	uint64_t correlation;
	int64_t result;
};
TS_EMIT_API void ts_accelerator_call_with(struct ts_emit_site *site,
					  const struct ts_accelerator_call *call);

/* An allocation or a free. `site`: the allocator. */
#define TS_ALLOCATION_HOST 0xffffffu
struct ts_accelerator_allocation {
	uint32_t size;
	uint32_t device; /* TS_ALLOCATION_HOST: host memory */
	uint32_t stream; /* UINT32_MAX: not ordered by a stream */
	uint32_t context;
	bool is_free;
	uint32_t stack;
	uint64_t time; /* from ts_now(); 0: now */
	uint64_t address;
	int64_t bytes;    /* TS_UNKNOWN if unknown */
	int64_t total;    /* in use on that device afterwards */
	int64_t reserved; /* held by the allocator afterwards */
};
TS_EMIT_API void ts_accelerator_allocation(struct ts_emit_site *site,
					   const struct ts_accelerator_allocation *allocation);

#define TS_GPU_OP_WAITS 32

/* A completed command. Times are ns of the device clock; TS_UNKNOWN if there are none. */
struct ts_gpu_op {
	uint32_t size; /* size of this struct, as the backend was compiled */
	uint8_t kind;  /* enum ts_gpu_op_kind of schema.h */
	uint8_t copy_kind;
	uint16_t wait_count; /* in `waits`; further ones are dropped, and the row says so */
	uint32_t device;     /* as in struct ts_metrics_device */
	uint32_t stream;     /* number of its queue, as passed to ts_accelerator_stream() */
	uint32_t context;
	uint64_t correlation;
	int64_t queued, submitted, start, end;
	uint32_t grid[3], block[3]; /* 0: unknown */
	int64_t bytes;
	const uint64_t *waits; /* correlations of the commands it waited for */
	/* Backends compiled before these existed end above. */
	uint32_t registers;    /* per thread; 0: unknown, as the next */
	uint32_t shared_bytes; /* per block */
	uint32_t graph;        /* 0: none */
	uint32_t stack; /* from ts_accelerator_stack(): its own, in addition to that of its call; 0:
			   none */
	uint64_t graph_node; /* 0: none */
};
TS_EMIT_API void ts_accelerator_op(struct ts_emit_site *site, const struct ts_gpu_op *op);

/* Announces a queue before its first command. Works while events are off, as do the next three. */
struct ts_accelerator_queue {
	uint32_t size;
	uint32_t device, stream, context;
	int64_t priority; /* TS_UNKNOWN: none */
	const char *name; /* NULL: none */
	bool out_of_order;
};
TS_EMIT_API void ts_accelerator_stream(const struct ts_accelerator_queue *queue);

/*
 * The device clock showed `device_ns` when ts_now() was `host`, within +-uncertainty_ns. Call
 * before its first command.
 */
TS_EMIT_API void ts_accelerator_clock(uint32_t device, uint64_t host, int64_t device_ns,
				      int64_t uncertainty_ns, const char *method);

/*
 * Reports that `count` of `what` are missing from the trace, and why. Counts since the last call,
 * not totals.
 */
TS_EMIT_API void ts_accelerator_lost(const char *what, uint64_t count, const char *reason);

/*
 * Device code, stored as a row of object (kind module) with its bytes. False: nobody records, or it
 * could not be stored. Waits for the recorder, up to some seconds: call it from a backend's own
 * threads.
 */
TS_EMIT_API bool ts_accelerator_module(const char *name, const void *image, uint64_t bytes);

/*
 * A fact about the process: a row of meta. `json` is a JSON value; values of 3,000 bytes or more
 * are not stored.
 */
TS_EMIT_API void ts_accelerator_fact(const char *key, const char *json);

/*
 * A setting of the recorder for this process (TRACESMITH_AGENT: key=value;key=value); NULL: not
 * set. Valid for the life of the process. Read it in start() of a backend.
 */
TS_EMIT_API const char *ts_accelerator_setting(const char *key);

/*
 * Opens or closes the window from inside, where the recorder asked for windows of this kind: the
 * setting "window" is `cause`, or `cause` and a colon with more, as in "nvtx:step" (struct
 * ts_backend_window). Else nothing happens. Windows with a colon are counted: the first opens, the
 * last closes. Slow; not for each event.
 */
TS_EMIT_API void ts_accelerator_window(const char *cause, bool open);

/*
 * Tracks from this number on hold ranges that begin and end on any thread, and are labelled
 * "ranges N".
 */
#define TS_TRACK_RANGES (INT64_C(1) << 40)

/* TS_END() for a span that began on this thread while events were on, and ends after its window. */
TS_EMIT_API void ts_accelerator_end(void);

/* Converts a difference of ts_now() values to ns. (Devices: ts_tracer_device() of emit.h.) */
TS_EMIT_API int64_t ts_ticks_ns(uint64_t ticks);

#ifdef __cplusplus
}
#endif

#endif
