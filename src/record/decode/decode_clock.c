/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of events into clock 1 of the trace: the recording's counter at its nominal rate.
 * clock_sync rows, from the recorder's anchors, tie it to trace time, so times in chunks need no
 * better rate. Trace time is CLOCK_REALTIME at the begin of the recording plus CLOCK_MONOTONIC
 * since then; clock 2 is CLOCK_REALTIME. Clocks of hosts are converted here, by the anchors known
 * so far. Those of devices are not: each has rows of its own.
 */
#include "record/decode/decode_internal.h"

#include <stdio.h>

enum { CLOCK_REAL = 2 };

__extension__ typedef __int128 wide_int;

int64_t encode_scale(const struct ts_encoder *encoder, uint64_t counter)
{
	unsigned __int128 ns = (unsigned __int128)counter * encoder->open.counter_mult >> 32;

	return ns < ENCODE_LATEST_NS ? (int64_t)ns : ENCODE_LATEST_NS;
}

static int64_t clamp(wide_int ns)
{
	return ns < 0 ? 0 : ns < ENCODE_LATEST_NS ? (int64_t)ns : ENCODE_LATEST_NS;
}

/* a.y + (x - a.x) * (b.y - a.y) / (b.x - a.x), for b.x > a.x; all below 2^62. */
static wide_int interpolate(int64_t x, int64_t ax, int64_t ay, int64_t bx, int64_t by)
{
	return (wide_int)ay + ((wide_int)x - ax) * ((wide_int)by - ay) / ((wide_int)bx - ax);
}

int64_t encode_monotonic(const struct ts_encoder *encoder, int64_t monotonic_ns)
{
	const struct ts_live_anchor *a, *b;
	int64_t at = clamp(monotonic_ns);
	uint32_t i = encoder->anchor_count;

	if (encoder->open.clock == TS_LIVE_CLOCK_MONOTONIC)
		return at;
	if (i < 2)
		return clamp((wide_int)at - encoder->open.started_monotonic_ns +
			     encode_scale(encoder, encoder->open.started_counter));
	/* The two anchors around it; beyond them the rate of the nearest two goes on. */
	for (i--; i > 1 && encoder->anchors[i - 1].anchor.monotonic_ns > at; i--)
		;
	a = &encoder->anchors[i - 1].anchor;
	b = &encoder->anchors[i].anchor;
	return clamp(interpolate(at, a->monotonic_ns, encode_scale(encoder, a->counter),
				 b->monotonic_ns, encode_scale(encoder, b->counter)));
}

int64_t encode_foreign_time(const struct ts_encoder *encoder, const struct encode_area *area,
			    uint64_t counter)
{
	const struct ts_live_control *control = &area->about->control;
	wide_int since;

	if (control->clock == TS_LIVE_CLOCK_MONOTONIC)
		return encode_monotonic(encoder, counter < (uint64_t)ENCODE_LATEST_NS
							 ? (int64_t)counter
							 : ENCODE_LATEST_NS);
	/*
	 * A counter, where the recording has CLOCK_MONOTONIC: by what the target says of its rate.
	 */
	since = (wide_int)counter - control->created.counter;
	since = since * 1000000000 / (control->counter_hz ? control->counter_hz : 1000000000);
	return clamp(since + control->created.monotonic_ns);
}

/* ---- rows ---- */

static int64_t trace_time(const struct ts_encoder *encoder, int64_t monotonic_ns)
{
	return encoder->open.trace_start_ns + (monotonic_ns - encoder->open.started_monotonic_ns);
}

static void sync_row(struct ts_encoder *encoder, uint32_t clock, int64_t time, int64_t reference,
		     int64_t uncertainty_ns, const char *method, unsigned int generation)
{
	struct ts_clock_sync_row row = ts_clock_sync_none;

	row.generation = generation;
	row.clock = clock;
	row.time = time;
	row.reference = reference;
	row.uncertainty_ns = uncertainty_ns;
	row.method = encode_text(encoder, method);
	ts_writer_add(encoder->writer, TS_TABLE_CLOCK_SYNC, &row, NULL);
}

static void anchor_rows(struct ts_encoder *encoder, const struct ts_block_clock *clock)
{
	const struct ts_live_anchor *anchor = &clock->anchor;
	int64_t reference = trace_time(encoder, anchor->monotonic_ns);

	sync_row(encoder, ENCODE_CLOCK_OF_EVENTS, encode_scale(encoder, anchor->counter), reference,
		 clock->uncertainty_ns, "counter/monotonic", 0);
	if (anchor->realtime_ns > 0)
		sync_row(encoder, CLOCK_REAL, anchor->realtime_ns, reference, clock->uncertainty_ns,
			 "realtime/monotonic", 0);
}

/* What the OPEN block says, as an anchor. */
static struct ts_block_clock first_anchor(const struct ts_encoder *encoder)
{
	return (struct ts_block_clock){
		.anchor = { .counter = encoder->open.started_counter,
			    .monotonic_ns = encoder->open.started_monotonic_ns,
			    .realtime_ns = encoder->open.trace_start_ns },
		.uncertainty_ns = 1000,
	};
}

void encode_clock_rows(struct ts_encoder *encoder)
{
	struct ts_block_clock first = first_anchor(encoder);

	anchor_rows(encoder, &first);
	for (uint32_t i = 0; i < encoder->anchor_count; i++)
		anchor_rows(encoder, &encoder->anchors[i]);
}

static bool is_in_range(const struct ts_live_anchor *anchor)
{
	return anchor->monotonic_ns > 0 && anchor->monotonic_ns < ENCODE_LATEST_NS &&
	       anchor->realtime_ns >= 0 && anchor->realtime_ns < ENCODE_LATEST_NS;
}

void encode_add_anchor(struct ts_encoder *encoder, const struct ts_block_clock *clock)
{
	const struct ts_live_anchor *anchor = &clock->anchor, *newest;
	uint32_t count = encoder->anchor_count;

	newest = count ? &encoder->anchors[count - 1].anchor : NULL;
	/* Of another boot, or damaged: it would turn the map of times upside down. */
	if (!is_in_range(anchor) || anchor->counter < encoder->open.started_counter ||
	    anchor->monotonic_ns < encoder->open.started_monotonic_ns ||
	    (newest &&
	     (anchor->counter <= newest->counter || anchor->monotonic_ns <= newest->monotonic_ns)))
		return;
	if (count == ENCODE_ANCHORS)
		memmove(&encoder->anchors[0], &encoder->anchors[1],
			--count * sizeof(encoder->anchors[0]));
	encoder->anchors[count] = *clock;
	encoder->anchor_count = count + 1;
	encoder->now_ns = TS_MAX(encoder->now_ns, encode_scale(encoder, anchor->counter));
	anchor_rows(encoder, clock);
	encode_tell_points(encoder, false);
}

/*
 * An area that is older than the recording has events from before its first anchor. The target's
 * own anchor of then helps, if it is credible: it must not bend the times of others by more than a
 * thousandth.
 */
void encode_area_anchor(struct ts_encoder *encoder, const struct encode_area *area)
{
	const struct ts_live_anchor *created = &area->about->control.created;
	struct ts_block_clock clock = { .anchor = *created, .uncertainty_ns = 1000 };
	int64_t elapsed, counted;

	if (!area->native || !is_in_range(created) ||
	    created->counter >= encoder->open.started_counter ||
	    created->monotonic_ns >= encoder->open.started_monotonic_ns)
		return;
	elapsed = encoder->open.started_monotonic_ns - created->monotonic_ns;
	counted = encode_scale(encoder, encoder->open.started_counter) -
		  encode_scale(encoder, created->counter);
	if (counted - elapsed > elapsed / 1000 + 1000000 ||
	    elapsed - counted > elapsed / 1000 + 1000000)
		return;
	anchor_rows(encoder, &clock);
}

/* ---- clocks of devices ---- */

/* A measured point counts for more than what was only assumed. */
enum { GENERATION_GUESSED = 0, GENERATION_MEASURED = 1 };
/* Points nearer to each other say nothing new. */
#define POINT_DISTANCE_NS 1000000

int64_t encode_trace_time(const struct ts_encoder *encoder, int64_t ns)
{
	struct ts_block_clock first = first_anchor(encoder);
	const struct ts_live_anchor *a = &first.anchor, *b = NULL;
	int64_t at, next;

	for (uint32_t i = 0; i < encoder->anchor_count && !b; i++) {
		if (encode_scale(encoder, encoder->anchors[i].anchor.counter) <= ns)
			a = &encoder->anchors[i].anchor;
		else
			b = &encoder->anchors[i].anchor;
	}
	at = encode_scale(encoder, a->counter);
	if (!b || ns < at)
		return trace_time(encoder, a->monotonic_ns) + (ns - at);
	next = encode_scale(encoder, b->counter);
	return (int64_t)interpolate(ns, at, trace_time(encoder, a->monotonic_ns), next,
				    trace_time(encoder, b->monotonic_ns));
}

static void point_row(struct ts_encoder *encoder, const struct encode_waiting_point *waiting)
{
	sync_row(encoder, waiting->clock, waiting->point.device_ns,
		 encode_trace_time(encoder, waiting->point.host_ns), waiting->point.uncertainty_ns,
		 waiting->method, waiting->is_guessed ? GENERATION_GUESSED : GENERATION_MEASURED);
}

void encode_tell_points(struct ts_encoder *encoder, bool all)
{
	int64_t known =
		encoder->anchor_count
			? encode_scale(encoder,
				       encoder->anchors[encoder->anchor_count - 1].anchor.counter)
			: INT64_MIN;
	size_t kept = 0;

	for (size_t i = 0; i < encoder->point_count; i++) {
		if (all || encoder->points[i].point.host_ns <= known)
			point_row(encoder, &encoder->points[i]);
		else
			encoder->points[kept++] = encoder->points[i];
	}
	encoder->point_count = kept;
}

void encode_assume_points(struct ts_encoder *encoder)
{
	for (size_t i = 0; i < encoder->point_count; i++) {
		struct encode_waiting_point assumed = encoder->points[i];

		if (!assumed.is_first)
			continue;
		encoder->points[i].is_first = false;
		assumed.is_guessed = true;
		point_row(encoder, &assumed);
	}
}

bool encode_put_point(struct ts_encoder *encoder, const struct encode_waiting_point *waiting)
{
	if (encoder->point_count >= ENCODE_CLOCK_POINTS)
		encode_tell_points(encoder, true);
	if (ts_grow_array((void **)&encoder->points, &encoder->point_capacity,
			  encoder->point_count + 1, sizeof(*encoder->points))) {
		encode_no_memory(encoder);
		return false;
	}
	encoder->points[encoder->point_count++] = *waiting;
	return true;
}

/*
 * The nominal rate of the counter is some millionths off: a row is exact once an anchor lies behind
 * it.
 */
static void wait_for_anchor(struct ts_encoder *encoder, const struct encode_device_clock *clock,
			    const struct encode_clock_point *point, bool is_first)
{
	struct encode_waiting_point waiting = { .clock = clock->id,
						.point = *point,
						.is_guessed = clock->is_guessed,
						.is_first = is_first };

	memcpy(waiting.method, clock->method, sizeof(waiting.method));
	encode_put_point(encoder, &waiting);
}

bool encode_is_point(const struct encode_clock_point *point)
{
	return point->host_ns >= 0 && point->host_ns <= ENCODE_LATEST_NS &&
	       point->device_ns > -ENCODE_LATEST_NS && point->device_ns < ENCODE_LATEST_NS &&
	       point->uncertainty_ns >= 0 && point->uncertainty_ns < ENCODE_LATEST_NS;
}

void encode_add_point(struct ts_encoder *encoder, struct encode_device_clock *clock,
		      const struct encode_clock_point *point, const char *method,
		      size_t method_bytes, bool is_guessed)
{
	const struct encode_clock_point *newest = clock->count ? &clock->points[clock->count - 1]
							       : NULL;
	bool is_first;

	/* Both clocks go on; a target that floods us with points fills no trace. */
	if (!encode_is_point(point) ||
	    (newest && !clock->is_guessed &&
	     (is_guessed || point->host_ns < newest->host_ns + POINT_DISTANCE_NS ||
	      point->device_ns <= newest->device_ns)))
		return;
	if (!clock->id)
		clock->id = encoder->next_clock++;
	if (clock->is_guessed)
		clock->count = 0;
	clock->is_guessed = is_guessed;
	snprintf(clock->method, sizeof(clock->method), "%.*s", (int)TS_MIN(method_bytes, 31),
		 method);
	clock->method[ts_utf8_valid_prefix(clock->method, strlen(clock->method))] = 0;
	if (clock->count == TS_ARRAY_SIZE(clock->points))
		clock->points[0] = clock->points[--clock->count];
	clock->points[clock->count++] = *point;
	is_first = clock->count == 1 || clock->epoch != encoder->epoch;
	clock->epoch = encoder->epoch;
	wait_for_anchor(encoder, clock, point, is_first);
}

void encode_use_clock(struct ts_encoder *encoder, struct encode_device_clock *clock)
{
	if (TS_LIKELY(clock->epoch == encoder->epoch))
		return;
	for (uint32_t i = 0; i < clock->count; i++)
		wait_for_anchor(encoder, clock, &clock->points[i], i == 0);
	clock->epoch = encoder->epoch;
}

int64_t encode_host_time(const struct encode_device_clock *clock, int64_t device_ns)
{
	const struct encode_clock_point *near;

	if (!clock->count || clock->is_guessed || device_ns == TS_ABSENT)
		return TS_ABSENT;
	near = &clock->points[clock->count - 1];
	if (clock->count > 1 && device_ns < near->device_ns)
		near--;
	return clamp((wide_int)device_ns - near->device_ns + near->host_ns);
}
