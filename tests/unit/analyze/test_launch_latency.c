/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch on small traces: graphs, calls without kernels, kernels without calls, clocks that
 * disagree.
 */
#include "unit/analyze/analyze_support.h"

#define LAUNCH \
	"rank correlation cpu_duration_us gpu_duration_us launch_delay_us since_call_us commands"
#define SUMS "launches commands cpu_sum_us gpu_sum_us delay_sum_us"

TS_TEST(the_longest_delay_comes_first)
{
	const char *events = CALL("10", "2", "1") KERNEL("a", "7", "15", "5", "1")
		CALL("20", "4", "2") KERNEL("b", "7", "40.5", "1", "2");

	CHECK_EXACT(launch_latency, events, "launches", LAUNCH " name",
		    "0 2 4000 1000 16500 20500 1 b\n"
		    "0 1 2000 5000 3000 5000 1 a\n");
	CHECK_EXACT(launch_latency, events, "summary", SUMS " delay_median_us delay_max_us",
		    "2 2 6000 6000 19500 9750 16500\n");
}

TS_TEST(a_kernel_that_begins_during_its_call_has_no_delay)
{
	const char *events = CALL("10", "20", "1") KERNEL("a", "7", "15", "5", "1");

	CHECK_EXACT(launch_latency, events, "launches", LAUNCH, "0 1 20000 5000 0 5000 1\n");
}

TS_TEST(a_graph_is_one_launch_and_unknown_to_hta)
{
	/* Its commands run concurrently and in any order: the first one ends the delay. */
	const char *events = NAMED_CALL("cudaGraphLaunch", "10", "5", "1")
		KERNEL("late", "7", "40", "1", "1") KERNEL("a", "7", "20", "10", "1")
			KERNEL("b", "8", "22", "30", "1");

	CHECK_EXACT(launch_latency, events, "launches", LAUNCH " name",
		    "0 1 5000 41000 5000 10000 3 a\n");
	CHECK_EXACT(launch_latency, events, "summary", SUMS, "1 3 5000 41000 5000\n");
	CHECK_HTA(launch_latency, events, "launches", LAUNCH, "");
}

TS_TEST(several_kernels_of_a_launch_are_pairs_for_hta)
{
	/* HTA's sum of host time counts the call twice; ours does not. */
	const char *events = CALL("10", "5", "1") KERNEL("a", "7", "20", "10", "1")
		KERNEL("b", "7", "30", "10", "1");

	CHECK_EXACT(launch_latency, events, "summary", SUMS, "1 2 5000 20000 5000\n");
	CHECK_HTA(launch_latency, events, "summary", SUMS, "2 2 10000 20000 20000\n");
}

TS_TEST(what_has_no_partner_is_left_out_and_told)
{
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE,
		   CALL("10", "5", "1") CALL("20", "5", "2") KERNEL("a", "7", "30", "1", "2")
			   KERNEL("orphan", "7", "50", "1", "99"),
		   NULL);
	run_analysis(&analyzed, &ts_analysis_launch_latency);
	CHECK_ROWS(&analyzed, "launches", "correlation name", "2 a\n");
	TS_CHECK(has_note(&analyzed.result, "left out: 1 command without a call"));
	TS_CHECK(has_note(&analyzed.result, "left out: 1 launch without device time"));
	release_analyzed(&analyzed);
}

TS_TEST(limits_are_what_was_asked_for)
{
	const char *events = CALL("0", "1", "1") KERNEL("a", "7", "1", "3", "1")
		CALL("10", "60", "2") KERNEL("b", "7", "75", "9", "2") CALL("80", "5", "3")
			KERNEL("c", "7", "300", "20", "3");
	struct analyzed analyzed;

	CHECK_EXACT(launch_latency, events, "summary",
		    "short_kernels launch_longer slow_calls long_delays", "2 1 1 1\n");
	load_ranks(&analyzed, TS_ROUNDING_NONE, events, NULL);
	analyzed.request.options.short_ns = 9000; /* 9 us is not below it */
	analyzed.request.options.delay_ns = 4999;
	run_analysis(&analyzed, &ts_analysis_launch_latency);
	CHECK_ROWS(&analyzed, "summary", "short_kernels long_delays", "1 2\n");
	release_analyzed(&analyzed);
}

TS_TEST(each_rank_has_its_own_sums)
{
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE, CALL("0", "1", "1") KERNEL("a", "7", "3", "3", "1"),
		   CALL("0", "2", "1") KERNEL("a", "7", "4", "4", "1") CALL("10", "2", "2")
			   KERNEL("a", "7", "20", "4", "2"));
	run_analysis(&analyzed, &ts_analysis_launch_latency);
	CHECK_ROWS(&analyzed, "summary", "rank " SUMS,
		   "0 1 1 1000 3000 2000\n"
		   "1 2 2 4000 8000 10000\n");
	CHECK_ROWS(&analyzed, "launches", "rank correlation launch_delay_us",
		   "1 2 8000\n0 1 2000\n1 1 2000\n");
	release_analyzed(&analyzed);
}

TS_TEST(hta_knows_few_calls)
{
	const char *events = NAMED_CALL("cuLaunchKernel", "0", "1", "1")
		KERNEL("a", "7", "3", "3", "1") NAMED_CALL("hipLaunchKernel", "10", "1", "2")
			KERNEL("a", "7", "13", "3", "2")
				NAMED_CALL("cudaMemcpyAsync", "20", "1", "3")
					COPY("7", "23", "3", "3");

	CHECK_EXACT(launch_latency, events, "summary", "launches", "3\n");
	CHECK_HTA(launch_latency, events, "summary", "launches", "1\n");
	/* HTA's rounding: the call lasts from 0.2 to 1.9, which becomes 1 to 1. */
	CHECK_HTA(launch_latency, CALL("0.2", "1.7", "1") KERNEL("a", "7", "3.5", "3", "1"),
		  "launches", LAUNCH, "0 1 0 2000 3000 3000 1\n");
}

TS_TEST(times_at_the_ends_of_what_there_is)
{
	/* Values in us near 2^63 ns: nothing may overflow. */
	const char *events = CALL("-9223372036854774", "1", "1")
		KERNEL("a", "7", "9223372036854774", "9223372036854774", "1")
			CALL("9223372036854774", "9223372036854774", "2")
				KERNEL("b", "7", "-9223372036854774", "5", "2");

	CHECK_EXACT(launch_latency, events, "summary", "launches commands", "2 2\n");
	CHECK_EXACT(queue, events, "summary", "commands", "2\n");
	CHECK_EXACT(bandwidth, events, "bandwidth", "copies", "");
}

TS_TEST(without_devices_there_is_nothing_to_tell)
{
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE, OP("aten::add", "10", "5"), NULL);
	run_analysis(&analyzed, &ts_analysis_launch_latency);
	CHECK_ROWS(&analyzed, "summary", "rank", "");
	CHECK_ROWS(&analyzed, "launches", "rank", "");
	TS_CHECK(has_note(&analyzed.result, "no device activity"));
	release_analyzed(&analyzed);
}
