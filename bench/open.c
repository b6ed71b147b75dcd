/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open TRACE [--runs N]: measures opening a trace, with the file in the page cache and after
 * dropping it from there. Prints medians in ms as one JSON line.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tracesmith/reader.h>

#define MAX_RUNS 1000

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void drop_from_cache(const char *path)
{
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return;
	/* Only clean pages are dropped. */
	fdatasync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
}

int main(int argc, char **argv)
{
	double warm[MAX_RUNS], cold[MAX_RUNS];
	struct ts_reader *reader = NULL;
	uint64_t bytes = 0, read = 0;
	size_t chunks = 0;
	int runs = argc > 3 && !strcmp(argv[2], "--runs") ? (int)strtol(argv[3], NULL, 10) : 21;

	if (argc < 2 || runs < 1 || runs > MAX_RUNS) {
		fputs("usage: open TRACE [--runs N]\n", stderr);
		return 2;
	}
	for (int i = 0; i < 2 * runs; i++) {
		int is_warm = i >= runs;
		struct ts_error err;
		double start;

		if (!is_warm)
			drop_from_cache(argv[1]);
		start = now_ms();
		if (ts_reader_open(&reader, argv[1], &err)) {
			fprintf(stderr, "open: %s\n", err.message);
			return 1;
		}
		(is_warm ? warm : cold)[i % runs] = now_ms() - start;
		bytes = ts_reader_state(reader)->file_bytes;
		chunks = ts_reader_chunk_count(reader);
		read = ts_reader_bytes_read(reader);
		ts_reader_close(reader);
	}
	qsort(warm, (size_t)runs, sizeof(*warm), compare);
	qsort(cold, (size_t)runs, sizeof(*cold), compare);
	printf("{\"bench\":\"open\",\"bytes\":%" PRIu64 ",\"chunks\":%zu,\"bytes_read\":%" PRIu64
	       ",\"warm_ms\":%.3f,\"cold_ms\":%.3f}\n",
	       bytes, chunks, read, warm[runs / 2], cold[runs / 2]);
	return 0;
}
