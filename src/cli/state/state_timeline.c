/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timeline of lane states: one line per lane; each character covers an equal time slot and shows
 * the state that dominates it.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/ns.h"
#include "base/text.h"
#include "cli/common/cli_output.h"
#include "cli/common/sparkline.h"
#include "cli/common/terminal.h"
#include "cli/common/text_table.h"
#include "cli/state/state_show.h"

#define PLAIN_WIDTH 100u /* if there is no terminal */
#define LEAST_WIDTH 10u
#define MOST_WIDTH 1000u
#define LABEL_BYTES 96

/* Symbols: states, and idle by reason. For ties in a slot the first wins. */
enum sign { RUNNING, PEERS, WAIT, PENDING, HOST_BOUND, DEPENDENCY, MISSING, NOTHING, SIGNS };

static const struct {
	const char *block, *letter, *meaning;
} signs[SIGNS] = {
	[RUNNING] = { "\xe2\x96\x88", "#", "running" },
	[PEERS] = { "\xe2\x96\x92", "=", "running, but waiting for other ranks" },
	[WAIT] = { "w", "w", "wait" },
	[PENDING] = { "p", "p", "dispatch pending" },
	[HOST_BOUND] = { "h", "h", "idle, host bound" },
	[DEPENDENCY] = { "d", "d", "idle, host waits for a device" },
	[MISSING] = { "?", "?", "idle, launch not in the trace" },
	[NOTHING] = { "\xc2\xb7", ".", "idle, no work" },
};

static enum sign sign_of(const struct ts_state_interval *interval)
{
	switch (interval->state) {
	case TS_STATE_RUNNING:
		return interval->reason == TS_REASON_PEERS ? PEERS : RUNNING;
	case TS_STATE_WAIT:
		return WAIT;
	case TS_STATE_DISPATCH_PENDING:
		return PENDING;
	default:
		break;
	}
	switch (interval->reason) {
	case TS_REASON_HOST_BOUND:
		return HOST_BOUND;
	case TS_REASON_DEPENDENCY:
		return DEPENDENCY;
	case TS_REASON_LAUNCH_MISSING:
		return MISSING;
	default:
		return NOTHING;
	}
}

struct picture {
	const struct ts_state_view *view;
	int64_t from, to; /* of all lanes together */
	size_t width;     /* characters of time */
	int label_width;
	bool ranks, blocks;
	double bins[MOST_WIDTH][SIGNS];
	bool used[SIGNS];
};

static double column_of(const struct picture *picture, int64_t time)
{
	/* Exact: times are far greater than what a double can tell apart. */
	double span = (double)ts_ns_between(picture->from, picture->to);

	return (double)ts_ns_between(picture->from, time) / span * (double)picture->width;
}

/* Adds an interval to each slot that it overlaps. */
static void add(struct picture *picture, const struct ts_state_interval *interval)
{
	double start = column_of(picture, interval->start), end = column_of(picture, interval->end);
	enum sign sign = sign_of(interval);
	size_t bin = start < 0 ? 0 : (size_t)start;

	for (; bin < picture->width && (double)bin < end; bin++)
		picture->bins[bin][sign] += TS_MIN(end, (double)(bin + 1)) -
					    TS_MAX(start, (double)bin);
}

static const char *strongest(struct picture *picture, size_t bin)
{
	enum sign best = SIGNS;

	for (enum sign sign = 0; sign < SIGNS; sign++) {
		if (picture->bins[bin][sign] > (best == SIGNS ? 0 : picture->bins[bin][best]))
			best = sign;
	}
	if (best == SIGNS)
		return " ";
	picture->used[best] = true;
	return picture->blocks ? signs[best].block : signs[best].letter;
}

static void append_label(const struct picture *picture, const struct ts_state_lane *lane,
			 char label[LABEL_BYTES])
{
	const struct ts_work *work = picture->view->states->work;
	const struct ts_work_device *device = &work->devices[lane->device];
	char rank[32] = "";

	if (picture->ranks)
		snprintf(rank, sizeof(rank), "rank %" PRId64 " ", work->ranks[device->rank].rank);
	if (lane->stream != TS_WORK_NONE && work->streams[lane->stream].number != TS_ABSENT)
		snprintf(label, LABEL_BYTES, "  stream %" PRId64,
			 work->streams[lane->stream].number);
	else if (lane->stream != TS_WORK_NONE)
		snprintf(label, LABEL_BYTES, "  stream -");
	else if (device->number != TS_ABSENT)
		snprintf(label, LABEL_BYTES, "%sdevice %" PRId64, rank, device->number);
	else
		snprintf(label, LABEL_BYTES, "%sdevice -", rank);
}

static void show_lane(struct picture *picture, const struct ts_state_lane *lane)
{
	const struct ts_states *states = picture->view->states;
	struct ts_text *out = ts_stdout();
	char label[LABEL_BYTES];

	memset(picture->bins, 0, sizeof(picture->bins[0]) * picture->width);
	for (size_t i = 0; i < lane->count; i++) {
		struct ts_state_interval interval = states->intervals[lane->first + i];

		if (ts_state_filter_cut(&picture->view->filter, &interval))
			add(picture, &interval);
	}
	append_label(picture, lane, label);
	ts_text_printf(out, "%-*s |", picture->label_width, label);
	for (size_t bin = 0; bin < picture->width; bin++)
		ts_text_append_str(out, strongest(picture, bin));
	ts_text_append_str(out, "|\n");
}

static void show_legend(const struct picture *picture)
{
	TS_SCOPED(ts_text) line = { 0 };
	const char *comma = "";
	char span[TS_FORMAT_BYTES];
	int64_t ns = ts_ns_between(picture->from, picture->to);

	ts_text_printf(&line, "one character is %s: ",
		       ts_format_duration_ns(span, sizeof(span), ns / (int64_t)picture->width));
	for (enum sign sign = 0; sign < SIGNS; sign++) {
		if (!picture->used[sign])
			continue;
		ts_text_printf(&line, "%s%s %s", comma,
			       picture->blocks ? signs[sign].block : signs[sign].letter,
			       signs[sign].meaning);
		comma = "; ";
	}
	ts_text_append_wrapped(ts_stdout(), ts_text_cstr(&line), 0, 2, ts_terminal_stdout_width());
	ts_text_append_str(ts_stdout(), "\n\n");
}

/* Time range of all lanes shown, the width of their names, and their number. */
static int64_t measure(struct picture *picture)
{
	const struct ts_states *states = picture->view->states;
	char label[LABEL_BYTES];
	int64_t shown = 0;

	picture->from = INT64_MAX;
	picture->to = INT64_MIN;
	for (uint32_t i = 0; i < states->lane_count && shown < picture->view->top; i++) {
		const struct ts_state_lane *lane = &states->lanes[i];
		const struct ts_state_interval *intervals = states->intervals + lane->first;

		if (!ts_state_view_lane(picture->view, lane) || !lane->count)
			continue;
		append_label(picture, lane, label);
		picture->label_width = TS_MAX(picture->label_width, (int)strlen(label));
		picture->from = TS_MIN(picture->from, intervals[0].start);
		picture->to = TS_MAX(picture->to, intervals[lane->count - 1].end);
		shown++;
	}
	picture->from = TS_MAX(picture->from, picture->view->filter.from);
	picture->to = TS_MIN(picture->to, picture->view->filter.to);
	return picture->from < picture->to ? shown : 0;
}

int ts_state_show_timeline(const struct ts_state_view *view, struct ts_error *err)
{
	TS_AUTO_FREE struct picture *picture = calloc(1, sizeof(*picture));
	size_t line = ts_terminal_stdout_width();
	int64_t left;
	int rc = TS_OK;

	if (!picture)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	picture->view = view;
	picture->ranks = view->states->work->rank_count > 1;
	picture->blocks = ts_sparkline_style() == TS_SPARKLINE_BLOCKS;
	left = measure(picture);
	if (!left)
		return TS_OK;
	line = line ? line : PLAIN_WIDTH;
	line -= TS_MIN(line, (size_t)picture->label_width + 3);
	picture->width = TS_MIN(TS_MAX(line, LEAST_WIDTH), MOST_WIDTH);
	/* At least 1 ns per character. */
	picture->width =
		(size_t)TS_MIN((int64_t)picture->width, ts_ns_between(picture->from, picture->to));
	for (uint32_t i = 0; !rc && left && i < view->states->lane_count; i++) {
		const struct ts_state_lane *lane = &view->states->lanes[i];

		if (!ts_state_view_lane(view, lane) || !lane->count)
			continue;
		show_lane(picture, lane);
		left--;
		rc = ts_stdout_drain(err);
	}
	show_legend(picture);
	return rc;
}
