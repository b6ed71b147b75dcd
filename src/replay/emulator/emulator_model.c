/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the model: the resource of each command, then the edges of emulator_queues.c,
 * emulator_host.c and emulator_waits.c.
 */
#include "base/ns.h"
#include "replay/emulator/emulator_internal.h"

static bool is_blocking(const struct ts_graph *graph, uint32_t c)
{
	uint32_t call = graph->work->commands[c].call;

	for (uint32_t i = graph->first_out[c]; i < graph->first_out[c + 1]; i++) {
		const struct ts_edge *edge = &graph->edges[graph->out[i]];

		if (edge->kind == TS_EDGE_COPY && edge->to == ts_graph_call_node(graph, call))
			return true;
	}
	return false;
}

enum ts_emulator_class ts_emulator_class(const struct ts_graph *graph, uint32_t c)
{
	const struct ts_work_command *command = &graph->work->commands[c];

	if (command->call != TS_WORK_NONE && is_blocking(graph, c))
		return TS_EMULATOR_BLOCKING;
	if (command->flags & TS_COMMAND_SHARES_CALL)
		return TS_EMULATOR_NODE;
	if (command->kind == TS_GPU_OP_COPY)
		return TS_EMULATOR_COPY;
	return command->class == TS_CLASS_COMPUTE || command->class == TS_CLASS_COMMUNICATION
		       ? TS_EMULATOR_KERNEL
		       : TS_EMULATOR_OTHER;
}

void *ts_emulator_array(struct ts_emulator_build *build, size_t count, size_t item_bytes)
{
	void *array = build->rc ? NULL : ts_alloc_array(count, item_bytes);

	if (!array)
		build->rc = TS_ENOMEM;
	return array;
}

void ts_emulator_add_arrow(struct ts_emulator_build *build, uint32_t from, uint32_t to,
			   int64_t lag_ns)
{
	if (build->arrow_count == build->arrow_capacity && !build->rc)
		build->rc = ts_grow_array((void **)&build->arrows, &build->arrow_capacity,
					  build->arrow_count + 1, sizeof(*build->arrows));
	if (!build->rc)
		build->arrows[build->arrow_count++] =
			(struct ts_emulator_arrow){ lag_ns, from, to };
}

static const struct ts_emulator_latency *latency_of(const struct ts_emulator_build *build,
						    uint32_t command)
{
	const struct ts_work_command *of = &build->work->commands[command];

	return &build->observed->latencies[of->stream][ts_emulator_class(build->graph, command)];
}

int64_t ts_emulator_next_ns(const struct ts_emulator_build *build, uint32_t command)
{
	return latency_of(build, command)->next_ns;
}

/* ---- commands ---- */

/*
 * Priorities as drivers count them: CUDA's are 0 and below, OpenCL's 1, 2 and 4; an unknown one is
 * in the middle.
 */
static int64_t priority_of(const struct ts_work *work, const struct ts_work_stream *stream)
{
	const struct ts_work_device *device = &work->devices[stream->device];

	if (stream->priority != TS_ABSENT)
		return stream->priority;
	for (uint32_t s = device->first_stream; s < device->first_stream + device->stream_count;
	     s++)
		if (work->streams[s].priority != TS_ABSENT && work->streams[s].priority > 0)
			return 2;
	return 0;
}

/*
 * Latency from the begin of the call. The duration of a call that did not wait is host time, so it
 * may be used.
 */
static int64_t launch_of(const struct ts_emulator_build *build, uint32_t command)
{
	const struct ts_emulator_latency *latency = latency_of(build, command);
	uint32_t call = build->work->commands[command].call;
	int64_t took = 0;

	if (call != TS_WORK_NONE && latency->from_end)
		took = build->work->calls[call].end - build->work->calls[call].start;
	return TS_MAX(ts_ns_add(took, latency->launch_ns), 0);
}

static uint32_t resource_of(const struct ts_emulator_build *build,
			    const struct ts_work_command *command)
{
	uint32_t device = build->work->streams[command->stream].device;
	uint32_t resource = ts_emulator_resource(command);

	if (resource == TS_WORK_NONE)
		return TS_WORK_NONE;
	if (resource != TS_EMULATOR_KERNELS &&
	    build->observed->engines[device] != TS_EMULATOR_ENGINES)
		resource = build->observed->engines[device] == TS_EMULATOR_ONE_ENGINE
				   ? TS_EMULATOR_UP
				   : TS_EMULATOR_KERNELS;
	return device * TS_EMULATOR_RESOURCES + resource;
}

static void add_commands(struct ts_emulator_build *build)
{
	const struct ts_work *work = build->work;
	const int64_t *held_ns = build->observed->held_ns;
	struct ts_emulator_model *model = build->model;

	model->command_count = work->command_count;
	model->call_count = work->call_count;
	model->commands = ts_emulator_array(build, work->command_count, sizeof(*model->commands));
	for (uint32_t s = 0; s < work->stream_count && !build->rc; s++) {
		const struct ts_work_stream *stream = &work->streams[s];
		int64_t priority = priority_of(work, stream);

		for (uint32_t i = 0; i < stream->command_count; i++) {
			uint32_t c = stream->first_command + i;
			const struct ts_work_command *command = &work->commands[c];

			model->commands[c] = (struct ts_emulator_command){
				.duration = TS_MAX(ts_ns_sub(command->end, command->start), 0),
				.launch_ns = launch_of(build, c),
				.held_ns = held_ns ? held_ns[c] : 0,
				.priority = priority,
				.resource = resource_of(build, command),
				.follower = TS_WORK_NONE,
			};
			model->held_commands += model->commands[c].held_ns != 0;
		}
	}
}

static void add_resources(struct ts_emulator_build *build)
{
	struct ts_emulator_model *model = build->model;
	uint32_t count = build->work->device_count * TS_EMULATOR_RESOURCES;

	model->resource_count = count;
	model->slots = ts_emulator_array(build, count, sizeof(*model->slots));
	for (uint32_t i = 0; i < count && !build->rc; i++)
		model->slots[i] = build->observed->slots[i / TS_EMULATOR_RESOURCES]
							[i % TS_EMULATOR_RESOURCES];
}

/* ---- edges ---- */

static void count_waits(struct ts_emulator_build *build)
{
	struct ts_emulator_model *model = build->model;
	uint32_t nodes = model->command_count + model->point_count;

	model->waits = ts_emulator_array(build, nodes, sizeof(*model->waits));
	if (!model->waits)
		return;
	memset(model->waits, 0, nodes * sizeof(*model->waits));
	for (size_t i = 0; i < build->arrow_count; i++)
		model->waits[build->arrows[i].to]++;
	/* A point that waits also waits for its thread to reach it. */
	for (uint32_t i = model->command_count; i < nodes; i++)
		model->waits[i] += model->waits[i] != 0;
	for (uint32_t i = 0; i < model->command_count; i++) {
		model->waits[i]++;
		if (model->commands[i].follower != TS_WORK_NONE)
			model->waits[model->commands[i].follower]++;
	}
}

/* Sorts edges by source; edges of one node keep the order in which they were added. */
static void index_edges(struct ts_emulator_build *build)
{
	struct ts_emulator_model *model = build->model;
	uint32_t nodes = model->command_count + model->point_count;

	model->first_out = ts_emulator_array(build, (size_t)nodes + 2, sizeof(*model->first_out));
	model->edges = ts_emulator_array(build, build->arrow_count, sizeof(*model->edges));
	if (build->rc)
		return;
	memset(model->first_out, 0, ((size_t)nodes + 2) * sizeof(*model->first_out));
	for (size_t i = 0; i < build->arrow_count; i++)
		model->first_out[build->arrows[i].from + 2]++;
	for (uint32_t i = 0; i < nodes; i++)
		model->first_out[i + 2] += model->first_out[i + 1];
	for (size_t i = 0; i < build->arrow_count; i++) {
		const struct ts_emulator_arrow *arrow = &build->arrows[i];

		model->edges[model->first_out[arrow->from + 1]++] =
			(struct ts_emulator_edge){ arrow->lag_ns, arrow->to };
	}
	model->edge_count = build->arrow_count;
}

static int finish(struct ts_emulator_build *build, struct ts_error *err)
{
	uint64_t nodes = (uint64_t)build->model->command_count + build->model->point_count;

	if (!build->rc && (nodes > UINT32_MAX - 2 || build->arrow_count >= UINT32_MAX))
		return ts_error_set(
			err, TS_ENOSPC,
			"trace too large for the emulator: %llu instants and %zu dependencies; use a part of it",
			(unsigned long long)nodes, build->arrow_count);
	count_waits(build);
	index_edges(build);
	return build->rc ? ts_error_set(err, build->rc, "no memory for the emulator") : TS_OK;
}

int ts_emulator_model_new(struct ts_emulator_model **ret_model, const struct ts_work *work,
			  const struct ts_graph *graph, const struct ts_emulator_observed *observed,
			  const struct ts_emulator_shape *shape, struct ts_error *err)
{
	TS_AUTO(ts_emulator_model) model = calloc(1, sizeof(*model));
	struct ts_emulator_build build = {
		.work = work, .graph = graph, .observed = observed, .model = model, .shape = *shape
	};
	int rc;

	if (!model)
		return ts_error_set(err, TS_ENOMEM, "no memory for the emulator");
	build.rc = ts_grow_array((void **)&build.arrows, &build.arrow_capacity,
				 (size_t)work->command_count + 1, sizeof(*build.arrows));
	add_commands(&build);
	add_resources(&build);
	if (!build.rc)
		ts_emulator_add_queues(&build);
	if (!build.rc)
		ts_emulator_add_host(&build);
	if (!build.rc)
		ts_emulator_add_wakes(&build);
	rc = finish(&build, err);
	free(build.arrows);
	free(build.recorded);
	free(build.end);
	if (!rc)
		*ret_model = TS_STEAL(model);
	return rc;
}

void ts_emulator_model_free(struct ts_emulator_model *model)
{
	if (!model)
		return;
	free(model->commands);
	free(model->points);
	free(model->threads);
	free(model->slots);
	free(model->first_submit);
	free(model->submits);
	free(model->first_out);
	free(model->edges);
	free(model->waits);
	free(model->streams);
	free(model);
}
