/* SPDX-License-Identifier: Apache-2.0 */
/* Saturating sums and differences of trace times, which may hold any value. */
#ifndef TS_BASE_NS_H
#define TS_BASE_NS_H

#include <stdint.h>

static inline int64_t ts_ns_add(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

static inline int64_t ts_ns_sub(int64_t a, int64_t b)
{
	int64_t difference;

	if (__builtin_sub_overflow(a, b, &difference))
		return a < b ? INT64_MIN : INT64_MAX;
	return difference;
}

static inline int64_t ts_ns_between(int64_t from, int64_t to)
{
	return ts_ns_sub(to, from);
}

#endif
