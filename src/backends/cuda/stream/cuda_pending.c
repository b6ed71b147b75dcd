/* SPDX-License-Identifier: Apache-2.0 */
/* Weak stand-ins for functions of files that do not exist yet; goes when all of them do. */
#include "backends/cuda/stream/cuda_capture.h"

#define WEAK __attribute__((weak))
WEAK bool capture_any_capturing(void)
{
	return false;
}
WEAK uint64_t capture_blob(const void *data, uint64_t bytes)
{
	return 0;
}
WEAK void capture_check_each(uint64_t sequence)
{
}
WEAK uint64_t capture_command(const struct ts_replay_command *row)
{
	return 0;
}
WEAK struct capture_context *capture_context_current(void)
{
	return NULL;
}
WEAK uint64_t capture_context_number(struct capture_context *context)
{
	return 0;
}
WEAK void capture_context_pop(void)
{
}
WEAK bool capture_context_push(struct capture_context *context)
{
	return false;
}
WEAK void capture_fail(const char *format, ...)
{
}
WEAK bool capture_is_capturing(uintptr_t stream)
{
	return false;
}
WEAK bool capture_is_open(void)
{
	return false;
}
WEAK void capture_lock(void)
{
}
WEAK void capture_object(const struct ts_replay_object *object)
{
}
WEAK void capture_piece(uint64_t object, int64_t offset, const void *data, uint64_t bytes)
{
}
WEAK struct ts_replay_command capture_row(uint32_t kind)
{
	return (struct ts_replay_command){ .kind = kind };
}
WEAK uint64_t capture_stream_number(const struct cuda_call *call, uintptr_t stream)
{
	return 0;
}
WEAK void capture_unlock(void)
{
}
WEAK int cuda_invoke(struct cuda_call *call, const uintptr_t *args)
{
	return CUDA_NOT_SUPPORTED;
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
