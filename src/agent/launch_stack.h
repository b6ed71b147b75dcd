/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call stack of the calling thread as a number (docs/cuda.md, section 4): what is shared by the
 * files that make it. Stacks are a tree in the area's dictionary: an entry is its caller's entry
 * and one frame.
 */
#ifndef TS_AGENT_LAUNCH_STACK_H
#define TS_AGENT_LAUNCH_STACK_H

#include "agent/agent_python.h"
#include "agent/tracer.h"
#include "code/local/local_unwind.h"

/*
 * TS_STACKS_* that were asked for when the process began; 0: never any. Known before the first
 * event.
 */
extern uint32_t agent_stacks_asked;

/* Reads "none", "native", "python" or "all". */
uint32_t agent_stacks_parse(const char *text);

/* The calling thread ends. */
void agent_stack_thread_exit(void);
/* Numbers that were given out are no longer in the dictionary. */
void agent_stack_forget(void);

/* ---- slots: written and read without a lock, as those of local_unwind.h ---- */

#define AGENT_SLOT_WAYS 4u

struct agent_slot {
	uint64_t check, value; /* 0: free */
};

static inline uint64_t agent_slot_check(uint64_t key, uint64_t value)
{
	return key ^ value * UINT64_C(0xd6e8feb86659fd93);
}

/* Of one bucket; 0: it is not there. */
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

/* In place of another one, if need be: it is found out anew. */
void agent_slot_keep(struct agent_slot *slots, uint64_t key, uint64_t value);

/*
 * Memory of slots, made by whoever needs it first; it is a forked child's as well. NULL: there is
 * none.
 */
struct agent_slot *agent_slots(struct agent_slot **slots, size_t count);

/* ---- launch_stack_frames.c: frames as the dictionary has them ---- */

/* A thread's; filled from the innermost frame on. */
struct agent_merged_stack {
	uint32_t count;
	uint64_t frames[TS_LIVE_FRAMES];
	struct ts_local_unwind_module module; /* too large for a handler's stack */
};

/*
 * Python frames stand where the interpreter's loop does. Signals are blocked; not with the core's
 * lock held.
 */
void agent_stack_merge(struct core *core, const struct ts_local_unwind_stack *native,
		       const struct agent_python_stack *python, struct agent_merged_stack *stack);
void agent_stack_frames_forget(void);

/* ---- launch_stack_tree.c ---- */

/* The number of a stack; 0: there is no room. Signals are blocked. */
uint32_t agent_stack_number(struct core *core, const struct agent_merged_stack *stack);
void agent_stack_tree_forget(void);

#endif
