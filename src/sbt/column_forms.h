/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a chunk like ts_batch_read(), but leaves columns of equal or few distinct values as they
 * are stored: a consumer then looks an id up once per distinct value instead of once per row.
 * Implemented in batch.c.
 */
#ifndef TS_SBT_COLUMN_FORMS_H
#define TS_SBT_COLUMN_FORMS_H

#include <tracesmith/reader.h>

#include "sbt/codec.h"

struct sbt_forms {
	uint64_t mask; /* columns that may have a form other than words; not SHAPE and BYTES */
	/* Memory for the words of those columns; NULL fails. Not set: the batch's own. */
	int64_t *(*place)(void *context, int column, uint32_t rows);
	void *context;
	/* Result, valid until the next read; SBT_FORM_WORDS: in batch->columns. */
	struct sbt_form columns[TS_MAX_COLUMNS];
};

int sbt_batch_read_forms(struct ts_batch *batch, size_t chunk, uint64_t mask,
			 struct sbt_forms *forms, struct ts_error *err);

#endif
