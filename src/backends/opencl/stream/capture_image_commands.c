/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands of images (docs/replay.md, 2.4): those of rectangles, in bytes. Each uses all of its
 * image.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/stream/capture_internal.h"

/* ---- the image ---- */

static bool is_inside(const struct stream_image *image, const size_t *origin, const size_t *region)
{
	for (int i = 0; i < 3; i++) {
		if (!region[i] || origin[i] > image->size[i] ||
		    region[i] > image->size[i] - origin[i])
			return false;
	}
	return true;
}

/* The image of a command, and its region there; NULL: none, and the command cannot be replayed. */
static struct ocl_stream *find_image(struct stream_frozen *frozen, cl_mem memory,
				     const size_t *origin, const size_t *region,
				     struct stream_rect *ret_rect)
{
	const struct ocl_object *object = memory ? ocl_find(OCL_MEMORY, memory) : NULL;
	struct ocl_stream *stream = stream_object_of(object);

	if (!stream || stream->unreplayable || !stream->as.memory.image) {
		stream_unreplayable(
			frozen, "commands of images that cannot be replayed", "its image is %s",
			stream && stream->unreplayable ? stream->unreplayable : "unknown");
		return NULL;
	}
	/* The driver will say that this is an error. */
	if (!origin || !region || !is_inside(stream->as.memory.image, origin, region)) {
		stream_unreplayable(frozen, "commands",
				    "its region is empty, or not inside the image");
		return NULL;
	}
	*ret_rect = stream_image_rect(stream->as.memory.image, origin, region);
	return stream;
}

static struct ocl_stream *root_of(struct ocl_stream *stream)
{
	return stream->as.memory.is_view ? stream->parent : stream;
}

/*
 * It writes to the image, or reads from it: all of it, as far as others can know. Comes first: a
 * replay without the command must know what it writes.
 */
static void use_image(struct stream_frozen *frozen, struct ocl_stream *stream, bool writes)
{
	*(writes ? &frozen->row.object : &frozen->row.other) = stream->number;
	*(writes ? &frozen->row.offset : &frozen->row.other_offset) = 0;
	stream_use(frozen, root_of(stream), stream->as.memory.origin, stream->as.memory.bytes,
		   writes);
}

/* The same for a buffer on the other side, whose bytes are packed. */
static void use_buffer(struct stream_frozen *frozen, struct ocl_stream *root, uint64_t offset,
		       const struct stream_rect *rect, bool writes)
{
	*(writes ? &frozen->row.object : &frozen->row.other) = root->number;
	*(writes ? &frozen->row.offset : &frozen->row.other_offset) = (int64_t)offset;
	stream_use(frozen, root, offset, stream_rect_bytes(rect), writes);
}

/* False: its pitches are too large; the driver will refuse it, unless it does not notice. */
static bool set_host_rect(struct stream_frozen *frozen, const struct stream_image *image,
			  const struct ocl_rect *given)
{
	frozen->rect =
		stream_image_host_rect(image, given->region, given->host_row, given->host_slice);
	if (stream_rect_fits(&frozen->rect))
		return true;
	stream_unreplayable(frozen, "copies of invalid rectangles", "its pitch is too large");
	return false;
}

/* ---- copies ---- */

void stream_read_image(struct stream_frozen *frozen, const struct ocl_command *command)
{
	const struct ocl_rect *given = &command->rect;
	struct stream_rect from;
	struct ocl_stream *stream =
		find_image(frozen, command->memory, given->buffer_origin, given->region, &from);

	if (!stream)
		return;
	use_image(frozen, stream, false);
	if (!set_host_rect(frozen, stream->as.memory.image, given))
		return;
	stream_describe_rect(frozen, NULL, &from);
	stream_set_destination_rect(frozen, command->host);
}

void stream_write_image(struct stream_frozen *frozen, const struct ocl_command *command)
{
	const struct ocl_rect *given = &command->rect;
	struct stream_rect to;
	struct ocl_stream *stream =
		find_image(frozen, command->memory, given->buffer_origin, given->region, &to);

	if (!stream)
		return;
	use_image(frozen, stream, true);
	if (!set_host_rect(frozen, stream->as.memory.image, given))
		return;
	stream_describe_rect(frozen, &to, NULL);
	stream_set_data_rect(frozen, command->host_source);
}

void stream_copy_image(struct stream_frozen *frozen, const struct ocl_command *command)
{
	const struct ocl_rect *given = &command->rect;
	struct stream_rect to, from;
	struct ocl_stream *stream =
		find_image(frozen, command->memory, given->buffer_origin, given->region, &to);
	struct ocl_stream *source =
		find_image(frozen, command->source, given->host_origin, given->region, &from);

	if (!stream || !source)
		return;
	use_image(frozen, stream, true);
	use_image(frozen, source, false);
	stream_describe_rect(frozen, &to, &from);
}

void stream_copy_image_to_buffer(struct stream_frozen *frozen, const struct ocl_command *command)
{
	const struct ocl_rect *given = &command->rect;
	uint64_t origin;
	struct stream_rect from;
	struct ocl_stream *root = stream_find_root(frozen, command->memory, &origin);
	struct ocl_stream *source =
		find_image(frozen, command->source, given->host_origin, given->region, &from);

	if (!root || !source)
		return;
	use_image(frozen, source, false);
	use_buffer(frozen, root, origin + command->offset, &from, true);
	stream_describe_rect(frozen, NULL, &from);
}

void stream_copy_buffer_to_image(struct stream_frozen *frozen, const struct ocl_command *command)
{
	const struct ocl_rect *given = &command->rect;
	uint64_t origin;
	struct stream_rect to;
	struct ocl_stream *root = stream_find_root(frozen, command->source, &origin);
	struct ocl_stream *stream =
		find_image(frozen, command->memory, given->buffer_origin, given->region, &to);

	if (!root || !stream)
		return;
	use_image(frozen, stream, true);
	use_buffer(frozen, root, origin + command->source_offset, &to, false);
	stream_describe_rect(frozen, &to, NULL);
}

/* The colour has four values of 4 bytes; that of a depth image has one. */
void stream_fill_image(struct stream_frozen *frozen, const struct ocl_command *command)
{
	const struct ocl_rect *given = &command->rect;
	struct stream_rect to;
	struct ocl_stream *stream =
		find_image(frozen, command->memory, given->buffer_origin, given->region, &to);
	bool is_depth;

	if (!stream || !command->host_source)
		return;
	use_image(frozen, stream, true);
	frozen->block = calloc(1, STREAM_COLOR_BYTES);
	if (!frozen->block) {
		stream_unreplayable(frozen, "commands", "no memory for its colour");
		return;
	}
	is_depth = stream->as.memory.image->format.image_channel_order == CL_DEPTH;
	memcpy(frozen->block, command->host_source, is_depth ? 4 : STREAM_COLOR_BYTES);
	frozen->block_bytes = frozen->block_capacity = STREAM_COLOR_BYTES;
	stream_describe_rect(frozen, &to, NULL);
}

/* ---- maps ---- */

void stream_map_image(struct stream_frozen *frozen, const struct ocl_command *command)
{
	const struct ocl_rect *given = &command->rect;
	struct stream_rect from;
	struct ocl_stream *stream =
		find_image(frozen, command->memory, given->buffer_origin, given->region, &from);

	if (!stream || !stream_map_region(frozen, command, root_of(stream),
					  stream->as.memory.origin, stream->as.memory.bytes))
		return;
	use_image(frozen, stream, false);
	stream_describe_rect(frozen, NULL, &from);
}

void stream_image_mapped(struct stream_area *area, const struct ocl_command *command)
{
	const struct ocl_rect *given = &command->rect;
	const struct ocl_object *object = ocl_find(OCL_MEMORY, command->memory);
	const struct ocl_stream *stream = stream_object_of(object);
	const struct stream_image *image = stream ? stream->as.memory.image : NULL;

	if (!image)
		return;
	area->image = stream->number;
	area->image_bytes = stream->as.memory.bytes;
	area->offset = stream->as.memory.origin;
	area->rect = stream_image_rect(image, given->buffer_origin, given->region);
	area->host_rect =
		stream_image_host_rect(image, given->region, given->host_row, given->host_slice);
	area->bytes = stream_rect_bytes(&area->rect);
}
