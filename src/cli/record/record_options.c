/* SPDX-License-Identifier: Apache-2.0 */
/* Options that `record` and `sniff` share. */
#include <string.h>

#include "base/text.h"
#include "cli/common/options.h"
#include "cli/common/report.h"
#include "cli/record/record.h"

void ts_record_note(void *context, const char *message)
{
	const struct ts_record *record = context;

	if (!record->quiet)
		ts_report_event("%s", message);
}

int ts_record_pids(struct ts_record *record, const struct ts_string_list *list, pid_t *pids)
{
	if (list->count > TS_RECORD_PIDS)
		return ts_report_usage("more than %d processes", TS_RECORD_PIDS);
	for (size_t i = 0; i < list->count; i++) {
		const char *text = list->items[i];
		int64_t pid;

		if (ts_parse_int64(text, strlen(text), &pid) || pid < 1 || pid > INT32_MAX)
			return ts_report_usage("option '--pid': '%s' is not a valid process id",
					       text);
		pids[i] = (pid_t)pid;
	}
	record->options.pids = pids;
	record->options.pid_count = list->count;
	return TS_EXIT_DONE;
}
