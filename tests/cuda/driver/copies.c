/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: copies and fills, and what runs of each command. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/driver/driver.h"

enum { HOST = 1, DEVICE = 2, ARRAY = 3, UNIFIED = 4 };

/* Larger ones take memory and time: fresh pages for each command. */
#define PIECE ((size_t)64 << 10)

static bool copy_on_device(uint64_t to, uint64_t from, size_t bytes)
{
	uint8_t piece[PIECE];
	bool is_right = true;

	for (size_t done = 0; done < bytes && is_right; done += PIECE) {
		size_t part = bytes - done < PIECE ? bytes - done : PIECE;

		is_right = memory_read(piece, from + done, part) &&
			   memory_write(to + done, piece, part);
	}
	return is_right;
}

static bool copy_run(const struct op *op)
{
	const struct cuda_copy_3d *copy = &op->copy;
	bool is_right = true;

	for (size_t z = 0; z < copy->depth && is_right; z++) {
		for (size_t y = 0; y < copy->height && is_right; y++) {
			size_t from = (copy->from_z + z) * copy->from_pitch * copy->from_height +
				      (copy->from_y + y) * copy->from_pitch + copy->from_x;
			size_t to = (copy->to_z + z) * copy->to_pitch * copy->to_height +
				    (copy->to_y + y) * copy->to_pitch + copy->to_x;

			const char *host = NULL;

			if (op->staged)
				host = (char *)op->staged + (z * copy->height + y) * copy->width;
			else if (copy->from_type == HOST)
				host = (const char *)copy->from_host + from;
			if (copy->to_type == HOST && host)
				memmove((char *)copy->to_host + to, host, copy->width);
			else if (copy->to_type == HOST)
				is_right = memory_read((char *)copy->to_host + to,
						       copy->from_device + from, copy->width);
			else if (host)
				is_right = memory_write(copy->to_device + to, host, copy->width);
			else
				is_right = copy_on_device(copy->to_device + to,
							  copy->from_device + from, copy->width);
		}
	}
	return is_right;
}

static bool fill_run(const struct cuda_fill_node *fill)
{
	size_t bytes = fill->width * fill->element_bytes;
	uint8_t piece[PIECE];
	bool is_right = true;

	for (size_t i = 0; i < bytes && i < PIECE; i += fill->element_bytes)
		memcpy(piece + i, &fill->value, fill->element_bytes);
	for (size_t y = 0; y < fill->height; y++) {
		uint64_t to = fill->to + y * fill->pitch;

		for (size_t done = 0; done < bytes && is_right; done += PIECE)
			is_right = memory_write(to + done, piece,
						bytes - done < PIECE ? bytes - done : PIECE);
	}
	return is_right;
}

static void say_hung(void)
{
	int fd = settings.hung ? open(settings.hung, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;

	if (fd >= 0)
		close(fd);
}

static bool launch_run(struct op *op)
{
	struct kernel_call call = {
		.function = op->launch.function,
		.grid = op->launch.grid,
		.block = op->launch.block,
		.params = op->launch.params,
	};
	bool is_done;

	if (settings.hangs && !strcmp(settings.hangs, op->launch.function->name)) {
		say_hung();
		return false;
	}
	is_done = op->launch.function->code(&call);
	if (call.is_illegal)
		set_device_error(ILLEGAL_ADDRESS);
	return is_done || call.is_illegal;
}

bool op_run(struct op *op)
{
	switch (op->kind) {
	case OP_LAUNCH:
		return launch_run(op);
	case OP_COPY:
		if (!copy_run(op))
			set_device_error(ILLEGAL_ADDRESS);
		return true;
	case OP_FILL:
		if (!fill_run(&op->fill))
			set_device_error(ILLEGAL_ADDRESS);
		return true;
	case OP_GRAPH:
		return exec_run(op->exec);
	case OP_HOST:
		op->call(op->data);
		return true;
	case OP_FREE:
		(void)memory_free(op->address, NULL);
		return true;
	case OP_EMPTY:
	default:
		return true;
	}
}

void op_release(struct op *op)
{
	free(op->launch.params);
	free(op->staged);
	op->launch.params = NULL;
	op->staged = NULL;
}

void op_copy(struct op *to, const struct op *from)
{
	*to = *from;
	if (from->launch.params) {
		uint32_t bytes = from->launch.function->param_bytes;

		to->launch.params = malloc(bytes + 1);
		memcpy(to->launch.params, from->launch.params, bytes);
	}
	to->staged = NULL;
}

/* ---- copies ---- */

static bool is_pageable(const void *address)
{
	struct range range;

	return !memory_find((uintptr_t)address, &range);
}

/* An address that the driver knows is used as such, others are pageable memory. */
static void resolve(uint32_t *type, const void **host, uint64_t *device)
{
	if (*type == UNIFIED) {
		*type = is_pageable((void *)*device) ? HOST : DEVICE;
		if (*type == HOST)
			*host = (void *)*device;
	}
}

/*
 * `is_blocking`: the caller waits; for bytes of pageable memory on their way to the device only
 * until they are taken, as a driver does: streams that do not wait for this one may be ahead of
 * them.
 */
static int copy_on(struct stream *on, const struct cuda_copy_3d *copy, bool is_blocking)
{
	struct op op = { .kind = OP_COPY, .copy = *copy };
	const void *to;
	int error;

	if (!on)
		return current_context() ? INVALID_HANDLE : INVALID_CONTEXT;
	if (copy->from_type == ARRAY || copy->to_type == ARRAY)
		return NOT_SUPPORTED;
	if (is_blocking) {
		error = refuse_in_capture();
		if (error)
			return error;
	}
	to = op.copy.to_host;
	resolve(&op.copy.from_type, &op.copy.from_host, &op.copy.from_device);
	resolve(&op.copy.to_type, &to, &op.copy.to_device);
	op.copy.to_host = (void *)(uintptr_t)to;
	copy = &op.copy;
	if (!copy->width || !copy->height || !copy->depth)
		return 0;
	if (copy->from_type == HOST && is_pageable(copy->from_host) && !on->capture) {
		op.staged = malloc(copy->width * copy->height * copy->depth);
		for (size_t z = 0; z < copy->depth; z++) {
			for (size_t y = 0; y < copy->height; y++)
				memcpy((char *)op.staged + (z * copy->height + y) * copy->width,
				       (const char *)copy->from_host +
					       (copy->from_z + z) * copy->from_pitch *
						       copy->from_height +
					       (copy->from_y + y) * copy->from_pitch + copy->from_x,
				       copy->width);
		}
	}
	if (copy->to_type == HOST && is_pageable(copy->to_host) && !on->capture)
		is_blocking = true;
	if ((copy->from_type != HOST && !memory_is_valid(copy->from_device, 1)) ||
	    (copy->to_type != HOST && !memory_is_valid(copy->to_device, 1))) {
		op_release(&op);
		return INVALID_VALUE;
	}
	if (is_blocking && op.staged && copy->to_type != HOST) {
		error = wait_for(on);
		is_blocking = false;
		if (error) {
			op_release(&op);
			return error;
		}
	}
	error = submit(on, &op);
	return error || !is_blocking || on->capture ? error : wait_for(on);
}

static int copy_bytes(struct stream *on, uint32_t to_type, uint64_t to, uint32_t from_type,
		      uint64_t from, size_t bytes, bool is_blocking)
{
	struct cuda_copy_3d copy = {
		.from_type = from_type,
		.from_host = (void *)from,
		.from_device = from,
		.to_type = to_type,
		.to_host = (void *)to,
		.to_device = to,
		.width = bytes,
		.height = 1,
		.depth = 1,
	};

	return copy_on(on, &copy, is_blocking);
}

/* Copies between memory of the device need not have ended when the call returns. */
#define COPY(name, to_type, to_c, from_type, from_c, blocks)                                  \
	API name##_v2(to_c to, from_c from, size_t bytes)                                     \
	{                                                                                     \
		return copy_bytes(stream_of(NULL, false), to_type, (uint64_t)to, from_type,   \
				  (uint64_t)from, bytes, blocks);                             \
	}                                                                                     \
	API name##_v2_ptds(to_c to, from_c from, size_t bytes)                                \
	{                                                                                     \
		return copy_bytes(stream_of(NULL, true), to_type, (uint64_t)to, from_type,    \
				  (uint64_t)from, bytes, blocks);                             \
	}                                                                                     \
	API name##Async_v2(to_c to, from_c from, size_t bytes, void *stream)                  \
	{                                                                                     \
		return copy_bytes(stream_of(stream, false), to_type, (uint64_t)to, from_type, \
				  (uint64_t)from, bytes, false);                              \
	}                                                                                     \
	API name##Async_v2_ptsz(to_c to, from_c from, size_t bytes, void *stream)             \
	{                                                                                     \
		return copy_bytes(stream_of(stream, true), to_type, (uint64_t)to, from_type,  \
				  (uint64_t)from, bytes, false);                              \
	}
COPY(cuMemcpyHtoD, DEVICE, uint64_t, HOST, const void *, true)
COPY(cuMemcpyDtoH, HOST, void *, DEVICE, uint64_t, true)
COPY(cuMemcpyDtoD, DEVICE, uint64_t, DEVICE, uint64_t, false)

API cuMemcpy(uint64_t to, uint64_t from, size_t bytes)
{
	return copy_bytes(stream_of(NULL, false), UNIFIED, to, UNIFIED, from, bytes, true);
}

API cuMemcpy_ptds(uint64_t to, uint64_t from, size_t bytes)
{
	return copy_bytes(stream_of(NULL, true), UNIFIED, to, UNIFIED, from, bytes, true);
}

API cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
	return copy_bytes(stream_of(stream, false), UNIFIED, to, UNIFIED, from, bytes, false);
}

API cuMemcpyAsync_ptsz(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
	return copy_bytes(stream_of(stream, true), UNIFIED, to, UNIFIED, from, bytes, false);
}

API cuMemcpyPeer(uint64_t to, void *to_context, uint64_t from, void *from_context, size_t bytes)
{
	(void)to_context;
	(void)from_context;
	return copy_bytes(stream_of(NULL, false), DEVICE, to, DEVICE, from, bytes, true);
}

API cuMemcpyPeerAsync(uint64_t to, void *to_context, uint64_t from, void *from_context,
		      size_t bytes, void *stream)
{
	(void)to_context;
	(void)from_context;
	return copy_bytes(stream_of(stream, false), DEVICE, to, DEVICE, from, bytes, false);
}

static int copy_2d(struct stream *on, const struct cuda_copy_2d *copy, bool is_blocking)
{
	struct cuda_copy_3d whole = {
		.from_x = copy->from_x,
		.from_y = copy->from_y,
		.from_type = copy->from_type,
		.from_host = copy->from_host,
		.from_device = copy->from_device,
		.from_pitch = copy->from_pitch ? copy->from_pitch : copy->width + copy->from_x,
		.to_x = copy->to_x,
		.to_y = copy->to_y,
		.to_type = copy->to_type,
		.to_host = copy->to_host,
		.to_device = copy->to_device,
		.to_pitch = copy->to_pitch ? copy->to_pitch : copy->width + copy->to_x,
		.width = copy->width,
		.height = copy->height,
		.depth = 1,
	};

	return copy_on(on, &whole, is_blocking);
}

API cuMemcpy2D_v2(const struct cuda_copy_2d *copy)
{
	return copy_2d(stream_of(NULL, false), copy, true);
}

API cuMemcpy2D_v2_ptds(const struct cuda_copy_2d *copy)
{
	return copy_2d(stream_of(NULL, true), copy, true);
}

API cuMemcpy2DUnaligned_v2(const struct cuda_copy_2d *copy)
{
	return copy_2d(stream_of(NULL, false), copy, true);
}

API cuMemcpy2DUnaligned_v2_ptds(const struct cuda_copy_2d *copy)
{
	return copy_2d(stream_of(NULL, true), copy, true);
}

API cuMemcpy2DAsync_v2(const struct cuda_copy_2d *copy, void *stream)
{
	return copy_2d(stream_of(stream, false), copy, false);
}

API cuMemcpy2DAsync_v2_ptsz(const struct cuda_copy_2d *copy, void *stream)
{
	return copy_2d(stream_of(stream, true), copy, false);
}

API cuMemcpy3D_v2(const struct cuda_copy_3d *copy)
{
	return copy_on(stream_of(NULL, false), copy, true);
}

API cuMemcpy3D_v2_ptds(const struct cuda_copy_3d *copy)
{
	return copy_on(stream_of(NULL, true), copy, true);
}

API cuMemcpy3DAsync_v2(const struct cuda_copy_3d *copy, void *stream)
{
	return copy_on(stream_of(stream, false), copy, false);
}

API cuMemcpy3DAsync_v2_ptsz(const struct cuda_copy_3d *copy, void *stream)
{
	return copy_on(stream_of(stream, true), copy, false);
}

API cuMemcpyBatchAsync_v2(const uint64_t *to, const uint64_t *from, const size_t *bytes,
			  size_t count, void *attributes, size_t *indices, size_t attribute_count,
			  void *stream)
{
	(void)attributes;
	(void)indices;
	(void)attribute_count;
	for (size_t i = 0; i < count; i++) {
		int error = cuMemcpyAsync(to[i], from[i], bytes[i], stream);

		if (error)
			return error;
	}
	return 0;
}

API cuMemcpyBatchAsync(const uint64_t *to, const uint64_t *from, const size_t *bytes, size_t count,
		       void *attributes, size_t *indices, size_t attribute_count, size_t *failed,
		       void *stream)
{
	*failed = SIZE_MAX;
	return cuMemcpyBatchAsync_v2(to, from, bytes, count, attributes, indices, attribute_count,
				     stream);
}

/* A side of a copy, in a structure for one copy. */
static int copy_one(const struct cuda_copy_of_batch *copy, void *stream)
{
	const struct cuda_copy_operand *from = &copy->from, *to = &copy->to;
	struct cuda_copy_3d one = {
		.from_type = from->type == 1 ? UNIFIED : ARRAY,
		.from_device = from->address,
		.from_pitch = from->row ? from->row : copy->width,
		.from_height = from->height ? from->height : copy->height,
		.to_type = to->type == 1 ? UNIFIED : ARRAY,
		.to_device = to->address,
		.to_pitch = to->row ? to->row : copy->width,
		.to_height = to->height ? to->height : copy->height,
		.width = copy->width,
		.height = copy->height,
		.depth = copy->depth,
	};

	return cuMemcpy3DAsync_v2(&one, stream);
}

API cuMemcpy3DBatchAsync_v2(size_t count, const struct cuda_copy_of_batch *copies,
			    unsigned long long flags, void *stream)
{
	int error = flags || !stream ? INVALID_VALUE : 0;

	for (size_t i = 0; i < count && !error; i++)
		error = copy_one(&copies[i], stream);
	return error;
}

API cuMemcpy3DBatchAsync(size_t count, const struct cuda_copy_of_batch *copies, size_t *failed,
			 unsigned long long flags, void *stream)
{
	*failed = SIZE_MAX;
	return cuMemcpy3DBatchAsync_v2(count, copies, flags, stream);
}

/* ---- fills ---- */

static int fill_on(struct stream *on, uint64_t to, size_t pitch, uint32_t value, uint32_t bytes,
		   size_t width, size_t height)
{
	struct op op = {
		.kind = OP_FILL,
		.fill = { to, pitch, value, bytes, width, height },
	};

	if (!on)
		return current_context() ? INVALID_HANDLE : INVALID_CONTEXT;
	if (!width || !height)
		return 0;
	if (to % bytes || !memory_is_valid(to, width * bytes))
		return INVALID_VALUE;
	return submit(on, &op);
}

#define FILL(bits, c)                                                                              \
	API cuMemsetD##bits##_v2(uint64_t to, c value, size_t count)                               \
	{                                                                                          \
		return fill_on(stream_of(NULL, false), to, 0, value, bits / 8, count, 1);          \
	}                                                                                          \
	API cuMemsetD##bits##_v2_ptds(uint64_t to, c value, size_t count)                          \
	{                                                                                          \
		return fill_on(stream_of(NULL, true), to, 0, value, bits / 8, count, 1);           \
	}                                                                                          \
	API cuMemsetD##bits##Async(uint64_t to, c value, size_t count, void *stream)               \
	{                                                                                          \
		return fill_on(stream_of(stream, false), to, 0, value, bits / 8, count, 1);        \
	}                                                                                          \
	API cuMemsetD##bits##Async_ptsz(uint64_t to, c value, size_t count, void *stream)          \
	{                                                                                          \
		return fill_on(stream_of(stream, true), to, 0, value, bits / 8, count, 1);         \
	}                                                                                          \
	API cuMemsetD2D##bits##_v2(uint64_t to, size_t pitch, c value, size_t width,               \
				   size_t height)                                                  \
	{                                                                                          \
		return fill_on(stream_of(NULL, false), to, pitch, value, bits / 8, width, height); \
	}                                                                                          \
	API cuMemsetD2D##bits##_v2_ptds(uint64_t to, size_t pitch, c value, size_t width,          \
					size_t height)                                             \
	{                                                                                          \
		return fill_on(stream_of(NULL, true), to, pitch, value, bits / 8, width, height);  \
	}                                                                                          \
	API cuMemsetD2D##bits##Async(uint64_t to, size_t pitch, c value, size_t width,             \
				     size_t height, void *stream)                                  \
	{                                                                                          \
		return fill_on(stream_of(stream, false), to, pitch, value, bits / 8, width,        \
			       height);                                                            \
	}                                                                                          \
	API cuMemsetD2D##bits##Async_ptsz(uint64_t to, size_t pitch, c value, size_t width,        \
					  size_t height, void *stream)                             \
	{                                                                                          \
		return fill_on(stream_of(stream, true), to, pitch, value, bits / 8, width,         \
			       height);                                                            \
	}
FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned int)
