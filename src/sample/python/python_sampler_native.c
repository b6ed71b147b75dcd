/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native frames of a sampled process: of blocked threads from their memory, of running ones from a
 * perf sample requested between two sweeps: if both sweeps show the same stack, the sample belongs
 * to it. Nothing is stopped.
 */
#include "base/clock.h"
#include "code/unwind.h"
#include "sample/perf/perf_stacks.h"
#include "sample/python/merge_stacks.h"
#include "sample/python/python_sampler_internal.h"

#define NATIVE_FRAMES 512
/* A running thread answers within tens of microseconds; one that was preempted does not. */
#define ANSWER_NS (200 * NS_PER_MS / 1000)
/* Mappings are reread after an incomplete stack, but at most this often. */
#define RENEW_NS NS_PER_S

/* A thread with a pending perf request, as of the sweep before. */
struct requested_thread {
	pid_t tid;
	uint32_t depth;
};

struct native_side {
	struct ts_native_process *native;
	struct ts_perf_stacks *perf; /* NULL: unavailable */
	pid_t *tids; /* threads known to perf, followed by space for as many requests */
	size_t tid_count, tid_capacity;
	struct requested_thread *requested;
	size_t requested_count, requested_capacity;
	int64_t renew_ns;
	int64_t since_ns; /* perf samples from here on belong to this sweep */
	struct ts_native_frame frames[NATIVE_FRAMES];
};

static void close_side(struct native_side *side)
{
	if (side->perf)
		ts_perf_stacks_close(side->perf);
	ts_native_process_close(side->native);
	free(side->tids);
	free(side->requested);
	free(side);
}

void ts_python_watch_native_close(struct watched_process *process)
{
	if (process->native)
		close_side(TS_STEAL(process->native));
	process->native_failed = false;
}

static void open_side(struct sampling *sampling, struct watched_process *process)
{
	struct native_side *side = calloc(1, sizeof(*side));
	struct ts_error err = { 0 };

	process->native_failed = true;
	if (!side)
		return;
	if (ts_native_process_open(&side->native, process->what.pid, &err)) {
		ts_python_watch_message(sampling, process, err.message);
		free(side);
		return;
	}
	/* Blocked threads work without it. */
	if (ts_perf_stacks_open(&side->perf, side->native, 0, 0, &err)) {
		side->perf = NULL;
		ts_python_watch_message(sampling, process, err.message);
	}
	process->native = side;
	process->native_failed = false;
}

/* Updates perf when threads have come or gone. */
static void set_threads(struct sampling *sampling, struct watched_process *process,
			const struct ts_python_sweep *sweep)
{
	struct native_side *side = process->native;
	size_t count = 0;
	bool same = true;

	if (ts_grow_array((void **)&side->tids, &side->tid_capacity, sweep->count + 1,
			  sizeof(*side->tids)))
		return;
	for (size_t i = 0; i < sweep->count; i++) {
		if (!sweep->threads[i].tid)
			continue;
		same = same && count < side->tid_count &&
		       side->tids[count] == sweep->threads[i].tid;
		side->tids[count++] = sweep->threads[i].tid;
	}
	if (!same || count != side->tid_count) {
		struct ts_error err = { 0 };

		if (ts_perf_stacks_set_threads(side->perf, side->tids, count, &err))
			ts_python_watch_message(sampling, process, err.message);
	}
	side->tid_count = count;
}

/* Requests a sample of each running thread. False: none. */
static bool request(struct native_side *side, const struct ts_python_sweep *sweep)
{
	pid_t *running;

	side->requested_count = 0;
	if (ts_grow_array((void **)&side->requested, &side->requested_capacity, sweep->count,
			  sizeof(*side->requested)) ||
	    ts_grow_array((void **)&side->tids, &side->tid_capacity, side->tid_count + sweep->count,
			  sizeof(*side->tids)))
		return false;
	running = side->tids + side->tid_count;
	for (size_t i = 0; i < sweep->count; i++) {
		const struct ts_python_thread *thread = &sweep->threads[i];

		if (!thread->tid || thread->is_rejected || !(thread->state & TS_PYTHON_RUNS))
			continue;
		running[side->requested_count] = thread->tid;
		side->requested[side->requested_count++] =
			(struct requested_thread){ thread->tid, thread->depth };
	}
	if (side->requested_count)
		ts_perf_stacks_request(side->perf, running, side->requested_count);
	return side->requested_count != 0;
}

bool ts_python_watch_native_sweep(struct sampling *sampling, struct watched_process *process,
				  const struct ts_python_sweep *sweep)
{
	int64_t began_ns = ts_clock_monotonic_ns();
	bool requested = false;

	if (!process->native && !process->native_failed)
		open_side(sampling, process);
	if (process->native && process->native->perf) {
		set_threads(sampling, process, sweep);
		process->native->since_ns = began_ns;
		requested = request(process->native, sweep);
		if (requested)
			ts_perf_stacks_wait(process->native->perf, ANSWER_NS);
	}
	process->counts.native_ns += ts_clock_monotonic_ns() - began_ns;
	return requested;
}

/* The sweep after perf's sample shows the same stack as the one before. */
static bool was_still(const struct native_side *side, const struct ts_python_thread *stack)
{
	for (size_t i = 0; i < side->requested_count; i++)
		if (side->requested[i].tid == stack->tid)
			return side->requested[i].depth == stack->depth &&
			       stack->same == stack->depth;
	return false;
}

static size_t unwind(struct native_side *side, const struct ts_python_thread *stack,
		     bool *ret_complete)
{
	int64_t time_ns;

	if (side->perf && was_still(side, stack))
		return ts_perf_stacks_get(side->perf, stack->tid, side->since_ns, &time_ns,
					  side->frames, NATIVE_FRAMES, ret_complete);
	if (!(stack->state & TS_PYTHON_RUNS))
		return ts_unwind_blocked_thread(side->native, stack->tid, side->frames,
						NATIVE_FRAMES, ret_complete);
	return 0;
}

static void renew(struct native_side *side)
{
	int64_t now_ns = ts_clock_monotonic_ns();

	if (now_ns < side->renew_ns)
		return;
	side->renew_ns = now_ns + RENEW_NS;
	ts_native_process_refresh(side->native, NULL);
}

size_t ts_python_watch_native(struct sampling *sampling, struct watched_process *process,
			      const struct ts_python_thread *stack)
{
	struct native_side *side = process->native;
	int64_t began_ns = ts_clock_monotonic_ns();
	bool complete = false;
	size_t count;

	if (!side || !stack->tid ||
	    !ts_python_watch_reserve_frames(sampling, stack->depth + NATIVE_FRAMES))
		return 0;
	count = unwind(side, stack, &complete);
	if (count && !complete)
		renew(side);
	if (count)
		count = ts_merge_stacks(side->frames, count, complete, stack->frames, stack->depth,
					sampling->frames, sampling->frame_capacity);
	process->counts.native_ns += ts_clock_monotonic_ns() - began_ns;
	return count;
}
