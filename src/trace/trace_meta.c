/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the rows of table `meta`. */
#include "trace/trace_meta.h"

#include <string.h>

#include "trace/trace_totals.h"

void ts_trace_meta(struct ts_reader *reader, const char *key,
		   void (*each)(void *context, struct ts_string value), void *context)
{
	TS_AUTO(ts_batch) batch = NULL;

	if (ts_batch_new(&batch, reader, NULL))
		return;
	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
		if (ts_reader_chunk(reader, i)->table != TS_TABLE_META ||
		    ts_batch_read(batch, i, TS_MASK_OF(meta, key) | TS_MASK_OF(meta, value), NULL))
			continue;
		for (uint32_t row = 0; row < batch->rows; row++) {
			int64_t value = batch->columns[TS_COLUMN_OF(meta, value)][row];
			int64_t name = batch->columns[TS_COLUMN_OF(meta, key)][row];

			if (!strcmp(ts_reader_string(reader, name).data, key))
				each(context, ts_reader_string(reader, value));
		}
	}
}
