/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoint, rotation and finish, each with one instant at which it is committed, and what to do
 * when the disk is full (docs/live.md, sections 6, 8.2 and 8.3). Runs on the decoder thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/io.h"
#include "base/output.h"
#include "base/pool.h"
#include "base/text.h"
#include "record/recording/checkpoint_internal.h"

#define STRING_MEMORY ((size_t)64 << 20)
#define WRITER_THREADS 3

/* ---- the reserve ---- */

uint64_t ts_recording_free_bytes(const struct ts_recording *recording)
{
	struct statvfs status;

	if (fstatvfs(recording->lock_fd, &status))
		return UINT64_MAX;
	return (uint64_t)status.f_bavail * status.f_frsize;
}

static void set_reserve(struct ts_recording *recording, uint64_t bytes)
{
	pthread_mutex_lock(&recording->lock);
	recording->reserve_bytes = bytes;
	pthread_mutex_unlock(&recording->lock);
}

/* Reserves space for the last checkpoint: its rows are a fraction of the journal's bytes. */
void ts_recording_make_reserve(struct ts_recording *recording)
{
	TS_AUTO_FREE char *path = ts_recording_beside(recording->path, ".reserve");
	uint64_t bytes = recording->limit / 4 + 65536;
	TS_AUTO_FD int fd = -1;

	if (recording->reserve_bytes || !path || ts_recording_free_bytes(recording) < 4 * bytes ||
	    ts_output_create(path, 0, &fd, NULL))
		return;
	if (fallocate(fd, 0, 0, (off_t)bytes))
		unlink(path); /* not supported, or no space: continue without a reserve */
	else
		set_reserve(recording, bytes);
}

void ts_recording_drop_reserve(struct ts_recording *recording)
{
	TS_AUTO_FREE char *path = ts_recording_beside(recording->path, ".reserve");

	if (path && !ts_output_check(path, NULL))
		unlink(path);
	set_reserve(recording, 0);
}

/* ---- the trace ---- */

/* Writes to the current trace, whose source has the name of the file as it is when complete. */
static void set_writer(struct ts_recording *recording, bool fresh)
{
	const char *slash = strrchr(recording->path, '/');
	const char *name = slash ? slash + 1 : recording->path;
	size_t length = strlen(name), tail = strlen(".part");
	TS_SCOPED(ts_text) text = { 0 };

	if (length > tail && !strcmp(name + length - tail, ".part"))
		length -= tail;
	ts_text_append(&text, name, length);
	ts_decoder_set_writer(recording->decoder, recording->writer, fresh, ts_text_cstr(&text));
}

static int open_writer(const struct ts_recording *recording, const char *path,
		       const struct ts_block_open *open, struct ts_writer **ret_writer,
		       struct ts_error *err)
{
	unsigned int sync = recording->options.flags & TS_RECORDING_SYNC ? TS_WRITER_SYNC : 0;
	int spare = (int)ts_pool_processors() - 1;
	struct ts_writer_options options = {
		.size = sizeof(options),
		.threads = spare > 0 ? TS_MIN(spare, WRITER_THREADS) : -1,
		.string_memory = STRING_MEMORY,
		.flags = TS_WRITER_LOCKED | sync,
		.trace_id = recording->recovering && open->trace_bytes ? NULL : open->trace_id,
	};
	struct ts_writer_ids ids;

	static_assert(sizeof(ids.next) == sizeof(open->next_ids), "as many as OPEN has");
	memcpy(ids.next, open->next_ids, sizeof(ids.next));
	if (open->trace_bytes)
		return ts_writer_resume(ret_writer, path, open->trace_bytes, &ids, &options, err);
	return ts_writer_open(ret_writer, path, &options, err);
}

int ts_recording_reload(struct ts_recording *recording, struct ts_error *err)
{
	struct ts_decoder_options options = { .window_closed = recording->options.window_closed,
					      .context = recording->options.context,
					      .faults = recording->options.faults,
					      .spools = recording->options.spools };
	int result;

	ts_spools_rewind(recording->options.spools);
	ts_decoder_free(TS_STEAL(recording->decoder));
	ts_writer_close(TS_STEAL(recording->writer));
	result = open_writer(recording, recording->path, &recording->open, &recording->writer, err);
	if (!result)
		result = ts_decoder_new(&recording->decoder, &options, err);
	if (result)
		return result;
	set_writer(recording, false);
	ts_decoder_hold(recording->decoder, recording->held);
	pthread_mutex_lock(&recording->lock);
	recording->decoded = 0;
	recording->queued_taken = 0;
	pthread_mutex_unlock(&recording->lock);
	return TS_OK;
}

/* ---- checkpoint ---- */

static int put_block(void *context, struct ts_block *block, const void *payload,
		     struct ts_error *err)
{
	int result = ts_journal_append(context, block, payload, err);

	ts_crash_point("R5");
	return result;
}

/* Writes OPEN and state into a journal under a temporary name. */
static int begin_journal(struct ts_recording *recording, const char *path,
			 const struct ts_block_open *open, struct ts_journal **ret_journal,
			 struct ts_error *err)
{
	struct ts_block block = { .type = TS_BLOCK_OPEN, .bytes = sizeof(*open) };
	struct ts_block_sink sink = { .append = put_block };
	struct ts_journal *journal;
	int result = ts_journal_create(&journal, path, err);

	if (result)
		return result;
	sink.context = journal;
	result = put_block(journal, &block, open, err);
	if (!result)
		result = ts_decoder_save_state(recording->decoder, &sink, err);
	/* So that a journal whose state was cut off later is not taken for one without. */
	block.to = ts_journal_bytes(journal);
	if (!result)
		result = ts_journal_rewrite_first(journal, &block, open, err);
	if (result) {
		ts_journal_close(journal);
		unlink(path);
	} else {
		*ret_journal = journal;
	}
	return result;
}

static int sync_journal(struct ts_recording *recording, struct ts_journal *journal,
			struct ts_error *err)
{
	return recording->options.flags & TS_RECORDING_SYNC ? ts_journal_sync(journal, err) : TS_OK;
}

/* Makes a rename durable. Ignores failure: the old name works as well. */
static void sync_folder(const struct ts_recording *recording, const char *path)
{
	const char *slash = strrchr(path, '/');
	TS_AUTO_FREE char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	TS_AUTO_FD int fd = -1;

	if (!folder || !(recording->options.flags & TS_RECORDING_SYNC))
		return;
	fd = ts_io_open(folder, O_RDONLY | O_DIRECTORY, 0);
	if (fd >= 0 && fsync(fd))
		return;
}

static void free_queued(struct ts_recording *recording)
{
	if (!recording->queued_taken)
		return;
	for (size_t i = 0; i < recording->queued_taken; i++)
		free(recording->queued[i].payload);
	recording->queued_count -= recording->queued_taken;
	memmove(recording->queued, recording->queued + recording->queued_taken,
		recording->queued_count * sizeof(*recording->queued));
	recording->queued_taken = 0;
}

/* Copies the blocks that are not yet decoded and replaces the journal by the new one. Lock held. */
static int commit_journal(struct ts_recording *recording, struct ts_journal *journal,
			  const struct ts_block_open *open, uint64_t copied, struct ts_error *err)
{
	struct ts_journal *old = recording->journal;
	int result = ts_journal_copy(journal, ts_journal_fd(old), copied,
				     ts_journal_bytes(old) - copied, err);

	if (!result)
		result = sync_journal(recording, journal, err);
	if (!result)
		result = ts_journal_rename(journal, recording->journal_path, err);
	if (result)
		return result;
	ts_crash_point("R6"); /* and R11 */
	recording->journal = journal;
	recording->open = *open;
	recording->trace_bytes = open->trace_bytes;
	recording->retry_pause = 0;
	free_queued(recording);
	ts_journal_close(old);
	return TS_OK;
}

/* Restarts the journal after the last decoded block; all rows up to there are in the trace. */
static int turn_journal(struct ts_recording *recording, struct ts_error *err)
{
	TS_AUTO_FREE char *temporary = ts_recording_beside(recording->journal_path, ".new");
	struct ts_block_open open = recording->open;
	struct ts_writer_ids ids;
	struct ts_journal *journal;
	uint64_t taken = recording->decoded, preamble, end;
	bool is_all;
	int result;

	if (!temporary)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	ts_writer_ids(recording->writer, &ids);
	memcpy(open.next_ids, ids.next, sizeof(open.next_ids));
	open.generation++;
	open.trace_bytes = ts_writer_chunk_bytes(recording->writer);
	result = begin_journal(recording, temporary, &open, &journal, err);
	if (result)
		return result;
	preamble = ts_journal_bytes(journal);
	/* Most of the rest is copied while appends continue. */
	pthread_mutex_lock(&recording->lock);
	end = ts_journal_bytes(recording->journal);
	pthread_mutex_unlock(&recording->lock);
	result = ts_journal_copy(journal, ts_journal_fd(recording->journal), taken, end - taken,
				 err);
	if (!result) {
		pthread_mutex_lock(&recording->lock);
		result = commit_journal(recording, journal, &open, end, err);
		if (!result)
			recording->decoded = recording->preamble = recording->turned_at = preamble;
		is_all = ts_journal_bytes(recording->journal) == preamble;
		if (!result)
			ts_spools_commit(recording->options.spools, is_all);
		pthread_mutex_unlock(&recording->lock);
	}
	if (result) {
		ts_journal_close(journal);
		unlink(temporary);
		return result;
	}
	ts_spools_release(recording->options.spools);
	sync_folder(recording, recording->journal_path);
	return TS_OK;
}

int ts_recording_do_checkpoint(struct ts_recording *recording, bool save, struct ts_error *err)
{
	int result = ts_decoder_seal(recording->decoder);

	if (!result) {
		ts_crash_point("R4");
		result = ts_writer_flush(recording->writer);
	}
	if (!result && save) {
		ts_crash_point("R7");
		result = ts_writer_save(recording->writer, NULL);
		ts_crash_point("R7");
	}
	if (result)
		return ts_writer_status(recording->writer, err);
	result = turn_journal(recording, err);
	if (!result)
		ts_recording_make_reserve(recording);
	return result;
}

/* ---- rotation ---- */

/* What a rotation prepares before its commit. */
struct next_file {
	struct ts_block_open open;
	char *path, *journal_path, *temporary;
	int lock_fd;
	struct ts_writer *writer;
	struct ts_journal *journal;
};

static int prepare_next(struct ts_recording *recording, const char *path, struct next_file *next,
			struct ts_error *err)
{
	int result;

	next->path = strdup(path);
	next->journal_path = ts_recording_beside(path, ".journal");
	next->temporary = ts_recording_beside(path, ".journal.new");
	if (!next->path || !next->journal_path || !next->temporary)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	next->open = recording->open;
	next->open.generation = 0;
	next->open.trace_bytes = 0;
	memset(next->open.next_ids, 0, sizeof(next->open.next_ids));
	ts_recording_draw_id(next->open.trace_id);
	result = ts_recording_lock(path, 0, &next->lock_fd, err);
	if (!result)
		result = open_writer(recording, path, &next->open, &next->writer, err);
	if (!result)
		result =
			begin_journal(recording, next->temporary, &next->open, &next->journal, err);
	if (!result)
		result = sync_journal(recording, next->journal, err);
	return result;
}

static void discard_next(struct next_file *next)
{
	if (next->journal)
		unlink(next->temporary);
	if (next->lock_fd >= 0) {
		unlink(next->path);
		close(next->lock_fd);
	}
	ts_journal_close(next->journal);
	ts_writer_close(next->writer);
	free(next->path);
	free(next->journal_path);
	free(next->temporary);
}

/* Commits the rotation: from now on a successor continues in the new file. Lock held. */
static int decide_rotation(struct ts_recording *recording, const struct next_file *next,
			   struct ts_error *err)
{
	struct ts_block block = { .type = TS_BLOCK_ROTATE, .bytes = (uint32_t)strlen(next->path) };
	int result = ts_journal_append(recording->journal, &block, next->path, err);

	if (!result)
		result = sync_journal(recording, recording->journal, err);
	if (!result)
		ts_crash_point("rotate-decided");
	return result;
}

/* Switches to the next file. Lock held. No failure here matters. */
static void take_next(struct ts_recording *recording, struct next_file *next)
{
	/* If this fails, a successor finds ROTATE and renames it. */
	if (!ts_journal_rename(next->journal, next->journal_path, NULL)) {
		ts_crash_point("rotate-renamed");
		unlink(recording->journal_path);
	}
	ts_journal_close(recording->journal);
	ts_writer_close(recording->writer);
	close(recording->lock_fd);
	free(recording->path);
	free(recording->journal_path);
	free(next->temporary);
	recording->journal = next->journal;
	recording->writer = next->writer;
	recording->lock_fd = next->lock_fd;
	recording->path = next->path;
	recording->journal_path = next->journal_path;
	recording->open = next->open;
	recording->trace_bytes = 0;
	recording->decoded = ts_journal_bytes(next->journal);
	recording->preamble = recording->turned_at = recording->decoded;
	free_queued(recording);
}

int ts_recording_do_rotate(struct ts_recording *recording, const char *new_path,
			   struct ts_error *err)
{
	struct next_file next = { .lock_fd = -1 };
	int result = ts_recording_do_checkpoint(recording, true, err);

	if (result)
		return result;
	result = prepare_next(recording, new_path, &next, err);
	ts_recording_drop_reserve(recording); /* it has the old name */
	pthread_mutex_lock(&recording->lock);
	if (!result)
		result = decide_rotation(recording, &next, err);
	if (result) {
		pthread_mutex_unlock(&recording->lock);
		discard_next(&next);
		ts_recording_make_reserve(recording);
		return result;
	}
	take_next(recording, &next);
	pthread_mutex_unlock(&recording->lock);
	ts_recording_make_reserve(recording);
	/* The rotation is complete: if the disk is full, the next block reports it. */
	set_writer(recording, true);
	return TS_OK;
}

/* ---- finish ---- */

/*
 * Fails if the trace has lost its name: nobody can open what was written. The journal, if it is
 * still there, may have all of it.
 */
static int check_named(const struct ts_recording *recording, struct ts_error *err)
{
	struct stat named, ours;

	if (fstat(recording->lock_fd, &ours) ||
	    (!stat(recording->path, &named) && named.st_dev == ours.st_dev &&
	     named.st_ino == ours.st_ino))
		return TS_OK;
	return ts_error_set(err, TS_EIO,
			    "trace '%s' was removed or replaced while it was being recorded",
			    recording->path);
}

int ts_recording_do_finish(struct ts_recording *recording, struct ts_error *err)
{
	int result = ts_decoder_finish(recording->decoder);

	if (!result)
		result = ts_writer_finish(recording->writer, NULL);
	if (result)
		return ts_writer_status(recording->writer, err);
	result = check_named(recording, err);
	if (result)
		return result;
	ts_crash_point("R8");
	unlink(recording->journal_path);
	ts_crash_point("R12");
	ts_spools_commit(recording->options.spools, true);
	ts_spools_release(recording->options.spools);
	ts_recording_drop_reserve(recording);
	return TS_OK;
}
