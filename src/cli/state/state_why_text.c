/* SPDX-License-Identifier: Apache-2.0 */
/* `state --why` as text: what an event waited for, and what waited for it. */
#include <inttypes.h>
#include <string.h>

#include "base/ns.h"
#include "cli/common/cli_output.h"
#include "cli/common/terminal.h"
#include "cli/common/text_table.h"
#include "cli/state/state_why.h"

/* Limit on lines for events that waited. */
#define MAX_LINES 20

static const char *duration(char *buffer, int64_t ns)
{
	return ts_format_duration_ns(buffer, TS_FORMAT_BYTES, ns);
}

/* Since the start of the trace, to the ns. */
static void append_time(struct ts_text *out, const struct ts_why *why, int64_t time)
{
	char text[TS_FORMAT_BYTES];

	ts_text_append_str(
		out, ts_format_instant_ns(text, sizeof(text), ts_ns_between(why->start, time)));
}

/* ---- what it is ---- */

static int64_t correlation_of(const struct ts_why *why)
{
	const struct ts_work *work = why->work;

	return why->node < work->command_count
		       ? work->commands[why->node].correlation
		       : work->calls[why->node - work->command_count].correlation;
}

static void show_event(const struct ts_why *why)
{
	struct ts_text *out = ts_stdout();
	bool command = why->node < why->work->command_count;

	ts_text_append_wrapped(out, ts_graph_node_name(why->graph, why->node), 0, 2,
			       ts_terminal_stdout_width());
	ts_text_append_str(out, "\n  ");
	ts_text_append_str(
		out, command ? ts_enum_name("gpu_op_kind", why->work->commands[why->node].kind)
			     : "call");
	ts_text_append_str(out, ", ");
	ts_why_append_where(out, why, why->node);
	ts_text_append_str(out, ", ");
	ts_why_append_row(out, why, why->node);
	if (correlation_of(why) != TS_ABSENT)
		ts_text_printf(out, ", correlation %" PRId64, correlation_of(why));
	ts_text_append_char(out, '\n');
	if (why->matches > 1)
		ts_text_printf(out, "  %" PRIu64 " events match; this one %s longest\n",
			       why->matches, command ? "waited" : "took");
}

/* ---- its life ---- */

/* A line "issued  1.5 ms  note"; following times are shown as differences. */
static void show_instant(const struct ts_why *why, const char *name, int64_t time, int64_t before,
			 const char *note)
{
	struct ts_text *out = ts_stdout();
	char buffer[TS_FORMAT_BYTES];
	size_t begin = out->length;

	ts_text_printf(out, "  %-8s", name);
	append_time(out, why, time);
	if (before != TS_ABSENT)
		ts_text_printf(out, "  %s later", duration(buffer, time - before));
	if (note[0]) {
		ts_text_append_str(out, "  ");
		ts_text_append_wrapped(out, note,
				       ts_text_shown_width(out->data + begin, out->length - begin),
				       strlen("  ready   "), ts_terminal_stdout_width());
	}
	ts_text_append_char(out, '\n');
}

static const char *issued_note(const struct ts_why *why, const struct ts_work_command *command,
			       struct ts_text *note)
{
	if (command->call == TS_WORK_NONE)
		return "call not in the trace";
	ts_text_printf(note, "by %s on ",
		       ts_work_text(why->work, why->work->calls[command->call].name));
	ts_why_append_where(note, why, ts_graph_call_node(why->graph, command->call));
	return ts_text_cstr(note);
}

static const char *ready_note(const struct ts_why *why, const struct ts_command_state *state,
			      struct ts_text *note)
{
	if (state->reason == TS_REASON_NONE)
		return "not blocked";
	ts_text_printf(note, "waited: %s",
		       ts_state_reason_name((enum ts_state_reason)state->reason));
	if (state->blocker != TS_WORK_NONE)
		ts_text_printf(note, ", %s",
			       ts_work_text(why->work, why->work->commands[state->blocker].name));
	return ts_text_cstr(note);
}

static void show_command_life(const struct ts_why *why)
{
	const struct ts_work_command *command = &why->work->commands[why->node];
	int64_t issued = command->issued;
	int64_t before = issued;
	TS_SCOPED(ts_text) note = { 0 };

	if (issued == TS_ABSENT)
		ts_text_append_str(ts_stdout(),
				   "  issued  unknown: its call is not in the trace\n");
	else
		show_instant(why, "issued", issued, TS_ABSENT, issued_note(why, command, &note));
	if (why->states && issued != TS_ABSENT) {
		const struct ts_command_state *state = &why->states->commands[why->node];

		show_instant(why, "handed", state->handed, issued, "");
		ts_text_clear(&note);
		show_instant(why, "ready", state->ready, state->handed,
			     ready_note(why, state, &note));
		before = state->ready;
	}
	show_instant(why, "start", command->start, before, "");
	if (command->flags & TS_COMMAND_UNTIMED)
		ts_text_append_str(ts_stdout(), "  end     not in the trace\n");
	else
		show_instant(why, "end", command->end, command->start, "");
}

static void show_life(const struct ts_why *why)
{
	if (why->node < why->work->command_count) {
		show_command_life(why);
		return;
	}
	show_instant(why, "start", ts_graph_node_start(why->graph, why->node), TS_ABSENT, "");
	show_instant(why, "end", ts_graph_node_end(why->graph, why->node),
		     ts_graph_node_start(why->graph, why->node), "");
}

/* ---- edges ---- */

static void start_table(struct ts_text_table *table, const char *slack)
{
	ts_text_table_init(table);
	ts_text_table_add_column(table, "", false);
	ts_text_table_add_column(table, "kind", false);
	ts_text_table_add_column(table, slack, true);
	ts_text_table_add_column(table, "start", true);
	ts_text_table_set_detail(table, 3);
	ts_text_table_add_column(table, "duration", true);
	ts_text_table_set_detail(table, 1);
	ts_text_table_add_column(table, "where", false);
	ts_text_table_add_column(table, "row", false);
	ts_text_table_set_detail(table, 2);
	ts_text_table_add_column(table, "event", false);
}

static void add_cell(struct ts_text_table *table, struct ts_text *cell)
{
	ts_text_table_cell(table, cell->data, cell->length);
	ts_text_clear(cell);
}

/* One or more edges, described by the event on the other side. */
static void add_step(const struct ts_why *why, struct ts_text_table *table,
		     const struct ts_why_step *step, uint32_t other, const char *mark)
{
	const struct ts_graph *graph = why->graph;
	const struct ts_edge *edge = &graph->edges[step->last];
	int64_t start = ts_graph_node_start(graph, other);
	TS_SCOPED(ts_text) cell = { 0 };
	char buffer[TS_FORMAT_BYTES];

	ts_text_table_str(table, mark);
	ts_text_append_str(&cell, ts_edge_kind_name((enum ts_edge_kind)edge->kind));
	if (step->count > 1)
		ts_text_printf(&cell, ", %u steps", step->count);
	ts_text_append_str(&cell, edge->flags & TS_EDGE_INFERRED ? ", inferred" : "");
	add_cell(table, &cell);
	ts_text_table_str(table,
			  duration(buffer, ts_edge_to_time(graph, &graph->edges[step->first]) -
						   ts_edge_from_time(graph, edge)));
	append_time(&cell, why, start);
	add_cell(table, &cell);
	ts_text_table_str(table, duration(buffer, ts_graph_node_end(graph, other) - start));
	ts_why_append_where(&cell, why, other);
	add_cell(table, &cell);
	ts_why_append_row(&cell, why, other);
	add_cell(table, &cell);
	ts_text_table_str(table, ts_graph_node_name(graph, other));
	ts_text_table_end_row(table);
}

static void add_edge(const struct ts_why *why, struct ts_text_table *table, size_t edge,
		     uint32_t other, const char *mark)
{
	const struct ts_why_step step = { edge, edge, 1 };

	add_step(why, table, &step, other, mark);
}

static int finish_table(struct ts_text_table *table, struct ts_error *err)
{
	int rc = ts_text_table_finish(table, err);

	ts_text_table_release(table);
	return rc;
}

static int show_in(const struct ts_why *why, struct ts_error *err)
{
	const struct ts_graph *graph = why->graph;
	struct ts_text_table table;

	if (graph->first_in[why->node] == graph->first_in[why->node + 1]) {
		ts_text_append_str(ts_stdout(), "\nwaited for nothing in the trace\n");
		return TS_OK;
	}
	ts_text_append_str(ts_stdout(), "\nwaited for (*: the decisive dependency)\n");
	start_table(&table, "earlier");
	for (uint32_t i = graph->first_in[why->node]; i < graph->first_in[why->node + 1]; i++)
		add_edge(why, &table, i, graph->edges[i].from,
			 i == why->into_start || i == why->into_end ? "*" : "");
	return finish_table(&table, err);
}

static int show_chain(const struct ts_why *why, struct ts_error *err)
{
	struct ts_text_table table;

	if (why->chain_count < 2)
		return TS_OK;
	ts_text_append_str(ts_stdout(), "\ncritical chain, step by step back\n");
	start_table(&table, "earlier");
	for (size_t i = 0; i < why->chain_count; i++)
		add_step(why, &table, &why->chain[i], why->graph->edges[why->chain[i].last].from,
			 "");
	return finish_table(&table, err);
}

static int show_out(const struct ts_why *why, struct ts_error *err)
{
	TS_AUTO_FREE uint32_t *edges = NULL;
	struct ts_text_table table;
	uint32_t count = 0;
	int rc;

	edges = ts_why_out(why, &count);
	if (!edges)
		return ts_error_set(err, TS_ENOMEM, "out of memory for the waiting events");
	if (count == 0) {
		ts_text_append_str(ts_stdout(), "\nnothing in the trace waited for it\n");
		return TS_OK;
	}
	ts_text_append_str(ts_stdout(), "\nwaited for it (*: this event was decisive)\n");
	start_table(&table, "later");
	for (uint32_t i = 0; i < count && i < MAX_LINES; i++) {
		const struct ts_edge *edge = &why->graph->edges[edges[i]];
		size_t decisive =
			ts_graph_decisive(why->graph, edge->to, edge->flags & TS_EDGE_TO_END);

		add_edge(why, &table, edges[i], edge->to, decisive == edges[i] ? "*" : "");
	}
	rc = finish_table(&table, err);
	if (count > MAX_LINES)
		ts_text_printf(ts_stdout(), "%u more (--json shows all)\n", count - MAX_LINES);
	return rc;
}

int ts_why_show_text(const struct ts_why *why, struct ts_error *err)
{
	int rc;

	show_event(why);
	show_life(why);
	rc = show_in(why, err);
	if (!rc)
		rc = show_chain(why, err);
	if (!rc)
		rc = show_out(why, err);
	return rc;
}
