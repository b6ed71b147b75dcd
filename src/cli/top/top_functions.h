/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions by the time that threads spend in them: own time where they are innermost, total time
 * where they are on the stack at all, however often. Of the last interval and of all. Not
 * thread-safe.
 */
#ifndef TS_CLI_TOP_TOP_FUNCTIONS_H
#define TS_CLI_TOP_TOP_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

struct ts_top_function {
	const char *name, *file; /* of the struct ts_top_functions */
	int32_t line;            /* its first one */
	int64_t own_ns, total_ns;
	int64_t recent_own_ns, recent_total_ns; /* of the interval that was ended last */
	/* For counting. */
	int64_t turn_own_ns, turn_total_ns; /* of the interval that runs */
	uint64_t stack;                     /* the last one that it was on */
};

struct ts_top_functions {
	struct ts_strmap names;
	struct ts_top_function *functions; /* by number */
	size_t count, capacity;
	uint64_t stacks;
};

#define TS_TOP_NO_FUNCTION UINT32_MAX

/* A zeroed struct is not as good. */
void ts_top_functions_init(struct ts_top_functions *functions);
void ts_top_functions_release(struct ts_top_functions *functions);

/* The number of a function; TS_TOP_NO_FUNCTION: no memory. */
uint32_t ts_top_functions_intern(struct ts_top_functions *functions, const char *name,
				 const char *file, int32_t line);

/*
 * Begins a stack that counts for `weight_ns`; then its frames, innermost first.
 */
void ts_top_functions_begin(struct ts_top_functions *functions);
void ts_top_functions_frame(struct ts_top_functions *functions, uint32_t number, bool is_innermost,
			    int64_t weight_ns);

/* Ends an interval: what came since the last call is the recent time from now on. */
void ts_top_functions_turn(struct ts_top_functions *functions);
/* Forgets all times. */
void ts_top_functions_clear(struct ts_top_functions *functions);

/*
 * Copies the first `limit` of those that have any time, greatest first: by recent own time (or
 * total), then by that of all. Returns their number. *ret_functions: caller frees; NULL: none, or
 * no memory.
 */
size_t ts_top_functions_list(const struct ts_top_functions *functions, bool by_total, size_t limit,
			     struct ts_top_function **ret_functions);

#endif
