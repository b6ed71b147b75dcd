/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares runs with the recording and with each other (docs/replay.md, section 6.4).
 * check_captures.c decides what is captured from a run, check.c hashes and compares it,
 * check_verdict.c formulates the verdict. Private to src/replay.
 *
 * Hashes of all runs are compared. Content, which is needed to say which bytes differ and to allow
 * for a tolerance, is kept of the first run where all of it is at most TS_REPLAY_KEEP_BYTES (with a
 * tolerance TS_REPLAY_KEEP_MOST, or it is refused); else one more run fetches what differed.
 */
#ifndef TS_REPLAY_CHECK_CHECK_H
#define TS_REPLAY_CHECK_CHECK_H

#include "replay/check/values.h"
#include "replay/replay.h"

#define TS_REPLAY_KEEP_BYTES ((uint64_t)256 << 20)
#define TS_REPLAY_KEEP_MOST ((uint64_t)4 << 30)

/* What a capture must be equal to. */
struct ts_replay_expected {
	bool is_recorded; /* the recording, or a run without replaced kernels, has it */
	uint64_t hash;
	void *content; /* of a run without replaced kernels; NULL: only the hash is known */
};

/* What content is for. */
enum ts_replay_phase {
	TS_REPLAY_PHASE_REFERENCE, /* a run without replaced kernels: what others are compared with
				    */
	TS_REPLAY_PHASE_FIRST,
	TS_REPLAY_PHASE_AGAIN,
	TS_REPLAY_PHASE_FETCH, /* the content of one capture is wanted, nothing is compared */
};

struct ts_replay_checker {
	const struct ts_replay *replay;
	const struct ts_value_type *type; /* --as */
	struct ts_replay_capture *captures;
	struct ts_replay_expected *expected; /* by capture, as all below */
	uint64_t *first;                     /* hashes of the first run */
	void **content;                      /* of the first run; NULL where nothing is kept */
	bool *seen;                          /* in this run */
	size_t count, capacity;
	bool keeps;
	enum ts_replay_phase phase;
	/*
	 * The first capture that differs from the recording, and from run to run; TS_REPLAY_NONE.
	 */
	uint32_t differs, varies;
	void *differing, *varying; /* content there of the run that showed it */
	void *fetched;
	uint32_t fetch;
	uint32_t expectations; /* recorded checks */
	uint32_t dump_capture; /* of --dump; TS_REPLAY_NONE */
	void *dump;            /* its content */
	uint64_t dump_bytes;
};

/* Decides what is captured, and hands it to the replay. */
int ts_replay_checker_new(struct ts_replay_checker **ret_checker, struct ts_replay *replay,
			  struct ts_error *err);
void ts_replay_checker_free(struct ts_replay_checker *checker);

/* check_captures.c: fills captures and expected. */
int ts_replay_captures_choose(struct ts_replay_checker *checker, struct ts_error *err);

/* Around each run. end: has all content come? */
void ts_replay_checker_begin(struct ts_replay_checker *checker, enum ts_replay_phase phase);
int ts_replay_checker_end(struct ts_replay_checker *checker, struct ts_error *err);
/* For struct ts_replay_outcome; the context is the checker. */
int ts_replay_checker_content(void *context, uint32_t capture, const void *data,
			      struct ts_error *err);

/* The capture whose content one more run must fetch to say what differs; TS_REPLAY_NONE: none. */
uint32_t ts_replay_checker_wants(const struct ts_replay_checker *checker);

/* check_verdict.c: what came of it. */
void ts_replay_verdict(const struct ts_replay_checker *checker, struct ts_replay_report *report);

#endif
