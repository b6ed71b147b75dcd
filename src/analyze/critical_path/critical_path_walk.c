/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the path from the last point of a window back to its start, at each point along the cause
 * that came last. The segments partition the window exactly.
 */
#include "analyze/critical_path/critical_path.h"

#include <string.h>

static const char *const CATEGORY_NAMES[TS_PATH_CATEGORIES] = {
	[TS_PATH_COMPUTE] = "compute", [TS_PATH_COMMUNICATION] = "communication",
	[TS_PATH_MEMORY] = "memory",   [TS_PATH_OTHER] = "other",
	[TS_PATH_LAUNCH] = "launch",   [TS_PATH_HOST] = "host",
	[TS_PATH_GAP] = "gap",         [TS_PATH_UNKNOWN] = "unknown",
};

const char *ts_path_category_name(enum ts_path_category category)
{
	return CATEGORY_NAMES[category];
}

/* ---- points without a recorded cause ---- */

struct ended {
	int64_t time;
	uint32_t rank, at;
};

struct walk {
	const struct ts_path_model *model;
	const struct ts_path_window *window;
	struct ts_path *path;
	int64_t cursor; /* time after it is already covered by segments */
	uint8_t *seen;  /* of each position */
	/*
	 * Built on first use: all ends sorted by rank and time, and how many of each rank are still
	 * candidates.
	 */
	struct ended *ended;
	uint32_t *first, *left;
};

static int compare_ended(const void *a, const void *b)
{
	const struct ended *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

static int make_ended(struct walk *walk)
{
	const struct ts_path_model *model = walk->model;
	uint32_t ranks = model->graph->work->rank_count, count = 0;

	walk->ended = ts_alloc_array(model->count / 2 + 1, sizeof(*walk->ended));
	walk->first = calloc((size_t)ranks + 1, sizeof(*walk->first));
	walk->left = calloc((size_t)ranks + 1, sizeof(*walk->left));
	if (!walk->ended || !walk->first || !walk->left)
		return TS_ENOMEM;
	for (uint32_t at = 0; at < model->count; at++) {
		uint32_t rank = ts_graph_node_rank(model->graph, model->point[at] / 2);

		if (!(model->point[at] & 1))
			continue;
		walk->ended[count++] =
			(struct ended){ .time = model->time[at], .rank = rank, .at = at };
		walk->left[rank]++;
	}
	qsort(walk->ended, count, sizeof(*walk->ended), compare_ended);
	for (uint32_t rank = 1; rank < ranks; rank++)
		walk->first[rank] = walk->first[rank - 1] + walk->left[rank - 1];
	return TS_OK;
}

/*
 * The last end on the rank before the cursor that the path has not visited. The cursor only moves
 * back, and so does the search.
 */
static int find_ended(struct walk *walk, uint32_t rank, uint32_t *ret_at)
{
	*ret_at = TS_WORK_NONE;
	if (!walk->ended && make_ended(walk))
		return TS_ENOMEM;
	while (walk->left[rank]) {
		const struct ended *ended = &walk->ended[walk->first[rank] + walk->left[rank] - 1];

		walk->left[rank]--;
		if (ended->time > walk->cursor || walk->seen[ended->at])
			continue;
		*ret_at = ended->at;
		break;
	}
	return TS_OK;
}

/* ---- segments ---- */

static enum ts_path_category command_category(const struct ts_graph *graph, uint32_t node)
{
	switch ((enum ts_command_class)graph->work->commands[node].class) {
	case TS_CLASS_COMPUTE:
		return TS_PATH_COMPUTE;
	case TS_CLASS_COMMUNICATION:
		return TS_PATH_COMMUNICATION;
	case TS_CLASS_MEMORY:
		return TS_PATH_MEMORY;
	default:
		return TS_PATH_OTHER;
	}
}

/*
 * A longer delay after the last known cause has a cause that is not recorded: a waiting call
 * returns soon after the command it waited for, and a command begins soon after everything it
 * needs.
 */
#define RETURN_MAX_NS 100000
#define DELAY_MAX_NS 1000000

static bool is_sync_call(const struct ts_graph *graph, uint32_t node)
{
	uint32_t call = node - graph->work->command_count;

	return node >= graph->work->command_count && call < graph->work->call_count &&
	       ts_api_is_sync((enum ts_api_kind)graph->work->calls[call].kind);
}

static enum ts_path_category segment_category(const struct ts_path_model *model, uint32_t at,
					      const struct ts_path_arc *arc)
{
	const struct ts_graph *graph = model->graph;
	uint32_t node = model->point[at] / 2;
	bool command = node < graph->work->command_count;

	if ((model->point[at] & 1) && arc->lag > RETURN_MAX_NS && is_sync_call(graph, node))
		return TS_PATH_UNKNOWN;
	if (arc->kind == TS_PATH_NODE_TIME || arc->kind == TS_EDGE_COLLECTIVE)
		return command ? command_category(graph, node) : TS_PATH_HOST;
	if (!command)
		return TS_PATH_HOST;
	if (arc->lag > DELAY_MAX_NS)
		return TS_PATH_UNKNOWN;
	return arc->kind == TS_EDGE_LAUNCH ? TS_PATH_LAUNCH : TS_PATH_GAP;
}

static int add_segment(struct walk *walk, int64_t start, struct ts_path_segment segment)
{
	struct ts_path *path = walk->path;

	segment.start = TS_MAX(start, walk->window->from);
	segment.end = walk->cursor;
	if (segment.start >= segment.end)
		return TS_OK;
	walk->cursor = segment.start;
	if (ts_grow_array((void **)&path->segments, &path->capacity, path->count + 1,
			  sizeof(segment)))
		return TS_ENOMEM;
	path->segments[path->count++] = segment;
	return TS_OK;
}

static int add_unknown(struct walk *walk, int64_t start)
{
	return add_segment(walk, start,
			   (struct ts_path_segment){ .node = TS_WORK_NONE,
						     .cause = TS_WORK_NONE,
						     .kind = TS_PATH_NODE_TIME,
						     .category = TS_PATH_UNKNOWN });
}

/*
 * Continues from a point without a recorded cause at what ended last. *at becomes TS_WORK_NONE if
 * there is nothing.
 */
static int jump(struct walk *walk, uint32_t *at)
{
	const struct ts_path_model *model = walk->model;
	uint32_t node = model->point[*at] / 2;
	int rc = find_ended(walk, ts_graph_node_rank(model->graph, node), at);

	if (rc || *at == TS_WORK_NONE)
		return rc;
	walk->path->jumps++;
	return add_unknown(walk, model->time[*at]);
}

static int step(struct walk *walk, uint32_t *at)
{
	const struct ts_path_model *model = walk->model;
	const struct ts_path_arc *arc;
	struct ts_path_segment segment;

	walk->seen[*at] = 1;
	if (model->decisive[*at] == TS_WORK_NONE)
		return jump(walk, at);
	arc = &model->arcs[model->decisive[*at]];
	if (walk->seen[arc->from])
		return jump(walk, at);
	segment = (struct ts_path_segment){
		.node = model->point[*at] / 2,
		.cause = model->point[arc->from] / 2,
		.kind = arc->kind,
		.category = segment_category(model, *at, arc),
	};
	*at = arc->from;
	return add_segment(walk, model->time[*at], segment);
}

static void reverse(struct ts_path *path)
{
	for (size_t i = 0, j = path->count; i + 1 < j; i++) {
		struct ts_path_segment segment = path->segments[i];

		path->segments[i] = path->segments[--j];
		path->segments[j] = segment;
	}
}

static int walk_back(struct walk *walk)
{
	uint32_t last = walk->window->last, at;
	int rc = TS_OK;

	if (last != TS_WORK_NONE) {
		at = walk->model->position[last * 2 + 1];
		/* An annotation may end after everything recorded in it. */
		rc = add_unknown(walk, walk->model->time[at]);
		while (!rc && at != TS_WORK_NONE && walk->cursor > walk->window->from)
			rc = step(walk, &at);
	}
	if (!rc)
		rc = add_unknown(walk, walk->window->from);
	reverse(walk->path);
	return rc;
}

int ts_path_walk(struct ts_path *path, const struct ts_path_model *model,
		 const struct ts_path_window *window, struct ts_error *err)
{
	struct walk walk = { .model = model, .window = window, .path = path, .cursor = window->to };
	int rc = TS_ENOMEM;

	*path = (struct ts_path){ 0 };
	walk.seen = calloc((size_t)model->count + 1, 1);
	if (walk.seen)
		rc = window->from < window->to ? walk_back(&walk) : TS_OK;
	free(walk.seen);
	free(walk.ended);
	free(walk.first);
	free(walk.left);
	return rc ? ts_error_set(err, rc, "no memory for the critical path") : TS_OK;
}

void ts_path_release(struct ts_path *path)
{
	free(path->segments);
	*path = (struct ts_path){ 0 };
}
