/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times on the device by kernel: as recorded, in the fastest run and the median of all runs, and
 * with the recorded kernels if they were replaced. Private to src/replay; the results are
 * ts_replay_kernels().
 */
#ifndef TS_REPLAY_OUTPUT_KERNEL_TIMES_H
#define TS_REPLAY_OUTPUT_KERNEL_TIMES_H

#include "replay/output/replay_output.h"

/* The kernels of the plan. Freed with the replay; `NULL` is accepted. */
int ts_replay_kernel_times_new(struct ts_replay_kernel_times **ret_times,
			       const struct ts_replay *replay, struct ts_error *err);
void ts_replay_kernel_times_free(struct ts_replay_kernel_times *times);

/* Adds a run; `is_reference`: with the recorded kernels, before replaced ones. */
int ts_replay_kernel_times_add(struct ts_replay_kernel_times *times,
			       const struct ts_replay_times *run, bool is_reference);
/* After the last run: medians, what was recorded, and the order of the report. */
void ts_replay_kernel_times_finish(struct ts_replay_kernel_times *times,
				   const struct ts_replay_recorded *recorded);

#endif
