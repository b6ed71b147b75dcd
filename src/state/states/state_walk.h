/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of the derived tables `state` and `edge`, one after the other: memory does not grow with
 * their number. Behind <tracesmith/state.h> and `tracesmith state`.
 */
#ifndef TS_STATE_STATES_STATE_WALK_H
#define TS_STATE_STATES_STATE_WALK_H

#include <tracesmith/state.h>

#include "state/states/states.h"

/* Which lanes, and which time. */
struct ts_state_filter {
	int64_t from, to;                  /* only [from, to) */
	const int64_t *devices, *streams;  /* only these numbers */
	size_t device_count, stream_count; /* 0: all */
};

bool ts_state_filter_device(const struct ts_state_filter *filter, const struct ts_states *states,
			    uint32_t device);
/* A stream filter excludes device lanes. */
bool ts_state_filter_lane(const struct ts_state_filter *filter, const struct ts_states *states,
			  const struct ts_state_lane *lane);
/* Clips an interval to the selected range; false: nothing left. */
bool ts_state_filter_cut(const struct ts_state_filter *filter, struct ts_state_interval *interval);

struct ts_state_walk {
	const struct ts_states *states;
	const struct ts_state_filter *filter;
	enum ts_state_source source;
	/* The next row: zero at first. */
	uint32_t lane;
	size_t item; /* of the lane: an interval, or a phase of a command */
};

/* Rows overlap the filter's time, and are not clipped. False: there are no more. */
bool ts_state_walk_next(struct ts_state_walk *walk, struct ts_state_span *ret_span);

/* A dependency as a row. */
void ts_edge_describe(const struct ts_graph *graph, const struct ts_edge *edge,
		      struct ts_dependency *ret_dependency);

/* Does it touch the filter's time? */
bool ts_state_filter_edge(const struct ts_state_filter *filter,
			  const struct ts_dependency *dependency);

#endif
