/* SPDX-License-Identifier: Apache-2.0 */
/* For opencl_features.c: copies, views, maps, host memory, shared virtual memory. */
#ifndef OPENCL_FEATURES_MEMORY_H
#define OPENCL_FEATURES_MEMORY_H

#include "opencl_features.h"

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

#endif
