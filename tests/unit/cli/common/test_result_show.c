/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results as text, JSON and CSV: exact numbers, missing values, names that need quotes, truncated
 * lists.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <tracesmith/schema.h>

#include "cli/common/cli_output.h"
#include "cli/common/result_show.h"
#include "cli/common/terminal.h"

#include "unit/runner.h"

static const struct ts_result_column columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER }, { "count", "count", TS_CELL_INTEGER },
	{ "idle_us", "idle", TS_CELL_TIME }, { "share_pct", "share", TS_CELL_PERCENT },
	{ "at_ns", "at", TS_CELL_INSTANT },  { "size_bytes", "size", TS_CELL_BYTES },
	{ "ratio", NULL, TS_CELL_REAL },     { "good", "good", TS_CELL_BOOL },
	{ "name", "name", TS_CELL_TEXT },
};

static void add_row(struct ts_result_table *table, int64_t number, const char *name)
{
	ts_cell_integer(table, number);
	ts_cell_integer(table, number);
	ts_cell_time(table, number);
	ts_cell_percent(table, 12.345);
	ts_cell_instant(table, number == INT64_MAX ? number : 1000 + number);
	ts_cell_bytes(table, 2048);
	ts_cell_real(table, 0.1);
	ts_cell_bool(table, true);
	ts_cell_text(table, name);
}

static void add_nothing(struct ts_result_table *table)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(columns); i++) {
		if (columns[i].type == TS_CELL_REAL)
			ts_cell_real(table, INFINITY);
		else
			ts_cell_none(table);
	}
}

static struct ts_result_table *start(struct ts_result *result)
{
	ts_result_init(result, 1000);
	return ts_result_table(result, "things", columns, TS_ARRAY_SIZE(columns));
}

/* Compares the pending standard output and empties it. */
static void check_output(const char *want)
{
	TS_CHECK_STR(ts_text_cstr(ts_stdout()), want);
	ts_text_release(ts_stdout());
}

TS_TEST(json_is_exact)
{
	struct ts_result result;
	struct ts_result_table *table = start(&result);
	struct ts_error err;

	add_row(table, 1234567, "a \"b\"\n");
	add_row(table, -1, "");
	add_row(table, INT64_MAX, "x");
	add_nothing(table);
	TS_CHECK_INT(ts_result_show_json(&result, &err), 0);
	check_output(
		"[{\"rank\": 1234567, \"count\": 1234567, \"idle_us\": 1234.567, \"share_pct\": 12.345, "
		"\"at_ns\": 1235567, \"size_bytes\": 2048, \"ratio\": 0.1, \"good\": true, "
		"\"name\": \"a \\\"b\\\"\\n\"},\n"
		"{\"rank\": -1, \"count\": -1, \"idle_us\": -0.001, \"share_pct\": 12.345, "
		"\"at_ns\": 999, \"size_bytes\": 2048, \"ratio\": 0.1, \"good\": true, \"name\": \"\"},\n"
		"{\"rank\": 9223372036854775807, \"count\": 9223372036854775807, "
		"\"idle_us\": 9223372036854775.807, \"share_pct\": 12.345, "
		"\"at_ns\": 9223372036854775807, \"size_bytes\": 2048, \"ratio\": 0.1, "
		"\"good\": true, \"name\": \"x\"},\n"
		"{\"rank\": null, \"count\": null, \"idle_us\": null, \"share_pct\": null, "
		"\"at_ns\": null, \"size_bytes\": null, \"ratio\": null, \"good\": null, "
		"\"name\": null}]");
	ts_result_release(&result);
}

TS_TEST(json_of_several_tables_and_of_none)
{
	static const struct ts_result_column one[] = { { "n", "n", TS_CELL_INTEGER } };
	struct ts_result result;
	struct ts_error err;

	ts_result_init(&result, 0);
	TS_CHECK_INT(ts_result_show_json(&result, &err), 0);
	check_output("[]");
	ts_cell_integer(ts_result_table(&result, "first", one, 1), 3);
	ts_result_table(&result, "second", one, 1);
	TS_CHECK_INT(ts_result_show_json(&result, &err), 0);
	check_output("{\"first\": [{\"n\": 3}],\n\"second\": []}");
	ts_result_release(&result);
}

TS_TEST(csv_quotes_what_needs_it)
{
	struct ts_result result;
	struct ts_result_table *table = start(&result);
	struct ts_error err;

	add_row(table, 1, "f<int, 3>(\"x\")");
	add_nothing(table);
	TS_CHECK_INT(ts_result_show_csv(table, &err), 0);
	check_output("rank,count,idle_us,share_pct,at_ns,size_bytes,ratio,good,name\n"
		     "1,1,0.001,12.345,1001,2048,0.1,true,\"f<int, 3>(\"\"x\"\")\"\n"
		     ",,,,,,,,\n");
	ts_result_release(&result);
}

TS_TEST(text_is_for_people)
{
	struct ts_result result;
	struct ts_result_table *table = start(&result);
	struct ts_error err;

	add_row(table, 1234567, "kernel\033[1m");
	add_nothing(table);
	ts_result_note(&result, "a note\nof %d lines", 2);
	TS_CHECK_INT(ts_result_show_text(&result, 0, &err), 0);
	check_output(
		"   rank      count      idle    share           at   size  good  name\n"
		"1234567  1,234,567  1.235 ms  12.35 %  1.234567 ms  2 KiB   yes  kernel\\x1b[1m\n"
		"      -          -         -        -            -      -     -  -\n"
		"\n"
		"a note\\nof 2 lines\n");
	ts_result_release(&result);
}

/* Numbers of steps are names, not counts. */
TS_TEST(numbers_that_name_something_are_not_grouped)
{
	static const struct ts_result_column numbers[] = {
		{ "steps", "steps", TS_CELL_INTEGER },
		{ "slowest", "slowest", TS_CELL_INTEGER },
		{ "last_rank", "last", TS_CELL_INTEGER }
	};
	struct ts_result result;
	struct ts_result_table *table;
	struct ts_error err;

	ts_result_init(&result, 0);
	table = ts_result_table(&result, "numbers", numbers, TS_ARRAY_SIZE(numbers));
	for (size_t i = 0; i < TS_ARRAY_SIZE(numbers); i++)
		ts_cell_integer(table, 1009);
	TS_CHECK_INT(ts_result_show_text(&result, 0, &err), 0);
	check_output("steps  slowest  last\n1,009     1009  1009\n");
	ts_result_release(&result);
}

/* By default lists only; --top applies to all tables. */
TS_TEST(text_cuts_tables)
{
	static const struct ts_result_column one[] = { { "n", "n", TS_CELL_INTEGER } };
	struct ts_result result;
	struct ts_result_table *list, *complete;
	struct ts_error err;

	ts_result_init(&result, 0);
	list = ts_result_table(&result, "a_list", one, 1);
	complete = ts_result_table(&result, "whole", one, 1);
	list->shown_rows = 2;
	for (int64_t i = 0; i < 4; i++) {
		ts_cell_integer(list, i);
		ts_cell_integer(complete, i);
	}
	TS_CHECK_INT(ts_result_show_text(&result, 0, &err), 0);
	check_output("a list:\nn\n0\n1\n... 2 more rows (--top N, or --json)\n\n"
		     "whole:\nn\n0\n1\n2\n3\n");
	TS_CHECK_INT(ts_result_show_text(&result, 3, &err), 0);
	check_output("a list:\nn\n0\n1\n2\n... 1 more row (--top N, or --json)\n\n"
		     "whole:\nn\n0\n1\n2\n... 1 more row (--top N, or --json)\n");
	TS_CHECK_INT(ts_result_show_text(&result, 9, &err), 0);
	check_output("a list:\nn\n0\n1\n2\n3\n\nwhole:\nn\n0\n1\n2\n3\n");
	ts_result_release(&result);
}

/* A table without text columns is for JSON and CSV only. */
TS_TEST(text_leaves_out_tables_without_titles)
{
	static const struct ts_result_column shown[] = { { "n", "n", TS_CELL_INTEGER } };
	static const struct ts_result_column hidden[] = { { "n", NULL, TS_CELL_INTEGER } };
	struct ts_result result;
	struct ts_error err;

	ts_result_init(&result, 0);
	ts_cell_integer(ts_result_table(&result, "before", hidden, 1), 1);
	ts_cell_integer(ts_result_table(&result, "shown", shown, 1), 2);
	ts_cell_integer(ts_result_table(&result, "behind", hidden, 1), 3);
	TS_CHECK_INT(ts_result_show_text(&result, 0, &err), 0);
	check_output("n\n2\n");
	ts_result_release(&result);
}

/* Only the last column shows long names in full; characters are never split. */
TS_TEST(a_paragraph_without_numbers_begins_with_its_text)
{
	static const struct ts_result_column list[] = { { "number", "#", TS_CELL_INTEGER },
							{ "at_most", "at most", TS_CELL_BOOL },
							{ "saves_us", "could save", TS_CELL_TIME },
							{ "text", "finding", TS_CELL_TEXT } };
	struct ts_result result;
	struct ts_result_table *table;
	struct ts_error err;

	ts_result_init(&result, 0);
	table = ts_result_table(&result, "list", list, 4);
	table->as_list = true;
	ts_cell_integer(table, 1);
	ts_cell_none(table);
	ts_cell_time(table, TS_ABSENT);
	ts_cell_text(table, "what");
	for (int bound = 0; bound < 2; bound++) {
		ts_cell_integer(table, 2 + bound);
		ts_cell_bool(table, bound);
		ts_cell_time(table, 5);
		ts_cell_text(table, "why");
	}
	TS_CHECK_INT(ts_result_show_text(&result, 0, &err), 0);
	check_output("1. finding: what\n\n"
		     "2. could save 5 ns\n   finding: why\n\n"
		     "3. could save at most 5 ns\n   finding: why\n");
	ts_result_release(&result);
}

TS_TEST(text_leaves_out_headers_of_nothing)
{
	static const struct ts_result_column short_columns[] = { { "n", "n", TS_CELL_INTEGER } };
	struct ts_result result;
	struct ts_error err;

	ts_result_init(&result, 0);
	ts_result_table(&result, "first", short_columns, 1);
	ts_result_table(&result, "second", short_columns, 1);
	TS_CHECK_INT(ts_result_show_text(&result, 0, &err), 0);
	check_output("first:\nn\n\nsecond:\nn\n");
	ts_result_note(&result, "there is nothing");
	TS_CHECK_INT(ts_result_show_text(&result, 0, &err), 0);
	check_output("there is nothing\n");
	ts_cell_integer(result.tables, 7);
	TS_CHECK_INT(ts_result_show_text(&result, 0, &err), 0);
	check_output("first:\nn\n7\n\nthere is nothing\n");
	ts_result_release(&result);
}

TS_TEST(text_cuts_names_inside_a_line)
{
	static const struct ts_result_column two[] = { { "a", "a", TS_CELL_TEXT },
						       { "b", "b", TS_CELL_TEXT } };
	struct ts_result result;
	struct ts_result_table *table;
	char name[301], want[700];
	struct ts_error err;

	for (size_t i = 0; i < 300; i += 2)
		memcpy(name + i, "\xc3\xa4", 2);
	name[300] = '\0';
	ts_result_init(&result, 0);
	table = ts_result_table(&result, "names", two, 2);
	ts_cell_text(table, name);
	ts_cell_text(table, name);
	TS_CHECK_INT(ts_result_show_text(&result, 0, &err), 0);
	/* 48 characters, "…", and 31. */
	snprintf(want, sizeof(want), "a%79s  b\n%.96s\xe2\x80\xa6%.62s  %s\n", "", name, name,
		 name);
	check_output(want);
	ts_result_release(&result);
}

/* Lines below a row fit into the line: names are shortened, still differ, and keep their location.
 */
TS_TEST(text_fits_lines_below_rows)
{
	static const struct ts_result_column below[] = { { "n", "n", TS_CELL_INTEGER },
							 { "stack", "at", TS_CELL_TEXT } };
	static const char stack[] = "at::native::copy(at::Tensor const&, bool, bool) (copy.cpp:12)"
				    " < run<kernel_that_adds<float, 4>, int>"
				    " < run<kernel_that_adds<float, 8>, int> (run.h:7)"
				    " < wait(std::function<void (int)>) (libwait.so)"
				    " < wait_for(std::function<void (int)>) < main";
	struct ts_result result;
	struct ts_result_table *table;
	struct ts_error err;

	ts_result_init(&result, 0);
	table = ts_result_table(&result, "things", below, TS_ARRAY_SIZE(below));
	table->below = 1u << 1;
	table->divider = " < ";
	ts_cell_integer(table, 1);
	ts_cell_text(table, stack);
	TS_CHECK_INT(ts_result_show_text(&result, 0, &err), 0);
	check_output("n\n1\n"
		     "  at:\n"
		     "    at::native::copy(at::Tensor const&, bool, bool) (copy.cpp:12)\n"
		     "    run<kernel_that_adds<float, 4>, int>\n"
		     "    run<kernel_that_adds<float, 8>, int> (run.h:7)\n"
		     "    wait(std::function<void (int)>) (libwait.so)\n"
		     "    wait_for(std::function<void (int)>)\n"
		     "    main\n");
	*ts_terminal_width_option() = 38;
	TS_CHECK_INT(ts_result_show_text(&result, 0, &err), 0);
	*ts_terminal_width_option() = -1;
	check_output("n\n1\n"
		     "  at:\n"
		     "    copy (copy.cpp:12)\n"
		     "    run<kern\u2026t, 4>, int>\n"
		     "    run<kern\u2026t, 8>, int> (run.h:7)\n"
		     "    wait (libwait.so)\n"
		     "    wait_for\n"
		     "    main\n");
	ts_result_release(&result);
}

TS_TEST(tables_are_chosen_by_name)
{
	static const struct ts_result_column one[] = { { "n", "n", TS_CELL_INTEGER } };
	struct ts_result result;
	const struct ts_result_table *first, *second;

	ts_result_init(&result, 0);
	TS_CHECK(!ts_result_choose_table(&result, NULL));
	first = ts_result_table(&result, "first", one, 1);
	second = ts_result_table(&result, "second", one, 1);
	TS_CHECK(ts_result_choose_table(&result, NULL) == first);
	TS_CHECK(ts_result_choose_table(&result, "second") == second);
	TS_CHECK(!ts_result_choose_table(&result, "third"));
	ts_result_release(&result);
}
