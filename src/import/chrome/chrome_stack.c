/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks: the "stackFrames" member, `sf` and `stack` of events, and samples that come before their
 * frames. A frame may come before its parent, name a missing parent, or be its own ancestor.
 */
#include "import/chrome/chrome_import.h"

void ts_chrome_stacks_init(struct ts_chrome *c)
{
	ts_strmap_init(&c->stacks.keys, 1);
}

void ts_chrome_stacks_release(struct ts_chrome *c)
{
	struct ts_chrome_stacks *stacks = &c->stacks;

	ts_strmap_release(&stacks->keys);
	free(stacks->frames);
	free(stacks->path);
	free(stacks->held);
	free(stacks->values);
}

/* ---- frames ---- */

static uint32_t frame_by_text(struct ts_chrome *c, const struct ts_json_string *text)
{
	struct ts_chrome_stacks *stacks = &c->stacks;
	struct ts_json_string clean = ts_chrome_clean(c, text);
	bool is_new;
	uint32_t id = ts_strmap_intern(&stacks->keys, clean.text, clean.length, &is_new);

	if (id == TS_STRMAP_NONE ||
	    ts_grow_array((void **)&stacks->frames, &stacks->capacity, id, sizeof(*stacks->frames)))
		return 0;
	if (is_new)
		stacks->frames[id - 1] = (struct ts_chrome_frame){ 0 };
	return id;
}

uint32_t ts_chrome_frame_key(struct ts_chrome *c, const struct ts_chrome_raw *sf)
{
	struct ts_json js = ts_chrome_reopen(sf);
	struct ts_json_string text = { .text = sf->at, .length = (size_t)(sf->end - sf->at) };
	int first = ts_json_peek(&js);

	if (first == '"' && ts_json_scan_string(&js, &text))
		return 0;
	if (first != '"' && first != '-' && !(first >= '0' && first <= '9'))
		return 0;
	return frame_by_text(c, &text);
}

/* Collects the path to the nearest frame that has a stack; returns its length. */
static size_t collect_path(struct ts_chrome *c, struct ts_chrome_frame *frames, uint32_t frame)
{
	struct ts_chrome_stacks *stacks = &c->stacks;
	size_t count = 0;

	while (frame && frames[frame - 1].defined && !frames[frame - 1].walked) {
		if (ts_grow_array((void **)&stacks->path, &stacks->path_capacity, count + 1,
				  sizeof(*stacks->path)))
			break;
		frames[frame - 1].walked = true;
		stacks->path[count++] = frame;
		frame = frames[frame - 1].parent;
	}
	return count;
}

uint32_t ts_chrome_walk(struct ts_chrome *c, struct ts_chrome_frame *frames, uint32_t frame)
{
	size_t count;

	if (!frame || !frames)
		return 0;
	count = collect_path(c, frames, frame);
	while (count--) {
		struct ts_chrome_frame *at = &frames[c->stacks.path[count] - 1];
		/* In a cycle of frames the parent has no stack yet: the cycle is cut there. */
		const struct ts_chrome_frame *parent = at->parent ? &frames[at->parent - 1] : NULL;

		at->stack = ts_writer_stack(c->writer, parent ? parent->stack : 0, at->frame);
	}
	return frames[frame - 1].stack;
}

/* An integer, or a string that contains one. */
static bool read_int(struct ts_json *js, int64_t *ret_value)
{
	struct ts_json_string string = { 0 };
	struct ts_json_number number = { 0 };
	int first = ts_json_peek(js);

	if (first == '"')
		return !ts_json_scan_string(js, &string) && !string.escaped &&
		       !ts_parse_int64(string.text, string.length, ret_value);
	if (first != '-' && !(first >= '0' && first <= '9'))
		return false;
	if (ts_json_scan_number(js, &number) || number.kind != TS_JSON_INT)
		return false;
	*ret_value = number.integer;
	return true;
}

/* One member of a frame object; invalid values are ignored. */
static void read_frame_member(struct ts_chrome *c, const struct ts_json_string *key,
			      const struct ts_chrome_raw *raw, struct ts_frame_row *row,
			      uint32_t *parent, int64_t *id)
{
	struct ts_json js = ts_chrome_reopen(raw);
	struct ts_json_string text = { 0 };
	bool is_text = *raw->at == '"' && !ts_json_scan_string(&js, &text);
	int64_t number;

	if (ts_json_string_is(key, "parent")) {
		*parent = ts_chrome_frame_key(c, raw);
	} else if (is_text && ts_json_string_is(key, "name")) {
		/* Viewers require a name; TraceSmith exports write "" for none. */
		row->name = c->native.active && !text.length ? 0 : ts_chrome_string(c, &text);
	} else if (is_text && ts_json_string_is(key, "category")) {
		row->category = ts_chrome_string(c, &text);
	} else if (is_text && ts_json_string_is(key, "file")) {
		row->file = ts_chrome_string(c, &text);
	} else if (is_text && ts_json_string_is(key, "kind")) {
		ts_enum_value("frame_kind", text.text, text.length, &row->kind);
	} else {
		js = ts_chrome_reopen(raw);
		if (!read_int(&js, &number))
			return;
		if (ts_json_string_is(key, "line"))
			row->line = number;
		else if (ts_json_string_is(key, "column"))
			row->column = number;
		else if (ts_json_string_is(key, "pc"))
			row->pc = number;
		else if (ts_json_string_is(key, "frame"))
			*id = number;
		else if (ts_json_string_is(key, "unnamed") && c->native.active && number)
			row->name = 0; /* set below: symbols have it */
		else if (ts_json_string_is(key, "mapping") && c->native.active)
			row->mapping =
				ts_native_rows_id(&c->native.shared, TS_TABLE_MAPPING, number);
	}
}

int ts_chrome_read_frame(struct ts_chrome *c)
{
	struct ts_json *js = c->js;
	struct ts_frame_row row = ts_frame_none;
	struct ts_json_walk walk = { .open = '{' };
	struct ts_json_string id = { 0 };
	struct ts_chrome_raw raw = { 0 };
	uint32_t parent = 0, frame;
	int64_t frame_id = 0;
	int rc = ts_json_scan_key(js, &id);

	if (!rc)
		rc = ts_chrome_check_length(js, &id);
	if (!rc && ts_json_peek(js) != '{')
		return ts_json_skip(js);
	if (rc)
		return rc;
	while (ts_json_walk_next(&walk, js)) {
		raw.at = js->next;
		walk.rc = ts_json_skip(js);
		raw.end = js->next;
		if (!walk.rc && (size_t)(raw.end - raw.at) > TS_IMPORT_MAX_STRING)
			walk.rc = ts_json_bad(js, raw.at, "a value is longer than 64 MiB");
		if (!walk.rc)
			read_frame_member(c, &walk.key, &raw, &row, &parent, &frame_id);
	}
	if (walk.rc)
		return walk.rc;
	frame = frame_by_text(c, &id);
	if (!frame)
		return TS_ENOMEM;
	/* A repeated id that was used before keeps its first meaning. */
	if (!c->stacks.frames[frame - 1].walked)
		c->stacks.frames[frame - 1] = (struct ts_chrome_frame){
			.parent = parent, .frame = ts_writer_frame(c->writer, &row), .defined = true
		};
	if (c->native.active && frame_id > 0)
		return ts_native_rows_set_id(&c->native.shared, TS_TABLE_FRAME, frame_id,
					     c->stacks.frames[frame - 1].frame);
	return TS_OK;
}

/* ---- stacks of events ---- */

/* A list of names, outermost first; 0 if it is not one. */
static uint32_t named_stack(struct ts_chrome *c, const struct ts_chrome_raw *raw)
{
	struct ts_json js = ts_chrome_reopen(raw);
	struct ts_json_string name = { 0 };
	struct ts_json_walk walk = { .open = '[' };
	uint32_t stack = 0;

	while (ts_json_walk_next(&walk, &js)) {
		struct ts_frame_row row = ts_frame_none;

		walk.rc = ts_json_scan_string(&js, &name);
		if (walk.rc)
			break;
		row.name = ts_chrome_string(c, &name);
		stack = ts_writer_stack(c->writer, stack, ts_writer_frame(c->writer, &row));
	}
	return walk.rc ? 0 : stack;
}

uint32_t ts_chrome_stack(struct ts_chrome *c, const struct ts_chrome_event *event,
			 uint32_t *ret_taken)
{
	uint32_t stack = 0;

	/* If the TraceSmith export names the stack, `sf` was left unresolved by its source. */
	if (event->has & TS_CHROME_HAS_NATIVE &&
	    memmem(event->native.at, (size_t)(event->native.end - event->native.at), "\"stack\"",
		   7))
		return 0;
	if (event->has & TS_CHROME_HAS(TS_CHROME_SF) && c->stacks.read) {
		uint32_t frame = ts_chrome_frame_key(c, &event->member[TS_CHROME_SF]);

		stack = ts_chrome_walk(c, c->stacks.frames, frame);
		if (stack)
			*ret_taken |= TS_CHROME_HAS(TS_CHROME_SF);
	}
	if (!stack && event->has & TS_CHROME_HAS(TS_CHROME_STACK)) {
		stack = named_stack(c, &event->member[TS_CHROME_STACK]);
		if (stack)
			*ret_taken |= TS_CHROME_HAS(TS_CHROME_STACK);
	}
	return stack;
}

/* ---- samples that wait for the frames ---- */

int ts_chrome_hold_sample(struct ts_chrome *c, const struct ts_chrome_held_sample *sample,
			  const int64_t *values)
{
	struct ts_chrome_stacks *stacks = &c->stacks;
	struct ts_chrome_held_sample *held;

	if (ts_grow_array((void **)&stacks->held, &stacks->held_capacity, stacks->held_count + 1,
			  sizeof(*stacks->held)) ||
	    ts_grow_array((void **)&stacks->values, &stacks->value_capacity,
			  stacks->value_count + sample->value_count + 1, sizeof(*stacks->values)))
		return TS_ENOMEM;
	held = &stacks->held[stacks->held_count++];
	*held = *sample;
	held->values = stacks->value_count;
	if (sample->value_count)
		memcpy(stacks->values + stacks->value_count, values,
		       sample->value_count * sizeof(*values));
	stacks->value_count += sample->value_count;
	return TS_OK;
}

/* No such frame: the id is kept as an extra member, as for any other event. */
static void keep_frame_id(struct ts_chrome *c, struct ts_chrome_held_sample *held, int64_t *values)
{
	const struct ts_shape *shape = ts_writer_shape_fields(c->writer, (uint32_t)held->row.shape);
	struct ts_field fields[TS_SHAPE_MAX_FIELDS];
	uint32_t count = shape ? shape->field_count : 0;

	if (count == TS_SHAPE_MAX_FIELDS) {
		ts_chrome_lose(c, TS_CHROME_LOSS_MANY, 1);
		return;
	}
	if (count)
		memcpy(fields, shape->fields, count * sizeof(*fields));
	fields[count++] = (struct ts_field){ .key = ts_chrome_text(c, "sf"),
					     .type = held->sf_type,
					     .beside = 1 };
	values[held->value_count++] = held->sf;
	held->row.shape = ts_writer_shape(c->writer, fields, count);
}

void ts_chrome_store_held_samples(struct ts_chrome *c)
{
	struct ts_chrome_stacks *stacks = &c->stacks;
	int64_t values[TS_SHAPE_MAX_FIELDS];

	for (size_t i = 0; i < stacks->held_count; i++) {
		struct ts_chrome_held_sample *held = &stacks->held[i];

		if (held->value_count)
			memcpy(values, stacks->values + held->values,
			       held->value_count * sizeof(*values));
		held->row.stack = ts_chrome_walk(c, stacks->frames, held->frame);
		if (!held->row.stack)
			keep_frame_id(c, held, values);
		ts_chrome_add(c, held->thread + 1, TS_TABLE_SAMPLE, &held->row, values);
	}
	stacks->held_count = 0;
	stacks->value_count = 0;
}
