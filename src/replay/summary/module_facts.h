/* SPDX-License-Identifier: Apache-2.0 */
/* Which code of modules of CUDA a replay needs. Images are untrusted. */
#ifndef TS_REPLAY_SUMMARY_MODULE_FACTS_H
#define TS_REPLAY_SUMMARY_MODULE_FACTS_H

#include <tracesmith/reader.h>

#include "base/map.h"
#include "replay/stream/stream_internal.h"

/* A zeroed struct is empty. */
struct ts_replay_modules {
	struct ts_map contexts, devices, images; /* rows: of devices, compute capability, seen */
	uint64_t count;                          /* images */
	uint64_t ptx;     /* that have only PTX for their device, which its driver compiles */
	uint64_t unfit;   /* that have no code for their device */
	uint64_t compute; /* the lowest compute capability that they ran on, in tenths */
};
void ts_replay_modules_release(struct ts_replay_modules *modules);

/* Notes a device or a context; TS_ENOMEM. */
int ts_replay_modules_object(struct ts_replay_modules *modules, const struct ts_object_row *row,
			     const struct ts_replay_details *details);
/* Looks at the image of a module whose device was noted; TS_ENOMEM. */
int ts_replay_modules_add(struct ts_replay_modules *modules, struct ts_reader *reader,
			  const struct ts_object_row *row);

#endif
