/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls CLBlast (GEMM, AXPY, DOT, and their batched forms) on generated numbers, and compares with
 * plain C. It exercises a third-party library: programs from source with many options, internal
 * buffers, several kernels per call. CLBlast is opened at run time, so only its header is needed to
 * build; without either, it skips with exit code 77.
 *
 *	opencl_clblast [--size N] [--device NUMBER] [--batched 0|1]
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if !defined(__has_include) || !__has_include(<clblast_c.h>)

int main(void)
{
	puts("skip: built without clblast_c.h (Debian: libclblast-dev)");
	return 77;
}

#else
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <clblast_c.h>
#pragma GCC diagnostic pop

#define FUNCTIONS(X)           \
	X(CLBlastSaxpy)        \
	X(CLBlastSdot)         \
	X(CLBlastSgemm)        \
	X(CLBlastSaxpyBatched) \
	X(CLBlastSgemmBatched) \
	X(CLBlastSgemmStridedBatched)

#define MEMBER(name) __typeof__(&name) name;
static struct {
	FUNCTIONS(MEMBER)
} blast;

enum { BATCH = 3 };

struct job {
	size_t size; /* of a matrix: rows and columns */
	cl_context context;
	cl_command_queue queue;
	cl_mem a, b, c; /* BATCH matrices each */
	float *host_a, *host_b, *host_c, *got;
	int failures;
};

static void check(cl_int code, const char *what)
{
	if (code == CL_SUCCESS)
		return;
	fprintf(stderr, "opencl_clblast: %s: error %d\n", what, code);
	exit(1);
}

static void open_library(void)
{
	void *library = dlopen("libclblast.so.1", RTLD_NOW);

	if (!library) {
		puts("skip: no libclblast.so.1 (Debian: libclblast1)");
		exit(77);
	}
#define FIND(name)                                           \
	*(void **)&blast.name = dlsym(library, #name);       \
	if (!blast.name) {                                   \
		puts("skip: libclblast.so.1 has no " #name); \
		exit(77);                                    \
	}
	FUNCTIONS(FIND)
}

static cl_device_id find_device(unsigned long wanted)
{
	cl_platform_id platforms[8];
	cl_device_id devices[8];
	cl_uint platform_count = 0, count = 0;

	clGetPlatformIDs(8, platforms, &platform_count);
	for (cl_uint i = 0; i < platform_count && i < 8; i++) {
		if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 8, devices, &count) ==
			    CL_SUCCESS &&
		    wanted < count)
			return devices[wanted];
	}
	puts("skip: no OpenCL device");
	exit(77);
}

/* ---- numbers ---- */

static size_t total_of(const struct job *job)
{
	return BATCH * job->size * job->size;
}

static float *make_numbers(const struct job *job, unsigned int seed)
{
	float *numbers = malloc(total_of(job) * sizeof(*numbers));

	if (!numbers)
		check(CL_OUT_OF_HOST_MEMORY, "malloc");
	for (size_t i = 0; i < total_of(job); i++)
		numbers[i] = (float)((i * 37 + seed * 101) % 199) / 100 - 1;
	return numbers;
}

static cl_mem make_buffer(const struct job *job, const float *numbers)
{
	size_t bytes = total_of(job) * sizeof(*numbers);
	cl_int code;
	cl_mem buffer = clCreateBuffer(job->context, CL_MEM_READ_WRITE, bytes, NULL, &code);

	check(code, "clCreateBuffer");
	check(clEnqueueWriteBuffer(job->queue, buffer, CL_TRUE, 0, bytes, numbers, 0, NULL, NULL),
	      "clEnqueueWriteBuffer");
	return buffer;
}

static void set_up(struct job *job, unsigned long device_number)
{
	cl_device_id device = find_device(device_number);
	cl_int code;

	job->context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
	check(code, "clCreateContext");
	job->queue = clCreateCommandQueue(job->context, device, 0, &code);
	check(code, "clCreateCommandQueue");
	job->host_a = make_numbers(job, 1);
	job->host_b = make_numbers(job, 2);
	job->host_c = make_numbers(job, 3);
	job->got = make_numbers(job, 4);
	job->a = make_buffer(job, job->host_a);
	job->b = make_buffer(job, job->host_b);
	job->c = make_buffer(job, job->host_c);
}

static void release(struct job *job)
{
	clReleaseMemObject(job->a);
	clReleaseMemObject(job->b);
	clReleaseMemObject(job->c);
	clReleaseCommandQueue(job->queue);
	clReleaseContext(job->context);
	free(job->host_a);
	free(job->host_b);
	free(job->host_c);
	free(job->got);
}

/* c = alpha a b + beta c, of one matrix. */
static void plain_gemm(struct job *job, size_t matrix, float alpha, float beta)
{
	size_t n = job->size, at = matrix * n * n;

	for (size_t y = 0; y < n; y++) {
		for (size_t x = 0; x < n; x++) {
			double sum = 0;

			for (size_t k = 0; k < n; k++)
				sum += (double)job->host_a[at + y * n + k] *
				       job->host_b[at + k * n + x];
			job->host_c[at + y * n + x] =
				(float)(alpha * sum + beta * job->host_c[at + y * n + x]);
		}
	}
}

/* The device's result must be close to the expected one, and replaces it. */
static void compare(struct job *job, const char *what)
{
	size_t bytes = total_of(job) * sizeof(float);
	double worst = 0;

	check(clEnqueueReadBuffer(job->queue, job->c, CL_TRUE, 0, bytes, job->got, 0, NULL, NULL),
	      "clEnqueueReadBuffer");
	for (size_t i = 0; i < total_of(job); i++) {
		double distance = fabs((double)job->got[i] - job->host_c[i]);

		if (!(distance <= worst))
			worst = distance;
	}
	printf("%-24s size %zu: off by %.1e\n", what, job->size, worst);
	if (!(worst < 1e-3 * (double)job->size))
		job->failures++;
	memcpy(job->host_c, job->got, bytes);
}

/* ---- calls ---- */

static void finish(struct job *job, CLBlastStatusCode code, const char *what, cl_event event)
{
	check((cl_int)code, what);
	check(clWaitForEvents(1, &event), "clWaitForEvents");
	clReleaseEvent(event);
	compare(job, what);
}

static void axpy(struct job *job)
{
	size_t count = total_of(job);
	cl_event event = NULL;
	CLBlastStatusCode code =
		blast.CLBlastSaxpy(count, 0.5f, job->a, 0, 1, job->c, 0, 1, &job->queue, &event);

	for (size_t i = 0; i < count; i++)
		job->host_c[i] += 0.5f * job->host_a[i];
	finish(job, code, "CLBlastSaxpy", event);
}

static void axpy_batched(struct job *job)
{
	size_t n = job->size * job->size;
	float alphas[BATCH] = { 1, -0.5f, 0.25f };
	size_t offsets[BATCH] = { 0, n, 2 * n };
	cl_event event = NULL;
	CLBlastStatusCode code = blast.CLBlastSaxpyBatched(n, alphas, job->b, offsets, 1, job->c,
							   offsets, 1, BATCH, &job->queue, &event);

	for (size_t i = 0; i < BATCH * n; i++)
		job->host_c[i] += alphas[i / n] * job->host_b[i];
	finish(job, code, "CLBlastSaxpyBatched", event);
}

/* Into the first number of c. */
static void dot(struct job *job)
{
	size_t count = job->size * job->size;
	double sum = 0;
	cl_event event = NULL;
	CLBlastStatusCode code = blast.CLBlastSdot(count, job->c, 0, job->a, 0, 1, job->b, 0, 1,
						   &job->queue, &event);

	for (size_t i = 0; i < count; i++)
		sum += (double)job->host_a[i] * job->host_b[i];
	job->host_c[0] = (float)sum;
	finish(job, code, "CLBlastSdot", event);
}

static void gemm(struct job *job)
{
	size_t n = job->size, first = n * n;
	cl_event event = NULL;
	CLBlastStatusCode code = blast.CLBlastSgemm(
		CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeNo, n, n, n, 1.5f,
		job->a, first, n, job->b, first, n, 0.5f, job->c, first, n, &job->queue, &event);

	plain_gemm(job, 1, 1.5f, 0.5f);
	finish(job, code, "CLBlastSgemm", event);
}

static void gemm_batched(struct job *job)
{
	size_t n = job->size;
	float alphas[BATCH] = { 1, 0.5f, -1 }, betas[BATCH] = { 0, 1, 0.5f };
	size_t offsets[BATCH] = { 0, n * n, 2 * n * n };
	cl_event event = NULL;
	CLBlastStatusCode code = blast.CLBlastSgemmBatched(
		CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeNo, n, n, n, alphas,
		job->a, offsets, n, job->b, offsets, n, betas, job->c, offsets, n, BATCH,
		&job->queue, &event);

	for (size_t i = 0; i < BATCH; i++)
		plain_gemm(job, i, alphas[i], betas[i]);
	finish(job, code, "CLBlastSgemmBatched", event);
}

static void gemm_strided(struct job *job)
{
	size_t n = job->size, stride = n * n;
	cl_event event = NULL;
	CLBlastStatusCode code = blast.CLBlastSgemmStridedBatched(
		CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeNo, n, n, n, 0.25f,
		job->a, 0, n, stride, job->b, 0, n, stride, 0.5f, job->c, 0, n, stride, BATCH,
		&job->queue, &event);

	for (size_t i = 0; i < BATCH; i++)
		plain_gemm(job, i, 0.25f, 0.5f);
	finish(job, code, "CLBlastSgemmStridedBatched", event);
}

/* ---- the command line ---- */

static int usage(void)
{
	fputs("usage: opencl_clblast [--size N] [--device NUMBER] [--batched 0|1]\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	struct job job = { .size = 32 };
	unsigned long device = 0, batched = 1;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--size"))
			job.size = strtoul(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--device"))
			device = strtoul(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--batched"))
			batched = strtoul(argv[i + 1], NULL, 10);
		else
			return usage();
	}
	if (argc % 2 == 0 || job.size < 1 || job.size > 2048)
		return usage();
	open_library();
	set_up(&job, device);
	axpy(&job);
	dot(&job);
	gemm(&job);
	if (batched) {
		axpy_batched(&job);
		gemm_batched(&job);
		gemm_strided(&job);
	}
	release(&job);
	printf("%d results are wrong\n", job.failures);
	return job.failures ? 1 : 0;
}
#endif
