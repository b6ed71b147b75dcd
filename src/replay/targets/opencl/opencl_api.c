/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads OpenCL functions from the system's loader, or from a library that was preloaded in its
 * place, as in a program that is linked with OpenCL; names of OpenCL errors.
 */
#include "replay/targets/opencl/opencl_api.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "base/memory.h"

/* With its version: the unversioned name exists only on development systems. */
#define LIBRARY "libOpenCL.so.1"

static const struct function {
	const char *name;
	size_t offset;
	bool must_be;
} functions[] = {
#define FUNCTION(name) { #name, offsetof(struct ts_opencl_api, name), true },
	TS_OPENCL_CALLS(FUNCTION)
#undef FUNCTION
#define FUNCTION(name) { #name, offsetof(struct ts_opencl_api, name), false },
		TS_OPENCL_SVM_CALLS(FUNCTION)
#undef FUNCTION
};

/* Oclgrind's launcher preloads its own OpenCL; the loader's drivers do not work beside that. */
static void *open_library(void)
{
	bool is_preloaded = dlsym(RTLD_DEFAULT, "clGetPlatformIDs") != NULL;

	return dlopen(is_preloaded ? NULL : LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

int ts_opencl_api_open(struct ts_opencl_api *ret_api, struct ts_error *err)
{
	struct ts_opencl_api api = { .library = open_library() };

	if (!api.library)
		return ts_error_set(
			err, TS_ECAP,
			"no OpenCL loader found (%s); install one (Debian: ocl-icd-libopencl1) and a driver, or use --target emulator",
			LIBRARY);
	for (size_t i = 0; i < TS_ARRAY_SIZE(functions); i++) {
		void *symbol = dlsym(api.library, functions[i].name);

		if (!symbol && functions[i].must_be) {
			dlclose(api.library);
			return ts_error_set(err, TS_ECAP,
					    "the OpenCL loader is too old: %s has no '%s'", LIBRARY,
					    functions[i].name);
		}
		/*
		 * ISO C has no conversion from object to function pointers; POSIX guarantees equal
		 * representation.
		 */
		memcpy((char *)&api + functions[i].offset, &symbol, sizeof(symbol));
	}
	*ret_api = api;
	return TS_OK;
}

static const struct error {
	cl_int code;
	const char *name;
} errors[] = {
#define ERROR(name)         \
	{                   \
		name, #name \
	}
	ERROR(CL_DEVICE_NOT_FOUND),
	ERROR(CL_DEVICE_NOT_AVAILABLE),
	ERROR(CL_COMPILER_NOT_AVAILABLE),
	ERROR(CL_MEM_OBJECT_ALLOCATION_FAILURE),
	ERROR(CL_OUT_OF_RESOURCES),
	ERROR(CL_OUT_OF_HOST_MEMORY),
	ERROR(CL_PROFILING_INFO_NOT_AVAILABLE),
	ERROR(CL_MEM_COPY_OVERLAP),
	ERROR(CL_IMAGE_FORMAT_MISMATCH),
	ERROR(CL_IMAGE_FORMAT_NOT_SUPPORTED),
	ERROR(CL_BUILD_PROGRAM_FAILURE),
	ERROR(CL_MAP_FAILURE),
	ERROR(CL_MISALIGNED_SUB_BUFFER_OFFSET),
	ERROR(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
	ERROR(CL_COMPILE_PROGRAM_FAILURE),
	ERROR(CL_LINKER_NOT_AVAILABLE),
	ERROR(CL_LINK_PROGRAM_FAILURE),
	ERROR(CL_DEVICE_PARTITION_FAILED),
	ERROR(CL_KERNEL_ARG_INFO_NOT_AVAILABLE),
	ERROR(CL_INVALID_VALUE),
	ERROR(CL_INVALID_DEVICE_TYPE),
	ERROR(CL_INVALID_PLATFORM),
	ERROR(CL_INVALID_DEVICE),
	ERROR(CL_INVALID_CONTEXT),
	ERROR(CL_INVALID_QUEUE_PROPERTIES),
	ERROR(CL_INVALID_COMMAND_QUEUE),
	ERROR(CL_INVALID_HOST_PTR),
	ERROR(CL_INVALID_MEM_OBJECT),
	ERROR(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR),
	ERROR(CL_INVALID_IMAGE_SIZE),
	ERROR(CL_INVALID_SAMPLER),
	ERROR(CL_INVALID_BINARY),
	ERROR(CL_INVALID_BUILD_OPTIONS),
	ERROR(CL_INVALID_PROGRAM),
	ERROR(CL_INVALID_PROGRAM_EXECUTABLE),
	ERROR(CL_INVALID_KERNEL_NAME),
	ERROR(CL_INVALID_KERNEL_DEFINITION),
	ERROR(CL_INVALID_KERNEL),
	ERROR(CL_INVALID_ARG_INDEX),
	ERROR(CL_INVALID_ARG_VALUE),
	ERROR(CL_INVALID_ARG_SIZE),
	ERROR(CL_INVALID_KERNEL_ARGS),
	ERROR(CL_INVALID_WORK_DIMENSION),
	ERROR(CL_INVALID_WORK_GROUP_SIZE),
	ERROR(CL_INVALID_WORK_ITEM_SIZE),
	ERROR(CL_INVALID_GLOBAL_OFFSET),
	ERROR(CL_INVALID_EVENT_WAIT_LIST),
	ERROR(CL_INVALID_EVENT),
	ERROR(CL_INVALID_OPERATION),
	ERROR(CL_INVALID_GL_OBJECT),
	ERROR(CL_INVALID_BUFFER_SIZE),
	ERROR(CL_INVALID_MIP_LEVEL),
	ERROR(CL_INVALID_GLOBAL_WORK_SIZE),
	ERROR(CL_INVALID_PROPERTY),
	ERROR(CL_INVALID_IMAGE_DESCRIPTOR),
	ERROR(CL_INVALID_COMPILER_OPTIONS),
	ERROR(CL_INVALID_LINKER_OPTIONS),
	ERROR(CL_INVALID_DEVICE_PARTITION_COUNT),
	ERROR(CL_INVALID_PIPE_SIZE),
	ERROR(CL_INVALID_DEVICE_QUEUE),
	ERROR(CL_INVALID_SPEC_ID),
	ERROR(CL_MAX_SIZE_RESTRICTION_EXCEEDED),
	{ -1001, "CL_PLATFORM_NOT_FOUND_KHR" },
	{ -9999, "illegal memory access (-9999, NVIDIA)" },
#undef ERROR
};

const char *ts_opencl_error_name(cl_int code)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(errors); i++)
		if (errors[i].code == code)
			return errors[i].name;
	return "unknown error";
}

int ts_opencl_error_code(cl_int code)
{
	switch (code) {
	case CL_MEM_OBJECT_ALLOCATION_FAILURE:
	case CL_OUT_OF_RESOURCES:
	case CL_OUT_OF_HOST_MEMORY:
		return TS_ENOMEM;
	default:
		return TS_ECAP;
	}
}
