/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a difference of pages comes from, found by further runs: the first kernel whose output
 * varies, the two commands that race, and the bytes that differ (docs/cuda-replay.md, section 5).
 */
#include "replay/replay_cause.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "replay/check/check.h"
#include "replay/plan/plan.h"
#include "replay/replay_internal.h"
#include "replay/stream/stream_internal.h"

/* Runs to see something again that does not happen in each run. */
#define MOST_TRIES 4u

/* The pages that a run delivered, by capture: `each` by position, then all of the end. */
struct lists {
	struct ts_replay_page_list *items;
	uint32_t count;
};

struct search {
	struct ts_replay *replay;
	struct ts_replay_orders *orders;
	struct ts_replay_cause *cause; /* the checker's */
	unsigned int first_run, runs;
	struct ts_replay_times *times;
	struct ts_replay_capture *each; /* of all commands that change memory, and of the end */
	uint32_t each_count;
	uint32_t *recorded; /* the planned order, one at a time */
	uint32_t *order;    /* scratch */
	/* Of the run that goes on. */
	struct lists *lists;
	void **content;
	uint64_t content_bytes;
};

/* ---- one further run ---- */

static int on_pages(void *context, uint32_t capture, const struct ts_replay_page *pages,
		    uint64_t count, struct ts_error *err)
{
	struct search *search = context;

	if (!search->lists || capture >= search->lists->count)
		return ts_error_set(err, TS_EINVAL, "the target delivered unknown pages");
	return ts_replay_page_list_copy(&search->lists->items[capture], search->replay, pages,
					count, err);
}

static int on_content(void *context, uint32_t capture, const void *data, struct ts_error *err)
{
	struct search *search = context;

	if (capture || !search->content)
		return ts_error_set(err, TS_EINVAL, "the target delivered an unknown capture");
	free(*search->content);
	*search->content = malloc(search->content_bytes + 1);
	if (!*search->content)
		return ts_replay_no_memory(err);
	memcpy(*search->content, data, search->content_bytes);
	return TS_OK;
}

static int run(struct search *search, const uint32_t *order,
	       const struct ts_replay_capture *captures, uint32_t count, struct ts_error *err)
{
	struct ts_replay *replay = search->replay;
	const struct ts_replay_capture *saved = replay->captures;
	uint32_t saved_count = replay->capture_count;
	struct ts_replay_outcome outcome = { .times = search->times,
					     .content = on_content,
					     .pages = on_pages,
					     .context = search,
					     .order = order };
	int rc = ts_replay_progress(replay, "run", search->runs, search->runs + 1, err);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < replay->plan.count; i++)
		search->times[i] = (struct ts_replay_times){ TS_ABSENT, TS_ABSENT, TS_ABSENT,
							     TS_ABSENT, TS_ABSENT, TS_ABSENT };
	replay->captures = captures;
	replay->capture_count = count;
	rc = replay->options.target->run(replay->session, search->first_run + search->runs++,
					 &outcome, err);
	replay->captures = saved;
	replay->capture_count = saved_count;
	return rc;
}

/* ---- pages ---- */

static void release_lists(struct lists *lists)
{
	for (uint32_t i = 0; i < lists->count; i++)
		ts_replay_page_list_release(&lists->items[i]);
	free(lists->items);
	*lists = (struct lists){ 0 };
}

static int run_lists(struct search *search, const uint32_t *order,
		     const struct ts_replay_capture *captures, uint32_t count, struct lists *lists,
		     struct ts_error *err)
{
	int rc;

	release_lists(lists);
	lists->items = calloc(count, sizeof(*lists->items));
	if (!lists->items)
		return ts_replay_no_memory(err);
	lists->count = count;
	search->lists = lists;
	rc = run(search, order, captures, count, err);
	search->lists = NULL;
	return rc;
}

/* After each command, and at the end. */
static int run_each(struct search *search, const uint32_t *order, struct lists *lists,
		    struct ts_error *err)
{
	return run_lists(search, order, search->each, search->each_count, lists, err);
}

static int run_final(struct search *search, const uint32_t *order, struct ts_replay_page_list *list,
		     struct ts_error *err)
{
	struct lists lists = { 0 };
	int rc = run_lists(search, order, &search->each[search->each_count - 1], 1, &lists, err);

	ts_replay_page_list_release(list);
	if (!rc)
		*list = lists.items[0];
	if (!rc)
		lists.count = 0;
	release_lists(&lists);
	return rc;
}

static int make_each(struct search *search)
{
	const struct ts_replay_plan *plan = &search->replay->plan;

	search->each = calloc(plan->count + 1u, sizeof(*search->each));
	if (!search->each)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < plan->count; i++) {
		uint32_t index = plan->order[i];

		if (plan->kept[index] == TS_REPLAY_ORDER ||
		    !ts_replay_changes_memory(&search->replay->stream->commands[index]))
			continue;
		search->each[search->each_count++] = (struct ts_replay_capture){
			.position = i,
			.range.memory = TS_REPLAY_NONE,
			.why = "each",
			.is_pages = true,
		};
	}
	search->each[search->each_count++] = (struct ts_replay_capture){
		.position = plan->count,
		.range.memory = TS_REPLAY_NONE,
		.why = "final",
		.is_pages = true,
	};
	return TS_OK;
}

/* ---- contents ---- */

static int run_content(struct search *search, const uint32_t *order, uint32_t position,
		       const struct ts_replay_page *page, void **content, struct ts_error *err)
{
	uint64_t bytes = search->replay->stream->objects[page->memory].bytes;
	struct ts_replay_capture capture = { .position = position, .why = "fetch" };
	int rc;

	capture.range.memory = page->memory;
	capture.range.offset = page->offset;
	capture.range.bytes = TS_MIN(TS_REPLAY_PAGE, bytes - TS_MIN(bytes, page->offset));
	search->content = content;
	search->content_bytes = capture.range.bytes;
	rc = run(search, order, &capture, 1, err);
	search->content = NULL;
	if (!rc && !*content)
		rc = ts_error_set(err, TS_EIO, "the target did not deliver all captures");
	return rc;
}

/* Two contents of the first differing page that differ, if some of the next runs have them. */
static int fetch_two(struct search *search, const uint32_t *order, uint32_t position,
		     struct ts_error *err)
{
	struct ts_replay_cause *cause = search->cause;
	const struct ts_replay_page *page = &cause->difference.first;
	int rc = run_content(search, order, position, page, &cause->one, err);

	for (uint32_t i = 0; !rc && i < MOST_TRIES; i++) {
		rc = run_content(search, order, position, page, &cause->another, err);
		if (!rc && memcmp(cause->one, cause->another, search->content_bytes) != 0)
			return TS_OK;
	}
	free(TS_STEAL(cause->another));
	return rc;
}

/* ---- a command that varies ---- */

static bool compare_each(struct search *search, const struct lists *a, const struct lists *b,
			 const uint32_t *order, struct ts_replay_page_difference *ret_difference,
			 uint32_t *ret_position)
{
	TS_AUTO_FREE uint32_t *captures =
		ts_alloc_array(search->replay->plan.count + 1u, sizeof(*captures));

	if (!captures)
		return false;
	memset(captures, 0xff, search->replay->plan.count * sizeof(*captures));
	for (uint32_t i = 0; i + 1 < search->each_count; i++)
		captures[search->each[i].position] = i;
	for (uint32_t i = 0; i < search->replay->plan.count; i++) {
		uint32_t capture = captures[order[i]];

		if (capture == TS_REPLAY_NONE ||
		    !ts_replay_page_list_compare(&a->items[capture], &b->items[capture],
						 ret_difference))
			continue;
		*ret_position = order[i];
		return true;
	}
	return false;
}

/* Runs this order until two runs differ. *ret_base: the pages of the first of them. */
static int find_command(struct search *search, const uint32_t *order, uint32_t tries,
			struct lists *ret_base, struct ts_error *err)
{
	struct ts_replay_cause *cause = search->cause;
	struct lists other = { 0 };
	int rc = run_each(search, order, ret_base, err);

	for (uint32_t i = 0; !rc && i < tries && cause->position == TS_REPLAY_NONE; i++) {
		rc = run_each(search, order, &other, err);
		if (!rc)
			compare_each(search, ret_base, &other, order, &cause->difference,
				     &cause->position);
	}
	release_lists(&other);
	if (!rc && cause->position != TS_REPLAY_NONE)
		rc = fetch_two(search, order, cause->position, err);
	return rc;
}

/* ---- a race ---- */

static int make_order(struct search *search, const uint32_t *order, uint64_t swaps,
		      uint32_t pair[2], struct ts_error *err)
{
	uint32_t count = search->replay->plan.count;

	if (!swaps) {
		memcpy(search->order, search->recorded, count * sizeof(*search->order));
		return TS_OK;
	}
	return ts_replay_swaps_make(order, count, swaps, search->order, pair)
		       ? ts_replay_no_memory(err)
		       : TS_OK;
}

static int fetch_both(struct search *search, const uint32_t *order, uint64_t swaps,
		      struct ts_error *err)
{
	struct ts_replay_cause *cause = search->cause;
	uint32_t end = search->replay->plan.count, pair[2];
	int rc = make_order(search, order, swaps - 1, pair, err);

	if (!rc)
		rc = run_content(search, search->order, end, &cause->difference.first, &cause->one,
				 err);
	if (!rc)
		rc = make_order(search, order, swaps, pair, err);
	if (!rc)
		rc = run_content(search, search->order, end, &cause->difference.first,
				 &cause->another, err);
	if (rc || !memcmp(cause->one, cause->another, search->content_bytes)) {
		free(TS_STEAL(cause->one));
		free(TS_STEAL(cause->another));
		return rc;
	}
	cause->position = pair[0];
	cause->other = pair[1];
	return TS_OK;
}

/*
 * The planned order gives `base`, `order` does not: so on the way from one to the other, swapping
 * neighbours, there are two orders that differ in two commands only, and in the result.
 */
static int find_race(struct search *search, const uint32_t *order,
		     const struct ts_replay_page_list *base, struct ts_error *err)
{
	uint64_t equal = 0, differs = ts_replay_swaps_count(order, search->replay->plan.count);
	struct ts_replay_page_list list = { 0 };
	uint32_t pair[2];
	int rc = differs == UINT64_MAX ? ts_replay_no_memory(err) : TS_OK;

	while (!rc && differs - equal > 1) {
		uint64_t middle = equal + (differs - equal) / 2;

		rc = make_order(search, order, middle, pair, err);
		if (!rc)
			rc = run_final(search, search->order, &list, err);
		if (rc)
			break;
		if (ts_replay_page_list_compare(base, &list, &search->cause->difference))
			differs = middle;
		else
			equal = middle;
	}
	ts_replay_page_list_release(&list);
	return rc ? rc : fetch_both(search, order, differs, err);
}

/* ---- which of them ---- */

static void set_note(struct search *search, const char *note)
{
	snprintf(search->cause->note, sizeof(search->cause->note), "%s", note);
}

/* Other orders, after runs of the planned one that were equal to `base`. */
static int try_orders(struct search *search, const struct ts_replay_page_list *base,
		      struct ts_error *err)
{
	uint32_t count = search->replay->plan.count;
	TS_AUTO_FREE uint32_t *order = ts_alloc_array(count + 1u, sizeof(*order));
	struct ts_replay_page_list list = { 0 };
	int rc = order ? TS_OK : ts_replay_no_memory(err);

	for (uint32_t i = 0; !rc && i < MOST_TRIES; i++) {
		ts_replay_orders_draw(search->orders, i, order);
		rc = run_final(search, order, &list, err);
		if (rc || !ts_replay_page_list_compare(base, &list, &search->cause->difference))
			continue;
		rc = find_race(search, order, base, err);
		break;
	}
	ts_replay_page_list_release(&list);
	return rc;
}

/* Memory at the end varied, while streams ran concurrently. */
static int explain_final(struct search *search, struct ts_error *err)
{
	struct ts_replay_page_difference difference = search->cause->difference;
	struct lists base = { 0 };
	int rc = find_command(search, search->recorded, MOST_TRIES - 1, &base, err);

	if (!rc && search->cause->position == TS_REPLAY_NONE &&
	    ts_replay_orders_has_others(search->orders))
		rc = try_orders(search, &base.items[base.count - 1], err);
	release_lists(&base);
	if (rc || search->cause->position != TS_REPLAY_NONE)
		return rc;
	set_note(search, ts_replay_orders_has_others(search->orders)
				 ? "runs of one command at a time do not differ: a race between "
				   "streams, or it is rare"
				 : "further runs did not differ: it is rare; try a greater "
				   "'--repeat' with '--check each'");
	search->cause->difference = difference;
	return fetch_two(search, NULL, search->replay->plan.count, err);
}

/* A run in another order differed at the end: again, and not in the planned order? */
static int explain_order(struct search *search, const uint32_t *order, struct ts_error *err)
{
	const struct ts_replay_checker *checker = search->replay->checker;
	const struct ts_replay_page_list *first = &checker->first_pages[checker->final_pages];
	struct ts_replay_page_difference difference = search->cause->difference;
	struct lists base = { 0 }, planned = { 0 };
	int rc = find_command(search, order, 1, &base, err);

	if (!rc && search->cause->position == TS_REPLAY_NONE)
		rc = find_command(search, search->recorded, 1, &planned, err);
	if (rc || search->cause->position != TS_REPLAY_NONE)
		goto out;
	/* The first run may have run concurrently; this one did not. */
	first = &planned.items[planned.count - 1];
	if (ts_replay_page_list_compare(first, &base.items[base.count - 1],
					&search->cause->difference))
		rc = find_race(search, order, first, err);
	if (!rc && search->cause->position == TS_REPLAY_NONE) {
		search->cause->difference = difference;
		set_note(search, "seen in one run, in another order, and not again");
	}
out:
	release_lists(&base);
	release_lists(&planned);
	return rc;
}

static int explain(struct search *search, const uint32_t *order, struct ts_error *err)
{
	const struct ts_replay_checker *checker = search->replay->checker;
	uint32_t position = checker->varies == TS_REPLAY_NONE
				    ? TS_REPLAY_NONE
				    : checker->captures[checker->varies].position;

	search->cause->difference = checker->page_variation;
	if (order)
		return explain_order(search, order, err);
	if (position >= search->replay->plan.count)
		return explain_final(search, err);
	search->cause->position = position;
	return fetch_two(search, search->recorded, position, err);
}

/* ---- all of it ---- */

static int prepare(struct search *search)
{
	uint32_t count = search->replay->plan.count;

	search->times = ts_alloc_array(count + 1u, sizeof(*search->times));
	search->recorded = ts_alloc_array(count + 1u, sizeof(*search->recorded));
	search->order = ts_alloc_array(count + 1u, sizeof(*search->order));
	for (uint32_t i = 0; search->recorded && i < count; i++)
		search->recorded[i] = i;
	return search->times && search->recorded && search->order ? make_each(search) : TS_ENOMEM;
}

static void release(struct search *search)
{
	free(search->times);
	free(search->recorded);
	free(search->order);
	free(search->each);
}

int ts_replay_find_cause(struct ts_replay *replay, struct ts_replay_orders *orders,
			 const uint32_t *order, struct ts_error *err)
{
	struct search search = { .replay = replay,
				 .orders = orders,
				 .cause = &replay->checker->cause,
				 .first_run = replay->options.repeat };
	int rc = prepare(&search) ? ts_replay_no_memory(err) : explain(&search, order, err);

	search.cause->runs = search.runs;
	release(&search);
	return rc;
}

int ts_replay_fetch_different(struct ts_replay *replay, struct ts_error *err)
{
	struct ts_replay_checker *checker = replay->checker;
	struct search search = { .replay = replay,
				 .cause = &checker->cause,
				 .first_run = replay->options.repeat };
	uint32_t position = checker->captures[checker->differs].position;
	bool is_end = position >= replay->plan.count;
	int rc = ts_replay_pages_recorded(checker, &checker->cause.one, err);

	if (rc || !checker->cause.one)
		return rc;
	rc = prepare(&search)
		     ? ts_replay_no_memory(err)
		     : run_content(&search, is_end ? NULL : search.recorded, position,
				   &checker->page_difference.first, &search.cause->another, err);
	search.cause->runs = search.runs;
	release(&search);
	return rc;
}
