/* SPDX-License-Identifier: Apache-2.0 */
/* Input streams: plain, gzip and zstd; complete, damaged, truncated and followed by other data. */
#include "base/input.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/text.h"
#include "unit/runner.h"

#if defined(__has_include)
#if __has_include("tracesmith_config.h")
#include "tracesmith_config.h"
#endif
#endif

#ifdef TS_HAVE_ZLIB
#include <zlib.h>
#endif

static char folder[256], path[300];

/* Creates a file with these bytes, in a folder that end_files() removes. */
static void make_file(const void *data, size_t bytes)
{
	const char *base = getenv("TMPDIR");
	FILE *file;

	if (!*folder) {
		snprintf(folder, sizeof(folder), "%s/ts-input-XXXXXX", base ? base : "/tmp");
		TS_CHECK(mkdtemp(folder) != NULL);
		snprintf(path, sizeof(path), "%s/in", folder);
	}
	file = fopen(path, "wb");
	TS_CHECK(file != NULL);
	TS_CHECK_INT(fwrite(data, 1, bytes, file), bytes);
	TS_CHECK_INT(fclose(file), 0);
}

static void end_files(void)
{
	unlink(path);
	rmdir(folder);
	*folder = '\0';
}

/* Reads the entire stream in pieces of `piece` bytes; returns the result of the last read. */
static int read_all(struct ts_input *input, size_t piece, struct ts_text *out, struct ts_error *err)
{
	TS_AUTO_FREE char *buffer = malloc(piece);
	size_t got;
	int rc;

	while ((rc = ts_input_read(input, buffer, piece, &got, err)) == 0 && got) {
		TS_CHECK(got <= piece);
		ts_text_append(out, buffer, got);
	}
	return rc;
}

static void check_content(const char *encoding, const char *data, size_t bytes)
{
	static const size_t pieces[] = { 1 << 20, 4096, 7 };
	struct ts_error err;

	for (size_t i = 0; i < TS_ARRAY_SIZE(pieces); i++) {
		TS_AUTO(ts_input) input = NULL;
		TS_SCOPED(ts_text) text = { 0 };
		struct stat status;
		size_t got = 5;

		if (ts_input_open(&input, path, &err))
			ts_test_fail(__FILE__, __LINE__, "%s", err.message);
		TS_CHECK_STR(ts_input_encoding(input), encoding);
		TS_CHECK_INT(stat(path, &status), 0);
		TS_CHECK_INT(ts_input_size(input), status.st_size);
		TS_CHECK_INT(ts_input_position(input), 0);
		if (read_all(input, pieces[i], &text, &err))
			ts_test_fail(__FILE__, __LINE__, "%s", err.message);
		TS_CHECK_INT(text.length, bytes);
		if (bytes)
			TS_CHECK_MEM(text.data, data, bytes);
		TS_CHECK_INT(ts_input_position(input), status.st_size);
		/* End of file is sticky. */
		TS_CHECK_INT(ts_input_read(input, &got, 1, &got, &err), TS_OK);
		TS_CHECK_INT(got, 0);
	}
}

/*
 * The file fails with TS_EFORMAT and such a text, after at most `bytes` bytes of the data. If data
 * is NULL they may be anything (gzip finds some damage only by the checksum at the end).
 */
static void check_bad(const char *data, size_t bytes, const char *ending)
{
	TS_AUTO(ts_input) input = NULL;
	TS_SCOPED(ts_text) text = { 0 };
	struct ts_error err, again;
	char start[400], byte[1];
	size_t got = 77;

	TS_CHECK_INT(ts_input_open(&input, path, &err), TS_OK);
	TS_CHECK_INT(read_all(input, 1000, &text, &err), TS_EFORMAT);
	TS_CHECK(!data || text.length <= bytes);
	if (data && text.length)
		TS_CHECK_MEM(text.data, data, text.length);
	snprintf(start, sizeof(start), "input '%s': byte ", path);
	TS_CHECK(strncmp(err.message, start, strlen(start)) == 0);
	if (!strstr(err.message, ending))
		ts_test_fail(__FILE__, __LINE__, "no '%s' in: %s", ending, err.message);
	TS_CHECK_INT(ts_input_read(input, byte, 1, &got, &again), TS_EFORMAT);
	TS_CHECK_STR(again.message, err.message);
	TS_CHECK_INT(got, 77);
	TS_CHECK_INT(ts_input_read(input, byte, 1, &got, NULL), TS_EFORMAT);
}

/* Text that compresses somewhat. */
static char *make_data(size_t bytes)
{
	char *data = malloc(bytes + 1);
	uint32_t random = 1;

	for (size_t i = 0; i < bytes; i++) {
		random = random * 1664525 + 1013904223;
		data[i] = "{\"name\": 0123456789, \"ts\":}\n"[(random >> 24) % 28];
	}
	return data;
}

TS_TEST(plain)
{
	size_t bytes = 700001;
	TS_AUTO_FREE char *data = make_data(bytes);

	make_file("", 0);
	check_content("plain", "", 0);
	make_file("\x1f", 1);
	check_content("plain", "\x1f", 1);
	make_file("abc", 3);
	check_content("plain", "abc", 3);
	make_file(data, bytes);
	check_content("plain", data, bytes);
	end_files();
}

TS_TEST(what_cannot_be_opened)
{
	struct ts_input *input = NULL;
	struct ts_error err;
	char expected[600];

	make_file("x", 1);
	TS_CHECK_INT(ts_input_open(&input, folder, &err), TS_EINVAL);
	snprintf(expected, sizeof(expected), "input '%s': is a directory, not a file", folder);
	TS_CHECK_STR(err.message, expected);
	end_files();
	TS_CHECK_INT(ts_input_open(&input, path, &err), TS_ENOTFOUND);
	snprintf(expected, sizeof(expected), "input '%s': cannot open: No such file or directory",
		 path);
	TS_CHECK_STR(err.message, expected);
	TS_CHECK_INT(ts_input_open(&input, "", &err), TS_EINVAL);
	TS_CHECK_INT(ts_input_open(&input, NULL, NULL), TS_EINVAL);
	TS_CHECK(input == NULL);
	ts_input_close(NULL);
}

static size_t append_zstd(char *file, size_t at, size_t capacity, const char *data, size_t bytes)
{
	size_t written = ZSTD_compress(file + at, capacity - at, data, bytes, 3);

	TS_CHECK(!ZSTD_isError(written));
	return at + written;
}

TS_TEST(zstd)
{
	size_t bytes = 1500001, capacity = 2000000, size;
	TS_AUTO_FREE char *data = make_data(bytes);
	TS_AUTO_FREE char *file = malloc(capacity);
	static const char skippable[] = "\x53\x2a\x4d\x18\x03\x00\x00\x00xyz";

	size = append_zstd(file, 0, capacity, data, bytes);
	make_file(file, size);
	check_content("zstd", data, bytes);

	/* Three frames, one of them empty, and a skippable one before them. */
	memcpy(file, skippable, sizeof(skippable) - 1);
	size = append_zstd(file, sizeof(skippable) - 1, capacity, data, 600000);
	size = append_zstd(file, size, capacity, "", 0);
	size = append_zstd(file, size, capacity, data + 600000, bytes - 600000);
	make_file(file, size);
	check_content("zstd", data, bytes);

	/* Cut at many offsets; a cut between frames is not detected. */
	size = append_zstd(file, 0, capacity, data, 200000);
	for (size_t cut = 4; cut < size; cut += cut < 40 ? 1 : 1777) {
		make_file(file, cut);
		check_bad(data, 200000, "zstd data is truncated");
	}
	make_file(file, size - 1);
	check_bad(data, 200000, "zstd data is truncated");

	memcpy(file + size, "garbage", 7);
	make_file(file, size + 7);
	check_bad(data, 200000, "zstd data is damaged");

	memset(file + size / 2, 0x55, 40);
	make_file(file, size);
	check_bad(data, 200000, "zstd data is damaged");
	end_files();
}

#ifdef TS_HAVE_ZLIB

static size_t append_gzip(char *file, size_t at, size_t capacity, const char *data, size_t bytes)
{
	z_stream stream = { .next_in = (unsigned char *)(uintptr_t)data,
			    .avail_in = (unsigned int)bytes,
			    .next_out = (unsigned char *)file + at,
			    .avail_out = (unsigned int)(capacity - at) };

	TS_CHECK_INT(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	TS_CHECK_INT(deflate(&stream, Z_FINISH), Z_STREAM_END);
	at += stream.total_out;
	deflateEnd(&stream);
	return at;
}

TS_TEST(gzip)
{
	size_t bytes = 1500001, capacity = 2000000, size, first;
	TS_AUTO_FREE char *data = make_data(bytes);
	TS_AUTO_FREE char *file = malloc(capacity);

	size = append_gzip(file, 0, capacity, data, bytes);
	make_file(file, size);
	check_content("gzip", data, bytes);

	size = append_gzip(file, 0, capacity, "", 0);
	size = append_gzip(file, size, capacity, data, 600000);
	first = size;
	size = append_gzip(file, size, capacity, data + 600000, bytes - 600000);
	make_file(file, size);
	check_content("gzip", data, bytes);
	make_file(file, first);
	check_content("gzip", data, 600000);
	/* Padding with zeros is ignored. */
	memset(file + first, 0, 1000);
	make_file(file, first + 1000);
	check_content("gzip", data, 600000);

	size = append_gzip(file, 0, capacity, data, 200000);
	for (size_t cut = 2; cut < size; cut += cut < 40 ? 1 : 1777) {
		make_file(file, cut);
		check_bad(data, 200000, "gzip data is truncated");
	}
	for (size_t cut = size - 9; cut < size; cut++) {
		make_file(file, cut);
		check_bad(data, 200000, "gzip data is truncated");
	}

	memcpy(file + size, "garbage", 7);
	make_file(file, size + 7);
	check_bad(data, 200000, "unexpected data after the gzip stream");
	make_file(file, size + 1);
	check_bad(data, 200000, "unexpected data after the gzip stream");

	file[size - 5] ^= 1;
	make_file(file, size);
	check_bad(data, 200000, "gzip data is damaged: incorrect data check");
	memset(file + size / 2, 0xff, 100);
	make_file(file, size);
	check_bad(NULL, 0, "gzip data is damaged");
	memcpy(file, "\x1f\x8b\x07\x00", 4);
	make_file(file, size);
	check_bad(data, 200000, "gzip data is damaged: unknown compression method");
	end_files();
}

#else

TS_TEST(gzip_without_zlib)
{
	struct ts_input *input = NULL;
	struct ts_error err;

	make_file("\x1f\x8b\x08\x00", 4);
	TS_CHECK_INT(ts_input_open(&input, path, &err), TS_ECAP);
	TS_CHECK(input == NULL);
	TS_CHECK(strstr(err.message, "zlib") != NULL);
	end_files();
}

#endif

/* Random damage causes an error at worst. */
TS_TEST(damage)
{
	size_t bytes = 20000, capacity = 40000, size;
	TS_AUTO_FREE char *data = make_data(bytes);
	TS_AUTO_FREE char *joined = malloc(capacity);
	TS_AUTO_FREE char *file = malloc(capacity);
	uint32_t random = 7;

	for (int round = 0; round < 400; round++) {
		TS_AUTO(ts_input) input = NULL;
		TS_SCOPED(ts_text) text = { 0 };
		struct ts_error err;

#ifdef TS_HAVE_ZLIB
		if (round & 1)
			size = append_gzip(joined, 0, capacity, data, bytes);
		else
#endif
			size = append_zstd(joined, 0, capacity, data, bytes);
		memcpy(file, joined, size);
		for (int i = 0; i < 1 + round % 5; i++) {
			random = random * 1664525 + 1013904223;
			file[4 + (random >> 8) % (size - 4)] ^= (char)(1 + (random & 0x7f));
		}
		make_file(file, size);
		TS_CHECK_INT(ts_input_open(&input, path, &err), TS_OK);
		if (read_all(input, 3000, &text, &err) == TS_OK && text.length == bytes)
			continue;
		TS_CHECK(text.length < (size_t)200 << 20);
	}
	end_files();
}

static int pipe_to;

static void *feed(void *argument)
{
	struct ts_error err;

	TS_CHECK_INT(ts_write_all(pipe_to, argument, 700001, &err), TS_OK);
	close(pipe_to);
	return NULL;
}

TS_TEST(standard_input)
{
	TS_AUTO_FREE char *data = make_data(700001);
	TS_AUTO(ts_input) input = NULL;
	TS_SCOPED(ts_text) text = { 0 };
	struct ts_error err;
	pthread_t thread;
	int saved = dup(0), ends[2];

	TS_CHECK_INT(pipe(ends), 0);
	/* Non-blocking on both sides: both must wait. */
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	dup2(ends[0], 0);
	close(ends[0]);
	pipe_to = ends[1];
	TS_CHECK_INT(pthread_create(&thread, NULL, feed, data), 0);
	TS_CHECK_INT(ts_input_open(&input, "-", &err), TS_OK);
	TS_CHECK_INT(ts_input_size(input), -1);
	TS_CHECK_INT(read_all(input, 5000, &text, &err), TS_OK);
	TS_CHECK_INT(text.length, 700001);
	TS_CHECK_MEM(text.data, data, text.length);
	pthread_join(thread, NULL);
	dup2(saved, 0);
	close(saved);
}

TS_TEST(write_failures)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct ts_error err;

	TS_CHECK_INT(ts_write_all(-1, "x", 1, &err), TS_EIO);
	TS_CHECK_STR(err.message, "cannot write: Bad file descriptor");
	TS_CHECK_INT(ts_write_all(-1, "", 0, &err), TS_OK);
	if (full < 0)
		ts_test_skip("no /dev/full");
	TS_CHECK_INT(ts_write_all(full, "x", 1, &err), TS_ENOSPC);
	close(full);
}
