/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device-side order: the queue of each command, and events. If the number of streams changes,
 * distributes commands to new queues.
 */
#include "replay/emulator/emulator_internal.h"

/* ---- recorded queues ---- */

/*
 * A command that did not wait for the end of the previous one in its queue still begins no earlier
 * than it.
 */
static void add_follower(struct ts_emulator_build *build, uint32_t c)
{
	const struct ts_work *work = build->work;
	const struct ts_graph *graph = build->graph;
	uint32_t stream = work->commands[c].stream;

	if (c == work->streams[stream].first_command ||
	    work->streams[stream].flags & TS_STREAM_OUT_OF_ORDER)
		return;
	for (uint32_t e = graph->first_in[c]; e < graph->first_in[c + 1]; e++)
		if (graph->edges[e].from == c - 1 && ts_emulator_is_order(graph, &graph->edges[e]))
			return;
	build->model->commands[c - 1].follower = c;
}

static void keep_queues(struct ts_emulator_build *build)
{
	const struct ts_graph *graph = build->graph;

	for (uint32_t c = 0; c < build->work->command_count; c++) {
		add_follower(build, c);
		for (uint32_t e = graph->first_in[c]; e < graph->first_in[c + 1]; e++)
			if (ts_emulator_is_order(graph, &graph->edges[e]))
				ts_emulator_add_arrow(build, graph->edges[e].from, c,
						      ts_emulator_next_ns(build, c));
	}
}

/* ---- changed number of queues ---- */

struct queue {
	uint32_t last;   /* last command; TS_WORK_NONE */
	uint32_t stream; /* as in ts_emulator_model.streams */
};

struct dealt {
	int64_t issued;
	uint32_t command;
	uint32_t queue; /* index of the recorded queue in its device */
};

static int compare_dealt(const void *a_, const void *b_)
{
	const struct dealt *a = a_, *b = b_;

	return a->issued != b->issued ? TS_COMPARE(a->issued, b->issued)
				      : TS_COMPARE(a->command, b->command);
}

/*
 * All commands of a device by the time of their calls. A command without a call goes with the
 * previous one of its stream.
 */
static uint32_t collect(const struct ts_work *work, const struct ts_work_device *device,
			struct dealt *dealt, uint32_t *ret_used)
{
	uint32_t count = 0, used = 0;

	for (uint32_t s = device->first_stream; s < device->first_stream + device->stream_count;
	     s++) {
		const struct ts_work_stream *stream = &work->streams[s];
		int64_t last = INT64_MIN;

		for (uint32_t i = 0; i < stream->command_count; i++) {
			uint32_t c = stream->first_command + i;

			if (work->commands[c].issued != TS_ABSENT)
				last = TS_MAX(last, work->commands[c].issued);
			dealt[count++] = (struct dealt){ last, c, used };
		}
		used += stream->command_count != 0;
	}
	ts_sort(dealt, count, sizeof(*dealt), compare_dealt);
	*ret_used = used;
	return count;
}

/* The streams of a device that have commands, then new ones. */
static void make_queues(struct ts_emulator_build *build, const struct ts_work_device *device,
			struct queue *queues, uint32_t count)
{
	const struct ts_work *work = build->work;
	uint32_t filled = 0, end = device->first_stream + device->stream_count;

	for (uint32_t s = device->first_stream; s < end && filled < count; s++)
		if (work->streams[s].command_count)
			queues[filled++] = (struct queue){ TS_WORK_NONE, s };
	for (; filled < count; filled++)
		queues[filled] =
			(struct queue){ TS_WORK_NONE, work->stream_count + build->new_streams++ };
}

/* Merges streams if there are too many; otherwise distributes commands round-robin. */
static void deal(struct ts_emulator_build *build, uint32_t d, struct dealt *dealt,
		 struct queue *queues)
{
	const struct ts_work_device *device = &build->work->devices[d];
	uint32_t streams = build->shape.streams, used;
	uint32_t count = collect(build->work, device, dealt, &used);
	bool spread = streams > used;

	make_queues(build, device, queues, TS_MIN(streams, count));
	for (uint32_t i = 0; i < count; i++) {
		uint32_t c = dealt[i].command;
		struct queue *queue = &queues[(spread ? i : dealt[i].queue) % streams];

		if (queue->last != TS_WORK_NONE)
			ts_emulator_add_arrow(build, queue->last, c, ts_emulator_next_ns(build, c));
		queue->last = c;
		build->model->streams[c] = queue->stream;
	}
	if (spread) {
		uint32_t *slots = &build->model->slots[d * TS_EMULATOR_RESOURCES];

		slots[TS_EMULATOR_KERNELS] = TS_MAX(slots[TS_EMULATOR_KERNELS], streams);
	}
}

/* Event dependencies between commands. */
static void keep_events(struct ts_emulator_build *build)
{
	const struct ts_graph *graph = build->graph;

	for (uint32_t c = 0; c < build->work->command_count; c++)
		for (uint32_t e = graph->first_in[c]; e < graph->first_in[c + 1]; e++)
			if (graph->edges[e].kind == TS_EDGE_EVENT &&
			    ts_emulator_is_order(graph, &graph->edges[e]))
				ts_emulator_add_arrow(build, graph->edges[e].from, c,
						      ts_emulator_next_ns(build, c));
}

static void deal_queues(struct ts_emulator_build *build)
{
	uint32_t count = build->work->command_count;
	TS_AUTO_FREE struct dealt *dealt = ts_emulator_array(build, count, sizeof(*dealt));
	TS_AUTO_FREE struct queue *queues =
		ts_emulator_array(build, (size_t)count + 1, sizeof(*queues));

	build->model->streams = ts_emulator_array(build, count, sizeof(*build->model->streams));
	for (uint32_t d = 0; d < build->work->device_count && !build->rc; d++)
		deal(build, d, dealt, queues);
	if (!build->rc)
		keep_events(build);
}

void ts_emulator_add_queues(struct ts_emulator_build *build)
{
	if (build->shape.streams)
		deal_queues(build);
	else
		keep_queues(build);
}
