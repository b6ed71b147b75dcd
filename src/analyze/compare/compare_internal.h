/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of a comparison: compare_names.c joins the names of both sides and collects
 * samples, compare.c tests them, compare_tables.c fills the result.
 */
#ifndef TS_ANALYZE_COMPARE_COMPARE_INTERNAL_H
#define TS_ANALYZE_COMPARE_COMPARE_INTERNAL_H

#include <math.h>

#include "analyze/compare/compare.h"
#include "base/map.h"

/* Kind of thing a name belongs to; those up to OTHER are on the device. */
enum ts_compare_kind {
	TS_COMPARE_KERNEL,
	TS_COMPARE_COPY,
	TS_COMPARE_FILL,
	TS_COMPARE_OTHER,
	TS_COMPARE_STEP,
	TS_COMPARE_OPERATOR,
	TS_COMPARE_ANNOTATION,
	TS_COMPARE_CALL,
	TS_COMPARE_PYTHON,
	TS_COMPARE_SLICE,
	TS_COMPARE_KIND_COUNT
};

static inline bool ts_compare_is_gpu(enum ts_compare_kind kind)
{
	return kind <= TS_COMPARE_OTHER;
}

#define TS_COMPARE_NO_SLOT UINT32_MAX

/* One instance of a name. */
struct ts_compare_sample {
	int64_t ns;    /* TS_ABSENT: duration unknown */
	uint32_t slot; /* its step; TS_COMPARE_NO_SLOT: none */
};

/* Totals of a name on one side. */
struct ts_compare_sum {
	uint64_t count, timed;
	int64_t total_ns;
};

struct ts_compare_side {
	const struct ts_work *work;
	/* Steps with the same number on all ranks share a slot. */
	uint32_t *slot_of_step;
	uint32_t *slot_ranks; /* number of ranks that have the step */
	uint32_t slot_count;
	struct ts_map keys; /* (name, kind) to key */
	struct ts_compare_sum *sums;
	size_t sum_capacity;
	uint64_t *first; /* key_count + 1: samples of key k are samples[first[k] ..] */
	struct ts_compare_sample *samples;
};

/* A key stands for a kind and a name, on either side. Keys are dense, from 0. */
struct ts_compare_names {
	struct ts_compare_side sides[2];
	struct ts_strmap texts; /* a letter for the kind, then the name */
	uint32_t key_count;
	unsigned int wanted; /* TS_COMPARE_GPU, TS_COMPARE_CPU */
	bool by_step;        /* both sides have steps */
};

int ts_compare_names_init(struct ts_compare_names *names, const struct ts_work *a,
			  const struct ts_work *b, const struct ts_compare_options *options);
void ts_compare_names_release(struct ts_compare_names *names);

enum ts_compare_kind ts_compare_key_kind(const struct ts_compare_names *names, uint32_t key);
const char *ts_compare_key_name(const struct ts_compare_names *names, uint32_t key);

/* ---- verdicts ---- */

enum ts_compare_test {
	TS_COMPARE_UNTESTED, /* the name is on one side only */
	TS_COMPARE_ONE_SAMPLE,
	TS_COMPARE_BY_STEPS,     /* Welch's t over totals of steps */
	TS_COMPARE_BY_INSTANCES, /* Mann-Whitney U over durations */
};

/* The verdict on a name. */
struct ts_compare_entry {
	uint32_t key;
	bool is_step;
	enum ts_verdict verdict;
	enum ts_compare_test test;
	size_t samples[2];
	double tested[2]; /* means of the tested samples, ns */
	double p;
	int64_t change_ns;
	double unit_change_ns; /* per step (or rank) */
	double time_percent;   /* NaN: A has no time */
	int count_change;      /* 1: more instances, -1: fewer, 0: as many */
	double rates[2];       /* instances per step (or rank) */
};

struct ts_comparison {
	struct ts_compare_names names;
	const struct ts_compare_options *options;
	struct ts_compare_entry *entries;
	double *values[2]; /* scratch: durations of a name's instances, or totals of its steps */
	size_t value_capacity[2];
	uint64_t units[2]; /* steps (or ranks) that totals are divided by */
	bool per_unit;
};

/* Mean duration; NaN if none is known. */
static inline double ts_compare_mean(const struct ts_compare_sum *sum)
{
	return sum->timed ? (double)sum->total_ns / (double)sum->timed : NAN;
}

/* Converts to integer ns, saturating; NaN: TS_ABSENT. */
static inline int64_t ts_compare_ns(double ns)
{
	if (isnan(ns))
		return TS_ABSENT;
	if (ns >= 0x1p63)
		return INT64_MAX;
	return ns <= -0x1p63 ? INT64_MIN + 1 : (int64_t)llround(ns);
}

/* Puts the tables summary, counts and changes, and notes. Sorts `entries`. 0 or TS_ENOMEM. */
int ts_compare_show(struct ts_comparison *compare, enum ts_compare_outcome outcome,
		    struct ts_result *result);

#endif
