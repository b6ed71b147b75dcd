/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans with separate begin and end events. The open spans of a track form a stack; a row is added
 * when a span ends. An end before its begin, as on tracks written by several threads, is kept for
 * it.
 */
#include <stdlib.h>

#include "import/perfetto/perfetto_import.h"
#include "import/perfetto/perfetto_kinds.h"

static struct ts_perfetto_open *open_of(struct ts_perfetto *p, size_t track)
{
	struct ts_perfetto_track *at = &p->tracks[track - 1];

	if (!at->open)
		at->open = calloc(1, sizeof(*at->open));
	return at->open;
}

static const int64_t *values_of(const struct ts_perfetto_open *open,
				const struct ts_perfetto_span *span)
{
	return open->values ? open->values + span->values : NULL;
}

static void add_slice(struct ts_perfetto *p, const struct ts_perfetto_span *span, int64_t duration,
		      uint32_t shape, const int64_t *values)
{
	struct ts_slice_row row = ts_slice_none;

	row.start = span->start;
	row.duration = duration;
	row.thread = span->thread;
	row.name = span->name;
	row.category = span->category;
	row.stack = span->stack;
	row.kind = span->id ? TS_SLICE_ASYNC : TS_SLICE_NESTED;
	row.id = span->id;
	row.shape = shape;
	ts_perfetto_add(p, TS_TABLE_SLICE, &row, values);
}

void ts_perfetto_slice(struct ts_perfetto *p, const struct ts_perfetto_span *span, int64_t duration)
{
	add_slice(p, span, duration, ts_row_args_shape(&p->args, p->writer), p->args.values);
}

/* Thread time and instructions of a span, if both ends have them. */
static void add_difference(struct ts_perfetto *p, uint32_t key, int64_t begin, int64_t end)
{
	int64_t difference;

	if (begin != TS_ABSENT && end != TS_ABSENT &&
	    !__builtin_sub_overflow(end, begin, &difference))
		ts_row_args_add(&p->args, key, TS_ARG_INT, difference);
}

static int64_t duration_of(struct ts_perfetto *p, int64_t start, int64_t end)
{
	int64_t duration;

	if (__builtin_sub_overflow(end, start, &duration))
		duration = end < start ? -1 : INT64_MAX;
	if (duration >= 0)
		return duration;
	ts_perfetto_lose(p, &ts_perfetto_loss_backwards, 1);
	return 0;
}

/* Puts the arguments of a span before those of its end, which are in p->args. */
static void prepend_args(struct ts_perfetto *p, const struct ts_perfetto_span *span,
			 const int64_t *values)
{
	const struct ts_shape *shape = ts_writer_shape_fields(p->writer, span->shape);
	struct ts_row_args *args = &p->args;
	uint32_t fields = shape ? shape->field_count : 0, count = shape ? shape->value_count : 0;

	if (!fields)
		return;
	while (args->field_count && args->field_count + fields > TS_SHAPE_MAX_FIELDS) {
		args->left_out++;
		if (ts_arg_has_value(args->fields[--args->field_count].type))
			args->value_count--;
	}
	memmove(args->fields + fields, args->fields, args->field_count * sizeof(*args->fields));
	memmove(args->values + count, args->values, args->value_count * sizeof(*args->values));
	memcpy(args->fields, shape->fields, fields * sizeof(*args->fields));
	if (count)
		memcpy(args->values, values, count * sizeof(*args->values));
	args->field_count += fields;
	args->value_count += count;
}

/* Adds the row of a span that has ended. */
static void close_span(struct ts_perfetto *p, struct ts_perfetto_open *open, size_t index,
		       const struct ts_perfetto_span *end)
{
	struct ts_perfetto_span *span = &open->spans[index];
	int64_t duration = duration_of(p, span->start, end->start);

	add_difference(p, p->key_thread_dur, span->thread_time, end->thread_time);
	add_difference(p, p->key_instruction_delta, span->instructions, end->instructions);
	if (end->stack && !span->stack)
		span->stack = end->stack;
	if (!span->name)
		span->name = end->name;
	if (p->args.field_count) {
		prepend_args(p, span, values_of(open, span));
		ts_perfetto_slice(p, span, duration);
	} else {
		add_slice(p, span, duration, span->shape, values_of(open, span));
	}
	span->is_closed = true;
	while (open->count && open->spans[open->count - 1].is_closed)
		open->value_count = open->spans[--open->count].values;
}

/* The first end after this begin in time, among ends that came before it in the file. */
static bool take_end(struct ts_perfetto_open *open, int64_t start, int64_t *ret_end)
{
	size_t best = open->end_count;

	for (size_t i = 0; i < open->end_count; i++)
		if (open->ends[i] >= start &&
		    (best == open->end_count || open->ends[i] < open->ends[best]))
			best = i;
	if (best == open->end_count)
		return false;
	*ret_end = open->ends[best];
	open->ends[best] = open->ends[--open->end_count];
	return true;
}

int ts_perfetto_begin(struct ts_perfetto *p, size_t track, const struct ts_perfetto_span *span)
{
	struct ts_perfetto_open *open = open_of(p, track);
	struct ts_perfetto_span *at;
	int64_t end;

	if (!open)
		return TS_ENOMEM;
	if (TS_UNLIKELY(open->end_count) && take_end(open, span->start, &end)) {
		ts_perfetto_slice(p, span, duration_of(p, span->start, end));
		return TS_OK;
	}
	if (ts_grow_array((void **)&open->spans, &open->capacity, open->count + 1,
			  sizeof(*open->spans)) ||
	    ts_grow_array((void **)&open->values, &open->value_capacity,
			  open->value_count + p->args.value_count, sizeof(*open->values)))
		return TS_ENOMEM;
	at = &open->spans[open->count++];
	*at = *span;
	at->shape = ts_row_args_shape(&p->args, p->writer);
	at->values = (uint32_t)open->value_count;
	at->is_closed = false;
	if (p->args.value_count)
		memcpy(open->values + open->value_count, p->args.values,
		       p->args.value_count * sizeof(*open->values));
	open->value_count += p->args.value_count;
	return TS_OK;
}

/* Limit on ends without a begin. */
#define MAX_ENDS 64

int ts_perfetto_end(struct ts_perfetto *p, size_t track, const struct ts_perfetto_span *end)
{
	struct ts_perfetto_open *open = open_of(p, track);
	size_t index;

	if (!open)
		return TS_ENOMEM;
	index = open->count;
	/* A named end closes the newest span with this name. */
	while (index && (open->spans[index - 1].is_closed ||
			 (end->name && open->spans[index - 1].name != end->name)))
		index--;
	if (TS_LIKELY(index)) {
		close_span(p, open, index - 1, end);
		return TS_OK;
	}
	if (open->count || open->end_count >= MAX_ENDS) {
		ts_perfetto_lose(p, &ts_perfetto_loss_end, 1);
		return TS_OK;
	}
	if (ts_grow_array((void **)&open->ends, &open->end_capacity, open->end_count + 1,
			  sizeof(*open->ends)))
		return TS_ENOMEM;
	open->ends[open->end_count++] = end->start;
	return TS_OK;
}

void ts_perfetto_finish_slices(struct ts_perfetto *p)
{
	for (size_t i = 0; i < p->track_count; i++) {
		struct ts_perfetto_open *open = p->tracks[i].open;

		if (!open)
			continue;
		for (size_t k = 0; k < open->count; k++)
			if (!open->spans[k].is_closed)
				add_slice(p, &open->spans[k], -1, open->spans[k].shape,
					  values_of(open, &open->spans[k]));
		if (open->end_count)
			ts_perfetto_lose(p, &ts_perfetto_loss_end, open->end_count);
		open->count = open->end_count = 0;
	}
}
