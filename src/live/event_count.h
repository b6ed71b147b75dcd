/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the events that a live process has stored and lost, from outside: read-only, without a
 * lock, also while another process drains the area. A look reads what is new since the previous
 * one, up to a limit; the rest is estimated by size until a later look, or the recorder's own
 * count, catches up.
 */
#ifndef TS_LIVE_EVENT_COUNT_H
#define TS_LIVE_EVENT_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "base/memory.h"

struct ts_area_events;

struct ts_event_counts {
	uint64_t stored; /* ever, including those that flight mode has overwritten since */
	uint64_t lost;   /* emitted, but never stored */
	bool estimated;  /* `stored` is approximate */
};

/* Default limit of one look at an area; rings get equal shares of at least 16 KiB. */
#define TS_EVENTS_LOOK_BYTES (UINT64_C(1) << 20)

int ts_area_events_open(struct ts_area_events **ret_events, int directory_fd, const char *name,
			struct ts_error *err);
void ts_area_events_close(struct ts_area_events *events);
TS_DEFINE_AUTO(ts_area_events, ts_area_events_close);

/*
 * Counts never decrease from one look to the next. Damaged rings keep their last counts;
 * TS_EFORMAT: the whole area is damaged.
 */
int ts_area_events_look(struct ts_area_events *events, uint64_t limit_bytes,
			struct ts_event_counts *ret_counts, struct ts_error *err);

#endif
