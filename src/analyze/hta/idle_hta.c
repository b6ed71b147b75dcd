/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream gaps as HTA computes them (`--rounding hta`). HTA measures from the end of the previous
 * command, so overlapping commands make negative gaps, which it sums. It merges streams of the same
 * number across devices. It treats a command whose launch is not in the trace as launched by the
 * first event of the file.
 */
#include "analyze/idle.h"

/* ---- the first event of a file ---- */

/* Candidate for the first event. Texts are numbered in the order in which the file has them. */
struct first {
	int64_t name, start;
};

static void look_for_first(struct first *first, const struct ts_batch *batch)
{
	const int64_t *names = batch->columns[TS_COLUMN_OF(slice, name)];
	const int64_t *starts = batch->columns[TS_COLUMN_OF(slice, start)];

	for (uint32_t row = 0; row < batch->rows; row++)
		if (names[row] < first->name ||
		    (names[row] == first->name && starts[row] < first->start))
			*first = (struct first){ names[row], starts[row] };
}

/*
 * Rows of a trace are sorted by time, not in file order. The first event of the file (an operator
 * or annotation in any file that Kineto wrote) is taken to be the earliest one of the name that was
 * met first.
 */
static int64_t first_slice(struct ts_reader *reader)
{
	uint64_t columns = TS_MASK_OF(slice, start) | TS_MASK_OF(slice, name);
	struct first first = { INT64_MAX, INT64_MAX };
	struct ts_batch *batch = NULL;

	if (ts_batch_new(&batch, reader, NULL))
		return TS_ABSENT;
	for (size_t chunk = 0; chunk < ts_reader_chunk_count(reader); chunk++)
		if (ts_reader_chunk(reader, chunk)->table == TS_TABLE_SLICE &&
		    ts_batch_read(batch, chunk, columns, NULL) == TS_OK)
			look_for_first(&first, batch);
	ts_batch_free(batch);
	return first.name == INT64_MAX ? TS_ABSENT : first.start;
}

static bool has_unlaunched(const struct ts_work *work, uint32_t rank)
{
	const struct ts_work_rank *of = &work->ranks[rank];

	for (uint32_t i = of->first_command; i < of->first_command + of->command_count; i++)
		if (work->commands[i].call == TS_WORK_NONE &&
		    work->commands[i].correlation != TS_ABSENT)
			return true;
	return false;
}

static bool shares_trace(const struct ts_work *work)
{
	return work->rank_count != work->trace_count;
}

/* Start of the first event, rounded. Unknown if the trace has several ranks. */
static int64_t first_event(const struct ts_work *work, uint32_t rank)
{
	int64_t base = work->ranks[rank].base_ns, start, since;

	if (!has_unlaunched(work, rank) || shares_trace(work))
		return TS_ABSENT;
	start = first_slice(work->readers[work->ranks[rank].trace]);
	if (start == TS_ABSENT || __builtin_sub_overflow(start, base, &since) ||
	    since > INT64_MAX - 1000)
		return start;
	return base + (since + (since > 0 ? 999 : 0)) / 1000 * 1000;
}

/* ---- commands, stream by stream ---- */

struct position {
	int64_t number, start;
	uint32_t command;
};

static int by_position(const void *a, const void *b)
{
	const struct position *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->command < y->command ? -1 : x->command > y->command;
}

static size_t fill_positions(struct position *positions, const struct ts_work *work, uint32_t rank)
{
	const struct ts_work_rank *of = &work->ranks[rank];
	size_t count = 0;

	for (uint32_t i = of->first_command; i < of->first_command + of->command_count; i++) {
		const struct ts_work_command *command = &work->commands[i];

		if (ts_busy_counts(work, command))
			positions[count++] =
				(struct position){ work->streams[command->stream].number,
						   command->start, i };
	}
	ts_sort(positions, count, sizeof(*positions), by_position);
	return count;
}

static bool is_same_stream(const struct position *a, const struct position *b)
{
	return a->number == b->number;
}

static int add_gap(struct ts_stream_gaps *gaps, const struct ts_work *work,
		   const struct position *before, const struct position *position,
		   int64_t unlaunched)
{
	const struct ts_work_command *command = &work->commands[position->command];
	int64_t issued = TS_ABSENT;

	if (command->call != TS_WORK_NONE)
		issued = work->calls[command->call].start;
	else if (command->correlation != TS_ABSENT)
		issued = unlaunched;

	return ts_stream_gaps_add(gaps, work->commands[before->command].end, command->start,
				  issued);
}

int ts_idle_put_rank_hta(struct ts_result_table *table, const struct ts_work *work, uint32_t rank,
			 struct ts_stream_gaps *gaps)
{
	TS_AUTO_FREE struct position *positions =
		ts_alloc_array(work->ranks[rank].command_count, sizeof(*positions));
	int64_t unlaunched = first_event(work, rank);
	size_t count;

	if (!positions)
		return TS_ENOMEM;
	count = fill_positions(positions, work, rank);
	for (size_t i = 0; i < count; i++) {
		/* The first command follows no gap but makes a row. */
		if (i == 0 || !is_same_stream(&positions[i], &positions[i - 1]))
			gaps->kinds[TS_GAP_OTHER].shown = true;
		else if (add_gap(gaps, work, &positions[i - 1], &positions[i], unlaunched))
			return TS_ENOMEM;
		if (i + 1 == count || !is_same_stream(&positions[i], &positions[i + 1]))
			ts_stream_gaps_put(
				gaps, table, work,
				&work->streams[work->commands[positions[i].command].stream]);
	}
	return TS_OK;
}
