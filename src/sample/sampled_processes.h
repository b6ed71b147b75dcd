/* SPDX-License-Identifier: Apache-2.0 */
/* The list of processes that a sampler samples, and how often. */
#ifndef TS_SAMPLE_SAMPLED_PROCESSES_H
#define TS_SAMPLE_SAMPLED_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

struct ts_sampled_process {
	pid_t pid;
	uint64_t start_time;
	int64_t interval_ns; /* 0: paused */
};

/* A zeroed struct is an empty list. Not thread-safe: samplers hold their lock. */
struct ts_sampled_processes {
	struct ts_sampled_process *items;
	size_t count;
};

/* Replaces the list by a copy of `items`. *ret_changed: it differs from the list before. */
int ts_sampled_processes_set(struct ts_sampled_processes *list,
			     const struct ts_sampled_process *items, size_t count,
			     bool *ret_changed, struct ts_error *err);
void ts_sampled_processes_release(struct ts_sampled_processes *list);

#endif
