/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples Python stacks of processes at randomised deadlines on its own thread, and passes them to
 * a consumer from that thread. Processes without Python (yet) are checked again from time to time;
 * each reason why one cannot be read is reported once.
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

#define TS_PYTHON_INTERVAL_NS INT64_C(100000000) /* default */
#define TS_PYTHON_MIN_INTERVAL_NS INT64_C(100000)

/* One frame of a sample: Python or native. */
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
	pid_t tid;     /* kernel thread id; if unknown, a stable number above all real ones */
	uint32_t slot; /* index of the thread among all sampled ones, from 0; reused after it has
			  gone (then `same` is 0 at first) */
	bool is_state_known; /* whether it is known to run or not; otherwise only set bits of the
				state are meaningful */
	const struct ts_sample_frame *frames; /* innermost first, native ones merged in */
	uint32_t count;
	uint32_t same;       /* outermost frames that equal those of this thread's last sample */
	int64_t time_ns;     /* CLOCK_MONOTONIC */
	int64_t weight_ns;   /* time since this process was last sampled */
	const char *trigger; /* "function NAME", "after function NAME", "asked"; NULL: a regular
				sample */
	const char *locals;  /* JSON list, innermost frame first; NULL: not requested */
};

struct ts_python_counter {
	const char *series;
	double value;
};

struct ts_python_consumer {
	void *context;
	void (*sample)(void *context, const struct ts_python_sample *sample);
	/* A new thread, or a new name of one. Called before its sample. `name` may be "". */
	void (*thread)(void *context, pid_t pid, uint64_t start_time, pid_t tid, const char *name);
	/* Once a second: the cost of sampling (docs/python.md). `pid` 0: totals. */
	void (*counter)(void *context, pid_t pid, uint64_t start_time, const char *name,
			const struct ts_python_counter *values, unsigned int count);
	void (*message)(void *context, pid_t pid, const char *text);
	/* The codes of a process are about to be freed: drop pointers to them. May be NULL. */
	void (*closed)(void *context, pid_t pid, uint64_t start_time);
};

struct ts_python_sampler_options {
	bool main_only;
	bool native;
	bool locals;
	bool tasks;
	unsigned int cpu_percent; /* CPU limit in percent of one processor; 0: 50. Samples beyond it
				     are skipped */
	/*
	 * Report samples only when a function with one of these names (qualified, with * and ?)
	 * enters or leaves a thread's stack. NULL-terminated; NULL: report all samples.
	 */
	const char *const *functions;
};

struct ts_python_sampler;

int ts_python_sampler_open(struct ts_python_sampler **ret_sampler,
			   const struct ts_python_sampler_options *options,
			   const struct ts_python_consumer *consumer, struct ts_error *err);
/* Replaces the list of sampled processes. Processes that exit are dropped automatically. */
int ts_python_sampler_set_processes(struct ts_python_sampler *sampler,
				    const struct ts_sampled_process *processes, size_t count,
				    struct ts_error *err);
/* Requests one sweep of a process (0: of all) as soon as possible. */
void ts_python_sampler_request(struct ts_python_sampler *sampler, pid_t pid);

struct ts_python_sampler_status {
	size_t processes, threads; /* being sampled */
	uint64_t samples, rejected;
	uint64_t late_ticks;     /* skipped because it was late */
	uint64_t left_out_ticks; /* skipped because of the CPU limit */
	int64_t cpu_ns;
};
void ts_python_sampler_status(struct ts_python_sampler *sampler,
			      struct ts_python_sampler_status *ret_status);

/* No callbacks after this has returned. */
void ts_python_sampler_close(struct ts_python_sampler *sampler);
TS_DEFINE_AUTO(ts_python_sampler, ts_python_sampler_close);

#endif
