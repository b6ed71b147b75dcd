/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aligns the collectives of two ranks without sequence numbers (docs/state.md, "Clocks"): searches
 * a passage of one rank in the other by operations and by the pauses between their ends, which
 * clock offsets do not change; then walks both sequences in step, skipping what one of them lacks.
 */
#include "state/collectives/collectives_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define NONE UINT32_MAX
#define SAMPLES 128 /* number of pauses that a decision is based on */
#define PASSAGE 16  /* operations of a passage */
#define PASSAGES 16 /* number of passages searched; passages with gaps are not found */
#define RECENT 8    /* matches whose median gives the current clock distance */
#define LEAST_SLACK_NS 2000.0
#define MOST_DRIFT 3e-4 /* of two clocks, beyond what recent matches show */

/*
 * Pauses of the same operation differ by less than this fraction of the difference between
 * neighbouring pauses, or of their own length if all are equally long.
 */
#define ALIKE_TO_OTHERS 0.5
#define ALIKE_TO_LENGTH 0.05

struct sequences {
	const struct ts_collective_item *a, *b;
	size_t n, m;
	double usual_pause; /* median between two ends of a */
	double alike;       /* larger pause differences mean different operations */
	size_t passage;     /* pauses of a passage */
};

/* A starting point for walking both sequences: a[i] is b[j]. */
struct anchor {
	size_t i, j;
	double score; /* typical pause difference, in ns */
};

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

static double quantile(double *values, size_t count, double part)
{
	ts_sort(values, count, sizeof(*values), compare_doubles);
	return values[(size_t)((double)(count - 1) * part)];
}

static double pause_before(const struct ts_collective_item *items, size_t i)
{
	return (double)(items[i].end - items[i - 1].end);
}

static double apart(const struct sequences *s, size_t i, size_t j)
{
	return (double)(s->a[i].end - s->b[j].end);
}

/* Typical pause length, and typical difference between consecutive pauses. */
static void look_at_pauses(struct sequences *s)
{
	double pauses[SAMPLES], unrelated[SAMPLES];
	size_t step = 1 + s->n / SAMPLES, found = 0;

	for (size_t i = 1; i + 1 < s->n && found < SAMPLES; i += step) {
		pauses[found] = pause_before(s->a, i);
		unrelated[found] = fabs(pauses[found] - pause_before(s->a, i + 1));
		found++;
	}
	s->alike = LEAST_SLACK_NS;
	if (!found)
		return;
	s->usual_pause = quantile(pauses, found, 0.5);
	s->alike = TS_MAX(s->alike, ALIKE_TO_OTHERS * quantile(unrelated, found, 0.5));
	s->alike = TS_MAX(s->alike, ALIKE_TO_LENGTH * s->usual_pause);
}

/* Index of the item whose end is nearest to an instant; items are nearly sorted by end. */
static size_t nearest(const struct ts_collective_item *items, size_t count, int64_t time)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (items[middle].end < time)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == count || (low && time - items[low - 1].end < items[low].end - time))
		low--;
	return low;
}

/* ---- passages ---- */

/* Total pause difference of two passages; stops once it reaches `most`. */
static double difference(const struct sequences *s, size_t i, size_t j, double most)
{
	double cap = TS_MAX(s->usual_pause, 1), sum = 0;

	for (size_t k = 0; k < s->passage && sum < most; k++) {
		double pause = fabs(pause_before(s->a, i + k) - pause_before(s->b, j + k));

		sum += s->a[i + k].token == s->b[j + k].token ? TS_MIN(pause, cap) : cap;
	}
	return sum;
}

/* Median of a passage by distance of ends: represents those that agree. */
static size_t most_usual(const struct sequences *s, const struct anchor *anchor)
{
	double sorted[PASSAGE] = { 0 }, middle;
	size_t best = 0;

	for (size_t k = 0; k < s->passage; k++)
		sorted[k] = apart(s, anchor->i + k, anchor->j + k);
	middle = quantile(sorted, s->passage, 0.5);
	for (size_t k = 0; k < s->passage; k++)
		if (fabs(apart(s, anchor->i + k, anchor->j + k) - middle) <
		    fabs(apart(s, anchor->i + best, anchor->j + best) - middle))
			best = k;
	return best;
}

/*
 * Scores the passage that starts at an anchor by its median pause difference. Moves the anchor to
 * the most typical position.
 */
static void evaluate(const struct sequences *s, struct anchor *anchor)
{
	double differences[PASSAGE] = { 0 };
	size_t usual;

	for (size_t k = 0; k < s->passage; k++) {
		size_t i = anchor->i + k, j = anchor->j + k;

		differences[k] = s->a[i].token == s->b[j].token
					 ? fabs(pause_before(s->a, i) - pause_before(s->b, j))
					 : INFINITY;
	}
	anchor->score = quantile(differences, s->passage, 0.5);
	usual = most_usual(s, anchor);
	anchor->i += usual;
	anchor->j += usual;
}

static size_t passage_start(const struct sequences *s, size_t k)
{
	return 1 + k * (s->n - 1 - s->passage) / (PASSAGES - 1);
}

/* Searches all of b for the passage of a that starts at i. */
static bool find_passage(const struct sequences *s, size_t i, struct anchor *ret_anchor)
{
	double best = INFINITY;

	for (size_t j = 1; j + s->passage <= s->m && best > 0; j++) {
		double sum = difference(s, i, j, best);

		if (sum < best) {
			best = sum;
			*ret_anchor = (struct anchor){ .i = i, .j = j };
		}
	}
	if (isinf(best))
		return false;
	evaluate(s, ret_anchor);
	return ret_anchor->score <= s->alike;
}

/* The same passage at shifted positions: keeps the best match. */
static bool try_shift(const struct sequences *s, int64_t shift, struct anchor *ret_anchor)
{
	bool found = false;

	for (size_t k = 0; k < PASSAGES; k++) {
		int64_t i = (int64_t)passage_start(s, k), j = i + shift;
		struct anchor anchor = { .i = (size_t)i, .j = (size_t)j };

		if (j < 1 || j + (int64_t)s->passage > (int64_t)s->m)
			continue;
		evaluate(s, &anchor);
		if (anchor.score > s->alike || (found && anchor.score >= ret_anchor->score))
			continue;
		*ret_anchor = anchor;
		found = true;
	}
	return found;
}

/* ---- step by step ---- */

struct walk {
	const struct sequences *s;
	uint32_t *partner;
	double slack; /* tolerance for partners, drift excluded */
	int64_t i, j;
	int64_t direction; /* 1 or -1 */
	double recent[RECENT];
	size_t recent_count;
	double expected; /* expected distance between the ends of partners */
	int64_t last_end;
};

static bool inside(const struct walk *w, int64_t i, int64_t j)
{
	return i >= 0 && j >= 0 && i < (int64_t)w->s->n && j < (int64_t)w->s->m;
}

static double slack(const struct walk *w)
{
	return w->slack + MOST_DRIFT * fabs((double)(w->s->a[w->i].end - w->last_end));
}

static bool fits(const struct walk *w, int64_t i, int64_t j)
{
	return inside(w, i, j) && w->s->a[i].token == w->s->b[j].token &&
	       fabs(apart(w->s, (size_t)i, (size_t)j) - w->expected) <= slack(w);
}

static void accept(struct walk *w, bool is_usual)
{
	double sorted[RECENT];
	size_t count;

	w->partner[w->i] = (uint32_t)w->j;
	if (!is_usual)
		return;
	w->recent[w->recent_count++ % RECENT] = apart(w->s, (size_t)w->i, (size_t)w->j);
	count = TS_MIN(w->recent_count, RECENT);
	memcpy(sorted, w->recent, count * sizeof(*sorted));
	w->expected = quantile(sorted, count, 0.5);
	w->last_end = w->s->a[w->i].end;
}

/* Steps forward from `at` to where `items` matches an instant; 0: nowhere. */
static int64_t steps_to(const struct walk *w, bool is_in_a, double time)
{
	const struct ts_collective_item *items = is_in_a ? w->s->a : w->s->b;
	size_t count = is_in_a ? w->s->n : w->s->m;
	int64_t at = is_in_a ? w->i : w->j;
	int64_t nearest_index;

	if (fabs(time) > 0x1p62)
		return 0;
	nearest_index = (int64_t)nearest(items, count, (int64_t)time);
	for (int64_t k = 0; k < 5; k++) {
		/* 0 1 -1 2 -2 */
		int64_t candidate = nearest_index + (k % 2 ? (k + 1) / 2 : -(k / 2));
		int64_t steps = (candidate - at) * w->direction;

		if (steps > 0 && (is_in_a ? fits(w, candidate, w->j) : fits(w, w->i, candidate)))
			return steps;
	}
	return 0;
}

/* One sequence lacks some items: skips them. False: nothing matches. */
static bool step_over(struct walk *w)
{
	int64_t over_a = steps_to(w, true, (double)w->s->b[w->j].end + w->expected);
	int64_t over_b = steps_to(w, false, (double)w->s->a[w->i].end - w->expected);

	if (!over_a && !over_b)
		return false;
	if (over_a && (!over_b || over_a <= over_b))
		w->i += over_a * w->direction;
	else
		w->j += over_b * w->direction;
	return true;
}

/* Equal operations at an unusual distance, with no other candidate for either. */
static bool is_outlier(const struct walk *w)
{
	double distance = fabs(apart(w->s, (size_t)w->i, (size_t)w->j) - w->expected);

	return w->s->a[w->i].token == w->s->b[w->j].token &&
	       (distance <= 2 * w->s->usual_pause ||
		fits(w, w->i + w->direction, w->j + w->direction));
}

static void walk(struct walk *w)
{
	while (inside(w, w->i, w->j)) {
		if (fits(w, w->i, w->j))
			accept(w, true);
		else if (step_over(w))
			continue;
		else if (is_outlier(w))
			accept(w, false);
		w->i += w->direction;
		w->j += w->direction;
	}
}

/* Fills in all partners. Returns how many items have one. */
static size_t walk_from(const struct sequences *s, const struct anchor *anchor, uint32_t *partner)
{
	double slack = TS_MAX(8 * anchor->score, s->usual_pause / 20);
	struct walk forward = { .s = s,
				.partner = partner,
				.slack = TS_MAX(TS_MIN(slack, s->usual_pause / 4), LEAST_SLACK_NS),
				.i = (int64_t)anchor->i,
				.j = (int64_t)anchor->j,
				.direction = 1 };
	struct walk backward;
	size_t matched = 0;

	for (size_t i = 0; i < s->n; i++)
		partner[i] = NONE;
	forward.expected = apart(s, anchor->i, anchor->j);
	forward.last_end = s->a[anchor->i].end;
	backward = forward;
	backward.direction = -1;
	walk(&backward);
	walk(&forward);
	for (size_t i = 0; i < s->n; i++)
		matched += partner[i] != NONE;
	return matched;
}

/* ---- is it so? ---- */

/* Quality of a match. */
struct worth {
	size_t matched;
	size_t compared; /* number of pauses compared */
	double differ;   /* median difference between pauses of partners */
	double most;     /* difference of the worse ones */
};

/* Compares pauses between neighbouring matches; short pauses carry no information. */
static struct worth evaluate_matches(const struct sequences *s, const uint32_t *partner,
				     size_t matched)
{
	double differ[SAMPLES];
	struct worth worth = { .matched = matched };
	size_t found = 0, step = 1 + s->n / (2 * SAMPLES);

	for (size_t i = 1; i < s->n && found < SAMPLES; i += step) {
		double pause = pause_before(s->a, i);

		if (partner[i] == NONE || partner[i - 1] == NONE || pause < s->usual_pause)
			continue;
		differ[found++] =
			fabs(pause - (double)(s->b[partner[i]].end - s->b[partner[i - 1]].end));
	}
	worth.compared = found;
	if (found) {
		worth.differ = quantile(differ, found, 0.5);
		worth.most = quantile(differ, found, 0.9);
	}
	return worth;
}

static bool is_plausible(const struct sequences *s, const struct worth *worth)
{
	if (worth->matched * 4 < TS_MIN(s->n, s->m))
		return false;
	/* Too few to decide by time: they must all be equal. */
	if (worth->compared < 3)
		return worth->matched == s->n && worth->matched == s->m;
	return worth->differ <= s->alike;
}

/* Lower is better: matching pauses, few items without a partner. */
static double cost_of(const struct sequences *s, const struct worth *worth)
{
	double part = (double)worth->matched / (double)TS_MIN(s->n, s->m);

	return (worth->most + LEAST_SLACK_NS) / (part * part);
}

/* ---- the best way ---- */

struct search {
	struct sequences s;
	uint32_t *best, *scratch;
	size_t matched; /* 0: nothing plausible yet */
	double cost;
};

static void try_anchor(struct search *search, const struct anchor *anchor)
{
	const struct sequences *s = &search->s;
	struct worth worth;
	double cost;

	if (search->matched && search->best[anchor->i] == anchor->j)
		return;
	worth = evaluate_matches(s, search->scratch, walk_from(s, anchor, search->scratch));
	cost = cost_of(s, &worth);
	/* Candidates tried earlier are more likely. */
	if (!is_plausible(s, &worth) || (search->matched && cost >= 0.7 * search->cost))
		return;
	search->matched = worth.matched;
	search->cost = cost;
	memcpy(search->best, search->scratch, s->n * sizeof(*search->best));
}

/* Without pauses there is nothing to search for. */
static bool is_single(const struct sequences *s)
{
	return s->n < 2 || s->m < 2;
}

/*
 * Likely candidates first: clocks that agree, recordings that start or end together; then all of b.
 */
static void try_all(struct search *search)
{
	const struct sequences *s = &search->s;
	size_t middle = s->n / 2;
	int64_t shifts[] = { (int64_t)nearest(s->b, s->m, s->a[middle].end) - (int64_t)middle, 0,
			     (int64_t)s->m - (int64_t)s->n };
	struct anchor anchor = { 0 };

	if (is_single(s)) {
		try_anchor(search, &anchor);
		return;
	}
	for (size_t i = 0; i < TS_ARRAY_SIZE(shifts); i++)
		if (try_shift(s, shifts[i], &anchor))
			try_anchor(search, &anchor);
	for (size_t k = 0; k < PASSAGES; k++)
		if (find_passage(s, passage_start(s, k), &anchor))
			try_anchor(search, &anchor);
}

int ts_collective_align(const struct ts_collective_item *a, size_t n,
			const struct ts_collective_item *b, size_t m, uint32_t *ret_partner,
			size_t *ret_matched, struct ts_error *err)
{
	TS_AUTO_FREE uint32_t *scratch = ts_alloc_array(n, sizeof(*scratch));
	struct search search = { .s = { .a = a, .b = b, .n = n, .m = m },
				 .best = ret_partner,
				 .scratch = scratch };

	*ret_matched = 0;
	if (!scratch)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	if (!n || !m)
		return TS_OK;
	look_at_pauses(&search.s);
	search.s.passage = TS_MIN(PASSAGE, TS_MIN(n, m) / 2);
	try_all(&search);
	*ret_matched = search.matched;
	return TS_OK;
}
