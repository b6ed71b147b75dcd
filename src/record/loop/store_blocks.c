/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores blocks in the recording and handles a full disk: the journal is checkpointed once, then
 * nothing is drained until there is space again, and targets count the events that they lose
 * (docs/live.md, section 8.3).
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/procfs.h"
#include "base/procfs_parse.h"
#include "record/loop/record_internal.h"

#define LONGEST_FULL_PAUSE_NS (32 * TS_NS_PER_S)
/* Free space at which recording continues. */
#define SPACE_LEAST (UINT64_C(1) << 20)
#define SPACE_GREATEST (UINT64_C(16) << 20)

/* ---- full disk ---- */

static void become_full(struct ts_recorder *recorder)
{
	if (recorder->full)
		return;
	recorder->full = recorder->was_full = true;
	recorder->full_pause_ns = TS_MIN(recorder->full_pause_ns * 2, LONGEST_FULL_PAUSE_NS);
	recorder->full_pause_ns = TS_MAX(recorder->full_pause_ns, TS_NS_PER_S);
	recorder->full_look_ns = recorder->now_ns + recorder->full_pause_ns;
	if (recorder->options.stop_when_full) {
		recorder->done = true;
		ts_recorder_note(recorder, "no space left for '%s': the recording ends here",
				 recorder->saves.public_path);
	} else if (!recorder->full_noted) {
		recorder->full_noted = true;
		ts_recorder_note(
			recorder,
			"no space left for '%s': events are dropped and counted until there is "
			"space",
			recorder->saves.public_path);
	}
}

static uint64_t free_memory(void)
{
	struct ts_procfs_meminfo memory = { 0 };
	char text[4096];

	if (ts_procfs_read_line(AT_FDCWD, "/proc/meminfo", text, sizeof(text)) < 0)
		return UINT64_MAX;
	ts_procfs_meminfo_parse(text, &memory);
	return memory.available ? memory.available * 1024 : UINT64_MAX;
}

/*
 * Free bytes on the trace's disk, and how many of them are to remain; UINT64_MAX: unknown, let the
 * next write decide.
 */
static uint64_t free_on_disk(const struct ts_recorder *recorder, uint64_t *ret_spare)
{
	char folder[TS_PATH_BYTES];
	struct statfs disk;
	uint64_t all, left;
	char *slash;

	*ret_spare = 0;
	snprintf(folder, sizeof(folder), "%s", recorder->saves.trace_path);
	slash = strrchr(folder, '/');
	snprintf(slash ? slash + 1 : folder, 2, ".");
	if (statfs(folder, &disk))
		return UINT64_MAX;
	all = (uint64_t)disk.f_blocks * (uint64_t)disk.f_frsize;
	left = (uint64_t)disk.f_bavail * (uint64_t)disk.f_frsize;
	*ret_spare = TS_MAX(SPACE_LEAST, TS_MIN(SPACE_GREATEST, all / 16));
	return disk.f_type == TMPFS_MAGIC ? TS_MIN(left, free_memory()) : left;
}

bool ts_store_has_space(const struct ts_recorder *recorder)
{
	uint64_t spare;

	return free_on_disk(recorder, &spare) >= spare;
}

uint64_t ts_store_space(struct ts_recorder *recorder)
{
	uint64_t spare, left = free_on_disk(recorder, &spare);

	if (left != UINT64_MAX)
		left = left > spare ? left - spare : 0;
	return TS_MIN(left, ts_saves_space(recorder));
}

/* If the disk fills up again soon, checks become less and less frequent. */
void ts_store_check_space(struct ts_recorder *recorder)
{
	if (!recorder->full) {
		/* Recording has worked for a while since. */
		if (recorder->full_noted && recorder->now_ns >= recorder->full_look_ns) {
			recorder->full_noted = false;
			recorder->full_pause_ns = 0;
			ts_recorder_note(recorder,
					 "there is space again: recording continues in '%s'",
					 recorder->saves.public_path);
		}
		return;
	}
	if (recorder->now_ns < recorder->full_look_ns)
		return;
	recorder->full_look_ns = recorder->now_ns + recorder->full_pause_ns;
	if (ts_store_has_space(recorder))
		recorder->full = false;
}

/* A sink that appends. On a full disk it checkpoints the journal once before it gives up. */
static int store(void *context, struct ts_block *block, const void *payload, struct ts_error *err)
{
	struct ts_recorder *recorder = context;
	int rc;

	if (recorder->full)
		return ts_error_set(err, TS_ENOSPC, "no space left for '%s'",
				    recorder->saves.trace_path);
	if (block->type == TS_BLOCK_RING &&
	    ts_saves_refuses(recorder, block->bytes, ts_spooled_bytes(block, payload)))
		return ts_error_set(err, TS_ENOSPC, "size limit of '%s' reached",
				    recorder->saves.trace_path);
	rc = ts_recording_append(recorder->recording, block, payload, err);
	if (rc != TS_ENOSPC)
		return rc;
	rc = ts_recording_checkpoint(recorder->recording, false, err);
	/* Reserve the freed space for the end of the trace, unless there is plenty. */
	if (!rc && !ts_store_has_space(recorder))
		rc = ts_error_set(err, TS_ENOSPC, "no space left for '%s'",
				  recorder->saves.trace_path);
	if (!rc)
		rc = ts_recording_append(recorder->recording, block, payload, err);
	if (rc == TS_ENOSPC)
		become_full(recorder);
	return rc;
}

/* A sink that only makes the decoder count. */
static int queue_block(void *context, struct ts_block *block, const void *payload,
		       struct ts_error *err)
{
	struct ts_recorder *recorder = context;

	return ts_recording_queue(recorder->recording, block, payload, err);
}

int ts_recorder_append(struct ts_recorder *recorder, enum ts_block_type type, uint64_t area,
		       const void *payload, size_t bytes, struct ts_error *err)
{
	struct ts_block block = { .type = (uint16_t)type, .bytes = (uint32_t)bytes, .area = area };

	/* At the end of a recording on a full disk, the reserve still has space for this. */
	if (recorder->finishing && recorder->full)
		return queue_block(recorder, &block, payload, err);
	return store(recorder, &block, payload, err);
}

int ts_recorder_lose(struct ts_recorder *recorder, uint64_t area, pid_t pid, const char *what,
		     const char *reason, uint64_t since, struct ts_error *err)
{
	struct ts_block_loss loss = { .count = TS_ABSENT, .pid = (uint64_t)pid };

	loss.last_counter = ts_clocks_now(&recorder->clocks);
	loss.first_counter = since ? since : loss.last_counter;
	snprintf(loss.what, sizeof(loss.what), "%s", what);
	snprintf(loss.reason, sizeof(loss.reason), "%s", reason);
	return ts_recorder_append(recorder, TS_BLOCK_LOSS, area, &loss, sizeof(loss), err);
}

/* True if the decoder is so far behind that appending would soon block. */
static bool is_behind(const struct ts_recorder *recorder)
{
	struct ts_recording_status status;

	ts_recording_status(recorder->recording, &status);
	return status.journal_bytes > status.decoded_bytes + status.journal_limit * 3 / 2;
}

int ts_recorder_drain(struct ts_recorder *recorder, struct ts_target *target, unsigned int flags,
		      struct ts_error *err)
{
	const struct ts_live_control *control = ts_area_control(target->area);
	bool discard = (flags & TS_DRAIN_DISCARD) != 0;
	struct ts_block_sink sink = { .append = discard ? queue_block : store,
				      .context = recorder };
	struct ts_drain_result result = { 0 };
	uint64_t referred = 0;
	int rc;

	if (target->damaged || !target->announced || (recorder->full && !discard))
		return TS_OK;
	/*
	 * Programs wait until their commands are drained; other events are lost if nobody drains
	 * them.
	 */
	if (!flags && !recorder->finishing && is_behind(recorder))
		flags = TS_DRAIN_HOLD;
	if (target->takes_over)
		referred = ts_spools_referred(recorder->spools, control);
	rc = ts_area_drain(target->area, flags, &sink, &result, err);
	if (target->takes_over && !rc && !result.held && !discard) {
		target->takes_over = false;
		ts_spools_take_over(recorder->spools, control, referred);
	}
	recorder->settling |= result.held;
	if ((result.bytes || result.dropped) && !target->is_self)
		recorder->moved_ns = recorder->now_ns;
	recorder->fill = TS_MAX(recorder->fill, result.fill);
	return rc;
}
