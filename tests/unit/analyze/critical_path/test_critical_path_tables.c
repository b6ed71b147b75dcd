/* SPDX-License-Identifier: Apache-2.0 */
/*
 * critical-path from a trace to its tables: graph, path and what-if of small Kineto traces, and
 * HTA's graph of the same, counted by hand.
 */
#include "unit/analyze/analyze_support.h"

/* An operator 0-30 that launches at 10; its kernel runs 20-40. */
#define ONE OP("aten::add", "0", "30") CALL("10", "5", "1") KERNEL("add", "7", "20", "20", "1")

TS_TEST(a_launch_and_its_kernel)
{
	CHECK_EXACT(
		critical_path, ONE, "summary",
		"rank window_us verdict compute_us launch_us host_us gap_us unknown_us segments",
		"0 40000 mixed 20000 10000 10000 0 0 3\n");
	CHECK_EXACT(critical_path, ONE, "path", "duration_us category name stream thread via",
		    "10000 host aten::add - 1 -\n"
		    "10000 launch cudaLaunchKernel 7 - launch\n"
		    "20000 compute add 7 - -\n");
	/* The operator continues for 15 us after its call, without affecting the result. */
	CHECK_EXACT(critical_path, ONE, "names", "name category count path_us off_path_us",
		    "add compute 1 20000 0\n"
		    "cudaLaunchKernel launch 1 10000 -\n"
		    "aten::add host 1 10000 15000\n");
	/* At no cost the kernel ends at 20; but then the operator is last, at 30. */
	CHECK_EXACT(critical_path, ONE, "what_if", "name category change window_us shorter_us",
		    "add compute free 30000 10000\n"
		    "add compute 2x faster 30000 10000\n"
		    "aten::add host free 30000 10000\n"
		    "aten::add host 2x faster 35000 5000\n");
}

/* The time of a step outside its operators is on the path, but nobody can make a step faster. */
TS_TEST(what_if_is_not_asked_of_steps)
{
	const char *events = EVENT("user_annotation", "ProfilerStep#1", "1", "1", "0", "50", "")
		OP("aten::add", "20", "20") CALL("30", "5", "1")
			KERNEL("add", "7", "40", "20", "1");

	CHECK_EXACT(critical_path, events, "names", "name category path_us",
		    "add compute 20000\n"
		    "ProfilerStep#1 host 20000\n"
		    "cudaLaunchKernel launch 10000\n"
		    "aten::add host 10000\n");
	CHECK_EXACT(critical_path, events, "what_if", "name change",
		    "add free\n"
		    "add 2x faster\n"
		    "aten::add free\n"
		    "aten::add 2x faster\n");
}

/*
 * HTA: six points; the operator's start to the call's (10), the call (5), its end to the operator's
 * (15), the launch (10), the kernel (20). The longest path is 10 + 10 + 20.
 */
TS_TEST(the_same_as_hta_sees_it)
{
	CHECK_HTA(critical_path, ONE, "hta",
		  "rank ok nodes edges path_nodes path_edges events_on_path path_weight_us",
		  "0 1 6 5 4 3 3 40000\n");
	CHECK_HTA(critical_path, ONE, "hta",
		  "operator_kernel_edges dependency_edges kernel_launch_delay_edges "
		  "kernel_kernel_delay_edges sync_dependency_edges",
		  "4 0 1 0 0\n");
	CHECK_HTA(critical_path, ONE, "hta",
		  "cpu_bound_pct gpu_compute_bound_pct gpu_kernel_launch_overhead_pct",
		  "25.000 50.000 25.000\n");
}

/*
 * HTA connects a kernel to the previous one, and operators to each other by an edge without weight.
 */
TS_TEST(two_kernels_of_one_stream)
{
	const char *events = ONE OP("aten::mul", "40", "20") CALL("42", "5", "2")
		KERNEL("mul", "7", "50", "10", "2") CALL("52", "5", "3")
			KERNEL("sub", "7", "62", "10", "3");

	CHECK_HTA(critical_path, events, "hta",
		  "nodes dependency_edges kernel_launch_delay_edges kernel_kernel_delay_edges",
		  "16 1 2 1\n");
	CHECK_EXACT(critical_path, events, "path", "duration_us category name via",
		    "10000 host aten::add -\n"
		    "5000 host cudaLaunchKernel -\n"
		    "15000 host aten::add -\n"
		    "10000 host (host) -\n"
		    "2000 host aten::mul -\n"
		    "8000 launch cudaLaunchKernel launch\n"
		    "10000 compute mul -\n"
		    "2000 gap (next in stream) stream\n"
		    "10000 compute sub -\n");
}

TS_TEST(a_trace_of_the_host_alone_has_no_path)
{
	CHECK_EXACT(critical_path, OP("aten::add", "0", "30"), "summary", "rank window_us", "");
	CHECK_EXACT(critical_path, OP("aten::add", "0", "30"), "path", "duration_us", "");
}

TS_TEST(commands_without_calls_have_a_path)
{
	const char *events = KERNEL("a", "7", "10", "10", "1") KERNEL("b", "7", "21", "10", "2");

	CHECK_EXACT(critical_path, events, "path", "duration_us category name via",
		    "10000 compute a -\n"
		    "1000 gap (next in stream) stream\n"
		    "10000 compute b -\n");
}

/* The host is the path, but nothing links it to the commands, which end 3 us before it. */
TS_TEST(a_host_that_nothing_waits_for_has_one_answer)
{
	const char *commands = KERNEL("a", "7", "10", "10", "1") KERNEL("b", "7", "80", "17", "2");
	const char *host = OP("aten::add", "0", "40") OP("aten::mul", "40", "60");
	struct ts_text events = { 0 };
	struct analyzed analyzed;

	ts_text_printf(&events, "%s%s", host, commands);
	CHECK_EXACT(critical_path, ts_text_cstr(&events), "names", "name category path_us",
		    "aten::mul host 60000\naten::add host 40000\n");
	load_ranks(&analyzed, TS_ROUNDING_NONE, ts_text_cstr(&events), NULL);
	run_analysis(&analyzed, &ts_analysis_critical_path);
	CHECK_ROWS(&analyzed, "what_if", "name category change window_us shorter_us",
		   "(all host work) host free 97000 3000\n");
	TS_CHECK(has_note(&analyzed.result, "shortens the window by more than 3 us"));
	TS_CHECK(has_note(&analyzed.result, "the launch of 2 commands is not in the trace"));
	release_analyzed(&analyzed);
	/* With a command that waits for the host the answers differ. */
	ts_text_printf(&events, "%s", CALL("95", "1", "3") KERNEL("c", "8", "98", "20", "3"));
	load_ranks(&analyzed, TS_ROUNDING_NONE, ts_text_cstr(&events), NULL);
	run_analysis(&analyzed, &ts_analysis_critical_path);
	TS_CHECK(!has_note(&analyzed.result, "shortens the window"));
	release_analyzed(&analyzed);
	ts_text_release(&events);
}
