/* SPDX-License-Identifier: Apache-2.0 */
/* Times and sizes as text: "500ms", "2m", "64M", "1.5G". */
#ifndef TS_BASE_QUANTITY_H
#define TS_BASE_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/error.h>

/*
 * Parse the value of an option; NULL leaves *value unchanged. They return 0, or TS_EINVAL with a
 * message that begins with the name of the option.
 */

/* Above 0, with a unit. */
int ts_quantity_time(const char *option, const char *text, int64_t *value_ns, struct ts_error *err);

/* The same for an option whose help says SECONDS: a number without a unit is seconds. */
int ts_quantity_seconds(const char *option, const char *text, int64_t *value_ns,
			struct ts_error *err);

/* A time that is a number without a unit is an error; 0 needs none. Part of the above. */
int ts_quantity_check_unit(const char *option, const char *text, struct ts_error *err);

/* Above 0; K M G T (also KB, KiB ...) are powers of 1024; without a unit: bytes. */
int ts_quantity_size(const char *option, const char *text, uint64_t *value_bytes,
		     struct ts_error *err);

/*
 * A time or a size: "10M" is a size, "10m" a time; the unit is required. The other value is
 * unchanged.
 */
int ts_quantity_time_or_size(const char *option, const char *text, int64_t *value_ns,
			     uint64_t *value_bytes, struct ts_error *err);

/*
 * --from and --to, instants of trace time: "1.5ms" after `start`, or "@" and ns; may be negative.
 * Values that are not given (NULL) are unchanged; others saturate at the limits of int64. A range
 * that ends before it begins is an error, and so is one of a single instant, unless the user may
 * ask what happened at an instant.
 */
struct ts_quantity_range {
	const char *from, *to;
	bool may_be_instant;
};

int ts_quantity_range(const struct ts_quantity_range *range, int64_t start, int64_t *from_ns,
		      int64_t *to_ns, struct ts_error *err);

/* What is wrong whatever the start: for a check before a trace is opened. */
int ts_quantity_range_check(const struct ts_quantity_range *range, struct ts_error *err);

#endif
