/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What --dump shows: a memory object, an address in sparse memory, or what an argument of a launch
 * points to.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "replay/check/check.h"
#include "replay/plan/plan.h"
#include "replay/plan/ranges.h"
#include "replay/stream/stream_internal.h"

/* Bytes that are shown if none are named, up to the end of what is mapped. */
#define DUMPED_BYTES 4096u

static int capture(struct ts_replay_checker *checker, uint32_t position,
		   const struct ts_replay_range *range, struct ts_error *err)
{
	size_t index;

	if (ts_replay_captures_add(checker, position, range, "dump", &index))
		return ts_replay_no_memory(err);
	checker->dump_capture = (uint32_t)index;
	checker->dump_bytes = range->bytes;
	return TS_OK;
}

/* ---- an object ---- */

static uint32_t find_memory(const struct ts_replay_stream *stream, uint64_t number)
{
	for (uint32_t i = 0; i < stream->object_count; i++)
		if (stream->objects[i].number == number &&
		    stream->objects[i].kind == TS_OBJECT_MEMORY)
			return i;
	return TS_REPLAY_NONE;
}

/* Whether all of it can be shown after a command. */
static bool can_dump(const struct ts_replay_checker *checker, uint32_t memory, uint32_t index)
{
	const struct ts_replay_stream *stream = checker->replay->stream;
	const struct ts_replay_object_info *object = &stream->objects[memory];
	uint32_t root = ts_replay_is_root(stream, memory) ? memory : object->parent;

	return !(object->flags & TS_REPLAY_SPARSE) && !object->unreplayable &&
	       ts_replay_is_alive(stream, root, index) && ts_replay_can_see(checker, root);
}

static int no_such_memory(const struct ts_replay_checker *checker, uint32_t index, uint64_t number,
			  struct ts_error *err)
{
	const struct ts_replay_stream *stream = checker->replay->stream;
	bool has_addresses = checker->replay->options.target->can & TS_REPLAY_CAN_DUMP_ADDRESS;
	TS_SCOPED(ts_text) available = { 0 };
	uint32_t i;

	for (i = 0; i < stream->object_count && available.length < 200; i++)
		if (ts_replay_is_root(stream, i) && can_dump(checker, i, index))
			ts_text_printf(&available, "%s%" PRIu64, available.length ? ", " : "",
				       stream->objects[i].number);
	if (i < stream->object_count)
		ts_text_append_str(&available, " ... (--list shows all)");
	return ts_error_set(err, TS_EINVAL,
			    "there is no memory %" PRIu64 " after command %" PRIu64
			    "; existing memory: %s%s",
			    number, stream->commands[index].sequence,
			    available.length ? ts_text_cstr(&available) : "none",
			    has_addresses ? "; '--dump 0xADDRESS' shows other memory" : "");
}

static int add_memory(struct ts_replay_checker *checker, uint32_t position, uint32_t index,
		      struct ts_error *err)
{
	const struct ts_replay_stream *stream = checker->replay->stream;
	uint64_t number = checker->replay->options.dump_memory;
	uint32_t memory = find_memory(stream, number);
	const struct ts_replay_object_info *object;
	struct ts_replay_range range;

	if (memory == TS_REPLAY_NONE)
		return no_such_memory(checker, index, number, err);
	object = &stream->objects[memory];
	/* Terabytes, of which little is mapped. */
	if (object->flags & TS_REPLAY_SPARSE)
		return ts_error_set(err, TS_EINVAL,
				    "memory %" PRIu64
				    " is an address space: '--dump 0xADDRESS:BYTES' shows a part",
				    number);
	range = (struct ts_replay_range){ memory, object->origin, object->bytes };
	if (!ts_replay_is_root(stream, memory))
		range.memory = object->parent;
	if (!can_dump(checker, memory, index))
		return no_such_memory(checker, index, number, err);
	return capture(checker, position, &range, err);
}

/* ---- an address ---- */

/* What of sparse memory is mapped after a command. */
static int find_mapped(const struct ts_replay_stream *stream, uint32_t memory, uint32_t index,
		       struct ts_ranges *ranges)
{
	const struct ts_replay_object_info *object = &stream->objects[memory];
	int rc = TS_OK;

	for (uint32_t i = 0; !rc && i < object->mapping_count; i++)
		rc = ts_ranges_add(ranges, object->mappings[i].offset,
				   object->mappings[i].offset + object->mappings[i].bytes);
	for (uint32_t i = 0; !rc && i <= index; i++) {
		const struct ts_replay_command_info *command = &stream->commands[i];
		uint64_t end = command->offset + command->bytes;

		if (command->object != memory)
			continue;
		if (command->kind == TS_COMMAND_ALLOC)
			rc = ts_ranges_add(ranges, command->offset, end);
		else if (command->kind == TS_COMMAND_FREE)
			rc = ts_ranges_cut(ranges, command->offset, end);
	}
	return rc;
}

/* Sets the range to what is mapped from the address on; false: nothing is. */
static bool find_range(const struct ts_ranges *mapped, uint64_t offset, uint64_t bytes,
		       struct ts_replay_range *range)
{
	for (size_t i = 0; i < mapped->count; i++) {
		if (offset < mapped->items[i].from || offset >= mapped->items[i].to)
			continue;
		range->offset = offset;
		range->bytes = TS_MIN(bytes ? bytes : DUMPED_BYTES, mapped->items[i].to - offset);
		return range->bytes == bytes || !bytes;
	}
	return false;
}

static int not_mapped(const struct ts_replay_stream *stream, uint64_t address, uint64_t bytes,
		      uint32_t index, struct ts_error *err)
{
	char count[TS_FORMAT_BYTES] = "";

	if (bytes)
		ts_format_bytes(count, sizeof(count), bytes);
	return ts_error_set(err, TS_EINVAL,
			    "%s%sat 0x%" PRIx64
			    " %s not memory of the replay after command %" PRIu64,
			    count, bytes ? " " : "what is ", address, bytes ? "are" : "is",
			    stream->commands[index].sequence);
}

static int add_address(struct ts_replay_checker *checker, uint32_t position, uint32_t index,
		       uint64_t address, struct ts_error *err)
{
	const struct ts_replay_stream *stream = checker->replay->stream;
	uint64_t bytes = checker->replay->options.dump_bytes;
	bool is_found = false;
	int rc = TS_OK;

	for (uint32_t i = 0; !rc && !is_found && i < stream->object_count; i++) {
		const struct ts_replay_object_info *object = &stream->objects[i];
		struct ts_ranges mapped = { 0 };
		struct ts_replay_range range = { .memory = i };

		if (object->kind != TS_OBJECT_MEMORY || !ts_replay_is_root(stream, i) ||
		    address < object->address || address - object->address >= object->bytes)
			continue;
		rc = object->flags & TS_REPLAY_SPARSE ? find_mapped(stream, i, index, &mapped)
						      : ts_ranges_add(&mapped, 0, object->bytes);
		is_found = !rc && find_range(&mapped, address - object->address, bytes, &range);
		ts_ranges_release(&mapped);
		if (is_found)
			return capture(checker, position, &range, err);
	}
	return rc ? ts_replay_no_memory(err) : not_mapped(stream, address, bytes, index, err);
}

/* ---- an argument ---- */

static int no_argument(const struct ts_replay_stream *stream, uint32_t index, struct ts_error *err,
		       const char *format, ...) TS_PRINTF_LIKE(4, 5);
static int no_argument(const struct ts_replay_stream *stream, uint32_t index, struct ts_error *err,
		       const char *format, ...)
{
	char what[224], text[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return ts_error_set(err, TS_EINVAL, "%s: %s",
			    ts_replay_command_text(stream, index, what, sizeof(what)), text);
}

static int read_pointer(const struct ts_replay_checker *checker, uint32_t index,
			uint64_t *ret_address, struct ts_error *err)
{
	const struct ts_replay_stream *stream = checker->replay->stream;
	const struct ts_replay_command_info *command = &stream->commands[index];
	uint64_t number = checker->replay->options.dump_address;
	const struct ts_replay_arg *arg = number < command->arg_count ? &command->args[number]
								      : NULL;
	TS_AUTO_FREE char *block = NULL;
	int rc;

	/* Memory is shown behind the last node. */
	if (command->kind != TS_COMMAND_LAUNCH && command->graph != TS_REPLAY_NONE)
		return no_argument(stream, index, err,
				   "the last node of a graph, which has no arguments "
				   "('--dump 0xADDRESS:BYTES' shows memory)");
	if (command->kind != TS_COMMAND_LAUNCH)
		return no_argument(stream, index, err, "it has no arguments");
	if (!arg)
		return no_argument(stream, index, err,
				   "there is no argument %" PRIu64 "; it has %" PRIu32, number,
				   command->arg_count);
	if (arg->kind != TS_REPLAY_ARG_BYTES || arg->size != sizeof(*ret_address) ||
	    arg->at > command->blob.bytes || command->blob.bytes - arg->at < arg->size)
		return no_argument(stream, index, err,
				   "argument %" PRIu64 " has %" PRIu64
				   " bytes: it is not a pointer",
				   number, arg->size);
	block = malloc(command->blob.bytes);
	if (!block)
		return ts_replay_no_memory(err);
	rc = ts_replay_blob_read(checker->replay->reader, &command->blob, block, err);
	if (!rc)
		memcpy(ret_address, block + arg->at, sizeof(*ret_address));
	return rc;
}

int ts_replay_captures_add_dump(struct ts_replay_checker *checker, uint32_t position,
				struct ts_error *err)
{
	const struct ts_replay_options *options = &checker->replay->options;
	uint32_t index = checker->replay->plan.order[position];
	uint64_t address = options->dump_address;
	int rc;

	if (options->dumps_argument) {
		rc = read_pointer(checker, index, &address, err);
		if (rc)
			return rc;
	}
	if (options->dumps_argument || options->dumps_address)
		return add_address(checker, position, index, address, err);
	return add_memory(checker, position, index, err);
}
