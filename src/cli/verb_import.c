/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith import`: converts files of other tools into one trace. After an error everything read
 * so far is in a finished trace, unless that would replace an earlier one or have no event.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tracesmith/import.h>

#include "base/output.h"
#include "cli/common/cli_output.h"
#include "cli/common/nearest.h"
#include "cli/common/options.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/verbs.h"
#include "trace/trace_totals.h"

TS_DEFINE_AUTO(ts_writer, ts_writer_close);

struct import {
	char **paths;
	int path_count;
	const char *output;
	int64_t threads;
	int64_t level;
	const char *format;
	const char *binary;
	bool json;
	bool quiet;
	bool list;
	struct ts_output_part part;
	bool replaces;            /* an earlier output */
	struct ts_progress clock; /* of the whole */
	uint64_t input_bytes;     /* as stored */
	uint64_t text_bytes;      /* unpacked */
	uint64_t output_bytes;
	uint64_t events;
	struct ts_text files_json;
};

/* ---- formats ---- */

static int list_formats(void)
{
	const struct ts_importer *importers;
	size_t count;

	importers = ts_importer_list(&count);
	for (size_t i = 0; i < count; i++)
		ts_text_printf(ts_stdout(), "%-14s %s\n", importers[i].name, importers[i].doc);
	return TS_EXIT_DONE;
}

static int check_format(const char *name)
{
	const struct ts_importer *importers;
	struct ts_nearest nearest;
	size_t count;

	importers = ts_importer_list(&count);
	ts_nearest_init(&nearest, name);
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(importers[i].name, name))
			return TS_EXIT_DONE;
		ts_nearest_offer(&nearest, importers[i].name);
	}
	if (nearest.best)
		return ts_report_usage("unknown format '%s'; did you mean '%s'?", name,
				       nearest.best);
	return ts_report_usage("unknown format '%s'; 'tracesmith import --list' lists them", name);
}

/* ---- before anything is written ---- */

static int check_input(struct import *import, const char *path)
{
	bool is_standard = !strcmp(path, "-");
	struct ts_error err;
	struct stat status;

	if (ts_output_is_input(import->output, path)) {
		ts_error_set(&err, TS_EINVAL,
			     "output '%s' is also the input '%s'; choose another name for -o",
			     import->output, path);
		return ts_report_error(&err);
	}
	if (is_standard)
		return TS_EXIT_DONE;
	if (stat(path, &status)) {
		ts_error_errno(&err, errno, "input '%s'", path);
		return ts_report_error(&err);
	}
	if (S_ISDIR(status.st_mode)) {
		ts_error_set(&err, TS_EIO, "input '%s': is a directory", path);
		return ts_report_error(&err);
	}
	if (S_ISREG(status.st_mode))
		import->input_bytes += (uint64_t)status.st_size;
	return TS_EXIT_DONE;
}

static int check(struct import *import)
{
	int exit_code = TS_EXIT_DONE;

	if (!import->output)
		return ts_report_usage("no output file; use: tracesmith import %s%s -o out.sbt",
				       import->paths[0], import->path_count > 1 ? " ..." : "");
	if (import->format)
		exit_code = check_format(import->format);
	for (int i = 0; !exit_code && i < import->path_count; i++)
		exit_code = check_input(import, import->paths[i]);
	return exit_code ? exit_code : ts_output_check_trace(import->output);
}

/* ---- reports ---- */

static void report_file(struct import *import, const char *path, double seconds,
			const struct ts_import_result *result)
{
	struct ts_text *json = &import->files_json;
	char count[TS_FORMAT_BYTES], bytes[TS_FORMAT_BYTES], rate[TS_FORMAT_BYTES];

	if (!import->quiet)
		ts_report_note(
			"%s: %s, %s events, %s in %.3f s (%s/s)", path, result->format,
			ts_format_count(count, sizeof(count), (int64_t)result->events),
			ts_format_bytes(bytes, sizeof(bytes), result->bytes), seconds,
			ts_format_bytes(rate, sizeof(rate),
					(uint64_t)((double)result->bytes / TS_MAX(seconds, 1e-6))));
	if (result->note[0])
		ts_report_warning("%s: %s", path, result->note);
	ts_text_append_str(json, json->length ? "," : "");
	ts_text_append_str(json, "{\"file\":");
	ts_text_append_json(json, path, strlen(path));
	ts_text_printf(json, ",\"format\":\"%s\",\"events\":%" PRIu64 ",\"bytes\":%" PRIu64,
		       result->format, result->events, result->bytes);
	if (result->note[0]) {
		ts_text_append_str(json, ",\"note\":");
		ts_text_append_json(json, result->note, strlen(result->note));
	}
	ts_text_append_char(json, '}');
}

static double ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

static void report_summary(struct import *import)
{
	double seconds = ts_progress_seconds(&import->clock);
	char count[TS_FORMAT_BYTES], bytes[TS_FORMAT_BYTES];

	if (import->quiet)
		return;
	ts_report_note("%s: %s events, %s, %.2f bytes/event, ratio %.1f, %.2f s", import->output,
		       ts_format_count(count, sizeof(count), (int64_t)import->events),
		       ts_format_bytes(bytes, sizeof(bytes), import->output_bytes),
		       ratio(import->output_bytes, import->events),
		       ratio(import->text_bytes, import->output_bytes), seconds);
}

static void show_json(struct import *import)
{
	struct ts_text *out = ts_stdout();

	ts_text_append_str(out, "{\"file\":");
	ts_text_append_json(out, import->output, strlen(import->output));
	ts_text_printf(out,
		       ",\"events\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"input_bytes\":%" PRIu64
		       ",\"text_bytes\":%" PRIu64 ",\"bytes_per_event\":",
		       import->events, import->output_bytes, import->input_bytes,
		       import->text_bytes);
	ts_text_append_double(out, ratio(import->output_bytes, import->events));
	ts_text_append_str(out, ",\"ratio\":");
	ts_text_append_double(out, ratio(import->text_bytes, import->output_bytes));
	ts_text_append_str(out, ",\"seconds\":");
	ts_text_append_double(out, ts_progress_seconds(&import->clock));
	ts_text_append_str(out, ",\"files\":[");
	ts_text_append(out, import->files_json.data, import->files_json.length);
	ts_text_append_str(out, "]}\n");
}

/* ---- the work ---- */

static int import_file(struct import *import, struct ts_writer *writer, const char *path,
		       struct ts_error *err)
{
	struct ts_progress progress;
	struct ts_import_options options = {
		.size = sizeof(options),
		.progress = ts_progress_step,
		.context = &progress,
		.format = import->format,
		.binary = import->binary,
	};
	struct ts_import_result result = { .format = "unknown" };
	TS_SCOPED(ts_text) label = { 0 };
	int rc;

	ts_text_printf(&label, "import %s", path);
	ts_progress_start(&progress, ts_text_cstr(&label), TS_PROGRESS_BYTES);
	rc = ts_import_file(writer, path, &options, &result, err);
	ts_progress_stop(&progress);
	import->events += result.events;
	import->text_bytes += result.bytes;
	if (!rc || result.events)
		report_file(import, path, ts_progress_seconds(&progress), &result);
	return rc;
}

static uint64_t count_events(const struct ts_writer *writer)
{
	uint64_t events = 0;

	for (unsigned int table = 0; table < TS_TABLE_COUNT; table++) {
		if (TS_TRACE_COUNTED & TS_TABLE_BIT(table))
			events += ts_writer_rows(writer, table);
	}
	return events;
}

/*
 * A truncated input, Ctrl-C or a full disk: keeps what was read, unless a trace is there already.
 * `cause` is the error; returns the exit code.
 */
static int finish_early(struct import *import, struct ts_writer *writer,
			const struct ts_error *cause)
{
	int exit_code = ts_report_error(cause);
	char count[TS_FORMAT_BYTES];
	struct ts_error err;
	bool has_failed = ts_writer_status(writer, NULL) != TS_OK;

	import->events = count_events(writer);
	if (import->events == 0)
		return exit_code;
	if (import->replaces) {
		ts_report_note("'%s' is as it was before", import->output);
		return exit_code;
	}
	/* A failed writer (full disk) has reported why, and leaves a valid unfinished trace. */
	if ((!has_failed && ts_writer_finish(writer, &err)) ||
	    ts_output_part_commit(&import->part, &err))
		return ts_report_error(&err);
	if (has_failed) {
		ts_report_note("what was written before it is in '%s'", import->output);
		return exit_code;
	}
	ts_report_note("the %s events before it are in '%s'",
		       ts_format_count(count, sizeof(count), (int64_t)import->events),
		       import->output);
	import->output_bytes = ts_writer_bytes(writer);
	if (import->json)
		show_json(import);
	return exit_code;
}

static int write_trace(struct import *import)
{
	struct ts_writer_options options = {
		.size = sizeof(options),
		/* The writer uses 0 for its default and -1 for none. */
		.threads = import->threads == 0 ? -1 : (int)TS_MAX(import->threads, 0),
		.level = (int)import->level,
	};
	TS_AUTO(ts_writer) writer = NULL;
	struct ts_error err;
	int rc = ts_writer_open(&writer, import->part.path, &options, &err);

	if (rc)
		return ts_report_error(&err);
	for (int i = 0; !rc && i < import->path_count; i++)
		rc = import_file(import, writer, import->paths[i], &err);
	if (!rc)
		rc = ts_writer_finish(writer, &err);
	if (rc)
		return finish_early(import, writer, &err);
	if (ts_output_part_commit(&import->part, &err))
		return ts_report_error(&err);
	import->events = count_events(writer);
	import->output_bytes = ts_writer_bytes(writer);
	report_summary(import);
	if (import->json)
		show_json(import);
	return TS_EXIT_DONE;
}

static int run(struct import *import)
{
	struct ts_error err;
	struct stat status;
	int exit_code;

	ts_progress_start(&import->clock, "import", TS_PROGRESS_BYTES);
	import->replaces = !stat(import->output, &status) && status.st_size > 0;
	if (ts_output_part_init(&import->part, import->output, &err))
		return ts_report_error(&err);
	exit_code = write_trace(import);
	ts_output_part_release(&import->part);
	return exit_code;
}

int ts_verb_import(int argc, char **argv)
{
	struct import import = { .threads = -1 };
	const struct ts_option options[] = {
		TS_OPTION_TEXT("output", 'o', "TRACE", &import.output,
			       "the trace to write (required)"),
		TS_OPTION_MODE,
		TS_OPTION_TEXT("format", 'f', "FORMAT", &import.format,
			       "format of the files; default: detected from the content"),
		TS_OPTION_TEXT("binary", 0, "FILE", &import.binary,
			       "xray: the program that wrote the log, for function names"),
		TS_OPTION_FLAG("list", 'l', &import.list, "list the formats"),
		TS_OPTION_INTEGER("threads", 0, "N", &import.threads, 0, 1024,
				  "number of compression threads; default: one "
				  "fewer than the number of CPUs"),
		TS_OPTION_INTEGER("level", 0, "N", &import.level, 1, 19,
				  "zstd level from 1 (fast) to 19 (small); default: 4"),
		TS_OPTION_FLAG("json", 0, &import.json,
			       "print a summary as JSON on standard output"),
		TS_OPTION_FLAG("quiet", 'q', &import.quiet, "print only errors and warnings"),
	};
	const struct ts_command command = {
		.verb = "import",
		.operands = "FILE...",
		.about =
			"Converts files of other tools, plain or compressed with gzip or zstd, into a trace: profiles "
			"of PyTorch, Nsight Systems, rocprofv3, Perfetto, Chrome, XRay, perf, pprof, speedscope (see --list). "
			"'-' is standard input. Several files become one trace with one source each: ranks of a job.\n",
		.examples = "tracesmith import trace.json.gz -o trace.sbt\n"
			    "tracesmith import rank*.json -o job.sbt\n"
			    "tracesmith import report.sqlite -o report.sbt\n"
			    "perf script | tracesmith import - -o perf.sbt\n"
			    "tracesmith import xray-log.* --binary ./program -o xray.sbt",
		.exits = "0  done\n2  usage error\n"
			 "3  bad input; everything before the error is in the trace, unless\n"
			 "   TRACE existed: then it stays as it was\n"
			 "4  this build cannot decompress a file",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
		.maximum_operands = -1,
	};
	int exit_code;

	if (!ts_command_parse(&command, &argc, argv, &exit_code))
		return exit_code;
	if (import.list)
		return list_formats();
	if (argc == 0)
		return ts_report_usage("no input file");
	import.paths = argv;
	import.path_count = argc;
	exit_code = check(&import);
	if (!exit_code)
		exit_code = run(&import);
	ts_text_release(&import.files_json);
	return exit_code;
}
