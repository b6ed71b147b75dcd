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
#include "analyze/steps.h"
#include "analyze/stragglers.h"

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
	ts_text_printf(&finding, "copies use pageable memory: they are slow and block the host; %s",
		       advisor->words->pin);
	ts_text_printf(&evidence, "%s of %s took %s (%.2f GB/s)",
		       TS_COUNTED(pageable.count, "copy"),
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
	ts_text_printf(&evidence, "%s of %s on average took %s", TS_COUNTED(small.count, "copy"),
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
	const struct ts_work_call *outer = NULL;
	int64_t total = 0;
	uint64_t count = 0;
	int code = TS_OK;

	for (uint32_t i = 0; !code && i < work->call_count; i++) {
		const struct ts_work_call *call = &work->calls[i];

		if (call->kind != TS_API_ALLOC && call->kind != TS_API_FREE)
			continue;
		/* The runtime calls the driver; nsys has a second row for calls with a stack. */
		if (outer && outer->thread == call->thread && call->start < outer->end)
			continue;
		outer = call;
		count++;
		total = ts_ns_add(total, call->end - call->start);
		code = ts_advice_sums_add(&names, call->name, call->end - call->start);
	}
	largest = ts_advice_sums_largest(&names);
	if (!code && largest) {
		ts_text_append_str(
			&finding,
			"device memory is allocated or freed in the recorded window, which blocks the host and may stall the device; use a caching allocator, or warm up first");
		ts_text_printf(&evidence, "%s took %s; mostly %s (%s, %s)",
			       TS_COUNTED(count, "call"), TS_ADVICE_TIME(total),
			       ts_work_text(work, largest->name),
			       TS_COUNTED(largest->count, "time"), TS_ADVICE_TIME(largest->ns));
		code = ts_advise(advisor, total, "critical-path", &finding, &evidence);
	}
	ts_advice_sums_release(&names);
	return code ? no_memory(advisor) : TS_OK;
}

/* ---- steps ---- */

/* Adds the time beyond the median of those steps of a rank that `steps` marks as outliers. */
static int add_excess(const struct ts_advisor *advisor, const struct ts_work_rank *rank,
		      int64_t *excess, uint64_t *slow, struct ts_work_step *worst)
{
	const struct ts_work_step *steps = &advisor->work->steps[rank->first_step];
	TS_AUTO_FREE double *scratch = ts_alloc_array(rank->step_count, sizeof(*scratch));
	struct ts_step_spread spread;

	if (!scratch)
		return no_memory(advisor);
	ts_steps_measure_spread(advisor->work, rank, scratch, &spread);
	for (uint32_t i = 0; i < rank->step_count; i++) {
		int64_t length = ts_ns_between(steps[i].start, steps[i].end);

		if (!ts_step_is_outlier(&spread, &steps[i]))
			continue;
		*excess = ts_ns_add(*excess, length - ts_ns_of(spread.durations.median));
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

		if (rank->step_count && add_excess(advisor, rank, &excess, &slow, &worst))
			return TS_ENOMEM;
	}
	if (!slow)
		return TS_OK;
	ts_text_append_str(
		&finding,
		"some steps take much longer than the others; look at what only they do (checkpoints, "
		"logging, data loading, allocation)");
	ts_text_printf(&evidence,
		       "%s took %s more than the median in total; the longest is step %" PRId64
		       " with %s",
		       TS_COUNTED(slow, "outlier"), TS_ADVICE_TIME(excess), worst.number,
		       TS_ADVICE_TIME(worst.end - worst.start));
	return ts_advise(advisor, excess, "steps", &finding, &evidence);
}

/* ---- ranks ---- */

int ts_advise_stragglers(struct ts_advisor *advisor)
{
	struct ts_text finding = { 0 }, evidence = { 0 };
	struct ts_straggler worst;

	if (advisor->work->rank_count < 2)
		return TS_OK;
	if (ts_stragglers_find_worst(advisor->request, &worst, advisor->err))
		return advisor->err->code;
	if (worst.lost <= 0)
		return TS_OK;
	ts_text_append_str(
		&finding,
		"ranks wait for each other in collectives; balance their work, and look at what the late rank does before them");
	ts_text_printf(&evidence,
		       "%s were lost waiting in %s; rank %" PRId64 " came last in %" PRIu32
		       " of them, which cost the others %s",
		       TS_ADVICE_TIME(worst.lost), TS_COUNTED(worst.collectives, "collective"),
		       advisor->work->ranks[worst.rank].rank, worst.times_last,
		       TS_ADVICE_TIME(worst.lost_by_others));
	return ts_advise(advisor, worst.lost, "stragglers", &finding, &evidence);
}
