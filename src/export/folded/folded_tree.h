/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks as a tree and as lines: common prefixes are stored once, so memory grows only with
 * the number of different stacks. Lines are sorted.
 */
#ifndef TS_EXPORT_FOLDED_FOLDED_TREE_H
#define TS_EXPORT_FOLDED_FOLDED_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/text.h"
#include "trace/stack_lists.h"

/* No node: out of memory. Functions that return a node accept it and return it. */
#define TS_FOLDED_NONE UINT32_MAX

/* A step of a line: node 0 is the root. */
struct ts_folded_node {
	uint32_t label;          /* its text, in labels */
	uint32_t child, sibling; /* 0: none */
	int64_t count;           /* of stacks that end here */
};

struct ts_folded_tree {
	struct ts_reader *reader;
	struct ts_error *err;
	int fd;
	struct ts_frame_keys keys;
	struct ts_strmap files; /* short names of files; file_paths: of which path */
	struct ts_strmap paths;
	struct ts_map file_paths; /* short name to path */
	struct ts_strmap labels;  /* from 0 on */
	struct ts_map key_labels; /* number of a frame key to label */
	struct ts_pairmap steps;  /* node and label to the child */
	struct ts_pairmap known;  /* node of a thread and stack to the stack's node */
	struct ts_folded_node *nodes;
	size_t node_count, node_capacity;
	struct ts_stack_list path; /* ids of stacks */
	struct ts_text scratch, out;
};

int ts_folded_tree_init(struct ts_folded_tree *tree, struct ts_reader *reader, bool with_lines,
			int fd, struct ts_error *err);
void ts_folded_tree_release(struct ts_folded_tree *tree);

/*
 * The child of a node: for a text, for a frame as stack_lists.h counts them, for a process and its
 * thread, for a stack.
 */
uint32_t ts_folded_text(struct ts_folded_tree *tree, uint32_t node, const char *text);
uint32_t ts_folded_frame(struct ts_folded_tree *tree, uint32_t node, int64_t frame);
uint32_t ts_folded_thread(struct ts_folded_tree *tree, uint32_t node, int64_t thread);
uint32_t ts_folded_stack(struct ts_folded_tree *tree, uint32_t root, int64_t stack);

void ts_folded_count(struct ts_folded_tree *tree, uint32_t node, int64_t count);

/* Writes all lines to the descriptor. */
int ts_folded_tree_write(struct ts_folded_tree *tree);

#endif
