/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampled stacks over time as Chrome events: a function that stays on the stack between samples is
 * one span, whatever its line. Counters, slices and device work are included. Memory grows only
 * with threads and their depth. Spans of a thread always nest and its times never decrease,
 * whatever the trace contains.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/ns.h"
#include "export/chrome/chrome_export.h"
#include "export/common/export_input.h"
#include "export/common/export_losses.h"
#include "export/export.h"
#include "trace/stack_lists.h"

/* Generated ids, as in chrome_tracks.c; viewers store them in 32 bits. */
#define SYNTHETIC_UNKNOWN INT64_C(3050000000)
#define SYNTHETIC_STACKS INT64_C(3100000000)

/* A function on the stack of a thread. */
struct open_frame {
	int64_t frame;  /* as first seen */
	uint32_t seen;  /* samples in which it was innermost */
	uint32_t idle;  /* ... while the thread was idle */
	uint32_t waits; /* ... or waited for the GIL */
};

struct thread {
	struct ts_chrome_track track;
	int64_t process_end;
	bool has_time;
	int64_t last_ns;     /* newest sample */
	int64_t interval_ns; /* between its samples, if known; 0: not yet */
	int64_t stack;       /* of the newest sample */
	struct open_frame *frames;
	size_t count, capacity;
};

struct timeline {
	struct ts_chrome_export *x;
	struct ts_samples samples;
	struct ts_map busy;         /* ids of threads that have spans of their own */
	struct ts_map thread_index; /* thread id to its index */
	struct thread *threads;
	size_t thread_count, thread_capacity;
	struct ts_stack_list path;
	struct ts_text name;
};

static int no_memory(struct timeline *timeline)
{
	return ts_error_set(timeline->x->err, TS_ENOMEM, "no memory");
}

/* ---- events ---- */

static void put_head(struct timeline *timeline, const struct thread *thread, const char *phase,
		     int64_t frame, int64_t time)
{
	struct ts_chrome_export *x = timeline->x;

	ts_text_clear(&timeline->name);
	ts_frame_append_function(x->reader, &timeline->name, frame);
	ts_chrome_begin_event(x);
	ts_text_append_str(&x->out, phase);
	ts_text_append_json(&x->out, timeline->name.data, timeline->name.length);
	ts_text_append_char(&x->out, ',');
	ts_chrome_put_track(x, &thread->track);
	ts_text_append_str(&x->out, "\"ts\":");
	ts_text_append_us(&x->out, ts_ns_sub(time, x->base_ns));
}

static void put_category(struct timeline *timeline, const struct ts_frame_row *frame)
{
	const char *kind = ts_enum_name("frame_kind", frame->kind);

	ts_text_append_str(&timeline->x->out, ",\"cat\":\"");
	ts_text_append_str(&timeline->x->out,
			   kind && frame->kind != TS_FRAME_UNKNOWN ? kind : "stack");
	ts_text_append_char(&timeline->x->out, '"');
}

static void put_begin(struct timeline *timeline, const struct thread *thread, int64_t id,
		      int64_t time)
{
	struct ts_text *out = &timeline->x->out;
	struct ts_string file = ts_frame_file(timeline->x->reader, id);
	int64_t line = ts_frame_line(timeline->x->reader, id);

	put_head(timeline, thread, "\"ph\":\"B\",\"name\":", id, time);
	put_category(timeline, ts_frame_get(timeline->x->reader, id));
	if (file.length) {
		ts_text_append_str(out, ",\"args\":{\"file\":");
		ts_text_append_json(out, file.data, file.length);
		if (line != TS_ABSENT) {
			ts_text_append_str(out, ",\"line\":");
			ts_text_append_int(out, line);
		}
		ts_text_append_char(out, '}');
	}
	ts_text_append_char(out, '}');
}

/* Viewers merge the arguments of both ends. */
static void put_end(struct timeline *timeline, const struct thread *thread,
		    const struct open_frame *open, int64_t time)
{
	struct ts_text *out = &timeline->x->out;

	put_head(timeline, thread, "\"ph\":\"E\",\"name\":", open->frame, time);
	if (open->idle || open->waits) {
		ts_text_printf(out, ",\"args\":{\"samples\":%u", open->seen);
		if (open->idle)
			ts_text_printf(out, ",\"idle\":%u", open->idle);
		if (open->waits)
			ts_text_printf(out, ",\"waiting for gil\":%u", open->waits);
		ts_text_append_char(out, '}');
	}
	ts_text_append_char(out, '}');
}

/* ---- threads ---- */

/* A track for no thread, or one missing from the trace. */
static void name_unknown(struct timeline *timeline, struct thread *thread)
{
	struct ts_chrome_export *x = timeline->x;

	thread->track.pid.number = SYNTHETIC_UNKNOWN;
	thread->track.tid.number = SYNTHETIC_UNKNOWN;
	ts_chrome_begin_event(x);
	ts_text_append_str(&x->out, "\"ph\":\"M\",\"name\":\"process_name\",");
	ts_chrome_put_track(x, &thread->track);
	ts_text_append_str(&x->out, "\"args\":{\"name\":\"unknown thread\"}}");
}

/* Sampled spans do not nest with those of the program: they get a separate track. */
static void name_apart(struct timeline *timeline, struct thread *thread, int64_t id)
{
	struct ts_chrome_export *x = timeline->x;

	thread->track.tid = (struct ts_chrome_number){
		.number = (int64_t)((uint64_t)SYNTHETIC_STACKS + (uint64_t)id)
	};
	ts_text_clear(&timeline->name);
	ts_thread_append_name(x->reader, &timeline->name, id);
	ts_text_append_str(&timeline->name, " stacks");
	ts_chrome_begin_event(x);
	ts_text_append_str(&x->out, "\"ph\":\"M\",\"name\":\"thread_name\",");
	ts_chrome_put_track(x, &thread->track);
	ts_text_append_str(&x->out, "\"args\":{\"name\":");
	ts_text_append_json(&x->out, timeline->name.data, timeline->name.length);
	ts_text_append_str(&x->out, "}}");
}

static void begin_thread(struct timeline *timeline, struct thread *thread, int64_t id)
{
	struct ts_reader *reader = timeline->x->reader;
	const struct ts_chrome_track *track = ts_chrome_track_of_thread(timeline->x, id);
	const struct ts_thread_row *row = ts_reader_entity(reader, TS_TABLE_THREAD, id);
	const struct ts_process_row *process = NULL;
	uint64_t is_busy;

	*thread = (struct thread){ .process_end = INT64_MAX };
	if (!track) {
		name_unknown(timeline, thread);
		return;
	}
	thread->track = *track;
	if (ts_map_get(&timeline->busy, (uint64_t)id, &is_busy))
		name_apart(timeline, thread, id);
	if (row)
		process = ts_reader_entity(reader, TS_TABLE_PROCESS, row->process);
	if (process && process->end != TS_ABSENT)
		thread->process_end = process->end;
}

static struct thread *thread_of(struct timeline *timeline, int64_t id)
{
	/* All missing threads share a track. */
	int64_t key = ts_chrome_track_of_thread(timeline->x, id) ? id : 0;
	bool is_new = false;
	uint64_t *slot = ts_map_insert(&timeline->thread_index, (uint64_t)key, &is_new);

	if (!slot ||
	    (is_new && ts_grow_array((void **)&timeline->threads, &timeline->thread_capacity,
				     timeline->thread_count + 1, sizeof(*timeline->threads))))
		return NULL;
	if (is_new) {
		*slot = timeline->thread_count++;
		begin_thread(timeline, &timeline->threads[*slot], key);
	}
	return &timeline->threads[*slot];
}

/* ---- from sample to sample ---- */

/* Was the thread not sampled for more than two and a half of its intervals? */
static bool is_gap(const struct thread *thread, int64_t now, int64_t weight)
{
	int64_t usual = TS_MAX(thread->interval_ns, weight);

	if (!thread->has_time || usual <= 0)
		return false;
	usual = TS_MIN(usual, INT64_MAX / 4);
	return ts_ns_between(thread->last_ns, now) > 2 * usual + usual / 2;
}

/* Assumed end of a thread's last stack: one interval later, but not after its process. */
static int64_t end_of(const struct thread *thread)
{
	int64_t end = ts_ns_add(thread->last_ns, thread->interval_ns);

	return TS_MAX(TS_MIN(end, thread->process_end), thread->last_ns);
}

static int close_frames(struct timeline *timeline, struct thread *thread, size_t keep, int64_t time)
{
	int rc = TS_OK;

	while (!rc && thread->count > keep) {
		put_end(timeline, thread, &thread->frames[--thread->count], time);
		rc = ts_chrome_flush(timeline->x, TS_CHROME_FLUSH_BYTES);
	}
	return rc;
}

static int open_frames(struct timeline *timeline, struct thread *thread, int64_t time)
{
	const struct ts_stack_list *path = &timeline->path;
	int rc = TS_OK;

	if (ts_grow_array((void **)&thread->frames, &thread->capacity, path->count,
			  sizeof(*thread->frames)))
		return no_memory(timeline);
	while (!rc && thread->count < path->count) {
		int64_t frame = path->frames[thread->count];

		put_begin(timeline, thread, frame, time);
		thread->frames[thread->count++] = (struct open_frame){ .frame = frame };
		rc = ts_chrome_flush(timeline->x, TS_CHROME_FLUSH_BYTES);
	}
	return rc;
}

/* Number of outermost functions that are the same as before. */
static size_t common_depth(const struct timeline *timeline, const struct thread *thread)
{
	const struct ts_stack_list *path = &timeline->path;
	size_t depth = 0;

	while (depth < thread->count && depth < path->count &&
	       ts_frame_same_function(timeline->x->reader, thread->frames[depth].frame,
				      path->frames[depth]))
		depth++;
	return depth;
}

static int change_stack(struct timeline *timeline, struct thread *thread, int64_t stack,
			int64_t time)
{
	int rc;

	if (thread->count && stack == thread->stack)
		return TS_OK;
	if (ts_stack_list_load(&timeline->path, timeline->x->reader, stack))
		return no_memory(timeline);
	thread->stack = stack;
	rc = close_frames(timeline, thread, common_depth(timeline, thread), time);
	return rc ? rc : open_frames(timeline, thread, time);
}

static void count_innermost(struct thread *thread, enum ts_thread_state state)
{
	struct open_frame *open;

	if (!thread->count)
		return;
	open = &thread->frames[thread->count - 1];
	open->seen++;
	open->idle += state == TS_THREAD_IDLE;
	open->waits += state == TS_THREAD_WAITS_FOR_GIL;
}

/* Updates the time between samples: their weight, or a moving average. */
static void note_interval(const struct timeline *timeline, struct thread *thread, int64_t now,
			  int64_t weight, bool after_gap)
{
	int64_t since = ts_ns_between(thread->last_ns, now);

	if (timeline->samples.are_timed) {
		if (weight > 0)
			thread->interval_ns = weight;
	} else if (thread->has_time && !after_gap) {
		thread->interval_ns = thread->interval_ns ? thread->interval_ns / 4 * 3 + since / 4
							  : since;
	}
	thread->has_time = true;
	thread->last_ns = now;
}

static int draw(void *context, const struct ts_stack_sample *seen)
{
	struct timeline *timeline = context;
	struct thread *thread = thread_of(timeline, seen->thread);
	int64_t weight = timeline->samples.are_timed ? seen->weight : 0;
	int64_t now = seen->start;
	bool after_gap;
	int rc = TS_OK;

	if (!thread)
		return no_memory(timeline);
	if (thread->has_time)
		now = TS_MAX(now, thread->last_ns);
	after_gap = is_gap(thread, now, weight);
	if (after_gap)
		rc = close_frames(timeline, thread, 0, end_of(thread));
	if (!rc)
		rc = change_stack(timeline, thread, seen->stack, now);
	count_innermost(thread, seen->state);
	note_interval(timeline, thread, now, weight, after_gap);
	return rc;
}

static int put_stacks(struct timeline *timeline)
{
	int rc = ts_samples_walk(&timeline->samples, draw, timeline);

	for (size_t i = 0; !rc && i < timeline->thread_count; i++)
		rc = close_frames(timeline, &timeline->threads[i], 0,
				  end_of(&timeline->threads[i]));
	return rc;
}

/* ---- what stands beside the stacks ---- */

#define DRAWN                                                             \
	(TS_TABLE_SET(TS_TABLE_SLICE) | TS_TABLE_SET(TS_TABLE_API_CALL) | \
	 TS_TABLE_SET(TS_TABLE_GPU_OP) | TS_TABLE_SET(TS_TABLE_FLOW) |    \
	 TS_TABLE_SET(TS_TABLE_COUNTER) | TS_TABLE_SET(TS_TABLE_MARK))

static bool is_drawn(uint32_t table)
{
	return table < TS_TABLE_COUNT && DRAWN & TS_TABLE_SET(table);
}

static int put_chunk(struct ts_chrome_export *x, struct ts_batch *batch, size_t chunk)
{
	int rc = ts_batch_read(batch, chunk, TS_MASK_ALL, x->err);

	for (uint32_t row = 0; !rc && row < batch->rows; row++) {
		ts_chrome_put_row(x, batch, row);
		rc = ts_chrome_flush(x, TS_CHROME_FLUSH_BYTES);
	}
	if (!rc && batch->rows && batch->table->id == TS_TABLE_SLICE)
		rc = ts_chrome_put_async(x, batch);
	/* No row is referenced any more. */
	ts_reader_trim(x->reader, TS_CHROME_TEXT_BYTES);
	return rc;
}

static int put_rest(struct ts_chrome_export *x, struct ts_batch *batch)
{
	int rc = TS_OK;

	for (size_t i = 0; !rc && i < ts_reader_chunk_count(x->reader); i++)
		if (is_drawn(ts_reader_chunk(x->reader, i)->table))
			rc = put_chunk(x, batch, i);
	return rc;
}

/* Collects the threads of slices or calls, and their last end. */
static int note_spans(struct timeline *timeline, struct ts_batch *batch, size_t chunk)
{
	struct ts_chrome_export *x = timeline->x;
	const struct ts_table_info *table = ts_table_info(ts_reader_chunk(x->reader, chunk)->table);
	int thread = ts_column_by_name(table, "thread");
	uint64_t mask = UINT64_C(1) << thread | UINT64_C(1) << table->start |
			UINT64_C(1) << table->duration;
	int rc = ts_batch_read(batch, chunk, mask, x->err);

	for (uint32_t row = 0; !rc && row < batch->rows; row++) {
		int64_t duration = TS_MAX(batch->columns[table->duration][row], 0);

		x->end_ns =
			TS_MAX(x->end_ns, ts_ns_add(batch->columns[table->start][row], duration));
		if (ts_map_put(&timeline->busy, (uint64_t)batch->columns[thread][row], 1))
			rc = no_memory(timeline);
	}
	return rc;
}

static int look_ahead(struct timeline *timeline, struct ts_batch *batch)
{
	struct ts_chrome_export *x = timeline->x;
	int rc = TS_OK;

	x->end_ns = INT64_MIN;
	for (size_t i = 0; !rc && i < ts_reader_chunk_count(x->reader); i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(x->reader, i);

		if (chunk->table == TS_TABLE_SLICE || chunk->table == TS_TABLE_API_CALL)
			rc = note_spans(timeline, batch, i);
		else if (chunk->min_start != TS_ABSENT)
			x->end_ns = TS_MAX(x->end_ns, chunk->max_start);
	}
	return rc;
}

/* ---- the file ---- */

static int put_events(struct timeline *timeline)
{
	struct ts_chrome_export *x = timeline->x;
	struct ts_batch *batch = NULL;
	int rc = ts_batch_new(&batch, x->reader, x->err);

	if (!rc)
		rc = look_ahead(timeline, batch);
	if (!rc)
		rc = ts_chrome_put_names(x);
	if (!rc)
		rc = put_rest(x, batch);
	ts_batch_free(batch);
	return rc ? rc : put_stacks(timeline);
}

static void release(struct timeline *timeline)
{
	ts_samples_release(&timeline->samples);
	ts_map_release(&timeline->busy);
	ts_map_release(&timeline->thread_index);
	for (size_t i = 0; i < timeline->thread_count; i++)
		free(timeline->threads[i].frames);
	free(timeline->threads);
	ts_stack_list_release(&timeline->path);
	ts_text_release(&timeline->name);
}

static int put_timeline(struct timeline *timeline)
{
	struct ts_chrome_export *x = timeline->x;
	int rc;

	ts_text_append_str(&x->out, "{\"displayTimeUnit\":\"ms\",\n");
	if (x->base_ns)
		ts_text_printf(&x->out, "\"baseTimeNanoseconds\":%lld,\n", (long long)x->base_ns);
	ts_text_append_str(&x->out, "\"traceEvents\":[");
	rc = put_events(timeline);
	if (rc)
		return rc;
	ts_text_append_str(&x->out, "\n]}\n");
	return ts_text_status(&timeline->name) ? no_memory(timeline) : ts_chrome_flush(x, 0);
}

static int put_file(struct ts_chrome_export *x)
{
	struct timeline timeline = { .x = x };
	int rc = ts_chrome_tracks_init(x);

	x->for_viewers = true;
	if (!rc)
		rc = ts_chrome_choose_base(x);
	if (!rc)
		rc = ts_export_samples(&timeline.samples, x->reader, x->options, 1, x->err);
	if (!rc)
		rc = put_timeline(&timeline);
	if (!rc)
		ts_left_out_tables(x->options, x->reader, DRAWN | TS_TABLE_SET(TS_TABLE_SAMPLE));
	release(&timeline);
	return rc;
}

int ts_export_timeline(struct ts_reader *reader, int fd, const struct ts_export_options *options,
		       struct ts_error *err)
{
	return ts_chrome_write(reader, fd, options, put_file, err);
}
