/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the sampler's files: python_sampler.c (the thread and its deadlines),
 * python_sampler_process.c (one process), python_sampler_threads.c (state of its threads),
 * python_sampler_functions.c, python_sampler_native.c, python_sampler_counters.c. Everything
 * belongs to the sampling thread.
 */
#ifndef TS_SAMPLE_PYTHON_PYTHON_SAMPLER_INTERNAL_H
#define TS_SAMPLE_PYTHON_PYTHON_SAMPLER_INTERNAL_H

#include "base/text.h"
#include "sample/python/python_sampler.h"

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

/* ---- what is remembered of a thread ---- */

struct watched_thread {
	uint64_t thread_id;
	int64_t interpreter;
	pid_t seen_tid; /* from the reader; 0: unknown */
	pid_t tid;      /* as reported */
	uint32_t slot;
	uint64_t sweep; /* the last one that contained it */
	char name[64];
	uint64_t functions;             /* hash of the watched functions on its stack */
	char function[128];             /* the innermost of them; "": none */
	struct ts_sample_frame *frames; /* as last reported */
	size_t count, capacity;
};

/* ---- a process ---- */

/* Counts of a process or in total; reported as differences. */
struct sampling_counts {
	uint64_t ticks, late, left_out;
	uint64_t stacks, rejected, retried;
	uint64_t system_calls, missed;
	int64_t read_ns, resolve_ns, native_ns, emit_ns;
	int64_t sweep_ns; /* total wall time */
	int64_t cpu_ns;
};

struct native_side; /* python_sampler_native.c */

struct watched_process {
	struct ts_sampled_process what;
	struct ts_python_reader *python; /* NULL: not open */
	struct native_side *native;
	bool native_failed; /* no native frames available */
	bool ended;
	bool requested;
	/* Deadlines. */
	int64_t slot_ns; /* start of the interval of the next sample */
	int64_t due_ns;
	int64_t sampled_ns; /* 0: not since it was opened or paused */
	/* While it is not open. */
	int64_t known_ns; /* time of the last change */
	int64_t try_ns;
	uint64_t reported[8]; /* hashes of messages */
	unsigned int reported_count;
	/* Threads. */
	struct watched_thread **threads;
	size_t thread_count, thread_capacity, thread_hint;
	uint64_t sweep;
	uint8_t *matches; /* by code number: 0 unknown, 1 no, 2 watched function */
	size_t match_capacity;
	/* Counts. */
	struct sampling_counts counts, emitted_counts;
	struct ts_python_reader_counts reader; /* as of the last sweep */
	int64_t longest_ns;                    /* longest sweep since the last report */
};

struct ts_python_sampler;

/* What one process needs of its sampler. */
struct sampling {
	struct ts_python_sampler_options options;
	const struct ts_python_consumer *consumer;
	struct ts_sample_frame *frames; /* buffer to assemble a sample */
	size_t frame_capacity;
	struct ts_text locals;
	uint32_t *free_slots;
	size_t free_count, free_capacity;
	uint32_t slot_count;
};

/* ---- python_sampler_process.c ---- */

struct watched_process *ts_python_watch_new(const struct ts_sampled_process *what, int64_t now_ns);
void ts_python_watch_free(struct sampling *sampling, struct watched_process *process);
/* Tries to open it. */
void ts_python_watch_try(struct sampling *sampling, struct watched_process *process,
			 int64_t now_ns);
/* One sweep, reported to the consumer. */
void ts_python_watch_sample(struct sampling *sampling, struct watched_process *process,
			    int64_t now_ns);

/* ---- python_sampler_threads.c ---- */

/* Found or created: *ret_new. NULL: no memory. */
struct watched_thread *ts_python_watch_thread(struct sampling *sampling,
					      struct watched_process *process,
					      const struct ts_python_thread *thread, bool *ret_new);
/* Drops threads that were not in the last sweep. */
void ts_python_watch_forget_threads(struct sampling *sampling, struct watched_process *process,
				    bool all);
/* Stores the frames as reported; returns the number of unchanged outermost ones. */
uint32_t ts_python_watch_keep_frames(struct watched_thread *thread,
				     const struct ts_sample_frame *frames, size_t count);

/* ---- python_sampler_functions.c ---- */

/*
 * Whether a watched function has entered or left the stack since the last call; writes the trigger
 * text.
 */
bool ts_python_watch_functions(struct sampling *sampling, struct watched_process *process,
			       struct watched_thread *thread, const struct ts_python_thread *stack,
			       char *ret_trigger, size_t bytes);

/* ---- python_sampler_native.c ---- */

/*
 * After a sweep: requests perf samples of running threads. True if there are any; sweep again, and
 * merge those that have not moved.
 */
bool ts_python_watch_native_sweep(struct sampling *sampling, struct watched_process *process,
				  const struct ts_python_sweep *sweep);
/*
 * Python frames merged with native ones, into sampling->frames; returns their number. 0: none
 * available.
 */
size_t ts_python_watch_native(struct sampling *sampling, struct watched_process *process,
			      const struct ts_python_thread *stack);
void ts_python_watch_native_close(struct watched_process *process);

/* ---- python_sampler_counters.c ---- */

void ts_python_watch_report_counters(struct sampling *sampling, struct watched_process *process,
				     int64_t elapsed_ns);
/* Totals of all processes. */
void ts_python_watch_report_totals(struct sampling *sampling, const struct sampling_counts *counts,
				   int64_t longest_ns, int64_t elapsed_ns);
void ts_python_watch_add_counts(struct sampling_counts *sum, const struct sampling_counts *counts,
				const struct sampling_counts *less);

/* ---- messages ---- */

/* Reports a reason, each once. */
void ts_python_watch_message(struct sampling *sampling, struct watched_process *process,
			     const char *text);

bool ts_python_watch_reserve_frames(struct sampling *sampling, size_t count);

#endif
