/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a trace. Rows may be added in any order of time. The writer keeps one chunk per table and
 * clock in memory; it sorts and encodes a full chunk and appends it to the file, on threads of its
 * own. Appended chunks survive a kill at any instant (docs/format.md, section 8).
 *
 * Errors are sticky: after the first one every call fails with it, so a loop may check once, at
 * its end. A failure to append is found by one of the next calls, at the latest by flush, save and
 * finish; nothing is appended after it. Only one thread may use a writer at a time. Returned ids
 * are positive; 0 means failure.
 *
 *	struct ts_writer *writer;
 *	ts_writer_open(&writer, "out.sbt", NULL, &err);
 *	struct ts_slice_row slice = ts_slice_none;
 *	slice.start = 1000;
 *	slice.name = ts_writer_string(writer, "load", 4);
 *	ts_writer_add(writer, TS_TABLE_SLICE, &slice, NULL);
 *	ts_writer_finish(writer, &err);
 *	ts_writer_close(writer);
 */
#ifndef TRACESMITH_WRITER_H
#define TRACESMITH_WRITER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>
#include <tracesmith/schema.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ts_writer;

#define TS_WRITER_SYNC 1u   /* flush, save and finish wait for the disk */
#define TS_WRITER_LOCKED 2u /* the caller holds the file's lock (flock) */

/* Zero in any member means its default. `size` is sizeof(struct ts_writer_options). */
struct ts_writer_options {
	size_t size;
	/*
	 * Threads that encode, besides one that appends; -1: the caller's does both. Default:
	 * cores - 1
	 */
	int threads;
	uint32_t chunk_rows; /* rows of a full chunk; default 65536 */
	int level;           /* zstd level of event columns; default 4 */
	/* Bytes of interned text to keep before forgetting; default 256 MiB. */
	size_t string_memory;
	unsigned int flags; /* TS_WRITER_* */
	/* 16 bytes for a new file, or that a resumed one must have; NULL: any. */
	const uint8_t *trace_id;
	/* For tests: replaces write(2). Called by one thread at a time, in file order. */
	ssize_t (*write)(void *context, int fd, const void *data, size_t bytes);
	void *write_context;
};

/*
 * Creates or replaces the file. The path "-" is rejected: a trace needs a file. `options` may be
 * NULL.
 */
int ts_writer_open(struct ts_writer **ret_writer, const char *path,
		   const struct ts_writer_options *options, struct ts_error *err);

/* The next free ids, by table id: dictionaries, entities and shapes; 0 means 1. */
#define TS_WRITER_ID_TABLES 64
struct ts_writer_ids {
	uint64_t next[TS_WRITER_ID_TABLES];
};
void ts_writer_ids(const struct ts_writer *writer, struct ts_writer_ids *ret_ids);

/*
 * Opens an unfinished or saved trace and continues after byte `bytes`, the end of one of its
 * chunks: the rest is truncated. `bytes` UINT64_MAX: after its last chunk, without the index. `ids`
 * are those that ts_writer_ids() returned when the file had that length; texts and shapes are not
 * remembered, so that reused ones are stored again. TS_EFORMAT if the file is not as expected.
 */
int ts_writer_resume(struct ts_writer **ret_writer, const char *path, uint64_t bytes,
		     const struct ts_writer_ids *ids, const struct ts_writer_options *options,
		     struct ts_error *err);

/*
 * Writes the rest and an index, so that the file is a finished trace until the next chunk, which
 * replaces the index. The writer continues.
 */
int ts_writer_save(struct ts_writer *writer, struct ts_error *err);

/*
 * Writes the rest, the index and its trailer. Call once; then only close. On failure the file holds
 * all complete chunks so far.
 */
int ts_writer_finish(struct ts_writer *writer, struct ts_error *err);

/* Frees the writer; without finish, rows that are not yet in the file are dropped. Accepts NULL. */
void ts_writer_close(struct ts_writer *writer);

/*
 * Appends a row (struct ts_<table>_row). `values` are the values of the fields of the row's shape,
 * in order, without those that have no value; NULL if there are none. Keeps neither pointer.
 * Returns 0 or the writer's error.
 */
int ts_writer_add(struct ts_writer *writer, enum ts_table_id table, const void *row,
		  const int64_t *values);

/*
 * Changes a column (index, see TS_COLUMN_OF) of the last row added to this table, which is still in
 * memory. Not for the SHAPE column.
 */
int ts_writer_amend(struct ts_writer *writer, enum ts_table_id table, int column, int64_t value);

/* The next id for a new row of an ENTITY table; ids start at 1. */
int64_t ts_writer_new_id(struct ts_writer *writer, enum ts_table_id table);

/*
 * Interns content and returns its id. The text is copied; it should be UTF-8. Texts that readers
 * would refuse are cut (docs/format.md, section 7).
 */
uint32_t ts_writer_string(struct ts_writer *writer, const char *text, size_t length);
uint32_t ts_writer_shape(struct ts_writer *writer, const struct ts_field *fields, uint32_t count);
uint32_t ts_writer_frame(struct ts_writer *writer, const struct ts_frame_row *frame);
/*
 * The stack of `frame` called from `parent` (0: none). Frames beyond TS_STACK_MAX_DEPTH are left
 * out: one that says so takes the place of the last, and is the `parent` of no other.
 */
uint32_t ts_writer_stack(struct ts_writer *writer, uint32_t parent, uint32_t frame);

/* Stores bytes (at most 64 MiB) as a row of `blob`; not compared with earlier ones. */
uint32_t ts_writer_blob(struct ts_writer *writer, const void *data, size_t bytes);

/*
 * Another row of `blob`: bytes that continue those of `previous` (0: the first). `hash` (XXH3, 64
 * bits) and `total_bytes` cover the content up to and including these. Content of any size thus
 * needs only the memory of one piece; 1 MiB is a good size.
 */
uint32_t ts_writer_blob_piece(struct ts_writer *writer, uint32_t previous, uint64_t hash,
			      uint64_t total_bytes, const void *data, size_t bytes);

/*
 * Space for the bytes of the next row of `blob`, which then need not be copied: pass it as `data`.
 * Valid until the next call. NULL: the writer has failed.
 */
void *ts_writer_blob_space(struct ts_writer *writer, size_t bytes);

/* Text of a string that this writer still has, else NULL; borrowed until the next string. */
const char *ts_writer_text(struct ts_writer *writer, uint32_t string, size_t *ret_length);

/* Fields of a shape that this writer created; borrowed until close. NULL for shape 0. */
const struct ts_shape *ts_writer_shape_fields(struct ts_writer *writer, uint32_t shape);

/*
 * Sets the clock of rows added from now on (0 at first). Costs nothing for events: each clock fills
 * its own chunks. Entity rows keep their order, which costs a chunk per change.
 */
int ts_writer_set_clock(struct ts_writer *writer, uint32_t clock);

/* Appends everything in memory as chunks, so that it survives. */
int ts_writer_flush(struct ts_writer *writer);

/* The sticky error: 0 if none. */
int ts_writer_status(const struct ts_writer *writer, struct ts_error *err);

/* Content that the limits of the format have cut so far: stacks, and texts (each distinct one). */
struct ts_writer_cuts {
	uint64_t stacks, texts;
};
void ts_writer_cuts(const struct ts_writer *writer, struct ts_writer_cuts *ret_cuts);

/* Rows added so far to a table, and bytes of the file so far. */
uint64_t ts_writer_rows(const struct ts_writer *writer, enum ts_table_id table);
uint64_t ts_writer_bytes(const struct ts_writer *writer);

/* Bytes of all complete chunks, without an index: where ts_writer_resume() would continue. */
uint64_t ts_writer_chunk_bytes(const struct ts_writer *writer);

#ifdef __cplusplus
}
#endif

#endif
