/* SPDX-License-Identifier: Apache-2.0 */
/* For opencl_features.c: a device, a program, and short forms of common calls. */
#ifndef OPENCL_FEATURES_H
#define OPENCL_FEATURES_H

#define CL_TARGET_OPENCL_VERSION 200
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl_program.h"

enum { N = 10000, BYTES = N * 4 };

static cl_context context;
static cl_device_id devices[4];
static cl_uint device_count;
static cl_command_queue queue;
static cl_program program;
static uint64_t checksum;

static const char *const source =
	"kernel void scale(global uint *data, uint factor) { data[get_global_id(0)] *= factor; }\n"
	"kernel void add(global uint *to, global const uint *from) { to[get_global_id(0)] += from[get_global_id(0)]; }\n"
	"kernel void lookup(global uint *to, constant uint *table) { to[get_global_id(0)] = table[get_global_id(0) % 16]; }\n"
	"typedef struct { uint a; ushort b; uchar c[6]; uint d[5]; } big;\n"
	"kernel void structure(global uint *to, big value) { size_t i = get_global_id(0);\n"
	"	to[i] = value.a + value.b * i + value.c[i % 6] + value.d[i % 5]; }\n"
	"kernel void maybe(global uint *to, global const uint *from) { to[get_global_id(0)] = from ? from[get_global_id(0)] : 7; }\n"
	"kernel void sums(global uint *to, global const uint *from, local uint *part) {\n"
	"	size_t l = get_local_id(0); part[l] = from[get_global_id(0)]; barrier(CLK_LOCAL_MEM_FENCE);\n"
	"	if (l == 0) { uint sum = 0; for (size_t i = 0; i < get_local_size(0); i++) sum += part[i]; to[get_group_id(0)] = sum; } }\n"
	"kernel void three(global uint *to) { size_t i = get_global_id(0) + 100 * get_global_id(1) + 1000 * get_global_id(2);\n"
	"	to[i] = get_global_offset(0) + 2 * get_local_size(0) + i; }\n"
	"struct node { uint value; global struct node *next; };\n"
	"kernel void walk(global struct node *node, global uint *to) { uint sum = 0;\n"
	"	for (; node; node = node->next) sum += node->value; to[0] = sum; }\n";

/* ---- helpers ---- */

static void mix(const uint32_t *data, size_t count)
{
	for (size_t i = 0; i < count; i++)
		checksum = (checksum ^ data[i]) * UINT64_C(0x100000001b3);
}

static void number(uint32_t *data, size_t count, uint32_t from)
{
	for (size_t i = 0; i < count; i++)
		data[i] = from + (uint32_t)i * 3;
}

static cl_mem buffer(cl_mem_flags flags, size_t bytes, void *host)
{
	cl_int rc;
	cl_mem memory = clCreateBuffer(context, flags, bytes, host, &rc);

	check(rc, "clCreateBuffer");
	return memory;
}

/* With the numbers from `from` on. */
static cl_mem numbers(uint32_t from)
{
	static uint32_t data[N];

	number(data, N, from);
	return buffer(CL_MEM_COPY_HOST_PTR, BYTES, data);
}

static void launch(cl_command_queue in, cl_kernel kernel, size_t global, cl_uint count,
		   const cl_event *waits, cl_event *event)
{
	check(clEnqueueNDRangeKernel(in, kernel, 1, NULL, &global, NULL, count, waits, event),
	      "clEnqueueNDRangeKernel");
}

/* data *= factor, on all of it. */
static void scale(cl_command_queue in, cl_mem memory, size_t count, uint32_t factor,
		  cl_uint waiting, const cl_event *waits, cl_event *event)
{
	cl_kernel kernel = kernel_of(program, "scale");

	set(kernel, 0, sizeof(memory), &memory);
	set(kernel, 1, sizeof(factor), &factor);
	launch(in, kernel, count, waiting, waits, event);
	clReleaseKernel(kernel);
}

static void read_all(cl_mem memory, uint32_t *to)
{
	check(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, BYTES, to, 0, NULL, NULL), "read");
	mix(to, N);
}

static cl_command_queue new_queue(cl_device_id device, cl_command_queue_properties properties)
{
	cl_int rc;
	cl_command_queue created = clCreateCommandQueue(context, device, properties, &rc);

	check(rc, "clCreateCommandQueue");
	return created;
}

static cl_program new_program(const char *text)
{
	cl_int rc;
	cl_program created = clCreateProgramWithSource(context, 1, &text, NULL, &rc);

	check(rc, "clCreateProgramWithSource");
	return created;
}

static void build(cl_program created, const char *options)
{
	check(clBuildProgram(created, 0, NULL, options, NULL, NULL), "clBuildProgram");
}

static uint32_t data[N], back[N];

#endif
