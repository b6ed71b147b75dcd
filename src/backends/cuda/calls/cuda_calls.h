/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver functions with a wrapper, and what a wrapper does before and after the real function
 * (docs/cuda.md, section 2). For the files of this folder, cuda_backend.c and cupti.c; the rest of
 * device recording needs only cuda_internal.h.
 */
#ifndef TS_BACKENDS_CUDA_CALLS_CUDA_CALLS_H
#define TS_BACKENDS_CUDA_CALLS_CUDA_CALLS_H

#include <tracesmith/replay.h>

#include "backends/cuda/cuda_internal.h"

enum cuda_call_index {
#define CUDA_CALL(name, arguments, class, number, stream, replay) CUDA_INDEX_##name,
#include "backends/cuda/calls/cuda_calls.def"
	CUDA_CALL_COUNT
};

#define CUDA_STREAM_IN_CONFIG 99 /* cuda_calls.def */
#define CUDA_ARGUMENTS_AT_MOST 11

/* The generic type of driver functions: wrappers pass machine words. */
typedef int (*cuda_function)(void);

/* What is not captured, but may exist when a window is to open. */
#define CUDA_STATES(X)                              \
	X(ARRAY, "array")                           \
	X(TEXTURE, "texture")                       \
	X(SURFACE, "surface")                       \
	X(MANAGED, "managed memory")                \
	X(SHARED, "memory of another process")      \
	X(EXTERNAL_MEMORY, "external memory")       \
	X(EXTERNAL_SEMAPHORE, "external semaphore") \
	X(GRAPHICS, "graphics resource")            \
	X(GREEN_CONTEXT, "green context")           \
	X(MULTICAST, "multicast object")            \
	X(PEER_ACCESS, "peer access")
enum cuda_state {
#define CUDA_STATE(name, text) CUDA_STATE_##name,
	CUDA_STATES(CUDA_STATE)
#undef CUDA_STATE
		CUDA_STATE_COUNT
};

/* What a function means to replayable windows (docs/cuda-replay.md, section 6). */
enum cuda_replay {
	CUDA_REPLAY_HARMLESS,
	CUDA_REPLAY_CAPTURED,
	CUDA_REPLAY_ANSWERED,
	CUDA_REPLAY_REFUSED,
#define CUDA_STATE(name, text) CUDA_REPLAY_MAKES_##name, CUDA_REPLAY_ENDS_##name,
	CUDA_STATES(CUDA_STATE)
#undef CUDA_STATE
};

struct cuda_call {
	const char *name;
	uint8_t class;  /* enum cuda_class */
	uint8_t replay; /* enum cuda_replay */
	uint8_t arguments;
	int8_t stream;
	uint16_t number;  /* CUPTI's callback number */
	bool is_windowed; /* only open windows and stream captures need it */
	cuda_function wrapper;
	cuda_function real; /* NULL: not looked up yet */
	struct ts_emit_site site;
};
extern struct cuda_call cuda_calls[CUDA_CALL_COUNT];

/* State of a wrapper while the real function runs. */
struct cuda_call_state {
	uint64_t start;
};

/* > 0: stream captures are in progress, so calls matter outside of windows, too. */
extern uint32_t cuda_captures;
/* The recorder requested this backend for this process. Read by each wrapper. */
extern uint32_t cuda_wanted;
/* `record --replayable`: read by each wrapper of a function that is not harmless. */
extern uint32_t cuda_replaying;

/*
 * Finds the real function. Never NULL: if the driver lacks it, a function that returns "not
 * supported".
 */
cuda_function cuda_call_find(struct cuda_call *call);

/* What to call for it: a counting stub of the real function, or that itself. */
void *cuda_counted(const struct cuda_call *call, void *address);

static inline cuda_function cuda_call_real(struct cuda_call *call)
{
	cuda_function real = __atomic_load_n(&call->real, __ATOMIC_ACQUIRE);

	return __builtin_expect(real != NULL, 1) ? real : cuda_call_find(call);
}

/*
 * These are tracked at all times, because they change state that windows need: allocated memory,
 * captures, and what opens windows.
 */
static inline __attribute__((always_inline)) bool cuda_class_is_always(enum cuda_class class)
{
	return class == CUDA_ALLOCATE || class == CUDA_FREE || class == CUDA_CONTEXT ||
	       class == CUDA_CAPTURE || class == CUDA_PROFILER || class == CUDA_GRAPH ||
	       class == CUDA_OTHER;
}

static inline bool cuda_class_makes_device_work(enum cuda_class class)
{
	return class == CUDA_LAUNCH || class == CUDA_COPY || class == CUDA_FILL ||
	       class == CUDA_GRAPH_LAUNCH;
}

/* False: calls of this class go straight to the driver. Costs a few loads. */
static inline __attribute__((always_inline)) bool cuda_class_may_count(enum cuda_class class)
{
	return class != CUDA_COUNTED &&
	       (cuda_class_is_always(class) || ts_enabled() ||
		__builtin_expect(__atomic_load_n(&cuda_captures, __ATOMIC_RELAXED) != 0, 0));
}

/* False: replayable windows do not concern themselves with such a call. */
static inline __attribute__((always_inline)) bool cuda_may_replay(enum cuda_replay replay)
{
	return replay != CUDA_REPLAY_HARMLESS &&
	       __builtin_expect(__atomic_load_n(&cuda_replaying, __ATOMIC_RELAXED) != 0, 0);
}

/* False: each call matters outside of windows, too; its wrapper need not ask cuda_passes(). */
static inline __attribute__((always_inline)) bool cuda_may_pass(enum cuda_class class,
								enum cuda_replay replay)
{
	return replay == CUDA_REPLAY_CAPTURED && !cuda_class_is_always(class);
}

/* Whether to handle a call whose class may count. */
static inline bool cuda_call_counts(void)
{
	return __atomic_load_n(&cuda_wanted, __ATOMIC_RELAXED) && !cuda_thread.depth &&
	       !cuda_thread.is_ours;
}

void cuda_call_enter(const struct cuda_call *call, struct cuda_call_state *state);
void cuda_call_leave(struct cuda_call *call, const struct cuda_call_state *state,
		     const uintptr_t *args, int result);

/* The stream that a call names, as the driver sees it; 0: the legacy one. */
uintptr_t cuda_call_stream(const struct cuda_call *call, const uintptr_t *args);

/* ---- stream/cuda_dispatch.c ---- */

/*
 * A call while cuda_replaying: makes the call, records it, and returns its result. `args` has
 * CUDA_ARGUMENTS_AT_MOST words.
 */
int cuda_capture_call(struct cuda_call *call, uintptr_t *args);
/*
 * True: nobody records this call, and no window opens before cuda_passed(), so that its wrapper
 * calls the driver. False: it is one for cuda_capture_call().
 */
bool cuda_passes(const struct cuda_call *call);
static inline void cuda_passed(void)
{
	cuda_thread.depth = 0;
	ts_replay_leave();
}
/* A call of NCCL: an open window fails. */
void capture_collective(const char *name);

/* ---- cuda_driver.c ---- */

/* The real dlsym(), or that of another library that replaces it; NULL: not looked up yet. */
extern void *(*cuda_next_dlsym)(void *handle, const char *name);
void cuda_find_dlsym(void);
/* The driver's handle; NULL: it is not loaded, and `load` is false or there is none. */
void *cuda_driver_library(bool load);

/* ---- cuda_symbols.c ---- */

/*
 * What a lookup of a driver function returns: a wrapper, a counting stub, or the function itself.
 */
void *cuda_symbol_for(const char *name, void *address);

/* ---- call_stubs.c ---- */

/*
 * A stub that counts calls of `address` under `name` and jumps there; NULL: all stubs are in use.
 */
void *cuda_stub(const char *name, void *address);

struct cuda_stub_use {
	const char *name;
	uint64_t calls;
};
/* The next function at or after *position that was called through a stub; false: none is left. */
bool cuda_stub_next(uint32_t *position, struct cuda_stub_use *ret_use);

/* ---- untraced_calls.c ---- */

/* Of a function of that list; REFUSED: it is not there. */
enum cuda_replay cuda_other_replay(const char *name);

/* ---- cuda_memory.c ---- */

/* A call of class ALLOCATE or FREE has succeeded. */
void cuda_memory_changed(const struct cuda_call *call, const uintptr_t *args, uint32_t stack);
/* A context was destroyed with all of its memory; NULL: the primary context of that device. */
void cuda_memory_forget(const void *context, uint32_t device);

/* ---- cuda_devices.c ---- */

void cuda_devices_emit(void);

/* ---- nccl_calls.c ---- */

/*
 * What a caller of dlsym() gets for the NCCL function found at this address: a wrapper, or the
 * function; NULL: it sees none.
 */
void *cuda_collective_for(void *handle, const char *name, void *address, const void *caller);
/* Bytes of the collective that this thread is calling; 0: none. */
int64_t cuda_collective_bytes(void);

/* ---- cuda_backend.c ---- */

/* cuInit has returned 0. */
void cuda_begun(void);
bool cuda_has_begun(void);

#endif
