/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which calls have given a command to a device that has not told of it: at the end these are
 * counted as lost. Calls and commands come in any order, millions may lie between them, and one
 * call may have many commands. Numbers grow, so that two bits for each lie side by side.
 */
#include <stdlib.h>

#include "record/decode/decode_internal.h"

#define PAGE_CALLS (ENCODE_CALL_WORDS * 64u)

static uint64_t count_open(const struct encode_call_page *page)
{
	uint64_t count = 0;

	for (size_t i = 0; i < ENCODE_CALL_WORDS; i++)
		count += (uint64_t)__builtin_popcountll(page->called[i] & ~page->done[i]);
	return count;
}

/* The older half: what is open there has been so for millions of calls. */
static void forget_pages(struct ts_encoder *encoder, struct encode_calls *calls)
{
	size_t kept = calls->count / 2, gone = calls->count - kept;

	for (size_t i = 0; i < gone; i++)
		calls->given_up += count_open(&calls->pages[i]);
	memmove(calls->pages, calls->pages + gone, kept * sizeof(*calls->pages));
	calls->count = kept;
	ts_map_clear(&calls->places);
	for (size_t i = 0; i < kept; i++)
		if (ts_map_put(&calls->places, calls->pages[i].number, i))
			encode_no_memory(encoder);
}

static struct encode_call_page *add_page(struct ts_encoder *encoder, struct encode_calls *calls,
					 uint64_t number)
{
	struct encode_call_page *page;

	if (calls->count >= ENCODE_CALL_PAGES)
		forget_pages(encoder, calls);
	if (ts_grow_array((void **)&calls->pages, &calls->capacity, calls->count + 1,
			  sizeof(*calls->pages)) ||
	    ts_map_put(&calls->places, number, calls->count)) {
		encode_no_memory(encoder);
		return NULL;
	}
	page = &calls->pages[calls->count++];
	memset(page, 0, sizeof(*page));
	page->number = number;
	return page;
}

/* NULL: no memory. */
static struct encode_call_page *page_of(struct ts_encoder *encoder, struct encode_calls *calls,
					uint64_t number)
{
	uint64_t place;

	if (!ts_map_get(&calls->places, number, &place))
		return add_page(encoder, calls, number);
	return &calls->pages[place];
}

/* Sets the bit of a correlation in one of the page's halves. */
static bool set_bit(struct ts_encoder *encoder, struct encode_area *area, uint64_t correlation,
		    bool is_done)
{
	struct encode_call_page *page;
	uint32_t bit = correlation % PAGE_CALLS;

	if (!correlation)
		return true;
	page = page_of(encoder, &area->calls, correlation / PAGE_CALLS);
	if (page)
		(is_done ? page->done : page->called)[bit / 64] |= UINT64_C(1) << bit % 64;
	return page != NULL;
}

bool encode_wait_for_call(struct ts_encoder *encoder, struct encode_area *area,
			  uint64_t correlation)
{
	return set_bit(encoder, area, correlation, false);
}

void encode_forget_call(struct ts_encoder *encoder, struct encode_area *area, uint64_t correlation)
{
	set_bit(encoder, area, correlation, true);
}

bool encode_put_calls(struct ts_encoder *encoder, struct encode_area *area,
		      const struct encode_call_page *page)
{
	struct encode_call_page *to = page_of(encoder, &area->calls, page->number);

	for (size_t i = 0; to && i < ENCODE_CALL_WORDS; i++) {
		to->called[i] |= page->called[i];
		to->done[i] |= page->done[i];
	}
	return to != NULL;
}

void encode_tell_calls(struct ts_encoder *encoder, struct encode_area *area)
{
	uint64_t count = area->calls.given_up;

	for (size_t i = 0; i < area->calls.count; i++)
		count += count_open(&area->calls.pages[i]);
	encode_free_calls(area);
	if (count)
		encode_loss_row(
			encoder, area->process, 0, "gpu_op",
			"their call came, but not when they ran: the program ended, or the window closed",
			(int64_t)count, encoder->now_ns, encoder->now_ns);
}

void encode_free_calls(struct encode_area *area)
{
	free(area->calls.pages);
	ts_map_release(&area->calls.places);
	memset(&area->calls, 0, sizeof(area->calls));
}
