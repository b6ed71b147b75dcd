/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: settings, devices and contexts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cuda/driver/driver.h"

struct settings settings;
bool is_started;
struct context *all_contexts;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct context *primaries[8];
static unsigned int primary_flags[8];
static __thread struct context *stack[16];
static __thread size_t depth;

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static void occupy(const char *list)
{
	while (list && *list) {
		char *end;
		uint64_t address = strtoull(list, &end, 0);

		if (end == list)
			break;
		(void)mmap((void *)address, 4096, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		list = *end ? end + 1 : end;
	}
}

API cuInit(unsigned int flags)
{
	struct timespec now;

	if (flags)
		return INVALID_VALUE;
	pthread_mutex_lock(&lock);
	if (!is_started) {
		clock_gettime(CLOCK_REALTIME, &now);
		settings.devices = (int)number("STAND_IN_DEVICES", 1);
		settings.version = (int)number("STAND_IN_DRIVER", 13000);
		settings.compute = (int)number("STAND_IN_COMPUTE", 90);
		settings.memory = number("STAND_IN_MEMORY", (uint64_t)1 << 30);
		settings.own = number("STAND_IN_OWN", 0);
		settings.globals = number("STAND_IN_GLOBALS", 0);
		settings.no_vmm = number("STAND_IN_NO_VMM", 0);
		settings.pageable = number("STAND_IN_PAGEABLE", 0);
		settings.lazy = number("STAND_IN_LAZY", 0);
		settings.hangs = getenv("STAND_IN_HANG");
		settings.name = getenv("STAND_IN_NAME");
		settings.seed = number("STAND_IN_SEED",
				       (uint64_t)now.tv_nsec * 1000003 + (uint64_t)getpid());
		occupy(getenv("STAND_IN_OCCUPIED"));
		is_started = true;
	}
	pthread_mutex_unlock(&lock);
	return settings.devices ? 0 : 100;
}

API cuDriverGetVersion(int *version)
{
	*version = (int)number("STAND_IN_DRIVER", 13000);
	return 0;
}

static bool is_device(int device)
{
	return is_started && device >= 0 && device < settings.devices;
}

API cuDeviceGetCount(int *count)
{
	*count = settings.devices;
	return is_started ? 0 : NOT_INITIALIZED;
}

API cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return !is_started ? NOT_INITIALIZED : is_device(ordinal) ? 0 : INVALID_DEVICE;
}

API cuDeviceGetName(char *name, int bytes, int device)
{
	if (!is_device(device))
		return INVALID_DEVICE;
	snprintf(name, (size_t)bytes, "%s", settings.name ? settings.name : "Stand-in H1");
	return 0;
}

API cuDeviceGetUuid_v2(uint8_t *uuid, int device)
{
	for (int i = 0; i < 16; i++)
		uuid[i] = (uint8_t)(i * 17 + device);
	return is_device(device) ? 0 : INVALID_DEVICE;
}

API cuDeviceGetUuid(uint8_t *uuid, int device)
{
	return cuDeviceGetUuid_v2(uuid, device);
}

API cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	*bytes = settings.memory;
	return is_device(device) ? 0 : INVALID_DEVICE;
}

API cuDeviceGetPCIBusId(char *text, int bytes, int device)
{
	snprintf(text, (size_t)bytes, "0000:%02x:00.0", device + 1);
	return is_device(device) ? 0 : INVALID_DEVICE;
}

API cuDeviceCanAccessPeer(int *can, int device, int peer)
{
	*can = device != peer;
	return 0;
}

API cuDeviceGetAttribute(int *value, int attribute, int device)
{
	static const struct {
		int attribute, value;
	} known[] = {
		{ 1, 1024 },       { 2, 1024 },    { 3, 1024 },        { 4, 64 },
		{ 5, 2147483647 }, { 6, 65535 },   { 7, 65535 },       { 8, 49152 },
		{ 9, 65536 },      { 10, 32 },     { 11, 2147483647 }, { 12, 65536 },
		{ 13, 1980000 },   { 14, 512 },    { 16, 132 },        { 31, 1 },
		{ 36, 2619000 },   { 37, 5120 },   { 38, 1048576 },    { 39, 2048 },
		{ 40, 3 },         { 41, 1 },      { 50, 0 },          { 78, 1 },
		{ 79, 1 },         { 80, 1 },      { 81, 233472 },     { 82, 65536 },
		{ 83, 1 },         { 89, 1 },      { 90, 1 },          { 91, 1 },
		{ 95, 1 },         { 97, 232448 }, { 103, 1 },         { 106, 32 },
		{ 115, 1 },        { 122, 1 },     { 124, 1 },
	};

	if (!is_device(device))
		return INVALID_DEVICE;
	*value = 0;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].attribute == attribute)
			*value = known[i].value;
	}
	if (attribute == 33 || attribute == 34)
		*value = device;
	if (attribute == 75)
		*value = settings.compute / 10;
	if (attribute == 76)
		*value = settings.compute % 10;
	if (attribute == 88)
		*value = settings.pageable;
	if (attribute == 102)
		*value = !settings.no_vmm;
	return attribute > 0 ? 0 : INVALID_VALUE;
}

API cuGetErrorName(int error, const char **name)
{
	static const struct {
		int error;
		const char *name;
	} names[] = {
		{ 0, "CUDA_SUCCESS" },
		{ 1, "CUDA_ERROR_INVALID_VALUE" },
		{ 2, "CUDA_ERROR_OUT_OF_MEMORY" },
		{ 3, "CUDA_ERROR_NOT_INITIALIZED" },
		{ 100, "CUDA_ERROR_NO_DEVICE" },
		{ 200, "CUDA_ERROR_INVALID_IMAGE" },
		{ 201, "CUDA_ERROR_INVALID_CONTEXT" },
		{ 209, "CUDA_ERROR_NO_BINARY_FOR_GPU" },
		{ 400, "CUDA_ERROR_INVALID_HANDLE" },
		{ 500, "CUDA_ERROR_NOT_FOUND" },
		{ 600, "CUDA_ERROR_NOT_READY" },
		{ 700, "CUDA_ERROR_ILLEGAL_ADDRESS" },
		{ 801, "CUDA_ERROR_NOT_SUPPORTED" },
	};

	*name = NULL;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].error == error)
			*name = names[i].name;
	}
	return *name ? 0 : INVALID_VALUE;
}

API cuGetErrorString(int error, const char **text)
{
	return cuGetErrorName(error, text);
}

/* ---- contexts ---- */

struct context *current_context(void)
{
	struct context *context = depth ? stack[depth - 1] : NULL;

	return context && !context->is_gone ? context : NULL;
}

bool is_context(const void *handle)
{
	for (struct context *each = all_contexts; each; each = each->next) {
		if (each == handle)
			return !each->is_gone;
	}
	return false;
}

/* `lock` is held. */
static struct context *context_new(int device, unsigned int flags)
{
	static uint64_t id;
	struct context *context = calloc(1, sizeof(*context));

	context->device = device;
	context->flags = flags;
	context->limits[0] = 1024;
	context->limits[1] = 1 << 20;
	context->limits[2] = 8 << 20;
	context->limits[3] = 2;
	context->limits[4] = 2048;
	context->limits[5] = 128;
	context->id = ++id;
	context->next = all_contexts;
	__atomic_store_n(&all_contexts, context, __ATOMIC_RELEASE);
	return context;
}

API cuDevicePrimaryCtxRetain(void **ret_context, int device)
{
	if (!is_device(device))
		return INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	if (!primaries[device] || primaries[device]->is_gone) {
		primaries[device] = context_new(device, primary_flags[device]);
		primaries[device]->is_primary = true;
	}
	primaries[device]->users++;
	*ret_context = primaries[device];
	pthread_mutex_unlock(&lock);
	return 0;
}

API cuDevicePrimaryCtxReset_v2(int device)
{
	if (!is_device(device))
		return INVALID_DEVICE;
	if (primaries[device] && !primaries[device]->is_gone) {
		(void)wait_for_context(primaries[device]);
		primaries[device]->is_gone = true;
	}
	return 0;
}

API cuDevicePrimaryCtxReset(int device)
{
	return cuDevicePrimaryCtxReset_v2(device);
}

API cuDevicePrimaryCtxRelease_v2(int device)
{
	bool is_last = false, is_used;

	pthread_mutex_lock(&lock);
	is_used = is_device(device) && primaries[device] && primaries[device]->users;
	if (is_used)
		is_last = --primaries[device]->users == 0;
	pthread_mutex_unlock(&lock);
	return !is_used ? INVALID_CONTEXT : is_last ? cuDevicePrimaryCtxReset_v2(device) : 0;
}

API cuDevicePrimaryCtxRelease(int device)
{
	return cuDevicePrimaryCtxRelease_v2(device);
}

API cuDevicePrimaryCtxSetFlags_v2(int device, unsigned int flags)
{
	if (!is_device(device))
		return INVALID_DEVICE;
	primary_flags[device] = flags;
	if (primaries[device])
		primaries[device]->flags = flags;
	return 0;
}

API cuDevicePrimaryCtxGetState(int device, unsigned int *flags, int *active)
{
	if (!is_device(device))
		return INVALID_DEVICE;
	*flags = primary_flags[device];
	*active = primaries[device] && !primaries[device]->is_gone;
	return 0;
}

API cuCtxPushCurrent_v2(struct context *context)
{
	if (!is_context(context) || depth >= sizeof(stack) / sizeof(stack[0]))
		return INVALID_CONTEXT;
	stack[depth++] = context;
	return 0;
}

API cuCtxPopCurrent_v2(struct context **context)
{
	if (!depth)
		return INVALID_CONTEXT;
	depth--;
	if (context)
		*context = stack[depth];
	return 0;
}

API cuCtxSetCurrent(struct context *context)
{
	if (context && !is_context(context))
		return INVALID_CONTEXT;
	if (depth)
		depth--;
	if (context)
		stack[depth++] = context;
	return 0;
}

API cuCtxGetCurrent(struct context **context)
{
	*context = depth ? stack[depth - 1] : NULL;
	return is_started ? 0 : NOT_INITIALIZED;
}

API cuCtxGetDevice(int *device)
{
	struct context *context = current_context();

	if (!context)
		return INVALID_CONTEXT;
	*device = context->device;
	return 0;
}

static int create(struct context **ret_context, unsigned int flags, int device)
{
	if (!is_device(device))
		return INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	*ret_context = context_new(device, flags);
	pthread_mutex_unlock(&lock);
	return cuCtxPushCurrent_v2(*ret_context);
}

API cuCtxCreate_v2(struct context **ret_context, unsigned int flags, int device)
{
	return create(ret_context, flags, device);
}

API cuCtxCreate_v4(struct context **ret_context, void *params, unsigned int flags, int device)
{
	return params ? NOT_SUPPORTED : create(ret_context, flags, device);
}

API cuCtxDestroy_v2(struct context *context)
{
	if (!is_context(context) || context->is_primary)
		return INVALID_CONTEXT;
	(void)wait_for_context(context);
	context->is_gone = true;
	if (depth && stack[depth - 1] == context)
		depth--;
	return 0;
}

API cuCtxSynchronize(void)
{
	struct context *context = current_context();
	int error = refuse_in_capture();

	if (!context)
		return INVALID_CONTEXT;
	return error ? error : wait_for_context(context);
}

API cuCtxGetFlags(unsigned int *flags)
{
	struct context *context = current_context();

	if (!context)
		return INVALID_CONTEXT;
	*flags = context->flags;
	return 0;
}

API cuCtxSetFlags(unsigned int flags)
{
	struct context *context = current_context();

	if (!context)
		return INVALID_CONTEXT;
	context->flags = flags;
	return 0;
}

API cuCtxGetId(struct context *context, uint64_t *id)
{
	if (!context)
		context = current_context();
	if (!context || !is_context(context))
		return INVALID_CONTEXT;
	*id = context->id;
	return 0;
}

API cuCtxGetApiVersion(struct context *context, unsigned int *version)
{
	(void)context;
	*version = 3020;
	return 0;
}

API cuCtxSetLimit(int limit, size_t value)
{
	struct context *context = current_context();

	if (!context)
		return INVALID_CONTEXT;
	if (limit < 0 || limit > 6)
		return INVALID_VALUE;
	context->limits[limit] = value;
	return 0;
}

API cuCtxGetLimit(size_t *value, int limit)
{
	struct context *context = current_context();

	if (!context)
		return INVALID_CONTEXT;
	if (limit < 0 || limit > 6)
		return INVALID_VALUE;
	*value = context->limits[limit];
	return 0;
}

API cuCtxGetCacheConfig(int *config)
{
	struct context *context = current_context();

	if (!context)
		return INVALID_CONTEXT;
	*config = context->cache;
	return 0;
}

API cuCtxSetCacheConfig(int config)
{
	struct context *context = current_context();

	if (!context)
		return INVALID_CONTEXT;
	context->cache = config;
	return 0;
}

API cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return 0;
}

API cuGetExportTable(const void **table, const void *id)
{
	static const uintptr_t entries[64] = { sizeof(entries) };

	*table = entries;
	return id ? 0 : INVALID_VALUE;
}
