/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Advice: findings in plain words, each with the time that it could save, its evidence and the
 * analysis that shows it. Each check is a function in the table of advice.c that adds findings,
 * none without evidence.
 *
 * To add a check, write a function of type ts_advice_check in one of advice_*.c, declare it below
 * and add it to the table. Savings are of a rank's wall time, the mean over all ranks.
 */
#ifndef TS_ANALYZE_ADVICE_ADVICE_H
#define TS_ANALYZE_ADVICE_ADVICE_H

#include "analyze/analyze.h"
#include "base/text.h"

struct ts_advice {
	int64_t saves_ns;
	const char *finding, *evidence; /* in the result's arena */
	const char *analysis; /* arguments, after the traces, of the command that shows it */
};

struct ts_advisor {
	struct ts_analyze_request *request;
	const struct ts_work *work;
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

/* Formats a duration into a buffer of the enclosing scope, for argument lists. */
#define TS_ADVICE_TIME(ns) \
	ts_format_duration_ns((char[TS_FORMAT_BYTES]){ 0 }, TS_FORMAT_BYTES, (ns))

/* The same for a count: "1 copy", "1,645 copies". */
#define TS_ADVICE_COUNT(count, noun) ts_advice_count_((char[64]){ 0 }, 64, (count), (noun))
const char *ts_advice_count_(char *buffer, size_t size, uint64_t count, const char *noun);

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

/* Appends a name for use in a sentence, without template and call arguments, truncated if long. */
void ts_advice_append_name(struct ts_text *out, const char *name);

/* ---- checks ---- */

/* advice_idle.c: idle devices */
ts_advice_check ts_advise_host_gaps;
ts_advice_check ts_advise_launch_bound;

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

#endif
