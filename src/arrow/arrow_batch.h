/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch: the buffers of a number of rows, and the structures of the Arrow C data interface that
 * describe them. Schemas are here too. A batch is counted: each array of it that a consumer holds
 * is one reference, since consumers may release a column before or after the others.
 */
#ifndef TS_ARROW_ARROW_BATCH_H
#define TS_ARROW_ARROW_BATCH_H

#include "arrow/arrow_dictionary.h"
#include "arrow/arrow_fields.h"
#include "arrow/arrow_memory.h"

/* Buffers of one field. */
struct ts_arrow_data {
	const void *validity; /* NULL: no nulls */
	const void *values;   /* numbers, bits, indices; of texts their offsets */
	const void *text;
	int64_t null_count; /* -1: not counted */
	/* The texts of this batch alone (arrow_local.c); NULL: those that all batches share. */
	const void *local_offsets, *local_text;
	uint32_t local_count;
};

struct ts_arrow_batch {
	_Atomic size_t references;
	struct ts_arrow_memory *memory;
	struct ts_arrow_kept kept;
	size_t field_count;
	uint32_t rows;
	struct ts_arrow_data *data; /* by field */
	struct ArrowArray *arrays, *dictionaries;
	struct ArrowArray **children;
	const void **buffers; /* 1 of the batch, 3 of each array, 3 of each dictionary */
};

/* With one reference. NULL: no memory. */
struct ts_arrow_batch *ts_arrow_batch_new(struct ts_arrow_memory *memory, size_t field_count);
void ts_arrow_batch_drop(struct ts_arrow_batch *batch); /* accepts NULL */

/*
 * Describes the batch, whose reference the array takes over. `dictionaries` by field; those of
 * others are not used. On failure the caller still has the batch.
 */
int ts_arrow_batch_export(struct ts_arrow_batch *batch, const struct ts_arrow_fields *fields,
			  struct ts_arrow_dictionary *dictionaries, struct ArrowArray *ret_array);

/* 0 or TS_ENOMEM. */
int ts_arrow_fields_export(const struct ts_arrow_fields *fields, struct ArrowSchema *ret_schema);

#endif
