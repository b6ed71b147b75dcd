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
	struct ts_json_string key = { 0 }, text = { 0 }, state = { 0 }, reason = { 0 };
	bool more = false;
	struct ts_json js;
	char *why = context;
	int rc;

	ts_json_init(&js, fact.data, fact.length, true);
	rc = ts_json_enter(&js, '{', &more);
	while (!rc && more) {
		rc = ts_json_scan_key(&js, &key);
		if (!rc &&
		    (ts_json_string_is(&key, "state") || ts_json_string_is(&key, "reason"))) {
			rc = ts_json_scan_string(&js, &text);
			*(ts_json_string_is(&key, "state") ? &state : &reason) = text;
		} else if (!rc) {
			rc = ts_json_skip(&js);
		}
		rc = rc ? rc : ts_json_next(&js, '}', &more);
	}
	if (!rc && ts_json_string_is(&state, "off"))
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
