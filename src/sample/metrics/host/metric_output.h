/* SPDX-License-Identifier: Apache-2.0 */
/* Writes optional values to a metrics sink. For the files behind host_metrics.h. */
#ifndef TS_SAMPLE_METRICS_HOST_METRIC_OUTPUT_H
#define TS_SAMPLE_METRICS_HOST_METRIC_OUTPUT_H

#include <tracesmith/metrics.h>

#include "base/procfs.h"

/*
 * Minimum interval of values that are expensive or change slowly. Just below a second, so that
 * deadlines one second apart are always due.
 */
#define TS_SLOW_INTERVAL_NS INT64_C(950000000)

/* Destination of a sample's values. */
struct ts_metric_output {
	const struct ts_metrics_sink *sink;
	const struct ts_metrics_subject *subject;
	int64_t now_ns;
};

/* A level: `value` times `factor`, unless missing or out of range. */
static inline void ts_metric_output_amount(const struct ts_metric_output *give, const char *name,
					   const char *series, uint64_t value, uint64_t factor)
{
	int64_t amount;

	if (value != TS_NO_VALUE && !__builtin_mul_overflow(value, factor, &amount))
		give->sink->integer(give->sink->context, give->subject, name, series, amount);
}

/* A counter: its growth per second, times `factor`. */
static inline void ts_metric_output_rate(const struct ts_metric_output *give, const char *name,
					 const char *series, struct ts_rate *rate, uint64_t value,
					 double factor)
{
	double per_second;

	if (ts_rate_next(rate, value, give->now_ns, &per_second))
		give->sink->real(give->sink->context, give->subject, name, series,
				 per_second * factor);
}

static inline void ts_metric_output_real(const struct ts_metric_output *give, const char *name,
					 const char *series, double value)
{
	give->sink->real(give->sink->context, give->subject, name, series, value);
}

#endif
