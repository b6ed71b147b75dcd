/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results keep their contents in order; missing values stay missing; the table of analyses is
 * consistent.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <tracesmith/schema.h>

#include "analyze/analyze.h"
#include "analyze/result.h"

#include "unit/runner.h"

static const struct ts_result_column columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER }, { "name", "name", TS_CELL_TEXT },
	{ "idle_us", "idle", TS_CELL_TIME }, { "share_pct", "share", TS_CELL_PERCENT },
	{ "at_ns", "at", TS_CELL_INSTANT },  { "size_bytes", "size", TS_CELL_BYTES },
	{ "ratio", "ratio", TS_CELL_REAL },  { "good", "good", TS_CELL_BOOL },
};

#define COLUMNS TS_ARRAY_SIZE(columns)

static void add_row(struct ts_result_table *table, int64_t number)
{
	ts_cell_integer(table, number);
	ts_cell_format(table, "kernel %" PRId64, number);
	ts_cell_time(table, number * 1000);
	ts_cell_percent(table, (double)number / 2);
	ts_cell_instant(table, number + 7);
	ts_cell_bytes(table, number << 10);
	ts_cell_real(table, 1.5);
	ts_cell_bool(table, number % 2);
}

TS_TEST(cells_stay_in_order)
{
	struct ts_result result;
	struct ts_result_table *table;

	ts_result_init(&result, 100);
	table = ts_result_table(&result, "things", columns, COLUMNS);
	for (int64_t i = 0; i < 5000; i++)
		add_row(table, i);
	TS_CHECK_INT(ts_result_status(&result, NULL), 0);
	TS_CHECK_INT(ts_result_rows(table), 5000);
	for (size_t i = 0; i < 5000; i++) {
		const struct ts_cell *cells = &table->cells[i * COLUMNS];
		char name[32];

		snprintf(name, sizeof(name), "kernel %zu", i);
		TS_CHECK_INT(cells[0].integer, i);
		TS_CHECK_STR(cells[1].text, name);
		TS_CHECK_INT(cells[2].integer, i * 1000);
		TS_CHECK(cells[3].real == (double)i / 2);
		TS_CHECK_INT(cells[4].integer, i + 7);
		TS_CHECK_INT(cells[5].integer, i << 10);
		TS_CHECK(cells[6].real == 1.5);
		TS_CHECK_INT(cells[7].integer, i % 2);
		for (size_t c = 0; c < COLUMNS; c++)
			TS_CHECK(!cells[c].none);
	}
	ts_result_release(&result);
}

TS_TEST(absent_values_are_none)
{
	struct ts_result result;
	struct ts_result_table *table;

	ts_result_init(&result, 0);
	table = ts_result_table(&result, "things", columns, COLUMNS);
	ts_cell_integer(table, TS_ABSENT);
	ts_cell_text(table, NULL);
	ts_cell_time(table, TS_ABSENT);
	ts_cell_percent(table, NAN);
	ts_cell_instant(table, TS_ABSENT);
	ts_cell_bytes(table, TS_ABSENT);
	ts_cell_real(table, NAN);
	ts_cell_none(table);
	TS_CHECK_INT(ts_result_rows(table), 1);
	for (size_t i = 0; i < COLUMNS; i++)
		TS_CHECK(table->cells[i].none);
	ts_result_release(&result);
}

TS_TEST(texts_are_copied)
{
	static const struct ts_result_column one[] = { { "name", "name", TS_CELL_TEXT } };
	char name[] = "before";
	struct ts_result result;
	struct ts_result_table *table;

	ts_result_init(&result, 0);
	table = ts_result_table(&result, "names", one, 1);
	ts_cell_text(table, name);
	ts_result_note(&result, "seen: %s", name);
	memcpy(name, "behind", sizeof(name));
	TS_CHECK_STR(table->cells[0].text, "before");
	TS_CHECK_STR(result.notes->text, "seen: before");
	ts_result_release(&result);
}

TS_TEST(tables_and_notes_keep_their_order)
{
	struct ts_result result;

	ts_result_init(&result, 0);
	TS_CHECK(!result.tables && !result.notes);
	ts_result_table(&result, "first", columns, COLUMNS);
	ts_result_note(&result, "one");
	ts_result_table(&result, "second", columns, 1);
	ts_result_note(&result, "two of %d", 2);
	TS_CHECK_STR(result.tables->name, "first");
	TS_CHECK_STR(result.tables->next->name, "second");
	TS_CHECK(!result.tables->next->next);
	TS_CHECK_INT(ts_result_rows(result.tables->next), 0);
	TS_CHECK_STR(result.notes->text, "one");
	TS_CHECK_STR(result.notes->next->text, "two of 2");
	TS_CHECK(!result.notes->next->next);
	ts_result_release(&result);
}

/*
 * After an allocation failure, which is reported once at the end, all functions may still be
 * called.
 */
TS_TEST(failure_sticks)
{
	struct ts_result result;
	struct ts_result_table *table;
	struct ts_error err;

	ts_result_init(&result, 0);
	table = ts_result_table(&result, "things", columns, COLUMNS);
	result.status = TS_ENOMEM;
	add_row(table, 1);
	ts_cell_text(table, "more");
	TS_CHECK_INT(table->cell_count, 0);
	TS_CHECK_INT(ts_result_status(&result, &err), TS_ENOMEM);
	TS_CHECK(strstr(err.message, "no memory"));
	ts_result_release(&result);
}

TS_TEST(analyses_are_listed)
{
	static const char *const names[] = { "breakdown",  "kernels",        "idle",
					     "overlap",    "launch-latency", "launch-stacks",
					     "queue",      "bandwidth",      "critical-path",
					     "stragglers", "operators",      "annotations",
					     "steps",      "memory",         "functions",
					     "advice" };
	size_t count;
	const struct ts_analysis *const *list = ts_analysis_table(&count);

	TS_CHECK_INT(count, TS_ARRAY_SIZE(names));
	for (size_t i = 0; i < count; i++) {
		TS_CHECK_STR(list[i]->name, names[i]);
		TS_CHECK(list[i]->run && list[i]->summary && list[i]->summary[0]);
		TS_CHECK(ts_analysis_lookup(names[i], strlen(names[i])) == list[i]);
	}
	TS_CHECK(ts_analysis_lookup("launch,idle", 6) == &ts_analysis_launch_latency);
	TS_CHECK(ts_analysis_lookup("launches", 8) == &ts_analysis_launch_stacks);
	TS_CHECK(!ts_analysis_lookup("advise", 6));
	TS_CHECK(!ts_analysis_lookup("", 0));
}

TS_TEST(empty_tables_can_be_dropped)
{
	struct ts_result result;

	ts_result_init(&result, 0);
	ts_result_table(&result, "empty", columns, COLUMNS);
	add_row(ts_result_table(&result, "filled", columns, COLUMNS), 1);
	ts_result_table(&result, "brief", columns, COLUMNS)->left_out = 3;
	ts_result_table(&result, "last", columns, COLUMNS);
	ts_result_drop_empty(&result);
	TS_CHECK_STR(result.tables->name, "filled");
	TS_CHECK_STR(result.tables->next->name, "brief");
	TS_CHECK(!result.tables->next->next);
	/* More can be added. */
	ts_result_table(&result, "next", columns, COLUMNS);
	TS_CHECK_STR(result.tables->next->next->name, "next");
	ts_result_release(&result);
}

TS_TEST(hidden_columns_keep_their_keys)
{
	struct ts_result result;
	struct ts_result_table *table, *other;

	ts_result_init(&result, 0);
	table = ts_result_table(&result, "one", columns, COLUMNS);
	other = ts_result_table(&result, "other", columns, COLUMNS);
	ts_result_hide(table, columns[0].key);
	ts_result_hide(table, columns[1].key);
	TS_CHECK(!table->columns[0].title && !table->columns[1].title);
	TS_CHECK_STR(table->columns[0].key, columns[0].key);
	TS_CHECK(other->columns[0].title && columns[0].title);
	ts_result_release(&result);
}
