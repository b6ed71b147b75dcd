/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When graphs were captured: launches between a call that begins a capture and the one that ends it
 * on the same thread are recorded, not run, and the device gets no work from them.
 */
#ifndef TS_ANALYZE_ADVICE_GRAPH_CAPTURES_H
#define TS_ANALYZE_ADVICE_GRAPH_CAPTURES_H

#include "state/work/work.h"

struct ts_graph_capture {
	uint32_t rank;
	int64_t start, end;
};

/* By rank, then by start; captures of a rank that overlap are merged. */
struct ts_graph_captures {
	struct ts_graph_capture *items;
	size_t count, capacity;
	uint64_t launches; /* captured, on all ranks */
};

/* 0 or TS_ENOMEM. */
int ts_graph_captures_init(struct ts_graph_captures *captures, const struct ts_work *work);
void ts_graph_captures_release(struct ts_graph_captures *captures);

/*
 * Takes the next piece of [*from, to) in which a rank captures nothing, and moves *from behind it.
 * False: there is none.
 */
bool ts_graph_captures_skip(const struct ts_graph_captures *captures, uint32_t rank, int64_t *from,
			    int64_t to, int64_t *ret_start, int64_t *ret_end);

#endif
