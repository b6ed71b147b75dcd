/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples (or calls, or allocations) of all chunks, merged by time: chunks are opened in the order
 * in which they begin, and few of them overlap.
 */
#include "export/common/samples.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "export/export.h"
#include "trace/call_index.h"
#include "trace/stack_lists.h"

#define MAX_OPEN 16
#define TEXT_BYTES ((size_t)64 << 20)
/* Nobody samples in less than this: where all weights are smaller, they are numbers of samples. */
#define MIN_WEIGHT_NS 1000

/* The table that is read, and what a row of it is as a sample. */
struct ts_sample_source {
	enum ts_table_id table;
	uint64_t mask;
	void (*see)(struct ts_samples *samples, const struct ts_batch *batch, uint32_t row,
		    struct ts_seen *ret_seen);
};

/* A chunk that is being read. */
struct cursor {
	struct ts_batch *batch;
	uint32_t row;
};

struct walk {
	struct ts_samples *samples;
	size_t *chunks; /* indices, by time */
	size_t chunk_count, next_chunk;
	struct cursor open[MAX_OPEN]; /* those beyond open_count hold batches to use again */
	size_t open_count;
	uint64_t bytes_done;
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

/* There are a handful of names. */
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
	ts_launches_free(samples->launches);
}

/* ---- commands in place of samples ---- */

#define ROWS_A_STEP 4096

struct visitor {
	struct ts_samples *samples;
	uint64_t rows;
	int (*visit)(void *context, const struct ts_seen *seen);
	void *context;
};

static int tell_progress(const struct ts_samples *samples, uint64_t bytes_done)
{
	uint64_t done = samples->pass * samples->bytes + bytes_done;

	if (samples->options && samples->options->progress &&
	    samples->options->progress(samples->options->context, done / TS_MAX(samples->passes, 1),
				       samples->bytes))
		return ts_error_set(samples->err, TS_ECANCELED, "interrupted");
	return TS_OK;
}

/* Rows are all that is seen of how far it is. */
static int count_command(struct visitor *visitor)
{
	const struct ts_samples *samples = visitor->samples;
	double share = (double)visitor->rows / (double)TS_MAX(samples->rows, 1);

	if (visitor->rows++ % ROWS_A_STEP)
		return TS_OK;
	return tell_progress(samples, (uint64_t)(share * (double)samples->bytes));
}

static int see_command(void *context, const struct ts_launched *launched, struct ts_error *err)
{
	struct visitor *visitor = context;
	const struct ts_seen seen = {
		.start = launched->start,
		.thread = launched->call.thread,
		/* Of a graph's kernel, where it was captured: that says what it is. */
		.stack = launched->stack ? launched->stack : launched->call.stack,
		.count = 1,
		.weight = TS_MAX(launched->duration, 0),
		.leaf = -launched->name,
	};

	int rc = count_command(visitor);

	(void)err; /* is that of the samples */
	return rc ? rc : visitor->visit(visitor->context, &seen);
}

/* ---- the merge ---- */

struct place {
	int64_t start;
	size_t chunk;
};

static int compare_places(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	return a->start != b->start ? TS_COMPARE(a->start, b->start)
				    : TS_COMPARE(a->chunk, b->chunk);
}

static int order_chunks(struct walk *walk)
{
	struct ts_reader *reader = walk->samples->reader;
	size_t all = ts_reader_chunk_count(reader), count = 0;
	TS_AUTO_FREE struct place *places = ts_alloc_array(all, sizeof(*places));

	walk->chunks = ts_alloc_array(all, sizeof(*walk->chunks));
	if (!places || !walk->chunks)
		return ts_error_set(walk->samples->err, TS_ENOMEM, "no memory");
	for (size_t i = 0; i < all; i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(reader, i);

		if (chunk->table == walk->samples->source->table)
			places[count++] = (struct place){ chunk->min_start, i };
	}
	ts_sort(places, count, sizeof(*places), compare_places);
	for (size_t i = 0; i < count; i++)
		walk->chunks[i] = places[i].chunk;
	walk->chunk_count = count;
	return TS_OK;
}

/* First of all events. */
#define START 0
_Static_assert(TS_COLUMN_OF(sample, start) == START && TS_COLUMN_OF(api_call, start) == START &&
		       TS_COLUMN_OF(allocation, start) == START,
	       "columns of events");

static int64_t time_of(const struct cursor *cursor)
{
	return cursor->batch->columns[START][cursor->row];
}

static int open_chunk(struct walk *walk)
{
	size_t chunk = walk->chunks[walk->next_chunk++];
	struct cursor *cursor = &walk->open[walk->open_count];
	int rc = tell_progress(walk->samples, walk->bytes_done);

	if (!rc && !cursor->batch)
		rc = ts_batch_new(&cursor->batch, walk->samples->reader, walk->samples->err);
	if (!rc)
		rc = ts_batch_read(cursor->batch, chunk, walk->samples->source->mask,
				   walk->samples->err);
	if (rc)
		return rc;
	cursor->row = 0;
	walk->bytes_done += ts_reader_chunk(walk->samples->reader, chunk)->bytes;
	if (cursor->batch->rows)
		walk->open_count++;
	/* No text is in use between two samples. */
	ts_reader_trim(walk->samples->reader, TEXT_BYTES);
	return TS_OK;
}

/* The open chunk whose next row is the earliest. */
static struct cursor *earliest(struct walk *walk)
{
	struct cursor *best = NULL;

	for (size_t i = 0; i < walk->open_count; i++)
		if (!best || time_of(&walk->open[i]) < time_of(best))
			best = &walk->open[i];
	return best;
}

/* Must another chunk be opened ahead of the next row? */
static bool is_due(const struct walk *walk, const struct cursor *next)
{
	const struct ts_chunk *chunk;

	if (walk->next_chunk == walk->chunk_count || walk->open_count == MAX_OPEN)
		return false;
	chunk = ts_reader_chunk(walk->samples->reader, walk->chunks[walk->next_chunk]);
	return !next || chunk->min_start <= time_of(next);
}

/*
 * Its batch goes behind those in use. Of chunks that are equally early the first opened comes
 * first.
 */
static void close_cursor(struct walk *walk, struct cursor *cursor)
{
	struct cursor closed = *cursor;

	walk->open_count--;
	memmove(cursor, cursor + 1,
		(size_t)(&walk->open[walk->open_count] - cursor) * sizeof(*cursor));
	walk->open[walk->open_count] = closed;
}

/* ---- a sample ---- */

static enum ts_thread_state name_state(struct ts_reader *reader, int64_t string)
{
	struct ts_string text = ts_reader_string(reader, string);

	if (!strcmp(text.data, "idle"))
		return TS_THREAD_IDLE;
	return !strcmp(text.data, "waiting for gil") ? TS_THREAD_WAITS_FOR_GIL : TS_THREAD_RUNS;
}

/* There are a handful of states, each with an id or a few. */
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
		       struct ts_seen *ret_seen)
{
	int64_t weight = batch->columns[TS_COLUMN_OF(sample, weight)][row];
	bool is_counted = !is_time(samples, batch->columns[TS_COLUMN_OF(sample, name)][row]);
	bool is_device = is_on_device(samples, batch, row);

	if (samples->are_timed && !is_device)
		weight = is_counted ? 0 : TS_MAX(weight, 0);
	else if (is_counted && !is_device && weight != TS_ABSENT)
		weight = TS_MAX(weight, 0); /* nothing of it is nothing, not one */
	else
		weight = weight > 0 ? weight : 1;
	*ret_seen = (struct ts_seen){
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
		     struct ts_seen *ret_seen)
{
	(void)samples;
	*ret_seen = (struct ts_seen){
		.start = batch->columns[START][row],
		.thread = batch->columns[TS_COLUMN_OF(api_call, thread)][row],
		.stack = batch->columns[TS_COLUMN_OF(api_call, stack)][row],
		.count = 1,
		.weight = 1,
		.leaf = -batch->columns[TS_COLUMN_OF(api_call, name)][row],
	};
}

/* What is given back again was taken all the same. */
static void see_allocation(struct ts_samples *samples, const struct ts_batch *batch, uint32_t row,
			   struct ts_seen *ret_seen)
{
	int64_t bytes = batch->columns[TS_COLUMN_OF(allocation, bytes)][row];
	bool is_taken = batch->columns[TS_COLUMN_OF(allocation, kind)][row] ==
				TS_ALLOCATION_ALLOC &&
			bytes > 0;

	(void)samples;
	*ret_seen = (struct ts_seen){
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

/* ---- all of it ---- */

int ts_samples_open(struct ts_samples *samples, struct ts_reader *reader,
		    const struct ts_export_options *options, unsigned int passes,
		    struct ts_error *err)
{
	int rc = TS_OK;

	*samples = (struct ts_samples){ .reader = reader,
					.options = options,
					.err = err,
					.flags = ts_export_flags(options),
					.unit = "none",
					.source = &sampled,
					.passes = passes };
	ts_map_init(&samples->states);
	ts_map_init(&samples->events);
	if (samples->flags & TS_EXPORT_CALLS)
		samples->source = &called;
	else if (samples->flags & TS_EXPORT_MEMORY)
		samples->source = &allocated;
	if (samples->flags & TS_EXPORT_DEVICE) {
		samples->are_timed = true;
		count_rows(samples, TS_TABLE_GPU_OP);
		rc = ts_launches_new(&samples->launches, reader, err);
	} else {
		count_rows(samples, samples->source->table);
		if (samples->source == &sampled)
			rc = survey(samples);
	}
	if (samples->are_timed)
		samples->unit = "nanoseconds";
	else if (samples->source == &allocated)
		samples->unit = "bytes";
	return rc;
}

static int step(struct walk *walk, int (*visit)(void *context, const struct ts_seen *seen),
		void *context)
{
	struct ts_samples *samples = walk->samples;
	struct cursor *next = earliest(walk);
	struct ts_seen seen;

	if (is_due(walk, next))
		return open_chunk(walk);
	samples->source->see(samples, next->batch, next->row, &seen);
	if (++next->row == next->batch->rows)
		close_cursor(walk, next);
	if (seen.state == TS_THREAD_IDLE && samples->flags & TS_EXPORT_NO_IDLE)
		return TS_OK;
	return visit(context, &seen);
}

int ts_samples_walk(struct ts_samples *samples,
		    int (*visit)(void *context, const struct ts_seen *seen), void *context)
{
	struct walk walk = { .samples = samples };
	struct visitor visitor = { .samples = samples, .visit = visit, .context = context };
	int rc;

	if (samples->launches) {
		rc = ts_launches_walk(samples->launches, see_command, &visitor, samples->err);
		samples->passed_over = samples->rows - visitor.rows;
		samples->pass++;
		return rc;
	}
	rc = order_chunks(&walk);
	while (!rc && (walk.open_count || walk.next_chunk < walk.chunk_count))
		rc = step(&walk, visit, context);
	for (size_t i = 0; i < MAX_OPEN; i++)
		ts_batch_free(walk.open[i].batch);
	free(walk.chunks);
	samples->pass++;
	return rc;
}
