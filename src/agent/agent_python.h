/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python stack of the calling thread, for marks and calls, where TRACESMITH_PYTHON_STACKS asks
 * for it.
 */
#ifndef TS_AGENT_AGENT_PYTHON_H
#define TS_AGENT_AGENT_PYTHON_H

#include "agent/emit.h"

#define AGENT_PYTHON_MARKS 1u
#define AGENT_PYTHON_CALLS 2u

/* Reads "marks,calls". */
uint32_t agent_python_parse(const char *text);

/* Looks for Python in this process; at load, where nothing has a lock. */
void agent_python_look(void);

/*
 * The stack, where the configuration has not switched that off. False: there is none, since it is
 * no thread of Python's, or one that is not known. Valid until agent_python_done(), which is to be
 * called then. Takes no lock but for a function's first time, never the interpreter's; a handler
 * that interrupts this gets none.
 */
bool agent_python_take(struct core *core, uint32_t what, struct agent_stack *ret_stack);
void agent_python_done(void);

/* The same for a stack by number, which has settings of its own: outermost frame first. */
struct agent_python_stack {
	const uint64_t *frames;  /* as in a record */
	const uint8_t *is_entry; /* 1: native code has entered the interpreter with this frame */
	uint32_t count;
};
bool agent_python_frames(struct core *core, struct agent_python_stack *ret_stack);

/* Address of the interpreter's loop; 0: there is none. */
uint64_t agent_python_loop(void);

/* Numbers that frames have are no longer in the dictionary. */
void agent_python_forget(void);

/* The calling thread ends. */
void agent_python_thread_exit(void);

#endif
