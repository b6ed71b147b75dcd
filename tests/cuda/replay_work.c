/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs to record and replay: replay_work MODE... runs each mode; `all` runs those that must
 * replay without difference. Each checks its own results. Those about memory and graphs have files
 * of their own.
 */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "cuda/replay_work.h"
#include "targets/nvtx_client.h"

WORK_IMAGE(kernels, TS_TESTS_CUDA "/work_kernels.fatbin");
WORK_IMAGE(compressed, TS_TESTS_CUDA "/work_kernels_compressed.fatbin");

static void *module;
void *context;

void *function(const char *name)
{
	void *found;

	CHECK(cuModuleGetFunction(&found, module, name));
	return found;
}

void launch_in(void *stream, const char *name, void **params)
{
	CHECK(cuLaunchKernel(function(name), 4, 1, 1, 64, 1, 1, 0, stream, params, NULL));
}

uint64_t device_memory(size_t bytes)
{
	uint64_t address;

	CHECK(cuMemAlloc_v2(&address, bytes));
	return address;
}

uint32_t words_at[1 << 16];

const uint32_t *read_back(uint64_t address, size_t words)
{
	CHECK(cuMemcpyDtoH_v2(words_at, address, words * 4));
	return words_at;
}

void expect(bool is_right, const char *what, int line)
{
	if (is_right)
		return;
	fprintf(stderr, "line %d: wrong: %s\n", line, what);
	exit(1);
}

uint32_t count = COUNT;

void fill(void *stream, uint64_t to, uint32_t value)
{
	LAUNCH_IN(stream, "fill", &to, &value, &count);
}

void add(void *stream, uint64_t to, uint64_t a, uint64_t b)
{
	LAUNCH_IN(stream, "add", &to, &a, &b, &count);
}

struct cuda_kernel_node kernel_node(const char *name, void **params)
{
	return (struct cuda_kernel_node){
		.function = function(name),
		.grid = { 4, 1, 1 },
		.block = { 64, 1, 1 },
		.params = params,
	};
}

/* ---- modes: streams, code, launches ---- */

static void plain(void)
{
	uint64_t a = device_memory(BYTES), b = device_memory(BYTES), c = device_memory(BYTES);
	uint64_t large = device_memory(5 << 20);
	uint32_t host[COUNT];

	for (uint32_t i = 0; i < COUNT; i++)
		host[i] = i * i;
	CHECK(cuMemcpyHtoD_v2(a, host, BYTES));
	memset(host, 0, sizeof(host));
	fill(NULL, b, 7);
	add(NULL, c, a, b);
	CHECK(cuMemsetD8_v2(large, 3, 5 << 20));
	CHECK(cuMemcpyDtoD_v2(large + 4096, c, BYTES));
	EXPECT(read_back(large + 4096, COUNT)[999] == 999 * 999 + 7 + 999);
	CHECK(cuMemsetD32_v2(b, 0x01020304, COUNT / 2));
	add(NULL, a, a, b);
	CHECK(cuCtxSynchronize());
	CHECK(cuMemFree_v2(c));
	CHECK(cuMemFree_v2(large));
	c = device_memory(BYTES); /* a reused block */
	fill(NULL, c, 1);
	EXPECT(read_back(a, COUNT)[1] == 1 + 0x01020304);
	CHECK(cuMemFree_v2(c));
}

static void floats(void)
{
	uint64_t x = device_memory(BYTES), y = device_memory(BYTES);
	float host[COUNT], a = 0.5f;

	for (uint32_t i = 0; i < COUNT; i++)
		host[i] = (float)i / 3;
	CHECK(cuMemcpyHtoD_v2(x, host, BYTES));
	CHECK(cuMemcpyHtoD_v2(y, host, BYTES));
	for (int i = 0; i < 4; i++)
		LAUNCH("saxpy", &y, &x, &a, &count);
	CHECK(cuMemcpyDtoH_v2(host, y, BYTES));
	EXPECT(host[3] > 2.99f && host[3] < 3.01f);
}

static void streams(void)
{
	uint64_t a = device_memory(BYTES), b = device_memory(BYTES), c = device_memory(BYTES);
	void *first, *second, *third, *ready, *done;

	CHECK(cuStreamCreate(&first, CUDA_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreateWithPriority(&second, CUDA_STREAM_NON_BLOCKING, -1));
	CHECK(cuStreamCreate(&third, 0));
	CHECK(cuEventCreate(&ready, CUDA_EVENT_DISABLE_TIMING));
	CHECK(cuEventCreate(&done, 0));
	for (uint32_t i = 0; i < 10; i++) {
		fill(first, a, i);
		CHECK(cuEventRecord(ready, first));
		fill(second, b, 2 * i);
		CHECK(cuStreamWaitEvent(second, ready, 0));
		add(second, c, a, b);
		CHECK(cuEventRecord(done, second));
		CHECK(cuStreamWaitEvent(first, done, 0));
		CHECK(cuStreamWaitEvent(third, done, 0));
		if (i % 3 == 0)
			CHECK(cuEventSynchronize(done));
	}
	add(third, b, c, c);
	CHECK(cuStreamSynchronize(third));
	EXPECT(read_back(b, COUNT)[10] == 2 * (9 + 10 + 18 + 10));
	CHECK(cuStreamDestroy_v2(first));
	CHECK(cuStreamDestroy_v2(second));
	CHECK(cuStreamDestroy_v2(third));
	CHECK(cuEventDestroy_v2(ready));
	CHECK(cuEventDestroy_v2(done));
}

/* Launches that record an event: who waits for one runs behind all that was ahead of the launch. */
static void launch_events(void)
{
	uint64_t a = device_memory(BYTES), b = device_memory(BYTES), c = device_memory(BYTES);
	struct cuda_launch_attribute attributes[2] = { { .id = 7 } };
	struct cuda_launch_config config = { .grid = { 1, 1, 1 },
					     .block = { 64, 1, 1 },
					     .attributes = attributes,
					     .attribute_count = 1 };
	void *first, *second, *begun, *done;

	CHECK(cuStreamCreate(&first, CUDA_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&second, CUDA_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&begun, CUDA_EVENT_DISABLE_TIMING));
	CHECK(cuEventCreate(&done, CUDA_EVENT_DISABLE_TIMING));
	config.stream = first;
	memcpy(attributes[0].value, &begun, sizeof(begun));
	for (uint32_t i = 0; i < 10; i++) {
		void *params[] = { &a, &i, &count };

		fill(first, b, i + 1);
		attributes[0].id = i % 2 ? 7 : 12; /* programmatic, or when all blocks run */
		CHECK(cuLaunchKernelEx(&config, function("fill"), params, NULL));
		CHECK(cuStreamWaitEvent(second, begun, 0));
		add(second, c, b, b);
		CHECK(cuEventRecord(done, second));
		CHECK(cuStreamWaitEvent(first, done, 0));
	}
	CHECK(cuEventSynchronize(begun));
	CHECK(cuCtxSynchronize());
	EXPECT(read_back(c, COUNT)[1] == 2 * (10 + 1));
	CHECK(cuStreamDestroy_v2(first));
	CHECK(cuStreamDestroy_v2(second));
	CHECK(cuEventDestroy_v2(begun));
	CHECK(cuEventDestroy_v2(done));
}

/* Blocking streams and the default stream wait for each other. */
static void default_stream(void)
{
	uint64_t a = device_memory(BYTES), b = device_memory(BYTES), c = device_memory(BYTES);
	void *first, *second;

	CHECK(cuStreamCreate(&first, 0));
	CHECK(cuStreamCreate(&second, 0));
	for (uint32_t i = 0; i < 10; i++) {
		fill(first, a, i);
		fill(second, b, i + 1);
		add(NULL, c, a, b);
		add(first, a, c, c);
		add(second, b, c, c);
		add((void *)CUDA_STREAM_LEGACY, c, a, b);
	}
	EXPECT(read_back(c, COUNT)[0] == 4 * (9 + 10));
	CHECK(cuStreamDestroy_v2(first));
	CHECK(cuStreamDestroy_v2(second));
}

static void per_thread(void)
{
	uint64_t a = device_memory(BYTES), b = device_memory(BYTES);
	uint32_t value = 5;
	void *params[] = { &a, &value, &count };

	CHECK(cuLaunchKernel_ptsz(function("fill"), 4, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
	add((void *)CUDA_STREAM_PER_THREAD, b, a, a);
	CHECK(cuStreamSynchronize_ptsz(NULL));
	EXPECT(read_back(b, COUNT)[3] == 16);
}

static uint64_t thread_memory[2];
static uint32_t *thread_pinned[2];

/* Both copies are in the stream of this thread: the second has what the first brings. */
static void copy_there_and_back(uint64_t from, uint32_t *pinned, uint64_t to, uint32_t value)
{
	uint32_t many = COUNT * 64;
	void *params[] = { &from, &value, &many };

	CHECK(cuLaunchKernel_ptsz(function("fill"), 4, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
	CHECK(cuMemcpyDtoHAsync_v2_ptsz(pinned, from, many * 4, NULL));
	CHECK(cuMemcpyHtoDAsync_v2_ptsz(to, pinned, many * 4, NULL));
}

static void *copy_in_thread(void *argument)
{
	(void)argument;
	CHECK(cuCtxSetCurrent(context));
	copy_there_and_back(thread_memory[0], thread_pinned[1], thread_memory[1], 30);
	return NULL;
}

/* Handles of default streams mean another stream in each thread. */
static void per_thread_copies(void)
{
	uint64_t out = device_memory(64 * BYTES);
	pthread_t thread;
	void *event;

	CHECK(cuEventCreate(&event, CUDA_EVENT_DISABLE_TIMING));
	for (int i = 0; i < 2; i++) {
		thread_memory[i] = device_memory(64 * BYTES);
		CHECK(cuMemHostAlloc((void **)&thread_pinned[i], 64 * BYTES, 2));
	}
	copy_there_and_back(thread_memory[0], thread_pinned[0], out, 20);
	CHECK(cuStreamSynchronize_ptsz(NULL));
	EXPECT(pthread_create(&thread, NULL, copy_in_thread, NULL) == 0);
	pthread_join(thread, NULL);
	/* What the other thread's stream copies: its own is empty for this one. */
	CHECK(cuStreamSynchronize_ptsz(NULL));
	CHECK(cuMemcpyHtoDAsync_v2_ptsz(out, thread_pinned[1] + 5000, 4096, NULL));
	CHECK(cuCtxSynchronize());
	EXPECT(read_back(thread_memory[1], 1)[0] == 30);
}

static void globals(void)
{
	uint64_t out = device_memory(BYTES * 2), in = device_memory(128),
		 table = device_memory(256);
	uint64_t address, numbers[16], *found = (uint64_t *)words_at;
	uint32_t sixteen = 16;
	size_t bytes;

	for (uint64_t i = 0; i < 16; i++)
		numbers[i] = i;
	CHECK(cuMemcpyHtoD_v2(in, numbers, sizeof(numbers)));
	LAUNCH("use_global", &out, &sixteen);
	for (int i = 0; i < 3; i++)
		LAUNCH("add_to_global", &in);
	LAUNCH("use_global", &out, &count);
	CHECK(cuModuleGetGlobal_v2(&address, &bytes, module, "words"));
	EXPECT(bytes == 128);
	/* Its address in parameters, in memory that the host and that a kernel wrote. */
	LAUNCH("use_global", &address, &sixteen);
	LAUNCH("global_address_to_memory", &table, &sixteen);
	LAUNCH("read_through_table", &out, &table, &sixteen);
	for (uint64_t i = 0; i < 16; i++)
		numbers[i] = address + i * 8;
	CHECK(cuMemcpyHtoD_v2(table, numbers, sizeof(numbers)));
	CHECK(cuMemcpyDtoD_v2(address + 8, address, 8));
	LAUNCH("read_through_table", &out, &table, &sixteen);
	LAUNCH("read_through_global", &in);
	CHECK(cuMemcpyDtoH_v2(found, in, 8));
	CHECK(cuMemcpyDtoH_v2(numbers, address, 16));
	EXPECT(found[0] == numbers[0]);
	CHECK(cuMemsetD32_v2(address + 64, 77, 4));
	LAUNCH("use_global", &out, &count);
	EXPECT(read_back(out, 20)[16] == 77 + 10 + 8);
}

static void modules(void)
{
	void *second, *library, *kernel, *own;
	uint64_t out = device_memory(BYTES * 2), address;
	void *params[] = { &out, &count };
	size_t bytes;

	CHECK(cuModuleLoadDataEx(&second, compressed, 0, NULL, NULL));
	CHECK(cuModuleGetFunction(&own, second, "use_global"));
	CHECK(cuLaunchKernel(own, 4, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
	CHECK(cuLibraryLoadData(&library, WORK_WRAPPER(kernels), NULL, NULL, 0, NULL, NULL, 0));
	CHECK(cuLibraryGetKernel(&kernel, library, "write_own_address"));
	CHECK(cuLaunchKernel(kernel, 4, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
	CHECK(cuLibraryGetKernel(&kernel, library, "use_global"));
	CHECK(cuKernelGetFunction(&own, kernel));
	CHECK(cuLibraryGetGlobal(&address, &bytes, library, "words"));
	CHECK(cuMemsetD32_v2(address, 6, 8));
	CHECK(cuLaunchKernel(own, 4, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
	EXPECT(read_back(out, 2)[0] == 6 + 10);
	CHECK(cuCtxSynchronize());
	CHECK(cuModuleUnload(second));
	CHECK(cuLibraryUnload(library));
}

static void launch_kinds(void)
{
	struct pair {
		uint32_t first;
		uint64_t second;
	} pair;
	uint64_t out = device_memory(64);
	uint8_t more = 5, block[32];
	size_t bytes = 25;
	void *params[] = { &out, &pair, &more }, *shape[] = { &out };
	void *extra[] = { CUDA_LAUNCH_PARAM_BUFFER_POINTER, block, CUDA_LAUNCH_PARAM_BUFFER_SIZE,
			  &bytes, CUDA_LAUNCH_PARAM_END };
	struct cuda_launch_attribute attributes[2] = { { .id = 4,
							 .value = { 1, 0, 0, 0, 1, 0, 0, 0, 1 } } };
	struct cuda_launch_config config = { .grid = { 6, 2, 3 },
					     .block = { 8, 4, 2 },
					     .attributes = attributes,
					     .attribute_count = 1 };
	int (*reset_cache)(void);
	uint32_t status;

	memset(&pair, 0xee, sizeof(pair)); /* padding holds anything */
	pair.first = 10;
	pair.second = 100;
	/* Only before a kernel that may print. */
	CHECK(cuCtxSetLimit(1, 2 << 20));
	CHECK(cuLaunchKernel(function("take_structure"), 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	EXPECT(read_back(out, 1)[0] == 135);
	memset(block, 0, sizeof(block));
	memcpy(block, &out, 8);
	memcpy(block + 8, &pair, 16);
	block[24] = 6;
	CHECK(cuLaunchKernel(function("take_structure"), 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
	EXPECT(read_back(out, 1)[0] == 136);
	CHECK(cuLaunchKernelEx(&config, function("write_shape"), shape, NULL));
	EXPECT(read_back(out, 2)[0] == 36 * 64 && read_back(out, 2)[1] == 64);
	CHECK(cuLaunchCooperativeKernel(function("write_shape"), 2, 1, 1, 32, 1, 1, 0, NULL,
					shape));
	EXPECT(read_back(out, 2)[0] == 64);
	CHECK(cuFuncSetAttribute(function("write_shape"), 8, 65536));
	CHECK(cuLaunchKernel(function("write_shape"), 2, 1, 1, 32, 1, 1, 60000, NULL, shape, NULL));
	CHECK(cuCtxSetLimit(0, 2048));
	/* As the CUDA runtime calls it: only the speed of what comes depends on it. */
	CHECK(cuGetProcAddress_v2("cuCtxResetPersistingL2Cache", (void **)&reset_cache, 11000, 0,
				  &status));
	CHECK(reset_cache());
	CHECK(cuCtxSynchronize());
}

/* What a kernel is launched in: set before it is described, and changed behind a launch. */
static void clusters(void)
{
	uint64_t out = device_memory(64);
	uint8_t more = 5;
	struct {
		uint32_t first;
		uint64_t second;
	} pair = { 1, 2 };
	void *shape = function("write_shape"), *other = function("take_structure");
	void *params[] = { &out, &pair, &more };

	for (int i = 11; i <= 13; i++)
		CHECK(cuFuncSetAttribute(other, i, i == 11 ? 2 : 1));
	CHECK(cuFuncSetAttribute(other, 14, 1));
	CHECK(cuLaunchKernel(other, 2, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	CHECK(cuLaunchKernel(shape, 3, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	for (int i = 11; i <= 13; i++)
		CHECK(cuFuncSetAttribute(shape, i, i == 11 ? 2 : 1));
	CHECK(cuLaunchKernel(shape, 4, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	EXPECT(read_back(out, 1)[0] == 128);
}

static void contexts(void)
{
	void *second, *other, *own = module;
	uint64_t a = device_memory(BYTES), b;

	fill(NULL, a, 1);
	CHECK(cuCtxCreate_v2(&second, 0, 0));
	CHECK(cuModuleLoadData(&other, kernels));
	module = other;
	b = device_memory(BYTES);
	fill(NULL, b, 2);
	add(NULL, b, b, b);
	EXPECT(read_back(b, 1)[0] == 4);
	module = own;
	CHECK(cuCtxDestroy_v2(second));
	CHECK(cuCtxSetCurrent(context));
	add(NULL, a, a, a);
	EXPECT(read_back(a, 1)[0] == 2);
}

static void *thread_work(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument, last = 0;
	uint64_t a, b;
	void *stream;

	CHECK(cuCtxSetCurrent(context));
	CHECK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
	a = device_memory(BYTES);
	b = device_memory(BYTES);
	for (uint32_t i = 0; i < 20; i++) {
		fill(stream, a, i * number);
		add(stream, b, a, a);
		CHECK(cuMemcpyDtoHAsync_v2(&last, b, 4, stream));
		CHECK(cuStreamSynchronize(stream));
		EXPECT(last == 2 * i * number);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t ids[3];

	for (uintptr_t i = 0; i < 3; i++)
		EXPECT(pthread_create(&ids[i], NULL, thread_work, (void *)(i + 1)) == 0);
	for (int i = 0; i < 3; i++)
		pthread_join(ids[i], NULL);
}

/* Some rounds, or until the file `stop` exists; eight of 16 in a range "eight". */
static void rounds(uint32_t number)
{
	uint64_t a = device_memory(BYTES), b = device_memory(BYTES), c = device_memory(BYTES);

	fill(NULL, a, 0);
	fill(NULL, b, 1);
	for (uint32_t i = 0; i < number && (number < UINT32_MAX || access("stop", F_OK)); i++) {
		work_step(i);
		if (i % 16 == 4)
			nvtxRangePushA("eight");
		LAUNCH("mix", &a, &b, &i, &count);
		LAUNCH("mix", &b, &a, &i, &count);
		add(NULL, c, a, b);
		CHECK(cuCtxSynchronize());
		if (i % 16 == 11)
			nvtxRangePop();
		if (number == UINT32_MAX && i % 20 == 0) {
			printf("round %u\n", i);
			fflush(stdout);
			/* A window that is opened and closed by hand has not too much to replay. */
			usleep(10000);
		}
	}
}

static void steps(void)
{
	rounds(50);
}

static void endless(void)
{
	rounds(UINT32_MAX);
}

/* ---- what a replay must tell ---- */

static void nondeterministic(void)
{
	uint64_t a = device_memory(BYTES), b = device_memory(BYTES * 2);

	fill(NULL, a, 1);
	LAUNCH("nondeterministic", &b, &count);
	add(NULL, a, a, b);
	CHECK(cuCtxSynchronize());
}

/* Two streams without an event between them. */
static void race(void)
{
	uint64_t a = device_memory(BYTES), b = device_memory(BYTES);
	void *first, *second;

	CHECK(cuStreamCreate(&first, CUDA_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&second, CUDA_STREAM_NON_BLOCKING));
	CHECK(cuMemsetD8_v2(b, 0, BYTES));
	CHECK(cuCtxSynchronize());
	fill(first, a, 1);
	add(second, b, a, a);
	fill(first, a, 1000);
	CHECK(cuCtxSynchronize());
}

static void hang(void)
{
	uint32_t *flag;
	uint64_t at, out = device_memory(64);

	CHECK(cuMemHostAlloc((void **)&flag, 4096, 2));
	*flag = 0;
	at = (uintptr_t)flag;
	LAUNCH("spin_until_host", &at, &out);
	*(volatile uint32_t *)flag = 1; /* a replay cannot know when */
	CHECK(cuCtxSynchronize());
}

static void illegal(void)
{
	uint64_t nowhere = 0x123456000;

	fill(NULL, nowhere, 1);
	EXPECT(cuCtxSynchronize() == 700);
}

/* Parameters that may be pointers to memory of the driver, of a launch and of a node of a graph. */
static void foreign(void)
{
	struct {
		uint32_t first;
		uint64_t second;
	} pair = { 1, 0x5555aaaa0010 };
	uint64_t out = device_memory(64);
	uint8_t more = 5;
	void *params[] = { &out, &pair, &more };
	struct cuda_kernel_node kernel = kernel_node("take_structure", params);
	void *graph, *node, *exec;

	kernel.grid[0] = 1;
	CHECK(cuGraphCreate(&graph, 0));
	CHECK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &kernel));
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK(cuGraphLaunch(exec, NULL));
	pair.second += 16;
	CHECK(cuLaunchKernel(function("take_structure"), 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
	CHECK(cuCtxSynchronize());
}

static const struct {
	const char *name;
	void (*run)(void);
	bool replays; /* without difference */
} modes[] = {
	{ "plain", plain, true },
	{ "floats", floats, true },
	{ "streams", streams, true },
	{ "default_stream", default_stream, true },
	{ "per_thread", per_thread, true },
	{ "per_thread_copies", per_thread_copies, true },
	{ "async_memory", async_memory, true },
	{ "pools", pools, true },
	{ "virtual_memory", virtual_memory, true },
	{ "pinned", pinned, true },
	{ "sizes", sizes, true },
	{ "pinned_gone", pinned_gone, true },
	{ "registered", registered, true },
	{ "pointers", pointers, true },
	{ "globals", globals, true },
	{ "modules", modules, true },
	{ "rectangles", rectangles, true },
	{ "batches", batches, true },
	{ "graph_captured", graph_captured, true },
	{ "graph_explicit", graph_explicit, true },
	{ "graph_settings", graph_settings, true },
	{ "graph_pageable", graph_pageable, true },
	{ "graph_events", graph_events, true },
	{ "graph_frees", graph_frees, true },
	{ "graph_pinned", graph_pinned, true },
	{ "graph_memory", graph_memory, true },
	{ "capture_new_code", capture_new_code, true },
	{ "capture_blocking", capture_blocking, true },
	{ "launch_kinds", launch_kinds, true },
	{ "clusters", clusters, true },
	{ "launch_events", launch_events, true },
	{ "contexts", contexts, true },
	{ "answers", answers, true },
	{ "threads", threads, true },
	{ "steps", steps, true },
	{ "nondeterministic", nondeterministic, false },
	{ "race", race, false },
	{ "hang", hang, false },
	{ "illegal", illegal, false },
	{ "foreign", foreign, false },
	{ "pool_thresholds", pool_thresholds, false },
	{ "capture_and_pinned", capture_and_pinned, false },
	{ "capture_beside_frees", capture_beside_frees, false },
	{ "capture_without_memory", capture_without_memory, false },
	{ "much_memory", much_memory, false },
	{ "free_memory", free_memory, false },
	{ "endless", endless, false },
};

static bool run(const char *name)
{
	bool found = false;

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(name, "all") ? strcmp(name, modes[i].name) != 0 : !modes[i].replays)
			continue;
		modes[i].run();
		printf("%s: done\n", modes[i].name);
		found = true;
	}
	return found;
}

int main(int argc, char **argv)
{
	bool found = argc > 1;

	if (argc == 2 && !strcmp(argv[1], "list")) {
		for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
			if (modes[i].replays)
				printf("%s\n", modes[i].name);
		}
		return 0;
	}
	if (cuInit(0)) {
		fprintf(stderr, "no CUDA device\n");
		return 77;
	}
	CHECK(cuDevicePrimaryCtxRetain(&context, 0));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuModuleLoadData(&module, kernels));
	for (int i = 1; i < argc; i++)
		found = found && run(argv[i]);
	return found ? 0 : 2;
}
