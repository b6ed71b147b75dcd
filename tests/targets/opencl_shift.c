/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel in which work-items of different groups access the same element without order, for
 * tools that find such races in a replay. All elements are equal, so the result is always the same.
 *
 *	opencl_shift [--fixed | --leave]
 *
 * --fixed: reads from one buffer and writes to another. --leave: exits without releasing anything,
 * as many programs do. Prints a checksum. Exit code 1 if a call
 * fails, 77 without a device.
 */
#define CL_TARGET_OPENCL_VERSION 120

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl_program.h"

#define COUNT 16u

/* The race is in line 4. */
static const char *const source = "/* Moves every element by one. */\n"
				  "kernel void shift(global int *from, global int *to) {\n"
				  "  size_t i = get_global_id(0);\n"
				  "  to[(i + 1) % get_global_size(0)] = from[i];\n"
				  "}\n";

static cl_kernel build(cl_context context)
{
	const char *text = source;
	cl_int code;
	cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &code);
	cl_kernel kernel;

	check(code, "clCreateProgramWithSource");
	check(clBuildProgram(program, 0, NULL, "", NULL, NULL), "clBuildProgram");
	kernel = clCreateKernel(program, "shift", &code);
	check(code, "clCreateKernel");
	clReleaseProgram(program);
	return kernel;
}

int main(int argc, char **argv)
{
	int is_fixed = argc > 1 && strcmp(argv[1], "--fixed") == 0;
	int leaves = argc > 1 && strcmp(argv[1], "--leave") == 0;
	int data[COUNT];
	unsigned sum = 0;
	size_t global = COUNT, local = 4;
	cl_device_id device;
	cl_context context;
	cl_command_queue queue;
	cl_kernel kernel;
	cl_mem buffers[2];
	cl_int code;

	find_devices(&device, 1);
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
	check(code, "clCreateContext");
	queue = clCreateCommandQueue(context, device, 0, &code);
	check(code, "clCreateCommandQueue");
	kernel = build(context);
	for (unsigned i = 0; i < COUNT; i++)
		data[i] = 1234567; /* all are equal: the result does not depend on who is first */
	for (int i = 0; i < 2; i++) {
		buffers[i] = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
					    sizeof(data), data, &code);
		check(code, "clCreateBuffer");
		check(clSetKernelArg(kernel, (cl_uint)i, sizeof(cl_mem),
				     &buffers[is_fixed ? i : 0]),
		      "clSetKernelArg");
	}
	check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL),
	      "clEnqueueNDRangeKernel");
	check(clEnqueueReadBuffer(queue, buffers[is_fixed], CL_TRUE, 0, sizeof(data), data, 0, NULL,
				  NULL),
	      "clEnqueueReadBuffer");
	for (unsigned i = 0; i < COUNT; i++)
		sum = sum * 31 + (unsigned)data[i];
	printf("checksum %08x\n", sum);
	if (leaves)
		return 0;
	for (int i = 0; i < 2; i++)
		clReleaseMemObject(buffers[i]);
	clReleaseKernel(kernel);
	clReleaseCommandQueue(queue);
	clReleaseContext(context);
	return 0;
}
