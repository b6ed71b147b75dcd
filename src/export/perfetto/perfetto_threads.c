/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the next chunk and writes full buffers on threads of their own. At most one chunk and one
 * buffer ahead, always the same ones, so that memory is bounded and the file does not depend on
 * timing.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "base/io.h"
#include "export/perfetto/perfetto_export.h"

/* One reads, one writes: neither waits for the other. */
#define THREADS 2

int ts_pf_threads_start(struct ts_pf_export *x)
{
	x->reading.reader = x->reader;
	x->writing.fd = x->fd;
	/* No gain with a single CPU: jobs then run synchronously. */
	return ts_pool_start(&x->pool, ts_pool_processors() > 1 ? THREADS : 0, x->err);
}

void ts_pf_threads_stop(struct ts_pf_export *x)
{
	ts_pool_stop(x->pool);
	ts_text_release(&x->writing.bytes);
	if (x->reading.cursor)
		ts_merge_cursor_free(&x->reading.cursor->merge);
}

/* ---- writing ---- */

static void write_bytes(void *argument)
{
	struct ts_pf_writing *writing = argument;
	sigset_t pipe;

	/* Workers block all signals; SIGPIPE must still end the tool, unless it is ignored. */
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_UNBLOCK, &pipe, NULL);
	writing->result = ts_write_all(writing->fd, writing->bytes.data, writing->bytes.length,
				       &writing->err);
}

int ts_pf_write_wait(struct ts_pf_export *x)
{
	struct ts_pf_writing *writing = &x->writing;

	if (!writing->is_busy)
		return TS_OK;
	ts_pool_wait(x->pool, &writing->job);
	writing->is_busy = false;
	if (writing->result)
		*x->err = writing->err;
	return writing->result;
}

int ts_pf_write(struct ts_pf_export *x)
{
	struct ts_text full = x->out;
	int result = ts_pf_write_wait(x);

	if (result)
		return result;
	x->out = x->writing.bytes;
	ts_text_clear(&x->out);
	x->writing.bytes = full;
	x->writing.is_busy = true;
	ts_pool_submit(x->pool, &x->writing.job, write_bytes, &x->writing);
	return TS_OK;
}

/* ---- reading ---- */

static void read_chunk(void *argument)
{
	struct ts_pf_reading *reading = argument;

	if (!reading->cursor)
		reading->cursor = calloc(1, sizeof(*reading->cursor));
	if (!reading->cursor)
		reading->result = ts_error_set(&reading->err, TS_ENOMEM, "no memory");
	else
		reading->result = ts_pf_cursor_read(reading->cursor, reading->reader,
						    reading->chunk, &reading->err);
}

void ts_pf_read(struct ts_pf_export *x, size_t chunk)
{
	x->reading.chunk = chunk;
	x->reading.is_busy = true;
	ts_pool_submit(x->pool, &x->reading.job, read_chunk, &x->reading);
}

int ts_pf_read_wait(struct ts_pf_export *x, size_t chunk, struct ts_pf_cursor **cursor)
{
	struct ts_pf_cursor *used = *cursor;

	if (!x->reading.is_busy)
		ts_pf_read(x, chunk);
	ts_pool_wait(x->pool, &x->reading.job);
	x->reading.is_busy = false;
	if (x->reading.result) {
		*x->err = x->reading.err;
		return x->reading.result;
	}
	*cursor = x->reading.cursor;
	x->reading.cursor = used;
	return TS_OK;
}
