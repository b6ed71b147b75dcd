/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the inputs of a selection: going backwards from what it reads, every earlier command that
 * wrote those bytes. A launch or a rectangle may leave some bytes unwritten, so it never ends the
 * search, and the previous content of what it writes is needed, too.
 */
#include "replay/plan/plan.h"
#include "replay/plan/ranges.h"
#include "replay/stream/stream_internal.h"

struct needs {
	const struct ts_replay_stream *stream;
	struct ts_ranges *memory; /* by object */
	size_t some;              /* number of memories with needed ranges */
	uint32_t *all, all_count; /* memory that is not a view */
};

static int update(struct needs *needs, uint32_t memory, uint64_t from, uint64_t to, bool is_added)
{
	struct ts_ranges *ranges = &needs->memory[memory];
	size_t before = ranges->count > 0;
	int rc = is_added ? ts_ranges_add(ranges, from, to) : ts_ranges_cut(ranges, from, to);

	needs->some = needs->some - before + (ranges->count > 0);
	return rc;
}

static int update_all(struct needs *needs, const struct ts_replay_range *ranges, uint32_t count,
		      bool is_added)
{
	int rc = TS_OK;

	for (uint32_t i = 0; !rc && i < count; i++)
		rc = update(needs, ranges[i].memory, ranges[i].offset,
			    ranges[i].offset + ranges[i].bytes, is_added);
	return rc;
}

/* Needs all memory that the command may have used. */
static int need_everything(struct needs *needs, uint32_t command)
{
	int rc = TS_OK;

	for (uint32_t i = 0; !rc && i < needs->all_count; i++)
		if (ts_replay_may_access(needs->stream, command, needs->all[i]))
			rc = update(needs, needs->all[i], 0,
				    needs->stream->objects[needs->all[i]].bytes, true);
	return rc;
}

static bool is_needed(const struct needs *needs, const struct ts_replay_command_info *command)
{
	if (command->unknown_access)
		return needs->some > 0;
	for (uint32_t i = 0; i < command->write_count; i++) {
		const struct ts_replay_range *range = &command->writes[i];

		if (ts_ranges_touch(&needs->memory[range->memory], range->offset,
				    range->offset + range->bytes))
			return true;
	}
	return false;
}

static int take(struct needs *needs, uint32_t index)
{
	const struct ts_replay_command_info *command = &needs->stream->commands[index];
	int rc;

	if (command->unknown_access)
		return need_everything(needs, index);
	rc = update_all(needs, command->writes, command->write_count, !ts_replay_covers(command));
	return rc ? rc : update_all(needs, command->reads, command->read_count, true);
}

static int look_at(struct needs *needs, struct ts_replay_plan *plan, uint32_t index)
{
	const struct ts_replay_command_info *command = &needs->stream->commands[index];

	/* Memory has no earlier content: it starts with that of its object. */
	if (command->kind == TS_COMMAND_ALLOC && command->object != TS_REPLAY_NONE &&
	    needs->stream->objects[command->object].created_by == index)
		return update(needs, command->object, 0,
			      needs->stream->objects[command->object].bytes, false);
	if (!plan->kept[index] && !is_needed(needs, command))
		return TS_OK;
	if (!plan->kept[index])
		plan->kept[index] = TS_REPLAY_INCLUDED;
	return take(needs, index);
}

/* ---- execution order, where it differs from submission order ---- */

static int compare_positions(const void *a, const void *b)
{
	const struct ts_replay_position *x = a, *y = b;

	return x->ready != y->ready ? TS_COMPARE(x->ready, y->ready)
				    : TS_COMPARE(x->index, y->index);
}

struct ts_replay_position *ts_replay_plan_positions(const struct ts_replay_stream *stream)
{
	struct ts_replay_position *positions =
		ts_alloc_array(stream->command_count, sizeof(*positions));
	bool is_sorted = true;

	for (uint32_t i = 0; positions && i < stream->command_count; i++) {
		positions[i] = (struct ts_replay_position){ stream->commands[i].ready, i };
		is_sorted &= stream->commands[i].ready == i;
	}
	if (positions && !is_sorted)
		ts_sort(positions, stream->command_count, sizeof(*positions), compare_positions);
	return positions;
}

int ts_replay_plan_include(struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
			   struct ts_error *err)
{
	struct needs needs = { .stream = stream };
	TS_AUTO_FREE struct ts_replay_position *positions = ts_replay_plan_positions(stream);
	int rc = TS_OK;

	needs.memory = calloc(stream->object_count + 1u, sizeof(*needs.memory));
	needs.all = ts_replay_list_memory(stream, &needs.all_count);
	if (!positions || !needs.memory || !needs.all)
		rc = TS_ENOMEM;
	for (uint32_t i = stream->command_count; !rc && i-- > 0;)
		rc = look_at(&needs, plan, positions[i].index);
	for (uint32_t i = 0; needs.memory && i < stream->object_count; i++)
		ts_ranges_release(&needs.memory[i]);
	free(needs.memory);
	free(needs.all);
	return rc ? ts_replay_no_memory(err) : TS_OK;
}
