/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that allocate and free device memory (docs/cuda-replay.md, 3.1), and the table of all calls
 * that the arena serves.
 */
#include <string.h>

#include "backends/cuda/stream/cuda_arena.h"

#pragma weak host_synchronized

/* The oldest functions have addresses of 32 bits. */
static bool is_short(const struct cuda_call *call)
{
	size_t length = strlen(call->name);

	return length < 3 || strcmp(call->name + length - 3, "_v2") != 0;
}

static struct capture_context *context_with_arena(void)
{
	struct capture_context *context = capture_context_current();

	return context && arena_of(context->device) ? context : NULL;
}

static int allocate(struct capture_context *context, uint64_t bytes, uint64_t *ret_address)
{
	struct arena *arena = arena_of(context->device);
	int result = arena_may_allocate();

	if (result)
		return result;
	capture_lock();
	arena_lock();
	result = arena_alloc_locked(arena, bytes, context, ret_address);
	arena_unlock();
	capture_unlock();
	return result;
}

/* address, bytes */
static int handle_alloc(struct cuda_call *call, uintptr_t *args)
{
	struct capture_context *context = context_with_arena();

	if (!context || !args[0] || !args[1] || is_short(call))
		return cuda_invoke(call, args);
	return allocate(context, args[1], (uint64_t *)args[0]);
}

/* address, pitch, bytes of a row, rows, bytes of an element */
static int handle_alloc_pitch(struct cuda_call *call, uintptr_t *args)
{
	struct capture_context *context = context_with_arena();
	uint64_t row = args[2], rows = args[3], element = args[4];
	int result;

	if (!context || !args[0] || !args[1] || !row || !rows || is_short(call) ||
	    (element != 4 && element != 8 && element != 16))
		return cuda_invoke(call, args);
	row = (row + ARENA_ALIGNMENT - 1) & ~(ARENA_ALIGNMENT - 1);
	if (rows > UINT64_MAX / row)
		return CUDA_OUT_OF_MEMORY;
	result = allocate(context, row * rows, (uint64_t *)args[0]);
	if (result == CUDA_SUCCESS_)
		*(size_t *)args[1] = row;
	return result;
}

/*
 * To wait for a context ends captures in it. To free memory waits as well, and does not: also for
 * default streams of other threads. There may be none left to free.
 */
static int wait_during_captures(struct capture_context *context)
{
	int result = context ? capture_context_finish_streams(context) : CUDA_SUCCESS_;
	uint64_t memory;

	if (result || cu.MemAlloc(&memory, 1))
		return result;
	return cu.MemFree(memory);
}

/* The host waits for the context, as the driver does. */
static int wait_for(struct capture_context *context)
{
	int result;

	if (context && !capture_context_push(context))
		return CUDA_INVALID_CONTEXT;
	result = capture_any_capturing() ? wait_during_captures(context) : cu.CtxSynchronize();
	if (context)
		capture_context_pop();
	return result;
}

static void append_wait(const struct cuda_call *call, struct capture_context *context,
			uint64_t until)
{
	struct ts_replay_command row = capture_row(TS_COMMAND_SYNC);
	struct stream_text text;

	if (!until || !capture_is_open())
		return;
	stream_text_begin(&text);
	stream_text_string(&text, "call", call->name);
	stream_text_string(&text, "what", "free");
	stream_text_uint(&text, "until", until);
	row.object = context ? capture_context_number(context) : 0;
	row.details = stream_text_end(&text);
	capture_command(&row);
	if (host_synchronized)
		host_synchronized();
}

int allocate_free(struct cuda_call *call, struct arena *arena, uint64_t address)
{
	struct capture_context *context = NULL;
	struct arena_item *item;
	uint64_t until, id = 0;
	int result;

	arena_lock();
	item = arena_item_locked(address);
	if (item && item->range.address == address) {
		id = item->id;
		context = item->context;
	}
	arena_unlock();
	if (!id)
		return CUDA_INVALID_VALUE;
	until = capture_is_open() ? capture_last_sequence() : 0;
	result = wait_for(context);
	if (result)
		return result;
	ts_replay_enter();
	capture_lock();
	append_wait(call, context, until);
	arena_lock();
	item = arena_item_locked(address);
	/* Memory of a graph stays until that is destroyed. */
	if (item && item->id == id && item->pool && pools_is_graph(item->pool))
		item->is_freed = true;
	else if (item && item->id == id)
		arena_free_locked(arena, item);
	arena_unlock();
	capture_unlock();
	ts_replay_leave();
	return CUDA_SUCCESS_;
}

/* Does not hold the gate while it waits. */
static int handle_free(struct cuda_call *call, uintptr_t *args)
{
	struct arena *arena = arena_at(args[0]);
	int result;

	if (!arena || is_short(call)) {
		result = cuda_invoke(call, args);
		if (result == CUDA_SUCCESS_ && args[0])
			capture_managed_freed(args[0]);
		return result;
	}
	result = arena_may_allocate();
	return result ? result : allocate_free(call, arena, args[0]);
}

/* handle, address */
static int handle_ipc(struct cuda_call *call, uintptr_t *args)
{
	return arena_contains(args[1]) ? CUDA_INVALID_VALUE : cuda_invoke(call, args);
}

const struct cuda_handler_entry capture_memory_handlers[] = {
	{ "cuMemAlloc", handle_alloc, CAPTURE_ALWAYS },
	{ "cuMemAllocPitch", handle_alloc_pitch, CAPTURE_ALWAYS },
	{ "cuMemFree", handle_free, CAPTURE_ALWAYS | CAPTURE_UNGATED },
	{ "cuMemAllocAsync", pools_alloc_async, CAPTURE_ALWAYS },
	{ "cuMemAllocFromPoolAsync", pools_alloc_from, CAPTURE_ALWAYS },
	{ "cuMemFreeAsync", pools_free_async, CAPTURE_ALWAYS },
	{ "cuMemPoolCreate", pools_create, CAPTURE_ALWAYS },
	{ "cuMemPoolDestroy", pools_destroy, CAPTURE_ALWAYS },
	{ "cuMemPoolTrimTo", pools_trim, CAPTURE_ALWAYS },
	{ "cuMemPoolGetAttribute", pools_get_attribute, CAPTURE_ALWAYS },
	{ "cuMemPoolSetAttribute", pools_set_attribute, CAPTURE_ALWAYS },
	{ "cuDeviceSetMemPool", pools_set_device, CAPTURE_ALWAYS },
	{ "cuMemSetMemPool", pools_set_location, CAPTURE_ALWAYS },
	{ "cuGraphAddMemAllocNode", pools_add_alloc_node, CAPTURE_ALWAYS },
	{ "cuGraphAddMemFreeNode", pools_add_free_node, CAPTURE_ALWAYS },
	{ "cuGraphAddNode", pools_add_node, CAPTURE_ALWAYS },
	{ "cuGraphDestroy", pools_graph_destroy, CAPTURE_ALWAYS },
	{ "cuGraphClone", pools_graph_clone, CAPTURE_ALWAYS },
	{ "cuMemAddressReserve", virtual_reserve, CAPTURE_ALWAYS },
	{ "cuMemAddressFree", virtual_free, CAPTURE_ALWAYS },
	{ "cuMemCreate", virtual_create, CAPTURE_ALWAYS },
	{ "cuMemRelease", virtual_release, CAPTURE_ALWAYS },
	{ "cuMemMap", virtual_map, CAPTURE_ALWAYS },
	{ "cuMemSetAccess", virtual_set_access, CAPTURE_ALWAYS },
	{ "cuMemUnmap", virtual_unmap, CAPTURE_ALWAYS },
	{ "cuMemRetainAllocationHandle", virtual_retain, CAPTURE_ALWAYS },
	{ "cuMemGetInfo", attributes_memory_info, CAPTURE_ALWAYS },
	{ "cuMemGetAddressRange", attributes_range, CAPTURE_ALWAYS },
	{ "cuPointerGetAttribute", attributes_get, CAPTURE_ALWAYS },
	{ "cuPointerGetAttributes", attributes_get_several, CAPTURE_ALWAYS },
	{ "cuPointerSetAttribute", attributes_set, CAPTURE_ALWAYS },
	{ "cuIpcGetMemHandle", handle_ipc, CAPTURE_ALWAYS },
	{ NULL, NULL, 0 },
};
