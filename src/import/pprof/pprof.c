/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof profiles: one message (profile.proto) whose parts come in any order and refer to each
 * other, so all of it is indexed before rows are created. Memory holds the file's bytes and the
 * positions of its messages.
 */
#include "import/pprof/pprof.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "import/import.h"

const struct ts_loss_kind ts_pprof_loss_message = {
	.what = "message",
	.one = "damaged message of the profile",
	.many = "damaged messages of the profile",
};

enum field {
	FIELD_TYPE = 1,
	FIELD_SAMPLE = 2,
	FIELD_MAPPING = 3,
	FIELD_LOCATION = 4,
	FIELD_FUNCTION = 5,
	FIELD_STRING = 6,
	FIELD_DROP_FRAMES = 7,
	FIELD_KEEP_FRAMES = 8,
	FIELD_TIME = 9,
	FIELD_DURATION = 10,
	FIELD_PERIOD_TYPE = 11,
	FIELD_PERIOD = 12,
	FIELD_COMMENT = 13,
	FIELD_DEFAULT_TYPE = 14,
	FIELD_DOC_URL = 15,
};

/* ---- is it a profile? ---- */

/* Two small numbers, and nothing else. */
static bool is_value_type(const struct ts_proto_field *from)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;

	if (from->length < 2 || from->length > 24)
		return false;
	while (ts_proto_next(&message, &field))
		if (field.number > 2 || field.type != TS_PROTO_VARINT || field.value >> 32)
			return false;
	return !message.failed;
}

static bool is_profile_field(const struct ts_proto_field *field)
{
	switch (field->number) {
	case FIELD_TYPE:
	case FIELD_PERIOD_TYPE:
		return field->type == TS_PROTO_BYTES && is_value_type(field);
	case FIELD_SAMPLE:
	case FIELD_MAPPING:
	case FIELD_LOCATION:
	case FIELD_FUNCTION:
	case FIELD_STRING:
		return field->type == TS_PROTO_BYTES;
	case FIELD_COMMENT:
		return field->type == TS_PROTO_BYTES || field->type == TS_PROTO_VARINT;
	default:
		return field->number >= FIELD_DROP_FRAMES && field->number <= FIELD_DOC_URL &&
		       field->type == TS_PROTO_VARINT;
	}
}

int ts_pprof_probe(const char *data, size_t bytes)
{
	struct ts_proto_reader message = ts_proto_reader(data, bytes);
	struct ts_proto_field field;
	bool has_type = false, has_string = false;

	while (ts_proto_next(&message, &field)) {
		if (!is_profile_field(&field))
			return 0;
		/* The first string of every profile is empty. */
		if (field.number == FIELD_STRING && !has_string && field.length)
			return 0;
		has_type |= field.number == FIELD_TYPE;
		has_string |= field.number == FIELD_STRING;
	}
	/* If the bytes are truncated, the rest may follow. */
	return has_type && (has_string || message.failed);
}

/* ---- texts ---- */

struct ts_pprof_bytes ts_pprof_text(const struct ts_pprof *p, uint64_t index)
{
	return index < p->string_count ? p->strings[index].text : (struct ts_pprof_bytes){ "", 0 };
}

uint32_t ts_pprof_string(struct ts_pprof *p, uint64_t index)
{
	struct ts_pprof_string *string;

	if (index >= p->string_count || !p->strings[index].text.length)
		return 0;
	string = &p->strings[index];
	if (!string->id)
		string->id = ts_import_string(p->import, string->text.data,
					      TS_MIN(string->text.length, TS_IMPORT_MAX_STRING));
	return string->id;
}

/* ---- reading ---- */

static int add_item(struct ts_pprof_list *list, const struct ts_proto_field *field)
{
	if (ts_grow_array((void **)&list->items, &list->capacity, list->count + 1,
			  sizeof(*list->items)))
		return TS_ENOMEM;
	list->items[list->count++] = (struct ts_pprof_bytes){ field->bytes, field->length };
	return TS_OK;
}

/* The id is field 1 of mappings, locations and functions alike. Of duplicates the first counts. */
static int add_with_id(struct ts_pprof_list *list, const struct ts_proto_field *from)
{
	struct ts_proto_reader message = ts_proto_message(from);
	struct ts_proto_field field;
	uint64_t id = 0, *index;
	bool is_new = false;

	while (ts_proto_next(&message, &field))
		if (field.number == 1)
			id = field.value;
	index = ts_map_insert(&list->by_id, id, &is_new);
	if (!index)
		return TS_ENOMEM;
	if (is_new)
		*index = list->count;
	return add_item(list, from);
}

static int add_string(struct ts_pprof *p, const struct ts_proto_field *field)
{
	if (ts_grow_array((void **)&p->strings, &p->string_capacity, p->string_count + 1,
			  sizeof(*p->strings)))
		return TS_ENOMEM;
	p->strings[p->string_count++] =
		(struct ts_pprof_string){ .text = { field->bytes, field->length } };
	return TS_OK;
}

static int add_comment(struct ts_pprof *p, uint64_t value)
{
	if (ts_grow_array((void **)&p->comments, &p->comment_capacity, p->comment_count + 1,
			  sizeof(*p->comments)))
		return TS_ENOMEM;
	p->comments[p->comment_count++] = (int64_t)value;
	return TS_OK;
}

static int add_comments(struct ts_pprof *p, const struct ts_proto_field *field)
{
	struct ts_proto_reader packed = ts_proto_message(field);
	uint64_t value;
	int rc = TS_OK;

	if (field->type == TS_PROTO_VARINT)
		return add_comment(p, field->value);
	while (!rc && packed.next < packed.end && ts_proto_varint(&packed, &value))
		rc = add_comment(p, value);
	return rc;
}

static int take_message(struct ts_pprof *p, const struct ts_proto_field *field)
{
	switch (field->number) {
	case FIELD_TYPE:
		return add_item(&p->types, field);
	case FIELD_SAMPLE:
		return add_item(&p->samples, field);
	case FIELD_MAPPING:
		return add_with_id(&p->mappings, field);
	case FIELD_LOCATION:
		return add_with_id(&p->locations, field);
	case FIELD_FUNCTION:
		return add_with_id(&p->functions, field);
	case FIELD_STRING:
		return add_string(p, field);
	case FIELD_PERIOD_TYPE:
		p->period_type = (struct ts_pprof_bytes){ field->bytes, field->length };
		break;
	case FIELD_COMMENT:
		return add_comments(p, field);
	default:
		break;
	}
	return TS_OK;
}

static int take_field(struct ts_pprof *p, const struct ts_proto_field *field)
{
	if (field->type == TS_PROTO_BYTES)
		return take_message(p, field);
	switch (field->number) {
	case FIELD_DROP_FRAMES:
		p->drop_frames = field->value;
		break;
	case FIELD_KEEP_FRAMES:
		p->keep_frames = field->value;
		break;
	case FIELD_TIME:
		p->time = (int64_t)field->value;
		break;
	case FIELD_DURATION:
		p->duration = (int64_t)field->value;
		break;
	case FIELD_PERIOD:
		p->period = (int64_t)field->value;
		break;
	case FIELD_COMMENT:
		return add_comments(p, field);
	case FIELD_DEFAULT_TYPE:
		p->default_type = field->value;
		break;
	case FIELD_DOC_URL:
		p->doc_url = field->value;
		break;
	default:
		break;
	}
	return TS_OK;
}

/* The entire file is in the stream's buffer. *ret_cut: where it is truncated, or UINT64_MAX. */
static int read_profile(struct ts_pprof *p, uint64_t *ret_cut)
{
	struct ts_json *js = &p->import->stream.js;
	struct ts_proto_reader message = ts_proto_reader(js->next, (size_t)(js->end - js->next));
	struct ts_proto_field field;
	uint64_t at = 0;
	int rc = TS_OK;

	while (!rc && ts_proto_next(&message, &field)) {
		rc = take_field(p, &field);
		at = (uint64_t)((const char *)message.next - js->next);
	}
	*ret_cut = message.failed ? at : UINT64_MAX;
	return rc;
}

/* ---- metadata ---- */

static void add_text_metadata(struct ts_pprof *p, const char *key, struct ts_pprof_bytes text)
{
	struct ts_text json;

	if (!text.length || text.length > TS_IMPORT_MAX_STRING / 8)
		return;
	ts_text_init(&json);
	ts_text_append_json(&json, text.data, text.length);
	ts_entities_meta(&p->entities, key, ts_text_cstr(&json), json.length);
	ts_text_release(&json);
}

static void add_number_metadata(struct ts_pprof *p, const char *key, int64_t number)
{
	struct ts_text json;

	if (!number)
		return;
	ts_text_init(&json);
	ts_text_append_int(&json, number);
	ts_entities_meta(&p->entities, key, ts_text_cstr(&json), json.length);
	ts_text_release(&json);
}

static void add_period_metadata(struct ts_pprof *p)
{
	struct ts_proto_reader message =
		ts_proto_reader(p->period_type.data, p->period_type.length);
	struct ts_proto_field field;

	add_number_metadata(p, "period", p->period);
	while (p->period_type.length && ts_proto_next(&message, &field)) {
		if (field.number == 1)
			add_text_metadata(p, "period_type", ts_pprof_text(p, field.value));
		else if (field.number == 2)
			add_text_metadata(p, "period_unit", ts_pprof_text(p, field.value));
	}
}

static void add_metadata(struct ts_pprof *p)
{
	struct ts_clock_sync_row sync = ts_clock_sync_none;

	add_period_metadata(p);
	add_number_metadata(p, "time_nanos", p->time);
	add_number_metadata(p, "duration_nanos", p->duration);
	add_text_metadata(p, "default_sample_type", ts_pprof_text(p, p->default_type));
	add_text_metadata(p, "drop_frames", ts_pprof_text(p, p->drop_frames));
	add_text_metadata(p, "keep_frames", ts_pprof_text(p, p->keep_frames));
	add_text_metadata(p, "doc_url", ts_pprof_text(p, p->doc_url));
	for (size_t i = 0; i < p->comment_count; i++)
		add_text_metadata(p, "comment", ts_pprof_text(p, (uint64_t)p->comments[i]));
	if (!p->time)
		return;
	/* Its clock is the time of day. */
	sync.clock = p->entities.clock;
	sync.time = sync.reference = p->time;
	sync.method = ts_import_string(p->import, "pprof time_nanos", 16);
	ts_writer_add(p->writer, TS_TABLE_CLOCK_SYNC, &sync, NULL);
}

/* ---- entry points ---- */

/* Uses what was read before a file is truncated. */
static int import_profile(struct ts_pprof *p, struct ts_error *err)
{
	uint64_t cut = UINT64_MAX;
	struct ts_error later;
	size_t held;
	int rc = ts_import_need(p->import, SIZE_MAX, &held, err), end;

	if (rc && rc != TS_EFORMAT)
		return rc;
	end = read_profile(p, &cut);
	p->entities.time = p->time;
	if (!end)
		end = ts_pprof_frames_init(p);
	if (end)
		return ts_error_set(err, end, "input '%s': out of memory", p->import->path);
	add_metadata(p);
	end = ts_pprof_add_samples(p, rc ? &later : err);
	p->import->stream.js.next = p->import->stream.js.end;
	if (rc || end)
		return rc ? rc : end;
	if (cut != UINT64_MAX)
		return ts_import_cut(p->import, cut, err);
	return p->types.count ? TS_OK : ts_import_bad(p->import, 0, "it has no sample types", err);
}

static void release_list(struct ts_pprof_list *list)
{
	ts_map_release(&list->by_id);
	free(list->items);
}

static void release(struct ts_pprof *p)
{
	ts_entities_release(&p->entities);
	ts_pprof_samples_release(p);
	ts_pprof_frames_release(p);
	release_list(&p->types);
	release_list(&p->samples);
	release_list(&p->mappings);
	release_list(&p->locations);
	release_list(&p->functions);
	free(p->strings);
	free(p->comments);
	free(p);
}

int ts_pprof_run(struct ts_import *import, struct ts_error *err)
{
	struct ts_pprof *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return ts_error_set(err, TS_ENOMEM, "input '%s': out of memory", import->path);
	p->import = import;
	p->writer = import->writer;
	rc = ts_entities_start(&p->entities, import, err);
	if (!rc)
		rc = import_profile(p, err);
	if (rc == TS_EFORMAT || rc == TS_ECANCELED)
		ts_entities_add_loss(&p->entities, &ts_loss_rest, 1);
	if (rc != TS_ENOMEM && !ts_writer_status(p->writer, NULL))
		ts_entities_finish(&p->entities);
	release(p);
	return rc;
}
