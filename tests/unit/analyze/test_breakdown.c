/* SPDX-License-Identifier: Apache-2.0 */
/*
 * breakdown and overlap on small traces, and the cases that HTA gets wrong. HTA's result is checked
 * as well (`--rounding hta`), so each test shows the difference.
 */
#include "unit/analyze/analyze_support.h"

#define TIMES "rank idle_us compute_us non_compute_us kernel_time_us"

TS_TEST(time_is_idle_compute_or_something_else)
{
	/* compute 10-20, copy 18-25, nothing, communication 40-60 beside compute 50-55. */
	const char *events = KERNEL("gemm", "7", "10", "10", "1") COPY("8", "18", "7", "2")
		ALL_REDUCE("9", "40", "20", "3") KERNEL("gemm", "7", "50", "5", "4");

	CHECK_EXACT(breakdown, events, "breakdown", TIMES, "0 15000 15000 20000 50000\n");
	CHECK_EXACT(breakdown, events, "breakdown", "idle_pct compute_pct non_compute_pct commands",
		    "30.000 30.000 40.000 4\n");
	CHECK_EXACT(breakdown, events, "breakdown",
		    "busy_us compute_exclusive_us compute_overlapped_us", "35000 8000 7000\n");
	CHECK_EXACT(breakdown, events, "breakdown",
		    "communication_us communication_exclusive_us communication_overlapped_us "
		    "communication_pct",
		    "20000 15000 5000 40.000\n");
	CHECK_EXACT(breakdown, events, "breakdown",
		    "memory_us memory_exclusive_us memory_overlapped_us memory_pct",
		    "7000 5000 2000 14.000\n");
	CHECK_EXACT(overlap, events, "overlap",
		    "rank overlap_pct shared_us communication_us exposed_us compute_us",
		    "0 25.000 5000 20000 15000 15000\n");
}

TS_TEST(kernels_that_touch_leave_nothing_between_them)
{
	/* In one stream, and across streams. */
	const char *events = KERNEL("a", "7", "10.001", "0.999", "1")
		KERNEL("b", "7", "11", "4.5", "2") KERNEL("c", "8", "15.5", "1.25", "3");

	CHECK_EXACT(breakdown, events, "breakdown", TIMES, "0 0 6749 0 6749\n");
}

TS_TEST(kernels_of_one_stream_that_run_at_once_count_once)
{
	/*
	 * A graph's kernels share a row of the trace: 10-30, inside it 12-20, and 25-40, which
	 * extends beyond it.
	 */
	const char *events = KERNEL("a", "7", "10", "20", "1") KERNEL("b", "7", "12", "8", "1")
		KERNEL("c", "7", "25", "15", "1") KERNEL("d", "7", "50", "10", "2");

	CHECK_EXACT(breakdown, events, "breakdown", TIMES, "0 10000 40000 0 50000\n");
	CHECK_HTA(breakdown, events, "breakdown", TIMES, "0 10000 40000 0 50000\n");
}

TS_TEST(kernels_of_no_length_take_no_time_but_are_there)
{
	/*
	 * Traces in whole us have many of these. They are at the ends of the window, and in a gap.
	 */
	const char *events = KERNEL("a", "7", "5", "0", "1") KERNEL("b", "7", "10", "10", "2")
		KERNEL("c", "7", "25", "0", "3") KERNEL("d", "7", "40", "0", "4");

	CHECK_EXACT(breakdown, events, "breakdown", TIMES, "0 25000 10000 0 35000\n");
	CHECK_EXACT(breakdown, events, "breakdown", "commands", "4\n");
	CHECK_EXACT(breakdown, KERNEL("a", "7", "5", "0", "1"), "breakdown",
		    TIMES " idle_pct compute_pct", "0 0 0 0 0 - -\n");
}

TS_TEST(rounding_turns_short_kernels_around)
{
	/*
	 * 300 ns each, none across a whole us: HTA rounds starts up to 11, 12, 14 and ends down to
	 * 10, 11, 13, and then reports -3 us of computation. Times are exact by default.
	 */
	const char *events = KERNEL("a", "7", "10.100", "0.300", "1")
		KERNEL("b", "7", "11.200", "0.300", "2") KERNEL("c", "7", "13.300", "0.300", "3");

	CHECK_EXACT(breakdown, events, "breakdown", TIMES, "0 2600 900 0 3500\n");
	CHECK_HTA(breakdown, events, "breakdown", TIMES, "0 5000 -3000 0 2000\n");
}

TS_TEST(whole_us_are_not_rounded)
{
	/* As doubles of ns they would lose their last digits and be rounded up and down. */
	const char *events = KERNEL("a", "7", "1694128201426557", "11", "1")
		KERNEL("b", "7", "1694128201426579", "3", "2");

	CHECK_EXACT(breakdown, events, "breakdown", TIMES, "0 11000 14000 0 25000\n");
	CHECK_HTA(breakdown, events, "breakdown", TIMES, "0 11000 14000 0 25000\n");
}

TS_TEST(kernels_of_hip_compute)
{
	/*
	 * HTA classifies every name that begins with hip as communication: here it sees no
	 * computation at all.
	 */
	const char *events = KERNEL("hipblasltGemmKernel_f16", "7", "10", "20", "1");

	CHECK_EXACT(breakdown, events, "breakdown", TIMES " communication_us",
		    "0 0 20000 0 20000 0\n");
	CHECK_HTA(breakdown, events, "breakdown", TIMES " communication_us",
		  "0 0 0 20000 20000 20000\n");
	CHECK_EXACT(overlap, events, "overlap", "overlap_pct communication_us", "- 0\n");
}

TS_TEST(a_collective_inside_a_template_communicates)
{
	/*
	 * NCCL 2.19 renamed ncclKernel to ncclDevKernel. HTA recognizes the new name only at the
	 * start.
	 */
	const char *events = KERNEL("void run<ncclDevKernel_ReduceScatter>(x)", "9", "10", "20",
				    "1") KERNEL("gemm", "7", "20", "20", "2");

	CHECK_EXACT(overlap, events, "overlap", "overlap_pct communication_us compute_us",
		    "50.000 20000 20000\n");
	CHECK_HTA(overlap, events, "overlap", "overlap_pct communication_us compute_us",
		  "- 0 30000\n");
}

TS_TEST(a_synchronisation_is_no_work_of_a_device)
{
	/*
	 * Kineto shows the host's wait for a stream in the stream's row, which HTA counts as a busy
	 * device.
	 */
	const char *events = KERNEL("gemm", "7", "10", "10", "1")
		ON_DEVICE("0", "cuda_sync", "Stream Sync", "7", "30", "10", "2")
			KERNEL("gemm", "7", "50", "10", "3")
				ON_DEVICE("0", "cuda_sync", "Context Sync", "-1", "70", "10", "4");

	CHECK_EXACT(breakdown, events, "breakdown", TIMES " other_us commands",
		    "0 30000 20000 0 50000 0 2\n");
	/* HTA ignores one without a stream (-1) as well. */
	CHECK_HTA(breakdown, events, "breakdown", TIMES " other_us commands",
		  "0 20000 20000 10000 50000 10000 3\n");
}

TS_TEST(communication_in_pieces_is_shared_piece_by_piece)
{
	const char *events = ALL_REDUCE("9", "0", "10", "1") ALL_REDUCE("9", "20", "10", "2")
		ALL_REDUCE("10", "25", "15", "3") KERNEL("a", "7", "5", "20", "4")
			KERNEL("b", "7", "40", "5", "5");

	/* Communication 0-10 and 20-40, computation 5-25 and 40-45: both at 5-10 and 20-25. */
	CHECK_EXACT(overlap, events, "overlap", "overlap_pct shared_us communication_us exposed_us",
		    "33.333 10000 30000 20000\n");
}

TS_TEST(a_trace_of_the_host_alone_gives_nothing_and_says_so)
{
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE, OP("aten::add", "10", "5"), NULL);
	run_analysis(&analyzed, &ts_analysis_breakdown);
	CHECK_ROWS(&analyzed, "breakdown", TIMES, "");
	TS_CHECK(has_note(&analyzed.result, "no device activity"));
	run_analysis(&analyzed, &ts_analysis_overlap);
	CHECK_ROWS(&analyzed, "overlap", "rank overlap_pct", "");
	release_analyzed(&analyzed);
}

TS_TEST(each_rank_has_a_row_but_for_those_without_devices)
{
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE, KERNEL("a", "7", "10", "5", "1"),
		   KERNEL("a", "7", "10", "5", "1") KERNEL("a", "7", "25", "5", "2"));
	run_analysis(&analyzed, &ts_analysis_breakdown);
	CHECK_ROWS(&analyzed, "breakdown", TIMES, "0 0 5000 0 5000\n1 10000 10000 0 20000\n");
	release_analyzed(&analyzed);
	load_ranks(&analyzed, TS_ROUNDING_NONE, OP("aten::add", "10", "5"),
		   KERNEL("a", "7", "10", "5", "1"));
	run_analysis(&analyzed, &ts_analysis_breakdown);
	CHECK_ROWS(&analyzed, "breakdown", TIMES, "1 0 5000 0 5000\n");
	TS_CHECK(has_note(&analyzed.result, "1 of 2 ranks"));
	release_analyzed(&analyzed);
}

TS_TEST(times_at_the_ends_of_what_there_is_do_no_harm)
{
	/* Almost 292 years each way: differences do not fit, negative lengths count as none. */
	const char *events = KERNEL("a", "7", "-9223372036854774", "5", "1")
		KERNEL("b", "7", "9223372036854770", "4", "2") KERNEL("c", "7", "20", "-5", "3")
			KERNEL("d", "8", "0", "9223372036854775", "4");
	struct analyzed analyzed;

	for (int rounding = TS_ROUNDING_NONE; rounding <= TS_ROUNDING_HTA; rounding++) {
		load_ranks(&analyzed, (enum ts_rounding)rounding, events, NULL);
		run_analysis(&analyzed, &ts_analysis_breakdown);
		run_analysis(&analyzed, &ts_analysis_overlap);
		TS_CHECK_INT(ts_result_rows(analyzed.result.tables), 1);
		if (rounding == TS_ROUNDING_NONE)
			TS_CHECK(analyzed.result.tables->cells[1].integer >= 0);
		release_analyzed(&analyzed);
	}
}

/* ---- against counting each us ---- */

#define RANDOM_US 60

/* What runs in each us, by class. */
struct painted {
	unsigned char classes[RANDOM_US + 20];
	int from, to;
};

static const struct {
	const char *category, *name;
} painted_classes[] = {
	[TS_CLASS_COMPUTE] = { "kernel", "gemm" },
	[TS_CLASS_COMMUNICATION] = { "kernel", "ncclDevKernel_AllGather(x)" },
	[TS_CLASS_MEMORY] = { "gpu_memset", "Memset (Device)" },
	[TS_CLASS_OTHER] = { "kernel", "job_exe" },
};

static void paint(struct ts_text *events, struct painted *painted, unsigned int *seed)
{
	int start = rand_r(seed) % RANDOM_US, length = rand_r(seed) % 12;
	int class = rand_r(seed) % TS_CLASS_COUNT, stream = rand_r(seed) % 3;

	for (int us = start; us < start + length; us++)
		painted->classes[us] |= (unsigned char)(1u << class);
	painted->from = TS_MIN(painted->from, start);
	painted->to = TS_MAX(painted->to, start + length);
	ts_text_printf(events,
		       "{'ph':'X','cat':'%s','name':'%s','pid':0,'tid':%d,'ts':%d,'dur':%d,"
		       "'args':{'device':0,'stream':%d,'correlation':%d}},",
		       painted_classes[class].category, painted_classes[class].name, stream + 1,
		       start, length, stream + 1, start + 1);
}

static int64_t painted_ns(const struct painted *painted, unsigned int mask, bool alone)
{
	int64_t ns = 0;

	for (int us = painted->from; us < painted->to; us++)
		ns += alone ? (painted->classes[us] == mask) * 1000
			    : ((painted->classes[us] & mask) != 0) * 1000;
	return ns;
}

static void check_painted(struct analyzed *analyzed, const struct painted *painted)
{
	int64_t window = (painted->to - painted->from) * 1000;
	int64_t idle = painted_ns(painted, 0, true), compute = painted_ns(painted, 1, false);
	char expected[256];

	snprintf(expected, sizeof(expected), "%lld %lld %lld %lld %lld %lld %lld %lld %lld\n",
		 (long long)idle, (long long)compute, (long long)(window - idle - compute),
		 (long long)window, (long long)painted_ns(painted, 1, true),
		 (long long)painted_ns(painted, 2, false), (long long)painted_ns(painted, 2, true),
		 (long long)painted_ns(painted, 4, true), (long long)painted_ns(painted, 8, true));
	CHECK_ROWS(analyzed, "breakdown",
		   "idle_us compute_us non_compute_us kernel_time_us compute_exclusive_us "
		   "communication_us communication_exclusive_us memory_exclusive_us "
		   "other_exclusive_us",
		   expected);
}

TS_TEST(random_traces_are_counted_as_us_by_us)
{
	for (unsigned int round = 1; round <= 60; round++) {
		unsigned int seed = round;
		struct painted painted = { .from = RANDOM_US };
		struct analyzed analyzed;
		TS_SCOPED(ts_text) events = { 0 };

		for (unsigned int i = 0; i < 1 + round % 30; i++)
			paint(&events, &painted, &seed);
		load_ranks(&analyzed, TS_ROUNDING_NONE, ts_text_cstr(&events), NULL);
		run_analysis(&analyzed, &ts_analysis_breakdown);
		check_painted(&analyzed, &painted);
		release_analyzed(&analyzed);
	}
}

/* ---- recording windows ---- */

static void put_kernel(struct ts_writer *writer, int64_t start, int64_t duration)
{
	struct ts_gpu_op_row row = ts_gpu_op_none;

	row.start = start;
	row.duration = duration;
	row.kind = TS_GPU_OP_KERNEL;
	row.name = ts_writer_string(writer, "a", 1);
	TS_CHECK_INT(ts_writer_add(writer, TS_TABLE_GPU_OP, &row, NULL), 0);
}

static void put_window(struct ts_writer *writer, int64_t process, int64_t start, int64_t duration)
{
	struct ts_window_row row = ts_window_none;

	row.process = process;
	row.start = start;
	row.duration = duration;
	TS_CHECK_INT(ts_writer_add(writer, TS_TABLE_WINDOW, &row, NULL), 0);
}

static void check_windows_(const char *file, int line, int64_t from, const char *expected)
{
	char path[] = "/tmp/tracesmith-work-XXXXXX";
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	struct ts_writer *writer = begin_trace(path);
	struct analyzed analyzed;

	put_kernel(writer, 100, 100);
	put_kernel(writer, 5100, 200);
	put_kernel(writer, 5400, 200);
	put_window(writer, 1, 5000, 1000);
	put_window(writer, 1, 0, 1000);
	/* Another process was recorded a bit longer. */
	put_window(writer, 2, 500, 700);
	options.from = from;
	analyzed.loaded = (struct loaded){ .readers = { end_trace(writer, path) }, .count = 1 };
	load_readers(&analyzed.loaded, &options);
	prepare_analysis(&analyzed);
	run_analysis(&analyzed, &ts_analysis_breakdown);
	if (has_note(&analyzed.result, "recording windows") != (expected != NULL) ||
	    (expected && !has_note(&analyzed.result, expected)))
		ts_test_fail(file, line, "no note '%s'", expected ? expected : "");
	release_analyzed(&analyzed);
}
#define CHECK_WINDOWS(from, expected) check_windows_(__FILE__, __LINE__, from, expected)

/* Nothing is known of that time: it is idle only for lack of a recording. */
TS_TEST(time_between_windows_is_told)
{
	CHECK_WINDOWS(TS_ABSENT, "3.8 us between recording windows");
	CHECK_WINDOWS(5000, NULL);
}
