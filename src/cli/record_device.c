/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a recording has of CUDA, read back from the finished trace: how many calls and commands, with how many stacks; and where nothing of the
 * device is there, why. Must not know how it was recorded.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <tracesmith/reader.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/record.h"
#include "cli/report.h"
#include "cli/trace.h"

/* {"state": "off", "reason": "...", ...}: what the backend says of its device side. */
static void read_state(struct ts_record_device *device, struct ts_string value)
{
	struct ts_json_string key = { 0 }, state = { 0 }, reason = { 0 }, text = { 0 };
	bool more = false;
	struct ts_json js;
	int rc;

	ts_json_init(&js, value.data, value.length, true);
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
		snprintf(device->why_not, sizeof(device->why_not), "%.*s", (int)reason.length,
			 reason.text);
}

static void read_meta(struct ts_reader *reader, const struct ts_batch *batch,
		      struct ts_record_device *device)
{
	const int64_t *keys = batch->columns[TS_COLUMN_OF(meta, key)];
	const int64_t *values = batch->columns[TS_COLUMN_OF(meta, value)];

	for (uint32_t i = 0; i < batch->rows; i++) {
		const char *key = ts_reader_string(reader, keys[i]).data;

		device->is_used |= !strcmp(key, "cuda");
		if (!strcmp(key, "cuda_device_side"))
			read_state(device, ts_reader_string(reader, values[i]));
	}
}

static void count_stacks(const struct ts_batch *batch, struct ts_record_device *device)
{
	const int64_t *stacks = batch->columns[TS_COLUMN_OF(api_call, stack)];

	for (uint32_t i = 0; i < batch->rows; i++)
		device->stacks += stacks[i] > 0;
}

/* A chunk that cannot be read is left out: this is a summary. */
static void read_chunks(struct ts_reader *reader, struct ts_record_device *device)
{
	TS_AUTO(ts_batch) batch = NULL;

	if (ts_batch_new(&batch, reader, NULL))
		return;
	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
		uint16_t table = ts_reader_chunk(reader, i)->table;

		if (table == TS_TABLE_META &&
		    !ts_batch_read(batch, i, TS_MASK_OF(meta, key) | TS_MASK_OF(meta, value), NULL))
			read_meta(reader, batch, device);
		else if (table == TS_TABLE_API_CALL &&
			 !ts_batch_read(batch, i, TS_MASK_OF(api_call, stack), NULL))
			count_stacks(batch, device);
	}
}

void ts_record_device_read(const struct ts_record *record, const char *path,
			   struct ts_record_device *ret_device)
{
	TS_AUTO(ts_reader) reader = NULL;
	struct ts_error err;

	*ret_device = (struct ts_record_device){ 0 };
	if (!record->command || !ts_record_runs_in_program(record, "cuda") ||
	    ts_reader_open(&reader, path, &err))
		return;
	ret_device->calls = ts_reader_rows(reader, TS_TABLE_API_CALL);
	ret_device->ops = ts_reader_rows(reader, TS_TABLE_GPU_OP);
	read_chunks(reader, ret_device);
}

void ts_record_device_tell(const struct ts_record_device *device)
{
	char calls[TS_FORMAT_BYTES], ops[TS_FORMAT_BYTES], stacks[TS_FORMAT_BYTES];

	if (!device->is_used)
		return;
	ts_report_note("  CUDA: %s calls, %s with a stack; %s operations of devices",
		       ts_format_count(calls, sizeof(calls), (int64_t)device->calls),
		       ts_format_count(stacks, sizeof(stacks), (int64_t)device->stacks),
		       ts_format_count(ops, sizeof(ops), (int64_t)device->ops));
	if (device->why_not[0])
		ts_report_note("  nothing of the devices is recorded: %s (see 'tracesmith doctor')",
			       device->why_not);
}
