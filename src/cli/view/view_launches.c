/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `view --stacks` for device work: where it was launched, where a graph's kernel was captured, and
 * which forward operator a backward one belongs to.
 */
#include <stdlib.h>

#include "cli/view/view.h"
#include "cli/view/view_launches.h"
#include "state/work/autograd_link.h"
#include "trace/call_index.h"
#include "trace/trace_totals.h"

#define FORWARD_DEPTH 16u

struct ts_view_launches {
	struct ts_call_index *launches;
	struct ts_work *work; /* with forward; NULL: there are no slices */
	struct ts_autograd_link *forward;
	struct ts_map threads; /* id to index in work */
};

static int load_forward(struct ts_view_launches *launches, struct ts_reader *reader,
			struct ts_error *err)
{
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	int rc;

	if (ts_reader_rows(reader, TS_TABLE_SLICE) == 0)
		return TS_OK;
	options.all = true;
	options.load_flags = TS_AUTOGRAD_LINK_LOAD_FLAGS;
	rc = ts_work_new(&launches->work, &options, err);
	if (!rc)
		rc = ts_work_add(launches->work, reader, err);
	if (!rc)
		rc = ts_work_finish(launches->work, err);
	if (!rc)
		rc = ts_autograd_link_new(&launches->forward, launches->work, err);
	for (uint32_t i = 0; !rc && i < launches->work->thread_count; i++)
		if (ts_map_put(&launches->threads, (uint64_t)launches->work->threads[i].id, i))
			rc = ts_error_set(err, TS_ENOMEM, "no memory");
	return rc;
}

int ts_view_launches_new(struct ts_view_launches **ret_launches, struct ts_reader *reader,
			 struct ts_error *err)
{
	TS_AUTO(ts_view_launches) launches = calloc(1, sizeof(*launches));
	int rc;

	if (!launches)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	rc = ts_call_index_new(&launches->launches, reader, err);
	if (!rc)
		rc = load_forward(launches, reader, err);
	if (!rc)
		*ret_launches = TS_STEAL(launches);
	return rc;
}

void ts_view_launches_free(struct ts_view_launches *launches)
{
	if (!launches)
		return;
	ts_autograd_link_free(launches->forward);
	ts_work_free(launches->work);
	ts_call_index_free(launches->launches);
	ts_map_release(&launches->threads);
	free(launches);
}

static uint32_t forward_of(const struct ts_view_launches *launches, const struct ts_launch *call)
{
	uint64_t thread;

	if (!launches->forward || call->start == TS_ABSENT ||
	    !ts_map_get(&launches->threads, (uint64_t)call->thread, &thread))
		return TS_WORK_NONE;
	return ts_autograd_link_at(launches->forward, (uint32_t)thread, call->start);
}

static void describe_forward(const struct ts_view_launches *launches, uint32_t slice,
			     struct ts_view_launch *launch)
{
	const struct ts_work *work = launches->work;
	uint32_t call = ts_autograd_link_call(work, slice);

	ts_autograd_link_append(work, &launch->forward, slice, FORWARD_DEPTH);
	if (call != TS_WORK_NONE)
		launch->forward_stack =
			ts_call_index_find_in(launches->launches,
					      work->ranks[work->calls[call].rank].source,
					      work->calls[call].correlation)
				.stack;
}

void ts_view_launches_find(struct ts_view_launches *launches, const struct ts_row *row,
			   struct ts_view_launch *ret_launch)
{
	struct ts_launch call = { .start = TS_ABSENT };
	uint32_t forward = TS_WORK_NONE;

	ts_text_clear(&ret_launch->forward);
	ret_launch->stack = ret_launch->forward_stack = 0;
	if (!launches)
		return;
	if (row->table->id == TS_TABLE_GPU_OP) {
		call = ts_call_index_find(launches->launches,
					  row->columns[TS_COLUMN_OF(gpu_op, device)],
					  row->columns[TS_COLUMN_OF(gpu_op, process)],
					  row->columns[TS_COLUMN_OF(gpu_op, correlation)]);
		ret_launch->stack = call.stack;
	} else if (row->table->id == TS_TABLE_API_CALL) {
		call.start = row->columns[TS_COLUMN_OF(api_call, start)];
		call.thread = row->columns[TS_COLUMN_OF(api_call, thread)];
	}
	forward = forward_of(launches, &call);
	if (forward != TS_WORK_NONE)
		describe_forward(launches, forward, ret_launch);
}
