/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for the fact `cuda_device_side` in the process facts of a trace. */
#include "analyze/device_side.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "trace/trace_meta.h"

#define WHY_BYTES 512

/* Into `context`, a text. Parses {"state": "off", "reason": WHY, ...}; ignores anything else. */
static void read_fact(void *context, struct ts_string fact)
{
	struct ts_json_string state = { 0 }, reason = { 0 };
	struct ts_json_walk walk = { .open = '{' };
	struct ts_json js;
	char *why = context;

	ts_json_init(&js, fact.data, fact.length, true);
	while (ts_json_walk_next(&walk, &js)) {
		if (ts_json_string_is(&walk.key, "state"))
			walk.rc = ts_json_scan_string(&js, &state);
		else if (ts_json_string_is(&walk.key, "reason"))
			walk.rc = ts_json_scan_string(&js, &reason);
	}
	if (!walk.rc && ts_json_string_is(&state, "off"))
		snprintf(why, WHY_BYTES, "%.*s", (int)TS_MIN(reason.length, (size_t)WHY_BYTES),
			 reason.text);
}

void ts_device_side_note(const struct ts_work *work, struct ts_result *result,
			 const char *otherwise)
{
	char why[WHY_BYTES] = "";

	/* If there is device activity, it is only outside the selection. */
	for (uint32_t i = 0; i < work->trace_count && !why[0]; i++)
		if (ts_reader_rows(work->readers[i], TS_TABLE_GPU_OP) == 0)
			ts_trace_meta(work->readers[i], "cuda_device_side", read_fact, why);
	if (why[0])
		ts_result_note(result, "the device side was not recorded: %s", why);
	else
		ts_result_note(result, "%s", otherwise);
}
