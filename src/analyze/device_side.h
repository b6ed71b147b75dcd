/* SPDX-License-Identifier: Apache-2.0 */
/* Why a trace has nothing of its devices, where the recorder has said so. */
#ifndef TS_ANALYZE_DEVICE_SIDE_H
#define TS_ANALYZE_DEVICE_SIDE_H

#include "analyze/result.h"
#include "state/work/work.h"

/* For work without commands: the recorder's reason, else `otherwise`. */
void ts_device_side_note(const struct ts_work *work, struct ts_result *result,
			 const char *otherwise);

#endif
