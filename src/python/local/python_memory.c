/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads memory: process_vm_readv() of another process, many ranges per call, and plain copies of
 * our own. No heap, libc only: also linked into the agent.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "python/local/python_memory.h"

#define BATCH 256 /* ranges per call: more than a sweep of many threads, and little stack */

static int read_self(struct ts_python_memory *memory, const struct ts_python_memory_range *ranges,
		     size_t count)
{
	for (size_t i = 0; i < count; i++) {
		memcpy(ranges[i].copy, (const void *)(uintptr_t)ranges[i].address, ranges[i].bytes);
		memory->bytes += ranges[i].bytes;
	}
	return (int)count;
}

/* Through the test hook. */
static int read_hooked(struct ts_python_memory *memory, const struct ts_python_memory_range *ranges,
		       size_t count)
{
	size_t i = 0;

	memory->system_calls++;
	for (; i < count; i++) {
		if (!memory->read(memory->context, ranges[i].address, ranges[i].copy,
				  ranges[i].bytes))
			break;
		memory->bytes += ranges[i].bytes;
	}
	return (int)i;
}

/* How many ranges are complete after that many bytes. */
static size_t complete_ranges(const struct ts_python_memory_range *ranges, size_t count,
			      size_t bytes)
{
	size_t i = 0;

	while (i < count && bytes >= ranges[i].bytes)
		bytes -= ranges[i++].bytes;
	return i;
}

static ssize_t read_batch(struct ts_python_memory *memory,
			  const struct ts_python_memory_range *ranges, size_t count)
{
	struct iovec local[BATCH], remote[BATCH];
	ssize_t got;

	for (size_t i = 0; i < count; i++) {
		local[i] = (struct iovec){ ranges[i].copy, ranges[i].bytes };
		remote[i] = (struct iovec){ (void *)(uintptr_t)ranges[i].address, ranges[i].bytes };
	}
	memory->system_calls++;
	got = process_vm_readv(memory->pid, local, count, remote, count, 0);
	if (got > 0)
		memory->bytes += (uint64_t)got;
	return got < 0 ? -errno : got;
}

int ts_python_memory_read_ranges(struct ts_python_memory *memory,
				 const struct ts_python_memory_range *ranges, size_t count)
{
	size_t done = 0;

	if (memory->read)
		return read_hooked(memory, ranges, count);
	if (!memory->pid)
		return read_self(memory, ranges, count);
	while (done < count) {
		size_t batch = count - done < BATCH ? count - done : BATCH;
		ssize_t got = read_batch(memory, ranges + done, batch);
		size_t complete;

		if (got < 0) /* EFAULT: the first range of this batch is unreadable, which the
				number tells */
			return done || got == -EFAULT ? (int)done : (int)got;
		complete = complete_ranges(ranges + done, batch, (size_t)got);
		done += complete;
		if (complete < batch)
			break;
	}
	return (int)done;
}

bool ts_python_memory_read(struct ts_python_memory *memory, uint64_t address, void *copy,
			   size_t bytes)
{
	struct ts_python_memory_range range = { address, copy, (uint32_t)bytes };

	return bytes <= UINT32_MAX && ts_python_memory_read_ranges(memory, &range, 1) == 1;
}
