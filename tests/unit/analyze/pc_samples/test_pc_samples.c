/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hottest instructions of handwritten traces: what is counted, which launches are selected, and
 * malformed rows.
 */
#include "analyze/pc_samples/pc_samples.h"

#include <stdio.h>
#include <unistd.h>

#include <tracesmith/writer.h>

#include "unit/runner.h"

static char path[64];
static struct ts_writer *writer;
static int64_t now;

static uint32_t text(const char *string)
{
	return ts_writer_string(writer, string, strlen(string));
}

static void start(void)
{
	struct ts_writer_options options = { .size = sizeof(options), .threads = -1 };

	snprintf(path, sizeof(path), "/tmp/tracesmith-hot-%d.sbt", (int)getpid());
	TS_CHECK_INT(ts_writer_open(&writer, path, &options, NULL), 0);
}

static struct ts_reader *finish(void)
{
	struct ts_reader *reader = NULL;

	TS_CHECK_INT(ts_writer_finish(writer, NULL), 0);
	ts_writer_close(writer);
	TS_CHECK_INT(ts_reader_open(&reader, path, NULL), 0);
	unlink(path);
	return reader;
}

static uint32_t instruction(const char *function, const char *module, int64_t offset)
{
	struct ts_frame_row frame = ts_frame_none;

	frame.kind = TS_FRAME_INSTRUCTION;
	frame.name = text(function);
	frame.file = text(module);
	frame.pc = offset;
	return ts_writer_stack(writer, 0, ts_writer_frame(writer, &frame));
}

static void sample(uint32_t stack, const char *state, int64_t weight)
{
	struct ts_sample_row row = ts_sample_none;

	row.start = ++now;
	row.stack = stack;
	row.weight = weight;
	row.name = text("pc");
	row.state = text(state);
	ts_writer_add(writer, TS_TABLE_SAMPLE, &row, NULL);
}

/* A sample with a known launch, after an argument that means nothing and one without a value. */
static void sample_of(uint32_t stack, int64_t correlation, int64_t weight)
{
	struct ts_field fields[] = { { .key = text("none"), .type = TS_ARG_NULL },
				     { .key = text("other"), .type = TS_ARG_INT },
				     { .key = text("correlation"), .type = TS_ARG_INT } };
	int64_t values[] = { 12345, correlation };
	struct ts_sample_row row = ts_sample_none;

	row.start = ++now;
	row.stack = stack;
	row.weight = weight;
	row.state = text("wait");
	row.shape = ts_writer_shape(writer, fields, 3);
	ts_writer_add(writer, TS_TABLE_SAMPLE, &row, values);
}

static uint32_t host_stack(const char *function)
{
	struct ts_frame_row frame = ts_frame_none;

	frame.kind = TS_FRAME_NATIVE;
	frame.name = text(function);
	return ts_writer_stack(writer, 0, ts_writer_frame(writer, &frame));
}

static void launch(const char *kernel, int64_t correlation, int64_t duration, uint32_t call_stack,
		   uint32_t command_stack)
{
	struct ts_api_call_row call = ts_api_call_none;
	struct ts_gpu_op_row op = ts_gpu_op_none;

	call.start = op.start = ++now;
	call.correlation = op.correlation = correlation;
	call.stack = call_stack;
	op.stack = command_stack;
	op.duration = duration;
	op.name = text(kernel);
	ts_writer_add(writer, TS_TABLE_API_CALL, &call, NULL);
	ts_writer_add(writer, TS_TABLE_GPU_OP, &op, NULL);
}

static struct ts_pc_samples *query(struct ts_reader *reader, const char *name)
{
	struct ts_pc_samples *hot = NULL;
	struct ts_error err;

	if (ts_pc_samples_new(&hot, reader, name, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	return hot;
}

TS_TEST(counts)
{
	struct ts_reader *reader;
	struct ts_pc_samples *hot;

	start();
	sample(instruction("gemm", "a", 16), "wait", 5);
	sample(instruction("gemm", "a", 16), "stall", 7);
	sample(instruction("gemm", "a", 32), "wait", 100);
	sample(instruction("gemm", "a", 16), "wait", 6);
	/* The same name in another module is another kernel. */
	sample(instruction("gemm", "b", 16), "wait", 50);
	/* A meaningless weight counts once. */
	sample(instruction("gemm", "a", 48), "wait", TS_ABSENT);
	sample(instruction("gemm", "a", 48), "wait", -7);
	sample(host_stack("gemm"), "wait", 1000);
	reader = finish();
	hot = query(reader, "gemm");
	TS_CHECK_INT(hot->kernel_count, 2);
	TS_CHECK_STR(hot->kernels[0].module, "a");
	TS_CHECK_INT(hot->kernels[0].samples, 120);
	TS_CHECK_INT(hot->kernels[1].samples, 50);
	TS_CHECK_INT(hot->instruction_count, 3);
	TS_CHECK_INT(hot->instructions[0].offset, 32);
	TS_CHECK_INT(hot->instructions[1].offset, 16);
	TS_CHECK_INT(hot->instructions[1].samples, 18);
	TS_CHECK_INT(hot->instructions[1].reason_count, 2);
	TS_CHECK_STR(hot->why[hot->instructions[1].first_reason].name, "wait");
	TS_CHECK_INT(hot->why[hot->instructions[1].first_reason].samples, 11);
	TS_CHECK_INT(hot->instructions[2].samples, 2);
	TS_CHECK_INT(hot->reason_count, 2);
	TS_CHECK_STR(hot->reasons[0].name, "wait");
	TS_CHECK_INT(hot->reasons[0].samples, 113);
	TS_CHECK(!hot->is_exact);
	TS_CHECK_INT(hot->launch_count, 0);
	ts_pc_samples_free(hot);
	ts_reader_close(reader);
}

TS_TEST(which_kernel)
{
	struct ts_error err;
	struct ts_reader *reader;
	struct ts_pc_samples *hot;

	start();
	sample(instruction("f(float*)", "a", 0), "wait", 1);
	sample(instruction("f(float*)::part", "a", 0), "wait", 9);
	sample(instruction("other", "a", 0), "wait", 5);
	reader = finish();
	/* An exact name takes precedence over its meaning as a glob or as a substring. */
	hot = query(reader, "f(float*)");
	TS_CHECK_INT(hot->kernel_count, 1);
	TS_CHECK_INT(hot->kernels[0].samples, 1);
	ts_pc_samples_free(hot);
	hot = query(reader, "f*");
	TS_CHECK_INT(hot->kernel_count, 2);
	TS_CHECK_STR(hot->kernels[0].name, "f(float*)::part");
	ts_pc_samples_free(hot);
	hot = query(reader, "t");
	TS_CHECK_INT(hot->kernel_count, 3);
	ts_pc_samples_free(hot);
	TS_CHECK_INT(ts_pc_samples_new(&hot, reader, "nothing", &err), TS_ENOTFOUND);
	TS_CHECK_STR(
		err.message,
		"no sampled kernel has the name 'nothing'; 3 kernels were sampled, the hottest "
		"is 'f(float*)::part'");
	ts_reader_close(reader);
}

TS_TEST(candidates)
{
	uint32_t often, seldom, captured;
	struct ts_reader *reader;
	struct ts_pc_samples *hot;

	start();
	often = host_stack("often");
	seldom = host_stack("seldom");
	captured = host_stack("captured");
	sample(instruction("gemm", "a", 0), "wait", 10);
	launch("gemm", 1, 100, often, 0);
	launch("gemm", 2, 100, often, 0);
	launch("gemm", 3, 150, seldom, 0);
	launch("other", 4, 10000, seldom, 0);
	/* A graph's launch: the stack of its capture. */
	launch("gemm", 5, 50, often, captured);
	launch("gemm", 5, 50, often, captured);
	launch("gemm", TS_ABSENT, 10, often, 0);
	reader = finish();
	hot = query(reader, "gemm");
	TS_CHECK(!hot->is_exact);
	TS_CHECK_INT(hot->launch_count, 4);
	TS_CHECK_INT(hot->launches[0].stack, often);
	TS_CHECK_INT(hot->launches[0].launches, 2);
	TS_CHECK_INT(hot->launches[0].device_ns, 200);
	TS_CHECK_INT(hot->launches[1].stack, seldom);
	TS_CHECK_INT(hot->launches[2].stack, captured);
	TS_CHECK_INT(hot->launches[2].launches, 2);
	TS_CHECK_INT(hot->launches[3].stack, 0);
	ts_pc_samples_free(hot);
	ts_reader_close(reader);
}

TS_TEST(exact)
{
	uint32_t often, seldom;
	struct ts_reader *reader;
	struct ts_pc_samples *hot;

	start();
	often = host_stack("often");
	seldom = host_stack("seldom");
	launch("gemm", 1, 1000, often, 0);
	launch("gemm", 2, 1000, often, 0);
	launch("gemm", 3, 1, seldom, 0);
	sample_of(instruction("gemm", "a", 0), 1, 10);
	sample_of(instruction("gemm", "a", 0), 3, 90);
	sample_of(instruction("gemm", "a", 16), 2, 5);
	sample_of(instruction("other", "a", 16), 2, 5000);
	reader = finish();
	hot = query(reader, "gemm");
	TS_CHECK(hot->is_exact);
	TS_CHECK_INT(hot->launch_count, 2);
	TS_CHECK_INT(hot->launches[0].stack, seldom);
	TS_CHECK_INT(hot->launches[0].samples, 90);
	TS_CHECK_INT(hot->launches[1].samples, 15);
	ts_pc_samples_free(hot);
	ts_reader_close(reader);
}

/* A graph launch is one call: its commands share the samples, and each sample is counted once. */
TS_TEST(exact_of_graphs)
{
	uint32_t first, second;
	struct ts_reader *reader;
	struct ts_pc_samples *hot;

	start();
	first = host_stack("first");
	second = host_stack("second");
	launch("gemm", 7, 100, 0, first);
	launch("gemm", 7, 100, 0, first);
	launch("gemm", 7, 100, 0, second);
	sample_of(instruction("gemm", "a", 0), 7, 10);
	reader = finish();
	hot = query(reader, "gemm");
	TS_CHECK(hot->is_exact);
	TS_CHECK_INT(hot->launch_count, 2);
	TS_CHECK_INT(hot->launches[0].stack, first);
	TS_CHECK_INT(hot->launches[0].samples, 7);
	TS_CHECK_INT(hot->launches[1].samples, 3);
	ts_pc_samples_free(hot);
	ts_reader_close(reader);
}

/* The driver's call inside the runtime's has the same number, and no stack. */
TS_TEST(calls_in_calls)
{
	struct ts_api_call_row inner = ts_api_call_none;
	struct ts_reader *reader;
	struct ts_pc_samples *hot;
	uint32_t stack;

	start();
	stack = host_stack("caller");
	launch("gemm", 7, 100, stack, 0);
	inner.start = ++now;
	inner.correlation = 7;
	ts_writer_add(writer, TS_TABLE_API_CALL, &inner, NULL);
	sample(instruction("gemm", "a", 0), "wait", 10);
	reader = finish();
	hot = query(reader, "gemm");
	TS_CHECK_INT(hot->launch_count, 1);
	TS_CHECK_INT(hot->launches[0].stack, stack);
	ts_pc_samples_free(hot);
	ts_reader_close(reader);
}

/* Ids that refer to nothing, extreme numbers. */
TS_TEST(rows_that_make_no_sense)
{
	struct ts_frame_row frame = ts_frame_none;
	struct ts_reader *reader;
	struct ts_pc_samples *hot;

	start();
	frame.kind = TS_FRAME_INSTRUCTION;
	frame.name = 999999;
	frame.mapping = 888888;
	frame.pc = INT64_MIN + 1;
	sample(ts_writer_stack(writer, 0, ts_writer_frame(writer, &frame)), "wait", INT64_MAX);
	sample(ts_writer_stack(writer, 0, ts_writer_frame(writer, &frame)), "wait", INT64_MAX);
	sample(777777, "wait", 1);
	sample(0, "wait", 1);
	launch("(lost)", INT64_MAX, INT64_MAX, 666666, 0);
	launch("(lost)", INT64_MIN + 1, INT64_MAX, 0, 555555);
	reader = finish();
	hot = query(reader, "");
	TS_CHECK_INT(hot->kernel_count, 1);
	TS_CHECK_INT(hot->kernels[0].samples, INT64_MAX);
	TS_CHECK_INT(hot->instruction_count, 1);
	ts_pc_samples_free(hot);
	ts_reader_close(reader);
}

TS_TEST(code)
{
	struct ts_object_row object = ts_object_none;
	struct ts_reader *reader;
	struct ts_error err;
	struct ts_pc_samples *hot;
	void *image = NULL;
	size_t bytes = 0;

	start();
	sample(instruction("gemm", "cubin:1", 0), "wait", 1);
	sample(instruction("other", "cubin:2", 0), "wait", 1);
	object.id = 1;
	object.kind = TS_OBJECT_MODULE;
	object.name = text("cubin:1");
	object.blob = ts_writer_blob(writer, "code", 4);
	ts_writer_add(writer, TS_TABLE_OBJECT, &object, NULL);
	reader = finish();
	hot = query(reader, "gemm");
	TS_CHECK_INT(ts_pc_samples_code(hot, &image, &bytes, &err), 0);
	TS_CHECK_INT(bytes, 4);
	TS_CHECK(memcmp(image, "code", 4) == 0);
	free(image);
	ts_pc_samples_free(hot);
	hot = query(reader, "other");
	TS_CHECK_INT(ts_pc_samples_code(hot, &image, &bytes, &err), TS_ENOTFOUND);
	ts_pc_samples_free(hot);
	ts_reader_close(reader);
}
