/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue on small traces: over time and point by point, graphs, equal times, clocks that disagree.
 */
#include "unit/analyze/analyze_support.h"

#define SERIES "stream time_ns queue_length"

TS_TEST(the_mean_goes_by_time_and_hta_by_points)
{
	/* 1 for 10 us, 2 for 10 us, 1 for 80 us. */
	const char *events = CALL("0", "1", "1") CALL("10", "1", "2")
		KERNEL("a", "7", "20", "80", "1") KERNEL("b", "7", "100", "5", "2");

	CHECK_EXACT(queue, events, "timeline", SERIES, "7 0 1\n7 10000 2\n7 20000 1\n7 100000 0\n");
	CHECK_EXACT(queue, events, "summary",
		    "rank device stream commands time_mean peak peak_ns span_us empty_us",
		    "0 0 7 2 1.100 2 10000 100000 0\n");
	CHECK_EXACT(queue, events, "summary",
		    "points point_mean point_std point_min point_q25 point_median point_q75 "
		    "point_max",
		    "4 1.000 0.816 0.000 0.750 1.000 1.250 2.000\n");
}

TS_TEST(time_in_which_it_is_full)
{
	const char *events = CALL("0", "1", "1") CALL("10", "1", "2") CALL("15", "1", "3")
		KERNEL("a", "7", "20", "80", "1") KERNEL("b", "7", "100", "5", "2")
			KERNEL("c", "7", "110", "5", "3");
	struct analyzed analyzed;

	CHECK_EXACT(queue, events, "summary", "full_us full_pct", "0 0.000\n");
	load_ranks(&analyzed, TS_ROUNDING_NONE, events, NULL);
	analyzed.request.options.full = 2;
	run_analysis(&analyzed, &ts_analysis_queue);
	CHECK_ROWS(&analyzed, "summary", "full_us full_pct", "90000 81.818\n");
	release_analyzed(&analyzed);
}

TS_TEST(what_comes_in_at_the_same_instant_comes_first)
{
	const char *events = CALL("0", "1", "1") CALL("20", "1", "2")
		KERNEL("a", "7", "20", "5", "1") KERNEL("b", "7", "30", "5", "2");

	CHECK_EXACT(queue, events, "timeline", SERIES, "7 0 1\n7 20000 2\n7 20000 1\n7 30000 0\n");
}

TS_TEST(a_graph_comes_in_at_once_and_is_unknown_to_hta)
{
	const char *events = NAMED_CALL("cudaGraphLaunch", "10", "5", "1")
		KERNEL("a", "7", "20", "10", "1") KERNEL("b", "8", "22", "30", "1")
			KERNEL("c", "7", "40", "1", "1");

	CHECK_EXACT(queue, events, "timeline", SERIES,
		    "7 10000 1\n7 10000 2\n7 20000 1\n7 40000 0\n8 10000 1\n8 22000 0\n");
	CHECK_HTA(queue, events, "timeline", SERIES, "");
}

TS_TEST(a_command_that_began_too_early_waits_for_nothing)
{
	/* The device's clock is behind: HTA counts a negative number of waiting commands. */
	const char *events = CALL("10", "1", "1") KERNEL("a", "7", "8", "5", "1")
		CALL("20", "1", "2") KERNEL("b", "7", "25", "5", "2");

	CHECK_EXACT(queue, events, "timeline", SERIES,
		    "7 8000 1\n7 8000 0\n7 20000 1\n7 25000 0\n");
	CHECK_HTA(queue, events, "timeline", SERIES,
		  "7 8000 -1\n7 10000 0\n7 20000 1\n7 25000 0\n");
}

TS_TEST(what_nobody_asked_for_is_left_out_and_told)
{
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE,
		   CALL("0", "1", "1") KERNEL("a", "7", "5", "1", "1")
			   KERNEL("orphan", "7", "50", "1", "99"),
		   NULL);
	run_analysis(&analyzed, &ts_analysis_queue);
	CHECK_ROWS(&analyzed, "summary", "stream commands", "7 1\n");
	TS_CHECK(has_note(&analyzed.result, "left out: 1 command"));
	release_analyzed(&analyzed);
}

TS_TEST(calls_of_several_threads_need_not_come_in_order)
{
	/* The second thread's call comes earlier, and its kernel later. */
	const char *events = CALL("10", "1", "1")
		EVENT("cuda_runtime", "cudaLaunchKernel", "1", "2", "5", "1", "'correlation':2")
			KERNEL("a", "7", "20", "5", "1") KERNEL("b", "7", "30", "5", "2");

	CHECK_EXACT(queue, events, "timeline", SERIES,
		    "7 5000 1\n7 10000 2\n7 20000 1\n7 30000 0\n");
}
