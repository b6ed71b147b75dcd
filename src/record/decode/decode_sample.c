/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples into rows: of any thread of any process, and of marks and calls that have their frames
 * with them. Which thread is whose.
 */
#include <stdlib.h>

#include <tracesmith/metrics.h>
#include <tracesmith/sample.h>

#include "record/decode/decode_internal.h"

/*
 * Another name, and nothing was heard of the thread for so long: it is another thread that has got
 * its number.
 */
#define SILENCE_NS INT64_C(5000000000)
/* Threads that were not heard of for so long may be forgotten. */
#define FORGET_NS INT64_C(60000000000)

/* ---- threads of processes ---- */

/*
 * Drops those that only samples name and that have been silent, or all of them where that are too
 * many.
 */
static void forget_seen(struct ts_encoder *encoder)
{
	int64_t newest_ns = 0, since_ns;
	size_t kept = 0, heard = 0;

	for (size_t i = 0; i < encoder->seen_count; i++)
		newest_ns = TS_MAX(newest_ns, encoder->seen[i]->last_ns);
	since_ns = newest_ns - FORGET_NS;
	for (size_t i = 0; i < encoder->seen_count; i++)
		heard += encoder->seen[i]->last_ns >= since_ns;
	if (heard > ENCODE_SEEN_THREADS / 2)
		since_ns = INT64_MAX;
	ts_pairmap_clear(&encoder->seen_places);
	for (size_t i = 0; i < encoder->seen_count; i++) {
		struct encode_thread *thread = encoder->seen[i];

		/* The map keeps its memory, so that putting fewer back cannot fail. */
		if (thread->last_ns < since_ns ||
		    ts_pairmap_put(&encoder->seen_places, (uint64_t)thread->process, thread->tid,
				   kept))
			encode_release_thread(thread);
		else
			encoder->seen[kept++] = thread;
	}
	encoder->seen_count = kept;
}

static struct encode_thread *find_seen(const struct ts_encoder *encoder, int64_t process,
				       uint32_t tid, uint64_t *ret_place)
{
	if (!ts_pairmap_get(&encoder->seen_places, (uint64_t)process, tid, ret_place))
		return NULL;
	return encoder->seen[*ret_place];
}

bool encode_see_thread(struct ts_encoder *encoder, int64_t process, struct encode_thread *thread)
{
	uint64_t place;
	struct encode_thread *other = find_seen(encoder, process, thread->tid, &place);

	if (other == thread)
		return true;
	if (!other) {
		if (encoder->seen_count >= ENCODE_SEEN_THREADS)
			forget_seen(encoder);
		place = encoder->seen_count;
		if (ts_grow_array((void **)&encoder->seen, &encoder->seen_capacity, place + 1,
				  sizeof(struct encode_thread *)) ||
		    ts_pairmap_put(&encoder->seen_places, (uint64_t)process, thread->tid, place)) {
			encode_no_memory(encoder);
			return false;
		}
		encoder->seen_count++;
	} else {
		encode_release_thread(other);
	}
	encoder->seen[place] = thread;
	thread->process = process;
	thread->holders++;
	return true;
}

void encode_free_seen(struct ts_encoder *encoder)
{
	for (size_t i = 0; i < encoder->seen_count; i++)
		encode_release_thread(encoder->seen[i]);
	free(encoder->seen);
	ts_pairmap_release(&encoder->seen_places);
	ts_map_release(&encoder->sample_names);
}

/* Samples have told of it, and no area has ever said that it is another one. */
static bool is_same_thread(const struct encode_area *area, const struct encode_thread *thread,
			   const struct encode_thread *seen)
{
	return !seen->is_owned && !thread->epoch &&
	       (seen->area != area->id || seen->key == thread->key);
}

static bool is_in_ring(const struct encode_area *area, const struct encode_thread *thread)
{
	for (size_t i = 0; i < area->ring_count; i++)
		if (area->rings[i] && area->rings[i]->thread == thread)
			return true;
	return false;
}

struct encode_thread *encode_join_thread(struct ts_encoder *encoder, struct encode_area *area,
					 struct encode_thread *thread, uint32_t tid, int64_t ns)
{
	int64_t process = area->process ? area->process->id : 0;
	struct encode_thread *seen;
	uint64_t place;

	thread->last_ns = ns;
	/* A serial number is one thread's; what says otherwise is not believed. */
	if (thread->tid || !tid)
		return thread;
	thread->tid = tid;
	if (!process)
		return thread;
	seen = find_seen(encoder, process, tid, &place);
	if (!seen || !is_same_thread(area, thread, seen) || is_in_ring(area, thread) ||
	    !ts_map_get(&area->serials, thread->key, &place)) {
		encode_see_thread(encoder, process, thread);
		return thread;
	}
	area->threads[place] = seen;
	seen->key = thread->key;
	seen->area = area->id;
	seen->is_owned = true;
	seen->last_ns = ns;
	seen->holders++;
	if (thread->id == encoder->next_thread - 1)
		encoder->next_thread--;
	encode_release_thread(thread);
	return seen;
}

static struct encode_thread *add_seen(struct ts_encoder *encoder, int64_t process, uint32_t tid)
{
	struct encode_thread *thread = calloc(1, sizeof(*thread));
	bool is_seen;

	if (!thread) {
		encode_no_memory(encoder);
		return NULL;
	}
	thread->id = encoder->next_thread++;
	thread->tid = tid;
	thread->holders = 1;
	is_seen = encode_see_thread(encoder, process, thread);
	encode_release_thread(thread);
	return is_seen ? thread : NULL;
}

/* The process of an event's subject; its row is in the file after this. NULL: it is none. */
static const struct encode_process *process_of(struct ts_encoder *encoder,
					       const struct encode_area *area, uint64_t subject,
					       uint64_t start_time, int64_t ns)
{
	uint32_t pid = (uint32_t)subject;

	if (subject >> 56 != TS_METRICS_PROCESS || !pid || pid > INT32_MAX)
		return NULL;
	return encode_subject_process(encoder, area, pid, start_time, ns);
}

/* Whose stack it is; the row is in the file after this. */
static struct encode_thread *sampled_thread(struct ts_encoder *encoder,
					    const struct encode_area *area,
					    const struct encode_event *event)
{
	const struct encode_process *process;
	struct encode_thread *thread;
	uint64_t place;

	if (!(event->flags & TS_LIVE_FLAG_SUBJECT))
		return event->thread;
	process = process_of(encoder, area, event->subject, event->start_time, event->ns);
	if (!process)
		return NULL;
	thread = find_seen(encoder, process->id, (uint32_t)event->who, &place);
	if (!thread)
		thread = add_seen(encoder, process->id, (uint32_t)event->who);
	if (!thread)
		return NULL;
	thread->last_ns = TS_MAX(thread->last_ns, event->ns);
	encode_use_thread(encoder, NULL, thread);
	return thread;
}

static bool is_called(const struct encode_thread *thread, const char *name, uint32_t length)
{
	size_t most = TS_MIN((size_t)length, sizeof(thread->name) - 1);

	return strncmp(thread->name, name, most) == 0 && !thread->name[most];
}

bool encode_thread_of(struct ts_encoder *encoder, const struct encode_area *area,
		      const struct encode_event *event)
{
	struct encode_cursor cursor = { .next = event->record + 2,
					.end = event->record + event->words };
	int64_t ns = encode_time(encoder, area, event->record[1]);
	uint64_t subject = encode_take_word(&cursor), start_time = encode_take_word(&cursor), place;
	uint32_t tid = (uint32_t)encode_take_word(&cursor), length;
	const char *name = encode_take_string(&cursor, &length);
	const struct encode_process *process;
	struct encode_thread *thread;

	if (cursor.bad)
		return false;
	process = process_of(encoder, area, subject, start_time, ns);
	if (!process)
		return true;
	thread = find_seen(encoder, process->id, tid, &place);
	if (thread && !thread->is_owned && thread->named_by >= NAMED_BY_SAMPLER &&
	    ns - thread->last_ns > SILENCE_NS && !is_called(thread, name, length))
		thread = NULL;
	if (!thread)
		thread = add_seen(encoder, process->id, tid);
	if (!thread)
		return true;
	thread->last_ns = TS_MAX(thread->last_ns, ns);
	encode_name_thread(encoder, NULL, thread, name, length, NAMED_BY_SAMPLER);
	return true;
}

/* ---- rows ---- */

void encode_samples_move(struct ts_encoder *encoder)
{
	ts_map_clear(&encoder->sample_names);
	memset(encoder->state_names, 0, sizeof(encoder->state_names));
	encode_stacks_move(encoder);
}

static uint32_t state_of(struct ts_encoder *encoder, uint32_t state)
{
	static const char *const names[] = { "collecting", "gil", "waiting for gil", "running",
					     "idle" };
	unsigned int which = state & TS_SAMPLE_COLLECTING   ? 0
			     : state & TS_SAMPLE_HAS_LOCK   ? 1
			     : state & TS_SAMPLE_WAITS_LOCK ? 2
			     : state & TS_SAMPLE_RUNNING    ? 3
							    : 4;

	static_assert(TS_ARRAY_SIZE(names) == TS_ARRAY_SIZE(encoder->state_names), "one each");
	if (!(state & TS_SAMPLE_STATE_KNOWN))
		return 0;
	if (!encoder->state_names[which])
		encoder->state_names[which] = encode_text(encoder, names[which]);
	return encoder->state_names[which];
}

bool encode_sample(struct ts_encoder *encoder, struct encode_area *area, struct encode_ring *ring,
		   const struct encode_event *event)
{
	struct ts_sample_row row = ts_sample_none;
	struct encode_thread *thread;

	if (encode_is_instruction(event))
		return encode_instruction(encoder, area, ring, event);
	thread = sampled_thread(encoder, area, event);
	if (!thread) {
		encode_lose(encoder, ring, LOSS_UNKNOWN_EVENT, 1, event->ns, event->ns);
		return false;
	}
	row.start = event->ns;
	row.thread = thread->id;
	row.stack = encode_any_stack(encoder, area, ring, thread, event);
	if (event->weight && event->weight <= INT64_MAX)
		row.weight = (int64_t)event->weight;
	row.name = event->name;
	row.state = state_of(encoder, (uint32_t)(event->who >> 32));
	row.shape = event->shape;
	ts_writer_add(encoder->writer, TS_TABLE_SAMPLE, &row, event->values);
	encoder->counts.samples++;
	return true;
}

static uint32_t make_sample_name(struct ts_encoder *encoder, const struct encode_event *event)
{
	size_t length = 0;
	const char *name = ts_writer_text(encoder->writer, event->name, &length);

	ts_text_clear(&encoder->scratch);
	ts_text_append_str(&encoder->scratch, event->kind == TS_LIVE_CALL ? "call" : "mark");
	if (name && length) {
		ts_text_append_char(&encoder->scratch, ' ');
		ts_text_append(&encoder->scratch, name, length);
	}
	if (ts_text_status(&encoder->scratch)) {
		encode_no_memory(encoder);
		return 0;
	}
	return ts_writer_string(encoder->writer, encoder->scratch.data, encoder->scratch.length);
}

/* "mark NAME", "call NAME". */
static uint32_t sample_name(struct ts_encoder *encoder, const struct encode_event *event)
{
	uint64_t key = (uint64_t)event->name << 1 | (event->kind == TS_LIVE_CALL), name;

	if (TS_LIKELY(ts_map_get(&encoder->sample_names, key, &name)))
		return (uint32_t)name;
	name = make_sample_name(encoder, event);
	if (ts_map_count(&encoder->sample_names) >= ENCODE_STEPS)
		ts_map_clear(&encoder->sample_names);
	if (ts_map_put(&encoder->sample_names, key, name))
		encode_no_memory(encoder);
	return (uint32_t)name;
}

uint32_t encode_event_stack(struct ts_encoder *encoder, struct encode_area *area,
			    struct encode_ring *ring, const struct encode_event *event,
			    int64_t start_ns)
{
	struct ts_sample_row row = ts_sample_none;

	if (TS_LIKELY(event->stack))
		return encode_stack(encoder, area, ring, event->stack, event->ns);
	if (TS_LIKELY(event->frame_count == 0))
		return 0;
	row.start = start_ns;
	row.thread = event->thread->id;
	row.stack = encode_frames(encoder, area, ring, event->thread, event);
	row.name = sample_name(encoder, event);
	ts_writer_add(encoder->writer, TS_TABLE_SAMPLE, &row, NULL);
	encoder->counts.samples++;
	return (uint32_t)row.stack;
}
