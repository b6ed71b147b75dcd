/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random graphs of OpenCL commands with known results: buffers, sub-buffers, shared virtual memory,
 * images, in-order and out-of-order queues, events, user events, markers, barriers, reads, writes,
 * copies, fills, rectangles, maps, a pool of kernels. A model in plain C executes them in call
 *order; the order graph (opencl_graph.h) ensures that the device cannot get another result. Prints
 *a line per seed; exit code 1 if device and model differ, 77 without a device.
 *
 *	opencl_random [--seeds A-B] [--threads N] [--device NUMBER] [--without FEATURE,...]
 *		      [--verbose]
 */
#include "opencl_random.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include <tracesmith/emit.h>

#include "opencl_random_image_kernels.h"
#include "opencl_random_images.h"
#include "opencl_random_kernels.h"
#include "opencl_random_moves.h"

#define MAX_BYTES 16384
#define RESERVED 24 /* nodes reserved for markers and the end */

/* ---- order ---- */

static int pick_event(struct graph *graph)
{
	for (int tries = 0; tries < 10 && graph->order.count; tries++) {
		int node = (int)below(graph, (size_t)graph->order.count);

		if (graph->events[node])
			return node;
	}
	return -1;
}

static void do_marker(struct graph *graph)
{
	int queue = (int)below(graph, (size_t)graph->queue_count);
	struct step step;

	if (chance(graph, 50)) {
		give_marker(graph, queue);
		return;
	}
	/* With a list: in an out-of-order queue it follows only that. */
	step = begin_in(graph, queue);
	step.wants_event = true;
	arrange(&step);
	if (!step.wait_count) {
		give_marker(graph, queue);
		return;
	}
	given(&step,
	      clEnqueueMarkerWithWaitList(step.queue->handle, step.wait_count, step.waits,
					  &step.event),
	      "clEnqueueMarkerWithWaitList");
}

/*
 * Without a list: after everything before it. With one, in an out-of-order queue: after the list
 * only. It also ends the guarantee of the previous barrier, since in PoCL 3.1 later commands only
 * wait for the newest one.
 */
static void do_barrier(struct graph *graph)
{
	int queue = (int)below(graph, (size_t)graph->queue_count), node;
	struct step step = begin_in(graph, queue);
	struct order_queue *order = &graph->order.queues[queue];
	int waited = chance(graph, 30) ? pick_event(graph) : -1;

	step.behind = graph->order.done;
	if (waited >= 0 &&
	    graph->queues[graph->order.nodes[waited].queue].context_set == step.queue->context_set)
		wait_for(&step, waited);
	if (!step.wait_count || !order->out_of_order)
		bits_add(&step.behind, &order->all);
	node = given(&step,
		     clEnqueueBarrierWithWaitList(step.queue->handle, step.wait_count,
						  waits_of(&step), event_of(&step)),
		     "clEnqueueBarrierWithWaitList");
	order->fence = graph->order.nodes[node].upto;
}

static void finish(struct graph *graph, int queue)
{
	let_run(graph);
	check(graph, clFinish(graph->queues[queue].handle), "clFinish");
	bits_add(&graph->order.done, &graph->order.queues[queue].all);
	look(graph);
}

static void do_finish(struct graph *graph)
{
	finish(graph, (int)below(graph, (size_t)graph->queue_count));
}

static void do_wait(struct graph *graph)
{
	cl_event events[2];
	int first = pick_event(graph), second = pick_event(graph);
	cl_uint count = 1;

	if (first < 0)
		return;
	events[0] = graph->events[first];
	if (second >= 0 && graph->queues[graph->order.nodes[second].queue].context_set ==
				   graph->queues[graph->order.nodes[first].queue].context_set)
		events[count++] = graph->events[second];
	let_run(graph);
	check(graph, clWaitForEvents(count, events), "clWaitForEvents");
	bits_add(&graph->order.done, &graph->order.nodes[first].upto);
	if (count == 2)
		bits_add(&graph->order.done, &graph->order.nodes[second].upto);
	look(graph);
}

/* Polls, as some programs do. */
static void do_poll(struct graph *graph)
{
	cl_int status = CL_QUEUED;
	int node = pick_event(graph);

	if (node < 0)
		return;
	let_run(graph);
	while (status > CL_COMPLETE && !graph->failure[0]) {
		check(graph,
		      clGetEventInfo(graph->events[node], CL_EVENT_COMMAND_EXECUTION_STATUS,
				     sizeof(status), &status, NULL),
		      "clGetEventInfo");
		sched_yield();
	}
	if (status < 0)
		fail(graph, "command %d failed: OpenCL error %d", node, status);
	bits_add(&graph->order.done, &graph->order.nodes[node].upto);
	look(graph);
}

static void CL_CALLBACK when_complete(cl_event event, cl_int status, void *semaphore)
{
	sem_post(semaphore);
}

static void do_callback(struct graph *graph)
{
	int node = pick_event(graph);
	sem_t semaphore;

	if (node < 0)
		return;
	let_run(graph);
	sem_init(&semaphore, 0, 0);
	check(graph,
	      clSetEventCallback(graph->events[node], CL_COMPLETE, when_complete, &semaphore),
	      "clSetEventCallback");
	while (!graph->failure[0] && sem_wait(&semaphore) != 0)
		;
	sem_destroy(&semaphore);
	bits_add(&graph->order.done, &graph->order.nodes[node].upto);
	look(graph);
}

static void do_set_users(struct graph *graph)
{
	set_users(graph);
}

/* ---- allocating and releasing memory ---- */

static void add_views(struct graph *graph, struct root *root)
{
	size_t unit = root->context_set->alignment;
	size_t units = root->known / unit;
	cl_int code;

	if (!features.views || units < 2)
		return;
	for (; root->view_count < MAX_VIEWS && chance(graph, 60); root->view_count++) {
		struct view *view = &root->views[root->view_count];
		cl_buffer_region region;

		/* Two sub-buffers never overlap, since they may not be used at the same time. */
		region.origin = root->view_count ? units / 2 * unit : 0;
		region.size = (1 + below(graph, units / 2)) * unit;
		view->origin = region.origin;
		view->bytes = region.size;
		view->mem = clCreateSubBuffer(root->mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region,
					      &code);
		check(graph, code, "clCreateSubBuffer");
		if (code != CL_SUCCESS)
			return;
	}
}

/* Memory without initial content gets some. */
static void first_content(struct graph *graph, struct root *root)
{
	struct operand all = { root, root->mem, 0, root->known };
	struct step step = begin(graph, root->context_set);
	unsigned char *host = keep(graph, root->known);
	cl_int code;

	memcpy(host, root->model, root->known);
	add_operand(&step, &all, true);
	arrange(&step);
	if (root->svm)
		code = clEnqueueSVMMemcpy(step.queue->handle, CL_FALSE, root->svm, host,
					  root->known, step.wait_count, waits_of(&step),
					  event_of(&step));
	else
		code = clEnqueueWriteBuffer(step.queue->handle, root->mem, CL_FALSE, 0, root->known,
					    host, step.wait_count, waits_of(&step),
					    event_of(&step));
	given(&step, code, "first content");
}

static void make_svm(struct graph *graph, struct root *root)
{
	root->svm = clSVMAlloc(root->context_set->context, CL_MEM_READ_WRITE, root->bytes, 0);
	if (!root->svm)
		fail(graph, "clSVMAlloc gives nothing");
	else
		first_content(graph, root);
}

static void make_buffer(struct graph *graph, struct root *root)
{
	static const cl_mem_flags access[] = { CL_MEM_READ_WRITE, CL_MEM_READ_WRITE,
					       CL_MEM_READ_WRITE, CL_MEM_READ_ONLY,
					       CL_MEM_WRITE_ONLY };
	size_t how = below(graph, 4);
	void *host = NULL;
	cl_int code;

	root->flags = access[below(graph, 5)];
	if (how == 0 || (how == 1 && features.hosts)) {
		host = root->shared = keep(graph, root->bytes + 4096);
		if (how == 1 && chance(graph, 50))
			host = root->shared += 4096 - (uintptr_t)host % 4096;
		memcpy(host, root->model, root->bytes);
		root->flags |= how ? CL_MEM_USE_HOST_PTR : CL_MEM_COPY_HOST_PTR;
	} else if (how == 2) {
		root->flags |= CL_MEM_ALLOC_HOST_PTR;
	}
	root->mem =
		clCreateBuffer(root->context_set->context, root->flags, root->bytes, host, &code);
	check(graph, code, "clCreateBuffer");
	if (code != CL_SUCCESS)
		return;
	if (!host && features.partial && chance(graph, 30))
		root->known = root->bytes / 2;
	if (how == 0) {
		scramble(graph, host, root->bytes);
		root->shared = NULL;
	}
	if (!host)
		first_content(graph, root);
	if (!graph->failure[0])
		add_views(graph, root);
}

static void make_root(struct graph *graph, struct context_set *context_set)
{
	struct root *root;

	if (graph->root_count == MAX_ROOTS || graph->order.count > MAX_NODES - RESERVED)
		return;
	root = &graph->roots[graph->root_count++];
	memset(root, 0, sizeof(*root));
	root->context_set = context_set;
	root->bytes = 1024 + below(graph, (MAX_BYTES - 1024) / 64) * 64;
	root->known = root->bytes;
	root->model = keep(graph, root->bytes);
	scramble(graph, root->model, root->bytes);
	if (features.images && context_set->has_images && chance(graph, 25))
		make_image(graph, root);
	else if (features.svm && context_set->has_svm && chance(graph, 25))
		make_svm(graph, root);
	else
		make_buffer(graph, root);
}

static bool is_in_flight(const struct graph *graph, const struct root *root)
{
	struct range all = { number_of(graph, root), 0, root->bytes, true };

	return order_next(&graph->order, &graph->order.done, &all, 1) >= 0;
}

static void drop(struct graph *graph, struct root *root)
{
	if (root->gone || root->pinned)
		return;
	root->gone = true;
	for (int i = 0; i < root->view_count; i++)
		clReleaseMemObject(root->views[i].mem);
	if (root->mem)
		check(graph, clReleaseMemObject(root->mem), "clReleaseMemObject");
	if (root->svm)
		clSVMFree(root->context_set->context, root->svm);
}

/*
 * Releases some memory, and allocates more. The driver keeps buffers alive for commands; other
 * memory must not be in use.
 */
static void do_replace(struct graph *graph)
{
	struct root *root = &graph->roots[below(graph, (size_t)graph->root_count)];

	if (root->gone || root->read_maps || root->write_map || root->pinned ||
	    graph->root_count == MAX_ROOTS)
		return;
	if ((root->svm || root->shared) && is_in_flight(graph, root))
		return;
	drop(graph, root);
	make_root(graph, root->context_set);
}

/*
 * The host writes to memory that it shares with the device, without a map; works if both have the
 * same memory.
 */
static void do_host_write(struct graph *graph)
{
	struct root *root = &graph->roots[below(graph, (size_t)graph->root_count)];
	size_t offset, bytes;

	if (!root->shared || !root->context_set->shares_memory || !is_usable(root, NULL, true) ||
	    is_in_flight(graph, root))
		return;
	pick_range(graph, root->known, &offset, &bytes);
	scramble(graph, root->model + offset, bytes);
	memcpy(root->shared + offset, root->model + offset, bytes);
}

static void do_migrate(struct graph *graph)
{
	struct operand operand;
	struct step step;

	if (!pick(graph, NULL, BUFFERS, true, &operand))
		return;
	step = begin(graph, operand.root->context_set);
	add_operand(&step, &operand, true);
	arrange(&step);
	given(&step,
	      clEnqueueMigrateMemObjects(step.queue->handle, 1, &operand.mem,
					 chance(graph, 50) ? CL_MIGRATE_MEM_OBJECT_HOST : 0,
					 step.wait_count, waits_of(&step), event_of(&step)),
	      "clEnqueueMigrateMemObjects");
}

/* ---- a graph ---- */

static const struct {
	void (*act)(struct graph *graph);
	unsigned int weight;
	const bool *feature;
} acts[] = {
	{ do_launch, 36, NULL },
	{ do_write, 9, NULL },
	{ do_read, 9, NULL },
	{ do_copy, 7, NULL },
	{ do_copy_inside, 2, NULL },
	{ do_fill, 6, NULL },
	{ do_write_image, 3, &features.images },
	{ do_read_image, 3, &features.images },
	{ do_fill_image, 2, &features.images },
	{ do_copy_image, 4, &features.images },
	{ do_copy_images, 3, &features.images },
	{ do_launch_image, 8, &features.images },
	{ do_copy_rect, 3, &features.rects },
	{ do_write_rect, 3, &features.rects },
	{ do_read_rect, 3, &features.rects },
	{ do_map, 6, &features.maps },
	{ do_map_image, 3, &features.images },
	{ do_unmap, 6, &features.maps },
	{ do_svm_fill, 3, &features.svm },
	{ do_svm_copy, 4, &features.svm },
	{ do_marker, 2, NULL },
	{ do_barrier, 3, NULL },
	{ do_finish, 2, NULL },
	{ do_wait, 2, NULL },
	{ do_poll, 1, NULL },
	{ do_callback, 1, NULL },
	{ do_set_users, 5, &features.users },
	{ do_replace, 2, NULL },
	{ do_host_write, 3, &features.hosts },
	{ do_pin, 2, &features.pins },
	{ do_migrate, 1, NULL },
};

static void act(struct graph *graph)
{
	unsigned int sum = 0;
	size_t at;

	for (size_t i = 0; i < sizeof(acts) / sizeof(*acts); i++)
		sum += acts[i].weight;
	at = below(graph, sum);
	for (size_t i = 0; i < sizeof(acts) / sizeof(*acts); i++) {
		if (at < acts[i].weight) {
			if (!acts[i].feature || *acts[i].feature)
				acts[i].act(graph);
			return;
		}
		at -= acts[i].weight;
	}
}

static void make_queue(struct graph *graph, struct context_set *context_set)
{
	struct queue *queue = &graph->queues[graph->queue_count];
	cl_queue_properties properties[] = { CL_QUEUE_PROPERTIES, 0, 0 };
	bool out_of_order = context_set->has_out_of_order && chance(graph, 40);
	cl_int code;

	if (out_of_order)
		properties[1] |= CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
	if (chance(graph, 30))
		properties[1] |= CL_QUEUE_PROFILING_ENABLE;
	queue->context_set = context_set;
	queue->handle = clCreateCommandQueueWithProperties(
		context_set->context, context_set->devices[below(graph, context_set->device_count)],
		properties[1] || chance(graph, 50) ? properties : NULL, &code);
	check(graph, code, "clCreateCommandQueueWithProperties");
	if (code != CL_SUCCESS)
		return;
	graph->order.queues[graph->queue_count].out_of_order = out_of_order;
	graph->queue_count++;
}

static void make_graph(struct graph *graph)
{
	int wanted = 1;

	if (features.context_sets && chance(graph, 30))
		wanted = 2 + (int)below(graph, 2);
	if (wanted > context_set_count)
		wanted = context_set_count;
	for (size_t first = below(graph, (size_t)context_set_count);
	     graph->context_set_count < wanted; first++)
		graph->context_sets[graph->context_set_count++] =
			&context_sets[first % (size_t)context_set_count];
	for (int i = 0; i < graph->context_set_count; i++) {
		for (size_t n = 1 + below(graph, 6 / (size_t)wanted); n > 0; n--)
			make_queue(graph, graph->context_sets[i]);
	}
	for (int i = 0; i < graph->context_set_count && !graph->failure[0]; i++) {
		for (size_t n = 2 + below(graph, 4); n > 0; n--)
			make_root(graph, graph->context_sets[i]);
	}
}

static void compare_root(struct graph *graph, const struct root *root)
{
	unsigned char *host = keep(graph, root->known);
	struct operand all = { (struct root *)root, root->mem, 0, root->known };
	struct frame all_pixels = whole_frame(root);
	struct step step = begin(graph, root->context_set);
	size_t at = 0;
	cl_int code;

	step.blocking = true;
	add_operand(&step, &all, false);
	arrange(&step);
	if (root->svm)
		code = clEnqueueSVMMemcpy(step.queue->handle, CL_TRUE, host, root->svm, root->known,
					  step.wait_count, waits_of(&step), event_of(&step));
	else if (root->is_image)
		code = clEnqueueReadImage(step.queue->handle, root->mem, CL_TRUE, all_pixels.at,
					  all_pixels.size, 0, 0, host, step.wait_count,
					  waits_of(&step), event_of(&step));
	else
		code = clEnqueueReadBuffer(step.queue->handle, root->mem, CL_TRUE, 0, root->known,
					   host, step.wait_count, waits_of(&step), event_of(&step));
	given(&step, code, "last content");
	while (at < root->known && host[at] == root->model[at])
		at++;
	if (at < root->known)
		fail(graph, "memory %d holds %02x, not %02x, at byte %zu of %zu",
		     number_of(graph, root), host[at], root->model[at], at, root->bytes);
}

static void end_graph(struct graph *graph)
{
	while (graph->mapping_count && !graph->failure[0])
		unmap(graph, graph->mapping_count - 1);
	for (int i = 0; i < graph->root_count && !graph->failure[0]; i++) {
		/* Some are only compared by a replay. */
		if (!graph->roots[i].gone && !chance(graph, 20))
			compare_root(graph, &graph->roots[i]);
	}
	for (int i = 0; i < graph->queue_count; i++)
		finish(graph, i);
	/* The others stay mapped, and are never released. */
	for (int i = 0; i < graph->root_count && !graph->failure[0]; i++) {
		if (graph->roots[i].pinned && chance(graph, 70))
			unpin(graph, &graph->roots[i]);
	}
	for (int i = 0; i < graph->queue_count; i++)
		finish(graph, i);
}

static void release_graph(struct graph *graph)
{
	for (int i = 0; i < graph->order.count; i++) {
		if (graph->events[i])
			clReleaseEvent(graph->events[i]);
	}
	for (int i = 0; i < graph->root_count; i++)
		drop(graph, &graph->roots[i]);
	for (int i = 0; i < graph->sampler_count; i++)
		clReleaseSampler(graph->samplers[i]);
	for (int i = 0; i < graph->queue_count; i++)
		clReleaseCommandQueue(graph->queues[i].handle);
	for (int i = 0; i < graph->kept_count; i++)
		free(graph->kept[i]);
}

static int64_t step_count;

static bool run_seed(uint64_t seed)
{
	struct graph *graph = calloc(1, sizeof(*graph));
	size_t wanted;
	bool failed;

	if (!graph)
		return false;
	graph->seed = seed;
	graph->random = seed * 0x2545f4914f6cdd1du + 1;
	make_graph(graph);
	wanted = 10 + below(graph, 60);
	for (int acts_done = 0; !graph->failure[0] && graph->commands < wanted &&
				graph->order.count < MAX_NODES - 4 * RESERVED;
	     acts_done++) {
		/*
		 * Several steps per graph, so that a window of steps begins and ends in the middle
		 * of one.
		 */
		if (acts_done % 16 == 0)
			TS_STEP(__atomic_fetch_add(&step_count, 1, __ATOMIC_RELAXED));
		act(graph);
	}
	end_graph(graph);
	failed = graph->failure[0] != '\0';
	printf("seed %" PRIu64 ": %" PRIu64 " commands, %d queues, %d buffers: %s\n", seed,
	       graph->commands, graph->queue_count, graph->root_count,
	       failed ? graph->failure : "as the model says");
	__atomic_fetch_add(&given_count, graph->commands, __ATOMIC_RELAXED);
	release_graph(graph);
	free(graph);
	return !failed;
}

/* ---- devices, contexts, programs ---- */

static void insist(cl_int code, const char *what)
{
	if (code == CL_SUCCESS)
		return;
	fprintf(stderr, "opencl_random: %s: OpenCL error %d\n", what, code);
	exit(1);
}

static void build(struct context_set *context_set, cl_program program, const char *options)
{
	cl_int code = clBuildProgram(program, 0, NULL, options, NULL, NULL);
	char log[4096] = "";

	if (code != CL_SUCCESS) {
		clGetProgramBuildInfo(program, context_set->devices[0], CL_PROGRAM_BUILD_LOG,
				      sizeof(log) - 1, log, NULL);
		fputs(log, stderr);
	}
	insist(code, "clBuildProgram");
}

static cl_program program_of_source(struct context_set *context_set, const char *source,
				    const char *options)
{
	size_t half = strlen(source) / 2;
	const char *strings[2] = { source, source + half };
	size_t lengths[2] = { half, 0 }; /* the second ends with its NUL */
	cl_int code;
	cl_program program =
		clCreateProgramWithSource(context_set->context, 2, strings, lengths, &code);

	insist(code, "clCreateProgramWithSource");
	build(context_set, program, options);
	return program;
}

static cl_program program_of_binary(struct context_set *context_set, cl_program from)
{
	unsigned char *binaries[MAX_DEVICES];
	size_t bytes[MAX_DEVICES];
	cl_int status[MAX_DEVICES], code;
	cl_program program;

	insist(clGetProgramInfo(from, CL_PROGRAM_BINARY_SIZES, sizeof(bytes), bytes, NULL),
	       "clGetProgramInfo");
	for (cl_uint i = 0; i < context_set->device_count; i++)
		binaries[i] = malloc(bytes[i]);
	insist(clGetProgramInfo(from, CL_PROGRAM_BINARIES, sizeof(binaries), binaries, NULL),
	       "clGetProgramInfo");
	program = clCreateProgramWithBinary(context_set->context, context_set->device_count,
					    context_set->devices, bytes,
					    (const unsigned char **)binaries, status, &code);
	insist(code, "clCreateProgramWithBinary");
	for (cl_uint i = 0; i < context_set->device_count; i++)
		free(binaries[i]);
	build(context_set, program, NULL);
	return program;
}

static void look_at_devices(struct context_set *context_set)
{
	cl_device_svm_capabilities svm = CL_DEVICE_SVM_COARSE_GRAIN_BUFFER, its;
	cl_bool has_images = CL_TRUE, is_there;
	cl_command_queue_properties queues;
	cl_device_type type;
	cl_version version;
	cl_uint bits, arguments;

	context_set->shares_memory = context_set->has_out_of_order = true;
	context_set->has_read_write_images = true;
	for (cl_uint i = 0; i < context_set->device_count; i++) {
		its = 0;
		clGetDeviceInfo(context_set->devices[i], CL_DEVICE_SVM_CAPABILITIES, sizeof(its),
				&its, NULL);
		svm &= its;
		clGetDeviceInfo(context_set->devices[i], CL_DEVICE_TYPE, sizeof(type), &type, NULL);
		context_set->shares_memory &= !!(type & CL_DEVICE_TYPE_CPU);
		is_there = CL_FALSE;
		clGetDeviceInfo(context_set->devices[i], CL_DEVICE_IMAGE_SUPPORT, sizeof(is_there),
				&is_there, NULL);
		has_images &= is_there;
		version = 0;
		clGetDeviceInfo(context_set->devices[i], CL_DEVICE_NUMERIC_VERSION, sizeof(version),
				&version, NULL);
		arguments = 0;
		clGetDeviceInfo(context_set->devices[i], CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS,
				sizeof(arguments), &arguments, NULL);
		context_set->has_read_write_images &= arguments &&
						      version >= CL_MAKE_VERSION(3, 0, 0);
		queues = 0;
		clGetDeviceInfo(context_set->devices[i], CL_DEVICE_QUEUE_PROPERTIES, sizeof(queues),
				&queues, NULL);
		context_set->has_out_of_order &=
			!!(queues & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
		bits = 0;
		clGetDeviceInfo(context_set->devices[i], CL_DEVICE_MEM_BASE_ADDR_ALIGN,
				sizeof(bits), &bits, NULL);
		if (bits / 8 > context_set->alignment)
			context_set->alignment = bits / 8;
	}
	if (!context_set->alignment)
		context_set->alignment = 128;
	context_set->has_svm = svm != 0;
	context_set->has_images = has_images;
}

static void make_context_set(const cl_device_id *devices, cl_uint count)
{
	struct context_set *context_set = &context_sets[context_set_count++];
	cl_int code;

	memcpy(context_set->devices, devices, count * sizeof(*devices));
	context_set->device_count = count;
	context_set->context = clCreateContext(NULL, count, devices, NULL, NULL, &code);
	insist(code, "clCreateContext");
	look_at_devices(context_set);
	context_set->programs[0] = program_of_source(context_set, kernel_source, "-DFACTOR=3");
	context_set->programs[1] =
		program_of_source(context_set, kernel_source, "-D FACTOR=5 -cl-mad-enable");
	context_set->programs[2] = program_of_binary(context_set, context_set->programs[0]);
	if (features.images && context_set->has_images)
		context_set->image_program = program_of_source(
			context_set, image_kernel_source,
			context_set->has_read_write_images ? "-cl-std=CL3.0 -DREAD_WRITE" : NULL);
}

static cl_uint find_devices(cl_device_id *devices, const char *wanted)
{
	cl_platform_id platforms[16];
	cl_uint platform_count = 0, count = 0;

	clGetPlatformIDs(16, platforms, &platform_count);
	for (cl_uint i = 0; i < platform_count && i < 16 && !count; i++) {
		if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, MAX_DEVICES, devices,
				   &count) != CL_SUCCESS)
			count = 0;
	}
	if (count > MAX_DEVICES)
		count = MAX_DEVICES;
	if (wanted) {
		cl_uint number = (cl_uint)strtoul(wanted, NULL, 10);

		if (number >= count)
			return 0;
		devices[0] = devices[number];
		count = 1;
	}
	return count;
}

static void make_context_sets(const char *wanted)
{
	cl_device_id devices[MAX_DEVICES];
	cl_uint count = find_devices(devices, wanted);

	if (!count) {
		puts("skip: no OpenCL device");
		exit(77);
	}
	make_context_set(devices, 1);
	if (features.context_sets)
		make_context_set(devices, count);
	if (features.context_sets && count > 1)
		make_context_set(devices + count - 1, 1);
}

static void release_context_sets(void)
{
	for (int i = 0; i < context_set_count; i++) {
		for (int p = 0; p < PROGRAMS; p++)
			clReleaseProgram(context_sets[i].programs[p]);
		if (context_sets[i].image_program)
			clReleaseProgram(context_sets[i].image_program);
		clReleaseContext(context_sets[i].context);
	}
}

/* ---- the command line ---- */

static uint64_t next_seed, last_seed;
static int failures;

static void *work(void *unused)
{
	uint64_t seed;

	while ((seed = __atomic_fetch_add(&next_seed, 1, __ATOMIC_RELAXED)) <= last_seed) {
		if (!run_seed(seed))
			__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
	}
	return unused;
}

static void run_threads(long count)
{
	pthread_t threads[16];

	for (long i = 1; i < count; i++) {
		if (pthread_create(&threads[i], NULL, work, NULL)) {
			perror("opencl_random: cannot start a thread");
			exit(1);
		}
	}
	work(NULL);
	for (long i = 1; i < count; i++)
		pthread_join(threads[i], NULL);
}

static int usage(void)
{
	fputs("usage: opencl_random [--seeds A-B] [--threads N] [--device NUMBER] [--without FEATURE,...] [--verbose]\n"
	      "features:",
	      stderr);
#define PRINT_NAME(name) fputs(" " #name, stderr);
	FEATURES(PRINT_NAME)
	fputs("\n", stderr);
	return 2;
}

static bool leave_out(char *names)
{
	for (char *name = strtok(names, ","); name; name = strtok(NULL, ",")) {
		bool found = false;
#define LEAVE_OUT(member)                \
	if (!strcmp(name, #member)) {    \
		features.member = false; \
		found = true;            \
	}
		FEATURES(LEAVE_OUT)
		if (!found)
			return false;
	}
	return true;
}

static bool parse_seeds(const char *text)
{
	char *end;

	next_seed = last_seed = strtoull(text, &end, 10);
	if (end != text && *end == '-')
		last_seed = strtoull(end + 1, &end, 10);
	return end != text && !*end && last_seed >= next_seed;
}

static int parse(int argc, char **argv, const char **ret_device, long *ret_threads)
{
	next_seed = last_seed = 1;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--verbose")) {
			verbose = true;
			continue;
		}
		if (i + 1 == argc)
			return usage();
		if (!strcmp(argv[i], "--seeds") && parse_seeds(argv[i + 1]))
			i++;
		else if (!strcmp(argv[i], "--threads"))
			*ret_threads = strtol(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--device"))
			*ret_device = argv[++i];
		else if (!strcmp(argv[i], "--without") && leave_out(argv[i + 1]))
			i++;
		else
			return usage();
	}
	return *ret_threads < 1 || *ret_threads > 16 ? usage() : 0;
}

int main(int argc, char **argv)
{
	const char *device = NULL;
	long threads = 1;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (parse(argc, argv, &device, &threads))
		return 2;
	make_context_sets(device);
	run_threads(threads);
	release_context_sets();
	printf("total: %" PRIu64 " commands given, %d seeds failed\n", given_count, failures);
	return failures ? 1 : 0;
}
