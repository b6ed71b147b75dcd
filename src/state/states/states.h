/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state machine of docs/state.md: where each command, stream and device stood at every instant.
 * Commands are judged by their own times and by what they depended on (graph.h); streams and
 * devices by their commands.
 */
#ifndef TS_STATE_STATES_STATES_H
#define TS_STATE_STATES_STATES_H

#include "state/graph/graph.h"
#include "state/work/work.h"

/*
 * Why a command waited, or why a lane is idle. Of two of one state the first one here counts for a
 * device.
 */
enum ts_state_reason {
	TS_REASON_NONE,
	TS_REASON_QUEUE,       /* the command ahead of it in its stream */
	TS_REASON_EVENT,       /* an event of another stream */
	TS_REASON_COPY_ENGINE, /* another copy of the same direction */
	TS_REASON_HOST,        /* the host: a callback in the queue */
	TS_REASON_PEERS, /* a collective that runs: other ranks had not come yet; the only reason of
			    running */
	TS_REASON_UNKNOWN,
	TS_REASON_HOST_BOUND,     /* idle: the host had not issued more work */
	TS_REASON_DEPENDENCY,     /* idle: the host itself waited for a device */
	TS_REASON_LAUNCH_MISSING, /* idle, as far as is known: the call of what ran next is not in
				     the trace */
	TS_REASON_NOTHING,        /* idle: before the first command, after the last */
	TS_REASON_COUNT
};
const char *ts_state_reason_name(enum ts_state_reason reason); /* "copy_engine"; NONE: "" */
const char *ts_state_name(enum ts_execution_state state);      /* "dispatch_pending" */

/* The instants of a command that are not in its row. */
struct ts_command_state {
	int64_t handed; /* in the queue: its call had returned, or it began; from issued to start */
	int64_t ready; /* everything that it is known to depend on was done; from handed to start */
	uint32_t blocker; /* command that it waited for last; TS_WORK_NONE: none */
	uint8_t reason;   /* enum ts_state_reason of the wait from handed to ready; NONE: there was
			     none */
};

/*
 * A command's life, cut into its states; each instant is at least the one before:
 *	[issued, handed_on)    dispatch pending
 *	[handed_on, released)  wait, with command_state.reason
 *	[released, start)      wait, unknown
 *	[start, joined)        running, peers
 *	[joined, end)          running
 */
struct ts_command_phases {
	int64_t issued, handed_on, released, start, joined, end;
};

/* How long a device usually takes, as its trace tells. */
struct ts_state_latency {
	int64_t launch_ns; /* from the call of a command that nothing held to its start */
	int64_t next_ns;   /* from the end of what a command waited for to its start */
	uint32_t launch_samples, next_samples; /* too few: the value is a default */
};

/*
 * A stretch of one state. Intervals of a lane follow each other without gap: they partition its
 * window.
 */
struct ts_state_interval {
	int64_t start, end;
	uint32_t command; /* that runs, waits or is pending; for idle the one that ends it;
			     TS_WORK_NONE */
	uint8_t state;    /* enum ts_execution_state */
	uint8_t reason;   /* enum ts_state_reason */
};

struct ts_state_lane {
	uint32_t device, stream; /* stream TS_WORK_NONE: the whole device */
	size_t first, count;     /* of intervals */
	int64_t total_ns[TS_STATE_FINISHED + 1];
	int64_t reason_ns[TS_REASON_COUNT]; /* of wait and idle; peers: of running */
};

struct ts_states {
	const struct ts_work *work;
	const struct ts_graph *graph;       /* may be NULL */
	struct ts_command_state *commands;  /* one a command */
	struct ts_state_latency *latencies; /* one a device */
	struct ts_state_interval *intervals;
	struct ts_state_lane *lanes; /* each device, then its streams */
	uint32_t lane_count;
	size_t interval_count, interval_capacity;
	/*
	 * Commands that began before the one ahead of them in their stream was done, or collectives
	 * that ended before a peer began, beyond the clocks' uncertainty, and by how much at worst.
	 */
	uint64_t violations;
	int64_t worst_violation_ns;
	uint64_t within_uncertainty; /* the same, but explained by it */
	uint64_t coarse_gaps; /* idle stretches with too many waits of the host to be cut at each */
};

/*
 * `graph` may be NULL: then only stream order is known; else it must stay as long as the states.
 * Lanes of a rank share its window [from, to].
 */
int ts_states_new(struct ts_states **ret_states, const struct ts_work *work,
		  const struct ts_graph *graph, struct ts_error *err);
void ts_states_free(struct ts_states *states);
TS_DEFINE_AUTO(ts_states, ts_states_free);

void ts_command_phases(const struct ts_states *states, uint32_t command,
		       struct ts_command_phases *ret_phases);

#endif
