/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of torch_trace: executions of PyTorch modules, stored as they happen by a profiler inside
 * the program (the Python package has one). Link with -ltracesmith-agent, which depends only on
 * libc. A row costs tens of nanoseconds, is visible to readers at once, and survives kill -9.
 *
 *	uint32_t module = ts_torch_module("encoder.layers.0");	once per module
 *	struct ts_torch_row row = { .size = sizeof(row), .module = module, ... };
 *	uint64_t serial = ts_torch_row(&row);
 *	...; when the device has finished: ts_torch_device_time(serial, device_ns);
 *
 * All functions may be called from any thread.
 */
#ifndef TRACESMITH_TORCH_H
#define TRACESMITH_TORCH_H

#include <stdint.h>

#include <tracesmith/emit.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ts_torch_stage_of {
	TS_TORCH_UNKNOWN = 0,
	TS_TORCH_FORWARD = 1,
	TS_TORCH_BACKWARD = 2,
	TS_TORCH_STEP = 3,      /* of an optimizer */
	TS_TORCH_RECOMPUTE = 4, /* a forward within a backward pass: gradient checkpointing */
};

/* No value, in each member of type int64_t below. */
#define TS_TORCH_ABSENT INT64_MIN
#define TS_TORCH_HOST (-1)
#define TS_TORCH_NO_RANK (-1)

/* An execution. Members that are unknown: 0 for memory, TS_TORCH_ABSENT for integers. */
struct ts_torch_row {
	size_t size;                             /* of this struct, as the caller was compiled */
	int64_t start_ns;                        /* CLOCK_MONOTONIC */
	int64_t duration_ns;                     /* on the host; negative: 0 */
	int64_t step;                            /* of training */
	int64_t seq;                             /* in the step */
	uint32_t module;                         /* from ts_torch_module() */
	uint32_t stage;                          /* enum ts_torch_stage_of */
	double allocated, max_allocated, cached; /* MB of device memory; 0 or NaN: unknown */
	int32_t device;                          /* number of the device; TS_TORCH_HOST: none */
	/*
	 * In the distributed job. TS_TORCH_NO_RANK: read from the environment of the process (RANK,
	 * OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID), if it is set there.
	 */
	int32_t rank;
	int64_t device_ns; /* TS_TORCH_ABSENT: unknown, or ts_torch_device_time() follows */
};

/*
 * Returns the number of a module path: the same for equal paths, valid until the process ends, and
 * in forked children. Copies the path. Takes a lock: call it once per module, not once per row.
 * Returns 0 only if memory is exhausted; rows of module 0 have no module.
 */
TS_EMIT_API uint32_t ts_torch_module(const char *path);

/*
 * Stores a row. Returns its serial for ts_torch_device_time(), or 0 if events are off (see
 * ts_enabled()) or there was no space. Neither locks nor allocates.
 */
TS_EMIT_API uint64_t ts_torch_row(const struct ts_torch_row *row);

/*
 * Adds the device time of a row of this process, from any thread. Rows wait for it until the trace
 * is saved, or until there are a hundred thousand newer rows; after that it is counted as lost.
 * Serial 0 is ignored.
 */
TS_EMIT_API void ts_torch_device_time(uint64_t serial, int64_t device_ns);

/*
 * Returns the number of calls of ts_step() in this process while a tracer was active. ret_number
 * (may be NULL) is set to the last step number; it is untouched if there was no call.
 */
TS_EMIT_API uint64_t ts_torch_steps(int64_t *ret_number);

#ifdef __cplusplus
}
#endif

#endif
