/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for the CUDA driver, built as libcuda.so.1 for tests of call interception. It has
 * every function of cuda_calls.def, each of which records its arguments, and some without a
 * wrapper. Nothing runs on any device.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "code/cuda/local/cuda_abi.h"
#include "cuda/stand_in.h"

#define EXPORT __attribute__((visibility("default")))
#define ARGS                                                                                       \
	uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, uintptr_t g, \
		uintptr_t h, uintptr_t i, uintptr_t j, uintptr_t k

enum {
#define CUDA_CALL(name, arguments, class, number, stream, replay) INDEX_##name,
#include "backends/cuda/calls/cuda_calls.def"
	CALLS
};

static __thread struct stand_in_call last;
static bool is_working;
static uint32_t is_initialized; /* atomic */
static uintptr_t next_address = 0x7f0000000000;
static int capturing;
static stand_in_watcher watcher;

EXPORT struct stand_in_call *stand_in_last(void)
{
	return &last;
}

EXPORT void stand_in_work(bool works)
{
	is_working = works;
}

EXPORT void stand_in_watch(stand_in_watcher by)
{
	watcher = by;
}

static bool begins(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

/* As far as a recorder can see it. */
static void work(const char *name, const char *class)
{
	uintptr_t address = __atomic_fetch_add(&next_address, 0x10000, __ATOMIC_RELAXED);
	size_t pitch = 512;

	if (!strcmp(class, "ALLOCATE") && !begins(name, "cuMemHostRegister"))
		memcpy((void *)last.args[0], &address, sizeof(address));
	if (begins(name, "cuMemAllocPitch"))
		memcpy((void *)last.args[1], &pitch, sizeof(pitch));
	if (begins(name, "cuStreamBeginCapture"))
		capturing++;
	if (begins(name, "cuStreamEndCapture"))
		capturing--;
}

static int called(int index, int arguments, const char *name, const char *class, int number,
		  const uintptr_t *args)
{
	last.name = name;
	last.count++;
	memset(last.args, 0, sizeof(last.args));
	memcpy(last.args, args, (size_t)arguments * sizeof(args[0]));
	if (index == INDEX_cuInit)
		__atomic_store_n(&is_initialized, 1, __ATOMIC_RELEASE);
	if (is_working)
		work(name, class);
	if (watcher)
		watcher(number, args);
	return is_working ? 0 : STAND_IN_FIRST_RESULT + index;
}

/* All take as many words as the longest: missing arguments are not read. */
#define CUDA_CALL(name, arguments, class, number, stream, replay)                    \
	EXPORT int function_##name(ARGS) __asm__(#name);                             \
	int function_##name(ARGS)                                                    \
	{                                                                            \
		const uintptr_t args[] = { a, b, c, d, e, f, g, h, i, j, k };        \
                                                                                     \
		return called(INDEX_##name, arguments, #name, #class, number, args); \
	}
#include "backends/cuda/calls/cuda_calls.def"

/* ---- without a wrapper ---- */

EXPORT int cuDriverGetVersion(int *version);
EXPORT int cuDeviceGetCount(int *count);
EXPORT int cuDeviceGet(int *device, int ordinal);
EXPORT int cuDeviceGetName(char *name, int bytes, int device);
EXPORT int cuDeviceGetUuid_v2(uint8_t *uuid, int device);
EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device);
EXPORT int cuCtxGetCurrent(void **context);
EXPORT int cuCtxGetDevice(int *device);
EXPORT int cuStreamIsCapturing(void *stream, int *status);
EXPORT int cuTexRefSetMipmapLevelBias(void *texture, float bias);
EXPORT double cuUnheardOf(double a, int b, double c);
EXPORT int cuGetProcAddress(const char *name, void **address, int version, uint64_t flags);
EXPORT int cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags,
			       int *status);

int cuDriverGetVersion(int *version)
{
	*version = 13000;
	return 0;
}

int cuDeviceGetCount(int *count)
{
	*count = 1;
	return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return 0;
}

int cuDeviceGetName(char *name, int bytes, int device)
{
	snprintf(name, (size_t)bytes, "stand-in %d", device);
	return 0;
}

int cuDeviceGetUuid_v2(uint8_t *uuid, int device)
{
	for (int i = 0; i < 16; i++)
		uuid[i] = (uint8_t)(i * 17);
	return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	*bytes = 1u << 30;
	return 0;
}

int cuCtxGetCurrent(void **context)
{
	*context = (void *)0x5000;
	return __atomic_load_n(&is_initialized, __ATOMIC_ACQUIRE) ? 0 : CUDA_NOT_INITIALIZED;
}

int cuCtxGetDevice(int *device)
{
	*device = 0;
	return 0;
}

int cuStreamIsCapturing(void *stream, int *status)
{
	*status = capturing > 0;
	return 0;
}

/* Nothing may be lost on the way, including floating-point registers. */
int cuTexRefSetMipmapLevelBias(void *texture, float bias)
{
	return texture == (void *)5 ? (int)(bias * 100) : -1;
}

double cuUnheardOf(double a, int b, double c)
{
	return a * b + c;
}

static const struct {
	const char *name;
	void *address;
} others[] = {
	{ "cuDriverGetVersion", (void *)cuDriverGetVersion },
	{ "cuDeviceGetCount", (void *)cuDeviceGetCount },
	{ "cuUnheardOf", (void *)cuUnheardOf },
	{ "cuGetProcAddress", (void *)cuGetProcAddress_v2 },
	{ "cuGetProcAddress_v2", (void *)cuGetProcAddress_v2 },
#define CUDA_CALL(name, arguments, class, number, stream, replay) \
	{ #name, (void *)function_##name },
#include "backends/cuda/calls/cuda_calls.def"
};

int cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags, int *status)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (strcmp(others[i].name, name))
			continue;
		*address = others[i].address;
		if (status)
			*status = 0;
		return 0;
	}
	*address = NULL;
	if (status)
		*status = 1;
	return 500;
}

int cuGetProcAddress(const char *name, void **address, int version, uint64_t flags)
{
	return cuGetProcAddress_v2(name, address, version, flags, NULL);
}
