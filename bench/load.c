/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load [--rate N] [--seconds N] [--threads N] [--rings N] [--steps N]: a program to record while
 * something else is measured. Emits --rate events per second on all threads together (0: none), as
 * many as that makes in --seconds, however long it takes; holds --rings rings of threads that
 * emitted once and sleep; or executes --steps steps and prints the cost of one. Prints one JSON
 * line. Calls getpgid() at the start and end of the steady phase, as a marker for strace.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <tracesmith/emit.h>

#define MAX_THREADS 64
#define MAX_RINGS 4000
#define STEP_BATCH 1000
#define SLEEPER_STACK (64 << 10)

static uint64_t rate, seconds = 1, threads = 1, rings, steps;

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void sleep_until(int64_t when_ns)
{
	struct timespec when = { when_ns / 1000000000, when_ns % 1000000000 };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
}

/* ---- idle rings ---- */

static pthread_barrier_t all_sleep;

static void *sleeper(void *unused)
{
	(void)unused;
	TS_INSTANT("sleeper", "load", TS_INT("n", 1));
	pthread_barrier_wait(&all_sleep);
	pause();
	return NULL;
}

static void make_rings(void)
{
	pthread_attr_t attributes;
	pthread_t id;

	pthread_barrier_init(&all_sleep, NULL, (unsigned int)rings + 1);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, SLEEPER_STACK);
	for (uint64_t i = 0; i < rings; i++)
		if (pthread_create(&id, &attributes, sleeper, NULL)) {
			fputs("load: cannot make so many threads\n", stderr);
			exit(1);
		}
	pthread_barrier_wait(&all_sleep);
}

/* ---- events at a rate ---- */

/* Emits about 1000 bursts per second. Late bursts are not caught up: the rate is never higher. */
static void *emitter(void *unused)
{
	uint64_t mine = rate / threads, total = mine * seconds, burst = mine / 1000 + (mine < 1000);
	int64_t period = (int64_t)((double)burst * 1e9 / (double)mine), due = now_ns();

	(void)unused;
	for (uint64_t done = 0; done < total; done++) {
		int64_t now;

		TS_INSTANT("token", "decode", TS_INT("n", done));
		if ((done + 1) % burst)
			continue;
		due += period;
		now = now_ns();
		if (now < due)
			sleep_until(due);
		else
			due = now;
	}
	return NULL;
}

static void emit_events(void)
{
	pthread_t ids[MAX_THREADS];

	for (uint64_t i = 1; i < threads; i++)
		if (pthread_create(&ids[i], NULL, emitter, NULL))
			exit(1);
	emitter(NULL);
	for (uint64_t i = 1; i < threads; i++)
		pthread_join(ids[i], NULL);
}

/* ---- steps ---- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median batch, in ns. */
static double take_steps(void)
{
	uint64_t batches = (steps + STEP_BATCH - 1) / STEP_BATCH;
	double *costs = calloc(batches, sizeof(*costs)), cost;

	if (!costs)
		exit(1);
	for (uint64_t i = 0; i < batches; i++) {
		int64_t start = now_ns();

		for (int64_t step = 0; step < STEP_BATCH; step++)
			TS_STEP((int64_t)i * STEP_BATCH + step);
		costs[i] = (double)(now_ns() - start) / STEP_BATCH;
		/* Lets the recorder keep up. */
		sleep_until(now_ns() + 1000000);
	}
	qsort(costs, batches, sizeof(*costs), compare);
	cost = costs[batches / 2];
	free(costs);
	return cost;
}

/* ---- main ---- */

static int read_arguments(int argc, char **argv)
{
	static const struct {
		const char *name;
		uint64_t *value;
		uint64_t most;
	} options[] = {
		{ "--rate", &rate, 1000000000 },        { "--seconds", &seconds, 3600 },
		{ "--threads", &threads, MAX_THREADS }, { "--rings", &rings, MAX_RINGS },
		{ "--steps", &steps, 100000000 },
	};
	int i = 1;

	for (; i + 1 < argc; i += 2) {
		size_t option = 0;

		while (option < 5 && strcmp(argv[i], options[option].name) != 0)
			option++;
		if (option == 5)
			return -1;
		*options[option].value = strtoull(argv[i + 1], NULL, 10);
		if (*options[option].value > options[option].most)
			return -1;
	}
	return i == argc && threads ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct rusage usage;
	double step_ns = 0;
	int64_t start;

	if (read_arguments(argc, argv)) {
		fputs("usage: load [--rate N] [--seconds N] [--threads N] [--rings N] [--steps N]\n",
		      stderr);
		return 2;
	}
	make_rings();
	/* Emits the first event of the process and of each site in advance. */
	TS_INSTANT("start", "load");
	(void)!getpgid(0);
	start = now_ns();
	if (steps)
		step_ns = take_steps();
	else if (rate)
		emit_events();
	else
		sleep_until(start + (int64_t)seconds * 1000000000);
	(void)!getpgid(0);
	getrusage(RUSAGE_SELF, &usage);
	printf("{\"bench\":\"load\",\"events\":%" PRIu64 ",\"seconds\":%.3f,\"cpu_seconds\":%.3f"
	       ",\"step_ns\":%.1f}\n",
	       1 + rings + (steps ? steps : rate / threads * threads * seconds),
	       (double)(now_ns() - start) / 1e9,
	       (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6 +
		       (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6,
	       step_ns);
	return 0;
}
