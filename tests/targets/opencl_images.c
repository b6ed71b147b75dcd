/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images and samplers (docs/replay.md, 2.4), one small function each:
 *
 *	opencl_images             all
 *	opencl_images map fills   these
 *	opencl_images --list      names
 *	opencl_images --steps     each in a step of its own (TS_STEP), with images that exist before
 *	                          the first and are used in all
 *
 * Prints a checksum for each, the same in each run. Exit code 1 if a result is wrong, 77 without a
 * device that has images.
 */
#define CL_TARGET_OPENCL_VERSION 200
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/emit.h>

#include "opencl_program.h"

enum { WIDTH = 21, HEIGHT = 13, DEPTH = 5 };
enum { MOST = 64 * 64 * 8 * 16 };

static cl_context context;
static cl_device_id device;
static cl_command_queue queue;
static cl_program program, program_2;
static uint64_t checksum;
static uint32_t state = 1;
static cl_mem lasting_2d, lasting_3d;

static const char *const source =
	"constant sampler_t plain = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;\n"
	"kernel void copy_f(read_only image2d_t from, write_only image2d_t to) {\n"
	"	int2 at = (int2)(get_global_id(0), get_global_id(1)); write_imagef(to, at, read_imagef(from, plain, at)); }\n"
	"kernel void copy_u(read_only image2d_t from, write_only image2d_t to) {\n"
	"	int2 at = (int2)(get_global_id(0), get_global_id(1)); write_imageui(to, at, read_imageui(from, plain, at)); }\n"
	"kernel void copy_i(read_only image2d_t from, write_only image2d_t to) {\n"
	"	int2 at = (int2)(get_global_id(0), get_global_id(1)); write_imagei(to, at, read_imagei(from, plain, at)); }\n"
	"kernel void flip(read_only image2d_t from, write_only image2d_t to) {\n"
	"	int2 at = (int2)(get_global_id(0), get_global_id(1));\n"
	"	write_imageui(to, (int2)(get_image_width(from) - 1 - at.x, at.y), read_imageui(from, plain, at)); }\n"
	"kernel void sum_3d(read_only image3d_t from, global uint *to) {\n"
	"	int4 at = (int4)(get_global_id(0), get_global_id(1), get_global_id(2), 0);\n"
	"	uint4 v = read_imageui(from, plain, at);\n"
	"	to[at.x + get_global_size(0) * (at.y + get_global_size(1) * at.z)] = v.x + 3 * v.y + 5 * v.z + 7 * v.w; }\n"
	"kernel void sample(read_only image2d_t from, sampler_t how, global float4 *to, float scale) {\n"
	"	size_t i = get_global_id(0); float2 at = (float2)((float)i * 0.75f - 8.0f, (float)i * 0.5f - 4.0f) * scale;\n"
	"	to[i] = read_imagef(from, how, at); }\n"
	"kernel void number_1d(write_only image1d_buffer_t to, uint first) {\n"
	"	write_imageui(to, get_global_id(0), (uint4)(first + get_global_id(0), 2, 3, 4)); }\n"
	"kernel void double_values(global uint *data) { data[get_global_id(0)] *= 2; }\n";

static const char *const source_2 =
	"kernel void add_one(read_write image2d_t image) { int2 at = (int2)(get_global_id(0), get_global_id(1));\n"
	"	uint4 value = read_imageui(image, at); write_imageui(image, at, value + 1); }\n";

/* ---- helpers ---- */

static void mix(const void *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		checksum = (checksum ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
}

static uint32_t next_random(void)
{
	state = state * 1664525u + 1013904223u;
	return state >> 8;
}

/* Random bytes, without those that would make NaN of a float or half: these may change. */
static unsigned char *random_bytes(void)
{
	static unsigned char data[MOST];

	for (size_t i = 0; i < MOST; i++)
		data[i] = next_random() % 0x38;
	return data;
}

static cl_image_desc description(cl_mem_object_type type, size_t x, size_t y, size_t z)
{
	cl_image_desc desc = { .image_type = type, .image_width = x };

	if (type == CL_MEM_OBJECT_IMAGE1D_ARRAY)
		desc.image_array_size = y;
	if (type == CL_MEM_OBJECT_IMAGE2D || type == CL_MEM_OBJECT_IMAGE2D_ARRAY ||
	    type == CL_MEM_OBJECT_IMAGE3D)
		desc.image_height = y;
	if (type == CL_MEM_OBJECT_IMAGE2D_ARRAY)
		desc.image_array_size = z;
	if (type == CL_MEM_OBJECT_IMAGE3D)
		desc.image_depth = z;
	return desc;
}

static cl_mem make(cl_mem_flags flags, cl_channel_order order, cl_channel_type data,
		   const cl_image_desc *desc, void *host)
{
	cl_image_format format = { order, data };
	cl_int rc;
	cl_mem image = clCreateImage(context, flags, &format, desc, host, &rc);

	check(rc, "clCreateImage");
	return image;
}

static cl_mem make_2d(cl_mem_flags flags, cl_channel_order order, cl_channel_type data)
{
	cl_image_desc desc = description(CL_MEM_OBJECT_IMAGE2D, WIDTH, HEIGHT, 1);

	return make(flags, order, data, &desc, NULL);
}

static const size_t zero[3], all_2d[3] = { WIDTH, HEIGHT, 1 };

static void write_all(cl_mem image, const size_t *size, const void *data)
{
	check(clEnqueueWriteImage(queue, image, CL_TRUE, zero, size, 0, 0, data, 0, NULL, NULL),
	      "clEnqueueWriteImage");
}

/* Reads it and adds it to the checksum. */
static const unsigned char *read_all(cl_mem image, const size_t *size, size_t element)
{
	static unsigned char data[MOST];

	check(clEnqueueReadImage(queue, image, CL_TRUE, zero, size, 0, 0, data, 0, NULL, NULL),
	      "clEnqueueReadImage");
	mix(data, size[0] * size[1] * size[2] * element);
	return data;
}

static void launch(cl_kernel kernel, cl_uint dimensions, const size_t *global)
{
	check(clEnqueueNDRangeKernel(queue, kernel, dimensions, NULL, global, NULL, 0, NULL, NULL),
	      "clEnqueueNDRangeKernel");
	clReleaseKernel(kernel);
}

static void run_on_two(const char *name, cl_mem from, cl_mem to)
{
	cl_kernel kernel = kernel_of(program, name);

	set(kernel, 0, sizeof(from), &from);
	set(kernel, 1, sizeof(to), &to);
	launch(kernel, 2, all_2d);
}

static bool is_supported(cl_mem_object_type type, cl_channel_order order, cl_channel_type data)
{
	cl_image_format formats[512];
	cl_uint count = 0;

	clGetSupportedImageFormats(context, CL_MEM_READ_WRITE, type, 512, formats, &count);
	for (cl_uint i = 0; i < count && i < 512; i++)
		if (formats[i].image_channel_order == order &&
		    formats[i].image_channel_data_type == data)
			return true;
	return false;
}

/* ---- features ---- */

/* Each type, with initial content that has pitches; then a region of it with others. */
static void run_types(void)
{
	static const struct {
		cl_mem_object_type type;
		size_t size[3], at[3], part[3];
	} types[] = {
		{ CL_MEM_OBJECT_IMAGE1D, { WIDTH, 1, 1 }, { 3, 0, 0 }, { 7, 1, 1 } },
		{ CL_MEM_OBJECT_IMAGE1D_ARRAY, { WIDTH, 4, 1 }, { 3, 1, 0 }, { 7, 2, 1 } },
		{ CL_MEM_OBJECT_IMAGE2D, { WIDTH, HEIGHT, 1 }, { 3, 2, 0 }, { 7, 5, 1 } },
		{ CL_MEM_OBJECT_IMAGE2D_ARRAY, { WIDTH, HEIGHT, 3 }, { 3, 2, 1 }, { 7, 5, 2 } },
		{ CL_MEM_OBJECT_IMAGE3D, { WIDTH, HEIGHT, DEPTH }, { 3, 2, 1 }, { 7, 5, 3 } },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		cl_image_desc desc = description(types[i].type, types[i].size[0], types[i].size[1],
						 types[i].size[2]);
		bool has_rows = types[i].size[1] > 1 &&
				types[i].type != CL_MEM_OBJECT_IMAGE1D_ARRAY;
		size_t row = has_rows ? 40 : 0, slice = types[i].size[2] > 1 ? 40 * 6 : 0;
		unsigned char to[MOST];
		cl_mem image;

		if (has_rows)
			desc.image_row_pitch = WIDTH * 4 + 12;
		if (types[i].size[2] > 1)
			desc.image_slice_pitch = (WIDTH * 4 + 12) * (HEIGHT + 1);
		image = make(CL_MEM_COPY_HOST_PTR, CL_RGBA, CL_UNSIGNED_INT8, &desc,
			     random_bytes());
		read_all(image, types[i].size, 4);
		check(clEnqueueWriteImage(queue, image, CL_TRUE, types[i].at, types[i].part, row,
					  slice, random_bytes(), 0, NULL, NULL),
		      "write of a part");
		memset(to, 7, sizeof(to));
		check(clEnqueueReadImage(queue, image, CL_TRUE, types[i].at, types[i].part, row,
					 slice, to, 0, NULL, NULL),
		      "read of a part");
		mix(to, 1024);
		read_all(image, types[i].size, 4);
		clReleaseMemObject(image);
	}
}

/* Formats that the device has, through a kernel. */
static void run_formats(void)
{
	static const struct {
		cl_channel_order order;
		cl_channel_type data;
		size_t element;
		const char *kernel;
	} formats[] = {
		{ CL_R, CL_UNORM_INT8, 1, "copy_f" },
		{ CL_RG, CL_UNORM_INT8, 2, "copy_f" },
		{ CL_RGBA, CL_UNORM_INT8, 4, "copy_f" },
		{ CL_BGRA, CL_UNORM_INT8, 4, "copy_f" },
		{ CL_RGBA, CL_SNORM_INT8, 4, "copy_f" },
		{ CL_RGBA, CL_UNORM_INT16, 8, "copy_f" },
		{ CL_RGB, CL_UNORM_SHORT_565, 2, "copy_f" },
		{ CL_RGB, CL_UNORM_INT_101010, 4, "copy_f" },
		{ CL_INTENSITY, CL_FLOAT, 4, "copy_f" },
		{ CL_LUMINANCE, CL_UNORM_INT8, 1, "copy_f" },
		{ CL_A, CL_UNORM_INT8, 1, "copy_f" },
		{ CL_RGBA, CL_HALF_FLOAT, 8, "copy_f" },
		{ CL_R, CL_FLOAT, 4, "copy_f" },
		{ CL_RGBA, CL_FLOAT, 16, "copy_f" },
		{ CL_R, CL_UNSIGNED_INT8, 1, "copy_u" },
		{ CL_RG, CL_UNSIGNED_INT16, 4, "copy_u" },
		{ CL_RGBA, CL_UNSIGNED_INT32, 16, "copy_u" },
		{ CL_R, CL_SIGNED_INT16, 2, "copy_i" },
		{ CL_RGBA, CL_SIGNED_INT32, 16, "copy_i" },
		{ CL_sRGBA, CL_UNORM_INT8, 4, "copy_f" },
	};

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		cl_mem from, to;

		if (!is_supported(CL_MEM_OBJECT_IMAGE2D, formats[i].order, formats[i].data))
			continue;
		from = make_2d(CL_MEM_READ_ONLY, formats[i].order, formats[i].data);
		to = make_2d(CL_MEM_WRITE_ONLY, formats[i].order, formats[i].data);
		write_all(from, all_2d, random_bytes());
		run_on_two(formats[i].kernel, from, to);
		clFinish(queue);
		read_all(to, all_2d, formats[i].element);
		clReleaseMemObject(from);
		clReleaseMemObject(to);
	}
}

static void run_fills(void)
{
	static const size_t at[3] = { 2, 3, 0 }, part[3] = { 5, 4, 1 }, nearly[3] = { 1, 1, 1 },
			    volume[3] = { 9, 8, 3 }, size_3d[3] = { WIDTH, HEIGHT, DEPTH };
	static const cl_float reals[4] = { 0.25f, 0.5f, 0.75f, 1.0f };
	static const cl_uint numbers[4] = { 10, 20, 300, 40000 };
	static const cl_int signeds[4] = { -1, -2, 3, -40 };
	cl_mem unorm = make_2d(CL_MEM_READ_WRITE, CL_RGBA, CL_UNORM_INT8);
	cl_mem integers = make_2d(CL_MEM_READ_WRITE, CL_R, CL_SIGNED_INT32);
	cl_image_desc desc = description(CL_MEM_OBJECT_IMAGE3D, WIDTH, HEIGHT, DEPTH);
	cl_mem space = make(CL_MEM_READ_WRITE, CL_RGBA, CL_UNSIGNED_INT32, &desc, NULL);

	write_all(unorm, all_2d, random_bytes());
	write_all(space, size_3d, random_bytes());
	check(clEnqueueFillImage(queue, unorm, reals, at, part, 0, NULL, NULL), "fill");
	check(clEnqueueFillImage(queue, unorm, reals, zero, nearly, 0, NULL, NULL), "fill");
	check(clEnqueueFillImage(queue, integers, signeds, zero, all_2d, 0, NULL, NULL), "fill");
	check(clEnqueueFillImage(queue, space, numbers, nearly, volume, 0, NULL, NULL), "fill");
	read_all(unorm, all_2d, 4);
	read_all(integers, all_2d, 4);
	read_all(space, size_3d, 16);
	clReleaseMemObject(unorm);
	clReleaseMemObject(integers);
	clReleaseMemObject(space);
}

/* More than a check reads at a time: rows of an image, and layers. */
static void run_large(void)
{
	static const size_t at[3] = { 3, 190, 0 }, part[3] = { 200, 100, 1 },
			    layers[3] = { 250, 200, 6 }, some[3] = { 250, 200, 2 },
			    large[3] = { 700, 500, 1 }, rows[3] = { 700, 150, 1 };
	static const cl_uint numbers[4] = { 10, 20, 30, 40 };
	cl_image_desc desc = description(CL_MEM_OBJECT_IMAGE2D_ARRAY, 250, 200, 6);
	cl_mem array = make(CL_MEM_READ_WRITE, CL_RGBA, CL_UNSIGNED_INT8, &desc, NULL);
	cl_mem image;

	desc = description(CL_MEM_OBJECT_IMAGE2D, 700, 500, 1);
	image = make(CL_MEM_READ_WRITE, CL_RGBA, CL_UNSIGNED_INT8, &desc, NULL);
	check(clEnqueueFillImage(queue, array, numbers, zero, layers, 0, NULL, NULL), "fill");
	check(clEnqueueFillImage(queue, image, numbers, zero, large, 0, NULL, NULL), "fill");
	write_all(array, some, random_bytes());
	write_all(image, rows, random_bytes());
	check(clEnqueueCopyImage(queue, image, array, at, zero, part, 0, NULL, NULL), "copy");
	check(clEnqueueCopyImage(queue, array, image, zero, at, part, 0, NULL, NULL), "copy");
	read_all(array, some, 4);
	read_all(image, rows, 4);
	clReleaseMemObject(array);
	clReleaseMemObject(image);
}

static void run_copies(void)
{
	static const size_t at[3] = { 2, 3, 0 }, to[3] = { 9, 1, 0 }, part[3] = { 5, 4, 1 },
			    layer[3] = { 9, 1, 2 }, size_3d[3] = { WIDTH, HEIGHT, DEPTH };
	cl_mem one = make_2d(CL_MEM_READ_WRITE, CL_RGBA, CL_UNSIGNED_INT8);
	cl_mem two = make_2d(CL_MEM_READ_WRITE, CL_RGBA, CL_UNSIGNED_INT8);
	cl_image_desc desc = description(CL_MEM_OBJECT_IMAGE3D, WIDTH, HEIGHT, DEPTH);
	cl_mem space = make(CL_MEM_READ_WRITE, CL_RGBA, CL_UNSIGNED_INT8, &desc, NULL);
	unsigned char data[2048];
	cl_int rc;
	cl_mem buffer =
		clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(data), random_bytes(), &rc);

	check(rc, "clCreateBuffer");
	write_all(one, all_2d, random_bytes());
	write_all(two, all_2d, random_bytes());
	write_all(space, size_3d, random_bytes());
	check(clEnqueueCopyImage(queue, one, two, at, to, part, 0, NULL, NULL), "copy");
	check(clEnqueueCopyImage(queue, one, space, at, layer, part, 0, NULL, NULL), "copy to 3D");
	check(clEnqueueCopyImageToBuffer(queue, one, buffer, at, part, 100, 0, NULL, NULL),
	      "copy to a buffer");
	check(clEnqueueCopyBufferToImage(queue, buffer, two, 104, zero, part, 0, NULL, NULL),
	      "copy from a buffer");
	read_all(two, all_2d, 4);
	read_all(space, size_3d, 4);
	check(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL),
	      "read");
	mix(data, sizeof(data));
	clReleaseMemObject(one);
	clReleaseMemObject(two);
	clReleaseMemObject(space);
	clReleaseMemObject(buffer);
}

/* Adds a value to each byte of a mapped region. */
static void change_mapped(cl_mem image, cl_map_flags flags, const size_t *at, const size_t *part)
{
	size_t row = 0, slice = 0;
	cl_int rc;
	unsigned char *mapped = clEnqueueMapImage(queue, image, CL_TRUE, flags, at, part, &row,
						  &slice, 0, NULL, NULL, &rc);

	check(rc, "clEnqueueMapImage");
	for (size_t z = 0; z < part[2]; z++)
		for (size_t y = 0; y < part[1]; y++)
			for (size_t x = 0; x < part[0] * 4; x++) {
				unsigned char *byte = &mapped[z * slice + y * row + x];

				if (flags & CL_MAP_READ)
					mix(byte, 1);
				if (flags & CL_MAP_WRITE)
					*byte += 3;
				if (flags & CL_MAP_WRITE_INVALIDATE_REGION)
					*byte = (unsigned char)(x + y);
			}
	check(clEnqueueUnmapMemObject(queue, image, mapped, 0, NULL, NULL), "unmap");
}

static void run_map(void)
{
	static const size_t at[3] = { 2, 3, 0 }, part[3] = { 5, 4, 1 }, at_3d[3] = { 1, 2, 1 },
			    part_3d[3] = { 6, 5, 3 }, size_3d[3] = { WIDTH, HEIGHT, DEPTH };
	cl_image_desc desc = description(CL_MEM_OBJECT_IMAGE3D, WIDTH, HEIGHT, DEPTH);
	cl_mem flat = make_2d(CL_MEM_READ_WRITE, CL_RGBA, CL_UNSIGNED_INT8);
	cl_mem space = make(CL_MEM_ALLOC_HOST_PTR, CL_RGBA, CL_UNSIGNED_INT8, &desc, NULL);

	write_all(flat, all_2d, random_bytes());
	clFinish(queue);
	change_mapped(flat, CL_MAP_READ, zero, all_2d);
	change_mapped(flat, CL_MAP_READ | CL_MAP_WRITE, at, part);
	change_mapped(flat, CL_MAP_WRITE_INVALIDATE_REGION, zero, part);
	read_all(flat, all_2d, 4);
	write_all(space, size_3d, random_bytes());
	clFinish(queue);
	change_mapped(space, CL_MAP_READ | CL_MAP_WRITE, at_3d, part_3d);
	read_all(space, size_3d, 4);
	clReleaseMemObject(flat);
	clReleaseMemObject(space);
}

static void sample_with(cl_mem image, cl_sampler sampler, bool is_normalized)
{
	enum { COUNT = 48 };
	static const size_t count = COUNT;
	cl_float scale = is_normalized ? 1.0f / WIDTH : 1.0f, values[4 * COUNT];
	cl_kernel kernel = kernel_of(program, "sample");
	cl_int rc;
	cl_mem to = clCreateBuffer(context, CL_MEM_WRITE_ONLY, sizeof(values), NULL, &rc);

	check(rc, "clCreateBuffer");
	set(kernel, 0, sizeof(image), &image);
	set(kernel, 1, sizeof(sampler), &sampler);
	set(kernel, 2, sizeof(to), &to);
	set(kernel, 3, sizeof(scale), &scale);
	launch(kernel, 1, &count);
	check(clEnqueueReadBuffer(queue, to, CL_TRUE, 0, sizeof(values), values, 0, NULL, NULL),
	      "read");
	mix(values, sizeof(values));
	clReleaseMemObject(to);
}

static void run_samplers(void)
{
	static const cl_addressing_mode modes[] = { CL_ADDRESS_NONE, CL_ADDRESS_CLAMP_TO_EDGE,
						    CL_ADDRESS_CLAMP, CL_ADDRESS_REPEAT,
						    CL_ADDRESS_MIRRORED_REPEAT };
	cl_mem image = make_2d(CL_MEM_READ_ONLY, CL_RGBA, CL_UNORM_INT8);

	write_all(image, all_2d, random_bytes());
	/* Repetition needs normalized coordinates; without addressing, those outside are undefined.
	 */
	for (size_t i = 1; i < 5; i++)
		for (cl_filter_mode filter = CL_FILTER_NEAREST; filter <= CL_FILTER_LINEAR;
		     filter++)
			for (cl_bool normalized = i >= 3; normalized <= CL_TRUE; normalized++) {
				cl_int rc;
				cl_sampler sampler =
					clCreateSampler(context, normalized, modes[i], filter, &rc);

				check(rc, "clCreateSampler");
				sample_with(image, sampler, normalized);
				clReleaseSampler(sampler);
			}
	clReleaseMemObject(image);
}

static void run_sampler_list(void)
{
	static const cl_sampler_properties list[] = { CL_SAMPLER_NORMALIZED_COORDS,
						      CL_FALSE,
						      CL_SAMPLER_ADDRESSING_MODE,
						      CL_ADDRESS_CLAMP,
						      CL_SAMPLER_FILTER_MODE,
						      CL_FILTER_NEAREST,
						      0 };
	cl_mem image = make_2d(CL_MEM_READ_ONLY, CL_RGBA, CL_UNORM_INT8);
	cl_int rc;
	cl_sampler sampler = clCreateSamplerWithProperties(context, list, &rc);

	check(rc, "clCreateSamplerWithProperties");
	write_all(image, all_2d, random_bytes());
	sample_with(image, sampler, false);
	clReleaseSampler(sampler);
	clReleaseMemObject(image);
}

static void run_read_write(void)
{
	cl_mem image;
	cl_kernel kernel;

	if (!program_2)
		return;
	image = make_2d(CL_MEM_READ_WRITE, CL_RGBA, CL_UNSIGNED_INT32);
	write_all(image, all_2d, random_bytes());
	for (int i = 0; i < 3; i++) {
		kernel = kernel_of(program_2, "add_one");
		set(kernel, 0, sizeof(image), &image);
		launch(kernel, 2, all_2d);
	}
	clFinish(queue);
	read_all(image, all_2d, 16);
	clReleaseMemObject(image);
}

/* PoCL 3 crashes when an image in a buffer is used. */
static bool can_use_buffers(void)
{
	cl_platform_id platform = NULL;
	char version[256] = "";

	clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(platform), &platform, NULL);
	clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof(version) - 1, version, NULL);
	return !strstr(version, "PoCL 3");
}

/* A 1D image in a buffer: each sees what was written through the other. */
static void run_in_buffer(void)
{
	enum { COUNT = 200, USED = 60 };
	static const size_t used = USED, size[3] = { USED, 1, 1 };
	cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = USED };
	cl_uint first = 5, data[COUNT];
	cl_kernel kernel;
	cl_int rc;
	cl_mem buffer, image;

	if (!can_use_buffers())
		return;
	buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(data), random_bytes(), &rc);
	check(rc, "clCreateBuffer");
	desc.mem_object = buffer;
	image = make(0, CL_R, CL_UNSIGNED_INT32, &desc, NULL);
	kernel = kernel_of(program, "number_1d");
	set(kernel, 0, sizeof(image), &image);
	set(kernel, 1, sizeof(first), &first);
	launch(kernel, 1, &used);
	kernel = kernel_of(program, "double_values");
	set(kernel, 0, sizeof(buffer), &buffer);
	launch(kernel, 1, &used);
	check(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL),
	      "read");
	for (cl_uint i = 0; i < USED; i++)
		expect(data[i] == 2 * (first + i), "the buffer of an image");
	mix(data, USED * 4);
	write_all(image, size, random_bytes());
	read_all(image, size, 4);
	clReleaseMemObject(image);
	clReleaseMemObject(buffer);
}

/* A 2D image in a buffer, with a pitch, if the device has such images. */
static void run_rows_in_buffer(void)
{
	enum { ROW = 256, ROWS = 8 };
	static const size_t size[3] = { WIDTH, ROWS, 1 }, at[3] = { 1, 2, 0 },
			    part[3] = { 4, 3, 1 };
	static const cl_uint color[4] = { 1, 2, 3, 4 };
	cl_image_desc desc = description(CL_MEM_OBJECT_IMAGE2D, WIDTH, ROWS, 1);
	cl_uint alignment = 0;
	unsigned char data[ROW * ROWS];
	cl_mem buffer, image;
	cl_int rc;

	clGetDeviceInfo(device, CL_DEVICE_IMAGE_PITCH_ALIGNMENT, sizeof(alignment), &alignment,
			NULL);
	if (alignment == 0 || ROW / 4 % alignment)
		return;
	buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(data),
				random_bytes(), &rc);
	check(rc, "clCreateBuffer");
	desc.image_row_pitch = ROW;
	desc.mem_object = buffer;
	image = make(0, CL_RGBA, CL_UNSIGNED_INT8, &desc, NULL);
	check(clEnqueueFillImage(queue, image, color, at, part, 0, NULL, NULL), "fill");
	read_all(image, size, 4);
	check(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL),
	      "read");
	mix(data, sizeof(data));
	clReleaseMemObject(image);
	clReleaseMemObject(buffer);
}

/* The host writes to memory that it shares, with a pitch, between commands. */
static void run_host_memory(void)
{
	enum { ROW = WIDTH * 4 + 20 };
	static unsigned char host[ROW * HEIGHT] __attribute__((aligned(4096)));
	cl_image_desc desc = description(CL_MEM_OBJECT_IMAGE2D, WIDTH, HEIGHT, 1);
	cl_mem image, to = make_2d(CL_MEM_WRITE_ONLY, CL_RGBA, CL_UNSIGNED_INT8);

	memcpy(host, random_bytes(), sizeof(host));
	desc.image_row_pitch = ROW;
	image = make(CL_MEM_USE_HOST_PTR | CL_MEM_READ_WRITE, CL_RGBA, CL_UNSIGNED_INT8, &desc,
		     host);
	for (int i = 0; i < 3; i++) {
		run_on_two("flip", image, to);
		clFinish(queue);
		read_all(to, all_2d, 4);
		change_mapped(image, CL_MAP_READ | CL_MAP_WRITE, zero, all_2d);
		clFinish(queue);
	}
	read_all(image, all_2d, 4);
	clReleaseMemObject(image);
	clReleaseMemObject(to);
}

static void run_no_access(void)
{
	cl_image_desc desc = description(CL_MEM_OBJECT_IMAGE2D, WIDTH, HEIGHT, 1);
	cl_mem hidden = make(CL_MEM_HOST_NO_ACCESS | CL_MEM_COPY_HOST_PTR, CL_RGBA,
			     CL_UNSIGNED_INT8, &desc, random_bytes());
	cl_mem half = make(CL_MEM_HOST_NO_ACCESS, CL_RGBA, CL_UNSIGNED_INT8, &desc, NULL);
	cl_mem to = make_2d(CL_MEM_READ_WRITE, CL_RGBA, CL_UNSIGNED_INT8);

	run_on_two("flip", hidden, half);
	check(clEnqueueCopyImage(queue, half, to, zero, zero, all_2d, 0, NULL, NULL), "copy");
	read_all(to, all_2d, 4);
	clReleaseMemObject(hidden);
	clReleaseMemObject(half);
	clReleaseMemObject(to);
}

/* The calls of OpenCL 1.1. */
static void run_old_calls(void)
{
	static const size_t size[3] = { 9, 8, 4 };
	cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	cl_uint sums[9 * 8 * 4];
	cl_kernel kernel = kernel_of(program, "sum_3d");
	cl_int rc;
	cl_mem flat = clCreateImage2D(context, CL_MEM_COPY_HOST_PTR, &format, WIDTH, HEIGHT,
				      WIDTH * 4 + 4, random_bytes(), &rc);
	cl_mem space, to;

	check(rc, "clCreateImage2D");
	space = clCreateImage3D(context, CL_MEM_COPY_HOST_PTR, &format, 9, 8, 4, 40, 400,
				random_bytes(), &rc);
	check(rc, "clCreateImage3D");
	to = clCreateBuffer(context, CL_MEM_WRITE_ONLY, sizeof(sums), NULL, &rc);
	check(rc, "clCreateBuffer");
	set(kernel, 0, sizeof(space), &space);
	set(kernel, 1, sizeof(to), &to);
	launch(kernel, 3, size);
	check(clEnqueueReadBuffer(queue, to, CL_TRUE, 0, sizeof(sums), sums, 0, NULL, NULL),
	      "read");
	mix(sums, sizeof(sums));
	read_all(flat, all_2d, 4);
	clReleaseMemObject(flat);
	clReleaseMemObject(space);
	clReleaseMemObject(to);
}

/* Images that exist before a window opens: it starts with their content. */
static void run_lasting(void)
{
	static const size_t size_3d[3] = { WIDTH, HEIGHT, DEPTH };
	cl_mem to = make_2d(CL_MEM_READ_WRITE, CL_RGBA, CL_UNSIGNED_INT8);

	run_on_two("flip", lasting_2d, to);
	check(clEnqueueCopyImage(queue, to, lasting_3d, zero, zero, all_2d, 0, NULL, NULL), "copy");
	check(clEnqueueCopyImage(queue, to, lasting_2d, zero, zero, all_2d, 0, NULL, NULL), "copy");
	read_all(lasting_3d, size_3d, 4);
	clReleaseMemObject(to);
}

static const struct {
	const char *name;
	void (*run)(void);
} features[] = {
	{ "types", run_types },
	{ "formats", run_formats },
	{ "fills", run_fills },
	{ "large", run_large },
	{ "copies", run_copies },
	{ "map", run_map },
	{ "samplers", run_samplers },
	{ "sampler_list", run_sampler_list },
	{ "read_write", run_read_write },
	{ "in_buffer", run_in_buffer },
	{ "rows_in_buffer", run_rows_in_buffer },
	{ "host_memory", run_host_memory },
	{ "no_access", run_no_access },
	{ "old_calls", run_old_calls },
	{ "lasting", run_lasting },
};
enum { FEATURES = sizeof(features) / sizeof(features[0]) };

/* ---- the program ---- */

static cl_program build(const char *text, const char *options, bool must_be)
{
	cl_int rc;
	cl_program built = clCreateProgramWithSource(context, 1, &text, NULL, &rc);

	check(rc, "clCreateProgramWithSource");
	rc = clBuildProgram(built, 1, &device, options, NULL, NULL);
	if (rc && !must_be) {
		clReleaseProgram(built);
		return NULL;
	}
	check(rc, "clBuildProgram");
	return built;
}

static int start(void)
{
	cl_image_desc desc = description(CL_MEM_OBJECT_IMAGE3D, WIDTH, HEIGHT, DEPTH);
	cl_bool has_images = CL_FALSE;
	cl_int rc;

	feature = "start";
	find_devices(&device, 1);
	clGetDeviceInfo(device, CL_DEVICE_IMAGE_SUPPORT, sizeof(has_images), &has_images, NULL);
	if (!has_images)
		return 77;
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &rc);
	check(rc, "clCreateContext");
	queue = clCreateCommandQueue(context, device, 0, &rc);
	check(rc, "clCreateCommandQueue");
	program = build(source, "", true);
	program_2 = build(source_2, "-cl-std=CL2.0", false);
	lasting_2d = make_2d(CL_MEM_READ_WRITE, CL_RGBA, CL_UNSIGNED_INT8);
	lasting_3d = make(CL_MEM_READ_WRITE, CL_RGBA, CL_UNSIGNED_INT8, &desc, NULL);
	write_all(lasting_2d, all_2d, random_bytes());
	write_all(lasting_3d, (size_t[]){ WIDTH, HEIGHT, DEPTH }, random_bytes());
	clFinish(queue);
	return 0;
}

static void run_feature(size_t index)
{
	feature = features[index].name;
	checksum = UINT64_C(0xcbf29ce484222325);
	state = (uint32_t)index + 1;
	features[index].run();
	clFinish(queue);
	printf("%s %016" PRIx64 "\n", feature, checksum);
}

static void run_steps(void)
{
	for (long step = 0; step < FEATURES; step++) {
		TS_STEP(step);
		run_feature((size_t)step);
		run_feature(FEATURES - 1);
	}
}

static int run_named(const char *name)
{
	for (size_t i = 0; i < FEATURES; i++)
		if (!strcmp(features[i].name, name)) {
			run_feature(i);
			return 0;
		}
	fprintf(stderr, "opencl_images: there is no '%s'; see --list\n", name);
	return 2;
}

int main(int argc, char **argv)
{
	int code;

	if (argc == 2 && !strcmp(argv[1], "--list")) {
		for (size_t i = 0; i < FEATURES; i++)
			puts(features[i].name);
		return 0;
	}
	code = start();
	if (!code && argc == 2 && !strcmp(argv[1], "--steps")) {
		run_steps();
		argc = 1;
	} else {
		for (size_t i = 0; !code && argc == 1 && i < FEATURES; i++)
			run_feature(i);
	}
	for (int i = 1; !code && i < argc; i++)
		code = run_named(argv[i]);
	/* The lasting images are not released: a recording ends with checks of them. */
	return code;
}
