/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For failures around windows: each step (TS_STEP) writes incompressible bytes, runs a kernel on
 * them, reads them back and compares. In some steps it can hold something that a window must wait
 * for when it opens:
 *
 *	opencl_hold [--steps N] [--bytes N] [--pause MS] [--hold user|map] [--hold-from STEP]
 *		    [--hold-until STEP]
 *
 * user: a kernel in another queue waits for an unset user event. map: a buffer is mapped for
 * writing. Prints a line per step, so that a script can follow it. Exit code 1 if a result is
 * wrong, 77 without a device.
 */
#define CL_TARGET_OPENCL_VERSION 120

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tracesmith/emit.h>

#include "opencl_program.h"

struct program {
	long steps, bytes, pause_ms, hold_from, hold_until;
	const char *hold; /* NULL: nothing */
	cl_context context;
	cl_command_queue queue, other;
	cl_kernel kernel, held_kernel;
	cl_mem buffer, held;
	cl_event user;
	void *mapped;
	uint32_t *data, *back;
	uint32_t random;
};

static const char *const source =
	"kernel void twist(global uint *data, uint key) { size_t i = get_global_id(0); data[i] = (data[i] ^ key) * 3; }\n";

static cl_mem make_buffer(struct program *program, size_t bytes)
{
	cl_int code;
	cl_mem buffer;
	void *zeros = calloc(1, bytes);

	if (!zeros)
		check(CL_OUT_OF_HOST_MEMORY, "calloc");
	buffer = clCreateBuffer(program->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes,
				zeros, &code);
	check(code, "clCreateBuffer");
	free(zeros);
	return buffer;
}

static cl_kernel make_kernel(cl_program code_of, cl_mem buffer)
{
	cl_int code;
	const cl_uint key = 0x5a5a5a5a;
	cl_kernel kernel = clCreateKernel(code_of, "twist", &code);

	check(code, "clCreateKernel");
	check(clSetKernelArg(kernel, 0, sizeof(buffer), (const void *)&buffer), "clSetKernelArg");
	check(clSetKernelArg(kernel, 1, sizeof(key), &key), "clSetKernelArg");
	return kernel;
}

static void set_up(struct program *program)
{
	cl_device_id device;
	cl_program built;
	cl_int code;

	find_devices(&device, 1);
	program->context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
	check(code, "clCreateContext");
	program->queue = clCreateCommandQueue(program->context, device, 0, &code);
	check(code, "clCreateCommandQueue");
	program->other = clCreateCommandQueue(program->context, device, 0, &code);
	check(code, "clCreateCommandQueue");
	built = clCreateProgramWithSource(program->context, 1, (const char **)&source, NULL, &code);
	check(code, "clCreateProgramWithSource");
	check(clBuildProgram(built, 0, NULL, NULL, NULL, NULL), "clBuildProgram");
	program->buffer = make_buffer(program, (size_t)program->bytes);
	program->held = make_buffer(program, 4096);
	program->kernel = make_kernel(built, program->buffer);
	program->held_kernel = make_kernel(built, program->held);
	clReleaseProgram(built);
	program->data = malloc((size_t)program->bytes);
	program->back = malloc((size_t)program->bytes);
	if (!program->data || !program->back)
		check(CL_OUT_OF_HOST_MEMORY, "malloc");
}

/* ---- holding ---- */

static void hold_user(struct program *program)
{
	const size_t items = 1024;
	cl_int code;

	program->user = clCreateUserEvent(program->context, &code);
	check(code, "clCreateUserEvent");
	check(clEnqueueNDRangeKernel(program->other, program->held_kernel, 1, NULL, &items, NULL, 1,
				     &program->user, NULL),
	      "clEnqueueNDRangeKernel");
	check(clFlush(program->other), "clFlush");
}

static void hold_map(struct program *program)
{
	cl_int code;

	program->mapped = clEnqueueMapBuffer(program->other, program->held, CL_TRUE,
					     CL_MAP_READ | CL_MAP_WRITE, 0, 4096, 0, NULL, NULL,
					     &code);
	check(code, "clEnqueueMapBuffer");
	memset(program->mapped, 1, 4096);
}

static void let_go(struct program *program)
{
	if (program->user) {
		check(clSetUserEventStatus(program->user, CL_COMPLETE), "clSetUserEventStatus");
		clReleaseEvent(program->user);
		program->user = NULL;
	}
	if (program->mapped) {
		memset(program->mapped, 2, 4096);
		check(clEnqueueUnmapMemObject(program->other, program->held, program->mapped, 0,
					      NULL, NULL),
		      "clEnqueueUnmapMemObject");
		program->mapped = NULL;
	}
	check(clFinish(program->other), "clFinish");
}

static void hold_or_let_go(struct program *program, long step)
{
	if (!program->hold)
		return;
	if (step == program->hold_from && !strcmp(program->hold, "user"))
		hold_user(program);
	else if (step == program->hold_from)
		hold_map(program);
	if (step == program->hold_until)
		let_go(program);
}

/* ---- steps ---- */

static int run_step(struct program *program)
{
	size_t count = (size_t)program->bytes / sizeof(uint32_t), bytes = count * sizeof(uint32_t);

	for (size_t i = 0; i < count; i++) {
		program->random ^= program->random << 13;
		program->random ^= program->random >> 17;
		program->random ^= program->random << 5;
		program->data[i] = program->random;
	}
	check(clEnqueueWriteBuffer(program->queue, program->buffer, CL_FALSE, 0, bytes,
				   program->data, 0, NULL, NULL),
	      "clEnqueueWriteBuffer");
	check(clEnqueueNDRangeKernel(program->queue, program->kernel, 1, NULL, &count, NULL, 0,
				     NULL, NULL),
	      "clEnqueueNDRangeKernel");
	check(clEnqueueReadBuffer(program->queue, program->buffer, CL_TRUE, 0, bytes, program->back,
				  0, NULL, NULL),
	      "clEnqueueReadBuffer");
	for (size_t i = 0; i < count; i++) {
		if (program->back[i] != (program->data[i] ^ 0x5a5a5a5a) * 3)
			return 1;
	}
	return 0;
}

static void pause_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

static int usage(void)
{
	fputs("usage: opencl_hold [--steps N] [--bytes N] [--pause MS] [--hold user|map] [--hold-from STEP] [--hold-until STEP]\n",
	      stderr);
	return 2;
}

static int parse(int argc, char **argv, struct program *program)
{
	static const struct {
		const char *name;
		size_t at;
	} numbers[] = {
		{ "--steps", offsetof(struct program, steps) },
		{ "--bytes", offsetof(struct program, bytes) },
		{ "--pause", offsetof(struct program, pause_ms) },
		{ "--hold-from", offsetof(struct program, hold_from) },
		{ "--hold-until", offsetof(struct program, hold_until) },
	};

	if (argc % 2 == 0)
		return usage();
	for (int i = 1; i < argc; i += 2) {
		size_t n = 0;

		if (!strcmp(argv[i], "--hold")) {
			program->hold = argv[i + 1];
			continue;
		}
		while (n < 5 && strcmp(argv[i], numbers[n].name) != 0)
			n++;
		if (n == 5)
			return usage();
		*(long *)((char *)program + numbers[n].at) = strtol(argv[i + 1], NULL, 10);
	}
	return program->bytes < 64 || program->steps < 0 ? usage() : 0;
}

int main(int argc, char **argv)
{
	struct program program = { .steps = 10, .bytes = 65536, .random = 1 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (parse(argc, argv, &program))
		return 2;
	set_up(&program);
	for (long step = 0; step < program.steps; step++) {
		TS_STEP(step);
		hold_or_let_go(&program, step);
		if (run_step(&program)) {
			printf("step %ld: the result is wrong\n", step);
			return 1;
		}
		printf("step %ld\n", step);
		pause_ms(program.pause_ms);
	}
	let_go(&program);
	clReleaseMemObject(program.buffer);
	clReleaseMemObject(program.held);
	clReleaseKernel(program.kernel);
	clReleaseKernel(program.held_kernel);
	clReleaseCommandQueue(program.queue);
	clReleaseCommandQueue(program.other);
	clReleaseContext(program.context);
	free(program.data);
	free(program.back);
	return 0;
}
