/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call stacks into rows: samples of any thread of any process, and the stacks of marks and calls. Samples come a hundred thousand times a second, and
 * one is mostly like the one before: what a thread's last stack shares with it costs a comparison, a frame more costs a look into
 * a map. Must not know of rings, nor who has taken the stacks.
 */
#include <stdio.h>
#include <stdlib.h>

#include <tracesmith/metrics.h>
#include <tracesmith/sample.h>

#include "record/encode_parts.h"

/* Another name, and nothing was heard of the thread for so long: it is another thread that has got its number. */
#define SILENCE_NS INT64_C(5000000000)
/* Threads that were not heard of for so long may be forgotten. */
#define FORGET_NS INT64_C(60000000000)

/* ---- frames and stacks ---- */

static uint32_t code_of(uint64_t frame)
{
	return (uint32_t)(frame >> 32);
}

/* The entry that names a frame's function; NULL: there is none. */
static struct encode_site *find_code(const struct encode_area *area, uint64_t frame,
				     unsigned int *ret_kind)
{
	uint32_t code = code_of(frame);
	struct encode_site *site;

	if (code - 1u >= area->site_count)
		return NULL;
	site = &area->sites[code - 1u];
	*ret_kind =
		(uint8_t)area->dictionary.data[site->offset + offsetof(struct ts_live_site, kind)];
	return *ret_kind >= TS_LIVE_CODE_PYTHON && *ret_kind <= TS_LIVE_CODE_SCRIPT ? site : NULL;
}

static bool is_unnamed(const struct encode_area *area, uint64_t frame)
{
	unsigned int kind;

	return code_of(frame) != TS_LIVE_FRAMES_LEFT_OUT && !find_code(area, frame, &kind);
}

/* First line of the function that an entry of native code names; 0: not known. */
static uint32_t line_of(const struct encode_area *area, const struct encode_site *site)
{
	struct ts_live_site about;

	memcpy(&about, area->dictionary.data + site->offset, sizeof(about));
	return about.line;
}

static uint32_t special_frame(struct ts_encoder *encoder, struct encode_area *area, uint64_t frame)
{
	struct ts_frame_row row = ts_frame_none;
	char text[64] = "(name not stored)";

	if (code_of(frame) == TS_LIVE_FRAMES_LEFT_OUT)
		snprintf(text, sizeof(text), "(%u frames left out)", (uint32_t)frame);
	else
		area->has_unnamed = true;
	row.name = encode_text(encoder, text);
	return ts_writer_frame(encoder->writer, &row);
}

static uint32_t make_frame(struct ts_encoder *encoder, struct encode_area *area, uint64_t frame)
{
	struct ts_frame_row row = ts_frame_none;
	unsigned int kind;
	struct encode_site *site = find_code(area, frame, &kind);
	uint32_t line = (uint32_t)frame;

	if (!site)
		return special_frame(encoder, area, frame);
	if (!site->resolved)
		encode_resolve_site(encoder, area, site);
	row.name = site->name;
	row.file = site->category;
	row.kind = kind == TS_LIVE_CODE_PYTHON   ? TS_FRAME_PYTHON
		   : kind == TS_LIVE_CODE_NATIVE ? TS_FRAME_NATIVE
						 : TS_FRAME_SCRIPT;
	if (kind == TS_LIVE_CODE_NATIVE) {
		row.pc = line;
		line = line_of(area, site);
	}
	if (line)
		row.line = line;
	return ts_writer_frame(encoder->writer, &row);
}

/* A stack and one frame more; the stack itself, where a file has too many. */
static uint32_t make_step(struct ts_encoder *encoder, struct encode_area *area,
			  struct encode_ring *ring, uint32_t parent, uint64_t frame, int64_t ns)
{
	uint32_t stack;

	if (encoder->stack_count >= ENCODE_STACKS) {
		encode_lose(encoder, ring, LOSS_TOO_MANY_STACKS, 1, ns, ns);
		return parent;
	}
	stack = ts_writer_stack(encoder->writer, parent, make_frame(encoder, area, frame));
	if (stack > encoder->newest_stack) {
		encoder->newest_stack = stack;
		encoder->stack_count++;
	}
	/* A map of those in use; what is forgotten is found again by the writer. */
	if (ts_pairmap_count(&area->steps) >= ENCODE_STEPS)
		ts_pairmap_clear(&area->steps);
	if (ts_pairmap_put(&area->steps, parent, frame, stack))
		encode_no_memory(encoder);
	return stack;
}

/* What is known of a thread's last stack. NULL: there is no memory for that, or it had none. */
static struct encode_memo *memo_of(struct ts_encoder *encoder, const struct encode_area *area,
				   struct encode_thread *thread)
{
	struct encode_memo *memo = thread->memo;

	if (!memo && encoder->memo_bytes + sizeof(*memo) <= ENCODE_MEMO_BYTES) {
		memo = thread->memo = calloc(1, sizeof(*memo));
		if (!memo)
			return NULL;
		memo->total_bytes = &encoder->memo_bytes;
		encoder->memo_bytes += sizeof(*memo);
	}
	if (memo && (memo->area != area->id || memo->epoch != encoder->epoch)) {
		memo->area = area->id;
		memo->epoch = encoder->epoch;
		memo->count = 0;
	}
	return memo;
}

static uint64_t count_same(const struct encode_memo *memo, const uint64_t *frames, uint64_t count)
{
	uint64_t same = 0, most = TS_MIN(count, (uint64_t)memo->count);

	while (same < most && memo->frames[same] == frames[same])
		same++;
	return same;
}

/* Each sample with such frames says how many it has. */
static void count_unnamed(struct ts_encoder *encoder, const struct encode_area *area,
			  struct encode_ring *ring, const struct encode_event *event)
{
	uint64_t unnamed = 0;

	for (uint64_t i = 0; i < event->frame_count; i++)
		unnamed += is_unnamed(area, event->frames[i]);
	encode_lose(encoder, ring, LOSS_UNNAMED_FRAME, unnamed, event->ns, event->ns);
}

static uint32_t stack_of(struct ts_encoder *encoder, struct encode_area *area,
			 struct encode_ring *ring, struct encode_thread *thread,
			 const struct encode_event *event)
{
	struct encode_memo *memo = memo_of(encoder, area, thread);
	uint64_t at = memo ? count_same(memo, event->frames, event->frame_count) : 0;
	uint32_t stack = at ? memo->stacks[at - 1] : 0;

	if (memo)
		memo->count = (uint32_t)TS_MIN(event->frame_count, ENCODE_MEMO_FRAMES);
	for (; at < event->frame_count; at++) {
		uint64_t known, frame = event->frames[at];

		if (TS_LIKELY(ts_pairmap_get(&area->steps, stack, frame, &known)))
			stack = (uint32_t)known;
		else
			stack = make_step(encoder, area, ring, stack, frame, event->ns);
		if (memo && at < ENCODE_MEMO_FRAMES) {
			memo->frames[at] = frame;
			memo->stacks[at] = stack;
		}
	}
	if (TS_UNLIKELY(area->has_unnamed))
		count_unnamed(encoder, area, ring, event);
	return stack;
}

void encode_samples_move(struct ts_encoder *encoder)
{
	for (size_t i = 0; i < encoder->area_count; i++)
		ts_pairmap_clear(&encoder->areas[i]->steps);
	ts_map_clear(&encoder->sample_names);
	memset(encoder->state_names, 0, sizeof(encoder->state_names));
	encoder->stack_count = encoder->newest_stack = 0;
}

/* ---- threads of processes ---- */

/* Drops those that only samples name and that have been silent, or all of them where that are too many. */
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
	struct encode_thread *thread = sampled_thread(encoder, area, event);
	struct ts_sample_row row = ts_sample_none;

	if (!thread) {
		encode_lose(encoder, ring, LOSS_UNKNOWN_EVENT, 1, event->ns, event->ns);
		return false;
	}
	row.start = event->ns;
	row.thread = thread->id;
	row.stack = stack_of(encoder, area, ring, thread, event);
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

	if (TS_LIKELY(event->frame_count == 0))
		return 0;
	row.start = start_ns;
	row.thread = event->thread->id;
	row.stack = stack_of(encoder, area, ring, event->thread, event);
	row.name = sample_name(encoder, event);
	ts_writer_add(encoder->writer, TS_TABLE_SAMPLE, &row, NULL);
	encoder->counts.samples++;
	return (uint32_t)row.stack;
}
