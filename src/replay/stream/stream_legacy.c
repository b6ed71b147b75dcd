/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The legacy default stream of CUDA: each of its commands waits for all earlier ones in the
 * blocking streams of its context, and theirs for all earlier ones in it. Both become waits for the
 * newest command of a stream, each at most once, so that there are no more of them than commands.
 */
#include <string.h>

#include "replay/stream/stream_internal.h"

static void note_change(struct ts_replay_load *load, uint32_t queue, uint32_t context)
{
	struct ts_replay_legacy *stream = &load->legacy[queue];

	if (stream->is_changed)
		return;
	stream->is_changed = true;
	stream->next = load->legacy[context].changed;
	load->legacy[context].changed = queue;
}

/* The streams that the legacy stream has to wait for, which then have no changes. */
static uint32_t take_changed(struct ts_replay_load *load, uint32_t context, uint32_t *waits)
{
	uint32_t count = 0, at = load->legacy[context].changed;

	while (at != TS_REPLAY_NONE) {
		struct ts_replay_legacy *stream = &load->legacy[at];

		if (waits) {
			waits[count] = load->newest[at];
			stream->is_changed = false;
		}
		count++;
		at = stream->next;
	}
	if (waits)
		load->legacy[context].changed = TS_REPLAY_NONE;
	return count;
}

/* Makes room for `more` waits behind those that the command has; NULL: no memory. */
static uint32_t *add_waits(struct ts_replay_load *load, struct ts_replay_command_info *command,
			   uint32_t more)
{
	uint32_t *waits = ts_arena_alloc_zeroed(&load->stream->arena,
						(size_t)command->wait_count + more, sizeof(*waits));

	if (!waits)
		return NULL;
	if (command->wait_count)
		memcpy(waits, command->waits, command->wait_count * sizeof(*waits));
	command->waits = waits;
	waits += command->wait_count;
	command->wait_count += more;
	command->implicit_waits += more;
	return waits;
}

/* A command of the legacy stream. */
static int order_one(struct ts_replay_load *load, struct ts_replay_command_info *command,
		     uint32_t context, struct ts_error *err)
{
	uint32_t count = take_changed(load, context, NULL);
	uint32_t *waits = count ? add_waits(load, command, count) : NULL;

	if (count && !waits)
		return ts_replay_no_memory(err);
	if (waits)
		take_changed(load, context, waits);
	return TS_OK;
}

int ts_replay_order_legacy(struct ts_replay_load *load, uint32_t index, struct ts_error *err)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];
	const struct ts_replay_object_info *queue = &load->stream->objects[command->queue];
	struct ts_replay_legacy *stream = &load->legacy[command->queue];
	uint32_t context = queue->parent, legacy, *wait;

	if (context == TS_REPLAY_NONE || queue->flags & TS_REPLAY_NON_BLOCKING ||
	    !load->keeps_details)
		return TS_OK;
	legacy = load->legacy[context].newest;
	if (queue->flags & TS_REPLAY_LEGACY) {
		load->legacy[context].newest = index;
		return order_one(load, command, context, err);
	}
	if (legacy != TS_REPLAY_NONE && stream->waited != legacy) {
		wait = add_waits(load, command, 1);
		if (!wait)
			return ts_replay_no_memory(err);
		*wait = stream->waited = legacy;
	}
	note_change(load, command->queue, context);
	return TS_OK;
}
