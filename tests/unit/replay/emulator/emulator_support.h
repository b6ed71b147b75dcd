/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of the emulator: handmade and random models, and a simple simulator after
 * docs/replay.md, section 7, which examines everything again at each instant.
 */
#ifndef TS_TESTS_UNIT_REPLAY_EMULATOR_EMULATOR_SUPPORT_H
#define TS_TESTS_UNIT_REPLAY_EMULATOR_EMULATOR_SUPPORT_H

#include <stdlib.h>
#include <string.h>

#include "replay/emulator/emulator.h"
#include "unit/runner.h"

#define MOST 256u

struct maker {
	struct ts_emulator_command commands[MOST];
	struct ts_emulator_point points[MOST];
	uint32_t thread_of[MOST]; /* of each point */
	struct {
		uint32_t from, to; /* nodes: points start at MOST */
		int64_t lag;
	} arrows[4 * MOST];
	uint32_t slots[8];
	uint32_t command_count, point_count, thread_count, arrow_count, resource_count;
};

static inline void maker_begin(struct maker *maker, uint32_t threads, uint32_t resources)
{
	memset(maker, 0, sizeof(*maker));
	maker->thread_count = threads;
	maker->resource_count = resources;
	for (uint32_t i = 0; i < resources; i++)
		maker->slots[i] = 1;
}

static inline uint32_t maker_command(struct maker *maker, uint32_t resource, int64_t duration,
				     int64_t launch_ns)
{
	TS_CHECK(maker->command_count < MOST);
	maker->commands[maker->command_count] = (struct ts_emulator_command){
		.duration = duration,
		.launch_ns = launch_ns,
		.resource = resource,
		.follower = TS_WORK_NONE,
	};
	return maker->command_count++;
}

/*
 * A point of a thread that submits a command (TS_WORK_NONE: none). As a node it is MOST plus its
 * number.
 */
static inline uint32_t maker_point(struct maker *maker, uint32_t thread, int64_t gap,
				   uint32_t command)
{
	uint32_t point = maker->point_count++;

	TS_CHECK(point < MOST);
	maker->points[point] = (struct ts_emulator_point){
		.gap_ns = gap,
		.what = command == TS_WORK_NONE ? 0 : command,
		.kind = command == TS_WORK_NONE ? TS_EMULATOR_END : TS_EMULATOR_GIVE,
	};
	maker->thread_of[point] = thread;
	return MOST + point;
}

static inline void maker_arrow(struct maker *maker, uint32_t from, uint32_t to, int64_t lag)
{
	TS_CHECK(maker->arrow_count < 4 * MOST);
	maker->arrows[maker->arrow_count].from = from;
	maker->arrows[maker->arrow_count].to = to;
	maker->arrows[maker->arrow_count++].lag = lag;
}

/* Points thread by thread. */
static inline void order_points(const struct maker *maker, struct ts_emulator_model *model,
				uint32_t *positions)
{
	uint32_t count = 0;

	for (uint32_t t = 0; t < maker->thread_count; t++) {
		model->threads[t].first = count;
		for (uint32_t p = 0; p < maker->point_count; p++) {
			if (maker->thread_of[p] != t)
				continue;
			positions[p] = count;
			model->points[count++] = maker->points[p];
		}
		model->threads[t].count = count - model->threads[t].first;
		if (model->threads[t].count)
			model->points[count - 1].is_last = true;
	}
}

static inline void fill_edges(const struct maker *maker, struct ts_emulator_model *model,
			      const uint32_t *positions)
{
	uint32_t nodes = maker->command_count + maker->point_count, at = 0;

	for (uint32_t n = 0; n < nodes; n++) {
		model->first_out[n] = at;
		for (uint32_t i = 0; i < maker->arrow_count; i++) {
			uint32_t from = maker->arrows[i].from, to = maker->arrows[i].to;

			from = from < MOST ? from : maker->command_count + positions[from - MOST];
			to = to < MOST ? to : maker->command_count + positions[to - MOST];
			if (from != n)
				continue;
			model->edges[at++] = (struct ts_emulator_edge){ maker->arrows[i].lag, to };
			model->waits[to]++;
		}
	}
	model->first_out[nodes] = at;
	model->edge_count = at;
	for (uint32_t n = maker->command_count; n < nodes; n++)
		model->waits[n] += model->waits[n] != 0;
	for (uint32_t c = 0; c < maker->command_count; c++) {
		model->waits[c]++;
		if (maker->commands[c].follower != TS_WORK_NONE)
			model->waits[maker->commands[c].follower]++;
	}
}

/* Positions of points in the model: positions[number of a point]. */
static inline struct ts_emulator_model *maker_model(const struct maker *maker, uint32_t *positions)
{
	struct ts_emulator_model *model = calloc(1, sizeof(*model));
	uint32_t nodes = maker->command_count + maker->point_count;

	TS_CHECK(model != NULL);
	model->command_count = maker->command_count;
	model->point_count = maker->point_count;
	model->thread_count = maker->thread_count;
	model->resource_count = maker->resource_count;
	model->commands = calloc(MOST, sizeof(*model->commands));
	model->points = calloc(MOST, sizeof(*model->points));
	model->threads = calloc(maker->thread_count + 1, sizeof(*model->threads));
	model->slots = calloc(maker->resource_count + 1, sizeof(*model->slots));
	model->first_submit = calloc(2, sizeof(*model->first_submit));
	model->submits = calloc(1, sizeof(*model->submits));
	model->first_out = calloc(nodes + 2, sizeof(*model->first_out));
	model->edges = calloc(maker->arrow_count + 1, sizeof(*model->edges));
	model->waits = calloc(nodes + 1, sizeof(*model->waits));
	memcpy(model->commands, maker->commands, sizeof(maker->commands));
	memcpy(model->slots, maker->slots, maker->resource_count * sizeof(*model->slots));
	order_points(maker, model, positions);
	fill_edges(maker, model, positions);
	return model;
}

/* ---- the simple simulator ---- */

#define NEVER INT64_MAX

struct slow {
	const struct ts_emulator_model *model;
	enum ts_emulator_policy policy;
	int64_t issued[MOST], start[MOST], end[MOST], points[MOST];
	bool began_before[MOST]; /* in an earlier round: successors may begin */
};

/* When the last predecessor of a node is done; NEVER: one is not done by now. */
static inline int64_t slow_ready(const struct slow *slow, uint32_t node, int64_t now)
{
	const struct ts_emulator_model *model = slow->model;
	uint32_t nodes = model->command_count + model->point_count;
	int64_t ready = INT64_MIN;

	for (uint32_t from = 0; from < nodes; from++) {
		int64_t time = from < model->command_count
				       ? slow->end[from]
				       : slow->points[from - model->command_count];

		for (uint32_t e = model->first_out[from]; e < model->first_out[from + 1]; e++) {
			if (model->edges[e].to != node)
				continue;
			if (time > now)
				return NEVER;
			ready = TS_MAX(ready, time + model->edges[e].lag_ns);
		}
	}
	return ready;
}

static inline int64_t slow_command(const struct slow *slow, uint32_t c, int64_t now)
{
	int64_t ready = slow_ready(slow, c, now);

	if (ready == NEVER || slow->issued[c] > now)
		return NEVER;
	for (uint32_t leader = 0; leader < slow->model->command_count; leader++) {
		if (slow->model->commands[leader].follower != c)
			continue;
		if (!slow->began_before[leader])
			return NEVER;
		ready = TS_MAX(ready, slow->start[leader]);
	}
	return TS_MAX(ready, slow->issued[c] + slow->model->commands[c].launch_ns) +
	       slow->model->commands[c].held_ns;
}

static inline int64_t slow_point(const struct slow *slow, uint32_t thread, uint32_t p, int64_t now)
{
	const struct ts_emulator_model *model = slow->model;
	int64_t ready = slow_ready(slow, model->command_count + p, now), self_ns;

	if (p == model->threads[thread].first)
		self_ns = model->points[p].gap_ns;
	else if (slow->points[p - 1] > now)
		return NEVER;
	else
		self_ns = slow->points[p - 1] + model->points[p].gap_ns;
	return ready == NEVER ? NEVER : TS_MAX(ready, self_ns);
}

/* Everything that happens by itself at this instant; true: something did. */
static inline bool slow_flow(struct slow *slow, int64_t now, int64_t *next)
{
	const struct ts_emulator_model *model = slow->model;
	bool any = false;

	for (uint32_t t = 0; t < model->thread_count; t++)
		for (uint32_t i = 0; i < model->threads[t].count; i++) {
			uint32_t p = model->threads[t].first + i;
			int64_t time = slow->points[p] == NEVER ? slow_point(slow, t, p, now)
								: NEVER;

			if (time > now) {
				*next = TS_MIN(*next, time);
				continue;
			}
			slow->points[p] = now;
			if (model->points[p].kind == TS_EMULATOR_GIVE)
				slow->issued[model->points[p].what] = now;
			any = true;
		}
	for (uint32_t c = 0; c < model->command_count; c++) {
		int64_t time;

		if (slow->start[c] != NEVER) {
			if (slow->end[c] > now)
				*next = TS_MIN(*next, slow->end[c]);
			if (!slow->began_before[c])
				any = slow->began_before[c] = true;
			continue;
		}
		time = slow_command(slow, c, now);
		if (time > now) {
			*next = TS_MIN(*next, time);
		} else if (model->commands[c].resource == TS_WORK_NONE) {
			slow->start[c] = now;
			slow->end[c] = now + model->commands[c].duration;
			any = true;
		}
	}
	return any;
}

static inline bool slow_is_before(const struct slow *slow, uint32_t a, uint32_t b)
{
	const struct ts_emulator_command *commands = slow->model->commands;

	if (slow->policy == TS_EMULATOR_PRIORITY && commands[a].priority != commands[b].priority)
		return commands[a].priority < commands[b].priority;
	if (slow->policy == TS_EMULATOR_SHORTEST && commands[a].duration != commands[b].duration)
		return commands[a].duration < commands[b].duration;
	if (slow->issued[a] != slow->issued[b])
		return slow->issued[a] < slow->issued[b];
	return a < b;
}

/* One round: every resource takes as many as it can; true: one began. */
static inline bool slow_dispatch(struct slow *slow, int64_t now)
{
	const struct ts_emulator_model *model = slow->model;
	bool ready[MOST], any = false;

	for (uint32_t c = 0; c < model->command_count; c++)
		ready[c] = slow->start[c] == NEVER && slow_command(slow, c, now) <= now;
	for (uint32_t r = 0; r < model->resource_count; r++) {
		uint32_t running = 0, best;

		for (uint32_t c = 0; c < model->command_count; c++)
			running += model->commands[c].resource == r && slow->start[c] != NEVER &&
				   slow->end[c] > now;
		do {
			best = TS_WORK_NONE;
			for (uint32_t c = 0; c < model->command_count; c++)
				if (ready[c] && model->commands[c].resource == r &&
				    (best == TS_WORK_NONE || slow_is_before(slow, c, best)))
					best = c;
			if (best == TS_WORK_NONE || running == model->slots[r])
				break;
			ready[best] = false;
			slow->start[best] = now;
			slow->end[best] = now + model->commands[best].duration;
			running++;
			any = true;
		} while (running < model->slots[r]);
	}
	return any;
}

static inline void slow_run(struct slow *slow, const struct ts_emulator_model *model,
			    enum ts_emulator_policy policy)
{
	int64_t now = INT64_MIN, next = 0;

	memset(slow, 0, sizeof(*slow));
	slow->model = model;
	slow->policy = policy;
	for (uint32_t i = 0; i < MOST; i++)
		slow->issued[i] = slow->start[i] = slow->end[i] = slow->points[i] = NEVER;
	for (uint32_t t = 0; t < model->thread_count; t++)
		if (model->threads[t].count)
			next = TS_MIN(next, model->points[model->threads[t].first].gap_ns);
	while (next != NEVER) {
		bool any;

		now = next;
		do {
			next = NEVER;
			while (slow_flow(slow, now, &next))
				next = NEVER;
			any = slow_dispatch(slow, now);
		} while (any);
	}
}

#endif
