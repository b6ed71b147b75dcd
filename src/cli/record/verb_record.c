/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith record`: the command line. Starts a program and records it, records running programs,
 * or resumes what a killed recorder left.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracesmith/export.h>
#include <tracesmith/schema.h>

#include "base/output.h"
#include "base/text.h"
#include "cli/common/amount.h"
#include "cli/common/cli_output.h"
#include "cli/common/options.h"
#include "cli/common/report.h"
#include "cli/record/record.h"
#include "cli/verbs.h"
#include "live/area.h"
#include "live/config.h"
#include "live/discover.h"
#include "record/loop/process_areas.h"
#include "sample/metrics/metrics_sampler.h"

#define SNAPSHOT_LIMIT (UINT64_C(4) << 30)
#define WINDOW_TIMEOUT_NS INT64_C(10000000000)

/* Option texts as given. */
struct texts {
	struct ts_string_list pids;
	const char *output, *resume;
	const char *duration, *autosave, *snapshot_every;
	const char *max_size, *rotate, *budget;
	const char *window, *on_full, *backends, *sample_interval, *sample_rate;
	const char *replayable, *snapshot_limit, *window_timeout, *keep_contents;
	const char *python_interval;
	struct ts_record_option backend_options[TS_RECORD_BACKEND_OPTIONS + 1];
	struct ts_string_list python_on;
	int64_t rotate_keep, max_steps;
	/* Parsed values. */
	pid_t process_ids[TS_RECORD_PIDS];
	char default_output[64], path[PATH_MAX];
};

/* ---- parsing ---- */

/* As in `tracesmith config`. `--sample-rate`, the older name, takes seconds without a unit. */
static int read_sample_interval(const struct texts *texts, struct ts_record *record)
{
	const char *text = texts->sample_interval ? texts->sample_interval : texts->sample_rate;
	const struct ts_config_key *key;
	char assignment[64];
	struct ts_error err;

	record->interval_ns = TS_METRICS_INTERVAL_NS;
	if (!text)
		return TS_EXIT_DONE;
	if (texts->sample_interval && texts->sample_rate)
		return ts_report_usage(
			"'--sample-interval' and '--sample-rate' cannot be combined");
	if (ts_amount_check_unit("sample-interval", texts->sample_interval))
		return TS_EXIT_USAGE;
	snprintf(assignment, sizeof(assignment), "sample_rate=%.40s", text);
	if (!ts_config_parse(assignment, &key, &record->interval_ns, &err))
		return TS_EXIT_DONE;
	if (texts->sample_interval)
		return ts_report_usage(
			"option '--sample-interval': '%s' is not a time up to 1h, such as 20ms",
			text);
	return ts_report_usage("option '--sample-rate': '%s' is not a number of seconds up to 3600",
			       text);
}

static int read_amounts(const struct texts *texts, struct ts_record *record)
{
	struct ts_recorder_options *options = &record->options;
	int rc = ts_amount_time("duration", texts->duration, &options->duration_ns);

	if (!rc)
		rc = ts_amount_time("autosave", texts->autosave, &options->autosave_ns);
	if (!rc)
		rc = ts_amount_time("snapshot-every", texts->snapshot_every, &options->snapshot_ns);
	if (!rc)
		rc = ts_amount_size("max-size", texts->max_size, &options->max_bytes);
	if (!rc)
		rc = ts_amount_time_or_size("rotate", texts->rotate, &options->rotate_ns,
					    &options->rotate_bytes);
	if (!rc)
		rc = ts_amount_size("budget", texts->budget, &record->launch.budget);
	if (!rc)
		rc = read_sample_interval(texts, record);
	options->rotate_keep = (unsigned int)texts->rotate_keep;
	options->max_steps = record->launch.max_steps = texts->max_steps;
	return rc;
}

static bool is_set(const char *variable)
{
	return variable && *variable && *variable != '0';
}

static int parse_texts(const struct texts *texts, struct ts_record *record)
{
	struct ts_window_spec *window = &record->options.window;
	struct ts_error err;

	if (texts->on_full && strcmp(texts->on_full, "drop") != 0 &&
	    strcmp(texts->on_full, "stop") != 0)
		return ts_report_usage("option '--on-full': '%s' is neither drop nor stop",
				       texts->on_full);
	record->options.stop_when_full = texts->on_full && !strcmp(texts->on_full, "stop");
	if (texts->rotate_keep && !texts->rotate)
		return ts_report_usage("option '--rotate-keep' needs '--rotate'");
	if (texts->backends && strpbrk(texts->backends, "; \t\n"))
		return ts_report_usage("option '--backends': '%s' is not a list of names",
				       texts->backends);
	if (texts->window && ts_window_parse(texts->window, window, &err)) {
		ts_error_prefix(&err, "option '--window'");
		return ts_report_usage("%s", err.message);
	}
	record->options.redact |= is_set(getenv("TRACESMITH_REDACT"));
	record->launch.enabled = window->kind == TS_WINDOW_ALWAYS;
	record->launch.redact = record->options.redact;
	record->launch.step_open = record->launch.step_close = TS_ABSENT;
	if (window->kind == TS_WINDOW_STEPS) {
		record->launch.step_open = window->first;
		record->launch.step_close = window->last;
	}
	return TS_EXIT_DONE;
}

/* Explains why a replay is not possible. */
static int check_replayable(const struct texts *texts, const struct ts_record *record)
{
	if (*texts->replayable && strcmp(texts->replayable, "checked") != 0)
		return ts_report_usage("option '--replayable' takes only the value checked, not "
				       "'%s'",
				       texts->replayable);
	if (!record->command)
		return ts_report_usage(
			"'--replayable' must track a program from its start: use 'tracesmith "
			"record --replayable -- CMD'");
	if (texts->rotate)
		return ts_report_usage(
			"'--replayable' and '--rotate' cannot be combined: a window must be in "
			"one file");
	if (record->options.redact)
		return ts_report_usage(
			"'--replayable' and '--redact' cannot be combined: a replay needs memory "
			"and arguments");
	return ts_record_check_replayable(record);
}

/* Call after the backends are known. */
static int read_replayable(const struct texts *texts, struct ts_record *record)
{
	struct ts_launch_options *launch = &record->launch;
	int rc;

	if (!texts->replayable) {
		if (texts->snapshot_limit || texts->window_timeout || texts->keep_contents)
			return ts_report_usage("option '--%s' needs '--replayable'",
					       texts->snapshot_limit   ? "snapshot-limit"
					       : texts->window_timeout ? "window-timeout"
								       : "keep-contents");
		return TS_EXIT_DONE;
	}
	rc = check_replayable(texts, record);
	launch->replayable = *texts->replayable ? TS_REPLAY_CHECKED : TS_REPLAY_PLAIN;
	launch->from_start = record->options.window.kind == TS_WINDOW_ALWAYS;
	launch->snapshot_limit = SNAPSHOT_LIMIT;
	launch->window_timeout_ns = WINDOW_TIMEOUT_NS;
	if (!rc)
		rc = ts_amount_size("snapshot-limit", texts->snapshot_limit,
				    &launch->snapshot_limit);
	if (!rc)
		rc = ts_amount_time("window-timeout", texts->window_timeout,
				    &launch->window_timeout_ns);
	if (!rc)
		rc = ts_amount_size("keep-contents", texts->keep_contents, &launch->keep_contents);
	return rc;
}

/* Call after the backends are known: stack options need a backend that takes stacks. */
static int read_python(const struct texts *texts, struct ts_record *record)
{
	const struct ts_python_sampler_options *options = &record->python.options;
	int code = ts_record_python_interval(texts->python_interval, &record->python.interval_ns);

	for (size_t i = 0; i < texts->python_on.count && !code; i++)
		code = ts_record_python_on(record, texts->python_on.items[i]);
	if (code)
		return code;
	if (!record->python.samples &&
	    (texts->python_interval || options->native || options->locals))
		return ts_report_usage("option '--%s' needs '--backends python'",
				       texts->python_interval ? "python-interval"
				       : options->native      ? "native"
							      : "locals");
	if (options->locals && record->options.redact)
		return ts_report_usage(
			"'--locals' and '--redact' cannot be combined: local variables are values "
			"of the program");
	if (record->python.stacks[0] && !record->command)
		return ts_report_usage("'--python-on %s' needs a program to start: give -- CMD",
				       record->python.stacks);
	if (record->python.stacks[0])
		record->launch.python_stacks = record->python.stacks;
	return TS_EXIT_DONE;
}

/* A name of a format that only `tracesmith export` writes would become a trace of another name. */
static int check_format(const char *output)
{
	const struct ts_exporter *exporter = output ? ts_exporter_for_file(output) : NULL;
	bool compressed = exporter && ts_export_is_compressed(output);

	if (!exporter || (!compressed &&
			  (!strcmp(exporter->name, "chrome") || !strcmp(exporter->name, "folded"))))
		return TS_EXIT_DONE;
	return ts_report_usage("a recording can be written as .sbt, .json or .folded, not as '%s'; "
			       "record to T.sbt, then: tracesmith export T.sbt -o %s",
			       output, output);
}

/* Requires exactly one of a program, processes, or --resume. */
static int check_what(const struct texts *texts, const struct ts_record *record)
{
	int ways = (record->command != NULL) + (texts->pids.count > 0) + (texts->resume != NULL);

	if (ways == 0)
		return ts_report_usage("nothing to record: give -- CMD, -p PID or --resume TRACE");
	if (ways > 1)
		return ts_report_usage("give only one of -- CMD, -p PID and --resume TRACE");
	if (texts->resume && texts->output)
		return ts_report_usage("'--resume' and '-o' cannot be combined: recording "
				       "continues in the same trace");
	if (!record->command && texts->budget)
		return ts_report_usage("'--budget' needs a program to start: give -- CMD");
	if (texts->output && (!*texts->output || !strcmp(texts->output, "-")))
		return ts_report_usage("a recording needs an output file, such as -o trace.sbt");
	return check_format(texts->output);
}

/*
 * Without -o: named after the process, or after this one if none runs yet. What is resumed is named
 * as it is.
 */
static int choose_output(struct texts *texts, struct ts_record *record)
{
	if (texts->resume) {
		record->options.output = texts->resume;
		return TS_EXIT_DONE;
	}
	if (texts->output)
		return ts_record_name_output(record, texts->output, texts->path);
	snprintf(texts->default_output, sizeof(texts->default_output), "tracesmith-%d.sbt",
		 record->options.pid_count ? (int)record->options.pids[0] : (int)getpid());
	return ts_record_name_output(record, texts->default_output, texts->path);
}

/*
 * Each process must exist, and must have an agent unless samples are recorded: an error now is
 * better than an empty trace.
 */
static int check_targets(const struct ts_record *record)
{
	for (size_t i = 0; i < record->options.pid_count; i++) {
		TS_AUTO(ts_process_areas) areas = NULL;
		struct ts_error err;

		if (!ts_process_areas_open(&areas, record->options.pids[i], &err))
			continue;
		if (!record->options.sampled || err.code != TS_ECAP)
			return ts_report_error(&err);
		if (!record->quiet)
			ts_report_event("process %d has no TraceSmith agent: recording %s only",
					(int)record->options.pids[i],
					!record->python.samples ? "metrics"
					: record->samples       ? "metrics and Python stacks"
								: "Python stacks");
	}
	return TS_EXIT_DONE;
}

static int check_resumable(const struct texts *texts, struct ts_record *record)
{
	struct ts_error err;
	char trace[PATH_MAX];

	if (!texts->resume)
		return TS_EXIT_DONE;
	record->options.resume = true;
	ts_record_trace_path(texts->resume, trace, sizeof(trace));
	/* The recorder finds the last file of a rotation. */
	if (texts->rotate || ts_record_is_unfinished(trace))
		return TS_EXIT_DONE;
	if (!ts_record_check_begun(trace, &err))
		ts_error_set(&err, TS_ENOTFOUND,
			     access(trace, F_OK)
				     ? "cannot resume '%s': no such recording"
				     : "cannot resume '%s': it is finished (there is no journal)",
			     trace);
	return ts_report_error(&err);
}

static const char *choose_backends(const struct texts *texts)
{
	const char *list = texts->backends ? texts->backends : getenv("TRACESMITH_BACKENDS");

	return list && *list ? list : NULL;
}

static int run(struct texts *texts, struct ts_record *record)
{
	int code = check_what(texts, record);

	if (!code)
		code = read_amounts(texts, record);
	if (!code)
		code = parse_texts(texts, record);
	if (!code)
		code = ts_record_pids(record, &texts->pids, texts->process_ids);
	if (!code)
		ts_record_find_rank(record);
	if (!code)
		code = ts_record_backends(record, choose_backends(texts));
	if (!code)
		code = ts_record_check_launcher(record);
	if (!code)
		code = read_replayable(texts, record);
	if (!code)
		code = read_python(texts, record);
	if (!code)
		code = ts_record_read_settings(record, texts->backend_options);
	record->options.sampled = record->samples || record->python.samples;
	if (!code)
		code = check_targets(record);
	if (!code)
		code = check_resumable(texts, record);
	if (!code)
		code = choose_output(texts, record);
	return code ? code : ts_record_run(record);
}

/* ---- the verb ---- */

static void release_texts(struct texts *texts)
{
	ts_string_list_release(&texts->pids);
	ts_string_list_release(&texts->python_on);
}

int ts_verb_record(int argc, char **argv)
{
	struct texts texts = { 0 };
	char help[2][2048];
	struct ts_record record = { .options = { .note = ts_record_note,
						 .context = &record,
						 .export_text = ts_record_export_text } };
	const struct ts_option common_options[] = {
		TS_OPTION_TEXT(
			"output", 'o', "TRACE", &texts.output,
			"the trace to write; default: tracesmith-PID.sbt. If the name ends in "
			".json, write a plain array of Chrome events; in .folded, sampled stacks. "
			"In the name, %r is the rank in a distributed job, %h the host, %p the "
			"process, %q{NAME} an environment variable, %% a percent sign; with "
			"one of these, missing folders are created"),
		TS_OPTION_MODE,
		TS_OPTION_LIST("pid", 'p', "PID,PID", &texts.pids,
			       "record running processes: their metrics and Python stacks, and the "
			       "events of those with an agent ('tracesmith ps' lists them)"),
		TS_OPTION_TEXT("resume", 0, "TRACE", &texts.resume,
			       "continue after a recorder was killed: same processes, same trace"),
		TS_OPTION_TEXT("duration", 0, "TIME", &texts.duration,
			       "stop after this time: 500ms, 10s, 2m"),
		TS_OPTION_TEXT("max-size", 0, "SIZE", &texts.max_size,
			       "stop at this size on disk: 512M, 2G; with --rotate: delete the "
			       "oldest files of this recording instead"),
		TS_OPTION_TEXT("rotate", 0, "SIZE|TIME", &texts.rotate,
			       "start a new file at this size (64M) or after this time (10m)"),
		TS_OPTION_INTEGER("rotate-keep", 0, "N", &texts.rotate_keep, 1, 1000000,
				  "keep only the newest N files of this recording"),
		TS_OPTION_TEXT("autosave", 0, "TIME", &texts.autosave,
			       "finish the file at this interval, so that other programs can "
			       "read it"),
		TS_OPTION_TEXT("snapshot-every", 0, "TIME", &texts.snapshot_every,
			       "write a copy of the trace at this interval"),
		TS_OPTION_TEXT(
			"window", 'w', "WHEN", &texts.window,
			"record only while a file exists (flag:PATH), from step A to step B "
			"(steps:A-B), from one time since the start to another (time:10s-20s), "
			"when 'tracesmith window' opens it (command)"),
		TS_OPTION_INTEGER("max-steps", 0, "N", &texts.max_steps, 1, INT64_MAX,
				  "close a window after N steps"),
		TS_OPTION_MAYBE(
			"replayable", 0, "checked", &texts.replayable,
			"store what 'tracesmith replay' needs to run the commands again: "
			"programs, arguments and memory. The program may wait for the recorder. "
			"checked: hash memory after each command, too"),
		TS_OPTION_TEXT(
			"snapshot-limit", 0, "SIZE", &texts.snapshot_limit,
			"with --replayable: no window if the program uses more device memory "
			"than this; default: 4G"),
		TS_OPTION_TEXT("window-timeout", 0, "TIME", &texts.window_timeout,
			       "with --replayable: give up if a window does not open in this time; "
			       "default: 10s"),
		TS_OPTION_TEXT(
			"keep-contents", 0, "SIZE", &texts.keep_contents,
			"with --replayable: store the contents of memory that is checked, not only "
			"its hash, up to SIZE per window; 'tracesmith replay' then says which "
			"values differ, and '--tolerance' applies"),
		TS_OPTION_FLAG("split", 0, &record.options.split,
			       "write one trace per window and process"),
		TS_OPTION_FLAG("redact", 0, &record.options.redact,
			       "leave out values: command lines, strings in arguments, watched "
			       "variables, the host name (docs/privacy.md)"),
		TS_OPTION_TEXT(
			"on-full", 0, "WHAT", &texts.on_full,
			"when the disk is full: drop events and count them until there is space "
			"(default), or stop"),
		TS_OPTION_FLAG("sync", 0, &record.options.sync,
			       "flush to disk (fsync) at each save"),
		TS_OPTION_TEXT("budget", 0, "SIZE", &texts.budget,
			       "shared memory per process; default: 32M, or an eighth of the free "
			       "memory if less; twice that with --replayable"),
		TS_OPTION_TEXT(
			"backends", 0, "LIST", &texts.backends,
			"what to record in addition to the program's own events, separated by "
			"commas: python (stacks), sources of metrics, built-in and third-party "
			"backends (libtracesmith-backend-NAME.so), or none. Default: "
			"$TRACESMITH_BACKENDS, or all but third-party ones. Metrics: "
			"host"),
		TS_OPTION_FLAG("no-symbols", 0, &record.no_symbols,
			       "do not resolve native frames to functions at the end; 'tracesmith "
			       "symbolize' does it later"),
		TS_OPTION_TEXT("sample-interval", 0, "TIME", &texts.sample_interval,
			       "time between metric samples; default: 100ms, 0: none"),
		TS_OPTION_TEXT("sample-rate", 0, "SECONDS", &texts.sample_rate,
			       "the same, without a unit: 0.1"),
		TS_OPTION_TEXT("python-interval", 0, "TIME", &texts.python_interval,
			       "time between samples of Python stacks: 10ms, or in seconds without "
			       "a unit; default: 100ms, minimum: 0.1ms"),
		TS_OPTION_LIST(
			"python-on", 0, "WHAT,WHAT", &texts.python_on,
			"record Python stacks on events: marks (at each mark of the program), "
			"calls (at each driver call), function:NAME (when a sample shows that a "
			"function was entered or left; * and ? match)"),
		TS_OPTION_FLAG("native", 0, &record.python.options.native,
			       "with Python stacks: include native frames"),
		TS_OPTION_FLAG("locals", 0, &record.python.options.locals,
			       "with Python stacks: include local variables, shortened"),
		TS_OPTION_FLAG("json", 0, &record.json,
			       "print a summary as JSON on standard "
			       "output"),
		TS_OPTION_FLAG("quiet", 'q', &record.quiet, "only errors and warnings on stderr"),
	};
	struct ts_option options[TS_ARRAY_SIZE(common_options) + TS_RECORD_BACKEND_OPTIONS];
	struct ts_command command = {
		.verb = "record",
		.operands = "-- CMD [ARG...]",
		.about = "Runs a program and records it and its children, or records running "
			 "processes. The program runs as usual: standard streams, signals and "
			 "exit code are unchanged. The recording ends when the last recorded "
			 "process exits.\n",
		.examples =
			"tracesmith record -o run.sbt -- python train.py\n"
			"tracesmith record -o run.json -- ./program\n"
			"tracesmith record -o job/%r.sbt -- torchrun --nproc-per-node 8 train.py\n"
			"mpirun -n 8 tracesmith record -o job/%r.sbt -- ./program\n"
			"tracesmith record -p 4711 --duration 10s\n"
			"tracesmith record -o run.sbt --python-interval 10ms -- python3 train.py\n"
			"tracesmith record --backends python,host -p 4711\n"
			"tracesmith record -o run.sbt --window steps:10-12 -- ./train\n"
			"tracesmith record -o run.sbt --window nvtx:step -- python train.py\n"
			"tracesmith record -o run.sbt --pc-sampling -- ./cuda_program\n"
			"tracesmith record -o run.sbt --replayable -- ./opencl_program\n"
			"tracesmith record --replayable --keep-contents 1G -- ./opencl_program\n"
			"tracesmith record --replayable --window steps:100-104 -- python train.py\n"
			"tracesmith record --rotate 256M --rotate-keep 4 -o log.sbt -- ./server",
		.exits = "N  that of CMD; 127 if it was not found, 126 if it cannot be executed\n"
			 "0  done\n"
			 "2  usage error\n"
			 "3  no such process, or a file cannot be read or written\n"
			 "4  the agent was not found, or could not be loaded into the program",
		.options = options,
		.maximum_operands = -1,
		.runs_command = true,
	};
	int exit_code;

	if (argc > 1 && !strcmp(argv[1], "--detached"))
		return ts_record_detached(argc - 1, argv + 1);
	if (argc > 2 && !strcmp(argv[1], "--control")) {
		record.control_fd = ts_record_control_open(argv[2]);
		if (record.control_fd < 0)
			return ts_report_usage("option '--control': '%s' is not an open socket",
					       argv[2]);
		ts_report_keep_errors();
		record.json = record.is_controlled = true;
		argv[2] = argv[0];
		argv += 2;
		argc -= 2;
	}
	ts_record_load_backends(common_options, TS_ARRAY_SIZE(common_options), argc, argv);
	memcpy(options, common_options, sizeof(common_options));
	command.option_count = ts_record_add_options(texts.backend_options, options,
						     TS_ARRAY_SIZE(common_options),
						     TS_ARRAY_SIZE(options));
	ts_record_complete_help(options, TS_ARRAY_SIZE(common_options), help);
	if (!ts_command_parse(&command, &argc, argv, &exit_code)) {
		ts_record_control_failed(&record, exit_code);
		release_texts(&texts);
		return exit_code;
	}
	argv[argc] = NULL;
	record.command = argc ? argv : NULL;
	exit_code = run(&texts, &record);
	ts_record_control_failed(&record, exit_code);
	release_texts(&texts);
	return exit_code;
}
