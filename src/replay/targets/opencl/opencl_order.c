/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dependencies of each command as positions in the plan, and its gate: the user event that must be
 * set before it can end. The recorded program had threads that set events while others waited. A
 * replay has one thread and must never wait for what it has yet to do itself.
 */
#include <string.h>

#include "replay/targets/opencl/opencl_session.h"

/* State while the order is built. Arrays are indexed by object. */
struct order {
	struct ts_replay_session *session;
	uint32_t *set_at;   /* user event: position where it is set; TS_REPLAY_NONE */
	uint32_t *gates;    /* queue: the highest gate of its commands */
	uint32_t *barriers; /* out-of-order queue: the gate of its last barrier */
	uint32_t longest;   /* longest wait list */
};

static uint32_t *new_numbers(struct ts_arena *arena, size_t count, int byte)
{
	uint32_t *numbers = ts_arena_alloc(arena, (count + 1) * sizeof(*numbers));

	if (numbers)
		memset(numbers, byte, (count + 1) * sizeof(*numbers));
	return numbers;
}

/* The position of a command to wait for; TS_REPLAY_NONE: submission order is sufficient. */
static uint32_t wait_position(const struct order *order, uint32_t position, uint32_t command)
{
	const struct ts_replay_session *session = order->session;
	uint32_t queue = session->steps[position].command->queue;
	uint32_t kept = ts_replay_plan_wait(session->plan, command);
	uint32_t target = kept == TS_REPLAY_NONE ? TS_REPLAY_NONE : session->positions[kept];

	if (target == TS_REPLAY_NONE || target >= position ||
	    !ts_opencl_has_event(&session->steps[target]))
		return TS_REPLAY_NONE;
	if (ts_opencl_has_event(&session->steps[position]) &&
	    session->steps[target].command->queue == queue && ts_opencl_is_ordered(session, queue))
		return TS_REPLAY_NONE;
	return target;
}

/* A user event that is already set needs no wait, unless it was set to an error. */
static uint32_t user_wait_position(const struct order *order, uint32_t position, uint32_t event)
{
	uint32_t target = order->set_at[event];

	if (target == TS_REPLAY_NONE ||
	    (target < position && order->session->steps[target].command->status >= 0))
		return TS_REPLAY_NONE;
	return target;
}

static int list_waits(struct order *order, uint32_t position)
{
	struct ts_replay_session *session = order->session;
	struct ts_opencl_step *step = &session->steps[position];
	const struct ts_replay_command_info *command = step->command;
	uint32_t *waits = ts_arena_alloc(&session->arena,
					 ((size_t)command->wait_count + command->user_wait_count) *
						 sizeof(*waits));

	if (!waits)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < command->wait_count; i++) {
		uint32_t target = wait_position(order, position, command->waits[i]);

		if (target != TS_REPLAY_NONE)
			waits[step->wait_count++] = target;
	}
	for (uint32_t i = 0; i < command->user_wait_count; i++) {
		uint32_t target = user_wait_position(order, position, command->user_waits[i]);

		if (target != TS_REPLAY_NONE)
			waits[step->wait_count++] = target;
	}
	for (uint32_t i = 0; i < step->wait_count; i++)
		session->steps[waits[i]].last_use = position;
	step->waits = waits;
	order->longest = TS_MAX(order->longest, step->wait_count);
	return TS_OK;
}

static bool waits_for_all(const struct ts_opencl_step *step)
{
	enum ts_command_kind kind = step->command->kind;

	return (kind == TS_COMMAND_RECORD || kind == TS_COMMAND_WAIT || step->is_marker) &&
	       !step->wait_count;
}

static void find_gate(struct order *order, uint32_t position)
{
	struct ts_replay_session *session = order->session;
	struct ts_opencl_step *step = &session->steps[position];
	uint32_t queue = step->command->queue, gate = 0;

	for (uint32_t i = 0; i < step->wait_count; i++) {
		const struct ts_opencl_step *target = &session->steps[step->waits[i]];

		gate = TS_MAX(gate,
			      ts_opencl_has_event(target) ? target->gate : step->waits[i] + 1);
	}
	if (queue != TS_REPLAY_NONE && ts_opencl_has_event(step)) {
		if (ts_opencl_is_ordered(session, queue) || waits_for_all(step))
			gate = TS_MAX(gate, order->gates[queue]);
		gate = TS_MAX(gate, order->barriers[queue]);
		order->gates[queue] = TS_MAX(gate, order->gates[queue]);
		if (step->command->kind == TS_COMMAND_WAIT)
			order->barriers[queue] = gate;
	}
	step->gate = gate;
}

/* Finds where user events are set. */
static void find_sets(struct order *order)
{
	struct ts_replay_session *session = order->session;

	for (uint32_t i = 0; i < session->plan->count; i++) {
		const struct ts_replay_command_info *command = session->steps[i].command;

		if (command->kind != TS_COMMAND_RECORD || command->queue != TS_REPLAY_NONE ||
		    command->user_event == TS_REPLAY_NONE ||
		    order->set_at[command->user_event] != TS_REPLAY_NONE)
			continue;
		order->set_at[command->user_event] = i;
		session->expects_errors |= command->status < 0;
	}
}

static void begin_step(struct ts_replay_session *session, uint32_t position)
{
	struct ts_opencl_step *step = &session->steps[position];
	uint32_t index = session->plan->order[position];

	session->positions[index] = position;
	step->command = &session->stream->commands[index];
	step->is_marker = session->plan->kept[index] == TS_REPLAY_ORDER &&
			  !ts_opencl_only_orders(step->command->kind);
	step->is_host_wait = session->plan->kept[index] == TS_REPLAY_ORDER &&
			     step->command->queue != TS_REPLAY_NONE &&
			     ts_opencl_info(session, step->command->queue)->unreplayable;
}

static int make_order(struct order *order, struct ts_arena *scratch)
{
	struct ts_replay_session *session = order->session;
	uint32_t objects = session->stream->object_count, count = session->plan->count;

	order->set_at = new_numbers(scratch, objects, 0xff);
	order->gates = new_numbers(scratch, objects, 0);
	order->barriers = new_numbers(scratch, objects, 0);
	session->positions = new_numbers(&session->arena, session->stream->command_count, 0xff);
	session->steps = ts_arena_alloc_zeroed(&session->arena, count, sizeof(*session->steps));
	if (!order->set_at || !order->gates || !order->barriers || !session->positions ||
	    !session->steps)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		begin_step(session, i);
	find_sets(order);
	for (uint32_t i = 0; i < count; i++) {
		if (list_waits(order, i))
			return TS_ENOMEM;
		find_gate(order, i);
	}
	session->list = ts_arena_alloc_zeroed(&session->arena, (size_t)order->longest + 2,
					      sizeof(*session->list));
	return session->list ? TS_OK : TS_ENOMEM;
}

int ts_opencl_make_order(struct ts_replay_session *session, struct ts_error *err)
{
	struct order order = { .session = session };
	struct ts_arena scratch = { 0 };
	int rc = make_order(&order, &scratch);

	ts_arena_release(&scratch);
	return rc ? ts_error_set(err, rc, "no memory for the order of commands") : TS_OK;
}
