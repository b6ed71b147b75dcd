/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of idle devices: hosts that launch too slowly, synchronization, short kernels. */
#include <inttypes.h>
#include <string.h>

#include "analyze/advice/advice.h"
#include "analyze/advice/graph_captures.h"
#include "analyze/statistics.h"

/* How many calls before the one that ended an idle stretch to search for the wait that began it. */
#define CALLS_BACK 16

static bool is_device(const struct ts_state_lane *lane)
{
	return lane->stream == TS_WORK_NONE;
}

/* Idle because of the host (host bound or dependency), with a known call that ended it. */
static bool is_host_gap(const struct ts_work *work, const struct ts_state_interval *interval)
{
	return interval->state == TS_STATE_IDLE && interval->command != TS_WORK_NONE &&
	       work->commands[interval->command].call != TS_WORK_NONE &&
	       (interval->reason == TS_REASON_HOST_BOUND ||
		interval->reason == TS_REASON_DEPENDENCY);
}

static bool waits(const struct ts_work *work, const struct ts_work_call *call)
{
	const char *name = ts_work_text(work, call->name);

	return ts_api_is_sync(call->kind) ||
	       (call->kind == TS_API_COPY && ts_api_is_blocking(name, strlen(name)));
}

/*
 * The host wait during which the device ran dry: a call of the same thread that ended inside the
 * gap.
 */
static uint32_t wait_before(const struct ts_work *work, const struct ts_state_interval *gap)
{
	uint32_t call = work->commands[gap->command].call;
	uint32_t first = work->threads[work->calls[call].thread].first_call;

	for (uint32_t back = 0; back < CALLS_BACK && call > first; back++) {
		call--;
		if (work->calls[call].end < gap->start)
			return TS_WORK_NONE;
		if (waits(work, &work->calls[call]))
			return call;
	}
	return TS_WORK_NONE;
}

/* ---- the host is too slow ---- */

struct gaps {
	struct ts_graph_captures captures;
	int64_t host_bound_ns; /* all that is host bound, as the table of `idle` has it */
	uint64_t host_bound;
	int64_t captured_ns; /* while graphs were captured */
	int64_t after_waits_ns, other_ns;
	uint64_t waits, others;
	struct ts_span longest;           /* of those that are host bound */
	struct ts_advice_sums waiting_in; /* operators around the waits */
	struct ts_advice_sums wait_calls; /* the waits; names of the states' work */
	struct ts_advice_sums busy_with;  /* operators in which the host spent the gaps */
};

static uint32_t name_around(const struct ts_work *work, uint32_t thread, int64_t time)
{
	uint32_t slice = ts_work_slice_at(work, thread, time);

	return slice == TS_WORK_NONE ? 0 : work->slices[slice].name;
}

/* Adds the time of a thread in [from, to) by innermost operator. */
static int add_host_time(struct ts_advice_sums *sums, const struct ts_work *work, uint32_t thread,
			 int64_t from, int64_t to)
{
	const struct ts_work_thread *of = &work->threads[thread];
	uint32_t slice = ts_work_slice_at(work, thread, from), next = of->first_slice;
	uint32_t end = of->first_slice + of->slice_count, high = end;

	while (next < high) {
		uint32_t middle = next + (high - next) / 2;

		if (work->slices[middle].start <= from)
			next = middle + 1;
		else
			high = middle;
	}
	while (from < to) {
		int64_t until = slice == TS_WORK_NONE ? to : TS_MIN(to, work->slices[slice].end);

		if (next < end && work->slices[next].start < until)
			until = work->slices[next].start;
		if (until > from &&
		    ts_advice_sums_add(sums, slice == TS_WORK_NONE ? 0 : work->slices[slice].name,
				       until - from))
			return TS_ENOMEM;
		from = until;
		while (slice != TS_WORK_NONE && work->slices[slice].end <= from)
			slice = work->slices[slice].parent;
		for (; next < end && work->slices[next].start <= from; next++)
			slice = work->slices[next].end > from ? next : slice;
	}
	return TS_OK;
}

/*
 * Splits a gap: at most the duration of the host's wait is blamed on the wait, since the host could
 * have issued work meanwhile. The rest is what the host did instead of issuing work. Commands and
 * calls are indices into the states' work, slices into the selected work.
 */
static int split_gap(struct gaps *gaps, const struct ts_advisor *advisor,
		     const struct ts_state_interval *gap)
{
	const struct ts_work *work = advisor->states->work;
	uint32_t thread = work->calls[work->commands[gap->command].call].thread;
	uint32_t wait = wait_before(work, gap);
	int64_t length = gap->end - gap->start, by_wait = 0;

	if (wait != TS_WORK_NONE) {
		const struct ts_work_call *call = &work->calls[wait];

		by_wait = TS_MIN(length, TS_MAX(call->end - call->start, 0));
		gaps->after_waits_ns = ts_ns_add(gaps->after_waits_ns, by_wait);
		gaps->waits++;
		if (ts_advice_sums_add(&gaps->waiting_in,
				       name_around(advisor->work, thread, call->start), by_wait) ||
		    ts_advice_sums_add(&gaps->wait_calls, call->name, by_wait))
			return TS_ENOMEM;
	}
	if (by_wait == length)
		return TS_OK;
	gaps->other_ns = ts_ns_add(gaps->other_ns, length - by_wait);
	gaps->others++;
	return add_host_time(&gaps->busy_with, advisor->work, thread, gap->start + by_wait,
			     gap->end);
}

/* What is launched during a capture does not run: that time says nothing about the launches. */
static int add_gap(struct gaps *gaps, const struct ts_advisor *advisor,
		   const struct ts_state_interval *gap)
{
	uint32_t rank = advisor->states->work->commands[gap->command].rank;
	struct ts_state_interval piece = *gap;
	int64_t from = gap->start, outside = 0;

	while (ts_graph_captures_skip(&gaps->captures, rank, &from, gap->end, &piece.start,
				      &piece.end)) {
		outside += piece.end - piece.start;
		if (split_gap(gaps, advisor, &piece))
			return TS_ENOMEM;
	}
	gaps->captured_ns = ts_ns_add(gaps->captured_ns, gap->end - gap->start - outside);
	return TS_OK;
}

/* An idle stretch has several intervals if its reason changes. */
static size_t join_gap(const struct ts_states *states, const struct ts_state_lane *lane, size_t at,
		       struct ts_state_interval *gap)
{
	*gap = states->intervals[at];
	while (++at < lane->first + lane->count &&
	       is_host_gap(states->work, &states->intervals[at]) &&
	       states->intervals[at].command == gap->command)
		gap->end = states->intervals[at].end;
	return at;
}

/* Counts what is host bound in the intervals of a gap, [from, to) of the lane's. */
static void count_host_bound(struct gaps *gaps, const struct ts_states *states, size_t from,
			     size_t to)
{
	struct ts_span whole = { INT64_MAX, INT64_MIN };
	bool found = false;

	for (; from < to; from++) {
		const struct ts_state_interval *interval = &states->intervals[from];

		if (interval->state != TS_STATE_IDLE || interval->reason != TS_REASON_HOST_BOUND)
			continue;
		found = true;
		gaps->host_bound_ns = ts_ns_add(gaps->host_bound_ns,
						ts_ns_between(interval->start, interval->end));
		whole.start = TS_MIN(whole.start, interval->start);
		whole.end = TS_MAX(whole.end, interval->end);
	}
	if (found && whole.end - whole.start > gaps->longest.end - gaps->longest.start)
		gaps->longest = whole;
	gaps->host_bound += found;
}

static int collect_lane(const struct ts_advisor *advisor, const struct ts_state_lane *lane,
			struct gaps *gaps)
{
	const struct ts_states *states = advisor->states;
	size_t at = lane->first;

	while (at < lane->first + lane->count) {
		struct ts_state_interval gap;
		size_t first = at;

		if (!is_host_gap(states->work, &states->intervals[at])) {
			count_host_bound(gaps, states, at, at + 1);
			at++;
			continue;
		}
		at = join_gap(states, lane, at, &gap);
		count_host_bound(gaps, states, first, at);
		if (add_gap(gaps, advisor, &gap))
			return ts_error_set(advisor->err, TS_ENOMEM, "no memory");
	}
	return TS_OK;
}

static int collect_gaps(const struct ts_advisor *advisor, struct gaps *gaps)
{
	int code = TS_OK;

	if (ts_graph_captures_init(&gaps->captures, advisor->states->work))
		return ts_error_set(advisor->err, TS_ENOMEM, "no memory");
	for (uint32_t i = 0; !code && i < advisor->states->lane_count; i++)
		if (is_device(&advisor->states->lanes[i]))
			code = collect_lane(advisor, &advisor->states->lanes[i], gaps);
	return code;
}

static void release_gaps(struct gaps *gaps)
{
	ts_graph_captures_release(&gaps->captures);
	ts_advice_sums_release(&gaps->wait_calls);
	ts_advice_sums_release(&gaps->waiting_in);
	ts_advice_sums_release(&gaps->busy_with);
}

/* The usual remedy, by what the host is busy with. */
static const char *remedy(const struct ts_advisor *advisor, const struct gaps *gaps,
			  const char *name)
{
	static const struct {
		const char *part, *remedy;
	} remedies[] = {
		{ "DataLoader", "use more loader workers or prefetching" },
		{ "Optimizer",
		  "use a fused or foreach optimizer, which launches far fewer kernels" },
		{ "aten::to", "convert less often between types and devices" },
		{ "aten::copy_", "copy less, or use non-blocking copies from pinned memory" },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(remedies); i++)
		if (strstr(name, remedies[i].part))
			return remedies[i].remedy;
	/* It uses graphs. */
	if (gaps->captures.count)
		return "use larger batches, or do less on the host in between";
	return advisor->words->launch_less;
}

static int advise_host_bound(struct ts_advisor *advisor, const struct gaps *gaps)
{
	const struct ts_advice_sum *largest = ts_advice_sums_largest(&gaps->busy_with);
	const char *name = largest ? ts_work_text(advisor->work, largest->name) : "";
	struct ts_text finding = { 0 }, evidence = { 0 };
	int64_t saved_ns = TS_MIN(gaps->other_ns, gaps->host_bound_ns);

	ts_text_printf(&finding, "the device starves because the host launches work too slowly; %s",
		       remedy(advisor, gaps, name));
	ts_text_printf(&evidence, "idle for %s in %s that ended with the next launch",
		       TS_ADVICE_TIME(gaps->host_bound_ns), TS_COUNTED(gaps->host_bound, "gap"));
	if (saved_ns < gaps->host_bound_ns)
		ts_text_printf(&evidence, " (%s without waits for the device%s)",
			       TS_ADVICE_TIME(saved_ns),
			       gaps->captured_ns ? " and captures of graphs" : "");
	if (largest) {
		ts_text_printf(&evidence, "; meanwhile the host was %s",
			       *name ? "in " : "outside any operator");
		ts_advice_append_name(&evidence, name);
		ts_text_printf(&evidence, " for %s", TS_ADVICE_TIME(largest->ns));
	}
	ts_text_printf(&evidence, "; the longest gap lasts %s and starts %s into the trace",
		       TS_ADVICE_TIME(gaps->longest.end - gaps->longest.start),
		       TS_ADVICE_TIME(ts_ns_sub(gaps->longest.start, advisor->result->start)));
	return ts_advise(advisor, saved_ns, "idle", &finding, &evidence);
}

/* ---- the host waits ---- */

static int advise_syncs(struct ts_advisor *advisor, const struct gaps *gaps)
{
	const struct ts_advice_sum *largest = ts_advice_sums_largest(&gaps->waiting_in);
	const char *name = largest ? ts_work_text(advisor->work, largest->name) : "";
	struct ts_text finding = { 0 }, evidence = { 0 };

	/* Outside any operator: the call itself. */
	if (!*name) {
		largest = ts_advice_sums_largest(&gaps->wait_calls);
		name = largest ? ts_work_text(advisor->states->work, largest->name) : "";
	}

	ts_text_printf(&finding, "the host waits for the device, which then goes idle; %s",
		       advisor->words->wait_less);
	ts_text_printf(&evidence, "the device was idle for %s after %s",
		       TS_ADVICE_TIME(gaps->after_waits_ns), TS_COUNTED(gaps->waits, "wait"));
	if (largest && *name) {
		ts_text_append_str(&evidence, "; mostly after waits in ");
		ts_advice_append_name(&evidence, name);
		ts_text_printf(&evidence, " (%s, %s)", TS_COUNTED(largest->count, "time"),
			       TS_ADVICE_TIME(largest->ns));
	}
	return ts_advise(advisor, gaps->after_waits_ns, "idle", &finding, &evidence);
}

/* ---- graphs are captured ---- */

static int advise_captures(struct ts_advisor *advisor, const struct gaps *gaps)
{
	struct ts_text finding = { 0 }, evidence = { 0 };

	ts_text_append_str(
		&finding,
		"the device is idle while graphs are captured, which a program does once; record after the warm-up, or capture fewer graphs");
	ts_text_printf(&evidence, "idle for %s in %s; %s were captured and did not run",
		       TS_ADVICE_TIME(gaps->captured_ns),
		       TS_COUNTED(gaps->captures.count, "capture"),
		       TS_COUNTED(gaps->captures.launches, "launch"));
	return ts_advise(advisor, gaps->captured_ns, "idle", &finding, &evidence);
}

int ts_advise_host_gaps(struct ts_advisor *advisor)
{
	struct gaps gaps = { 0 };
	int code = collect_gaps(advisor, &gaps);

	if (!code && gaps.others)
		code = advise_host_bound(advisor, &gaps);
	if (!code && gaps.waits)
		code = advise_syncs(advisor, &gaps);
	if (!code && gaps.captured_ns > 0)
		code = advise_captures(advisor, &gaps);
	release_gaps(&gaps);
	return code;
}

/* ---- launches longer than their commands ---- */

struct launches {
	int64_t pending_ns;
	uint64_t count;
	struct ts_advice_sums names;
};

static int collect_launches(const struct ts_advisor *advisor, struct launches *launches)
{
	const struct ts_states *states = advisor->states;
	const struct ts_work *work = states->work;

	for (uint32_t i = 0; i < states->lane_count; i++) {
		const struct ts_state_lane *lane = &states->lanes[i];

		for (size_t j = lane->first; is_device(lane) && j < lane->first + lane->count;
		     j++) {
			const struct ts_state_interval *interval = &states->intervals[j];
			const struct ts_work_command *command;

			if (interval->state != TS_STATE_DISPATCH_PENDING ||
			    interval->command == TS_WORK_NONE)
				continue;
			command = &work->commands[interval->command];
			if (command->end - command->start >= advisor->request->options.short_ns)
				continue;
			launches->pending_ns =
				ts_ns_add(launches->pending_ns, interval->end - interval->start);
			launches->count++;
			if (ts_advice_sums_add(&launches->names, command->name,
					       interval->end - interval->start))
				return ts_error_set(advisor->err, TS_ENOMEM, "no memory");
		}
	}
	return TS_OK;
}

static int advise_launches(struct ts_advisor *advisor, const struct launches *launches)
{
	const struct ts_advice_sum *largest = ts_advice_sums_largest(&launches->names);
	struct ts_text finding = { 0 }, evidence = { 0 };

	ts_text_printf(&finding, "short commands wait for their launches; %s",
		       advisor->words->launch_at_once);
	ts_text_printf(&evidence, "launching %s shorter than %s left the device idle for %s",
		       TS_COUNTED(launches->count, "command"),
		       TS_ADVICE_TIME(advisor->request->options.short_ns),
		       TS_ADVICE_TIME(launches->pending_ns));
	if (largest) {
		ts_text_append_str(&evidence, "; most often ");
		ts_advice_append_name(&evidence,
				      ts_work_text(advisor->states->work, largest->name));
		ts_text_printf(&evidence, " (%s)", TS_COUNTED(largest->count, "time"));
	}
	return ts_advise(advisor, launches->pending_ns, "launch-latency", &finding, &evidence);
}

int ts_advise_launch_bound(struct ts_advisor *advisor)
{
	struct launches launches = { 0 };
	int code = collect_launches(advisor, &launches);

	if (!code && launches.count)
		code = advise_launches(advisor, &launches);
	ts_advice_sums_release(&launches.names);
	return code;
}
