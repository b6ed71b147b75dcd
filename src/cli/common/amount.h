/* SPDX-License-Identifier: Apache-2.0 */
/* Times and sizes as option values: "500ms", "2m", "10", "64M", "1.5G". */
#ifndef TS_CLI_COMMON_AMOUNT_H
#define TS_CLI_COMMON_AMOUNT_H

#include <stdint.h>

/*
 * Parse the value of an option; NULL leaves *value unchanged. They return 0, or report the error
 * with the option's name and return TS_EXIT_USAGE.
 */

/* Above 0; without a unit: seconds. */
int ts_amount_time(const char *option, const char *text, int64_t *value_ns);

/* Above 0; K M G T (also KB, KiB ...) are powers of 1024; without a unit: bytes. */
int ts_amount_size(const char *option, const char *text, uint64_t *value_bytes);

/*
 * A time or a size: "10M" is a size, "10m" a time; the unit is required. The other value is
 * unchanged.
 */
int ts_amount_time_or_size(const char *option, const char *text, int64_t *value_ns,
			   uint64_t *value_bytes);

/*
 * An instant of trace time: "1.5ms" after `start`, or "@" and ns; may be negative. Saturates at the
 * limits of int64.
 */
int ts_amount_instant(const char *option, const char *text, int64_t start, int64_t *value_ns);

#endif
