/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `tracesmith state` shows of the states of a work (state/states/states.h): which lanes and
 * which time, then as totals (state_lanes.c), as a picture (state_timeline.c), or row by row
 * (state_rows.c).
 */
#ifndef TS_CLI_STATE_STATE_SHOW_H
#define TS_CLI_STATE_STATE_SHOW_H

#include <stdbool.h>

#include "analyze/result.h"
#include "cli/common/options.h"
#include "state/states/states.h"

/* So many lanes are shown in text unless somebody asks for more or less; JSON and CSV have all. */
#define TS_STATE_SHOWN_LANES 100

enum ts_state_format { TS_STATE_TEXT, TS_STATE_JSON, TS_STATE_CSV };

struct ts_state_view {
	const struct ts_states *states;
	int64_t start;                     /* that instants in text count from */
	int64_t from, to;                  /* only what lies in [from, to) */
	int64_t *devices, *streams;        /* only those of these numbers */
	size_t device_count, stream_count; /* 0: all */
	enum ts_state_format format;
	int64_t top; /* lanes that are shown in text */
};

bool ts_state_view_device(const struct ts_state_view *view, uint32_t device);
/* Streams that were asked for leave devices as a whole out. */
bool ts_state_view_lane(const struct ts_state_view *view, const struct ts_state_lane *lane);

/* The part of an interval that is asked for; false: none. */
bool ts_state_view_cut(const struct ts_state_view *view, struct ts_state_interval *interval);

/*
 * Tables `lanes`, `counts` and `latencies`. Columns of reasons that no lane has are not shown in
 * text.
 */
void ts_state_fill_lanes(const struct ts_state_view *view, struct ts_result *result);
void ts_state_fill_counts(const struct ts_state_view *view, const struct ts_graph *graph,
			  struct ts_result *result);

/* A line a lane, a character a stretch of time, and what the characters mean. */
int ts_state_show_timeline(const struct ts_state_view *view, struct ts_error *err);

/*
 * Intervals of lanes, or of commands: the derived table `state`. Memory does not grow with their
 * number.
 */
int ts_state_show_intervals(const struct ts_state_view *view, struct ts_error *err);
int ts_state_show_commands(const struct ts_state_view *view, struct ts_error *err);

/* Dependencies that touch the time asked for: the derived table `edge`. */
void ts_state_fill_edges(const struct ts_state_view *view, const struct ts_graph *graph,
			 struct ts_result *result);

#endif
