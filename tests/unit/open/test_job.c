/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: opening all or none, adding, order, and what is kept with a job. */
#include "open/job.h"

#include "trace/trace_totals.h"
#include "unit/state/work/work_support.h"

static int released;

static void release(void *kept)
{
	released += *(int *)kept;
}

static void write_trace(char *path)
{
	struct ts_writer *writer = begin_trace(path);
	struct ts_error err;

	TS_CHECK_INT(ts_writer_finish(writer, &err), 0);
	ts_writer_close(writer);
}

TS_TEST(all_or_none)
{
	char a[] = "/tmp/tracesmith-job-XXXXXX", b[] = "/tmp/tracesmith-job-XXXXXX";
	const char *paths[] = { a, b, "/no/such/trace" };
	const char *twice[] = { a, b, a };
	struct ts_job *job = NULL;
	struct ts_error err;

	write_trace(a);
	write_trace(b);
	TS_CHECK_INT(ts_job_open(&job, paths, 3, NULL, &err), TS_ENOTFOUND);
	TS_CHECK_INT(ts_job_open(&job, twice, 3, NULL, &err), TS_EINVAL);
	TS_CHECK(strstr(err.message, "is given twice") != NULL);
	TS_CHECK(!job);
	TS_CHECK_INT(ts_job_open(&job, paths, 2, NULL, &err), 0);
	TS_CHECK_INT(ts_job_count(job), 2);
	TS_CHECK_STR(job->names[1], b);
	TS_CHECK(ts_job_reader(job, 1) && !ts_job_reader(job, 2));
	ts_job_close(job);
	unlink(a);
	unlink(b);
}

TS_TEST(grows)
{
	int one = 1;
	struct ts_job *job;
	struct ts_error err;

	TS_CHECK_INT(ts_job_open(&job, NULL, 0, NULL, &err), 0);
	TS_CHECK_INT(ts_job_start(job), TS_ABSENT);
	TS_CHECK_INT(ts_job_add(job, read_events(SLICE("cpu_op", "x", "1", "20", "1"), 0), &err),
		     0);
	ts_job_keep(job, &one, release);
	TS_CHECK_INT(released, 0);
	/* Another trace: what was loaded of the others is not the job any more. */
	TS_CHECK_INT(ts_job_add(job, read_events(SLICE("cpu_op", "x", "1", "10", "1"), 1), &err),
		     0);
	TS_CHECK_INT(released, 1);
	TS_CHECK_INT(ts_job_count(job), 2);
	TS_CHECK_INT(ts_job_start(job), ts_trace_start(ts_job_reader(job, 1)));
	ts_job_keep(job, &one, release);
	ts_job_close(job);
	TS_CHECK_INT(released, 2);
	ts_job_close(NULL);
}

/* What is not there, or there already, is refused. */
TS_TEST(bad_arguments)
{
	const char *const missing[] = { NULL };
	struct ts_reader *reader = read_events(SLICE("cpu_op", "x", "1", "20", "1"), 0);
	struct ts_reader *other = NULL;
	struct ts_job *job = NULL;
	struct ts_error err;

	TS_CHECK_INT(ts_open(&other, NULL, NULL, &err), TS_EINVAL);
	TS_CHECK_INT(ts_open(NULL, "/no/such/trace", NULL, &err), TS_EINVAL);
	TS_CHECK_INT(ts_open_pid(&other, 0, NULL, NULL), TS_EINVAL);
	TS_CHECK_INT(ts_job_open(&job, NULL, 1, NULL, &err), TS_EINVAL);
	TS_CHECK_INT(ts_job_open(&job, missing, 1, NULL, &err), TS_EINVAL);
	TS_CHECK_INT(ts_job_open(NULL, NULL, 0, NULL, &err), TS_EINVAL);
	TS_CHECK(!job && !other);
	TS_CHECK_INT(ts_job_open(&job, NULL, 0, NULL, &err), 0);
	TS_CHECK_INT(ts_job_add(job, NULL, &err), TS_EINVAL);
	TS_CHECK_INT(ts_job_add(job, reader, &err), 0);
	TS_CHECK_INT(ts_job_add(job, reader, &err), TS_EINVAL);
	TS_CHECK_INT(ts_job_add(NULL, reader, &err), TS_EINVAL);
	TS_CHECK_INT(ts_job_add_pid(NULL, 1, NULL, &err), TS_EINVAL);
	TS_CHECK_INT(ts_job_count(job), 1);
	ts_job_close(job);
}

static void on_text(void *context, const char *text)
{
	(void)text;
	++*(int *)context;
}

/* An older program has no members after its size. */
TS_TEST(options_end_at_their_size)
{
	char path[] = "/tmp/tracesmith-job-XXXXXX";
	struct ts_open_options options = { .warning = on_text };
	struct ts_writer *writer = begin_trace(path);
	struct ts_reader *reader;
	struct ts_error err;
	int warnings = 0;

	/* Not finished. */
	TS_CHECK_INT(ts_writer_flush(writer), 0);
	ts_writer_close(writer);
	options.context = &warnings;
	options.size = sizeof(options);
	TS_CHECK_INT(ts_open(&reader, path, &options, &err), 0);
	ts_reader_close(reader);
	TS_CHECK_INT(warnings, 1);
	options.size = sizeof(options.size);
	TS_CHECK_INT(ts_open(&reader, path, &options, &err), 0);
	ts_reader_close(reader);
	TS_CHECK_INT(warnings, 1);
	unlink(path);
}
