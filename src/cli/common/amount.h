/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times and sizes as option values (base/quantity.h): each function returns 0, or reports the error
 * and returns TS_EXIT_USAGE. NULL leaves *value unchanged.
 */
#ifndef TS_CLI_COMMON_AMOUNT_H
#define TS_CLI_COMMON_AMOUNT_H

#include "base/quantity.h"

int ts_amount_time(const char *option, const char *text, int64_t *value_ns);
int ts_amount_seconds(const char *option, const char *text, int64_t *value_ns);
int ts_amount_check_unit(const char *option, const char *text);
int ts_amount_size(const char *option, const char *text, uint64_t *value_bytes);
int ts_amount_time_or_size(const char *option, const char *text, int64_t *value_ns,
			   uint64_t *value_bytes);
int ts_amount_range(const struct ts_quantity_range *range, int64_t start, int64_t *from_ns,
		    int64_t *to_ns);

/* Reports what is wrong whatever the start: call it before a trace is opened. */
int ts_amount_range_check(const struct ts_quantity_range *range);

#endif
