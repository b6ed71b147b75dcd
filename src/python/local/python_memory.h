/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of an observed process: another one's (process_vm_readv), or one's own. The only way in
 * which anything here reads Python's structures. libc only, no heap: the agent is built from this,
 * too.
 */
#ifndef TS_PYTHON_LOCAL_PYTHON_MEMORY_H
#define TS_PYTHON_LOCAL_PYTHON_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A range there, and where its copy goes. */
struct ts_python_memory_range {
	uint64_t address;
	void *copy;
	uint32_t bytes;
};

struct ts_python_memory {
	pid_t pid; /* 0: one's own, which is read in place: only what the calling thread keeps alive
		      may be asked for */
	uint64_t system_calls, bytes; /* so far */
	/*
	 * Where it is not NULL, python_memory.c reads each range with it in place of both ways
	 * above, in order, and counts as for a system call: true: all bytes are there. For tests
	 * and fuzzing, which make up what a process holds.
	 */
	bool (*read)(void *context, uint64_t address, void *copy, size_t bytes);
	void *context; /* of `read` */
};

/*
 * Copies ranges in this order, in as few system calls as can be. The number of ranges that are
 * whole, from the first on; below `count` where one cannot be read. A negative errno where nothing
 * could: -ESRCH: the process is gone, -EPERM.
 */
int ts_python_memory_read_ranges(struct ts_python_memory *memory,
				 const struct ts_python_memory_range *ranges, size_t count);

/* One range; true: it is whole. */
bool ts_python_memory_read(struct ts_python_memory *memory, uint64_t address, void *copy,
			   size_t bytes);

static inline bool ts_python_memory_read_pointer(struct ts_python_memory *memory, uint64_t address,
						 uint64_t *ret_pointer)
{
	return ts_python_memory_read(memory, address, ret_pointer, sizeof(*ret_pointer));
}

#endif
