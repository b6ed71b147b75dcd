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

struct made {
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

static inline struct made *make(void)
{
	struct made *made = calloc(1, sizeof(*made));

	TS_CHECK(made != NULL);
	ts_strmap_init(&made->work.names, 0);
	TS_CHECK_INT(ts_strmap_intern(&made->work.names, "", 0, NULL), 0);
	made->work.ranks = made->ranks;
	made->work.streams = made->streams;
	made->work.threads = made->threads;
	made->work.commands = made->commands;
	made->work.calls = made->calls;
	made->work.slices = made->slices;
	made->graph.work = &made->work;
	made->graph.stretches = made->stretches;
	made->graph.edges = made->edges;
	made->graph.first_in = made->first_in;
	made->graph.first_out = made->first_out;
	made->graph.out = made->out;
	return made;
}

static inline void unmake(struct made *made)
{
	ts_strmap_release(&made->work.names);
	free(made);
}

static inline uint32_t name_of(struct made *made, const char *text)
{
	return ts_strmap_intern(&made->work.names, text, strlen(text), NULL);
}

/* Each rank has two streams and two threads. */
static inline void need_rank(struct made *made, uint32_t rank)
{
	for (uint32_t r = made->work.rank_count; r <= rank; r++) {
		made->ranks[r].rank = r;
		for (uint32_t i = 0; i < 2; i++) {
			made->streams[r * 2 + i].rank = r;
			made->streams[r * 2 + i].number = 7 + i;
			made->threads[r * 2 + i].rank = r;
			made->threads[r * 2 + i].tid = 100 + i;
		}
		made->work.rank_count = r + 1;
		made->work.stream_count = made->work.thread_count = r * 2 + 2;
	}
}

static inline struct ref add_call(struct made *made, uint32_t thread, const char *name,
				  int64_t start, int64_t end)
{
	uint32_t index = made->work.call_count++;
	const size_t length = strlen(name);

	need_rank(made, thread / 2);
	made->calls[index] = (struct ts_work_call){
		.start = start,
		.end = end,
		.correlation = index,
		.rank = thread / 2,
		.thread = thread,
		.name = name_of(made, name),
		.command = TS_WORK_NONE,
		.kind = (uint8_t)ts_api_kind(name, length),
	};
	return (struct ref){ CALL, index };
}

static inline void add_edge(struct made *made, struct ref from, struct ref to,
			    enum ts_edge_kind kind, unsigned int flags)
{
	size_t at = made->graph.edge_count++;

	made->from[at] = from;
	made->to[at] = to;
	made->edges[at].kind = (uint8_t)kind;
	made->edges[at].flags = (uint8_t)flags;
	made->graph.kind_count[kind]++;
}

/* A command launched by a call, after the previous command of its stream. */
static inline struct ref add_command(struct made *made, uint32_t stream, const char *name,
				     int64_t start, int64_t end, const struct ref *call)
{
	uint32_t index = made->work.command_count++;
	struct ref command = { COMMAND, index };

	need_rank(made, stream / 2);
	made->commands[index] = (struct ts_work_command){
		.start = start,
		.end = end,
		.issued = call ? made->calls[call->index].start : TS_ABSENT,
		.correlation = TS_ABSENT,
		.rank = stream / 2,
		.stream = stream,
		.call = call ? call->index : TS_WORK_NONE,
		.name = name_of(made, name),
		.class = (uint8_t)ts_command_class(TS_GPU_OP_KERNEL, name, strlen(name)),
	};
	if (call) {
		made->calls[call->index].command = index;
		add_edge(made, *call, command, TS_EDGE_LAUNCH, TS_EDGE_FROM_START);
	}
	return command;
}

static inline struct ref add_slice(struct made *made, uint32_t thread, const char *name,
				   int64_t start, int64_t end)
{
	uint32_t index = made->work.slice_count++;

	need_rank(made, thread / 2);
	made->slices[index] = (struct ts_work_slice){
		.start = start,
		.end = end,
		.rank = thread / 2,
		.thread = thread,
		.name = name_of(made, name),
		.parent = TS_WORK_NONE,
		.class = TS_SLICE_ANNOTATION,
	};
	return (struct ref){ STRETCH, index };
}

/* Host work; with its own slice, which gives the name. */
static inline struct ref add_stretch(struct made *made, uint32_t thread, const char *name,
				     int64_t start, int64_t end)
{
	uint32_t index = made->graph.stretch_count++;

	made->stretches[index] = (struct ts_graph_stretch){
		.start = start,
		.end = end,
		.thread = thread,
		.slice = add_slice(made, thread, name, start, end).index,
	};
	return (struct ref){ STRETCH, index };
}

static inline uint32_t node_of(const struct made *made, struct ref ref)
{
	switch (ref.what) {
	case COMMAND:
		return ref.index;
	case CALL:
		return made->work.command_count + ref.index;
	default:
		return made->work.command_count + made->work.call_count + ref.index;
	}
}

static inline int compare_edges(const void *a, const void *b)
{
	const struct ts_edge *x = a, *y = b;

	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

static inline void finish(struct made *made)
{
	struct ts_graph *graph = &made->graph;
	uint32_t count = 0;

	graph->node_count = made->work.command_count + made->work.call_count + graph->stretch_count;
	for (size_t i = 0; i < graph->edge_count; i++) {
		made->edges[i].from = node_of(made, made->from[i]);
		made->edges[i].to = node_of(made, made->to[i]);
	}
	qsort(made->edges, graph->edge_count, sizeof(*made->edges), compare_edges);
	for (uint32_t node = 0; node < graph->node_count; node++) {
		made->first_out[node] = count;
		for (uint32_t i = 0; i < graph->edge_count; i++) {
			if (made->edges[i].from == node)
				made->out[count++] = i;
			made->first_in[node + 1] += made->edges[i].to == node;
		}
		made->first_in[node + 1] += made->first_in[node];
	}
	made->first_out[graph->node_count] = count;
}

/* ---- queries ---- */

struct asked {
	struct made *made;
	struct ts_path_model model;
	struct ts_path_window window;
	struct ts_path path;
};

static inline struct asked ask(struct made *made, const char *annotation, int64_t instance)
{
	struct asked asked = { .made = made };
	struct ts_error err;

	finish(made);
	TS_CHECK_INT(ts_path_model_init(&asked.model, &made->graph, TS_WORK_NONE, &err), 0);
	TS_CHECK_INT(ts_path_window_init(&asked.window, &asked.model, annotation, instance, &err),
		     0);
	TS_CHECK_INT(ts_path_walk(&asked.path, &asked.model, &asked.window, &err), 0);
	return asked;
}

static inline void release(struct asked *asked)
{
	ts_path_release(&asked->path);
	ts_path_window_release(&asked->window);
	ts_path_model_release(&asked->model);
	unmake(asked->made);
}

/* One line each, "host prep 10": category, name, microseconds. */
static inline void check_path(const struct asked *asked, const char *expected)
{
	struct ts_text text;

	ts_text_init(&text);
	for (size_t i = 0; i < asked->path.count; i++) {
		const struct ts_path_segment *segment = &asked->path.segments[i];

		ts_text_printf(&text, "%s %s %g\n", ts_path_category_name(segment->category),
			       segment->node == TS_WORK_NONE
				       ? "-"
				       : ts_graph_node_name(&asked->made->graph, segment->node),
			       (double)(segment->end - segment->start) / 1000);
	}
	TS_CHECK_STR(ts_text_cstr(&text), expected);
	ts_text_release(&text);
}

/*
 * When the window would end, in microseconds, if what matches the pattern took `factor` of its
 * time.
 */
static inline double end_if(const struct asked *asked, const char *pattern, double factor)
{
	uint8_t marks[MOST] = { 0 };
	struct ts_path_change change = { .device_names = marks,
					 .host_names = marks,
					 .factor = factor };
	struct ts_error err;
	int64_t end = 0;

	for (uint32_t name = 1; name < ts_strmap_count(&asked->made->work.names); name++) {
		const char *text = ts_work_text(&asked->made->work, name);

		marks[name] = ts_glob_match(pattern, text, strlen(text));
	}
	TS_CHECK_INT(ts_path_what_if(&asked->model, &asked->window, &change, 1, &end, &err), 0);
	return (double)end / 1000;
}

#define CHECK_END(asked, pattern, factor, expected_us)                                        \
	do {                                                                                  \
		double end_ = end_if(asked, pattern, factor);                                 \
		if (end_ != (expected_us))                                                    \
			ts_test_fail(__FILE__, __LINE__, "'%s' %g: ends at %g, not at %g",    \
				     pattern, (double)(factor), end_, (double)(expected_us)); \
	} while (0)

#endif
