/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User events and the order of a stream. A command that waits for a user event runs when that is
 * set, maybe long after its own position. The recording had several threads; the single replay
 * thread must not wait for such a command earlier. Also extends the lifetime of memory over all of
 * its uses.
 */
#include "replay/stream/stream_internal.h"

/* ---- user events ---- */

/*
 * Drops waits for events that nothing in the window sets: they were set before it, or the program
 * was killed.
 */
static void drop_unset(struct ts_replay_load *load, struct ts_replay_command_info *command)
{
	uint32_t *waits = (uint32_t *)(uintptr_t)command->user_waits;
	uint32_t kept = 0;
	uint64_t setter;

	for (uint32_t i = 0; i < command->user_wait_count; i++)
		if (ts_map_get(&load->user_sets, waits[i], &setter))
			waits[kept++] = waits[i];
	command->user_wait_count = kept;
}

/*
 * Per queue: the command that must be submitted before all of it can end, and the same up to its
 * last barrier.
 */
struct queue_ready {
	uint32_t all, barrier;
};

static uint32_t ready_of_queue(const struct ts_replay_stream *stream,
			       const struct ts_replay_command_info *command,
			       const struct queue_ready *queue)
{
	bool looks_back = command->kind == TS_COMMAND_WAIT || command->kind == TS_COMMAND_SYNC ||
			  command->kind == TS_COMMAND_RECORD;

	if (!(stream->objects[command->queue].flags & TS_REPLAY_OUT_OF_ORDER))
		return queue->all;
	return looks_back && !command->has_wait_list ? queue->all : queue->barrier;
}

/* The last command that must be submitted before this one can end. */
static uint32_t ready_of(struct ts_replay_load *load, uint32_t index,
			 const struct queue_ready *queues)
{
	const struct ts_replay_stream *stream = load->stream;
	const struct ts_replay_command_info *command = &stream->commands[index];
	uint32_t last = index;
	uint64_t setter;

	for (uint32_t i = 0; i < command->wait_count; i++)
		last = TS_MAX(last, stream->commands[command->waits[i]].ready);
	for (uint32_t i = 0; i < command->user_wait_count; i++)
		if (ts_map_get(&load->user_sets, command->user_waits[i], &setter))
			last = TS_MAX(last, (uint32_t)setter);
	if (command->queue != TS_REPLAY_NONE) {
		uint32_t ready = ready_of_queue(stream, command, &queues[command->queue]);

		last = TS_MAX(last, ready);
	}
	return last;
}

static int order_commands(struct ts_replay_load *load, struct ts_error *err)
{
	struct ts_replay_stream *stream = load->stream;
	struct queue_ready *queues =
		ts_arena_alloc_zeroed(&load->scratch, stream->object_count + 1, sizeof(*queues));

	if (!queues)
		return ts_replay_no_memory(err);
	for (uint32_t i = 0; i < stream->command_count; i++) {
		struct ts_replay_command_info *command = &stream->commands[i];
		struct queue_ready *queue =
			command->queue == TS_REPLAY_NONE ? NULL : &queues[command->queue];

		drop_unset(load, command);
		command->ready = ready_of(load, i, queues);
		if (queue) {
			queue->all = TS_MAX(queue->all, command->ready);
			if (command->kind == TS_COMMAND_WAIT)
				queue->barrier = TS_MAX(queue->barrier, command->ready);
		}
		/*
		 * In the program another thread set the event meanwhile. In a replay that comes
		 * later, so the host must not wait.
		 */
		if (command->ready > i && (command->blocking || command->kind == TS_COMMAND_SYNC)) {
			command->blocking = false;
			command->would_deadlock |= command->kind == TS_COMMAND_SYNC;
		}
	}
	return TS_OK;
}

/* ---- lifetime of memory ---- */

static void use(struct ts_replay_stream *stream, uint32_t memory, uint32_t from, uint32_t to)
{
	struct ts_replay_object_info *object = &stream->objects[memory];

	if (object->created_by != TS_REPLAY_NONE && object->created_by > from)
		object->created_by = TS_REPLAY_NONE;
	if (object->freed_by != TS_REPLAY_NONE && object->freed_by < to)
		object->freed_by = TS_REPLAY_NONE;
}

static void stretch_lives(struct ts_replay_stream *stream)
{
	for (uint32_t i = 0; i < stream->command_count; i++) {
		const struct ts_replay_command_info *command = &stream->commands[i];

		for (uint32_t j = 0; j < command->read_count; j++)
			use(stream, command->reads[j].memory, i, command->ready);
		for (uint32_t j = 0; j < command->write_count; j++)
			use(stream, command->writes[j].memory, i, command->ready);
	}
	for (uint32_t i = 0; i < stream->final_count; i++)
		use(stream, stream->final_checks[i].range.memory, stream->command_count,
		    stream->command_count);
}

int ts_replay_load_order(struct ts_replay_load *load, struct ts_error *err)
{
	int rc = order_commands(load, err);

	if (!rc)
		stretch_lives(load->stream);
	return rc;
}
