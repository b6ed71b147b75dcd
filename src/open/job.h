/* SPDX-License-Identifier: Apache-2.0 */
/* The traces of a job; see <tracesmith/open.h>. */
#ifndef TS_OPEN_JOB_H
#define TS_OPEN_JOB_H

#include <tracesmith/open.h>

#include "base/arena.h"
#include "base/memory.h"

struct ts_job {
	struct ts_reader **readers;
	const char **names; /* of the operands, for messages; in the arena */
	size_t count, capacity, name_capacity;
	int64_t start; /* of the earliest trace, in trace time */
	struct ts_arena arena;
	/*
	 * What a later folder keeps with the job (analyze/job_work.h), as long as the traces are
	 * the same.
	 */
	void *kept;
	void (*release_kept)(void *kept);
};
TS_DEFINE_AUTO(ts_job, ts_job_close);

/* Releases what is kept and keeps something else, which may be NULL. */
void ts_job_keep(struct ts_job *job, void *kept, void (*release_kept)(void *kept));

/* The index of the first path that names the same file as one before it, or -1. */
int ts_job_find_duplicate(const char *const *paths, size_t count);

#endif
