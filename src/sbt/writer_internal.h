/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the writer: writer.c (rows, opening, closing) and writer_dictionary.c
 * (texts, shapes, frames, stacks, blobs) call writer_chunks.c, which calls neither. Not for others.
 */
#ifndef TS_SBT_WRITER_INTERNAL_H
#define TS_SBT_WRITER_INTERNAL_H

#include <tracesmith/writer.h>

#include "base/map.h"
#include "base/pool.h"
#include "base/text.h"
#include "model/shapes.h"
#include "model/table.h"
#include "sbt/chunk.h"
#include "sbt/chunk_append.h"

/*
 * A chunk between sealed table and file. From submit() on it belongs to the thread that encodes it,
 * then to the one that appends it; when `append` is done, to the writer again.
 */
struct sbt_slot {
	struct ts_writer *writer;
	struct sbt_slot *next; /* submitted after this one, or also free */
	struct ts_job encode, append;
	struct ts_table table;
	struct ts_text bytes; /* of a BYTES column */
	struct ts_shapes *shapes;
	struct sbt_chunk_input input;
	struct sbt_chunk_encoder encoder;
	struct ts_text out;
	const char *tail; /* the end of the chunk, if it is not in out */
	size_t tail_bytes;
	struct sbt_chunk_header header;
	bool is_void;    /* sealed after a failure: rows may be missing, so it is dropped */
	int result;      /* of encoding */
	bool has_failed; /* not appended: writer->append_error */
};

/* Rows of one table and clock that are not yet in a chunk. */
struct sbt_pending {
	struct ts_table rows;
	struct ts_table long_rows;
	uint32_t clock; /* for tables with time; else 0 */
	uint64_t used;  /* when it was last used */
};

/*
 * A table. Events of several clocks arrive mixed, and each clock gets its own chunk. Other tables
 * have a single one: a later row may replace an earlier one there, so the file must keep their
 * order.
 */
struct sbt_writer_table {
	const struct ts_table_info *info;
	struct sbt_pending *pending; /* of the clock used last; never NULL */
	struct sbt_pending **clocks; /* all, in order of their first row */
	size_t clock_count, clock_capacity;
	struct ts_table spare; /* memory of a table that has been written */
	struct ts_text bytes;  /* of a BYTES column */
	uint64_t added;
	uint64_t next_id;   /* assigned ids: entities, or rows of a dictionary */
	uint64_t sealed_id; /* dictionaries: id of the first row that is not in a chunk */
	bool has_time;
};

struct ts_writer {
	/*
	 * Belongs to the appender while chunks are underway (sbt_writer_write_all() ends that),
	 * except for its size (sbt_appender_bytes()) and its path.
	 */
	struct sbt_appender file;
	struct ts_writer_options options;
	struct sbt_writer_table tables[TS_TABLE_COUNT];
	uint64_t uses; /* use counter, to find the least recently used clock */
	struct ts_strmap strings;
	struct ts_text cut_text; /* scratch */
	uint64_t text_bytes;     /* memory of all texts in a reader */
	struct ts_shapes shapes;
	struct ts_strmap frames; /* bytes of a frame row to id */
	struct ts_pairmap stacks;
	uint16_t *stack_depths; /* less 1, by id from first_stack on */
	size_t stack_count, stack_capacity;
	uint64_t first_stack;
	uint32_t cut_frame; /* innermost frame of stacks that are too deep; 0: none so far */
	struct ts_writer_cuts cuts;
	struct ts_pool *encoders;
	struct ts_pool *appender;     /* one thread, or none if there are no encoders */
	struct ts_error append_error; /* set once, by the appender; nothing is appended then */
	struct sbt_slot *slots;
	uint32_t slot_count;
	struct sbt_slot *first, **last; /* submitted ones, oldest first */
	struct sbt_slot *free;          /* the one used last is first: the caches know its memory */
	uint32_t clock;
	bool finished;
	struct ts_error error; /* sticky; code 0 if none */
};

/* The clock of the table's next row. */
static inline uint32_t sbt_writer_clock_of(const struct ts_writer *writer,
					   const struct sbt_writer_table *table)
{
	return table->has_time ? writer->clock : 0;
}

/* ---- writer_chunks.c ---- */

/* Keeps the first error of the writer, and returns it. */
int sbt_writer_fail(struct ts_writer *writer, int code, const char *message);
int sbt_writer_fail_memory(struct ts_writer *writer);

/* Starts the threads that encode and append. */
int sbt_writer_start_slots(struct ts_writer *writer, struct ts_error *err);

/* Adds an entry for the rows of a clock. NULL: no memory. */
struct sbt_pending *sbt_writer_add_pending(struct ts_writer *writer, struct sbt_writer_table *table,
					   uint32_t clock);

/*
 * Makes the rows in the writer's clock those of table->pending; may seal others, to bound memory.
 * NULL on failure.
 */
struct sbt_pending *sbt_writer_change_clock(struct ts_writer *writer,
					    struct sbt_writer_table *table);

/* These pass rows to the encoders, and return the writer's error. */

/* All rows of a table. */
int sbt_writer_seal(struct ts_writer *writer, enum ts_table_id table);

/* All that events refer to. */
int sbt_writer_seal_referred(struct ts_writer *writer);

/* A full chunk of events: first what it refers to, with its long rows apart. */
int sbt_writer_seal_full(struct ts_writer *writer, struct sbt_pending *pending);

/* Waits until all sealed chunks are in the file. */
int sbt_writer_write_all(struct ts_writer *writer);

/* Stops the threads and frees tables and slots, also those of a writer that is half open. */
void sbt_writer_release_chunks(struct ts_writer *writer);

#endif
