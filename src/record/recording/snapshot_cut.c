/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads rings, then the end of the journal, then opens the trace: the direction in which bytes
 * move. The journal is read before the rings as well, for what it costs to read again: it names the
 * areas, and says from where on their rings are of interest.
 */
#include "record/recording/snapshot_cut.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "live/area.h"
#include "live/area_spool.h"
#include "record/recording/checkpoint_internal.h"
#include "record/recording/salvage.h"
#include "sbt/file.h"

/* Passes over the rings of an area, while a thread or a recorder is faster than us. */
#define PASSES 20
#define PAUSE_NS 1000000

/* ---- the journal ---- */

static int changed(const struct ts_snapshot_source *source, const char *how, struct ts_error *err)
{
	return ts_error_set(err, TS_EBUSY, "trace '%s': its recorder has just %s", source->name,
			    how);
}

static int damaged(const struct ts_snapshot_source *source, const char *what, struct ts_error *err)
{
	TS_SCOPED(ts_text) trace = { 0 };

	ts_text_append_shell(&trace, source->name);
	return ts_error_set(err, TS_EFORMAT,
			    "the %s of '%s' is damaged (read what is intact with: tracesmith "
			    "recover %s -o good.sbt)",
			    what, source->name, ts_text_cstr(&trace));
}

static int open_journal(struct ts_snapshot_cut *cut, const struct ts_snapshot_source *source,
			struct ts_error *err)
{
	struct stat journal, trace;

	cut->journal_fd = ts_io_open(cut->journal_path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (cut->journal_fd < 0 && errno == ENOENT)
		return changed(source, "finished or rotated it", err);
	if (cut->journal_fd < 0 || fstat(cut->journal_fd, &journal))
		return ts_error_errno(err, errno, "cannot open journal '%s'", cut->journal_path);
	/* Any user may have created it. */
	if (!S_ISREG(journal.st_mode) ||
	    (!stat(source->name, &trace) && trace.st_uid != journal.st_uid))
		return ts_error_set(err, TS_EINVAL,
				    "journal '%s' is not a file of the trace's owner",
				    cut->journal_path);
	return TS_OK;
}

static void forget_journal(struct ts_snapshot_cut *cut)
{
	if (cut->journal_fd >= 0)
		close(cut->journal_fd);
	cut->journal_fd = -1;
	cut->journal_end = 0;
	ts_positions_release(&cut->positions);
	memset(&cut->open, 0, sizeof(cut->open));
	memset(&cut->faults, 0, sizeof(cut->faults));
}

bool ts_snapshot_cut_is_current(const struct ts_snapshot_cut *cut)
{
	struct stat named, ours;

	return !stat(cut->journal_path, &named) && !fstat(cut->journal_fd, &ours) &&
	       named.st_dev == ours.st_dev && named.st_ino == ours.st_ino;
}

static int take_open(struct ts_snapshot_cut *cut, const struct ts_snapshot_source *source,
		     const struct ts_block *block, const void *payload, struct ts_error *err)
{
	if (block->type != TS_BLOCK_OPEN ||
	    !ts_journal_take_open(payload, block->bytes, &cut->open))
		return damaged(source, "journal", err);
	if (cut->open.version > TS_JOURNAL_VERSION)
		return ts_error_set(err, TS_EVERSION,
				    "journal '%s' has version %u, newer than this program, which "
				    "reads up to %u",
				    cut->journal_path, cut->open.version, TS_JOURNAL_VERSION);
	return TS_OK;
}

/*
 * Reads the block at the end. A block that was just being appended is complete if a later one is:
 * only what is wrong twice is damaged.
 */
static int read_block(struct ts_snapshot_cut *cut, const struct ts_snapshot_source *source,
		      struct ts_block *block, struct ts_text *payload, struct ts_error *err)
{
	uint64_t offset = cut->journal_end;
	int rc = ts_journal_read(cut->journal_fd, &offset, block, payload, err);

	if (rc == TS_EFORMAT) {
		offset = cut->journal_end;
		rc = ts_journal_read(cut->journal_fd, &offset, block, payload, err);
	}
	if (rc == TS_EFORMAT && (!source->recorder || !cut->journal_end))
		return damaged(source, "journal", err);
	if (!rc || rc == TS_EFORMAT)
		cut->journal_end = offset;
	return rc;
}

/* Reads what has been appended since the last time. */
static int read_on(struct ts_snapshot_cut *cut, const struct ts_snapshot_source *source,
		   struct ts_error *err)
{
	TS_SCOPED(ts_text) payload = { 0 };

	for (;;) {
		bool is_first = !cut->journal_end;
		struct ts_block block;
		int rc = read_block(cut, source, &block, &payload, err);

		if (rc == TS_ENOTFOUND)
			return is_first ? damaged(source, "journal", err) : TS_OK;
		/* The decoder counts these bytes. Without the first block there is nothing. */
		if (rc == TS_EFORMAT && source->recorder && !is_first)
			continue;
		if (!rc && is_first)
			rc = take_open(cut, source, &block, payload.data, err);
		if (!rc && block.type == TS_BLOCK_ROTATE)
			rc = changed(source, "rotated it", err);
		if (!rc && ts_positions_block(&cut->positions, &block, payload.data))
			rc = ts_error_set(err, TS_ENOMEM, "no memory");
		if (rc)
			return rc;
		cut->spooled_bytes += ts_spooled_bytes(&block, payload.data);
	}
}

static int read_journal(struct ts_snapshot_cut *cut, const struct ts_snapshot_source *source,
			struct ts_error *err)
{
	int rc;

	forget_journal(cut);
	rc = open_journal(cut, source, err);
	return rc ? rc : read_on(cut, source, err);
}

/*
 * Of a killed recorder: the last block may be incomplete. What it had is still in a ring. No kill
 * cuts the state of a checkpoint off.
 */
static int check_end(struct ts_snapshot_cut *cut, const struct ts_snapshot_source *source,
		     struct ts_error *err)
{
	TS_SCOPED(ts_text) payload = { 0 };
	struct stat status;
	struct ts_block block;
	uint64_t offset = 0;

	if (fstat(cut->journal_fd, &status))
		return ts_error_errno(err, errno, "cannot read journal '%s'", cut->journal_path);
	cut->faults.is_torn = (uint64_t)status.st_size > cut->journal_end;
	return ts_journal_read(cut->journal_fd, &offset, &block, &payload, err) ||
			       block.to > cut->journal_end
		       ? damaged(source, "journal", err)
		       : TS_OK;
}

/* ---- areas ---- */

bool ts_snapshot_cut_has(const struct ts_snapshot_cut *cut, uint64_t area)
{
	for (size_t i = 0; i < cut->area_count; i++)
		if (cut->areas[i].control.area_id == area)
			return true;
	return false;
}

static int keep_preamble(void *context, struct ts_block *block, const void *payload,
			 struct ts_error *err)
{
	struct ts_snapshot_cut *cut = context;

	return block->type == TS_BLOCK_AREA || block->type == TS_BLOCK_DICTIONARY
		       ? ts_journal_append(cut->preambles, block, payload, err)
		       : TS_OK;
}

static int keep_block(void *context, struct ts_block *block, const void *payload,
		      struct ts_error *err)
{
	struct ts_snapshot_cut *cut = context;

	if (block->type == TS_BLOCK_DICTIONARY)
		return keep_preamble(context, block, payload, err);
	cut->spooled_bytes += ts_spooled_bytes(block, payload);
	return ts_journal_append(cut->rings, block, payload, err);
}

static int announce(struct ts_snapshot_cut *cut, const struct ts_area *area, pid_t pid,
		    struct ts_error *err)
{
	const struct ts_block_sink sink = { keep_preamble, cut };
	struct ts_live_control control = *ts_area_control(area);

	if (cut->open.redact)
		memset(control.command, 0, sizeof(control.command));
	return ts_salvage_area(&sink, &control, pid, err);
}

static void resume(const struct ts_snapshot_cut *cut, struct ts_area *area)
{
	const struct ts_area_positions *known =
		ts_positions_find(&cut->positions, ts_area_control(area)->area_id);

	if (!known)
		return;
	ts_area_resume_dictionary(area, known->dictionary);
	for (size_t i = 0; i < known->ring_count; i++)
		if (known->rings[i].known)
			ts_area_resume_ring(area, (uint32_t)i, known->rings[i].position,
					    known->rings[i].events, known->rings[i].dropped);
}

/*
 * Drains them without publishing anything. The words of a ring may be changing, or a recorder may
 * be storing its own; in the end they are taken as they are.
 */
static int drain(struct ts_snapshot_cut *cut, struct ts_area *area, bool is_alive,
		 struct ts_error *err)
{
	const struct ts_block_sink sink = { keep_block, cut };
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	struct ts_drain_result result = { .unsteady = is_alive };
	int rc = TS_OK;

	for (int i = 0; i < PASSES && result.unsteady && !rc; i++) {
		if (i)
			nanosleep(&pause, NULL);
		rc = ts_area_drain(area, 0, &sink, &result, err);
	}
	if (!rc && (!is_alive || result.unsteady))
		rc = ts_area_drain(area, TS_DRAIN_FINAL, &sink, NULL, err);
	return rc;
}

static int read_rings(struct ts_snapshot_cut *cut, struct ts_area *area, pid_t pid,
		      struct ts_error *err)
{
	const struct ts_block_sink preambles = { keep_preamble, cut };
	int rc = announce(cut, area, pid, err);

	resume(cut, area);
	if (!rc)
		rc = drain(cut, area, pid != 0, err);
	/* What was overwritten meanwhile was read again: its names may be newer. */
	if (!rc)
		rc = ts_area_drain(area, TS_DRAIN_DISCARD, &preambles, NULL, err);
	if (!rc)
		rc = ts_grow_array((void **)&cut->areas, &cut->area_capacity, cut->area_count + 1,
				   sizeof(*cut->areas))
			     ? ts_error_set(err, TS_ENOMEM, "no memory")
			     : TS_OK;
	if (!rc)
		cut->areas[cut->area_count++] =
			(struct ts_snapshot_area){ .control = *ts_area_control(area), .pid = pid };
	return rc;
}

static int read_area(struct ts_snapshot_cut *cut, int directory_fd, const struct ts_area_info *info,
		     struct ts_error *err)
{
	TS_AUTO(ts_area) area = NULL;
	int rc = ts_area_open(&area, directory_fd, info->name, false, err);

	return rc ? rc : read_rings(cut, area, info->alive ? info->pid : 0, err);
}

/* ---- the areas of a recording ---- */

struct walk {
	struct ts_snapshot_cut *cut;
	const struct ts_snapshot_source *source;
	uid_t user;
	int directory_fd;
	struct ts_error *err;
	int rc;
};

/*
 * True if the recording has the area, or will have it. Another user knows the session of his
 * programs, and could claim it, or the recorder, for anything.
 */
static bool is_wanted(const struct walk *walk, const struct ts_area_info *info)
{
	const struct ts_live_control *control = &info->control;
	const struct ts_area_positions *known =
		ts_positions_find(&walk->cut->positions, control->area_id);
	uint64_t session = walk->cut->open.session;

	if (info->unfinished || ts_snapshot_cut_has(walk->cut, control->area_id))
		return false;
	if (known || walk->user != geteuid())
		return known && !known->ended;
	return (session && control->session == session) ||
	       (walk->source->recorder &&
		ts_area_recorder(control, info->owner) == walk->source->recorder);
}

static void on_area(void *context, const struct ts_area_info *info)
{
	struct walk *walk = context;
	TS_AUTO(ts_area) area = NULL;

	if (walk->rc || !is_wanted(walk, info))
		return;
	/* Skip one that disappeared meanwhile, or is damaged: the journal has what there was. */
	if (!ts_area_open(&area, walk->directory_fd, info->name, false, NULL))
		walk->rc = read_rings(walk->cut, area, info->alive ? info->pid : 0, walk->err);
}

static void walk_directory(void *context, uid_t user)
{
	struct walk *walk = context;
	TS_AUTO_FD int fd = -1;

	if (walk->rc || ts_live_directory_open(user, 0, &fd, NULL))
		return;
	walk->user = user;
	walk->directory_fd = fd;
	ts_areas_list(fd, 0, on_area, NULL, walk, NULL);
}

/* Those that the caller has found may be in the directory of a container. */
static bool is_left(const struct ts_snapshot_cut *cut, const struct ts_area_info *info)
{
	const struct ts_area_positions *known =
		ts_positions_find(&cut->positions, info->control.area_id);

	return !(known && known->ended) && !ts_snapshot_cut_has(cut, info->control.area_id);
}

static int read_areas(struct ts_snapshot_cut *cut, const struct ts_snapshot_source *source,
		      struct ts_error *err)
{
	struct walk walk = { .cut = cut, .source = source, .err = err };

	ts_live_directory_users(walk_directory, &walk);
	for (size_t i = 0; i < source->area_count && !walk.rc; i++) {
		if (is_left(cut, &source->areas[i]))
			walk.rc = read_area(cut, source->directory_fd, &source->areas[i], err);
		/* Removed: the journal has all of it. */
		if (walk.rc == TS_ENOTFOUND)
			walk.rc = TS_OK;
	}
	return walk.rc;
}

/* ---- one set of positions ---- */

/*
 * True if a ring had been drained further, when it was read, than the journal is. (Or if its oldest
 * events were overwritten before a recorder came, or its program lies.)
 */
static bool has_gap(const struct ts_snapshot_cut *cut)
{
	TS_SCOPED(ts_text) payload = { 0 };
	struct ts_pairmap seen;
	uint64_t offset = 0;
	struct ts_block block;
	bool is_found = false;

	ts_pairmap_init(&seen);
	while (!is_found &&
	       !ts_journal_read(ts_journal_fd(cut->rings), &offset, &block, &payload, NULL)) {
		const struct ts_area_positions *area =
			ts_positions_find(&cut->positions, block.area);
		bool is_first = false;

		if (block.type != TS_BLOCK_RING || !area || block.ring >= area->ring_count ||
		    !area->rings[block.ring].known)
			continue;
		ts_pairmap_insert(&seen, block.area, block.ring, &is_first);
		is_found = is_first && block.from > area->rings[block.ring].position;
	}
	ts_pairmap_release(&seen);
	return is_found;
}

/* Opens the trace, which has at least the chunks that the journal says are committed. */
static int open_trace(struct ts_snapshot_cut *cut, const struct ts_snapshot_source *source,
		      struct ts_error *err)
{
	struct sbt_file file;
	int rc;

	if (!cut->open.trace_bytes)
		return TS_OK;
	rc = sbt_file_open(&file, source->name, err);
	if (rc == TS_ENOTFOUND)
		return changed(source, "finished or rotated it", err);
	if (!rc)
		rc = sbt_file_check(&file, err);
	if (!rc &&
	    memcmp(file.header.trace_id, cut->open.trace_id, sizeof(cut->open.trace_id)) != 0)
		rc = changed(source, "replaced it", err);
	if (!rc && file.bytes < cut->open.trace_bytes)
		rc = damaged(source, "trace", err);
	if (!rc) {
		cut->trace_fd = fcntl(file.fd, F_DUPFD_CLOEXEC, 0);
		if (cut->trace_fd < 0)
			rc = ts_error_errno(err, errno, "cannot open trace '%s'", source->name);
	}
	sbt_file_close(&file);
	return rc;
}

/*
 * The end of the journal that is the recording's own now: what a ring does not have any more,
 * because it was drained before it was read, was appended before that.
 */
static int read_end(struct ts_snapshot_cut *cut, const struct ts_snapshot_source *source,
		    struct ts_error *err)
{
	return ts_snapshot_cut_is_current(cut) ? read_on(cut, source, err)
					       : read_journal(cut, source, err);
}

static int begin(struct ts_snapshot_cut *cut, const struct ts_snapshot_source *source,
		 struct ts_error *err)
{
	TS_SCOPED(ts_text) path = { 0 };
	int rc;

	*cut = (struct ts_snapshot_cut){ .journal_fd = -1, .trace_fd = -1 };
	ts_text_printf(&path, "%s.journal", source->name);
	cut->journal_path = ts_text_status(&path) ? NULL : strdup(ts_text_cstr(&path));
	if (!cut->journal_path)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	rc = ts_journal_create_unnamed(&cut->preambles, err);
	return rc ? rc : ts_journal_create_unnamed(&cut->rings, err);
}

int ts_snapshot_cut_recording(struct ts_snapshot_cut *cut, const struct ts_snapshot_source *source,
			      struct ts_error *err)
{
	int rc = begin(cut, source, err);

	if (!rc)
		rc = read_journal(cut, source, err);
	if (!rc)
		rc = read_areas(cut, source, err);
	if (!rc)
		rc = read_end(cut, source, err);
	if (!rc && !source->recorder)
		rc = check_end(cut, source, err);
	if (!rc && source->recorder && !source->accept_gaps && has_gap(cut))
		rc = changed(source, "been writing it", err);
	return rc ? rc : open_trace(cut, source, err);
}

int ts_snapshot_cut_areas(struct ts_snapshot_cut *cut, const struct ts_snapshot_source *source,
			  struct ts_error *err)
{
	const struct ts_live_control *first = &source->areas[0].control;
	int rc = begin(cut, source, err);

	if (!rc) {
		ts_recording_describe(&cut->open, first->session, first->redact);
		cut->open.rank = first->rank;
	}
	for (size_t i = 0; i < source->area_count && !rc; i++)
		rc = read_area(cut, source->directory_fd, &source->areas[i], err);
	/* Somebody has recorded it to the end. */
	return rc == TS_ENOTFOUND
		       ? ts_error_set(err, TS_EBUSY, "%s: its live area was removed", source->name)
		       : rc;
}

void ts_snapshot_cut_release(struct ts_snapshot_cut *cut)
{
	forget_journal(cut);
	if (cut->trace_fd >= 0)
		close(cut->trace_fd);
	ts_journal_close(cut->preambles);
	ts_journal_close(cut->rings);
	free(cut->areas);
	free(cut->journal_path);
}
