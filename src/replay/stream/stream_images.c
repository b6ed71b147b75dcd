/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images (docs/replay.md, 2.4): their sizes, the rectangles of commands that use them, samplers.
 * What is not consistent rejects the trace, or makes the image unreplayable.
 */
#include <inttypes.h>
#include <string.h>

#include "replay/stream/stream_internal.h"

#define MOST_ELEMENT 16u /* bytes of a pixel */

struct type {
	const char *name;
	int dimensions;
};
static const struct type types[] = {
#define TS_IMAGE_TYPE(name, constant, dimensions) { name, dimensions },
#include "live/local/image_formats.def"
};
static const char *const orders[] = {
#define TS_IMAGE_ORDER(name, constant, channels) name,
#include "live/local/image_formats.def"
};
static const char *const data_types[] = {
#define TS_IMAGE_DATA(name, constant, form, bytes) name,
#include "live/local/image_formats.def"
};
static const char *const addressings[] = {
#define TS_SAMPLER_ADDRESSING(name, constant) name,
#include "live/local/image_formats.def"
};
static const char *const filters[] = {
#define TS_SAMPLER_FILTER(name, constant) name,
#include "live/local/image_formats.def"
};

/* The known word; NULL: none. */
static const char *find_word(const char *const *words, size_t count, const char *text)
{
	for (size_t i = 0; text && i < count; i++)
		if (!strcmp(words[i], text))
			return words[i];
	return NULL;
}

static const struct type *find_type(const char *text)
{
	for (size_t i = 0; text && i < TS_ARRAY_SIZE(types); i++)
		if (!strcmp(types[i].name, text))
			return &types[i];
	return NULL;
}

/* ---- objects ---- */

/* Its size in bytes; false: too large, or not what its type allows. */
static bool measure(const struct type *type, struct ts_replay_image *image, uint64_t *ret_bytes)
{
	uint64_t packed;

	for (int i = 0; i < 3; i++)
		if (image->size[i] == 0 || (i >= type->dimensions && image->size[i] != 1))
			return false;
	if (image->element == 0 || image->element > MOST_ELEMENT ||
	    __builtin_mul_overflow(image->size[0], image->element, &packed))
		return false;
	if (!image->row)
		image->row = packed;
	return image->row >= packed && image->row % image->element == 0 &&
	       !__builtin_mul_overflow(image->row, image->size[1], &image->slice) &&
	       !__builtin_mul_overflow(image->slice, image->size[2], ret_bytes) &&
	       *ret_bytes <= INT64_MAX;
}

int ts_replay_load_image(struct ts_replay_load *load, struct ts_replay_object_info *memory,
			 const struct ts_replay_raw_image *raw)
{
	struct ts_replay_image *image =
		ts_arena_alloc_zeroed(&load->stream->arena, 1, sizeof(*image));
	const struct type *type = find_type(raw->type);
	uint64_t bytes;

	if (!image)
		return TS_ENOMEM;
	image->type = type ? type->name : NULL;
	image->order = find_word(orders, TS_ARRAY_SIZE(orders), raw->order);
	image->data = find_word(data_types, TS_ARRAY_SIZE(data_types), raw->data);
	memcpy(image->size, raw->size, sizeof(image->size));
	image->element = raw->element;
	image->row = raw->row;
	/* An image that is rejected has no sizes that anything could rely on. */
	if (memory->unreplayable)
		return TS_OK;
	if (!type || !image->order || !image->data)
		ts_replay_spoil_object(load, memory, "an image of unknown type or format: %s %s %s",
				       raw->type ? raw->type : "?", raw->order ? raw->order : "?",
				       raw->data ? raw->data : "?");
	else if (memory->flags & TS_REPLAY_HAS_SVM)
		ts_replay_spoil_object(load, memory, "an image in shared virtual memory");
	else if (!measure(type, image, &bytes))
		ts_replay_spoil_object(load, memory, "an image with invalid sizes");
	else if (bytes != memory->bytes)
		ts_replay_spoil_object(load, memory,
				       "an image of %" PRIu64 " bytes, its memory has %" PRIu64,
				       bytes, memory->bytes);
	else
		memory->image = image;
	return TS_OK;
}

void ts_replay_check_image(struct ts_replay_load *load, struct ts_replay_object_info *memory)
{
	const struct ts_replay_image *image = memory->image;
	const struct ts_replay_object_info *root =
		memory->parent == TS_REPLAY_NONE ? NULL : &load->stream->objects[memory->parent];
	bool is_view = root && root->kind == TS_OBJECT_MEMORY;

	if (is_view && root->image &&
	    (!image || root->bytes != memory->bytes || strcmp(root->image->type, image->type) != 0))
		ts_replay_spoil_object(load, memory, "a view of a part of an image");
	if (!image || memory->unreplayable)
		return;
	if (is_view && strcmp(image->type, "1d_buffer") != 0 && strcmp(image->type, "2d") != 0)
		ts_replay_spoil_object(load, memory, "a view that is a %s image", image->type);
	if (!is_view &&
	    (!strcmp(image->type, "1d_buffer") || image->row != image->size[0] * image->element))
		ts_replay_spoil_object(load, memory, "an image in a buffer without the buffer");
}

/* ---- rectangles ---- */

static bool is_image(const struct ts_replay_load *load, uint32_t object)
{
	return object != TS_REPLAY_NONE && load->stream->objects[object].image;
}

/* Is the rectangle made of pixels inside the image? */
static bool is_inside(const struct ts_replay_image *image, const struct ts_replay_rect_side *side,
		      const uint64_t region[3])
{
	uint64_t x = side->origin[0] / image->element, width = region[0] / image->element;

	return side->origin[0] % image->element == 0 && region[0] % image->element == 0 &&
	       side->row == image->row && side->slice == image->slice && x <= image->size[0] &&
	       width <= image->size[0] - x && side->origin[1] <= image->size[1] &&
	       region[1] <= image->size[1] - side->origin[1] && side->origin[2] <= image->size[2] &&
	       region[2] <= image->size[2] - side->origin[2];
}

static bool is_packed(const struct ts_replay_rect_side *side, const uint64_t region[3])
{
	return side->row == region[0] && side->slice == region[0] * region[1] && !side->origin[0] &&
	       !side->origin[1] && !side->origin[2];
}

static bool is_side_valid(const struct ts_replay_load *load, uint32_t object, uint64_t offset,
			  const struct ts_replay_rect_side *side, const uint64_t region[3])
{
	if (!is_image(load, object))
		return is_packed(side, region);
	return offset == 0 && is_inside(load->stream->objects[object].image, side, region);
}

static bool have_same_element(const struct ts_replay_load *load, uint32_t a, uint32_t b)
{
	return !is_image(load, a) || !is_image(load, b) ||
	       load->stream->objects[a].image->element == load->stream->objects[b].image->element;
}

/* Does the region have all bytes of the image? */
static bool is_all(const struct ts_replay_image *image, const uint64_t region[3])
{
	return region[0] == image->row && region[1] == image->size[1] &&
	       region[2] == image->size[2];
}

int ts_replay_load_image_rect(struct ts_replay_load *load, uint32_t index, struct ts_error *err)
{
	struct ts_replay_command_info *command = &load->stream->commands[index];
	uint32_t object = command->object, other = command->other;

	if (!is_image(load, object) && !is_image(load, other))
		return TS_OK;
	if (!command->is_rect && !command->unreplayable)
		return ts_replay_command_error(load->stream, index, err,
					       "it has no region of its image");
	if (command->unreplayable)
		return TS_OK;
	if (!is_side_valid(load, object, command->offset, &command->to, command->region) ||
	    !is_side_valid(load, other, command->other_offset, &command->from, command->region) ||
	    !have_same_element(load, object, other))
		return ts_replay_command_error(load->stream, index, err,
					       "its region is not inside its image");
	if (is_image(load, object)) {
		command->image = object;
		command->is_whole = is_all(load->stream->objects[object].image, command->region);
	} else {
		command->is_whole = true; /* a packed side has no gaps */
	}
	if (is_image(load, other))
		command->other_image = other;
	return TS_OK;
}

/* ---- samplers ---- */

int ts_replay_load_sampler(struct ts_replay_load *load, uint32_t index, uint32_t number,
			   const struct ts_replay_raw_arg *raw, struct ts_replay_arg *arg)
{
	arg->kind = TS_REPLAY_ARG_SAMPLER;
	arg->is_normalized = raw->is_normalized;
	arg->addressing = find_word(addressings, TS_ARRAY_SIZE(addressings), raw->addressing);
	arg->filter = find_word(filters, TS_ARRAY_SIZE(filters), raw->filter);
	if (arg->addressing && arg->filter)
		return TS_OK;
	ts_replay_spoil(load, index, "argument %" PRIu32 " is an unknown sampler", number);
	arg->addressing = arg->filter = "unknown";
	return TS_OK;
}
