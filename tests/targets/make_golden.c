/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_golden OUT [SLICES [PARTS]]: writes a small trace with rows in every table, every type of
 * argument, several clocks and extreme values. It wrote tests/golden/v1.sbt; with fewer parts
 * (letters, see write_tables()) it writes seeds for the fuzzer. The content is fixed; changes are
 * for the golden file of a later format version.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/writer.h>

static struct ts_writer *writer;
static int slices = 1200;

static int64_t text(const char *string)
{
	return ts_writer_string(writer, string, strlen(string));
}

static void add(enum ts_table_id table, const void *row, const int64_t *values)
{
	ts_writer_add(writer, table, row, values);
}

static int64_t double_bits(double real)
{
	int64_t bits;

	memcpy(&bits, &real, sizeof(bits));
	return bits;
}

/* Noise below 2^bits, uniform over magnitudes like times; the same in every run. */
static int64_t spread(unsigned int bits)
{
	static uint64_t state = 1;

	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (int64_t)(state >> 33 >> (31 - state % bits));
}

/* ---- processes, threads, devices ---- */

static void add_sources(void)
{
	struct ts_source_row source = ts_source_none;
	struct ts_host_row host = ts_host_none;

	source.id = ts_writer_new_id(writer, TS_TABLE_SOURCE);
	source.name = text("rank0.json");
	source.format = text("kineto");
	source.rank = 0;
	source.world_size = 2;
	source.clock = 1;
	add(TS_TABLE_SOURCE, &source, NULL);
	source = ts_source_none;
	source.id = ts_writer_new_id(writer, TS_TABLE_SOURCE);
	source.name = text("recording");
	source.format = text("tracesmith");
	source.clock = 2;
	add(TS_TABLE_SOURCE, &source, NULL);

	host.id = ts_writer_new_id(writer, TS_TABLE_HOST);
	host.name = text("node-1");
	host.boot_id = text("2f4e1c9a-0000-4000-8000-000000000001");
	host.system = text("Linux 6.1");
	host.processors = 64;
	host.memory_bytes = INT64_C(549755813888);
	add(TS_TABLE_HOST, &host, NULL);
}

static void add_processes(void)
{
	struct ts_process_row process = ts_process_none;
	struct ts_thread_row thread = ts_thread_none;

	process.id = ts_writer_new_id(writer, TS_TABLE_PROCESS);
	process.source = 1;
	process.pid = 4242;
	add(TS_TABLE_PROCESS, &process, NULL);
	/* The same id again: this row counts. */
	process.host = 1;
	process.name = text("python");
	process.labels = text("CPU");
	process.sort_index = -5;
	process.command = text("[\"python\",\"train.py\",\"--lr\",\"0.1\"]");
	process.start = -1000;
	process.end = INT64_C(900000000);
	process.exit_status = 0;
	add(TS_TABLE_PROCESS, &process, NULL);
	process = ts_process_none;
	process.id = ts_writer_new_id(writer, TS_TABLE_PROCESS);
	process.source = 2;
	process.parent = 1;
	process.pid_text = text("Spans");
	add(TS_TABLE_PROCESS, &process, NULL);

	thread.id = ts_writer_new_id(writer, TS_TABLE_THREAD);
	thread.process = 1;
	thread.tid = 4242;
	thread.name = text("thread 4242 (python)");
	thread.sort_index = 1;
	add(TS_TABLE_THREAD, &thread, NULL);
	thread = ts_thread_none;
	thread.id = ts_writer_new_id(writer, TS_TABLE_THREAD);
	thread.process = 2;
	thread.tid_text = text("PyTorch Profiler \"0\"");
	add(TS_TABLE_THREAD, &thread, NULL);
	thread = ts_thread_none;
	thread.id = ts_writer_new_id(writer, TS_TABLE_THREAD);
	thread.process = 1;
	thread.tid = 7;
	thread.name = text("stream 7");
	add(TS_TABLE_THREAD, &thread, NULL);
}

static void add_devices(void)
{
	struct ts_device_row device = ts_device_none;
	struct ts_stream_row stream = ts_stream_none;

	device.id = ts_writer_new_id(writer, TS_TABLE_DEVICE);
	device.source = 1;
	device.host = 1;
	device.number = 0;
	device.name = text("Example Accelerator");
	device.vendor = text("Example");
	device.uuid = text("GPU-00000000-0000-0000-0000-000000000000");
	device.memory_bytes = INT64_C(85899345920);
	device.properties = text("{\"id\":0,\"numSms\":132,\"ratio\":0.5}");
	add(TS_TABLE_DEVICE, &device, NULL);
	stream.id = ts_writer_new_id(writer, TS_TABLE_STREAM);
	stream.device = 1;
	stream.number = 7;
	stream.name = text("stream 7");
	stream.priority = -1;
	stream.thread = 3;
	add(TS_TABLE_STREAM, &stream, NULL);
	stream = ts_stream_none;
	stream.id = ts_writer_new_id(writer, TS_TABLE_STREAM);
	stream.device = 1;
	stream.number = 20;
	add(TS_TABLE_STREAM, &stream, NULL);
}

/* ---- clocks: 0 is trace time, 1 has an offset, 2 drifts and was aligned twice ---- */

static void add_clock_sync(int64_t clock, int64_t time, int64_t reference, int64_t generation)
{
	struct ts_clock_sync_row sync = ts_clock_sync_none;

	sync.clock = clock;
	sync.time = time;
	sync.reference = reference;
	sync.uncertainty_ns = 25;
	sync.method = text("golden");
	sync.generation = generation;
	add(TS_TABLE_CLOCK_SYNC, &sync, NULL);
}

static void add_clocks(void)
{
	add_clock_sync(1, 0, INT64_C(1000000), 0);
	add_clock_sync(2, 0, 0, 0);
	add_clock_sync(2, INT64_C(1000000000), INT64_C(1000000000), 0);
	add_clock_sync(2, 0, 500, 1);
	add_clock_sync(2, INT64_C(1000000000), INT64_C(1000010500), 1);
}

/* ---- stacks ---- */

static int64_t add_stacks(void)
{
	struct ts_mapping_row mapping = ts_mapping_none;
	struct ts_frame_row frame = ts_frame_none;
	struct ts_symbol_row symbol = ts_symbol_none;
	uint32_t stack, native;

	mapping.process = 1;
	mapping.path = text("/usr/lib/libexample.so.1");
	mapping.build_id = text("0123456789abcdef");
	mapping.address = INT64_C(0x7f0000000000);
	mapping.bytes = 1 << 20;
	mapping.file_offset = 4096;
	mapping.mapped = 5;
	mapping.unmapped = INT64_C(800000000);
	add(TS_TABLE_MAPPING, &mapping, NULL);

	frame.name = text("main");
	frame.file = text("train.py");
	frame.line = 12;
	frame.column = 4;
	frame.kind = TS_FRAME_PYTHON;
	stack = ts_writer_stack(writer, 0, ts_writer_frame(writer, &frame));
	frame = ts_frame_none;
	frame.mapping = 1;
	frame.pc = 0x1234;
	frame.kind = TS_FRAME_NATIVE;
	frame.category = text("native");
	native = ts_writer_frame(writer, &frame);
	stack = ts_writer_stack(writer, stack, native);

	symbol.frame = native;
	symbol.name = text("launch(int, float*)");
	symbol.file = text("launch.cpp");
	symbol.line = 99;
	add(TS_TABLE_SYMBOL, &symbol, NULL);
	symbol.depth = 1;
	symbol.name = text("outer()");
	symbol.line = TS_ABSENT;
	add(TS_TABLE_SYMBOL, &symbol, NULL);
	return stack;
}

/* ---- events ---- */

static void add_slices(int64_t stack)
{
	struct ts_field fields[] = {
		{ .key = (uint32_t)text("External id"), .type = TS_ARG_INT },
		{ .key = (uint32_t)text("ratio"), .type = TS_ARG_DOUBLE },
		{ .key = (uint32_t)text("note \"\\\n\x01"), .type = TS_ARG_STRING },
		{ .key = (uint32_t)text("flag"), .type = TS_ARG_BOOL },
		{ .key = (uint32_t)text("Input Dims"), .type = TS_ARG_JSON },
		{ .key = (uint32_t)text("nothing"), .type = TS_ARG_NULL },
		{ .key = (uint32_t)text("External id"), .type = TS_ARG_INT },
		{ .key = (uint32_t)text("tts"), .type = TS_ARG_INT, .beside = 1 },
	};
	uint32_t shape = ts_writer_shape(writer, fields, 8),
		 one = ts_writer_shape(writer, fields, 1);
	int64_t time = 0;

	for (int i = 0; i < slices; i++) {
		static const double ratios[] = { 0.0, -0.0, 0.1, 1e300, 5e-324, 12345.678 };
		static const char *const notes[] = { "", "odd", "gr\xc3\xbc\xc3\x9f",
						     "\xf0\x9f\x9a\x80" };
		struct ts_slice_row slice = ts_slice_none;
		char name[32];
		int64_t values[7] = { i,
				      double_bits(ratios[i % 6]),
				      text(notes[i % 4]),
				      i % 3 == 0,
				      text(i % 2 ? "[[2,3],[]]" : "{\"a\":[1,2.5,null]}"),
				      INT64_MAX - i,
				      -i };

		snprintf(name, sizeof(name), "aten::op_%d", i % 17);
		time += spread(20) + 20;
		slice.start = time - (i % 5 == 4 ? 300 : 0);
		slice.duration = i == 3 ? -1 : i == 4 ? INT64_C(5000000) : spread(24);
		slice.thread = 1 + i % 2;
		slice.name = text(name);
		slice.category = text(i % 4 ? "cpu_op" : "user_annotation");
		slice.stack = i % 6 ? 0 : stack;
		slice.shape = i % 3 == 0 ? shape : i % 3 == 1 ? one : 0;
		if (i % 50 == 10) {
			slice.kind = TS_SLICE_ASYNC;
			slice.id = text(i % 100 == 10 ? "\"0x1f\"" : "{\"local\":\"0x2\"}");
		}
		add(TS_TABLE_SLICE, &slice, values);
	}
}

static void add_gpu_ops(int64_t stack)
{
	struct ts_field fields[] = {
		{ .key = (uint32_t)text("correlation"), .type = TS_ARG_COLUMN, .column = 8 },
		{ .key = (uint32_t)text("grid"),
		  .type = TS_ARG_COLUMN,
		  .column = TS_COMPUTED_GRID },
		{ .key = (uint32_t)text("block"),
		  .type = TS_ARG_COLUMN,
		  .column = TS_COMPUTED_BLOCK },
		{ .key = (uint32_t)text("device"),
		  .type = TS_ARG_COLUMN,
		  .column = TS_COMPUTED_DEVICE },
		{ .key = (uint32_t)text("stream"),
		  .type = TS_ARG_COLUMN,
		  .column = TS_COMPUTED_STREAM },
		{ .key = (uint32_t)text("warps per SM"), .type = TS_ARG_DOUBLE },
	};
	uint32_t shape = ts_writer_shape(writer, fields, 6);
	struct ts_field call_field = { .key = (uint32_t)text("correlation"),
				       .type = TS_ARG_COLUMN,
				       .column = 6 };
	uint32_t call_shape = ts_writer_shape(writer, &call_field, 1);

	for (int i = 0; i < 6; i++) {
		struct ts_api_call_row call = ts_api_call_none;
		struct ts_gpu_op_row op = ts_gpu_op_none;
		int64_t warps = double_bits(0.25 * i);

		call.start = 2000 + i * 300;
		call.duration = 90 + i;
		call.thread = 1;
		call.name = text(i % 2 ? "cudaMemcpyAsync" : "cudaLaunchKernel");
		call.category = text("cuda_runtime");
		call.correlation = 100 + i;
		call.result = i == 5 ? 700 : 0;
		call.arrow = TS_ARROW_OUT;
		call.stack = i ? 0 : stack;
		call.shape = call_shape;
		add(TS_TABLE_API_CALL, &call, NULL);

		op.start = 2500 + i * 310;
		op.duration = 200 - i;
		op.device = 1;
		op.stream = 1 + i % 2;
		op.kind = i % 2 ? TS_GPU_OP_COPY : i == 4 ? TS_GPU_OP_COLLECTIVE : TS_GPU_OP_KERNEL;
		op.name = text(i % 2 ? "Memcpy HtoD (Pageable -> Device)"
				     : "void gemm<float>(float*)");
		op.category = text(i % 2 ? "gpu_memcpy" : "kernel");
		op.correlation = 100 + i;
		op.context = 1;
		op.queued = 2100 + i * 300;
		op.submitted = i == 2 ? TS_ABSENT : 2200 + i * 300;
		op.grid_x = 128;
		op.grid_y = i;
		op.grid_z = 1;
		op.block_x = 256;
		op.block_y = op.block_z = 1;
		op.registers = 32;
		op.shared_bytes = 4096 * i;
		op.bytes = i % 2 ? 1 << 20 : TS_ABSENT;
		op.copy_kind = i % 2 ? TS_COPY_HOST_TO_DEVICE : TS_COPY_UNKNOWN;
		op.process = 1;
		op.arrow = i % 2 ? TS_ARROW_IN : TS_ARROW_IN_ENCLOSING;
		op.shape = shape;
		add(TS_TABLE_GPU_OP, &op, &warps);
	}
}

static void add_instants(int64_t stack)
{
	struct ts_field series[] = {
		{ .key = (uint32_t)text("used"), .type = TS_ARG_INT },
		{ .key = (uint32_t)text("free"), .type = TS_ARG_DOUBLE },
	};
	uint32_t shape = ts_writer_shape(writer, series, 2);

	for (int i = 0; i < 5; i++) {
		int64_t values[2] = { i * 1000, double_bits(1.5 * i) };
		struct ts_counter_row counter = ts_counter_none;
		struct ts_mark_row mark = ts_mark_none;
		struct ts_sample_row sample = ts_sample_none;
		struct ts_flow_row flow = ts_flow_none;

		counter.start = i * 500;
		counter.thread = 1;
		counter.device = i % 2;
		counter.name = text("memory");
		counter.category = text("metrics");
		counter.id = i == 4 ? text("7") : 0;
		counter.shape = shape;
		add(TS_TABLE_COUNTER, &counter, values);
		mark.start = i == 4 ? INT64_C(4611686018427387904) : i * 400 - 800;
		mark.thread = 2;
		mark.name = i ? text("instant") : 0;
		mark.category = text("marks");
		mark.scope = i % 4;
		mark.phase = i == 3 ? text("n") : 0;
		mark.id = i == 3 ? text("\"0xabc\"") : 0;
		mark.stack = i ? 0 : stack;
		add(TS_TABLE_MARK, &mark, NULL);
		sample.start = i * 10000;
		sample.thread = 1;
		sample.stack = stack ? stack - i % 2 : 0;
		sample.weight = i + 1;
		sample.cpu = i == 2 ? TS_ABSENT : i;
		sample.name = text("cycles:u");
		sample.state = text(i % 2 ? "running" : "idle");
		add(TS_TABLE_SAMPLE, &sample, NULL);
		flow.start = 2000 + i * 200;
		flow.thread = 1;
		flow.kind = i % 3;
		flow.enclosing = i == 2;
		flow.id = i == 4 ? TS_ABSENT : 100;
		flow.id_json = i == 4 ? text("\"0x64\"") : 0;
		flow.name = text("fwdbwd");
		flow.category = text("fwdbwd");
		add(TS_TABLE_FLOW, &flow, NULL);
	}
}

static void add_torch(void)
{
	struct ts_window_row window = ts_window_none;
	struct ts_torch_trace_row torch = ts_torch_trace_none;
	struct ts_tensor_row tensor = ts_tensor_none;
	struct ts_allocation_row allocation = ts_allocation_none;

	window.start = 0;
	window.duration = INT64_C(600000);
	window.process = 1;
	window.name = text("steps");
	window.opened_by = text("steps:3-5");
	window.closed_by = text("end");
	window.first_step = 3;
	window.last_step = 5;
	add(TS_TABLE_WINDOW, &window, NULL);
	for (int i = 0; i < 3; i++) {
		torch.start = 100 + i * 1000;
		torch.process = 1;
		torch.thread = 1;
		torch.step = 3;
		torch.seq = i;
		torch.module = text(i ? "model.layer1" : "model");
		torch.stage = 1 + i;
		torch.allocated = 12.5 + i;
		torch.max_allocated = 99.0;
		torch.cached = 128.0;
		torch.duration = 0.001 * i;
		add(TS_TABLE_TORCH_TRACE, &torch, NULL);
	}
	tensor.start = 150;
	tensor.thread = 1;
	tensor.name = text("weight");
	tensor.type = text("float32");
	tensor.dimensions = text("[3,224,224]");
	tensor.strides = text("[50176,224,1]");
	tensor.device = 1;
	tensor.address = INT64_C(0x7fffdeadbeef);
	tensor.bytes = 602112;
	tensor.blob = 1;
	add(TS_TABLE_TENSOR, &tensor, NULL);
	for (int i = 0; i < 2; i++) {
		allocation.start = 50 + i * 5000;
		allocation.thread = 1;
		allocation.device = 1;
		allocation.stream = 1;
		allocation.kind = i;
		allocation.address = INT64_C(0x7fffdeadbeef);
		allocation.bytes = 602112;
		allocation.pool = text("caching");
		allocation.total_bytes = 602112 - i * 602112;
		allocation.reserved_bytes = 2 << 20;
		add(TS_TABLE_ALLOCATION, &allocation, NULL);
	}
}

/* ---- command stream and metadata ---- */

static void add_commands(void)
{
	struct ts_object_row object = ts_object_none;
	struct ts_command_row command = ts_command_none;

	if (!ts_writer_blob(writer, "\0\1\2\xff golden", 11) || !ts_writer_blob(writer, "", 0))
		return;
	object.id = ts_writer_new_id(writer, TS_TABLE_OBJECT);
	object.process = 1;
	object.kind = TS_OBJECT_STREAM;
	object.name = text("stream 7");
	object.address = 0x5555;
	object.created = 10;
	object.destroyed = 20000;
	object.details = text("{\"flags\":1}");
	add(TS_TABLE_OBJECT, &object, NULL);
	object = ts_object_none;
	object.id = ts_writer_new_id(writer, TS_TABLE_OBJECT);
	object.process = 1;
	object.kind = TS_OBJECT_MEMORY;
	object.parent = 1;
	object.bytes = 602112;
	object.blob = 1;
	add(TS_TABLE_OBJECT, &object, NULL);
	for (int i = 1; i <= 3; i++) {
		command.start = 1000 + i;
		command.sequence = i;
		command.queue = 1;
		command.kind = i == 1   ? TS_COMMAND_ALLOC
			       : i == 2 ? TS_COMMAND_LAUNCH
					: TS_COMMAND_COPY;
		command.object = 2;
		command.offset = i * 64;
		command.other = i == 3 ? 2 : 0;
		command.other_offset = i == 3 ? 0 : TS_ABSENT;
		command.bytes = 4096;
		command.blob = i == 2 ? 1 : 0;
		command.correlation = 99 + i;
		command.thread = 1;
		command.details = text("{\"reads\":[2],\"writes\":\"unknown\"}");
		add(TS_TABLE_COMMAND, &command, NULL);
	}
}

static void add_facts(void)
{
	struct ts_loss_row loss = ts_loss_none;
	struct ts_meta_row meta = ts_meta_none;

	loss.start = 100;
	loss.duration = 50;
	loss.source = 1;
	loss.process = 1;
	loss.thread = 1;
	loss.what = text("slice");
	loss.count = 12;
	loss.reason = text("ring was full");
	add(TS_TABLE_LOSS, &loss, NULL);
	loss = ts_loss_none;
	loss.start = 0;
	loss.what = text("events");
	add(TS_TABLE_LOSS, &loss, NULL);
	meta.source = 1;
	meta.key = text("schemaVersion");
	meta.value = text("1");
	add(TS_TABLE_META, &meta, NULL);
	meta.source = 0;
	meta.process = 1;
	meta.thread = 1;
	meta.key = text("with \"quotes\"");
	meta.value = text("{\"nested\":[true,false,null,\"text\"]}");
	add(TS_TABLE_META, &meta, NULL);
}

/* The parts; clock 0, then 1, then 2, since each has its own chunks. */
static void write_tables(const char *tables)
{
	int64_t stack = 0;

	if (strchr(tables, 'p')) {
		add_sources();
		add_processes();
		add_devices();
	}
	if (strchr(tables, 'c'))
		add_clocks();
	if (strchr(tables, 'k'))
		stack = add_stacks();
	if (strchr(tables, 'o'))
		add_commands();
	if (strchr(tables, 'f'))
		add_facts();
	if (strchr(tables, 't'))
		add_torch();
	ts_writer_set_clock(writer, 1);
	if (slices)
		add_slices(stack);
	if (strchr(tables, 'g'))
		add_gpu_ops(stack);
	ts_writer_set_clock(writer, 2);
	if (strchr(tables, 'i'))
		add_instants(stack);
}

int main(int argc, char **argv)
{
	struct ts_writer_options options = { .size = sizeof(options),
					     .threads = -1,
					     .chunk_rows = 1024 };
	struct ts_error err;

	if (argc < 2) {
		fputs("usage: make_golden OUT [SLICES [PARTS]]\n", stderr);
		return 2;
	}
	if (argc > 2)
		slices = (int)strtol(argv[2], NULL, 10);
	if (ts_writer_open(&writer, argv[1], &options, &err)) {
		fprintf(stderr, "make_golden: %s\n", err.message);
		return 1;
	}
	write_tables(argc > 3 ? argv[3] : "pckoftgi");
	if (ts_writer_finish(writer, &err)) {
		fprintf(stderr, "make_golden: %s\n", err.message);
		ts_writer_close(writer);
		return 1;
	}
	ts_writer_close(writer);
	return 0;
}
