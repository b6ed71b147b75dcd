/* SPDX-License-Identifier: Apache-2.0 */
/* Typical latencies of a device: twice the median of the samples (docs/state.md). */
#include "base/memory.h"
#include "state/states/states_internal.h"

#define LEAST_SAMPLES 16u
#define LEAST_NS 1000
#define LAUNCH_NS 20000
#define NEXT_NS 5000

static int compare(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return left < right ? -1 : left > right;
}

static int64_t usual(int64_t *values, uint32_t count, int64_t tolerance_ns, int64_t otherwise)
{
	int64_t median;

	if (count < LEAST_SAMPLES)
		return TS_MAX(otherwise, 2 * tolerance_ns);
	ts_sort(values, count, sizeof(*values), compare);
	median = values[(count - 1) / 2];
	return TS_MAX(TS_MAX(ts_ns_add(median, median), LEAST_NS), 2 * tolerance_ns);
}

void ts_states_estimate_latency(struct ts_latency_samples *samples, int64_t tolerance_ns,
				struct ts_state_latency *ret_latency)
{
	*ret_latency = (struct ts_state_latency){
		.launch_ns = usual(samples->launch, samples->launch_count, tolerance_ns, LAUNCH_NS),
		.next_ns = usual(samples->next, samples->next_count, tolerance_ns, NEXT_NS),
		.launch_samples = samples->launch_count,
		.next_samples = samples->next_count,
	};
}
