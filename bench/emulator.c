/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulator [TRACE] [--commands N] [--rounds N]: measures the emulator
 * (src/replay/emulator/emulator.h) in commands per CPU second, on a trace, or on synthetic work: 8
 * streams of one device, fed by two threads that synchronize now and then. Measures the simulation
 * alone, and with building its model, but without the graph. Prints the best round as one JSON
 * line, with the errors against the recording. Uses private headers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "replay/emulator/emulator.h"

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
	fprintf(stderr, "emulator: %s\n", message);
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
	uint32_t launch, sync; /* names of calls */
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
	struct ts_work_call *call = add_call(maker, t, TS_API_DEVICE_SYNC, maker->sync);

	for (uint32_t s = 0; s < STREAMS; s++)
		call->end = call->end > maker->done[s] ? call->end : maker->done[s] + 2000;
	maker->host[t] = call->end + any(50000);
}

/* Command i: streams and threads take turns. */
static void add_command(struct maker *maker, uint32_t i)
{
	struct ts_work *work = maker->work;
	uint32_t s = i % STREAMS, t = i % THREADS;
	uint32_t c = s * maker->per_stream + work->streams[s].command_count++;
	struct ts_work_call *call = add_call(maker, t, TS_API_LAUNCH, maker->launch);
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
		.kind = TS_GPU_OP_KERNEL,
	};
	work->next_of_call[c] = TS_WORK_NONE;
	maker->done[s] = work->commands[c].end;
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
		work->streams[s] = (struct ts_work_stream){
			.number = s, .priority = TS_ABSENT, .first_command = s * maker->per_stream
		};
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

static void allocate(struct maker *maker, uint32_t commands)
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
	allocate(&maker, commands);
	make_entities(&maker);
	maker.launch = name(maker.work, "cudaLaunchKernel");
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
	options.load_flags = TS_WORK_SLICES | TS_WORK_FLOWS;
	if (ts_reader_open(&reader, path, &err) || ts_work_new(&work, &options, &err))
		die(err.message);
	if (ts_work_add(work, reader, &err) || ts_work_finish(work, &err))
		die(err.message);
	return work;
}

/* ---- measurements ---- */

struct figures {
	double graph_s, model_s, run_s;
	struct ts_emulator_errors errors;
	uint64_t broken_waits, guessed_commands;
	size_t edges;
};

static void run_round(const struct ts_work *work, struct figures *best, bool first)
{
	const struct ts_emulator_shape shape = { 0 };
	struct ts_emulator_observed observed;
	struct ts_emulator_times times = { 0 };
	struct ts_emulator_model *model;
	struct ts_graph *graph;
	struct ts_error err;
	double at[4];

	at[0] = cpu_seconds();
	if (ts_graph_new(&graph, work, TS_GRAPH_HOST, &err))
		die(err.message);
	at[1] = cpu_seconds();
	if (ts_emulator_observe(&observed, graph, &err) ||
	    ts_emulator_model_new(&model, work, graph, &observed, &shape, &err))
		die(err.message);
	at[2] = cpu_seconds();
	if (ts_emulator_run(model, &(struct ts_emulator_run_options){ 0 }, &times, &err))
		die(err.message);
	at[3] = cpu_seconds();
	if (first || at[1] - at[0] < best->graph_s)
		best->graph_s = at[1] - at[0];
	if (first || at[2] - at[1] < best->model_s)
		best->model_s = at[2] - at[1];
	if (first || at[3] - at[2] < best->run_s)
		best->run_s = at[3] - at[2];
	if (ts_emulator_errors(&best->errors, work, &times, &err))
		die(err.message);
	best->broken_waits = times.broken_waits;
	best->guessed_commands = model->guessed_commands;
	best->edges = model->edge_count;
	ts_emulator_times_release(&times);
	ts_emulator_model_free(model);
	ts_emulator_observed_release(&observed);
	ts_graph_free(graph);
}

static void print(const struct ts_work *work, const struct figures *figures)
{
	double commands = work->command_count;

	printf("{\"commands\":%u,\"calls\":%u,\"edges\":%zu,\"run_commands_per_s\":%.0f,"
	       "\"with_model_commands_per_s\":%.0f,\"graph_s\":%.4f,\"model_s\":%.4f,\"run_s\":%.4f,"
	       "\"recorded_span_ns\":%" PRId64 ",\"span_ns\":%" PRId64 ",\"span_error\":%.5f,"
	       "\"start_error_p50\":%.5f,\"start_error_p95\":%.5f,\"start_error_max\":%.5f,"
	       "\"broken_waits\":%" PRIu64 ",\"guessed_commands\":%" PRIu64 "}\n",
	       work->command_count, work->call_count, figures->edges, commands / figures->run_s,
	       commands / (figures->run_s + figures->model_s), figures->graph_s, figures->model_s,
	       figures->run_s, figures->errors.recorded_span_ns, figures->errors.span_ns,
	       figures->errors.span, figures->errors.p50, figures->errors.p95, figures->errors.max,
	       figures->broken_waits, figures->guessed_commands);
}

int main(int argc, char **argv)
{
	uint32_t commands = 2000000;
	int rounds = 3;
	const char *path = NULL;
	struct figures figures = { 0 };
	struct ts_work *work;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--commands") && i + 1 < argc)
			commands = (uint32_t)strtoul(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--rounds") && i + 1 < argc)
			rounds = (int)strtol(argv[++i], NULL, 10);
		else
			path = argv[i];
	}
	work = path ? load_work(path) : make_work(commands);
	for (int i = 0; i < rounds; i++)
		run_round(work, &figures, i == 0);
	print(work, &figures);
	ts_work_free(work);
	return 0;
}
