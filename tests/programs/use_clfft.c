/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clFFT: transforms of several lengths and layouts, compared with a transform on the host, and
 * back again. Exit code 1: a result is wrong.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <clFFT.h>
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                       \
	do {                                                              \
		int result = (int)(call);                                 \
		if (result != 0) {                                        \
			fprintf(stderr, "%s: error %d\n", #call, result); \
			exit(1);                                          \
		}                                                         \
	} while (0)

static cl_context context;
static cl_command_queue queue;

static void open_device(void)
{
	cl_platform_id platform;
	cl_device_id device;
	cl_int result;

	CHECK(clGetPlatformIDs(1, &platform, NULL));
	CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &result);
	CHECK(result);
	queue = clCreateCommandQueue(context, device, 0, &result);
	CHECK(result);
}

/* By the definition: slow and simple. */
static void transform_on_host(const float complex *from, double complex *to, size_t rows,
			      size_t columns)
{
	for (size_t v = 0; v < rows; v++) {
		for (size_t u = 0; u < columns; u++) {
			double complex sum = 0;

			for (size_t y = 0; y < rows; y++) {
				for (size_t x = 0; x < columns; x++) {
					double turn = (double)(u * x % columns) / (double)columns +
						      (double)(v * y % rows) / (double)rows;

					sum += from[y * columns + x] * cexp(-2 * M_PI * I * turn);
				}
			}
			to[v * columns + u] = sum;
		}
	}
}

static double largest_error(const float complex *found, const double complex *expected,
			    size_t count)
{
	double largest = 0;

	for (size_t i = 0; i < count; i++)
		largest = fmax(largest, cabs(found[i] - expected[i]));
	return largest;
}

static void check_size(size_t rows, size_t columns)
{
	size_t count = rows * columns, lengths[2] = { columns, rows };
	float complex *input = calloc(count, sizeof(*input)),
		      *output = calloc(count, sizeof(*input));
	double complex *expected = calloc(count, sizeof(*expected));
	clfftPlanHandle plan;
	cl_mem memory;
	cl_int result;
	double error;

	for (size_t i = 0; i < count; i++)
		input[i] = (float)(i * 7 % 31) / 31 + I * (float)(i * 5 % 17) / 17;
	memory = clCreateBuffer(context, CL_MEM_READ_WRITE, count * sizeof(*input), NULL, &result);
	CHECK(result);
	CHECK(clEnqueueWriteBuffer(queue, memory, CL_TRUE, 0, count * sizeof(*input), input, 0,
				   NULL, NULL));
	CHECK(clfftCreateDefaultPlan(&plan, context, rows > 1 ? CLFFT_2D : CLFFT_1D, lengths));
	CHECK(clfftSetLayout(plan, CLFFT_COMPLEX_INTERLEAVED, CLFFT_COMPLEX_INTERLEAVED));
	CHECK(clfftSetResultLocation(plan, CLFFT_INPLACE));
	CHECK(clfftBakePlan(plan, 1, &queue, NULL, NULL));
	CHECK(clfftEnqueueTransform(plan, CLFFT_FORWARD, 1, &queue, 0, NULL, NULL, &memory, NULL,
				    NULL));
	CHECK(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, count * sizeof(*input), output, 0,
				  NULL, NULL));
	transform_on_host(input, expected, rows, columns);
	error = largest_error(output, expected, count);
	printf("%zu x %zu: largest error %.2g\n", rows, columns, error);
	if (!(error < 1e-4 * (double)count))
		exit(1);
	CHECK(clfftEnqueueTransform(plan, CLFFT_BACKWARD, 1, &queue, 0, NULL, NULL, &memory, NULL,
				    NULL));
	CHECK(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, count * sizeof(*input), output, 0,
				  NULL, NULL));
	for (size_t i = 0; i < count; i++)
		expected[i] = input[i];
	if (!(largest_error(output, expected, count) < 1e-4)) {
		fprintf(stderr, "%zu x %zu: back again is another\n", rows, columns);
		exit(1);
	}
	CHECK(clfftDestroyPlan(&plan));
	clReleaseMemObject(memory);
	free(input);
	free(output);
	free(expected);
}

/* Arguments: pairs of rows and columns, with factors of 2, 3, 5, 7, 11 and 13 only. */
int main(int argc, char **argv)
{
	clfftSetupData setup;

	open_device();
	CHECK(clfftInitSetupData(&setup));
	CHECK(clfftSetup(&setup));
	for (int i = 1; i + 1 < argc; i += 2)
		check_size((size_t)atoi(argv[i]), (size_t)atoi(argv[i + 1]));
	CHECK(clfftTeardown());
	clReleaseCommandQueue(queue);
	clReleaseContext(context);
	return 0;
}
