/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Advice: findings in plain words, each with the time that it could save (if its cause is known),
 * its evidence and the analysis that shows it. Each check is a function in the table of advice.c
 * that adds findings, none without evidence.
 *
 * To add a check, write a function of type ts_advice_check in one of advice_*.c, declare it below
 * and add it to the table, which says for which traces it is. Savings are of a rank's wall time,
 * the mean over all ranks.
 */
#ifndef TS_ANALYZE_ADVICE_ADVICE_H
#define TS_ANALYZE_ADVICE_ADVICE_H

#include "analyze/analyze.h"
#include "base/text.h"

struct ts_advice {
	int64_t weight_ns;              /* the most comes first */
	bool is_saving;                 /* could be saved; else its cause is unknown */
	bool is_bound;                  /* at most that much is saved */
	const char *finding, *evidence; /* in the result's arena */
	const char *analysis; /* arguments, after the traces, of the command that shows it */
};

/* Remedies in terms of the program, each the end of a sentence. */
struct ts_advice_words {
	const char *launch_less, *launch_at_once, *wait_less; /* for idle devices */
	const char *pin, *fuse;
	const char *speed_up, *batch; /* for operators */
	const char *show_host;        /* how to learn what the host does */
};

struct ts_advisor {
	struct ts_analyze_request *request;
	const struct ts_work *work;
	const struct ts_advice_words *words;
	const struct ts_states *states; /* of all commands: ts_analyze_all_states() */
	struct ts_result *result;
	int64_t window_ns; /* mean over ranks */
	struct ts_advice *findings;
	size_t count, capacity;
	struct ts_error *err;
};

typedef int ts_advice_check(struct ts_advisor *advisor);

/*
 * Adds a finding that saves `saves_ns_of_all` over all ranks together, unless the saving is too
 * small to matter. Takes the contents of `finding` and `evidence` and empties them. 0 or TS_ENOMEM.
 */
int ts_advise(struct ts_advisor *advisor, int64_t saves_ns_of_all, const char *analysis,
	      struct ts_text *finding, struct ts_text *evidence);

/* The same, where a remedy rarely saves all of that time. */
int ts_advise_at_most(struct ts_advisor *advisor, int64_t saves_ns_of_all, const char *analysis,
		      struct ts_text *finding, struct ts_text *evidence);

/*
 * The same for time of unknown cause: what could be saved of it is unknown, too, and the finding
 * says what to record.
 */
int ts_advise_unexplained(struct ts_advisor *advisor, int64_t ns_of_all, const char *analysis,
			  struct ts_text *finding, struct ts_text *evidence);

/* Formats a duration into a buffer of the enclosing scope, for argument lists. */
#define TS_ADVICE_TIME(ns) \
	ts_format_duration_ns((char[TS_FORMAT_BYTES]){ 0 }, TS_FORMAT_BYTES, (ns))

/*
 * Threads run side by side: what is saved in all of them shortens a rank by what is saved in the
 * busiest one. Time is added thread by thread, rank by rank.
 */
struct ts_advice_busiest {
	uint32_t rank, thread;
	int64_t thread_ns, rank_ns; /* of the current thread; the most of a thread of its rank */
	int64_t ns;                 /* of the busiest thread of each rank, all ranks together */
};

void ts_advice_busiest_add(struct ts_advice_busiest *busiest, uint32_t rank, uint32_t thread,
			   int64_t ns);

/* Time by name, to find the name with the most. */
struct ts_advice_sums {
	struct ts_map positions; /* name to index */
	struct ts_advice_sum {
		uint32_t name;
		uint64_t count;
		int64_t ns;
	} * sums;
	size_t count, capacity;
};

int ts_advice_sums_add(struct ts_advice_sums *sums, uint32_t name, int64_t ns);
void ts_advice_sums_release(struct ts_advice_sums *sums);

/* The largest sum, the first added among equals; NULL: none. */
const struct ts_advice_sum *ts_advice_sums_largest(const struct ts_advice_sums *sums);

/*
 * Appends a name for use in a sentence, without template and call arguments; the middle of a long
 * one is left out.
 */
void ts_advice_append_name(struct ts_text *out, const char *name);

/* ---- the program (advice_program.c) ---- */

const struct ts_advice_words *ts_advice_words(const struct ts_work *work);

/* How to record the calls that issue device work, with the tool that recorded this trace. */
const char *ts_advice_record_calls(const struct ts_work *work);

/* ---- checks ---- */

/* advice_idle.c: idle devices */
ts_advice_check ts_advise_host_gaps;
ts_advice_check ts_advise_launch_bound;

/* advice_unknown.c: idle devices, for reasons that the trace does not have */
ts_advice_check ts_advise_unknown_idle;

/* advice_device.c: avoidable device work */
ts_advice_check ts_advise_exposed_communication;
ts_advice_check ts_advise_fusion;
ts_advice_check ts_advise_single_precision;
ts_advice_check ts_advise_best_kernel;

/* advice_host.c: copies, allocations, steps and ranks */
ts_advice_check ts_advise_pageable_copies;
ts_advice_check ts_advise_small_copies;
ts_advice_check ts_advise_allocations;
ts_advice_check ts_advise_slow_steps;
ts_advice_check ts_advise_stragglers;

/* advice_operators.c: operators and spans of a program without device work */
ts_advice_check ts_advise_operators;

/* advice_samples.c: sampled Python and native stacks */
ts_advice_check ts_advise_samples;

#endif
