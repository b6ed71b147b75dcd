/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invariants of the graph of any trace: random ones with few distinct instants, so that nearly
 * everything happens at once, overlaps, has no length, or is out of order.
 */
#include "unit/state/graph/graph_support.h"

static uint64_t seed;

static unsigned int random_below(unsigned int limit)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned int)((seed >> 33) % limit);
}

static const char *pick(const char *const *words, unsigned int count)
{
	return words[random_below(count)];
}

static void add_call(struct ts_text *out, unsigned int instants)
{
	static const char *const names[] = {
		"cudaLaunchKernel",
		"cudaMemcpyAsync",
		"cudaMemcpy",
		"cudaGraphLaunch",
		"cudaEventRecord",
		"cudaStreamWaitEvent",
		"cudaStreamSynchronize",
		"cudaDeviceSynchronize",
		"cudaEventSynchronize",
		"cudaEventQuery",
		"cudaFree",
		"cudaMemsetAsync",
	};

	ts_text_printf(out,
		       "{'ph':'X','cat':'cuda_runtime','name':'%s','pid':1,'tid':%u,'ts':%u,"
		       "'dur':%u,'args':{'correlation':%u}},",
		       pick(names, TS_ARRAY_SIZE(names)), random_below(3) + 1,
		       random_below(instants), random_below(4), random_below(40));
}

static void add_command(struct ts_text *out, unsigned int instants)
{
	static const char *const kinds[] = {
		"'cat':'kernel','name':'k'",
		"'cat':'kernel','name':'ncclDevKernel_AllReduce'",
		"'cat':'gpu_memcpy','name':'Memcpy DtoH (Device -> Pageable)'",
		"'cat':'gpu_memset','name':'Memset (Device)'",
	};

	ts_text_printf(out,
		       "{'ph':'X',%s,'pid':0,'tid':7,'ts':%u,'dur':%u,"
		       "'args':{'device':%u,'stream':%u,'correlation':%u}},",
		       pick(kinds, TS_ARRAY_SIZE(kinds)), random_below(instants), random_below(4),
		       random_below(2), random_below(3), random_below(40));
}

static void add_sync(struct ts_text *out, unsigned int instants)
{
	static const char *const kinds[] = { "Stream Sync", "Event Sync", "Context Sync",
					     "Stream Wait Event" };
	const char *kind = pick(kinds, TS_ARRAY_SIZE(kinds));

	ts_text_printf(out,
		       "{'ph':'X','cat':'cuda_sync','name':'%s','pid':0,'tid':7,'ts':%u,'dur':%u,"
		       "'args':{'cuda_sync_kind':'%s','device':0,'stream':%d,'correlation':%u,"
		       "'wait_on_stream':%d,'wait_on_cuda_event_record_corr_id':%d}},",
		       kind, random_below(instants), random_below(3), kind,
		       (int)random_below(4) - 1, random_below(40), (int)random_below(4) - 1,
		       (int)random_below(41) - 1);
}

/* Times in ms/4: long enough to be gaps. */
static void add_slice(struct ts_text *out, unsigned int instants)
{
	static const char *const categories[] = { "cpu_op", "user_annotation",
						  "gpu_user_annotation" };

	ts_text_printf(out, "{'ph':'X','cat':'%s','name':'s','pid':1,'tid':%u,'ts':%u,'dur':%u},",
		       pick(categories, TS_ARRAY_SIZE(categories)), random_below(3) + 1,
		       random_below(instants) * 250, random_below(instants) * 250);
}

static void add_flow(struct ts_text *out, unsigned int instants)
{
	static const char *const categories[] = { "fwdbwd", "queue" };
	const char *category = pick(categories, TS_ARRAY_SIZE(categories));

	for (int i = 0; i < 2; i++)
		ts_text_printf(out,
			       "{'ph':'%s','id':%u,'cat':'%s','name':'f','pid':1,'tid':%u,"
			       "'ts':%u,'bp':'e'},",
			       i ? "f" : "s", random_below(5), category, random_below(3) + 1,
			       random_below(instants));
}

static struct ts_reader *random_trace(int rank)
{
	static void (*const adders[])(struct ts_text *, unsigned int) = {
		add_call,    add_call,  add_call, add_command,
		add_command, add_slice, add_flow, add_sync,
	};
	/* With syncs all edges are recorded, without them inferred. */
	unsigned int kinds = TS_ARRAY_SIZE(adders) - random_below(2);
	unsigned int instants = 2 + random_below(40), count = random_below(150);
	TS_SCOPED(ts_text) text = { 0 };

	for (unsigned int i = 0; i < count; i++)
		adders[random_below(kinds)](&text, instants);
	return read_events(ts_text_cstr(&text), rank);
}

static void check_random(unsigned int ranks, bool uncertain)
{
	struct graphed graphed = { 0 };
	struct ts_error err;

	for (unsigned int r = 0; r < ranks; r++)
		graphed.loaded.readers[graphed.loaded.count++] = random_trace((int)r);
	build_graph(&graphed, TS_GRAPH_HOST);
	check_graph(graphed.graph, 0);
	ts_graph_free(graphed.graph);
	for (unsigned int r = 0; uncertain && r < graphed.loaded.work->rank_count; r++)
		graphed.loaded.work->ranks[r].uncertainty_ns = 2000;
	TS_CHECK_INT(ts_graph_new(&graphed.graph, graphed.loaded.work, 0, &err), 0);
	check_graph(graphed.graph, uncertain ? 4000 : 0);
	unload_graph(&graphed);
}

TS_TEST(one_rank)
{
	for (seed = 1; seed < 100; seed++) {
		uint64_t start = seed;

		check_random(1, false);
		seed = start;
	}
}

TS_TEST(several_ranks)
{
	for (seed = 1000; seed < 1050; seed++) {
		uint64_t start = seed;

		check_random(3, seed % 2);
		seed = start;
	}
}
