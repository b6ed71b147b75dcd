/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of a simulation against the recording: the span, and the start of each command. */
#include "base/ns.h"
#include "replay/emulator/emulator.h"

static int64_t recorded_span(const struct ts_work *work)
{
	int64_t first = INT64_MAX, last = INT64_MIN;

	for (uint32_t i = 0; i < work->command_count; i++) {
		first = TS_MIN(first, work->commands[i].start);
		last = TS_MAX(last, TS_MAX(work->commands[i].end, work->commands[i].start));
	}
	return first > last ? 0 : last - first;
}

static int64_t simulated_span(const struct ts_emulator_times *times, uint32_t commands)
{
	const struct ts_emulator_model model = { .command_count = commands };

	return ts_emulator_span(&model, times);
}

static int compare_distances(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return TS_COMPARE(left, right);
}

/* The value that a `share` of the sorted values does not exceed. */
static double quantile(const int64_t *sorted, uint32_t count, double share, double span)
{
	uint32_t at = (uint32_t)((double)(count - 1) * share + 0.5);

	return (double)sorted[at] / span;
}

int ts_emulator_errors(struct ts_emulator_errors *ret_errors, const struct ts_work *work,
		       const struct ts_emulator_times *times, struct ts_error *err)
{
	uint32_t count = work->command_count;
	TS_AUTO_FREE int64_t *distances = ts_alloc_array(count, sizeof(*distances));
	struct ts_emulator_errors errors = { .recorded_span_ns = recorded_span(work),
					     .span_ns = simulated_span(times, count) };
	double span = (double)TS_MAX(errors.recorded_span_ns, 1);

	if (!distances)
		return ts_error_set(err, TS_ENOMEM, "no memory for the emulator");
	errors.span = ((double)errors.span_ns - (double)errors.recorded_span_ns) / span;
	for (uint32_t i = 0; i < count; i++) {
		int64_t distance = ts_ns_sub(times->start[i], work->commands[i].start);

		distances[i] = distance < 0 ? ts_ns_sub(0, distance) : distance;
	}
	ts_sort(distances, count, sizeof(*distances), compare_distances);
	if (count) {
		errors.p50 = quantile(distances, count, 0.5, span);
		errors.p95 = quantile(distances, count, 0.95, span);
		errors.max = quantile(distances, count, 1.0, span);
	}
	*ret_errors = errors;
	return TS_OK;
}
