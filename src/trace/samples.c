/* SPDX-License-Identifier: Apache-2.0 */
/* Samples (or calls, allocations, commands) in time order; see samples.h. */
#include "trace/samples.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "trace/call_index.h"
#include "trace/row_merge.h"
#include "trace/stack_lists.h"
#include "trace/trace_totals.h"

/* Chunks of one table that overlap in time, each of a thread. */
#define MAX_OPEN 16
/* No profiler samples faster than this: where all weights are smaller, they count samples. */
#define MIN_WEIGHT_NS 1000

/* A table, and how to read its rows as samples. */
struct ts_sample_source {
	enum ts_table_id table;
	uint64_t mask;
	void (*see)(struct ts_samples *samples, const struct ts_batch *batch, uint32_t row,
		    struct ts_stack_sample *ret_sample);
};

/* ---- what the weights mean ---- */

static bool is_on_device(struct ts_samples *samples, const struct ts_batch *batch, uint32_t row)
{
	return !batch->columns[TS_COLUMN_OF(sample, thread)][row] &&
	       ts_stack_is_instruction(samples->reader,
				       batch->columns[TS_COLUMN_OF(sample, stack)][row]);
}

/* "alloc_space/bytes": the last word is a unit. Empty: the name has none. */
static struct ts_string unit_of(const char *name, size_t length)
{
	const char *slash = length ? memrchr(name, '/', length) : NULL;

	if (!slash)
		return (struct ts_string){ .data = "", .length = 0 };
	return (struct ts_string){ .data = slash + 1,
				   .length = length - (size_t)(slash + 1 - name) };
}

static bool is_unit_of_time(struct ts_string unit)
{
	static const char *const times[] = {
		"nanoseconds", "microseconds", "milliseconds", "seconds", "ns", "us", "ms", "s"
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(times); i++)
		if (unit.length == strlen(times[i]) && !memcmp(unit.data, times[i], unit.length))
			return true;
	return false;
}

bool ts_samples_is_time(const char *name, size_t length)
{
	struct ts_string unit = unit_of(name, length);
	static const char *const counted[] = {
		"*cycles*",      "*instructions*",
		"*cache*",       "*branch*",
		"*-misses*",     "*-loads*",
		"*-stores*",     "*faults*",
		"*TLB*",         "cs",
		"cs:*",          "*switches*",
		"*migrations*",  "*:*_*",
		"*_space",       "*_objects",
		"space",         "objects",
		"*allocations*", "contentions",
		"mem-*",         "r[0-9a-f][0-9a-f][0-9a-f]*",
	};

	if (unit.length)
		return is_unit_of_time(unit);
	for (size_t i = 0; i < TS_ARRAY_SIZE(counted); i++)
		if (ts_glob_match(counted[i], name, length))
			return false;
	return true;
}

/* Cached: there are a handful of names. */
static bool is_time(struct ts_samples *samples, int64_t name)
{
	struct ts_string text;
	bool is_new = false;
	uint64_t *known;

	if (!name)
		return true;
	known = ts_map_insert(&samples->events, (uint64_t)name, &is_new);
	if (known && !is_new)
		return *known != 0;
	text = ts_reader_string(samples->reader, name);
	if (!known)
		return ts_samples_is_time(text.data, text.length);
	*known = ts_samples_is_time(text.data, text.length);
	return *known != 0;
}

static int survey_chunk(struct ts_samples *samples, struct ts_batch *batch, size_t chunk,
			int64_t *greatest)
{
	int rc = ts_batch_read(batch, chunk,
			       TS_MASK_OF(sample, weight) | TS_MASK_OF(sample, thread) |
				       TS_MASK_OF(sample, stack) | TS_MASK_OF(sample, name),
			       samples->err);
	const int64_t *weight = batch->columns[TS_COLUMN_OF(sample, weight)];

	for (uint32_t row = 0; !rc && weight && row < batch->rows; row++)
		if (weight[row] > *greatest &&
		    is_time(samples, batch->columns[TS_COLUMN_OF(sample, name)][row]) &&
		    !is_on_device(samples, batch, row))
			*greatest = weight[row];
	return rc;
}

static int survey(struct ts_samples *samples)
{
	struct ts_batch *batch = NULL;
	int64_t greatest = 0;
	int rc = ts_batch_new(&batch, samples->reader, samples->err);

	for (size_t i = 0; !rc && i < ts_reader_chunk_count(samples->reader); i++)
		if (ts_reader_chunk(samples->reader, i)->table == TS_TABLE_SAMPLE)
			rc = survey_chunk(samples, batch, i, &greatest);
	ts_batch_free(batch);
	samples->are_timed = greatest >= MIN_WEIGHT_NS;
	return rc;
}

static void count_rows(struct ts_samples *samples, enum ts_table_id table)
{
	samples->rows = ts_reader_rows(samples->reader, table);
	for (size_t i = 0; i < ts_reader_chunk_count(samples->reader); i++)
		if (ts_reader_chunk(samples->reader, i)->table == table)
			samples->bytes += ts_reader_chunk(samples->reader, i)->bytes;
}

void ts_samples_release(struct ts_samples *samples)
{
	ts_map_release(&samples->states);
	ts_map_release(&samples->events);
	ts_call_index_free(samples->launches);
}

/* ---- commands in place of samples ---- */

#define ROWS_A_STEP 4096

struct visitor {
	struct ts_samples *samples;
	uint64_t rows;
	int (*visit)(void *context, const struct ts_stack_sample *sample);
	void *context;
};

/* Not 0: the caller wants to stop. */
static int report_progress(const struct ts_samples *samples, uint64_t bytes_done)
{
	uint64_t done = samples->pass * samples->bytes + bytes_done;

	return samples->options.progress &&
	       samples->options.progress(samples->options.context,
					 done / TS_MAX(samples->options.passes, 1), samples->bytes);
}

/* The index gives no bytes: progress is estimated from the rows. */
static int count_command(struct visitor *visitor)
{
	const struct ts_samples *samples = visitor->samples;
	double share = (double)visitor->rows / (double)TS_MAX(samples->rows, 1);

	if (visitor->rows++ % ROWS_A_STEP)
		return TS_OK;
	if (report_progress(samples, (uint64_t)(share * (double)samples->bytes)))
		return ts_error_set(samples->err, TS_ECANCELED, "interrupted");
	return TS_OK;
}

static int see_command(void *context, const struct ts_launched_op *launched, struct ts_error *err)
{
	struct visitor *visitor = context;
	const struct ts_stack_sample sample = {
		.start = launched->start,
		.thread = launched->call.thread,
		/* For a kernel of a graph, where it was captured. */
		.stack = launched->stack ? launched->stack : launched->call.stack,
		.count = 1,
		.weight = TS_MAX(launched->duration, 0),
		.leaf = ts_frame_of_string(launched->name),
	};

	int rc = count_command(visitor);

	(void)err; /* the same as samples->err */
	return rc ? rc : visitor->visit(visitor->context, &sample);
}

/* First of all events. */
#define START 0
_Static_assert(TS_COLUMN_OF(sample, start) == START && TS_COLUMN_OF(api_call, start) == START &&
		       TS_COLUMN_OF(allocation, start) == START,
	       "columns of events");

/* ---- a sample ---- */

static enum ts_thread_state name_state(struct ts_reader *reader, int64_t string)
{
	struct ts_string text = ts_reader_string(reader, string);

	if (!strcmp(text.data, "idle"))
		return TS_THREAD_IDLE;
	return !strcmp(text.data, "waiting for gil") ? TS_THREAD_WAITS_FOR_GIL : TS_THREAD_RUNS;
}

/* Cached: there are a handful of states. */
static enum ts_thread_state state_of(struct ts_samples *samples, int64_t string)
{
	bool is_new = false;
	uint64_t *state;

	if (!string)
		return TS_THREAD_RUNS;
	state = ts_map_insert(&samples->states, (uint64_t)string, &is_new);
	if (!state)
		return name_state(samples->reader, string);
	if (is_new)
		*state = (uint64_t)name_state(samples->reader, string);
	return (enum ts_thread_state) * state;
}

static void see_sample(struct ts_samples *samples, const struct ts_batch *batch, uint32_t row,
		       struct ts_stack_sample *ret_sample)
{
	int64_t weight = batch->columns[TS_COLUMN_OF(sample, weight)][row];
	bool is_counted = !is_time(samples, batch->columns[TS_COLUMN_OF(sample, name)][row]);
	bool is_device = is_on_device(samples, batch, row);

	if (samples->are_timed && !is_device)
		weight = is_counted ? 0 : TS_MAX(weight, 0);
	else if (is_counted && !is_device && weight != TS_ABSENT)
		weight = TS_MAX(weight, 0); /* 0 events are 0, not 1 */
	else
		weight = weight > 0 ? weight : 1;
	*ret_sample = (struct ts_stack_sample){
		.start = batch->columns[TS_COLUMN_OF(sample, start)][row],
		.thread = batch->columns[TS_COLUMN_OF(sample, thread)][row],
		.stack = batch->columns[TS_COLUMN_OF(sample, stack)][row],
		.count = samples->are_timed && !is_device ? weight > 0 : weight,
		.weight = samples->are_timed && is_device ? 0 : weight,
		.is_on_device = is_device,
		.state = state_of(samples, batch->columns[TS_COLUMN_OF(sample, state)][row]),
	};
}

static void see_call(struct ts_samples *samples, const struct ts_batch *batch, uint32_t row,
		     struct ts_stack_sample *ret_sample)
{
	(void)samples;
	*ret_sample = (struct ts_stack_sample){
		.start = batch->columns[START][row],
		.thread = batch->columns[TS_COLUMN_OF(api_call, thread)][row],
		.stack = batch->columns[TS_COLUMN_OF(api_call, stack)][row],
		.count = 1,
		.weight = 1,
		.leaf = ts_frame_of_string(batch->columns[TS_COLUMN_OF(api_call, name)][row]),
	};
}

/* Memory that is freed later counts all the same. */
static void see_allocation(struct ts_samples *samples, const struct ts_batch *batch, uint32_t row,
			   struct ts_stack_sample *ret_sample)
{
	int64_t bytes = batch->columns[TS_COLUMN_OF(allocation, bytes)][row];
	bool is_taken = batch->columns[TS_COLUMN_OF(allocation, kind)][row] ==
				TS_ALLOCATION_ALLOC &&
			bytes > 0;

	(void)samples;
	*ret_sample = (struct ts_stack_sample){
		.start = batch->columns[START][row],
		.thread = batch->columns[TS_COLUMN_OF(allocation, thread)][row],
		.stack = batch->columns[TS_COLUMN_OF(allocation, stack)][row],
		.count = is_taken,
		.weight = is_taken ? bytes : 0,
	};
}

static const struct ts_sample_source sampled = {
	.table = TS_TABLE_SAMPLE,
	.mask = TS_MASK_OF(sample, start) | TS_MASK_OF(sample, thread) | TS_MASK_OF(sample, stack) |
		TS_MASK_OF(sample, weight) | TS_MASK_OF(sample, state) | TS_MASK_OF(sample, name),
	.see = see_sample,
};

static const struct ts_sample_source called = {
	.table = TS_TABLE_API_CALL,
	.mask = TS_MASK_OF(api_call, start) | TS_MASK_OF(api_call, thread) |
		TS_MASK_OF(api_call, stack) | TS_MASK_OF(api_call, name),
	.see = see_call,
};

static const struct ts_sample_source allocated = {
	.table = TS_TABLE_ALLOCATION,
	.mask = TS_MASK_OF(allocation, start) | TS_MASK_OF(allocation, thread) |
		TS_MASK_OF(allocation, stack) | TS_MASK_OF(allocation, kind) |
		TS_MASK_OF(allocation, bytes),
	.see = see_allocation,
};

/* ---- entry points ---- */

static const struct ts_sample_source *const sources[] = {
	[TS_SAMPLES_TAKEN] = &sampled,
	[TS_SAMPLES_CALLS] = &called,
	[TS_SAMPLES_ALLOCATIONS] = &allocated,
};

int ts_samples_open(struct ts_samples *samples, struct ts_reader *reader,
		    const struct ts_samples_options *options, struct ts_error *err)
{
	int rc = TS_OK;

	*samples = (struct ts_samples){ .reader = reader, .err = err, .unit = "none" };
	if (options)
		samples->options = *options;
	ts_map_init(&samples->states);
	ts_map_init(&samples->events);
	if (samples->options.kind == TS_SAMPLES_COMMANDS) {
		samples->are_timed = true;
		count_rows(samples, TS_TABLE_GPU_OP);
		rc = ts_call_index_new(&samples->launches, reader, err);
	} else {
		samples->source = sources[samples->options.kind];
		count_rows(samples, samples->source->table);
		if (samples->options.kind == TS_SAMPLES_TAKEN)
			rc = survey(samples);
	}
	if (samples->are_timed)
		samples->unit = "nanoseconds";
	else if (samples->options.kind == TS_SAMPLES_ALLOCATIONS)
		samples->unit = "bytes";
	return rc;
}

static int on_progress(void *context, uint64_t bytes_done)
{
	return report_progress(context, bytes_done);
}

static int walk_rows(struct ts_samples *samples,
		     int (*visit)(void *context, const struct ts_stack_sample *sample),
		     void *context)
{
	const struct ts_sample_source *source = samples->source;
	uint64_t masks[TS_TABLE_COUNT] = { 0 };
	const struct ts_row_merge_options options = {
		.tables = TS_TABLE_BIT(source->table),
		.masks = masks,
		.max_open = MAX_OPEN,
		.progress = on_progress,
		.context = samples,
	};
	struct ts_merge_cursor *cursor;
	struct ts_row_merge merge;
	int rc;

	masks[source->table] = source->mask;
	rc = ts_row_merge_open(&merge, samples->reader, &options, samples->err);
	while (!rc && !(rc = ts_row_merge_next(&merge, &cursor, samples->err)) && cursor) {
		struct ts_stack_sample sample;

		source->see(samples, cursor->batch, cursor->row, &sample);
		if (sample.state != TS_THREAD_IDLE || !samples->options.skip_idle)
			rc = visit(context, &sample);
	}
	ts_row_merge_close(&merge);
	return rc;
}

int ts_samples_walk(struct ts_samples *samples,
		    int (*visit)(void *context, const struct ts_stack_sample *sample),
		    void *context)
{
	struct visitor visitor = { .samples = samples, .visit = visit, .context = context };
	int rc;

	if (samples->launches) {
		rc = ts_call_index_walk(samples->launches, see_command, &visitor, samples->err);
		samples->passed_over = samples->rows - visitor.rows;
	} else {
		rc = walk_rows(samples, visit, context);
	}
	samples->pass++;
	return rc;
}
