/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live areas of a running process, given by pid: areas of its user, or of the container that it
 * runs in. Read-only.
 */
#ifndef TS_RECORD_LOOP_PROCESS_AREAS_H
#define TS_RECORD_LOOP_PROCESS_AREAS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

#include "base/memory.h"
#include "live/discover.h"

struct ts_process_areas {
	pid_t pid;
	int directory_fd;
	struct ts_area_info *areas; /* one for the process, one for each tracer it created */
	size_t area_count, area_capacity;
};

/* TS_ENOTFOUND: no such process; TS_ECAP: it has no area. The message says what to do. */
int ts_process_areas_open(struct ts_process_areas **ret_process, pid_t pid, struct ts_error *err);
void ts_process_areas_close(struct ts_process_areas *process);
TS_DEFINE_AUTO(ts_process_areas, ts_process_areas_close);

/* Totals over the ring directory of an area. Values are not validated. */
struct ts_area_census {
	uint32_t rings;
	uint32_t threads;       /* threads that own a ring now */
	uint64_t emitted_bytes; /* since the start */
	uint64_t waiting_bytes; /* not yet taken by a recorder */
	uint64_t lost;          /* events not stored */
};

int ts_area_census(int directory_fd, const struct ts_area_info *info,
		   struct ts_area_census *ret_census, struct ts_error *err);

#endif
