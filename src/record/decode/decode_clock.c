/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts event times to clock 1 of the trace: the recording's counter at its nominal rate.
 * clock_sync rows, from the recorder's anchors, map it to trace time. Trace time is CLOCK_REALTIME
 * at the start of the recording plus CLOCK_MONOTONIC since then; clock 2 is CLOCK_REALTIME. Host
 * clocks are converted here with the anchors known so far. Device clocks are not: each has its own
 * clock_sync rows.
 */
#include "record/decode/decode_internal.h"

#include <stdio.h>

enum { CLOCK_REAL = 2 };

__extension__ typedef __int128 wide_int;

int64_t decode_scale(const struct ts_decoder *decoder, uint64_t counter)
{
	unsigned __int128 ns = (unsigned __int128)counter * decoder->open.counter_mult >> 32;

	return ns < DECODE_LATEST_NS ? (int64_t)ns : DECODE_LATEST_NS;
}

static int64_t clamp(wide_int ns)
{
	return ns < 0 ? 0 : ns < DECODE_LATEST_NS ? (int64_t)ns : DECODE_LATEST_NS;
}

/* a.y + (x - a.x) * (b.y - a.y) / (b.x - a.x), for b.x > a.x; all below 2^62. */
static wide_int interpolate(int64_t x, int64_t ax, int64_t ay, int64_t bx, int64_t by)
{
	return (wide_int)ay + ((wide_int)x - ax) * ((wide_int)by - ay) / ((wide_int)bx - ax);
}

int64_t decode_monotonic(const struct ts_decoder *decoder, int64_t monotonic_ns)
{
	const struct ts_live_anchor *a, *b;
	int64_t at = clamp(monotonic_ns);
	uint32_t i = decoder->anchor_count;

	if (decoder->open.clock == TS_LIVE_CLOCK_MONOTONIC)
		return at;
	if (i < 2)
		return clamp((wide_int)at - decoder->open.started_monotonic_ns +
			     decode_scale(decoder, decoder->open.started_counter));
	/* The two anchors around the time; outside, the nearest two are extrapolated. */
	for (i--; i > 1 && decoder->anchors[i - 1].anchor.monotonic_ns > at; i--)
		;
	a = &decoder->anchors[i - 1].anchor;
	b = &decoder->anchors[i].anchor;
	return clamp(interpolate(at, a->monotonic_ns, decode_scale(decoder, a->counter),
				 b->monotonic_ns, decode_scale(decoder, b->counter)));
}

int64_t decode_other_time(const struct ts_decoder *decoder, const struct decode_area *area,
			  uint64_t counter)
{
	const struct ts_live_control *control = &area->about->control;
	wide_int since;

	if (control->clock == TS_LIVE_CLOCK_MONOTONIC)
		return decode_monotonic(decoder, counter < (uint64_t)DECODE_LATEST_NS
							 ? (int64_t)counter
							 : DECODE_LATEST_NS);
	/* A counter in a CLOCK_MONOTONIC recording: use the rate that the target reports. */
	since = (wide_int)counter - control->created.counter;
	since = since * 1000000000 / (control->counter_hz ? control->counter_hz : 1000000000);
	return clamp(since + control->created.monotonic_ns);
}

/* ---- rows ---- */

static int64_t trace_time(const struct ts_decoder *decoder, int64_t monotonic_ns)
{
	return decoder->open.trace_start_ns + (monotonic_ns - decoder->open.started_monotonic_ns);
}

static void sync_row(struct ts_decoder *decoder, uint32_t clock, int64_t time, int64_t reference,
		     int64_t uncertainty_ns, const char *method, unsigned int generation)
{
	struct ts_clock_sync_row row = ts_clock_sync_none;

	row.generation = generation;
	row.clock = clock;
	row.time = time;
	row.reference = reference;
	row.uncertainty_ns = uncertainty_ns;
	row.method = decode_text(decoder, method);
	ts_writer_add(decoder->writer, TS_TABLE_CLOCK_SYNC, &row, NULL);
}

static void anchor_rows(struct ts_decoder *decoder, const struct ts_block_clock *clock)
{
	const struct ts_live_anchor *anchor = &clock->anchor;
	int64_t reference = trace_time(decoder, anchor->monotonic_ns);

	sync_row(decoder, DECODE_CLOCK_OF_EVENTS, decode_scale(decoder, anchor->counter), reference,
		 clock->uncertainty_ns, "counter/monotonic", 0);
	if (anchor->realtime_ns > 0)
		sync_row(decoder, CLOCK_REAL, anchor->realtime_ns, reference, clock->uncertainty_ns,
			 "realtime/monotonic", 0);
}

/* The OPEN block's clock as an anchor. */
static struct ts_block_clock first_anchor(const struct ts_decoder *decoder)
{
	return (struct ts_block_clock){
		.anchor = { .counter = decoder->open.started_counter,
			    .monotonic_ns = decoder->open.started_monotonic_ns,
			    .realtime_ns = decoder->open.trace_start_ns },
		.uncertainty_ns = 1000,
	};
}

void decode_clock_rows(struct ts_decoder *decoder)
{
	struct ts_block_clock first = first_anchor(decoder);

	anchor_rows(decoder, &first);
	for (uint32_t i = 0; i < decoder->anchor_count; i++)
		anchor_rows(decoder, &decoder->anchors[i]);
}

static bool is_in_range(const struct ts_live_anchor *anchor)
{
	return anchor->monotonic_ns > 0 && anchor->monotonic_ns < DECODE_LATEST_NS &&
	       anchor->realtime_ns >= 0 && anchor->realtime_ns < DECODE_LATEST_NS;
}

void decode_add_anchor(struct ts_decoder *decoder, const struct ts_block_clock *clock)
{
	const struct ts_live_anchor *anchor = &clock->anchor, *newest;
	uint32_t count = decoder->anchor_count;

	newest = count ? &decoder->anchors[count - 1].anchor : NULL;
	/* From another boot, or damaged: it would break the order of times. */
	if (!is_in_range(anchor) || anchor->counter < decoder->open.started_counter ||
	    anchor->monotonic_ns < decoder->open.started_monotonic_ns ||
	    (newest &&
	     (anchor->counter <= newest->counter || anchor->monotonic_ns <= newest->monotonic_ns)))
		return;
	if (count == DECODE_ANCHORS)
		memmove(&decoder->anchors[0], &decoder->anchors[1],
			--count * sizeof(decoder->anchors[0]));
	decoder->anchors[count] = *clock;
	decoder->anchor_count = count + 1;
	decoder->now_ns = TS_MAX(decoder->now_ns, decode_scale(decoder, anchor->counter));
	anchor_rows(decoder, clock);
	decode_write_points(decoder, false);
}

/*
 * An area older than the recording has events before the first anchor. The target's own anchor is
 * used for them, if plausible: it must not change the times of others by more than a thousandth.
 */
void decode_area_anchor(struct ts_decoder *decoder, const struct decode_area *area)
{
	const struct ts_live_anchor *created = &area->about->control.created;
	struct ts_block_clock clock = { .anchor = *created, .uncertainty_ns = 1000 };
	int64_t elapsed, counted;

	if (!area->native || !is_in_range(created) ||
	    created->counter >= decoder->open.started_counter ||
	    created->monotonic_ns >= decoder->open.started_monotonic_ns)
		return;
	elapsed = decoder->open.started_monotonic_ns - created->monotonic_ns;
	counted = decode_scale(decoder, decoder->open.started_counter) -
		  decode_scale(decoder, created->counter);
	if (counted - elapsed > elapsed / 1000 + 1000000 ||
	    elapsed - counted > elapsed / 1000 + 1000000)
		return;
	anchor_rows(decoder, &clock);
}

/* ---- clocks of devices ---- */

/* A measured point takes precedence over an assumed one. */
enum { GENERATION_GUESSED = 0, GENERATION_MEASURED = 1 };
/* Points closer than this add no information. */
#define POINT_DISTANCE_NS 1000000

int64_t decode_trace_time(const struct ts_decoder *decoder, int64_t ns)
{
	struct ts_block_clock first = first_anchor(decoder);
	const struct ts_live_anchor *a = &first.anchor, *b = NULL;
	int64_t at, next;

	for (uint32_t i = 0; i < decoder->anchor_count && !b; i++) {
		if (decode_scale(decoder, decoder->anchors[i].anchor.counter) <= ns)
			a = &decoder->anchors[i].anchor;
		else
			b = &decoder->anchors[i].anchor;
	}
	at = decode_scale(decoder, a->counter);
	if (!b || ns < at)
		return trace_time(decoder, a->monotonic_ns) + (ns - at);
	next = decode_scale(decoder, b->counter);
	return (int64_t)interpolate(ns, at, trace_time(decoder, a->monotonic_ns), next,
				    trace_time(decoder, b->monotonic_ns));
}

static void point_row(struct ts_decoder *decoder, const struct decode_waiting_point *waiting)
{
	sync_row(decoder, waiting->clock, waiting->point.device_ns,
		 decode_trace_time(decoder, waiting->point.host_ns), waiting->point.uncertainty_ns,
		 waiting->method, waiting->is_guessed ? GENERATION_GUESSED : GENERATION_MEASURED);
}

void decode_write_points(struct ts_decoder *decoder, bool all)
{
	int64_t known =
		decoder->anchor_count
			? decode_scale(decoder,
				       decoder->anchors[decoder->anchor_count - 1].anchor.counter)
			: INT64_MIN;
	size_t kept = 0;

	for (size_t i = 0; i < decoder->point_count; i++) {
		if (all || decoder->points[i].point.host_ns <= known)
			point_row(decoder, &decoder->points[i]);
		else
			decoder->points[kept++] = decoder->points[i];
	}
	decoder->point_count = kept;
}

void decode_assume_points(struct ts_decoder *decoder)
{
	for (size_t i = 0; i < decoder->point_count; i++) {
		struct decode_waiting_point assumed = decoder->points[i];

		if (!assumed.is_first)
			continue;
		decoder->points[i].is_first = false;
		assumed.is_guessed = true;
		point_row(decoder, &assumed);
	}
}

bool decode_put_point(struct ts_decoder *decoder, const struct decode_waiting_point *waiting)
{
	if (decoder->point_count >= DECODE_CLOCK_POINTS)
		decode_write_points(decoder, true);
	if (ts_grow_array((void **)&decoder->points, &decoder->point_capacity,
			  decoder->point_count + 1, sizeof(*decoder->points))) {
		decode_no_memory(decoder);
		return false;
	}
	decoder->points[decoder->point_count++] = *waiting;
	return true;
}

/*
 * The nominal rate of the counter is off by some millionths: a row is exact once a later anchor is
 * known.
 */
static void wait_for_anchor(struct ts_decoder *decoder, const struct decode_device_clock *clock,
			    const struct decode_clock_point *point, bool is_first)
{
	struct decode_waiting_point waiting = { .clock = clock->id,
						.point = *point,
						.is_guessed = clock->is_guessed,
						.is_first = is_first };

	memcpy(waiting.method, clock->method, sizeof(waiting.method));
	decode_put_point(decoder, &waiting);
}

bool decode_is_point(const struct decode_clock_point *point)
{
	return point->host_ns >= 0 && point->host_ns <= DECODE_LATEST_NS &&
	       point->device_ns > -DECODE_LATEST_NS && point->device_ns < DECODE_LATEST_NS &&
	       point->uncertainty_ns >= 0 && point->uncertainty_ns < DECODE_LATEST_NS;
}

void decode_add_point(struct ts_decoder *decoder, struct decode_device_clock *clock,
		      const struct decode_clock_point *point, const char *method,
		      size_t method_bytes, bool is_guessed)
{
	const struct decode_clock_point *newest = clock->count ? &clock->points[clock->count - 1]
							       : NULL;
	bool is_first;

	/* Both clocks must advance; a flood of points from a target must not fill the trace. */
	if (!decode_is_point(point) ||
	    (newest && !clock->is_guessed &&
	     (is_guessed || point->host_ns < newest->host_ns + POINT_DISTANCE_NS ||
	      point->device_ns <= newest->device_ns)))
		return;
	if (!clock->id)
		clock->id = decoder->next_clock++;
	if (clock->is_guessed)
		clock->count = 0;
	clock->is_guessed = is_guessed;
	snprintf(clock->method, sizeof(clock->method), "%.*s", (int)TS_MIN(method_bytes, 31),
		 method);
	clock->method[ts_utf8_valid_prefix(clock->method, strlen(clock->method))] = 0;
	if (clock->count == TS_ARRAY_SIZE(clock->points))
		clock->points[0] = clock->points[--clock->count];
	clock->points[clock->count++] = *point;
	is_first = clock->count == 1 || clock->epoch != decoder->epoch;
	clock->epoch = decoder->epoch;
	wait_for_anchor(decoder, clock, point, is_first);
}

void decode_use_clock(struct ts_decoder *decoder, struct decode_device_clock *clock)
{
	if (TS_LIKELY(clock->epoch == decoder->epoch))
		return;
	for (uint32_t i = 0; i < clock->count; i++)
		wait_for_anchor(decoder, clock, &clock->points[i], i == 0);
	clock->epoch = decoder->epoch;
}

int64_t decode_host_time(const struct decode_device_clock *clock, int64_t device_ns)
{
	const struct decode_clock_point *near;

	if (!clock->count || clock->is_guessed || device_ns == TS_ABSENT)
		return TS_ABSENT;
	near = &clock->points[clock->count - 1];
	if (clock->count > 1 && device_ns < near->device_ns)
		near--;
	return clamp((wide_int)device_ns - near->device_ns + near->host_ns);
}
