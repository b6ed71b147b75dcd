/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares runs with the recording and with each other (docs/replay.md, section 6.4).
 * check_captures.c decides what is captured from a run, check.c hashes and compares it,
 * check_verdict.c writes the verdict. Private to src/replay.
 *
 * Hashes of all runs are compared. Content is needed to report which bytes differ and to apply a
 * tolerance. That of the recording is read where a hash differs. That of the first run is kept if
 * all of it is at most TS_REPLAY_KEEP_BYTES (with a tolerance TS_REPLAY_KEEP_MOST, otherwise an
 * error); else further runs fetch what differed.
 */
#ifndef TS_REPLAY_CHECK_CHECK_H
#define TS_REPLAY_CHECK_CHECK_H

#include "replay/check/values.h"
#include "replay/replay.h"

#define TS_REPLAY_KEEP_BYTES ((uint64_t)256 << 20)
#define TS_REPLAY_KEEP_MOST ((uint64_t)4 << 30)

/* The expected value of a capture. */
struct ts_replay_expected {
	bool is_recorded; /* known from the recording or from the reference run */
	uint64_t hash;
	struct ts_replay_blob_ref blob; /* recorded content; none: only the hash is known */
	void *content;                  /* of the reference run, or NULL */
	size_t earlier; /* another capture of its position from the same byte on, plus 1; 0 */
};

/* What the current run is for. */
enum ts_replay_phase {
	TS_REPLAY_PHASE_REFERENCE, /* without replaced kernels, as expected values */
	TS_REPLAY_PHASE_FIRST,
	TS_REPLAY_PHASE_AGAIN,
	TS_REPLAY_PHASE_FETCH,     /* fetches the content of one capture, compares nothing */
	TS_REPLAY_PHASE_REORDERED, /* in another legal order: compares the end */
};

/* Pages that a run delivered, by memory and offset. A zeroed struct is empty. */
struct ts_replay_page_list {
	struct ts_replay_page *items;
	uint64_t count;
};

/* Where pages differ; pages 0: nowhere. */
struct ts_replay_page_difference {
	uint32_t capture;
	struct ts_replay_page first;
	uint64_t pages;
};

/* What further runs found out about a difference of pages (replay_cause.c). */
struct ts_replay_cause {
	/* Positions in the plan of the command, and of the one that it races with; NONE. */
	uint32_t position, other;
	struct ts_replay_page_difference difference;
	void *one, *another; /* contents of its first page; NULL: not known */
	uint32_t runs;       /* to find this */
	char note[256];
};

struct ts_replay_checker {
	const struct ts_replay *replay;
	const struct ts_value_type *type; /* --as */
	struct ts_replay_capture *captures;
	struct ts_replay_expected *expected; /* by capture, as the arrays below */
	uint64_t *first;                     /* hashes of the first run */
	void **content;                      /* of the first run; NULL if not kept */
	bool *seen;                          /* captures received in this run */
	size_t count, capacity;
	struct ts_pairmap starts; /* of the last position: (memory, offset) -> capture, plus 1 */
	bool keeps;
	enum ts_replay_phase phase;
	/* The first capture that differs from the recording, and between runs; TS_REPLAY_NONE. */
	uint32_t differs, varies;
	void *differing, *varying; /* its content in the run that differed */
	void *recorded;            /* recorded content of `differs`, if there is any */
	uint32_t near, different;  /* recorded checks: equal within the tolerance; different */
	void *fetched;
	uint32_t fetch;
	uint32_t expectations; /* number of recorded checks */
	uint32_t unknown;      /* recorded checks that depend on skipped commands */
	uint32_t dump_capture; /* of --dump; TS_REPLAY_NONE */
	void *dump;            /* its content */
	uint64_t dump_bytes;
	/* Captures that are pages: of the first run, and of the one that runs; by capture. */
	bool has_pages;
	struct ts_replay_page_list *first_pages, *now_pages;
	uint32_t final_pages; /* capture of all pages at the end; TS_REPLAY_NONE */
	struct ts_replay_page_difference page_difference, page_variation; /* of differs, varies */
	uint32_t varying_runs;
	bool reordered_differs; /* the run in another order that has just ended */
	struct ts_replay_cause cause;
};

/* Decides what is captured and sets replay->captures. */
int ts_replay_checker_new(struct ts_replay_checker **ret_checker, struct ts_replay *replay,
			  struct ts_error *err);
void ts_replay_checker_free(struct ts_replay_checker *checker);

/* check_captures.c: fills captures and expected. */
int ts_replay_captures_choose(struct ts_replay_checker *checker, struct ts_error *err);
/* Captures the same position and range once. Calls come in order of position. 0 or TS_ENOMEM. */
int ts_replay_captures_add(struct ts_replay_checker *checker, uint32_t position,
			   const struct ts_replay_range *range, const char *why, size_t *ret_index);
/* Unreplayable memory does not exist in a replay. */
bool ts_replay_can_see(const struct ts_replay_checker *checker, uint32_t memory);
/* check_dump.c: captures the memory of --dump, after the command at this position. */
int ts_replay_captures_add_dump(struct ts_replay_checker *checker, uint32_t position,
				struct ts_error *err);

/* Called around each run. end() checks that all content has arrived. */
void ts_replay_checker_begin(struct ts_replay_checker *checker, enum ts_replay_phase phase);
int ts_replay_checker_end(struct ts_replay_checker *checker, struct ts_error *err);
/* For struct ts_replay_outcome; the context is the checker. */
int ts_replay_checker_content(void *context, uint32_t capture, const void *data,
			      struct ts_error *err);

/* check_pages.c: the same for captures that are pages. */
int ts_replay_checker_pages(void *context, uint32_t capture, const struct ts_replay_page *pages,
			    uint64_t count, struct ts_error *err);
/* Compares the pages of a run, when all have arrived. */
int ts_replay_pages_end(struct ts_replay_checker *checker, struct ts_error *err);
void ts_replay_page_list_release(struct ts_replay_page_list *list);
/* Replaces the list. TS_EINVAL: the pages are not sorted, or of no memory. */
int ts_replay_page_list_copy(struct ts_replay_page_list *list, const struct ts_replay *replay,
			     const struct ts_replay_page *pages, uint64_t count,
			     struct ts_error *err);
/* Do they differ? */
bool ts_replay_page_list_compare(const struct ts_replay_page_list *a,
				 const struct ts_replay_page_list *b,
				 struct ts_replay_page_difference *ret_difference);
uint64_t ts_replay_page_list_hash(const struct ts_replay_page_list *list);
/* The recorded content of the first page that differs from the recording; unchanged: none. */
int ts_replay_pages_recorded(const struct ts_replay_checker *checker, void **ret_content,
			     struct ts_error *err);
/* May a command of this kind have changed memory? */
bool ts_replay_changes_memory(const struct ts_replay_command_info *command);

/*
 * The capture whose content another run must fetch to report the difference; TS_REPLAY_NONE: none.
 */
uint32_t ts_replay_checker_wants(const struct ts_replay_checker *checker);

/* check_verdict.c: fills in the verdict. */
void ts_replay_verdict(const struct ts_replay_checker *checker, struct ts_replay_report *report);

#endif
