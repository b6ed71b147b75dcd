/* SPDX-License-Identifier: Apache-2.0 */
/* See png.h. One IDAT chunk for each full buffer of the compressor; rows are not filtered. */
#include "base/png.h"

#include <string.h>

#include "base/io.h"
#include "base/memory.h"
#include "tracesmith_config.h"

#ifdef TS_HAVE_ZLIB

#include <zlib.h>

#define BUFFER_BYTES ((size_t)64 << 10)
/* Length and type before the data of a chunk, checksum after it. */
#define CHUNK_BEFORE 8u
#define CHUNK_AFTER 4u
#define HEADER_BYTES 13u

static void put_big(unsigned char *to, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		to[i] = (unsigned char)(value >> (24 - 8 * i));
}

/* `chunk` has space before and after the data. */
static int write_chunk(int fd, const char *type, unsigned char *chunk, uint32_t bytes,
		       struct ts_error *err)
{
	put_big(chunk, bytes);
	memcpy(chunk + 4, type, 4);
	put_big(chunk + CHUNK_BEFORE + bytes, (uint32_t)crc32(0, chunk + 4, bytes + 4));
	return ts_write_all(fd, chunk, CHUNK_BEFORE + bytes + CHUNK_AFTER, err);
}

static int write_header(int fd, const struct ts_png *png, struct ts_error *err)
{
	static const unsigned char signature[] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
	static const unsigned char kinds[] = { 0, 0, 4, 2, 6 };
	unsigned char chunk[CHUNK_BEFORE + HEADER_BYTES + CHUNK_AFTER] = { 0 };
	unsigned char *header = chunk + CHUNK_BEFORE;
	int rc = ts_write_all(fd, signature, sizeof(signature), err);

	put_big(header, png->width);
	put_big(header + 4, png->height);
	header[8] = (unsigned char)png->bits;
	header[9] = kinds[png->channels];
	return rc ? rc : write_chunk(fd, "IHDR", chunk, HEADER_BYTES, err);
}

/* Compresses what is in zlib->next_in. */
static int deflate_input(int fd, z_stream *zlib, unsigned char *chunk, int flush,
			 struct ts_error *err)
{
	int state, rc = TS_OK;

	do {
		state = deflate(zlib, flush);
		if (zlib->avail_out == 0 || state == Z_STREAM_END) {
			rc = write_chunk(fd, "IDAT", chunk,
					 (uint32_t)(BUFFER_BYTES - zlib->avail_out), err);
			zlib->next_out = chunk + CHUNK_BEFORE;
			zlib->avail_out = BUFFER_BYTES;
		}
	} while (!rc && (zlib->avail_in || (flush == Z_FINISH && state != Z_STREAM_END)));
	return rc;
}

static int write_rows(int fd, const struct ts_png *png, z_stream *zlib, unsigned char *chunk,
		      struct ts_error *err)
{
	size_t row = (size_t)png->width * png->channels * (png->bits / 8);
	unsigned char unfiltered = 0;
	int rc = TS_OK;

	zlib->next_out = chunk + CHUNK_BEFORE;
	zlib->avail_out = BUFFER_BYTES;
	for (uint32_t y = 0; y < png->height && !rc; y++) {
		zlib->next_in = &unfiltered;
		zlib->avail_in = 1;
		rc = deflate_input(fd, zlib, chunk, Z_NO_FLUSH, err);
		zlib->next_in = (unsigned char *)(uintptr_t)png->pixels + y * row;
		zlib->avail_in = (uInt)row;
		if (!rc)
			rc = deflate_input(fd, zlib, chunk, Z_NO_FLUSH, err);
	}
	return rc ? rc : deflate_input(fd, zlib, chunk, Z_FINISH, err);
}

int ts_png_write(int fd, const struct ts_png *png, struct ts_error *err)
{
	TS_AUTO_FREE unsigned char *chunk =
		ts_alloc_array(CHUNK_BEFORE + BUFFER_BYTES + CHUNK_AFTER, 1);
	z_stream zlib = { 0 };
	int rc;

	if (png->width == 0 || png->height == 0 || png->width > INT32_MAX / 8 ||
	    png->height > INT32_MAX)
		return ts_error_set(err, TS_EINVAL, "a PNG cannot have %u x %u pixels", png->width,
				    png->height);
	if (!chunk || deflateInit(&zlib, Z_DEFAULT_COMPRESSION) != Z_OK)
		return ts_error_set(err, TS_ENOMEM, "no memory to compress a PNG");
	rc = write_header(fd, png, err);
	if (!rc)
		rc = write_rows(fd, png, &zlib, chunk, err);
	deflateEnd(&zlib);
	return rc ? rc : write_chunk(fd, "IEND", chunk, 0, err);
}

#else

int ts_png_write(int fd, const struct ts_png *png, struct ts_error *err)
{
	(void)fd;
	(void)png;
	return ts_error_set(err, TS_ECAP, "this build cannot write PNG: it was built without zlib");
}

#endif
