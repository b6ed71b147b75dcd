/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith export`: writes a trace in another format, or (CSV) a folder with one file per table.
 * A file is replaced once the new one is complete.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tracesmith/export.h>

#include "base/gzip.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/common/amount.h"
#include "cli/common/cli_output.h"
#include "cli/common/nearest.h"
#include "cli/common/options.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/trace_input.h"
#include "cli/export/export_report.h"
#include "cli/verbs.h"
#include "trace/trace_totals.h"

/* A value of --count. */
struct count {
	const char *name;
	unsigned int flag; /* 0: the default */
	enum ts_table_id table;
	const char *nothing; /* for a warning if the output is empty */
};

struct export
{
	const char *trace; /* or what messages call the process */
	int64_t pid;       /* 0: a trace */
	const char *format;
	const char *output;
	const char *count_text; /* NULL: samples, or spans if there are none */
	const struct count *count;
	const char *table;
	struct ts_quantity_range range;
	int64_t limit; /* -1: none */
	bool no_idle, no_lines, no_threads, no_gpu_stages;
	bool list, quiet, json;
	const struct ts_exporter *exporter;
	unsigned int flags; /* TS_EXPORT_* */
	int64_t from, to;   /* both 0: everything */
	bool into_folder;   /* one file per table */
	struct ts_export_summary summary;
};

/* ---- what is asked ---- */

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

/* For an output whose name fits no format. */
static int unknown_ending(const char *output)
{
	const struct ts_exporter *exporters;
	TS_SCOPED(ts_text) endings = { 0 };
	size_t count;

	exporters = ts_exporter_list(&count);
	for (size_t i = 0; i < count; i++)
		if (exporters[i].endings[0])
			ts_text_printf(&endings, " %s", exporters[i].endings[0]);
	return ts_report_usage("no format has files like '%s': give -f FORMAT, or a name that ends "
			       "in%s, or in one of these and .gz",
			       output, ts_text_cstr(&endings));
}

/* The name of a pipe or device says nothing, nor does one without an ending. */
static bool has_ending(const char *output)
{
	const char *slash = strrchr(output, '/');
	struct stat status;

	return strchr(slash ? slash : output, '.') && strcmp(output, "-") != 0 &&
	       (stat(output, &status) || S_ISREG(status.st_mode));
}

/* -f, or what the name of the output says. */
static int choose_exporter(struct export *export)
{
	if (!export->format && export->output) {
		export->exporter = ts_exporter_for_file(export->output);
		if (!export->exporter && has_ending(export->output))
			return unknown_ending(export->output);
	}
	if (!export->exporter)
		export->exporter = ts_exporter_find(export->format ? export->format : "chrome");
	if (!export->exporter)
		return unknown_format(export->format);
	export->format = export->exporter->name;
	return TS_EXIT_DONE;
}

static const struct count counts[] = {
	{ "samples", 0, TS_TABLE_SAMPLE, "no sampled stacks" },
	{ "time", TS_EXPORT_TIME, TS_TABLE_SAMPLE, "no sampled stacks" },
	{ "device", TS_EXPORT_DEVICE, TS_TABLE_GPU_OP, "no device work" },
	{ "calls", TS_EXPORT_CALLS, TS_TABLE_API_CALL, "no driver calls" },
	{ "memory", TS_EXPORT_MEMORY, TS_TABLE_ALLOCATION, "no allocations" },
	{ "spans", TS_EXPORT_SPANS, TS_TABLE_SLICE, "no spans" },
};

/* NULL: the first one. */
static const struct count *find_count(const char *name)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(counts); i++)
		if (!name || !strcmp(counts[i].name, name))
			return &counts[i];
	return NULL;
}

/* The options as flags; reports the first that the format does not support. */
static int choose_flags(struct export *export)
{
	const struct count *count = find_count(export->count_text);
	const struct {
		bool requested;
		unsigned int flag;
		const char *option;
	} choices[] = {
		{ export->no_idle, TS_EXPORT_NO_IDLE, "no-idle" },
		{ export->no_lines, TS_EXPORT_NO_LINES, "no-lines" },
		{ export->no_threads, TS_EXPORT_NO_THREADS, "no-threads" },
		{ export->no_gpu_stages, TS_EXPORT_NO_GPU_STAGES, "no-gpu-stages" },
		{ count && count->flag, count ? count->flag : 0, "count" },
		{ export->table != NULL, TS_EXPORT_TABLE, "table" },
		{ export->range.from != NULL, TS_EXPORT_RANGE, "from" },
		{ export->range.to != NULL, TS_EXPORT_RANGE, "to" },
		{ export->limit >= 0, TS_EXPORT_LIMIT, "limit" },
	};

	if (!count)
		return ts_report_usage(
			"option '--count' is samples, time, device, calls, memory or spans, not '%s'",
			export->count_text);
	export->count = count;
	for (size_t i = 0; i < TS_ARRAY_SIZE(choices); i++) {
		if (!choices[i].requested)
			continue;
		if (!(export->exporter->takes & choices[i].flag))
			return ts_report_usage("option '--%s' has no effect on format '%s'",
					       choices[i].option, export->format);
		export->flags |= choices[i].flag;
	}
	/* Those are members of the options. */
	export->flags &= ~(TS_EXPORT_TABLE | TS_EXPORT_RANGE | TS_EXPORT_LIMIT);
	return TS_EXIT_DONE;
}

static int check_table(const struct export *export)
{
	int id = ts_table_by_name(export->table);
	const struct ts_table_info *table = id < 0 ? NULL : ts_table_info((uint32_t)id);

	if (!table)
		return ts_report_unknown_table(export->table);
	if (table->kind == TS_KIND_DERIVED)
		return ts_report_usage(
			"table '%s' is computed, not stored: tracesmith state TRACE %s --csv",
			export->table, id == TS_TABLE_EDGE ? "--edges" : "--commands");
	if (table->kind == TS_KIND_INTERNAL)
		return ts_report_usage("table '%s' cannot be exported", export->table);
	return TS_EXIT_DONE;
}

static bool is_standard_output(const struct export *export)
{
	return !strcmp(export->output, "-");
}

/* A folder that exists, or a path that ends in a slash. */
static bool is_folder(const char *path)
{
	size_t length = strlen(path);
	struct stat status;

	return (length && path[length - 1] == '/') ||
	       (!stat(path, &status) && S_ISDIR(status.st_mode));
}

static int check_is_other(const struct export *export, const char *output, struct ts_error *err)
{
	if (export->pid || !ts_output_is_input(output, export->trace))
		return TS_OK;
	return ts_error_set(err, TS_EINVAL,
			    "the output '%s' is also the trace '%s'; give -o another name", output,
			    export->trace);
}

static int check_output(struct export *export)
{
	if (export->json && is_standard_output(export))
		return ts_report_usage("'--json' also writes to standard output: give -o a file");
	export->into_folder = export->exporter->takes & TS_EXPORT_TABLE && !export->table &&
			      is_folder(export->output);
	if (export->exporter->takes & TS_EXPORT_TABLE && !export->table && !export->into_folder)
		return ts_report_usage("a %s file holds one table: give --table NAME, or -o "
				       "FOLDER/ for one file per table",
				       export->format);
	if (export->into_folder)
		return TS_EXIT_DONE;
	return is_standard_output(export) ? TS_EXIT_DONE : ts_output_check_file(export->output);
}

static int check(struct export *export)
{
	struct ts_error err;
	int exit_code;

	if (export->output && check_is_other(export, export->output, &err))
		return ts_report_error(&err);
	exit_code = choose_exporter(export);
	if (!exit_code)
		exit_code = choose_flags(export);
	if (!exit_code)
		exit_code = ts_amount_range_check(&export->range);
	if (!exit_code && export->table)
		exit_code = check_table(export);
	if (exit_code)
		return exit_code;
	if (!export->output)
		return ts_report_usage(
			"no output given: tracesmith export %s%s -f %s -o OUT, or -o - for "
			"standard output",
			export->pid ? "-p " : "",
			export->pid ? export->trace + strlen("process ") : TS_SHELL(export->trace),
			export->format);
	return check_output(export);
}

static int choose_range(struct export *export, struct ts_reader *reader)
{
	if (!export->range.from && !export->range.to)
		return TS_EXIT_DONE;
	export->from = INT64_MIN;
	export->to = INT64_MAX;
	return ts_amount_range(&export->range, ts_trace_start(reader), &export->from, &export->to);
}

/* ---- the work ---- */

/* Callbacks of the exporter. */
struct report_context {
	struct ts_progress progress;
	struct ts_export_losses *losses;
};

static int on_progress(void *context, uint64_t done, uint64_t total)
{
	struct report_context *report_context = context;

	return ts_progress_step(&report_context->progress, done, total);
}

static void on_left_out(void *context, const char *table, uint64_t rows, const char *reason)
{
	struct report_context *report_context = context;

	ts_export_losses_add(report_context->losses, table, rows, reason);
}

static int run_exporter(struct export *export, struct ts_reader *reader, int fd,
			struct ts_error *err)
{
	struct report_context report_context = { .losses = &export->summary.losses };
	struct ts_export_options options = {
		.size = sizeof(options),
		.progress = on_progress,
		.context = &report_context,
		.flags = export->flags,
		.table = export->table,
		.from = export->from,
		.to = export->to,
		.limit = export->limit < 0 ? 0 : (uint64_t) export->limit,
		.left_out = on_left_out,
	};
	int rc;

	ts_progress_start(&report_context.progress, "export", TS_PROGRESS_BYTES);
	rc = export->exporter->run(reader, fd, &options, err);
	ts_progress_stop(&report_context.progress);
	export->summary.seconds += ts_progress_seconds(&report_context.progress);
	if (!rc)
		rc = ts_reader_status(reader, err);
	return rc;
}

static int run_compressed(struct export *export, struct ts_reader *reader, int fd,
			  struct ts_error *err)
{
	struct ts_gzip *gzip;
	struct ts_error why;
	int input, rc = ts_gzip_start(&gzip, fd, &input, err);

	if (rc)
		return rc;
	rc = run_exporter(export, reader, input, err);
	/* The exporter only knows that it could not write any more. */
	if (ts_gzip_finish(gzip, &why)) {
		*err = why;
		rc = why.code;
	}
	return rc;
}

static void count_file(struct export *export, int fd)
{
	struct stat status;

	if (!fstat(fd, &status) && S_ISREG(status.st_mode)) {
		export->summary.bytes += (uint64_t)status.st_size;
		export->summary.has_bytes = true;
	}
	export->summary.files++;
}

static int write_part(struct export *export, struct ts_reader *reader,
		      const struct ts_output_part *part, struct ts_error *err)
{
	int fd, rc = ts_output_part_open(part, &fd, err);

	if (rc)
		return rc;
	rc = ts_export_is_compressed(part->output) ? run_compressed(export, reader, fd, err)
						   : run_exporter(export, reader, fd, err);
	if (rc)
		ts_error_prefix(err, "'%s'", part->output);
	else
		count_file(export, fd);
	/* Some file systems report a full disk only here. */
	if (close(fd) && !rc)
		rc = ts_error_errno(err, errno, "'%s': cannot write", part->output);
	return rc;
}

static int export_to_file(struct export *export, struct ts_reader *reader, const char *path,
			  struct ts_error *err)
{
	struct ts_output_part part;
	int rc = ts_output_part_init(&part, path, err);

	if (!rc)
		rc = write_part(export, reader, &part, err);
	if (!rc)
		rc = ts_output_part_commit(&part, err);
	ts_output_part_release(&part);
	return rc;
}

/* Texts are written in the rows that use them. */
static bool is_for_folder(const struct ts_reader *reader, unsigned int id)
{
	const struct ts_table_info *table = ts_table_info(id);

	return table && table->kind != TS_KIND_INTERNAL && table->kind != TS_KIND_DERIVED &&
	       id != TS_TABLE_STRING && ts_reader_rows(reader, (enum ts_table_id)id) > 0;
}

static int export_table(struct export *export, struct ts_reader *reader, const char *table,
			struct ts_error *err)
{
	struct ts_text *names = &export->summary.names;
	TS_SCOPED(ts_text) path = { 0 };
	int rc;

	ts_text_append_str(&path, export->output);
	if (path.length && path.data[path.length - 1] != '/')
		ts_text_append_char(&path, '/');
	ts_text_printf(&path, "%s.csv", table);
	rc = check_is_other(export, ts_text_cstr(&path), err);
	if (rc)
		return rc;
	export->table = table;
	rc = export_to_file(export, reader, ts_text_cstr(&path), err);
	ts_text_append_str(names, names->length ? "," : "");
	ts_text_append_json(names, path.data, path.length);
	return rc;
}

static int export_to_folder(struct export *export, struct ts_reader *reader, struct ts_error *err)
{
	int rc = ts_output_make_folder(export->output, err);

	for (unsigned int id = 0; !rc && id < TS_TABLE_COUNT; id++)
		if (is_for_folder(reader, id))
			rc = export_table(export, reader, ts_table_info(id)->name, err);
	return rc;
}

static uint64_t rows_of(const struct count *count, const struct ts_reader *reader)
{
	uint64_t rows = ts_reader_rows(reader, count->table);

	if (count->flag & TS_EXPORT_SPANS)
		rows += ts_reader_rows(reader, TS_TABLE_API_CALL);
	return rows;
}

/* A trace without samples has spans to show, unless the user wants something else. */
static void choose_spans(struct export *export, const struct ts_reader *reader)
{
	const struct count *spans = find_count("spans");

	if (export->count_text || !(export->exporter->takes & spans->flag) ||
	    rows_of(export->count, reader) || !rows_of(spans, reader))
		return;
	export->count = spans;
	export->flags |= spans->flag;
	if (!export->quiet)
		ts_report_note("'%s' has no sampled stacks: exporting its spans (--count spans)",
			       export->trace);
}

/* Explains an empty file. A timeline of stacks, which has the events, too, would be one of those.
 */
static int check_stacks(const struct export *export, const struct ts_reader *reader)
{
	struct ts_error err;

	if (!(export->exporter->takes & TS_EXPORT_NO_IDLE) || rows_of(export->count, reader))
		return TS_EXIT_DONE;
	if (export->exporter->takes & TS_EXPORT_SPANS) {
		ts_report_warning("'%s' has %s", export->trace, export->count->nothing);
		return TS_EXIT_DONE;
	}
	ts_error_set(&err, TS_ENOTFOUND, "'%s' has %s; export its events with -f chrome",
		     export->trace, export->count->nothing);
	return ts_report_error(&err);
}

static void report(struct export *export)
{
	if (!export->quiet && !is_standard_output(export))
		ts_export_report_output(&export->summary);
	if (!export->quiet)
		ts_export_report_losses(&export->summary);
	if (export->json)
		ts_export_show_json(&export->summary);
}

static int write_output(struct export *export, struct ts_reader *reader, struct ts_error *err)
{
	if (export->into_folder)
		return export_to_folder(export, reader, err);
	if (!is_standard_output(export))
		return export_to_file(export, reader, export->output, err);
	/* No file to remove: SIGPIPE may end the program. */
	signal(SIGPIPE, SIG_DFL);
	return run_exporter(export, reader, STDOUT_FILENO, err);
}

static int run(struct export *export)
{
	TS_AUTO(ts_reader) reader = NULL;
	struct ts_error err;
	int rc, exit_code = export->pid ? ts_trace_input_open_live(&reader, (pid_t) export->pid)
					: ts_trace_input_open(&reader, export->trace);

	if (!exit_code)
		exit_code = choose_range(export, reader);
	if (exit_code)
		return exit_code;
	choose_spans(export, reader);
	exit_code = check_stacks(export, reader);
	if (exit_code)
		return exit_code;
	export->summary.format = export->format;
	export->summary.output = export->output;
	rc = write_output(export, reader, &err);
	if (rc)
		return ts_report_error(&err);
	report(export);
	return TS_EXIT_DONE;
}

int ts_verb_export(int argc, char **argv)
{
	struct export export = { .range.may_be_instant = true, .limit = -1 };
	const struct ts_option options[] = {
		TS_OPTION_INTEGER(
			"process", 'p', "PID", &export.pid, 1, INT32_MAX,
			"instead of TRACE: what has been recorded of this process so far, "
			"and of all others of the same recording"),
		TS_OPTION_TEXT("format", 'f', "FORMAT", &export.format,
			       "output format; default: by the ending of OUT, or chrome"),
		TS_OPTION_TEXT("output", 'o', "OUT", &export.output,
			       "output file (required): .json, .pftrace, .csv, ..., compressed if "
			       "it ends in .gz; - is standard output; csv: also a folder"),
		TS_OPTION_MODE,
		TS_OPTION_TEXT("table", 't', "NAME", &export.table, "csv: the table to export"),
		TS_OPTION_TEXT(
			"from", 0, "TIME", &export.range.from,
			"csv, dot: only rows that end after this time: 1.5ms after the start of the "
			"trace, or @NANOSECONDS of trace time"),
		TS_OPTION_TEXT("to", 0, "TIME", &export.range.to,
			       "csv, dot: only rows that start at or before this time"),
		TS_OPTION_INTEGER("limit", 0, "N", &export.limit, 1, INT64_MAX,
				  "csv: at most N rows; dot: at most N commands, default 200"),
		TS_OPTION_TEXT(
			"count", 0, "WHAT", &export.count_text,
			"stack weights. folded: samples (default) or time in ns. folded, "
			"speedscope: device time by launch stack, driver calls, memory bytes "
			"allocated, or time of nested spans (default without samples)"),
		TS_OPTION_FLAG("no-idle", 0, &export.no_idle,
			       "sampled stacks: skip samples of idle threads"),
		TS_OPTION_FLAG("no-lines", 0, &export.no_lines,
			       "folded, speedscope: merge frames of a function, whatever the line"),
		TS_OPTION_FLAG("no-threads", 0, &export.no_threads,
			       "folded: merge all processes and threads"),
		TS_OPTION_FLAG("no-gpu-stages", 0, &export.no_gpu_stages,
			       "perfetto: device work only as slices of streams"),
		TS_OPTION_FLAG("json", 0, &export.json,
			       "print a summary as JSON on standard output"),
		TS_OPTION_FLAG("quiet", 'q', &export.quiet, "only errors and warnings on stderr"),
		TS_OPTION_FLAG("list", 'l', &export.list, "list the formats"),
	};
	const struct ts_command command = {
		.verb = "export",
		.operands = "TRACE | -p PID",
		.about =
			"Writes a trace in another format. Chrome's and Perfetto's open in ui.perfetto.dev, and "
			"'tracesmith import' reads them back without loss. Stacks become flame graphs (folded), a "
			"speedscope profile or a timeline; tables become CSV; dependencies a Graphviz graph. Rows that "
			"a format cannot represent are reported.\n",
		.examples =
			"tracesmith export run.sbt -o run.json.gz\n"
			"tracesmith export run.sbt -o run.pftrace\n"
			"tracesmith export run.sbt --table gpu_op -o kernels.csv\n"
			"tracesmith export run.sbt -f csv -o tables/\n"
			"tracesmith export run.sbt -f dot --limit 50 -o - | dot -Tsvg >run.svg\n"
			"tracesmith export run.sbt -f timeline -o stacks.json\n"
			"tracesmith export run.sbt -f folded --no-idle -o - | flamegraph.pl "
			">run.svg\n"
			"tracesmith export t.sbt -f folded --count device -o - | flamegraph.pl "
			">gpu.svg\n"
			"tracesmith export run.sbt -f speedscope --count spans -o "
			"run.speedscope.json\n"
			"tracesmith export -p 4711 -o now.json.gz",
		.exits = "0  done\n2  usage error\n3  bad input, or the output cannot be written",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
		.maximum_operands = 1,
	};
	char name[TS_TRACE_INPUT_NAME_BYTES];
	int exit_code;

	if (!ts_command_parse(&command, &argc, argv, &exit_code))
		return exit_code;
	if (export.list)
		return list_formats();
	if (argc == 0 && !export.pid)
		return ts_report_usage("TRACE or -p PID is missing");
	if (argc && export.pid)
		return ts_report_usage("'--process' replaces TRACE: omit one of them");
	export.trace = argc ? argv[0] : ts_trace_input_live_name((pid_t) export.pid, name);
	exit_code = check(&export);
	if (!exit_code)
		exit_code = run(&export);
	ts_export_summary_release(&export.summary);
	return exit_code;
}
