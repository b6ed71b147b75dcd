/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope's own JSON. Frames may follow the profiles that refer to them, so the whole file is in
 * memory and read twice: for its frames, then for its profiles.
 */
#include "import/speedscope/speedscope_import.h"

#include <stdlib.h>
#include <string.h>

#include "import/common/frame_file.h"
#include "import/import.h"

static const struct ts_loss_kind loss_profile = {
	.what = "profile",
	.one = "profile of an unknown type",
	.many = "profiles of unknown types",
};

int ts_speedscope_probe(const char *data, size_t bytes)
{
	static const char schema[] = "speedscope.app/file-format-schema.json";
	struct ts_json js;

	ts_json_init(&js, data, bytes, false);
	return !ts_json_skip_bom(&js) && ts_json_peek(&js) == '{' &&
	       memmem(data, bytes, schema, sizeof(schema) - 1) != NULL;
}

int ts_speedscope_no_memory(struct ts_speedscope_import *s)
{
	s->has_message = true;
	return ts_error_set(s->err, TS_ENOMEM, "input '%s': out of memory", s->import->path);
}

uint32_t ts_speedscope_string(struct ts_speedscope_import *s, const struct ts_json_string *string)
{
	if (!string->length || string->length > TS_IMPORT_MAX_STRING)
		return 0;
	if (!string->escaped)
		return ts_import_string(s->import, string->text, string->length);
	ts_text_clear(&s->scratch);
	ts_json_unescape(string, &s->scratch);
	return ts_import_string(s->import, ts_text_cstr(&s->scratch), s->scratch.length);
}

int ts_speedscope_scan_string(struct ts_json *js, struct ts_json_string *ret_string)
{
	return ts_json_peek(js) == '"' ? ts_json_scan_string(js, ret_string) : TS_OK;
}

int ts_speedscope_scan_int(struct ts_json *js, int64_t *ret_value)
{
	struct ts_json_number number = { .kind = TS_JSON_NONFINITE };
	int first = ts_json_peek(js), rc;

	if (first != '-' && !(first >= '0' && first <= '9'))
		return TS_OK;
	rc = ts_json_scan_number(js, &number);
	if (!rc && number.kind == TS_JSON_INT)
		*ret_value = number.integer;
	return rc;
}

/* ---- frames ---- */

struct frame {
	struct ts_json_string name, file;
	int64_t line, column;
};

static int scan_frame(struct ts_json *js, struct frame *frame)
{
	struct ts_json_walk walk = { .open = '{', .skips_others = true };

	while (ts_json_walk_next(&walk, js)) {
		if (ts_json_string_is(&walk.key, "name"))
			walk.rc = ts_speedscope_scan_string(js, &frame->name);
		else if (ts_json_string_is(&walk.key, "file"))
			walk.rc = ts_speedscope_scan_string(js, &frame->file);
		else if (ts_json_string_is(&walk.key, "line"))
			walk.rc = ts_speedscope_scan_int(js, &frame->line);
		else if (ts_json_string_is(&walk.key, "col"))
			walk.rc = ts_speedscope_scan_int(js, &frame->column);
	}
	return walk.rc;
}

static int read_frame(struct ts_speedscope_import *s, struct ts_json *js)
{
	struct frame frame = { .line = TS_ABSENT, .column = TS_ABSENT };
	struct ts_frame_row row = ts_frame_none;
	int rc = scan_frame(js, &frame);

	if (rc)
		return rc;
	row.name = ts_speedscope_string(s, &frame.name);
	row.file = ts_speedscope_string(s, &frame.file);
	row.kind = ts_frame_file_kind(frame.file.text, frame.file.length);
	row.line = frame.line;
	row.column = frame.column;
	if (ts_grow_array((void **)&s->frames, &s->frame_capacity, s->frame_count + 1,
			  sizeof(*s->frames)))
		return ts_speedscope_no_memory(s);
	s->frames[s->frame_count++] =
		(struct ts_speedscope_frame){ .id = ts_writer_frame(s->writer, &row),
					      .name = (uint32_t)row.name,
					      .file = (uint32_t)row.file,
					      .line = row.line };
	return TS_OK;
}

static int read_frames(struct ts_speedscope_import *s, struct ts_json *js)
{
	struct ts_json_walk walk = { .open = '[', .skips_others = true };

	while (ts_json_walk_next(&walk, js))
		walk.rc = read_frame(s, js);
	return walk.rc;
}

static int read_shared(struct ts_speedscope_import *s, struct ts_json *js)
{
	struct ts_json_walk walk = { .open = '{', .skips_others = true };

	while (ts_json_walk_next(&walk, js))
		if (ts_json_string_is(&walk.key, "frames"))
			walk.rc = read_frames(s, js);
	return walk.rc;
}

/* ---- profiles ---- */

static int scan_profile(struct ts_json *js, struct ts_speedscope_profile *profile)
{
	struct ts_json_walk walk = { .open = '{', .skips_others = true };

	while (ts_json_walk_next(&walk, js)) {
		if (ts_json_string_is(&walk.key, "type"))
			walk.rc = ts_speedscope_scan_string(js, &profile->type);
		else if (ts_json_string_is(&walk.key, "name"))
			walk.rc = ts_speedscope_scan_string(js, &profile->name);
		else if (ts_json_string_is(&walk.key, "unit"))
			walk.rc = ts_speedscope_scan_string(js, &profile->unit);
		else if (ts_json_string_is(&walk.key, "samples"))
			profile->samples = *js;
		else if (ts_json_string_is(&walk.key, "weights"))
			profile->weights = *js;
		else if (ts_json_string_is(&walk.key, "events"))
			profile->events = *js;
		else if (ts_json_string_is(&walk.key, "startValue"))
			profile->start = *js;
	}
	return walk.rc;
}

static int read_profile(struct ts_speedscope_import *s, struct ts_json *js)
{
	struct ts_speedscope_profile profile = { 0 };
	int rc = scan_profile(js, &profile);

	if (rc)
		return rc;
	if (ts_json_string_is(&profile.type, "sampled") ||
	    ts_json_string_is(&profile.type, "evented"))
		return ts_speedscope_add_profile(s, &profile);
	ts_entities_add_loss(&s->entities, &loss_profile, 1);
	return TS_OK;
}

/* ---- the file ---- */

static void add_meta(struct ts_speedscope_import *s, const char *key,
		     const struct ts_json_string *string)
{
	/* The value is JSON, quotes included. */
	if (string->length && string->length <= TS_IMPORT_MAX_STRING / 8)
		ts_entities_meta(&s->entities, key, string->text - 1, string->length + 2);
}

/* Everything but the profiles. */
static int read_head(struct ts_speedscope_import *s, struct ts_json *js)
{
	struct ts_json_walk walk = { .open = '{', .skips_others = true };
	struct ts_json_string name = { 0 }, exporter = { 0 };

	while (ts_json_walk_next(&walk, js)) {
		if (ts_json_string_is(&walk.key, "shared"))
			walk.rc = read_shared(s, js);
		else if (ts_json_string_is(&walk.key, "name"))
			walk.rc = ts_speedscope_scan_string(js, &name);
		else if (ts_json_string_is(&walk.key, "exporter"))
			walk.rc = ts_speedscope_scan_string(js, &exporter);
	}
	if (name.length)
		ts_entities_process_row(&s->entities, s->process)->name =
			ts_speedscope_string(s, &name);
	add_meta(s, "exporter", &exporter);
	return walk.rc;
}

static int read_list(struct ts_speedscope_import *s, struct ts_json *js)
{
	struct ts_json_walk walk = { .open = '[', .skips_others = true };

	while (ts_json_walk_next(&walk, js))
		walk.rc = read_profile(s, js);
	return walk.rc;
}

static int read_profiles(struct ts_speedscope_import *s, struct ts_json *js)
{
	struct ts_json_walk walk = { .open = '{', .skips_others = true };

	while (ts_json_walk_next(&walk, js))
		if (ts_json_string_is(&walk.key, "profiles"))
			walk.rc = read_list(s, js);
	return walk.rc;
}

static int fail(struct ts_speedscope_import *s, const struct ts_json *js, int rc)
{
	uint64_t at = ts_input_stream_at(&s->import->stream, js->error_at);

	if (rc != TS_EFORMAT || s->has_message)
		return rc;
	return js->error_at == js->end ? ts_import_cut(s->import, at, s->err)
				       : ts_import_bad(s->import, at, js->reason, s->err);
}

/* What precedes damage is used: profiles that are complete, and frames. */
static int read_file(struct ts_speedscope_import *s)
{
	struct ts_json *js = &s->import->stream.js, again;
	size_t held;
	int rc = ts_import_need(s->import, SIZE_MAX, &held, s->err), damage;

	if (rc)
		return rc;
	ts_json_skip_bom(js);
	again = *js;
	damage = read_head(s, &again);
	if (damage && damage != TS_EFORMAT)
		return damage;
	again = *js;
	rc = read_profiles(s, &again);
	rc = fail(s, &again, rc);
	js->next = js->end;
	if (!rc && !s->import->result.events)
		return ts_import_bad(s->import, 0, "no profile in it has samples or events",
				     s->err);
	return rc;
}

static int start(struct ts_speedscope_import *s)
{
	int rc = ts_entities_start(&s->entities, s->import, s->err);

	if (rc)
		return rc;
	s->process = ts_entities_process_of(&s->entities, 0, 0, TS_ABSENT);
	s->file_key = ts_import_string(s->import, "file", 4);
	s->line_key = ts_import_string(s->import, "line", 4);
	rc = ts_writer_status(s->writer, s->err);
	return rc || s->process ? rc : ts_speedscope_no_memory(s);
}

int ts_speedscope_run(struct ts_import *import, struct ts_error *err)
{
	struct ts_speedscope_import *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return ts_error_set(err, TS_ENOMEM, "input '%s': out of memory", import->path);
	s->import = import;
	s->writer = import->writer;
	s->err = err;
	rc = start(s);
	if (!rc)
		rc = read_file(s);
	if (rc == TS_EFORMAT || rc == TS_ECANCELED)
		ts_entities_add_loss(&s->entities, &ts_loss_rest, 1);
	if (rc != TS_ENOMEM && !ts_writer_status(import->writer, NULL))
		ts_entities_finish(&s->entities);
	ts_entities_release(&s->entities);
	ts_text_release(&s->scratch);
	free(s->frames);
	free(s->open);
	free(s);
	return rc;
}
