/* SPDX-License-Identifier: Apache-2.0 */
/* Slices and calls of threads as one tree, with self times. */
#include "analyze/host_tree.h"

#include "unit/state/work/work_support.h"

static void load(struct loaded *loaded, struct ts_host_tree *tree, const char *events)
{
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;

	options.load_flags = TS_WORK_SLICES | TS_WORK_PYTHON;
	load_events(loaded, &options, events, NULL);
	TS_CHECK_INT(ts_host_tree_init(tree, loaded->work), 0);
}

/* "kind name self parent", one line per node; self time in us. */
static void check_tree(const char *events, const char *expected)
{
	TS_SCOPED(ts_text) out = { 0 };
	struct ts_host_tree tree;
	struct loaded loaded;

	load(&loaded, &tree, events);
	for (uint32_t i = 0; i < tree.count; i++) {
		const struct ts_host_node *node = &tree.nodes[i];

		ts_text_printf(&out, "%s %s %lld %d\n",
			       ts_host_kind_name((enum ts_host_kind)node->kind),
			       ts_host_node_name(&tree, node), (long long)node->self_ns / 1000,
			       node->parent == TS_WORK_NONE ? -1 : (int)node->parent);
	}
	TS_CHECK_STR(ts_text_cstr(&out), expected);
	ts_host_tree_release(&tree);
	unload(&loaded);
}

TS_TEST(slices_and_calls_nest)
{
	check_tree(EVENT("user_annotation", "ProfilerStep#3", "1", "1", "0", "100", "")
			   OP("aten::mm", "10", "50") CALL("20", "10", "1") CALL("70", "5", "2")
				   SLICE("app", "mine", "1", "80", "10")
					   SLICE("user_annotation", "part", "2", "0", "30"),
		   "step ProfilerStep 35 -1\n"
		   "operator aten::mm 40 0\n"
		   "call cudaLaunchKernel 10 1\n"
		   "call cudaLaunchKernel 5 0\n"
		   "span mine 10 0\n"
		   "annotation part 30 -1\n");
}

/* Python functions and device spans are not nodes: what they contain belongs to what is around. */
TS_TEST(what_is_left_out)
{
	check_tree(OP("outer", "0", "100") SLICE("python_function", "f", "1", "10", "50")
			   OP("inner", "20", "10")
				   EVENT("gpu_user_annotation", "part", "0", "7", "0", "9", ""),
		   "operator outer 90 -1\noperator inner 10 0\n");
}

/* For equal starts the longer one is outside; what outlasts its parent takes only what they share.
 */
TS_TEST(odd_nesting)
{
	check_tree(OP("a", "0", "10") CALL("0", "20", "1"), "call cudaLaunchKernel 10 -1\n"
							    "operator a 10 0\n");
	check_tree(OP("a", "0", "10") OP("b", "5", "10"), "operator a 5 -1\noperator b 10 0\n");
}

TS_TEST(the_innermost_at_an_instant)
{
	struct ts_host_tree tree;
	struct loaded loaded;

	load(&loaded, &tree, OP("outer", "10", "100") CALL("20", "10", "1"));
	TS_CHECK_INT(ts_host_tree_at(&tree, 0, 9999), TS_WORK_NONE);
	TS_CHECK_INT(ts_host_tree_at(&tree, 0, 10000), 0);
	TS_CHECK_INT(ts_host_tree_at(&tree, 0, 25000), 1);
	TS_CHECK_INT(ts_host_tree_at(&tree, 0, 30000), 0);
	TS_CHECK_INT(ts_host_tree_at(&tree, 0, 110000), TS_WORK_NONE);
	ts_host_tree_release(&tree);
	unload(&loaded);
}
