/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many kernels, and copies of each direction, a device ran concurrently: one sweep over its
 * streams by time for each. Called by emulator_observe.c.
 */
#include "replay/emulator/emulator_internal.h"

#define COPIES (1u << TS_EMULATOR_UP | 1u << TS_EMULATOR_DOWN | 1u << TS_EMULATOR_PEER)

/*
 * Heap of the streams of a device that have commands of the given resources left, by start of the
 * next one.
 */
struct lane {
	int64_t start;
	uint32_t next, end; /* commands */
};

struct sweep {
	const struct ts_work *work;
	unsigned int mask; /* resources */
	struct lane *lanes;
	uint32_t lane_count;
	int64_t *ends; /* heap of the ends of running commands */
	uint32_t running;
};

/* Advances a lane to its next command of the given resources; false: none left. */
static bool step_lane(const struct sweep *sweep, struct lane *lane)
{
	for (; lane->next < lane->end; lane->next++) {
		const struct ts_work_command *command = &sweep->work->commands[lane->next];
		uint32_t resource = ts_emulator_resource(command);

		if (resource != TS_WORK_NONE && sweep->mask >> resource & 1 &&
		    command->end > command->start) {
			lane->start = command->start;
			return true;
		}
	}
	return false;
}

static void sink_lane(struct sweep *sweep, struct lane lane, uint32_t at)
{
	struct lane *lanes = sweep->lanes;

	for (uint32_t below = 2 * at + 1; below < sweep->lane_count; below = 2 * at + 1) {
		if (below + 1 < sweep->lane_count && lanes[below + 1].start < lanes[below].start)
			below++;
		if (lane.start <= lanes[below].start)
			break;
		lanes[at] = lanes[below];
		at = below;
	}
	lanes[at] = lane;
}

static void add_end(struct sweep *sweep, int64_t end)
{
	uint32_t at = sweep->running++;

	while (at > 0 && sweep->ends[(at - 1) / 2] > end) {
		sweep->ends[at] = sweep->ends[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	sweep->ends[at] = end;
}

static void drop_end(struct sweep *sweep)
{
	int64_t last = sweep->ends[--sweep->running];
	uint32_t at = 0;

	for (uint32_t below = 1; below < sweep->running; below = 2 * at + 1) {
		if (below + 1 < sweep->running && sweep->ends[below + 1] < sweep->ends[below])
			below++;
		if (last <= sweep->ends[below])
			break;
		sweep->ends[at] = sweep->ends[below];
		at = below;
	}
	sweep->ends[at] = last;
}

static void start_sweep(struct sweep *sweep, const struct ts_work_device *device, unsigned int mask)
{
	sweep->mask = mask;
	sweep->lane_count = sweep->running = 0;
	for (uint32_t s = device->first_stream; s < device->first_stream + device->stream_count;
	     s++) {
		const struct ts_work_stream *stream = &sweep->work->streams[s];
		struct lane lane = { .next = stream->first_command,
				     .end = stream->first_command + stream->command_count };

		if (step_lane(sweep, &lane))
			sweep->lanes[sweep->lane_count++] = lane;
	}
	for (uint32_t i = sweep->lane_count; i-- > 0;)
		sink_lane(sweep, sweep->lanes[i], i);
}

/* The next command by start; TS_WORK_NONE: none left. */
static uint32_t next_command(struct sweep *sweep)
{
	struct lane lane = sweep->lanes[0];
	uint32_t command = lane.next++;

	if (sweep->lane_count == 0)
		return TS_WORK_NONE;
	if (!step_lane(sweep, &lane))
		lane = sweep->lanes[--sweep->lane_count];
	if (sweep->lane_count)
		sink_lane(sweep, lane, 0);
	return command;
}

/* Maximum number of concurrent commands of a device; mask: of these resources. */
static uint32_t most_at_once(struct sweep *sweep, uint32_t device, unsigned int mask)
{
	uint32_t most = 0, c;

	start_sweep(sweep, &sweep->work->devices[device], mask);
	while ((c = next_command(sweep)) != TS_WORK_NONE) {
		const struct ts_work_command *command = &sweep->work->commands[c];

		while (sweep->running && sweep->ends[0] <= command->start)
			drop_end(sweep);
		add_end(sweep, command->end);
		most = TS_MAX(most, sweep->running);
	}
	return most;
}

/* ---- copies that wait for kernels ---- */

#define LONG_NS 50000 /* a ready copy is evidence only if a kernel has this much left to run */
#define LAST_KERNELS 4u
#define ENOUGH 4u

struct evidence {
	const struct ts_graph *graph;
	uint32_t kernels[LAST_KERNELS]; /* that began most recently */
	uint32_t kernel_count;
	uint32_t waited, beside;
};

/*
 * Did the copy wait for a kernel that was running when it was ready? Workers of a processor become
 * free slightly before the recorded end.
 */
static void classify_copy(struct evidence *evidence, uint32_t copy)
{
	const struct ts_work_command *commands = evidence->graph->work->commands;
	int64_t ready = TS_MAX(commands[copy].issued, ts_emulator_ready(evidence->graph, copy));

	if (commands[copy].issued == TS_ABSENT)
		return;
	for (uint32_t i = 0; i < TS_MIN(evidence->kernel_count, LAST_KERNELS); i++) {
		const struct ts_work_command *kernel = &commands[evidence->kernels[i]];

		if (kernel->stream == commands[copy].stream || kernel->start > ready ||
		    kernel->end < ready + LONG_NS)
			continue;
		if (commands[copy].start >= kernel->end - (kernel->end - kernel->start) / 64)
			evidence->waited++;
		else
			evidence->beside++;
		return;
	}
}

/* A device without copy engines runs copies where it runs kernels. */
static bool shares_slots(struct sweep *sweep, const struct ts_graph *graph, uint32_t device)
{
	struct evidence evidence = { .graph = graph };
	uint32_t c;

	start_sweep(sweep, &sweep->work->devices[device], 1u << TS_EMULATOR_KERNELS | COPIES);
	while ((c = next_command(sweep)) != TS_WORK_NONE) {
		if (ts_emulator_resource(&sweep->work->commands[c]) == TS_EMULATOR_KERNELS)
			evidence.kernels[evidence.kernel_count++ % LAST_KERNELS] = c;
		else
			classify_copy(&evidence, c);
	}
	return evidence.waited >= ENOUGH && evidence.waited >= 2 * evidence.beside;
}

/* Resources that commands of a device need. */
static unsigned int resources_of(const struct ts_work *work, const struct ts_work_device *device)
{
	unsigned int mask = 0;

	for (uint32_t s = device->first_stream; s < device->first_stream + device->stream_count;
	     s++)
		for (uint32_t i = 0; i < work->streams[s].command_count; i++) {
			uint32_t resource = ts_emulator_resource(
				&work->commands[work->streams[s].first_command + i]);

			mask |= resource == TS_WORK_NONE ? 0 : 1u << resource;
		}
	return mask;
}

static uint8_t engines_of(struct sweep *sweep, const struct ts_graph *graph, uint32_t device,
			  unsigned int mask)
{
	if (!(mask & COPIES))
		return TS_EMULATOR_ONE_ENGINE;
	if (mask & 1u << TS_EMULATOR_KERNELS && shares_slots(sweep, graph, device))
		return TS_EMULATOR_NO_ENGINE;
	return most_at_once(sweep, device, COPIES) <= 1 ? TS_EMULATOR_ONE_ENGINE
							: TS_EMULATOR_ENGINES;
}

int ts_emulator_observe_slots(struct ts_emulator_observed *observed, const struct ts_graph *graph)
{
	const struct ts_work *work = graph->work;
	TS_AUTO_FREE struct lane *lanes = ts_alloc_array(work->stream_count, sizeof(*lanes));
	TS_AUTO_FREE int64_t *ends = ts_alloc_array(work->command_count, sizeof(*ends));
	struct sweep sweep = { .work = work, .lanes = lanes, .ends = ends };

	observed->slots = ts_alloc_array(work->device_count, sizeof(*observed->slots));
	observed->engines = ts_alloc_array(work->device_count, sizeof(*observed->engines));
	if (!lanes || !ends || !observed->slots || !observed->engines)
		return TS_ENOMEM;
	for (uint32_t d = 0; d < work->device_count; d++) {
		unsigned int mask = resources_of(work, &work->devices[d]);

		for (uint32_t r = 0; r < TS_EMULATOR_RESOURCES; r++)
			observed->slots[d][r] =
				mask >> r & 1 ? TS_MAX(most_at_once(&sweep, d, 1u << r), 1u) : 1;
		observed->engines[d] = engines_of(&sweep, graph, d, mask);
	}
	return TS_OK;
}
