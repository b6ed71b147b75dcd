/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `queue`: commands issued but not started in each stream, over time. docs/analyze.md defines the
 * numbers, and how HTA's differ.
 */
#include <math.h>
#include <stdlib.h>

#include "analyze/analyze.h"
#include "analyze/busy.h"
#include "analyze/device_side.h"
#include "analyze/hta/hta_calls.h"
#include "base/text.h"

static const struct ts_result_column summary_columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER },     { "device", "device", TS_CELL_INTEGER },
	{ "stream", "stream", TS_CELL_INTEGER }, { "commands", "commands", TS_CELL_INTEGER },
	{ "time_mean", "mean", TS_CELL_REAL },   { "empty_us", "empty", TS_CELL_TIME },
	{ "full_us", "full", TS_CELL_TIME },     { "full_pct", "full %", TS_CELL_PERCENT },
	{ "peak", "peak", TS_CELL_INTEGER },     { "peak_ns", "at", TS_CELL_INSTANT },
	{ "span_us", "over", TS_CELL_TIME },     { "points", NULL, TS_CELL_INTEGER },
	{ "point_mean", NULL, TS_CELL_REAL },    { "point_std", NULL, TS_CELL_REAL },
	{ "point_min", NULL, TS_CELL_REAL },     { "point_q25", NULL, TS_CELL_REAL },
	{ "point_median", NULL, TS_CELL_REAL },  { "point_q75", NULL, TS_CELL_REAL },
	{ "point_max", NULL, TS_CELL_REAL },
};

static const struct ts_result_column timeline_columns[] = {
	{ "rank", NULL, TS_CELL_INTEGER },         { "device", NULL, TS_CELL_INTEGER },
	{ "stream", NULL, TS_CELL_INTEGER },       { "time_ns", NULL, TS_CELL_INSTANT },
	{ "queue_length", NULL, TS_CELL_INTEGER },
};

/* Times at which the commands of a stream enter and leave the queue, both sorted. */
struct queue {
	int64_t *in, *out;
	double *lengths; /* length after each change, for ts_describe() */
	size_t count, capacity;
};

struct queues {
	const struct ts_work *work;
	struct ts_result_table *summary, *timeline;
	struct ts_hta_calls known;
	bool hta, brief;
	int64_t full;
	struct queue queue;
	uint64_t unknown; /* commands whose issue time is unknown */
};

static void queue_release(struct queue *queue)
{
	free(queue->in);
	free(queue->out);
	free(queue->lengths);
}

/* ---- commands ---- */

static int queue_reserve(struct queue *queue, size_t count)
{
	if (count <= queue->capacity)
		return TS_OK;
	queue_release(queue);
	*queue = (struct queue){ .capacity = count };
	queue->in = ts_alloc_array(count, sizeof(*queue->in));
	queue->out = ts_alloc_array(count, sizeof(*queue->out));
	queue->lengths = ts_alloc_array(count, 2 * sizeof(*queue->lengths));
	return queue->in && queue->out && queue->lengths ? TS_OK : TS_ENOMEM;
}

static bool counts(const struct queues *all, const struct ts_work_command *command)
{
	if (!all->hta)
		return command->issued != TS_ABSENT;
	return command->call != TS_WORK_NONE && ts_busy_counts(all->work, command) &&
	       ts_hta_calls_have(&all->known, all->work->calls[command->call].name);
}

static int compare_times(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Calls of one thread, and starts, are already in order: sort only if needed. */
static void sort_times(int64_t *times, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		if (times[i - 1] <= times[i])
			continue;
		ts_sort(times, count, sizeof(*times), compare_times);
		return;
	}
}

/*
 * A command that starts before it was issued (clocks disagree) enters and leaves at once, except
 * for HTA.
 */
static int fill_queue(struct queues *all, const struct ts_work_stream *stream)
{
	struct queue *queue = &all->queue;

	if (queue_reserve(queue, stream->command_count))
		return TS_ENOMEM;
	queue->count = 0;
	for (uint32_t i = 0; i < stream->command_count; i++) {
		const struct ts_work_command *command =
			&all->work->commands[stream->first_command + i];

		if (!counts(all, command)) {
			all->unknown += !all->hta;
			continue;
		}
		queue->in[queue->count] = all->hta ? command->issued
						   : TS_MIN(command->issued, command->start);
		queue->out[queue->count++] = command->start;
	}
	sort_times(queue->in, queue->count);
	sort_times(queue->out, queue->count);
	return TS_OK;
}

/* ---- over time ---- */

struct walk {
	size_t in, out; /* number processed */
	int64_t time, length;
};

/* Advances to the next change; at equal times entries come first. */
static bool next_change(const struct queue *queue, struct walk *walk)
{
	if (walk->in < queue->count &&
	    (walk->out == queue->count || queue->in[walk->in] <= queue->out[walk->out])) {
		walk->time = queue->in[walk->in++];
		walk->length++;
		return true;
	}
	if (walk->out == queue->count)
		return false;
	walk->time = queue->out[walk->out++];
	walk->length--;
	return true;
}

struct figures {
	double area; /* length times ns */
	int64_t empty_ns, full_ns, peak, peak_time, first, last;
};

/* Adds the stretch of `length` from the last change until `time`. */
static void add_stretch(struct figures *figures, const struct queues *all, int64_t length,
			int64_t ns)
{
	figures->area += (double)length * (double)ns;
	if (length <= 0)
		figures->empty_ns = ts_ns_add(figures->empty_ns, ns);
	if (length >= all->full)
		figures->full_ns = ts_ns_add(figures->full_ns, ns);
}

static void put_location(struct ts_result_table *table, const struct ts_work *work,
			 const struct ts_work_stream *stream)
{
	ts_cell_integer(table, work->ranks[stream->rank].rank);
	ts_cell_integer(table, work->devices[stream->device].number);
	ts_cell_integer(table, stream->number);
}

static void put_point(struct queues *all, const struct ts_work_stream *stream,
		      const struct walk *walk)
{
	put_location(all->timeline, all->work, stream);
	ts_cell_instant(all->timeline, walk->time);
	ts_cell_integer(all->timeline, walk->length);
}

static struct figures walk_queue(struct queues *all, const struct ts_work_stream *stream)
{
	struct queue *queue = &all->queue;
	struct figures figures = { .peak = INT64_MIN };
	struct walk walk = { 0 };
	size_t point = 0;

	for (int64_t length = 0; next_change(queue, &walk); length = walk.length) {
		if (point == 0)
			figures.first = figures.last = walk.time;
		add_stretch(&figures, all, length, ts_ns_between(figures.last, walk.time));
		figures.last = walk.time;
		queue->lengths[point++] = (double)walk.length;
		if (walk.length > figures.peak) {
			figures.peak = walk.length;
			figures.peak_time = walk.time;
		}
		if (!all->brief)
			put_point(all, stream, &walk);
	}
	return figures;
}

/* ---- results ---- */

static void put_points(struct ts_result_table *table, struct queue *queue)
{
	struct ts_description points;

	ts_describe(queue->lengths, queue->count * 2, &points);
	ts_cell_integer(table, (int64_t)points.count);
	ts_cell_real(table, points.mean);
	ts_cell_real(table, points.deviation);
	ts_cell_real(table, points.minimum);
	ts_cell_real(table, points.q25);
	ts_cell_real(table, points.median);
	ts_cell_real(table, points.q75);
	ts_cell_real(table, points.maximum);
}

static void put_stream(struct queues *all, const struct ts_work_stream *stream)
{
	struct ts_result_table *table = all->summary;
	struct figures figures = walk_queue(all, stream);
	int64_t span_ns = ts_ns_between(figures.first, figures.last);

	put_location(table, all->work, stream);
	ts_cell_integer(table, (int64_t)all->queue.count);
	ts_cell_real(table, span_ns > 0 ? figures.area / (double)span_ns : NAN);
	ts_cell_time(table, figures.empty_ns);
	ts_cell_time(table, figures.full_ns);
	ts_cell_share(table, figures.full_ns, span_ns);
	ts_cell_integer(table, figures.peak);
	ts_cell_instant(table, figures.peak_time);
	ts_cell_time(table, span_ns);
	put_points(table, &all->queue);
}

static int put_streams(struct queues *all, struct ts_error *err)
{
	for (uint32_t i = 0; i < all->work->stream_count; i++) {
		const struct ts_work_stream *stream = &all->work->streams[i];

		if (fill_queue(all, stream))
			return ts_error_set(err, TS_ENOMEM, "no memory for the queues");
		if (all->queue.count > 0)
			put_stream(all, stream);
	}
	return TS_OK;
}

static void put_notes(struct ts_result *result, const struct queues *all)
{
	if (!all->work->command_count)
		ts_device_side_note(all->work, result, "no device activity in this trace");
	if (all->unknown)
		ts_result_note(result, "left out: %s with an unknown time of issue",
			       TS_COUNTED(all->unknown, "command"));
}

static int run(struct ts_analyze_request *request, struct ts_result *result, struct ts_error *err)
{
	const struct ts_work *work = request->work;
	struct queues all = {
		.work = work,
		.hta = work->options.rounding == TS_ROUNDING_HTA,
		.brief = request->options.brief,
		.full = request->options.full,
	};
	int rc;

	all.summary =
		ts_result_table(result, "summary", summary_columns, TS_ARRAY_SIZE(summary_columns));
	all.summary->details = "span_us peak_ns";
	all.timeline = ts_result_table(result, "timeline", timeline_columns,
				       TS_ARRAY_SIZE(timeline_columns));
	ts_hta_calls_init(&all.known, work, TS_HTA_QUEUE);
	rc = put_streams(&all, err);
	put_notes(result, &all);
	queue_release(&all.queue);
	return rc ? rc : ts_result_status(result, err);
}

static const struct ts_option_spec options[] = {
	{
		.name = "full",
		.type = TS_OPTION_SPEC_INTEGER,
		.value = "N",
		.doc = "a queue is full with this many commands; default 1024",
		.offset = offsetof(struct ts_analysis_options, full),
		.minimum = 1,
		.maximum = INT64_MAX,
	},
};

const struct ts_analysis ts_analysis_queue = {
	.name = "queue",
	.summary = "queue length of each stream over time; time it was full",
	.options = options,
	.option_count = TS_ARRAY_SIZE(options),
	.run = run,
};
