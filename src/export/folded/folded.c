/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks: "process;thread;outer (a.py:3);inner (b.py:7) 42", one per line, as in
 * flamegraph.pl, speedscope and py-spy's raw format. Counts samples or equivalents (samples.h), or
 * nested spans (spans.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/ns.h"
#include "export/common/export_input.h"
#include "export/common/export_losses.h"
#include "export/export.h"
#include "export/folded/folded_tree.h"

/* A stack of a thread, while samples are counted. */
struct tally {
	int64_t thread, stack, leaf;
	int64_t count;
};

struct folded {
	struct ts_reader *reader;
	const struct ts_export_options *options;
	unsigned int flags;
	struct ts_error *err;
	struct ts_folded_tree tree;
	struct ts_samples samples;
	struct ts_pairmap tally_index; /* thread and stack to the index of a tally */
	struct tally *tallies;
	size_t tally_count, tally_capacity;
	struct ts_sample_losses losses;
	/* Spans: nodes of the open ones, below that of the thread. */
	uint32_t *nodes;
	size_t depth, node_capacity;
	int64_t thread;
	uint32_t thread_node;
	bool has_thread;
};

static int no_memory(struct folded *folded)
{
	return ts_error_set(folded->err, TS_ENOMEM, "no memory");
}

/* ---- samples ---- */

static int count_sample(void *context, const struct ts_stack_sample *seen)
{
	struct folded *folded = context;
	bool no_threads = folded->flags & TS_EXPORT_NO_THREADS;
	int64_t thread = no_threads ? 0 : seen->thread;
	bool is_new = false;
	uint64_t *slot;

	if (!seen->count || (!seen->stack && !seen->leaf)) {
		ts_sample_losses_add(&folded->losses, seen);
		return TS_OK;
	}
	if (seen->is_on_device && folded->flags & TS_EXPORT_TIME) {
		folded->losses.untimed++;
		return TS_OK;
	}
	/* Ids have 32 bits, unless the file is corrupt. */
	slot = ts_pairmap_insert(&folded->tally_index, (uint64_t)thread,
				 (uint64_t)seen->stack ^ (uint64_t)seen->leaf << 32, &is_new);
	if (!slot || (is_new && ts_grow_array((void **)&folded->tallies, &folded->tally_capacity,
					      folded->tally_count + 1, sizeof(*folded->tallies))))
		return no_memory(folded);
	if (is_new) {
		*slot = folded->tally_count;
		folded->tallies[folded->tally_count++] = (struct tally){ .thread = thread,
									 .stack = seen->stack,
									 .leaf = seen->leaf };
	}
	folded->tallies[*slot].count =
		ts_ns_add(folded->tallies[*slot].count,
			  folded->flags & (TS_EXPORT_TIME | TS_EXPORT_DEVICE | TS_EXPORT_MEMORY)
				  ? seen->weight
				  : seen->count);
	return TS_OK;
}

static int add_to_tree(struct folded *folded, const struct tally *tally)
{
	struct ts_folded_tree *tree = &folded->tree;
	uint32_t node = 0;

	if (!(folded->flags & TS_EXPORT_NO_THREADS)) {
		if (!tally->thread && ts_stack_is_instruction(folded->reader, tally->stack))
			node = ts_folded_text(tree, node, "device");
		else
			node = ts_folded_thread(tree, node, tally->thread);
	}
	node = ts_folded_stack(tree, node, tally->stack);
	if (tally->leaf)
		node = ts_folded_frame(tree, node, tally->leaf);
	if (node == TS_FOLDED_NONE)
		return no_memory(folded);
	ts_folded_count(tree, node, tally->count);
	return TS_OK;
}

static int count_samples(struct folded *folded)
{
	int rc = ts_export_samples(&folded->samples, folded->reader, folded->options, 1,
				   folded->err);

	if (!rc && folded->flags & TS_EXPORT_TIME && folded->samples.rows &&
	    !folded->samples.are_timed)
		return ts_error_set(folded->err, TS_EINVAL,
				    "samples of this trace have no period; "
				    "count samples");
	if (!rc)
		rc = ts_samples_walk(&folded->samples, count_sample, folded);
	for (size_t i = 0; !rc && i < folded->tally_count; i++)
		rc = add_to_tree(folded, &folded->tallies[i]);
	return rc;
}

/* ---- spans ---- */

/* The node above a thread's spans. */
static uint32_t node_of_thread(struct folded *folded, int64_t thread)
{
	if (folded->flags & TS_EXPORT_NO_THREADS)
		return 0;
	if (!folded->has_thread || folded->thread != thread)
		folded->thread_node = ts_folded_thread(&folded->tree, 0, thread);
	folded->has_thread = true;
	folded->thread = thread;
	return folded->thread_node;
}

static int count_span(void *context, const struct ts_span_step *step)
{
	struct folded *folded = context;
	uint32_t node;

	if (!step->begins) {
		ts_folded_count(&folded->tree, folded->nodes[--folded->depth], step->self);
		return TS_OK;
	}
	node = folded->depth ? folded->nodes[folded->depth - 1]
			     : node_of_thread(folded, step->thread);
	node = ts_folded_frame(&folded->tree, node, ts_frame_of_string(step->name));
	if (node == TS_FOLDED_NONE || ts_grow_array((void **)&folded->nodes, &folded->node_capacity,
						    folded->depth + 1, sizeof(*folded->nodes)))
		return no_memory(folded);
	folded->nodes[folded->depth++] = node;
	return TS_OK;
}

static int count_spans(struct folded *folded)
{
	TS_AUTO(ts_spans) spans = NULL;
	int rc = ts_export_spans(&spans, folded->reader, folded->options, folded->err);

	if (!rc)
		rc = ts_spans_walk(spans, count_span, folded, folded->err);
	if (!rc)
		ts_left_out_spans(folded->options, folded->reader, spans);
	return rc;
}

/* ---- the file ---- */

static int put_file(struct folded *folded)
{
	int rc;

	rc = folded->flags & TS_EXPORT_SPANS ? count_spans(folded) : count_samples(folded);
	if (!rc)
		rc = ts_folded_tree_write(&folded->tree);
	if (!rc && !(folded->flags & TS_EXPORT_SPANS))
		ts_left_out_samples(folded->options, &folded->samples, &folded->losses);
	return rc;
}

int ts_export_folded(struct ts_reader *reader, int fd, const struct ts_export_options *options,
		     struct ts_error *err)
{
	struct ts_error local_err = { 0 };
	struct folded folded = { .reader = reader,
				 .options = options,
				 .flags = ts_export_flags(options),
				 .err = err ? err : &local_err };
	int rc = ts_folded_tree_init(&folded.tree, reader, !(folded.flags & TS_EXPORT_NO_LINES), fd,
				     folded.err);

	if (!rc)
		rc = put_file(&folded);
	ts_samples_release(&folded.samples);
	ts_folded_tree_release(&folded.tree);
	ts_pairmap_release(&folded.tally_index);
	free(folded.tallies);
	free(folded.nodes);
	return rc;
}
