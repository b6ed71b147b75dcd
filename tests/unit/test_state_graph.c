/* SPDX-License-Identifier: Apache-2.0 */
/* The device's side of the dependency graph: launches, streams, graphs, events, synchronisations, copies, ranks. */
#include "unit/test_state_graph_support.h"

#define EDGE(kind, from, to) edge_flags(loaded.graph, from, to, TS_EDGE_##kind)
#define STREAM(from, to) EDGE(STREAM, command_of(&loaded, from), command_of(&loaded, to))
#define EVENT(from, to) EDGE(EVENT, command_of(&loaded, from), command_of(&loaded, to))
#define WAIT(from, to) EDGE(SYNC, command_of(&loaded, from), call_of(&loaded, to))

TS_TEST(launches)
{
	struct loaded loaded;

	load(&loaded,
	     CALL("cudaLaunchKernel", "1", "10", "5", "1") KERNEL("a", "7", "12", "10", "1")
		     CALL("cudaGraphLaunch", "1", "20", "5", "2") KERNEL("b", "7", "30", "5", "2")
			     KERNEL("c", "7", "35", "5", "2") KERNEL("orphan", "8", "5", "1", "3"));
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_LAUNCH], 3);
	TS_CHECK_INT(EDGE(LAUNCH, call_of(&loaded, 1), command_of(&loaded, 1)), TS_EDGE_FROM_START);
	TS_CHECK_INT(EDGE(LAUNCH, call_of(&loaded, 2), command_of(&loaded, 2)), TS_EDGE_FROM_START);
	unload(&loaded);
}

/* The clocks of host and device disagree: the edge would go back. */
TS_TEST(a_launch_behind_its_command_is_left_out)
{
	struct loaded loaded;

	load(&loaded,
	     CALL("cudaLaunchKernel", "1", "10", "5", "1") KERNEL("a", "7", "8", "10", "1"));
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_LAUNCH], 0);
	TS_CHECK_INT(loaded.graph->backward_count, 1);
	TS_CHECK_INT(loaded.graph->worst_backward_ns, 2000);
	unload(&loaded);
}

TS_TEST(streams)
{
	struct loaded loaded;

	load(&loaded, KERNEL("a", "7", "10", "5", "1") KERNEL("b", "7", "15", "5", "2") KERNEL(
			      "other", "8", "20", "5", "3") KERNEL("c", "7", "40", "5", "4"));
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_STREAM], 2);
	TS_CHECK_INT(STREAM(1, 2), 0);
	TS_CHECK_INT(STREAM(2, 4), 0);
	TS_CHECK_INT(STREAM(2, 3), -1);
	unload(&loaded);
}

/* Concurrent ones have no order; the next one waits for the last of them to end. */
TS_TEST(streams_that_overlap)
{
	struct loaded loaded;

	load(&loaded,
	     KERNEL("first", "7", "0", "5", "1") KERNEL("long", "7", "10", "50", "2")
		     KERNEL("short", "7", "20", "5", "3") KERNEL("next", "7", "70", "5", "4"));
	TS_CHECK_INT(STREAM(1, 2), 0);
	TS_CHECK_INT(STREAM(2, 3), -1);
	TS_CHECK_INT(STREAM(3, 4), 0);
	TS_CHECK_INT(STREAM(2, 4), 0);
	TS_CHECK_INT(loaded.graph->backward_count, 0);
	unload(&loaded);
}

/* Two threads issue at once: what was asked for first came second. */
TS_TEST(streams_out_of_order)
{
	struct loaded loaded;

	load(&loaded, CALL("cudaLaunchKernel", "1", "0", "5", "1") KERNEL("x", "7", "10", "10", "1")
			      CALL("cudaLaunchKernel", "1", "20", "9", "2")
				      KERNEL("late", "7", "50", "10", "2") CALL("cudaLaunchKernel",
										"2", "21", "2", "3")
					      KERNEL("early", "7", "30", "10", "3")
						      CALL("cudaLaunchKernel", "1", "40", "2", "4")
							      KERNEL("y", "7", "60", "10", "4"));
	TS_CHECK_INT(STREAM(1, 2), 0);
	TS_CHECK_INT(STREAM(1, 3), 0);
	TS_CHECK_INT(STREAM(2, 3), -1);
	TS_CHECK_INT(STREAM(2, 4), 0);
	unload(&loaded);
}

TS_TEST(nodes_of_a_graph)
{
	struct loaded loaded;
	uint32_t first;

	load(&loaded, CALL("cudaGraphLaunch", "1", "0", "5", "1") KERNEL("a", "7", "10", "10", "1")
			      KERNEL("b", "7", "20", "10", "1") KERNEL("c", "8", "12", "4", "1")
				      CALL("cudaLaunchKernel", "1", "6", "2", "2")
					      KERNEL("d", "7", "40", "10", "2"));
	first = command_of(&loaded, 1);
	TS_CHECK_INT(EDGE(GRAPH, first, first + 1), TS_EDGE_INFERRED);
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_GRAPH], 1);
	TS_CHECK_INT(EDGE(STREAM, first + 1, command_of(&loaded, 2)), 0);
	unload(&loaded);
}

#define WAIT_EVENT(stream, ts, correlation, on_stream, record)                             \
	CALL("cudaStreamWaitEvent", "1", ts, "1", correlation)                             \
	SYNC("Stream Wait Event", stream, ts, "1", correlation,                            \
	     ",'wait_on_stream':" on_stream ",'wait_on_cuda_event_record_corr_id':" record \
	     ",'wait_on_cuda_event_id':5")

/* Only what was issued ahead of the record is waited for, by the next command alone. */
TS_TEST(events_that_the_trace_tells)
{
	struct loaded loaded;

	load(&loaded,
	     CALL("cudaLaunchKernel", "1", "0", "2",
		  "1") KERNEL("a", "7", "10", "20", "1") CALL("cudaEventRecord", "1", "3", "1", "2")
		     CALL("cudaLaunchKernel", "1", "4", "1", "3") KERNEL("b", "7", "30", "20", "3")
			     WAIT_EVENT("8", "6", "4", "7", "2")
				     CALL("cudaLaunchKernel", "1", "8", "1", "5")
					     KERNEL("c", "8", "31", "5", "5")
						     CALL("cudaLaunchKernel", "1", "9", "1", "6")
							     KERNEL("d", "8", "60", "5", "6"));
	TS_CHECK_INT(EVENT(1, 5), 0);
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_EVENT], 1);
	TS_CHECK_INT(loaded.graph->inferred_count, 0);
	unload(&loaded);
}

TS_TEST(events_whose_record_is_not_there)
{
	struct loaded loaded;

	load(&loaded,
	     CALL("cudaLaunchKernel", "1", "0", "2", "1") KERNEL("a", "7", "10", "20", "1")
		     CALL("cudaLaunchKernel", "1", "4", "1", "3") KERNEL("b", "7", "30", "20", "3")
			     WAIT_EVENT("8", "6", "4", "7", "2")
				     CALL("cudaLaunchKernel", "1", "8", "1", "5")
					     KERNEL("c", "8", "31", "5", "5"));
	TS_CHECK_INT(EVENT(1, 5), TS_EDGE_INFERRED);
	TS_CHECK_INT(EVENT(3, 5), -1);
	unload(&loaded);
	/* An event that was never recorded holds nobody. */
	load(&loaded, CALL("cudaLaunchKernel", "1", "0", "2", "1") KERNEL("a", "7", "10", "20", "1")
			      WAIT_EVENT("8", "6", "4", "-1", "-1")
				      CALL("cudaLaunchKernel", "1", "8", "1", "5")
					      KERNEL("c", "8", "31", "5", "5"));
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_EVENT], 0);
	unload(&loaded);
}

/* Told, but not so: the command began before what it is said to have waited for. */
TS_TEST(events_that_go_back)
{
	struct loaded loaded;

	load(&loaded,
	     CALL("cudaLaunchKernel", "1", "0", "2", "1") KERNEL("a", "7", "10", "20", "1")
		     CALL("cudaEventRecord", "1", "3", "1", "2") WAIT_EVENT("8", "6", "4", "7", "2")
			     CALL("cudaLaunchKernel", "1", "8", "1", "5")
				     KERNEL("c", "8", "25", "5", "5"));
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_EVENT], 0);
	TS_CHECK_INT(loaded.graph->backward_count, 1);
	TS_CHECK_INT(loaded.graph->worst_backward_ns, 5000);
	unload(&loaded);
}

/* Kernel c of stream 8 begins when "a" is done; `wait` are the calls in between, `start` is when. */
#define HELD(wait, start)                            \
	CALL("cudaLaunchKernel", "1", "0", "2", "1") \
	KERNEL("a", "7", "10", "90", "1")            \
	wait CALL("cudaLaunchKernel", "1", "8", "2", "5") KERNEL("c", "8", start, "5", "5")
#define RECORD_AND_WAIT                             \
	CALL("cudaEventRecord", "1", "3", "1", "2") \
	CALL("cudaStreamWaitEvent", "1", "5", "1", "3")

TS_TEST(events_inferred)
{
	struct loaded loaded;

	load(&loaded, HELD(RECORD_AND_WAIT, "103"));
	TS_CHECK_INT(EVENT(1, 5), TS_EDGE_INFERRED);
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_EVENT], 1);
	unload(&loaded);
	/* Without a wait there is no reason. */
	load(&loaded, HELD("", "103"));
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_EVENT], 0);
	unload(&loaded);
	/* It began long after: something else held it. */
	load(&loaded, HELD(RECORD_AND_WAIT, "140"));
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_EVENT], 0);
	unload(&loaded);
	/* It began while the other ran: that did not hold it. */
	load(&loaded, HELD(RECORD_AND_WAIT, "60"));
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_EVENT], 0);
	unload(&loaded);
}

TS_TEST(events_not_inferred)
{
	struct loaded loaded;

	/* Another stream was done at the same time: which of the two cannot be told. */
	load(&loaded, CALL("cudaLaunchKernel", "1", "1", "1", "8") KERNEL("z", "9", "20", "80", "8")
			      HELD(RECORD_AND_WAIT, "103"));
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_EVENT], 0);
	unload(&loaded);
	/* The command ahead in its own stream ended later. */
	load(&loaded, CALL("cudaLaunchKernel", "1", "1", "1", "8") KERNEL("z", "8", "20", "81", "8")
			      HELD(RECORD_AND_WAIT, "103"));
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_EVENT], 0);
	unload(&loaded);
	/* What ended then was issued only after the record, and ran behind what the event is for. */
	load(&loaded,
	     CALL("cudaLaunchKernel", "1", "0", "1",
		  "1") KERNEL("a", "7", "10", "10", "1") CALL("cudaEventRecord", "1", "2", "1", "2")
		     CALL("cudaLaunchKernel", "1", "4", "1", "3") KERNEL("b", "7", "20", "80", "3")
			     CALL("cudaStreamWaitEvent", "1", "6", "1", "4")
				     CALL("cudaLaunchKernel", "1", "8", "2", "5")
					     KERNEL("c", "8", "103", "5", "5"));
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_EVENT], 0);
	unload(&loaded);
}

TS_TEST(syncs_that_the_trace_tells)
{
	struct loaded loaded;

	load(&loaded,
	     CALL("cudaLaunchKernel", "1", "0", "1",
		  "1") KERNEL("a", "7", "10", "20", "1") CALL("cudaEventRecord", "1", "2", "1", "2")
		     CALL("cudaLaunchKernel", "1", "4", "1", "3") KERNEL(
			     "b", "7", "30", "20", "3") CALL("cudaLaunchKernel", "1", "5", "1",
							     "4") KERNEL("c", "8", "10", "90", "4")
			     CALL("cudaEventSynchronize", "1", "6", "30", "5") SYNC(
				     "Event Sync", "-1", "6", "30", "5",
				     ",'wait_on_stream':7,'wait_on_cuda_event_record_corr_id':2")
				     CALL("cudaStreamSynchronize", "1", "40", "20",
					  "6") SYNC("Stream Sync", "7", "40", "20", "6",
						    "") CALL("cudaEventQuery", "1", "62", "1", "7")
					     SYNC("Event Sync", "-1", "62", "1", "7",
						  ",'wait_on_stream':7,'wait_on_cuda_event_record_corr_id':2")
						     CALL("cudaDeviceSynchronize", "1", "70", "40",
							  "8") SYNC("Context Sync", "-1", "70",
								    "40", "8", ""));
	TS_CHECK_INT(WAIT(1, 5), TS_EDGE_TO_END);
	TS_CHECK_INT(WAIT(3, 6), TS_EDGE_TO_END);
	TS_CHECK_INT(WAIT(3, 8), TS_EDGE_TO_END);
	TS_CHECK_INT(WAIT(4, 8), TS_EDGE_TO_END);
	/* The query waits for nothing. */
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_SYNC], 4);
	unload(&loaded);
}

/* Without operands: what ended last inside the call, and was all that its stream had to do. */
TS_TEST(syncs_inferred)
{
	struct loaded loaded;

	load(&loaded,
	     CALL("cudaLaunchKernel", "1", "0", "1", "1") KERNEL("a", "7", "10", "20", "1")
		     CALL("cudaLaunchKernel", "1", "1", "1", "2") KERNEL("b", "8", "10", "100", "2")
			     CALL("cudaStreamSynchronize", "1", "3", "29", "3")
				     CALL("cudaStreamSynchronize", "1", "33", "2", "4")
					     CALL("cudaDeviceSynchronize", "1", "40", "75", "5"));
	TS_CHECK_INT(WAIT(1, 3), TS_EDGE_TO_END | TS_EDGE_INFERRED);
	/* Nothing ended in the second one: it had nothing to wait for. */
	TS_CHECK_INT(loaded.graph->first_in[call_of(&loaded, 4) + 1] -
			     loaded.graph->first_in[call_of(&loaded, 4)],
		     0);
	TS_CHECK_INT(WAIT(2, 5), TS_EDGE_TO_END);
	TS_CHECK_INT(WAIT(1, 5), TS_EDGE_TO_END);
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_SYNC], 3);
	unload(&loaded);
}

/* What one synchronisation has waited for the next one need not. */
TS_TEST(device_syncs_take_what_is_new)
{
	struct loaded loaded;

	load(&loaded, CALL("cudaLaunchKernel", "1", "0", "1", "1") KERNEL("a", "7", "2", "5", "1")
			      CALL("cudaDeviceSynchronize", "1", "3", "5",
				   "2") CALL("cudaDeviceSynchronize", "1", "10", "5",
					     "3") CALL("cudaLaunchKernel", "1", "20", "1", "4")
				      KERNEL("b", "7", "22", "5", "4")
					      CALL("cudaDeviceSynchronize", "1", "23", "6", "5"));
	TS_CHECK_INT(WAIT(1, 2), TS_EDGE_TO_END);
	TS_CHECK_INT(WAIT(4, 5), TS_EDGE_TO_END);
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_SYNC], 2);
	unload(&loaded);
}

TS_TEST(copies)
{
	struct loaded loaded;

	load(&loaded, CALL("cudaMemcpy", "1", "0", "20",
			   "1") COPY("Memcpy DtoH (Device -> Pinned)", "7", "5", "10",
				     "1") CALL("cudaMemcpyAsync", "1", "30", "20", "2")
			      COPY("Memcpy DtoH (Device -> Pageable)", "7", "35", "10",
				   "2") CALL("cudaMemcpyAsync", "1", "60", "20", "3")
				      COPY("Memcpy DtoH (Device -> Pinned)", "7", "65", "10", "3")
					      CALL("cudaMemcpyAsync", "1", "90", "5", "4")
						      COPY("Memcpy HtoD (Pageable -> Device)", "7",
							   "93", "10", "4"));
	TS_CHECK_INT(EDGE(COPY, command_of(&loaded, 1), call_of(&loaded, 1)), TS_EDGE_TO_END);
	TS_CHECK_INT(EDGE(COPY, command_of(&loaded, 2), call_of(&loaded, 2)),
		     TS_EDGE_TO_END | TS_EDGE_INFERRED);
	/* The third is asynchronous; the fourth's call returned before the copy was done. */
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_COPY], 2);
	TS_CHECK_INT(loaded.graph->backward_count, 0);
	unload(&loaded);
}

#define COLLECTIVE(ts, dur, correlation)                                                 \
	DEVICE("kernel", "ncclDevKernel_AllReduce", "7", ts, dur, correlation,           \
	       ",'Collective name':'allreduce','Process Group Name':'0','Group size':2," \
	       "'In msg nelems':64,'Out msg nelems':64,'dtype':'Float','Seq':1")

static void load_ranks(struct loaded *loaded, const char *one, const char *other)
{
	memset(loaded, 0, sizeof(*loaded));
	loaded->readers[loaded->count++] = read_events(one, 0);
	loaded->readers[loaded->count++] = read_events(other, 1);
	load_work(loaded, 0);
	check_graph(loaded->graph, 0);
}

/* The last to come lets the others end. */
TS_TEST(collectives)
{
	struct loaded loaded;

	load_ranks(&loaded, COLLECTIVE("10", "100", "1"), COLLECTIVE("90", "20", "1"));
	TS_CHECK_INT(loaded.work->rank_count, 2);
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_COLLECTIVE], 1);
	TS_CHECK_INT(EDGE(COLLECTIVE, 1, 0) & (TS_EDGE_FROM_START | TS_EDGE_TO_END),
		     TS_EDGE_FROM_START | TS_EDGE_TO_END);
	unload(&loaded);
}

/* Clocks of ranks may be off: an edge goes back no further than that. */
TS_TEST(collectives_within_uncertainty)
{
	struct loaded loaded;
	struct ts_error err;

	load_ranks(&loaded, COLLECTIVE("10", "20", "1"), COLLECTIVE("35", "20", "1"));
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_COLLECTIVE], 0);
	TS_CHECK_INT(loaded.graph->backward_count, 1);
	ts_graph_free(loaded.graph);
	loaded.graph = NULL;
	loaded.work->ranks[0].uncertainty_ns = 0;
	loaded.work->ranks[1].uncertainty_ns = 6000;
	TS_CHECK_INT(ts_graph_new(&loaded.graph, loaded.work, 0, &err), 0);
	check_graph(loaded.graph, 6000);
	TS_CHECK_INT(loaded.graph->kind_count[TS_EDGE_COLLECTIVE], 1);
	TS_CHECK_INT(loaded.graph->backward_count, 0);
	unload(&loaded);
}

TS_TEST(nothing_at_all)
{
	struct loaded loaded;

	load_flags(&loaded, TS_GRAPH_HOST, "");
	TS_CHECK_INT(loaded.graph->edge_count, 0);
	unload(&loaded);
}

TS_TEST(names)
{
	for (int k = 0; k < TS_EDGE_KIND_COUNT; k++)
		TS_CHECK(ts_edge_kind_name((enum ts_edge_kind)k)[0] != '?');
	TS_CHECK_STR(ts_edge_kind_name(TS_EDGE_COLLECTIVE), "collective");
}

TS_TEST(decisive)
{
	struct loaded loaded;
	size_t edge;

	load(&loaded,
	     CALL("cudaLaunchKernel", "1", "0", "2", "1") KERNEL("a", "7", "10", "20", "1")
		     CALL("cudaLaunchKernel", "1", "5", "2", "2") KERNEL("b", "7", "30", "5", "2")
			     CALL("cudaLaunchKernel", "1", "50", "2", "3")
				     KERNEL("c", "7", "55", "5", "3")
					     CALL("cudaDeviceSynchronize", "1", "53", "10", "4"));
	edge = ts_graph_decisive(loaded.graph, command_of(&loaded, 2), false);
	TS_CHECK_INT(loaded.graph->edges[edge].kind, TS_EDGE_STREAM);
	edge = ts_graph_decisive(loaded.graph, command_of(&loaded, 3), false);
	TS_CHECK_INT(loaded.graph->edges[edge].kind, TS_EDGE_LAUNCH);
	edge = ts_graph_decisive(loaded.graph, call_of(&loaded, 4), true);
	TS_CHECK_INT(loaded.graph->edges[edge].from, command_of(&loaded, 3));
	TS_CHECK(ts_graph_decisive(loaded.graph, call_of(&loaded, 1), false) == TS_EDGE_NONE);
	unload(&loaded);
}
