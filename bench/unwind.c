/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind [--depth N] [--rounds N]: measures the cost of unwinding the calling thread, in ns: ours
 * (code/local/local_unwind.h), without and with the cached previous stack ("again": nothing has
 * changed since), and _Unwind_Backtrace() in the same rounds. The functions vary like those of real
 * programs: some have variable-size frames, some save many registers. Prints the best and the
 * median round (rounds.h) as one JSON line.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unwind.h>

#include "code/local/local_unwind.h"

/* Variable-length arrays are part of the test. */
#pragma GCC diagnostic ignored "-Wvla"

#define MOST_DEPTH 1024
#define CALLS 2000
#define THEIR_CALLS 100

static uint64_t pcs[MOST_DEPTH];
static size_t frames;
static int rounds = 200;
static double best_again = 1e18, best_ours = 1e18, best_theirs = 1e18;
static double *again, *ours, *theirs;
static volatile unsigned int sink;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static _Unwind_Reason_Code count_frame(struct _Unwind_Context *context, void *counter)
{
	pcs[(*(size_t *)counter)++ % MOST_DEPTH] = _Unwind_GetIP(context);
	return _URC_NO_REASON;
}

static void take(struct ts_local_unwind_last *last)
{
	struct ts_local_unwind_stack stack = { .pcs = pcs, .capacity = MOST_DEPTH, .last = last };
	struct ts_local_unwind_registers captured;

	ts_local_unwind_capture(&captured);
	ts_local_unwind_walk(&captured, &stack);
	frames = stack.count;
}

static void measure_round(int round)
{
	static struct ts_local_unwind_last last;
	uint64_t start = now_ns(), from, middle, to;

	for (int i = 0; i < CALLS; i++)
		take(&last);
	from = now_ns();
	for (int i = 0; i < CALLS; i++)
		take(NULL);
	middle = now_ns();
	for (int i = 0; i < THEIR_CALLS; i++) {
		size_t count = 0;

		_Unwind_Backtrace(count_frame, &count);
	}
	to = now_ns();
	again[round] = (double)(from - start) / CALLS;
	ours[round] = (double)(middle - from) / CALLS;
	theirs[round] = (double)(to - middle) / THEIR_CALLS;
	best_again = again[round] < best_again ? again[round] : best_again;
	best_ours = ours[round] < best_ours ? ours[round] : best_ours;
	best_theirs = theirs[round] < best_theirs ? theirs[round] : best_theirs;
}

static void descend(unsigned int depth);

#define FUNCTION(name, body)                                           \
	__attribute__((noinline)) static void name(unsigned int depth) \
	{                                                              \
		body;                                                  \
		descend(depth - 1);                                    \
		sink += depth;                                         \
	}
FUNCTION(plain, (void)0)
FUNCTION(large, char buffer[700]; memset(buffer, (int)depth, sizeof(buffer));
	 sink += (unsigned int)buffer[depth % 700])
FUNCTION(variable, char buffer[16 + depth % 64]; memset(buffer, (int)depth, sizeof(buffer));
	 sink += (unsigned int)buffer[depth % 16])
FUNCTION(busy, unsigned int a = sink; unsigned int b = sink; unsigned int c = sink; descend(0);
	 sink += a * b + c)

__attribute__((noinline)) static void descend(unsigned int depth)
{
	if (depth == 0)
		return;
	if (depth == 1) {
		for (int i = 0; i < rounds; i++)
			measure_round(i);
		return;
	}
	switch (depth % 4) {
	case 0:
		plain(depth);
		break;
	case 1:
		large(depth);
		break;
	case 2:
		variable(depth);
		break;
	default:
		busy(depth);
		break;
	}
	sink++;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

int main(int argc, char **argv)
{
	unsigned int depth = 26;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--depth"))
			depth = (unsigned int)strtoul(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--rounds"))
			rounds = (int)strtol(argv[i + 1], NULL, 10);
	}
	rounds = rounds < 1 ? 1 : rounds > 100000 ? 100000 : rounds;
	again = calloc((size_t)rounds, sizeof(*again));
	ours = calloc((size_t)rounds, sizeof(*ours));
	theirs = calloc((size_t)rounds, sizeof(*theirs));
	if (!again || !ours || !theirs)
		return 1;
	descend(depth < 1 ? 1 : depth);
	qsort(again, (size_t)rounds, sizeof(*again), compare);
	qsort(ours, (size_t)rounds, sizeof(*ours), compare);
	qsort(theirs, (size_t)rounds, sizeof(*theirs), compare);
	printf("{\"frames\":%zu,\"here_ns\":%.1f,\"here_median_ns\":%.1f,\"again_ns\":%.1f,"
	       "\"again_median_ns\":%.1f,\"unwind_backtrace_ns\":%.1f,"
	       "\"unwind_backtrace_median_ns\":%.1f,\"ratio\":%.1f}\n",
	       frames, best_ours, ours[rounds / 2], best_again, again[rounds / 2], best_theirs,
	       theirs[rounds / 2], theirs[rounds / 2] / ours[rounds / 2]);
	free(again);
	free(ours);
	free(theirs);
	return 0;
}
