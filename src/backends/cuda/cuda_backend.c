/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend `cuda`: start and stop, and what happens at cuInit(), fork() and exit. The library is
 * preloaded next to the agent, which finds `ts_backend` in it, as in third-party backends.
 */
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
	cuda_late_forked();
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
		 cupti, cuda_is_late() ? 0 : (int)CUDA_CALL_COUNT,
		 cuda_replaying ? ", \"replayable\": true" : "",
		 cuda_is_late() ? ", \"late\": true" : "");
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

bool cuda_has_begun(void)
{
	return __atomic_load_n(&is_begun, __ATOMIC_RELAXED);
}

void cuda_begun(void)
{
	if (cuda_has_begun() || __atomic_exchange_n(&is_begun, true, __ATOMIC_ACQ_REL))
		return;
	cuda_devices_emit();
	cuda_device_begin();
	emit_facts();
	atexit(exiting);
}

/* ---- the backend ---- */

/* For another recording, which knows nothing of the device yet. */
static void begin_again(void)
{
	cuda_devices_emit();
	cuda_contexts_again();
	cuda_device_describe();
	/* If it was not wanted when CUDA was initialized. */
	cuda_device_begin();
	emit_facts();
	cuda_device_prepare();
}

/* Again for another recording, and in a forked child that emits. */
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
	if (is_forked)
		return 0;
	if (cuda_has_begun())
		begin_again();
	else
		cuda_late_begin();
	return 0;
}

/* At exit, when the driver may be gone, exiting() has run. */
static void stop(void)
{
	bool is_recording = is_started && !is_forked && !has_exited;

	if (is_recording)
		cuda_device_catch_up();
	is_started = false;
	want();
	if (is_recording)
		cuda_device_pause();
}

__attribute__((visibility("default"))) const struct ts_backend ts_backend = {
	.abi = TS_BACKEND_ABI,
	.size = sizeof(ts_backend),
	.name = "cuda",
	.summary = "CUDA driver calls, device activity, host stacks",
	.start = start,
	.stop = stop,
};
