/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interface of the stand-in for the CUDA driver (stand_in_cuda.c): which calls reached it. It is
 * not a driver: nothing runs.
 */
#ifndef TS_TESTS_CUDA_STAND_IN_H
#define TS_TESTS_CUDA_STAND_IN_H

#include <stdbool.h>
#include <stdint.h>

#define STAND_IN_ARGUMENTS 11
#define STAND_IN_FIRST_RESULT 1000
#define STAND_IN_FIRST_OTHER 5000 /* of functions without a wrapper */

/* The last call of a thread. */
struct stand_in_call {
	const char *name;
	uintptr_t args[STAND_IN_ARGUMENTS];
	uint64_t count; /* of this thread, so far */
};

/* Exported by the library: */
struct stand_in_call *stand_in_last(void);
/*
 * From now on calls have effects: memory is allocated, captures begin and end, and all return 0.
 * Otherwise each returns its index in cuda_calls.def, and does not touch its arguments.
 */
void stand_in_work(bool works);
/*
 * Called inside each call, with CUPTI's number of the function and its arguments, for use by
 * another stand-in. NULL: none.
 */
typedef void (*stand_in_watcher)(int number, const uintptr_t *args);
void stand_in_watch(stand_in_watcher by);

#endif
