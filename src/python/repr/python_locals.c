/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and shortened values of a frame's local variables: its own, cells, and free variables. The
 * frame is read as it is now; it may have returned, so implausible values are "?". Unbound
 * variables are left out.
 */
#include <inttypes.h>
#include <stdio.h>

#include "python/repr/repr_internal.h"

#define MAX_LOCALS 256
#define VALUE_BYTES 240 /* of one value */
#define HIDDEN 0x10     /* co_localspluskinds: of an inlined comprehension */

struct locals {
	struct ts_python_process_view *view;
	struct ts_python_classes classes;
	struct ts_text *out;
	size_t limit, start; /* of `out` */
	unsigned int shown, left_out;
};

/* ---- values ---- */

/* Contents of a cell; 0: empty. */
static uint64_t out_of_cell(struct locals *locals, uint64_t object)
{
	const struct ts_python_class *class =
		ts_python_class_of(locals->view, &locals->classes, object);
	uint64_t content;

	if (!class || strcmp(class->name, "cell") != 0)
		return object;
	if (!ts_python_memory_read_pointer(locals->view->memory,
					   object + locals->view->layout->object.bytes, &content))
		return 0;
	return content;
}

/* The text of a slot; false: unbound. */
static bool value_text(struct locals *locals, uint64_t slot, struct ts_text *text)
{
	struct ts_python_repr repr = {
		.view = locals->view, .classes = &locals->classes, .out = text, .end = VALUE_BYTES
	};
	bool is_tagged = locals->view->layout->frame.locals_are_tagged;

	/* 3.14 on: the two lowest bits are reference tags, or mark an integer. */
	if (is_tagged && (slot & 3) == 3) {
		ts_text_append_int(text, (int64_t)slot >> 2);
		return true;
	}
	slot = is_tagged ? slot & ~UINT64_C(3) : slot;
	if (slot)
		slot = out_of_cell(locals, slot);
	if (!slot)
		return false;
	ts_python_repr_value(&repr, slot);
	return true;
}

/* Appends "name":"value", or counts it if it does not fit. */
static void add_local(struct locals *locals, uint64_t name, uint64_t slot)
{
	TS_SCOPED(ts_text) value = { 0 }, pair = { 0 };
	char text[128];
	int bytes = ts_python_read_text(locals->view, name, text, sizeof(text));

	if (bytes < 0)
		bytes = snprintf(text, sizeof(text), "?");
	if (!value_text(locals, slot, &value))
		return;
	if (locals->shown)
		ts_text_append_char(&pair, ',');
	ts_text_append_json(&pair, text, (size_t)bytes);
	ts_text_append_char(&pair, ':');
	ts_text_append_json(&pair, value.data ? value.data : "", value.length);
	/* The count of omitted variables must fit too. */
	if (locals->out->length - locals->start + pair.length + 32 > locals->limit) {
		locals->left_out++;
		return;
	}
	ts_text_append(locals->out, pair.data, pair.length);
	if (pair.failed || value.failed)
		locals->out->failed = true;
	locals->shown++;
}

/* ---- names ---- */

/* Items of a tuple of names, at most `most`; returns their number. */
static size_t read_names(struct ts_python_process_view *view, uint64_t code, uint16_t offset,
			 uint64_t *names, size_t most)
{
	struct ts_python_type type;
	uint64_t tuple;
	int64_t size;

	if (!ts_python_has(offset) || !offset ||
	    !ts_python_memory_read_pointer(view->memory, code + offset, &tuple) ||
	    !ts_python_type_of(view, tuple, &type) || !(type.flags & TS_PYTHON_TYPE_TUPLE))
		return 0;
	size = ts_python_var_size(view, tuple);
	if (size <= 0)
		return 0;
	if ((uint64_t)size < most)
		most = (size_t)size;
	if (!ts_python_memory_read(view->memory, tuple + view->layout->tuple.items, names,
				   most * 8))
		return 0;
	return most;
}

/* All names, in slot order. */
static size_t all_names(struct ts_python_process_view *view, uint64_t code, uint64_t *names)
{
	const struct ts_python_layout *layout = view->layout;
	size_t count;

	if (layout->frames != TS_PYTHON_FRAME_OBJECTS)
		return read_names(view, code, layout->code.local_names, names, MAX_LOCALS);
	count = read_names(view, code, layout->code.variable_names, names, MAX_LOCALS);
	count += read_names(view, code, layout->code.cell_names, names + count, MAX_LOCALS - count);
	count += read_names(view, code, layout->code.free_names, names + count, MAX_LOCALS - count);
	return count;
}

/* Which names to hide; none if that is unreadable. */
static void read_kinds(struct ts_python_process_view *view, uint64_t code, uint8_t *kinds,
		       size_t count)
{
	const struct ts_python_layout *layout = view->layout;
	uint64_t bytes;

	memset(kinds, 0, count);
	if (layout->frames == TS_PYTHON_FRAME_OBJECTS || !ts_python_has(layout->code.local_kinds) ||
	    !ts_python_memory_read_pointer(view->memory, code + layout->code.local_kinds, &bytes) ||
	    ts_python_var_size(view, bytes) < (int64_t)count ||
	    !ts_python_memory_read(view->memory, bytes + layout->bytes.bytes, kinds, count))
		memset(kinds, 0, count);
}

int ts_python_frame_locals(struct ts_python_process_view *view, uint64_t frame, uint64_t code,
			   size_t limit, struct ts_text *out)
{
	struct locals locals = { .view = view, .out = out, .limit = limit, .start = out->length };
	uint64_t names[MAX_LOCALS], slots[MAX_LOCALS];
	uint8_t kinds[MAX_LOCALS];
	size_t count;

	if (limit < 48)
		return TS_EINVAL;
	ts_text_append_char(out, '{');
	count = all_names(view, code, names);
	if (count && !ts_python_memory_read(view->memory, frame + view->layout->frame.locals, slots,
					    count * 8))
		count = 0;
	read_kinds(view, code, kinds, count);
	for (size_t i = 0; i < count; i++)
		if (!(kinds[i] & HIDDEN) || slots[i])
			add_local(&locals, names[i], slots[i]);
	if (locals.left_out)
		ts_text_printf(out, "%s\"...\":\"%u more\"", locals.shown ? "," : "",
			       locals.left_out);
	ts_text_append_char(out, '}');
	return ts_text_status(out);
}
