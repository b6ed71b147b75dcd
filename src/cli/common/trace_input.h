/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens traces for verbs (<tracesmith/open.h>): warnings and errors go to stderr, imports show a
 * progress bar.
 */
#ifndef TS_CLI_COMMON_TRACE_INPUT_H
#define TS_CLI_COMMON_TRACE_INPUT_H

#include <tracesmith/open.h>

#include "cli/common/options.h"
#include "open/trace_open.h"

/* Each returns an exit code; errors have been reported. */
int ts_trace_input_open(struct ts_reader **ret_reader, const char *path);
int ts_trace_input_open_job(struct ts_job **ret_job, const char *const *paths, size_t count);

/* The number of a process; 0: the text is none. */
pid_t ts_trace_input_pid(const char *text);

/*
 * `--process N` without a TRACE means what is recorded of that process. Returns N; 0: there is an
 * operand, or the option is not one number.
 */
pid_t ts_trace_input_live_pid(int operands, const struct ts_string_list *processes);

/* What messages call it: "process 4711". */
#define TS_TRACE_INPUT_NAME_BYTES 32
const char *ts_trace_input_live_name(pid_t pid, char name[TS_TRACE_INPUT_NAME_BYTES]);

/* Opens a snapshot of it: ts_open_pid(). */
int ts_trace_input_open_live(struct ts_reader **ret_reader, pid_t pid);
/* Adds one to a job: ts_job_add_pid(). */
int ts_trace_input_add_live(struct ts_job *job, pid_t pid);

/*
 * The same for a verb that shows only rows of processes that are asked for. All are, if the process
 * is a recorder: then the list is emptied.
 */
int ts_trace_input_open_filtered(struct ts_reader **ret_reader, pid_t pid,
				 struct ts_string_list *processes);

/* Waits for a recorder that is finishing the trace; see ts_trace_await(). */
void ts_trace_input_await(const char *path, struct ts_trace_writer *ret_writer);

/*
 * Before rows are appended to a trace: refuses one that is still being written, or that was cut
 * off, since a recovery would not find them.
 */
int ts_trace_input_check_end(const char *path);

#endif
