/* SPDX-License-Identifier: Apache-2.0 */
/* Where rows of gpu_op and api_call come from, for `view --stacks`: see view_launches.c. */
#ifndef TS_CLI_VIEW_VIEW_LAUNCHES_H
#define TS_CLI_VIEW_VIEW_LAUNCHES_H

#include "base/text.h"
#include "cli/common/show.h"

struct ts_view_launches;

struct ts_view_launch {
	int64_t stack;          /* of the call that launched it; 0: none, or the row is that call */
	struct ts_text forward; /* "aten::linear > aten::addmm"; empty: none */
	int64_t forward_stack;  /* a launch of that operator; 0: unknown */
};

/* Holds launches and operators in memory. */
int ts_view_launches_new(struct ts_view_launches **ret_launches, struct ts_reader *reader,
			 struct ts_error *err);
void ts_view_launches_free(struct ts_view_launches *launches); /* accepts NULL */
TS_DEFINE_AUTO(ts_view_launches, ts_view_launches_free);

/*
 * `launches` may be NULL: finds nothing then. The caller owns the text, which is reused. Read rows
 * with at least the columns below.
 */
void ts_view_launches_find(struct ts_view_launches *launches, const struct ts_row *row,
			   struct ts_view_launch *ret_launch);

/* Columns that ts_view_launches_find() reads. */
static inline uint64_t ts_view_launches_mask(const struct ts_table_info *table)
{
	if (table->id == TS_TABLE_GPU_OP)
		return TS_MASK_OF(gpu_op, device) | TS_MASK_OF(gpu_op, process) |
		       TS_MASK_OF(gpu_op, correlation) | TS_MASK_OF(gpu_op, stack);
	if (table->id == TS_TABLE_API_CALL)
		return TS_MASK_OF(api_call, start) | TS_MASK_OF(api_call, thread) |
		       TS_MASK_OF(api_call, stack);
	return 0;
}

#endif
