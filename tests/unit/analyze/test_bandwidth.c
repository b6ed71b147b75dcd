/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bandwidth on small traces: concurrent copies, copies without length or size, and bandwidths
 * recorded in the trace.
 */
#include "unit/analyze/analyze_support.h"

#define MOVE(category, name, stream, ts, dur, more) \
	EVENT(category, name, "0", stream, ts, dur, \
	      "'device':0,'stream':" stream ",'correlation':1" more)
#define TO_DEVICE(stream, ts, dur, bytes) \
	MOVE("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", stream, ts, dur, ",'bytes':" bytes)
#define MOMENTS "points gbps_min gbps_median gbps_max"

TS_TEST(bytes_are_told_by_kind)
{
	const char *events = TO_DEVICE("7", "0", "10", "10000") TO_DEVICE("7", "20", "10", "30000")
		MOVE("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", "7", "40", "4",
		     ",'bytes':4000")
			MOVE("gpu_memset", "Memset (Device)", "7", "50", "2", ",'bytes':8000");

	CHECK_EXACT(bandwidth, events, "bandwidth", "rank name copies bytes busy_us gbps " MOMENTS,
		    "0 Memcpy DtoH 1 4000 4000 1.000 1 1.000 1.000 1.000\n"
		    "0 Memcpy HtoD 2 40000 20000 2.000 2 1.000 2.000 3.000\n"
		    "0 Memset 1 8000 2000 4.000 1 4.000 4.000 4.000\n");
}

TS_TEST(copies_at_the_same_time_add_up)
{
	/* 1 GB/s from 0 to 10 and 3 GB/s from 5 to 15: 40 kB in 15 us. */
	const char *events = TO_DEVICE("7", "0", "10", "10000") TO_DEVICE("8", "5", "10", "30000");

	CHECK_EXACT(bandwidth, events, "bandwidth", "busy_us gbps " MOMENTS,
		    "15000 2.667 3 1.000 3.000 4.000\n");
}

TS_TEST(copies_that_touch_do_not_add_up)
{
	const char *events = TO_DEVICE("7", "0", "10", "10000") TO_DEVICE("7", "10", "10", "10000")
		TO_DEVICE("7", "20", "10", "10000");

	CHECK_EXACT(bandwidth, events, "bandwidth", "busy_us gbps " MOMENTS,
		    "30000 1.000 3 1.000 1.000 1.000\n");
}

TS_TEST(copies_without_length_have_bytes_but_no_bandwidth)
{
	/* HTA treats them as 1 us long. */
	const char *events = TO_DEVICE("7", "0", "0", "10000") TO_DEVICE("7", "10", "10", "20000");

	CHECK_EXACT(bandwidth, events, "bandwidth", "copies bytes busy_us gbps untimed " MOMENTS,
		    "2 30000 10000 2.000 1 1 2.000 2.000 2.000\n");
	CHECK_EXACT(bandwidth, TO_DEVICE("7", "0", "0", "10000"), "bandwidth",
		    "bytes busy_us gbps " MOMENTS, "10000 0 - 0 - - -\n");
	CHECK_HTA(bandwidth,
		  MOVE("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", "7", "0", "0",
		       ",'bytes':10000,'memory bandwidth (GB/s)':12.5"),
		  "bandwidth", MOMENTS, "1 12.500 12.500 12.500\n");
}

TS_TEST(copies_without_size_are_busy_all_the_same)
{
	const char *events = MOVE("gpu_memset", "Memset (Device)", "7", "0", "5", "")
		MOVE("gpu_memset", "Memset (Device)", "7", "10", "5", ",'bytes':5000");

	CHECK_EXACT(bandwidth, events, "bandwidth", "copies bytes busy_us gbps untimed points",
		    "2 5000 10000 1.000 1 1\n");
	CHECK_EXACT(bandwidth, MOVE("gpu_memset", "Memset (Device)", "7", "0", "5", ""),
		    "bandwidth", "copies bytes busy_us gbps points", "1 - 5000 - 0\n");
}

TS_TEST(copies_of_nothing_do_not_disturb_the_others)
{
	const char *events = TO_DEVICE("7", "0", "10", "0") TO_DEVICE("8", "5", "10", "10000")
		TO_DEVICE("8", "20", "10", "0");

	CHECK_EXACT(bandwidth, events, "bandwidth", "bytes busy_us " MOMENTS,
		    "10000 25000 2 1.000 1.000 1.000\n");
}

TS_TEST(what_the_trace_says_of_bandwidth_is_believed)
{
	/*
	 * Old traces have times in whole us, but the bandwidth of the measured time: 1.6 us here.
	 */
	const char *events = MOVE("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", "7", "0", "1",
				  ",'bytes':1600,'memory bandwidth (GB/s)':1.25")
		MOVE("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", "7", "10", "1",
		     ",'bytes':1600,'memory bandwidth (GB/s)':1");

	CHECK_EXACT(bandwidth, events, "bandwidth", "copies " MOMENTS, "2 2 1.000 1.125 1.250\n");
	CHECK_HTA(bandwidth, events, "bandwidth", "copies " MOMENTS, "2 2 1.000 1.125 1.250\n");
}

TS_TEST(without_copies_there_is_a_note)
{
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE, KERNEL("a", "7", "5", "1", "1"), NULL);
	run_analysis(&analyzed, &ts_analysis_bandwidth);
	CHECK_ROWS(&analyzed, "bandwidth", "rank", "");
	TS_CHECK(has_note(&analyzed.result, "no copies"));
	release_analyzed(&analyzed);
}
