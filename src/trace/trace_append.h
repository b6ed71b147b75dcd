/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends rows to a finished trace. Existing rows do not change. If the process is killed
 * meanwhile, readers find all complete chunks by scanning (docs/format.md, section 6).
 */
#ifndef TS_TRACE_TRACE_APPEND_H
#define TS_TRACE_TRACE_APPEND_H

#include <tracesmith/reader.h>
#include <tracesmith/writer.h>

/* True if the file begins as an SBT trace does; false for one that is imported to be read. */
bool ts_trace_is_sbt(const char *path);

/*
 * Can rows be appended to the file, or to a copy? If not, the error tells what to do, followed by
 * `otherwise` (", or ...").
 */
int ts_trace_append_check(const char *path, const struct ts_reader *reader, const char *otherwise,
			  struct ts_error *err);

/*
 * Appends the rows that `add` gives to the writer. Ids continue after those of `reader`, which has
 * the same file open. Blocks signals of the calling thread meanwhile. `is_locked`: the caller holds
 * the file's writer lock.
 */
int ts_trace_append_rows(const char *path, const struct ts_reader *reader, bool is_locked,
			 void (*add)(void *context, struct ts_writer *writer), void *context,
			 struct ts_error *err);

#endif
