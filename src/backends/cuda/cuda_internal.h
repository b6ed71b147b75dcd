/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interfaces between the files of libtracesmith-backend-cuda.so (docs/cuda.md). The
 * library runs inside observed programs: it uses libc and the agent's public headers only, no CUDA
 * headers. Our own calls into the driver or CUPTI are made with `cuda_thread.is_ours` set, and are
 * not recorded.
 */
#ifndef TS_BACKENDS_CUDA_CUDA_INTERNAL_H
#define TS_BACKENDS_CUDA_CUDA_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/accelerator.h>
#include <tracesmith/backend.h>

/* Shared by a wrapper and the CUPTI callbacks that run on its thread meanwhile. */
struct cuda_thread {
	uint32_t depth;       /* inside a recorded wrapper */
	uint32_t correlation; /* CUPTI's id of the current call; 0: not known */
	uint32_t stack;       /* of the current call, once taken */
	uint32_t is_ours;     /* > 0: our own call */
	uint64_t node;        /* id of the graph node that the call created; 0: none */
	void *caller;         /* of the wrapper; only while replaying */
};
extern __thread struct cuda_thread cuda_thread __attribute__((tls_model("initial-exec")));

/* ---- cuda_backend.c: start and stop ---- */

/* Looked up by the agent. */
extern const struct ts_backend ts_backend;

/*
 * The recorder requested this backend, and the process may use CUPTI (its parent had not
 * initialized CUDA).
 */
bool cuda_is_wanted(void);
bool cuda_is_forked(void);

/* ---- cuda_late.c ---- */

/*
 * If this library was not preloaded: begins when CUDA is initialized, which may be later, on a
 * thread that waits for it.
 */
void cuda_late_begin(void);
/*
 * For the Python package: whether that thread may run. In a process with threads, os.fork() warns,
 * so it waits until a module is imported that may use CUDA.
 */
void ts_cuda_await(int now);
void cuda_late_forked(void);
bool cuda_is_late(void);

/* ---- driver functions: cuda_driver.c, cuda_calls.c, cuda_symbols.c ---- */

/* The real driver function of this exported name, never a wrapper; NULL: there is none. */
void *cuda_driver(const char *name);

/* The real dlsym(), which does not return wrappers. RTLD_NEXT: after this library. */
void *cuda_symbol(void *handle, const char *name);

/*
 * Called by the helper every few seconds: emits how often functions without a wrapper were called,
 * if that has changed.
 */
void cuda_stubs_emit(void);

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
	CUDA_COUNTED, /* not recorded: it has a wrapper only for `record --replayable` */
	CUDA_CLASS_COUNT
};

/* The call site of a wrapped function, by CUPTI's callback number; NULL: there is none. Slow. */
struct ts_emit_site *cuda_call_site(uint32_t number);

/* A call that no wrapper has seen, by CUPTI's number: an open replayable window fails. */
void cuda_call_bypassed(uint32_t number);

/* ---- device recording: cupti/ ---- */

/*
 * Called when cuInit has returned 0, on its thread: loads CUPTI and subscribes. Later calls do
 * nothing.
 */
void cuda_device_begin(void);
/* Emits again, for another recording, whether device activity is recorded. */
void cuda_device_describe(void);
/* Clocks and streams are emitted again, for another recording. Called on any thread. */
void cuda_contexts_again(void);

/*
 * Libraries that are bound to the real CUPTI call our functions of its names from now on. Called
 * again, it looks only if libraries were loaded since.
 */
void cuda_redirect_imports(void);
/* So many libraries have been loaded so far. */
unsigned long long cuda_libraries_loaded(void);

/* A detached thread that gets none of the program's signals. Returns 0 or an errno value. */
int cuda_start_thread(pthread_t *ret_thread, void *(*function)(void *));

/*
 * Called before a call that submits device work, while events are recorded: when this returns,
 * activity kinds are enabled. Cheap.
 */
void cuda_device_prepare(void);

/*
 * Called before a call that may destroy a context: flushes its completed records while that is
 * possible.
 */
void cuda_device_flush(void);

/* The program stops a recording: waits, for a moment, for the records of what it has launched. */
void cuda_device_catch_up(void);

/*
 * Then, when cuda_is_wanted() no longer holds: what is launched from now on is none of the next
 * recording.
 */
void cuda_device_pause(void);

/* A call with this correlation id has succeeded and was emitted. */
void cuda_device_given(uint32_t correlation);

/* A captured call created this node, with this stack. */
void cuda_device_captured(uint64_t node, uint32_t stack);

/* The byte count of the collective that this correlation id launched. */
void cuda_device_collective(uint32_t correlation, int64_t bytes);

/* At exit, while the driver responds: flushes CUPTI a last time. */
void cuda_device_end(void);

/*
 * The numbers that gpu_op has for the driver's stream and context handles; UINT32_MAX: not known.
 */
uint32_t cuda_stream_number(void *stream, uint32_t *ret_context);

/* What another tool gets when it looks up a CUPTI function; NULL: the function itself. */
void *cuda_other_tool(const char *name);

/*
 * A CUPTI function that we use, by name, once CUPTI is loaded; NULL: there is no CUPTI, or it lacks
 * the function. Does not call the dynamic linker.
 */
void *cuda_cupti(const char *name);
/* The result of cuptiGetVersion(); 0: there is no CUPTI. */
uint32_t cuda_cupti_version(void);

/* ---- instruction samples: sampling/; called on any thread ---- */

bool cuda_sampling_is_wanted(void);
void cuda_sampling_context(void *context, bool is_created);
void cuda_sampling_module(void *context, uint32_t module, const void *cubin, size_t bytes,
			  bool is_loaded);
/* A launch has returned: notes its time. In serialized mode, reads its samples now. */
void cuda_sampling_launched(void);
/* Called by the helper every 50 ms, and at the end. */
void cuda_sampling_drain(bool is_last);

/* ---- nvtx/ ---- */

/* cuProfilerStart or cuProfilerStop has returned. */
void cuda_profiler_switched(bool is_on);

#endif
