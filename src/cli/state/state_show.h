/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of `tracesmith state` (state/states/states.h): selection of lanes and time range, totals
 * (state_lanes.c), a timeline (state_timeline.c), or row by row (state_rows.c).
 */
#ifndef TS_CLI_STATE_STATE_SHOW_H
#define TS_CLI_STATE_STATE_SHOW_H

#include <stdbool.h>

#include "analyze/result.h"
#include "cli/common/options.h"
#include "state/states/state_walk.h"

/* Default number of lanes in text output; JSON and CSV have all. */
#define TS_STATE_SHOWN_LANES 100

enum ts_state_format { TS_STATE_TEXT, TS_STATE_JSON, TS_STATE_CSV };

struct ts_state_view {
	const struct ts_states *states;
	int64_t start;                 /* origin of instants in text output */
	struct ts_state_filter filter; /* of lanes and times */
	enum ts_state_format format;
	int64_t top; /* lanes shown in text output */
};

static inline bool ts_state_view_lane(const struct ts_state_view *view,
				      const struct ts_state_lane *lane)
{
	return ts_state_filter_lane(&view->filter, view->states, lane);
}

/*
 * Tables `lanes`, `counts` and `latencies`. Reason columns that no lane has are hidden in text
 * output.
 */
void ts_state_fill_lanes(const struct ts_state_view *view, struct ts_result *result);
void ts_state_fill_counts(const struct ts_state_view *view, const struct ts_graph *graph,
			  struct ts_result *result);

/* One line per lane, one character per time slot, and a legend. */
int ts_state_show_timeline(const struct ts_state_view *view, struct ts_error *err);

/*
 * Intervals of lanes, or of commands: the derived table `state`. Memory does not grow with their
 * number.
 */
int ts_state_show_rows(const struct ts_state_view *view, enum ts_state_source source,
		       struct ts_error *err);

/* Dependencies that touch the selected range: the derived table `edge`. */
void ts_state_fill_edges(const struct ts_state_view *view, const struct ts_graph *graph,
			 struct ts_result *result);

#endif
