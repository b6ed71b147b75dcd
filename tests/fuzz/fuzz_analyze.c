/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as rows of a trace, eight bytes per row: commands, calls, slices, steps,
 * synchronization and arrows of two ranks, with few names, lanes and correlations, so that they
 * collide, and sometimes with times at the limits of int64. The trace is loaded with both roundings
 * and passed to every analysis; lanes must partition time and edges must not go back. The emulator
 * must terminate with every command.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracesmith/reader.h>
#include <tracesmith/writer.h>

#include "analyze/analyze.h"
#include "replay/emulator/emulator.h"
#include "trace/step_mark.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROW_BYTES 8
#define MOST_ROWS 512

struct rows {
	struct ts_writer *writer;
	int64_t sources[2], threads[4], devices[2], streams[4];
	uint32_t names[16], categories[8], begin_capture, end_capture, step;
	uint32_t sync_shape, collective_shape, step_shape;
};

static const char *const names[16] = {
	"cudaLaunchKernel",
	"cudaMemcpy",
	"cudaStreamSynchronize",
	"cudaEventRecord",
	"cudaStreamWaitEvent",
	"cudaGraphLaunch",
	"cudaMalloc",
	"gemm",
	"ncclDevKernel_AllReduce",
	"Memcpy HtoD (Pageable -> Device)",
	"vectorized_elementwise_kernel",
	"Stream Sync",
	"Stream Wait Event",
	"ProfilerStep#1",
	"ProfilerStep#2",
	"aten::item",
};
static const char *const categories[8] = {
	"cpu_op",          "user_annotation", "gpu_user_annotation",
	"python_function", "kernel",          "cuda_sync",
	"fwdbwd",          "other",
};

static uint32_t text(struct ts_writer *writer, const char *string)
{
	return ts_writer_string(writer, string, strlen(string));
}

static int64_t new_entity(struct ts_writer *writer, enum ts_table_id table, int64_t *row)
{
	row[0] = ts_writer_new_id(writer, table);
	ts_writer_add(writer, table, row, NULL);
	return row[0];
}

static void add_ranks(struct rows *rows)
{
	for (int i = 0; i < 2; i++) {
		struct ts_source_row source = ts_source_none;
		struct ts_device_row device = ts_device_none;

		source.rank = i;
		rows->sources[i] = new_entity(rows->writer, TS_TABLE_SOURCE, (int64_t *)&source);
		device.source = rows->sources[i];
		rows->devices[i] = new_entity(rows->writer, TS_TABLE_DEVICE, (int64_t *)&device);
	}
}

static void add_lanes(struct rows *rows)
{
	for (int i = 0; i < 4; i++) {
		struct ts_process_row process = ts_process_none;
		struct ts_thread_row thread = ts_thread_none;
		struct ts_stream_row stream = ts_stream_none;

		process.source = rows->sources[i / 2];
		thread.process = new_entity(rows->writer, TS_TABLE_PROCESS, (int64_t *)&process);
		rows->threads[i] = new_entity(rows->writer, TS_TABLE_THREAD, (int64_t *)&thread);
		stream.device = rows->devices[i / 2];
		stream.number = i % 2;
		rows->streams[i] = new_entity(rows->writer, TS_TABLE_STREAM, (int64_t *)&stream);
	}
}

static uint32_t shape(struct ts_writer *writer, const char *first, const char *second)
{
	struct ts_field fields[2] = { { .key = text(writer, first), .type = TS_ARG_INT },
				      { .key = text(writer, second), .type = TS_ARG_INT } };

	return ts_writer_shape(writer, fields, 2);
}

static void start_rows(struct rows *rows)
{
	add_ranks(rows);
	add_lanes(rows);
	for (int i = 0; i < 16; i++)
		rows->names[i] = text(rows->writer, names[i]);
	for (int i = 0; i < 8; i++)
		rows->categories[i] = text(rows->writer, categories[i]);
	rows->sync_shape =
		shape(rows->writer, "wait_on_stream", "wait_on_cuda_event_record_corr_id");
	rows->collective_shape = shape(rows->writer, "Seq", "In msg nelems");
	rows->step_shape = shape(rows->writer, TS_STEP_MARK, "loss");
	rows->step = text(rows->writer, TS_STEP_MARK);
	rows->begin_capture = text(rows->writer, "cudaStreamBeginCapture");
	rows->end_capture = text(rows->writer, "cudaStreamEndCapture");
}

/* Mostly small; a first byte of 0 or 255 selects an end of the range. */
static int64_t time_of(const uint8_t *row)
{
	if (row[3] == 255 && row[2] == 255)
		return INT64_MAX - row[4];
	if (row[3] == 255 && row[2] == 254)
		return INT64_MIN + 1 + row[4];
	return row[2] * 100 + row[3];
}

static int64_t duration_of(const uint8_t *row)
{
	if (row[4] == 255)
		return row[5] & 1 ? INT64_MAX : -1;
	return row[4] * (row[5] & 1 ? 1 : 50);
}

static void add_command(struct rows *rows, const uint8_t *row)
{
	struct ts_gpu_op_row op = ts_gpu_op_none;
	int64_t values[2] = { row[1] & 1, row[7] };

	op.start = time_of(row);
	op.duration = duration_of(row);
	op.stream = rows->streams[row[1] & 3];
	op.device = rows->devices[(row[1] & 3) / 2];
	op.kind = row[6] % 10;
	op.name = rows->names[row[6] & 15];
	op.category = rows->categories[4 + (op.kind == TS_GPU_OP_SYNC)];
	op.correlation = row[7] & 31;
	op.bytes = row[5] == 0 ? TS_ABSENT : (int64_t)((uint64_t)row[5] << (row[7] & 63));
	op.copy_kind = row[7] % 7;
	if (op.kind == TS_GPU_OP_SYNC)
		op.shape = rows->sync_shape;
	else if (op.kind == TS_GPU_OP_COLLECTIVE && row[5] & 2)
		op.shape = rows->collective_shape;
	ts_writer_add(rows->writer, TS_TABLE_GPU_OP, &op, op.shape ? values : NULL);
}

static void add_call(struct rows *rows, const uint8_t *row)
{
	struct ts_api_call_row call = ts_api_call_none;

	call.start = time_of(row);
	call.duration = duration_of(row);
	call.thread = rows->threads[row[1] & 3];
	call.name = row[6] == 254   ? rows->begin_capture
		    : row[6] == 255 ? rows->end_capture
				    : rows->names[row[6] & 7];
	call.correlation = row[7] & 31;
	ts_writer_add(rows->writer, TS_TABLE_API_CALL, &call, NULL);
}

static void add_slice(struct rows *rows, const uint8_t *row)
{
	struct ts_slice_row slice = ts_slice_none;

	slice.start = time_of(row);
	slice.duration = duration_of(row);
	slice.thread = rows->threads[row[1] & 3];
	slice.name = rows->names[row[6] & 15];
	slice.category = rows->categories[row[7] & 7];
	ts_writer_add(rows->writer, TS_TABLE_SLICE, &slice, NULL);
}

static void add_flow(struct rows *rows, const uint8_t *row)
{
	struct ts_flow_row flow = ts_flow_none;

	flow.start = time_of(row);
	flow.thread = rows->threads[row[1] & 3];
	flow.kind = row[6] % 3;
	flow.id = row[7] & 7;
	flow.category = rows->categories[6];
	ts_writer_add(rows->writer, TS_TABLE_FLOW, &flow, NULL);
}

static void add_allocation(struct rows *rows, const uint8_t *row)
{
	struct ts_allocation_row allocation = ts_allocation_none;

	allocation.start = time_of(row);
	allocation.thread = rows->threads[row[1] & 3];
	allocation.device = rows->devices[row[1] & 1];
	allocation.kind = row[6] & 1;
	allocation.address = row[7] & 15;
	allocation.bytes = (int64_t)((uint64_t)row[5] << (row[6] & 63));
	ts_writer_add(rows->writer, TS_TABLE_ALLOCATION, &allocation, NULL);
}

static void add_step(struct rows *rows, const uint8_t *row)
{
	struct ts_mark_row mark = ts_mark_none;
	int64_t values[2] = { row[6], row[7] };

	mark.start = time_of(row);
	mark.thread = rows->threads[row[1] & 3];
	mark.name = mark.category = rows->step;
	mark.shape = rows->step_shape;
	ts_writer_add(rows->writer, TS_TABLE_MARK, &mark, values);
}

static void add_row(struct rows *rows, const uint8_t *row)
{
	static void (*const adders[])(struct rows * rows, const uint8_t *row) = {
		add_command, add_call,  add_slice, add_command,
		add_call,    add_slice, add_flow,  add_allocation,
	};

	if (row[0] == 255)
		add_step(rows, row);
	else
		adders[row[0] % TS_ARRAY_SIZE(adders)](rows, row);
}

static struct ts_reader *read_rows(const uint8_t *data, size_t size)
{
	struct ts_writer_options options = {
		.size = sizeof(options), .threads = -1, .level = 1, .chunk_rows = 64
	};
	char path[] = "/tmp/tracesmith-fuzz-XXXXXX";
	struct rows rows = { 0 };
	struct ts_reader *reader = NULL;
	struct ts_error err;
	int fd = mkstemp(path);

	if (fd < 0)
		abort();
	close(fd);
	if (ts_writer_open(&rows.writer, path, &options, &err))
		abort();
	start_rows(&rows);
	for (size_t i = 0; i + ROW_BYTES <= size && i < MOST_ROWS * ROW_BYTES; i += ROW_BYTES)
		add_row(&rows, data + i);
	if (ts_writer_finish(rows.writer, &err) || ts_reader_open(&reader, path, &err))
		abort();
	ts_writer_close(rows.writer);
	unlink(path);
	return reader;
}

/* ---- invariants ---- */

static void check_states(const struct ts_states *states)
{
	for (uint32_t i = 0; i < states->lane_count; i++) {
		const struct ts_state_lane *lane = &states->lanes[i];
		const struct ts_state_interval *at = &states->intervals[lane->first];

		for (size_t j = 0; j < lane->count; j++)
			if (at[j].end < at[j].start || (j && at[j].start != at[j - 1].end))
				abort();
	}
}

static void check_graph(const struct ts_graph *graph)
{
	for (size_t i = 0; i < graph->edge_count; i++)
		if (graph->edges[i].from >= graph->node_count ||
		    graph->edges[i].to >= graph->node_count)
			abort();
}

static void emulate(const struct ts_graph *graph, uint32_t streams)
{
	const struct ts_emulator_shape shape = { .streams = streams };
	struct ts_emulator_observed observed;
	struct ts_emulator_times times = { 0 };
	struct ts_emulator_model *model;
	struct ts_error err;

	if (ts_emulator_observe(&observed, graph, &err) ||
	    ts_emulator_model_new(&model, graph->work, graph, &observed, &shape, &err) ||
	    ts_emulator_run(model, &(struct ts_emulator_run_options){ 0 }, &times, &err))
		abort();
	for (uint32_t i = 0; i < model->command_count; i++)
		if (times.issued[i] > times.start[i] || times.start[i] > times.end[i])
			abort();
	ts_emulator_times_release(&times);
	ts_emulator_model_free(model);
	ts_emulator_observed_release(&observed);
}

static void analyze(struct ts_reader *reader, enum ts_rounding rounding)
{
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	struct ts_analyze_request request;
	struct ts_work *work;
	struct ts_error err;
	size_t count;
	const struct ts_analysis *const *list = ts_analysis_table(&count);

	options.load_flags = TS_WORK_SLICES | TS_WORK_PYTHON | TS_WORK_FLOWS | TS_WORK_DETAILS;
	options.rounding = rounding;
	if (ts_work_new(&work, &options, &err) || ts_work_add(work, reader, &err) ||
	    ts_work_finish(work, &err))
		abort();
	ts_analyze_request_init(&request, work);
	if (!ts_analyze_align(&request, &err) || !ts_analyze_host_graph(&request, &err) ||
	    !ts_analyze_states(&request, &err))
		abort();
	check_graph(request.host_graph);
	check_states(request.states);
	for (uint32_t streams = 0; streams < 4; streams += 2)
		emulate(request.host_graph, streams);
	for (size_t i = 0; i < count; i++) {
		struct ts_result result;

		ts_result_init(&result, 0);
		if (list[i]->run(&request, &result, &err) && err.code == TS_ENOMEM)
			abort();
		ts_result_release(&result);
	}
	ts_analyze_request_release(&request);
	ts_work_free(work);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ts_reader *reader = read_rows(data, size);

	analyze(reader, TS_ROUNDING_NONE);
	analyze(reader, TS_ROUNDING_HTA);
	ts_reader_close(reader);
	return 0;
}
