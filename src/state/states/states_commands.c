/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instants of commands: when each was handed over, when it was ready, and what it waited for last
 * (docs/state.md, "A command"). One pass over the commands of a stream and their incoming edges.
 */
#include "base/memory.h"
#include "state/states/states_internal.h"

/* Calls of a stream's commands are scattered in memory: prefetch this many commands ahead. */
#define PREFETCH 12

/* The dependency that ended last, so far. */
struct latest {
	int64_t end;
	uint32_t blocker;
	uint8_t reason;
};

static int64_t handed_of(const struct ts_work *work, const struct ts_work_command *command)
{
	int64_t issued = ts_command_issued(command);

	if (command->call == TS_WORK_NONE)
		return issued;
	return ts_time_clamp(work->calls[command->call].end, issued, command->start);
}

static void note_violation(struct ts_states *states, int64_t by_ns, int64_t tolerance_ns)
{
	if (by_ns <= tolerance_ns) {
		states->within_uncertainty++;
		return;
	}
	states->violations++;
	states->worst_violation_ns = TS_MAX(states->worst_violation_ns, by_ns);
}

static void take(struct latest *latest, int64_t end, uint32_t blocker, uint8_t reason)
{
	if (latest->blocker != TS_WORK_NONE && end <= latest->end)
		return;
	*latest = (struct latest){ .end = end, .blocker = blocker, .reason = reason };
}

/* ---- stream order ---- */

static void take_ahead(const struct ts_work *work, uint32_t ahead, int64_t end,
		       struct latest *latest)
{
	take(latest, end, ahead,
	     work->commands[ahead].kind == TS_GPU_OP_HOST ? TS_REASON_HOST : TS_REASON_QUEUE);
}

/*
 * May two commands of a stream run concurrently? Nodes of one graph may, and so may commands of one
 * call.
 */
static bool may_overlap(const struct ts_work_command *a, const struct ts_work_command *b)
{
	return a->class == TS_CLASS_OTHER || (a->call == b->call && b->call != TS_WORK_NONE);
}

/*
 * `last` is the earlier command of the stream that ended last. If it was still running it blocked
 * nothing, but the direct predecessor may have.
 */
static void look_ahead(struct ts_states_build *build, uint32_t c, uint32_t last,
		       struct latest *latest)
{
	const struct ts_work_command *commands = build->work->commands;
	int64_t start = commands[c].start, end = ts_command_end(&commands[last]);
	int64_t by_ns = ts_ns_sub(end, start);

	if (by_ns > 0 && !may_overlap(&commands[last], &commands[c]))
		note_violation(build->states, by_ns, build->tolerance_ns);
	if (by_ns <= build->tolerance_ns)
		take_ahead(build->work, last, TS_MIN(end, start), latest);
	else if (ts_command_end(&commands[c - 1]) <= start)
		take_ahead(build->work, c - 1, ts_command_end(&commands[c - 1]), latest);
}

/* ---- the graph ---- */

static uint8_t reason_of(const struct ts_work *work, uint32_t from, uint32_t to)
{
	if (work->commands[from].kind == TS_GPU_OP_HOST)
		return TS_REASON_HOST;
	return work->commands[from].stream == work->commands[to].stream ? TS_REASON_QUEUE
									: TS_REASON_EVENT;
}

static void follow_edges(struct ts_states_build *build, uint32_t c, struct latest *latest)
{
	const struct ts_graph *graph = build->graph;
	const struct ts_work *work = build->work;
	int64_t start = work->commands[c].start;

	for (uint32_t e = graph->first_in[c]; e < graph->first_in[c + 1]; e++) {
		const struct ts_edge *edge = &graph->edges[e];
		int64_t end;

		if (edge->from >= work->command_count || edge->flags & TS_EDGE_TO_END)
			continue;
		end = edge->flags & TS_EDGE_FROM_START
			      ? work->commands[edge->from].start
			      : ts_command_end(&work->commands[edge->from]);
		take(latest, TS_MIN(end, start), edge->from, reason_of(work, edge->from, c));
	}
}

/* Clock uncertainty between two ranks; TS_ABSENT: unknown. */
static int64_t ranks_apart(const struct ts_work *work, uint32_t a, uint32_t b)
{
	int64_t first = work->ranks[a].uncertainty_ns, second = work->ranks[b].uncertainty_ns;

	return first == TS_ABSENT || second == TS_ABSENT ? TS_ABSENT : ts_ns_add(first, second);
}

/* A collective cannot end before the last peer has started. */
static void check_peers(struct ts_states_build *build, uint32_t c)
{
	const struct ts_graph *graph = build->graph;
	const struct ts_work_command *commands = build->work->commands;
	int64_t late_ns = 0, apart_ns = 0;

	for (uint32_t e = graph->first_in[c]; e < graph->first_in[c + 1]; e++) {
		uint32_t from = graph->edges[e].from;
		int64_t by_ns, pair_ns;

		if (graph->edges[e].kind != TS_EDGE_COLLECTIVE ||
		    from >= build->work->command_count)
			continue;
		by_ns = ts_ns_sub(commands[from].start, ts_command_end(&commands[c]));
		pair_ns = ranks_apart(build->work, commands[from].rank, commands[c].rank);
		if (pair_ns == TS_ABSENT || by_ns <= late_ns)
			continue;
		late_ns = by_ns;
		apart_ns = pair_ns;
	}
	if (late_ns > 0)
		note_violation(build->states, late_ns, apart_ns);
}

int64_t ts_states_joined(const struct ts_graph *graph, uint32_t c)
{
	const struct ts_work_command *commands = graph->work->commands;
	int64_t joined = commands[c].start;

	for (uint32_t e = graph->first_in[c]; e < graph->first_in[c + 1]; e++) {
		uint32_t from = graph->edges[e].from;

		if (graph->edges[e].kind == TS_EDGE_COLLECTIVE && from < graph->work->command_count)
			joined = TS_MAX(joined, commands[from].start);
	}
	return TS_MIN(joined, ts_command_end(&commands[c]));
}

/* ---- all of a command ---- */

static void sample(struct ts_latency_samples *samples, const struct ts_work_command *command,
		   const struct ts_command_state *state, const struct latest *latest)
{
	int64_t issued = ts_command_issued(command);

	if (command->kind == TS_GPU_OP_COPY || command->call == TS_WORK_NONE ||
	    command->flags & TS_COMMAND_EARLY)
		return;
	if (state->reason == TS_REASON_QUEUE && samples->next_count < TS_LATENCY_SAMPLES)
		samples->next[samples->next_count++] = ts_ns_sub(command->start, state->ready);
	else if ((latest->blocker == TS_WORK_NONE || latest->end <= issued) &&
		 samples->launch_count < TS_LATENCY_SAMPLES)
		samples->launch[samples->launch_count++] = ts_ns_sub(command->start, issued);
}

/* last: the earlier command of the stream that ended last; the command itself if there is none. */
static void derive(struct ts_states_build *build, uint32_t c, uint32_t last, struct latest *latest)
{
	const struct ts_work_command *command = &build->work->commands[c];
	struct ts_command_state *state = &build->states->commands[c];

	*state = (struct ts_command_state){
		.handed = handed_of(build->work, command),
		.blocker = TS_WORK_NONE,
	};
	state->ready = state->handed;
	*latest = (struct latest){ .blocker = TS_WORK_NONE };
	if (last != c && !(build->work->streams[command->stream].flags & TS_STREAM_OUT_OF_ORDER))
		look_ahead(build, c, last, latest);
	if (build->graph) {
		follow_edges(build, c, latest);
		if (command->class == TS_CLASS_COMMUNICATION)
			check_peers(build, c);
	}
	if (latest->blocker != TS_WORK_NONE && latest->end > state->handed) {
		state->ready = latest->end;
		state->blocker = latest->blocker;
		state->reason = latest->reason;
	}
}

static int note_copy(struct ts_states_build *build, uint32_t c)
{
	const struct ts_work_command *command = &build->work->commands[c];

	if (command->copy_kind != TS_COPY_HOST_TO_DEVICE &&
	    command->copy_kind != TS_COPY_DEVICE_TO_HOST &&
	    command->copy_kind != TS_COPY_PEER_TO_PEER)
		return 0;
	if (ts_grow_array((void **)&build->copies, &build->copy_capacity, build->copy_count + 1,
			  sizeof(*build->copies)))
		return TS_ENOMEM;
	build->copies[build->copy_count++] = c;
	return 0;
}

int ts_states_derive_stream(struct ts_states_build *build, const struct ts_work_stream *stream,
			    bool *ret_in_order)
{
	const struct ts_work_command *commands = build->work->commands;
	uint32_t last = stream->first_command, end = last + stream->command_count;
	int64_t issued = INT64_MIN;
	struct latest latest;

	*ret_in_order = true;
	for (uint32_t c = stream->first_command; c < end; c++) {
		if (c + PREFETCH < end && commands[c + PREFETCH].call != TS_WORK_NONE)
			__builtin_prefetch(&build->work->calls[commands[c + PREFETCH].call].end);
		derive(build, c, last, &latest);
		if (ts_command_end(&commands[c]) >= ts_command_end(&commands[last]))
			last = c;
		if (build->samples->skip-- == 0) {
			sample(build->samples, &commands[c], &build->states->commands[c], &latest);
			build->samples->skip = build->samples->stride - 1;
		}
		if (ts_command_issued(&commands[c]) < issued)
			*ret_in_order = false;
		issued = TS_MAX(issued, ts_command_issued(&commands[c]));
		if (commands[c].kind == TS_GPU_OP_COPY && note_copy(build, c))
			return TS_ENOMEM;
	}
	return 0;
}
