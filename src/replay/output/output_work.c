/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a simulated run: those of the recording, with names and arguments, at simulated times and
 * possibly in other queues. Rows without a simulated time (counters, samples, marks) are omitted.
 */
#include <inttypes.h>
#include <string.h>

#include "base/ns.h"
#include "replay/output/replay_output.h"
#include "replay/stream/stream_internal.h"
#include "state/work/work.h"
#include "trace/extract.h"

struct output {
	const struct ts_work *work;
	const struct ts_replay_outcome *outcome;
	/* 1 + index of the command, sync, call or slice, by row of its table; 0: none. */
	uint32_t *commands, *syncs, *calls, *slices;
	uint64_t op_count, call_count, slice_count;
	int64_t first_stream; /* id of the first new queue */
};

/* ---- rows by number ---- */

static int number_rows(struct output *output, struct ts_reader *reader)
{
	const struct ts_work *work = output->work;

	output->op_count = ts_reader_rows(reader, TS_TABLE_GPU_OP);
	output->call_count = ts_reader_rows(reader, TS_TABLE_API_CALL);
	output->slice_count = ts_reader_rows(reader, TS_TABLE_SLICE);
	output->commands = calloc(output->op_count + 1, sizeof(uint32_t));
	output->syncs = calloc(output->op_count + 1, sizeof(uint32_t));
	output->calls = calloc(output->call_count + 1, sizeof(uint32_t));
	output->slices = calloc(output->slice_count + 1, sizeof(uint32_t));
	if (!output->commands || !output->syncs || !output->calls || !output->slices)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < work->command_count; i++)
		if (work->commands[i].row < output->op_count)
			output->commands[work->commands[i].row] = i + 1;
	for (uint32_t i = 0; i < work->sync_count; i++)
		if (work->syncs[i].row < output->op_count)
			output->syncs[work->syncs[i].row] = i + 1;
	for (uint32_t i = 0; i < work->call_count; i++)
		if (work->calls[i].row < output->call_count)
			output->calls[work->calls[i].row] = i + 1;
	for (uint32_t i = 0; i < work->slice_count; i++)
		if (work->slices[i].row < output->slice_count)
			output->slices[work->slices[i].row] = i + 1;
	return TS_OK;
}

/* ---- changes ---- */

static int64_t stream_id(const struct output *output, uint32_t stream)
{
	if (stream < output->work->stream_count)
		return output->work->streams[stream].id;
	return output->first_stream + (stream - output->work->stream_count);
}

/* A synchronisation moves with the end of its call. */
static bool change_sync(const struct output *output, uint32_t index, struct ts_gpu_op_row *row)
{
	const struct ts_work_sync *sync = &output->work->syncs[index];
	int64_t by;

	if (sync->call == TS_WORK_NONE)
		return false;
	by = ts_ns_sub(output->outcome->calls[sync->call].end, output->work->calls[sync->call].end);
	row->start = ts_ns_add(row->start, by);
	if (row->queued != TS_ABSENT)
		row->queued = ts_ns_add(row->queued, by);
	if (row->submitted != TS_ABSENT)
		row->submitted = ts_ns_add(row->submitted, by);
	return true;
}

static bool change_op(const struct output *output, uint64_t number, struct ts_gpu_op_row *row)
{
	uint32_t index = output->commands[number];
	const struct ts_replay_times *times;

	if (!index && output->syncs[number])
		return change_sync(output, output->syncs[number] - 1, row);
	if (!index--)
		return false;
	times = &output->outcome->times[index];
	row->start = times->start;
	row->duration = TS_MAX(ts_ns_sub(times->end, times->start), 0);
	if (row->queued != TS_ABSENT)
		row->queued = times->queued;
	if (row->submitted != TS_ABSENT)
		row->submitted = times->submitted;
	if (output->outcome->streams[index] != output->work->commands[index].stream)
		row->stream = stream_id(output, output->outcome->streams[index]);
	return row->start != TS_ABSENT;
}

static bool change_span(const struct ts_replay_span *spans, uint32_t index, int64_t *start,
			int64_t *duration)
{
	if (!index || spans[index - 1].start == TS_ABSENT)
		return false;
	*start = spans[index - 1].start;
	if (*duration >= 0)
		*duration = TS_MAX(ts_ns_sub(spans[index - 1].end, spans[index - 1].start), 0);
	return true;
}

static bool change(void *context, enum ts_table_id table, uint64_t number, void *data)
{
	const struct output *output = context;

	if (table == TS_TABLE_GPU_OP)
		return number < output->op_count && change_op(output, number, data);
	if (table == TS_TABLE_API_CALL) {
		struct ts_api_call_row *row = data;

		return number < output->call_count &&
		       change_span(output->outcome->calls, output->calls[number], &row->start,
				   &row->duration);
	}
	if (table == TS_TABLE_SLICE) {
		struct ts_slice_row *row = data;

		return number < output->slice_count &&
		       change_span(output->outcome->slices, output->slices[number], &row->start,
				   &row->duration);
	}
	return table == TS_TABLE_META || table == TS_TABLE_LOSS;
}

/* ---- new queues ---- */

static int64_t highest_stream(struct ts_reader *reader)
{
	int64_t id, highest = 0;
	size_t cursor = 0;

	while (ts_reader_entity_next(reader, TS_TABLE_STREAM, &cursor, &id))
		highest = TS_MAX(highest, id);
	return highest;
}

/* Each belongs to the device of its first command. */
static void add_streams(struct output *output, struct ts_writer *writer)
{
	const struct ts_work *work = output->work;
	uint32_t known = work->stream_count;
	TS_SCOPED(ts_map) written = { 0 };

	for (uint32_t i = 0; i < work->command_count; i++) {
		uint32_t stream = output->outcome->streams[i];
		struct ts_stream_row row = ts_stream_none;
		bool is_new = false;

		if (stream < known)
			continue;
		ts_map_insert(&written, stream, &is_new);
		if (!is_new)
			continue;
		row.id = stream_id(output, stream);
		row.device = work->devices[work->streams[work->commands[i].stream].device].id;
		row.number = stream;
		ts_writer_add(writer, TS_TABLE_STREAM, &row, NULL);
	}
}

int ts_replay_write_work(const struct ts_replay *replay, struct ts_writer *writer,
			 const struct ts_replay_outcome *outcome, struct ts_error *err)
{
	struct output output = { .work = replay->work, .outcome = outcome };
	const struct ts_extract_filter filter = { .pid = TS_ABSENT,
						  .from_ns = INT64_MIN,
						  .to_ns = INT64_MAX,
						  .change = change,
						  .context = &output };
	int rc = number_rows(&output, replay->reader) ? ts_replay_no_memory(err) : TS_OK;

	if (!rc) {
		output.first_stream = highest_stream(replay->reader) + 1;
		add_streams(&output, writer);
		rc = ts_extract_into(replay->reader, writer, &filter, err);
	}
	free(output.commands);
	free(output.syncs);
	free(output.calls);
	free(output.slices);
	return rc;
}
