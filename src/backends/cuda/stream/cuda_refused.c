/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cannot be captured: calls that fail a window by name, and states that prevent it for as long
 * as they last. Functions without a wrapper are known by the counts of their stubs.
 */
#include <stdatomic.h>
#include <stdio.h>
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

void capture_managed_freed(uint64_t address)
{
	(void)address;
}

/* ---- states ---- */

const char *capture_refused_state(char *buffer, size_t bytes)
{
	for (size_t i = 0; i < CUDA_STATE_COUNT; i++) {
		const char *last = atomic_load(&states[i].last);

		if (atomic_load(&states[i].count) <= 0 || !last)
			continue;
		snprintf(buffer, bytes, "%s (%.*s)", state_texts[i], (int)capture_base_name(last),
			 last);
		return buffer;
	}
	return NULL;
}

/* ---- functions without a wrapper ---- */

void capture_refused_begin(void)
{
}

const char *capture_refused_used(char *buffer, size_t bytes)
{
	(void)buffer;
	(void)bytes;
	return NULL;
}

const struct cuda_handler_entry capture_refused_handlers[] = { { NULL, NULL, 0 } };
