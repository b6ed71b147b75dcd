/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into programs: every so many calls of malloc(), compares the native stack of
 * local_unwind.h with that of _Unwind_Backtrace(). At exit, writes one line to $UNWIND_COMPARE:
 * number compared, differing, ending with a marker, greatest depth, and the cost of both in ns per
 * stack.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#include "code/local/local_unwind.h"

#define EVERY 61u
#define MOST_FRAMES 1024

__attribute__((visibility("default"))) void *malloc(size_t bytes);
void *__libc_malloc(size_t bytes); /* NOLINT(bugprone-reserved-identifier) */

struct taken {
	uint64_t pcs[MOST_FRAMES];
	size_t count;
};

/* Not in TLS that is allocated on first use, which calls malloc(). */
#define STATIC_TLS __attribute__((tls_model("initial-exec"))) __thread

static STATIC_TLS unsigned int calls;
static STATIC_TLS bool is_inside;
static uint64_t compared, differing, marked, deepest, frames, ours_ns, theirs_ns;
static char output[1024];
static pid_t owner;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *to)
{
	struct taken *taken = to;
	int is_before = 0;
	uint64_t pc = (uint64_t)_Unwind_GetIPInfo(context, &is_before);

	if (pc && taken->count < MOST_FRAMES)
		taken->pcs[taken->count++] = pc + (uint64_t)(is_before != 0);
	return _URC_NO_REASON;
}

static void add(uint64_t *to, uint64_t value)
{
	__atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}

static void print_difference(const struct taken *theirs, const struct ts_local_unwind_stack *ours)
{
	dprintf(2, "theirs %zu, ours %zu, end %d\n", theirs->count - 1, ours->count,
		(int)ours->end);
	for (size_t i = 0; i + 1 < theirs->count || i < ours->count; i++)
		dprintf(2, "%3zu %012llx %012llx\n", i,
			i + 1 < theirs->count ? (unsigned long long)theirs->pcs[i + 1] : 0,
			i < ours->count ? (unsigned long long)ours->pcs[i] : 0);
}

/* Twice, so that the second knows all rules. Their first frame is this function. */
__attribute__((noinline)) static void compare_stacks(void)
{
	static __thread struct taken theirs;
	static __thread uint64_t pcs[MOST_FRAMES];
	static __thread struct ts_local_unwind_last last;
	struct ts_local_unwind_stack ours = { .pcs = pcs, .capacity = MOST_FRAMES, .last = &last };
	uint64_t from, middle, to;
	struct ts_local_unwind_registers captured;

	theirs.count = 0;
	ts_local_unwind_capture(&captured);
	ts_local_unwind_walk(&captured, &ours);
	from = now_ns();
	ts_local_unwind_walk(&captured, &ours);
	middle = now_ns();
	_Unwind_Backtrace(add_frame, &theirs);
	to = now_ns();
	add(&compared, 1);
	add(&marked, ours.end != TS_LOCAL_UNWIND_COMPLETE);
	add(&frames, ours.count);
	add(&ours_ns, middle - from);
	add(&theirs_ns, to - middle);
	if (ours.count > __atomic_load_n(&deepest, __ATOMIC_RELAXED))
		__atomic_store_n(&deepest, ours.count, __ATOMIC_RELAXED);
	if ((theirs.count != ours.count + 1 ||
	     memcmp(theirs.pcs + 1, pcs, ours.count * sizeof(*pcs)) != 0) &&
	    __atomic_fetch_add(&differing, 1, __ATOMIC_RELAXED) < 3)
		print_difference(&theirs, &ours);
}

void *malloc(size_t bytes) /* NOLINT(readability-inconsistent-declaration-parameter-name) */
{
	if (!is_inside && output[0] && ++calls % EVERY == 0) {
		is_inside = true;
		compare_stacks();
		is_inside = false;
	}
	return __libc_malloc(bytes);
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("UNWIND_COMPARE");

	owner = getpid();
	if (path)
		snprintf(output, sizeof(output), "%s", path);
}

__attribute__((destructor)) static void end(void)
{
	int fd;

	if (!output[0] || getpid() != owner || !compared)
		return;
	is_inside = true;
	fd = open(output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	dprintf(fd, "%llu %llu %llu %llu %.1f %.0f %.0f\n", (unsigned long long)compared,
		(unsigned long long)differing, (unsigned long long)marked,
		(unsigned long long)deepest, (double)frames / (double)compared,
		(double)ours_ns / (double)compared, (double)theirs_ns / (double)compared);
	close(fd);
}
