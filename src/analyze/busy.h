/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Busy time of a rank's devices by command class: the merged spans in which at least one command
 * ran. Used by breakdown, overlap and kernels. TS_ROUNDING_HTA reproduces HTA: synchronisations in
 * a stream's row are device time, and spans that rounding has inverted count as negative.
 */
#ifndef TS_ANALYZE_BUSY_H
#define TS_ANALYZE_BUSY_H

#include "analyze/result.h"
#include "analyze/statistics.h"
#include "base/memory.h"
#include "state/work/work.h"

struct ts_busy {
	struct ts_span *spans[TS_CLASS_COUNT]; /* sorted by start, disjoint and not adjacent */
	size_t span_count[TS_CLASS_COUNT], span_capacity[TS_CLASS_COUNT];
	int64_t class_ns[TS_CLASS_COUNT]; /* time with at least one command of that class */
	int64_t busy_ns;                  /* time with at least one command */
	int64_t first, last;              /* start of the first command, end of the last one */
	uint64_t rows; /* number of commands counted (for HTA, also rows that it takes for commands)
			*/
};

int ts_busy_init(struct ts_busy *busy, const struct ts_work *work, uint32_t rank,
		 struct ts_error *err);
void ts_busy_release(struct ts_busy *busy);

/* From the start of the first command to the end of the last one; 0 without commands. */
int64_t ts_busy_window(const struct ts_busy *busy);

#define TS_BUSY_CLASS(class) (1u << (class))
#define TS_BUSY_ALL (TS_BUSY_CLASS(TS_CLASS_COUNT) - 1)

/*
 * Time for each combination of the given classes: ret_ns[mask] is the time in which exactly those
 * ran. ret_ns[0] is 0.
 */
void ts_busy_sweep(const struct ts_busy *busy, unsigned int classes,
		   int64_t ret_ns[TS_BUSY_ALL + 1]);

/* Duration of a command: 0 if it did not end; negative only with HTA's rounding. */
int64_t ts_busy_duration(const struct ts_work *work, const struct ts_work_command *command);

/* Is the command counted? Not without device times; for HTA, also not without a stream. */
bool ts_busy_counts(const struct ts_work *work, const struct ts_work_command *command);

/* Puts a time cell, rounded to whole ns; NaN: none. */
void ts_busy_put_ns(struct ts_result_table *table, double ns);

/*
 * Does a rank leave out its last step by default? *ret_step: its number, TS_ABSENT if those of
 * ranks differ.
 */
bool ts_busy_leaves_out_step(const struct ts_work *work, int64_t *ret_step);

/*
 * Notes what the numbers do not cover: ranks without commands, commands without times, the last
 * step.
 */
void ts_busy_note(const struct ts_work *work, struct ts_result *result);

/* Notes that time between recording windows counts as idle, if there is any. */
void ts_busy_note_windows(const struct ts_work *work, struct ts_result *result);

/* Also notes that commands outside the selection may have filled the idle time. */
void ts_busy_note_idle(const struct ts_work *work, struct ts_result *result);

#endif
