/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples the Python stacks of processes at randomised deadlines, on a thread of its own. What it
 * finds goes to a consumer, from that thread; it knows nothing of where. Processes that are no
 * Python, or not yet, are looked at again now and then; each reason why one cannot be read is told
 * once.
 */
#ifndef TS_SAMPLE_PYTHON_PYTHON_SAMPLER_H
#define TS_SAMPLE_PYTHON_PYTHON_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

#include "base/memory.h"
#include "code/unwind.h"
#include "python/reader/python_reader.h"
#include "sample/sampled_processes.h"

#define TS_PYTHON_INTERVAL_NS INT64_C(100000000) /* unless asked otherwise */
#define TS_PYTHON_MIN_INTERVAL_NS INT64_C(100000)

/* One frame of a sample: of Python, or native. */
struct ts_sample_frame {
	struct ts_python_code *python; /* NULL: native */
	struct ts_native_code *native;
	int32_t line; /* Python */
	uint64_t pc;  /* native */
};

struct ts_python_sample {
	pid_t pid;
	uint64_t start_time;
	const struct ts_python_thread *thread;
	pid_t tid; /* that of the thread, or where it is not known a number above all real ones that
		      stays the same */
	uint32_t slot; /* of the thread among all that are sampled, from 0; given to another one
			  when it has gone (whose `same` is 0 at first) */
	bool is_state_known; /* whether it runs; else only bits that are set say something */
	const struct ts_sample_frame *frames; /* innermost first, native ones merged in */
	uint32_t count;
	uint32_t same;       /* outermost frames that are those of this thread's last sample */
	int64_t time_ns;     /* CLOCK_MONOTONIC */
	int64_t weight_ns;   /* since this process was last sampled */
	const char *trigger; /* "function NAME", "after function NAME", "asked"; NULL: it was due */
	const char *locals;  /* JSON list, innermost frame first; NULL: not asked for */
};

struct ts_python_counter {
	const char *series;
	double value;
};

struct ts_python_consumer {
	void *context;
	void (*sample)(void *context, const struct ts_python_sample *sample);
	/*
	 * A thread is there that was not in the last sweep, or has got another name. Ahead of its
	 * sample. `name` may be "".
	 */
	void (*thread)(void *context, pid_t pid, uint64_t start_time, pid_t tid, const char *name);
	/* Once a second: what sampling itself costs (docs/python.md). `pid` 0: all. */
	void (*counter)(void *context, pid_t pid, uint64_t start_time, const char *name,
			const struct ts_python_counter *values, unsigned int count);
	void (*message)(void *context, pid_t pid, const char *text);
	/* Codes of a process are about to be freed: forget pointers to them. May be NULL. */
	void (*closed)(void *context, pid_t pid, uint64_t start_time);
};

struct ts_python_sampler_options {
	bool main_only;
	bool native;
	bool locals;
	bool tasks;
	unsigned int cpu_percent; /* of one processor that it may use; 0: 50. Beyond that ticks are
				     left out */
	/*
	 * Not all that is seen is told, but what a thread does when a function of one of these
	 * names (with * and ?, of qualified names) comes onto its stack, or leaves it. Ended by
	 * NULL; NULL: all.
	 */
	const char *const *functions;
};

struct ts_python_sampler;

int ts_python_sampler_open(struct ts_python_sampler **ret_sampler,
			   const struct ts_python_sampler_options *options,
			   const struct ts_python_consumer *consumer, struct ts_error *err);
/* Who is sampled from now on, in place of those before. Those that end leave by themselves. */
int ts_python_sampler_set_processes(struct ts_python_sampler *sampler,
				    const struct ts_sampled_process *processes, size_t count,
				    struct ts_error *err);
/* One sweep of a process (0: of all) as soon as can be. */
void ts_python_sampler_request(struct ts_python_sampler *sampler, pid_t pid);

struct ts_python_sampler_status {
	size_t processes, threads; /* that are being sampled */
	uint64_t samples, rejected;
	uint64_t late_ticks;     /* left out since it was late */
	uint64_t left_out_ticks; /* since it would have used more of a processor than it may */
	int64_t cpu_ns;
};
void ts_python_sampler_status(struct ts_python_sampler *sampler,
			      struct ts_python_sampler_status *ret_status);

/* Nothing is told after this has returned. */
void ts_python_sampler_close(struct ts_python_sampler *sampler);
TS_DEFINE_AUTO(ts_python_sampler, ts_python_sampler_close);

#endif
