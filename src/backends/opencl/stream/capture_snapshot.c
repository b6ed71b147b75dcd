/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads memory back, through private queues that the program does not see: all memory when a window
 * begins, and what checks need.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/stream/capture_internal.h"
#include "base/local/foreign_memory.h"
#include "base/local/hash.h"

#define PIECE (UINT64_C(4) << 20) /* memory that a snapshot needs */

/* Guards the queues and the staging buffers. */
static pthread_mutex_t reader_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- reading ---- */

static cl_command_queue make_queue(const struct ocl_stream *context)
{
	cl_device_id device;
	cl_int rc;

	if (context->as.context.device_count == 0)
		return NULL;
	device = context->as.context.devices[0]->handle;
	if (ocl.next.clCreateCommandQueue)
		return ocl.next.clCreateCommandQueue(context->handle, device, 0, &rc);
	return ocl.next.clCreateCommandQueueWithProperties(context->handle, device, NULL, &rc);
}

/* Copies memory that the host cannot read to a buffer that it can. */
static cl_int read_staged(struct stream_context *context, const struct ocl_stream *memory,
			  uint64_t offset, uint64_t bytes, unsigned char *to)
{
	cl_int rc = CL_SUCCESS;

	if (!context->staging)
		context->staging = ocl.next.clCreateBuffer(memory->parent->handle,
							   CL_MEM_READ_WRITE, PIECE, NULL, &rc);
	for (uint64_t at = 0; rc == CL_SUCCESS && at < bytes; at += PIECE) {
		uint64_t count = bytes - at < PIECE ? bytes - at : PIECE;

		rc = ocl.next.clEnqueueCopyBuffer(context->reader, memory->handle, context->staging,
						  offset + at, 0, count, 0, NULL, NULL);
		if (rc == CL_SUCCESS)
			rc = ocl.next.clEnqueueReadBuffer(context->reader, context->staging,
							  CL_TRUE, 0, count, to + at, 0, NULL,
							  NULL);
	}
	return rc;
}

static cl_int read_with(struct stream_context *context, const struct ocl_stream *memory,
			uint64_t offset, uint64_t bytes, void *to)
{
	cl_int rc;

	/* Only all of it is ever read. */
	if (memory->as.memory.image)
		return stream_image_read(context->reader, memory, to);
	if (memory->as.memory.is_svm)
		return ocl.next.clEnqueueSVMMemcpy(context->reader, CL_TRUE, to,
						   (const char *)memory->handle + offset, bytes, 0,
						   NULL, NULL);
	rc = ocl.next.clEnqueueReadBuffer(context->reader, memory->handle, CL_TRUE, offset, bytes,
					  to, 0, NULL, NULL);
	if (rc == CL_INVALID_OPERATION)
		rc = read_staged(context, memory, offset, bytes, to);
	return rc;
}

/* The private queue, under the lock: another thread may release it at any time. NULL: none. */
static cl_command_queue lock_reader(struct ocl_stream *context)
{
	pthread_mutex_lock(&reader_lock);
	if (context && !context->as.context.reader)
		context->as.context.reader = make_queue(context);
	return context ? context->as.context.reader : NULL;
}

static void unlock_reader(void)
{
	pthread_mutex_unlock(&reader_lock);
}

cl_int stream_read_back(const struct ocl_stream *memory, uint64_t offset, uint64_t bytes, void *to)
{
	const struct stream_area *area = &memory->as.memory.area;
	cl_int rc = CL_INVALID_CONTEXT;

	/* The driver would read the same bytes, and crash if they are gone. */
	if (area->host && stream_pages_are_shared(memory))
		return stream_area_read(area, offset, to, bytes) == bytes ? CL_SUCCESS
									  : CL_INVALID_HOST_PTR;
	if (lock_reader(memory->parent))
		rc = read_with(&memory->parent->as.context, memory, offset, bytes, to);
	unlock_reader();
	return rc;
}

/* ---- hashing ---- */

struct part {
	unsigned char *copy;
	uint64_t bytes;
	cl_event event; /* NULL: it was read */
};

/* Begins to read it. */
static cl_int begin_part(struct stream_context *context, const struct ocl_stream *memory,
			 uint64_t offset, struct part *part)
{
	cl_int rc;

	part->event = NULL;
	if (memory->as.memory.is_svm)
		return ocl.next.clEnqueueSVMMemcpy(context->reader, CL_FALSE, part->copy,
						   (const char *)memory->handle + offset,
						   part->bytes, 0, NULL, &part->event);
	rc = ocl.next.clEnqueueReadBuffer(context->reader, memory->handle, CL_FALSE, offset,
					  part->bytes, part->copy, 0, NULL, &part->event);
	if (rc == CL_INVALID_OPERATION)
		rc = read_staged(context, memory, offset, part->bytes, part->copy);
	else if (rc == CL_SUCCESS)
		ocl.next.clFlush(context->reader);
	return rc;
}

static cl_int end_part(struct part *part, struct ts_hash_stream *hash)
{
	cl_int rc = part->event ? ocl.next.clWaitForEvents(1, &part->event) : CL_SUCCESS;

	if (part->event)
		ocl.next.clReleaseEvent(part->event);
	part->event = NULL;
	if (rc == CL_SUCCESS)
		ts_hash_stream_add(hash, part->copy, part->bytes);
	part->bytes = 0;
	return rc;
}

/* While the driver reads one part, the other is hashed. */
static cl_int hash_with(struct stream_context *context, const struct ocl_stream *memory,
			uint64_t offset, uint64_t bytes, struct part *parts, uint64_t *ret_hash)
{
	struct part *part = &parts[0], *before = &parts[1];
	struct ts_hash_stream hash;
	cl_int rc = CL_SUCCESS, end;

	ts_hash_stream_init(&hash);
	for (uint64_t at = 0; rc == CL_SUCCESS && at < bytes; at += before->bytes) {
		struct part *next = before;

		part->bytes = bytes - at < STREAM_COPY_BYTES ? bytes - at : STREAM_COPY_BYTES;
		rc = begin_part(context, memory, offset + at, part);
		end = end_part(before, &hash);
		rc = rc == CL_SUCCESS ? end : rc;
		before = part;
		part = next;
	}
	end = end_part(before, &hash);
	*ret_hash = ts_hash_stream_digest(&hash);
	return rc == CL_SUCCESS ? end : rc;
}

cl_int stream_hash_back(const struct ocl_stream *memory, uint64_t offset, uint64_t bytes,
			uint64_t *ret_hash)
{
	const struct stream_area *area = &memory->as.memory.area;
	struct stream_foreign foreign = { NULL, bytes, NULL };
	struct part parts[2] = { { .copy = NULL } };
	cl_int rc = CL_OUT_OF_HOST_MEMORY;

	if (area->host && stream_pages_are_shared(memory)) {
		foreign.base = area->host + offset;
		return stream_foreign_read(&foreign, ret_hash, NULL) ? CL_SUCCESS
								     : CL_INVALID_HOST_PTR;
	}
	parts[0].copy = stream_copy_take();
	parts[1].copy = stream_copy_take();
	if (!lock_reader(memory->parent))
		rc = CL_INVALID_CONTEXT;
	else if (parts[0].copy && parts[1].copy)
		rc = hash_with(&memory->parent->as.context, memory, offset, bytes, parts, ret_hash);
	unlock_reader();
	stream_copy_give(parts[0].copy);
	stream_copy_give(parts[1].copy);
	return rc;
}

/* ---- writing ---- */

static cl_int enqueue_clear(cl_command_queue queue, const struct ocl_stream *memory)
{
	static const unsigned char zeros[16];
	uint64_t bytes = memory->as.memory.bytes;
	size_t pattern = bytes % 16 ? 1 : 16;

	if (memory->as.memory.image)
		return stream_image_clear(queue, memory);
	if (memory->as.memory.is_svm)
		return ocl.next.clEnqueueSVMMemFill(queue, memory->handle, zeros, pattern, bytes, 0,
						    NULL, NULL);
	if (!ocl.next.clEnqueueFillBuffer) /* since OpenCL 1.2 */
		return CL_INVALID_OPERATION;
	return ocl.next.clEnqueueFillBuffer(queue, memory->handle, zeros, pattern, 0, bytes, 0,
					    NULL, NULL);
}

void stream_clear(const struct ocl_stream *memory)
{
	cl_command_queue queue = lock_reader(memory->parent);
	cl_int rc = queue ? enqueue_clear(queue, memory) : CL_INVALID_CONTEXT;

	if (rc == CL_SUCCESS)
		rc = ocl.next.clFinish(queue);
	unlock_reader();
	if (rc != CL_SUCCESS)
		stream_lost_memory("contents of memory", memory,
				   "it could not be filled with zeros");
}

void stream_readers_release(void)
{
	struct ocl_stream *stream = stream_object_next(OCL_CONTEXT, NULL);

	for (; stream; stream = stream_object_next(OCL_CONTEXT, stream)) {
		struct stream_context *context = &stream->as.context;

		pthread_mutex_lock(&reader_lock);
		stream_release_later(context->reader, context->staging, NULL);
		context->reader = NULL;
		context->staging = NULL;
		pthread_mutex_unlock(&reader_lock);
	}
}

void stream_let_go(void)
{
	stream_enter();
	stream_each_let_go();
	stream_readers_release();
	stream_leave();
}

/* ---- a window begins ---- */

bool stream_has_content(const struct ocl_stream *stream)
{
	return (stream->kind == OCL_MEMORY || stream->kind == OCL_SVM) &&
	       !stream->as.memory.is_view && !stream->unreplayable && stream->as.memory.bytes;
}

/* What the host may have written into mapped regions; under the host lock. */
static void overlay_mapped(const struct ocl_stream *memory, uint64_t at, unsigned char *piece,
			   uint64_t bytes)
{
	const struct stream_region *region;

	for (region = memory->as.memory.regions; region; region = region->next) {
		const struct stream_area *area = &region->area;
		uint64_t begin = at > area->offset ? at : area->offset;
		uint64_t end = at + bytes < area->offset + area->bytes ? at + bytes
								       : area->offset + area->bytes;

		/*
		 * What is gone keeps the device's bytes. So do pixels: the first command that uses
		 * them stores what the host wrote.
		 */
		if (begin < end && !area->image && stream_region_is_written(region))
			ts_foreign_read(piece + (begin - at), area->host + (begin - area->offset),
					end - begin);
	}
}

static uint64_t emit_image(const struct ocl_stream *memory, cl_int *ret_rc)
{
	uint64_t bytes = memory->as.memory.bytes, blob = 0;
	void *content = calloc(1, bytes);

	*ret_rc = content ? stream_read_back(memory, 0, bytes, content) : CL_OUT_OF_HOST_MEMORY;
	if (content)
		blob = ts_replay_blob(content, bytes);
	free(content);
	return blob;
}

/*
 * The blob is complete in any case, so that the stream stays valid; `ret_rc`: whether its bytes are
 * right.
 */
static uint64_t emit_content(const struct ocl_stream *memory, void *piece, cl_int *ret_rc)
{
	uint64_t bytes = memory->as.memory.bytes;
	uint64_t blob = ts_replay_blob_begin(bytes);
	cl_int rc = CL_SUCCESS;

	for (uint64_t at = 0, count; blob && at < bytes; at += count) {
		void *space, *to;

		count = bytes - at < PIECE ? bytes - at : PIECE;
		/* Straight to where the recorder finds it, if there is such a place. */
		space = ts_replay_blob_space(&count);
		to = space ? space : piece;
		if (rc == CL_SUCCESS)
			rc = stream_read_back(memory, at, count, to);
		if (rc != CL_SUCCESS)
			memset(to, 0, count);
		else
			overlay_mapped(memory, at, to, count);
		if (space)
			ts_replay_blob_filled(count);
		else
			ts_replay_blob_part(piece, count);
	}
	*ret_rc = rc;
	return blob;
}

/*
 * Contents when a window begins. A driver must not read host memory that is gone: where commands
 * work on the host's bytes, we read them, otherwise we look first.
 */
static uint64_t emit_memory(struct ocl_stream *memory, void *piece, cl_int *ret_rc)
{
	bool is_there = true;
	uint64_t blob = 0;

	stream_pages_end(memory); /* what a failed window left */
	if (memory->as.memory.area.host) {
		bool are_shared = stream_pages_are_shared(memory);

		is_there = stream_pages_begin(memory, are_shared ? &blob : NULL);
		if (!is_there)
			stream_memory_is_gone(memory);
		if (are_shared || !is_there)
			return blob;
	}
	return memory->as.memory.image ? emit_image(memory, ret_rc)
				       : emit_content(memory, piece, ret_rc);
}

/* The gate is held exclusively, so the channel's lock blocks nobody while the driver reads. */
static const char *snap(struct ocl_stream *stream, void *piece, char *why, size_t size)
{
	cl_int rc = CL_SUCCESS;
	uint64_t blob = 0;

	if (stream->kind == OCL_PROGRAM)
		stream_module_settle(stream);
	/*
	 * Threads that the driver starts for this must not inherit the signals blocked by the
	 * channel's lock.
	 */
	if (stream_has_content(stream)) {
		lock_reader(stream->parent);
		unlock_reader();
	}
	pthread_mutex_lock(&stream_host_lock);
	if (!ts_replay_lock()) {
		pthread_mutex_unlock(&stream_host_lock);
		return "the recorder does not accept it";
	}
	if (stream_has_content(stream))
		blob = emit_memory(stream, piece, &rc);
	stream_object_emit(stream, blob);
	ts_replay_unlock();
	pthread_mutex_unlock(&stream_host_lock);
	if (rc == CL_SUCCESS)
		return NULL;
	snprintf(why, size, "memory %" PRIu64 " could not be read (OpenCL error %d)",
		 stream->number, rc);
	return why;
}

static uint64_t sum_bytes(void)
{
	uint64_t sum = 0;

	for (const struct ocl_stream *stream = stream_object_first(); stream; stream = stream->next)
		sum += stream_has_content(stream) ? stream->as.memory.bytes : 0;
	return sum;
}

const char *stream_snapshot(char *why, size_t size, uint64_t *ret_bytes)
{
	uint64_t limit = ts_replay_settings()->snapshot_limit, bytes = sum_bytes();
	const char *failure = NULL;
	struct ocl_stream *stream;
	void *piece;

	*ret_bytes = bytes;
	if (bytes > limit) {
		snprintf(why, size,
			 "its snapshot has %" PRIu64 " bytes, --snapshot-limit is %" PRIu64, bytes,
			 limit);
		return why;
	}
	if (!ts_replay_has_space(bytes, why, size))
		return why;
	piece = malloc(PIECE);
	if (!piece)
		return "no memory for its snapshot";
	for (stream = stream_object_first(); stream && !failure; stream = stream->next)
		failure = snap(stream, piece, why, size);
	free(piece);
	return failure;
}
