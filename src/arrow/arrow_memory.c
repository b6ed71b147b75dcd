/* SPDX-License-Identifier: Apache-2.0 */
/* Segments, blocks and constant buffers; see arrow_memory.h. */
#include "arrow/arrow_memory.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/memory.h"

#define HUGE_PAGE ((size_t)2 << 20)
#define SMALLEST_SEGMENT ((size_t)64 << 10)
#define LARGEST_SEGMENT ((size_t)16 << 20)

/* ---- blocks ---- */

struct ts_arrow_block *ts_arrow_block_new(size_t capacity)
{
	struct ts_arrow_block *block;
	size_t bytes = sizeof(*block) + capacity + TS_ARROW_ALIGNMENT;

	if (bytes < capacity)
		return NULL;
	bytes -= bytes % TS_ARROW_ALIGNMENT;
	block = aligned_alloc(TS_ARROW_ALIGNMENT, bytes);
	if (!block)
		return NULL;
	atomic_init(&block->references, 1);
	block->capacity = capacity;
	return block;
}

struct ts_arrow_block *ts_arrow_block_hold(struct ts_arrow_block *block)
{
	atomic_fetch_add_explicit(&block->references, 1, memory_order_relaxed);
	return block;
}

void ts_arrow_block_drop(struct ts_arrow_block *block)
{
	/* Acquire and release: whoever frees it must come after all who used it. */
	if (block && atomic_fetch_sub_explicit(&block->references, 1, memory_order_acq_rel) == 1)
		free(block);
}

/* ---- segments ---- */

struct ts_arrow_segment {
	_Atomic size_t references;
	struct ts_arrow_memory *memory; /* holds a reference unless it is free */
	struct ts_arrow_segment *next;  /* of the free ones */
	char *base;
	size_t bytes, used;
	bool is_mapped;
};

/*
 * Large segments are aligned to huge pages, which the kernel then uses where it is allowed to:
 * touching memory for the first time is a good part of the cost of a batch.
 */
static char *map_memory(size_t bytes)
{
	size_t whole = bytes + HUGE_PAGE, before;
	char *base = mmap(NULL, whole, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (base == MAP_FAILED)
		return NULL;
	before = (HUGE_PAGE - (uintptr_t)base % HUGE_PAGE) % HUGE_PAGE;
	if (before)
		munmap(base, before);
	if (before < HUGE_PAGE)
		munmap(base + before + bytes, HUGE_PAGE - before);
#ifdef MADV_HUGEPAGE
	madvise(base + before, bytes, MADV_HUGEPAGE);
#endif
	return base + before;
}

/* ---- spare segments ---- */

/*
 * Segments that nobody uses any more, for later streams: clearing fresh memory takes the kernel a
 * third of the time that a stream takes. MADV_FREE lets it have them back when memory is short.
 * Whoever finds the lock held does without them: in the child of a fork() it may never be released.
 */
#define MOST_SPARE 64u

static struct {
	pthread_mutex_t lock;
	struct ts_arrow_segment *list;
	unsigned int count;
} spare = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct ts_arrow_segment *take_spare(size_t bytes)
{
	struct ts_arrow_segment *segment;

	if (bytes != LARGEST_SEGMENT || pthread_mutex_trylock(&spare.lock))
		return NULL;
	segment = spare.list;
	if (segment) {
		spare.list = segment->next;
		spare.count--;
	}
	pthread_mutex_unlock(&spare.lock);
	return segment;
}

static bool keep_spare(struct ts_arrow_segment *segment)
{
	bool is_kept = false;

#ifdef MADV_FREE
	if (segment->bytes != LARGEST_SEGMENT || pthread_mutex_trylock(&spare.lock))
		return false;
	is_kept = spare.count < MOST_SPARE && !madvise(segment->base, segment->bytes, MADV_FREE);
	if (is_kept) {
		segment->next = spare.list;
		spare.list = segment;
		spare.count++;
	}
	pthread_mutex_unlock(&spare.lock);
#endif
	return is_kept;
}

/* ---- segments of streams ---- */

static void free_segment(struct ts_arrow_segment *segment)
{
	if (keep_spare(segment))
		return;
	if (segment->is_mapped)
		munmap(segment->base, segment->bytes);
	else
		free(segment->base);
	free(segment);
}

static struct ts_arrow_segment *new_segment(size_t bytes)
{
	struct ts_arrow_segment *segment = calloc(1, sizeof(*segment));

	if (!segment)
		return NULL;
	segment->is_mapped = bytes >= HUGE_PAGE;
	bytes += segment->is_mapped ? (HUGE_PAGE - bytes % HUGE_PAGE) % HUGE_PAGE : 0;
	segment->bytes = bytes;
	segment->base = segment->is_mapped ? map_memory(bytes)
					   : aligned_alloc(TS_ARROW_ALIGNMENT, bytes);
	if (!segment->base) {
		free(segment);
		return NULL;
	}
	atomic_init(&segment->references, 1);
	return segment;
}

static struct ts_arrow_segment *take_segment(struct ts_arrow_memory *memory, size_t bytes)
{
	struct ts_arrow_segment *segment = NULL;

	if (bytes <= memory->segment_bytes) {
		bytes = memory->segment_bytes;
		pthread_mutex_lock(&memory->lock);
		segment = memory->free;
		if (segment) {
			memory->free = segment->next;
			memory->free_count--;
		}
		pthread_mutex_unlock(&memory->lock);
	}
	if (!segment)
		segment = take_spare(bytes);
	if (!segment)
		segment = new_segment(bytes);
	if (!segment)
		return NULL;
	atomic_store_explicit(&segment->references, 1, memory_order_relaxed);
	segment->used = 0;
	segment->memory = memory;
	ts_arrow_memory_hold(memory);
	return segment;
}

static void drop_segment(struct ts_arrow_segment *segment)
{
	struct ts_arrow_memory *memory = segment->memory;

	if (atomic_fetch_sub_explicit(&segment->references, 1, memory_order_acq_rel) != 1)
		return;
	/* In a child of fork() the lock may be held for ever. */
	if (!pthread_mutex_trylock(&memory->lock)) {
		if (memory->free_count < memory->most_free &&
		    segment->bytes == memory->segment_bytes) {
			segment->next = memory->free;
			memory->free = segment;
			memory->free_count++;
			segment = NULL;
		}
		pthread_mutex_unlock(&memory->lock);
	}
	if (segment)
		free_segment(segment);
	ts_arrow_memory_drop(memory);
}

/* ---- memory of a stream ---- */

struct ts_arrow_memory *ts_arrow_memory_new(void)
{
	struct ts_arrow_memory *memory = calloc(1, sizeof(*memory));

	if (!memory)
		return NULL;
	atomic_init(&memory->references, 1);
	pthread_mutex_init(&memory->lock, NULL);
	memory->segment_bytes = SMALLEST_SEGMENT;
	return memory;
}

void ts_arrow_memory_hold(struct ts_arrow_memory *memory)
{
	atomic_fetch_add_explicit(&memory->references, 1, memory_order_relaxed);
}

void ts_arrow_memory_expect(struct ts_arrow_memory *memory, uint32_t rows, uint64_t bytes,
			    size_t most_free)
{
	memory->rows = rows;
	memory->most_free = most_free;
	while (memory->segment_bytes < LARGEST_SEGMENT && memory->segment_bytes < bytes)
		memory->segment_bytes *= 2;
}

void ts_arrow_memory_trim(struct ts_arrow_memory *memory)
{
	struct ts_arrow_segment *segments;

	pthread_mutex_lock(&memory->lock);
	segments = memory->free;
	memory->free = NULL;
	memory->free_count = 0;
	memory->most_free = 0;
	pthread_mutex_unlock(&memory->lock);
	while (segments) {
		struct ts_arrow_segment *next = segments->next;

		free_segment(segments);
		segments = next;
	}
}

void ts_arrow_memory_drop(struct ts_arrow_memory *memory)
{
	if (!memory || atomic_fetch_sub_explicit(&memory->references, 1, memory_order_acq_rel) != 1)
		return;
	ts_arrow_memory_trim(memory);
	for (size_t i = 0; i < memory->constant_count; i++)
		ts_arrow_block_drop(memory->constants[i].block);
	pthread_mutex_destroy(&memory->lock);
	free(memory);
}

/* ---- constants ---- */

const void *ts_arrow_zeros(void)
{
	/* Not const, so that it takes no space in the library's file. Nobody writes it. */
	static _Alignas(64) int64_t zeros[TS_ARROW_MOST_ROWS];

	return zeros;
}

static void fill(void *to, unsigned int width, int64_t value, uint32_t rows)
{
	switch (width) {
	case 1:
		memset(to, (int)value, rows);
		break;
	case 4:
		for (uint32_t i = 0; i < rows; i++)
			((int32_t *)to)[i] = (int32_t)value;
		break;
	default:
		for (uint32_t i = 0; i < rows; i++)
			((int64_t *)to)[i] = value;
	}
}

/* Lock held. */
static const void *find_constant(struct ts_arrow_memory *memory, unsigned int width, int64_t value)
{
	struct ts_arrow_block *block;

	for (size_t i = 0; i < memory->constant_count; i++)
		if (memory->constants[i].width == width && memory->constants[i].value == value)
			return memory->constants[i].block->data;
	if (memory->constant_count == TS_ARROW_CONSTANTS)
		return NULL;
	block = ts_arrow_block_new((size_t)memory->rows * width);
	if (!block)
		return NULL;
	fill(block->data, width, value, memory->rows);
	memory->constants[memory->constant_count].block = block;
	memory->constants[memory->constant_count].value = value;
	memory->constants[memory->constant_count++].width = width;
	return block->data;
}

const void *ts_arrow_constant(struct ts_arrow_memory *memory, unsigned int width, int64_t value)
{
	const void *found;

	if (value == 0)
		return ts_arrow_zeros();
	pthread_mutex_lock(&memory->lock);
	found = find_constant(memory, width, value);
	pthread_mutex_unlock(&memory->lock);
	return found;
}

/* ---- a batch ---- */

void ts_arrow_allocator_release(struct ts_arrow_allocator *allocator)
{
	if (allocator->segment)
		drop_segment(allocator->segment);
	allocator->segment = NULL;
}

static int keep_segment(struct ts_arrow_kept *kept, struct ts_arrow_segment *segment)
{
	if (kept->segment_count && kept->segments[kept->segment_count - 1] == segment)
		return TS_OK;
	if (ts_grow_array((void **)&kept->segments, &kept->segment_capacity,
			  kept->segment_count + 1, sizeof(struct ts_arrow_segment *)))
		return TS_ENOMEM;
	atomic_fetch_add_explicit(&segment->references, 1, memory_order_relaxed);
	kept->segments[kept->segment_count++] = segment;
	return TS_OK;
}

void *ts_arrow_alloc(struct ts_arrow_allocator *allocator, struct ts_arrow_kept *kept, size_t bytes)
{
	struct ts_arrow_segment *segment = allocator->segment;
	char *memory;

	bytes += (TS_ARROW_ALIGNMENT - bytes % TS_ARROW_ALIGNMENT) % TS_ARROW_ALIGNMENT;
	if (!segment || segment->bytes - segment->used < bytes) {
		ts_arrow_allocator_release(allocator);
		segment = allocator->segment = take_segment(allocator->memory, bytes);
	}
	if (!segment || keep_segment(kept, segment))
		return NULL;
	memory = segment->base + segment->used;
	segment->used += bytes;
	return memory;
}

int ts_arrow_keep_block(struct ts_arrow_kept *kept, struct ts_arrow_block *block)
{
	if (ts_grow_array((void **)&kept->blocks, &kept->block_capacity, kept->block_count + 1,
			  sizeof(struct ts_arrow_block *))) {
		ts_arrow_block_drop(block);
		return TS_ENOMEM;
	}
	kept->blocks[kept->block_count++] = block;
	return TS_OK;
}

int ts_arrow_keep_heap(struct ts_arrow_kept *kept, void *memory)
{
	if (ts_grow_array((void **)&kept->heap, &kept->heap_capacity, kept->heap_count + 1,
			  sizeof(void *))) {
		free(memory);
		return TS_ENOMEM;
	}
	kept->heap[kept->heap_count++] = memory;
	return TS_OK;
}

void ts_arrow_kept_release(struct ts_arrow_kept *kept)
{
	for (size_t i = 0; i < kept->segment_count; i++)
		drop_segment(kept->segments[i]);
	for (size_t i = 0; i < kept->block_count; i++)
		ts_arrow_block_drop(kept->blocks[i]);
	for (size_t i = 0; i < kept->heap_count; i++)
		free(kept->heap[i]);
	free((void *)kept->segments);
	free((void *)kept->blocks);
	free((void *)kept->heap);
	*kept = (struct ts_arrow_kept){ 0 };
}
