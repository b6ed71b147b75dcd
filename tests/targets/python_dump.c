/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_dump PID [COUNT [INTERVAL_US [FLAGS]]]: reads the stacks of a Python process COUNT times,
 * prints the last ones and the cost. With COUNT -1 it endlessly prints each stack as one line
 * "thread;outermost;...;innermost", for checkers. FLAGS: n names, k kernel, m main thread only, t
 * tasks (nk).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "python/reader/python_reader.h"

static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static unsigned int flags_of(const char *text)
{
	return (strchr(text, 'n') ? TS_PYTHON_NAMES : 0) |
	       (strchr(text, 'k') ? TS_PYTHON_KERNEL : 0) |
	       (strchr(text, 'm') ? TS_PYTHON_MAIN_ONLY : 0) |
	       (strchr(text, 't') ? TS_PYTHON_TASKS : 0);
}

static void print_line(const struct ts_python_thread *thread)
{
	if (thread->is_rejected)
		return;
	printf("%d", (int)thread->tid);
	for (uint32_t i = thread->depth; i > 0; i--)
		printf(";%s:%d", thread->frames[i - 1].code->name, (int)thread->frames[i - 1].line);
	putchar('\n');
}

static void print_thread(const struct ts_python_thread *thread)
{
	printf("thread %d \"%s\" id %#llx interpreter %lld%s%s%s%s%s%s%s%s\n", (int)thread->tid,
	       thread->name, (unsigned long long)thread->thread_id, (long long)thread->interpreter,
	       thread->is_main ? " main" : "", thread->is_rejected ? " REJECTED" : "",
	       thread->state & TS_PYTHON_RUNS ? " runs" : "",
	       thread->state & TS_PYTHON_HAS_GIL ? " gil" : "",
	       thread->state & TS_PYTHON_WAITS_GIL ? " waits" : "",
	       thread->state & TS_PYTHON_COLLECTS ? " collects" : "",
	       thread->task[0] ? " task " : "", thread->task);
	for (uint32_t i = 0; i < thread->depth && i < 40; i++)
		printf("  %s (%s:%d)%s\n", thread->frames[i].code->name,
		       thread->frames[i].code->file, (int)thread->frames[i].line,
		       thread->frames[i].flags & TS_PYTHON_FRAME_ENTRY ? " entry" : "");
	if (thread->depth > 40)
		printf("  ... %u frames\n", thread->depth);
}

static void print_counts(const struct ts_python_reader *python, int64_t wall, int64_t cpu)
{
	struct ts_python_reader_counts counts;

	ts_python_reader_counts(python, &counts);
	printf("python %s, %s, found by %s\n", ts_python_info(python)->version,
	       ts_python_info(python)->binary, ts_python_info(python)->found_by);
	printf("sweeps %llu stacks %llu retried %llu rejected %llu missed %llu\n",
	       (unsigned long long)counts.sweeps, (unsigned long long)counts.stacks,
	       (unsigned long long)counts.retried, (unsigned long long)counts.rejected,
	       (unsigned long long)counts.speculations_missed);
	printf("cpu %.2f us a sweep, read %.2f us, resolve %.2f us; %.1f calls, %.0f bytes a sweep; %.0f stacks/s of wall time, %.0f of cpu time\n",
	       (double)cpu / 1e3 / (double)counts.sweeps,
	       (double)counts.read_ns / 1e3 / (double)counts.sweeps,
	       (double)counts.resolve_ns / 1e3 / (double)counts.sweeps,
	       (double)counts.system_calls / (double)counts.sweeps,
	       (double)counts.bytes / (double)counts.sweeps,
	       (double)counts.stacks * 1e9 / (double)wall,
	       (double)counts.stacks * 1e9 / (double)cpu);
}

static void pause_us(long us)
{
	struct timespec pause = { us / 1000000, us % 1000000 * 1000 };

	if (us > 0)
		nanosleep(&pause, NULL);
}

int main(int argc, char **argv)
{
	long count = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
	long interval_us = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
	TS_AUTO(ts_python_reader) python = NULL;
	struct ts_python_sweep sweep = { 0 };
	struct ts_error err;
	int64_t wall, cpu;

	if (argc < 2)
		return 2;
	if (ts_python_reader_open(&python, (pid_t)strtol(argv[1], NULL, 10), 0,
				  flags_of(argc > 4 ? argv[4] : "nk"), &err)) {
		fprintf(stderr, "python_dump: %s\n", err.message);
		return 1;
	}
	wall = ts_clock_monotonic_ns();
	cpu = cpu_ns();
	for (long i = 0; count < 0 || i < count; i++) {
		if (ts_python_sweep(python, &sweep, &err)) {
			fprintf(stderr, "python_dump: %s\n", err.message);
			break;
		}
		for (size_t k = 0; count < 0 && k < sweep.count; k++)
			print_line(&sweep.threads[k]);
		pause_us(interval_us);
	}
	wall = ts_clock_monotonic_ns() - wall;
	cpu = cpu_ns() - cpu;
	for (size_t k = 0; count > 0 && k < sweep.count; k++)
		print_thread(&sweep.threads[k]);
	if (count > 0)
		print_counts(python, wall, cpu);
	return 0;
}
