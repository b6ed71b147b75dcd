/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampling threads: one for machine and processes, one per device source. One lock guards the
 * shared state; it is not held while reading. A thread that hangs inside a source is reported, and
 * abandoned on close.
 */
#include "sample/metrics/metrics_sampler.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "sample/metrics/host/host_metrics.h"
#include "sample/metrics/metric_sources.h"

#define NS_PER_S INT64_C(1000000000)
#define WORKERS 16
/* Limit of waiting for a running sample on close. */
#define CLOSE_NS (NS_PER_S / 2)
/* A source that has not answered for this long is reported. */
#define SILENT_NS (8 * NS_PER_S)
#define HOST "host"

struct worker {
	struct ts_metrics_sampler *sampler;
	const struct ts_metrics_source *source; /* NULL: the machine and its processes */
	pthread_t thread;
	struct ts_metrics_rows rows;
	/* Under the lock. */
	bool started, ended;
	bool has_sampled;
	int64_t busy_ns; /* when it entered the source; 0: not inside */
	bool reported;   /* reported as silent */
};

/* A sampled process; belongs to the host thread. */
struct watched {
	struct ts_sampled_process what;
	struct ts_process_metrics *metrics; /* NULL: it has exited */
	int64_t due_ns;
};

struct ts_metrics_sampler {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock. */
	unsigned int users; /* reference count: the owner and each thread */
	bool closing;
	int64_t interval_ns;
	struct ts_sampled_processes processes;
	uint64_t serial; /* counts changes of the list */

	bool wants_host; /* else its thread only watches the others */
	const struct ts_metrics_consumer *consumer;
	struct ts_metrics_consumer passed_on; /* collects the rows */
	struct worker workers[WORKERS];
	unsigned int worker_count;
	/* Belongs to the host thread. */
	struct watched *watched;
	size_t watched_count;
};

/* ---- rows: none after the end ---- */

static bool is_closing(struct ts_metrics_sampler *sampler)
{
	return __atomic_load_n(&sampler->closing, __ATOMIC_ACQUIRE);
}

static void pass_device(void *context, const struct ts_metrics_device *device)
{
	struct ts_metrics_sampler *sampler = context;

	if (!is_closing(sampler))
		sampler->consumer->device(sampler->consumer->context, device);
}

static void pass_row(void *context, const struct ts_metrics_subject *subject, const char *name,
		     const struct ts_emit_arg *values, unsigned int count)
{
	struct ts_metrics_sampler *sampler = context;

	if (!is_closing(sampler))
		sampler->consumer->row(sampler->consumer->context, subject, name, values, count);
}

static void pass_message(void *context, const char *source, const char *text)
{
	struct ts_metrics_sampler *sampler = context;

	if (!is_closing(sampler))
		sampler->consumer->message(sampler->consumer->context, source, text);
}

/* ---- waiting ---- */

static void let_go(struct ts_metrics_sampler *sampler)
{
	unsigned int left;

	pthread_mutex_lock(&sampler->lock);
	left = --sampler->users;
	pthread_cond_broadcast(&sampler->changed);
	pthread_mutex_unlock(&sampler->lock);
	if (left)
		return;
	pthread_cond_destroy(&sampler->changed);
	pthread_mutex_destroy(&sampler->lock);
	ts_sampled_processes_release(&sampler->processes);
	free(sampler);
}

/*
 * The next multiple of an interval other than 0: everything with the same interval is sampled in
 * one wake-up.
 */
static int64_t next_due(int64_t now_ns, int64_t interval_ns)
{
	return (now_ns / interval_ns + 1) * interval_ns;
}

/* Until then, or until something changes; lock held. */
static void wait_until(struct ts_metrics_sampler *sampler, int64_t due_ns)
{
	struct timespec until = { .tv_sec = due_ns / NS_PER_S, .tv_nsec = due_ns % NS_PER_S };

	if (due_ns == INT64_MAX)
		pthread_cond_wait(&sampler->changed, &sampler->lock);
	else
		pthread_cond_timedwait(&sampler->changed, &sampler->lock, &until);
}

static void end_worker(struct worker *worker)
{
	struct ts_metrics_sampler *sampler = worker->sampler;

	pthread_mutex_lock(&sampler->lock);
	worker->ended = true;
	worker->busy_ns = 0;
	pthread_mutex_unlock(&sampler->lock);
	let_go(sampler);
}

/* ---- devices ---- */

/* When to sample a source next: immediately at first, and after a pause. */
static int64_t source_due(const struct worker *worker, int64_t from_ns)
{
	int64_t interval_ns = worker->sampler->interval_ns;

	if (!interval_ns)
		return INT64_MAX;
	if (!worker->has_sampled)
		return 0;
	return next_due(from_ns, TS_MAX(interval_ns, worker->source->least_interval_ns));
}

/*
 * Sleeps until the next sample; false: closing. *ret_paused: earlier state is from before a pause.
 */
static bool wait_for_turn(struct worker *worker, bool *ret_paused)
{
	struct ts_metrics_sampler *sampler = worker->sampler;
	int64_t from_ns = ts_clock_monotonic_ns(), due_ns;

	pthread_mutex_lock(&sampler->lock);
	worker->busy_ns = 0;
	*ret_paused = false;
	while (!sampler->closing) {
		due_ns = source_due(worker, from_ns);
		*ret_paused |= worker->has_sampled && due_ns == INT64_MAX;
		if (ts_clock_monotonic_ns() >= due_ns)
			break;
		wait_until(sampler, due_ns);
	}
	worker->busy_ns = ts_clock_monotonic_ns();
	worker->reported = false;
	pthread_mutex_unlock(&sampler->lock);
	return !is_closing(sampler);
}

static enum ts_metrics_state open_source(struct worker *worker, void **ret_state)
{
	char why[512] = "";
	enum ts_metrics_state found = worker->source->open(ret_state, why, sizeof(why));

	if (found == TS_METRICS_BROKEN)
		pass_message(worker->sampler, worker->source->name, why);
	return found;
}

static void note_sample(struct worker *worker)
{
	pthread_mutex_lock(&worker->sampler->lock);
	if (!worker->has_sampled)
		pthread_cond_broadcast(&worker->sampler->changed);
	worker->has_sampled = true;
	pthread_mutex_unlock(&worker->sampler->lock);
}

static void *run_source(void *context)
{
	struct worker *worker = context;
	const struct ts_metrics_source *source = worker->source;
	void *state = NULL;
	enum ts_metrics_state found = open_source(worker, &state);
	bool paused, failed = false;

	while (found == TS_METRICS_READY && !failed && wait_for_turn(worker, &paused)) {
		/* Rates would be averages over the pause. */
		if (paused) {
			source->close(state);
			found = open_source(worker, &state);
			continue;
		}
		failed = source->sample(state, &worker->rows.sink) != 0;
		ts_metrics_rows_flush(&worker->rows);
		note_sample(worker);
	}
	if (found == TS_METRICS_READY)
		source->close(state);
	end_worker(worker);
	return NULL;
}

/* ---- the machine and its processes ---- */

static bool is_same(const struct ts_sampled_process *a, const struct ts_sampled_process *b)
{
	return a->pid == b->pid && a->start_time == b->start_time;
}

/*
 * Takes it from the old list; NULL if it is new. Nothing is kept over a pause: rates would be
 * averages over it.
 */
static struct ts_process_metrics *inherit(struct ts_metrics_sampler *sampler, struct watched *now)
{
	if (!now->what.interval_ns)
		return NULL;
	for (size_t i = 0; i < sampler->watched_count; i++) {
		struct watched *old = &sampler->watched[i];

		if (!is_same(&old->what, &now->what) || !old->what.interval_ns)
			continue;
		if (old->what.interval_ns == now->what.interval_ns)
			now->due_ns = old->due_ns;
		old->what.pid = 0;
		return TS_STEAL(old->metrics);
	}
	ts_process_metrics_open(&now->metrics, now->what.pid, now->what.start_time, NULL);
	return now->metrics;
}

static void forget_watched(struct ts_metrics_sampler *sampler)
{
	for (size_t i = 0; i < sampler->watched_count; i++)
		ts_process_metrics_close(sampler->watched[i].metrics);
	free(sampler->watched);
	sampler->watched = NULL;
	sampler->watched_count = 0;
}

/* Rebuilds the list of watched processes. Without memory the old one stays. */
static void renew_watched(struct ts_metrics_sampler *sampler, const struct ts_sampled_process *list,
			  size_t count)
{
	struct watched *watched = calloc(count + 1, sizeof(*watched));

	if (!watched)
		return;
	for (size_t i = 0; i < count; i++) {
		watched[i].what = list[i];
		watched[i].metrics = inherit(sampler, &watched[i]);
	}
	forget_watched(sampler);
	sampler->watched = watched;
	sampler->watched_count = count;
}

static void take_list(struct ts_metrics_sampler *sampler, uint64_t *serial)
{
	struct ts_sampled_process *list;
	size_t count;

	pthread_mutex_lock(&sampler->lock);
	count = *serial == sampler->serial ? 0 : sampler->processes.count;
	list = *serial == sampler->serial ? NULL : calloc(count + 1, sizeof(*list));
	if (list) {
		memcpy(list, sampler->processes.items, count * sizeof(*list));
		*serial = sampler->serial;
	}
	pthread_mutex_unlock(&sampler->lock);
	if (list)
		renew_watched(sampler, list, count);
	free(list);
}

static void sample_processes(struct ts_metrics_sampler *sampler, int64_t now_ns,
			     const struct ts_metrics_sink *sink)
{
	for (size_t i = 0; i < sampler->watched_count; i++) {
		struct watched *watched = &sampler->watched[i];

		if (!watched->metrics || !watched->what.interval_ns || now_ns < watched->due_ns)
			continue;
		watched->due_ns = next_due(now_ns, watched->what.interval_ns);
		if (!ts_process_metrics_sample(watched->metrics, now_ns, sink))
			ts_process_metrics_close(TS_STEAL(watched->metrics));
	}
}

/* The thread that does not hang reports the one that does. */
static void watch_others(struct ts_metrics_sampler *sampler, int64_t now_ns)
{
	for (unsigned int i = 0; i < sampler->worker_count; i++) {
		struct worker *worker = &sampler->workers[i];
		char text[160];
		bool is_silent;

		pthread_mutex_lock(&sampler->lock);
		is_silent = worker->busy_ns && now_ns - worker->busy_ns > SILENT_NS &&
			    !worker->reported;
		worker->reported |= is_silent;
		pthread_mutex_unlock(&sampler->lock);
		if (!is_silent)
			continue;
		snprintf(text, sizeof(text),
			 "has not answered for %d s; its values are missing until it does",
			 (int)(SILENT_NS / NS_PER_S));
		pass_message(sampler, worker->source->name, text);
	}
}

struct host_turn {
	struct ts_system_metrics *system; /* NULL: paused, or unreadable */
	bool is_broken;
	int64_t system_ns; /* when the machine is due */
	int64_t interval_ns;
	uint64_t serial;
};

static int64_t host_due(const struct ts_metrics_sampler *sampler, const struct host_turn *turn)
{
	int64_t due_ns = turn->system_ns;

	if (!sampler->wants_host)
		return next_due(ts_clock_monotonic_ns(), SILENT_NS);
	for (size_t i = 0; i < sampler->watched_count; i++)
		if (sampler->watched[i].metrics && sampler->watched[i].what.interval_ns)
			due_ns = TS_MIN(due_ns, sampler->watched[i].due_ns);
	return due_ns;
}

static bool wait_for_host_turn(struct ts_metrics_sampler *sampler, struct host_turn *turn)
{
	int64_t due_ns = host_due(sampler, turn);

	pthread_mutex_lock(&sampler->lock);
	while (!sampler->closing && ts_clock_monotonic_ns() < due_ns &&
	       (!sampler->wants_host ||
		(sampler->serial == turn->serial && sampler->interval_ns == turn->interval_ns)))
		wait_until(sampler, due_ns);
	if (turn->interval_ns != sampler->interval_ns) {
		turn->interval_ns = sampler->interval_ns;
		turn->system_ns = turn->interval_ns ? 0 : INT64_MAX;
	}
	pthread_mutex_unlock(&sampler->lock);
	return !is_closing(sampler);
}

/* Nothing is kept over a pause, see inherit(). */
static void open_or_close_system(struct ts_metrics_sampler *sampler, struct host_turn *turn)
{
	struct ts_error why;

	if (!turn->interval_ns) {
		ts_system_metrics_close(TS_STEAL(turn->system));
	} else if (!turn->system && !turn->is_broken) {
		turn->is_broken = ts_system_metrics_open(&turn->system, &why) != TS_OK;
		if (turn->is_broken)
			pass_message(sampler, HOST, why.message);
	}
}

static void sample_host(struct ts_metrics_sampler *sampler, struct host_turn *turn,
			const struct ts_metrics_sink *sink)
{
	int64_t now_ns = ts_clock_monotonic_ns();

	take_list(sampler, &turn->serial);
	open_or_close_system(sampler, turn);
	if (turn->interval_ns && now_ns >= turn->system_ns) {
		turn->system_ns = next_due(now_ns, turn->interval_ns);
		if (turn->system)
			ts_system_metrics_sample(turn->system, now_ns, sink);
	}
	sample_processes(sampler, now_ns, sink);
}

static void *run_host(void *context)
{
	struct worker *worker = context;
	struct ts_metrics_sampler *sampler = worker->sampler;
	struct host_turn turn = { .system_ns = INT64_MAX };

	while (wait_for_host_turn(sampler, &turn)) {
		if (sampler->wants_host)
			sample_host(sampler, &turn, &worker->rows.sink);
		ts_metrics_rows_flush(&worker->rows);
		watch_others(sampler, ts_clock_monotonic_ns());
	}
	forget_watched(sampler);
	ts_system_metrics_close(turn.system);
	end_worker(worker);
	return NULL;
}

/* ---- opening ---- */

static int add_worker(struct ts_metrics_sampler *sampler, const struct ts_metrics_source *source,
		      struct ts_error *err)
{
	struct worker *worker = &sampler->workers[sampler->worker_count];

	if (sampler->worker_count == WORKERS)
		return ts_error_set(err, TS_EINVAL, "more than %d metric sources", WORKERS);
	worker->sampler = sampler;
	worker->source = source;
	ts_metrics_rows_init(&worker->rows, &sampler->passed_on, source ? source->name : HOST,
			     sampler->worker_count++);
	return TS_OK;
}

static int add_all(struct ts_metrics_sampler *sampler, struct ts_error *err)
{
	const struct ts_metrics_source *const *sources = ts_metrics_sources();
	int rc = TS_OK;

	sampler->wants_host = true;
	for (size_t i = 0; sources[i] && !rc; i++)
		rc = add_worker(sampler, sources[i], err);
	return rc;
}

static int add_named(struct ts_metrics_sampler *sampler, const char *names, struct ts_error *err)
{
	int rc = TS_OK;

	while (*names && !rc) {
		const struct ts_metrics_source *source = NULL;
		size_t length = strcspn(names, ",");
		char name[64];

		snprintf(name, sizeof(name), "%.*s", (int)TS_MIN(length, sizeof(name) - 1), names);
		names += length + (names[length] == ',');
		if (strcmp(name, HOST) == 0) {
			sampler->wants_host = true;
			continue;
		}
		if (length)
			rc = ts_metrics_source_find(name, &source, err);
		if (length && !rc)
			rc = add_worker(sampler, source, err);
	}
	return rc;
}

static void start_worker(struct worker *worker)
{
	const char *name = worker->source ? worker->source->name : HOST;
	struct ts_metrics_sampler *sampler = worker->sampler;
	char thread_name[16];
	int error;

	snprintf(thread_name, sizeof(thread_name), "ts-%.12s", name);
	sampler->users++;
	worker->started = true;
	worker->busy_ns = worker->source ? ts_clock_monotonic_ns() : 0;
	error = ts_thread_start(&worker->thread, thread_name,
				worker->source ? run_source : run_host, worker);
	if (!error)
		return;
	sampler->users--;
	worker->started = false;
	sampler->consumer->message(sampler->consumer->context, name,
				   "cannot start a thread to sample it");
}

static void start_workers(struct ts_metrics_sampler *sampler)
{
	pthread_mutex_lock(&sampler->lock);
	for (unsigned int i = 0; i < sampler->worker_count; i++)
		start_worker(&sampler->workers[i]);
	pthread_mutex_unlock(&sampler->lock);
}

int ts_metrics_sampler_open(struct ts_metrics_sampler **ret_sampler, const char *names,
			    const struct ts_metrics_consumer *consumer, struct ts_error *err)
{
	struct ts_metrics_sampler *sampler = calloc(1, sizeof(*sampler));
	pthread_condattr_t by_monotonic;
	int rc;

	if (!sampler)
		return ts_error_set(err, TS_ENOMEM, "no memory to sample metrics");
	sampler->consumer = consumer;
	sampler->passed_on =
		(struct ts_metrics_consumer){ sampler, pass_device, pass_row, pass_message };
	sampler->users = 1;
	pthread_mutex_init(&sampler->lock, NULL);
	pthread_condattr_init(&by_monotonic);
	pthread_condattr_setclock(&by_monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&sampler->changed, &by_monotonic);
	pthread_condattr_destroy(&by_monotonic);
	rc = add_worker(sampler, NULL, err);
	if (!rc)
		rc = names ? add_named(sampler, names, err) : add_all(sampler, err);
	if (rc) {
		let_go(sampler);
		return rc;
	}
	start_workers(sampler);
	*ret_sampler = sampler;
	return TS_OK;
}

/* ---- while it runs ---- */

void ts_metrics_sampler_set_interval(struct ts_metrics_sampler *sampler, int64_t interval_ns)
{
	pthread_mutex_lock(&sampler->lock);
	if (sampler->interval_ns != interval_ns) {
		sampler->interval_ns = interval_ns;
		pthread_cond_broadcast(&sampler->changed);
	}
	pthread_mutex_unlock(&sampler->lock);
}

int ts_metrics_sampler_set_processes(struct ts_metrics_sampler *sampler,
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

static bool have_all_sampled(const struct ts_metrics_sampler *sampler)
{
	for (unsigned int i = 0; i < sampler->worker_count; i++) {
		const struct worker *worker = &sampler->workers[i];

		if (worker->source && worker->started && !worker->ended && !worker->has_sampled)
			return false;
	}
	return true;
}

bool ts_metrics_sampler_wait_first(struct ts_metrics_sampler *sampler, int64_t limit_ns)
{
	int64_t until_ns = ts_clock_monotonic_ns() + limit_ns;
	bool all;

	pthread_mutex_lock(&sampler->lock);
	while (!have_all_sampled(sampler) && ts_clock_monotonic_ns() < until_ns)
		wait_until(sampler, until_ns);
	all = have_all_sampled(sampler);
	pthread_mutex_unlock(&sampler->lock);
	return all;
}

/* ---- the end ---- */

static bool are_all_ended(const struct ts_metrics_sampler *sampler)
{
	for (unsigned int i = 0; i < sampler->worker_count; i++)
		if (sampler->workers[i].started && !sampler->workers[i].ended)
			return false;
	return true;
}

void ts_metrics_sampler_close(struct ts_metrics_sampler *sampler)
{
	int64_t until_ns = ts_clock_monotonic_ns() + CLOSE_NS;

	if (!sampler)
		return;
	pthread_mutex_lock(&sampler->lock);
	__atomic_store_n(&sampler->closing, true, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&sampler->changed);
	while (!are_all_ended(sampler) && ts_clock_monotonic_ns() < until_ns)
		wait_until(sampler, until_ns);
	for (unsigned int i = 0; i < sampler->worker_count; i++) {
		struct worker *worker = &sampler->workers[i];
		pthread_t thread = worker->thread;
		bool ended = worker->ended;

		if (!worker->started)
			continue;
		/* An ended thread is about to return. */
		pthread_mutex_unlock(&sampler->lock);
		if (ended)
			pthread_join(thread, NULL);
		else
			pthread_detach(thread);
		pthread_mutex_lock(&sampler->lock);
	}
	pthread_mutex_unlock(&sampler->lock);
	let_go(sampler);
}
