/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dependency graph for Graphviz: the commands of a time range, the calls that issued or waited for
 * them, and the edges between them. Limited to a size that people can read; the rest is reported.
 * All commands of the trace are in memory, because any may depend on any other.
 */
#include "export/dot/dot.h"

#include <stdlib.h>

#include "base/io.h"
#include "export/common/export_losses.h"
#include "export/export.h"

#define DEFAULT_LIMIT 200

static int no_memory(struct ts_dot *dot)
{
	return ts_error_set(dot->err, TS_ENOMEM, "no memory");
}

/* ---- the graph ---- */

static int load(struct ts_dot *dot)
{
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	int rc;

	options.all = true;
	options.load_flags = TS_WORK_DETAILS;
	options.progress = dot->options.progress;
	options.context = dot->options.context;
	rc = ts_work_new(&dot->work, &options, dot->err);
	if (!rc)
		rc = ts_work_add(dot->work, dot->reader, dot->err);
	if (!rc)
		rc = ts_work_finish(dot->work, dot->err);
	if (!rc)
		rc = ts_graph_new(&dot->graph, dot->work, 0, dot->err);
	return rc;
}

/* The first event of the trace; losses may be earlier. */
static int64_t find_start(struct ts_reader *reader)
{
	int64_t start = INT64_MAX;

	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(reader, i);

		if (chunk->min_start != TS_ABSENT && chunk->table != TS_TABLE_LOSS)
			start = TS_MIN(start, chunk->min_start);
	}
	return start == INT64_MAX ? 0 : start;
}

/* ---- what is drawn ---- */

struct candidate {
	int64_t start;
	uint32_t command;
};

static int compare_candidates(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	return a->start != b->start ? TS_COMPARE(a->start, b->start)
				    : TS_COMPARE(a->command, b->command);
}

/* The first commands that overlap the range. */
static int choose_commands(struct ts_dot *dot)
{
	const struct ts_work *work = dot->work;
	TS_AUTO_FREE struct candidate *candidates =
		ts_alloc_array(work->command_count, sizeof(*candidates));
	size_t count = 0;

	if (!candidates)
		return no_memory(dot);
	for (uint32_t i = 0; i < work->command_count; i++)
		if (work->commands[i].start <= dot->to && work->commands[i].end >= dot->from)
			candidates[count++] = (struct candidate){ work->commands[i].start, i };
	ts_sort(candidates, count, sizeof(*candidates), compare_candidates);
	dot->chosen = (uint32_t)TS_MIN(count, dot->limit);
	dot->beyond = count - dot->chosen;
	for (uint32_t i = 0; i < dot->chosen; i++)
		dot->drawn[candidates[i].command] = TS_DOT_CHOSEN | TS_DOT_DRAWN;
	return TS_OK;
}

static bool is_call(const struct ts_dot *dot, uint32_t node)
{
	return node >= dot->work->command_count &&
	       node - dot->work->command_count < dot->work->call_count;
}

/* Calls that issued these commands, or waited for them. */
static void choose_calls(struct ts_dot *dot)
{
	for (size_t i = 0; i < dot->graph->edge_count; i++) {
		const struct ts_edge *edge = &dot->graph->edges[i];

		if (dot->drawn[edge->from] & TS_DOT_CHOSEN && is_call(dot, edge->to))
			dot->drawn[edge->to] |= TS_DOT_DRAWN;
		if (dot->drawn[edge->to] & TS_DOT_CHOSEN && is_call(dot, edge->from))
			dot->drawn[edge->from] |= TS_DOT_DRAWN;
	}
}

bool ts_dot_has_edge(const struct ts_dot *dot, const struct ts_edge *edge)
{
	return dot->drawn[edge->from] && dot->drawn[edge->to];
}

static int choose(struct ts_dot *dot)
{
	int rc;

	dot->drawn = calloc(dot->graph->node_count + (size_t)1, sizeof(*dot->drawn));
	if (!dot->drawn)
		return no_memory(dot);
	rc = choose_commands(dot);
	if (!rc)
		choose_calls(dot);
	return rc;
}

/* ---- the file ---- */

static void report_left_out(const struct ts_dot *dot)
{
	ts_export_left_out(&dot->options, "gpu_op", dot->beyond, "beyond the command limit");
	ts_left_out_tables(&dot->options, dot->reader,
			   TS_TABLE_SET(TS_TABLE_GPU_OP) | TS_TABLE_SET(TS_TABLE_API_CALL));
}

static int put_file(struct ts_dot *dot, int fd)
{
	int rc = load(dot);

	if (!rc)
		rc = choose(dot);
	if (rc)
		return rc;
	dot->start_ns = find_start(dot->reader);
	ts_dot_draw(dot);
	if (ts_text_status(&dot->out))
		return no_memory(dot);
	rc = ts_write_all(fd, dot->out.data, dot->out.length, dot->err);
	if (!rc)
		report_left_out(dot);
	return rc;
}

int ts_export_dot(struct ts_reader *reader, int fd, const struct ts_export_options *options,
		  struct ts_error *err)
{
	struct ts_error local_err = { 0 };
	struct ts_dot dot = { .reader = reader,
			      .options = ts_export_options(options),
			      .err = err ? err : &local_err,
			      .from = INT64_MIN,
			      .to = INT64_MAX };
	int rc;

	if (dot.options.from || dot.options.to) {
		dot.from = dot.options.from;
		dot.to = dot.options.to;
	}
	dot.limit = dot.options.limit ? dot.options.limit : DEFAULT_LIMIT;
	rc = put_file(&dot, fd);
	ts_graph_free(dot.graph);
	ts_work_free(dot.work);
	free(dot.drawn);
	ts_text_release(&dot.out);
	return rc;
}
