/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures costs of a few nanoseconds. Each subject runs in batches, on several threads at once; a
 * round runs all subjects in turn. The figure of a round is its best batch, which excludes other
 * load on the machine. Prints the best and the median round, and the cost on top of the first
 * subject of the same round, which is the bare read of the counter.
 */
#ifndef TS_BENCH_ROUNDS_H
#define TS_BENCH_ROUNDS_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS_MOST 1000
#define ROUNDS_THREADS 64
#define ROUNDS_SUBJECTS 8
#define ROUNDS_BATCHES 25
#define ROUNDS_WARM_UP 20

struct subject {
	const char *name;
	void (*run)(unsigned int count);
	void (*warm_up)(void);     /* once per thread; or NULL */
	void (*after_batch)(void); /* not measured; or NULL */
	void (*after_round)(void); /* on one thread, while the others wait; or NULL */
};

static struct {
	struct subject subjects[ROUNDS_SUBJECTS];
	unsigned int subject_count, batch;
	unsigned int threads, rounds;
	pthread_barrier_t barrier;
	double figures[ROUNDS_SUBJECTS][ROUNDS_THREADS][ROUNDS_MOST];
} rounds = { .threads = 1, .rounds = 31 };

static inline uint64_t read_counter(void)
{
#if defined(__x86_64__)
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
	uint64_t value;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
	return value;
#else
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, unsigned int count)
{
	qsort(values, count, sizeof(*values), compare_doubles);
	return values[count / 2];
}

/* The first subject. */
static __attribute__((noinline)) void run_counter(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		uint64_t now = read_counter();

		__asm__ volatile("" : : "r"(now) : "memory");
	}
}

static double run_round(const struct subject *subject)
{
	double best = 1e9;

	for (unsigned int i = 0; i < ROUNDS_BATCHES; i++) {
		double start = now_ns(), cost;

		subject->run(rounds.batch);
		cost = (now_ns() - start) / rounds.batch;
		best = cost < best ? cost : best;
		if (subject->after_batch)
			subject->after_batch();
	}
	return best;
}

static void *run_all_rounds(void *argument)
{
	unsigned int thread = (unsigned int)(uintptr_t)argument;

	/* Warms up until buffers have their final size and every page was touched. */
	if (rounds.subjects[1].warm_up)
		rounds.subjects[1].warm_up();
	for (unsigned int i = 0; i < ROUNDS_WARM_UP; i++)
		run_round(&rounds.subjects[1]);
	for (unsigned int round = 0; round < rounds.rounds; round++)
		for (unsigned int i = 0; i < rounds.subject_count; i++) {
			const struct subject *subject = &rounds.subjects[i];

			pthread_barrier_wait(&rounds.barrier);
			rounds.figures[i][thread][round] = run_round(subject);
			pthread_barrier_wait(&rounds.barrier);
			if (thread == 0 && subject->after_round)
				subject->after_round();
		}
	return NULL;
}

static inline int run_threads(void *(*body)(void *))
{
	pthread_t ids[ROUNDS_THREADS];

	pthread_barrier_init(&rounds.barrier, NULL, rounds.threads);
	for (unsigned int i = 1; i < rounds.threads; i++)
		if (pthread_create(&ids[i], NULL, body, (void *)(uintptr_t)i))
			return -1;
	body(NULL);
	for (unsigned int i = 1; i < rounds.threads; i++)
		pthread_join(ids[i], NULL);
	return 0;
}

/* The mean over all threads of a round. */
static double mean_figure(unsigned int subject, unsigned int round)
{
	double sum = 0;

	for (unsigned int thread = 0; thread < rounds.threads; thread++)
		sum += rounds.figures[subject][thread][round];
	return sum / rounds.threads;
}

static void print_subject(unsigned int subject)
{
	const char *name = rounds.subjects[subject].name;
	double values[ROUNDS_MOST] = { 0 }, over[ROUNDS_MOST] = { 0 };

	for (unsigned int round = 0; round < rounds.rounds; round++) {
		values[round] = mean_figure(subject, round);
		over[round] = values[round] - mean_figure(0, round);
	}
	printf(",\"%s_median_ns\":%.2f", name, median(values, rounds.rounds));
	printf(",\"%s_ns\":%.2f", name, values[0]);
	if (subject)
		printf(",\"%s_over_counter_ns\":%.2f", name, median(over, rounds.rounds));
}

/* Prints members of a JSON object, each after a comma. */
static inline int measure_subjects(const struct subject *subjects, unsigned int count,
				   unsigned int batch)
{
	memcpy(rounds.subjects, subjects, count * sizeof(*subjects));
	rounds.subject_count = count;
	rounds.batch = batch;
	if (run_threads(run_all_rounds))
		return -1;
	printf(",\"threads\":%u,\"rounds\":%u", rounds.threads, rounds.rounds);
	for (unsigned int i = 0; i < count; i++)
		print_subject(i);
	return 0;
}

/* --threads N, --rounds N from argv[from] on. */
static inline int read_round_arguments(int argc, char **argv, int from)
{
	for (; from + 1 < argc; from += 2) {
		unsigned int value = (unsigned int)strtoul(argv[from + 1], NULL, 10);

		if (!strcmp(argv[from], "--threads") && value && value <= ROUNDS_THREADS)
			rounds.threads = value;
		else if (!strcmp(argv[from], "--rounds") && value && value <= ROUNDS_MOST)
			rounds.rounds = value;
		else
			return -1;
	}
	return from == argc ? 0 : -1;
}

#endif
