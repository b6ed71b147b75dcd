/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small OpenCL program with a realistic structure: each step uploads a block of numbers, runs
 * four kernels on it and downloads the result. Uploads and downloads use a separate queue, so that
 * they overlap with kernels of another step; events enforce the order. With two devices, steps
 * alternate between them. Try
 *
 *	tracesmith record --replayable -o pipeline.sbt -- build/examples/opencl_pipeline
 *	tracesmith view pipeline.sbt --table gpu_op
 *	tracesmith replay pipeline.sbt --check each
 *
 * Prints a checksum of all results, which is the same in each run on the same device.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/emit.h>

enum { MAX_DEVICES = 2, SLOTS = 2, COEFFICIENTS = 16, TOTALS = 64 };

struct options {
	long steps, work, size; /* size: numbers in a block */
	const char *device;     /* number, or part of a name; NULL: the first two available */
};

/*
 * The buffers of one step. Each device has two slots, so that a step can be uploaded while the
 * previous one is computed. The events are those of the last step that used the slot: a writer of a
 * buffer waits for its readers.
 */
struct slot {
	cl_mem input, coefficients, scratch, output;
	cl_mem tail; /* the second half of `output`, as a sub-buffer */
	float *host_input, *host_output;
	cl_event uploaded, computed, downloaded;
	long step; /* -1: not used yet */
};

struct lane {
	cl_device_id device;
	cl_command_queue transfer, compute;
	cl_kernel prepare, blend, smooth, total;
	cl_mem history; /* the input of the previous step on this device */
	struct slot slots[SLOTS];
};

struct pipeline {
	struct options options;
	cl_context context;
	cl_program program;
	cl_mem totals; /* all devices add to it in turn */
	cl_event totals_ready;
	struct lane lanes[MAX_DEVICES];
	cl_uint lane_count;
	uint64_t checksum;
};

static const char *const kernels =
	"/* Scales the input to a range that suits the other kernels. */\n"
	"kernel void prepare(global const float *input, constant float *coefficients, global float *scratch)\n"
	"{\n"
	"	size_t i = get_global_id(0);\n"
	"	scratch[i] = input[i] * coefficients[i % 16] + coefficients[(i / 16) % 16];\n"
	"}\n"
	"/* The expensive kernel: `work` rounds of arithmetic on each number. */\n"
	"kernel void blend(global const float *scratch, global const float *history, global float *output, uint work)\n"
	"{\n"
	"	size_t i = get_global_id(0);\n"
	"	float x = scratch[i], y = history[i];\n"
	"	for (uint round = 0; round < work; round++) {\n"
	"		float turned = x * 0.8f - y * 0.6f;\n"
	"		y = x * 0.6f + y * 0.8f;\n"
	"		x = turned;\n"
	"	}\n"
	"	output[i] = x + y;\n"
	"}\n"
	"/* Works on part of the output. */\n"
	"kernel void smooth(global float *tail, global const float *scratch)\n"
	"{\n"
	"	size_t i = get_global_id(0);\n"
	"	tail[i] = (tail[i] + scratch[i]) * 0.5f;\n"
	"}\n"
	"/* Sums bit patterns, so that the result does not depend on the order. */\n"
	"kernel void total(global const uint *output, uint count, global uint *totals)\n"
	"{\n"
	"	uint sum = 0;\n"
	"	for (uint i = get_global_id(0); i < count; i += get_global_size(0))\n"
	"		sum += output[i] ^ i;\n"
	"	totals[get_global_id(0)] += sum;\n"
	"}\n";

/*
 * Checks the result of every OpenCL call and exits on failure, where a real program would recover.
 */
static void check(cl_int code, const char *what)
{
	if (code == CL_SUCCESS)
		return;
	fprintf(stderr, "opencl_pipeline: %s: OpenCL error %d\n", what, code);
	exit(1);
}

/* ---- devices ---- */

static void no_device(const char *why)
{
	fprintf(stderr,
		"opencl_pipeline: %s. 'clinfo -l' lists what is there; a driver for any machine is PoCL"
		" (Debian: apt install pocl-opencl-icd).\n",
		why);
	exit(4);
}

static int is_wanted(cl_device_id device, unsigned int number, const char *wanted)
{
	char name[256] = "", digits[16];

	if (!wanted)
		return 1;
	snprintf(digits, sizeof(digits), "%u", number);
	clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof(name), name, NULL);
	return !strcmp(wanted, digits) || (wanted[0] > '9' && strstr(name, wanted));
}

/* The first devices requested, all of one platform: a context cannot span two. */
static void find_devices(struct pipeline *pipeline)
{
	cl_platform_id platforms[16];
	cl_device_id devices[16];
	cl_uint platform_count = 0, device_count;
	unsigned int number = 0;

	clGetPlatformIDs(16, platforms, &platform_count);
	for (cl_uint p = 0; p < platform_count && p < 16 && !pipeline->lane_count; p++) {
		device_count = 0;
		clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 16, devices, &device_count);
		for (cl_uint d = 0; d < device_count && d < 16; d++, number++) {
			if (pipeline->lane_count < MAX_DEVICES &&
			    is_wanted(devices[d], number, pipeline->options.device))
				pipeline->lanes[pipeline->lane_count++].device = devices[d];
		}
	}
	if (!number)
		no_device("there is no OpenCL device");
	if (!pipeline->lane_count)
		no_device("no OpenCL device has that number or name");
}

/* ---- setup ---- */

static void build(struct pipeline *pipeline)
{
	cl_int code;
	char log[4096] = "";

	pipeline->program = clCreateProgramWithSource(pipeline->context, 1, (const char **)&kernels,
						      NULL, &code);
	check(code, "clCreateProgramWithSource");
	code = clBuildProgram(pipeline->program, 0, NULL, "-cl-std=CL1.2", NULL, NULL);
	if (code != CL_SUCCESS) {
		clGetProgramBuildInfo(pipeline->program, pipeline->lanes[0].device,
				      CL_PROGRAM_BUILD_LOG, sizeof(log) - 1, log, NULL);
		fputs(log, stderr);
	}
	check(code, "clBuildProgram");
}

static cl_kernel make_kernel(struct pipeline *pipeline, const char *name)
{
	cl_int code;
	cl_kernel kernel = clCreateKernel(pipeline->program, name, &code);

	check(code, name);
	return kernel;
}

static cl_mem make_buffer(struct pipeline *pipeline, size_t bytes)
{
	cl_int code;
	cl_mem buffer = clCreateBuffer(pipeline->context, CL_MEM_READ_WRITE, bytes, NULL, &code);

	check(code, "clCreateBuffer");
	return buffer;
}

static void fill_zero(cl_command_queue queue, cl_mem buffer, size_t bytes)
{
	const cl_uint zero = 0;

	check(clEnqueueFillBuffer(queue, buffer, &zero, sizeof(zero), 0, bytes, 0, NULL, NULL),
	      "clEnqueueFillBuffer");
}

static void make_slot(struct pipeline *pipeline, struct slot *slot)
{
	size_t bytes = (size_t)pipeline->options.size * sizeof(float);
	cl_buffer_region half = { bytes / 2, bytes / 2 };
	cl_int code;

	slot->step = -1;
	slot->input = make_buffer(pipeline, bytes);
	slot->coefficients = make_buffer(pipeline, COEFFICIENTS * sizeof(float));
	slot->scratch = make_buffer(pipeline, bytes);
	slot->output = make_buffer(pipeline, bytes);
	slot->tail = clCreateSubBuffer(slot->output, CL_MEM_READ_WRITE,
				       CL_BUFFER_CREATE_TYPE_REGION, &half, &code);
	check(code, "clCreateSubBuffer");
	slot->host_input = malloc(bytes);
	slot->host_output = malloc(bytes);
	if (!slot->host_input || !slot->host_output)
		check(CL_OUT_OF_HOST_MEMORY, "malloc");
}

static void make_lane(struct pipeline *pipeline, struct lane *lane)
{
	cl_int code;

	lane->transfer = clCreateCommandQueue(pipeline->context, lane->device, 0, &code);
	check(code, "clCreateCommandQueue");
	lane->compute = clCreateCommandQueue(pipeline->context, lane->device, 0, &code);
	check(code, "clCreateCommandQueue");
	lane->prepare = make_kernel(pipeline, "prepare");
	lane->blend = make_kernel(pipeline, "blend");
	lane->smooth = make_kernel(pipeline, "smooth");
	lane->total = make_kernel(pipeline, "total");
	lane->history = make_buffer(pipeline, (size_t)pipeline->options.size * sizeof(float));
	fill_zero(lane->compute, lane->history, (size_t)pipeline->options.size * sizeof(float));
	for (int i = 0; i < SLOTS; i++)
		make_slot(pipeline, &lane->slots[i]);
}

static void set_up(struct pipeline *pipeline)
{
	cl_device_id devices[MAX_DEVICES];
	cl_int code;

	find_devices(pipeline);
	for (cl_uint i = 0; i < pipeline->lane_count; i++)
		devices[i] = pipeline->lanes[i].device;
	pipeline->context = clCreateContext(NULL, pipeline->lane_count, devices, NULL, NULL, &code);
	check(code, "clCreateContext");
	build(pipeline);
	pipeline->totals = make_buffer(pipeline, TOTALS * sizeof(cl_uint));
	for (cl_uint i = 0; i < pipeline->lane_count; i++)
		make_lane(pipeline, &pipeline->lanes[i]);
	fill_zero(pipeline->lanes[0].compute, pipeline->totals, TOTALS * sizeof(cl_uint));
	check(clFinish(pipeline->lanes[0].compute), "clFinish");
}

/* ---- one step ---- */

static void let_go(cl_event *event)
{
	if (*event)
		clReleaseEvent(*event);
	*event = NULL;
}

/* Writes directly to a buffer, by mapping and unmapping it. */
static void map_coefficients(struct lane *lane, struct slot *slot, long step)
{
	const cl_uint count = slot->computed ? 1 : 0; /* the readers of the old contents */
	cl_int code;
	float *to = clEnqueueMapBuffer(
		lane->transfer, slot->coefficients, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0,
		COEFFICIENTS * sizeof(float), count, count ? &slot->computed : NULL, NULL, &code);

	check(code, "clEnqueueMapBuffer");
	for (int i = 0; i < COEFFICIENTS; i++)
		to[i] = 0.5f + (float)((step * 7 + i * 3) % 11) / 16;
	check(clEnqueueUnmapMemObject(lane->transfer, slot->coefficients, to, 0, NULL, NULL),
	      "clEnqueueUnmapMemObject");
}

static void upload(struct pipeline *pipeline, struct lane *lane, struct slot *slot, long step)
{
	size_t bytes = (size_t)pipeline->options.size * sizeof(float);

	/*
	 * After the map, the kernels that read the last input of this slot are done: it may be
	 * overwritten.
	 */
	map_coefficients(lane, slot, step);
	for (long i = 0; i < pipeline->options.size; i++)
		slot->host_input[i] = (float)((i * 31 + step * 17) % 1009) / 1009;
	let_go(&slot->uploaded);
	check(clEnqueueWriteBuffer(lane->transfer, slot->input, CL_FALSE, 0, bytes,
				   slot->host_input, 0, NULL, &slot->uploaded),
	      "clEnqueueWriteBuffer");
	/* Other queues wait for this event, so the command must be submitted. */
	check(clFlush(lane->transfer), "clFlush");
	slot->step = step;
}

static void set(cl_kernel kernel, cl_uint index, size_t bytes, const void *value)
{
	check(clSetKernelArg(kernel, index, bytes, value), "clSetKernelArg");
}

static void launch(cl_command_queue queue, cl_kernel kernel, size_t items, cl_uint wait_count,
		   const cl_event *waits, cl_event *event)
{
	check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, wait_count,
				     wait_count ? waits : NULL, event),
	      "clEnqueueNDRangeKernel");
}

/*
 * The kernels of a step. The queue is in order: only the first kernel has to wait for the other
 * queue.
 */
static void compute(struct pipeline *pipeline, struct lane *lane, struct slot *slot)
{
	size_t size = (size_t)pipeline->options.size;
	cl_uint work = (cl_uint)pipeline->options.work, count = (cl_uint)size;
	cl_event waits[2] = { slot->uploaded, slot->downloaded };

	set(lane->prepare, 0, sizeof(cl_mem), &slot->input);
	set(lane->prepare, 1, sizeof(cl_mem), &slot->coefficients);
	set(lane->prepare, 2, sizeof(cl_mem), &slot->scratch);
	launch(lane->compute, lane->prepare, size, slot->downloaded ? 2 : 1, waits, NULL);

	set(lane->blend, 0, sizeof(cl_mem), &slot->scratch);
	set(lane->blend, 1, sizeof(cl_mem), &lane->history);
	set(lane->blend, 2, sizeof(cl_mem), &slot->output);
	set(lane->blend, 3, sizeof(work), &work);
	launch(lane->compute, lane->blend, size, 0, NULL, NULL);

	set(lane->smooth, 0, sizeof(cl_mem), &slot->tail);
	set(lane->smooth, 1, sizeof(cl_mem), &slot->scratch);
	launch(lane->compute, lane->smooth, size / 2, 0, NULL, NULL);

	check(clEnqueueCopyBuffer(lane->compute, slot->input, lane->history, 0, 0,
				  size * sizeof(float), 0, NULL, NULL),
	      "clEnqueueCopyBuffer");

	/* All devices add to the same totals, so each waits for the previous one. */
	set(lane->total, 0, sizeof(cl_mem), &slot->output);
	set(lane->total, 1, sizeof(count), &count);
	set(lane->total, 2, sizeof(cl_mem), &pipeline->totals);
	let_go(&slot->computed);
	launch(lane->compute, lane->total, TOTALS, pipeline->totals_ready ? 1 : 0,
	       &pipeline->totals_ready, &slot->computed);
	let_go(&pipeline->totals_ready);
	pipeline->totals_ready = slot->computed;
	clRetainEvent(slot->computed);
	check(clFlush(lane->compute), "clFlush");
}

static void download(struct pipeline *pipeline, struct lane *lane, struct slot *slot)
{
	let_go(&slot->downloaded);
	check(clEnqueueReadBuffer(lane->transfer, slot->output, CL_FALSE, 0,
				  (size_t)pipeline->options.size * sizeof(float), slot->host_output,
				  1, &slot->computed, &slot->downloaded),
	      "clEnqueueReadBuffer");
	check(clFlush(lane->transfer), "clFlush");
}

/* ---- results ---- */

static void add_to_checksum(struct pipeline *pipeline, const void *data, size_t bytes)
{
	const unsigned char *byte = data;

	for (size_t i = 0; i < bytes; i++)
		pipeline->checksum = (pipeline->checksum ^ byte[i]) * 0x100000001b3u;
}

/* The host reads the result of a step when its slot is needed again, or at the end. */
static void collect(struct pipeline *pipeline, struct slot *slot)
{
	if (slot->step < 0 || !slot->downloaded)
		return;
	check(clWaitForEvents(1, &slot->downloaded), "clWaitForEvents");
	add_to_checksum(pipeline, slot->host_output,
			(size_t)pipeline->options.size * sizeof(float));
	slot->step = -1;
}

static struct lane *lane_of(struct pipeline *pipeline, long step)
{
	return &pipeline->lanes[(size_t)step % pipeline->lane_count];
}

static struct slot *slot_of(struct pipeline *pipeline, long step)
{
	return &lane_of(pipeline, step)->slots[step / pipeline->lane_count % SLOTS];
}

static void download_step(struct pipeline *pipeline, long step)
{
	if (step >= 0)
		download(pipeline, lane_of(pipeline, step), slot_of(pipeline, step));
}

static void run(struct pipeline *pipeline)
{
	long steps = pipeline->options.steps, lanes = pipeline->lane_count;

	for (long step = 0; step < steps; step++) {
		struct lane *lane = lane_of(pipeline, step);
		struct slot *slot = slot_of(pipeline, step);

		TS_STEP(step); /* what `record --window steps:A-B` counts */
		collect(pipeline, slot);
		upload(pipeline, lane, slot, step);
		compute(pipeline, lane, slot);
		/*
		 * Uses the previous step on this device, so that an upload never waits for the
		 * kernels of its own step.
		 */
		download_step(pipeline, step - lanes);
	}
	for (long step = steps < lanes ? 0 : steps - lanes; step < steps; step++)
		download_step(pipeline, step);
	for (long step = steps < lanes * SLOTS ? 0 : steps - lanes * SLOTS; step < steps; step++)
		collect(pipeline, slot_of(pipeline, step));
}

/* Reads by mapping instead of copying. */
static void collect_totals(struct pipeline *pipeline)
{
	cl_command_queue queue = pipeline->lanes[0].transfer;
	cl_int code;
	void *totals = clEnqueueMapBuffer(queue, pipeline->totals, CL_TRUE, CL_MAP_READ, 0,
					  TOTALS * sizeof(cl_uint), pipeline->totals_ready ? 1 : 0,
					  pipeline->totals_ready ? &pipeline->totals_ready : NULL,
					  NULL, &code);

	check(code, "clEnqueueMapBuffer");
	add_to_checksum(pipeline, totals, TOTALS * sizeof(cl_uint));
	check(clEnqueueUnmapMemObject(queue, pipeline->totals, totals, 0, NULL, NULL),
	      "clEnqueueUnmapMemObject");
	check(clFinish(queue), "clFinish");
}

static void release_slot(struct slot *slot)
{
	let_go(&slot->uploaded);
	let_go(&slot->computed);
	let_go(&slot->downloaded);
	clReleaseMemObject(slot->tail);
	clReleaseMemObject(slot->output);
	clReleaseMemObject(slot->scratch);
	clReleaseMemObject(slot->coefficients);
	clReleaseMemObject(slot->input);
	free(slot->host_input);
	free(slot->host_output);
}

static void release(struct pipeline *pipeline)
{
	for (cl_uint i = 0; i < pipeline->lane_count; i++) {
		struct lane *lane = &pipeline->lanes[i];

		for (int s = 0; s < SLOTS; s++)
			release_slot(&lane->slots[s]);
		clReleaseMemObject(lane->history);
		clReleaseKernel(lane->prepare);
		clReleaseKernel(lane->blend);
		clReleaseKernel(lane->smooth);
		clReleaseKernel(lane->total);
		clReleaseCommandQueue(lane->transfer);
		clReleaseCommandQueue(lane->compute);
	}
	let_go(&pipeline->totals_ready);
	clReleaseMemObject(pipeline->totals);
	clReleaseProgram(pipeline->program);
	clReleaseContext(pipeline->context);
}

/* ---- command line ---- */

static int usage(void)
{
	fputs("usage: opencl_pipeline [--steps N] [--work ROUNDS] [--size NUMBERS] [--device NUMBER|NAME]\n",
	      stderr);
	return 2;
}

static int parse(int argc, char **argv, struct options *options)
{
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 == argc)
			return usage();
		if (!strcmp(argv[i], "--steps"))
			options->steps = strtol(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--work"))
			options->work = strtol(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--size"))
			options->size = strtol(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--device"))
			options->device = argv[i + 1];
		else
			return usage();
	}
	/* A sub-buffer must be aligned; 2 KiB suits every device. */
	options->size = (options->size + 1023) / 1024 * 1024;
	return options->steps < 0 || options->work < 0 || options->work > 1000000000 ||
			       options->size < 1024 || options->size > 1 << 28
		       ? usage()
		       : 0;
}

int main(int argc, char **argv)
{
	struct pipeline pipeline = {
		.options = { .steps = 8, .work = 100, .size = 65536 },
		.checksum = 0xcbf29ce484222325u,
	};

	if (parse(argc, argv, &pipeline.options))
		return 2;
	set_up(&pipeline);
	run(&pipeline);
	collect_totals(&pipeline);
	printf("%ld steps on %u device%s: checksum %016" PRIx64 "\n", pipeline.options.steps,
	       pipeline.lane_count, pipeline.lane_count == 1 ? "" : "s", pipeline.checksum);
	release(&pipeline);
	return 0;
}
