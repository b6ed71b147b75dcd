/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures that are hashes of pages (docs/cuda-replay.md, 4.3 and 5): what a run delivers is kept,
 * and compared with the first run and the recording when the run has ended.
 */
#include <string.h>

#include "base/local/hash.h"
#include "base/memory.h"
#include "replay/check/check.h"
#include "replay/stream/stream_internal.h"

/* ---- lists ---- */

void ts_replay_page_list_release(struct ts_replay_page_list *list)
{
	free(list->items);
	*list = (struct ts_replay_page_list){ 0 };
}

static int compare_places(const struct ts_replay_page *a, const struct ts_replay_page *b)
{
	return a->memory != b->memory ? TS_COMPARE(a->memory, b->memory)
				      : TS_COMPARE(a->offset, b->offset);
}

int ts_replay_page_list_copy(struct ts_replay_page_list *list, const struct ts_replay *replay,
			     const struct ts_replay_page *pages, uint64_t count,
			     struct ts_error *err)
{
	for (uint64_t i = 0; i < count; i++)
		if (pages[i].memory >= replay->stream->object_count ||
		    (i && compare_places(&pages[i - 1], &pages[i]) >= 0))
			return ts_error_set(err, TS_EINVAL, "the target delivered unsorted pages");
	ts_replay_page_list_release(list);
	if (!count)
		return TS_OK;
	list->items = ts_alloc_array(count, sizeof(*list->items));
	if (!list->items)
		return ts_replay_no_memory(err);
	memcpy(list->items, pages, count * sizeof(*pages));
	list->count = count;
	return TS_OK;
}

static void note(struct ts_replay_page_difference *difference, const struct ts_replay_page *page)
{
	if (!difference->pages++)
		difference->first = *page;
}

bool ts_replay_page_list_compare(const struct ts_replay_page_list *a,
				 const struct ts_replay_page_list *b,
				 struct ts_replay_page_difference *ret_difference)
{
	struct ts_replay_page_difference difference = { 0 };
	uint64_t i = 0, j = 0;

	while (i < a->count || j < b->count) {
		int order = i == a->count   ? 1
			    : j == b->count ? -1
					    : compare_places(&a->items[i], &b->items[j]);

		if (order < 0)
			note(&difference, &a->items[i++]);
		else if (order > 0)
			note(&difference, &b->items[j++]);
		else if (a->items[i++].hash != b->items[j++].hash)
			note(&difference, &a->items[i - 1]);
	}
	if (difference.pages)
		*ret_difference = difference;
	return difference.pages > 0;
}

uint64_t ts_replay_page_list_hash(const struct ts_replay_page_list *list)
{
	return ts_hash64(list->items, list->count * sizeof(*list->items));
}

/* ---- pages in the recording ---- */

/* What is known of a page: after the captures so far, in this run and in the recording. */
struct page_state {
	struct ts_replay_page page; /* hash: of this run */
	uint64_t recorded;
	bool is_known, is_recorded;
};

struct comparing {
	struct ts_replay_checker *checker;
	struct ts_pairmap indices; /* (memory, offset) -> index of `states`, plus 1 */
	struct page_state *states;
	size_t count, capacity;
	uint32_t *changed; /* indices of states since the last recorded check; may repeat */
	size_t changed_count, changed_capacity;
	uint32_t command;  /* commands before it are known */
	bool *is_captured; /* by command */
};

static struct page_state *find(struct comparing *comparing, uint32_t memory, uint64_t offset)
{
	uint64_t *index = ts_pairmap_insert(&comparing->indices, memory, offset, NULL);

	if (!index)
		return NULL;
	if (!*index) {
		if (ts_grow_array((void **)&comparing->states, &comparing->capacity,
				  comparing->count + 1, sizeof(*comparing->states)))
			return NULL;
		comparing->states[comparing->count++] = (struct page_state){
			.page = { .memory = memory, .offset = offset },
		};
		*index = comparing->count;
	}
	return &comparing->states[*index - 1];
}

static int change(struct comparing *comparing, const struct page_state *state)
{
	if (ts_grow_array((void **)&comparing->changed, &comparing->changed_capacity,
			  comparing->changed_count + 1, sizeof(*comparing->changed)))
		return TS_ENOMEM;
	comparing->changed[comparing->changed_count++] = (uint32_t)(state - comparing->states);
	return TS_OK;
}

static int add_replayed(struct comparing *comparing, const struct ts_replay_page_list *list)
{
	for (uint64_t i = 0; i < list->count; i++) {
		struct page_state *state =
			find(comparing, list->items[i].memory, list->items[i].offset);

		if (!state || change(comparing, state))
			return TS_ENOMEM;
		state->page.hash = list->items[i].hash;
		state->is_known = true;
	}
	return TS_OK;
}

/* The pages of a recorded check: pairs of offset and hash. */
static int add_recorded(struct comparing *comparing, const struct ts_replay_check *check,
			struct ts_error *err)
{
	TS_AUTO_FREE uint64_t *pairs = NULL;
	int rc;

	if (!check->page_count)
		return TS_OK;
	if (check->blob.bytes / 16 != check->page_count || check->blob.bytes % 16)
		return ts_error_set(err, TS_EFORMAT,
				    "a check has another number of pages than its list");
	pairs = malloc(check->blob.bytes);
	if (!pairs)
		return ts_replay_no_memory(err);
	rc = ts_replay_blob_read(comparing->checker->replay->reader, &check->blob, pairs, err);
	for (uint64_t i = 0; !rc && i < check->page_count; i++) {
		struct page_state *state = find(comparing, check->range.memory, pairs[2 * i]);

		if (!state || change(comparing, state))
			return ts_replay_no_memory(err);
		state->recorded = pairs[2 * i + 1];
		state->is_recorded = true;
	}
	return rc;
}

/* Nothing is known of memory that was unmapped. */
static void forget(struct comparing *comparing, const struct ts_replay_command_info *command)
{
	const struct ts_replay_stream *stream = comparing->checker->replay->stream;
	uint64_t end = command->offset + command->bytes, index;

	if (command->kind != TS_COMMAND_FREE || command->object == TS_REPLAY_NONE ||
	    !comparing->states || !(stream->objects[command->object].flags & TS_REPLAY_SPARSE))
		return;
	for (uint64_t at = command->offset - command->offset % TS_REPLAY_PAGE; at < end;
	     at += TS_REPLAY_PAGE)
		if (ts_pairmap_get(&comparing->indices, command->object, at, &index) && index)
			comparing->states[index - 1].is_known =
				comparing->states[index - 1].is_recorded = false;
}

/* Compares the pages that have changed; the first difference is kept. */
static void compare_changed(struct comparing *comparing, uint32_t capture)
{
	struct ts_replay_checker *checker = comparing->checker;
	struct ts_replay_page_difference difference = { .capture = capture };

	for (size_t i = 0; i < comparing->changed_count; i++) {
		struct page_state *state = &comparing->states[comparing->changed[i]];

		if (!state->is_known || !state->is_recorded || state->recorded == state->page.hash)
			continue;
		if (!difference.pages++ || compare_places(&state->page, &difference.first) < 0)
			difference.first = state->page;
		/* Once; a page that comes several times is counted once. */
		state->is_recorded = false;
	}
	comparing->changed_count = 0;
	if (!difference.pages)
		return;
	checker->different++;
	if (checker->differs == TS_REPLAY_NONE) {
		checker->differs = capture;
		checker->page_difference = difference;
	}
}

static int add_checks(struct comparing *comparing, const struct ts_replay_command_info *command,
		      struct ts_error *err)
{
	int rc = TS_OK;

	for (uint32_t i = 0; !rc && i < command->check_count; i++)
		if (command->checks[i].has_pages)
			rc = add_recorded(comparing, &command->checks[i], err);
	return rc;
}

/* What was unmapped, and recorded after commands that do not run here, since the last capture. */
static int catch_up(struct comparing *comparing, uint32_t command, struct ts_error *err)
{
	const struct ts_replay_stream *stream = comparing->checker->replay->stream;
	int rc = TS_OK;

	for (; !rc && comparing->command <= command; comparing->command++) {
		forget(comparing, &stream->commands[comparing->command]);
		if (!comparing->is_captured[comparing->command])
			rc = add_checks(comparing, &stream->commands[comparing->command], err);
	}
	return rc;
}

/* `each`: after this capture. */
static int compare_each(struct comparing *comparing, uint32_t capture, struct ts_error *err)
{
	struct ts_replay_checker *checker = comparing->checker;
	const struct ts_replay *replay = checker->replay;
	uint32_t position = checker->captures[capture].position;
	int rc = catch_up(comparing, replay->plan.order[position], err);

	if (rc)
		return rc;
	if (add_replayed(comparing, &checker->now_pages[capture]))
		return ts_replay_no_memory(err);
	if (!checker->expected[capture].is_recorded)
		return TS_OK;
	rc = add_checks(comparing, &replay->stream->commands[replay->plan.order[position]], err);
	if (!rc)
		compare_changed(comparing, capture);
	return rc;
}

/* All pages that the recording has at its end; one that is missing here differs. */
static int compare_final(struct comparing *comparing, uint32_t capture, struct ts_error *err)
{
	struct ts_replay_checker *checker = comparing->checker;
	const struct ts_replay_stream *stream = checker->replay->stream;
	int rc = TS_OK;

	ts_pairmap_clear(&comparing->indices);
	comparing->count = comparing->changed_count = 0;
	for (uint32_t i = 0; !rc && i < stream->final_count; i++)
		if (stream->final_checks[i].has_pages)
			rc = add_recorded(comparing, &stream->final_checks[i], err);
	for (size_t i = 0; i < comparing->count; i++)
		comparing->states[i].is_known = true;
	/* A hash that is not delivered is 0: no page has that, but by chance. */
	if (!rc && add_replayed(comparing, &checker->now_pages[capture]))
		rc = ts_replay_no_memory(err);
	if (!rc)
		compare_changed(comparing, capture);
	return rc;
}

static int compare_recorded(struct ts_replay_checker *checker, struct ts_error *err)
{
	struct comparing comparing = { .checker = checker };
	const struct ts_replay *replay = checker->replay;
	int rc = TS_OK;

	comparing.is_captured = calloc(replay->stream->command_count + 1u, 1);
	if (!comparing.is_captured)
		return ts_replay_no_memory(err);
	for (uint32_t i = 0; i < checker->count; i++)
		if (checker->captures[i].is_pages &&
		    checker->captures[i].position < replay->plan.count)
			comparing.is_captured[replay->plan.order[checker->captures[i].position]] =
				true;
	for (uint32_t i = 0; !rc && i < checker->count; i++) {
		const struct ts_replay_capture *capture = &checker->captures[i];

		if (capture->is_pages && capture->position < replay->plan.count)
			rc = compare_each(&comparing, i, err);
		else if (capture->is_pages && checker->expected[i].is_recorded)
			rc = compare_final(&comparing, i, err);
	}
	ts_pairmap_release(&comparing.indices);
	free(comparing.states);
	free(comparing.changed);
	free(comparing.is_captured);
	return rc;
}

/* ---- runs ---- */

static void swap(struct ts_replay_page_list *a, struct ts_replay_page_list *b)
{
	struct ts_replay_page_list list = *a;

	*a = *b;
	*b = list;
}

/* The first command whose pages differ from those of the first run. */
static void compare_runs(struct ts_replay_checker *checker)
{
	struct ts_replay_page_difference difference;

	for (uint32_t i = 0; i < checker->count; i++) {
		if (!ts_replay_page_list_compare(&checker->first_pages[i], &checker->now_pages[i],
						 &difference))
			continue;
		checker->varying_runs++;
		if (checker->varies != TS_REPLAY_NONE && checker->varies <= i)
			return;
		difference.capture = checker->varies = i;
		checker->page_variation = difference;
		return;
	}
}

static void compare_reordered(struct ts_replay_checker *checker)
{
	uint32_t final = checker->final_pages;

	checker->reordered_differs = final != TS_REPLAY_NONE &&
				     ts_replay_page_list_compare(&checker->first_pages[final],
								 &checker->now_pages[final],
								 &checker->page_variation);
}

int ts_replay_checker_pages(void *context, uint32_t capture, const struct ts_replay_page *pages,
			    uint64_t count, struct ts_error *err)
{
	struct ts_replay_checker *checker = context;

	if (capture >= checker->count || checker->seen[capture] ||
	    !checker->captures[capture].is_pages)
		return ts_error_set(err, TS_EINVAL, "the target delivered unknown pages");
	checker->seen[capture] = true;
	return ts_replay_page_list_copy(&checker->now_pages[capture], checker->replay, pages, count,
					err);
}

int ts_replay_pages_end(struct ts_replay_checker *checker, struct ts_error *err)
{
	int rc = TS_OK;

	switch (checker->phase) {
	case TS_REPLAY_PHASE_FIRST:
		rc = compare_recorded(checker, err);
		for (size_t i = 0; !rc && i < checker->count; i++) {
			if (!checker->captures[i].is_pages)
				continue;
			swap(&checker->first_pages[i], &checker->now_pages[i]);
			checker->first[i] = ts_replay_page_list_hash(&checker->first_pages[i]);
		}
		break;
	case TS_REPLAY_PHASE_AGAIN:
		compare_runs(checker);
		break;
	case TS_REPLAY_PHASE_REORDERED:
		compare_reordered(checker);
		break;
	case TS_REPLAY_PHASE_REFERENCE:
	case TS_REPLAY_PHASE_FETCH:
		break;
	}
	return rc;
}

/* ---- contents of the recording ---- */

static int read_page(const struct ts_replay_checker *checker, const struct ts_replay_check *check,
		     const struct ts_replay_page *page, uint64_t bytes, void **ret_content,
		     struct ts_error *err)
{
	TS_AUTO_FREE char *all = malloc(check->blob.bytes + 1);
	void *content = malloc(bytes + 1);
	int rc = all && content ? TS_OK : ts_replay_no_memory(err);

	if (!rc)
		rc = ts_replay_blob_read(checker->replay->reader, &check->blob, all, err);
	if (rc || !all || !content) {
		free(content);
		return rc;
	}
	memcpy(content, all + (page->offset - check->range.offset), bytes);
	*ret_content = content;
	return TS_OK;
}

int ts_replay_pages_recorded(const struct ts_replay_checker *checker, void **ret_content,
			     struct ts_error *err)
{
	const struct ts_replay_stream *stream = checker->replay->stream;
	uint32_t position = checker->captures[checker->differs].position;
	bool is_end = position >= checker->replay->plan.count;
	const struct ts_replay_command_info *command =
		is_end ? NULL : &stream->commands[checker->replay->plan.order[position]];
	const struct ts_replay_check *checks = is_end ? stream->final_checks : command->checks;
	uint32_t count = is_end ? stream->final_count : command->check_count;
	const struct ts_replay_page *page = &checker->page_difference.first;
	uint64_t bytes = stream->objects[page->memory].bytes;

	bytes = TS_MIN(TS_REPLAY_PAGE, bytes - TS_MIN(bytes, page->offset));
	for (uint32_t i = 0; i < count; i++) {
		const struct ts_replay_check *check = &checks[i];

		if (!check->has_pages && check->blob.id && check->range.memory == page->memory &&
		    check->range.offset <= page->offset &&
		    check->blob.bytes >= page->offset - check->range.offset + bytes)
			return read_page(checker, check, page, bytes, ret_content, err);
	}
	return TS_OK;
}
