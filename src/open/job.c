/* SPDX-License-Identifier: Apache-2.0 */
/* Several traces that belong together. */
#include "open/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/map.h"
#include "trace/trace_totals.h"

#define NAME_BYTES 32

int ts_job_find_duplicate(const char *const *paths, size_t count)
{
	struct ts_pairmap files;
	int duplicate = -1;

	ts_pairmap_init(&files);
	for (size_t i = 0; i < count && duplicate < 0; i++) {
		struct stat status;
		bool is_new = true;

		if (paths[i] && !stat(paths[i], &status))
			ts_pairmap_insert(&files, status.st_dev, status.st_ino, &is_new);
		if (!is_new)
			duplicate = (int)i;
	}
	ts_pairmap_release(&files);
	return duplicate;
}

void ts_job_keep(struct ts_job *job, void *kept, void (*release_kept)(void *kept))
{
	if (job->kept)
		job->release_kept(job->kept);
	job->kept = kept;
	job->release_kept = release_kept;
}

/* `name`: of the operand, copied. */
static int add(struct ts_job *job, struct ts_reader *reader, const char *name, struct ts_error *err)
{
	const char *copy = ts_arena_strdup_len(&job->arena, name, strlen(name));

	if (!copy ||
	    ts_grow_array((void **)&job->readers, &job->capacity, job->count + 1,
			  sizeof(struct ts_reader *)) ||
	    ts_grow_array((void **)&job->names, &job->name_capacity, job->count + 1,
			  sizeof(const char *)))
		return ts_error_set(err, TS_ENOMEM, "no memory for another trace of the job");
	ts_job_keep(job, NULL, NULL);
	job->names[job->count] = copy;
	job->readers[job->count++] = reader;
	job->start = TS_MIN(job->start, ts_trace_start(reader));
	return TS_OK;
}

static int open_operand(struct ts_job *job, const char *operand,
			const struct ts_open_options *options, struct ts_error *err)
{
	TS_AUTO(ts_reader) reader = NULL;
	int rc = ts_open(&reader, operand, options, err);

	if (!rc)
		rc = add(job, reader, operand, err);
	if (!rc)
		(void)TS_STEAL(reader);
	return rc;
}

int ts_job_open(struct ts_job **ret_job, const char *const *operands, size_t count,
		const struct ts_open_options *options, struct ts_error *err)
{
	TS_AUTO(ts_job) job = NULL;
	int duplicate, rc = TS_OK;

	if (!ret_job || (count && !operands))
		return ts_error_set(err, TS_EINVAL, "a job needs traces");
	duplicate = ts_job_find_duplicate(operands, count);
	if (duplicate >= 0)
		return ts_error_set(err, TS_EINVAL, "'%s' is given twice", operands[duplicate]);
	job = calloc(1, sizeof(*job));
	if (!job)
		return ts_error_set(err, TS_ENOMEM, "no memory to open %zu traces", count);
	ts_arena_init(&job->arena);
	job->start = INT64_MAX;
	for (size_t i = 0; i < count && !rc; i++)
		rc = open_operand(job, operands[i], options, err);
	if (rc)
		return rc;
	*ret_job = TS_STEAL(job);
	return TS_OK;
}

int ts_job_add(struct ts_job *job, struct ts_reader *reader, struct ts_error *err)
{
	if (!job || !reader)
		return ts_error_set(err, TS_EINVAL, "there is no trace to add, or no job");
	for (size_t i = 0; i < job->count; i++)
		if (job->readers[i] == reader)
			return ts_error_set(err, TS_EINVAL, "the job has this trace already");
	return add(job, reader, "the trace", err);
}

int ts_job_add_pid(struct ts_job *job, pid_t pid, const struct ts_open_options *options,
		   struct ts_error *err)
{
	TS_AUTO(ts_reader) reader = NULL;
	char name[NAME_BYTES];
	int rc;

	if (!job)
		return ts_error_set(err, TS_EINVAL, "there is no job to add process %d to",
				    (int)pid);
	rc = ts_open_pid(&reader, pid, options, err);
	snprintf(name, sizeof(name), "process %" PRId64, (int64_t)pid);
	if (!rc)
		rc = add(job, reader, name, err);
	if (!rc)
		(void)TS_STEAL(reader);
	return rc;
}

void ts_job_close(struct ts_job *job)
{
	if (!job)
		return;
	ts_job_keep(job, NULL, NULL);
	for (size_t i = 0; i < job->count; i++)
		ts_reader_close(job->readers[i]);
	free(job->readers);
	free(job->names);
	ts_arena_release(&job->arena);
	free(job);
}

size_t ts_job_count(const struct ts_job *job)
{
	return job->count;
}

struct ts_reader *ts_job_reader(const struct ts_job *job, size_t index)
{
	return index < job->count ? job->readers[index] : NULL;
}

int64_t ts_job_start(const struct ts_job *job)
{
	return job->count ? job->start : TS_ABSENT;
}
