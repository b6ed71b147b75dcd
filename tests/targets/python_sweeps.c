/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_sweeps PID [--seconds N] [--sweeps N] [--moved N] [--interval-us N] [--names] [--kernel]
 * [--stacks]: reads the stacks of a Python process repeatedly, and prints the number of sweeps and
 * their cost as a JSON line. With --stacks, each stack is a line before that, in the form of `view
 * --json --table sample`, with an id; a stack that was printed before is only its id. --moved stops
 * after N stacks that differ from the previous one of their thread. Ends with the process. For
 * tests/python and bench/run.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tracesmith/error.h>

#include "base/local/hash.h"
#include "base/map.h"
#include "base/text.h"
#include "python/reader/python_reader.h"

#define MOST_TIMES 1000000

struct options {
	pid_t pid;
	double seconds;
	uint64_t sweeps, moved;
	long interval_us;
	unsigned int flags;
	bool stacks;
};

struct output {
	struct ts_text text;
	struct ts_map known; /* hash of a stack to its id */
	struct ts_map last;  /* a thread's last one */
	uint64_t moved;
};

struct cost {
	int64_t sum_ns;
	uint64_t frames;
	size_t count;
	uint32_t *times_ns; /* of the first MOST_TIMES sweeps */
};

static int64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void sleep_us(long us)
{
	const struct timespec time = { us / 1000000, us % 1000000 * 1000 };

	if (us > 0)
		nanosleep(&time, NULL);
}

static void append_frame(struct ts_text *out, const struct ts_python_frame *frame)
{
	ts_text_append_str(out, "{\"func\":");
	ts_text_append_json(out, frame->code->name, strlen(frame->code->name));
	ts_text_append_str(out, ",\"file\":");
	ts_text_append_json(out, frame->code->file, strlen(frame->code->file));
	ts_text_append_str(out, ",\"lineno\":");
	ts_text_append_int(out, frame->line);
	ts_text_append_char(out, '}');
}

static void append_frames(struct ts_text *out, const struct ts_python_thread *thread)
{
	ts_text_append_str(out, ",\"stack\":[");
	for (uint32_t i = 0; i < thread->depth; i++) {
		if (i > 0)
			ts_text_append_char(out, ',');
		append_frame(out, &thread->frames[i]);
	}
	ts_text_append_char(out, ']');
}

static uint64_t hash_of(const struct ts_python_thread *thread)
{
	uint64_t hash = thread->depth;

	for (uint32_t i = 0; i < thread->depth; i++)
		hash = ts_hash_mix64(hash ^ ((uint64_t)thread->frames[i].code->number << 32 |
					     (uint32_t)thread->frames[i].line));
	return hash;
}

static void append_thread(struct output *out, const struct ts_python_thread *thread)
{
	uint64_t hash = hash_of(thread), *last, *id;
	bool is_new;

	last = ts_map_insert(&out->last, thread->thread_id, NULL);
	id = ts_map_insert(&out->known, hash, &is_new);
	if (!last || !id)
		exit(1);
	out->moved += *last != hash;
	*last = hash;
	if (is_new)
		*id = ts_map_count(&out->known);
	ts_text_printf(&out->text, "{\"start\":%" PRId64 ",\"tid\":%d,\"state\":%u,\"id\":%" PRIu64,
		       thread->time_ns, (int)thread->tid, thread->state, *id);
	ts_text_printf(&out->text, ",\"thread_id\":%" PRIu64 ",\"thread\":", thread->thread_id);
	ts_text_append_json(&out->text, thread->name, strlen(thread->name));
	if (is_new)
		append_frames(&out->text, thread);
	ts_text_append_str(&out->text, "}\n");
}

static void print_stacks(struct output *out, const struct ts_python_sweep *sweep)
{
	ts_text_clear(&out->text);
	for (size_t i = 0; i < sweep->count; i++)
		if (!sweep->threads[i].is_rejected)
			append_thread(out, &sweep->threads[i]);
	fwrite(out->text.data, 1, out->text.length, stdout);
}

static void count_cost(struct cost *cost, const struct ts_python_sweep *sweep, int64_t spent_ns)
{
	if (cost->count < MOST_TIMES)
		cost->times_ns[cost->count] = (uint32_t)spent_ns;
	cost->count++;
	cost->sum_ns += spent_ns;
	for (size_t i = 0; i < sweep->count; i++)
		cost->frames += sweep->threads[i].depth;
}

/* Until the time is up, or the process has exited. */
static void sweep_all(struct ts_python_reader *python, const struct options *options,
		      struct cost *cost)
{
	int64_t end_ns = now_ns(CLOCK_MONOTONIC) + (int64_t)(options->seconds * 1e9);
	struct output out = { 0 };
	struct ts_python_sweep sweep;

	while (now_ns(CLOCK_MONOTONIC) < end_ns && cost->count < options->sweeps &&
	       out.moved < options->moved) {
		int64_t start_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);

		if (ts_python_sweep(python, &sweep, NULL))
			break;
		count_cost(cost, &sweep, now_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns);
		if (options->stacks)
			print_stacks(&out, &sweep);
		sleep_us(options->interval_us);
	}
	ts_text_release(&out.text);
	ts_map_release(&out.known);
	ts_map_release(&out.last);
}

static int compare_times(const void *one, const void *two)
{
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)two;

	return a < b ? -1 : a > b;
}

static double time_at(const struct cost *cost, double share)
{
	size_t known = cost->count < MOST_TIMES ? cost->count : MOST_TIMES;

	return known ? cost->times_ns[(size_t)((double)(known - 1) * share)] / 1e3 : 0;
}

static void print_summary(const struct ts_python_reader *python, struct cost *cost)
{
	const struct ts_python_info *about = ts_python_info(python);
	struct ts_python_reader_counts counts;
	double sweeps = cost->count ? (double)cost->count : 1;

	ts_python_reader_counts(python, &counts);
	qsort(cost->times_ns, cost->count < MOST_TIMES ? cost->count : MOST_TIMES,
	      sizeof(*cost->times_ns), compare_times);
	printf("{\"version\":\"%s\",\"found_by\":\"%s\",\"sweeps\":%zu,\"stacks\":%" PRIu64
	       ",\"rejected\":%" PRIu64 ",\"retried\":%" PRIu64,
	       about->version, about->found_by, cost->count, counts.stacks, counts.rejected,
	       counts.retried);
	printf(",\"cpu_us_a_sweep\":%.3f,\"cpu_us_median\":%.3f,\"cpu_us_99\":%.3f,\"stacks_a_cpu_second\":%.0f",
	       (double)cost->sum_ns / 1e3 / sweeps, time_at(cost, 0.5), time_at(cost, 0.99),
	       cost->sum_ns ? (double)counts.stacks * 1e9 / (double)cost->sum_ns : 0);
	printf(",\"frames_a_sweep\":%.1f,\"system_calls_a_sweep\":%.2f,\"bytes_a_sweep\":%.0f,\"missed\":%" PRIu64
	       "}\n",
	       (double)cost->frames / sweeps, (double)counts.system_calls / sweeps,
	       (double)counts.bytes / sweeps, counts.speculations_missed);
}

static bool parse(struct options *options, int argc, char **argv)
{
	if (argc < 2)
		return false;
	options->pid = (pid_t)strtol(argv[1], NULL, 10);
	for (int i = 2; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--stacks"))
			options->stacks = true;
		else if (!strcmp(argv[i], "--names"))
			options->flags |= TS_PYTHON_NAMES;
		else if (!strcmp(argv[i], "--kernel"))
			options->flags |= TS_PYTHON_KERNEL;
		else if (!strcmp(argv[i], "--seconds") && ++i)
			options->seconds = strtod(value, NULL);
		else if (!strcmp(argv[i], "--sweeps") && ++i)
			options->sweeps = strtoull(value, NULL, 10);
		else if (!strcmp(argv[i], "--moved") && ++i)
			options->moved = strtoull(value, NULL, 10);
		else if (!strcmp(argv[i], "--interval-us") && ++i)
			options->interval_us = strtol(value, NULL, 10);
		else
			return false;
	}
	return options->pid > 0;
}

int main(int argc, char **argv)
{
	struct options options = { .seconds = 1e6, .sweeps = UINT64_MAX, .moved = UINT64_MAX };
	struct cost cost = { .times_ns = calloc(MOST_TIMES, sizeof(uint32_t)) };
	struct ts_error err = { 0 };
	TS_AUTO(ts_python_reader) python = NULL;

	if (!cost.times_ns || !parse(&options, argc, argv)) {
		fprintf(stderr,
			"usage: python_sweeps PID [--seconds N] [--sweeps N] [--moved N] [--interval-us N] [--names] [--kernel] [--stacks]\n");
		free(cost.times_ns);
		return 2;
	}
	if (ts_python_reader_open(&python, options.pid, 0, options.flags, &err)) {
		fprintf(stderr, "python_sweeps: %s\n", err.message);
		free(cost.times_ns);
		return 1;
	}
	sweep_all(python, &options, &cost);
	print_summary(python, &cost);
	free(cost.times_ns);
	return 0;
}
