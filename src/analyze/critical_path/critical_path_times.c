/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dependency graph as points in time: a topological order, the cause that each point waited for
 * last, and the minimum lag after each cause. These lags reproduce the recorded times exactly.
 */
#include "analyze/critical_path/critical_path.h"

#include <string.h>

static uint32_t from_point(const struct ts_edge *edge)
{
	return edge->from * 2 + !(edge->flags & TS_EDGE_FROM_START);
}

static uint32_t to_point(const struct ts_edge *edge)
{
	return edge->to * 2 + !!(edge->flags & TS_EDGE_TO_END);
}

static bool has_node(const struct ts_path_model *model, uint32_t node)
{
	return model->rank == TS_WORK_NONE || ts_graph_node_rank(model->graph, node) == model->rank;
}

/* A collective's point number, after those of all nodes. */
static uint32_t collective_point(const struct ts_path_model *model, uint32_t collective)
{
	return model->graph->node_count * 2 + collective;
}

static bool is_collective(const struct ts_path_model *model, uint32_t point)
{
	return point >= model->graph->node_count * 2;
}

/* A collective replaces its edges; without collectives (a single rank) these edges lead nowhere. */
static bool counts(const struct ts_path_model *model, const struct ts_edge *edge)
{
	return has_node(model, edge->from) && has_node(model, edge->to) &&
	       !ts_path_is_collective_edge(edge, model->graph);
}

/* ---- order ---- */

struct order {
	struct ts_path_model *model;
	uint32_t *waits; /* of each point: number of causes without a position */
	uint32_t *ready; /* points whose causes all have a position */
	uint32_t ready_count;
};

static void count_waits(struct order *order)
{
	const struct ts_path_model *model = order->model;
	const struct ts_graph *graph = model->graph;

	for (uint32_t node = 0; node < graph->node_count; node++) {
		if (!has_node(model, node))
			continue;
		order->waits[node * 2 + 1]++;
		if (ts_path_collective_of(&model->collectives, node) != TS_WORK_NONE)
			order->waits[node * 2 + 1]++;
		for (uint32_t e = graph->first_in[node]; e < graph->first_in[node + 1]; e++)
			if (counts(model, &graph->edges[e]))
				order->waits[to_point(&graph->edges[e])]++;
	}
	for (uint32_t m = 0; m < model->collectives.count; m++)
		order->waits[collective_point(model, m)] = model->collectives.first[m + 1] -
							   model->collectives.first[m];
}

static void done(struct order *order, uint32_t point)
{
	if (order->waits[point] && --order->waits[point] == 0)
		order->ready[order->ready_count++] = point;
}

static void put_node_point(struct order *order, uint32_t point)
{
	const struct ts_path_model *model = order->model;
	const struct ts_graph *graph = model->graph;
	uint32_t node = point / 2, collective = ts_path_collective_of(&model->collectives, node);

	for (uint32_t i = graph->first_out[node]; i < graph->first_out[node + 1]; i++) {
		const struct ts_edge *edge = &graph->edges[graph->out[i]];

		if (from_point(edge) == point && counts(model, edge))
			done(order, to_point(edge));
	}
	if (point & 1)
		return;
	if (collective != TS_WORK_NONE)
		done(order, collective_point(model, collective));
	/*
	 * Its own end last, so that it is taken next: neighbours in time become neighbours in
	 * memory.
	 */
	done(order, point + 1);
}

static void put_point(struct order *order, uint32_t point)
{
	struct ts_path_model *model = order->model;
	uint32_t collective = point - model->graph->node_count * 2;

	model->position[point] = model->count;
	model->point[model->count++] = point;
	if (!is_collective(model, point)) {
		put_node_point(order, point);
		return;
	}
	for (uint32_t i = model->collectives.first[collective];
	     i < model->collectives.first[collective + 1]; i++)
		done(order, model->collectives.members[i] * 2 + 1);
}

static void put_ready(struct order *order)
{
	while (order->ready_count)
		put_point(order, order->ready[--order->ready_count]);
}

/* Points that are left over form cycles. The graph has none, but this code does not rely on it. */
static void put_points(struct order *order)
{
	const struct ts_path_model *model = order->model;
	uint32_t points = collective_point(model, model->collectives.count);

	for (int forced = 0; forced < 2; forced++) {
		for (uint32_t point = 0; point < points; point++) {
			if (model->position[point] != TS_WORK_NONE ||
			    (!is_collective(model, point) && !has_node(model, point / 2)) ||
			    (order->waits[point] && !forced))
				continue;
			order->waits[point] = 0;
			put_point(order, point);
			put_ready(order);
		}
	}
}

static int order_points(struct ts_path_model *model)
{
	size_t points = (size_t)collective_point(model, model->collectives.count);
	struct order order = { .model = model };
	int rc = TS_ENOMEM;

	model->position = ts_alloc_array(points, sizeof(*model->position));
	model->point = calloc(points + 1, sizeof(*model->point));
	order.waits = calloc(points + 1, sizeof(*order.waits));
	order.ready = ts_alloc_array(points, sizeof(*order.ready));
	if (model->position && model->point && order.waits && order.ready) {
		memset(model->position, 0xff, points * sizeof(*model->position));
		count_waits(&order);
		put_points(&order);
		rc = TS_OK;
	}
	free(order.waits);
	free(order.ready);
	return rc;
}

/* ---- arcs ---- */

static int64_t point_time(const struct ts_path_model *model, uint32_t point)
{
	const struct ts_path_collectives *collectives = &model->collectives;
	uint32_t collective = point - model->graph->node_count * 2;
	int64_t last = INT64_MIN;

	if (!is_collective(model, point))
		return point & 1 ? ts_graph_node_end(model->graph, point / 2)
				 : ts_graph_node_start(model->graph, point / 2);
	for (uint32_t i = collectives->first[collective]; i < collectives->first[collective + 1];
	     i++)
		last = TS_MAX(last, ts_graph_node_start(model->graph, collectives->members[i]));
	return last;
}

static size_t add_arc(struct ts_path_model *model, size_t count, uint32_t at, uint32_t from_point,
		      uint8_t kind)
{
	uint32_t from = model->position[from_point];

	/* Part of a cycle. */
	if (from == TS_WORK_NONE || from >= at)
		return count;
	model->arcs[count] = (struct ts_path_arc){
		.from = from,
		.kind = kind,
		.lag = ts_ns_sub(model->time[at], model->time[from]),
	};
	return count + 1;
}

/* A member's end waits for the collective, which waits for the member's start. */
static size_t add_node_arc(struct ts_path_model *model, size_t count, uint32_t at)
{
	uint32_t point = model->point[at];
	uint32_t collective = ts_path_collective_of(&model->collectives, point / 2);

	if (collective != TS_WORK_NONE)
		return add_arc(model, count, at, collective_point(model, collective),
			       TS_EDGE_COLLECTIVE);
	return add_arc(model, count, at, point - 1, TS_PATH_NODE_TIME);
}

static size_t add_arcs(struct ts_path_model *model, size_t count, uint32_t at)
{
	const struct ts_graph *graph = model->graph;
	const struct ts_path_collectives *collectives = &model->collectives;
	uint32_t point = model->point[at], node = point / 2;

	if (is_collective(model, point)) {
		uint32_t collective = point - graph->node_count * 2;

		for (uint32_t i = collectives->first[collective];
		     i < collectives->first[collective + 1]; i++)
			count = add_arc(model, count, at, collectives->members[i] * 2,
					TS_EDGE_COLLECTIVE);
		return count;
	}
	if (point & 1)
		count = add_node_arc(model, count, at);
	for (uint32_t e = graph->first_in[node]; e < graph->first_in[node + 1]; e++) {
		if (to_point(&graph->edges[e]) == point && counts(model, &graph->edges[e]))
			count = add_arc(model, count, at, from_point(&graph->edges[e]),
					graph->edges[e].kind);
	}
	return count;
}

static int make_arcs(struct ts_path_model *model)
{
	size_t count = 0, most = (size_t)model->count + model->graph->edge_count;

	if (most >= TS_WORK_NONE)
		return TS_ENOSPC;
	model->time = ts_alloc_array(model->count, sizeof(*model->time));
	model->first_arc = ts_alloc_array((size_t)model->count + 1, sizeof(*model->first_arc));
	model->arcs = calloc(most + 1, sizeof(*model->arcs));
	model->decisive = ts_alloc_array(model->count, sizeof(*model->decisive));
	model->name = ts_alloc_array(model->count, sizeof(*model->name));
	if (!model->time || !model->first_arc || !model->arcs || !model->decisive || !model->name)
		return TS_ENOMEM;
	for (uint32_t at = 0; at < model->count; at++) {
		model->time[at] = point_time(model, model->point[at]);
		model->first_arc[at] = (uint32_t)count;
		count = add_arcs(model, count, at);
	}
	model->first_arc[model->count] = (uint32_t)count;
	return TS_OK;
}

/* The cause that came last decides: the arc with the smallest lag. */
static void find_decisive(struct ts_path_model *model)
{
	for (uint32_t at = 0; at < model->count; at++) {
		uint32_t found = TS_WORK_NONE;

		for (uint32_t a = model->first_arc[at]; a < model->first_arc[at + 1]; a++)
			if (found == TS_WORK_NONE || model->arcs[a].lag < model->arcs[found].lag)
				found = a;
		model->decisive[at] = found;
	}
}

/* ---- lags ---- */

#define SAMPLES 4096

struct samples {
	int64_t lags[SAMPLES]; /* of decisive arcs of one kind */
	size_t count, seen, every;
	int64_t smallest; /* of all arcs of the kind */
};

static int compare_lags(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Keeps evenly spaced samples: when full, drops every second one and halves the rate. */
static void take_sample(struct samples *samples, int64_t lag)
{
	if (samples->seen++ % samples->every)
		return;
	if (samples->count == SAMPLES) {
		for (size_t i = 0; i < SAMPLES / 2; i++)
			samples->lags[i] = samples->lags[i * 2];
		samples->count = SAMPLES / 2;
		samples->every *= 2;
	}
	samples->lags[samples->count++] = lag;
}

/*
 * A node's own time says nothing about other nodes, except for waiting calls: their time when
 * nothing delays them.
 */
static void take_samples(const struct ts_path_model *model, struct samples *kinds)
{
	for (uint32_t at = 0; at < model->count; at++) {
		uint32_t first = model->first_arc[at], end = model->first_arc[at + 1];

		for (uint32_t a = first; a < end; a++) {
			const struct ts_path_arc *arc = &model->arcs[a];

			if (arc->kind == TS_PATH_NODE_TIME && end - first == 1)
				continue;
			kinds[arc->kind].smallest = TS_MIN(kinds[arc->kind].smallest, arc->lag);
			if (a == model->decisive[at])
				take_sample(&kinds[arc->kind], arc->lag);
		}
	}
}

/*
 * Upper limit if no arc of the kind decided: the typical lag is then the smallest seen, at most
 * this.
 */
static const int64_t USUAL_NS[TS_EDGE_KIND_COUNT + 1] = {
	[TS_EDGE_LAUNCH] = 5000, [TS_EDGE_STREAM] = 1000, [TS_EDGE_EVENT] = 2000,
	[TS_EDGE_SYNC] = 5000,   [TS_EDGE_COPY] = 5000,   [TS_EDGE_GRAPH] = 1000,
};

/* The typical lag of each kind of arc: the 10th percentile of those that decided. */
static int find_typical(struct ts_path_model *model)
{
	struct samples *kinds = calloc(TS_EDGE_KIND_COUNT + 1, sizeof(*kinds));

	if (!kinds)
		return TS_ENOMEM;
	for (int kind = 0; kind <= TS_EDGE_KIND_COUNT; kind++) {
		kinds[kind].every = 1;
		kinds[kind].smallest = INT64_MAX;
	}
	take_samples(model, kinds);
	for (int kind = 0; kind <= TS_EDGE_KIND_COUNT; kind++) {
		struct samples *samples = &kinds[kind];

		qsort(samples->lags, samples->count, sizeof(*samples->lags), compare_lags);
		if (samples->count)
			model->typical[kind] = samples->lags[(samples->count - 1) / 10];
		else
			model->typical[kind] = TS_MIN(USUAL_NS[kind], samples->smallest);
	}
	free(kinds);
	return TS_OK;
}

/* A collective happens when all members have begun; the time from then on is the members' work. */
static bool set_collective_lag(const struct ts_path_model *model, uint32_t at,
			       struct ts_path_arc *arc)
{
	if (is_collective(model, model->point[at])) {
		arc->lag = 0;
		return true;
	}
	arc->scaled = arc->kind == TS_PATH_NODE_TIME ||
		      is_collective(model, model->point[arc->from]);
	return arc->kind != TS_PATH_NODE_TIME && arc->scaled;
}

static void set_lags(struct ts_path_model *model)
{
	for (uint32_t at = 0; at < model->count; at++) {
		for (uint32_t a = model->first_arc[at]; a < model->first_arc[at + 1]; a++) {
			struct ts_path_arc *arc = &model->arcs[a];

			if (!set_collective_lag(model, at, arc) && a != model->decisive[at])
				arc->lag = TS_MIN(arc->lag, model->typical[arc->kind]);
		}
	}
}

/*
 * Times of real traces are within this bound. Faster work then still happens between the first and
 * the last of them.
 */
#define TAME_NS (INT64_C(1) << 61)

static void find_tame(struct ts_path_model *model)
{
	model->tame = true;
	for (uint32_t at = 0; at < model->count; at++)
		if (model->time[at] > TAME_NS || model->time[at] < -TAME_NS)
			model->tame = false;
	for (uint32_t a = 0; a < model->first_arc[model->count]; a++)
		if (model->arcs[a].lag < 0)
			model->tame = false;
}

static void find_names(struct ts_path_model *model)
{
	for (uint32_t at = 0; at < model->count; at++)
		model->name[at] =
			ts_path_name_key(ts_path_node_name(model->graph, model->point[at] / 2));
}

/* Replaces a collective's point by the start that it waited for last. */
static void name_collectives(struct ts_path_model *model)
{
	for (uint32_t m = 0; m < model->collectives.count; m++) {
		uint32_t at = model->position[collective_point(model, m)],
			 arc = model->decisive[at];

		model->point[at] =
			arc == TS_WORK_NONE
				? model->collectives.members[model->collectives.first[m]] * 2
				: model->point[model->arcs[arc].from];
	}
}

static int build(struct ts_path_model *model)
{
	int rc = TS_OK;

	if (model->rank == TS_WORK_NONE)
		rc = ts_path_collectives_init(&model->collectives, model->graph);
	if (!rc &&
	    (uint64_t)model->graph->node_count * 2 + model->collectives.count >= TS_WORK_NONE)
		rc = TS_ENOSPC;
	if (!rc)
		rc = order_points(model);
	if (!rc)
		rc = make_arcs(model);
	if (rc)
		return rc;
	find_decisive(model);
	rc = find_typical(model);
	if (rc)
		return rc;
	set_lags(model);
	name_collectives(model);
	find_names(model);
	find_tame(model);
	return TS_OK;
}

int ts_path_model_init(struct ts_path_model *model, const struct ts_graph *graph, uint32_t rank,
		       struct ts_error *err)
{
	int rc;

	*model = (struct ts_path_model){ .graph = graph, .rank = rank };
	rc = build(model);
	if (rc == TS_ENOSPC)
		return ts_error_set(
			err, rc, "too many dependencies for a critical path: choose fewer steps");
	return rc ? ts_error_set(err, rc, "no memory for the critical path") : TS_OK;
}

void ts_path_model_release(struct ts_path_model *model)
{
	free(model->position);
	free(model->point);
	free(model->time);
	free(model->first_arc);
	free(model->arcs);
	free(model->decisive);
	free(model->name);
	ts_path_collectives_release(&model->collectives);
	*model = (struct ts_path_model){ 0 };
}
