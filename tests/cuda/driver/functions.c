/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in driver: functions and kernels. A kernel (CUkernel) is its function (CUfunction)
 * under another handle.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/driver/modules.h"

static struct handles function_handles = HANDLES, kernel_handles = HANDLES;

struct function *add_function(struct module *module, const char *name, size_t length)
{
	struct function *function = calloc(1, sizeof(*function));

	function->name = strndup(name, length);
	function->module = module;
	function->code = kernel_find(function->name);
	function->attributes[0] = 1024;
	function->attributes[4] = 32;
	function->attributes[5] = 90;
	function->attributes[6] = settings.compute;
	function->attributes[8] = 49152;
	function->next = module->functions;
	module->functions = function;
	handles_add(&function_handles, function);
	handles_add(&kernel_handles, &function->other);
	return function;
}

void add_parameter(struct function *function, uint32_t index, uint32_t offset, uint32_t size)
{
	if (index >= MOST_PARAMETERS)
		return;
	function->offsets[index] = offset;
	function->sizes[index] = size;
	if (index >= function->param_count)
		function->param_count = index + 1;
	if (offset + size > function->param_bytes)
		function->param_bytes = offset + size;
}

struct function *function_of(void *handle)
{
	struct function *function = NULL;

	if (handles_have(&function_handles, handle))
		function = handle;
	else if (handles_have(&kernel_handles, handle))
		function = (void *)((char *)handle - offsetof(struct function, other));
	return function && !function->module->is_gone ? function : NULL;
}

static struct function *kernel_of(void *handle)
{
	struct function *function = function_of(handle);

	return function && (void *)&function->other == handle ? function : NULL;
}

int load_library(struct module *module)
{
	int error = module->is_library && !module->is_loaded ? refuse_in_capture() : 0;

	module->is_loaded = module->is_loaded || !error;
	return error;
}

API cuKernelGetFunction(void **function, void *kernel)
{
	struct function *found = kernel_of(kernel);

	*function = found;
	return found ? load_library(found->module) : INVALID_HANDLE;
}

API cuKernelGetLibrary(void **library, void *kernel)
{
	struct function *found = kernel_of(kernel);

	if (found)
		*library = found->module;
	return found ? 0 : INVALID_HANDLE;
}

static int get_param(struct function *function, size_t index, size_t *offset, size_t *bytes)
{
	if (!function)
		return INVALID_HANDLE;
	if (index >= function->param_count)
		return INVALID_VALUE;
	*offset = function->offsets[index];
	if (bytes)
		*bytes = function->sizes[index];
	return 0;
}

static struct function *plain_function(void *handle)
{
	struct function *function = function_of(handle);

	return function == handle ? function : NULL;
}

API cuFuncGetParamInfo(void *function, size_t index, size_t *offset, size_t *bytes)
{
	return get_param(plain_function(function), index, offset, bytes);
}

API cuKernelGetParamInfo(void *kernel, size_t index, size_t *offset, size_t *bytes)
{
	return get_param(kernel_of(kernel), index, offset, bytes);
}

API cuFuncGetName(const char **name, void *function)
{
	struct function *found = plain_function(function);

	if (found)
		*name = found->name;
	return found ? 0 : INVALID_HANDLE;
}

API cuKernelGetName(const char **name, void *kernel)
{
	struct function *found = kernel_of(kernel);

	if (found)
		*name = found->name;
	return found ? 0 : INVALID_HANDLE;
}

API cuFuncGetModule(void **module, void *function)
{
	struct function *found = plain_function(function);

	if (found)
		*module = found->module;
	return found ? 0 : INVALID_HANDLE;
}

static int get_attribute(struct function *function, int *value, int attribute)
{
	if (!function)
		return INVALID_HANDLE;
	if (attribute < 0 || attribute > 16)
		return INVALID_VALUE;
	*value = function->attributes[attribute];
	return 0;
}

static int set_attribute(struct function *function, int attribute, int value)
{
	if (!function)
		return INVALID_HANDLE;
	if (attribute < 8 || attribute > 16)
		return INVALID_VALUE;
	function->attributes[attribute] = value;
	return 0;
}

API cuFuncGetAttribute(int *value, int attribute, void *function)
{
	return get_attribute(plain_function(function), value, attribute);
}

API cuFuncSetAttribute(void *function, int attribute, int value)
{
	return set_attribute(plain_function(function), attribute, value);
}

API cuKernelGetAttribute(int *value, int attribute, void *kernel, int device)
{
	(void)device;
	return get_attribute(kernel_of(kernel), value, attribute);
}

API cuKernelSetAttribute(int attribute, int value, void *kernel, int device)
{
	(void)device;
	return set_attribute(kernel_of(kernel), attribute, value);
}

API cuFuncSetCacheConfig(void *function, int config)
{
	struct function *found = plain_function(function);

	if (found)
		found->cache = config;
	return found ? 0 : INVALID_HANDLE;
}

API cuKernelSetCacheConfig(void *kernel, int config, int device)
{
	struct function *found = kernel_of(kernel);

	(void)device;
	if (found)
		found->cache = config;
	return found ? 0 : INVALID_HANDLE;
}

API cuFuncIsLoaded(int *state, void *function)
{
	*state = 1;
	return plain_function(function) ? 0 : INVALID_HANDLE;
}

API cuFuncLoad(void *function)
{
	return plain_function(function) ? 0 : INVALID_HANDLE;
}

API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, void *function, int block,
						size_t shared)
{
	(void)block;
	(void)shared;
	*count = 2;
	return function_of(function) ? 0 : INVALID_HANDLE;
}
