/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Advice: each check finds what a small trace is built to show, with the time that the trace is
 * built to lose, and nothing where there is no evidence.
 */
#include "analyze/advice/advice.h"
#include "unit/analyze/analyze_support.h"

#define STEP(number, ts, dur) \
	EVENT("user_annotation", "ProfilerStep#" number, "1", "1", ts, dur, "")

/* The row whose finding contains a text; fails the test if there is none. */
static size_t row_with(const struct analyzed *analyzed, const char *text)
{
	const struct ts_result_table *table = table_named(&analyzed->result, "advice");
	size_t column = column_named(table, "finding", 7);

	for (size_t row = 0; row < ts_result_rows(table); row++)
		if (strstr(table->cells[row * table->column_count + column].text, text))
			return row;
	ts_test_fail(__FILE__, __LINE__, "no finding with '%s'", text);
}

static const struct ts_cell *cell_of(const struct analyzed *analyzed, const char *finding,
				     const char *key)
{
	const struct ts_result_table *table = table_named(&analyzed->result, "advice");

	return &table->cells[row_with(analyzed, finding) * table->column_count +
			     column_named(table, key, strlen(key))];
}

/* Is there no finding with this text? */
static bool is_silent_on(const struct analyzed *analyzed, const char *text)
{
	const struct ts_result_table *table = table_named(&analyzed->result, "advice");
	size_t column = column_named(table, "finding", 7);

	for (size_t row = 0; row < ts_result_rows(table); row++)
		if (strstr(table->cells[row * table->column_count + column].text, text))
			return false;
	return true;
}

#define CHECK_EVIDENCE(analyzed, finding, part)                                       \
	do {                                                                          \
		if (!strstr(cell_of(analyzed, finding, "evidence")->text, part))      \
			ts_test_fail(__FILE__, __LINE__, "'%s' is not in '%s'", part, \
				     cell_of(analyzed, finding, "evidence")->text);   \
	} while (0)

static void advise(struct analyzed *analyzed, const char *first, const char *second)
{
	load_ranks(analyzed, TS_ROUNDING_NONE, first, second);
	run_analysis(analyzed, &ts_analysis_advice);
}

/* The host loads data for 900 us between two kernels that it launches at once. */
TS_TEST(a_slow_host)
{
	struct analyzed a;

	advise(&a,
	       CALL("0", "2", "1") KERNEL("gemm", "7", "5", "45", "1")
		       OP("DataLoader.__next__", "40", "900") CALL("950", "2", "2")
			       KERNEL("gemm", "7", "955", "45", "2"),
	       NULL);
	TS_CHECK_INT(cell_of(&a, "launches work too slowly", "saves_us")->integer, 900000);
	CHECK_EVIDENCE(&a, "more loader workers", "DataLoader.__next__ for 890 us");
	CHECK_EVIDENCE(&a, "more loader workers", "the longest gap lasts 900 us and starts 50 us");
	TS_CHECK_STR(cell_of(&a, "too slowly", "command")->text, "tracesmith analyze T idle");
	release_analyzed(&a);
}

/*
 * Blocked for 300 us in aten::item, then 100 us of other work: the wait is longer, so it accounts
 * for the entire gap.
 */
TS_TEST(waits_of_the_host)
{
	struct analyzed a;

	advise(&a,
	       CALL("0", "2", "1") KERNEL("gemm", "7", "5", "295", "1") OP("aten::item", "4", "301")
		       NAMED_CALL("cudaStreamSynchronize", "5", "300", "9") CALL("400", "2", "2")
			       KERNEL("gemm", "7", "405", "45", "2"),
	       NULL);
	TS_CHECK_INT(cell_of(&a, "the host waits for the device", "saves_us")->integer, 100000);
	CHECK_EVIDENCE(&a, "the host waits", "after waits in aten::item (1 time, 100 us)");
	release_analyzed(&a);
}

/* Two gaps, one of them after a wait: the evidence has what `idle` shows, the saving has not. */
TS_TEST(evidence_of_idle_time_is_that_of_the_analysis)
{
	struct analyzed a;

	advise(&a,
	       CALL("0", "2", "1") KERNEL("gemm", "7", "5", "95", "1")
		       NAMED_CALL("cudaStreamSynchronize", "90", "20", "9") CALL("200", "2", "2")
			       KERNEL("gemm", "7", "202", "98", "2") CALL("400", "2", "3")
				       KERNEL("gemm", "7", "402", "98", "3"),
	       NULL);
	CHECK_EVIDENCE(&a, "launches work too slowly",
		       "idle for 190 us in 2 gaps that ended with the next launch");
	CHECK_EVIDENCE(&a, "launches work too slowly", "(180 us without waits for the device)");
	TS_CHECK_INT(cell_of(&a, "launches work too slowly", "saves_us")->integer, 180000);
	release_analyzed(&a);
}

TS_TEST(communication_that_nothing_hides)
{
	struct analyzed a;

	advise(&a,
	       CALL("0", "2", "1") CALL("3", "2", "2") KERNEL("gemm", "7", "5", "50", "1")
		       ALL_REDUCE("9", "45", "60", "2"),
	       NULL);
	TS_CHECK_INT(cell_of(&a, "communication runs while nothing computes", "saves_us")->integer,
		     50000);
	CHECK_EVIDENCE(&a, "communication", "50 us of 60 us");
	TS_CHECK_INT(cell_of(&a, "communication", "at_most")->integer, 1);
	/* 40 us of the kernel are without communication: overlap can hide no more. */
	CHECK_EVIDENCE(&a, "communication", "overlapping saves at most 40 us");
	release_analyzed(&a);
	advise(&a,
	       CALL("0", "2", "1") CALL("3", "2", "2") KERNEL("gemm", "7", "5", "90", "1")
		       ALL_REDUCE("9", "85", "60", "2"),
	       NULL);
	CHECK_EVIDENCE(&a, "communication",
		       "50 us of 60 us of communication did not overlap "
		       "computation; mostly");
	release_analyzed(&a);
	/* Of two ranks the mean is saved, so the bound is a mean as well. */
	advise(&a,
	       CALL("0", "2", "1") CALL("3", "2", "2") KERNEL("gemm", "7", "5", "50", "1")
		       ALL_REDUCE("9", "45", "60", "2"),
	       CALL("0", "2", "1") CALL("3", "2", "2") KERNEL("gemm", "7", "5", "30", "1")
		       ALL_REDUCE("9", "45", "60", "2"));
	TS_CHECK_INT(cell_of(&a, "communication", "saves_us")->integer, 55000);
	CHECK_EVIDENCE(&a, "communication", "110 us of 120 us of communication on all ranks");
	CHECK_EVIDENCE(&a, "communication", "overlapping saves at most 35 us a rank");
	TS_CHECK(has_note(&a.result, "savings are of one rank, the mean of 2"));
	release_analyzed(&a);
}

/*
 * Chains of 2 and 3 kernels; the single one after the gemm is no chain. Each chain keeps its
 * longest kernel.
 */
TS_TEST(chains_of_small_kernels)
{
	struct analyzed a;

	advise(&a,
	       CALL("0", "1", "1") KERNEL("void elementwise_kernel<1>", "7", "10", "10", "1")
		       KERNEL("void elementwise_kernel<2>", "7", "20", "20", "1")
			       KERNEL("gemm", "7", "40", "10", "1")
				       KERNEL("void elementwise_kernel<1>", "7", "50", "10", "1")
					       KERNEL("gemm", "7", "60", "10", "1"),
	       NULL);
	TS_CHECK_INT(cell_of(&a, "element-wise", "saves_us")->integer, 10000);
	CHECK_EVIDENCE(&a, "element-wise", "2 kernels in 1 chain took 30 us");
	release_analyzed(&a);
}

/*
 * Pinned copies in the same trace are four times as fast: three quarters of the time could be
 * saved.
 */
TS_TEST(copies_from_pageable_memory)
{
	struct analyzed a;

	advise(&a,
	       CALL("0", "1", "1") EVENT("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", "0", "7",
					 "10", "100",
					 "'device':0,'stream':7,'correlation':1,'bytes':100000")
		       EVENT("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", "0", "7", "120", "100",
			     "'device':0,'stream':7,'correlation':1,'bytes':400000"),
	       NULL);
	TS_CHECK_INT(cell_of(&a, "pageable memory", "saves_us")->integer, 75000);
	CHECK_EVIDENCE(&a, "pageable memory", "pinned copies in this trace ran at 4.00 GB/s");
	release_analyzed(&a);
}

TS_TEST(memory_allocated_on_the_way)
{
	struct analyzed a;

	advise(&a,
	       NAMED_CALL("cudaMalloc", "0", "40", "8") NAMED_CALL("cudaFree", "50", "10", "9")
		       CALL("70", "1", "1") KERNEL("gemm", "7", "75", "10", "1"),
	       NULL);
	TS_CHECK_INT(cell_of(&a, "allocated or freed", "saves_us")->integer, 50000);
	CHECK_EVIDENCE(&a, "allocated or freed", "cudaMalloc (1 time, 40 us)");
	release_analyzed(&a);
	/* A call inside another takes no time of its own. */
	advise(&a,
	       NAMED_CALL("cudaMalloc", "0", "40", "8") NAMED_CALL("cuMemAlloc_v2", "5", "30", "9")
		       CALL("70", "1", "1") KERNEL("gemm", "7", "75", "10", "1"),
	       NULL);
	TS_CHECK_INT(cell_of(&a, "allocated or freed", "saves_us")->integer, 40000);
	CHECK_EVIDENCE(&a, "allocated or freed", "1 call took 40 us; mostly cudaMalloc (1 time");
	release_analyzed(&a);
}

/* Steps 1 to 5 count; the last one is ignored, as everywhere. */
TS_TEST(a_slow_step)
{
	struct analyzed a;

	advise(&a,
	       STEP("1", "0", "100") STEP("2", "100", "100") STEP("3", "200", "100")
		       STEP("4", "300", "250") STEP("5", "550", "100") STEP("6", "650", "100")
			       CALL("10", "1", "1") KERNEL("gemm", "7", "15", "10", "1"),
	       NULL);
	TS_CHECK_INT(cell_of(&a, "some steps take much longer", "saves_us")->integer, 150000);
	CHECK_EVIDENCE(&a, "some steps", "the longest is step 4 with 250 us");
	release_analyzed(&a);
}

/* Steps vary widely: step 5 exceeds the median by a quarter, which `steps` does not mark either. */
TS_TEST(steps_that_vary)
{
	struct analyzed a;

	advise(&a,
	       STEP("1", "0", "50") STEP("2", "50", "60") STEP("3", "110", "100")
		       STEP("4", "210", "110") STEP("5", "320", "125") STEP("6", "445", "100")
			       CALL("10", "1", "1") KERNEL("gemm", "7", "15", "10", "1"),
	       NULL);
	TS_CHECK(is_silent_on(&a, "some steps"));
	release_analyzed(&a);
}

/* Rank 1 is 50 us late twice: rank 0 loses 100 us, which is 50 us per rank. */
TS_TEST(a_rank_that_comes_late)
{
	struct analyzed a;

	advise(&a,
	       CALL("0", "1", "1") CALL("2", "1", "2") ALL_REDUCE("9", "10", "100", "1")
		       ALL_REDUCE("9", "210", "100", "2"),
	       CALL("0", "1", "1") CALL("2", "1", "2") ALL_REDUCE("9", "60", "50", "1")
		       ALL_REDUCE("9", "260", "50", "2"));
	TS_CHECK_INT(cell_of(&a, "ranks wait for each other", "saves_us")->integer, 50000);
	CHECK_EVIDENCE(&a, "ranks wait", "rank 1 came last in 2 of them");
	release_analyzed(&a);
}

/* At twice the speed it would take half the time, and nothing else would take longer. */
TS_TEST(the_kernel_that_the_path_hangs_on)
{
	struct analyzed a;

	advise(&a, CALL("0", "1", "1") KERNEL("gemm", "7", "1", "10000", "1"), NULL);
	TS_CHECK_INT(cell_of(&a, "depends most on kernel gemm", "saves_us")->integer, 5000000);
	CHECK_EVIDENCE(&a, "depends most on kernel gemm", "it ran 1 time for 10 ms");
	release_analyzed(&a);
}

TS_TEST(no_finding_without_evidence)
{
	struct analyzed a;

	/* One copy within the device that fills its window: nothing to gain. */
	advise(&a,
	       CALL("0", "1", "1") ON_DEVICE("0", "gpu_memcpy", "Memcpy DtoD (Device -> Device)",
					     "7", "1", "10000", "1"),
	       NULL);
	TS_CHECK_INT(ts_result_rows(table_named(&a.result, "advice")), 0);
	TS_CHECK(has_note(&a.result, "found nothing"));
	release_analyzed(&a);
	advise(&a, "", NULL);
	TS_CHECK_INT(ts_result_rows(table_named(&a.result, "advice")), 0);
	TS_CHECK(has_note(&a.result, "no device work"));
	TS_CHECK(has_note(&a.result, "found nothing"));
	release_analyzed(&a);
}

/* The largest savings come first. */
TS_TEST(the_best_first)
{
	struct analyzed a;
	const struct ts_result_table *table;

	advise(&a,
	       NAMED_CALL("cudaMalloc", "0", "40", "8") CALL("50", "2", "1")
		       KERNEL("gemm", "7", "55", "45", "1") CALL("950", "2", "2")
			       KERNEL("gemm", "7", "955", "45", "2"),
	       NULL);
	table = table_named(&a.result, "advice");
	TS_CHECK(ts_result_rows(table) >= 2);
	for (size_t row = 1; row < ts_result_rows(table); row++)
		TS_CHECK(table->cells[row * table->column_count + 1].integer <=
			 table->cells[(row - 1) * table->column_count + 1].integer);
	release_analyzed(&a);
}

/* ---- what the trace does not have ---- */

#define NO_CALL(ts, dur) EVENT("kernel", "gemm", "0", "7", ts, dur, "'device':0,'stream':7")

TS_TEST(an_idle_device_that_nothing_explains)
{
	struct analyzed a;

	advise(&a, NO_CALL("0", "100") NO_CALL("700", "100") NO_CALL("900", "100"), NULL);
	TS_CHECK(cell_of(&a, "does not say why", "saves_us")->none);
	CHECK_EVIDENCE(&a, "does not say why", "idle for 700 us");
	CHECK_EVIDENCE(&a, "the calls that issued its work", "idle for 700 us, 70 % of the window");
	CHECK_EVIDENCE(&a, "ProfilerActivity.CPU", "that is so for 3 of 3 commands");
	CHECK_EVIDENCE(&a, "does not say why", "the longest gap lasts 600 us and starts 100 us");
	release_analyzed(&a);
	/* With some of the calls, it is about the others. */
	advise(&a, CALL("0", "2", "1") KERNEL("gemm", "7", "5", "95", "1") NO_CALL("400", "100"),
	       NULL);
	CHECK_EVIDENCE(&a, "the calls that issued part of its work",
		       "that is so for 1 of 2 commands");
	release_analyzed(&a);
}

/* ---- in terms of the program ---- */

#define WAITING_PROGRAM                                      \
	CALL("0", "2", "1")                                  \
	KERNEL("gemm", "7", "5", "295", "1")                 \
	NAMED_CALL("cudaStreamSynchronize", "5", "300", "9") \
	CALL("400", "2", "2")                                \
	COPY("7", "405", "45", "2") CALL("900", "2", "3") KERNEL("gemm", "7", "905", "45", "3")

TS_TEST(remedies_of_pytorch_only_for_pytorch)
{
	struct analyzed a;

	advise(&a, WAITING_PROGRAM, NULL);
	CHECK_EVIDENCE(&a, "the host waits", "after waits in cudaStreamSynchronize");
	TS_CHECK(!is_silent_on(&a, "cudaMallocHost"));
	TS_CHECK(is_silent_on(&a, ".item()") && is_silent_on(&a, "pin_memory"));
	TS_CHECK(is_silent_on(&a, "torch"));
	release_analyzed(&a);
	advise(&a, WAITING_PROGRAM OP("aten::item", "4", "301"), NULL);
	TS_CHECK(!is_silent_on(&a, ".item()") && !is_silent_on(&a, "pin_memory"));
	TS_CHECK(is_silent_on(&a, "cudaMallocHost"));
	release_analyzed(&a);
}

/* 40 launches that are captured do not run: to use graphs is no advice for them. */
TS_TEST(launches_that_are_captured)
{
	TS_SCOPED(ts_text) events = { 0 };
	struct analyzed a;

	ts_text_append_str(&events, CALL("0", "2", "1") KERNEL("gemm", "7", "5", "45", "1")
					    NAMED_CALL("cudaStreamBeginCapture", "60", "1", "2"));
	for (int i = 0; i < 40; i++)
		ts_text_printf(&events,
			       "{'ph':'X','cat':'cuda_runtime','name':'cudaLaunchKernel','pid':1,"
			       "'tid':1,'ts':%d,'dur':2,'args':{'correlation':%d}},",
			       70 + 10 * i, 100 + i);
	ts_text_append_str(&events, NAMED_CALL("cudaStreamEndCapture", "500", "10", "3") CALL(
					    "520", "2", "4") KERNEL("gemm", "7", "525", "45", "4"));
	advise(&a, ts_text_cstr(&events), NULL);
	TS_CHECK_INT(cell_of(&a, "graphs are captured", "saves_us")->integer, 450000);
	CHECK_EVIDENCE(&a, "graphs are captured", "in 1 capture; 40 launches were captured");
	/* The same gap counts in all numbers. */
	CHECK_EVIDENCE(&a, "too slowly", "idle for 470 us in 1 gap");
	CHECK_EVIDENCE(&a, "too slowly", "the longest gap lasts 470 us");
	/* Before and after it the device starved for 10 us each. */
	TS_CHECK_INT(cell_of(&a, "too slowly", "saves_us")->integer, 20000);
	release_analyzed(&a);
}

/* ---- programs without a device ---- */

TS_TEST(operators_of_the_host)
{
	struct analyzed a;

	advise(&a,
	       STEP("1", "0", "1000") SLICE("user_annotation", "DataLoader.__next__", "1", "0",
					    "200") OP("aten::mm", "200", "600")
		       OP("aten::to", "800", "110") OP("aten::copy_", "805", "100"),
	       NULL);
	TS_CHECK_INT(cell_of(&a, "operator aten::mm takes more", "saves_us")->integer, 300000);
	CHECK_EVIDENCE(&a, "operator aten::mm", "it ran 1 time for 600 us in total;");
	TS_CHECK_INT(cell_of(&a, "waits for its next batch", "saves_us")->integer, 200000);
	TS_CHECK_INT(cell_of(&a, "tensors are copied", "saves_us")->integer, 100000);
	CHECK_EVIDENCE(&a, "tensors are copied", "mostly for aten::to (1 time, 100 us)");
	TS_CHECK_INT(cell_of(&a, "no operator runs", "saves_us")->integer, 90000);
	CHECK_EVIDENCE(&a, "no operator runs", "mostly in ProfilerStep");
	TS_CHECK_STR(cell_of(&a, "no operator runs", "command")->text,
		     "tracesmith analyze T operators");
	TS_CHECK(has_note(&a.result, "advice is about the host"));
	release_analyzed(&a);
	/* Another thread runs what this one waits for. */
	advise(&a,
	       SLICE("user_annotation", "backward", "1", "0", "1000") OP("aten::mm", "0", "100")
		       OP_BY("aten::mm", "2", "200", "700"),
	       NULL);
	TS_CHECK_INT(cell_of(&a, "no operator runs", "saves_us")->integer, 200000);
	CHECK_EVIDENCE(&a, "no operator runs", "mostly in backward (200 us)");
	release_analyzed(&a);
}

TS_TEST(spans_of_a_program)
{
	struct analyzed a;

	advise(&a, SLICE("app", "load", "1", "0", "300") SLICE("app", "solve", "1", "300", "700"),
	       NULL);
	TS_CHECK_INT(cell_of(&a, "span solve takes more", "saves_us")->integer, 350000);
	TS_CHECK(is_silent_on(&a, "torch"));
	release_analyzed(&a);
}

/* What two threads do at the same time shortens the program by what the busier one saves. */
TS_TEST(time_of_threads_side_by_side)
{
	struct analyzed a;

	advise(&a,
	       SLICE("app", "decode", "1", "0", "1000") SLICE("app", "decode", "2", "0", "400")
		       SLICE("app", "decode", "3", "100", "900"),
	       NULL);
	TS_CHECK_INT(cell_of(&a, "span decode takes more", "saves_us")->integer, 500000);
	CHECK_EVIDENCE(&a, "span decode",
		       "3 times for 2.3 ms in total, 1 ms of it in the busiest "
		       "thread; twice as fast, it would save half of that");
	release_analyzed(&a);
}

TS_TEST(many_short_operators)
{
	TS_SCOPED(ts_text) events = { 0 };
	struct analyzed a;

	for (int i = 0; i < 200; i++)
		ts_text_printf(&events,
			       "{'ph':'X','cat':'cpu_op','name':'aten::add','pid':1,'tid':1,"
			       "'ts':%d,'dur':4},",
			       5 * i);
	advise(&a, ts_text_cstr(&events), NULL);
	TS_CHECK_INT(cell_of(&a, "many operators are so short", "saves_us")->integer, 400000);
	CHECK_EVIDENCE(&a, "so short", "200 operators shorter than 10 us took 800 us");
	release_analyzed(&a);
}

/* Main thread: runs in `work` for 400 us, waits for the GIL for 200, is idle for 400. */
#define SAMPLE(tid, ts, frame, state)                                                             \
	"{'ph':'P','name':'python','pid':1,'tid':" tid ",'ts':" ts ",'weight':100000,'sf':" frame \
	",'tracesmith':{'state':'" state "'}},"

/* Advises on samples of MainThread (tid 1) and a helper (tid 2) of one process. */
static void advise_samples(struct analyzed *ret, const char *samples)
{
	TS_SCOPED(ts_text) text = { 0 };
	char source[] = "/tmp/tracesmith-json-XXXXXX";
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	int fd = mkstemp(source);

	*ret = (struct analyzed){ 0 };
	TS_CHECK(fd >= 0);
	ts_text_append_str(
		&text,
		"{'tracesmith':{'format':1,'rows':{'source':[{'id':1,'name':'run'}],"
		"'process':[{'id':1,'source':1,'pid':1,'name':'python3'}],"
		"'thread':[{'id':1,'process':1,'tid':1,'name':'MainThread','chrome':[1,1]},"
		"{'id':2,'process':1,'tid':2,'name':'loader','chrome':[1,2]}]}},"
		"'stackFrames':{'1':{'name':'<module>','file':'x.py','line':1,'kind':'python'},"
		"'2':{'name':'work.<locals>.<lambda>','file':'x.py','line':2,'kind':'python','parent':'1'},"
		"'3':{'name':'Condition.wait','file':'t.py','line':3,'kind':'python'}},"
		"'traceEvents':[");
	ts_text_append_str(&text, samples);
	ts_text_append_str(&text, "{'ph':'P','name':'python','pid':1,'tid':1,'ts':1000,"
				  "'weight':100000,'sf':1,'tracesmith':{'state':'idle'}}]}");
	for (size_t i = 0; i < text.length; i++)
		if (text.data[i] == '\'')
			text.data[i] = '"';
	TS_CHECK_INT(write(fd, text.data, text.length), (ssize_t)text.length);
	close(fd);
	ret->loaded.readers[ret->loaded.count++] = read_imported(source);
	unlink(source);
	load_readers(&ret->loaded, &options);
	prepare_analysis(ret);
	run_analysis(ret, &ts_analysis_advice);
}

#define MAIN_SAMPLES                               \
	SAMPLE("1", "0", "2", "running")           \
	SAMPLE("1", "100", "2", "running")         \
	SAMPLE("1", "200", "2", "running")         \
	SAMPLE("1", "300", "2", "running")         \
	SAMPLE("1", "400", "1", "waiting for gil") \
	SAMPLE("1", "500", "1", "waiting for gil") \
	SAMPLE("1", "600", "1", "idle")            \
	SAMPLE("1", "700", "1", "idle")            \
	SAMPLE("1", "800", "1", "idle")

TS_TEST(sampled_stacks)
{
	struct analyzed a;

	advise_samples(&a, MAIN_SAMPLES);
	TS_CHECK_INT(cell_of(&a, "function work.<locals>.<lambda> (x.py) runs more", "saves_us")
			     ->integer,
		     200000);
	TS_CHECK_INT(cell_of(&a, "wait for the GIL", "saves_us")->integer, 200000);
	TS_CHECK_INT(cell_of(&a, "is idle", "saves_us")->integer, 400000);
	CHECK_EVIDENCE(&a, "is idle", "40 % of its samples; mostly in <module>");
	TS_CHECK_STR(cell_of(&a, "is idle", "command")->text,
		     "tracesmith analyze T functions --idle");
	release_analyzed(&a);
}

/*
 * A helper that has more samples than the main thread, and waits: neither is it the main thread,
 * nor would a faster wait save anything. What both run counts for the busier one.
 */
TS_TEST(a_helper_that_waits)
{
	struct analyzed a;

	advise_samples(
		&a,
		MAIN_SAMPLES SAMPLE("2", "0", "3", "running") SAMPLE("2", "100", "3", "running")
			SAMPLE("2", "200", "3", "running") SAMPLE("2", "300", "3", "running")
				SAMPLE("2", "400", "3", "running") SAMPLE(
					"2", "500", "2", "running") SAMPLE("2", "600", "3", "idle")
					SAMPLE("2", "700", "3", "idle")
						SAMPLE("2", "800", "3", "idle")
							SAMPLE("2", "850", "3", "idle")
								SAMPLE("2", "900", "3", "idle"));
	TS_CHECK(is_silent_on(&a, "loader"));
	TS_CHECK(is_silent_on(&a, "Condition.wait"));
	TS_CHECK_INT(cell_of(&a, "thread MainThread is idle", "saves_us")->integer, 400000);
	TS_CHECK_INT(cell_of(&a, "function work.", "saves_us")->integer, 200000);
	CHECK_EVIDENCE(&a, "function work.",
		       "500 us of 1 ms in which threads were sampled running, "
		       "400 us of it in one thread");
	release_analyzed(&a);
}

static const char *name_in_advice(const char *name)
{
	static struct ts_text text;

	ts_text_clear(&text);
	ts_advice_append_name(&text, name);
	return ts_text_cstr(&text);
}

TS_TEST(names_of_functions)
{
	TS_CHECK_STR(name_in_advice(""), "");
	TS_CHECK_STR(name_in_advice("void "), "");
	TS_CHECK_STR(name_in_advice("void f<4>(int)"), "f");
	TS_CHECK_STR(name_in_advice("f (int)"), "f");
	TS_CHECK_STR(name_in_advice("<module>"), "<module>");
	TS_CHECK_STR(
		name_in_advice(
			"void a_library_of_kernels_for_all_that_there_is_on_this_earth_kernel_AB"),
		"a_library_of_kernels_for_all_t...ere_is_on_this_earth_kernel_AB");
}
