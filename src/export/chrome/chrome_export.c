/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chrome trace-event JSON: header members, then all chunks in file order. Memory does not grow with
 * the trace.
 */
#include "export/chrome/chrome_export.h"

#include <string.h>

#include "base/io.h"
#include "base/memory.h"
#include "export/export.h"
#include "model/clockmap.h"
#include "trace/stack_lists.h"

/* Tables stored in the "tracesmith" member, in an order without forward references. */
static const enum ts_table_id head_tables[] = {
	TS_TABLE_SOURCE, TS_TABLE_HOST,    TS_TABLE_PROCESS,    TS_TABLE_THREAD, TS_TABLE_DEVICE,
	TS_TABLE_STREAM, TS_TABLE_MAPPING, TS_TABLE_CLOCK_SYNC, TS_TABLE_META,
};

int ts_chrome_flush(struct ts_chrome_export *x, size_t unless_below)
{
	int result;

	if (ts_text_status(&x->out))
		return ts_error_set(x->err, TS_ENOMEM, "no memory");
	if (x->out.length < unless_below)
		return TS_OK;
	result = ts_write_all(x->fd, x->out.data, x->out.length, x->err);
	ts_text_clear(&x->out);
	return result;
}

/* ---- the "tracesmith" member ---- */

static void put_head_row(struct ts_chrome_export *x, const struct ts_table_info *info, int64_t id,
			 const int64_t *columns)
{
	struct ts_row row = { .table = info, .columns = columns };
	const struct ts_chrome_track *track = NULL;

	ts_text_append_str(&x->out, "\n{");
	if (info->kind == TS_KIND_DICTIONARY)
		ts_text_printf(&x->out, "\"id\":%lld,", (long long)id);
	ts_json_row_columns(x->reader, &x->out, &row, TS_MASK_ALL);
	if (info->id == TS_TABLE_THREAD)
		track = ts_chrome_track_of_thread(x, id);
	else if (info->id == TS_TABLE_STREAM &&
		 !ts_chrome_track_of_thread(x, columns[TS_COLUMN_OF(stream, thread)]))
		track = ts_chrome_track_of_stream(x, id);
	if (track) {
		ts_text_append_str(&x->out, "\"chrome\":[");
		ts_chrome_put_number(x, &track->pid);
		ts_text_append_char(&x->out, ',');
		ts_chrome_put_number(x, &track->tid);
		ts_text_append_str(&x->out, "],");
	}
	ts_json_row_close(&x->out, '}');
	ts_text_append_char(&x->out, ',');
}

/* Rows of a table without ids, chunk by chunk. */
static int put_record_table(struct ts_chrome_export *x, const struct ts_table_info *info)
{
	struct ts_batch *batch;
	int result = ts_batch_new(&batch, x->reader, x->err);

	for (size_t i = 0; !result && i < ts_reader_chunk_count(x->reader); i++) {
		if (ts_reader_chunk(x->reader, i)->table != info->id)
			continue;
		result = ts_batch_read(batch, i, TS_MASK_ALL, x->err);
		for (uint32_t row = 0; !result && row < batch->rows; row++) {
			int64_t columns[TS_MAX_COLUMNS];

			ts_batch_row(batch, row, columns);
			put_head_row(x, info, 0, columns);
			result = ts_chrome_flush(x, TS_CHROME_FLUSH_BYTES);
		}
	}
	ts_batch_free(batch);
	return result;
}

static int put_head_table(struct ts_chrome_export *x, const struct ts_table_info *info)
{
	const int64_t *columns;
	size_t cursor = 0;
	int64_t id;

	ts_text_printf(&x->out, "\n\"%s\":[", info->name);
	if (info->kind == TS_KIND_RECORD) {
		int result = put_record_table(x, info);

		if (result)
			return result;
	}
	while ((columns = ts_reader_entity_next(x->reader, info->id, &cursor, &id))) {
		put_head_row(x, info, id, columns);
		if (ts_chrome_flush(x, TS_CHROME_FLUSH_BYTES))
			return x->err->code;
	}
	ts_json_row_close(&x->out, ']');
	ts_text_append_char(&x->out, ',');
	return TS_OK;
}

static int put_head(struct ts_chrome_export *x)
{
	ts_text_append_str(&x->out, "{\"tracesmith\":{\"format\":1,\"rows\":{");
	for (size_t i = 0; i < TS_ARRAY_SIZE(head_tables); i++) {
		const struct ts_table_info *info = ts_table_info(head_tables[i]);
		int result;

		if (ts_reader_rows(x->reader, head_tables[i]) == 0)
			continue;
		result = put_head_table(x, info);
		if (result)
			return result;
	}
	ts_json_row_close(&x->out, '}');
	ts_text_append_str(&x->out, "},\n");
	return TS_OK;
}

/* ---- what viewers and other tools look at ---- */

static bool is_reserved_key(struct ts_string key)
{
	static const char *const reserved[] = { "tracesmith", "traceEvents", "baseTimeNanoseconds",
						"stackFrames", "samples" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(reserved); i++)
		if (strlen(reserved[i]) == key.length &&
		    memcmp(reserved[i], key.data, key.length) == 0)
			return true;
	return false;
}

/* Facts about the first source as top-level members, where HTA and others expect them. */
static int put_meta(struct ts_chrome_export *x)
{
	struct ts_batch *batch;
	int64_t source = TS_ABSENT;
	int result = ts_batch_new(&batch, x->reader, x->err);

	for (size_t i = 0; !result && i < ts_reader_chunk_count(x->reader); i++) {
		if (ts_reader_chunk(x->reader, i)->table != TS_TABLE_META)
			continue;
		result = ts_batch_read(batch, i, TS_MASK_ALL, x->err);
		for (uint32_t row = 0; !result && row < batch->rows; row++) {
			struct ts_meta_row meta;

			ts_batch_row(batch, row, &meta);
			if (meta.process || meta.thread ||
			    (source != TS_ABSENT && meta.source != source) ||
			    is_reserved_key(ts_reader_string(x->reader, meta.key)))
				continue;
			source = meta.source;
			ts_json_row_string(x->reader, &x->out, meta.key);
			ts_text_append_char(&x->out, ':');
			ts_json_row_raw(x->reader, &x->out, meta.value);
			ts_text_append_str(&x->out, ",\n");
			result = ts_chrome_flush(x, TS_CHROME_FLUSH_BYTES);
		}
	}
	ts_batch_free(batch);
	return result;
}

/* Native frames symbolized later, or without a name: for viewers only; our importer skips them. */
static void put_found_name(struct ts_chrome_export *x, int64_t frame)
{
	uint32_t depths = ts_frame_function_count(x->reader, frame);
	TS_SCOPED(ts_text) name = { 0 };

	for (uint32_t i = 0; i < depths; i++) {
		ts_text_append_str(&name, i ? " < " : "");
		ts_frame_append_function(x->reader, &name, ts_frame_at_depth(frame, i));
	}
	ts_text_append_str(&x->out, "\"name\":");
	ts_text_append_json(&x->out, name.data, name.length);
	ts_text_append_str(&x->out, ",\"unnamed\":1,");
}

static void put_frame(struct ts_chrome_export *x, int64_t id, const struct ts_stack_row *stack,
		      bool has_symbols)
{
	const struct ts_frame_row *frame =
		ts_reader_entity(x->reader, TS_TABLE_FRAME, stack->frame);
	struct ts_row row = { .table = ts_table_info(TS_TABLE_FRAME),
			      .columns = (const int64_t *)(frame ? frame : &ts_frame_none) };

	ts_text_printf(&x->out, "\n\"%lld\":{", (long long)id);
	if (frame && !frame->name && frame->mapping)
		put_found_name(x, stack->frame);
	else if (!frame || !frame->name)
		ts_text_append_str(&x->out, frame ? "\"name\":\"\"," : "\"name\":\"(lost)\",");
	ts_json_row_columns(x->reader, &x->out, &row, TS_MASK_ALL);
	if (stack->parent)
		ts_text_printf(&x->out, "\"parent\":\"%lld\",", (long long)stack->parent);
	/* Symbols refer to frames by id. */
	if (has_symbols)
		ts_text_printf(&x->out, "\"frame\":%lld,", (long long)stack->frame);
	ts_json_row_close(&x->out, '}');
	ts_text_append_char(&x->out, ',');
}

static int put_stack_frames(struct ts_chrome_export *x)
{
	bool has_symbols = ts_reader_rows(x->reader, TS_TABLE_SYMBOL) != 0;
	const struct ts_stack_row *stack;
	size_t cursor = 0;
	int64_t id;

	if (ts_reader_rows(x->reader, TS_TABLE_STACK) == 0)
		return TS_OK;
	ts_text_append_str(&x->out, "\"stackFrames\":{");
	while ((stack = ts_reader_entity_next(x->reader, TS_TABLE_STACK, &cursor, &id))) {
		put_frame(x, id, stack, has_symbols);
		if (ts_chrome_flush(x, TS_CHROME_FLUSH_BYTES))
			return x->err->code;
	}
	ts_json_row_close(&x->out, '}');
	ts_text_append_str(&x->out, ",\n");
	return TS_OK;
}

/* A metadata event that names a process or thread. */
static void put_name(struct ts_chrome_export *x, const char *event,
		     const struct ts_chrome_track *track, const char *key)
{
	ts_chrome_begin_event(x);
	ts_text_printf(&x->out, "\"ph\":\"M\",\"name\":\"%s\",", event);
	ts_chrome_put_track(x, track);
	ts_text_printf(&x->out, "\"args\":{\"%s\":", key);
}

static void put_named(struct ts_chrome_export *x, const char *event,
		      const struct ts_chrome_track *track, const char *key, int64_t string)
{
	if (!string)
		return;
	put_name(x, event, track, key);
	ts_json_row_string(x->reader, &x->out, string);
	ts_text_append_str(&x->out, "}}");
}

static void put_sorted(struct ts_chrome_export *x, const char *event,
		       const struct ts_chrome_track *track, int64_t sort_index)
{
	if (sort_index == TS_ABSENT)
		return;
	put_name(x, event, track, "sort_index");
	ts_text_append_int(&x->out, sort_index);
	ts_text_append_str(&x->out, "}}");
}

/* With several ranks in one file, the name includes the rank of a process. */
static void put_process_name(struct ts_chrome_export *x, const struct ts_process_row *process,
			     const struct ts_chrome_track *track)
{
	const struct ts_source_row *source =
		ts_reader_entity(x->reader, TS_TABLE_SOURCE, process->source);
	struct ts_string name =
		ts_reader_string(x->reader, process->name ? process->name : process->pid_text);

	if (ts_map_count(&x->tracks.sources) < 2 || !source) {
		put_named(x, "process_name", track, "name", process->name);
		return;
	}
	put_name(x, "process_name", track, "name");
	ts_text_append_char(&x->out, '"');
	ts_text_append_json_bare(&x->out, name.data, name.length);
	if (source->rank != TS_ABSENT)
		ts_text_printf(&x->out, " (rank %lld)", (long long)source->rank);
	else
		ts_text_printf(&x->out, " (source %lld)", (long long)source->id);
	ts_text_append_str(&x->out, "\"}}");
}

/* Names for streams that no thread of the source shows: one row each, under their device. */
static void put_stream_names(struct ts_chrome_export *x)
{
	const struct ts_stream_row *stream;
	size_t cursor = 0;
	int64_t id;

	while ((stream = ts_reader_entity_next(x->reader, TS_TABLE_STREAM, &cursor, &id))) {
		const struct ts_chrome_track *track = ts_chrome_track_of_stream(x, id);
		const struct ts_device_row *device =
			ts_reader_entity(x->reader, TS_TABLE_DEVICE, stream->device);

		if (ts_chrome_track_of_thread(x, stream->thread))
			continue;
		put_name(x, "process_name", track, "name");
		ts_text_append_str(&x->out, "\"device ");
		ts_text_append_int(&x->out, device ? device->number : stream->device);
		if (device && device->name) {
			struct ts_string model = ts_reader_string(x->reader, device->name);

			ts_text_append_str(&x->out, ": ");
			ts_text_append_json_bare(&x->out, model.data, model.length);
		}
		ts_text_append_str(&x->out, "\"}}");
		put_name(x, "thread_name", track, "name");
		ts_text_append_str(&x->out, "\"stream ");
		ts_text_append_int(&x->out, stream->number == TS_ABSENT ? id : stream->number);
		ts_text_append_str(&x->out, "\"}}");
	}
}

int ts_chrome_put_names(struct ts_chrome_export *x)
{
	const struct ts_process_row *process;
	const struct ts_thread_row *thread;
	size_t cursor = 0;
	int64_t id, sort_index;

	while ((process = ts_reader_entity_next(x->reader, TS_TABLE_PROCESS, &cursor, &id))) {
		const struct ts_chrome_track *track = ts_chrome_track_of_process(x, id);

		put_process_name(x, process, track);
		put_named(x, "process_labels", track, "labels", process->labels);
		/* Otherwise viewers sort by name. */
		sort_index = process->sort_index;
		if (x->for_viewers && sort_index == TS_ABSENT)
			sort_index = (int64_t)cursor;
		put_sorted(x, "process_sort_index", track, sort_index);
		if (ts_chrome_flush(x, TS_CHROME_FLUSH_BYTES))
			return x->err->code;
	}
	cursor = 0;
	while ((thread = ts_reader_entity_next(x->reader, TS_TABLE_THREAD, &cursor, &id))) {
		const struct ts_chrome_track *track = ts_chrome_track_of_thread(x, id);

		put_named(x, "thread_name", track, "name", thread->name);
		put_sorted(x, "thread_sort_index", track, thread->sort_index);
		if (ts_chrome_flush(x, TS_CHROME_FLUSH_BYTES))
			return x->err->code;
	}
	put_stream_names(x);
	return ts_chrome_flush(x, TS_CHROME_FLUSH_BYTES);
}

/* ---- events ---- */

static bool is_written_elsewhere(uint32_t table)
{
	const struct ts_table_info *info = ts_table_info(table);

	if (!info || info->kind == TS_KIND_INTERNAL || table == TS_TABLE_STRING ||
	    table == TS_TABLE_FRAME || table == TS_TABLE_STACK)
		return true;
	for (size_t i = 0; i < TS_ARRAY_SIZE(head_tables); i++)
		if (head_tables[i] == table)
			return true;
	return false;
}

static int put_chunk(struct ts_chrome_export *x, struct ts_batch *batch, size_t chunk)
{
	int result = ts_batch_read(batch, chunk, TS_MASK_ALL, x->err);

	for (uint32_t row = 0; !result && row < batch->rows; row++) {
		ts_chrome_put_row(x, batch, row);
		result = ts_chrome_flush(x, TS_CHROME_FLUSH_BYTES);
	}
	if (!result && batch->rows && batch->table->id == TS_TABLE_SLICE)
		result = ts_chrome_put_async(x, batch);
	/* No row is referenced any more. */
	ts_reader_trim(x->reader, TS_CHROME_TEXT_BYTES);
	return result;
}

static int put_events(struct ts_chrome_export *x)
{
	struct ts_batch *batch;
	int result = ts_batch_new(&batch, x->reader, x->err);

	for (size_t i = 0; !result && i < ts_reader_chunk_count(x->reader); i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(x->reader, i);

		if (x->options->progress &&
		    x->options->progress(x->options->context, chunk->offset,
					 ts_reader_state(x->reader)->file_bytes))
			result = ts_error_set(x->err, TS_ECANCELED, "interrupted");
		else if (!is_written_elsewhere(chunk->table))
			result = put_chunk(x, batch, i);
	}
	ts_batch_free(batch);
	return result;
}

/* ---- the file ---- */

int ts_chrome_choose_base(struct ts_chrome_export *x)
{
	const struct ts_source_row *source;
	struct ts_batch *batch;
	size_t cursor = 0;
	int64_t id, clock = 0;
	int result;

	source = ts_reader_entity_next(x->reader, TS_TABLE_SOURCE, &cursor, &id);
	if (!source)
		return TS_OK;
	clock = source->clock;
	result = ts_batch_new(&batch, x->reader, x->err);
	for (size_t i = 0; !result && i < ts_reader_chunk_count(x->reader); i++) {
		if (ts_reader_chunk(x->reader, i)->table != TS_TABLE_CLOCK_SYNC)
			continue;
		result = ts_batch_read(batch, i, TS_MASK_ALL, x->err);
		for (uint32_t row = 0; !result && row < batch->rows; row++) {
			struct ts_clock_sync_row sync;

			ts_batch_row(batch, row, &sync);
			if (sync.clock == clock && x->base_ns == 0 &&
			    __builtin_sub_overflow(sync.reference, sync.time, &x->base_ns))
				x->base_ns = 0;
		}
	}
	ts_batch_free(batch);
	return result;
}

static int put_file(struct ts_chrome_export *x)
{
	int result = ts_chrome_tracks_init(x);

	if (!result)
		result = ts_chrome_choose_base(x);
	if (!result)
		result = put_head(x);
	if (!result)
		result = put_meta(x);
	if (result)
		return result;
	if (x->base_ns)
		ts_text_printf(&x->out, "\"baseTimeNanoseconds\":%lld,\n", (long long)x->base_ns);
	result = put_stack_frames(x);
	if (result)
		return result;
	ts_text_append_str(&x->out, "\"traceEvents\":[");
	result = ts_chrome_put_names(x);
	if (!result)
		result = put_events(x);
	if (result)
		return result;
	ts_text_append_str(&x->out, "\n]}\n");
	return ts_chrome_flush(x, 0);
}

int ts_chrome_write(struct ts_reader *reader, int fd, const struct ts_export_options *options,
		    int (*put)(struct ts_chrome_export *x), struct ts_error *err)
{
	static const struct ts_export_options defaults;
	struct ts_error local_err = { 0 };
	struct ts_chrome_export x = { .reader = reader,
				      .fd = fd,
				      .options = options ? options : &defaults,
				      .err = err ? err : &local_err,
				      .first_event = true };
	int result;

	ts_text_init(&x.out);
	result = put(&x);
	ts_chrome_tracks_release(&x.tracks);
	ts_text_release(&x.out);
	return result;
}

int ts_export_chrome(struct ts_reader *reader, int fd, const struct ts_export_options *options,
		     struct ts_error *err)
{
	return ts_chrome_write(reader, fd, options, put_file, err);
}
