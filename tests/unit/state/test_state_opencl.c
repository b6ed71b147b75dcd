/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenCL traces as the recorder writes them: wait lists, out-of-order queues, barriers and markers,
 * blocking copies, host waits without a known queue.
 */
#include "state/states/states.h"
#include "unit/state/graph/graph_support.h"

struct opencl {
	char path[64];
	struct ts_writer *writer;
	int64_t thread, device, queues[3];
	uint32_t shape;
};

static uint32_t text(struct opencl *opencl, const char *string)
{
	return ts_writer_string(opencl->writer, string, strlen(string));
}

static int64_t add_queue(struct opencl *opencl, int64_t number, bool out_of_order, int64_t priority)
{
	struct ts_stream_row row = ts_stream_none;

	row.id = ts_writer_new_id(opencl->writer, TS_TABLE_STREAM);
	row.device = opencl->device;
	row.number = number;
	row.priority = priority;
	row.out_of_order = out_of_order;
	ts_writer_add(opencl->writer, TS_TABLE_STREAM, &row, NULL);
	return row.id;
}

/* Queues 0 and 2 are in order, queue 1 is not. */
static void begin(struct opencl *opencl)
{
	struct ts_process_row process = ts_process_none;
	struct ts_thread_row thread = ts_thread_none;
	struct ts_device_row device = ts_device_none;
	struct ts_field field = { .type = TS_ARG_JSON };

	strcpy(opencl->path, "/tmp/tracesmith-opencl-XXXXXX");
	opencl->writer = begin_trace(opencl->path);
	process.id = ts_writer_new_id(opencl->writer, TS_TABLE_PROCESS);
	process.pid = 1;
	ts_writer_add(opencl->writer, TS_TABLE_PROCESS, &process, NULL);
	thread.id = opencl->thread = ts_writer_new_id(opencl->writer, TS_TABLE_THREAD);
	thread.process = process.id;
	thread.tid = 1;
	ts_writer_add(opencl->writer, TS_TABLE_THREAD, &thread, NULL);
	device.id = opencl->device = ts_writer_new_id(opencl->writer, TS_TABLE_DEVICE);
	device.number = 0;
	ts_writer_add(opencl->writer, TS_TABLE_DEVICE, &device, NULL);
	opencl->queues[0] = add_queue(opencl, 1, false, 1);
	opencl->queues[1] = add_queue(opencl, 2, true, TS_ABSENT);
	opencl->queues[2] = add_queue(opencl, 3, false, TS_ABSENT);
	field.key = text(opencl, "waits_for");
	opencl->shape = ts_writer_shape(opencl->writer, &field, 1);
}

/* Times are us. */
static void call(struct opencl *opencl, const char *name, int64_t start, int64_t duration,
		 int64_t correlation)
{
	struct ts_api_call_row row = ts_api_call_none;

	row.start = start * 1000;
	row.duration = duration * 1000;
	row.thread = opencl->thread;
	row.name = text(opencl, name);
	row.correlation = correlation;
	ts_writer_add(opencl->writer, TS_TABLE_API_CALL, &row, NULL);
}

static void command(struct opencl *opencl, enum ts_gpu_op_kind kind, const char *name, int queue,
		    int64_t start, int64_t duration, int64_t correlation, const char *waits)
{
	struct ts_gpu_op_row row = ts_gpu_op_none;
	int64_t value;

	row.start = start * 1000;
	row.duration = duration * 1000;
	row.device = opencl->device;
	row.stream = opencl->queues[queue];
	row.kind = kind;
	row.name = text(opencl, name);
	row.category =
		text(opencl, kind == TS_GPU_OP_SYNC || kind == TS_GPU_OP_WAIT ? "sync" : "kernel");
	row.correlation = correlation;
	if (waits) {
		value = text(opencl, waits);
		row.shape = opencl->shape;
	}
	ts_writer_add(opencl->writer, TS_TABLE_GPU_OP, &row, waits ? &value : NULL);
}

/* A kernel and its call. */
static void kernel(struct opencl *opencl, int queue, int64_t call_at, int64_t start,
		   int64_t duration, int64_t correlation, const char *waits)
{
	call(opencl, "clEnqueueNDRangeKernel", call_at, 1, correlation);
	command(opencl, TS_GPU_OP_KERNEL, "k", queue, start, duration, correlation, waits);
}

static void load(struct opencl *opencl, struct graphed *graphed)
{
	memset(graphed, 0, sizeof(*graphed));
	graphed->loaded.readers[graphed->loaded.count++] = end_trace(opencl->writer, opencl->path);
	build_graph(graphed, 0);
}

#define EDGE(kind, from, to) edge_flags(graphed.graph, from, to, TS_EDGE_##kind)
#define STREAM(from, to) EDGE(STREAM, command_of(&graphed, from), command_of(&graphed, to))
#define AFTER_EVENT(from, to) EDGE(EVENT, command_of(&graphed, from), command_of(&graphed, to))
#define WAIT(from, to) EDGE(SYNC, command_of(&graphed, from), call_of(&graphed, to))

TS_TEST(queues)
{
	struct opencl opencl;
	struct graphed graphed;
	const struct ts_work *work;

	begin(&opencl);
	for (int i = 0; i < 3; i++)
		kernel(&opencl, i, i, 10 + i, 5, i + 1, NULL);
	load(&opencl, &graphed);
	work = graphed.loaded.work;
	TS_CHECK_INT(work->stream_count, 3);
	TS_CHECK_INT(work->streams[0].flags, 0);
	TS_CHECK_INT(work->streams[0].priority, 1);
	TS_CHECK_INT(work->streams[1].flags, TS_STREAM_OUT_OF_ORDER);
	TS_CHECK(work->streams[1].priority == TS_ABSENT);
	TS_CHECK_INT(work->wait_count, 0);
	unload_graph(&graphed);
}

/* Lists give waits across queues; in an in-order queue they add nothing. */
TS_TEST(wait_lists)
{
	struct opencl opencl;
	struct graphed graphed;

	begin(&opencl);
	kernel(&opencl, 0, 0, 10, 20, 1, NULL);
	kernel(&opencl, 0, 2, 40, 20, 2, "[1]");
	kernel(&opencl, 2, 4, 70, 20, 3, "[1,2,2]");
	/* Of no command, of itself, no list: no effect. */
	kernel(&opencl, 2, 6, 100, 20, 4, "[99,4]");
	kernel(&opencl, 2, 8, 130, 20, 5, "{\"a\":1}");
	kernel(&opencl, 2, 9, 160, 20, 6, "[1");
	load(&opencl, &graphed);
	TS_CHECK_INT(graphed.loaded.work->wait_count, 4);
	TS_CHECK_INT(STREAM(1, 2), 0);
	TS_CHECK_INT(AFTER_EVENT(1, 2), -1);
	TS_CHECK_INT(AFTER_EVENT(1, 3), 0);
	TS_CHECK_INT(AFTER_EVENT(2, 3), 0);
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_EVENT], 3);
	TS_CHECK_INT(graphed.graph->inferred_count, 0);
	check_index(graphed.graph);
	unload_graph(&graphed);
}

/* Only lists and barriers give an order; running at once is no anomaly. */
TS_TEST(queues_without_an_order)
{
	struct opencl opencl;
	struct graphed graphed;
	struct ts_states *states;
	struct ts_error err;

	begin(&opencl);
	kernel(&opencl, 1, 0, 10, 50, 1, NULL);
	kernel(&opencl, 1, 2, 12, 10, 2, NULL);
	kernel(&opencl, 1, 4, 61, 10, 3, "[1]");
	call(&opencl, "clEnqueueMarkerWithWaitList", 6, 1, 4);
	command(&opencl, TS_GPU_OP_SYNC, "marker", 1, 72, 0, 4, NULL);
	kernel(&opencl, 1, 8, 20, 10, 5, NULL);
	call(&opencl, "clEnqueueBarrierWithWaitList", 10, 1, 6);
	command(&opencl, TS_GPU_OP_WAIT, "barrier", 1, 80, 0, 6, NULL);
	kernel(&opencl, 1, 12, 90, 10, 7, NULL);
	kernel(&opencl, 1, 14, 91, 10, 8, NULL);
	load(&opencl, &graphed);
	TS_CHECK_INT(STREAM(1, 2), -1);
	TS_CHECK_INT(STREAM(2, 3), -1);
	TS_CHECK_INT(AFTER_EVENT(1, 3), 0);
	/* The marker waits for everything before it, and blocks nothing. */
	TS_CHECK_INT(STREAM(1, 4), 0);
	TS_CHECK_INT(STREAM(2, 4), 0);
	TS_CHECK_INT(STREAM(3, 4), 0);
	TS_CHECK_INT(STREAM(4, 5), -1);
	/* The barrier waits for everything, and blocks everything. */
	TS_CHECK_INT(STREAM(4, 6), 0);
	TS_CHECK_INT(STREAM(5, 6), 0);
	TS_CHECK_INT(STREAM(6, 7), 0);
	TS_CHECK_INT(STREAM(6, 8), 0);
	TS_CHECK_INT(STREAM(7, 8), -1);
	TS_CHECK_INT(graphed.loaded.work->concurrent_commands, 0);
	TS_CHECK_INT(graphed.loaded.work->disordered_commands, 0);
	TS_CHECK_INT(ts_states_new(&states, graphed.loaded.work, graphed.graph, &err), 0);
	TS_CHECK_INT(states->violations, 0);
	TS_CHECK_INT(states->commands[command_of(&graphed, 2)].blocker, TS_WORK_NONE);
	TS_CHECK_INT(states->commands[command_of(&graphed, 3)].blocker, command_of(&graphed, 1));
	ts_states_free(states);
	unload_graph(&graphed);
}

/* A barrier with a list waits for that, and blocks what follows. */
TS_TEST(barriers_with_a_list)
{
	struct opencl opencl;
	struct graphed graphed;

	begin(&opencl);
	kernel(&opencl, 1, 0, 10, 50, 1, NULL);
	kernel(&opencl, 1, 2, 12, 10, 2, NULL);
	call(&opencl, "clEnqueueBarrierWithWaitList", 4, 1, 3);
	command(&opencl, TS_GPU_OP_WAIT, "barrier", 1, 30, 0, 3, "[2]");
	kernel(&opencl, 1, 6, 31, 10, 4, NULL);
	load(&opencl, &graphed);
	TS_CHECK_INT(AFTER_EVENT(2, 3), 0);
	TS_CHECK_INT(STREAM(1, 3), -1);
	TS_CHECK_INT(STREAM(3, 4), 0);
	unload_graph(&graphed);
}

/* A finish waits for its queue, which is unknown: it is the one whose work ended last in it. */
TS_TEST(waits_of_the_host)
{
	struct opencl opencl;
	struct graphed graphed;
	uint32_t copy, read;

	begin(&opencl);
	kernel(&opencl, 0, 0, 10, 40, 1, NULL);
	kernel(&opencl, 2, 2, 12, 100, 2, NULL);
	call(&opencl, "clFinish", 4, 50, 10);
	call(&opencl, "clWaitForEvents", 60, 60, 11);
	/* Blocking: done inside its call. Not blocking: after it. */
	call(&opencl, "clEnqueueReadBuffer", 130, 20, 3);
	command(&opencl, TS_GPU_OP_COPY, "read buffer", 0, 135, 10, 3, NULL);
	call(&opencl, "clEnqueueReadBuffer", 160, 2, 4);
	command(&opencl, TS_GPU_OP_COPY, "read buffer", 0, 165, 10, 4, NULL);
	load(&opencl, &graphed);
	TS_CHECK_INT(WAIT(1, 10), TS_EDGE_TO_END | TS_EDGE_INFERRED);
	TS_CHECK_INT(WAIT(2, 11), TS_EDGE_TO_END | TS_EDGE_INFERRED);
	TS_CHECK_INT(graphed.graph->kind_count[TS_EDGE_SYNC], 2);
	copy = command_of(&graphed, 3);
	read = command_of(&graphed, 4);
	TS_CHECK_INT(EDGE(COPY, copy, call_of(&graphed, 3)), TS_EDGE_TO_END | TS_EDGE_INFERRED);
	TS_CHECK_INT(EDGE(COPY, read, call_of(&graphed, 4)), -1);
	unload_graph(&graphed);
}
