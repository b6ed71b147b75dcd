/* SPDX-License-Identifier: Apache-2.0 */
/* The calling thread's Python stack for marks and calls, if TRACESMITH_PYTHON_STACKS is set. */
#ifndef TS_AGENT_AGENT_PYTHON_H
#define TS_AGENT_AGENT_PYTHON_H

#include "agent/emit.h"

#define AGENT_PYTHON_MARKS 1u
#define AGENT_PYTHON_CALLS 2u

/* Parses "marks,calls". */
uint32_t agent_python_parse(const char *text);

/* Looks for Python in this process. Called at load, when no lock is held. */
void agent_python_look(void);

/*
 * Takes the stack, unless the configuration disables it. False: no stack; not a Python thread, or
 * an unknown version. On success the stack is valid until agent_python_done(), which must follow.
 * Takes a lock only the first time it sees a function, never the interpreter's lock. A signal
 * handler that interrupts this gets no stack.
 */
bool agent_python_take(struct core *core, uint32_t what, struct agent_stack *ret_stack);
void agent_python_done(void);

/* The same for a stack by number, which has its own settings. Outermost frame first. */
struct agent_python_stack {
	const uint64_t *frames;  /* as in a record */
	const uint8_t *is_entry; /* 1: native code entered the interpreter at this frame */
	uint32_t count;
};
bool agent_python_frames(struct core *core, struct agent_python_stack *ret_stack);

/* Address of the interpreter's loop; 0: none. */
uint64_t agent_python_loop(void);

/* Forgets the numbers of functions: the dictionary no longer has them. */
void agent_python_forget(void);

/* Frees the calling thread's state when it exits. */
void agent_python_thread_exit(void);

#endif
