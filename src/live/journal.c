/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Journal files: one write per block; reading distinguishes a torn tail from damage. Reading takes
 * time linear in the file size, whatever the file holds.
 */
#include "live/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/local/hash.h"
#include "base/output.h"
#include "base/temporary.h"
#include "base/text.h"

/* Payloads up to this size are read with the header, in one call. */
#define SMALL_BYTES 4096u
#define COPY_BYTES ((size_t)1 << 20)

struct ts_journal {
	int fd;
	char *path;
	uint64_t bytes; /* of complete blocks */
};

void (*ts_crash_hook)(const char *point);

void ts_crash_point(const char *point)
{
	if (TS_UNLIKELY(ts_crash_hook != NULL))
		ts_crash_hook(point);
}

static uint64_t padded(uint64_t bytes)
{
	return (bytes + 7) & ~UINT64_C(7);
}

static uint64_t checksum(const struct ts_block *block, const void *payload)
{
	struct ts_block copy = *block;

	copy.checksum = ts_hash64(payload, block->bytes);
	return ts_hash64(&copy, sizeof(copy));
}

/* ---- opening and closing ---- */

static int open_journal(struct ts_journal **ret_journal, const char *path, bool is_new,
			struct ts_error *err)
{
	TS_AUTO(ts_journal) journal = calloc(1, sizeof(*journal));
	int result;

	if (!journal)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	journal->fd = -1;
	journal->path = strdup(path);
	if (!journal->path)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	if (is_new)
		result = ts_output_create(path, TS_OUTPUT_READ, &journal->fd, err);
	else
		result = ts_output_open(path, TS_OUTPUT_READ | TS_OUTPUT_EXISTING, &journal->fd,
					err);
	if (!result)
		*ret_journal = TS_STEAL(journal);
	return result;
}

int ts_journal_create(struct ts_journal **ret_journal, const char *path, struct ts_error *err)
{
	return open_journal(ret_journal, path, true, err);
}

int ts_journal_create_unnamed(struct ts_journal **ret_journal, struct ts_error *err)
{
	TS_AUTO(ts_journal) journal = calloc(1, sizeof(*journal));
	int result;

	if (!journal)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	journal->fd = -1;
	journal->path = strdup("(unnamed)");
	if (!journal->path)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	result = ts_temporary_open(&journal->fd, err);
	if (!result)
		*ret_journal = TS_STEAL(journal);
	return result;
}

/* Finds the end of the last complete block. */
static int find_end(struct ts_journal *journal, struct ts_error *err)
{
	TS_SCOPED(ts_text) payload = { 0 };
	struct ts_block block;
	int result;

	do {
		uint64_t offset = journal->bytes;

		result = ts_journal_read(journal->fd, &offset, &block, &payload, err);
		journal->bytes = offset;
	} while (!result || result == TS_EFORMAT);
	return result == TS_ENOTFOUND ? TS_OK : result;
}

int ts_journal_resume(struct ts_journal **ret_journal, const char *path, struct ts_error *err)
{
	struct ts_journal *journal = NULL;
	int result = open_journal(&journal, path, false, err);

	if (!journal)
		return result;
	result = find_end(journal, err);
	if (result)
		ts_journal_close(journal);
	else
		*ret_journal = journal;
	return result;
}

int ts_journal_trim(struct ts_journal *journal, struct ts_error *err)
{
	if (ftruncate(journal->fd, (off_t)journal->bytes))
		return ts_error_errno(err, errno,
				      "journal '%s': cannot truncate its incomplete end",
				      journal->path);
	return TS_OK;
}

void ts_journal_close(struct ts_journal *journal)
{
	if (!journal)
		return;
	if (journal->fd >= 0)
		close(journal->fd);
	free(journal->path);
	free(journal);
}

uint64_t ts_journal_bytes(const struct ts_journal *journal)
{
	return journal->bytes;
}

int ts_journal_fd(const struct ts_journal *journal)
{
	return journal->fd;
}

int ts_journal_sync(struct ts_journal *journal, struct ts_error *err)
{
	if (fdatasync(journal->fd))
		return ts_error_errno(err, errno, "journal '%s': cannot sync it to disk",
				      journal->path);
	return TS_OK;
}

int ts_journal_rename(struct ts_journal *journal, const char *path, struct ts_error *err)
{
	char *copy = strdup(path);
	int result;

	if (!copy)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	result = ts_output_rename(journal->path, path, err);
	if (result) {
		free(copy);
		return result;
	}
	free(journal->path);
	journal->path = copy;
	return TS_OK;
}

/* ---- appending ---- */

static int append_failed(struct ts_journal *journal, int errnum, struct ts_error *err)
{
	/* If even this fails, the next reader finds a torn block. */
	if (ftruncate(journal->fd, (off_t)journal->bytes))
		errnum = errnum ? errnum : errno;
	if (errnum == EFBIG)
		return ts_error_set(err, TS_ENOSPC,
				    "journal '%s': it has reached the file size limit (see "
				    "ulimit -f)",
				    journal->path);
	return ts_error_errno(err, errnum, "journal '%s': cannot append", journal->path);
}

/* Writes all buffers after the last complete block. */
static int write_buffers(struct ts_journal *journal, struct iovec *part, int count,
			 struct ts_error *err)
{
	uint64_t offset = journal->bytes;

	while (count) {
		ssize_t written = pwritev(journal->fd, part, count, (off_t)offset);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return append_failed(journal, written ? errno : EIO, err);
		offset += (uint64_t)written;
		for (; count && (size_t)written >= part->iov_len; part++, count--)
			written -= (ssize_t)part->iov_len;
		if (count) {
			part->iov_base = (char *)part->iov_base + written;
			part->iov_len -= (size_t)written;
		}
	}
	journal->bytes = offset;
	return TS_OK;
}

/* For tests: writes half a block, then calls the crash hook. */
static void write_half(struct ts_journal *journal, const struct ts_block *block,
		       const void *payload)
{
	struct iovec part[2] = {
		{ .iov_base = (void *)(uintptr_t)block, .iov_len = sizeof(*block) },
		{ .iov_base = (void *)(uintptr_t)payload, .iov_len = block->bytes / 2 }
	};

	if (!block->bytes)
		part[0].iov_len = sizeof(*block) / 2;
	if (pwritev(journal->fd, part, 2, (off_t)journal->bytes) >= 0)
		ts_crash_point("R1");
}

int ts_journal_append(struct ts_journal *journal, struct ts_block *block, const void *payload,
		      struct ts_error *err)
{
	static char zeros[8];
	struct iovec part[3] = {
		{ .iov_base = block, .iov_len = sizeof(*block) },
		{ .iov_base = (void *)(uintptr_t)payload, .iov_len = block->bytes },
		{ .iov_base = zeros, .iov_len = (size_t)(padded(block->bytes) - block->bytes) }
	};

	if (block->bytes > TS_JOURNAL_BLOCK_BYTES)
		return ts_error_set(err, TS_EINVAL, "a journal block is larger than 64 MiB");
	block->magic = TS_JOURNAL_MAGIC;
	block->checksum = checksum(block, payload);
	if (TS_UNLIKELY(ts_crash_hook != NULL))
		write_half(journal, block, payload);
	return write_buffers(journal, part, part[2].iov_len ? 3 : block->bytes ? 2 : 1, err);
}

int ts_journal_rewrite_first(struct ts_journal *journal, struct ts_block *block,
			     const void *payload, struct ts_error *err)
{
	uint64_t bytes = journal->bytes;
	int result;

	journal->bytes = 0;
	result = ts_journal_append(journal, block, payload, err);
	journal->bytes = bytes;
	return result;
}

int ts_journal_copy(struct ts_journal *journal, int from_fd, uint64_t offset, uint64_t bytes,
		    struct ts_error *err)
{
	TS_AUTO_FREE char *buffer = malloc(COPY_BYTES);
	uint64_t before = journal->bytes;

	if (!buffer)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	while (bytes) {
		struct iovec part = { .iov_base = buffer };
		ssize_t got =
			pread(from_fd, buffer, (size_t)TS_MIN(bytes, COPY_BYTES), (off_t)offset);
		int result;

		if (got < 0 && errno == EINTR)
			continue;
		part.iov_len = (size_t)got;
		result = got > 0 ? write_buffers(journal, &part, 1, err)
				 : ts_error_errno(err, got ? errno : EIO,
						  "cannot read the journal that precedes '%s'",
						  journal->path);
		if (result) {
			/* The copied part may end inside a block. */
			journal->bytes = before;
			return result;
		}
		offset += (uint64_t)got;
		bytes -= (uint64_t)got;
	}
	return TS_OK;
}

/* ---- reading ---- */

/* Reads up to `bytes` bytes at the offset; fewer at the end of the file. -1 with errno. */
static ssize_t read_at(int fd, struct iovec *part, int count, uint64_t offset)
{
	ssize_t got;

	do {
		got = preadv(fd, part, count, (off_t)offset);
	} while (got < 0 && errno == EINTR);
	return got;
}

static int read_error(struct ts_error *err)
{
	return ts_error_errno(err, errno, "cannot read the journal");
}

static int no_memory(struct ts_error *err)
{
	return ts_error_set(err, TS_ENOMEM, "no memory for a journal block");
}

/*
 * Reads the rest of a payload of which `have` bytes are already read. TS_ENOTFOUND: the file ends
 * too early.
 */
static int read_rest(int fd, uint64_t offset, uint32_t bytes, size_t have, struct ts_text *buffer,
		     struct ts_error *err)
{
	struct stat status;

	if (fstat(fd, &status))
		return read_error(err);
	if ((uint64_t)status.st_size < offset + bytes)
		return TS_ENOTFOUND;
	if (!ts_text_reserve(buffer, bytes))
		return no_memory(err);
	while (have < bytes) {
		struct iovec part = { .iov_base = buffer->data + have, .iov_len = bytes - have };
		ssize_t got = read_at(fd, &part, 1, offset + have);

		if (got < 0)
			return read_error(err);
		if (got == 0)
			return TS_ENOTFOUND;
		have += (size_t)got;
	}
	return TS_OK;
}

/* What is at an offset. */
enum found { FOUND_BLOCK, FOUND_END, FOUND_NONE };

/* Reads the block at the offset if there is one. Fails only on a read error or without memory. */
static int read_block(int fd, uint64_t offset, struct ts_block *block, struct ts_text *buffer,
		      enum found *ret_found, struct ts_error *err)
{
	struct iovec part[2] = { { .iov_base = block, .iov_len = sizeof(*block) } };
	size_t have;
	ssize_t got;
	int result = TS_OK;

	ts_text_clear(buffer);
	if (!ts_text_reserve(buffer, SMALL_BYTES))
		return no_memory(err);
	part[1] = (struct iovec){ .iov_base = buffer->data, .iov_len = SMALL_BYTES };
	got = read_at(fd, part, 2, offset);
	if (got < 0)
		return read_error(err);
	*ret_found = got == 0 ? FOUND_END : FOUND_NONE;
	if ((size_t)got < sizeof(*block) || block->magic != TS_JOURNAL_MAGIC ||
	    block->bytes > TS_JOURNAL_BLOCK_BYTES)
		return TS_OK;
	have = TS_MIN((size_t)got - sizeof(*block), block->bytes);
	if (have < block->bytes)
		result = read_rest(fd, offset + sizeof(*block), block->bytes, have, buffer, err);
	if (result)
		return result == TS_ENOTFOUND ? TS_OK : result;
	if (block->checksum != checksum(block, buffer->data))
		return TS_OK;
	buffer->length = block->bytes;
	*ret_found = FOUND_BLOCK;
	return TS_OK;
}

/* Searches for a block magic at a multiple of 8 from *offset on, and moves *offset to it. */
static bool find_magic(int fd, uint64_t *offset)
{
	uint64_t words[512] = { 0 };

	for (;;) {
		struct iovec part = { .iov_base = words, .iov_len = sizeof(words) };
		ssize_t got = read_at(fd, &part, 1, *offset);
		size_t count = got > 0 ? (size_t)got / 8 : 0;

		for (size_t i = 0; i < count; i++, *offset += 8)
			if ((uint32_t)words[i] == TS_JOURNAL_MAGIC)
				return true;
		if (count == 0)
			return false;
	}
}

/*
 * Looks for a complete block after damage. A hostile file could have a header that claims a large
 * payload at every eighth byte, so the number of bytes read speculatively is limited.
 */
static int search_on(int fd, uint64_t *offset, struct ts_block *block, struct ts_text *buffer,
		     struct ts_error *err)
{
	uint64_t at = *offset + 8, doubt;
	struct stat status;

	if (fstat(fd, &status))
		return read_error(err);
	doubt = 4 * (uint64_t)status.st_size + SMALL_BYTES;
	while (find_magic(fd, &at)) {
		enum found found = FOUND_END;
		int result = read_block(fd, at, block, buffer, &found, err);

		if (result)
			return result;
		if (found == FOUND_BLOCK) {
			ts_error_set(err, TS_EFORMAT,
				     "the journal is damaged from byte %llu to byte %llu",
				     (unsigned long long)*offset, (unsigned long long)at);
			*offset = at;
			return TS_EFORMAT;
		}
		/* Bytes read: a window and, for a plausible header, its payload. */
		doubt -= TS_MIN(doubt, (uint64_t)SMALL_BYTES + block->bytes);
		if (doubt == 0)
			break;
		at += 8;
	}
	return TS_ENOTFOUND;
}

bool ts_journal_take_open(const void *payload, size_t bytes, struct ts_block_open *ret_open)
{
	struct ts_block_open open = { 0 };

	if (bytes < TS_BLOCK_OPEN_LEAST)
		return false;
	memcpy(&open, payload, TS_MIN(bytes, sizeof(open)));
	*ret_open = open;
	return true;
}

bool ts_journal_origin(const char *trace, struct ts_block_open *ret_open)
{
	TS_SCOPED(ts_text) path = { 0 };
	TS_SCOPED(ts_text) payload = { 0 };
	TS_AUTO_FD int fd = -1;
	struct ts_block block;
	uint64_t offset = 0;

	ts_text_printf(&path, "%s.journal", trace);
	if (!ts_text_status(&path))
		fd = open(ts_text_cstr(&path), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd >= 0 && !ts_journal_read(fd, &offset, &block, &payload, NULL) &&
	       block.type == TS_BLOCK_OPEN &&
	       ts_journal_take_open(payload.data, block.bytes, ret_open);
}

int ts_journal_read(int fd, uint64_t *offset, struct ts_block *block, struct ts_text *buffer,
		    struct ts_error *err)
{
	enum found found = FOUND_END;
	int result = read_block(fd, *offset, block, buffer, &found, err);

	if (result)
		return result;
	if (found == FOUND_BLOCK) {
		*offset += sizeof(*block) + padded(block->bytes);
		return TS_OK;
	}
	if (found == FOUND_NONE)
		result = search_on(fd, offset, block, buffer, err);
	else
		result = TS_ENOTFOUND;
	if (result == TS_ENOTFOUND)
		ts_error_set(err, TS_ENOTFOUND, "the journal ends at byte %llu",
			     (unsigned long long)*offset);
	return result;
}
