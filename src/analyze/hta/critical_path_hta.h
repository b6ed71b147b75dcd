/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTA's critical-path graph of a window, rebuilt edge by edge for `--rounding hta`: a point for
 * each start and end of an operator, call and command, edges weighted by time, and the longest
 * path. It shares nothing with the graph of state/graph/graph.h. Private to critical_path_hta*.c.
 */
#ifndef TS_ANALYZE_HTA_CRITICAL_PATH_HTA_H
#define TS_ANALYZE_HTA_CRITICAL_PATH_HTA_H

#include "analyze/critical_path/critical_path.h"
#include "base/map.h"

enum ts_hta_edge_type {
	TS_HTA_OPERATOR,
	TS_HTA_DEPENDENCY,
	TS_HTA_LAUNCH_DELAY,
	TS_HTA_KERNEL_DELAY,
	TS_HTA_SYNC,
	TS_HTA_EDGE_TYPES
};

/* A point is twice the event's number, plus 1 for its end. */
struct ts_hta_edge {
	int64_t weight;
	uint32_t from, to;
	uint8_t type;
};

/* How HTA classifies a call by its name. */
#define TS_HTA_LAUNCH 1u   /* launches one command */
#define TS_HTA_LOCK 2u     /* assumed to hold the runtime's lock */
#define TS_HTA_BLOCKING 4u /* its own time has weight 0 */
#define TS_HTA_RECORD 8u   /* cudaEventRecord */

/* Events are numbered: slices, then calls, commands and syncs, in the order of the work. */
struct ts_hta_graph {
	const struct ts_work *work;
	uint32_t rank;
	int64_t from, to; /* the window */
	uint32_t first_call, first_command, first_sync, event_count;
	uint8_t *kept;  /* of each event: is it in the window? */
	uint8_t *flags; /* of each name: TS_HTA_* */
	/*
	 * Of each call: the command that HTA assigns to it, the last of several; TS_WORK_NONE:
	 * none.
	 */
	uint32_t *command_of_call;
	uint32_t operator_category;
	/* In the order in which HTA adds them, which breaks ties between paths of equal length. */
	struct ts_hta_edge *edges;
	size_t edge_count, edge_capacity;
	struct ts_pairmap by_points;
};

/* The longest path. Counts of nodes, and of edges by type, are those of the whole graph. */
struct ts_hta_path {
	bool valid; /* false: HTA rejects the graph; the path is empty */
	uint64_t node_count;
	uint64_t types[TS_HTA_EDGE_TYPES];
	uint32_t *points; /* of the path, first to last */
	size_t point_count;
	int64_t weight;
};

/* Selects the events of the window; adds no edges. release() accepts a partly initialised graph. */
int ts_hta_graph_init(struct ts_hta_graph *graph, const struct ts_work *work, uint32_t rank,
		      int64_t from, int64_t to, struct ts_error *err);
void ts_hta_graph_release(struct ts_hta_graph *graph);

/* Each adds the edges of one of HTA's passes. Call them in this order. */
int ts_hta_add_locks(struct ts_hta_graph *graph, struct ts_error *err);
int ts_hta_add_stacks(struct ts_hta_graph *graph, struct ts_error *err);
int ts_hta_add_commands(struct ts_hta_graph *graph, struct ts_error *err);

/* Adds an edge between two points. An existing edge is replaced but keeps its position. */
int ts_hta_add_edge(struct ts_hta_graph *graph, uint32_t from, uint32_t to,
		    enum ts_hta_edge_type type, int64_t weight, struct ts_error *err);

int ts_hta_longest_path(const struct ts_hta_graph *graph, struct ts_hta_path *ret_path,
			struct ts_error *err);
void ts_hta_path_release(struct ts_hta_path *path);

/* Does the event have points? Annotations and syncs have none, even in the window. */
bool ts_hta_has_points(const struct ts_hta_graph *graph, uint32_t event);
int64_t ts_hta_point_time(const struct ts_hta_graph *graph, uint32_t point);
uint8_t ts_hta_call_flags(const struct ts_hta_graph *graph, uint32_t event);

static inline uint32_t ts_hta_start(uint32_t event)
{
	return event * 2;
}

static inline uint32_t ts_hta_end(uint32_t event)
{
	return event * 2 + 1;
}

static inline bool ts_hta_is_call(const struct ts_hta_graph *graph, uint32_t event)
{
	return event >= graph->first_call && event < graph->first_command;
}

static inline bool ts_hta_is_command(const struct ts_hta_graph *graph, uint32_t event)
{
	return event >= graph->first_command && event < graph->first_sync;
}

#endif
