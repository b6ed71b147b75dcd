/* SPDX-License-Identifier: Apache-2.0 */
/* Divides a CPU budget among queries. */
#include "sample/metrics/query_pacing.h"

#include <assert.h>

#include "base/memory.h"

#define SECOND_NS INT64_C(1000000000)
#define MIN_INTERVAL_NS (SECOND_NS / 1000)
#define FIRST_INTERVAL_NS (SECOND_NS / 10)
/* Maximum age of any value, whatever it costs. */
#define LONGEST_PERIOD_NS (10 * SECOND_NS)
/* One slow call among many is ignored, a run of them is not. */
#define SMOOTHING 4.0
#define OUTLIER 8.0

void ts_query_pacing_init(struct ts_query_pacing *pace, const struct ts_query_pacing_item *readings,
			  unsigned int count, double budget)
{
	assert(count <= TS_QUERY_PACING_MAX);
	memset(pace, 0, sizeof(*pace));
	pace->readings = readings;
	pace->count = count;
	pace->budget = budget;
	pace->interval_ns = FIRST_INTERVAL_NS;
	for (unsigned int i = 0; i < count; i++)
		pace->period_ns[i] = readings[i].every_ns;
}

static int64_t wanted_period(const struct ts_query_pacing *pace, unsigned int reading)
{
	return TS_MAX(pace->readings[reading].every_ns, pace->interval_ns);
}

/* CPU share of a query of all devices at the wanted rate. */
static double wanted_load(const struct ts_query_pacing *pace, unsigned int reading,
			  unsigned int devices)
{
	return pace->cost_ns[reading] * devices / (double)wanted_period(pace, reading);
}

static int64_t affordable_period(double cost_ns, double load)
{
	double period = load > 0 ? cost_ns / load : (double)LONGEST_PERIOD_NS;

	return period < (double)LONGEST_PERIOD_NS ? (int64_t)period : LONGEST_PERIOD_NS;
}

/*
 * Queries that want no more than their share of the rest get what they want, which leaves more for
 * the others; when no such query is left, the others get their share.
 */
static void divide(struct ts_query_pacing *pace, unsigned int devices)
{
	double left = pace->budget, weights = 0;
	bool is_settled[TS_QUERY_PACING_MAX] = { false }, has_changed = true;

	for (unsigned int i = 0; i < pace->count; i++)
		weights += pace->readings[i].weight;
	while (has_changed) {
		has_changed = false;
		for (unsigned int i = 0; i < pace->count; i++) {
			double load = wanted_load(pace, i, devices);
			unsigned int weight = pace->readings[i].weight;

			if (is_settled[i] || load * weights > left * weight)
				continue;
			is_settled[i] = has_changed = true;
			pace->period_ns[i] = pace->readings[i].every_ns;
			left -= load;
			weights -= weight;
		}
	}
	for (unsigned int i = 0; i < pace->count; i++) {
		double part = left * pace->readings[i].weight / weights;
		int64_t period;

		if (is_settled[i])
			continue;
		period = affordable_period(pace->cost_ns[i] * devices, part);
		pace->period_ns[i] = TS_MAX(period, pace->readings[i].every_ns);
	}
}

void ts_query_pacing_begin(struct ts_query_pacing *pace, int64_t now_ns, unsigned int devices)
{
	if (pace->now_ns)
		pace->interval_ns = TS_MAX(now_ns - pace->now_ns, MIN_INTERVAL_NS);
	pace->now_ns = now_ns;
	pace->samples++;
	divide(pace, devices);
}

bool ts_query_pacing_is_due(const struct ts_query_pacing *pace, unsigned int reading,
			    int64_t *last_ns)
{
	int64_t due_ns = *last_ns + pace->period_ns[reading], half_ns = pace->interval_ns / 2;

	/* Half an interval early is closer than half an interval late. */
	if (*last_ns && pace->now_ns + half_ns < due_ns)
		return false;
	/* Relative to its deadline, so that the mean is right; missed ones are not made up for. */
	*last_ns = *last_ns && pace->now_ns - due_ns <= half_ns ? due_ns : pace->now_ns;
	return true;
}

void ts_query_pacing_add_cost(struct ts_query_pacing *pace, unsigned int reading, int64_t cost_ns)
{
	double *mean = &pace->cost_ns[reading], cost = (double)TS_MAX(cost_ns, 0);

	/* A first query may take much longer than later ones. */
	if (pace->samples <= 1)
		return;
	if (*mean <= 0)
		*mean = cost;
	else
		*mean += (TS_MIN(cost, *mean * OUTLIER) - *mean) / SMOOTHING;
}
