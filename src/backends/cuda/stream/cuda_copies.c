/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and fills inside a window (docs/cuda-replay.md, 4.2). Bytes that come from the host,
 * pinned or not, are stored as they are at the call, unless a kernel may be writing them; the
 * destination may be pinned host memory. Calls that a stream captures pass through: the graph has
 * them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/stream/cuda_capture.h"
#include "base/local/stream_text.h"

enum place { ON_HOST, ON_DEVICE, ANYWHERE, IN_ARRAY };

struct side {
	uint64_t address; /* of the first byte */
	enum place place;
	uint64_t row, slice; /* bytes from one to the next */
};

struct copy {
	struct side to, from;
	uint64_t width, height, depth; /* width in bytes */
	bool is_rect;
};

#define COPY_IS_BLOCKING 1u /* the call returns when the copy is done */

static uint64_t extent(const struct copy *copy, const struct side *side)
{
	if (!copy->width || !copy->height || !copy->depth)
		return 0;
	return (copy->depth - 1) * side->slice + (copy->height - 1) * side->row + copy->width;
}

static bool is_device_memory(uint64_t address)
{
	unsigned int type = 0;

	return cu.PointerGetAttribute(&type, CUDA_POINTER_MEMORY_TYPE, address) == CUDA_SUCCESS_ &&
	       type == CUDA_MEMORY_DEVICE;
}

static void write_rect(struct stream_text *text, const struct copy *copy, const struct side *to,
		       const struct side *from)
{
	const size_t region[3] = { copy->width, copy->height, copy->depth };
	static const size_t origin[3];
	const struct {
		const char *key;
		const struct side *side;
	} sides[] = { { "to", to }, { "from", from } };

	stream_text_open(text, "rect", '{');
	stream_text_sizes(text, "region", region, 3);
	for (size_t i = 0; i < 2; i++) {
		if (!sides[i].side)
			continue;
		stream_text_open(text, sides[i].key, '{');
		stream_text_sizes(text, "origin", origin, 3);
		stream_text_uint(text, "row", sides[i].side->row);
		/* Of one slice the driver ignores it: it may be anything. */
		stream_text_uint(text, "slice", copy->depth > 1 ? sides[i].side->slice : 0);
		stream_text_close(text, '}');
	}
	stream_text_close(text, '}');
}

static uint64_t bytes_of(const struct copy *copy)
{
	return copy->width * copy->height * copy->depth;
}

static const unsigned char *row_of(const struct copy *copy, uint64_t y, uint64_t z)
{
	uint64_t at = copy->from.address + z * copy->from.slice + y * copy->from.row;

	return (const unsigned char *)(uintptr_t)at;
}

/* The bytes of the host's side without gaps; NULL: the window has failed. Caller frees. */
static unsigned char *pack_bytes(const struct copy *copy)
{
	uint64_t bytes = bytes_of(copy);
	unsigned char *packed = malloc(bytes);

	if (!packed)
		capture_fail("no memory to store %llu bytes of a copy", (unsigned long long)bytes);
	for (uint64_t z = 0; packed && z < copy->depth; z++) {
		for (uint64_t y = 0; y < copy->height; y++)
			memcpy(packed + (z * copy->height + y) * copy->width, row_of(copy, y, z),
			       copy->width);
	}
	return packed;
}

static uint64_t store_bytes(const struct copy *copy)
{
	const unsigned char *from = row_of(copy, 0, 0);
	unsigned char *packed = copy->is_rect ? pack_bytes(copy) : NULL;
	uint64_t bytes = bytes_of(copy), blob;

	if (copy->is_rect && !packed)
		return 0;
	if (packed)
		from = packed;
	host_look_for_pointers(from, bytes);
	blob = capture_blob(from, bytes);
	free(packed);
	return blob;
}

/* Why a copy is not captured. It matters only if the driver accepts the copy. */
#define WHY_BYTES 128
struct reason {
	char text[WHY_BYTES];
};

/* The object that a side names; 0: the host's memory, which needs none. False: not captured. */
static bool locate(const char *call, const struct copy *copy, const struct side *side,
		   uint64_t *ret_object, int64_t *ret_offset, struct reason *why)
{
	uint64_t bytes = extent(copy, side);

	*ret_object = 0;
	*ret_offset = TS_UNKNOWN;
	if (capture_locate(side->address, bytes, ret_object, ret_offset))
		return true;
	if (side->place == ON_HOST || (side->place == ANYWHERE && !is_device_memory(side->address)))
		return true;
	snprintf(why->text, sizeof(why->text), "memory that is not captured: %#llx (%s)",
		 (unsigned long long)side->address, call);
	return false;
}

/* Before the driver's call, which may change what a row needs. False: see `why`. */
static bool make_row(struct cuda_call *call, const struct copy *copy, unsigned int flags,
		     uintptr_t stream, struct ts_replay_command *row, struct stream_text *text,
		     struct reason *why)
{
	bool from_host = copy->from.place == ON_HOST;

	*row = capture_row(TS_COMMAND_COPY);
	if (copy->to.place == IN_ARRAY || copy->from.place == IN_ARRAY) {
		snprintf(why->text, sizeof(why->text), "array (%s)", call->name);
		return false;
	}
	if (!locate(call->name, copy, &copy->to, &row->object, &row->offset, why))
		return false;
	/* The device has addresses of pinned memory, too. */
	if (!from_host)
		from_host = host_contains(copy->from.address, extent(copy, &copy->from)) ||
			    (copy->from.place == ANYWHERE && !is_device_memory(copy->from.address));
	if (from_host && row->object && host_is_visible(copy->from.address)) {
		host_emit_changes();
		from_host = false;
	}
	if (!from_host &&
	    !locate(call->name, copy, &copy->from, &row->other, &row->other_offset, why))
		return false;
	row->queue = capture_stream_number(call, stream);
	row->bytes = (int64_t)bytes_of(copy);
	if (from_host && row->object)
		row->blob = store_bytes(copy);
	stream_text_begin(text);
	stream_text_string(text, "call", call->name);
	if (flags & COPY_IS_BLOCKING)
		stream_text_true(text, "blocking");
	if (copy->is_rect)
		write_rect(text, copy, row->object ? &copy->to : NULL,
			   from_host ? NULL : &copy->from);
	row->details = stream_text_end(text);
	return true;
}

/*
 * A copy between two places on the host that is not pinned concerns no memory that a replay has:
 * nothing is appended. Returns what is to be checked when the driver was called; 0: nothing.
 */
static uint64_t append_unchecked(const struct ts_replay_command *row)
{
	uint64_t sequence = row->object || row->other ? capture_command(row) : 0;

	return row->object ? sequence : 0;
}

static void append(const struct ts_replay_command *row)
{
	uint64_t sequence = append_unchecked(row);

	if (sequence)
		capture_check_each(sequence);
}

static void note_copy_to_host(const struct copy *copy, struct capture_stream *stream)
{
	uint64_t bytes = extent(copy, &copy->to);

	if (stream && host_contains(copy->to.address, bytes))
		host_copy_pending(copy->to.address, bytes, stream);
}

/* capture_lock is held by these two, and released by the first where it says so. */
static int run_one(struct cuda_call *call, uintptr_t *args, const struct copy *copy,
		   uintptr_t stream, unsigned int flags, bool *ret_is_unlocked)
{
	struct ts_replay_command row;
	struct stream_text text;
	struct reason why;
	bool has_bytes = extent(copy, &copy->to) != 0;
	bool is_known = has_bytes && make_row(call, copy, flags, stream, &row, &text, &why);
	int result;

	/*
	 * A copy to memory of the program changes nothing that a replay has: others may submit work
	 * while it is waited for.
	 */
	*ret_is_unlocked = is_known && !row.object;
	if (*ret_is_unlocked) {
		append(&row);
		capture_unlock();
		return cuda_invoke(call, args);
	}
	result = cuda_invoke(call, args);
	if (is_known && result == CUDA_SUCCESS_) {
		append(&row);
		note_copy_to_host(copy, capture_stream_of(call, stream));
	} else if (has_bytes && !is_known && result == CUDA_SUCCESS_) {
		capture_fail("%s", why.text);
	}
	return result;
}

/* Its copies have no order among each other, and none overlap: they are checked together. */
static int run_batch(struct cuda_call *call, uintptr_t *args, const struct copy *copies,
		     size_t count, uintptr_t stream)
{
	uint64_t last = 0;
	int result;

	for (size_t i = 0; i < count; i++) {
		struct ts_replay_command row;
		struct stream_text text;
		struct reason why;
		uint64_t sequence;

		if (!extent(&copies[i], &copies[i].to))
			continue;
		if (!make_row(call, &copies[i], 0, stream, &row, &text, &why)) {
			capture_fail("%s", why.text);
			break;
		}
		sequence = append_unchecked(&row);
		last = sequence ? sequence : last;
	}
	result = cuda_invoke(call, args);
	if (result != CUDA_SUCCESS_)
		capture_fail("%s returned %d", call->name, result);
	for (size_t i = 0; i < count && result == CUDA_SUCCESS_; i++)
		note_copy_to_host(&copies[i], capture_stream_of(call, stream));
	if (last && result == CUDA_SUCCESS_)
		capture_check_each(last);
	return result;
}

static int run(struct cuda_call *call, uintptr_t *args, const struct copy *copies, size_t count,
	       uintptr_t stream, unsigned int flags)
{
	bool is_unlocked = false;
	int result;

	if (!capture_is_open() || capture_is_captured(call, stream))
		return cuda_invoke(call, args);
	for (size_t i = 0; i < count; i++) {
		/* Bytes that a pending copy is about to write are not known before it has. */
		if (copies[i].from.place != IN_ARRAY)
			host_wait_for_copies(copies[i].from.address,
					     extent(&copies[i], &copies[i].from));
	}
	capture_lock();
	if (count == 1)
		result = run_one(call, args, copies, stream, flags, &is_unlocked);
	else
		result = run_batch(call, args, copies, count, stream);
	if (!is_unlocked)
		capture_unlock();
	return result;
}

static int flat(struct cuda_call *call, uintptr_t *args, enum place to, enum place from,
		unsigned int flags)
{
	bool has_stream = call->stream >= 0;
	const struct copy copy = {
		.to = { .address = args[0], .place = to },
		.from = { .address = args[1], .place = from },
		.width = args[2],
		.height = 1,
		.depth = 1,
	};

	return run(call, args, &copy, 1, has_stream ? args[3] : 0, has_stream ? 0 : flags);
}

static int to_device(struct cuda_call *call, uintptr_t *args)
{
	return flat(call, args, ON_DEVICE, ON_HOST, COPY_IS_BLOCKING);
}

static int to_host(struct cuda_call *call, uintptr_t *args)
{
	return flat(call, args, ON_HOST, ON_DEVICE, COPY_IS_BLOCKING);
}

static int inside_device(struct cuda_call *call, uintptr_t *args)
{
	return flat(call, args, ON_DEVICE, ON_DEVICE, 0);
}

static int anywhere(struct cuda_call *call, uintptr_t *args)
{
	return flat(call, args, ANYWHERE, ANYWHERE, COPY_IS_BLOCKING);
}

/* Its arguments: to, context, from, context, bytes, stream. */
static int peer(struct cuda_call *call, uintptr_t *args)
{
	const struct copy copy = {
		.to = { .address = args[0], .place = ON_DEVICE },
		.from = { .address = args[2], .place = ON_DEVICE },
		.width = args[4],
		.height = 1,
		.depth = 1,
	};

	return run(call, args, &copy, 1, call->stream >= 0 ? args[5] : 0, 0);
}

/* ---- rectangles ---- */

static struct side rect_side(uint32_t type, const void *host, uint64_t device, size_t row,
			     size_t height, const size_t origin[3])
{
	struct side side = { .row = row, .slice = (uint64_t)row * height };

	switch (type) {
	case CUDA_MEMORY_HOST:
		side.place = ON_HOST;
		side.address = (uint64_t)(uintptr_t)host;
		break;
	case CUDA_MEMORY_DEVICE:
		side.place = ON_DEVICE;
		side.address = device;
		break;
	case CUDA_MEMORY_UNIFIED:
		side.place = ANYWHERE;
		side.address = device;
		break;
	default:
		side.place = IN_ARRAY;
		return side;
	}
	side.address += origin[0] + origin[1] * side.row + origin[2] * side.slice;
	return side;
}

static unsigned int rect_flags(const struct cuda_call *call, const struct copy *copy)
{
	bool is_on_host = copy->to.place != ON_DEVICE || copy->from.place != ON_DEVICE;

	return call->stream < 0 && is_on_host ? COPY_IS_BLOCKING : 0;
}

static int copy_2d(struct cuda_call *call, uintptr_t *args)
{
	const struct cuda_copy_2d *given = (const struct cuda_copy_2d *)args[0];
	struct copy copy;

	if (!given)
		return cuda_invoke(call, args);
	copy = (struct copy){
		.to = rect_side(given->to_type, given->to_host, given->to_device, given->to_pitch,
				given->height, (const size_t[]){ given->to_x, given->to_y, 0 }),
		.from = rect_side(given->from_type, given->from_host, given->from_device,
				  given->from_pitch, given->height,
				  (const size_t[]){ given->from_x, given->from_y, 0 }),
		.width = given->width,
		.height = given->height,
		.depth = 1,
		.is_rect = true,
	};
	return run(call, args, &copy, 1, call->stream >= 0 ? args[1] : 0, rect_flags(call, &copy));
}

static struct copy copy_3d_of(const struct cuda_copy_3d *given)
{
	struct copy copy = {
		.to = rect_side(given->to_type, given->to_host, given->to_device, given->to_pitch,
				given->to_height,
				(const size_t[]){ given->to_x, given->to_y, given->to_z }),
		.from = rect_side(given->from_type, given->from_host, given->from_device,
				  given->from_pitch, given->from_height,
				  (const size_t[]){ given->from_x, given->from_y, given->from_z }),
		.width = given->width,
		.height = given->height,
		.depth = given->depth,
		.is_rect = given->height > 1 || given->depth > 1,
	};

	return copy;
}

/* Also 3DPeer, whose contexts are where the reserved members are. */
static int copy_3d(struct cuda_call *call, uintptr_t *args)
{
	const struct cuda_copy_3d *given = (const struct cuda_copy_3d *)args[0];
	struct copy copy;

	if (!given)
		return cuda_invoke(call, args);
	copy = copy_3d_of(given);
	return run(call, args, &copy, 1, call->stream >= 0 ? args[1] : 0, rect_flags(call, &copy));
}

bool capture_copy_node(const struct cuda_copy_3d *given, struct ts_replay_command *row,
		       struct stream_text *text, unsigned char **ret_bytes)
{
	static const char node[] = "graph node";
	struct reason why;
	struct copy copy = copy_3d_of(given);

	*ret_bytes = NULL;
	if (copy.to.place == IN_ARRAY || copy.from.place == IN_ARRAY) {
		capture_fail("array (copy of a graph)");
		return false;
	}
	if (!extent(&copy, &copy.to))
		return true;
	if (!locate(node, &copy, &copy.to, &row->object, &row->offset, &why) ||
	    !locate(node, &copy, &copy.from, &row->other, &row->other_offset, &why)) {
		capture_fail("%s", why.text);
		return false;
	}
	/* Between two places of the program a replay has nothing to do. */
	if (!row->object && !row->other)
		return true;
	row->kind = TS_COMMAND_COPY;
	row->bytes = (int64_t)bytes_of(&copy);
	if (row->other) {
		host_look_for_pointers(&copy.from.address, sizeof(copy.from.address));
	} else {
		*ret_bytes = pack_bytes(&copy);
		if (!*ret_bytes)
			return false;
		host_look_for_pointers(*ret_bytes, bytes_of(&copy));
		row->blob = capture_blob(*ret_bytes, bytes_of(&copy));
	}
	if (copy.is_rect)
		write_rect(text, &copy, row->object ? &copy.to : NULL,
			   row->other ? &copy.from : NULL);
	return true;
}

bool capture_copy_node_differs(const struct cuda_copy_3d *given, const unsigned char *bytes)
{
	struct copy copy = copy_3d_of(given);

	for (uint64_t z = 0; z < copy.depth; z++) {
		for (uint64_t y = 0; y < copy.height; y++) {
			if (memcmp(bytes + (z * copy.height + y) * copy.width, row_of(&copy, y, z),
				   copy.width))
				return true;
		}
	}
	return false;
}

bool capture_copy_node_feeds(const struct cuda_copy_3d *given, const struct cuda_copy_3d *next)
{
	struct copy copy = copy_3d_of(given), after = copy_3d_of(next);
	uint64_t bytes = extent(&copy, &copy.to), read = extent(&after, &after.from);

	return copy.to.place != IN_ARRAY && after.from.place != IN_ARRAY && bytes && read &&
	       copy.to.address < after.from.address + read &&
	       after.from.address < copy.to.address + bytes;
}

void capture_copy_node_pending(const struct cuda_copy_3d *given, struct capture_stream *stream)
{
	struct copy copy = copy_3d_of(given);

	note_copy_to_host(&copy, stream);
}

/* Arguments: destinations, sources, sizes, count, ...; the stream is the last. */
static int batch(struct cuda_call *call, uintptr_t *args)
{
	const uint64_t *to = (const uint64_t *)args[0], *from = (const uint64_t *)args[1];
	const size_t *bytes = (const size_t *)args[2];
	uintptr_t stream = args[call->stream];
	size_t count = args[3];
	struct copy *copies;
	int result;

	if (!to || !from || !bytes || !count)
		return cuda_invoke(call, args);
	copies = calloc(count, sizeof(*copies));
	if (!copies) {
		capture_fail("no memory for a batch of copies");
		return cuda_invoke(call, args);
	}
	for (size_t i = 0; i < count; i++)
		copies[i] = (struct copy){
			.to = { .address = to[i], .place = ANYWHERE },
			.from = { .address = from[i], .place = ANYWHERE },
			.width = bytes[i],
			.height = 1,
			.depth = 1,
		};
	result = run(call, args, copies, count, stream, 0);
	free(copies);
	return result;
}

static struct side operand_side(const struct cuda_copy_operand *operand, uint64_t width,
				uint64_t height)
{
	struct side side = { .place = IN_ARRAY };

	if (operand->type != CUDA_OPERAND_POINTER)
		return side;
	side.place = ANYWHERE;
	side.address = operand->address;
	side.row = operand->row ? operand->row : width;
	side.slice = side.row * (operand->height ? operand->height : height);
	return side;
}

/* Arguments: count, copies, ...; the stream is the last. */
static int batch_3d(struct cuda_call *call, uintptr_t *args)
{
	const struct cuda_copy_of_batch *given = (const struct cuda_copy_of_batch *)args[1];
	size_t count = args[0];
	struct copy *copies;
	int result;

	if (!given || !count)
		return cuda_invoke(call, args);
	copies = calloc(count, sizeof(*copies));
	if (!copies) {
		capture_fail("no memory for a batch of copies");
		return cuda_invoke(call, args);
	}
	for (size_t i = 0; i < count; i++)
		copies[i] = (struct copy){
			.to = operand_side(&given[i].to, given[i].width, given[i].height),
			.from = operand_side(&given[i].from, given[i].width, given[i].height),
			.width = given[i].width,
			.height = given[i].height,
			.depth = given[i].depth,
			.is_rect = given[i].height > 1 || given[i].depth > 1,
		};
	result = run(call, args, copies, count, args[call->stream], 0);
	free(copies);
	return result;
}

/* ---- fills ---- */

static int fill(struct cuda_call *call, uintptr_t *args, uint32_t element_bytes, uint64_t pitch,
		uint32_t value, uint64_t width, uint64_t height, uintptr_t stream)
{
	const struct copy shape = {
		.to = { .address = args[0], .place = ON_DEVICE, .row = pitch },
		.width = width * element_bytes,
		.height = height,
		.depth = 1,
		.is_rect = height > 1,
	};
	struct ts_replay_command row;
	struct stream_text text;
	struct reason why;
	bool is_known;
	int result;

	if (!capture_is_open() || !extent(&shape, &shape.to) || capture_is_captured(call, stream))
		return cuda_invoke(call, args);
	capture_lock();
	row = capture_row(TS_COMMAND_FILL);
	is_known = locate(call->name, &shape, &shape.to, &row.object, &row.offset, &why);
	if (is_known) {
		row.queue = capture_stream_number(call, stream);
		row.bytes = (int64_t)(shape.width * shape.height);
		row.blob = capture_blob(&value, element_bytes); /* little-endian */
		stream_text_begin(&text);
		stream_text_string(&text, "call", call->name);
		if (shape.is_rect)
			write_rect(&text, &shape, &shape.to, NULL);
		row.details = stream_text_end(&text);
	}
	result = cuda_invoke(call, args);
	if (is_known && result == CUDA_SUCCESS_) {
		append(&row);
		if (host_contains(shape.to.address, extent(&shape, &shape.to)))
			host_copy_pending(shape.to.address, extent(&shape, &shape.to),
					  capture_stream_of(call, stream));
	} else if (!is_known && result == CUDA_SUCCESS_) {
		capture_fail("%s", why.text);
	}
	capture_unlock();
	return result;
}

/* to, value, count, stream */
static int fill_1d(struct cuda_call *call, uintptr_t *args, uint32_t element_bytes)
{
	return fill(call, args, element_bytes, 0, (uint32_t)args[1], args[2], 1,
		    call->stream >= 0 ? args[3] : 0);
}

/* to, pitch, value, width, height, stream */
static int fill_2d(struct cuda_call *call, uintptr_t *args, uint32_t element_bytes)
{
	return fill(call, args, element_bytes, args[1], (uint32_t)args[2], args[3], args[4],
		    call->stream >= 0 ? args[5] : 0);
}

static struct copy fill_of_node(const struct cuda_fill_node *given)
{
	return (struct copy){
		.to = { .address = given->to, .place = ON_DEVICE, .row = given->pitch },
		.width = given->width * given->element_bytes,
		.height = given->height,
		.depth = 1,
		.is_rect = given->height > 1,
	};
}

bool capture_fill_node(const struct cuda_fill_node *given, struct ts_replay_command *row,
		       struct stream_text *text)
{
	static const char node[] = "graph node";
	const struct copy shape = fill_of_node(given);
	struct reason why;

	row->kind = TS_COMMAND_FILL;
	if (!locate(node, &shape, &shape.to, &row->object, &row->offset, &why)) {
		capture_fail("%s", why.text);
		return false;
	}
	row->bytes = (int64_t)(shape.width * shape.height);
	row->blob = capture_blob(&given->value, given->element_bytes); /* little-endian */
	if (shape.is_rect)
		write_rect(text, &shape, &shape.to, NULL);
	return true;
}

void capture_fill_node_pending(const struct cuda_fill_node *given, struct capture_stream *stream)
{
	const struct copy shape = fill_of_node(given);

	note_copy_to_host(&shape, stream);
}

#define FILLS(bits)                                                        \
	static int fill_1d_##bits(struct cuda_call *call, uintptr_t *args) \
	{                                                                  \
		return fill_1d(call, args, (bits) / 8);                    \
	}                                                                  \
	static int fill_2d_##bits(struct cuda_call *call, uintptr_t *args) \
	{                                                                  \
		return fill_2d(call, args, (bits) / 8);                    \
	}
FILLS(8)
FILLS(16)
FILLS(32)

const struct cuda_handler_entry capture_copy_handlers[] = {
	{ "cuMemcpyHtoD", to_device, 0 },
	{ "cuMemcpyHtoDAsync", to_device, 0 },
	{ "cuMemcpyDtoH", to_host, 0 },
	{ "cuMemcpyDtoHAsync", to_host, 0 },
	{ "cuMemcpyDtoD", inside_device, 0 },
	{ "cuMemcpyDtoDAsync", inside_device, 0 },
	{ "cuMemcpy", anywhere, 0 },
	{ "cuMemcpyAsync", anywhere, 0 },
	{ "cuMemcpyPeer", peer, 0 },
	{ "cuMemcpyPeerAsync", peer, 0 },
	{ "cuMemcpy2D", copy_2d, 0 },
	{ "cuMemcpy2DUnaligned", copy_2d, 0 },
	{ "cuMemcpy2DAsync", copy_2d, 0 },
	{ "cuMemcpy3D", copy_3d, 0 },
	{ "cuMemcpy3DAsync", copy_3d, 0 },
	{ "cuMemcpy3DPeer", copy_3d, 0 },
	{ "cuMemcpy3DPeerAsync", copy_3d, 0 },
	{ "cuMemcpyBatchAsync", batch, 0 },
	{ "cuMemcpy3DBatchAsync", batch_3d, 0 },
	{ "cuMemsetD8", fill_1d_8, 0 },
	{ "cuMemsetD8Async", fill_1d_8, 0 },
	{ "cuMemsetD16", fill_1d_16, 0 },
	{ "cuMemsetD16Async", fill_1d_16, 0 },
	{ "cuMemsetD32", fill_1d_32, 0 },
	{ "cuMemsetD32Async", fill_1d_32, 0 },
	{ "cuMemsetD2D8", fill_2d_8, 0 },
	{ "cuMemsetD2D8Async", fill_2d_8, 0 },
	{ "cuMemsetD2D16", fill_2d_16, 0 },
	{ "cuMemsetD2D16Async", fill_2d_16, 0 },
	{ "cuMemsetD2D32", fill_2d_32, 0 },
	{ "cuMemsetD2D32Async", fill_2d_32, 0 },
	{ 0 },
};
