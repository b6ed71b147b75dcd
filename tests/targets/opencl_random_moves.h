/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands of opencl_random.c that move bytes: reads, writes, copies, fills, rectangles, maps,
 * shared virtual memory.
 */
#ifndef OPENCL_RANDOM_MOVES_H
#define OPENCL_RANDOM_MOVES_H

#include "opencl_random.h"

/* ---- reads, writes, copies, fills ---- */

/* The current content of `expected` arrives at `host` when the node ends. */
static void expect(struct graph *graph, unsigned char *host, const unsigned char *expected,
		   size_t bytes, int node)
{
	struct landing *landing = &graph->landings[graph->landing_count++];

	*landing = (struct landing){ host, keep(graph, bytes), bytes, node };
	memcpy(landing->expected, expected, bytes);
}

/* Compares what the host may access by now. */
static void look(struct graph *graph)
{
	for (int i = 0; i < graph->landing_count; i++) {
		struct landing *landing = &graph->landings[i];
		size_t at = 0;

		if (!landing->bytes || !bits_has(&graph->order.done, landing->node))
			continue;
		while (at < landing->bytes && landing->host[at] == landing->expected[at])
			at++;
		if (at < landing->bytes)
			fail(graph, "command %d brought %02x, not %02x, at byte %zu of %zu",
			     landing->node, landing->host[at], landing->expected[at], at,
			     landing->bytes);
		landing->bytes = 0;
	}
}

static void do_write(struct graph *graph)
{
	struct operand to;
	struct step step;
	size_t offset, bytes;
	unsigned char *host;

	if (!pick(graph, NULL, BUFFERS, true, &to))
		return;
	pick_range(graph, to.bytes, &offset, &bytes);
	host = keep(graph, bytes);
	scramble(graph, host, bytes);
	step = begin(graph, to.root->context_set);
	step.blocking = chance(graph, 20);
	add_part(&step, &to, offset, bytes, true);
	arrange(&step);
	given(&step,
	      clEnqueueWriteBuffer(step.queue->handle, to.mem, step.blocking, offset, bytes, host,
				   step.wait_count, waits_of(&step), event_of(&step)),
	      "clEnqueueWriteBuffer");
	memcpy(model_of(&to) + offset, host, bytes);
	/* After a blocking call the host owns the memory again. */
	if (step.blocking)
		scramble(graph, host, bytes);
}

/* Writes the target of a read that may still be pending: part of it goes on to other memory. */
static void write_on(struct graph *graph, const unsigned char *host, const unsigned char *expected,
		     size_t bytes, int read)
{
	struct operand to;
	struct step step;
	size_t from, to_offset;
	int queue = graph->order.nodes[read].queue;

	if (!pick(graph, graph->queues[queue].context_set, BUFFERS, true, &to))
		return;
	if (bytes > to.bytes)
		bytes = to.bytes;
	pick_range(graph, bytes, &from, &bytes);
	to_offset = below(graph, to.bytes - bytes + 1);
	step = begin_in(graph, queue);
	add_part(&step, &to, to_offset, bytes, true);
	arrange(&step);
	if (!bits_has(&step.behind, read)) {
		if (!graph->events[read])
			return;
		wait_for(&step, read);
	}
	given(&step,
	      clEnqueueWriteBuffer(step.queue->handle, to.mem, CL_FALSE, to_offset, bytes,
				   host + from, step.wait_count, waits_of(&step), event_of(&step)),
	      "clEnqueueWriteBuffer");
	memcpy(model_of(&to) + to_offset, expected + from, bytes);
}

static void do_read(struct graph *graph)
{
	struct operand from;
	struct step step;
	size_t offset, bytes;
	unsigned char *host;
	int node;

	if (!pick(graph, NULL, BUFFERS, false, &from))
		return;
	pick_range(graph, from.bytes, &offset, &bytes);
	host = keep(graph, bytes);
	memset(host, 0xa5, bytes);
	step = begin(graph, from.root->context_set);
	step.blocking = chance(graph, 20);
	add_part(&step, &from, offset, bytes, false);
	arrange(&step);
	node = given(&step,
		     clEnqueueReadBuffer(step.queue->handle, from.mem, step.blocking, offset, bytes,
					 host, step.wait_count, waits_of(&step), event_of(&step)),
		     "clEnqueueReadBuffer");
	expect(graph, host, model_of(&from) + offset, bytes, node);
	/*
	 * Not while a user event is unset: a recorder has to wait for such a read. NVIDIA's driver
	 * reads the host's memory when the write is enqueued, not after what the write waits for.
	 */
	if (chance(graph, 20) && !graph->user_count && from.root->context_set->shares_memory)
		write_on(graph, host, graph->landings[graph->landing_count - 1].expected, bytes,
			 node);
}

static void do_copy(struct graph *graph)
{
	struct operand from, to;
	struct step step;
	size_t from_offset, to_offset, bytes, limit;

	if (!pick(graph, NULL, BUFFERS, false, &from) ||
	    !pick(graph, from.root->context_set, BUFFERS, true, &to) || to.root == from.root)
		return;
	limit = from.bytes < to.bytes ? from.bytes : to.bytes;
	pick_range(graph, limit, &from_offset, &bytes);
	to_offset = below(graph, to.bytes - bytes + 1);
	step = begin(graph, from.root->context_set);
	add_part(&step, &from, from_offset, bytes, false);
	add_part(&step, &to, to_offset, bytes, true);
	arrange(&step);
	given(&step,
	      clEnqueueCopyBuffer(step.queue->handle, from.mem, to.mem, from_offset, to_offset,
				  bytes, step.wait_count, waits_of(&step), event_of(&step)),
	      "clEnqueueCopyBuffer");
	memcpy(model_of(&to) + to_offset, model_of(&from) + from_offset, bytes);
}

/* Within one buffer, from one half to the other. */
static void do_copy_inside(struct graph *graph)
{
	struct operand to;
	struct step step;
	size_t half, bytes, from_offset, to_offset;

	if (!pick(graph, NULL, BUFFERS, true, &to))
		return;
	half = to.bytes / 2;
	pick_range(graph, half, &from_offset, &bytes);
	to_offset = half + below(graph, half - bytes + 1);
	step = begin(graph, to.root->context_set);
	add_operand(&step, &to, true);
	arrange(&step);
	given(&step,
	      clEnqueueCopyBuffer(step.queue->handle, to.mem, to.mem, from_offset, to_offset, bytes,
				  step.wait_count, waits_of(&step), event_of(&step)),
	      "clEnqueueCopyBuffer");
	memcpy(model_of(&to) + to_offset, model_of(&to) + from_offset, bytes);
}

static void repeat_pattern(unsigned char *to, size_t bytes, const unsigned char *pattern,
			   size_t pattern_bytes)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = pattern[i % pattern_bytes];
}

static void do_fill(struct graph *graph)
{
	unsigned char pattern[16];
	size_t size = (size_t)1 << below(graph, 5), offset, bytes;
	struct operand to;
	struct step step;

	if (!pick(graph, NULL, BUFFERS, true, &to))
		return;
	scramble(graph, pattern, size);
	pick_range(graph, to.bytes / size, &offset, &bytes);
	offset *= size;
	bytes *= size;
	step = begin(graph, to.root->context_set);
	add_part(&step, &to, offset, bytes, true);
	arrange(&step);
	given(&step,
	      clEnqueueFillBuffer(step.queue->handle, to.mem, pattern, size, offset, bytes,
				  step.wait_count, waits_of(&step), event_of(&step)),
	      "clEnqueueFillBuffer");
	repeat_pattern(model_of(&to) + offset, bytes, pattern, size);
	memset(pattern, 0, sizeof(pattern));
}

/* ---- rectangles ---- */

static size_t offset_in(const struct side *side, size_t y, size_t z)
{
	return (side->origin[2] + z) * side->slice + (side->origin[1] + y) * side->row +
	       side->origin[0];
}

/* A side with some margin around the rectangle. Its end is after the last byte. */
static size_t make_side(struct graph *graph, struct side *side, const size_t region[3])
{
	for (int i = 0; i < 3; i++)
		side->origin[i] = below(graph, 4);
	side->row = side->origin[0] + region[0] + below(graph, 5);
	/* Some drivers require slices of complete rows. */
	side->slice = side->row * (side->origin[1] + region[1] + below(graph, 3));
	return offset_in(side, region[1] - 1, region[2] - 1) + region[0];
}

static void move_rect(unsigned char *to, const struct side *to_side, const unsigned char *from,
		      const struct side *from_side, const size_t region[3])
{
	for (size_t z = 0; z < region[2]; z++) {
		for (size_t y = 0; y < region[1]; y++)
			memcpy(to + offset_in(to_side, y, z), from + offset_in(from_side, y, z),
			       region[0]);
	}
}

static void do_copy_rect(struct graph *graph)
{
	size_t region[3] = { 1 + below(graph, 20), 1 + below(graph, 5), 1 + below(graph, 3) };
	struct side to_side, from_side;
	size_t to_end = make_side(graph, &to_side, region);
	size_t from_end = make_side(graph, &from_side, region);
	struct operand from, to;
	struct step step;

	if (!pick(graph, NULL, BUFFERS, false, &from) ||
	    !pick(graph, from.root->context_set, BUFFERS, true, &to) || to.root == from.root ||
	    from.bytes < from_end || to.bytes < to_end)
		return;
	/* PoCL 3.1 crashes on sub-buffers here. */
	if (from.mem != from.root->mem || to.mem != to.root->mem)
		return;
	step = begin(graph, from.root->context_set);
	add_part(&step, &from, 0, from_end, false);
	add_part(&step, &to, 0, to_end, true);
	arrange(&step);
	given(&step,
	      clEnqueueCopyBufferRect(step.queue->handle, from.mem, to.mem, from_side.origin,
				      to_side.origin, region, from_side.row, from_side.slice,
				      to_side.row, to_side.slice, step.wait_count, waits_of(&step),
				      event_of(&step)),
	      "clEnqueueCopyBufferRect");
	move_rect(model_of(&to), &to_side, model_of(&from), &from_side, region);
}

static void do_write_rect(struct graph *graph)
{
	size_t region[3] = { 1 + below(graph, 20), 1 + below(graph, 5), 1 + below(graph, 3) };
	struct side side, host_side;
	size_t end = make_side(graph, &side, region);
	size_t host_end = make_side(graph, &host_side, region);
	struct operand to;
	struct step step;
	unsigned char *host;

	if (!pick(graph, NULL, BUFFERS, true, &to) || to.bytes < end)
		return;
	host = keep(graph, host_end);
	scramble(graph, host, host_end);
	step = begin(graph, to.root->context_set);
	step.blocking = chance(graph, 20);
	add_part(&step, &to, 0, end, true);
	arrange(&step);
	given(&step,
	      clEnqueueWriteBufferRect(step.queue->handle, to.mem, step.blocking, side.origin,
				       host_side.origin, region, side.row, side.slice,
				       host_side.row, host_side.slice, host, step.wait_count,
				       waits_of(&step), event_of(&step)),
	      "clEnqueueWriteBufferRect");
	move_rect(model_of(&to), &side, host, &host_side, region);
}

static void do_read_rect(struct graph *graph)
{
	size_t region[3] = { 1 + below(graph, 20), 1 + below(graph, 5), 1 + below(graph, 3) };
	struct side side, host_side;
	size_t end = make_side(graph, &side, region);
	size_t host_end = make_side(graph, &host_side, region);
	struct operand from;
	struct step step;
	unsigned char *host, *expected;
	int node;

	if (!pick(graph, NULL, BUFFERS, false, &from) || from.bytes < end)
		return;
	host = keep(graph, host_end);
	expected = keep(graph, host_end);
	memset(host, 0x5a, host_end);
	memset(expected, 0x5a, host_end);
	step = begin(graph, from.root->context_set);
	step.blocking = chance(graph, 20);
	add_part(&step, &from, 0, end, false);
	arrange(&step);
	node = given(&step,
		     clEnqueueReadBufferRect(step.queue->handle, from.mem, step.blocking,
					     side.origin, host_side.origin, region, side.row,
					     side.slice, host_side.row, host_side.slice, host,
					     step.wait_count, waits_of(&step), event_of(&step)),
		     "clEnqueueReadBufferRect");
	move_rect(expected, &host_side, model_of(&from), &side, region);
	expect(graph, host, expected, host_end, node);
}

/* ---- maps ---- */

static void *enqueue_map(struct step *step, const struct operand *operand, cl_map_flags flags,
			 size_t offset, size_t bytes)
{
	cl_int code;
	void *at = operand->root->svm;

	if (at) {
		at = (unsigned char *)at + operand->origin + offset;
		code = clEnqueueSVMMap(step->queue->handle, step->blocking, flags, at, bytes,
				       step->wait_count, waits_of(step), event_of(step));
		given(step, code, "clEnqueueSVMMap");
		return at;
	}
	at = clEnqueueMapBuffer(step->queue->handle, operand->mem, step->blocking, flags, offset,
				bytes, step->wait_count, waits_of(step), event_of(step), &code);
	given(step, code, "clEnqueueMapBuffer");
	return at;
}

/* Waits until the host may use it. */
static void wait_for_map(struct graph *graph, int node, int queue)
{
	let_run(graph);
	if (graph->events[node])
		check(graph, clWaitForEvents(1, &graph->events[node]), "clWaitForEvents");
	else
		check(graph, clFinish(graph->queues[queue].handle), "clFinish");
	bits_add(&graph->order.done, &graph->order.nodes[node].upto);
}

/* Offset of a byte of the packed rectangle. */
static size_t byte_in(const struct side *side, const size_t region[3], size_t number)
{
	size_t row = number / region[0];

	return offset_in(side, row % region[1], row / region[1]) + number % region[0];
}

static void host_uses(struct graph *graph, struct mapping *mapping)
{
	const size_t *region = mapping->region;
	size_t bytes = region[0] * region[1] * region[2], first = 0, count = bytes;
	unsigned char *model = mapping->root->model, *at = mapping->at;

	for (size_t i = 0; i < bytes && !mapping->invalidates; i++) {
		if (at[byte_in(&mapping->host, region, i)] ==
		    model[byte_in(&mapping->model, region, i)])
			continue;
		fail(graph, "a map of memory %d does not show what is there at byte %zu of %zu",
		     number_of(graph, mapping->root), i, bytes);
	}
	if (!mapping->writes)
		return;
	if (!mapping->invalidates)
		pick_range(graph, bytes, &first, &count);
	for (size_t i = first; i < first + count; i++)
		at[byte_in(&mapping->host, region, i)] =
			model[byte_in(&mapping->model, region, i)] =
				(unsigned char)next_random(graph);
}

static cl_map_flags map_flags(const struct mapping *mapping, bool reads)
{
	if (mapping->invalidates)
		return CL_MAP_WRITE_INVALIDATE_REGION;
	return (mapping->writes ? CL_MAP_WRITE : 0) | (reads || !mapping->writes ? CL_MAP_READ : 0);
}

/* While any part of it is mapped for writing, nothing else may use it. */
static void add_mapped(struct step *step, const struct mapping *mapping)
{
	struct operand all = { mapping->root, mapping->root->mem, 0, mapping->root->bytes };

	if (mapping->writes || mapping->root->is_image)
		add_operand(step, &all, mapping->writes);
	else
		add_part(step, &all, mapping->model.origin[0], mapping->region[0], false);
}

/* After the call that maps it. */
static void use_map(struct graph *graph, struct mapping *mapping, const struct step *step)
{
	if (graph->failure[0])
		return;
	if (!step->blocking)
		wait_for_map(graph, graph->order.count - 1, step->queue_number);
	if (mapping->writes)
		mapping->root->write_map = true;
	else
		mapping->root->read_maps++;
	host_uses(graph, mapping);
	graph->mapping_count++;
}

static void set_range(struct mapping *mapping, size_t from, size_t bytes)
{
	mapping->region[0] = bytes;
	mapping->region[1] = mapping->region[2] = 1;
	mapping->model.origin[0] = from;
}

static void do_map(struct graph *graph)
{
	struct mapping *mapping = &graph->mappings[graph->mapping_count];
	struct operand operand;
	struct step step;
	size_t offset, bytes;
	bool writes = chance(graph, 60);

	if (graph->mapping_count == MAX_MAPPINGS ||
	    !pick(graph, NULL, ANY_MEMORY, writes, &operand))
		return;
	/* Avoids two maps of the same memory at once, whose semantics are unclear. */
	if (operand.root->read_maps || operand.root->pinned)
		return;
	*mapping = (struct mapping){ .root = operand.root, .mem = operand.mem, .writes = writes };
	pick_range(graph, operand.bytes, &offset, &bytes);
	set_range(mapping, operand.origin + offset, bytes);
	mapping->invalidates = writes && !operand.root->svm && chance(graph, 40);
	step = begin(graph, operand.root->context_set);
	mapping->queue = step.queue;
	step.blocking = chance(graph, 50);
	add_mapped(&step, mapping);
	arrange(&step);
	mapping->at =
		enqueue_map(&step, &operand, map_flags(mapping, chance(graph, 50)), offset, bytes);
	use_map(graph, mapping, &step);
}

static void unmap(struct graph *graph, int number)
{
	struct mapping *mapping = &graph->mappings[number];
	struct step step = begin(graph, mapping->root->context_set);
	cl_int code;

	add_mapped(&step, mapping);
	arrange(&step);
	if (mapping->root->svm)
		code = clEnqueueSVMUnmap(step.queue->handle, mapping->at, step.wait_count,
					 waits_of(&step), event_of(&step));
	else
		code = clEnqueueUnmapMemObject(step.queue->handle, mapping->mem, mapping->at,
					       step.wait_count, waits_of(&step), event_of(&step));
	given(&step, code, "unmap");
	if (mapping->writes)
		mapping->root->write_map = false;
	else
		mapping->root->read_maps--;
	*mapping = graph->mappings[--graph->mapping_count];
}

static void do_unmap(struct graph *graph)
{
	if (graph->mapping_count)
		unmap(graph, (int)below(graph, (size_t)graph->mapping_count));
}

/* ---- maps that stay open ---- */

/*
 * Maps memory for ever. If host and device have the same memory, both go on to use it, as programs
 * with a staging buffer do.
 */
static void do_pin(struct graph *graph)
{
	struct root *root = &graph->roots[below(graph, (size_t)graph->root_count)];
	struct operand all = { root, root->mem, 0, root->known };
	struct step step;

	if (root->pinned || root->is_image || root->read_maps ||
	    !root->context_set->shares_memory || !is_usable(root, NULL, true))
		return;
	step = begin(graph, root->context_set);
	step.blocking = true;
	add_operand(&step, &all, true);
	arrange(&step);
	root->pinned = enqueue_map(&step, &all, CL_MAP_READ | CL_MAP_WRITE, 0, root->known);
	if (!graph->failure[0] && !root->shared)
		root->shared = root->pinned;
}

/* Commands that use it are complete. */
static void unpin(struct graph *graph, struct root *root)
{
	struct mapping mapping = {
		.root = root, .mem = root->mem, .at = root->pinned, .writes = true
	};

	set_range(&mapping, 0, root->known);
	graph->mappings[graph->mapping_count++] = mapping;
	unmap(graph, graph->mapping_count - 1);
	root->pinned = NULL;
}

/* ---- shared virtual memory ---- */

static void do_svm_fill(struct graph *graph)
{
	unsigned char pattern[16];
	size_t size = (size_t)1 << below(graph, 5), count;
	struct operand to;
	struct step step;

	if (!pick(graph, NULL, SVM, true, &to))
		return;
	scramble(graph, pattern, size);
	count = 1 + below(graph, to.bytes / size);
	step = begin(graph, to.root->context_set);
	add_operand(&step, &to, true);
	arrange(&step);
	given(&step,
	      clEnqueueSVMMemFill(step.queue->handle, to.root->svm + to.origin, pattern, size,
				  count * size, step.wait_count, waits_of(&step), event_of(&step)),
	      "clEnqueueSVMMemFill");
	repeat_pattern(model_of(&to), count * size, pattern, size);
}

/* Between shared memory, from the host, or to it. */
static void do_svm_copy(struct graph *graph)
{
	struct operand a, b;
	struct step step;
	unsigned char *host = NULL;
	size_t bytes;
	bool to_host = chance(graph, 30), from_host = !to_host && chance(graph, 40);
	int node;

	if (!pick(graph, NULL, SVM, !to_host, &a))
		return;
	b = a;
	if (!to_host && !from_host &&
	    (!pick(graph, a.root->context_set, SVM, false, &b) || b.root == a.root))
		return;
	bytes = 1 + below(graph, a.bytes < b.bytes ? a.bytes : b.bytes);
	if (to_host || from_host) {
		host = keep(graph, bytes);
		scramble(graph, host, bytes);
	}
	step = begin(graph, a.root->context_set);
	step.blocking = chance(graph, 30);
	add_operand(&step, &a, !to_host);
	if (!host)
		add_operand(&step, &b, false);
	arrange(&step);
	node = given(&step,
		     clEnqueueSVMMemcpy(step.queue->handle, step.blocking,
					to_host ? host : a.root->svm + a.origin,
					from_host ? host
					: to_host ? a.root->svm + a.origin
						  : b.root->svm + b.origin,
					bytes, step.wait_count, waits_of(&step), event_of(&step)),
		     "clEnqueueSVMMemcpy");
	if (to_host)
		expect(graph, host, model_of(&a), bytes, node);
	else
		memcpy(model_of(&a), from_host ? host : model_of(&b), bytes);
}

#endif
