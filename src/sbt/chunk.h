/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes an in-memory table as the bytes of a chunk: sorts, splits arguments into columns,
 * encodes. Runs on worker threads. Chunks are read by batch.c.
 */
#ifndef TS_SBT_CHUNK_H
#define TS_SBT_CHUNK_H

#include <stdint.h>

#include <tracesmith/error.h>
#include <tracesmith/schema.h>

#include "base/text.h"
#include "model/shapes.h"
#include "model/table.h"
#include "sbt/codec.h"
#include "sbt/sbt_layout.h"

/* Memory reused for every chunk, one per worker. A zeroed struct is ready. */
struct sbt_chunk_encoder {
	struct sbt_encoder columns;
	struct ts_text payload;
	bool is_apart; /* raw bytes at the end stay where they are */
	struct sbt_column *directory;
	size_t directory_capacity;
	uint32_t *order; /* row numbers in chunk order */
	size_t order_capacity;
	bool in_order;   /* in the order of arrival */
	int64_t *values; /* one column in that order; or all argument columns */
	size_t value_capacity;
};

void sbt_chunk_encoder_release(struct sbt_chunk_encoder *encoder);

/* The input of a chunk. */
struct sbt_chunk_input {
	const struct ts_table *table;
	struct ts_shapes *shapes; /* of the table's rows */
	/* Rows longer than this are left out (they go to a LONG chunk); INT64_MAX: none. */
	int64_t longest;
	/* Byte strings of a table with a BYTES column, concatenated; lengths are that column. */
	const char *bytes;
	size_t byte_count;
	uint64_t sequence;
	uint64_t first_id;
	uint32_t clock;
	uint16_t flags;
};

/*
 * Appends a complete chunk to out and returns its header. For the index (table 0) the chunk's size
 * includes the trailer, which the caller appends. Failure is TS_ENOMEM.
 */
int sbt_chunk_encode(struct sbt_chunk_encoder *encoder, const struct sbt_chunk_input *input,
		     struct ts_text *out, struct sbt_chunk_header *ret_header);

/*
 * Appends only header and directory to out: what follows them stays in encoder->payload, and after
 * that in encoder->columns.raw, which is part of input->bytes.
 */
int sbt_chunk_encode_apart(struct sbt_chunk_encoder *encoder, const struct sbt_chunk_input *input,
			   struct ts_text *out, struct sbt_chunk_header *ret_header);

/* end of a row as defined in docs/format.md, section 3.4 */
static inline int64_t sbt_row_end(int64_t start, int64_t duration)
{
	int64_t end;

	if (duration == -1)
		return INT64_MAX;
	if (__builtin_add_overflow(start, duration, &end) || end == INT64_MAX)
		return INT64_MAX - 1;
	return end;
}

#endif
