/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a replay as a trace (-o): replay_output.c the file, output_stream.c and output_work.c its
 * rows. Private to src/replay.
 */
#ifndef TS_REPLAY_OUTPUT_REPLAY_OUTPUT_H
#define TS_REPLAY_OUTPUT_REPLAY_OUTPUT_H

#include <tracesmith/writer.h>

#include "replay/replay.h"

/*
 * Writes the run of `outcome` to options.output. The file is written under a temporary name and
 * renamed when complete; on failure an existing file stays.
 */
int ts_replay_write(const struct ts_replay *replay, const struct ts_replay_outcome *outcome,
		    const struct ts_replay_report *report, struct ts_error *err);

int ts_replay_write_stream(const struct ts_replay *replay, struct ts_writer *writer,
			   const struct ts_replay_outcome *outcome,
			   const struct ts_replay_report *report, struct ts_error *err);
int ts_replay_write_work(const struct ts_replay *replay, struct ts_writer *writer,
			 const struct ts_replay_outcome *outcome, struct ts_error *err);

/* Sets the stacks of the commands that the report names (output_stacks.c). */
void ts_replay_find_stacks(const struct ts_replay *replay, struct ts_replay_report *report);

/*
 * Recorded gpu_op rows of the commands of a plan, by correlation (output_recorded.c). The nodes of
 * a graph share that of their launch: they are told apart by name.
 */
struct ts_replay_recorded {
	const struct ts_replay *replay;
	struct ts_map firsts; /* correlation -> index of its first row, plus 1 */
	struct ts_replay_recorded_row {
		struct ts_gpu_op_row row;
		size_t next; /* with the same correlation, plus 1 */
		bool is_taken;
	} * rows;
	size_t count, capacity;
	uint64_t *of_position; /* by position in the plan: index of its row, plus 1 */
};
int ts_replay_recorded_load(struct ts_replay_recorded *recorded, const struct ts_replay *replay,
			    struct ts_error *err);
/* The row of the command at this position of the plan; NULL: none. */
const struct ts_gpu_op_row *ts_replay_recorded_row(const struct ts_replay_recorded *recorded,
						   uint32_t position);
void ts_replay_recorded_release(struct ts_replay_recorded *recorded);
/*
 * Time in which a command ran on the device, in the recording and with these times (by position),
 * of commands that have both. 0 or TS_ENOMEM; TS_ABSENT: there are none.
 */
int ts_replay_recorded_busy(const struct ts_replay_recorded *recorded,
			    const struct ts_replay_times *times, int64_t *ret_recorded_ns,
			    int64_t *ret_ns);
/* First start to last end; TS_ABSENT if there are no rows. */
int64_t ts_replay_recorded_span(const struct ts_replay_recorded *recorded);

#endif
