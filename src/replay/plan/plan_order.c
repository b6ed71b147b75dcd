/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the order of a selection: markers, barriers and syncs between its commands, and markers in
 * place of skipped commands that others waited for or that waited themselves.
 */
#include <string.h>

#include "replay/plan/plan.h"
#include "replay/stream/stream_internal.h"

struct ordering {
	struct ts_replay_plan *plan;
	const struct ts_replay_stream *stream;
	bool *used;                     /* by object: memory that the plan's commands use */
	uint32_t *memory, memory_count; /* all memory that is not a view */
	uint32_t first, last;           /* of the requested and included commands */
};

static bool is_order(enum ts_command_kind kind)
{
	return kind == TS_COMMAND_RECORD || kind == TS_COMMAND_WAIT || kind == TS_COMMAND_SYNC;
}

/* ---- memory that the plan uses ---- */

static void use(struct ordering *ordering, uint32_t index)
{
	const struct ts_replay_command_info *command = &ordering->stream->commands[index];

	for (uint32_t i = 0; i < command->read_count; i++)
		ordering->used[command->reads[i].memory] = true;
	for (uint32_t i = 0; i < command->write_count; i++)
		ordering->used[command->writes[i].memory] = true;
	for (uint32_t i = 0; command->unknown_access && i < ordering->memory_count; i++)
		if (ts_replay_may_access(ordering->stream, index, ordering->memory[i]))
			ordering->used[ordering->memory[i]] = true;
}

static void find_used(struct ordering *ordering)
{
	ordering->first = TS_REPLAY_NONE;
	for (uint32_t i = 0; i < ordering->stream->command_count; i++) {
		if (!ordering->plan->kept[i])
			continue;
		if (ordering->first == TS_REPLAY_NONE)
			ordering->first = i;
		ordering->last = i;
		use(ordering, i);
	}
}

/* ---- commands kept for their order ---- */

/*
 * May be skipped without a marker: in an in-order queue later commands wait for all earlier ones
 * anyway. What waited for the skipped command waits for the one before it.
 */
static bool is_replaceable(const struct ts_replay_stream *stream,
			   const struct ts_replay_command_info *command)
{
	if (command->queue == TS_REPLAY_NONE)
		return true;
	return !(stream->objects[command->queue].flags & TS_REPLAY_OUT_OF_ORDER) &&
	       !command->blocking && !command->wait_count && !command->user_wait_count;
}

static bool runs_all(const struct ts_replay_plan *plan)
{
	return plan->is_complete && !plan->unsupported && !plan->dependent;
}

static bool is_kept_for_order(const struct ordering *ordering, uint32_t index)
{
	const struct ts_replay_command_info *command = &ordering->stream->commands[index];

	/* What an address space has mapped, and settings, at every later command. */
	if (command->kind == TS_COMMAND_SET ||
	    (ts_replay_is_lifetime(command->kind) &&
	     ts_replay_is_sparse(ordering->stream, command->object)))
		return index < ordering->last;
	/* Lifetime of used memory, wherever it begins. */
	if (command->kind == TS_COMMAND_ALLOC)
		return command->object != TS_REPLAY_NONE && ordering->used[command->object];
	if (index < ordering->first || index > ordering->last)
		return false;
	if (command->kind == TS_COMMAND_FREE)
		return command->object != TS_REPLAY_NONE && ordering->used[command->object];
	if (ts_replay_is_lifetime(command->kind) || command->user_event != TS_REPLAY_NONE)
		return false;
	return is_order(command->kind) || !is_replaceable(ordering->stream, command);
}

/*
 * Objects that cannot be created are skipped: nothing in the plan uses them. A sync that would
 * deadlock is skipped, too.
 */
static bool is_dropped(const struct ordering *ordering, uint32_t index)
{
	const struct ts_replay_command_info *command = &ordering->stream->commands[index];

	if (command->would_deadlock)
		return true;
	return ts_replay_is_lifetime(command->kind) && command->object != TS_REPLAY_NONE &&
	       ordering->stream->objects[command->object].unreplayable;
}

static void mark(struct ordering *ordering)
{
	uint8_t *kept = ordering->plan->kept;

	for (uint32_t i = 0; i < ordering->stream->command_count; i++) {
		if (!kept[i] && !runs_all(ordering->plan) && is_kept_for_order(ordering, i))
			kept[i] = TS_REPLAY_ORDER;
		if (is_dropped(ordering, i))
			kept[i] = 0;
	}
}

/* A wait for a user event needs the command that sets it, wherever that is. */
static int mark_user_events(struct ordering *ordering)
{
	const struct ts_replay_stream *stream = ordering->stream;
	TS_AUTO_FREE bool *waited = calloc(stream->object_count + 1u, sizeof(*waited));

	if (!waited)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < stream->command_count; i++)
		for (uint32_t j = 0;
		     ordering->plan->kept[i] && j < stream->commands[i].user_wait_count; j++)
			waited[stream->commands[i].user_waits[j]] = true;
	for (uint32_t i = 0; i < stream->command_count; i++) {
		uint32_t event = stream->commands[i].user_event;

		if (event != TS_REPLAY_NONE && waited[event] && !ordering->plan->kept[i])
			ordering->plan->kept[i] = TS_REPLAY_ORDER;
	}
	return TS_OK;
}

/* ---- submission order ---- */

static void list(struct ordering *ordering)
{
	struct ts_replay_plan *plan = ordering->plan;

	for (uint32_t i = 0; i < ordering->stream->command_count; i++)
		if (plan->kept[i])
			plan->order[plan->count++] = i;
}

static int find_instead(struct ordering *ordering)
{
	const struct ts_replay_stream *stream = ordering->stream;
	struct ts_replay_plan *plan = ordering->plan;
	TS_AUTO_FREE uint32_t *last = ts_alloc_array(stream->object_count + 1u, sizeof(*last));

	plan->instead = ts_alloc_array(stream->command_count + 1u, sizeof(*plan->instead));
	if (!last || !plan->instead)
		return TS_ENOMEM;
	memset(last, 0xff, (stream->object_count + 1u) * sizeof(*last));
	for (uint32_t i = 0; i < stream->command_count; i++) {
		uint32_t queue = stream->commands[i].queue;

		plan->instead[i] = TS_REPLAY_NONE;
		if (plan->kept[i])
			plan->instead[i] = i;
		else if (queue != TS_REPLAY_NONE)
			plan->instead[i] = last[queue];
		/* After a sync nothing is left to wait for in its queue. */
		if (queue != TS_REPLAY_NONE && plan->kept[i])
			last[queue] = stream->commands[i].kind == TS_COMMAND_SYNC ? TS_REPLAY_NONE
										  : i;
	}
	return TS_OK;
}

int ts_replay_plan_order(struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
			 struct ts_error *err)
{
	struct ordering ordering = { .plan = plan, .stream = stream };
	int rc;

	plan->order = ts_alloc_array(stream->command_count + 1u, sizeof(*plan->order));
	ordering.used = calloc(stream->object_count + 1u, sizeof(*ordering.used));
	ordering.memory = ts_replay_list_memory(stream, &ordering.memory_count);
	rc = plan->order && ordering.used && ordering.memory ? TS_OK : TS_ENOMEM;
	if (!rc) {
		find_used(&ordering);
		mark(&ordering);
		rc = mark_user_events(&ordering);
	}
	if (!rc)
		list(&ordering);
	if (!rc && !runs_all(plan))
		rc = find_instead(&ordering);
	free(ordering.memory);
	free(ordering.used);
	return rc ? ts_replay_no_memory(err) : TS_OK;
}
