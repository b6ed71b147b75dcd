/* SPDX-License-Identifier: Apache-2.0 */
/*
 * external_annotations: starts and ends of record_function() blocks of the program. An end belongs
 * to the latest open start with its name and device. Blocks of several threads are mixed: one that
 * ends while a later one is open is not nested, and becomes an async slice.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/ns.h"
#include "import/torch_memory/torch_memory.h"

struct note {
	ts_pickle_value value;
	int64_t device, time;
	uint32_t name, stage;
	unsigned int extras;
};

/* Limit on open blocks searched, so that a crafted file cannot cause quadratic time. */
#define OPEN_SEARCHED 256

struct open {
	struct note *list;
	size_t count, capacity;
	int64_t async; /* ids so far */
};

static struct note read_note(struct torch_memory *m, ts_pickle_value dict)
{
	struct note note = { .value = dict, .name = TS_STRMAP_NONE, .stage = TS_STRMAP_NONE };
	struct ts_pickle_items items = ts_pickle_items(&m->pickle, dict);
	ts_pickle_value key, value;

	note.time = TS_ABSENT;
	while (ts_pickle_next_pair(&items, &key, &value)) {
		switch (ts_pickle_text(key)) {
		case TEXT_NAME:
			note.name = ts_pickle_text(value);
			break;
		case TEXT_STAGE:
			note.stage = ts_pickle_text(value);
			break;
		case TEXT_DEVICE:
			ts_pickle_int(&m->pickle, value, &note.device);
			break;
		case TEXT_TIME_US:
			torch_time(m, value, &note.time);
			break;
		default:
			note.extras++;
		}
	}
	return note;
}

static void add_extras(struct torch_memory *m, const struct note *note, bool with_stage)
{
	struct ts_pickle_items items = ts_pickle_items(&m->pickle, note->value);
	ts_pickle_value key, value;

	while (ts_pickle_next_pair(&items, &key, &value)) {
		uint32_t text = ts_pickle_text(key);

		if (text == TEXT_NAME || text == TEXT_DEVICE || text == TEXT_TIME_US ||
		    (text == TEXT_STAGE && !with_stage))
			continue;
		if (text == TS_STRMAP_NONE)
			ts_entities_add_loss(&m->entities, &torch_loss_value, 1);
		else
			torch_arg(m, torch_string(m, text), value);
	}
}

static int64_t thread_of(struct torch_memory *m, const struct note *note)
{
	struct torch_device *device = torch_device(m, note->device);

	return device ? torch_thread(m, device) : 0;
}

static void add_slice(struct torch_memory *m, struct open *open, const struct note *note,
		      int64_t duration, bool is_nested)
{
	struct ts_slice_row row = ts_slice_none;

	row.start = note->time;
	row.duration = duration;
	row.thread = thread_of(m, note);
	row.name = torch_string(m, note->name);
	row.category = m->category;
	if (!is_nested) {
		row.kind = TS_SLICE_ASYNC;
		ts_text_clear(&m->json);
		ts_text_printf(&m->json, "%" PRId64, ++open->async);
		row.id = ts_import_string(m->import, ts_text_cstr(&m->json), m->json.length);
	}
	add_extras(m, note, false);
	row.shape = ts_row_args_shape(&m->args, m->import->writer);
	ts_writer_add(m->import->writer, TS_TABLE_SLICE, &row, m->args.values);
	m->import->result.events++;
	ts_row_args_clear(&m->args);
}

/* Neither a start nor the end of one. */
static void add_mark(struct torch_memory *m, const struct note *note)
{
	struct ts_mark_row row = ts_mark_none;

	row.start = note->time;
	row.thread = thread_of(m, note);
	row.category = m->category;
	row.name = note->name == TS_STRMAP_NONE ? torch_key(m, "annotation")
						: torch_string(m, note->name);
	add_extras(m, note, true);
	row.shape = ts_row_args_shape(&m->args, m->import->writer);
	ts_writer_add(m->import->writer, TS_TABLE_MARK, &row, m->args.values);
	m->import->result.events++;
	ts_row_args_clear(&m->args);
}

static bool take_end(struct torch_memory *m, struct open *open, const struct note *end)
{
	size_t last = open->count - TS_MIN(open->count, (size_t)OPEN_SEARCHED);
	bool is_nested = true;

	for (size_t i = open->count; i-- > last;) {
		struct note *begin = &open->list[i];

		if (begin->device != end->device)
			continue;
		if (begin->name == end->name && begin->time <= end->time) {
			add_slice(m, open, begin, ts_ns_sub(end->time, begin->time), is_nested);
			memmove(begin, begin + 1, (--open->count - i) * sizeof(*begin));
			return true;
		}
		is_nested = false;
	}
	return false;
}

static void take_note(struct torch_memory *m, struct open *open, const struct note *note)
{
	m->entities.time = note->time;
	if (note->name == TS_STRMAP_NONE ||
	    (note->stage != TEXT_START && note->stage != TEXT_END)) {
		add_mark(m, note);
	} else if (note->stage == TEXT_END) {
		if (!take_end(m, open, note))
			add_mark(m, note);
	} else if (ts_grow_array((void **)&open->list, &open->capacity, open->count + 1,
				 sizeof(*open->list))) {
		torch_no_memory(m);
	} else {
		open->list[open->count++] = *note;
	}
}

void torch_read_annotations(struct torch_memory *m, ts_pickle_value list)
{
	struct ts_pickle_items items = ts_pickle_items(&m->pickle, list);
	struct open open = { 0 };
	ts_pickle_value value;

	if (ts_pickle_kind(list) != TS_PICKLE_LIST)
		return;
	while (torch_step(m) && ts_pickle_next(&items, &value)) {
		struct note note;

		if (ts_pickle_kind(value) != TS_PICKLE_DICT || *ts_pickle_note(&m->pickle, value)) {
			if (ts_pickle_kind(value) != TS_PICKLE_DICT ||
			    *ts_pickle_note(&m->pickle, value) != TS_PICKLE_NOTE_CUT)
				ts_entities_add_loss(&m->entities, &torch_loss_value, 1);
			continue;
		}
		*ts_pickle_note(&m->pickle, value) = NOTE_DONE;
		note = read_note(m, value);
		if (note.time == TS_ABSENT)
			ts_entities_add_loss(&m->entities, &torch_loss_value, 1);
		else
			take_note(m, &open, &note);
	}
	for (size_t i = 0; !m->rc && i < open.count; i++)
		add_slice(m, &open, &open.list[i], -1, true);
	free(open.list);
}
