/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording: the caller appends blocks to the journal, and a thread decodes them. Decoder and
 * writer run on that thread only; other requests are commands to it.
 */
#include "record/recording/recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "record/loop/counter_clock.h"
#include "record/recording/checkpoint_internal.h"

/* Appends wait if the decoder is this many journal limits behind. */
#define HARD_LIMITS 8
/* Fewer ring bytes wait for another block (a clock block each second) or a command. */
#define DECODE_AT_ONCE (UINT64_C(256) << 10)
#define RETRY_NS INT64_C(1000000000)
#define LONGEST_RETRY_NS (32 * RETRY_NS)
/* Size of the trace's last rows and its index. */
#define END_BYTES 65536
/* A command is retried if the first attempt found a full disk and there was a reserve. */
#define ATTEMPTS 2

/* ---- positions and anchors ---- */

int ts_recording_note(struct ts_recording *recording, const struct ts_block *block,
		      const void *payload)
{
	if (block->type == TS_BLOCK_CLOCK && payload &&
	    block->bytes >= sizeof(struct ts_block_clock)) {
		recording->anchors[0] = recording->anchors[1];
		memcpy(&recording->anchors[1], payload, sizeof(recording->anchors[1]));
		recording->anchor_count = TS_MIN(recording->anchor_count + 1, 2);
		return TS_OK;
	}
	ts_spools_refer(recording->options.spools, block, payload);
	return ts_positions_block(&recording->positions, block, payload);
}

/* ---- decoder thread ---- */

static void publish(struct ts_recording *recording)
{
	ts_decoder_counts(recording->decoder, &recording->counts);
	recording->trace_bytes = ts_writer_bytes(recording->writer);
}

/*
 * The disk is full: truncates the trace to its committed length, to retry with the reserve's space,
 * or later.
 */
static int free_space(struct ts_recording *recording, struct ts_error *err)
{
	bool had_reserve = recording->reserve_bytes != 0;
	int result;

	ts_recording_drop_reserve(recording);
	recording->held = true;
	result = ts_recording_reload(recording, err);
	if (result && result != TS_ENOSPC)
		return result;
	pthread_mutex_lock(&recording->lock);
	recording->full = true;
	recording->stalled = result || !had_reserve;
	if (recording->stalled) {
		recording->retry_pause =
			TS_MIN(TS_MAX(2 * recording->retry_pause, RETRY_NS), LONGEST_RETRY_NS);
		recording->retry_ns = ts_clock_monotonic_ns() + recording->retry_pause;
	}
	pthread_mutex_unlock(&recording->lock);
	return TS_OK;
}

/* Handles a failed step of the decoder. TS_OK: it can continue. Lock not held. */
static int settle(struct ts_recording *recording, int result, struct ts_error *err)
{
	return result == TS_ENOSPC ? free_space(recording, err) : result;
}

/* Decodes one block of the journal. */
static int decode_next(struct ts_recording *recording, struct ts_error *err)
{
	uint64_t offset = recording->decoded;
	struct ts_block block;
	int result = ts_journal_read(ts_journal_fd(recording->journal), &offset, &block,
				     &recording->payload, err);

	if (result == TS_ENOTFOUND) {
		pthread_mutex_lock(&recording->lock);
		offset = ts_journal_bytes(recording->journal);
		pthread_mutex_unlock(&recording->lock);
	}
	if (result == TS_ENOTFOUND || result == TS_EFORMAT) {
		ts_decoder_damage(recording->decoder, offset - recording->decoded);
		result = TS_OK;
	} else if (!result) {
		result = ts_decoder_block(recording->decoder, &block, recording->payload.data, err);
		ts_crash_point("R4");
	}
	if (result)
		return settle(recording, result, err);
	pthread_mutex_lock(&recording->lock);
	recording->decoded = offset;
	publish(recording);
	pthread_mutex_unlock(&recording->lock);
	return TS_OK;
}

static int decode_queued(struct ts_recording *recording, struct ts_error *err)
{
	struct queued_block queued;
	int result;

	pthread_mutex_lock(&recording->lock);
	queued = recording->queued[recording->queued_taken++];
	pthread_mutex_unlock(&recording->lock);
	result = ts_decoder_block(recording->decoder, &queued.block, queued.payload, err);
	if (result)
		return settle(recording, result, err);
	pthread_mutex_lock(&recording->lock);
	publish(recording);
	pthread_mutex_unlock(&recording->lock);
	return TS_OK;
}

static int run_command(struct ts_recording *recording, struct ts_error *err)
{
	switch (recording->command) {
	case COMMAND_CHECKPOINT:
	case COMMAND_SAVE:
		return ts_recording_do_checkpoint(recording, recording->command == COMMAND_SAVE,
						  err);
	case COMMAND_ROTATE:
		return ts_recording_do_rotate(recording, recording->new_path, err);
	case COMMAND_FINISH:
		return ts_recording_do_finish(recording, err);
	default:
		return TS_OK;
	}
}

/* Lock held. */
static void answer(struct ts_recording *recording, int result, const struct ts_error *err)
{
	if (!recording->command)
		return;
	recording->result = result;
	if (result)
		recording->answer = *err;
	else if (recording->command == COMMAND_FINISH)
		recording->finished = true;
	if (!result)
		recording->full = false;
	recording->command = COMMAND_NONE;
	pthread_cond_broadcast(&recording->done);
}

/*
 * Executes the command. If the disk is full the trace is truncated, so everything is decoded again
 * before the next attempt. Lock held, released meanwhile.
 */
static int obey(struct ts_recording *recording, struct ts_error *err)
{
	bool writer_failed, full = recording->full;
	int result, settled = TS_OK;

	pthread_mutex_unlock(&recording->lock);
	if (full)
		ts_recording_drop_reserve(recording);
	result = run_command(recording, err);
	writer_failed = result && ts_writer_status(recording->writer, NULL);
	if (result == TS_ENOSPC && writer_failed)
		settled = free_space(recording, err);
	pthread_mutex_lock(&recording->lock);
	if (settled)
		return settled;
	if (result == TS_ENOSPC) {
		recording->full = true;
		if (++recording->attempts < ATTEMPTS)
			return TS_OK; /* the command stays pending */
	} else if (result && writer_failed) {
		return result;
	}
	if (!result)
		publish(recording);
	answer(recording, result, err);
	return TS_OK;
}

/* Restarts a long journal. Ignores a full disk: append will find it, too. Lock held. */
static int turn(struct ts_recording *recording, struct ts_error *err)
{
	int result;

	pthread_mutex_unlock(&recording->lock);
	result = ts_recording_do_checkpoint(recording, false, err);
	if (result == TS_ENOSPC && !ts_writer_status(recording->writer, NULL)) {
		/* Only the new journal did not fit: retry with the reserve's space. */
		ts_recording_drop_reserve(recording);
		result = ts_recording_do_checkpoint(recording, false, err);
		if (result == TS_ENOSPC)
			recording->turned_at = recording->decoded; /* do not retry at once */
	}
	if (result == TS_ENOSPC)
		result = ts_writer_status(recording->writer, NULL) ? free_space(recording, err)
								   : TS_OK;
	pthread_mutex_lock(&recording->lock);
	if (!result && recording->writer)
		publish(recording);
	pthread_cond_broadcast(&recording->done);
	return result;
}

/* True if a decoder that waits for disk space should retry now. Lock held. */
static bool shall_retry(struct ts_recording *recording)
{
	uint64_t need = ts_journal_bytes(recording->journal) / 4 + 65536;

	if (recording->command && recording->attempts++ < ATTEMPTS)
		return true;
	if (ts_clock_monotonic_ns() < recording->retry_ns)
		return false;
	recording->retry_ns = ts_clock_monotonic_ns() + RETRY_NS;
	return ts_recording_free_bytes(recording) >= need;
}

/* Lock held, released meanwhile. */
static int retry(struct ts_recording *recording, struct ts_error *err)
{
	int result = TS_OK;

	pthread_mutex_unlock(&recording->lock);
	if (!recording->writer)
		result = ts_recording_reload(recording, err);
	pthread_mutex_lock(&recording->lock);
	recording->stalled = result == TS_ENOSPC;
	return result == TS_ENOSPC ? TS_OK : result;
}

static void wait_for_work(struct ts_recording *recording)
{
	struct timespec until;

	pthread_cond_broadcast(&recording->done);
	if (!recording->stalled) {
		pthread_cond_wait(&recording->work, &recording->lock);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	pthread_cond_timedwait(&recording->work, &recording->lock, &until);
}

/* The decoder waits for disk space: retries, or answers that there is none. Lock held. */
static int stall(struct ts_recording *recording, struct ts_error *err)
{
	if (shall_retry(recording))
		return retry(recording, err);
	if (recording->command)
		answer(recording,
		       ts_error_set(err, TS_ENOSPC,
				    "trace '%s': the disk is full (free some space)",
				    recording->path),
		       err);
	wait_for_work(recording);
	return TS_OK;
}

/* All blocks that existed at resume are decoded: report closed windows from now on. */
static void release_hold(struct ts_recording *recording)
{
	recording->held = false;
	pthread_mutex_unlock(&recording->lock);
	ts_decoder_hold(recording->decoder, false);
	pthread_mutex_lock(&recording->lock);
}

/*
 * A checkpoint copies what is not yet decoded. If that is a lot, more is decoded first, so that a
 * checkpoint never copies more than was decoded. Lock held.
 */
static bool is_turn_due(const struct ts_recording *recording)
{
	uint64_t written = ts_journal_bytes(recording->journal);
	uint64_t behind = written > recording->decoded ? written - recording->decoded : 0;

	return recording->decoded >= recording->turned_at + TS_MAX(recording->limit, behind) ||
	       (recording->decoded > recording->turned_at &&
		ts_spools_are_due(recording->options.spools));
}

/* One step of the decoder thread; lock held, released meanwhile. A failure is permanent. */
static int work_once(struct ts_recording *recording, struct ts_error *err)
{
	bool behind = recording->decoded < ts_journal_bytes(recording->journal);
	bool queued = recording->queued_taken < recording->queued_count;
	int result;

	if (recording->stalled)
		return stall(recording, err);
	if (is_turn_due(recording) && !recording->command)
		return turn(recording, err);
	if (behind || queued) {
		pthread_mutex_unlock(&recording->lock);
		result = behind ? decode_next(recording, err) : decode_queued(recording, err);
		pthread_mutex_lock(&recording->lock);
		return result;
	}
	if (recording->held)
		release_hold(recording);
	else if (recording->command)
		return obey(recording, err);
	else
		wait_for_work(recording);
	return TS_OK;
}

static void *decoder_thread(void *argument)
{
	struct ts_recording *recording = argument;
	struct ts_error err = { 0 };

	pthread_mutex_lock(&recording->lock);
	while (!recording->stopping && !recording->finished) {
		int result = work_once(recording, &err);

		if (result) {
			recording->failure = err;
			answer(recording, result, &err);
			break;
		}
	}
	pthread_cond_broadcast(&recording->done);
	pthread_mutex_unlock(&recording->lock);
	return NULL;
}

int ts_recording_start(struct ts_recording *recording, struct ts_error *err)
{
	int errnum = ts_thread_start(&recording->thread, "ts-decoder", decoder_thread, recording);

	if (errnum)
		return ts_error_errno(err, errnum, "cannot start the decoder thread");
	recording->has_thread = true;
	return TS_OK;
}

/* ---- appending ---- */

/* Lock held. */
static int check_alive(const struct ts_recording *recording, struct ts_error *err)
{
	if (recording->finished)
		return ts_error_set(err, TS_EINVAL, "the recording is already finished");
	if (recording->failure.code && err)
		*err = recording->failure;
	return recording->failure.code;
}

/* True if there is something to decode, or a checkpoint is due. Lock held. */
static bool decoder_has_work(const struct ts_recording *recording)
{
	return recording->decoded < ts_journal_bytes(recording->journal) || is_turn_due(recording);
}

/*
 * Bounds the decoder's lag: targets count what they cannot store. If the decoder has nothing left
 * to do and the journal is long because a checkpoint does not fit on the disk, reserve_space()
 * decides. Lock held.
 */
static int wait_for_decoder(struct ts_recording *recording, struct ts_error *err)
{
	while (ts_journal_bytes(recording->journal) - recording->preamble >
		       HARD_LIMITS * recording->limit &&
	       decoder_has_work(recording)) {
		if (recording->failure.code || recording->finished)
			break;
		if (recording->stalled)
			return ts_error_set(err, TS_ENOSPC,
					    "journal '%s': the disk has no space for the trace",
					    recording->journal_path);
		pthread_cond_signal(&recording->work);
		pthread_cond_wait(&recording->done, &recording->lock);
	}
	return check_alive(recording, err);
}

/*
 * Keeps enough disk space free for the rows that the journal still becomes. Rows are smaller than
 * the records they come from, and those since the last checkpoint may have been written in part.
 * The journal's first blocks count, too: they hold what the decoder has consumed and not yet
 * written, such as the start of a large blob. Lock held.
 */
static int reserve_space(const struct ts_recording *recording, const struct ts_block *block,
			 const void *payload, struct ts_error *err)
{
	uint64_t bytes = block->bytes + ts_spooled_bytes(block, payload);
	uint64_t behind = ts_journal_bytes(recording->journal) + bytes + END_BYTES +
			  ts_spools_uncommitted(recording->options.spools);
	uint64_t written = recording->trace_bytes > recording->open.trace_bytes
				   ? recording->trace_bytes - recording->open.trace_bytes
				   : 0;
	uint64_t needed = behind > written ? behind - written : 0;

	if (needed <= recording->reserve_bytes ||
	    ts_recording_free_bytes(recording) + recording->reserve_bytes >= needed + bytes)
		return TS_OK;
	return ts_error_set(err, TS_ENOSPC,
			    "journal '%s': the remaining space is reserved for the events "
			    "already in it",
			    recording->journal_path);
}

int ts_recording_append(struct ts_recording *recording, struct ts_block *block, const void *payload,
			struct ts_error *err)
{
	int result;

	pthread_mutex_lock(&recording->lock);
	result = wait_for_decoder(recording, err);
	if (!result)
		result = reserve_space(recording, block, payload, err);
	if (!result)
		result = ts_journal_append(recording->journal, block, payload, err);
	if (!result && ts_recording_note(recording, block, payload))
		result = ts_error_set(err, TS_ENOMEM, "no memory");
	if (result == TS_ENOSPC)
		recording->full = true;
	else if (!result && !recording->stalled)
		recording->full = false;
	/* Few bytes of a channel may refer to many, for which a program may wait. */
	if (block->type != TS_BLOCK_RING || !block->events ||
	    ts_journal_bytes(recording->journal) - recording->decoded >= DECODE_AT_ONCE)
		pthread_cond_signal(&recording->work);
	pthread_mutex_unlock(&recording->lock);
	return result;
}

static int append_to(void *context, struct ts_block *block, const void *payload,
		     struct ts_error *err)
{
	return ts_recording_append(context, block, payload, err);
}

struct ts_block_sink ts_recording_sink(struct ts_recording *recording)
{
	return (struct ts_block_sink){ .append = append_to, .context = recording };
}

int ts_recording_queue(struct ts_recording *recording, struct ts_block *block, const void *payload,
		       struct ts_error *err)
{
	void *copy = malloc(block->bytes ? block->bytes : 1);
	int result;

	if (copy && block->bytes)
		memcpy(copy, payload, block->bytes);
	pthread_mutex_lock(&recording->lock);
	result = check_alive(recording, err);
	if (!result &&
	    (!copy || ts_grow_array((void **)&recording->queued, &recording->queued_capacity,
				    recording->queued_count + 1, sizeof(*recording->queued))))
		result = ts_error_set(err, TS_ENOMEM, "no memory");
	if (!result && ts_recording_note(recording, block, payload))
		result = ts_error_set(err, TS_ENOMEM, "no memory");
	if (!result)
		recording->queued[recording->queued_count++] =
			(struct queued_block){ .block = *block, .payload = TS_STEAL(copy) };
	pthread_cond_signal(&recording->work);
	pthread_mutex_unlock(&recording->lock);
	free(copy);
	return result;
}

/* ---- commands ---- */

static int command(struct ts_recording *recording, enum command what, const char *new_path,
		   struct ts_error *err)
{
	int result;

	pthread_mutex_lock(&recording->lock);
	result = check_alive(recording, err);
	if (result) {
		pthread_mutex_unlock(&recording->lock);
		return result;
	}
	recording->command = what;
	recording->new_path = new_path;
	recording->attempts = 0;
	pthread_cond_signal(&recording->work);
	while (recording->command)
		pthread_cond_wait(&recording->done, &recording->lock);
	result = recording->result;
	if (result && err)
		*err = recording->answer;
	pthread_mutex_unlock(&recording->lock);
	return result;
}

int ts_recording_checkpoint(struct ts_recording *recording, bool save, struct ts_error *err)
{
	return command(recording, save ? COMMAND_SAVE : COMMAND_CHECKPOINT, NULL, err);
}

int ts_recording_rotate(struct ts_recording *recording, const char *new_path, struct ts_error *err)
{
	if (!new_path || !*new_path || strcmp(new_path, recording->path) == 0)
		return ts_error_set(err, TS_EINVAL, "a rotation needs another file name");
	return command(recording, COMMAND_ROTATE, new_path, err);
}

/* Appends a last anchor, so that all events lie between two anchors, and CLOSE. */
static void append_last(struct ts_recording *recording)
{
	struct ts_clocks clocks = { .kind = (enum ts_live_clock)recording->origin.clock,
				    .mult = recording->origin.counter_mult };
	struct ts_block block = { .type = TS_BLOCK_CLOCK, .bytes = sizeof(struct ts_block_clock) };
	struct ts_block_clock clock;

	if (!recording->recovering) {
		ts_clocks_anchor(&clocks, &clock);
		ts_recording_append(recording, &block, &clock, NULL);
	}
	block = (struct ts_block){ .type = TS_BLOCK_CLOSE };
	/* Both only help a successor: ignore a full disk. */
	ts_recording_append(recording, &block, NULL, NULL);
}

int ts_recording_finish(struct ts_recording *recording, struct ts_error *err)
{
	append_last(recording);
	return command(recording, COMMAND_FINISH, NULL, err);
}

/* ---- queries ---- */

void ts_recording_status(struct ts_recording *recording, struct ts_recording_status *ret_status)
{
	pthread_mutex_lock(&recording->lock);
	*ret_status = (struct ts_recording_status){
		.journal_limit = recording->limit,
		.journal_bytes = recording->journal ? ts_journal_bytes(recording->journal) : 0,
		.trace_bytes = recording->trace_bytes,
		.events = recording->counts.events,
		.lost = recording->counts.lost,
		.lost_by_buffers = recording->counts.lost_by_buffers,
		.measured = recording->counts.measured,
		.samples = recording->counts.samples,
		.decoded_bytes = recording->decoded,
		.full = recording->full,
		.commands = recording->counts.commands,
		.blob_bytes = recording->counts.blob_bytes,
		.replayable_windows = recording->counts.replayable_windows,
		.failed_windows = recording->counts.failed_windows,
		.checks = recording->counts.checks,
		.kept_checks = recording->counts.kept_checks,
	};
	memcpy(ret_status->not_replayable, recording->counts.not_replayable,
	       sizeof(ret_status->not_replayable));
	pthread_mutex_unlock(&recording->lock);
}

const struct ts_block_open *ts_recording_origin(const struct ts_recording *recording)
{
	return &recording->origin;
}

const char *ts_recording_path(const struct ts_recording *recording)
{
	return recording->path;
}

bool ts_recording_positions(struct ts_recording *recording, uint64_t area, uint64_t *ret_dictionary,
			    void (*ring)(void *context, uint32_t ring, uint64_t position,
					 uint64_t events, uint64_t dropped),
			    void *context)
{
	const struct ts_area_positions *found;

	pthread_mutex_lock(&recording->lock);
	found = ts_positions_find(&recording->positions, area);
	if (found)
		*ret_dictionary = found->dictionary;
	for (size_t i = 0; found && ring && i < found->ring_count; i++)
		if (found->rings[i].known)
			ring(context, (uint32_t)i, found->rings[i].position, found->rings[i].events,
			     found->rings[i].dropped);
	pthread_mutex_unlock(&recording->lock);
	return found != NULL;
}

int ts_recording_open_areas(struct ts_recording *recording, uint64_t **ret_areas, size_t *ret_count,
			    struct ts_error *err)
{
	const struct ts_positions *positions = &recording->positions;
	uint64_t *areas;
	size_t count = 0;

	pthread_mutex_lock(&recording->lock);
	areas = ts_alloc_array(positions->count, sizeof(*areas));
	for (size_t i = 0; areas && i < positions->count; i++)
		if (!positions->areas[i].ended)
			areas[count++] = positions->areas[i].area;
	pthread_mutex_unlock(&recording->lock);
	if (!areas)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	*ret_areas = areas;
	*ret_count = count;
	return TS_OK;
}

__extension__ typedef __int128 wide_int;

int64_t ts_recording_time(struct ts_recording *recording, uint64_t counter)
{
	const struct ts_block_open *open = &recording->origin;
	struct ts_live_anchor a = { .counter = open->started_counter,
				    .monotonic_ns = open->started_monotonic_ns };
	struct ts_live_anchor b;
	wide_int ns;

	pthread_mutex_lock(&recording->lock);
	b = recording->anchors[1].anchor;
	if (recording->anchor_count > 1)
		a = recording->anchors[0].anchor;
	ns = (wide_int)counter - a.counter;
	if (recording->anchor_count && b.counter > a.counter)
		ns = ns * (b.monotonic_ns - a.monotonic_ns) / (wide_int)(b.counter - a.counter);
	else
		ns = ns * (wide_int)open->counter_mult / ((wide_int)1 << 32);
	ns += (wide_int)open->trace_start_ns + a.monotonic_ns - open->started_monotonic_ns;
	pthread_mutex_unlock(&recording->lock);
	return ns > INT64_MAX ? INT64_MAX : ns < 0 ? 0 : (int64_t)ns;
}

/* ---- closing ---- */

void ts_recording_close(struct ts_recording *recording)
{
	if (!recording)
		return;
	if (recording->has_thread) {
		pthread_mutex_lock(&recording->lock);
		recording->stopping = true;
		pthread_cond_signal(&recording->work);
		pthread_mutex_unlock(&recording->lock);
		pthread_join(recording->thread, NULL);
	}
	ts_decoder_free(recording->decoder);
	ts_writer_close(recording->writer);
	ts_journal_close(recording->journal);
	if (recording->reserve_bytes)
		ts_recording_drop_reserve(recording);
	if (recording->lock_fd >= 0)
		close(recording->lock_fd);
	for (size_t i = 0; i < recording->queued_count; i++)
		free(recording->queued[i].payload);
	free(recording->queued);
	ts_positions_release(&recording->positions);
	ts_text_release(&recording->payload);
	pthread_cond_destroy(&recording->done);
	pthread_cond_destroy(&recording->work);
	pthread_mutex_destroy(&recording->lock);
	free(recording->path);
	free(recording->journal_path);
	free(recording);
}
