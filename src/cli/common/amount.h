/* SPDX-License-Identifier: Apache-2.0 */
/* Times and sizes as option values: "500ms", "2m", "64M", "1.5G". */
#ifndef TS_CLI_COMMON_AMOUNT_H
#define TS_CLI_COMMON_AMOUNT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Parse the value of an option; NULL leaves *value unchanged. They return 0, or report the error
 * with the option's name and return TS_EXIT_USAGE.
 */

/* Above 0, with a unit. */
int ts_amount_time(const char *option, const char *text, int64_t *value_ns);

/* The same for an option whose help says SECONDS: a number without a unit is seconds. */
int ts_amount_seconds(const char *option, const char *text, int64_t *value_ns);

/* Reports a time that is a number without a unit; 0 needs none. Part of the above. */
int ts_amount_check_unit(const char *option, const char *text);

/* Above 0; K M G T (also KB, KiB ...) are powers of 1024; without a unit: bytes. */
int ts_amount_size(const char *option, const char *text, uint64_t *value_bytes);

/*
 * A time or a size: "10M" is a size, "10m" a time; the unit is required. The other value is
 * unchanged.
 */
int ts_amount_time_or_size(const char *option, const char *text, int64_t *value_ns,
			   uint64_t *value_bytes);

/*
 * --from and --to, instants of trace time: "1.5ms" after `start`, or "@" and ns; may be negative.
 * Values that are not given (NULL) are unchanged; others saturate at the limits of int64. A range
 * that ends before it begins is an error, and so is one of a single instant, unless the verb shows
 * what happened at an instant.
 */
struct ts_amount_range {
	const char *from, *to;
	bool may_be_instant;
};

int ts_amount_range(const struct ts_amount_range *range, int64_t start, int64_t *from_ns,
		    int64_t *to_ns);

/* Reports what is wrong whatever the start: call it before a trace is opened. */
int ts_amount_range_check(const struct ts_amount_range *range);

#endif
