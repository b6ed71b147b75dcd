/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over lanes, their intervals and commands; describes edges. */
#include "state/states/state_walk.h"

#include "base/ns.h"

/* ---- filter ---- */

static bool is_among(const int64_t *numbers, size_t count, int64_t number)
{
	for (size_t i = 0; i < count; i++) {
		if (numbers[i] == number)
			return true;
	}
	return count == 0;
}

bool ts_state_filter_device(const struct ts_state_filter *filter, const struct ts_states *states,
			    uint32_t device)
{
	return is_among(filter->devices, filter->device_count,
			states->work->devices[device].number);
}

bool ts_state_filter_lane(const struct ts_state_filter *filter, const struct ts_states *states,
			  const struct ts_state_lane *lane)
{
	if (!ts_state_filter_device(filter, states, lane->device))
		return false;
	if (lane->stream == TS_WORK_NONE)
		return filter->stream_count == 0;
	return is_among(filter->streams, filter->stream_count,
			states->work->streams[lane->stream].number);
}

bool ts_state_filter_cut(const struct ts_state_filter *filter, struct ts_state_interval *interval)
{
	interval->start = TS_MAX(interval->start, filter->from);
	interval->end = TS_MIN(interval->end, filter->to);
	return interval->start < interval->end;
}

/* ---- states ---- */

#define PHASES 5

static struct ts_state_interval phase_of(const struct ts_states *states, uint32_t command,
					 size_t phase)
{
	struct ts_command_phases at;

	ts_command_phases(states, command, &at);
	switch (phase) {
	case 0:
		return (struct ts_state_interval){ at.issued, at.handed_on, command,
						   TS_STATE_DISPATCH_PENDING, TS_REASON_NONE };
	case 1:
		return (struct ts_state_interval){ at.handed_on, at.released, command,
						   TS_STATE_WAIT,
						   states->commands[command].reason };
	case 2:
		return (struct ts_state_interval){ at.released, at.start, command, TS_STATE_WAIT,
						   TS_REASON_UNKNOWN };
	case 3:
		return (struct ts_state_interval){ at.start, at.joined, command, TS_STATE_RUNNING,
						   TS_REASON_PEERS };
	default:
		return (struct ts_state_interval){ at.joined, at.end, command, TS_STATE_RUNNING,
						   TS_REASON_NONE };
	}
}

static size_t count_items(const struct ts_state_walk *walk, const struct ts_state_lane *lane)
{
	if (walk->source == TS_STATE_LANES)
		return lane->count;
	if (lane->stream == TS_WORK_NONE)
		return 0;
	return (size_t)walk->states->work->streams[lane->stream].command_count * PHASES;
}

static struct ts_state_interval item_of(const struct ts_state_walk *walk,
					const struct ts_state_lane *lane)
{
	const struct ts_states *states = walk->states;
	uint32_t first;

	if (walk->source == TS_STATE_LANES)
		return states->intervals[lane->first + walk->item];
	first = states->work->streams[lane->stream].first_command;
	return phase_of(states, first + (uint32_t)(walk->item / PHASES), walk->item % PHASES);
}

static void describe(const struct ts_states *states, const struct ts_state_lane *lane,
		     const struct ts_state_interval *interval, struct ts_state_span *span)
{
	const struct ts_work *work = states->work;
	const struct ts_work_device *device = &work->devices[lane->device];

	*span = (struct ts_state_span){
		.start = interval->start,
		.duration = ts_ns_between(interval->start, interval->end),
		.rank = work->ranks[device->rank].rank,
		.device = device->number,
		.stream = TS_ABSENT,
		.correlation = TS_ABSENT,
		.gpu_op = TS_ABSENT,
		.trace = work->ranks[device->rank].trace,
		.state = (enum ts_execution_state)interval->state,
	};
	if (interval->reason != TS_REASON_NONE)
		span->reason = ts_state_reason_name((enum ts_state_reason)interval->reason);
	if (lane->stream != TS_WORK_NONE)
		span->stream = work->streams[lane->stream].number;
	if (interval->command != TS_WORK_NONE) {
		const struct ts_work_command *command = &work->commands[interval->command];

		span->correlation = command->correlation;
		span->gpu_op = (int64_t)command->row;
		span->name = ts_work_text(work, command->name);
	}
}

bool ts_state_walk_next(struct ts_state_walk *walk, struct ts_state_span *ret_span)
{
	const struct ts_states *states = walk->states;

	for (; walk->lane < states->lane_count; walk->lane++, walk->item = 0) {
		const struct ts_state_lane *lane = &states->lanes[walk->lane];
		size_t count = count_items(walk, lane);

		if (!ts_state_filter_lane(walk->filter, states, lane))
			continue;
		while (walk->item < count) {
			struct ts_state_interval interval = item_of(walk, lane);

			walk->item++;
			if (interval.start >= interval.end || interval.start >= walk->filter->to ||
			    interval.end <= walk->filter->from)
				continue;
			describe(states, lane, &interval, ret_span);
			return true;
		}
	}
	return false;
}

/* ---- edges ---- */

/* A host stretch refers to its enclosing slice, if any. */
static struct ts_dependency_point point_of(const struct ts_graph *graph, uint32_t node)
{
	const struct ts_work *work = graph->work;
	struct ts_dependency_point point = {
		.table = TS_TABLE_GPU_OP,
		.row = TS_ABSENT,
		.trace = work->ranks[ts_graph_node_rank(graph, node)].trace,
		.name = ts_graph_node_name(graph, node),
	};

	if (node < work->command_count) {
		point.row = (int64_t)work->commands[node].row;
	} else if (node - work->command_count < work->call_count) {
		point.table = TS_TABLE_API_CALL;
		point.row = (int64_t)work->calls[node - work->command_count].row;
	} else {
		uint32_t stretch = node - work->command_count - work->call_count;
		uint32_t slice = graph->stretches[stretch].slice;

		point.table = slice == TS_WORK_NONE ? TS_ABSENT : TS_TABLE_SLICE;
		if (slice != TS_WORK_NONE)
			point.row = (int64_t)work->slices[slice].row;
	}
	return point;
}

void ts_edge_describe(const struct ts_graph *graph, const struct ts_edge *edge,
		      struct ts_dependency *ret_dependency)
{
	*ret_dependency = (struct ts_dependency){
		.kind = ts_edge_kind_name((enum ts_edge_kind)edge->kind),
		.is_inferred = edge->flags & TS_EDGE_INFERRED,
		.from = point_of(graph, edge->from),
		.to = point_of(graph, edge->to),
	};
	ret_dependency->from.time = ts_edge_from_time(graph, edge);
	ret_dependency->from.is_end = !(edge->flags & TS_EDGE_FROM_START);
	ret_dependency->to.time = ts_edge_to_time(graph, edge);
	ret_dependency->to.is_end = edge->flags & TS_EDGE_TO_END;
}

bool ts_state_filter_edge(const struct ts_state_filter *filter,
			  const struct ts_dependency *dependency)
{
	return dependency->to.time >= filter->from && dependency->from.time < filter->to;
}
