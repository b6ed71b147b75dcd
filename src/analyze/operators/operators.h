/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the analysis `operators`. */
#ifndef TS_ANALYZE_OPERATORS_OPERATORS_H
#define TS_ANALYZE_OPERATORS_OPERATORS_H

#include "analyze/host_tree.h"
#include "base/map.h"

/* What a node did beyond taking time: device work that it issued, and memory. */
struct ts_operator_work {
	int64_t device_ns;
	int64_t host_bytes, device_bytes; /* allocated minus freed */
};

/* Amounts of each node of a tree itself, without the nodes below it. */
struct ts_operator_works {
	struct ts_operator_work *nodes;
	bool has_host_memory, has_device_memory; /* the trace has allocations of it */
};

/* 0, or an error code with its message. */
int ts_operator_works_init(struct ts_operator_works *works, const struct ts_host_tree *tree,
			   struct ts_error *err);
void ts_operator_works_release(struct ts_operator_works *works);

/* Shapes of the inputs of operators, as their trace writes them: "[[64, 32], [32]]". */
struct ts_operator_shapes {
	struct ts_strmap texts; /* id 0: none */
	uint32_t *of_slice;     /* id of a text */
};

/* 0, or an error code with its message. */
int ts_operator_shapes_init(struct ts_operator_shapes *shapes, const struct ts_work *work,
			    struct ts_error *err);
void ts_operator_shapes_release(struct ts_operator_shapes *shapes);

#endif
