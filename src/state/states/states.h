/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State machine of docs/state.md: the state of each command, stream and device at every instant.
 * Commands are classified by their own times and their dependencies (graph.h); streams and devices
 * by their commands.
 */
#ifndef TS_STATE_STATES_STATES_H
#define TS_STATE_STATES_STATES_H

#include "state/graph/graph.h"
#include "state/work/work.h"

/*
 * Why a command waited, or why a lane is idle. For a device, the reason listed first wins among
 * equal states.
 */
enum ts_state_reason {
	TS_REASON_NONE,
	TS_REASON_QUEUE,       /* the previous command of its stream */
	TS_REASON_EVENT,       /* an event of another stream */
	TS_REASON_COPY_ENGINE, /* another copy in the same direction */
	TS_REASON_HOST,        /* the host: a callback in the queue */
	TS_REASON_PEERS, /* running collective: other ranks had not arrived yet; the only reason for
			    running */
	TS_REASON_UNKNOWN,
	TS_REASON_HOST_BOUND,     /* idle: the host had not issued more work */
	TS_REASON_DEPENDENCY,     /* idle: the host itself waited for a device */
	TS_REASON_LAUNCH_MISSING, /* idle, as far as known: the call of the next command is not in
				     the trace */
	TS_REASON_NOTHING,        /* idle: before the first command or after the last */
	TS_REASON_COUNT
};
const char *ts_state_reason_name(enum ts_state_reason reason); /* "copy_engine"; NONE: "" */
const char *ts_state_name(enum ts_execution_state state);      /* "dispatch_pending" */

/* Instants of a command that are not in its row. */
struct ts_command_state {
	int64_t handed; /* in the queue: its call returned, or it started; between issued and start
			 */
	int64_t ready;  /* all known dependencies were done; between handed and start */
	uint32_t blocker; /* the command it waited for last; TS_WORK_NONE: none */
	uint8_t reason;   /* enum ts_state_reason of the wait from handed to ready; NONE: no wait */
};

/*
 * Phases of a command; each instant is no earlier than the one before:
 *	[issued, handed_on)    dispatch pending
 *	[handed_on, released)  wait, with command_state.reason
 *	[released, start)      wait, unknown
 *	[start, joined)        running, peers
 *	[joined, end)          running
 */
struct ts_command_phases {
	int64_t issued, handed_on, released, start, joined, end;
};

/* Typical latencies of a device, estimated from the trace. */
struct ts_state_latency {
	int64_t launch_ns; /* from the call of an unblocked command to its start */
	int64_t next_ns;   /* from the end of a command's dependency to its start */
	uint32_t launch_samples, next_samples; /* if too few, the value is a default */
};

/* An interval with one state. The intervals of a lane partition its window without gaps. */
struct ts_state_interval {
	int64_t start, end;
	uint32_t command; /* the running, waiting or pending command; for idle the one that ends it;
			     TS_WORK_NONE */
	uint8_t state;    /* enum ts_execution_state */
	uint8_t reason;   /* enum ts_state_reason */
};

struct ts_state_lane {
	uint32_t device, stream; /* stream TS_WORK_NONE: the entire device */
	size_t first, count;     /* of intervals */
	int64_t total_ns[TS_STATE_FINISHED + 1];
	int64_t reason_ns[TS_REASON_COUNT]; /* for wait and idle; peers: for running */
};

struct ts_states {
	const struct ts_work *work;
	const struct ts_graph *graph;       /* may be NULL */
	struct ts_command_state *commands;  /* one a command */
	struct ts_state_latency *latencies; /* one a device */
	struct ts_state_interval *intervals;
	struct ts_state_lane *lanes; /* each device, followed by its streams */
	uint32_t lane_count;
	size_t interval_count, interval_capacity;
	/*
	 * Commands that started before their predecessor in the stream ended, or collectives that
	 * ended before a peer started, beyond the clock uncertainty; and the largest violation.
	 */
	uint64_t violations;
	int64_t worst_violation_ns;
	uint64_t within_uncertainty; /* the same, within the uncertainty */
	uint64_t coarse_gaps; /* idle intervals with too many host waits to be split at each */
};

/*
 * `graph` may be NULL: then only stream order is known; otherwise it must outlive the states. Lanes
 * of a rank share its window [from, to].
 */
int ts_states_new(struct ts_states **ret_states, const struct ts_work *work,
		  const struct ts_graph *graph, struct ts_error *err);
void ts_states_free(struct ts_states *states);
TS_DEFINE_AUTO(ts_states, ts_states_free);

void ts_command_phases(const struct ts_states *states, uint32_t command,
		       struct ts_command_phases *ret_phases);

#endif
