/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores clock estimates in a trace: appends clock_sync rows of the next generation
 * (docs/format.md, section 6). Existing rows do not change, and stay readable if the process is
 * killed.
 */
#ifndef TS_STATE_CLOCKS_CLOCK_STORE_H
#define TS_STATE_CLOCKS_CLOCK_STORE_H

#include <tracesmith/reader.h>

#include "state/clocks/clock_alignment.h"

/* A clock of the trace, and the correction of its time. */
struct ts_clock_store_entry {
	uint32_t clock;
	struct ts_clock_estimate estimate;
};

/* Can rows be appended to the file, or (not in_place) to a copy? `reader` has it open. */
int ts_clock_store_check(const char *path, const struct ts_reader *reader, bool in_place,
			 struct ts_error *err);

/*
 * Appends the estimates. Clocks that an earlier alignment still fits, within its uncertainty, are
 * skipped; *ret_stored is the number of the others. Signals are blocked meanwhile.
 */
int ts_clock_store_append(const char *path, struct ts_reader *reader,
			  const struct ts_clock_store_entry *clocks, size_t count,
			  size_t *ret_stored, struct ts_error *err);

/*
 * Copies a trace; removes the copy on failure. Asks `is_canceled` (may be NULL) now and then, and
 * fails with TS_ECANCELED when that returns non-zero.
 */
int ts_clock_store_copy(const char *from, const char *to, int (*is_canceled)(void),
			struct ts_error *err);

#endif
