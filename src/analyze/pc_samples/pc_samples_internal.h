/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by pc_samples.c (collects samples) and pc_samples_launches.c (assigns them to launches).
 */
#ifndef TS_ANALYZE_PC_SAMPLES_PC_SAMPLES_INTERNAL_H
#define TS_ANALYZE_PC_SAMPLES_PC_SAMPLES_INTERNAL_H

#include "analyze/pc_samples/pc_samples.h"
#include "base/map.h"
#include "trace/call_index.h"

/* Samples of one instruction and stall reason. */
struct ts_pc_samples_tally {
	int64_t offset, samples;
	uint32_t reason;
};

/* An execution of the kernel on the device. */
struct ts_pc_samples_command {
	int64_t correlation, device_ns;
	int64_t stack; /* its own stack; 0: none */
	int64_t device, process;
};

struct ts_pc_samples_store {
	struct ts_reader *reader;
	struct ts_strmap functions; /* name, NUL, module: ids from 0 */
	struct ts_map frames;       /* frame to function */
	struct ts_strmap reasons;   /* ids from 0 */
	size_t kernel_capacity;
	struct ts_pairmap positions; /* (offset, reason) to index of a tally */
	struct ts_pc_samples_tally *tallies;
	size_t tally_count, tally_capacity;
	struct ts_map launches; /* correlation to samples */
	struct ts_map names;    /* name of a command to whether it is the kernel */
	struct ts_pc_samples_command *commands;
	size_t command_count, command_capacity;
	struct ts_map sharers;       /* correlation to the number of its commands not yet seen */
	struct ts_call_index *calls; /* call stacks of launches */
};

/* Calls `each` for all rows of a table. `each` returns 0, or another value when out of memory. */
typedef int ts_pc_samples_row(struct ts_pc_samples *hot, const struct ts_batch *batch,
			      uint32_t row);
int ts_pc_samples_each_row(struct ts_pc_samples *hot, enum ts_table_id table, uint64_t mask,
			   ts_pc_samples_row *each, struct ts_error *err);

static inline int64_t ts_pc_samples_column(const struct ts_batch *batch, unsigned int which,
					   uint32_t row)
{
	return batch->columns[which] ? batch->columns[which][row] : 0;
}

/* Fills hot->launches. */
int ts_pc_samples_find_launches(struct ts_pc_samples *hot, struct ts_error *err);
void ts_pc_samples_release_launches(struct ts_pc_samples_store *store);

#endif
