/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith sniff`: records the Python stacks of running processes as a timeline. A command line
 * for users of py-spy and similar tools; the recording itself is that of `tracesmith record`.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/common/amount.h"
#include "cli/common/options.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/record/record.h"
#include "cli/sniff/sniff.h"
#include "cli/verbs.h"
#include "sample/metrics/metrics_sampler.h"

#define SECOND_NS INT64_C(1000000000)
#define AUTOSAVE_NS (60 * SECOND_NS)
#define SNAPSHOT_NS (7200 * SECOND_NS)

/* Option texts as given. */
struct texts {
	struct ts_string_list pids;
	const char *interval, *duration, *output, *autosave, *snapshot;
	bool all_threads, npu_usage, gpu_usage, cpu_mem_usage;
	/* Parsed values. */
	pid_t process_ids[TS_RECORD_PIDS];
	char default_output[64], path[PATH_MAX];
};

static int64_t tick(struct ts_record *record, struct ts_recorder *recorder, int64_t now_ns)
{
	struct ts_sniff *sniff = record->context;
	int64_t next_ns = ts_sniff_line_draw(sniff, recorder, now_ns);

	if (sniff->finds_users)
		next_ns = TS_MIN(next_ns, ts_sniff_users_look(sniff, recorder, now_ns));
	return next_ns;
}

/* ---- parsing ---- */

static int read_times(const struct texts *texts, struct ts_record *record)
{
	struct ts_recorder_options *options = &record->options;
	int code;

	record->python.interval_ns = TS_PYTHON_INTERVAL_NS;
	options->autosave_ns = AUTOSAVE_NS;
	options->snapshot_ns = SNAPSHOT_NS;
	code = ts_amount_seconds("interval", texts->interval, &record->python.interval_ns);
	if (!code && record->python.interval_ns < TS_PYTHON_MIN_INTERVAL_NS)
		code = ts_report_usage(
			"option '--interval': '%s' is too short; the minimum is 0.0001 (s)",
			texts->interval);
	if (!code)
		code = ts_amount_seconds("duration", texts->duration, &options->duration_ns);
	if (!code)
		code = ts_amount_seconds("autosave-interval", texts->autosave,
					 &options->autosave_ns);
	if (!code)
		code = ts_amount_seconds("autosave-snapshot-interval", texts->snapshot,
					 &options->snapshot_ns);
	record->interval_ns = TS_MAX(record->python.interval_ns, TS_METRICS_INTERVAL_NS);
	return code;
}

static void choose_sources(const struct texts *texts, struct ts_record *record)
{
	snprintf(record->sources, sizeof(record->sources), "%s%s%s",
		 texts->cpu_mem_usage ? "host," : "", texts->gpu_usage ? "nvml,amd," : "",
		 texts->npu_usage ? "npu-smi," : "");
	record->samples = record->sources[0] != '\0';
}

static int choose_output(struct texts *texts, struct ts_record *record)
{
	static const char *const endings[] = { ".json", ".sbt", ".folded" };
	time_t now = (time_t)(ts_clock_realtime_ns() / SECOND_NS);
	struct tm local = { 0 };
	size_t length;

	record->options.output = texts->output;
	if (!texts->output) {
		localtime_r(&now, &local);
		strftime(texts->default_output, sizeof(texts->default_output),
			 "sniff-%Y%m%d-%H%M%S.json", &local);
		record->options.output = texts->default_output;
		record->python.no_counters = true;
		return TS_EXIT_DONE;
	}
	length = strlen(texts->output);
	for (size_t i = 0; i < TS_ARRAY_SIZE(endings); i++) {
		size_t tail = strlen(endings[i]);

		if (length > tail && !strcmp(texts->output + length - tail, endings[i])) {
			record->python.no_counters = strcmp(endings[i], ".sbt") != 0;
			return ts_record_name_output(record, texts->output, texts->path);
		}
	}
	return ts_report_usage(
		"option '--output': '%s' must end in .json (timeline), .sbt (trace) or .folded "
		"(stack counts)",
		texts->output);
}

/* Fails early if none of the named processes can be read. */
static int check_pids(const struct ts_record *record)
{
	struct ts_error first = { 0 };
	size_t refused = 0;

	for (size_t i = 0; i < record->options.pid_count; i++) {
		TS_AUTO(ts_python_reader) python = NULL;
		struct ts_error err = { 0 };
		int rc = ts_python_reader_open(&python, record->options.pids[i], 0, 0, &err);

		/*
		 * The recorder reports a missing process; a process that is not Python may become
		 * one by exec.
		 */
		if (rc != TS_ECAP && rc != TS_EVERSION)
			return TS_EXIT_DONE;
		if (!refused++)
			first = err;
	}
	return refused ? ts_report_error(&first) : TS_EXIT_DONE;
}

/* Says if no process was Python from start to end, nor one of its children. */
static int check_stacks(const struct ts_record *record)
{
	char others[48] = "";

	if (record->stacks || !record->options.pid_count)
		return TS_EXIT_DONE;
	if (record->options.pid_count > 1)
		snprintf(others, sizeof(others), " and %zu more", record->options.pid_count - 1);
	ts_report_event("no Python in process %d%s: nothing was sampled",
			(int)record->options.pids[0], others);
	/* Metrics were requested, and are there. */
	return record->samples ? TS_EXIT_DONE : TS_EXIT_INPUT;
}

static int run(struct texts *texts, struct ts_sniff *sniff)
{
	struct ts_record *record = &sniff->record;
	int code = read_times(texts, record);

	if (!code)
		code = ts_record_pids(record, &texts->pids, texts->process_ids);
	if (!code)
		ts_record_find_rank(record);
	if (!code)
		code = choose_output(texts, record);
	if (code)
		return code;
	choose_sources(texts, record);
	record->python.options.main_only = !texts->all_threads;
	sniff->finds_users = record->options.endless = !record->options.pid_count;
	code = sniff->finds_users ? ts_sniff_users_start(sniff) : check_pids(record);
	if (!code)
		code = ts_record_run(record);
	ts_progress_hide();
	if (!code)
		code = check_stacks(record);
	ts_sniff_users_stop(sniff);
	return code;
}

/* ---- the verb ---- */

int ts_verb_sniff(int argc, char **argv)
{
	struct texts texts = { 0 };
	struct ts_sniff sniff = {
		.record = { .tick = tick,
			    .context = &sniff,
			    .python = { .samples = true },
			    .options = { .outside = true,
					 .sampled = true,
					 .note = ts_record_note,
					 .context = &sniff.record,
					 .export_text = ts_record_export_text,
					 .json_exporter = "timeline" } },
	};
	const struct ts_option options[] = {
		TS_OPTION_LIST(
			"pid", 'p', "PID,PID", &texts.pids,
			"sample these processes and their children; default: all processes that "
			"use an accelerator"),
		TS_OPTION_TEXT("interval", 'i', "SECONDS", &texts.interval,
			       "interval between samples; default: 0.1, minimum: 0.0001"),
		TS_OPTION_TEXT("duration", 'd', "SECONDS", &texts.duration,
			       "stop after this time; default: when all processes have exited, "
			       "or on Ctrl-C"),
		TS_OPTION_TEXT("output", 'o', "FILE", &texts.output,
			       "output: Chrome timeline (.json), trace (.sbt) or stack counts "
			       "(.folded); default: sniff-DATE-TIME.json. %r, %h, %p and %q{NAME} "
			       "are replaced as by 'tracesmith record'"),
		TS_OPTION_MODE,
		TS_OPTION_FLAG("all-threads", 0, &texts.all_threads,
			       "sample all threads, not only the main thread"),
		TS_OPTION_FLAG("all-thread", 0, &texts.all_threads, "same as --all-threads"),
		TS_OPTION_FLAG("native", 0, &sniff.record.python.options.native,
			       "include native frames"),
		TS_OPTION_FLAG("npu-usage", 0, &texts.npu_usage,
			       "record utilization and memory of NPUs (npu-smi)"),
		TS_OPTION_FLAG("gpu-usage", 0, &texts.gpu_usage,
			       "record utilization and memory of GPUs (NVML, AMD)"),
		TS_OPTION_FLAG("cpu-mem-usage", 0, &texts.cpu_mem_usage,
			       "record CPU and memory use of the processes and the machine"),
		TS_OPTION_TEXT("autosave-interval", 0, "SECONDS", &texts.autosave,
			       "write a complete file at this interval; default: 60"),
		TS_OPTION_TEXT("autosave-snapshot-interval", 0, "SECONDS", &texts.snapshot,
			       "write a copy of the samples so far at this interval; default: "
			       "7200"),
		TS_OPTION_FLAG("quiet", 'q', &sniff.record.quiet,
			       "only errors and warnings on stderr"),
	};
	const struct ts_command command = {
		.verb = "sniff",
		.operands = "[-p PID,PID]",
		.about = "Samples the Python stacks of running processes from outside and writes "
			 "a timeline of their functions. Processes are neither stopped nor "
			 "modified. The file is valid after every save; after a kill, 'tracesmith "
			 "recover FILE.sbt -o OUT.sbt' recovers the samples.\n",
		.examples = "tracesmith sniff -p 4711 -d 10\n"
			    "tracesmith sniff -p 4711,4712 --all-threads -i 0.01 -o train.json\n"
			    "tracesmith sniff --gpu-usage --cpu-mem-usage -o job.sbt\n"
			    "tracesmith sniff -p 4711 -d 30 -o profile.folded",
		.exits = "0  done\n"
			 "2  usage error\n"
			 "3  no such process, no Python in it, its Python version is not "
			 "supported, or a file cannot be written\n"
			 "4  no permission to read the processes, or no accelerator to find "
			 "processes by",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
	};
	int code;

	if (ts_command_parse(&command, &argc, argv, &code))
		code = run(&texts, &sniff);
	ts_string_list_release(&texts.pids);
	return code;
}
