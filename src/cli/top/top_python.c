/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts samples of the Python sampler, on its thread, and returns what came between two refreshes.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/top/top_python.h"

#define MIN_NS (4 * TS_TOP_PYTHON_INTERVAL_NS)

/* A sampled thread. */
struct seen_thread {
	struct ts_top_python_thread shown;
	bool is_main;
	int64_t weight_ns, active_ns, gil_ns; /* since the last refresh */
	uint32_t function;
};

struct ts_top_python {
	struct ts_python_consumer consumer;
	struct ts_python_sampler *sampler;
	bool is_watching;

	pthread_mutex_t lock;                /* guards everything below */
	struct ts_top_functions active, all; /* of active threads; of all */
	struct ts_pairmap numbers;           /* (pid, tid) to index in threads */
	struct seen_thread *threads;
	size_t count, capacity;
	struct ts_pairmap processes; /* pid to pid, of this interval */
	int64_t gil_ns;
	int64_t begun_ns;           /* of the interval; 0: none */
	uint64_t samples, rejected; /* as of the last refresh */
	char message[256];
};

/* ---- counting, on the sampler's thread ---- */

static struct seen_thread *find_thread(struct ts_top_python *python, pid_t pid, pid_t tid)
{
	bool is_new;
	uint64_t *number =
		ts_pairmap_insert(&python->numbers, (uint64_t)pid, (uint64_t)tid, &is_new);

	if (!number)
		return NULL;
	if (!is_new)
		return *number < python->count ? &python->threads[*number] : NULL;
	*number = UINT64_MAX;
	if (ts_grow_array((void **)&python->threads, &python->capacity, python->count + 1,
			  sizeof(*python->threads)))
		return NULL;
	*number = python->count;
	python->threads[python->count] = (struct seen_thread){
		.shown = { .pid = pid, .tid = tid },
		.function = TS_TOP_NO_FUNCTION,
	};
	return &python->threads[python->count++];
}

/* Its number is stored with the code, plus 1. */
static uint32_t number_of(struct ts_top_python *python, struct ts_python_code *code)
{
	uint32_t number;

	if (code->tag)
		return code->tag - 1;
	number = ts_top_functions_intern(&python->all, code->name, code->file, code->first_line);
	if (number == TS_TOP_NO_FUNCTION ||
	    ts_top_functions_intern(&python->active, code->name, code->file, code->first_line) !=
		    number)
		return TS_TOP_NO_FUNCTION;
	code->tag = number + 1;
	return number;
}

static uint32_t count_frames(struct ts_top_python *python, const struct ts_python_sample *sample,
			     bool is_active)
{
	uint32_t innermost = TS_TOP_NO_FUNCTION;
	bool is_first = true;

	ts_top_functions_begin(&python->all);
	ts_top_functions_begin(&python->active);
	for (uint32_t i = 0; i < sample->count; i++) {
		uint32_t number;

		if (!sample->frames[i].python)
			continue;
		number = number_of(python, sample->frames[i].python);
		ts_top_functions_frame(&python->all, number, is_first, sample->weight_ns);
		if (is_active)
			ts_top_functions_frame(&python->active, number, is_first,
					       sample->weight_ns);
		innermost = is_first ? number : innermost;
		is_first = false;
	}
	return innermost;
}

static void count_thread(struct ts_top_python *python, const struct ts_python_sample *sample,
			 bool is_active, uint32_t function)
{
	struct seen_thread *thread = find_thread(python, sample->pid, sample->tid);
	bool has_gil = sample->thread->state & TS_PYTHON_HAS_GIL;

	if (!thread)
		return;
	snprintf(thread->shown.name, sizeof(thread->shown.name), "%s", sample->thread->name);
	snprintf(thread->shown.task, sizeof(thread->shown.task), "%s", sample->thread->task);
	thread->is_main = sample->thread->is_main;
	thread->shown.state = sample->thread->state;
	thread->shown.line = sample->count ? sample->frames[0].line : 0;
	thread->function = function;
	thread->weight_ns += sample->weight_ns;
	thread->active_ns += is_active ? sample->weight_ns : 0;
	thread->gil_ns += has_gil ? sample->weight_ns : 0;
	python->gil_ns += has_gil ? sample->weight_ns : 0;
}

void ts_top_python_take(struct ts_top_python *python, const struct ts_python_sample *sample)
{
	bool is_active = sample->thread->state != 0;
	uint32_t function;

	pthread_mutex_lock(&python->lock);
	function = count_frames(python, sample, is_active);
	count_thread(python, sample, is_active, function);
	ts_pairmap_insert(&python->processes, (uint64_t)sample->pid, 0, NULL);
	pthread_mutex_unlock(&python->lock);
}

static void on_sample(void *context, const struct ts_python_sample *sample)
{
	ts_top_python_take(context, sample);
}

static void on_thread(void *context, pid_t pid, uint64_t start_time, pid_t tid, const char *name)
{
}

static void on_counter(void *context, pid_t pid, uint64_t start_time, const char *name,
		       const struct ts_python_counter *values, unsigned int count)
{
}

static void on_message(void *context, pid_t pid, const char *text)
{
	struct ts_top_python *python = context;

	pthread_mutex_lock(&python->lock);
	snprintf(python->message, sizeof(python->message), "%.250s", text);
	pthread_mutex_unlock(&python->lock);
}

/* ---- opening and closing ---- */

int ts_top_python_open(struct ts_top_python **ret_python, struct ts_error *err)
{
	const struct ts_python_sampler_options options = { .tasks = true };
	struct ts_top_python *python = calloc(1, sizeof(*python));
	int rc;

	if (!python)
		return ts_error_set(err, TS_ENOMEM, "no memory for the sampler of Python stacks");
	pthread_mutex_init(&python->lock, NULL);
	ts_top_functions_init(&python->active);
	ts_top_functions_init(&python->all);
	python->consumer = (struct ts_python_consumer){
		.context = python,
		.sample = on_sample,
		.thread = on_thread,
		.counter = on_counter,
		.message = on_message,
	};
	rc = ts_python_sampler_open(&python->sampler, &options, &python->consumer, err);
	if (rc)
		ts_top_python_close(python);
	else
		*ret_python = python;
	return rc;
}

void ts_top_python_close(struct ts_top_python *python)
{
	if (!python)
		return;
	ts_python_sampler_close(python->sampler);
	ts_top_functions_release(&python->active);
	ts_top_functions_release(&python->all);
	ts_pairmap_release(&python->numbers);
	ts_pairmap_release(&python->processes);
	free(python->threads);
	pthread_mutex_destroy(&python->lock);
	free(python);
}

int ts_top_python_watch(struct ts_top_python *python, const struct ts_sampled_process *processes,
			size_t count, struct ts_error *err)
{
	struct ts_sampled_process *wanted = calloc(count + 1, sizeof(*wanted));
	int rc;

	if (!wanted)
		return ts_error_set(err, TS_ENOMEM, "no memory for %zu processes", count);
	for (size_t i = 0; i < count; i++) {
		wanted[i] = processes[i];
		wanted[i].interval_ns = TS_TOP_PYTHON_INTERVAL_NS;
	}
	rc = ts_python_sampler_set_processes(python->sampler, wanted, count, err);
	free(wanted);
	if (!count || !python->is_watching)
		python->begun_ns = count ? ts_clock_monotonic_ns() : 0;
	python->is_watching = count > 0;
	return rc;
}

/* ---- snapshot ---- */

void ts_top_python_snapshot_release(struct ts_top_python_snapshot *picture)
{
	free(picture->functions);
	free(picture->threads);
	*picture = (struct ts_top_python_snapshot){ 0 };
}

static int compare_threads(const void *left, const void *right)
{
	const struct seen_thread *a = left, *b = right;

	if (a->shown.pid != b->shown.pid)
		return TS_COMPARE(a->shown.pid, b->shown.pid);
	if (a->is_main != b->is_main)
		return a->is_main ? -1 : 1;
	return TS_COMPARE(a->shown.tid, b->shown.tid);
}

static void describe_thread(struct ts_top_python *python, struct seen_thread *thread,
			    double elapsed_ns, struct ts_top_python_thread *ret_thread)
{
	*ret_thread = thread->shown;
	if (thread->function < python->all.count) {
		ret_thread->function = python->all.functions[thread->function].name;
		ret_thread->file = python->all.functions[thread->function].file;
	}
	ret_thread->active_percent = 100 * (double)thread->active_ns / elapsed_ns;
	ret_thread->gil_percent = 100 * (double)thread->gil_ns / elapsed_ns;
	thread->weight_ns = thread->active_ns = thread->gil_ns = 0;
}

/* Threads sampled since the last refresh; the others are dropped. */
static int copy_threads(struct ts_top_python *python, double elapsed_ns,
			struct ts_top_python_snapshot *picture)
{
	size_t kept = 0;

	picture->threads = ts_alloc_array(python->count, sizeof(*picture->threads));
	if (!picture->threads)
		return TS_ENOMEM;
	for (size_t i = 0; i < python->count; i++) {
		if (python->threads[i].weight_ns > 0)
			python->threads[kept++] = python->threads[i];
	}
	python->count = kept;
	ts_sort(python->threads, kept, sizeof(*python->threads), compare_threads);
	ts_pairmap_clear(&python->numbers);
	for (size_t i = 0; i < kept; i++) {
		struct seen_thread *thread = &python->threads[i];

		ts_pairmap_put(&python->numbers, (uint64_t)thread->shown.pid,
			       (uint64_t)thread->shown.tid, i);
		describe_thread(python, thread, elapsed_ns, &picture->threads[i]);
	}
	picture->thread_count = kept;
	return TS_OK;
}

static int fill(struct ts_top_python *python, const struct ts_top_python_request *wish,
		int64_t elapsed_ns, struct ts_top_python_snapshot *picture)
{
	ts_top_functions_turn(&python->active);
	ts_top_functions_turn(&python->all);
	picture->function_count = ts_top_functions_list(wish->idle ? &python->all : &python->active,
							wish->by_total, TS_TOP_PYTHON_FUNCTIONS,
							&picture->functions);
	picture->processes = ts_pairmap_count(&python->processes);
	picture->gil_percent = 100 * (double)python->gil_ns /
			       ((double)elapsed_ns * (double)TS_MAX(picture->processes, 1u));
	python->gil_ns = 0;
	ts_pairmap_clear(&python->processes);
	snprintf(picture->message, sizeof(picture->message), "%s", python->message);
	return picture->functions ? copy_threads(python, (double)elapsed_ns, picture) : TS_ENOMEM;
}

int ts_top_python_refresh(struct ts_top_python *python, const struct ts_top_python_request *wish,
			  struct ts_top_python_snapshot *picture, struct ts_error *err)
{
	struct ts_python_sampler_status status = { 0 };
	int64_t now_ns = ts_clock_monotonic_ns();
	int rc = TS_OK;

	/* Refreshes in quick succession mean little. */
	if (python->is_watching && picture->elapsed_s > 0 && now_ns - python->begun_ns < MIN_NS)
		return TS_OK;
	ts_top_python_snapshot_release(picture);
	picture->is_shown = python->is_watching;
	if (!python->begun_ns || now_ns <= python->begun_ns)
		return TS_OK;
	if (python->sampler)
		ts_python_sampler_status(python->sampler, &status);
	pthread_mutex_lock(&python->lock);
	picture->elapsed_s = (double)(now_ns - python->begun_ns) / 1e9;
	picture->samples = status.samples - python->samples;
	picture->rejected = status.rejected - python->rejected;
	rc = fill(python, wish, now_ns - python->begun_ns, picture);
	python->samples = status.samples;
	python->rejected = status.rejected;
	python->begun_ns = now_ns;
	pthread_mutex_unlock(&python->lock);
	return rc ? ts_error_set(err, rc, "no memory for functions") : TS_OK;
}
