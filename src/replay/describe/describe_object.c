/* SPDX-License-Identifier: Apache-2.0 */
/* Objects: names, and what is known about one when it is created. */
#include <inttypes.h>
#include <string.h>

#include "replay/describe/describe.h"
#include "replay/plan/plan.h"
#include "replay/stream/stream_internal.h"

uint64_t ts_replay_object_number(const struct ts_replay_object_info *object)
{
	return object->kind == TS_OBJECT_DEVICE || object->kind == TS_OBJECT_STREAM
		       ? object->index
		       : object->number;
}

void ts_replay_describe_name(const struct ts_replay_stream *stream, uint32_t object,
			     struct ts_text *out)
{
	const struct ts_replay_object_info *info = &stream->objects[object];

	ts_text_printf(out, "%s %" PRIu64, ts_enum_name("object_kind", info->kind),
		       ts_replay_object_number(info));
	if (info->name[0])
		ts_text_printf(out, " '%s'", info->name);
}

/* ---- text ---- */

void ts_replay_describe_image(const struct ts_replay_image *image, struct ts_text *out)
{
	ts_text_printf(out, "%s %" PRIu64 "x%" PRIu64 "x%" PRIu64 " %s %s", image->type,
		       image->size[0], image->size[1], image->size[2], image->order, image->data);
}

static void append_named(const struct ts_replay_stream *stream, uint32_t object, const char *before,
			 struct ts_text *out)
{
	if (object == TS_REPLAY_NONE)
		return;
	ts_text_append_str(out, before);
	ts_text_printf(out, "%s %" PRIu64,
		       ts_enum_name("object_kind", stream->objects[object].kind),
		       ts_replay_object_number(&stream->objects[object]));
}

static void append_parameters(const struct ts_replay_object_info *info, struct ts_text *out)
{
	const struct ts_replay_parameter *first = info->parameters;

	/* Of a program without source their number is all that is known. */
	if (info->parameter_count && !first->type[0] && !first->name[0]) {
		ts_text_printf(out, ": %s", TS_COUNTED(info->parameter_count, "parameter"));
		return;
	}
	for (uint32_t i = 0; i < info->parameter_count; i++)
		ts_text_printf(out, "%s%s%s%s", i ? ", " : ": ", info->parameters[i].type,
			       info->parameters[i].name[0] ? " " : "", info->parameters[i].name);
}

void ts_replay_describe_object(const struct ts_replay_stream *stream, uint32_t object,
			       struct ts_text *out)
{
	const struct ts_replay_object_info *info = &stream->objects[object];
	const char *before = " (";
	size_t begin;

	ts_text_append_str(out, info->created_ns >= stream->open_ns ? "create " : "exists ");
	ts_replay_describe_name(stream, object, out);
	begin = out->length;
	append_named(stream, info->parent, before, out);
	append_named(stream, info->device, out->length > begin ? ", " : before, out);
	for (uint32_t i = 0; i < info->device_count; i++)
		if (info->devices[i] != info->parent)
			append_named(stream, info->devices[i], out->length > begin ? ", " : before,
				     out);
	if (info->kind == TS_OBJECT_MEMORY && info->origin)
		ts_text_printf(out, " at %" PRIu64, info->origin);
	if (info->image) {
		ts_text_append_str(out, out->length > begin ? ", " : before);
		ts_replay_describe_image(info->image, out);
	}
	/* Unreplayable memory may have a size that stands for an unknown one. */
	if (info->kind == TS_OBJECT_MEMORY && !info->unreplayable && !ts_replay_is_paged(info))
		ts_text_printf(out, "%s%" PRIu64 " bytes", out->length > begin ? ", " : before,
			       info->bytes);
	if (info->flags & TS_REPLAY_OUT_OF_ORDER)
		ts_text_printf(out, "%sout of order", out->length > begin ? ", " : before);
	if (info->kind == TS_OBJECT_MODULE && info->from)
		ts_text_printf(out, "%sfrom %s", out->length > begin ? ", " : before, info->from);
	before = out->length > begin ? ", " : before;
	ts_replay_describe_space(info, &before, out);
	ts_text_append_str(out, out->length > begin ? ")" : "");
	append_parameters(info, out);
	if (info->place_count)
		ts_text_printf(out, ": %s", TS_COUNTED(info->place_count, "parameter"));
	if (info->unreplayable)
		ts_text_printf(out, ": cannot be replayed: %s", info->unreplayable);
}

/* ---- JSON ---- */

void ts_replay_append_member(struct ts_text *out, const char *key, const char *value)
{
	ts_text_printf(out, "\"%s\":", key);
	ts_text_append_json(out, value, strlen(value));
	ts_text_append_char(out, ',');
}

void ts_replay_append_object(struct ts_text *out, const struct ts_replay_stream *stream,
			     const char *key, uint32_t object)
{
	if (object != TS_REPLAY_NONE)
		ts_text_printf(out, "\"%s\":%" PRIu64 ",", key,
			       ts_replay_object_number(&stream->objects[object]));
}

void ts_replay_describe_image_json(const struct ts_replay_image *image, struct ts_text *out)
{
	if (image)
		ts_text_printf(out,
			       "\"image\":{\"type\":\"%s\",\"size\":[%" PRIu64 ",%" PRIu64
			       ",%" PRIu64 "],\"order\":\"%s\",\"data\":\"%s\"},",
			       image->type, image->size[0], image->size[1], image->size[2],
			       image->order, image->data);
}

static void append_lists_json(const struct ts_replay_stream *stream,
			      const struct ts_replay_object_info *info, struct ts_text *out)
{
	if (info->device_count) {
		ts_text_append_str(out, "\"devices\":[");
		for (uint32_t i = 0; i < info->device_count; i++)
			ts_text_printf(out, "%s%" PRIu64, i ? "," : "",
				       ts_replay_object_number(&stream->objects[info->devices[i]]));
		ts_text_append_str(out, "],");
	}
	if (info->flag_count) {
		ts_text_append_str(out, "\"flags\":[");
		for (uint32_t i = 0; i < info->flag_count; i++) {
			ts_text_append_str(out, i ? "," : "");
			ts_text_append_json(out, info->flag_names[i], strlen(info->flag_names[i]));
		}
		ts_text_append_str(out, "],");
	}
}

void ts_replay_describe_object_json(const struct ts_replay_stream *stream, uint32_t object,
				    struct ts_text *out)
{
	const struct ts_replay_object_info *info = &stream->objects[object];

	ts_text_printf(out, "\"object\":\"%s\",\"number\":%" PRIu64 ",",
		       ts_enum_name("object_kind", info->kind), ts_replay_object_number(info));
	if (info->name[0])
		ts_replay_append_member(out, "name", info->name);
	if (info->parent != TS_REPLAY_NONE)
		ts_replay_append_object(
			out, stream,
			ts_enum_name("object_kind", stream->objects[info->parent].kind),
			info->parent);
	ts_replay_append_object(out, stream, "device", info->device);
	append_lists_json(stream, info, out);
	if (info->kind == TS_OBJECT_MEMORY)
		ts_text_printf(out, "\"bytes\":%" PRIu64 ",\"origin\":%" PRIu64 ",", info->bytes,
			       info->origin);
	ts_replay_describe_image_json(info->image, out);
	ts_replay_describe_space_json(info, out);
	if (info->from)
		ts_replay_append_member(out, "from", info->from);
	if (info->unreplayable)
		ts_replay_append_member(out, "unreplayable", info->unreplayable);
}

/* ---- checks ---- */

void ts_replay_describe_check(const struct ts_replay_stream *stream,
			      const struct ts_replay_check *check, struct ts_text *out)
{
	ts_text_append_str(out, "check ");
	if (check->range.memory == TS_REPLAY_NONE)
		ts_text_append_str(out, "what it read");
	else
		ts_text_printf(out, "memory %" PRIu64, stream->objects[check->range.memory].number);
	if (check->range.offset)
		ts_text_printf(out, "+%" PRIu64, check->range.offset);
	if (check->has_pages) {
		ts_text_printf(out, ": %s%s (%s)", TS_COUNTED(check->page_count, "page"),
			       check->is_change ? " changed" : "", check->why);
		return;
	}
	if (check->range.bytes)
		ts_text_printf(out, " [%" PRIu64 " bytes]", check->range.bytes);
	ts_text_printf(out, ": %016" PRIx64 " (%s)", check->hash, check->why);
}

void ts_replay_describe_check_json(const struct ts_replay_stream *stream,
				   const struct ts_replay_check *check, struct ts_text *out)
{
	if (check->range.memory != TS_REPLAY_NONE)
		ts_text_printf(out, "\"memory\":%" PRIu64 ",",
			       stream->objects[check->range.memory].number);
	if (check->has_pages) {
		ts_text_printf(out, "\"pages\":%" PRIu64 ",\"changed\":%s,\"why\":\"%s\",",
			       check->page_count, check->is_change ? "true" : "false", check->why);
		return;
	}
	ts_text_printf(out,
		       "\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"hash\":\"%016" PRIx64
		       "\",\"why\":\"%s\",",
		       check->range.offset, check->range.bytes, check->hash, check->why);
}
