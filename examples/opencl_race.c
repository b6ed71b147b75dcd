/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OpenCL program with data races, which testing rarely finds and replay does.
 *
 *	tracesmith record --replayable -o race.sbt -- build/examples/opencl_race
 *	tracesmith replay race.sbt --check each --repeat 3
 *
 * reports "nondeterministic" and names the first kernel whose result differs between runs. There
 * are two kinds of races:
 *
 *	--mode kernel   work-groups of the kernel `count_values` add to shared counters
 *			without atomics
 *	--mode queues   the kernels `left` and `right` run in two queues and modify one
 *			buffer, with no event between them
 *
 * The program also runs kernels without races, so that naming the right one matters. --fixed
 * removes the races: a replay then finds no difference.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 1 << 14, COUNTERS = 16 };

struct options {
	const char *device; /* number, or part of a name */
	int queues;         /* mode */
	int fixed;
	long rounds; /* how often each value is counted: more repetitions, more races */
};

struct program {
	struct options options;
	cl_device_id device;
	cl_context context;
	cl_command_queue first, second;
	cl_program code;
	cl_mem values, counters, result;
};

static const char *const kernels =
	"/* Work between the read and the write, as real kernels do. */\n"
	"void take_a_while(void)\n"
	"{\n"
	"	for (volatile uint i = 0; i < 20; i++)\n"
	"		;\n"
	"}\n"
	"\n"
	"#ifdef FIXED\n"
	"void add_one(volatile global uint *counter)\n"
	"{\n"
	"	take_a_while();\n"
	"	atomic_inc(counter);\n"
	"}\n"
	"#else\n"
	"void add_one(volatile global uint *counter)\n"
	"{\n"
	"	uint seen = *counter;\n"
	"	take_a_while(); /* concurrent updates are lost */\n"
	"	*counter = seen + 1;\n"
	"}\n"
	"#endif\n"
	"\n"
	"kernel void make_values(global uint *values)\n"
	"{\n"
	"	uint i = get_global_id(0);\n"
	"	values[i] = (i * 2654435761u) >> 7;\n"
	"}\n"
	"\n"
	"/* The bug: all work-groups add to the same counters. */\n"
	"kernel void count_values(global const uint *values, volatile global uint *counters, uint rounds)\n"
	"{\n"
	"	uint value = values[get_global_id(0)];\n"
	"	for (uint round = 0; round < rounds; round++)\n"
	"		add_one(&counters[(value + round) % 16]);\n"
	"}\n"
	"\n"
	"/* One long-running work-item each: two of these in two queues overlap. */\n"
	"kernel void left(volatile global uint *counters, uint rounds)\n"
	"{\n"
	"	for (uint round = 0; round < rounds; round++) {\n"
	"		uint seen = counters[round % 16];\n"
	"		take_a_while();\n"
	"		counters[round % 16] = seen * 3 + 1;\n"
	"	}\n"
	"}\n"
	"kernel void right(volatile global uint *counters, uint rounds)\n"
	"{\n"
	"	for (uint round = 0; round < rounds; round++) {\n"
	"		uint seen = counters[round % 16];\n"
	"		take_a_while();\n"
	"		counters[round % 16] = seen * 5 + 2;\n"
	"	}\n"
	"}\n"
	"\n"
	"/* No race: the output depends only on the input. */\n"
	"kernel void weigh(global const uint *values, global const uint *counters, global uint *result)\n"
	"{\n"
	"	uint i = get_global_id(0);\n"
	"	result[i] = values[i] ^ counters[i % 16];\n"
	"}\n";

static void check(cl_int code, const char *what)
{
	if (code == CL_SUCCESS)
		return;
	fprintf(stderr, "opencl_race: %s: OpenCL error %d\n", what, code);
	exit(1);
}

/* ---- setup ---- */

static int is_wanted(cl_device_id device, unsigned int number, const char *wanted)
{
	char name[256] = "", digits[16];

	if (!wanted)
		return 1;
	snprintf(digits, sizeof(digits), "%u", number);
	clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof(name), name, NULL);
	return !strcmp(wanted, digits) || (wanted[0] > '9' && strstr(name, wanted));
}

static cl_device_id find_device(const char *wanted)
{
	cl_platform_id platforms[16];
	cl_device_id devices[16];
	cl_uint platform_count = 0, device_count;
	unsigned int number = 0;

	clGetPlatformIDs(16, platforms, &platform_count);
	for (cl_uint p = 0; p < platform_count && p < 16; p++) {
		device_count = 0;
		clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 16, devices, &device_count);
		for (cl_uint d = 0; d < device_count && d < 16; d++, number++) {
			if (is_wanted(devices[d], number, wanted))
				return devices[d];
		}
	}
	fprintf(stderr,
		"opencl_race: %s. 'clinfo -l' lists what is there; a driver for any machine is PoCL"
		" (Debian: apt install pocl-opencl-icd).\n",
		number ? "no OpenCL device has that number or name" : "there is no OpenCL device");
	exit(4);
}

static void build(struct program *program)
{
	char log[4096] = "";
	cl_int code;

	program->code = clCreateProgramWithSource(program->context, 1, (const char **)&kernels,
						  NULL, &code);
	check(code, "clCreateProgramWithSource");
	code = clBuildProgram(program->code, 0, NULL, program->options.fixed ? "-DFIXED" : "", NULL,
			      NULL);
	if (code != CL_SUCCESS) {
		clGetProgramBuildInfo(program->code, program->device, CL_PROGRAM_BUILD_LOG,
				      sizeof(log) - 1, log, NULL);
		fputs(log, stderr);
	}
	check(code, "clBuildProgram");
}

static cl_mem make_buffer(struct program *program, size_t count)
{
	cl_int code;
	cl_mem buffer = clCreateBuffer(program->context, CL_MEM_READ_WRITE, count * sizeof(cl_uint),
				       NULL, &code);

	check(code, "clCreateBuffer");
	return buffer;
}

static void set_up(struct program *program)
{
	cl_int code;

	program->device = find_device(program->options.device);
	program->context = clCreateContext(NULL, 1, &program->device, NULL, NULL, &code);
	check(code, "clCreateContext");
	program->first = clCreateCommandQueue(program->context, program->device, 0, &code);
	check(code, "clCreateCommandQueue");
	program->second = clCreateCommandQueue(program->context, program->device, 0, &code);
	check(code, "clCreateCommandQueue");
	build(program);
	program->values = make_buffer(program, VALUES);
	program->counters = make_buffer(program, COUNTERS);
	program->result = make_buffer(program, VALUES);
}

static void release(struct program *program)
{
	clReleaseMemObject(program->values);
	clReleaseMemObject(program->counters);
	clReleaseMemObject(program->result);
	clReleaseProgram(program->code);
	clReleaseCommandQueue(program->first);
	clReleaseCommandQueue(program->second);
	clReleaseContext(program->context);
}

/* ---- running ---- */

static cl_kernel make_kernel(struct program *program, const char *name)
{
	cl_int code;
	cl_kernel kernel = clCreateKernel(program->code, name, &code);

	check(code, name);
	return kernel;
}

static void set(cl_kernel kernel, cl_uint index, size_t bytes, const void *value)
{
	check(clSetKernelArg(kernel, index, bytes, value), "clSetKernelArg");
}

/* Enqueues a kernel whose arguments are set and releases it: the queue holds a reference. */
static void launch(cl_command_queue queue, cl_kernel kernel, size_t items, const cl_event *wait,
		   cl_event *event)
{
	check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, wait ? 1 : 0, wait,
				     event),
	      "clEnqueueNDRangeKernel");
	check(clFlush(queue), "clFlush");
	clReleaseKernel(kernel);
}

static void make_values(struct program *program)
{
	const cl_uint zero = 0;
	cl_kernel kernel = make_kernel(program, "make_values");

	check(clEnqueueFillBuffer(program->first, program->counters, &zero, sizeof(zero), 0,
				  COUNTERS * sizeof(cl_uint), 0, NULL, NULL),
	      "clEnqueueFillBuffer");
	set(kernel, 0, sizeof(cl_mem), &program->values);
	launch(program->first, kernel, VALUES, NULL, NULL);
}

static void count_values(struct program *program)
{
	cl_uint rounds = (cl_uint)program->options.rounds;
	cl_kernel kernel = make_kernel(program, "count_values");

	set(kernel, 0, sizeof(cl_mem), &program->values);
	set(kernel, 1, sizeof(cl_mem), &program->counters);
	set(kernel, 2, sizeof(rounds), &rounds);
	launch(program->first, kernel, VALUES, NULL, NULL);
}

static void count_in_two_queues(struct program *program)
{
	cl_uint rounds = (cl_uint)program->options.rounds * 10000;
	cl_kernel left = make_kernel(program, "left"), right = make_kernel(program, "right");
	cl_event first, second;

	/*
	 * Both queues start with all previous work done, so that only their relative order is
	 * undefined.
	 */
	check(clFinish(program->first), "clFinish");
	set(left, 0, sizeof(cl_mem), &program->counters);
	set(left, 1, sizeof(rounds), &rounds);
	launch(program->first, left, 1, NULL, &first);
	set(right, 0, sizeof(cl_mem), &program->counters);
	set(right, 1, sizeof(rounds), &rounds);
	/* The bug: without --fixed, nothing waits for `first`. */
	launch(program->second, right, 1, program->options.fixed ? &first : NULL, &second);
	check(clWaitForEvents(1, &first), "clWaitForEvents");
	check(clWaitForEvents(1, &second), "clWaitForEvents");
	clReleaseEvent(first);
	clReleaseEvent(second);
}

static void weigh(struct program *program)
{
	cl_kernel kernel = make_kernel(program, "weigh");

	set(kernel, 0, sizeof(cl_mem), &program->values);
	set(kernel, 1, sizeof(cl_mem), &program->counters);
	set(kernel, 2, sizeof(cl_mem), &program->result);
	launch(program->first, kernel, VALUES, NULL, NULL);
}

static void show(struct program *program)
{
	cl_uint counters[COUNTERS];

	check(clEnqueueReadBuffer(program->first, program->counters, CL_TRUE, 0, sizeof(counters),
				  counters, 0, NULL, NULL),
	      "clEnqueueReadBuffer");
	fputs("counters:", stdout);
	for (int i = 0; i < COUNTERS; i++)
		printf(" %u", counters[i]);
	fputs("\n", stdout);
}

/* ---- command line ---- */

static int usage(void)
{
	fputs("usage: opencl_race [--mode kernel|queues] [--rounds N] [--device NUMBER|NAME] [--fixed]\n",
	      stderr);
	return 2;
}

static int parse(int argc, char **argv, struct options *options)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--fixed"))
			options->fixed = 1;
		else if (i + 1 == argc)
			return usage();
		else if (!strcmp(argv[i], "--device"))
			options->device = argv[++i];
		else if (!strcmp(argv[i], "--rounds"))
			options->rounds = strtol(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--mode") && !strcmp(argv[i + 1], "queues"))
			options->queues = 1, i++;
		else if (!strcmp(argv[i], "--mode") && !strcmp(argv[i + 1], "kernel"))
			i++;
		else
			return usage();
	}
	return options->rounds < 1 || options->rounds > 100000 ? usage() : 0;
}

int main(int argc, char **argv)
{
	struct program program = { .options = { .rounds = 200 } };

	if (parse(argc, argv, &program.options))
		return 2;
	set_up(&program);
	make_values(&program);
	if (program.options.queues)
		count_in_two_queues(&program);
	else
		count_values(&program);
	weigh(&program);
	show(&program);
	release(&program);
	return 0;
}
