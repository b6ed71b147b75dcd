/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emits device activity, as its arguments say. There is no device: ids and times are synthetic, so
 * that tests know them.
 *
 *	launches:N     N launches of a kernel from one of two call sites, with device times
 *	rate:N         from here on at most N launches per second
 *	pending:N      launches of kernels that have not run yet
 *	copies:N       N copies that complete before their call returns
 *	graph:N        N launches of a graph of 3 kernels that was captured elsewhere
 *	memory:N       N pairs of allocation and free
 *	collectives:N  N launches of a collective's kernel
 *	make:FILE      creates a file        await:FILE  waits until a file exists
 *	kill           kills itself with SIGKILL
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tracesmith/accelerator.h>

#include "file_signals.h"

#define DEVICE 3u
#define STREAM 7u
#define CONTEXT 1u

static struct ts_emit_site launch_site = TS_CALL_SITE("cuLaunchKernel", "cuda");
static struct ts_emit_site copy_site = TS_CALL_SITE("cuMemcpyHtoD_v2", "cuda");
static struct ts_emit_site graph_site = TS_CALL_SITE("cuGraphLaunch", "cuda");
static struct ts_emit_site kernel_site = TS_GPU_OP_SITE("_Z4gemmPKfPfi", "kernel");
static struct ts_emit_site collective_site =
	TS_GPU_OP_SITE("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "kernel");
static struct ts_emit_site copied_site = TS_GPU_OP_SITE("Memcpy HtoD", "copy");
static struct ts_emit_site pool_site = TS_ALLOCATION_SITE("cuMemAlloc_v2", "cuda");

static uint64_t correlation;
static int64_t interval_ns;
static uint64_t first_ticks;

static int64_t device_now(void)
{
	return ts_ticks_ns(ts_now() - first_ticks);
}

/* Recording is checked when a command is submitted: here at once. */
static void put_op(struct ts_emit_site *site, struct ts_gpu_op op)
{
	if (!ts_enabled())
		return;
	op.size = sizeof(op);
	op.device = DEVICE;
	op.stream = STREAM;
	op.context = CONTEXT;
	op.correlation = correlation;
	op.queued = op.submitted = TS_UNKNOWN;
	op.start = device_now();
	op.end = op.start + 1000;
	ts_accelerator_op(site, &op);
}

static void put_kernel(uint32_t graph, uint64_t node, uint32_t stack)
{
	put_op(&kernel_site, (struct ts_gpu_op){ .kind = 1,
						 .grid = { 4, 1, 1 },
						 .block = { 128, 1, 1 },
						 .bytes = TS_UNKNOWN,
						 .registers = 40,
						 .shared_bytes = 2048,
						 .graph = graph,
						 .graph_node = node,
						 .stack = stack });
}

static void put_call(struct ts_emit_site *site)
{
	struct ts_accelerator_call call = { .size = sizeof(call),
					    .stack = ts_accelerator_stack(),
					    .start = ts_now(),
					    .correlation = correlation };

	ts_accelerator_call_with(site, &call);
}

/* Two call sites, none of whose calls is a tail call. */
__attribute__((noinline)) static void launch_first(void)
{
	put_call(&launch_site);
	__asm__ volatile("");
}

__attribute__((noinline)) static void launch_second(void)
{
	put_call(&launch_site);
	__asm__ volatile("");
}

static void launches(long count, bool has_run)
{
	int64_t next = device_now();

	for (long i = 0; i < count; i++) {
		while (interval_ns && device_now() < next)
			;
		next += interval_ns;
		correlation++;
		if (i % 2)
			launch_second();
		else
			launch_first();
		if (has_run)
			put_kernel(0, 0, 0);
	}
}

static void collectives(long count)
{
	for (long i = 0; i < count; i++) {
		correlation++;
		launch_first();
		put_op(&collective_site, (struct ts_gpu_op){ .kind = 1,
							     .grid = { 1, 1, 1 },
							     .block = { 128, 1, 1 },
							     .bytes = TS_UNKNOWN });
	}
}

static void copies(long count)
{
	for (long i = 0; i < count; i++) {
		correlation++;
		put_op(&copied_site,
		       (struct ts_gpu_op){ .kind = 2, .copy_kind = 1, .bytes = 4096 });
		put_call(&copy_site);
	}
}

__attribute__((noinline)) static uint32_t capture(void)
{
	uint32_t stack = ts_accelerator_stack();

	__asm__ volatile("");
	return stack;
}

static void graphs(long count)
{
	uint32_t stack = capture();

	for (long i = 0; i < count; i++) {
		correlation++;
		put_call(&graph_site);
		for (uint64_t node = 1; node <= 3; node++)
			put_kernel(5, node, stack);
	}
}

static void memory(long count)
{
	for (long i = 0; i < count; i++) {
		struct ts_accelerator_allocation taken = { .size = sizeof(taken),
							   .device = DEVICE,
							   .stream = UINT32_MAX,
							   .stack = ts_accelerator_stack(),
							   .address = 0x7f0000000000,
							   .bytes = 512,
							   .total = 512,
							   .reserved = TS_UNKNOWN };

		ts_accelerator_allocation(&pool_site, &taken);
		taken.is_free = true;
		taken.total = 0;
		ts_accelerator_allocation(&pool_site, &taken);
	}
}

static void begin(void)
{
	struct ts_accelerator_queue queue = { .size = sizeof(queue),
					      .device = DEVICE,
					      .stream = STREAM,
					      .context = CONTEXT,
					      .priority = TS_UNKNOWN,
					      .name = "compute" };

	first_ticks = ts_now();
	ts_accelerator_clock(DEVICE, first_ticks, 0, 100, "made up");
	ts_accelerator_stream(&queue);
}

static void act(const char *command)
{
	const char *colon = strchr(command, ':'), *value = colon ? colon + 1 : "";
	size_t length = colon ? (size_t)(colon - command) : strlen(command);
	long count = strtol(value, NULL, 10);

#define IS(name) (length == strlen(name) && !strncmp(command, name, length))
	if (IS("launches"))
		launches(count, true);
	else if (IS("rate"))
		interval_ns = count ? 1000000000 / count : 0;
	else if (IS("pending"))
		launches(count, false);
	else if (IS("copies"))
		copies(count);
	else if (IS("graph"))
		graphs(count);
	else if (IS("memory"))
		memory(count);
	else if (IS("collectives"))
		collectives(count);
	else if (IS("make"))
		make_file(value);
	else if (IS("await"))
		await_file(value);
	else if (IS("kill"))
		raise(SIGKILL);
}

int main(int argc, char **argv)
{
	begin();
	for (int i = 1; i < argc; i++)
		act(argv[i]);
	return 0;
}
