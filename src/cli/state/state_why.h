/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith state TRACE --why EVENT`: what an event waited for, and what waited for it.
 * state_why.c finds the event and follows the graph, state_why_text.c and state_why_json.c print
 * the result.
 */
#ifndef TS_CLI_STATE_STATE_WHY_H
#define TS_CLI_STATE_STATE_WHY_H

#include <stdbool.h>

#include "base/text.h"
#include "state/graph/graph.h"
#include "state/states/states.h"
#include "state/work/work.h"

/*
 * event: a correlation number, gpu_op:ROW, api_call:ROW, or a name or glob (then the instance that
 * waited longest). The graph should be built with TS_GRAPH_HOST. Returns an exit code; errors have
 * been reported.
 */
int ts_state_why(const struct ts_work *work, const struct ts_graph *graph,
		 const struct ts_states *states, const char *event, bool json);

/* ---- internal ---- */

#define TS_WHY_CHAIN 10

/* A step back; consecutive program-order edges of one thread are one step. */
struct ts_why_step {
	size_t first, last; /* edges: equal unless program order */
	uint32_t count;     /* of edges */
};

struct ts_why {
	const struct ts_work *work;
	const struct ts_graph *graph;
	const struct ts_states *states; /* may be NULL */
	int64_t start;                  /* start of the traces: origin of times in text output */
	uint32_t node;                  /* the event: a command or a call */
	uint64_t matches;               /* number of events that match */
	size_t into_start, into_end;    /* decisive edges, TS_EDGE_NONE */
	struct ts_why_step chain[TS_WHY_CHAIN]; /* decisive dependencies, back from the event */
	size_t chain_count;
};

/* Edges out of the event, by the time they took effect; the caller frees. NULL: out of memory. */
uint32_t *ts_why_out(const struct ts_why *why, uint32_t *ret_count);

/* "device 0/stream 7", "thread 100/101", with the rank if there are several. */
void ts_why_append_where(struct ts_text *out, const struct ts_why *why, uint32_t node);

/* "gpu_op:12", "api_call:7"; nothing for stretches. */
void ts_why_append_row(struct ts_text *out, const struct ts_why *why, uint32_t node);

int ts_why_show_text(const struct ts_why *why, struct ts_error *err);
int ts_why_show_json(const struct ts_why *why, struct ts_error *err);

#endif
