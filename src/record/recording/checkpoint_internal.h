/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording's state, shared by recording.c (public functions, decoder thread), checkpoint_write.c
 * (checkpoint, rotation, finish, full disks), checkpoint_open.c (new and resumed recordings) and
 * checkpoint_recover.c. Nobody else includes this.
 */
#ifndef TS_RECORD_RECORDING_CHECKPOINT_INTERNAL_H
#define TS_RECORD_RECORDING_CHECKPOINT_INTERNAL_H

#include <pthread.h>

#include <tracesmith/writer.h>

#include "base/text.h"
#include "live/area_spool.h"
#include "live/journal.h"
#include "record/decode/decoder.h"
#include "record/recording/checkpoint_positions.h"
#include "record/recording/recording.h"

/* A block that is not in the journal; kept until a checkpoint includes it in the state. */
struct queued_block {
	struct ts_block block;
	void *payload;
};

enum command { COMMAND_NONE, COMMAND_CHECKPOINT, COMMAND_SAVE, COMMAND_ROTATE, COMMAND_FINISH };

/* Members belong to the decoder thread or are guarded by `lock`. */
struct ts_recording {
	struct ts_recording_options options;
	bool recovering;             /* may be of another boot: do not use this machine's clocks */
	struct ts_block_open origin; /* as opened; never changes */

	/* Owned by the decoder thread once it runs. */
	struct ts_decoder *decoder;
	struct ts_writer *writer; /* NULL: no disk space for it now */
	struct ts_text payload;
	int lock_fd;        /* holds the lock on the trace */
	uint64_t limit;     /* journal bytes that trigger a checkpoint */
	uint64_t preamble;  /* journal bytes that a checkpoint wrote. Written under `lock` */
	uint64_t turned_at; /* a checkpoint is due when `limit` more bytes are decoded, or as many
			       as are left */
	uint64_t reserve_bytes; /* size of the reserve file, 0: none. Written under `lock` */
	bool held;              /* decoding blocks that a predecessor may have decoded already */

	pthread_mutex_t lock; /* guards all members below */
	pthread_cond_t work;  /* there is work for the decoder */
	pthread_cond_t done;  /* the decoder made progress */
	bool has_thread;
	pthread_t thread;
	bool stopping;

	char *path, *journal_path;
	struct ts_block_open open; /* of the current journal */
	struct ts_journal *journal;
	uint64_t decoded; /* journal bytes decoded */
	struct queued_block *queued;
	size_t queued_count, queued_capacity, queued_taken;

	enum command command;
	const char *new_path; /* of a rotation */
	int attempts;         /* of the command that failed on a full disk */
	int result;
	struct ts_error answer;

	struct ts_error failure; /* permanent; code 0: none */
	bool full;
	bool stalled;        /* the decoder waits for disk space */
	int64_t retry_ns;    /* time of its next attempt, CLOCK_MONOTONIC */
	int64_t retry_pause; /* doubles with each attempt */
	bool finished;
	struct ts_decoder_counts counts;
	uint64_t trace_bytes;

	struct ts_positions positions;
	struct ts_block_clock anchors[2]; /* the newest two */
	uint32_t anchor_count;
};

/* ---- recording.c ---- */

int ts_recording_start(struct ts_recording *recording, struct ts_error *err);
/* Updates positions and anchors from a block. Lock held, or before the thread runs. */
int ts_recording_note(struct ts_recording *recording, const struct ts_block *block,
		      const void *payload);

/* ---- checkpoint_write.c: on the decoder thread, or before it runs ---- */

/*
 * Opens the trace at its committed length and creates a new decoder, which must decode the journal
 * from its start. Used after opening, and after an error of the writer.
 */
int ts_recording_reload(struct ts_recording *recording, struct ts_error *err);
int ts_recording_do_checkpoint(struct ts_recording *recording, bool save, struct ts_error *err);
int ts_recording_do_rotate(struct ts_recording *recording, const char *new_path,
			   struct ts_error *err);
int ts_recording_do_finish(struct ts_recording *recording, struct ts_error *err);
void ts_recording_make_reserve(struct ts_recording *recording);
void ts_recording_drop_reserve(struct ts_recording *recording);
/* Free bytes of the trace's file system. */
uint64_t ts_recording_free_bytes(const struct ts_recording *recording);

/* ---- checkpoint_open.c ---- */

/* "T.sbt" and ".journal" give "T.sbt.journal"; caller frees; NULL: no memory. */
char *ts_recording_beside(const char *path, const char *ending);
/*
 * Refuses what others have put where the trace and the files beside it go. Call it first: what is
 * there is removed if something fails later.
 */
int ts_recording_check_names(const char *path, struct ts_error *err);
/*
 * Opens or creates a trace and locks it; `flags` as those of ts_output_open(). On success the path
 * still names the locked file.
 */
int ts_recording_lock(const char *path, unsigned int flags, int *ret_fd, struct ts_error *err);
/* Fills in the OPEN block of a new recording, which begins now. Measures the clock. */
void ts_recording_describe(struct ts_block_open *open, uint64_t session, bool redact);
/* Generates a trace id. */
void ts_recording_draw_id(uint8_t id[16]);
/* Opens with TS_RECORDING_RESUME; `recovering` as above. */
int ts_recording_open_any(struct ts_recording **ret_recording, const char *path,
			  const struct ts_recording_options *options, bool recovering,
			  struct ts_error *err);

#endif
