/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates a finished trace from what a dead recorder left. Copies trace and journal, then resumes
 * and finishes the copy: the original is not changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tracesmith/reader.h>

#include "base/io.h"
#include "record/recording/checkpoint_internal.h"

#define COPY_BYTES ((size_t)1 << 20)

struct recovery {
	const char *from, *to;
	int journal_fd;
	uint64_t journal_end; /* end of the last complete block */
	uint64_t behind_open; /* start of the second block */
	struct ts_block_open open;
	struct ts_recording_recovery result;
	struct ts_error *err;
};

/* ---- checking ---- */

/* Fails if a recorder is writing the trace. */
static int check_lock(const struct recovery *recovery)
{
	TS_AUTO_FD int fd = open(recovery->from, O_RDONLY | O_CLOEXEC);
	struct stat from, to;

	if (fd < 0)
		return errno == ENOENT ? TS_OK
				       : ts_error_errno(recovery->err, errno,
							"cannot open trace '%s'", recovery->from);
	if (flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK)
		return ts_error_set(recovery->err, TS_EIO,
				    "trace '%s' is still being written (stop its recorder first)",
				    recovery->from);
	if (fstat(fd, &from) == 0 && stat(recovery->to, &to) == 0 && from.st_dev == to.st_dev &&
	    from.st_ino == to.st_ino)
		return ts_error_set(recovery->err, TS_EINVAL,
				    "cannot recover '%s' into itself: name another output file",
				    recovery->to);
	return TS_OK;
}

static int open_journal(struct recovery *recovery)
{
	TS_AUTO_FREE char *path = ts_recording_beside(recovery->from, ".journal");

	if (!path)
		return ts_error_set(recovery->err, TS_ENOMEM, "no memory");
	recovery->journal_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (recovery->journal_fd < 0)
		return ts_error_errno(recovery->err, errno, "cannot open journal '%s'", path);
	return TS_OK;
}

static int rotated_to(const struct recovery *recovery, const struct ts_text *payload)
{
	return ts_error_set(
		recovery->err, TS_EINVAL,
		"trace '%s' is finished; the recording continues in '%.*s': recover that file",
		recovery->from, (int)TS_MIN(payload->length, 256), payload->data);
}

/* Walks the journal: reads its first block, counts blocks, finds the last complete one. */
static int read_journal(struct recovery *recovery)
{
	TS_SCOPED(ts_text) payload = { 0 };
	struct stat status;
	int result;

	for (;;) {
		uint64_t offset = recovery->journal_end;
		struct ts_block block;

		result = ts_journal_read(recovery->journal_fd, &offset, &block, &payload,
					 recovery->err);
		if (result && result != TS_EFORMAT)
			break;
		recovery->journal_end = offset;
		if (result)
			continue;
		if (recovery->result.journal_blocks++ == 0) {
			if (block.type != TS_BLOCK_OPEN || block.bytes < sizeof(recovery->open))
				break;
			memcpy(&recovery->open, payload.data, sizeof(recovery->open));
			recovery->behind_open = offset;
		}
		if (block.type == TS_BLOCK_ROTATE)
			return rotated_to(recovery, &payload);
	}
	if (result && result != TS_ENOTFOUND)
		return result;
	if (!recovery->behind_open)
		return ts_error_set(recovery->err, TS_EFORMAT,
				    "the journal of trace '%s' is not a journal", recovery->from);
	if (fstat(recovery->journal_fd, &status) == 0 &&
	    (uint64_t)status.st_size > recovery->journal_end)
		recovery->result.torn_bytes = (uint64_t)status.st_size - recovery->journal_end;
	return TS_OK;
}

/* ---- copying ---- */

static int copy_bytes(int from, int to, uint64_t bytes, struct ts_error *err)
{
	TS_AUTO_FREE char *buffer = malloc(COPY_BYTES);

	if (!buffer)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	while (bytes) {
		ssize_t got = ts_read_some(from, buffer, (size_t)TS_MIN(bytes, COPY_BYTES));
		int result;

		if (got < 0)
			return ts_error_errno(err, errno, "cannot read");
		if (got == 0)
			return ts_error_set(err, TS_EFORMAT, "the file is too short");
		result = ts_write_all(to, buffer, (size_t)got, err);
		if (result)
			return result;
		bytes -= (uint64_t)got;
	}
	return TS_OK;
}

/* Copies the committed part of the trace unchanged. */
static int copy_trace(struct recovery *recovery)
{
	TS_AUTO_FD int from = -1;
	TS_AUTO_FD int to = open(recovery->to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int result;

	if (to < 0)
		return ts_error_errno(recovery->err, errno, "cannot create trace '%s'",
				      recovery->to);
	if (!recovery->open.trace_bytes)
		return TS_OK;
	from = open(recovery->from, O_RDONLY | O_CLOEXEC);
	if (from < 0)
		return ts_error_errno(recovery->err, errno, "cannot open trace '%s'",
				      recovery->from);
	result = copy_bytes(from, to, recovery->open.trace_bytes, recovery->err);
	if (result)
		ts_error_prefix(recovery->err, "trace '%s' into '%s'", recovery->from,
				recovery->to);
	return result;
}

/*
 * For a trace that is damaged, or shorter than the journal says (no sync before a power cut):
 * copies its complete chunks, and the journal continues after them.
 */
static int salvage_trace(struct recovery *recovery)
{
	uint64_t end = 64;
	struct ts_reader *reader;
	int result = ts_recover(recovery->from, recovery->to, NULL, NULL, NULL, recovery->err);

	if (!result)
		result = ts_reader_open(&reader, recovery->to, recovery->err);
	if (result)
		return result;
	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(reader, i);
		uint64_t *next =
			&recovery->open
				 .next_ids[chunk->table % TS_ARRAY_SIZE(recovery->open.next_ids)];

		end = chunk->offset + chunk->bytes;
		*next = TS_MAX(*next, chunk->first_id + chunk->rows);
	}
	ts_reader_close(reader);
	recovery->open.trace_bytes = end;
	return TS_OK;
}

/* True if the chunks up to trace_bytes are complete and contiguous, as a writer requires. */
static bool can_continue(const struct recovery *recovery)
{
	struct ts_writer_options options = { .size = sizeof(options), .threads = -1 };
	struct ts_writer *writer;
	struct ts_writer_ids ids;

	memcpy(ids.next, recovery->open.next_ids, sizeof(ids.next));
	if (!recovery->open.trace_bytes)
		return true;
	if (ts_writer_resume(&writer, recovery->to, recovery->open.trace_bytes, &ids, &options,
			     NULL))
		return false;
	ts_writer_close(writer);
	return true;
}

static int copy_journal(struct recovery *recovery)
{
	TS_AUTO_FREE char *path = ts_recording_beside(recovery->to, ".journal");
	struct ts_block block = { .type = TS_BLOCK_OPEN, .bytes = sizeof(recovery->open) };
	TS_AUTO(ts_journal) journal = NULL;
	int result;

	if (!path)
		return ts_error_set(recovery->err, TS_ENOMEM, "no memory");
	result = ts_journal_create(&journal, path, recovery->err);
	if (!result)
		result = ts_journal_append(journal, &block, &recovery->open, recovery->err);
	if (!result)
		result = ts_journal_copy(journal, recovery->journal_fd, recovery->behind_open,
					 recovery->journal_end - recovery->behind_open,
					 recovery->err);
	return result;
}

static int copy_all(struct recovery *recovery)
{
	int result = copy_trace(recovery);

	if (result && result != TS_EFORMAT && result != TS_ENOTFOUND)
		return result;
	if (result || !can_continue(recovery)) {
		result = salvage_trace(recovery);
		if (result)
			return result;
	}
	return copy_journal(recovery);
}

/* ---- finishing ---- */

static int finish(struct recovery *recovery,
		  int (*drain)(void *context, struct ts_recording *recording, struct ts_error *err),
		  void *context)
{
	struct ts_recording_options options = { .flags = TS_RECORDING_RESUME };
	TS_AUTO(ts_recording) recording = NULL;
	struct ts_recording_status status;
	int result = ts_recording_open_any(&recording, recovery->to, &options, true, recovery->err);

	if (!result && drain)
		result = drain(context, recording, recovery->err);
	if (!result)
		result = ts_recording_finish(recording, recovery->err);
	if (result)
		return result;
	ts_recording_status(recording, &status);
	recovery->result.events = status.events;
	recovery->result.samples = status.samples;
	recovery->result.lost = status.lost;
	return TS_OK;
}

static void remove_files(const char *path)
{
	static const char *const endings[] = { "", ".journal", ".journal.new", ".reserve" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(endings); i++) {
		TS_AUTO_FREE char *file = ts_recording_beside(path, endings[i]);

		if (file)
			unlink(file);
	}
}

int ts_recording_recover(const char *from, const char *to,
			 int (*drain)(void *context, struct ts_recording *recording,
				      struct ts_error *err),
			 void *context, struct ts_recording_recovery *ret_recovery,
			 struct ts_error *err)
{
	struct ts_error unused_err = { 0 };
	struct recovery recovery = {
		.from = from, .to = to, .journal_fd = -1, .err = err ? err : &unused_err
	};
	int result = check_lock(&recovery);

	if (!result)
		result = open_journal(&recovery);
	if (!result)
		result = read_journal(&recovery);
	if (!result) {
		result = copy_all(&recovery);
		if (!result)
			result = finish(&recovery, drain, context);
		if (result)
			remove_files(to);
	}
	if (recovery.journal_fd >= 0)
		close(recovery.journal_fd);
	if (!result && ret_recovery)
		*ret_recovery = recovery.result;
	return result;
}
