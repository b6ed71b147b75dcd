/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks are appended by a thread of their own, in order, and not after a failure. */
#include <tracesmith/writer.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <unistd.h>

#include "unit/record/record_support.h"

#define CHUNK_ROWS 1024

/* Rows that fill `chunks` chunks and begin the next, so that these are sealed. */
static void add_chunks(struct ts_writer *writer, int chunks)
{
	static int64_t start;

	for (int i = 0; i < chunks * CHUNK_ROWS; i++) {
		struct ts_mark_row mark = ts_mark_none;

		mark.start = start++;
		ts_writer_add(writer, TS_TABLE_MARK, &mark, NULL);
	}
}

static int64_t count_marks(const char *path)
{
	struct rows rows = rows_open(path, TS_TABLE_MARK);
	struct ts_mark_row mark;
	int64_t count = 0;

	while (rows_next(&rows, &mark))
		count++;
	rows_close(&rows);
	return count;
}

/* ---- a slow disk ---- */

struct slow_disk {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_held, is_reached;
	pthread_t thread; /* of the last write */
};

static ssize_t write_when_allowed(void *context, int fd, const void *data, size_t bytes)
{
	struct slow_disk *disk = context;

	pthread_mutex_lock(&disk->lock);
	disk->thread = pthread_self();
	disk->is_reached |= disk->is_held;
	pthread_cond_broadcast(&disk->changed);
	while (disk->is_held)
		pthread_cond_wait(&disk->changed, &disk->lock);
	pthread_mutex_unlock(&disk->lock);
	return write(fd, data, bytes);
}

static void hold(struct slow_disk *disk, bool is_held)
{
	pthread_mutex_lock(&disk->lock);
	disk->is_held = is_held;
	pthread_cond_broadcast(&disk->changed);
	pthread_mutex_unlock(&disk->lock);
}

TS_TEST(adding_goes_on_while_the_disk_is_busy)
{
	struct slow_disk disk = { .lock = PTHREAD_MUTEX_INITIALIZER,
				  .changed = PTHREAD_COND_INITIALIZER };
	struct ts_writer_options options = { .size = sizeof(options),
					     .threads = 1,
					     .chunk_rows = CHUNK_ROWS,
					     .write = write_when_allowed,
					     .write_context = &disk };
	const char *path = file_in_folder("t.sbt");
	struct ts_writer *writer;
	uint64_t bytes;

	TS_CHECK_INT(ts_writer_open(&writer, path, &options, NULL), 0);
	bytes = ts_writer_bytes(writer);
	hold(&disk, true);
	add_chunks(writer, 1);
	add_chunks(writer, 1);
	/* The first chunk reaches the disk although nobody calls the writer. */
	pthread_mutex_lock(&disk.lock);
	while (!disk.is_reached)
		pthread_cond_wait(&disk.changed, &disk.lock);
	TS_CHECK(!pthread_equal(disk.thread, pthread_self()));
	pthread_mutex_unlock(&disk.lock);
	add_chunks(writer, 1);
	TS_CHECK_INT(ts_writer_bytes(writer), bytes);
	hold(&disk, false);
	TS_CHECK_INT(ts_writer_finish(writer, NULL), 0);
	TS_CHECK(ts_writer_bytes(writer) > bytes);
	ts_writer_close(writer);
	TS_CHECK_INT(ts_verify(path, NULL, NULL, NULL, NULL), 0);
	TS_CHECK_INT(count_marks(path), 3 * CHUNK_ROWS);
}

/* ---- a disk that fails once ---- */

struct failing_disk {
	int good_writes;
	int later_writes; /* after the failure */
	bool has_failed;
};

/* After half of the bytes; it would take all that follows. */
static ssize_t fail_once(void *context, int fd, const void *data, size_t bytes)
{
	struct failing_disk *disk = context;

	disk->later_writes += disk->has_failed;
	if (disk->good_writes-- != 0)
		return write(fd, data, bytes);
	disk->has_failed = true;
	(void)!write(fd, data, bytes / 2);
	errno = EIO;
	return -1;
}

static void check_failure(int threads, int chunks_before)
{
	struct failing_disk disk = { .good_writes = 1 + chunks_before };
	struct ts_writer_options options = { .size = sizeof(options),
					     .threads = threads,
					     .chunk_rows = CHUNK_ROWS,
					     .write = fail_once,
					     .write_context = &disk };
	const char *path = file_in_folder("t.sbt");
	struct ts_writer *writer;
	struct ts_error err;

	TS_CHECK_INT(ts_writer_open(&writer, path, &options, NULL), 0);
	add_chunks(writer, 10);
	TS_CHECK_INT(ts_writer_flush(writer), TS_EIO);
	TS_CHECK_INT(ts_writer_save(writer, &err), TS_EIO);
	TS_CHECK(strstr(err.message, "cannot write after byte"));
	TS_CHECK_INT(ts_writer_finish(writer, &err), TS_EIO);
	ts_writer_close(writer);
	TS_CHECK_INT(disk.later_writes, 0);
	TS_CHECK_INT(count_marks(path), chunks_before * CHUNK_ROWS);
}

TS_TEST(nothing_is_appended_after_a_failure)
{
	for (int threads = -1; threads <= 3; threads += 2)
		for (int chunks = 0; chunks < 10; chunks++)
			check_failure(threads, chunks);
}

TS_TEST(closing_waits_for_the_disk)
{
	struct failing_disk disk = { .good_writes = INT_MAX };
	struct ts_writer_options options = { .size = sizeof(options),
					     .threads = 2,
					     .chunk_rows = CHUNK_ROWS,
					     .write = fail_once,
					     .write_context = &disk };
	const char *path = file_in_folder("t.sbt");
	struct ts_writer *writer;

	TS_CHECK_INT(ts_writer_open(&writer, path, &options, NULL), 0);
	add_chunks(writer, 5);
	ts_writer_close(writer);
	/* The rows of the last chunk were not sealed. */
	TS_CHECK_INT(count_marks(path), 4 * CHUNK_ROWS);
}
