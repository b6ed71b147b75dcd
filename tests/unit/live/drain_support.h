/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of draining: an area, its recorder, and what that has drained. */
#ifndef TS_TESTS_UNIT_LIVE_DRAIN_SUPPORT_H
#define TS_TESTS_UNIT_LIVE_DRAIN_SUPPORT_H

#include "unit/live/live_support.h"

struct pair {
	struct live live;
	struct ts_area *area;
	struct sink *sink;
};

SUPPORT void begin(struct pair *pair, uint32_t rings, uint64_t ring_bytes)
{
	live_make(&pair->live, rings, ring_bytes);
	pair->area = live_open(&pair->live, true);
	pair->sink = sink_new();
}

SUPPORT void end(struct pair *pair)
{
	ts_area_close(pair->area);
	free(pair->sink);
	live_release(&pair->live);
}

/* A recorder without knowledge of its predecessor. */
SUPPORT void begin_anew(struct pair *pair)
{
	ts_area_close(pair->area);
	free(pair->sink);
	pair->area = live_open(&pair->live, true);
	pair->sink = sink_new();
}

#endif
