/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shortens names to the width of a column so that different names still read differently. What says
 * least goes first: "void ", namespaces and call arguments, then nested arguments of templates.
 * What is still too long is cut, at the place where it differs from another name:
 *
 *	vectorized_elementwise_kernel<4, CUDAFunctor_add<…>, array<…>>
 *	vectorized_ele…CUDAFunctor_add<float>…
 *
 * Paths keep their end.
 */
#ifndef TS_CLI_COMMON_FIT_NAMES_H
#define TS_CLI_COMMON_FIT_NAMES_H

#include <stddef.h>

#include "base/arena.h"

#define TS_FIT_NAMES_MINIMUM 6

/*
 * Replaces each name that has more than `width` columns (at least TS_FIT_NAMES_MINIMUM) by a
 * shorter one in the arena. Equal names stay equal, different ones different. TS_ENOMEM if out of
 * memory.
 */
int ts_fit_names(struct ts_arena *arena, const char **names, size_t count, size_t width);

#endif
