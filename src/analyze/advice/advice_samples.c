/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of sampled stacks: the function that runs most, threads that wait for Python's lock, a
 * main thread that is idle. They read the tables of `functions`.
 */
#include <math.h>
#include <string.h>

#include "analyze/advice/advice.h"
#include "analyze/statistics.h"

/* A row of a table of results, by key. */
static const struct ts_cell *cell_of(const struct ts_result_table *table, size_t row,
				     const char *key)
{
	for (size_t i = 0; i < table->column_count; i++)
		if (!strcmp(table->columns[i].key, key))
			return &table->cells[row * table->column_count + i];
	return NULL;
}

/* A time, or 0; times are missing if the samples have none. */
static int64_t time_of(const struct ts_result_table *table, size_t row, const char *key)
{
	const struct ts_cell *cell = cell_of(table, row, key);

	return !cell || cell->none ? 0 : cell->integer;
}

static double share_of(const struct ts_result_table *table, size_t row, const char *key)
{
	const struct ts_cell *cell = cell_of(table, row, key);

	return !cell || cell->none ? 0 : cell->real / 100;
}

static const char *text_of(const struct ts_result_table *table, size_t row, const char *key)
{
	const struct ts_cell *cell = cell_of(table, row, key);

	return !cell || cell->none ? "" : cell->text;
}

static const struct ts_result_table *table_of(const struct ts_result *result, const char *name)
{
	const struct ts_result_table *table = result->tables;

	while (table && strcmp(table->name, name) != 0)
		table = table->next;
	return table;
}

/* ---- findings ---- */

/* To wait faster is no advice, and the state of a thread is not always known. */
static bool is_waiting(const char *function)
{
	static const char *const names[] = { "wait",      "_wait_for_tstate_lock",
					     "acquire",   "select",
					     "poll",      "sleep",
					     "nanosleep", "accept" };
	const char *name = function + strlen(function);
	size_t length;

	while (name > function && name[-1] != '.' && name[-1] != ':')
		name--;
	for (size_t i = 0; i < TS_ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	length = strlen(name);
	return length > 5 && !strcmp(name + length - 5, "_wait");
}

static int advise_function(struct ts_advisor *advisor, const struct ts_result_table *functions)
{
	struct ts_text finding = { 0 }, evidence = { 0 };
	const char *file;
	int64_t all = 0, most = 0, busiest;
	size_t best = 0;

	for (size_t i = 0; i < ts_result_rows(functions); i++) {
		int64_t ns = time_of(functions, i, "running_us");

		all = ts_ns_add(all, ns);
		if (ns > most && !is_waiting(text_of(functions, i, "function"))) {
			most = ns;
			best = i;
		}
	}
	if (!most)
		return TS_OK;
	busiest = time_of(functions, best, "busiest_thread_us");
	file = text_of(functions, best, "file");
	ts_text_append_str(&finding, "function ");
	ts_advice_append_name(&finding, text_of(functions, best, "function"));
	if (*file)
		ts_text_printf(&finding, " (%s)", file);
	ts_text_append_str(&finding, " runs more than any other: look there first");
	ts_text_printf(&evidence,
		       "without what it calls, it ran for %s of %s in which threads were sampled "
		       "running",
		       TS_ADVICE_TIME(most), TS_ADVICE_TIME(all));
	if (busiest < most)
		ts_text_printf(&evidence, ", %s of it in one thread", TS_ADVICE_TIME(busiest));
	ts_text_append_str(&evidence, "; twice as fast, it would save half of that");
	return ts_advise(advisor, busiest / 2, "functions", &finding, &evidence);
}

/* Of all threads the one that waits longest: others wait at the same time. */
static int advise_gil(struct ts_advisor *advisor, const struct ts_result_table *threads)
{
	struct ts_text finding = { 0 }, evidence = { 0 };
	double all = 0, most = 0;
	size_t worst = 0;

	for (size_t i = 0; i < ts_result_rows(threads); i++) {
		double ns = (double)time_of(threads, i, "time_us") *
			    share_of(threads, i, "waits_for_gil_pct");

		all += ns;
		if (ns > most) {
			most = ns;
			worst = i;
		}
	}
	if (!(most > 0))
		return TS_OK;
	ts_text_append_str(
		&finding,
		"Python threads wait for the GIL; use processes, or do the work in code that releases it");
	ts_text_printf(&evidence, "threads waited for it for %s in total, %s most: %s (%.0f %%)",
		       TS_ADVICE_TIME(ts_ns_of(all)), text_of(threads, worst, "thread"),
		       TS_ADVICE_TIME(ts_ns_of(most)),
		       100 * share_of(threads, worst, "waits_for_gil_pct"));
	return ts_advise(advisor, ts_ns_of(most), "functions", &finding, &evidence);
}

/* The first main thread; none: its row is the number of rows. */
static size_t main_thread(const struct ts_result_table *threads)
{
	size_t row = 0;

	while (row < ts_result_rows(threads) && !cell_of(threads, row, "is_main")->integer)
		row++;
	return row;
}

/* Other threads are there to wait: nothing is saved if they do not. */
static int advise_idle_thread(struct ts_advisor *advisor, const struct ts_result_table *threads)
{
	struct ts_text finding = { 0 }, evidence = { 0 };
	size_t row = main_thread(threads);
	double idle_ns;

	if (row == ts_result_rows(threads))
		return TS_OK;
	idle_ns = (double)time_of(threads, row, "time_us") * share_of(threads, row, "idle_pct");
	ts_text_printf(&finding,
		       "thread %s is idle: look at what it waits for (other processes, files, the "
		       "network, locks; before Python 3.15 also the GIL)",
		       text_of(threads, row, "thread"));
	ts_text_printf(&evidence, "it was idle for %s, %.0f %% of its samples; mostly in ",
		       TS_ADVICE_TIME(ts_ns_of(idle_ns)), 100 * share_of(threads, row, "idle_pct"));
	ts_advice_append_name(&evidence, text_of(threads, row, "idle_function"));
	return ts_advise(advisor, ts_ns_of(idle_ns), "functions --idle", &finding, &evidence);
}

/* ---- the check ---- */

static bool has_samples(const struct ts_work *work)
{
	for (uint32_t i = 0; i < work->trace_count; i++)
		if (ts_reader_rows(work->readers[i], TS_TABLE_SAMPLE))
			return true;
	return false;
}

/* A host that only drives a device may well be idle: that is not advised on. */
static int advise_all(struct ts_advisor *advisor, const struct ts_result *samples)
{
	const struct ts_result_table *functions = table_of(samples, "functions");
	const struct ts_result_table *threads = table_of(samples, "threads");
	bool is_host = advisor->work->command_count == 0;
	int code = TS_OK;

	if (functions && is_host)
		code = advise_function(advisor, functions);
	if (!code && threads)
		code = advise_gil(advisor, threads);
	if (!code && threads && is_host)
		code = advise_idle_thread(advisor, threads);
	return code;
}

int ts_advise_samples(struct ts_advisor *advisor)
{
	bool idle = advisor->request->options.idle;
	struct ts_result samples;
	int code;

	if (!has_samples(advisor->work))
		return TS_OK;
	ts_result_init(&samples, advisor->result->start);
	advisor->request->options.idle = true;
	code = ts_analysis_functions.run(advisor->request, &samples, advisor->err);
	advisor->request->options.idle = idle;
	if (!code)
		code = advise_all(advisor, &samples);
	ts_result_release(&samples);
	return code;
}
