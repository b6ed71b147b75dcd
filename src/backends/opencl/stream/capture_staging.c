/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small ranges that commands wrote are copied inside the device, into a buffer of ours for each
 * queue, right behind the command, and without an event. One read then takes many of them. Where an
 * enqueue is expensive, above all one with an event, this is the cheapest way; where device and
 * host share memory, a read costs no more than the copy (docs/replay.md, 3.3).
 */
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/stream/capture_each.h"

#define SMALL (STREAM_COPY_BYTES / 4) /* a larger range gains nothing */
#define BATCH 256u                    /* ranges in a read; others are copied meanwhile */
#define OLD_NS INT64_C(10000000)

/* In-order queues only: a copy may overwrite what a read that was enqueued before it has read. */
struct stream_staging {
	struct stream_staging *next;
	struct ocl_stream *queue;
	cl_mem buffer;            /* STREAM_COPY_BYTES; NULL: the driver has no memory */
	struct each_batch *batch; /* that is not read yet; NULL: none */
};

static struct stream_staging *first;
static enum { BY_DEVICE, ALWAYS, NEVER } choice;

void stream_each_start(void)
{
	const char *text = secure_getenv("TRACESMITH_OPENCL_CHECKS");

	choice = !text                       ? BY_DEVICE
		 : strcmp(text, "copy") == 0 ? ALWAYS
		 : strcmp(text, "read") == 0 ? NEVER
					     : BY_DEVICE;
}

/* ---- buffers ---- */

static struct stream_staging *make(const struct ocl_object *queue)
{
	struct stream_staging *staging = calloc(1, sizeof(*staging));
	cl_int rc;

	if (!staging)
		return NULL;
	staging->queue = queue->stream;
	staging->buffer = ocl.next.clCreateBuffer(queue->context->handle, CL_MEM_READ_WRITE,
						  STREAM_COPY_BYTES, NULL, &rc);
	staging->next = first;
	first = staging;
	queue->stream->as.queue.staging = staging;
	return staging;
}

/* Its reads are enqueued: the driver keeps the buffer for them. */
static void release(struct stream_staging *staging)
{
	struct stream_staging **link = &first;

	if (staging->batch)
		staging_read(staging->batch);
	while (*link != staging)
		link = &(*link)->next;
	*link = staging->next;
	staging->queue->as.queue.staging = NULL;
	stream_release_later(NULL, staging->buffer, NULL);
	free(staging);
}

void staging_release(void)
{
	while (first)
		release(first);
}

void stream_each_queue_gone(struct ocl_stream *queue)
{
	pthread_mutex_lock(&each_lock);
	if (queue->as.queue.staging)
		release(queue->as.queue.staging);
	pthread_mutex_unlock(&each_lock);
}

void staging_forked(void)
{
	first = NULL;
}

/* ---- copies ---- */

/* Others are read as fast by the host as by the device. */
static bool is_chosen(const struct ocl_stream *device)
{
	if (choice != BY_DEVICE)
		return choice == ALWAYS;
	return device && !device->as.device.is_cpu && !device->as.device.is_unified;
}

bool staging_takes(const struct stream_range *range, const struct ocl_command *command)
{
	const struct stream_memory *memory = &range->memory->as.memory;
	const struct ocl_object *queue = command->queue;
	const struct stream_staging *staging = queue->stream->as.queue.staging;

	if (queue->out_of_order || !queue->context || range->bytes > SMALL || memory->image ||
	    memory->is_svm || memory->area.host || !is_chosen(queue->stream->as.queue.device))
		return false;
	if (!staging)
		staging = make(queue);
	return staging && staging->buffer;
}

/* Space for a range in the batch that is being filled, or in a new one. */
static struct each_batch *make_batch(struct stream_staging *staging, size_t bytes)
{
	struct each_batch *batch = staging->batch;
	struct each_slab *slab;

	if (batch && (batch->slab->used + bytes > STREAM_COPY_BYTES || batch->reads >= BATCH))
		staging_read(batch);
	if (staging->batch)
		return staging->batch;
	slab = each_make_slab();
	batch = slab ? malloc(sizeof(*batch)) : NULL;
	if (batch)
		*batch = (struct each_batch){
			.staging = staging,
			.slab = slab,
			.status = CL_QUEUED,
			.from_ns = ts_replay_clock_ns(),
		};
	return batch;
}

bool staging_copy(const struct stream_range *range, const struct ocl_command *command)
{
	struct stream_staging *staging = command->queue->stream->as.queue.staging;
	struct each_batch *batch = make_batch(staging, range->bytes);
	struct each_read *read = batch ? each_new_read(range, command) : NULL;
	cl_int rc = CL_OUT_OF_HOST_MEMORY;

	if (read)
		rc = ocl.next.clEnqueueCopyBuffer(command->queue->handle, range->memory->handle,
						  staging->buffer, range->offset, batch->slab->used,
						  range->bytes, 0, NULL, NULL);
	if (rc != CL_SUCCESS) {
		free(read);
		if (batch != staging->batch)
			free(batch);
		return false;
	}
	read->batch = staging->batch = batch;
	read->slab = batch->slab;
	each_add(read);
	return true;
}

/* ---- reads ---- */

void staging_read(struct each_batch *batch)
{
	struct stream_staging *staging = batch->staging;
	cl_int rc;

	if (!staging)
		return;
	rc = ocl.next.clEnqueueReadBuffer(staging->queue->handle, staging->buffer, CL_FALSE, 0,
					  batch->slab->used, batch->slab->bytes, 0, NULL,
					  &batch->event);
	if (rc != CL_SUCCESS) {
		batch->event = NULL;
		batch->status = rc;
	}
	batch->staging = NULL;
	staging->batch = NULL;
}

static void read_older_than(int64_t ns)
{
	for (struct stream_staging *staging = first; staging; staging = staging->next) {
		if (staging->batch && staging->batch->from_ns <= ns)
			staging_read(staging->batch);
	}
}

void staging_read_all(void)
{
	read_older_than(INT64_MAX);
}

/* A program that waits often does not pay for a read each time. */
void staging_read_old(void)
{
	if (first && !ts_replay_in_callback() && !stream_events_blocking())
		read_older_than(ts_replay_clock_ns() - OLD_NS);
}

void staging_forget(void)
{
	for (struct stream_staging *staging = first; staging; staging = staging->next) {
		if (!staging->batch)
			continue;
		staging->batch->status = CL_COMPLETE;
		staging->batch->staging = NULL;
		staging->batch = NULL;
	}
}
