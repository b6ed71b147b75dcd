/* SPDX-License-Identifier: Apache-2.0 */
/* steps on small traces: what belongs to which step, waits, overlapping steps, outliers. */
#include "unit/analyze/analyze_support.h"

#define STEP(number, tid, ts, dur) \
	EVENT("user_annotation", "ProfilerStep#" number, "1", tid, ts, dur, "")
#define SYNC(ts, dur) \
	EVENT("cuda_runtime", "cudaStreamSynchronize", "1", "1", ts, dur, "'correlation':0")
#define OF_DEVICE "step kernels device_us busy_us idle_us compute_us communication_us memory_us"

/* Includes the last step, which is ignored by default. */
static void check_all_(const char *file, int line, const char *events, const char *table,
		       const char *keys, const char *expected)
{
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	struct analyzed analyzed;

	options.all = true;
	load_events(&analyzed.loaded, &options, events, NULL);
	prepare_analysis(&analyzed);
	run_analysis(&analyzed, &ts_analysis_steps);
	check_rows_(file, line, &analyzed.result, table, keys, expected);
	TS_CHECK(!has_note(&analyzed.result, "left out"));
	release_analyzed(&analyzed);
}
#define CHECK_ALL(events, table, keys, expected) \
	check_all_(__FILE__, __LINE__, events, table, keys, expected)

TS_TEST(commands_belong_to_the_step_that_issued_them)
{
	/* Work issued by the first step still runs during the second. */
	const char *events = STEP("1", "1", "0", "100") STEP("2", "1", "100", "150")
		CALL("10", "1", "1") CALL("20", "1", "2") CALL("110", "1", "3")
			CALL("260", "1", "4") KERNEL("a", "7", "50", "20", "1")
				ALL_REDUCE("8", "60", "60", "2") COPY("7", "200", "10", "3")
					KERNEL("z", "7", "300", "5", "4");

	CHECK_ALL(events, "steps", OF_DEVICE " exposed_communication_us",
		  "1 2 70000 70000 0 20000 60000 0 50000\n"
		  "2 1 10000 10000 0 0 0 10000 0\n");
	CHECK_ALL(events, "steps", "step start_ns duration_us versus_median_pct",
		  "1 0 100000 -20.000\n2 100000 150000 20.000\n");
	CHECK_ALL(events, "summary",
		  "rank steps median_us mean_us fastest fastest_us slowest slowest_us outliers",
		  "0 2 125000 125000 1 100000 2 150000 0\n");
}

/*
 * A command whose call precedes the recording belongs to no step, even if it runs during one; if no
 * command has its call, the start of each decides.
 */
TS_TEST(commands_issued_before_the_trace_belong_to_no_step)
{
	const char *steps = STEP("1", "1", "0", "100") STEP("2", "1", "100", "100");
	const char *late = KERNEL("late", "7", "20", "10", "900")
		KERNEL("b", "7", "120", "10", "901");
	struct ts_text events = { 0 };

	ts_text_printf(&events, "%s%s%s", steps, late,
		       CALL("10", "1", "1") KERNEL("a", "7", "50", "20", "1"));
	CHECK_ALL(ts_text_cstr(&events), "steps", OF_DEVICE,
		  "1 1 20000 20000 0 20000 0 0\n2 0 0 0 0 0 0 0\n");
	ts_text_clear(&events);
	ts_text_printf(&events, "%s%s", steps, late);
	CHECK_ALL(ts_text_cstr(&events), "steps", OF_DEVICE,
		  "1 1 10000 10000 0 10000 0 0\n2 1 10000 10000 0 10000 0 0\n");
	ts_text_release(&events);
}

TS_TEST(the_last_step_is_left_out_and_told)
{
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE,
		   STEP("1", "1", "0", "100") STEP("2", "1", "100", "150")
			   STEP("3", "1", "250", "10") CALL("10", "1", "1")
				   KERNEL("a", "7", "50", "20", "1"),
		   NULL);
	run_analysis(&analyzed, &ts_analysis_steps);
	CHECK_ROWS(&analyzed, "steps", "step duration_us", "1 100000\n2 150000\n");
	TS_CHECK(has_note(&analyzed.result, "left out: 1 step"));
	release_analyzed(&analyzed);
}

TS_TEST(waits_are_not_the_hosts_work)
{
	/* A nested call counts once; one of the next step does not count. */
	const char *events = STEP("1", "1", "0", "100") STEP("2", "1", "100", "100")
		SYNC("10", "30") EVENT("cuda_driver", "cuStreamSynchronize", "1", "1", "12", "20",
				       "'correlation':0") SYNC("120", "5") CALL("50", "10", "1");

	CHECK_ALL(events, "steps", "step host_us sync_us calls_us",
		  "1 70000 30000 40000\n2 95000 5000 5000\n");
}

TS_TEST(steps_that_overlap_are_measured_each)
{
	/* Steps of two threads at the same time; each has the calls of its own thread. */
	const char *events = STEP("1", "1", "0", "100") STEP("2", "2", "50", "100") SYNC("60", "10")
		EVENT("cuda_runtime", "cudaStreamSynchronize", "1", "2", "70", "20",
		      "'correlation':0");

	CHECK_ALL(events, "steps", "step duration_us sync_us host_us",
		  "1 100000 10000 90000\n2 100000 20000 80000\n");
}

TS_TEST(a_step_unlike_the_others_is_named)
{
	const char *usual = STEP("1", "1", "0", "100") STEP("2", "1", "100", "102")
		STEP("3", "1", "202", "98") STEP("4", "1", "300", "101")
			STEP("5", "1", "401", "99");

	CHECK_ALL(usual, "steps", "step outlier", "1 0\n2 0\n3 0\n4 0\n5 0\n");
	CHECK_ALL(STEP("1", "1", "0", "100") STEP("2", "1", "100", "102")
			  STEP("3", "1", "202", "98") STEP("4", "1", "300", "101")
				  STEP("5", "1", "401", "180"),
		  "steps", "step outlier", "1 0\n2 0\n3 0\n4 0\n5 1\n");
	/* Three are too few to tell which one is usual. */
	CHECK_ALL(STEP("1", "1", "0", "100") STEP("2", "1", "100", "100")
			  STEP("3", "1", "200", "900"),
		  "summary", "steps outliers slowest", "3 0 3\n");
	/* Almost equal: a few percent are not reported. */
	CHECK_ALL(STEP("1", "1", "0", "1000") STEP("2", "1", "1000", "1000")
			  STEP("3", "1", "2000", "1000") STEP("4", "1", "3000", "1040"),
		  "summary", "outliers", "0\n");
	/* Neither is a fast one. */
	CHECK_ALL(STEP("1", "1", "0", "1000") STEP("2", "1", "1000", "1000")
			  STEP("3", "1", "2000", "1000") STEP("4", "1", "3000", "500"),
		  "summary", "outliers", "0\n");
}

TS_TEST(without_steps_there_is_a_note)
{
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE, CALL("5", "1", "1") KERNEL("a", "7", "6", "1", "1"),
		   NULL);
	run_analysis(&analyzed, &ts_analysis_steps);
	CHECK_ROWS(&analyzed, "steps", "step", "");
	CHECK_ROWS(&analyzed, "summary", "rank", "");
	TS_CHECK(has_note(&analyzed.result, "no steps"));
	release_analyzed(&analyzed);
}

/* The host is done with its last step, and there is no device that could lag behind. */
TS_TEST(without_device_work_the_last_step_counts)
{
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE,
		   STEP("1", "1", "0", "100") STEP("2", "1", "100", "150"), NULL);
	run_analysis(&analyzed, &ts_analysis_steps);
	CHECK_ROWS(&analyzed, "steps", "step duration_us kernels device_us busy_us",
		   "1 100000 0 - -\n2 150000 0 - -\n");
	TS_CHECK(!has_note(&analyzed.result, "left out"));
	release_analyzed(&analyzed);
}

#define MARK(number, tid, ts)                                                         \
	"{'ph':'i','s':'t','cat':'step','name':'step','pid':1,'tid':" tid ",'ts':" ts \
	",'args':{'step':" number "}},"

/* TS_STEP() says when a step begins: it ends with the next one of its thread. */
TS_TEST(steps_that_a_program_announces)
{
	const char *events = MARK("5", "1", "0") MARK("6", "1", "100") MARK("9", "2", "120")
		MARK("7", "1", "250") SLICE("app", "work", "1", "10", "300");

	CHECK_ALL(events, "steps", "step start_ns duration_us",
		  "5 0 100000\n6 100000 150000\n9 120000 190000\n7 250000 60000\n");
	/* The last one lasts until the end of the trace, and is left out. */
	CHECK_EXACT(steps, MARK("5", "1", "0") MARK("6", "1", "100") MARK("7", "1", "250"), "steps",
		    "step duration_us", "5 100000\n6 150000\n");
	/* Spans are better: they say when a step ends. */
	CHECK_ALL(MARK("5", "1", "0") STEP("1", "1", "10", "50"), "steps", "step duration_us",
		  "1 50000\n");
}

/* ---- recording windows ---- */

static int64_t text_of(struct ts_writer *writer, const char *text)
{
	return ts_writer_string(writer, text, strlen(text));
}

/* Its id is that of its only thread, too. */
static int64_t put_process(struct ts_writer *writer)
{
	struct ts_process_row process = ts_process_none;
	struct ts_thread_row thread = ts_thread_none;

	process.id = ts_writer_new_id(writer, TS_TABLE_PROCESS);
	thread.id = ts_writer_new_id(writer, TS_TABLE_THREAD);
	thread.process = process.id;
	TS_CHECK_INT(ts_writer_add(writer, TS_TABLE_PROCESS, &process, NULL), 0);
	TS_CHECK_INT(ts_writer_add(writer, TS_TABLE_THREAD, &thread, NULL), 0);
	TS_CHECK_INT(thread.id, process.id);
	return process.id;
}

static void put_window(struct ts_writer *writer, int64_t process, int64_t start, int64_t duration,
		       const char *closed_by)
{
	struct ts_window_row row = ts_window_none;

	row.start = start;
	row.duration = duration;
	row.process = process;
	row.closed_by = closed_by ? text_of(writer, closed_by) : 0;
	TS_CHECK_INT(ts_writer_add(writer, TS_TABLE_WINDOW, &row, NULL), 0);
}

static void put_mark(struct ts_writer *writer, int64_t thread, int64_t number, int64_t start)
{
	const struct ts_field field = { .key = (uint32_t)text_of(writer, "step"),
					.type = TS_ARG_INT };
	struct ts_mark_row row = ts_mark_none;

	row.start = start;
	row.thread = thread;
	row.name = row.category = text_of(writer, "step");
	row.shape = ts_writer_shape(writer, &field, 1);
	TS_CHECK_INT(ts_writer_add(writer, TS_TABLE_MARK, &row, &number), 0);
}

/*
 * Two processes: the first has windows that were closed by command, at a step, and not at all; the
 * second was always recorded.
 */
static struct ts_reader *read_windows(void)
{
	char path[] = "/tmp/tracesmith-work-XXXXXX";
	struct ts_writer *writer = begin_trace(path);
	int64_t first = put_process(writer), second = put_process(writer);

	put_window(writer, first, 5000, 4000, "max_steps");
	put_window(writer, first, 0, 1000, "command");
	put_window(writer, first, 10000, -1, NULL);
	put_mark(writer, first, 1, 100);
	put_mark(writer, first, 2, 300);
	put_mark(writer, first, 3, 600);
	put_mark(writer, second, 103, 700);
	put_mark(writer, second, 104, 4700);
	put_mark(writer, first, 11, 5100);
	put_mark(writer, first, 12, 5500);
	put_mark(writer, first, 20, 10100);
	put_mark(writer, first, 21, 10600);
	return end_trace(writer, path);
}

static void analyze_windows(struct analyzed *analyzed, bool all)
{
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;

	options.all = all;
	analyzed->loaded = (struct loaded){ .readers = { read_windows() }, .count = 1 };
	load_readers(&analyzed->loaded, &options);
	prepare_analysis(analyzed);
	run_analysis(analyzed, &ts_analysis_steps);
}

/* What is between two windows belongs to no step. Where the program closes one, a step ends. */
TS_TEST(a_step_ends_with_its_window)
{
	struct analyzed analyzed;

	analyze_windows(&analyzed, true);
	CHECK_ROWS(&analyzed, "steps", "step start_ns duration_us",
		   "1 100 200\n2 300 300\n3 600 400\n103 700 4000\n104 4700 5900\n"
		   "11 5100 400\n12 5500 3500\n20 10100 500\n21 10600 0\n");
	release_analyzed(&analyzed);
	/* Step 3 was cut by the command. */
	analyze_windows(&analyzed, false);
	CHECK_ROWS(&analyzed, "steps", "step duration_us",
		   "1 200\n2 300\n103 4000\n104 5900\n11 400\n12 3500\n20 500\n");
	TS_CHECK(has_note(&analyzed.result, "left out: 1 step (by default the last one"));
	TS_CHECK(has_note(&analyzed.result, "left out: 1 step in which a recording window"));
	release_analyzed(&analyzed);
}

static void check_span_(const char *file, int line, const char *span, const char *events,
			const char *expected)
{
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	struct analyzed analyzed;

	options.step_span = span;
	load_events(&analyzed.loaded, &options, events, NULL);
	prepare_analysis(&analyzed);
	run_analysis(&analyzed, &ts_analysis_steps);
	check_rows_(file, line, &analyzed.result, "steps", "step duration_us", expected);
	release_analyzed(&analyzed);
}
#define CHECK_SPAN(span, events, expected) check_span_(__FILE__, __LINE__, span, events, expected)

TS_TEST(any_span_may_be_a_step)
{
	const char *events = SLICE("app", "batch", "1", "0", "100")
		SLICE("app", "batch", "1", "100", "50") SLICE("app", "iteration 7", "1", "0", "10")
			SLICE("app", "iteration#8", "1", "20", "20")
				SLICE("app", "iteration8x", "1", "50", "20")
					SLICE("app", "iterations", "1", "70", "20");

	CHECK_SPAN("batch", events, "0 100000\n1 50000\n");
	CHECK_SPAN("iteration", events, "7 10000\n8 20000\n");
	CHECK_SPAN("absent", events, "");
}
