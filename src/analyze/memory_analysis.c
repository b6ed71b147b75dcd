/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `memory`: memory in use over time by rank and device, its peak, the allocations live at the peak,
 * and what was never freed. docs/analyze.md defines the numbers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/analyze.h"
#include "analyze/memory_rows.h"
#include "analyze/statistics.h"
#include "base/text.h"

/* Allocations live at the peak to list, for each device. */
#define LARGEST 10

static const struct ts_result_column summary_columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER },
	{ "device", "device", TS_CELL_TEXT },
	{ "pool", "allocator", TS_CELL_TEXT },
	{ "allocations", "allocations", TS_CELL_INTEGER },
	{ "frees", "frees", TS_CELL_INTEGER },
	{ "start_bytes", "at start", TS_CELL_BYTES },
	{ "peak_bytes", "peak", TS_CELL_BYTES },
	{ "peak_ns", "at", TS_CELL_INSTANT },
	{ "end_bytes", "at end", TS_CELL_BYTES },
	{ "reserved_peak_bytes", "reserved", TS_CELL_BYTES },
	{ "allocated_bytes", NULL, TS_CELL_BYTES },
	{ "freed_bytes", NULL, TS_CELL_BYTES },
	{ "never_freed", "never freed", TS_CELL_INTEGER },
	{ "never_freed_bytes", "bytes", TS_CELL_BYTES },
	{ "unknown_frees", NULL, TS_CELL_INTEGER },
	{ "lost_frees", NULL, TS_CELL_INTEGER },
	{ "totals_known", NULL, TS_CELL_BOOL },
};

static const struct ts_result_column peak_columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER },          { "device", "device", TS_CELL_TEXT },
	{ "pool", "allocator", TS_CELL_TEXT },        { "bytes", "bytes", TS_CELL_BYTES },
	{ "allocated_ns", "since", TS_CELL_INSTANT }, { "freed_ns", "until", TS_CELL_INSTANT },
	{ "address", NULL, TS_CELL_INTEGER },         { "operator", "operator", TS_CELL_TEXT },
};

static const struct ts_result_column timeline_columns[] = {
	{ "rank", NULL, TS_CELL_INTEGER },      { "device", NULL, TS_CELL_TEXT },
	{ "time_ns", NULL, TS_CELL_INSTANT },   { "bytes", NULL, TS_CELL_BYTES },
	{ "total_bytes", NULL, TS_CELL_BYTES }, { "reserved_bytes", NULL, TS_CELL_BYTES },
};

#define NEVER SIZE_MAX

/* An allocation live at the peak. */
struct alive {
	int64_t bytes;
	size_t row;
};

/* The rows of one rank, device and allocator, and what was derived for each row. */
struct position {
	const struct ts_work *work;
	const struct ts_memory_row *rows;
	size_t count;
	int64_t *sizes;        /* bytes that each row allocates or frees; 0: neither */
	int64_t *totals;       /* in use after each row */
	size_t *freed;         /* of an allocation: the row that freed it, or NEVER */
	struct alive *largest; /* scratch */
	struct ts_map alive;   /* address to row + 1; 0: freed */
	char device[64];
	bool totals_known, addresses_known;
	bool sums_confirmed; /* totals are unknown, but `reserved` matches the sums of the rows */
	int64_t start_bytes, reserved_peak;
	int64_t raised_bytes; /* added to all totals, so that none is below 0 */
	size_t peak;
	int64_t allocations, frees, allocated_bytes, freed_bytes;
	int64_t never_freed, never_freed_bytes, unknown_frees, lost_frees;
};

static int position_init(struct position *position, const struct ts_work *work,
			 const struct ts_memory_row *rows, size_t count)
{
	*position = (struct position){ .work = work, .rows = rows, .count = count };
	position->reserved_peak = TS_ABSENT;
	position->sizes = ts_alloc_array(count, sizeof(*position->sizes));
	position->totals = ts_alloc_array(count, sizeof(*position->totals));
	position->freed = ts_alloc_array(count, sizeof(*position->freed));
	position->largest = ts_alloc_array(count, sizeof(*position->largest));
	return position->sizes && position->totals && position->freed && position->largest
		       ? TS_OK
		       : TS_ENOMEM;
}

static void position_release(struct position *position)
{
	free(position->sizes);
	free(position->totals);
	free(position->freed);
	free(position->largest);
	ts_map_release(&position->alive);
}

/* By PyTorch's device type numbers. */
static void name_device(struct position *position)
{
	static const char *const kinds[] = { "cpu",        "cuda",  "mkldnn", "opengl", "opencl",
					     "ideep",      "hip",   "fpga",   "maia",   "xla",
					     "vulkan",     "metal", "xpu",    "mps",    "meta",
					     "hpu",        "ve",    "lazy",   "ipu",    "mtia",
					     "privateuse1" };
	int64_t kind = position->rows->kind, id = position->rows->id;
	const char *name = kind >= 0 && kind < (int64_t)TS_ARRAY_SIZE(kinds) ? kinds[kind]
									     : "device";

	if (id == TS_ABSENT || id < 0)
		snprintf(position->device, sizeof(position->device), "%s", name);
	else
		snprintf(position->device, sizeof(position->device), "%s:%" PRId64, name, id);
}

/* ---- lifetime of each allocation ---- */

static int take_allocation(struct position *position, size_t row)
{
	uint64_t *alive =
		ts_map_insert(&position->alive, (uint64_t)position->rows[row].address, NULL);

	if (!alive)
		return TS_ENOMEM;
	if (*alive) {
		/* The same address again: its free is not in the trace. */
		position->freed[*alive - 1] = row;
		position->lost_frees++;
	}
	*alive = row + 1;
	return TS_OK;
}

/* If the row has no size, the size is that of the allocation. */
static int take_free(struct position *position, size_t row)
{
	uint64_t alive = 0;

	if (!ts_map_get(&position->alive, (uint64_t)position->rows[row].address, &alive) ||
	    !alive) {
		position->unknown_frees++;
		return TS_OK;
	}
	position->freed[alive - 1] = row;
	if (position->sizes[row] == 0)
		position->sizes[row] = -position->sizes[alive - 1];
	return ts_map_put(&position->alive, (uint64_t)position->rows[row].address, 0);
}

static int take_row(struct position *position, size_t i)
{
	const struct ts_memory_row *row = &position->rows[i];
	bool known = row->address != TS_ABSENT;
	int rc = TS_OK;

	position->freed[i] = NEVER;
	position->sizes[i] = row->bytes == TS_ABSENT ? 0 : row->bytes;
	position->addresses_known = position->addresses_known || known;
	if (known && row->frees)
		rc = take_free(position, i);
	else if (known && position->sizes[i] > 0)
		rc = take_allocation(position, i);
	if (row->frees) {
		position->frees++;
		position->freed_bytes =
			ts_ns_add(position->freed_bytes, ts_ns_between(position->sizes[i], 0));
	} else if (position->sizes[i] > 0) {
		position->allocations++;
		position->allocated_bytes =
			ts_ns_add(position->allocated_bytes, position->sizes[i]);
	}
	return rc;
}

static bool is_tracked(const struct position *position, size_t row)
{
	return position->sizes[row] > 0 && position->rows[row].address != TS_ABSENT;
}

static int follow(struct position *position)
{
	for (size_t i = 0; i < position->count; i++)
		if (take_row(position, i))
			return TS_ENOMEM;
	for (size_t i = 0; i < position->count; i++) {
		if (!is_tracked(position, i) || position->freed[i] != NEVER)
			continue;
		position->never_freed++;
		position->never_freed_bytes =
			ts_ns_add(position->never_freed_bytes, position->sizes[i]);
	}
	return TS_OK;
}

/* ---- totals ---- */

/* Bytes in use before the first row: the first known total minus what was allocated until then. */
static int64_t find_start(const struct position *position)
{
	int64_t taken = 0;

	for (size_t i = 0; i < position->count; i++) {
		taken = ts_ns_add(taken, position->sizes[i]);
		if (position->rows[i].total != TS_ABSENT)
			return ts_ns_between(taken, position->rows[i].total);
	}
	return 0;
}

/* Totals from the rows' totals, else from their sizes. Returns the smallest, the start included. */
static int64_t add_up(struct position *position)
{
	int64_t total = find_start(position), least = total;

	position->start_bytes = total;
	for (size_t i = 0; i < position->count; i++) {
		const struct ts_memory_row *row = &position->rows[i];

		total = row->total != TS_ABSENT ? row->total : ts_ns_add(total, position->sizes[i]);
		position->totals_known = position->totals_known || row->total != TS_ABSENT;
		position->totals[i] = total;
		position->reserved_peak = TS_MAX(position->reserved_peak, row->reserved);
		least = TS_MIN(least, total);
	}
	return least;
}

/*
 * Sums that start at 0 with the recording, ours and those of some allocators, fall below it when
 * memory from before is freed. At least that much was in use at the start.
 */
static void find_totals(struct position *position)
{
	int64_t least = add_up(position);

	position->raised_bytes = least >= 0 ? 0 : ts_ns_between(least, 0);
	position->start_bytes = ts_ns_add(position->start_bytes, position->raised_bytes);
	for (size_t i = 0; i < position->count; i++) {
		position->totals[i] = ts_ns_add(position->totals[i], position->raised_bytes);
		if (position->totals[i] > position->totals[position->peak])
			position->peak = i;
	}
	position->sums_confirmed = !position->totals_known && position->reserved_peak != TS_ABSENT;
	for (size_t i = 0; position->sums_confirmed && i < position->count; i++)
		position->sums_confirmed = position->rows[i].reserved == TS_ABSENT ||
					   position->rows[i].reserved == position->totals[i];
}

/* ---- the largest allocations at the peak ---- */

static int compare_alive(const void *a, const void *b)
{
	const struct alive *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return (x->row > y->row) - (x->row < y->row);
}

/* All allocations live at the peak, the largest first. */
static size_t find_largest(struct position *position)
{
	size_t count = 0;

	for (size_t i = 0; i <= position->peak; i++)
		if (is_tracked(position, i) && position->freed[i] > position->peak)
			position->largest[count++] = (struct alive){ position->rows[i].bytes, i };
	if (count)
		ts_sort(position->largest, count, sizeof(*position->largest), compare_alive);
	return count;
}

/* The innermost slice of its thread at the time of the allocation. */
static const char *operator_of(const struct position *position, const struct ts_memory_row *row)
{
	const struct ts_work *work = position->work;
	uint32_t slice;

	if (row->thread == TS_WORK_NONE || !work->slice_count)
		return NULL;
	slice = ts_work_slice_at(work, row->thread, row->time);
	return slice == TS_WORK_NONE ? NULL : ts_work_text(work, work->slices[slice].name);
}

static void put_largest(struct ts_result_table *table, struct position *position, size_t top)
{
	size_t count = TS_MIN(find_largest(position), top);

	for (size_t i = 0; i < count; i++) {
		const struct ts_memory_row *row = &position->rows[position->largest[i].row];
		size_t freed = position->freed[position->largest[i].row];

		ts_cell_integer(table, position->work->ranks[row->rank].rank);
		ts_cell_text(table, position->device);
		ts_cell_text(table, *row->pool ? row->pool : NULL);
		ts_cell_bytes(table, row->bytes);
		ts_cell_instant(table, row->time);
		ts_cell_instant(table, freed == NEVER ? TS_ABSENT : position->rows[freed].time);
		ts_cell_integer(table, row->address);
		ts_cell_text(table, operator_of(position, row));
	}
}

/* ---- results ---- */

/* None without addresses, which are needed to match frees. */
static void put_known(struct ts_result_table *table, const struct position *position,
		      enum ts_cell_type type, int64_t value)
{
	if (!position->addresses_known)
		ts_cell_none(table);
	else if (type == TS_CELL_BYTES)
		ts_cell_bytes(table, value);
	else
		ts_cell_integer(table, value);
}

static void put_summary(struct ts_result_table *table, const struct position *position)
{
	const struct ts_memory_row *first = position->rows;

	ts_cell_integer(table, position->work->ranks[first->rank].rank);
	ts_cell_text(table, position->device);
	ts_cell_text(table, *first->pool ? first->pool : NULL);
	ts_cell_integer(table, position->allocations);
	ts_cell_integer(table, position->frees);
	ts_cell_bytes(table, position->start_bytes);
	ts_cell_bytes(table, TS_MAX(position->totals[position->peak], position->start_bytes));
	ts_cell_instant(table, position->totals[position->peak] < position->start_bytes
				       ? first->time
				       : position->rows[position->peak].time);
	ts_cell_bytes(table, position->totals[position->count - 1]);
	ts_cell_bytes(table, position->reserved_peak);
	ts_cell_bytes(table, position->allocated_bytes);
	ts_cell_bytes(table, position->freed_bytes);
	put_known(table, position, TS_CELL_INTEGER, position->never_freed);
	put_known(table, position, TS_CELL_BYTES, position->never_freed_bytes);
	put_known(table, position, TS_CELL_INTEGER, position->unknown_frees);
	put_known(table, position, TS_CELL_INTEGER, position->lost_frees);
	ts_cell_bool(table, position->totals_known || position->sums_confirmed);
}

static void put_timeline(struct ts_result_table *table, const struct position *position)
{
	for (size_t i = 0; i < position->count; i++) {
		const struct ts_memory_row *row = &position->rows[i];

		ts_cell_integer(table, position->work->ranks[row->rank].rank);
		ts_cell_text(table, position->device);
		ts_cell_instant(table, row->time);
		ts_cell_bytes(table, row->bytes);
		ts_cell_bytes(table, position->totals[i]);
		ts_cell_bytes(table, row->reserved);
	}
}

struct tables {
	struct ts_result *result;
	struct ts_result_table *summary, *peak, *timeline;
	size_t top;
	bool brief;
	bool lacks_addresses; /* on a device */
	/* The current device: its first row, and whether several allocators were noted. */
	const struct ts_memory_row *device;
	bool is_reported;
};

/* The total of a row is that of its device, whichever allocator the row belongs to. */
static void note_totals(struct tables *tables, const struct position *position)
{
	const struct ts_memory_row *first = tables->device, *row = position->rows;

	if (!first || first->rank != row->rank || first->kind != row->kind ||
	    first->id != row->id) {
		tables->device = row;
		tables->is_reported = false;
	} else if (position->totals_known && !tables->is_reported) {
		tables->is_reported = true;
		ts_result_note(
			tables->result,
			"rank %" PRId64
			", %s: memory in use (at start, peak, at end) is the total of all allocators",
			position->work->ranks[row->rank].rank, position->device);
	}
}

static void note_start(struct tables *tables, const struct position *position)
{
	const char *pool = position->rows->pool;
	char bytes[TS_FORMAT_BYTES];

	if (!position->totals_known && !position->sums_confirmed)
		ts_result_note(
			tables->result,
			"rank %" PRId64
			", %s%s%s: the trace does not say how much was in use; counted from its allocations, a lower bound",
			position->work->ranks[position->rows->rank].rank, position->device,
			*pool ? ", " : "", pool);
	else if (position->raised_bytes && position->totals_known)
		ts_result_note(
			tables->result,
			"rank %" PRId64
			", %s%s%s: memory from before the recording is freed in it, which the allocator's totals do not include; at least %s was in use at the start, and is added to all totals",
			position->work->ranks[position->rows->rank].rank, position->device,
			*pool ? ", " : "", pool,
			ts_format_bytes(bytes, sizeof(bytes), (uint64_t)position->raised_bytes));
}

static void put_location(struct tables *tables, struct position *position)
{
	name_device(position);
	put_summary(tables->summary, position);
	put_largest(tables->peak, position, tables->top);
	if (!tables->brief)
		put_timeline(tables->timeline, position);
	note_totals(tables, position);
	note_start(tables, position);
	tables->lacks_addresses |= !position->addresses_known;
}

static int put_locations(struct tables *tables, const struct ts_work *work,
			 const struct ts_memory_rows *rows)
{
	for (size_t first = 0, end; first < rows->count; first = end) {
		struct position position;
		int rc;

		for (end = first + 1; end < rows->count; end++)
			if (!ts_memory_same_location(&rows->rows[first], &rows->rows[end]))
				break;
		rc = position_init(&position, work, &rows->rows[first], end - first);
		if (!rc)
			rc = follow(&position);
		if (!rc) {
			find_totals(&position);
			put_location(tables, &position);
		}
		position_release(&position);
		if (rc)
			return rc;
	}
	return TS_OK;
}

static int run(struct ts_analyze_request *request, struct ts_result *result, struct ts_error *err)
{
	struct tables tables = { .result = result, .brief = request->options.brief };
	struct ts_memory_rows rows;
	int rc = ts_memory_rows_init(&rows, request->work, err);

	tables.summary =
		ts_result_table(result, "summary", summary_columns, TS_ARRAY_SIZE(summary_columns));
	tables.summary->details = "start_bytes frees never_freed+never_freed_bytes";
	tables.peak = ts_result_table(result, "peak", peak_columns, TS_ARRAY_SIZE(peak_columns));
	tables.timeline = ts_result_table(result, "timeline", timeline_columns,
					  TS_ARRAY_SIZE(timeline_columns));
	tables.top = request->options.top > 0 ? (size_t)request->options.top : LARGEST;
	if (!rc && put_locations(&tables, request->work, &rows))
		rc = ts_error_set(err, TS_ENOMEM, "no memory for the allocations");
	if (!rc && !rows.count)
		ts_result_note(
			result,
			"the trace has no memory events (PyTorch: profile(profile_memory=True); or tracesmith record with the cuda backend)");
	if (!rc && tables.lacks_addresses)
		ts_result_note(result, "the trace lacks addresses: which allocations were in use "
				       "at the peak, or never freed, is unknown");
	ts_memory_rows_release(&rows);
	return rc ? rc : ts_result_status(result, err);
}

const struct ts_analysis ts_analysis_memory = {
	.name = "memory",
	.summary = "memory in use over time, its peak, and allocations at the peak",
	.load_flags = TS_WORK_SLICES,
	.run = run,
};
