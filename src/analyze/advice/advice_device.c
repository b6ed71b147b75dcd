/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of device work: communication that nothing overlaps, kernels to fuse, precision, the
 * kernel that the critical path depends on.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/advice/advice.h"
#include "analyze/busy.h"
#include "analyze/statistics.h"

/* ---- exposed communication ---- */

struct exposure {
	int64_t communication_ns, exposed_ns;
	int64_t coverable_ns; /* of exposed_ns: what computation without communication could hide */
	struct ts_advice_sums names;
};

static int add_exposure(const struct ts_advisor *advisor, uint32_t rank, struct exposure *exposure)
{
	const struct ts_work_rank *of = &advisor->work->ranks[rank];
	struct ts_busy busy = { 0 };
	int64_t hidden, exposed;
	int code = ts_busy_init(&busy, advisor->work, rank, advisor->err);

	if (code)
		return code;
	hidden = ts_spans_shared(busy.spans[TS_CLASS_COMMUNICATION],
				 busy.span_count[TS_CLASS_COMMUNICATION],
				 busy.spans[TS_CLASS_COMPUTE], busy.span_count[TS_CLASS_COMPUTE]);
	exposure->communication_ns =
		ts_ns_add(exposure->communication_ns, busy.class_ns[TS_CLASS_COMMUNICATION]);
	exposed = busy.class_ns[TS_CLASS_COMMUNICATION] - hidden;
	exposure->exposed_ns = ts_ns_add(exposure->exposed_ns, exposed);
	exposure->coverable_ns = ts_ns_add(
		exposure->coverable_ns, TS_MIN(exposed, busy.class_ns[TS_CLASS_COMPUTE] - hidden));
	ts_busy_release(&busy);
	for (uint32_t i = of->first_command; i < of->first_command + of->command_count; i++) {
		const struct ts_work_command *command = &advisor->work->commands[i];

		if (command->class == TS_CLASS_COMMUNICATION &&
		    ts_advice_sums_add(&exposure->names, command->name,
				       command->end - command->start))
			return ts_error_set(advisor->err, TS_ENOMEM, "no memory");
	}
	return TS_OK;
}

static int advise_exposure(struct ts_advisor *advisor, const struct exposure *exposure)
{
	const struct ts_advice_sum *largest = ts_advice_sums_largest(&exposure->names);
	struct ts_text finding = { 0 }, evidence = { 0 };
	int64_t ranks = TS_MAX(advisor->work->rank_count, 1u);

	ts_text_append_str(
		&finding,
		"communication runs while nothing computes; overlap it (buckets, prefetch, a separate stream), or send less (gradient accumulation, lower precision)");
	ts_text_printf(&evidence, "%s of %s of communication%s did not overlap computation",
		       TS_ADVICE_TIME(exposure->exposed_ns),
		       TS_ADVICE_TIME(exposure->communication_ns),
		       ranks > 1 ? " on all ranks" : "");
	/* Like the saving, the mean over ranks. */
	if (exposure->coverable_ns < exposure->exposed_ns)
		ts_text_printf(
			&evidence,
			"; overlapping saves at most %s%s, since no more computation is left to hide it",
			TS_ADVICE_TIME(exposure->coverable_ns / ranks), ranks > 1 ? " a rank" : "");
	if (largest) {
		ts_text_append_str(&evidence, "; mostly ");
		ts_advice_append_name(&evidence, ts_work_text(advisor->work, largest->name));
		ts_text_printf(&evidence, " (%s, %s)", TS_COUNTED(largest->count, "time"),
			       TS_ADVICE_TIME(largest->ns));
	}
	return ts_advise_at_most(advisor, exposure->exposed_ns, "overlap", &finding, &evidence);
}

int ts_advise_exposed_communication(struct ts_advisor *advisor)
{
	struct exposure exposure = { 0 };
	int code = TS_OK;

	for (uint32_t rank = 0; !code && rank < advisor->work->rank_count; rank++)
		code = add_exposure(advisor, rank, &exposure);
	if (!code && exposure.exposed_ns > 0)
		code = advise_exposure(advisor, &exposure);
	ts_advice_sums_release(&exposure.names);
	return code;
}

/* ---- chains of kernels to fuse ---- */

struct chains {
	uint64_t chains, kernels;
	int64_t total_ns, longest_ns; /* of all chains, and of the longest kernel of each */
	struct ts_advice_sums names;
};

/* Ends a chain: fusing it would save all but its longest kernel. */
static void end_chain(struct chains *chains, uint64_t *length, int64_t *total, int64_t *longest)
{
	if (*length >= 2) {
		chains->chains++;
		chains->kernels += *length;
		chains->total_ns = ts_ns_add(chains->total_ns, *total);
		chains->longest_ns = ts_ns_add(chains->longest_ns, *longest);
	}
	*length = 0;
	*total = *longest = 0;
}

static int add_chains(const struct ts_advisor *advisor, const struct ts_work_stream *stream,
		      struct chains *chains)
{
	int64_t total = 0, longest = 0;
	uint64_t length = 0;

	for (uint32_t i = 0; i < stream->command_count; i++) {
		const struct ts_work_command *command =
			&advisor->work->commands[stream->first_command + i];
		int64_t duration = command->end - command->start;

		if (!(command->flags & TS_COMMAND_ELEMENTWISE)) {
			end_chain(chains, &length, &total, &longest);
			continue;
		}
		length++;
		total = ts_ns_add(total, duration);
		longest = TS_MAX(longest, duration);
		if (ts_advice_sums_add(&chains->names, command->name, duration))
			return ts_error_set(advisor->err, TS_ENOMEM, "no memory");
	}
	end_chain(chains, &length, &total, &longest);
	return TS_OK;
}

static int advise_chains(struct ts_advisor *advisor, const struct chains *chains)
{
	const struct ts_advice_sum *largest = ts_advice_sums_largest(&chains->names);
	struct ts_text finding = { 0 }, evidence = { 0 };

	ts_text_printf(
		&finding,
		"element-wise kernels run back to back, each reading and writing all of its memory; %s",
		advisor->words->fuse);
	ts_text_printf(&evidence, "%s in %s took %s; the longest kernel of each chain, %s in total",
		       TS_COUNTED(chains->kernels, "kernel"), TS_COUNTED(chains->chains, "chain"),
		       TS_ADVICE_TIME(chains->total_ns), TS_ADVICE_TIME(chains->longest_ns));
	if (largest) {
		ts_text_append_str(&evidence, "; mostly ");
		ts_advice_append_name(&evidence, ts_work_text(advisor->work, largest->name));
	}
	return ts_advise(advisor, chains->total_ns - chains->longest_ns, "kernels", &finding,
			 &evidence);
}

int ts_advise_fusion(struct ts_advisor *advisor)
{
	struct chains chains = { 0 };
	int code = TS_OK;

	for (uint32_t i = 0; !code && i < advisor->work->stream_count; i++)
		code = add_chains(advisor, &advisor->work->streams[i], &chains);
	if (!code && chains.chains)
		code = advise_chains(advisor, &chains);
	ts_advice_sums_release(&chains.names);
	return code;
}

/* ---- single-precision matrix products ---- */

int ts_advise_single_precision(struct ts_advisor *advisor)
{
	const struct ts_advice_sum *largest;
	struct ts_advice_sums names = { 0 };
	struct ts_text finding = { 0 }, evidence = { 0 };
	int64_t total = 0;
	uint64_t count = 0;
	int code = TS_OK;

	for (uint32_t i = 0; !code && i < advisor->work->command_count; i++) {
		const struct ts_work_command *command = &advisor->work->commands[i];

		if (!(command->flags & TS_COMMAND_SINGLE_PRECISION))
			continue;
		count++;
		total = ts_ns_add(total, command->end - command->start);
		code = ts_advice_sums_add(&names, command->name, command->end - command->start);
	}
	largest = ts_advice_sums_largest(&names);
	if (!code && largest) {
		ts_text_append_str(
			&finding,
			"matrix products run in FP32 without tensor cores; TF32 or bfloat16 takes half of the time or less on devices that support them");
		ts_text_printf(&evidence, "%s took %s; mostly ", TS_COUNTED(count, "such kernel"),
			       TS_ADVICE_TIME(total));
		ts_advice_append_name(&evidence, ts_work_text(advisor->work, largest->name));
		ts_text_append_str(&evidence, "; assumes half of the time is saved");
		code = ts_advise(advisor, total / 2, "kernels", &finding, &evidence);
	}
	ts_advice_sums_release(&names);
	return code ? ts_error_set(advisor->err, code, "no memory") : TS_OK;
}

/* ---- the kernel that the critical path depends on ---- */

/* Runs critical-path unless it has already run. */
static int find_best_kernel(struct ts_advisor *advisor)
{
	struct ts_analyze_request *request = advisor->request;
	struct ts_analysis_options saved_options = request->options;
	struct ts_result unseen;
	int code;

	if (request->best_kernel.known)
		return TS_OK;
	request->options.annotation = request->options.what_if = NULL;
	ts_result_init(&unseen, advisor->result->start);
	code = ts_analysis_critical_path.run(request, &unseen, advisor->err);
	ts_result_release(&unseen);
	request->options = saved_options;
	return code;
}

int ts_advise_best_kernel(struct ts_advisor *advisor)
{
	struct ts_text finding = { 0 }, evidence = { 0 };
	struct ts_advice_sum sum = { 0 };
	const char *name;
	int64_t saves;
	int code;

	/* HTA's path has no what-if. */
	if (advisor->request->options.rounding == TS_ROUNDING_HTA)
		return TS_OK;
	code = find_best_kernel(advisor);
	name = advisor->request->best_kernel.name;
	if (code || !name)
		return code;
	sum.name = ts_work_find_text(advisor->work, name);
	for (uint32_t i = 0; i < advisor->work->command_count; i++) {
		const struct ts_work_command *command = &advisor->work->commands[i];

		if (command->name != sum.name)
			continue;
		sum.count++;
		sum.ns = ts_ns_add(sum.ns, command->end - command->start);
	}
	ts_text_append_str(&finding, "the critical path depends most on kernel ");
	ts_advice_append_name(&finding, name);
	ts_text_append_str(&finding,
			   ": speeding it up (other shapes, precision, library) pays off most");
	ts_text_printf(
		&evidence,
		"it ran %s for %s in total; twice as fast, it would shorten the window by %s",
		TS_COUNTED(sum.count, "time"), TS_ADVICE_TIME(sum.ns),
		TS_ADVICE_TIME(advisor->request->best_kernel.saves_ns));
	/* The window is shared by all ranks. */
	if (__builtin_mul_overflow(advisor->request->best_kernel.saves_ns,
				   (int64_t)advisor->work->rank_count, &saves))
		saves = INT64_MAX;
	return ts_advise(advisor, saves, "critical-path", &finding, &evidence);
}
