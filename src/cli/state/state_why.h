/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith state T --why EVENT`: what an event waited for, and what waited for it. state_why.c
 * finds the event and follows the graph, state_why_text.c and state_why_json.c show what was found.
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
 * waited longest). The graph is best made with TS_GRAPH_HOST. An exit code; all has been said.
 */
int ts_state_why(const struct ts_work *work, const struct ts_graph *graph,
		 const struct ts_states *states, const char *event, bool json);

/* ---- for the parts ---- */

#define TS_WHY_CHAIN 10

/* A step back; edges of one thread's program that follow each other are one. */
struct ts_why_step {
	size_t first, last; /* edges: the same, but for a program's */
	uint32_t count;     /* of edges */
};

struct ts_why {
	const struct ts_work *work;
	const struct ts_graph *graph;
	const struct ts_states *states;         /* may be NULL */
	int64_t start;                          /* of the traces: times in text count from there */
	uint32_t node;                          /* the event: a command or a call */
	uint64_t matches;                       /* events that the question fits */
	size_t into_start, into_end;            /* decisive edges, TS_EDGE_NONE */
	struct ts_why_step chain[TS_WHY_CHAIN]; /* what was decisive, back from the event */
	size_t chain_count;
};

/*
 * The numbers of the edges out of the event, by when they took effect; the caller frees. NULL: no
 * memory.
 */
uint32_t *ts_why_out(const struct ts_why *why, uint32_t *ret_count);

/* "device 0/stream 7", "thread 100/101", with the rank where there are several. */
void ts_why_append_where(struct ts_text *out, const struct ts_why *why, uint32_t node);

/* "gpu_op:12", "api_call:7"; nothing for stretches. */
void ts_why_append_row(struct ts_text *out, const struct ts_why *why, uint32_t node);

int ts_why_show_text(const struct ts_why *why, struct ts_error *err);
int ts_why_show_json(const struct ts_why *why, struct ts_error *err);

#endif
