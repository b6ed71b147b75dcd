/* SPDX-License-Identifier: Apache-2.0 */
/* See played.h. Contains nothing of the agent or the driver. */
#include "cuda/played.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- test double of the agent ---- */

uint32_t is_enabled = 1;
const uint32_t *ts_emit_switch = &is_enabled;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct emitted_op ops[OPS];
static uint32_t op_count;
uint32_t stream_count, clock_count, call_count;
struct ts_accelerator_call last_call;
uint64_t lost;
char lost_reason[128], fact[2048];
static uint32_t next_stack = 100;

uint64_t ts_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int64_t ts_ticks_ns(uint64_t ticks)
{
	return (int64_t)ticks;
}

void ts_thread_name(const char *name)
{
	(void)name;
}

void ts_accelerator_op(struct ts_emit_site *site, const struct ts_gpu_op *op)
{
	pthread_mutex_lock(&lock);
	if (op_count < OPS) {
		ops[op_count].op = *op;
		snprintf(ops[op_count].name, sizeof(ops[0].name), "%s", site->name);
		snprintf(ops[op_count].category, sizeof(ops[0].category), "%s", site->category);
		op_count++;
	}
	pthread_mutex_unlock(&lock);
}

void ts_accelerator_stream(const struct ts_accelerator_queue *queue)
{
	(void)queue;
	stream_count++;
}

void ts_accelerator_clock(uint32_t device, uint64_t host, int64_t device_ns, int64_t uncertainty_ns,
			  const char *method)
{
	(void)device, (void)host, (void)device_ns, (void)uncertainty_ns, (void)method;
	clock_count++;
}

void ts_accelerator_lost(const char *what, uint64_t count, const char *reason)
{
	(void)what;
	pthread_mutex_lock(&lock);
	lost += count;
	snprintf(lost_reason, sizeof(lost_reason), "%s", reason);
	pthread_mutex_unlock(&lock);
}

void ts_accelerator_fact(const char *key, const char *json)
{
	(void)key;
	pthread_mutex_lock(&lock);
	snprintf(fact, sizeof(fact), "%s", json);
	pthread_mutex_unlock(&lock);
}

void ts_accelerator_call_with(struct ts_emit_site *site, const struct ts_accelerator_call *call)
{
	(void)site;
	call_count++;
	last_call = *call;
}

uint32_t ts_accelerator_stack(void)
{
	return ts_enabled() ? next_stack++ : 0;
}

uint32_t ts_accelerator_stack_always(void)
{
	return next_stack++;
}

/* ---- test double of the wrappers ---- */

__thread struct cuda_thread cuda_thread;
bool is_forked, samples;
uint32_t contexts_emitted, modules_emitted, symbols_requested;

bool cuda_is_wanted(void)
{
	return true;
}

bool cuda_is_forked(void)
{
	return is_forked;
}

bool cuda_is_late(void)
{
	return false;
}

void *cuda_symbol(void *handle, const char *name)
{
	symbols_requested++;
	return dlsym(handle, name);
}

static int driver_version(int *version)
{
	*version = 13000;
	return 0;
}

static int current_context(void **context)
{
	*context = (void *)5;
	return 0;
}

void *cuda_driver(const char *name)
{
	return !strcmp(name, "cuDriverGetVersion") ? (void *)(uintptr_t)driver_version
	       : !strcmp(name, "cuCtxGetCurrent")  ? (void *)(uintptr_t)current_context
						   : NULL;
}

void cuda_call_bypassed(uint32_t number)
{
	(void)number;
}

struct ts_emit_site *cuda_call_site(uint32_t number)
{
	static struct ts_emit_site site = TS_CALL_SITE("cuLaunchKernel", "cuda");

	return number == LAUNCH ? &site : NULL;
}

void cuda_stubs_emit(void)
{
}

bool cuda_sampling_is_wanted(void)
{
	return samples;
}

void cuda_sampling_context(void *context, bool is_created)
{
	(void)context;
	contexts_emitted += is_created;
}

void cuda_sampling_module(void *context, uint32_t module, const void *cubin, size_t bytes,
			  bool is_loaded)
{
	(void)context, (void)module, (void)cubin, (void)bytes;
	modules_emitted += is_loaded;
}

void cuda_sampling_drain(bool is_last)
{
	(void)is_last;
}

/* ---- for tests ---- */

struct stand_in_cupti *cupti_played;

void open_stand_in(void)
{
	struct stand_in_cupti *(*get_stand_in)(void);
	char path[1024];
	void *library;

	snprintf(path, sizeof(path), "%s/tests/cuda/cupti/lib64/libcupti.so.13",
		 getenv("TS_BUILD") ? getenv("TS_BUILD") : ".");
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	TS_CHECK(library != NULL);
	get_stand_in = (struct stand_in_cupti * (*)(void)) dlsym(library, "stand_in_cupti");
	TS_CHECK(get_stand_in != NULL);
	cupti_played = get_stand_in();
}

void begin(void)
{
	if (!cupti_played)
		open_stand_in();
	cuda_device_begin();
}

uint32_t launch_as(const struct stand_in_work *work)
{
	uint32_t correlation;

	cuda_device_prepare();
	cuda_thread.depth++;
	cuda_thread.correlation = cuda_thread.stack = 0;
	cuda_thread.node = 0;
	cupti_played->call(work);
	cuda_thread.depth--;
	correlation = cuda_thread.correlation;
	if (ts_enabled() && correlation)
		cuda_device_given(correlation);
	return correlation;
}

uint32_t launch(uint32_t grid)
{
	return launch_as(&(struct stand_in_work){ .kind = CUPTI_KIND_CONCURRENT_KERNEL,
						  .number = LAUNCH,
						  .name = "_Z6kernelPf",
						  .grid = grid });
}

uint32_t ops_now(void)
{
	uint32_t count;

	pthread_mutex_lock(&lock);
	count = op_count;
	pthread_mutex_unlock(&lock);
	return count;
}

void await_ops(uint32_t count)
{
	for (int i = 0; i < WAIT_TRIES && ops_now() < count; i++)
		usleep(5000);
	TS_CHECK_INT(ops_now(), count);
}

void await_state(enum cuda_device_state state)
{
	for (int i = 0; i < WAIT_TRIES && cuda_device_state() != state; i++)
		usleep(5000);
	TS_CHECK_INT(cuda_device_state(), state);
}

void let_helper_look(void)
{
	usleep(3 * CUDA_TICK_NS / 1000);
}
