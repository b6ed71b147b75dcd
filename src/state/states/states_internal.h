/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the state machine (states.h): what its parts share while states are built, device by
 * device. Instants of commands first (states_commands.c, states_copies.c), then what is usual on
 * the device (states_latency.c), then its streams (states_streams.c), then the device itself
 * (states_devices.c).
 */
#ifndef TS_STATE_STATES_STATES_INTERNAL_H
#define TS_STATE_STATES_STATES_INTERNAL_H

#include "base/ns.h"
#include "state/states/states.h"

/* Of each kind of latency, so many are looked at on a device. */
#define TS_LATENCY_SAMPLES 4096u

struct ts_latency_samples {
	int64_t launch[TS_LATENCY_SAMPLES], next[TS_LATENCY_SAMPLES];
	uint32_t launch_count, next_count;
	uint32_t stride; /* each how many-th command is looked at */
	uint32_t skip;   /* so many before the next one */
};

/* Stretches in which a thread was inside calls that wait for a device: disjoint, by start. */
struct ts_state_span {
	int64_t start, end;
	int64_t before; /* length of those before it on its thread */
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
	uint32_t *copies; /* of the device at hand, in order of commands */
	size_t copy_count, copy_capacity;
	uint32_t *heads; /* of a stream that was not served in order of issue */
	size_t head_capacity;
	struct ts_state_interval *scratch[2];
	size_t scratch_capacity[2];
	int64_t tolerance_ns; /* of times on one clock of the rank at hand */
	int64_t from, to;     /* window of that rank */
	size_t pieces_left;   /* how often idle stretches may still be cut */
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

/* When the host asked for it, as the states see it. */
static inline int64_t ts_command_issued(const struct ts_work_command *command)
{
	return command->issued == TS_ABSENT || command->issued > command->start ? command->start
										: command->issued;
}

/* ---- the parts, in order of use; those that can fail fail for lack of memory only ---- */

int ts_state_waits_init(struct ts_state_waits *waits, const struct ts_work *work);
void ts_state_waits_release(struct ts_state_waits *waits);

/*
 * Instants of the commands of one stream; true: they were issued in the order in which they began.
 */
int ts_states_derive_stream(struct ts_states_build *build, const struct ts_work_stream *stream,
			    bool *ret_in_order);
/* Once all streams of a device are derived. */
int ts_states_classify_copies(struct ts_states_build *build);
/* Samples are sorted. */
void ts_states_estimate_latency(struct ts_latency_samples *samples, int64_t tolerance_ns,
				struct ts_state_latency *ret_latency);

/* The start of the last peer that came, from start to end; start: it waited for none. */
int64_t ts_states_joined(const struct ts_graph *graph, uint32_t command);
void ts_states_phases(const struct ts_states *states, const struct ts_state_latency *latency,
		      uint32_t command, struct ts_command_phases *ret_phases);

int ts_states_build_stream(struct ts_states_build *build, uint32_t stream, bool in_order);
int ts_states_build_device(struct ts_states_build *build, const struct ts_state_lane *streams,
			   uint32_t stream_count);

/*
 * Adds to the lane at hand what is not empty and lies in the window; touching equal ones become
 * one.
 */
int ts_states_emit(struct ts_states_build *build, const struct ts_state_interval *interval);

#endif
