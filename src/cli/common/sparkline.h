/* SPDX-License-Identifier: Apache-2.0 */
/* A graph in one line of text: one character per value. */
#ifndef TS_CLI_COMMON_SPARKLINE_H
#define TS_CLI_COMMON_SPARKLINE_H

#include <stddef.h>

#include "base/text.h"

enum ts_sparkline_style {
	TS_SPARKLINE_ASCII,  /* _.:-=+*# */
	TS_SPARKLINE_BLOCKS, /* U+2581 to U+2588 */
};

/* Blocks if LC_ALL, else LC_CTYPE, else LANG is UTF-8. */
enum ts_sparkline_style ts_sparkline_style(void);

/*
 * Appends `count` characters, the lowest for values at `low` and below, the highest at `high` and
 * above. NaN is a blank. If low and high are equal, zeros are low and all others in the middle.
 */
void ts_sparkline_append(struct ts_text *out, enum ts_sparkline_style style, const double *values,
			 size_t count, double low, double high);

/* Minimum and maximum of the values that are not NaN; false: there are none. */
bool ts_sparkline_range(const double *values, size_t count, double *ret_low, double *ret_high);

#endif
