/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of an observed process: another one's (process_vm_readv), or our own. Everything here
 * reads Python's structures through this. libc only, no heap: also linked into the agent.
 */
#ifndef TS_PYTHON_LOCAL_PYTHON_MEMORY_H
#define TS_PYTHON_LOCAL_PYTHON_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A remote range, and its local copy. */
struct ts_python_memory_range {
	uint64_t address;
	void *copy;
	uint32_t bytes;
};

struct ts_python_memory {
	pid_t pid; /* 0: our own, read in place: only for memory that the calling thread keeps alive
		    */
	uint64_t system_calls, bytes; /* calls so far */
	/*
	 * If not NULL, replaces both of the above: reads each range in order; true: complete. For
	 * tests and fuzzing, which make up a process's memory.
	 */
	bool (*read)(void *context, uint64_t address, void *copy, size_t bytes);
	void *context; /* of `read` */
};

/*
 * Copies ranges in this order with as few system calls as possible. Returns the number of complete
 * ranges, from the first on; below `count` if one is unreadable. A negative errno if nothing could
 * be read: -ESRCH: the process is gone, -EPERM.
 */
int ts_python_memory_read_ranges(struct ts_python_memory *memory,
				 const struct ts_python_memory_range *ranges, size_t count);

/* One range; true: complete. */
bool ts_python_memory_read(struct ts_python_memory *memory, uint64_t address, void *copy,
			   size_t bytes);

static inline bool ts_python_memory_read_pointer(struct ts_python_memory *memory, uint64_t address,
						 uint64_t *ret_pointer)
{
	return ts_python_memory_read(memory, address, ret_pointer, sizeof(*ret_pointer));
}

#endif
