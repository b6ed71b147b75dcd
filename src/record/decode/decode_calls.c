/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks calls that enqueued a command whose device record has not arrived; at the end these count
 * as lost. Calls and commands come in any order, millions may lie between them, and one call may
 * have many commands. Correlations grow, so pages of two bits each hold them.
 */
#include <stdlib.h>

#include "record/decode/decode_internal.h"

#define PAGE_CALLS (DECODE_CALL_WORDS * 64u)

static uint64_t count_open(const struct decode_call_page *page)
{
	uint64_t count = 0;

	for (size_t i = 0; i < DECODE_CALL_WORDS; i++)
		count += (uint64_t)__builtin_popcountll(page->called[i] & ~page->done[i]);
	return count;
}

/* Discards the older half: calls still open there have been open for millions of calls. */
static void forget_pages(struct ts_decoder *decoder, struct decode_calls *calls)
{
	size_t kept = calls->count / 2, gone = calls->count - kept;

	for (size_t i = 0; i < gone; i++)
		calls->given_up += count_open(&calls->pages[i]);
	memmove(calls->pages, calls->pages + gone, kept * sizeof(*calls->pages));
	calls->count = kept;
	ts_map_clear(&calls->index);
	for (size_t i = 0; i < kept; i++)
		if (ts_map_put(&calls->index, calls->pages[i].number, i))
			decode_no_memory(decoder);
}

static struct decode_call_page *add_page(struct ts_decoder *decoder, struct decode_calls *calls,
					 uint64_t number)
{
	struct decode_call_page *page;

	if (calls->count >= DECODE_CALL_PAGES)
		forget_pages(decoder, calls);
	if (ts_grow_array((void **)&calls->pages, &calls->capacity, calls->count + 1,
			  sizeof(*calls->pages)) ||
	    ts_map_put(&calls->index, number, calls->count)) {
		decode_no_memory(decoder);
		return NULL;
	}
	page = &calls->pages[calls->count++];
	memset(page, 0, sizeof(*page));
	page->number = number;
	return page;
}

/* NULL: no memory. */
static struct decode_call_page *page_of(struct ts_decoder *decoder, struct decode_calls *calls,
					uint64_t number)
{
	uint64_t index;

	if (!ts_map_get(&calls->index, number, &index))
		return add_page(decoder, calls, number);
	return &calls->pages[index];
}

/* Sets the bit of a correlation in one of the page's halves. */
static bool set_bit(struct ts_decoder *decoder, struct decode_area *area, uint64_t correlation,
		    bool is_done)
{
	struct decode_call_page *page;
	uint32_t bit = correlation % PAGE_CALLS;

	if (!correlation)
		return true;
	page = page_of(decoder, &area->calls, correlation / PAGE_CALLS);
	if (page)
		(is_done ? page->done : page->called)[bit / 64] |= UINT64_C(1) << bit % 64;
	return page != NULL;
}

bool decode_wait_for_call(struct ts_decoder *decoder, struct decode_area *area,
			  uint64_t correlation)
{
	return set_bit(decoder, area, correlation, false);
}

void decode_forget_call(struct ts_decoder *decoder, struct decode_area *area, uint64_t correlation)
{
	set_bit(decoder, area, correlation, true);
}

bool decode_put_calls(struct ts_decoder *decoder, struct decode_area *area,
		      const struct decode_call_page *page)
{
	struct decode_call_page *to = page_of(decoder, &area->calls, page->number);

	for (size_t i = 0; to && i < DECODE_CALL_WORDS; i++) {
		to->called[i] |= page->called[i];
		to->done[i] |= page->done[i];
	}
	return to != NULL;
}

void decode_report_calls(struct ts_decoder *decoder, struct decode_area *area)
{
	uint64_t count = area->calls.given_up;
	bool is_over = !decoder->options.is_snapshot;

	for (size_t i = 0; is_over && i < area->calls.count; i++)
		count += count_open(&area->calls.pages[i]);
	decode_free_calls(area);
	if (count)
		decode_loss_row(
			decoder, area->process, 0, "gpu_op",
			"their call was recorded, but no device record arrived: the program "
			"exited, or the window was closed",
			(int64_t)count, decoder->now_ns, decoder->now_ns);
}

void decode_free_calls(struct decode_area *area)
{
	free(area->calls.pages);
	ts_map_release(&area->calls.index);
	memset(&area->calls, 0, sizeof(area->calls));
}
