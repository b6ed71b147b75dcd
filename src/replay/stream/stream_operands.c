/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands of commands other than launches: memory, ranges, rectangles, host data. A range outside
 * its memory rejects the trace with the command's number.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "replay/stream/stream_internal.h"

#define COLOR_BYTES 16u /* of a fill of an image: four values */

void ts_replay_spoil(struct ts_replay_load *load, uint32_t index, const char *format, ...)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];
	char text[256];
	va_list arguments;

	if (command->unreplayable)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	command->unreplayable = ts_arena_strdup_len(&load->stream->arena, text, strlen(text));
	if (!command->unreplayable)
		command->unreplayable = "it is invalid";
}

/* ---- ranges ---- */

/* Converts memory to its root, and `offset` with it. */
static bool to_root(struct ts_replay_load *load, uint32_t *object, uint64_t *offset)
{
	const struct ts_replay_object_info *memory = &load->stream->objects[*object];

	if (memory->parent == TS_REPLAY_NONE ||
	    load->stream->objects[memory->parent].kind != TS_OBJECT_MEMORY)
		return true;
	*object = memory->parent;
	return !__builtin_add_overflow(*offset, memory->origin, offset);
}

int ts_replay_load_range(struct ts_replay_load *load, uint32_t index, const char *what,
			 uint32_t object, uint64_t offset, uint64_t bytes,
			 struct ts_replay_range *ret_range, struct ts_error *err)
{
	const struct ts_replay_object_info *named = &load->stream->objects[object], *root;

	if (named->kind != TS_OBJECT_MEMORY)
		return ts_replay_command_error(
			load->stream, index, err, "its %s is object %" PRIu64 ", a %s, not memory",
			what, named->number, ts_enum_name("object_kind", named->kind));
	if (named->unreplayable)
		ts_replay_spoil(load, index, "memory %" PRIu64 ": %s", named->number,
				named->unreplayable);
	if (!to_root(load, &object, &offset))
		offset = UINT64_MAX;
	root = &load->stream->objects[object];
	if (named->unreplayable || root->unreplayable) {
		ts_replay_spoil(load, index, "memory %" PRIu64 ": %s", root->number,
				root->unreplayable);
		*ret_range = (struct ts_replay_range){ object, 0, root->bytes };
		return TS_OK;
	}
	if (offset > root->bytes || bytes > root->bytes - offset)
		return ts_replay_command_error(load->stream, index, err,
					       "its %s exceeds memory %" PRIu64 ": %" PRIu64
					       " bytes at %" PRIu64 " of %" PRIu64,
					       what, root->number, bytes, offset, root->bytes);
	*ret_range = (struct ts_replay_range){ object, offset, bytes };
	return TS_OK;
}

/* Value of an offset column; absent: 0. */
static uint64_t offset_of(int64_t column)
{
	return column == TS_ABSENT ? 0 : (uint64_t)column;
}

static int set_ranges(struct ts_replay_load *load, struct ts_replay_command_info *command,
		      const struct ts_replay_range *write, const struct ts_replay_range *read,
		      struct ts_error *err)
{
	if (write) {
		command->writes = ts_arena_copy(&load->stream->arena, write, sizeof(*write));
		command->write_count = 1;
	}
	if (read) {
		command->reads = ts_arena_copy(&load->stream->arena, read, sizeof(*read));
		command->read_count = 1;
	}
	if ((write && !command->writes) || (read && !command->reads))
		return ts_replay_no_memory(err);
	return TS_OK;
}

/* ---- rectangles ---- */

/* Fills in default pitches, as drivers do; false: invalid values. */
static bool settle_side(struct ts_replay_rect_side *side, const uint64_t region[3])
{
	uint64_t slice;

	if (!side->row)
		side->row = region[0];
	if (side->row < region[0] || __builtin_mul_overflow(side->row, region[1], &slice))
		return false;
	if (!side->slice)
		side->slice = slice;
	return side->slice >= slice;
}

/* The range from the first to the last byte of a rectangle. */
static bool side_bounds(const struct ts_replay_rect_side *side, const uint64_t region[3],
			uint64_t *ret_offset, uint64_t *ret_bytes)
{
	const uint64_t pitch[3] = { 1, side->row, side->slice };
	uint64_t offset = 0, bytes = region[0];

	for (int i = 0; i < 3; i++) {
		uint64_t start, more = 0;

		if (__builtin_mul_overflow(side->origin[i], pitch[i], &start) ||
		    __builtin_add_overflow(offset, start, &offset))
			return false;
		if (i > 0 && (__builtin_mul_overflow(region[i] - 1, pitch[i], &more) ||
			      __builtin_add_overflow(bytes, more, &bytes)))
			return false;
	}
	*ret_offset = offset;
	*ret_bytes = bytes;
	return true;
}

static bool product(const uint64_t region[3], uint64_t *ret_bytes)
{
	return region[0] && region[1] && region[2] &&
	       !__builtin_mul_overflow(region[0], region[1], ret_bytes) &&
	       !__builtin_mul_overflow(*ret_bytes, region[2], ret_bytes);
}

static int load_rect(struct ts_replay_load *load, uint32_t index,
		     const struct ts_replay_details *details, struct ts_error *err)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];

	if (details->region.count != 3)
		return ts_replay_command_error(load->stream, index, err,
					       "its region has %" PRIu32 " sides, not 3",
					       details->region.count);
	command->is_rect = true;
	memcpy(command->region, details->region.items, sizeof(command->region));
	command->to = details->to;
	command->from = details->from;
	/* Data in the blob, or copied to the host, is packed. */
	if (command->object == TS_REPLAY_NONE)
		command->to = (struct ts_replay_rect_side){ 0 };
	if (command->other == TS_REPLAY_NONE)
		command->from = (struct ts_replay_rect_side){ 0 };
	if (!product(command->region, &command->bytes) ||
	    !settle_side(&command->to, command->region) ||
	    !settle_side(&command->from, command->region))
		return ts_replay_command_error(load->stream, index, err,
					       "its rectangle is invalid");
	return TS_OK;
}

/* ---- copies ---- */

/* The range of one side of a copy. */
static int load_side(struct ts_replay_load *load, uint32_t index, const char *what,
		     uint32_t *object, uint64_t *offset, const struct ts_replay_rect_side *side,
		     struct ts_replay_range *ret_range, struct ts_error *err)
{
	const struct ts_replay_command_info *command = &load->stream->commands[index];
	const struct ts_replay_object_info *memory = &load->stream->objects[*object];
	uint64_t start = 0, bytes = command->bytes, named = *offset;
	int rc;

	if (memory->image)
		bytes = memory->bytes;
	else if (command->is_rect && !side_bounds(side, command->region, &start, &bytes))
		start = UINT64_MAX;
	if (__builtin_add_overflow(start, named, &start))
		start = UINT64_MAX;
	rc = ts_replay_load_range(load, index, what, *object, start, bytes, ret_range, err);
	if (rc)
		return rc;
	if (!to_root(load, object, offset))
		*offset = named;
	return TS_OK;
}

/* Of the calls on images, which are recorded without operands, only one writes a buffer. */
static bool writes_images(const char *call)
{
	return call && strstr(call, "Image") && strcmp(call, "clEnqueueCopyImageToBuffer") != 0;
}

static int load_copy(struct ts_replay_load *load, uint32_t index, const struct ts_command_row *row,
		     const struct ts_replay_details *details, struct ts_error *err)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];
	struct ts_replay_range to, from;
	bool has_to = command->object != TS_REPLAY_NONE,
	     has_from = command->other != TS_REPLAY_NONE;
	int rc = TS_OK;

	command->offset = offset_of(row->offset);
	command->other_offset = offset_of(row->other_offset);
	if (!has_to && !has_from && !command->unreplayable)
		return ts_replay_command_error(load->stream, index, err,
					       "it has neither source nor destination");
	command->unknown_access = !has_to && !has_from && !writes_images(command->call);
	if (details->has_rect)
		rc = load_rect(load, index, details, err);
	if (!rc)
		rc = ts_replay_load_image_rect(load, index, err);
	if (!rc && has_to)
		rc = load_side(load, index, "destination", &command->object, &command->offset,
			       &command->to, &to, err);
	if (!rc && has_from)
		rc = load_side(load, index, "source", &command->other, &command->other_offset,
			       &command->from, &from, err);
	if (!rc && has_to && !has_from && !command->unreplayable &&
	    command->blob.bytes != command->bytes)
		return ts_replay_command_error(load->stream, index, err,
					       "it writes %" PRIu64
					       " bytes, the trace holds %" PRIu64,
					       command->bytes, command->blob.bytes);
	/* Targets take the bytes where there are some: as many as the command has. */
	if (!rc && has_from && command->blob.id && !command->unreplayable)
		rc = ts_replay_command_error(load->stream, index, err,
					     "it has a source, and bytes of the host");
	if (rc)
		return rc;
	return set_ranges(load, command, has_to ? &to : NULL, has_from ? &from : NULL, err);
}

/* ---- commands with one operand ---- */

static int load_destination(struct ts_replay_load *load, uint32_t index,
			    const struct ts_command_row *row,
			    const struct ts_replay_details *details, struct ts_error *err)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];
	struct ts_replay_range to = { 0 };
	int rc = TS_OK;

	if (command->object == TS_REPLAY_NONE)
		return command->unreplayable ? TS_OK
					     : ts_replay_command_error(load->stream, index, err,
								       "it has no destination");
	command->offset = offset_of(row->offset);
	if (details->has_rect)
		rc = load_rect(load, index, details, err);
	if (!rc)
		rc = ts_replay_load_image_rect(load, index, err);
	if (!rc)
		rc = load_side(load, index, "destination", &command->object, &command->offset,
			       &command->to, &to, err);
	return rc ? rc : set_ranges(load, command, &to, NULL, err);
}

/* Does a fill have a pattern of a size that drivers know? */
static bool is_pattern(const struct ts_replay_load *load,
		       const struct ts_replay_command_info *command)
{
	uint64_t bytes = command->blob.bytes;

	if (command->object != TS_REPLAY_NONE &&
	    ts_replay_is_paged(&load->stream->objects[command->object]))
		return bytes == 1 || bytes == 2 || bytes == 4;
	return bytes > 0 && bytes <= 4096;
}

static int load_fill(struct ts_replay_load *load, uint32_t index, const struct ts_command_row *row,
		     const struct ts_replay_details *details, struct ts_error *err)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];
	int rc = load_destination(load, index, row, details, err);

	if (!rc && command->is_rect && command->image == TS_REPLAY_NONE && !command->unreplayable &&
	    (command->object == TS_REPLAY_NONE ||
	     !ts_replay_is_paged(&load->stream->objects[command->object])))
		return ts_replay_command_error(load->stream, index, err,
					       "it fills a rectangle of a buffer");
	if (!rc && command->image != TS_REPLAY_NONE)
		return command->unreplayable || command->blob.bytes == COLOR_BYTES
			       ? TS_OK
			       : ts_replay_command_error(load->stream, index, err,
							 "its colour has %" PRIu64 " bytes, not %u",
							 command->blob.bytes, COLOR_BYTES);
	if (!rc && !command->unreplayable &&
	    (!is_pattern(load, command) || command->bytes % command->blob.bytes != 0 ||
	     (command->is_rect && command->region[0] % command->blob.bytes != 0)))
		rc = ts_replay_command_error(load->stream, index, err,
					     "a pattern of %" PRIu64 " bytes cannot fill %" PRIu64,
					     command->blob.bytes, command->bytes);
	return rc;
}

static int load_host_write(struct ts_replay_load *load, uint32_t index,
			   const struct ts_command_row *row,
			   const struct ts_replay_details *details, struct ts_error *err)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];
	int rc = load_destination(load, index, row, details, err);

	/* Targets write all bytes at the offset, not at the origin that was checked. */
	if (!rc && command->is_rect && command->image == TS_REPLAY_NONE && !command->unreplayable)
		return ts_replay_command_error(load->stream, index, err,
					       "it writes a rectangle of a buffer");
	if (!rc && !command->unreplayable && command->blob.bytes != command->bytes)
		rc = ts_replay_command_error(load->stream, index, err,
					     "it writes %" PRIu64
					     " bytes, the trace holds %" PRIu64,
					     command->bytes, command->blob.bytes);
	return rc;
}

/* Lifetime of memory; stream_order.c extends it to cover all uses. */
static int load_life(struct ts_replay_load *load, uint32_t index, const struct ts_command_row *row,
		     struct ts_error *err)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];
	struct ts_replay_object_info *object;

	if (command->object == TS_REPLAY_NONE)
		return TS_OK;
	object = &load->stream->objects[command->object];
	if (command->kind != TS_COMMAND_LOAD && object->kind != TS_OBJECT_MEMORY)
		return ts_replay_command_error(
			load->stream, index, err, "object %" PRIu64 " is a %s, not memory",
			object->number, ts_enum_name("object_kind", object->kind));
	if (command->kind != TS_COMMAND_LOAD && object->flags & TS_REPLAY_SPARSE)
		return ts_replay_load_mapping_change(load, index, row, err);
	if (command->kind == TS_COMMAND_ALLOC && object->created_by == TS_REPLAY_NONE)
		object->created_by = index;
	if (command->kind == TS_COMMAND_FREE && object->freed_by == TS_REPLAY_NONE)
		object->freed_by = index;
	return TS_OK;
}

/* With a queue: a marker; without: a user event is set. */
static int load_record(struct ts_replay_load *load, uint32_t index,
		       const struct ts_replay_details *details, struct ts_error *err)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];
	uint32_t event = command->object;
	uint64_t *position;
	bool is_new;

	command->mapped = details->memory;
	if (command->queue != TS_REPLAY_NONE || load->is_node)
		return TS_OK;
	if (event == TS_REPLAY_NONE)
		event = ts_replay_object_by_number(load, details->event);
	if (event == TS_REPLAY_NONE || load->stream->objects[event].kind != TS_OBJECT_EVENT)
		return ts_replay_command_error(load->stream, index, err,
					       "it sets event %" PRIu64 ", which is missing",
					       details->event);
	command->user_event = event;
	command->status = details->status;
	load->stream->objects[event].flags |= TS_REPLAY_USER_EVENT;
	position = ts_map_insert(&load->user_sets, event, &is_new);
	if (!position)
		return ts_replay_no_memory(err);
	if (is_new)
		*position = index;
	return TS_OK;
}

static bool is_word(const char *text, const char *const *words, size_t count)
{
	for (size_t i = 0; text && i < count; i++)
		if (!strcmp(text, words[i]))
			return true;
	return false;
}

/* The host may wait for all of a context. */
static int load_sync(struct ts_replay_load *load, uint32_t index,
		     const struct ts_replay_details *details, struct ts_error *err)
{
	static const char *const words[] = { "context", "free" };
	struct ts_replay_command_info *command = &load->stream->commands[index];

	if (!is_word(details->what, words, TS_ARRAY_SIZE(words)))
		return TS_OK;
	if (command->object != TS_REPLAY_NONE &&
	    load->stream->objects[command->object].kind != TS_OBJECT_CONTEXT)
		return ts_replay_command_error(
			load->stream, index, err, "it waits for object %" PRIu64 ", a %s",
			load->stream->objects[command->object].number,
			ts_enum_name("object_kind", load->stream->objects[command->object].kind));
	/* More than its queue. */
	command->queue = TS_REPLAY_NONE;
	return TS_OK;
}

static int load_set(struct ts_replay_load *load, uint32_t index,
		    const struct ts_replay_details *details, struct ts_error *err)
{
	static const char *const words[] = { "limit", "attribute", "cache" };
	struct ts_replay_command_info *command = &load->stream->commands[index];
	const struct ts_replay_object_info *object;

	if (command->unreplayable)
		return TS_OK;
	if (!is_word(details->what, words, TS_ARRAY_SIZE(words)))
		return ts_replay_command_error(load->stream, index, err, "it sets '%s'",
					       details->what ? details->what : "nothing");
	if (command->object == TS_REPLAY_NONE)
		return ts_replay_command_error(load->stream, index, err, "its object is missing");
	object = &load->stream->objects[command->object];
	if (object->kind != TS_OBJECT_CONTEXT && object->kind != TS_OBJECT_STREAM &&
	    object->kind != TS_OBJECT_FUNCTION)
		return ts_replay_command_error(
			load->stream, index, err, "it sets a %s of object %" PRIu64 ", a %s",
			details->what, object->number, ts_enum_name("object_kind", object->kind));
	if (object->unreplayable)
		ts_replay_spoil(load, index, "%s %" PRIu64 ": %s",
				ts_enum_name("object_kind", object->kind), object->number,
				object->unreplayable);
	return TS_OK;
}

int ts_replay_load_operands(struct ts_replay_load *load, uint32_t index,
			    const struct ts_command_row *row,
			    const struct ts_replay_details *details, struct ts_error *err)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];

	switch (command->kind) {
	case TS_COMMAND_LAUNCH:
		return ts_replay_load_launch(load, index, details, err);
	case TS_COMMAND_COPY:
		return load_copy(load, index, row, details, err);
	case TS_COMMAND_FILL:
		return load_fill(load, index, row, details, err);
	case TS_COMMAND_HOST_WRITE:
		return load_host_write(load, index, row, details, err);
	case TS_COMMAND_ALLOC:
	case TS_COMMAND_FREE:
	case TS_COMMAND_LOAD:
		return load_life(load, index, row, err);
	case TS_COMMAND_RECORD:
		return load_record(load, index, details, err);
	case TS_COMMAND_WAIT:
		return TS_OK;
	case TS_COMMAND_SYNC:
		return load_sync(load, index, details, err);
	case TS_COMMAND_SET:
		return load_set(load, index, details, err);
	default:
		ts_replay_spoil(load, index, "the host function is not in the trace");
		command->unknown_access = true;
		return TS_OK;
	}
}
