/* SPDX-License-Identifier: Apache-2.0 */
/* Programs to record and replay: memory of the device and of the host, and copies. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/replay_work.h"

void async_memory(void)
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

void pools(void)
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
void pool_thresholds(void)
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
void virtual_memory(void)
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
void pinned(void)
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
void sizes(void)
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
void pinned_gone(void)
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

void registered(void)
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

void pointers(void)
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

void rectangles(void)
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
void batches(void)
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
	for (int i = 0; i < 30000; i++) {
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
void answers(void)
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

/* Much for a snapshot; REPLAY_WORK_MIB: that much, of numbers that do not compress. */
void much_memory(void)
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
void free_memory(void)
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
