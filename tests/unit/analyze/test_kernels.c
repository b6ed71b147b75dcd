/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels on small traces: types and their combinations, names and their numbers, and HTA's list.
 */
#include "unit/analyze/analyze_support.h"

TS_TEST(types_are_told_apart_where_they_run_at_once)
{
	/*
	 * compute 0-10, communication 5-20, a copy 8-30: 5 alone, 3 both, 2 all three, then
	 * communication and memory.
	 */
	const char *events = KERNEL("a", "7", "0", "10", "1") ALL_REDUCE("8", "5", "15", "2")
		COPY("9", "8", "22", "3");

	CHECK_EXACT(kernels, events, "types", "type sum_us percentage",
		    "memory 10000 33.333\n"
		    "communication overlapping memory 10000 33.333\n"
		    "compute 5000 16.667\n"
		    "compute overlapping communication 3000 10.000\n"
		    "compute overlapping communication overlapping memory 2000 6.667\n");
}

TS_TEST(types_of_all_ranks_are_summed)
{
	struct analyzed analyzed;

	load_ranks(&analyzed, TS_ROUNDING_NONE, KERNEL("a", "7", "0", "10", "1"),
		   KERNEL("a", "7", "0", "20", "1") COPY("7", "30", "10", "2"));
	run_analysis(&analyzed, &ts_analysis_kernels);
	CHECK_ROWS(&analyzed, "types", "type sum_us percentage",
		   "compute 30000 75.000\nmemory 10000 25.000\n");
	release_analyzed(&analyzed);
}

TS_TEST(numbers_of_a_name_are_those_of_its_commands)
{
	const char *events = KERNEL("a", "7", "0", "1", "1") KERNEL("a", "7", "10", "2", "2")
		KERNEL("a", "8", "20", "3", "3") KERNEL("a", "7", "30", "10.001", "4")
			KERNEL("b", "7", "50", "40", "5");

	CHECK_EXACT(kernels, events, "kernels",
		    "rank name type count sum_us share_pct min_us max_us mean_us",
		    "0 b compute 1 40000 71.427 40000 40000 40000\n"
		    "0 a compute 4 16001 28.573 1000 10001 4000\n");
	CHECK_EXACT(kernels, events, "kernels", "name std_us p50_us p90_us p99_us",
		    "b - 40000 40000 40000\n"
		    "a 4083 2500 7901 9791\n");
}

TS_TEST(a_deviation_of_one_value_is_none)
{
	const char *events = KERNEL("a", "7", "0", "1", "1");

	CHECK_EXACT(kernels, events, "kernels", "name std_us", "a -\n");
	CHECK_HTA(kernels, events, "kernels", "name std_us", "a 0\n");
}

TS_TEST(ranks_of_a_name_stand_below_each_other)
{
	struct analyzed analyzed;

	/* b takes most on rank 0, a on both together. */
	load_ranks(&analyzed, TS_ROUNDING_NONE,
		   KERNEL("b", "7", "0", "30", "1") KERNEL("a", "7", "40", "20", "2"),
		   KERNEL("c", "7", "0", "1", "1") KERNEL("a", "7", "40", "20", "2"));
	analyzed.request.options.top = 1;
	run_analysis(&analyzed, &ts_analysis_kernels);
	CHECK_ROWS(&analyzed, "kernels", "rank name sum_us share_pct",
		   "0 a 20000 40.000\n1 a 20000 95.238\n0 b 30000 60.000\n1 c 1000 4.762\n");
	/* The one name shown has two rows; a note counts what is omitted. */
	TS_CHECK_INT(table_named(&analyzed.result, "kernels")->shown_rows, 2);
	TS_CHECK(has_note(&analyzed.result,
			  "others: 2 more names, 2 commands, 31 us in all (43.7 %)"));
	release_analyzed(&analyzed);
}

TS_TEST(one_name_of_two_classes_has_two_rows)
{
	/* A kernel may have the name of a copy. */
	const char *events = KERNEL("Memset (Device)", "7", "0", "5", "1")
		ON_DEVICE("0", "gpu_memset", "Memset (Device)", "7", "10", "7", "2");

	CHECK_EXACT(kernels, events, "kernels", "name type count sum_us",
		    "Memset (Device) memory 1 7000\nMemset (Device) compute 1 5000\n");
}

static void add_kernel(struct ts_text *events, int name, int at, int us)
{
	ts_text_printf(events,
		       "{'ph':'X','cat':'kernel','name':'k%02d','pid':0,'tid':7,'ts':%d,'dur':%d,"
		       "'args':{'device':0,'stream':7,'correlation':%d}},",
		       name, at, us, at);
}

/* k01 to k10 of 120, 110 ... 30 us; k11 twice 10, k12 twice 5. */
static void add_twelve_names(struct ts_text *events)
{
	for (int i = 1; i <= 10; i++)
		add_kernel(events, i, 200 * i, 130 - 10 * i);
	add_kernel(events, 11, 2500, 10);
	add_kernel(events, 11, 2600, 10);
	add_kernel(events, 12, 2700, 5);
	add_kernel(events, 12, 2800, 5);
}

TS_TEST(hta_describes_sums_of_names_instead_of_commands)
{
	TS_SCOPED(ts_text) events = { 0 };
	struct analyzed analyzed;

	add_twelve_names(&events);
	/*
	 * More than ten names: HTA keeps those whose running sum is below its 80 % quantile (at
	 * position 8.8 of 0 to 11, so k09 is the last), and describes the sums of the others: no
	 * kernel took the 20 us that it gives as the minimum for k11.
	 */
	CHECK_HTA(kernels, ts_text_cstr(&events), "kernels",
		  "name count sum_us min_us max_us mean_us std_us p50_us",
		  "k01 1 120000 120000 120000 120000 0 -\n"
		  "k02 1 110000 110000 110000 110000 0 -\n"
		  "k03 1 100000 100000 100000 100000 0 -\n"
		  "k04 1 90000 90000 90000 90000 0 -\n"
		  "k05 1 80000 80000 80000 80000 0 -\n"
		  "k06 1 70000 70000 70000 70000 0 -\n"
		  "k07 1 60000 60000 60000 60000 0 -\n"
		  "k08 1 50000 50000 50000 50000 0 -\n"
		  "k09 1 40000 40000 40000 40000 0 -\n"
		  "others 5 60000 10000 30000 20000 10000 -\n");
	/* By default all names are listed, and the note on the rest counts commands. */
	load_ranks(&analyzed, TS_ROUNDING_NONE, ts_text_cstr(&events), NULL);
	run_analysis(&analyzed, &ts_analysis_kernels);
	TS_CHECK_INT(ts_result_rows(table_named(&analyzed.result, "kernels")), 12);
	TS_CHECK_INT(table_named(&analyzed.result, "kernels")->shown_rows, 10);
	TS_CHECK(has_note(&analyzed.result,
			  "others: 2 more names, 4 commands, 30 us in all (3.8 %), "
			  "7.5 us on average, at most 10 us"));
	release_analyzed(&analyzed);
}

TS_TEST(hta_sums_durations_that_rounding_made_negative)
{
	const char *events = KERNEL("a", "7", "10.1", "0.3", "1")
		KERNEL("a", "7", "20.5", "2.5", "2");

	CHECK_EXACT(kernels, events, "kernels", "name sum_us min_us", "a 2800 300\n");
	CHECK_HTA(kernels, events, "kernels", "name sum_us min_us", "a 1000 -1000\n");
}

TS_TEST(a_trace_of_the_host_alone_has_no_kernels)
{
	struct analyzed analyzed;

	for (int rounding = TS_ROUNDING_NONE; rounding <= TS_ROUNDING_HTA; rounding++) {
		load_ranks(&analyzed, (enum ts_rounding)rounding, OP("aten::add", "10", "5"), NULL);
		run_analysis(&analyzed, &ts_analysis_kernels);
		CHECK_ROWS(&analyzed, "types", "type", "");
		CHECK_ROWS(&analyzed, "kernels", "name", "");
		TS_CHECK(has_note(&analyzed.result, "no device activity"));
		release_analyzed(&analyzed);
	}
}
