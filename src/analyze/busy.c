/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges the spans of a rank's commands by class, in one pass in order of start, and sweeps over
 * the merged spans of several classes.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "analyze/busy.h"
#include "analyze/device_side.h"
#include "base/text.h"

static bool is_hta(const struct ts_work *work)
{
	return work->options.rounding == TS_ROUNDING_HTA;
}

static bool is_mtia(const struct ts_work *work, const struct ts_work_command *command)
{
	return !strncmp(ts_work_text(work, command->category), "mtia", 4);
}

/*
 * Does the row have a real stream? For Kineto rows without one, the importer takes the number of
 * the display row as the stream: some rows of MTIA, which also have no correlation. CUDA and HIP
 * rows always have streams.
 */
static bool has_stream(const struct ts_work *work, const struct ts_work_command *command)
{
	const struct ts_work_stream *stream = &work->streams[command->stream];
	struct ts_reader *reader = work->readers[work->ranks[command->rank].trace];
	const struct ts_stream_row *row;
	const struct ts_thread_row *thread;

	if (stream->number == TS_ABSENT || stream->number == -1)
		return false;
	if (command->correlation != TS_ABSENT || !is_mtia(work, command))
		return true;
	row = ts_reader_entity(reader, TS_TABLE_STREAM, stream->id);
	thread = row ? ts_reader_entity(reader, TS_TABLE_THREAD, row->thread) : NULL;
	return !thread || thread->tid != stream->number;
}

bool ts_busy_counts(const struct ts_work *work, const struct ts_work_command *command)
{
	if (command->flags & TS_COMMAND_UNTIMED)
		return false;
	return !is_hta(work) || has_stream(work, command);
}

static int64_t end_of(const struct ts_work *work, int64_t start, int64_t end)
{
	return is_hta(work) ? end : TS_MAX(start, end);
}

int64_t ts_busy_duration(const struct ts_work *work, const struct ts_work_command *command)
{
	return ts_ns_between(command->start, end_of(work, command->start, command->end));
}

/* ---- merging ---- */

/* A set of spans that is appended to. */
struct growing {
	struct ts_span group; /* the span being merged */
	int64_t reach;        /* latest end so far */
	bool any;
};

/*
 * Adds a span that starts no earlier than all before it. True: it begins a new group, and
 * *ret_finished is the finished one. With HTA's rounding a group may end before it starts; the next
 * span with the same start then begins a new group.
 */
static bool grow(struct growing *set, int64_t start, int64_t end, struct ts_span *ret_finished)
{
	bool finished = set->any && start > set->reach;

	if (!set->any || finished) {
		*ret_finished = set->group;
		set->group = (struct ts_span){ start, end };
	} else {
		set->group.end = TS_MAX(set->group.end, end);
	}
	set->reach = set->any ? TS_MAX(set->reach, end) : end;
	set->any = true;
	return finished;
}

/* Merges the rows of each class, and all rows. */
struct merger {
	struct ts_busy *busy;
	const struct ts_work *work;
	struct growing classes[TS_CLASS_COUNT], all;
};

static int put_span(struct ts_busy *busy, unsigned int class, const struct ts_span *span)
{
	if (ts_grow_array((void **)&busy->spans[class], &busy->span_capacity[class],
			  busy->span_count[class] + 1, sizeof(*span)))
		return TS_ENOMEM;
	busy->spans[class][busy->span_count[class]++] = *span;
	busy->class_ns[class] =
		ts_ns_add(busy->class_ns[class], ts_ns_between(span->start, span->end));
	return TS_OK;
}

static void put_busy(struct ts_busy *busy, const struct ts_span *span)
{
	busy->busy_ns = ts_ns_add(busy->busy_ns, ts_ns_between(span->start, span->end));
	busy->last = span->end;
}

static int merge_row(struct merger *merger, unsigned int class, int64_t start, int64_t end)
{
	struct ts_busy *busy = merger->busy;
	struct ts_span finished;

	end = end_of(merger->work, start, end);
	if (busy->rows++ == 0)
		busy->first = start;
	if (grow(&merger->all, start, end, &finished))
		put_busy(busy, &finished);
	if (grow(&merger->classes[class], start, end, &finished))
		return put_span(busy, class, &finished);
	return TS_OK;
}

static int finish_merge(struct merger *merger)
{
	if (merger->all.any)
		put_busy(merger->busy, &merger->all.group);
	for (unsigned int class = 0; class < TS_CLASS_COUNT; class ++)
		if (merger->classes[class].any &&
		    put_span(merger->busy, class, &merger->classes[class].group))
			return TS_ENOMEM;
	return TS_OK;
}

/* ---- rows in order of start ---- */

/* First synchronisation of this or a later rank. */
static uint32_t first_sync(const struct ts_work *work, uint32_t rank)
{
	uint32_t low = 0, high = work->sync_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (work->syncs[middle].rank < rank)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * The rank's next synchronisation that starts at or before the given time and that HTA takes for
 * device time.
 */
static const struct ts_work_sync *next_sync(const struct ts_work *work, uint32_t rank,
					    uint32_t *cursor, int64_t until)
{
	for (; *cursor < work->sync_count; ++*cursor) {
		const struct ts_work_sync *sync = &work->syncs[*cursor];

		if (sync->rank != rank || sync->start > until)
			return NULL;
		if (sync->row_stream == -1 || sync->row_stream == TS_ABSENT)
			continue;
		++*cursor;
		return sync;
	}
	return NULL;
}

static int merge_syncs(struct merger *merger, uint32_t rank, uint32_t *cursor, int64_t until)
{
	const struct ts_work_sync *sync;

	if (!is_hta(merger->work))
		return TS_OK;
	while ((sync = next_sync(merger->work, rank, cursor, until)))
		if (merge_row(merger, TS_CLASS_OTHER, sync->start, sync->end))
			return TS_ENOMEM;
	return TS_OK;
}

static int merge_rank(struct merger *merger, uint32_t rank, const uint32_t *order)
{
	const struct ts_work *work = merger->work;
	uint32_t sync = first_sync(work, rank);

	for (uint32_t i = 0; i < work->ranks[rank].command_count; i++) {
		const struct ts_work_command *command = &work->commands[order[i]];

		if (!ts_busy_counts(work, command))
			continue;
		if (merge_syncs(merger, rank, &sync, command->start) ||
		    merge_row(merger, command->class, command->start, command->end))
			return TS_ENOMEM;
	}
	if (merge_syncs(merger, rank, &sync, INT64_MAX))
		return TS_ENOMEM;
	return finish_merge(merger);
}

int ts_busy_init(struct ts_busy *busy, const struct ts_work *work, uint32_t rank,
		 struct ts_error *err)
{
	struct merger merger = { .busy = busy, .work = work };
	TS_AUTO_FREE uint32_t *order = NULL;

	*busy = (struct ts_busy){ 0 };
	order = ts_work_commands_by_start(work, rank);
	if (order && merge_rank(&merger, rank, order) == TS_OK)
		return TS_OK;
	ts_busy_release(busy);
	return ts_error_set(err, TS_ENOMEM, "no memory to merge the commands of a rank");
}

void ts_busy_release(struct ts_busy *busy)
{
	for (unsigned int class = 0; class < TS_CLASS_COUNT; class ++)
		free(busy->spans[class]);
	*busy = (struct ts_busy){ 0 };
}

int64_t ts_busy_window(const struct ts_busy *busy)
{
	return ts_ns_between(busy->first, busy->last);
}

/* ---- sweep over several classes ---- */

/* The edges of a class's spans, in order of time. */
struct edges {
	const struct ts_span *spans;
	size_t edge, edge_count; /* two per span */
	int bit;
};

/*
 * A span that HTA's rounding has inverted ends first, which removes the class before it is added.
 */
static int64_t edge_time(const struct edges *edges)
{
	const struct ts_span *span = &edges->spans[edges->edge / 2];

	return edges->edge % 2 ? TS_MAX(span->start, span->end) : TS_MIN(span->start, span->end);
}

static int edge_step(const struct edges *edges)
{
	const struct ts_span *span = &edges->spans[edges->edge / 2];
	bool opens = (edges->edge % 2 == 0) == (span->start <= span->end);

	return opens ? edges->bit : -edges->bit;
}

static struct edges *earliest(struct edges *edges, unsigned int count)
{
	struct edges *best = NULL;

	for (unsigned int i = 0; i < count; i++)
		if (edges[i].edge < edges[i].edge_count &&
		    (!best || edge_time(&edges[i]) < edge_time(best)))
			best = &edges[i];
	return best;
}

void ts_busy_sweep(const struct ts_busy *busy, unsigned int classes,
		   int64_t ret_ns[TS_BUSY_ALL + 1])
{
	struct edges edges[TS_CLASS_COUNT], *next;
	int64_t time = 0;
	int running = 0;

	for (unsigned int class = 0; class < TS_CLASS_COUNT; class ++)
		edges[class] = (struct edges){
			.spans = busy->spans[class],
			.edge_count = (classes & TS_BUSY_CLASS(class)) ? 2 * busy->span_count[class]
								       : 0,
			.bit = (int)TS_BUSY_CLASS(class),
		};
	memset(ret_ns, 0, (TS_BUSY_ALL + 1) * sizeof(*ret_ns));
	while ((next = earliest(edges, TS_CLASS_COUNT))) {
		int64_t now = edge_time(next);

		if (running > 0)
			ret_ns[running] = ts_ns_add(ret_ns[running], ts_ns_between(time, now));
		running += edge_step(next);
		time = now;
		next->edge++;
	}
}

/* ---- cells and notes ---- */

void ts_busy_put_ns(struct ts_result_table *table, double ns)
{
	if (isnan(ns) || fabs(ns) >= (double)INT64_MAX)
		ts_cell_none(table);
	else
		ts_cell_time(table, (int64_t)llrint(ns));
}

bool ts_busy_leaves_out_step(const struct ts_work *work, int64_t *ret_step)
{
	bool found = false;

	*ret_step = TS_ABSENT;
	for (uint32_t i = 0; i < work->rank_count; i++) {
		int64_t step = work->ranks[i].last_step;

		if (!ts_work_leaves_out_last_step(work, i))
			continue;
		*ret_step = found && *ret_step != step ? TS_ABSENT : step;
		found = true;
	}
	return found;
}

static void note_last_step(const struct ts_work *work, struct ts_result *result)
{
	int64_t step;

	if (!ts_busy_leaves_out_step(work, &step))
		return;
	if (step == TS_ABSENT)
		ts_result_note(result, "the last step of each rank left out: it may be cut off "
				       "(--all includes it)");
	else
		ts_result_note(result,
			       "step %" PRId64 " left out: it may be cut off (--all includes it)",
			       step);
}

void ts_busy_note(const struct ts_work *work, struct ts_result *result)
{
	uint32_t empty = 0;

	for (uint32_t rank = 0; rank < work->rank_count; rank++)
		empty += work->ranks[rank].command_count == 0;
	if (work->command_count == 0)
		ts_device_side_note(work, result, "no device activity in this part of the trace");
	else if (empty > 0)
		ts_result_note(result, "%u of %u ranks left out: no device activity", empty,
			       work->rank_count);
	if (work->untimed_commands > 0)
		ts_result_note(result, "not counted: %s without device times",
			       TS_COUNTED(work->untimed_commands, "command"));
	note_last_step(work, result);
}

void ts_busy_note_windows(const struct ts_work *work, struct ts_result *result)
{
	char text[TS_FORMAT_BYTES];
	int64_t most = 0;

	for (uint32_t i = 0; i < work->rank_count; i++)
		most = TS_MAX(most, ts_work_unrecorded_ns(work, i));
	if (most)
		ts_result_note(result,
			       "%s between recording windows, of which nothing is known, count as "
			       "idle (--from and --to select one window)",
			       ts_format_duration_ns(text, sizeof(text), most));
}

void ts_busy_note_idle(const struct ts_work *work, struct ts_result *result)
{
	ts_busy_note(work, result);
	ts_busy_note_windows(work, result);
	if (work->dropped_between > 0 && !is_hta(work))
		ts_result_note(
			result,
			"%s outside this part ran on a device in between; that time counts as idle here, --all includes it",
			TS_COUNTED(work->dropped_between, "command"));
}
