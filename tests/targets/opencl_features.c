/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that a command stream must support (docs/replay.md, 3.3), one small function each:
 *
 *	opencl_features            all that can be replayed
 *	opencl_features map svm    these
 *	opencl_features --list     names; those with a * cannot be replayed and run only by name
 *
 * Prints a checksum for each, the same in each run. Exit code 1 if a result is wrong, 77 without a
 * device.
 */
#define CL_TARGET_OPENCL_VERSION 200
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static cl_kernel kernel_of(cl_program of, const char *name)
{
	cl_int rc;
	cl_kernel kernel = clCreateKernel(of, name, &rc);

	check(rc, name);
	return kernel;
}

static void set(cl_kernel kernel, cl_uint index, size_t bytes, const void *value)
{
	check(clSetKernelArg(kernel, index, bytes, value), "clSetKernelArg");
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

/* ---- copies ---- */

static void copies(void)
{
	cl_mem a = buffer(CL_MEM_READ_WRITE, BYTES, NULL), b = numbers(5);
	uint32_t pattern[4] = { 1, 2, 3, 4 };

	number(data, N, 1);
	check(clEnqueueWriteBuffer(queue, a, CL_FALSE, 0, BYTES, data, 0, NULL, NULL), "write");
	check(clEnqueueCopyBuffer(queue, a, b, 400, 800, 1200, 0, NULL, NULL), "copy");
	check(clEnqueueFillBuffer(queue, b, pattern, 16, 4096, 1600, 0, NULL, NULL), "fill");
	check(clEnqueueFillBuffer(queue, b, pattern, 1, 8003, 5, 0, NULL, NULL), "fill");
	check(clEnqueueWriteBuffer(queue, b, CL_TRUE, 12000, 8, pattern, 0, NULL, NULL), "write");
	read_all(b, back);
	expect(back[200] == data[100] && back[1024] == 1 && back[1027] == 4 && back[3001] == 2,
	       "what was copied");
	clReleaseMemObject(a);
	clReleaseMemObject(b);
}

static void rectangles(void)
{
	size_t to[3] = { 8, 2, 1 }, from[3] = { 4, 1, 0 }, region[3] = { 16, 3, 2 },
	       zero[3] = { 0, 0, 0 }, row[3] = { 16, 1, 1 };
	cl_mem a = numbers(9), b = numbers(100);
	cl_int rc;

	number(data, N, 77);
	memset(back, 0, BYTES);
	check(clEnqueueWriteBufferRect(queue, a, CL_FALSE, to, from, region, 64, 640, 32, 320, data,
				       0, NULL, NULL),
	      "write rect");
	check(clEnqueueCopyBufferRect(queue, a, b, to, from, region, 64, 640, 40, 0, 0, NULL, NULL),
	      "copy rect");
	check(clEnqueueReadBufferRect(queue, b, CL_FALSE, from, to, region, 40, 0, 128, 1280, back,
				      0, NULL, NULL),
	      "read rect");
	check(clFinish(queue), "clFinish");
	mix(back, N);
	check(clEnqueueReadBufferRect(queue, a, CL_TRUE, zero, zero, region, 0, 0, 0, 0, back, 0,
				      NULL, NULL),
	      "read rect");
	mix(back, N);
	/* One row: any pitch, which a driver may refuse. */
	rc = clEnqueueReadBufferRect(queue, a, CL_TRUE, zero, zero, row, (size_t)1 << 63, 0,
				     (size_t)1 << 63, (size_t)1 << 63, back, 0, NULL, NULL);
	if (rc != CL_INVALID_VALUE)
		check(rc, "read rect");
	read_all(a, back);
	read_all(b, back);
	clReleaseMemObject(a);
	clReleaseMemObject(b);
}

static void views(void)
{
	cl_mem root = numbers(3), half, third;
	cl_buffer_region where = { 4096, 8192 }, where2 = { 16384, 4096 };
	cl_int rc;

	half = clCreateSubBuffer(root, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &where,
				 &rc);
	check(rc, "clCreateSubBuffer");
	third = clCreateSubBuffer(root, 0, CL_BUFFER_CREATE_TYPE_REGION, &where2, &rc);
	check(rc, "clCreateSubBuffer");
	scale(queue, half, 2048, 5, 0, NULL, NULL);
	check(clEnqueueCopyBuffer(queue, half, third, 64, 128, 256, 0, NULL, NULL), "copy");
	number(data, N, 900);
	check(clEnqueueWriteBuffer(queue, third, CL_TRUE, 1024, 64, data, 0, NULL, NULL), "write");
	check(clEnqueueReadBuffer(queue, half, CL_TRUE, 100, 400, back, 0, NULL, NULL), "read");
	mix(back, 100);
	/* The root buffer is released first, and lives on in its views. */
	read_all(root, back);
	expect(back[1024] == (3 + 3 * 1024) * 5 && back[4352] == 900, "a view");
	clReleaseMemObject(root);
	scale(queue, third, 1024, 2, 0, NULL, NULL);
	check(clEnqueueReadBuffer(queue, third, CL_TRUE, 0, 4096, back, 0, NULL, NULL), "read");
	mix(back, 1024);
	clReleaseMemObject(half);
	clReleaseMemObject(third);
}

/* A write from the target of a read: the read must be complete. */
static void overlap(void)
{
	cl_mem a = numbers(1), b = numbers(2);

	scale(queue, a, N, 3, 0, NULL, NULL);
	check(clEnqueueReadBuffer(queue, a, CL_FALSE, 0, BYTES, data, 0, NULL, NULL), "read");
	check(clEnqueueWriteBuffer(queue, b, CL_FALSE, 0, BYTES, data, 0, NULL, NULL), "write");
	/* Twice to the same location: only the second is visible. */
	check(clEnqueueReadBuffer(queue, b, CL_FALSE, 0, BYTES, back, 0, NULL, NULL), "read");
	scale(queue, b, N, 7, 0, NULL, NULL);
	check(clEnqueueReadBuffer(queue, b, CL_FALSE, 0, BYTES, back, 0, NULL, NULL), "read");
	check(clFinish(queue), "clFinish");
	expect(back[10] == 31 * 3 * 7, "what was read");
	mix(back, N);
	clReleaseMemObject(a);
	clReleaseMemObject(b);
}

/*
 * More than one record, one row of a blob, and one read of a check hold; also in a queue that is
 * out of order, where the host may not read, and released at once.
 */
static void big(void)
{
	size_t count = 700000;
	uint32_t *many = malloc(4 * count);
	cl_command_queue other = new_queue(devices[0], CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	cl_mem a = buffer(CL_MEM_READ_WRITE, 4 * count, NULL);
	cl_mem hidden_one = buffer(CL_MEM_HOST_NO_ACCESS, 4 * count, NULL);
	cl_event scaled;

	number(many, count, 11);
	check(clEnqueueWriteBuffer(queue, a, CL_TRUE, 0, 4 * count, many, 0, NULL, NULL), "write");
	scale(queue, a, count, 13, 0, NULL, NULL);
	check(clEnqueueReadBuffer(queue, a, CL_TRUE, 0, 4 * count, many, 0, NULL, NULL), "read");
	mix(many, count);
	scale(other, a, count, 7, 0, NULL, &scaled);
	check(clEnqueueCopyBuffer(other, a, hidden_one, 0, 0, 4 * count, 1, &scaled, NULL), "copy");
	check(clFinish(other), "clFinish");
	scale(queue, hidden_one, count, 3, 0, NULL, NULL);
	check(clEnqueueCopyBuffer(queue, hidden_one, a, 4, 0, 4 * count - 4, 0, NULL, NULL),
	      "copy");
	scale(queue, a, count, 5, 0, NULL, NULL);
	clReleaseMemObject(a);
	clReleaseMemObject(hidden_one);
	clReleaseEvent(scaled);
	clReleaseCommandQueue(other);
	free(many);
}

/* ---- the host's memory ---- */

static uint32_t *map(cl_mem memory, cl_bool blocking, cl_map_flags flags, size_t offset,
		     size_t bytes, cl_event *event)
{
	cl_int rc;
	void *mapped = clEnqueueMapBuffer(queue, memory, blocking, flags, offset, bytes, 0, NULL,
					  event, &rc);

	check(rc, "clEnqueueMapBuffer");
	return mapped;
}

static void unmap(cl_mem memory, void *mapped)
{
	check(clEnqueueUnmapMemObject(queue, memory, mapped, 0, NULL, NULL), "unmap");
}

static void maps(void)
{
	cl_mem a = numbers(1), b = buffer(CL_MEM_ALLOC_HOST_PTR, BYTES, NULL);
	uint32_t *first, *second, *again;
	cl_event event;

	/* Two regions at once, one of them not waited for yet. */
	first = map(a, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 4096, 4096, NULL);
	second = map(a, CL_FALSE, CL_MAP_WRITE, 16384, 1024, &event);
	check(clWaitForEvents(1, &event), "clWaitForEvents");
	clReleaseEvent(event);
	mix(first, 1024);
	for (int i = 0; i < 256; i++) {
		first[i] += second[i];
		second[i] = 4u * (uint32_t)i;
	}
	unmap(a, second);
	unmap(a, first);
	scale(queue, a, N, 3, 0, NULL, NULL);
	/* All of it anew. */
	first = map(b, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0, BYTES, NULL);
	number(first, N, 40);
	unmap(b, first);
	/* The same region twice, read only. */
	first = map(a, CL_FALSE, CL_MAP_READ, 0, 8192, NULL);
	again = map(a, CL_FALSE, CL_MAP_READ, 0, 8192, NULL);
	check(clFinish(queue), "clFinish");
	expect(first[0] == 3 && again[1024] == first[1024], "what is mapped");
	mix(again, 2048);
	unmap(a, first);
	unmap(a, again);
	scale(queue, b, N, 2, 0, NULL, NULL);
	read_all(a, back);
	read_all(b, back);
	clReleaseMemObject(a);
	clReleaseMemObject(b);
}

static void shared(void)
{
	uint32_t *host = aligned_alloc(4096, 10 * 4096);
	cl_mem a, b = buffer(CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR, BYTES, data);
	cl_device_type type = 0;
	uint32_t *mapped;

	number(host, N, 6);
	a = buffer(CL_MEM_USE_HOST_PTR, BYTES, host);
	scale(queue, a, N, 2, 0, NULL, NULL);
	check(clFinish(queue), "clFinish");
	mapped = map(a, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, BYTES, NULL);
	mix(mapped, N);
	for (int i = 5000; i < 5010; i++)
		mapped[i] = 1;
	unmap(a, mapped);
	scale(queue, a, N, 3, 0, NULL, NULL);
	check(clFinish(queue), "clFinish");
	/* Not allowed by any specification, but common: devices that share memory see it. */
	mapped = map(a, CL_TRUE, CL_MAP_READ, 0, BYTES, NULL);
	unmap(a, mapped);
	check(clFinish(queue), "clFinish");
	clGetDeviceInfo(devices[0], CL_DEVICE_TYPE, sizeof(type), &type, NULL);
	if (type & CL_DEVICE_TYPE_CPU) {
		host[3000] = 17;
		host[9999] = 18;
	}
	check(clEnqueueCopyBuffer(queue, a, b, 0, 0, BYTES, 0, NULL, NULL), "copy");
	read_all(b, back);
	read_all(a, back);
	clReleaseMemObject(a);
	clReleaseMemObject(b);
	free(host);
}

/* Memory that the host may not read. */
static void hidden(void)
{
	cl_mem a = buffer(CL_MEM_HOST_NO_ACCESS, BYTES, NULL);
	cl_mem b = buffer(CL_MEM_HOST_WRITE_ONLY, BYTES, NULL), c = numbers(8);

	number(data, N, 4);
	check(clEnqueueWriteBuffer(queue, b, CL_TRUE, 0, BYTES, data, 0, NULL, NULL), "write");
	check(clEnqueueCopyBuffer(queue, b, a, 0, 0, BYTES, 0, NULL, NULL), "copy");
	scale(queue, a, N, 5, 0, NULL, NULL);
	check(clEnqueueCopyBuffer(queue, a, c, 0, 0, BYTES, 0, NULL, NULL), "copy");
	read_all(c, back);
	clReleaseMemObject(a);
	clReleaseMemObject(b);
	clReleaseMemObject(c);
}

/* ---- SVM ---- */

static bool has_svm(cl_device_svm_capabilities which)
{
	cl_device_svm_capabilities can = 0;

	clGetDeviceInfo(devices[0], CL_DEVICE_SVM_CAPABILITIES, sizeof(can), &can, NULL);
	return can & which;
}

static void svm(void)
{
	uint32_t *a, *b, pattern[2] = { 5, 6 }, factor = 3;
	cl_kernel kernel = kernel_of(program, "scale");

	if (!has_svm(CL_DEVICE_SVM_COARSE_GRAIN_BUFFER))
		return;
	a = clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0);
	b = clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0);
	expect(a && b, "clSVMAlloc");
	check(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE, a, BYTES, 0, NULL, NULL), "svm map");
	number(a, N, 50);
	check(clEnqueueSVMUnmap(queue, a, 0, NULL, NULL), "svm unmap");
	check(clSetKernelArgSVMPointer(kernel, 0, a), "clSetKernelArgSVMPointer");
	set(kernel, 1, sizeof(factor), &factor);
	launch(queue, kernel, N, 0, NULL, NULL);
	check(clEnqueueSVMMemFill(queue, b, pattern, 8, BYTES, 0, NULL, NULL), "svm fill");
	check(clEnqueueSVMMemcpy(queue, CL_FALSE, b + 100, a + 50, 4000, 0, NULL, NULL),
	      "svm copy");
	number(data, N, 3);
	check(clEnqueueSVMMemcpy(queue, CL_TRUE, b + 2000, data, 400, 0, NULL, NULL), "svm copy");
	check(clEnqueueSVMMemcpy(queue, CL_FALSE, back, b, BYTES, 0, NULL, NULL), "svm copy");
	/* From the middle on. */
	check(clSetKernelArgSVMPointer(kernel, 0, b + 3000), "clSetKernelArgSVMPointer");
	launch(queue, kernel, 100, 0, NULL, NULL);
	check(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, b, BYTES, 0, NULL, NULL), "svm map");
	mix(back, N);
	mix(b, N);
	expect(back[100] == 200 * 3 && b[3001] == 18, "SVM");
	check(clEnqueueSVMUnmap(queue, b, 0, NULL, NULL), "svm unmap");
	check(clFinish(queue), "clFinish");
	clReleaseKernel(kernel);
	clSVMFree(context, a);
	check(clEnqueueSVMFree(queue, 1, (void **)&b, NULL, NULL, 0, NULL, NULL), "svm free");
	check(clFinish(queue), "clFinish");
}

struct node {
	uint32_t value;
	struct node *next;
};

/* Addresses inside memory. */
static void pointers(void)
{
	struct node *a, *b;
	cl_mem to = numbers(1);
	cl_kernel kernel = kernel_of(program, "walk");

	if (!has_svm(CL_DEVICE_SVM_COARSE_GRAIN_BUFFER))
		return;
	a = clSVMAlloc(context, CL_MEM_READ_WRITE, sizeof(*a), 0);
	b = clSVMAlloc(context, CL_MEM_READ_WRITE, sizeof(*b), 0);
	check(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE, a, sizeof(*a), 0, NULL, NULL), "map");
	check(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE, b, sizeof(*b), 0, NULL, NULL), "map");
	*a = (struct node){ 4, b };
	*b = (struct node){ 5, NULL };
	check(clEnqueueSVMUnmap(queue, a, 0, NULL, NULL), "unmap");
	check(clEnqueueSVMUnmap(queue, b, 0, NULL, NULL), "unmap");
	check(clSetKernelArgSVMPointer(kernel, 0, a), "clSetKernelArgSVMPointer");
	set(kernel, 1, sizeof(to), &to);
	check(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(b), &b),
	      "clSetKernelExecInfo");
	launch(queue, kernel, 1, 0, NULL, NULL);
	read_all(to, back);
	expect(back[0] == 9, "the sum");
	clSVMFree(context, a);
	clSVMFree(context, b);
	clReleaseKernel(kernel);
	clReleaseMemObject(to);
}

/* ---- arguments ---- */

static void arguments(void)
{
	struct {
		uint32_t a;
		uint16_t b;
		uint8_t c[6];
		uint32_t d[5];
	} value = { 7, 300, { 1, 2, 3, 4, 5, 6 }, { 10, 20, 30, 40, 50 } };
	cl_mem a = numbers(0), b = numbers(1), table = buffer(CL_MEM_COPY_HOST_PTR, 64, &data[30]);
	cl_mem none = NULL;
	const size_t no_items = 0;
	cl_kernel kernel = kernel_of(program, "structure"), copy;
	size_t global[3] = { 10, 5, 3 }, local[3] = { 5, 5, 1 }, offset[3] = { 4, 2, 1 }, all = N,
	       group = 100;

	set(kernel, 0, sizeof(a), &a);
	set(kernel, 1, sizeof(value), &value);
	launch(queue, kernel, N, 0, NULL, NULL);
	value.a = 99; /* it was frozen */
	clReleaseKernel(kernel);
	kernel = kernel_of(program, "maybe");
	set(kernel, 0, sizeof(b), &b);
	set(kernel, 1, sizeof(none), &none);
	launch(queue, kernel, N / 2, 0, NULL, NULL);
	clReleaseKernel(kernel);
	kernel = kernel_of(program, "add");
	set(kernel, 0, sizeof(a), &a);
	set(kernel, 1, sizeof(b), &b);
	launch(queue, kernel, N, 0, NULL, NULL);
	/* Set once, launched twice. */
	launch(queue, kernel, 10, 0, NULL, NULL);
	/* No work items: some drivers refuse that, so these have no event and no checked result. */
	clEnqueueNDRangeKernel(queue, kernel, 1, NULL, NULL, NULL, 0, NULL, NULL);
	clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &no_items, NULL, 0, NULL, NULL);
	clReleaseKernel(kernel);
	kernel = kernel_of(program, "sums");
	set(kernel, 0, sizeof(b), &b);
	set(kernel, 1, sizeof(a), &a);
	set(kernel, 2, 4 * group, NULL);
	check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &all, &group, 0, NULL, NULL), "sums");
	clReleaseKernel(kernel);
	kernel = kernel_of(program, "lookup");
	set(kernel, 0, sizeof(a), &a);
	set(kernel, 1, sizeof(table), &table);
	launch(queue, kernel, 32, 0, NULL, NULL);
	clReleaseKernel(kernel);
	copy = kernel_of(program, "three");
	set(copy, 0, sizeof(b), &b);
	check(clEnqueueNDRangeKernel(queue, copy, 3, offset, global, local, 0, NULL, NULL),
	      "three");
	clReleaseKernel(copy);
	read_all(a, back);
	read_all(b, back);
	clReleaseMemObject(a);
	clReleaseMemObject(b);
	clReleaseMemObject(table);
}

/* ---- order ---- */

static void out_of_order(void)
{
	cl_command_queue ooo = new_queue(devices[0], CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	cl_mem a = numbers(1), b = numbers(2);
	cl_event events[4], marker;

	scale(ooo, a, N, 3, 0, NULL, &events[0]);
	scale(ooo, b, N, 5, 0, NULL, &events[1]);
	check(clEnqueueMarkerWithWaitList(ooo, 1, events, &marker), "marker");
	check(clEnqueueBarrierWithWaitList(ooo, 0, NULL, NULL), "barrier");
	scale(ooo, a, N, 7, 0, NULL, &events[2]);
	check(clEnqueueCopyBuffer(ooo, a, b, 0, 0, 4000, 1, &events[2], &events[3]), "copy");
	check(clEnqueueReadBuffer(ooo, b, CL_FALSE, 0, BYTES, back, 1, &events[3], NULL), "read");
	check(clEnqueueBarrierWithWaitList(ooo, 1, &marker, NULL), "barrier");
	check(clFinish(ooo), "clFinish");
	mix(back, N);
	expect(back[0] == 21, "the order");
	for (int i = 0; i < 4; i++)
		clReleaseEvent(events[i]);
	clReleaseEvent(marker);
	clReleaseCommandQueue(ooo);
	clReleaseMemObject(a);
	clReleaseMemObject(b);
}

static void two_queues(void)
{
	cl_command_queue other = new_queue(devices[device_count - 1], 0);
	cl_mem a = numbers(1);
	cl_event events[2];

	scale(queue, a, N, 3, 0, NULL, &events[0]);
	clFlush(queue);
	scale(other, a, N, 5, 1, &events[0], &events[1]);
	clFlush(other);
	check(clEnqueueReadBuffer(queue, a, CL_TRUE, 0, BYTES, back, 1, &events[1], NULL), "read");
	mix(back, N);
	expect(back[0] == 15, "the order");
	clReleaseEvent(events[0]);
	clReleaseEvent(events[1]);
	clReleaseCommandQueue(other);
	clReleaseMemObject(a);
}

/* More events than fit into one record of a trace, in two queues. */
static void long_waits(void)
{
	enum { WRITES = 2000 };
	static cl_event events[WRITES];
	cl_command_queue ooo = new_queue(devices[0], CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	cl_mem a = numbers(0);

	number(data, N, 5);
	for (size_t i = 0; i < WRITES; i++)
		check(clEnqueueWriteBuffer(ooo, a, CL_FALSE, i * 4, 4, &data[i], 0, NULL,
					   &events[i]),
		      "write");
	clFlush(ooo);
	scale(queue, a, N, 3, WRITES, events, NULL);
	read_all(a, back);
	expect(back[WRITES - 1] == data[WRITES - 1] * 3, "the order");
	for (size_t i = 0; i < WRITES; i++)
		clReleaseEvent(events[i]);
	check(clFinish(ooo), "clFinish");
	clReleaseCommandQueue(ooo);
	clReleaseMemObject(a);
}

static void user_events(void)
{
	cl_mem a = numbers(1);
	cl_int rc, status = CL_QUEUED;
	cl_event user = clCreateUserEvent(context, &rc), done;

	check(rc, "clCreateUserEvent");
	scale(queue, a, N, 3, 1, &user, NULL);
	check(clEnqueueReadBuffer(queue, a, CL_FALSE, 0, BYTES, back, 0, NULL, &done), "read");
	check(clSetUserEventStatus(user, CL_COMPLETE), "clSetUserEventStatus");
	clFlush(queue);
	/* Polls until it is complete. */
	while (status > CL_COMPLETE) {
		check(clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
				     &status, NULL),
		      "clGetEventInfo");
		usleep(200);
	}
	mix(back, N);
	expect(back[1] == 12, "what was read");
	clReleaseEvent(user);
	clReleaseEvent(done);
	clReleaseMemObject(a);
}

struct called {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_done;
};

static void CL_CALLBACK called_back(cl_event event, cl_int status, void *context_)
{
	struct called *called = context_;

	(void)event;
	(void)status;
	pthread_mutex_lock(&called->lock);
	mix(back, N);
	called->is_done = true;
	pthread_cond_signal(&called->changed);
	pthread_mutex_unlock(&called->lock);
}

static void callbacks(void)
{
	struct called called = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false };
	cl_mem a = numbers(21);
	cl_event event;

	scale(queue, a, N, 3, 0, NULL, NULL);
	check(clEnqueueReadBuffer(queue, a, CL_FALSE, 0, BYTES, back, 0, NULL, &event), "read");
	check(clSetEventCallback(event, CL_COMPLETE, called_back, &called), "clSetEventCallback");
	clFlush(queue);
	pthread_mutex_lock(&called.lock);
	while (!called.is_done)
		pthread_cond_wait(&called.changed, &called.lock);
	pthread_mutex_unlock(&called.lock);
	clReleaseEvent(event);
	clReleaseMemObject(a);
}

struct worker {
	pthread_t thread;
	uint32_t number, sum;
};

/* A recorder's own objects hold the context: it releases them before it answers. */
static void count_references(void)
{
	cl_uint references = 0;

	for (int i = 0; i < 30; i++) {
		cl_mem fresh = buffer(CL_MEM_READ_WRITE, 64, NULL);

		check(clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof(references),
				       &references, NULL),
		      "references");
		clReleaseMemObject(fresh);
	}
}

/* Its own queue and buffer. */
static void *work(void *context_)
{
	struct worker *worker = context_;
	cl_command_queue private_queue = new_queue(devices[0], 0);
	uint32_t *numbers_of = malloc(BYTES), sum = 0;
	cl_mem memory = buffer(CL_MEM_READ_WRITE, BYTES, NULL);

	for (uint32_t round = 0; round < 10; round++) {
		number(numbers_of, N, worker->number + round);
		check(clEnqueueWriteBuffer(private_queue, memory, CL_FALSE, 0, BYTES, numbers_of, 0,
					   NULL, NULL),
		      "write");
		scale(private_queue, memory, N, 3 + worker->number, 0, NULL, NULL);
		check(clEnqueueReadBuffer(private_queue, memory, CL_FALSE, 0, BYTES, numbers_of, 0,
					  NULL, NULL),
		      "read");
		check(clFinish(private_queue), "clFinish");
		for (size_t i = 0; i < N; i++)
			sum = sum * 31 + numbers_of[i];
		count_references();
	}
	worker->sum = sum;
	clReleaseMemObject(memory);
	clReleaseCommandQueue(private_queue);
	free(numbers_of);
	return NULL;
}

static void threads(void)
{
	struct worker workers[4];

	for (uint32_t i = 0; i < 4; i++) {
		workers[i].number = i;
		expect(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0, "thread");
	}
	for (uint32_t i = 0; i < 4; i++) {
		pthread_join(workers[i].thread, NULL);
		mix(&workers[i].sum, 1);
	}
}

/* ---- programs ---- */

/* Runs kernel `f` (global uint *) of a program. */
static void run_f(cl_program of, uint32_t expected)
{
	cl_mem a = numbers(1);
	cl_kernel kernel = kernel_of(of, "f");

	set(kernel, 0, sizeof(a), &a);
	launch(queue, kernel, N, 0, NULL, NULL);
	read_all(a, back);
	expect(back[1] == expected, "what f makes");
	clReleaseKernel(kernel);
	clReleaseMemObject(a);
}

static void options(void)
{
	cl_program with = new_program(
		"kernel void f(global uint *to) { to[get_global_id(0)] = FIRST + NUMBER; }\n");
	cl_program bad = new_program("kernel void f(global uint *to) { no such thing; }\n");

	build(with, "-D NUMBER=40 -DFIRST=97 -cl-fast-relaxed-math");
	run_f(with, 137);
	/* Built again, with other options. */
	build(with, "-D NUMBER=41 -D FIRST=99");
	run_f(with, 140);
	expect(clBuildProgram(bad, 0, NULL, "", NULL, NULL) != CL_SUCCESS, "a bad program");
	clReleaseProgram(bad);
	clReleaseProgram(with);
}

/* The caller owns the memory. */
static unsigned char *binary_of(cl_program of, size_t *ret_bytes)
{
	unsigned char *bytes, *all[4] = { NULL };
	size_t sizes[4] = { 0 };

	check(clGetProgramInfo(of, CL_PROGRAM_BINARY_SIZES, sizeof(sizes), sizes, NULL), "sizes");
	for (int i = 0; i < 4; i++)
		all[i] = malloc(sizes[i] + 1);
	check(clGetProgramInfo(of, CL_PROGRAM_BINARIES, sizeof(all), all, NULL), "binaries");
	bytes = all[0];
	for (int i = 1; i < 4; i++)
		free(all[i]);
	*ret_bytes = sizes[0];
	return bytes;
}

static void binaries(void)
{
	cl_program from = new_program(
		"kernel void f(global uint *to) { to[get_global_id(0)] *= 9; }\n"
		"kernel void g(global uint *to, uint x, local uint *l) { to[get_global_id(0)] += x; }\n");
	unsigned char *bytes;
	size_t size;
	cl_program created;
	cl_kernel kernel;
	cl_mem a = numbers(5);
	uint32_t x = 17;
	cl_int rc;

	build(from, NULL);
	bytes = binary_of(from, &size);
	clReleaseProgram(from);
	created = clCreateProgramWithBinary(context, 1, devices, &size,
					    (const unsigned char **)&bytes, NULL, &rc);
	check(rc, "clCreateProgramWithBinary");
	free(bytes);
	check(clBuildProgram(created, 1, devices, NULL, NULL, NULL), "clBuildProgram");
	run_f(created, 36);
	kernel = kernel_of(created, "g");
	/* The kernel keeps its program alive. */
	clReleaseProgram(created);
	set(kernel, 0, sizeof(a), &a);
	set(kernel, 1, sizeof(x), &x);
	set(kernel, 2, 64, NULL);
	launch(queue, kernel, N, 0, NULL, NULL);
	read_all(a, back);
	clReleaseKernel(kernel);
	clReleaseMemObject(a);
}

static void linked(void)
{
	cl_program header = new_program("#define FACTOR 6\nuint twice(uint x);\n");
	cl_program first =
		new_program("#include \"parts.h\"\nkernel void f(global uint *to)\n"
			    "{ to[get_global_id(0)] = twice(to[get_global_id(0)]) * FACTOR; }\n");
	cl_program second =
		new_program("uint twice(uint x);\nuint twice(uint x) { return 2 * x; }\n");
	cl_program programs[2] = { first, second }, all;
	const char *name = "parts.h";
	cl_int rc;

	check(clCompileProgram(first, 0, NULL, NULL, 1, &header, &name, NULL, NULL), "compile");
	check(clCompileProgram(second, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL), "compile");
	all = clLinkProgram(context, 0, NULL, NULL, 2, programs, NULL, NULL, &rc);
	check(rc, "clLinkProgram");
	clReleaseProgram(header);
	clReleaseProgram(first);
	clReleaseProgram(second);
	run_f(all, 48);
	clReleaseProgram(all);
}

/* The file is gone at replay. Its name is the same each time, for the driver's cache. */
static void included(void)
{
	static const char path[] = "opencl_features.d/factor.h";
	cl_program with =
		new_program("/* #include \"not\" */\n  # include \"factor.h\"\n"
			    "kernel void f(global uint *to) { to[get_global_id(0)] *= FACTOR; }\n");
	FILE *file;

	mkdir("opencl_features.d", 0700);
	file = fopen(path, "w");
	expect(file && fputs("#define FACTOR 11\n", file) >= 0 && fclose(file) == 0, "a file");
	build(with, "-I opencl_features.d");
	unlink(path);
	rmdir("opencl_features.d");
	run_f(with, 44);
	clReleaseProgram(with);
}

/* ---- features that cannot be replayed ---- */

static void CL_CALLBACK run_native(void *arguments_)
{
	**(uint32_t **)arguments_ = 5;
}

static void native(void)
{
	uint32_t *mapped = &back[0];
	cl_int rc = clEnqueueNativeKernel(queue, run_native, &mapped, sizeof(mapped), 0, NULL, NULL,
					  0, NULL, NULL);

	if (rc != CL_INVALID_OPERATION)
		check(rc, "clEnqueueNativeKernel");
	check(clFinish(queue), "clFinish");
}

static void fine_svm(void)
{
	uint32_t *a, factor = 3;
	cl_kernel kernel = kernel_of(program, "scale");

	if (has_svm(CL_DEVICE_SVM_FINE_GRAIN_BUFFER)) {
		a = clSVMAlloc(context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, BYTES, 0);
		expect(a != NULL, "clSVMAlloc");
		number(a, N, 1);
		check(clSetKernelArgSVMPointer(kernel, 0, a), "clSetKernelArgSVMPointer");
		set(kernel, 1, sizeof(factor), &factor);
		launch(queue, kernel, N, 0, NULL, NULL);
		check(clFinish(queue), "clFinish");
		mix(a, N);
		clSVMFree(context, a);
	}
	clReleaseKernel(kernel);
}

/* The offset of the third row is 0 in 64 bits, which drivers may accept. */
static void wide_pitches(void)
{
	const size_t zero[3] = { 0, 0, 0 }, third[3] = { 0, 2, 0 }, region[3] = { 16, 1, 1 };
	cl_mem a = numbers(3);
	cl_int rc = clEnqueueReadBufferRect(queue, a, CL_TRUE, third, zero, region, (size_t)1 << 63,
					    0, 0, 0, back, 0, NULL, NULL);

	if (rc != CL_INVALID_VALUE)
		check(rc, "read rect");
	mix(back, N);
	clReleaseMemObject(a);
}

/* A launch with as many buffers as most devices allow; others wait for it, and it waits. */
static void use_many(cl_mem each)
{
	enum { ARGUMENTS = 120 };
	cl_command_queue ooo = new_queue(devices[0], CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	cl_mem a = numbers(1), b = numbers(2);
	cl_event events[2];
	cl_program wide;
	cl_kernel kernel;
	char text[8192] = "kernel void wide(global uint *a0";
	size_t used = strlen(text);

	for (int i = 1; i < ARGUMENTS; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 ", global const uint *a%d", i);
	snprintf(text + used, sizeof(text) - used,
		 ") { a0[get_global_id(0)] *= a1[get_global_id(0) & 255] | 1; }\n");
	wide = new_program(text);
	build(wide, NULL);
	kernel = kernel_of(wide, "wide");
	for (cl_uint i = 0; i < ARGUMENTS; i++)
		set(kernel, i, sizeof(a), i ? &each : &a);
	scale(ooo, b, N, 5, 0, NULL, &events[0]);
	launch(ooo, kernel, N, 1, &events[0], &events[1]);
	check(clEnqueueReadBuffer(ooo, b, CL_TRUE, 0, BYTES, back, 1, &events[1], NULL), "read");
	mix(back, N);
	check(clEnqueueReadBuffer(ooo, a, CL_TRUE, 0, BYTES, back, 1, &events[1], NULL), "read");
	mix(back, N);
	clReleaseEvent(events[0]);
	clReleaseEvent(events[1]);
	clReleaseKernel(kernel);
	clReleaseProgram(wide);
	clReleaseCommandQueue(ooo);
	clReleaseMemObject(a);
	clReleaseMemObject(b);
}

static void many_arguments(void)
{
	cl_mem each = numbers(3);

	use_many(each);
	clReleaseMemObject(each);
}

/* The details of so many views exceed a record of a trace. */
static void many_views(void)
{
	cl_buffer_region where = { 4096, 8192 };
	cl_mem root = numbers(3), each;
	cl_int rc;

	each = clCreateSubBuffer(root, 0, CL_BUFFER_CREATE_TYPE_REGION, &where, &rc);
	check(rc, "clCreateSubBuffer");
	use_many(each);
	clReleaseMemObject(each);
	clReleaseMemObject(root);
}

/* ---- all of them ---- */

static const struct {
	const char *name;
	void (*run)(void);
	bool cannot_be_replayed;
} features[] = {
	{ "copies", copies, false },
	{ "rectangles", rectangles, false },
	{ "views", views, false },
	{ "overlap", overlap, false },
	{ "big", big, false },
	{ "maps", maps, false },
	{ "shared", shared, false },
	{ "hidden", hidden, false },
	{ "svm", svm, false },
	{ "arguments", arguments, false },
	{ "out_of_order", out_of_order, false },
	{ "two_queues", two_queues, false },
	{ "long_waits", long_waits, false },
	{ "user_events", user_events, false },
	{ "callbacks", callbacks, false },
	{ "threads", threads, false },
	{ "options", options, false },
	{ "binaries", binaries, false },
	{ "linked", linked, false },
	{ "included", included, false },
	{ "many_arguments", many_arguments, false },
	{ "pointers", pointers, true },
	{ "native", native, true },
	{ "fine_svm", fine_svm, true },
	{ "wide_pitches", wide_pitches, true },
	{ "many_views", many_views, true },
};
enum { FEATURES = sizeof(features) / sizeof(features[0]) };

static void set_up(void)
{
	cl_int rc;

	feature = "set-up";
	device_count = find_devices(devices, 4);
	context = clCreateContext(NULL, device_count, devices, NULL, NULL, &rc);
	check(rc, "clCreateContext");
	queue = new_queue(devices[0], 0);
	program = new_program(source);
	build(program, "-cl-std=CL1.2");
}

static void run(int i)
{
	feature = features[i].name;
	checksum = UINT64_C(0xcbf29ce484222325);
	memset(data, 0, sizeof(data));
	memset(back, 0, sizeof(back));
	features[i].run();
	check(clFinish(queue), "clFinish");
	printf("%-14s %016" PRIx64 "\n", feature, checksum);
}

static int find_feature(const char *name)
{
	for (int i = 0; i < FEATURES; i++) {
		if (strcmp(features[i].name, name) == 0)
			return i;
	}
	fprintf(stderr, "opencl_features: unknown feature '%s'; --list names them\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (int i = 0; i < FEATURES; i++)
			printf("%s%s\n", features[i].name,
			       features[i].cannot_be_replayed ? " *" : "");
		return 0;
	}
	set_up();
	for (int i = 1; i < argc; i++)
		run(find_feature(argv[i]));
	for (int i = 0; argc == 1 && i < FEATURES; i++) {
		if (!features[i].cannot_be_replayed)
			run(i);
	}
	clReleaseProgram(program);
	clReleaseCommandQueue(queue);
	clReleaseContext(context);
	return 0;
}
