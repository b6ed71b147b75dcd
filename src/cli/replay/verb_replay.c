/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith replay`: runs a recorded command stream again, or simulates when it would run. Here
 * the question is put together; the files replay_*.c show the answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"
#include "cli/common/cli_output.h"
#include "cli/common/nearest.h"
#include "cli/common/options.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/trace_open.h"
#include "cli/common/trace_totals.h"
#include "cli/replay/replay_show.h"
#include "cli/verbs.h"
#include "replay/replay.h"

/* A kernel's source beyond this is a slip. */
#define MOST_SOURCE ((off_t)64 << 20)

struct replay {
	const char *target, *pace, *check, *tolerance, *dump, *at;
	int64_t repeat, process, window, limit;
	bool json, quiet, hashes;
	struct ts_word_list replaced, what_ifs;
	struct ts_replay_replacement *replacements;
	struct ts_replay_options options;
	struct ts_progress progress;
};

/* ---- options ---- */

static int parse_target(struct replay *replay)
{
	struct ts_nearest nearest;
	const char *name = replay->target ? replay->target : "opencl";

	ts_nearest_init(&nearest, name);
	for (size_t i = 0; ts_replay_targets[i]; i++) {
		if (!strcmp(ts_replay_targets[i]->name, name)) {
			replay->options.target = ts_replay_targets[i];
			return TS_EXIT_DONE;
		}
		ts_nearest_offer(&nearest, ts_replay_targets[i]->name);
	}
	if (nearest.best)
		return ts_report_usage("there is no target '%s'; did you mean '%s'?", name,
				       nearest.best);
	return ts_report_usage("there is no target '%s': it is opencl or emulator", name);
}

static int parse_words(struct replay *replay)
{
	const char *check = replay->check ? replay->check : "final";
	const char *pace = replay->pace ? replay->pace : "fast";

	if (!strcmp(check, "none"))
		replay->options.check = TS_REPLAY_CHECK_NONE;
	else if (!strcmp(check, "final"))
		replay->options.check = TS_REPLAY_CHECK_FINAL;
	else if (!strcmp(check, "each"))
		replay->options.check = TS_REPLAY_CHECK_EACH;
	else
		return ts_report_usage("option '--check' is none, final or each, not '%s'", check);
	if (!strcmp(pace, "original"))
		replay->options.pace = TS_REPLAY_ORIGINAL;
	else if (strcmp(pace, "fast") != 0)
		return ts_report_usage("option '--pace' is original or fast, not '%s'", pace);
	return TS_EXIT_DONE;
}

/* "ulp=4". */
static int parse_tolerance(struct replay *replay)
{
	const char *text = replay->tolerance;
	int64_t ulp;

	if (!text)
		return TS_EXIT_DONE;
	if (strncmp(text, "ulp=", 4) != 0 || ts_parse_int64(text + 4, strlen(text + 4), &ulp) ||
	    ulp < 0)
		return ts_report_usage("option '--tolerance' is ulp=N, not '%s'", text);
	if (!replay->options.value_type)
		return ts_report_usage("'--tolerance' needs '--as': which values are compared?");
	replay->options.ulp = (uint64_t)ulp;
	return TS_EXIT_DONE;
}

/* The number of a command or of memory, as messages name them. */
static int parse_number(const char *option, const char *text, uint64_t *ret_number)
{
	int64_t number;

	if (!text)
		return TS_EXIT_DONE;
	if (!strncmp(text, "memory ", 7))
		text += 7;
	if (ts_parse_int64(text, strlen(text), &number) || number <= 0)
		return ts_report_usage("option '--%s' needs a number, not '%s'", option, text);
	*ret_number = (uint64_t)number;
	return TS_EXIT_DONE;
}

static int parse_dump(struct replay *replay)
{
	int exit_code = parse_number("at", replay->at, &replay->options.dump_at);

	if (!exit_code)
		exit_code = parse_number("dump", replay->dump, &replay->options.dump_memory);
	if (!exit_code && !replay->at != !replay->dump)
		exit_code =
			ts_report_usage("'--at' and '--dump' go together: behind which command, "
					"and which memory");
	return exit_code;
}

/* What a simulation has no use for is most likely a slip. */
static int check_emulator(const struct replay *replay)
{
	const struct ts_replay_options *options = &replay->options;
	const struct {
		const char *name;
		bool is_given;
	} given[] = {
		{ "device", options->device }, { "stream", options->streams },
		{ "from", options->from },     { "to", options->to },
		{ "kernel", options->kernel }, { "pace", replay->pace },
		{ "check", replay->check },    { "at", replay->at },
		{ "as", options->value_type }, { "replace-kernel", replay->replaced.count },
		{ "hashes", replay->hashes },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(given); i++)
		if (given[i].is_given)
			return ts_report_usage("the emulator runs nothing: '--%s' is for targets "
					       "that do",
					       given[i].name);
	return TS_EXIT_DONE;
}

static int check_together(const struct replay *replay, const char *path)
{
	struct ts_output_file output;

	if (replay->options.target->flags & TS_REPLAY_NEEDS_WORK) {
		if (check_emulator(replay))
			return TS_EXIT_USAGE;
	} else if (replay->what_ifs.count) {
		return ts_report_usage("'--what-if' is for '--target emulator'");
	}
	if (replay->hashes && !replay->json)
		return ts_report_usage("'--hashes' needs '--json'");
	if (replay->options.output) {
		ts_output_file_init(&output, replay->options.output);
		if (ts_output_file_is(&output, path))
			return ts_report_usage("'-o' names the trace itself");
	}
	return TS_EXIT_DONE;
}

/* ---- --replace-kernel ---- */

static int read_source(const char *path, struct ts_replay_replacement *replacement)
{
	TS_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	TS_AUTO_FREE char *source = NULL;
	struct stat status;
	struct ts_error err;
	size_t length = 0;

	if (fd < 0 || fstat(fd, &status)) {
		ts_error_errno(&err, errno, "'%s'", path);
		return ts_report_error(&err);
	}
	if (!S_ISREG(status.st_mode) || status.st_size > MOST_SOURCE)
		return ts_report_usage("'%s' is no source of a kernel", path);
	source = malloc((size_t)status.st_size + 1);
	while (source && length < (size_t)status.st_size) {
		ssize_t got = ts_read_some(fd, source + length, (size_t)status.st_size - length);

		if (got <= 0)
			break;
		length += (size_t)got;
	}
	if (!source)
		return ts_report_exit_code(TS_ENOMEM);
	source[length] = '\0';
	replacement->path = path;
	replacement->bytes = length;
	replacement->source = TS_STEAL(source);
	return TS_EXIT_DONE;
}

static int read_replacements(struct replay *replay)
{
	size_t count = replay->replaced.count;
	int exit_code = TS_EXIT_DONE;

	replay->replacements = calloc(count + 1, sizeof(*replay->replacements));
	if (!replay->replacements)
		return ts_report_exit_code(TS_ENOMEM);
	for (size_t i = 0; !exit_code && i < count; i++) {
		char *equals = strchr(replay->replaced.words[i], '=');

		if (!equals || equals == replay->replaced.words[i] || !equals[1])
			return ts_report_usage("option '--replace-kernel' is NAME=FILE, not '%s'",
					       replay->replaced.words[i]);
		*equals = '\0';
		replay->replacements[i].kernel = replay->replaced.words[i];
		replay->options.replacement_count = i + 1;
		exit_code = read_source(equals + 1, &replay->replacements[i]);
	}
	replay->options.replacements = replay->replacements;
	return exit_code;
}

static int parse(struct replay *replay, const char *path)
{
	int exit_code = parse_target(replay);

	if (!exit_code)
		exit_code = parse_words(replay);
	if (!exit_code)
		exit_code = parse_tolerance(replay);
	if (!exit_code)
		exit_code = parse_dump(replay);
	if (!exit_code)
		exit_code = check_together(replay, path);
	if (!exit_code)
		exit_code = read_replacements(replay);
	replay->options.repeat = (unsigned int)replay->repeat;
	replay->options.process = replay->process;
	replay->options.window = (uint32_t)replay->window;
	replay->options.what_ifs = (const char *const *)replay->what_ifs.words;
	replay->options.what_if_count = replay->what_ifs.count;
	replay->options.name = path;
	return exit_code;
}

/* ---- the work ---- */

static int on_progress(void *context, const char *doing, uint64_t done, uint64_t total)
{
	struct replay *replay = context;

	replay->progress.label = doing;
	return ts_progress_step(&replay->progress, done, total);
}

static void show(const struct replay *replay, const struct ts_replay_shown *shown)
{
	TS_SCOPED(ts_text) told = { 0 };

	if (replay->json) {
		ts_replay_show_json(shown, ts_stdout());
		return;
	}
	if (!replay->dump) {
		ts_replay_show_text(shown, ts_stdout());
		return;
	}
	/* What is dumped may go to another program: the rest is not for it. */
	ts_replay_show_text(shown, &told);
	if (told.length && !replay->quiet)
		ts_report_note("%.*s", (int)told.length - 1, told.data);
	ts_replay_show_dump(shown, ts_stdout());
}

static int run_replay(struct replay *replay, struct ts_reader *reader, const char *path,
		      struct ts_replay_report *report, struct ts_error *err)
{
	TS_AUTO(ts_replay) work = NULL;
	struct ts_replay_shown shown = {
		.report = report, .path = path, .hashes = replay->hashes, .limit = replay->limit
	};
	int rc = ts_replay_open(&work, reader, &replay->options, err);

	if (!rc)
		rc = ts_replay_run(work, report, err);
	ts_progress_stop(&replay->progress);
	shown.replay = work;
	if (!rc)
		show(replay, &shown);
	return rc;
}

static int run(struct replay *replay, const char *path)
{
	TS_AUTO(ts_reader) reader = NULL;
	struct ts_replay_report report;
	struct ts_error err;
	int exit_code = ts_trace_open(&reader, path);

	if (exit_code)
		return exit_code;
	/*
	 * What -o writes has another name until it is whole: Ctrl-C leaves either all of it or
	 * nothing.
	 */
	ts_progress_start(&replay->progress, "replay", TS_PROGRESS_ROWS);
	replay->options.progress = on_progress;
	replay->options.context = replay;
	if (run_replay(replay, reader, path, &report, &err))
		return ts_report_error(&err);
	return report.verdict >= TS_REPLAY_DIFFERS ? TS_EXIT_NO : TS_EXIT_DONE;
}

static void release(struct replay *replay)
{
	for (size_t i = 0; replay->replacements && i < replay->options.replacement_count; i++)
		free((void *)(uintptr_t)replay->replacements[i].source);
	free(replay->replacements);
	ts_word_list_release(&replay->replaced);
	ts_word_list_release(&replay->what_ifs);
}

int ts_verb_replay(int argc, char **argv)
{
	struct replay replay = { .repeat = 1, .limit = -1 };
	struct ts_replay_options *core = &replay.options;
	const struct ts_option options[] = {
		TS_OPTION_TEXT(
			"target", 't', "NAME", &replay.target,
			"opencl (default): really runs; emulator: simulates when it would run"),
		TS_OPTION_TEXT("device", 'd', "N|NAME", &core->device,
			       "run on this device; default: one like the recorded one"),
		TS_OPTION_TEXT("stream", 's', "N,..", &core->streams,
			       "only the commands of these streams"),
		TS_OPTION_TEXT(
			"from", 0, "X", &core->from,
			"only from command X on: its number, or a time such as 1.5ms behind the "
			"first one"),
		TS_OPTION_TEXT("to", 0, "Y", &core->to, "only commands before that"),
		TS_OPTION_TEXT("kernel", 'k', "GLOB", &core->kernel,
			       "only launches of these kernels, with their real inputs"),
		TS_OPTION_INTEGER("repeat", 'n', "N", &replay.repeat, 1, 1000000,
				  "run so often, from the same beginning; default 1"),
		TS_OPTION_TEXT("pace", 0, "original|fast", &replay.pace,
			       "give commands when the program did, or at once (default)"),
		TS_OPTION_TEXT(
			"check", 0, "none|final|each", &replay.check,
			"compare what was read back and all memory at the end (final, default), "
			"what each command wrote, too (each), or nothing"),
		TS_OPTION_TEXT("at", 0, "COMMAND", &replay.at, "with --dump: behind which command"),
		TS_OPTION_TEXT("dump", 0, "BUFFER", &replay.dump,
			       "show the content of this memory (its number)"),
		TS_OPTION_INTEGER("limit", 0, "N", &replay.limit, 0, INT64_MAX,
				  "values that --dump shows; 0: all"),
		TS_OPTION_TEXT("as", 0, "TYPE", &core->value_type,
			       "memory holds f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64"),
		TS_OPTION_TEXT("tolerance", 0, "ulp=N", &replay.tolerance,
			       "with --as: values at most N units apart are equal"),
		TS_OPTION_WORD(
			"replace-kernel", 0, "NAME=FILE", &replay.replaced,
			"build the module of this kernel from another source; may be repeated"),
		TS_OPTION_WORD(
			"what-if", 'w', "CHANGE", &replay.what_ifs,
			"with --target emulator: kernel:GLOB=0.5x, kernel:GLOB=12us, streams=N, "
			"device-speed=2x, copy-bandwidth=2x, latency=.., policy=fifo|priority; may "
			"be repeated"),
		TS_OPTION_TEXT(
			"output", 'o', "TRACE", &core->output,
			"write the run as a trace: view, state, analyze and diff work on it"),
		TS_OPTION_INTEGER("window", 0, "N", &replay.window, 1, UINT32_MAX,
				  "which window; default: the first that can be replayed"),
		TS_OPTION_INTEGER("process", 0, "ID", &replay.process, 1, INT64_MAX,
				  "which process, where several have commands"),
		TS_OPTION_FLAG("yes", 'y', &core->trusts_owner,
			       "run a trace that belongs to another user: its commands run as you"),
		TS_OPTION_FLAG("json", 0, &replay.json, "JSON"),
		TS_OPTION_FLAG("hashes", 0, &replay.hashes,
			       "with --json: the hash of everything that was compared"),
		TS_OPTION_FLAG("quiet", 'q', &replay.quiet, "with --dump: only what is dumped"),
	};
	const struct ts_command command = {
		.verb = "replay",
		.operands = "TRACE",
		.about =
			"Runs the commands of a trace again (recorded with 'tracesmith record --replayable'), as a\n"
			"whole or in part, as often as wanted, and compares memory with the recording and from run\n"
			"to run. Or, with the emulator and any trace, says when all would have run, and what if.\n"
			"A trace is code: what is in it will run on your device.\n",
		.examples =
			"tracesmith replay run.sbt\n"
			"tracesmith replay run.sbt --check each --repeat 10 --json\n"
			"tracesmith replay run.sbt --kernel 'gemm*' --repeat 100\n"
			"tracesmith replay run.sbt --at 17 --dump 4 --as f32\n"
			"tracesmith replay run.sbt --replace-kernel gemm=new.cl --check each --as f32 --tolerance "
			"ulp=4\n"
			"tracesmith replay run.sbt -o again.sbt && tracesmith diff run.sbt again.sbt\n"
			"tracesmith replay kineto.json.gz --target emulator --what-if 'kernel:*gemm*=0.5x'",
		.exits =
			"0  no difference, or nothing was to be compared\n"
			"1  it differs: from the recording, or from run to run\n2  usage\n"
			"3  bad input, or nothing to replay\n4  the target or a device is missing here",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
		.minimum_operands = 1,
		.maximum_operands = 1,
	};
	int exit_code;

	if (ts_command_parse(&command, &argc, argv, &exit_code)) {
		exit_code = parse(&replay, argv[0]);
		if (!exit_code)
			exit_code = run(&replay, argv[0]);
	}
	release(&replay);
	return exit_code;
}
