/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `bandwidth`: bytes, time and rate of copies and fills by kind, and the rate over time.
 * docs/analyze.md defines the numbers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"
#include "analyze/busy.h"
#include "base/text.h"

static const struct ts_result_column columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER },     { "name", "kind", TS_CELL_TEXT },
	{ "copies", "copies", TS_CELL_INTEGER }, { "bytes", "bytes", TS_CELL_BYTES },
	{ "busy_us", "busy", TS_CELL_TIME },     { "gbps", "GB/s", TS_CELL_REAL },
	{ "points", NULL, TS_CELL_INTEGER },     { "gbps_mean", NULL, TS_CELL_REAL },
	{ "gbps_std", NULL, TS_CELL_REAL },      { "gbps_min", "min", TS_CELL_REAL },
	{ "gbps_q25", NULL, TS_CELL_REAL },      { "gbps_median", "median", TS_CELL_REAL },
	{ "gbps_q75", NULL, TS_CELL_REAL },      { "gbps_max", "max", TS_CELL_REAL },
	{ "bytes_mean", NULL, TS_CELL_REAL },    { "untimed", NULL, TS_CELL_INTEGER },
};

struct copy {
	uint32_t rank;
	uint32_t trace;
	uint64_t row; /* in its trace */
	int64_t start, end, bytes;
	double rate; /* bytes per ns, which is GB/s; NaN: unknown */
	const char *kind;
	size_t kind_length;
};

struct copies {
	const struct ts_work *work;
	struct copy *items;
	size_t count, capacity;
};

static int no_memory(struct ts_error *err)
{
	return ts_error_set(err, TS_ENOMEM, "no memory for the copies");
}

static bool is_hta(const struct copies *all)
{
	return all->work->options.rounding == TS_ROUNDING_HTA;
}

/* ---- copies and fills ---- */

/* HTA cuts names to the length of "Memcpy DtoH". */
static void name_kind_hta(struct copy *copy, const char *name)
{
	copy->kind = ts_starts_with(name, "Memset")   ? "Memset"
		     : ts_starts_with(name, "Memcpy") ? name
						      : "Memcpy Unknown";
	copy->kind_length = strlen(copy->kind);
	if (copy->kind == name)
		copy->kind_length = TS_MIN(copy->kind_length, sizeof("Memcpy DtoH") - 1);
}

/* The name up to the parenthesis: "Memcpy HtoD (Pageable -> Device)". */
static void name_kind(struct copy *copy, const char *name)
{
	copy->kind = name;
	copy->kind_length = strcspn(name, "([<");
	while (copy->kind_length > 0 && name[copy->kind_length - 1] == ' ')
		copy->kind_length--;
	if (copy->kind_length == 0)
		copy->kind_length = strlen(name);
}

static int add_copy(struct copies *all, const struct ts_work_command *command)
{
	const struct ts_work *work = all->work;
	const char *name = ts_work_text(work, command->name);
	struct copy *copy;

	if (ts_grow_array((void **)&all->items, &all->capacity, all->count + 1,
			  sizeof(*all->items)))
		return TS_ENOMEM;
	copy = &all->items[all->count++];
	*copy = (struct copy){
		.rank = command->rank,
		.trace = work->ranks[command->rank].trace,
		.row = command->row,
		.start = command->start,
		.end = command->end,
		.bytes = command->bytes,
		.rate = NAN,
	};
	if (is_hta(all))
		name_kind_hta(copy, name);
	else
		name_kind(copy, name);
	return TS_OK;
}

static int find_copies(struct copies *all, struct ts_error *err)
{
	const struct ts_work *work = all->work;

	for (uint32_t i = 0; i < work->command_count; i++) {
		const struct ts_work_command *command = &work->commands[i];

		if (command->class == TS_CLASS_MEMORY &&
		    (!is_hta(all) || ts_busy_counts(work, command)) && add_copy(all, command))
			return no_memory(err);
	}
	return TS_OK;
}

/* ---- rates: a bandwidth in the trace is exact even if times are rounded ---- */

/* Position of the bandwidth among the arguments of each shape. */
struct rates {
	struct copies *all;
	struct ts_reader *reader;
	struct ts_batch *batch;
	struct ts_map positions; /* of a shape: twice the index of the value, plus 1, or plus 2 for
				    an integer */
	size_t next;             /* next copy, in row order */
};

static int compare_rows(const void *a, const void *b)
{
	const struct copy *x = a, *y = b;

	if (x->trace != y->trace)
		return x->trace < y->trace ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

/* The shape has no bandwidth: compute it from bytes and duration. */
#define COMPUTED UINT64_MAX

static uint64_t find_position(struct ts_reader *reader, int64_t id)
{
	const struct ts_shape *shape = ts_reader_shape(reader, id);
	uint64_t position = 0;

	for (uint32_t i = 0; i < shape->field_count; i++) {
		const struct ts_field *field = &shape->fields[i];

		if (!strcmp(ts_reader_string(reader, field->key).data, "memory bandwidth (GB/s)")) {
			if (field->type == TS_ARG_COLUMN)
				return COMPUTED;
			if (field->type == TS_ARG_DOUBLE || field->type == TS_ARG_INT)
				return position * 2 + (field->type == TS_ARG_INT ? 2 : 1);
		}
		position += ts_arg_has_value(field->type);
	}
	return 0;
}

/* The bandwidth in a row's arguments. NaN: compute it. HTA takes 0 if there is none. */
static double reported_rate(struct rates *rates, uint32_t row)
{
	const struct ts_batch *batch = rates->batch;
	int64_t shape = batch->columns[TS_COLUMN_OF(gpu_op, shape)][row];
	bool is_new;
	uint64_t *position = ts_map_insert(&rates->positions, (uint64_t)shape, &is_new);
	int64_t value;
	double rate;

	if (!position)
		return NAN;
	if (is_new)
		*position = find_position(rates->reader, shape);
	if (*position == 0)
		return is_hta(rates->all) ? 0 : NAN;
	if (*position == COMPUTED || !batch->arg_values)
		return NAN;
	value = batch->arg_values[batch->arg_offsets[row] + (*position - 1) / 2];
	if (*position % 2 == 0)
		return (double)value;
	memcpy(&rate, &value, sizeof(rate));
	return rate;
}

/* Sets the rates of the next copies that are rows [first, first + rows) of the trace. */
static void take_rates(struct rates *rates, uint32_t trace, uint64_t first)
{
	const struct ts_batch *batch = rates->batch;
	const int64_t *durations = batch->columns[TS_COLUMN_OF(gpu_op, duration)];

	for (; rates->next < rates->all->count; rates->next++) {
		struct copy *copy = &rates->all->items[rates->next];
		uint64_t row = copy->row - first;

		if (copy->trace != trace || row >= batch->rows)
			return;
		copy->rate = reported_rate(rates, (uint32_t)row);
		if (isnan(copy->rate) && copy->bytes != TS_ABSENT && durations[row] > 0)
			copy->rate = (double)copy->bytes / (double)durations[row];
	}
}

static int read_rates(struct rates *rates, uint32_t trace, struct ts_error *err)
{
	const uint64_t mask = TS_MASK_OF(gpu_op, duration) | TS_MASK_OF(gpu_op, shape);
	const struct copies *all = rates->all;
	uint64_t row = 0;
	int rc = TS_OK;

	for (size_t i = 0; !rc && i < ts_reader_chunk_count(rates->reader); i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(rates->reader, i);

		if (rates->next == all->count || all->items[rates->next].trace != trace)
			break;
		if (chunk->table != TS_TABLE_GPU_OP)
			continue;
		if (all->items[rates->next].row - row < chunk->rows) {
			rc = ts_batch_read(rates->batch, i, mask, err);
			if (!rc)
				take_rates(rates, trace, row);
		}
		row += chunk->rows;
	}
	return rc;
}

static int find_rates(struct copies *all, struct ts_error *err)
{
	struct rates rates = { .all = all };
	int rc = TS_OK;

	if (all->count)
		ts_sort(all->items, all->count, sizeof(*all->items), compare_rows);
	for (uint32_t trace = 0; !rc && trace < all->work->trace_count; trace++) {
		rates.reader = all->work->readers[trace];
		ts_map_clear(&rates.positions);
		rc = ts_batch_new(&rates.batch, rates.reader, err);
		if (!rc)
			rc = read_rates(&rates, trace, err);
		ts_batch_free(rates.batch);
		rates.batch = NULL;
	}
	ts_map_release(&rates.positions);
	return rc;
}

/* ---- momentary bandwidth ---- */

struct change {
	int64_t time;
	double rate; /* added or subtracted */
	size_t order;
	bool begins;
};

/* At equal times ends come first. HTA leaves the order to its sort: either may come first. */
static int compare_changes(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

/* Lists start and end of each copy whose rate is known. */
static size_t list_changes(const struct copy *copies, size_t count, bool hta,
			   struct change *changes)
{
	size_t listed = 0;

	for (size_t i = 0; i < count; i++) {
		const struct copy *copy = &copies[i];
		int64_t end = copy->end;

		if (isnan(copy->rate) || (!hta && end <= copy->start))
			continue;
		if (hta && end == copy->start)
			end += 1000; /* HTA gives copies that rounding has made empty 1 us */
		changes[listed++] = (struct change){ copy->start, copy->rate, count + i, true };
		changes[listed++] = (struct change){ end, -copy->rate, i, false };
	}
	if (listed)
		ts_sort(changes, listed, sizeof(*changes), compare_changes);
	return listed;
}

/*
 * The values above 0 after each change. Rounding errors of the sum are dropped when the last copy
 * ends.
 */
static size_t list_values(const struct change *changes, size_t count, double *values)
{
	int64_t running = 0; /* with HTA's rounding a copy may end before it begins */
	size_t kept = 0;
	double sum = 0;

	for (size_t i = 0; i < count; i++) {
		sum += changes[i].rate;
		running += changes[i].begins ? 1 : -1;
		if (running == 0)
			sum = 0;
		if (sum > 0)
			values[kept++] = sum;
	}
	return kept;
}

static int describe_moments(const struct copy *copies, size_t count, bool hta,
			    struct ts_description *ret)
{
	struct change *changes = ts_alloc_array(count, 2 * sizeof(*changes));
	double *values = ts_alloc_array(count, 2 * sizeof(*values));
	int rc = changes && values ? TS_OK : TS_ENOMEM;

	if (!rc) {
		size_t listed = list_changes(copies, count, hta, changes);

		ts_describe(values, list_values(changes, listed, values), ret);
	}
	free(changes);
	free(values);
	return rc;
}

/* ---- kinds ---- */

struct totals {
	int64_t bytes, timed_bytes;
	int64_t busy_ns, sized_busy_ns; /* of all copies, and of those whose size is known */
	int64_t untimed; /* copies without a duration or a size, which have no bandwidth */
	size_t sized;
};

static int64_t busy_of(const struct copy *copies, size_t count, bool sized, struct ts_span *spans)
{
	size_t listed = 0;

	for (size_t i = 0; i < count; i++)
		if (!sized || copies[i].bytes != TS_ABSENT)
			spans[listed++] = (struct ts_span){ copies[i].start, copies[i].end };
	return ts_spans_total(spans, ts_spans_merge(spans, listed));
}

static int add_up(const struct copy *copies, size_t count, struct totals *ret)
{
	struct ts_span *spans = ts_alloc_array(count, sizeof(*spans));
	struct totals totals = { 0 };

	if (!spans)
		return TS_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct copy *copy = &copies[i];
		bool sized = copy->bytes != TS_ABSENT, timed = sized && copy->end > copy->start;

		if (sized)
			totals.bytes = ts_ns_add(totals.bytes, copy->bytes);
		if (timed)
			totals.timed_bytes = ts_ns_add(totals.timed_bytes, copy->bytes);
		totals.sized += sized;
		totals.untimed += !timed;
	}
	totals.busy_ns = busy_of(copies, count, false, spans);
	totals.sized_busy_ns = busy_of(copies, count, true, spans);
	free(spans);
	*ret = totals;
	return TS_OK;
}

static void put_kind(struct ts_result_table *table, const struct ts_work *work,
		     const struct copy *copies, size_t count, const struct totals *totals,
		     const struct ts_description *moments)
{
	ts_cell_integer(table, work->ranks[copies->rank].rank);
	ts_cell_format(table, "%.*s", (int)TS_MIN(copies->kind_length, 4096), copies->kind);
	ts_cell_integer(table, (int64_t)count);
	ts_cell_bytes(table, totals->sized ? totals->bytes : TS_ABSENT);
	ts_cell_time(table, totals->busy_ns);
	ts_cell_real(table, totals->sized_busy_ns > 0
				    ? (double)totals->timed_bytes / (double)totals->sized_busy_ns
				    : NAN);
	ts_cell_integer(table, (int64_t)moments->count);
	ts_cell_real(table, moments->mean);
	ts_cell_real(table, moments->deviation);
	ts_cell_real(table, moments->minimum);
	ts_cell_real(table, moments->q25);
	ts_cell_real(table, moments->median);
	ts_cell_real(table, moments->q75);
	ts_cell_real(table, moments->maximum);
	ts_cell_real(table, totals->sized ? (double)totals->bytes / (double)totals->sized : NAN);
	ts_cell_integer(table, totals->untimed);
}

static int compare_kinds(const struct copy *x, const struct copy *y)
{
	int order;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	order = memcmp(x->kind, y->kind, TS_MIN(x->kind_length, y->kind_length));
	if (order)
		return order;
	return (x->kind_length > y->kind_length) - (x->kind_length < y->kind_length);
}

static int compare_copies(const void *a, const void *b)
{
	int order = compare_kinds(a, b);

	return order ? order : compare_rows(a, b);
}

static int put_kinds(struct ts_result_table *table, struct copies *all, struct ts_error *err)
{
	bool hta = is_hta(all);

	if (all->count)
		ts_sort(all->items, all->count, sizeof(*all->items), compare_copies);
	for (size_t first = 0, end; first < all->count; first = end) {
		struct ts_description moments;
		struct totals totals;

		for (end = first + 1; end < all->count; end++)
			if (compare_kinds(&all->items[first], &all->items[end]))
				break;
		if (describe_moments(&all->items[first], end - first, hta, &moments) ||
		    add_up(&all->items[first], end - first, &totals))
			return no_memory(err);
		if (!hta || moments.count > 0) /* HTA leaves out kinds without a bandwidth */
			put_kind(table, all->work, &all->items[first], end - first, &totals,
				 &moments);
	}
	return TS_OK;
}

static int run(struct ts_analyze_request *request, struct ts_result *result, struct ts_error *err)
{
	struct ts_result_table *table =
		ts_result_table(result, "bandwidth", columns, TS_ARRAY_SIZE(columns));
	struct copies all = { .work = request->work };
	int rc = find_copies(&all, err);

	if (!rc)
		rc = find_rates(&all, err);
	if (!rc)
		rc = put_kinds(table, &all, err);
	if (!rc && !all.count)
		ts_result_note(result, "the trace has no copies or fills");
	free(all.items);
	return rc ? rc : ts_result_status(result, err);
}

const struct ts_analysis ts_analysis_bandwidth = {
	.name = "bandwidth",
	.summary = "bytes and GB/s of copies and fills, by kind",
	.run = run,
};
