/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of the derived tables. `state` has the intervals of each device (no stream), of each stream
 * (no correlation) and of each command; `edge` all dependencies. Ids are those of the trace that
 * the device, or the later row of an edge, is in.
 */
#include "arrow/arrow_source.h"
#include "base/ns.h"
#include "state/graph/graph.h"
#include "state/states/states.h"

struct derived {
	struct ts_arrow_source *source;
	struct ts_work *work;
	struct ts_graph *graph;
	struct ts_states *states;
};

static bool overlaps(const struct derived *derived, int64_t start, int64_t end)
{
	return start <= derived->source->to && end >= derived->source->from;
}

/* ---- states ---- */

static int add_state(struct derived *derived, uint32_t device, struct ts_state_row *row,
		     int64_t start, int64_t end)
{
	const struct ts_work_device *of = &derived->work->devices[device];
	int64_t *copy;

	if (start >= end || !overlaps(derived, start, end))
		return TS_OK;
	row->start = start;
	row->duration = ts_ns_between(start, end);
	row->device = of->id;
	copy = ts_arrow_rows_add(derived->source, derived->work->ranks[of->rank].trace);
	if (!copy)
		return TS_ENOMEM;
	memcpy(copy, row, sizeof(*row));
	return TS_OK;
}

static int add_lane(struct derived *derived, const struct ts_state_lane *lane)
{
	for (size_t i = lane->first; i < lane->first + lane->count; i++) {
		const struct ts_state_interval *interval = &derived->states->intervals[i];
		struct ts_state_row row = ts_state_none;

		row.state = interval->state;
		row.reason = interval->reason;
		if (lane->stream != TS_WORK_NONE)
			row.stream = derived->work->streams[lane->stream].id;
		if (add_state(derived, lane->device, &row, interval->start, interval->end))
			return TS_ENOMEM;
	}
	return TS_OK;
}

static int add_phase(struct derived *derived, uint32_t command, enum ts_execution_state state,
		     enum ts_state_reason reason, int64_t start, int64_t end)
{
	const struct ts_work_command *of = &derived->work->commands[command];
	const struct ts_work_stream *stream = &derived->work->streams[of->stream];
	struct ts_state_row row = ts_state_none;

	row.stream = stream->id;
	row.correlation = of->correlation;
	row.state = state;
	row.reason = reason;
	return add_state(derived, stream->device, &row, start, end);
}

static int add_command(struct derived *derived, uint32_t command)
{
	const struct ts_command_state *state = &derived->states->commands[command];
	struct ts_command_phases phases;

	ts_command_phases(derived->states, command, &phases);
	if (add_phase(derived, command, TS_STATE_DISPATCH_PENDING, TS_REASON_NONE, phases.issued,
		      phases.handed_on) ||
	    add_phase(derived, command, TS_STATE_WAIT, (enum ts_state_reason)state->reason,
		      phases.handed_on, phases.released) ||
	    add_phase(derived, command, TS_STATE_WAIT, TS_REASON_UNKNOWN, phases.released,
		      phases.start) ||
	    add_phase(derived, command, TS_STATE_RUNNING, TS_REASON_PEERS, phases.start,
		      phases.joined))
		return TS_ENOMEM;
	return add_phase(derived, command, TS_STATE_RUNNING, TS_REASON_NONE, phases.joined,
			 phases.end);
}

static int add_states(struct derived *derived, struct ts_error *err)
{
	int result = ts_states_new(&derived->states, derived->work, derived->graph, err);

	if (result)
		return result;
	for (uint32_t i = 0; !result && i < derived->states->lane_count; i++)
		result = add_lane(derived, &derived->states->lanes[i]);
	for (uint32_t i = 0; !result && i < derived->work->command_count; i++)
		result = add_command(derived, i);
	return result ? ts_error_set(err, result, "no memory") : TS_OK;
}

/* ---- edges ---- */

/* Table and row of a node; a host stretch is its enclosing slice. */
static void locate(const struct derived *derived, uint32_t node, int64_t *ret_table,
		   int64_t *ret_row)
{
	const struct ts_work *work = derived->work;
	uint32_t call = node - work->command_count, stretch = call - work->call_count, slice;

	if (node < work->command_count) {
		*ret_table = TS_TABLE_GPU_OP;
		*ret_row = (int64_t)work->commands[node].row;
	} else if (call < work->call_count) {
		*ret_table = TS_TABLE_API_CALL;
		*ret_row = (int64_t)work->calls[call].row;
	} else {
		slice = derived->graph->stretches[stretch].slice;
		*ret_table = slice == TS_WORK_NONE ? TS_ABSENT : TS_TABLE_SLICE;
		*ret_row = slice == TS_WORK_NONE ? TS_ABSENT : (int64_t)work->slices[slice].row;
	}
}

static int add_edges(struct derived *derived, struct ts_error *err)
{
	const struct ts_graph *graph = derived->graph;

	for (size_t i = 0; i < graph->edge_count; i++) {
		const struct ts_edge *edge = &graph->edges[i];
		uint32_t rank = ts_graph_node_rank(graph, edge->to);
		struct ts_edge_row row = ts_edge_none;
		int64_t *copy;

		if (!overlaps(derived, ts_edge_from_time(graph, edge),
			      ts_edge_to_time(graph, edge)))
			continue;
		locate(derived, edge->from, &row.from_table, &row.from_row);
		locate(derived, edge->to, &row.to_table, &row.to_row);
		row.kind = edge->kind;
		copy = ts_arrow_rows_add(derived->source, derived->work->ranks[rank].trace);
		if (!copy)
			return ts_error_set(err, TS_ENOMEM, "no memory");
		memcpy(copy, &row, sizeof(row));
	}
	return TS_OK;
}

/* ---- both ---- */

static int load(struct derived *derived, unsigned int load_flags, bool with_host,
		struct ts_error *err)
{
	const struct ts_work_options options = { .load_flags = load_flags,
						 .all = true,
						 .from_step = TS_ABSENT,
						 .to_step = TS_ABSENT,
						 .from = TS_ABSENT,
						 .to = TS_ABSENT };
	int result = ts_work_new(&derived->work, &options, err);

	for (size_t i = 0; !result && i < derived->source->reader_count; i++)
		result = ts_work_add(derived->work, derived->source->readers[i], err);
	if (!result)
		result = ts_work_finish(derived->work, err);
	if (!result)
		result = ts_graph_new(&derived->graph, derived->work, with_host ? TS_GRAPH_HOST : 0,
				      err);
	return result;
}

int ts_arrow_derive(struct ts_arrow_source *source, struct ts_error *err)
{
	struct derived derived = { .source = source };
	bool edges = source->fields.table->id == TS_TABLE_EDGE;
	int result =
		load(&derived,
		     edges ? TS_WORK_SLICES | TS_WORK_FLOWS | TS_WORK_DETAILS : TS_WORK_DETAILS,
		     edges, err);

	if (!result)
		result = edges ? add_edges(&derived, err) : add_states(&derived, err);
	ts_states_free(derived.states);
	ts_graph_free(derived.graph);
	ts_work_free(derived.work);
	return result;
}
