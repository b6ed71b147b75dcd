/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of agent_python.h: what is known of the Python in this process, and a thread's room
 * for its frames.
 */
#ifndef TS_AGENT_AGENT_PYTHON_INTERNAL_H
#define TS_AGENT_AGENT_PYTHON_INTERNAL_H

#include "agent/agent_python.h"
#include "python/local/python_walk.h"

#define PYTHON_MOST_DEPTH 16384u
#define PYTHON_TABLE_BYTES 65536u
#define PYTHON_CHECKED_FRAMES 512u

enum python_state {
	PYTHON_MISSING, /* not in this process, so far */
	PYTHON_FOUND,
	PYTHON_CHECKED, /* read in place from now on */
	PYTHON_OFF,
};

/* The same in a forked child. */
struct agent_python {
	uint32_t state; /* enum python_state */
	uint32_t lock;
	uint32_t failures;
	uint32_t unknown; /* version that is not known here, 0x0310, and not told of yet */
	void *(*this_thread)(void);
	uint64_t code_type, loop;
	uint16_t name; /* offset in a code object: of the qualified one, where the version has it */
	struct ts_python_layout layout;
};
extern struct agent_python agent_python;

/* A thread's. */
struct agent_python_buffer {
	bool is_busy;
	union {
		uint64_t frames[PYTHON_MOST_DEPTH]; /* filled from the end */
		struct ts_python_raw_frame raw[PYTHON_CHECKED_FRAMES];
	};
	uint8_t is_entry[PYTHON_MOST_DEPTH]; /* of each of them */
	uint8_t table[PYTHON_TABLE_BYTES];
};
extern __thread struct agent_python_buffer *agent_python_buffer
	__attribute__((tls_model("initial-exec")));

/* agent_python_frames.c: memory for what was seen before; false: there is none. */
bool agent_python_remember(void);
/*
 * The calling thread's frames, which stand at the end of its room then: how many; 0: there is no
 * stack that makes sense.
 */
uint32_t agent_python_walk(struct core *core, uint64_t thread);
/* The line that a frame is at; -1: it is at none of this code. */
int64_t agent_python_line(struct ts_python_memory *memory, const struct ts_python_raw_frame *frame,
			  const struct ts_python_code_text *text, const uint8_t *table,
			  int32_t first_line);

#endif
