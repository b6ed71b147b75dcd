/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend `cuda`: start and stop, and what happens at cuInit(), fork() and exit. The library is
 * preloaded next to the agent, which finds `ts_backend` in it, as in third-party backends.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/cuda/calls/cuda_calls.h"
#include "backends/cuda/stream/cuda_capture.h"
#include "code/cuda/local/cuda_abi.h"

#define FACT_BYTES 1024

uint32_t cuda_wanted;
/* A recorder requested it. */
static bool is_started;
/* cuInit has returned 0, here or in the process that we were forked from. */
static bool is_begun;
/* CUDA was initialized before the fork: it does not work here. */
static bool is_forked;
/* This library came when CUDA was in use already: the program's calls do not pass our wrappers. */
static bool is_late;
/* exiting() has begun: the driver is about to go. */
static bool has_exited;

bool cuda_is_wanted(void)
{
	return __atomic_load_n(&cuda_wanted, __ATOMIC_RELAXED) != 0;
}

bool cuda_is_forked(void)
{
	return is_forked;
}

static void want(void)
{
	__atomic_store_n(&cuda_wanted, is_started && !is_forked, __ATOMIC_RELEASE);
}

/* Our locks and threads belong to the parent, as do CUPTI's: calls are only forwarded. */
static void fork_in_child(void)
{
	is_forked = is_forked || is_begun;
	if (is_forked)
		capture_forked();
	want();
}

/* ---- start and exit ---- */

static void emit_facts(void)
{
	int (*get_version)(int *) = (int (*)(int *))cuda_driver("cuDriverGetVersion");
	uint32_t cupti = cuda_cupti_version();
	char fact[FACT_BYTES];
	int version = 0;

	cuda_thread.is_ours++;
	if (get_version)
		get_version(&version);
	cuda_thread.is_ours--;
	snprintf(fact, sizeof(fact),
		 "{\"driver_version\": %d, \"cupti_version\": %u, \"functions\": %d%s%s}", version,
		 cupti, is_late ? 0 : (int)CUDA_CALL_COUNT,
		 cuda_replaying ? ", \"replayable\": true" : "", is_late ? ", \"late\": true" : "");
	ts_accelerator_fact("cuda", fact);
}

/* Handlers run in reverse order: the driver's own, registered inside cuInit, run after this one. */
static void exiting(void)
{
	has_exited = true;
	if (is_forked)
		return;
	if (is_started)
		capture_stop();
	cuda_device_end();
	if (is_started)
		cuda_stubs_emit();
}

void cuda_begun(void)
{
	if (__atomic_load_n(&is_begun, __ATOMIC_RELAXED) ||
	    __atomic_exchange_n(&is_begun, true, __ATOMIC_ACQ_REL))
		return;
	cuda_devices_emit();
	cuda_device_begin();
	emit_facts();
	atexit(exiting);
}

/* ---- in a program that uses CUDA already ---- */

static bool is_initialized(void)
{
	int (*get_current)(void **) = (int (*)(void **))cuda_driver("cuCtxGetCurrent");
	void *context;
	bool is;

	cuda_thread.is_ours++;
	is = get_current && get_current(&context) != CUDA_NOT_INITIALIZED;
	cuda_thread.is_ours--;
	return is;
}

/* True if it was preloaded: the program's calls pass our wrappers. A forked child starts late, too.
 */
static bool is_preloaded(void)
{
	/* Not RTLD_DEFAULT, which also looks in this library if it was opened alone. */
	void *program = dlopen(NULL, RTLD_LAZY);
	void *first = program ? cuda_symbol(program, "cuInit") : NULL;
	Dl_info found, own;

	return first && dladdr(first, &found) && dladdr(&is_started, &own) &&
	       found.dli_fbase == own.dli_fbase;
}

/*
 * A program that starts its own recording may load this library late (docs/cuda.md). CUPTI then
 * shows what the device does from here on. A recording that is started again describes the devices
 * again.
 */
static void begin_late(void)
{
	if (__atomic_load_n(&is_begun, __ATOMIC_RELAXED)) {
		cuda_devices_emit();
		cuda_device_describe();
		emit_facts();
	} else if (!is_preloaded() && is_initialized()) {
		is_late = true;
		cuda_begun();
	}
}

/* ---- the backend ---- */

/* Again in a forked child that emits. */
static int start(void)
{
	static bool watches_forks;

	if (!watches_forks)
		pthread_atfork(NULL, NULL, fork_in_child);
	watches_forks = true;
	is_started = true;
	if (!is_forked)
		capture_start();
	want();
	if (!is_forked)
		begin_late();
	return 0;
}

/* At exit, when the driver may be gone, exiting() has run. */
static void stop(void)
{
	if (is_started && !is_forked && !has_exited)
		cuda_device_catch_up();
	is_started = false;
	want();
}

__attribute__((visibility("default"))) const struct ts_backend ts_backend = {
	.abi = TS_BACKEND_ABI,
	.size = sizeof(ts_backend),
	.name = "cuda",
	.summary = "CUDA driver calls, device activity, host stacks",
	.start = start,
	.stop = stop,
};
