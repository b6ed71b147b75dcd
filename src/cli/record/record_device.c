/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a recording has of CUDA, read back from the finished trace: how many calls and commands,
 * with how many stacks; and where nothing of the device is there, why.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <tracesmith/reader.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/common/report.h"
#include "cli/record/record.h"
#include "trace/trace_totals.h"

/* The text of a key at the top of a JSON object; empty: it has none. */
static void text_of(struct ts_string value, const char *wanted, char *buffer, size_t bytes)
{
	struct ts_json_string key = { 0 }, found = { 0 };
	TS_SCOPED(ts_text) text = { 0 };
	bool more = false, is_found = false;
	struct ts_json js;
	int rc;

	ts_json_init(&js, value.data, value.length, true);
	rc = ts_json_enter(&js, '{', &more);
	while (!rc && more && !is_found) {
		rc = ts_json_scan_key(&js, &key);
		is_found = !rc && key.length == strlen(wanted) &&
			   !memcmp(key.text, wanted, key.length);
		if (!rc)
			rc = is_found ? ts_json_scan_string(&js, &found) : ts_json_skip(&js);
		if (!rc)
			rc = ts_json_next(&js, '}', &more);
	}
	if (!rc && is_found)
		ts_json_unescape(&found, &text);
	snprintf(buffer, bytes, "%.*s", (int)text.length, text.length ? text.data : "");
}

/*
 * {"state": "off", "reason": "...", ...}: what the backend says of its device side. Numbers of
 * CUPTI speak for themselves only to some.
 */
static void read_state(struct ts_record_device *device, struct ts_string value)
{
	char state[16], reason[sizeof(device->why_not)];

	text_of(value, "state", state, sizeof(state));
	if (strcmp(state, "off") != 0)
		return;
	text_of(value, "reason", reason, sizeof(reason));
	snprintf(device->why_not, sizeof(device->why_not), "%s%.200s",
		 strncmp(reason, "CUPTI_ERROR", strlen("CUPTI_ERROR")) == 0
			 ? "CUPTI could not be started: "
			 : "",
		 *reason ? reason : "nobody knows why");
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
		else if (!strcmp(key, "pc_sampling"))
			text_of(ts_reader_string(reader, values[i]), "off", device->no_samples,
				sizeof(device->no_samples));
	}
}

static void count_stacks(const struct ts_batch *batch, struct ts_record_device *device)
{
	const int64_t *stacks = batch->columns[TS_COLUMN_OF(api_call, stack)];

	for (uint32_t i = 0; i < batch->rows; i++)
		device->stacks += stacks[i] > 0;
}

/* A chunk that cannot be read is left out: this is a summary. */
static void read_chunks(struct ts_reader *reader, bool is_counted, struct ts_record_device *device)
{
	TS_AUTO(ts_batch) batch = NULL;

	if (ts_batch_new(&batch, reader, NULL))
		return;
	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
		uint16_t table = ts_reader_chunk(reader, i)->table;

		if (table == TS_TABLE_META &&
		    !ts_batch_read(batch, i, TS_MASK_OF(meta, key) | TS_MASK_OF(meta, value), NULL))
			read_meta(reader, batch, device);
		else if (is_counted && table == TS_TABLE_API_CALL &&
			 !ts_batch_read(batch, i, TS_MASK_OF(api_call, stack), NULL))
			count_stacks(batch, device);
	}
}

void ts_record_device_read(const struct ts_record *record,
			   const struct ts_recorder_summary *summary,
			   struct ts_record_device *ret_device)
{
	TS_AUTO(ts_reader) reader = NULL;
	struct ts_error err;

	*ret_device = (struct ts_record_device){ 0 };
	if (!record->command || !ts_record_runs_in_program(record, "cuda") ||
	    ts_reader_open(&reader, summary->path, &err))
		return;
	ret_device->calls = ts_reader_rows(reader, TS_TABLE_API_CALL);
	ret_device->ops = ts_reader_rows(reader, TS_TABLE_GPU_OP);
	ret_device->is_whole = summary->files <= 1;
	read_chunks(reader, !record->quiet || record->json, ret_device);
	if (!record->launch.pc_sampling)
		ret_device->no_samples[0] = '\0';
	else if (!ret_device->no_samples[0])
		memcpy(ret_device->no_samples, ret_device->why_not, sizeof(ret_device->no_samples));
}

static void tell_counts(const struct ts_record_device *device)
{
	char calls[TS_FORMAT_BYTES], ops[TS_FORMAT_BYTES], stacks[TS_FORMAT_BYTES];

	ts_report_note("  CUDA: %s calls, %s with a stack; %s operations of devices",
		       ts_format_count(calls, sizeof(calls), (int64_t)device->calls),
		       ts_format_count(stacks, sizeof(stacks), (int64_t)device->stacks),
		       ts_format_count(ops, sizeof(ops), (int64_t)device->ops));
}

/*
 * Samples that were asked for are missed; the backend itself has NVTX ranges of programs without
 * CUDA, too.
 */
static void tell_unused(const struct ts_record *record)
{
	if (record->launch.pc_sampling)
		ts_report_warning("no instruction samples: no program has used CUDA");
	else if (record->names_cuda && !record->quiet)
		ts_report_note("  no program has used CUDA");
}

void ts_record_device_tell(const struct ts_record *record, const struct ts_record_device *device)
{
	if (device->is_whole && !device->is_used)
		tell_unused(record);
	if (!device->is_used)
		return;
	if (!record->quiet)
		tell_counts(device);
	if (device->why_not[0])
		(record->quiet ? ts_report_warning : ts_report_note)(
			"%snothing of the devices is recorded: %s (see 'tracesmith doctor cuda')",
			record->quiet ? "" : "  ", device->why_not);
	if (device->no_samples[0])
		ts_report_warning("no instruction samples: %s (see 'tracesmith doctor cuda')",
				  device->no_samples);
}
