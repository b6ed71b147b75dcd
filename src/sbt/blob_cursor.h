/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads blobs of a trace in several threads at once: each has a cursor of its own, with a decoded
 * chunk. ts_reader_blob_read() is simpler, but its callers wait for each other.
 */
#ifndef TS_SBT_BLOB_CURSOR_H
#define TS_SBT_BLOB_CURSOR_H

#include <stddef.h>
#include <stdint.h>

#include <tracesmith/reader.h>

struct sbt_blob_cursor;

/* The reader must outlive the cursor. */
int sbt_blob_cursor_new(struct sbt_blob_cursor **ret_cursor, struct ts_reader *reader,
			struct ts_error *err);
/* Accepts NULL. */
void sbt_blob_cursor_free(struct sbt_blob_cursor *cursor);
/* Like ts_reader_blob_read(). One thread at a time. */
int sbt_blob_cursor_read(struct sbt_blob_cursor *cursor, int64_t blob, uint64_t offset, void *to,
			 size_t bytes, struct ts_error *err);

#endif
