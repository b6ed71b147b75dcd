/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often each thing of a device is asked for. What a question costs differs a thousandfold
 * between devices and drivers, so it is measured: as long as all of them fit into a budget of CPU
 * time they are asked as often as wanted, then the dear ones less often.
 */
#ifndef TS_SAMPLE_METRICS_QUERY_PACING_H
#define TS_SAMPLE_METRICS_QUERY_PACING_H

#include <stdbool.h>
#include <stdint.h>

#define TS_QUERY_PACING_MAX 16u

struct ts_query_pacing_item {
	int64_t every_ns;    /* wanted; 0: each sample */
	unsigned int weight; /* its part of what is left when not all fit; above 0 */
};

struct ts_query_pacing {
	const struct ts_query_pacing_item *readings; /* borrowed */
	unsigned int count;
	double budget; /* CPU time for time */
	uint64_t samples;
	int64_t now_ns;
	int64_t interval_ns; /* between the last two samples */
	/* Of one reading of one device, smoothed; 0: not known yet. */
	double cost_ns[TS_QUERY_PACING_MAX];
	int64_t period_ns[TS_QUERY_PACING_MAX];
};

void ts_query_pacing_init(struct ts_query_pacing *pace, const struct ts_query_pacing_item *readings,
			  unsigned int count, double budget);

/* A sample begins. `devices`: how many are read. */
void ts_query_pacing_begin(struct ts_query_pacing *pace, int64_t now_ns, unsigned int devices);

/*
 * Whether a reading of one device is to be made in this sample. *last_ns belongs to that device and
 * reading and begins as 0: the first sample has all.
 */
bool ts_query_pacing_is_due(const struct ts_query_pacing *pace, unsigned int reading,
			    int64_t *last_ns);

/* What one reading took. */
void ts_query_pacing_add_cost(struct ts_query_pacing *pace, unsigned int reading, int64_t cost_ns);

/* CPU time of the calling thread. */
int64_t ts_query_pacing_clock_ns(void);

#endif
