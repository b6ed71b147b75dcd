/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library for CUDA_INJECTION64_PATH: at each launch of the program it unwinds the stack twice,
 * with src/code/local/local_unwind.h and with _Unwind_Backtrace(), and compares them frame by
 * frame. At exit, writes one JSON line to STACK_COMPARE_OUT: number of stacks, differences, depth,
 * and the cost of both (medians, ns). Built by run.sh with NVIDIA's headers; not part of
 * TraceSmith.
 */
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unwind.h>

#include "code/local/local_unwind.h"

#define MOST_DEPTH 1024
#define MOST_TIMES 1000000
#define CALLBACKS_AT_MOST 2048
#define SHOWN 3

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static uint32_t ours_ns[MOST_TIMES], theirs_ns[MOST_TIMES], depths[MOST_TIMES];
static size_t count, differing, ends[8];

struct trail {
	uint64_t pcs[MOST_DEPTH];
	size_t count;
};

static _Unwind_Reason_Code on_frame(struct _Unwind_Context *context, void *argument)
{
	struct trail *trail = argument;
	int is_before = 0;
	uint64_t pc = _Unwind_GetIPInfo(context, &is_before);

	/* As in local_unwind.h: one byte back is always inside. */
	if (trail->count < MOST_DEPTH && pc)
		trail->pcs[trail->count++] = pc + (is_before != 0);
	return _URC_NO_REASON;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void show(const struct ts_local_unwind_stack *stack, const struct trail *trail)
{
	fprintf(stderr, "stacks differ: %zu frames (end %d), %zu frames\n", stack->count,
		(int)stack->end, trail->count - 1);
	for (size_t i = 0; i < stack->count || i + 1 < trail->count; i++) {
		uint64_t ours = i < stack->count ? stack->pcs[i] : 0;
		uint64_t theirs = i + 1 < trail->count ? trail->pcs[i + 1] : 0;
		Dl_info info = { 0 };

		dladdr((void *)(uintptr_t)(theirs ? theirs : ours), &info);
		fprintf(stderr, "  %c %#llx %#llx %s %s\n", ours == theirs ? ' ' : '!',
			(unsigned long long)ours, (unsigned long long)theirs,
			info.dli_fname ? info.dli_fname : "?",
			info.dli_sname ? info.dli_sname : "?");
	}
}

__attribute__((noinline)) static void compare(void)
{
	static __thread struct trail trail;
	static __thread uint64_t pcs[MOST_DEPTH];
	static __thread struct ts_local_unwind_last last;
	struct ts_local_unwind_stack stack = { .pcs = pcs, .capacity = MOST_DEPTH, .last = &last };
	struct ts_local_unwind_registers captured;
	uint64_t start = now_ns(), middle, end;
	int differs;

	ts_local_unwind_capture(&captured);
	ts_local_unwind_walk(&captured, &stack);
	middle = now_ns();
	trail.count = 0;
	_Unwind_Backtrace(on_frame, &trail);
	end = now_ns();
	/* Their first frame is this function itself. */
	differs = stack.count + 1 != trail.count ||
		  memcmp(stack.pcs, trail.pcs + 1, stack.count * sizeof(*pcs)) != 0;
	pthread_mutex_lock(&counting);
	if (differs && differing++ < SHOWN)
		show(&stack, &trail);
	if (count < MOST_TIMES) {
		ours_ns[count] = (uint32_t)(middle - start);
		theirs_ns[count] = (uint32_t)(end - middle);
		depths[count] = (uint32_t)stack.count;
		count++;
	}
	ends[stack.end & 7]++;
	pthread_mutex_unlock(&counting);
}

static void on_call(void *context, CUpti_CallbackDomain domain, CUpti_CallbackId id,
		    const void *data)
{
	(void)context, (void)domain, (void)id;
	if (((const CUpti_CallbackData *)data)->callbackSite == CUPTI_API_ENTER)
		compare();
}

/* ---- start and end ---- */

static int by_value(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return a < b ? -1 : a > b;
}

static uint32_t median(uint32_t *values)
{
	qsort(values, count, sizeof(*values), by_value);
	return count ? values[count / 2] : 0;
}

static void write_result(void)
{
	const char *path = getenv("STACK_COMPARE_OUT");
	FILE *out = path ? fopen(path, "w") : NULL;

	if (!out)
		return;
	fprintf(out,
		"{\"stacks\": %zu, \"differ\": %zu, \"whole\": %zu, \"no_tables\": %zu, "
		"\"depth\": %u, \"here_ns\": %u, \"unwind_backtrace_ns\": %u}\n",
		count, differing, ends[TS_LOCAL_UNWIND_COMPLETE], ends[TS_LOCAL_UNWIND_NO_TABLES],
		median(depths), median(ours_ns), median(theirs_ns));
	fclose(out);
}

int InitializeInjection(void);
__attribute__((visibility("default"))) int InitializeInjection(void)
{
	const char *path = getenv("CUPTI_ONLY_LIBRARY");
	void *library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
	__typeof__(&cuptiSubscribe) subscribe;
	__typeof__(&cuptiEnableCallback) enable;
	__typeof__(&cuptiGetCallbackName) get_name;
	CUpti_SubscriberHandle subscriber;

	if (!library)
		library = dlopen("libcupti.so.13", RTLD_NOW);
	if (!library && path)
		library = dlopen(path, RTLD_NOW);
	if (!library)
		return 1;
	*(void **)&subscribe = dlsym(library, "cuptiSubscribe");
	*(void **)&enable = dlsym(library, "cuptiEnableCallback");
	*(void **)&get_name = dlsym(library, "cuptiGetCallbackName");
	if (!subscribe || !enable || !get_name ||
	    subscribe(&subscriber, (CUpti_CallbackFunc)on_call, NULL))
		return 1;
	for (uint32_t id = 1; id < CALLBACKS_AT_MOST; id++) {
		const char *name = NULL;

		if (!get_name(CUPTI_CB_DOMAIN_DRIVER_API, id, &name) && name &&
		    !strncmp(name, "cuLaunch", strlen("cuLaunch")))
			enable(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
	}
	atexit(write_result);
	return 1;
}
