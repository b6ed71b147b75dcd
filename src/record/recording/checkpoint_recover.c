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
#include "base/output.h"
#include "record/recording/checkpoint_internal.h"
#include "record/recording/salvage.h"
#include "sbt/file.h"
#include "sbt/recover.h"
#include "trace/trace_totals.h"

#define COPY_BYTES ((size_t)1 << 20)

struct recovery {
	const char *from, *to;
	int journal_fd;
	uint64_t journal_end; /* end of the last complete block */
	uint64_t behind_open; /* start of the second block */
	uint64_t state_end;   /* where its state should end; 0: it has none */
	struct ts_block_open open;
	bool is_damaged; /* the journal */
	struct ts_decoder_faults faults;
	struct ts_recording_recovery result;
	struct ts_error *err;
};

/* ---- checking ---- */

/* Fails if a recorder is writing the trace. */
static int check_lock(const struct recovery *recovery)
{
	TS_AUTO_FD int fd = ts_io_open(recovery->from, O_RDONLY, 0);
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

/* ---- the journal ---- */

/* Fails unless the journal is a file of the trace's owner: anybody may have put it there. */
static int check_file(const struct recovery *recovery, const char *path)
{
	struct stat journal, trace;
	uid_t owner = stat(recovery->from, &trace) ? geteuid() : trace.st_uid;

	if (fstat(recovery->journal_fd, &journal))
		return ts_error_errno(recovery->err, errno, "cannot read journal '%s'", path);
	if (!S_ISREG(journal.st_mode))
		return ts_error_set(recovery->err, TS_EINVAL, "journal '%s' is not a regular file",
				    path);
	if (journal.st_uid != owner)
		return ts_error_set(recovery->err, TS_EINVAL,
				    "journal '%s' belongs to user %u, and the trace to user %u",
				    path, (unsigned int)journal.st_uid, (unsigned int)owner);
	return TS_OK;
}

/* Reads the first block. TS_EFORMAT: it is damaged. */
static int read_origin(struct recovery *recovery, const char *path)
{
	TS_SCOPED(ts_text) payload = { 0 };
	struct ts_block block;
	int result = ts_journal_read(recovery->journal_fd, &recovery->behind_open, &block, &payload,
				     recovery->err);

	if (result && result != TS_EFORMAT && result != TS_ENOTFOUND)
		return ts_error_prefix(recovery->err, "journal '%s'", path);
	if (result || block.type != TS_BLOCK_OPEN ||
	    !ts_journal_take_open(payload.data, block.bytes, &recovery->open))
		return ts_error_set(recovery->err, TS_EFORMAT,
				    "the first block of journal '%s' is damaged", path);
	recovery->state_end = block.to;
	return TS_OK;
}

/* Fails if the trace says that it is another one. It may have no header yet, or a damaged one. */
static int check_identity(const struct recovery *recovery, const char *path)
{
	struct sbt_file file;
	bool is_other = !sbt_file_open(&file, recovery->from, NULL) &&
			!sbt_file_check(&file, NULL) &&
			memcmp(file.header.trace_id, recovery->open.trace_id,
			       sizeof(file.header.trace_id)) != 0;

	sbt_file_close(&file);
	return is_other ? ts_error_set(recovery->err, TS_EINVAL,
				       "journal '%s' belongs to another trace", path)
			: TS_OK;
}

static int open_journal(struct recovery *recovery)
{
	TS_AUTO_FREE char *path = ts_recording_beside(recovery->from, ".journal");
	int result;

	if (!path)
		return ts_error_set(recovery->err, TS_ENOMEM, "no memory");
	recovery->journal_fd = ts_io_open(path, O_RDONLY | O_NOFOLLOW, 0);
	if (recovery->journal_fd < 0 && errno == ELOOP)
		return ts_error_set(recovery->err, TS_EINVAL, "journal '%s' is a symbolic link",
				    path);
	if (recovery->journal_fd < 0)
		return ts_error_errno(recovery->err, errno, "cannot open journal '%s'", path);
	result = check_file(recovery, path);
	if (!result)
		result = read_origin(recovery, path);
	if (!result)
		result = check_identity(recovery, path);
	return result;
}

int ts_recording_check_journal(const char *trace, struct ts_error *err)
{
	struct recovery recovery = { .from = trace, .journal_fd = -1, .err = err };
	int result = open_journal(&recovery);

	if (recovery.journal_fd >= 0)
		close(recovery.journal_fd);
	return result;
}

static int rotated_to(const struct recovery *recovery, const struct ts_text *payload)
{
	return ts_error_set(
		recovery->err, TS_EINVAL,
		"trace '%s' is finished; the recording continues in '%.*s': recover that file",
		recovery->from, (int)TS_MIN(payload->length, 256), payload->data);
}

/* Walks the journal: counts blocks, finds the last complete one. */
static int read_journal(struct recovery *recovery)
{
	TS_SCOPED(ts_text) payload = { 0 };
	struct stat status;
	int result;

	recovery->journal_end = recovery->behind_open;
	recovery->result.journal_blocks = 1;
	for (;;) {
		uint64_t offset = recovery->journal_end;
		struct ts_block block;

		result = ts_journal_read(recovery->journal_fd, &offset, &block, &payload,
					 recovery->err);
		if (result && result != TS_EFORMAT)
			break;
		recovery->journal_end = offset;
		recovery->is_damaged |= result == TS_EFORMAT;
		if (result)
			continue;
		recovery->result.journal_blocks++;
		if (block.type == TS_BLOCK_ROTATE)
			return rotated_to(recovery, &payload);
	}
	if (result && result != TS_ENOTFOUND)
		return result;
	if (fstat(recovery->journal_fd, &status) == 0 &&
	    (uint64_t)status.st_size > recovery->journal_end)
		recovery->result.torn_bytes = (uint64_t)status.st_size - recovery->journal_end;
	recovery->faults.is_torn = recovery->result.torn_bytes != 0;
	if (recovery->journal_end < recovery->state_end)
		recovery->faults.lost_state_bytes = recovery->state_end - recovery->journal_end;
	recovery->is_damaged |= recovery->faults.lost_state_bytes != 0;
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
	TS_AUTO_FD int to = -1;
	int result = ts_output_open(recovery->to, TS_OUTPUT_EMPTY, &to, recovery->err);

	if (result || !recovery->open.trace_bytes)
		return result;
	from = ts_io_open(recovery->from, O_RDONLY, 0);
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
 * copies the complete chunks of its committed part, and the journal continues after them.
 */
static int salvage_trace(struct recovery *recovery)
{
	const struct sbt_recover_options options = {
		.bytes = recovery->open.trace_bytes,
		.next_string = recovery->open.next_ids[TS_TABLE_STRING],
	};
	struct ts_recovery salvaged;
	uint64_t end = 64;
	struct ts_reader *reader;
	int result = sbt_recover(recovery->from, recovery->to, &options, &salvaged, recovery->err);

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
	/* A damaged header is replaced. */
	memcpy(recovery->open.trace_id, ts_reader_state(reader)->trace_id,
	       sizeof(recovery->open.trace_id));
	ts_reader_close(reader);
	recovery->faults.lost_rows = true;
	recovery->open.trace_bytes = end;
	recovery->result.damaged_chunks = salvaged.damaged_chunks;
	recovery->result.damaged_bytes = salvaged.damaged_bytes;
	return TS_OK;
}

/* True if the chunks up to trace_bytes are intact and contiguous, as a writer requires. */
static bool can_continue(const struct recovery *recovery)
{
	struct ts_writer_options options = { .size = sizeof(options), .threads = -1 };
	struct ts_writer *writer;
	struct ts_writer_ids ids;

	memcpy(ids.next, recovery->open.next_ids, sizeof(ids.next));
	if (!recovery->open.trace_bytes)
		return true;
	if (sbt_check_chunks(recovery->to, recovery->open.trace_bytes, NULL) ||
	    ts_writer_resume(&writer, recovery->to, recovery->open.trace_bytes, &ids, &options,
			     NULL))
		return false;
	ts_writer_close(writer);
	return true;
}

/* The copy of a journal; where that is damaged, live areas fill in what they still have. */
struct journal_copy {
	const struct recovery *recovery;
	struct ts_journal *journal;
	bool is_damaged;           /* before this block */
	struct ts_positions known; /* from the blocks copied */
	struct ts_map filled_in;   /* ids of areas */
};

static int append_known(void *context, struct ts_block *block, const void *payload,
			struct ts_error *err)
{
	struct journal_copy *copy = context;
	int result = ts_journal_append(copy->journal, block, payload, err);

	if (!result && ts_positions_block(&copy->known, block, payload))
		result = ts_error_set(err, TS_ENOMEM, "no memory");
	return result;
}

/* Nobody can tell which blocks were in the damaged part. A live area has all that is needed. */
static int fill_in(struct journal_copy *copy, const struct ts_block *block)
{
	const struct ts_area_positions *area = ts_positions_find(&copy->known, block->area);
	struct ts_block_sink sink = { append_known, copy };
	bool is_new = false;

	if (!copy->is_damaged || !block->area || block->type == TS_BLOCK_AREA)
		return TS_OK;
	if (!ts_map_insert(&copy->filled_in, block->area, &is_new))
		return ts_error_set(copy->recovery->err, TS_ENOMEM, "no memory");
	return is_new ? ts_salvage_preamble(block->area, area && area->announced,
					    area ? area->dictionary : 0, &sink, copy->recovery->err)
		      : TS_OK;
}

static bool is_filled_in(const struct journal_copy *copy, const struct ts_block *block)
{
	const struct ts_area_positions *area = ts_positions_find(&copy->known, block->area);

	return copy->is_damaged && area && block->type == TS_BLOCK_DICTIONARY &&
	       block->to <= area->dictionary;
}

static int copy_blocks(struct journal_copy *copy)
{
	const struct recovery *recovery = copy->recovery;
	TS_SCOPED(ts_text) payload = { 0 };
	uint64_t offset = recovery->behind_open;
	int result = TS_OK;

	while (!result && offset < recovery->journal_end) {
		uint64_t from = offset;
		struct ts_block block;

		result = ts_journal_read(recovery->journal_fd, &offset, &block, &payload,
					 recovery->err);
		if (result == TS_EFORMAT) {
			/* The decoder counts these bytes. */
			copy->is_damaged = true;
			result = ts_journal_copy(copy->journal, recovery->journal_fd, from,
						 offset - from, recovery->err);
			continue;
		}
		if (!result)
			result = fill_in(copy, &block);
		if (!result && !is_filled_in(copy, &block))
			result = append_known(copy, &block, payload.data, recovery->err);
	}
	return result;
}

static int copy_journal(struct recovery *recovery)
{
	TS_AUTO_FREE char *path = ts_recording_beside(recovery->to, ".journal");
	struct ts_block block = { .type = TS_BLOCK_OPEN, .bytes = sizeof(recovery->open) };
	TS_AUTO(ts_journal) journal = NULL;
	struct journal_copy copy = { .recovery = recovery };
	int result;

	if (!path)
		return ts_error_set(recovery->err, TS_ENOMEM, "no memory");
	result = ts_journal_create(&journal, path, recovery->err);
	if (!result)
		result = ts_journal_append(journal, &block, &recovery->open, recovery->err);
	copy.journal = journal;
	if (!result)
		result = copy_blocks(&copy);
	ts_positions_release(&copy.known);
	ts_map_release(&copy.filled_in);
	return result;
}

/* Finds the ids that the copy of the trace uses: the journal may have lost how far they went. */
static int find_ids(struct recovery *recovery)
{
	static const enum ts_table_id tables[] = { TS_TABLE_PROCESS, TS_TABLE_THREAD,
						   TS_TABLE_DEVICE, TS_TABLE_STREAM,
						   TS_TABLE_OBJECT };
	TS_AUTO(ts_reader) reader = NULL;
	int result;

	if (!recovery->is_damaged || !recovery->open.trace_bytes)
		return TS_OK;
	result = ts_reader_open(&reader, recovery->to, recovery->err);
	for (size_t i = 0; i < TS_ARRAY_SIZE(tables) && !result; i++) {
		int64_t *used = &recovery->faults.used_ids[tables[i]], id;
		size_t cursor = 0;

		while (ts_reader_entity_next(reader, tables[i], &cursor, &id))
			*used = TS_MAX(*used, TS_MIN(id, INT64_MAX / 4));
	}
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
	result = find_ids(recovery);
	return result ? result : copy_journal(recovery);
}

/* ---- finishing ---- */

static int finish(struct recovery *recovery,
		  int (*drain)(void *context, struct ts_recording *recording, struct ts_error *err),
		  void *context)
{
	TS_AUTO(ts_spools) spools = NULL;
	struct ts_recording_options options = { .flags = TS_RECORDING_RESUME,
						.faults = &recovery->faults };
	TS_AUTO(ts_recording) recording = NULL;
	struct ts_recording_status status;
	int result = ts_salvage_spools(&spools, recovery->err);

	options.spools = spools;
	if (!result)
		result = ts_recording_open_any(&recording, recovery->to, &options, true,
					       recovery->err);
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
	if (!result)
		result = ts_recording_check_names(to, recovery.err);
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
