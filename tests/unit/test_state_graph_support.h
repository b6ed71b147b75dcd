/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of the dependency graph and the instruction stream: traces from Kineto JSON written with ' for ", nodes by
 * correlation, and what must hold for every graph.
 */
#ifndef TS_TESTS_STATE_GRAPH_SUPPORT_H
#define TS_TESTS_STATE_GRAPH_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracesmith/import.h>
#include <tracesmith/writer.h>

#include "base/text.h"
#include "state/graph.h"
#include "unit/runner.h"

/* All times are us. */
#define SLICE(category, name, tid, ts, dur)                                               \
	"{'ph':'X','cat':'" category "','name':'" name "','pid':1,'tid':" tid ",'ts':" ts \
	",'dur':" dur "},"
#define OP(name, tid, ts, dur) SLICE("cpu_op", name, tid, ts, dur)
#define CALL(name, tid, ts, dur, correlation)                                             \
	"{'ph':'X','cat':'cuda_runtime','name':'" name "','pid':1,'tid':" tid ",'ts':" ts \
	",'dur':" dur ",'args':{'correlation':" correlation "}},"
#define DEVICE(category, name, stream, ts, dur, correlation, rest)                              \
	"{'ph':'X','cat':'" category "','name':'" name "','pid':0,'tid':" stream ",'ts':" ts    \
	",'dur':" dur ",'args':{'device':0,'stream':" stream ",'correlation':" correlation rest \
	"}},"
#define KERNEL(name, stream, ts, dur, correlation) \
	DEVICE("kernel", name, stream, ts, dur, correlation, "")
#define COPY(name, stream, ts, dur, correlation) \
	DEVICE("gpu_memcpy", name, stream, ts, dur, correlation, ",'bytes':64")
#define SYNC(kind, stream, ts, dur, correlation, rest) \
	DEVICE("cuda_sync", kind, stream, ts, dur, correlation, ",'cuda_sync_kind':'" kind "'" rest)

struct loaded {
	struct ts_reader *readers[4];
	size_t count;
	struct ts_work *work;
	struct ts_graph *graph;
};

static inline struct ts_reader *read_imported(const char *source)
{
	struct ts_writer_options options = { .size = sizeof(options), .threads = -1 };
	char path[] = "/tmp/tracesmith-graph-XXXXXX";
	struct ts_writer *writer;
	struct ts_reader *reader;
	struct ts_error err;
	int fd = mkstemp(path);

	TS_CHECK(fd >= 0);
	close(fd);
	TS_CHECK_INT(ts_writer_open(&writer, path, &options, &err), 0);
	if (ts_import_file(writer, source, NULL, NULL, &err) || ts_writer_finish(writer, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	ts_writer_close(writer);
	TS_CHECK_INT(ts_reader_open(&reader, path, &err), 0);
	unlink(path);
	return reader;
}

static inline struct ts_reader *read_events(const char *events, int rank)
{
	char source[] = "/tmp/tracesmith-graph-XXXXXX";
	TS_SCOPED(ts_text) text = { 0 };
	struct ts_reader *reader;
	int fd = mkstemp(source);

	TS_CHECK(fd >= 0);
	ts_text_printf(&text,
		       "{'schemaVersion':1,'distributedInfo':{'rank':%d,'world_size':2},"
		       "'traceEvents':[%s{'ph':'i','name':'x','ts':0,'pid':1,'tid':1}]}",
		       rank, events);
	for (size_t i = 0; i < text.length; i++)
		if (text.data[i] == '\'')
			text.data[i] = '"';
	TS_CHECK_INT(write(fd, text.data, text.length), (ssize_t)text.length);
	close(fd);
	reader = read_imported(source);
	unlink(source);
	return reader;
}

/* After the readers are there. */
static inline void load_work(struct loaded *loaded, unsigned int flags)
{
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	struct ts_error err;

	options.parts = TS_WORK_SLICES | TS_WORK_FLOWS | TS_WORK_DETAILS;
	options.all = true;
	TS_CHECK_INT(ts_work_new(&loaded->work, &options, &err), 0);
	for (size_t i = 0; i < loaded->count; i++)
		TS_CHECK_INT(ts_work_add(loaded->work, loaded->readers[i], &err), 0);
	TS_CHECK_INT(ts_work_finish(loaded->work, &err), 0);
	if (ts_graph_new(&loaded->graph, loaded->work, flags, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
}

static inline void unload(struct loaded *loaded)
{
	ts_graph_free(loaded->graph);
	ts_work_free(loaded->work);
	for (size_t i = 0; i < loaded->count; i++)
		ts_reader_close(loaded->readers[i]);
}

/* ---- nodes and edges ---- */

static inline uint32_t command_of(const struct loaded *loaded, int64_t correlation)
{
	for (uint32_t i = 0; i < loaded->work->command_count; i++)
		if (loaded->work->commands[i].correlation == correlation)
			return i;
	ts_test_fail(__FILE__, __LINE__, "no command %lld", (long long)correlation);
}

static inline uint32_t call_of(const struct loaded *loaded, int64_t correlation)
{
	for (uint32_t i = 0; i < loaded->work->call_count; i++)
		if (loaded->work->calls[i].correlation == correlation)
			return ts_graph_call_node(loaded->graph, i);
	ts_test_fail(__FILE__, __LINE__, "no call %lld", (long long)correlation);
}

/* Flags of the edge of that kind between two nodes; -1: there is none. */
static inline int edge_flags(const struct ts_graph *graph, uint32_t from, uint32_t to,
			     enum ts_edge_kind kind)
{
	for (uint32_t i = graph->first_in[to]; i < graph->first_in[to + 1]; i++)
		if (graph->edges[i].from == from && graph->edges[i].kind == kind)
			return graph->edges[i].flags;
	return -1;
}

/* ---- what must hold for every graph ---- */

static inline void check_index(const struct ts_graph *graph)
{
	uint64_t kinds = 0;

	TS_CHECK_INT(graph->first_in[0], 0);
	TS_CHECK_INT(graph->first_out[0], 0);
	TS_CHECK_INT(graph->first_in[graph->node_count], graph->edge_count);
	TS_CHECK_INT(graph->first_out[graph->node_count], graph->edge_count);
	for (uint32_t n = 0; n < graph->node_count; n++) {
		TS_CHECK(graph->first_in[n] <= graph->first_in[n + 1]);
		for (uint32_t i = graph->first_in[n]; i < graph->first_in[n + 1]; i++)
			TS_CHECK_INT(graph->edges[i].to, n);
		for (uint32_t i = graph->first_out[n]; i < graph->first_out[n + 1]; i++)
			TS_CHECK_INT(graph->edges[graph->out[i]].from, n);
	}
	for (int k = 0; k < TS_EDGE_KIND_COUNT; k++)
		kinds += graph->kind_count[k];
	TS_CHECK_INT(kinds, graph->edge_count);
}

/* No edge goes back by more than the ranks' uncertainty. */
static inline void check_times(const struct ts_graph *graph, int64_t uncertainty_ns)
{
	for (size_t i = 0; i < graph->edge_count; i++) {
		const struct ts_edge *edge = &graph->edges[i];

		TS_CHECK(edge->from != edge->to);
		TS_CHECK(ts_edge_from_time(graph, edge) <=
			 ts_edge_to_time(graph, edge) + uncertainty_ns);
		if (uncertainty_ns &&
		    ts_graph_node_rank(graph, edge->from) == ts_graph_node_rank(graph, edge->to))
			TS_CHECK(ts_edge_from_time(graph, edge) <= ts_edge_to_time(graph, edge));
	}
}

/* Starts and ends of nodes can be put in an order: each is passed when all that lead to it are. */
static inline void check_acyclic(const struct ts_graph *graph)
{
	size_t points = (size_t)graph->node_count * 2, head = 0, tail = 0;
	uint32_t *waits = calloc(points + 1, sizeof(*waits));
	uint32_t *queue = calloc(points + 1, sizeof(*queue));

	TS_CHECK(waits && queue);
	for (uint32_t n = 0; n < graph->node_count; n++)
		waits[2 * n + 1]++;
	for (size_t i = 0; i < graph->edge_count; i++)
		waits[2 * graph->edges[i].to + !!(graph->edges[i].flags & TS_EDGE_TO_END)]++;
	for (size_t p = 0; p < points; p++)
		if (waits[p] == 0)
			queue[tail++] = (uint32_t)p;
	while (head < tail) {
		uint32_t point = queue[head++], node = point / 2;

		if (!(point & 1) && --waits[point + 1] == 0)
			queue[tail++] = point + 1;
		for (uint32_t i = graph->first_out[node]; i < graph->first_out[node + 1]; i++) {
			const struct ts_edge *edge = &graph->edges[graph->out[i]];
			uint32_t to = 2 * edge->to + !!(edge->flags & TS_EDGE_TO_END);

			if ((edge->flags & TS_EDGE_FROM_START ? 0u : 1u) == (point & 1) &&
			    --waits[to] == 0)
				queue[tail++] = to;
		}
	}
	TS_CHECK_INT(tail, points);
	free(waits);
	free(queue);
}

static inline void check_graph(const struct ts_graph *graph, int64_t uncertainty_ns)
{
	check_index(graph);
	check_times(graph, uncertainty_ns);
	check_acyclic(graph);
}

static inline void load_flags(struct loaded *loaded, unsigned int flags, const char *events)
{
	memset(loaded, 0, sizeof(*loaded));
	loaded->readers[loaded->count++] = read_events(events, 0);
	load_work(loaded, flags);
	check_graph(loaded->graph, 0);
}

static inline void load(struct loaded *loaded, const char *events)
{
	load_flags(loaded, 0, events);
}

#endif
