/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends complete chunks to a trace file, numbers them, and finishes it with an index. Shared by
 * writer.c and recover.c.
 */
#ifndef TS_SBT_CHUNK_APPEND_H
#define TS_SBT_CHUNK_APPEND_H

#include <stdbool.h>

#include <tracesmith/error.h>

#include "model/table.h"
#include "sbt/chunk.h"
#include "sbt/file_output.h"

struct sbt_continued;

struct sbt_appender {
	struct sbt_output output;
	struct ts_table index; /* one row per chunk so far */
	uint64_t index_bytes; /* bytes of the index after the chunks, which the next chunk replaces;
				 0: none. Atomic */
};

/* Writes the file header; `header` NULL creates a new one. output.write may be set before. */
int sbt_appender_open(struct sbt_appender *appender, const char *path,
		      const struct sbt_file_header *header, struct ts_error *err);

/*
 * Continues a file after byte `bytes`, which must be the end of a chunk; all chunk headers before
 * it are checked and listed. `bytes` UINT64_MAX: after the last chunk that is not a final index.
 * `trace_id` not NULL: the file must have it.
 */
int sbt_appender_resume(struct sbt_appender *appender, const char *path, uint64_t bytes,
			const uint8_t *trace_id, struct ts_error *err);

/* Lists the chunks of one file, and continues them in another, empty one at `path`. */
int sbt_appender_continue(struct sbt_appender *appender, const struct sbt_continued *continued,
			  const char *path, const uint8_t *trace_id, struct ts_error *err);

/*
 * Appends a chunk; its header is at the start of `bytes`. Sets the header's sequence number, in
 * bytes and in *header. The last tail_bytes of the chunk are at `tail`, all others in `bytes`.
 */
int sbt_appender_add(struct sbt_appender *appender, struct sbt_chunk_header *header, char *bytes,
		     const char *tail, size_t tail_bytes, struct ts_error *err);

/* The size of the file, and where its chunks end. Any thread may call these at any time. */
uint64_t sbt_appender_bytes(const struct sbt_appender *appender);
uint64_t sbt_appender_chunk_bytes(const struct sbt_appender *appender);

/*
 * Appends an index, so that the file is a finished trace until the next chunk. output.bytes stays
 * at the end of the chunks.
 */
int sbt_appender_save(struct sbt_appender *appender, int level, struct ts_error *err);

/* Appends the index and closes the file. */
int sbt_appender_finish(struct sbt_appender *appender, int level, struct ts_error *err);

/* Releases everything, finished or not. */
void sbt_appender_release(struct sbt_appender *appender);

#endif
