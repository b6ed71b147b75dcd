/* SPDX-License-Identifier: Apache-2.0 */
/* What pc_samples.c (which samples) and pc_samples_launches.c (whose) share. */
#ifndef TS_ANALYZE_PC_SAMPLES_PC_SAMPLES_INTERNAL_H
#define TS_ANALYZE_PC_SAMPLES_PC_SAMPLES_INTERNAL_H

#include "analyze/pc_samples/pc_samples.h"
#include "base/map.h"
#include "trace/call_index.h"

/* An instruction of the kernel, and a reason. */
struct hot_tally {
	int64_t offset, samples;
	uint32_t reason;
};

/* Of the kernel, as the device ran it. */
struct hot_command {
	int64_t correlation, device_ns;
	int64_t stack; /* its own; 0: none */
	int64_t device, process;
};

struct ts_pc_samples_store {
	struct ts_reader *reader;
	struct ts_strmap functions; /* name, NUL, module: ids from 0 */
	struct ts_map frames;       /* to function */
	struct ts_strmap reasons;   /* ids from 0 */
	size_t kernel_capacity;
	struct ts_pairmap positions; /* (offset, reason) to index of a tally */
	struct hot_tally *tallies;
	size_t tally_count, tally_capacity;
	struct ts_map launches; /* correlation to samples */
	struct ts_map names;    /* of commands, to whether they are the kernel's */
	struct hot_command *commands;
	size_t command_count, command_capacity;
	struct ts_map sharers;       /* correlation to commands that have it, less those seen */
	struct ts_call_index *calls; /* whose stacks they are */
};

/* All rows of a table. What `each` returns other than 0 is for want of memory. */
typedef int hot_row(struct ts_pc_samples *hot, const struct ts_batch *batch, uint32_t row);
int hot_each_row(struct ts_pc_samples *hot, enum ts_table_id table, uint64_t mask, hot_row *each,
		 struct ts_error *err);

static inline int64_t hot_column(const struct ts_batch *batch, unsigned int which, uint32_t row)
{
	return batch->columns[which] ? batch->columns[which][row] : 0;
}

/* Fills hot->launches. */
int hot_find_launches(struct ts_pc_samples *hot, struct ts_error *err);
void hot_release_launches(struct ts_pc_samples_store *store);

#endif
