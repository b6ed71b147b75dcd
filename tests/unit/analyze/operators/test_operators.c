/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operators on small traces: self and total time, recursion, device time, memory, shapes, order.
 * real/facts compares a recorded trace with PyTorch's own table.
 */
#include "unit/analyze/analyze_support.h"

#define SHAPED(name, ts, dur, shapes) \
	EVENT("cpu_op", name, "1", "1", ts, dur, "'Input Dims':" shapes)
#define MEMORY(ts, bytes, type)                                                                  \
	"{'ph':'i','s':'t','cat':'cpu_instant_event','name':'[memory]','pid':1,'tid':1,'ts':" ts \
	",'args':{'Addr':1,'Bytes':" bytes ",'Device Type':" type ",'Device Id':-1}},"

TS_TEST(self_and_total_time)
{
	const char *events = OP("outer", "0", "100") OP("inner", "10", "20") OP("inner", "40", "30")
		OP_BY("inner", "2", "0", "50");

	CHECK_EXACT(operators, events, "operators",
		    "kind name calls self_us total_us mean_us max_us self_pct total_pct",
		    "operator inner 3 100000 100000 33333 50000 66.667 66.667\n"
		    "operator outer 1 50000 100000 100000 100000 33.333 66.667\n");
}

/* A call inside one of the same name adds to the total of neither. */
TS_TEST(recursion_counts_once)
{
	CHECK_EXACT(operators, OP("f", "0", "100") OP("g", "10", "80") OP("f", "20", "50"),
		    "operators", "name calls self_us total_us",
		    "f 2 70000 100000\ng 1 30000 80000\n");
}

TS_TEST(kinds_are_told_apart)
{
	CHECK_EXACT(operators,
		    EVENT("user_annotation", "ProfilerStep#1", "1", "1", "0", "50", "")
			    EVENT("user_annotation", "ProfilerStep#2", "1", "1", "50", "50", "")
				    SLICE("user_annotation", "x", "1", "0", "20")
					    SLICE("app", "x", "1", "20", "10") OP("x", "30", "5")
						    CALL("40", "1", "1"),
		    "operators", "kind name calls self_us",
		    "step ProfilerStep 2 64000\nannotation x 1 20000\nspan x 1 10000\n"
		    "operator x 1 5000\ncall cudaLaunchKernel 1 1000\n");
}

/* Device time belongs to the innermost operator around the call. */
TS_TEST(device_time)
{
	CHECK_EXACT(operators,
		    OP("outer", "0", "100") OP("inner", "10", "20") CALL("12", "2", "1")
			    CALL("50", "2", "2") KERNEL("a", "7", "20", "40", "1")
				    KERNEL("b", "7", "60", "10", "2"),
		    "operators", "name self_device_us total_device_us self_host_bytes",
		    "outer 10000 50000 -\ninner 40000 40000 -\ncudaLaunchKernel 0 0 -\n");
}

TS_TEST(memory)
{
	CHECK_EXACT(operators,
		    OP("outer", "0", "100") OP("inner", "10", "20") MEMORY("5", "64", "0")
			    MEMORY("15", "512", "0") MEMORY("20", "-100", "0")
				    MEMORY("50", "4096", "1") MEMORY("200", "-64", "0"),
		    "operators",
		    "name self_host_bytes total_host_bytes self_device_bytes total_device_bytes",
		    "outer 64 476 4096 4096\ninner 412 412 0 0\n");
}

TS_TEST(shapes_on_demand)
{
	const char *events = SHAPED("mm", "0", "10", "[[2, 3], [3, 4]]")
		SHAPED("mm", "10", "20", "[[8, 8], [8, 8]]")
			SHAPED("mm", "30", "5", "[[2, 3], [3, 4]]") OP("mm", "40", "1");
	struct analyzed analyzed;

	CHECK_EXACT(operators, events, "operators", "name calls shapes", "mm 4 -\n");
	load_ranks(&analyzed, TS_ROUNDING_NONE, events, NULL);
	analyzed.request.options.by_shape = true;
	run_analysis(&analyzed, &ts_analysis_operators);
	CHECK_ROWS(&analyzed, "operators", "name calls self_us shapes",
		   "mm 1 20000 [[8,8],[8,8]]\nmm 2 15000 [[2,3],[3,4]]\nmm 1 1000 -\n");
	release_analyzed(&analyzed);
	load_ranks(&analyzed, TS_ROUNDING_NONE, OP("mm", "40", "1"), NULL);
	analyzed.request.options.by_shape = true;
	run_analysis(&analyzed, &ts_analysis_operators);
	TS_CHECK(has_note(&analyzed.result, "record_shapes=True"));
	release_analyzed(&analyzed);
}

TS_TEST(ranks_are_told_apart)
{
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE, OP("mm", "0", "10"), OP("mm", "0", "20"));
	run_analysis(&analyzed, &ts_analysis_operators);
	CHECK_ROWS(&analyzed, "operators", "rank self_us self_pct",
		   "1 20000 100.000\n0 10000 100.000\n");
	release_analyzed(&analyzed);
}

TS_TEST(nothing_is_said_to_be_nothing)
{
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE, "", NULL);
	run_analysis(&analyzed, &ts_analysis_operators);
	TS_CHECK(has_note(&analyzed.result, "no operators"));
	release_analyzed(&analyzed);
}
