/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: modules and libraries, their functions by name and their variables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/driver/modules.h"

static struct handles module_handles = HANDLES;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void add_variable(struct module *module, const char *name, size_t length, uint64_t address,
		  uint64_t bytes)
{
	struct variable *variable = calloc(1, sizeof(*variable));

	variable->name = strndup(name, length);
	variable->address = address;
	variable->bytes = bytes;
	variable->next = module->variables;
	module->variables = variable;
}

static int load(void **ret_module, const void *image, bool is_library)
{
	struct module *module = calloc(1, sizeof(*module));
	int error;

	if (!image)
		return INVALID_VALUE;
	module->context = current_context();
	module->is_library = is_library;
	if (!module->context && !is_library)
		return INVALID_CONTEXT;
	error = is_library ? 0 : refuse_in_capture();
	if (error)
		return error;
	pthread_mutex_lock(&lock);
	error = load_image(module, image, 0);
	if (!error) {
		handles_add(&module_handles, module);
		*ret_module = module;
	}
	pthread_mutex_unlock(&lock);
	return error;
}

static int load_file(void **ret_module, const char *path, bool is_library)
{
	FILE *file = fopen(path, "rb");
	char *image = calloc(1, 1 << 20);
	int error = FILE_NOT_FOUND;

	if (file && fread(image, 1, (1 << 20) - 1, file) > 4)
		error = load(ret_module, image, is_library);
	if (file)
		fclose(file);
	free(image);
	return error;
}

static struct module *module_of(void *handle)
{
	struct module *module = handle;

	return handles_have(&module_handles, handle) && !module->is_gone ? module : NULL;
}

static int unload(void *handle)
{
	struct module *module = module_of(handle);

	if (!module)
		return INVALID_HANDLE;
	for (struct context *each = all_contexts; each; each = each->next)
		(void)wait_for_context(each);
	for (size_t i = 0; i < module->global_count; i++)
		globals_unmap(module->globals[i]);
	module->is_gone = true;
	return 0;
}

static struct function *find_function(struct module *module, const char *name)
{
	for (struct function *each = module->functions; each; each = each->next) {
		if (!strcmp(each->name, name) && !each->is_kernel)
			return each;
	}
	return NULL;
}

uint64_t module_global(struct module *module, const char *name)
{
	for (struct variable *each = module->variables; each; each = each->next) {
		if (!strcmp(each->name, name))
			return each->address;
	}
	return 0;
}

static int get_global(uint64_t *address, size_t *bytes, void *handle, const char *name)
{
	struct module *module = module_of(handle);

	if (!module)
		return INVALID_HANDLE;
	for (struct variable *each = module->variables; each; each = each->next) {
		if (strcmp(each->name, name))
			continue;
		if (address)
			*address = each->address;
		if (bytes)
			*bytes = each->bytes;
		return 0;
	}
	return NOT_FOUND;
}

/* ---- modules ---- */

API cuModuleLoadData(void **module, const void *image)
{
	return load(module, image, false);
}

API cuModuleLoadDataEx(void **module, const void *image, unsigned int count, int *options,
		       void **values)
{
	(void)count;
	(void)options;
	(void)values;
	return load(module, image, false);
}

API cuModuleLoadFatBinary(void **module, const void *image)
{
	return load(module, image, false);
}

API cuModuleLoad(void **module, const char *path)
{
	return load_file(module, path, false);
}

API cuModuleUnload(void *module)
{
	return unload(module);
}

API cuModuleGetFunction(void **function, void *handle, const char *name)
{
	struct module *module = module_of(handle);

	if (!module)
		return INVALID_HANDLE;
	*function = find_function(module, name);
	return *function ? 0 : NOT_FOUND;
}

API cuModuleGetGlobal_v2(uint64_t *address, size_t *bytes, void *module, const char *name)
{
	return get_global(address, bytes, module, name);
}

API cuModuleGetFunctionCount(unsigned int *count, void *handle)
{
	struct module *module = module_of(handle);

	if (!module)
		return INVALID_HANDLE;
	*count = 0;
	for (struct function *each = module->functions; each; each = each->next)
		++*count;
	return 0;
}

API cuModuleEnumerateFunctions(void **functions, unsigned int most, void *handle)
{
	struct module *module = module_of(handle);
	unsigned int count = 0;

	if (!module)
		return INVALID_HANDLE;
	for (struct function *each = module->functions; each && count < most; each = each->next)
		functions[count++] = each;
	return 0;
}

API cuModuleGetLoadingMode(int *mode)
{
	*mode = 1;
	return 0;
}

/* ---- libraries: a kernel's handle is not that of its function ---- */

/* Each with options for the compiler and for the library, which change nothing here. */
#define LOAD_LIBRARY(name, type, load_from)                                       \
	API name(void **library, const type *from, int *options, void **values,   \
		 unsigned int count, int *library_options, void **library_values, \
		 unsigned int library_count)                                      \
	{                                                                         \
		(void)options;                                                    \
		(void)values;                                                     \
		(void)count;                                                      \
		(void)library_options;                                            \
		(void)library_values;                                             \
		(void)library_count;                                              \
		return load_from(library, from, true);                            \
	}
LOAD_LIBRARY(cuLibraryLoadData, void, load)
LOAD_LIBRARY(cuLibraryLoadFromFile, char, load_file)

API cuLibraryUnload(void *library)
{
	return unload(library);
}

API cuLibraryGetKernel(void **kernel, void *library, const char *name)
{
	struct module *module = module_of(library);
	struct function *function = module ? find_function(module, name) : NULL;

	if (!module || !module->is_library)
		return INVALID_HANDLE;
	*kernel = function ? (void *)&function->other : NULL;
	return function ? 0 : NOT_FOUND;
}

API cuLibraryGetKernelCount(unsigned int *count, void *library)
{
	return cuModuleGetFunctionCount(count, library);
}

API cuLibraryEnumerateKernels(void **kernels, unsigned int most, void *library)
{
	struct module *module = module_of(library);
	unsigned int count = 0;

	if (!module)
		return INVALID_HANDLE;
	for (struct function *each = module->functions; each && count < most; each = each->next)
		kernels[count++] = (void *)&each->other;
	return 0;
}

API cuLibraryGetModule(void **module, void *library)
{
	*module = library;
	return module_of(library) ? load_library(library) : INVALID_HANDLE;
}

API cuLibraryGetGlobal(uint64_t *address, size_t *bytes, void *library, const char *name)
{
	int error = module_of(library) ? load_library(library) : INVALID_HANDLE;

	return error ? error : get_global(address, bytes, library, name);
}

API cuLibraryGetManaged(uint64_t *address, size_t *bytes, void *library, const char *name)
{
	return get_global(address, bytes, library, name);
}
