/* SPDX-License-Identifier: Apache-2.0 */
/* Matching commands of several ranks as one collective: by number, by order, and not at all. */
#include "state/collectives/collectives_internal.h"
#include "unit/state/state_job.h"

/*
 * Is every match the same collective on all its ranks? Members are identified by their true ends.
 */
static void check_matches(const struct job *job)
{
	for (uint32_t i = 0; i < job->matched->match_count; i++) {
		const struct ts_collective_match *match = &job->matched->matches[i];
		int64_t first = 0;

		TS_CHECK(match->count >= 2);
		for (uint32_t k = 0; k < match->count; k++) {
			uint32_t index = job->matched->members[match->first + k];
			const struct ts_work_command *command = &job->work->commands[index];
			int64_t end = job_reference(job, command->rank, command->end);

			if (k == 0)
				first = end;
			else
				TS_CHECK(command->rank >
					 job->work
						 ->commands[job->matched
								    ->members[match->first + k - 1]]
						 .rank);
			if (end - first > 40000 || first - end > 40000)
				ts_test_fail(__FILE__, __LINE__, "match %u is wrong by %lld ns", i,
					     (long long)(end - first));
		}
	}
}

static struct ts_collective_name parse(const char *name)
{
	struct ts_collective_name parsed;

	ts_collective_name(name, strlen(name), &parsed);
	return parsed;
}

TS_TEST(words)
{
	struct ts_collective_name ring =
		parse("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclWork*)");

	TS_CHECK(ring.together && ring.sized && !ring.pair);
	TS_CHECK_INT(ring.token, parse("ncclDevKernel_AllReduce_Sum_f16_TREE_LL128(x)").token);
	TS_CHECK_INT(ring.token, parse("ncclKernel_AllReduce_RING_SIMPLE_Sum_f16(x)").token);
	TS_CHECK_INT(ring.token, parse("ncclAllReduceRingLLKernel_sum_f16(ncclColl)").token);
	TS_CHECK(ring.token != parse("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)").token);
	TS_CHECK(ring.token != parse("ncclDevKernel_ReduceScatter_Sum_f16_RING_LL(x)").token);
	TS_CHECK_INT(parse("all_reduce").token, parse("allreduce").token);
	TS_CHECK_INT(parse("nccl:all_reduce").token, parse("allreduce").token);
	TS_CHECK(parse("_allgather_base").together);
	TS_CHECK(!parse("broadcast").together);
	TS_CHECK(parse("send").pair && parse("recv").pair);
	TS_CHECK(!parse("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(x)").pair);
	TS_CHECK(!parse("").together);
}

TS_TEST(by_number)
{
	struct job job = { .rank_count = 4, .numbered = true };

	job.clocks[1].skew_ns = 9000000000;
	job_fill(&job, 300, 300000, 100000, 10000);
	for (size_t i = 0; i < job.count; i++) {
		job.collectives[i].group = 7;
		job.collectives[i].ranks[2].absent = i % 3 == 0;
		job.collectives[i].ranks[0].absent = i % 5 == 0;
	}
	job_run(&job);
	TS_CHECK_INT(job.matched->match_count, 300);
	TS_CHECK_INT(job.matched->unmatched, 0);
	TS_CHECK(!job.matched->matches[0].by_order);
	TS_CHECK_STR(ts_work_text(job.work, job.matched->matches[0].name), "allreduce");
	TS_CHECK_STR(ts_work_text(job.work, job.matched->matches[0].group), "7");
	TS_CHECK_INT(job.matched->matches[10].sequence, 10);
	check_matches(&job);
	job_release(&job);
}

/* The same number, but another operation: a rank that is out of step. */
TS_TEST(a_number_alone_is_not_enough)
{
	struct job job = { .rank_count = 2, .numbered = true };

	job_fill(&job, 20, 300000, 100000, 10000);
	for (size_t i = 0; i < 20; i++)
		job.collectives[i].group = 1;
	for (uint32_t r = 0; r < 2; r++) {
		struct job_collective *other = job_add(&job, "ncclDevKernel_AllReduce(x)");

		*other = job.collectives[19];
		other->sequence = 99;
		other->elements = 1000 + r;
		other->ranks[1 - r].absent = true;
	}
	job_run(&job);
	TS_CHECK_INT(job.matched->match_count, 20);
	TS_CHECK_INT(job.matched->unmatched, 2);
	job_release(&job);
}

/* All have the number 0: then it does not count. */
TS_TEST(a_number_that_never_rises)
{
	struct job job = { .rank_count = 2, .numbered = true };

	job_fill(&job, 200, 300000, 100000, 10000);
	for (size_t i = 0; i < 200; i++) {
		job.collectives[i].group = 1;
		job.collectives[i].sequence = 0;
		job.collectives[i].ranks[1].absent = i < 3;
	}
	job_run(&job);
	TS_CHECK_INT(job.matched->match_count, 197);
	TS_CHECK(job.matched->matches[0].by_order);
	check_matches(&job);
	job_release(&job);
}

TS_TEST(by_order_with_more_at_both_ends)
{
	struct job job = { .rank_count = 4 };

	job.clocks[1].skew_ns = 40000000;
	job.clocks[3].skew_ns = -2000000000;
	job_fill(&job, 500, 300000, 100000, 10000);
	for (size_t i = 0; i < 500; i++) {
		job.collectives[i].ranks[0].absent = i < 5;
		job.collectives[i].ranks[1].absent = i < 12 || i > 480;
		job.collectives[i].ranks[3].absent = i < 2 || i > 496;
	}
	job_run(&job);
	TS_CHECK(job.matched->matches[0].by_order);
	check_matches(&job);
	TS_CHECK_INT(job.matched->match_count, 495);
	/* The first five: rank 0, the reference, has none of them. */
	TS_CHECK_INT(job.matched->unmatched, 5 + 3);
	job_release(&job);
}

TS_TEST(kernels_of_other_protocols)
{
	struct job job = { .rank_count = 2 };

	job_fill(&job, 100, 300000, 100000, 10000);
	for (size_t i = 0; i < 100; i++)
		job.collectives[i].name = "ncclDevKernel_AllReduce_Sum_f16_RING_LL(x)";
	/* The same collective uses another kernel on rank 1. */
	for (size_t i = 0; i < 100; i += 4) {
		struct job_collective *other =
			job_add(&job, "ncclDevKernel_AllReduce_Sum_f16_TREE_LL(x)");

		other->ranks[1] = job.collectives[i].ranks[1];
		other->ranks[0].absent = true;
		job.collectives[i].ranks[1].absent = true;
	}
	job_run(&job);
	TS_CHECK_INT(job.matched->match_count, 100);
	check_matches(&job);
	job_release(&job);
}

/* Ranks 0 1 and 2 3 do the same on the same stream, but not with each other. */
TS_TEST(groups_that_the_trace_does_not_name)
{
	struct job job = { .rank_count = 4 };
	size_t half;

	job_fill(&job, 300, 300000, 100000, 10000);
	half = job.count;
	job_fill(&job, 300, 300000, 100000, 10000);
	for (size_t i = 0; i < job.count; i++)
		for (uint32_t r = 0; r < 4; r++)
			job.collectives[i].ranks[r].absent = (i < half) != (r < 2);
	job_run(&job);
	check_matches(&job);
	TS_CHECK_INT(job.matched->match_count, 600);
	for (uint32_t i = 0; i < 600; i++)
		TS_CHECK_INT(job.matched->matches[i].count, 2);
	job_release(&job);
}

/* A million commands: anything quadratic would not end. */
TS_TEST(long_sequences)
{
	struct job job = { .rank_count = 2 };

	job.clocks[1] = (struct job_clock){ 123456789, 30e-6 };
	job_fill(&job, 300000, 300000, 100000, 10000);
	for (size_t i = 0; i < job.count; i++)
		job.collectives[i].ranks[1].absent = i < 1000 || i % 1009 == 0;
	job_run(&job);
	check_matches(&job);
	TS_CHECK(job.matched->match_count > 298000);
	job_release(&job);
}

TS_TEST(nothing_at_all)
{
	struct job job = { .rank_count = 2 };

	job_run(&job);
	TS_CHECK_INT(job.matched->match_count, 0);
	TS_CHECK_INT(job.matched->unmatched, 0);
	job_release(&job);
}
