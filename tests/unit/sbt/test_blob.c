/* SPDX-License-Identifier: Apache-2.0 */
/* Blobs: chains of rows written and read back, in full and in part, and inconsistent chains. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracesmith/reader.h>
#include <tracesmith/writer.h>

#include "base/local/hash.h"
#include "base/memory.h"
#include "sbt/blob_cursor.h"
#include "sbt/chunk.h"
#include "sbt/chunk_append.h"

#include "unit/runner.h"

static char path[64];

static void remove_file(void)
{
	unlink(path);
}

static const char *make_path(void)
{
	int fd;

	if (path[0])
		return path;
	snprintf(path, sizeof(path), "/tmp/ts_sbt_blob_XXXXXX");
	fd = mkstemp(path);
	TS_CHECK(fd >= 0);
	close(fd);
	atexit(remove_file);
	return path;
}

static void fill(unsigned char *bytes, size_t count, uint64_t seed)
{
	for (size_t i = 0; i < count; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		bytes[i] = (unsigned char)(seed >> 40) & 0x3f;
	}
}

/* Writes content in pieces; returns the id of the last row. */
static uint32_t put_content(struct ts_writer *writer, uint32_t previous, size_t done,
			    const unsigned char *data, size_t bytes, size_t piece)
{
	struct ts_hash_stream hash;

	ts_hash_stream_init(&hash);
	ts_hash_stream_add(&hash, data, done);
	while (done < bytes) {
		size_t count = TS_MIN(piece, bytes - done);

		ts_hash_stream_add(&hash, data + done, count);
		done += count;
		previous = ts_writer_blob_piece(writer, previous, ts_hash_stream_digest(&hash),
						done, data + done - count, count);
		TS_CHECK(previous != 0);
	}
	return previous;
}

static struct ts_writer *open_writer(void)
{
	struct ts_writer *writer = NULL;

	TS_CHECK_INT(ts_writer_open(&writer, make_path(), NULL, NULL), 0);
	return writer;
}

static struct ts_reader *finish(struct ts_writer *writer)
{
	struct ts_reader *reader = NULL;
	struct ts_error err;

	if (ts_writer_finish(writer, &err) || ts_reader_open(&reader, path, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	ts_writer_close(writer);
	return reader;
}

#define MANY (UINT64_C(3000001))

/* Each goes its own way. */
static void check_cursors(struct ts_reader *reader, uint32_t large, const unsigned char *data,
			  uint32_t shared)
{
	struct sbt_blob_cursor *first, *second;
	unsigned char a[1000], b[1000];
	struct ts_error err;

	TS_CHECK_INT(sbt_blob_cursor_new(&first, reader, &err), 0);
	TS_CHECK_INT(sbt_blob_cursor_new(&second, reader, &err), 0);
	for (size_t i = 0; i < (2 << 20); i += 300000) {
		TS_CHECK_INT(sbt_blob_cursor_read(first, large, i, a, sizeof(a), &err), 0);
		TS_CHECK_INT(sbt_blob_cursor_read(second, shared, i + 7, b, sizeof(b), &err), 0);
		TS_CHECK_MEM(a, data + i, sizeof(a));
		TS_CHECK_MEM(b, data + i + 7, sizeof(b));
	}
	TS_CHECK_INT(sbt_blob_cursor_read(first, shared + 9, 0, a, 1, &err), TS_ENOTFOUND);
	sbt_blob_cursor_free(first);
	sbt_blob_cursor_free(second);
	sbt_blob_cursor_free(NULL);
}

TS_TEST(chains_come_back)
{
	struct ts_writer *writer = open_writer();
	TS_AUTO_FREE unsigned char *data = malloc(MANY), *back = malloc(MANY);
	uint32_t large, small, shared, empty;
	struct ts_reader *reader;
	struct ts_error err;
	uint64_t bytes;

	fill(data, MANY, 1);
	small = ts_writer_blob(writer, "abc", 3);
	large = put_content(writer, 0, 0, data, MANY, 1 << 20);
	empty = ts_writer_blob(writer, "", 0);
	/* Another tail after the first two rows of the large one. */
	shared = put_content(writer, large - 1, 2 << 20, data, (2 << 20) + 5, 1 << 20);
	reader = finish(writer);
	TS_CHECK_INT(ts_reader_blob_size(reader, large, &bytes, &err), 0);
	TS_CHECK_INT(bytes, MANY);
	TS_CHECK_INT(ts_reader_blob_size(reader, empty, &bytes, &err), 0);
	TS_CHECK_INT(bytes, 0);
	TS_CHECK_INT(ts_reader_blob_size(reader, shared, &bytes, &err), 0);
	TS_CHECK_INT(bytes, (2 << 20) + 5);
	TS_CHECK_INT(ts_reader_blob_read(reader, large, 0, back, MANY, &err), 0);
	TS_CHECK(memcmp(data, back, MANY) == 0);
	TS_CHECK_INT(ts_reader_blob_read(reader, shared, 0, back, (2 << 20) + 5, &err), 0);
	TS_CHECK(memcmp(data, back, (2 << 20) + 5) == 0);
	TS_CHECK_INT(ts_reader_blob_read(reader, small, 1, back, 2, &err), 0);
	TS_CHECK(memcmp(back, "bc", 2) == 0);
	TS_CHECK_INT(ts_reader_blob_read(reader, empty, 0, back, 0, &err), 0);
	check_cursors(reader, large, data, shared);
	/* There is nothing beyond the end. */
	TS_CHECK_INT(ts_reader_blob_read(reader, small, 1, back, 3, &err), TS_EINVAL);
	TS_CHECK_INT(ts_reader_blob_read(reader, small, UINT64_MAX, back, 1, &err), TS_EINVAL);
	TS_CHECK_INT(ts_reader_blob_read(reader, 0, 0, back, 1, &err), TS_ENOTFOUND);
	TS_CHECK_INT(ts_reader_blob_read(reader, -5, 0, back, 1, &err), TS_ENOTFOUND);
	TS_CHECK_INT(ts_reader_blob_size(reader, shared + 1, &bytes, &err), TS_ENOTFOUND);
	TS_CHECK(strstr(err.message, "no blob") != NULL);
	ts_reader_close(reader);
	TS_CHECK_INT(ts_verify(path, NULL, NULL, NULL, &err), 0);
}

/* One large row, and a chunk of small rows with columns before the bytes. */
TS_TEST(bytes_that_do_not_compress_come_back)
{
	const size_t pieces[] = { 1 << 20, 64 };
	TS_AUTO_FREE unsigned char *data = malloc(1 << 20), *back = malloc(1 << 20);
	uint64_t random = 11;

	for (size_t i = 0; i < 1 << 20; i++) {
		random = ts_hash_mix64(random + 1);
		data[i] = (unsigned char)random;
	}
	for (size_t i = 0; i < TS_ARRAY_SIZE(pieces); i++) {
		struct ts_writer *writer = open_writer();
		uint32_t blob = put_content(writer, 0, 0, data, 1 << 20, pieces[i]);
		struct ts_reader *reader = finish(writer);

		TS_CHECK_INT(ts_verify(path, NULL, NULL, NULL, NULL), 0);
		memset(back, 0, 1 << 20);
		TS_CHECK_INT(ts_reader_blob_read(reader, blob, 0, back, 1 << 20, NULL), 0);
		TS_CHECK(memcmp(back, data, 1 << 20) == 0);
		ts_reader_close(reader);
	}
}

TS_TEST(ranges_are_right_in_any_order)
{
	struct ts_writer *writer = open_writer();
	TS_AUTO_FREE unsigned char *data = malloc(MANY), *back = malloc(MANY);
	struct ts_reader *reader;
	uint64_t random = 7;
	uint32_t blob, other;

	fill(data, MANY, 2);
	blob = put_content(writer, 0, 0, data, MANY, 100000);
	other = put_content(writer, 0, 0, data, 1000, 7);
	reader = finish(writer);
	for (int i = 0; i < 300; i++) {
		uint64_t all = i % 3 ? MANY : 1000, offset, count;

		random = ts_hash_mix64(random + 1);
		offset = random % (all + 1);
		random = ts_hash_mix64(random);
		count = TS_MIN(random % 250000, all - offset);
		TS_CHECK_INT(ts_reader_blob_read(reader, i % 3 ? blob : other, offset, back, count,
						 NULL),
			     0);
		TS_CHECK(memcmp(back, data + offset, count) == 0);
	}
	ts_reader_close(reader);
}

struct walk {
	const unsigned char *data;
	uint64_t bytes;
	int stop_at;
};

static int compare_piece(void *context, uint64_t offset, const void *data, size_t bytes,
			 struct ts_error *err)
{
	struct walk *walk = context;

	TS_CHECK_INT(offset, walk->bytes);
	TS_CHECK(memcmp(walk->data + offset, data, bytes) == 0);
	walk->bytes += bytes;
	return --walk->stop_at == 0 ? ts_error_set(err, TS_ECANCELED, "enough") : TS_OK;
}

TS_TEST(walk_gives_all_in_order)
{
	struct ts_writer *writer = open_writer();
	TS_AUTO_FREE unsigned char *data = malloc(MANY);
	struct walk walk = { .data = data }, part = { .data = data, .stop_at = 3 };
	struct ts_reader *reader;
	uint32_t blob;

	fill(data, MANY, 3);
	blob = put_content(writer, 0, 0, data, MANY, 65536);
	reader = finish(writer);
	TS_CHECK_INT(ts_reader_blob_walk(reader, blob, compare_piece, &walk, NULL), 0);
	TS_CHECK_INT(walk.bytes, MANY);
	TS_CHECK_INT(ts_reader_blob_walk(reader, blob, compare_piece, &part, NULL), TS_ECANCELED);
	TS_CHECK_INT(part.bytes, 3 * 65536);
	TS_CHECK_INT(ts_reader_blob_walk(reader, blob, NULL, NULL, NULL), 0);
	ts_reader_close(reader);
}

/* ---- inconsistent chains ---- */

/* A file with these rows only, unlike any that our writer produces. */
static struct ts_reader *write_raw(const struct ts_blob_row *rows, size_t count, const char *bytes)
{
	struct sbt_chunk_encoder encoder = { .columns = { .level = 1 } };
	struct sbt_appender appender = { 0 };
	TS_SCOPED(ts_text) out = { 0 };
	struct sbt_chunk_header header;
	struct ts_reader *reader;
	struct ts_table table;
	struct sbt_chunk_input input = {
		.table = &table, .longest = INT64_MAX, .bytes = bytes, .first_id = 1
	};

	ts_table_init(&table, ts_table_info(TS_TABLE_BLOB));
	for (size_t i = 0; i < count; i++) {
		input.byte_count += (size_t)rows[i].data;
		TS_CHECK_INT(ts_table_add(&table, &rows[i], NULL, 0), 0);
	}
	TS_CHECK_INT(sbt_chunk_encode(&encoder, &input, &out, &header), 0);
	TS_CHECK_INT(sbt_appender_open(&appender, make_path(), NULL, NULL), 0);
	TS_CHECK_INT(sbt_appender_add(&appender, &header, out.data, NULL, 0, NULL), 0);
	TS_CHECK_INT(sbt_appender_finish(&appender, 1, NULL), 0);
	sbt_appender_release(&appender);
	sbt_chunk_encoder_release(&encoder);
	ts_table_release(&table);
	TS_CHECK_INT(ts_reader_open(&reader, path, NULL), 0);
	return reader;
}

static void check_refused(const struct ts_blob_row *rows, size_t count, int64_t blob,
			  const char *why)
{
	struct ts_reader *reader = write_raw(rows, count, "abcdefgh");
	struct ts_error err = { 0 };
	char name[32], buffer[64] = "";

	snprintf(name, sizeof(name), "blob %lld: ", (long long)blob);
	TS_CHECK_INT(ts_reader_blob_walk(reader, blob, NULL, NULL, &err), TS_EFORMAT);
	TS_CHECK(strstr(err.message, name) != NULL);
	if (!strstr(err.message, why))
		ts_test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", err.message, why);
	if (rows[blob - 1].bytes >= 0 && rows[blob - 1].bytes < (int64_t)sizeof(buffer))
		TS_CHECK(ts_reader_blob_read(reader, blob, 0, buffer, (size_t)rows[blob - 1].bytes,
					     &err) != 0);
	ts_reader_close(reader);
	TS_CHECK_INT(ts_verify(path, NULL, NULL, NULL, &err), TS_EFORMAT);
}

TS_TEST(a_circle_is_refused)
{
	struct ts_blob_row rows[2] = { { .bytes = 4, .data = 4, .previous = 2 },
				       { .bytes = 8, .data = 4, .previous = 1 } };

	check_refused(rows, 2, 2, "continues itself or a later one");
}

TS_TEST(one_that_continues_itself_is_refused)
{
	struct ts_blob_row row = { .bytes = 4, .data = 4, .previous = 1 };

	check_refused(&row, 1, 1, "continues itself or a later one");
}

TS_TEST(negative_previous_is_refused)
{
	struct ts_blob_row row = { .bytes = 4, .data = 4, .previous = INT64_MIN };

	check_refused(&row, 1, 1, "continues itself or a later one");
}

TS_TEST(sizes_that_lie_are_refused)
{
	struct ts_blob_row larger = { .bytes = 5, .data = 4 };
	struct ts_blob_row negative = { .bytes = -1, .data = 4 };
	struct ts_blob_row falling[2] = { { .bytes = 4, .data = 4 },
					  { .bytes = 4, .data = 4, .previous = 1 } };
	struct ts_blob_row huge[2] = { { .bytes = 4, .data = 4 },
				       { .bytes = INT64_MAX, .data = 4, .previous = 1 } };

	falling[0].hash = huge[0].hash = (int64_t)ts_hash64("abcd", 4);
	check_refused(&larger, 1, 1, "size does not match");
	check_refused(&negative, 1, 1, "negative");
	check_refused(falling, 2, 2, "do not increase");
	check_refused(huge, 2, 2, "size does not match");
}

TS_TEST(rows_without_bytes_are_refused)
{
	struct ts_blob_row rows[2] = { { .bytes = 0, .data = 0 },
				       { .bytes = 4, .data = 4, .previous = 1 } };

	rows[0].hash = (int64_t)ts_hash64("", 0);
	check_refused(rows, 2, 2, "without bytes");
}

TS_TEST(another_content_than_the_hash_is_refused)
{
	struct ts_blob_row row = { .bytes = 4, .data = 4, .hash = 1 };

	check_refused(&row, 1, 1, "does not match its hash");
}

/* A chunk in the middle is lost: its bytes are unavailable, others are not. */
TS_TEST(a_lost_part_is_named)
{
	struct ts_writer *writer = open_writer();
	TS_AUTO_FREE unsigned char *data = malloc(MANY);
	struct ts_reader *reader;
	struct ts_error err;
	char byte, good[80];
	uint32_t blob;
	FILE *file;

	fill(data, MANY, 5);
	blob = put_content(writer, 0, 0, data, MANY, 1 << 20);
	reader = finish(writer);
	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(reader, i);

		if (chunk->table != TS_TABLE_BLOB || chunk->first_id != 2)
			continue;
		file = fopen(path, "r+");
		TS_CHECK(file && fseek(file, (long)(chunk->offset + chunk->bytes / 2), 0) == 0);
		fputs("damage", file);
		fclose(file);
	}
	TS_CHECK_INT(ts_reader_blob_read(reader, blob, 0, &byte, 1, &err), 0);
	TS_CHECK_INT(ts_reader_blob_read(reader, blob, 1 << 20, &byte, 1, &err), TS_EFORMAT);
	TS_CHECK_INT(ts_reader_blob_read(reader, blob, 2 << 20, &byte, 1, &err), 0);
	TS_CHECK_INT(ts_reader_blob_walk(reader, blob, NULL, NULL, &err), TS_EFORMAT);
	ts_reader_close(reader);
	/* What is recovered is complete up to its end. */
	snprintf(good, sizeof(good), "%s.good", path);
	TS_CHECK_INT(ts_recover(path, good, NULL, NULL, NULL, NULL), 0);
	TS_CHECK_INT(ts_verify(good, NULL, NULL, NULL, &err), 0);
	TS_CHECK_INT(ts_reader_open(&reader, good, NULL), 0);
	TS_CHECK_INT(ts_reader_blob_size(reader, blob, &(uint64_t){ 0 }, &err), TS_ENOTFOUND);
	TS_CHECK(strstr(err.message, "blob 3: part of it is missing from the file") != NULL);
	TS_CHECK_INT(ts_reader_blob_read(reader, 1, 0, &byte, 1, &err), 0);
	ts_reader_close(reader);
	unlink(good);
}
