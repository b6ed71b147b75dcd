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
	uint64_t stored; /* ever, also those that flight mode has overwritten since: no loss */
	uint64_t lost;   /* emitted, and never stored */
	bool estimated;  /* `stored` is near the truth only */
};

/* What a look reads of an area, unless asked otherwise; rings get equal shares, 16 KiB at least. */
#define TS_EVENTS_LOOK_BYTES (UINT64_C(1) << 20)

int ts_area_events_open(struct ts_area_events **ret_events, int directory_fd, const char *name,
			struct ts_error *err);
void ts_area_events_close(struct ts_area_events *events);
TS_DEFINE_AUTO(ts_area_events, ts_area_events_close);

/*
 * Counts never fall from one look to the next. Rings that are damaged keep the counts that they
 * had; TS_EFORMAT where the whole area is.
 */
int ts_area_events_look(struct ts_area_events *events, uint64_t limit_bytes,
			struct ts_event_counts *ret_counts, struct ts_error *err);

#endif
