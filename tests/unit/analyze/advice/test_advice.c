/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Advice: each check finds what a small trace is built to show, with the time that the trace is
 * built to lose, and nothing where there is no evidence.
 */
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
	advise(&a, OP("aten::add", "0", "10"), NULL);
	TS_CHECK_INT(ts_result_rows(table_named(&a.result, "advice")), 0);
	TS_CHECK(has_note(&a.result, "no device work"));
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
