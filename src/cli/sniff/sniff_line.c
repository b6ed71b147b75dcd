/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line of `tracesmith sniff` on a terminal. */
#include <stdio.h>

#include "base/text.h"
#include "cli/common/progress.h"
#include "cli/common/terminal.h"
#include "cli/sniff/sniff.h"

#define REDRAW_NS INT64_C(500000000)

static void measure_cpu(struct ts_sniff *sniff, const struct ts_python_sampler_status *status,
			int64_t now_ns)
{
	if (sniff->cpu_at_ns && now_ns > sniff->cpu_at_ns)
		sniff->cpu_percent = (double)(status->cpu_ns - sniff->cpu_ns) * 100.0 /
				     (double)(now_ns - sniff->cpu_at_ns);
	sniff->cpu_ns = status->cpu_ns;
	sniff->cpu_at_ns = now_ns;
}

int64_t ts_sniff_line_draw(struct ts_sniff *sniff, struct ts_recorder *recorder, int64_t now_ns)
{
	char line[160], stacks[TS_FORMAT_BYTES], rejected[TS_FORMAT_BYTES];
	struct ts_python_sampler_status status;

	if (sniff->record.quiet || !ts_terminal_stderr())
		return INT64_MAX;
	if (now_ns < sniff->line_ns)
		return sniff->line_ns;
	sniff->line_ns = now_ns + REDRAW_NS;
	if (!ts_recorder_python_status(recorder, &status))
		return sniff->line_ns;
	measure_cpu(sniff, &status, now_ns);
	snprintf(line, sizeof(line),
		 "%zu Python process%s, %zu thread%s, %s stacks, %s rejected, %.1f %% of a CPU",
		 status.processes, status.processes == 1 ? "" : "es", status.threads,
		 status.threads == 1 ? "" : "s",
		 ts_format_count(stacks, sizeof(stacks), (int64_t)status.samples),
		 ts_format_count(rejected, sizeof(rejected), (int64_t)status.rejected),
		 sniff->cpu_percent);
	ts_progress_show(line);
	return sniff->line_ns;
}
