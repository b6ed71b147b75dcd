/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many small OpenCL commands to record and replay: the replayed span shows the cost per command.
 *
 *	opencl_small launches [ROUNDS]   kernels of 64 items in one queue, a wait after each 100
 *	opencl_small mixed [ROUNDS]      writes, kernels, copies and reads of 4 KiB in two queues
 *					 that wait for each other's events
 *
 * Prints the number of commands, and the time from the first command to the end of the last. The
 * kernel runs once before, so that nothing is compiled in between.
 */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES 4096
#define ITEMS 64
#define BATCH 100

struct small {
	cl_command_queue queues[2];
	cl_kernel kernel;
	cl_mem memory[2];
	char host[2][BYTES];
	unsigned long commands;
};

static void stop_if(cl_int error, const char *what)
{
	if (error != CL_SUCCESS) {
		fprintf(stderr, "opencl_small: %s: error %d\n", what, error);
		exit(1);
	}
}

static double read_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void make(struct small *small)
{
	const char *source = "kernel void advance(global uint *v, uint add)\n"
			     "{ v[get_global_id(0)] = v[get_global_id(0)] * 3 + add; }\n";
	cl_platform_id platform;
	cl_device_id device;
	cl_context context;
	cl_program program;
	cl_int error;

	stop_if(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
	stop_if(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
	stop_if(error, "clCreateContext");
	for (int i = 0; i < 2; i++) {
		small->queues[i] = clCreateCommandQueue(context, device, 0, &error);
		stop_if(error, "clCreateCommandQueue");
		small->memory[i] = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &error);
		stop_if(error, "clCreateBuffer");
	}
	program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
	stop_if(error, "clCreateProgramWithSource");
	stop_if(clBuildProgram(program, 0, NULL, "", NULL, NULL), "clBuildProgram");
	small->kernel = clCreateKernel(program, "advance", &error);
	stop_if(error, "clCreateKernel");
}

static void launch(struct small *small, int queue, cl_uint waits, const cl_event *wait,
		   cl_event *event)
{
	cl_uint add = (cl_uint)small->commands;
	const size_t items = ITEMS;

	stop_if(clSetKernelArg(small->kernel, 0, sizeof(cl_mem), &small->memory[queue]),
		"clSetKernelArg");
	stop_if(clSetKernelArg(small->kernel, 1, sizeof(add), &add), "clSetKernelArg");
	stop_if(clEnqueueNDRangeKernel(small->queues[queue], small->kernel, 1, NULL, &items, &items,
				       waits, wait, event),
		"clEnqueueNDRangeKernel");
	small->commands++;
}

static void launches(struct small *small)
{
	for (int i = 0; i < BATCH; i++)
		launch(small, 0, 0, NULL, NULL);
	stop_if(clFinish(small->queues[0]), "clFinish");
}

/* In: one queue writes and computes. Out: the other copies, computes and reads. */
static void mixed(struct small *small)
{
	cl_event done, taken;

	stop_if(clEnqueueWriteBuffer(small->queues[0], small->memory[0], CL_FALSE, 0, BYTES,
				     small->host[0], 0, NULL, NULL),
		"clEnqueueWriteBuffer");
	launch(small, 0, 0, NULL, &done);
	stop_if(clEnqueueCopyBuffer(small->queues[1], small->memory[0], small->memory[1], 0, 0,
				    BYTES, 1, &done, &taken),
		"clEnqueueCopyBuffer");
	launch(small, 1, 0, NULL, NULL);
	stop_if(clEnqueueReadBuffer(small->queues[1], small->memory[1], CL_FALSE, 0, BYTES,
				    small->host[1], 0, NULL, NULL),
		"clEnqueueReadBuffer");
	/* The next write must not overlap with the copy. */
	stop_if(clEnqueueBarrierWithWaitList(small->queues[0], 1, &taken, NULL),
		"clEnqueueBarrierWithWaitList");
	clReleaseEvent(done);
	clReleaseEvent(taken);
	small->commands += 4;
	if (small->commands % (6UL * BATCH) == 0)
		stop_if(clFinish(small->queues[1]), "clFinish");
}

int main(int argc, char **argv)
{
	static struct small small;
	unsigned long rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 100;
	void (*round)(struct small * small);
	double start;

	if (argc < 2 || (strcmp(argv[1], "launches") && strcmp(argv[1], "mixed"))) {
		fprintf(stderr, "usage: opencl_small launches | mixed [ROUNDS]\n");
		return 2;
	}
	round = strcmp(argv[1], "mixed") ? launches : mixed;
	make(&small);
	launch(&small, 0, 0, NULL, NULL);
	stop_if(clFinish(small.queues[0]), "clFinish");
	start = read_ms();
	for (unsigned long i = 0; i < rounds; i++)
		round(&small);
	stop_if(clFinish(small.queues[0]), "clFinish");
	stop_if(clFinish(small.queues[1]), "clFinish");
	printf("{\"commands\": %lu, \"span_ms\": %.3f}\n", small.commands, read_ms() - start);
	return 0;
}
