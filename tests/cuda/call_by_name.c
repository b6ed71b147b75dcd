/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls every function of calls.def by its exported name: a program that is linked with the driver. `call_by_name [THREADS [ROUNDS]]`. Prints
 * what went wrong, and how many functions went to a wrapper.
 */
#include <pthread.h>

#include "cuda/every_call.h"

#define CUDA_CALL(name, arguments, class, number, stream) \
	extern int function_##name(void) __asm__(#name);
#include "capture/cuda/calls.def"

static void *const functions[] = {
#define CUDA_CALL(name, arguments, class, number, stream) (void *)function_##name,
#include "capture/cuda/calls.def"
};

static long rounds = 1;

static void *run(void *unused)
{
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
