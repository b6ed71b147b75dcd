/* SPDX-License-Identifier: Apache-2.0 */
/* Commands as text: the call, its operands, and what it returns. */
#include <inttypes.h>
#include <string.h>

#include "replay/describe/describe.h"

/* Bytes of written data that are shown. */
#define FIRST_BYTES 16u

/* One call in the making. */
struct call {
	const struct ts_replay_stream *stream;
	const struct ts_replay_command_info *command;
	struct ts_text *out;
	size_t begin; /* after the opening parenthesis */
};

struct ts_replay_parameter ts_replay_parameter_of(const struct ts_replay_stream *stream,
						  const struct ts_replay_command_info *command,
						  uint32_t argument)
{
	const struct ts_replay_object_info *function = &stream->objects[command->object];
	struct ts_replay_parameter parameter = { "", "" };

	if (argument < function->parameter_count)
		parameter = function->parameters[argument];
	parameter.name = parameter.name ? parameter.name : "";
	parameter.type = parameter.type ? parameter.type : "";
	return parameter;
}

/* ---- parts ---- */

static void key(const struct call *call, const char *name)
{
	ts_text_printf(call->out, "%s%s=", call->out->length > call->begin ? ", " : "", name);
}

static void number(const struct call *call, const char *name, uint64_t value)
{
	key(call, name);
	ts_text_append_uint(call->out, value);
}

static void object(const struct call *call, const char *name, uint32_t index)
{
	if (index != TS_REPLAY_NONE)
		number(call, name, ts_replay_object_number(&call->stream->objects[index]));
}

static void list(const struct call *call, const char *name, const uint64_t *values, uint32_t count)
{
	key(call, name);
	for (uint32_t i = 0; i < count; i++)
		ts_text_printf(call->out, "%s%" PRIu64, i ? ", " : "[", values[i]);
	ts_text_append_str(call->out, count ? "]" : "[]");
}

static void text(const struct call *call, const char *name, const char *value)
{
	key(call, name);
	ts_text_append_str(call->out, value);
}

static void place(const struct call *call, uint32_t memory, uint64_t offset)
{
	ts_replay_describe_place(call->stream, memory, offset, call->out);
}

static void memory(const struct call *call, const char *name, uint32_t index, uint64_t offset)
{
	if (index == TS_REPLAY_NONE)
		return;
	key(call, name);
	place(call, index, offset);
}

/* "[400 bytes: 00010203...]" */
static void data(const struct call *call, const char *name, const struct ts_replay_blob_ref *blob)
{
	size_t bytes = (size_t)TS_MIN(blob->bytes, (uint64_t)FIRST_BYTES);
	unsigned char first[FIRST_BYTES];

	if (!blob->id)
		return;
	key(call, name);
	ts_text_printf(call->out, "[%" PRIu64 " byte%s: ", blob->bytes,
		       blob->bytes == 1 ? "" : "s");
	if (ts_reader_blob_read(call->stream->reader, blob->id, 0, first, bytes, NULL))
		ts_text_append_char(call->out, '?');
	else
		ts_replay_describe_hex(first, bytes, call->out);
	ts_text_append_str(call->out, blob->bytes > bytes ? "...]" : "]");
}

/* ---- launches ---- */

static void bytes_argument(const struct call *call, const struct ts_replay_arg *arg,
			   const char *type)
{
	unsigned char value[TS_REPLAY_VALUE_BYTES];
	size_t bytes = (size_t)TS_MIN(arg->size, (uint64_t)sizeof(value));

	if (!call->command->blob.id ||
	    ts_reader_blob_read(call->stream->reader, call->command->blob.id, arg->at, value, bytes,
				NULL))
		ts_text_append_char(call->out, '?');
	else
		ts_replay_describe_value(type, value, arg->size, call->out);
}

static const char *access_name(unsigned int access)
{
	return access == TS_REPLAY_READS ? "read" : access == TS_REPLAY_WRITES ? "write" : "both";
}

static void sampler(const struct call *call, const struct ts_replay_arg *arg)
{
	ts_text_printf(call->out, "sampler [%s, %s, %s]",
		       arg->is_normalized ? "normalized" : "not normalized",
		       arg->addressing ? arg->addressing : "?", arg->filter ? arg->filter : "?");
}

/* The range in its root that the kernel gets, or the image. */
static void memory_argument(const struct call *call, const struct ts_replay_arg *arg)
{
	const struct ts_replay_object_info *image =
		arg->image == TS_REPLAY_NONE ? NULL : &call->stream->objects[arg->image];

	place(call, image ? arg->image : arg->memory, image ? 0 : arg->offset);
	ts_text_append_str(call->out, " [");
	if (image && image->image)
		ts_replay_describe_image(image->image, call->out);
	else
		ts_text_printf(call->out, "%" PRIu64 " bytes", arg->bytes);
	ts_text_printf(call->out, ", %s]", access_name(arg->access));
}

static void argument(const struct call *call, uint32_t index)
{
	const struct ts_replay_arg *arg = &call->command->args[index];
	struct ts_replay_parameter parameter =
		ts_replay_parameter_of(call->stream, call->command, index);

	if (parameter.name[0])
		ts_text_printf(call->out, "%s=", parameter.name);
	if (arg->kind == TS_REPLAY_ARG_BYTES) {
		bytes_argument(call, arg, parameter.type);
	} else if (arg->kind == TS_REPLAY_ARG_LOCAL) {
		ts_text_printf(call->out, "local [%" PRIu64 " bytes]", arg->size);
	} else if (arg->kind == TS_REPLAY_ARG_SAMPLER) {
		sampler(call, arg);
	} else if (arg->memory == TS_REPLAY_NONE) {
		ts_text_append_str(call->out, "null");
	} else {
		memory_argument(call, arg);
	}
}

/* Of CUDA. */
static void grid(const struct call *call)
{
	if (call->command->dimensions) {
		key(call, "grid");
		call->out->length -= sizeof("grid=") - 1;
		ts_replay_describe_grid(call->command, call->out);
	}
	if (!call->command->arg_count)
		return;
	key(call, "args");
	ts_text_append_char(call->out, '(');
	ts_replay_describe_parameters(call->stream, call->command, call->out);
	ts_text_append_char(call->out, ')');
}

static void launch(const struct call *call)
{
	const struct ts_replay_command_info *command = call->command;

	if (command->object != TS_REPLAY_NONE &&
	    call->stream->objects[command->object].kind == TS_OBJECT_GRAPH) {
		object(call, "graph", command->object);
		return;
	}
	if (command->object != TS_REPLAY_NONE)
		text(call, "kernel", call->stream->objects[command->object].shown);
	if (ts_replay_has_addresses(call->stream)) {
		grid(call);
		return;
	}
	if (command->dimensions)
		list(call, "global", command->global, command->dimensions);
	if (command->dimensions && command->local[0])
		list(call, "local", command->local, command->dimensions);
	for (uint32_t i = 0; i < command->dimensions; i++) {
		if (!command->global_offset[i])
			continue;
		list(call, "offset", command->global_offset, command->dimensions);
		break;
	}
	if (!command->arg_count || command->object == TS_REPLAY_NONE)
		return;
	key(call, "args");
	for (uint32_t i = 0; i < command->arg_count; i++) {
		ts_text_append_str(call->out, i ? ", " : "(");
		argument(call, i);
	}
	ts_text_append_char(call->out, ')');
}

/* ---- other commands ---- */

static uint64_t element_of(const struct ts_replay_stream *stream, uint32_t image)
{
	const struct ts_replay_image *info = image == TS_REPLAY_NONE ? NULL
								     : stream->objects[image].image;

	return info && info->element ? info->element : 1;
}

struct ts_replay_extent ts_replay_extent_of(const struct ts_replay_stream *stream,
					    const struct ts_replay_command_info *command)
{
	uint64_t to = element_of(stream, command->image);
	uint64_t from = element_of(stream, command->other_image);
	struct ts_replay_extent extent = { .to = command->to, .from = command->from };

	memcpy(extent.region, command->region, sizeof(extent.region));
	extent.region[0] /= TS_MAX(to, from);
	extent.to.origin[0] /= to;
	extent.from.origin[0] /= from;
	return extent;
}

/* An image has no pitches. */
static void side(const struct call *call, const char *name, const struct ts_replay_rect_side *side,
		 bool is_image)
{
	list(call, name, side->origin, 3);
	if (!is_image)
		ts_text_printf(call->out, " row %" PRIu64 " slice %" PRIu64, side->row,
			       side->slice);
}

/* An image is named by its own number, other memory by that of its root. */
static bool end(const struct call *call, const char *name, uint32_t image, uint32_t root,
		uint64_t offset)
{
	bool is_image = image != TS_REPLAY_NONE;

	memory(call, name, is_image ? image : root, is_image ? 0 : offset);
	return is_image;
}

static void copy(const struct call *call)
{
	const struct ts_replay_command_info *command = call->command;
	bool to_image = end(call, "to", command->image, command->object, command->offset);
	bool from_image =
		end(call, "from", command->other_image, command->other, command->other_offset);

	if (command->is_rect) {
		struct ts_replay_extent extent = ts_replay_extent_of(call->stream, command);

		list(call, "region", extent.region, 3);
		if (command->object != TS_REPLAY_NONE)
			side(call, "to_origin", &extent.to, to_image);
		if (command->other != TS_REPLAY_NONE)
			side(call, "from_origin", &extent.from, from_image);
	}
	if (command->blob.id)
		data(call, "data", &command->blob);
	else
		number(call, "bytes", command->bytes);
}

static void host_write(const struct call *call)
{
	memory(call, "to", call->command->object, call->command->offset);
	data(call, "data", &call->command->blob);
}

static void fill(const struct call *call)
{
	const struct ts_replay_command_info *command = call->command;

	memory(call, "to", command->object, command->offset);
	if (command->is_rect && command->image == TS_REPLAY_NONE) {
		list(call, "region", command->region, 3);
		side(call, "to_origin", &command->to, false);
	}
	number(call, "bytes", command->bytes);
	data(call, "pattern", &call->command->blob);
}

/* What is mapped or unmapped. */
static void range(const struct call *call)
{
	memory(call, "range", call->command->object, call->command->offset);
	number(call, "bytes", call->command->bytes);
}

static void alloc(const struct call *call)
{
	const struct ts_replay_object_info *info = &call->stream->objects[call->command->object];

	if (info->flags & TS_REPLAY_SPARSE) {
		range(call);
		return;
	}
	object(call, "context", info->parent);
	if (info->flag_count) {
		key(call, "flags");
		for (uint32_t i = 0; i < info->flag_count; i++)
			ts_text_printf(call->out, "%s%s", i ? "|" : "", info->flag_names[i]);
	}
	if (info->image) {
		key(call, "image");
		ts_replay_describe_image(info->image, call->out);
	}
	if (info->blob.id)
		data(call, "content", &info->blob);
	else
		number(call, "bytes", info->bytes);
}

static void load(const struct call *call)
{
	const struct ts_replay_object_info *info = &call->stream->objects[call->command->object];

	object(call, "context", info->parent);
	if (info->from)
		text(call, "from", info->from);
	if (info->options[0]) {
		key(call, "options");
		ts_text_printf(call->out, "'%s'", info->options);
	}
}

static void record(const struct call *call)
{
	if (call->command->mapped)
		number(call, "memory", call->command->mapped);
	if (call->command->user_event == TS_REPLAY_NONE)
		return;
	object(call, "event", call->command->user_event);
	key(call, "status");
	ts_text_append_int(call->out, call->command->status);
}

static void set(const struct call *call)
{
	uint32_t index = call->command->object;

	if (index != TS_REPLAY_NONE)
		object(call, ts_enum_name("object_kind", call->stream->objects[index].kind), index);
	ts_text_append_str(call->out, call->out->length > call->begin ? ", " : "");
	ts_replay_describe_setting(call->stream, call->command, call->out);
}

/* Of a graph that a launch runs. */
static void node(const struct call *call)
{
	const struct ts_replay_command_info *command = call->command;

	if (command->graph == TS_REPLAY_NONE)
		return;
	object(call, "graph", command->graph);
	if (!command->graph_nodes)
		return;
	number(call, "node", command->node);
	if (!command->node_after_count)
		return;
	key(call, "after");
	for (uint32_t i = 0; i < command->node_after_count; i++)
		ts_text_printf(call->out, "%s%" PRIu32, i ? ", " : "[", command->node_after[i]);
	ts_text_append_char(call->out, ']');
}

static void operands(const struct call *call)
{
	const struct ts_replay_command_info *command = call->command;
	bool has_object = command->object != TS_REPLAY_NONE;

	switch (command->kind) {
	case TS_COMMAND_LAUNCH:
		launch(call);
		break;
	case TS_COMMAND_COPY:
		copy(call);
		break;
	case TS_COMMAND_FILL:
		fill(call);
		break;
	case TS_COMMAND_HOST_WRITE:
		host_write(call);
		break;
	case TS_COMMAND_ALLOC:
		if (has_object)
			alloc(call);
		break;
	case TS_COMMAND_LOAD:
		if (has_object)
			load(call);
		break;
	case TS_COMMAND_FREE:
		if (has_object && call->stream->objects[command->object].flags & TS_REPLAY_SPARSE)
			range(call);
		else
			object(call, "memory", command->object);
		break;
	case TS_COMMAND_SET:
		set(call);
		break;
	case TS_COMMAND_SYNC:
		if (has_object)
			object(call, "context", command->object);
		break;
	case TS_COMMAND_RECORD:
		record(call);
		break;
	default:
		break;
	}
}

static bool is_empty_node(const struct ts_replay_command_info *command)
{
	return command->kind == TS_COMMAND_WAIT && !command->event_count;
}

static const char *call_name(const struct ts_replay_command_info *command)
{
	const char *kind = ts_enum_name("command_kind", command->kind);

	/* The call is that of the launch, which says nothing about a node. */
	if (command->graph != TS_REPLAY_NONE && command->graph_nodes)
		return is_empty_node(command) ? "empty" : kind ? kind : "unknown";
	return command->call ? command->call : kind ? kind : "unknown";
}

static void result(const struct call *call)
{
	const struct ts_replay_command_info *command = call->command;
	bool creates = command->kind == TS_COMMAND_ALLOC || command->kind == TS_COMMAND_LOAD;

	if (creates && command->object != TS_REPLAY_NONE &&
	    !(call->stream->objects[command->object].flags & TS_REPLAY_SPARSE)) {
		ts_text_append_str(call->out, " -> ");
		ts_replay_describe_name(call->stream, command->object, call->out);
	} else if (command->event && command->user_event == TS_REPLAY_NONE) {
		ts_text_printf(call->out, " -> event %" PRIu64, command->event);
	}
	/* All launches of CUDA may. */
	if (command->unknown_access && command->kind == TS_COMMAND_LAUNCH &&
	    !command->unreplayable && !ts_replay_has_addresses(call->stream))
		ts_text_append_str(call->out, ": may access all memory");
	if (command->is_ambiguous)
		ts_text_append_str(call->out, ": the kind of an argument was guessed");
	if (command->unreplayable)
		ts_text_printf(call->out, ": cannot be replayed: %s", command->unreplayable);
}

void ts_replay_describe_command(const struct ts_replay_stream *stream, uint32_t command,
				struct ts_text *out)
{
	const struct ts_replay_command_info *info = &stream->commands[command];
	struct call call = { .stream = stream, .command = info, .out = out };

	ts_text_printf(out, "%s(", call_name(info));
	call.begin = out->length;
	/* The list has a column for it, and at 80 columns no space to say it twice. */
	if (info->kind == TS_COMMAND_SYNC)
		object(&call, "stream", info->named_queue);
	node(&call);
	operands(&call);
	if (info->event_count || (info->has_wait_list && info->named_queue == info->queue))
		list(&call, info->what && !strcmp(info->what, "seen") ? "seen" : "wait",
		     info->events, info->event_count);
	if (info->blocking)
		text(&call, "blocking", "true");
	ts_text_append_char(out, ')');
	result(&call);
}
