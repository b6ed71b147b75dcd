/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hot emit path, for the functions that programs call most: a few loads and stores to the thread's
 * ring.
 */
#ifndef TS_AGENT_EMIT_INLINE_H
#define TS_AGENT_EMIT_INLINE_H

#include "agent/tracer.h"

/*
 * Closes the writer if it is open and has space; the record goes to *ret_at. A signal handler that
 * emits either runs before `open` is 0, and then `at` and `until` are read after it, or finds the
 * writer closed. Compiler fences suffice: a handler runs on this thread.
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

/* The store of `head` commits the event: everything before it survives a kill. */
static inline void hot_commit(struct writer *writer, unsigned int open, char *at, size_t bytes)
{
	struct ts_live_ring *ring = writer->ring;

	writer->at = at + bytes;
#if defined(__x86_64__)
	/* One instruction instead of three; x86 does not reorder stores with each other. */
	__asm__ volatile("addq %1, %0" : "+m"(ring->head) : "er"(bytes) : "memory");
#else
	__atomic_store_n(&ring->head, ring->head + bytes, __ATOMIC_RELEASE);
#endif
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&writer->open, open, __ATOMIC_RELAXED);
}

#endif
