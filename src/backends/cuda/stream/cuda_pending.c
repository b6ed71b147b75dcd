/* SPDX-License-Identifier: Apache-2.0 */
/* Weak stand-ins for functions of files that do not exist yet; goes when all of them do. */
#include "backends/cuda/stream/cuda_capture.h"

#define WEAK __attribute__((weak))
WEAK void capture_check_each(uint64_t sequence)
{
}
WEAK void capture_piece(uint64_t object, int64_t offset, const void *data, uint64_t bytes)
{
}
WEAK void host_emit_changes(void)
{
}
WEAK void host_look_for_pointers(const void *data, uint64_t bytes)
{
}
WEAK bool arena_contains(uint64_t address)
{
	return false;
}
WEAK bool host_contains(uint64_t address, uint64_t bytes)
{
	return false;
}
WEAK struct capture_context *capture_context_next(struct capture_context *after)
{
	return NULL;
}
WEAK bool capture_is_per_thread(const struct cuda_call *call)
{
	return false;
}
WEAK bool capture_locate(uint64_t address, uint64_t bytes, uint64_t *ret_object,
			 int64_t *ret_offset)
{
	return false;
}
