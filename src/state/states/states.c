/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives the state machine device by device: instants of commands, then streams, then the device.
 * The states are defined in docs/state.md; the work is done in states_*.c.
 */
#include "state/states/states.h"

#include <tracesmith/schema.h>

#include "base/memory.h"
#include "state/states/states_internal.h"

/* Budget for splitting idle intervals, per command and per wait of a thread. */
#define PIECES_PER_ROW 16u
#define MICROSECOND 1000

const char *ts_state_reason_name(enum ts_state_reason reason)
{
	static const char *const names[TS_REASON_COUNT] = {
		[TS_REASON_NONE] = "",
		[TS_REASON_QUEUE] = "queue",
		[TS_REASON_EVENT] = "event",
		[TS_REASON_COPY_ENGINE] = "copy_engine",
		[TS_REASON_HOST] = "host",
		[TS_REASON_PEERS] = "peers",
		[TS_REASON_UNKNOWN] = "unknown",
		[TS_REASON_HOST_BOUND] = "host_bound",
		[TS_REASON_DEPENDENCY] = "dependency",
		[TS_REASON_LAUNCH_MISSING] = "launch_missing",
		[TS_REASON_NOTHING] = "nothing",
	};

	return (size_t)reason < TS_REASON_COUNT ? names[reason] : "";
}

const char *ts_state_name(enum ts_execution_state state)
{
	static const char *const names[] = {
		[TS_STATE_IDLE] = "idle",         [TS_STATE_DISPATCH_PENDING] = "dispatch_pending",
		[TS_STATE_WAIT] = "wait",         [TS_STATE_RUNNING] = "running",
		[TS_STATE_FINISHED] = "finished",
	};

	return (size_t)state < TS_ARRAY_SIZE(names) ? names[state] : "";
}

/* ---- a command's states ---- */

void ts_states_phases(const struct ts_states *states, const struct ts_state_latency *latency,
		      uint32_t c, struct ts_command_phases *ret_phases)
{
	const struct ts_work_command *command = &states->work->commands[c];
	const struct ts_command_state *state = &states->commands[c];
	int64_t issued = ts_command_issued(command), handed_on = state->handed, released;

	if (state->ready > state->handed) {
		released = TS_MIN(ts_ns_add(state->ready, latency->next_ns), command->start);
	} else {
		handed_on = ts_time_clamp(ts_ns_add(issued, latency->launch_ns), state->handed,
					  command->start);
		released = handed_on;
	}
	*ret_phases = (struct ts_command_phases){
		.issued = issued,
		.handed_on = handed_on,
		.released = released,
		.start = command->start,
		.joined = command->start,
		.end = ts_command_end(command),
	};
}

void ts_command_phases(const struct ts_states *states, uint32_t c,
		       struct ts_command_phases *ret_phases)
{
	const struct ts_work *work = states->work;
	uint32_t device = work->streams[work->commands[c].stream].device;

	ts_states_phases(states, &states->latencies[device], c, ret_phases);
	if (states->graph && work->commands[c].class == TS_CLASS_COMMUNICATION)
		ret_phases->joined = ts_states_joined(states->graph, c);
}

/* ---- building ---- */

/* Times that are all full microseconds were rounded; two that should be equal may differ by one. */
static int64_t tolerance_of(const struct ts_work *work, const struct ts_work_rank *rank)
{
	const struct ts_work_command *commands = work->commands + rank->first_command;

	if (!rank->command_count)
		return 0;
	for (uint32_t i = 0; i < rank->command_count; i++) {
		if (ts_ns_sub(commands[i].start, commands[0].start) % MICROSECOND ||
		    ts_ns_sub(commands[i].end, commands[0].start) % MICROSECOND)
			return 0;
	}
	return MICROSECOND;
}

static int begin(struct ts_states_build *build)
{
	const struct ts_work *work = build->work;
	struct ts_states *states = build->states;
	size_t lanes = (size_t)work->device_count + work->stream_count;

	states->commands = ts_alloc_array(work->command_count, sizeof(*states->commands));
	states->latencies = calloc((size_t)work->device_count + 1, sizeof(*states->latencies));
	states->lanes = calloc(lanes + 1, sizeof(*states->lanes));
	build->samples = malloc(sizeof(*build->samples));
	/* Initial size that suffices for most traces. */
	if (ts_grow_array((void **)&states->intervals, &states->interval_capacity,
			  2 * (work->command_count + lanes), sizeof(*states->intervals)))
		return TS_ENOMEM;
	if (!states->commands || !states->latencies || !states->lanes || !build->samples ||
	    ts_state_waits_init(&build->waits, work))
		return TS_ENOMEM;
	build->pieces_left = PIECES_PER_ROW *
			     ((size_t)work->command_count + build->waits.first[work->thread_count]);
	return 0;
}

static void release(struct ts_states_build *build)
{
	ts_state_waits_release(&build->waits);
	free(build->samples);
	free(build->copies);
	free(build->heads);
	free(build->scratch[0]);
	free(build->scratch[1]);
}

static uint32_t commands_of(const struct ts_work *work, const struct ts_work_device *device)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < device->stream_count; i++)
		count += work->streams[device->first_stream + i].command_count;
	return count;
}

/* Derives the instants of all commands of a device. */
static int derive_device(struct ts_states_build *build, uint32_t d, bool *in_order)
{
	const struct ts_work_device *device = &build->work->devices[d];
	int rc = 0;

	build->samples->launch_count = build->samples->next_count = build->samples->skip = 0;
	build->samples->stride = commands_of(build->work, device) / TS_LATENCY_SAMPLES + 1;
	build->copy_count = 0;
	for (uint32_t i = 0; !rc && i < device->stream_count; i++)
		rc = ts_states_derive_stream(build, &build->work->streams[device->first_stream + i],
					     &in_order[i]);
	if (!rc)
		rc = ts_states_classify_copies(build);
	ts_states_estimate_latency(build->samples, build->tolerance_ns,
				   &build->states->latencies[d]);
	return rc;
}

static struct ts_state_lane *begin_lane(struct ts_states_build *build, struct ts_state_lane *lane,
					uint32_t device, uint32_t stream)
{
	*lane = (struct ts_state_lane){
		.device = device,
		.stream = stream,
		.first = build->states->interval_count,
	};
	build->lane = lane;
	return lane;
}

/* The lane of a device comes before those of its streams, from which it is derived. */
static int build_lanes(struct ts_states_build *build, uint32_t d, const bool *in_order)
{
	const struct ts_work_device *device = &build->work->devices[d];
	struct ts_state_lane *lanes = &build->states->lanes[build->states->lane_count];
	int rc = 0;

	for (uint32_t i = 0; !rc && i < device->stream_count; i++) {
		begin_lane(build, &lanes[i + 1], d, device->first_stream + i);
		rc = ts_states_build_stream(build, device->first_stream + i, in_order[i]);
	}
	begin_lane(build, lanes, d, TS_WORK_NONE);
	if (!rc)
		rc = ts_states_build_device(build, lanes + 1, device->stream_count);
	build->states->lane_count += 1 + device->stream_count;
	return rc;
}

static int build_device(struct ts_states_build *build, uint32_t d)
{
	TS_AUTO_FREE bool *in_order = calloc((size_t)build->work->devices[d].stream_count + 1, 1);
	int rc;

	if (!in_order)
		return TS_ENOMEM;
	rc = derive_device(build, d, in_order);
	return rc ? rc : build_lanes(build, d, in_order);
}

static int build_all(struct ts_states_build *build)
{
	const struct ts_work *work = build->work;
	int rc = 0;

	for (uint32_t r = 0; !rc && r < work->rank_count; r++) {
		const struct ts_work_rank *rank = &work->ranks[r];

		build->tolerance_ns = tolerance_of(work, rank);
		build->from = rank->from;
		build->to = rank->to;
		for (uint32_t i = 0; !rc && i < rank->device_count; i++)
			rc = build_device(build, rank->first_device + i);
	}
	return rc;
}

int ts_states_new(struct ts_states **ret_states, const struct ts_work *work,
		  const struct ts_graph *graph, struct ts_error *err)
{
	TS_AUTO(ts_states) states = calloc(1, sizeof(*states));
	struct ts_states_build build = { .states = states, .work = work, .graph = graph };
	int rc = TS_ENOMEM;

	if (states) {
		states->work = work;
		states->graph = graph;
		rc = begin(&build);
	}
	if (!rc)
		rc = build_all(&build);
	release(&build);
	if (rc)
		return ts_error_set(err, rc, "out of memory for the states of %u commands",
				    work->command_count);
	*ret_states = TS_STEAL(states);
	return 0;
}

void ts_states_free(struct ts_states *states)
{
	if (!states)
		return;
	free(states->commands);
	free(states->latencies);
	free(states->intervals);
	free(states->lanes);
	free(states);
}
