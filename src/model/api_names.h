/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the names of vendors mean: which call launches, copies, waits; which kernel communicates.
 * One table a vendor, asked once for each distinct name.
 */
#ifndef TS_MODEL_API_NAMES_H
#define TS_MODEL_API_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/schema.h>

/* What a call asks of the device. */
enum ts_api_kind {
	TS_API_OTHER,
	TS_API_LAUNCH, /* a kernel */
	TS_API_COPY,
	TS_API_FILL,
	TS_API_GRAPH,        /* launches many commands at once */
	TS_API_EVENT_RECORD, /* puts an event into a stream */
	TS_API_STREAM_WAIT,  /* lets a stream wait for an event */
	TS_API_EVENT_SYNC,   /* the host waits for an event */
	TS_API_STREAM_SYNC,  /* ... for a stream */
	TS_API_DEVICE_SYNC,  /* ... for all of a device */
	TS_API_QUERY,        /* asks, without waiting, whether something is done */
	TS_API_ALLOC,
	TS_API_FREE, /* waits for the device where the vendor's does */
};

/*
 * By the function's name, of any vendor: cuda*, cu*, hip*, zeCommand*, cl*, MTIA's runFunction ...
 */
enum ts_api_kind ts_api_kind(const char *name, size_t length);

static inline bool ts_api_is_enqueue(enum ts_api_kind kind)
{
	return kind >= TS_API_LAUNCH && kind <= TS_API_GRAPH;
}

static inline bool ts_api_is_sync(enum ts_api_kind kind)
{
	return kind >= TS_API_EVENT_SYNC && kind <= TS_API_DEVICE_SYNC;
}

/*
 * Does the call return only when what it asked for is done? cudaMemcpy does, cudaMemcpyAsync not.
 */
bool ts_api_is_blocking(const char *name, size_t length);

/*
 * May it, as its caller wishes? OpenCL's reads, writes and maps say so in an argument that traces
 * do not have.
 */
bool ts_api_may_block(const char *name, size_t length);

/* What a device's time is spent on. */
enum ts_command_class {
	TS_CLASS_COMPUTE,
	TS_CLASS_COMMUNICATION,
	TS_CLASS_MEMORY, /* copies and fills */
	TS_CLASS_OTHER,  /* synchronisation, jobs that only hold others */
	TS_CLASS_COUNT
};

/* The truth: by the kind that the trace says, and by name where that is all there is. */
enum ts_command_class ts_command_class(enum ts_gpu_op_kind kind, const char *name, size_t length);

/*
 * What HTA would say, by its patterns alone: kernels that begin with "hip" communicate, and so on.
 */
enum ts_command_class ts_command_class_hta(const char *name, size_t length);

/* "compute", "communication", "memory", "other". */
const char *ts_command_class_name(enum ts_command_class class);

#endif
