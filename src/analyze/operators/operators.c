/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `operators`: self and total time, device time and memory of operators, annotations, spans and
 * calls, by name or by name and shapes. docs/analyze.md defines the numbers.
 */
#include "analyze/operators/operators.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"
#include "base/ns.h"

#define SHOWN_ROWS 20

/* All nodes of a rank with the same kind, name and shapes. */
struct group {
	uint32_t node; /* one of them */
	uint32_t shapes;
	int64_t calls;
	int64_t self_ns, total_ns, longest_ns;
	struct ts_operator_work self, total;
	uint32_t thread; /* where the last outermost one ran, and until when */
	int64_t until;
};

struct operators {
	struct ts_host_tree tree;
	struct ts_operator_works works;   /* of each node itself */
	struct ts_operator_work *totals;  /* of each node with the nodes below it */
	struct ts_operator_shapes shapes; /* empty unless grouped by shape */
	bool by_shape;
	struct ts_pairmap positions; /* of groups */
	struct group *groups;
	size_t count, capacity;
	int64_t *self_ns; /* of each rank */
};

static void operators_release(struct operators *all)
{
	ts_operator_works_release(&all->works);
	ts_operator_shapes_release(&all->shapes);
	ts_host_tree_release(&all->tree);
	ts_pairmap_release(&all->positions);
	free(all->totals);
	free(all->groups);
	free(all->self_ns);
}

/* ---- sums ---- */

static void add_work(struct ts_operator_work *to, const struct ts_operator_work *work)
{
	to->device_ns = ts_ns_add(to->device_ns, work->device_ns);
	to->host_bytes = ts_ns_add(to->host_bytes, work->host_bytes);
	to->device_bytes = ts_ns_add(to->device_bytes, work->device_bytes);
}

/* Parents come before their children. */
static int sum_totals(struct operators *all)
{
	uint32_t count = all->tree.count;

	all->totals = ts_alloc_array(count, sizeof(*all->totals));
	if (!all->totals)
		return TS_ENOMEM;
	memcpy(all->totals, all->works.nodes, count * sizeof(*all->totals));
	for (uint32_t i = count; i-- > 0;)
		if (all->tree.nodes[i].parent != TS_WORK_NONE)
			add_work(&all->totals[all->tree.nodes[i].parent], &all->totals[i]);
	return TS_OK;
}

static uint32_t shapes_of(const struct operators *all, const struct ts_host_node *node)
{
	return all->by_shape && node->kind == TS_HOST_OPERATOR ? all->shapes.of_slice[node->index]
							       : 0;
}

static struct group *group_of(struct operators *all, uint32_t index)
{
	const struct ts_host_node *node = &all->tree.nodes[index];
	uint32_t shapes = shapes_of(all, node);
	bool is_new;
	uint64_t *position = ts_pairmap_insert(&all->positions, (uint64_t)node->name << 32 | shapes,
					       (uint64_t)node->rank << 8 | node->kind, &is_new);

	if (!position || (is_new && ts_grow_array((void **)&all->groups, &all->capacity,
						  all->count + 1, sizeof(*all->groups))))
		return NULL;
	if (is_new) {
		*position = all->count;
		all->groups[all->count++] =
			(struct group){ .node = index, .shapes = shapes, .thread = TS_WORK_NONE };
	}
	return &all->groups[*position];
}

/* A node inside another of its group adds to the total of neither. */
static int add_node(struct operators *all, uint32_t index)
{
	const struct ts_host_node *node = &all->tree.nodes[index];
	int64_t duration = ts_ns_between(node->start, node->end);
	struct group *group = group_of(all, index);

	if (!group)
		return TS_ENOMEM;
	group->calls++;
	group->self_ns = ts_ns_add(group->self_ns, node->self_ns);
	group->longest_ns = TS_MAX(group->longest_ns, duration);
	add_work(&group->self, &all->works.nodes[index]);
	all->self_ns[node->rank] = ts_ns_add(all->self_ns[node->rank], node->self_ns);
	if (group->thread == node->thread && node->start < group->until)
		return TS_OK;
	group->thread = node->thread;
	group->until = node->end;
	group->total_ns = ts_ns_add(group->total_ns, duration);
	add_work(&group->total, &all->totals[index]);
	return TS_OK;
}

static int operators_init(struct operators *all, const struct ts_analyze_request *request,
			  struct ts_error *err)
{
	const struct ts_work *work = request->work;
	int rc = ts_host_tree_init(&all->tree, work);

	all->by_shape = request->options.by_shape;
	all->self_ns = calloc((size_t)work->rank_count + 1, sizeof(*all->self_ns));
	if (rc || !all->self_ns)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	rc = ts_operator_works_init(&all->works, &all->tree, err);
	if (!rc && all->by_shape)
		rc = ts_operator_shapes_init(&all->shapes, work, err);
	if (!rc && sum_totals(all))
		rc = ts_error_set(err, TS_ENOMEM, "no memory");
	for (uint32_t i = 0; !rc && i < all->tree.count; i++)
		if (add_node(all, i))
			rc = ts_error_set(err, TS_ENOMEM, "no memory");
	return rc;
}

/* ---- order ---- */

enum order { BY_SELF, BY_TOTAL, BY_CALLS, BY_MEAN, BY_DEVICE, BY_MEMORY, BY_NAME };

static const char *const order_words[] = { "self",   "total",  "calls", "mean",
					   "device", "memory", "name",  NULL };

struct sorted {
	const struct group *group;
	int64_t key; /* the largest first */
	const char *name;
};

static int64_t key_of(const struct group *group, int64_t order)
{
	switch (order) {
	case BY_TOTAL:
		return group->total_ns;
	case BY_CALLS:
		return group->calls;
	case BY_MEAN:
		return group->total_ns / group->calls;
	case BY_DEVICE:
		return group->total.device_ns;
	case BY_MEMORY:
		return ts_ns_add(group->self.host_bytes, group->self.device_bytes);
	case BY_NAME:
		return 0;
	default:
		return group->self_ns;
	}
}

static int compare_sorted(const void *left, const void *right)
{
	const struct sorted *a = left, *b = right;

	if (a->key != b->key)
		return TS_COMPARE(b->key, a->key);
	if (strcmp(a->name, b->name) != 0)
		return strcmp(a->name, b->name);
	return TS_COMPARE(a->group, b->group);
}

static struct sorted *sort_groups(const struct operators *all, int64_t order)
{
	struct sorted *sorted = ts_alloc_array(all->count, sizeof(*sorted));

	for (size_t i = 0; sorted && i < all->count; i++)
		sorted[i] = (struct sorted){
			.group = &all->groups[i],
			.key = key_of(&all->groups[i], order),
			.name = ts_host_node_name(&all->tree,
						  &all->tree.nodes[all->groups[i].node]),
		};
	if (sorted)
		ts_sort(sorted, all->count, sizeof(*sorted), compare_sorted);
	return sorted;
}

/* ---- table ---- */

static const struct ts_result_column columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER },
	{ "kind", "kind", TS_CELL_TEXT },
	{ "calls", "calls", TS_CELL_INTEGER },
	{ "self_us", "self", TS_CELL_TIME },
	{ "self_pct", "self %", TS_CELL_PERCENT },
	{ "total_us", "total", TS_CELL_TIME },
	{ "total_pct", "total %", TS_CELL_PERCENT },
	{ "mean_us", "mean", TS_CELL_TIME },
	{ "max_us", NULL, TS_CELL_TIME },
	{ "self_device_us", "self device", TS_CELL_TIME },
	{ "total_device_us", "total device", TS_CELL_TIME },
	{ "self_host_bytes", "self memory", TS_CELL_BYTES },
	{ "total_host_bytes", "total memory", TS_CELL_BYTES },
	{ "self_device_bytes", "self device memory", TS_CELL_BYTES },
	{ "total_device_bytes", "total device memory", TS_CELL_BYTES },
	{ "name", "name", TS_CELL_TEXT },
	{ "shapes", "shapes", TS_CELL_TEXT },
};

/* What a trace need not have. */
enum part { DEVICE_WORK, HOST_MEMORY, DEVICE_MEMORY, SHAPES };

static bool has(const struct operators *all, enum part part)
{
	switch (part) {
	case DEVICE_WORK:
		return all->tree.work->command_count > 0;
	case HOST_MEMORY:
		return all->works.has_host_memory;
	case DEVICE_MEMORY:
		return all->works.has_device_memory;
	default:
		return all->by_shape;
	}
}

static struct ts_result_table *make_table(const struct operators *all, struct ts_result *result)
{
	static const struct {
		const char *key;
		enum part part;
	} optional[] = {
		{ "self_device_us", DEVICE_WORK },
		{ "total_device_us", DEVICE_WORK },
		{ "self_host_bytes", HOST_MEMORY },
		{ "total_host_bytes", HOST_MEMORY },
		{ "self_device_bytes", DEVICE_MEMORY },
		{ "total_device_bytes", DEVICE_MEMORY },
		{ "shapes", SHAPES },
	};
	struct ts_result_table *table =
		ts_result_table(result, "operators", columns, TS_ARRAY_SIZE(columns));

	for (size_t i = 0; i < TS_ARRAY_SIZE(optional); i++)
		if (!has(all, optional[i].part))
			ts_result_hide(table, optional[i].key);
	return table;
}

static void put_work(struct ts_result_table *table, const struct operators *all,
		     const struct group *group)
{
	bool device = has(all, DEVICE_WORK);
	bool host_memory = has(all, HOST_MEMORY), device_memory = has(all, DEVICE_MEMORY);

	ts_cell_time(table, device ? group->self.device_ns : TS_ABSENT);
	ts_cell_time(table, device ? group->total.device_ns : TS_ABSENT);
	ts_cell_bytes(table, host_memory ? group->self.host_bytes : TS_ABSENT);
	ts_cell_bytes(table, host_memory ? group->total.host_bytes : TS_ABSENT);
	ts_cell_bytes(table, device_memory ? group->self.device_bytes : TS_ABSENT);
	ts_cell_bytes(table, device_memory ? group->total.device_bytes : TS_ABSENT);
}

static void put_group(struct ts_result_table *table, const struct operators *all,
		      const struct group *group)
{
	const struct ts_host_node *node = &all->tree.nodes[group->node];

	ts_cell_integer(table, all->tree.work->ranks[node->rank].rank);
	ts_cell_text(table, ts_host_kind_name(node->kind));
	ts_cell_integer(table, group->calls);
	ts_cell_time(table, group->self_ns);
	ts_cell_share(table, group->self_ns, all->self_ns[node->rank]);
	ts_cell_time(table, group->total_ns);
	ts_cell_share(table, group->total_ns, all->self_ns[node->rank]);
	ts_cell_time(table, group->total_ns / group->calls);
	ts_cell_time(table, group->longest_ns);
	put_work(table, all, group);
	ts_cell_text(table, ts_host_node_name(&all->tree, node));
	ts_cell_text(table, group->shapes ? ts_strmap_text(&all->shapes.texts, group->shapes, NULL)
					  : NULL);
}

static int put_table(const struct operators *all, const struct ts_analyze_request *request,
		     struct ts_result *result)
{
	struct ts_result_table *table = make_table(all, result);
	TS_AUTO_FREE struct sorted *sorted = sort_groups(all, request->options.operator_order);

	if (!sorted)
		return TS_ENOMEM;
	table->shown_rows = request->options.top ? (size_t)request->options.top : SHOWN_ROWS;
	for (size_t i = 0; i < all->count; i++)
		put_group(table, all, sorted[i].group);
	if (!all->count)
		ts_result_note(result, "the trace has no operators, annotations, spans or calls");
	else if (all->by_shape && ts_strmap_count(&all->shapes.texts) == 1)
		ts_result_note(result,
			       "the trace has no shapes (torch.profiler: record_shapes=True)");
	return TS_OK;
}

/* ---- analysis ---- */

static int run(struct ts_analyze_request *request, struct ts_result *result, struct ts_error *err)
{
	struct operators all = { 0 };
	int rc = operators_init(&all, request, err);

	if (!rc && put_table(&all, request, result))
		rc = ts_error_set(err, TS_ENOMEM, "no memory");
	operators_release(&all);
	return rc ? rc : ts_result_status(result, err);
}

static const struct ts_option_spec options[] = {
	{
		.name = "by-shape",
		.type = TS_OPTION_SPEC_FLAG,
		.doc = "a row for each name and shapes of inputs",
		.offset = offsetof(struct ts_analysis_options, by_shape),
	},
	{
		.name = "sort",
		.type = TS_OPTION_SPEC_CHOICE,
		.value = "KEY",
		.words = order_words,
		.doc = "self (default), total, calls, mean, device, memory or name",
		.offset = offsetof(struct ts_analysis_options, operator_order),
	},
};

const struct ts_analysis ts_analysis_operators = {
	.name = "operators",
	.summary = "self and total time, memory and shapes of operators and spans",
	.example = "cpu.json.gz operators --by-shape --sort total",
	.load_flags = TS_WORK_SLICES,
	.options = options,
	.option_count = TS_ARRAY_SIZE(options),
	.run = run,
};
