/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a query window by window. Each order has a rising axis: the start, or the complement of the
 * duration. Orders differ in how they find the end of a window and the chunks that reach into it.
 */
#include <string.h>

#include "base/memory.h"
#include "trace/chunk_cache.h"
#include "trace/row_query.h"
#include "trace/row_window.h"
#include "trace/trace_totals.h"

#define WINDOW_ROWS (256 * 1024)
#define FIRST_WINDOW_ROWS 2048
#define CACHE_BYTES ((size_t)128 << 20)
#define TEXT_BYTES ((size_t)64 << 20)

/* A histogram of durations with a relative bucket width of 1/32; exact below 32 ns. */
#define CLASS_BITS 5
#define CLASSES ((64 - CLASS_BITS) << CLASS_BITS)

struct candidate {
	size_t chunk;
	struct ts_chunk info;
	int64_t longest; /* upper bound of its durations */
};

struct timeline {
	struct ts_reader *reader;
	const struct ts_row_query *query;
	struct candidate *candidates; /* by min_start; those before the window are dropped */
	size_t candidate_count;
	uint64_t row_count; /* of all candidates, at first */
	struct ts_chunk_cache cache;
	struct ts_row_window picks;
	uint64_t classes[CLASSES]; /* rows per bucket of durations */
	uint64_t emitted;
	uint64_t done;                /* for progress */
	int64_t first, last;          /* of the axis */
	struct ts_row_key begin, end; /* of the window; both belong to it */
	double target;                /* rows of the next window */
};

/* ---- chunks ---- */

static int64_t longest_row(const struct ts_chunk *chunk)
{
	const struct ts_table_info *table = ts_table_info(chunk->table);
	int64_t longest;

	if (table->duration < 0)
		return ts_row_duration_column(table) < 0 ? 0 : INT64_MAX;
	if (chunk->max_end == INT64_MAX ||
	    __builtin_sub_overflow(chunk->max_end, chunk->min_start, &longest))
		return INT64_MAX;
	return TS_MAX(longest, 0);
}

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *first = a, *second = b;

	if (first->info.min_start != second->info.min_start)
		return first->info.min_start < second->info.min_start ? -1 : 1;
	return first->chunk < second->chunk ? -1 : first->chunk > second->chunk;
}

static int find_candidates(struct timeline *timeline, struct ts_error *err)
{
	const struct ts_row_query *query = timeline->query;
	size_t count = ts_reader_chunk_count(timeline->reader);

	timeline->candidates = calloc(count + 1, sizeof(*timeline->candidates));
	if (!timeline->candidates)
		return ts_error_set(err, TS_ENOMEM, "no memory for a list of %zu chunks", count);
	for (size_t i = 0; i < count; i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(timeline->reader, i);

		if (chunk->table >= TS_TABLE_COUNT ||
		    !(query->tables & TS_TABLE_BIT(chunk->table)) ||
		    !ts_filter_table(query->filter, chunk->table) ||
		    !ts_chunk_overlaps(chunk, query->from, query->to))
			continue;
		timeline->candidates[timeline->candidate_count++] =
			(struct candidate){ i, *chunk, longest_row(chunk) };
		timeline->row_count += chunk->rows;
	}
	if (timeline->candidate_count > 1)
		qsort(timeline->candidates, timeline->candidate_count,
		      sizeof(*timeline->candidates), compare_candidates);
	return TS_OK;
}

static int get_chunk(struct timeline *timeline, const struct candidate *candidate,
		     struct ts_cached_chunk **ret_chunk, struct ts_error *err)
{
	const struct ts_row_query *query = timeline->query;
	unsigned int id = candidate->info.table;
	const struct ts_table_info *table = ts_table_info(id);
	uint64_t keys = ts_filter_mask(query->filter, id) | UINT64_C(1) << table->start;
	int position = ts_row_duration_column(table);

	if (position >= 0)
		keys |= UINT64_C(1) << position;
	/* If every row is wanted, read all columns at once. */
	if (query->order == TS_ROW_ORDER_START && !ts_filter_mask(query->filter, id) &&
	    candidate->info.min_start >= query->from && candidate->info.max_start <= query->to)
		keys |= query->masks[id];
	return ts_chunk_cache_get(&timeline->cache, candidate->chunk, keys, query->masks[id],
				  ret_chunk, err);
}

/* ---- rows ---- */

/* 2^63 - 1 for a row that did not end, as in docs/format.md 3.4. */
static int64_t duration_of(const struct ts_batch *batch, uint32_t row)
{
	int64_t duration;

	if (batch->table->duration < 0)
		return 0;
	duration = batch->columns[batch->table->duration][row];
	return duration < 0 ? INT64_MAX : duration;
}

/* By which rows are ordered: as duration_of(), also in tables that only say how long a row took. */
static int64_t length_of(const struct ts_batch *batch, uint32_t row)
{
	int position = ts_row_duration_column(batch->table);
	int64_t ns = position < 0 ? 0
				  : ts_row_duration_ns(batch->table, batch->columns[position][row]);

	return ns < 0 ? INT64_MAX : ns;
}

static int64_t end_of(int64_t start, int64_t duration)
{
	int64_t end;

	if (duration == INT64_MAX)
		return INT64_MAX;
	if (__builtin_add_overflow(start, duration, &end))
		return INT64_MAX - 1;
	return TS_MIN(end, INT64_MAX - 1);
}

static bool is_wanted(const struct timeline *timeline, const struct ts_batch *batch, uint32_t row)
{
	int64_t start = batch->columns[batch->table->start][row];

	return start <= timeline->query->to &&
	       end_of(start, duration_of(batch, row)) >= timeline->query->from &&
	       ts_filter_batch(timeline->query->filter, batch, row);
}

/* The second key: the later end, or the earlier start, comes first. */
static struct ts_row_key key_of(const struct timeline *timeline,
				const struct ts_cached_chunk *chunk, uint32_t row)
{
	struct ts_row_key key = { .chunk = chunk->chunk, .row = row };
	int64_t start = chunk->keys->columns[chunk->keys->table->start][row];

	if (timeline->query->order == TS_ROW_ORDER_DURATION) {
		key.axis = ~length_of(chunk->keys, row);
		key.second = start;
	} else {
		key.axis = start;
		key.second = ~end_of(start, duration_of(chunk->keys, row));
	}
	return key;
}

/* The first and the last key of a value of the axis. */
static struct ts_row_key first_key(int64_t axis)
{
	return (struct ts_row_key){ .axis = axis, .second = INT64_MIN };
}

static struct ts_row_key last_key(int64_t axis)
{
	return (struct ts_row_key){ axis, INT64_MAX, UINT64_MAX, UINT32_MAX };
}

/* The first row that starts at `time` or later: starts never fall within a chunk. */
static uint32_t find_row(const struct ts_batch *batch, int64_t time)
{
	const int64_t *start = batch->columns[batch->table->start];
	uint32_t low = 0, high = batch->rows;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (start[middle] < time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int pick_row(struct timeline *timeline, struct ts_cached_chunk *chunk,
		    const struct ts_row_key *key, struct ts_error *err)
{
	int rc = ts_chunk_cache_read_rest(&timeline->cache, chunk, err);

	if (!rc)
		rc = ts_row_window_add(&timeline->picks, key, chunk, err);
	return rc ? rc : ts_row_window_shrink(&timeline->picks, &timeline->end, err);
}

static int pick_rows(struct timeline *timeline, const struct candidate *candidate,
		     struct ts_error *err)
{
	bool by_start = timeline->query->order == TS_ROW_ORDER_START;
	struct ts_cached_chunk *chunk;
	int rc = get_chunk(timeline, candidate, &chunk, err);

	if (rc)
		return rc;
	for (uint32_t row = by_start ? find_row(chunk->keys, timeline->begin.axis) : 0;
	     !rc && row < chunk->keys->rows; row++) {
		struct ts_row_key key = key_of(timeline, chunk, row);

		/* Rows with equal starts are in any order. */
		if (by_start && key.axis > timeline->end.axis)
			break;
		if (ts_row_key_compare(&key, &timeline->begin) >= 0 &&
		    ts_row_key_compare(&key, &timeline->end) <= 0 &&
		    is_wanted(timeline, chunk->keys, row))
			rc = pick_row(timeline, chunk, &key, err);
	}
	return rc;
}

/* ---- windows by start ---- */

/* Rows of a chunk that start in [begin, end], assuming that they are evenly distributed. */
static double rows_within(const struct ts_chunk *chunk, int64_t begin, int64_t end)
{
	int64_t from = TS_MAX(chunk->min_start, begin), to = TS_MIN(chunk->max_start, end);
	double span = (double)chunk->max_start - (double)chunk->min_start + 1;

	if (from > to)
		return 0;
	return chunk->rows * (((double)to - (double)from + 1) / span);
}

static bool is_window_small(const struct timeline *timeline, int64_t end)
{
	double rows = 0;

	for (size_t i = 0; i < timeline->candidate_count; i++) {
		const struct ts_chunk *chunk = &timeline->candidates[i].info;

		if (chunk->min_start > end || rows > timeline->target)
			break;
		rows += rows_within(chunk, timeline->begin.axis, end);
	}
	return rows <= timeline->target;
}

/* The latest end for which the window stays within the target, at least its begin. */
static int64_t find_end_by_start(const struct timeline *timeline)
{
	int64_t low = timeline->begin.axis, high = timeline->last;

	if (is_window_small(timeline, high))
		return high;
	while (low < high) {
		uint64_t half = ((uint64_t)high - (uint64_t)low) / 2;
		int64_t middle = (int64_t)((uint64_t)low + half + 1);

		if (is_window_small(timeline, middle))
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static void drop_passed(struct timeline *timeline)
{
	size_t kept = 0;

	for (size_t i = 0; i < timeline->candidate_count; i++) {
		if (timeline->candidates[i].info.max_start >= timeline->begin.axis)
			timeline->candidates[kept++] = timeline->candidates[i];
	}
	timeline->candidate_count = kept;
	ts_chunk_cache_drop_before(&timeline->cache, timeline->begin.axis);
}

static void start_by_start(struct timeline *timeline)
{
	timeline->first = INT64_MAX;
	timeline->last = INT64_MIN;
	for (size_t i = 0; i < timeline->candidate_count; i++) {
		const struct ts_chunk *chunk = &timeline->candidates[i].info;

		timeline->first = TS_MIN(timeline->first, chunk->min_start);
		timeline->last = TS_MAX(timeline->last, chunk->max_start);
	}
	timeline->last = TS_MIN(timeline->last, timeline->query->to);
}

/* ---- windows by duration ---- */

static unsigned int class_of(int64_t duration)
{
	uint64_t value = (uint64_t)duration;
	unsigned int bits;

	if (value < UINT64_C(1) << CLASS_BITS)
		return (unsigned int)value;
	bits = 63 - (unsigned int)__builtin_clzll(value);
	return (bits - CLASS_BITS + 1) << CLASS_BITS |
	       ((unsigned int)(value >> (bits - CLASS_BITS)) & ((1u << CLASS_BITS) - 1));
}

static int64_t shortest_of_class(unsigned int class)
{
	unsigned int bits = (class >> CLASS_BITS) + CLASS_BITS - 1;
	uint64_t top = class & ((1u << CLASS_BITS) - 1);

	if (class < 1u << CLASS_BITS)
		return class;
	return (int64_t)((top | UINT64_C(1) << CLASS_BITS) << (bits - CLASS_BITS));
}

static int report_progress(const struct timeline *timeline, uint64_t done, struct ts_error *err)
{
	const struct ts_row_query *query = timeline->query;

	if (query->progress && query->progress(query->progress_context, done, timeline->row_count))
		return ts_error_set(err, TS_ECANCELED, "stopped");
	return TS_OK;
}

/* Counts the wanted rows by duration, to size the windows. */
static int start_by_duration(struct timeline *timeline, struct ts_error *err)
{
	struct ts_cached_chunk *chunk;
	int rc = TS_OK;

	for (size_t i = 0; !rc && i < timeline->candidate_count; i++) {
		rc = get_chunk(timeline, &timeline->candidates[i], &chunk, err);
		for (uint32_t row = 0; !rc && row < chunk->keys->rows; row++) {
			if (is_wanted(timeline, chunk->keys, row))
				timeline->classes[class_of(length_of(chunk->keys, row))]++;
		}
		if (!rc)
			rc = report_progress(timeline, 0, err);
	}
	timeline->first = INT64_MIN;
	timeline->last = ~INT64_C(0);
	return rc;
}

static int64_t find_end_by_duration(const struct timeline *timeline)
{
	unsigned int class = class_of(~timeline->begin.axis);
	double rows = (double)timeline->classes[class];

	while (class > 0 && rows + (double)timeline->classes[class - 1] <= timeline->target)
		rows += (double)timeline->classes[--class];
	return ~shortest_of_class(class);
}

/* ---- the walk ---- */

static bool reaches_window(const struct timeline *timeline, const struct candidate *candidate)
{
	if (timeline->query->order == TS_ROW_ORDER_DURATION)
		return candidate->longest >= ~timeline->end.axis;
	return candidate->info.min_start <= timeline->end.axis;
}

static int pick_window(struct timeline *timeline, struct ts_error *err)
{
	int rc = TS_OK;

	ts_row_window_clear(&timeline->picks);
	for (size_t i = 0; !rc && i < timeline->candidate_count; i++) {
		if (!reaches_window(timeline, &timeline->candidates[i]))
			continue;
		rc = pick_rows(timeline, &timeline->candidates[i], err);
		if (!rc)
			rc = report_progress(timeline, timeline->done, err);
	}
	ts_row_window_sort(&timeline->picks);
	return rc;
}

static int emit_window(struct timeline *timeline, struct ts_error *err)
{
	const struct ts_row_query *query = timeline->query;
	int rc = TS_OK;

	for (size_t i = 0; !rc && i < timeline->picks.count; i++) {
		struct ts_row row = ts_row_window_row(&timeline->picks, i);

		if (timeline->emitted == query->limit)
			break;
		rc = query->emit(query->context, &row, err);
		timeline->emitted++;
	}
	/* No text is borrowed here. */
	ts_reader_trim(timeline->reader, TEXT_BYTES);
	return rc;
}

static void note_progress(struct timeline *timeline)
{
	double part = ((double)timeline->end.axis - (double)timeline->first + 1) /
		      ((double)timeline->last - (double)timeline->first + 1);

	if (timeline->query->order == TS_ROW_ORDER_DURATION)
		timeline->done = timeline->emitted;
	else
		timeline->done = (uint64_t)(part * (double)timeline->row_count);
}

/* The key after `end`; false: there is none. */
static bool step(struct timeline *timeline)
{
	struct ts_row_key *end = &timeline->end;

	if (end->row < UINT32_MAX) {
		timeline->begin = *end;
		timeline->begin.row++;
		return true;
	}
	if (end->axis >= timeline->last)
		return false;
	timeline->begin = first_key(end->axis + 1);
	return true;
}

static int walk(struct timeline *timeline, struct ts_error *err)
{
	bool by_start = timeline->query->order == TS_ROW_ORDER_START;
	int rc = TS_OK;

	timeline->begin = first_key(timeline->first);
	while (timeline->emitted < timeline->query->limit) {
		if (by_start)
			drop_passed(timeline);
		timeline->end = last_key(by_start ? find_end_by_start(timeline)
						  : find_end_by_duration(timeline));
		rc = pick_window(timeline, err);
		if (!rc)
			rc = emit_window(timeline, err);
		if (rc || !step(timeline))
			break;
		note_progress(timeline);
		timeline->target = TS_MIN(timeline->target * 2, WINDOW_ROWS);
	}
	return rc;
}

static int run(struct timeline *timeline, struct ts_error *err)
{
	uint64_t limit = timeline->query->limit;
	int rc = find_candidates(timeline, err);

	if (rc || timeline->candidate_count == 0)
		return rc;
	timeline->target = limit < WINDOW_ROWS ? TS_MAX((double)limit, FIRST_WINDOW_ROWS)
					       : WINDOW_ROWS;
	if (timeline->query->order == TS_ROW_ORDER_DURATION)
		rc = start_by_duration(timeline, err);
	else
		start_by_start(timeline);
	return rc ? rc : walk(timeline, err);
}

int ts_row_query_run(struct ts_reader *reader, const struct ts_row_query *query,
		     struct ts_error *err)
{
	struct timeline *timeline = calloc(1, sizeof(*timeline));
	int rc;

	if (!timeline)
		return ts_error_set(err, TS_ENOMEM, "no memory for a query");
	timeline->reader = reader;
	timeline->query = query;
	ts_chunk_cache_init(&timeline->cache, reader, CACHE_BYTES);
	ts_row_window_init(&timeline->picks);
	rc = run(timeline, err);
	ts_row_window_release(&timeline->picks);
	ts_chunk_cache_release(&timeline->cache);
	free(timeline->candidates);
	free(timeline);
	return rc;
}
