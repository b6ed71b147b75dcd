/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a replayed command stream: its calls and device work, named as in the recording and on
 * its time line: the first call is at the time of the first recorded command.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/ns.h"
#include "base/text.h"
#include "replay/output/replay_output.h"
#include "replay/stream/stream_internal.h"

/* First correlation for commands that have none in the recording. */
#define FIRST_CORRELATION ((int64_t)1 << 40)

struct output {
	const struct ts_replay *replay;
	const struct ts_replay_stream *stream;
	const struct ts_replay_outcome *outcome;
	struct ts_writer *writer;
	struct ts_replay_recorded recorded;
	int64_t shift; /* added to the run's clock: trace time */
	int64_t process, thread, source;
	int64_t *devices, *streams; /* row ids by object; memory: 1 if it has a row */
	uint32_t waits_shape;
};

static int64_t text(struct output *output, const char *string)
{
	return string ? ts_writer_string(output->writer, string, strlen(string)) : 0;
}

/* ---- devices and streams ---- */

static void write_process(struct output *output)
{
	struct ts_source_row source = ts_source_none;
	struct ts_process_row process = ts_process_none;
	struct ts_thread_row thread = ts_thread_none;

	source.id = output->source = ts_writer_new_id(output->writer, TS_TABLE_SOURCE);
	source.name = text(output,
			   output->replay->options.name ? output->replay->options.name : "a trace");
	source.format = text(output, "replay");
	ts_writer_add(output->writer, TS_TABLE_SOURCE, &source, NULL);
	process.id = output->process = ts_writer_new_id(output->writer, TS_TABLE_PROCESS);
	process.source = output->source;
	process.pid = getpid();
	process.name = text(output, "tracesmith replay");
	ts_writer_add(output->writer, TS_TABLE_PROCESS, &process, NULL);
	thread.id = output->thread = ts_writer_new_id(output->writer, TS_TABLE_THREAD);
	thread.process = output->process;
	thread.tid = getpid();
	thread.name = text(output, "replay");
	ts_writer_add(output->writer, TS_TABLE_THREAD, &thread, NULL);
}

static int64_t device_row(struct output *output, uint32_t object)
{
	const struct ts_replay_object_info *info;
	struct ts_device_row row = ts_device_none;

	if (object == TS_REPLAY_NONE)
		return 0;
	if (output->devices[object])
		return output->devices[object];
	info = &output->stream->objects[object];
	row.id = output->devices[object] = ts_writer_new_id(output->writer, TS_TABLE_DEVICE);
	row.source = output->source;
	row.number = (int64_t)info->index;
	row.name = text(output, info->name);
	ts_writer_add(output->writer, TS_TABLE_DEVICE, &row, NULL);
	return row.id;
}

static int64_t stream_row(struct output *output, uint32_t object)
{
	const struct ts_replay_object_info *info;
	struct ts_stream_row row = ts_stream_none;

	if (object == TS_REPLAY_NONE)
		return 0;
	if (output->streams[object])
		return output->streams[object];
	info = &output->stream->objects[object];
	row.device = device_row(output, info->device);
	row.id = output->streams[object] = ts_writer_new_id(output->writer, TS_TABLE_STREAM);
	row.number = (int64_t)info->index;
	row.name = info->name && *info->name ? text(output, info->name) : 0;
	row.priority = info->priority;
	row.out_of_order = (info->flags & TS_REPLAY_OUT_OF_ORDER) != 0;
	ts_writer_add(output->writer, TS_TABLE_STREAM, &row, NULL);
	return row.id;
}

/* ---- commands ---- */

static int64_t correlation_of(const struct output *output, uint32_t index)
{
	int64_t correlation = output->stream->commands[index].correlation;

	return correlation > 0 ? correlation : FIRST_CORRELATION + index;
}

static int64_t in_trace_time(const struct output *output, int64_t time)
{
	return time == TS_ABSENT ? TS_ABSENT : ts_ns_add(time, output->shift);
}

static int64_t kind_of(const struct ts_replay_command_info *command)
{
	switch (command->kind) {
	case TS_COMMAND_LAUNCH:
		return TS_GPU_OP_KERNEL;
	case TS_COMMAND_COPY:
	case TS_COMMAND_HOST_WRITE:
		return TS_GPU_OP_COPY;
	case TS_COMMAND_FILL:
		return TS_GPU_OP_FILL;
	case TS_COMMAND_WAIT:
		return TS_GPU_OP_WAIT;
	default:
		return TS_GPU_OP_SYNC;
	}
}

static int64_t copy_kind_of(const struct ts_replay_command_info *command)
{
	if (kind_of(command) != TS_GPU_OP_COPY)
		return TS_COPY_UNKNOWN;
	if (command->object == TS_REPLAY_NONE)
		return TS_COPY_DEVICE_TO_HOST;
	return command->other == TS_REPLAY_NONE ? TS_COPY_HOST_TO_DEVICE : TS_COPY_DEVICE_TO_DEVICE;
}

/* Names it as in the recording, else by the command. */
static void name_op(struct output *output, uint32_t position, struct ts_gpu_op_row *row)
{
	uint32_t index = output->replay->plan.order[position];
	const struct ts_replay_command_info *command = &output->stream->commands[index];
	const struct ts_gpu_op_row *before = ts_replay_recorded_row(&output->recorded, position);
	const char *category = kind_of(command) == TS_GPU_OP_KERNEL ? "kernel"
			       : kind_of(command) == TS_GPU_OP_COPY ? "copy"
								    : "sync";

	if (before) {
		row->kind = before->kind;
		row->copy_kind = before->copy_kind;
		row->name =
			text(output, ts_reader_string(output->replay->reader, before->name).data);
		row->category = text(
			output, ts_reader_string(output->replay->reader, before->category).data);
		return;
	}
	row->kind = kind_of(command);
	row->copy_kind = copy_kind_of(command);
	row->category = text(output, category);
	if (command->kind == TS_COMMAND_LAUNCH)
		row->name = text(output, output->stream->objects[command->object].demangled);
	else
		row->name = text(output, command->call
						 ? command->call
						 : ts_enum_name("command_kind", command->kind));
}

static int64_t blocks(const struct ts_replay_command_info *command, unsigned int side)
{
	uint64_t local = side < command->dimensions ? command->local[side] : 1;
	uint64_t global = side < command->dimensions ? command->global[side] : 1;

	return local ? (int64_t)(global / local + (global % local != 0)) : TS_ABSENT;
}

static void set_geometry(const struct ts_replay_command_info *command, struct ts_gpu_op_row *row)
{
	if (command->kind != TS_COMMAND_LAUNCH || !command->local[0])
		return;
	row->grid_x = blocks(command, 0);
	row->grid_y = blocks(command, 1);
	row->grid_z = blocks(command, 2);
	row->block_x = (int64_t)command->local[0];
	row->block_y = command->dimensions > 1 ? (int64_t)command->local[1] : 1;
	row->block_z = command->dimensions > 2 ? (int64_t)command->local[2] : 1;
}

/* Text with the correlations it waited for, as the recorder writes them: "[3,4]"; 0: none. */
static int64_t waits_of(struct output *output, uint32_t index)
{
	const struct ts_replay_command_info *command = &output->stream->commands[index];
	TS_SCOPED(ts_text) json = { 0 };

	for (uint32_t i = 0; i < command->wait_count; i++) {
		uint32_t on = ts_replay_plan_wait(&output->replay->plan, command->waits[i]);

		if (on != TS_REPLAY_NONE)
			ts_text_printf(&json, "%s%" PRId64, json.length ? "," : "[",
				       correlation_of(output, on));
	}
	if (!json.length)
		return 0;
	ts_text_append_char(&json, ']');
	return ts_writer_string(output->writer, ts_text_cstr(&json), json.length);
}

static uint32_t waits_shape(struct output *output)
{
	struct ts_field field = { .type = TS_ARG_JSON };

	if (!output->waits_shape) {
		field.key = (uint32_t)text(output, "waits_for");
		output->waits_shape = ts_writer_shape(output->writer, &field, 1);
	}
	return output->waits_shape;
}

static void write_op(struct output *output, uint32_t position)
{
	uint32_t index = output->replay->plan.order[position];
	const struct ts_replay_command_info *command = &output->stream->commands[index];
	const struct ts_replay_times *times = &output->outcome->times[position];
	struct ts_gpu_op_row row = ts_gpu_op_none;
	int64_t waits;

	if (times->start == TS_ABSENT || times->end == TS_ABSENT ||
	    command->queue == TS_REPLAY_NONE)
		return;
	name_op(output, position, &row);
	set_geometry(command, &row);
	row.start = in_trace_time(output, times->start);
	row.duration = TS_MAX(ts_ns_sub(times->end, times->start), 0);
	row.queued = in_trace_time(output, times->queued);
	row.submitted = in_trace_time(output, times->submitted);
	row.stream = stream_row(output, command->queue);
	row.device = device_row(output, output->stream->objects[command->queue].device);
	row.correlation = correlation_of(output, index);
	row.process = output->process;
	row.bytes = command->bytes ? (int64_t)command->bytes : TS_ABSENT;
	waits = waits_of(output, index);
	if (waits)
		row.shape = waits_shape(output);
	ts_writer_add(output->writer, TS_TABLE_GPU_OP, &row, waits ? &waits : NULL);
}

static void write_call(struct output *output, uint32_t position)
{
	uint32_t index = output->replay->plan.order[position];
	const struct ts_replay_command_info *command = &output->stream->commands[index];
	const struct ts_replay_times *times = &output->outcome->times[position];
	struct ts_api_call_row row = ts_api_call_none;

	/* Nodes of a graph have one call. */
	if (times->called == TS_ABSENT || times->returned == TS_ABSENT ||
	    (command->graph != TS_REPLAY_NONE && command->graph_first != index))
		return;
	row.start = in_trace_time(output, times->called);
	row.duration = TS_MAX(ts_ns_sub(times->returned, times->called), 0);
	row.thread = output->thread;
	row.name = text(output, command->call ? command->call
					      : ts_enum_name("command_kind", command->kind));
	row.category = text(output, output->replay->options.target->name);
	row.correlation = correlation_of(output, index);
	ts_writer_add(output->writer, TS_TABLE_API_CALL, &row, NULL);
}

/* ---- compared hashes ---- */

static void write_memory(struct output *output, uint32_t object)
{
	const struct ts_replay_object_info *info = &output->stream->objects[object];
	struct ts_object_row row = ts_object_none;
	char details[48];

	if (output->devices[object])
		return;
	output->devices[object] = 1;
	snprintf(details, sizeof(details), "{\"number\":%" PRIu64 "}", info->number);
	row.id = (int64_t)info->number;
	row.process = output->process;
	row.kind = TS_OBJECT_MEMORY;
	row.bytes = (int64_t)info->bytes;
	row.details = text(output, details);
	ts_writer_add(output->writer, TS_TABLE_OBJECT, &row, NULL);
}

/* Time of a check: the end of the command, as far as it is known. */
static int64_t time_of(const struct output *output, uint32_t position)
{
	uint32_t last = TS_MIN(position, output->replay->plan.count - 1);
	const struct ts_replay_times *times = &output->outcome->times[last];

	if (times->end != TS_ABSENT)
		return in_trace_time(output, times->end);
	if (times->returned != TS_ABSENT)
		return in_trace_time(output, times->returned);
	return output->stream->commands[output->replay->plan.order[last]].start_ns;
}

static void write_check(struct output *output, uint32_t capture)
{
	const struct ts_replay *replay = output->replay;
	const struct ts_replay_capture *what = &replay->captures[capture];
	uint32_t last = TS_MIN(what->position, replay->plan.count - 1);
	struct ts_command_row row = ts_command_none;
	char details[80];

	snprintf(details, sizeof(details), "{\"hash\":\"%016" PRIx64 "\",\"why\":\"%s\"}",
		 ts_replay_hash_of(replay, capture), what->why);
	row.start = time_of(output, what->position);
	row.kind = TS_COMMAND_CHECK;
	row.process = output->process;
	row.sequence = (int64_t)output->stream->commands[replay->plan.order[last]].sequence;
	row.bytes = (int64_t)what->range.bytes;
	row.details = text(output, details);
	if (what->range.memory != TS_REPLAY_NONE) {
		write_memory(output, what->range.memory);
		row.object = (int64_t)output->stream->objects[what->range.memory].number;
		row.offset = (int64_t)what->range.offset;
	}
	ts_writer_add(output->writer, TS_TABLE_COMMAND, &row, NULL);
}

static void write_checks(struct output *output)
{
	if (output->replay->options.check == TS_REPLAY_CHECK_NONE || !output->replay->plan.count)
		return;
	for (uint32_t i = 0; i < output->replay->capture_count; i++)
		write_check(output, i);
}

/* ---- all rows ---- */

static void find_shift(struct output *output)
{
	for (uint32_t i = 0; i < output->replay->plan.count; i++) {
		const struct ts_replay_times *times = &output->outcome->times[i];
		int64_t begin = times->called != TS_ABSENT ? times->called : times->start;
		uint32_t index = output->replay->plan.order[i];

		if (begin == TS_ABSENT)
			continue;
		output->shift = ts_ns_sub(output->stream->commands[index].start_ns, begin);
		return;
	}
}

int ts_replay_write_stream(const struct ts_replay *replay, struct ts_writer *writer,
			   const struct ts_replay_outcome *outcome,
			   const struct ts_replay_report *report, struct ts_error *err)
{
	struct output output = {
		.replay = replay, .stream = replay->stream, .outcome = outcome, .writer = writer
	};
	int rc = ts_replay_recorded_load(&output.recorded, replay, err);

	output.devices = calloc(replay->stream->object_count + 1u, sizeof(*output.devices));
	output.streams = calloc(replay->stream->object_count + 1u, sizeof(*output.streams));
	if (!rc && (!output.devices || !output.streams))
		rc = ts_replay_no_memory(err);
	if (!rc) {
		find_shift(&output);
		write_process(&output);
		for (uint32_t i = 0; i < replay->plan.count; i++) {
			write_call(&output, i);
			write_op(&output, i);
		}
		write_checks(&output);
		rc = ts_writer_status(writer, err);
	}
	free(output.devices);
	free(output.streams);
	ts_replay_recorded_release(&output.recorded);
	return rc;
}
