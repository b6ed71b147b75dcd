/* SPDX-License-Identifier: Apache-2.0 */
/* Objects and commands that a target cannot make on its device become unreplayable. */
#include <string.h>

#include "replay/stream/stream_internal.h"

static bool is_in(const struct ts_replay_range *ranges, uint32_t count, uint32_t memory)
{
	for (uint32_t i = 0; i < count; i++)
		if (ranges[i].memory == memory)
			return true;
	return false;
}

static bool uses(const struct ts_replay_stream *stream,
		 const struct ts_replay_command_info *command, uint32_t object)
{
	if (command->queue == object || command->object == object || command->other == object ||
	    command->image == object || command->other_image == object)
		return true;
	for (uint32_t i = 0; i < command->arg_count; i++)
		if (command->args[i].memory == object || command->args[i].image == object)
			return true;
	/* The module of a kernel. */
	if (command->kind == TS_COMMAND_LAUNCH && command->object != TS_REPLAY_NONE &&
	    stream->objects[command->object].parent == object)
		return true;
	return is_in(command->reads, command->read_count, object) ||
	       is_in(command->writes, command->write_count, object);
}

/* The same kernel with the same sizes: a device that refuses one for them refuses all. */
static bool is_alike(const struct ts_replay_command_info *a, const struct ts_replay_command_info *b)
{
	return a->kind == TS_COMMAND_LAUNCH && b->kind == TS_COMMAND_LAUNCH &&
	       a->object == b->object && a->dimensions == b->dimensions &&
	       !memcmp(a->global, b->global, sizeof(a->global)) &&
	       !memcmp(a->local, b->local, sizeof(a->local));
}

static const char *keep_reason(struct ts_replay_stream *stream, const char *why)
{
	const char *kept = ts_arena_strdup_len(&stream->arena, why, strlen(why));

	return kept ? kept : "the device does not support it";
}

static void spoil(struct ts_replay_command_info *command, const char *why)
{
	if (!command->unreplayable)
		command->unreplayable = why;
}

void ts_replay_stream_reject_object(struct ts_replay_stream *stream, uint32_t object,
				    const char *why)
{
	const char *reason = keep_reason(stream, why);

	stream->objects[object].unreplayable = reason;
	for (uint32_t i = 0; i < stream->command_count; i++)
		if (uses(stream, &stream->commands[i], object))
			spoil(&stream->commands[i], reason);
}

void ts_replay_stream_reject_command(struct ts_replay_stream *stream, uint32_t command,
				     const char *why)
{
	spoil(&stream->commands[command], keep_reason(stream, why));
}

void ts_replay_stream_reject_launches(struct ts_replay_stream *stream, uint32_t command,
				      const char *why)
{
	const char *reason = keep_reason(stream, why);

	spoil(&stream->commands[command], reason);
	for (uint32_t i = 0; i < stream->command_count; i++)
		if (is_alike(&stream->commands[i], &stream->commands[command]))
			spoil(&stream->commands[i], reason);
}
