/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows: their rows, which events lie outside them, and the callback when one has closed. Targets
 * open and close their own windows with WINDOW records. The recorder's are WINDOW blocks, and only
 * these exclude events, since `enabled` is the gate (docs/live.md, section 4.3).
 */
#include "record/decode/decode_internal.h"

#include <stdio.h>

/* A target's window is complete once all rings were drained after its end: two anchors later. */
#define TARGET_WAITS 2
/*
 * The program closes a command stream at one of its next calls, if it makes any: number of anchors
 * to wait for that.
 */
#define STREAM_WAITS 10
/* First serial for windows that targets open; the decoder assigns these. */
#define TARGET_SERIAL 0x80000000u

bool decode_search_gates(const struct decode_area *area, int64_t ns)
{
	for (uint32_t i = area->gate_count; i > 0; i--)
		if (ns >= area->gates[i - 1].from_ns)
			return !area->gates[i - 1].open;
	return false;
}

static void add_gate(struct decode_area *area, int64_t ns, bool open)
{
	uint32_t count = area->gate_count;

	if (count && area->gates[count - 1].open == open)
		return;
	if (count == DECODE_GATES)
		memmove(&area->gates[0], &area->gates[1], --count * sizeof(area->gates[0]));
	area->gates[count] = (struct decode_gate){ .from_ns = ns, .open = open };
	area->gate_count = count + 1;
}

void decode_begin_area(struct decode_area *area, int64_t ns)
{
	area->bound_ns = ns;
	area->gate_count = 0;
	add_gate(area, INT64_MIN, false);
	add_gate(area, ns, true);
}

/* ---- rows ---- */

static void window_row(struct ts_decoder *decoder, const struct decode_area *area,
		       const struct decode_window *window, const struct ts_block_window *closed,
		       int64_t end_ns)
{
	struct ts_window_row row = ts_window_none;
	const struct ts_block_window *opened = &window->opened;

	row.start = window->start_ns;
	row.duration = closed ? TS_MAX(end_ns - window->start_ns, 0) : -1;
	row.process = area->process ? area->process->id : 0;
	if (opened->name[0])
		row.name = decode_fixed(decoder, opened->name, sizeof(opened->name));
	row.opened_by = decode_fixed(decoder, opened->cause, sizeof(opened->cause));
	row.first_step = opened->step;
	if (closed) {
		row.closed_by = decode_fixed(decoder, closed->cause, sizeof(closed->cause));
		row.last_step = closed->step;
	}
	ts_writer_add(decoder->writer, TS_TABLE_WINDOW, &row, NULL);
}

void decode_open_windows(struct ts_decoder *decoder, struct decode_area *area)
{
	for (size_t i = 0; i < area->window_count; i++)
		window_row(decoder, area, &area->windows[i], NULL, 0);
	area->window_count = 0;
}

/* ---- reporting closed windows ---- */

static void remember_closed(struct ts_decoder *decoder, const struct decode_area *area,
			    const struct decode_window *window,
			    const struct ts_block_window *closed)
{
	uint32_t waits = 0;

	if (!decoder->options.window_closed)
		return;
	if (decoder->closed_count >= DECODE_CLOSED_WINDOWS)
		memmove(&decoder->closed[0], &decoder->closed[1],
			--decoder->closed_count * sizeof(decoder->closed[0]));
	if (ts_grow_array((void **)&decoder->closed, &decoder->closed_capacity,
			  decoder->closed_count + 1, sizeof(*decoder->closed))) {
		decode_no_memory(decoder);
		return;
	}
	/* Device records arrive after completion. */
	if (window->by_target || area->calls.count)
		waits = TARGET_WAITS;
	if (area->channel && area->channel->in_window)
		waits = STREAM_WAITS;
	decoder->closed[decoder->closed_count++] = (struct decode_closed){
		.area = area->id, .waits = waits, .opened = window->opened, .closed = *closed
	};
}

void decode_closed_wait(struct ts_decoder *decoder, const struct decode_area *area, bool end)
{
	for (size_t i = 0; i < decoder->closed_count; i++) {
		struct decode_closed *closed = &decoder->closed[i];

		if (end && (!area || closed->area == area->id))
			closed->waits = 0;
		else if (!end && closed->waits)
			closed->waits--;
	}
}

void decode_closed_stream(struct ts_decoder *decoder, const struct decode_area *area)
{
	for (size_t i = 0; i < decoder->closed_count; i++)
		if (decoder->closed[i].area == area->id)
			decoder->closed[i].waits = TS_MIN(decoder->closed[i].waits, TARGET_WAITS);
}

void decode_closed_exported(struct ts_decoder *decoder, const struct ts_block_export *exported)
{
	size_t kept = 0;

	for (size_t i = 0; i < decoder->closed_count; i++) {
		const struct decode_closed *closed = &decoder->closed[i];
		const struct decode_area *area = decode_find_area(decoder, closed->area);

		if (closed->opened.serial == exported->serial && area && area->process &&
		    area->process->pid == exported->pid)
			continue;
		decoder->closed[kept++] = *closed;
	}
	decoder->closed_count = kept;
}

int decode_report_closed(struct ts_decoder *decoder)
{
	bool flushed = false;

	if (decoder->held)
		return TS_OK;
	for (size_t i = 0; i < decoder->closed_count; i++) {
		struct decode_closed *closed = &decoder->closed[i];

		if (closed->reported || closed->waits)
			continue;
		/* The file must contain the window's events. */
		if (!flushed && ts_writer_flush(decoder->writer))
			return ts_writer_status(decoder->writer, NULL);
		flushed = true;
		closed->reported = true;
		decoder->options.window_closed(decoder->options.context, closed->area,
					       &closed->opened, &closed->closed);
	}
	return TS_OK;
}

/* ---- opening and closing ---- */

static void open_window(struct ts_decoder *decoder, struct decode_area *area, bool by_target,
			const struct ts_block_window *opened, int64_t ns)
{
	/* A target that only opens windows would fill memory. */
	if (area->window_count >= DECODE_GATES ||
	    ts_grow_array((void **)&area->windows, &area->window_capacity, area->window_count + 1,
			  sizeof(*area->windows)))
		return;
	area->windows[area->window_count++] =
		(struct decode_window){ .by_target = by_target, .start_ns = ns, .opened = *opened };
}

/* The newest open window of a kind, or the one of that serial. -1: none. */
static int find_window(const struct decode_area *area, bool by_target, uint32_t serial)
{
	int found = -1;

	for (size_t i = 0; i < area->window_count; i++) {
		if (area->windows[i].by_target != by_target)
			continue;
		found = (int)i;
		if (area->windows[i].opened.serial == serial)
			break;
	}
	return found;
}

/*
 * The window that a close refers to: one of its own kind, or else of the other kind, since a target
 * closes a window after max_steps.
 */
static int find_closing(const struct decode_area *area, bool by_target, uint32_t serial)
{
	int index = find_window(area, by_target, serial);

	return index >= 0 ? index : find_window(area, !by_target, serial);
}

static void close_window(struct ts_decoder *decoder, struct decode_area *area, bool by_target,
			 const struct ts_block_window *closed, int64_t ns)
{
	int index = find_closing(area, by_target, closed->serial);

	if (index < 0)
		return;
	window_row(decoder, area, &area->windows[index], closed, ns);
	remember_closed(decoder, area, &area->windows[index], closed);
	memmove(&area->windows[index], &area->windows[index + 1],
		(--area->window_count - (size_t)index) * sizeof(area->windows[0]));
}

void decode_window_block(struct ts_decoder *decoder, struct decode_area *area,
			 const struct ts_block_window *window)
{
	int64_t ns = decode_scale(decoder, window->counter);
	bool open = window->action == TS_LIVE_WINDOW_OPEN;

	/*
	 * A target that was started for the recording was let through before the recorder saw it.
	 */
	if (open && area->gate_count == 0 && strncmp(window->cause, "start", 6) == 0)
		ns = TS_MIN(ns, area->bound_ns);
	add_gate(area, ns, open);
	if (open)
		open_window(decoder, area, false, window, ns);
	else
		close_window(decoder, area, false, window, ns);
}

/* The cause as text, as in WINDOW blocks. */
static void cause_of_record(const struct ts_live_window_record *record, char *ret_cause,
			    size_t bytes)
{
	static const char *const causes[] = {
		[TS_LIVE_CAUSE_STEP] = "step",
		[TS_LIVE_CAUSE_MAX_STEPS] = "max_steps",
		[TS_LIVE_CAUSE_NVTX] = "nvtx",
		[TS_LIVE_CAUSE_PROFILER] = "cuda-profiler-api",
	};
	const char *text = (const char *)(record + 1), *cause = NULL;
	size_t payload_bytes = record->head.words * sizeof(uint64_t) - sizeof(*record);
	uint32_t length = 0;

	if (record->cause < TS_ARRAY_SIZE(causes))
		cause = causes[record->cause];
	if (payload_bytes > sizeof(length))
		memcpy(&length, text, sizeof(length));
	/* Ignore a text that is too long for its record. */
	if (length && length <= payload_bytes - sizeof(length))
		snprintf(ret_cause, bytes, "%.*s", (int)length, text + sizeof(length));
	else
		snprintf(ret_cause, bytes, "%s", cause ? cause : "step");
}

/* Converts a time of clock 1 to the recording's counter. */
static uint64_t counter_at(const struct ts_decoder *decoder, int64_t ns)
{
	unsigned __int128 counter = (unsigned __int128)ns << 32;

	return (uint64_t)(counter / decoder->open.counter_mult);
}

void decode_window_record(struct ts_decoder *decoder, struct decode_area *area,
			  const struct ts_live_window_record *record)
{
	int64_t ns = decode_time(decoder, area, record->counter);
	struct ts_block_window window = { .action = record->action, .step = record->step };
	bool open = record->action == TS_LIVE_WINDOW_OPEN;

	cause_of_record(record, window.cause, sizeof(window.cause));
	window.counter = area->native ? record->counter : counter_at(decoder, ns);
	window.realtime_ms = (decoder->open.trace_start_ns + ns -
			      decode_scale(decoder, decoder->open.started_counter)) /
			     1000000;
	if (open && find_window(area, true, 0) < 0) {
		window.serial = TARGET_SERIAL | ++area->target_windows;
		open_window(decoder, area, true, &window, ns);
	} else if (record->action == TS_LIVE_WINDOW_CLOSE) {
		int index = find_closing(area, true, 0);

		window.serial = index >= 0 ? area->windows[index].opened.serial : 0;
		close_window(decoder, area, true, &window, ns);
	}
}
