/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of a trace in time order, with what each one counts for. Memory does not grow with
 * the number of samples.
 *
 *	struct ts_samples samples;
 *	const struct ts_samples_options options = { .passes = 2 };
 *
 *	rc = ts_samples_open(&samples, reader, &options, err);
 *	if (!rc)
 *		rc = ts_samples_walk(&samples, count, &counts);
 *	if (!rc)
 *		rc = ts_samples_walk(&samples, write, &file);
 *	ts_samples_release(&samples);
 *
 * Driver calls, allocations and device work can be read as samples, too: see enum ts_samples_kind.
 */
#ifndef TS_TRACE_SAMPLES_H
#define TS_TRACE_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/reader.h>

#include "base/map.h"

enum ts_thread_state { TS_THREAD_RUNS, TS_THREAD_IDLE, TS_THREAD_WAITS_FOR_GIL };

/* What is read as samples. */
enum ts_samples_kind {
	TS_SAMPLES_TAKEN,       /* rows of `sample` */
	TS_SAMPLES_CALLS,       /* driver calls; each counts for 1 */
	TS_SAMPLES_ALLOCATIONS, /* allocations; each counts for its bytes */
	TS_SAMPLES_COMMANDS,    /* device work, with the stack that launched it; in file order */
};

struct ts_samples_options {
	enum ts_samples_kind kind;
	bool skip_idle;      /* no samples of idle threads */
	unsigned int passes; /* how many walks there will be, for the progress; 0: 1 */
	/* Told how far it is, in bytes; not 0 ends the walk with TS_ECANCELED. May be NULL. */
	int (*progress)(void *context, uint64_t done, uint64_t total);
	void *context;
};

struct ts_samples {
	uint64_t rows; /* of the table that is read */
	/*
	 * Weights are ns; samples without one mark an event, say nothing about time and count for
	 * 0. False: weights are numbers of samples, and none means 1. Those of devices are always
	 * numbers of samples.
	 */
	bool are_timed;
	const char *unit; /* of weights, as speedscope names it: "nanoseconds", "bytes", "none" */
	uint64_t passed_over; /* of a device: synchronisations, which are no work */
	struct ts_reader *reader;
	struct ts_samples_options options;
	/* private */
	struct ts_error *err;
	const struct ts_sample_source *source;
	struct ts_map states; /* string id to enum ts_thread_state */
	struct ts_map events; /* string id of a sample's name: does it count time? */
	uint64_t bytes;       /* of the chunks */
	unsigned int pass;
	struct ts_call_index *launches; /* TS_SAMPLES_COMMANDS, else NULL */
};

/* One sample. */
struct ts_stack_sample {
	int64_t start;  /* trace time */
	int64_t thread; /* id; 0, or of no row: none */
	int64_t stack;  /* id; 0: an empty one */
	int64_t count;  /* of samples; 0 see are_timed */
	int64_t weight; /* ns if are_timed, else the count again */
	int64_t leaf;   /* frame below the stack (see stack_lists.h): what was called; 0: none */
	enum ts_thread_state state;
	bool is_on_device; /* an instruction: no thread, a count, no time */
};

/* `options` may be NULL. Release also after failure. */
int ts_samples_open(struct ts_samples *samples, struct ts_reader *reader,
		    const struct ts_samples_options *options, struct ts_error *err);
void ts_samples_release(struct ts_samples *samples);

/*
 * Visits each sample; a visitor's non-zero result ends the walk and is returned. Samples are in
 * time order as long as no more than 16 chunks overlap in time, which no writer does for one
 * thread; callers that need monotonic times must check. Every walk has the same order.
 */
int ts_samples_walk(struct ts_samples *samples,
		    int (*visit)(void *context, const struct ts_stack_sample *sample),
		    void *context);

/*
 * Do samples of the event of that name (column `name` of `sample`) measure time? Events that perf
 * counts do not: "cycles", "page-faults" ...
 */
bool ts_samples_is_time(const char *name, size_t length);

#endif
