/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes stack samples of any thread of any process, and the frames of marks and calls. Decides
 * which thread a sample belongs to.
 */
#include <stdlib.h>

#include <tracesmith/metrics.h>
#include <tracesmith/sample.h>

#include "record/decode/decode_internal.h"

/* A new name after this much silence means another thread that reuses the tid. */
#define SILENCE_NS INT64_C(5000000000)
/* Threads that were silent for this long may be forgotten. */
#define FORGET_NS INT64_C(60000000000)

/* ---- threads of processes ---- */

/* Drops silent threads, or all if too many are active. Threads that an area owns live on there. */
static void forget_seen(struct ts_decoder *decoder)
{
	int64_t newest_ns = 0, since_ns;
	size_t kept = 0, heard = 0;

	for (size_t i = 0; i < decoder->seen_count; i++)
		newest_ns = TS_MAX(newest_ns, decoder->seen[i]->last_ns);
	since_ns = newest_ns - FORGET_NS;
	for (size_t i = 0; i < decoder->seen_count; i++)
		heard += decoder->seen[i]->last_ns >= since_ns;
	if (heard > DECODE_SEEN_THREADS / 2)
		since_ns = INT64_MAX;
	ts_pairmap_clear(&decoder->seen_index);
	for (size_t i = 0; i < decoder->seen_count; i++) {
		struct decode_thread *thread = decoder->seen[i];

		/* The map keeps its memory, so inserting fewer entries cannot fail. */
		if (thread->last_ns < since_ns ||
		    ts_pairmap_put(&decoder->seen_index, (uint64_t)thread->process, thread->tid,
				   kept))
			decode_release_thread(thread);
		else
			decoder->seen[kept++] = thread;
	}
	decoder->seen_count = kept;
}

static struct decode_thread *find_seen(const struct ts_decoder *decoder, int64_t process,
				       uint32_t tid, uint64_t *ret_index)
{
	if (!ts_pairmap_get(&decoder->seen_index, (uint64_t)process, tid, ret_index))
		return NULL;
	return decoder->seen[*ret_index];
}

bool decode_see_thread(struct ts_decoder *decoder, int64_t process, struct decode_thread *thread)
{
	uint64_t index;
	struct decode_thread *other = find_seen(decoder, process, thread->tid, &index);

	if (other == thread)
		return true;
	if (!other) {
		if (decoder->seen_count >= DECODE_SEEN_THREADS)
			forget_seen(decoder);
		index = decoder->seen_count;
		if (ts_grow_array((void **)&decoder->seen, &decoder->seen_capacity, index + 1,
				  sizeof(struct decode_thread *)) ||
		    ts_pairmap_put(&decoder->seen_index, (uint64_t)process, thread->tid, index)) {
			decode_no_memory(decoder);
			return false;
		}
		decoder->seen_count++;
	} else {
		decode_release_thread(other);
	}
	decoder->seen[index] = thread;
	thread->process = process;
	thread->holders++;
	return true;
}

void decode_free_seen(struct ts_decoder *decoder)
{
	for (size_t i = 0; i < decoder->seen_count; i++)
		decode_release_thread(decoder->seen[i]);
	free(decoder->seen);
	ts_pairmap_release(&decoder->seen_index);
	ts_map_release(&decoder->sample_names);
}

/* True if samples reported the thread, and no area has identified it as another one. */
static bool is_same_thread(const struct decode_area *area, const struct decode_thread *thread,
			   const struct decode_thread *seen)
{
	return !seen->is_owned && !thread->epoch &&
	       (seen->area != area->id || seen->key == thread->key);
}

static bool is_in_ring(const struct decode_area *area, const struct decode_thread *thread)
{
	for (size_t i = 0; i < area->ring_count; i++)
		if (area->rings[i] && area->rings[i]->thread == thread)
			return true;
	return false;
}

struct decode_thread *decode_join_thread(struct ts_decoder *decoder, struct decode_area *area,
					 struct decode_thread *thread, uint32_t tid, int64_t ns)
{
	int64_t process = area->process ? area->process->id : 0;
	struct decode_thread *seen;
	uint64_t index;

	thread->last_ns = ns;
	/* A serial belongs to one thread; contradicting records are ignored. */
	if (thread->tid || !tid)
		return thread;
	thread->tid = tid;
	if (!process)
		return thread;
	seen = find_seen(decoder, process, tid, &index);
	if (!seen || !is_same_thread(area, thread, seen) || is_in_ring(area, thread) ||
	    !ts_map_get(&area->serials, thread->key, &index)) {
		decode_see_thread(decoder, process, thread);
		return thread;
	}
	area->threads[index] = seen;
	seen->key = thread->key;
	seen->area = area->id;
	seen->is_owned = true;
	seen->last_ns = ns;
	seen->holders++;
	if (thread->id == decoder->next_thread - 1)
		decoder->next_thread--;
	decode_release_thread(thread);
	return seen;
}

static struct decode_thread *add_seen(struct ts_decoder *decoder, int64_t process, uint32_t tid)
{
	struct decode_thread *thread = calloc(1, sizeof(*thread));
	bool is_seen;

	if (!thread) {
		decode_no_memory(decoder);
		return NULL;
	}
	thread->id = decoder->next_thread++;
	thread->tid = tid;
	thread->holders = 1;
	is_seen = decode_see_thread(decoder, process, thread);
	decode_release_thread(thread);
	return is_seen ? thread : NULL;
}

/* The process of an event's subject; ensures that its row is in the file. NULL: not a process. */
static const struct decode_process *process_of(struct ts_decoder *decoder,
					       const struct decode_area *area,
					       const struct ts_live_subject *subject, int64_t ns)
{
	if (ts_live_kind_of(subject->device_kind) != TS_METRICS_PROCESS || !subject->pid ||
	    subject->pid > INT32_MAX)
		return NULL;
	return decode_subject_process(decoder, area, subject->pid, subject->start_time, ns);
}

/* The thread of a sample; ensures that its row is in the file. */
static struct decode_thread *sampled_thread(struct ts_decoder *decoder,
					    const struct decode_area *area,
					    const struct decode_event *event)
{
	const struct decode_process *process;
	struct decode_thread *thread;
	uint64_t index;

	if (!(event->flags & TS_LIVE_FLAG_SUBJECT))
		return event->thread;
	process = process_of(decoder, area, &event->subject, event->ns);
	if (!process)
		return NULL;
	thread = find_seen(decoder, process->id, event->sample.tid, &index);
	if (!thread)
		thread = add_seen(decoder, process->id, event->sample.tid);
	if (!thread)
		return NULL;
	thread->last_ns = TS_MAX(thread->last_ns, event->ns);
	decode_use_thread(decoder, NULL, thread);
	return thread;
}

static bool is_called(const struct decode_thread *thread, const char *name, uint32_t length)
{
	size_t most = TS_MIN((size_t)length, sizeof(thread->name) - 1);

	return strncmp(thread->name, name, most) == 0 && !thread->name[most];
}

bool decode_thread_of(struct ts_decoder *decoder, const struct decode_area *area,
		      const struct decode_event *event)
{
	struct decode_cursor cursor = { .next = event->record + 2,
					.end = event->record + event->words };
	int64_t ns = decode_time(decoder, area, event->record[1]);
	const struct decode_process *process;
	struct ts_live_thread_of about;
	struct decode_thread *thread;
	uint32_t tid, length;
	const char *name;
	uint64_t index;

	decode_take(&cursor, &about, sizeof(about));
	name = decode_take_string(&cursor, &length);
	if (cursor.bad)
		return false;
	tid = (uint32_t)about.tid;
	process = process_of(decoder, area, &about.subject, ns);
	if (!process)
		return true;
	thread = find_seen(decoder, process->id, tid, &index);
	if (thread && !thread->is_owned && thread->named_by >= NAMED_BY_SAMPLER &&
	    ns - thread->last_ns > SILENCE_NS && !is_called(thread, name, length))
		thread = NULL;
	if (!thread)
		thread = add_seen(decoder, process->id, tid);
	if (!thread)
		return true;
	thread->last_ns = TS_MAX(thread->last_ns, ns);
	decode_name_thread(decoder, NULL, thread, name, length, NAMED_BY_SAMPLER);
	return true;
}

/* ---- rows ---- */

void decode_samples_move(struct ts_decoder *decoder)
{
	ts_map_clear(&decoder->sample_names);
	memset(decoder->state_names, 0, sizeof(decoder->state_names));
	decode_stacks_move(decoder);
}

static uint32_t state_of(struct ts_decoder *decoder, uint32_t state)
{
	static const char *const names[] = { "collecting", "gil", "waiting for gil", "running",
					     "idle" };
	unsigned int which = state & TS_SAMPLE_COLLECTING   ? 0
			     : state & TS_SAMPLE_HAS_LOCK   ? 1
			     : state & TS_SAMPLE_WAITS_LOCK ? 2
			     : state & TS_SAMPLE_RUNNING    ? 3
							    : 4;

	static_assert(TS_ARRAY_SIZE(names) == TS_ARRAY_SIZE(decoder->state_names), "one each");
	if (!(state & TS_SAMPLE_STATE_KNOWN))
		return 0;
	if (!decoder->state_names[which])
		decoder->state_names[which] = decode_text(decoder, names[which]);
	return decoder->state_names[which];
}

bool decode_sample(struct ts_decoder *decoder, struct decode_area *area, struct decode_ring *ring,
		   const struct decode_event *event)
{
	struct ts_sample_row row = ts_sample_none;
	struct decode_thread *thread;

	if (decode_is_instruction(event))
		return decode_instruction(decoder, area, ring, event);
	thread = sampled_thread(decoder, area, event);
	if (!thread) {
		decode_lose(decoder, ring, LOSS_UNKNOWN_EVENT, 1, event->ns, event->ns);
		return false;
	}
	row.start = event->ns;
	row.thread = thread->id;
	row.stack = decode_any_stack(decoder, area, ring, thread, event);
	if (event->sample.weight_ns && event->sample.weight_ns <= INT64_MAX)
		row.weight = (int64_t)event->sample.weight_ns;
	row.name = event->name;
	row.state = state_of(decoder, event->sample.state);
	row.shape = event->shape;
	ts_writer_add(decoder->writer, TS_TABLE_SAMPLE, &row, event->values);
	decoder->counts.samples++;
	return true;
}

static uint32_t make_sample_name(struct ts_decoder *decoder, const struct decode_event *event)
{
	size_t length = 0;
	const char *name = ts_writer_text(decoder->writer, event->name, &length);

	ts_text_clear(&decoder->scratch);
	ts_text_append_str(&decoder->scratch, event->kind == TS_LIVE_CALL ? "call" : "mark");
	if (name && length) {
		ts_text_append_char(&decoder->scratch, ' ');
		ts_text_append(&decoder->scratch, name, length);
	}
	if (ts_text_status(&decoder->scratch)) {
		decode_no_memory(decoder);
		return 0;
	}
	return ts_writer_string(decoder->writer, decoder->scratch.data, decoder->scratch.length);
}

/* "mark NAME", "call NAME". */
static uint32_t sample_name(struct ts_decoder *decoder, const struct decode_event *event)
{
	uint64_t key = (uint64_t)event->name << 1 | (event->kind == TS_LIVE_CALL), name;

	if (TS_LIKELY(ts_map_get(&decoder->sample_names, key, &name)))
		return (uint32_t)name;
	name = make_sample_name(decoder, event);
	if (ts_map_count(&decoder->sample_names) >= DECODE_STEPS)
		ts_map_clear(&decoder->sample_names);
	if (ts_map_put(&decoder->sample_names, key, name))
		decode_no_memory(decoder);
	return (uint32_t)name;
}

uint32_t decode_event_stack(struct ts_decoder *decoder, struct decode_area *area,
			    struct decode_ring *ring, const struct decode_event *event,
			    int64_t start_ns)
{
	struct ts_sample_row row = ts_sample_none;

	if (TS_LIKELY(event->stack))
		return decode_stack(decoder, area, ring, event->stack, event->ns);
	if (TS_LIKELY(event->frame_count == 0))
		return 0;
	row.start = start_ns;
	row.thread = event->thread->id;
	row.stack = decode_frames(decoder, area, ring, event->thread, event);
	row.name = sample_name(decoder, event);
	ts_writer_add(decoder->writer, TS_TABLE_SAMPLE, &row, NULL);
	decoder->counts.samples++;
	return (uint32_t)row.stack;
}
