/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps of a job: spans that are named like one, and marks of TS_STEP(), which last until the next
 * mark of their thread, or until the recording window closes.
 */
#include <string.h>

#include "base/ns.h"
#include "state/work/work_internal.h"
#include "trace/step_mark.h"

#define PROFILER_STEP "ProfilerStep"

/* ---- names ---- */

/* A decimal number of at most 18 digits, and nothing else. */
static bool parse_number(const char *text, size_t length, int64_t *ret_number)
{
	int64_t number = 0;

	if (length == 0 || length > 18)
		return false;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		number = number * 10 + (text[i] - '0');
	}
	*ret_number = number;
	return true;
}

bool ts_work_parse_step(const struct ts_work_options *options, const char *name, size_t length,
			int64_t *ret_number)
{
	const char *span = options->step_span ? options->step_span : PROFILER_STEP "#";
	size_t skip = strlen(span);

	if (length < skip || memcmp(name, span, skip) != 0)
		return false;
	if (options->step_span && length == skip) {
		*ret_number = TS_ABSENT;
		return true;
	}
	if (options->step_span && strchr(" #_:-=", name[skip]))
		skip++;
	return parse_number(name + skip, length - skip, ret_number);
}

const char *ts_work_step_name(const struct ts_work *work)
{
	return work->options.step_span ? work->options.step_span : PROFILER_STEP;
}

bool ts_work_is_step(const struct ts_work *work, const struct ts_work_slice *slice)
{
	const char *name = ts_work_text(work, slice->name);
	int64_t number;

	return slice->class != TS_SLICE_GPU_ANNOTATION &&
	       ts_work_parse_step(&work->options, name, strlen(name), &number);
}

/* ---- marks ---- */

static int add_mark(struct ts_work *work, const struct ts_mark_row *mark, uint32_t clock,
		    int64_t number)
{
	uint32_t thread = ts_work_thread(work, mark->thread, clock);
	struct ts_work_step *step = TS_WORK_ADD(work, steps, step);
	int64_t end;

	if (thread == TS_WORK_NONE || !step)
		return TS_ENOMEM;
	step->thread = thread;
	step->rank = work->threads[thread].rank;
	step->number = number;
	step->is_mark = true;
	end = ts_work_window_end(work->load, mark->thread, mark->start, &step->is_cut);
	ts_work_times(work, step->rank, mark->start,
		      end == INT64_MAX ? 0 : ts_ns_between(mark->start, end), &step->start,
		      &step->end);
	if (end == INT64_MAX)
		step->end = INT64_MAX;
	ts_work_extend(&work->ranks[step->rank], step->start);
	return TS_OK;
}

int ts_work_load_marks(struct ts_work *work, const struct ts_batch *batch, uint64_t first,
		       uint32_t clock)
{
	(void)first;
	for (uint32_t row = 0; row < batch->rows; row++) {
		const int64_t *values =
			batch->arg_values ? batch->arg_values + batch->arg_offsets[row] : NULL;
		struct ts_mark_row mark;
		int64_t number;

		ts_batch_row(batch, row, &mark);
		if (ts_step_mark(work->load->reader, &mark, values, &number) &&
		    add_mark(work, &mark, clock, number))
			return TS_ENOMEM;
	}
	return TS_OK;
}

/* ---- steps of a rank ---- */

/*
 * A mark's step, which ends with its window so far, ends with the next one of its thread, the last
 * one with the rank's rows. `nexts` has for each thread the start of the step that follows;
 * TS_ABSENT: none.
 */
static void close_marks(struct ts_work_step *steps, uint32_t count, int64_t rank_end,
			int64_t *nexts)
{
	for (uint32_t i = count; i-- > 0;) {
		int64_t *next = &nexts[steps[i].thread];
		int64_t end = *next == TS_ABSENT ? TS_MAX(rank_end, steps[i].start) : *next;

		/* Whether the last one is complete cannot be known. */
		steps[i].is_cut &= *next != TS_ABSENT && steps[i].end < end;
		steps[i].end = TS_MIN(steps[i].end, end);
		*next = steps[i].start;
	}
}

/* Keeps the spans of a rank, or its marks if there are no spans. Returns how many. */
static uint32_t choose_kind(struct ts_work_step *steps, uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++)
		if (!steps[i].is_mark)
			steps[kept++] = steps[i];
	return kept ? kept : count;
}

static uint32_t finish_rank(struct ts_work_rank *rank, struct ts_work_step *steps, uint32_t count,
			    int64_t *nexts)
{
	count = choose_kind(steps, count);
	for (uint32_t i = 0; i < count; i++)
		if (steps[i].number == TS_ABSENT)
			steps[i].number = i;
	if (count && steps[0].is_mark) {
		close_marks(steps, count, rank->trace_end, nexts);
		rank->last_step_start = steps[count - 1].start;
	}
	return count;
}

int ts_work_finish_steps(struct ts_work *work)
{
	TS_AUTO_FREE int64_t *nexts = ts_alloc_array(work->thread_count, sizeof(*nexts));
	uint32_t kept = 0, first = 0;

	if (!nexts)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < work->thread_count; i++)
		nexts[i] = TS_ABSENT;
	for (uint32_t rank = 0; rank < work->rank_count; rank++) {
		uint32_t count = 0;

		while (first + count < work->step_count && work->steps[first + count].rank == rank)
			count++;
		memmove(work->steps + kept, work->steps + first, count * sizeof(*work->steps));
		kept += finish_rank(&work->ranks[rank], work->steps + kept, count, nexts);
		first += count;
	}
	work->step_count = kept;
	return TS_OK;
}
