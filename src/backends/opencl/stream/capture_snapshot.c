/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads memory back, through private queues that the program does not see: all memory when a window
 * begins, what was written when it ends, and in checked recordings what each command wrote.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/stream/capture_internal.h"

#define PIECE (UINT64_C(4) << 20)        /* memory that a snapshot needs */
#define CHECK_PIECE (UINT64_C(64) << 20) /* a longer range has several checks */

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

static void make_reader(struct ocl_stream *context)
{
	pthread_mutex_lock(&reader_lock);
	if (context && !context->as.context.reader)
		context->as.context.reader = make_queue(context);
	pthread_mutex_unlock(&reader_lock);
}

static cl_int read_back(const struct ocl_stream *memory, uint64_t offset, uint64_t bytes, void *to)
{
	struct ocl_stream *context = memory->parent;
	cl_int rc = CL_INVALID_CONTEXT;

	make_reader(context);
	pthread_mutex_lock(&reader_lock);
	if (context && context->as.context.reader)
		rc = read_with(&context->as.context, memory, offset, bytes, to);
	pthread_mutex_unlock(&reader_lock);
	return rc;
}

/* ---- writing ---- */

static void clear_with(const struct stream_context *context, const struct ocl_stream *memory)
{
	static const unsigned char zeros[16];
	uint64_t bytes = memory->as.memory.bytes;
	size_t pattern = bytes % 16 ? 1 : 16;

	if (memory->as.memory.is_svm)
		ocl.next.clEnqueueSVMMemFill(context->reader, memory->handle, zeros, pattern, bytes,
					     0, NULL, NULL);
	else if (ocl.next.clEnqueueFillBuffer) /* since OpenCL 1.2 */
		ocl.next.clEnqueueFillBuffer(context->reader, memory->handle, zeros, pattern, 0,
					     bytes, 0, NULL, NULL);
	ocl.next.clFinish(context->reader);
}

void stream_clear(const struct ocl_stream *memory)
{
	struct ocl_stream *context = memory->parent;

	make_reader(context);
	pthread_mutex_lock(&reader_lock);
	if (context && context->as.context.reader)
		clear_with(&context->as.context, memory);
	pthread_mutex_unlock(&reader_lock);
}

void stream_readers_release(void)
{
	struct ocl_stream *stream;

	pthread_mutex_lock(&reader_lock);
	for (stream = stream_object_first(); stream; stream = stream->next) {
		if (stream->kind != OCL_CONTEXT)
			continue;
		stream_release_later(stream->as.context.reader, stream->as.context.staging, NULL);
		stream->as.context.reader = NULL;
		stream->as.context.staging = NULL;
	}
	pthread_mutex_unlock(&reader_lock);
}

void stream_let_go(void)
{
	stream_enter();
	stream_readers_release();
	stream_leave();
}

/* ---- a window begins ---- */

static bool has_content(const struct ocl_stream *stream)
{
	return (stream->kind == OCL_MEMORY || stream->kind == OCL_SVM) &&
	       !stream->as.memory.is_view && !stream->unreplayable && stream->as.memory.bytes;
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

	for (uint64_t at = 0; blob && at < bytes; at += PIECE) {
		uint64_t count = bytes - at < PIECE ? bytes - at : PIECE;

		if (rc == CL_SUCCESS)
			rc = read_back(memory, at, count, piece);
		if (rc != CL_SUCCESS)
			memset(piece, 0, count);
		ts_replay_blob_part(piece, count);
	}
	*ret_rc = rc;
	return blob;
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
	if (has_content(stream))
		make_reader(stream->parent);
	if (!ts_replay_lock())
		return "the recorder does not accept it";
	if (has_content(stream))
		blob = emit_content(stream, piece, &rc);
	stream_object_emit(stream, blob);
	ts_replay_unlock();
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
		sum += has_content(stream) ? stream->as.memory.bytes : 0;
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
	piece = malloc(PIECE);
	if (!piece)
		return "no memory for its snapshot";
	for (stream = stream_object_first(); stream && !failure; stream = stream->next) {
		failure = snap(stream, piece, why, size);
		if (stream->kind == OCL_MEMORY && stream->as.memory.host)
			stream_pages_begin(stream);
	}
	free(piece);
	return failure;
}

/* ---- checks ---- */

/*
 * Stores the bytes of a check while --keep-contents allows it; 0: only their hash is stored. The
 * channel is locked.
 */
static uint64_t keep_contents(const void *data, uint64_t bytes)
{
	static uint64_t window, kept;
	uint64_t limit = ts_replay_settings()->keep_contents;

	if (window != stream_window()) {
		window = stream_window();
		kept = 0;
	}
	if (bytes > limit - kept)
		return 0;
	kept += bytes;
	return ts_replay_blob(data, bytes);
}

void stream_emit_check(uint64_t sequence, uint64_t memory, uint64_t offset, const void *data,
		       uint64_t bytes, const char *why)
{
	struct stream_text text;
	char digits[24];
	struct ts_replay_command row = {
		.size = sizeof(row),
		.kind = TS_COMMAND_CHECK,
		.sequence = sequence,
		.object = memory,
		.offset = memory ? (int64_t)offset : TS_UNKNOWN,
		.other_offset = TS_UNKNOWN,
		.bytes = (int64_t)bytes,
	};

	snprintf(digits, sizeof(digits), "%016" PRIx64, ts_replay_hash(data, bytes));
	stream_text_begin(&text);
	stream_text_string(&text, "hash", digits);
	stream_text_string(&text, "why", why);
	row.details = stream_text_end(&text);
	if (stream_lock()) {
		row.blob = keep_contents(data, bytes);
		stream_command(&row);
		stream_unlock();
	}
}

static void check_range(const struct stream_range *range, uint64_t sequence, const char *why)
{
	uint64_t most = range->bytes < CHECK_PIECE ? range->bytes : CHECK_PIECE;
	void *piece = malloc(most ? most : 1);
	cl_int rc = piece ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;

	for (uint64_t at = 0; rc == CL_SUCCESS && at < range->bytes; at += most) {
		uint64_t count = range->bytes - at < most ? range->bytes - at : most;

		rc = read_back(range->memory, range->offset + at, count, piece);
		if (rc == CL_SUCCESS)
			stream_emit_check(sequence, range->memory->number, range->offset + at,
					  piece, count, why);
	}
	if (rc != CL_SUCCESS)
		stream_lost("checks of memory", "it could not be read back");
	free(piece);
}

/* Mapped memory belongs to the host and cannot be checked. */
static bool can_be_checked(struct ocl_stream *memory)
{
	return has_content(memory) && !atomic_load(&memory->as.memory.mapped_writing);
}

/* What the host wrote since the last command that used the memory belongs to the window, too. */
static void compare_shared(void)
{
	struct ocl_stream *stream;

	pthread_mutex_lock(&stream_host_lock);
	for (stream = stream_object_first(); stream; stream = stream->next) {
		if (can_be_checked(stream) && stream->as.memory.host)
			stream_pages_compare(stream);
	}
	pthread_mutex_unlock(&stream_host_lock);
}

void stream_final_checks(void)
{
	struct ocl_stream *stream;

	compare_shared();
	for (stream = stream_object_first(); stream; stream = stream->next) {
		struct stream_range all = { .memory = stream };

		if (!can_be_checked(stream))
			continue;
		if (atomic_load(&stream->as.memory.written) == stream_window()) {
			all.bytes = stream->as.memory.bytes;
			check_range(&all, stream_last_sequence(), "final");
		}
		pthread_mutex_lock(&stream_host_lock);
		stream_pages_end(stream);
		pthread_mutex_unlock(&stream_host_lock);
	}
}

void stream_each_check(const struct stream_frozen *frozen, uint64_t sequence)
{
	for (uint32_t i = 0; i < frozen->write_count; i++) {
		if (can_be_checked(frozen->uses[i].memory))
			check_range(&frozen->uses[i], sequence, "each");
	}
}
