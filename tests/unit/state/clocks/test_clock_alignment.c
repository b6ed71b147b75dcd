/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks of ranks and devices: known skews and drifts are found within the stated uncertainty,
 * which must not exceed what the noise explains.
 */
#include <math.h>

#include "unit/state/state_job.h"

static int64_t magnitude(int64_t value)
{
	return value < 0 ? -value : value;
}

/* Throughout the trace the corrected time is that of rank 0, within the stated uncertainty. */
static void check_rank(const struct job *job, uint32_t rank, int64_t most_uncertain_ns)
{
	const struct ts_clock_estimate *estimate = &job->estimated->ranks[rank];
	int64_t from = job->work->ranks[rank].from, to = job->work->ranks[rank].to;

	TS_CHECK(estimate->known);
	for (int i = 0; i <= 4; i++) {
		int64_t time = from + (to - from) / 4 * i;
		int64_t error = ts_clock_estimate_apply(estimate, time) -
				job_reference(job, rank, time);

		if (magnitude(error) > estimate->uncertainty_ns)
			ts_test_fail(__FILE__, __LINE__,
				     "rank %u is off by %lld ns at %d/4, stated are %lld", rank,
				     (long long)error, i, (long long)estimate->uncertainty_ns);
	}
	if (estimate->uncertainty_ns > most_uncertain_ns)
		ts_test_fail(__FILE__, __LINE__, "rank %u: uncertainty %lld ns is absurd", rank,
			     (long long)estimate->uncertainty_ns);
}

static void check_ranks(const struct job *job, int64_t most_uncertain_ns)
{
	TS_CHECK_INT(job->estimated->reference, 0);
	TS_CHECK_INT(job->estimated->ranks[0].offset_ns, 0);
	TS_CHECK_INT(job->estimated->ranks[0].uncertainty_ns, 0);
	for (uint32_t r = 1; r < job->rank_count; r++)
		check_rank(job, r, most_uncertain_ns);
}

TS_TEST(skews_from_nanoseconds_to_hours)
{
	static const int64_t skews[] = {
		0,        7,          -900,           12345,
		-4000000, 2000000000, -3600000000000, INT64_C(-1699000000000000000)
	};
	struct job job = { .rank_count = 8 };

	for (int i = 0; i < 8; i++)
		job.clocks[i].skew_ns = skews[i];
	job_fill(&job, 400, 500000, 300000, 10000);
	job_run(&job);
	TS_CHECK_INT(job.matched->match_count, 400);
	TS_CHECK_INT(job.matched->unmatched, 0);
	check_ranks(&job, 30000);
	for (uint32_t r = 1; r < 8; r++) {
		TS_CHECK_INT(job.estimated->ranks[r].points, 400);
		TS_CHECK_STR(job.estimated->ranks[r].method, "collectives");
	}
	job_release(&job);
}

TS_TEST(drifts_up_to_200_ppm)
{
	static const double drifts[] = { 0, 1e-6, -20e-6, 50e-6, -100e-6, 150e-6, 200e-6, -200e-6 };
	struct job job = { .rank_count = 8 };

	for (int i = 0; i < 8; i++)
		job.clocks[i] = (struct job_clock){ i * 1000003, drifts[i] };
	/* 20 s: 200 ppm is 4 ms. */
	job_fill(&job, 2000, 10000000, 300000, 20000);
	job_run(&job);
	TS_CHECK_INT(job.matched->match_count, 2000);
	check_ranks(&job, 60000);
	for (uint32_t r = 2; r < 8; r++) {
		double found = job.estimated->ranks[r].drift_ppb / 1e9;

		/* The correction shrinks as its clock runs ahead. */
		TS_CHECK(fabs(found + drifts[r]) < 1e-6);
	}
	job_release(&job);
}

TS_TEST(the_reference_may_drift_itself)
{
	struct job job = { .rank_count = 3 };

	job.clocks[0] = (struct job_clock){ 5000000, 80e-6 };
	job.clocks[1] = (struct job_clock){ -700000, -60e-6 };
	job_fill(&job, 500, 10000000, 300000, 20000);
	job_run(&job);
	check_ranks(&job, 60000);
	job_release(&job);
}

TS_TEST(without_noise_it_is_nearly_exact)
{
	struct job job = { .rank_count = 2 };

	job.clocks[1].skew_ns = 123456789;
	job_fill(&job, 50, 500000, 100000, 0);
	job_run(&job);
	TS_CHECK_INT(job.estimated->ranks[1].offset_ns, -123456789);
	check_ranks(&job, 2);
	job_release(&job);
}

TS_TEST(whole_microseconds)
{
	struct job job = { .rank_count = 2, .round_ns = 1000 };

	job.clocks[1].skew_ns = 3000;
	job_fill(&job, 50, 500000, 100000, 0);
	job_run(&job);
	check_ranks(&job, 4000);
	TS_CHECK(job.estimated->ranks[1].uncertainty_ns >= 1000);
	job_release(&job);
}

TS_TEST(missing_collectives)
{
	struct job job = { .rank_count = 4 };

	job.clocks[1] = (struct job_clock){ 30000000, 20e-6 };
	job.clocks[2] = (struct job_clock){ -5000000000, -50e-6 };
	job_fill(&job, 600, 1000000, 300000, 10000);
	for (size_t i = 0; i < 600; i++) {
		job.collectives[i].ranks[1].absent = i < 7 || i > 590 || i == 100;
		job.collectives[i].ranks[2].absent = i > 500 || i % 97 == 5;
		job.collectives[i].ranks[3].absent = i < 11 || (i > 200 && i < 260);
	}
	job_run(&job);
	check_ranks(&job, 60000);
	/* Nothing is matched wrongly: ends of partners are close in true time. */
	TS_CHECK(job.estimated->ranks[1].points > 570);
	TS_CHECK(job.estimated->ranks[2].points > 480);
	TS_CHECK(job.estimated->ranks[3].points > 510);
	TS_CHECK(job.estimated->ranks[3].outliers < 5);
	job_release(&job);
}

TS_TEST(one_huge_outlier)
{
	struct job job = { .rank_count = 3 };

	job.clocks[1].skew_ns = 1000000;
	job_fill(&job, 100, 1000000, 300000, 10000);
	job.collectives[40].ranks[1].end += 700000;
	job.collectives[60].ranks[2].end += 400000;
	job_run(&job);
	check_ranks(&job, 30000);
	TS_CHECK(job.estimated->ranks[1].outliers >= 1);
	TS_CHECK(job.estimated->ranks[1].outliers <= 3);
	job_release(&job);
}

TS_TEST(a_rank_without_collectives_stays_as_it_is)
{
	struct job job = { .rank_count = 3 };

	job.clocks[2].skew_ns = 1000000;
	job_fill(&job, 100, 1000000, 300000, 10000);
	for (size_t i = 0; i < job.count; i++)
		if (i != 3) /* one row, so that the rank exists */
			job.collectives[i].ranks[1].absent = true;
	job.collectives[3].name = "gemm";
	job_run(&job);
	TS_CHECK(!job.estimated->ranks[1].known);
	TS_CHECK_STR(job.estimated->ranks[1].method, "none");
	TS_CHECK_INT(ts_clock_alignment_uncertainty(job.estimated, 0, 1), TS_ABSENT);
	TS_CHECK(!ts_clock_alignment_can_resolve(job.estimated, 0, 1, INT64_MAX));
	check_rank(&job, 2, 30000);
	job_release(&job);
}

TS_TEST(the_lowest_rank_that_has_any_is_the_reference)
{
	struct job job = { .rank_count = 3 };

	job.clocks[2].skew_ns = 1000000;
	job_fill(&job, 100, 1000000, 300000, 10000);
	for (size_t i = 0; i < job.count; i++)
		job.collectives[i].ranks[0].absent = true;
	job_run(&job);
	TS_CHECK_INT(job.estimated->reference, 1);
	TS_CHECK(magnitude(job.estimated->ranks[2].offset_ns + 1000000) <=
		 job.estimated->ranks[2].uncertainty_ns);
	job_release(&job);
}

/*
 * Ranks 0 1 and 2 3 meet in their own groups, 1 and 3 in a third: 2 is tied to 0 through 3 and 1.
 */
TS_TEST(chains_of_groups)
{
	struct job job = { .rank_count = 4, .numbered = true };

	for (uint32_t r = 1; r < 4; r++)
		job.clocks[r] = (struct job_clock){ r * 10000000, r * 30e-6 };
	job_fill(&job, 900, 1000000, 300000, 10000);
	for (size_t i = 0; i < job.count; i++) {
		struct job_collective *collective = &job.collectives[i];
		static const bool in[3][4] = { { true, true, false, false },
					       { false, false, true, true },
					       { false, true, false, true } };

		collective->group = 1 + i % 3;
		for (uint32_t r = 0; r < 4; r++)
			collective->ranks[r].absent = !in[i % 3][r];
	}
	job_run(&job);
	TS_CHECK_INT(job.matched->match_count, 900);
	check_ranks(&job, 120000);
	TS_CHECK_STR(job.estimated->ranks[1].method, "collectives");
	TS_CHECK_STR(job.estimated->ranks[2].method, "collectives of other ranks");
	TS_CHECK(job.estimated->ranks[2].uncertainty_ns > job.estimated->ranks[3].uncertainty_ns);
	TS_CHECK(job.estimated->ranks[3].uncertainty_ns > job.estimated->ranks[1].uncertainty_ns);
	job_release(&job);
}

/* Two unconnected groups: each is aligned to its lowest rank, with nothing known between them. */
TS_TEST(islands)
{
	struct job job = { .rank_count = 4, .numbered = true };

	job.clocks[3].skew_ns = 400000;
	job_fill(&job, 200, 1000000, 300000, 10000);
	for (size_t i = 0; i < job.count; i++) {
		job.collectives[i].group = 1 + i % 2;
		for (uint32_t r = 0; r < 4; r++)
			job.collectives[i].ranks[r].absent = r / 2 != i % 2;
	}
	job_run(&job);
	TS_CHECK_INT(job.estimated->ranks[1].reference, 0);
	TS_CHECK_INT(job.estimated->ranks[3].reference, 2);
	TS_CHECK(magnitude(job.estimated->ranks[3].offset_ns + 400000) <=
		 job.estimated->ranks[3].uncertainty_ns);
	TS_CHECK_INT(ts_clock_alignment_uncertainty(job.estimated, 1, 3), TS_ABSENT);
	TS_CHECK(ts_clock_alignment_uncertainty(job.estimated, 2, 3) < 30000);
	job_release(&job);
}

/* A single collective: only its own causes and effects bound the offset. */
TS_TEST(one_collective_gives_a_wide_bound)
{
	struct job job = { .rank_count = 2, .numbered = true };

	job.clocks[1].skew_ns = 5000000;
	job_fill(&job, 1, 1000000, 300000, 10000);
	job.collectives[0].group = 1;
	job_run(&job);
	check_ranks(&job, 500000);
	TS_CHECK(job.estimated->ranks[1].uncertainty_ns >= 50000);
	TS_CHECK(job.estimated->ranks[1].uncertainty_ns >= job.estimated->ranks[1].bound_ns);
	job_release(&job);
}

/* The uncertainty grows with the distance from all matches. */
TS_TEST(uncertainty_grows_beyond_what_was_matched)
{
	struct job job = { .rank_count = 2 };
	int64_t near, far;

	job_fill(&job, 20, 1000000, 300000, 10000);
	job_run(&job);
	near = job.estimated->ranks[1].uncertainty_ns;
	job_release(&job);
	job = (struct job){ .rank_count = 2 };
	job_fill(&job, 20, 1000000, 300000, 10000);
	for (uint32_t r = 0; r < 2; r++) {
		struct job_collective *late = job_add(&job, "gemm");

		late->ranks[r].start = JOB_START + 100000000000;
		late->ranks[r].end = late->ranks[r].start + 1000;
		late->ranks[1 - r].absent = true;
	}
	job_run(&job);
	far = job.estimated->ranks[1].uncertainty_ns;
	TS_CHECK(far > 4 * near);
	check_rank(&job, 1, 100000000);
	job_release(&job);
}

/* Jobs of all kinds: the stated bounds hold in each. */
TS_TEST(many_jobs)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct job job = { .random = seed * 7919 };
		int64_t noise = 1 + job_random(&job, 20000);
		size_t count = (size_t)(30 + job_random(&job, 400));

		job.rank_count = (uint32_t)(2 + job_random(&job, 7));
		job.round_ns = job_random(&job, 3) ? 0 : 1000;
		for (uint32_t r = 0; r < job.rank_count; r++) {
			job.clocks[r].skew_ns = job_random(&job, INT64_C(4000000000)) - 2000000000;
			job.clocks[r].drift = (double)(job_random(&job, 401) - 200) * 1e-6;
		}
		job_fill(&job, count, 200000 + job_random(&job, 5000000), 400000, noise);
		for (uint32_t r = 0; r < job.rank_count; r++) {
			int64_t first = job_random(&job, 8), last = job_random(&job, 8);

			for (size_t i = 0; i < count; i++)
				job.collectives[i].ranks[r].absent =
					(int64_t)i < first || (int64_t)i + last >= (int64_t)count ||
					job_random(&job, 60) == 0;
		}
		job_run(&job);
		check_ranks(&job, 3 * noise + 10000);
		job_release(&job);
	}
}

TS_TEST(one_rank_alone)
{
	struct job job = { .rank_count = 1 };

	job_fill(&job, 10, 1000000, 300000, 10000);
	job_run(&job);
	TS_CHECK_INT(job.matched->match_count, 0);
	TS_CHECK_INT(job.matched->unmatched, 10);
	TS_CHECK(job.estimated->ranks[0].known);
	TS_CHECK_STR(job.estimated->ranks[0].method, "reference");
	job_release(&job);
}

/* Corrected work needs no further correction, and nothing is reordered. */
TS_TEST(applied)
{
	struct job job = { .rank_count = 4 };
	struct ts_clock_alignment *again;
	struct ts_error err;

	for (uint32_t r = 1; r < 4; r++)
		job.clocks[r] = (struct job_clock){ r * 777777777, r * 40e-6 };
	job_fill(&job, 500, 10000000, 300000, 10000);
	job_run(&job);
	ts_clock_alignment_apply(job.estimated, job.work);
	for (uint32_t i = 1; i < job.work->command_count; i++) {
		const struct ts_work_command *command = &job.work->commands[i];

		TS_CHECK(command->end >= command->start);
		TS_CHECK(command->stream != command[-1].stream ||
			 command->start >= command[-1].start);
	}
	TS_CHECK_INT(job.work->ranks[0].uncertainty_ns, 0);
	TS_CHECK_INT(ts_clock_alignment_new(&again, job.work, job.matched, &err), 0);
	for (uint32_t r = 1; r < 4; r++) {
		TS_CHECK(job.work->ranks[r].uncertainty_ns > 0);
		TS_CHECK(magnitude(again->ranks[r].offset_ns) < 2000);
		TS_CHECK(fabs(again->ranks[r].drift_ppb) < 500);
		TS_CHECK(magnitude(job.work->ranks[r].from - job.work->ranks[0].from) < 400000);
	}
	ts_clock_alignment_free(again);
	job_release(&job);
}

TS_TEST(an_estimate_never_reverses_order)
{
	struct ts_clock_estimate estimate = {
		.known = true, .epoch = 1000, .offset_ns = -50, .drift_ppb = -1e7
	};
	int64_t before = INT64_MIN;

	for (int64_t time = -3000; time < 3000; time++) {
		int64_t moved = ts_clock_estimate_apply(&estimate, time);

		TS_CHECK(moved >= before);
		before = moved;
	}
	TS_CHECK(ts_clock_estimate_apply(&estimate, INT64_MAX) > 0);
	TS_CHECK(ts_clock_estimate_apply(&estimate, INT64_MIN + 1) < 0);
}

/* ---- devices ---- */

/* A rank with one device and these commands, calls and waits. */
struct device_case {
	struct ts_work_command commands[4];
	struct ts_work_call calls[4];
	struct ts_work_sync syncs[4];
};

static struct ts_clock_estimate device_estimate(struct device_case *c, uint32_t count,
						uint32_t syncs)
{
	struct ts_work_rank rank = { .device_count = 1, .stream_count = 1, .thread_count = 1 };
	struct ts_work_device device = { .stream_count = 1 };
	struct ts_work_stream stream = { .command_count = count };
	struct ts_work_thread thread = { .call_count = count };
	struct ts_work work = { .ranks = &rank,
				.devices = &device,
				.streams = &stream,
				.threads = &thread,
				.commands = c->commands,
				.calls = c->calls,
				.syncs = c->syncs,
				.rank_count = 1,
				.device_count = 1,
				.stream_count = 1,
				.thread_count = 1,
				.command_count = count,
				.call_count = count,
				.sync_count = syncs };
	struct ts_collectives none = { 0 };
	struct ts_clock_estimate estimate;
	struct ts_clock_alignment *clocks;
	struct ts_error err;

	ts_strmap_init(&work.names, 0);
	ts_strmap_intern(&work.names, "", 0, NULL);
	for (uint32_t i = 0; i < count; i++) {
		c->commands[i].call = i;
		c->commands[i].collective = TS_WORK_NONE;
		c->calls[i].command = i;
		c->calls[i].correlation = i;
	}
	for (uint32_t i = 0; i < syncs; i++) {
		c->syncs[i].call = TS_WORK_NONE;
		c->syncs[i].on_stream = TS_WORK_NONE;
	}
	TS_CHECK_INT(ts_clock_alignment_new(&clocks, &work, &none, &err), 0);
	estimate = clocks->devices[0];
	ts_clock_alignment_free(clocks);
	ts_strmap_release(&work.names);
	return estimate;
}

TS_TEST(a_device_that_agrees_with_its_host)
{
	struct device_case c = {
		.calls = { { .start = 100, .end = 110 }, { .start = 201, .end = 215 } },
		.commands = { { .start = 130, .end = 180 }, { .start = 230, .end = 300 } },
		.syncs = { { .start = 220, .end = 340, .kind = TS_SYNC_STREAM } },
	};
	struct ts_clock_estimate estimate = device_estimate(&c, 2, 1);

	TS_CHECK(estimate.known);
	TS_CHECK_INT(estimate.offset_ns, 0);
	/* 201 - 230 = -29 .. 340 - 300 = 40 */
	TS_CHECK_INT(estimate.uncertainty_ns, 40);
	TS_CHECK_STR(estimate.method, "launches and syncs");
	TS_CHECK_INT(estimate.outliers, 0);
}

TS_TEST(a_device_that_begins_before_it_is_asked)
{
	struct device_case c = {
		.calls = { { .start = 100, .end = 110 }, { .start = 201, .end = 215 } },
		.commands = { { .start = 30, .end = 80 }, { .start = 130, .end = 200 } },
		.syncs = { { .start = 220, .end = 340, .kind = TS_SYNC_CONTEXT } },
	};
	struct ts_clock_estimate estimate = device_estimate(&c, 2, 1);

	/* By the minimum: 201 - 130. */
	TS_CHECK_INT(estimate.offset_ns, 71);
	TS_CHECK_INT(estimate.uncertainty_ns, 140 - 71);
}

TS_TEST(a_device_that_ends_after_it_was_waited_for)
{
	struct device_case c = {
		.calls = { { .start = 100, .end = 110 }, { .start = 201, .end = 215 } },
		.commands = { { .start = 1130, .end = 1180 }, { .start = 1230, .end = 1300 } },
		.syncs = { { .start = 220, .end = 340, .kind = TS_SYNC_STREAM } },
	};
	struct ts_clock_estimate estimate = device_estimate(&c, 2, 1);

	TS_CHECK_INT(estimate.offset_ns, 340 - 1300);
}

/* A wait says nothing about later submissions. */
TS_TEST(only_what_was_asked_for_before_the_wait)
{
	struct device_case c = {
		.calls = { { .start = 100, .end = 110 }, { .start = 350, .end = 360 } },
		.commands = { { .start = 130, .end = 180 }, { .start = 370, .end = 900 } },
		.syncs = { { .start = 120, .end = 190, .kind = TS_SYNC_STREAM } },
	};
	struct ts_clock_estimate estimate = device_estimate(&c, 2, 1);

	TS_CHECK_INT(estimate.offset_ns, 0);
	TS_CHECK_INT(estimate.uncertainty_ns, 20);
}

TS_TEST(without_waits_one_side_is_open)
{
	struct device_case c = {
		.calls = { { .start = 100, .end = 110 } },
		.commands = { { .start = 130, .end = 180 } },
	};
	struct ts_clock_estimate estimate = device_estimate(&c, 1, 0);

	TS_CHECK(estimate.known);
	TS_CHECK_INT(estimate.offset_ns, 0);
	TS_CHECK_INT(estimate.uncertainty_ns, TS_ABSENT);
	TS_CHECK_STR(estimate.method, "launches");
}

/* Contradictory bounds: the offset that violates the fewest, and these are counted. */
TS_TEST(contradicting_bounds)
{
	struct device_case c = {
		.calls = { { .start = 100, .end = 110 },
			   { .start = 201, .end = 215 },
			   { .start = 5000, .end = 5001 } },
		.commands = { { .start = 130, .end = 180 },
			      { .start = 230, .end = 300 },
			      { .start = 310, .end = 320 } },
		.syncs = { { .start = 220, .end = 340, .kind = TS_SYNC_STREAM } },
	};
	struct ts_clock_estimate estimate = device_estimate(&c, 3, 1);

	TS_CHECK_INT(estimate.offset_ns, 0);
	TS_CHECK_INT(estimate.outliers, 1);
	TS_CHECK_INT(estimate.uncertainty_ns, 40);
}
