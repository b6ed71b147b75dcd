/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `record --replayable` needs of CUDA: memory at fixed addresses, and a way to unpack code.
 * Creates no context.
 */
#include <dlfcn.h>
#include <stdint.h>

#include "backends/recorder/cuda_checks.h"
#include "base/finding.h"
#include "base/memory.h"
#include "code/cuda/local/cuda_abi.h"

#define ATTRIBUTE_PAGEABLE 88
#define ATTRIBUTE_VIRTUAL_MEMORY 102
#define ALIGNMENT ((size_t)2 << 20)

typedef int (*reserve_function)(uint64_t *address, size_t bytes, size_t alignment, uint64_t hint,
				unsigned long long flags);
typedef int (*release_function)(uint64_t address, size_t bytes);

/* True also if that cannot be tried without a context. */
static bool is_base_free(reserve_function reserve, release_function release, uint64_t base)
{
	uint64_t address = 0;
	int code = reserve(&address, CUDA_ARENA_BYTES_LEAST, ALIGNMENT, base, 0);

	if (code)
		return code == CUDA_INVALID_CONTEXT;
	release(address, CUDA_ARENA_BYTES_LEAST);
	return address == base;
}

static bool any_base_is_free(void *library)
{
	static const uint64_t bases[] = { CUDA_ARENA_BASES };
	reserve_function reserve = (reserve_function)dlsym(library, "cuMemAddressReserve");
	release_function release = (release_function)dlsym(library, "cuMemAddressFree");

	for (size_t i = 0; reserve && release && i < TS_ARRAY_SIZE(bases); i++)
		if (is_base_free(reserve, release, bases[i]))
			return true;
	return false;
}

/* A device without this attribute; -1: all have it. */
static int find_without(const struct ts_cuda *cuda, int count, int attribute, bool wanted)
{
	for (int i = 0; i < count; i++) {
		int device = 0, value = 0;

		if (cuda->device_get(&device, i) ||
		    cuda->device_attribute(&value, attribute, device) || (value != 0) != wanted)
			return i;
	}
	return -1;
}

void ts_check_cuda_replay(struct ts_finding *ret_finding)
{
	struct ts_cuda cuda;
	int count = 0, without;

	if (!ts_cuda_start(&cuda, ret_finding))
		return;
	if (cuda.device_count(&count) || !count) {
		ts_finding_set(ret_finding, TS_CHECK_ABSENT, "the driver sees no GPU");
		return;
	}
	without = find_without(&cuda, count, ATTRIBUTE_VIRTUAL_MEMORY, true);
	if (without >= 0) {
		ts_finding_set(ret_finding, TS_CHECK_NO,
			       "device %d has no virtual memory management: no window can open",
			       without);
		return;
	}
	if (!any_base_is_free(dlopen("libcuda.so.1", RTLD_NOW))) {
		ts_finding_set(ret_finding, TS_CHECK_NO,
			       "no fixed address range is free: no window can open");
		ts_finding_note(ret_finding, "sanitizers and other tools occupy such ranges");
		return;
	}
	if (!dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL)) {
		ts_finding_set(ret_finding, TS_CHECK_LIMITED,
			       "libzstd.so.1 is missing: windows fail in programs whose code is "
			       "compressed with it");
		ts_finding_fix(ret_finding, "sudo apt install libzstd1");
		return;
	}
	without = find_without(&cuda, count, ATTRIBUTE_PAGEABLE, false);
	if (without >= 0)
		ts_finding_set(ret_finding, TS_CHECK_LIMITED,
			       "kernels on device %d can read pageable host memory, which is not "
			       "captured",
			       without);
	else
		ts_finding_set(ret_finding, TS_CHECK_YES,
			       "device memory can lie at fixed addresses");
}
