/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool MIB [THREADS]: measures how fast threads store bulk data in the spool, as the snapshot of a
 * CUDA window does, from buffers that stay in the cache. Run it under
 *
 *	tracesmith record --replayable --backends opencl -o /dev/shm/t.sbt -- spool 1024 2
 *
 * with free memory of more than 16 times MIB: then nothing waits for the recorder, which works at
 * the same time. Peers in the same process: the same bytes to new files beside the spool, one for
 * each thread (the floor), and to one new file, mapped. Prints one JSON line for each: GB per
 * second, and CPU seconds of this process per GB, which other processes disturb less.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <tracesmith/emit.h>
#include <tracesmith/replay.h>

#define PART (UINT64_C(1) << 20)
#define PIECE TS_REPLAY_BULK_BYTES
#define THREADS_AT_MOST 64u

enum way { SPOOL, FILES, MAPPED };
static const char *const names[] = { "spool", "new files", "one new file, mapped" };

static struct {
	enum way way;
	uint64_t pieces, next; /* next: atomic */
	unsigned int threads;
	char *mapped;
	int fds[THREADS_AT_MOST];
	pthread_barrier_t barrier;
	uint32_t batch;
	bool is_over, has_failed;
} self;

static _Noreturn void die(const char *why)
{
	fprintf(stderr, "spool: %s\n", why);
	exit(1);
}

static double seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Numbers that neither compress nor repeat. */
static void refill(uint64_t *buffer, uint64_t number)
{
	uint64_t state = number * UINT64_C(0x9e3779b97f4a7c15);

	for (uint64_t i = 0; i < PART / 8; i += 64)
		buffer[i] = state += i | 1;
}

static bool store(unsigned int thread, uint64_t piece, uint64_t at, const void *data)
{
	uint64_t offset = piece * PIECE + at;

	switch (self.way) {
	case SPOOL:
		return ts_replay_bulk_write((uint32_t)piece, at, data, PART);
	case FILES:
		return pwrite(self.fds[thread], data, PART, (off_t)offset) == (ssize_t)PART;
	default:
		memcpy(self.mapped + offset, data, PART);
		return true;
	}
}

static void fill(unsigned int thread, uint64_t *buffer, uint64_t limit)
{
	uint64_t piece;

	while ((piece = __atomic_fetch_add(&self.next, 1, __ATOMIC_RELAXED)) < limit) {
		for (uint64_t at = 0; at < PIECE; at += PART) {
			refill(buffer, piece * (PIECE / PART) + at / PART + 1);
			if (!store(thread, piece, at, buffer))
				self.has_failed = true;
		}
	}
}

/* ---- the spool ---- */

static void begin_batch(uint64_t left)
{
	uint64_t bytes[TS_REPLAY_BULK_AT_MOST];

	for (uint32_t i = 0; i < TS_REPLAY_BULK_AT_MOST; i++)
		bytes[i] = PIECE;
	self.batch = 0;
	while (!self.batch) {
		uint32_t wanted = left < TS_REPLAY_BULK_AT_MOST ? (uint32_t)left
								: TS_REPLAY_BULK_AT_MOST;

		if (!ts_replay_lock())
			die("nobody records a command stream");
		self.batch = ts_replay_bulk_begin(wanted, bytes);
		ts_replay_unlock();
		if (self.batch == TS_REPLAY_BULK_NEVER)
			die("shared memory is too small");
		if (!self.batch)
			usleep(1000);
	}
	__atomic_store_n(&self.next, 0, __ATOMIC_RELAXED);
}

static void end_batch(void)
{
	if (!ts_replay_lock())
		die("the recorder is gone");
	for (uint32_t i = 0; i < self.batch; i++)
		if (!ts_replay_bulk_blob(i))
			self.has_failed = true;
	ts_replay_bulk_end();
	ts_replay_unlock();
}

/* The first directs the others. */
static void fill_spool(unsigned int thread, uint64_t *buffer)
{
	for (uint64_t done = 0;;) {
		if (!thread) {
			self.is_over = done == self.pieces;
			if (!self.is_over)
				begin_batch(self.pieces - done);
		}
		pthread_barrier_wait(&self.barrier);
		if (self.is_over)
			return;
		fill(thread, buffer, self.batch);
		pthread_barrier_wait(&self.barrier);
		if (!thread) {
			done += self.batch;
			end_batch();
		}
	}
}

static void *work(void *argument)
{
	unsigned int thread = (unsigned int)(uintptr_t)argument;
	uint64_t *buffer = malloc(PART);

	if (!buffer)
		die("no memory");
	for (uint64_t i = 0, state = thread + 1; i < PART / 8; i++) {
		state = state * UINT64_C(6364136223846793005) + 1;
		buffer[i] = state ^ state >> 33;
	}
	if (self.way == SPOOL)
		fill_spool(thread, buffer);
	else
		fill(thread, buffer, self.pieces);
	free(buffer);
	return NULL;
}

/* ---- peers ---- */

static int new_file(void)
{
	const char *directory = getenv("TRACESMITH_LIVE_DIR");
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/spool-bench.XXXXXX", directory ? directory : "/dev/shm");
	fd = mkstemp(path);
	if (fd < 0 || unlink(path))
		die("cannot create a file beside the spool");
	return fd;
}

static void begin(enum way way)
{
	self.way = way;
	self.next = 0;
	for (unsigned int i = 0; way == FILES && i < self.threads; i++)
		self.fds[i] = new_file();
	if (way != MAPPED)
		return;
	self.fds[0] = new_file();
	self.mapped = MAP_FAILED;
	if (!ftruncate(self.fds[0], (off_t)(self.pieces * PIECE)))
		self.mapped = mmap(NULL, self.pieces * PIECE, PROT_READ | PROT_WRITE, MAP_SHARED,
				   self.fds[0], 0);
	if (self.mapped == MAP_FAILED)
		die("cannot map a file beside the spool");
}

static void end(enum way way)
{
	if (way == MAPPED)
		munmap(self.mapped, self.pieces * PIECE);
	for (unsigned int i = 0; i < (way == FILES ? self.threads : way == MAPPED ? 1 : 0); i++)
		close(self.fds[i]);
}

static void measure(enum way way)
{
	double wall, cpu, bytes = (double)(self.pieces * PIECE) / 1e9;
	pthread_t threads[THREADS_AT_MOST];

	begin(way);
	wall = seconds(CLOCK_MONOTONIC);
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	for (unsigned int i = 0; i < self.threads; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i))
			die("cannot create a thread");
	for (unsigned int i = 0; i < self.threads; i++)
		pthread_join(threads[i], NULL);
	wall = seconds(CLOCK_MONOTONIC) - wall;
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	end(way);
	if (self.has_failed)
		die("there is not enough memory");
	printf("{\"way\":\"%s\",\"threads\":%u,\"gb_per_s\":%.3f,\"cpu_s_per_gb\":%.3f}\n",
	       names[way], self.threads, bytes / wall, cpu / bytes);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	self.pieces = argc > 1 ? strtoull(argv[1], NULL, 10) / (PIECE >> 20) : 0;
	self.threads = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : 1;
	if (!self.pieces || !self.threads || self.threads > THREADS_AT_MOST) {
		fprintf(stderr, "usage: spool MIB [THREADS]\n");
		return 2;
	}
	pthread_barrier_init(&self.barrier, NULL, self.threads);
	ts_replay_bulk_expect();
	measure(SPOOL);
	measure(FILES);
	measure(MAPPED);
	return 0;
}
