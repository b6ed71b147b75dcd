/* SPDX-License-Identifier: Apache-2.0 */
/* The host's side of the dependency graph: stretches, program order, what threads waited for, arrows. */
#include "unit/test_state_graph_support.h"

/* A stretch that begins at an instant (us); its node. */
static uint32_t stretch_at(const struct loaded *loaded, int64_t start_us)
{
	for (uint32_t i = 0; i < loaded->graph->stretch_count; i++)
		if (loaded->graph->stretches[i].start == start_us * 1000)
			return ts_graph_stretch_node(loaded->graph, i);
	ts_test_fail(__FILE__, __LINE__, "no stretch at %lld", (long long)start_us);
}

static void check_stretch(const struct loaded *loaded, int64_t start_us, int64_t end_us,
			  const char *name)
{
	uint32_t node = stretch_at(loaded, start_us);

	TS_CHECK_INT(ts_graph_node_end(loaded->graph, node), end_us * 1000);
	TS_CHECK_STR(ts_graph_node_name(loaded->graph, node), name);
}

#define PROGRAM(from, to) edge_flags(loaded.graph, from, to, TS_EDGE_PROGRAM)

TS_TEST(stretches_are_cut_at_slices_and_calls)
{
	struct loaded loaded;

	load_flags(&loaded, TS_GRAPH_HOST,
		   OP("outer", "1", "0", "100") OP("inner", "1", "20", "40")
			   CALL("cudaLaunchKernel", "1", "30", "10", "1")
				   CALL("cudaLaunchKernel", "1", "110", "5", "2")
					   OP("last", "1", "115", "5"));
	TS_CHECK_INT(loaded.graph->stretch_count, 6);
	check_stretch(&loaded, 0, 20, "outer");
	check_stretch(&loaded, 20, 30, "inner");
	check_stretch(&loaded, 40, 60, "inner");
	check_stretch(&loaded, 60, 100, "outer");
	check_stretch(&loaded, 100, 110, "(host)");
	check_stretch(&loaded, 115, 120, "last");
	TS_CHECK_INT(PROGRAM(stretch_at(&loaded, 0), stretch_at(&loaded, 20)), 0);
	TS_CHECK_INT(PROGRAM(stretch_at(&loaded, 20), call_of(&loaded, 1)), 0);
	TS_CHECK_INT(PROGRAM(call_of(&loaded, 1), stretch_at(&loaded, 40)), 0);
	TS_CHECK_INT(PROGRAM(stretch_at(&loaded, 100), call_of(&loaded, 2)), 0);
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_PROGRAM], 7);
	unload(&loaded);
}

/* A runtime's call and the driver's inside it. */
TS_TEST(calls_inside_calls)
{
	struct loaded loaded;

	load_flags(&loaded, TS_GRAPH_HOST,
		   CALL("cudaLaunchKernel", "1", "0", "50", "1")
			   CALL("cuModuleLoad", "1", "5", "10", "2")
				   CALL("cuLaunchKernel", "1", "20", "10", "3")
					   CALL("cudaLaunchKernel", "1", "60", "5", "4"));
	TS_CHECK_INT(PROGRAM(call_of(&loaded, 1), call_of(&loaded, 2)), TS_EDGE_FROM_START);
	TS_CHECK_INT(PROGRAM(call_of(&loaded, 2), call_of(&loaded, 3)), 0);
	TS_CHECK_INT(PROGRAM(call_of(&loaded, 3), call_of(&loaded, 1)), TS_EDGE_TO_END);
	TS_CHECK_INT(PROGRAM(call_of(&loaded, 1), stretch_at(&loaded, 50)), 0);
	TS_CHECK_INT(PROGRAM(stretch_at(&loaded, 50), call_of(&loaded, 4)), 0);
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_PROGRAM], 5);
	unload(&loaded);
}

/* The spans of annotations on a device are no work of the host. */
TS_TEST(annotations_of_devices_are_no_stretches)
{
	struct loaded loaded;

	load_flags(&loaded, TS_GRAPH_HOST, SLICE("gpu_user_annotation", "step", "7", "0", "50"));
	TS_CHECK_INT(loaded.graph->stretch_count, 0);
	unload(&loaded);
}

/* The main thread is inside its step while another one works for it. */
TS_TEST(a_thread_that_waited_for_another)
{
	struct loaded loaded;
	uint32_t first, resumed;

	load_flags(&loaded, TS_GRAPH_HOST,
		   SLICE("user_annotation", "step", "1", "0", "9000")
			   OP("forward", "1", "10", "1000") OP("backward", "2", "1020", "6000")
				   OP("optimizer", "1", "7050", "100"));
	/* The other begins when the first one has handed over, ... */
	first = stretch_at(&loaded, 10);
	TS_CHECK_INT(edge_flags(loaded.graph, first, stretch_at(&loaded, 1020), TS_EDGE_WAKE),
		     TS_EDGE_INFERRED);
	/* ... which goes on when that one is done. It did nothing itself in between. */
	resumed = stretch_at(&loaded, 7050);
	TS_CHECK_INT(edge_flags(loaded.graph, stretch_at(&loaded, 1020), resumed, TS_EDGE_WAKE),
		     TS_EDGE_INFERRED);
	TS_CHECK_INT(PROGRAM(first, resumed), 0);
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_WAKE], 2);
	unload(&loaded);
}

/* Nobody else did anything: it was busy with what it does not tell. */
TS_TEST(a_thread_that_worked_by_itself)
{
	struct loaded loaded;

	load_flags(&loaded, TS_GRAPH_HOST,
		   SLICE("user_annotation", "step", "1", "0", "9000")
			   OP("forward", "1", "10", "1000") OP("optimizer", "1", "7050", "100"));
	check_stretch(&loaded, 1010, 7050, "step");
	TS_CHECK_INT(PROGRAM(stretch_at(&loaded, 10), stretch_at(&loaded, 1010)), 0);
	TS_CHECK_INT(PROGRAM(stretch_at(&loaded, 1010), stretch_at(&loaded, 7050)), 0);
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_WAKE], 0);
	unload(&loaded);
	/* Another thread is busy all the time, and goes on: it was not waited for. */
	load_flags(&loaded, TS_GRAPH_HOST,
		   SLICE("user_annotation", "step", "1", "0", "9000")
			   OP("forward", "1", "10", "1000") OP("optimizer", "1", "7050", "100")
				   OP("load", "2", "0", "7000") OP("load", "2", "7000", "1900"));
	check_stretch(&loaded, 1010, 7050, "step");
	unload(&loaded);
}

/* Outside of all slices a long time is just idle. */
TS_TEST(idle_threads_have_no_stretch)
{
	struct loaded loaded;

	load_flags(&loaded, TS_GRAPH_HOST, OP("a", "1", "0", "10") OP("b", "1", "5000", "10"));
	TS_CHECK_INT(loaded.graph->stretch_count, 2);
	TS_CHECK_INT(PROGRAM(stretch_at(&loaded, 0), stretch_at(&loaded, 5000)), 0);
	unload(&loaded);
}

#define FLOW(ph, id, category, tid, ts)                                                            \
	"{'ph':'" ph "','id':" id ",'cat':'" category "','name':'" category "','pid':1,'tid':" tid \
	",'ts':" ts ",'bp':'e'},"

TS_TEST(forward_and_backward)
{
	struct loaded loaded;

	load_flags(&loaded, TS_GRAPH_HOST,
		   OP("aten::mm", "1", "10", "20") OP("aten::add", "1", "40", "20")
			   OP("MmBackward", "2", "100", "20") FLOW("s", "1", "fwdbwd", "1", "10")
				   FLOW("f", "1", "fwdbwd", "2", "100"));
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_FORWARD], 1);
	TS_CHECK_INT(edge_flags(loaded.graph, stretch_at(&loaded, 10), stretch_at(&loaded, 100),
				TS_EDGE_FORWARD),
		     0);
	unload(&loaded);
}

TS_TEST(other_arrows)
{
	struct loaded loaded;

	load_flags(&loaded, TS_GRAPH_HOST,
		   OP("produce", "1", "10", "20") OP("consume", "2", "100", "20")
			   FLOW("s", "1", "queue", "1", "30") FLOW("f", "1", "queue", "2", "100"));
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_FLOW], 1);
	TS_CHECK_INT(edge_flags(loaded.graph, stretch_at(&loaded, 10), stretch_at(&loaded, 100),
				TS_EDGE_FLOW),
		     0);
	unload(&loaded);
}

TS_TEST(without_the_flag_there_is_no_host)
{
	struct loaded loaded;

	load(&loaded, OP("a", "1", "0", "10") OP("b", "1", "20", "10"));
	TS_CHECK_INT(loaded.graph->node_count, 0);
	unload(&loaded);
}
