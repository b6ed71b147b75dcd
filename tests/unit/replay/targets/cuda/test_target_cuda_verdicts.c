/* SPDX-License-Identifier: Apache-2.0 */
/* Replays from options to verdict, with recorded hashes of pages. */
#include "unit/replay/targets/cuda/target_cuda_support.h"

static struct ts_replay_report report;

static void replay(struct cuda_target *target, struct ts_replay_options options)
{
	int rc = cuda_target_load(target, options);

	memset(&report, 0, sizeof(report));
	if (!rc)
		rc = ts_replay_run(target->replay, &report, &target->err);
	if (rc)
		ts_test_fail(__FILE__, __LINE__, "%s", target->err.message);
}

static uint32_t expected[4][PAGE / 4];

/* Hashes of all pages: of the arena as expected, of two variables of zeros. */
static void record_final(struct cuda_target *target)
{
	static const char zeros[128];
	uint64_t pairs[4][2], variable[1][2] = { { 0, ts_hash_page(zeros, 128, NULL, 0) } };

	for (int i = 0; i < 4; i++) {
		pairs[i][0] = (uint64_t)i * PAGE;
		pairs[i][1] = ts_hash_page(expected[i], PAGE, NULL, 0);
	}
	cuda_pages(&target->trace, 0, CUDA_MEMORY, (const uint64_t(*)[2])pairs, 4, "final");
	cuda_pages(&target->trace, 0, VARIABLE_WORDS, (const uint64_t(*)[2])variable, 1, "final");
	cuda_pages(&target->trace, 0, VARIABLE_SUMS, (const uint64_t(*)[2])variable, 1, "final");
}

static void expect_filled(int page, uint32_t value, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		expected[page][i] = value + i;
}

TS_TEST(equal_to_the_recording)
{
	static const enum ts_replay_check_level levels[] = { TS_REPLAY_CHECK_FINAL,
							     TS_REPLAY_CHECK_EACH };

	for (size_t i = 0; i < TS_ARRAY_SIZE(levels); i++) {
		struct cuda_target *target = cuda_target_start(0);

		cuda_target_fill(target, CUDA_STREAM, ADDRESS(1), 100, 1000);
		cuda_target_fill(target, CUDA_STREAM_2, ADDRESS(2), 5, 1000);
		expect_filled(1, 100, 1000);
		expect_filled(2, 5, 1000);
		record_final(target);
		replay(target, (struct ts_replay_options){ .repeat = 4, .check = levels[i] });
		TS_CHECK_STR(report.verdict_text, "no difference in 4 runs, equals recording");
		TS_CHECK_INT(report.restored_bytes, 4 * PAGE + 256);
		TS_CHECK(report.setup_ns > 0);
		TS_CHECK(report.span_ns >= 0);
		cuda_target_stop(target);
	}
}

TS_TEST(different_from_the_recording)
{
	struct cuda_target *target = cuda_target_start(0);

	cuda_target_fill(target, CUDA_STREAM, ADDRESS(1), 100, 1000);
	expect_filled(1, 100, 1000);
	expected[1][17] = 0;
	record_final(target);
	replay(target, (struct ts_replay_options){ .repeat = 2 });
	TS_CHECK_INT(report.verdict, TS_REPLAY_DIFFERS);
	TS_CHECK_INT(report.pages_differing, 1);
	cuda_target_stop(target);
}

/* Two streams write the same memory: another order shows it. */
TS_TEST(a_race_is_found)
{
	struct cuda_target *target = cuda_target_start(0);

	cuda_target_fill(target, CUDA_STREAM, ADDRESS(1), 100, 1000);
	cuda_target_fill(target, CUDA_STREAM_2, ADDRESS(1), 5, 1000);
	replay(target, (struct ts_replay_options){ .repeat = 8, .check = TS_REPLAY_CHECK_EACH });
	TS_CHECK_INT(report.verdict, TS_REPLAY_NONDETERMINISTIC);
	TS_CHECK(strstr(report.command_text, "launch of 'fill'") != NULL);
	cuda_target_stop(target);
}

TS_TEST(memory_is_shown)
{
	struct cuda_target *target = cuda_target_start(0);
	int64_t at = cuda_target_fill(target, CUDA_STREAM, ADDRESS(1), 100, 1000);
	uint64_t bytes = 0;

	cuda_target_fill(target, CUDA_STREAM, ADDRESS(1), 7, 1000);
	replay(target, (struct ts_replay_options){ .dump_at = (uint64_t)at,
						   .dumps_address = true,
						   .dump_address = ADDRESS(1) + 40,
						   .dump_bytes = 16 });
	cuda_target_check_filled(ts_replay_dump(target->replay, &bytes), 110, 4);
	TS_CHECK_INT(bytes, 16);
	cuda_target_stop(target);
}
