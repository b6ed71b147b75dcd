/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the commands of a window by sequence number, without gaps: queue, operands, data and
 * dependencies.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "replay/stream/stream_internal.h"

/*
 * Limits for a sync that waits for a part of its queue: commands to wait for one by one, and
 * commands to step over.
 */
#define MOST_UNTIL 1024u
#define MOST_STEPS 65536u
/* Limit for the nodes of all launches of graphs: some GiB of memory. */
#define MOST_NODES ((size_t)4 << 20)

/* ---- messages ---- */

static uint64_t number_of(const struct ts_replay_stream *stream, uint32_t object)
{
	return object == TS_REPLAY_NONE ? 0 : stream->objects[object].number;
}

/* Objects that were not loaded from a trace have no name for people. */
static const char *name_of(const struct ts_replay_object_info *object)
{
	return object->shown ? object->shown : object->name;
}

static void describe(const struct ts_replay_stream *stream,
		     const struct ts_replay_command_info *command, char *to, size_t bytes)
{
	uint64_t object = number_of(stream, command->object);
	uint64_t other = number_of(stream, command->other);
	const char *kind = ts_enum_name("command_kind", command->kind);

	if (command->kind == TS_COMMAND_LAUNCH && object &&
	    stream->objects[command->object].kind == TS_OBJECT_GRAPH)
		snprintf(to, bytes, "launch of graph %" PRIu64, object);
	else if (command->kind == TS_COMMAND_LAUNCH && object)
		snprintf(to, bytes, "launch of '%.96s'",
			 name_of(&stream->objects[command->object]));
	else if (command->kind == TS_COMMAND_COPY && object && other)
		snprintf(to, bytes, "copy of memory %" PRIu64 " to memory %" PRIu64, other, object);
	else if (command->kind == TS_COMMAND_COPY && (object || other))
		snprintf(to, bytes, "copy %s memory %" PRIu64, object ? "to" : "from",
			 object ? object : other);
	else if ((command->kind == TS_COMMAND_FILL || command->kind == TS_COMMAND_ALLOC ||
		  command->kind == TS_COMMAND_FREE) &&
		 object)
		snprintf(to, bytes, "%s of memory %" PRIu64, kind, object);
	else if (command->kind == TS_COMMAND_HOST_WRITE && object)
		snprintf(to, bytes, "host write to memory %" PRIu64, object);
	else
		snprintf(to, bytes, "%s", command->call ? command->call : kind ? kind : "unknown");
}

const char *ts_replay_command_text(const struct ts_replay_stream *stream, uint32_t command,
				   char *buffer, size_t bytes)
{
	const struct ts_replay_command_info *info = &stream->commands[command];
	char what[160];

	describe(stream, info, what, sizeof(what));
	if (info->graph_nodes)
		snprintf(buffer, bytes, "command %" PRIu64 ", node %" PRIu32 ", %s", info->sequence,
			 info->node, what);
	else
		snprintf(buffer, bytes, "command %" PRIu64 ", %s", info->sequence, what);
	return buffer;
}

int ts_replay_command_error(const struct ts_replay_stream *stream, uint32_t index,
			    struct ts_error *err, const char *format, ...)
{
	char what[224], text[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return ts_error_set(err, TS_EFORMAT, "%s: %s",
			    ts_replay_command_text(stream, index, what, sizeof(what)), text);
}

/* ---- columns ---- */

static int load_queue(struct ts_replay_load *load, uint32_t index, int64_t queue,
		      struct ts_error *err)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];
	const struct ts_replay_object_info *object;
	bool needs_one = command->kind == TS_COMMAND_LAUNCH || command->kind == TS_COMMAND_COPY ||
			 command->kind == TS_COMMAND_FILL || command->kind == TS_COMMAND_WAIT;

	/* That of its graph's launch. */
	if (load->is_node)
		return TS_OK;
	command->queue = ts_replay_object_by_id(load, queue);
	if (command->queue == TS_REPLAY_NONE && !queue && (!needs_one || command->unreplayable))
		return TS_OK;
	if (command->queue == TS_REPLAY_NONE)
		return ts_replay_command_error(load->stream, index, err, "its queue is missing");
	object = &load->stream->objects[command->queue];
	if (object->kind != TS_OBJECT_STREAM)
		return ts_replay_command_error(
			load->stream, index, err, "its queue is object %" PRIu64 ", a %s",
			object->number, ts_enum_name("object_kind", object->kind));
	if (object->unreplayable)
		ts_replay_spoil(load, index, "stream %" PRIu64 ": %s", object->index,
				object->unreplayable);
	return TS_OK;
}

static int load_reference(struct ts_replay_load *load, uint32_t index, int64_t id, const char *what,
			  uint32_t *ret_object, struct ts_error *err)
{
	*ret_object = ts_replay_object_by_id(load, id);
	if (id && *ret_object == TS_REPLAY_NONE)
		return ts_replay_command_error(load->stream, index, err,
					       "its %s (row %" PRId64 ") is missing", what, id);
	return TS_OK;
}

/* A text that many commands have, such as the name of a driver's call, stored once. */
static const char *text_of(struct ts_replay_load *load, const char *text)
{
	uint32_t id;

	if (!text)
		return NULL;
	if (!*text)
		return "";
	id = ts_strmap_intern(&load->stream->texts, text, strlen(text), NULL);
	return id != TS_STRMAP_NONE ? ts_strmap_text(&load->stream->texts, id, NULL) : NULL;
}

/* Launches repeat themselves: equal details are stored once. */
static const char *details_of(struct ts_replay_load *load, int64_t details)
{
	return load->keeps_details ? text_of(load, ts_reader_string(load->reader, details).data)
				   : "";
}

static int load_columns(struct ts_replay_load *load, uint32_t index,
			const struct ts_command_row *row, const struct ts_replay_details *details,
			struct ts_error *err)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];
	bool is_known = row->kind >= TS_COMMAND_ALLOC && row->kind <= TS_COMMAND_HOST_WRITE;
	int rc;

	is_known |= row->kind == TS_COMMAND_SET;

	*command = (struct ts_replay_command_info){
		.sequence = (uint64_t)row->sequence,
		.start_ns = row->start,
		.correlation = row->correlation,
		.thread = row->thread,
		.kind = is_known ? (enum ts_command_kind)row->kind : TS_COMMAND_UNKNOWN,
		.queue = TS_REPLAY_NONE,
		.object = TS_REPLAY_NONE,
		.other = TS_REPLAY_NONE,
		.image = TS_REPLAY_NONE,
		.other_image = TS_REPLAY_NONE,
		.user_event = TS_REPLAY_NONE,
		.call = text_of(load, details->call),
		.blocking = details->blocking,
		.event = details->event,
		.named_queue = ts_replay_object_by_id(load, row->queue),
		.what = text_of(load, details->what),
		.is_ambiguous = details->ambiguous,
		.graph = TS_REPLAY_NONE,
		.graph_first = TS_REPLAY_NONE,
		.details = details_of(load, row->details),
	};
	if (!command->details)
		return ts_replay_no_memory(err);
	if (details->unreplayable)
		ts_replay_spoil(load, index, "%s", details->unreplayable);
	if (row->bytes != TS_ABSENT && row->bytes < 0)
		return ts_replay_command_error(load->stream, index, err, "it has %" PRId64 " bytes",
					       row->bytes);
	if ((row->offset != TS_ABSENT && row->offset < 0) ||
	    (row->other_offset != TS_ABSENT && row->other_offset < 0))
		return ts_replay_command_error(load->stream, index, err, "its offset is negative");
	command->bytes = row->bytes == TS_ABSENT ? 0 : (uint64_t)row->bytes;
	rc = load_reference(load, index, row->object, "object", &command->object, err);
	if (!rc)
		rc = load_reference(load, index, row->other, "source", &command->other, err);
	if (!rc)
		rc = load_queue(load, index, row->queue, err);
	if (!rc && ts_replay_blob_of(load, row->blob, &command->blob, err)) {
		char text[224];

		rc = err ? err->code : TS_EFORMAT;
		ts_error_prefix(err, "%s",
				ts_replay_command_text(load->stream, index, text, sizeof(text)));
	}
	return rc;
}

/* ---- dependencies ---- */

/* Keeps the numbers of the events that a command names. */
static int load_events(struct ts_replay_load *load, uint32_t index,
		       const struct ts_replay_details *details, struct ts_error *err)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];

	command->has_wait_list = details->wait.items != NULL;
	if (!details->wait.items || !details->wait.count)
		return TS_OK;
	command->event_count = details->wait.count;
	command->events = ts_arena_copy(&load->stream->arena, details->wait.items,
					command->event_count * sizeof(*command->events));
	return command->events ? TS_OK : ts_replay_no_memory(err);
}

static int load_waits(struct ts_replay_load *load, uint32_t index, struct ts_error *err)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];
	uint32_t count = command->event_count, *waits, *users;

	if (!count)
		return TS_OK;
	waits = ts_arena_alloc_zeroed(&load->stream->arena, count, sizeof(*waits));
	users = ts_arena_alloc_zeroed(&load->stream->arena, count, sizeof(*users));
	if (!waits || !users)
		return ts_replay_no_memory(err);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t number = command->events[i], setter;
		uint32_t object = ts_replay_object_by_number(load, number);

		if (object != TS_REPLAY_NONE &&
		    load->stream->objects[object].flags & TS_REPLAY_USER_EVENT)
			users[command->user_wait_count++] = object;
		/* An event that no command of this window sets was complete before it began. */
		else if (ts_map_get(&load->events, number, &setter))
			waits[command->wait_count++] = (uint32_t)setter;
	}
	command->waits = waits;
	command->user_waits = users;
	return TS_OK;
}

/* ---- host waits for a queue that other threads keep filling ---- */

static bool runs_in_queue(enum ts_command_kind kind)
{
	return kind == TS_COMMAND_LAUNCH || kind == TS_COMMAND_COPY || kind == TS_COMMAND_FILL ||
	       kind == TS_COMMAND_HOST_WRITE || kind == TS_COMMAND_HOST ||
	       kind == TS_COMMAND_RECORD || kind == TS_COMMAND_WAIT;
}

static void enqueue(struct ts_replay_load *load, uint32_t index)
{
	const struct ts_replay_command_info *command = &load->stream->commands[index];

	load->previous[index] = TS_REPLAY_NONE;
	if (command->queue == TS_REPLAY_NONE || !runs_in_queue(command->kind))
		return;
	load->previous[index] = load->newest[command->queue];
	load->newest[command->queue] = index;
}

/*
 * Collects commands of the queue up to `until`, back to one that is ordered after all earlier ones.
 * 0: too many.
 */
static uint32_t collect_until(const struct ts_replay_load *load, uint32_t queue, uint64_t until,
			      uint32_t *ret_waits)
{
	const struct ts_replay_stream *stream = load->stream;
	bool in_order = !(stream->objects[queue].flags & TS_REPLAY_OUT_OF_ORDER);
	uint32_t at = load->newest[queue], count = 0;

	for (uint32_t steps = 0; at != TS_REPLAY_NONE; at = load->previous[at]) {
		const struct ts_replay_command_info *command = &stream->commands[at];

		if (++steps > MOST_STEPS || count == MOST_UNTIL)
			return 0;
		if (command->sequence > until)
			continue;
		ret_waits[count++] = at;
		if (in_order || (command->kind == TS_COMMAND_WAIT && !command->has_wait_list))
			break;
	}
	return count;
}

/*
 * Other threads enqueued more while the host waited. The call did not wait for those, and they may
 * depend on later commands. So this becomes a wait for the commands that were there.
 */
static int narrow_sync(struct ts_replay_load *load, uint32_t index, uint64_t until,
		       struct ts_error *err)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];
	uint32_t waits[MOST_UNTIL], newest;

	if (command->kind != TS_COMMAND_SYNC || command->queue == TS_REPLAY_NONE || !until)
		return TS_OK;
	newest = load->newest[command->queue];
	if (newest == TS_REPLAY_NONE || load->stream->commands[newest].sequence <= until)
		return TS_OK;
	command->wait_count = collect_until(load, command->queue, until, waits);
	command->waits =
		ts_arena_copy(&load->stream->arena, waits, command->wait_count * sizeof(*waits));
	command->would_deadlock = !command->wait_count;
	command->has_wait_list = true;
	command->queue = TS_REPLAY_NONE;
	return command->waits ? TS_OK : ts_replay_no_memory(err);
}

int ts_replay_submit(struct ts_replay_load *load, uint32_t index, uint64_t until,
		     struct ts_error *err)
{
	const struct ts_replay_command_info *command = &load->stream->commands[index];
	int rc;

	ts_replay_check_mapped(load, index);
	rc = load_waits(load, index, err);
	if (!rc)
		rc = narrow_sync(load, index, until, err);
	if (!rc && command->queue != TS_REPLAY_NONE && runs_in_queue(command->kind))
		rc = ts_replay_order_legacy(load, index, err);
	if (!rc)
		enqueue(load, index);
	if (!rc && command->event && command->user_event == TS_REPLAY_NONE &&
	    ts_map_put(&load->events, command->event, index))
		rc = ts_replay_no_memory(err);
	if (!rc)
		load->stream->command_count = index + 1;
	return rc;
}

static int load_command(struct ts_replay_load *load, const struct ts_command_row *row,
			struct ts_error *err)
{
	uint32_t index = load->stream->command_count;
	struct ts_replay_details details;
	int rc;

	ts_arena_clear(&load->line);
	rc = ts_replay_row_details(load, row->details, &load->line, &details, err);
	if (rc) {
		ts_error_prefix(err, "command %" PRId64, row->sequence);
		return rc;
	}
	load->is_node = ts_replay_is_node(load, row);
	rc = load_columns(load, index, row, &details, err);
	if (!rc)
		rc = ts_replay_load_operands(load, index, row, &details, err);
	if (!rc)
		rc = load_events(load, index, &details, err);
	if (rc)
		return rc;
	if (load->is_node)
		return ts_replay_keep_node(load, index, row, &details, err);
	if (ts_replay_is_graph_launch(load, row))
		return ts_replay_expand(load, index, err);
	return ts_replay_submit(load, index, details.until, err);
}

/* ---- all commands ---- */

static bool is_of_window(const struct ts_replay_load *load, const struct ts_command_row *row)
{
	return row->sequence > load->window->sequence &&
	       row->sequence < load->window->next_sequence && row->kind != TS_COMMAND_CHECK &&
	       row->kind != TS_COMMAND_CLOSE && row->kind != TS_COMMAND_OPEN;
}

static int check_sequence(const struct ts_command_row *row, int64_t expected, struct ts_error *err)
{
	if (row->sequence == expected)
		return TS_OK;
	if (row->sequence < expected)
		return ts_error_set(err, TS_EFORMAT, "command %" PRId64 " appears twice",
				    row->sequence);
	if (row->sequence == expected + 1)
		return ts_error_set(err, TS_EFORMAT,
				    "command %" PRId64
				    " is missing: what follows cannot be replayed without it",
				    expected);
	return ts_error_set(err, TS_EFORMAT,
			    "commands %" PRId64 " to %" PRId64
			    " are missing: what follows cannot be replayed without them",
			    expected, row->sequence - 1);
}

static int reserve(struct ts_replay_load *load, struct ts_error *err)
{
	size_t count = 0, rows = 0;
	uint32_t *counts = ts_arena_alloc_zeroed(&load->scratch, load->stream->object_count + 1u,
						 sizeof(*counts));

	if (!counts || ts_replay_prepare_nodes(load))
		return ts_replay_no_memory(err);
	for (size_t i = 0; i < load->row_count; i++) {
		if (!is_of_window(load, &load->rows[i]))
			continue;
		count += ts_replay_count_row(load, &load->rows[i], counts);
		rows++;
	}
	if (rows >= TS_REPLAY_NONE || count > rows + MOST_NODES)
		return ts_error_set(err, TS_EFORMAT, "a window of %zu commands is too large",
				    count);
	load->stream->commands = ts_arena_alloc_zeroed(&load->stream->arena, count + 1,
						       sizeof(*load->stream->commands));
	load->previous = ts_arena_alloc_zeroed(&load->scratch, count + 1, sizeof(*load->previous));
	load->newest = ts_arena_alloc_zeroed(&load->scratch, load->stream->object_count + 1u,
					     sizeof(*load->newest));
	load->legacy = ts_arena_alloc_zeroed(&load->scratch, load->stream->object_count + 1u,
					     sizeof(*load->legacy));
	load->places = ts_arena_alloc_zeroed(&load->scratch, load->stream->object_count + 1u,
					     sizeof(*load->places));
	if (!load->stream->commands || !load->previous || !load->newest || !load->legacy ||
	    !load->places)
		return ts_replay_no_memory(err);
	for (uint32_t i = 0; i < load->stream->object_count; i++)
		load->legacy[i] = (struct ts_replay_legacy){ TS_REPLAY_NONE, TS_REPLAY_NONE,
							     TS_REPLAY_NONE, TS_REPLAY_NONE,
							     false };
	memset(load->newest, 0xff, load->stream->object_count * sizeof(*load->newest));
	return TS_OK;
}

int ts_replay_load_commands(struct ts_replay_load *load, struct ts_error *err)
{
	int64_t expected = load->window->sequence;
	int rc = reserve(load, err);

	for (size_t i = 0; !rc && i < load->row_count; i++) {
		const struct ts_command_row *row = &load->rows[i];

		if (!is_of_window(load, row))
			continue;
		rc = check_sequence(row, ++expected, err);
		if (!rc)
			rc = load_command(load, row, err);
	}
	if (!rc && load->stream->command_count == 0)
		rc = ts_error_set(err, TS_ENOTFOUND,
				  "nothing to replay: window %" PRIu64 " has no commands",
				  load->window->number);
	return rc;
}
