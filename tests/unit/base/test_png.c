/* SPDX-License-Identifier: Apache-2.0 */
/* PNG files: their chunks, their pixels, sizes that they cannot have. */
#include "base/png.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "tracesmith_config.h"
#include "unit/runner.h"

#ifdef TS_HAVE_ZLIB

#include <zlib.h>

#define MOST_BYTES ((size_t)4 << 20)

struct decoded {
	uint32_t width, height;
	unsigned int bits, kind, data_chunks;
	unsigned char *rows; /* each with its filter */
	size_t row_bytes;
};

static uint32_t big_at(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static size_t write_png(const struct ts_png *png, unsigned char *file)
{
	char path[] = "/tmp/tracesmith-test-XXXXXX";
	int fd = mkstemp(path);
	ssize_t bytes;

	TS_CHECK(fd >= 0);
	unlink(path);
	TS_CHECK_INT(ts_png_write(fd, png, NULL), 0);
	bytes = pread(fd, file, MOST_BYTES, 0);
	TS_CHECK(bytes > 0 && (size_t)bytes < MOST_BYTES);
	close(fd);
	return (size_t)bytes;
}

/* The data of a chunk, which has its type and a valid checksum; moves on to the next one. */
static const unsigned char *take_chunk(const unsigned char **at, const unsigned char *end,
				       char type[5], uint32_t *ret_bytes)
{
	const unsigned char *data = *at + 8;

	TS_CHECK(end - *at >= 12);
	*ret_bytes = big_at(*at);
	TS_CHECK((size_t)(end - data) >= (size_t)*ret_bytes + 4);
	memcpy(type, *at + 4, 4);
	type[4] = 0;
	TS_CHECK_INT(big_at(data + *ret_bytes), crc32(0, *at + 4, *ret_bytes + 4));
	*at = data + *ret_bytes + 4;
	return data;
}

static void take_header(struct decoded *decoded, const unsigned char **at, const unsigned char *end)
{
	static const unsigned char channels[] = { 1, 0, 3, 0, 2, 0, 4 };
	const unsigned char *header;
	uint32_t bytes;
	char type[5];

	TS_CHECK_MEM(*at, "\x89PNG\r\n\x1a\n", 8);
	*at += 8;
	header = take_chunk(at, end, type, &bytes);
	TS_CHECK_STR(type, "IHDR");
	TS_CHECK_INT(bytes, 13);
	decoded->width = big_at(header);
	decoded->height = big_at(header + 4);
	decoded->bits = header[8];
	decoded->kind = header[9];
	TS_CHECK_MEM(header + 10, "\0\0\0", 3);
	decoded->row_bytes = 1 + (size_t)decoded->width * channels[header[9]] * header[8] / 8;
}

static void decode(struct decoded *decoded, const unsigned char *file, size_t bytes)
{
	unsigned char *packed = malloc(MOST_BYTES);
	const unsigned char *at = file, *end = file + bytes, *data;
	size_t used = 0;
	uLongf unpacked;
	uint32_t count;
	char type[5];

	*decoded = (struct decoded){ 0 };
	take_header(decoded, &at, end);
	for (data = take_chunk(&at, end, type, &count); !strcmp(type, "IDAT");
	     data = take_chunk(&at, end, type, &count)) {
		memcpy(packed + used, data, count);
		used += count;
		decoded->data_chunks++;
	}
	TS_CHECK_STR(type, "IEND");
	TS_CHECK_INT(count, 0);
	TS_CHECK(at == end);
	unpacked = decoded->height * decoded->row_bytes;
	decoded->rows = malloc(unpacked);
	TS_CHECK_INT(uncompress(decoded->rows, &unpacked, packed, used), Z_OK);
	TS_CHECK_INT(unpacked, decoded->height * decoded->row_bytes);
	free(packed);
}

/* What is written is what is read. */
static void check_png(const struct ts_png *png, unsigned int kind, unsigned int least_chunks)
{
	size_t row_bytes = (size_t)png->width * png->channels * png->bits / 8;
	unsigned char *file = malloc(MOST_BYTES);
	struct decoded decoded;

	decode(&decoded, file, write_png(png, file));
	TS_CHECK_INT(decoded.width, png->width);
	TS_CHECK_INT(decoded.height, png->height);
	TS_CHECK_INT(decoded.bits, png->bits);
	TS_CHECK_INT(decoded.kind, kind);
	TS_CHECK(decoded.data_chunks >= least_chunks);
	TS_CHECK_INT(decoded.row_bytes, row_bytes + 1);
	for (uint32_t y = 0; y < png->height; y++) {
		const unsigned char *row = decoded.rows + y * decoded.row_bytes;

		TS_CHECK_INT(row[0], 0);
		TS_CHECK_MEM(row + 1, (const unsigned char *)png->pixels + y * row_bytes,
			     row_bytes);
	}
	free(decoded.rows);
	free(file);
}

TS_TEST(channels_and_bits)
{
	static const unsigned int kinds[] = { 0, 0, 4, 2, 6 };
	unsigned char pixels[5 * 3 * 4 * 2];

	for (size_t i = 0; i < sizeof(pixels); i++)
		pixels[i] = (unsigned char)(i * 37);
	for (unsigned int channels = 1; channels <= 4; channels++)
		for (unsigned int bits = 8; bits <= 16; bits += 8)
			check_png(&(struct ts_png){ 5, 3, channels, bits, pixels }, kinds[channels],
				  1);
}

TS_TEST(one_pixel)
{
	check_png(&(struct ts_png){ 1, 1, 1, 8, "\x7f" }, 0, 1);
}

/* Data that does not compress fills the compressor's buffer several times. */
TS_TEST(large_pictures_have_several_chunks)
{
	const struct ts_png png = { 500, 300, 4, 8, malloc((size_t)500 * 300 * 4) };
	unsigned char *pixels = (unsigned char *)(uintptr_t)png.pixels;
	uint64_t state = 1;

	for (size_t i = 0; i < (size_t)500 * 300 * 4; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		pixels[i] = (unsigned char)(state >> 56);
	}
	check_png(&png, 6, 5);
	free(pixels);
}

TS_TEST(impossible_sizes)
{
	static const uint32_t sizes[][2] = {
		{ 0, 1 }, { 1, 0 }, { INT32_MAX, 1 }, { UINT32_MAX, 1 }, { 1, UINT32_MAX }
	};
	struct ts_error err;

	for (size_t i = 0; i < TS_ARRAY_SIZE(sizes); i++) {
		const struct ts_png png = { sizes[i][0], sizes[i][1], 1, 8, "" };

		TS_CHECK_INT(ts_png_write(-1, &png, &err), TS_EINVAL);
		TS_CHECK(strstr(err.message, "a PNG cannot have"));
	}
}

TS_TEST(an_output_that_cannot_be_written_is_an_error)
{
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct ts_error err;

	TS_CHECK_INT(ts_png_write(fd, &(struct ts_png){ 1, 1, 1, 8, "" }, &err), TS_ENOSPC);
	close(fd);
}

#else

TS_TEST(a_build_without_zlib_says_so)
{
	struct ts_error err;

	TS_CHECK_INT(ts_png_write(-1, &(struct ts_png){ 1, 1, 1, 8, "" }, &err), TS_ECAP);
	TS_CHECK(strstr(err.message, "without zlib"));
}

#endif
