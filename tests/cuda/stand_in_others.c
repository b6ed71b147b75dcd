/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the stand-in for the driver without a wrapper, as listed in untraced_calls.def: each
 * records its arguments. Weak: some do more, in stand_in_cuda.c.
 */
#include <string.h>

#include "cuda/stand_in.h"

#define ARGS                                                                                       \
	uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, uintptr_t g, \
		uintptr_t h, uintptr_t i, uintptr_t j, uintptr_t k

enum {
#define CUDA_OTHER(name, replay) INDEX_##name,
#include "backends/cuda/calls/untraced_calls.def"
};

static int called(int index, const char *name, const uintptr_t *args)
{
	struct stand_in_call *last = stand_in_last();

	last->name = name;
	last->count++;
	memcpy(last->args, args, sizeof(last->args));
	return STAND_IN_FIRST_OTHER + index;
}

#define CUDA_OTHER(name, replay)                                                               \
	__attribute__((weak, visibility("default"))) int function_##name(ARGS) __asm__(#name); \
	int function_##name(ARGS)                                                              \
	{                                                                                      \
		const uintptr_t args[] = { a, b, c, d, e, f, g, h, i, j, k };                  \
                                                                                               \
		return called(INDEX_##name, #name, args);                                      \
	}
#include "backends/cuda/calls/untraced_calls.def"
