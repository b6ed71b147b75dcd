/* SPDX-License-Identifier: Apache-2.0 */
/* The target for the platform on which a trace was recorded. */
#include <string.h>

#include "replay/replay.h"

TS_DEFINE_AUTO(ts_batch, ts_batch_free);

static bool is_cuda(struct ts_reader *reader, const struct ts_object_row *row)
{
	return row->kind == TS_OBJECT_DEVICE && row->details &&
	       strstr(ts_reader_string(reader, row->details).data, "\"platform\":\"cuda\"");
}

static bool has_cuda(struct ts_reader *reader)
{
	TS_AUTO(ts_batch) batch = NULL;

	if (ts_batch_new(&batch, reader, NULL))
		return false;
	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
		if (ts_reader_chunk(reader, i)->table != TS_TABLE_OBJECT ||
		    ts_batch_read(batch, i, TS_MASK_OF(object, kind) | TS_MASK_OF(object, details),
				  NULL))
			continue;
		for (uint32_t row = 0; row < batch->rows; row++) {
			struct ts_object_row object;

			ts_batch_row(batch, row, &object);
			if (is_cuda(reader, &object))
				return true;
		}
	}
	return false;
}

const struct ts_replay_target *ts_replay_target_of(struct ts_reader *reader)
{
	for (size_t i = 0; ts_replay_targets[i]; i++)
		if (!strcmp(ts_replay_targets[i]->name, "cuda") && has_cuda(reader))
			return ts_replay_targets[i];
	return ts_replay_targets[0];
}
