/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classifies vendor API and kernel names: which call launches, copies or waits; which kernel
 * communicates. One table per vendor, looked up once per distinct name.
 */
#ifndef TS_MODEL_API_NAMES_H
#define TS_MODEL_API_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/schema.h>

/* What an API call does. */
enum ts_api_kind {
	TS_API_OTHER,
	TS_API_LAUNCH, /* a kernel */
	TS_API_COPY,
	TS_API_FILL,
	TS_API_GRAPH,        /* launches many commands at once */
	TS_API_EVENT_RECORD, /* enqueues an event on a stream */
	TS_API_STREAM_WAIT,  /* makes a stream wait for an event */
	TS_API_EVENT_SYNC,   /* the host waits for an event */
	TS_API_STREAM_SYNC,  /* ... for a stream */
	TS_API_DEVICE_SYNC,  /* ... for a device */
	TS_API_QUERY,        /* polls for completion without waiting */
	TS_API_ALLOC,
	TS_API_FREE, /* synchronises with the device for some vendors */
};

/*
 * Classifies a function name of any vendor: cuda*, cu*, hip*, zeCommand*, cl*, MTIA's runFunction
 * ...
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
 * Whether the call returns only when the work is done: cudaMemcpy does, cudaMemcpyAsync does not.
 */
bool ts_api_is_blocking(const char *name, size_t length);

/*
 * Whether the call blocks if its caller asks for it: OpenCL's reads, writes and maps have an
 * argument for that, which traces do not record.
 */
bool ts_api_may_block(const char *name, size_t length);

/* What device time is spent on. */
enum ts_command_class {
	TS_CLASS_COMPUTE,
	TS_CLASS_COMMUNICATION,
	TS_CLASS_MEMORY, /* copies and fills */
	TS_CLASS_OTHER,  /* synchronisation, jobs that only contain others */
	TS_CLASS_COUNT
};

/* By the kind recorded in the trace, or by name if that is all there is. */
enum ts_command_class ts_command_class(enum ts_gpu_op_kind kind, const char *name, size_t length);

/*
 * The class that HTA assigns by its patterns alone: kernels that begin with "hip" communicate, and
 * so on.
 */
enum ts_command_class ts_command_class_hta(const char *name, size_t length);

/* What the name of a kernel says about it: a set of flags. */
#define TS_KERNEL_ELEMENTWISE 1u      /* one element at a time */
#define TS_KERNEL_SINGLE_PRECISION 2u /* a matrix product in FP32 without tensor cores */
unsigned int ts_kernel_traits(const char *name, size_t length);

/* "compute", "communication", "memory", "other". */
const char *ts_command_class_name(enum ts_command_class class);

#endif
