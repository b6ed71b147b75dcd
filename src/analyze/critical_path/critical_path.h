/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path of a window of the work: what determined when it ended, and how much sooner it
 * would have ended if something were faster. Private to critical_path*.c and their tests.
 *
 *	ts_path_model_init()	builds the model: points in time, causes first, with their causes
 *	ts_path_window_init()	selects a part of it and finds its last point
 *	ts_path_walk()		follows the latest cause back: segments that partition the window
 *	ts_path_what_if()	recomputes all points with some durations changed
 */
#ifndef TS_ANALYZE_CRITICAL_PATH_CRITICAL_PATH_H
#define TS_ANALYZE_CRITICAL_PATH_CRITICAL_PATH_H

#include "analyze/analyze.h"
#include "base/map.h"
#include "base/ns.h"

/* ---- collectives: critical_path_collectives.c ---- */

/*
 * Collectives of the graph: commands of several ranks that proceed once the last of them has begun.
 */
struct ts_path_collectives {
	uint32_t *of_node; /* TS_WORK_NONE: in none; NULL: the graph has no collectives */
	uint32_t count;
	uint32_t *first;   /* count + 1: into members */
	uint32_t *members; /* nodes */
};

int ts_path_collectives_init(struct ts_path_collectives *collectives, const struct ts_graph *graph);
void ts_path_collectives_release(struct ts_path_collectives *collectives);

/* Is the edge represented by a collective? */
bool ts_path_is_collective_edge(const struct ts_edge *edge, const struct ts_graph *graph);

static inline uint32_t ts_path_collective_of(const struct ts_path_collectives *collectives,
					     uint32_t node)
{
	return collectives->of_node ? collectives->of_node[node] : TS_WORK_NONE;
}

/* ---- the model: critical_path_times.c ---- */

/* Arc kind of a node's own time, from its start to its end; follows the kinds of edges. */
#define TS_PATH_NODE_TIME TS_EDGE_KIND_COUNT

/* A point happens at least `lag` after the point at position `from`. */
struct ts_path_arc {
	int64_t lag;
	uint32_t from;
	uint8_t kind; /* enum ts_edge_kind, or TS_PATH_NODE_TIME */
	bool scaled;  /* the lag is work of the point's node: it shrinks if the work is faster */
};

/*
 * A point is twice the node's number, plus 1 for its end. Positions order the points topologically,
 * causes first; arrays are indexed by position unless noted. A collective has its own position,
 * between the starts and the ends of its members, with the point of the start that came last.
 */
struct ts_path_model {
	const struct ts_graph *graph;
	uint32_t rank; /* only the nodes of this rank; TS_WORK_NONE: all */
	uint32_t count;
	uint32_t *position; /* indexed by point; TS_WORK_NONE: not in the model */
	uint32_t *point;
	int64_t *time;       /* as recorded */
	uint32_t *first_arc; /* count + 1 */
	struct ts_path_arc *arcs;
	uint32_t *decisive; /* arc from the cause that came last; TS_WORK_NONE: none known */
	uint32_t *name;     /* of its node: ts_path_name_key() */
	bool tame;          /* times and lags are small enough that their sums cannot overflow */
	int64_t typical[TS_EDGE_KIND_COUNT + 1];
	struct ts_path_collectives collectives;
};

/* rank: TS_WORK_NONE for all. release() accepts a zeroed or partly initialised model. */
int ts_path_model_init(struct ts_path_model *model, const struct ts_graph *graph, uint32_t rank,
		       struct ts_error *err);
void ts_path_model_release(struct ts_path_model *model);

/* A node's name, and whether the node is a command: a kernel and an operator may share a name. */
struct ts_path_name {
	uint32_t name;
	bool device;
};
struct ts_path_name ts_path_node_name(const struct ts_graph *graph, uint32_t node);

static inline uint32_t ts_path_name_key(struct ts_path_name name)
{
	return name.name * 2 + name.device;
}

/* ---- the window: critical_path_window.c ---- */

/* A node whose end can determine the end of the window. */
struct ts_path_member {
	int64_t limit; /* part of its time that counts: host work may extend beyond the window */
	uint32_t node;
};

struct ts_path_window {
	int64_t from, to;
	uint32_t last; /* the node that ends last; TS_WORK_NONE: the window is empty */
	struct ts_path_member *members;
	size_t member_count;
};

/* annotation NULL: the whole model. TS_ENOTFOUND: no such instance. */
int ts_path_window_init(struct ts_path_window *window, const struct ts_path_model *model,
			const char *annotation, int64_t instance, struct ts_error *err);
void ts_path_window_release(struct ts_path_window *window);

/* ---- the path: critical_path_walk.c ---- */

enum ts_path_category {
	TS_PATH_COMPUTE,
	TS_PATH_COMMUNICATION,
	TS_PATH_MEMORY,
	TS_PATH_OTHER, /* other commands */
	TS_PATH_LAUNCH,
	TS_PATH_HOST,
	TS_PATH_GAP,
	TS_PATH_UNKNOWN,
	TS_PATH_CATEGORIES
};
const char *ts_path_category_name(enum ts_path_category category);

struct ts_path_segment {
	int64_t start, end;
	uint32_t node;  /* what ran, or what waited; TS_WORK_NONE: unknown */
	uint32_t cause; /* the node before it on the path */
	uint8_t kind;   /* as an arc's */
	uint8_t category;
};

struct ts_path {
	struct ts_path_segment *segments; /* in order of time; none is empty */
	size_t count, capacity;
	uint64_t jumps; /* number of times that no recorded cause led on */
};

int ts_path_walk(struct ts_path *path, const struct ts_path_model *model,
		 const struct ts_path_window *window, struct ts_error *err);
void ts_path_release(struct ts_path *path);

/* ---- names: critical_path_names.c ---- */

/*
 * Time of a name on the path. Gaps and other non-work have a fixed text instead of a name of the
 * trace.
 */
struct ts_path_sum {
	const char *text;
	struct ts_path_name name;
	bool work; /* time of nodes of that name, which could be faster */
	uint8_t category;
	uint64_t count;
	int64_t path_ns, total_ns;
};

struct ts_path_sums {
	struct ts_path_sum *sums;
	size_t count, capacity;
	struct ts_pairmap positions; /* (category, key in the category) to index in sums */
};

/*
 * Names a segment: fills *ret_sum except for the sums. Returns a key that is unique in its
 * category.
 */
uint64_t ts_path_describe(const struct ts_graph *graph, const struct ts_path_segment *segment,
			  struct ts_path_sum *ret_sum);

/*
 * Sorted by time on the path, most first. The caller zeroes *sums, and releases it even on failure.
 * 0 or TS_ENOMEM.
 */
int ts_path_sum_names(struct ts_path_sums *sums, const struct ts_path_model *model,
		      const struct ts_path_window *window, const struct ts_path *path);
void ts_path_sums_release(struct ts_path_sums *sums);

/* ---- what if: critical_path_what_if.c ---- */

#define TS_PATH_FREE 0.0

/* Nodes of some names take `factor` of their time. */
struct ts_path_change {
	const uint8_t *device_names,
		*host_names; /* indexed by name: does it change? NULL: none does */
	double factor;       /* 0 to 1; TS_PATH_FREE */
};

/* Computes when the window would end, for each change. */
int ts_path_what_if(const struct ts_path_model *model, const struct ts_path_window *window,
		    const struct ts_path_change *changes, size_t count, int64_t *ret_ends,
		    struct ts_error *err);

/* ---- `--rounding hta`: HTA's graph, one row per rank in the table "hta" ---- */

int ts_critical_path_hta(struct ts_analyze_request *request, struct ts_result *result,
			 struct ts_error *err);

#endif
