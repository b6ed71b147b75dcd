/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the threads of a stream share, and one thread's part: turning a unit, that is a chunk or a
 * piece of a table in memory, into a batch.
 */
#ifndef TS_ARROW_ARROW_SOURCE_H
#define TS_ARROW_ARROW_SOURCE_H

#include "arrow/arrow_batch.h"
#include "sbt/column_forms.h"

/* Values of an enum below this have a name, or their number as text; indices are one byte. */
#define TS_ARROW_MOST_ENUM_NAMES 127

/* A dictionary with more texts than this is no longer shared by all batches by default. */
#define TS_ARROW_SHARED_TEXTS 65536u

/* Rows in memory: entities, derived tables. By row, as many words as the table has columns. */
struct ts_arrow_rows {
	int64_t *words;
	size_t count, capacity; /* in rows */
};

struct ts_arrow_unit {
	uint32_t reader;
	bool is_partial;                  /* not all rows are in the range */
	size_t chunk;                     /* or: */
	const struct ts_arrow_rows *rows; /* NULL: a chunk */
	size_t first;
	uint32_t count;
};

struct ts_arrow_source {
	struct ts_arrow_fields fields;
	struct ts_reader **readers;
	size_t reader_count;
	int64_t from, to;
	bool shares_dictionaries; /* also large ones */
	struct ts_arrow_memory *memory;
	struct ts_arrow_dictionary *dictionaries; /* by field */
	struct ts_arrow_ids *ids;                 /* by reader and field */
	struct ts_arrow_unit *units;
	size_t unit_count, unit_capacity;
	struct ts_arrow_rows *rows; /* by reader; of a table that is not read by chunk */
};

/* Copies what it needs of `readers`. Release also after failure. */
int ts_arrow_source_init(struct ts_arrow_source *source, struct ts_reader *const *readers,
			 size_t reader_count, const char *table,
			 const struct ts_arrow_options *options, struct ts_error *err);
void ts_arrow_source_release(struct ts_arrow_source *source);

/* Lists the units; loads or computes what is not read by chunk. */
int ts_arrow_source_prepare(struct ts_arrow_source *source, struct ts_error *err);

/* arrow_derived.c: appends the rows of a derived table, those of each trace to its `rows`. */
int ts_arrow_derive(struct ts_arrow_source *source, struct ts_error *err);

/* A row of the source's table; NULL: no memory. */
int64_t *ts_arrow_rows_add(struct ts_arrow_source *source, size_t reader);

/* ---- one thread ---- */

struct ts_arrow_worker {
	struct ts_arrow_source *source;
	struct ts_arrow_allocator allocator;
	struct ts_batch *input; /* of: */
	struct ts_reader *reader;
	struct sbt_forms forms;
	int64_t *scratch[TS_MAX_COLUMNS]; /* words of columns that are looked up */
	size_t scratch_capacity[TS_MAX_COLUMNS];
	int64_t *mapped; /* entries of a column, looked up */
	size_t mapped_capacity;
	uint32_t *selected; /* rows of a partial unit */
	size_t selected_capacity;
	struct ts_text text;
	uint64_t placed; /* columns that are output as they are */
	struct ts_arrow_batch *batch;
	const struct ts_arrow_unit *unit;
	struct ts_error *err;
};

int ts_arrow_worker_init(struct ts_arrow_worker *worker, struct ts_arrow_source *source);
void ts_arrow_worker_release(struct ts_arrow_worker *worker);

/* The rows of a unit, perhaps none. */
int ts_arrow_worker_convert(struct ts_arrow_worker *worker, const struct ts_arrow_unit *unit,
			    struct ts_arrow_batch **ret_batch, struct ts_error *err);

/* ---- between the files of a worker ---- */

/* One column of the table in the current unit. */
struct ts_arrow_view {
	enum sbt_form_kind kind;
	unsigned int index_bytes;
	size_t stride; /* of words, in words */
	int64_t constant;
	const int64_t *words, *entries;
	const void *indices;
	uint32_t entry_count;
};

static inline int64_t ts_arrow_view_value(const struct ts_arrow_view *view, uint32_t row)
{
	switch (view->kind) {
	case SBT_FORM_WORDS:
		return view->words[row * view->stride];
	case SBT_FORM_CONSTANT:
		return view->constant;
	default:
		return view
			->entries[view->index_bytes == 1 ? ((const uint8_t *)view->indices)[row]
							 : ((const uint32_t *)view->indices)[row]];
	}
}

/* What an id stands for in a field with a dictionary or of numbers; TS_ABSENT: null. */
int ts_arrow_look_up(struct ts_arrow_worker *worker, size_t field, int64_t id, int64_t *ret_value);

/* Fills worker->batch->data[field]. `views` by column of the table. */
int ts_arrow_fill_values(struct ts_arrow_worker *worker, size_t field,
			 const struct ts_arrow_view *view);
int ts_arrow_fill_texts(struct ts_arrow_worker *worker, size_t field,
			const struct ts_arrow_view *views);

/* arrow_local.c: gives the batch a dictionary of its own, if the shared one is large. */
int ts_arrow_make_local(struct ts_arrow_worker *worker, size_t field);

void *ts_arrow_worker_alloc(struct ts_arrow_worker *worker, size_t bytes);
int ts_arrow_no_memory(struct ts_arrow_worker *worker);

#endif
