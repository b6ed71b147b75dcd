/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `annotations`: time and commands under each user annotation, on the host and on devices.
 * docs/analyze.md defines the numbers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"
#include "analyze/busy.h"

static const struct ts_result_column columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER },
	{ "side", "side", TS_CELL_TEXT },
	{ "name", "name", TS_CELL_TEXT },
	{ "count", "count", TS_CELL_INTEGER },
	{ "sum_us", "sum", TS_CELL_TIME },
	{ "mean_us", "mean", TS_CELL_TIME },
	{ "min_us", "min", TS_CELL_TIME },
	{ "max_us", "max", TS_CELL_TIME },
	{ "std_us", "deviation", TS_CELL_TIME },
	{ "kernels", "commands", TS_CELL_INTEGER },
	{ "device_us", "device time", TS_CELL_TIME },
	{ "own_kernels", "own commands", TS_CELL_INTEGER },
	{ "own_device_us", "own device time", TS_CELL_TIME },
};

static const struct ts_result_column total_columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER },
	{ "kernels", "commands", TS_CELL_INTEGER },
	{ "device_us", "device time", TS_CELL_TIME },
	{ "host_annotated", "host-annotated", TS_CELL_INTEGER },
	{ "host_annotated_us", "host-annotated time", TS_CELL_TIME },
	{ "device_annotated", "device-annotated", TS_CELL_INTEGER },
	{ "device_annotated_us", "device-annotated time", TS_CELL_TIME },
};

enum side { HOST, DEVICE, SIDES };

static const struct {
	const char *name;
	uint8_t class;
} sides[SIDES] = {
	[HOST] = { "host", TS_SLICE_ANNOTATION },
	[DEVICE] = { "device", TS_SLICE_GPU_ANNOTATION },
};

/* Device work: commands and their time. */
struct load {
	uint64_t commands;
	int64_t ns;
};

static void add_load(struct load *load, const struct load *more)
{
	load->commands += more->commands;
	load->ns = ts_ns_add(load->ns, more->ns);
}

/* An instance of an annotation: a slice of the work. */
struct instance {
	uint32_t slice;
	uint32_t parent;       /* index of the enclosing annotation; TS_WORK_NONE: none */
	struct load exclusive; /* work under it but under no nested annotation */
	struct load all;       /* including nested annotations */
	bool outermost;        /* not nested in another of its name */
};

struct annotations {
	const struct ts_work *work;
	enum side side;
	uint32_t *innermost; /* of each slice: its own instance, or the innermost one around it */
	struct instance *instances; /* in slice order */
	uint32_t count;
	uint32_t *open;         /* of each name: how many instances enclose the current slice */
	struct load *annotated; /* of each rank */
	double *durations;      /* scratch */
};

static int no_memory(struct ts_error *err)
{
	return ts_error_set(err, TS_ENOMEM, "no memory for the annotations");
}

static void annotations_release(struct annotations *all)
{
	free(all->innermost);
	free(all->instances);
	free(all->open);
	free(all->annotated);
	free(all->durations);
}

static int annotations_init(struct annotations *all, const struct ts_work *work, enum side side)
{
	size_t count = 0;

	for (uint32_t i = 0; i < work->slice_count; i++)
		count += work->slices[i].class == sides[side].class;
	*all = (struct annotations){ .work = work, .side = side };
	all->innermost = ts_alloc_array(work->slice_count, sizeof(*all->innermost));
	all->instances = calloc(count + 1, sizeof(*all->instances));
	all->open = calloc((size_t)ts_strmap_count(&work->names) + 1, sizeof(*all->open));
	all->annotated = calloc((size_t)work->rank_count + 1, sizeof(*all->annotated));
	all->durations = ts_alloc_array(count, sizeof(*all->durations));
	return all->innermost && all->instances && all->open && all->annotated && all->durations
		       ? TS_OK
		       : TS_ENOMEM;
}

/* ---- instances ---- */

/* Closes annotations that do not enclose the next one. */
static void close_until(struct annotations *all, uint32_t *top, uint32_t parent)
{
	while (*top != TS_WORK_NONE && *top != parent) {
		all->open[all->work->slices[all->instances[*top].slice].name]--;
		*top = all->instances[*top].parent;
	}
}

/* Slices precede those nested in them, so one pass finds what encloses each. */
static void find_instances(struct annotations *all)
{
	const struct ts_work_slice *slices = all->work->slices;
	uint32_t top = TS_WORK_NONE;

	for (uint32_t i = 0; i < all->work->slice_count; i++) {
		uint32_t parent = slices[i].parent;
		struct instance *instance;

		parent = parent < i ? all->innermost[parent] : TS_WORK_NONE;
		all->innermost[i] = parent;
		if (slices[i].class != sides[all->side].class)
			continue;
		close_until(all, &top, parent);
		instance = &all->instances[all->count];
		instance->slice = i;
		instance->parent = parent;
		instance->outermost = all->open[slices[i].name]++ == 0;
		all->innermost[i] = top = all->count++;
	}
	close_until(all, &top, TS_WORK_NONE);
}

/* ---- commands ---- */

/*
 * Finds the innermost slice of a thread at ascending instants. Each slice is closed once: linear
 * overall.
 */
struct cursor {
	const struct ts_work *work;
	uint32_t next, end; /* slices of the thread */
	uint32_t inside;
};

static void cursor_init(struct cursor *cursor, const struct ts_work *work, uint32_t thread)
{
	cursor->work = work;
	cursor->next = work->threads[thread].first_slice;
	cursor->end = cursor->next + work->threads[thread].slice_count;
	cursor->inside = TS_WORK_NONE;
}

static uint32_t cursor_at(struct cursor *cursor, int64_t time)
{
	const struct ts_work_slice *slices = cursor->work->slices;

	while (cursor->next < cursor->end && slices[cursor->next].start <= time)
		cursor->inside = cursor->next++;
	while (cursor->inside != TS_WORK_NONE && slices[cursor->inside].end <= time)
		cursor->inside = slices[cursor->inside].parent;
	return cursor->inside;
}

static void give_command(struct annotations *all, uint32_t slice, uint32_t command)
{
	const struct ts_work_command *c = &all->work->commands[command];
	struct load load = { 1, ts_busy_duration(all->work, c) };

	if (slice == TS_WORK_NONE || all->innermost[slice] == TS_WORK_NONE)
		return;
	add_load(&all->instances[all->innermost[slice]].exclusive, &load);
	add_load(&all->annotated[c->rank], &load);
}

static void give_thread(struct annotations *all, uint32_t thread)
{
	const struct ts_work *work = all->work;
	uint32_t first = work->threads[thread].first_call;
	struct cursor cursor;

	cursor_init(&cursor, work, thread);
	for (uint32_t i = first; i < first + work->threads[thread].call_count; i++) {
		uint32_t slice = cursor_at(&cursor, work->calls[i].start);

		for (uint32_t k = work->calls[i].command; k != TS_WORK_NONE;
		     k = ts_work_next_of_call(work, k))
			give_command(all, slice, k);
	}
}

/*
 * Device annotations are on a thread whose process and number are those of the device and the
 * stream.
 */
static void give_stream(struct annotations *all, uint32_t stream, uint32_t thread)
{
	const struct ts_work *work = all->work;
	const struct ts_work_stream *s = &work->streams[stream];
	struct cursor cursor;

	cursor_init(&cursor, work, thread);
	for (uint32_t i = s->first_command; i < s->first_command + s->command_count; i++)
		give_command(all, cursor_at(&cursor, work->commands[i].start), i);
}

static bool is_row_of(const struct ts_work *work, const struct ts_work_thread *thread,
		      const struct ts_work_stream *stream)
{
	return thread->tid == stream->number && thread->tid != TS_ABSENT &&
	       thread->pid == work->devices[stream->device].number;
}

/* Joins the streams of a rank, by (device, number), with threads, by (pid, tid). */
static int give_streams(struct annotations *all, const struct ts_work_rank *rank)
{
	const struct ts_work *work = all->work;
	struct ts_pairmap threads;
	int rc = TS_OK;

	ts_pairmap_init(&threads);
	for (uint32_t i = 0; !rc && i < rank->thread_count; i++) {
		const struct ts_work_thread *thread = &work->threads[rank->first_thread + i];

		if (thread->slice_count)
			rc = ts_pairmap_put(&threads, (uint64_t)thread->pid, (uint64_t)thread->tid,
					    rank->first_thread + i);
	}
	for (uint32_t i = 0; !rc && i < rank->stream_count; i++) {
		const struct ts_work_stream *stream = &work->streams[rank->first_stream + i];
		int64_t device = work->devices[stream->device].number;
		uint64_t thread;

		if (ts_pairmap_get(&threads, (uint64_t)device, (uint64_t)stream->number, &thread) &&
		    is_row_of(work, &work->threads[thread], stream))
			give_stream(all, rank->first_stream + i, (uint32_t)thread);
	}
	ts_pairmap_release(&threads);
	return rc;
}

static int give_commands(struct annotations *all)
{
	const struct ts_work *work = all->work;
	int rc = TS_OK;

	if (all->side == HOST)
		for (uint32_t i = 0; i < work->thread_count; i++)
			give_thread(all, i);
	else
		for (uint32_t i = 0; !rc && i < work->rank_count; i++)
			rc = give_streams(all, &work->ranks[i]);
	/* From the inside out: an annotation precedes those nested in it. */
	for (uint32_t i = all->count; i-- > 0;) {
		struct instance *instance = &all->instances[i];

		add_load(&instance->all, &instance->exclusive);
		if (instance->parent != TS_WORK_NONE)
			add_load(&all->instances[instance->parent].all, &instance->all);
	}
	return rc;
}

/* ---- names ---- */

/* Comparison functions get no context, so each item has a pointer to the work. */
struct named {
	uint32_t instance, rank;
	const char *name;
};

static int compare_named(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int order;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	order = x->name == y->name ? 0 : strcmp(x->name, y->name);
	if (order)
		return order;
	return (x->instance > y->instance) - (x->instance < y->instance);
}

static bool same_name(const struct named *x, const struct named *y)
{
	return x->rank == y->rank && x->name == y->name;
}

static struct named *sort_names(const struct annotations *all)
{
	struct named *named = ts_alloc_array(all->count, sizeof(*named));

	if (!named)
		return NULL;
	for (uint32_t i = 0; i < all->count; i++) {
		const struct ts_work_slice *slice = &all->work->slices[all->instances[i].slice];

		named[i].instance = i;
		named[i].rank = slice->rank;
		named[i].name = ts_work_text(all->work, slice->name);
	}
	if (all->count)
		ts_sort(named, all->count, sizeof(*named), compare_named);
	return named;
}

/* pandas has no deviation of one value; HTA replaces it by 0. */
static double deviation_of(const struct annotations *all, const struct ts_description *described)
{
	if (all->work->options.rounding == TS_ROUNDING_HTA && described->count == 1)
		return 0;
	return described->deviation;
}

static void put_name(struct ts_result_table *table, struct annotations *all,
		     const struct named *named, size_t count)
{
	struct load exclusive = { 0 }, inclusive = { 0 };
	struct ts_description durations;
	int64_t sum_ns = 0;

	for (size_t i = 0; i < count; i++) {
		const struct instance *instance = &all->instances[named[i].instance];
		const struct ts_work_slice *slice = &all->work->slices[instance->slice];
		int64_t ns = ts_ns_between(slice->start, slice->end);

		sum_ns = ts_ns_add(sum_ns, ns);
		all->durations[i] = (double)ns;
		add_load(&exclusive, &instance->exclusive);
		if (instance->outermost)
			add_load(&inclusive, &instance->all);
	}
	ts_describe(all->durations, count, &durations);
	ts_cell_integer(table, all->work->ranks[named->rank].rank);
	ts_cell_text(table, sides[all->side].name);
	ts_cell_text(table, named->name);
	ts_cell_integer(table, (int64_t)count);
	ts_cell_time(table, sum_ns);
	ts_cell_time(table, ts_ns_of(durations.mean));
	ts_cell_time(table, ts_ns_of(durations.minimum));
	ts_cell_time(table, ts_ns_of(durations.maximum));
	ts_cell_time(table, ts_ns_of(deviation_of(all, &durations)));
	ts_cell_integer(table, (int64_t)inclusive.commands);
	ts_cell_time(table, inclusive.ns);
	ts_cell_integer(table, (int64_t)exclusive.commands);
	ts_cell_time(table, exclusive.ns);
}

static int put_names(struct ts_result_table *table, struct annotations *all)
{
	struct named *named = sort_names(all);

	if (!named)
		return TS_ENOMEM;
	for (uint32_t first = 0, end; first < all->count; first = end) {
		for (end = first + 1; end < all->count; end++)
			if (!same_name(&named[first], &named[end]))
				break;
		put_name(table, all, &named[first], end - first);
	}
	free(named);
	return TS_OK;
}

static int run_side(struct ts_result_table *table, struct annotations *all,
		    const struct ts_work *work, enum side side)
{
	int rc = annotations_init(all, work, side);

	if (rc)
		return rc;
	find_instances(all);
	rc = give_commands(all);
	return rc ? rc : put_names(table, all);
}

/* ---- analysis ---- */

static void put_totals(struct ts_result *result, const struct ts_work *work,
		       const struct annotations *host, const struct annotations *device)
{
	struct ts_result_table *table =
		ts_result_table(result, "totals", total_columns, TS_ARRAY_SIZE(total_columns));

	for (uint32_t i = 0; i < work->rank_count; i++) {
		const struct ts_work_rank *rank = &work->ranks[i];
		int64_t ns = 0;

		if (!rank->command_count)
			continue;
		for (uint32_t k = 0; k < rank->command_count; k++)
			ns = ts_ns_add(ns, ts_busy_duration(
						   work, &work->commands[rank->first_command + k]));
		ts_cell_integer(table, rank->rank);
		ts_cell_integer(table, rank->command_count);
		ts_cell_time(table, ns);
		ts_cell_integer(table, (int64_t)host->annotated[i].commands);
		ts_cell_time(table, host->annotated[i].ns);
		ts_cell_integer(table, (int64_t)device->annotated[i].commands);
		ts_cell_time(table, device->annotated[i].ns);
	}
}

static int run(struct ts_analyze_request *request, struct ts_result *result, struct ts_error *err)
{
	struct ts_result_table *table =
		ts_result_table(result, "annotations", columns, TS_ARRAY_SIZE(columns));
	struct annotations host = { 0 }, device = { 0 };
	const struct ts_work *work = request->work;
	int rc = run_side(table, &host, work, HOST);

	table->details = "std_us min_us+max_us own_kernels+own_device_us kernels";
	if (!rc)
		rc = run_side(table, &device, work, DEVICE);
	if (rc)
		rc = no_memory(err);
	else
		put_totals(result, work, &host, &device);
	if (!rc && !host.count && !device.count)
		ts_result_note(result, "the trace has no annotations");
	annotations_release(&host);
	annotations_release(&device);
	return rc ? rc : ts_result_status(result, err);
}

const struct ts_analysis ts_analysis_annotations = {
	.name = "annotations",
	.summary = "time and commands under each user annotation, on host and device",
	.load_flags = TS_WORK_SLICES,
	.run = run,
};
