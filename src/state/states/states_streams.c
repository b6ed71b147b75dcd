/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intervals of a stream (docs/state.md, "A stream"): one pass over its commands by start. While a
 * command runs the stream is running; in the gaps its head command determines the wait, and before
 * the head was issued the stream is idle.
 */
#include "base/memory.h"
#include "state/states/states_internal.h"

/* ---- emitting ---- */

static void add_totals(struct ts_state_lane *lane, const struct ts_state_interval *interval)
{
	int64_t ns = ts_ns_sub(interval->end, interval->start);

	lane->total_ns[interval->state] = ts_ns_add(lane->total_ns[interval->state], ns);
	lane->reason_ns[interval->reason] = ts_ns_add(lane->reason_ns[interval->reason], ns);
}

static inline bool joins(const struct ts_state_interval *a, const struct ts_state_interval *b)
{
	return a->command == b->command && a->state == b->state && a->reason == b->reason;
}

static inline int emit(struct ts_states_build *build, int64_t start, int64_t end,
		       unsigned int state, unsigned int reason, uint32_t command)
{
	struct ts_state_interval interval = {
		.start = TS_MAX(start, build->from),
		.end = TS_MIN(end, build->to),
		.command = command,
		.state = (uint8_t)state,
		.reason = (uint8_t)reason,
	};

	return interval.start < interval.end ? ts_states_emit(build, &interval) : 0;
}

int ts_states_emit(struct ts_states_build *build, const struct ts_state_interval *interval)
{
	struct ts_states *states = build->states;
	struct ts_state_lane *lane = build->lane;

	add_totals(lane, interval);
	if (lane->count && joins(&states->intervals[states->interval_count - 1], interval)) {
		states->intervals[states->interval_count - 1].end = interval->end;
		return 0;
	}
	if (TS_UNLIKELY(states->interval_count == states->interval_capacity) &&
	    ts_grow_array((void **)&states->intervals, &states->interval_capacity,
			  states->interval_count + 1, sizeof(*states->intervals)))
		return TS_ENOMEM;
	states->intervals[states->interval_count++] = *interval;
	lane->count++;
	return 0;
}

/* ---- idle ---- */

/* The first of a thread's waits that ends after an instant; `high` if none. */
static size_t wait_after(const struct ts_state_waits *waits, size_t low, size_t high, int64_t time)
{
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (waits->spans[middle].end <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Total time of the thread's waits `first` to `last`, all of which overlap [start, end). */
static int64_t waited(const struct ts_state_span *first, const struct ts_state_span *last,
		      int64_t start, int64_t end)
{
	int64_t ns = ts_ns_add(ts_ns_sub(last->before, first->before),
			       ts_ns_sub(last->end, last->start));

	if (first->start < start)
		ns = ts_ns_sub(ns, ts_ns_sub(start, first->start));
	return last->end > end ? ts_ns_sub(ns, ts_ns_sub(last->end, end)) : ns;
}

/*
 * Splits an idle interval at the waits of the thread that issued `head`, from `first` up to `end`.
 */
static int emit_pieces(struct ts_states_build *build, int64_t start, int64_t end, uint32_t head,
		       const struct ts_state_span *first, const struct ts_state_span *behind)
{
	int rc = 0;

	for (const struct ts_state_span *span = first; !rc && span < behind; span++) {
		int64_t stop = TS_MIN(span->end, end);

		rc = emit(build, start, span->start, TS_STATE_IDLE, TS_REASON_HOST_BOUND, head);
		if (!rc)
			rc = emit(build, TS_MAX(start, span->start), stop, TS_STATE_IDLE,
				  TS_REASON_DEPENDENCY, head);
		start = stop;
	}
	return rc ? rc : emit(build, start, end, TS_STATE_IDLE, TS_REASON_HOST_BOUND, head);
}

/* Too many waits to split at each: uses the state that dominates the interval. */
static int emit_coarse(struct ts_states_build *build, int64_t start, int64_t end, uint32_t head,
		       int64_t waited_ns)
{
	unsigned int reason = waited_ns > ts_ns_sub(end, start) / 2 ? TS_REASON_DEPENDENCY
								    : TS_REASON_HOST_BOUND;

	build->states->coarse_gaps++;
	return emit(build, start, end, TS_STATE_IDLE, reason, head);
}

static int emit_host_idle(struct ts_states_build *build, int64_t start, int64_t end, uint32_t head)
{
	uint32_t call = build->work->commands[head].call;
	const struct ts_state_span *spans = build->waits.spans;
	size_t first, behind, last;
	uint32_t thread;

	if (call == TS_WORK_NONE)
		return emit(build, start, end, TS_STATE_IDLE, TS_REASON_HOST_BOUND, head);
	thread = build->work->calls[call].thread;
	last = build->waits.first[thread + 1];
	first = wait_after(&build->waits, build->waits.first[thread], last, start);
	if (first == last || spans[first].start >= end)
		return emit(build, start, end, TS_STATE_IDLE, TS_REASON_HOST_BOUND, head);
	behind = wait_after(&build->waits, first, last, end);
	if (behind < last && spans[behind].start < end)
		behind++;
	if (behind - first > build->pieces_left)
		return emit_coarse(build, start, end, head,
				   waited(&spans[first], &spans[behind - 1], start, end));
	build->pieces_left -= behind - first;
	return emit_pieces(build, start, end, head, spans + first, spans + behind);
}

/*
 * From `start` until `head` was issued, or started if that is unknown. If it is unknown when
 * `next`, the command that starts first, was issued, that one may have been in the queue all the
 * time.
 */
static int emit_idle(struct ts_states_build *build, int64_t start, int64_t end, uint32_t head,
		     uint32_t next, bool first)
{
	if (start >= end)
		return 0;
	if (first)
		return emit(build, start, end, TS_STATE_IDLE, TS_REASON_NOTHING, head);
	if (build->work->commands[next].issued == TS_ABSENT ||
	    build->work->commands[head].issued == TS_ABSENT)
		return emit(build, start, end, TS_STATE_IDLE, TS_REASON_LAUNCH_MISSING, head);
	return emit_host_idle(build, start, end, head);
}

/* ---- the stream ---- */

/*
 * Nothing runs in [start, end); `next` starts then, and `head` is the earliest issued of the
 * commands that start then or later.
 */
static int emit_gap(struct ts_states_build *build, int64_t start, int64_t end, uint32_t head,
		    uint32_t next, bool first)
{
	const struct ts_state_latency *latency = &build->states->latencies[build->lane->device];
	struct ts_command_phases phases;
	int64_t at, until;
	int rc;

	start = TS_MAX(start, build->from);
	end = TS_MIN(end, build->to);
	ts_states_phases(build->states, latency, head, &phases);
	rc = emit_idle(build, start, TS_MIN(phases.issued, end), head, next, first);
	at = TS_MAX(start, phases.issued);
	until = TS_MIN(phases.handed_on, end);
	if (!rc)
		rc = emit(build, at, until, TS_STATE_DISPATCH_PENDING, TS_REASON_NONE, head);
	at = TS_MAX(at, until);
	until = TS_MIN(phases.released, end);
	if (!rc)
		rc = emit(build, at, until, TS_STATE_WAIT, build->states->commands[head].reason,
			  head);
	at = TS_MAX(at, until);
	return rc ? rc : emit(build, at, end, TS_STATE_WAIT, TS_REASON_UNKNOWN, head);
}

static int emit_running(struct ts_states_build *build, int64_t from, int64_t end, uint32_t c)
{
	int rc = 0;

	if (build->graph && build->work->commands[c].class == TS_CLASS_COMMUNICATION) {
		int64_t joined = ts_states_joined(build->graph, c);

		rc = emit(build, from, joined, TS_STATE_RUNNING, TS_REASON_PEERS, c);
		from = TS_MAX(from, joined);
	}
	return rc ? rc : emit(build, from, end, TS_STATE_RUNNING, TS_REASON_NONE, c);
}

/* heads[i]: the earliest issued of the commands from i on. */
static int find_heads(struct ts_states_build *build, const struct ts_work_stream *stream)
{
	const struct ts_work_command *commands = build->work->commands;
	uint32_t head = stream->first_command + stream->command_count - 1;

	if (ts_grow_array((void **)&build->heads, &build->head_capacity, stream->command_count,
			  sizeof(*build->heads)))
		return TS_ENOMEM;
	for (uint32_t i = stream->command_count; i-- > 0;) {
		uint32_t c = stream->first_command + i;

		if (ts_command_issued(&commands[c]) <= ts_command_issued(&commands[head]))
			head = c;
		build->heads[i] = head;
	}
	return 0;
}

int ts_states_build_stream(struct ts_states_build *build, uint32_t s, bool in_order)
{
	const struct ts_work_stream *stream = &build->work->streams[s];
	int64_t covered = build->from;
	int rc = in_order || !stream->command_count ? 0 : find_heads(build, stream);

	for (uint32_t i = 0; !rc && i < stream->command_count; i++) {
		uint32_t c = stream->first_command + i;
		const struct ts_work_command *command = &build->work->commands[c];
		int64_t end = ts_command_end(command);

		if (command->start > covered)
			rc = emit_gap(build, covered, command->start,
				      in_order ? c : build->heads[i], c, i == 0);
		if (!rc && end > covered)
			rc = emit_running(build, TS_MAX(covered, command->start), end, c);
		covered = TS_MAX(covered, end);
	}
	return rc ? rc
		  : emit(build, covered, build->to, TS_STATE_IDLE, TS_REASON_NOTHING, TS_WORK_NONE);
}
