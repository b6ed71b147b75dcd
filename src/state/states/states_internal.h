/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of the state machine (states.h), shared while states are built device by device:
 * instants of commands (states_commands.c, states_copies.c), typical latencies (states_latency.c),
 * streams (states_streams.c), then the device (states_devices.c).
 */
#ifndef TS_STATE_STATES_STATES_INTERNAL_H
#define TS_STATE_STATES_STATES_INTERNAL_H

#include "base/ns.h"
#include "state/states/states.h"

/* Number of samples per device for each kind of latency. */
#define TS_LATENCY_SAMPLES 4096u

struct ts_latency_samples {
	int64_t launch[TS_LATENCY_SAMPLES], next[TS_LATENCY_SAMPLES];
	uint32_t launch_count, next_count;
	uint32_t stride; /* every how many-th command is sampled */
	uint32_t skip;   /* commands to skip before the next sample */
};

/* Intervals in which a thread was inside calls that wait for a device: disjoint, by start. */
struct ts_state_span {
	int64_t start, end;
	int64_t before; /* total length of earlier spans of its thread */
};

struct ts_state_waits {
	struct ts_state_span *spans;
	size_t *first; /* thread_count + 1 */
};

struct ts_states_build {
	struct ts_states *states;
	const struct ts_work *work;
	const struct ts_graph *graph;
	struct ts_state_waits waits;
	struct ts_latency_samples *samples;
	uint32_t *copies; /* of the current device, in command order */
	size_t copy_count, copy_capacity;
	uint32_t *heads; /* of a stream that did not run in issue order */
	size_t head_capacity;
	struct ts_state_interval *scratch[2];
	size_t scratch_capacity[2];
	int64_t tolerance_ns; /* for times on one clock of the current rank */
	int64_t from, to;     /* window of the current rank */
	size_t pieces_left;   /* remaining budget for splitting idle intervals */
	struct ts_state_lane *lane;
};

static inline int64_t ts_time_clamp(int64_t time, int64_t low, int64_t high)
{
	return time < low ? low : time > high ? high : time;
}

static inline int64_t ts_command_end(const struct ts_work_command *command)
{
	return command->end > command->start ? command->end : command->start;
}

/* When the host requested it, as the states see it. */
static inline int64_t ts_command_issued(const struct ts_work_command *command)
{
	return command->issued == TS_ABSENT || command->issued > command->start ? command->start
										: command->issued;
}

/* ---- the parts, in order of use; those that can fail fail for lack of memory only ---- */

int ts_state_waits_init(struct ts_state_waits *waits, const struct ts_work *work);
void ts_state_waits_release(struct ts_state_waits *waits);

/* Instants of the commands of one stream; true: issue order equals start order. */
int ts_states_derive_stream(struct ts_states_build *build, const struct ts_work_stream *stream,
			    bool *ret_in_order);
/* Called after all streams of a device are derived. */
int ts_states_classify_copies(struct ts_states_build *build);
/* Samples are sorted. */
void ts_states_estimate_latency(struct ts_latency_samples *samples, int64_t tolerance_ns,
				struct ts_state_latency *ret_latency);

/* Start of the last peer to arrive, between start and end; start: it waited for none. */
int64_t ts_states_joined(const struct ts_graph *graph, uint32_t command);
void ts_states_phases(const struct ts_states *states, const struct ts_state_latency *latency,
		      uint32_t command, struct ts_command_phases *ret_phases);

int ts_states_build_stream(struct ts_states_build *build, uint32_t stream, bool in_order);
int ts_states_build_device(struct ts_states_build *build, const struct ts_state_lane *streams,
			   uint32_t stream_count);

/*
 * Appends an interval to the current lane, clipped to the window; merges it with an equal
 * neighbour.
 */
int ts_states_emit(struct ts_states_build *build, const struct ts_state_interval *interval);

#endif
