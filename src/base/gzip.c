/* SPDX-License-Identifier: Apache-2.0 */
/* See gzip.h. A pipe leads to the thread, so that writers need not know of it. */
#include "base/gzip.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/thread.h"
#include "tracesmith_config.h"

#ifdef TS_HAVE_ZLIB

#include <zlib.h>

#define BUFFER_BYTES ((size_t)64 << 10)
/* A window of 15 bits, plus 16 for the header of gzip. */
#define WINDOW_BITS (15 + 16)
#define MEMORY_LEVEL 8

struct ts_gzip {
	int fd;      /* of the caller */
	int ends[2]; /* of the pipe: read by the thread, written by the caller */
	pthread_t thread;
	z_stream zlib;
	char in[BUFFER_BYTES], out[BUFFER_BYTES];
	struct ts_error error; /* of the thread; code 0: none */
};

/* Compresses what is in zlib.next_in. */
static int deflate_input(struct ts_gzip *gzip, int flush)
{
	z_stream *zlib = &gzip->zlib;

	do {
		int rc;

		zlib->next_out = (Bytef *)gzip->out;
		zlib->avail_out = BUFFER_BYTES;
		deflate(zlib, flush);
		rc = ts_write_all(gzip->fd, gzip->out, BUFFER_BYTES - zlib->avail_out,
				  &gzip->error);
		if (rc)
			return rc;
	} while (zlib->avail_out == 0);
	return TS_OK;
}

static void *compress_all(void *context)
{
	struct ts_gzip *gzip = context;
	ssize_t got;

	do {
		got = ts_read_some(gzip->ends[0], gzip->in, BUFFER_BYTES);
		if (got < 0) {
			ts_error_errno(&gzip->error, errno, "cannot read from a pipe");
			break;
		}
		gzip->zlib.next_in = (Bytef *)gzip->in;
		gzip->zlib.avail_in = (unsigned int)got;
	} while (!deflate_input(gzip, got ? Z_NO_FLUSH : Z_FINISH) && got);
	/* If this was an error, the writer learns it from its next write. */
	close(gzip->ends[0]);
	return NULL;
}

int ts_gzip_start(struct ts_gzip **ret_gzip, int fd, int *ret_input, struct ts_error *err)
{
	struct ts_gzip *gzip = calloc(1, sizeof(*gzip));
	int rc;

	if (!gzip)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	gzip->fd = fd;
	if (deflateInit2(&gzip->zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK) {
		free(gzip);
		return ts_error_set(err, TS_ENOMEM, "no memory");
	}
	rc = pipe2(gzip->ends, O_CLOEXEC) ? errno : 0;
	if (!rc) {
		rc = ts_thread_start(&gzip->thread, "gzip", compress_all, gzip);
		if (rc) {
			close(gzip->ends[0]);
			close(gzip->ends[1]);
		}
	}
	if (rc) {
		deflateEnd(&gzip->zlib);
		free(gzip);
		return ts_error_errno(err, rc, "cannot compress");
	}
	*ret_input = gzip->ends[1];
	*ret_gzip = gzip;
	return TS_OK;
}

int ts_gzip_finish(struct ts_gzip *gzip, struct ts_error *err)
{
	int rc;

	close(gzip->ends[1]);
	pthread_join(gzip->thread, NULL);
	rc = gzip->error.code;
	if (rc && err)
		*err = gzip->error;
	deflateEnd(&gzip->zlib);
	free(gzip);
	return rc;
}

#else

int ts_gzip_start(struct ts_gzip **ret_gzip, int fd, int *ret_input, struct ts_error *err)
{
	(void)ret_gzip;
	(void)fd;
	(void)ret_input;
	return ts_error_set(err, TS_ECAP, "this build cannot write gzip (it has no zlib)");
}

int ts_gzip_finish(struct ts_gzip *gzip, struct ts_error *err)
{
	(void)gzip;
	(void)err;
	return TS_OK;
}

#endif
