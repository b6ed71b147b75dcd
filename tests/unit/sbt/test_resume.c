/* SPDX-License-Identifier: Apache-2.0 */
/* Writers that save, are interrupted, and resume: ids, sequence and index stay right. */
#include <tracesmith/writer.h>

#include <errno.h>
#include <sys/stat.h>

#include "unit/record/record_support.h"

static struct ts_writer *open_writer(const char *path)
{
	struct ts_writer_options options = { .size = sizeof(options), .threads = 1 };
	struct ts_writer *writer;

	TS_CHECK_INT(ts_writer_open(&writer, path, &options, NULL), 0);
	return writer;
}

/* Slices with a text argument, numbered from `first`. */
static void add_slices(struct ts_writer *writer, int first, int count)
{
	struct ts_field field = { .key = ts_writer_string(writer, "who", 3),
				  .type = TS_ARG_STRING };
	uint32_t shape = ts_writer_shape(writer, &field, 1);

	for (int i = first; i < first + count; i++) {
		struct ts_slice_row slice = ts_slice_none;
		char text[32];
		int64_t value;

		snprintf(text, sizeof(text), "slice %d", i % 10);
		value = ts_writer_string(writer, text, strlen(text));
		slice.start = i;
		slice.name = value;
		slice.shape = shape;
		TS_CHECK_INT(ts_writer_add(writer, TS_TABLE_SLICE, &slice, &value), 0);
	}
}

static void check_slices(const char *path, int count)
{
	struct rows rows = rows_open(path, TS_TABLE_SLICE);
	struct ts_slice_row slice;
	int found = 0;

	while (rows_next(&rows, &slice)) {
		char text[32];

		snprintf(text, sizeof(text), "slice %d", (int)(slice.start % 10));
		TS_CHECK_STR(rows_text(&rows, slice.name), text);
		TS_CHECK_STR(rows_text(&rows, rows_value(&rows, 0)), text);
		found++;
	}
	rows_close(&rows);
	TS_CHECK_INT(found, count);
}

TS_TEST(each_save_is_finished_and_replaced)
{
	const char *path = file_in_folder("t.sbt");
	struct ts_writer *writer = open_writer(path);
	uint64_t chunks = 0;

	for (int i = 0; i < 5; i++) {
		struct rows rows;

		add_slices(writer, i * 100, 100);
		TS_CHECK_INT(ts_writer_save(writer, NULL), 0);
		TS_CHECK_INT(ts_writer_save(writer, NULL), 0);
		check_finished(path);
		check_slices(path, (i + 1) * 100);
		rows = rows_open(path, TS_TABLE_SLICE);
		TS_CHECK(ts_reader_state(rows.reader)->finished);
		/* No index of an earlier save is among the chunks. */
		for (size_t k = 0; k < ts_reader_chunk_count(rows.reader); k++)
			TS_CHECK(ts_reader_chunk(rows.reader, k)->table != TS_TABLE_INDEX);
		TS_CHECK(ts_reader_chunk_count(rows.reader) > chunks);
		chunks = ts_reader_chunk_count(rows.reader);
		rows_close(&rows);
	}
	TS_CHECK_INT(ts_writer_finish(writer, NULL), 0);
	ts_writer_close(writer);
	check_finished(path);
	check_slices(path, 500);
}

TS_TEST(a_resumed_trace_goes_on_behind_its_chunks)
{
	const char *path = file_in_folder("t.sbt");
	struct ts_writer_options options = { .size = sizeof(options) };
	struct ts_writer *writer = open_writer(path);
	struct ts_writer_ids ids;
	uint64_t bytes;
	int64_t process;

	add_slices(writer, 0, 100);
	process = ts_writer_new_id(writer, TS_TABLE_PROCESS);
	TS_CHECK_INT(ts_writer_flush(writer), 0);
	ts_writer_ids(writer, &ids);
	bytes = ts_writer_bytes(writer);
	/* All this is truncated again. */
	add_slices(writer, 900, 100);
	TS_CHECK_INT(ts_writer_save(writer, NULL), 0);
	ts_writer_close(writer);

	TS_CHECK_INT(ts_writer_resume(&writer, path, bytes, &ids, &options, NULL), 0);
	TS_CHECK_INT(ts_writer_bytes(writer), bytes);
	TS_CHECK(ts_writer_new_id(writer, TS_TABLE_PROCESS) > process);
	add_slices(writer, 100, 100);
	TS_CHECK_INT(ts_writer_finish(writer, NULL), 0);
	ts_writer_close(writer);
	check_finished(path);
	check_slices(path, 200);
}

TS_TEST(a_saved_trace_is_resumed_without_its_index)
{
	const char *path = file_in_folder("t.sbt");
	struct ts_writer *writer = open_writer(path);
	struct ts_writer_ids ids;

	add_slices(writer, 0, 100);
	TS_CHECK_INT(ts_writer_save(writer, NULL), 0);
	ts_writer_ids(writer, &ids);
	ts_writer_close(writer);
	TS_CHECK_INT(ts_writer_resume(&writer, path, UINT64_MAX, &ids, NULL, NULL), 0);
	add_slices(writer, 100, 1);
	TS_CHECK_INT(ts_writer_finish(writer, NULL), 0);
	ts_writer_close(writer);
	check_finished(path);
	check_slices(path, 101);
}

TS_TEST(what_cannot_be_resumed_is_said_and_left_alone)
{
	const char *path = file_in_folder("t.sbt");
	struct ts_writer *writer = open_writer(path), *other;
	struct ts_writer_options options = { .size = sizeof(options) };
	struct ts_writer_ids ids, none = { { 0 } };
	uint8_t id[16] = { 1, 2, 3 };
	struct stat before, after;
	struct ts_error err;
	uint64_t bytes;

	add_slices(writer, 0, 100);
	TS_CHECK_INT(ts_writer_flush(writer), 0);
	ts_writer_ids(writer, &ids);
	bytes = ts_writer_bytes(writer);
	TS_CHECK_INT(ts_writer_resume(&other, path, bytes, &ids, NULL, &err), TS_EIO); /* locked */
	ts_writer_close(writer);
	TS_CHECK_INT(stat(path, &before), 0);
	TS_CHECK_INT(ts_writer_resume(&other, path, bytes - 1, &ids, NULL, &err), TS_EFORMAT);
	TS_CHECK_INT(ts_writer_resume(&other, path, bytes + 1, &ids, NULL, &err), TS_EFORMAT);
	TS_CHECK_INT(ts_writer_resume(&other, path, 0, &ids, NULL, &err), TS_EFORMAT);
	options.trace_id = id;
	TS_CHECK_INT(ts_writer_resume(&other, path, bytes, &ids, &options, &err), TS_EFORMAT);
	TS_CHECK_INT(ts_writer_resume(&other, file_in_folder("none"), bytes, &ids, NULL, &err),
		     TS_ENOTFOUND);
	TS_CHECK_INT(stat(path, &after), 0);
	TS_CHECK_INT(before.st_size, after.st_size);
	/* Otherwise ids that the file already uses would be reassigned. */
	TS_CHECK_INT(ts_writer_resume(&other, path, bytes, &none, NULL, &err), TS_EFORMAT);
}

struct quota {
	int64_t left;
};

static ssize_t write_within(void *context, int fd, const void *data, size_t bytes)
{
	struct quota *quota = context;

	if (quota->left < (int64_t)bytes) {
		/* Part of it, as on a full disk. */
		ssize_t part = write(fd, data, bytes / 3);

		if (part > 0 && quota->left >= part) {
			quota->left -= part;
			return part;
		}
		errno = ENOSPC;
		return -1;
	}
	quota->left -= (int64_t)bytes;
	return write(fd, data, bytes);
}

TS_TEST(a_full_disk_at_any_write_leaves_what_can_be_resumed)
{
	for (int64_t limit = 100; limit < 6000; limit += 331) {
		const char *path = file_in_folder("t.sbt");
		struct quota quota = { INT64_MAX };
		struct ts_writer_options options = { .size = sizeof(options),
						     .threads = -1,
						     .write = write_within,
						     .write_context = &quota };
		struct ts_writer_ids ids;
		struct ts_writer *writer;
		uint64_t bytes;

		TS_CHECK_INT(ts_writer_open(&writer, path, &options, NULL), 0);
		add_slices(writer, 0, 100);
		TS_CHECK_INT(ts_writer_flush(writer), 0);
		ts_writer_ids(writer, &ids);
		bytes = ts_writer_bytes(writer);
		quota.left = limit;
		for (int i = 1; i < 40 && !ts_writer_status(writer, NULL); i++) {
			add_slices(writer, 1000 * i, 100);
			ts_writer_save(writer, NULL);
		}
		TS_CHECK_INT(ts_writer_status(writer, NULL), TS_ENOSPC);
		ts_writer_close(writer);
		quota.left = INT64_MAX;
		TS_CHECK_INT(ts_writer_resume(&writer, path, bytes, &ids, &options, NULL), 0);
		add_slices(writer, 100, 100);
		TS_CHECK_INT(ts_writer_finish(writer, NULL), 0);
		ts_writer_close(writer);
		check_finished(path);
		check_slices(path, 200);
	}
}
