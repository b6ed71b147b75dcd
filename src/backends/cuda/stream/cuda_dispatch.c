/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes calls of the program to their handlers, by what they mean to replayable windows: through
 * the gate, and recorded as any call is. Handlers are found once, by name.
 */
#include <pthread.h>
#include <string.h>

#include "backends/cuda/stream/cuda_capture.h"

uint32_t cuda_replaying;

/* By index of the call; NULL: it goes straight to the driver. */
static const struct cuda_handler_entry *entries[CUDA_CALL_COUNT];

/* Tables of handlers. */
static const struct cuda_handler_entry *const tables[] = {
	capture_memory_handlers,  capture_host_handlers,     capture_module_handlers,
	capture_launch_handlers,  capture_graph_handlers,    capture_copy_handlers,
	capture_object_handlers,  capture_order_handlers,    capture_setting_handlers,
	capture_refused_handlers, capture_function_handlers, capture_global_handlers,
};

/* ---- the driver's call ---- */

int cuda_invoke(struct cuda_call *call, const uintptr_t *args)
{
	typedef int (*words_function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
				      uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
				      uintptr_t);
	/* A function ignores words beyond its own arguments, in registers and on the stack. */
	words_function real = (words_function)(void *)cuda_call_real(call);

	return real(args[0], args[1], args[2], args[3], args[4], args[5], args[6], args[7], args[8],
		    args[9], args[10]);
}

/* ---- names ---- */

bool capture_is_per_thread(const struct cuda_call *call)
{
	size_t length = strlen(call->name);

	return length > 5 && (!memcmp(call->name + length - 5, "_ptsz", 5) ||
			      !memcmp(call->name + length - 5, "_ptds", 5));
}

size_t capture_base_name(const char *name)
{
	size_t length = strlen(name);

	if (length > 5 &&
	    (!strcmp(name + length - 5, "_ptsz") || !strcmp(name + length - 5, "_ptds")))
		length -= 5;
	if (length > 3 && name[length - 3] == '_' && name[length - 2] == 'v' &&
	    name[length - 1] >= '0' && name[length - 1] <= '9')
		length -= 3;
	return length;
}

static const struct cuda_handler_entry *find_entry(const char *name)
{
	size_t length = capture_base_name(name);

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct cuda_handler_entry *entry = tables[i]; entry->name; entry++)
			if (strlen(entry->name) == length && !memcmp(entry->name, name, length))
				return entry;
	return NULL;
}

void capture_dispatch_start(void)
{
	static const struct cuda_handler_entry refused = { "", capture_refused_call, 0 };
	static const struct cuda_handler_entry changes = { "", capture_state_call, CAPTURE_ALWAYS };

	for (size_t i = 0; i < CUDA_CALL_COUNT; i++) {
		enum cuda_replay replay = cuda_calls[i].replay;

		if (replay != CUDA_REPLAY_HARMLESS)
			entries[i] = find_entry(cuda_calls[i].name);
		if (!entries[i] &&
		    (replay == CUDA_REPLAY_CAPTURED || replay == CUDA_REPLAY_REFUSED))
			entries[i] = &refused;
		else if (!entries[i] && replay > CUDA_REPLAY_REFUSED)
			entries[i] = &changes;
		cuda_calls[i].is_windowed =
			replay == CUDA_REPLAY_CAPTURED && entries[i] &&
			!cuda_class_is_always(cuda_calls[i].class) &&
			!(entries[i]->flags & (CAPTURE_ALWAYS | CAPTURE_UNGATED));
	}
}

/* ---- calls ---- */

static bool is_handled(const struct cuda_handler_entry *entry)
{
	return (entry->flags & CAPTURE_ALWAYS) || ts_replay_is_open() ||
	       ((entry->flags & CAPTURE_IN_GRAPHS) && capture_any_capturing());
}

static int handle(struct cuda_call *call, uintptr_t *args, const struct cuda_handler_entry *entry)
{
	uintptr_t first = args[0];
	int result;

	if (entry && is_handled(entry))
		result = entry->run(call, args);
	else
		result = cuda_invoke(call, args);
	if (call->class == CUDA_FREE && result == CUDA_SUCCESS_)
		capture_managed_freed(first);
	return result;
}

/* As its wrapper would record it. */
static int record(struct cuda_call *call, uintptr_t *args, const struct cuda_handler_entry *entry)
{
	struct cuda_call_state state;
	uintptr_t given[CUDA_ARGUMENTS_AT_MOST];
	int result;

	if (!cuda_class_may_count(call->class) || !cuda_is_wanted()) {
		cuda_thread.depth++;
		cuda_thread.correlation = 0;
		result = handle(call, args, entry);
		cuda_thread.depth--;
		return result;
	}
	memcpy(given, args, sizeof(given));
	cuda_call_enter(call, &state);
	result = handle(call, args, entry);
	cuda_call_leave(call, &state, given, result);
	return result;
}

bool cuda_passes(const struct cuda_call *call)
{
	if (!call->is_windowed || cuda_thread.depth || cuda_thread.is_ours || ts_enabled() ||
	    __atomic_load_n(&cuda_captures, __ATOMIC_RELAXED) || !ts_replay_pass())
		return false;
	cuda_thread.depth = 1;
	cuda_thread.correlation = 0;
	return true;
}

int cuda_capture_call(struct cuda_call *call, uintptr_t *args)
{
	const struct cuda_handler_entry *entry = entries[call - cuda_calls];
	int result;

	if (cuda_thread.depth || cuda_thread.is_ours)
		return cuda_invoke(call, args);
	if (!entry)
		return record(call, args, NULL);
	capture_begin();
	if (entry->flags & CAPTURE_UNGATED) {
		ts_replay_step();
		return record(call, args, entry);
	}
	ts_replay_enter();
	result = record(call, args, entry);
	ts_replay_leave();
	return result;
}
