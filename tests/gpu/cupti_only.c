/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI alone: a library for CUDA_INJECTION64_PATH that requests exactly what TraceSmith requests
 * from CUPTI (the same kinds, buffers, subscription and flushes) and discards it. The slowdown is
 * CUPTI's own share. With CUPTI_ONLY_OUT=FILE it counts kernels instead, and at exit writes lines
 * "count ns name": an independent count for the checks. Built by run.sh with NVIDIA's headers; not
 * part of TraceSmith.
 */
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUFFER_BYTES (16 << 10)
#define COUNTING_BUFFER_BYTES (4 << 20)
#define FLUSH_NS 50000000
#define NAMES_AT_MOST 4096
#define CALLBACKS_AT_MOST 2048

static struct {
	__typeof__(&cuptiSubscribe) subscribe;
	__typeof__(&cuptiEnableCallback) enable_callback;
	__typeof__(&cuptiGetCallbackName) callback_name;
	__typeof__(&cuptiActivityRegisterCallbacks) register_callbacks;
	__typeof__(&cuptiActivityRegisterTimestampCallback) register_timestamps;
	__typeof__(&cuptiActivityEnable) enable, disable;
	__typeof__(&cuptiActivityFlushAll) flush;
	__typeof__(&cuptiActivityGetNextRecord) next_record;
} cupti;

static const char *out_path;
static volatile uint32_t last_correlation;
static CUpti_SubscriberHandle subscriber;

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static struct {
	char *name;
	uint64_t count, ns;
} names[NAMES_AT_MOST];
static size_t name_count;

static void count_kernel(const CUpti_ActivityKernel9 *kernel)
{
	const char *name = kernel->name ? kernel->name : "?";
	size_t i = 0;

	while (i < name_count && strcmp(names[i].name, name) != 0)
		i++;
	if (i == NAMES_AT_MOST)
		return;
	if (i == name_count)
		names[name_count++].name = strdup(name);
	names[i].count++;
	names[i].ns += kernel->end - kernel->start;
}

/* ---- callbacks of CUPTI ---- */

static void on_request(uint8_t **buffer, size_t *bytes, size_t *records)
{
	*bytes = out_path ? COUNTING_BUFFER_BYTES : BUFFER_BYTES;
	*buffer = aligned_alloc(64, *bytes);
	*records = 0;
}

static void on_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes,
			 size_t valid)
{
	CUpti_Activity *record = NULL;

	(void)context, (void)stream, (void)bytes;
	if (out_path) {
		pthread_mutex_lock(&counting);
		while (cupti.next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
			if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
				count_kernel((const CUpti_ActivityKernel9 *)record);
		}
		pthread_mutex_unlock(&counting);
	}
	free(buffer);
}

static void on_call(void *context, CUpti_CallbackDomain domain, CUpti_CallbackId id,
		    const void *data)
{
	(void)context, (void)domain, (void)id;
	last_correlation = ((const CUpti_CallbackData *)data)->correlationId;
}

static uint64_t on_timestamp(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void *flush_for_ever(void *argument)
{
	const struct timespec pause = { .tv_nsec = FLUSH_NS };

	for (;;) {
		nanosleep(&pause, NULL);
		cupti.flush(0);
	}
	return argument;
}

/* ---- start and end ---- */

static bool is_wanted(const char *name)
{
	return !strncmp(name, "cuLaunch", 8) || !strncmp(name, "cuMemcpy", 8) ||
	       !strncmp(name, "cuMemset", 8) || !strncmp(name, "cuGraphLaunch", 13);
}

/* Switches everything on or off. */
static void set_all(uint32_t is_on)
{
	static const CUpti_ActivityKind kinds[] = { CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
						    CUPTI_ACTIVITY_KIND_MEMCPY,
						    CUPTI_ACTIVITY_KIND_MEMCPY2,
						    CUPTI_ACTIVITY_KIND_MEMSET };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		(is_on ? cupti.enable : cupti.disable)(kinds[i]);
	for (uint32_t id = 1; id < CALLBACKS_AT_MOST; id++) {
		const char *name = NULL;

		if (!cupti.callback_name(CUPTI_CB_DOMAIN_DRIVER_API, id, &name) && name &&
		    is_wanted(name))
			cupti.enable_callback(is_on, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
	}
}

/* For bench/cuda.py: the same process with and without it. */
void cupti_only_switch(int is_on);
__attribute__((visibility("default"))) void cupti_only_switch(int is_on)
{
	if (subscriber)
		set_all(is_on != 0);
}

static void write_counts(void)
{
	FILE *out;

	cupti.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	out = fopen(out_path, "w");
	for (size_t i = 0; out && i < name_count; i++)
		fprintf(out, "%llu %llu %s\n", (unsigned long long)names[i].count,
			(unsigned long long)names[i].ns, names[i].name);
	if (out)
		fclose(out);
}

static bool load(void)
{
	const char *path = getenv("CUPTI_ONLY_LIBRARY");
	void *library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
	const struct {
		const char *name;
		void *target;
	} calls[] = {
		{ "cuptiSubscribe", &cupti.subscribe },
		{ "cuptiEnableCallback", &cupti.enable_callback },
		{ "cuptiGetCallbackName", &cupti.callback_name },
		{ "cuptiActivityRegisterCallbacks", &cupti.register_callbacks },
		{ "cuptiActivityRegisterTimestampCallback", &cupti.register_timestamps },
		{ "cuptiActivityEnable", &cupti.enable },
		{ "cuptiActivityDisable", &cupti.disable },
		{ "cuptiActivityFlushAll", &cupti.flush },
		{ "cuptiActivityGetNextRecord", &cupti.next_record },
	};

	if (!library)
		library = dlopen("libcupti.so.13", RTLD_NOW);
	if (!library && path)
		library = dlopen(path, RTLD_NOW);
	for (size_t i = 0; library && i < sizeof(calls) / sizeof(*calls); i++) {
		*(void **)calls[i].target = dlsym(library, calls[i].name);
		if (!*(void **)calls[i].target)
			return false;
	}
	return library != NULL;
}

int InitializeInjection(void);
__attribute__((visibility("default"))) int InitializeInjection(void)
{
	pthread_t thread;

	out_path = getenv("CUPTI_ONLY_OUT");
	if (!load()) {
		fprintf(stderr, "cupti_only: no CUPTI\n");
		return 1;
	}
	cupti.register_timestamps(on_timestamp);
	cupti.register_callbacks(on_request, on_completed);
	if (!cupti.subscribe(&subscriber, (CUpti_CallbackFunc)on_call, NULL))
		set_all(1);
	if (out_path)
		atexit(write_counts);
	else if (!pthread_create(&thread, NULL, flush_for_ever, NULL))
		pthread_detach(thread);
	return 1;
}
