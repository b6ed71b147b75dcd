/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory that OpenCL uses, too, in ways that a recorder must survive. Each case prints a
 * checksum of its results; nothing is released at the end.
 *
 *	opencl_host_memory CASE...
 *
 * Cases are in the table at the end. Those with steps (TS_STEP 0 to 9) are for windows in the
 * middle. Exit code 1 if a result is wrong, 77 without a device (or what the case needs).
 */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <tracesmith/emit.h>

#include "opencl_program.h"

#define COUNT ((size_t)4096)
#define BYTES (COUNT * sizeof(uint32_t))
#define SIDE ((size_t)64) /* of an image of BYTES bytes */
#define KEY 0x5a5a5a5au
#define STEPS 10

static cl_context context;
static cl_device_id device;
static cl_command_queue queue;
static cl_kernel twist, move, turn;
static uint32_t sum;

static const char *const source =
	"kernel void twist(global uint *data, uint key, uint items)\n"
	"{ size_t i = get_global_id(0); if (i < items) data[i] = (data[i] ^ key) * 3; }\n"
	"kernel void move(global uint *to, global const uint *from)\n"
	"{ size_t i = get_global_id(0); to[i] += from[i]; }\n"
	"kernel void turn(global uint *data, uint rounds)\n"
	"{ uint x = data[0]; while (rounds--) x = x * 1664525 + 1013904223; data[0] = x; }\n";
static const char *const image_source =
	"kernel void paint(write_only image2d_t to, uint key)\n"
	"{ int2 at = (int2)(get_global_id(0), get_global_id(1));\n"
	"  write_imageui(to, at, (uint4)(at.x + key, at.y, key, at.x ^ at.y) & 255); }\n";

static cl_program build(const char *text)
{
	cl_int code;
	cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &code);

	check(code, "clCreateProgramWithSource");
	check(clBuildProgram(program, 0, NULL, NULL, NULL, NULL), "clBuildProgram");
	return program;
}

static void set_up(void)
{
	cl_program program;
	cl_int code;

	find_devices(&device, 1);
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
	check(code, "clCreateContext");
	queue = clCreateCommandQueue(context, device, 0, &code);
	check(code, "clCreateCommandQueue");
	program = build(source);
	twist = clCreateKernel(program, "twist", &code);
	check(code, "clCreateKernel");
	move = clCreateKernel(program, "move", &code);
	check(code, "clCreateKernel");
	turn = clCreateKernel(program, "turn", &code);
	check(code, "clCreateKernel");
}

/* ---- helpers ---- */

static void fill(uint32_t *data, uint32_t seed)
{
	for (size_t i = 0; i < COUNT; i++)
		data[i] = seed + (uint32_t)i * 2654435761u;
}

static void add_to_sum(const uint32_t *data)
{
	for (size_t i = 0; i < COUNT; i++)
		sum = sum * 31 + data[i];
}

static uint32_t *map_memory(void)
{
	uint32_t *data =
		mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (data == MAP_FAILED)
		check(CL_OUT_OF_HOST_MEMORY, "mmap");
	return data;
}

static cl_mem make_buffer(cl_mem_flags flags, void *host)
{
	cl_int code;
	cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | flags, BYTES, host, &code);

	check(code, "clCreateBuffer");
	return buffer;
}

static cl_mem make_zeros(void)
{
	static const uint32_t zeros[COUNT];

	return make_buffer(CL_MEM_COPY_HOST_PTR, (void *)(uintptr_t)zeros);
}

static void set_twist(cl_mem buffer, cl_uint items)
{
	const cl_uint key = KEY;

	check(clSetKernelArg(twist, 0, sizeof(cl_mem), (const void *)&buffer), "clSetKernelArg");
	check(clSetKernelArg(twist, 1, sizeof(key), &key), "clSetKernelArg");
	check(clSetKernelArg(twist, 2, sizeof(items), &items), "clSetKernelArg");
}

static void launch_twist(cl_mem buffer, cl_uint items)
{
	const size_t all = COUNT;

	set_twist(buffer, items);
	check(clEnqueueNDRangeKernel(queue, twist, 1, NULL, &all, NULL, 0, NULL, NULL),
	      "clEnqueueNDRangeKernel");
}

static void launch_move(cl_mem to, cl_mem from)
{
	const size_t all = COUNT;

	check(clSetKernelArg(move, 0, sizeof(cl_mem), (const void *)&to), "clSetKernelArg");
	check(clSetKernelArg(move, 1, sizeof(cl_mem), (const void *)&from), "clSetKernelArg");
	check(clEnqueueNDRangeKernel(queue, move, 1, NULL, &all, NULL, 0, NULL, NULL),
	      "clEnqueueNDRangeKernel");
}

static uint32_t *map(cl_mem buffer, cl_map_flags flags, size_t offset, size_t bytes)
{
	cl_int code;
	void *at = clEnqueueMapBuffer(queue, buffer, CL_TRUE, flags, offset, bytes, 0, NULL, NULL,
				      &code);

	check(code, "clEnqueueMapBuffer");
	return at;
}

static void unmap(cl_mem buffer, void *at)
{
	check(clEnqueueUnmapMemObject(queue, buffer, at, 0, NULL, NULL), "clEnqueueUnmapMemObject");
}

static void finish(void)
{
	check(clFinish(queue), "clFinish");
}

static void read_and_sum(cl_mem buffer)
{
	static uint32_t back[COUNT];

	check(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, BYTES, back, 0, NULL, NULL),
	      "clEnqueueReadBuffer");
	add_to_sum(back);
}

/* A kernel on memory of the host, and what it left there. */
static void use(uint32_t *data)
{
	cl_mem buffer = make_buffer(CL_MEM_USE_HOST_PTR, data);

	fill(data, 1);
	launch_twist(buffer, COUNT);
	finish();
	fill(data, 2);
	launch_twist(buffer, COUNT);
	add_to_sum(map(buffer, CL_MAP_READ, 0, BYTES));
}

/* The same with an image; the kernel writes its left half. */
static void use_image(uint32_t *data)
{
	const size_t half[] = { SIDE / 2, SIDE }, all[] = { SIDE, SIDE, 1 }, nowhere[3] = { 0 };
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	const cl_image_desc description = { .image_type = CL_MEM_OBJECT_IMAGE2D,
					    .image_width = SIDE,
					    .image_height = SIDE };
	cl_mem image, other = make_zeros();
	cl_kernel paint;
	size_t row;
	cl_int code;

	fill(data, 1);
	image = clCreateImage(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, &format,
			      &description, data, &code);
	check(code, "clCreateImage");
	paint = clCreateKernel(build(image_source), "paint", &code);
	check(code, "clCreateKernel");
	for (cl_uint key = 1; key < 3; key++) {
		fill(data, key);
		check(clSetKernelArg(paint, 0, sizeof(cl_mem), (const void *)&image), "argument");
		check(clSetKernelArg(paint, 1, sizeof(key), &key), "argument");
		check(clEnqueueNDRangeKernel(queue, paint, 2, NULL, half, NULL, 0, NULL, NULL),
		      "clEnqueueNDRangeKernel");
		check(clEnqueueCopyImageToBuffer(queue, image, other, nowhere, all, 0, 0, NULL,
						 NULL),
		      "clEnqueueCopyImageToBuffer");
		finish();
	}
	add_to_sum(clEnqueueMapImage(queue, image, CL_TRUE, CL_MAP_READ, nowhere, all, &row, NULL,
				     0, NULL, NULL, &code));
	check(code, "clEnqueueMapImage");
	read_and_sum(other);
}

static void need_images(void)
{
	cl_bool can = CL_FALSE;

	clGetDeviceInfo(device, CL_DEVICE_IMAGE_SUPPORT, sizeof(can), &can, NULL);
	if (!can)
		skip("no images");
}

/* ---- memory that is gone at exit ---- */

static void run_unmapped(void)
{
	uint32_t *data = map_memory();

	use(data);
	munmap(data, BYTES);
}

static void run_image_unmapped(void)
{
	uint32_t *data;

	need_images();
	data = map_memory();
	use_image(data);
	munmap(data, BYTES);
}

static void run_protected(void)
{
	uint32_t *data = map_memory();

	use(data);
	mprotect((char *)data + 4096, 4096, PROT_NONE);
}

/* Never inlined: its stack is reused. */
__attribute__((noinline)) static void use_stack(void)
{
	uint32_t data[COUNT];

	use(data);
}

__attribute__((noinline)) static void use_stack_image(void)
{
	uint32_t data[COUNT];

	use_image(data);
}

__attribute__((noinline)) static void reuse_stack(void)
{
	volatile uint32_t data[COUNT + 1024];

	for (size_t i = 0; i < COUNT + 1024; i++)
		data[i] = 0xdeadbeef;
	(void)data[0];
}

static void run_stack(void)
{
	use_stack();
	reuse_stack();
}

static void run_image_stack(void)
{
	need_images();
	use_stack_image();
	reuse_stack();
}

/* The program does not wait, but sees in the memory that the kernel is done. */
static void run_polled(void)
{
	uint32_t *data = map_memory();
	volatile uint32_t *last = &data[COUNT - 1];
	cl_mem buffer;

	fill(data, 3);
	buffer = make_buffer(CL_MEM_USE_HOST_PTR, data);
	launch_twist(buffer, COUNT);
	check(clFlush(queue), "clFlush");
	for (size_t i = 0; i < COUNT; i++) {
		uint32_t expected = ((3 + (uint32_t)i * 2654435761u) ^ KEY) * 3;

		last = &data[i];
		while (*last != expected)
			;
	}
	add_to_sum(data);
	munmap(data, BYTES);
}

/* ---- memory that another thread takes away ---- */

static atomic_bool is_done;

static void *come_and_go(void *data)
{
	while (!atomic_load(&is_done)) {
		mprotect(data, BYTES, PROT_NONE);
		mprotect(data, BYTES, PROT_READ | PROT_WRITE);
	}
	return NULL;
}

/* Kernels have it as an argument, and do not touch it. */
static void run_thread(void)
{
	uint32_t *data = map_memory();
	cl_mem buffer, other = make_zeros();
	pthread_t thread;

	fill(data, 4);
	buffer = make_buffer(CL_MEM_USE_HOST_PTR, data);
	if (pthread_create(&thread, NULL, come_and_go, data))
		check(CL_OUT_OF_HOST_MEMORY, "pthread_create");
	for (int i = 0; i < 60; i++) {
		launch_twist(buffer, 0);
		launch_twist(other, COUNT);
		if (i % 10 == 9)
			finish();
	}
	atomic_store(&is_done, true);
	pthread_join(thread, NULL);
	read_and_sum(other);
}

/* ---- maps that stay open ---- */

/* Mapped once for ever; commands copy from the pointer, and use the buffer itself. */
static void run_pinned(void)
{
	cl_mem staging = make_buffer(CL_MEM_ALLOC_HOST_PTR, NULL), other = make_zeros();
	uint32_t *host = map(staging, CL_MAP_READ | CL_MAP_WRITE, 0, BYTES);

	for (uint32_t step = 0; step < STEPS; step++) {
		TS_STEP(step);
		fill(host, step);
		check(clEnqueueWriteBuffer(queue, other, CL_FALSE, 0, BYTES, host, 0, NULL, NULL),
		      "clEnqueueWriteBuffer");
		finish();
		host[step * 100] = 77;
		launch_move(other, staging);
		launch_twist(other, COUNT);
		check(clEnqueueReadBuffer(queue, other, CL_TRUE, 0, BYTES, host, 0, NULL, NULL),
		      "clEnqueueReadBuffer");
		add_to_sum(host);
	}
}

/* As above, in overlapping parts; the second one is unmapped in the middle. */
static void run_parts(void)
{
	cl_mem buffer = make_zeros(), other = make_zeros();
	uint32_t *first = map(buffer, CL_MAP_WRITE, 0, BYTES / 2);
	uint32_t *second = map(buffer, CL_MAP_WRITE, BYTES / 4, BYTES / 2);

	for (uint32_t step = 0; step < STEPS; step++) {
		TS_STEP(step);
		first[step] = step + 1;
		if (second)
			second[COUNT / 2 - 1 - step] = step + 1;
		launch_move(other, buffer);
		finish();
		if (step == 5) {
			unmap(buffer, second);
			second = NULL;
		}
	}
	read_and_sum(other);
}

/* Mapped inside a window and written, also after the last command; never unmapped. */
static void run_kept(void)
{
	cl_mem buffer = make_zeros(), other = make_zeros();
	uint32_t *host;

	launch_twist(buffer, COUNT);
	host = map(buffer, CL_MAP_READ | CL_MAP_WRITE, BYTES / 4, BYTES / 4);
	host[0] = 1;
	launch_move(other, buffer);
	read_and_sum(other);
	host[1] = 2;
	/* This one is never used. */
	map(other, CL_MAP_WRITE, BYTES / 2, 64)[0] = 3;
}

/* The same for reading, before and inside a window. */
static void run_reading(void)
{
	cl_mem buffer = make_zeros(), other = make_zeros();

	launch_twist(buffer, COUNT);
	for (uint32_t step = 0; step < STEPS; step++) {
		TS_STEP(step);
		if (step % 4 == 0)
			add_to_sum(map(buffer, CL_MAP_READ, 0, BYTES));
		launch_move(other, buffer);
		finish();
	}
	read_and_sum(other);
}

/* Shared virtual memory, mapped once for ever. */
static void run_svm(void)
{
	cl_device_svm_capabilities can = 0;
	const size_t all = COUNT;
	cl_mem other = make_zeros();
	uint32_t *data;

	clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof(can), &can, NULL);
	data = can & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER
		       ? clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0)
		       : NULL;
	if (!data)
		skip("no shared virtual memory");
	check(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, data, BYTES, 0, NULL,
			      NULL),
	      "clEnqueueSVMMap");
	for (uint32_t step = 0; step < STEPS; step++) {
		TS_STEP(step);
		fill(data, step);
		check(clSetKernelArg(move, 0, sizeof(cl_mem), (const void *)&other),
		      "clSetKernelArg");
		check(clSetKernelArgSVMPointer(move, 1, data), "clSetKernelArgSVMPointer");
		check(clEnqueueNDRangeKernel(queue, move, 1, NULL, &all, NULL, 0, NULL, NULL),
		      "clEnqueueNDRangeKernel");
		finish();
	}
	read_and_sum(other);
}

/* ---- host memory that is gone when a window opens ---- */

static void run_lost(void)
{
	cl_mem other = make_zeros();
	uint32_t *data = map_memory();

	use(data);
	munmap(data, BYTES);
	for (uint32_t step = 0; step < STEPS; step++) {
		TS_STEP(step);
		launch_twist(other, COUNT);
		finish();
	}
	read_and_sum(other);
}

/* Buffers that stay: a kernel writes all of them, then something a part. */
static void run_stays(void)
{
	cl_mem buffers[] = { make_zeros(), make_zeros(), make_zeros() };
	uint32_t *part;

	for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
		launch_twist(buffers[i], COUNT);
	finish();
	check(clEnqueueWriteBuffer(queue, buffers[0], CL_TRUE, 64, sizeof(sum), &sum, 0, NULL,
				   NULL),
	      "clEnqueueWriteBuffer");
	part = map(buffers[1], CL_MAP_WRITE, BYTES / 2, 64);
	part[3] = 3;
	unmap(buffers[1], part);
	for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
		read_and_sum(buffers[i]);
}

/* Memory that the host may not read, and a command that waits for the program. */
static void run_hidden(void)
{
	cl_mem hidden = make_buffer(CL_MEM_HOST_NO_ACCESS, NULL), seen = make_zeros();
	cl_event go;
	cl_int code;

	go = clCreateUserEvent(context, &code);
	check(code, "clCreateUserEvent");
	check(clEnqueueCopyBuffer(queue, seen, hidden, 0, 0, BYTES, 1, &go, NULL),
	      "clEnqueueCopyBuffer");
	launch_twist(hidden, COUNT);
	check(clSetUserEventStatus(go, CL_COMPLETE), "clSetUserEventStatus");
	clReleaseEvent(go);
	finish();
	check(clEnqueueCopyBuffer(queue, hidden, seen, 0, 0, BYTES, 0, NULL, NULL),
	      "clEnqueueCopyBuffer");
	read_and_sum(seen);
}

/* Two queues take turns to write the same memory: each waits for the other's command alone. */
static void run_turns(void)
{
	cl_command_queue all[2] = { queue };
	cl_mem shared = make_zeros();
	cl_event before = NULL, after;
	cl_int code;

	all[1] = clCreateCommandQueue(context, device, 0, &code);
	check(code, "clCreateCommandQueue");
	set_twist(shared, COUNT);
	for (int i = 0; i < 64; i++) {
		check(clEnqueueNDRangeKernel(all[i % 2], twist, 1, NULL, &(size_t){ COUNT }, NULL,
					     before ? 1 : 0, before ? &before : NULL, &after),
		      "clEnqueueNDRangeKernel");
		clFlush(all[i % 2]);
		if (before)
			clReleaseEvent(before);
		before = after;
	}
	check(clWaitForEvents(1, &before), "clWaitForEvents");
	clReleaseEvent(before);
	read_and_sum(shared);
}

/* A kernel that takes a while. */
static void launch_turn(cl_mem buffer)
{
	const cl_uint rounds = 50000000;

	check(clSetKernelArg(turn, 0, sizeof(cl_mem), (const void *)&buffer), "argument");
	check(clSetKernelArg(turn, 1, sizeof(rounds), &rounds), "argument");
	check(clEnqueueNDRangeKernel(queue, turn, 1, NULL, &(size_t){ 1 }, NULL, 0, NULL, NULL),
	      "clEnqueueNDRangeKernel");
}

/*
 * Memory that is large (a recorder reads it at once) is released while another queue still waits
 * for what was written before it.
 */
static void run_overtaken(void)
{
	cl_mem shared = make_zeros(), slow = make_zeros(), large;
	cl_command_queue other;
	cl_event before;
	cl_int code;

	large = clCreateBuffer(context, CL_MEM_READ_WRITE, 64 * BYTES, NULL, &code);
	check(code, "clCreateBuffer");
	other = clCreateCommandQueue(context, device, 0, &code);
	check(code, "clCreateCommandQueue");
	set_twist(shared, COUNT);
	check(clEnqueueNDRangeKernel(queue, twist, 1, NULL, &(size_t){ COUNT }, NULL, 0, NULL,
				     &before),
	      "clEnqueueNDRangeKernel");
	launch_twist(large, COUNT);
	launch_turn(slow);
	clFlush(queue);
	set_twist(shared, COUNT);
	check(clEnqueueNDRangeKernel(other, twist, 1, NULL, &(size_t){ COUNT }, NULL, 1, &before,
				     NULL),
	      "clEnqueueNDRangeKernel");
	clReleaseMemObject(large);
	clReleaseEvent(before);
	check(clFinish(other), "clFinish");
	read_and_sum(slow);
	read_and_sum(shared);
}

/* Many commands in queues that are released at once, like the memory that they write. */
static void run_released(void)
{
	cl_command_queue all = queue;
	cl_mem shared = make_zeros();
	cl_event last;
	cl_int code;

	for (int round = 0; round < 2; round++) {
		cl_mem own = make_zeros();

		queue = clCreateCommandQueue(context, device, 0, &code);
		check(code, "clCreateCommandQueue");
		for (int i = 0; i < 270; i++)
			launch_twist(i % 3 ? own : shared, COUNT);
		check(clEnqueueMarkerWithWaitList(queue, 0, NULL, &last),
		      "clEnqueueMarkerWithWaitList");
		check(clEnqueueBarrierWithWaitList(all, 1, &last, NULL),
		      "clEnqueueBarrierWithWaitList");
		clFlush(queue);
		clReleaseEvent(last);
		clReleaseMemObject(own);
		clReleaseCommandQueue(queue);
		queue = all;
		launch_twist(shared, COUNT);
		finish();
	}
	read_and_sum(shared);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "unmapped", run_unmapped },
	{ "protected", run_protected },
	{ "stack", run_stack },
	{ "polled", run_polled },
	{ "thread", run_thread },
	{ "pinned", run_pinned },
	{ "parts", run_parts },
	{ "kept", run_kept },
	{ "reading", run_reading },
	{ "svm", run_svm },
	{ "lost", run_lost },
	{ "stays", run_stays },
	{ "hidden", run_hidden },
	{ "turns", run_turns },
	{ "overtaken", run_overtaken },
	{ "released", run_released },
	{ "image_unmapped", run_image_unmapped },
	{ "image_stack", run_image_stack },
};

static int run(const char *name)
{
	size_t i = 0;

	while (i < sizeof(cases) / sizeof(cases[0]) && strcmp(name, cases[i].name) != 0)
		i++;
	if (i == sizeof(cases) / sizeof(cases[0])) {
		fputs("usage: opencl_host_memory CASE...\n", stderr);
		return 2;
	}
	cases[i].run();
	printf("%s: %08x\n", name, sum);
	return 0;
}

int main(int argc, char **argv)
{
	int rc = 0;

	set_up();
	for (int i = 1; i < argc && !rc; i++)
		rc = run(argv[i]);
	return rc;
}
