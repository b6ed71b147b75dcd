/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Analyses: each answers one question about the work of a job (state/work/work.h).
 *
 * To add an analysis `waves`, write src/analyze/waves.c with
 *
 *	const struct ts_analysis ts_analysis_waves = {
 *		.name = "waves", .summary = "...", .load_flags = ..., .run = run,
 *	};
 *
 * and add ANALYSIS(waves) to analyses.def. It gets what it needs from `request` and fills `result`;
 * it does not know the command line or how results are shown. Document each number in
 * docs/analyze.md.
 */
#ifndef TS_ANALYZE_ANALYZE_H
#define TS_ANALYZE_ANALYZE_H

#include <tracesmith/analyze.h>

#include "analyze/result.h"
#include "base/option_spec.h"
#include "state/clocks/clock_alignment.h"
#include "state/collectives/collectives.h"
#include "state/graph/graph.h"
#include "state/states/states.h"
#include "state/work/work.h"

/* Options of all analyses, then options of single ones (struct ts_analysis lists which). */
struct ts_analysis_options {
	enum ts_rounding rounding;
	int64_t top; /* rows of each table in text; 0: the analysis chooses */
	bool brief;  /* output is text: rows that it does not show need not be computed */
	/*
	 * Operands and options that select the same work, for the commands that `advice` prints.
	 * NULL: unknown.
	 */
	const char *traces;

	int64_t short_ns;       /* a kernel below this is short */
	int64_t wait_ns;        /* a gap below this is caused by the device */
	int64_t delay_ns;       /* a launch delay above this is long */
	int64_t full;           /* a queue with this many commands is full */
	const char *annotation; /* restrict the window to an instance of this annotation; NULL: no
				   restriction */
	int64_t instance;       /* which instance, from 0 */
	const char *what_if; /* "NAME=2" (twice as fast) or "NAME=free"; NULL: the names that save
				most */
	int64_t depth;       /* frames to show of each stack; 0: the default */
	bool by_shape;       /* operators: distinguish the shapes of inputs */
	int64_t operator_order; /* operators: what to sort by; 0: self time */
	bool idle;              /* count threads that are idle all the time */
};

#define TS_ANALYSIS_OPTIONS_DEFAULT                                                    \
	{                                                                              \
		.short_ns = 10000, .wait_ns = 30000, .delay_ns = 100000, .full = 1024, \
	}

/*
 * Options and cached intermediate results: graph, states, collectives and clocks are computed once
 * for all analyses of a run.
 */
struct ts_analyze_request {
	struct ts_work *work;
	struct ts_analysis_options options;
	struct ts_graph *graph, *host_graph;
	struct ts_states *states;
	/* If `work` is a selection: the complete work of the traces, with its graph and states. */
	struct ts_work *all_work;
	struct ts_graph *all_graph;
	struct ts_states *all_states;
	struct ts_collectives *collectives;
	struct ts_clock_alignment *clocks;
	bool aligned; /* the work's times have been shifted by `clocks` */
	/* Set by critical-path: the kernel that saves most if twice as fast. */
	struct {
		bool known;
		const char *name; /* NULL: no kernel saves anything */
		int64_t saves_ns;
	} best_kernel;
};

void ts_analyze_request_init(struct ts_analyze_request *request, struct ts_work *work);
void ts_analyze_request_release(struct ts_analyze_request *request);

/* Each is computed on first use; NULL with *err set on failure. */
const struct ts_graph *ts_analyze_graph(struct ts_analyze_request *request, struct ts_error *err);
const struct ts_graph *ts_analyze_host_graph(struct ts_analyze_request *request,
					     struct ts_error *err);
const struct ts_states *ts_analyze_states(struct ts_analyze_request *request, struct ts_error *err);

/*
 * States of all commands in the window of the selected ones. Commands outside the selection (issued
 * before the trace began, or in another step) also occupied the device and delayed others.
 * `states->work` may differ from the request's work: ranks, devices, streams and threads have the
 * same indices in both; commands, calls and texts do not.
 */
const struct ts_states *ts_analyze_all_states(struct ts_analyze_request *request,
					      struct ts_error *err);
const struct ts_collectives *ts_analyze_collectives(struct ts_analyze_request *request,
						    struct ts_error *err);
const struct ts_clock_alignment *ts_analyze_clocks(struct ts_analyze_request *request,
						   struct ts_error *err);

/*
 * Shifts the times of all ranks by the clock offsets, once, and drops the cached graph and states.
 * The caller does this before analyses with TS_ANALYSIS_ALIGNED; the numbers of others do not
 * depend on it.
 */
const struct ts_clock_alignment *ts_analyze_align(struct ts_analyze_request *request,
						  struct ts_error *err);

/*
 * Compares times of several ranks: needs aligned clocks, if collectives connect the ranks and the
 * user allows it.
 */
#define TS_ANALYSIS_ALIGNED 1u
/* Its notes are an answer even if its tables are empty: `all` shows it in any case. */
#define TS_ANALYSIS_NOTES_ANSWER 2u

struct ts_analysis {
	const char *name;
	const char *alias;       /* an earlier name, still accepted; NULL: none */
	const char *summary;     /* one line for --list and --help */
	const char *example;     /* arguments of `tracesmith analyze`, for --help; NULL: none */
	unsigned int load_flags; /* what it needs of the work: TS_WORK_* */
	unsigned int flags;      /* TS_ANALYSIS_* */
	/* Offsets are into struct ts_analysis_options. */
	const struct ts_option_spec *options;
	size_t option_count;
	int (*run)(struct ts_analyze_request *request, struct ts_result *result,
		   struct ts_error *err);
};

/* The option --short, for each analysis that distinguishes short kernels. */
#define TS_ANALYSIS_OPTION_SHORT                                               \
	{                                                                      \
		.name = "short", .type = TS_OPTION_SPEC_TIME, .value = "TIME", \
		.doc = "a kernel below this is short; default 10us",           \
		.offset = offsetof(struct ts_analysis_options, short_ns),      \
	}

/* In the order of --list. */
const struct ts_analysis *const *ts_analysis_table(size_t *ret_count);
/* Finds by name or alias, given as `length` bytes of `text`; NULL: none. */
const struct ts_analysis *ts_analysis_lookup(const char *text, size_t length);

#define ANALYSIS(name) extern const struct ts_analysis ts_analysis_##name;
#include "analyze/analyses.def"
#undef ANALYSIS

#endif
