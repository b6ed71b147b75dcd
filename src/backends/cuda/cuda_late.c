/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that starts its own recording may load this library late (docs/cuda.md, section 2): its
 * calls do not pass our wrappers. CUPTI then shows what the device does, from here on if CUDA has
 * been initialized, else as soon as the program does that. Doing it here would break programs that
 * fork later.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "backends/cuda/calls/cuda_calls.h"
#include "code/cuda/local/cuda_abi.h"

/* After cuInit, a program takes much longer than this until it launches something. */
#define LOOK_NS 5000000
#define EXIT_LOOKS 400

static uint32_t is_late;      /* atomic */
static uint32_t may_wait = 1; /* ts_cuda_await(); atomic */
static uint32_t is_awaiting;  /* a thread looks whether CUDA is initialized; atomic */

bool cuda_is_late(void)
{
	return __atomic_load_n(&is_late, __ATOMIC_RELAXED) != 0;
}

/* True if it was preloaded: the program's calls pass our wrappers. */
static bool is_preloaded(void)
{
	/* Not RTLD_DEFAULT, which also looks in this library if it was opened alone. */
	void *program = dlopen(NULL, RTLD_LAZY);
	void *first = program ? cuda_symbol(program, "cuInit") : NULL;
	Dl_info found, own;

	return first && dladdr(first, &found) && dladdr(&is_late, &own) &&
	       found.dli_fbase == own.dli_fbase;
}

/*
 * Looks for the driver again only if libraries were loaded since: a search reads directories. Only
 * for the one that has set `is_awaiting`.
 */
static bool is_initialized(void)
{
	static int (*get_current)(void **);
	static unsigned long long looked;
	unsigned long long loaded = get_current ? looked : cuda_libraries_loaded();
	void *context;
	bool is;

	if (looked != loaded)
		get_current = (int (*)(void **))cuda_driver("cuCtxGetCurrent");
	looked = loaded;
	cuda_thread.is_ours++;
	is = get_current && !get_current(&context);
	cuda_thread.is_ours--;
	return is;
}

/* CUPTI is being started by the thread that waited, while the program may exit. */
static uint32_t is_beginning; /* atomic */

static void await_beginning(void)
{
	const struct timespec nap = { .tv_nsec = LOOK_NS };

	for (int i = 0; i < EXIT_LOOKS && __atomic_load_n(&is_beginning, __ATOMIC_ACQUIRE); i++)
		nanosleep(&nap, NULL);
}

/* The driver's own handler was registered before, and runs after this one. */
static void begin(void)
{
	__atomic_store_n(&is_beginning, 1, __ATOMIC_RELEASE);
	atexit(await_beginning);
	cuda_begun();
	__atomic_store_n(&is_beginning, 0, __ATOMIC_RELEASE);
}

static bool must_wait(void)
{
	return cuda_is_wanted() && !cuda_has_begun();
}

static void *await(void *unused)
{
	const struct timespec nap = { .tv_nsec = LOOK_NS };

	(void)unused;
	pthread_setname_np(pthread_self(), "ts-cuda-wait");
	do {
		while (must_wait()) {
			/* Another tool may begin to use CUPTI before CUDA is initialized. */
			cuda_redirect_imports();
			if (is_initialized())
				begin();
			else
				nanosleep(&nap, NULL);
		}
		__atomic_store_n(&is_awaiting, 0, __ATOMIC_SEQ_CST);
		/* Unless it was wanted again before it could be seen that this thread ends. */
	} while (must_wait() && !__atomic_exchange_n(&is_awaiting, 1, __ATOMIC_SEQ_CST));
	return NULL;
}

void cuda_late_begin(void)
{
	pthread_t thread;

	if (is_preloaded())
		return;
	__atomic_store_n(&is_late, 1, __ATOMIC_RELAXED);
	cuda_redirect_imports();
	if (__atomic_exchange_n(&is_awaiting, 1, __ATOMIC_SEQ_CST))
		return;
	if (is_initialized())
		cuda_begun();
	else if (__atomic_load_n(&may_wait, __ATOMIC_ACQUIRE) && !cuda_start_thread(&thread, await))
		return;
	__atomic_store_n(&is_awaiting, 0, __ATOMIC_SEQ_CST);
}

__attribute__((visibility("default"))) void ts_cuda_await(int now)
{
	__atomic_store_n(&may_wait, now != 0, __ATOMIC_RELEASE);
	if (now && cuda_is_late() && must_wait())
		cuda_late_begin();
}

void cuda_late_forked(void)
{
	__atomic_store_n(&is_awaiting, 0, __ATOMIC_RELAXED);
}
