/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests/opencl/mutants.sh: a fixed sequence of commands in which every captured value matters.
 * Each kernel has its own name, so that a script can name the command. Memory is created in the
 * order of enum buffer. Exit code 77 without a device.
 */
#define CL_TARGET_OPENCL_VERSION 120

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl_program.h"

#define WORDS 256u
#define BYTES (WORDS * 4u)

enum buffer { INITIAL, WRITTEN, FILLED, COPIED, MAPPED, VIEWED, PICTURED, LATE, BUFFERS };

static const char *const source =
	"kernel void scale(global uint *v, uint by) { size_t i = get_global_id(0); v[i] = v[i] * by + FACTOR + 17; }\n"
	"kernel void twist(global uint *v) { size_t i = get_global_id(0); v[i] = (v[i] ^ 0x55) + (uint)i; }\n"
	"kernel void sum(global uint *to, global const uint *from) { size_t i = get_global_id(0); to[i] += from[i]; }\n"
	"kernel void tally(global uint *v) { size_t i = get_global_id(0); v[i] = v[i] * 3 + 1; }\n"
	"kernel void edit(global uint *v) { size_t i = get_global_id(0); v[i] += 9; }\n"
	"kernel void part(global uint *v) { size_t i = get_global_id(0); v[i] = ~v[i]; }\n"
	"kernel void turn(global uint *v, local uint *t) {\n"
	"	size_t i = get_local_id(0), n = get_local_size(0);\n"
	"	t[i] = v[get_global_id(0)]; barrier(CLK_LOCAL_MEM_FENCE); v[get_global_id(0)] = t[n - 1 - i];\n"
	"}\n"
	"kernel void look(global uint *v, read_only image2d_t picture, sampler_t how) {\n"
	"	int i = (int)get_global_id(0);\n"
	"	uint4 c = read_imageui(picture, how, (int2)(i % 20 - 2, i / 20));\n"
	"	v[i] += c.x + (c.y << 8) + (c.z << 16) + (c.w << 24);\n"
	"}\n"
	"kernel void produce(global uint *v) { size_t i = get_global_id(0); v[i] = v[i] * 7 + 3; }\n"
	"kernel void consume(global uint *to, global const uint *from) { size_t i = get_global_id(0); to[i] ^= from[i]; }\n";

static cl_context context;
static cl_device_id device;
static cl_command_queue queue, second, third;
static cl_program program;
static cl_mem buffers[BUFFERS];

/* ---- setup ---- */

static cl_command_queue make_queue(cl_command_queue_properties properties)
{
	cl_int code;
	cl_command_queue made = clCreateCommandQueue(context, device, properties, &code);

	check(code, "clCreateCommandQueue");
	return made;
}

static void set_up(void)
{
	uint32_t words[WORDS];
	cl_int code;

	find_devices(&device, 1);
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
	check(code, "clCreateContext");
	queue = make_queue(0);
	second = make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	third = make_queue(0);
	program = clCreateProgramWithSource(context, 1, (const char **)&source, NULL, &code);
	check(code, "clCreateProgramWithSource");
	check(clBuildProgram(program, 0, NULL, "-D FACTOR=5", NULL, NULL), "clBuildProgram");
	for (uint32_t i = 0; i < WORDS; i++)
		words[i] = i * 11 + 1;
	for (int i = 0; i < BUFFERS; i++) {
		buffers[i] = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
					    BYTES, words, &code);
		check(code, "clCreateBuffer");
	}
}

/* ---- commands ---- */

static cl_kernel make_kernel(const char *name, cl_mem first)
{
	cl_int code;
	cl_kernel kernel = clCreateKernel(program, name, &code);

	check(code, name);
	check(clSetKernelArg(kernel, 0, sizeof(first), (const void *)&first), name);
	return kernel;
}

static void launch(cl_command_queue on, cl_kernel kernel, size_t words, size_t local, cl_uint waits,
		   const cl_event *wait, cl_event *event)
{
	check(clEnqueueNDRangeKernel(on, kernel, 1, NULL, &words, local ? &local : NULL, waits,
				     wait, event),
	      "clEnqueueNDRangeKernel");
	clReleaseKernel(kernel);
}

static void launch_plain(const char *name, enum buffer buffer)
{
	launch(queue, make_kernel(name, buffers[buffer]), WORDS, 0, 0, NULL, NULL);
}

static void launch_pair(const char *name, cl_command_queue on, enum buffer to, enum buffer from,
			cl_uint waits, const cl_event *wait)
{
	cl_kernel kernel = make_kernel(name, buffers[to]);

	check(clSetKernelArg(kernel, 1, sizeof(cl_mem), (const void *)&buffers[from]), name);
	launch(on, kernel, WORDS, 0, waits, wait, NULL);
}

static void write_and_fill(void)
{
	static const uint32_t pattern = 0x01020304;
	static uint32_t words[WORDS];

	for (uint32_t i = 0; i < WORDS; i++)
		words[i] = i * i + 3;
	check(clEnqueueWriteBuffer(queue, buffers[WRITTEN], CL_FALSE, 64, BYTES / 2, words, 0, NULL,
				   NULL),
	      "clEnqueueWriteBuffer");
	check(clEnqueueFillBuffer(queue, buffers[FILLED], &pattern, sizeof(pattern), 0, BYTES / 2,
				  0, NULL, NULL),
	      "clEnqueueFillBuffer");
}

static void compute(void)
{
	const cl_uint by = 6;
	cl_kernel scale = make_kernel("scale", buffers[INITIAL]);
	cl_kernel turn = make_kernel("turn", buffers[WRITTEN]);

	check(clSetKernelArg(scale, 1, sizeof(by), &by), "scale");
	launch(queue, scale, WORDS, 0, 0, NULL, NULL);
	launch_plain("twist", INITIAL);
	check(clSetKernelArg(turn, 1, 16 * 4, NULL), "turn");
	launch(queue, turn, WORDS, 16, 0, NULL, NULL);
	launch_pair("sum", queue, FILLED, WRITTEN, 0, NULL);
	check(clEnqueueCopyBuffer(queue, buffers[FILLED], buffers[COPIED], 16, 32, BYTES / 2, 0,
				  NULL, NULL),
	      "clEnqueueCopyBuffer");
	launch_plain("tally", COPIED);
}

/* Every other row of 32 bytes. */
static void copy_rectangle(void)
{
	const size_t from[3] = { 8, 1, 0 }, to[3] = { 0, 2, 0 }, region[3] = { 16, 4, 1 };

	check(clEnqueueCopyBufferRect(queue, buffers[INITIAL], buffers[VIEWED], from, to, region,
				      64, 0, 32, 0, 0, NULL, NULL),
	      "clEnqueueCopyBufferRect");
}

static void write_mapped(void)
{
	cl_int code;
	uint32_t *words = clEnqueueMapBuffer(queue, buffers[MAPPED], CL_TRUE, CL_MAP_WRITE, 128,
					     256, 0, NULL, NULL, &code);

	check(code, "clEnqueueMapBuffer");
	for (uint32_t i = 0; i < 64; i++)
		words[i] = i * 5 + 2;
	check(clEnqueueUnmapMemObject(queue, buffers[MAPPED], words, 0, NULL, NULL),
	      "clEnqueueUnmapMemObject");
	launch_plain("edit", MAPPED);
}

static void use_view(void)
{
	cl_buffer_region region = { .origin = 512, .size = 256 };
	cl_int code;
	cl_mem view = clCreateSubBuffer(buffers[VIEWED], CL_MEM_READ_WRITE,
					CL_BUFFER_CREATE_TYPE_REGION, &region, &code);

	check(code, "clCreateSubBuffer");
	launch(queue, make_kernel("part", view), 64, 0, 0, NULL, NULL);
	clReleaseMemObject(view);
}

/* Also outside of the picture: what is read there depends on the sampler. */
static void look_at_picture(void)
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	const cl_image_desc size = { .image_type = CL_MEM_OBJECT_IMAGE2D,
				     .image_width = 16,
				     .image_height = 8 };
	const size_t origin[3] = { 2, 1, 0 }, region[3] = { 12, 6, 1 };
	static unsigned char pixels[16 * 8 * 4];
	cl_int code;
	cl_sampler sampler;
	cl_kernel kernel;
	cl_mem picture;

	for (size_t i = 0; i < sizeof(pixels); i++)
		pixels[i] = (unsigned char)(i * 7 + 1);
	picture = clCreateImage(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, &format, &size,
				pixels, &code);
	check(code, "clCreateImage");
	sampler = clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP_TO_EDGE, CL_FILTER_NEAREST,
				  &code);
	check(code, "clCreateSampler");
	for (size_t i = 0; i < sizeof(pixels); i++)
		pixels[i] = (unsigned char)(i * 3 + 5);
	check(clEnqueueWriteImage(queue, picture, CL_TRUE, origin, region, 0, 0, pixels, 0, NULL,
				  NULL),
	      "clEnqueueWriteImage");
	kernel = make_kernel("look", buffers[PICTURED]);
	check(clSetKernelArg(kernel, 1, sizeof(picture), (const void *)&picture), "look");
	check(clSetKernelArg(kernel, 2, sizeof(sampler), (const void *)&sampler), "look");
	launch(queue, kernel, 160, 0, 0, NULL, NULL);
	check(clFinish(queue), "clFinish");
	clReleaseSampler(sampler);
	clReleaseMemObject(picture);
}

/*
 * The producer cannot start before the event is set. A consumer that does not wait for it is
 * submitted, and on a device with one worker also done, when the read of another queue ends.
 */
static void depend(void)
{
	uint32_t words[WORDS];
	cl_event user, produced;
	cl_int code;

	check(clFinish(queue), "clFinish");
	user = clCreateUserEvent(context, &code);
	check(code, "clCreateUserEvent");
	launch(queue, make_kernel("produce", buffers[LATE]), WORDS, 0, 1, &user, &produced);
	launch_pair("consume", second, COPIED, LATE, 1, &produced);
	check(clEnqueueReadBuffer(third, buffers[INITIAL], CL_TRUE, 0, BYTES, words, 0, NULL, NULL),
	      "clEnqueueReadBuffer");
	check(clSetUserEventStatus(user, CL_COMPLETE), "clSetUserEventStatus");
	check(clFinish(queue), "clFinish");
	check(clFinish(second), "clFinish");
	clReleaseEvent(user);
	clReleaseEvent(produced);
}

static void print_sums(void)
{
	uint32_t words[WORDS];

	for (int i = 0; i < BUFFERS; i++) {
		uint32_t sum = 0;

		check(clEnqueueReadBuffer(queue, buffers[i], CL_TRUE, 0, BYTES, words, 0, NULL,
					  NULL),
		      "clEnqueueReadBuffer");
		for (uint32_t j = 0; j < WORDS; j++)
			sum = sum * 31 + words[j];
		printf("%08x\n", sum);
		clReleaseMemObject(buffers[i]);
	}
}

static bool has_images(void)
{
	cl_bool has = CL_FALSE;

	clGetDeviceInfo(device, CL_DEVICE_IMAGE_SUPPORT, sizeof(has), &has, NULL);
	return has;
}

int main(void)
{
	set_up();
	write_and_fill();
	compute();
	copy_rectangle();
	write_mapped();
	use_view();
	if (has_images())
		look_at_picture();
	depend();
	print_sums();
	clReleaseProgram(program);
	clReleaseCommandQueue(queue);
	clReleaseCommandQueue(second);
	clReleaseCommandQueue(third);
	clReleaseContext(context);
	return 0;
}
