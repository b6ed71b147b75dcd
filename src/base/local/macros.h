/* SPDX-License-Identifier: Apache-2.0 */
/* Macros that every file wants, including those inside observed programs. */
#ifndef TS_BASE_LOCAL_MACROS_H
#define TS_BASE_LOCAL_MACROS_H

#include <stddef.h>

#define TS_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define TS_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#define TS_ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* Plain expressions, so that they nest and work in constants. Arguments are evaluated twice. */
#define TS_MIN(a, b) ((a) < (b) ? (a) : (b))
#define TS_MAX(a, b) ((a) > (b) ? (a) : (b))
/* For comparison functions: below, above or equal to 0 as a is to b. */
#define TS_COMPARE(a, b) ((a) < (b) ? -1 : (a) > (b))

#endif
