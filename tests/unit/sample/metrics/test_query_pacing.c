/* SPDX-License-Identifier: Apache-2.0 */
/* Dividing a budget: cheap queries get what they want, the others share the rest. Time is fake. */
#include "sample/metrics/query_pacing.h"

#include "base/clock.h"
#include "unit/runner.h"

#define MS INT64_C(1000000)

static const struct ts_query_pacing_item readings[] = {
	{ 0, 2 },
	{ 1000 * MS, 1 },
	{ 0, 1 },
};

/* How often each query runs in ten seconds of 100 ms, with these costs. */
static void run(const int64_t cost_ns[3], unsigned int devices, unsigned int ret_times[3])
{
	struct ts_query_pacing pace;
	int64_t last_ns[3] = { 0 };

	ts_query_pacing_init(&pace, readings, 3, 0.004);
	for (int i = 0; i < 3; i++)
		ret_times[i] = 0;
	for (int64_t now = 5000 * MS; now < 15000 * MS; now += 100 * MS) {
		ts_query_pacing_begin(&pace, now, devices);
		for (unsigned int i = 0; i < 3; i++) {
			if (!ts_query_pacing_is_due(&pace, i, &last_ns[i]))
				continue;
			ret_times[i]++;
			ts_query_pacing_add_cost(&pace, i, cost_ns[i]);
		}
	}
}

TS_TEST(cheap_ones_are_as_often_as_wanted)
{
	unsigned int times[3];

	run((const int64_t[]){ 10000, 20000, 10000 }, 8, times);
	TS_CHECK_INT(times[0], 100);
	TS_CHECK_INT(times[1], 10);
	TS_CHECK_INT(times[2], 100);
}

TS_TEST(a_dear_one_does_not_hurt_the_others)
{
	unsigned int times[3];

	/* 5 ms of CPU every 100 ms would be twelve times the budget. */
	run((const int64_t[]){ 10000, 20000, 5 * MS }, 1, times);
	TS_CHECK_INT(times[0], 100);
	TS_CHECK_INT(times[1], 10);
	TS_CHECK(times[2] >= 5 && times[2] <= 12);
}

TS_TEST(the_budget_is_kept)
{
	const int64_t costs[] = { 2 * MS, 3 * MS, MS };
	unsigned int times[3];
	int64_t spent = 0;

	run(costs, 1, times);
	for (int i = 0; i < 3; i++)
		spent += times[i] * costs[i];
	/*
	 * 40 ms in ten seconds, plus the first two samples, whose cost is unknown, and one reading
	 * of each in progress.
	 */
	TS_CHECK(spent <= 40 * MS + 3 * 6 * MS);
	TS_CHECK(times[0] > 1 && times[1] > 1 && times[2] > 1);
}

TS_TEST(nothing_is_older_than_ten_seconds)
{
	unsigned int times[3];

	run((const int64_t[]){ 1000 * MS, 1000 * MS, 1000 * MS }, 64, times);
	TS_CHECK_INT(times[0], 2);
	run((const int64_t[]){ 0, 0, 0 }, 64, times);
	TS_CHECK_INT(times[0], 100);
}

TS_TEST(the_first_time_and_one_outlier_are_no_news)
{
	struct ts_query_pacing pace;
	int64_t last_ns = 0;

	ts_query_pacing_init(&pace, readings, 3, 0.004);
	ts_query_pacing_begin(&pace, 900 * MS, 1);
	ts_query_pacing_add_cost(&pace, 0, 5000 * MS);
	ts_query_pacing_begin(&pace, 1000 * MS, 1);
	for (int i = 0; i < 20; i++)
		ts_query_pacing_add_cost(&pace, 0, 10000);
	ts_query_pacing_add_cost(&pace, 0, 1000 * MS);
	ts_query_pacing_begin(&pace, 1100 * MS, 1);
	TS_CHECK(ts_query_pacing_is_due(&pace, 0, &last_ns));
	TS_CHECK_INT(pace.period_ns[0], 0);
}

TS_TEST(what_was_missed_is_not_made_up_for)
{
	struct ts_query_pacing pace;
	int64_t last_ns = 0;

	ts_query_pacing_init(&pace, readings, 3, 0.004);
	ts_query_pacing_begin(&pace, 1000 * MS, 1);
	TS_CHECK(ts_query_pacing_is_due(&pace, 1, &last_ns));
	ts_query_pacing_begin(&pace, 1100 * MS, 1);
	TS_CHECK(!ts_query_pacing_is_due(&pace, 1, &last_ns));
	ts_query_pacing_begin(&pace, 60000 * MS, 1);
	TS_CHECK(ts_query_pacing_is_due(&pace, 1, &last_ns));
	ts_query_pacing_begin(&pace, 60100 * MS, 1);
	TS_CHECK(!ts_query_pacing_is_due(&pace, 1, &last_ns));
}

TS_TEST(the_clock_counts_work)
{
	int64_t from = ts_clock_thread_cpu_ns();
	volatile uint64_t sum = 0;

	for (int i = 0; i < 3000000; i++)
		sum += (uint64_t)i;
	TS_CHECK(sum > 0);
	TS_CHECK(ts_clock_thread_cpu_ns() > from);
}
