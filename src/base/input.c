/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input streams: file bytes go through one buffer into a decoder chosen by the first bytes. What
 * decodes before damage or truncation is delivered first, then the error.
 */
#include "base/input.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#if defined(__has_include)
#if __has_include("tracesmith_config.h")
#include "tracesmith_config.h"
#endif
#endif

#ifdef TS_HAVE_ZLIB
#include <zlib.h>
#endif

#define BUFFER_BYTES ((size_t)256 << 10)

struct decoder {
	const char *name;
	int (*init)(struct ts_input *input, struct ts_error *err);
	/* Like ts_input_read(); `bytes` is not 0. */
	int (*read)(struct ts_input *input, void *buffer, size_t bytes, size_t *ret_bytes,
		    struct ts_error *err);
	void (*release)(struct ts_input *input);
};

struct ts_input {
	int fd;
	bool is_stdin;
	char *path;
	int64_t size;
	uint64_t file_bytes; /* read from the file so far */
	bool at_end;         /* of the file */
	bool mid_frame;      /* inside a compressed member or frame */
	const struct decoder *decoder;
	struct ts_error failure; /* code 0: none */
	unsigned char *buffer;   /* bytes begin ... end - 1 are not decoded yet */
	size_t begin, end;
	ZSTD_DStream *zstd;
	size_t zstd_wants; /* preferred size of the next read */
#ifdef TS_HAVE_ZLIB
	z_stream zlib;
	bool zlib_ready;
#endif
};

static size_t bytes_buffered(const struct ts_input *input)
{
	return input->end - input->begin;
}

static int fail_read(struct ts_input *input, struct ts_error *err)
{
	return ts_error_errno(err, errno, "input '%s': byte %" PRIu64 ": cannot read", input->path,
			      input->file_bytes);
}

static int fail_format(struct ts_input *input, struct ts_error *err, const char *reason,
		       const char *detail)
{
	return ts_error_set(err, TS_EFORMAT, "input '%s': byte %" PRIu64 ": %s%s%s", input->path,
			    ts_input_position(input), reason, detail ? ": " : "",
			    detail ? detail : "");
}

/* Makes at least `need` bytes available in the buffer, unless the file ends first. */
static int fill(struct ts_input *input, size_t need, struct ts_error *err)
{
	if (bytes_buffered(input) >= need || input->at_end)
		return TS_OK;
	memmove(input->buffer, input->buffer + input->begin, bytes_buffered(input));
	input->end = bytes_buffered(input);
	input->begin = 0;
	while (input->end < need && !input->at_end) {
		ssize_t got = ts_read_some(input->fd, input->buffer + input->end,
					   BUFFER_BYTES - input->end);

		if (got < 0)
			return fail_read(input, err);
		input->at_end = got == 0;
		input->end += (size_t)got;
		input->file_bytes += (uint64_t)got;
	}
	return TS_OK;
}

/* ---- plain ---- */

static int plain_read(struct ts_input *input, void *buffer, size_t bytes, size_t *ret_bytes,
		      struct ts_error *err)
{
	size_t buffered = bytes_buffered(input);
	ssize_t got;

	/* First the bytes read to detect the encoding, then straight into the caller's memory. */
	if (buffered) {
		*ret_bytes = TS_MIN(bytes, buffered);
		memcpy(buffer, input->buffer + input->begin, *ret_bytes);
		input->begin += *ret_bytes;
		return TS_OK;
	}
	got = input->at_end ? 0 : ts_read_some(input->fd, buffer, bytes);
	if (got < 0)
		return fail_read(input, err);
	input->at_end = got == 0;
	input->file_bytes += (uint64_t)got;
	*ret_bytes = (size_t)got;
	return TS_OK;
}

static const struct decoder plain_decoder = {
	.name = "plain",
	.read = plain_read,
};

/* ---- zstd ---- */

static int zstd_init(struct ts_input *input, struct ts_error *err)
{
	input->zstd = ZSTD_createDStream();
	if (!input->zstd)
		return ts_error_set(err, TS_ENOMEM, "input '%s': out of memory", input->path);
	input->zstd_wants = ZSTD_initDStream(input->zstd);
	return TS_OK;
}

static void zstd_release(struct ts_input *input)
{
	ZSTD_freeDStream(input->zstd);
}

static int zstd_read(struct ts_input *input, void *buffer, size_t bytes, size_t *ret_bytes,
		     struct ts_error *err)
{
	ZSTD_outBuffer out = { .dst = buffer, .size = bytes };

	for (;;) {
		ZSTD_inBuffer in;
		size_t rest;
		int rc = fill(input, 1, err);

		if (rc)
			return rc;
		if (!bytes_buffered(input) && !input->mid_frame) {
			*ret_bytes = 0;
			return TS_OK;
		}
		/*
		 * Block by block, at the size it prefers: an error then costs one block and names
		 * its byte.
		 */
		in = (ZSTD_inBuffer){ .src = input->buffer + input->begin,
				      .size = TS_MIN(bytes_buffered(input), input->zstd_wants) };
		rest = ZSTD_decompressStream(input->zstd, &out, &in);
		input->begin += in.pos;
		if (ZSTD_isError(rest))
			return fail_format(input, err, "zstd data is damaged",
					   ZSTD_getErrorName(rest));
		input->mid_frame = rest != 0;
		input->zstd_wants = rest ? rest : ZSTD_initDStream(input->zstd);
		if (out.pos) {
			*ret_bytes = out.pos;
			return TS_OK;
		}
		if (input->mid_frame && input->at_end && !bytes_buffered(input))
			return fail_format(input, err, "zstd data is truncated", NULL);
	}
}

static const struct decoder zstd_decoder = {
	.name = "zstd",
	.init = zstd_init,
	.read = zstd_read,
	.release = zstd_release,
};

/* ---- gzip ---- */

#ifdef TS_HAVE_ZLIB

static int gzip_init(struct ts_input *input, struct ts_error *err)
{
	/* A window of 15 bits, plus 16 for "gzip only". */
	if (inflateInit2(&input->zlib, 15 + 16) != Z_OK)
		return ts_error_set(err, TS_ENOMEM, "input '%s': out of memory", input->path);
	input->zlib_ready = true;
	input->mid_frame = true;
	return TS_OK;
}

static void gzip_release(struct ts_input *input)
{
	if (input->zlib_ready)
		inflateEnd(&input->zlib);
}

/* Between members: end of file, another member, or zeros (padding left by block-oriented tools). */
static int gzip_start_member(struct ts_input *input, struct ts_error *err)
{
	for (;;) {
		int rc = fill(input, 2, err);

		if (rc)
			return rc;
		if (!bytes_buffered(input))
			return TS_OK;
		if (input->buffer[input->begin] != 0)
			break;
		input->begin++;
	}
	if (bytes_buffered(input) < 2 || input->buffer[input->begin] != 0x1f ||
	    input->buffer[input->begin + 1] != 0x8b)
		return fail_format(input, err, "unexpected data after the gzip stream", NULL);
	inflateReset(&input->zlib);
	input->mid_frame = true;
	return TS_OK;
}

static int gzip_read(struct ts_input *input, void *buffer, size_t bytes, size_t *ret_bytes,
		     struct ts_error *err)
{
	z_stream *zlib = &input->zlib;
	size_t space = TS_MIN(bytes, (size_t)1 << 30);

	for (;;) {
		int rc = input->mid_frame ? fill(input, 1, err) : gzip_start_member(input, err);
		size_t produced;
		int result;

		if (rc)
			return rc;
		if (!input->mid_frame) {
			*ret_bytes = 0;
			return TS_OK;
		}
		zlib->next_in = input->buffer + input->begin;
		zlib->avail_in = (unsigned int)bytes_buffered(input);
		zlib->next_out = buffer;
		zlib->avail_out = (unsigned int)space;
		result = inflate(zlib, Z_NO_FLUSH);
		input->begin = input->end - zlib->avail_in;
		produced = space - zlib->avail_out;
		if (result == Z_STREAM_END)
			input->mid_frame = false;
		/* The next call, which has no bytes to return, meets the error again. */
		if (produced) {
			*ret_bytes = produced;
			return TS_OK;
		}
		if (result == Z_MEM_ERROR)
			return ts_error_set(err, TS_ENOMEM, "input '%s': out of memory",
					    input->path);
		if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
			return fail_format(input, err, "gzip data is damaged", zlib->msg);
		if (input->mid_frame && input->at_end && !bytes_buffered(input))
			return fail_format(input, err, "gzip data is truncated", NULL);
	}
}

static const struct decoder gzip_decoder = {
	.name = "gzip",
	.init = gzip_init,
	.read = gzip_read,
	.release = gzip_release,
};

#else

static int gzip_init(struct ts_input *input, struct ts_error *err)
{
	static const char reason[] = "is gzip, which this build cannot read (it has no zlib): "
				     "decompress it first";

	return ts_error_set(err, TS_ECAP, "input '%s': %s", input->path, reason);
}

static const struct decoder gzip_decoder = {
	.name = "gzip",
	.init = gzip_init,
};

#endif

/* ---- the stream ---- */

static const struct decoder *choose_decoder(const unsigned char *p, size_t bytes)
{
	uint32_t magic;

	if (bytes >= 2 && p[0] == 0x1f && p[1] == 0x8b)
		return &gzip_decoder;
	if (bytes < 4)
		return &plain_decoder;
	magic = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
	/* A data frame, or a skippable one before it. */
	if (magic == ZSTD_MAGICNUMBER || (magic & 0xfffffff0u) == 0x184d2a50u)
		return &zstd_decoder;
	return &plain_decoder;
}

/*
 * Anything in it, or anyone who might still write? A writer that waits for us to open the FIFO
 * counts. What was read stays in the buffer.
 */
static bool has_writer(struct ts_input *input)
{
	int flags = fcntl(input->fd, F_GETFL);
	ssize_t got;

	fcntl(input->fd, F_SETFL, flags | O_NONBLOCK);
	got = read(input->fd, input->buffer, BUFFER_BYTES);
	fcntl(input->fd, F_SETFL, flags);
	input->end = (size_t)TS_MAX(got, 0);
	input->file_bytes = input->end;
	return got != 0;
}

static int open_file(struct ts_input *input, struct ts_error *err)
{
	struct stat status;
	off_t offset;

	input->is_stdin = strcmp(input->path, "-") == 0;
	input->fd = input->is_stdin ? STDIN_FILENO : ts_io_open(input->path, O_RDONLY, 0);
	if (input->fd < 0)
		return ts_error_errno(err, errno, "input '%s': cannot open", input->path);
	if (fstat(input->fd, &status) < 0)
		return ts_error_errno(err, errno, "input '%s': cannot open", input->path);
	if (S_ISDIR(status.st_mode))
		return ts_error_set(err, TS_EINVAL, "input '%s': is a directory, not a file",
				    input->path);
	if (S_ISFIFO(status.st_mode) && !input->is_stdin && !has_writer(input))
		return ts_error_set(err, TS_EFORMAT,
				    "input '%s': it is an empty pipe that nothing writes to",
				    input->path);
	if (S_ISREG(status.st_mode)) {
		offset = input->is_stdin ? lseek(input->fd, 0, SEEK_CUR) : 0;
		input->size = TS_MAX((int64_t)status.st_size - TS_MAX((int64_t)offset, 0), 0);
#ifdef POSIX_FADV_SEQUENTIAL
		posix_fadvise(input->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
#endif
	}
	return TS_OK;
}

int ts_input_open(struct ts_input **ret_input, const char *path, struct ts_error *err)
{
	TS_AUTO(ts_input) input = NULL;
	int rc;

	if (!ret_input || !path || !*path)
		return ts_error_set(err, TS_EINVAL, "input: no path given");
	input = calloc(1, sizeof(*input));
	if (!input)
		return ts_error_set(err, TS_ENOMEM, "input '%s': out of memory", path);
	input->fd = -1;
	input->size = -1;
	input->path = strdup(path);
	input->buffer = malloc(BUFFER_BYTES);
	if (!input->path || !input->buffer)
		return ts_error_set(err, TS_ENOMEM, "input '%s': out of memory", path);
	rc = open_file(input, err);
	rc = rc ? rc : fill(input, 4, err);
	if (rc)
		return rc;
	input->decoder = choose_decoder(input->buffer, input->end);
	rc = input->decoder->init ? input->decoder->init(input, err) : TS_OK;
	if (rc)
		return rc;
	*ret_input = TS_STEAL(input);
	return TS_OK;
}

int ts_input_read(struct ts_input *input, void *buffer, size_t bytes, size_t *ret_bytes,
		  struct ts_error *err)
{
	size_t got = 0;
	int rc;

	if (!bytes)
		return ts_error_set(err, TS_EINVAL, "input '%s': read of no bytes", input->path);
	rc = input->failure.code;
	if (!rc)
		rc = input->decoder->read(input, buffer, bytes, &got, &input->failure);
	if (rc) {
		if (err)
			*err = input->failure;
		return rc;
	}
	*ret_bytes = got;
	return TS_OK;
}

void ts_input_close(struct ts_input *input)
{
	if (!input)
		return;
	if (input->decoder && input->decoder->release)
		input->decoder->release(input);
	if (input->fd >= 0 && !input->is_stdin)
		close(input->fd);
	free(input->buffer);
	free(input->path);
	free(input);
}

uint64_t ts_input_position(const struct ts_input *input)
{
	return input->file_bytes - bytes_buffered(input);
}

int64_t ts_input_size(const struct ts_input *input)
{
	return input->size;
}

bool ts_input_is_plain_file(const struct ts_input *input)
{
	return input->size >= 0 && !input->is_stdin && input->decoder == &plain_decoder;
}

const char *ts_input_encoding(const struct ts_input *input)
{
	return input->decoder->name;
}
