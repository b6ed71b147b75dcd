/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of analyses: runs one on a few events and compares selected columns as lines of text.
 * Times are in ns; "-" means no value.
 */
#ifndef TS_TESTS_UNIT_ANALYZE_ANALYZE_SUPPORT_H
#define TS_TESTS_UNIT_ANALYZE_ANALYZE_SUPPORT_H

#include "analyze/analyze.h"
#include "unit/state/work/work_support.h"

#define COPY(stream, ts, dur, correlation)                                                \
	ON_DEVICE("0", "gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", stream, ts, dur, \
		  correlation)
#define ALL_REDUCE(stream, ts, dur, correlation) \
	KERNEL("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", stream, ts, dur, correlation)

/* A job of one or two ranks, and the result of an analysis. */
struct analyzed {
	struct loaded loaded;
	struct ts_analyze_request request;
	struct ts_result result;
};

/* To be called after its traces were loaded. */
static inline void prepare_analysis(struct analyzed *analyzed)
{
	ts_analyze_request_init(&analyzed->request, analyzed->loaded.work);
	ts_result_init(&analyzed->result, 0);
}

/* `second` may be NULL. */
static inline void load_ranks(struct analyzed *analyzed, enum ts_rounding rounding,
			      const char *first, const char *second)
{
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;

	options.rounding = rounding;
	options.load_flags = TS_WORK_SLICES;
	load_events(&analyzed->loaded, &options, first, second);
	prepare_analysis(analyzed);
}

/* "not shown: on device" must name one column. */
static inline void check_titles_differ(const struct ts_result *result)
{
	for (const struct ts_result_table *table = result->tables; table; table = table->next)
		for (size_t i = 0; i < table->column_count; i++)
			for (size_t k = 0; table->columns[i].title && k < i; k++)
				if (table->columns[k].title &&
				    !strcmp(table->columns[i].title, table->columns[k].title))
					ts_test_fail(__FILE__, __LINE__,
						     "two columns of '%s' are called '%s'",
						     table->name, table->columns[i].title);
}

static inline void run_analysis(struct analyzed *analyzed, const struct ts_analysis *analysis)
{
	struct ts_error err;

	if (analysis->run(&analyzed->request, &analyzed->result, &err))
		ts_test_fail(__FILE__, __LINE__, "%s: %s", analysis->name, err.message);
	check_titles_differ(&analyzed->result);
}

static inline void release_analyzed(struct analyzed *analyzed)
{
	ts_result_release(&analyzed->result);
	ts_analyze_request_release(&analyzed->request);
	unload(&analyzed->loaded);
}

/* ---- results as text ---- */

static inline const struct ts_result_table *table_named(const struct ts_result *result,
							const char *name)
{
	const struct ts_result_table *table = result->tables;

	while (table && strcmp(table->name, name) != 0)
		table = table->next;
	if (!table)
		ts_test_fail(__FILE__, __LINE__, "no table '%s'", name);
	return table;
}

static inline size_t column_named(const struct ts_result_table *table, const char *key,
				  size_t length)
{
	for (size_t i = 0; i < table->column_count; i++)
		if (strlen(table->columns[i].key) == length &&
		    memcmp(table->columns[i].key, key, length) == 0)
			return i;
	ts_test_fail(__FILE__, __LINE__, "no column '%.*s'", (int)length, key);
}

static inline void print_cell(struct ts_text *out, const struct ts_cell *cell,
			      enum ts_cell_type type)
{
	if (cell->none)
		ts_text_append_str(out, "-");
	else if (type == TS_CELL_TEXT)
		ts_text_append_str(out, cell->text);
	else if (type == TS_CELL_REAL || type == TS_CELL_PERCENT)
		ts_text_printf(out, "%.3f", cell->real);
	else
		ts_text_printf(out, "%lld", (long long)cell->integer);
}

/* Columns by key, separated by blanks; one line per row. */
static inline void check_rows_(const char *file, int line, const struct ts_result *result,
			       const char *name, const char *keys, const char *expected)
{
	const struct ts_result_table *table = table_named(result, name);
	TS_SCOPED(ts_text) out = { 0 };

	for (size_t row = 0; row < ts_result_rows(table); row++) {
		for (const char *key = keys; *key; key += *key == ' ') {
			size_t length = strcspn(key, " ");
			size_t column = column_named(table, key, length);

			if (key != keys)
				ts_text_append_str(&out, " ");
			print_cell(&out, &table->cells[row * table->column_count + column],
				   table->columns[column].type);
			key += length;
		}
		ts_text_append_str(&out, "\n");
	}
	ts_test_check_str(file, line, keys, ts_text_cstr(&out), expected);
}
#define CHECK_ROWS(analyzed, table, keys, expected) \
	check_rows_(__FILE__, __LINE__, &(analyzed)->result, table, keys, expected)

/* Does a note contain this text? */
static inline bool has_note(const struct ts_result *result, const char *text)
{
	for (const struct ts_result_note *note = result->notes; note; note = note->next)
		if (strstr(note->text, text))
			return true;
	return false;
}

/* One rank, one analysis, one table. */
static inline void check_analysis_(const char *file, int line, const struct ts_analysis *analysis,
				   enum ts_rounding rounding, const char *events, const char *table,
				   const char *keys, const char *expected)
{
	struct analyzed analyzed;

	load_ranks(&analyzed, rounding, events, NULL);
	run_analysis(&analyzed, analysis);
	check_rows_(file, line, &analyzed.result, table, keys, expected);
	release_analyzed(&analyzed);
}
#define CHECK_EXACT(name, events, table, keys, expected)                                          \
	check_analysis_(__FILE__, __LINE__, &ts_analysis_##name, TS_ROUNDING_NONE, events, table, \
			keys, expected)
#define CHECK_HTA(name, events, table, keys, expected)                                           \
	check_analysis_(__FILE__, __LINE__, &ts_analysis_##name, TS_ROUNDING_HTA, events, table, \
			keys, expected)

#endif
