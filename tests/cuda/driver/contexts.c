/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: contexts, and which one is current. */
#include <stdlib.h>

#include "cuda/driver/driver.h"

struct context *all_contexts;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct context *primaries[8];
static unsigned int primary_flags[8];
static __thread struct context *stack[16];
static __thread size_t depth;

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

API cuCtxCreate_v3(struct context **ret_context, void *params, int count, unsigned int flags,
		   int device)
{
	(void)params;
	(void)count;
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
	memory_free_all(context);
	context->is_gone = true;
	if (depth && stack[depth - 1] == context)
		depth--;
	return 0;
}

API cuCtxSynchronize(void)
{
	struct context *context = current_context();
	int error;

	if (!context)
		return INVALID_CONTEXT;
	error = refuse_to_wait(context);
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
	if (limit < 0 || limit > 6 || (limit == 1 && context->prints))
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
