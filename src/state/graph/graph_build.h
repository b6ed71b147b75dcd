/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a graph comes about: each graph_*.c adds the edges of its group to a builder, graph.c puts
 * them in order. Private to src/state/graph*.c. The rules stand in docs/state.md, "Dependency
 * graph".
 */
#ifndef TS_STATE_GRAPH_GRAPH_BUILD_H
#define TS_STATE_GRAPH_GRAPH_BUILD_H

#include "state/graph/graph.h"

/* Where that which the host did on a thread is in `items`. */
struct ts_graph_thread {
	size_t first, count;
};

struct ts_graph_build {
	const struct ts_work *work;
	struct ts_graph *graph;
	unsigned int flags;
	int rc; /* first failure; what follows is not done */
	size_t edge_capacity;
	size_t stretch_capacity;
	bool any_back; /* an edge was kept that goes back within the clocks' uncertainty */

	/*
	 * Commands of each stream in the order in which they were issued; a stream keeps its
	 * places. At place p: order[p] is the command, issued[p] when it was issued (where that is
	 * unknown: as the one ahead), latest[p] the command among those up to there that ended
	 * last.
	 */
	uint32_t *order;
	uint32_t *place; /* of a command */
	uint32_t *latest;
	int64_t *issued;

	struct ts_work_begin *begins; /* of each rank */

	/* Commands of each rank by end; made by ts_graph_by_end(). */
	uint32_t *by_end;

	/* Of each rank: does the trace tell of synchronisations with their operands? */
	bool *told;

	/*
	 * (rank, correlation) of calls that recorded events, where the trace tells; made when first
	 * asked for.
	 */
	struct ts_pairmap records;
	bool records_made;

	/* Of each name: NAME_* of graph_sync.c, filled when first asked for. */
	uint8_t *names;

	/* With TS_GRAPH_HOST: calls and stretches of each thread by start, as nodes. */
	uint32_t *items;
	size_t item_count, item_capacity;
	struct ts_graph_thread *threads;
	struct ts_graph_gap *gaps;
	size_t gap_count, gap_capacity;
};

/*
 * A long time in which a thread did nothing that it would tell of: from > to where it had not begun
 * yet. It may have waited for another thread (graph_wake.c finds out).
 */
struct ts_graph_gap {
	int64_t from, to;
	uint32_t thread;
	uint32_t slice;      /* innermost one; TS_WORK_NONE */
	uint32_t prev, next; /* nodes around it; prev TS_WORK_NONE: the thread begins */
};

/* A new stretch; its node, or TS_WORK_NONE where there is no memory. */
uint32_t ts_graph_add_stretch(struct ts_graph_build *build, const struct ts_graph_stretch *stretch);

/* While the graph is made, of an edge: it takes no time. */
#define TS_EDGE_INSTANT 128u

/* Adds an edge; one that would go back in time is counted instead. */
void ts_graph_add(struct ts_graph_build *build, uint32_t from, uint32_t to, enum ts_edge_kind kind,
		  unsigned int flags);

/* An array of the builder; NULL, and rc set, when there is no memory. */
void *ts_graph_array(struct ts_graph_build *build, size_t count, size_t item_bytes);

/* Commands of each rank by end; false: no memory. */
bool ts_graph_by_end(struct ts_graph_build *build);

/* An instant in the order of calls: correlations, which rise, tell calls of one time apart. */
struct ts_graph_moment {
	int64_t time;
	int64_t correlation; /* TS_ABSENT: unknown */
};

/*
 * How many commands of a stream were issued by a moment, that of the moment's own call included.
 * O(log n).
 */
uint32_t ts_graph_issued_before(const struct ts_graph_build *build, uint32_t stream,
				struct ts_graph_moment moment);

/* Of these the one that ended last; TS_WORK_NONE: there are none. */
uint32_t ts_graph_latest_before(const struct ts_graph_build *build, uint32_t stream,
				struct ts_graph_moment moment);

/*
 * Where a trace names no streams: the command that ended last in (from, to], was issued by
 * `moment`, and is what its stream had to do until then. `close_ns`: with another such one of
 * another stream that ended not more than that earlier, none (-1: that does not matter). A command
 * of `except` (a stream; TS_WORK_NONE) is none.
 */
struct ts_graph_question {
	uint32_t rank;
	uint32_t except;
	int64_t from, to;
	int64_t close_ns;
	struct ts_graph_moment moment;
};
uint32_t ts_graph_ended_last(struct ts_graph_build *build,
			     const struct ts_graph_question *question);

/*
 * What an event was recorded behind, as a synchronisation says; TS_WORK_NONE. Adds to *flags if it
 * is inferred.
 */
uint32_t ts_graph_recorded(struct ts_graph_build *build, const struct ts_work_sync *sync,
			   unsigned int *flags);

/* The moment of a call. */
struct ts_graph_moment ts_graph_call_moment(const struct ts_work *work, uint32_t call);

/* ---- the groups ---- */

void ts_graph_issue_order(struct ts_graph_build *build); /* graph_issue.c; ahead of all others */
void ts_graph_add_device(struct ts_graph_build *build);  /* launches, streams, graphs */
void ts_graph_add_syncs(struct ts_graph_build *build);   /* host waits, blocking copies */
void ts_graph_add_events(struct ts_graph_build *build);  /* streams that wait for streams */
void ts_graph_add_host(struct ts_graph_build *build);    /* stretches, program order */
void ts_graph_add_wakes(struct ts_graph_build *build);   /* what threads waited for */
void ts_graph_add_flows(struct ts_graph_build *build);   /* forward, other arrows */
void ts_graph_add_ranks(struct ts_graph_build *build);   /* collectives */

/* graph_order.c: edges in order, cycles of edges that take no time broken. */
int ts_graph_index(struct ts_graph *graph);
int ts_graph_break_cycles(struct ts_graph *graph, bool any_back);

#endif
