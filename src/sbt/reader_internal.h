/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the reader: reader.c (opening, chunks), batch.c (columns of a chunk),
 * lookup.c (texts, shapes, entities), symbol_rows.c, blob.c, verify.c, recover.c. Not for others.
 */
#ifndef TS_SBT_READER_INTERNAL_H
#define TS_SBT_READER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include <tracesmith/reader.h>

#include "base/arena.h"
#include "base/map.h"
#include "model/clockmap.h"
#include "sbt/codec.h"
#include "sbt/file.h"

/* Texts of one string chunk; offsets are NULL until loaded. */
struct sbt_texts {
	uint64_t first_id;
	uint32_t count;
	size_t chunk;
	char *data;
	_Atomic(uint64_t *) offsets; /* count + 1; each text is followed by a NUL */
	bool lost;                   /* loading failed: do not retry */
};

/*
 * Rows of an entity or dictionary table, by id. Ids that a writer assigned are consecutive and need
 * no memory.
 */
struct sbt_entities {
	bool loaded;
	int64_t *rows; /* column_count words per row */
	size_t row_count, row_capacity;
	int64_t first_id; /* of row 0; the others follow, unless: */
	bool is_sparse;
	int64_t *ids; /* of each row */
	size_t id_capacity;
	struct ts_map indices; /* id to row */
};

/* Rows of symbol, those of a frame adjacent. */
struct sbt_symbols {
	bool loaded;
	struct ts_symbol_row *rows;
	size_t count, capacity;
	struct ts_map indices; /* frame to its first row */
};

struct ts_reader {
	struct sbt_file file;
	struct ts_reader_state state;
	struct sbt_chunk_list list; /* as in the file */
	struct ts_chunk *chunks;    /* the same in trace time */
	struct ts_clockmap clocks;
	_Atomic uint64_t chunks_read;
	_Atomic bool *touched; /* by chunk: whether any of it was read */

	pthread_mutex_t lock;    /* guards everything below while loading */
	uint64_t budget_bytes;   /* budget left for loaded data */
	struct ts_batch *lookup; /* for loading */
	struct sbt_texts *texts; /* by first_id */
	size_t text_chunks;
	_Atomic size_t text_bytes;
	bool shapes_loaded;
	struct ts_arena shape_arena;
	struct ts_map shapes; /* id to struct ts_shape * */
	struct sbt_entities entities[TS_TABLE_COUNT];
	struct sbt_symbols symbols;
	struct ts_error error; /* first error while loading */

	pthread_mutex_t blob_lock;
	struct sbt_blobs *blobs; /* blob.c; NULL until first used */

	struct ts_reader *next, *previous; /* reader_fork.c */
};

/* Chunk number in errors for a chunk that is not in the list. */
#define SBT_CHUNK_UNLISTED SIZE_MAX

/*
 * Decodes columns of a chunk into the batch; the chunk need not be in the reader's list. Times stay
 * in the chunk's clock unless `clock` is given.
 */
int sbt_batch_decode(struct ts_batch *batch, const struct sbt_chunk *chunk, size_t number,
		     uint64_t mask, const struct ts_clock *clock, struct ts_error *err);

/* While it is listed, fork() waits until its lock is free. */
void sbt_reader_list(struct ts_reader *reader);
void sbt_reader_unlist(struct ts_reader *reader);

/* "trace 'x': chunk 12 at byte 40960: why" */
int sbt_chunk_error(const struct sbt_file *file, const struct sbt_chunk *chunk, size_t number,
		    const char *why, struct ts_error *err);

/* NULL for an unknown shape. */
const struct ts_shape *sbt_shape_find(struct ts_reader *reader, int64_t shape);

/* Keeps the first error for ts_reader_status(). Thread-safe. */
void sbt_keep_error(struct ts_reader *reader, const struct ts_error *err);

/* Opens without the index, as verify must. */
int sbt_reader_open_scanned(struct ts_reader **ret_reader, const char *path,
			    int (*progress)(void *context, uint64_t done, uint64_t total),
			    void *context, struct ts_error *err);

/*
 * Charges memory for loaded data to the reader's budget: a few bytes of a file can expand to very
 * many rows. Lock held, or the reader is not shared yet. 0, or TS_EFORMAT.
 */
int sbt_budget_take(struct ts_reader *reader, size_t chunk, uint64_t bytes, struct ts_error *err);

/* lookup.c: sets up and frees its part of the reader. */
int sbt_lookup_init(struct ts_reader *reader, struct ts_error *err);
void sbt_lookup_release(struct ts_reader *reader);

/* symbol_rows.c */
void sbt_symbols_release(struct sbt_symbols *symbols);

/* blob.c. Accepts NULL. */
void sbt_blobs_free(struct sbt_blobs *blobs);

#endif
