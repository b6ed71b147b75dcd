/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measured LTTng-UST tracepoint: a 64-bit integer and a string. LTTng includes this header
 * twice.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER tracesmith_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_probe.h"

#if !defined(TS_BENCH_LTTNG_PROBE_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define TS_BENCH_LTTNG_PROBE_H

#include <lttng/tracepoint.h>

/* clang-format off */
/* cppcheck-suppress unknownMacro */
LTTNG_UST_TRACEPOINT_EVENT(
	tracesmith_bench, token,
	LTTNG_UST_TP_ARGS(uint64_t, n, const char *, category),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(uint64_t, n, n)
		lttng_ust_field_string(category, category)
	)
)
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
