/* SPDX-License-Identifier: Apache-2.0 */
/* Merges the slices and calls of each thread into one tree, and computes self times. */
#include "analyze/host_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/ns.h"

static const char *const kind_names[] = {
	[TS_HOST_OPERATOR] = "operator", [TS_HOST_ANNOTATION] = "annotation",
	[TS_HOST_STEP] = "step",         [TS_HOST_SPAN] = "span",
	[TS_HOST_CALL] = "call",
};

const char *ts_host_kind_name(enum ts_host_kind kind)
{
	return kind_names[kind];
}

static struct ts_host_node slice_node(const struct ts_work *work, uint32_t index)
{
	const struct ts_work_slice *slice = &work->slices[index];
	struct ts_host_node node = { .start = slice->start,
				     .end = TS_MAX(slice->start, slice->end),
				     .rank = slice->rank,
				     .thread = slice->thread,
				     .name = slice->name,
				     .index = index };

	if (ts_work_is_step(work, slice)) {
		node.kind = TS_HOST_STEP;
		node.name = 0;
	} else {
		node.kind = slice->class == TS_SLICE_OP           ? TS_HOST_OPERATOR
			    : slice->class == TS_SLICE_ANNOTATION ? TS_HOST_ANNOTATION
								  : TS_HOST_SPAN;
	}
	return node;
}

static struct ts_host_node call_node(const struct ts_work *work, uint32_t index)
{
	const struct ts_work_call *call = &work->calls[index];

	return (struct ts_host_node){ .start = call->start,
				      .end = TS_MAX(call->start, call->end),
				      .rank = call->rank,
				      .thread = call->thread,
				      .name = call->name,
				      .index = index,
				      .kind = TS_HOST_CALL };
}

/* A device span is no work of a thread. */
static bool is_host_work(const struct ts_work_slice *slice)
{
	return slice->class != TS_SLICE_GPU_ANNOTATION && slice->class != TS_SLICE_PYTHON;
}

/* Does the slice come before the call? For equal starts the longer one encloses the other. */
static bool is_slice_first(const struct ts_work_slice *slice, const struct ts_work_call *call)
{
	return slice->start != call->start ? slice->start < call->start : slice->end >= call->end;
}

/* Merges both lists of a thread, which are sorted. */
static void add_thread(struct ts_host_tree *tree, const struct ts_work_thread *thread)
{
	const struct ts_work *work = tree->work;
	uint32_t slice = thread->first_slice, slice_end = slice + thread->slice_count;
	uint32_t call = thread->first_call, call_end = call + thread->call_count;

	while (slice < slice_end || call < call_end) {
		if (slice < slice_end && !is_host_work(&work->slices[slice])) {
			slice++;
			continue;
		}
		if (call == call_end ||
		    (slice < slice_end && is_slice_first(&work->slices[slice], &work->calls[call])))
			tree->nodes[tree->count++] = slice_node(work, slice++);
		else
			tree->nodes[tree->count++] = call_node(work, call++);
	}
}

/* A node that outlasts its parent takes from it only the time that they share. */
static void nest_thread(struct ts_host_tree *tree, uint32_t thread)
{
	uint32_t inner = TS_WORK_NONE;

	for (uint32_t i = tree->first[thread]; i < tree->first[thread + 1]; i++) {
		struct ts_host_node *node = &tree->nodes[i];

		while (inner != TS_WORK_NONE && tree->nodes[inner].end <= node->start)
			inner = tree->nodes[inner].parent;
		node->parent = inner;
		node->self_ns = ts_ns_between(node->start, node->end);
		if (inner != TS_WORK_NONE) {
			struct ts_host_node *parent = &tree->nodes[inner];
			int64_t shared = ts_ns_between(node->start, TS_MIN(node->end, parent->end));

			parent->self_ns = TS_MAX(parent->self_ns - shared, 0);
		}
		inner = i;
	}
}

int ts_host_tree_init(struct ts_host_tree *tree, const struct ts_work *work)
{
	size_t most = (size_t)work->slice_count + work->call_count;

	*tree = (struct ts_host_tree){ .work = work };
	if (most >= TS_WORK_NONE)
		return TS_ENOMEM;
	tree->nodes = ts_alloc_array(most, sizeof(*tree->nodes));
	tree->first = ts_alloc_array((size_t)work->thread_count + 1, sizeof(*tree->first));
	if (!tree->nodes || !tree->first) {
		ts_host_tree_release(tree);
		return TS_ENOMEM;
	}
	for (uint32_t i = 0; i < work->thread_count; i++) {
		tree->first[i] = tree->count;
		add_thread(tree, &work->threads[i]);
	}
	tree->first[work->thread_count] = tree->count;
	for (uint32_t i = 0; i < work->thread_count; i++)
		nest_thread(tree, i);
	return TS_OK;
}

void ts_host_tree_release(struct ts_host_tree *tree)
{
	free(tree->nodes);
	free(tree->first);
	*tree = (struct ts_host_tree){ 0 };
}

uint32_t ts_host_tree_at(const struct ts_host_tree *tree, uint32_t thread, int64_t time)
{
	uint32_t low = tree->first[thread], high = tree->first[thread + 1], found;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (tree->nodes[middle].start <= time)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == tree->first[thread])
		return TS_WORK_NONE;
	found = low - 1;
	while (found != TS_WORK_NONE && tree->nodes[found].end <= time)
		found = tree->nodes[found].parent;
	return found;
}

const char *ts_host_node_name(const struct ts_host_tree *tree, const struct ts_host_node *node)
{
	return node->kind == TS_HOST_STEP ? ts_work_step_name(tree->work)
					  : ts_work_text(tree->work, node->name);
}
