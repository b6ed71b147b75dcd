/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs of recorded traces (TRACESMITH_REAL_DATA, by default beside the source): some record their
 * synchronisations, so edges are known by correlation; for others at least the invariants must
 * hold.
 */
#include <sys/stat.h>

#include "unit/state/graph/graph_support.h"

static void real_path(char path[512], const char *name)
{
	const char *folder = getenv("TRACESMITH_REAL_DATA");
	const char *source = getenv("TS_SOURCE");
	struct stat status;

	if (folder)
		snprintf(path, 512, "%s/%s", folder, name);
	else
		snprintf(path, 512, "%s/../shared/real-traces/%s", source ? source : ".", name);
	if (stat(path, &status))
		ts_test_skip("there are no recorded traces");
}

static void load_real(struct graphed *graphed, unsigned int flags, const char *name)
{
	char path[512];

	real_path(path, name);
	load_graph_of(graphed, flags, read_imported(path));
}

#define EDGE(kind, from, to) edge_flags(graphed.graph, from, to, TS_EDGE_##kind)
#define AFTER_EVENT(from, to) EDGE(EVENT, command_of(&graphed, from), command_of(&graphed, to))
#define WAIT(from, to) EDGE(SYNC, command_of(&graphed, from), call_of(&graphed, to))

TS_TEST(event_sync)
{
	struct graphed graphed;

	load_real(&graphed, 0, "kineto/critical_path/cuda_event_sync/event_sync_trace.json.gz");
	/*
	 * The copy ends inside its call; the stream's synchronisation only has that left to wait
	 * for.
	 */
	TS_CHECK_INT(EDGE(COPY, command_of(&graphed, 1511), call_of(&graphed, 1511)),
		     TS_EDGE_TO_END | TS_EDGE_INFERRED);
	TS_CHECK_INT(WAIT(1511, 1512), TS_EDGE_TO_END);
	/* The event of call 1533 comes after the spinning kernel. */
	TS_CHECK_INT(WAIT(1526, 1536), TS_EDGE_TO_END);
	TS_CHECK_INT(WAIT(1526, 1549), TS_EDGE_TO_END);
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_SYNC], 3);
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_LAUNCH], 5);
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_STREAM], 4);
	unload_graph(&graphed);
}

TS_TEST(event_sync_of_streams)
{
	struct graphed graphed;

	load_real(&graphed, 0,
		  "kineto/critical_path/cuda_event_sync_multi_stream/event_sync_trace.json.gz");
	/* Stream 24 waits for the product of stream 20, recorded by 1385. */
	TS_CHECK_INT(AFTER_EVENT(27, 1411), 0);
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_EVENT], 1);
	TS_CHECK_INT(WAIT(27, 1424), TS_EDGE_TO_END);
	TS_CHECK_INT(WAIT(57, 1424), TS_EDGE_TO_END);
	TS_CHECK_INT(WAIT(1413, 1424), TS_EDGE_TO_END);
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_SYNC], 3);
	unload_graph(&graphed);
}

TS_TEST(alexnet)
{
	struct graphed graphed;

	load_real(&graphed, 0,
		  "kineto/critical_path/alexnet/benchmark_result_2869224_1695835535_trace.json.gz");
	/*
	 * Stream 20 waits twice for stream 7 (records 5169 and 5180), then stream 7 for it (record
	 * 5193).
	 */
	TS_CHECK_INT(AFTER_EVENT(5178, 5188), 0);
	TS_CHECK_INT(AFTER_EVENT(5594, 5604), 0);
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_EVENT], 6);
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_LAUNCH], 98);
	TS_CHECK_INT(graphed.graph->backward_count, 0);
	unload_graph(&graphed);
}

/* The same run without the calls that record: the edges are the same, but inferred. */
TS_TEST(alexnet_without_records)
{
	struct graphed graphed;

	load_real(&graphed, 0, "kineto/critical_path/end_to_end/simple_add/input/trace.json.gz");
	TS_CHECK_INT(AFTER_EVENT(5178, 5188), TS_EDGE_INFERRED);
	TS_CHECK_INT(AFTER_EVENT(5594, 5604), TS_EDGE_INFERRED);
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_EVENT], 6);
	unload_graph(&graphed);
}

/*
 * This trace has no streams of events: each collective's kernel still finds what it waited for, and
 * what waits for it.
 */
TS_TEST(megatron)
{
	struct graphed graphed;
	uint32_t collectives = 0, tied = 0;

	load_real(&graphed, TS_GRAPH_HOST, "pairs/megatron_tp8_r0_kineto.json.gz");
	for (uint32_t i = 0; i < graphed.loaded.work->command_count; i++) {
		const struct ts_graph *graph = graphed.graph;
		bool any = false;

		if (graphed.loaded.work->commands[i].class != TS_CLASS_COMMUNICATION)
			continue;
		collectives++;
		for (uint32_t e = graph->first_out[i]; e < graph->first_out[i + 1]; e++)
			any |= graph->edges[graph->out[e]].kind == TS_EDGE_EVENT;
		tied += any;
	}
	TS_CHECK(collectives > 50);
	TS_CHECK(tied * 10 >= collectives * 9);
	unload_graph(&graphed);
}

TS_TEST(others)
{
	static const char *const names[] = {
		"kineto/mi250_minitoy.json.gz", "kineto/triton_example.json.gz",
		"kineto/rank_non_gpu.json.gz",  "kineto/trace_compare/base/base.json.gz",
		"kineto/h100_qwen.json.gz",
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(names); i++) {
		struct graphed graphed;

		load_real(&graphed, TS_GRAPH_HOST, names[i]);
		unload_graph(&graphed);
	}
}
