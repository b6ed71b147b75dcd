/* SPDX-License-Identifier: Apache-2.0 */
/* Per-thread state between sweeps: names, and the frames last reported. */
#include <stdio.h>

#include "base/local/hash.h"
#include "sample/python/python_sampler_internal.h"

/* Above all kernel thread ids (2^22). */
#define SUBSTITUTE_TID 0x40000000

/* Python's own thread id is stable, and so is the substitute. */
static pid_t choose_tid(const struct watched_process *process,
			const struct ts_python_thread *thread)
{
	if (thread->tid)
		return thread->tid;
	if (thread->is_main)
		return process->what.pid;
	return (pid_t)(SUBSTITUTE_TID | (ts_hash_mix64(thread->thread_id) & (SUBSTITUTE_TID - 1)));
}

static bool is_same(const struct watched_thread *watched, const struct ts_python_thread *thread)
{
	return watched->thread_id == thread->thread_id && watched->seen_tid == thread->tid &&
	       watched->interpreter == thread->interpreter;
}

/* Sweeps mostly have the same threads in the same order: search from the last one found. */
static struct watched_thread *find(struct watched_process *process,
				   const struct ts_python_thread *thread)
{
	for (size_t i = 0; i < process->thread_count; i++) {
		size_t index = (process->thread_hint + i) % process->thread_count;

		if (!is_same(process->threads[index], thread))
			continue;
		process->thread_hint = index + 1;
		return process->threads[index];
	}
	return NULL;
}

static uint32_t take_slot(struct sampling *sampling)
{
	if (sampling->free_count)
		return sampling->free_slots[--sampling->free_count];
	return sampling->slot_count++;
}

/* Space was reserved when the slot was taken. */
static void give_slot(struct sampling *sampling, uint32_t slot)
{
	sampling->free_slots[sampling->free_count++] = slot;
}

static struct watched_thread *add(struct sampling *sampling, struct watched_process *process,
				  const struct ts_python_thread *thread)
{
	struct watched_thread *watched;

	if (ts_grow_array((void **)&process->threads, &process->thread_capacity,
			  process->thread_count + 1, sizeof(struct watched_thread *)) ||
	    ts_grow_array((void **)&sampling->free_slots, &sampling->free_capacity,
			  (size_t)sampling->slot_count + 1, sizeof(*sampling->free_slots)))
		return NULL;
	watched = calloc(1, sizeof(*watched));
	if (!watched)
		return NULL;
	watched->thread_id = thread->thread_id;
	watched->interpreter = thread->interpreter;
	watched->seen_tid = thread->tid;
	watched->tid = choose_tid(process, thread);
	watched->slot = take_slot(sampling);
	process->threads[process->thread_count++] = watched;
	return watched;
}

struct watched_thread *ts_python_watch_thread(struct sampling *sampling,
					      struct watched_process *process,
					      const struct ts_python_thread *thread, bool *ret_new)
{
	struct watched_thread *watched = find(process, thread);

	*ret_new = !watched;
	if (!watched)
		watched = add(sampling, process, thread);
	if (watched)
		watched->sweep = process->sweep;
	return watched;
}

static void free_thread(struct sampling *sampling, struct watched_thread *watched)
{
	give_slot(sampling, watched->slot);
	free(watched->frames);
	free(watched);
}

void ts_python_watch_forget_threads(struct sampling *sampling, struct watched_process *process,
				    bool all)
{
	size_t kept = 0;

	for (size_t i = 0; i < process->thread_count; i++) {
		if (all || process->threads[i]->sweep != process->sweep)
			free_thread(sampling, process->threads[i]);
		else
			process->threads[kept++] = process->threads[i];
	}
	process->thread_count = kept;
	process->thread_hint = 0;
}

static bool is_same_frame(const struct ts_sample_frame *a, const struct ts_sample_frame *b)
{
	return a->python == b->python && a->native == b->native && a->line == b->line &&
	       a->pc == b->pc;
}

uint32_t ts_python_watch_keep_frames(struct watched_thread *thread,
				     const struct ts_sample_frame *frames, size_t count)
{
	size_t most = TS_MIN(count, thread->count), same = 0;

	while (same < most &&
	       is_same_frame(&frames[count - 1 - same], &thread->frames[thread->count - 1 - same]))
		same++;
	thread->count = 0;
	if (ts_grow_array((void **)&thread->frames, &thread->capacity, count,
			  sizeof(*thread->frames)))
		return (uint32_t)same;
	if (count)
		memcpy(thread->frames, frames, count * sizeof(*frames));
	thread->count = count;
	return (uint32_t)same;
}
