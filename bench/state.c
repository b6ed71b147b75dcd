/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state [TRACE] [--commands N] [--rounds N]: measures how fast states are rebuilt
 * (src/state/states/states.h), in commands per CPU second, from a trace, or from synthetic work: 8
 * streams of one device, fed by two threads that synchronize now and then; kernels, and copies on
 * two of the streams. Measures without a graph (stream order only) and with one, whose construction
 * is measured separately. Prints the best round as one JSON line. Uses private headers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "state/states/states.h"

#define STREAMS 8u
#define THREADS 2u
#define SYNC_EACH 128u /* commands of a thread between two waits for all */

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

_Noreturn static void die(const char *message)
{
	fprintf(stderr, "state: %s\n", message);
	exit(1);
}

/* ---- synthetic work ---- */

static uint64_t seed = 88172645463325252u;

/* xorshift: the same numbers everywhere. */
static int64_t any(int64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (int64_t)(seed % (uint64_t)below);
}

struct maker {
	struct ts_work *work;
	uint32_t launch, copy, sync; /* names of calls */
	uint32_t per_stream, per_thread;
	int64_t host[THREADS]; /* when each thread continues */
	int64_t done[STREAMS]; /* when each stream becomes idle */
};

static struct ts_work_call *add_call(struct maker *maker, uint32_t t, enum ts_api_kind kind,
				     uint32_t name)
{
	struct ts_work_thread *thread = &maker->work->threads[t];
	struct ts_work_call *call = &maker->work->calls[thread->first_call + thread->call_count++];

	*call = (struct ts_work_call){
		.start = maker->host[t],
		.end = maker->host[t] + 2000 + any(3000),
		.thread = t,
		.name = name,
		.kind = (uint8_t)kind,
		.command = TS_WORK_NONE,
	};
	maker->host[t] = call->end + any(4000);
	return call;
}

static void add_sync(struct maker *maker, uint32_t t)
{
	struct ts_work_call *call = add_call(maker, t, TS_API_STREAM_SYNC, maker->sync);

	for (uint32_t s = 0; s < STREAMS; s++)
		call->end = call->end > maker->done[s] ? call->end : maker->done[s];
	maker->host[t] = call->end + any(50000);
}

/* Command i: streams and threads take turns. */
static void add_command(struct maker *maker, uint32_t i)
{
	struct ts_work *work = maker->work;
	uint32_t s = i % STREAMS, t = i % THREADS;
	uint32_t c = s * maker->per_stream + work->streams[s].command_count++;
	bool copy = s >= STREAMS - 2;
	struct ts_work_call *call = copy ? add_call(maker, t, TS_API_COPY, maker->copy)
					 : add_call(maker, t, TS_API_LAUNCH, maker->launch);
	int64_t launched = call->start + 4000 + any(3000), behind = maker->done[s] + 800 + any(500);
	int64_t start = launched > behind ? launched : behind;

	call->command = c;
	call->command_count = 1;
	work->commands[c] = (struct ts_work_command){
		.start = start,
		.end = start + 1000 + any(50000),
		.issued = call->start,
		.correlation = i,
		.stream = s,
		.call = (uint32_t)(call - work->calls),
		.collective = TS_WORK_NONE,
		.step = TS_WORK_NONE,
		.graph = -1,
		.graph_node = -1,
		.kind = copy ? TS_GPU_OP_COPY : TS_GPU_OP_KERNEL,
		.copy_kind = copy ? TS_COPY_HOST_TO_DEVICE : TS_COPY_UNKNOWN,
	};
	work->next_of_call[c] = TS_WORK_NONE;
	maker->done[s] = work->commands[c].end;
	work->ranks[0].to = work->ranks[0].to > maker->done[s] ? work->ranks[0].to : maker->done[s];
}

static void make_entities(struct maker *maker)
{
	struct ts_work *work = maker->work;

	work->ranks[0] = (struct ts_work_rank){ .device_count = 1,
						.stream_count = STREAMS,
						.thread_count = THREADS };
	work->ranks[0].command_count = work->command_count;
	work->devices[0].stream_count = STREAMS;
	for (uint32_t s = 0; s < STREAMS; s++)
		work->streams[s] =
			(struct ts_work_stream){ .number = s,
						 .first_command = s * maker->per_stream };
	for (uint32_t t = 0; t < THREADS; t++)
		work->threads[t] =
			(struct ts_work_thread){ .tid = t, .first_call = t * maker->per_thread };
	work->rank_count = work->device_count = 1;
	work->stream_count = STREAMS;
	work->thread_count = THREADS;
}

static uint32_t name(struct ts_work *work, const char *text)
{
	return ts_strmap_intern(&work->names, text, strlen(text), NULL);
}

static void reserve(struct maker *maker, uint32_t commands)
{
	struct ts_work *work = maker->work;

	maker->per_stream = commands / STREAMS;
	work->command_count = maker->per_stream * STREAMS;
	maker->per_thread = work->command_count / THREADS;
	maker->per_thread += maker->per_thread / SYNC_EACH;
	work->call_count = maker->per_thread * THREADS;
	work->ranks = calloc(1, sizeof(*work->ranks));
	work->devices = calloc(1, sizeof(*work->devices));
	work->streams = calloc(STREAMS, sizeof(*work->streams));
	work->threads = calloc(THREADS, sizeof(*work->threads));
	work->commands = calloc(work->command_count, sizeof(*work->commands));
	work->calls = calloc(work->call_count, sizeof(*work->calls));
	work->next_of_call = calloc(work->command_count, sizeof(*work->next_of_call));
	if (!work->ranks || !work->devices || !work->streams || !work->threads || !work->commands ||
	    !work->calls || !work->next_of_call)
		die("no memory");
}

static struct ts_work *make_work(uint32_t commands)
{
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	struct maker maker = { 0 };
	struct ts_error err;

	if (ts_work_new(&maker.work, &options, &err))
		die(err.message);
	reserve(&maker, commands);
	make_entities(&maker);
	maker.launch = name(maker.work, "cudaLaunchKernel");
	maker.copy = name(maker.work, "cudaMemcpyAsync");
	maker.sync = name(maker.work, "cudaDeviceSynchronize");
	for (uint32_t i = 0; i < maker.work->command_count; i++) {
		add_command(&maker, i);
		if (i / THREADS % SYNC_EACH == SYNC_EACH - 1)
			add_sync(&maker, i % THREADS);
	}
	return maker.work;
}

static struct ts_work *load_work(const char *path)
{
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	struct ts_reader *reader;
	struct ts_work *work;
	struct ts_error err;

	options.all = true;
	if (ts_reader_open(&reader, path, &err) || ts_work_new(&work, &options, &err))
		die(err.message);
	if (ts_work_add(work, reader, &err) || ts_work_finish(work, &err))
		die(err.message);
	return work;
}

/* ---- measurements ---- */

static double measure_states(const struct ts_work *work, const struct ts_graph *graph,
			     uint64_t *ret_intervals)
{
	struct ts_states *states;
	struct ts_error err;
	double start = cpu_seconds(), seconds;

	if (ts_states_new(&states, work, graph, &err))
		die(err.message);
	seconds = cpu_seconds() - start;
	*ret_intervals = states->interval_count;
	ts_states_free(states);
	return seconds;
}

static double measure_graph(const struct ts_work *work, struct ts_graph **ret_graph)
{
	struct ts_error err;
	double start = cpu_seconds();

	if (ts_graph_new(ret_graph, work, 0, &err))
		die(err.message);
	return cpu_seconds() - start;
}

static void keep_best(double *best, double seconds)
{
	*best = seconds < *best ? seconds : *best;
}

int main(int argc, char **argv)
{
	double alone = 1e9, with_graph = 1e9, graph_seconds = 1e9;
	unsigned long commands = 5000000, rounds = 5;
	const char *trace = argc > 1 && argv[1][0] != '-' ? argv[1] : NULL;
	struct ts_graph *graph = NULL;
	struct ts_work *work;
	uint64_t intervals = 0;

	for (int i = trace ? 2 : 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--commands"))
			commands = strtoul(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--rounds"))
			rounds = strtoul(argv[i + 1], NULL, 10);
	}
	if (commands < STREAMS * SYNC_EACH || commands > 100000000)
		die("--commands is from 1024 to 100000000");
	work = trace ? load_work(trace) : make_work((uint32_t)commands);
	for (unsigned long i = 0; i < rounds; i++) {
		ts_graph_free(graph);
		keep_best(&alone, measure_states(work, NULL, &intervals));
		keep_best(&graph_seconds, measure_graph(work, &graph));
		keep_best(&with_graph, measure_states(work, graph, &intervals));
	}
	printf("{\"commands\":%u,\"intervals\":%" PRIu64
	       ",\"commands_per_second\":%.0f,\"with_graph_per_second\":%.0f,\"graph_per_second\":%.0f}\n",
	       work->command_count, intervals, work->command_count / alone,
	       work->command_count / with_graph, work->command_count / graph_seconds);
	ts_graph_free(graph);
	for (uint32_t i = 0; i < work->trace_count; i++)
		ts_reader_close(work->readers[i]);
	ts_work_free(work);
	return 0;
}
