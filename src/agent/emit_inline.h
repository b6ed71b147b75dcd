/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hot emit path, for the functions that programs call most: into the thread's ring and out again,
 * in a few loads and stores.
 */
#ifndef TS_AGENT_EMIT_INLINE_H
#define TS_AGENT_EMIT_INLINE_H

#include "agent/tracer.h"

/*
 * Takes the writer, if it is open and has room: *ret_at is the record's place. A signal handler
 * that emits does so either before `open` is 0, and then `at` and `until` are read after it, or it
 * finds it closed. The fences are for the compiler: a handler runs on this thread.
 */
static inline bool hot_enter(struct writer *writer, unsigned int open, size_t bytes, char **ret_at)
{
	if (AGENT_UNLIKELY(__atomic_load_n(&writer->open, __ATOMIC_RELAXED) != open))
		return false;
	__atomic_store_n(&writer->open, WRITER_CLOSED, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*ret_at = writer->at;
	if (AGENT_LIKELY(*ret_at + bytes <= writer->until))
		return true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&writer->open, open, __ATOMIC_RELAXED);
	return false;
}

/* The store of `head` is what makes the record an event: all before it survives a kill. */
static inline void hot_commit(struct writer *writer, unsigned int open, char *at, size_t bytes)
{
	struct ts_live_ring *ring = writer->ring;

	writer->at = at + bytes;
#if defined(__x86_64__)
	/* One instruction in place of three; stores are not reordered with each other here. */
	__asm__ volatile("addq %1, %0" : "+m"(ring->head) : "er"(bytes) : "memory");
#else
	__atomic_store_n(&ring->head, ring->head + bytes, __ATOMIC_RELEASE);
#endif
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&writer->open, open, __ATOMIC_RELAXED);
}

#endif
