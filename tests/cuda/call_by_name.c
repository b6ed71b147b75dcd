/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls every function of cuda_calls.def by its exported name, as a program linked with the driver.
 * `call_by_name [THREADS [ROUNDS]]`. Prints errors, and the number of functions that have a
 * wrapper.
 */
#include <pthread.h>

#include "cuda/every_call.h"

#define CUDA_CALL(name, arguments, class, number, stream, replay) \
	extern int function_##name(void) __asm__(#name);
#include "backends/cuda/calls/cuda_calls.def"

static void *const functions[] = {
#define CUDA_CALL(name, arguments, class, number, stream, replay) (void *)function_##name,
#include "backends/cuda/calls/cuda_calls.def"
};

/* Functions without a wrapper. */
#define CUDA_OTHER(name, replay) extern int other_##name(void) __asm__(#name);
#include "backends/cuda/calls/untraced_calls.def"

static const struct {
	const char *name;
	void *function;
} others[] = {
#define CUDA_OTHER(name, replay) { #name, (void *)other_##name },
#include "backends/cuda/calls/untraced_calls.def"
};

/* Implemented by the stand-in itself. */
static bool is_special(const char *name)
{
	static const char *const names[] = {
		"cuDriverGetVersion",  "cuDeviceGetCount",
		"cuDeviceGet",         "cuDeviceGetName",
		"cuDeviceGetUuid_v2",  "cuDeviceTotalMem_v2",
		"cuCtxGetCurrent",     "cuCtxGetDevice",
		"cuStreamIsCapturing", "cuTexRefSetMipmapLevelBias",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

/* Twice: the first call searches what the second one finds. */
static void try_others(void)
{
	for (size_t i = 0; i < 2 * sizeof(others) / sizeof(others[0]); i++) {
		size_t index = i / 2;
		struct every_call call = { others[index].name, STAND_IN_ARGUMENTS };

		if (!is_special(call.name))
			try_function(&call, others[index].function, i,
				     STAND_IN_FIRST_OTHER + (int)index);
	}
}

static long rounds = 1;

static void *run(void *unused)
{
	try_others();
	for (long i = 0; i < rounds; i++)
		for (size_t index = 0; index < EVERY_CALLS; index++)
			try_call(index, functions[index]);
	return NULL;
}

int main(int argc, char **argv)
{
	long threads = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
	pthread_t all[64];
	size_t wrapped = 0;

	rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
	every_last = stand_in_last;
	for (size_t i = 0; i < EVERY_CALLS; i++)
		wrapped += is_wrapped(functions[i]);
	for (long i = 0; i < threads && i < 64; i++)
		if (pthread_create(&all[i], NULL, run, NULL))
			return 2;
	for (long i = 0; i < threads && i < 64; i++)
		pthread_join(all[i], NULL);
	printf("%zu of %zu wrapped, %d failures\n", wrapped, EVERY_CALLS, every_failures);
	return every_failures ? 1 : 0;
}
