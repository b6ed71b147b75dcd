/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `idle`: gaps between the commands of each stream by cause (the host had not issued the next
 * command; the device's normal delay; something else), and why streams and devices did not run,
 * according to the state machine. docs/analyze.md defines the numbers.
 */
#include <math.h>

#include "analyze/idle.h"

/* ---- gaps ---- */

static const char *const gap_names[TS_GAP_KIND_COUNT] = {
	[TS_GAP_HOST_WAIT] = "host_wait",
	[TS_GAP_KERNEL_WAIT] = "kernel_wait",
	[TS_GAP_OTHER] = "other",
};

static const struct ts_result_column gap_columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER },     { "device", "device", TS_CELL_INTEGER },
	{ "stream", "stream", TS_CELL_INTEGER }, { "category", "category", TS_CELL_TEXT },
	{ "idle_us", "idle", TS_CELL_TIME },     { "ratio", "ratio", TS_CELL_REAL },
	{ "count", "count", TS_CELL_INTEGER },   { "mean_us", "mean", TS_CELL_TIME },
	{ "std_us", "std", TS_CELL_TIME },       { "min_us", "min", TS_CELL_TIME },
	{ "p25_us", "p25", TS_CELL_TIME },       { "p50_us", "p50", TS_CELL_TIME },
	{ "p75_us", "p75", TS_CELL_TIME },       { "max_us", "max", TS_CELL_TIME },
};

static void ts_stream_gaps_release(struct ts_stream_gaps *gaps)
{
	for (int kind = 0; kind < TS_GAP_KIND_COUNT; kind++)
		free(gaps->kinds[kind].ns);
}

static int add_gap(struct ts_gaps *gaps, int64_t ns)
{
	if (ts_grow_array((void **)&gaps->ns, &gaps->capacity, gaps->count + 1, sizeof(*gaps->ns)))
		return TS_ENOMEM;
	gaps->ns[gaps->count++] = (double)ns;
	gaps->sum_ns = ts_ns_add(gaps->sum_ns, ns);
	gaps->shown = true;
	return TS_OK;
}

static enum ts_gap_kind kind_of_gap(const struct ts_stream_gaps *gaps, int64_t from, int64_t ns,
				    int64_t issued)
{
	if (issued != TS_ABSENT && issued > from)
		return TS_GAP_HOST_WAIT;
	return ns < gaps->wait_ns ? TS_GAP_KERNEL_WAIT : TS_GAP_OTHER;
}

int ts_stream_gaps_add(struct ts_stream_gaps *gaps, int64_t from, int64_t to, int64_t issued)
{
	int64_t ns = ts_ns_between(from, to);

	return add_gap(&gaps->kinds[kind_of_gap(gaps, from, ns, issued)], ns);
}

static void put_kind(struct ts_result_table *table, struct ts_gaps *gaps, int64_t stream_ns)
{
	struct ts_description described;

	ts_describe(gaps->ns, gaps->count, &described);
	ts_cell_time(table, gaps->sum_ns);
	ts_cell_real(table, stream_ns ? (double)gaps->sum_ns / (double)stream_ns : NAN);
	ts_cell_integer(table, (int64_t)gaps->count);
	ts_busy_put_ns(table, described.mean);
	ts_busy_put_ns(table, described.deviation);
	ts_busy_put_ns(table, described.minimum);
	ts_busy_put_ns(table, described.q25);
	ts_busy_put_ns(table, described.median);
	ts_busy_put_ns(table, described.q75);
	ts_busy_put_ns(table, described.maximum);
}

void ts_stream_gaps_put(struct ts_stream_gaps *gaps, struct ts_result_table *table,
			const struct ts_work *work, const struct ts_work_stream *stream)
{
	int64_t stream_ns = 0;

	for (int kind = 0; kind < TS_GAP_KIND_COUNT; kind++)
		stream_ns = ts_ns_add(stream_ns, gaps->kinds[kind].sum_ns);
	gaps->all_ns = ts_ns_add(gaps->all_ns, stream_ns);
	for (int kind = 0; kind < TS_GAP_KIND_COUNT; kind++) {
		struct ts_gaps *of = &gaps->kinds[kind];

		if (of->shown) {
			ts_cell_integer(table, work->ranks[stream->rank].rank);
			ts_cell_integer(table, work->devices[stream->device].number);
			ts_cell_integer(table, stream->number);
			ts_cell_text(table, gap_names[kind]);
			put_kind(table, of, stream_ns);
		}
		of->count = 0;
		of->sum_ns = 0;
		of->shown = false;
	}
}

/* ---- commands, stream by stream ---- */

/* A gap is time in which no command of the stream ran: overlapping commands leave none. */
static int add_stream(struct ts_stream_gaps *gaps, const struct ts_work *work,
		      const struct ts_work_stream *stream)
{
	int64_t reach = INT64_MAX; /* latest end so far; INT64_MAX: nothing has run */

	for (uint32_t i = 0; i < stream->command_count; i++) {
		const struct ts_work_command *command = &work->commands[stream->first_command + i];
		int64_t end = TS_MAX(command->start, command->end);

		if (!ts_busy_counts(work, command))
			continue;
		if (command->start > reach &&
		    ts_stream_gaps_add(gaps, reach, command->start, command->issued))
			return TS_ENOMEM;
		reach = reach == INT64_MAX ? end : TS_MAX(reach, end);
	}
	return TS_OK;
}

static int put_rank(struct ts_result_table *table, const struct ts_work *work, uint32_t rank,
		    struct ts_stream_gaps *gaps)
{
	const struct ts_work_rank *of = &work->ranks[rank];

	for (uint32_t i = of->first_stream; i < of->first_stream + of->stream_count; i++) {
		if (add_stream(gaps, work, &work->streams[i]))
			return TS_ENOMEM;
		ts_stream_gaps_put(gaps, table, work, &work->streams[i]);
	}
	return TS_OK;
}

static int put_gaps(const struct ts_analyze_request *request, struct ts_result *result,
		    int64_t *ret_ns, struct ts_error *err)
{
	struct ts_result_table *table =
		ts_result_table(result, "gaps", gap_columns, TS_ARRAY_SIZE(gap_columns));
	TS_SCOPED(ts_stream_gaps) gaps = { .wait_ns = request->options.wait_ns };
	const struct ts_work *work = request->work;
	int rc = TS_OK;

	table->details = "p25_us p75_us std_us min_us p50_us";
	for (uint32_t rank = 0; rank < work->rank_count && rc == TS_OK; rank++)
		rc = work->options.rounding == TS_ROUNDING_HTA
			     ? ts_idle_put_rank_hta(table, work, rank, &gaps)
			     : put_rank(table, work, rank, &gaps);
	*ret_ns = gaps.all_ns;
	return rc ? ts_error_set(err, rc, "no memory for the gaps of a stream") : TS_OK;
}

static int run(struct ts_analyze_request *request, struct ts_result *result, struct ts_error *err)
{
	int64_t gaps_ns;
	int rc = put_gaps(request, result, &gaps_ns, err);

	if (rc == TS_OK)
		rc = ts_idle_put_causes(request, gaps_ns, result, err);
	if (rc)
		return rc;
	ts_busy_note_idle(request->work, result);
	return ts_result_status(result, err);
}

static const struct ts_option_spec options[] = {
	{
		.name = "wait",
		.type = TS_OPTION_SPEC_TIME,
		.value = "TIME",
		.doc = "a gap below this is caused by the device; default 30us",
		.offset = offsetof(struct ts_analysis_options, wait_ns),
	},
};

const struct ts_analysis ts_analysis_idle = {
	.name = "idle",
	.summary = "gaps between commands, and whether host or device caused them",
	.options = options,
	.option_count = TS_ARRAY_SIZE(options),
	.run = run,
};
