/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of memory: hashes of all pages when a window closes, and with =checked of those that a
 * command changed (docs/cuda-replay.md, 4.4). With --keep-contents, also contents.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/stream/cuda_pages.h"

static struct page_list last; /* hashes as of the check before, or when the window opened */
static bool has_each;         /* a check `each` was made in this window */
static uint64_t contents_left;

static int compare_pages(const struct capture_page *a, const struct capture_page *b)
{
	if (a->object != b->object)
		return a->object < b->object ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static int compare(const void *a, const void *b)
{
	return compare_pages(a, b);
}

static void append_pages(const struct capture_page *pages, size_t count, uint64_t sequence,
			 const char *why)
{
	uint64_t *pairs = malloc(count * 2 * sizeof(*pairs));
	struct ts_replay_command row = capture_row(TS_COMMAND_CHECK);
	char details[96];

	if (!pairs) {
		capture_fail("no memory for hashes of pages");
		return;
	}
	for (size_t i = 0; i < count; i++) {
		pairs[2 * i] = pages[i].offset;
		pairs[2 * i + 1] = pages[i].hash;
	}
	snprintf(details, sizeof(details), "{\"why\":\"%s\",\"pages\":%zu}", why, count);
	row.sequence = sequence;
	row.object = pages[0].object;
	row.blob = capture_blob(pairs, count * 2 * sizeof(*pairs));
	row.details = details;
	capture_command(&row);
	free(pairs);
}

static void append_content(const struct capture_page *page, uint64_t sequence, const char *why)
{
	struct ts_replay_command row = capture_row(TS_COMMAND_CHECK);
	uint64_t bytes = page->range.bytes;
	unsigned char *content;
	char details[96];
	void *stream;

	if (bytes > contents_left)
		return;
	content = malloc(bytes);
	if (!content || !capture_context_push(page->context)) {
		free(content);
		return;
	}
	stream = pages_stream(page->context);
	if (stream && !cu.MemcpyDtoHAsync(content, page->range.address, bytes, stream) &&
	    !cu.StreamSynchronize(stream)) {
		contents_left -= bytes;
		snprintf(details, sizeof(details), "{\"hash\":\"%016" PRIx64 "\",\"why\":\"%s\"}",
			 ts_replay_hash(content, bytes), why);
		row.sequence = sequence;
		row.object = page->object;
		row.offset = (int64_t)page->offset;
		row.bytes = (int64_t)bytes;
		row.blob = capture_blob(content, bytes);
		row.details = details;
		capture_command(&row);
	}
	capture_context_pop();
	free(content);
}

/* Appends rows for those pages, by object; `pages` are sorted. */
static void append_all(const struct capture_page *pages, size_t count, uint64_t sequence,
		       const char *why)
{
	for (size_t first = 0, end; first < count; first = end) {
		for (end = first; end < count && pages[end].object == pages[first].object; end++)
			;
		append_pages(pages + first, end - first, sequence, why);
	}
}

/* Those of `now` that are not in `last`, or have another hash; both are sorted. */
static size_t changed_pages(const struct page_list *now, struct capture_page *ret_changed)
{
	size_t count = 0, old = 0;

	for (size_t i = 0; i < now->count; i++) {
		const struct capture_page *page = &now->items[i];

		while (old < last.count && compare_pages(&last.items[old], page) < 0)
			old++;
		if (old == last.count || compare_pages(&last.items[old], page) ||
		    last.items[old].hash != page->hash ||
		    last.items[old].range.bytes != page->range.bytes)
			ret_changed[count++] = *page;
	}
	return count;
}

/* Takes the hashes now, appends rows, and keeps the hashes for the next time. */
static void check(uint64_t sequence, const char *why, bool has_all)
{
	struct page_list now;
	struct capture_page *changed;
	size_t count;

	if (!pages_read(&now))
		return;
	qsort(now.items, now.count, sizeof(*now.items), compare);
	changed = calloc(now.count + 1, sizeof(*changed));
	if (changed) {
		count = changed_pages(&now, changed);
		if (has_all)
			append_all(now.items, now.count, sequence, why);
		else
			append_all(changed, count, sequence, why);
		for (size_t i = 0; i < count && contents_left; i++)
			append_content(&changed[i], sequence, why);
	} else {
		capture_fail("no memory for hashes of pages");
	}
	free(changed);
	pages_release(&last);
	last = now;
}

void capture_checks_begin(struct page_list *opened)
{
	pages_release(&last);
	last = *opened;
	*opened = (struct page_list){ 0 };
	qsort(last.items, last.count, sizeof(*last.items), compare);
	has_each = false;
	contents_left = ts_replay_settings()->keep_contents;
}

void capture_checks_end(void)
{
	pages_release(&last);
}

void capture_check_each(uint64_t sequence)
{
	/* A wait would break a capture of any thread: the next check has what this lacks. */
	if (!capture_is_checked() || capture_any_capturing())
		return;
	if (cu.CtxSynchronize()) {
		capture_fail("the device failed in command %" PRIu64, sequence);
		return;
	}
	check(sequence, "each", !has_each);
	has_each = true;
}

void capture_final_checks(void)
{
	check(capture_last_sequence(), "final", true);
}
