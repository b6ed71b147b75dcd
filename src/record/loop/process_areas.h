/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A running process as users name it, by its pid, and its live areas: its own user's, or those of
 * the container that it runs in. Only looks.
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
	struct ts_area_info *areas; /* one for the process, one for each tracer made by hand */
	size_t area_count, area_capacity;
};

/*
 * TS_ENOTFOUND where there is no such process, TS_ECAP where it is no process, with what to do
 * about it.
 */
int ts_process_areas_open(struct ts_process_areas **ret_process, pid_t pid, struct ts_error *err);
void ts_process_areas_close(struct ts_process_areas *process);
TS_DEFINE_AUTO(ts_process_areas, ts_process_areas_close);

/* Does a living process drain the area? */
bool ts_area_has_recorder(const struct ts_live_control *control);

/* What the ring directory of an area says; numbers of a hostile target are as they are. */
struct ts_area_census {
	uint32_t rings;
	uint32_t threads;       /* that own a ring now */
	uint64_t emitted_bytes; /* ever */
	uint64_t waiting_bytes; /* that no recorder has taken */
	uint64_t lost;          /* events not stored */
};

int ts_area_census(int directory_fd, const struct ts_area_info *info,
		   struct ts_area_census *ret_census, struct ts_error *err);

#endif
