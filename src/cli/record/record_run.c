/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a recording from start to end: passes of the recorder, signals, the started program and its
 * descendants. The program comes first: whatever happens to the recording, we wait for the program
 * and exit as it does.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/recorder/agent_library.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/common/cli_output.h"
#include "cli/common/report.h"
#include "cli/common/symbolize_report.h"
#include "cli/record/record.h"
#include "live/discover.h"

#define SECOND_NS INT64_C(1000000000)
#define LINGER_NS (SECOND_NS / 2)
/* Number of unclaimed areas of dead programs to keep for `recover`; the newest are kept. */
#define KEEP_AREAS 64

/* Exit codes of shells for a program that is missing or cannot be executed. */
enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

struct run {
	struct ts_record *record;
	struct ts_record_signals signals;
	struct ts_recorder *recorder; /* NULL once closed */
	pid_t program;                /* 0: none started */
	bool program_ended;
	int wait_status;
	int64_t ended_ns;       /* when the program exited */
	int64_t interrupted_ns; /* time of the last Ctrl-C */
	bool stop;              /* finish the recording */
	bool leave;             /* exit without waiting for the program, too */
	bool reported_others, reported_interrupt;
	bool is_untraced; /* no process could be traced: the trace has nothing of the program */
	struct ts_pairmap
		followed; /* processes that keep the recording open, by pid and start time */
};

static bool program_runs(const struct run *run)
{
	return run->program && !run->program_ended;
}

/* ---- signals ---- */

/* Reaps all exited children: the program, and orphans that were reparented to us. */
static void reap(struct run *run)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (run->recorder)
			ts_recorder_exited(run->recorder, pid, status);
		if (pid != run->program)
			continue;
		run->program_ended = true;
		run->wait_status = status;
		run->ended_ns = ts_clock_monotonic_ns();
	}
}

/* Ctrl-C is for the program. Two within a second that the program survives stop the recording. */
static void on_interrupt(struct run *run)
{
	int64_t now = ts_clock_monotonic_ns();
	bool again = run->interrupted_ns && now - run->interrupted_ns < SECOND_NS;

	run->interrupted_ns = again ? 0 : now;
	run->leave |= again && run->stop;
	run->stop |= again;
}

static void on_signal(struct run *run, const struct signalfd_siginfo *info)
{
	int number = (int)info->ssi_signo;

	if (number == SIGCHLD) {
		reap(run);
	} else if (program_runs(run)) {
		if (number == SIGINT)
			on_interrupt(run);
		if (!ts_record_signal_is_shared(info, run->program))
			kill(run->program, number);
	} else if (number != SIGUSR1 && number != SIGUSR2) {
		run->stop = true;
	}
}

/* Sleeps until a signal, an event of the recorder, or a timeout. */
static void wait_for_something(struct run *run, int64_t wait_ns)
{
	struct pollfd fds[] = {
		{ .fd = run->signals.fd, .events = POLLIN },
		{ .fd = run->recorder ? ts_recorder_fd(run->recorder) : -1, .events = POLLIN },
		{ .fd = run->record->control_fd > 0 ? run->record->control_fd : -1,
		  .events = POLLIN },
	};
	struct timespec timeout = { .tv_sec = wait_ns / SECOND_NS, .tv_nsec = wait_ns % SECOND_NS };
	struct signalfd_siginfo info;

	ppoll(fds, TS_ARRAY_SIZE(fds), &timeout, NULL);
	while (ts_record_signals_next(&run->signals, &info))
		on_signal(run, &info);
	run->stop |= ts_record_control_wants_stop(run->record);
}

/* ---- processes that outlive the program ---- */

static void on_area(void *context, const struct ts_area_info *info)
{
	struct run *run = context;
	bool is_new = false;

	if (!info->alive || info->unfinished || info->control.role != TS_LIVE_PROGRAM ||
	    info->control.session != ts_recorder_session(run->recorder))
		return;
	if (ts_pairmap_insert(&run->followed, (uint64_t)info->pid, info->control.start_time,
			      &is_new) &&
	    is_new)
		ts_recorder_follow(run->recorder, info->pid);
}

/* Recorded processes keep the recording open after the program has exited. */
static void follow_others(struct run *run)
{
	int fd;

	if (ts_live_directory_open(geteuid(), 0, &fd, NULL))
		return;
	ts_areas_list(fd, 0, on_area, NULL, run, NULL);
	close(fd);
}

/*
 * A process that the program just left behind may not have emitted anything yet: give it a moment.
 */
static bool lingers(const struct run *run)
{
	siginfo_t info;

	return run->program_ended && !run->stop &&
	       ts_clock_monotonic_ns() - run->ended_ns < LINGER_NS &&
	       !waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
}

/* ---- the recording ---- */

static void report_others(struct run *run)
{
	if (run->reported_others || !run->program_ended || run->record->quiet ||
	    ts_clock_monotonic_ns() - run->ended_ns < SECOND_NS)
		return;
	run->reported_others = true;
	ts_report_note("'%s' has exited; recording its child processes until they exit or Ctrl-C",
		       run->record->command[0]);
}

/* A program may take notice of Ctrl-C and go on; who wants to end the recording should know how. */
static void report_interrupt(struct run *run)
{
	if (run->reported_interrupt || !run->interrupted_ns || !program_runs(run) ||
	    run->record->quiet || ts_clock_monotonic_ns() - run->interrupted_ns < SECOND_NS)
		return;
	run->reported_interrupt = true;
	ts_report_event("'%s' (process %d) continues after Ctrl-C, and so does the recording: "
			"press Ctrl-C twice within a second to end only the recording",
			run->record->command[0], (int)run->program);
}

/* Time until the next tick is due. */
static int64_t tick(struct run *run)
{
	int64_t now_ns = ts_clock_monotonic_ns();

	if (!run->record->tick)
		return INT64_MAX;
	return TS_MAX(run->record->tick(run->record, run->recorder, now_ns) - now_ns, 0);
}

static int record(struct run *run, struct ts_error *err)
{
	for (;;) {
		int64_t wait_ns = 0;
		bool done = false;
		int rc;

		/*
		 * Reap before the pass: the recorder notices exits itself and must not be ahead of
		 * us.
		 */
		reap(run);
		if (run->program_ended && !run->stop)
			follow_others(run);
		rc = ts_recorder_pass(run->recorder, &wait_ns, &done, err);
		if (rc || run->stop || (done && !lingers(run)))
			return rc;
		ts_record_control_started(run->record);
		report_others(run);
		report_interrupt(run);
		wait_ns = TS_MIN(wait_ns, tick(run));
		wait_for_something(run, wait_ns);
	}
}

/* ---- names of native frames ---- */

static void on_completed(void *context, const char *trace)
{
	struct ts_record *record = context;
	char *copy = record->no_symbols ? NULL : strdup(trace);

	if (copy && !ts_grow_array((void **)&record->files, &record->file_capacity,
				   record->file_count + 1, sizeof(*record->files)))
		record->files[record->file_count++] = copy;
	else
		free(copy);
}

static void release_files(struct ts_record *record)
{
	for (size_t i = 0; i < record->file_count; i++)
		free(record->files[i]);
	free(record->files);
	record->files = NULL;
	record->file_count = record->file_capacity = 0;
}

/* The trace is complete without names: a failure here does not fail the recording. */
static int name_frames(const char *trace, bool is_reported)
{
	const struct ts_symbolize_choice choice = { 0 };
	struct ts_symbolize_summary summary;
	struct ts_error err;
	int rc = ts_cli_symbolize(trace, &choice, &summary, &err);

	/* The user may have removed it meanwhile. */
	if (rc && !access(trace, F_OK))
		ts_report_warning("%s; native frames have no names yet: tracesmith symbolize %s",
				  err.message, TS_SHELL(trace));
	else if (!rc && is_reported && summary.frames > summary.known)
		ts_symbolize_report(&summary, trace, false);
	ts_symbolize_summary_release(&summary);
	return rc;
}

/*
 * Symbolizes all files that a rotation has not removed. Reports on the last one only, as the
 * summary does.
 */
static void name_files(const struct ts_record *record)
{
	size_t left = record->file_count;
	int rc = TS_OK;

	for (; left && rc != TS_ECANCELED; left--) {
		const char *trace = record->files[record->file_count - left];

		if (!access(trace, F_OK))
			rc = name_frames(trace, left == 1 && !record->quiet &&
							!record->options.rank.launcher &&
							!record->options.rank_pattern);
	}
	if (left)
		ts_report_note("  likewise for %zu more files, up to '%s'", left,
			       record->files[record->file_count - 1]);
}

/* Only the text export remains: frames without a name now stay addresses. */
static void on_text(void *context, const char *trace)
{
	const struct ts_record *record = context;
	const struct ts_symbolize_choice choice = { .is_locked = true };
	struct ts_symbolize_summary summary;
	struct ts_error err;

	if (record->no_symbols)
		return;
	if (ts_cli_symbolize(trace, &choice, &summary, &err))
		ts_report_warning("%s; native frames are shown as addresses", err.message);
	else if (!record->quiet && summary.frames > summary.known)
		ts_symbolize_report(&summary, record->options.output, false);
	ts_symbolize_summary_release(&summary);
}

/* ---- the end ---- */

/* Finishes the trace and prints the summary. *ret_again: a target came too late for this trace. */
static int finish(struct run *run, bool *ret_again, struct ts_error *err)
{
	struct ts_recorder_summary summary = { 0 };
	int rc = ts_recorder_finish(run->recorder, &summary, err);

	*ret_again = false;
	if (rc)
		return rc;
	ts_recorder_close(run->recorder);
	run->recorder = NULL;
	*ret_again = summary.again && !run->stop && run->record->options.detached;
	/* Symbolizing can wait; a waiting target cannot. */
	if (!*ret_again)
		name_files(run->record);
	run->record->wait_status = run->wait_status;
	run->record->command_ended = run->program_ended;
	run->record->stacks += summary.stacks + summary.stacks_rejected;
	ts_record_report(run->record, &summary);
	free(summary.rank_files);
	run->is_untraced = summary.untraced.count && !summary.has_traced && !summary.samples;
	return TS_OK;
}

/* The journal has everything up to the error. */
static void give_up(struct run *run)
{
	const char *output = run->record->options.output;
	char trace[PATH_MAX];
	bool is_text;

	ts_record_trace_path(output, trace, sizeof(trace));
	is_text = strcmp(trace, output) != 0;
	/* Of a rotation, the last file. */
	if (run->recorder)
		snprintf(trace, sizeof(trace), "%s", ts_recorder_trace(run->recorder));
	ts_recorder_close(run->recorder);
	run->recorder = NULL;
	if (ts_record_is_unfinished(trace))
		ts_report_note("the recorded data is kept; recover it with: tracesmith recover "
			       "%s -o OUT",
			       TS_SHELL(trace));
	/* Only the text is missing. */
	else if (is_text && !access(trace, F_OK))
		ts_report_note("the recording is kept in '%s'; 'tracesmith export' writes the text",
			       trace);
}

static int start_program(struct run *run, struct ts_error *err)
{
	struct ts_launch_options launch = run->record->launch;
	int rc;

	launch.argv = run->record->command;
	launch.session = ts_recorder_session(run->recorder);
	launch.signal_mask = &run->signals.mask;
	launch.signals_ignored = &run->signals.ignored;
	/* Become the reaper of orphaned descendants, so that they can still be followed. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	rc = ts_launch_start(&launch, &run->program, err);
	if (!rc)
		ts_recorder_follow(run->recorder, run->program);
	return rc;
}

static int launch_failed(const struct ts_error *err)
{
	ts_report_error(err);
	if (err->code == TS_ECAP)
		return TS_EXIT_CAPABILITY;
	return err->code == TS_ENOTFOUND ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

/* A program that outlives its recording leaves areas that nobody will read: one for each child. */
static void clean_up(void)
{
	TS_AUTO_FD int directory = -1;

	if (!ts_live_directory_open(geteuid(), 0, &directory, NULL))
		ts_areas_clean(directory, KEEP_AREAS, NULL, NULL);
}

static void stand_in(struct run *run)
{
	int64_t cleaned_ns = ts_clock_monotonic_ns();

	reap(run);
	if (program_runs(run) && !run->record->quiet)
		ts_report_note("'%s' continues without being recorded", run->record->command[0]);
	while (program_runs(run) && !run->leave) {
		wait_for_something(run, SECOND_NS);
		if (ts_clock_monotonic_ns() - cleaned_ns < SECOND_NS)
			continue;
		clean_up();
		cleaned_ns = ts_clock_monotonic_ns();
	}
	clean_up();
}

/* The program's exit code if it is not 0, else that of the recording. */
static int exit_code_of(struct run *run, int recording)
{
	int code;

	if (!run->program)
		return recording;
	if (!run->program_ended)
		return TS_EXIT_SIGNAL + SIGINT;
	code = ts_record_end_as(run->wait_status);
	if (code || recording)
		return code ? code : recording;
	return run->is_untraced ? TS_EXIT_CAPABILITY : TS_EXIT_DONE;
}

static int run_recorder(struct run *run)
{
	struct ts_recorder_options options = run->record->options;
	struct ts_error err;
	bool again = true;
	int rc = TS_OK;

	while (!rc && again) {
		if (!run->recorder)
			rc = ts_recorder_open(&run->recorder, &options, &err);
		if (!rc)
			rc = record(run, &err);
		if (!rc)
			rc = finish(run, &again, &err);
	}
	if (!rc)
		return TS_EXIT_DONE;
	ts_report_error(&err);
	give_up(run);
	return ts_report_exit_code(err.code);
}

/* Removes the trace, since nothing was recorded. */
static void discard(struct run *run)
{
	struct ts_recorder_summary summary = { 0 };

	if (!ts_recorder_finish(run->recorder, &summary, NULL))
		unlink(summary.path);
	ts_recorder_close(run->recorder);
	run->recorder = NULL;
}

/* A detached recorder may have another output, or another recorder was faster. */
static int cannot_open(struct ts_record *record, const struct ts_error *err)
{
	if (!record->options.detached)
		return ts_report_error(err);
	record->open_error = *err;
	return ts_report_exit_code(err->code);
}

/* Opens the recording before the program starts; removes it if the start fails. */
static int open_and_start(struct run *run)
{
	struct ts_error err;
	int rc = ts_recorder_open(&run->recorder, &run->record->options, &err);

	if (rc)
		return cannot_open(run->record, &err);
	if (run->record->opened)
		run->record->opened(run->record);
	if (!run->record->command || !start_program(run, &err)) {
		ts_record_sample(run->record, run->recorder);
		ts_record_sample_python(run->record, run->recorder);
		return TS_EXIT_DONE;
	}
	discard(run);
	return launch_failed(&err);
}

/* A file that is not a trace stays. */
static int check_replaced(struct ts_record *record, const char *trace)
{
	struct ts_error err;

	if (!record->options.detached)
		return ts_output_check_trace(trace);
	return ts_output_test_trace(trace, &err) ? cannot_open(record, &err) : TS_EXIT_DONE;
}

/* Checks everything that can be checked before anything is changed. */
static int check(struct ts_record *record)
{
	char agent[TS_AGENT_PATH_BYTES], trace[PATH_MAX];
	const struct ts_recorder_options *options = &record->options;
	int code = options->detached ? TS_EXIT_DONE : ts_output_check_file(options->output);
	struct ts_error err;

	if (code)
		return code;
	if (record->command && (ts_launch_check(record->command[0], &err) ||
				ts_agent_library_find(agent, sizeof(agent), &err)))
		return launch_failed(&err);
	/* Files of a rotation never replace older ones. */
	if (options->resume || options->rotate_bytes || options->rotate_ns)
		return TS_EXIT_DONE;
	ts_record_trace_path(options->output, trace, sizeof(trace));
	code = check_replaced(record, trace);
	if (code)
		return code;
	return ts_record_settle(trace, &err) ? cannot_open(record, &err) : TS_EXIT_DONE;
}

int ts_record_run(struct ts_record *record)
{
	struct run run = { .record = record, .signals.fd = -1 };
	struct ts_error err;
	int code = check(record);

	if (code)
		return code;
	record->options.completed = on_completed;
	record->options.before_text = on_text;
	if (ts_record_signals_take(&run.signals, &err))
		return ts_report_error(&err);
	ts_pairmap_init(&run.followed);
	code = open_and_start(&run);
	if (!code) {
		code = run_recorder(&run);
		stand_in(&run);
		code = exit_code_of(&run, code);
	}
	release_files(record);
	ts_record_python_release(record);
	ts_pairmap_release(&run.followed);
	close(run.signals.fd);
	return code;
}
