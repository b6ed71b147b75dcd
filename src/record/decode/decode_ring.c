/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes the records of a ring into rows. The bytes are untrusted: sizes are checked, and an
 * invalid ring is skipped from there on. Common records (a known call site, plain values) go from
 * ring bytes to the writer's columns without a copy or a hash.
 */
#include <tracesmith/metrics.h>

#include "live/area.h"
#include "live/records.h"
#include "record/decode/decode_internal.h"
#include "trace/step_mark.h"

static uint32_t take_text(struct ts_decoder *decoder, struct decode_cursor *cursor)
{
	uint32_t length;
	const char *text = decode_take_string(cursor, &length);

	return cursor->bad ? 0 : decode_string(decoder, text, length);
}

/* Reads a value of that type; false: not stored. */
static bool take_value(struct ts_decoder *decoder, const struct decode_area *area,
		       struct decode_cursor *cursor, unsigned int type, int64_t *ret_value)
{
	uint32_t length;

	switch (type) {
	case TS_ARG_STRING:
		if (decode_is_redacted(decoder, area)) {
			decode_take_string(cursor, &length);
			return false;
		}
		*ret_value = take_text(decoder, cursor);
		return true;
	case TS_ARG_BOOL:
		*ret_value = decode_take_word(cursor) != 0;
		return true;
	default:
		*ret_value = (int64_t)decode_take_word(cursor);
		return true;
	}
}

/* ---- names and arguments ---- */

/* Reads values that need conversion: strings, booleans. */
static void take_site_values(struct ts_decoder *decoder, const struct decode_area *area,
			     const struct decode_site *site, struct decode_cursor *cursor,
			     struct decode_event *event)
{
	const char *fields = area->dictionary.data + site->offset + sizeof(struct ts_live_site);
	uint32_t count = 0;

	for (unsigned int i = 0; i < site->fields && !cursor->bad; i++) {
		struct ts_live_site_field field;

		memcpy(&field, fields + i * sizeof(field), sizeof(field));
		if (take_value(decoder, area, cursor, field.type, &event->storage[count]))
			count += !site->is_hidden;
	}
	event->values = event->storage;
}

static inline void take_site(struct ts_decoder *decoder, struct decode_area *area, uint32_t number,
			     struct decode_cursor *cursor, struct decode_event *event)
{
	struct decode_site *site;

	if (TS_UNLIKELY(number > area->site_count)) {
		cursor->bad = true;
		return;
	}
	site = &area->sites[number - 1];
	if (TS_UNLIKELY(!site->resolved))
		decode_resolve_site(decoder, area, site);
	event->name = site->name;
	event->category = site->category;
	event->shape = site->shape;
	if (TS_UNLIKELY(!site->plain)) {
		take_site_values(decoder, area, site, cursor, event);
		return;
	}
	event->values = (const int64_t *)cursor->next;
	if ((size_t)(cursor->end - cursor->next) < site->fields)
		cursor->bad = true;
	else
		cursor->next += site->fields;
}

static uint32_t take_name(struct ts_decoder *decoder, const struct decode_area *area,
			  struct decode_cursor *cursor, unsigned int kind)
{
	uint32_t length;
	const char *text;

	if (kind != TS_LIVE_GPU_OP)
		return take_text(decoder, cursor);
	text = decode_take_string(cursor, &length);
	return cursor->bad ? 0 : decode_kernel_name(decoder, area, text, length);
}

static void take_dynamic(struct ts_decoder *decoder, const struct decode_area *area,
			 struct decode_cursor *cursor, struct decode_event *event)
{
	struct ts_field fields[TS_LIVE_FIELDS] = { 0 };
	uint32_t stored = 0, length;
	const char *category;
	bool is_hidden;
	uint64_t count;

	event->name = take_name(decoder, area, cursor, event->kind);
	category = decode_take_string(cursor, &length);
	is_hidden = !cursor->bad && decode_is_hidden(decoder, area, category, length);
	if (!cursor->bad && length)
		event->category = decode_string(decoder, category, length);
	count = decode_take_word(cursor);
	if (count > TS_LIVE_FIELDS)
		cursor->bad = true;
	for (uint64_t i = 0; i < count && !cursor->bad; i++) {
		uint64_t type = decode_take_word(cursor);
		uint32_t key = take_text(decoder, cursor);

		if (type < TS_ARG_INT || type > TS_ARG_BOOL)
			cursor->bad = true;
		else if (take_value(decoder, area, cursor, (unsigned int)type,
				    &event->storage[stored]) &&
			 !is_hidden)
			fields[stored++] = (struct ts_field){ .key = key, .type = (uint8_t)type };
	}
	if (!cursor->bad)
		event->shape = ts_writer_shape(decoder->writer, fields, stored);
	event->values = event->storage;
}

/* Reads the words of a GPU_OP, those of MORE, and the listed waits after them. */
static void take_op(struct decode_cursor *cursor, struct decode_event *event)
{
	size_t left = (size_t)(cursor->end - cursor->next), need = TS_LIVE_WORDS(*event->op);

	event->op = (const struct ts_live_gpu_op *)(const void *)cursor->next;
	event->more = NULL;
	if (event->flags & TS_LIVE_FLAG_MORE) {
		event->more = (const void *)(cursor->next + need);
		need += TS_LIVE_WORDS(*event->more);
	}
	event->waits = cursor->next + need;
	if (left >= need)
		need += event->op->waits;
	if (left < need) {
		cursor->bad = true;
		return;
	}
	event->correlation = event->op->correlation;
	cursor->next += need;
}

static void take_allocation(struct decode_cursor *cursor, struct decode_event *event)
{
	event->allocation = (const struct ts_live_allocation *)(const void *)cursor->next;
	if ((size_t)(cursor->end - cursor->next) < TS_LIVE_WORDS(*event->allocation))
		cursor->bad = true;
	else
		cursor->next += TS_LIVE_WORDS(*event->allocation);
}

static void take_torch(struct decode_cursor *cursor, struct decode_event *event)
{
	event->torch = (const struct ts_live_torch *)(const void *)cursor->next;
	if ((size_t)(cursor->end - cursor->next) < TS_LIVE_WORDS(*event->torch))
		cursor->bad = true;
	else
		cursor->next += TS_LIVE_WORDS(*event->torch);
}

static void take_sample(struct decode_cursor *cursor, struct decode_event *event)
{
	if (event->flags & TS_LIVE_FLAG_SUBJECT)
		decode_take(cursor, &event->subject, sizeof(event->subject));
	decode_take(cursor, &event->sample, sizeof(event->sample));
}

static void take_call(struct decode_cursor *cursor, struct decode_event *event)
{
	struct ts_live_call call;

	decode_take(cursor, &call, sizeof(call));
	event->duration = call.duration;
	event->correlation = call.correlation;
	event->result = call.result;
}

/* Reads the frames at the end of a record with STACK. */
static void take_stack(struct decode_cursor *cursor, struct decode_event *event)
{
	event->frame_count = decode_take_word(cursor);
	event->frames = cursor->next;
	if (event->frame_count > (size_t)(cursor->end - cursor->next))
		cursor->bad = true;
}

static bool may_have_frames(unsigned int kind)
{
	return kind == TS_LIVE_INSTANT || kind == TS_LIVE_CALL || kind == TS_LIVE_SAMPLE;
}

static bool may_have_stack(unsigned int kind)
{
	return may_have_frames(kind) || kind == TS_LIVE_ALLOCATION;
}

/* Reads the stack number: the last word of the record. */
static void take_stack_is(struct decode_cursor *cursor, struct decode_event *event)
{
	if (cursor->next >= cursor->end)
		cursor->bad = true;
	else
		event->stack = *--cursor->end;
}

/* Reads everything after the first two words. False: the record is invalid. */
static inline bool take_event(struct ts_decoder *decoder, struct decode_area *area,
			      struct decode_event *event)
{
	struct decode_cursor cursor = { .next = event->record + 2,
					.end = event->record + event->words };
	uint32_t site = ts_live_head_site(event->record[0]);

	event->category = event->shape = 0;
	event->stack = 0;
	if (event->flags & TS_LIVE_FLAG_STACK_IS && may_have_stack(event->kind))
		take_stack_is(&cursor, event);
	if (event->kind == TS_LIVE_SPAN) {
		event->duration = decode_take_word(&cursor);
		if (event->flags & TS_LIVE_FLAG_START)
			event->start = decode_take_word(&cursor);
	} else if (event->kind == TS_LIVE_STEP) {
		event->number = decode_take_word(&cursor);
	} else if (event->kind == TS_LIVE_COUNTER && event->flags & TS_LIVE_FLAG_SUBJECT) {
		decode_take(&cursor, &event->subject, sizeof(event->subject));
	} else if (event->kind == TS_LIVE_CALL) {
		take_call(&cursor, event);
	} else if (event->kind == TS_LIVE_GPU_OP) {
		take_op(&cursor, event);
	} else if (event->kind == TS_LIVE_SAMPLE) {
		take_sample(&cursor, event);
	} else if (event->kind == TS_LIVE_ALLOCATION) {
		take_allocation(&cursor, event);
	} else if (event->kind == TS_LIVE_TORCH) {
		take_torch(&cursor, event);
	}
	if (TS_UNLIKELY(event->flags & TS_LIVE_FLAG_TRACK)) {
		event->thread = decode_get_thread(decoder, area, decode_take_word(&cursor), true);
		if (!event->thread)
			return false;
		decode_use_thread(decoder, area, event->thread);
	}
	/* These two have no name. */
	if (event->kind == TS_LIVE_END || event->kind == TS_LIVE_STEP)
		return !cursor.bad;
	if (TS_LIKELY(site))
		take_site(decoder, area, site, &cursor, event);
	else
		take_dynamic(decoder, area, &cursor, event);
	event->frame_count = 0;
	if (TS_UNLIKELY(event->flags & TS_LIVE_FLAG_STACK && may_have_frames(event->kind)))
		take_stack(&cursor, event);
	return !cursor.bad;
}

/* ---- rows ---- */

static void slice_row(struct ts_decoder *decoder, const struct decode_event *event, int64_t start,
		      int64_t duration)
{
	struct ts_slice_row row = ts_slice_none;

	row.start = start;
	row.duration = duration;
	row.thread = event->thread->id;
	row.name = event->name;
	row.category = event->category;
	row.shape = event->shape;
	ts_writer_add(decoder->writer, TS_TABLE_SLICE, &row, event->values);
}

/* Converts a duration in ticks of an area's counter that ends at `ns` to ns. */
static int64_t ticks_ns(const struct ts_decoder *decoder, const struct decode_area *area,
			const struct decode_event *event)
{
	uint64_t counter = event->record[1];

	if (event->duration > counter)
		return DECODE_LATEST_NS;
	return event->ns - decode_time(decoder, area, counter - event->duration);
}

int64_t decode_span(const struct ts_decoder *decoder, const struct decode_area *area,
		    const struct decode_event *event, int64_t *ret_duration)
{
	int64_t duration, start;

	duration = event->duration < (uint64_t)DECODE_LATEST_NS ? (int64_t)event->duration
								: DECODE_LATEST_NS;
	if (event->flags & TS_LIVE_FLAG_TICKS)
		duration = ticks_ns(decoder, area, event);
	if (TS_UNLIKELY(event->flags & TS_LIVE_FLAG_START && event->kind == TS_LIVE_SPAN))
		start = decode_monotonic(decoder, (int64_t)event->start);
	else
		start = event->ns - duration;
	if (TS_UNLIKELY(start < area->bound_ns)) {
		duration = TS_MAX(duration - (area->bound_ns - start), 0);
		start = area->bound_ns;
	}
	*ret_duration = TS_MAX(duration, 0);
	return start;
}

static void span(struct ts_decoder *decoder, const struct decode_area *area,
		 const struct decode_event *event)
{
	int64_t duration, start = decode_span(decoder, area, event, &duration);

	slice_row(decoder, event, start, duration);
}

static void instant(struct ts_decoder *decoder, const struct decode_event *event, uint32_t stack)
{
	struct ts_mark_row row = ts_mark_none;

	row.start = event->ns;
	row.thread = event->thread->id;
	row.name = event->name;
	row.category = event->category;
	row.shape = event->shape;
	row.stack = stack;
	ts_writer_add(decoder->writer, TS_TABLE_MARK, &row, event->values);
}

/* Sets the process or device that a counter describes. False: unknown subject. */
static bool set_subject(struct ts_decoder *decoder, struct decode_area *area,
			const struct decode_event *event, struct ts_counter_row *row)
{
	unsigned int kind = ts_live_kind_of(event->subject.device_kind);
	uint32_t number = ts_live_device_of(event->subject.device_kind);
	uint32_t pid = event->subject.pid;

	if (kind < TS_METRICS_SYSTEM || kind > TS_METRICS_PROCESS_ON_DEVICE)
		return false;
	if (kind == TS_METRICS_PROCESS || kind == TS_METRICS_PROCESS_ON_DEVICE) {
		const struct decode_process *process = NULL;

		if (pid > 0 && pid <= INT32_MAX)
			process = decode_subject_process(decoder, area, pid,
							 event->subject.start_time, event->ns);
		if (!process)
			return false;
		row->process = process->id;
	}
	if (kind == TS_METRICS_DEVICE || kind == TS_METRICS_PROCESS_ON_DEVICE) {
		const struct decode_device *device = decode_use_device(decoder, area, number);

		if (!device)
			return false;
		row->device = device->id;
	}
	return true;
}

static bool counter(struct ts_decoder *decoder, struct decode_area *area, struct decode_ring *ring,
		    const struct decode_event *event)
{
	struct ts_counter_row row = ts_counter_none;

	if (!(event->flags & TS_LIVE_FLAG_SUBJECT)) {
		row.thread = event->thread->id;
	} else if (!set_subject(decoder, area, event, &row)) {
		decode_lose(decoder, ring, LOSS_UNKNOWN_EVENT, 1, event->ns, event->ns);
		return false;
	}
	row.start = event->ns;
	row.name = event->name;
	row.category = event->category;
	row.shape = event->shape;
	ts_writer_add(decoder->writer, TS_TABLE_COUNTER, &row, event->values);
	return true;
}

static void step(struct ts_decoder *decoder, struct decode_event *event)
{
	struct ts_field field = { .key = decode_text(decoder, TS_STEP_MARK), .type = TS_ARG_INT };

	event->name = event->category = field.key;
	event->shape = ts_writer_shape(decoder->writer, &field, 1);
	event->storage[0] = (int64_t)event->number;
	event->values = event->storage;
	instant(decoder, event, 0);
}

/* ---- spans with separate BEGIN and END ---- */

bool decode_push(struct decode_area *area, struct decode_stack *stack, const void *record,
		 size_t bytes, uint32_t flags)
{
	if (stack->count >= DECODE_OPEN_SPANS || area->open_spans >= DECODE_AREA_SPANS ||
	    area->open_span_bytes + bytes > DECODE_AREA_SPAN_BYTES ||
	    ts_grow_array((void **)&stack->starts, &stack->capacity, stack->count + 1,
			  sizeof(*stack->starts)))
		return false;
	stack->starts[stack->count] = (uint32_t)stack->records.length | flags;
	ts_text_append(&stack->records, record, bytes);
	if (ts_text_status(&stack->records))
		return false;
	stack->count++;
	area->open_spans++;
	area->open_span_bytes += bytes;
	return true;
}

/* Removes the newest open span; its words remain valid until the next push. */
static void pop(struct decode_area *area, struct decode_stack *stack)
{
	uint32_t start = stack->starts[--stack->count] & ~STACK_OUTSIDE;

	area->open_spans--;
	area->open_span_bytes -= stack->records.length - start;
	stack->records.length = start;
}

/* Adds a row for a BEGIN record; `end_ns` -1: it has not ended. */
static void begun_row(struct ts_decoder *decoder, struct decode_area *area,
		      struct decode_thread *thread, const uint64_t *record, int64_t end_ns)
{
	struct decode_event event = { .record = record,
				      .words = ts_live_head_words(record[0]),
				      .kind = TS_LIVE_BEGIN,
				      .thread = thread };
	int64_t start = TS_MAX(decode_time(decoder, area, record[1]), area->bound_ns);

	/* The thread is already known, even if it is a track. */
	event.flags = (uint8_t)ts_live_head_flags(record[0]);
	if (take_event(decoder, area, &event))
		slice_row(decoder, &event, start, end_ns < 0 ? -1 : TS_MAX(end_ns - start, 0));
}

/* Counts an event outside all windows. */
static bool leave_out(struct ts_decoder *decoder, struct decode_area *area)
{
	area->outside++;
	decoder->counts.outside++;
	return false;
}

static struct decode_stack *stack_of(const struct decode_event *event)
{
	return &event->thread->stacks[(event->flags & TS_LIVE_FLAG_SIDE) != 0];
}

static bool begin(struct ts_decoder *decoder, struct decode_area *area, struct decode_ring *ring,
		  const struct decode_event *event)
{
	bool outside = decode_is_outside(area, event->ns);

	if (!decode_push(area, stack_of(event), event->record, event->words * sizeof(uint64_t),
			 outside ? STACK_OUTSIDE : 0)) {
		decode_lose(decoder, ring, LOSS_TOO_DEEP, 1, event->ns, event->ns);
		return false;
	}
	return outside ? leave_out(decoder, area) : true;
}

/* True if the area stores events only in windows; their records may be in another ring. */
static bool has_windows(const struct decode_area *area)
{
	const struct ts_live_control *control = area->about ? &area->about->control : NULL;

	return area->gate_count || area->window_count ||
	       (control &&
		(control->step_open != TS_ABSENT || !(control->enabled & TS_LIVE_ENABLED)));
}

/* The start of a span decides whether it is inside a window; its end may be outside. */
static bool end(struct ts_decoder *decoder, struct decode_area *area, struct decode_ring *ring,
		const struct decode_event *event)
{
	struct decode_stack *stack = stack_of(event);
	uint32_t start;

	/*
	 * With windows, its BEGIN came while none was open: not a loss, like everything between
	 * windows.
	 */
	if (stack->count == 0 && has_windows(area))
		return leave_out(decoder, area);
	if (stack->count == 0) {
		decode_lose(decoder, ring, LOSS_END_ALONE, 1, event->ns, event->ns);
		return false;
	}
	start = stack->starts[stack->count - 1];
	pop(area, stack);
	if (start & STACK_OUTSIDE)
		return leave_out(decoder, area);
	begun_row(decoder, area, event->thread,
		  (const uint64_t *)(const void *)(stack->records.data + start), event->ns);
	return true;
}

void decode_open_spans(struct ts_decoder *decoder, struct decode_area *area)
{
	for (size_t i = 0; i < area->thread_count; i++) {
		struct decode_thread *thread = area->threads[i];

		for (size_t k = 0; k < TS_ARRAY_SIZE(thread->stacks); k++) {
			struct decode_stack *stack = &thread->stacks[k];

			if (stack->count)
				decode_use_thread(decoder, area, thread);
			for (size_t n = 0; n < stack->count; n++) {
				const char *record = stack->records.data +
						     (stack->starts[n] & ~STACK_OUTSIDE);

				if (!(stack->starts[n] & STACK_OUTSIDE))
					begun_row(decoder, area, thread,
						  (const uint64_t *)(const void *)record, -1);
			}
			while (stack->count)
				pop(area, stack);
		}
	}
}

/* ---- records ---- */

/* Sets the thread of the ring's following events. */
static void know_thread(struct ts_decoder *decoder, struct decode_area *area,
			struct decode_thread *thread)
{
	if (!area->of_recorder)
		decode_use_thread(decoder, area, thread);
}

/* A GPU_OP arrives after completion, perhaps long after its window: use its enqueue time. */
static bool op(struct ts_decoder *decoder, struct decode_area *area, struct decode_ring *ring,
	       const struct decode_event *event)
{
	const struct decode_device_number *device =
		decode_find_number(area, ts_live_device_of(event->op->device_kind));
	int64_t ns = TS_ABSENT;

	if (device)
		ns = decode_host_time(&device->clock, event->op->queued);
	if (TS_UNLIKELY(ns != TS_ABSENT && decode_is_outside(area, ns))) {
		decode_forget_call(decoder, area, event->correlation);
		return leave_out(decoder, area);
	}
	return decode_gpu_op(decoder, area, ring, event);
}

/* True if the event is in the trace now, or will be. */
static inline bool add_event(struct ts_decoder *decoder, struct decode_area *area,
			     struct decode_ring *ring, struct decode_event *event)
{
	if (TS_UNLIKELY(area->of_recorder && !(event->flags & TS_LIVE_FLAG_SUBJECT)))
		decode_use_thread(decoder, area, event->thread);
	if (event->kind == TS_LIVE_BEGIN)
		return begin(decoder, area, ring, event);
	if (event->kind == TS_LIVE_END)
		return end(decoder, area, ring, event);
	if (event->kind == TS_LIVE_GPU_OP)
		return op(decoder, area, ring, event);
	if (TS_UNLIKELY(decode_is_outside(area, event->ns)))
		return leave_out(decoder, area);
	if (TS_LIKELY(event->kind == TS_LIVE_INSTANT))
		instant(decoder, event, decode_event_stack(decoder, area, ring, event, event->ns));
	else if (event->kind == TS_LIVE_SPAN)
		span(decoder, area, event);
	else if (event->kind == TS_LIVE_COUNTER)
		return counter(decoder, area, ring, event);
	else if (event->kind == TS_LIVE_SAMPLE)
		return decode_sample(decoder, area, ring, event);
	else if (event->kind == TS_LIVE_CALL)
		return decode_call(decoder, area, ring, event);
	else if (event->kind == TS_LIVE_ALLOCATION)
		return decode_allocation(decoder, area, ring, event);
	else if (event->kind == TS_LIVE_TORCH)
		return decode_torch(decoder, area, ring, event);
	else
		step(decoder, event);
	return true;
}

/* Drops belong to the owner that found the ring full: the next owner records the count so far. */
static void settle_dropped(struct ts_decoder *decoder, struct decode_ring *ring, uint64_t dropped,
			   int64_t ns)
{
	if (dropped <= ring->dropped)
		return;
	decode_lose(decoder, ring, LOSS_DROPPED, dropped - ring->dropped,
		    ring->last_ns ? ring->last_ns : ns, ns);
	ring->dropped = dropped;
}

static bool thread_record(struct ts_decoder *decoder, struct decode_area *area,
			  struct decode_ring *ring, const struct ts_live_thread_record *record,
			  uint64_t dropped_at_end)
{
	/* A THREAD record inserted by the drainer has no time. */
	int64_t ns = record->counter ? decode_time(decoder, area, record->counter)
		     : ring->last_ns ? ring->last_ns
				     : decoder->now_ns;
	struct decode_thread *thread = decode_get_thread(decoder, area, record->serial, false);

	if (!thread)
		return false;
	thread = decode_join_thread(decoder, area, thread, record->tid, ns);
	/* Never more than the ring's own count. */
	settle_dropped(decoder, ring, TS_MIN(record->dropped, dropped_at_end), ns);
	if (ring->thread != thread)
		decode_report_ring(decoder, area, ring);
	ring->thread = thread;
	decode_name_thread(decoder, area, thread, record->name, sizeof(record->name),
			   NAMED_BY_KERNEL);
	know_thread(decoder, area, thread);
	return true;
}

static bool name_record(struct ts_decoder *decoder, struct decode_area *area,
			struct decode_thread *thread, const uint64_t *record, uint32_t words)
{
	struct decode_cursor cursor = { .next = record + 2, .end = record + words };
	uint32_t length;
	const char *name = decode_take_string(&cursor, &length);

	if (!cursor.bad)
		decode_name_thread(decoder, area, thread, name, length, NAMED_BY_PROGRAM);
	return !cursor.bad;
}

static bool device_record(struct ts_decoder *decoder, struct decode_area *area,
			  const uint64_t *record, uint32_t words)
{
	struct decode_cursor cursor = { .next = record + 2, .end = record + words };
	struct decode_described described = { 0 };
	struct ts_live_device device;

	decode_take(&cursor, &device, sizeof(device));
	described.number = device.number & TS_LIVE_DEVICE_MASK;
	described.memory_bytes = device.memory_bytes;
	for (unsigned int i = 0; i < DEVICE_TEXTS; i++)
		described.texts[i] = decode_take_string(&cursor, &described.lengths[i]);
	return !cursor.bad && decode_describe_device(decoder, area, &described);
}

/* Decodes records that are not events. */
static bool other_record(struct ts_decoder *decoder, struct decode_area *area,
			 struct decode_ring *ring, const struct decode_event *event,
			 uint64_t dropped)
{
	const uint64_t *record = event->record;

	switch (event->kind) {
	case TS_LIVE_PAD:
		return true;
	case TS_LIVE_THREAD:
		return event->words * 8 >= sizeof(struct ts_live_thread_record) &&
		       thread_record(decoder, area, ring,
				     (const struct ts_live_thread_record *)(const void *)record,
				     dropped);
	case TS_LIVE_WINDOW:
		if (event->words * 8 < sizeof(struct ts_live_window_record))
			return false;
		decode_window_record(decoder, area,
				     (const struct ts_live_window_record *)(const void *)record);
		return true;
	case TS_LIVE_THREAD_NAME:
		return !ring->thread ||
		       name_record(decoder, area, ring->thread, record, event->words);
	case TS_LIVE_DEVICE:
		return device_record(decoder, area, record, event->words);
	case TS_LIVE_STREAM_IS:
	case TS_LIVE_DEVICE_CLOCK:
	case TS_LIVE_LOST:
	case TS_LIVE_FACT:
		return decode_accelerator_record(decoder, area, event);
	case TS_LIVE_THREAD_OF:
		return decode_thread_of(decoder, area, event);
	case TS_LIVE_TORCH_TIME:
		return decode_torch_time(decoder, area, ring, event);
	case TS_LIVE_OBJECT:
	case TS_LIVE_GONE:
	case TS_LIVE_COMMAND:
	case TS_LIVE_BLOB:
	case TS_LIVE_SPOOLED:
		ring->is_channel = true;
		return decode_channel_record(decoder, area, ring, event);
	default:
		decode_lose(decoder, ring, LOSS_UNKNOWN_RECORD, 1, decoder->now_ns,
			    decoder->now_ns);
		return true;
	}
}

/* For records without a preceding THREAD record. */
static struct decode_thread *assume_thread(struct ts_decoder *decoder, struct decode_area *area,
					   struct decode_ring *ring)
{
	ring->thread = decode_get_thread(decoder, area, 0, false);
	if (ring->thread)
		know_thread(decoder, area, ring->thread);
	return ring->thread;
}

/* Decodes records. Returns the number of events, stored or counted as lost. */
static uint64_t take_records(struct ts_decoder *decoder, struct decode_area *area,
			     struct decode_ring *ring, const uint64_t *words, size_t count,
			     uint64_t dropped)
{
	uint64_t events = 0, stored = 0;
	struct decode_event event;
	size_t at = 0;

	while (at < count) {
		uint64_t first = words[at];

		event.record = words + at;
		event.words = ts_live_head_words(first);
		event.kind = (uint8_t)ts_live_head_kind(first);
		event.flags = (uint8_t)ts_live_head_flags(first);
		if (TS_UNLIKELY(event.words - 1u >= TS_LIVE_RECORD_WORDS ||
				event.words > count - at ||
				(event.words < 2 && event.kind != TS_LIVE_PAD)))
			break;
		if (TS_UNLIKELY(!ts_live_kind_is_event(event.kind))) {
			if (!other_record(decoder, area, ring, &event, dropped))
				break;
		} else {
			event.ns = decode_time(decoder, area, event.record[1]);
			ring->last_ns = event.ns;
			event.thread = ring->thread;
			if (TS_UNLIKELY(!event.thread))
				event.thread = assume_thread(decoder, area, ring);
			if (TS_UNLIKELY(!event.thread))
				break;
			if (TS_UNLIKELY(event.kind == 0 || event.kind > TS_LIVE_TORCH))
				decode_lose(decoder, ring, LOSS_UNKNOWN_EVENT, 1, event.ns,
					    event.ns);
			else if (TS_UNLIKELY(!take_event(decoder, area, &event)))
				break;
			else if (add_event(decoder, area, ring, &event))
				stored += event.kind != TS_LIVE_SAMPLE;
			events++;
		}
		at += event.words;
	}
	ring->damaged = at < count;
	/* The summary counts only events of programs. */
	if (area->of_recorder)
		decoder->counts.measured += stored;
	else
		decoder->counts.events += stored;
	return events;
}

/* ---- blocks ---- */

/* Advances positions and counts; reports the difference as lost. */
static void account(struct ts_decoder *decoder, struct decode_area *area, struct decode_ring *ring,
		    const struct ts_block *block, uint64_t taken, int64_t before_ns)
{
	enum decode_loss why = area->about && !decoder->is_damaged ? LOSS_OVERWRITTEN
								   : LOSS_JOURNAL;
	uint64_t seen = block->events > ring->events ? block->events - ring->events : 0;
	int64_t now = ring->last_ns ? ring->last_ns : decoder->now_ns;

	if (ring->damaged)
		why = LOSS_DAMAGED;
	else if (block->bytes == 0 && block->from < block->to)
		why = block->flags & TS_RING_WITHHELD ? LOSS_WITHHELD : LOSS_DISCARDED;
	if (why == LOSS_DISCARDED && ring->is_channel)
		decode_channel_cut(decoder, area);
	if (seen > taken)
		decode_lose(decoder, ring, why, seen - taken, before_ns ? before_ns : now, now);
	ring->events = TS_MAX(ring->events, block->events);
	ring->position = TS_MAX(ring->position, block->to);
	settle_dropped(decoder, ring, block->dropped, now);
}

static uint64_t count_events(const struct ts_block *block, const void *payload)
{
	struct ts_records records = { .data = payload, .bytes = block->bytes };

	while (ts_records_walk(&records) == TS_RECORDS_THREAD)
		ts_records_skip(&records);
	return records.events;
}

/*
 * Sets where the ring was before its first block. A ring begins at 0, unless its state at a
 * checkpoint is in a damaged part of the journal. What is before the block is then in the trace, or
 * lost in that part, whose loss row says that nobody knows how much that is.
 */
static void begin_ring(const struct ts_decoder *decoder, const struct decode_area *area,
		       struct decode_ring *ring, const struct ts_block *block, const void *payload)
{
	ring->is_known = true;
	if (!decode_has_lost_state(decoder, area))
		return;
	ring->position = block->from;
	ring->events = block->events - TS_MIN(block->events, count_events(block, payload));
	ring->dropped = block->dropped;
}

int decode_ring_block(struct ts_decoder *decoder, struct decode_area *area,
		      const struct ts_block *block, const uint64_t *words)
{
	struct decode_ring *ring = decode_get_ring(decoder, area, block->ring);
	int64_t before_ns;
	uint64_t taken = 0;

	/* The recorder took these, as the live area says, and the journal does not have them. */
	if (ring && !ring->is_known && block->flags & TS_RING_START && block->to &&
	    decoder->is_damaged)
		decode_lose_unknown(decoder, area);
	if (ring && !ring->is_known)
		begin_ring(decoder, area, ring, block, words);
	/* Do not decode bytes twice. */
	if (!ring || block->to < ring->position || (block->bytes && block->from < ring->position)) {
		decoder->damaged_blocks++;
		return TS_OK;
	}
	/* Another recording has everything before, and has reported its losses. */
	if (block->flags & TS_RING_START) {
		ring->position = block->to;
		ring->events = TS_MAX(ring->events, block->events);
		ring->dropped = TS_MAX(ring->dropped, block->dropped);
	}
	before_ns = ring->last_ns;
	if (block->bytes && !ring->damaged && area->about) {
		if (ring->thread)
			know_thread(decoder, area, ring->thread);
		taken = take_records(decoder, area, ring, words, block->bytes / 8, block->dropped);
		if (ring->damaged)
			decode_loss_row(decoder, area->process, 0, "rings",
					"the ring is damaged: the rest of it is skipped", 1,
					ring->last_ns, ring->last_ns);
	}
	account(decoder, area, ring, block, taken, before_ns);
	return TS_OK;
}
