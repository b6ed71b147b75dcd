/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a trace of itself: launches from an inlined function, below a Python frame; a kernel of a
 * graph, captured in one place and launched in another; and a backward operator with PyTorch's
 * sequence numbers. Native frames are unresolved: their symbols are in this program.
 *
 *	symbol_frames OUT [BUILD_ID]      with another build id than its own
 */
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracesmith/writer.h>

struct program {
	uint64_t bias;
	char build_id[129];
	char path[4096];
};

struct fixture {
	struct ts_writer *writer;
	int64_t process, device, stream, main_thread, other_thread;
	uint32_t mapping;
	int64_t correlation;
};

/* ---- known code addresses ---- */

static inline __attribute__((always_inline)) uint64_t innermost(void)
{
	uint64_t address_here;

#if defined(__x86_64__)
	__asm__ volatile("leaq -1(%%rip), %0" : "=r"(address_here));
#else
	__asm__ volatile("adr %0, ." : "=r"(address_here));
#endif
	return address_here;
}

static inline __attribute__((always_inline)) uint64_t inlined(void)
{
	return innermost();
}

__attribute__((noinline)) static uint64_t launches_kernels(void)
{
	uint64_t address_here = inlined();

	__asm__ volatile("" : "+r"(address_here));
	return address_here;
}

__attribute__((noinline)) static uint64_t launches_graphs(void)
{
	uint64_t address_here = innermost();

	/* Differs from the above: compilers merge equal functions. */
	__asm__ volatile("nop\n\tnop" : "+r"(address_here));
	return address_here;
}

/* ---- this program ---- */

static void find_build_id(struct program *program, const char *notes, size_t bytes)
{
	while (bytes >= 12) {
		uint32_t words[3];
		size_t name, content;

		memcpy(words, notes, sizeof(words));
		name = (words[0] + 3u) & ~3u;
		content = (words[1] + 3u) & ~3u;
		if (12 + name + content > bytes)
			return;
		if (words[2] == NT_GNU_BUILD_ID && words[1] <= 64)
			for (uint32_t i = 0; i < words[1]; i++)
				snprintf(program->build_id + 2 * (size_t)i, 3, "%02x",
					 (unsigned char)notes[12 + name + i]);
		notes += 12 + name + content;
		bytes -= 12 + name + content;
	}
}

static int look(struct dl_phdr_info *info, size_t size, void *context)
{
	struct program *program = context;

	(void)size;
	program->bias = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_NOTE)
			find_build_id(program,
				      (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
				      info->dlpi_phdr[i].p_memsz);
	return 1; /* the first one is the program */
}

static void find_program(struct program *program)
{
	ssize_t length = readlink("/proc/self/exe", program->path, sizeof(program->path) - 1);

	program->path[length > 0 ? length : 0] = '\0';
	dl_iterate_phdr(look, program);
}

/* ---- rows ---- */

static int64_t text(struct fixture *fixture, const char *word)
{
	return ts_writer_string(fixture->writer, word, strlen(word));
}

static int64_t make_thread(struct fixture *fixture, int64_t tid, const char *name)
{
	struct ts_thread_row row = ts_thread_none;

	row.id = ts_writer_new_id(fixture->writer, TS_TABLE_THREAD);
	row.process = fixture->process;
	row.tid = tid;
	row.name = text(fixture, name);
	ts_writer_add(fixture->writer, TS_TABLE_THREAD, &row, NULL);
	return row.id;
}

static void make_entities(struct fixture *fixture, const struct program *program,
			  const char *build_id)
{
	struct ts_process_row process = ts_process_none;
	struct ts_device_row device = ts_device_none;
	struct ts_stream_row stream = ts_stream_none;
	struct ts_mapping_row mapping = ts_mapping_none;

	process.id = fixture->process = ts_writer_new_id(fixture->writer, TS_TABLE_PROCESS);
	process.pid = 100;
	process.name = text(fixture, "train");
	ts_writer_add(fixture->writer, TS_TABLE_PROCESS, &process, NULL);
	fixture->main_thread = make_thread(fixture, 100, "main");
	fixture->other_thread = make_thread(fixture, 101, "autograd");
	device.id = fixture->device = ts_writer_new_id(fixture->writer, TS_TABLE_DEVICE);
	device.number = 0;
	ts_writer_add(fixture->writer, TS_TABLE_DEVICE, &device, NULL);
	stream.id = fixture->stream = ts_writer_new_id(fixture->writer, TS_TABLE_STREAM);
	stream.device = fixture->device;
	stream.number = 7;
	ts_writer_add(fixture->writer, TS_TABLE_STREAM, &stream, NULL);
	mapping.process = fixture->process;
	mapping.path = text(fixture, program->path);
	mapping.build_id = text(fixture, build_id);
	ts_writer_add(fixture->writer, TS_TABLE_MAPPING, &mapping, NULL);
	fixture->mapping = 1;
}

static uint32_t add_native(struct fixture *fixture, uint32_t caller, uint64_t pc)
{
	struct ts_frame_row frame = ts_frame_none;

	frame.kind = TS_FRAME_NATIVE;
	frame.mapping = fixture->mapping;
	frame.pc = (int64_t)pc;
	return ts_writer_stack(fixture->writer, caller, ts_writer_frame(fixture->writer, &frame));
}

static uint32_t add_python(struct fixture *fixture, uint32_t caller, const char *name, int64_t line)
{
	struct ts_frame_row frame = ts_frame_none;

	frame.kind = TS_FRAME_PYTHON;
	frame.name = text(fixture, name);
	frame.file = text(fixture, "/home/user/train.py");
	frame.line = line;
	return ts_writer_stack(fixture->writer, caller, ts_writer_frame(fixture->writer, &frame));
}

static void add_slice(struct fixture *fixture, int64_t thread, const char *name, int64_t start,
		      int64_t end)
{
	struct ts_slice_row row = ts_slice_none;

	row.start = start;
	row.duration = end - start;
	row.thread = thread;
	row.name = text(fixture, name);
	row.category = text(fixture, "nvtx");
	ts_writer_add(fixture->writer, TS_TABLE_SLICE, &row, NULL);
}

static void add_call(struct fixture *fixture, int64_t thread, const char *name, int64_t start,
		     uint32_t stack)
{
	struct ts_api_call_row row = ts_api_call_none;

	row.start = start;
	row.duration = 5000;
	row.thread = thread;
	row.name = text(fixture, name);
	row.category = text(fixture, "cuda_driver");
	row.correlation = ++fixture->correlation;
	row.stack = stack;
	ts_writer_add(fixture->writer, TS_TABLE_API_CALL, &row, NULL);
}

/* Of the last call. */
static void add_kernel(struct fixture *fixture, const char *name, int64_t start, int64_t duration,
		       uint32_t stack)
{
	struct ts_gpu_op_row row = ts_gpu_op_none;

	row.start = start;
	row.duration = duration;
	row.device = fixture->device;
	row.stream = fixture->stream;
	row.process = fixture->process;
	row.kind = TS_GPU_OP_KERNEL;
	row.name = text(fixture, name);
	row.category = text(fixture, "kernel");
	row.correlation = fixture->correlation;
	row.stack = stack;
	if (stack) {
		row.graph = 1;
		row.graph_node = 3;
	}
	ts_writer_add(fixture->writer, TS_TABLE_GPU_OP, &row, NULL);
}

static void make_events(struct fixture *fixture, const struct program *program)
{
	uint32_t script = add_python(fixture, 0, "<module>", 3);
	uint32_t step = add_python(fixture, script, "step", 12);
	uint32_t kernels = add_native(fixture, step, launches_kernels() - program->bias);
	uint32_t graphs = add_native(fixture, script, launches_graphs() - program->bias);

	add_slice(fixture, fixture->main_thread, "aten::linear, seq = 7, op_id = 1", 10000, 60000);
	add_slice(fixture, fixture->main_thread, "aten::addmm, seq = 7, op_id = 2", 20000, 50000);
	add_call(fixture, fixture->main_thread, "cuLaunchKernel", 30000, kernels);
	add_kernel(fixture, "gemm_forward", 100000, 40000, 0);
	add_slice(fixture, fixture->other_thread, "AddmmBackward0, seq = 7, op_id = 3", 200000,
		  300000);
	add_slice(fixture, fixture->other_thread, "aten::mm, seq = 8, op_id = 4", 210000, 290000);
	add_call(fixture, fixture->other_thread, "cuLaunchKernel", 220000, 0);
	add_kernel(fixture, "gemm_backward", 310000, 60000, 0);
	add_call(fixture, fixture->main_thread, "cuGraphLaunch", 400000, graphs);
	add_kernel(fixture, "captured_kernel", 410000, 20000, kernels);
}

int main(int argc, char **argv)
{
	struct program program = { 0 };
	struct fixture fixture = { 0 };
	struct ts_error err;
	int rc;

	if (argc < 2)
		return 2;
	find_program(&program);
	rc = ts_writer_open(&fixture.writer, argv[1], NULL, &err);
	if (!rc) {
		make_entities(&fixture, &program, argc > 2 ? argv[2] : program.build_id);
		make_events(&fixture, &program);
		rc = ts_writer_finish(fixture.writer, &err);
	}
	ts_writer_close(fixture.writer);
	if (rc)
		fprintf(stderr, "%s\n", err.message);
	else
		puts(program.build_id);
	return rc ? 1 : 0;
}
