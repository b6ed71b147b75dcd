/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	arrow TRACE [--table NAME] [--columns A,B] [--threads N] [--runs N] [--stream]
 *
 * Reads a table (gpu_op) as an Arrow stream and keeps all batches until the end, as a table in
 * memory does; --stream releases each batch before the next one is asked for. Prints one JSON line:
 * the time of the first run, whose memory is fresh, and the best of the others, which reuse it.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tracesmith/arrow.h>

#define MOST_COLUMNS 64
#define MOST_BATCHES 100000

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct settings {
	const char *table;
	struct ts_arrow_options options;
	bool is_streaming;
};

struct outcome {
	double seconds;
	uint64_t rows, batches;
	size_t columns;
};

static struct ArrowArray batches[MOST_BATCHES];

static int fail(struct ArrowArrayStream *stream)
{
	fprintf(stderr, "arrow: %s\n", stream->get_last_error(stream));
	return 1;
}

static int read_all(struct ArrowArrayStream *stream, const struct settings *settings,
		    struct outcome *outcome)
{
	for (;;) {
		struct ArrowArray array;

		if (outcome->batches == MOST_BATCHES || stream->get_next(stream, &array))
			return fail(stream);
		if (!array.release)
			return 0;
		outcome->rows += (uint64_t)array.length;
		outcome->columns = (size_t)array.n_children;
		if (settings->is_streaming)
			array.release(&array);
		else
			batches[outcome->batches] = array;
		outcome->batches++;
	}
}

static int run_once(struct ts_reader *reader, const struct settings *settings,
		    struct outcome *ret_outcome)
{
	struct outcome outcome = { 0 };
	struct ArrowArrayStream stream;
	struct ts_error err;
	double start = seconds();
	int rc;

	if (ts_arrow_stream(&stream, &reader, 1, settings->table, &settings->options, &err)) {
		fprintf(stderr, "arrow: %s\n", err.message);
		return 1;
	}
	rc = read_all(&stream, settings, &outcome);
	outcome.seconds = seconds() - start;
	for (size_t i = 0; !settings->is_streaming && i < outcome.batches; i++)
		if (batches[i].release)
			batches[i].release(&batches[i]);
	stream.release(&stream);
	*ret_outcome = outcome;
	return rc;
}

static size_t split(char *names, const char **columns)
{
	size_t count = 0;

	for (char *name = strtok(names, ","); name && count < MOST_COLUMNS;
	     name = strtok(NULL, ","))
		columns[count++] = name;
	return count;
}

int main(int argc, char **argv)
{
	static const char *columns[MOST_COLUMNS];
	struct settings settings = { .table = "gpu_op", .options.size = sizeof(settings.options) };
	struct outcome outcome, best = { .seconds = 1e9 };
	double first = 0;
	const char *trace = NULL;
	struct ts_reader *reader;
	struct ts_error err;
	int runs = 7;

	for (int i = 1; i < argc; i++) {
		if (argv[i][0] != '-') {
			trace = argv[i];
		} else if (!strcmp(argv[i], "--stream")) {
			settings.is_streaming = true;
		} else if (i + 1 == argc) {
			return 2;
		} else if (!strcmp(argv[i], "--table")) {
			settings.table = argv[++i];
		} else if (!strcmp(argv[i], "--threads")) {
			settings.options.threads = (int)strtol(argv[++i], NULL, 10);
		} else if (!strcmp(argv[i], "--runs")) {
			runs = (int)strtol(argv[++i], NULL, 10);
		} else if (!strcmp(argv[i], "--columns")) {
			settings.options.columns = columns;
			settings.options.column_count = split(argv[++i], columns);
		} else {
			return 2;
		}
	}
	if (!trace || ts_reader_open(&reader, trace, &err)) {
		fputs("usage: arrow TRACE [--table NAME] [--columns A,B] [--threads N] [--runs N] "
		      "[--stream]\n",
		      stderr);
		return 2;
	}
	for (int i = 0; i <= runs; i++) {
		if (run_once(reader, &settings, &outcome))
			return 1;
		if (!i)
			first = outcome.seconds;
		else if (outcome.seconds < best.seconds)
			best = outcome;
	}
	printf("{\"bench\":\"arrow\",\"rows\":%" PRIu64 ",\"columns\":%zu,\"batches\":%" PRIu64
	       ",\"first_seconds\":%.6f,\"seconds\":%.6f,\"rows_per_second\":%.0f}\n",
	       best.rows, best.columns, best.batches, first, best.seconds,
	       (double)best.rows / best.seconds);
	ts_reader_close(reader);
	return 0;
}
