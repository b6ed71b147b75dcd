/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampling thread: deadlines, CPU budget, and requests from outside. One lock guards the shared
 * state; it is not held while reading or calling the consumer.
 */
#include "sample/python/python_sampler.h"

#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "base/local/hash.h"
#include "base/thread.h"
#include "sample/python/python_sampler_internal.h"

#define COUNTERS_NS NS_PER_S
/* Lower rates are ignored. */
#define COUNTERS_LEAST_NS (NS_PER_S / 10)
#define CPU_PERCENT 50
/* Unused budget is kept this long: the start, when all names are new, costs more. */
#define CPU_SAVED_NS NS_PER_S
#define MAX_REQUESTS 64
/* Timer slack of 50 us saves wake-ups; not where sweeps are close together. */
#define EXACT_BELOW_NS (10 * NS_PER_MS)
#define EXACT_SLACK_NS 1000ul

struct ts_python_sampler {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock. */
	bool closing;
	struct ts_sampled_processes processes;
	uint64_t serial; /* counts changes of the list and requests */
	pid_t requests[MAX_REQUESTS];
	size_t request_count;
	struct ts_python_sampler_status status;

	pthread_t thread;
	struct ts_python_consumer consumer;
	struct sampling sampling;
	/* Belongs to the sampling thread. */
	struct watched_process **watched;
	size_t count;
	uint64_t seen_serial;
	uint64_t random;
	bool is_exact;
	/* CPU time left, as of when. */
	int64_t allowance_ns, allowed_ns, cpu_ns;
	/* Counters. */
	int64_t counted_ns;     /* last report */
	int64_t counted_cpu_ns; /* CPU time used by then */
	struct sampling_counts total,
		gone; /* totals at the last report, including processes that are gone since */
	int64_t gone_longest_ns;
};

static bool is_closing(struct ts_python_sampler *sampler)
{
	return __atomic_load_n(&sampler->closing, __ATOMIC_ACQUIRE);
}

/* ---- deadlines ---- */

/* Uniform from 0, below a limit. */
static int64_t draw(struct ts_python_sampler *sampler, int64_t limit)
{
	sampler->random = ts_hash_mix64(sampler->random + 0x9e3779b97f4a7c15u);
	return (int64_t)((double)(sampler->random >> 11) * 0x1p-53 * (double)limit);
}

/*
 * Time is divided into intervals with one random deadline each: this keeps the mean rate, and
 * nothing periodic in a program can hide from it. Intervals in the past are skipped.
 */
static void set_next_due(struct ts_python_sampler *sampler, struct watched_process *process,
			 int64_t now_ns)
{
	int64_t interval_ns = process->what.interval_ns, begin_ns, missed;

	if (!interval_ns) {
		process->due_ns = INT64_MAX;
		return;
	}
	process->slot_ns += interval_ns;
	missed = (now_ns - process->slot_ns) / interval_ns;
	if (missed > 0) {
		process->counts.late += (uint64_t)missed;
		process->slot_ns += missed * interval_ns;
	}
	begin_ns = TS_MAX(process->slot_ns, now_ns);
	process->due_ns = begin_ns +
			  draw(sampler, TS_MAX(process->slot_ns + interval_ns - begin_ns, 1));
}

static int64_t due_of(const struct watched_process *process)
{
	if (process->ended)
		return INT64_MAX;
	if (!process->python)
		return process->what.interval_ns || process->requested ? process->try_ns
								       : INT64_MAX;
	return process->requested ? 0 : process->due_ns;
}

static int64_t next_due(const struct ts_python_sampler *sampler)
{
	int64_t due_ns = INT64_MAX;

	for (size_t i = 0; i < sampler->count; i++) {
		const struct watched_process *process = sampler->watched[i];

		due_ns = TS_MIN(due_ns, due_of(process));
		if (process->python && process->what.interval_ns)
			due_ns = TS_MIN(due_ns, sampler->counted_ns + COUNTERS_NS);
	}
	return due_ns;
}

/* Waits until something is due or has changed; false: closing. */
static bool wait_for_turn(struct ts_python_sampler *sampler)
{
	int64_t due_ns = next_due(sampler);
	struct timespec until = { .tv_sec = due_ns / NS_PER_S, .tv_nsec = due_ns % NS_PER_S };

	if (due_ns <= ts_clock_monotonic_ns())
		return !is_closing(sampler);
	pthread_mutex_lock(&sampler->lock);
	while (!sampler->closing && sampler->serial == sampler->seen_serial) {
		if (due_ns == INT64_MAX)
			pthread_cond_wait(&sampler->changed, &sampler->lock);
		else if (pthread_cond_timedwait(&sampler->changed, &sampler->lock, &until) ==
			 ETIMEDOUT)
			break;
	}
	pthread_mutex_unlock(&sampler->lock);
	return !is_closing(sampler);
}

/* ---- a processor's time ---- */

static void renew_allowance(struct ts_python_sampler *sampler, int64_t now_ns)
{
	int64_t cpu_ns = ts_clock_thread_cpu_ns();
	unsigned int percent = sampler->sampling.options.cpu_percent;

	sampler->allowance_ns += (now_ns - sampler->allowed_ns) * percent / 100;
	sampler->allowance_ns = TS_MIN(sampler->allowance_ns, CPU_SAVED_NS * percent / 100);
	sampler->allowance_ns -= cpu_ns - sampler->cpu_ns;
	sampler->allowed_ns = now_ns;
	sampler->cpu_ns = cpu_ns;
}

/* ---- who is sampled ---- */

static struct watched_process *find_watched(struct ts_python_sampler *sampler,
					    const struct ts_sampled_process *what)
{
	for (size_t i = 0; i < sampler->count; i++) {
		struct watched_process *process = sampler->watched[i];

		if (process && process->what.pid == what->pid &&
		    process->what.start_time == what->start_time) {
			sampler->watched[i] = NULL;
			return process;
		}
	}
	return NULL;
}

/* After a pause, or with another interval, start over. */
static void set_interval(struct ts_python_sampler *sampler, struct watched_process *process,
			 int64_t interval_ns, int64_t now_ns)
{
	if (interval_ns)
		interval_ns = TS_MAX(interval_ns, TS_PYTHON_MIN_INTERVAL_NS);
	if (interval_ns && interval_ns < EXACT_BELOW_NS && !sampler->is_exact)
		sampler->is_exact = !prctl(PR_SET_TIMERSLACK, EXACT_SLACK_NS, 0, 0, 0);
	if (process->what.interval_ns == interval_ns)
		return;
	process->what.interval_ns = interval_ns;
	process->slot_ns = now_ns;
	process->due_ns = interval_ns ? now_ns + draw(sampler, interval_ns) : INT64_MAX;
	process->sampled_ns = 0;
}

static void drop_watched(struct ts_python_sampler *sampler, struct watched_process *process)
{
	ts_python_watch_add_counts(&sampler->gone, &process->counts, &process->emitted_counts);
	sampler->gone_longest_ns = TS_MAX(sampler->gone_longest_ns, process->longest_ns);
	ts_python_watch_free(&sampler->sampling, process);
}

static void renew_watched(struct ts_python_sampler *sampler, const struct ts_sampled_process *list,
			  size_t count, int64_t now_ns)
{
	struct watched_process **watched = calloc(count + 1, sizeof(struct watched_process *));
	size_t kept = 0;

	if (!watched)
		return;
	for (size_t i = 0; i < count; i++) {
		struct watched_process *process = find_watched(sampler, &list[i]);

		if (!process)
			process = ts_python_watch_new(&list[i], now_ns);
		if (!process)
			continue;
		set_interval(sampler, process, list[i].interval_ns, now_ns);
		watched[kept++] = process;
	}
	for (size_t i = 0; i < sampler->count; i++)
		if (sampler->watched[i])
			drop_watched(sampler, sampler->watched[i]);
	free(sampler->watched);
	sampler->watched = watched;
	sampler->count = kept;
}

static void note_requests(struct ts_python_sampler *sampler, const pid_t *requests, size_t count)
{
	for (size_t i = 0; i < sampler->count; i++) {
		struct watched_process *process = sampler->watched[i];

		for (size_t k = 0; k < count; k++)
			process->requested |= !requests[k] || requests[k] == process->what.pid;
		if (process->requested && !process->python)
			process->try_ns = 0;
	}
}

static void take_changes(struct ts_python_sampler *sampler, int64_t now_ns)
{
	struct ts_sampled_process *list = NULL;
	pid_t requests[MAX_REQUESTS];
	size_t count = 0, request_count = 0;

	pthread_mutex_lock(&sampler->lock);
	if (sampler->serial != sampler->seen_serial) {
		count = sampler->processes.count;
		list = calloc(count + 1, sizeof(*list));
		request_count = sampler->request_count;
		memcpy(requests, sampler->requests, request_count * sizeof(*requests));
		sampler->request_count = 0;
		if (list && count)
			memcpy(list, sampler->processes.items, count * sizeof(*list));
		sampler->seen_serial = sampler->serial;
	}
	pthread_mutex_unlock(&sampler->lock);
	if (list)
		renew_watched(sampler, list, count, now_ns);
	note_requests(sampler, requests, request_count);
	free(list);
}

/* ---- counters ---- */

static void write_status(struct ts_python_sampler *sampler)
{
	struct ts_python_sampler_status status = { .cpu_ns = sampler->cpu_ns };
	struct sampling_counts sum = sampler->total;
	const struct sampling_counts nothing = { 0 };

	ts_python_watch_add_counts(&sum, &sampler->gone, &nothing);
	for (size_t i = 0; i < sampler->count; i++) {
		const struct watched_process *process = sampler->watched[i];

		ts_python_watch_add_counts(&sum, &process->counts, &process->emitted_counts);
		status.processes += process->python != NULL;
		status.threads += process->thread_count;
	}
	status.samples = sum.stacks;
	status.rejected = sum.rejected;
	status.late_ticks = sum.late;
	status.left_out_ticks = sum.left_out;
	pthread_mutex_lock(&sampler->lock);
	sampler->status = status;
	pthread_mutex_unlock(&sampler->lock);
}

static void emit_counters(struct ts_python_sampler *sampler, int64_t now_ns)
{
	int64_t elapsed_ns = now_ns - sampler->counted_ns, longest_ns = sampler->gone_longest_ns;
	struct sampling_counts since = sampler->gone;
	const struct sampling_counts nothing = { 0 };

	for (size_t i = 0; i < sampler->count; i++) {
		struct watched_process *process = sampler->watched[i];

		ts_python_watch_add_counts(&since, &process->counts, &process->emitted_counts);
		longest_ns = TS_MAX(longest_ns, process->longest_ns);
		ts_python_watch_report_counters(&sampler->sampling, process, elapsed_ns);
	}
	since.cpu_ns = sampler->cpu_ns - sampler->counted_cpu_ns;
	if (since.ticks)
		ts_python_watch_report_totals(&sampler->sampling, &since, longest_ns, elapsed_ns);
	since.cpu_ns = 0;
	ts_python_watch_add_counts(&sampler->total, &since, &nothing);
	sampler->gone = nothing;
	sampler->gone_longest_ns = 0;
	sampler->counted_ns = now_ns;
	sampler->counted_cpu_ns = sampler->cpu_ns;
}

/* The rest of a second. */
static void end_counters(struct ts_python_sampler *sampler)
{
	int64_t now_ns = ts_clock_monotonic_ns();

	renew_allowance(sampler, now_ns);
	if (now_ns - sampler->counted_ns >= COUNTERS_LEAST_NS)
		emit_counters(sampler, now_ns);
	write_status(sampler);
}

/* ---- the thread ---- */

static void serve(struct ts_python_sampler *sampler, struct watched_process *process,
		  int64_t now_ns)
{
	bool due = process->python && now_ns >= process->due_ns;

	if (process->ended)
		return;
	if (!process->python && now_ns >= due_of(process)) {
		ts_python_watch_try(&sampler->sampling, process, now_ns);
		due = process->python && process->what.interval_ns;
	}
	if (!process->python || (!due && !process->requested))
		return;
	renew_allowance(sampler, now_ns);
	if (sampler->allowance_ns >= 0 || process->requested)
		ts_python_watch_sample(&sampler->sampling, process, now_ns);
	else
		process->counts.left_out++;
	if (due && process->python)
		set_next_due(sampler, process, ts_clock_monotonic_ns());
}

static void *run(void *context)
{
	struct ts_python_sampler *sampler = context;

	sampler->allowed_ns = sampler->counted_ns = ts_clock_monotonic_ns();
	while (wait_for_turn(sampler)) {
		int64_t now_ns = ts_clock_monotonic_ns();

		take_changes(sampler, now_ns);
		for (size_t i = 0; i < sampler->count && !is_closing(sampler); i++)
			serve(sampler, sampler->watched[i], i ? ts_clock_monotonic_ns() : now_ns);
		if (now_ns - sampler->counted_ns >= COUNTERS_NS) {
			renew_allowance(sampler, now_ns);
			emit_counters(sampler, now_ns);
		}
		write_status(sampler);
	}
	end_counters(sampler);
	return NULL;
}

/* ---- opening and closing ---- */

static void free_sampler(struct ts_python_sampler *sampler)
{
	for (size_t i = 0; i < sampler->count; i++)
		ts_python_watch_free(&sampler->sampling, sampler->watched[i]);
	free(sampler->watched);
	ts_sampled_processes_release(&sampler->processes);
	free(sampler->sampling.frames);
	free(sampler->sampling.free_slots);
	ts_text_release(&sampler->sampling.locals);
	pthread_cond_destroy(&sampler->changed);
	pthread_mutex_destroy(&sampler->lock);
	free(sampler);
}

static void init_lock(struct ts_python_sampler *sampler)
{
	pthread_condattr_t by_monotonic;

	pthread_mutex_init(&sampler->lock, NULL);
	pthread_condattr_init(&by_monotonic);
	pthread_condattr_setclock(&by_monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&sampler->changed, &by_monotonic);
	pthread_condattr_destroy(&by_monotonic);
}

int ts_python_sampler_open(struct ts_python_sampler **ret_sampler,
			   const struct ts_python_sampler_options *options,
			   const struct ts_python_consumer *consumer, struct ts_error *err)
{
	struct ts_python_sampler *sampler = calloc(1, sizeof(*sampler));
	int error;

	if (!sampler)
		return ts_error_set(err, TS_ENOMEM, "no memory to sample Python stacks");
	init_lock(sampler);
	sampler->consumer = *consumer;
	sampler->sampling.consumer = &sampler->consumer;
	sampler->sampling.options = *options;
	if (!options->cpu_percent)
		sampler->sampling.options.cpu_percent = CPU_PERCENT;
	sampler->random = (uint64_t)ts_clock_monotonic_ns() ^ (uint64_t)(uintptr_t)sampler;
	error = ts_thread_start(&sampler->thread, "ts-python", run, sampler);
	if (error) {
		free_sampler(sampler);
		return ts_error_errno(err, error, "cannot start a thread to sample Python stacks");
	}
	*ret_sampler = sampler;
	return TS_OK;
}

void ts_python_sampler_close(struct ts_python_sampler *sampler)
{
	if (!sampler)
		return;
	pthread_mutex_lock(&sampler->lock);
	__atomic_store_n(&sampler->closing, true, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&sampler->changed);
	pthread_mutex_unlock(&sampler->lock);
	pthread_join(sampler->thread, NULL);
	free_sampler(sampler);
}

/* ---- while it runs ---- */

int ts_python_sampler_set_processes(struct ts_python_sampler *sampler,
				    const struct ts_sampled_process *processes, size_t count,
				    struct ts_error *err)
{
	bool has_changed;
	int rc;

	pthread_mutex_lock(&sampler->lock);
	rc = ts_sampled_processes_set(&sampler->processes, processes, count, &has_changed, err);
	if (has_changed) {
		sampler->serial++;
		pthread_cond_broadcast(&sampler->changed);
	}
	pthread_mutex_unlock(&sampler->lock);
	return rc;
}

void ts_python_sampler_request(struct ts_python_sampler *sampler, pid_t pid)
{
	pthread_mutex_lock(&sampler->lock);
	/* Too many to tell apart: all. */
	if (sampler->request_count == MAX_REQUESTS) {
		sampler->requests[0] = 0;
		sampler->request_count = 1;
	} else {
		sampler->requests[sampler->request_count++] = pid;
	}
	sampler->serial++;
	pthread_cond_broadcast(&sampler->changed);
	pthread_mutex_unlock(&sampler->lock);
}

void ts_python_sampler_status(struct ts_python_sampler *sampler,
			      struct ts_python_sampler_status *ret_status)
{
	pthread_mutex_lock(&sampler->lock);
	*ret_status = sampler->status;
	pthread_mutex_unlock(&sampler->lock);
}
