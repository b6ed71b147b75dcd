/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for parts that are not there yet: each gives way to the real one. */
#include "capture/cuda/calls.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define PENDING __attribute__((weak))

PENDING void cuda_device_begin(void)
{
}
PENDING void cuda_device_prepare(void)
{
}
PENDING void cuda_device_given(uint32_t correlation)
{
}
PENDING void cuda_device_captured(uint64_t node, uint32_t stack)
{
}
PENDING void cuda_device_collective(uint32_t correlation, int64_t bytes)
{
}
PENDING void cuda_device_end(void)
{
}
PENDING uint32_t cuda_stream_number(void *stream, uint32_t *ret_context)
{
	return UINT32_MAX;
}
PENDING void *cuda_cupti(const char *name)
{
	return NULL;
}
PENDING uint32_t cuda_cupti_version(void)
{
	return 0;
}
PENDING void *cuda_foreign(const char *name)
{
	return NULL;
}
PENDING bool cuda_sampling_is_wanted(void)
{
	return false;
}
PENDING void cuda_sampling_context(void *context, uint32_t device, bool is_created)
{
}
PENDING void cuda_sampling_module(void *context, uint32_t module, const void *cubin, size_t bytes,
				  bool is_loaded)
{
}
PENDING void cuda_sampling_launched(void)
{
}
PENDING void cuda_sampling_drain(bool is_last)
{
}
PENDING void cuda_profiler_switched(bool is_on)
{
}
