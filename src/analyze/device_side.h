/* SPDX-License-Identifier: Apache-2.0 */
/* Says why a trace has no device activity, if the recorder stored a reason. */
#ifndef TS_ANALYZE_DEVICE_SIDE_H
#define TS_ANALYZE_DEVICE_SIDE_H

#include "analyze/result.h"
#include "state/work/work.h"

/* For work without commands: notes the recorder's reason, else `otherwise`. */
void ts_device_side_note(const struct ts_work *work, struct ts_result *result,
			 const char *otherwise);

#endif
