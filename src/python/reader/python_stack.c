/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of one thread. What has to be read is predicted from the last sweep (the thread state,
 * the used part of its data stack, frames elsewhere) and copied at once while the thread runs. The
 * copy is accepted as a stack only if it is consistent:
 *
 * - it ends at the same frame as the last one, or twice at the same frame;
 * - frames are where their owner says, each below its callee, none twice;
 * - a caller that entered no native code has saved its stack pointer for the call (3.11 to 3.13
 *   mark that);
 * - the innermost frame is the same before and after the copy, unless nothing has moved since the
 *   last sweep.
 *
 * Frames are copied from the outermost inwards, so that the changes made by a call are seen in an
 * order that cannot be mistaken for another call.
 */
#include <stdlib.h>

#include "python/reader/python_reader_internal.h"

#define PAGE 4096u
#define SLACK_BYTES 512u /* bytes of the data stack read beyond the used part: a few frames */
#define MAX_CHUNKS 65536u
#define MAX_CHUNK_BYTES (1u << 30)
#define MAX_STACK_BYTES (UINT64_C(256) << 20) /* limit over all chunks */
#define FORGET_AFTER 64u                      /* walks without a heap frame before it is dropped */
#define HOT_SWEEPS 32u
#define MAX_EXTENSION 16u

void ts_python_stack_release(struct python_stack *stack)
{
	for (size_t i = 0; i < stack->chunk_capacity; i++)
		free(stack->chunks[i].copy);
	free(stack->chunks);
	free(stack->heap);
	free(stack->heap_copies);
	free(stack->raw);
	free(stack->last);
	free(stack->pending);
}

/* ---- frames that lie elsewhere ---- */

/* The first one at or after an address. */
static size_t heap_position(const struct python_stack *stack, uint64_t address)
{
	size_t low = 0, high = stack->heap_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (stack->heap[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct python_heap_frame *ts_python_stack_heap_frame(struct python_stack *stack, uint64_t address)
{
	size_t position = heap_position(stack, address);

	return position < stack->heap_count && stack->heap[position].address == address
		       ? &stack->heap[position]
		       : NULL;
}

/* Adds a frame and reads it at once. NULL: unreadable, or no memory. */
static struct python_heap_frame *learn_heap(struct ts_python_reader *python,
					    struct python_stack *stack, uint64_t address)
{
	size_t bytes = python->runtime_info.layout.frame.bytes,
	       position = heap_position(stack, address);
	struct python_heap_frame *frame;

	if (stack->heap_count >= MAX_DEPTH ||
	    ts_grow_array((void **)&stack->heap, &stack->heap_capacity, stack->heap_count + 1,
			  sizeof(*stack->heap)) ||
	    ts_grow_array((void **)&stack->heap_copies, &stack->heap_copy_capacity,
			  stack->heap_copy_bytes + bytes, 1) ||
	    !ts_python_memory_read(&python->memory, address,
				   stack->heap_copies + stack->heap_copy_bytes, bytes))
		return NULL;
	frame = &stack->heap[position];
	memmove(frame + 1, frame, (stack->heap_count - position) * sizeof(*frame));
	*frame = (struct python_heap_frame){ .address = address,
					     .copy = (uint32_t)stack->heap_copy_bytes };
	stack->heap_copy_bytes += bytes;
	stack->heap_count++;
	return frame;
}

static void forget_heap(struct python_stack *stack)
{
	size_t kept = 0;

	for (size_t i = 0; i < stack->heap_count; i++)
		if (stack->walk - stack->heap[i].used < FORGET_AFTER)
			stack->heap[kept++] = stack->heap[i];
	stack->heap_count = kept;
}

/* One range for all frames on the same page or the next one: both are mapped. */
static int plan_heap(struct ts_python_reader *python, struct python_stack *stack)
{
	uint32_t bytes = python->runtime_info.layout.frame.bytes;
	size_t used = 0, first = python->range_count;

	for (size_t i = 0, next; i < stack->heap_count; i = next) {
		uint64_t start = stack->heap[i].address, end = start;

		for (next = i; next < stack->heap_count; next++) {
			uint64_t address = stack->heap[next].address;

			if (next > i && address / PAGE > (end - 1) / PAGE + 1)
				break;
			stack->heap[next].copy = (uint32_t)(used + (address - start));
			end = TS_MAX(end, address + bytes);
		}
		if (ts_grow_array((void **)&stack->heap_copies, &stack->heap_copy_capacity,
				  used + (end - start), 1) ||
		    ts_python_add_range(python, start, (void *)(uintptr_t)used, end - start))
			return TS_ENOMEM;
		used += end - start;
	}
	stack->heap_copy_bytes = used;
	/* The buffer has its final address now. */
	for (; first < python->range_count; first++)
		python->ranges[first].copy = stack->heap_copies +
					     (uintptr_t)python->ranges[first].copy;
	return TS_OK;
}

/* ---- the plan ---- */

static int plan_chunks(struct ts_python_reader *python, struct python_stack *stack)
{
	for (size_t i = 0; i < stack->chunk_count; i++) {
		struct python_chunk *chunk = &stack->chunks[i];

		if (ts_grow_array((void **)&chunk->copy, &chunk->capacity, chunk->bytes, 1) ||
		    ts_python_add_range(python, chunk->address, chunk->copy, chunk->bytes))
			return TS_ENOMEM;
		chunk->copied = chunk->bytes;
	}
	return TS_OK;
}

/* Reads the innermost part of the data stack again: a torn copy is not torn the same way twice. */
static int plan_again(struct ts_python_reader *python, struct python_stack *stack)
{
	const struct python_chunk *chunk;

	stack->again_bytes = 0;
	if (!stack->chunk_count)
		return TS_OK;
	chunk = &stack->chunks[stack->chunk_count - 1];
	stack->again_bytes = (uint32_t)TS_MIN((size_t)chunk->copied, sizeof(stack->again));
	stack->again_address = chunk->address + chunk->copied - stack->again_bytes;
	return ts_python_add_range(python, stack->again_address, stack->again, stack->again_bytes);
}

/* Address of the word that holds the innermost frame. */
uint64_t ts_python_stack_innermost_address(const struct ts_python_reader *python,
					   const struct python_stack *stack)
{
	const struct ts_python_layout *layout = &python->runtime_info.layout;

	return layout->frames == TS_PYTHON_CFRAME ? stack->cframe
						  : stack->thread + layout->thread.frame;
}

/*
 * Reads the thread's position again: 3.11 and 3.12 leave a loop through another cframe, and the one
 * that was read stays unchanged.
 */
static int plan_after(struct ts_python_reader *python, struct python_stack *stack, bool has_cframe)
{
	uint64_t cframe = stack->thread + python->runtime_info.layout.thread.frame;

	if (has_cframe && ts_python_add_range(python, cframe, &stack->cframe_after, 8))
		return TS_ENOMEM;
	return ts_python_add_range(python, ts_python_stack_innermost_address(python, stack),
				   &stack->innermost_after, 8);
}

int ts_python_stack_plan(struct ts_python_reader *python, struct python_stack *stack,
			 bool is_double)
{
	const struct ts_python_layout *layout = &python->runtime_info.layout;
	bool has_cframe = layout->frames == TS_PYTHON_CFRAME && stack->cframe;

	stack->first_range = python->range_count;
	stack->is_double = is_double && ts_python_stack_innermost_address(python, stack);
	stack->is_read = false;
	if (ts_python_add_range(python, stack->thread, stack->head, layout->thread.bytes) ||
	    (has_cframe && ts_python_add_range(python, stack->cframe, &stack->innermost, 8)) ||
	    plan_heap(python, stack) || plan_chunks(python, stack))
		return TS_ENOMEM;
	if (stack->is_double &&
	    (plan_after(python, stack, has_cframe) || plan_again(python, stack)))
		return TS_ENOMEM;
	stack->range_count = python->range_count - stack->first_range;
	return TS_OK;
}

/* ---- the data stack ---- */

static uint64_t head_word(const struct python_stack *stack, uint16_t offset)
{
	return ts_python_word_of(stack->head, offset);
}

/* How much of a chunk to read when that much is in use. */
static void foresee(struct python_chunk *chunk, uint64_t used)
{
	uint64_t want = TS_MIN(used + SLACK_BYTES, (uint64_t)chunk->size);

	/* Grows at once, shrinks when less has been enough for long. */
	if (want >= chunk->bytes) {
		chunk->bytes = (uint32_t)want;
		chunk->idle = 0;
	} else if (++chunk->idle > FORGET_AFTER) {
		chunk->bytes = (uint32_t)want;
		chunk->idle = 0;
	}
}

/* The chunk at an address; reads it up to `used`. */
static struct python_chunk *add_chunk(struct python_stack *stack, uint64_t address, uint64_t size,
				      uint64_t used)
{
	size_t capacity = stack->chunk_capacity;
	struct python_chunk *chunk;

	if (stack->chunk_count >= MAX_CHUNKS || size < 64 || size > MAX_CHUNK_BYTES || used > size)
		return NULL;
	if (ts_grow_array((void **)&stack->chunks, &stack->chunk_capacity, stack->chunk_count + 1,
			  sizeof(*stack->chunks)))
		return NULL;
	if (stack->chunk_capacity > capacity)
		memset(stack->chunks + capacity, 0,
		       (stack->chunk_capacity - capacity) * sizeof(*stack->chunks));
	chunk = &stack->chunks[stack->chunk_count++];
	chunk->address = address;
	chunk->size = (uint32_t)size;
	chunk->bytes = 0;
	foresee(chunk, used);
	return chunk;
}

/* Follows the chunks of a thread from the newest one. */
static bool discover_chunks(struct ts_python_reader *python, struct python_stack *stack)
{
	const struct ts_python_layout *layout = &python->runtime_info.layout;
	uint64_t at = head_word(stack, layout->thread.data_stack_chunk);
	uint64_t top = head_word(stack, layout->thread.data_stack_top), all = 0;

	stack->chunk_count = 0;
	while (at) {
		uint8_t header[24];
		uint64_t used;

		if (!ts_python_memory_read(&python->memory, at, header, sizeof(header)))
			return false;
		used = stack->chunk_count ? layout->chunk.data +
						    8 * ts_python_word_of(header, layout->chunk.top)
					  : top - at;
		if (!add_chunk(stack, at, ts_python_word_of(header, layout->chunk.bytes), used))
			return false;
		all += stack->chunks[stack->chunk_count - 1].bytes;
		if (all > MAX_STACK_BYTES)
			return false;
		at = ts_python_word_of(header, layout->chunk.previous);
	}
	for (size_t i = 0; i < stack->chunk_count / 2; i++) {
		struct python_chunk newer = stack->chunks[i];

		stack->chunks[i] = stack->chunks[stack->chunk_count - 1 - i];
		stack->chunks[stack->chunk_count - 1 - i] = newer;
	}
	return true;
}

/* ---- walking ---- */

struct walk {
	struct ts_python_reader *python;
	struct python_stack *stack;
	bool learns;       /* reads what is missing */
	size_t chunk;      /* chunk of the last data stack frame, plus 1; 0: none left */
	uint64_t below;    /* frames of that chunk are below this address */
	bool is_entered;   /* a shim is between the last frame and this one */
	bool is_generator; /* the last frame belongs to a generator */
};

/* A frame on the data stack, in the chunk of its callee or in an older one. */
static const uint8_t *chunk_copy(struct walk *walk, uint64_t at)
{
	uint32_t bytes = walk->python->runtime_info.layout.frame.bytes;

	for (size_t i = walk->chunk; i > 0; i--) {
		const struct python_chunk *chunk = &walk->stack->chunks[i - 1];

		if (at < chunk->address || at - chunk->address >= chunk->size)
			continue;
		if (at - chunk->address + bytes > chunk->copied)
			return NULL; /* beyond the prediction */
		if (i == walk->chunk && at >= walk->below)
			return NULL;
		walk->chunk = i;
		walk->below = walk->stack->lowest = at;
		return chunk->copy + (at - chunk->address);
	}
	return NULL;
}

static enum python_stack_status heap_copy(struct walk *walk, uint64_t at, const uint8_t **ret_copy)
{
	struct python_stack *stack = walk->stack;
	struct python_heap_frame *frame = ts_python_stack_heap_frame(stack, at);

	if (!frame && walk->learns)
		frame = learn_heap(walk->python, stack, at);
	if (!frame)
		return STACK_MISSED;
	if (frame->used == stack->walk)
		return STACK_INVALID; /* a cycle */
	frame->used = stack->walk;
	*ret_copy = stack->heap_copies + frame->copy;
	return STACK_OK;
}

/* Whether any chunk holds it. */
bool ts_python_stack_is_in_chunks(const struct python_stack *stack, uint64_t at)
{
	for (size_t i = stack->chunk_count; i > 0; i--)
		if (at - stack->chunks[i - 1].address < stack->chunks[i - 1].size)
			return true;
	return false;
}

static enum python_stack_status find_copy(struct walk *walk, uint64_t at, const uint8_t **ret_copy,
					  bool *ret_in_chunk)
{
	*ret_copy = chunk_copy(walk, at);
	*ret_in_chunk = *ret_copy != NULL;
	if (*ret_copy)
		return STACK_OK;
	if (at & 7 || at < PAGE)
		return STACK_INVALID;
	if (ts_python_stack_is_in_chunks(walk->stack, at))
		return STACK_MISSED;
	return heap_copy(walk, at, ret_copy);
}

/*
 * Whether a frame can have called the one inside it, or must itself be the innermost. A
 * Python-to-Python call leaves evidence in the caller: it has started, it has saved its stack
 * pointer (3.11 to 3.13 mark a running one), and the called function, or the resumed generator, is
 * still at the end of its stack.
 */
enum call { CALL_BROKEN, CALL_POSSIBLE, CALL_SURE };

static uint64_t untagged(uint64_t reference)
{
	return reference & ~UINT64_C(7);
}

/*
 * The words around the end of a caller's own stack: two before and two after. False: not among the
 * copies.
 */
static bool words_at_top(const struct ts_python_layout *layout, const struct python_chunk *chunk,
			 uint64_t at, const uint8_t *copy, uint64_t *ret_top, uint64_t ret_words[4])
{
	uint64_t top = layout->frame.is_top_marked
			       ? at + layout->frame.locals +
					 8u * ts_python_half_of(copy, layout->frame.stack_top)
			       : ts_python_word_of(copy, layout->frame.stack_top);
	uint64_t offset = top - 16 - chunk->address;

	if (top & 7 || top < at + layout->frame.locals || offset >= chunk->copied ||
	    offset + 32 > chunk->copied)
		return false;
	for (size_t i = 0; i < 4; i++)
		ret_words[i] = untagged(ts_python_word_of(chunk->copy + offset, 8 * i));
	*ret_top = top;
	return true;
}

/* Whether a caller has reached its first instruction, and since 3.13 has a return offset. */
static bool has_begun(const struct ts_python_layout *layout, const uint8_t *copy,
		      const struct ts_python_raw_frame *frame)
{
	uint64_t first = frame->code + layout->code.instructions;

	if (layout->minor >= 13 && !copy[layout->frame.owner - 2] && !copy[layout->frame.owner - 1])
		return false;
	if (frame->code_index)
		return true; /* its instructions are elsewhere */
	return layout->minor >= 13 ? frame->instruction > first : frame->instruction >= first;
}

/* Synthetic code contains just a call; unknown code may be that. */
static bool may_call_at_once(const struct ts_python_reader *python, uint64_t code)
{
	uint64_t at;

	return !ts_map_get(&python->codes.at, code, &at) ||
	       ((const struct python_code_at *)(uintptr_t)at)->is_hidden;
}

static enum call classify_call(const struct walk *walk, uint64_t at, const uint8_t *copy,
			       const struct ts_python_raw_frame *frame, bool is_in_chunk)
{
	const struct ts_python_layout *layout = &walk->python->runtime_info.layout;
	const struct python_stack *stack = walk->stack;
	uint64_t top, function, words[4];

	if (!stack->depth || layout->frames == TS_PYTHON_FRAME_OBJECTS)
		return CALL_SURE;
	if (walk->is_entered || stack->raw[stack->depth - 1].flags & TS_PYTHON_RAW_ENTRY)
		return CALL_POSSIBLE;
	if (layout->frame.is_top_marked &&
	    (int32_t)ts_python_half_of(copy, layout->frame.stack_top) < 0)
		return CALL_BROKEN;
	if (!has_begun(layout, copy, frame))
		return may_call_at_once(walk->python, frame->code) ? CALL_POSSIBLE : CALL_BROKEN;
	if (!is_in_chunk ||
	    !words_at_top(layout, &stack->chunks[walk->chunk - 1], at, copy, &top, words))
		return CALL_POSSIBLE;
	if (walk->is_generator) {
		uint64_t generator = stack->raw[stack->depth - 1].address -
				     layout->frame.in_generator;

		return words[0] == generator || words[1] == generator ? CALL_SURE
		       : layout->minor <= 13                          ? CALL_BROKEN
								      : CALL_POSSIBLE;
	}
	function = stack->raw[stack->depth - 1].function;
	return function && (words[2] == function || words[3] == function) ? CALL_SURE
									  : CALL_POSSIBLE;
}

/* 3.8 to 3.10 mark frames that are on a stack. */
static bool is_executing(const struct ts_python_layout *layout, const uint8_t *copy)
{
	return layout->frame.state == TS_PYTHON_NONE ||
	       copy[layout->frame.state] == layout->frame.state_executing;
}

static enum python_stack_status take_frame(struct walk *walk, uint64_t at, const uint8_t *copy,
					   bool is_in_chunk, uint64_t *ret_previous)
{
	struct python_stack *stack = walk->stack;
	const struct ts_python_layout *layout = &walk->python->runtime_info.layout;
	struct ts_python_raw_frame frame;
	enum ts_python_frame_kind kind =
		ts_python_frame_parse(layout, at, copy, &frame, ret_previous);
	enum call call;

	if (kind == TS_PYTHON_FRAME_SHIM) {
		if (stack->depth && !stack->left_out)
			stack->raw[stack->depth - 1].flags |= TS_PYTHON_RAW_ENTRY;
		walk->is_entered = true;
		return is_in_chunk ? STACK_INVALID : STACK_OK;
	}
	if (!is_executing(layout, copy)) {
		stack->depth = 0; /* it has returned, and so have those inside it */
		return STACK_OK;
	}
	/* A thread does not begin in a generator: this one was resumed while it was copied. */
	if (layout->frame.generator != TS_PYTHON_NONE && !*ret_previous &&
	    ts_python_word_of(copy, layout->frame.generator))
		return STACK_INVALID;
	if (kind == TS_PYTHON_FRAME_BAD || !frame.code || frame.code & 7 ||
	    (layout->frames != TS_PYTHON_FRAME_OBJECTS &&
	     is_in_chunk != (kind == TS_PYTHON_FRAME_THREAD)))
		return STACK_INVALID;
	if (stack->depth >= MAX_DEPTH) {
		stack->outermost = at;
		return ++stack->left_out > MAX_LEFT_OUT ? STACK_INVALID : STACK_OK;
	}
	call = classify_call(walk, at, copy, &frame, is_in_chunk);
	if (call == CALL_BROKEN)
		stack->depth = 0; /* it runs itself by now: those inside it have returned */
	if (call == CALL_SURE && stack->depth)
		stack->raw[stack->depth - 1].flags |= TS_PYTHON_RAW_SURE;
	if (ts_grow_array((void **)&stack->raw, &stack->raw_capacity, stack->depth + 1u,
			  sizeof(*stack->raw)))
		return STACK_INVALID;
	stack->raw[stack->depth++] = frame;
	walk->is_entered = false;
	walk->is_generator = kind == TS_PYTHON_FRAME_GENERATOR;
	return STACK_OK;
}

/*
 * 3.11 to 3.13: the frame that the innermost one has called since its address was read. The caller
 * has saved its stack pointer, and the callee follows that stack. 0: none.
 */
static uint64_t find_callee(const struct ts_python_layout *layout, const struct python_chunk *chunk,
			    const struct ts_python_raw_frame *caller)
{
	uint64_t offset = caller->address - chunk->address, top, words[4];
	const uint8_t *copy;

	if (offset >= chunk->copied || offset + layout->frame.bytes > chunk->copied)
		return 0;
	copy = chunk->copy + offset;
	if ((int32_t)ts_python_half_of(copy, layout->frame.stack_top) < 0 ||
	    !has_begun(layout, copy, caller) ||
	    !words_at_top(layout, chunk, caller->address, copy, &top, words))
		return 0;
	for (uint64_t at = top - chunk->address;
	     at + layout->frame.bytes <= chunk->copied && at < top - chunk->address + 1024;
	     at += 8) {
		const uint8_t *callee = chunk->copy + at;
		uint64_t function = ts_python_word_of(callee, layout->frame.function);

		if (ts_python_word_of(callee, layout->frame.previous) == caller->address &&
		    function && (function == words[2] || function == words[3]) &&
		    callee[layout->frame.owner] == layout->frame.owner_thread)
			return chunk->address + at;
	}
	return 0;
}

/* 3.8 to 3.10: the same among heap frames. */
static const struct python_heap_frame *find_heap_callee(const struct ts_python_layout *layout,
							const struct python_stack *stack)
{
	for (size_t i = 0; i < stack->heap_count; i++) {
		const uint8_t *copy = stack->heap_copies + stack->heap[i].copy;

		if (ts_python_word_of(copy, layout->frame.previous) == stack->raw[0].address &&
		    stack->heap[i].used != stack->walk && is_executing(layout, copy))
			return &stack->heap[i];
	}
	return NULL;
}

/* Inserts a frame inside the innermost one. */
static bool put_inside(struct python_stack *stack, const struct ts_python_raw_frame *frame)
{
	if (frame->code & 7 || !frame->code ||
	    ts_grow_array((void **)&stack->raw, &stack->raw_capacity, stack->depth + 1u,
			  sizeof(*stack->raw)))
		return false;
	memmove(stack->raw + 1, stack->raw, stack->depth * sizeof(*stack->raw));
	stack->raw[0] = *frame;
	stack->raw[0].flags |= TS_PYTHON_RAW_SURE;
	stack->depth++;
	return true;
}

static void extend_heap(struct walk *walk)
{
	struct python_stack *stack = walk->stack;
	const struct ts_python_layout *layout = &walk->python->runtime_info.layout;

	for (unsigned int i = 0; i < MAX_EXTENSION && stack->depth; i++) {
		const struct python_heap_frame *callee = find_heap_callee(layout, stack);
		struct ts_python_raw_frame frame;
		uint64_t previous;

		if (!callee)
			break;
		ts_python_frame_parse(layout, callee->address, stack->heap_copies + callee->copy,
				      &frame, &previous);
		if (!put_inside(stack, &frame))
			break;
	}
}

/* Frames called while the copy was made, as far as the copy has them. */
static enum python_stack_status extend(struct walk *walk, size_t newest)
{
	struct python_stack *stack = walk->stack;
	const struct ts_python_layout *layout = &walk->python->runtime_info.layout;
	const struct python_chunk *chunk;

	if (layout->frame.state != TS_PYTHON_NONE && stack->is_double && !walk->learns)
		extend_heap(walk);
	if (!layout->frame.is_top_marked || !newest)
		return STACK_OK;
	chunk = &stack->chunks[newest - 1];
	for (unsigned int i = 0; i < MAX_EXTENSION && stack->depth; i++) {
		uint64_t at = find_callee(layout, chunk, &stack->raw[0]), previous;
		struct ts_python_raw_frame frame;

		if (!at)
			break;
		ts_python_frame_parse(layout, at, chunk->copy + (at - chunk->address), &frame,
				      &previous);
		if (frame.flags & TS_PYTHON_RAW_ENTRY || !put_inside(stack, &frame))
			break;
	}
	return STACK_OK;
}

/* The chunk that the thread uses now, plus 1; 0: unknown. */
static size_t newest_chunk(const struct ts_python_reader *python, const struct python_stack *stack)
{
	uint64_t address = head_word(stack, python->runtime_info.layout.thread.data_stack_chunk);

	for (size_t i = stack->chunk_count; i > 0; i--)
		if (stack->chunks[i - 1].address == address)
			return i;
	return 0;
}

/* From the innermost frame to the last. */
static enum python_stack_status follow(struct walk *walk)
{
	struct python_stack *stack = walk->stack;
	const struct ts_python_layout *layout = &walk->python->runtime_info.layout;
	uint64_t base = layout->thread.base_frame == TS_PYTHON_NONE
				? 0
				: head_word(stack, layout->thread.base_frame);
	uint64_t at = stack->innermost;
	size_t newest = walk->chunk;

	stack->depth = stack->left_out = 0;
	stack->lowest = 0;
	stack->walk++;
	while (at && at != base) {
		const uint8_t *copy;
		bool is_in_chunk;
		enum python_stack_status status = find_copy(walk, at, &copy, &is_in_chunk);

		if (status)
			return status;
		status = take_frame(walk, at, copy, is_in_chunk, &at);
		if (status)
			return status;
	}
	/* 3.15: no stack ends elsewhere; a stack whose frames have all returned is empty. */
	if ((base && at != base) || (!stack->depth && stack->innermost && !base))
		return STACK_INVALID;
	if (base && stack->depth && !stack->left_out)
		stack->raw[stack->depth - 1].flags |= TS_PYTHON_RAW_ENTRY;
	return extend(walk, newest);
}

static bool prepare(struct walk *walk)
{
	struct python_stack *stack = walk->stack;
	const struct ts_python_layout *layout = &walk->python->runtime_info.layout;

	if (layout->frames == TS_PYTHON_CFRAME) {
		uint64_t cframe = head_word(stack, layout->thread.frame);

		if (!cframe || stack->cframe != cframe + layout->cframe.current_frame)
			return false;
	} else {
		stack->innermost = head_word(stack, layout->thread.frame);
	}
	if (layout->thread.data_stack_chunk == TS_PYTHON_NONE)
		return true;
	walk->below = UINT64_MAX;
	walk->chunk = newest_chunk(walk->python, stack);
	if (!walk->chunk)
		return !head_word(stack, layout->thread.data_stack_chunk);
	foresee(&stack->chunks[walk->chunk - 1],
		TS_MIN(head_word(stack, layout->thread.data_stack_top) -
			       stack->chunks[walk->chunk - 1].address,
		       (uint64_t)stack->chunks[walk->chunk - 1].size));
	return true;
}

/* Outermost frames that are unchanged since the last sweep. */
static uint32_t unmoved(const struct python_stack *stack)
{
	uint32_t count = 0;
	uint32_t most = stack->has_last ? TS_MIN(stack->depth, stack->last_depth) : 0;

	while (count < most) {
		const struct ts_python_raw_frame *a = &stack->raw[stack->depth - 1 - count];
		const struct ts_python_raw_frame *b = &stack->last[stack->last_depth - 1 - count];

		if (!ts_python_is_same_frame(a, b) || a->instruction != b->instruction ||
		    a->code_index != b->code_index)
			break;
		count++;
	}
	return count;
}

/*
 * The data stack is used from its first slot on (the second one of a thread's first chunk), or not
 * at all.
 */
static bool is_bottomed(const struct ts_python_reader *python, const struct python_stack *stack)
{
	const struct ts_python_layout *layout = &python->runtime_info.layout;
	uint64_t lowest = stack->lowest;

	if (!stack->chunk_count)
		return true;
	if (!lowest)
		lowest = head_word(stack, layout->thread.data_stack_top);
	return lowest - stack->chunks[0].address <= layout->chunk.data + 8u;
}

enum python_stack_status ts_python_stack_walk(struct ts_python_reader *python,
					      struct python_stack *stack)
{
	struct walk walk = { .python = python, .stack = stack };
	enum python_stack_status status;
	uint32_t still;
	uint64_t base;

	if (!stack->is_read || !prepare(&walk))
		return STACK_MISSED;
	status = follow(&walk);
	if (status)
		return status;
	still = unmoved(stack);
	if (stack->has_last && still == stack->depth && still == stack->last_depth)
		return STACK_SAME;
	if (!stack->is_double)
		return STACK_MISSED;
	if (!is_bottomed(python, stack) || !ts_python_stack_is_plausible(python, stack, still))
		return STACK_INVALID;
	base = stack->left_out ? stack->outermost
	       : stack->depth  ? stack->raw[stack->depth - 1].address
			       : stack->base;
	if (base != stack->base) {
		stack->base = base; /* if it is the same next time, it is valid */
		return STACK_INVALID;
	}
	ts_python_stack_learn(python, stack, still);
	return STACK_OK;
}

int ts_python_stack_discover(struct ts_python_reader *python, struct python_stack *stack)
{
	struct walk walk = { .python = python, .stack = stack, .learns = true };
	const struct ts_python_layout *layout = &python->runtime_info.layout;

	/* What could not be read may be gone for good. */
	if (!stack->is_read)
		stack->heap_count = stack->heap_copy_bytes = 0;
	if (!ts_python_memory_read(&python->memory, stack->thread, stack->head,
				   layout->thread.bytes))
		return TS_ENOTFOUND;
	if (layout->frames == TS_PYTHON_CFRAME) {
		stack->cframe = head_word(stack, layout->thread.frame) +
				layout->cframe.current_frame;
		if (!ts_python_memory_read_pointer(&python->memory, stack->cframe,
						   &stack->innermost))
			return TS_ENOTFOUND;
	}
	if (layout->thread.data_stack_chunk != TS_PYTHON_NONE && !discover_chunks(python, stack))
		return TS_ENOTFOUND;
	for (size_t i = 0; i < stack->chunk_count; i++) {
		struct python_chunk *chunk = &stack->chunks[i];

		if (ts_grow_array((void **)&chunk->copy, &chunk->capacity, chunk->bytes, 1))
			return TS_ENOMEM;
		if (!ts_python_memory_read(&python->memory, chunk->address, chunk->copy,
					   chunk->bytes))
			return TS_ENOTFOUND;
		chunk->copied = chunk->bytes;
	}
	if (prepare(&walk))
		follow(&walk);
	return TS_OK;
}

void ts_python_stack_settle(struct python_stack *stack, bool is_accepted, bool has_moved)
{
	struct ts_python_raw_frame *raw = stack->last;
	size_t capacity = stack->last_capacity;

	stack->has_last = is_accepted;
	/* An unmoved stack is the last one, with what was learned about it. */
	if (is_accepted && has_moved) {
		stack->last = stack->raw;
		stack->last_capacity = stack->raw_capacity;
		stack->last_depth = stack->depth;
		stack->raw = raw;
		stack->raw_capacity = capacity;
	}
	if (stack->walk - stack->forgot >= FORGET_AFTER) {
		forget_heap(stack);
		stack->forgot = stack->walk;
	}
	if (has_moved)
		stack->hot = HOT_SWEEPS;
	else if (stack->hot)
		stack->hot--;
}
