/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path and what-if on small graphs made by hand, whose answers were worked out by hand, and on random ones:
 * segments partition the window, unchanged durations give the recorded times, faster work never takes longer.
 */
#include <stdio.h>
#include <string.h>

#include "analyze/critical_path.h"
#include "base/text.h"
#include "unit/runner.h"

#define US(n) ((n)*1000)
#define MOST 256

enum what { COMMAND, CALL, STRETCH };

/* A node while its number is not known yet: commands come first, then calls, then stretches. */
struct ref {
	enum what what;
	uint32_t index;
};

struct made {
	struct ts_work work;
	struct ts_graph graph;
	struct ts_work_rank ranks[4];
	struct ts_work_stream streams[8];
	struct ts_work_thread threads[8];
	struct ts_work_command commands[MOST];
	struct ts_work_call calls[MOST];
	struct ts_work_slice slices[MOST];
	struct ts_graph_stretch stretches[MOST];
	struct ts_edge edges[MOST * 4];
	struct ref from[MOST * 4], to[MOST * 4];
	uint32_t first_in[MOST * 3 + 1], first_out[MOST * 3 + 1], out[MOST * 4];
};

static struct made *make(void)
{
	struct made *made = calloc(1, sizeof(*made));

	TS_CHECK(made != NULL);
	ts_strmap_init(&made->work.names, 0);
	TS_CHECK_INT(ts_strmap_intern(&made->work.names, "", 0, NULL), 0);
	made->work.ranks = made->ranks;
	made->work.streams = made->streams;
	made->work.threads = made->threads;
	made->work.commands = made->commands;
	made->work.calls = made->calls;
	made->work.slices = made->slices;
	made->graph.work = &made->work;
	made->graph.stretches = made->stretches;
	made->graph.edges = made->edges;
	made->graph.first_in = made->first_in;
	made->graph.first_out = made->first_out;
	made->graph.out = made->out;
	return made;
}

static void unmake(struct made *made)
{
	ts_strmap_release(&made->work.names);
	free(made);
}

static uint32_t name_of(struct made *made, const char *text)
{
	return ts_strmap_intern(&made->work.names, text, strlen(text), NULL);
}

/* Each rank has two streams and two threads. */
static void need_rank(struct made *made, uint32_t rank)
{
	for (uint32_t r = made->work.rank_count; r <= rank; r++) {
		made->ranks[r].rank = r;
		for (uint32_t i = 0; i < 2; i++) {
			made->streams[r * 2 + i].rank = r;
			made->streams[r * 2 + i].number = 7 + i;
			made->threads[r * 2 + i].rank = r;
			made->threads[r * 2 + i].tid = 100 + i;
		}
		made->work.rank_count = r + 1;
		made->work.stream_count = made->work.thread_count = r * 2 + 2;
	}
}

static struct ref add_call(struct made *made, uint32_t thread, const char *name, int64_t start,
			   int64_t end)
{
	uint32_t index = made->work.call_count++;
	const size_t length = strlen(name);

	need_rank(made, thread / 2);
	made->calls[index] = (struct ts_work_call){
		.start = start,
		.end = end,
		.correlation = index,
		.rank = thread / 2,
		.thread = thread,
		.name = name_of(made, name),
		.command = TS_WORK_NONE,
		.kind = (uint8_t)ts_call_kind(name, length),
	};
	return (struct ref){ CALL, index };
}

static void add_edge(struct made *made, struct ref from, struct ref to, enum ts_edge_kind kind,
		     unsigned int flags)
{
	size_t at = made->graph.edge_count++;

	made->from[at] = from;
	made->to[at] = to;
	made->edges[at].kind = (uint8_t)kind;
	made->edges[at].flags = (uint8_t)flags;
	made->graph.kind_count[kind]++;
}

/* Launched by a call, behind the command before it in its stream. */
static struct ref add_command(struct made *made, uint32_t stream, const char *name, int64_t start,
			      int64_t end, const struct ref *call)
{
	uint32_t index = made->work.command_count++;
	struct ref command = { COMMAND, index };

	need_rank(made, stream / 2);
	made->commands[index] = (struct ts_work_command){
		.start = start,
		.end = end,
		.issued = call ? made->calls[call->index].start : TS_ABSENT,
		.correlation = TS_ABSENT,
		.rank = stream / 2,
		.stream = stream,
		.call = call ? call->index : TS_WORK_NONE,
		.name = name_of(made, name),
		.class = (uint8_t)ts_command_class(TS_GPU_OP_KERNEL, name, strlen(name)),
	};
	if (call) {
		made->calls[call->index].command = index;
		add_edge(made, *call, command, TS_EDGE_LAUNCH, TS_EDGE_FROM_START);
	}
	return command;
}

static struct ref add_slice(struct made *made, uint32_t thread, const char *name, int64_t start,
			    int64_t end)
{
	uint32_t index = made->work.slice_count++;

	need_rank(made, thread / 2);
	made->slices[index] = (struct ts_work_slice){
		.start = start,
		.end = end,
		.rank = thread / 2,
		.thread = thread,
		.name = name_of(made, name),
		.parent = TS_WORK_NONE,
		.class = TS_SLICE_ANNOTATION,
	};
	return (struct ref){ STRETCH, index };
}

/* Host work; with a slice of its own that gives the name. */
static struct ref add_stretch(struct made *made, uint32_t thread, const char *name, int64_t start,
			      int64_t end)
{
	uint32_t index = made->graph.stretch_count++;

	made->stretches[index] = (struct ts_graph_stretch){
		.start = start,
		.end = end,
		.thread = thread,
		.slice = add_slice(made, thread, name, start, end).index,
	};
	return (struct ref){ STRETCH, index };
}

static uint32_t node_of(const struct made *made, struct ref ref)
{
	switch (ref.what) {
	case COMMAND:
		return ref.index;
	case CALL:
		return made->work.command_count + ref.index;
	default:
		return made->work.command_count + made->work.call_count + ref.index;
	}
}

static int compare_edges(const void *a, const void *b)
{
	const struct ts_edge *x = a, *y = b;

	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

static void finish(struct made *made)
{
	struct ts_graph *graph = &made->graph;
	uint32_t count = 0;

	graph->node_count = made->work.command_count + made->work.call_count + graph->stretch_count;
	for (size_t i = 0; i < graph->edge_count; i++) {
		made->edges[i].from = node_of(made, made->from[i]);
		made->edges[i].to = node_of(made, made->to[i]);
	}
	qsort(made->edges, graph->edge_count, sizeof(*made->edges), compare_edges);
	for (uint32_t node = 0; node < graph->node_count; node++) {
		made->first_out[node] = count;
		for (uint32_t i = 0; i < graph->edge_count; i++) {
			if (made->edges[i].from == node)
				made->out[count++] = i;
			made->first_in[node + 1] += made->edges[i].to == node;
		}
		made->first_in[node + 1] += made->first_in[node];
	}
	made->first_out[graph->node_count] = count;
}

/* ---- what is asked ---- */

struct asked {
	struct made *made;
	struct ts_path_model model;
	struct ts_path_window window;
	struct ts_path path;
};

static struct asked ask(struct made *made, const char *annotation, int64_t instance)
{
	struct asked asked = { .made = made };
	struct ts_error err;

	finish(made);
	TS_CHECK_INT(ts_path_model_init(&asked.model, &made->graph, TS_WORK_NONE, &err), 0);
	TS_CHECK_INT(ts_path_window_init(&asked.window, &asked.model, annotation, instance, &err),
		     0);
	TS_CHECK_INT(ts_path_walk(&asked.path, &asked.model, &asked.window, &err), 0);
	return asked;
}

static void release(struct asked *asked)
{
	ts_path_release(&asked->path);
	ts_path_window_release(&asked->window);
	ts_path_model_release(&asked->model);
	unmake(asked->made);
}

/* "host prep 10" a line: category, name, microseconds. */
static void check_path(const struct asked *asked, const char *expected)
{
	struct ts_text text;

	ts_text_init(&text);
	for (size_t i = 0; i < asked->path.count; i++) {
		const struct ts_path_segment *segment = &asked->path.segments[i];

		ts_text_printf(&text, "%s %s %g\n", ts_path_category_name(segment->category),
			       segment->node == TS_WORK_NONE
				       ? "-"
				       : ts_graph_node_name(&asked->made->graph, segment->node),
			       (double)(segment->end - segment->start) / 1000);
	}
	TS_CHECK_STR(ts_text_cstr(&text), expected);
	ts_text_release(&text);
}

/* When the window would end, in microseconds, if what matches the pattern took `factor` of its time. */
static double end_if(const struct asked *asked, const char *pattern, double factor)
{
	uint8_t marks[MOST] = { 0 };
	struct ts_path_change change = { .device_names = marks,
					 .host_names = marks,
					 .factor = factor };
	struct ts_error err;
	int64_t end = 0;

	for (uint32_t name = 1; name < ts_strmap_count(&asked->made->work.names); name++) {
		const char *text = ts_work_text(&asked->made->work, name);

		marks[name] = ts_glob_match(pattern, text, strlen(text));
	}
	TS_CHECK_INT(ts_path_what_if(&asked->model, &asked->window, &change, 1, &end, &err), 0);
	return (double)end / 1000;
}

#define CHECK_END(asked, pattern, factor, expected_us)                                        \
	do {                                                                                  \
		double end_ = end_if(asked, pattern, factor);                                 \
		if (end_ != (expected_us))                                                    \
			ts_test_fail(__FILE__, __LINE__, "'%s' %g: ends at %g, not at %g",    \
				     pattern, (double)(factor), end_, (double)(expected_us)); \
	} while (0)

/* ---- by hand ---- */

/* Work on the host 0-10 and 12-30; launches at 10 and 30; kernels 15-17 and 35-40. */
static struct made *make_host_bound(void)
{
	struct made *made = make();
	struct ref prepare = add_stretch(made, 0, "prep", 0, US(10));
	struct ref first = add_call(made, 0, "cudaLaunchKernel", US(10), US(12));
	struct ref again = add_stretch(made, 0, "prep", US(12), US(30));
	struct ref second = add_call(made, 0, "cudaLaunchKernel", US(30), US(32));
	struct ref k1 = add_command(made, 0, "k1", US(15), US(17), &first);
	struct ref k2 = add_command(made, 0, "k2", US(35), US(40), &second);

	add_edge(made, prepare, first, TS_EDGE_PROGRAM, 0);
	add_edge(made, first, again, TS_EDGE_PROGRAM, 0);
	add_edge(made, again, second, TS_EDGE_PROGRAM, 0);
	add_edge(made, k1, k2, TS_EDGE_STREAM, 0);
	return made;
}

TS_TEST(a_host_that_is_too_slow_is_the_path)
{
	struct asked asked = ask(make_host_bound(), NULL, 0);

	check_path(&asked, "host prep 10\nhost cudaLaunchKernel 2\nhost prep 18\nlaunch k2 5\n"
			   "compute k2 5\n");
	CHECK_END(&asked, "nothing", 0, 40);
	/* Second launch at 2, so k2 could begin at 7; but k1 runs 5-7, and streams take 1 us from one to the next. */
	CHECK_END(&asked, "prep", 0, 13);
	CHECK_END(&asked, "prep", 0.5, 26);
	CHECK_END(&asked, "cudaLaunchKernel", 0, 38);
	CHECK_END(&asked, "k1", 0, 40);
	CHECK_END(&asked, "k2", 0, 35);
	CHECK_END(&asked, "k2", 0.5, 37.5);
	/* Launches that take no time themselves still take 5 us to reach the device. */
	CHECK_END(&asked, "*", 0, 6);
	release(&asked);
}

TS_TEST(a_device_that_is_too_slow_is_the_path)
{
	struct made *made = make();
	struct ref l1 = add_call(made, 0, "cudaLaunchKernel", 0, US(2));
	struct ref l2 = add_call(made, 0, "cudaLaunchKernel", US(2), US(4));
	struct ref l3 = add_call(made, 0, "cudaLaunchKernel", US(4), US(6));
	struct ref k1 = add_command(made, 0, "k1", US(5), US(25), &l1);
	struct ref k2 = add_command(made, 0, "k2", US(26), US(46), &l2);
	struct ref k3 = add_command(made, 0, "k3", US(47), US(57), &l3);
	struct asked asked;

	add_edge(made, l1, l2, TS_EDGE_PROGRAM, 0);
	add_edge(made, l2, l3, TS_EDGE_PROGRAM, 0);
	add_edge(made, k1, k2, TS_EDGE_STREAM, 0);
	add_edge(made, k2, k3, TS_EDGE_STREAM, 0);
	asked = ask(made, NULL, 0);
	check_path(&asked, "launch k1 5\ncompute k1 20\ngap k2 1\ncompute k2 20\ngap k3 1\n"
			   "compute k3 10\n");
	CHECK_END(&asked, "k2", 0, 37);
	CHECK_END(&asked, "k2", 0.5, 47);
	/* k1 is over at 5, but k2 is launched at 2 and that takes 5. */
	CHECK_END(&asked, "k1", 0, 38);
	CHECK_END(&asked, "k?", 0, 9);
	CHECK_END(&asked, "cudaLaunchKernel", 0, 57);
	release(&asked);
}

TS_TEST(an_event_of_another_stream_leads_on)
{
	struct made *made = make();
	struct ref la = add_call(made, 0, "cudaLaunchKernel", 0, US(2));
	struct ref lb = add_call(made, 0, "cudaLaunchKernel", US(2), US(4));
	struct ref lc = add_call(made, 0, "cudaLaunchKernel", US(4), US(6));
	struct ref a = add_command(made, 0, "a", US(5), US(30), &la);
	struct ref b = add_command(made, 1, "b", US(32), US(42), &lb);
	struct ref c = add_command(made, 1, "c", US(43), US(50), &lc);
	struct asked asked;

	add_edge(made, la, lb, TS_EDGE_PROGRAM, 0);
	add_edge(made, lb, lc, TS_EDGE_PROGRAM, 0);
	add_edge(made, a, b, TS_EDGE_EVENT, 0);
	add_edge(made, b, c, TS_EDGE_STREAM, 0);
	asked = ask(made, NULL, 0);
	check_path(&asked,
		   "launch a 5\ncompute a 25\ngap b 2\ncompute b 10\ngap c 1\ncompute c 7\n");
	TS_CHECK_INT(asked.path.jumps, 0);
	CHECK_END(&asked, "a", 0, 25);
	CHECK_END(&asked, "b", 0, 40);
	release(&asked);
}

/* A launch at 0, its kernel 5-25; the host waits for it 2-28, works until 40, launches again; kernel 45-50. */
static struct made *make_sync(void)
{
	struct made *made = make();
	struct ref l1 = add_call(made, 0, "cudaLaunchKernel", 0, US(2));
	struct ref sync = add_call(made, 0, "cudaStreamSynchronize", US(2), US(28));
	struct ref l2 = add_call(made, 0, "cudaLaunchKernel", US(40), US(42));
	struct ref python = add_stretch(made, 0, "python", US(28), US(40));
	struct ref k1 = add_command(made, 0, "k1", US(5), US(25), &l1);
	struct ref k2 = add_command(made, 0, "k2", US(45), US(50), &l2);

	add_edge(made, l1, sync, TS_EDGE_PROGRAM, 0);
	add_edge(made, sync, python, TS_EDGE_PROGRAM, 0);
	add_edge(made, python, l2, TS_EDGE_PROGRAM, 0);
	add_edge(made, k1, sync, TS_EDGE_SYNC, TS_EDGE_TO_END);
	add_edge(made, k1, k2, TS_EDGE_STREAM, 0);
	return made;
}

TS_TEST(a_host_that_waits_is_not_the_path)
{
	struct asked asked = ask(make_sync(), NULL, 0);

	check_path(&asked,
		   "launch k1 5\ncompute k1 20\nhost cudaStreamSynchronize 3\nhost python 12\n"
		   "launch k2 5\ncompute k2 5\n");
	/* The wait is over 3 us behind the kernel, whenever that is. */
	CHECK_END(&asked, "k1", 0, 30);
	CHECK_END(&asked, "python", 0, 38);
	/* A wait that costs nothing still waits. */
	CHECK_END(&asked, "cudaStreamSynchronize", 0, 50);
	release(&asked);
}

TS_TEST(a_wait_long_after_what_is_known_is_unknown)
{
	struct made *made = make();
	struct ref l1 = add_call(made, 0, "cudaLaunchKernel", 0, US(2));
	struct ref sync = add_call(made, 0, "cudaDeviceSynchronize", US(2), US(900));
	struct ref k1 = add_command(made, 0, "k1", US(5), US(25), &l1);
	struct asked asked;

	add_edge(made, l1, sync, TS_EDGE_PROGRAM, 0);
	add_edge(made, k1, sync, TS_EDGE_SYNC, TS_EDGE_TO_END);
	asked = ask(made, NULL, 0);
	check_path(&asked, "launch k1 5\ncompute k1 20\nunknown cudaDeviceSynchronize 875\n");
	release(&asked);
}

TS_TEST(a_command_long_after_what_is_known_waits_for_something_unknown)
{
	struct made *made = make();
	struct ref l1 = add_call(made, 0, "cudaLaunchKernel", 0, US(2));
	struct ref l2 = add_call(made, 0, "cudaLaunchKernel", US(2), US(4));
	struct ref k1 = add_command(made, 0, "k1", US(2000), US(2100), &l1);
	struct ref k2 = add_command(made, 0, "k2", US(3600), US(3700), &l2);
	struct asked asked;

	add_edge(made, l1, l2, TS_EDGE_PROGRAM, 0);
	add_edge(made, k1, k2, TS_EDGE_STREAM, 0);
	asked = ask(made, NULL, 0);
	check_path(&asked, "unknown k1 2000\ncompute k1 100\nunknown k2 1500\ncompute k2 100\n");
	release(&asked);
}

/* The graph has edges from the last to begin to the ends of the others. */
static void meet(struct made *made, struct ref last, struct ref other)
{
	add_edge(made, last, other, TS_EDGE_COLLECTIVE, TS_EDGE_FROM_START | TS_EDGE_TO_END);
}

TS_TEST(the_last_rank_to_come_holds_a_collective)
{
	struct made *made = make();
	struct ref work0 = add_stretch(made, 0, "quick", 0, US(10));
	struct ref work1 = add_stretch(made, 2, "slow", 0, US(40));
	struct ref l0 = add_call(made, 0, "cudaLaunchKernel", US(10), US(12));
	struct ref l1 = add_call(made, 2, "cudaLaunchKernel", US(40), US(42));
	struct ref n0 = add_command(made, 0, "ncclKernel_AllReduce", US(15), US(55), &l0);
	struct ref n1 = add_command(made, 2, "ncclKernel_AllReduce", US(45), US(55), &l1);
	struct asked asked;

	add_edge(made, work0, l0, TS_EDGE_PROGRAM, 0);
	add_edge(made, work1, l1, TS_EDGE_PROGRAM, 0);
	meet(made, n1, n0);
	asked = ask(made, NULL, 0);
	/* Rank 0 waits 30 us inside its kernel: that is not its work. */
	check_path(&asked, "host slow 40\nlaunch ncclKernel_AllReduce 5\n"
			   "communication ncclKernel_AllReduce 10\n");
	CHECK_END(&asked, "slow", 0, 25);
	CHECK_END(&asked, "quick", 0, 55);
	CHECK_END(&asked, "nccl*", 0, 45);
	CHECK_END(&asked, "nccl*", 0.5, 50);
	release(&asked);
}

TS_TEST(without_the_last_rank_the_one_before_it_is_the_last)
{
	struct made *made = make();
	struct ref slow = add_stretch(made, 4, "slow", 0, US(40));
	struct ref fair = add_stretch(made, 2, "fair", 0, US(30));
	struct ref l0 = add_call(made, 0, "cudaLaunchKernel", 0, US(2));
	struct ref l1 = add_call(made, 2, "cudaLaunchKernel", US(30), US(32));
	struct ref l2 = add_call(made, 4, "cudaLaunchKernel", US(40), US(42));
	struct ref n0 = add_command(made, 0, "nccl", US(5), US(55), &l0);
	struct ref n1 = add_command(made, 2, "nccl", US(35), US(55), &l1);
	struct ref n2 = add_command(made, 4, "nccl", US(45), US(55), &l2);
	struct ref next = add_command(made, 4, "next", US(55), US(75), NULL);
	struct asked asked;

	add_edge(made, slow, l2, TS_EDGE_PROGRAM, 0);
	add_edge(made, fair, l1, TS_EDGE_PROGRAM, 0);
	add_edge(made, n2, next, TS_EDGE_STREAM, 0);
	meet(made, n2, n0);
	meet(made, n2, n1);
	asked = ask(made, NULL, 0);
	check_path(&asked, "host slow 40\nlaunch nccl 5\ncommunication nccl 10\ncompute next 20\n");
	/* Rank 2, which was the last, now waits for rank 1, which begins at 35. */
	CHECK_END(&asked, "slow", 0, 65);
	CHECK_END(&asked, "fair", 0, 75);
	/* All are there at 5. */
	CHECK_END(&asked, "[sf][la]*", 0, 35);
	release(&asked);
}

TS_TEST(ranks_can_be_looked_at_alone)
{
	struct made *made = make();
	struct ref l0 = add_call(made, 0, "cudaLaunchKernel", 0, US(2));
	struct ref l1 = add_call(made, 2, "cudaLaunchKernel", 0, US(2));
	struct ts_path_model model;
	struct ts_path_window window;
	struct ts_error err;

	add_command(made, 0, "k", US(5), US(10), &l0);
	add_command(made, 2, "k", US(5), US(20), &l1);
	finish(made);
	for (uint32_t rank = 0; rank < 2; rank++) {
		TS_CHECK_INT(ts_path_model_init(&model, &made->graph, rank, &err), 0);
		TS_CHECK_INT(model.count, 4);
		TS_CHECK_INT(ts_path_window_init(&window, &model, NULL, 0, &err), 0);
		TS_CHECK_INT(window.to, rank ? US(20) : US(10));
		ts_path_window_release(&window);
		ts_path_model_release(&model);
	}
	unmake(made);
}

TS_TEST(an_instance_of_an_annotation_is_a_window)
{
	struct made *made = make_host_bound();
	struct asked asked;

	add_slice(made, 0, "step", 0, US(12));
	add_slice(made, 0, "step", US(12), US(31));
	asked = ask(made, "step", 1);
	/* What was issued in it counts until it ends; the launch call, which goes on behind it, does not. */
	TS_CHECK_INT(asked.window.from, US(12));
	TS_CHECK_INT(asked.window.to, US(40));
	check_path(&asked, "host prep 18\nlaunch k2 5\ncompute k2 5\n");
	CHECK_END(&asked, "prep", 0, 23);
	release(&asked);

	made = make_host_bound();
	add_slice(made, 0, "step", 0, US(12));
	asked = ask(made, "st*", 0);
	/* k1 was issued at 10 and runs until 17; the host is at 12 by then. */
	TS_CHECK_INT(asked.window.to, US(17));
	check_path(&asked, "host prep 10\nlaunch k1 5\ncompute k1 2\n");
	release(&asked);
}

TS_TEST(an_instance_that_is_not_there_is_an_error)
{
	struct made *made = make_host_bound();
	struct ts_path_model model;
	struct ts_path_window window;
	struct ts_error err;

	add_slice(made, 0, "step", 0, US(12));
	finish(made);
	TS_CHECK_INT(ts_path_model_init(&model, &made->graph, TS_WORK_NONE, &err), 0);
	TS_CHECK_INT(ts_path_window_init(&window, &model, "step", 1, &err), TS_ENOTFOUND);
	TS_CHECK_STR(err.message, "annotation 'step': instance 1: there are 1, counted from 0");
	ts_path_window_release(&window);
	TS_CHECK_INT(ts_path_window_init(&window, &model, "nope", 0, &err), TS_ENOTFOUND);
	ts_path_window_release(&window);
	ts_path_model_release(&model);
	unmake(made);
}

TS_TEST(where_nothing_is_known_the_path_goes_on_with_what_ended_last)
{
	struct made *made = make();
	struct asked asked;

	/* Two streams, no calls, nothing that joins them. */
	add_command(made, 0, "a", US(10), US(30), NULL);
	add_command(made, 1, "b", US(35), US(50), NULL);
	asked = ask(made, NULL, 0);
	check_path(&asked, "compute a 20\nunknown - 5\ncompute b 15\n");
	TS_CHECK_INT(asked.path.jumps, 1);
	/* What is not known to have waited does not come sooner. */
	CHECK_END(&asked, "a", 0, 50);
	release(&asked);
}

TS_TEST(an_empty_window_has_no_path)
{
	struct made *made = make();
	struct asked asked;

	need_rank(made, 0);
	asked = ask(made, NULL, 0);
	TS_CHECK_INT(asked.path.count, 0);
	TS_CHECK_INT(asked.window.last, TS_WORK_NONE);
	release(&asked);
}

TS_TEST(times_at_the_ends_of_what_fits_do_not_overflow)
{
	struct made *made = make();
	struct ref l1 = add_call(made, 0, "cudaLaunchKernel", INT64_MIN + 1, INT64_MIN + 2);
	struct ref k1 = add_command(made, 0, "k", -5, INT64_MAX - 1, &l1);
	struct ref k2 = add_command(made, 0, "k", INT64_MAX - 1, INT64_MAX, NULL);
	struct asked asked;

	add_edge(made, k1, k2, TS_EDGE_STREAM, 0);
	asked = ask(made, NULL, 0);
	TS_CHECK(asked.path.count > 0);
	TS_CHECK_INT(asked.path.segments[0].start, asked.window.from);
	TS_CHECK_INT(asked.path.segments[asked.path.count - 1].end, asked.window.to);
	TS_CHECK(end_if(&asked, "k", 0) <= end_if(&asked, "k", 0.5));
	release(&asked);
}

/* ---- at random ---- */

static uint64_t state;

static uint32_t random_below(uint32_t limit)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % limit;
}

static int64_t time_of(const struct made *made, struct ref ref, bool end)
{
	switch (ref.what) {
	case COMMAND:
		return end ? made->commands[ref.index].end : made->commands[ref.index].start;
	case CALL:
		return end ? made->calls[ref.index].end : made->calls[ref.index].start;
	default:
		return end ? made->stretches[ref.index].end : made->stretches[ref.index].start;
	}
}

static struct ref any_node(const struct made *made)
{
	uint32_t all = made->work.command_count + made->work.call_count + made->graph.stretch_count;
	uint32_t pick = random_below(all);

	if (pick < made->work.command_count)
		return (struct ref){ COMMAND, pick };
	pick -= made->work.command_count;
	if (pick < made->work.call_count)
		return (struct ref){ CALL, pick };
	return (struct ref){ STRETCH, pick - made->work.call_count };
}

/* Any edges that go forward in time, or back by a little where they join two ranks; times are few, so many are equal. */
static struct made *make_random(void)
{
	static const char *const KERNELS[] = { "k0", "k1", "nccl_k2", "k3" };
	static const char *const CALLS[] = { "cudaLaunchKernel", "cudaStreamSynchronize",
					     "cudaMemcpy", "cudaEventQuery" };
	struct made *made = make();
	uint32_t nodes = 4 + random_below(40), span = 20 + random_below(2000);

	for (uint32_t i = 0; i < nodes; i++) {
		int64_t start = random_below(span), end = start + random_below(span / 4);
		struct ref call =
			add_call(made, random_below(4), CALLS[random_below(4)], start, end);

		start += random_below(60);
		add_command(made, made->calls[call.index].rank * 2 + random_below(2),
			    KERNELS[random_below(4)], start, start + random_below(span / 4), &call);
		start = random_below(span);
		add_stretch(made, random_below(4), "host", start, start + random_below(50));
	}
	for (uint32_t i = 0; i < nodes * 4; i++) {
		struct ref from = any_node(made), to = any_node(made);
		unsigned int flags = random_below(4);
		int64_t lag = time_of(made, to, flags & TS_EDGE_TO_END) -
			      time_of(made, from, !(flags & TS_EDGE_FROM_START));

		if (lag >= (random_below(20) ? 0 : -3) &&
		    (from.what != to.what || from.index != to.index))
			add_edge(made, from, to,
				 (enum ts_edge_kind)random_below(TS_EDGE_KIND_COUNT), flags);
	}
	return made;
}

static void check_partition(const struct asked *asked)
{
	int64_t at = asked->window.from;

	for (size_t i = 0; i < asked->path.count; i++) {
		TS_CHECK_INT(asked->path.segments[i].start, at);
		TS_CHECK(asked->path.segments[i].end > at);
		at = asked->path.segments[i].end;
	}
	if (asked->window.last != TS_WORK_NONE && asked->window.from < asked->window.to)
		TS_CHECK_INT(at, asked->window.to);
}

/* With the lags as they are, every point happens when it did; and what decides is what came last. */
static void check_recorded(const struct ts_path_model *model)
{
	for (uint32_t at = 0; at < model->count; at++) {
		int64_t time = INT64_MIN, last = INT64_MIN;

		for (uint32_t a = model->first_arc[at]; a < model->first_arc[at + 1]; a++) {
			const struct ts_path_arc *arc = &model->arcs[a];

			TS_CHECK(arc->from < at);
			time = TS_MAX(time, model->time[arc->from] + arc->lag);
			last = TS_MAX(last, model->time[arc->from]);
		}
		if (model->decisive[at] == TS_WORK_NONE) {
			TS_CHECK_INT(time, INT64_MIN);
			continue;
		}
		TS_CHECK_INT(time, model->time[at]);
		TS_CHECK_INT(model->time[model->arcs[model->decisive[at]].from], last);
	}
}

static void check_changes(const struct asked *asked)
{
	static const double FACTORS[] = { 1, 0.9, 0.5, 0.25, 0.1, 0 };
	static const char *const PATTERNS[] = { "k*", "nccl*", "host", "cuda*", "*" };

	for (size_t p = 0; p < TS_ARRAY_SIZE(PATTERNS); p++) {
		double before = (double)asked->window.to / 1000;

		for (size_t f = 0; f < TS_ARRAY_SIZE(FACTORS); f++) {
			double end = end_if(asked, PATTERNS[p], FACTORS[f]);

			TS_CHECK(f > 0 || end == before);
			TS_CHECK(end <= before);
			before = end;
		}
	}
}

TS_TEST(random_graphs_keep_the_promises)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct asked asked;

		state = seed * 7919;
		asked = ask(make_random(), NULL, 0);
		check_partition(&asked);
		check_recorded(&asked.model);
		check_changes(&asked);
		release(&asked);
	}
}

TS_TEST(many_changes_at_once_are_the_same_as_one_by_one)
{
	struct asked asked = ask(make_sync(), NULL, 0);
	uint8_t marks[7][MOST] = { 0 };
	struct ts_path_change changes[7];
	int64_t ends[7];
	struct ts_error err;

	for (uint32_t i = 0; i < 7; i++) {
		changes[i] = (struct ts_path_change){ .factor = i % 2 ? 0.5 : 0 };
		changes[i].device_names = changes[i].host_names = marks[i];
		marks[i][1 + i % (ts_strmap_count(&asked.made->work.names) - 1)] = 1;
	}
	TS_CHECK_INT(ts_path_what_if(&asked.model, &asked.window, changes, 7, ends, &err), 0);
	for (uint32_t i = 0; i < 7; i++) {
		int64_t alone;

		TS_CHECK_INT(
			ts_path_what_if(&asked.model, &asked.window, &changes[i], 1, &alone, &err),
			0);
		TS_CHECK_INT(ends[i], alone);
	}
	release(&asked);
}

/* A chain as long as a hostile trace could have: nothing here may recurse. */
TS_TEST(a_long_chain_needs_no_deep_stack)
{
	enum { COUNT = 200000 };
	struct ts_work_command *commands = calloc(COUNT, sizeof(*commands));
	struct ts_edge *edges = calloc(COUNT, sizeof(*edges));
	uint32_t *first = calloc(COUNT * 2 + 4, sizeof(*first)), *out = calloc(COUNT, 4);
	struct made *made = make();
	struct ts_path_model model;
	struct ts_path_window window;
	struct ts_path path;
	struct ts_error err;

	TS_CHECK(commands && edges && first && out);
	need_rank(made, 0);
	made->work.commands = commands;
	made->work.command_count = made->graph.node_count = COUNT;
	made->graph.edges = edges;
	made->graph.edge_count = COUNT - 1;
	made->graph.first_in = first;
	made->graph.first_out = first + COUNT + 2;
	made->graph.out = out;
	for (uint32_t i = 0; i < COUNT; i++) {
		commands[i] = (struct ts_work_command){ .start = (int64_t)i * 10,
							.end = (int64_t)i * 10 + 9,
							.call = TS_WORK_NONE,
							.issued = TS_ABSENT };
		first[i + 1] = i;
		first[COUNT + 2 + i] = i;
		if (i + 1 < COUNT) {
			edges[i] =
				(struct ts_edge){ .from = i, .to = i + 1, .kind = TS_EDGE_STREAM };
			out[i] = i;
		}
	}
	first[COUNT + 2 + COUNT] = COUNT - 1;
	TS_CHECK_INT(ts_path_model_init(&model, &made->graph, TS_WORK_NONE, &err), 0);
	TS_CHECK_INT(ts_path_window_init(&window, &model, NULL, 0, &err), 0);
	TS_CHECK_INT(ts_path_walk(&path, &model, &window, &err), 0);
	TS_CHECK_INT(path.count, COUNT * 2 - 1);
	ts_path_release(&path);
	ts_path_window_release(&window);
	ts_path_model_release(&model);
	free(commands);
	free(edges);
	free(first);
	free(out);
	unmake(made);
}
