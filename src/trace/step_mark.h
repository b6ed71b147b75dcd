/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps that a program announces with TS_STEP(): marks whose name and category are TS_STEP_MARK,
 * with the number as an argument of that name.
 */
#ifndef TS_TRACE_STEP_MARK_H
#define TS_TRACE_STEP_MARK_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/reader.h>

#define TS_STEP_MARK "step"

/* Whether a row of `mark` announces a step, and which. `values` are its arguments, or NULL. */
bool ts_step_mark(struct ts_reader *reader, const struct ts_mark_row *mark, const int64_t *values,
		  int64_t *ret_number);

#endif
