/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns begin and end events into slices. Pending events are buffered and sorted by time (files are
 * often out of order across threads, and sometimes within one); when the buffer is full, its older
 * half is matched. A lane is a thread or an async id; an end closes the innermost open slice of its
 * name in its lane, else the innermost one, each found without a search.
 */
#include "import/chrome/chrome_import.h"

/* Limits: pending events, argument values kept, and open slices. */
#define MAX_WAITING ((size_t)1 << 20)
#define MAX_VALUES ((size_t)1 << 23)
#define MAX_OPEN ((size_t)1 << 22)

void ts_chrome_pairs_release(struct ts_chrome *c)
{
	struct ts_chrome_pairs *pairs = &c->pairs;

	free(pairs->waiting);
	free(pairs->open);
	free(pairs->values);
	free(pairs->spare);
	ts_map_release(&pairs->lanes);
	ts_pairmap_release(&pairs->names);
}

/* ---- argument values ---- */

static void move_values(struct ts_chrome_pairs *pairs, struct ts_chrome_half *half, size_t *count)
{
	if (half->value_count)
		memcpy(pairs->spare + *count, pairs->values + half->values,
		       half->value_count * sizeof(*pairs->values));
	half->values = *count;
	*count += half->value_count;
}

/* Drops values of finished events once they are the majority. */
static int compact_values(struct ts_chrome_pairs *pairs)
{
	size_t count = 0, capacity;
	int64_t *values;

	if (pairs->value_count <= 2 * pairs->value_live + 65536)
		return TS_OK;
	if (ts_grow_array((void **)&pairs->spare, &pairs->spare_capacity, pairs->value_live + 1,
			  sizeof(*pairs->spare)))
		return TS_ENOMEM;
	for (size_t i = 0; i < pairs->waiting_count; i++)
		move_values(pairs, &pairs->waiting[i], &count);
	for (size_t i = 0; i < pairs->open_count; i++)
		if (pairs->open[i].used)
			move_values(pairs, &pairs->open[i].half, &count);
	values = pairs->values;
	capacity = pairs->value_capacity;
	pairs->values = pairs->spare;
	pairs->value_capacity = pairs->spare_capacity;
	pairs->value_count = count;
	pairs->spare = values;
	pairs->spare_capacity = capacity;
	return TS_OK;
}

static int keep_values(struct ts_chrome_pairs *pairs, struct ts_chrome_half *half,
		       const int64_t *values)
{
	int rc = compact_values(pairs);

	if (rc || ts_grow_array((void **)&pairs->values, &pairs->value_capacity,
				pairs->value_count + half->value_count + 1, sizeof(*pairs->values)))
		return TS_ENOMEM;
	if (half->value_count)
		memcpy(pairs->values + pairs->value_count, values,
		       half->value_count * sizeof(*values));
	half->values = pairs->value_count;
	pairs->value_count += half->value_count;
	pairs->value_live += half->value_count;
	return TS_OK;
}

/* ---- slices ---- */

static void add_slice(struct ts_chrome *c, const struct ts_chrome_half *begin, int64_t duration,
		      uint32_t shape, const int64_t *values)
{
	struct ts_slice_row row = ts_slice_none;

	row.start = begin->time;
	row.duration = duration;
	row.thread = c->threads[begin->thread].row.id;
	row.name = begin->name;
	row.category = begin->category;
	row.kind = begin->is_async ? TS_SLICE_ASYNC : TS_SLICE_NESTED;
	row.id = begin->id;
	row.stack = begin->stack;
	row.shape = shape;
	ts_chrome_add(c, begin->thread + 1, TS_TABLE_SLICE, &row, values);
}

/* Merges the fields of two shapes. */
struct merge {
	struct ts_field fields[TS_SHAPE_MAX_FIELDS];
	int64_t values[TS_SHAPE_MAX_FIELDS];
	uint32_t count;
};

/* Adds a field, or replaces the one with the same key. False: too many. */
static bool merge_field(struct merge *merge, uint32_t limit, const struct ts_field *field,
			int64_t value)
{
	uint32_t at = 0;

	while (at < limit &&
	       (merge->fields[at].key != field->key || merge->fields[at].beside != field->beside))
		at++;
	if (at == limit)
		at = merge->count;
	if (at == TS_SHAPE_MAX_FIELDS)
		return false;
	merge->fields[at] = *field;
	merge->values[at] = value;
	merge->count += at == merge->count;
	return true;
}

static bool merge_shape(struct ts_chrome *c, struct merge *merge, uint32_t shape,
			const int64_t *values)
{
	const struct ts_shape *fields = ts_writer_shape_fields(c->writer, shape);
	uint32_t limit = merge->count;

	for (uint32_t i = 0; fields && i < fields->field_count; i++) {
		const struct ts_field *field = &fields->fields[i];
		int64_t value = ts_arg_has_value(field->type) ? *values++ : 0;

		if (!merge_field(merge, limit, field, value))
			return false;
	}
	return true;
}

/* A slice whose end has arguments too. */
static void add_merged(struct ts_chrome *c, const struct ts_chrome_half *begin, int64_t duration,
		       const struct ts_chrome_half *end)
{
	const int64_t *values = c->pairs.values;
	struct merge merge;
	uint32_t count = 0;

	merge.count = 0;
	if (!merge_shape(c, &merge, begin->shape, values + begin->values) ||
	    !merge_shape(c, &merge, end->shape, values + end->values)) {
		ts_chrome_lose(c, TS_CHROME_LOSS_MANY, 1);
		add_slice(c, begin, duration, begin->shape, values + begin->values);
		return;
	}
	for (uint32_t i = 0; i < merge.count; i++)
		if (ts_arg_has_value(merge.fields[i].type))
			merge.values[count++] = merge.values[i];
	add_slice(c, begin, duration, ts_writer_shape(c->writer, merge.fields, merge.count),
		  merge.values);
}

/* ---- open slices ---- */

/* Free slots are linked through `outer`. */
static uint32_t take_slot(struct ts_chrome *c)
{
	struct ts_chrome_pairs *pairs = &c->pairs;
	uint32_t slot = pairs->free;

	if (slot) {
		pairs->free = pairs->open[slot - 1].outer;
		return slot;
	}
	if (ts_grow_array((void **)&pairs->open, &pairs->open_capacity, pairs->open_count + 1,
			  sizeof(*pairs->open)))
		return 0;
	return (uint32_t)++pairs->open_count;
}

static int open_slice(struct ts_chrome *c, const struct ts_chrome_half *begin)
{
	struct ts_chrome_pairs *pairs = &c->pairs;
	uint32_t slot = take_slot(c);
	uint64_t *lane = ts_map_insert(&pairs->lanes, begin->lane, NULL);
	uint64_t *name = ts_pairmap_insert(&pairs->names, begin->lane, begin->name, NULL);
	struct ts_chrome_open *open;

	if (!slot || !lane || !name)
		return TS_ENOMEM;
	if (pairs->live == MAX_OPEN)
		return ts_json_bad(c->js, c->js->next, "more than 4194304 slices open at once");
	open = &pairs->open[slot - 1];
	*open = (struct ts_chrome_open){ .half = *begin,
					 .outer = (uint32_t)*lane,
					 .outer_same = (uint32_t)*name,
					 .used = true };
	if (*lane)
		pairs->open[*lane - 1].inner = slot;
	*lane = slot;
	*name = slot;
	pairs->live++;
	return TS_OK;
}

/* Removes a slice from its lane. It is the innermost of its name there. */
static void close_slot(struct ts_chrome_pairs *pairs, uint32_t slot, uint64_t *lane, uint64_t *name)
{
	struct ts_chrome_open *open = &pairs->open[slot - 1];

	*name = open->outer_same;
	if (open->inner)
		pairs->open[open->inner - 1].outer = open->outer;
	else
		*lane = open->outer;
	if (open->outer)
		pairs->open[open->outer - 1].inner = open->inner;
	open->used = false;
	open->outer = pairs->free;
	pairs->free = slot;
	pairs->live--;
	pairs->value_live -= open->half.value_count;
}

static int end_slice(struct ts_chrome *c, const struct ts_chrome_half *end)
{
	struct ts_chrome_pairs *pairs = &c->pairs;
	uint64_t *lane = ts_map_insert(&pairs->lanes, end->lane, NULL);
	uint64_t *name = NULL, same = 0;
	const struct ts_chrome_half *begin;
	uint32_t slot;
	int64_t duration;

	if (!lane)
		return TS_ENOMEM;
	/* An end without a name closes the innermost slice of any name. */
	if (end->name)
		ts_pairmap_get(&pairs->names, end->lane, end->name, &same);
	slot = (uint32_t)(same ? same : *lane);
	if (!slot) {
		ts_chrome_lose(c, TS_CHROME_LOSS_END, 1);
		return TS_OK;
	}
	begin = &pairs->open[slot - 1].half;
	name = ts_pairmap_insert(&pairs->names, begin->lane, begin->name, NULL);
	if (!name)
		return TS_ENOMEM;
	if (__builtin_sub_overflow(end->time, begin->time, &duration))
		duration = INT64_MAX;
	if (end->shape)
		add_merged(c, begin, duration, end);
	else
		add_slice(c, begin, duration, begin->shape, pairs->values + begin->values);
	close_slot(pairs, slot, lane, name);
	/* Async ids are many and mostly used once. */
	if (pairs->live == 0 &&
	    (ts_map_count(&pairs->lanes) > 65536 || ts_pairmap_count(&pairs->names) > 65536)) {
		ts_map_clear(&pairs->lanes);
		ts_pairmap_clear(&pairs->names);
	}
	return TS_OK;
}

/* ---- halves that wait ---- */

static int compare_halves(const void *a, const void *b)
{
	const struct ts_chrome_half *left = a, *right = b;

	if (left->time != right->time)
		return left->time < right->time ? -1 : 1;
	return left->sequence < right->sequence ? -1 : 1;
}

/* Matches the oldest `count` pending events. */
static int match(struct ts_chrome *c, size_t count)
{
	struct ts_chrome_pairs *pairs = &c->pairs;
	int rc = TS_OK;

	if (!count)
		return TS_OK;
	if (pairs->unsorted)
		qsort(pairs->waiting, pairs->waiting_count, sizeof(*pairs->waiting),
		      compare_halves);
	pairs->unsorted = false;
	for (size_t i = 0; i < count && !rc; i++) {
		const struct ts_chrome_half *half = &pairs->waiting[i];

		pairs->waiting_values -= half->value_count;
		if (half->is_end) {
			rc = end_slice(c, half);
			pairs->value_live -= half->value_count;
		} else {
			rc = open_slice(c, half);
		}
	}
	pairs->waiting_count -= count;
	memmove(pairs->waiting, pairs->waiting + count,
		pairs->waiting_count * sizeof(*pairs->waiting));
	for (size_t i = 0; i < pairs->waiting_count; i++)
		pairs->waiting[i].sequence = (uint32_t)i;
	pairs->sequence = (uint32_t)pairs->waiting_count;
	return rc;
}

int ts_chrome_add_half(struct ts_chrome *c, const struct ts_chrome_half *half,
		       const int64_t *values)
{
	struct ts_chrome_pairs *pairs = &c->pairs;
	struct ts_chrome_half *entry;
	int rc;

	if (pairs->waiting_count >= MAX_WAITING || pairs->waiting_values >= MAX_VALUES) {
		rc = match(c, pairs->waiting_count / 2 + 1);
		if (rc)
			return rc;
	}
	if (ts_grow_array((void **)&pairs->waiting, &pairs->waiting_capacity,
			  pairs->waiting_count + 1, sizeof(*pairs->waiting)))
		return TS_ENOMEM;
	entry = &pairs->waiting[pairs->waiting_count];
	*entry = *half;
	entry->sequence = pairs->sequence++;
	rc = keep_values(pairs, entry, values);
	if (rc)
		return rc;
	if (pairs->waiting_count && entry[-1].time > entry->time)
		pairs->unsorted = true;
	pairs->waiting_values += entry->value_count;
	pairs->waiting_count++;
	return TS_OK;
}

int ts_chrome_finish_pairs(struct ts_chrome *c)
{
	struct ts_chrome_pairs *pairs = &c->pairs;
	int rc = match(c, pairs->waiting_count);

	for (size_t i = 0; i < pairs->open_count; i++) {
		const struct ts_chrome_half *half = &pairs->open[i].half;

		if (pairs->open[i].used)
			add_slice(c, half, -1, half->shape, pairs->values + half->values);
	}
	pairs->open_count = 0;
	pairs->live = 0;
	pairs->free = 0;
	return rc;
}
