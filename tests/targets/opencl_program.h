/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For programs that use OpenCL: a call that fails ends them, as does a machine without a device.
 * They define CL_TARGET_OPENCL_VERSION first.
 */
#ifndef OPENCL_PROGRAM_H
#define OPENCL_PROGRAM_H

#include <CL/cl.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static const char *feature; /* what is running; NULL: the program has one purpose */

/* The start of a message. */
static inline void complain(void)
{
	fprintf(stderr, "%s: %s%s", program_invocation_short_name, feature ? feature : "",
		feature ? ": " : "");
}

static inline void check(cl_int code, const char *what)
{
	if (code == CL_SUCCESS)
		return;
	complain();
	fprintf(stderr, "%s: OpenCL error %d\n", what, code);
	exit(1);
}

static inline void expect(bool is_so, const char *what)
{
	if (is_so)
		return;
	complain();
	fprintf(stderr, "%s is wrong\n", what);
	exit(1);
}

/* Exit code 77 means skipped. */
static inline void skip(const char *why)
{
	printf("skip: %s\n", why);
	exit(77);
}

/* Those of the first platform that has any, at most so many. */
static inline cl_uint find_devices(cl_device_id *ret_devices, cl_uint most)
{
	cl_platform_id platforms[8];
	cl_uint count = 0, found;

	clGetPlatformIDs(8, platforms, &count);
	for (cl_uint i = 0; i < count && i < 8; i++) {
		found = 0;
		if (!clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, most, ret_devices, &found) &&
		    found > 0)
			return found < most ? found : most;
	}
	skip("no OpenCL device");
	return 0;
}

static inline cl_kernel kernel_of(cl_program of, const char *name)
{
	cl_int rc;
	cl_kernel kernel = clCreateKernel(of, name, &rc);

	check(rc, name);
	return kernel;
}

static inline void set(cl_kernel kernel, cl_uint index, size_t bytes, const void *value)
{
	check(clSetKernelArg(kernel, index, bytes, value), "clSetKernelArg");
}

#endif
