/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions by time: own time if innermost, total time if anywhere on the stack. For the last
 * interval and overall. Not thread-safe.
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
	int64_t self_ns, total_ns;
	int64_t recent_self_ns, recent_total_ns; /* of the last complete interval */
	/* For counting. */
	int64_t turn_self_ns, turn_total_ns; /* of the current interval */
	uint64_t stack;                      /* the last one that contained it */
};

struct ts_top_functions {
	struct ts_strmap names;
	struct ts_top_function *functions; /* by number */
	size_t count, capacity;
	uint64_t stacks;
};

#define TS_TOP_NO_FUNCTION UINT32_MAX

/* A zeroed struct does not work. */
void ts_top_functions_init(struct ts_top_functions *functions);
void ts_top_functions_release(struct ts_top_functions *functions);

/* The number of a function; TS_TOP_NO_FUNCTION: no memory. */
uint32_t ts_top_functions_intern(struct ts_top_functions *functions, const char *name,
				 const char *file, int32_t line);

/* Starts a stack that counts for `weight_ns`; then add its frames, innermost first. */
void ts_top_functions_begin(struct ts_top_functions *functions);
void ts_top_functions_frame(struct ts_top_functions *functions, uint32_t number, bool is_innermost,
			    int64_t weight_ns);

/* Ends an interval: its times become the recent times. */
void ts_top_functions_turn(struct ts_top_functions *functions);
/* Drops all times. */
void ts_top_functions_clear(struct ts_top_functions *functions);

/*
 * Copies the first `limit` functions with any time, largest first: by recent own time (or total),
 * then overall. Returns their number. *ret_functions: caller frees; NULL: none, or no memory.
 */
size_t ts_top_functions_list(const struct ts_top_functions *functions, bool by_total, size_t limit,
			     struct ts_top_function **ret_functions);

#endif
