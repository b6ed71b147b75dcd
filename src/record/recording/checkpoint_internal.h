/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of a recording share: recording.c (what callers see, and the decoder's thread),
 * checkpoint_write.c (checkpoint, rotation, finish, full disks), checkpoint_open.c (new and resumed
 * recordings), checkpoint_recover.c. Nobody else includes this.
 */
#ifndef TS_RECORD_RECORDING_CHECKPOINT_INTERNAL_H
#define TS_RECORD_RECORDING_CHECKPOINT_INTERNAL_H

#include <pthread.h>

#include <tracesmith/writer.h>

#include "base/text.h"
#include "live/journal.h"
#include "record/decode/decoder.h"
#include "record/recording/checkpoint_positions.h"
#include "record/recording/recording.h"

/* A block that the journal does not have; kept until a checkpoint has it in the state. */
struct queued_block {
	struct ts_block block;
	void *payload;
};

enum command { COMMAND_NONE, COMMAND_CHECKPOINT, COMMAND_SAVE, COMMAND_ROTATE, COMMAND_FINISH };

/* Two kinds of members: those of the decoder's thread, and those under `lock`. */
struct ts_recording {
	struct ts_recording_options options;
	bool recovering;             /* of any boot; no clock of this machine belongs to it */
	struct ts_block_open origin; /* as it was opened; never changes */

	/* Of the decoder's thread, once it runs. */
	struct ts_decoder *decoder;
	struct ts_writer *writer; /* NULL: there is no room for it now */
	struct ts_text payload;
	int lock_fd;        /* of the trace, locked as long as this is open */
	uint64_t limit;     /* bytes of the journal that ask for a checkpoint */
	uint64_t preamble;  /* bytes of the journal that a checkpoint wrote. Written under `lock` */
	uint64_t turned_at; /* a checkpoint is due when `limit` more are decoded, or as much as is
			       left */
	uint64_t reserve_bytes; /* of the reserve file, 0: there is none. Written under `lock` */
	bool held;              /* blocks are decoded that a predecessor has seen, too */

	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t work;  /* something to do for the decoder */
	pthread_cond_t done;  /* the decoder has done something */
	bool has_thread;
	pthread_t thread;
	bool stopping;

	char *path, *journal_path;
	struct ts_block_open open; /* of the journal in force */
	struct ts_journal *journal;
	uint64_t decoded; /* bytes of it */
	struct queued_block *queued;
	size_t queued_count, queued_capacity, queued_taken;

	enum command command;
	const char *new_path; /* of a rotation */
	int attempts;         /* of the command, that met a full disk */
	int result;
	struct ts_error answer;

	struct ts_error failure; /* final; code 0 while all is well */
	bool full;
	bool stalled;        /* the decoder waits for room */
	int64_t retry_ns;    /* when it looks again, CLOCK_MONOTONIC */
	int64_t retry_pause; /* doubles */
	bool finished;
	struct ts_decoder_counts counts;
	uint64_t trace_bytes;

	struct ts_positions positions;
	struct ts_block_clock anchors[2]; /* the newest two */
	uint32_t anchor_count;
};

/* ---- recording.c ---- */

int ts_recording_start(struct ts_recording *recording, struct ts_error *err);
/* Takes note of a block of the journal: positions, anchors. Lock held, or no thread yet. */
int ts_recording_note(struct ts_recording *recording, const struct ts_block *block,
		      const void *payload);

/* ---- checkpoint_write.c; on the decoder's thread, or before it runs ---- */

/*
 * Opens the trace at what stands of it, and a new decoder: the journal is to be decoded from its
 * begin. After opening, and after an error of the writer.
 */
int ts_recording_reload(struct ts_recording *recording, struct ts_error *err);
int ts_recording_do_checkpoint(struct ts_recording *recording, bool save, struct ts_error *err);
int ts_recording_do_rotate(struct ts_recording *recording, const char *new_path,
			   struct ts_error *err);
int ts_recording_do_finish(struct ts_recording *recording, struct ts_error *err);
void ts_recording_make_reserve(struct ts_recording *recording);
void ts_recording_drop_reserve(struct ts_recording *recording);
/* Free bytes where the trace is. */
uint64_t ts_recording_free_bytes(const struct ts_recording *recording);

/* ---- checkpoint_open.c ---- */

/* "T.sbt" and ".journal" give "T.sbt.journal"; caller frees; NULL: no memory. */
char *ts_recording_beside(const char *path, const char *ending);
/* Opens (makes) and locks a trace; it is still what the path names then. */
int ts_recording_lock(const char *path, int *ret_fd, struct ts_error *err);
/* A new trace id. */
void ts_recording_draw_id(uint8_t id[16]);
/* With RESUME; `recovering` as above. */
int ts_recording_open_any(struct ts_recording **ret_recording, const char *path,
			  const struct ts_recording_options *options, bool recovering,
			  struct ts_error *err);

#endif
