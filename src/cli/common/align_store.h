/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was found out about the clocks of a trace, stored in it: rows of clock_sync of the next
 * generation, appended (docs/format.md, section 6). No row changes, and a kill at any instant
 * leaves all of them readable.
 */
#ifndef TS_CLI_COMMON_ALIGN_STORE_H
#define TS_CLI_COMMON_ALIGN_STORE_H

#include <tracesmith/reader.h>

#include "state/clocks/clock_alignment.h"

/* A clock of the trace, and how its trace time must be moved. */
struct ts_align_clock {
	uint32_t clock;
	struct ts_clock_estimate estimate;
};

/*
 * 0 where rows can be appended to the file, or to a copy of it; says what to do where not. `reader`
 * is of the same file.
 */
int ts_align_check(const char *path, const struct ts_reader *reader, bool in_place,
		   struct ts_error *err);

/*
 * Appends. Clocks that were aligned before and still are, as far as can be told, are left out;
 * *ret_stored is how many were not. Signals wait until it is done.
 */
int ts_align_store(const char *path, struct ts_reader *reader, const struct ts_align_clock *clocks,
		   size_t count, size_t *ret_stored, struct ts_error *err);

/* Copies a trace; what is left behind on failure is removed. */
int ts_align_copy(const char *from, const char *to, struct ts_error *err);

#endif
