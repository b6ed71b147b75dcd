/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exporter of Graphviz graphs, shared by its files.
 *
 *	dot.c       which commands, calls and dependencies are drawn
 *	dot_draw.c  how they are
 */
#ifndef TS_EXPORT_DOT_DOT_H
#define TS_EXPORT_DOT_DOT_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/export.h>

#include "base/text.h"
#include "state/graph/graph.h"

struct ts_dot {
	struct ts_reader *reader;
	struct ts_export_options options;
	struct ts_error *err;
	struct ts_work *work;
	struct ts_graph *graph;
	int64_t from, to;
	uint64_t limit;
	int64_t start_ns; /* of the trace: times are told since then */
	uint8_t *drawn;   /* by node: TS_DOT_* */
	uint32_t chosen;  /* commands that are drawn */
	uint64_t beyond;  /* commands that the limit has cut off */
	struct ts_text out;
};

#define TS_DOT_CHOSEN 1u /* a command that was asked for */
#define TS_DOT_DRAWN 2u  /* that, or a call that it depends on or that waits for it */

/* Is an edge drawn? */
bool ts_dot_has_edge(const struct ts_dot *dot, const struct ts_edge *edge);

/* The whole file, into `out`. */
void ts_dot_draw(struct ts_dot *dot);

#endif
