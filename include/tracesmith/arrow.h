/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of a trace as streams of the Arrow C data interface, which pandas, Polars, DuckDB, PyArrow
 * and other libraries read without copying:
 *
 *	struct ArrowArrayStream stream;
 *	ts_arrow_stream(&stream, &reader, 1, "gpu_op", NULL, &err);
 *	...                                   // hand it over, or read it with stream.get_next()
 *	stream.release(&stream);
 *
 * The columns are those of docs/schema.md, in that order. Each reference is followed by columns of
 * the row it refers to, named as in CSV (docs/formats/tables.md): `stream` and `stream_number`,
 * `thread`, `thread_pid`, `thread_tid` and `thread_name`, `stack` and `stack_function`. Types:
 *
 *	TIME, DURATION, INT, REF    int64; times and durations in ns
 *	FLOAT                       float64
 *	BOOL                        bool
 *	STRING                      dictionary<int32, utf8>: 4 bytes a row
 *	ENUM                        dictionary<int8, utf8> of names
 *	JSON, SHAPE                 large_utf8: JSON text
 *	BYTES                       large_utf8 (string.text), large_binary (blob.data)
 *
 * All batches share one dictionary per column, which grows with them. Once it has more than 65,536
 * strings, each batch has its own (unless TS_ARROW_SHARED_DICTIONARIES is set).
 *
 * Null stands for an absent value, reference 0, a FLOAT of 0 (not measured), and the duration of a
 * row that did not end. Rows of dictionary tables begin with their implicit `id`. With several
 * readers, the first column is `trace`, the index of the row's reader; ids are those of that trace.
 *
 * Columns that are large or slow to decode are included only on request: `args` (the arguments of
 * the row as a JSON object; always included in `counter`, whose values they are), `beside` (fields
 * that stood next to the arguments in an imported file) and `blob.data`.
 *
 * A batch is a chunk of the file, in file order: rows are sorted by start within a batch. Of an
 * entity table (`device`, `thread` ...) each id comes once, with its newest row. Chunks are decoded
 * ahead of the consumer by threads that start with the first batch and end with the stream.
 *
 * Any thread may use a stream, one at a time. Batches and schemas own their memory: they may be
 * released in any order, in any thread, also after the stream. The readers must stay open until the
 * stream is released: see `release_owner`. In a forked child, a stream that has begun returns an
 * error; begin another one there.
 */
#ifndef TRACESMITH_ARROW_H
#define TRACESMITH_ARROW_H

#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>
#include <tracesmith/reader.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the interface, as specified: https://arrow.apache.org/docs/format/CDataInterface.html ----
 */

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
	const char *format;
	const char *name;
	const char *metadata;
	int64_t flags;
	int64_t n_children;
	struct ArrowSchema **children;
	struct ArrowSchema *dictionary;
	void (*release)(struct ArrowSchema *schema);
	void *private_data;
};

struct ArrowArray {
	int64_t length;
	int64_t null_count;
	int64_t offset;
	int64_t n_buffers;
	int64_t n_children;
	const void **buffers;
	struct ArrowArray **children;
	struct ArrowArray *dictionary;
	void (*release)(struct ArrowArray *array);
	void *private_data;
};

#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
	int (*get_schema)(struct ArrowArrayStream *stream, struct ArrowSchema *out);
	int (*get_next)(struct ArrowArrayStream *stream, struct ArrowArray *out);
	const char *(*get_last_error)(struct ArrowArrayStream *stream);
	void (*release)(struct ArrowArrayStream *stream);
	void *private_data;
};

#endif

/* ---- streams of tables ---- */

#define TS_ARROW_PLAIN_STRINGS 1u /* STRING columns as large_utf8 instead of dictionaries */
#define TS_ARROW_ALL_COLUMNS 2u   /* also those that are not included by default */
/* Batches always share a column's dictionary, so that an index has the same meaning in all. */
#define TS_ARROW_SHARED_DICTIONARIES 4u
#define TS_ARROW_RANGE 8u /* `from` and `to` are a range even if both are 0 */

/* Zero in any member means its default. `size` is sizeof(struct ts_arrow_options). */
struct ts_arrow_options {
	size_t size;
	const char *const *columns; /* only these, in this order; NULL: the default ones */
	size_t column_count;
	int64_t from, to; /* rows that overlap this, in trace time; both 0: everything */
	uint64_t limit;   /* at most this many rows */
	unsigned int flags;
	int threads; /* that decode ahead; -1: none, get_next() decodes. Default: one a processor */
	/*
	 * Called once, with `owner`, after the stream is released, by the thread that released it:
	 * frees what keeps the readers open. Not called if ts_arrow_stream() fails.
	 */
	void (*release_owner)(void *owner);
	void *owner;
};

/*
 * A stream of one table, by its name in docs/schema.md, of one or several readers. Every table but
 * the internal ones. An unknown table or column is TS_ENOTFOUND. The derived tables `state` and
 * `edge` are computed when the first batch is requested.
 */
int ts_arrow_stream(struct ArrowArrayStream *ret_stream, struct ts_reader *const *readers,
		    size_t reader_count, const char *table, const struct ts_arrow_options *options,
		    struct ts_error *err);

/* The schema that such a stream has; reads nothing. */
int ts_arrow_schema(struct ArrowSchema *ret_schema, size_t reader_count, const char *table,
		    const struct ts_arrow_options *options, struct ts_error *err);

#define TS_ARROW_COLUMN_NAME_BYTES 64

struct ts_arrow_column {
	char name[TS_ARROW_COLUMN_NAME_BYTES];
	const char *doc;
	int is_default; /* included unless columns are given */
};

/*
 * All columns of a table, with one reader. Fills at most `capacity` of them, and returns their
 * number in *ret_count.
 */
int ts_arrow_columns(const char *table, struct ts_arrow_column *ret_columns, size_t capacity,
		     size_t *ret_count, struct ts_error *err);

/*
 * The number of rows of a stream without range and limit, without reading them; TS_EINVAL for
 * derived tables.
 */
int ts_arrow_rows(struct ts_reader *const *readers, size_t reader_count, const char *table,
		  uint64_t *ret_rows, struct ts_error *err);

#ifdef __cplusplus
}
#endif

#endif
