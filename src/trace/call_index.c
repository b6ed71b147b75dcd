/* SPDX-License-Identifier: Apache-2.0 */
/* Calls by source and correlation; see call_index.h. */
#include "trace/call_index.h"

#include <stdlib.h>

#include "base/map.h"

#define CALL_MASK                                                     \
	(TS_MASK_OF(api_call, start) | TS_MASK_OF(api_call, thread) | \
	 TS_MASK_OF(api_call, correlation) | TS_MASK_OF(api_call, stack))
#define COMMAND_MASK                                                                           \
	(TS_MASK_OF(gpu_op, start) | TS_MASK_OF(gpu_op, duration) | TS_MASK_OF(gpu_op, name) | \
	 TS_MASK_OF(gpu_op, kind) | TS_MASK_OF(gpu_op, stack) | TS_MASK_OF(gpu_op, device) |   \
	 TS_MASK_OF(gpu_op, process) | TS_MASK_OF(gpu_op, correlation))

struct ts_call_index {
	struct ts_reader *reader;
	struct ts_pairmap indices; /* source and correlation to call */
	struct ts_launch *calls;
	size_t count, capacity;
	struct ts_batch *batch;
};

/* Drivers use 0 for calls without a correlation. */
static bool has_correlation(int64_t correlation)
{
	return correlation != TS_ABSENT && correlation != 0;
}

static int64_t source_of_process(struct ts_reader *reader, int64_t process)
{
	const struct ts_process_row *row = ts_reader_entity(reader, TS_TABLE_PROCESS, process);

	return row ? row->source : 0;
}

static int64_t source_of_thread(struct ts_reader *reader, int64_t thread)
{
	const struct ts_thread_row *row = ts_reader_entity(reader, TS_TABLE_THREAD, thread);

	return row ? source_of_process(reader, row->process) : 0;
}

/*
 * Correlations are unique in a source; of calls that use one twice, the first that has a stack
 * counts.
 */
static int add_call(struct ts_call_index *launches, const struct ts_api_call_row *row)
{
	int64_t source = source_of_thread(launches->reader, row->thread);
	bool is_new = false;
	uint64_t *slot = ts_pairmap_insert(&launches->indices, (uint64_t)source,
					   (uint64_t)row->correlation, &is_new);

	if (!slot)
		return TS_ENOMEM;
	if (!is_new && (launches->calls[*slot].stack || !row->stack))
		return TS_OK;
	if (ts_grow_array((void **)&launches->calls, &launches->capacity, launches->count + 1,
			  sizeof(*launches->calls)))
		return TS_ENOMEM;
	*slot = launches->count;
	launches->calls[launches->count++] = (struct ts_launch){ .start = row->start,
								 .thread = row->thread,
								 .stack = row->stack };
	return TS_OK;
}

static int add_calls(struct ts_call_index *launches, struct ts_error *err)
{
	size_t count = ts_reader_chunk_count(launches->reader);
	int rc = TS_OK;

	for (size_t i = 0; i < count && !rc; i++) {
		if (ts_reader_chunk(launches->reader, i)->table != TS_TABLE_API_CALL)
			continue;
		rc = ts_batch_read(launches->batch, i, CALL_MASK, err);
		for (uint32_t r = 0; !rc && r < launches->batch->rows; r++) {
			struct ts_api_call_row row;

			ts_batch_row(launches->batch, r, &row);
			if (has_correlation(row.correlation) && add_call(launches, &row))
				rc = ts_error_set(err, TS_ENOMEM, "no memory");
		}
	}
	return rc;
}

int ts_call_index_new(struct ts_call_index **ret_launches, struct ts_reader *reader,
		      struct ts_error *err)
{
	TS_AUTO(ts_call_index) launches = calloc(1, sizeof(*launches));
	int rc;

	if (!launches)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	launches->reader = reader;
	rc = ts_batch_new(&launches->batch, reader, err);
	if (!rc)
		rc = add_calls(launches, err);
	if (!rc)
		*ret_launches = TS_STEAL(launches);
	return rc;
}

void ts_call_index_free(struct ts_call_index *launches)
{
	if (!launches)
		return;
	ts_pairmap_release(&launches->indices);
	ts_batch_free(launches->batch);
	free(launches->calls);
	free(launches);
}

struct ts_launch ts_call_index_find_in(const struct ts_call_index *launches, int64_t source,
				       int64_t correlation)
{
	uint64_t slot;

	if (!has_correlation(correlation) ||
	    !ts_pairmap_get(&launches->indices, (uint64_t)source, (uint64_t)correlation, &slot))
		return (struct ts_launch){ .start = TS_ABSENT };
	return launches->calls[slot];
}

struct ts_launch ts_call_index_find(struct ts_call_index *launches, int64_t device, int64_t process,
				    int64_t correlation)
{
	const struct ts_device_row *row =
		ts_reader_entity(launches->reader, TS_TABLE_DEVICE, device);
	int64_t source = row ? row->source : 0;

	if (process)
		source = source_of_process(launches->reader, process);
	return ts_call_index_find_in(launches, source, correlation);
}

static int walk_chunk(struct ts_call_index *launches, size_t chunk,
		      int (*visit)(void *context, const struct ts_launched_op *launched,
				   struct ts_error *err),
		      void *context, struct ts_error *err)
{
	struct ts_batch *batch = launches->batch;
	int rc = ts_batch_read(batch, chunk, COMMAND_MASK, err);

	for (uint32_t i = 0; !rc && i < batch->rows; i++) {
		struct ts_launched_op launched;
		struct ts_gpu_op_row row;

		ts_batch_row(batch, i, &row);
		if (row.kind == TS_GPU_OP_SYNC || row.kind == TS_GPU_OP_WAIT)
			continue;
		launched = (struct ts_launched_op){ .start = row.start,
						    .duration = row.duration,
						    .name = row.name,
						    .stack = row.stack };
		launched.call =
			ts_call_index_find(launches, row.device, row.process, row.correlation);
		rc = visit(context, &launched, err);
	}
	return rc;
}

int ts_call_index_walk(struct ts_call_index *launches,
		       int (*visit)(void *context, const struct ts_launched_op *launched,
				    struct ts_error *err),
		       void *context, struct ts_error *err)
{
	size_t count = ts_reader_chunk_count(launches->reader);
	int rc = TS_OK;

	for (size_t i = 0; i < count && !rc; i++)
		if (ts_reader_chunk(launches->reader, i)->table == TS_TABLE_GPU_OP)
			rc = walk_chunk(launches, i, visit, context, err);
	return rc;
}
