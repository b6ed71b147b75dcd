/* SPDX-License-Identifier: Apache-2.0 */
/* Weak stand-ins for functions of files that do not exist yet; goes when all of them do. */
#include "backends/cuda/stream/cuda_capture.h"

#define WEAK __attribute__((weak))
WEAK size_t arena_mappings(const struct capture_device *device, struct arena_mapping **ret_mappings)
{
	*ret_mappings = NULL;
	return 0;
}
WEAK bool arena_contains(uint64_t address)
{
	return false;
}
WEAK bool capture_locate(uint64_t address, uint64_t bytes, uint64_t *ret_object,
			 int64_t *ret_offset)
{
	return false;
}
