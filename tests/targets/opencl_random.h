/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building blocks of opencl_random.c: contexts, queues, memory with a model of its contents, and
 * pending commands, which wait for whatever the order graph requires.
 */
#ifndef OPENCL_RANDOM_H
#define OPENCL_RANDOM_H

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "opencl_graph.h"

enum {
	MAX_DEVICES = 3,
	MAX_CONTEXT_SETS = 3,
	MAX_ROOTS = 10,
	MAX_VIEWS = 2,
	MAX_WAITS = 24,
	MAX_USERS = 3,
	MAX_MAPPINGS = 3,
	MAX_KEPT = 1024,
	PROGRAMS = 3,
};

/* ---- state ---- */

/* A context with its programs. Contexts stay; everything else is created for each seed. */
struct context_set {
	cl_context context;
	cl_device_id devices[MAX_DEVICES];
	cl_uint device_count;
	cl_program programs[PROGRAMS];
	cl_program image_program; /* NULL: no images */
	size_t alignment;         /* of sub-buffers */
	bool has_svm, has_images, has_read_write_images, shares_memory, has_out_of_order;
};

static struct context_set context_sets[MAX_CONTEXT_SETS];
static int context_set_count;
static bool verbose;
static uint64_t given_count; /* commands of all seeds */

#define FEATURES(X) \
	X(views)    \
	X(svm)      \
	X(users) X(maps) X(rects) X(hosts) X(pins) X(partial) X(context_sets) X(events) X(images)
#define MEMBER(name) bool name;
static struct {
	FEATURES(MEMBER)
} features = {
#define TRUE_MEMBER(name) .name = true,
	FEATURES(TRUE_MEMBER)
};

struct view {
	cl_mem mem;
	size_t origin, bytes;
};

struct root {
	struct context_set *context_set;
	cl_mem mem;
	unsigned char *svm;    /* instead of mem */
	unsigned char *shared; /* the host's memory: CL_MEM_USE_HOST_PTR, or mapped for ever */
	unsigned char *pinned; /* where it is mapped for ever; NULL: it is not */
	unsigned char *model;
	size_t bytes;
	size_t known; /* bytes that are ever written; the rest stays unchanged */
	cl_mem_flags flags;
	struct view views[MAX_VIEWS];
	int view_count;
	int read_maps;
	bool write_map, gone, is_image;
	cl_mem_object_type type; /* of images, as all below */
	cl_image_format format;
	size_t pixels[3]; /* width, height, depth; the layers of an array are its last */
};

struct queue {
	cl_command_queue handle;
	struct context_set *context_set;
};

/* The target of a read, and the expected contents. */
struct landing {
	unsigned char *host, *expected;
	size_t bytes;
	int node;
};

/* One side of a rectangle of bytes: its origin, and the pitch of rows and slices. */
struct side {
	size_t origin[3], row, slice;
};

/* A rectangle of the memory is mapped; one row, unless it is of an image. */
struct mapping {
	struct queue *queue;
	struct root *root;
	cl_mem mem; /* the mapped one */
	unsigned char *at;
	size_t region[3];
	struct side model, host;
	bool writes, invalidates;
};

struct graph {
	uint64_t seed, random;
	struct context_set *context_sets[MAX_CONTEXT_SETS];
	int context_set_count;
	struct queue queues[MAX_QUEUES];
	int queue_count;
	struct root roots[MAX_ROOTS];
	int root_count;
	struct order order;
	cl_event events[MAX_NODES]; /* NULL: none */
	struct landing landings[MAX_NODES];
	int landing_count;
	cl_event users[MAX_USERS]; /* not set yet */
	int user_count;
	struct mapping mappings[MAX_MAPPINGS];
	int mapping_count;
	cl_sampler samplers[MAX_NODES];
	int sampler_count;
	void *kept[MAX_KEPT]; /* memory that commands may still use */
	int kept_count;
	uint64_t commands;
	char failure[256];
};

static void fail(struct graph *graph, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void fail(struct graph *graph, const char *format, ...)
{
	va_list list;

	if (graph->failure[0])
		return;
	va_start(list, format);
	vsnprintf(graph->failure, sizeof(graph->failure), format, list);
	va_end(list);
}

static void check(struct graph *graph, cl_int code, const char *what)
{
	if (code != CL_SUCCESS)
		fail(graph, "%s: OpenCL error %d", what, code);
}

/* ---- random choices ---- */

static uint64_t next_random(struct graph *graph)
{
	uint64_t z = graph->random += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static size_t below(struct graph *graph, size_t limit)
{
	return (size_t)(next_random(graph) % limit);
}

static bool chance(struct graph *graph, unsigned int percent)
{
	return below(graph, 100) < percent;
}

static void *keep(struct graph *graph, size_t bytes)
{
	void *memory = graph->kept_count < MAX_KEPT ? malloc(bytes ? bytes : 1) : NULL;

	if (!memory) {
		fputs("opencl_random: out of memory\n", stderr);
		exit(1);
	}
	graph->kept[graph->kept_count++] = memory;
	return memory;
}

static void scramble(struct graph *graph, unsigned char *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		data[i] = (unsigned char)next_random(graph);
}

/* ---- a pending command ---- */

struct step {
	struct graph *graph;
	struct queue *queue;
	int queue_number;
	struct range ranges[MAX_RANGES];
	int range_count;
	struct bits behind;
	cl_event waits[MAX_WAITS];
	cl_uint wait_count;
	cl_event event;
	bool wants_event, blocking;
};

static const cl_event *waits_of(const struct step *step)
{
	return step->wait_count ? step->waits : NULL;
}

static cl_event *event_of(struct step *step)
{
	return step->wants_event ? &step->event : NULL;
}

static struct step begin_in(struct graph *graph, int number)
{
	struct step step = { .graph = graph };

	step.queue = &graph->queues[number];
	step.queue_number = number;
	step.wants_event = !features.events || chance(graph, 80);
	return step;
}

/* In any queue of a context; every context has one. */
static struct step begin(struct graph *graph, const struct context_set *context_set)
{
	int number;

	do
		number = (int)below(graph, (size_t)graph->queue_count);
	while (graph->queues[number].context_set != context_set);
	return begin_in(graph, number);
}

static void set_users(struct graph *graph)
{
	for (int i = 0; i < graph->user_count; i++) {
		check(graph, clSetUserEventStatus(graph->users[i], CL_COMPLETE),
		      "clSetUserEventStatus");
		clReleaseEvent(graph->users[i]);
	}
	graph->user_count = 0;
}

/* Called before the host waits for anything: nothing may depend on what only the host can do. */
static void let_run(struct graph *graph)
{
	set_users(graph);
	for (int i = 0; i < graph->queue_count; i++)
		check(graph, clFlush(graph->queues[i].handle), "clFlush");
}

/* After a successful call: it is a node of the graph, and its event is kept, or not. */
static int given(struct step *step, cl_int code, const char *call)
{
	struct graph *graph = step->graph;
	int node;

	check(graph, code, call);
	node = order_add(&graph->order, step->queue_number, &step->behind, step->ranges,
			 step->range_count);
	graph->commands++;
	if (code == CL_SUCCESS && step->wants_event)
		graph->events[node] = step->event;
	if (graph->events[node] && chance(graph, 10)) {
		clReleaseEvent(graph->events[node]);
		graph->events[node] = NULL;
	}
	if (step->blocking)
		bits_add(&graph->order.done, &graph->order.nodes[node].upto);
	if (verbose)
		fprintf(stderr, "  %d: %s in queue %d%s, %u waits\n", node, call,
			step->queue_number, step->blocking ? " (blocking)" : "", step->wait_count);
	return node;
}

/* A marker: follows everything submitted to its queue. */
static int give_marker(struct graph *graph, int queue)
{
	struct step step = begin_in(graph, queue);

	step.wants_event = true;
	step.behind = graph->order.queues[queue].all;
	bits_add(&step.behind, &graph->order.done);
	check(graph, clEnqueueMarkerWithWaitList(step.queue->handle, 0, NULL, &step.event),
	      "clEnqueueMarkerWithWaitList");
	graph->events[graph->order.count] = step.event;
	graph->commands++;
	return order_add(&graph->order, queue, &step.behind, NULL, 0);
}

static void wait_for(struct step *step, int node)
{
	struct graph *graph = step->graph;

	/* If another queue waits for a command, its queue must be flushed. */
	check(graph, clFlush(graph->queues[graph->order.nodes[node].queue].handle), "clFlush");
	step->waits[step->wait_count++] = graph->events[node];
	bits_add(&step->behind, &graph->order.nodes[node].upto);
}

static void wait_for_user(struct step *step)
{
	struct graph *graph = step->graph;
	cl_int code;
	cl_event user;

	if (!features.users || step->blocking || graph->user_count == MAX_USERS ||
	    !chance(graph, 5))
		return;
	user = clCreateUserEvent(step->queue->context_set->context, &code);
	check(graph, code, "clCreateUserEvent");
	if (code != CL_SUCCESS)
		return;
	graph->users[graph->user_count++] = user;
	step->waits[step->wait_count++] = user;
}

/* All ranges are added: finds its dependencies. */
static void arrange(struct step *step)
{
	struct graph *graph = step->graph;
	int node;

	step->behind = order_behind(&graph->order, step->queue_number);
	while ((node = order_next(&graph->order, &step->behind, step->ranges, step->range_count)) >=
	       0) {
		if (!graph->events[node])
			node = give_marker(graph, graph->order.nodes[node].queue);
		wait_for(step, node);
	}
	/* Sometimes an unnecessary one. */
	if (graph->order.count && chance(graph, 10)) {
		node = (int)below(graph, (size_t)graph->order.count);
		if (graph->events[node] &&
		    graph->queues[graph->order.nodes[node].queue].context_set ==
			    step->queue->context_set)
			wait_for(step, node);
	}
	wait_for_user(step);
	if (step->blocking)
		let_run(graph);
}

/* ---- memory of commands ---- */

struct operand {
	struct root *root;
	cl_mem mem;
	size_t origin; /* of `mem` in its root */
	size_t bytes;
};

static int number_of(const struct graph *graph, const struct root *root)
{
	return (int)(root - graph->roots);
}

/* The entire argument: what kernels may access. */
static void add_operand(struct step *step, const struct operand *operand, bool writes)
{
	step->ranges[step->range_count++] =
		(struct range){ number_of(step->graph, operand->root), operand->origin,
				operand->origin + operand->bytes, writes };
}

/* Part of it, if devices do not copy entire buffers back and forth. */
static void add_part(struct step *step, const struct operand *operand, size_t offset, size_t bytes,
		     bool writes)
{
	if (!operand->root->context_set->shares_memory &&
	    operand->root->context_set->device_count > 1) {
		add_operand(step, operand, writes);
		return;
	}
	step->ranges[step->range_count++] =
		(struct range){ number_of(step->graph, operand->root), operand->origin + offset,
				operand->origin + offset + bytes, writes };
}

static bool is_usable(const struct root *root, const struct context_set *context_set, bool writes)
{
	return !root->gone && (!context_set || root->context_set == context_set) &&
	       !root->write_map && !(writes && root->read_maps);
}

enum { ANY_MEMORY, BUFFERS, SVM, IMAGES }; /* ANY_MEMORY: no images */

/* Any memory that fits; false: there is none. */
static bool pick(struct graph *graph, const struct context_set *context_set, int kind, bool writes,
		 struct operand *ret_operand)
{
	for (int tries = 0; tries < 20; tries++) {
		struct root *root = &graph->roots[below(graph, (size_t)graph->root_count)];

		if (!is_usable(root, context_set, writes) || (kind == BUFFERS && root->svm) ||
		    (kind == SVM && !root->svm) || root->is_image != (kind == IMAGES))
			continue;
		*ret_operand = (struct operand){ root, root->mem, 0, root->known };
		if (root->view_count && chance(graph, 40)) {
			struct view *view = &root->views[below(graph, (size_t)root->view_count)];

			*ret_operand =
				(struct operand){ root, view->mem, view->origin, view->bytes };
		} else if (root->svm && chance(graph, 40)) {
			ret_operand->origin = root->known / 256 * 64;
			ret_operand->bytes -= ret_operand->origin;
		}
		return true;
	}
	return false;
}

static unsigned char *model_of(const struct operand *operand)
{
	return operand->root->model + operand->origin;
}

/* A range inside, at least one byte. */
static void pick_range(struct graph *graph, size_t limit, size_t *ret_offset, size_t *ret_bytes)
{
	*ret_bytes = chance(graph, 30) ? limit : 1 + below(graph, limit);
	*ret_offset = below(graph, limit - *ret_bytes + 1);
}

#endif
