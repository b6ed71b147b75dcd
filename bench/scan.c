/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	scan TRACE [--threads N] [--runs N]    sums gpu_op.start of every chunk
 *	scan TRACE --raw OUT                   writes that column as plain int64 words
 *	scan --raw-file FILE [--threads N]     sums such a file, read with pread: a lower bound
 *
 * Threads take chunks from one counter. The first run warms the page cache and is not counted;
 * prints the best of the others as one JSON line.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <tracesmith/reader.h>

#define RAW_ROWS 65536u
#define MAX_THREADS 64

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct job {
	struct ts_reader *reader; /* or: */
	int fd;
	uint64_t raw_rows;
	_Atomic size_t next;
	_Atomic uint64_t rows;
	_Atomic int64_t sum;
	_Atomic int failed;
};

static int64_t sum_of(const int64_t *values, uint32_t rows)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < rows; i++)
		sum += (uint64_t)values[i];
	return (int64_t)sum;
}

static void *scan_trace(void *argument)
{
	struct job *job = argument;
	size_t chunks = ts_reader_chunk_count(job->reader), at;
	struct ts_batch *batch;
	struct ts_error err;
	uint64_t rows = 0, sum = 0;

	if (ts_batch_new(&batch, job->reader, &err)) {
		job->failed = 1;
		return NULL;
	}
	while ((at = atomic_fetch_add(&job->next, 1)) < chunks) {
		if (ts_reader_chunk(job->reader, at)->table != TS_TABLE_GPU_OP)
			continue;
		if (ts_batch_read(batch, at, TS_MASK_OF(gpu_op, start), &err)) {
			fprintf(stderr, "scan: %s\n", err.message);
			job->failed = 1;
			break;
		}
		rows += batch->rows;
		sum += (uint64_t)sum_of(batch->columns[TS_COLUMN_OF(gpu_op, start)], batch->rows);
	}
	atomic_fetch_add(&job->rows, rows);
	atomic_fetch_add(&job->sum, (int64_t)sum);
	ts_batch_free(batch);
	return NULL;
}

static void *scan_raw(void *argument)
{
	struct job *job = argument;
	int64_t *values = malloc(RAW_ROWS * sizeof(*values));
	uint64_t rows = 0, sum = 0, at;

	while (values &&
	       (at = atomic_fetch_add(&job->next, 1) * (uint64_t)RAW_ROWS) < job->raw_rows) {
		uint64_t left = job->raw_rows - at;
		uint32_t count = left < RAW_ROWS ? (uint32_t)left : RAW_ROWS;
		ssize_t bytes = (ssize_t)(count * sizeof(*values));

		if (pread(job->fd, values, (size_t)bytes, (off_t)(at * sizeof(*values))) != bytes) {
			job->failed = 1;
			break;
		}
		rows += count;
		sum += (uint64_t)sum_of(values, count);
	}
	atomic_fetch_add(&job->rows, rows);
	atomic_fetch_add(&job->sum, (int64_t)sum);
	free(values);
	return NULL;
}

static double run_once(struct job *job, int threads)
{
	void *(*work)(void *) = job->reader ? scan_trace : scan_raw;
	pthread_t handles[MAX_THREADS];
	double start = seconds();

	job->next = 0;
	job->rows = 0;
	job->sum = 0;
	for (int i = 1; i < threads; i++)
		if (pthread_create(&handles[i], NULL, work, job))
			exit(1);
	work(job);
	for (int i = 1; i < threads; i++)
		pthread_join(handles[i], NULL);
	return seconds() - start;
}

static int write_raw(struct ts_reader *reader, const char *path)
{
	FILE *out = fopen(path, "wb");
	struct ts_batch *batch;
	struct ts_error err;
	int result = out ? ts_batch_new(&batch, reader, &err) : TS_EIO;

	for (size_t i = 0; !result && i < ts_reader_chunk_count(reader); i++) {
		if (ts_reader_chunk(reader, i)->table != TS_TABLE_GPU_OP)
			continue;
		result = ts_batch_read(batch, i, TS_MASK_OF(gpu_op, start), &err);
		if (!result)
			fwrite(batch->columns[TS_COLUMN_OF(gpu_op, start)], sizeof(int64_t),
			       batch->rows, out);
	}
	if (out)
		result = fclose(out) ? TS_EIO : result;
	return result ? 1 : 0;
}

int main(int argc, char **argv)
{
	const char *trace = NULL, *raw_out = NULL, *raw_in = NULL;
	struct job job = { .fd = -1 };
	struct ts_error err;
	struct stat status;
	int threads = 1, runs = 7;
	double best = 1e9;

	for (int i = 1; i < argc; i++) {
		if (argv[i][0] != '-')
			trace = argv[i];
		else if (i + 1 == argc)
			return 2;
		else if (!strcmp(argv[i], "--threads"))
			threads = (int)strtol(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--runs"))
			runs = (int)strtol(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--raw"))
			raw_out = argv[++i];
		else if (!strcmp(argv[i], "--raw-file"))
			raw_in = argv[++i];
		else
			return 2;
	}
	if ((!trace && !raw_in) || threads < 1 || threads > MAX_THREADS) {
		fputs("usage: scan TRACE [--threads N] [--runs N] [--raw OUT] | scan --raw-file FILE\n",
		      stderr);
		return 2;
	}
	if (trace && ts_reader_open(&job.reader, trace, &err)) {
		fprintf(stderr, "scan: %s\n", err.message);
		return 1;
	}
	if (raw_out)
		return write_raw(job.reader, raw_out);
	if (raw_in) {
		job.fd = open(raw_in, O_RDONLY);
		if (job.fd < 0 || fstat(job.fd, &status))
			return 1;
		job.raw_rows = (uint64_t)status.st_size / sizeof(int64_t);
	}
	run_once(&job, threads);
	for (int i = 0; i < runs && !job.failed; i++) {
		double took = run_once(&job, threads);

		best = took < best ? took : best;
	}
	printf("{\"bench\":\"%s\",\"rows\":%" PRIu64
	       ",\"threads\":%d,\"seconds\":%.6f,\"rows_per_second\":%.0f,\"sum\":%" PRId64 "}\n",
	       job.reader ? "scan" : "scan_raw", job.rows, threads, best, (double)job.rows / best,
	       job.sum);
	ts_reader_close(job.reader);
	if (job.fd >= 0)
		close(job.fd);
	return job.failed;
}
