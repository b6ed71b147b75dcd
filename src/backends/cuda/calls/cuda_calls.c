/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a wrapper does around the real function: reads the clock, takes a stack and CUPTI's
 * correlation id, and emits the call.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "backends/cuda/calls/cuda_calls.h"

#define CUDA_SUCCESS 0
#define CUDA_ERROR_NOT_SUPPORTED 801
#define CAPTURE_STATUS_ACTIVE 1
#define STREAM_LEGACY 1u
#define STREAM_PER_THREAD 2u
/* Offset in CUlaunchConfig: seven 32-bit numbers precede the stream. */
#define CONFIG_STREAM 32

__thread struct cuda_thread cuda_thread __attribute__((tls_model("initial-exec")));
uint32_t cuda_captures;

/* The last call recorded on this thread: programs poll, and identical results are one row. */
static __thread const struct cuda_call *last_call __attribute__((tls_model("initial-exec")));
static __thread int last_result __attribute__((tls_model("initial-exec")));

/* ---- the real function ---- */

static int missing(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

void *cuda_counted(const struct cuda_call *call, void *address)
{
	void *stub = call->class == CUDA_COUNTED ? cuda_stub(call->name, address) : NULL;

	return stub ? stub : address;
}

/* If another preloaded library after ours replaces the function, too, it is called next. */
cuda_function cuda_call_find(struct cuda_call *call)
{
	int saved = errno;
	void *found = cuda_symbol(RTLD_NEXT, call->name);

	if (!found) {
		void *driver = cuda_driver_library(true);

		found = driver ? cuda_symbol(driver, call->name) : NULL;
		dlerror();
	}
	errno = saved;
	if (!found)
		return missing;
	found = cuda_counted(call, found);
	__atomic_store_n(&call->real, (cuda_function)found, __ATOMIC_RELEASE);
	return (cuda_function)found;
}

/* ---- captures ---- */

uintptr_t cuda_call_stream(const struct cuda_call *call, const uintptr_t *args)
{
	uintptr_t stream = 0;

	if (call->stream == CUDA_STREAM_IN_CONFIG) {
		if (args[0])
			memcpy(&stream, (const char *)args[0] + CONFIG_STREAM, sizeof(stream));
	} else if (call->stream >= 0) {
		stream = args[call->stream];
	}
	if (!stream && call->stream >= 0) {
		size_t length = strlen(call->name);

		if (length > 5 && !memcmp(call->name + length - 5, "_ptsz", 5))
			stream = STREAM_PER_THREAD;
	}
	return stream;
}

/* Checked only during captures: a captured call submits no device work. */
static bool is_captured(const struct cuda_call *call, const uintptr_t *args)
{
	static int (*is_capturing)(uintptr_t stream, int *status);
	uintptr_t stream;
	int status = 0;

	if (cuda_thread.node)
		return true;
	if (!__atomic_load_n(&cuda_captures, __ATOMIC_RELAXED))
		return false;
	stream = cuda_call_stream(call, args);
	if (stream <= STREAM_LEGACY)
		return false; /* cannot be captured, and the query may be an error */
	if (!is_capturing)
		is_capturing = (int (*)(uintptr_t, int *))cuda_driver("cuStreamIsCapturing");
	cuda_thread.is_ours++;
	if (!is_capturing || is_capturing(stream, &status) != CUDA_SUCCESS)
		status = 0;
	cuda_thread.is_ours--;
	return status == CAPTURE_STATUS_ACTIVE;
}

/*
 * Capturing streams; 0: free. Calls on streams beyond this limit are treated as device work.
 * `cuda_captures` counts them, and calls that begin one.
 */
#define CAPTURES_AT_MOST 256
static uintptr_t captured_streams[CAPTURES_AT_MOST];

static bool exchange_stream(uintptr_t from, uintptr_t to)
{
	for (size_t i = 0; i < CAPTURES_AT_MOST; i++) {
		uintptr_t found = from;

		if (__atomic_load_n(&captured_streams[i], __ATOMIC_RELAXED) == from &&
		    __atomic_compare_exchange_n(&captured_streams[i], &found, to, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

static void capture_ends(uintptr_t stream)
{
	if (stream && exchange_stream(stream, 0))
		__atomic_sub_fetch(&cuda_captures, 1, __ATOMIC_RELAXED);
}

static bool begins_capture(const struct cuda_call *call)
{
	return call->class == CUDA_CAPTURE &&
	       !strncmp(call->name, "cuStreamBeginCapture", strlen("cuStreamBeginCapture"));
}

/* One that begins was counted before the call. An invalidated one ends with an error, but ends. */
static void count_captures(const struct cuda_call *call, const uintptr_t *args, int result)
{
	uintptr_t stream = cuda_call_stream(call, args);

	if (begins_capture(call)) {
		if (result != CUDA_SUCCESS || !stream || !exchange_stream(0, stream))
			__atomic_sub_fetch(&cuda_captures, 1, __ATOMIC_RELAXED);
	} else if (!strncmp(call->name, "cuStreamEndCapture", strlen("cuStreamEndCapture"))) {
		capture_ends(stream);
	}
}

/* Destroying a stream ends its capture. */
static bool destroys_stream(const struct cuda_call *call)
{
	return call == &cuda_calls[CUDA_INDEX_cuStreamDestroy] ||
	       call == &cuda_calls[CUDA_INDEX_cuStreamDestroy_v2];
}

/* ---- around the call ---- */

void cuda_call_enter(const struct cuda_call *call, struct cuda_call_state *state)
{
	/* Before the clock is read, because the first call in a window enables CUPTI. */
	if (cuda_class_makes_device_work(call->class))
		cuda_device_prepare();
	else if (call->class == CUDA_CONTEXT)
		cuda_device_flush();
	else if (begins_capture(call))
		__atomic_add_fetch(&cuda_captures, 1, __ATOMIC_RELAXED);
	cuda_thread.depth++;
	cuda_thread.correlation = 0;
	cuda_thread.stack = 0;
	cuda_thread.node = 0;
	state->start = ts_now();
}

static bool has_stack(enum cuda_class class)
{
	return cuda_class_makes_device_work(class) || class == CUDA_ALLOCATE ||
	       class == CUDA_FREE || class == CUDA_SYNC;
}

/* The same result as the last time, of a polling program. */
static bool is_repeated(const struct cuda_call *call, int result)
{
	bool is_equal = call->class == CUDA_QUERY_STATE && call == last_call &&
			result == last_result;

	last_call = call;
	last_result = result;
	return is_equal;
}

/* Updates state besides the row, also outside of windows. */
static void look(const struct cuda_call *call, const uintptr_t *args, int result)
{
	if (call->class == CUDA_CAPTURE)
		count_captures(call, args, result);
	if (result != CUDA_SUCCESS)
		return;
	if (call == &cuda_calls[CUDA_INDEX_cuInit])
		cuda_begun();
	else if (call == &cuda_calls[CUDA_INDEX_cuCtxDestroy_v2] ||
		 call == &cuda_calls[CUDA_INDEX_cuCtxDestroy])
		cuda_memory_forget((const void *)args[0], 0);
	else if (call == &cuda_calls[CUDA_INDEX_cuDevicePrimaryCtxReset] ||
		 call == &cuda_calls[CUDA_INDEX_cuDevicePrimaryCtxReset_v2])
		cuda_memory_forget(NULL, (uint32_t)args[0]);
	else if (call == &cuda_calls[CUDA_INDEX_cuProfilerStart])
		cuda_profiler_switched(true);
	else if (call == &cuda_calls[CUDA_INDEX_cuProfilerStop])
		cuda_profiler_switched(false);
}

static void note_device_work(const struct cuda_call *call, uint32_t correlation)
{
	int64_t bytes = call->class == CUDA_LAUNCH ? cuda_collective_bytes() : 0;

	if (bytes)
		cuda_device_collective(correlation, bytes);
	cuda_device_given(correlation);
	if (call->class == CUDA_LAUNCH || call->class == CUDA_GRAPH_LAUNCH)
		cuda_sampling_launched();
}

void cuda_call_leave(struct cuda_call *call, const struct cuda_call_state *state,
		     const uintptr_t *args, int result)
{
	struct ts_accelerator_call row = {
		.size = sizeof(row), .start = state->start, .end = ts_now(), .result = result
	};
	bool makes_work = cuda_class_makes_device_work(call->class) && result == CUDA_SUCCESS;

	cuda_thread.depth--;
	if ((has_stack(call->class) || cuda_thread.node) && (ts_enabled() || cuda_thread.node))
		row.stack = cuda_thread.stack  ? cuda_thread.stack
			    : cuda_thread.node ? ts_accelerator_stack_always()
					       : ts_accelerator_stack();
	if (cuda_thread.node)
		cuda_device_captured(cuda_thread.node, row.stack);
	if (cuda_class_is_always(call->class))
		look(call, args, result);
	else if (destroys_stream(call) && result == CUDA_SUCCESS)
		capture_ends(args[0]);
	else if (makes_work)
		cuda_begun(); /* if cuInit bypassed its wrapper */
	if ((call->class == CUDA_ALLOCATE || call->class == CUDA_FREE) && result == CUDA_SUCCESS &&
	    !is_captured(call, args))
		cuda_memory_changed(call, args, row.stack);
	if (!ts_enabled() || is_repeated(call, result))
		return;
	if (makes_work && cuda_thread.correlation && !is_captured(call, args))
		row.correlation = cuda_thread.correlation;
	ts_accelerator_call_with(&call->site, &row);
	if (row.correlation)
		note_device_work(call, (uint32_t)row.correlation);
}

struct ts_emit_site *cuda_call_site(uint32_t number)
{
	for (size_t i = 0; i < CUDA_CALL_COUNT; i++)
		if (cuda_calls[i].number == number)
			return &cuda_calls[i].site;
	return NULL;
}
