/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of opencl_random.c, and their plain C equivalents. */
#ifndef OPENCL_RANDOM_KERNELS_H
#define OPENCL_RANDOM_KERNELS_H

#include "opencl_random.h"

/* ---- kernels ---- */

static const char *const kernel_source =
	"#ifndef FACTOR\n"
	"#define FACTOR 1\n"
	"#endif\n"
	"struct pair { uint x; ushort y; uchar z; };\n"
	"kernel void add(global uint *a, global const uint *b, uint k)\n"
	"{ size_t i = get_global_id(0); a[i] = a[i] * 3 + b[i] + k; }\n"
	"kernel void times(global uint *a, global const uint *b, uint k)\n"
	"{ size_t i = get_global_id(0); a[i] = b[i] * k; }\n"
	"kernel void table(global uint *a, constant uint *b, uint k)\n"
	"{ size_t i = get_global_id(0); a[i] += b[i & 3] ^ k; }\n"
	"kernel void histogram(global uint *a, global const uint *b, uint k)\n"
	"{ size_t i = get_global_id(0); atomic_add(&a[b[i] & 15], k); }\n"
	"kernel void maybe(global uint *a, global const uint *b, uint k)\n"
	"{ size_t i = get_global_id(0); a[i] += b ? b[0] : k; }\n"
	"kernel void factor(global uint *a)\n"
	"{ size_t i = get_global_id(0); a[i] = a[i] * FACTOR + 1; }\n"
	"kernel void by_value(global uint *a, struct pair p, uint4 v, uchar c, ulong w)\n"
	"{ size_t i = get_global_id(0); a[i] ^= p.x + p.y + p.z + v.x + v.w + c + (uint)(w >> 32); }\n"
	"kernel void turn(global uint *a, local uint *group)\n"
	"{\n"
	"	size_t i = get_global_id(0), l = get_local_id(0), n = get_local_size(0);\n"
	"	group[l] = a[i];\n"
	"	barrier(CLK_LOCAL_MEM_FENCE);\n"
	"	a[i] = group[n - 1 - l];\n"
	"}\n"
	"kernel void grid(global uint *a, uint width)\n"
	"{ size_t x = get_global_id(0), y = get_global_id(1); a[y * width + x] += x * 31 + y * 17; }\n";

struct pair {
	cl_uint x;
	cl_ushort y;
	cl_uchar z;
};

struct launch {
	struct graph *graph;
	cl_kernel kernel;
	struct operand a, b;
	bool has_b;
	size_t offset, count; /* elements */
	size_t width;         /* grid */
	bool has_local;
	cl_uint k, factor;
};

enum { LOCAL = 16 };

struct kind {
	const char *name;
	bool takes_b;
	void (*set)(struct launch *launch);
	void (*model)(const struct launch *launch, cl_uint *a, const cl_uint *b, size_t i);
};

static void set_argument(struct launch *launch, cl_uint index, size_t bytes, const void *value)
{
	check(launch->graph, clSetKernelArg(launch->kernel, index, bytes, value), "clSetKernelArg");
}

static void set_k(struct launch *launch)
{
	set_argument(launch, 2, sizeof(launch->k), &launch->k);
}

static void set_values(struct launch *launch)
{
	cl_uint k = launch->k;
	struct pair pair = { k, (cl_ushort)k, (cl_uchar)(k >> 8) };
	cl_uint4 vector = { { k + 1, 2, 3, k + 4 } };
	cl_uchar byte = (cl_uchar)(k >> 16);
	cl_ulong wide = (cl_ulong)k << 32;

	set_argument(launch, 1, sizeof(pair), &pair);
	set_argument(launch, 2, sizeof(vector), &vector);
	set_argument(launch, 3, sizeof(byte), &byte);
	set_argument(launch, 4, sizeof(wide), &wide);
}

static void set_local(struct launch *launch)
{
	set_argument(launch, 1, LOCAL * sizeof(cl_uint), NULL);
	launch->has_local = true;
}

static void set_grid(struct launch *launch)
{
	cl_uint width;

	launch->width = 16;
	launch->offset -= launch->offset % launch->width;
	width = (cl_uint)launch->width;
	set_argument(launch, 1, sizeof(width), &width);
}

static void set_nothing(struct launch *launch)
{
}

static void model_add(const struct launch *launch, cl_uint *a, const cl_uint *b, size_t i)
{
	a[i] = a[i] * 3 + b[i] + launch->k;
}

static void model_times(const struct launch *launch, cl_uint *a, const cl_uint *b, size_t i)
{
	a[i] = b[i] * launch->k;
}

static void model_table(const struct launch *launch, cl_uint *a, const cl_uint *b, size_t i)
{
	a[i] += b[i & 3] ^ launch->k;
}

static void model_histogram(const struct launch *launch, cl_uint *a, const cl_uint *b, size_t i)
{
	a[b[i] & 15] += launch->k;
}

static void model_maybe(const struct launch *launch, cl_uint *a, const cl_uint *b, size_t i)
{
	a[i] += launch->has_b ? b[0] : launch->k;
}

static void model_factor(const struct launch *launch, cl_uint *a, const cl_uint *b, size_t i)
{
	a[i] = a[i] * launch->factor + 1;
}

static void model_by_value(const struct launch *launch, cl_uint *a, const cl_uint *b, size_t i)
{
	cl_uint k = launch->k;

	a[i] ^= k + (cl_ushort)k + (cl_uchar)(k >> 8) + (k + 1) + (k + 4) + (cl_uchar)(k >> 16) + k;
}

static void model_turn(const struct launch *launch, cl_uint *a, const cl_uint *b, size_t i)
{
	size_t l = (i - launch->offset) % LOCAL, other = i - l + LOCAL - 1 - l;
	cl_uint value = a[i];

	if (l >= LOCAL / 2)
		return;
	a[i] = a[other];
	a[other] = value;
}

static void model_grid(const struct launch *launch, cl_uint *a, const cl_uint *b, size_t i)
{
	a[i] += (cl_uint)(i % launch->width * 31 + i / launch->width * 17);
}

static const struct kind kinds[] = {
	{ "add", true, set_k, model_add },
	{ "times", true, set_k, model_times },
	{ "table", true, set_k, model_table },
	{ "histogram", true, set_k, model_histogram },
	{ "maybe", true, set_k, model_maybe },
	{ "factor", false, set_nothing, model_factor },
	{ "by_value", false, set_values, model_by_value },
	{ "turn", false, set_local, model_turn },
	{ "grid", false, set_grid, model_grid },
};

static void set_memory(struct launch *launch, cl_uint index, const struct operand *operand)
{
	if (operand->root && operand->root->svm)
		check(launch->graph,
		      clSetKernelArgSVMPointer(launch->kernel, index,
					       operand->root->svm + operand->origin),
		      "clSetKernelArgSVMPointer");
	else
		set_argument(launch, index, sizeof(cl_mem),
			     operand->root ? (const void *)&operand->mem : NULL);
}

/* There are few sizes, since drivers compile a kernel for each work-group size. */
static void choose_size(struct launch *launch)
{
	static const size_t counts[] = { 512, 256, 128, 64, 16 };
	size_t limit = launch->a.bytes / 4, first = below(launch->graph, 3);

	if (launch->has_b && launch->b.bytes / 4 < limit)
		limit = launch->b.bytes / 4;
	while (first < 4 && counts[first] > limit)
		first++;
	launch->count = counts[first];
	launch->offset = limit > launch->count && chance(launch->graph, 30)
				 ? below(launch->graph, limit - launch->count + 1)
				 : 0;
}

static void run_model(const struct launch *launch, const struct kind *kind)
{
	cl_uint *a = (cl_uint *)(void *)model_of(&launch->a);
	const cl_uint *b = launch->has_b ? (const cl_uint *)(void *)model_of(&launch->b) : NULL;

	for (size_t i = 0; i < launch->count; i++)
		kind->model(launch, a, b, launch->offset + i);
}

static bool choose_b(struct launch *launch, const struct kind *kind)
{
	struct graph *graph = launch->graph;

	if (!kind->takes_b)
		return true;
	if (kind->model == model_maybe && chance(graph, 50))
		return true;
	launch->has_b = true;
	if (kind->model == model_add && chance(graph, 10)) {
		launch->b = launch->a;
		return true;
	}
	return pick(graph, launch->a.root->context_set, ANY_MEMORY, false, &launch->b) &&
	       launch->b.root != launch->a.root && !(launch->b.root->flags & CL_MEM_WRITE_ONLY);
}

static bool choose_operands(struct launch *launch, const struct kind *kind)
{
	/* Kernels may not write to read-only memory, and the reverse. */
	return pick(launch->graph, NULL, ANY_MEMORY, true, &launch->a) &&
	       !(launch->a.root->flags & CL_MEM_READ_ONLY) &&
	       !(launch->a.root->flags & CL_MEM_WRITE_ONLY && kind->model != model_times) &&
	       choose_b(launch, kind);
}

static void enqueue_launch(struct launch *launch)
{
	struct graph *graph = launch->graph;
	struct step step = begin(graph, launch->a.root->context_set);
	size_t offset[2] = { launch->offset, 0 }, global[2] = { launch->count, 1 };
	size_t local[2] = { LOCAL, 1 };
	cl_uint dimensions = launch->width ? 2 : 1;

	add_operand(&step, &launch->a, true);
	if (launch->has_b)
		add_operand(&step, &launch->b, false);
	arrange(&step);
	if (launch->width) {
		offset[1] = launch->offset / launch->width;
		offset[0] = 0;
		global[0] = launch->width;
		global[1] = launch->count / launch->width;
	}
	given(&step,
	      clEnqueueNDRangeKernel(step.queue->handle, launch->kernel, dimensions,
				     launch->offset ? offset : NULL, global,
				     launch->has_local ? local : NULL, step.wait_count,
				     waits_of(&step), event_of(&step)),
	      "clEnqueueNDRangeKernel");
}

static void do_launch(struct graph *graph)
{
	static const cl_uint factors[PROGRAMS] = { 3, 5, 3 };
	const struct kind *kind = &kinds[below(graph, sizeof(kinds) / sizeof(*kinds))];
	struct launch launch = { .graph = graph, .k = (cl_uint)next_random(graph) };
	size_t program = below(graph, PROGRAMS);
	cl_int code;

	if (!choose_operands(&launch, kind))
		return;
	launch.factor = factors[program];
	launch.kernel =
		clCreateKernel(launch.a.root->context_set->programs[program], kind->name, &code);
	check(graph, code, "clCreateKernel");
	if (code != CL_SUCCESS)
		return;
	choose_size(&launch);
	launch.has_local = chance(graph, 20);
	kind->set(&launch);
	if (launch.width)
		launch.has_local = false;
	set_memory(&launch, 0, &launch.a);
	if (kind->takes_b)
		set_memory(&launch, 1, &launch.b);
	enqueue_launch(&launch);
	run_model(&launch, kind);
	clReleaseKernel(launch.kernel);
}

#endif
