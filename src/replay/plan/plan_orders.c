/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other legal orders of a plan, which make races between streams visible: topological orders over
 * what the recorded program's streams, events and host waits order. In doubt commands are ordered.
 */
#include "replay/plan/plan_orders.h"

#include <string.h>

#include "replay/plan/plan.h"
#include "replay/stream/stream_internal.h"

struct edge {
	uint32_t from, to; /* positions in plan.order */
};

/* What the next command of a queue waits for: those of these positions that have no `next`. */
struct tail {
	uint32_t first, count;
};

/* Ends of a graph, or of streams, that one command is ordered after one by one. */
#define MOST_ENDS 256u

struct building {
	const struct ts_replay_plan *plan;
	const struct ts_replay_stream *stream;
	struct edge *edges;
	size_t count, capacity;
	uint32_t *positions; /* by command; NONE: not in the plan */
	struct tail *tails;  /* by object: queues */
	uint32_t *queues;    /* objects */
	uint32_t queue_count;
	bool *has_next;   /* by position: a later node of its graph launch depends on it */
	uint32_t host;    /* position that the host waited for last; NONE */
	uint32_t barrier; /* everything up to here is ordered before what follows; NONE */
	/* The graph launch that is being read. */
	struct tail before;
	uint32_t nodes;         /* position of its first node; NONE: none */
	uint32_t *of_node;      /* by node number: position */
	uint32_t node_capacity; /* of the largest graph */
};

static const struct ts_replay_command_info *command_at(const struct building *building,
						       uint32_t position)
{
	return &building->stream->commands[building->plan->order[position]];
}

/* ---- edges ---- */

static int order(struct building *building, uint32_t from, uint32_t to)
{
	if (from == TS_REPLAY_NONE || from >= to)
		return TS_OK;
	if (ts_grow_array((void **)&building->edges, &building->capacity, building->count + 1,
			  sizeof(*building->edges)))
		return TS_ENOMEM;
	building->edges[building->count++] = (struct edge){ from, to };
	return TS_OK;
}

static int order_after(struct building *building, const struct tail *tail, uint32_t to)
{
	int rc = TS_OK;

	for (uint32_t i = 0; !rc && i < tail->count; i++)
		if (!building->has_next[tail->first + i])
			rc = order(building, tail->first + i, to);
	return rc;
}

/* Everything before it ends first, and the host waits for it. */
static int add_barrier(struct building *building, uint32_t position)
{
	uint32_t first = building->barrier == TS_REPLAY_NONE ? 0 : building->barrier;
	int rc = TS_OK;

	for (uint32_t i = first; !rc && i < position; i++)
		rc = order(building, i, position);
	building->barrier = building->host = position;
	return rc;
}

/* After all nodes of a graph's launch. Very many would be too many edges. */
static int order_after_launch(struct building *building, uint32_t node, uint32_t position)
{
	const struct ts_replay_command_info *info = &building->stream->commands[node];
	uint32_t count = 0;
	int rc = TS_OK;

	for (uint32_t i = 0; !rc && i < info->graph_nodes; i++) {
		uint32_t other = building->positions[info->graph_first + i];

		if (other == TS_REPLAY_NONE || building->has_next[other])
			continue;
		if (++count > MOST_ENDS)
			return add_barrier(building, position);
		rc = order(building, other, position);
	}
	return rc;
}

static int add_waits(struct building *building, uint32_t position)
{
	const struct ts_replay_command_info *command = command_at(building, position);
	uint32_t named = command->wait_count - command->implicit_waits;
	int rc = TS_OK;

	for (uint32_t i = 0; !rc && i < command->wait_count; i++) {
		uint32_t other = ts_replay_plan_wait(building->plan, command->waits[i]);

		if (i >= named && building->stream->commands[command->waits[i]].graph_nodes)
			rc = order_after_launch(building, command->waits[i], position);
		else if (other != TS_REPLAY_NONE)
			rc = order(building, building->positions[other], position);
	}
	return rc;
}

/* ---- nodes of graphs ---- */

static bool is_first_node(const struct building *building, uint32_t position)
{
	const struct ts_replay_command_info *command = command_at(building, position);

	return building->nodes == TS_REPLAY_NONE ||
	       command_at(building, building->nodes)->graph_first != command->graph_first;
}

static int add_node(struct building *building, uint32_t position)
{
	const struct ts_replay_command_info *command = command_at(building, position);
	struct tail *tail = &building->tails[command->queue];
	bool is_after = false;
	int rc = TS_OK;

	if (is_first_node(building, position)) {
		building->nodes = position;
		building->before = *tail;
		*tail = (struct tail){ position, 0 };
		memset(building->of_node, 0xff, building->node_capacity * sizeof(uint32_t));
	}
	for (uint32_t i = 0; !rc && i < command->node_after_count; i++) {
		uint32_t number = command->node_after[i];
		uint32_t other = number < building->node_capacity ? building->of_node[number]
								  : TS_REPLAY_NONE;

		/* A node that does not run: after all nodes so far. */
		if (other == TS_REPLAY_NONE) {
			rc = order_after(building, tail, position);
			is_after |= tail->count > 0;
			for (uint32_t j = 0; j < tail->count; j++)
				building->has_next[tail->first + j] = true;
			continue;
		}
		rc = order(building, other, position);
		building->has_next[other] = true;
		is_after = true;
	}
	if (!rc && !is_after)
		rc = order_after(building, &building->before, position);
	if (command->node < building->node_capacity)
		building->of_node[command->node] = position;
	tail->count = position - tail->first + 1;
	return rc;
}

/* ---- all commands ---- */

/* Commands that the host makes itself, when it is their turn. */
static bool is_of_host(const struct ts_replay_command_info *command)
{
	if (command->queue == TS_REPLAY_NONE && command->kind != TS_COMMAND_SYNC)
		return true;
	return ts_replay_is_lifetime(command->kind) || command->kind == TS_COMMAND_SET ||
	       command->kind == TS_COMMAND_HOST_WRITE || command->kind == TS_COMMAND_HOST ||
	       command->user_wait_count;
}

/* The legacy default stream is idle when the streams that wait for it are. */
static int order_after_legacy(struct building *building, uint32_t queue, uint32_t position)
{
	const struct ts_replay_object_info *objects = building->stream->objects;
	uint32_t count = 0;
	int rc = TS_OK;

	for (uint32_t i = 0; !rc && i < building->queue_count; i++) {
		uint32_t other = building->queues[i];

		if (objects[other].parent != objects[queue].parent ||
		    objects[other].flags & TS_REPLAY_NON_BLOCKING)
			continue;
		count += building->tails[other].count;
		if (count > MOST_ENDS)
			return add_barrier(building, position);
		rc = order_after(building, &building->tails[other], position);
	}
	return rc;
}

static int add_sync(struct building *building, uint32_t position)
{
	const struct ts_replay_command_info *command = command_at(building, position);
	const char *what = command->what ? command->what : "";
	bool is_queue = !strcmp(what, "queue") && command->queue != TS_REPLAY_NONE;
	bool is_events = !strcmp(what, "events") || !strcmp(what, "seen");
	uint32_t queue = command->named_queue;
	int rc = TS_OK;

	/* Of a context, of a free, or of something that is not known here. */
	if (!is_queue && !is_events)
		return add_barrier(building, position);
	rc = add_waits(building, position);
	if (!rc && queue != TS_REPLAY_NONE &&
	    building->stream->objects[queue].flags & TS_REPLAY_LEGACY)
		rc = order_after_legacy(building, queue, position);
	else if (!rc && command->queue != TS_REPLAY_NONE)
		rc = order_after(building, &building->tails[command->queue], position);
	building->host = position;
	return rc;
}

static int add_position(struct building *building, uint32_t position)
{
	const struct ts_replay_command_info *command = command_at(building, position);
	bool is_node = command->graph != TS_REPLAY_NONE && command->queue != TS_REPLAY_NONE;
	int rc = order(building, building->host, position);

	if (!is_node)
		building->nodes = TS_REPLAY_NONE;
	if (rc)
		return rc;
	if (is_node) {
		rc = add_waits(building, position);
		return rc ? rc : add_node(building, position);
	}
	if (is_of_host(command))
		return add_barrier(building, position);
	if (command->kind == TS_COMMAND_SYNC)
		return add_sync(building, position);
	rc = add_waits(building, position);
	if (!rc)
		rc = order_after(building, &building->tails[command->queue], position);
	building->tails[command->queue] = (struct tail){ position, 1 };
	if (command->blocking)
		building->host = position;
	return rc;
}

static int build(struct building *building)
{
	const struct ts_replay_plan *plan = building->plan;
	int rc = TS_OK;

	building->host = building->barrier = building->nodes = TS_REPLAY_NONE;
	for (uint32_t i = 0; i < plan->count; i++)
		building->node_capacity =
			TS_MAX(building->node_capacity, command_at(building, i)->graph_nodes);
	building->positions =
		ts_alloc_array(building->stream->command_count + 1u, sizeof(uint32_t));
	building->tails = calloc(building->stream->object_count + 1u, sizeof(*building->tails));
	building->has_next = calloc(plan->count + 1u, sizeof(*building->has_next));
	building->of_node = ts_alloc_array(building->node_capacity + 1u, sizeof(uint32_t));
	building->queues = ts_alloc_array(building->stream->object_count + 1u, sizeof(uint32_t));
	if (!building->queues || !building->positions || !building->tails || !building->has_next ||
	    !building->of_node)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < building->stream->object_count; i++)
		if (building->stream->objects[i].kind == TS_OBJECT_STREAM)
			building->queues[building->queue_count++] = i;
	memset(building->positions, 0xff, building->stream->command_count * sizeof(uint32_t));
	for (uint32_t i = 0; i < plan->count; i++)
		building->positions[plan->order[i]] = i;
	for (uint32_t i = 0; !rc && i < plan->count; i++)
		rc = add_position(building, i);
	return rc;
}

/* ---- the graph of all positions ---- */

struct ready_item {
	uint64_t key;
	uint32_t position;
};

struct ts_replay_orders {
	const struct ts_replay_plan *plan;
	const struct ts_replay_stream *stream;
	uint32_t count;
	size_t *first;     /* by position: its successors in `next`; count + 1 of them */
	uint32_t *next;    /* positions */
	uint32_t *befores; /* by position: how many it must come after */
	uint32_t *left;    /* the same, of those that have not come yet; while an order is drawn */
	struct ready_item *ready;
	bool has_others;
};

static int set_edges(struct ts_replay_orders *orders, const struct building *building)
{
	TS_AUTO_FREE size_t *at = NULL;

	orders->first = calloc(orders->count + 2u, sizeof(*orders->first));
	orders->next = ts_alloc_array(building->count + 1, sizeof(*orders->next));
	orders->befores = calloc(orders->count + 1u, sizeof(*orders->befores));
	at = calloc(orders->count + 1u, sizeof(*at));
	if (!orders->first || !orders->next || !orders->befores || !at)
		return TS_ENOMEM;
	for (size_t i = 0; i < building->count; i++) {
		orders->first[building->edges[i].from + 1]++;
		orders->befores[building->edges[i].to]++;
	}
	for (uint32_t i = 0; i < orders->count; i++)
		orders->first[i + 1] += orders->first[i];
	memcpy(at, orders->first, orders->count * sizeof(*at));
	for (size_t i = 0; i < building->count; i++)
		orders->next[at[building->edges[i].from]++] = building->edges[i].to;
	return TS_OK;
}

/* ---- drawing an order ---- */

/* A heap of positions that may come next; the smallest key first. */
struct ready {
	struct ready_item *items;
	uint32_t count;
};

static bool is_before(const struct ready_item *a, const struct ready_item *b)
{
	return a->key != b->key ? a->key < b->key : a->position < b->position;
}

static void push(struct ready *ready, uint64_t key, uint32_t position)
{
	struct ready_item item = { key, position };
	uint32_t at = ready->count++;

	for (; at && is_before(&item, &ready->items[(at - 1) / 2]); at = (at - 1) / 2)
		ready->items[at] = ready->items[(at - 1) / 2];
	ready->items[at] = item;
}

static uint32_t pop(struct ready *ready)
{
	uint32_t position = ready->items[0].position, at = 0;
	struct ready_item last = ready->items[--ready->count];

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < ready->count &&
		    is_before(&ready->items[child + 1], &ready->items[child]))
			child++;
		if (child >= ready->count || !is_before(&ready->items[child], &last))
			break;
		ready->items[at] = ready->items[child];
		at = child;
	}
	ready->items[at] = last;
	return position;
}

static uint64_t mix(uint64_t value)
{
	value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
	return value ^ value >> 31;
}

/*
 * The first two orders are extremes: each stream as early as possible, the last one or the first
 * one first. All others are random, with bursts of commands of one stream that differ in length.
 */
static uint64_t key_of(const struct ts_replay_orders *orders, unsigned int number,
		       uint32_t position)
{
	uint32_t queue = orders->stream->commands[orders->plan->order[position]].queue;
	unsigned int burst = number % 7;

	if (number == 0)
		return (uint64_t)~queue << 32 | (uint32_t)~position;
	if (number == 1)
		return (uint64_t)queue << 32 | position;
	return mix(mix((uint64_t)number << 32 | queue) + (position >> burst));
}

void ts_replay_orders_draw(struct ts_replay_orders *orders, unsigned int number,
			   uint32_t *ret_order)
{
	struct ready ready = { .items = orders->ready };
	uint32_t count = 0;

	memcpy(orders->left, orders->befores, orders->count * sizeof(*orders->left));
	for (uint32_t i = 0; i < orders->count; i++)
		if (!orders->left[i])
			push(&ready, key_of(orders, number, i), i);
	while (ready.count) {
		uint32_t position = pop(&ready);

		ret_order[count++] = position;
		for (size_t i = orders->first[position]; i < orders->first[position + 1]; i++)
			if (!--orders->left[orders->next[i]])
				push(&ready, key_of(orders, number, orders->next[i]),
				     orders->next[i]);
	}
}

/* ---- are there others? ---- */

static bool writes(const struct ts_replay_orders *orders, uint32_t position)
{
	uint32_t index = orders->plan->order[position];
	enum ts_command_kind kind = orders->stream->commands[index].kind;

	return orders->plan->kept[index] != TS_REPLAY_ORDER &&
	       (kind == TS_COMMAND_LAUNCH || kind == TS_COMMAND_COPY || kind == TS_COMMAND_FILL ||
		kind == TS_COMMAND_HOST_WRITE);
}

/*
 * Two commands that write are unordered exactly if both are ready at some time, while all others
 * come as soon as they are: if only one is, everything that remains comes after it.
 */
static bool find_others(struct ts_replay_orders *orders)
{
	struct ready ready = { .items = orders->ready };

	memcpy(orders->left, orders->befores, orders->count * sizeof(*orders->left));
	for (uint32_t i = 0; i < orders->count; i++)
		if (!orders->left[i])
			push(&ready, writes(orders, i), i);
	while (ready.count) {
		/* Those that do not write come first. */
		if (ready.items[0].key && ready.count > 1)
			return true;
		for (size_t position = pop(&ready), i = orders->first[position];
		     i < orders->first[position + 1]; i++)
			if (!--orders->left[orders->next[i]])
				push(&ready, writes(orders, orders->next[i]), orders->next[i]);
	}
	return false;
}

bool ts_replay_orders_has_others(const struct ts_replay_orders *orders)
{
	return orders->has_others;
}

/* ---- all of it ---- */

int ts_replay_orders_new(struct ts_replay_orders **ret_orders, const struct ts_replay_plan *plan,
			 const struct ts_replay_stream *stream, struct ts_error *err)
{
	TS_AUTO(ts_replay_orders) orders = calloc(1, sizeof(*orders));
	struct building building = { .plan = plan, .stream = stream };
	int rc = orders ? build(&building) : TS_ENOMEM;

	if (!rc) {
		*orders = (struct ts_replay_orders){ .plan = plan,
						     .stream = stream,
						     .count = plan->count };
		orders->left = ts_alloc_array(plan->count + 1u, sizeof(*orders->left));
		orders->ready = ts_alloc_array(plan->count + 1u, sizeof(*orders->ready));
		rc = orders->left && orders->ready ? set_edges(orders, &building) : TS_ENOMEM;
	}
	free(building.edges);
	free(building.positions);
	free(building.tails);
	free(building.queues);
	free(building.has_next);
	free(building.of_node);
	if (rc)
		return ts_replay_no_memory(err);
	orders->has_others = find_others(orders);
	*ret_orders = TS_STEAL(orders);
	return TS_OK;
}

void ts_replay_orders_free(struct ts_replay_orders *orders)
{
	if (!orders)
		return;
	free(orders->first);
	free(orders->next);
	free(orders->befores);
	free(orders->left);
	free(orders->ready);
	free(orders);
}
