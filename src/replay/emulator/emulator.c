/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulation. Processes all events of one instant before any command starts at it, so that the
 * order inside the heap does not matter. The policy picks among ready commands. All memory is
 * allocated before the first event. Uses only the model, never recorded times.
 */
#include "replay/emulator/emulator.h"

#include "base/ns.h"

/* Instants after which progress is reported: about a millisecond. */
#define PROGRESS_EVERY 4096u

enum event_kind {
	EVENT_ENDED,   /* a command */
	EVENT_STARTED, /* a command with a follower */
	EVENT_READY,   /* a command */
	EVENT_POINT,   /* a thread reaches a point */
};

struct event {
	int64_t time;
	uint32_t what;
	uint32_t kind; /* enum event_kind */
};

/* What a node still waits for, and the earliest time known so far. */
struct node {
	int64_t ready;
	uint32_t waits; /* 0: for nothing */
};

/* A ready command, and its rank by the policy. */
struct candidate {
	int64_t key, issued;
	uint32_t command;
};

struct resource {
	struct candidate *candidates; /* a heap */
	uint32_t count;
	uint32_t free_slots;
	bool changed;
};

struct run {
	const struct ts_emulator_model *model;
	struct ts_emulator_times *times;
	const struct ts_emulator_run_options *options;
	int64_t now;
	uint32_t ended;       /* commands */
	uint64_t instants;    /* at which something happened */
	struct event *events; /* a heap */
	size_t event_count;
	struct node *nodes;
	struct resource *resources;
	struct candidate *candidates;
	uint32_t *changed; /* resources */
	uint32_t changed_count;
	/*
	 * Points at which threads wait, in order of arrival. If nothing can proceed, the wait of
	 * the first one is dropped.
	 */
	uint32_t *stuck;
	uint32_t stuck_count, stuck_next;
	uint32_t next_command; /* all commands before it have begun or had their waits dropped */
};

/* ---- events ---- */

static void push(struct run *run, int64_t time, enum event_kind kind, uint32_t what)
{
	struct event *events = run->events;
	size_t at = run->event_count++;

	while (at > 0) {
		size_t above = (at - 1) / 2;

		if (events[above].time <= time)
			break;
		events[at] = events[above];
		at = above;
	}
	events[at] = (struct event){ time, what, kind };
}

static struct event pop(struct run *run)
{
	struct event *events = run->events;
	struct event first = events[0], last = events[--run->event_count];
	size_t at = 0, count = run->event_count;

	for (size_t below = 1; below < count; below = 2 * at + 1) {
		if (below + 1 < count && events[below + 1].time < events[below].time)
			below++;
		if (last.time <= events[below].time)
			break;
		events[at] = events[below];
		at = below;
	}
	events[at] = last;
	return first;
}

/* ---- policy ---- */

static bool is_before(const struct candidate *a, const struct candidate *b)
{
	if (a->key != b->key)
		return a->key < b->key;
	if (a->issued != b->issued)
		return a->issued < b->issued;
	return a->command < b->command;
}

static int64_t policy_key(const struct run *run, uint32_t command)
{
	switch (run->options->policy) {
	case TS_EMULATOR_PRIORITY:
		return run->model->commands[command].priority;
	case TS_EMULATOR_SHORTEST:
		return run->model->commands[command].duration;
	default:
		return 0;
	}
}

static void add_candidate(struct run *run, struct resource *resource, uint32_t command)
{
	struct candidate candidate = { policy_key(run, command), run->times->issued[command],
				       command };
	struct candidate *heap = resource->candidates;
	uint32_t at = resource->count++;

	while (at > 0) {
		uint32_t above = (at - 1) / 2;

		if (is_before(&heap[above], &candidate))
			break;
		heap[at] = heap[above];
		at = above;
	}
	heap[at] = candidate;
}

static uint32_t take_candidate(struct resource *resource)
{
	struct candidate *heap = resource->candidates;
	uint32_t first = heap[0].command, at = 0, count = --resource->count;
	struct candidate last = heap[count];

	for (uint32_t below = 1; below < count; below = 2 * at + 1) {
		if (below + 1 < count && is_before(&heap[below + 1], &heap[below]))
			below++;
		if (is_before(&last, &heap[below]))
			break;
		heap[at] = heap[below];
		at = below;
	}
	heap[at] = last;
	return first;
}

static void note_change(struct run *run, uint32_t resource)
{
	if (run->resources[resource].changed)
		return;
	run->resources[resource].changed = true;
	run->changed[run->changed_count++] = resource;
}

/* ---- commands ---- */

static void start(struct run *run, uint32_t command)
{
	const struct ts_emulator_command *model = &run->model->commands[command];
	int64_t end = ts_ns_add(run->now, model->duration);

	run->times->start[command] = run->now;
	run->times->end[command] = end;
	push(run, end, EVENT_ENDED, command);
	if (model->follower != TS_WORK_NONE)
		push(run, run->now, EVENT_STARTED, command);
}

/* Everything the command waited for has happened. */
static void enter(struct run *run, uint32_t command)
{
	uint32_t resource = run->model->commands[command].resource;

	if (resource == TS_WORK_NONE) {
		start(run, command);
		return;
	}
	add_candidate(run, &run->resources[resource], command);
	note_change(run, resource);
}

static void fire(struct run *run, uint32_t node)
{
	int64_t ready = TS_MAX(run->nodes[node].ready, run->now);

	if (node >= run->model->command_count) {
		push(run, ready, EVENT_POINT, node - run->model->command_count);
		return;
	}
	ready = ts_ns_add(ready, run->model->commands[node].held_ns);
	if (ready > run->now)
		push(run, ready, EVENT_READY, node);
	else
		enter(run, node);
}

/*
 * One dependency less; the node happens no earlier than `time`. A node whose waits were dropped
 * waits for nothing.
 */
static void release(struct run *run, uint32_t node, int64_t time)
{
	struct node *state = &run->nodes[node];

	if (state->waits == 0)
		return;
	state->ready = TS_MAX(state->ready, time);
	if (--state->waits == 0)
		fire(run, node);
}

static void release_behind(struct run *run, uint32_t node)
{
	const struct ts_emulator_model *model = run->model;
	uint32_t end = model->first_out[node + 1];

	for (uint32_t e = model->first_out[node]; e < end; e++)
		release(run, model->edges[e].to, ts_ns_add(run->now, model->edges[e].lag_ns));
}

static void command_ended(struct run *run, uint32_t command)
{
	uint32_t resource = run->model->commands[command].resource;

	run->ended++;
	if (resource != TS_WORK_NONE) {
		run->resources[resource].free_slots++;
		if (run->resources[resource].count)
			note_change(run, resource);
	}
	release_behind(run, command);
}

static void submit(struct run *run, uint32_t command)
{
	run->times->issued[command] = run->now;
	release(run, command, ts_ns_add(run->now, run->model->commands[command].launch_ns));
}

/* ---- threads ---- */

/* The thread continues to its next point, and waits there if necessary. */
static void go_on(struct run *run, uint32_t point)
{
	const struct ts_emulator_point *next = &run->model->points[point];
	uint32_t node = ts_emulator_point_node(run->model, point);
	int64_t time = ts_ns_add(run->now, next->gap_ns);

	if (run->nodes[node].waits == 0) {
		push(run, time, EVENT_POINT, point);
		return;
	}
	release(run, node, time);
	if (run->nodes[node].waits)
		run->stuck[run->stuck_count++] = node;
}

static void come_to(struct run *run, uint32_t point)
{
	const struct ts_emulator_model *model = run->model;
	const struct ts_emulator_point *at = &model->points[point];

	run->times->points[point] = run->now;
	if (at->kind == TS_EMULATOR_GIVE)
		submit(run, at->what);
	else if (at->kind == TS_EMULATOR_BEGIN)
		for (uint32_t i = model->first_submit[at->what];
		     i < model->first_submit[at->what + 1]; i++)
			submit(run, model->submits[i]);
	release_behind(run, ts_emulator_point_node(model, point));
	if (!at->is_last)
		go_on(run, point + 1);
}

/* ---- one instant ---- */

static void happen(struct run *run, const struct event *event)
{
	switch ((enum event_kind)event->kind) {
	case EVENT_ENDED:
		command_ended(run, event->what);
		break;
	case EVENT_STARTED:
		release(run, run->model->commands[event->what].follower, run->now);
		break;
	case EVENT_READY:
		enter(run, event->what);
		break;
	case EVENT_POINT:
		come_to(run, event->what);
		break;
	}
}

static void fill_slots(struct run *run)
{
	uint32_t count = run->changed_count;

	run->changed_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct resource *resource = &run->resources[run->changed[i]];

		resource->changed = false;
		while (resource->free_slots && resource->count) {
			resource->free_slots--;
			start(run, take_candidate(resource));
		}
	}
}

/* Nothing can proceed: drops the waits of one node; false: no node waits. */
static bool drop_one_wait(struct run *run)
{
	uint32_t node = TS_WORK_NONE;

	while (run->stuck_next < run->stuck_count && node == TS_WORK_NONE) {
		uint32_t candidate = run->stuck[run->stuck_next++];

		if (run->nodes[candidate].waits)
			node = candidate;
	}
	for (; run->next_command < run->model->command_count && node == TS_WORK_NONE;
	     run->next_command++)
		if (run->nodes[run->next_command].waits)
			node = run->next_command;
	if (node == TS_WORK_NONE)
		return false;
	run->times->broken_waits += run->nodes[node].waits;
	run->nodes[node].waits = 0;
	fire(run, node);
	return true;
}

static void happen_now(struct run *run)
{
	run->now = run->events[0].time;
	while (run->event_count && run->events[0].time == run->now) {
		struct event event = pop(run);

		happen(run, &event);
	}
	fill_slots(run);
}

static int simulate(struct run *run)
{
	const struct ts_emulator_run_options *options = run->options;

	do {
		while (run->event_count) {
			happen_now(run);
			if (++run->instants % PROGRESS_EVERY == 0 && options->progress &&
			    options->progress(options->context, run->ended,
					      run->model->command_count))
				return TS_ECANCELED;
		}
		/* A command whose waits were dropped may be ready now. */
		fill_slots(run);
	} while (run->event_count || drop_one_wait(run));
	return TS_OK;
}

/* ---- setup ---- */

static void reset(struct run *run)
{
	const struct ts_emulator_model *model = run->model;
	uint32_t nodes = model->command_count + model->point_count;
	struct candidate *next = run->candidates;

	for (uint32_t i = 0; i < nodes; i++)
		run->nodes[i] = (struct node){ .ready = INT64_MIN, .waits = model->waits[i] };
	for (uint32_t i = 0; i < model->resource_count; i++)
		run->resources[i] = (struct resource){ .free_slots = model->slots[i] };
	for (uint32_t i = 0; i < model->command_count; i++) {
		uint32_t resource = model->commands[i].resource;

		run->times->issued[i] = run->times->start[i] = run->times->end[i] = INT64_MIN;
		if (resource != TS_WORK_NONE)
			run->resources[resource].count++;
	}
	/* Each resource has slots for all commands that use it. */
	for (uint32_t i = 0; i < model->resource_count; i++) {
		run->resources[i].candidates = next;
		next += run->resources[i].count;
		run->resources[i].count = 0;
	}
	run->times->broken_waits = 0;
}

static void start_threads(struct run *run)
{
	run->now = INT64_MIN;
	for (uint32_t i = 0; i < run->model->thread_count; i++) {
		const struct ts_emulator_thread *thread = &run->model->threads[i];
		const struct ts_emulator_point *first = &run->model->points[thread->first];
		uint32_t node = ts_emulator_point_node(run->model, thread->first);

		if (thread->count == 0)
			continue;
		if (run->nodes[node].waits == 0) {
			push(run, first->gap_ns, EVENT_POINT, thread->first);
			continue;
		}
		release(run, node, first->gap_ns);
		if (run->nodes[node].waits)
			run->stuck[run->stuck_count++] = node;
	}
}

static int make_times(struct ts_emulator_times *times, const struct ts_emulator_model *model)
{
	if (times->issued)
		return TS_OK;
	times->issued = ts_alloc_array(model->command_count, sizeof(*times->issued));
	times->start = ts_alloc_array(model->command_count, sizeof(*times->start));
	times->end = ts_alloc_array(model->command_count, sizeof(*times->end));
	times->points = ts_alloc_array(model->point_count, sizeof(*times->points));
	return times->issued && times->start && times->end && times->points ? TS_OK : TS_ENOMEM;
}

/* At most two events per command and one per thread are pending at once. */
static int allocate(struct run *run)
{
	const struct ts_emulator_model *model = run->model;
	size_t commands = model->command_count;

	run->events = ts_alloc_array(2 * commands + model->point_count + 1, sizeof(*run->events));
	run->nodes = calloc(commands + model->point_count + 1, sizeof(*run->nodes));
	run->resources = calloc((size_t)model->resource_count + 1, sizeof(*run->resources));
	run->candidates = ts_alloc_array(commands, sizeof(*run->candidates));
	run->changed = ts_alloc_array(model->resource_count, sizeof(*run->changed));
	run->stuck = calloc((size_t)model->point_count + 1, sizeof(*run->stuck));
	return run->events && run->nodes && run->resources && run->candidates && run->changed &&
			       run->stuck
		       ? TS_OK
		       : TS_ENOMEM;
}

static void release_run(struct run *run)
{
	free(run->events);
	free(run->nodes);
	free(run->resources);
	free(run->candidates);
	free(run->changed);
	free(run->stuck);
}

int ts_emulator_run(const struct ts_emulator_model *model,
		    const struct ts_emulator_run_options *options, struct ts_emulator_times *times,
		    struct ts_error *err)
{
	struct run run = { .model = model, .times = times, .options = options };
	int rc = make_times(times, model);

	if (!rc)
		rc = allocate(&run);
	if (!rc) {
		reset(&run);
		start_threads(&run);
		rc = simulate(&run);
	}
	release_run(&run);
	if (rc == TS_ECANCELED)
		return ts_error_set(err, rc, "stopped");
	return rc ? ts_error_set(err, rc, "no memory for the simulation of %u commands",
				 model->command_count)
		  : TS_OK;
}

void ts_emulator_times_release(struct ts_emulator_times *times)
{
	free(times->issued);
	free(times->start);
	free(times->end);
	free(times->points);
	*times = (struct ts_emulator_times){ 0 };
}

int64_t ts_emulator_span(const struct ts_emulator_model *model,
			 const struct ts_emulator_times *times)
{
	int64_t first = INT64_MAX, last = INT64_MIN;

	for (uint32_t i = 0; i < model->command_count; i++) {
		first = TS_MIN(first, times->start[i]);
		last = TS_MAX(last, times->end[i]);
	}
	return first > last ? 0 : ts_ns_sub(last, first);
}
