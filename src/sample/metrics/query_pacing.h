/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often each query of a device is made. Costs differ a thousandfold between devices and
 * drivers, so they are measured: as long as all queries fit a CPU budget they are made as often as
 * wanted; beyond that, expensive ones less often.
 */
#ifndef TS_SAMPLE_METRICS_QUERY_PACING_H
#define TS_SAMPLE_METRICS_QUERY_PACING_H

#include <stdbool.h>
#include <stdint.h>

#define TS_QUERY_PACING_MAX 16u

struct ts_query_pacing_item {
	int64_t every_ns;    /* wanted; 0: each sample */
	unsigned int weight; /* its share of the rest if not all fit; above 0 */
};

struct ts_query_pacing {
	const struct ts_query_pacing_item *readings; /* borrowed */
	unsigned int count;
	double budget; /* CPU time per time */
	uint64_t samples;
	int64_t now_ns;
	int64_t interval_ns; /* between the last two samples */
	/* Of one query of one device, smoothed; 0: unknown. */
	double cost_ns[TS_QUERY_PACING_MAX];
	int64_t period_ns[TS_QUERY_PACING_MAX];
};

void ts_query_pacing_init(struct ts_query_pacing *pace, const struct ts_query_pacing_item *readings,
			  unsigned int count, double budget);

/* Starts a sample. `devices`: how many are read. */
void ts_query_pacing_begin(struct ts_query_pacing *pace, int64_t now_ns, unsigned int devices);

/*
 * Whether to make a query of one device in this sample. *last_ns belongs to that device and query
 * and starts at 0: the first sample makes all.
 */
bool ts_query_pacing_is_due(const struct ts_query_pacing *pace, unsigned int reading,
			    int64_t *last_ns);

/* Adds the measured cost of one query. */
void ts_query_pacing_add_cost(struct ts_query_pacing *pace, unsigned int reading, int64_t cost_ns);

#endif
