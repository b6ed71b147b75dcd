/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata of a trace by key. */
#ifndef TS_TRACE_TRACE_META_H
#define TS_TRACE_TRACE_META_H

#include <tracesmith/reader.h>

/*
 * Calls `each` with the values of a key in the order of the file: JSON, terminated by NUL. Skips
 * unreadable chunks.
 */
void ts_trace_meta(struct ts_reader *reader, const char *key,
		   void (*each)(void *context, struct ts_string value), void *context);

#endif
