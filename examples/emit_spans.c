/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small instrumented program: threads of a simulated inference engine emit spans, instants and
 * counters for a few seconds. Without a recorder they cost nothing. Try
 *
 *	tracesmith record -o spans.sbt -- build/examples/emit_spans
 *	TRACESMITH_OUT=spans.json build/examples/emit_spans --threads 4 --seconds 2
 *
 * and kill it half-way: no event is lost. Prints the number of events emitted.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tracesmith/emit.h>

struct options {
	double seconds;
	long threads;
	long rate; /* requests per second and thread; 0: unlimited */
};

struct worker {
	pthread_t thread;
	const struct options *options;
	int number;
	uint64_t emitted;
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void sleep_ns(int64_t ns)
{
	struct timespec time = { ns / 1000000000, ns % 1000000000 };

	nanosleep(&time, NULL);
}

/*
 * One request, six events: a span, spans of its layers on separate tracks, an instant, a counter.
 * Spans of one track nest or follow each other; viewers drop those that overlap.
 */
static uint64_t serve_request(struct worker *worker, int64_t request, int64_t pause_ns)
{
	int track = 1 + 2 * worker->number;
	uint64_t start;

	TS_BEGIN("request", "engine", TS_INT("id", request), TS_BOOL("first", request == 0));
	start = ts_now();
	TS_SPAN_MS_ON(track, "attention", "layer", 0.02, TS_INT("worker", worker->number));
	TS_SPAN_NS_ON(track + 1, "mlp", "layer", 15000, TS_DOUBLE("load", 0.75));
	sleep_ns(pause_ns);
	TS_INSTANT("token", "engine", TS_STRING("text", request % 2 ? "hello" : "world"));
	TS_COUNTER("queue", "engine", TS_INT("waiting", request % 7));
	TS_SPAN_SINCE("decode", "engine", start);
	TS_END();
	return 6;
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	const struct options *options = worker->options;
	int64_t end = now_ns() + (int64_t)(options->seconds * 1e9);
	int64_t pause_ns = options->rate ? 1000000000 / options->rate : 0;
	char name[16];

	snprintf(name, sizeof(name), "worker %d", worker->number);
	ts_thread_name(name);
	for (int64_t request = 0; now_ns() < end; request++) {
		if (worker->number == 0) {
			TS_STEP(request);
			worker->emitted++;
		}
		worker->emitted += serve_request(worker, request, pause_ns);
	}
	return NULL;
}

static int usage(void)
{
	fputs("usage: emit_spans [--threads N] [--seconds S] [--rate REQUESTS_A_SECOND]\n", stderr);
	return 2;
}

static int parse(int argc, char **argv, struct options *options)
{
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 == argc)
			return usage();
		if (!strcmp(argv[i], "--threads"))
			options->threads = strtol(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--seconds"))
			options->seconds = strtod(argv[i + 1], NULL);
		else if (!strcmp(argv[i], "--rate"))
			options->rate = strtol(argv[i + 1], NULL, 10);
		else
			return usage();
	}
	return options->threads < 1 || options->threads > 1024 || options->seconds < 0 ? usage()
										       : 0;
}

int main(int argc, char **argv)
{
	struct options options = { .seconds = 3, .threads = 2, .rate = 1000 };
	struct worker *workers;
	uint64_t emitted = 0;

	if (parse(argc, argv, &options))
		return 2;
	workers = calloc((size_t)options.threads, sizeof(*workers));
	if (!workers)
		return 1;
	for (int i = 0; i < options.threads; i++) {
		workers[i].options = &options;
		workers[i].number = i;
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) {
			perror("emit_spans: cannot start a thread");
			return 1;
		}
	}
	for (int i = 0; i < options.threads; i++) {
		pthread_join(workers[i].thread, NULL);
		emitted += workers[i].emitted;
	}
	printf("emitted %" PRIu64 " events on %ld threads\n", emitted, options.threads);
	free(workers);
	return 0;
}
