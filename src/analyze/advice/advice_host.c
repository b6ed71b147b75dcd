/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of what the program does around device work: copies, allocations, uneven steps, uneven
 * ranks.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/advice/advice.h"
#include "analyze/statistics.h"

static int no_memory(const struct ts_advisor *advisor)
{
	return ts_error_set(advisor->err, TS_ENOMEM, "no memory");
}

/* ---- copies ---- */

struct copies {
	uint64_t count;
	int64_t bytes, ns;
};

static void add_copy(struct copies *copies, const struct ts_work_command *command)
{
	copies->count++;
	copies->bytes = ts_ns_add(copies->bytes, command->bytes == TS_ABSENT ? 0 : command->bytes);
	copies->ns = ts_ns_add(copies->ns, command->end - command->start);
}

/* GB/s; 0: nothing was copied. */
static double bandwidth(const struct copies *copies)
{
	return copies->ns > 0 ? (double)copies->bytes / (double)copies->ns : 0;
}

static bool crosses_bus(const struct ts_work_command *command)
{
	return command->kind == TS_GPU_OP_COPY && (command->copy_kind == TS_COPY_HOST_TO_DEVICE ||
						   command->copy_kind == TS_COPY_DEVICE_TO_HOST);
}

/*
 * The rate of pinned copies in the same trace is the evidence. Without any, assume twice as fast.
 */
int ts_advise_pageable_copies(struct ts_advisor *advisor)
{
	const struct ts_work *work = advisor->work;
	struct copies pageable = { 0 }, pinned = { 0 };
	struct ts_text finding = { 0 }, evidence = { 0 };
	double share = 0.5;

	for (uint32_t i = 0; i < work->command_count; i++) {
		const struct ts_work_command *command = &work->commands[i];

		if (crosses_bus(command))
			add_copy(strstr(ts_work_text(work, command->name), "Pageable") ? &pageable
										       : &pinned,
				 command);
	}
	if (!pageable.count)
		return TS_OK;
	ts_text_append_str(
		&finding,
		"copies use pageable memory: they are slow and block the host; use pin_memory=True and non_blocking=True");
	ts_text_printf(&evidence, "%s of %s took %s (%.2f GB/s)",
		       TS_ADVICE_COUNT(pageable.count, "copy"),
		       ts_format_bytes((char[TS_FORMAT_BYTES]){ 0 }, TS_FORMAT_BYTES,
				       (uint64_t)TS_MAX(pageable.bytes, 0)),
		       TS_ADVICE_TIME(pageable.ns), bandwidth(&pageable));
	if (bandwidth(&pinned) > bandwidth(&pageable)) {
		share = 1 - bandwidth(&pageable) / bandwidth(&pinned);
		ts_text_printf(&evidence, "; pinned copies in this trace ran at %.2f GB/s",
			       bandwidth(&pinned));
	} else {
		ts_text_append_str(&evidence, "; assumes half of the time is saved");
	}
	return ts_advise(advisor, (int64_t)((double)pageable.ns * share), "bandwidth", &finding,
			 &evidence);
}

#define SMALL_BYTES 65536
#define MANY_COPIES 100

int ts_advise_small_copies(struct ts_advisor *advisor)
{
	const struct ts_work *work = advisor->work;
	struct copies small = { 0 };
	struct ts_text finding = { 0 }, evidence = { 0 };

	for (uint32_t i = 0; i < work->command_count; i++) {
		const struct ts_work_command *command = &work->commands[i];

		if (crosses_bus(command) && command->bytes != TS_ABSENT &&
		    command->bytes < SMALL_BYTES)
			add_copy(&small, command);
	}
	if (small.count < MANY_COPIES)
		return TS_OK;
	ts_text_append_str(&finding,
			   "many small copies cross the bus; batch them into a few large ones");
	ts_text_printf(&evidence, "%s of %s on average took %s",
		       TS_ADVICE_COUNT(small.count, "copy"),
		       ts_format_bytes((char[TS_FORMAT_BYTES]){ 0 }, TS_FORMAT_BYTES,
				       (uint64_t)TS_MAX(small.bytes, 0) / small.count),
		       TS_ADVICE_TIME(small.ns));
	return ts_advise(advisor, small.ns - small.ns / (int64_t)small.count, "bandwidth", &finding,
			 &evidence);
}

/* ---- memory ---- */

int ts_advise_allocations(struct ts_advisor *advisor)
{
	const struct ts_work *work = advisor->work;
	const struct ts_advice_sum *largest;
	struct ts_advice_sums names = { 0 };
	struct ts_text finding = { 0 }, evidence = { 0 };
	int64_t total = 0;
	uint64_t count = 0;
	int code = TS_OK;

	for (uint32_t i = 0; !code && i < work->call_count; i++) {
		const struct ts_work_call *call = &work->calls[i];

		if (call->kind != TS_API_ALLOC && call->kind != TS_API_FREE)
			continue;
		count++;
		total = ts_ns_add(total, call->end - call->start);
		code = ts_advice_sums_add(&names, call->name, call->end - call->start);
	}
	largest = ts_advice_sums_largest(&names);
	if (!code && largest) {
		ts_text_append_str(
			&finding,
			"device memory is allocated or freed in the recorded window, which blocks the host and may stall the device; use a caching allocator, or warm up first");
		ts_text_printf(
			&evidence, "%s took %s; mostly %s (%s, %s)", TS_ADVICE_COUNT(count, "call"),
			TS_ADVICE_TIME(total), ts_work_text(work, largest->name),
			TS_ADVICE_COUNT(largest->count, "time"), TS_ADVICE_TIME(largest->ns));
		code = ts_advise(advisor, total, "critical-path", &finding, &evidence);
	}
	ts_advice_sums_release(&names);
	return code ? no_memory(advisor) : TS_OK;
}

/* ---- steps ---- */

#define FEWEST_STEPS 5

static int compare_lengths(const void *a_, const void *b_)
{
	const int64_t *a = a_, *b = b_;

	return *a < *b ? -1 : *a > *b;
}

/* Adds the time beyond the median of those steps of a rank that exceed 1.2 times the median. */
static int add_excess(const struct ts_advisor *advisor, const struct ts_work_rank *rank,
		      int64_t *excess, uint64_t *slow, struct ts_work_step *worst)
{
	const struct ts_work_step *steps = &advisor->work->steps[rank->first_step];
	TS_AUTO_FREE int64_t *lengths = ts_alloc_array(rank->step_count, sizeof(*lengths));
	int64_t median;

	if (!lengths)
		return no_memory(advisor);
	for (uint32_t i = 0; i < rank->step_count; i++)
		lengths[i] = steps[i].end - steps[i].start;
	ts_sort(lengths, rank->step_count, sizeof(*lengths), compare_lengths);
	median = lengths[rank->step_count / 2];
	for (uint32_t i = 0; i < rank->step_count; i++) {
		int64_t length = steps[i].end - steps[i].start;

		if (length <= median + median / 5)
			continue;
		*excess = ts_ns_add(*excess, length - median);
		++*slow;
		if (length > worst->end - worst->start)
			*worst = steps[i];
	}
	return TS_OK;
}

int ts_advise_slow_steps(struct ts_advisor *advisor)
{
	struct ts_text finding = { 0 }, evidence = { 0 };
	struct ts_work_step worst = { 0 };
	int64_t excess = 0;
	uint64_t slow = 0;

	for (uint32_t i = 0; i < advisor->work->rank_count; i++) {
		const struct ts_work_rank *rank = &advisor->work->ranks[i];

		if (rank->step_count >= FEWEST_STEPS &&
		    add_excess(advisor, rank, &excess, &slow, &worst))
			return TS_ENOMEM;
	}
	if (!slow)
		return TS_OK;
	ts_text_append_str(
		&finding,
		"some steps take much longer than the others; look at what only they do (checkpoints, "
		"logging, data loading, allocation)");
	ts_text_printf(
		&evidence,
		"%s took over 1.2 times the median, %s more in total; the longest is step %" PRId64
		" with %s",
		TS_ADVICE_COUNT(slow, "step"), TS_ADVICE_TIME(excess), worst.number,
		TS_ADVICE_TIME(worst.end - worst.start));
	return ts_advise(advisor, excess, "steps", &finding, &evidence);
}

/* ---- ranks ---- */

struct lateness {
	int64_t lost_ns; /* total wait of the other ranks */
	uint64_t times;
};

/* Adds one collective: all ranks waited for the last one. */
static void add_lateness(const struct ts_work *work, const uint32_t *members, uint32_t count,
			 struct lateness *late, int64_t *lost)
{
	const struct ts_work_command *last = &work->commands[members[0]];

	for (uint32_t i = 1; i < count; i++)
		if (work->commands[members[i]].start > last->start)
			last = &work->commands[members[i]];
	for (uint32_t i = 0; i < count; i++) {
		const struct ts_work_command *member = &work->commands[members[i]];
		int64_t waited = TS_MIN(last->start, member->end) - member->start;
		int64_t unsure = TS_MAX(work->ranks[member->rank].uncertainty_ns, 0) +
				 TS_MAX(work->ranks[last->rank].uncertainty_ns, 0);

		if (waited <= unsure)
			continue;
		late[last->rank].lost_ns = ts_ns_add(late[last->rank].lost_ns, waited);
		*lost = ts_ns_add(*lost, waited);
	}
	late[last->rank].times++;
}

static int advise_stragglers(struct ts_advisor *advisor, const struct lateness *late, int64_t lost,
			     uint32_t collectives)
{
	struct ts_text finding = { 0 }, evidence = { 0 };
	uint32_t worst = 0;

	for (uint32_t i = 1; i < advisor->work->rank_count; i++)
		if (late[i].lost_ns > late[worst].lost_ns)
			worst = i;
	ts_text_append_str(
		&finding,
		"ranks wait for each other in collectives; balance their work, and look at what the late rank does before them");
	ts_text_printf(&evidence,
		       "%s were lost waiting in %s; rank %" PRId64 " came last in %" PRIu64
		       " of them, which cost the others %s",
		       TS_ADVICE_TIME(lost), TS_ADVICE_COUNT(collectives, "collective"),
		       advisor->work->ranks[worst].rank, late[worst].times,
		       TS_ADVICE_TIME(late[worst].lost_ns));
	return ts_advise(advisor, lost, "stragglers", &finding, &evidence);
}

int ts_advise_stragglers(struct ts_advisor *advisor)
{
	const struct ts_collectives *collectives;
	TS_AUTO_FREE struct lateness *late = NULL;
	int64_t lost = 0;

	if (advisor->work->rank_count < 2)
		return TS_OK;
	collectives = ts_analyze_collectives(advisor->request, advisor->err);
	if (!collectives)
		return advisor->err->code;
	late = calloc(advisor->work->rank_count, sizeof(*late));
	if (!late)
		return no_memory(advisor);
	for (uint32_t i = 0; i < collectives->match_count; i++) {
		const struct ts_collective_match *match = &collectives->matches[i];

		add_lateness(advisor->work, &collectives->members[match->first], match->count, late,
			     &lost);
	}
	return lost > 0 ? advise_stragglers(advisor, late, lost, collectives->match_count) : TS_OK;
}
