/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: threads convert units ahead of the consumer, into a ring of finished batches, which are
 * handed out in the order of the units.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracesmith/arrow.h>

#include "arrow/arrow_source.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/thread.h"

#define MOST_THREADS 16u
/* Finished batches that wait, for each thread. */
#define AHEAD 2u
#define RING (MOST_THREADS * (AHEAD + 1))

/* What became of a unit. */
struct outcome {
	struct ts_arrow_batch *batch;
	struct ts_error err;
	bool is_done;
};

struct stream {
	struct ts_arrow_source source;
	struct ts_arrow_options options;
	bool is_prepared, has_ended;
	size_t given;  /* units whose batch was handed out */
	uint64_t left; /* rows that may still be handed out */
	struct ts_error err;
	char message[TS_ERROR_MESSAGE_BYTES];

	struct ts_arrow_worker self; /* without threads */
	pthread_t threads[MOST_THREADS];
	unsigned int thread_count;
	pid_t process;     /* that has them */
	unsigned int ring; /* units that may be taken ahead of `given` */
	/* The rest is guarded by the lock. */
	pthread_mutex_t lock;
	pthread_cond_t done, space;
	size_t taken; /* units that some thread has begun */
	bool is_stopping;
	struct outcome outcomes[RING]; /* of unit n: n modulo ring */
};

/* ---- threads ---- */

/* The next unit, or NULL at the end. */
static const struct ts_arrow_unit *take_unit(struct stream *stream, struct outcome **ret_outcome)
{
	const struct ts_arrow_unit *unit = NULL;

	pthread_mutex_lock(&stream->lock);
	while (!stream->is_stopping && stream->taken < stream->source.unit_count &&
	       stream->taken >= stream->given + stream->ring)
		pthread_cond_wait(&stream->space, &stream->lock);
	if (!stream->is_stopping && stream->taken < stream->source.unit_count) {
		*ret_outcome = &stream->outcomes[stream->taken % stream->ring];
		unit = &stream->source.units[stream->taken++];
	}
	pthread_mutex_unlock(&stream->lock);
	return unit;
}

static void *work(void *context)
{
	struct stream *stream = context;
	const struct ts_arrow_unit *unit;
	struct ts_arrow_worker worker;
	struct outcome *outcome;

	ts_arrow_worker_init(&worker, &stream->source);
	while ((unit = take_unit(stream, &outcome))) {
		struct ts_arrow_batch *batch = NULL;
		struct ts_error err = { 0 };

		ts_arrow_worker_convert(&worker, unit, &batch, &err);
		pthread_mutex_lock(&stream->lock);
		outcome->batch = batch;
		outcome->err = err;
		outcome->is_done = true;
		pthread_cond_signal(&stream->done);
		pthread_mutex_unlock(&stream->lock);
	}
	ts_arrow_worker_release(&worker);
	return NULL;
}

static void start_threads(struct stream *stream)
{
	unsigned int wanted = stream->options.threads > 0 ? (unsigned int)stream->options.threads
							  : ts_pool_processors();

	wanted = TS_MIN(wanted, MOST_THREADS);
	if (stream->options.threads < 0 || stream->source.unit_count < 2)
		wanted = 0;
	if (wanted > stream->source.unit_count)
		wanted = (unsigned int)stream->source.unit_count;
	stream->ring = wanted * (AHEAD + 1);
	stream->process = getpid();
	while (stream->thread_count < wanted &&
	       !ts_thread_start(&stream->threads[stream->thread_count], "ts-arrow", work, stream))
		stream->thread_count++;
	/* Without threads, which a process may be denied, the caller converts. */
	if (!stream->thread_count)
		ts_arrow_worker_init(&stream->self, &stream->source);
}

/*
 * True in a child of the process that began the stream: the threads are not there, and the lock may
 * be held for ever.
 */
static bool is_of_parent(const struct stream *stream)
{
	return stream->thread_count && stream->process != getpid();
}

static void stop_threads(struct stream *stream)
{
	pthread_mutex_lock(&stream->lock);
	stream->is_stopping = true;
	pthread_cond_broadcast(&stream->space);
	pthread_mutex_unlock(&stream->lock);
	for (unsigned int i = 0; i < stream->thread_count; i++)
		pthread_join(stream->threads[i], NULL);
	stream->thread_count = 0;
	for (size_t i = 0; i < RING; i++) {
		ts_arrow_batch_drop(stream->outcomes[i].batch);
		stream->outcomes[i].batch = NULL;
	}
}

/* ---- batches, in order ---- */

static int await_batch(struct stream *stream, struct ts_arrow_batch **ret_batch)
{
	struct outcome *outcome = &stream->outcomes[stream->given % stream->ring];

	pthread_mutex_lock(&stream->lock);
	while (!outcome->is_done)
		pthread_cond_wait(&stream->done, &stream->lock);
	*ret_batch = TS_STEAL(outcome->batch);
	outcome->is_done = false;
	stream->err = outcome->err;
	stream->given++;
	pthread_cond_signal(&stream->space);
	pthread_mutex_unlock(&stream->lock);
	return stream->err.code;
}

static int next_batch(struct stream *stream, struct ts_arrow_batch **ret_batch)
{
	if (stream->thread_count)
		return await_batch(stream, ret_batch);
	return ts_arrow_worker_convert(&stream->self, &stream->source.units[stream->given++],
				       ret_batch, &stream->err);
}

/* At most as many rows as are left. */
static void cut_batch(struct stream *stream, struct ts_arrow_batch *batch)
{
	if (batch->rows > stream->left) {
		batch->rows = (uint32_t)stream->left;
		for (size_t i = 0; i < batch->field_count; i++)
			batch->data[i].null_count = -1;
	}
	stream->left -= batch->rows;
}

static int give_batch(struct stream *stream, struct ts_arrow_batch *batch,
		      struct ArrowArray *ret_array)
{
	int result;

	cut_batch(stream, batch);
	result = ts_arrow_batch_export(batch, &stream->source.fields, stream->source.dictionaries,
				       ret_array);
	if (result) {
		ts_arrow_batch_drop(batch);
		ts_error_set(&stream->err, result, "no memory");
	}
	return result;
}

static int prepare(struct stream *stream)
{
	int result;

	if (stream->is_prepared)
		return TS_OK;
	result = ts_arrow_source_prepare(&stream->source, &stream->err);
	stream->is_prepared = !result;
	if (!result)
		start_threads(stream);
	return result;
}

/* *ret_array has no release at the end. */
static int next_array(struct stream *stream, struct ArrowArray *ret_array)
{
	struct ts_arrow_batch *batch = NULL;
	int result = prepare(stream);

	while (!result && stream->left && stream->given < stream->source.unit_count) {
		result = next_batch(stream, &batch);
		if (result || batch->rows)
			break;
		ts_arrow_batch_drop(batch);
		batch = NULL;
	}
	return result || !batch ? result : give_batch(stream, batch, ret_array);
}

/* ---- the interface ---- */

/* Its error codes are those of the system. */
static int errno_of(int result)
{
	switch (result) {
	case TS_OK:
		return 0;
	case TS_EINVAL:
	case TS_ENOTFOUND:
		return EINVAL;
	case TS_ENOMEM:
		return ENOMEM;
	case TS_ENOSPC:
		return ENOSPC;
	case TS_ECANCELED:
		return ECANCELED;
	default:
		return EIO;
	}
}

static int get_schema(struct ArrowArrayStream *array_stream, struct ArrowSchema *out)
{
	struct stream *stream = array_stream->private_data;

	if (!ts_arrow_fields_export(&stream->source.fields, out))
		return 0;
	ts_error_set(&stream->err, TS_ENOMEM, "no memory");
	return ENOMEM;
}

static int get_next(struct ArrowArrayStream *array_stream, struct ArrowArray *out)
{
	struct stream *stream = array_stream->private_data;
	struct ArrowArray array = { .release = NULL };
	int result;

	if (is_of_parent(stream))
		return errno_of(ts_error_set(&stream->err, TS_EINVAL,
					     "this stream was started before fork(): start another "
					     "one in this process"));
	/* An error ends the stream: it is the answer to every further call. */
	if (stream->has_ended && stream->err.code)
		return errno_of(stream->err.code);
	result = stream->has_ended ? TS_OK : next_array(stream, &array);
	if (result || !array.release) {
		stream->has_ended = true;
		stop_threads(stream);
	}
	if (!result)
		*out = array;
	return errno_of(result);
}

static const char *get_last_error(struct ArrowArrayStream *array_stream)
{
	struct stream *stream = array_stream->private_data;

	return stream->err.code ? stream->err.message : NULL;
}

static void free_stream(struct stream *stream)
{
	stop_threads(stream);
	ts_arrow_worker_release(&stream->self);
	ts_arrow_source_release(&stream->source);
	pthread_cond_destroy(&stream->done);
	pthread_cond_destroy(&stream->space);
	pthread_mutex_destroy(&stream->lock);
	free(stream);
}

static void release(struct ArrowArrayStream *array_stream)
{
	struct stream *stream = array_stream->private_data;
	void (*release_owner)(void *owner) = stream->options.release_owner;
	void *owner = stream->options.owner;

	/* What its threads use cannot be released. */
	if (!is_of_parent(stream))
		free_stream(stream);
	array_stream->release = NULL;
	array_stream->private_data = NULL;
	if (release_owner)
		release_owner(owner);
}

int ts_arrow_stream(struct ArrowArrayStream *ret_stream, struct ts_reader *const *readers,
		    size_t reader_count, const char *table, const struct ts_arrow_options *options,
		    struct ts_error *err)
{
	struct stream *stream;
	int result;

	if (!ret_stream || !readers || !reader_count || !table)
		return ts_error_set(err, TS_EINVAL, "a stream needs a trace and a table");
	stream = calloc(1, sizeof(*stream));
	if (!stream)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	pthread_mutex_init(&stream->lock, NULL);
	pthread_cond_init(&stream->done, NULL);
	pthread_cond_init(&stream->space, NULL);
	stream->options = ts_arrow_options_read(options);
	stream->left = stream->options.limit ? stream->options.limit : UINT64_MAX;
	result = ts_arrow_source_init(&stream->source, readers, reader_count, table,
				      &stream->options, err);
	/* The caller's list of names need not outlive this call. */
	stream->options.columns = NULL;
	if (result) {
		free_stream(stream);
		return result;
	}
	*ret_stream = (struct ArrowArrayStream){ .get_schema = get_schema,
						 .get_next = get_next,
						 .get_last_error = get_last_error,
						 .release = release,
						 .private_data = stream };
	return TS_OK;
}

int ts_arrow_schema(struct ArrowSchema *ret_schema, size_t reader_count, const char *table,
		    const struct ts_arrow_options *options, struct ts_error *err)
{
	struct ts_arrow_options all = ts_arrow_options_read(options);
	struct ts_arrow_fields fields;
	int result;

	if (!ret_schema || !table)
		return ts_error_set(err, TS_EINVAL, "a schema needs a table");
	result = ts_arrow_fields_init(&fields, table, reader_count > 1, &all, err);
	if (!result && ts_arrow_fields_export(&fields, ret_schema))
		result = ts_error_set(err, TS_ENOMEM, "no memory");
	ts_arrow_fields_release(&fields);
	return result;
}

/* ---- counts ---- */

static uint64_t count_entities(struct ts_reader *reader, enum ts_table_id table)
{
	size_t cursor = 0;
	uint64_t count = 0;
	int64_t id;

	while (ts_reader_entity_next(reader, table, &cursor, &id))
		count++;
	return count;
}

int ts_arrow_rows(struct ts_reader *const *readers, size_t reader_count, const char *table,
		  uint64_t *ret_rows, struct ts_error *err)
{
	const struct ts_arrow_options options = { .size = sizeof(options) };
	const struct ts_table_info *info;
	struct ts_arrow_fields fields;
	uint64_t rows = 0;
	int result = ts_arrow_fields_init(&fields, table, false, &options, err);

	info = fields.table;
	if (!result && info->kind == TS_KIND_DERIVED)
		result = ts_error_set(err, TS_EINVAL, "table '%s' is derived, not stored", table);
	for (size_t i = 0; !result && i < reader_count; i++)
		rows += info->kind == TS_KIND_ENTITY
				? count_entities(readers[i], (enum ts_table_id)info->id)
				: ts_reader_rows(readers[i], (enum ts_table_id)info->id);
	ts_arrow_fields_release(&fields);
	if (!result)
		*ret_rows = rows;
	return result;
}
