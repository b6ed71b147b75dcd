/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `stragglers`: which rank makes the others wait in collectives, in which ones, and since when. A
 * rank arrives when its kernel starts; the others wait for the last one. Arrivals within clock
 * uncertainty count against nobody. docs/analyze.md defines the numbers.
 */
#include "analyze/stragglers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/statistics.h"
#include "base/ns.h"
#include "base/text.h"

#define SHOWN_COLLECTIVES 10
/*
 * A rank is late for good from the point after which it comes last in more than three of four
 * collectives: each such collective counts 1, each other one subtracts this, and the suffix with
 * the largest sum is taken, if the sum is large enough.
 */
#define NOT_LATE 3
#define LEAST_SINCE 6
/* A straggler causes at least this many times its share of all waiting ... */
#define BLAME 1.5
/*
 * ... in at least this many collectives, and at least this fraction of the time of the waiting
 * ranks.
 */
#define LEAST_TIMES 3
#define LEAST_PART 0.001
/*
 * If a collective continues longer than this many times the usual after the last arrival, another
 * rank may have been missing.
 */
#define LONG_AFTER 3

static const struct ts_result_column rank_columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER },
	{ "verdict", "verdict", TS_CELL_TEXT },
	{ "collectives", "collectives", TS_CELL_INTEGER },
	{ "times_last", "last", TS_CELL_INTEGER },
	{ "last_pct", "of these", TS_CELL_PERCENT },
	{ "unclear", "unclear", TS_CELL_INTEGER },
	{ "lost_by_others_us", "others lost", TS_CELL_TIME },
	{ "lost_pct", "share of losses", TS_CELL_PERCENT },
	{ "waited_us", "waited", TS_CELL_TIME },
	{ "median_lateness_us", "median lateness", TS_CELL_TIME },
	{ "max_lateness_us", "at most", TS_CELL_TIME },
	{ "late_since_ns", "late since", TS_CELL_INSTANT },
	{ "late_since_collective", "collective", TS_CELL_INTEGER },
	{ "uncertainty_us", "uncertainty", TS_CELL_TIME },
};

static const struct ts_result_column collective_columns[] = {
	{ "collective", "#", TS_CELL_INTEGER },
	{ "name", "name", TS_CELL_TEXT },
	{ "group", NULL, TS_CELL_TEXT },
	{ "sequence", NULL, TS_CELL_INTEGER },
	{ "matched_by", NULL, TS_CELL_TEXT },
	{ "start_ns", "began", TS_CELL_INSTANT },
	{ "ranks", "ranks", TS_CELL_INTEGER },
	{ "verdict", "verdict", TS_CELL_TEXT },
	{ "last_rank", "last", TS_CELL_INTEGER },
	{ "first_rank", "first", TS_CELL_INTEGER },
	{ "spread_us", "spread", TS_CELL_TIME },
	{ "behind_next_us", "behind the next", TS_CELL_TIME },
	{ "lost_us", "lost", TS_CELL_TIME },
	{ "after_us", "then took", TS_CELL_TIME },
	{ "uncertainty_us", "uncertainty", TS_CELL_TIME },
};

/* Arrivals and waits of one collective. */
struct instance {
	uint32_t match;
	int64_t first, last, next; /* arrivals: the first, the last, the one before it */
	uint32_t first_rank, last_rank;
	int64_t lost;        /* time lost by all ranks that waited for the last one */
	int64_t after;       /* from the last arrival to the first end */
	int64_t uncertainty; /* of the spread; TS_ABSENT: unknown */
	bool clear;          /* the spread exceeds the uncertainty */
};

struct standing {
	uint32_t collectives, times_last, unclear;
	int64_t lost_by_others, waited;
	size_t first_lateness; /* index in all.lateness */
	uint32_t lateness_count;
	uint32_t since;    /* instance; TS_WORK_NONE: never */
	int64_t sum, best; /* suffix sums while searching for `since` */
	double median, maximum;
};

struct all {
	struct ts_analyze_request *request;
	const struct ts_work *work;
	const struct ts_collectives *collectives;
	const struct ts_clock_alignment *clocks;
	struct instance *instances; /* in order of first arrival */
	uint32_t instance_count;
	struct standing *ranks;
	double *lateness;
	int64_t lost;
	uint32_t rank_count; /* ranks that take part in a collective */
	struct ts_error *err;
};

static int no_memory(const struct all *all)
{
	ts_error_set(all->err, TS_ENOMEM, "no memory");
	return TS_ENOMEM;
}

/* ---- each collective ---- */

static const struct ts_work_command *member(const struct all *all, uint32_t match, uint32_t i)
{
	const struct ts_collectives *collectives = all->collectives;

	return &all->work->commands[collectives->members[collectives->matches[match].first + i]];
}

static void see_arrival(struct instance *instance, const struct ts_work_command *command)
{
	if (command->start < instance->first) {
		instance->first = command->start;
		instance->first_rank = command->rank;
	}
	if (command->start > instance->last) {
		instance->next = instance->last;
		instance->last = command->start;
		instance->last_rank = command->rank;
	} else if (command->start > instance->next) {
		instance->next = command->start;
	}
}

/* Clocks that are not aligned count as exact: the user asked for that. */
static int64_t uncertainty_of(const struct all *all, uint32_t rank, uint32_t other)
{
	return all->request->aligned ? ts_clock_alignment_uncertainty(all->clocks, rank, other) : 0;
}

static void measure_instance(const struct all *all, uint32_t match, struct instance *instance)
{
	uint32_t count = all->collectives->matches[match].count;
	int64_t first_end = INT64_MAX;

	*instance = (struct instance){
		.match = match, .first = INT64_MAX, .last = INT64_MIN, .next = INT64_MIN
	};
	for (uint32_t i = 0; i < count; i++) {
		see_arrival(instance, member(all, match, i));
		first_end = TS_MIN(first_end, member(all, match, i)->end);
	}
	for (uint32_t i = 0; i < count; i++)
		instance->lost =
			ts_ns_add(instance->lost, instance->last - member(all, match, i)->start);
	instance->after = first_end - instance->last;
	instance->uncertainty = uncertainty_of(all, instance->last_rank, instance->first_rank);
	instance->clear = instance->uncertainty != TS_ABSENT &&
			  instance->last - instance->first > instance->uncertainty;
}

static int compare_instances(const void *left, const void *right)
{
	const struct instance *a = left, *b = right;

	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	return a->match < b->match ? -1 : a->match > b->match;
}

static int measure_instances(struct all *all)
{
	uint32_t count = all->collectives->match_count;

	all->instances = ts_alloc_array(count, sizeof(*all->instances));
	if (!all->instances)
		return no_memory(all);
	for (uint32_t i = 0; i < count; i++)
		measure_instance(all, i, &all->instances[i]);
	all->instance_count = count;
	if (count)
		ts_sort(all->instances, count, sizeof(*all->instances), compare_instances);
	return TS_OK;
}

/* ---- each rank ---- */

static void count_members(struct all *all)
{
	size_t next = 0;

	for (uint32_t i = 0; i < all->collectives->member_count; i++)
		all->ranks[all->work->commands[all->collectives->members[i]].rank].collectives++;
	for (uint32_t i = 0; i < all->work->rank_count; i++) {
		all->ranks[i].since = TS_WORK_NONE;
		all->ranks[i].first_lateness = next;
		next += all->ranks[i].collectives;
		all->rank_count += all->ranks[i].collectives > 0;
	}
}

static void count_instance(struct all *all, const struct instance *instance)
{
	struct standing *last = &all->ranks[instance->last_rank];
	uint32_t count = all->collectives->matches[instance->match].count;

	for (uint32_t i = 0; i < count; i++) {
		const struct ts_work_command *command = member(all, instance->match, i);
		struct standing *rank = &all->ranks[command->rank];

		all->lateness[rank->first_lateness + rank->lateness_count++] =
			(double)(command->start - instance->first);
		if (instance->clear)
			rank->waited = ts_ns_add(rank->waited, instance->last - command->start);
	}
	if (!instance->clear) {
		last->unclear++;
		return;
	}
	last->times_last++;
	last->lost_by_others = ts_ns_add(last->lost_by_others, instance->lost);
	all->lost = ts_ns_add(all->lost, instance->lost);
}

static bool is_late(const struct instance *instance, uint32_t rank)
{
	return instance->clear && instance->last_rank == rank;
}

/* Scans from the end. */
static void find_since(struct all *all)
{
	for (uint32_t i = all->instance_count; i-- > 0;) {
		const struct instance *instance = &all->instances[i];
		uint32_t count = all->collectives->matches[instance->match].count;

		for (uint32_t k = 0; k < count; k++) {
			uint32_t index = member(all, instance->match, k)->rank;
			struct standing *rank = &all->ranks[index];

			rank->sum += is_late(instance, index) ? 1 : -NOT_LATE;
			if (rank->sum > rank->best) {
				rank->best = rank->sum;
				if (rank->best >= LEAST_SINCE)
					rank->since = i;
			}
		}
	}
}

static void describe_ranks(struct all *all)
{
	for (uint32_t i = 0; i < all->work->rank_count; i++) {
		struct standing *rank = &all->ranks[i];
		struct ts_description description;

		if (!rank->lateness_count)
			continue;
		ts_describe(all->lateness + rank->first_lateness, rank->lateness_count,
			    &description);
		rank->median = description.median;
		rank->maximum = description.maximum;
	}
}

static int rate_ranks(struct all *all)
{
	all->ranks = calloc(TS_MAX(all->work->rank_count, 1), sizeof(*all->ranks));
	all->lateness = ts_alloc_array(all->collectives->member_count, sizeof(*all->lateness));
	if (!all->ranks || !all->lateness)
		return no_memory(all);
	count_members(all);
	for (uint32_t i = 0; i < all->instance_count; i++)
		count_instance(all, &all->instances[i]);
	find_since(all);
	describe_ranks(all);
	return TS_OK;
}

/* ---- tables ---- */

/* From the first arrival to the last. */
static double time_of_all(const struct all *all)
{
	const struct instance *instances = all->instances;

	return (double)(instances[all->instance_count - 1].last - instances[0].first);
}

static bool is_straggler(const struct all *all, const struct standing *rank)
{
	double lost = (double)rank->lost_by_others, ranks = all->rank_count;

	return rank->times_last >= LEAST_TIMES && lost * ranks >= BLAME * (double)all->lost &&
	       lost >= LEAST_PART * time_of_all(all) * (ranks - 1);
}

static const char *verdict(const struct all *all, const struct standing *rank)
{
	if (!rank->collectives)
		return "no collectives";
	if (is_straggler(all, rank))
		return "straggler";
	if (rank->unclear && !rank->times_last)
		return "within uncertainty";
	return "ok";
}

static double part_of(double part, double total)
{
	return total > 0 ? 100 * part / total : 0;
}

static void show_rank(const struct all *all, struct ts_result_table *table, uint32_t index)
{
	const struct standing *rank = &all->ranks[index];
	bool is_late = rank->since != TS_WORK_NONE;

	ts_cell_integer(table, all->work->ranks[index].rank);
	ts_cell_text(table, verdict(all, rank));
	ts_cell_integer(table, rank->collectives);
	ts_cell_integer(table, rank->times_last);
	ts_cell_percent(table, part_of(rank->times_last, rank->collectives));
	ts_cell_integer(table, rank->unclear);
	ts_cell_time(table, rank->lost_by_others);
	ts_cell_percent(table, part_of((double)rank->lost_by_others, (double)all->lost));
	ts_cell_time(table, rank->waited);
	ts_cell_time(table, rank->collectives ? (int64_t)rank->median : TS_ABSENT);
	ts_cell_time(table, rank->collectives ? (int64_t)rank->maximum : TS_ABSENT);
	ts_cell_instant(table, is_late ? all->instances[rank->since].last : TS_ABSENT);
	ts_cell_integer(table, is_late ? (int64_t)rank->since : TS_ABSENT);
	ts_cell_time(table, all->clocks->ranks[index].known
				    ? all->clocks->ranks[index].uncertainty_ns
				    : TS_ABSENT);
}

static const char *instance_verdict(const struct instance *instance)
{
	return instance->clear ? "late" : "within uncertainty";
}

static void show_instance(const struct all *all, struct ts_result_table *table, uint32_t index)
{
	const struct instance *instance = &all->instances[index];
	const struct ts_collective_match *match = &all->collectives->matches[instance->match];
	const char *name = ts_work_text(all->work, match->name);

	ts_cell_integer(table, index);
	/* Cut off the kernel's arguments. */
	ts_cell_format(table, "%.*s", (int)strcspn(name, "("), name);
	ts_cell_text(table, match->group ? ts_work_text(all->work, match->group) : NULL);
	ts_cell_integer(table, match->sequence);
	ts_cell_text(table, match->by_order ? "order" : "number");
	ts_cell_instant(table, instance->first);
	ts_cell_integer(table, match->count);
	ts_cell_text(table, instance_verdict(instance));
	ts_cell_integer(table, all->work->ranks[instance->last_rank].rank);
	ts_cell_integer(table, all->work->ranks[instance->first_rank].rank);
	ts_cell_time(table, instance->last - instance->first);
	ts_cell_time(table, instance->last - instance->next);
	ts_cell_time(table, instance->lost);
	ts_cell_time(table, instance->after);
	ts_cell_time(table, instance->uncertainty);
}

struct order {
	int64_t lost;
	uint32_t instance;
};

static int compare_losses(const void *left, const void *right)
{
	const struct order *a = left, *b = right;

	if (a->lost != b->lost)
		return a->lost > b->lost ? -1 : 1;
	return a->instance < b->instance ? -1 : a->instance > b->instance;
}

/* The largest loss first. */
static int show_instances(const struct all *all, struct ts_result_table *table)
{
	TS_AUTO_FREE struct order *order = ts_alloc_array(all->instance_count, sizeof(*order));

	if (!order)
		return no_memory(all);
	for (uint32_t i = 0; i < all->instance_count; i++)
		order[i] = (struct order){ all->instances[i].lost, i };
	if (all->instance_count)
		ts_sort(order, all->instance_count, sizeof(*order), compare_losses);
	for (uint32_t i = 0; i < all->instance_count; i++)
		show_instance(all, table, order[i].instance);
	return TS_OK;
}

/* ---- missing ranks ---- */

static bool lacks_members(const struct all *all)
{
	for (uint32_t i = 0; i < all->work->rank_count; i++)
		if (all->work->ranks[i].world_size > (int64_t)all->work->rank_count)
			return true;
	return false;
}

/* Counts collectives that continued long after the last known rank had arrived. */
static int note_absent(const struct all *all, struct ts_result *result)
{
	TS_AUTO_FREE double *after = NULL;
	double usual, lost = 0;
	uint32_t count = 0;
	struct ts_description description;

	if (!lacks_members(all) || all->instance_count < 4)
		return TS_OK;
	after = ts_alloc_array(all->instance_count, sizeof(*after));
	if (!after)
		return no_memory(all);
	for (uint32_t i = 0; i < all->instance_count; i++)
		after[i] = (double)all->instances[i].after;
	ts_describe(after, all->instance_count, &description);
	usual = TS_MAX(description.q25, 0);
	for (uint32_t i = 0; i < all->instance_count; i++)
		if (after[i] > LONG_AFTER * usual) {
			count++;
			lost += after[i] - usual;
		}
	if (count)
		ts_result_note(
			result,
			"%" PRIu32
			" of %s ran for more than %d times the usual %.3f ms after the last of these ranks arrived, %.3f ms in total: ranks that are not in these traces may have arrived later",
			count, TS_COUNTED(all->instance_count, "collective"), LONG_AFTER,
			usual / 1e6, lost / 1e6);
	return TS_OK;
}

static void note_collectives(const struct all *all, struct ts_result *result)
{
	uint32_t unclear = 0;

	for (uint32_t i = 0; i < all->instance_count; i++)
		unclear += !all->instances[i].clear;
	if (all->collectives->unmatched)
		ts_result_note(result, "left out: %s without a counterpart on another rank",
			       TS_COUNTED(all->collectives->unmatched, "collective command"));
	if (unclear)
		ts_result_note(
			result,
			"in %" PRIu32
			" of %s the ranks arrived within the uncertainty of their clocks: none counts as late",
			unclear, TS_COUNTED(all->instance_count, "collective"));
	if (!all->request->aligned && all->instance_count)
		ts_result_note(result, "clocks were not aligned: their offset counts as lateness");
}

static void note_nothing(const struct all *all, struct ts_result *result)
{
	if (all->work->rank_count < 2)
		ts_result_note(
			result,
			"stragglers compares ranks: give the traces of several (there is one)");
	else
		ts_result_note(result,
			       "no collective was found on more than one rank: nothing to compare");
}

static int show(const struct all *all, struct ts_result *result)
{
	int64_t top = all->request->options.top;
	struct ts_result_table *ranks =
		ts_result_table(result, "ranks", rank_columns, TS_ARRAY_SIZE(rank_columns));
	struct ts_result_table *collectives = ts_result_table(
		result, "collectives", collective_columns, TS_ARRAY_SIZE(collective_columns));
	int rc;

	ranks->details = "uncertainty_us late_since_collective max_lateness_us unclear waited_us";
	collectives->details = "uncertainty_us behind_next_us start_ns first_rank";
	collectives->shown_rows = top > 0 ? (size_t)top : SHOWN_COLLECTIVES;
	for (uint32_t i = 0; i < all->work->rank_count && all->instance_count; i++)
		show_rank(all, ranks, i);
	rc = show_instances(all, collectives);
	if (rc)
		return rc;
	if (!all->instance_count)
		note_nothing(all, result);
	note_collectives(all, result);
	return note_absent(all, result);
}

static int measure(struct all *all)
{
	int rc;

	all->clocks = ts_analyze_clocks(all->request, all->err);
	if (!all->clocks)
		return all->err && all->err->code ? all->err->code : TS_ENOMEM;
	all->collectives = all->request->collectives;
	rc = measure_instances(all);
	return rc ? rc : rate_ranks(all);
}

static void release(struct all *all)
{
	free(all->instances);
	free(all->ranks);
	free(all->lateness);
}

static int run(struct ts_analyze_request *request, struct ts_result *result, struct ts_error *err)
{
	struct all all = { .request = request, .work = request->work, .err = err };
	int rc = measure(&all);

	if (!rc)
		rc = show(&all, result);
	release(&all);
	return rc;
}

int ts_stragglers_find_worst(struct ts_analyze_request *request, struct ts_straggler *ret_worst,
			     struct ts_error *err)
{
	struct all all = { .request = request, .work = request->work, .err = err };
	int rc = measure(&all);

	if (!rc) {
		*ret_worst = (struct ts_straggler){ .lost = all.lost,
						    .collectives = all.instance_count };
		for (uint32_t i = 0; i < all.work->rank_count; i++) {
			if (all.ranks[i].lost_by_others <= ret_worst->lost_by_others)
				continue;
			ret_worst->rank = i;
			ret_worst->times_last = all.ranks[i].times_last;
			ret_worst->lost_by_others = all.ranks[i].lost_by_others;
		}
	}
	release(&all);
	return rc;
}

const struct ts_analysis ts_analysis_stragglers = {
	.name = "stragglers",
	.summary = "which rank makes the others wait, where, and since when",
	.example = "rank*.json.gz stragglers",
	.load_flags = TS_WORK_DETAILS,
	.flags = TS_ANALYSIS_ALIGNED,
	.run = run,
};
