/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dependency graph (the derived table `edge`). Nodes are commands, calls and stretches of host work
 * between calls. An edge joins the start or end of one node to the start or end of another, has a
 * kind, and is either recorded in the trace or inferred. The same graph serves `state --why`, the
 * critical path, the emulator and replay. Edges never go back in time beyond the clock uncertainty
 * (within a rank, not at all): such edges are counted and dropped. The graph has no cycles, even
 * where times are equal. See docs/state.md, "Dependency graph".
 */
#ifndef TS_STATE_GRAPH_GRAPH_H
#define TS_STATE_GRAPH_GRAPH_H

#include "state/work/work.h"

enum ts_edge_kind {
	TS_EDGE_PROGRAM, /* same thread: next in program order */
	TS_EDGE_LAUNCH,  /* call start -> command start */
	TS_EDGE_STREAM,  /* command end -> next command of its stream, start */
	TS_EDGE_EVENT, /* event recorded after a command -> command of a stream that waits for it */
	TS_EDGE_SYNC,  /* command end -> end of the host call that waited for it */
	TS_EDGE_COPY,  /* command end -> end of the call of a blocking copy */
	TS_EDGE_GRAPH, /* node of a launched graph -> next node */
	TS_EDGE_COLLECTIVE, /* start of a collective's kernel on one rank -> its end on another */
	TS_EDGE_FORWARD,    /* forward operator end -> its backward operator, start */
	TS_EDGE_FLOW,       /* any other flow of the trace */
	TS_EDGE_WAKE,       /* work on one thread that let another one start; always inferred */
	TS_EDGE_KIND_COUNT
};
const char *ts_edge_kind_name(enum ts_edge_kind kind);

/*
 * Nodes: all commands (node n is command n), then all calls (node command_count + n is call n),
 * then host stretches.
 */
struct ts_graph_stretch {
	int64_t start, end;
	uint32_t thread;
	uint32_t slice; /* innermost slice at that time; TS_WORK_NONE: none */
};

#define TS_EDGE_FROM_START 1u /* else from its end */
#define TS_EDGE_TO_END 2u     /* else to its start */
#define TS_EDGE_INFERRED 4u   /* not recorded in the trace */

struct ts_edge {
	uint32_t from, to; /* nodes */
	uint8_t kind;
	uint8_t flags;
};

struct ts_graph {
	const struct ts_work *work;
	struct ts_graph_stretch *stretches;
	uint32_t stretch_count;
	uint32_t node_count;
	struct ts_edge *edges; /* by `to` */
	uint32_t *first_in;    /* node_count + 1: edges into node n are edges[first_in[n] ..
				  first_in[n+1]) */
	uint32_t *out;         /* edge numbers by `from` */
	uint32_t *first_out;   /* node_count + 1: out[first_out[n] ..] */
	size_t edge_count;
	uint64_t kind_count[TS_EDGE_KIND_COUNT];
	uint64_t inferred_count;
	uint64_t backward_count; /* dropped edges: they would go back in time */
	int64_t worst_backward_ns;
};

/* Host stretches, program order and wakes: costly, and not needed for every question. */
#define TS_GRAPH_HOST 1u

int ts_graph_new(struct ts_graph **ret_graph, const struct ts_work *work, unsigned int flags,
		 struct ts_error *err);
void ts_graph_free(struct ts_graph *graph);
TS_DEFINE_AUTO(ts_graph, ts_graph_free);

static inline uint32_t ts_graph_call_node(const struct ts_graph *graph, uint32_t call)
{
	return graph->work->command_count + call;
}

static inline uint32_t ts_graph_stretch_node(const struct ts_graph *graph, uint32_t stretch)
{
	return graph->work->command_count + graph->work->call_count + stretch;
}

/* Times, name and rank of any node. */
int64_t ts_graph_node_start(const struct ts_graph *graph, uint32_t node);
int64_t ts_graph_node_end(const struct ts_graph *graph, uint32_t node);
const char *ts_graph_node_name(const struct ts_graph *graph, uint32_t node);
uint32_t ts_graph_node_rank(const struct ts_graph *graph, uint32_t node);

/* The instants that an edge joins. */
int64_t ts_edge_from_time(const struct ts_graph *graph, const struct ts_edge *edge);
int64_t ts_edge_to_time(const struct ts_graph *graph, const struct ts_edge *edge);

/*
 * The decisive edge into a node's start (or end): the one whose source came last. For ties the
 * first. TS_EDGE_NONE: none or, for an end, the node's own start came no earlier.
 */
#define TS_EDGE_NONE SIZE_MAX
size_t ts_graph_decisive(const struct ts_graph *graph, uint32_t node, bool end);

#endif
