/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of kernels as HTA computes it (`--rounding hta`): at most ten names of each rank and
 * type, the rest as "others". With more than ten, minimum, maximum, mean and deviation are those of
 * the SUMS of names, not of commands. The deviation of one value is 0.
 */
#include <math.h>

#include "analyze/kernels.h"

#define HTA_KEPT_TIME 0.8 /* names beyond this quantile of the running sum are also others */

struct row {
	const char *name; /* NULL: others */
	uint32_t rank;
	uint8_t class;
	size_t count;
	int64_t sum_ns, min_ns, max_ns;
	double mean_ns, deviation_ns;
};

struct rows {
	struct row *items;
	size_t count, capacity;
};

static void rows_release(struct rows *rows)
{
	free(rows->items);
}

static int put_row(struct rows *rows, const struct row *row)
{
	if (ts_grow_array((void **)&rows->items, &rows->capacity, rows->count + 1, sizeof(*row)))
		return TS_ENOMEM;
	rows->items[rows->count++] = *row;
	return TS_OK;
}

/* If no name is hidden, the numbers are those of commands. */
static struct row row_of(const struct ts_work *work, const struct ts_kernel_group *group)
{
	double deviation = group->described.deviation;

	return (struct row){
		.name = ts_work_text(work, group->name),
		.rank = group->rank,
		.class = group->class,
		.count = group->count,
		.sum_ns = group->sum_ns,
		.min_ns = group->min_ns,
		.max_ns = group->max_ns,
		.mean_ns = group->described.mean,
		.deviation_ns = isnan(deviation) ? 0 : deviation,
	};
}

/* A name that was kept while others were hidden: its only value is its sum. */
static struct row row_of_sum(const struct ts_work *work, const struct ts_kernel_group *group)
{
	struct row row = row_of(work, group);

	row.min_ns = row.max_ns = row.sum_ns;
	row.mean_ns = (double)row.sum_ns;
	row.deviation_ns = 0;
	return row;
}

/* Takes the sums of hidden names and sorts them in place. */
static void finish_others(struct row *others, double *sums, size_t count)
{
	struct ts_description described;

	ts_describe(sums, count, &described);
	others->mean_ns = described.mean;
	others->deviation_ns = isnan(described.deviation) ? 0 : described.deviation;
}

static void add_to_others(struct row *others, const struct ts_kernel_group *group)
{
	others->count += group->count;
	others->sum_ns = ts_ns_add(others->sum_ns, group->sum_ns);
	others->min_ns = TS_MIN(others->min_ns, group->sum_ns);
	others->max_ns = TS_MAX(others->max_ns, group->sum_ns);
}

/*
 * The running sum beyond which names are hidden. sums: scratch for `count` values. The running sum
 * may fall: rounding makes sums of short kernels negative.
 */
static double kept_until(const struct ts_kernel_group *groups, size_t count, double *sums)
{
	struct ts_description described;
	double sum = 0;

	for (size_t i = 0; i < count; i++) {
		sum += (double)groups[i].sum_ns;
		sums[i] = sum;
	}
	ts_describe(sums, count, &described); /* sorts them */
	return ts_quantile(sums, count, HTA_KEPT_TIME);
}

/*
 * Groups of one rank and class, the largest sum first, if there are more than HTA keeps. Negative
 * sums are never hidden.
 */
static int put_some(struct rows *rows, const struct ts_work *work,
		    const struct ts_kernel_group *groups, size_t count, size_t kept)
{
	TS_AUTO_FREE double *sums = ts_alloc_array(count, sizeof(*sums));
	struct row others = { .rank = groups->rank,
			      .class = groups->class,
			      .min_ns = INT64_MAX,
			      .max_ns = INT64_MIN };
	double limit, sum = 0;
	size_t hidden = 0;

	if (!sums)
		return TS_ENOMEM;
	limit = kept_until(groups, count, sums);
	for (size_t i = 0; i < count; i++) {
		struct row row = row_of_sum(work, &groups[i]);

		sum += (double)groups[i].sum_ns;
		if (groups[i].sum_ns >= 0 && (sum > limit || i >= kept)) {
			add_to_others(&others, &groups[i]);
			sums[hidden++] = (double)groups[i].sum_ns;
		} else if (put_row(rows, &row)) {
			return TS_ENOMEM;
		}
	}
	if (!hidden)
		return TS_OK;
	finish_others(&others, sums, hidden);
	return put_row(rows, &others);
}

static int put_all(struct rows *rows, const struct ts_work *work,
		   const struct ts_kernel_group *groups, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct row row = row_of(work, &groups[i]);

		if (put_row(rows, &row))
			return TS_ENOMEM;
	}
	return TS_OK;
}

/* Sorted by rank and class, the largest sum first; the text of the name orders equal sums. */
struct named_group {
	struct ts_kernel_group group;
	const char *name;
};

static int by_sum(const void *a, const void *b)
{
	const struct named_group *x = a, *y = b;

	if (x->group.rank != y->group.rank)
		return x->group.rank < y->group.rank ? -1 : 1;
	if (x->group.class != y->group.class)
		return x->group.class < y->group.class ? -1 : 1;
	if (x->group.sum_ns != y->group.sum_ns)
		return x->group.sum_ns > y->group.sum_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int order_groups(struct ts_kernel_groups *groups, const struct ts_work *work)
{
	TS_AUTO_FREE struct named_group *named = ts_alloc_array(groups->count, sizeof(*named));

	if (!named)
		return TS_ENOMEM;
	for (size_t i = 0; i < groups->count; i++)
		named[i] = (struct named_group){ groups->items[i],
						 ts_work_text(work, groups->items[i].name) };
	if (groups->count)
		ts_sort(named, groups->count, sizeof(*named), by_sum);
	for (size_t i = 0; i < groups->count; i++)
		groups->items[i] = named[i].group;
	return TS_OK;
}

static int make_rows(struct rows *rows, const struct ts_work *work,
		     const struct ts_kernel_groups *groups, size_t kept)
{
	const struct ts_kernel_group *items = groups->items;

	for (size_t first = 0, end; first < groups->count; first = end) {
		int rc;

		for (end = first + 1; end < groups->count && items[end].rank == items[first].rank &&
				      items[end].class == items[first].class;)
			end++;
		rc = end - first > kept ? put_some(rows, work, &items[first], end - first, kept)
					: put_all(rows, work, &items[first], end - first);
		if (rc)
			return rc;
	}
	return TS_OK;
}

static const char *shown_name(const struct row *row)
{
	return row->name ? row->name : "others";
}

/* HTA sorts by type, name, rank. */
static int by_type(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int order = strcmp(ts_command_class_name(x->class), ts_command_class_name(y->class));

	if (order == 0)
		order = strcmp(shown_name(x), shown_name(y));
	if (order)
		return order;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static void show_row(struct ts_result_table *table, const struct ts_work *work,
		     const struct row *row, int64_t rank_ns)
{
	ts_cell_integer(table, work->ranks[row->rank].rank);
	ts_cell_text(table, shown_name(row));
	ts_cell_text(table, ts_command_class_name(row->class));
	ts_cell_integer(table, (int64_t)row->count);
	ts_cell_time(table, row->sum_ns);
	ts_cell_share(table, row->sum_ns, rank_ns);
	ts_cell_time(table, row->min_ns);
	ts_cell_time(table, row->max_ns);
	ts_busy_put_ns(table, row->mean_ns);
	ts_busy_put_ns(table, row->deviation_ns);
	for (int i = 0; i < 3; i++)
		ts_cell_none(table); /* HTA has no percentiles */
}

int ts_kernels_put_hta(struct ts_analyze_request *request, struct ts_result *result,
		       struct ts_kernel_groups *groups, const int64_t *rank_ns,
		       struct ts_error *err)
{
	struct ts_result_table *table =
		ts_result_table(result, "kernels", ts_kernel_columns, TS_KERNEL_COLUMN_COUNT);
	int64_t kept = request->options.top > 0 ? request->options.top : TS_KERNEL_TOP;
	__attribute__((cleanup(rows_release))) struct rows rows = { 0 };
	int rc = order_groups(groups, request->work);

	table->details = TS_KERNEL_DETAILS;
	if (rc == TS_OK)
		rc = make_rows(&rows, request->work, groups, (size_t)kept);
	if (rc)
		return ts_error_set(err, rc, "no memory to list kernels");
	if (rows.count)
		ts_sort(rows.items, rows.count, sizeof(*rows.items), by_type);
	for (size_t i = 0; i < rows.count; i++)
		show_row(table, request->work, &rows.items[i], rank_ns[rows.items[i].rank]);
	return TS_OK;
}
