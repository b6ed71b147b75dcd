/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For programs that call every function of cuda_calls.def and check that arguments and results pass
 * through unchanged.
 */
#ifndef TS_TESTS_CUDA_EVERY_CALL_H
#define TS_TESTS_CUDA_EVERY_CALL_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/stand_in.h"

struct every_call {
	const char *name;
	int arguments;
};

static const struct every_call every_calls[] = {
#define CUDA_CALL(name, arguments, class, number, stream, replay) { #name, arguments },
#include "backends/cuda/calls/cuda_calls.def"
};
#define EVERY_CALLS (sizeof(every_calls) / sizeof(every_calls[0]))

static struct stand_in_call *(*every_last)(void);
static int every_failures;

static inline void fail_at(const char *name, const char *what)
{
	printf("%s: %s\n", name, what);
	every_failures++;
}

#define W uintptr_t
static inline int call_with(void *function, int arguments, const uintptr_t *w)
{
	switch (arguments) {
	case 0:
		return ((int (*)(void))function)();
	case 1:
		return ((int (*)(W))function)(w[0]);
	case 2:
		return ((int (*)(W, W))function)(w[0], w[1]);
	case 3:
		return ((int (*)(W, W, W))function)(w[0], w[1], w[2]);
	case 4:
		return ((int (*)(W, W, W, W))function)(w[0], w[1], w[2], w[3]);
	case 5:
		return ((int (*)(W, W, W, W, W))function)(w[0], w[1], w[2], w[3], w[4]);
	case 6:
		return ((int (*)(W, W, W, W, W, W))function)(w[0], w[1], w[2], w[3], w[4], w[5]);
	default:
		return ((int (*)(W, W, W, W, W, W, W, W, W, W, W))function)(
			w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10]);
	}
}
#undef W

/* Values that differ between calls and positions, in all of their bits. */
static inline void try_function(const struct every_call *call, void *function, size_t index,
				int expected)
{
	uintptr_t args[STAND_IN_ARGUMENTS];
	struct stand_in_call *last = every_last();
	uint64_t before = last->count;
	int result;

	if (!function) {
		fail_at(call->name, "not found");
		return;
	}
	for (size_t i = 0; i < STAND_IN_ARGUMENTS; i++)
		args[i] = (index * 31 + i + 1) * 0x9e3779b97f4a7c15u;
	result = call_with(function, call->arguments, args);
	if (!last->name || strcmp(last->name, call->name))
		fail_at(call->name, "another function was reached");
	if (last->count != before + 1)
		fail_at(call->name, "not reached once");
	if (memcmp(last->args, args, (size_t)call->arguments * sizeof(args[0])))
		fail_at(call->name, "arguments differ");
	if (result != expected)
		fail_at(call->name, "another result");
}

static inline void try_call(size_t index, void *function)
{
	try_function(&every_calls[index], function, index, STAND_IN_FIRST_RESULT + (int)index);
}

/* Where a function is: "wrapper", or another library. */
static inline bool is_wrapped(void *function)
{
	Dl_info info;

	return dladdr(function, &info) && strstr(info.dli_fname, "libtracesmith-backend-cuda");
}

#endif
