/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sampled process: opened when there is a Python in it, swept, reported, and reopened when it
 * has executed another program.
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/local/hash.h"
#include "base/process.h"
#include "sample/python/python_sampler_internal.h"

/*
 * A process without Python is checked again after this fraction of its age, at first every few ms,
 * so that new ones are found soon. One that has not become Python in a minute hardly will.
 */
#define TRY_SHARE 8
#define TRY_LEAST_NS (2 * NS_PER_MS)
#define TRY_GREATEST_NS NS_PER_S
#define TRY_LONG_AFTER_NS (60 * NS_PER_S)
#define TRY_LONG_NS (10 * NS_PER_S)
#define LOCALS_BYTES 6000u
#define LOCALS_BYTES_DEEP 1000u
#define DEEP_FRAMES 1000u
#define LOCALS_FRAME_BYTES 1000u

/* ---- messages ---- */

void ts_python_watch_message(struct sampling *sampling, struct watched_process *process,
			     const char *text)
{
	uint64_t hash = ts_hash64(text, strlen(text));

	for (unsigned int i = 0; i < process->reported_count; i++)
		if (process->reported[i] == hash)
			return;
	if (process->reported_count == TS_ARRAY_SIZE(process->reported))
		return;
	process->reported[process->reported_count++] = hash;
	if (sampling->consumer->message)
		sampling->consumer->message(sampling->consumer->context, process->what.pid, text);
}

/* ---- opening ---- */

struct watched_process *ts_python_watch_new(const struct ts_sampled_process *what, int64_t now_ns)
{
	struct watched_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->what = *what;
	process->known_ns = now_ns;
	return process;
}

static void close_process(struct sampling *sampling, struct watched_process *process)
{
	const struct ts_python_consumer *consumer = sampling->consumer;

	if (!process->python)
		return;
	if (consumer->closed)
		consumer->closed(consumer->context, process->what.pid, process->what.start_time);
	ts_python_watch_forget_threads(sampling, process, true);
	ts_python_watch_native_close(process);
	ts_python_reader_close(TS_STEAL(process->python));
	free(TS_STEAL(process->matches));
	process->match_capacity = 0;
	process->reader = (struct ts_python_reader_counts){ 0 };
}

void ts_python_watch_free(struct sampling *sampling, struct watched_process *process)
{
	close_process(sampling, process);
	free(process->threads);
	free(process);
}

static void try_later(struct watched_process *process, int64_t now_ns)
{
	int64_t age_ns = now_ns - process->known_ns;
	int64_t pause_ns = TS_MAX(age_ns / TRY_SHARE, TRY_LEAST_NS);

	pause_ns = age_ns > TRY_LONG_AFTER_NS ? TRY_LONG_NS : TS_MIN(pause_ns, TRY_GREATEST_NS);
	process->try_ns = now_ns + pause_ns;
}

static unsigned int reader_flags(const struct sampling *sampling)
{
	unsigned int flags = TS_PYTHON_NAMES | TS_PYTHON_KERNEL;

	if (sampling->options.main_only)
		flags |= TS_PYTHON_MAIN_ONLY;
	if (sampling->options.tasks)
		flags |= TS_PYTHON_TASKS;
	return flags;
}

void ts_python_watch_try(struct sampling *sampling, struct watched_process *process, int64_t now_ns)
{
	struct ts_error err = { 0 };
	int rc;

	rc = ts_python_reader_open(&process->python, process->what.pid, process->what.start_time,
				   reader_flags(sampling), &err);
	if (!rc) {
		process->slot_ns = now_ns;
		process->due_ns = process->what.interval_ns ? now_ns : INT64_MAX;
		process->sampled_ns = 0;
		return;
	}
	process->python = NULL;
	process->requested = false;
	process->ended = !ts_process_lives(process->what.pid, process->what.start_time);
	if (process->ended)
		return;
	/* No Python yet: nothing to report. */
	if (rc != TS_ENOTFOUND)
		ts_python_watch_message(sampling, process, err.message);
	try_later(process, now_ns);
}

/* It has exited or executed another program: start over. */
static void lose_process(struct sampling *sampling, struct watched_process *process, int rc,
			 const struct ts_error *why, int64_t now_ns)
{
	if (rc != TS_ENOTFOUND)
		ts_python_watch_message(sampling, process, why->message);
	close_process(sampling, process);
	process->ended = !ts_process_lives(process->what.pid, process->what.start_time);
	process->known_ns = now_ns;
	process->try_ns = rc == TS_ENOTFOUND ? now_ns : now_ns + NS_PER_S;
}

/* ---- emitting ---- */

bool ts_python_watch_reserve_frames(struct sampling *sampling, size_t count)
{
	return !ts_grow_array((void **)&sampling->frames, &sampling->frame_capacity, count,
			      sizeof(*sampling->frames));
}

static size_t copy_frames(struct sampling *sampling, const struct ts_python_thread *stack)
{
	if (!ts_python_watch_reserve_frames(sampling, stack->depth))
		return 0;
	for (uint32_t i = 0; i < stack->depth; i++)
		sampling->frames[i] = (struct ts_sample_frame){ .python = stack->frames[i].code,
								.line = stack->frames[i].line };
	return stack->depth;
}

/* The innermost frames, as many as fit. */
static const char *read_locals(struct sampling *sampling, struct watched_process *process,
			       const struct ts_python_thread *stack)
{
	size_t limit = stack->depth > DEEP_FRAMES ? LOCALS_BYTES_DEEP : LOCALS_BYTES;
	struct ts_text *out = &sampling->locals;

	ts_text_clear(out);
	ts_text_append_char(out, '[');
	for (uint32_t i = 0; i < stack->depth; i++) {
		size_t before = out->length;

		if (i)
			ts_text_append_char(out, ',');
		if (ts_python_locals(process->python, &stack->frames[i], LOCALS_FRAME_BYTES, out) ||
		    out->length + 1 > limit) {
			out->length = before;
			break;
		}
	}
	ts_text_append_char(out, ']');
	return ts_text_cstr(out);
}

static void name_thread(struct sampling *sampling, struct watched_process *process,
			struct watched_thread *thread, const struct ts_python_thread *seen,
			bool is_new)
{
	const struct ts_python_consumer *consumer = sampling->consumer;
	const char *name = seen->name && *seen->name ? seen->name
			   : seen->is_main           ? "MainThread"
						     : "";
	size_t length = TS_MIN(strlen(name), sizeof(thread->name) - 1);

	length = ts_utf8_valid_prefix(name, length);
	if (!is_new && !strncmp(name, thread->name, length) && !thread->name[length])
		return;
	memcpy(thread->name, name, length);
	thread->name[length] = '\0';
	if (consumer->thread)
		consumer->thread(consumer->context, process->what.pid, process->what.start_time,
				 thread->tid, thread->name);
}

struct emission {
	struct sampling *sampling;
	struct watched_process *process;
	int64_t weight_ns;
	bool requested;
};

static void emit_stack(const struct emission *emission, struct watched_thread *thread,
		       const struct ts_python_thread *stack, const char *trigger)
{
	struct sampling *sampling = emission->sampling;
	struct watched_process *process = emission->process;
	struct ts_python_sample sample = {
		.pid = process->what.pid,
		.start_time = process->what.start_time,
		.thread = stack,
		.tid = thread->tid,
		.slot = thread->slot,
		.is_state_known = stack->tid != 0,
		.time_ns = stack->time_ns,
		.weight_ns = emission->weight_ns,
		.trigger = trigger,
	};
	size_t count = 0;

	if (sampling->options.native)
		count = ts_python_watch_native(sampling, process, stack);
	if (!count)
		count = copy_frames(sampling, stack);
	sample.frames = sampling->frames;
	sample.count = (uint32_t)count;
	sample.same = ts_python_watch_keep_frames(thread, sampling->frames, count);
	if (sampling->options.locals)
		sample.locals = read_locals(sampling, process, stack);
	process->counts.stacks++;
	sampling->consumer->sample(sampling->consumer->context, &sample);
}

static void emit_thread(const struct emission *emission, const struct ts_python_thread *stack)
{
	struct sampling *sampling = emission->sampling;
	char trigger[160];
	struct watched_thread *thread;
	bool is_new, triggered = false;

	/* A starting thread: it has no id yet, and would get another one in the next sweep. */
	if (!stack->tid && !stack->depth && !stack->is_rejected)
		return;
	thread = ts_python_watch_thread(sampling, emission->process, stack, &is_new);
	if (!thread)
		return;
	name_thread(sampling, emission->process, thread, stack, is_new);
	if (stack->is_rejected) {
		emission->process->counts.rejected++;
		return;
	}
	if (sampling->options.functions)
		triggered = ts_python_watch_functions(sampling, emission->process, thread, stack,
						      trigger, sizeof(trigger));
	if (emission->requested)
		emit_stack(emission, thread, stack, "asked");
	else if (triggered)
		emit_stack(emission, thread, stack, trigger);
	else if (!sampling->options.functions)
		emit_stack(emission, thread, stack, NULL);
}

/* The reader's counts since the last sweep. */
static void count_reading(struct watched_process *process)
{
	struct ts_python_reader_counts now, before = process->reader;
	struct sampling_counts *counts = &process->counts;

	ts_python_reader_counts(process->python, &now);
	process->reader = now;
	counts->retried += now.retried - before.retried;
	counts->system_calls += now.system_calls - before.system_calls;
	counts->missed += now.speculations_missed - before.speculations_missed;
	counts->read_ns += now.read_ns - before.read_ns;
	counts->resolve_ns += now.resolve_ns - before.resolve_ns;
}

void ts_python_watch_sample(struct sampling *sampling, struct watched_process *process,
			    int64_t now_ns)
{
	struct emission emission = { sampling, process, process->what.interval_ns,
				     process->requested };
	struct ts_python_sweep sweep = { 0 };
	struct ts_error err = { 0 };
	int64_t native_ns, read_ns, end_ns;
	int rc = ts_python_sweep(process->python, &sweep, &err);

	if (!rc && sampling->options.native &&
	    ts_python_watch_native_sweep(sampling, process, &sweep))
		rc = ts_python_sweep(process->python, &sweep, &err);
	process->requested = false;
	if (rc) {
		lose_process(sampling, process, rc, &err, now_ns);
		return;
	}
	count_reading(process);
	read_ns = ts_clock_monotonic_ns();
	native_ns = process->counts.native_ns;
	if (process->sampled_ns)
		emission.weight_ns = sweep.time_ns - process->sampled_ns;
	process->sampled_ns = sweep.time_ns;
	process->sweep++;
	for (size_t i = 0; i < sweep.count; i++)
		emit_thread(&emission, &sweep.threads[i]);
	if (process->thread_count > sweep.count)
		ts_python_watch_forget_threads(sampling, process, false);
	end_ns = ts_clock_monotonic_ns();
	process->counts.ticks++;
	process->counts.sweep_ns += end_ns - now_ns;
	process->counts.emit_ns += end_ns - read_ns - (process->counts.native_ns - native_ns);
	process->longest_ns = TS_MAX(process->longest_ns, end_ns - now_ns);
}
