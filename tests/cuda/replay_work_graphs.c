/* SPDX-License-Identifier: Apache-2.0 */
/* Programs to record and replay: graphs, and stream captures. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/replay_work.h"

#define EVENT_EXTERNAL 1 /* in a capture: a node of the graph */

/* As libraries do: of several kinds, and all that a graph may be made of. */
static void captured_work(void *stream, void *other, void *event, uint64_t *at)
{
	void *back;

	CHECK(cuEventCreate(&back, CUDA_EVENT_DISABLE_TIMING));
	fill(stream, at[0], 4);
	CHECK(cuEventRecord(event, stream));
	CHECK(cuStreamWaitEvent(other, event, 0));
	add(other, at[1], at[0], at[3]);
	CHECK(cuMemsetD8Async(at[2], 1, BYTES, stream));
	CHECK(cuEventRecord(back, other));
	CHECK(cuStreamWaitEvent(stream, back, 0));
	add(stream, at[2], at[1], at[2]);
	CHECK(cuMemcpyDtoDAsync_v2(at[3], at[2], BYTES, stream));
	CHECK(cuEventDestroy_v2(back));
}

void graph_captured(void)
{
	void *stream, *other, *event, *graph, *exec;
	uint64_t at[4];

	for (int i = 0; i < 4; i++)
		at[i] = device_memory(BYTES);
	CHECK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&other, CUDA_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&event, CUDA_EVENT_DISABLE_TIMING));
	CHECK(cuMemsetD8_v2(at[3], 0, BYTES));
	CHECK(cuCtxSynchronize());
	CHECK(cuStreamBeginCapture_v2(stream, 1));
	captured_work(stream, other, event, at);
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (uint32_t i = 0; i < 5; i++) {
		CHECK(cuGraphLaunch(exec, stream));
		add(stream, at[3], at[3], at[0]);
	}
	CHECK(cuStreamSynchronize(stream));
	EXPECT(read_back(at[3], 1)[0] == 5 * (0x01010101 + 8));
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
}

/* The kernel of a node may only have so much memory since it ran outside of the graph. */
void graph_settings(void)
{
	uint64_t out = device_memory(64);
	void *stream, *graph, *exec, *shape[] = { &out };

	CHECK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
	CHECK(cuLaunchKernel(function("write_shape"), 2, 1, 1, 32, 1, 1, 0, stream, shape, NULL));
	CHECK(cuFuncSetAttribute(function("write_shape"), 8, 65536));
	CHECK(cuStreamBeginCapture_v2(stream, 1));
	CHECK(cuLaunchKernel(function("write_shape"), 3, 1, 1, 32, 1, 1, 60000, stream, shape,
			     NULL));
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(read_back(out, 1)[0] == 96);
	CHECK(cuFuncSetAttribute(function("write_shape"), 8, 49152));
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
}

void graph_explicit(void)
{
	uint64_t a = device_memory(BYTES), b = device_memory(BYTES), c = device_memory(BYTES);
	uint32_t one = 1;
	void *fill_params[] = { &a, &one, &count }, *add_params[] = { &c, &a, &b };
	void *sum_params[] = { &c, &a, &b, &count };
	struct cuda_kernel_node kernel = kernel_node("fill", fill_params);
	struct cuda_fill_node set = {
		.to = b, .value = 2, .element_bytes = 4, .width = COUNT, .height = 1
	};
	struct cuda_copy_3d copy = {
		.from_type = 2,
		.to_type = 2,
		.from_device = c,
		.to_device = a,
		.width = BYTES,
		.height = 1,
		.depth = 1,
	};
	void *graph, *child, *nodes[6], *exec, *inner;
	uint64_t result[3];

	(void)add_params;
	CHECK(cuGraphCreate(&graph, 0));
	CHECK(cuGraphAddKernelNode_v2(&nodes[0], graph, NULL, 0, &kernel));
	CHECK(cuGraphAddMemsetNode(&nodes[1], graph, NULL, 0, &set, context));
	CHECK(cuGraphAddEmptyNode(&nodes[2], graph, nodes, 2));
	kernel = kernel_node("add", sum_params);
	CHECK(cuGraphAddKernelNode_v2(&nodes[3], graph, &nodes[2], 1, &kernel));
	CHECK(cuGraphAddMemcpyNode(&nodes[4], graph, &nodes[3], 1, &copy, context));
	/* A child: c = a + b again */
	CHECK(cuGraphCreate(&child, 0));
	CHECK(cuGraphAddKernelNode_v2(&inner, child, NULL, 0, &kernel));
	CHECK(cuGraphAddChildGraphNode(&nodes[5], graph, &nodes[4], 1, child));
	CHECK(cuGraphDestroy(child));
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK(cuGraphLaunch(exec, NULL));
	EXPECT(read_back(c, 2)[1] == 2 + 2 + 2);
	/* One node of the executable, then all. */
	one = 10;
	kernel = kernel_node("fill", fill_params);
	CHECK(cuGraphExecKernelNodeSetParams_v2(exec, nodes[0], &kernel));
	CHECK(cuGraphLaunch(exec, NULL));
	EXPECT(read_back(c, 2)[1] == 11 + 2 + 2);
	CHECK(cuGraphLaunch(exec, NULL));
	CHECK(cuGraphExecUpdate_v2(exec, graph, result));
	CHECK(cuGraphLaunch(exec, NULL));
	EXPECT(read_back(c, 2)[1] == 2 + 2 + 2);
	CHECK(cuCtxSynchronize());
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
}

/* The bytes are those of each launch; a rectangle is among them. */
void graph_pageable(void)
{
	uint64_t a = device_memory(BYTES), b = device_memory(BYTES), sum = device_memory(BYTES);
	static uint32_t host[COUNT], square[16 * 16], back[COUNT];
	struct cuda_copy_3d copy = {
		.from_type = 1,
		.from_host = square,
		.from_pitch = 64,
		.from_x = 16,
		.from_y = 2,
		.to_type = 2,
		.to_device = b,
		.to_pitch = 128,
		.width = 40,
		.height = 6,
		.depth = 1,
	};
	struct cuda_copy_3d away = {
		.from_type = 2,
		.from_device = sum,
		.to_type = 1,
		.to_host = back,
		.width = BYTES,
		.height = 1,
		.depth = 1,
	};
	void *stream, *graph, *exec, *node;

	CHECK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
	CHECK(cuMemsetD8_v2(b, 0, BYTES));
	CHECK(cuMemsetD8_v2(sum, 0, BYTES));
	CHECK(cuCtxSynchronize());
	CHECK(cuStreamBeginCapture_v2(stream, 2));
	CHECK(cuMemcpyHtoDAsync_v2(a, host, BYTES, stream));
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context));
	CHECK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &away, context));
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (uint32_t i = 0; i < 6; i++) {
		/* Two launches have the same bytes. */
		for (uint32_t j = 0; j < COUNT; j++)
			host[j] = i / 2 + j;
		square[2 * 16 + 4] = 100 * (i / 2);
		CHECK(cuGraphLaunch(exec, stream));
		add(stream, sum, sum, a);
		add(stream, sum, sum, b);
		CHECK(cuStreamSynchronize(stream));
		EXPECT(i == 0 || back[0] == read_back(sum, 1)[0] - i / 2 - 100 * (i / 2));
	}
	EXPECT(read_back(sum, 8)[0] == 2 * (1 + 2) * 101 && words_at[7] == 2 * (1 + 2) + 6 * 7);
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
}

/* What a graph fills on the host is copied behind it: bytes that only its launch brings. */
void graph_pinned(void)
{
	uint64_t a = device_memory(BYTES), b = device_memory(BYTES);
	struct cuda_fill_node set = { .value = 7, .element_bytes = 4, .width = COUNT, .height = 1 };
	void *stream, *graph, *exec, *node;
	uint32_t *pinned;

	CHECK(cuMemHostAlloc((void **)&pinned, BYTES, 2));
	memset(pinned, 0, BYTES);
	set.to = (uintptr_t)pinned;
	CHECK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
	CHECK(cuGraphCreate(&graph, 0));
	CHECK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, context));
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	fill(stream, a, 1);
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuMemcpyHtoDAsync_v2(b, pinned, BYTES, stream));
	add(stream, b, a, b);
	CHECK(cuStreamSynchronize(stream));
	EXPECT(read_back(b, 3)[2] == 1 + 2 + 7);
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
	CHECK(cuMemFreeHost(pinned));
	CHECK(cuStreamDestroy_v2(stream));
}

/* Nodes record an event, for which another stream and the host wait, and wait for one of those. */
void graph_events(void)
{
	uint64_t a = device_memory(BYTES), one = device_memory(BYTES), sum = device_memory(BYTES);
	void *stream, *other, *graph, *exec, *ready, *done;

	CHECK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&other, CUDA_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&ready, CUDA_EVENT_DISABLE_TIMING));
	CHECK(cuEventCreate(&done, CUDA_EVENT_DISABLE_TIMING));
	CHECK(cuMemsetD8_v2(a, 0, BYTES));
	CHECK(cuMemsetD8_v2(sum, 0, BYTES));
	CHECK(cuMemsetD32_v2(one, 1, COUNT));
	CHECK(cuCtxSynchronize());
	CHECK(cuStreamBeginCapture_v2(stream, 2));
	CHECK(cuStreamWaitEvent(stream, done, EVENT_EXTERNAL));
	add(stream, a, a, one);
	CHECK(cuEventRecordWithFlags(ready, stream, EVENT_EXTERNAL));
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (uint32_t i = 0; i < 6; i++) {
		CHECK(cuGraphLaunch(exec, stream));
		if (i % 2)
			CHECK(cuStreamWaitEvent(other, ready, 0));
		else
			CHECK(cuEventSynchronize(ready));
		add(other, sum, sum, a);
		CHECK(cuEventRecord(done, other));
	}
	CHECK(cuCtxSynchronize());
	EXPECT(read_back(sum, 3)[2] == 1 + 2 + 3 + 4 + 5 + 6);
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
}

static void *allocate_and_free(void *data)
{
	uint64_t a;
	void *stream;

	CHECK(cuCtxSetCurrent(context));
	a = device_memory(BYTES * 1000);
	CHECK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
	fill(stream, a, 6);
	add(stream, a, a, a);
	CHECK(cuMemFree_v2(a));
	CHECK(cuStreamDestroy_v2(stream));
	return data;
}

/* What the mode of a capture allows does not end it: this thread, or another one, frees memory. */
void graph_frees(void)
{
	uint64_t out = device_memory(BYTES);
	void *stream, *graph, *exec;
	pthread_t thread;

	CHECK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
	for (int mode = 1; mode <= 2; mode++) {
		CHECK(cuStreamBeginCapture_v2(stream, mode));
		fill(stream, out, 5);
		if (mode == 1) {
			EXPECT(pthread_create(&thread, NULL, allocate_and_free, NULL) == 0);
			pthread_join(thread, NULL);
		} else {
			allocate_and_free(NULL);
		}
		add(stream, out, out, out);
		CHECK(cuStreamEndCapture(stream, &graph));
		CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
		CHECK(cuGraphLaunch(exec, stream));
		CHECK(cuStreamSynchronize(stream));
		EXPECT(read_back(out, 2)[1] == 2 * (5 + 1));
		CHECK(cuGraphExecDestroy(exec));
		CHECK(cuGraphDestroy(graph));
	}
}

/* To free memory is what helps then, also while a stream is captured. */
void capture_without_memory(void)
{
	const size_t bytes = 2 << 20;
	uint64_t a, last = 0;
	void *stream, *graph;

	CHECK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
	while (cuMemAlloc_v2(&a, bytes) == 0)
		last = a;
	CHECK(cuStreamBeginCapture_v2(stream, 2));
	fill(stream, last, 5);
	EXPECT(cuMemAlloc_v2(&a, bytes) == CUDA_OUT_OF_MEMORY);
	CHECK(cuMemFree_v2(last));
	CHECK(cuMemAlloc_v2(&a, bytes));
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphDestroy(graph));
}

/* A launch loads code during a capture, be it captured itself or not. */
void capture_new_code(void)
{
	uint64_t out = device_memory(BYTES * 2), other = device_memory(BYTES * 2);
	void *params[] = { &out, &count }, *others[] = { &other, &count };
	void *library, *second, *kernel, *stream, *beside, *graph, *exec;

	CHECK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&beside, CUDA_STREAM_NON_BLOCKING));
	CHECK(cuLibraryLoadData(&library, WORK_WRAPPER(kernels), NULL, NULL, 0, NULL, NULL, 0));
	CHECK(cuLibraryLoadData(&second, WORK_WRAPPER(kernels), NULL, NULL, 0, NULL, NULL, 0));
	CHECK(cuStreamBeginCapture_v2(stream, 0));
	CHECK(cuLibraryGetKernel(&kernel, library, "use_global"));
	CHECK(cuLaunchKernel(kernel, 4, 1, 1, 64, 1, 1, 0, stream, params, NULL));
	CHECK(cuLibraryGetKernel(&kernel, second, "use_global"));
	CHECK(cuLaunchKernel(kernel, 4, 1, 1, 64, 1, 1, 0, beside, others, NULL));
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuCtxSynchronize());
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
}

/* What may not be freed during a capture stays, and can be freed behind it. */
void capture_and_pinned(void)
{
	uint64_t out = device_memory(BYTES);
	void *stream, *graph;
	uint32_t *pinned;

	CHECK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
	CHECK(cuMemHostAlloc((void **)&pinned, BYTES, 2));
	CHECK(cuStreamBeginCapture_v2(stream, 0));
	fill(stream, out, 5);
	EXPECT(cuMemFreeHost(pinned));
	pinned[0] = 1;
	EXPECT(cuStreamEndCapture(stream, &graph)); /* that has ended it */
	CHECK(cuMemcpyDtoH_v2(pinned, out, 4));
	CHECK(cuMemFreeHost(pinned));
}

static bool is_over;

/* Each wait gives memory back, for which the driver is asked what the pool keeps. */
static void *wait_for_frees(void *data)
{
	uint64_t a;
	void *stream;

	CHECK(cuCtxSetCurrent(context));
	CHECK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
		CHECK(cuMemAllocAsync(&a, BYTES, stream));
		CHECK(cuMemFreeAsync(a, stream));
		CHECK(cuStreamSynchronize(stream));
	}
	return data;
}

/* Memory that one thread allocates in the order of a stream does not end captures of another. */
void capture_beside_frees(void)
{
	uint64_t out = device_memory(BYTES);
	void *stream, *graph;
	pthread_t ids[3];

	CHECK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
	for (int i = 0; i < 3; i++)
		EXPECT(pthread_create(&ids[i], NULL, wait_for_frees, NULL) == 0);
	for (int i = 0; i < 300; i++) {
		CHECK(cuStreamBeginCapture_v2(stream, 0));
		fill(stream, out, 5);
		usleep(300); /* the others wait meanwhile */
		CHECK(cuStreamEndCapture(stream, &graph));
		CHECK(cuGraphDestroy(graph));
		usleep(300);
	}
	__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 3; i++)
		pthread_join(ids[i], NULL);
}

/* The default stream, which waits for the one that is captured, is left alone. */
void capture_blocking(void)
{
	uint64_t out = device_memory(BYTES), sum = device_memory(BYTES), a;
	void *stream, *other, *graph, *exec;
	uint32_t *pinned;

	CHECK(cuMemHostAlloc((void **)&pinned, BYTES, 2));
	memset(pinned, 0, BYTES);
	CHECK(cuStreamCreate(&stream, 0));
	CHECK(cuStreamCreate(&other, CUDA_STREAM_NON_BLOCKING));
	fill(NULL, sum, 0);
	CHECK(cuMemAllocAsync(&a, BYTES, NULL));
	CHECK(cuMemFreeAsync(a, NULL));
	CHECK(cuCtxSynchronize());
	CHECK(cuMemAllocAsync(&a, BYTES, NULL));
	fill(NULL, a, 0);
	CHECK(cuMemFreeAsync(a, NULL));
	CHECK(cuStreamBeginCapture_v2(stream, 2));
	fill(stream, out, 5);
	allocate_and_free(NULL);
	pinned[1] = 7;
	add(other, sum, sum, (uintptr_t)pinned);
	CHECK(cuMemAllocAsync(&a, BYTES, other));
	CHECK(cuMemFreeAsync(a, other));
	CHECK(cuStreamSynchronize(other));
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK(cuGraphLaunch(exec, stream));
	EXPECT(read_back(sum, 2)[1] == 1 + 7);
	EXPECT(read_back(out, 2)[1] == 1 + 5);
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
	CHECK(cuMemFreeHost(pinned));
}

/* Allocations that are captured belong to the graph. */
static void *graph_with_memory(void *stream, uint64_t out, uint32_t value)
{
	uint64_t inside;
	void *graph;

	CHECK(cuStreamBeginCapture_v2(stream, 2));
	CHECK(cuMemAllocAsync(&inside, BYTES, stream));
	fill(stream, inside, value);
	add(stream, out, inside, inside);
	CHECK(cuMemFreeAsync(inside, stream));
	CHECK(cuStreamEndCapture(stream, &graph));
	return graph;
}

void graph_memory(void)
{
	void *stream, *graph, *exec;
	uint64_t out = device_memory(BYTES), result[3];

	CHECK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
	graph = graph_with_memory(stream, out, 3);
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(read_back(out, 2)[1] == 8);
	CHECK(cuGraphDestroy(graph));
	/* If the driver takes it, the executable has the memory of this one, too. */
	graph = graph_with_memory(stream, out, 5);
	if (cuGraphExecUpdate_v2(exec, graph, result)) {
		CHECK(cuGraphExecDestroy(exec));
		CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	}
	CHECK(cuGraphDestroy(graph));
	EXPECT(cuMemAlloc_v2(result, (size_t)1 << 40)); /* no memory: what is free is unmapped */
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(read_back(out, 2)[1] == 12);
	CHECK(cuGraphExecDestroy(exec));
}
