/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs to record and replay: replay_work MODE... runs each mode; `all` runs those that must
 * replay without difference. Each checks its own results.
 */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "cuda/work_driver.h"
#include "targets/nvtx_client.h"

WORK_IMAGE(kernels, TS_TESTS_CUDA "/work_kernels.fatbin");
WORK_IMAGE(compressed, TS_TESTS_CUDA "/work_kernels_compressed.fatbin");

#define COUNT 1000u /* words of most buffers */
#define BYTES (COUNT * 4)
#define EVENT_EXTERNAL 1 /* in a capture: a node of the graph */

static void *module, *context;
static size_t launches;

static void *function(const char *name)
{
	void *found;

	CHECK(cuModuleGetFunction(&found, module, name));
	return found;
}

static void launch_in(void *stream, const char *name, void **params)
{
	launches++;
	CHECK(cuLaunchKernel(function(name), 4, 1, 1, 64, 1, 1, 0, stream, params, NULL));
}
#define LAUNCH_IN(stream, name, ...) launch_in(stream, name, (void *[]){ __VA_ARGS__ })
#define LAUNCH(name, ...) LAUNCH_IN(NULL, name, __VA_ARGS__)

static uint64_t device_memory(size_t bytes)
{
	uint64_t address;

	CHECK(cuMemAlloc_v2(&address, bytes));
	return address;
}

static uint32_t words_at[1 << 16];

static const uint32_t *read_back(uint64_t address, size_t count)
{
	CHECK(cuMemcpyDtoH_v2(words_at, address, count * 4));
	return words_at;
}

static void expect(bool is_right, const char *what, int line)
{
	if (is_right)
		return;
	fprintf(stderr, "line %d: wrong: %s\n", line, what);
	exit(1);
}
#define EXPECT(condition) expect(condition, #condition, __LINE__)

static uint32_t count = COUNT;

static void fill(void *stream, uint64_t to, uint32_t value)
{
	LAUNCH_IN(stream, "fill", &to, &value, &count);
}

static void add(void *stream, uint64_t to, uint64_t a, uint64_t b)
{
	LAUNCH_IN(stream, "add", &to, &a, &b, &count);
}

/* ---- modes ---- */

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

static void async_memory(void)
{
	void *first, *second, *event;
	uint64_t a, b, c;
	uint32_t host[COUNT];

	CHECK(cuStreamCreate(&first, CUDA_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&second, CUDA_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&event, CUDA_EVENT_DISABLE_TIMING));
	for (uint32_t i = 0; i < 8; i++) {
		CHECK(cuMemAllocAsync(&a, BYTES, first));
		CHECK(cuMemAllocAsync(&b, BYTES * 600, first));
		fill(first, a, i);
		fill(first, b, i);
		CHECK(cuMemFreeAsync(a, first));
		CHECK(cuMemAllocAsync(&c, BYTES, first)); /* the same block */
		add(first, c, b, b);
		CHECK(cuEventRecord(event, first));
		CHECK(cuStreamWaitEvent(second, event, 0));
		add(second, b, c, c);
		CHECK(cuMemcpyDtoHAsync_v2(host, b, BYTES, second));
		CHECK(cuMemFreeAsync(b, second));
		CHECK(cuMemFreeAsync(c, second));
	}
	CHECK(cuStreamSynchronize(second));
	EXPECT(host[1] == 4 * 8);
	CHECK(cuStreamDestroy_v2(first));
	CHECK(cuStreamDestroy_v2(second));
}

static void pools(void)
{
	/* CUmemPoolProps: type, handle types, location, a handle, most bytes, ... */
	uint32_t props[22] = { 1, 0, 1, 0 };
	uint64_t a, b;
	void *pool, *stream;

	CHECK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
	CHECK(cuMemPoolCreate(&pool, props));
	for (uint32_t i = 0; i < 5; i++) {
		CHECK(cuMemAllocFromPoolAsync(&a, BYTES, pool, stream));
		CHECK(cuMemAllocFromPoolAsync(&b, BYTES * 700, pool, stream));
		fill(stream, a, i);
		fill(stream, b, i);
		add(stream, b, a, b);
		EXPECT(cuStreamSynchronize(stream) == 0 && read_back(b, 1)[0] == 2 * i);
		CHECK(cuMemFreeAsync(a, stream));
		CHECK(cuMemFreeAsync(b, stream));
	}
	CHECK(cuMemPoolTrimTo(pool, 0));
	CHECK(cuMemPoolDestroy(pool));
	CHECK(cuStreamDestroy_v2(stream));
}

/* What pools hold is given back when the host waits, down to a threshold. */
static void pool_thresholds(void)
{
	uint64_t a, reserved, all = UINT64_MAX;
	void *pool, *stream, *other;

	CHECK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&other, CUDA_STREAM_NON_BLOCKING));
	CHECK(cuDeviceGetDefaultMemPool(&pool, 0));
	for (uint32_t i = 0; i < 4; i++) {
		CHECK(cuMemAllocAsync(&a, BYTES, stream));
		fill(stream, a, i);
		CHECK(cuMemFreeAsync(a, stream));
		CHECK(cuStreamSynchronize(other)); /* whatever that gives back */
		if (i % 2)
			CHECK(cuCtxSynchronize());
		else
			CHECK(cuStreamSynchronize(stream));
		CHECK(cuMemPoolGetAttribute(pool, CUDA_POOL_RESERVED, &reserved));
		EXPECT(reserved == 0);
	}
	/* Memory of the other kind, large and small. */
	for (uint32_t i = 0; i < 2; i++) {
		a = device_memory(i ? 3 << 20 : BYTES);
		fill(stream, a, i);
		CHECK(cuMemFreeAsync(a, stream));
		CHECK(cuStreamSynchronize(stream));
		EXPECT(cuMemFreeAsync(a, stream));
	}
	CHECK(cuMemPoolSetAttribute(pool, CUDA_POOL_RELEASE_THRESHOLD, &all));
	CHECK(cuMemAllocAsync(&a, BYTES, stream));
	fill(stream, a, 1);
	CHECK(cuMemFreeAsync(a, stream));
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuMemPoolGetAttribute(pool, CUDA_POOL_RESERVED, &reserved));
	printf("%llu bytes are kept\n", (unsigned long long)reserved);
}

/* As an allocator with segments that grow. */
static void virtual_memory(void)
{
	const size_t page = 2 << 20, most = 64 << 20;
	const struct cuda_allocation_prop prop = { .type = 1, .location = { 1, 0 } };
	const struct cuda_access access = { .location = { 1, 0 }, .flags = 3 };
	unsigned long long handles[4];
	uint64_t base, a = device_memory(BYTES);

	CHECK(cuMemAddressReserve(&base, most, 0, 0, 0));
	for (size_t i = 0; i < 4; i++) {
		CHECK(cuMemCreate(&handles[i], page, &prop, 0));
		CHECK(cuMemMap(base + i * page, page, 0, handles[i], 0));
		CHECK(cuMemSetAccess(base + i * page, page, &access, 1));
		CHECK(cuMemsetD8_v2(base + i * page, 0, page));
		fill(NULL, base + i * page + page - BYTES, (uint32_t)i);
		add(NULL, a, base + i * page + page - BYTES, base + i * page + page - BYTES);
	}
	EXPECT(read_back(a, COUNT)[2] == 10);
	CHECK(cuCtxSynchronize());
	CHECK(cuMemUnmap(base + page, page));
	CHECK(cuMemRelease(handles[1]));
	CHECK(cuMemCreate(&handles[1], page, &prop, 0));
	CHECK(cuMemMap(base + page, page, 0, handles[1], 0));
	CHECK(cuMemSetAccess(base + page, page, &access, 1));
	fill(NULL, base + page, 9);
	EXPECT(read_back(base + page, 2)[1] == 10);
	CHECK(cuMemUnmap(base, 4 * page));
	for (size_t i = 0; i < 4; i++)
		CHECK(cuMemRelease(handles[i]));
	CHECK(cuMemAddressFree(base, most));
}

/* What the host writes to memory that a kernel reads, without a call. */
static void pinned(void)
{
	uint64_t a = device_memory(BYTES), b = device_memory(BYTES), at;
	uint32_t *host, *back;

	CHECK(cuMemHostAlloc((void **)&host, BYTES, 2));
	CHECK(cuMemAllocHost_v2((void **)&back, BYTES));
	at = (uintptr_t)host;
	fill(NULL, b, 0);
	for (uint32_t i = 0; i < 6; i++) {
		for (uint32_t j = 0; j < COUNT; j++)
			host[j] = i * j;
		add(NULL, a, at, b); /* reads it */
		CHECK(cuMemcpyDtoHAsync_v2(back, a, BYTES, NULL));
		CHECK(cuCtxSynchronize());
		EXPECT(back[3] == 3 * i + 3);
		CHECK(cuMemcpyHtoDAsync_v2(b, back, BYTES, NULL));
		CHECK(cuStreamSynchronize(NULL));
		fill(NULL, at, i); /* writes it */
		CHECK(cuCtxSynchronize());
		EXPECT(host[2] == i + 2);
		fill(NULL, b, 0);
	}
	CHECK(cuMemFreeHost(host));
	CHECK(cuMemFreeHost(back));
}

/* Two numbers beside each other, as models have them, are no pointer to pinned memory. */
static void sizes(void)
{
	uint64_t a = device_memory(64 << 10);
	uint32_t *host;

	CHECK(cuMemHostAlloc((void **)&host, 1 << 20, 0));
	for (uint32_t i = 1; i <= 64; i++) {
		uint32_t columns = 256 * i;

		host[0] = i;
		LAUNCH("fill", &a, &i, &columns);
	}
	CHECK(cuMemcpyHtoDAsync_v2(a, host, 4096, NULL));
	CHECK(cuCtxSynchronize());
	CHECK(cuMemFreeHost(host));
	CHECK(cuMemFree_v2(a));
}

/* A copy is complete when its context is, also if its stream is gone by then. */
static void pinned_gone(void)
{
	uint64_t a = device_memory(BYTES), at;
	uint32_t *host;
	void *stream;

	CHECK(cuMemHostAlloc((void **)&host, BYTES, 2));
	at = (uintptr_t)host;
	fill(NULL, a, 1);
	add(NULL, a, at, at); /* sees it from here on */
	CHECK(cuCtxSynchronize());
	CHECK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
	CHECK(cuMemcpyDtoHAsync_v2(host, a, BYTES, stream));
	CHECK(cuStreamDestroy_v2(stream));
	CHECK(cuCtxSynchronize());
	for (uint32_t i = 0; i < 2; i++) {
		host[5] = 100 + i;
		add(NULL, a, at, at);
		EXPECT(read_back(a, 6)[5] == 2 * (100 + i));
	}
	CHECK(cuMemFreeHost(host));
}

static void registered(void)
{
	uint64_t a = device_memory(BYTES), at;
	uint32_t *host;

	EXPECT(posix_memalign((void **)&host, 4096, 8192) == 0);
	memset(host, 0, 8192);
	CHECK(cuMemHostRegister_v2(host, 8192, 2));
	at = (uintptr_t)host;
	for (uint32_t i = 0; i < 4; i++) {
		host[5] = i;
		add(NULL, a, at, at);
		CHECK(cuCtxSynchronize());
		EXPECT(read_back(a, 6)[5] == 2 * i);
	}
	CHECK(cuMemHostUnregister(host));
	free(host);
}

static void pointers(void)
{
	uint64_t a = device_memory(BYTES), b = device_memory(BYTES), table = device_memory(64);
	uint64_t pair[2] = { b, a }, out = device_memory(BYTES * 2);

	CHECK(cuMemcpyHtoD_v2(table, pair, sizeof(pair)));
	fill(NULL, a, 3);
	LAUNCH("copy_through_pointer", &table, &count);
	EXPECT(read_back(b, 2)[1] == 5);
	LAUNCH("write_own_address", &out, &count);
	EXPECT(read_back(out, 2)[0] == (uint32_t)out);
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

static void rectangles(void)
{
	uint64_t a, b = device_memory(1 << 16);
	size_t pitch;
	struct cuda_copy_2d flat = { 0 };
	struct cuda_copy_3d deep = { 0 };
	uint8_t host[64 * 64];

	for (size_t i = 0; i < sizeof(host); i++)
		host[i] = (uint8_t)(i * 7);
	CHECK(cuMemAllocPitch_v2(&a, &pitch, 100, 64, 4));
	CHECK(cuMemsetD2D8_v2(a, pitch, 1, 100, 64));
	CHECK(cuMemsetD2D32Async(a + 256, pitch, 0x55, 8, 10, NULL));
	CHECK(cuMemsetD8_v2(b, 0, 1 << 16));
	flat.from_type = 1;
	flat.from_host = host;
	flat.from_pitch = 64;
	flat.from_x = 4;
	flat.from_y = 2;
	flat.to_type = 2;
	flat.to_device = a;
	flat.to_pitch = pitch;
	flat.to_x = 8;
	flat.to_y = 3;
	flat.width = 40;
	flat.height = 20;
	CHECK(cuMemcpy2D_v2(&flat));
	memset(host, 0, sizeof(host));
	flat.from_type = 2;
	flat.from_device = a;
	flat.from_pitch = pitch;
	flat.to_device = b;
	flat.to_pitch = 64;
	CHECK(cuMemcpy2DAsync_v2(&flat, NULL));
	deep.from_type = deep.to_type = 2;
	deep.from_device = a;
	deep.from_pitch = pitch;
	deep.from_height = 8;
	deep.to_device = b + 8192;
	deep.to_pitch = 32;
	deep.to_height = 8;
	deep.to_z = 1;
	deep.width = 24;
	deep.height = 6;
	deep.depth = 4;
	CHECK(cuMemcpy3D_v2(&deep));
	flat.from_device = b;
	flat.from_pitch = 64;
	flat.from_x = 8;
	flat.from_y = 3;
	flat.to_type = 1;
	flat.to_host = host;
	flat.to_x = flat.to_y = 0;
	CHECK(cuMemcpy2D_v2(&flat));
	EXPECT(host[0] == 1 && host[64 + 5] == 163);
}

/* Of memory of the program and of the device, in one call. */
static void batches(void)
{
	uint32_t host[COUNT], back[COUNT] = { 0 };
	uint64_t a = device_memory(BYTES), b = device_memory(1 << 16);
	uint64_t to[] = { a, b }, from[] = { (uintptr_t)host, (uintptr_t)(host + 500) };
	size_t bytes[] = { BYTES, 2000 }, first = 0;
	/* CUmemcpyAttributes: the source is read before the call returns. */
	uint32_t attributes[6] = { 2 };
	struct cuda_copy_of_batch copies[] = {
		{ .from = { .type = CUDA_OPERAND_POINTER, .address = (uintptr_t)host, .row = 100 },
		  .to = { .type = CUDA_OPERAND_POINTER,
			  .address = b + 4096,
			  .row = 64,
			  .height = 8 },
		  .width = 40,
		  .height = 5,
		  .depth = 3,
		  .order = 2 },
		{ .from = { .type = CUDA_OPERAND_POINTER, .address = a },
		  .to = { .type = CUDA_OPERAND_POINTER, .address = b + 16384 },
		  .width = 512,
		  .height = 1,
		  .depth = 1,
		  .order = 1 },
	};
	void *stream;

	CHECK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
	for (uint32_t i = 0; i < COUNT; i++)
		host[i] = 3 * i;
	CHECK(cuMemcpyBatchAsync_v2(to, from, bytes, 2, attributes, &first, 1, stream));
	CHECK(cuMemcpy3DBatchAsync_v2(2, copies, 0, stream));
	memset(host, 0, sizeof(host));
	add(stream, a, a, a);
	CHECK(cuStreamSynchronize(stream));
	EXPECT(read_back(a, 11)[10] == 60);
	CHECK(cuMemcpyDtoH_v2(back, b + 4096, 3 * 8 * 64));
	/* the second layer, third row, first word: at byte 100 * (5 + 2) of the host's */
	EXPECT(back[(8 + 2) * 16] == 3 * 175);
	CHECK(cuMemcpyDtoH_v2(back, b + 16384, 512));
	EXPECT(back[127] == 3 * 127);
	CHECK(cuStreamDestroy_v2(stream));
}

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

static void graph_captured(void)
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

static struct cuda_kernel_node kernel_node(const char *name, void **params)
{
	return (struct cuda_kernel_node){
		.function = function(name),
		.grid = { 4, 1, 1 },
		.block = { 64, 1, 1 },
		.params = params,
	};
}

/* The kernel of a node may only have so much memory since it ran outside of the graph. */
static void graph_settings(void)
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

static void graph_explicit(void)
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
static void graph_pageable(void)
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
static void graph_pinned(void)
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
static void graph_events(void)
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
static void graph_frees(void)
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
static void capture_without_memory(void)
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
static void capture_new_code(void)
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
static void capture_and_pinned(void)
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
static void capture_beside_frees(void)
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
static void capture_blocking(void)
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

static void graph_memory(void)
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

static int attribute_of(uint64_t address, int attribute, uint64_t *ret_value)
{
	*ret_value = 0;
	return cuPointerGetAttribute(ret_value, attribute, address);
}

enum { SLACK = 4 << 20, MUCH = 64 << 20 };

/*
 * So much less memory is free than before, give or take what is in steps of 2 MiB; on a real device
 * others may use it, too.
 */
static void expect_used(size_t before, size_t bytes, int line)
{
	static int (*get_name)(char *name, int bytes, int device);
	char name[64] = "";
	size_t after, all;
	uint32_t status;
	bool is_right;

	CHECK(cuGetProcAddress_v2("cuDeviceGetName", (void **)&get_name, 11000, 0, &status));
	CHECK(get_name(name, sizeof(name), 0));
	/* What a snapshot took, and has just freed, may count twice for a moment. */
	for (int i = 0; i < 100; i++) {
		CHECK(cuMemGetInfo_v2(&after, &all));
		expect(after <= all, "less is free than there is", line);
		is_right = before + SLACK >= after + bytes && before <= after + bytes + SLACK;
		if (is_right || strncmp(name, "Stand-in", 8) != 0)
			return;
		usleep(1000);
	}
	expect(false, "free memory", line);
}

/* What the driver answers about memory; the same if the program is recorded. */
static void answers(void)
{
	enum { OUT_OF_MEMORY = 2, INVALID_VALUE = 1 };
	size_t before, all, bytes;
	uint64_t small, large, other, start, value, more;
	int kinds[] = { 1, 2, 9 }; /* context, type of memory, device */
	uint64_t found[3] = { 0 };
	void *values[] = { &found[0], &found[1], &found[2] }, *second;

	CHECK(cuMemGetInfo_v2(&before, &all));
	small = device_memory(1000);
	large = device_memory(MUCH);
	expect_used(before, MUCH, __LINE__);
	EXPECT(cuMemAlloc_v2(&other, all * 2) == OUT_OF_MEMORY);
	EXPECT(cuMemAlloc_v2(&other, 0) == INVALID_VALUE);

	CHECK(cuMemGetAddressRange_v2(&start, &bytes, small + 999));
	EXPECT(start == small && bytes == 1000);
	CHECK(cuMemGetAddressRange_v2(&start, &bytes, large + MUCH - 1));
	EXPECT(start == large && bytes == MUCH);
	EXPECT(!attribute_of(small + 8, 1, &value) && value == (uintptr_t)context);
	EXPECT(!attribute_of(small + 8, 2, &value) && value == 2);
	EXPECT(!attribute_of(small + 8, 3, &value) && value == small + 8);
	EXPECT(attribute_of(small, 4, &value));
	EXPECT(!attribute_of(small, 8, &value) && !value);
	EXPECT(!attribute_of(small, 9, &value) && !value);
	EXPECT(!attribute_of(small + 8, 11, &value) && value == small);
	EXPECT(!attribute_of(small + 8, 12, &value) && value == 1000);
	EXPECT(!attribute_of(small, 7, &value) && !attribute_of(large, 7, &more) && value != more);
	CHECK(cuPointerGetAttributes(3, kinds, values, large + 5));
	EXPECT(found[0] == (uintptr_t)context && found[1] == 2 && found[2] == 0);

	EXPECT(cuMemFree_v2(small + 256) == INVALID_VALUE);
	CHECK(cuMemFree_v2(small));
	EXPECT(cuMemFree_v2(small) == INVALID_VALUE);
	EXPECT(cuMemGetAddressRange_v2(&start, &bytes, small) != 0);
	EXPECT(attribute_of(small, 2, &value));
	CHECK(cuMemFree_v2(large));
	CHECK(cuMemFree_v2(0));
	expect_used(before, 0, __LINE__);

	/* A context takes its memory along. */
	CHECK(cuCtxCreate_v2(&second, 0, 0));
	other = device_memory(MUCH);
	CHECK(cuCtxDestroy_v2(second));
	CHECK(cuCtxSetCurrent(context));
	EXPECT(cuMemGetAddressRange_v2(&start, &bytes, other) != 0);
	EXPECT(cuMemFree_v2(other) == INVALID_VALUE);
	expect_used(before, 0, __LINE__);
	small = device_memory(BYTES);
	fill(NULL, small, 1);
	EXPECT(read_back(small, 2)[1] == 2);
	CHECK(cuMemFree_v2(small));
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

/* Much for a snapshot; REPLAY_WORK_MIB: that much, of numbers that do not compress. */
static void much_memory(void)
{
	const char *wanted = getenv("REPLAY_WORK_MIB");
	size_t mib = wanted ? strtoul(wanted, NULL, 10) : 64, words = (size_t)1 << 17;
	uint64_t a = device_memory(mib << 20), state = 1, *numbers;
	uint32_t all = 16 << 20, value = 3;

	if (!wanted) {
		LAUNCH("fill", &a, &value, &all);
		CHECK(cuCtxSynchronize());
		return;
	}
	numbers = malloc(words * 8);
	EXPECT(numbers);
	for (size_t at = 0; at < mib << 20; at += (size_t)1 << 20) {
		for (size_t i = 0; i < words; i++) {
			state = state * 6364136223846793005u + 1;
			numbers[i] = state ^ state >> 33;
		}
		CHECK(cuMemcpyHtoD_v2(a + at, numbers, words * 8));
	}
	free(numbers);
}

/* A window that opens takes no memory that the program could see. */
static void free_memory(void)
{
	uint64_t a = device_memory(BYTES);
	size_t before, all;

	much_memory();
	CHECK(cuMemGetInfo_v2(&before, &all));
	for (uint32_t i = 0; i < 40; i++) {
		work_step(i);
		fill(NULL, a, i);
		CHECK(cuCtxSynchronize());
		expect_used(before, 0, __LINE__);
		usleep(2000);
	}
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
