/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cannot be captured: calls that fail a window by name, and states that prevent it for as long
 * as they last. Functions without a wrapper are known by the counts of their stubs.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/stream/cuda_capture.h"

static const char *const state_texts[] = {
#define CUDA_STATE(name, text) text,
	CUDA_STATES(CUDA_STATE)
#undef CUDA_STATE
};

static struct {
	_Atomic int64_t count;
	const char *_Atomic last; /* the function that made it last */
} states[CUDA_STATE_COUNT];

/* ---- calls ---- */

static bool has_prefix(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

static const char *what_is(const char *name)
{
	static const struct {
		const char *prefix, *text;
	} texts[] = {
		{ "cuLaunchHostFunc", "host function" },
		{ "cuStreamAddCallback", "host function" },
		{ "cuStreamW", "memory operation of a stream" },
		{ "cuStreamBatchMemOp", "memory operation of a stream" },
		{ "cuMemcpy", "copy of an array" },
		{ "cuMemMapArray", "array" },
		{ "cuMulticast", "multicast object" },
		{ "cuGreenCtx", "green context" },
		{ "cuExternalMemory", "external memory" },
		{ "cuSignalExternal", "external semaphore" },
		{ "cuWaitExternal", "external semaphore" },
		{ "cuStreamAttachMemAsync", "managed memory" },
		{ "cuEGL", "graphics resource" },
		{ "cuGL", "graphics resource" },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (has_prefix(name, texts[i].prefix))
			return texts[i].text;
	return "call";
}

int capture_refused_call(struct cuda_call *call, uintptr_t *args)
{
	int result = cuda_invoke(call, args);

	if (result == CUDA_SUCCESS_)
		capture_fail("%s (%.*s)", what_is(call->name), (int)capture_base_name(call->name),
			     call->name);
	return result;
}

int capture_state_call(struct cuda_call *call, uintptr_t *args)
{
	unsigned int change = call->replay - CUDA_REPLAY_REFUSED - 1;
	unsigned int state = change / 2;
	int result = cuda_invoke(call, args);

	if (result != CUDA_SUCCESS_)
		return result;
	if (change % 2) {
		atomic_fetch_sub(&states[state].count, 1);
		return result;
	}
	atomic_store(&states[state].last, call->name);
	atomic_fetch_add(&states[state].count, 1);
	capture_fail("%s (%.*s)", state_texts[state], (int)capture_base_name(call->name),
		     call->name);
	return result;
}

/* ---- managed memory ---- */

static struct {
	pthread_mutex_t lock;
	uint64_t *addresses;
	size_t count, capacity;
} managed = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void keep_managed(uint64_t address)
{
	pthread_mutex_lock(&managed.lock);
	if (managed.count == managed.capacity) {
		size_t capacity = managed.capacity ? 2 * managed.capacity : 64;
		uint64_t *addresses =
			realloc(managed.addresses, capacity * sizeof(*managed.addresses));

		if (addresses) {
			managed.addresses = addresses;
			managed.capacity = capacity;
		}
	}
	/* Without memory it counts for ever, which only prevents windows. */
	if (managed.count < managed.capacity)
		managed.addresses[managed.count++] = address;
	pthread_mutex_unlock(&managed.lock);
}

static bool drop_managed(uint64_t address)
{
	bool is_found = false;

	pthread_mutex_lock(&managed.lock);
	for (size_t i = 0; i < managed.count && !is_found; i++) {
		if (managed.addresses[i] != address)
			continue;
		managed.addresses[i] = managed.addresses[--managed.count];
		is_found = true;
	}
	pthread_mutex_unlock(&managed.lock);
	return is_found;
}

void capture_managed_freed(uint64_t address)
{
	if (atomic_load_explicit(&states[CUDA_STATE_MANAGED].count, memory_order_relaxed) > 0 &&
	    drop_managed(address))
		atomic_fetch_sub(&states[CUDA_STATE_MANAGED].count, 1);
}

static int allocate_managed(struct cuda_call *call, uintptr_t *args)
{
	int result = capture_state_call(call, args);

	if (result == CUDA_SUCCESS_ && args[0])
		keep_managed(*(const uint64_t *)args[0]);
	return result;
}

/* ---- export tables ---- */

/*
 * Those of the CUDA runtime, which may be part of any program. What it does with them is seen as
 * calls, or is no work.
 */
static const uint8_t runtime_tables[][16] = {
	{ 0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d,
	  0xf9 },
	{ 0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec,
	  0xdc },
	{ 0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a,
	  0x66 },
	{ 0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95,
	  0x93 },
	{ 0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1,
	  0xf2 },
	{ 0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa,
	  0x7e },
	{ 0xf8, 0xcf, 0xf9, 0x51, 0x21, 0x46, 0x8b, 0x4e, 0xb9, 0xe2, 0xfb, 0x46, 0x9e, 0x7c, 0x0d,
	  0xd9 },
};

static bool is_of_runtime(const uint8_t *id)
{
	for (size_t i = 0; i < sizeof(runtime_tables) / sizeof(runtime_tables[0]); i++)
		if (!memcmp(runtime_tables[i], id, sizeof(runtime_tables[i])))
			return true;
	return false;
}

/* libcublas, libcudart, libnvJitLink ... */
static bool is_of_nvidia(const void *caller)
{
	const char *name;
	Dl_info info;

	if (!caller || !dladdr(caller, &info) || !info.dli_fname)
		return false;
	name = strrchr(info.dli_fname, '/');
	name = name ? name + 1 : info.dli_fname;
	return has_prefix(name, "libcu") || has_prefix(name, "libnv") || has_prefix(name, "libnpp");
}

static int get_export_table(struct cuda_call *call, uintptr_t *args)
{
	const uint8_t *id = (const uint8_t *)args[1];
	const void *caller = cuda_thread.caller;
	int result = cuda_invoke(call, args);

	if (result == CUDA_SUCCESS_ && id && !is_of_runtime(id) && !is_of_nvidia(caller))
		capture_prevent("export table %02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
				"%02x%02x%02x%02x%02x%02x",
				id[0], id[1], id[2], id[3], id[4], id[5], id[6], id[7], id[8],
				id[9], id[10], id[11], id[12], id[13], id[14], id[15]);
	return result;
}

/* CUPTI has seen it, but no wrapper has. */
void cuda_call_bypassed(uint32_t number)
{
	if (!capture_is_open())
		return;
	for (size_t i = 0; i < CUDA_CALL_COUNT; i++) {
		if (cuda_calls[i].number != number || !number)
			continue;
		capture_fail("call past its wrapper (%s)", cuda_calls[i].name);
		return;
	}
}

void capture_collective(const char *name)
{
	capture_fail("NCCL communicator (%s)", name);
}

/* ---- functions without a wrapper ---- */

#define STUBS 1024u

/* How often each was called when the window opened. */
static uint64_t calls_before[STUBS];

/* HARMLESS also for what has a wrapper, which counts by a stub. */
static enum cuda_replay class_of(const char *name)
{
	size_t length = capture_base_name(name);

	for (size_t i = 0; i < CUDA_CALL_COUNT; i++)
		if (capture_base_name(cuda_calls[i].name) == length &&
		    !memcmp(cuda_calls[i].name, name, length))
			return CUDA_REPLAY_HARMLESS;
	return cuda_other_replay(name);
}

void capture_refused_begin(void)
{
	struct cuda_stub_use use;

	for (uint32_t at = 0; cuda_stub_next(&at, &use);)
		calls_before[(at - 1) % STUBS] = use.calls;
}

static void name_state(char *buffer, size_t bytes, unsigned int state, const char *name)
{
	snprintf(buffer, bytes, "%s (%.*s)", state_texts[state], (int)capture_base_name(name),
		 name);
}

static unsigned int state_of(enum cuda_replay replay)
{
	return (replay - CUDA_REPLAY_REFUSED - 1) / 2;
}

const char *capture_refused_used(char *buffer, size_t bytes)
{
	struct cuda_stub_use use;

	for (uint32_t at = 0; cuda_stub_next(&at, &use);) {
		enum cuda_replay replay;

		if (use.calls == calls_before[(at - 1) % STUBS])
			continue;
		replay = class_of(use.name);
		if (replay == CUDA_REPLAY_HARMLESS)
			continue;
		if (replay > CUDA_REPLAY_REFUSED)
			name_state(buffer, bytes, state_of(replay), use.name);
		else
			snprintf(buffer, bytes, "%s (%s)", what_is(use.name), use.name);
		return buffer;
	}
	return NULL;
}

/* ---- states ---- */

/* What functions without a wrapper have made, less what was ended since. */
static bool is_made_by_stub(char *buffer, size_t bytes)
{
	struct cuda_stub_use use;

	for (uint32_t at = 0; cuda_stub_next(&at, &use);) {
		enum cuda_replay replay = class_of(use.name);

		if (replay <= CUDA_REPLAY_REFUSED ||
		    (int64_t)use.calls + atomic_load(&states[state_of(replay)].count) <= 0)
			continue;
		name_state(buffer, bytes, state_of(replay), use.name);
		return true;
	}
	return false;
}

const char *capture_refused_state(char *buffer, size_t bytes)
{
	for (unsigned int i = 0; i < CUDA_STATE_COUNT; i++) {
		const char *last = atomic_load(&states[i].last);

		if (atomic_load(&states[i].count) <= 0 || !last)
			continue;
		name_state(buffer, bytes, i, last);
		return buffer;
	}
	return is_made_by_stub(buffer, bytes) ? buffer : NULL;
}

/* The last context is gone, and with it what was made in one. */
void capture_refused_forget(void)
{
	static const uint8_t of_contexts[] = { CUDA_STATE_ARRAY,    CUDA_STATE_TEXTURE,
					       CUDA_STATE_SURFACE,  CUDA_STATE_MANAGED,
					       CUDA_STATE_GRAPHICS, CUDA_STATE_PEER_ACCESS };

	for (size_t i = 0; i < sizeof(of_contexts); i++)
		atomic_store(&states[of_contexts[i]].count, 0);
	pthread_mutex_lock(&managed.lock);
	managed.count = 0;
	pthread_mutex_unlock(&managed.lock);
}

const struct cuda_handler_entry capture_refused_handlers[] = {
	{ "cuMemAllocManaged", allocate_managed, CAPTURE_ALWAYS },
	{ "cuGetExportTable", get_export_table, CAPTURE_ALWAYS },
	{ NULL, NULL, 0 },
};
