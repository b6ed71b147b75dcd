/* SPDX-License-Identifier: Apache-2.0 */
/* Doubles to and from decimal text, independent of the locale. */
#ifndef TS_BASE_REAL_H
#define TS_BASE_REAL_H

#include <stddef.h>

#define TS_REAL_BYTES 40

/*
 * Writes a finite double as the shortest of 15 to 17 digits that reads back unchanged, always with
 * a '.' or an 'e'. Returns the length; writes no NUL.
 */
size_t ts_real_format(char buffer[TS_REAL_BYTES], double value);

/*
 * The double nearest to a NUL-terminated decimal number ("-1.5e3"); infinite if too large. Text
 * that is not a number gives an arbitrary value: check it first.
 */
double ts_real_parse(const char *text);

#endif
