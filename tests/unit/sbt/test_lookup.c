/* SPDX-License-Identifier: Apache-2.0 */
/* Entities by id: consecutive ids, ids with gaps, newer rows of an id. */
#include <stdint.h>
#include <unistd.h>

#include <tracesmith/writer.h>

#include "base/memory.h"
#include "sbt/reader_internal.h"
#include "unit/runner.h"
#include "unit/temporary.h"

/* A trace with these threads, in that order; the tid is the index. */
static struct ts_reader *write_threads(const int64_t *ids, int count)
{
	struct ts_writer_options options = { .size = sizeof(options), .threads = -1 };
	struct ts_writer *writer;
	struct ts_reader *reader;
	struct ts_error err = { 0 };
	char path[64];

	temporary_path(path);
	TS_CHECK_INT(ts_writer_open(&writer, path, &options, &err), 0);
	for (int i = 0; i < count; i++) {
		struct ts_thread_row row = ts_thread_none;

		row.id = ids[i];
		row.tid = i;
		TS_CHECK_INT(ts_writer_add(writer, TS_TABLE_THREAD, &row, NULL), 0);
	}
	TS_CHECK_INT(ts_writer_finish(writer, &err), 0);
	ts_writer_close(writer);
	TS_CHECK_INT(ts_reader_open(&reader, path, &err), 0);
	unlink(path);
	return reader;
}

/* The tid of a thread; -1: unknown. */
static int64_t tid_of(struct ts_reader *reader, int64_t id)
{
	const struct ts_thread_row *row = ts_reader_entity(reader, TS_TABLE_THREAD, id);

	return row ? row->tid : -1;
}

TS_TEST(ids_of_a_writer_take_no_memory)
{
	static const int64_t ids[] = { 7, 8, 9, 8, 10 };
	struct ts_reader *reader = write_threads(ids, TS_ARRAY_SIZE(ids));
	const struct sbt_entities *threads = &reader->entities[TS_TABLE_THREAD];
	const struct ts_thread_row *row;
	int64_t id, expected = 7;
	size_t cursor = 0;

	TS_CHECK_INT(tid_of(reader, 7), 0);
	TS_CHECK_INT(tid_of(reader, 8), 3);
	TS_CHECK_INT(tid_of(reader, 10), 4);
	TS_CHECK_INT(tid_of(reader, 6), -1);
	TS_CHECK_INT(tid_of(reader, 11), -1);
	TS_CHECK_INT(tid_of(reader, 0), -1);
	TS_CHECK_INT(tid_of(reader, INT64_MIN), -1);
	while ((row = ts_reader_entity_next(reader, TS_TABLE_THREAD, &cursor, &id)) != NULL) {
		TS_CHECK_INT(id, expected++);
		TS_CHECK_INT(row->id, id);
	}
	TS_CHECK_INT(expected, 11);
	TS_CHECK(!threads->ids && !ts_map_count(&threads->indices));
	ts_reader_close(reader);
}

TS_TEST(ids_with_gaps)
{
	static const int64_t ids[] = { 5, 6, 3, 6, INT64_MAX, 7, 3, 5 };
	static const int64_t order[] = { 5, 6, 3, INT64_MAX, 7 };
	struct ts_reader *reader = write_threads(ids, TS_ARRAY_SIZE(ids));
	size_t cursor = 0, count = 0;
	int64_t id;

	TS_CHECK_INT(tid_of(reader, 3), 6);
	TS_CHECK_INT(tid_of(reader, 5), 7);
	TS_CHECK_INT(tid_of(reader, 6), 3);
	TS_CHECK_INT(tid_of(reader, 7), 5);
	TS_CHECK_INT(tid_of(reader, INT64_MAX), 4);
	TS_CHECK_INT(tid_of(reader, 4), -1);
	TS_CHECK_INT(tid_of(reader, 8), -1);
	/* By their first rows. */
	while (ts_reader_entity_next(reader, TS_TABLE_THREAD, &cursor, &id))
		TS_CHECK_INT(id, order[count++]);
	TS_CHECK_INT(count, TS_ARRAY_SIZE(order));
	ts_reader_close(reader);
}
