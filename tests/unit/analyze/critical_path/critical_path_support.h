/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the critical path: handmade graphs in a minimal work, and queries on them. */
#ifndef TS_TESTS_UNIT_ANALYZE_CRITICAL_PATH_CRITICAL_PATH_SUPPORT_H
#define TS_TESTS_UNIT_ANALYZE_CRITICAL_PATH_CRITICAL_PATH_SUPPORT_H

#include <stdio.h>
#include <string.h>

#include "analyze/critical_path/critical_path.h"
#include "base/text.h"
#include "unit/runner.h"

#define US(n) ((n)*1000)
#define MOST 256

enum what { COMMAND, CALL, STRETCH };

/* A node whose number is not known yet: commands come first, then calls, then host segments. */
struct ref {
	enum what what;
	uint32_t index;
};

struct fixture {
	struct ts_work work;
	struct ts_graph graph;
	struct ts_work_rank ranks[4];
	struct ts_work_stream streams[8];
	struct ts_work_thread threads[8];
	struct ts_work_command commands[MOST];
	struct ts_work_call calls[MOST];
	struct ts_work_slice slices[MOST];
	struct ts_graph_stretch stretches[MOST];
	struct ts_edge edges[MOST * 4];
	struct ref from[MOST * 4], to[MOST * 4];
	uint32_t first_in[MOST * 3 + 1], first_out[MOST * 3 + 1], out[MOST * 4];
};

static inline struct fixture *make(void)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	TS_CHECK(fixture != NULL);
	ts_strmap_init(&fixture->work.names, 0);
	TS_CHECK_INT(ts_strmap_intern(&fixture->work.names, "", 0, NULL), 0);
	fixture->work.ranks = fixture->ranks;
	fixture->work.streams = fixture->streams;
	fixture->work.threads = fixture->threads;
	fixture->work.commands = fixture->commands;
	fixture->work.calls = fixture->calls;
	fixture->work.slices = fixture->slices;
	fixture->graph.work = &fixture->work;
	fixture->graph.stretches = fixture->stretches;
	fixture->graph.edges = fixture->edges;
	fixture->graph.first_in = fixture->first_in;
	fixture->graph.first_out = fixture->first_out;
	fixture->graph.out = fixture->out;
	return fixture;
}

static inline void unmake(struct fixture *fixture)
{
	ts_strmap_release(&fixture->work.names);
	free(fixture);
}

static inline uint32_t name_of(struct fixture *fixture, const char *text)
{
	return ts_strmap_intern(&fixture->work.names, text, strlen(text), NULL);
}

/* Each rank has two streams and two threads. */
static inline void need_rank(struct fixture *fixture, uint32_t rank)
{
	for (uint32_t r = fixture->work.rank_count; r <= rank; r++) {
		fixture->ranks[r].rank = r;
		for (uint32_t i = 0; i < 2; i++) {
			fixture->streams[r * 2 + i].rank = r;
			fixture->streams[r * 2 + i].number = 7 + i;
			fixture->threads[r * 2 + i].rank = r;
			fixture->threads[r * 2 + i].tid = 100 + i;
		}
		fixture->work.rank_count = r + 1;
		fixture->work.stream_count = fixture->work.thread_count = r * 2 + 2;
	}
}

static inline struct ref add_call(struct fixture *fixture, uint32_t thread, const char *name,
				  int64_t start, int64_t end)
{
	uint32_t index = fixture->work.call_count++;
	const size_t length = strlen(name);

	need_rank(fixture, thread / 2);
	fixture->calls[index] = (struct ts_work_call){
		.start = start,
		.end = end,
		.correlation = index,
		.rank = thread / 2,
		.thread = thread,
		.name = name_of(fixture, name),
		.command = TS_WORK_NONE,
		.kind = (uint8_t)ts_api_kind(name, length),
	};
	return (struct ref){ CALL, index };
}

static inline void add_edge(struct fixture *fixture, struct ref from, struct ref to,
			    enum ts_edge_kind kind, unsigned int flags)
{
	size_t at = fixture->graph.edge_count++;

	fixture->from[at] = from;
	fixture->to[at] = to;
	fixture->edges[at].kind = (uint8_t)kind;
	fixture->edges[at].flags = (uint8_t)flags;
	fixture->graph.kind_count[kind]++;
}

/* A command launched by a call, after the previous command of its stream. */
static inline struct ref add_command(struct fixture *fixture, uint32_t stream, const char *name,
				     int64_t start, int64_t end, const struct ref *call)
{
	uint32_t index = fixture->work.command_count++;
	struct ref command = { COMMAND, index };

	need_rank(fixture, stream / 2);
	fixture->commands[index] = (struct ts_work_command){
		.start = start,
		.end = end,
		.issued = call ? fixture->calls[call->index].start : TS_ABSENT,
		.correlation = TS_ABSENT,
		.rank = stream / 2,
		.stream = stream,
		.call = call ? call->index : TS_WORK_NONE,
		.name = name_of(fixture, name),
		.class = (uint8_t)ts_command_class(TS_GPU_OP_KERNEL, name, strlen(name)),
	};
	if (call) {
		fixture->calls[call->index].command = index;
		add_edge(fixture, *call, command, TS_EDGE_LAUNCH, TS_EDGE_FROM_START);
	}
	return command;
}

static inline struct ref add_slice(struct fixture *fixture, uint32_t thread, const char *name,
				   int64_t start, int64_t end)
{
	uint32_t index = fixture->work.slice_count++;

	need_rank(fixture, thread / 2);
	fixture->slices[index] = (struct ts_work_slice){
		.start = start,
		.end = end,
		.rank = thread / 2,
		.thread = thread,
		.name = name_of(fixture, name),
		.parent = TS_WORK_NONE,
		.class = TS_SLICE_ANNOTATION,
	};
	return (struct ref){ STRETCH, index };
}

/* Host work; with its own slice, which gives the name. */
static inline struct ref add_stretch(struct fixture *fixture, uint32_t thread, const char *name,
				     int64_t start, int64_t end)
{
	uint32_t index = fixture->graph.stretch_count++;

	fixture->stretches[index] = (struct ts_graph_stretch){
		.start = start,
		.end = end,
		.thread = thread,
		.slice = add_slice(fixture, thread, name, start, end).index,
	};
	return (struct ref){ STRETCH, index };
}

static inline uint32_t node_of(const struct fixture *fixture, struct ref ref)
{
	switch (ref.what) {
	case COMMAND:
		return ref.index;
	case CALL:
		return fixture->work.command_count + ref.index;
	default:
		return fixture->work.command_count + fixture->work.call_count + ref.index;
	}
}

static inline int compare_edges(const void *a, const void *b)
{
	const struct ts_edge *x = a, *y = b;

	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

static inline void finish(struct fixture *fixture)
{
	struct ts_graph *graph = &fixture->graph;
	uint32_t count = 0;

	graph->node_count = fixture->work.command_count + fixture->work.call_count +
			    graph->stretch_count;
	for (size_t i = 0; i < graph->edge_count; i++) {
		fixture->edges[i].from = node_of(fixture, fixture->from[i]);
		fixture->edges[i].to = node_of(fixture, fixture->to[i]);
	}
	qsort(fixture->edges, graph->edge_count, sizeof(*fixture->edges), compare_edges);
	for (uint32_t node = 0; node < graph->node_count; node++) {
		fixture->first_out[node] = count;
		for (uint32_t i = 0; i < graph->edge_count; i++) {
			if (fixture->edges[i].from == node)
				fixture->out[count++] = i;
			fixture->first_in[node + 1] += fixture->edges[i].to == node;
		}
		fixture->first_in[node + 1] += fixture->first_in[node];
	}
	fixture->first_out[graph->node_count] = count;
}

/* ---- queries ---- */

struct answer {
	struct fixture *fixture;
	struct ts_path_model model;
	struct ts_path_window window;
	struct ts_path path;
};

static inline struct answer analyze_path(struct fixture *fixture, const char *annotation,
					 int64_t instance)
{
	struct answer answer = { .fixture = fixture };
	struct ts_error err;

	finish(fixture);
	TS_CHECK_INT(ts_path_model_init(&answer.model, &fixture->graph, TS_WORK_NONE, &err), 0);
	TS_CHECK_INT(ts_path_window_init(&answer.window, &answer.model, annotation, instance, &err),
		     0);
	TS_CHECK_INT(ts_path_walk(&answer.path, &answer.model, &answer.window, &err), 0);
	return answer;
}

static inline void release(struct answer *answer)
{
	ts_path_release(&answer->path);
	ts_path_window_release(&answer->window);
	ts_path_model_release(&answer->model);
	unmake(answer->fixture);
}

/* One line each, "host prep 10": category, name, microseconds. */
static inline void check_path(const struct answer *answer, const char *expected)
{
	struct ts_text text;

	ts_text_init(&text);
	for (size_t i = 0; i < answer->path.count; i++) {
		const struct ts_path_segment *segment = &answer->path.segments[i];

		ts_text_printf(&text, "%s %s %g\n", ts_path_category_name(segment->category),
			       segment->node == TS_WORK_NONE
				       ? "-"
				       : ts_graph_node_name(&answer->fixture->graph, segment->node),
			       (double)(segment->end - segment->start) / 1000);
	}
	TS_CHECK_STR(ts_text_cstr(&text), expected);
	ts_text_release(&text);
}

/*
 * When the window would end, in microseconds, if what matches the pattern took `factor` of its
 * time.
 */
static inline double end_if(const struct answer *answer, const char *pattern, double factor)
{
	uint8_t marks[MOST] = { 0 };
	struct ts_path_change change = { .device_names = marks,
					 .host_names = marks,
					 .factor = factor };
	struct ts_error err;
	int64_t end = 0;

	for (uint32_t name = 1; name < ts_strmap_count(&answer->fixture->work.names); name++) {
		const char *text = ts_work_text(&answer->fixture->work, name);

		marks[name] = ts_glob_match(pattern, text, strlen(text));
	}
	TS_CHECK_INT(ts_path_what_if(&answer->model, &answer->window, &change, 1, &end, &err), 0);
	return (double)end / 1000;
}

#define CHECK_END(answer, pattern, factor, expected_us)                                       \
	do {                                                                                  \
		double end_ = end_if(answer, pattern, factor);                                \
		if (end_ != (expected_us))                                                    \
			ts_test_fail(__FILE__, __LINE__, "'%s' %g: ends at %g, not at %g",    \
				     pattern, (double)(factor), end_, (double)(expected_us)); \
	} while (0)

#endif
