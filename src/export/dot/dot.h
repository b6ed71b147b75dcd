/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exporter of Graphviz graphs.
 *
 *	dot.c       selects commands, calls and dependencies
 *	dot_draw.c  draws them
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
	int64_t start_ns; /* of the trace: origin of times */
	uint8_t *drawn;   /* by node: TS_DOT_* */
	uint32_t chosen;  /* number of commands drawn */
	uint64_t beyond;  /* commands beyond the limit */
	struct ts_text out;
};

#define TS_DOT_CHOSEN 1u /* a selected command */
#define TS_DOT_DRAWN 2u  /* selected, or a call that it depends on or that waits for it */

/* Is the edge drawn? */
bool ts_dot_has_edge(const struct ts_dot *dot, const struct ts_edge *edge);

/* Writes the complete file into `out`. */
void ts_dot_draw(struct ts_dot *dot);

#endif
