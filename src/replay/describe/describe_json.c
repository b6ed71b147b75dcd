/* SPDX-License-Identifier: Apache-2.0 */
/* Commands as JSON: the facts of describe_command.c, one member each. */
#include <inttypes.h>
#include <string.h>

#include "replay/describe/describe.h"

/* Bytes of written data that are stored. */
#define FIRST_BYTES 64u

static void append_uint(struct ts_text *out, const char *key, uint64_t value)
{
	ts_text_printf(out, "\"%s\":%" PRIu64 ",", key, value);
}

static void append_list(struct ts_text *out, const char *key, const uint64_t *values,
			uint32_t count)
{
	ts_text_printf(out, "\"%s\":[", key);
	for (uint32_t i = 0; i < count; i++)
		ts_text_printf(out, "%s%" PRIu64, i ? "," : "", values[i]);
	ts_text_append_str(out, "],");
}

/* ---- launches ---- */

static void append_bytes(struct ts_text *out, const struct ts_replay_stream *stream,
			 const struct ts_replay_command_info *command,
			 const struct ts_replay_arg *arg, const char *type)
{
	unsigned char value[TS_REPLAY_VALUE_BYTES];
	size_t bytes = (size_t)TS_MIN(arg->size, (uint64_t)sizeof(value));

	ts_replay_append_member(out, "kind", "bytes");
	append_uint(out, "bytes", arg->size);
	if (command->blob.id &&
	    !ts_reader_blob_read(stream->reader, command->blob.id, arg->at, value, bytes, NULL))
		ts_replay_describe_value_json(type, value, arg->size, out);
}

static void append_memory(struct ts_text *out, const struct ts_replay_stream *stream,
			  const struct ts_replay_arg *arg)
{
	ts_replay_append_member(out, "kind", arg->kind == TS_REPLAY_ARG_SVM ? "svm" : "memory");
	if (arg->memory == TS_REPLAY_NONE) {
		ts_text_append_str(out, "\"memory\":null,");
		return;
	}
	ts_replay_append_object(out, stream, "memory", arg->memory);
	ts_replay_append_object(out, stream, "image", arg->image);
	append_uint(out, "offset", arg->offset);
	append_uint(out, "bytes", arg->bytes);
	ts_replay_append_member(out, "access",
				arg->access == TS_REPLAY_READS    ? "read"
				: arg->access == TS_REPLAY_WRITES ? "write"
								  : "both");
}

static void append_argument(struct ts_text *out, const struct ts_replay_stream *stream,
			    const struct ts_replay_command_info *command, uint32_t index)
{
	struct ts_replay_parameter parameter = ts_replay_parameter_of(stream, command, index);
	const struct ts_replay_arg *arg = &command->args[index];

	ts_text_append_char(out, '{');
	if (parameter.name[0])
		ts_replay_append_member(out, "name", parameter.name);
	if (parameter.type[0])
		ts_replay_append_member(out, "type", parameter.type);
	if (arg->kind == TS_REPLAY_ARG_BYTES) {
		append_bytes(out, stream, command, arg, parameter.type);
	} else if (arg->kind == TS_REPLAY_ARG_LOCAL) {
		ts_replay_append_member(out, "kind", "local");
		append_uint(out, "bytes", arg->size);
	} else if (arg->kind == TS_REPLAY_ARG_SAMPLER) {
		ts_replay_append_member(out, "kind", "sampler");
		ts_replay_append_member(out, "addressing", arg->addressing ? arg->addressing : "");
		ts_replay_append_member(out, "filter", arg->filter ? arg->filter : "");
		ts_text_printf(out, "\"normalized\":%s,", arg->is_normalized ? "true" : "false");
	} else {
		append_memory(out, stream, arg);
	}
	out->length--;
	ts_text_append_char(out, '}');
}

static void append_launch(struct ts_text *out, const struct ts_replay_stream *stream,
			  const struct ts_replay_command_info *command)
{
	if (command->object == TS_REPLAY_NONE)
		return;
	if (stream->objects[command->object].kind == TS_OBJECT_GRAPH) {
		ts_replay_append_object(out, stream, "graph", command->object);
		return;
	}
	ts_replay_append_member(out, "kernel", stream->objects[command->object].demangled);
	ts_replay_append_object(out, stream, "function", command->object);
	ts_replay_append_object(out, stream, "module", stream->objects[command->object].parent);
	if (ts_replay_has_addresses(stream)) {
		if (command->dimensions)
			ts_replay_describe_grid_json(command, out);
		ts_text_append_str(out, "\"args\":[");
		ts_replay_describe_parameters_json(stream, command, out);
		ts_text_append_str(out, "],");
		return;
	}
	append_list(out, "global", command->global, command->dimensions);
	if (command->local[0])
		append_list(out, "local", command->local, command->dimensions);
	append_list(out, "global_offset", command->global_offset, command->dimensions);
	ts_text_append_str(out, "\"args\":[");
	for (uint32_t i = 0; i < command->arg_count; i++) {
		ts_text_append_str(out, i ? "," : "");
		append_argument(out, stream, command, i);
	}
	ts_text_append_str(out, "],");
	if (command->unknown_access)
		ts_text_append_str(out, "\"unknown_access\":true,");
}

/* ---- other commands ---- */

static void append_data(struct ts_text *out, const struct ts_replay_stream *stream,
			const struct ts_replay_blob_ref *blob)
{
	size_t bytes = (size_t)TS_MIN(blob->bytes, (uint64_t)FIRST_BYTES);
	unsigned char first[FIRST_BYTES];

	if (!blob->id || ts_reader_blob_read(stream->reader, blob->id, 0, first, bytes, NULL))
		return;
	ts_text_printf(out, "\"data\":{\"bytes\":%" PRIu64 ",\"first\":\"", blob->bytes);
	ts_replay_describe_hex(first, bytes, out);
	ts_text_append_str(out, "\"},");
}

static void append_side(struct ts_text *out, const char *key,
			const struct ts_replay_rect_side *side)
{
	ts_text_printf(out,
		       "\"%s\":{\"origin\":[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "],\"row\":%" PRIu64
		       ",\"slice\":%" PRIu64 "},",
		       key, side->origin[0], side->origin[1], side->origin[2], side->row,
		       side->slice);
}

static void append_transfer(struct ts_text *out, const struct ts_replay_stream *stream,
			    const struct ts_replay_command_info *command)
{
	bool to_image = command->image != TS_REPLAY_NONE;
	bool from_image = command->other_image != TS_REPLAY_NONE;

	/* An image is named by its own number, other memory by that of its root. */
	ts_replay_append_object(out, stream, "to", to_image ? command->image : command->object);
	if (command->object != TS_REPLAY_NONE)
		append_uint(out, "to_offset", to_image ? 0 : command->offset);
	ts_replay_append_object(out, stream, "from",
				from_image ? command->other_image : command->other);
	if (command->other != TS_REPLAY_NONE)
		append_uint(out, "from_offset", from_image ? 0 : command->other_offset);
	append_uint(out, "bytes", command->bytes);
	if (command->is_rect) {
		struct ts_replay_extent extent = ts_replay_extent_of(stream, command);

		append_list(out, "region", extent.region, 3);
		append_side(out, "to_rect", &extent.to);
		append_side(out, "from_rect", &extent.from);
	}
	append_data(out, stream, &command->blob);
}

/* Of sparse memory a range is mapped or unmapped. */
static bool append_range(struct ts_text *out, const struct ts_replay_stream *stream,
			 const struct ts_replay_command_info *command)
{
	if (!(stream->objects[command->object].flags & TS_REPLAY_SPARSE))
		return false;
	append_uint(out, "offset", command->offset);
	append_uint(out, "bytes", command->bytes);
	return true;
}

static void append_node(struct ts_text *out, const struct ts_replay_stream *stream,
			const struct ts_replay_command_info *command)
{
	if (command->graph == TS_REPLAY_NONE)
		return;
	ts_replay_append_object(out, stream, "graph", command->graph);
	if (!command->graph_nodes)
		return;
	append_uint(out, "node", command->node);
	ts_text_append_str(out, "\"after\":[");
	for (uint32_t i = 0; i < command->node_after_count; i++)
		ts_text_printf(out, "%s%" PRIu32, i ? "," : "", command->node_after[i]);
	ts_text_append_str(out, "],");
}

static void append_operands(struct ts_text *out, const struct ts_replay_stream *stream,
			    const struct ts_replay_command_info *command)
{
	switch (command->kind) {
	case TS_COMMAND_LAUNCH:
		append_launch(out, stream, command);
		break;
	case TS_COMMAND_COPY:
	case TS_COMMAND_FILL:
	case TS_COMMAND_HOST_WRITE:
		append_transfer(out, stream, command);
		break;
	case TS_COMMAND_ALLOC:
		ts_replay_append_object(out, stream, "memory", command->object);
		if (command->object == TS_REPLAY_NONE || append_range(out, stream, command))
			break;
		append_uint(out, "bytes", stream->objects[command->object].bytes);
		ts_replay_describe_image_json(stream->objects[command->object].image, out);
		append_data(out, stream, &stream->objects[command->object].blob);
		break;
	case TS_COMMAND_FREE:
		ts_replay_append_object(out, stream, "memory", command->object);
		if (command->object != TS_REPLAY_NONE)
			append_range(out, stream, command);
		break;
	case TS_COMMAND_SYNC:
		ts_replay_append_object(out, stream, "context", command->object);
		break;
	case TS_COMMAND_SET:
		if (command->object == TS_REPLAY_NONE)
			break;
		ts_replay_append_object(
			out, stream,
			ts_enum_name("object_kind", stream->objects[command->object].kind),
			command->object);
		ts_replay_describe_setting_json(stream, command, out);
		break;
	case TS_COMMAND_LOAD:
		ts_replay_append_object(out, stream, "module", command->object);
		break;
	case TS_COMMAND_RECORD:
		if (command->mapped)
			append_uint(out, "memory", command->mapped);
		break;
	default:
		break;
	}
}

static void append_events(struct ts_text *out, const struct ts_replay_stream *stream,
			  const struct ts_replay_command_info *command)
{
	if (command->user_event != TS_REPLAY_NONE) {
		ts_replay_append_object(out, stream, "sets_event", command->user_event);
		ts_text_printf(out, "\"status\":%" PRId64 ",", command->status);
	} else if (command->event) {
		append_uint(out, "event", command->event);
	}
	if (command->event_count)
		append_list(out, "waits", command->events, command->event_count);
	if (command->what)
		ts_replay_append_member(out, "what", command->what);
}

void ts_replay_describe_command_json(const struct ts_replay_stream *stream, uint32_t command,
				     struct ts_text *out)
{
	const struct ts_replay_command_info *info = &stream->commands[command];
	const char *kind = ts_enum_name("command_kind", info->kind);

	append_uint(out, "sequence", info->sequence);
	ts_replay_append_member(out, "kind", kind ? kind : "unknown");
	if (info->call)
		ts_replay_append_member(out, "call", info->call);
	ts_replay_append_object(out, stream, "stream", info->named_queue);
	append_node(out, stream, info);
	append_operands(out, stream, info);
	append_events(out, stream, info);
	if (info->blocking)
		ts_text_append_str(out, "\"blocking\":true,");
	if (info->is_ambiguous)
		ts_text_append_str(out, "\"ambiguous\":true,");
	if (info->correlation > 0)
		ts_text_printf(out, "\"correlation\":%" PRId64 ",", info->correlation);
	if (info->unreplayable)
		ts_replay_append_member(out, "unreplayable", info->unreplayable);
}
