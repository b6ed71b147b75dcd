/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit MODE [--threads N] [--rounds N]: measures the cost of one event in ns. The event is a name,
 * a category and an integer, emitted through the shared library, with the check for an open window.
 *
 *	stream      a ring of 64 KiB, drained
 *	large       the largest ring that a thread grows to after bursts, drained
 *	recorded    under `tracesmith record`, which drains; all subjects sleep between batches
 *	flight      no recorder: the oldest events are overwritten
 *	full        the ring is full and not drained: the event is counted as lost
 *	no-ring     no budget for a ring: the same
 *	off         events are off
 *	single      as stream, each event by itself: percentiles
 *	first       the first event of a thread
 *	step        ts_step() with and without an open window
 *
 * The same rounds measure the bare read of the counter, and a mutex around a growing array. Prints
 * the best and the median round (rounds.h) as one JSON line. Except in `recorded`, the program
 * drains its own rings between batches (docs/live.md), so that nothing else runs.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <tracesmith/emit.h>

#include "rounds.h"
#include "target_process.h"

#define SINGLE_EVENTS 1000000
#define FIRST_THREADS 100
#define LARGE_EVENTS 500000

/* docs/live.md, sections 2.1 and 2.2. */
#define DIRECTORY 4096
#define DIRECTORY_BYTES (4096 * 256)
#define CONTROL_RINGS 256
struct ring {
	uint64_t head, dropped, dropped_first, dropped_last, turn;
	uint32_t state, tid;
	uint64_t offset, bytes;
	uint8_t slot_0[64];
	uint64_t consumed, consumed_events;
	uint32_t consumed_tid, consumed_serial;
	char consumed_name[16];
	uint64_t consumed_check;
	uint8_t rest[80];
};
_Static_assert(sizeof(struct ring) == 256, "live.md, section 2.2");
#define RING_OWNED 1

struct mode {
	const char *name;
	const char *agent; /* TRACESMITH_AGENT */
	const char *live;  /* TRACESMITH_LIVE */
	const char *budget;
	unsigned int batch;
	bool is_drained;
};

#define STREAM "session=5;enabled=1"
static const struct mode modes[] = {
	{ "stream", STREAM, NULL, NULL, 2048, true },
	{ "large", STREAM, NULL, NULL, 2048, true },
	{ "recorded", NULL, NULL, NULL, 2048, false },
	{ "flight", NULL, "1", NULL, 4096, false },
	{ "full", STREAM, NULL, NULL, 4096, false },
	{ "no-ring", STREAM, NULL, "24576", 4096, false },
	{ "off", NULL, NULL, NULL, 100000, false },
	{ "single", STREAM, NULL, NULL, 1024, true },
	{ "first", STREAM, NULL, NULL, 0, true },
	{ "step", "session=5;enabled=1;mode=flight", NULL, NULL, 2048, false },
};

static const struct mode *mode;
static char *area;

static double ns_a_tick(void)
{
	uint64_t counter = read_counter();
	double start = now_ns(), end;

	do
		end = now_ns();
	while (end - start < 50e6);
	return (end - start) / (double)(read_counter() - counter);
}

/* ---- draining ---- */

static void map_area(int directory, const char *name)
{
	int fd = openat(directory, name, O_RDWR | O_CLOEXEC);

	area = mmap(NULL, DIRECTORY + DIRECTORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd < 0 || area == MAP_FAILED)
		die("cannot map the live area");
	close(fd);
}

static struct ring *find_ring(uint32_t tid)
{
	uint32_t count =
		__atomic_load_n((uint32_t *)(void *)(area + CONTROL_RINGS), __ATOMIC_ACQUIRE);
	struct ring *rings = (struct ring *)(void *)(area + DIRECTORY);

	for (uint32_t i = 0; i < count; i++)
		if (rings[i].tid == tid && rings[i].state == RING_OWNED)
			return &rings[i];
	return NULL;
}

/* Drains the ring of the calling thread. */
static void drain(void)
{
	struct ring *ring = find_ring((uint32_t)syscall(SYS_gettid));

	if (!ring)
		return;
	ring->consumed = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	ring->consumed_check = ~(ring->consumed + ring->consumed_events +
				 ((uint64_t)ring->consumed_serial << 32 | ring->consumed_tid));
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* ---- subjects, each a number of repetitions ---- */

static __attribute__((noinline)) void run_event(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		TS_INSTANT("token", "decode", TS_INT("n", i));
		__asm__ volatile("" : : : "memory");
	}
}

static __attribute__((noinline)) void run_step(unsigned int count)
{
	static __thread int64_t step;

	for (unsigned int i = 0; i < count; i++)
		ts_step(step++);
}

struct row {
	const char *name, *category;
	uint64_t time;
	int64_t n;
};

static struct {
	pthread_mutex_t lock;
	struct row *rows;
	size_t count, capacity;
} array = { .lock = PTHREAD_MUTEX_INITIALIZER };

static __attribute__((noinline)) void append(const char *name, const char *category, int64_t n)
{
	uint64_t time = read_counter();

	pthread_mutex_lock(&array.lock);
	if (array.count == array.capacity) {
		array.capacity = array.capacity ? 2 * array.capacity : 1024;
		array.rows = realloc(array.rows, array.capacity * sizeof(*array.rows));
		if (!array.rows)
			die("realloc");
	}
	array.rows[array.count++] = (struct row){ name, category, time, n };
	pthread_mutex_unlock(&array.lock);
}

static __attribute__((noinline)) void run_array(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		append("token", "decode", i);
}

static void empty_array(void)
{
	pthread_mutex_lock(&array.lock);
	free(array.rows);
	array.rows = NULL;
	array.count = array.capacity = 0;
	pthread_mutex_unlock(&array.lock);
}

/* ---- rounds ---- */

static void print_ring(void)
{
	const struct ring *ring = area ? find_ring((uint32_t)syscall(SYS_gettid)) : NULL;

	if (ring)
		printf(",\"ring_bytes\":%" PRIu64 ",\"dropped\":%" PRIu64, ring->bytes,
		       ring->dropped);
}

/* More than the largest ring holds, so that the ring grows to that size. */
static void fill_ring(void)
{
	if (strcmp(mode->name, "large") != 0)
		return;
	run_event(LARGE_EVENTS);
	drain();
}

static bool is_recorded(void)
{
	return !strcmp(mode->name, "recorded");
}

/* Time for a recorder to drain. */
static void rest(void)
{
	struct timespec pause = { .tv_nsec = 2000000 };

	nanosleep(&pause, NULL);
}

static void measure_rounds(void)
{
	void (*others)(void) = is_recorded() ? rest : NULL;
	const struct subject subjects[] = {
		{ .name = "counter", .run = run_counter, .after_batch = others },
		{ .name = "event",
		  .run = run_event,
		  .warm_up = fill_ring,
		  .after_batch = mode->is_drained ? drain : others },
		{ .name = "array",
		  .run = run_array,
		  .after_batch = others,
		  .after_round = empty_array },
		{ .name = "step", .run = run_step },
	};

	if (measure_subjects(subjects, strcmp(mode->name, "step") ? 3 : 4, mode->batch))
		die("pthread_create");
	if (is_recorded())
		printf(",\"events\":%u", 1 + rounds.threads * (ROUNDS_WARM_UP + rounds.rounds) *
							 ROUNDS_BATCHES * mode->batch);
	print_ring();
}

/* ---- single events ---- */

static double *singles[ROUNDS_THREADS];

static void *run_single(void *argument)
{
	double *values = calloc(SINGLE_EVENTS, sizeof(*values));

	if (!values)
		die("calloc");
	run_event(mode->batch);
	drain();
	pthread_barrier_wait(&rounds.barrier);
	for (unsigned int i = 0; i < SINGLE_EVENTS; i++) {
		uint64_t before = read_counter(), after;

		TS_INSTANT("token", "decode", TS_INT("n", i));
		after = read_counter();
		values[i] = (double)(after - before);
		if (i % mode->batch == 0)
			drain();
	}
	singles[(uintptr_t)argument] = values;
	return NULL;
}

/* Ticks between two reads with nothing in between, which are subtracted. */
static double measuring_cost(void)
{
	static double values[100001];

	for (unsigned int i = 0; i < 100001; i++) {
		uint64_t before = read_counter();

		values[i] = (double)(read_counter() - before);
	}
	return median(values, 100001);
}

static void measure_single(void)
{
	double tick = ns_a_tick(), cost = measuring_cost();
	static const double quantiles[] = { 0.5, 0.99, 0.999, 0.9999, 1 };
	static const char *const names[] = { "p50", "p99", "p999", "p9999", "max" };

	if (run_threads(run_single))
		die("pthread_create");
	qsort(singles[0], SINGLE_EVENTS, sizeof(double), compare_doubles);
	for (unsigned int i = 0; i < sizeof(quantiles) / sizeof(*quantiles); i++) {
		size_t at = (size_t)(quantiles[i] * (SINGLE_EVENTS - 1));
		double ticks = singles[0][at] - cost;

		printf(",\"%s_ns\":%.1f", names[i], (ticks > 0 ? ticks : 0) * tick);
	}
	printf(",\"own_cost_ns\":%.2f", cost * tick);
	print_ring();
}

/* ---- first event of a thread ---- */

static double firsts[FIRST_THREADS];
static pthread_barrier_t has_emitted, may_end;

static void *run_first(void *argument)
{
	uint64_t before = read_counter();

	TS_INSTANT("first", "thread", TS_INT("n", 1));
	firsts[(uintptr_t)argument] = (double)(read_counter() - before);
	drain();
	pthread_barrier_wait(&has_emitted);
	pthread_barrier_wait(&may_end);
	return NULL;
}

/*
 * One thread after another; earlier ones have exited, or stay alive so that this one needs a new
 * ring.
 */
static double first_event(bool they_live_on)
{
	pthread_t ids[FIRST_THREADS];

	pthread_barrier_init(&has_emitted, NULL, 2);
	pthread_barrier_init(&may_end, NULL, they_live_on ? FIRST_THREADS + 1 : 2);
	for (unsigned int i = 0; i < FIRST_THREADS; i++) {
		if (pthread_create(&ids[i], NULL, run_first, (void *)(uintptr_t)i))
			die("pthread_create");
		pthread_barrier_wait(&has_emitted);
		if (they_live_on)
			continue;
		pthread_barrier_wait(&may_end);
		pthread_join(ids[i], NULL);
	}
	if (they_live_on)
		pthread_barrier_wait(&may_end);
	for (unsigned int i = 0; they_live_on && i < FIRST_THREADS; i++)
		pthread_join(ids[i], NULL);
	return median(firsts, FIRST_THREADS);
}

static void measure_first(void)
{
	double tick = ns_a_tick();

	TS_INSTANT("first", "process", TS_INT("n", 1));
	printf(",\"taken_ring_ns\":%.0f", first_event(false) * tick);
	printf(",\"new_ring_ns\":%.0f", first_event(true) * tick);
}

/* ---- main ---- */

static int read_arguments(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(argv[1], modes[i].name))
			mode = &modes[i];
	return mode ? read_round_arguments(argc, argv, 2) : -1;
}

int main(int argc, char **argv)
{
	const char *live = NULL;

	if (read_arguments(argc, argv)) {
		fputs("usage: emit stream|large|recorded|flight|full|no-ring|off|single|first|step"
		      " [--threads N] [--rounds N]\n",
		      stderr);
		return 2;
	}
	if (!is_recorded())
		live = become_target(argv, mode->agent, mode->live, mode->budget);
	TS_INSTANT("start", "bench");
	if (live)
		for_each_area(live, map_area);
	if (is_recorded() ? !ts_enabled() : !area && strcmp(mode->name, "off") != 0)
		die("no recorder");
	printf("{\"bench\":\"emit\",\"mode\":\"%s\"", mode->name);
	if (!strcmp(mode->name, "single"))
		measure_single();
	else if (!strcmp(mode->name, "first"))
		measure_first();
	else
		measure_rounds();
	puts("}");
	if (live)
		end_target(live);
	return 0;
}
