/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an accelerator does, told by a backend inside the program (<tracesmith/backend.h>): calls
 * into its driver, commands that it ran, its queues, how its clock stands to the host's. They
 * become rows of api_call, gpu_op, stream and clock_sync. For events of a program itself use
 * <tracesmith/emit.h>.
 *
 * All may be called from any thread, cost some ten nanoseconds, take no lock and keep nothing of
 * what they are given, unless it says otherwise. While events are off (ts_enabled()) calls are not
 * stored. Commands are: whether one counts is to be asked when it is given, and it is told when it
 * is over, perhaps after its window.
 */
#ifndef TRACESMITH_ACCELERATOR_H
#define TRACESMITH_ACCELERATOR_H

#include <stdint.h>

#include <tracesmith/emit.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TS_UNKNOWN INT64_MIN /* a number or time that is not known */

/*
 * Who speaks: a function of the driver, or the name of a kernel. Made once and kept as long as the
 * process lives: its name goes to shared memory once, and each record then has a number in its
 * place. Texts are borrowed for ever.
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
 * A call into a driver, at its end. `start`: ts_now() at its begin. `correlation` joins it to the
 * commands that it caused (unique in the process; 0: none); `result`: what it returned.
 */
TS_EMIT_API void ts_accelerator_call(struct ts_emit_site *site, uint64_t start,
				     uint64_t correlation, int64_t result);

/*
 * The call stack of the calling thread, native frames and Python's as the recorder asked for: a
 * number that lasts as long as the process; 0: none was asked for, or there is no room. Some
 * hundred ns. Frames of libraries of ours at its inner end are left out.
 */
TS_EMIT_API uint32_t ts_accelerator_stack(void);
/*
 * Also while events are off, where there is an area: of what is made now and used in a window
 * later.
 */
TS_EMIT_API uint32_t ts_accelerator_stack_always(void);

/*
 * The same as ts_accelerator_call(), which takes a stack by itself where that is asked for; here
 * the caller has taken it, or wants none.
 */
struct ts_accelerator_call {
	uint32_t size;
	uint32_t stack;      /* of ts_accelerator_stack(); 0: none */
	uint64_t start, end; /* as of ts_now(); end 0: now */
	uint64_t correlation;
	int64_t result;
};
TS_EMIT_API void ts_accelerator_call_with(struct ts_emit_site *site,
					  const struct ts_accelerator_call *call);

/* Memory taken or given back. `site`: the allocator. */
#define TS_ALLOCATION_HOST 0xffffffu
struct ts_accelerator_allocation {
	uint32_t size;
	uint32_t device; /* TS_ALLOCATION_HOST: the host's memory */
	uint32_t stream; /* UINT32_MAX: none orders it */
	uint32_t context;
	bool is_free;
	uint32_t stack;
	uint64_t time; /* as of ts_now(); 0: now */
	uint64_t address;
	int64_t bytes;    /* TS_UNKNOWN where it is not known */
	int64_t total;    /* in use of that device after it */
	int64_t reserved; /* held by the allocator after it */
};
TS_EMIT_API void ts_accelerator_allocation(struct ts_emit_site *site,
					   const struct ts_accelerator_allocation *allocation);

#define TS_GPU_OP_WAITS 32

/* A command that has run. Times are ns of the device's clock; TS_UNKNOWN where there is none. */
struct ts_gpu_op {
	uint32_t size; /* of this struct, as the backend was compiled */
	uint8_t kind;  /* enum ts_gpu_op_kind of schema.h */
	uint8_t copy_kind;
	uint16_t wait_count; /* in `waits`; more are left out, and the row says so */
	uint32_t device;     /* as in struct ts_metrics_device */
	uint32_t stream;     /* number of its queue, as given to ts_accelerator_stream() */
	uint32_t context;
	uint64_t correlation;
	int64_t queued, submitted, start, end;
	uint32_t grid[3], block[3]; /* 0: not known */
	int64_t bytes;
	const uint64_t *waits; /* correlations of the commands that it was told to wait for */
	/* Backends built before these were there end above them. */
	uint32_t registers;    /* a thread; 0: unknown, and so is the next */
	uint32_t shared_bytes; /* a block */
	uint32_t graph;        /* 0: none */
	uint32_t
		stack; /* of ts_accelerator_stack(): of its own, beside that of its call; 0: none */
	uint64_t graph_node; /* 0: none */
};
TS_EMIT_API void ts_accelerator_op(struct ts_emit_site *site, const struct ts_gpu_op *op);

/* A queue, ahead of its first command. Also while events are off, as are the next three. */
struct ts_accelerator_queue {
	uint32_t size;
	uint32_t device, stream, context;
	int64_t priority; /* TS_UNKNOWN: none */
	const char *name; /* NULL: none */
	bool out_of_order;
};
TS_EMIT_API void ts_accelerator_stream(const struct ts_accelerator_queue *queue);

/*
 * The device's clock showed `device_ns` when ts_now() was `host`, within +-uncertainty_ns. Ahead of
 * its first command.
 */
TS_EMIT_API void ts_accelerator_clock(uint32_t device, uint64_t host, int64_t device_ns,
				      int64_t uncertainty_ns, const char *method);

/* So many of `what` are not in the trace, and why. Counts since the last time, not sums. */
TS_EMIT_API void ts_accelerator_lost(const char *what, uint64_t count, const char *reason);

/*
 * Code that runs on a device, as a row of object (kind module) with its bytes. False: nobody
 * records, or it could not be stored. Waits for the recorder, up to some seconds: for threads that
 * a backend has for itself.
 */
TS_EMIT_API bool ts_accelerator_module(const char *name, const void *image, uint64_t bytes);

/*
 * A fact about the process: a row of meta. `json` is a JSON value; one of 3,000 bytes or more is
 * not stored.
 */
TS_EMIT_API void ts_accelerator_fact(const char *key, const char *json);

/*
 * A value of what the recorder has set for this process (TRACESMITH_AGENT: key=value;key=value);
 * NULL: not there. Lasts as long as the process. Read it in start() of a backend.
 */
TS_EMIT_API const char *ts_accelerator_setting(const char *key);

/*
 * Opens or closes the window from inside, where the recorder asked for windows of this kind (the
 * setting "window" begins with `cause`: "nvtx" or "cuda-profiler-api"); else nothing happens. Those
 * of "nvtx" are counted: the first opens, the last closes. Not on the way of an event.
 */
TS_EMIT_API void ts_accelerator_window(const char *cause, bool open);

/* Tracks from here on are of ranges that begin and end on any thread; they are called so. */
#define TS_TRACK_RANGES (INT64_C(1) << 40)

/*
 * The TS_END() of a span that was begun on this thread while events were on, and ends after its
 * window.
 */
TS_EMIT_API void ts_accelerator_end(void);

/*
 * A device: ts_tracer_device(ts_tracer_process(), ...) of emit.h. ns that `ticks` of ts_now() last:
 */
TS_EMIT_API int64_t ts_ticks_ns(uint64_t ticks);

#ifdef __cplusplus
}
#endif

#endif
