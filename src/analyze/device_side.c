/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for the fact `cuda_device_side` in the process facts of a trace. */
#include "analyze/device_side.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"

#define WHY_BYTES 512

/* Parses {"state": "off", "reason": WHY, ...}; ignores anything else. */
static void read_fact(struct ts_string fact, char why[WHY_BYTES])
{
	struct ts_json_string key = { 0 }, text = { 0 }, state = { 0 }, reason = { 0 };
	bool more = false;
	struct ts_json js;
	int rc;

	ts_json_init(&js, fact.data, fact.length, true);
	rc = ts_json_enter(&js, '{', &more);
	while (!rc && more) {
		rc = ts_json_scan_key(&js, &key);
		if (!rc &&
		    (ts_json_string_is(&key, "state") || ts_json_string_is(&key, "reason"))) {
			rc = ts_json_scan_string(&js, &text);
			*(ts_json_string_is(&key, "state") ? &state : &reason) = text;
		} else if (!rc) {
			rc = ts_json_skip(&js);
		}
		rc = rc ? rc : ts_json_next(&js, '}', &more);
	}
	if (!rc && ts_json_string_is(&state, "off"))
		snprintf(why, WHY_BYTES, "%.*s", (int)TS_MIN(reason.length, (size_t)WHY_BYTES),
			 reason.text);
}

/* Skips unreadable chunks: the result is only an explanation. */
static void read_trace(struct ts_reader *reader, char why[WHY_BYTES])
{
	struct ts_batch *batch = NULL;

	if (ts_batch_new(&batch, reader, NULL))
		return;
	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
		if (ts_reader_chunk(reader, i)->table != TS_TABLE_META ||
		    ts_batch_read(batch, i, TS_MASK_OF(meta, key) | TS_MASK_OF(meta, value), NULL))
			continue;
		for (uint32_t k = 0; k < batch->rows; k++) {
			int64_t key = batch->columns[TS_COLUMN_OF(meta, key)][k];
			int64_t value = batch->columns[TS_COLUMN_OF(meta, value)][k];

			if (!strcmp(ts_reader_string(reader, key).data, "cuda_device_side"))
				read_fact(ts_reader_string(reader, value), why);
		}
	}
	ts_batch_free(batch);
}

void ts_device_side_note(const struct ts_work *work, struct ts_result *result,
			 const char *otherwise)
{
	char why[WHY_BYTES] = "";

	/* If there is device activity, it is only outside the selection. */
	for (uint32_t i = 0; i < work->trace_count && !why[0]; i++)
		if (ts_reader_rows(work->readers[i], TS_TABLE_GPU_OP) == 0)
			read_trace(work->readers[i], why);
	if (why[0])
		ts_result_note(result, "the device side was not recorded: %s", why);
	else
		ts_result_note(result, "%s", otherwise);
}
