/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --skip-unsupported: leaves out commands that cannot be replayed and follows what depends on them.
 * The bytes that such a command may have written are unknown until another command overwrites them.
 * A launch that may read an unknown byte is left out as well: with wrong inputs it may crash or
 * never end. Copies always run, and move unknown bytes along.
 */
#include <string.h>

#include "replay/plan/plan.h"
#include "replay/plan/ranges.h"
#include "replay/stream/stream_internal.h"

struct unknowns {
	struct ts_replay_plan *plan;
	const struct ts_replay_stream *stream;
	struct ts_ranges *memory; /* by object: the unknown bytes */
};

/* ---- ranges ---- */

static bool touches(const struct unknowns *unknowns, const struct ts_replay_range *range)
{
	return range->memory != TS_REPLAY_NONE &&
	       ts_ranges_touch(&unknowns->memory[range->memory], range->offset,
			       range->offset + range->bytes);
}

static bool touches_any(const struct unknowns *unknowns, const struct ts_replay_range *ranges,
			uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (touches(unknowns, &ranges[i]))
			return true;
	return false;
}

static int add(struct unknowns *unknowns, const struct ts_replay_range *range)
{
	return ts_ranges_add(&unknowns->memory[range->memory], range->offset,
			     range->offset + range->bytes);
}

static int cut(struct unknowns *unknowns, const struct ts_replay_range *range)
{
	return ts_ranges_cut(&unknowns->memory[range->memory], range->offset,
			     range->offset + range->bytes);
}

/* Is any byte unknown that the command may read? */
static bool reads_unknown(const struct unknowns *unknowns, uint32_t index)
{
	const struct ts_replay_command_info *command = &unknowns->stream->commands[index];

	if (touches_any(unknowns, command->reads, command->read_count))
		return true;
	for (uint32_t i = 0; command->unknown_access && i < unknowns->stream->object_count; i++)
		if (unknowns->memory[i].count && ts_replay_may_access(unknowns->stream, index, i))
			return true;
	return false;
}

/* Everything that the command may write becomes unknown. */
static int lose_writes(struct unknowns *unknowns, uint32_t index)
{
	const struct ts_replay_stream *stream = unknowns->stream;
	const struct ts_replay_command_info *command = &stream->commands[index];
	int rc = TS_OK;

	for (uint32_t i = 0; !rc && i < command->write_count; i++)
		rc = add(unknowns, &command->writes[i]);
	for (uint32_t i = 0; !rc && command->unknown_access && i < stream->object_count; i++)
		if (ts_replay_may_access(stream, index, i))
			rc = ts_ranges_add(&unknowns->memory[i], 0, stream->objects[i].bytes);
	return rc;
}

/* ---- commands that run ---- */

/* Moves unknown bytes along with a copy that keeps their order. */
static int move_unknown(struct unknowns *unknowns, const struct ts_replay_range *from,
			const struct ts_replay_range *to)
{
	const struct ts_ranges *source = &unknowns->memory[from->memory];
	struct ts_ranges moved = { 0 };
	int rc = TS_OK;

	for (size_t i = 0; !rc && i < source->count; i++) {
		uint64_t first = TS_MAX(source->items[i].from, from->offset);
		uint64_t last = TS_MIN(source->items[i].to, from->offset + from->bytes);

		if (first < last)
			rc = ts_ranges_add(&moved, first - from->offset, last - from->offset);
	}
	if (!rc)
		rc = cut(unknowns, to);
	for (size_t i = 0; !rc && i < moved.count; i++)
		rc = ts_ranges_add(&unknowns->memory[to->memory], to->offset + moved.items[i].from,
				   to->offset + moved.items[i].to);
	ts_ranges_release(&moved);
	return rc;
}

static int follow(struct unknowns *unknowns, uint32_t index)
{
	const struct ts_replay_command_info *command = &unknowns->stream->commands[index];
	bool covers = ts_replay_covers(command);
	int rc = TS_OK;

	if (command->kind == TS_COMMAND_COPY && command->read_count && command->write_count) {
		if (covers && !command->is_rect)
			return move_unknown(unknowns, &command->reads[0], &command->writes[0]);
		if (reads_unknown(unknowns, index))
			return lose_writes(unknowns, index);
	}
	for (uint32_t i = 0; !rc && covers && i < command->write_count; i++)
		rc = cut(unknowns, &command->writes[i]);
	return rc;
}

/* ---- what cannot be compared ---- */

static int note(struct unknowns *unknowns, const void *what)
{
	return ts_map_put(&unknowns->plan->unknown, (uintptr_t)what, 1);
}

static int note_checks(struct unknowns *unknowns, uint32_t index)
{
	const struct ts_replay_command_info *command = &unknowns->stream->commands[index];
	bool is_read_unknown = reads_unknown(unknowns, index);
	int rc = is_read_unknown ? note(unknowns, command) : TS_OK;

	for (uint32_t i = 0; !rc && i < command->check_count; i++) {
		const struct ts_replay_check *check = &command->checks[i];

		if (check->range.memory == TS_REPLAY_NONE ? is_read_unknown
							  : touches(unknowns, &check->range))
			rc = note(unknowns, check);
	}
	for (uint32_t i = 0; !rc && i < command->write_count; i++)
		if (touches(unknowns, &command->writes[i]))
			rc = note(unknowns, &command->writes[i]);
	return rc;
}

static int note_end(struct unknowns *unknowns)
{
	const struct ts_replay_stream *stream = unknowns->stream;
	int rc = TS_OK;

	for (uint32_t i = 0; !rc && i < stream->object_count; i++)
		if (unknowns->memory[i].count)
			rc = note(unknowns, &stream->objects[i]);
	for (uint32_t i = 0; !rc && i < stream->final_count; i++)
		if (touches(unknowns, &stream->final_checks[i].range))
			rc = note(unknowns, &stream->final_checks[i]);
	return rc;
}

/* ---- all commands ---- */

/*
 * In place of a command whose queue does not exist the host waits, which it cannot do for what only
 * a later command completes.
 */
static int check_order(const struct unknowns *unknowns, struct ts_error *err)
{
	const struct ts_replay_stream *stream = unknowns->stream;

	for (uint32_t i = 0; i < stream->command_count; i++) {
		uint32_t queue = stream->commands[i].queue;

		if (unknowns->plan->skipped[i] && queue != TS_REPLAY_NONE &&
		    stream->objects[queue].unreplayable && stream->commands[i].ready > i)
			return ts_replay_command_error(
				stream, i, err,
				"cannot be skipped: it waits for a user event that is set later, in a queue that cannot be created (%s)",
				stream->objects[queue].unreplayable);
	}
	return TS_OK;
}

static int skip(struct unknowns *unknowns, uint32_t index, enum ts_replay_skip why)
{
	struct ts_replay_plan *plan = unknowns->plan;

	plan->kept[index] = 0;
	plan->skipped[index] = (uint8_t)why;
	plan->unsupported += why == TS_REPLAY_UNSUPPORTED;
	plan->dependent += why == TS_REPLAY_DEPENDENT;
	return lose_writes(unknowns, index);
}

static int look_at(struct unknowns *unknowns, uint32_t index)
{
	const struct ts_replay_stream *stream = unknowns->stream;
	const struct ts_replay_command_info *command = &stream->commands[index];
	int rc;

	/* New memory starts with the content of its object. */
	if (command->kind == TS_COMMAND_ALLOC && command->object != TS_REPLAY_NONE &&
	    stream->objects[command->object].created_by == index)
		return ts_ranges_cut(&unknowns->memory[command->object], 0,
				     stream->objects[command->object].bytes);
	if (!unknowns->plan->kept[index] || ts_replay_is_lifetime(command->kind))
		return TS_OK;
	if (command->unreplayable)
		return skip(unknowns, index, TS_REPLAY_UNSUPPORTED);
	if (command->kind == TS_COMMAND_LAUNCH && reads_unknown(unknowns, index))
		return skip(unknowns, index, TS_REPLAY_DEPENDENT);
	rc = follow(unknowns, index);
	return rc ? rc : note_checks(unknowns, index);
}

int ts_replay_plan_skip(struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
			struct ts_error *err)
{
	struct unknowns unknowns = { .plan = plan, .stream = stream };
	TS_AUTO_FREE struct ts_replay_position *positions = ts_replay_plan_positions(stream);
	int rc = TS_OK;

	plan->skipped = calloc(stream->command_count + 1u, 1);
	unknowns.memory = calloc(stream->object_count + 1u, sizeof(*unknowns.memory));
	if (!positions || !plan->skipped || !unknowns.memory)
		rc = TS_ENOMEM;
	for (uint32_t i = 0; !rc && i < stream->command_count; i++)
		rc = look_at(&unknowns, positions[i].index);
	if (!rc)
		rc = note_end(&unknowns);
	for (uint32_t i = 0; unknowns.memory && i < stream->object_count; i++)
		ts_ranges_release(&unknowns.memory[i]);
	free(unknowns.memory);
	return rc ? ts_replay_no_memory(err) : check_order(&unknowns, err);
}
