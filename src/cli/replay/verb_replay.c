/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith replay`: runs a recorded command stream again, or simulates when it would run. This
 * file parses the options; replay_text.c, replay_json.c and replay_dump.c show the report.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/common/amount.h"
#include "cli/common/cli_output.h"
#include "cli/common/component_options.h"
#include "cli/common/nearest.h"
#include "cli/common/options.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "cli/common/terminal.h"
#include "cli/common/trace_input.h"
#include "cli/replay/replay_addresses.h"
#include "cli/replay/replay_show.h"
#include "cli/replay/replay_sources.h"
#include "cli/replay/replay_supervise.h"
#include "cli/verbs.h"
#include "replay/replay.h"
#include "trace/trace_totals.h"

/* Launches of --kernel that are timed, if --repeat does not say. */
#define TIMED_LAUNCHES 100u

struct replay {
	const char *target, *pace, *check, *tolerance, *dump, *png, *at, *time_limit, *step;
	char *kernel;     /* without the number behind # */
	const char *list; /* NULL: run; "": the commands; "checks" */
	int64_t repeat, window, limit;
	bool json, quiet, hashes;
	struct ts_string_list replaced;
	struct ts_component_options all_options; /* the verb's and the targets' */
	void *target_options;
	struct ts_replay_options options;
	struct ts_progress progress;
};

/* ---- options ---- */

static int unknown_target(const char *name, const char *nearest)
{
	TS_SCOPED(ts_text) names = { 0 };

	if (nearest)
		return ts_report_usage("there is no target '%s'; did you mean '%s'?", name,
				       nearest);
	for (size_t i = 0; ts_replay_targets[i]; i++)
		ts_text_printf(&names, "%s%s", i ? ", " : "", ts_replay_targets[i]->name);
	return ts_report_usage("there is no target '%s'; targets are %s", name,
			       ts_text_cstr(&names));
}

/* The one for the platform of the recording. What is wrong with the trace is reported later. */
static void choose_target(struct replay *replay, const char *path)
{
	TS_AUTO(ts_reader) reader = NULL;

	replay->options.target = ts_replay_targets[0];
	if (!ts_reader_open(&reader, path, NULL))
		replay->options.target = ts_replay_target_of(reader);
}

/* The first target is that of traces that do not say on what they were recorded. */
static int check_target(const struct replay *replay, const char *path)
{
	const struct ts_replay_target *target = replay->options.target, *own;
	TS_AUTO(ts_reader) reader = NULL;

	if (!(target->needs & TS_REPLAY_NEEDS_STREAM) || replay->list ||
	    ts_reader_open(&reader, path, NULL))
		return TS_EXIT_DONE;
	own = ts_replay_target_of(reader);
	if (own == target || own == ts_replay_targets[0])
		return TS_EXIT_DONE;
	return ts_report_usage("target '%s' cannot run this trace, '%s' can", target->name,
			       own->name);
}

static int parse_target(struct replay *replay, const char *path)
{
	struct ts_nearest nearest;
	const char *name = replay->target;

	if (!name) {
		choose_target(replay, path);
		return TS_EXIT_DONE;
	}
	ts_nearest_init(&nearest, name);
	for (size_t i = 0; ts_replay_targets[i]; i++) {
		if (!strcmp(ts_replay_targets[i]->name, name)) {
			replay->options.target = ts_replay_targets[i];
			return check_target(replay, path);
		}
		ts_nearest_offer(&nearest, ts_replay_targets[i]->name);
	}
	return unknown_target(name, nearest.best);
}

static bool is_chosen(const void *context, const char *name)
{
	const struct replay *replay = context;

	return !strcmp(replay->options.target->name, name);
}

static int parse_target_options(struct replay *replay)
{
	const struct ts_replay_target *target = replay->options.target;
	int exit_code = ts_component_options_check(&replay->all_options, is_chosen, replay);

	if (exit_code || !target->option_count)
		return exit_code;
	replay->target_options = calloc(1, target->options_bytes);
	if (!replay->target_options)
		return ts_report_exit_code(TS_ENOMEM);
	replay->options.target_options = replay->target_options;
	return ts_component_options_store(&replay->all_options, target->options,
					  target->option_count, replay->target_options);
}

static int parse_texts(struct replay *replay)
{
	const char *check = replay->check, *pace = replay->pace;

	if (!check)
		replay->options.check = TS_REPLAY_CHECK_DEFAULT;
	else if (!strcmp(check, "none"))
		replay->options.check = TS_REPLAY_CHECK_NONE;
	else if (!strcmp(check, "final"))
		replay->options.check = TS_REPLAY_CHECK_FINAL;
	else if (!strcmp(check, "each"))
		replay->options.check = TS_REPLAY_CHECK_EACH;
	else
		return ts_report_usage("option '--check' is none, final or each, not '%s'", check);
	if (!pace)
		replay->options.pace = TS_REPLAY_PACE_DEFAULT;
	else if (!strcmp(pace, "original"))
		replay->options.pace = TS_REPLAY_ORIGINAL;
	else if (!strcmp(pace, "fast"))
		replay->options.pace = TS_REPLAY_FAST;
	else
		return ts_report_usage("option '--pace' is original or fast, not '%s'", pace);
	return TS_EXIT_DONE;
}

static int parse_tolerance(struct replay *replay)
{
	const char *text = replay->tolerance;
	struct ts_error err;

	if (!text)
		return TS_EXIT_DONE;
	if (ts_value_tolerance_parse(&replay->options.tolerance, text, &err))
		return ts_report_usage("option '--tolerance': %s", err.message);
	if (!replay->options.value_type)
		return ts_report_usage("'--tolerance' needs '--as', the type of the values");
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
		return ts_report_usage("option '--%s' needs a number as --list shows it, not '%s'",
				       option, text);
	*ret_number = (uint64_t)number;
	return TS_EXIT_DONE;
}

/* ADDRESS[:BYTES] or argK[:BYTES]; false: neither. */
static bool parse_place(struct replay *replay, int *ret_exit_code)
{
	struct ts_replay_options *options = &replay->options;
	const char *text = replay->dump, *end = strchrnul(text, ':');
	bool is_address = !strncmp(text, "0x", 2), is_argument = !strncmp(text, "arg", 3);
	char *rest;

	if (!is_address && !is_argument)
		return false;
	text += is_argument ? 3 : 2;
	errno = 0;
	options->dump_address = strtoull(text, &rest, is_argument ? 10 : 16);
	options->dumps_address = is_address;
	options->dumps_argument = is_argument;
	if (rest == text || rest != end || errno || !isxdigit((unsigned char)*text))
		*ret_exit_code = ts_report_usage("option '--dump' is the number of a memory, "
						 "0xADDRESS[:BYTES] or argN[:BYTES], not '%s'",
						 replay->dump);
	else if (*end)
		*ret_exit_code = ts_amount_size("dump", end + 1, &options->dump_bytes);
	return true;
}

static int parse_dump(struct replay *replay)
{
	int exit_code = parse_number("at", replay->at, &replay->options.dump_at);

	if (!exit_code && !(replay->dump && parse_place(replay, &exit_code)))
		exit_code = parse_number("dump", replay->dump, &replay->options.dump_memory);
	if (!exit_code && (replay->options.dumps_address || replay->options.dumps_argument) &&
	    !(replay->options.target->can & TS_REPLAY_CAN_DUMP_ADDRESS))
		exit_code =
			ts_report_usage("target '%s' has no addresses: '--dump' is the number of "
					"a memory",
					replay->options.target->name);
	if (!exit_code && !replay->at != !replay->dump)
		exit_code =
			ts_report_usage("'--at' (after which command) and '--dump' (which memory) "
					"need each other");
	if (!exit_code && replay->png &&
	    (!replay->dump || replay->options.dumps_address || replay->options.dumps_argument))
		exit_code = ts_report_usage("'--png' needs '--dump', the number of an image");
	return exit_code;
}

/* "7" or "7-9". */
static int parse_step(struct replay *replay)
{
	struct ts_replay_options *options = &replay->options;
	const char *text = replay->step, *dash;

	if (!text)
		return TS_EXIT_DONE;
	dash = text + strspn(text, "0123456789");
	options->has_steps = true;
	if (ts_parse_int64(text, (size_t)(dash - text), &options->first_step) ||
	    (*dash && *dash != '-') ||
	    ts_parse_int64(*dash ? dash + 1 : text, strlen(*dash ? dash + 1 : text),
			   &options->last_step) ||
	    options->last_step < options->first_step)
		return ts_report_usage("option '--step' is a step or a range such as 100-104, not "
				       "'%s'",
				       text);
	return TS_EXIT_DONE;
}

/*
 * NAME or NAME#N. A target that can time a kernel runs one launch, then again and again, unless
 * runs are to be compared.
 */
static int parse_kernel(struct replay *replay)
{
	struct ts_replay_options *options = &replay->options;
	const char *number = options->kernel ? strrchr(options->kernel, '#') : NULL;
	int64_t value = 0;

	if (!options->kernel)
		return TS_EXIT_DONE;
	if (number && (ts_parse_int64(number + 1, strlen(number + 1), &value) || value < 1 ||
		       value >= UINT32_MAX))
		return ts_report_usage(
			"option '--kernel': what follows # is the number of a launch, "
			"from 1, not '%s'",
			number + 1);
	if (number) {
		replay->kernel = strndup(options->kernel, (size_t)(number - options->kernel));
		if (!replay->kernel)
			return ts_report_exit_code(TS_ENOMEM);
		options->kernel = replay->kernel;
		options->kernel_number = (uint32_t)value;
	}
	if (!(options->target->can & TS_REPLAY_CAN_TIME_KERNEL) || replay->check || replay->list ||
	    replay->dump)
		return TS_EXIT_DONE;
	options->kernel_number = TS_MAX(options->kernel_number, 1u);
	options->kernel_repeats = replay->repeat ? (uint32_t)replay->repeat : TIMED_LAUNCHES;
	options->check = TS_REPLAY_CHECK_NONE;
	options->repeat = 1;
	return TS_EXIT_DONE;
}

static int check_list(const struct replay *replay)
{
	if (!replay->list)
		return TS_EXIT_DONE;
	if (replay->list[0] && strcmp(replay->list, "checks") != 0)
		return ts_report_usage("option '--list' takes nothing or 'checks', not '%s'",
				       replay->list);
	if (!(replay->options.target->needs & TS_REPLAY_NEEDS_STREAM))
		return ts_report_usage("target '%s' runs no command stream: nothing to list",
				       replay->options.target->name);
	if (replay->options.output || replay->dump)
		return ts_report_usage("'--list' runs nothing: '--%s' cannot be combined with it",
				       replay->options.output ? "output" : "dump");
	return TS_EXIT_DONE;
}

static int check_outputs(const struct replay *replay, const char *path)
{
	const char *trace = replay->options.output;

	if (trace && ts_output_is_input(trace, path))
		return ts_report_usage("'-o' would overwrite the trace itself");
	if (replay->png && ts_output_is_input(replay->png, path))
		return ts_report_usage("'--png' would overwrite the trace itself");
	if (replay->png && ts_output_check_file(replay->png))
		return TS_EXIT_USAGE;
	return trace ? ts_output_check_trace(trace) : TS_EXIT_DONE;
}

static int check_combinations(const struct replay *replay, const char *path)
{
	if (check_list(replay))
		return TS_EXIT_USAGE;
	if (replay->hashes && !replay->json)
		return ts_report_usage("'--hashes' needs '--json'");
	if (replay->hashes && !(replay->options.target->can & TS_REPLAY_CAN_CHECK))
		return ts_report_usage("target '%s' compares no memory and has no hashes",
				       replay->options.target->name);
	return check_outputs(replay, path);
}

static int check(const struct replay *replay)
{
	struct ts_error err;

	return ts_replay_check_options(&replay->options, &err) ? ts_report_error(&err)
							       : TS_EXIT_DONE;
}

static int parse(struct replay *replay, const char *path)
{
	int exit_code = parse_target(replay, path);

	replay->options.repeat = replay->repeat ? (unsigned int)replay->repeat : 1;
	replay->options.window = (uint32_t)replay->window;
	replay->options.name = path;
	if (!exit_code)
		exit_code = parse_target_options(replay);
	if (!exit_code)
		exit_code = parse_texts(replay);
	if (!exit_code)
		exit_code = parse_tolerance(replay);
	if (!exit_code)
		exit_code = parse_step(replay);
	if (!exit_code)
		exit_code = parse_kernel(replay);
	if (!exit_code)
		exit_code = parse_dump(replay);
	if (!exit_code)
		exit_code = ts_replay_parse_time_limit(replay->time_limit,
						       &replay->options.time_limit_ns);
	if (!exit_code)
		exit_code = check_combinations(replay, path);
	if (!exit_code)
		exit_code = ts_replay_sources_read(&replay->replaced, &replay->options);
	return exit_code ? exit_code : check(replay);
}

/* ---- run and show ---- */

static int on_progress(void *context, const char *doing, uint64_t done, uint64_t total)
{
	struct replay *replay = context;

	replay->progress.label = doing;
	replay->progress.unit = !strcmp(doing, "run")    ? TS_PROGRESS_RUNS
				: !strcmp(doing, "load") ? TS_PROGRESS_ROWS
							 : TS_PROGRESS_COMMANDS;
	return ts_progress_step(&replay->progress, done, total);
}

static void on_warning(void *context, const char *text)
{
	(void)context;
	ts_progress_hide();
	ts_report_warning("%s", text);
}

static int show(const struct replay *replay, const struct ts_replay_shown *shown,
		struct ts_error *err)
{
	TS_SCOPED(ts_text) notes = { 0 };
	int rc = TS_OK;

	if (replay->png)
		rc = ts_replay_write_png(shown, replay->png, replay->quiet, err);
	if (rc)
		return rc;
	if (replay->json) {
		ts_replay_show_json(shown, ts_stdout());
		return TS_OK;
	}
	if (!replay->dump) {
		ts_replay_show_text(shown, ts_stdout());
		return ts_replay_show_kernels(shown, err);
	}
	/* The dump may be piped to another program: the rest goes to stderr. */
	ts_replay_show_text(shown, &notes);
	ts_text_append_str(&notes, "  ");
	ts_replay_append_dumped(shown, &notes);
	ts_text_append_char(&notes, ':');
	ts_text_append_str(&notes, replay->png ? " " : "");
	ts_text_append_str(&notes, replay->png ? replay->png : "");
	if (!replay->quiet)
		ts_report_note("%s", ts_text_cstr(&notes));
	if (!replay->png)
		ts_replay_show_dump(shown, ts_stdout());
	return TS_OK;
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
		rc = show(replay, &shown, err);
	return rc;
}

static int list(const struct replay *replay, const char *path)
{
	const struct ts_replay_list_options options = { .checks = replay->list[0],
							.json = replay->json,
							.quiet = replay->quiet };
	TS_AUTO(ts_reader) reader = NULL;
	TS_AUTO(ts_replay) work = NULL;
	struct ts_error err;
	int rc, exit_code = ts_trace_input_open(&reader, path);

	if (exit_code)
		return exit_code;
	rc = ts_replay_open_to_show(&work, reader, &replay->options, &err);
	if (!rc)
		rc = ts_replay_show_list(work, &options, &err);
	/* No message: whoever read the list went away. */
	if (rc && !err.message[0])
		return ts_report_exit_code(rc);
	return rc ? ts_report_error(&err) : TS_EXIT_DONE;
}

static void start_progress(struct replay *replay)
{
	ts_progress_start(&replay->progress, "replay", TS_PROGRESS_COMMANDS);
	replay->options.progress = on_progress;
	replay->options.build_log = ts_replay_sources_log;
	replay->options.context = replay;
}

static int run(struct replay *replay, const char *path)
{
	TS_AUTO(ts_reader) reader = NULL;
	struct ts_replay_report report;
	struct ts_error err;
	int exit_code = ts_trace_input_open(&reader, path);

	if (exit_code)
		return exit_code;
	/* -o writes to a temporary name and renames: Ctrl-C leaves the complete file or none. */
	start_progress(replay);
	replay->options.warn = on_warning;
	if (run_replay(replay, reader, path, &report, &err)) {
		/* Compilers remove their files at a signal, and then fail. */
		if (ts_stop_signal())
			return TS_EXIT_SIGNAL + ts_stop_signal();
		return ts_report_error(&err);
	}
	return report.verdict >= TS_REPLAY_DIFFERS ? TS_EXIT_NO : TS_EXIT_DONE;
}

/* In a child of its own; false: this is the parent. */
static bool supervise(struct replay *replay, int *ret_exit_code, bool *ret_is_doubtful)
{
	return ts_replay_supervise(replay->options.target, &replay->options.monitor, ret_exit_code,
				   ret_is_doubtful);
}

/*
 * A command failed among others. The run has no other result: the exit code stays, unless a signal
 * ends it.
 */
static int name_failed(struct replay *replay, const char *path, int failed)
{
	TS_AUTO(ts_reader) reader = NULL;
	struct ts_replay_report report;
	bool is_doubtful;
	int exit_code;

	/* Nothing is compared: to hash all memory after each command would take much longer. */
	replay->options.check = TS_REPLAY_CHECK_NONE;
	replay->options.pace = TS_REPLAY_FAST;
	replay->options.one_at_a_time = true;
	replay->options.repeat = 1;
	replay->options.output = NULL;
	ts_report_note("running again, one command at a time, to find the one that fails");
	if (!supervise(replay, &exit_code, &is_doubtful))
		return exit_code > TS_EXIT_SIGNAL ? exit_code : failed;
	if (!ts_trace_input_open(&reader, path)) {
		TS_AUTO(ts_replay) work = NULL;
		struct ts_error err;
		int rc;

		start_progress(replay);
		rc = ts_replay_open(&work, reader, &replay->options, &err);
		if (!rc)
			rc = ts_replay_run(work, &report, &err);
		ts_progress_stop(&replay->progress);
		if (rc && ts_stop_signal())
			failed = TS_EXIT_SIGNAL + ts_stop_signal();
		else if (rc)
			(void)ts_report_error(&err);
		else
			ts_report_note("none fails if they run one at a time");
	}
	ts_replay_supervise_done(replay->options.monitor);
	return failed;
}

/* What a target runs of a trace may hang or crash: that happens in another process. */
static int run_supervised(struct replay *replay, const char *path)
{
	int exit_code = TS_EXIT_DONE;
	bool is_doubtful;

	if (replay->options.target->needs & TS_REPLAY_NEEDS_FIXED_ADDRESSES)
		ts_replay_fix_addresses();
	if (replay->options.target->can & TS_REPLAY_CAN_LIMIT_TIME &&
	    !supervise(replay, &exit_code, &is_doubtful))
		return is_doubtful ? name_failed(replay, path, exit_code) : exit_code;
	exit_code = run(replay, path);
	ts_replay_supervise_done(replay->options.monitor);
	return exit_code;
}

static void release(struct replay *replay)
{
	ts_replay_sources_release(&replay->options);
	ts_string_list_release(&replay->replaced);
	ts_component_options_release(&replay->all_options);
	free(replay->target_options);
	free(replay->kernel);
}

/* ---- the command line ---- */

static int add_target_options(struct ts_component_options *all)
{
	int exit_code = TS_EXIT_DONE;

	for (size_t i = 0; ts_replay_targets[i] && !exit_code; i++)
		exit_code = ts_component_options_add(all, ts_replay_targets[i]->name,
						     ts_replay_targets[i]->options,
						     ts_replay_targets[i]->option_count);
	return exit_code;
}

static int add_options(struct replay *replay)
{
	struct ts_replay_options *core = &replay->options;
	const struct ts_option first[] = {
		TS_OPTION_TEXT("target", 't', "NAME", &replay->target,
			       "what runs the commands; default: by the recorded device"),
		TS_OPTION_MAYBE("list", 'l', "checks", &replay->list,
				"only list the commands, with the values of their arguments; "
				"=checks: also the recorded hashes. Nothing runs"),
		TS_OPTION_TEXT("device", 'd', "N|NAME", &core->device,
			       "run on this device; default: one like the recorded one"),
		TS_OPTION_TEXT("stream", 's', "N,..", &core->streams,
			       "only the commands of these streams"),
		TS_OPTION_TEXT("from", 0, "X", &core->from,
			       "only commands from X on: a command number, or a time after the "
			       "first command such as 1.5ms"),
		TS_OPTION_TEXT("to", 0, "Y", &core->to, "only commands before Y"),
		TS_OPTION_TEXT("step", 0, "A-B", &replay->step,
			       "only commands of these steps (TS_STEP(), torch.profiler), from the "
			       "mark of A to that after B"),
		TS_OPTION_TEXT(
			"kernel", 'k', "GLOB[#N]", &core->kernel,
			"only launches of these kernels, with their real inputs; #N: only the "
			"Nth. CUDA, without --check: runs one of them (default #1) --repeat "
			"times more (default 100) and times it"),
		TS_OPTION_INTEGER("repeat", 'n', "N", &replay->repeat, 1, 1000000,
				  "run N times, each from the same initial state; default 1"),
		TS_OPTION_TEXT("pace", 0, "original|fast", &replay->pace,
			       "submit commands when the program did, or at once (default)"),
		TS_OPTION_TEXT("check", 0, "none|final|each", &replay->check,
			       "compare what was read back and all memory at the end (final, "
			       "default), also what each command wrote (each), or nothing"),
		TS_OPTION_TEXT("at", 0, "COMMAND", &replay->at, "with --dump: after which command"),
		TS_OPTION_TEXT("dump", 0, "BUFFER", &replay->dump,
			       "show the content of this memory, by its number; CUDA: at "
			       "0xADDRESS[:BYTES], or where argument N points, argN[:BYTES]"),
		TS_OPTION_TEXT("png", 0, "FILE", &replay->png,
			       "with --dump of an image: write it as a picture instead"),
		TS_OPTION_INTEGER("limit", 0, "N", &replay->limit, 0, INT64_MAX,
				  "number of values that --dump shows; 0: all"),
		TS_OPTION_TEXT(
			"as", 0, "TYPE", &core->value_type,
			"type of the values in memory: f16 bf16 f32 f64 f8e4m3 f8e5m2 i8 i16 "
			"i32 i64 u8 u16 u32 u64"),
		TS_OPTION_TEXT("tolerance", 0, "ulp=N|abs=X|rel=X", &replay->tolerance,
			       "with --as: values at most N units in the last place, or X, or X of "
			       "the greater one, apart are equal; several: one must hold. Applies "
			       "to the recording if it has contents ('record --keep-contents')"),
		TS_OPTION_REPEATED("replace-kernel", 0, "NAME=FILE", &replay->replaced,
				   "build the module of this kernel from another source; may be "
				   "repeated"),
		TS_OPTION_TEXT(
			"time-limit", 0, "SECONDS|none", &replay->time_limit,
			"end the replay if a command or a compilation takes longer; default: "
			"60 s or 100 times the longest recorded command, 10 min to compile"),
		TS_OPTION_FLAG("skip-unsupported", 0, &core->skip_unsupported,
			       "go on without commands that cannot be replayed here, and compare "
			       "what does not depend on them"),
	};
	const struct ts_option last[] = {
		TS_OPTION_TEXT("output", 'o', "TRACE", &core->output,
			       "write the run as a trace, for view, state, analyze and diff"),
		TS_OPTION_MODE,
		TS_OPTION_INTEGER("window", 0, "N", &replay->window, 1, UINT32_MAX,
				  "which window; default: the first that can be replayed"),
		TS_OPTION_TEXT("process", 'p', "PID|NAME", &core->process,
			       "which process, if several have commands"),
		TS_OPTION_FLAG("yes", 'y', &core->trusts_owner,
			       "run a trace that belongs to another user: its commands run as you"),
		TS_OPTION_FLAG("json", 0, &replay->json,
			       "print the result as JSON; with --list: one object per line"),
		TS_OPTION_FLAG("hashes", 0, &replay->hashes,
			       "with --json: include the hashes of everything compared"),
		TS_OPTION_FLAG("quiet", 'q', &replay->quiet,
			       "with --dump: only the dump; with --list: only the list"),
		TS_TERMINAL_WIDTH_OPTION,
	};
	struct ts_component_options *all = &replay->all_options;
	int exit_code = ts_component_options_add_verb(all, first, TS_ARRAY_SIZE(first));

	if (!exit_code)
		exit_code = add_target_options(all);
	if (!exit_code)
		exit_code = ts_component_options_add_verb(all, last, TS_ARRAY_SIZE(last));
	return exit_code;
}

static void append_about(struct ts_text *out)
{
	ts_text_append_str(
		out,
		"Runs the commands of a trace again, all of them or a part, any number of times, "
		"and compares memory with the recording and between runs (record with "
		"'tracesmith record --replayable'). Caution: a trace contains code, which runs "
		"on your device.\n\n"
		"targets:\n");
	for (size_t i = 0; ts_replay_targets[i]; i++)
		ts_text_printf(out, "  %-10s%s\n", ts_replay_targets[i]->name,
			       ts_replay_targets[i]->summary);
}

static void append_examples(struct ts_text *out)
{
	ts_text_append_str(out,
			   "tracesmith replay run.sbt\n"
			   "tracesmith replay run.sbt --list\n"
			   "tracesmith replay run.sbt --check each --repeat 10 --json\n"
			   "tracesmith replay run.sbt --kernel 'gemm*' --repeat 100\n"
			   "tracesmith replay run.sbt --at 17 --dump 4 --as f32\n"
			   "tracesmith replay run.sbt --at 17 --dump 9 --png picture.png\n"
			   "tracesmith replay run.sbt --replace-kernel gemm=new.cl --check each\n"
			   "tracesmith replay run.sbt --as f32 --tolerance abs=1e-6,rel=1e-5\n"
			   "tracesmith replay run.sbt --skip-unsupported --check each\n"
			   "tracesmith replay run.sbt -o again.sbt\n"
			   "tracesmith diff run.sbt again.sbt --device gpu");
	for (size_t i = 0; ts_replay_targets[i]; i++)
		if (ts_replay_targets[i]->example)
			ts_text_printf(out, "\ntracesmith replay %s",
				       ts_replay_targets[i]->example);
}

int ts_verb_replay(int argc, char **argv)
{
	struct replay replay = { .limit = -1, .all_options = { .kind = "target" } };
	TS_SCOPED(ts_text) about = { 0 };
	TS_SCOPED(ts_text) examples = { 0 };
	int exit_code = add_options(&replay);

	append_about(&about);
	append_examples(&examples);
	if (!exit_code) {
		const struct ts_command command = {
			.verb = "replay",
			.operands = "TRACE",
			.about = ts_text_cstr(&about),
			.examples = ts_text_cstr(&examples),
			.exits = "0  no difference, or nothing to compare\n"
				 "1  differs from the recording or between runs\n2  usage error\n"
				 "3  bad input, or nothing to replay\n"
				 "4  the target or a device is missing on this machine or has too "
				 "little memory, or it fails: a command crashed or hung",
			.options = replay.all_options.options,
			.option_count = replay.all_options.count,
			.minimum_operands = 1,
			.maximum_operands = 1,
		};

		if (ts_command_parse(&command, &argc, argv, &exit_code)) {
			exit_code = parse(&replay, argv[0]);
			if (!exit_code)
				exit_code = replay.list ? list(&replay, argv[0])
							: run_supervised(&replay, argv[0]);
		}
	}
	release(&replay);
	return exit_code;
}
