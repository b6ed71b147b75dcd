/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `memory`: how much memory was in use over time, of each rank and device; the peak, what was alive
 * then and who had asked for it; what was never given back. docs/analyze.md says what each number
 * means.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/analyze.h"
#include "analyze/memory_rows.h"
#include "analyze/statistics.h"

/* Allocations alive at the peak that are named, for each device. */
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

/* An allocation that was alive at the peak. */
struct alive {
	int64_t bytes;
	size_t row;
};

/* The rows of one memory, and what is found out about each. */
struct place {
	const struct ts_work *work;
	const struct ts_memory_row *rows;
	size_t count;
	int64_t *sizes;        /* what each row takes or gives back; 0: neither */
	int64_t *totals;       /* in use after each row */
	size_t *freed;         /* of an allocation: the row that gave it back, or NEVER */
	struct alive *largest; /* scratch */
	struct ts_map alive;   /* address to row + 1; 0: given back */
	char device[64];
	bool totals_known, addresses_known;
	bool sums_confirmed; /* no row says what is in use, but what is reserved is the sum of its
				rows */
	int64_t start_bytes, reserved_peak;
	size_t peak;
	int64_t allocations, frees, allocated_bytes, freed_bytes;
	int64_t never_freed, never_freed_bytes, unknown_frees, lost_frees;
};

static int place_init(struct place *place, const struct ts_work *work,
		      const struct ts_memory_row *rows, size_t count)
{
	*place = (struct place){ .work = work, .rows = rows, .count = count };
	place->reserved_peak = TS_ABSENT;
	place->sizes = ts_alloc_array(count, sizeof(*place->sizes));
	place->totals = ts_alloc_array(count, sizeof(*place->totals));
	place->freed = ts_alloc_array(count, sizeof(*place->freed));
	place->largest = ts_alloc_array(count, sizeof(*place->largest));
	return place->sizes && place->totals && place->freed && place->largest ? TS_OK : TS_ENOMEM;
}

static void place_release(struct place *place)
{
	free(place->sizes);
	free(place->totals);
	free(place->freed);
	free(place->largest);
	ts_map_release(&place->alive);
}

/* As PyTorch numbers its kinds of devices. */
static void name_device(struct place *place)
{
	static const char *const kinds[] = { "cpu",        "cuda",  "mkldnn", "opengl", "opencl",
					     "ideep",      "hip",   "fpga",   "maia",   "xla",
					     "vulkan",     "metal", "xpu",    "mps",    "meta",
					     "hpu",        "ve",    "lazy",   "ipu",    "mtia",
					     "privateuse1" };
	int64_t kind = place->rows->kind, id = place->rows->id;
	const char *name = kind >= 0 && kind < (int64_t)TS_ARRAY_SIZE(kinds) ? kinds[kind]
									     : "device";

	if (id == TS_ABSENT || id < 0)
		snprintf(place->device, sizeof(place->device), "%s", name);
	else
		snprintf(place->device, sizeof(place->device), "%s:%" PRId64, name, id);
}

/* ---- what became of each allocation ---- */

static int take_allocation(struct place *place, size_t row)
{
	uint64_t *alive = ts_map_insert(&place->alive, (uint64_t)place->rows[row].address, NULL);

	if (!alive)
		return TS_ENOMEM;
	if (*alive) {
		/* The same address again: that it was given back is not in the trace. */
		place->freed[*alive - 1] = row;
		place->lost_frees++;
	}
	*alive = row + 1;
	return TS_OK;
}

/* Where the row does not say how much, what was taken there tells. */
static int take_free(struct place *place, size_t row)
{
	uint64_t alive = 0;

	if (!ts_map_get(&place->alive, (uint64_t)place->rows[row].address, &alive) || !alive) {
		place->unknown_frees++;
		return TS_OK;
	}
	place->freed[alive - 1] = row;
	if (place->sizes[row] == 0)
		place->sizes[row] = -place->sizes[alive - 1];
	return ts_map_put(&place->alive, (uint64_t)place->rows[row].address, 0);
}

static int take_row(struct place *place, size_t i)
{
	const struct ts_memory_row *row = &place->rows[i];
	bool known = row->address != TS_ABSENT;
	int rc = TS_OK;

	place->freed[i] = NEVER;
	place->sizes[i] = row->bytes == TS_ABSENT ? 0 : row->bytes;
	place->addresses_known = place->addresses_known || known;
	if (known && row->frees)
		rc = take_free(place, i);
	else if (known && place->sizes[i] > 0)
		rc = take_allocation(place, i);
	if (row->frees) {
		place->frees++;
		place->freed_bytes =
			ts_ns_add(place->freed_bytes, ts_ns_between(place->sizes[i], 0));
	} else if (place->sizes[i] > 0) {
		place->allocations++;
		place->allocated_bytes = ts_ns_add(place->allocated_bytes, place->sizes[i]);
	}
	return rc;
}

static bool is_tracked(const struct place *place, size_t row)
{
	return place->sizes[row] > 0 && place->rows[row].address != TS_ABSENT;
}

static int follow(struct place *place)
{
	for (size_t i = 0; i < place->count; i++)
		if (take_row(place, i))
			return TS_ENOMEM;
	for (size_t i = 0; i < place->count; i++) {
		if (!is_tracked(place, i) || place->freed[i] != NEVER)
			continue;
		place->never_freed++;
		place->never_freed_bytes = ts_ns_add(place->never_freed_bytes, place->sizes[i]);
	}
	return TS_OK;
}

/* ---- how much ---- */

/* What was in use ahead of the first row: what the first one that knows says, less what was taken
 * until then. */
static int64_t find_start(const struct place *place)
{
	int64_t taken = 0;

	for (size_t i = 0; i < place->count; i++) {
		taken = ts_ns_add(taken, place->sizes[i]);
		if (place->rows[i].total != TS_ABSENT)
			return ts_ns_between(taken, place->rows[i].total);
	}
	return 0;
}

/*
 * From what the rows say is in use, else from what they take and give. Returns the least there was.
 */
static int64_t add_up(struct place *place)
{
	int64_t total = find_start(place), least = 0;

	place->start_bytes = total;
	for (size_t i = 0; i < place->count; i++) {
		const struct ts_memory_row *row = &place->rows[i];

		total = row->total != TS_ABSENT ? row->total : ts_ns_add(total, place->sizes[i]);
		place->totals_known = place->totals_known || row->total != TS_ABSENT;
		place->totals[i] = total;
		place->reserved_peak = TS_MAX(place->reserved_peak, row->reserved);
		least = TS_MIN(least, total);
	}
	return least;
}

/*
 * Without totals the sum starts at 0, and falls below it where something is given back that was
 * there before: so much at least was there.
 */
static void find_totals(struct place *place)
{
	int64_t least = add_up(place);
	int64_t base = place->totals_known || least >= 0 ? 0 : ts_ns_between(least, 0);

	place->start_bytes = ts_ns_add(place->start_bytes, base);
	for (size_t i = 0; i < place->count; i++) {
		place->totals[i] = ts_ns_add(place->totals[i], base);
		if (place->totals[i] > place->totals[place->peak])
			place->peak = i;
	}
	place->sums_confirmed = !place->totals_known && place->reserved_peak != TS_ABSENT;
	for (size_t i = 0; place->sums_confirmed && i < place->count; i++)
		place->sums_confirmed = place->rows[i].reserved == TS_ABSENT ||
					place->rows[i].reserved == place->totals[i];
}

/* ---- the largest that were alive at the peak ---- */

static int compare_alive(const void *a, const void *b)
{
	const struct alive *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return (x->row > y->row) - (x->row < y->row);
}

/* All that were, the largest first. */
static size_t find_largest(struct place *place)
{
	size_t count = 0;

	for (size_t i = 0; i <= place->peak; i++)
		if (is_tracked(place, i) && place->freed[i] > place->peak)
			place->largest[count++] = (struct alive){ place->rows[i].bytes, i };
	if (count)
		ts_sort(place->largest, count, sizeof(*place->largest), compare_alive);
	return count;
}

/* The innermost slice of its thread when it was asked for. */
static const char *operator_of(const struct place *place, const struct ts_memory_row *row)
{
	const struct ts_work *work = place->work;
	uint32_t slice;

	if (row->thread == TS_WORK_NONE || !work->slice_count)
		return NULL;
	slice = ts_work_slice_at(work, row->thread, row->time);
	return slice == TS_WORK_NONE ? NULL : ts_work_text(work, work->slices[slice].name);
}

static void put_largest(struct ts_result_table *table, struct place *place, size_t top)
{
	size_t count = TS_MIN(find_largest(place), top);

	for (size_t i = 0; i < count; i++) {
		const struct ts_memory_row *row = &place->rows[place->largest[i].row];
		size_t freed = place->freed[place->largest[i].row];

		ts_cell_integer(table, place->work->ranks[row->rank].rank);
		ts_cell_text(table, place->device);
		ts_cell_text(table, *row->pool ? row->pool : NULL);
		ts_cell_bytes(table, row->bytes);
		ts_cell_instant(table, row->time);
		ts_cell_instant(table, freed == NEVER ? TS_ABSENT : place->rows[freed].time);
		ts_cell_integer(table, row->address);
		ts_cell_text(table, operator_of(place, row));
	}
}

/* ---- results ---- */

/* Without addresses nobody knows what was given back. */
static void put_known(struct ts_result_table *table, const struct place *place,
		      enum ts_cell_type type, int64_t value)
{
	if (!place->addresses_known)
		ts_cell_none(table);
	else if (type == TS_CELL_BYTES)
		ts_cell_bytes(table, value);
	else
		ts_cell_integer(table, value);
}

static void put_summary(struct ts_result_table *table, const struct place *place)
{
	const struct ts_memory_row *first = place->rows;

	ts_cell_integer(table, place->work->ranks[first->rank].rank);
	ts_cell_text(table, place->device);
	ts_cell_text(table, *first->pool ? first->pool : NULL);
	ts_cell_integer(table, place->allocations);
	ts_cell_integer(table, place->frees);
	ts_cell_bytes(table, place->start_bytes);
	ts_cell_bytes(table, TS_MAX(place->totals[place->peak], place->start_bytes));
	ts_cell_instant(table, place->totals[place->peak] < place->start_bytes
				       ? first->time
				       : place->rows[place->peak].time);
	ts_cell_bytes(table, place->totals[place->count - 1]);
	ts_cell_bytes(table, place->reserved_peak);
	ts_cell_bytes(table, place->allocated_bytes);
	ts_cell_bytes(table, place->freed_bytes);
	put_known(table, place, TS_CELL_INTEGER, place->never_freed);
	put_known(table, place, TS_CELL_BYTES, place->never_freed_bytes);
	put_known(table, place, TS_CELL_INTEGER, place->unknown_frees);
	put_known(table, place, TS_CELL_INTEGER, place->lost_frees);
	ts_cell_bool(table, place->totals_known || place->sums_confirmed);
}

static void put_timeline(struct ts_result_table *table, const struct place *place)
{
	for (size_t i = 0; i < place->count; i++) {
		const struct ts_memory_row *row = &place->rows[i];

		ts_cell_integer(table, place->work->ranks[row->rank].rank);
		ts_cell_text(table, place->device);
		ts_cell_instant(table, row->time);
		ts_cell_bytes(table, row->bytes);
		ts_cell_bytes(table, place->totals[i]);
		ts_cell_bytes(table, row->reserved);
	}
}

struct tables {
	struct ts_result *result;
	struct ts_result_table *summary, *peak, *timeline;
	size_t top;
	bool brief;
	/* Of the device at hand: its first row, and whether several allocators were told of. */
	const struct ts_memory_row *device;
	bool is_told;
};

/* What a row says is in use is its device's, whichever allocator it is of. */
static void note_totals(struct tables *tables, const struct place *place)
{
	const struct ts_memory_row *first = tables->device, *row = place->rows;

	if (!first || first->rank != row->rank || first->kind != row->kind ||
	    first->id != row->id) {
		tables->device = row;
		tables->is_told = false;
	} else if (place->totals_known && !tables->is_told) {
		tables->is_told = true;
		ts_result_note(
			tables->result,
			"rank %" PRId64
			", %s: memory in use (at start, peak, at end) is the total of all allocators",
			place->work->ranks[row->rank].rank, place->device);
	}
}

static void put_place(struct tables *tables, struct place *place)
{
	name_device(place);
	put_summary(tables->summary, place);
	put_largest(tables->peak, place, tables->top);
	if (!tables->brief)
		put_timeline(tables->timeline, place);
	note_totals(tables, place);
	if (!place->totals_known && !place->sums_confirmed)
		ts_result_note(
			tables->result,
			"rank %" PRId64
			", %s%s%s: the trace does not say how much was in use; counted from its allocations, a lower bound",
			place->work->ranks[place->rows->rank].rank, place->device,
			*place->rows->pool ? ", " : "", place->rows->pool);
}

static int put_places(struct tables *tables, const struct ts_work *work,
		      const struct ts_memory_rows *rows)
{
	for (size_t first = 0, end; first < rows->count; first = end) {
		struct place place;
		int rc;

		for (end = first + 1; end < rows->count; end++)
			if (!ts_memory_same_place(&rows->rows[first], &rows->rows[end]))
				break;
		rc = place_init(&place, work, &rows->rows[first], end - first);
		if (!rc)
			rc = follow(&place);
		if (!rc) {
			find_totals(&place);
			put_place(tables, &place);
		}
		place_release(&place);
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
	tables.peak = ts_result_table(result, "peak", peak_columns, TS_ARRAY_SIZE(peak_columns));
	tables.timeline = ts_result_table(result, "timeline", timeline_columns,
					  TS_ARRAY_SIZE(timeline_columns));
	tables.top = request->options.top > 0 ? (size_t)request->options.top : LARGEST;
	if (!rc && put_places(&tables, request->work, &rows))
		rc = ts_error_set(err, TS_ENOMEM, "no memory for the allocations");
	if (!rc && !rows.count)
		ts_result_note(
			result,
			"the trace has no memory events (PyTorch: profile(profile_memory=True); or tracesmith record with the cuda backend)");
	ts_memory_rows_release(&rows);
	return rc ? rc : ts_result_status(result, err);
}

const struct ts_analysis ts_analysis_memory = {
	.name = "memory",
	.summary = "memory in use over time, its peak and the allocations live at the peak",
	.parts = TS_WORK_SLICES,
	.run = run,
};
