/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith recover`: every whole chunk of a damaged or unfinished trace into a finished one.
 * Must not know the bytes of the file.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/trace.h"
#include "cli/verbs.h"

struct recover {
	const char *trace;
	const char *output;
	bool json;
	bool quiet;
};

static void tell(const struct recover *recover, const struct ts_recovery *result)
{
	char chunks[TS_FORMAT_BYTES], rows[TS_FORMAT_BYTES], damaged[TS_FORMAT_BYTES];

	if (recover->quiet)
		return;
	ts_report_note("%s: %s chunks with %s rows", recover->output,
		       ts_format_count(chunks, sizeof(chunks), (int64_t)result->chunks),
		       ts_format_count(rows, sizeof(rows), (int64_t)result->rows));
	if (result->damaged_bytes || result->damaged_chunks)
		ts_report_note(
			"left out: %s bytes that are damaged, %" PRIu64
			" chunks among them; a loss row in the trace says so",
			ts_format_count(damaged, sizeof(damaged), (int64_t)result->damaged_bytes),
			result->damaged_chunks);
}

static void show_json(const struct recover *recover, const struct ts_recovery *result)
{
	struct ts_text *out = ts_stdout();

	ts_text_append_str(out, "{\"file\":");
	ts_text_append_json(out, recover->output, strlen(recover->output));
	ts_text_printf(out,
		       ",\"chunks\":%" PRIu64 ",\"rows\":%" PRIu64 ",\"damaged_chunks\":%" PRIu64
		       ",\"damaged_bytes\":%" PRIu64 "}\n",
		       result->chunks, result->rows, result->damaged_chunks, result->damaged_bytes);
}

static int run(const struct recover *recover)
{
	struct ts_output_file file;
	struct ts_progress progress;
	struct ts_recovery result = { 0 };
	struct ts_error err;
	int rc;

	ts_output_file_init(&file, recover->output);
	ts_progress_start(&progress, "recover", TS_PROGRESS_BYTES);
	rc = ts_recover(recover->trace, recover->output, ts_progress_step, &progress, &result,
			&err);
	ts_progress_stop(&progress);
	if (rc) {
		ts_output_file_discard(&file);
		return ts_report_error(&err);
	}
	tell(recover, &result);
	if (recover->json)
		show_json(recover, &result);
	return TS_EXIT_DONE;
}

int ts_verb_recover(int argc, char **argv)
{
	struct recover recover = { 0 };
	const struct ts_option options[] = {
		TS_OPTION_TEXT("output", 'o', "TRACE", &recover.output,
			       "the trace to write (needed)"),
		TS_OPTION_FLAG("json", 0, &recover.json, "a summary as JSON on standard output"),
		TS_OPTION_FLAG("quiet", 'q', &recover.quiet, "only errors on stderr"),
	};
	const struct ts_command command = {
		.verb = "recover",
		.operands = "TRACE",
		.about =
			"Saves what is whole of a trace that was cut short or damaged. The result is a finished\n"
			"trace with every whole chunk, and a row in its table 'loss' for what is not there.\n",
		.examples = "tracesmith recover cut.sbt -o good.sbt",
		.exits =
			"0  done\n2  usage\n3  there is nothing to save, or the output cannot be written",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
		.minimum_operands = 1,
		.maximum_operands = 1,
	};
	int exit_code;

	if (!ts_command_parse(&command, &argc, argv, &exit_code))
		return exit_code;
	recover.trace = argv[0];
	if (!recover.output)
		return ts_report_usage(
			"say where the trace goes: tracesmith recover %s -o good.sbt",
			recover.trace);
	return run(&recover);
}
