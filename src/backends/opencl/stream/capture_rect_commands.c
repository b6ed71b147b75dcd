/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that copy rectangles: the host's side, row and details (docs/replay.md, 2.3). */
#include "backends/opencl/stream/capture_internal.h"

/* ---- the host's side: frozen->rect ---- */

void stream_set_destination_rect(struct stream_frozen *frozen, const void *host)
{
	uint64_t offset, bytes;

	stream_rect_extent(&frozen->rect, &offset, &bytes);
	stream_set_destination(frozen, (const char *)host + offset, bytes);
	frozen->destination.base = host;
	frozen->destination.rect = &frozen->rect;
}

void stream_set_data_rect(struct stream_frozen *frozen, const void *host)
{
	uint64_t offset, bytes;

	stream_rect_extent(&frozen->rect, &offset, &bytes);
	stream_set_data(frozen, (const char *)host + offset, bytes);
	frozen->data =
		(struct stream_foreign){ host, stream_rect_bytes(&frozen->rect), &frozen->rect };
}

/* ---- commands ---- */

static void describe_side(struct stream_text *text, const char *key, const struct stream_rect *rect)
{
	stream_text_open(text, key, '{');
	stream_text_sizes(text, "origin", rect->origin, 3);
	stream_text_uint(text, "row", rect->row);
	stream_text_uint(text, "slice", rect->slice);
	stream_text_close(text, '{');
}

void stream_text_rect(struct stream_text *text, const struct stream_rect *to,
		      const struct stream_rect *from)
{
	static const size_t zero[3];
	const struct stream_rect *either = to ? to : from;
	struct stream_rect packed;

	if (!either)
		return;
	packed = stream_rect_make(either->region, zero, 0, 0);
	stream_text_open(text, "rect", '{');
	stream_text_sizes(text, "region", packed.region, 3);
	describe_side(text, "to", to ? to : &packed);
	describe_side(text, "from", from ? from : &packed);
	stream_text_close(text, '{');
}

void stream_describe_rect(struct stream_frozen *frozen, const struct stream_rect *to,
			  const struct stream_rect *from)
{
	const struct stream_rect *either = to ? to : from;

	stream_text_rect(&frozen->text, to, from);
	if (either)
		frozen->row.bytes = (int64_t)stream_rect_bytes(either);
}

/* The range reaches from the first byte to the last; the row has the start of the view. */
static void use_rect(struct stream_frozen *frozen, struct ocl_stream *root, uint64_t origin,
		     const struct stream_rect *rect, bool writes)
{
	uint64_t offset, bytes;

	stream_rect_extent(rect, &offset, &bytes);
	stream_use(frozen, root, origin + offset, bytes, writes);
	*(writes ? &frozen->row.object : &frozen->row.other) = root->number;
	*(writes ? &frozen->row.offset : &frozen->row.other_offset) = (int64_t)origin;
}

/*
 * The two sides. False: the driver will refuse it, unless it does not notice that its offsets
 * overflow.
 */
static bool make_sides(struct stream_frozen *frozen, const struct ocl_rect *given,
		       struct stream_rect *ret_buffer, struct stream_rect *ret_host)
{
	const size_t *region = given->region;

	if (!region || !given->buffer_origin || !given->host_origin || !region[0] || !region[1] ||
	    !region[2]) {
		stream_unreplayable(frozen, "copies of invalid rectangles",
				    "its region is empty, or it has none");
		return false;
	}
	*ret_buffer = stream_rect_make(region, given->buffer_origin, given->buffer_row,
				       given->buffer_slice);
	*ret_host =
		stream_rect_make(region, given->host_origin, given->host_row, given->host_slice);
	if (stream_rect_fits(ret_buffer) && stream_rect_fits(ret_host))
		return true;
	stream_unreplayable(frozen, "copies of invalid rectangles",
			    "its region or pitch is too large");
	return false;
}

void stream_read_rect(struct stream_frozen *frozen, const struct ocl_command *command)
{
	uint64_t origin;
	struct ocl_stream *root = stream_find_root(frozen, command->memory, &origin);
	struct stream_rect from;

	if (!root || !make_sides(frozen, &command->rect, &from, &frozen->rect))
		return;
	use_rect(frozen, root, origin, &from, false);
	stream_describe_rect(frozen, NULL, &from);
	stream_set_destination_rect(frozen, command->host);
}

void stream_write_rect(struct stream_frozen *frozen, const struct ocl_command *command)
{
	uint64_t origin;
	struct ocl_stream *root = stream_find_root(frozen, command->memory, &origin);
	struct stream_rect to;

	if (!root || !make_sides(frozen, &command->rect, &to, &frozen->rect))
		return;
	use_rect(frozen, root, origin, &to, true);
	stream_describe_rect(frozen, &to, NULL);
	stream_set_data_rect(frozen, command->host_source);
}

void stream_copy_rect(struct stream_frozen *frozen, const struct ocl_command *command)
{
	uint64_t origin, source_origin;
	struct ocl_stream *root = stream_find_root(frozen, command->memory, &origin);
	struct ocl_stream *source = stream_find_root(frozen, command->source, &source_origin);
	struct stream_rect to, from;

	if (!root || !source || !make_sides(frozen, &command->rect, &to, &from))
		return;
	use_rect(frozen, root, origin, &to, true);
	use_rect(frozen, source, source_origin, &from, false);
	stream_describe_rect(frozen, &to, &from);
}
