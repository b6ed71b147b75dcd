/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links backward slices to the forward slices with the same sequence number. If several forward
 * slices share a number, the last one to start created the autograd node: the number advances only
 * when a node is created. See autograd_link.h.
 */
#include "state/work/autograd_link.h"

#include <stdlib.h>
#include <string.h>

#define SEQUENCE_KEY "Sequence number"
#define FORWARD_THREAD_KEY "Fwd thread id"
#define MARK ", seq = "
#define MOST_CALLS 1000u /* calls of one slice that are examined */
#define STASHED_MARK ", stashed seq = "

/* A slice of the forward pass. */
struct candidate {
	uint32_t rank, slice;
	int64_t sequence, start;
};

struct ts_autograd_link {
	const struct ts_work *work;
	int64_t *sequences; /* of slices; TS_ABSENT: none */
	bool *are_backward; /* running autograd nodes and what they call */
	uint32_t *forwards; /* per slice: its forward slice, or TS_WORK_NONE */
	struct candidate *candidates;
	size_t count, capacity;
	uint64_t found;
};

/* ---- numbers in names ---- */

static int64_t number_behind(const char *name, const char *mark)
{
	const char *at = strstr(name, mark);
	int64_t value;
	size_t length;

	if (!at)
		return TS_ABSENT;
	at += strlen(mark);
	length = strspn(at, "0123456789");
	return length && !ts_parse_int64(at, length, &value) ? value : TS_ABSENT;
}

/*
 * Node names look like "AddmmBackward0" or "autograd::engine::evaluate_function: AddmmBackward0".
 */
static bool is_node_name(const char *name)
{
	const char *at = strstr(name, "Backward");
	size_t length;

	if (strstr(name, "evaluate_function"))
		return true;
	if (!at || strstr(name, "::"))
		return false;
	at += strlen("Backward");
	length = strspn(at, "0123456789");
	return at[length] == '\0' || at[length] == ',';
}

static void read_names(struct ts_autograd_link *forward)
{
	const struct ts_work *work = forward->work;

	for (uint32_t i = 0; i < work->slice_count; i++) {
		const char *name = ts_work_text(work, work->slices[i].name);
		int64_t stashed = number_behind(name, STASHED_MARK);

		forward->sequences[i] = stashed != TS_ABSENT ? stashed : number_behind(name, MARK);
		forward->are_backward[i] = stashed != TS_ABSENT || is_node_name(name);
	}
}

/* ---- numbers in arguments ---- */

/* Where a shape stores the sequence number and thread id: index among its values, plus 1. */
struct arg_columns {
	uint16_t sequence, thread;
};

static struct arg_columns find_arg_columns(struct ts_reader *reader, int64_t shape)
{
	const struct ts_shape *fields = ts_reader_shape(reader, shape);
	struct arg_columns columns = { 0 };
	uint16_t position = 0;

	for (uint32_t i = 0; i < fields->field_count; i++) {
		const struct ts_field *field = &fields->fields[i];

		if (!ts_arg_has_value(field->type))
			continue;
		position++;
		if (field->type != TS_ARG_INT)
			continue;
		if (!strcmp(ts_reader_string(reader, field->key).data, SEQUENCE_KEY))
			columns.sequence = position;
		else if (!strcmp(ts_reader_string(reader, field->key).data, FORWARD_THREAD_KEY))
			columns.thread = position;
	}
	return columns;
}

/* There are few shapes: each one is resolved once. */
static struct arg_columns arg_columns_of(struct ts_map *known, struct ts_reader *reader,
					 int64_t shape)
{
	bool is_new = false;
	uint64_t *value = ts_map_insert(known, (uint64_t)shape, &is_new);
	struct arg_columns columns;

	if (!value)
		return find_arg_columns(reader, shape);
	if (is_new) {
		columns = find_arg_columns(reader, shape);
		*value = (uint64_t)columns.sequence << 16 | columns.thread;
	}
	return (struct arg_columns){ (uint16_t)(*value >> 16), (uint16_t)*value };
}

static void take_arguments(struct ts_autograd_link *forward, uint32_t slice, const int64_t *values,
			   struct arg_columns columns)
{
	if (!columns.sequence || values[columns.sequence - 1] < 0)
		return;
	forward->sequences[slice] = values[columns.sequence - 1];
	if (columns.thread && values[columns.thread - 1] > 0)
		forward->are_backward[slice] = true;
}

/* Maps row numbers of a trace to slices. NULL: out of memory. */
static uint32_t *slices_by_row(const struct ts_autograd_link *forward, uint32_t trace,
			       uint64_t rows)
{
	const struct ts_work *work = forward->work;
	uint32_t *slices = ts_alloc_array(rows, sizeof(*slices));

	if (!slices)
		return NULL;
	memset(slices, 0xff, rows * sizeof(*slices));
	for (uint32_t i = 0; i < work->slice_count; i++) {
		const struct ts_work_slice *slice = &work->slices[i];

		if (work->ranks[slice->rank].trace == trace && slice->row < rows)
			slices[slice->row] = i;
	}
	return slices;
}

static int read_chunk(struct ts_autograd_link *forward, struct ts_batch *batch,
		      struct ts_map *shapes, const uint32_t *slices, struct ts_reader *reader)
{
	const int64_t *shape = batch->columns[TS_COLUMN_OF(slice, shape)];

	for (uint32_t i = 0; shape && batch->arg_values && i < batch->rows; i++) {
		struct arg_columns columns;

		if (!shape[i] || slices[i] == TS_WORK_NONE)
			continue;
		columns = arg_columns_of(shapes, reader, shape[i]);
		take_arguments(forward, slices[i], batch->arg_values + batch->arg_offsets[i],
			       columns);
	}
	return TS_OK;
}

static int read_arguments(struct ts_autograd_link *forward, uint32_t trace, struct ts_error *err)
{
	struct ts_reader *reader = forward->work->readers[trace];
	uint64_t rows = ts_reader_rows(reader, TS_TABLE_SLICE), row = 0;
	TS_AUTO_FREE uint32_t *slices = slices_by_row(forward, trace, rows);
	struct ts_batch *batch = NULL;
	struct ts_map shapes;
	int rc;

	if (!slices)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	rc = ts_batch_new(&batch, reader, err);
	ts_map_init(&shapes);
	for (size_t i = 0; !rc && i < ts_reader_chunk_count(reader); i++) {
		if (ts_reader_chunk(reader, i)->table != TS_TABLE_SLICE)
			continue;
		rc = ts_batch_read(batch, i, TS_MASK_OF(slice, shape), err);
		/* Row counts were summed up front; a chunk that contradicts them ends the scan. */
		if (!rc && batch->rows <= rows - row)
			rc = read_chunk(forward, batch, &shapes, slices + row, reader);
		row += ts_reader_chunk(reader, i)->rows;
		if (row > rows)
			break;
	}
	ts_map_release(&shapes);
	ts_batch_free(batch);
	return rc;
}

/* ---- who belongs to whom ---- */

static int compare_candidates(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	if (a->rank != b->rank)
		return TS_COMPARE(a->rank, b->rank);
	if (a->sequence != b->sequence)
		return TS_COMPARE(a->sequence, b->sequence);
	return a->start != b->start ? TS_COMPARE(a->start, b->start)
				    : TS_COMPARE(a->slice, b->slice);
}

/*
 * Slices called by a node also carry sequence numbers, but those belong to their own thread: skip
 * them. Callers come first.
 */
static int list_candidates(struct ts_autograd_link *forward)
{
	const struct ts_work *work = forward->work;

	for (uint32_t i = 0; i < work->slice_count; i++) {
		const struct ts_work_slice *slice = &work->slices[i];
		bool is_called = slice->parent != TS_WORK_NONE &&
				 forward->are_backward[slice->parent];

		if (is_called && !forward->are_backward[i])
			forward->sequences[i] = TS_ABSENT;
		forward->are_backward[i] |= is_called;
		if (forward->are_backward[i] || forward->sequences[i] == TS_ABSENT)
			continue;
		if (ts_grow_array((void **)&forward->candidates, &forward->capacity,
				  forward->count + 1, sizeof(*forward->candidates)))
			return TS_ENOMEM;
		forward->candidates[forward->count++] =
			(struct candidate){ .rank = slice->rank,
					    .slice = i,
					    .sequence = forward->sequences[i],
					    .start = slice->start };
	}
	ts_sort(forward->candidates, forward->count, sizeof(*forward->candidates),
		compare_candidates);
	return TS_OK;
}

/* The last slice with this number that started before the backward slice. */
static uint32_t find_candidate(const struct ts_autograd_link *forward,
			       const struct candidate *wanted)
{
	size_t low = 0, high = forward->count;
	const struct candidate *found;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_candidates(&forward->candidates[middle], wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	found = low ? &forward->candidates[low - 1] : NULL;
	if (!found || found->rank != wanted->rank || found->sequence != wanted->sequence)
		return TS_WORK_NONE;
	return found->slice;
}

static void join_numbers(struct ts_autograd_link *forward)
{
	const struct ts_work *work = forward->work;

	for (uint32_t i = 0; i < work->slice_count; i++) {
		const struct candidate wanted = { .rank = work->slices[i].rank,
						  .sequence = forward->sequences[i],
						  .start = work->slices[i].start };

		if (!forward->are_backward[i] || wanted.sequence == TS_ABSENT)
			continue;
		forward->forwards[i] = find_candidate(forward, &wanted);
		forward->found += forward->forwards[i] != TS_WORK_NONE;
	}
}

/*
 * Flow arrows connect the start of one slice to the start of the other. They are less precise than
 * sequence numbers, so they are used only for traces without numbers.
 */
static void join_flows(struct ts_autograd_link *forward)
{
	const struct ts_work *work = forward->work;
	uint32_t category = forward->found ? 0 : ts_work_find_text(work, "fwdbwd");

	for (uint32_t i = 0; category && i < work->flow_count; i++) {
		const struct ts_work_flow *flow = &work->flows[i];
		uint32_t from, to;

		if (flow->category != category)
			continue;
		from = ts_work_slice_at(work, flow->from_thread, flow->from_time);
		to = ts_work_slice_at(work, flow->to_thread, flow->to_time);
		if (from == TS_WORK_NONE || to == TS_WORK_NONE || from == to ||
		    forward->forwards[to] != TS_WORK_NONE)
			continue;
		forward->forwards[to] = from;
		forward->found++;
	}
}

/* ---- asking ---- */

static int start(struct ts_autograd_link *forward, struct ts_error *err)
{
	size_t count = forward->work->slice_count;

	forward->sequences = ts_alloc_array(count, sizeof(*forward->sequences));
	forward->are_backward = calloc(count ? count : 1, sizeof(*forward->are_backward));
	forward->forwards = ts_alloc_array(count, sizeof(*forward->forwards));
	if (!forward->sequences || !forward->are_backward || !forward->forwards)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	memset(forward->forwards, 0xff, count * sizeof(*forward->forwards));
	return TS_OK;
}

int ts_autograd_link_new(struct ts_autograd_link **ret_forward, const struct ts_work *work,
			 struct ts_error *err)
{
	TS_AUTO(ts_autograd_link) forward = calloc(1, sizeof(*forward));
	int rc;

	if (!forward)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	forward->work = work;
	rc = start(forward, err);
	if (!rc)
		read_names(forward);
	for (uint32_t i = 0; i < work->trace_count && !rc; i++)
		rc = read_arguments(forward, i, err);
	if (!rc && list_candidates(forward))
		rc = ts_error_set(err, TS_ENOMEM, "no memory");
	if (rc)
		return rc;
	join_numbers(forward);
	join_flows(forward);
	*ret_forward = TS_STEAL(forward);
	return TS_OK;
}

void ts_autograd_link_free(struct ts_autograd_link *forward)
{
	if (!forward)
		return;
	free(forward->sequences);
	free(forward->are_backward);
	free(forward->forwards);
	free(forward->candidates);
	free(forward);
}

uint32_t ts_autograd_link_at(const struct ts_autograd_link *forward, uint32_t thread, int64_t time)
{
	const struct ts_work *work = forward->work;
	uint32_t slice = ts_work_slice_at(work, thread, time);

	while (slice != TS_WORK_NONE && forward->forwards[slice] == TS_WORK_NONE)
		slice = work->slices[slice].parent;
	return slice == TS_WORK_NONE ? TS_WORK_NONE : forward->forwards[slice];
}

uint32_t ts_autograd_link_call(const struct ts_work *work, uint32_t slice)
{
	const struct ts_work_slice *around = &work->slices[slice];
	const struct ts_work_thread *thread = &work->threads[around->thread];
	uint32_t end = thread->first_call + thread->call_count;
	uint32_t before = ts_work_call_before(work, around->thread, around->start);
	uint32_t call = before == TS_WORK_NONE ? thread->first_call : before;

	for (unsigned int i = 0; call < end && i < MOST_CALLS; call++, i++) {
		if (work->calls[call].start > around->end)
			break;
		if (work->calls[call].start >= around->start &&
		    work->calls[call].command != TS_WORK_NONE)
			return call;
	}
	return TS_WORK_NONE;
}

uint64_t ts_autograd_link_count(const struct ts_autograd_link *forward)
{
	return forward->found;
}

static void append_name(const struct ts_work *work, struct ts_text *out, uint32_t slice)
{
	const char *name = ts_work_text(work, work->slices[slice].name);
	const char *end = strstr(name, MARK);

	ts_text_append(out, name, end ? (size_t)(end - name) : strlen(name));
}

void ts_autograd_link_append(const struct ts_work *work, struct ts_text *out, uint32_t slice,
			     unsigned int most)
{
	uint32_t around = work->slices[slice].parent;

	if (most > 1 && around != TS_WORK_NONE &&
	    work->slices[around].class == work->slices[slice].class) {
		ts_autograd_link_append(work, out, around, most - 1);
		ts_text_append_str(out, " > ");
	}
	append_name(work, out, slice);
}
