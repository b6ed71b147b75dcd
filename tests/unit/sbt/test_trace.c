/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Complete traces: written and read back, truncated at every byte, with every bit flipped, killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tracesmith/reader.h>
#include <tracesmith/writer.h>

#include "base/memory.h"
#include "sbt/sbt_layout.h"

#include "unit/runner.h"
#include "unit/temporary.h"

static char folder[64];

static const char *path_of(const char *name)
{
	static char paths[4][256];
	static int next;
	char *path = paths[next % 4];

	if (next++ == 0)
		temporary_folder(folder);
	snprintf(path, 256, "%s/%s", folder, name);
	return path;
}

static void clean_up(void)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	TS_CHECK_INT(system(command), 0);
}

static uint32_t text(struct ts_writer *writer, const char *string)
{
	return ts_writer_string(writer, string, strlen(string));
}

/* A trace with some of everything and `rows` slices. */
static void write_rows(struct ts_writer *writer, int rows)
{
	struct ts_process_row process = ts_process_none;
	struct ts_thread_row thread = ts_thread_none;
	struct ts_clock_sync_row sync = ts_clock_sync_none;
	struct ts_frame_row frame = ts_frame_none;
	struct ts_field fields[3] = {
		{ .key = text(writer, "count"), .type = TS_ARG_INT },
		{ .key = text(writer, "nothing"), .type = TS_ARG_NULL },
		{ .key = text(writer, "note"), .type = TS_ARG_STRING, .beside = 1 },
	};
	uint32_t shape = ts_writer_shape(writer, fields, 3), stack;
	uint32_t small = ts_writer_shape(writer, fields, 1);

	process.id = ts_writer_new_id(writer, TS_TABLE_PROCESS);
	process.pid = 4242;
	ts_writer_add(writer, TS_TABLE_PROCESS, &process, NULL);
	process.name = text(writer, "trainer");
	ts_writer_add(writer, TS_TABLE_PROCESS, &process, NULL);
	thread.id = ts_writer_new_id(writer, TS_TABLE_THREAD);
	thread.process = process.id;
	ts_writer_add(writer, TS_TABLE_THREAD, &thread, NULL);
	sync.clock = 1;
	sync.time = 0;
	sync.reference = 1000000;
	ts_writer_add(writer, TS_TABLE_CLOCK_SYNC, &sync, NULL);
	frame.name = text(writer, "main");
	stack = ts_writer_stack(writer, 0, ts_writer_frame(writer, &frame));
	ts_writer_set_clock(writer, 1);
	for (int i = 0; i < rows; i++) {
		struct ts_slice_row slice = ts_slice_none;
		char name[32];
		int64_t values[2];

		snprintf(name, sizeof(name), "step %d", i % 7);
		slice.start = (int64_t)i * 100 - (i % 3) * 230;
		slice.duration = i == 5 ? 1000000 : i % 90;
		slice.thread = thread.id;
		slice.name = text(writer, name);
		slice.stack = i % 4 ? 0 : stack;
		slice.shape = i % 5 == 0 ? 0 : i % 5 == 1 ? small : shape;
		values[0] = i;
		values[1] = text(writer, i % 2 ? "odd" : "even");
		ts_writer_add(writer, TS_TABLE_SLICE, &slice, values);
	}
	TS_CHECK(ts_writer_blob(writer, "\0\1\2", 3) == 1);
}

static void write_trace(const char *path, int rows, uint32_t chunk_rows, int threads)
{
	struct ts_writer_options options = { .size = sizeof(options),
					     .chunk_rows = chunk_rows,
					     .threads = threads };
	struct ts_writer *writer;
	struct ts_error err = { 0 };

	TS_CHECK_INT(ts_writer_open(&writer, path, &options, &err), 0);
	write_rows(writer, rows);
	if (ts_writer_finish(writer, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	ts_writer_close(writer);
}

/* Counts slices and compares each with what was written. */
static int check_slices(struct ts_reader *reader, struct ts_error *err)
{
	struct ts_batch *batch;
	int rows = 0, result = TS_OK;

	TS_CHECK_INT(ts_batch_new(&batch, reader, NULL), 0);
	for (size_t c = 0; c < ts_reader_chunk_count(reader); c++) {
		if (ts_reader_chunk(reader, c)->table != TS_TABLE_SLICE)
			continue;
		result = ts_batch_read(batch, c, TS_MASK_ALL, err);
		for (uint32_t r = 0; !result && r < batch->rows; r++, rows++) {
			struct ts_slice_row slice;
			const int64_t *values = batch->arg_values + batch->arg_offsets[r];
			const struct ts_shape *shape;
			const char *found, *note = NULL;
			char name[32];
			int i;

			ts_batch_row(batch, r, &slice);
			i = (int)((slice.start - 1000000 + 500) / 100);
			for (int k = 0; k < 9; k++, i--)
				if ((int64_t)i * 100 - (i % 3) * 230 == slice.start - 1000000)
					break;
			snprintf(name, sizeof(name), "step %d", i % 7);
			found = ts_reader_string(reader, slice.name).data;
			shape = ts_reader_shape(reader, slice.shape);
			if (shape->field_count == 3)
				note = ts_reader_string(reader, values[1]).data;
			/*
			 * What was lost with a damaged chunk reads as lost, not as something else.
			 */
			if (ts_reader_status(reader, NULL))
				continue;
			TS_CHECK_STR(found, name);
			TS_CHECK_INT(shape->field_count, i % 5 == 0 ? 0 : i % 5 == 1 ? 1 : 3);
			if (shape->field_count)
				TS_CHECK_INT(values[0], i);
			if (shape->field_count == 3)
				TS_CHECK_STR(note, i % 2 ? "odd" : "even");
		}
		if (result)
			break;
	}
	ts_batch_free(batch);
	return result ? result : rows;
}

TS_TEST(round_trip)
{
	const char *path = path_of("t.sbt");
	struct ts_reader *reader;
	struct ts_error err = { 0 };
	const struct ts_process_row *process;
	size_t cursor = 0;
	int64_t id;

	for (int threads = -1; threads <= 3; threads += 2) {
		write_trace(path, 10000, 1024, threads);
		TS_CHECK_INT(ts_reader_open(&reader, path, &err), 0);
		TS_CHECK(ts_reader_state(reader)->finished);
		TS_CHECK_INT(ts_reader_rows(reader, TS_TABLE_SLICE), 10000);
		TS_CHECK_INT(check_slices(reader, &err), 10000);
		process = ts_reader_entity(reader, TS_TABLE_PROCESS, 1);
		TS_CHECK_STR(ts_reader_string(reader, process->name).data, "trainer");
		TS_CHECK_INT(process->pid, 4242);
		TS_CHECK(ts_reader_entity_next(reader, TS_TABLE_PROCESS, &cursor, &id) == process);
		TS_CHECK_INT(id, 1);
		TS_CHECK(!ts_reader_entity_next(reader, TS_TABLE_PROCESS, &cursor, &id));
		cursor = 0;
		TS_CHECK(!ts_reader_entity(reader, TS_TABLE_PROCESS, 2));
		ts_reader_trim(reader, 0);
		TS_CHECK_STR(ts_reader_string(reader, process->name).data, "trainer");
		TS_CHECK_STR(ts_reader_string(reader, 999999).data, "(lost)");
		TS_CHECK_INT(ts_reader_status(reader, NULL), 0);
		ts_reader_close(reader);
		TS_CHECK_INT(ts_verify(path, NULL, NULL, NULL, &err), 0);
	}
	clean_up();
}

TS_TEST(an_empty_trace_is_a_trace)
{
	const char *path = path_of("t.sbt");
	struct ts_writer *writer;
	struct ts_reader *reader;

	TS_CHECK_INT(ts_writer_open(&writer, path, NULL, NULL), 0);
	TS_CHECK_INT(ts_writer_finish(writer, NULL), 0);
	TS_CHECK_INT(ts_writer_finish(writer, NULL), TS_EINVAL);
	ts_writer_close(writer);
	TS_CHECK_INT(ts_reader_open(&reader, path, NULL), 0);
	TS_CHECK_INT(ts_reader_chunk_count(reader), 0);
	TS_CHECK(ts_reader_state(reader)->finished);
	ts_reader_close(reader);
	TS_CHECK_INT(ts_verify(path, NULL, NULL, NULL, NULL), 0);
	clean_up();
}

TS_TEST(long_rows_do_not_widen_every_chunk)
{
	const char *path = path_of("t.sbt");
	struct ts_reader *reader;
	int wide = 0, chunks = 0;

	write_trace(path, 20000, 1024, -1);
	TS_CHECK_INT(ts_reader_open(&reader, path, NULL), 0);
	for (size_t c = 0; c < ts_reader_chunk_count(reader); c++) {
		const struct ts_chunk *chunk = ts_reader_chunk(reader, c);

		if (chunk->table != TS_TABLE_SLICE)
			continue;
		chunks++;
		wide += chunk->max_end > 1000000 + 500000 && chunk->min_start < 1000000 + 200000;
		if (chunk->flags & TS_CHUNK_LONG)
			TS_CHECK_INT(chunk->rows, 1);
	}
	TS_CHECK(chunks > 15);
	TS_CHECK_INT(wide, 1);
	ts_reader_close(reader);
	clean_up();
}

TS_TEST(one_column_of_one_range_reads_only_that)
{
	const char *path = path_of("t.sbt");
	struct ts_reader *reader;
	struct ts_batch *batch;
	uint64_t before, most = 0;
	int read = 0;

	write_trace(path, 50000, 1024, -1);
	TS_CHECK_INT(ts_reader_open(&reader, path, NULL), 0);
	TS_CHECK_INT(ts_batch_new(&batch, reader, NULL), 0);
	before = ts_reader_bytes_read(reader);
	for (size_t c = 0; c < ts_reader_chunk_count(reader); c++) {
		const struct ts_chunk *chunk = ts_reader_chunk(reader, c);

		if (chunk->table != TS_TABLE_SLICE || !ts_chunk_overlaps(chunk, 2100000, 2200000))
			continue;
		TS_CHECK_INT(ts_batch_read(batch, c, TS_MASK_OF(slice, start), NULL), 0);
		most += chunk->header_bytes + 1024 * 2 + 64;
		read++;
	}
	TS_CHECK_INT(read, 2);
	TS_CHECK(ts_reader_bytes_read(reader) - before <= most);
	TS_CHECK(batch->columns[TS_COLUMN_OF(slice, name)] == NULL);
	ts_batch_free(batch);
	ts_reader_close(reader);
	clean_up();
}

static char *load(const char *path, size_t *ret_bytes)
{
	struct stat status;
	int fd = open(path, O_RDONLY);
	char *bytes;

	TS_CHECK(fd >= 0 && fstat(fd, &status) == 0);
	bytes = malloc((size_t)status.st_size + 1);
	TS_CHECK_INT(read(fd, bytes, (size_t)status.st_size), status.st_size);
	close(fd);
	*ret_bytes = (size_t)status.st_size;
	return bytes;
}

static void store(const char *path, const char *bytes, size_t count)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	TS_CHECK(fd >= 0);
	TS_CHECK_INT(write(fd, bytes, count), count);
	close(fd);
}

/* Offsets of chunk headers, and the end of the last one. */
static size_t chunk_ends(const char *bytes, size_t count, uint64_t *ends)
{
	uint64_t at = sizeof(struct sbt_file_header);
	size_t chunks = 0;

	ends[0] = at;
	while (at < count) {
		struct sbt_chunk_header header;

		memcpy(&header, bytes + at, sizeof(header));
		at += header.chunk_bytes;
		ends[++chunks] = at;
	}
	return chunks;
}

TS_TEST(cut_at_every_byte_then_recovered)
{
	const char *path = path_of("t.sbt"), *cut = path_of("cut.sbt"), *good = path_of("good.sbt");
	uint64_t ends[200];
	size_t count, chunks, complete = 0;
	char *bytes;

	write_trace(path, 1500, 1024, -1);
	bytes = load(path, &count);
	chunks = chunk_ends(bytes, count, ends);
	TS_CHECK(chunks > 8 && chunks < 200);
	for (size_t length = 0; length <= count; length++) {
		struct ts_recovery recovery;
		struct ts_error err = { 0 };
		struct ts_reader *reader;

		while (complete < chunks && ends[complete + 1] <= length)
			complete++;
		store(cut, bytes, length);
		if (length < sizeof(struct sbt_file_header)) {
			TS_CHECK_INT(ts_reader_open(&reader, cut, &err), TS_EFORMAT);
			TS_CHECK_INT(ts_recover(cut, good, NULL, NULL, &recovery, &err),
				     TS_EFORMAT);
			continue;
		}
		TS_CHECK_INT(ts_verify(cut, NULL, NULL, NULL, &err),
			     length == count ? 0 : TS_EFORMAT);
		TS_CHECK_INT(ts_reader_open(&reader, cut, &err), 0);
		/* A scan sees the index as a chunk; a reader that uses it does not. */
		TS_CHECK_INT(ts_reader_chunk_count(reader),
			     length == count ? chunks - 1 : complete);
		TS_CHECK_INT(ts_reader_state(reader)->finished, length == count);
		TS_CHECK(check_slices(reader, &err) >= 0);
		ts_reader_close(reader);
		TS_CHECK_INT(ts_recover(cut, good, NULL, NULL, &recovery, &err), 0);
		TS_CHECK_INT(recovery.chunks, length == count ? chunks - 1 : complete);
		TS_CHECK_INT(ts_verify(good, NULL, NULL, NULL, &err), 0);
		TS_CHECK_INT(ts_reader_open(&reader, good, &err), 0);
		TS_CHECK_INT(ts_reader_rows(reader, TS_TABLE_LOSS),
			     length != ends[complete] && length != count);
		ts_reader_close(reader);
	}
	free(bytes);
	clean_up();
}

static void count_finding(void *context, const struct ts_verify_finding *finding)
{
	TS_CHECK(finding->message && *finding->message);
	++*(int *)context;
}

TS_TEST(every_bit_turned_is_found)
{
	const char *path = path_of("t.sbt"), *bad = path_of("bad.sbt"), *good = path_of("good.sbt");
	struct ts_error err;
	size_t count;
	char *bytes;
	int fd;

	write_trace(path, 40, 1024, -1);
	bytes = load(path, &count);
	store(bad, bytes, count);
	fd = open(bad, O_WRONLY);
	for (size_t bit = 0; bit < count * 8; bit++) {
		char byte = (char)(bytes[bit / 8] ^ 1 << (bit % 8));
		struct ts_reader *reader;
		int findings = 0;

		TS_CHECK_INT(pwrite(fd, &byte, 1, (off_t)(bit / 8)), 1);
		if (ts_verify(bad, count_finding, NULL, &findings, &err) == 0 ||
		    (findings == 0 && err.code != TS_EVERSION))
			ts_test_fail(__FILE__, __LINE__, "bit %zu of byte %zu is not found",
				     bit % 8, bit / 8);
		/* Readers may or may not meet the damage; they must survive it. */
		if (bit % 8 == bit / 8 % 8 && ts_reader_open(&reader, bad, &err) == 0) {
			int rows = check_slices(reader, &err);

			TS_CHECK(rows == TS_EFORMAT || (rows >= 0 && rows <= 40));
			ts_reader_close(reader);
			TS_CHECK_INT(ts_recover(bad, good, NULL, NULL, NULL, &err), 0);
			TS_CHECK_INT(ts_verify(good, NULL, NULL, NULL, &err), 0);
		}
		TS_CHECK_INT(pwrite(fd, bytes + bit / 8, 1, (off_t)(bit / 8)), 1);
	}
	close(fd);
	free(bytes);
	clean_up();
}

/* ---- killed while writing: docs/format.md, section 8 ---- */

struct killer {
	uint64_t at; /* dies after this many bytes */
	uint64_t written;
};

static ssize_t write_and_die(void *context, int fd, const void *data, size_t bytes)
{
	struct killer *killer = context;
	size_t some = TS_MIN(bytes, killer->at - killer->written);

	if (some && write(fd, data, some) != (ssize_t)some)
		_exit(9);
	killer->written += some;
	if (killer->written == killer->at)
		kill(getpid(), SIGKILL);
	return (ssize_t)some;
}

static void write_killed(const char *path, uint64_t at, int threads)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		struct killer killer = { .at = at };
		struct ts_writer_options options = { .size = sizeof(options),
						     .chunk_rows = 1024,
						     .threads = threads,
						     .write = write_and_die,
						     .write_context = &killer };
		struct ts_writer *writer;

		if (ts_writer_open(&writer, path, &options, NULL) == 0) {
			write_rows(writer, 3000);
			ts_writer_finish(writer, NULL);
		}
		_exit(1);
	}
	TS_CHECK_INT(waitpid(child, &status, 0), child);
	TS_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TS_TEST(killed_at_each_documented_point)
{
	const char *path = path_of("t.sbt"), *killed = path_of("killed.sbt");
	const char *good = path_of("good.sbt");
	uint64_t ends[200], points[1000];
	size_t count, chunks, point_count = 0;
	char *bytes;

	write_trace(path, 3000, 1024, -1);
	bytes = load(path, &count);
	chunks = chunk_ends(bytes, count, ends);
	points[point_count++] = 1;  /* K1 */
	points[point_count++] = 63; /* K1 */
	for (size_t i = 0; i < chunks; i++) {
		struct sbt_chunk_header header;

		memcpy(&header, bytes + ends[i], sizeof(header));
		points[point_count++] = ends[i];                       /* K2, K5 */
		points[point_count++] = ends[i] + 1;                   /* K3 */
		points[point_count++] = ends[i] + 95;                  /* K3 */
		points[point_count++] = ends[i] + 97;                  /* K3, in the directory */
		points[point_count++] = ends[i] + header.header_bytes; /* K4 */
		points[point_count++] = ends[i + 1] - 1; /* K4; K7 in the last chunk */
	}
	points[point_count++] = count - 33; /* K6 */
	points[point_count++] = count - 31; /* K7 */
	points[point_count++] = count;      /* K8 */
	for (size_t i = 0; i < point_count; i++) {
		struct ts_recovery recovery;
		struct ts_error err = { 0 };
		struct ts_reader *reader;
		size_t complete = 0, size;
		char *left;

		write_killed(killed, points[i], i % 2 ? -1 : 2);
		left = load(killed, &size);
		TS_CHECK_INT(size, points[i]);
		/* Except for id and time of the file header: a prefix of the complete file. */
		if (size > 64)
			TS_CHECK(memcmp(left + 64, bytes + 64, size - 64) == 0);
		free(left);
		while (complete < chunks && ends[complete + 1] <= points[i])
			complete++;
		if (points[i] < 64) {
			TS_CHECK_INT(ts_recover(killed, good, NULL, NULL, &recovery, &err),
				     TS_EFORMAT);
			continue;
		}
		TS_CHECK_INT(ts_reader_open(&reader, killed, &err), 0);
		TS_CHECK(check_slices(reader, &err) >= 0);
		ts_reader_close(reader);
		TS_CHECK_INT(ts_recover(killed, good, NULL, NULL, &recovery, &err), 0);
		TS_CHECK_INT(recovery.chunks, TS_MIN(complete, chunks - 1));
		TS_CHECK_INT(ts_verify(good, NULL, NULL, NULL, &err), 0);
	}
	free(bytes);
	clean_up();
}

/* ---- a full disk ---- */

static ssize_t write_until_full(void *context, int fd, const void *data, size_t bytes)
{
	struct killer *disk = context;
	size_t some = TS_MIN(bytes, disk->at - disk->written);

	if (some == 0) {
		errno = ENOSPC;
		return -1;
	}
	disk->written += some;
	return write(fd, data, some);
}

TS_TEST(a_full_disk_leaves_whole_chunks)
{
	const char *path = path_of("t.sbt");
	struct ts_error err;

	for (uint64_t space = 0; space < 60000; space += 997) {
		struct killer disk = { .at = space };
		struct ts_writer_options options = { .size = sizeof(options),
						     .chunk_rows = 1024,
						     .write = write_until_full,
						     .write_context = &disk };
		struct ts_writer *writer;
		struct ts_reader *reader;

		if (space < 64) {
			TS_CHECK_INT(ts_writer_open(&writer, path, &options, &err), TS_ENOSPC);
			continue;
		}
		TS_CHECK_INT(ts_writer_open(&writer, path, &options, &err), 0);
		for (int i = 0; i < 20000 && !ts_writer_status(writer, NULL); i++) {
			struct ts_mark_row mark = ts_mark_none;
			char name[32];

			mark.start = i * 1000 + rand() % 1000;
			snprintf(name, sizeof(name), "%d", rand());
			mark.name = text(writer, name);
			ts_writer_add(writer, TS_TABLE_MARK, &mark, NULL);
		}
		TS_CHECK_INT(ts_writer_finish(writer, &err), TS_ENOSPC);
		TS_CHECK(strstr(err.message, "free some space"));
		ts_writer_close(writer);
		TS_CHECK_INT(ts_reader_open(&reader, path, &err), 0);
		TS_CHECK_INT(ts_reader_state(reader)->damaged_bytes, 0);
		ts_reader_close(reader);
	}
	clean_up();
}

TS_TEST(mistakes_of_callers_stick)
{
	const char *path = path_of("t.sbt");
	struct ts_slice_row slice = ts_slice_none;
	struct ts_writer *writer, *second;
	struct ts_error err;

	TS_CHECK_INT(ts_writer_open(&writer, "-", NULL, &err), TS_EINVAL);
	TS_CHECK_INT(ts_writer_open(&writer, "/nonexistent/x.sbt", NULL, &err), TS_ENOTFOUND);
	TS_CHECK_INT(ts_writer_open(&writer, path, NULL, &err), 0);
	TS_CHECK_INT(ts_writer_open(&second, path, NULL, &err), TS_EIO);
	TS_CHECK(strstr(err.message, "another process is writing"));
	TS_CHECK_INT(ts_writer_add(writer, TS_TABLE_SLICE, &slice, NULL), TS_EINVAL);
	slice.start = 1;
	TS_CHECK_INT(ts_writer_add(writer, TS_TABLE_SLICE, &slice, NULL), TS_EINVAL);
	TS_CHECK_INT(ts_writer_finish(writer, &err), TS_EINVAL);
	TS_CHECK(strstr(err.message, "needs a start"));
	ts_writer_close(writer);
	clean_up();
}

TS_TEST(recover_refuses_itself_and_what_is_being_written)
{
	const char *path = path_of("t.sbt"), *good = path_of("good.sbt");
	struct ts_writer *writer;
	struct ts_error err;

	TS_CHECK_INT(ts_writer_open(&writer, path, NULL, &err), 0);
	TS_CHECK_INT(ts_recover(path, path, NULL, NULL, NULL, &err), TS_EINVAL);
	TS_CHECK_INT(ts_recover(path, good, NULL, NULL, NULL, &err), TS_EIO);
	ts_writer_close(writer);
	TS_CHECK_INT(ts_recover(path, good, NULL, NULL, NULL, &err), 0);
	clean_up();
}

TS_TEST(a_damaged_file_header_costs_nothing_but_itself)
{
	const char *path = path_of("t.sbt"), *bad = path_of("bad.sbt"), *good = path_of("good.sbt");
	struct ts_recovery recovery;
	struct ts_reader *reader;
	struct ts_error err;
	size_t count;
	char *bytes;

	write_trace(path, 500, 1024, -1);
	bytes = load(path, &count);
	memset(bytes, 0, 64);
	store(bad, bytes, count);
	free(bytes);
	TS_CHECK_INT(ts_reader_open(&reader, bad, &err), TS_EFORMAT);
	TS_CHECK_INT(ts_recover(bad, good, NULL, NULL, &recovery, &err), 0);
	TS_CHECK_INT(ts_reader_open(&reader, good, &err), 0);
	TS_CHECK_INT(check_slices(reader, &err), 500);
	ts_reader_close(reader);
	clean_up();
}

TS_TEST(little_memory_for_strings_still_gives_all_texts)
{
	const char *path = path_of("t.sbt");
	struct ts_writer_options options = { .size = sizeof(options), .string_memory = 20000 };
	struct ts_writer *writer;
	struct ts_reader *reader;
	struct ts_batch *batch;

	TS_CHECK_INT(ts_writer_open(&writer, path, &options, NULL), 0);
	for (int i = 0; i < 5000; i++) {
		struct ts_mark_row mark = ts_mark_none;
		char name[32];

		snprintf(name, sizeof(name), "name %d", i % 1000);
		mark.start = i;
		mark.name = text(writer, name);
		ts_writer_add(writer, TS_TABLE_MARK, &mark, NULL);
	}
	TS_CHECK_INT(ts_writer_finish(writer, NULL), 0);
	ts_writer_close(writer);
	TS_CHECK_INT(ts_reader_open(&reader, path, NULL), 0);
	TS_CHECK_INT(ts_batch_new(&batch, reader, NULL), 0);
	for (size_t c = 0; c < ts_reader_chunk_count(reader); c++) {
		if (ts_reader_chunk(reader, c)->table != TS_TABLE_MARK)
			continue;
		TS_CHECK_INT(ts_batch_read(batch, c, TS_MASK_ALL, NULL), 0);
		for (uint32_t r = 0; r < batch->rows; r++) {
			char name[32];

			snprintf(name, sizeof(name), "name %d",
				 (int)(batch->columns[TS_COLUMN_OF(mark, start)][r] % 1000));
			TS_CHECK_STR(ts_reader_string(reader,
						      batch->columns[TS_COLUMN_OF(mark, name)][r])
					     .data,
				     name);
		}
	}
	ts_batch_free(batch);
	ts_reader_close(reader);
	clean_up();
}

/* What the writer takes, a reader loads, although the file is small. */
TS_TEST(texts_that_repeat_themselves_are_cut)
{
	const size_t bytes = (size_t)30 << 20;
	const char *path = path_of("t.sbt");
	char *name = malloc(bytes + 1), cut[64];
	struct ts_writer_cuts cuts;
	struct ts_writer *writer;
	struct ts_reader *reader;
	struct ts_string read;
	uint32_t ids[4];

	TS_CHECK(name != NULL);
	memset(name, 'x', bytes);
	TS_CHECK_INT(ts_writer_open(&writer, path, NULL, NULL), 0);
	for (int i = 0; i < 4; i++) {
		name[0] = (char)('a' + i);
		name[1] = '"';
		ids[i] = ts_writer_string(writer, name, bytes);
		TS_CHECK(ids[i] && ids[i] == ts_writer_string(writer, name, bytes));
	}
	ts_writer_cuts(writer, &cuts);
	TS_CHECK_INT(cuts.texts, 1);
	TS_CHECK_INT(ts_writer_finish(writer, NULL), 0);
	ts_writer_close(writer);
	TS_CHECK_INT(ts_reader_open(&reader, path, NULL), 0);
	TS_CHECK(ts_reader_state(reader)->file_bytes < 100000);
	for (int i = 0; i < 4; i++) {
		read = ts_reader_string(reader, ids[i]);
		if (i < 3) {
			TS_CHECK_INT(read.length, bytes);
			TS_CHECK_INT(read.data[0], 'a' + i);
			continue;
		}
		/* A string of JSON, whatever the text was. */
		snprintf(cut, sizeof(cut), "\"%c\\\"xxx", 'a' + i);
		TS_CHECK(!strncmp(read.data, cut, strlen(cut)));
		TS_CHECK(strstr(read.data, "xxx... (cut: 31457280 bytes)\""));
	}
	TS_CHECK_INT(ts_reader_status(reader, NULL), 0);
	ts_reader_close(reader);
	free(name);
	clean_up();
}

/* Texts that do not are not, whatever their size. */
TS_TEST(large_texts_are_kept)
{
	const size_t bytes = (size_t)60 << 20;
	const char *path = path_of("t.sbt");
	char *name = malloc(bytes);
	uint64_t seed = 1;
	struct ts_writer_cuts cuts;
	struct ts_writer *writer;
	struct ts_reader *reader;
	uint32_t ids[2];

	TS_CHECK(name != NULL);
	TS_CHECK_INT(ts_writer_open(&writer, path, NULL, NULL), 0);
	for (int i = 0; i < 2; i++) {
		for (size_t k = 0; k < bytes; k++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
			name[k] = (char)('a' + (seed >> 60));
		}
		ids[i] = ts_writer_string(writer, name, bytes);
	}
	ts_writer_cuts(writer, &cuts);
	TS_CHECK_INT(cuts.texts, 0);
	TS_CHECK_INT(ts_writer_finish(writer, NULL), 0);
	ts_writer_close(writer);
	TS_CHECK_INT(ts_reader_open(&reader, path, NULL), 0);
	for (int i = 0; i < 2; i++)
		TS_CHECK_INT(ts_reader_string(reader, ids[i]).length, bytes);
	TS_CHECK_INT(ts_reader_status(reader, NULL), 0);
	ts_reader_close(reader);
	free(name);
	clean_up();
}

TS_TEST(deep_stacks_are_cut_and_marked)
{
	const char *path = path_of("t.sbt");
	struct ts_frame_row frame = ts_frame_none;
	const struct ts_stack_row *row;
	struct ts_writer_cuts cuts;
	struct ts_writer *writer;
	struct ts_reader *reader;
	uint32_t frames[2], stack = 0, other, depth = 0;
	int64_t marker;

	TS_CHECK_INT(ts_writer_open(&writer, path, NULL, NULL), 0);
	for (int i = 0; i < 2; i++) {
		frame.line = i;
		frames[i] = ts_writer_frame(writer, &frame);
	}
	for (uint32_t i = 0; i < TS_STACK_MAX_DEPTH + 1000; i++)
		stack = ts_writer_stack(writer, stack, frames[i % 2]);
	TS_CHECK_INT(ts_writer_stack(writer, stack, frames[0]), stack);
	/* Another branch is cut by itself. */
	other = ts_writer_stack(writer, 0, frames[1]);
	for (uint32_t i = 0; i < TS_STACK_MAX_DEPTH; i++)
		other = ts_writer_stack(writer, other, frames[1]);
	ts_writer_cuts(writer, &cuts);
	TS_CHECK_INT(cuts.stacks, 2);
	TS_CHECK_INT(ts_writer_finish(writer, NULL), 0);
	ts_writer_close(writer);
	TS_CHECK_INT(ts_reader_open(&reader, path, NULL), 0);
	row = ts_reader_entity(reader, TS_TABLE_STACK, stack);
	marker = row->frame;
	TS_CHECK_STR(ts_reader_string(reader, ((const struct ts_frame_row *)ts_reader_entity(
						       reader, TS_TABLE_FRAME, marker))
						      ->name)
			     .data,
		     "(inner frames left out: a stack has at most 65,536)");
	for (; row; row = ts_reader_entity(reader, TS_TABLE_STACK, row->parent))
		depth++;
	TS_CHECK_INT(depth, TS_STACK_MAX_DEPTH);
	row = ts_reader_entity(reader, TS_TABLE_STACK, other);
	TS_CHECK_INT(row->frame, marker);
	TS_CHECK_INT(ts_reader_status(reader, NULL), 0);
	ts_reader_close(reader);
	clean_up();
}
