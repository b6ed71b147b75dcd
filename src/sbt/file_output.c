/* SPDX-License-Identifier: Apache-2.0 */
/* Appends to a trace file. */
#include "sbt/file_output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/local/hash.h"
#include "base/memory.h"
#include "base/output.h"
#include "sbt/sbt_layout.h"

static ssize_t plain_write(void *context, int fd, const void *data, size_t bytes)
{
	(void)context;
	return write(fd, data, bytes);
}

/* Locks a regular file and truncates it to `bytes`. */
static int lock_and_cut(const struct sbt_output *output, int fd, const char *path, uint64_t bytes,
			struct ts_error *err)
{
	struct stat status;

	if (fstat(fd, &status))
		return ts_error_errno(err, errno, "trace '%s'", path);
	if (!S_ISREG(status.st_mode))
		return TS_OK;
	if (!output->locked && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return ts_error_set(err, TS_EIO, "trace '%s': another process is writing it", path);
	if (ftruncate(fd, (off_t)bytes))
		return ts_error_errno(err, errno, "trace '%s': cannot truncate it to %llu bytes",
				      path, (unsigned long long)bytes);
	return TS_OK;
}

static int take(struct sbt_output *output, int fd, const char *path, uint64_t bytes,
		struct ts_error *err)
{
	int result = lock_and_cut(output, fd, path, bytes, err);

	if (result)
		return result;
	output->path = strdup(path);
	if (!output->path)
		return ts_error_set(err, TS_ENOMEM, "trace '%s': no memory", path);
	output->fd = fd;
	output->bytes = bytes;
	if (!output->write)
		output->write = plain_write;
	return TS_OK;
}

/* All writes go to the end of the file, wherever that is after a truncation. */
static int open_and_take(struct sbt_output *output, const char *path, unsigned int flags,
			 uint64_t bytes, struct ts_error *err)
{
	TS_AUTO_FD int fd = -1;
	int result;

	flags |= TS_OUTPUT_APPEND | (output->locked ? TS_OUTPUT_LOCKED : 0);
	result = ts_output_open(path, flags, &fd, err);
	if (!result)
		result = take(output, fd, path, bytes, err);
	if (!result)
		fd = -1;
	return result;
}

int sbt_output_open(struct sbt_output *output, const char *path, struct ts_error *err)
{
	return open_and_take(output, path, 0, 0, err);
}

int sbt_output_resume(struct sbt_output *output, const char *path, uint64_t bytes,
		      struct ts_error *err)
{
	return open_and_take(output, path, TS_OUTPUT_EXISTING, bytes, err);
}

static int write_failed(struct sbt_output *output, int errnum, struct ts_error *err)
{
	/* Complete chunks only: a valid, unfinished trace, if the caller keeps it. */
	(void)!ftruncate(output->fd, (off_t)output->bytes);
	/* A file at its size limit is like a full disk: its writer continues when it can. */
	if (errnum == EFBIG)
		return ts_error_set(
			err, TS_ENOSPC,
			"trace '%s': cannot write after byte %llu: file size limit reached (see ulimit -f)",
			output->path, (unsigned long long)output->bytes);
	return ts_error_errno(err, errnum, "trace '%s': cannot write after byte %llu%s",
			      output->path, (unsigned long long)output->bytes,
			      errnum == ENOSPC ? " (free some space, or write to another disk)"
					       : "");
}

/* Does not count the bytes yet. */
static int write_all(struct sbt_output *output, const void *data, size_t bytes,
		     struct ts_error *err)
{
	const char *next = data;
	size_t left = bytes;

	while (left) {
		ssize_t written = output->write(output->write_context, output->fd, next, left);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return write_failed(output, written ? errno : EIO, err);
		next += written;
		left -= (size_t)written;
	}
	return TS_OK;
}

int sbt_output_append(struct sbt_output *output, const void *data, size_t bytes,
		      struct ts_error *err)
{
	return sbt_output_append_two(output, data, bytes, NULL, 0, err);
}

int sbt_output_append_two(struct sbt_output *output, const void *data, size_t bytes,
			  const void *more, size_t more_bytes, struct ts_error *err)
{
	int result = write_all(output, data, bytes, err);

	if (!result)
		result = write_all(output, more, more_bytes, err);
	if (!result)
		__atomic_store_n(&output->bytes, output->bytes + bytes + more_bytes,
				 __ATOMIC_RELAXED);
	return result;
}

int sbt_output_cut(struct sbt_output *output, struct ts_error *err)
{
	if (ftruncate(output->fd, (off_t)output->bytes))
		return ts_error_errno(err, errno, "trace '%s': cannot truncate it to %llu bytes",
				      output->path, (unsigned long long)output->bytes);
	return TS_OK;
}

int sbt_output_sync(struct sbt_output *output, struct ts_error *err)
{
	if (output->sync && fdatasync(output->fd))
		return ts_error_errno(err, errno, "trace '%s': cannot sync it to disk",
				      output->path);
	return TS_OK;
}

int sbt_output_close(struct sbt_output *output, struct ts_error *err)
{
	int result = TS_OK;

	if (output->path) {
		if (close(output->fd))
			result = ts_error_errno(err, errno, "trace '%s': cannot close it",
						output->path);
		free(output->path);
		output->path = NULL;
	}
	return result;
}

void sbt_file_header_init(struct sbt_file_header *header, const uint8_t *trace_id)
{
	memset(header, 0, sizeof(*header));
	memcpy(header->magic, SBT_FILE_MAGIC, SBT_MAGIC_BYTES);
	header->major = SBT_MAJOR;
	header->minor = SBT_MINOR;
	header->header_bytes = sizeof(*header);
	header->created_ns = ts_clock_realtime_ns();
	if (trace_id)
		memcpy(header->trace_id, trace_id, sizeof(header->trace_id));
	else if (getrandom(header->trace_id, sizeof(header->trace_id), 0) < 0)
		memcpy(header->trace_id, &header->created_ns, sizeof(header->created_ns));
	header->checksum = ts_hash64(header, offsetof(struct sbt_file_header, checksum));
}
