/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes command streams (docs/replay.md, section 2): objects and commands, with a process's
 * numbers mapped to row ids. False claims of a program affect its own rows only. None of these
 * records is an event, and windows do not filter them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "record/decode/decode_internal.h"
#include "trace/object_details.h"

/* Destroyed objects are forgotten when they outnumber the live ones and this. */
#define GONE_OBJECTS 4096u

/* Context of a record: its ring and time. */
struct context {
	struct ts_decoder *decoder;
	struct decode_area *area;
	struct decode_ring *ring;
	int64_t ns;
};

static void lose(const struct context *context, enum decode_loss why)
{
	decode_lose(context->decoder, context->ring, why, 1, context->ns, context->ns);
}

struct decode_channel *decode_get_channel(struct ts_decoder *decoder, struct decode_area *area)
{
	if (!area->channel)
		area->channel = calloc(1, sizeof(*area->channel));
	if (!area->channel)
		decode_no_memory(decoder);
	return area->channel;
}

void decode_free_channel(struct decode_area *area)
{
	struct decode_channel *channel = TS_STEAL(area->channel);

	if (!channel)
		return;
	free(channel->objects);
	ts_map_release(&channel->numbers);
	free(channel->blobs);
	ts_map_release(&channel->kept_blobs);
	decode_drop_half(channel);
	free(channel);
}

void decode_channel_moves(struct ts_decoder *decoder, struct decode_area *area)
{
	struct decode_channel *channel = area->channel;

	if (!channel)
		return;
	if (channel->in_window)
		decode_loss_row(decoder, area->process, 0, "commands",
				"their window began in an earlier file: they cannot be replayed",
				TS_ABSENT, decoder->now_ns, decoder->now_ns);
	for (size_t i = 0; i < channel->object_count; i++)
		channel->objects[i].row.name = channel->objects[i].row.details =
			channel->objects[i].row.blob = 0;
	free(TS_STEAL(channel->blobs));
	channel->blob_slots = 0;
	ts_map_clear(&channel->kept_blobs);
	decode_drop_half(channel);
}

/* ---- objects ---- */

static struct decode_object *find_object(const struct decode_channel *channel, uint64_t number)
{
	uint64_t context;

	return number && ts_map_get(&channel->numbers, number, &context)
		       ? &channel->objects[context]
		       : NULL;
}

static void forget_gone(struct ts_decoder *decoder, struct decode_channel *channel)
{
	size_t kept = 0;

	ts_map_clear(&channel->numbers);
	for (size_t i = 0; i < channel->object_count; i++) {
		if (channel->objects[i].is_gone)
			continue;
		channel->objects[kept] = channel->objects[i];
		if (ts_map_put(&channel->numbers, channel->objects[kept].number, kept))
			decode_no_memory(decoder);
		kept++;
	}
	channel->object_count = kept;
	channel->gone_count = 0;
}

bool decode_put_object(struct ts_decoder *decoder, struct decode_channel *channel,
		       const struct decode_object *object)
{
	if (channel->gone_count > channel->object_count - channel->gone_count + GONE_OBJECTS)
		forget_gone(decoder, channel);
	if (channel->object_count - channel->gone_count >= DECODE_AREA_OBJECTS)
		return false;
	if (ts_grow_array((void **)&channel->objects, &channel->object_capacity,
			  channel->object_count + 1, sizeof(*channel->objects)) ||
	    ts_map_put(&channel->numbers, object->number, channel->object_count)) {
		decode_no_memory(decoder);
		return false;
	}
	channel->objects[channel->object_count++] = *object;
	channel->gone_count += object->is_gone;
	return true;
}

/*
 * The object of a number in its window; a new one if it is described for the first time, or by
 * another window. NULL: too many.
 */
static struct decode_object *describe_object(struct ts_decoder *decoder,
					     struct decode_channel *channel, uint64_t number,
					     int64_t ns)
{
	struct decode_object *object = find_object(channel, number);
	struct decode_object fresh = { .number = number,
				       .id = decoder->next_object,
				       .generation = channel->generation,
				       .row = ts_object_none };

	fresh.row.id = fresh.id;
	fresh.row.created = ns;
	if (object && object->generation == channel->generation && !object->is_gone)
		return object;
	if (object) {
		channel->gone_count -= object->is_gone;
		*object = fresh;
	} else {
		if (!decode_put_object(decoder, channel, &fresh))
			return NULL;
		object = &channel->objects[channel->object_count - 1];
	}
	decoder->next_object++;
	return object;
}

static void object_row(struct ts_decoder *decoder, const struct decode_area *area,
		       struct decode_object *object)
{
	char details[40];

	/* Its details are in another file. */
	if (!object->row.details) {
		snprintf(details, sizeof(details), "{\"number\":%llu}",
			 (unsigned long long)object->number);
		object->row.details = decode_text(decoder, details);
	}
	object->row.process = area->process ? area->process->id : 0;
	ts_writer_add(decoder->writer, TS_TABLE_OBJECT, &object->row, NULL);
	object->epoch = decoder->epoch;
}

/*
 * The object's id for a column; ensures that its row is in the file. Counts an object that was
 * never described.
 */
static int64_t object_id(const struct context *context, uint64_t number)
{
	struct decode_object *object = find_object(context->area->channel, number);

	if (!number)
		return 0;
	if (!object) {
		lose(context, LOSS_MISSING_OBJECT);
		return 0;
	}
	if (TS_UNLIKELY(object->epoch != context->decoder->epoch))
		object_row(context->decoder, context->area, object);
	return object->id;
}

static int64_t blob_id(const struct context *context, uint64_t number, bool keep)
{
	uint32_t id = decode_blob_id(context->decoder, context->area->channel, number, keep);

	if (number && !id)
		lose(context, LOSS_MISSING_BLOB);
	return id;
}

/* ---- details ---- */

/* Validates details into decoder->scratch; false: none, or not a JSON object. */
static bool check_details(const struct context *context, const char *text, uint32_t length)
{
	struct ts_decoder *decoder = context->decoder;
	TS_SCOPED(ts_text) clean = { 0 };
	bool is_valid;

	ts_text_clear(&decoder->scratch);
	if (!length)
		return false;
	if (!ts_utf8_valid(text, length)) {
		ts_utf8_sanitize(&clean, text, length);
		text = ts_text_cstr(&clean);
		length = (uint32_t)clean.length;
	}
	is_valid = ts_object_details_check(text, length, &decoder->scratch);
	if (ts_text_status(&decoder->scratch) || ts_text_status(&clean))
		decode_no_memory(decoder);
	if (!is_valid)
		lose(context, LOSS_BAD_DETAILS);
	return is_valid && !decoder->failure;
}

static uint64_t map_blob(void *context, uint64_t number)
{
	return (uint64_t)blob_id(context, number, true);
}

/* {"number":N, and the program's details; numbers of blobs become ids. */
static int64_t object_details(struct context *context, uint64_t number, const char *text,
			      uint32_t length)
{
	const struct ts_text *checked = &context->decoder->scratch;
	TS_SCOPED(ts_text) out = { 0 };

	ts_text_append_str(&out, "{\"number\":");
	ts_text_append_uint(&out, number);
	if (check_details(context, text, length) && checked->length > 2) {
		ts_text_append_char(&out, ',');
		ts_object_details_map_blobs(checked->data + 1, checked->length - 1, map_blob,
					    context, &out);
	} else {
		ts_text_append_char(&out, '}');
	}
	if (ts_text_status(&out)) {
		decode_no_memory(context->decoder);
		return 0;
	}
	return ts_writer_string(context->decoder->writer, out.data, out.length);
}

/* Does the text of object_details() have "more": true? It continues a list of the record before it.
 */
static bool is_continued(const struct ts_text *details)
{
	enum ts_json_literal more = TS_JSON_FALSE;
	struct ts_json js;

	if (!details->length)
		return false;
	ts_json_init(&js, details->data, details->length, true);
	if (ts_json_find_member(&js, "more") || ts_json_scan_literal(&js, &more))
		return false;
	return more == TS_JSON_TRUE;
}

/*
 * A row that continues the one before it is that row with other details. What is repeated later is
 * the first one.
 */
static void continue_object(struct context *context, struct decode_object *object, int64_t details)
{
	struct ts_object_row row = object->row;

	row.details = details;
	ts_writer_add(context->decoder->writer, TS_TABLE_OBJECT, &row, NULL);
}

static int64_t size_or_absent(int64_t size)
{
	return size >= 0 ? size : TS_ABSENT;
}

/* ---- records ---- */

static bool object_record(struct context *context, struct decode_cursor *cursor)
{
	struct ts_decoder *decoder = context->decoder;
	uint32_t name_bytes, details_bytes;
	const char *name, *details;
	struct decode_object *object = NULL;
	struct ts_live_object about;
	int64_t text;

	decode_take(cursor, &about, sizeof(about));
	name = decode_take_string(cursor, &name_bytes);
	details = decode_take_string(cursor, &details_bytes);
	if (cursor->bad)
		return false;
	if (about.number)
		object =
			describe_object(decoder, context->area->channel, about.number, context->ns);
	if (!object) {
		lose(context, LOSS_TOO_MANY_OBJECTS);
		return true;
	}
	text = object_details(context, about.number, details, details_bytes);
	if (object->epoch == decoder->epoch && is_continued(&decoder->scratch)) {
		continue_object(context, object, text);
		return true;
	}
	object->row.kind = about.kind <= UINT8_MAX ? (int64_t)about.kind : TS_OBJECT_UNKNOWN;
	object->row.parent = about.parent == about.number ? 0 : object_id(context, about.parent);
	object->row.address = about.address ? (int64_t)about.address : TS_ABSENT;
	object->row.bytes = size_or_absent(about.bytes);
	object->row.blob = blob_id(context, about.blob, true);
	object->row.name = name_bytes ? decode_string(decoder, name, name_bytes) : 0;
	object->row.details = text;
	object_row(decoder, context->area, object);
	return true;
}

static bool gone_record(const struct context *context, struct decode_cursor *cursor)
{
	struct decode_channel *channel = context->area->channel;
	struct decode_object *object;
	struct ts_live_gone gone;

	decode_take(cursor, &gone, sizeof(gone));
	if (cursor->bad)
		return false;
	object = find_object(channel, gone.number);
	if (!object || object->is_gone)
		return true;
	object->row.destroyed = context->ns;
	object->is_gone = true;
	channel->gone_count++;
	object_row(context->decoder, context->area, object);
	return true;
}

/* Counts windows for the summary: replayable unless a record says why not. */
static void count_window(struct ts_decoder *decoder, struct decode_area *area, int64_t kind)
{
	struct decode_channel *channel = area->channel;
	struct ts_decoder_counts *counts = &decoder->counts;
	const struct ts_text *details = &decoder->scratch;
	char why[sizeof(counts->not_replayable)] = ""; /* stored in full */

	if (kind == TS_COMMAND_OPEN) {
		counts->replayable_windows++;
		channel->in_window = true;
		return;
	}
	if (details->length &&
	    ts_json_member_string(details->data, details->length, "failed", why, sizeof(why))) {
		counts->replayable_windows -= channel->in_window;
		counts->failed_windows++;
		memcpy(counts->not_replayable, why, sizeof(why));
	}
	channel->in_window = false;
	channel->generation++;
	decode_closed_stream(decoder, area);
}

#define OUT_OF_SPACE "the disk was full, or the recording had reached its limit"

/* Closes the window, which cannot be replayed any further. */
static void cut(struct ts_decoder *decoder, struct decode_area *area, const char *why)
{
	struct ts_command_row row = ts_command_none;
	int64_t now;

	/* After all commands so far, since rows are ordered by time. */
	now = TS_MAX(decoder->now_ns, area->channel->last_ns);
	decode_loss_row(decoder, area->process, 0, "commands", why, TS_ABSENT, now, now);
	ts_text_clear(&decoder->scratch);
	ts_text_printf(&decoder->scratch, "{\"failed\":\"%s\"}", why);
	row.start = now;
	row.kind = TS_COMMAND_CLOSE;
	row.process = area->process ? area->process->id : 0;
	row.details = decode_string(decoder, decoder->scratch.data, decoder->scratch.length);
	count_window(decoder, area, row.kind);
	ts_writer_add(decoder->writer, TS_TABLE_COMMAND, &row, NULL);
}

void decode_channel_cut(struct ts_decoder *decoder, struct decode_area *area)
{
	if (area->channel && area->channel->in_window)
		cut(decoder, area, OUT_OF_SPACE);
}

static void cut_gone(struct ts_decoder *decoder, struct decode_area *area, uint64_t blob)
{
	char why[96];

	snprintf(why, sizeof(why), "the bytes of blob %llu in shared memory are gone",
		 (unsigned long long)blob);
	cut(decoder, area, why);
}

void decode_channel_gone(struct ts_decoder *decoder, struct decode_area *area, uint64_t blob,
			 int64_t ns)
{
	/* A successor has not seen the commands before. */
	area->channel->last_ns = TS_MAX(area->channel->last_ns, ns);
	if (area->channel->in_window)
		cut_gone(decoder, area, blob);
	else
		area->channel->gone_blob = blob;
}

static int64_t thread_id(const struct context *context, uint64_t serial)
{
	struct decode_thread *thread;

	if (!serial || serial > UINT32_MAX)
		return 0;
	thread = decode_get_thread(context->decoder, context->area, serial, false);
	if (!thread)
		return 0;
	decode_use_thread(context->decoder, context->area, thread);
	return thread->id;
}

static void set_command(const struct context *context, const struct ts_live_command *command,
			struct ts_command_row *row)
{
	struct decode_process *process = context->area->process;

	row->start = context->ns;
	row->sequence = size_or_absent((int64_t)command->sequence);
	row->kind = command->kind <= UINT8_MAX ? (int64_t)command->kind : TS_COMMAND_UNKNOWN;
	row->queue = object_id(context, command->queue);
	row->object = object_id(context, command->object);
	row->offset = command->offset;
	row->other = object_id(context, command->other);
	row->other_offset = command->other_offset;
	row->bytes = size_or_absent(command->bytes);
	row->blob = blob_id(context, command->blob, false);
	row->correlation = decode_correlation(context->decoder, process, command->correlation);
	row->thread = thread_id(context, command->serial);
	row->process = process ? process->id : 0;
}

static void count_check(struct ts_decoder *decoder, const struct ts_command_row *row)
{
	decoder->counts.checks++;
	decoder->counts.kept_checks += row->blob != 0;
}

static bool command_record(const struct context *context, struct decode_cursor *cursor)
{
	struct ts_decoder *decoder = context->decoder;
	struct ts_command_row row = ts_command_none;
	struct ts_live_command command;
	const char *details;
	uint32_t length;

	decode_take(cursor, &command, sizeof(command));
	details = decode_take_string(cursor, &length);
	if (cursor->bad)
		return false;
	set_command(context, &command, &row);
	if (context->area->channel)
		context->area->channel->last_ns =
			TS_MAX(context->area->channel->last_ns, context->ns);
	if (check_details(context, details, length))
		row.details = ts_writer_string(decoder->writer, decoder->scratch.data,
					       decoder->scratch.length);
	if (row.kind == TS_COMMAND_OPEN || row.kind == TS_COMMAND_CLOSE)
		count_window(decoder, context->area, row.kind);
	else if (row.kind == TS_COMMAND_CHECK)
		count_check(decoder, &row);
	else
		decoder->counts.commands++;
	ts_writer_add(decoder->writer, TS_TABLE_COMMAND, &row, NULL);
	/* Of the snapshot that the window begins with. */
	if (row.kind == TS_COMMAND_OPEN && context->area->channel->gone_blob) {
		cut_gone(decoder, context->area, context->area->channel->gone_blob);
		context->area->channel->gone_blob = 0;
	}
	return true;
}

bool decode_channel_record(struct ts_decoder *decoder, struct decode_area *area,
			   struct decode_ring *ring, const struct decode_event *event)
{
	struct decode_cursor cursor = { .next = event->record + 2,
					.end = event->record + event->words };
	struct context context = { .decoder = decoder,
				   .area = area,
				   .ring = ring,
				   .ns = decode_time(decoder, area, event->record[1]) };

	if (!decode_get_channel(decoder, area))
		return true;
	switch (event->kind) {
	case TS_LIVE_OBJECT:
		return object_record(&context, &cursor);
	case TS_LIVE_GONE:
		return gone_record(&context, &cursor);
	case TS_LIVE_COMMAND:
		return command_record(&context, &cursor);
	case TS_LIVE_SPOOLED:
		return decode_spooled_record(decoder, area, ring, &cursor, context.ns);
	default:
		return decode_blob_record(decoder, area->channel, ring, &cursor, context.ns);
	}
}
