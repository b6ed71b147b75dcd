/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: kernel, geometry, arguments, and the memory they may read and write. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "replay/stream/stream_internal.h"

/* Maximum bytes of local memory of an argument: more than any device has. */
#define MOST_LOCAL ((uint64_t)1 << 30)

/* ---- geometry ---- */

static int load_sizes(struct ts_replay_load *load, uint32_t index, const char *what,
		      const struct ts_replay_numbers *numbers, uint64_t to[3], struct ts_error *err)
{
	uint32_t dimensions = load->stream->commands[index].dimensions;

	if (numbers->count != 0 && numbers->count != dimensions)
		return ts_replay_command_error(load->stream, index, err,
					       "it has %" PRIu32 " dimensions, but its %s %" PRIu32,
					       dimensions, what, numbers->count);
	for (uint32_t i = 0; i < numbers->count; i++)
		to[i] = numbers->items[i];
	return TS_OK;
}

static int load_geometry(struct ts_replay_load *load, uint32_t index,
			 const struct ts_replay_details *details, struct ts_error *err)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];
	int rc;

	if (details->global.count < 1 || details->global.count > 3)
		return ts_replay_command_error(load->stream, index, err,
					       "it has %" PRIu32 " dimensions, not 1 to 3",
					       details->global.count);
	command->dimensions = details->global.count;
	rc = load_sizes(load, index, "global size", &details->global, command->global, err);
	if (!rc)
		rc = load_sizes(load, index, "local size", &details->local, command->local, err);
	if (!rc)
		rc = load_sizes(load, index, "offset", &details->offset, command->global_offset,
				err);
	return rc;
}

/* Of CUDA: blocks of threads. */
static int load_grid(struct ts_replay_load *load, uint32_t index,
		     const struct ts_replay_details *details, struct ts_error *err)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];

	if (details->grid.count != 3 || details->block.count != 3 || !details->grid.items ||
	    !details->block.items)
		return ts_replay_command_error(load->stream, index, err,
					       "its grid has %" PRIu32
					       " dimensions and its block %" PRIu32 ", not 3",
					       details->grid.count, details->block.count);
	command->dimensions = 3;
	for (int i = 0; i < 3; i++) {
		uint64_t blocks = details->grid.items[i], threads = details->block.items[i];

		if (!blocks || blocks > UINT32_MAX || !threads || threads > UINT32_MAX)
			return ts_replay_command_error(load->stream, index, err,
						       "it has %" PRIu64 " blocks of %" PRIu64
						       " threads in a dimension",
						       blocks, threads);
		command->local[i] = threads;
		command->global[i] = blocks * threads;
	}
	return TS_OK;
}

/* Parameters are bytes of the block; all launches of a function share their places. */
static const struct ts_replay_arg *args_of(struct ts_replay_load *load, uint32_t function)
{
	const struct ts_replay_object_info *object = &load->stream->objects[function];
	struct ts_replay_arg *args;

	if (load->places[function])
		return load->places[function];
	args = ts_arena_alloc_zeroed(&load->stream->arena, object->place_count + 1u, sizeof(*args));
	for (uint32_t i = 0; args && i < object->place_count; i++)
		args[i] = (struct ts_replay_arg){ .kind = TS_REPLAY_ARG_BYTES,
						  .at = object->places[i].at,
						  .size = object->places[i].size,
						  .memory = TS_REPLAY_NONE,
						  .image = TS_REPLAY_NONE };
	load->places[function] = args;
	return args;
}

/* The parameters of the function have to be inside of the block. */
static int load_places(struct ts_replay_load *load, uint32_t index, struct ts_error *err)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];
	const struct ts_replay_object_info *function = &load->stream->objects[command->object];

	if (command->unreplayable)
		return TS_OK;
	for (uint32_t i = 0; i < function->place_count; i++) {
		const struct ts_replay_place *place = &function->places[i];

		if (place->at > command->blob.bytes ||
		    place->size > command->blob.bytes - place->at)
			return ts_replay_command_error(
				load->stream, index, err,
				"parameter %" PRIu32 " has %" PRIu64 " bytes at %" PRIu64
				" of a block of %" PRIu64,
				i, place->size, place->at, command->blob.bytes);
	}
	command->args = args_of(load, command->object);
	command->arg_count = function->place_count;
	return command->args ? TS_OK : ts_replay_no_memory(err);
}

/* ---- arguments ---- */

static bool is_text(const char *text, const char *name)
{
	return text && !strcmp(text, name);
}

static int load_bytes(struct ts_replay_load *load, uint32_t index, uint32_t number,
		      const struct ts_replay_raw_arg *raw, struct ts_replay_arg *arg,
		      struct ts_error *err)
{
	const struct ts_replay_command_info *command = &load->stream->commands[index];

	arg->kind = TS_REPLAY_ARG_BYTES;
	arg->at = raw->at;
	arg->size = raw->size;
	/* A launch that is unreplayable for another reason has no block, and never runs. */
	if (command->unreplayable && !command->blob.id)
		return TS_OK;
	if (raw->size == 0 || raw->at > command->blob.bytes ||
	    raw->size > command->blob.bytes - raw->at)
		return ts_replay_command_error(load->stream, index, err,
					       "argument %" PRIu32 " has %" PRIu64
					       " bytes at %" PRIu64 " of a block of %" PRIu64,
					       number, raw->size, raw->at, command->blob.bytes);
	return TS_OK;
}

static int load_memory(struct ts_replay_load *load, uint32_t index, uint32_t number,
		       const struct ts_replay_raw_arg *raw, struct ts_replay_arg *arg,
		       struct ts_error *err)
{
	uint32_t object = ts_replay_object_by_number(load, raw->object);
	struct ts_replay_range range;
	uint64_t object_bytes;
	char what[32];
	int rc;

	arg->access = TS_REPLAY_READS | TS_REPLAY_WRITES;
	if (is_text(raw->access, "read"))
		arg->access = TS_REPLAY_READS;
	else if (is_text(raw->access, "write"))
		arg->access = TS_REPLAY_WRITES;
	if (raw->object == 0)
		return TS_OK;
	if (object == TS_REPLAY_NONE)
		return ts_replay_command_error(load->stream, index, err,
					       "argument %" PRIu32 " names memory %" PRIu64
					       ", which is missing",
					       number, raw->object);
	snprintf(what, sizeof(what), "argument %" PRIu32, number);
	object_bytes = load->stream->objects[object].bytes;
	if (load->stream->objects[object].image) {
		arg->image = object;
		rc = ts_replay_load_range(load, index, what, object, 0, object_bytes, &range, err);
	} else {
		rc = ts_replay_load_range(
			load, index, what, object, raw->offset,
			raw->has_bytes ? raw->bytes
				       : object_bytes - TS_MIN(raw->offset, object_bytes),
			&range, err);
	}
	if (rc)
		return rc;
	arg->memory = range.memory;
	arg->offset = range.offset;
	arg->bytes = range.bytes;
	return TS_OK;
}

static int load_arg(struct ts_replay_load *load, uint32_t index, uint32_t number,
		    const struct ts_replay_raw_arg *raw, struct ts_replay_arg *arg,
		    struct ts_error *err)
{
	arg->memory = arg->image = TS_REPLAY_NONE;
	if (is_text(raw->kind, "bytes"))
		return load_bytes(load, index, number, raw, arg, err);
	if (is_text(raw->kind, "local")) {
		arg->kind = TS_REPLAY_ARG_LOCAL;
		arg->size = raw->size;
		return raw->size <= MOST_LOCAL
			       ? TS_OK
			       : ts_replay_command_error(load->stream, index, err,
							 "argument %" PRIu32 " wants %" PRIu64
							 " bytes of local memory",
							 number, raw->size);
	}
	if (is_text(raw->kind, "memory") || is_text(raw->kind, "svm")) {
		arg->kind = is_text(raw->kind, "svm") ? TS_REPLAY_ARG_SVM : TS_REPLAY_ARG_MEMORY;
		return load_memory(load, index, number, raw, arg, err);
	}
	if (is_text(raw->kind, "sampler"))
		return ts_replay_load_sampler(load, index, number, raw, arg);
	ts_replay_spoil(load, index, "argument %" PRIu32 " has kind '%s'", number,
			raw->kind ? raw->kind : "unknown");
	return TS_OK;
}

static int load_args(struct ts_replay_load *load, uint32_t index,
		     const struct ts_replay_details *details, struct ts_error *err)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];
	struct ts_replay_arg *args =
		ts_arena_alloc_zeroed(&load->stream->arena, details->arg_count + 1, sizeof(*args));
	int rc = TS_OK;

	if (!args)
		return ts_replay_no_memory(err);
	command->args = args;
	command->arg_count = details->arg_count;
	for (uint32_t i = 0; !rc && i < details->arg_count; i++)
		rc = load_arg(load, index, i, &details->args[i], &args[i], err);
	return rc;
}

/* ---- sets ---- */

/* A kernel may move a pointer into SVM: the range is the entire allocation. */
static struct ts_replay_range range_of(const struct ts_replay_load *load,
				       const struct ts_replay_arg *arg)
{
	if (arg->kind == TS_REPLAY_ARG_SVM)
		return (struct ts_replay_range){ arg->memory, 0,
						 load->stream->objects[arg->memory].bytes };
	return (struct ts_replay_range){ arg->memory, arg->offset, arg->bytes };
}

static int add_indirect(struct ts_replay_load *load, uint32_t index, uint64_t number,
			struct ts_replay_range *ret_range, struct ts_error *err)
{
	uint32_t object = ts_replay_object_by_number(load, number);

	if (object == TS_REPLAY_NONE)
		return ts_replay_command_error(load->stream, index, err,
					       "it can access memory %" PRIu64 ", which is missing",
					       number);
	return ts_replay_load_range(load, index, "memory", object, 0,
				    load->stream->objects[object].bytes, ret_range, err);
}

static int load_sets(struct ts_replay_load *load, uint32_t index,
		     const struct ts_replay_details *details, struct ts_error *err)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];
	size_t most = (size_t)command->arg_count + details->indirect.count + 1;
	struct ts_replay_range *reads =
		ts_arena_alloc_zeroed(&load->stream->arena, most, sizeof(*reads));
	struct ts_replay_range *writes =
		ts_arena_alloc_zeroed(&load->stream->arena, most, sizeof(*writes));
	int rc = TS_OK;

	if (!reads || !writes)
		return ts_replay_no_memory(err);
	for (uint32_t i = 0; i < command->arg_count; i++) {
		const struct ts_replay_arg *arg = &command->args[i];

		if (arg->memory == TS_REPLAY_NONE)
			continue;
		if (arg->access & TS_REPLAY_READS)
			reads[command->read_count++] = range_of(load, arg);
		if (arg->access & TS_REPLAY_WRITES)
			writes[command->write_count++] = range_of(load, arg);
	}
	for (uint32_t i = 0; !rc && i < details->indirect.count; i++) {
		rc = add_indirect(load, index, details->indirect.items[i],
				  &reads[command->read_count], err);
		if (!rc)
			writes[command->write_count++] = reads[command->read_count++];
	}
	command->reads = reads;
	command->writes = writes;
	command->unknown_access = details->unknown || !details->has_args;
	return rc;
}

/* ---- the function ---- */

static int load_function(struct ts_replay_load *load, uint32_t index, struct ts_error *err)
{
	struct ts_replay_stream *stream = load->stream;
	const struct ts_replay_command_info *command = &stream->commands[index];
	const struct ts_replay_object_info *function, *module;

	if (command->object == TS_REPLAY_NONE ||
	    stream->objects[command->object].kind != TS_OBJECT_FUNCTION)
		return ts_replay_command_error(stream, index, err, "its kernel is missing");
	function = &stream->objects[command->object];
	if (function->unreplayable) {
		ts_replay_spoil(load, index, "kernel '%s': %s", function->name,
				function->unreplayable);
		return TS_OK;
	}
	module = &stream->objects[function->parent];
	if (module->unreplayable)
		ts_replay_spoil(load, index, "module %" PRIu64 ": %s", module->number,
				module->unreplayable);
	return TS_OK;
}

int ts_replay_load_launch(struct ts_replay_load *load, uint32_t index,
			  const struct ts_replay_details *details, struct ts_error *err)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];
	int rc;

	/* Its nodes say the rest. */
	if (command->object != TS_REPLAY_NONE &&
	    load->stream->objects[command->object].kind == TS_OBJECT_GRAPH) {
		command->unknown_access = true;
		return TS_OK;
	}
	/* An unreplayable launch may be incomplete. */
	if (command->unreplayable && (!details->has_args || !details->global.count)) {
		command->unknown_access = true;
		return TS_OK;
	}
	rc = load_function(load, index, err);
	if (!rc && (details->grid.items || details->block.items)) {
		command->unknown_access = true;
		rc = load_grid(load, index, details, err);
		return rc ? rc : load_places(load, index, err);
	}
	if (!rc)
		rc = load_geometry(load, index, details, err);
	if (!rc)
		rc = load_args(load, index, details, err);
	if (!rc)
		rc = load_sets(load, index, details, err);
	return rc;
}
