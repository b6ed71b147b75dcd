/* SPDX-License-Identifier: Apache-2.0 */
/* Reads bytes and headers of a trace file. */
#include "sbt/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/local/hash.h"

static int not_regular(const char *path, struct ts_error *err)
{
	return ts_error_set(err, TS_EFORMAT, "trace '%s': not a regular file", path);
}

int sbt_file_open(struct sbt_file *file, const char *path, struct ts_error *err)
{
	TS_AUTO_FD int fd = -1;
	struct stat status;

	memset(file, 0, sizeof(*file));
	file->fd = file->base_fd = -1;
	/* A pipe is not even opened: its writer would see a reader come and go. */
	if (!stat(path, &status) && !S_ISREG(status.st_mode))
		return not_regular(path, err);
	fd = ts_io_open(path, O_RDONLY, 0);
	if (fd < 0)
		return ts_error_errno(err, errno, "cannot open trace '%s'", path);
	if (fstat(fd, &status))
		return ts_error_errno(err, errno, "trace '%s'", path);
	if (!S_ISREG(status.st_mode))
		return not_regular(path, err);
	file->path = strdup(path);
	if (!file->path)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	file->fd = fd;
	file->bytes = (uint64_t)status.st_size;
	fd = -1;
	return TS_OK;
}

int sbt_file_open_continued(struct sbt_file *file, const struct sbt_continued *continued,
			    struct ts_error *err)
{
	struct stat status;

	TS_AUTO_FD int fd = fcntl(continued->fd, F_DUPFD_CLOEXEC, 0);
	TS_AUTO_FD int base_fd = -1;

	memset(file, 0, sizeof(*file));
	file->fd = file->base_fd = -1;
	if (continued->base_bytes)
		base_fd = fcntl(continued->base_fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0 || (continued->base_bytes && base_fd < 0) || fstat(fd, &status))
		return ts_error_errno(err, errno, "cannot open trace '%s'", continued->path);
	file->path = strdup(continued->path);
	if (!file->path)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	file->bytes = (uint64_t)status.st_size;
	file->base_bytes = continued->base_bytes;
	file->fd = fd;
	file->base_fd = base_fd;
	fd = base_fd = -1;
	return TS_OK;
}

void sbt_file_close(struct sbt_file *file)
{
	if (file->path && file->base_bytes)
		close(file->base_fd);
	if (file->path)
		close(file->fd);
	free(file->path);
	file->path = NULL;
}

/* Up to `bytes` bytes at the offset, from the one of two files that has them. */
static ssize_t read_some(const struct sbt_file *file, void *buffer, size_t bytes, uint64_t offset)
{
	if (offset >= file->base_bytes)
		return pread(file->fd, buffer, bytes, (off_t)offset);
	bytes = (size_t)TS_MIN(bytes, file->base_bytes - offset);
	return pread(file->base_fd, buffer, bytes, (off_t)offset);
}

int sbt_file_read(struct sbt_file *file, uint64_t offset, void *buffer, size_t bytes,
		  struct ts_error *err)
{
	char *next = buffer;
	size_t left = bytes;

	while (left) {
		ssize_t got = read_some(file, next, left, offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return ts_error_errno(err, errno, "trace '%s': byte %llu: cannot read",
					      file->path, (unsigned long long)offset);
		if (got == 0)
			return ts_error_set(err, TS_EFORMAT,
					    "trace '%s': byte %llu: the file ends here", file->path,
					    (unsigned long long)offset);
		next += got;
		offset += (uint64_t)got;
		left -= (size_t)got;
	}
	atomic_fetch_add_explicit(&file->bytes_read, bytes, memory_order_relaxed);
	return TS_OK;
}

int sbt_file_check(struct sbt_file *file, struct ts_error *err)
{
	struct sbt_file_header *header = &file->header;
	size_t available = TS_MIN((size_t)file->bytes, sizeof(*header));
	int result;

	if (file->bytes == 0)
		return ts_error_set(err, TS_EFORMAT, "trace '%s': the file is empty", file->path);
	result = sbt_file_read(file, 0, header, available, err);
	if (result)
		return result;
	if (memcmp(header->magic, SBT_FILE_MAGIC, TS_MIN(available, (size_t)SBT_MAGIC_BYTES)) != 0)
		return ts_error_set(
			err, TS_EFORMAT,
			"trace '%s': byte 0: file header: not a TraceSmith trace (import other formats with 'tracesmith import')",
			file->path);
	if (available < sizeof(*header))
		return ts_error_set(
			err, TS_EFORMAT,
			"trace '%s': byte %llu: the file is truncated inside its header",
			file->path, (unsigned long long)file->bytes);
	if (header->checksum != ts_hash64(header, offsetof(struct sbt_file_header, checksum)))
		return ts_error_set(err, TS_EFORMAT,
				    "trace '%s': byte 0: file header: checksum differs (try "
				    "'tracesmith recover')",
				    file->path);
	if (header->major > SBT_MAJOR || header->required)
		return ts_error_set(err, TS_EVERSION,
				    "trace '%s': format %u.%u is newer than this program, which "
				    "reads up to %u.x (use a newer tracesmith)",
				    file->path, header->major, header->minor, SBT_MAJOR);
	return TS_OK;
}

const char *sbt_chunk_header_fault(const struct sbt_chunk_header *header, uint64_t offset,
				   uint64_t file_bytes)
{
	uint64_t smallest;

	if (memcmp(header->magic, SBT_CHUNK_MAGIC, SBT_MAGIC_BYTES) != 0)
		return "no chunk begins here";
	if (header->checksum != ts_hash64(header, offsetof(struct sbt_chunk_header, checksum)))
		return "checksum of the chunk header differs";
	if (header->columns > SBT_MAX_COLUMNS ||
	    header->header_bytes != sizeof(*header) + header->columns * sizeof(struct sbt_column))
		return "chunk header has a bad size";
	smallest = header->header_bytes;
	if (header->table == TS_TABLE_INDEX) {
		smallest += sizeof(struct sbt_trailer);
		if (header->rows > offset / sizeof(*header))
			return "index lists more chunks than there can be";
	} else if (header->rows == 0 || header->rows > SBT_MAX_ROWS) {
		return "chunk has a bad number of rows";
	}
	if (header->values > SBT_MAX_VALUES)
		return "chunk has too many argument values";
	if (header->chunk_bytes < smallest)
		return "chunk is smaller than its header";
	if (header->chunk_bytes > file_bytes - offset)
		return "the file ends inside this chunk";
	return NULL;
}

const char *sbt_directory_fault(const struct sbt_chunk_header *header,
				const struct sbt_column *directory)
{
	uint64_t bytes = header->header_bytes, values = 0;

	if (header->directory_checksum !=
	    ts_hash64(directory, header->columns * sizeof(*directory)))
		return "checksum of the directory differs";
	for (uint32_t i = 0; i < header->columns; i++) {
		const struct sbt_column *column = &directory[i];

		bytes += column->stored_bytes;
		if (column->stored_bytes > SBT_MAX_STORED_BYTES)
			return "column is larger than a column may be";
		if (column->column == SBT_COLUMN_ARGUMENT)
			values += column->count;
		else if (column->count != header->rows)
			return "column's number of values differs from the chunk's rows";
	}
	if (header->table == TS_TABLE_INDEX)
		bytes += sizeof(struct sbt_trailer);
	if (bytes != header->chunk_bytes)
		return "columns do not fill the chunk";
	return values == header->values ? NULL : "argument columns do not add up";
}

int sbt_directory_read(struct sbt_file *file, const struct sbt_chunk *chunk,
		       struct sbt_column *directory, const char **ret_why, struct ts_error *err)
{
	int result = sbt_file_read(file, chunk->offset + sizeof(chunk->header), directory,
				   chunk->header.columns * sizeof(*directory), err);

	*ret_why = NULL;
	if (result)
		return result;
	*ret_why = sbt_directory_fault(&chunk->header, directory);
	return *ret_why ? TS_EFORMAT : TS_OK;
}

int sbt_trailer_read(struct sbt_file *file, struct sbt_trailer *ret_trailer)
{
	struct sbt_trailer trailer;

	if (file->bytes < sizeof(struct sbt_file_header) + sizeof(struct sbt_chunk_header) +
				  sizeof(trailer) ||
	    sbt_file_read(file, file->bytes - sizeof(trailer), &trailer, sizeof(trailer), NULL) ||
	    memcmp(trailer.magic, SBT_TRAILER_MAGIC, SBT_MAGIC_BYTES) != 0 ||
	    trailer.checksum != ts_hash64(&trailer, offsetof(struct sbt_trailer, checksum)) ||
	    trailer.file_bytes != file->bytes)
		return TS_ENOTFOUND;
	*ret_trailer = trailer;
	return TS_OK;
}
