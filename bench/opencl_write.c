/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes to OpenCL memory: what capture of written data costs, with plain memcpy of the same bytes
 * as a peer, in turns.
 *
 *	opencl_write random|floats|zeros|same BYTES TOTAL
 *
 * Content: random bytes; floats with a period, which compress; zeros; the same random bytes each
 * time. All others differ from write to write. Prints GB/s of the writes and of memcpy.
 */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void stop_if(cl_int error, const char *what)
{
	if (error != CL_SUCCESS) {
		fprintf(stderr, "opencl_write: %s: error %d\n", what, error);
		exit(1);
	}
}

static double read_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void fill(const char *what, uint64_t *words, size_t count)
{
	uint64_t random = UINT64_C(88172645463325252);
	float *floats = (float *)(void *)words;

	for (size_t i = 0; i < count && strcmp(what, "zeros") != 0; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		words[i] = random;
	}
	for (size_t i = 0; i < 2 * count && !strcmp(what, "floats"); i++)
		floats[i] = (float)(i * 7 % 1000) / 8;
}

/* A word in each 4 KiB changes, so that nothing was stored before; not measured. */
static void change(const char *what, uint64_t *words, size_t count, uint64_t round)
{
	if (!strcmp(what, "zeros") || !strcmp(what, "same"))
		return;
	for (size_t i = 0; i < count; i += 512)
		words[i] = (round << 32 | i) * UINT64_C(0x9e3779b97f4a7c15);
}

int main(int argc, char **argv)
{
	size_t bytes = argc > 3 ? strtoull(argv[2], NULL, 0) : 0;
	uint64_t total = argc > 3 ? strtoull(argv[3], NULL, 0) : 0;
	double wrote_s = 0, copied_s = 0;
	cl_command_queue queue;
	cl_platform_id platform;
	cl_device_id device;
	cl_context context;
	uint64_t *words;
	cl_int error;
	cl_mem memory;
	char *copy;

	if (bytes < 4096 || !total) {
		fprintf(stderr, "usage: opencl_write random|floats|zeros|same BYTES TOTAL\n");
		return 2;
	}
	words = malloc(bytes);
	copy = malloc(bytes);
	if (!words || !copy)
		return 1;
	memset(words, 0, bytes);
	memset(copy, 1, bytes);
	fill(argv[1], words, bytes / 8);
	stop_if(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
	stop_if(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
	stop_if(error, "clCreateContext");
	queue = clCreateCommandQueue(context, device, 0, &error);
	stop_if(error, "clCreateCommandQueue");
	memory = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, &error);
	stop_if(error, "clCreateBuffer");
	for (uint64_t done = 0, round = 0; done < total; done += bytes, round++) {
		double start;

		change(argv[1], words, bytes / 8, round);
		start = read_s();
		memcpy(copy, words, bytes);
		copied_s += read_s() - start;
		start = read_s();
		stop_if(clEnqueueWriteBuffer(queue, memory, CL_TRUE, 0, bytes, words, 0, NULL,
					     NULL),
			"clEnqueueWriteBuffer");
		wrote_s += read_s() - start;
	}
	total = (total + bytes - 1) / bytes * bytes;
	printf("{\"write_gbs\":%.3f,\"memcpy_gbs\":%.3f}\n", (double)total / wrote_s / 1e9,
	       (double)total / copied_s / 1e9);
	return 0;
}
