/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of agent_python.h: the Python version found in this process, and a thread's buffer for
 * frames.
 */
#ifndef TS_AGENT_AGENT_PYTHON_INTERNAL_H
#define TS_AGENT_AGENT_PYTHON_INTERNAL_H

#include "agent/agent_python.h"
#include "python/local/python_walk.h"

#define PYTHON_MOST_DEPTH 16384u
#define PYTHON_TABLE_BYTES 65536u
#define PYTHON_CHECKED_FRAMES 512u

enum python_state {
	PYTHON_MISSING, /* not found in this process yet */
	PYTHON_FOUND,
	PYTHON_CHECKED, /* frames are read in place from now on */
	PYTHON_OFF,
};

/* Inherited by a forked child. */
struct agent_python {
	uint32_t state; /* enum python_state */
	uint32_t lock;
	uint32_t failures;
	uint32_t unknown; /* unsupported version (0x0310), not yet reported */
	void *(*this_thread)(void);
	uint64_t code_type, loop;
	uint16_t name; /* offset in a code object; of the qualified name, if the version has one */
	struct ts_python_layout layout;
};
extern struct agent_python agent_python;

/* One per thread. */
struct agent_python_buffer {
	bool is_busy;
	union {
		uint64_t frames[PYTHON_MOST_DEPTH]; /* filled from the end */
		struct ts_python_raw_frame raw[PYTHON_CHECKED_FRAMES];
	};
	uint8_t is_entry[PYTHON_MOST_DEPTH]; /* for each frame */
	uint8_t table[PYTHON_TABLE_BYTES];
};
extern __thread struct agent_python_buffer *agent_python_buffer
	__attribute__((tls_model("initial-exec")));

/* agent_python_frames.c: allocates the cache of functions and frames; false: no memory. */
bool agent_python_remember(void);
/*
 * Stores the calling thread's frames at the end of its buffer. Returns their number; 0: no valid
 * stack.
 */
uint32_t agent_python_walk(struct core *core, uint64_t thread);
/* The current line of a frame; -1: its instruction is outside this code. */
int64_t agent_python_line(struct ts_python_memory *memory, const struct ts_python_raw_frame *frame,
			  const struct ts_python_code_text *text, const uint8_t *table,
			  int32_t first_line);

#endif
