/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Caches what a walk of local_unwind.c read: equal registers and equal words lead to the same
 * frames, so the next walk only checks that the words of the outer frames are unchanged.
 */
#include "code/local/local_unwind.h"

#define MAX_WORDS_PER_FRAME 3u

bool ts_local_unwind_words_unchanged(const struct ts_local_unwind_last *last, uint32_t wanted,
				     uint32_t *same)
{
	const struct ts_local_unwind_word *end = last->word + TS_LOCAL_UNWIND_LAST_WORDS;

	while (*same < wanted) {
		const struct ts_local_unwind_word *word = end - 1 - *same;

		if (ts_local_unwind_stack_word(word->address) != word->value)
			return false;
		++*same;
	}
	return true;
}

static void add_word(struct ts_local_unwind_last *last, uint64_t address)
{
	struct ts_local_unwind_word *word = &last->word[TS_LOCAL_UNWIND_LAST_WORDS - ++last->words];

	*word = (struct ts_local_unwind_word){ address, ts_local_unwind_stack_word(address) };
}

/*
 * The words that lead from a state to its caller. A frame pointer that nothing depends on often
 * holds something else, which changes.
 */
static void add_words(struct ts_local_unwind_last *last, const struct ts_local_unwind_state *state,
		      const struct ts_local_unwind_state *caller, bool needs_fp)
{
	unsigned int from = TS_LOCAL_UNWIND_FRAME(state->rule),
		     pointer = TS_LOCAL_UNWIND_POINTER(state->rule);
	uint64_t return_offset = TS_LOCAL_UNWIND_RETURN_OFFSET(state->rule);
	uint64_t pointer_offset = TS_LOCAL_UNWIND_POINTER_OFFSET(state->rule);

	if (from == TS_LOCAL_UNWIND_SPECIAL)
		return;
	if (from == TS_LOCAL_UNWIND_FROM_MEMORY)
		add_word(last, state->fp - TS_LOCAL_UNWIND_FRAME_OFFSET(state->rule));
	if (needs_fp && pointer != TS_LOCAL_UNWIND_FP_SAME)
		add_word(last, pointer == TS_LOCAL_UNWIND_FP_SAVED ? caller->sp - pointer_offset
								   : state->fp + pointer_offset);
	if (return_offset)
		add_word(last, caller->sp - return_offset);
}

static bool reads_fp(uint64_t rule, bool caller_needs_fp)
{
	unsigned int from = TS_LOCAL_UNWIND_FRAME(rule), pointer = TS_LOCAL_UNWIND_POINTER(rule);

	if (from == TS_LOCAL_UNWIND_SPECIAL)
		return false;
	return from != TS_LOCAL_UNWIND_FROM_SP || pointer == TS_LOCAL_UNWIND_FP_AT_FP ||
	       (pointer == TS_LOCAL_UNWIND_FP_SAME && caller_needs_fp);
}

static bool has_space(const struct ts_local_unwind_last *last)
{
	return last->count < TS_LOCAL_UNWIND_LAST_FRAMES &&
	       last->words + MAX_WORDS_PER_FRAME <= TS_LOCAL_UNWIND_LAST_WORDS;
}

/*
 * Of deep stacks the outer frames are kept. The innermost state also depends on a link register: it
 * is left out.
 */
uint64_t ts_local_unwind_remember(struct ts_local_unwind_last *last,
				  const struct ts_local_unwind_stack *stack, size_t states,
				  struct ts_local_unwind_state caller, bool needs_fp, uint64_t hash)
{
	bool is_kept = true;

	for (size_t i = states; i > 0; i--) {
		const struct ts_local_unwind_state *state =
			&last->trail[i % TS_LOCAL_UNWIND_LAST_FRAMES];
		uint32_t at;

		hash = ts_local_unwind_hash_frame(hash, stack->pcs[i - 1]);
		is_kept = is_kept && states - i < TS_LOCAL_UNWIND_LAST_FRAMES && has_space(last);
		if (!is_kept)
			continue;
		add_words(last, state, &caller, needs_fp);
		needs_fp = reads_fp(state->rule, needs_fp);
		at = TS_LOCAL_UNWIND_LAST_FRAMES - ++last->count;
		last->pcs[at] = state->pc;
		last->sps[at] = state->sp;
		last->fps[at] = state->fp;
		last->hashes[at] = hash;
		last->words_of[at] = last->words;
		last->needs_fp[at] = needs_fp;
		caller = *state;
	}
	return hash;
}
