/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain JSON array of Chrome events, for programs that support only name, cat, ph, ts, dur, pid,
 * tid and args: names of processes and threads (M), spans (X), instants (i) and counters (C).
 * Everything else is left out; pid and tid are those of the trace, even if two threads share them.
 * Memory does not grow with the trace.
 */
#include <string.h>

#include "base/memory.h"
#include "export/chrome/chrome_export.h"
#include "export/common/export_losses.h"
#include "export/export.h"

/* A row being written. */
struct event {
	struct ts_chrome_export *x;
	struct ts_row row;
};

static void put_key(struct event *event, const char *key)
{
	ts_text_append_char(&event->x->out, ',');
	ts_text_append_json(&event->x->out, key, strlen(key));
	ts_text_append_char(&event->x->out, ':');
}

static void put_us(struct event *event, const char *key, int64_t ns)
{
	put_key(event, key);
	ts_text_append_us(&event->x->out, ns);
}

/* A pid or tid: a number, the text of a source without numbers, or 0. */
static void put_id(struct event *event, const char *key, int64_t number, int64_t text)
{
	put_key(event, key);
	if (text)
		ts_json_row_string(event->x->reader, &event->x->out, text);
	else
		ts_text_append_int(&event->x->out, number == TS_ABSENT ? 0 : number);
}

static void put_process(struct event *event, int64_t id)
{
	const struct ts_process_row *process =
		ts_reader_entity(event->x->reader, TS_TABLE_PROCESS, id);

	put_id(event, "pid", process ? process->pid : 0, process ? process->pid_text : 0);
}

static void put_thread(struct event *event, int64_t id)
{
	const struct ts_thread_row *thread =
		ts_reader_entity(event->x->reader, TS_TABLE_THREAD, id);

	put_process(event, thread ? thread->process : 0);
	put_id(event, "tid", thread ? thread->tid : 0, thread ? thread->tid_text : 0);
}

/* Below the process whose row shows the stream, if any; else below the process itself. */
static void put_stream(struct event *event, int64_t process, int64_t id)
{
	const struct ts_stream_row *stream =
		ts_reader_entity(event->x->reader, TS_TABLE_STREAM, id);

	if (stream && stream->thread) {
		put_thread(event, stream->thread);
		return;
	}
	put_process(event, process);
	put_id(event, "tid", stream ? stream->number : 0, 0);
}

/* What stands behind the name. */
static void put_category(struct event *event, int64_t category, const char *phase, int64_t start)
{
	int64_t relative;

	put_key(event, "cat");
	ts_json_row_string(event->x->reader, &event->x->out, category);
	ts_text_printf(&event->x->out, ",\"ph\":\"%s\"", phase);
	/* Overflows only in crafted traces. */
	if (__builtin_sub_overflow(start, event->x->base_ns, &relative))
		relative = start;
	put_us(event, "ts", relative);
}

static void put_head(struct event *event, int64_t name, int64_t category, const char *phase,
		     int64_t start)
{
	ts_chrome_begin_event(event->x);
	ts_text_append_str(&event->x->out, "\"name\":");
	ts_json_row_string(event->x->reader, &event->x->out, name);
	put_category(event, category, phase, start);
}

/* Arguments, if any, and the end. */
static void put_tail(struct event *event)
{
	struct ts_text *out = &event->x->out;
	size_t before = out->length;

	ts_text_append_str(out, ",\"args\":{");
	if (ts_json_row_fields(event->x->reader, out, &event->row, 0))
		ts_json_row_close(out, '}');
	else
		out->length = before;
	ts_text_append_char(out, '}');
}

/* A span without an end becomes a begin event, as in Chrome. */
static void put_span(struct event *event, int64_t name, int64_t category, int64_t start,
		     int64_t duration)
{
	put_head(event, name, category, duration < 0 ? "B" : "X", start);
	if (duration >= 0)
		put_us(event, "dur", duration);
}

static void put_slice(struct event *event)
{
	const struct ts_slice_row *slice = (const void *)event->row.columns;

	put_span(event, slice->name, slice->category, slice->start, slice->duration);
	put_thread(event, slice->thread);
}

static void put_api_call(struct event *event)
{
	const struct ts_api_call_row *call = (const void *)event->row.columns;

	put_span(event, call->name, call->category, call->start, call->duration);
	put_thread(event, call->thread);
}

static void put_gpu_op(struct event *event)
{
	const struct ts_gpu_op_row *op = (const void *)event->row.columns;

	put_span(event, op->name, op->category, op->start, op->duration);
	put_stream(event, op->process, op->stream);
}

static void put_counter(struct event *event)
{
	const struct ts_counter_row *counter = (const void *)event->row.columns;

	ts_chrome_begin_event(event->x);
	ts_text_append_str(&event->x->out, "\"name\":");
	ts_chrome_put_counter_name(event->x, counter);
	put_category(event, counter->category, "C", counter->start);
	if (counter->thread || !counter->process) {
		put_thread(event, counter->thread);
		return;
	}
	put_process(event, counter->process);
	put_id(event, "tid", 0, 0);
}

static void put_mark(struct event *event)
{
	const struct ts_mark_row *mark = (const void *)event->row.columns;

	put_head(event, mark->name, mark->category, "i", mark->start);
	put_thread(event, mark->thread);
}

/* "process_name" of a process, "thread_name" of a thread; the last one of a pid and tid counts. */
static void put_name(struct ts_chrome_export *x, const char *what, int64_t process, int64_t thread,
		     int64_t name)
{
	struct event event = { .x = x };

	if (!name)
		return;
	ts_chrome_begin_event(x);
	ts_text_printf(&x->out, "\"name\":\"%s\",\"cat\":\"__metadata\",\"ph\":\"M\",\"ts\":0.000",
		       what);
	if (thread) {
		put_thread(&event, thread);
	} else {
		put_process(&event, process);
		put_id(&event, "tid", 0, 0);
	}
	ts_text_append_str(&x->out, ",\"args\":{\"name\":");
	ts_json_row_string(x->reader, &x->out, name);
	ts_text_append_str(&x->out, "}}");
}

static int put_names(struct ts_chrome_export *x)
{
	const struct ts_process_row *process;
	const struct ts_thread_row *thread;
	size_t cursor = 0;
	int64_t id;

	while ((process = ts_reader_entity_next(x->reader, TS_TABLE_PROCESS, &cursor, &id))) {
		put_name(x, "process_name", id, 0, process->name);
		if (ts_chrome_flush(x, TS_CHROME_FLUSH_BYTES))
			return x->err->code;
	}
	cursor = 0;
	while ((thread = ts_reader_entity_next(x->reader, TS_TABLE_THREAD, &cursor, &id))) {
		put_name(x, "thread_name", 0, id, thread->name);
		if (ts_chrome_flush(x, TS_CHROME_FLUSH_BYTES))
			return x->err->code;
	}
	return TS_OK;
}

static void (*const puts_of[TS_TABLE_COUNT])(struct event *event) = {
	[TS_TABLE_SLICE] = put_slice,   [TS_TABLE_API_CALL] = put_api_call,
	[TS_TABLE_GPU_OP] = put_gpu_op, [TS_TABLE_COUNTER] = put_counter,
	[TS_TABLE_MARK] = put_mark,
};

static bool is_written(uint32_t table)
{
	return table < TS_TABLE_COUNT && puts_of[table];
}

static int put_chunk(struct ts_chrome_export *x, struct ts_batch *batch, size_t chunk)
{
	int result = ts_batch_read(batch, chunk, TS_MASK_ALL, x->err);

	for (uint32_t row = 0; !result && row < batch->rows; row++) {
		int64_t columns[TS_MAX_COLUMNS];
		struct event event = { .x = x,
				       .row = { .table = batch->table, .columns = columns } };

		ts_batch_row(batch, row, columns);
		if (batch->arg_offsets)
			event.row.values = batch->arg_values + batch->arg_offsets[row];
		puts_of[batch->table->id](&event);
		put_tail(&event);
		result = ts_chrome_flush(x, TS_CHROME_FLUSH_BYTES);
	}
	/* No row is referenced any more. */
	ts_reader_trim(x->reader, TS_CHROME_TEXT_BYTES);
	return result;
}

static int put_chunks(struct ts_chrome_export *x)
{
	struct ts_batch *batch = NULL;
	int result = ts_batch_new(&batch, x->reader, x->err);

	for (size_t i = 0; !result && i < ts_reader_chunk_count(x->reader); i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(x->reader, i);

		if (x->options->progress &&
		    x->options->progress(x->options->context, chunk->offset,
					 ts_reader_state(x->reader)->file_bytes))
			result = ts_error_set(x->err, TS_ECANCELED, "interrupted");
		else if (is_written(chunk->table))
			result = put_chunk(x, batch, i);
	}
	ts_batch_free(batch);
	return result;
}

static void report_left_out(const struct ts_chrome_export *x)
{
	uint64_t written = 0;

	for (unsigned int table = 0; table < TS_TABLE_COUNT; table++)
		if (is_written(table))
			written |= TS_TABLE_SET(table);
	ts_left_out_tables(x->options, x->reader, written);
}

static int put_file(struct ts_chrome_export *x)
{
	int result = ts_chrome_choose_base(x);

	if (!result)
		result = ts_chrome_devices_init(x);
	if (result)
		return result;
	ts_text_append_char(&x->out, '[');
	result = put_names(x);
	if (!result)
		result = put_chunks(x);
	if (result)
		return result;
	ts_text_append_str(&x->out, "\n]\n");
	result = ts_chrome_flush(x, 0);
	if (!result)
		report_left_out(x);
	return result;
}

int ts_export_chrome_array(struct ts_reader *reader, int fd,
			   const struct ts_export_options *options, struct ts_error *err)
{
	return ts_chrome_write(reader, fd, options, put_file, err);
}
