/* SPDX-License-Identifier: Apache-2.0 */
/* States and dependencies of a job, row by row, for callers of the library. */
#include <stdlib.h>
#include <string.h>

#include <tracesmith/state.h>

#include "analyze/job_work.h"
#include "analyze/selection.h"
#include "base/quantity.h"
#include "open/job.h"
#include "state/states/state_walk.h"

/* What both cursors are made of. */
struct base {
	struct ts_job_work *work;
	struct ts_state_filter filter;
	int64_t *numbers; /* copies of those of the filter */
};

struct ts_state_cursor {
	struct base base;
	struct ts_state_walk walk;
};
TS_DEFINE_AUTO(ts_state_cursor, ts_state_close);

struct ts_dependency_cursor {
	struct base base;
	const struct ts_graph *graph;
	size_t edge;
};
TS_DEFINE_AUTO(ts_dependency_cursor, ts_dependency_close);

static void release(struct base *base)
{
	ts_job_work_put(base->work);
	free(base->numbers);
}

static int copy_filter(struct base *base, const struct ts_state_options *options, int64_t start,
		       struct ts_error *err)
{
	const struct ts_quantity_range range = { .from = options->from, .to = options->to };
	size_t count = options->device_count + options->stream_count;
	int64_t *numbers = calloc(count ? count : 1, sizeof(*numbers));

	if (!numbers)
		return ts_error_set(err, TS_ENOMEM, "no memory for a cursor");
	base->numbers = numbers;
	if (options->device_count)
		memcpy(numbers, options->devices, options->device_count * sizeof(*numbers));
	if (options->stream_count)
		memcpy(numbers + options->device_count, options->streams,
		       options->stream_count * sizeof(*numbers));
	base->filter = (struct ts_state_filter){
		.from = INT64_MIN,
		.to = INT64_MAX,
		.devices = numbers,
		.device_count = options->device_count,
		.streams = numbers + options->device_count,
		.stream_count = options->stream_count,
	};
	return ts_quantity_range(&range, start, &base->filter.from, &base->filter.to, err);
}

/* Work that a selection drops still ran on the device, so that the default here is all of it. */
static int init(struct base *base, struct ts_job *job, const struct ts_state_options *given,
		unsigned int load_flags, struct ts_error *err)
{
	struct ts_state_options options = { 0 };
	struct ts_job_work_options work_options;
	struct ts_selection selection;
	int rc;

	if (given)
		memcpy(&options, given, TS_MIN(given->size, sizeof(options)));
	selection = ts_selection_complete(options.selection);
	selection.from = selection.to = NULL;
	if (!selection.steps)
		selection.flags |= TS_SELECT_ALL;
	rc = copy_filter(base, &options, job->start, err);
	if (rc)
		return rc;
	work_options = (struct ts_job_work_options){
		.selection = &selection,
		.load_flags = load_flags,
		.aligned = true,
		.progress = options.progress,
		.context = options.context,
	};
	return ts_job_work_get(&base->work, job, &work_options, err);
}

/* ---- states ---- */

int ts_state_open(struct ts_state_cursor **ret_cursor, struct ts_job *job,
		  enum ts_state_source source, const struct ts_state_options *options,
		  struct ts_error *err)
{
	TS_AUTO(ts_state_cursor) cursor = calloc(1, sizeof(*cursor));
	struct ts_error unused = { 0 };
	int rc;

	err = err ? err : &unused;
	if (!ret_cursor || !job || (source != TS_STATE_COMMANDS && source != TS_STATE_LANES))
		return ts_error_set(err, TS_EINVAL,
				    "states are those of the commands or lanes of a job");
	if (!cursor)
		return ts_error_set(err, TS_ENOMEM, "no memory for a cursor");
	rc = init(&cursor->base, job, options, TS_WORK_DETAILS, err);
	if (rc)
		return rc;
	cursor->walk.states = ts_analyze_states(&cursor->base.work->request, err);
	if (!cursor->walk.states)
		return err->code;
	cursor->walk.source = source;
	cursor->walk.filter = &cursor->base.filter;
	*ret_cursor = TS_STEAL(cursor);
	return TS_OK;
}

bool ts_state_next(struct ts_state_cursor *cursor, struct ts_state_span *ret_span)
{
	return ts_state_walk_next(&cursor->walk, ret_span);
}

void ts_state_close(struct ts_state_cursor *cursor)
{
	if (cursor)
		release(&cursor->base);
	free(cursor);
}

/* ---- dependencies ---- */

int ts_dependency_open(struct ts_dependency_cursor **ret_cursor, struct ts_job *job,
		       const struct ts_state_options *options, struct ts_error *err)
{
	TS_AUTO(ts_dependency_cursor) cursor = calloc(1, sizeof(*cursor));
	struct ts_error unused = { 0 };
	int rc;

	err = err ? err : &unused;
	if (!ret_cursor || !job)
		return ts_error_set(err, TS_EINVAL, "dependencies are those of a job");
	if (!cursor)
		return ts_error_set(err, TS_ENOMEM, "no memory for a cursor");
	rc = init(&cursor->base, job, options, TS_WORK_SLICES | TS_WORK_FLOWS | TS_WORK_DETAILS,
		  err);
	if (rc)
		return rc;
	cursor->graph = ts_analyze_host_graph(&cursor->base.work->request, err);
	if (!cursor->graph)
		return err->code;
	*ret_cursor = TS_STEAL(cursor);
	return TS_OK;
}

bool ts_dependency_next(struct ts_dependency_cursor *cursor, struct ts_dependency *ret_dependency)
{
	while (cursor->edge < cursor->graph->edge_count) {
		ts_edge_describe(cursor->graph, &cursor->graph->edges[cursor->edge++],
				 ret_dependency);
		if (ts_state_filter_edge(&cursor->base.filter, ret_dependency))
			return true;
	}
	return false;
}

void ts_dependency_close(struct ts_dependency_cursor *cursor)
{
	if (cursor)
		release(&cursor->base);
	free(cursor);
}
