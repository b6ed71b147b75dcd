/* SPDX-License-Identifier: Apache-2.0 */
/* The host side of the dependency graph: segments, program order, waits between threads, arrows. */
#include "unit/state/graph/graph_support.h"

/* A segment that begins at an instant (us); its node. */
static uint32_t stretch_at(const struct graphed *graphed, int64_t start_us)
{
	for (uint32_t i = 0; i < graphed->graph->stretch_count; i++)
		if (graphed->graph->stretches[i].start == start_us * 1000)
			return ts_graph_stretch_node(graphed->graph, i);
	ts_test_fail(__FILE__, __LINE__, "no stretch at %lld", (long long)start_us);
}

static void check_stretch(const struct graphed *graphed, int64_t start_us, int64_t end_us,
			  const char *name)
{
	uint32_t node = stretch_at(graphed, start_us);

	TS_CHECK_INT(ts_graph_node_end(graphed->graph, node), end_us * 1000);
	TS_CHECK_STR(ts_graph_node_name(graphed->graph, node), name);
}

#define PROGRAM(from, to) edge_flags(graphed.graph, from, to, TS_EDGE_PROGRAM)

TS_TEST(stretches_are_cut_at_slices_and_calls)
{
	struct graphed graphed;

	load_graph(&graphed, TS_GRAPH_HOST,
		   OP("outer", "0", "100") OP("inner", "20", "40") CALL("30", "10", "1")
			   CALL("110", "5", "2") OP("last", "115", "5"));
	TS_CHECK_INT(graphed.graph->stretch_count, 6);
	check_stretch(&graphed, 0, 20, "outer");
	check_stretch(&graphed, 20, 30, "inner");
	check_stretch(&graphed, 40, 60, "inner");
	check_stretch(&graphed, 60, 100, "outer");
	check_stretch(&graphed, 100, 110, "(host)");
	check_stretch(&graphed, 115, 120, "last");
	TS_CHECK_INT(PROGRAM(stretch_at(&graphed, 0), stretch_at(&graphed, 20)), 0);
	TS_CHECK_INT(PROGRAM(stretch_at(&graphed, 20), call_of(&graphed, 1)), 0);
	TS_CHECK_INT(PROGRAM(call_of(&graphed, 1), stretch_at(&graphed, 40)), 0);
	TS_CHECK_INT(PROGRAM(stretch_at(&graphed, 100), call_of(&graphed, 2)), 0);
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_PROGRAM], 7);
	unload_graph(&graphed);
}

/* A runtime call and the driver's inside it. */
TS_TEST(calls_inside_calls)
{
	struct graphed graphed;

	load_graph(&graphed, TS_GRAPH_HOST,
		   CALL("0", "50", "1") NAMED_CALL("cuModuleLoad", "5", "10", "2")
			   NAMED_CALL("cuLaunchKernel", "20", "10", "3") CALL("60", "5", "4"));
	TS_CHECK_INT(PROGRAM(call_of(&graphed, 1), call_of(&graphed, 2)), TS_EDGE_FROM_START);
	TS_CHECK_INT(PROGRAM(call_of(&graphed, 2), call_of(&graphed, 3)), 0);
	TS_CHECK_INT(PROGRAM(call_of(&graphed, 3), call_of(&graphed, 1)), TS_EDGE_TO_END);
	TS_CHECK_INT(PROGRAM(call_of(&graphed, 1), stretch_at(&graphed, 50)), 0);
	TS_CHECK_INT(PROGRAM(stretch_at(&graphed, 50), call_of(&graphed, 4)), 0);
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_PROGRAM], 5);
	unload_graph(&graphed);
}

/* Annotation spans on a device are not host work. */
TS_TEST(annotations_of_devices_are_no_stretches)
{
	struct graphed graphed;

	load_graph(&graphed, TS_GRAPH_HOST, SLICE("gpu_user_annotation", "step", "7", "0", "50"));
	TS_CHECK_INT(graphed.graph->stretch_count, 0);
	unload_graph(&graphed);
}

/* The main thread is inside its step while another one works for it. */
TS_TEST(a_thread_that_waited_for_another)
{
	struct graphed graphed;
	uint32_t first, resumed;

	load_graph(&graphed, TS_GRAPH_HOST,
		   SLICE("user_annotation", "step", "1", "0", "9000") OP("forward", "10", "1000")
			   OP_BY("backward", "2", "1020", "6000") OP("optimizer", "7050", "100"));
	/* The other begins when the first one has handed over, ... */
	first = stretch_at(&graphed, 10);
	TS_CHECK_INT(edge_flags(graphed.graph, first, stretch_at(&graphed, 1020), TS_EDGE_WAKE),
		     TS_EDGE_INFERRED);
	/* ... which continues when that one is done. It did nothing itself in between. */
	resumed = stretch_at(&graphed, 7050);
	TS_CHECK_INT(edge_flags(graphed.graph, stretch_at(&graphed, 1020), resumed, TS_EDGE_WAKE),
		     TS_EDGE_INFERRED);
	TS_CHECK_INT(PROGRAM(first, resumed), 0);
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_WAKE], 2);
	unload_graph(&graphed);
}

/* No other thread did anything: it was busy with unrecorded work. */
TS_TEST(a_thread_that_worked_by_itself)
{
	struct graphed graphed;

	load_graph(&graphed, TS_GRAPH_HOST,
		   SLICE("user_annotation", "step", "1", "0", "9000") OP("forward", "10", "1000")
			   OP("optimizer", "7050", "100"));
	check_stretch(&graphed, 1010, 7050, "step");
	TS_CHECK_INT(PROGRAM(stretch_at(&graphed, 10), stretch_at(&graphed, 1010)), 0);
	TS_CHECK_INT(PROGRAM(stretch_at(&graphed, 1010), stretch_at(&graphed, 7050)), 0);
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_WAKE], 0);
	unload_graph(&graphed);
	/* Another thread is busy all the time, and continues: it was not waited for. */
	load_graph(&graphed, TS_GRAPH_HOST,
		   SLICE("user_annotation", "step", "1", "0", "9000") OP("forward", "10", "1000")
			   OP("optimizer", "7050", "100") OP_BY("load", "2", "0", "7000")
				   OP_BY("load", "2", "7000", "1900"));
	check_stretch(&graphed, 1010, 7050, "step");
	unload_graph(&graphed);
}

/* Outside all slices a long time is just idle. */
TS_TEST(idle_threads_have_no_stretch)
{
	struct graphed graphed;

	load_graph(&graphed, TS_GRAPH_HOST, OP("a", "0", "10") OP("b", "5000", "10"));
	TS_CHECK_INT(graphed.graph->stretch_count, 2);
	TS_CHECK_INT(PROGRAM(stretch_at(&graphed, 0), stretch_at(&graphed, 5000)), 0);
	unload_graph(&graphed);
}

#define FLOW(ph, id, category, tid, ts)                                                            \
	"{'ph':'" ph "','id':" id ",'cat':'" category "','name':'" category "','pid':1,'tid':" tid \
	",'ts':" ts ",'bp':'e'},"

TS_TEST(forward_and_backward)
{
	struct graphed graphed;

	load_graph(&graphed, TS_GRAPH_HOST,
		   OP("aten::mm", "10", "20") OP("aten::add", "40", "20")
			   OP_BY("MmBackward", "2", "100", "20") FLOW("s", "1", "fwdbwd", "1", "10")
				   FLOW("f", "1", "fwdbwd", "2", "100"));
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_FORWARD], 1);
	TS_CHECK_INT(edge_flags(graphed.graph, stretch_at(&graphed, 10), stretch_at(&graphed, 100),
				TS_EDGE_FORWARD),
		     0);
	unload_graph(&graphed);
}

TS_TEST(other_arrows)
{
	struct graphed graphed;

	load_graph(&graphed, TS_GRAPH_HOST,
		   OP("produce", "10", "20") OP_BY("consume", "2", "100", "20")
			   FLOW("s", "1", "queue", "1", "30") FLOW("f", "1", "queue", "2", "100"));
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_FLOW], 1);
	TS_CHECK_INT(edge_flags(graphed.graph, stretch_at(&graphed, 10), stretch_at(&graphed, 100),
				TS_EDGE_FLOW),
		     0);
	unload_graph(&graphed);
}

TS_TEST(without_the_flag_there_is_no_host)
{
	struct graphed graphed;

	load_graph(&graphed, 0, OP("a", "0", "10") OP("b", "20", "10"));
	TS_CHECK_INT(graphed.graph->node_count, 0);
	unload_graph(&graphed);
}
