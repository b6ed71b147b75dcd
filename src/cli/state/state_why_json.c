/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `state --why` as JSON: one object, all edges, exact times (start_ns in trace time, durations in
 * us).
 */
#include <inttypes.h>
#include <string.h>

#include "cli/common/cli_output.h"
#include "cli/state/state_why.h"

static void append_us(struct ts_text *out, const char *key, int64_t ns)
{
	ts_text_printf(out, ", \"%s\": ", key);
	ts_text_append_us(out, ns);
}

static void append_string(struct ts_text *out, const char *key, const char *value)
{
	ts_text_printf(out, "\"%s\": ", key);
	ts_text_append_json(out, value, strlen(value));
}

static void append_number(struct ts_text *out, const char *key, int64_t value)
{
	if (value != TS_ABSENT)
		ts_text_printf(out, ", \"%s\": %" PRId64, key, value);
}

static void append_command(struct ts_text *out, const struct ts_work *work, uint32_t index)
{
	const struct ts_work_command *command = &work->commands[index];

	ts_text_printf(out, ", \"table\": \"gpu_op\", \"row\": %" PRIu64, command->row);
	append_number(out, "device", work->devices[work->streams[command->stream].device].number);
	append_number(out, "stream", work->streams[command->stream].number);
	append_number(out, "correlation", command->correlation);
}

static void append_host(struct ts_text *out, const struct ts_why *why, uint32_t node)
{
	const struct ts_work *work = why->work;
	uint32_t index = node - work->command_count;
	uint32_t thread;

	if (index < work->call_count) {
		ts_text_printf(out, ", \"table\": \"api_call\", \"row\": %" PRIu64,
			       work->calls[index].row);
		append_number(out, "correlation", work->calls[index].correlation);
		thread = work->calls[index].thread;
	} else {
		const struct ts_graph_stretch *stretch =
			&why->graph->stretches[index - work->call_count];

		thread = stretch->thread;
		if (stretch->slice != TS_WORK_NONE)
			ts_text_printf(out, ", \"table\": \"slice\", \"row\": %" PRIu64,
				       work->slices[stretch->slice].row);
	}
	append_number(out, "pid", work->threads[thread].pid);
	append_number(out, "tid", work->threads[thread].tid);
}

/* The members of any event, without braces. */
static void append_node(struct ts_text *out, const struct ts_why *why, uint32_t node)
{
	int64_t start = ts_graph_node_start(why->graph, node);

	append_string(out, "name", ts_graph_node_name(why->graph, node));
	append_number(out, "rank", why->work->ranks[ts_graph_node_rank(why->graph, node)].rank);
	if (node < why->work->command_count)
		append_command(out, why->work, node);
	else
		append_host(out, why, node);
	append_number(out, "start_ns", start);
	append_us(out, "duration_us", ts_graph_node_end(why->graph, node) - start);
}

static void append_step(struct ts_text *out, const struct ts_why *why,
			const struct ts_why_step *step, uint32_t other, bool decisive)
{
	const struct ts_graph *graph = why->graph;
	const struct ts_edge *edge = &graph->edges[step->last];

	ts_text_append_char(out, '{');
	append_string(out, "kind", ts_edge_kind_name((enum ts_edge_kind)edge->kind));
	if (step->count > 1)
		append_number(out, "steps", step->count);
	ts_text_printf(
		out, ", \"from\": \"%s\", \"to\": \"%s\", \"inferred\": %s, \"decisive\": %s",
		edge->flags & TS_EDGE_FROM_START ? "start" : "end",
		edge->flags & TS_EDGE_TO_END ? "end" : "start",
		edge->flags & TS_EDGE_INFERRED ? "true" : "false", decisive ? "true" : "false");
	append_us(out, "slack_us",
		  ts_edge_to_time(graph, &graph->edges[step->first]) -
			  ts_edge_from_time(graph, edge));
	ts_text_append_str(out, ", \"event\": {");
	append_node(out, why, other);
	ts_text_append_str(out, "}}");
}

static void append_edge(struct ts_text *out, const struct ts_why *why, size_t edge, uint32_t other,
			bool decisive)
{
	const struct ts_why_step step = { edge, edge, 1 };

	append_step(out, why, &step, other, decisive);
}

static void append_life(struct ts_text *out, const struct ts_why *why)
{
	const struct ts_work_command *command = &why->work->commands[why->node];

	append_number(out, "issued_ns", command->issued);
	if (!why->states)
		return;
	append_number(out, "handed_ns", why->states->commands[why->node].handed);
	append_number(out, "ready_ns", why->states->commands[why->node].ready);
	ts_text_append_str(out, ", ");
	append_string(out, "reason",
		      ts_state_reason_name(
			      (enum ts_state_reason)why->states->commands[why->node].reason));
}

static void append_in(struct ts_text *out, const struct ts_why *why)
{
	const struct ts_graph *graph = why->graph;
	uint32_t first = graph->first_in[why->node];

	ts_text_append_str(out, ",\n \"waited_for\": [");
	for (uint32_t i = first; i < graph->first_in[why->node + 1]; i++) {
		ts_text_append_str(out, i > first ? ",\n  " : "\n  ");
		append_edge(out, why, i, graph->edges[i].from,
			    i == why->into_start || i == why->into_end);
	}
	ts_text_append_str(out, "],\n \"chain\": [");
	for (size_t i = 0; i < why->chain_count; i++) {
		ts_text_append_str(out, i ? ",\n  " : "\n  ");
		append_step(out, why, &why->chain[i], graph->edges[why->chain[i].last].from, true);
	}
}

static int append_out(struct ts_text *out, const struct ts_why *why, struct ts_error *err)
{
	TS_AUTO_FREE uint32_t *edges = NULL;
	uint32_t count = 0;

	edges = ts_why_out(why, &count);
	if (!edges)
		return ts_error_set(err, TS_ENOMEM, "out of memory for the waiting events");
	ts_text_append_str(out, "],\n \"waited_by\": [");
	for (uint32_t i = 0; i < count; i++) {
		const struct ts_edge *edge = &why->graph->edges[edges[i]];

		ts_text_append_str(out, i ? ",\n  " : "\n  ");
		append_edge(out, why, edges[i], edge->to,
			    ts_graph_decisive(why->graph, edge->to, edge->flags & TS_EDGE_TO_END) ==
				    edges[i]);
	}
	ts_text_append_str(out, "]}\n");
	return TS_OK;
}

int ts_why_show_json(const struct ts_why *why, struct ts_error *err)
{
	struct ts_text *out = ts_stdout();

	ts_text_append_str(out, "{\"event\": {");
	append_node(out, why, why->node);
	if (why->node < why->work->command_count)
		append_life(out, why);
	ts_text_printf(out, "},\n \"matches\": %" PRIu64, why->matches);
	append_in(out, why);
	return append_out(out, why, err);
}
