/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns entries and exits of threads into slices, and events into marks. An exit belongs to the
 * innermost open call of its function: calls nested in it ended without an exit (an exception,
 * longjmp).
 */
#include <stdlib.h>

#include "import/xray/xray.h"

/*
 * An exit of a function that is not open is searched in all open calls, which a crafted file could
 * make quadratic: beyond this many steps per record only the innermost calls are searched.
 */
#define SEARCH_STEPS 64u
#define SEARCH_FREE (1u << 20)

static const struct ts_loss_kind loss_entry = {
	.what = "slice",
	.one = "entry without exit (kept as a mark)",
	.many = "entries whose exits are in the log (kept as marks)"
};
static const struct ts_loss_kind loss_argument = {
	.what = "argument",
	.one = "argument without a call, or too many",
	.many = "arguments without a call, or too many"
};

/* ---- threads ---- */

struct ts_xray_thread *ts_xray_thread(struct ts_xray *x, int64_t pid, int64_t tid)
{
	struct ts_xray_thread *thread;
	int64_t process;
	bool is_new;
	uint64_t *index =
		ts_pairmap_insert(&x->thread_by_id, (uint64_t)pid, (uint64_t)tid, &is_new);

	if (!index)
		return NULL;
	if (!is_new)
		return &x->threads[*index];
	*index = x->thread_count;
	if (ts_grow_array((void **)&x->threads, &x->thread_capacity, x->thread_count + 1,
			  sizeof(*x->threads)))
		return NULL;
	thread = &x->threads[x->thread_count];
	*thread = (struct ts_xray_thread){ .id = 0 };
	process = ts_entities_process(&x->entities, pid);
	if (process)
		thread->id = ts_entities_thread(&x->entities, process, (uint64_t)tid, tid);
	if (!thread->id)
		return NULL;
	x->thread_count++;
	return thread;
}

/* ---- shapes, each made when first needed ---- */

static struct ts_field field(struct ts_xray *x, const char *key, enum ts_arg_type type)
{
	return (struct ts_field){ .key = ts_writer_string(x->writer, key, strlen(key)),
				  .type = (uint8_t)type };
}

static uint32_t make_shape(struct ts_xray *x, uint32_t details, uint32_t arg_count)
{
	struct ts_field fields[5 + TS_XRAY_MAX_ARGS + 1];
	uint32_t count = 0;

	fields[count++] = field(x, "cpu", TS_ARG_INT);
	if (details & TS_XRAY_HAS_EXIT_CPU)
		fields[count++] = field(x, "exit_cpu", TS_ARG_INT);
	if (details & TS_XRAY_IS_TAIL_EXIT)
		fields[count++] = field(x, "tail_exit", TS_ARG_BOOL);
	if (details & TS_XRAY_IS_UNWOUND)
		fields[count++] = field(x, "no_exit", TS_ARG_BOOL);
	if (details & TS_XRAY_HAS_ENTRY_ORDER)
		fields[count++] = field(x, "entry_order", TS_ARG_INT);
	if (details & TS_XRAY_HAS_EXIT_ORDER)
		fields[count++] = field(x, "exit_order", TS_ARG_INT);
	for (uint32_t i = 0; i < arg_count; i++) {
		char key[8] = "arg0";

		if (i >= 10)
			memcpy(key + 3, (char[]){ '1', (char)('0' + i - 10), '\0' }, 3);
		else
			key[3] = (char)('0' + i);
		fields[count++] = field(x, key, TS_ARG_INT);
	}
	x->shapes[details][arg_count] = ts_writer_shape(x->writer, fields, count);
	return x->shapes[details][arg_count];
}

static uint32_t new_mark_shape(struct ts_xray *x, bool is_typed, unsigned int data)
{
	struct ts_field fields[4];
	uint32_t count = 0;

	fields[count++] = field(x, "cpu", TS_ARG_INT);
	fields[count++] = field(x, "order", TS_ARG_INT);
	if (is_typed)
		fields[count++] = field(x, "type", TS_ARG_INT);
	if (data)
		fields[count++] = field(x, data == 1 ? "data" : "data_hex", TS_ARG_STRING);
	return ts_writer_shape(x->writer, fields, count);
}

static uint32_t mark_shape(struct ts_xray *x, bool is_typed, unsigned int data)
{
	if (!x->mark_shapes[is_typed][data])
		x->mark_shapes[is_typed][data] = new_mark_shape(x, is_typed, data);
	return x->mark_shapes[is_typed][data];
}

/* ---- rows ---- */

static int add_slice(struct ts_xray *x, const struct ts_xray_thread *thread,
		     const struct ts_xray_held *held)
{
	struct ts_slice_row row = ts_slice_none;
	int64_t values[6 + TS_XRAY_MAX_ARGS];
	uint32_t name, count = 0, details = held->details;
	int rc = ts_xray_name(x, held->call.function, &name);

	if (TS_UNLIKELY(rc))
		return rc;
	values[count++] = held->call.cpu;
	if (details & TS_XRAY_HAS_EXIT_CPU)
		values[count++] = held->exit_cpu;
	if (details & TS_XRAY_IS_TAIL_EXIT)
		values[count++] = 1;
	if (details & TS_XRAY_IS_UNWOUND)
		values[count++] = 1;
	if (details & TS_XRAY_HAS_ENTRY_ORDER)
		values[count++] = (int64_t)held->call.order;
	if (details & TS_XRAY_HAS_EXIT_ORDER)
		values[count++] = (int64_t)held->exit_order;
	for (uint32_t i = 0; i < held->call.arg_count; i++)
		values[count++] = (int64_t)held->args[i];
	row.start = held->call.start;
	row.duration = held->duration;
	row.thread = thread->id;
	row.name = name;
	row.category = x->category;
	row.shape = x->shapes[details][held->call.arg_count];
	if (TS_UNLIKELY(!row.shape))
		row.shape = make_shape(x, details, held->call.arg_count);
	x->import->result.events++;
	if (TS_UNLIKELY(ts_writer_add(x->writer, TS_TABLE_SLICE, &row, values)))
		return ts_writer_status(x->writer, x->err);
	return TS_OK;
}

static inline int release_held(struct ts_xray *x, struct ts_xray_thread *thread)
{
	if (!thread->held.is_present)
		return TS_OK;
	thread->held.is_present = false;
	return add_slice(x, thread, &thread->held);
}

static int add_mark(struct ts_xray *x, const struct ts_xray_thread *thread, struct ts_mark_row *row,
		    const int64_t *values)
{
	row->thread = thread->id;
	row->scope = TS_SCOPE_THREAD;
	x->import->result.events++;
	ts_writer_add(x->writer, TS_TABLE_MARK, row, values);
	return ts_writer_status(x->writer, x->err);
}

/* ---- calls ---- */

/* Pops the innermost open call. */
static void pop(struct ts_xray_thread *thread, struct ts_xray_held *ret_held)
{
	struct ts_xray_call *call = &thread->calls[--thread->call_count];

	ret_held->call = *call;
	ret_held->details = call->is_tied ? TS_XRAY_HAS_ENTRY_ORDER : 0;
	thread->arg_count -= call->arg_count;
	if (TS_UNLIKELY(call->arg_count))
		memcpy(ret_held->args, thread->args + thread->arg_count,
		       call->arg_count * sizeof(*ret_held->args));
}

static int64_t duration_until(const struct ts_xray_call *call, int64_t end)
{
	return end > call->start ? end - call->start : 0;
}

/* Index of the innermost open call of a function; call_count: none. */
static size_t find_open(struct ts_xray *x, const struct ts_xray_thread *thread, uint32_t function)
{
	size_t count = thread->call_count, lowest = 0;

	if (TS_LIKELY(count && thread->calls[count - 1].function == function))
		return count - 1;
	if (x->searched > SEARCH_FREE + SEARCH_STEPS * x->records && count > SEARCH_STEPS)
		lowest = count - SEARCH_STEPS;
	for (size_t i = count; i > lowest; i--)
		if (thread->calls[i - 1].function == function)
			return i - 1;
	x->searched += count - lowest;
	return count;
}

static int enter(struct ts_xray *x, struct ts_xray_thread *thread, uint32_t function, uint16_t cpu,
		 int64_t time, uint64_t order, bool is_tied)
{
	if (TS_UNLIKELY(thread->call_count == thread->call_capacity) &&
	    ts_grow_array((void **)&thread->calls, &thread->call_capacity, thread->call_count + 1,
			  sizeof(*thread->calls)))
		return ts_xray_out_of_memory(x);
	thread->calls[thread->call_count++] = (struct ts_xray_call){
		.start = time, .order = order, .function = function, .cpu = cpu, .is_tied = is_tied
	};
	thread->last = TS_XRAY_LAST_ENTRY;
	return TS_OK;
}

/* An exit without its entry: from before the log began, or from a reused buffer. */
static int add_lone_exit(struct ts_xray *x, struct ts_xray_thread *thread, uint32_t function,
			 uint16_t cpu, int64_t time, uint64_t order)
{
	struct ts_mark_row row = ts_mark_none;
	int64_t values[2] = { cpu, (int64_t)order };
	uint32_t name;
	int rc = ts_xray_name(x, function, &name);

	if (rc)
		return rc;
	ts_entities_add_loss(&x->entities, &loss_entry, 1);
	row.start = time;
	row.name = name;
	row.category = ts_writer_string(x->writer, "exit without entry", 18);
	row.shape = mark_shape(x, false, 0);
	thread->last = TS_XRAY_LAST_MARK;
	return add_mark(x, thread, &row, values);
}

static int leave(struct ts_xray *x, struct ts_xray_thread *thread, unsigned int kind,
		 uint32_t function, uint16_t cpu, int64_t time, uint64_t order, bool is_tied)
{
	struct ts_xray_held *held = &thread->held;
	size_t slot = find_open(x, thread, function);
	int rc = TS_OK;

	if (TS_UNLIKELY(slot == thread->call_count))
		return add_lone_exit(x, thread, function, cpu, time, order);
	/* Nested calls ended by now at the latest. */
	while (TS_UNLIKELY(thread->call_count > slot + 1) && !rc) {
		pop(thread, held);
		held->details |= TS_XRAY_IS_UNWOUND;
		held->duration = duration_until(&held->call, time);
		rc = add_slice(x, thread, held);
	}
	if (rc)
		return rc;
	pop(thread, held);
	if (is_tied || held->details)
		held->details = TS_XRAY_HAS_ENTRY_ORDER | TS_XRAY_HAS_EXIT_ORDER;
	if (kind == TS_XRAY_TAIL_EXIT)
		held->details |= TS_XRAY_IS_TAIL_EXIT;
	if (cpu != held->call.cpu)
		held->details |= TS_XRAY_HAS_EXIT_CPU;
	held->exit_cpu = cpu;
	held->exit_order = order;
	held->duration = duration_until(&held->call, time);
	held->is_present = true;
	thread->last = TS_XRAY_LAST_EXIT;
	return TS_OK;
}

/*
 * For records with equal times only their order in the log tells which came first, and row order
 * does not: slices that start or end at such a record note its position. Returns whether the coming
 * record is one.
 */
static bool note_tie(struct ts_xray_thread *thread, int64_t time)
{
	bool is_tied = thread->last != TS_XRAY_LAST_NONE && time <= thread->last_time;

	if (TS_UNLIKELY(is_tied)) {
		if (thread->last == TS_XRAY_LAST_ENTRY)
			thread->calls[thread->call_count - 1].is_tied = true;
		else if (thread->last == TS_XRAY_LAST_EXIT)
			thread->held.details |= TS_XRAY_HAS_ENTRY_ORDER | TS_XRAY_HAS_EXIT_ORDER;
	}
	thread->last_time = time;
	return is_tied;
}

/* First step for every record: false, with last NONE, if it has no time. */
static bool take_time(struct ts_xray *x, struct ts_xray_thread *thread, uint64_t tsc,
		      int64_t *ret_time, bool *ret_is_tied)
{
	x->records++;
	if (TS_UNLIKELY(!ts_xray_time(x, tsc, ret_time))) {
		thread->last = TS_XRAY_LAST_NONE;
		return false;
	}
	x->entities.time = *ret_time;
	*ret_is_tied = note_tie(thread, *ret_time);
	return true;
}

int ts_xray_function(struct ts_xray *x, struct ts_xray_thread *thread, unsigned int kind,
		     uint32_t function, uint16_t cpu, uint64_t tsc)
{
	uint64_t order = thread->order++;
	int64_t time;
	bool is_tied;
	int rc;

	if (TS_UNLIKELY(!take_time(x, thread, tsc, &time, &is_tied)))
		return TS_OK;
	rc = release_held(x, thread);
	if (TS_UNLIKELY(rc))
		return rc;
	if (kind == TS_XRAY_ENTRY || kind == TS_XRAY_ENTRY_ARG)
		return enter(x, thread, function, cpu, time, order, is_tied);
	return leave(x, thread, kind, function, cpu, time, order, is_tied);
}

int ts_xray_argument(struct ts_xray *x, struct ts_xray_thread *thread, uint64_t value)
{
	struct ts_xray_call *call = NULL;

	if (thread->last == TS_XRAY_LAST_ENTRY)
		call = &thread->calls[thread->call_count - 1];
	if (!call || call->arg_count == TS_XRAY_MAX_ARGS) {
		ts_entities_add_loss(&x->entities, &loss_argument, 1);
		return TS_OK;
	}
	if (ts_grow_array((void **)&thread->args, &thread->arg_capacity, thread->arg_count + 1,
			  sizeof(*thread->args)))
		return ts_xray_out_of_memory(x);
	thread->args[thread->arg_count++] = value;
	call->arg_count++;
	return TS_OK;
}

/* ---- events ---- */

static bool is_printable(const char *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		unsigned char c = (unsigned char)data[i];

		if ((c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 0x7f)
			return false;
	}
	return ts_utf8_valid(data, bytes);
}

static uint32_t hex_string(struct ts_xray *x, const char *data, size_t bytes)
{
	static const char digits[] = "0123456789abcdef";

	ts_text_clear(&x->payload);
	for (size_t i = 0; i < bytes; i++) {
		ts_text_append_char(&x->payload, digits[(uint8_t)data[i] >> 4]);
		ts_text_append_char(&x->payload, digits[(uint8_t)data[i] & 15]);
	}
	if (ts_text_status(&x->payload))
		return 0;
	return ts_writer_string(x->writer, x->payload.data, x->payload.length);
}

int ts_xray_event(struct ts_xray *x, struct ts_xray_thread *thread, int32_t type, uint16_t cpu,
		  uint64_t tsc, const char *data, size_t bytes)
{
	bool is_typed = type >= 0, is_text = is_printable(data, bytes), is_tied;
	const char *name = is_typed ? "typed event" : "custom event";
	uint64_t order = thread->order++;
	struct ts_mark_row row = ts_mark_none;
	int64_t values[4];
	uint32_t count = 0, text;
	int rc;

	if (!take_time(x, thread, tsc, &row.start, &is_tied))
		return TS_OK;
	rc = release_held(x, thread);
	if (rc)
		return rc;
	thread->last = TS_XRAY_LAST_MARK;
	text = is_text ? ts_writer_string(x->writer, data, bytes) : hex_string(x, data, bytes);
	if (!text)
		return ts_writer_status(x->writer, x->err) ? ts_writer_status(x->writer, x->err)
							   : ts_xray_out_of_memory(x);
	values[count++] = cpu;
	values[count++] = (int64_t)order;
	if (is_typed)
		values[count++] = type;
	values[count++] = text;
	row.name = ts_writer_string(x->writer, name, strlen(name));
	row.category = x->category;
	row.shape = mark_shape(x, is_typed, is_text ? 1 : 2);
	return add_mark(x, thread, &row, values);
}

/* ---- the end ---- */

int ts_xray_break(struct ts_xray *x, struct ts_xray_thread *thread)
{
	int rc = release_held(x, thread);

	while (!rc && thread->call_count) {
		pop(thread, &thread->held);
		thread->held.duration = -1;
		rc = add_slice(x, thread, &thread->held);
	}
	thread->last = TS_XRAY_LAST_NONE;
	return rc;
}

int ts_xray_end(struct ts_xray *x)
{
	int rc = TS_OK;

	for (size_t i = 0; i < x->thread_count && !rc; i++)
		rc = ts_xray_break(x, &x->threads[i]);
	return rc;
}

void ts_xray_calls_release(struct ts_xray *x)
{
	for (size_t i = 0; i < x->thread_count; i++) {
		free(x->threads[i].calls);
		free(x->threads[i].args);
	}
	free(x->threads);
	ts_pairmap_release(&x->thread_by_id);
}
