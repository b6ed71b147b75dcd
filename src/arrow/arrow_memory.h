/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of Arrow buffers. A batch takes its buffers from large segments, which several batches
 * share and which are used again once all of these were released: a consumer that streams costs no
 * page faults, one that keeps everything wastes little. The largest ones outlive their stream: the
 * next one takes them. Buffers of equal values are made once.
 *
 * All counts are atomic: consumers release batches in any thread.
 */
#ifndef TS_ARROW_ARROW_MEMORY_H
#define TS_ARROW_ARROW_MEMORY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Rows of the largest batch: those of the largest chunk of the format. */
#define TS_ARROW_MOST_ROWS 131072u
#define TS_ARROW_ALIGNMENT 64u

/* ---- blocks: counted memory of one kind of content ---- */

struct ts_arrow_block {
	_Atomic size_t references;
	size_t capacity;
	_Alignas(64) char data[];
};

/* With one reference; NULL: no memory. */
struct ts_arrow_block *ts_arrow_block_new(size_t capacity);
struct ts_arrow_block *ts_arrow_block_hold(struct ts_arrow_block *block);
void ts_arrow_block_drop(struct ts_arrow_block *block); /* accepts NULL */

/* ---- memory of a stream and its batches ---- */

struct ts_arrow_segment;

#define TS_ARROW_CONSTANTS 64

struct ts_arrow_memory {
	_Atomic size_t references;
	pthread_mutex_t lock;
	struct ts_arrow_segment *free; /* segments that no batch uses */
	size_t free_count, most_free;  /* 0 once the stream is gone */
	size_t segment_bytes;
	uint32_t rows; /* of the largest batch */
	/* Buffers of one repeated value. */
	struct {
		struct ts_arrow_block *block;
		int64_t value;
		unsigned int width;
	} constants[TS_ARROW_CONSTANTS];
	size_t constant_count;
};

/* With one reference; NULL: no memory. */
struct ts_arrow_memory *ts_arrow_memory_new(void);
void ts_arrow_memory_hold(struct ts_arrow_memory *memory);
void ts_arrow_memory_drop(struct ts_arrow_memory *memory); /* accepts NULL */

/* Before the first buffer: the largest batch, and how much all batches need, roughly. */
void ts_arrow_memory_expect(struct ts_arrow_memory *memory, uint32_t rows, uint64_t bytes,
			    size_t most_free);

/* Gives up what no batch uses; what comes free later is given up, too. */
void ts_arrow_memory_trim(struct ts_arrow_memory *memory);

/* Zeros for TS_ARROW_MOST_ROWS words. Static. */
const void *ts_arrow_zeros(void);

/*
 * `rows` times the value, of `width` bytes; shared, and kept as long as the memory. NULL: there are
 * too many already, or no memory; the caller fills a buffer of its own.
 */
const void *ts_arrow_constant(struct ts_arrow_memory *memory, unsigned int width, int64_t value);

/* ---- the buffers of a batch ---- */

struct ts_arrow_owner;

/* Of one thread. A zeroed struct with `memory` set is ready. */
struct ts_arrow_allocator {
	struct ts_arrow_memory *memory;
	struct ts_arrow_segment *segment;
};

void ts_arrow_allocator_release(struct ts_arrow_allocator *allocator);

/* What a batch keeps: it is freed when the last holder drops it. */
struct ts_arrow_kept {
	struct ts_arrow_segment **segments;
	struct ts_arrow_block **blocks;
	void **heap; /* from malloc() */
	size_t segment_count, segment_capacity;
	size_t block_count, block_capacity;
	size_t heap_count, heap_capacity;
};

void ts_arrow_kept_release(struct ts_arrow_kept *kept);

/* Aligned memory that `kept` then keeps; NULL: no memory. */
void *ts_arrow_alloc(struct ts_arrow_allocator *allocator, struct ts_arrow_kept *kept,
		     size_t bytes);

/* Takes over a reference or malloc()ed memory, also on failure. 0 or TS_ENOMEM. */
int ts_arrow_keep_block(struct ts_arrow_kept *kept, struct ts_arrow_block *block);
int ts_arrow_keep_heap(struct ts_arrow_kept *kept, void *memory);

#endif
