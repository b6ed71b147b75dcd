/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device side of the dependency graph: launches, streams, graphs, events, synchronisations,
 * copies, ranks.
 */
#include "unit/state/graph/graph_support.h"

#define EDGE(kind, from, to) edge_flags(graphed.graph, from, to, TS_EDGE_##kind)
#define STREAM(from, to) EDGE(STREAM, command_of(&graphed, from), command_of(&graphed, to))
#define AFTER_EVENT(from, to) EDGE(EVENT, command_of(&graphed, from), command_of(&graphed, to))
#define WAIT(from, to) EDGE(SYNC, command_of(&graphed, from), call_of(&graphed, to))

TS_TEST(launches)
{
	struct graphed graphed;

	load_graph(&graphed, 0,
		   CALL("10", "5", "1") KERNEL("a", "7", "12", "10", "1")
			   NAMED_CALL("cudaGraphLaunch", "20", "5", "2")
				   KERNEL("b", "7", "30", "5", "2") KERNEL("c", "7", "35", "5", "2")
					   KERNEL("orphan", "8", "5", "1", "3"));
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_LAUNCH], 3);
	TS_CHECK_INT(EDGE(LAUNCH, call_of(&graphed, 1), command_of(&graphed, 1)),
		     TS_EDGE_FROM_START);
	TS_CHECK_INT(EDGE(LAUNCH, call_of(&graphed, 2), command_of(&graphed, 2)),
		     TS_EDGE_FROM_START);
	unload_graph(&graphed);
}

/* The clocks of host and device disagree: the edge would go back. */
TS_TEST(a_launch_behind_its_command_is_left_out)
{
	struct graphed graphed;

	load_graph(&graphed, 0, CALL("10", "5", "1") KERNEL("a", "7", "8", "10", "1"));
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_LAUNCH], 0);
	TS_CHECK_INT(graphed.graph->backward_count, 1);
	TS_CHECK_INT(graphed.graph->worst_backward_ns, 2000);
	unload_graph(&graphed);
}

TS_TEST(streams)
{
	struct graphed graphed;

	load_graph(&graphed, 0,
		   KERNEL("a", "7", "10", "5", "1") KERNEL("b", "7", "15", "5", "2")
			   KERNEL("other", "8", "20", "5", "3") KERNEL("c", "7", "40", "5", "4"));
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_STREAM], 2);
	TS_CHECK_INT(STREAM(1, 2), 0);
	TS_CHECK_INT(STREAM(2, 4), 0);
	TS_CHECK_INT(STREAM(2, 3), -1);
	unload_graph(&graphed);
}

/* Concurrent ones have no order; the next one waits for the last of them to end. */
TS_TEST(streams_that_overlap)
{
	struct graphed graphed;

	load_graph(&graphed, 0,
		   KERNEL("first", "7", "0", "5", "1") KERNEL("long", "7", "10", "50", "2")
			   KERNEL("short", "7", "20", "5", "3")
				   KERNEL("next", "7", "70", "5", "4"));
	TS_CHECK_INT(STREAM(1, 2), 0);
	TS_CHECK_INT(STREAM(2, 3), -1);
	TS_CHECK_INT(STREAM(3, 4), 0);
	TS_CHECK_INT(STREAM(2, 4), 0);
	TS_CHECK_INT(graphed.graph->backward_count, 0);
	unload_graph(&graphed);
}

/* Two threads submit at once: the first request came second. */
TS_TEST(streams_out_of_order)
{
	struct graphed graphed;

	load_graph(&graphed, 0,
		   CALL("0", "5", "1") KERNEL("x", "7", "10", "10", "1") CALL("20", "9", "2")
			   KERNEL("late", "7", "50", "10", "2") CALL_BY("cudaLaunchKernel", "2",
									"21", "2", "3")
				   KERNEL("early", "7", "30", "10", "3") CALL("40", "2", "4")
					   KERNEL("y", "7", "60", "10", "4"));
	TS_CHECK_INT(STREAM(1, 2), 0);
	TS_CHECK_INT(STREAM(1, 3), 0);
	TS_CHECK_INT(STREAM(2, 3), -1);
	TS_CHECK_INT(STREAM(2, 4), 0);
	unload_graph(&graphed);
}

TS_TEST(nodes_of_a_graph)
{
	struct graphed graphed;
	uint32_t first;

	load_graph(&graphed, 0,
		   NAMED_CALL("cudaGraphLaunch", "0", "5", "1") KERNEL("a", "7", "10", "10", "1")
			   KERNEL("b", "7", "20", "10", "1") KERNEL("c", "8", "12", "4", "1")
				   CALL("6", "2", "2") KERNEL("d", "7", "40", "10", "2"));
	first = command_of(&graphed, 1);
	TS_CHECK_INT(EDGE(GRAPH, first, first + 1), TS_EDGE_INFERRED);
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_GRAPH], 1);
	TS_CHECK_INT(EDGE(STREAM, first + 1, command_of(&graphed, 2)), 0);
	unload_graph(&graphed);
}

#define WAIT_EVENT(stream, ts, correlation, on_stream, record)                             \
	NAMED_CALL("cudaStreamWaitEvent", ts, "1", correlation)                            \
	SYNC("Stream Wait Event", stream, ts, "1", correlation,                            \
	     ",'wait_on_stream':" on_stream ",'wait_on_cuda_event_record_corr_id':" record \
	     ",'wait_on_cuda_event_id':5")

/* Only work submitted before the record is waited for, by the next command alone. */
TS_TEST(events_that_the_trace_tells)
{
	struct graphed graphed;

	load_graph(&graphed, 0,
		   CALL("0", "2", "1") KERNEL("a", "7", "10", "20", "1")
			   NAMED_CALL("cudaEventRecord", "3", "1", "2") CALL("4", "1", "3") KERNEL(
				   "b", "7", "30", "20", "3") WAIT_EVENT("8", "6", "4", "7", "2")
				   CALL("8", "1", "5") KERNEL("c", "8", "31", "5", "5")
					   CALL("9", "1", "6") KERNEL("d", "8", "60", "5", "6"));
	TS_CHECK_INT(AFTER_EVENT(1, 5), 0);
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_EVENT], 1);
	TS_CHECK_INT(graphed.graph->inferred_count, 0);
	unload_graph(&graphed);
}

TS_TEST(events_whose_record_is_not_there)
{
	struct graphed graphed;

	load_graph(&graphed, 0,
		   CALL("0", "2", "1") KERNEL("a", "7", "10", "20", "1") CALL("4", "1", "3")
			   KERNEL("b", "7", "30", "20", "3") WAIT_EVENT("8", "6", "4", "7", "2")
				   CALL("8", "1", "5") KERNEL("c", "8", "31", "5", "5"));
	TS_CHECK_INT(AFTER_EVENT(1, 5), TS_EDGE_INFERRED);
	TS_CHECK_INT(AFTER_EVENT(3, 5), -1);
	unload_graph(&graphed);
	/* An event that was never recorded blocks nothing. */
	load_graph(&graphed, 0,
		   CALL("0", "2", "1") KERNEL("a", "7", "10", "20", "1")
			   WAIT_EVENT("8", "6", "4", "-1", "-1") CALL("8", "1", "5")
				   KERNEL("c", "8", "31", "5", "5"));
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_EVENT], 0);
	unload_graph(&graphed);
}

/* Recorded, but wrong: the command began before its alleged dependency. */
TS_TEST(events_that_go_back)
{
	struct graphed graphed;

	load_graph(&graphed, 0,
		   CALL("0", "2", "1") KERNEL("a", "7", "10", "20", "1")
			   NAMED_CALL("cudaEventRecord", "3", "1", "2")
				   WAIT_EVENT("8", "6", "4", "7", "2") CALL("8", "1", "5")
					   KERNEL("c", "8", "25", "5", "5"));
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_EVENT], 0);
	TS_CHECK_INT(graphed.graph->backward_count, 1);
	TS_CHECK_INT(graphed.graph->worst_backward_ns, 5000);
	unload_graph(&graphed);
}

/*
 * Kernel c of stream 8 begins when "a" is done; `wait` are the calls in between, `start` is its
 * time.
 */
#define HELD(wait, start)                 \
	CALL("0", "2", "1")               \
	KERNEL("a", "7", "10", "90", "1") \
	wait CALL("8", "2", "5") KERNEL("c", "8", start, "5", "5")
#define RECORD_AND_WAIT                              \
	NAMED_CALL("cudaEventRecord", "3", "1", "2") \
	NAMED_CALL("cudaStreamWaitEvent", "5", "1", "3")

TS_TEST(events_inferred)
{
	struct graphed graphed;

	load_graph(&graphed, 0, HELD(RECORD_AND_WAIT, "103"));
	TS_CHECK_INT(AFTER_EVENT(1, 5), TS_EDGE_INFERRED);
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_EVENT], 1);
	unload_graph(&graphed);
	/* Without a wait there is no dependency. */
	load_graph(&graphed, 0, HELD("", "103"));
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_EVENT], 0);
	unload_graph(&graphed);
	/* It began much later: something else held it. */
	load_graph(&graphed, 0, HELD(RECORD_AND_WAIT, "140"));
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_EVENT], 0);
	unload_graph(&graphed);
	/* It began while the other ran: that did not hold it. */
	load_graph(&graphed, 0, HELD(RECORD_AND_WAIT, "60"));
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_EVENT], 0);
	unload_graph(&graphed);
}

TS_TEST(events_not_inferred)
{
	struct graphed graphed;

	/* Another stream was done at the same time: ambiguous. */
	load_graph(&graphed, 0,
		   CALL("1", "1", "8") KERNEL("z", "9", "20", "80", "8")
			   HELD(RECORD_AND_WAIT, "103"));
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_EVENT], 0);
	unload_graph(&graphed);
	/* The previous command of its own stream ended later. */
	load_graph(&graphed, 0,
		   CALL("1", "1", "8") KERNEL("z", "8", "20", "81", "8")
			   HELD(RECORD_AND_WAIT, "103"));
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_EVENT], 0);
	unload_graph(&graphed);
	/* What ended then was submitted after the record, and ran after what the event covers. */
	load_graph(&graphed, 0,
		   CALL("0", "1", "1") KERNEL("a", "7", "10", "10",
					      "1") NAMED_CALL("cudaEventRecord", "2", "1", "2")
			   CALL("4", "1", "3") KERNEL("b", "7", "20", "80", "3")
				   NAMED_CALL("cudaStreamWaitEvent", "6", "1", "4")
					   CALL("8", "2", "5") KERNEL("c", "8", "103", "5", "5"));
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_EVENT], 0);
	unload_graph(&graphed);
}

TS_TEST(syncs_that_the_trace_tells)
{
	struct graphed graphed;

	load_graph(
		&graphed, 0,
		CALL("0", "1", "1") KERNEL("a", "7", "10", "20", "1") NAMED_CALL(
			"cudaEventRecord", "2", "1",
			"2") CALL("4", "1", "3") KERNEL("b", "7", "30", "20",
							"3") CALL("5", "1", "4") KERNEL("c", "8",
											"10", "90",
											"4")
			NAMED_CALL("cudaEventSynchronize", "6", "30", "5") SYNC(
				"Event Sync", "-1", "6", "30", "5",
				",'wait_on_stream':7,'wait_on_cuda_event_record_corr_id':2")
				NAMED_CALL("cudaStreamSynchronize", "40", "20", "6") SYNC(
					"Stream Sync", "7", "40", "20", "6",
					"") NAMED_CALL("cudaEventQuery", "62", "1", "7")
					SYNC("Event Sync", "-1", "62", "1", "7",
					     ",'wait_on_stream':7,'wait_on_cuda_event_record_corr_id':2")
						NAMED_CALL("cudaDeviceSynchronize", "70", "40", "8")
							SYNC("Context Sync", "-1", "70", "40", "8",
							     ""));
	TS_CHECK_INT(WAIT(1, 5), TS_EDGE_TO_END);
	TS_CHECK_INT(WAIT(3, 6), TS_EDGE_TO_END);
	TS_CHECK_INT(WAIT(3, 8), TS_EDGE_TO_END);
	TS_CHECK_INT(WAIT(4, 8), TS_EDGE_TO_END);
	/* The query waits for nothing. */
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_SYNC], 4);
	unload_graph(&graphed);
}

/* Without operands: what ended last inside the call, as the last work of its stream. */
TS_TEST(syncs_inferred)
{
	struct graphed graphed;

	load_graph(&graphed, 0,
		   CALL("0", "1", "1") KERNEL("a", "7", "10", "20", "1") CALL("1", "1", "2")
			   KERNEL("b", "8", "10", "100", "2") NAMED_CALL("cudaStreamSynchronize",
									 "3", "29", "3")
				   NAMED_CALL("cudaStreamSynchronize", "33", "2", "4")
					   NAMED_CALL("cudaDeviceSynchronize", "40", "75", "5"));
	TS_CHECK_INT(WAIT(1, 3), TS_EDGE_TO_END | TS_EDGE_INFERRED);
	/* Nothing ended in the second one: it had nothing to wait for. */
	TS_CHECK_INT(graphed.graph->first_in[call_of(&graphed, 4) + 1] -
			     graphed.graph->first_in[call_of(&graphed, 4)],
		     0);
	TS_CHECK_INT(WAIT(2, 5), TS_EDGE_TO_END);
	TS_CHECK_INT(WAIT(1, 5), TS_EDGE_TO_END);
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_SYNC], 3);
	unload_graph(&graphed);
}

/* The next synchronisation need not wait for it again. */
TS_TEST(device_syncs_take_what_is_new)
{
	struct graphed graphed;

	load_graph(&graphed, 0,
		   CALL("0", "1", "1") KERNEL("a", "7", "2", "5", "1")
			   NAMED_CALL("cudaDeviceSynchronize", "3", "5",
				      "2") NAMED_CALL("cudaDeviceSynchronize", "10", "5", "3")
				   CALL("20", "1", "4") KERNEL("b", "7", "22", "5", "4")
					   NAMED_CALL("cudaDeviceSynchronize", "23", "6", "5"));
	TS_CHECK_INT(WAIT(1, 2), TS_EDGE_TO_END);
	TS_CHECK_INT(WAIT(4, 5), TS_EDGE_TO_END);
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_SYNC], 2);
	unload_graph(&graphed);
}

TS_TEST(copies)
{
	struct graphed graphed;

	load_graph(&graphed, 0,
		   NAMED_CALL("cudaMemcpy", "0", "20",
			      "1") COPY_OF("Memcpy DtoH (Device -> Pinned)", "7", "5", "10",
					   "1") NAMED_CALL("cudaMemcpyAsync", "30", "20", "2")
			   COPY_OF("Memcpy DtoH (Device -> Pageable)", "7", "35", "10",
				   "2") NAMED_CALL("cudaMemcpyAsync", "60", "20", "3")
				   COPY_OF("Memcpy DtoH (Device -> Pinned)", "7", "65", "10", "3")
					   NAMED_CALL("cudaMemcpyAsync", "90", "5", "4")
						   COPY_OF("Memcpy HtoD (Pageable -> Device)", "7",
							   "93", "10", "4"));
	TS_CHECK_INT(EDGE(COPY, command_of(&graphed, 1), call_of(&graphed, 1)), TS_EDGE_TO_END);
	TS_CHECK_INT(EDGE(COPY, command_of(&graphed, 2), call_of(&graphed, 2)),
		     TS_EDGE_TO_END | TS_EDGE_INFERRED);
	/* The third is asynchronous; the fourth's call returned before the copy was done. */
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_COPY], 2);
	TS_CHECK_INT(graphed.graph->backward_count, 0);
	unload_graph(&graphed);
}

#define COLLECTIVE(ts, dur, correlation)                                                 \
	DEVICE("kernel", "ncclDevKernel_AllReduce", "7", ts, dur, correlation,           \
	       ",'Collective name':'allreduce','Process Group Name':'0','Group size':2," \
	       "'In msg nelems':64,'Out msg nelems':64,'dtype':'Float','Seq':1")

static void load_ranks(struct graphed *graphed, const char *one, const char *other)
{
	memset(graphed, 0, sizeof(*graphed));
	graphed->loaded.readers[graphed->loaded.count++] = read_events(one, 0);
	graphed->loaded.readers[graphed->loaded.count++] = read_events(other, 1);
	build_graph(graphed, 0);
	check_graph(graphed->graph, 0);
}

/* The last one to arrive lets the others end. */
TS_TEST(collectives)
{
	struct graphed graphed;

	load_ranks(&graphed, COLLECTIVE("10", "100", "1"), COLLECTIVE("90", "20", "1"));
	TS_CHECK_INT(graphed.loaded.work->rank_count, 2);
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_COLLECTIVE], 1);
	TS_CHECK_INT(EDGE(COLLECTIVE, 1, 0) & (TS_EDGE_FROM_START | TS_EDGE_TO_END),
		     TS_EDGE_FROM_START | TS_EDGE_TO_END);
	unload_graph(&graphed);
}

/* Rank clocks may be off: an edge goes back no further than that. */
TS_TEST(collectives_within_uncertainty)
{
	struct graphed graphed;
	struct ts_error err;

	load_ranks(&graphed, COLLECTIVE("10", "20", "1"), COLLECTIVE("35", "20", "1"));
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_COLLECTIVE], 0);
	TS_CHECK_INT(graphed.graph->backward_count, 1);
	ts_graph_free(graphed.graph);
	graphed.graph = NULL;
	graphed.loaded.work->ranks[0].uncertainty_ns = 0;
	graphed.loaded.work->ranks[1].uncertainty_ns = 6000;
	TS_CHECK_INT(ts_graph_new(&graphed.graph, graphed.loaded.work, 0, &err), 0);
	check_graph(graphed.graph, 6000);
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_COLLECTIVE], 1);
	TS_CHECK_INT(graphed.graph->backward_count, 0);
	unload_graph(&graphed);
}

TS_TEST(nothing_at_all)
{
	struct graphed graphed;

	load_graph(&graphed, TS_GRAPH_HOST, "");
	TS_CHECK_INT(graphed.graph->edge_count, 0);
	unload_graph(&graphed);
}

TS_TEST(names)
{
	for (int k = 0; k < TS_EDGE_KIND_COUNT; k++)
		TS_CHECK(ts_edge_kind_name((enum ts_edge_kind)k)[0] != '?');
	TS_CHECK_STR(ts_edge_kind_name(TS_EDGE_COLLECTIVE), "collective");
}

TS_TEST(decisive)
{
	struct graphed graphed;
	size_t edge;

	load_graph(&graphed, 0,
		   CALL("0", "2", "1") KERNEL("a", "7", "10", "20", "1") CALL("5", "2", "2")
			   KERNEL("b", "7", "30", "5", "2") CALL("50", "2", "3")
				   KERNEL("c", "7", "55", "5", "3")
					   NAMED_CALL("cudaDeviceSynchronize", "53", "10", "4"));
	edge = ts_graph_decisive(graphed.graph, command_of(&graphed, 2), false);
	TS_CHECK_INT(graphed.graph->edges[edge].kind, TS_EDGE_STREAM);
	edge = ts_graph_decisive(graphed.graph, command_of(&graphed, 3), false);
	TS_CHECK_INT(graphed.graph->edges[edge].kind, TS_EDGE_LAUNCH);
	edge = ts_graph_decisive(graphed.graph, call_of(&graphed, 4), true);
	TS_CHECK_INT(graphed.graph->edges[edge].from, command_of(&graphed, 3));
	TS_CHECK(ts_graph_decisive(graphed.graph, call_of(&graphed, 1), false) == TS_EDGE_NONE);
	unload_graph(&graphed);
}
