/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `kernels`: device time by class (and combination of classes) and by name. The cost is that of
 * sorting the durations of each name. HTA's list, which has fewer names and different numbers, is
 * in kernels_hta.c.
 */
#include <math.h>
#include <stdio.h>

#include "analyze/kernels.h"
#include "base/text.h"

/* ---- types ---- */

static const struct ts_result_column type_columns[] = {
	{ "type", "type", TS_CELL_TEXT },
	{ "sum_us", "time", TS_CELL_TIME },
	{ "percentage", "%", TS_CELL_PERCENT },
};

/* Time of a combination of classes. */
struct combination {
	unsigned int mask;
	int64_t ns;
};

static int longer_first(const void *a, const void *b)
{
	const struct combination *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return x->mask < y->mask ? -1 : x->mask > y->mask;
}

static void put_combination(struct ts_result_table *table, const struct combination *combination,
			    int64_t total_ns)
{
	char text[128] = "";
	size_t length = 0;

	for (unsigned int class = 0; class < TS_CLASS_COUNT; class ++) {
		if (!(combination->mask & TS_BUSY_CLASS(class)))
			continue;
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s",
					   length ? " overlapping " : "",
					   ts_command_class_name(class));
	}
	ts_cell_text(table, text);
	ts_cell_time(table, combination->ns);
	ts_cell_share(table, combination->ns, total_ns);
}

/* HTA leaves out work that it classes as neither compute, communication nor memory. */
static unsigned int wanted_classes(const struct ts_work *work)
{
	return work->options.rounding == TS_ROUNDING_HTA
		       ? TS_BUSY_ALL & ~TS_BUSY_CLASS(TS_CLASS_OTHER)
		       : TS_BUSY_ALL;
}

static int add_rank_types(const struct ts_work *work, uint32_t rank,
			  struct combination *combinations, struct ts_error *err)
{
	int64_t ns[TS_BUSY_ALL + 1];
	TS_SCOPED(ts_busy) busy = { 0 };
	int rc = ts_busy_init(&busy, work, rank, err);

	if (rc)
		return rc;
	ts_busy_sweep(&busy, wanted_classes(work), ns);
	for (unsigned int mask = 0; mask <= TS_BUSY_ALL; mask++)
		combinations[mask].ns = ts_ns_add(combinations[mask].ns, ns[mask]);
	return TS_OK;
}

static int put_types(const struct ts_work *work, struct ts_result *result, struct ts_error *err)
{
	struct ts_result_table *table =
		ts_result_table(result, "types", type_columns, TS_ARRAY_SIZE(type_columns));
	struct combination combinations[TS_BUSY_ALL + 1] = { 0 };
	int64_t total_ns = 0;

	for (uint32_t rank = 0; rank < work->rank_count; rank++) {
		int rc = add_rank_types(work, rank, combinations, err);

		if (rc)
			return rc;
	}
	for (unsigned int mask = 0; mask <= TS_BUSY_ALL; mask++) {
		combinations[mask].mask = mask;
		total_ns = ts_ns_add(total_ns, combinations[mask].ns);
	}
	ts_sort(combinations, TS_ARRAY_SIZE(combinations), sizeof(*combinations), longer_first);
	for (unsigned int i = 0; i <= TS_BUSY_ALL; i++)
		if (combinations[i].ns != 0)
			put_combination(table, &combinations[i], total_ns);
	return TS_OK;
}

/* ---- names ---- */

/* Group index of a name and class of the current rank. */
struct position {
	uint32_t owner; /* number of the rank, from 1; 0: unused */
	uint32_t group;
};

struct gathering {
	const struct ts_work *work;
	struct position *positions; /* of each name and class; those of another rank are unused */
	struct ts_kernel_groups *groups;
	double *durations; /* of a rank, grouped by name */
};

static size_t key_of(const struct ts_work_command *command)
{
	return (size_t)command->name * TS_CLASS_COUNT + command->class;
}

static int add_group(struct gathering *gathering, const struct ts_work_command *command)
{
	struct ts_kernel_groups *groups = gathering->groups;

	if (ts_grow_array((void **)&groups->items, &groups->capacity, groups->count + 1,
			  sizeof(*groups->items)))
		return TS_ENOMEM;
	gathering->positions[key_of(command)] =
		(struct position){ command->rank + 1, (uint32_t)groups->count };
	groups->items[groups->count++] = (struct ts_kernel_group){
		.rank = command->rank,
		.name = command->name,
		.class = command->class,
		.min_ns = INT64_MAX,
		.max_ns = INT64_MIN,
	};
	return TS_OK;
}

static int count_command(struct gathering *gathering, const struct ts_work_command *command)
{
	struct position *position = &gathering->positions[key_of(command)];
	int64_t ns = ts_busy_duration(gathering->work, command);
	struct ts_kernel_group *group;

	if ((!position->owner || position->owner != command->rank + 1) &&
	    add_group(gathering, command))
		return TS_ENOMEM;
	group = &gathering->groups->items[position->group];
	group->count++;
	group->sum_ns = ts_ns_add(group->sum_ns, ns);
	group->min_ns = TS_MIN(group->min_ns, ns);
	group->max_ns = TS_MAX(group->max_ns, ns);
	return TS_OK;
}

/* Is the command counted? HTA has no row for commands outside its three classes. */
static bool is_wanted(const struct ts_work *work, const struct ts_work_command *command)
{
	return ts_busy_counts(work, command) &&
	       (wanted_classes(work) & TS_BUSY_CLASS(command->class));
}

/* Groups the durations of the rank's commands and computes the statistics of each group. */
static void describe_groups(struct gathering *gathering, uint32_t rank, size_t first)
{
	const struct ts_work *work = gathering->work;
	struct ts_kernel_groups *groups = gathering->groups;
	const struct ts_work_rank *of = &work->ranks[rank];
	size_t at = 0;

	for (size_t i = first; i < groups->count; i++) {
		groups->items[i].filled = at;
		at += groups->items[i].count;
	}
	for (uint32_t i = of->first_command; i < of->first_command + of->command_count; i++) {
		const struct ts_work_command *command = &work->commands[i];

		if (!is_wanted(work, command))
			continue;
		at = groups->items[gathering->positions[key_of(command)].group].filled++;
		gathering->durations[at] = (double)ts_busy_duration(work, command);
	}
	for (size_t i = first; i < groups->count; i++) {
		struct ts_kernel_group *group = &groups->items[i];

		ts_describe(gathering->durations + group->filled - group->count, group->count,
			    &group->described);
	}
}

static int gather_rank(struct gathering *gathering, uint32_t rank)
{
	const struct ts_work *work = gathering->work;
	const struct ts_work_rank *of = &work->ranks[rank];
	size_t first = gathering->groups->count;

	for (uint32_t i = of->first_command; i < of->first_command + of->command_count; i++)
		if (is_wanted(work, &work->commands[i]) &&
		    count_command(gathering, &work->commands[i]))
			return TS_ENOMEM;
	gathering->durations = ts_alloc_array(of->command_count, sizeof(*gathering->durations));
	if (!gathering->durations)
		return TS_ENOMEM;
	if (gathering->groups->count > first)
		describe_groups(gathering, rank, first);
	free(gathering->durations);
	return TS_OK;
}

static int gather(struct ts_kernel_groups *groups, const struct ts_work *work, struct ts_error *err)
{
	size_t position_count = ((size_t)work->names.next_id + 1) * TS_CLASS_COUNT;
	TS_AUTO_FREE struct position *positions = calloc(position_count, sizeof(*positions));
	struct gathering gathering = { .work = work, .positions = positions, .groups = groups };

	if (!positions)
		return ts_error_set(err, TS_ENOMEM, "no memory to count commands by name");
	for (uint32_t rank = 0; rank < work->rank_count; rank++)
		if (gather_rank(&gathering, rank))
			return ts_error_set(err, TS_ENOMEM, "no memory to count commands by name");
	return TS_OK;
}

/* ---- rows ---- */

const struct ts_result_column ts_kernel_columns[TS_KERNEL_COLUMN_COUNT] = {
	{ "rank", "rank", TS_CELL_INTEGER }, { "name", "name", TS_CELL_TEXT },
	{ "type", "type", TS_CELL_TEXT },    { "count", "count", TS_CELL_INTEGER },
	{ "sum_us", "sum", TS_CELL_TIME },   { "share_pct", "share %", TS_CELL_PERCENT },
	{ "min_us", "min", TS_CELL_TIME },   { "max_us", "max", TS_CELL_TIME },
	{ "mean_us", "mean", TS_CELL_TIME }, { "std_us", "std", TS_CELL_TIME },
	{ "p50_us", "p50", TS_CELL_TIME },   { "p90_us", "p90", TS_CELL_TIME },
	{ "p99_us", "p99", TS_CELL_TIME },
};

static int by_name(const void *a, const void *b)
{
	const struct ts_kernel_group *x = a, *y = b;

	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* The most time over all ranks first; the ranks of a name follow each other. */
static int by_total(const void *a, const void *b)
{
	const struct ts_kernel_group *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	return by_name(a, b);
}

static bool is_same(const struct ts_kernel_group *a, const struct ts_kernel_group *b)
{
	return a->name == b->name && a->class == b->class;
}

static void order_groups(struct ts_kernel_groups *groups)
{
	struct ts_kernel_group *items = groups->items;

	if (!items)
		return;
	ts_sort(items, groups->count, sizeof(*items), by_name);
	for (size_t first = 0, end; first < groups->count; first = end) {
		int64_t total_ns = 0;

		for (end = first; end < groups->count && is_same(&items[first], &items[end]); end++)
			total_ns = ts_ns_add(total_ns, items[end].sum_ns);
		for (size_t i = first; i < end; i++)
			items[i].total_ns = total_ns;
	}
	ts_sort(items, groups->count, sizeof(*items), by_total);
}

/* Number of rows of the first `names` names. */
static size_t rows_of_names(const struct ts_kernel_groups *groups, int64_t names)
{
	size_t row = 0;

	while (row < groups->count) {
		if (row > 0 && !is_same(&groups->items[row], &groups->items[row - 1]) &&
		    --names == 0)
			break;
		row++;
	}
	return row;
}

static void put_group(struct ts_result_table *table, const struct ts_work *work,
		      const struct ts_kernel_group *group, int64_t rank_ns)
{
	ts_cell_integer(table, work->ranks[group->rank].rank);
	ts_cell_text(table, ts_work_text(work, group->name));
	ts_cell_text(table, ts_command_class_name(group->class));
	ts_cell_integer(table, (int64_t)group->count);
	ts_cell_time(table, group->sum_ns);
	ts_cell_share(table, group->sum_ns, rank_ns);
	ts_cell_time(table, group->min_ns);
	ts_cell_time(table, group->max_ns);
	ts_busy_put_ns(table, group->described.mean);
	ts_busy_put_ns(table, group->described.deviation);
	ts_busy_put_ns(table, group->described.median);
	ts_busy_put_ns(table, group->described.q90);
	ts_busy_put_ns(table, group->described.q99);
}

/* Statistics of the commands of names that text leaves out. */
struct others {
	size_t names, commands;
	int64_t sum_ns, max_ns;
};

static void note_others(struct ts_result *result, const struct others *others, int64_t all_ns)
{
	char sum[32], mean[32], max[32];

	if (others->names == 0)
		return;
	ts_format_duration_ns(sum, sizeof(sum), others->sum_ns);
	ts_format_duration_ns(mean, sizeof(mean), others->sum_ns / (int64_t)others->commands);
	ts_format_duration_ns(max, sizeof(max), others->max_ns);
	ts_result_note(result, "others: %s, %s, %s in all (%.1f %%), %s on average, at most %s",
		       TS_COUNTED(others->names, "more name"),
		       TS_COUNTED(others->commands, "command"), sum,
		       all_ns ? 100.0 * (double)others->sum_ns / (double)all_ns : 0.0, mean, max);
}

static void sum_others(struct ts_result *result, const struct ts_kernel_groups *groups,
		       size_t shown)
{
	struct others others = { .max_ns = INT64_MIN };
	int64_t all_ns = 0;

	for (size_t i = 0; i < groups->count; i++) {
		const struct ts_kernel_group *group = &groups->items[i];

		all_ns = ts_ns_add(all_ns, group->sum_ns);
		if (i < shown)
			continue;
		others.names += !is_same(group, group - 1);
		others.commands += group->count;
		others.sum_ns = ts_ns_add(others.sum_ns, group->sum_ns);
		others.max_ns = TS_MAX(others.max_ns, group->max_ns);
	}
	note_others(result, &others, all_ns);
}

static void put_groups(struct ts_analyze_request *request, struct ts_result *result,
		       struct ts_kernel_groups *groups, const int64_t *rank_ns)
{
	int64_t top = request->options.top > 0 ? request->options.top : TS_KERNEL_TOP;
	struct ts_result_table *table =
		ts_result_table(result, "kernels", ts_kernel_columns, TS_KERNEL_COLUMN_COUNT);

	table->details = TS_KERNEL_DETAILS;
	order_groups(groups);
	for (size_t i = 0; i < groups->count; i++)
		put_group(table, request->work, &groups->items[i], rank_ns[groups->items[i].rank]);
	table->shown_rows = rows_of_names(groups, top);
	sum_others(result, groups, table->shown_rows);
}

static int put_kernels(struct ts_analyze_request *request, struct ts_result *result,
		       struct ts_error *err)
{
	const struct ts_work *work = request->work;
	TS_AUTO_FREE int64_t *rank_ns = calloc(work->rank_count + 1u, sizeof(*rank_ns));
	TS_SCOPED(ts_kernel_groups) groups = { 0 };
	int rc = gather(&groups, work, err);

	if (rc)
		return rc;
	if (!rank_ns)
		return ts_error_set(err, TS_ENOMEM, "no memory to count commands by name");
	for (size_t i = 0; i < groups.count; i++)
		rank_ns[groups.items[i].rank] =
			ts_ns_add(rank_ns[groups.items[i].rank], groups.items[i].sum_ns);
	if (work->options.rounding == TS_ROUNDING_HTA)
		return ts_kernels_put_hta(request, result, &groups, rank_ns, err);
	put_groups(request, result, &groups, rank_ns);
	return TS_OK;
}

static int run(struct ts_analyze_request *request, struct ts_result *result, struct ts_error *err)
{
	int rc = put_types(request->work, result, err);

	if (rc == TS_OK)
		rc = put_kernels(request, result, err);
	if (rc)
		return rc;
	ts_busy_note(request->work, result);
	return ts_result_status(result, err);
}

const struct ts_analysis ts_analysis_kernels = {
	.name = "kernels",
	.summary = "time by kernel class and name, with percentiles",
	.example = "trace.json.gz kernels,idle --top 20",
	.run = run,
};
