/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Works for tests of the state machine, built in memory: lanes first, then calls and commands in
 * any order, then fixture_finish(), which orders and joins them like the loader. One rank, unless a
 * test changes it.
 */
#ifndef TS_TESTS_UNIT_STATE_STATE_FIXTURE_H
#define TS_TESTS_UNIT_STATE_STATE_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "state/states/states.h"
#include "unit/runner.h"

#define FIXTURE_MOST 4096u

struct fixture {
	struct ts_work *work;
	uint32_t launch, copy, blocking, sync; /* names of calls */
};

static inline uint32_t fixture_name(struct ts_work *work, const char *text)
{
	return ts_strmap_intern(&work->names, text, strlen(text), NULL);
}

static inline void fixture_begin(struct fixture *fixture, uint32_t ranks, uint32_t threads,
				 uint32_t devices, uint32_t streams)
{
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	struct ts_work *work;

	TS_CHECK_INT(ts_work_new(&work, &options, NULL), 0);
	fixture->work = work;
	fixture->launch = fixture_name(work, "cudaLaunchKernel");
	fixture->copy = fixture_name(work, "cudaMemcpyAsync");
	fixture->blocking = fixture_name(work, "cudaMemcpy");
	fixture->sync = fixture_name(work, "cudaStreamSynchronize");
	work->ranks = calloc(ranks, sizeof(*work->ranks));
	work->threads = calloc(threads + 1, sizeof(*work->threads));
	work->devices = calloc(devices + 1, sizeof(*work->devices));
	work->streams = calloc(streams + 1, sizeof(*work->streams));
	work->commands = calloc(FIXTURE_MOST, sizeof(*work->commands));
	work->calls = calloc(FIXTURE_MOST, sizeof(*work->calls));
	work->rank_count = ranks;
	work->thread_count = threads;
	work->device_count = devices;
	work->stream_count = streams;
}

/* All lanes belong to the first rank; streams are distributed evenly over devices. */
static inline void fixture_entities(struct fixture *fixture)
{
	struct ts_work *work = fixture->work;

	work->ranks[0].device_count = work->device_count;
	work->ranks[0].stream_count = work->stream_count;
	work->ranks[0].thread_count = work->thread_count;
	for (uint32_t d = 0; d < work->device_count; d++) {
		uint32_t each = work->stream_count / work->device_count;

		work->devices[d] = (struct ts_work_device){ .number = d,
							    .first_stream = d * each,
							    .stream_count = each };
		for (uint32_t s = 0; s < each; s++) {
			work->streams[d * each + s].device = d;
			work->streams[d * each + s].number = s;
		}
	}
}

/* The call's index, for fixture_command(). */
static inline uint32_t fixture_call(struct fixture *fixture, uint32_t thread, enum ts_api_kind kind,
				    uint32_t name, int64_t start, int64_t end)
{
	struct ts_work *work = fixture->work;

	TS_CHECK(work->call_count < FIXTURE_MOST);
	work->calls[work->call_count] = (struct ts_work_call){
		.start = start,
		.end = end,
		.row = work->call_count,
		.rank = work->threads[thread].rank,
		.thread = thread,
		.name = name,
		.kind = (uint8_t)kind,
		.command = TS_WORK_NONE,
	};
	return work->call_count++;
}

static inline struct ts_work_command *fixture_command(struct fixture *fixture, uint32_t stream,
						      uint32_t call, int64_t start, int64_t end)
{
	struct ts_work *work = fixture->work;
	struct ts_work_command *command = &work->commands[work->command_count];

	TS_CHECK(work->command_count < FIXTURE_MOST);
	*command = (struct ts_work_command){
		.start = start,
		.end = end,
		.issued = call == TS_WORK_NONE ? TS_ABSENT : work->calls[call].start,
		.correlation = work->command_count,
		.row = work->command_count,
		.rank = work->streams[stream].rank,
		.stream = stream,
		.call = call,
		.collective = TS_WORK_NONE,
		.step = TS_WORK_NONE,
		.graph = -1,
		.graph_node = -1,
		.kind = TS_GPU_OP_KERNEL,
	};
	if (command->issued != TS_ABSENT && command->issued > start)
		command->flags |= TS_COMMAND_EARLY;
	work->command_count++;
	return command;
}

static inline int fixture_by_thread(const void *a, const void *b)
{
	const struct ts_work_call *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static inline int fixture_by_stream(const void *a, const void *b)
{
	const struct ts_work_command *x = a, *y = b;

	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static inline void fixture_count(struct ts_work *work)
{
	for (uint32_t i = work->command_count; i-- > 0;) {
		struct ts_work_stream *stream = &work->streams[work->commands[i].stream];

		stream->first_command = i;
		stream->command_count++;
		work->ranks[work->commands[i].rank].first_command = i;
		work->ranks[work->commands[i].rank].command_count++;
	}
	for (uint32_t i = work->call_count; i-- > 0;) {
		work->threads[work->calls[i].thread].first_call = i;
		work->threads[work->calls[i].thread].call_count++;
	}
}

static inline void fixture_finish(struct fixture *fixture)
{
	struct ts_work *work = fixture->work;
	uint32_t *positions = calloc(work->call_count + 1, sizeof(*positions));

	qsort(work->calls, work->call_count, sizeof(*work->calls), fixture_by_thread);
	for (uint32_t i = 0; i < work->call_count; i++)
		positions[work->calls[i].row] = i;
	qsort(work->commands, work->command_count, sizeof(*work->commands), fixture_by_stream);
	for (uint32_t i = 0; i < work->command_count; i++) {
		struct ts_work_command *command = &work->commands[i];

		if (command->call == TS_WORK_NONE)
			continue;
		command->call = positions[command->call];
		if (work->calls[command->call].command_count++ == 0)
			work->calls[command->call].command = i;
	}
	fixture_count(work);
	free(positions);
}

/* ---- a graph of given edges between commands ---- */

struct fixture_graph {
	struct ts_graph graph;
	struct ts_edge edges[64];
	uint32_t first_in[FIXTURE_MOST + 1];
};

static inline void fixture_graph_begin(struct fixture_graph *fixture, const struct ts_work *work)
{
	memset(fixture, 0, sizeof(*fixture));
	fixture->graph.work = work;
	fixture->graph.edges = fixture->edges;
	fixture->graph.first_in = fixture->first_in;
	fixture->graph.node_count = work->command_count;
}

/* Keeps the order by `to`. */
static inline void fixture_graph_add(struct fixture_graph *fixture, struct ts_edge edge)
{
	size_t at = fixture->graph.edge_count++;

	TS_CHECK(at < 64);
	for (; at > 0 && fixture->edges[at - 1].to > edge.to; at--)
		fixture->edges[at] = fixture->edges[at - 1];
	fixture->edges[at] = edge;
	for (uint32_t n = edge.to + 1; n <= fixture->graph.node_count; n++)
		fixture->first_in[n]++;
}

#endif
