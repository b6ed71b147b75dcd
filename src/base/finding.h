/* SPDX-License-Identifier: Apache-2.0 */
/* Fills in struct ts_finding of <tracesmith/backend.h>, the result of a check. */
#ifndef TS_BASE_FINDING_H
#define TS_BASE_FINDING_H

#include <stddef.h>

#include <tracesmith/backend.h>
#include <tracesmith/error.h>

#define TS_FINDING_TEXT_BYTES sizeof(((struct ts_finding *)NULL)->text)

/* All truncate what is too long. */
void ts_finding_set(struct ts_finding *finding, enum ts_check_state state, const char *format, ...)
	TS_PRINTF_LIKE(3, 4);
void ts_finding_fix(struct ts_finding *finding, const char *format, ...) TS_PRINTF_LIKE(2, 3);
void ts_finding_note(struct ts_finding *finding, const char *format, ...) TS_PRINTF_LIKE(2, 3);

/* "yes", "limited", "no", "absent", "unknown". */
const char *ts_check_state_name(enum ts_check_state state);

/* "EPERM", or the number. */
const char *ts_errno_name(int error);

#endif
