/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the threads of a job did, nested: operators, annotations, other spans, and calls into a
 * driver or runtime, each with its self time.
 */
#ifndef TS_ANALYZE_HOST_TREE_H
#define TS_ANALYZE_HOST_TREE_H

#include "state/work/work.h"

enum ts_host_kind {
	TS_HOST_OPERATOR,
	TS_HOST_ANNOTATION,
	TS_HOST_STEP, /* a span that is a step */
	TS_HOST_SPAN, /* any other, such as one of TS_SCOPE() */
	TS_HOST_CALL,
};
const char *ts_host_kind_name(enum ts_host_kind kind);

struct ts_host_node {
	int64_t start, end;
	int64_t self_ns; /* without the time in nodes below it */
	uint32_t rank, thread;
	uint32_t name;   /* in the work; steps share one, without their number */
	uint32_t parent; /* the enclosing node, always a smaller index; TS_WORK_NONE: none */
	uint32_t index;  /* of its slice, or of its call */
	uint8_t kind;    /* enum ts_host_kind */
};

/* By thread, then by start; enclosing nodes first. Python functions are left out. */
struct ts_host_tree {
	const struct ts_work *work;
	struct ts_host_node *nodes;
	uint32_t count;
	uint32_t *first; /* of each thread; one more at the end */
};

/* The work must have its slices (TS_WORK_SLICES). 0 or TS_ENOMEM. */
int ts_host_tree_init(struct ts_host_tree *tree, const struct ts_work *work);
void ts_host_tree_release(struct ts_host_tree *tree);

/* The innermost node of a thread at an instant; TS_WORK_NONE: none. */
uint32_t ts_host_tree_at(const struct ts_host_tree *tree, uint32_t thread, int64_t time);

/* The name of a node. */
const char *ts_host_node_name(const struct ts_host_tree *tree, const struct ts_host_node *node);

#endif
