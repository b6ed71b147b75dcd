/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling thread's call stack as a number (docs/cuda.md, section 4). Stacks form a tree in the
 * area's dictionary: an entry is one frame plus the number of its caller's entry.
 */
#ifndef TS_AGENT_LAUNCH_STACK_H
#define TS_AGENT_LAUNCH_STACK_H

#include "agent/agent_python.h"
#include "agent/tracer.h"
#include "code/local/local_unwind.h"

/* TS_STACKS_* requested when the process started; 0: none. Set before the first event. */
extern uint32_t agent_stacks_requested;

/* Parses "none", "native", "python" or "all". */
uint32_t agent_stacks_parse(const char *text);

/* Frees the calling thread's state when it exits. */
void agent_stack_thread_exit(void);
/* Forgets all assigned numbers: the dictionary no longer has them. */
void agent_stack_forget(void);

/* ---- slots: lock-free cache, as in local_unwind.h ---- */

#define AGENT_SLOT_WAYS 4u

struct agent_slot {
	uint64_t check, value; /* 0: free */
};

static inline uint64_t agent_slot_check(uint64_t key, uint64_t value)
{
	return key ^ value * UINT64_C(0xd6e8feb86659fd93);
}

/* Searches one bucket; 0: not found. */
static inline uint64_t agent_slot_find(const struct agent_slot *slots, uint64_t key)
{
	for (unsigned int i = 0; i < AGENT_SLOT_WAYS; i++) {
		uint64_t value = __atomic_load_n(&slots[i].value, __ATOMIC_RELAXED);

		if (AGENT_LIKELY(__atomic_load_n(&slots[i].check, __ATOMIC_RELAXED) ==
				 agent_slot_check(key, value)))
			return value;
	}
	return 0;
}

/* Stores a value in the bucket; may evict another one, which is then recomputed. */
void agent_slot_keep(struct agent_slot *slots, uint64_t key, uint64_t value);

/*
 * The memory of slots, allocated by the first caller and kept in a forked child. NULL: no memory.
 */
struct agent_slot *agent_slots(struct agent_slot **slots, size_t count);

/* ---- launch_stack_frames.c: frames in the dictionary's form ---- */

/* One per thread. Frames are stored from the innermost on. */
struct agent_merged_stack {
	uint32_t count;
	uint64_t frames[TS_LIVE_FRAMES];
	struct ts_local_unwind_module module; /* too large for a handler's stack */
};

/*
 * Merges both stacks: Python frames replace those of the interpreter's loop. Call with signals
 * blocked, and without the core's lock.
 */
void agent_stack_merge(struct core *core, const struct ts_local_unwind_stack *native,
		       const struct agent_python_stack *python, struct agent_merged_stack *stack);
void agent_stack_frames_forget(void);

/* ---- launch_stack_tree.c ---- */

/* The number of a stack; 0: the dictionary is full. Call with signals blocked. */
uint32_t agent_stack_number(struct core *core, const struct agent_merged_stack *stack);
void agent_stack_tree_forget(void);

#endif
