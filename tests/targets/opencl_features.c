/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that a command stream must support (docs/replay.md, 3.3), one small function each:
 *
 *	opencl_features            all that can be replayed
 *	opencl_features map svm    these
 *	opencl_features --list     names; those with a * cannot be replayed and run only by name
 *
 * Prints a checksum for each, the same in each run. Exit code 1 if a result is wrong, 77 without a
 * device.
 */
#include "opencl_features.h"

#include <sys/stat.h>
#include <unistd.h>

#include "opencl_features_memory.h"
#include "opencl_features_order.h"

/* ---- arguments ---- */

static void arguments(void)
{
	struct {
		uint32_t a;
		uint16_t b;
		uint8_t c[6];
		uint32_t d[5];
	} value = { 7, 300, { 1, 2, 3, 4, 5, 6 }, { 10, 20, 30, 40, 50 } };
	cl_mem a = numbers(0), b = numbers(1), table = buffer(CL_MEM_COPY_HOST_PTR, 64, &data[30]);
	cl_mem none = NULL;
	const size_t no_items = 0;
	cl_kernel kernel = kernel_of(program, "structure"), copy;
	size_t global[3] = { 10, 5, 3 }, local[3] = { 5, 5, 1 }, offset[3] = { 4, 2, 1 }, all = N,
	       group = 100;

	set(kernel, 0, sizeof(a), &a);
	set(kernel, 1, sizeof(value), &value);
	launch(queue, kernel, N, 0, NULL, NULL);
	value.a = 99; /* it was frozen */
	clReleaseKernel(kernel);
	kernel = kernel_of(program, "maybe");
	set(kernel, 0, sizeof(b), &b);
	set(kernel, 1, sizeof(none), &none);
	launch(queue, kernel, N / 2, 0, NULL, NULL);
	clReleaseKernel(kernel);
	kernel = kernel_of(program, "add");
	set(kernel, 0, sizeof(a), &a);
	set(kernel, 1, sizeof(b), &b);
	launch(queue, kernel, N, 0, NULL, NULL);
	/* Set once, launched twice. */
	launch(queue, kernel, 10, 0, NULL, NULL);
	/* No work items: some drivers refuse that, so these have no event and no checked result. */
	clEnqueueNDRangeKernel(queue, kernel, 1, NULL, NULL, NULL, 0, NULL, NULL);
	clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &no_items, NULL, 0, NULL, NULL);
	clReleaseKernel(kernel);
	kernel = kernel_of(program, "sums");
	set(kernel, 0, sizeof(b), &b);
	set(kernel, 1, sizeof(a), &a);
	set(kernel, 2, 4 * group, NULL);
	check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &all, &group, 0, NULL, NULL), "sums");
	clReleaseKernel(kernel);
	kernel = kernel_of(program, "lookup");
	set(kernel, 0, sizeof(a), &a);
	set(kernel, 1, sizeof(table), &table);
	launch(queue, kernel, 32, 0, NULL, NULL);
	clReleaseKernel(kernel);
	copy = kernel_of(program, "three");
	set(copy, 0, sizeof(b), &b);
	check(clEnqueueNDRangeKernel(queue, copy, 3, offset, global, local, 0, NULL, NULL),
	      "three");
	clReleaseKernel(copy);
	read_all(a, back);
	read_all(b, back);
	clReleaseMemObject(a);
	clReleaseMemObject(b);
	clReleaseMemObject(table);
}

/* ---- programs ---- */

/* Runs kernel `f` (global uint *) of a program. */
static void run_f(cl_program of, uint32_t expected)
{
	cl_mem a = numbers(1);
	cl_kernel kernel = kernel_of(of, "f");

	set(kernel, 0, sizeof(a), &a);
	launch(queue, kernel, N, 0, NULL, NULL);
	read_all(a, back);
	expect(back[1] == expected, "what f makes");
	clReleaseKernel(kernel);
	clReleaseMemObject(a);
}

static void options(void)
{
	cl_program with = new_program(
		"kernel void f(global uint *to) { to[get_global_id(0)] = FIRST + NUMBER; }\n");
	cl_program bad = new_program("kernel void f(global uint *to) { no such thing; }\n");

	build(with, "-D NUMBER=40 -DFIRST=97 -cl-fast-relaxed-math");
	run_f(with, 137);
	/* Built again, with other options. */
	build(with, "-D NUMBER=41 -D FIRST=99");
	run_f(with, 140);
	expect(clBuildProgram(bad, 0, NULL, "", NULL, NULL) != CL_SUCCESS, "a bad program");
	clReleaseProgram(bad);
	clReleaseProgram(with);
}

/* The caller owns the memory. */
static unsigned char *binary_of(cl_program of, size_t *ret_bytes)
{
	unsigned char *bytes, *all[4] = { NULL };
	size_t sizes[4] = { 0 };

	check(clGetProgramInfo(of, CL_PROGRAM_BINARY_SIZES, sizeof(sizes), sizes, NULL), "sizes");
	for (int i = 0; i < 4; i++)
		all[i] = malloc(sizes[i] + 1);
	check(clGetProgramInfo(of, CL_PROGRAM_BINARIES, sizeof(all), all, NULL), "binaries");
	bytes = all[0];
	for (int i = 1; i < 4; i++)
		free(all[i]);
	*ret_bytes = sizes[0];
	return bytes;
}

static void binaries(void)
{
	cl_program from = new_program(
		"kernel void f(global uint *to) { to[get_global_id(0)] *= 9; }\n"
		"kernel void g(global uint *to, uint x, local uint *l) { to[get_global_id(0)] += x; }\n");
	unsigned char *bytes;
	size_t size;
	cl_program created;
	cl_kernel kernel;
	cl_mem a = numbers(5);
	uint32_t x = 17;
	cl_int rc;

	build(from, NULL);
	bytes = binary_of(from, &size);
	clReleaseProgram(from);
	created = clCreateProgramWithBinary(context, 1, devices, &size,
					    (const unsigned char **)&bytes, NULL, &rc);
	check(rc, "clCreateProgramWithBinary");
	free(bytes);
	check(clBuildProgram(created, 1, devices, NULL, NULL, NULL), "clBuildProgram");
	run_f(created, 36);
	kernel = kernel_of(created, "g");
	/* The kernel keeps its program alive. */
	clReleaseProgram(created);
	set(kernel, 0, sizeof(a), &a);
	set(kernel, 1, sizeof(x), &x);
	set(kernel, 2, 64, NULL);
	launch(queue, kernel, N, 0, NULL, NULL);
	read_all(a, back);
	clReleaseKernel(kernel);
	clReleaseMemObject(a);
}

static void linked(void)
{
	cl_program header = new_program("#define FACTOR 6\nuint twice(uint x);\n");
	cl_program first =
		new_program("#include \"parts.h\"\nkernel void f(global uint *to)\n"
			    "{ to[get_global_id(0)] = twice(to[get_global_id(0)]) * FACTOR; }\n");
	cl_program second =
		new_program("uint twice(uint x);\nuint twice(uint x) { return 2 * x; }\n");
	cl_program programs[2] = { first, second }, all;
	const char *name = "parts.h";
	cl_int rc;

	check(clCompileProgram(first, 0, NULL, NULL, 1, &header, &name, NULL, NULL), "compile");
	check(clCompileProgram(second, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL), "compile");
	all = clLinkProgram(context, 0, NULL, NULL, 2, programs, NULL, NULL, &rc);
	check(rc, "clLinkProgram");
	clReleaseProgram(header);
	clReleaseProgram(first);
	clReleaseProgram(second);
	run_f(all, 48);
	clReleaseProgram(all);
}

/* The file is gone at replay. Its name is the same each time, for the driver's cache. */
static void included(void)
{
	static const char path[] = "opencl_features.d/factor.h";
	cl_program with =
		new_program("/* #include \"not\" */\n  # include \"factor.h\"\n"
			    "kernel void f(global uint *to) { to[get_global_id(0)] *= FACTOR; }\n");
	FILE *file;

	mkdir("opencl_features.d", 0700);
	file = fopen(path, "w");
	expect(file && fputs("#define FACTOR 11\n", file) >= 0 && fclose(file) == 0, "a file");
	build(with, "-I opencl_features.d");
	unlink(path);
	rmdir("opencl_features.d");
	run_f(with, 44);
	clReleaseProgram(with);
}

/* ---- features that cannot be replayed ---- */

static void CL_CALLBACK run_native(void *arguments_)
{
	**(uint32_t **)arguments_ = 5;
}

static void native(void)
{
	uint32_t *mapped = &back[0];
	cl_int rc = clEnqueueNativeKernel(queue, run_native, &mapped, sizeof(mapped), 0, NULL, NULL,
					  0, NULL, NULL);

	if (rc != CL_INVALID_OPERATION)
		check(rc, "clEnqueueNativeKernel");
	check(clFinish(queue), "clFinish");
}

static void fine_svm(void)
{
	uint32_t *a, factor = 3;
	cl_kernel kernel = kernel_of(program, "scale");

	if (has_svm(CL_DEVICE_SVM_FINE_GRAIN_BUFFER)) {
		a = clSVMAlloc(context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, BYTES, 0);
		expect(a != NULL, "clSVMAlloc");
		number(a, N, 1);
		check(clSetKernelArgSVMPointer(kernel, 0, a), "clSetKernelArgSVMPointer");
		set(kernel, 1, sizeof(factor), &factor);
		launch(queue, kernel, N, 0, NULL, NULL);
		check(clFinish(queue), "clFinish");
		mix(a, N);
		clSVMFree(context, a);
	}
	clReleaseKernel(kernel);
}

/* The offset of the third row is 0 in 64 bits, which drivers may accept. */
static void wide_pitches(void)
{
	const size_t zero[3] = { 0, 0, 0 }, third[3] = { 0, 2, 0 }, region[3] = { 16, 1, 1 };
	cl_mem a = numbers(3);
	cl_int rc = clEnqueueReadBufferRect(queue, a, CL_TRUE, third, zero, region, (size_t)1 << 63,
					    0, 0, 0, back, 0, NULL, NULL);

	if (rc != CL_INVALID_VALUE)
		check(rc, "read rect");
	mix(back, N);
	clReleaseMemObject(a);
}

/* A launch with as many buffers as most devices allow; others wait for it, and it waits. */
static void use_many(cl_mem each)
{
	enum { ARGUMENTS = 120 };
	cl_command_queue ooo = new_queue(devices[0], CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	cl_mem a = numbers(1), b = numbers(2);
	cl_event events[2];
	cl_program wide;
	cl_kernel kernel;
	char text[8192] = "kernel void wide(global uint *a0";
	size_t used = strlen(text);

	for (int i = 1; i < ARGUMENTS; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 ", global const uint *a%d", i);
	snprintf(text + used, sizeof(text) - used,
		 ") { a0[get_global_id(0)] *= a1[get_global_id(0) & 255] | 1; }\n");
	wide = new_program(text);
	build(wide, NULL);
	kernel = kernel_of(wide, "wide");
	for (cl_uint i = 0; i < ARGUMENTS; i++)
		set(kernel, i, sizeof(a), i ? &each : &a);
	scale(ooo, b, N, 5, 0, NULL, &events[0]);
	launch(ooo, kernel, N, 1, &events[0], &events[1]);
	check(clEnqueueReadBuffer(ooo, b, CL_TRUE, 0, BYTES, back, 1, &events[1], NULL), "read");
	mix(back, N);
	check(clEnqueueReadBuffer(ooo, a, CL_TRUE, 0, BYTES, back, 1, &events[1], NULL), "read");
	mix(back, N);
	clReleaseEvent(events[0]);
	clReleaseEvent(events[1]);
	clReleaseKernel(kernel);
	clReleaseProgram(wide);
	clReleaseCommandQueue(ooo);
	clReleaseMemObject(a);
	clReleaseMemObject(b);
}

static void many_arguments(void)
{
	cl_mem each = numbers(3);

	use_many(each);
	clReleaseMemObject(each);
}

/* The details of so many views exceed a record of a trace. */
static void many_views(void)
{
	cl_buffer_region where = { 4096, 8192 };
	cl_mem root = numbers(3), each;
	cl_int rc;

	each = clCreateSubBuffer(root, 0, CL_BUFFER_CREATE_TYPE_REGION, &where, &rc);
	check(rc, "clCreateSubBuffer");
	use_many(each);
	clReleaseMemObject(each);
	clReleaseMemObject(root);
}

/* ---- all of them ---- */

static const struct {
	const char *name;
	void (*run)(void);
	bool cannot_be_replayed;
} features[] = {
	{ "copies", copies, false },
	{ "rectangles", rectangles, false },
	{ "views", views, false },
	{ "overlap", overlap, false },
	{ "big", big, false },
	{ "maps", maps, false },
	{ "shared", shared, false },
	{ "hidden", hidden, false },
	{ "svm", svm, false },
	{ "arguments", arguments, false },
	{ "out_of_order", out_of_order, false },
	{ "two_queues", two_queues, false },
	{ "long_waits", long_waits, false },
	{ "user_events", user_events, false },
	{ "callbacks", callbacks, false },
	{ "threads", threads, false },
	{ "options", options, false },
	{ "binaries", binaries, false },
	{ "linked", linked, false },
	{ "included", included, false },
	{ "many_arguments", many_arguments, false },
	{ "pointers", pointers, true },
	{ "native", native, true },
	{ "fine_svm", fine_svm, true },
	{ "wide_pitches", wide_pitches, true },
	{ "many_views", many_views, true },
};
enum { FEATURES = sizeof(features) / sizeof(features[0]) };

static void set_up(void)
{
	cl_int rc;

	feature = "set-up";
	device_count = find_devices(devices, 4);
	context = clCreateContext(NULL, device_count, devices, NULL, NULL, &rc);
	check(rc, "clCreateContext");
	queue = new_queue(devices[0], 0);
	program = new_program(source);
	build(program, "-cl-std=CL1.2");
}

static void run(int i)
{
	feature = features[i].name;
	checksum = UINT64_C(0xcbf29ce484222325);
	memset(data, 0, sizeof(data));
	memset(back, 0, sizeof(back));
	features[i].run();
	check(clFinish(queue), "clFinish");
	printf("%-14s %016" PRIx64 "\n", feature, checksum);
}

static int find_feature(const char *name)
{
	for (int i = 0; i < FEATURES; i++) {
		if (strcmp(features[i].name, name) == 0)
			return i;
	}
	fprintf(stderr, "opencl_features: unknown feature '%s'; --list names them\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (int i = 0; i < FEATURES; i++)
			printf("%s%s\n", features[i].name,
			       features[i].cannot_be_replayed ? " *" : "");
		return 0;
	}
	set_up();
	for (int i = 1; i < argc; i++)
		run(find_feature(argv[i]));
	for (int i = 0; argc == 1 && i < FEATURES; i++) {
		if (!features[i].cannot_be_replayed)
			run(i);
	}
	clReleaseProgram(program);
	clReleaseCommandQueue(queue);
	clReleaseContext(context);
	return 0;
}
