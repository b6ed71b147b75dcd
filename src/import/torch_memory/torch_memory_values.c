/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of a snapshot as parts of rows: strings, arguments, times, stacks. Each text and frame
 * list is converted once.
 */
#include <string.h>

#include "import/torch_memory/torch_memory.h"

uint32_t torch_key(struct torch_memory *m, const char *key)
{
	return ts_import_string(m->import, key, strlen(key));
}

uint32_t torch_string(struct torch_memory *m, uint32_t text)
{
	if (!m->strings[text]) {
		size_t length = 0;
		const char *data = ts_strmap_text(&m->pickle.texts, text, &length);

		m->strings[text] = ts_import_string(m->import, data ? data : "", length);
	}
	return m->strings[text];
}

uint32_t torch_json(struct torch_memory *m, ts_pickle_value value)
{
	ts_text_clear(&m->json);
	if (!ts_pickle_json(&m->pickle, value, &m->json, &m->json_budget) || m->json.failed ||
	    m->json.length > TS_IMPORT_MAX_STRING) {
		ts_entities_add_loss(&m->entities, &torch_loss_value, 1);
		return 0;
	}
	return ts_import_string(m->import, ts_text_cstr(&m->json), m->json.length);
}

void torch_arg(struct torch_memory *m, uint32_t key, ts_pickle_value value)
{
	int64_t number;
	uint32_t json;

	switch (ts_pickle_kind(value)) {
	case TS_PICKLE_NONE:
		ts_row_args_add(&m->args, key, TS_ARG_NULL, 0);
		return;
	case TS_PICKLE_FALSE:
	case TS_PICKLE_TRUE:
		ts_row_args_add(&m->args, key, TS_ARG_BOOL,
				ts_pickle_kind(value) == TS_PICKLE_TRUE);
		return;
	case TS_PICKLE_INT:
	case TS_PICKLE_WIDE:
		if (ts_pickle_int(&m->pickle, value, &number))
			ts_row_args_add(&m->args, key, TS_ARG_INT, number);
		return;
	case TS_PICKLE_FLOAT:
		ts_row_args_add_double(&m->args, key, ts_pickle_float(&m->pickle, value));
		return;
	case TS_PICKLE_TEXT:
	case TS_PICKLE_BYTES:
		ts_row_args_add(&m->args, key, TS_ARG_STRING,
				torch_string(m, ts_pickle_text(value)));
		return;
	case TS_PICKLE_BIG:
		ts_entities_add_loss(&m->entities, &torch_loss_value, 1);
		return;
	default:
		json = torch_json(m, value);
		if (json)
			ts_row_args_add(&m->args, key, TS_ARG_JSON, json);
		return;
	}
}

bool torch_time(struct torch_memory *m, ts_pickle_value value, int64_t *ret_ns)
{
	int64_t us, ns;

	if (!ts_pickle_int(&m->pickle, value, &us) || __builtin_mul_overflow(us, 1000, &ns) ||
	    ns == TS_ABSENT)
		return false;
	*ret_ns = ns;
	return true;
}

/* ---- stacks ---- */

/* Python frames have a .py file, or "<string>" and similar; "??" is a C++ frame without symbols. */
static void set_file(struct torch_memory *m, struct ts_frame_row *frame, uint32_t text)
{
	size_t length = 0;
	const char *file = ts_strmap_text(&m->pickle.texts, text, &length);

	frame->kind = TS_FRAME_NATIVE;
	if (!file || !length || !strcmp(file, "??"))
		return;
	if (ts_ends_with_len(file, length, ".py") || file[0] == '<')
		frame->kind = TS_FRAME_PYTHON;
	/* Snapshots made from a profile have names like "train.py(12): step" and no file. */
	if (!strcmp(file, "none"))
		frame->kind = TS_FRAME_UNKNOWN;
	else
		frame->file = torch_string(m, text);
}

static uint32_t make_frame(struct torch_memory *m, ts_pickle_value value)
{
	struct ts_frame_row frame = ts_frame_none;
	struct ts_pickle_items items = ts_pickle_items(&m->pickle, value);
	ts_pickle_value key, member;
	uint64_t left_out = 0;

	while (ts_pickle_next_pair(&items, &key, &member)) {
		uint32_t text = ts_pickle_text(member);

		if (ts_pickle_text(key) == TEXT_FILENAME && text != TS_STRMAP_NONE)
			set_file(m, &frame, text);
		else if (ts_pickle_text(key) == TEXT_NAME && text != TS_STRMAP_NONE)
			frame.name = torch_string(m, text);
		else if (ts_pickle_text(key) != TEXT_LINE ||
			 !ts_pickle_int(&m->pickle, member, &frame.line))
			left_out++;
	}
	if (frame.line <= 0)
		frame.line = TS_ABSENT;
	if (left_out)
		ts_entities_add_loss(&m->entities, &torch_loss_frame, left_out);
	return ts_writer_frame(m->import->writer, &frame);
}

/* Each frame dict is converted once, however often it is referenced. */
static uint32_t frame_of(struct torch_memory *m, ts_pickle_value value)
{
	uint32_t *note, frame;

	if (ts_pickle_kind(value) != TS_PICKLE_DICT)
		return 0;
	note = ts_pickle_note(&m->pickle, value);
	if (*note && *note <= NOTE_MAX_ID)
		return *note - 1;
	if (*note == TS_PICKLE_NOTE_CUT)
		return 0;
	frame = make_frame(m, value);
	*note = TS_MIN(frame, NOTE_MAX_ID - 1) + 1;
	return frame;
}

/* The file has the innermost frame first, a trace the outermost. */
static uint32_t make_stack(struct torch_memory *m, ts_pickle_value list)
{
	struct ts_pickle_items items = ts_pickle_items(&m->pickle, list);
	uint32_t count = ts_pickle_count(&m->pickle, list), used = 0, stack = 0;
	TS_AUTO_FREE uint32_t *frames = ts_alloc_array(count, sizeof(*frames));
	ts_pickle_value value;

	if (!frames) {
		torch_no_memory(m);
		return 0;
	}
	while (used < count && ts_pickle_next(&items, &value)) {
		frames[used] = frame_of(m, value);
		if (frames[used])
			used++;
		else
			ts_entities_add_loss(&m->entities, &torch_loss_frame, 1);
	}
	while (used > 0)
		stack = ts_writer_stack(m->import->writer, stack, frames[--used]);
	return stack;
}

uint32_t torch_stack(struct torch_memory *m, ts_pickle_value list)
{
	uint32_t *note, stack;

	if (ts_pickle_kind(list) != TS_PICKLE_LIST)
		return 0;
	note = ts_pickle_note(&m->pickle, list);
	if (*note)
		return *note <= NOTE_MAX_ID ? *note - 1 : 0;
	stack = make_stack(m, list);
	*note = TS_MIN(stack, NOTE_MAX_ID - 1) + 1;
	return stack;
}
