/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of programs without device work, by their operators and spans: which takes the most time,
 * data loading, copies, short operators, time outside operators.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/advice/advice.h"
#include "analyze/host_tree.h"
#include "analyze/statistics.h"

#define MANY_OPERATORS 100

/* Of all threads, and of the busiest ones. */
struct total {
	int64_t ns;
	struct ts_advice_busiest busiest;
	uint64_t count;
};

/* Sums over all threads, by name. */
struct host_times {
	struct ts_host_tree tree;
	/* Self time of operators, without copies; of spans if there are no operators. */
	struct ts_advice_sums operators;
	struct ts_advice_sums outside; /* steps and annotations while no thread is in an operator */
	struct ts_advice_sums short_ones;
	struct ts_advice_sums copies; /* by what asked for them */
	struct total outside_operators, in_short_ones, copying, loading;
	bool has_operators;
};

static void release(struct host_times *times)
{
	ts_host_tree_release(&times->tree);
	ts_advice_sums_release(&times->operators);
	ts_advice_sums_release(&times->outside);
	ts_advice_sums_release(&times->short_ones);
	ts_advice_sums_release(&times->copies);
}

/* ---- sums ---- */

static void add_total(struct total *total, const struct ts_host_node *node, int64_t ns)
{
	total->ns = ts_ns_add(total->ns, ns);
	ts_advice_busiest_add(&total->busiest, node->rank, node->thread, ns);
	total->count++;
}

/* PyTorch annotates what waits for the next batch. */
static bool is_loading(const char *name)
{
	return strstr(name, "DataLoader") && strstr(name, "__next__");
}

static bool is_in_loading(const struct ts_host_tree *tree, const struct ts_host_node *node)
{
	for (uint32_t i = node->parent; i != TS_WORK_NONE; i = tree->nodes[i].parent)
		if (is_loading(ts_host_node_name(tree, &tree->nodes[i])))
			return true;
	return false;
}

/* A node without others below it. */
static bool is_leaf(const struct ts_host_tree *tree, uint32_t index)
{
	return index + 1 == tree->count || tree->nodes[index + 1].parent != index;
}

static int add_copy(struct host_times *times, const struct ts_host_node *node)
{
	const struct ts_host_node *asked =
		node->parent == TS_WORK_NONE ? node : &times->tree.nodes[node->parent];

	add_total(&times->copying, node, node->self_ns);
	return ts_advice_sums_add(&times->copies, asked->name, node->self_ns);
}

static int add_operator(struct host_times *times, uint32_t index, int64_t short_ns)
{
	const struct ts_host_node *node = &times->tree.nodes[index];

	if (!strcmp(ts_host_node_name(&times->tree, node), "aten::copy_"))
		return add_copy(times, node);
	if (is_leaf(&times->tree, index) && node->self_ns < short_ns) {
		add_total(&times->in_short_ones, node, node->self_ns);
		if (ts_advice_sums_add(&times->short_ones, node->name, node->self_ns))
			return TS_ENOMEM;
	}
	return ts_advice_sums_add(&times->operators, node->name, node->self_ns);
}

static void add_loading(struct host_times *times, const struct ts_host_node *node)
{
	if (!is_loading(ts_host_node_name(&times->tree, node)) || is_in_loading(&times->tree, node))
		return;
	add_total(&times->loading, node, ts_ns_between(node->start, node->end));
}

static int add_node(struct host_times *times, uint32_t index, int64_t short_ns)
{
	const struct ts_host_node *node = &times->tree.nodes[index];

	if (node->kind == TS_HOST_OPERATOR)
		return add_operator(times, index, short_ns);
	if (node->kind == TS_HOST_SPAN && !times->has_operators)
		return ts_advice_sums_add(&times->operators, node->name, node->self_ns);
	if (node->kind == TS_HOST_ANNOTATION)
		add_loading(times, node);
	return TS_OK;
}

/* ---- time in no operator ---- */

/* The operators of all threads of a rank, merged, and those that are still to come. */
struct covered {
	struct ts_span *spans;
	size_t count, next;
};

static int cover_rank(struct covered *covered, const struct ts_host_tree *tree, uint32_t rank)
{
	covered->spans = ts_alloc_array(tree->count, sizeof(*covered->spans));
	if (!covered->spans)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < tree->count; i++) {
		const struct ts_host_node *node = &tree->nodes[i];

		if (node->rank == rank && node->kind == TS_HOST_OPERATOR && node->end > node->start)
			covered->spans[covered->count++] =
				(struct ts_span){ node->start, node->end };
	}
	covered->count = ts_spans_merge(covered->spans, covered->count);
	return TS_OK;
}

/* How much of a stretch is covered; stretches come in order. */
static int64_t covered_ns(struct covered *covered, int64_t from, int64_t to)
{
	int64_t sum = 0;

	while (covered->next < covered->count && covered->spans[covered->next].end <= from)
		covered->next++;
	for (size_t i = covered->next; i < covered->count && covered->spans[i].start < to; i++)
		sum += TS_MIN(covered->spans[i].end, to) - TS_MAX(covered->spans[i].start, from);
	return sum;
}

/* A stretch in which a node was the innermost of its thread. Loading data is another finding. */
static int add_stretch(struct host_times *times, struct covered *covered, uint32_t index,
		       int64_t from, int64_t to)
{
	const struct ts_host_node *node = &times->tree.nodes[index];
	int64_t ns;

	if (to <= from || (node->kind != TS_HOST_ANNOTATION && node->kind != TS_HOST_STEP) ||
	    is_loading(ts_host_node_name(&times->tree, node)))
		return TS_OK;
	/* Another thread may run what this one waits for: a backward pass. */
	ns = to - from - covered_ns(covered, from, to);
	if (ns <= 0)
		return TS_OK;
	add_total(&times->outside_operators, node, ns);
	return ts_advice_sums_add(&times->outside, node->name, ns);
}

static int add_outside(struct host_times *times, struct covered *covered, uint32_t thread)
{
	const struct ts_host_tree *tree = &times->tree;
	uint32_t end = tree->first[thread + 1], inner = TS_WORK_NONE;
	int64_t from = INT64_MIN;

	covered->next = 0;
	for (uint32_t i = tree->first[thread]; i <= end; i++) {
		int64_t until = i < end ? tree->nodes[i].start : INT64_MAX;

		for (; inner != TS_WORK_NONE && tree->nodes[inner].end <= until;
		     inner = tree->nodes[inner].parent) {
			if (add_stretch(times, covered, inner, from, tree->nodes[inner].end))
				return TS_ENOMEM;
			from = TS_MAX(from, tree->nodes[inner].end);
		}
		if (inner != TS_WORK_NONE && add_stretch(times, covered, inner, from, until))
			return TS_ENOMEM;
		from = until;
		inner = i;
	}
	return TS_OK;
}

static int add_rank_outside(struct host_times *times, uint32_t rank)
{
	const struct ts_work *work = times->tree.work;
	struct covered covered = { 0 };
	int code = cover_rank(&covered, &times->tree, rank);

	for (uint32_t i = 0; !code && i < work->thread_count; i++)
		if (work->threads[i].rank == rank)
			code = add_outside(times, &covered, i);
	free(covered.spans);
	return code;
}

static int sum_up(const struct ts_advisor *advisor, struct host_times *times)
{
	if (ts_host_tree_init(&times->tree, advisor->work))
		return TS_ENOMEM;
	for (uint32_t i = 0; i < times->tree.count; i++)
		times->has_operators |= times->tree.nodes[i].kind == TS_HOST_OPERATOR;
	for (uint32_t i = 0; i < times->tree.count; i++)
		if (add_node(times, i, advisor->request->options.short_ns))
			return TS_ENOMEM;
	for (uint32_t i = 0; i < advisor->work->rank_count && times->has_operators; i++)
		if (add_rank_outside(times, i))
			return TS_ENOMEM;
	return TS_OK;
}

/* ---- findings ---- */

/* Of time in several threads: how much is in the busiest one. */
static void append_busiest(struct ts_text *out, const struct ts_advisor *advisor,
			   const struct total *total)
{
	if (total->busiest.ns < total->ns)
		ts_text_printf(out, ", %s of it in the busiest thread%s",
			       TS_ADVICE_TIME(total->busiest.ns),
			       advisor->work->rank_count > 1 ? " of each rank" : "");
}

/* Steps share one name, which the work does not have. */
static void append_name(struct ts_text *out, const struct ts_advisor *advisor,
			const struct ts_advice_sum *sum)
{
	ts_advice_append_name(out, sum->name ? ts_work_text(advisor->work, sum->name)
					     : ts_work_step_name(advisor->work));
}

static void append_mostly(struct ts_text *out, const struct ts_advisor *advisor,
			  const struct ts_advice_sums *sums, const char *word)
{
	const struct ts_advice_sum *largest = ts_advice_sums_largest(sums);

	if (!largest)
		return;
	ts_text_printf(out, "; %s ", word);
	append_name(out, advisor, largest);
	ts_text_printf(out, " (%s, %s)", TS_COUNTED(largest->count, "time"),
		       TS_ADVICE_TIME(largest->ns));
}

static struct total total_of(const struct host_times *times, uint32_t name)
{
	struct total total = { 0 };

	for (uint32_t i = 0; i < times->tree.count; i++) {
		const struct ts_host_node *node = &times->tree.nodes[i];

		if (node->name == name &&
		    node->kind == (times->has_operators ? TS_HOST_OPERATOR : TS_HOST_SPAN))
			add_total(&total, node, node->self_ns);
	}
	return total;
}

static int advise_dominant(struct ts_advisor *advisor, const struct host_times *times)
{
	const struct ts_advice_sum *largest = ts_advice_sums_largest(&times->operators);
	struct ts_text finding = { 0 }, evidence = { 0 };
	struct total total;

	if (!largest)
		return TS_OK;
	total = total_of(times, largest->name);
	ts_text_printf(&finding, "%s ", times->has_operators ? "operator" : "span");
	ts_advice_append_name(&finding, ts_work_text(advisor->work, largest->name));
	ts_text_printf(&finding, " takes more time than any other; %s", advisor->words->speed_up);
	ts_text_printf(&evidence, "without what it calls, it ran %s for %s in total",
		       TS_COUNTED(total.count, "time"), TS_ADVICE_TIME(total.ns));
	append_busiest(&evidence, advisor, &total);
	ts_text_append_str(&evidence, "; twice as fast, it would save half of that");
	return ts_advise(advisor, total.busiest.ns / 2, "operators", &finding, &evidence);
}

static int advise_loading(struct ts_advisor *advisor, const struct total *loading)
{
	struct ts_text finding = { 0 }, evidence = { 0 };

	ts_text_append_str(
		&finding,
		"the program waits for its next batch; load it in worker processes (num_workers), ahead of time, or keep it in memory");
	ts_text_printf(&evidence, "it was in the data loader %s for %s in total",
		       TS_COUNTED(loading->count, "time"), TS_ADVICE_TIME(loading->ns));
	append_busiest(&evidence, advisor, loading);
	return ts_advise(advisor, loading->busiest.ns, "operators", &finding, &evidence);
}

static int advise_copies(struct ts_advisor *advisor, const struct host_times *times)
{
	struct ts_text finding = { 0 }, evidence = { 0 };

	ts_text_append_str(
		&finding,
		"tensors are copied from one place of host memory to another; convert types and layouts once, and avoid clone() and contiguous() in the loop");
	ts_text_printf(&evidence, "%s took %s", TS_COUNTED(times->copying.count, "copy"),
		       TS_ADVICE_TIME(times->copying.ns));
	append_busiest(&evidence, advisor, &times->copying);
	append_mostly(&evidence, advisor, &times->copies, "mostly for");
	return ts_advise(advisor, times->copying.busiest.ns, "operators", &finding, &evidence);
}

static int advise_short(struct ts_advisor *advisor, const struct host_times *times)
{
	struct ts_text finding = { 0 }, evidence = { 0 };

	ts_text_printf(
		&finding,
		"many operators are so short that calling them costs as much as what they do; %s",
		advisor->words->batch);
	ts_text_printf(&evidence, "%s shorter than %s took %s",
		       TS_COUNTED(times->in_short_ones.count, "operator"),
		       TS_ADVICE_TIME(advisor->request->options.short_ns),
		       TS_ADVICE_TIME(times->in_short_ones.ns));
	append_busiest(&evidence, advisor, &times->in_short_ones);
	append_mostly(&evidence, advisor, &times->short_ones, "mostly");
	ts_text_append_str(&evidence, "; assumes half of the time is saved");
	return ts_advise(advisor, times->in_short_ones.busiest.ns / 2, "operators", &finding,
			 &evidence);
}

static int advise_outside(struct ts_advisor *advisor, const struct host_times *times)
{
	const struct ts_advice_sum *largest = ts_advice_sums_largest(&times->outside);
	const char *name = largest ? ts_work_text(advisor->work, largest->name) : "";
	struct ts_text finding = { 0 }, evidence = { 0 };

	ts_text_printf(&finding, "the host is in steps and annotations, but no operator runs; %s",
		       strstr(name, "Optimizer")
			       ? "use a fused or foreach optimizer, which calls far fewer operators"
			       : advisor->words->show_host);
	ts_text_printf(&evidence, "that takes %s", TS_ADVICE_TIME(times->outside_operators.ns));
	append_busiest(&evidence, advisor, &times->outside_operators);
	if (largest) {
		ts_text_append_str(&evidence, "; mostly in ");
		append_name(&evidence, advisor, largest);
		ts_text_printf(&evidence, " (%s)", TS_ADVICE_TIME(largest->ns));
	}
	return ts_advise(advisor, times->outside_operators.busiest.ns, "operators", &finding,
			 &evidence);
}

int ts_advise_operators(struct ts_advisor *advisor)
{
	struct host_times times = { 0 };
	int code = TS_OK;

	if (sum_up(advisor, &times))
		code = ts_error_set(advisor->err, TS_ENOMEM, "no memory");
	if (!code)
		code = advise_dominant(advisor, &times);
	if (!code && times.loading.ns > 0)
		code = advise_loading(advisor, &times.loading);
	if (!code && times.copying.ns > 0)
		code = advise_copies(advisor, &times);
	if (!code && times.in_short_ones.count >= MANY_OPERATORS)
		code = advise_short(advisor, &times);
	if (!code && times.outside_operators.ns > 0)
		code = advise_outside(advisor, &times);
	release(&times);
	return code;
}
