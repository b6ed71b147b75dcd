/* SPDX-License-Identifier: Apache-2.0 */
/* Commands grouped by rank, name and class. Shared by kernels.c and kernels_hta.c. */
#ifndef TS_ANALYZE_KERNELS_H
#define TS_ANALYZE_KERNELS_H

#include "analyze/analyze.h"
#include "analyze/busy.h"

#define TS_KERNEL_TOP 10 /* names to show by default; HTA keeps as many */

/* Commands of one name and class on one rank. */
struct ts_kernel_group {
	uint32_t rank, name;
	uint8_t class;
	size_t count;
	size_t filled; /* while collecting durations: index of the next one */
	int64_t sum_ns, min_ns, max_ns;
	int64_t total_ns; /* of this name and class over all ranks */
	struct ts_description described;
};

struct ts_kernel_groups {
	struct ts_kernel_group *items;
	size_t count, capacity;
};

static inline void ts_kernel_groups_release(struct ts_kernel_groups *groups)
{
	free(groups->items);
}

#define TS_KERNEL_COLUMN_COUNT 13
#define TS_KERNEL_DETAILS "std_us p99_us p90_us p50_us min_us+max_us mean_us type"
extern const struct ts_result_column ts_kernel_columns[TS_KERNEL_COLUMN_COUNT];

/* Puts the table as HTA computes it. rank_ns: sum of durations of each rank. Reorders `groups`. */
int ts_kernels_put_hta(struct ts_analyze_request *request, struct ts_result *result,
		       struct ts_kernel_groups *groups, const int64_t *rank_ns,
		       struct ts_error *err);

#endif
