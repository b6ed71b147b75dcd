/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a program holds on CUDA: rows and totals, compared with a simple list. The source
 * runs inside programs, so it is included here.
 */
#include "unit/runner.h"

#include "backends/cuda/calls/cuda_memory.c" /* NOLINT(bugprone-suspicious-include) */

__thread struct cuda_thread cuda_thread;
static uint32_t switched_on = 1;
const uint32_t *ts_emit_switch = &switched_on;

/* Only the calls that memory.c compares with, in the order of cuda_calls.def. */
struct cuda_call cuda_calls[CUDA_CALL_COUNT] = {
#define CUDA_CALL(name_, arguments, class_, number_, stream_, replay_) \
	[CUDA_INDEX_##name_] = { .name = #name_, .class = CUDA_##class_, .stream = stream_ },
#include "backends/cuda/calls/cuda_calls.def"
};

static struct ts_accelerator_allocation last;
static unsigned int rows;
static void *current;

void ts_accelerator_allocation(struct ts_emit_site *site,
			       const struct ts_accelerator_allocation *allocation)
{
	(void)site;
	last = *allocation;
	rows++;
}

uint32_t cuda_stream_number(void *stream, uint32_t *ret_context)
{
	*ret_context = 3;
	return (uint32_t)(uintptr_t)stream;
}

static int get_current(void **context)
{
	*context = current;
	return 0;
}

/* Contexts 0x100, 0x200, ... belong to devices 1, 2, ... */
static int get_device(int *device)
{
	*device = (int)((uintptr_t)current >> 8);
	return 0;
}

void *cuda_driver(const char *name)
{
	return !strcmp(name, "cuCtxGetCurrent") ? (void *)get_current : (void *)get_device;
}

static void allocate(uintptr_t address, size_t bytes)
{
	const uintptr_t args[3] = { (uintptr_t)&address, bytes };

	cuda_memory_changed(&cuda_calls[CUDA_INDEX_cuMemAlloc_v2], args, 7);
}

static void release(uintptr_t address)
{
	cuda_memory_changed(&cuda_calls[CUDA_INDEX_cuMemFree_v2], &address, 0);
}

TS_TEST(what_is_freed_was_allocated_somewhere)
{
	current = (void *)0x100;
	allocate(0x10000, 100);
	TS_CHECK_INT(last.device, 1);
	TS_CHECK_INT(last.total, 100);
	TS_CHECK_INT(last.stack, 7);
	TS_CHECK(last.stream == UINT32_MAX);
	/* Freed under another context: still counted for the first one's device. */
	current = (void *)0x200;
	release(0x10000);
	TS_CHECK(last.is_free);
	TS_CHECK_INT(last.device, 1);
	TS_CHECK_INT(last.bytes, 100);
	TS_CHECK_INT(last.total, 0);
	/* A double free: the size is unknown. */
	release(0x10000);
	TS_CHECK(last.bytes == TS_UNKNOWN && last.total == TS_UNKNOWN);
}

TS_TEST(handles_pointers_and_host_memory_are_told_apart)
{
	uintptr_t address = 0x20000;
	const int properties[4] = { 1, 0, LOCATION_DEVICE, 2 };
	const uintptr_t create[] = { (uintptr_t)&address, 5000, (uintptr_t)properties, 0 };
	const uintptr_t pinned[] = { (uintptr_t)&address, 300, 0 };
	const uintptr_t registered[] = { address, 40, 0 };
	const uintptr_t pooled[] = { (uintptr_t)&address, 6, 9, 17 };

	current = (void *)0x100;
	cuda_memory_changed(&cuda_calls[CUDA_INDEX_cuMemCreate], create, 0);
	TS_CHECK_INT(last.device, 2);
	TS_CHECK_INT(last.total, 5000);
	cuda_memory_changed(&cuda_calls[CUDA_INDEX_cuMemHostAlloc], pinned, 0);
	TS_CHECK_INT(last.device, TS_ALLOCATION_HOST);
	TS_CHECK_INT(last.total, 300);
	cuda_memory_changed(&cuda_calls[CUDA_INDEX_cuMemHostRegister_v2], registered, 0);
	TS_CHECK_INT(last.address, address);
	TS_CHECK_INT(last.total, 340);
	cuda_memory_changed(&cuda_calls[CUDA_INDEX_cuMemAllocFromPoolAsync], pooled, 0);
	TS_CHECK_INT(last.stream, 17);
	TS_CHECK_INT(last.context, 3);
	cuda_memory_changed(&cuda_calls[CUDA_INDEX_cuMemHostUnregister], &address, 0);
	TS_CHECK_INT(last.total, 300);
	cuda_memory_changed(&cuda_calls[CUDA_INDEX_cuMemFreeHost], &address, 0);
	TS_CHECK_INT(last.total, 0);
	cuda_memory_changed(&cuda_calls[CUDA_INDEX_cuMemRelease], &address, 0);
	TS_CHECK_INT(last.bytes, 5000);
	TS_CHECK_INT(last.total, 0);
	release(address);
	TS_CHECK_INT(last.bytes, 6);
}

TS_TEST(old_functions_have_short_addresses)
{
	uint32_t address[2] = { 0x30000, 0xffffffff }, pitch[2] = { 64, 0xffffffff };
	const uintptr_t args[] = { (uintptr_t)address, (uintptr_t)pitch, 50,
				   (uintptr_t)0xffffffff00000004, 4 };

	current = (void *)0x100;
	cuda_memory_changed(&cuda_calls[CUDA_INDEX_cuMemAllocPitch], args, 0);
	TS_CHECK_INT(last.address, 0x30000);
	TS_CHECK_INT(last.bytes, 256);
	release(0x30000);
	TS_CHECK_INT(last.total, 0);
}

TS_TEST(nothing_is_stored_without_a_window_and_all_is_known_after_it)
{
	unsigned int before = rows;

	current = (void *)0x100;
	switched_on = 0;
	allocate(0x40000, 70);
	TS_CHECK_INT(rows, before);
	switched_on = 1;
	allocate(0x50000, 8);
	TS_CHECK_INT(last.total, 78);
	release(0);
	TS_CHECK_INT(rows, before + 1);
	release(0x40000);
	release(0x50000);
	TS_CHECK_INT(last.total, 0);
}

TS_TEST(a_context_takes_its_memory_with_it)
{
	current = (void *)0x300;
	allocate(0x60000, 1);
	current = (void *)0x400;
	allocate(0x70000, 2);
	cuda_memory_forget((void *)0x300, 0);
	allocate(0x80000, 4);
	TS_CHECK_INT(last.total, 6);
	release(0x60000);
	TS_CHECK(last.bytes == TS_UNKNOWN);
	cuda_memory_forget(NULL, 4);
	allocate(0x90000, 16);
	TS_CHECK_INT(last.total, 16);
	release(0x90000);
	TS_CHECK_INT(last.total, 0);
}

/* Enough for the table to grow several times, with holes everywhere. */
#define BLOCKS 20000u

TS_TEST(random_blocks_agree_with_a_list)
{
	static size_t held[BLOCKS];
	uint64_t seed = 12345;
	int64_t total = 0;

	current = (void *)0x500;
	for (unsigned int i = 0; i < 200000; i++) {
		uint32_t number;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		number = (uint32_t)(seed >> 33) % BLOCKS;
		if (held[number]) {
			release(0x7f0000000000 + number * 512ul);
			TS_CHECK_INT(last.bytes, (int64_t)held[number]);
			total -= (int64_t)held[number];
			held[number] = 0;
		} else {
			held[number] = 1 + (seed >> 20) % 1000;
			allocate(0x7f0000000000 + number * 512ul, held[number]);
			total += (int64_t)held[number];
		}
		TS_CHECK_INT(last.total, total);
	}
}
