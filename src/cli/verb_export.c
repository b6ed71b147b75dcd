/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith export`: a trace in another tool's format. A file that could not be written whole is
 * taken away. Must not know any format.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <tracesmith/export.h>

#include "cli/nearest.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/trace.h"
#include "cli/verbs.h"

struct export
{
	const char *trace;
	const char *format;
	const char *output;
	const char *count;
	bool no_idle, no_lines, no_threads;
	bool list;
	const struct ts_exporter *exporter;
	unsigned int flags; /* TS_EXPORT_* */
	struct ts_output_file file;
};

static int list_formats(void)
{
	const struct ts_exporter *exporters;
	size_t count;

	exporters = ts_exporter_list(&count);
	for (size_t i = 0; i < count; i++)
		ts_text_printf(ts_stdout(), "%-14s %s\n", exporters[i].name, exporters[i].doc);
	return TS_EXIT_DONE;
}

static int unknown_format(const char *name)
{
	const struct ts_exporter *exporters;
	struct ts_nearest nearest;
	size_t count;

	exporters = ts_exporter_list(&count);
	ts_nearest_init(&nearest, name);
	for (size_t i = 0; i < count; i++)
		ts_nearest_offer(&nearest, exporters[i].name);
	if (nearest.best)
		return ts_report_usage("unknown format '%s'; did you mean '%s'?", name,
				       nearest.best);
	return ts_report_usage("unknown format '%s'; 'tracesmith export --list' lists them", name);
}

/* What was asked for as flags; the first that the format does not know is told. */
static int choose_flags(struct export *export)
{
	const struct {
		bool asked;
		unsigned int flag;
		const char *option;
	} choices[] = {
		{ export->no_idle, TS_EXPORT_NO_IDLE, "no-idle" },
		{ export->no_lines, TS_EXPORT_NO_LINES, "no-lines" },
		{ export->no_threads, TS_EXPORT_NO_THREADS, "no-threads" },
		{ !strcmp(export->count, "time"), TS_EXPORT_TIME, "count" },
		{ !strcmp(export->count, "device"), TS_EXPORT_DEVICE, "count" },
	};

	if (strcmp(export->count, "time") != 0 && strcmp(export->count, "samples") != 0 &&
	    strcmp(export->count, "device") != 0)
		return ts_report_usage("option '--count' is samples, time or device, not '%s'",
				       export->count);
	for (size_t i = 0; i < TS_ARRAY_SIZE(choices); i++) {
		if (!choices[i].asked)
			continue;
		if (!(export->exporter->takes & choices[i].flag))
			return ts_report_usage("option '--%s' makes no difference to format '%s'",
					       choices[i].option, export->format);
		export->flags |= choices[i].flag;
	}
	return TS_EXIT_DONE;
}

static bool is_standard_output(const struct export *export)
{
	return !strcmp(export->output, "-");
}

static int check(struct export *export)
{
	struct ts_error err;
	int exit_code;

	export->exporter = ts_exporter_find(export->format);
	if (!export->exporter)
		return unknown_format(export->format);
	exit_code = choose_flags(export);
	if (exit_code)
		return exit_code;
	if (!export->output)
		return ts_report_usage(
			"say where it goes: tracesmith export %s -f %s -o OUT, or -o - for standard output",
			export->trace, export->format);
	ts_output_file_init(&export->file, export->output);
	if (!is_standard_output(export) && ts_output_file_is(&export->file, export->trace)) {
		ts_error_set(&err, TS_EINVAL,
			     "the output '%s' is also the trace '%s'; give -o another name",
			     export->output, export->trace);
		return ts_report_error(&err);
	}
	return TS_EXIT_DONE;
}

static int run_exporter(struct export *export, struct ts_reader *reader, int fd,
			struct ts_error *err)
{
	struct ts_progress progress;
	struct ts_export_options options = {
		.size = sizeof(options),
		.progress = ts_progress_step,
		.context = &progress,
		.flags = export->flags,
	};
	int rc;

	ts_progress_start(&progress, "export", TS_PROGRESS_BYTES);
	rc = export->exporter->run(reader, fd, &options, err);
	ts_progress_stop(&progress);
	if (!rc)
		rc = ts_reader_status(reader, err);
	return rc;
}

static int export_to_file(struct export *export, struct ts_reader *reader, struct ts_error *err)
{
	int fd = open(export->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int rc;

	if (fd < 0)
		return ts_error_errno(err, errno, "cannot create '%s'", export->output);
	rc = run_exporter(export, reader, fd, err);
	if (rc)
		ts_error_prefix(err, "'%s'", export->output);
	/* Some file systems tell of a full disk only here. */
	if (close(fd) && !rc)
		rc = ts_error_errno(err, errno, "'%s': cannot write", export->output);
	if (rc)
		ts_output_file_discard(&export->file);
	return rc;
}

static int run(struct export *export)
{
	TS_AUTO(ts_reader) reader = NULL;
	struct ts_error err;
	int rc;

	rc = ts_reader_open(&reader, export->trace, &err);
	if (rc)
		return ts_report_error(&err);
	ts_trace_warn(reader, export->trace);
	/* An empty file would leave people wondering. */
	if (export->flags & TS_EXPORT_DEVICE && ts_reader_rows(reader, TS_TABLE_GPU_OP) == 0)
		ts_report_warning("'%s' has nothing that a device did", export->trace);
	else if (export->exporter->takes & TS_EXPORT_NO_IDLE &&
		 !(export->flags & TS_EXPORT_DEVICE) &&
		 ts_reader_rows(reader, TS_TABLE_SAMPLE) == 0)
		ts_report_warning("'%s' has no sampled stacks", export->trace);
	if (is_standard_output(export)) {
		/* No file is at stake: a reader that goes away may end us quietly. */
		signal(SIGPIPE, SIG_DFL);
		rc = run_exporter(export, reader, STDOUT_FILENO, &err);
	} else {
		rc = export_to_file(export, reader, &err);
	}
	return rc ? ts_report_error(&err) : TS_EXIT_DONE;
}

int ts_verb_export(int argc, char **argv)
{
	struct export export = { .format = "chrome", .count = "samples" };
	const struct ts_option options[] = {
		TS_OPTION_TEXT("format", 'f', "FORMAT", &export.format,
			       "what to write; default: chrome"),
		TS_OPTION_TEXT("output", 'o', "OUT", &export.output,
			       "the file to write (needed); - is standard output"),
		TS_OPTION_FLAG("no-idle", 0, &export.no_idle,
			       "sampled stacks: not of threads that were idle"),
		TS_OPTION_FLAG("no-lines", 0, &export.no_lines,
			       "folded, speedscope: functions, whatever the line"),
		TS_OPTION_FLAG("no-threads", 0, &export.no_threads,
			       "folded: all processes and threads together"),
		TS_OPTION_TEXT(
			"count", 0, "WHAT", &export.count,
			"folded: samples (default), or time in ns; folded, speedscope: device, "
			"the ns that devices worked, by the stacks of launches"),
		TS_OPTION_FLAG("list", 'l', &export.list, "list the formats"),
	};
	const struct ts_command command = {
		.verb = "export",
		.operands = "TRACE",
		.about =
			"Writes a trace in another format. Chrome's opens in Perfetto and chrome://tracing, and\n"
			"'tracesmith import' reads it back without loss. Sampled stacks become a timeline, flame\n"
			"graphs (folded) or a speedscope profile.\n",
		.examples =
			"tracesmith export run.sbt -f chrome -o run.json\n"
			"tracesmith export run.sbt -o - | gzip >run.json.gz\n"
			"tracesmith export run.sbt -f timeline -o stacks.json\n"
			"tracesmith export run.sbt -f folded --no-idle -o - | flamegraph.pl >run.svg\n"
			"tracesmith export run.sbt -f folded --count device -o - | flamegraph.pl >gpu.svg",
		.exits = "0  done\n2  usage\n3  bad input, or the output cannot be written",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
		.maximum_operands = 1,
	};
	int exit_code;

	if (!ts_command_parse(&command, &argc, argv, &exit_code))
		return exit_code;
	if (export.list)
		return list_formats();
	if (argc == 0)
		return ts_report_usage("TRACE is missing");
	export.trace = argv[0];
	exit_code = check(&export);
	return exit_code ? exit_code : run(&export);
}
