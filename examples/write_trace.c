/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a small trace with the library: a training loop on one thread, and the kernels that it
 * launches on one stream of a GPU. View it with: build/tracesmith view example.sbt
 *
 *	build/examples/write_trace [example.sbt [steps]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/writer.h>

/* Ids that rows refer to. */
struct scene {
	int64_t thread, device, stream;
	uint32_t host_shape, call_shape, kernel_shape;
};

static uint32_t text(struct ts_writer *writer, const char *string)
{
	return ts_writer_string(writer, string, strlen(string));
}

/* Entities: a process with one thread, a device with one stream. */
static void add_entities(struct ts_writer *writer, struct scene *scene)
{
	struct ts_process_row process = ts_process_none;
	struct ts_thread_row thread = ts_thread_none;
	struct ts_device_row device = ts_device_none;
	struct ts_stream_row stream = ts_stream_none;

	process.id = ts_writer_new_id(writer, TS_TABLE_PROCESS);
	process.pid = 4711;
	process.name = text(writer, "trainer");
	ts_writer_add(writer, TS_TABLE_PROCESS, &process, NULL);
	thread.id = scene->thread = ts_writer_new_id(writer, TS_TABLE_THREAD);
	thread.process = process.id;
	thread.tid = 4711;
	thread.name = text(writer, "main");
	ts_writer_add(writer, TS_TABLE_THREAD, &thread, NULL);
	device.id = scene->device = ts_writer_new_id(writer, TS_TABLE_DEVICE);
	device.number = 0;
	device.name = text(writer, "example GPU");
	ts_writer_add(writer, TS_TABLE_DEVICE, &device, NULL);
	stream.id = scene->stream = ts_writer_new_id(writer, TS_TABLE_STREAM);
	stream.device = device.id;
	stream.number = 7;
	ts_writer_add(writer, TS_TABLE_STREAM, &stream, NULL);
}

/* An argument whose value is a column of the row: viewers show it, but it is stored once. */
static struct ts_field column_field(struct ts_writer *writer, const char *key,
				    enum ts_table_id table, size_t position)
{
	return (struct ts_field){ .key = text(writer, key),
				  .type = TS_ARG_COLUMN,
				  .column = ts_table_info(table)->columns[position].id };
}

/* Arguments: keys and types are stored once, values with each row. */
static void add_shapes(struct ts_writer *writer, struct scene *scene)
{
	struct ts_field step[] = {
		{ .key = text(writer, "step"), .type = TS_ARG_INT },
		{ .key = text(writer, "phase"), .type = TS_ARG_STRING },
	};
	struct ts_field call[] = {
		column_field(writer, "correlation", TS_TABLE_API_CALL,
			     TS_COLUMN_OF(api_call, correlation)),
	};
	struct ts_field kernel[] = {
		column_field(writer, "correlation", TS_TABLE_GPU_OP,
			     TS_COLUMN_OF(gpu_op, correlation)),
		{ .key = text(writer, "grid"), .type = TS_ARG_COLUMN, .column = TS_COMPUTED_GRID },
		{ .key = text(writer, "flops"), .type = TS_ARG_INT },
	};

	scene->host_shape = ts_writer_shape(writer, step, 2);
	scene->call_shape = ts_writer_shape(writer, call, 1);
	scene->kernel_shape = ts_writer_shape(writer, kernel, 3);
}

/* Durations that vary realistically, the same in every run. */
static int64_t jitter(int64_t ns)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return ns + (int64_t)(state % (uint64_t)(ns / 8));
}

static void add_step(struct ts_writer *writer, const struct scene *scene, int step)
{
	static const char *const phases[] = { "forward", "backward", "optimizer" };
	static const char *const kernels[] = { "gemm_forward", "gemm_backward", "adam_update" };
	int64_t now = (int64_t)step * 1000000;

	for (int phase = 0; phase < 3; phase++) {
		struct ts_slice_row slice = ts_slice_none;
		struct ts_api_call_row call = ts_api_call_none;
		struct ts_gpu_op_row op = ts_gpu_op_none;
		int64_t host_values[2] = { step, text(writer, phases[phase]) };
		int64_t kernel_values[1] = { 2000000000 + phase };

		slice.start = now + phase * 300000 + jitter(8000);
		slice.duration = jitter(120000);
		slice.thread = scene->thread;
		slice.name = text(writer, phases[phase]);
		slice.category = text(writer, "user_annotation");
		slice.shape = scene->host_shape;
		ts_writer_add(writer, TS_TABLE_SLICE, &slice, host_values);

		/* The correlation joins the launch and its kernel; the arrow shows it. */
		call.start = slice.start + jitter(9000);
		call.duration = jitter(7000);
		call.thread = scene->thread;
		call.name = text(writer, "launch");
		call.category = text(writer, "cuda_runtime");
		call.correlation = step * 3 + phase + 1;
		call.arrow = TS_ARROW_OUT;
		call.shape = scene->call_shape;
		ts_writer_add(writer, TS_TABLE_API_CALL, &call, NULL);

		op.start = slice.start + jitter(20000);
		op.duration = jitter(200000);
		op.device = scene->device;
		op.stream = scene->stream;
		op.kind = TS_GPU_OP_KERNEL;
		op.name = text(writer, kernels[phase]);
		op.category = text(writer, "kernel");
		op.correlation = call.correlation;
		op.arrow = TS_ARROW_IN_ENCLOSING;
		op.grid_x = 64 << phase;
		op.grid_y = op.grid_z = 1;
		op.shape = scene->kernel_shape;
		ts_writer_add(writer, TS_TABLE_GPU_OP, &op, kernel_values);
	}
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "example.sbt";
	int steps = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 100;
	struct ts_writer *writer;
	struct ts_error err;
	struct scene scene;

	if (ts_writer_open(&writer, path, NULL, &err)) {
		fprintf(stderr, "write_trace: %s\n", err.message);
		return 3;
	}
	add_entities(writer, &scene);
	add_shapes(writer, &scene);
	for (int step = 0; step < steps; step++)
		add_step(writer, &scene, step);
	if (ts_writer_finish(writer, &err)) {
		fprintf(stderr, "write_trace: %s\n", err.message);
		ts_writer_close(writer);
		return 3;
	}
	printf("%d steps, %llu bytes: try 'tracesmith view %s'\n", steps,
	       (unsigned long long)ts_writer_bytes(writer), path);
	ts_writer_close(writer);
	return 0;
}
