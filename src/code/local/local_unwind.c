/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fast path: unwinds the calling thread's stack with stack and frame pointer alone. If a function
 * needs more, local_unwind_cfi.c starts over with all registers.
 */
#include "code/local/local_unwind.h"

#include <errno.h>
#include <string.h>

#define MAX_TURNS 3u    /* libraries may be unloaded meanwhile */
#define ADDRESS_BITS 48 /* aarch64 address bits; a pointer signature is above */

static inline uint64_t load_word(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
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
	const struct ts_local_unwind_table *table =
		__atomic_load_n(&ts_local_unwind_table, __ATOMIC_ACQUIRE);
	const struct ts_local_unwind_slot *slots;
	uint64_t key = ts_local_unwind_key(pc, generation);

	if (__builtin_expect(!table, 0))
		return ts_local_unwind_make_rule(pc);
	slots = table->slots[ts_local_unwind_bucket(pc)];
	for (unsigned int i = 0; i < TS_LOCAL_UNWIND_WAYS; i++) {
		uint64_t rule = load_word(&slots[i].rule);

		if (__builtin_expect(load_word(&slots[i].check) == ts_local_unwind_check(key, rule),
				     1))
			return rule;
	}
	return ts_local_unwind_make_rule(pc);
}

enum outcome { WENT_ON, ENDED, NEEDS_ALL };

struct walk {
	uint64_t pc, sp, fp, lr;
	struct ts_local_unwind_bounds bounds;
};

static inline bool is_below(const struct walk *walk, uint64_t frame, uint64_t offset)
{
	return offset <= frame - walk->sp;
}

/* The CFA is above the stack pointer and within the stack, and so are the words loaded. */
__attribute__((no_sanitize("address"))) static inline enum outcome step(
	struct walk *walk, uint64_t rule, enum ts_local_unwind_end *ret_end)
{
	unsigned int from = TS_LOCAL_UNWIND_FRAME(rule), pointer = TS_LOCAL_UNWIND_POINTER(rule);
	uint64_t frame = (from == TS_LOCAL_UNWIND_FROM_SP ? walk->sp : walk->fp) +
			 TS_LOCAL_UNWIND_FRAME_OFFSET(rule);
	uint64_t at = TS_LOCAL_UNWIND_RETURN_OFFSET(rule), fp_at;

	if (__builtin_expect(from >= TS_LOCAL_UNWIND_FROM_MEMORY, 0)) {
		if (from == TS_LOCAL_UNWIND_SPECIAL) {
			*ret_end = pointer == TS_LOCAL_UNWIND_OUTERMOST ? TS_LOCAL_UNWIND_COMPLETE
									: TS_LOCAL_UNWIND_NO_TABLES;
			return pointer == TS_LOCAL_UNWIND_LARGE ? NEEDS_ALL : ENDED;
		}
		frame = walk->fp - TS_LOCAL_UNWIND_FRAME_OFFSET(rule);
		*ret_end = TS_LOCAL_UNWIND_OTHER_STACK;
		if (frame < walk->sp || frame > walk->bounds.high - 8 || frame % 8)
			return ENDED;
		frame = ts_local_unwind_stack_word(frame);
	}
	*ret_end = TS_LOCAL_UNWIND_OTHER_STACK;
	if (__builtin_expect(frame < walk->sp || frame > walk->bounds.high || frame % 8 ||
				     !is_below(walk, frame, at),
			     0))
		return ENDED;
	if (pointer != TS_LOCAL_UNWIND_FP_SAME) {
		fp_at = pointer == TS_LOCAL_UNWIND_FP_SAVED
				? frame - TS_LOCAL_UNWIND_POINTER_OFFSET(rule)
				: walk->fp + TS_LOCAL_UNWIND_POINTER_OFFSET(rule);
		if (__builtin_expect(fp_at < walk->sp || fp_at > walk->bounds.high - 8 || fp_at % 8,
				     0))
			return ENDED;
		walk->fp = ts_local_unwind_stack_word(fp_at);
	}
	walk->pc = without_signature(at ? ts_local_unwind_stack_word(frame - at) : walk->lr);
	walk->sp = frame;
	*ret_end = TS_LOCAL_UNWIND_COMPLETE;
	return walk->pc ? WENT_ON : ENDED;
}

/* ---- rejoining the cached walk ---- */

struct rejoin {
	struct ts_local_unwind_last *last;
	uint32_t at;   /* first cached state that is not below the walk's;
			  TS_LOCAL_UNWIND_LAST_FRAMES: none left */
	uint32_t same; /* number of its words known to be unchanged */
};

static inline struct rejoin begin_rejoin(struct ts_local_unwind_last *last, uint64_t generation,
					 const struct ts_local_unwind_bounds *bounds)
{
	struct rejoin rejoin = { .last = last, .at = TS_LOCAL_UNWIND_LAST_FRAMES };

	if (!last)
		return rejoin;
	if (__builtin_expect(last->generation != generation || last->bounds.low != bounds->low ||
				     last->bounds.high != bounds->high,
			     0)) {
		last->count = 0;
		last->generation = generation;
		last->bounds = *bounds;
	}
	rejoin.at -= last->count;
	return rejoin;
}

/* Everything that decides how the walk continues is unchanged. */
static inline bool can_rejoin(struct rejoin *rejoin, const struct walk *walk)
{
	const struct ts_local_unwind_last *last = rejoin->last;
	uint32_t at = rejoin->at;

	while (at < TS_LOCAL_UNWIND_LAST_FRAMES && last->sps[at] < walk->sp)
		at++;
	rejoin->at = at;
	return at < TS_LOCAL_UNWIND_LAST_FRAMES && last->sps[at] == walk->sp &&
	       last->pcs[at] == walk->pc && (last->fps[at] == walk->fp || !last->needs_fp[at]) &&
	       ts_local_unwind_words_unchanged(last, last->words_of[at], &rejoin->same);
}

static inline struct ts_local_unwind_state state_of(const struct walk *walk, uint64_t rule)
{
	return (struct ts_local_unwind_state){ walk->pc, walk->sp, walk->fp, rule };
}

/* Appends the cached outer frames. False: no capacity for them. */
static bool add_last(const struct rejoin *rejoin, const struct walk *walk,
		     struct ts_local_unwind_stack *stack)
{
	struct ts_local_unwind_last *last = rejoin->last;
	uint32_t at = rejoin->at, more = TS_LOCAL_UNWIND_LAST_FRAMES - 1 - at;

	if (more > stack->capacity - stack->count)
		return false;
	memcpy(stack->pcs + stack->count, last->pcs + at + 1, more * sizeof(*last->pcs));
	last->count = more + 1;
	last->words = last->words_of[at];
	stack->hash = ts_local_unwind_remember(last, stack, stack->count - 1, state_of(walk, 0),
					       last->needs_fp[at], last->hashes[at]);
	stack->count += more;
	stack->end = TS_LOCAL_UNWIND_COMPLETE;
	return true;
}

/* ---- the walk ---- */

/* A walk that ended differently may get further next time. */
static void finish(const struct rejoin *rejoin, const struct walk *walk, enum outcome outcome,
		   uint64_t generation, struct ts_local_unwind_stack *stack)
{
	struct ts_local_unwind_last *last = rejoin->last;

	if (!last || outcome != ENDED || stack->end != TS_LOCAL_UNWIND_COMPLETE) {
		stack->hash = ts_local_unwind_hash(stack, generation);
		return;
	}
	last->count = last->words = 0;
	stack->hash = ts_local_unwind_remember(last, stack, stack->count, state_of(walk, 0), false,
					       generation);
}

/* False: all registers are needed. */
static bool take_quickly(const struct ts_local_unwind_registers *captured, uint64_t generation,
			 struct ts_local_unwind_stack *stack)
{
	struct walk walk = { .pc = captured->values[TS_LOCAL_UNWIND_PC],
			     .sp = captured->values[TS_LOCAL_UNWIND_SP],
			     .fp = captured->values[TS_LOCAL_UNWIND_FP] };
	enum outcome outcome;
	struct rejoin rejoin;

#if defined(__aarch64__)
	walk.lr = captured->values[TS_LOCAL_UNWIND_LR];
#endif
	walk.bounds = ts_local_unwind_bounds_of(walk.sp);
	rejoin = begin_rejoin(stack->last, generation, &walk.bounds);
	stack->count = 0;
	for (;;) {
		uint64_t rule = find_rule(walk.pc, generation);
		struct ts_local_unwind_state state = state_of(&walk, rule);

		outcome = step(&walk, rule, &stack->end);
		if (__builtin_expect(outcome == ENDED && ts_local_unwind_is_stale(rule), 0)) {
			state.rule = ts_local_unwind_make_rule(walk.pc);
			outcome = step(&walk, state.rule, &stack->end);
		}
		if (stack->last)
			stack->last->trail[stack->count % TS_LOCAL_UNWIND_LAST_FRAMES] = state;
		if (outcome != WENT_ON)
			break;
		/*
		 * A caller always has its return address on the stack; only the innermost function
		 * may not have stored it yet.
		 */
		walk.lr = 0;
		if (__builtin_expect(stack->count == stack->capacity, 0)) {
			stack->end = TS_LOCAL_UNWIND_TOO_DEEP;
			outcome = ENDED;
			break;
		}
		stack->pcs[stack->count++] = walk.pc;
		if (can_rejoin(&rejoin, &walk) && add_last(&rejoin, &walk, stack))
			break;
	}
	if (outcome != WENT_ON)
		finish(&rejoin, &walk, outcome, generation, stack);
	stack->hash = ts_local_unwind_hash_end(stack->hash, stack->end);
	return outcome != NEEDS_ALL;
}

void ts_local_unwind_walk(const struct ts_local_unwind_registers *captured,
			  struct ts_local_unwind_stack *stack)
{
	int saved_errno = errno;

	ts_local_unwind_check_modules();
	for (unsigned int turn = 0; turn < MAX_TURNS; turn++) {
		uint64_t generation = ts_local_unwind_generation();

		if (!take_quickly(captured, generation, stack))
			ts_local_unwind_walk_cfi(captured, stack);
		if (generation == ts_local_unwind_generation())
			break;
	}
	errno = saved_errno;
}

uint64_t ts_local_unwind_generation(void)
{
	return __atomic_load_n(&ts_local_unwind_unloads, __ATOMIC_ACQUIRE);
}
