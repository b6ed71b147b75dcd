/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of a trace, as exporters and analyses of stacks want them: in order of time, with
 * what each counts for. Memory does not grow with the number of samples.
 *
 * struct ts_samples samples;
 *	rc = ts_samples_open(&samples, reader, options, 2, err);
 *	if (!rc)
 *		rc = ts_samples_walk(&samples, count, &counts);
 *	if (!rc)
 *		rc = ts_samples_walk(&samples, write, &file);
 *	ts_samples_release(&samples);
 *
 * With TS_EXPORT_DEVICE it is what devices ran, as if each command were a sample of the stack that
 * launched it; with TS_EXPORT_CALLS driver calls, with TS_EXPORT_MEMORY memory that was taken.
 */
#ifndef TS_EXPORT_COMMON_SAMPLES_H
#define TS_EXPORT_COMMON_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/export.h>

#include "base/map.h"

enum ts_thread_state { TS_THREAD_RUNS, TS_THREAD_IDLE, TS_THREAD_WAITS_FOR_GIL };

struct ts_sample_source;

struct ts_samples {
	struct ts_reader *reader;
	const struct ts_export_options *options;
	struct ts_error *err;
	unsigned int flags; /* TS_EXPORT_* */
	uint64_t rows;      /* all that the trace has */
	/*
	 * Weights are ns. A sample without one was taken because something happened, a mark or a
	 * call: how many there are says nothing about time, and they count for 0. False: weights
	 * are numbers of samples, none stands for 1.
	 */
	bool are_timed;   /* whatever those of devices are, which are always numbers of samples */
	const char *unit; /* of weights, as speedscope names it: "nanoseconds", "bytes", "none" */
	const struct ts_sample_source *source; /* what is taken for a sample */
	struct ts_map states;                  /* string id to enum ts_thread_state */
	struct ts_map events; /* string id of a sample's name: does it count time? */
	uint64_t bytes;       /* of the chunks */
	uint64_t passed_over; /* of a device: synchronisations, which are no work */
	unsigned int pass, passes;
	struct ts_launches *launches; /* with TS_EXPORT_DEVICE, else NULL */
};

/* One sample. */
struct ts_seen {
	int64_t start;  /* trace time */
	int64_t thread; /* id; 0, or of no row: none */
	int64_t stack;  /* id; 0: an empty one */
	int64_t count;  /* of samples; 0 see are_timed */
	int64_t weight; /* ns if are_timed, else the count again */
	int64_t leaf; /* below the stack: 0, or what was launched or called, as stack_lists.h counts
			 texts */
	enum ts_thread_state state;
	bool is_on_device; /* an instruction, of no thread; has a count, and no time */
};

/* `passes`: how many walks there will be, for the progress that the caller is told of. */
int ts_samples_open(struct ts_samples *samples, struct ts_reader *reader,
		    const struct ts_export_options *options, unsigned int passes,
		    struct ts_error *err);
void ts_samples_release(struct ts_samples *samples);

/*
 * Gives each sample; what is not 0 ends it and is returned. The order is that of time as long as no
 * more than 16 chunks of the file overlap in time, which nobody writes for one thread; who needs
 * times that do not fall checks. Every walk has the same order.
 */
int ts_samples_walk(struct ts_samples *samples,
		    int (*visit)(void *context, const struct ts_seen *seen), void *context);

/*
 * Does an event of that name (column `name` of `sample`) tick with time? Those that perf counts
 * otherwise do not: "cycles", "page-faults" ...
 */
bool ts_samples_is_time(const char *name, size_t length);

#endif
