/* SPDX-License-Identifier: Apache-2.0 */
/* annotations on small traces: nested, with equal names, of several threads, on the device. */
#include "unit/analyze/analyze_support.h"

#define ANNOTATION(name, tid, ts, dur) EVENT("user_annotation", name, "1", tid, ts, dur, "")
#define ON_STREAM(name, stream, ts, dur) \
	EVENT("gpu_user_annotation", name, "0", stream, ts, dur, "")
#define THREAD_CALL(tid, ts, correlation) \
	EVENT("cuda_runtime", "cudaLaunchKernel", "1", tid, ts, "1", "'correlation':" correlation)
#define COUNTS "side name count kernels device_us own_kernels own_device_us"

TS_TEST(an_annotation_has_what_is_in_those_inside_it)
{
	const char *events = ANNOTATION("step", "1", "0", "100")
		ANNOTATION("forward", "1", "10", "40") OP("aten::mm", "20", "10")
			CALL("22", "2", "1") CALL("60", "2", "2") CALL("110", "2", "3")
				KERNEL("a", "7", "30", "5", "1") KERNEL("b", "7", "70", "7", "2")
					KERNEL("c", "7", "120", "9", "3");

	CHECK_EXACT(annotations, events, "annotations", COUNTS,
		    "host forward 1 1 5000 1 5000\n"
		    "host step 1 2 12000 1 7000\n");
	CHECK_EXACT(annotations, events, "totals",
		    "rank kernels device_us host_annotated host_annotated_us device_annotated",
		    "0 3 21000 2 12000 0\n");
}

TS_TEST(ranges_of_nvtx_and_roctx_are_annotations)
{
	const char *events = EVENT("nvtx", "saxpy", "1", "1", "0", "10", "")
		EVENT("nvtx:MPI", "MPI_Send", "1", "1", "20", "10", "")
			EVENT("roctx", "step", "1", "1", "40", "10", "")
				EVENT("nvtxless", "other", "1", "1", "60", "10", "")
					CALL("5", "2", "1") KERNEL("a", "7", "30", "5", "1");

	CHECK_EXACT(annotations, events, "annotations", COUNTS,
		    "host MPI_Send 1 0 0 0 0\n"
		    "host saxpy 1 1 5000 1 5000\n"
		    "host step 1 0 0 0 0\n");
}

TS_TEST(an_annotation_inside_one_of_its_name_counts_once)
{
	const char *events = ANNOTATION("call", "1", "0", "100") ANNOTATION("call", "1", "10", "50")
		ANNOTATION("call", "1", "200", "10") CALL("20", "2", "1")
			KERNEL("a", "7", "30", "5", "1") CALL("202", "2", "2")
				KERNEL("a", "7", "230", "5", "2");

	CHECK_EXACT(annotations, events, "annotations", COUNTS " sum_us",
		    "host call 3 2 10000 2 10000 160000\n");
}

TS_TEST(annotations_have_what_their_own_thread_asked_for)
{
	/*
	 * Both threads are in an annotation at the same time; one contains the other by time only.
	 */
	const char *events = ANNOTATION("main", "1", "0", "100")
		ANNOTATION("backward", "2", "20", "40") THREAD_CALL("1", "30", "1")
			THREAD_CALL("2", "31", "2") THREAD_CALL("2", "70", "3")
				THREAD_CALL("3", "32", "4") KERNEL("a", "7", "40", "1", "1")
					KERNEL("b", "7", "50", "2", "2")
						KERNEL("c", "7", "80", "4", "3")
							KERNEL("d", "7", "90", "8", "4");

	CHECK_EXACT(annotations, events, "annotations", COUNTS,
		    "host backward 1 1 2000 1 2000\n"
		    "host main 1 1 1000 1 1000\n");
}

TS_TEST(an_annotation_begins_with_its_start_and_ends_before_its_end)
{
	const char *events = ANNOTATION("a", "1", "10", "10") CALL("10", "1", "1")
		CALL("20", "1", "2") KERNEL("x", "7", "30", "1", "1")
			KERNEL("y", "7", "40", "1", "2");

	CHECK_EXACT(annotations, events, "annotations", COUNTS, "host a 1 1 1000 1 1000\n");
}

TS_TEST(the_devices_annotations_have_what_begins_in_their_stream)
{
	const char *events = ON_STREAM("outer", "7", "10", "100")
		ON_STREAM("inner", "7", "20", "30") ON_STREAM("other", "8", "0", "200")
			KERNEL("a", "7", "12", "5", "1") KERNEL("b", "7", "25", "5", "2")
				KERNEL("c", "7", "60", "5", "3") KERNEL("d", "7", "150", "5", "4")
					KERNEL("e", "8", "30", "5", "5")
						KERNEL("f", "9", "30", "5", "6");

	CHECK_EXACT(annotations, events, "annotations", COUNTS,
		    "device inner 1 1 5000 1 5000\n"
		    "device other 1 1 5000 1 5000\n"
		    "device outer 1 3 15000 2 10000\n");
	CHECK_EXACT(annotations, events, "totals", "kernels device_annotated", "6 4\n");
}

TS_TEST(durations_are_described)
{
	const char *events = ANNOTATION("a", "1", "0", "10") ANNOTATION("a", "1", "20", "20")
		ANNOTATION("b", "1", "50", "5");
	const char *keys = "name count sum_us mean_us min_us max_us std_us";

	CHECK_EXACT(annotations, events, "annotations", keys,
		    "a 2 30000 15000 10000 20000 7071\n"
		    "b 1 5000 5000 5000 5000 -\n");
	/* HTA gives a deviation for a single value, too. */
	CHECK_HTA(annotations, events, "annotations", keys,
		  "a 2 30000 15000 10000 20000 7071\n"
		  "b 1 5000 5000 5000 5000 0\n");
}

TS_TEST(ranks_are_kept_apart)
{
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE,
		   ANNOTATION("a", "1", "0", "10") CALL("5", "1", "1")
			   KERNEL("x", "7", "30", "1", "1"),
		   ANNOTATION("a", "1", "0", "20"));
	run_analysis(&analyzed, &ts_analysis_annotations);
	CHECK_ROWS(&analyzed, "annotations", "rank name sum_us kernels",
		   "0 a 10000 1\n1 a 20000 0\n");
	release_analyzed(&analyzed);
}

/* Each inside the previous one, and a launch in the innermost: quadratic work would not end. */
TS_TEST(deep_nests_are_walked_once)
{
	enum { DEPTH = 20000 };
	TS_SCOPED(ts_text) events = { 0 };
	struct analyzed analyzed;

	for (int i = 0; i < DEPTH; i++)
		ts_text_printf(&events,
			       "{'ph':'X','cat':'user_annotation','name':'n%d','pid':1,'tid':1,"
			       "'ts':%d,'dur':%d},",
			       i % 2, i, 100000 - 2 * i);
	for (int i = 0; i < DEPTH; i++)
		ts_text_printf(
			&events,
			"{'ph':'X','cat':'cuda_runtime','name':'cudaLaunchKernel','pid':1,"
			"'tid':1,'ts':%d,'dur':1,'args':{'correlation':%d}},"
			"{'ph':'X','cat':'kernel','name':'k','pid':0,'tid':7,'ts':%d,'dur':1,"
			"'args':{'device':0,'stream':7,'correlation':%d}},",
			DEPTH + i, i + 1, 200000 + i, i + 1);
	load_ranks(&analyzed, TS_ROUNDING_NONE, ts_text_cstr(&events), NULL);
	run_analysis(&analyzed, &ts_analysis_annotations);
	CHECK_ROWS(&analyzed, "annotations", "name count kernels own_kernels",
		   "n0 10000 20000 0\nn1 10000 20000 20000\n");
	release_analyzed(&analyzed);
}
