/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the calls of a stack copied from a running thread are plausible: a new inner frame may
 * overlie an old outer one. Evidence is the calling instruction, a second identical copy, and calls
 * confirmed before at that call site.
 */
#include "python/reader/python_reader_internal.h"

#define CALL_KNOWN 4u    /* how often a call was seen */
#define RARE 64u         /* a call rarer than this at its site is odd */
#define MANY 32u         /* a site with more odd calls than this calls many functions */
#define WELL_KNOWN 8u    /* calls seen at one place */
#define MAX_CONFIRMED 8u /* frames of generators */
#define MAX_FRAME 256u
#define MAX_CALLS (1u << 20) /* that are remembered */

/*
 * Calls that are new since the last sweep. Criteria, in this order:
 *
 * - the calling instruction expects that function: it caches the version of the one it called last
 *   (3.11 on);
 * - it expects another one: accepted only if it lasts from one sweep to the next;
 * - a call that a well-known site hardly ever makes is rejected unless it lasts, and counted; sites
 *   that call many functions are exempt;
 * - there is native code in between, and the call was seen before;
 * - otherwise it must not move.
 */
enum novelty { CALLS_KNOWN, CALLS_NEW, CALLS_ODD };

/*
 * Values of `calls` and `sites`: how often, how often odd, and whether the instruction proves it.
 */
#define ODD_ONE (UINT64_C(1) << 32)
#define PROVEN (UINT64_C(1) << 62)

static uint64_t count_of(uint64_t value)
{
	return value & (ODD_ONE - 1);
}

static bool is_of_many(uint64_t site)
{
	return (site & (PROVEN - 1)) / ODD_ONE * MANY >= count_of(site);
}

/* The call site of a frame. */
static uint64_t site_of(const struct ts_python_reader *python,
			const struct ts_python_raw_frame *frame)
{
	if (python->runtime_info.layout.frames != TS_PYTHON_FRAME_OBJECTS)
		return frame->instruction;
	return ts_hash_mix64(frame->code) + frame->instruction;
}

/* Whether its caller's instruction could name it. */
static bool may_be_expected(const struct ts_python_reader *python,
			    const struct ts_python_raw_frame *callee)
{
	return python->runtime_info.layout.frames != TS_PYTHON_FRAME_OBJECTS &&
	       !(callee->flags & TS_PYTHON_RAW_ENTRY);
}

static enum novelty classify_call_of(const struct ts_python_reader *python,
				     const struct python_stack *stack, uint32_t callee)
{
	uint64_t site = site_of(python, &stack->raw[callee + 1]), all = 0, seen = 0;

	ts_pairmap_get(&python->calls, site, stack->raw[callee].code, &seen);
	if (seen & PROVEN)
		return CALLS_KNOWN;
	ts_map_get(&python->sites, site, &all);
	if (all & PROVEN)
		return CALLS_ODD;
	if (count_of(seen) >= CALL_KNOWN && count_of(seen) * RARE >= count_of(all))
		return may_be_expected(python, &stack->raw[callee]) ? CALLS_NEW : CALLS_KNOWN;
	return count_of(all) >= WELL_KNOWN && !is_of_many(all) ? CALLS_ODD : CALLS_NEW;
}

/* Whether the calling instruction expects the called function. */
static bool is_expected(struct ts_python_reader *python, const struct ts_python_raw_frame *caller,
			const struct ts_python_raw_frame *callee)
{
	const struct ts_python_layout *layout = &python->runtime_info.layout;
	uint32_t expected = 0, version = 0;
	uint64_t code = 0;
	struct ts_python_memory_range ranges[] = {
		{ caller->instruction + (uint64_t)(int64_t)layout->function.call_cache, &expected,
		  4 },
		{ callee->function + layout->function.version, &version, 4 },
		{ callee->function + layout->function.code, &code,
		  8 }, /* it is really its function */
	};

	return layout->function.version != TS_PYTHON_NONE && callee->function &&
	       ts_python_memory_read_ranges(&python->memory, ranges, 3) == 3 && version &&
	       code == callee->code && expected == version;
}

/* Checks the instructions of unproven calls: at first, and whenever their count has doubled. */
static void prove_calls(struct ts_python_reader *python, const struct python_stack *stack,
			uint32_t moved)
{
	if (python->runtime_info.layout.frames == TS_PYTHON_FRAME_OBJECTS)
		return;
	for (uint32_t i = 0; i < moved && i + 1 < stack->depth; i++) {
		uint64_t site = stack->raw[i + 1].instruction;
		uint64_t *seen = ts_pairmap_insert(&python->calls, site, stack->raw[i].code, NULL);
		uint64_t *all;

		if (!seen || *seen & PROVEN || count_of(*seen) & (count_of(*seen) - 1) ||
		    stack->raw[i].flags & TS_PYTHON_RAW_ENTRY)
			continue;
		if (!is_expected(python, &stack->raw[i + 1], &stack->raw[i])) {
			*seen += !count_of(*seen); /* seen, but not accepted */
			continue;
		}
		*seen |= PROVEN;
		all = ts_map_insert(&python->sites, site, NULL);
		if (all)
			*all |= PROVEN;
	}
}

static void note_odd_call(struct ts_python_reader *python, const struct python_stack *stack,
			  uint32_t callee)
{
	uint64_t site = site_of(python, &stack->raw[callee + 1]);
	uint64_t *all = ts_map_insert(&python->sites, site, NULL);
	uint64_t *seen = ts_pairmap_insert(&python->calls, site, stack->raw[callee].code, NULL);

	if (all)
		*all += ODD_ONE;
	if (seen)
		++*seen;
}

static enum novelty classify_novelty(const struct ts_python_reader *python,
				     const struct python_stack *stack, uint32_t moved)
{
	enum novelty novelty = CALLS_KNOWN;

	for (uint32_t i = 0; i < moved && i + 1 < stack->depth; i++) {
		enum novelty one = classify_call_of(python, stack, i);

		novelty = TS_MAX(novelty, one);
	}
	return novelty;
}

/* Odd calls that persist. True: there is one that was already there in the last sweep. */
static bool note_odd_calls(struct ts_python_reader *python, struct python_stack *stack,
			   uint32_t moved)
{
	struct python_odd_call *odd = &stack->odd, now = { .sweep = python->number };
	bool is_lasting;

	for (uint32_t i = 0; i < moved && i + 1 < stack->depth; i++) {
		if (classify_call_of(python, stack, i) != CALLS_ODD)
			continue;
		note_odd_call(python, stack, i);
		now.callee = stack->raw[i].address;
		now.code = stack->raw[i].code;
		now.site = stack->raw[i + 1].instruction;
	}
	is_lasting = odd->callee == now.callee && odd->code == now.code && odd->site == now.site &&
		     odd->sweep + 1 == now.sweep;
	if (odd->sweep != now.sweep)
		*odd = now;
	return is_lasting;
}

static void learn_calls(struct ts_python_reader *python, const struct python_stack *stack,
			uint32_t moved)
{
	if (ts_pairmap_count(&python->calls) > MAX_CALLS) {
		ts_pairmap_clear(&python->calls);
		ts_map_clear(&python->sites);
	}
	for (uint32_t i = 0; i < moved && i + 1 < stack->depth; i++) {
		uint64_t site = site_of(python, &stack->raw[i + 1]);
		uint64_t *all = ts_map_insert(&python->sites, site, NULL);
		uint64_t *seen = ts_pairmap_insert(&python->calls, site, stack->raw[i].code, NULL);

		if (all && count_of(*all) < ODD_ONE - 1)
			++*all;
		if (seen && count_of(*seen) < ODD_ONE - 1)
			++*seen;
	}
}

/* Innermost frames that are new since the last sweep; the first may still be the same call. */
static uint32_t moved_frames(const struct python_stack *stack, uint32_t still)
{
	uint32_t moved = stack->depth - still;

	if (moved && stack->has_last && stack->last_depth > still &&
	    ts_python_is_same_frame(&stack->raw[moved - 1],
				    &stack->last[stack->last_depth - 1 - still]))
		moved--;
	return moved;
}

/* Whether the frames that were copied twice are equal, except for the innermost instruction. */
static bool is_confirmed(const struct ts_python_reader *python, const struct python_stack *stack)
{
	const struct ts_python_layout *layout = &python->runtime_info.layout;

	for (uint32_t i = 0; i < stack->depth; i++) {
		const struct ts_python_raw_frame *frame = &stack->raw[i];
		uint64_t offset = frame->address - stack->again_address;
		struct ts_python_raw_frame again;
		uint64_t previous;

		if (offset >= stack->again_bytes ||
		    offset + layout->frame.bytes > stack->again_bytes)
			continue;
		ts_python_frame_parse(layout, frame->address, stack->again + offset, &again,
				      &previous);
		if (again.code != frame->code || (i && again.instruction != frame->instruction) ||
		    (i + 1 < stack->depth && previous != stack->raw[i + 1].address &&
		     !(again.flags & TS_PYTHON_RAW_ENTRY) && !(frame->flags & TS_PYTHON_RAW_ENTRY)))
			return false;
	}
	return true;
}

/* Heap frames are not copied twice: whether the last, rejected walk found the same. */
static bool is_pending(const struct python_stack *stack)
{
	if (stack->depth != stack->pending_depth)
		return false;
	for (uint32_t i = 0; i < stack->depth; i++)
		if (!ts_python_is_same_frame(&stack->raw[i], &stack->pending[i]) ||
		    (i && stack->raw[i].instruction != stack->pending[i].instruction))
			return false;
	return true;
}

static void make_pending(struct python_stack *stack)
{
	stack->pending_depth = 0;
	if (ts_grow_array((void **)&stack->pending, &stack->pending_capacity, stack->depth,
			  sizeof(*stack->pending)))
		return;
	memcpy(stack->pending, stack->raw, stack->depth * sizeof(*stack->raw));
	stack->pending_depth = stack->depth;
}

/* Copies generator frames again, which are stored separately; then the innermost, last of all. */
static bool are_generators_confirmed(struct ts_python_reader *python, struct python_stack *stack,
				     uint32_t moved)
{
	const struct ts_python_layout *layout = &python->runtime_info.layout;
	uint8_t copies[MAX_CONFIRMED][MAX_FRAME] = { { 0 } };
	struct ts_python_memory_range ranges[MAX_CONFIRMED + 1];
	uint32_t indices[MAX_CONFIRMED], count = 0;
	uint64_t innermost = 0;

	for (uint32_t i = 0; i <= moved && i < stack->depth; i++) {
		if (ts_python_stack_is_in_chunks(stack, stack->raw[i].address))
			continue;
		if (count == MAX_CONFIRMED || layout->frame.bytes > MAX_FRAME)
			return false;
		ranges[count] = (struct ts_python_memory_range){ stack->raw[i].address,
								 copies[count],
								 layout->frame.bytes };
		indices[count++] = i;
	}
	if (!count)
		return true;
	ranges[count] =
		(struct ts_python_memory_range){ ts_python_stack_innermost_address(python, stack),
						 &innermost, 8 };
	if (ts_python_memory_read_ranges(&python->memory, ranges, count + 1u) != (int)count + 1 ||
	    innermost != stack->innermost)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		const struct ts_python_raw_frame *frame = &stack->raw[indices[i]];
		struct ts_python_raw_frame again;
		uint64_t previous;

		ts_python_frame_parse(layout, frame->address, copies[i], &again, &previous);
		if (again.code != frame->code ||
		    (indices[i] && again.instruction != frame->instruction) || !previous)
			return false;
	}
	return true;
}

static bool is_unchanged(struct ts_python_reader *python, struct python_stack *stack,
			 uint32_t moved)
{
	const struct ts_python_layout *layout = &python->runtime_info.layout;
	bool is_pending_again;

	if (stack->innermost_after != stack->innermost ||
	    (layout->frames == TS_PYTHON_CFRAME &&
	     stack->cframe_after + layout->cframe.current_frame != stack->cframe))
		return false;
	if (layout->frames != TS_PYTHON_FRAME_OBJECTS)
		return is_confirmed(python, stack) &&
		       are_generators_confirmed(python, stack, moved);
	is_pending_again = is_pending(stack);
	make_pending(stack);
	return is_pending_again;
}

/* The copy of a walked frame. */
static const uint8_t *copy_of(struct python_stack *stack, uint64_t address, size_t bytes)
{
	const struct python_heap_frame *frame;

	for (size_t i = stack->chunk_count; i > 0; i--) {
		const struct python_chunk *chunk = &stack->chunks[i - 1];
		uint64_t offset = address - chunk->address;

		if (offset < chunk->copied && chunk->copied - offset >= bytes)
			return chunk->copy + offset;
	}
	frame = ts_python_stack_heap_frame(stack, address);
	return frame ? stack->heap_copies + frame->copy : NULL;
}

/*
 * 3.11 to 3.13: a frame that has returned or yielded has saved its stack pointer, a running one has
 * not.
 */
static bool may_have_ended(const struct ts_python_layout *layout, struct python_stack *stack)
{
	const uint8_t *copy;

	if (!layout->frame.is_top_marked || !stack->depth)
		return false;
	copy = copy_of(stack, stack->raw[0].address, layout->frame.bytes);
	return !copy || (int32_t)ts_python_half_of(copy, layout->frame.stack_top) >= 0;
}

bool ts_python_stack_is_plausible(struct ts_python_reader *python, struct python_stack *stack,
				  uint32_t still)
{
	uint32_t moved = moved_frames(stack, still);
	enum novelty novelty;

	stack->is_confirmed = false;
	prove_calls(python, stack, moved);
	novelty = classify_novelty(python, stack, moved);
	if (novelty == CALLS_KNOWN)
		return true;
	if (may_have_ended(&python->runtime_info.layout, stack) ||
	    !is_unchanged(python, stack, moved))
		return false;
	stack->is_confirmed = true;
	return novelty != CALLS_ODD || note_odd_calls(python, stack, moved);
}

void ts_python_stack_learn(struct ts_python_reader *python, const struct python_stack *stack,
			   uint32_t still)
{
	/* What is unconfirmed may be torn. */
	if (stack->is_confirmed)
		learn_calls(python, stack, moved_frames(stack, still));
}
