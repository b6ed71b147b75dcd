/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interleaved rows of several clocks: each clock has its own chunks, few and full, and no row or
 * order is lost.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracesmith/reader.h>
#include <tracesmith/writer.h>

#include "base/memory.h"
#include "sbt/sbt_layout.h"

#include "unit/runner.h"

static char path[64];

static void remove_file(void)
{
	unlink(path);
}

static struct ts_writer *open_writer(uint32_t chunk_rows)
{
	struct ts_writer_options options = { .size = sizeof(options),
					     .chunk_rows = chunk_rows,
					     .threads = 2 };
	struct ts_writer *writer = NULL;
	int fd;

	snprintf(path, sizeof(path), "/tmp/ts_sbt_clocks_XXXXXX");
	fd = mkstemp(path);
	TS_CHECK(fd >= 0);
	close(fd);
	atexit(remove_file);
	TS_CHECK_INT(ts_writer_open(&writer, path, &options, NULL), 0);
	return writer;
}

static struct ts_reader *finish(struct ts_writer *writer)
{
	struct ts_reader *reader = NULL;
	struct ts_error err;

	if (ts_writer_finish(writer, &err) || ts_verify(path, NULL, NULL, NULL, &err) ||
	    ts_reader_open(&reader, path, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	ts_writer_close(writer);
	return reader;
}

static void put_sync(struct ts_writer *writer, uint32_t clock, int64_t offset)
{
	struct ts_clock_sync_row row = ts_clock_sync_none;

	row.clock = clock;
	row.reference = offset;
	ts_writer_add(writer, TS_TABLE_CLOCK_SYNC, &row, NULL);
}

static void put_op(struct ts_writer *writer, uint32_t clock, int64_t start, int64_t duration)
{
	struct ts_gpu_op_row row = ts_gpu_op_none;

	row.start = start;
	row.duration = duration;
	row.queued = start - 1;
	row.context = clock;
	ts_writer_set_clock(writer, clock);
	ts_writer_add(writer, TS_TABLE_GPU_OP, &row, NULL);
}

/* Chunks of a table; of one clock, or of all (UINT32_MAX). */
static size_t count_chunks(const struct ts_reader *reader, unsigned int table, uint32_t clock)
{
	size_t count = 0;

	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(reader, i);

		count += chunk->table == table && (clock == UINT32_MAX || chunk->clock == clock);
	}
	return count;
}

/* Every op of clock c is at i + 1,000,000 c in trace time. */
static uint64_t check_ops(struct ts_reader *reader)
{
	struct ts_batch *batch;
	uint64_t rows = 0;

	TS_CHECK_INT(ts_batch_new(&batch, reader, NULL), 0);
	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(reader, i);
		struct ts_gpu_op_row row;

		if (chunk->table != TS_TABLE_GPU_OP)
			continue;
		TS_CHECK_INT(ts_batch_read(batch, i, TS_MASK_ALL, NULL), 0);
		for (uint32_t k = 0; k < batch->rows; k++) {
			ts_batch_row(batch, k, &row);
			TS_CHECK_INT(row.context, chunk->clock);
			TS_CHECK_INT(row.start / 1000000, row.context);
			TS_CHECK_INT(row.queued, row.start - 1);
			rows++;
		}
	}
	ts_batch_free(batch);
	return rows;
}

TS_TEST(mixed_rows_make_few_chunks)
{
	struct ts_writer *writer = open_writer(2048);
	struct ts_reader *reader;

	for (uint32_t clock = 1; clock <= 5; clock++)
		put_sync(writer, clock, (int64_t)clock * 1000000);
	for (int64_t i = 0; i < 8000; i++)
		put_op(writer, 1 + (uint32_t)(i % 5), 1 + i, 10);
	TS_CHECK_INT(ts_writer_rows(writer, TS_TABLE_GPU_OP), 8000);
	reader = finish(writer);
	TS_CHECK_INT(check_ops(reader), 8000);
	for (uint32_t clock = 1; clock <= 5; clock++)
		TS_CHECK_INT(count_chunks(reader, TS_TABLE_GPU_OP, clock), 1);
	ts_reader_close(reader);
}

/* More clocks than may have a chunk at once: rows are written early, and all of them. */
TS_TEST(many_clocks_take_bounded_memory)
{
	struct ts_writer *writer = open_writer(2048);
	struct ts_reader *reader;

	for (uint32_t clock = 1; clock <= 300; clock++)
		put_sync(writer, clock, (int64_t)clock * 1000000);
	for (int64_t i = 0; i < 60000; i++)
		put_op(writer, 1 + (uint32_t)(i / 3 % 300), 1 + i, 10);
	reader = finish(writer);
	TS_CHECK_INT(check_ops(reader), 60000);
	ts_reader_close(reader);
}

/* The total number of buffered rows is bounded: a chunk is written before any is full. */
TS_TEST(rows_of_all_clocks_together_are_bounded)
{
	struct ts_writer *writer = open_writer(2048);
	struct ts_reader *reader;

	for (uint32_t clock = 1; clock <= 50; clock++)
		put_sync(writer, clock, (int64_t)clock * 1000000);
	for (int64_t i = 0; i < 50 * 1000; i++)
		put_op(writer, 1 + (uint32_t)(i % 50), 1 + i, 10);
	/* No clock has a full chunk, but four chunks' worth of rows have accumulated. */
	TS_CHECK(ts_writer_chunk_bytes(writer) > sizeof(struct sbt_file_header));
	reader = finish(writer);
	TS_CHECK_INT(check_ops(reader), 50 * 1000);
	ts_reader_close(reader);
}

TS_TEST(flush_and_save_take_all_clocks)
{
	struct ts_writer *writer = open_writer(0);
	struct ts_reader *reader;

	put_sync(writer, 1, 1000000);
	put_sync(writer, 2, 2000000);
	put_op(writer, 1, 5, 1);
	put_op(writer, 2, 5, 1);
	TS_CHECK_INT(ts_writer_flush(writer), 0);
	put_op(writer, 2, 6, 1);
	put_op(writer, 1, 6, 1);
	TS_CHECK_INT(ts_writer_save(writer, NULL), 0);
	TS_CHECK_INT(ts_reader_open(&reader, path, NULL), 0);
	TS_CHECK(ts_reader_state(reader)->finished);
	TS_CHECK_INT(check_ops(reader), 4);
	TS_CHECK_INT(count_chunks(reader, TS_TABLE_GPU_OP, UINT32_MAX), 4);
	ts_reader_close(reader);
	put_op(writer, 1, 7, 1);
	reader = finish(writer);
	TS_CHECK_INT(check_ops(reader), 5);
	ts_reader_close(reader);
}

/* Long rows go to chunks of their own, with their clock. */
TS_TEST(long_rows_keep_their_clock)
{
	struct ts_writer *writer = open_writer(2048);
	struct ts_reader *reader;
	size_t long_chunks = 0;

	put_sync(writer, 1, 1000000);
	put_sync(writer, 2, 2000000);
	for (int64_t i = 0; i < 10000; i++)
		put_op(writer, 1 + (uint32_t)(i % 2), 1 + i, i % 500 < 2 ? 900000 : 1);
	reader = finish(writer);
	TS_CHECK_INT(check_ops(reader), 10000);
	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(reader, i);

		if (chunk->flags & TS_CHUNK_LONG) {
			TS_CHECK_INT(chunk->max_end / 1000000, chunk->clock);
			long_chunks++;
		}
	}
	TS_CHECK(long_chunks >= 2);
	ts_reader_close(reader);
}

/* A later row of an entity replaces an earlier one, whatever their clocks are. */
TS_TEST(entities_keep_their_order)
{
	struct ts_writer *writer = open_writer(0);
	const struct ts_process_row *process;
	struct ts_reader *reader;

	put_sync(writer, 1, 1000);
	put_sync(writer, 2, 2000);
	for (int64_t i = 0; i < 9; i++) {
		struct ts_process_row row = ts_process_none;

		row.id = 1;
		row.pid = i;
		row.start = i;
		ts_writer_set_clock(writer, i % 2 ? 1 : 2);
		ts_writer_add(writer, TS_TABLE_PROCESS, &row, NULL);
	}
	reader = finish(writer);
	process = ts_reader_entity(reader, TS_TABLE_PROCESS, 1);
	TS_CHECK_INT(process->pid, 8);
	TS_CHECK_INT(process->start, 2008);
	ts_reader_close(reader);
}

/* Tables without time ignore clocks. */
TS_TEST(tables_without_time_have_no_clock)
{
	struct ts_writer *writer = open_writer(0);
	struct ts_reader *reader;

	for (int64_t i = 0; i < 100; i++) {
		struct ts_thread_row row = ts_thread_none;

		row.id = i + 1;
		ts_writer_set_clock(writer, (uint32_t)i);
		ts_writer_add(writer, TS_TABLE_THREAD, &row, NULL);
	}
	reader = finish(writer);
	TS_CHECK_INT(count_chunks(reader, TS_TABLE_THREAD, UINT32_MAX), 1);
	TS_CHECK_INT(count_chunks(reader, TS_TABLE_THREAD, 0), 1);
	ts_reader_close(reader);
}

/* The newest row can be changed, even after one of another clock. */
TS_TEST(the_newest_row_is_amended)
{
	struct ts_writer *writer = open_writer(0);
	struct ts_batch *batch;
	struct ts_reader *reader;
	struct ts_gpu_op_row row;

	put_op(writer, 1, 5, 1);
	put_op(writer, 2, 6, 1);
	TS_CHECK_INT(ts_writer_amend(writer, TS_TABLE_GPU_OP, TS_COLUMN_OF(gpu_op, bytes), 77), 0);
	reader = finish(writer);
	TS_CHECK_INT(ts_batch_new(&batch, reader, NULL), 0);
	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
		if (ts_reader_chunk(reader, i)->table != TS_TABLE_GPU_OP)
			continue;
		TS_CHECK_INT(ts_batch_read(batch, i, TS_MASK_ALL, NULL), 0);
		ts_batch_row(batch, 0, &row);
		TS_CHECK_INT(row.bytes, row.context == 2 ? 77 : TS_ABSENT);
	}
	ts_batch_free(batch);
	ts_reader_close(reader);
}
