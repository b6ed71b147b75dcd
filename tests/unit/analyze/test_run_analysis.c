/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to a job by the library: what is loaded, when it is loaded again, and that an answer
 * does not depend on earlier questions.
 */
#include <tracesmith/analyze.h>
#include <tracesmith/diff.h>
#include <tracesmith/state.h>

#include "analyze/job_work.h"
#include "open/job.h"
#include "unit/analyze/analyze_support.h"

/* Ranks whose clocks differ by 7 us. */
/* clang-format off */
#define RANK(at, late)                                                          \
	CALL("1" at, "1", "1") ALL_REDUCE("7", "1" late, "10", "1")             \
	CALL("2" at, "1", "2") ALL_REDUCE("7", "2" late, "10", "2")             \
	CALL("3" at, "1", "3") KERNEL("gemm", "7", "3" late, "5", "3")
/* clang-format on */

static struct ts_job *open_ranks(void)
{
	struct ts_job *job;
	struct ts_error err;

	TS_CHECK_INT(ts_job_open(&job, NULL, 0, NULL, &err), 0);
	TS_CHECK_INT(ts_job_add(job, read_events(RANK("00", "20"), 0), &err), 0);
	TS_CHECK_INT(ts_job_add(job, read_events(RANK("07", "27"), 1), &err), 0);
	return job;
}

static char *ask(struct ts_job *job, const char *analysis, const struct ts_analyze_options *options)
{
	struct ts_result *result;
	struct ts_error err;
	char *json;

	if (ts_analyze(job, analysis, options, &result, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	TS_CHECK_INT(ts_result_json(result, &json, NULL, &err), 0);
	ts_result_free(result);
	return json;
}

TS_TEST(the_job_keeps_its_work)
{
	struct ts_selection all = { .size = sizeof(all), .flags = TS_SELECT_ALL };
	struct ts_analyze_options options = { .size = sizeof(options), .selection = &all };
	struct ts_job *job = open_ranks();
	const struct ts_job_work *first;
	char *json = ask(job, "breakdown", NULL), *again;

	first = job->kept;
	TS_CHECK(first && first->references == 1 && !first->request.aligned);
	again = ask(job, "breakdown", NULL);
	TS_CHECK(job->kept == first);
	TS_CHECK_STR(json, again);
	free(again);
	/* Times are moved for this one; then the first one needs those of the traces. */
	free(ask(job, "stragglers", NULL));
	first = job->kept;
	TS_CHECK(first->request.aligned);
	again = ask(job, "breakdown", NULL);
	first = job->kept;
	TS_CHECK(!first->request.aligned);
	TS_CHECK_STR(json, again);
	free(again);
	/* Another selection. */
	TS_CHECK_INT(first->selection.flags, 0);
	free(ask(job, "breakdown", &options));
	first = job->kept;
	TS_CHECK_INT(first->selection.flags, TS_SELECT_ALL);
	ts_job_forget(job);
	TS_CHECK(!job->kept);
	free(json);
	ts_job_close(job);
}

TS_TEST(a_cursor_keeps_its_own)
{
	struct ts_job *job = open_ranks();
	struct ts_state_cursor *cursor;
	struct ts_state_span span;
	struct ts_error err;
	int running = 0;

	TS_CHECK_INT(ts_state_open(&cursor, job, TS_STATE_COMMANDS, NULL, &err), 0);
	/* Loads other work, and drops the job's reference. */
	free(ask(job, "breakdown", NULL));
	ts_job_forget(job);
	while (ts_state_next(cursor, &span)) {
		running += span.state == TS_STATE_RUNNING && !span.reason;
		TS_CHECK_INT(span.trace, span.rank);
	}
	TS_CHECK_INT(running, 6);
	ts_state_close(cursor);
	ts_job_close(job);
}

TS_TEST(a_cursor_filters)
{
	const int64_t stream = 7, none = 8;
	struct ts_state_options options = {
		.size = sizeof(options), .streams = &stream, .stream_count = 1, .from = "150us"
	};
	struct ts_job *job = open_ranks();
	struct ts_state_cursor *cursor;
	struct ts_state_span span;
	struct ts_error err;
	int count = 0;

	TS_CHECK_INT(ts_state_open(&cursor, job, TS_STATE_LANES, &options, &err), 0);
	while (ts_state_next(cursor, &span)) {
		count++;
		TS_CHECK_INT(span.stream, 7);
		TS_CHECK(span.start + span.duration > ts_job_start(job) + 150000);
	}
	TS_CHECK(count > 0);
	ts_state_close(cursor);
	options.streams = &none;
	TS_CHECK_INT(ts_state_open(&cursor, job, TS_STATE_LANES, &options, &err), 0);
	TS_CHECK(!ts_state_next(cursor, &span));
	ts_state_close(cursor);
	options.from = "soon";
	TS_CHECK_INT(ts_state_open(&cursor, job, TS_STATE_LANES, &options, &err), TS_EINVAL);
	ts_job_close(job);
}

static int cancel(void *context, uint64_t done, uint64_t total)
{
	(void)done;
	(void)total;
	++*(int *)context;
	return 1;
}

TS_TEST(failures_leave_nothing)
{
	struct ts_analyze_options options = { .size = sizeof(options), .progress = cancel };
	struct ts_job *job = open_ranks();
	struct ts_result *result = NULL;
	struct ts_error err;
	int calls = 0;

	options.context = &calls;
	TS_CHECK_INT(ts_analyze(job, "breakdown", &options, &result, &err), TS_ECANCELED);
	TS_CHECK(calls > 0 && !result && !job->kept);
	TS_CHECK_INT(ts_analyze(job, "breakdown", NULL, &result, NULL), 0);
	ts_result_free(result);
	ts_job_close(job);
}

static enum ts_diff_outcome compare(struct ts_job *a, struct ts_job *b)
{
	enum ts_diff_outcome outcome;
	struct ts_result *result;
	struct ts_error err;

	if (ts_diff(a, b, NULL, &outcome, &result, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	TS_CHECK(ts_result_table_find(result, "changes") != NULL);
	ts_result_free(result);
	return outcome;
}

TS_TEST(jobs_differ)
{
	struct ts_job *a = open_ranks(), *b;
	struct ts_error err;

	TS_CHECK_INT(ts_job_open(&b, NULL, 0, NULL, &err), 0);
	TS_CHECK_INT(
		ts_job_add(
			b,
			read_events(CALL("100", "1", "1") KERNEL("relu", "7", "120", "10", "1"), 0),
			&err),
		0);
	TS_CHECK_INT(compare(a, a), TS_DIFF_IDENTICAL);
	TS_CHECK_INT(compare(a, b), TS_DIFF_DIFFERENT);
	ts_job_close(b);
	ts_job_close(a);
}

/* Outputs are as before. */
TS_TEST(bad_arguments)
{
	struct ts_job *job = open_ranks();
	struct ts_dependency_cursor *edges = NULL;
	struct ts_state_cursor *states = NULL;
	struct ts_result *result = NULL;
	struct ts_error err;

	TS_CHECK_INT(ts_analyze(NULL, "idle", NULL, &result, &err), TS_EINVAL);
	TS_CHECK_INT(ts_analyze(job, NULL, NULL, &result, &err), TS_EINVAL);
	TS_CHECK_INT(ts_analyze(job, "idle", NULL, NULL, &err), TS_EINVAL);
	TS_CHECK_INT(ts_diff(job, NULL, NULL, NULL, &result, &err), TS_EINVAL);
	TS_CHECK_INT(ts_diff(job, job, NULL, NULL, NULL, &err), TS_EINVAL);
	TS_CHECK_INT(ts_state_open(&states, NULL, TS_STATE_LANES, NULL, &err), TS_EINVAL);
	TS_CHECK_INT(ts_state_open(&states, job, (enum ts_state_source)7, NULL, &err), TS_EINVAL);
	TS_CHECK_INT(ts_dependency_open(&edges, NULL, NULL, &err), TS_EINVAL);
	TS_CHECK(!edges && !states && !result && !job->kept);
	ts_job_close(job);
}

TS_TEST(lists)
{
	struct ts_option_info option;
	size_t count = 0;

	for (const struct ts_analysis *analysis; (analysis = ts_analysis_at(count)); count++) {
		TS_CHECK(ts_analysis_find(ts_analysis_name(analysis)) == analysis);
		TS_CHECK(ts_analysis_summary(analysis)[0] != '\0');
		for (size_t i = 0; ts_analysis_option(analysis, i, &option); i++)
			TS_CHECK(option.name && option.doc);
	}
	TS_CHECK(count >= 16);
	TS_CHECK(!ts_analysis_find("nothing"));
}
