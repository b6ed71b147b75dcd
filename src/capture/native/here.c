/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quick way up the calling thread's stack, with stack and frame pointer alone; see here.h. Where a function needs more, all is done anew with all
 * registers (here_full.c). Must not know how rules are found (here_rules.c).
 */
#include "capture/native/here.h"

#include <errno.h>

#define MOST_TURNS 3u   /* libraries may be unloaded meanwhile */
#define ADDRESS_BITS 48 /* of aarch64's addresses; a signature is above */

static inline uint64_t load_word(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/* A word of the stack: of other functions' frames, which a sanitizer would not let us look at. */
__attribute__((no_sanitize("address"))) static inline uint64_t stack_word(uint64_t address)
{
	return *(const uint64_t *)(uintptr_t)address;
}

static inline uint64_t without_signature(uint64_t address)
{
#if defined(__aarch64__)
	return address & ((UINT64_C(1) << ADDRESS_BITS) - 1);
#else
	return address;
#endif
}

static inline uint64_t find_rule(uint64_t pc, uint64_t generation)
{
	const struct ts_here_table *table = __atomic_load_n(&ts_here_table, __ATOMIC_ACQUIRE);
	const struct ts_here_slot *slots;
	uint64_t key = ts_here_key(pc, generation);

	if (__builtin_expect(!table, 0))
		return ts_here_make_rule(pc);
	slots = table->slots[ts_here_bucket(pc)];
	for (unsigned int i = 0; i < TS_HERE_WAYS; i++) {
		uint64_t rule = load_word(&slots[i].rule);

		if (__builtin_expect(load_word(&slots[i].check) == ts_here_check(key, rule), 1))
			return rule;
	}
	return ts_here_make_rule(pc);
}

enum outcome { WENT_ON, ENDED, NEEDS_ALL };

struct walk {
	uint64_t pc, sp, fp, lr;
	struct ts_here_bounds bounds;
};

static inline bool is_below(const struct walk *walk, uint64_t frame, uint64_t offset)
{
	return offset <= frame - walk->sp;
}

/* The frame's address lies above the stack pointer and not above the stack, and so do the words that are loaded. */
__attribute__((no_sanitize("address"))) static inline enum outcome step(struct walk *walk,
									uint64_t rule,
									enum ts_here_end *ret_end)
{
	unsigned int from = TS_HERE_FRAME(rule), pointer = TS_HERE_POINTER(rule);
	uint64_t frame = (from == TS_HERE_FROM_SP ? walk->sp : walk->fp) +
			 TS_HERE_FRAME_OFFSET(rule);
	uint64_t at = TS_HERE_RETURN_OFFSET(rule), fp_at;

	if (__builtin_expect(from >= TS_HERE_FROM_MEMORY, 0)) {
		if (from == TS_HERE_FROM_NOWHERE) {
			*ret_end = pointer == TS_HERE_ENDS ? TS_HERE_WHOLE : TS_HERE_NO_TABLES;
			return pointer == TS_HERE_LARGE ? NEEDS_ALL : ENDED;
		}
		frame = walk->fp - TS_HERE_FRAME_OFFSET(rule);
		*ret_end = TS_HERE_OTHER_STACK;
		if (frame < walk->sp || frame > walk->bounds.high - 8 || frame % 8)
			return ENDED;
		frame = stack_word(frame);
	}
	*ret_end = TS_HERE_OTHER_STACK;
	if (__builtin_expect(frame < walk->sp || frame > walk->bounds.high || frame % 8 ||
				     !is_below(walk, frame, at),
			     0))
		return ENDED;
	if (pointer != TS_HERE_FP_SAME) {
		fp_at = pointer == TS_HERE_FP_SAVED ? frame - TS_HERE_POINTER_OFFSET(rule)
						    : walk->fp + TS_HERE_POINTER_OFFSET(rule);
		if (__builtin_expect(fp_at < walk->sp || fp_at > walk->bounds.high - 8 || fp_at % 8,
				     0))
			return ENDED;
		walk->fp = stack_word(fp_at);
	}
	walk->pc = without_signature(at ? stack_word(frame - at) : walk->lr);
	walk->sp = frame;
	*ret_end = TS_HERE_WHOLE;
	return walk->pc ? WENT_ON : ENDED;
}

/* False: all registers are needed. */
static bool take_quickly(const struct ts_here *here, uint64_t generation,
			 struct ts_here_stack *stack)
{
	struct walk walk = { .pc = here->values[TS_HERE_PC],
			     .sp = here->values[TS_HERE_SP],
			     .fp = here->values[TS_HERE_FP] };
	uint64_t hash = generation, rule, *to = stack->pcs;
	enum outcome outcome;
	size_t count = 0;

#if defined(__aarch64__)
	walk.lr = here->values[TS_HERE_LR];
#endif
	walk.bounds = ts_here_bounds_of(walk.sp);
	for (;;) {
		rule = find_rule(walk.pc, generation);
		outcome = step(&walk, rule, &stack->end);
		if (__builtin_expect(outcome == ENDED && ts_here_is_stale(rule), 0))
			outcome = step(&walk, ts_here_make_rule(walk.pc), &stack->end);
		if (outcome != WENT_ON)
			break;
		/* Where a caller has none of its own on the stack, nobody has: only the innermost function may not have stored it. */
		walk.lr = 0;
		if (__builtin_expect(count == stack->room, 0)) {
			stack->end = TS_HERE_TOO_DEEP;
			break;
		}
		to[count++] = walk.pc;
		hash = ts_here_add(hash, walk.pc);
	}
	stack->count = count;
	stack->hash = ts_here_mix(hash, stack->end + 1) | 1;
	return outcome != NEEDS_ALL;
}

void ts_here_take(const struct ts_here *here, struct ts_here_stack *stack)
{
	int saved_errno = errno;

	ts_here_look_again();
	for (unsigned int turn = 0; turn < MOST_TURNS; turn++) {
		uint64_t generation = ts_here_generation();

		if (!take_quickly(here, generation, stack))
			ts_here_take_full(here, stack);
		if (generation == ts_here_generation())
			break;
	}
	errno = saved_errno;
}

uint64_t ts_here_generation(void)
{
	return __atomic_load_n(&ts_here_unloads, __ATOMIC_ACQUIRE);
}
