/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph construction: each graph_*.c adds the edges of its group to a builder; graph.c sorts them.
 * Private to src/state/graph. The rules are in docs/state.md, "Dependency graph".
 */
#ifndef TS_STATE_GRAPH_GRAPH_BUILD_H
#define TS_STATE_GRAPH_GRAPH_BUILD_H

#include "state/graph/graph.h"

/* Range of a thread's host activity in `items`. */
struct ts_graph_thread {
	size_t first, count;
};

struct ts_graph_build {
	const struct ts_work *work;
	struct ts_graph *graph;
	unsigned int flags;
	int rc; /* first failure; later steps are skipped */
	size_t edge_capacity;
	size_t stretch_capacity;
	bool any_back; /* an edge that goes back within the clock uncertainty was kept */

	/*
	 * Commands of each stream in issue order, in the index range of the stream. At index p:
	 * order[p] is the command, issued[p] its issue time (if unknown: that of the previous one),
	 * latest[p] the command up to p that ended last.
	 */
	uint32_t *order;
	uint32_t *position; /* of a command */
	uint32_t *latest;
	int64_t *issued;

	struct ts_work_begin *begins; /* of each rank */

	/* Commands of each rank by end; filled by ts_graph_by_end(). */
	uint32_t *by_end;

	/* Per rank: does the trace record synchronisations with operands? */
	bool *has_operands;

	/* (rank, correlation) of calls that recorded events, where known; filled on first use. */
	struct ts_pairmap records;
	bool records_filled;

	/* Per name: NAME_* of graph_sync.c, filled on first use. */
	uint8_t *names;

	/* With TS_GRAPH_HOST: calls and stretches of each thread by start, as nodes. */
	uint32_t *items;
	size_t item_count, item_capacity;
	struct ts_graph_thread *threads;
	struct ts_graph_gap *gaps;
	size_t gap_count, gap_capacity;
};

/*
 * A long time without recorded activity on a thread; from > to if the thread had not started yet.
 * It may have waited for another thread (see graph_wake.c).
 */
struct ts_graph_gap {
	int64_t from, to;
	uint32_t thread;
	uint32_t slice;      /* innermost one; TS_WORK_NONE */
	uint32_t prev, next; /* adjacent nodes; prev TS_WORK_NONE: the thread starts here */
};

/* Adds a stretch and returns its node, or TS_WORK_NONE if out of memory. */
uint32_t ts_graph_add_stretch(struct ts_graph_build *build, const struct ts_graph_stretch *stretch);

/* Edge flag during construction: takes no time. */
#define TS_EDGE_INSTANT 128u

/* Adds an edge; one that would go back in time is counted instead. */
void ts_graph_add(struct ts_graph_build *build, uint32_t from, uint32_t to, enum ts_edge_kind kind,
		  unsigned int flags);

/* Allocates an array of the builder; NULL with rc set if out of memory. */
void *ts_graph_array(struct ts_graph_build *build, size_t count, size_t item_bytes);

/* Sorts commands of each rank by end; false: out of memory. */
bool ts_graph_by_end(struct ts_graph_build *build);

/* An instant in call order: increasing correlation ids separate calls of equal time. */
struct ts_graph_moment {
	int64_t time;
	int64_t correlation; /* TS_ABSENT: unknown */
};

/*
 * Number of commands of a stream issued by a moment, including that of the moment's own call. O(log
 * n).
 */
uint32_t ts_graph_issued_before(const struct ts_graph_build *build, uint32_t stream,
				struct ts_graph_moment moment);

/* The one of these that ended last; TS_WORK_NONE: none. */
uint32_t ts_graph_latest_before(const struct ts_graph_build *build, uint32_t stream,
				struct ts_graph_moment moment);

/*
 * For traces that name no streams: the command that ended last in (from, to], was issued by
 * `moment`, and was the last work of its stream until then. If a command of another stream ended
 * within `close_ns` before it, the answer is none (-1: do not check). Commands of stream `except`
 * are skipped (TS_WORK_NONE: none).
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
 * The command that an event was recorded after, from a synchronisation row; or TS_WORK_NONE. Sets
 * TS_EDGE_INFERRED in *flags if it is inferred.
 */
uint32_t ts_graph_recorded(struct ts_graph_build *build, const struct ts_work_sync *sync,
			   unsigned int *flags);

/* The moment of a call. */
struct ts_graph_moment ts_graph_call_moment(const struct ts_work *work, uint32_t call);

/* ---- the groups ---- */

void ts_graph_issue_order(struct ts_graph_build *build); /* graph_issue.c; before all others */
void ts_graph_add_device(struct ts_graph_build *build);  /* launches, streams, graphs */
void ts_graph_add_syncs(struct ts_graph_build *build);   /* host waits, blocking copies */
void ts_graph_add_events(struct ts_graph_build *build);  /* streams that wait for streams */
void ts_graph_add_host(struct ts_graph_build *build);    /* stretches, program order */
void ts_graph_add_wakes(struct ts_graph_build *build);   /* cross-thread waits */
void ts_graph_add_flows(struct ts_graph_build *build);   /* forward, other arrows */
void ts_graph_add_ranks(struct ts_graph_build *build);   /* collectives */

/* graph_order.c: sorts edges and breaks cycles of zero-time edges. */
int ts_graph_index(struct ts_graph *graph);
int ts_graph_break_cycles(struct ts_graph *graph, bool any_back);

#endif
