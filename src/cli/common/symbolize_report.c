/* SPDX-License-Identifier: Apache-2.0 */
/* See symbolize_report.h. */
#include "cli/common/symbolize_report.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "trace/trace_totals.h"

/* A recorder blocks signals: a pending one also asks to stop. */
static int on_progress(void *context, uint64_t done, uint64_t total)
{
	sigset_t waiting;

	if (!sigpending(&waiting) &&
	    (sigismember(&waiting, SIGINT) == 1 || sigismember(&waiting, SIGTERM) == 1))
		return 1;
	return ts_progress_step(context, done, total);
}

int ts_cli_symbolize(const char *path, const struct ts_symbolize_choice *choice,
		     struct ts_symbolize_summary *ret_summary, struct ts_error *err)
{
	struct ts_symbolize_choice shown = *choice;
	struct ts_progress progress;
	int rc;

	shown.progress = on_progress;
	shown.progress_context = &progress;
	ts_progress_start(&progress, "symbolize", TS_PROGRESS_ROWS);
	rc = ts_symbolize_trace(path, &shown, ret_summary, err);
	ts_progress_stop(&progress);
	return rc;
}

void ts_symbolize_report(const struct ts_symbolize_summary *summary, const char *path, bool all)
{
	uint64_t fresh = summary->frames - summary->known;
	struct ts_text missing = summary->missing;
	char *line, *rest;

	if (!summary->frames) {
		ts_report_note("%s: no native frames without names", path);
		return;
	}
	if (!fresh) {
		ts_report_note("%s: all native frames that can be resolved have names", path);
		return;
	}
	ts_report_note("%s: %" PRIu64 " of %" PRIu64 " native frames named, %" PRIu64
		       " with source lines; %" PRIu64 " %s%s",
		       path, summary->named, fresh, summary->with_lines, summary->binaries,
		       summary->binaries == 1 ? "binary" : "binaries",
		       summary->has_libdw ? "" : " (no libdw: functions only)");
	rest = all && missing.length ? strndup(missing.data, missing.length) : NULL;
	for (char *at = rest; at && (line = strsep(&at, "\n"));)
		if (*line)
			ts_report_note("  %s", line);
	free(rest);
}

void ts_symbolize_advise(const char *path)
{
	TS_AUTO(ts_reader) reader = NULL;

	if (!ts_reader_open(&reader, path, NULL) && ts_reader_rows(reader, TS_TABLE_MAPPING) &&
	    !ts_reader_rows(reader, TS_TABLE_SYMBOL))
		ts_report_note("  native frames have no names yet: tracesmith symbolize %s",
			       TS_SHELL(path));
}
