/* SPDX-License-Identifier: Apache-2.0 */
/* idle on small traces: gaps and their kinds, HTA's version of them, and causes. */
#include "unit/analyze/analyze_support.h"

#define GAPS "device stream category idle_us ratio count"

TS_TEST(a_gap_is_the_hosts_the_devices_or_something_else)
{
	/*
	 * b is issued after a has ended; c long before, and follows soon; d long before, and
	 * follows late.
	 */
	const char *events = CALL("0", "5", "1") CALL("25", "5", "2") CALL("31", "5", "3")
		CALL("37", "3", "4") KERNEL("a", "7", "10", "10", "1")
			KERNEL("b", "7", "40", "10", "2") KERNEL("c", "7", "52", "10", "3")
				KERNEL("d", "7", "100", "10", "4");

	CHECK_EXACT(idle, events, "gaps", GAPS,
		    "0 7 host_wait 20000 0.333 1\n"
		    "0 7 kernel_wait 2000 0.033 1\n"
		    "0 7 other 38000 0.633 1\n");
	CHECK_HTA(idle, events, "gaps", GAPS,
		  "0 7 host_wait 20000 0.333 1\n"
		  "0 7 kernel_wait 2000 0.033 1\n"
		  "0 7 other 38000 0.633 1\n");
}

TS_TEST(what_is_short_may_be_chosen)
{
	const char *events = CALL("0", "5", "1") CALL("6", "2", "2")
		KERNEL("a", "7", "10", "10", "1") KERNEL("b", "7", "40", "10", "2");
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE, events, NULL);
	analyzed.request.options.wait_ns = 20000;
	run_analysis(&analyzed, &ts_analysis_idle);
	CHECK_ROWS(&analyzed, "gaps", GAPS, "0 7 other 20000 1.000 1\n");
	release_analyzed(&analyzed);
	load_ranks(&analyzed, TS_ROUNDING_NONE, events, NULL);
	analyzed.request.options.wait_ns = 20001;
	run_analysis(&analyzed, &ts_analysis_idle);
	CHECK_ROWS(&analyzed, "gaps", GAPS, "0 7 kernel_wait 20000 1.000 1\n");
	release_analyzed(&analyzed);
}

TS_TEST(kernels_that_run_at_once_leave_no_negative_gap)
{
	/*
	 * One graph, its kernels in one row: 10-110, concurrently 20-30, then 120. The stream is
	 * idle for 10 us. HTA measures from the previous kernel: -90 us, then 90 us that were not
	 * idle.
	 */
	const char *events = CALL("0", "5", "1") KERNEL("a", "7", "10", "100", "1")
		KERNEL("b", "7", "20", "10", "1") KERNEL("c", "7", "120", "10", "1");

	CHECK_EXACT(idle, events, "gaps", GAPS " min_us max_us",
		    "0 7 kernel_wait 10000 1.000 1 10000 10000\n");
	CHECK_HTA(idle, events, "gaps", GAPS " min_us max_us",
		  "0 7 kernel_wait -90000 - 1 -90000 -90000\n"
		  "0 7 other 90000 - 1 90000 90000\n");
}

TS_TEST(kernels_that_touch_have_no_gap)
{
	/* 0 us is no gap for us; HTA counts it, which lowers its mean. */
	const char *events = CALL("0", "5", "1") CALL("5", "2", "2") CALL("7", "2", "3")
		KERNEL("a", "7", "10", "10", "1") KERNEL("b", "7", "20", "10", "2")
			KERNEL("c", "7", "34", "10", "3");

	CHECK_EXACT(idle, events, "gaps", GAPS " mean_us", "0 7 kernel_wait 4000 1.000 1 4000\n");
	CHECK_HTA(idle, events, "gaps", GAPS " mean_us",
		  "0 7 kernel_wait 4000 1.000 2 2000\n0 7 other 0 0.000 0 -\n");
}

TS_TEST(a_command_without_a_launch_did_not_wait_for_the_host)
{
	/*
	 * The launches of a and b precede the recording. HTA writes 0 for "no launch" and then
	 * takes the first event of the file, here at 25 us, for the launch; so b, which followed a
	 * by 10 us, seems to wait for the host.
	 */
	const char *events = OP("aten::add", "25", "5") KERNEL("a", "7", "10", "10", "1")
		KERNEL("b", "7", "30", "10", "2");

	CHECK_EXACT(idle, events, "gaps", GAPS, "0 7 kernel_wait 10000 1.000 1\n");
	CHECK_HTA(idle, events, "gaps", GAPS, "0 7 host_wait 10000 1.000 1\n0 7 other 0 0.000 0\n");
}

TS_TEST(streams_of_two_devices_are_two)
{
	/* HTA knows streams by number only: it finds a gap between kernels of two devices. */
	const char *events = CALL("0", "1", "1") CALL("1", "1", "2") CALL("2", "1", "3")
		ON_DEVICE("0", "kernel", "a", "7", "10", "10", "1")
			ON_DEVICE("1", "kernel", "b", "7", "25", "10", "2")
				ON_DEVICE("0", "kernel", "c", "7", "40", "10", "3");

	CHECK_EXACT(idle, events, "gaps", GAPS, "0 7 kernel_wait 20000 1.000 1\n");
	CHECK_HTA(idle, events, "gaps", "stream category idle_us count",
		  "7 kernel_wait 10000 2\n7 other 0 0\n");
}

TS_TEST(gaps_are_described)
{
	const char *events = CALL("0", "1", "1") CALL("1", "1", "2") CALL("2", "1", "3")
		CALL("3", "1", "4") KERNEL("a", "7", "10", "10", "1")
			KERNEL("b", "7", "21", "10", "2") KERNEL("c", "7", "33", "10", "3")
				KERNEL("d", "7", "46", "10", "4");

	CHECK_EXACT(idle, events, "gaps", "count mean_us std_us min_us p25_us p50_us p75_us max_us",
		    "3 2000 1000 1000 1500 2000 2500 3000\n");
}

/* Sum of a column over the causes of a lane. */
static int64_t causes_of(const struct analyzed *analyzed, bool is_device)
{
	const struct ts_result_table *table = table_named(&analyzed->result, "causes");
	size_t stream = column_named(table, "stream", 6), time = column_named(table, "time_us", 7);
	int64_t sum = 0;

	for (size_t row = 0; row < ts_result_rows(table); row++) {
		const struct ts_cell *cells = &table->cells[row * table->column_count];

		TS_CHECK(cells[time].integer > 0);
		if (cells[stream].none == is_device)
			sum += cells[time].integer;
	}
	return sum;
}

TS_TEST(causes_are_all_of_the_time_that_did_not_run)
{
	const char *events = CALL("0", "5", "1") CALL("60", "5", "2")
		KERNEL("a", "7", "10", "10", "1") KERNEL("b", "7", "70", "10", "2");
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE, events, NULL);
	run_analysis(&analyzed, &ts_analysis_idle);
	/* The window begins with the first call, at 0, and ends with the last kernel. */
	TS_CHECK_INT(causes_of(&analyzed, true), 60000);
	TS_CHECK_INT(causes_of(&analyzed, false), 60000);
	release_analyzed(&analyzed);
}

TS_TEST(causes_are_not_told_of_rounded_times)
{
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_HTA, KERNEL("a", "7", "10", "10", "1"), NULL);
	run_analysis(&analyzed, &ts_analysis_idle);
	CHECK_ROWS(&analyzed, "causes", "state", "");
	TS_CHECK(has_note(&analyzed.result, "exact times"));
	release_analyzed(&analyzed);
}

TS_TEST(a_trace_of_the_host_alone_is_not_idle)
{
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE, OP("aten::add", "10", "5"), NULL);
	run_analysis(&analyzed, &ts_analysis_idle);
	CHECK_ROWS(&analyzed, "gaps", GAPS, "");
	CHECK_ROWS(&analyzed, "causes", "state", "");
	TS_CHECK(has_note(&analyzed.result, "no device activity"));
	release_analyzed(&analyzed);
}

TS_TEST(causes_that_cover_more_than_the_gaps_say_so)
{
	/* The host waits for 50 us before it launches; then no gap is left over. */
	const char *early = NAMED_CALL("cudaMalloc", "0", "5", "9") CALL("55", "5", "1")
		KERNEL("a", "7", "60", "10", "1");
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE, early, NULL);
	run_analysis(&analyzed, &ts_analysis_idle);
	TS_CHECK(analyzed.result.notes);
	TS_CHECK_STR(analyzed.result.notes->text,
		     "gaps are between commands of a stream; causes also cover the time before its "
		     "first and after its last one");
	release_analyzed(&analyzed);
}

/* Devices have causes beyond the idle time of breakdown, which begins with the first command. */
TS_TEST(causes_that_cover_more_than_breakdown_say_how_much)
{
	const char *events = CALL("0", "5", "1") CALL("5", "5", "2")
		KERNEL("a", "7", "60", "10", "1") KERNEL("b", "8", "75", "10", "2")
			NAMED_CALL("cudaMalloc", "90", "5", "9");
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE, events, NULL);
	run_analysis(&analyzed, &ts_analysis_idle);
	TS_CHECK(has_note(&analyzed.result, "of the time in which devices did not run, 70 us are "
					    "before the first or after the last command"));
	TS_CHECK_INT(causes_of(&analyzed, true) - 70000, 5000);
	release_analyzed(&analyzed);
	CHECK_EXACT(breakdown, events, "breakdown", "idle_us", "5000\n");
}
