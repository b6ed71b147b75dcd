/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native frames for `tracesmith stack`, in three ways: from memory for a blocked thread, from perf
 * samples for a running one, otherwise by stopping the thread briefly. A native stack belongs to a
 * Python stack only if the Python stack was the same before and after.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/stack/stack_verb.h"
#include "sample/perf/perf_stacks.h"
#include "sample/python/merge_stacks.h"

#define ROUNDS 3
/* Period of perf's clock; several ticks per round. */
#define TICK_NS INT64_C(1000000)
#define ROUND_NS INT64_C(6000000)

enum how { PENDING, DONE };

struct native {
	struct ts_stack_process *process;
	const struct ts_stack_options *options;
	struct ts_perf_stacks *perf; /* NULL: not permitted, or not needed yet */
	bool perf_failed;
	enum how *how; /* of each thread */
	struct ts_native_frame raw[TS_STACK_NATIVE_FRAMES];
	size_t raw_count;
	bool is_complete;
};

/* ---- one thread ---- */

static struct ts_stack_frame frame_of(const struct ts_native_code *code, uint64_t pc)
{
	return (struct ts_stack_frame){
		.function = code->name,
		.file = code->module,
		.line = (int64_t)pc,
		.is_native = true,
	};
}

/* All frames unwound last, for a thread without a Python stack. */
static bool put_native(struct native *native, struct ts_stack_thread *thread)
{
	struct ts_stack_frame *frames =
		ts_arena_alloc_zeroed(&native->process->texts, native->raw_count, sizeof(*frames));

	if (!frames)
		return false;
	for (size_t i = 0; i < native->raw_count; i++)
		frames[i] = frame_of(native->raw[i].code, native->raw[i].pc);
	thread->frames = frames;
	thread->count = native->raw_count;
	return true;
}

/* As many interpreter loops as there are calls into it. */
static bool fits(const struct native *native, const struct ts_python_thread *seen)
{
	size_t loops = 0, entries = 0;

	for (size_t i = 0; i < native->raw_count; i++)
		loops += native->raw[i].code->is_python_eval;
	for (uint32_t i = 0; i < seen->depth; i++)
		entries += seen->frames[i].flags & TS_PYTHON_FRAME_ENTRY;
	return loops == entries || (!native->is_complete && loops < entries);
}

/* The frames unwound last, merged with the Python frames as seen. */
static bool put_merged(struct native *native, struct ts_stack_thread *thread,
		       const struct ts_python_thread *seen)
{
	size_t capacity = native->raw_count + seen->depth, count, next = 0;
	TS_AUTO_FREE struct ts_sample_frame *merged = ts_alloc_array(capacity, sizeof(*merged));
	struct ts_stack_frame *frames =
		ts_arena_alloc_zeroed(&native->process->texts, capacity, sizeof(*frames));

	if (!merged || !frames)
		return false;
	count = ts_merge_stacks(native->raw, native->raw_count, native->is_complete, seen->frames,
				seen->depth, merged, capacity);
	for (size_t i = 0; i < count; i++) {
		if (merged[i].native)
			frames[i] = frame_of(merged[i].native, merged[i].pc);
		else if (next < thread->count)
			frames[i] = thread->frames[next++];
	}
	thread->frames = frames;
	thread->count = count;
	return true;
}

/* `seen`: NULL if it has no Python stack. */
static bool put_frames(struct native *native, struct ts_stack_thread *thread,
		       const struct ts_python_thread *seen)
{
	bool is_done = native->raw_count &&
		       (seen ? put_merged(native, thread, seen) : put_native(native, thread));

	thread->is_cut = is_done && !native->is_complete;
	return is_done;
}

static bool is_same(const struct ts_stack_thread *thread, const struct ts_python_thread *seen)
{
	if (seen->is_rejected || seen->depth != thread->count)
		return false;
	for (uint32_t i = 0; i < seen->depth; i++) {
		if (thread->frames[i].function != seen->frames[i].code->name ||
		    thread->frames[i].file != seen->frames[i].code->file ||
		    thread->frames[i].line != seen->frames[i].line)
			return false;
	}
	return true;
}

static const struct ts_python_thread *find_seen(const struct ts_python_sweep *sweep,
						const struct ts_stack_thread *thread)
{
	for (size_t i = 0; i < sweep->count; i++) {
		if (sweep->threads[i].thread_id == thread->thread_id &&
		    sweep->threads[i].interpreter == thread->interpreter)
			return &sweep->threads[i];
	}
	return NULL;
}

static bool has_python(const struct ts_stack_thread *thread)
{
	return !thread->is_native && !thread->is_rejected;
}

/*
 * Reads the Python stack again: true if it is unchanged. Otherwise keeps the newer one. *ret_seen:
 * NULL if unreadable.
 */
static bool was_still(struct native *native, struct ts_stack_thread *thread,
		      const struct ts_python_sweep *sweep, const struct ts_python_thread **ret_seen)
{
	const struct ts_python_thread *seen = find_seen(sweep, thread);

	*ret_seen = seen && !seen->is_rejected ? seen : NULL;
	if (!*ret_seen)
		return false;
	thread->state = ts_stack_query_kernel(native->process, seen);
	if (is_same(thread, seen))
		return true;
	ts_stack_keep_frames(native->process, thread, seen, native->options);
	return false;
}

/* ---- without stopping ---- */

static void open_perf(struct native *native)
{
	TS_AUTO_FREE pid_t *tids = ts_alloc_array(native->process->count, sizeof(*tids));
	size_t count = 0;

	for (size_t i = 0; tids && i < native->process->count; i++) {
		if (native->how[i] == PENDING)
			tids[count++] = native->process->threads[i].tid;
	}
	if (!count || native->perf_failed)
		return;
	native->perf_failed =
		(!native->perf &&
		 ts_perf_stacks_open(&native->perf, native->process->native, TICK_NS, 0, NULL)) ||
		ts_perf_stacks_set_threads(native->perf, tids, count, NULL);
}

static void unwind(struct native *native, const struct ts_stack_thread *thread, int64_t since_ns)
{
	int64_t time_ns;

	native->raw_count = ts_unwind_blocked_thread(native->process->native, thread->tid,
						     native->raw, TS_STACK_NATIVE_FRAMES,
						     &native->is_complete);
	if (!native->raw_count && native->perf && !native->perf_failed)
		native->raw_count = ts_perf_stacks_get(
			native->perf, thread->tid, since_ns, &time_ns, native->raw,
			TS_STACK_NATIVE_FRAMES, &native->is_complete);
}

/*
 * Native stacks of threads that still need one, between two reads of the Python stack. Only
 * complete ones, unless may_be_cut.
 */
static void look(struct native *native, int64_t since_ns, bool may_be_cut)
{
	struct ts_stack_process *process = native->process;
	struct ts_python_sweep sweep = { 0 };

	if (native->perf && !native->perf_failed)
		ts_perf_stacks_drain(native->perf);
	for (size_t i = 0; i < process->count; i++) {
		struct ts_stack_thread *thread = &process->threads[i];
		const struct ts_python_thread *seen;

		if (native->how[i] != PENDING)
			continue;
		unwind(native, thread, since_ns);
		if (!native->raw_count || (!native->is_complete && !may_be_cut))
			continue;
		/* Each is checked separately: unwinding takes time. */
		if (process->python && ts_python_sweep(process->python, &sweep, NULL))
			return;
		if (!has_python(thread)
			    ? put_frames(native, thread, NULL)
			    : was_still(native, thread, &sweep, &seen) && fits(native, seen) &&
				      put_frames(native, thread, seen))
			native->how[i] = DONE;
	}
}

static void renew_python(struct native *native)
{
	struct ts_stack_process *process = native->process;
	struct ts_python_sweep sweep;

	if (!process->python || ts_python_sweep(process->python, &sweep, NULL))
		return;
	for (size_t i = 0; i < process->count; i++) {
		const struct ts_python_thread *seen;

		if (native->how[i] == PENDING && has_python(&process->threads[i]))
			was_still(native, &process->threads[i], &sweep, &seen);
	}
}

/* ---- by stopping ---- */

struct stop {
	struct native *native;
	struct ts_stack_thread *thread;
	const struct ts_python_thread *seen; /* NULL: not read */
	bool was_stopped;
};

/* The Python stack is read while the thread is stopped. */
static void on_stopped(void *context)
{
	struct stop *stop = context;
	struct ts_stack_process *process = stop->native->process;
	uint32_t ran = stop->thread->state & TS_PYTHON_RUNS;
	struct ts_python_sweep sweep;

	stop->was_stopped = true;
	if (!has_python(stop->thread) || ts_python_sweep(process->python, &sweep, NULL))
		return;
	was_still(stop->native, stop->thread, &sweep, &stop->seen);
	/* The same frames may have had other values. */
	if (stop->seen && stop->native->options->locals)
		ts_stack_keep_frames(process, stop->thread, stop->seen, stop->native->options);
	/* It does not run now only because we stopped it. */
	stop->thread->state = (stop->thread->state & ~(uint32_t)TS_PYTHON_RUNS) | ran;
}

static void take_by_stop(struct native *native, size_t index)
{
	struct ts_stack_thread *thread = &native->process->threads[index];
	struct stop stop = { .native = native, .thread = thread };

	native->raw_count = ts_unwind_stopped_thread_with(
		native->process->native, thread->tid, on_stopped, &stop, native->raw,
		TS_STACK_NATIVE_FRAMES, &native->is_complete);
	thread->was_stopped = stop.was_stopped;
	if ((stop.seen || !has_python(thread)) && put_frames(native, thread, stop.seen))
		native->how[index] = DONE;
}

/* ---- all threads ---- */

static size_t count_pending(struct native *native)
{
	size_t count = 0;

	for (size_t i = 0; i < native->process->count; i++)
		count += native->how[i] == PENDING;
	return count;
}

static void set_aside_nameless(struct native *native)
{
	for (size_t i = 0; i < native->process->count; i++) {
		if (native->process->threads[i].tid)
			continue;
		native->process->threads[i].native_missing =
			"this Python version does not expose its thread id";
		native->how[i] = DONE;
	}
}

static void take_all(struct native *native)
{
	/* Local variables of a thread that runs are of the same instant only if it is stopped. */
	int rounds = native->options->locals ? 0 : ROUNDS;

	set_aside_nameless(native);
	look(native, INT64_MAX, false);
	for (int i = 0; i < rounds && count_pending(native) && !native->perf_failed; i++) {
		int64_t since_ns;

		open_perf(native);
		renew_python(native);
		since_ns = ts_clock_monotonic_ns();
		ts_stack_sleep(ROUND_NS);
		look(native, since_ns, false);
	}
	for (size_t i = 0; i < native->process->count; i++) {
		if (native->how[i] == PENDING)
			take_by_stop(native, i);
	}
	look(native, INT64_MAX, true);
	for (size_t i = 0; i < native->process->count; i++) {
		if (native->how[i] == PENDING)
			native->process->threads[i].native_missing =
				"its registers cannot be read, or its stack keeps changing";
	}
}

/* Marks native frames as missing for all threads, with the same reason. */
static int without(struct ts_stack_process *process, struct ts_error *err)
{
	char *why;

	if (!process->is_python)
		return err->code;
	why = ts_arena_strdup_len(&process->texts, err->message, strlen(err->message));
	for (size_t i = 0; why && i < process->count; i++)
		process->threads[i].native_missing = why;
	return TS_OK;
}

int ts_stack_add_native(struct ts_stack_process *process, const struct ts_stack_options *options,
			struct ts_error *err)
{
	struct native *native = calloc(1, sizeof(*native));

	if (native)
		native->how = calloc(process->count + 1, sizeof(*native->how));
	if (!native || !native->how) {
		free(native);
		return ts_error_set(err, TS_ENOMEM, "no memory for its native stacks");
	}
	native->process = process;
	native->options = options;
	if (ts_native_process_open(&process->native, process->pid, err)) {
		free(native->how);
		free(native);
		return without(process, err);
	}
	take_all(native);
	if (native->perf)
		ts_perf_stacks_close(native->perf);
	free(native->how);
	free(native);
	return TS_OK;
}
