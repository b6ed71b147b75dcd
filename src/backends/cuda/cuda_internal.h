/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program does with CUDA (docs/cuda.md): the parts of libtracesmith-backend-cuda.so and what
 * they ask of each other. It runs inside observed programs: libc and the agent's public headers
 * only, nothing of CUDA's own. Calls of ours into driver or CUPTI are made with
 * `cuda_thread.is_ours` set, and nobody records them.
 */
#ifndef TS_BACKENDS_CUDA_CUDA_INTERNAL_H
#define TS_BACKENDS_CUDA_CUDA_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/accelerator.h>
#include <tracesmith/backend.h>

/* What a wrapper and what CUPTI calls on its thread meanwhile tell each other. */
struct cuda_thread {
	uint32_t depth;       /* inside a recorded wrapper */
	uint32_t correlation; /* CUPTI's, of the call in progress; 0: it has told none */
	uint32_t stack;       /* of the call in progress, once it was taken */
	uint32_t is_ours;     /* > 0: our own call */
	uint64_t node;        /* id of the graph node that the call has made; 0: none */
};
extern __thread struct cuda_thread cuda_thread __attribute__((tls_model("initial-exec")));

/* ---- cuda_backend.c: the backend, its beginning and end ---- */

/* What the agent finds in this library. */
extern const struct ts_backend ts_backend;

/*
 * The recorder wants this backend, and the process may use CUPTI (it did not inherit a CUDA that
 * its parent had begun).
 */
bool cuda_is_wanted(void);
bool cuda_is_forked(void);

/* ---- reach: cuda_driver.c, cuda_calls.c, cuda_symbols.c ---- */

/*
 * A function of the driver as it is, by its exported name; NULL: there is none. Never one of our
 * wrappers.
 */
void *cuda_driver(const char *name);

/*
 * A symbol as the dynamic linker has it: dlsym() past our own, which gives wrappers. With
 * RTLD_NEXT: behind this library.
 */
void *cuda_symbol(void *handle, const char *name);

/*
 * By the helper, every few seconds: how often functions without a wrapper were called, as a fact,
 * where that has changed.
 */
void cuda_stubs_tell(void);

enum cuda_class {
	CUDA_LAUNCH, /* kernels: the device does something */
	CUDA_COPY,
	CUDA_FILL,
	CUDA_GRAPH_LAUNCH,
	CUDA_HOST, /* host functions */
	CUDA_ALLOCATE,
	CUDA_FREE,
	CUDA_MAP, /* virtual memory management */
	CUDA_MODULE,
	CUDA_CONTEXT,
	CUDA_STREAM,
	CUDA_EVENT,
	CUDA_QUERY_STATE, /* polled: cuEventQuery, cuStreamQuery */
	CUDA_WAIT,        /* a stream waits */
	CUDA_CAPTURE,
	CUDA_GRAPH,
	CUDA_SYNC, /* the thread waits */
	CUDA_PROFILER,
	CUDA_OTHER,
	CUDA_CLASS_COUNT
};

/* The site of a wrapped function, by CUPTI's number; NULL: there is none. Slow. */
struct ts_emit_site *cuda_call_site(uint32_t number);

/* ---- the device side: cupti.c and its neighbours ---- */

/*
 * Once cuInit has returned 0, on its thread: loads CUPTI, subscribes. Does nothing the second time.
 */
void cuda_device_begin(void);

/*
 * Ahead of a call that makes the device do something, while events are wanted: kinds are enabled
 * when this returns. Cheap.
 */
void cuda_device_prepare(void);

/* Ahead of a call that may end a context: what is complete there is asked for while it can be. */
void cuda_device_flush(void);

/* The call has succeeded, with this correlation, and is stored. */
void cuda_device_given(uint32_t correlation);

/* A captured call has made this node, with that stack. */
void cuda_device_captured(uint64_t node, uint32_t stack);

/* A collective's bytes, of what the correlation launched. */
void cuda_device_collective(uint32_t correlation, int64_t bytes);

/* At exit, while the driver answers: what CUPTI has, once more. */
void cuda_device_end(void);

/*
 * Numbers of ours for a stream or context handle of the driver, as gpu_op has them; UINT32_MAX: not
 * known.
 */
uint32_t cuda_stream_number(void *stream, uint32_t *ret_context);

/*
 * What is given in place of a function of CUPTI that another tool asks for; NULL: the function
 * itself.
 */
void *cuda_foreign(const char *name);

/*
 * Functions of CUPTI by name, of those that we call, once begun; NULL: there is no CUPTI, or it has
 * none of that name. Asks nothing of the dynamic linker.
 */
void *cuda_cupti(const char *name);
/* As cuptiGetVersion() says; 0: there is none. */
uint32_t cuda_cupti_version(void);

/*
 * ---- instruction samples: pc_sampling.c and its neighbours; all on threads that CUPTI or the
 * helper chose ----
 */

bool cuda_sampling_is_wanted(void);
void cuda_sampling_context(void *context, uint32_t device, bool is_created);
void cuda_sampling_module(void *context, uint32_t module, const void *cubin, size_t bytes,
			  bool is_loaded);
/*
 * A launch has returned: what it does may be sampled later. In serialized mode its samples are
 * there, and are taken.
 */
void cuda_sampling_launched(void);
/* By the helper, every 50 ms; and at the end. */
void cuda_sampling_drain(bool is_last);

/* ---- nvtx.c ---- */

/* What a program calls a stream of its own. */
void cuda_stream_named(void *stream, const char *name);

/* cuProfilerStart and cuProfilerStop have returned. */
void cuda_profiler_switched(bool is_on);

#endif
