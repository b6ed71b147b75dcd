/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphviz output: clusters for devices, streams and threads, a node per command or call, a colour
 * per edge kind, dashed if inferred, and a legend. Node names can be passed to `state --why`.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/ns.h"
#include "export/dot/dot.h"

/* Bytes of a name in a node; the tooltip has all of it. */
#define LONGEST_NAME 48

static const char *const edge_colours[TS_EDGE_KIND_COUNT] = {
	[TS_EDGE_PROGRAM] = "gray60",     [TS_EDGE_LAUNCH] = "dodgerblue3",
	[TS_EDGE_STREAM] = "black",       [TS_EDGE_EVENT] = "firebrick2",
	[TS_EDGE_SYNC] = "forestgreen",   [TS_EDGE_COPY] = "darkorange2",
	[TS_EDGE_GRAPH] = "slateblue3",   [TS_EDGE_COLLECTIVE] = "deeppink2",
	[TS_EDGE_FORWARD] = "goldenrod3", [TS_EDGE_FLOW] = "turquoise4",
	[TS_EDGE_WAKE] = "sienna",
};

static const char *const class_colours[TS_CLASS_COUNT] = {
	[TS_CLASS_COMPUTE] = "#cfe2f3",
	[TS_CLASS_COMMUNICATION] = "#ead1dc",
	[TS_CLASS_MEMORY] = "#fce5cd",
	[TS_CLASS_OTHER] = "#eeeeee",
};

/* ---- texts ---- */

/* The inside of a quoted string, where a backslash starts an escape. */
static void put_escaped(struct ts_text *out, const char *text, size_t length)
{
	size_t valid = 0, from = out->length;

	while (valid < length) {
		size_t good = ts_utf8_valid_prefix(text + valid, length - valid);

		for (size_t i = valid; i < valid + good; i++) {
			char c = text[i];

			if (c == '"' || c == '\\')
				ts_text_append_char(out, '\\');
			ts_text_append_char(out, c);
		}
		valid += good;
		if (valid < length) {
			ts_text_append_str(out, "\xef\xbf\xbd");
			valid++;
		}
	}
	if (out->length > from)
		ts_utf8_replace_controls(out->data + from, out->length - from, ' ');
}

/* A name without template and call arguments, which are most of a kernel's name; may be empty. */
static void shorten(struct ts_text *out, const char *name)
{
	int depth = 0;

	if (!strncmp(name, "void ", 5))
		name += 5;
	for (const char *c = name; *c; c++) {
		if (!strncmp(c, "(anonymous namespace)::", 23) && !depth)
			c += 22;
		else if (*c == '<' || *c == '(')
			depth++;
		else if ((*c == '>' || *c == ')') && depth)
			depth--;
		else if (!depth)
			ts_text_append_char(out, *c);
	}
}

static void put_short_name(struct ts_text *out, const char *name)
{
	TS_SCOPED(ts_text) brief = { 0 };
	size_t length;

	/* "Memcpy HtoD (Pageable -> Device)" has information in its brackets. */
	if (strlen(name) > LONGEST_NAME)
		shorten(&brief, name);
	if (!brief.length)
		ts_text_append_str(&brief, name);
	length = TS_MIN(brief.length, LONGEST_NAME);
	/* Not in the middle of a character. */
	while (length < brief.length && length &&
	       ((unsigned char)brief.data[length] & 0xc0) == 0x80)
		length--;
	put_escaped(out, brief.data, length);
	if (length < brief.length)
		ts_text_append_str(out, "...");
	out->failed |= brief.failed;
}

static void put_times(struct ts_dot *dot, int64_t start, int64_t end)
{
	char length[TS_FORMAT_BYTES], instant[TS_FORMAT_BYTES];

	ts_format_duration_ns(length, sizeof(length), ts_ns_between(start, end));
	ts_format_instant_ns(instant, sizeof(instant), ts_ns_between(dot->start_ns, start));
	ts_text_printf(&dot->out, "%s at %s", length, instant);
}

/* ---- nodes ---- */

static void put_id(struct ts_dot *dot, uint32_t node)
{
	const struct ts_work *work = dot->work;

	if (node < work->command_count)
		ts_text_printf(&dot->out, "\"gpu_op:%" PRIu64 "\"", work->commands[node].row);
	else
		ts_text_printf(&dot->out, "\"api_call:%" PRIu64 "\"",
			       work->calls[node - work->command_count].row);
}

static void put_node(struct ts_dot *dot, uint32_t node, const char *indent, const char *look)
{
	const char *name = ts_graph_node_name(dot->graph, node);

	ts_text_append_str(&dot->out, indent);
	put_id(dot, node);
	ts_text_append_str(&dot->out, " [label=\"");
	put_short_name(&dot->out, name);
	ts_text_append_str(&dot->out, "\\n");
	put_times(dot, ts_graph_node_start(dot->graph, node), ts_graph_node_end(dot->graph, node));
	ts_text_append_str(&dot->out, "\", tooltip=\"");
	put_escaped(&dot->out, name, strlen(name));
	ts_text_printf(&dot->out, "\", %s];\n", look);
}

static void put_command(struct ts_dot *dot, uint32_t command)
{
	char look[64];

	snprintf(look, sizeof(look), "fillcolor=\"%s\"",
		 class_colours[dot->work->commands[command].class % TS_CLASS_COUNT]);
	put_node(dot, command, "\t\t\t", look);
}

static bool has_commands(const struct ts_dot *dot, uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < first + count; i++)
		if (dot->drawn[i])
			return true;
	return false;
}

static void put_number(struct ts_text *out, int64_t number)
{
	if (number == TS_ABSENT)
		ts_text_append_char(out, '?');
	else
		ts_text_append_int(out, number);
}

static void put_stream(struct ts_dot *dot, uint32_t stream)
{
	const struct ts_work_stream *row = &dot->work->streams[stream];
	const char *name = ts_work_text(dot->work, row->name);

	if (!has_commands(dot, row->first_command, row->command_count))
		return;
	ts_text_printf(&dot->out,
		       "\t\tsubgraph cluster_stream_%" PRIu32 " {\n\t\t\tlabel=\"stream ", stream);
	put_number(&dot->out, row->number);
	if (*name) {
		ts_text_append_str(&dot->out, ", ");
		put_escaped(&dot->out, name, strlen(name));
	}
	ts_text_append_str(&dot->out, "\"; color=gray70;\n");
	for (uint32_t i = 0; i < row->command_count; i++)
		if (dot->drawn[row->first_command + i])
			put_command(dot, row->first_command + i);
	ts_text_append_str(&dot->out, "\t\t}\n");
}

static bool is_device_drawn(const struct ts_dot *dot, const struct ts_work_device *device)
{
	for (uint32_t i = 0; i < device->stream_count; i++) {
		const struct ts_work_stream *stream = &dot->work->streams[device->first_stream + i];

		if (has_commands(dot, stream->first_command, stream->command_count))
			return true;
	}
	return false;
}

/* With several ranks each one is named. */
static void put_rank(struct ts_dot *dot, uint32_t rank)
{
	if (dot->work->rank_count > 1)
		ts_text_printf(&dot->out, "rank %" PRId64 ", ", dot->work->ranks[rank].rank);
}

static void put_device(struct ts_dot *dot, uint32_t device)
{
	const struct ts_work_device *row = &dot->work->devices[device];
	const char *name = ts_work_text(dot->work, row->name);

	if (!is_device_drawn(dot, row))
		return;
	ts_text_printf(&dot->out, "\tsubgraph cluster_device_%" PRIu32 " {\n\t\tlabel=\"", device);
	put_rank(dot, row->rank);
	ts_text_append_str(&dot->out, "device ");
	put_number(&dot->out, row->number);
	if (*name) {
		ts_text_append_str(&dot->out, ", ");
		put_escaped(&dot->out, name, strlen(name));
	}
	ts_text_append_str(&dot->out, "\"; color=gray40;\n");
	for (uint32_t i = 0; i < row->stream_count; i++)
		put_stream(dot, row->first_stream + i);
	ts_text_append_str(&dot->out, "\t}\n");
}

static void put_thread(struct ts_dot *dot, uint32_t thread)
{
	const struct ts_work_thread *row = &dot->work->threads[thread];
	const char *name = ts_work_text(dot->work, row->name);

	if (!has_commands(dot, ts_graph_call_node(dot->graph, row->first_call), row->call_count))
		return;
	ts_text_printf(&dot->out, "\tsubgraph cluster_thread_%" PRIu32 " {\n\t\tlabel=\"", thread);
	put_rank(dot, row->rank);
	ts_text_append_str(&dot->out, "thread ");
	put_number(&dot->out, row->pid);
	ts_text_append_char(&dot->out, '/');
	put_number(&dot->out, row->tid);
	if (*name) {
		ts_text_append_str(&dot->out, ", ");
		put_escaped(&dot->out, name, strlen(name));
	}
	ts_text_append_str(&dot->out, "\"; color=gray40; style=dotted;\n");
	for (uint32_t i = 0; i < row->call_count; i++) {
		uint32_t node = ts_graph_call_node(dot->graph, row->first_call + i);

		if (dot->drawn[node])
			put_node(dot, node, "\t\t", "style=\"rounded\"");
	}
	ts_text_append_str(&dot->out, "\t}\n");
}

/* ---- edges ---- */

static void put_look(struct ts_dot *dot, unsigned int kind, bool is_inferred)
{
	ts_text_printf(&dot->out, " [color=%s%s", edge_colours[kind],
		       is_inferred ? ", style=dashed" : "");
}

static void put_edge(struct ts_dot *dot, const struct ts_edge *edge)
{
	char slack[TS_FORMAT_BYTES];

	ts_text_append_char(&dot->out, '\t');
	put_id(dot, edge->from);
	ts_text_append_str(&dot->out, " -> ");
	put_id(dot, edge->to);
	put_look(dot, edge->kind, edge->flags & TS_EDGE_INFERRED);
	ts_format_duration_ns(slack, sizeof(slack),
			      ts_ns_between(ts_edge_from_time(dot->graph, edge),
					    ts_edge_to_time(dot->graph, edge)));
	ts_text_printf(&dot->out, ", tooltip=\"%s%s, %s\"];\n",
		       ts_edge_kind_name((enum ts_edge_kind)edge->kind),
		       edge->flags & TS_EDGE_INFERRED ? " (inferred)" : "", slack);
}

/* Program order of a thread's calls; the graph has it only with all host work between them. */
static bool put_program(struct ts_dot *dot, const struct ts_work_thread *thread)
{
	uint32_t last = TS_WORK_NONE;
	bool any = false;

	for (uint32_t i = 0; i < thread->call_count; i++) {
		uint32_t node = ts_graph_call_node(dot->graph, thread->first_call + i);

		if (!dot->drawn[node])
			continue;
		if (last != TS_WORK_NONE) {
			ts_text_append_char(&dot->out, '\t');
			put_id(dot, last);
			ts_text_append_str(&dot->out, " -> ");
			put_id(dot, node);
			put_look(dot, TS_EDGE_PROGRAM, false);
			ts_text_append_str(&dot->out, ", tooltip=\"program\"];\n");
			any = true;
		}
		last = node;
	}
	return any;
}

/* Returns the set of kinds present; the bit above them all: some are inferred. */
static unsigned int put_edges(struct ts_dot *dot)
{
	unsigned int kinds = 0;

	for (size_t i = 0; i < dot->graph->edge_count; i++) {
		const struct ts_edge *edge = &dot->graph->edges[i];

		if (!ts_dot_has_edge(dot, edge))
			continue;
		put_edge(dot, edge);
		kinds |= 1u << edge->kind;
		if (edge->flags & TS_EDGE_INFERRED)
			kinds |= 1u << TS_EDGE_KIND_COUNT;
	}
	for (uint32_t i = 0; i < dot->work->thread_count; i++)
		if (put_program(dot, &dot->work->threads[i]))
			kinds |= 1u << TS_EDGE_PROGRAM;
	return kinds;
}

/* ---- the rest ---- */

static void put_legend(struct ts_dot *dot, unsigned int kinds)
{
	if (!kinds)
		return;
	ts_text_append_str(&dot->out, "\tsubgraph cluster_legend {\n"
				      "\t\tlabel=\"edges\"; color=gray80;\n"
				      "\t\tnode [shape=point, label=\"\", width=0.05];\n");
	for (unsigned int kind = 0; kind <= TS_EDGE_KIND_COUNT; kind++) {
		if (!(kinds >> kind & 1))
			continue;
		ts_text_printf(&dot->out, "\t\t\"legend:%u\" -> \"legend:%u:\"", kind, kind);
		if (kind < TS_EDGE_KIND_COUNT)
			put_look(dot, kind, false);
		else
			ts_text_append_str(&dot->out, " [color=black, style=dashed");
		ts_text_printf(&dot->out, ", label=\"%s\"];\n",
			       kind < TS_EDGE_KIND_COUNT
				       ? ts_edge_kind_name((enum ts_edge_kind)kind)
				       : "inferred");
	}
	ts_text_append_str(&dot->out, "\t}\n");
}

static void put_head(struct ts_dot *dot)
{
	char shown[TS_FORMAT_BYTES], all[TS_FORMAT_BYTES];

	ts_text_append_str(&dot->out, "digraph tracesmith {\n\trankdir=LR; fontname=\"Helvetica\"; "
				      "labelloc=t; newrank=true;\n");
	ts_text_printf(&dot->out, "\tlabel=\"%s of %s commands\";\n",
		       ts_format_count(shown, sizeof(shown), dot->chosen),
		       ts_format_count(all, sizeof(all), dot->work->command_count));
	ts_text_append_str(
		&dot->out,
		"\tnode [shape=box, style=filled, fontname=\"Helvetica\", fontsize=10];\n"
		"\tedge [fontname=\"Helvetica\", fontsize=9];\n");
}

void ts_dot_draw(struct ts_dot *dot)
{
	put_head(dot);
	for (uint32_t i = 0; i < dot->work->thread_count; i++)
		put_thread(dot, i);
	for (uint32_t i = 0; i < dot->work->device_count; i++)
		put_device(dot, i);
	put_legend(dot, put_edges(dot));
	ts_text_append_str(&dot->out, "}\n");
}
