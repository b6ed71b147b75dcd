/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows added to a finished trace. No row changes; a kill at any instant leaves all of them
 * readable, and what was not finished then is found again by scanning (docs/format.md, section 6).
 */
#ifndef TS_CLI_COMMON_TRACE_APPEND_H
#define TS_CLI_COMMON_TRACE_APPEND_H

#include <tracesmith/reader.h>
#include <tracesmith/writer.h>

/*
 * 0 where rows can be appended to the file, or to a copy of it; else says what to do, and what else
 * can be done (", or ...").
 */
int ts_append_check(const char *path, const struct ts_reader *reader, const char *otherwise,
		    struct ts_error *err);

/*
 * Appends what `add` gives to the writer, whose ids go on behind those of `reader`, which is of the
 * same file. Signals wait until it is done. `is_locked`: the caller holds the lock of a trace's
 * writer.
 */
int ts_append_rows(const char *path, const struct ts_reader *reader, bool is_locked,
		   void (*add)(void *context, struct ts_writer *writer), void *context,
		   struct ts_error *err);

#endif
