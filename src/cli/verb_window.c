/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith window`: asks the recorder of a process to open or close a window, and reports the
 * result. Without a recorder it switches events on or off in the process itself, which keeps the
 * newest ones.
 */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/common/options.h"
#include "cli/common/report.h"
#include "cli/verbs.h"
#include "live/area.h"
#include "record/loop/process_areas.h"

/* A recorder answers in milliseconds unless its disk or the machine is busy: then say so. */
#define PROMPT_NS INT64_C(2000000000)
#define PATIENCE_NS INT64_C(60000000000)
#define LOOK_NS 5000000

#define SET(area, field, value, err)                                          \
	ts_area_set((area), offsetof(struct ts_live_control, field), (value), \
		    sizeof(((struct ts_live_control *)0)->field), (err))

struct window {
	pid_t pid;
	bool open;
	bool quiet;
};

static bool is_open(const struct ts_area *area)
{
	return ts_area_control(area)->enabled & TS_LIVE_ENABLED;
}

static void nap(void)
{
	const struct timespec time = { .tv_nsec = LOOK_NS };

	nanosleep(&time, NULL);
}

/* Why it makes no sense to wait for the recorder any longer; NULL: it does. */
static const char *why_silent(const struct ts_area *area, uid_t owner, int64_t waited_ns)
{
	pid_t recorder = ts_area_recorder(ts_area_control(area), owner);

	if (!recorder)
		return "has ended; the request stays pending for the next one";
	if (waited_ns < PROMPT_NS)
		return NULL;
	if (ts_process_is_stopped(recorder))
		return "is stopped; the request stays pending until it continues (kill -CONT)";
	return waited_ns < PATIENCE_NS ? NULL : "does not answer; the request stays pending";
}

/* Waits until the recorder has counted an answer. */
static int wait_for_reply(const struct window *window, struct ts_area *area, uid_t owner,
			  uint32_t before, struct ts_error *err)
{
	int64_t started = ts_clock_monotonic_ns();
	uint64_t recorder = ts_area_control(area)->recorder_pid;
	bool is_reported = window->quiet;

	for (;;) {
		int64_t waited = ts_clock_monotonic_ns() - started;
		int rc = ts_area_refresh(area, err);
		const char *why;

		if (rc || ts_area_control(area)->window_reply != before)
			return rc;
		why = why_silent(area, owner, waited);
		if (why)
			return ts_error_set(err, TS_EIO,
					    "the recorder of process %d, process %" PRIu64 ", %s",
					    (int)window->pid, recorder, why);
		if (waited >= PROMPT_NS && !is_reported)
			ts_report_note("waiting for the recorder of process %d, process %" PRIu64,
				       (int)window->pid, recorder);
		is_reported |= waited >= PROMPT_NS;
		nap();
	}
}

static int request_window(const struct window *window, struct ts_area *area, uid_t owner,
			  struct ts_error *err)
{
	uint32_t before = ts_area_control(area)->window_reply;
	uint64_t recorder = ts_area_control(area)->recorder_pid;
	int rc = SET(area, window_request,
		     window->open ? TS_LIVE_WINDOW_OPEN : TS_LIVE_WINDOW_CLOSE, err);

	if (!rc)
		rc = wait_for_reply(window, area, owner, before, err);
	if (rc)
		return rc;
	if (is_open(area) != window->open)
		return ts_error_set(err, TS_EIO, "the recorder, process %" PRIu64 ", refused",
				    recorder);
	if (!window->quiet)
		ts_report_note("process %d: window %s by its recorder, process %" PRIu64,
			       (int)window->pid, window->open ? "opened" : "closed", recorder);
	return TS_OK;
}

static void report_alone(const struct window *window, const struct ts_live_control *control)
{
	int pid = (int)window->pid;

	if (control->mode == TS_LIVE_STREAM && control->recorder_pid)
		ts_report_note(
			"process %d: window %s, but its recorder is dead: continue with tracesmith record --resume TRACE, or record -p %d",
			pid, window->open ? "opened" : "closed", pid);
	else
		ts_report_note(
			"process %d has no recorder; %s: tracesmith record -p %d, or tracesmith recover %d -o OUT",
			pid,
			window->open ? "it keeps its newest events in memory"
				     : "it keeps no further events; get those in memory with",
			pid, pid);
}

static int switch_alone(const struct window *window, struct ts_area *area, struct ts_error *err)
{
	int rc = SET(area, enabled, window->open ? TS_LIVE_ENABLED : 0, err);

	if (!rc && !window->quiet)
		report_alone(window, ts_area_control(area));
	return rc;
}

static int move(const struct window *window, struct ts_area *area, uid_t owner,
		struct ts_error *err)
{
	if (is_open(area) == window->open) {
		if (!window->quiet)
			ts_report_note("process %d: the window is already %s", (int)window->pid,
				       window->open ? "open" : "closed");
		return TS_OK;
	}
	return ts_area_recorder(ts_area_control(area), owner)
		       ? request_window(window, area, owner, err)
		       : switch_alone(window, area, err);
}

static int run(const struct window *window)
{
	TS_AUTO(ts_process_areas) process = NULL;
	struct ts_error err;
	int rc = ts_process_areas_open(&process, window->pid, &err);

	for (size_t i = 0; !rc && i < process->area_count; i++) {
		TS_AUTO(ts_area) area = NULL;

		rc = ts_area_open(&area, process->directory_fd, process->areas[i].name, true, &err);
		if (!rc)
			rc = move(window, area, process->areas[i].owner, &err);
	}
	return rc ? ts_report_error(&err) : TS_EXIT_DONE;
}

int ts_verb_window(int argc, char **argv)
{
	struct window window = { 0 };
	const struct ts_option options[] = {
		TS_OPTION_FLAG("quiet", 'q', &window.quiet, "print only errors"),
	};
	const struct ts_command command = {
		.verb = "window",
		.operands = "PID open|close",
		.about =
			"Opens or closes the recording window of a process. Its recorder does so, if there is one, "
			"and stores each window separately in its trace.\n",
		.examples = "tracesmith window 4711 open\ntracesmith window 4711 close",
		.exits =
			"0  done\n2  usage error\n3  no such process, or its recorder does not answer\n"
			"4  the process has no agent",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
		.minimum_operands = 1,
		.maximum_operands = 2,
	};
	int64_t pid;
	int exit_code;

	if (!ts_command_parse(&command, &argc, argv, &exit_code))
		return exit_code;
	if (ts_parse_int64(argv[0], strlen(argv[0]), &pid) || pid < 1 || pid > INT32_MAX)
		return ts_report_usage("'%s' is not a valid process id", argv[0]);
	if (argc < 2)
		return ts_report_usage("give an action: tracesmith window %s open, or close",
				       argv[0]);
	if (strcmp(argv[1], "open") != 0 && strcmp(argv[1], "close") != 0)
		return ts_report_usage("'%s' is neither open nor close", argv[1]);
	window.pid = (pid_t)pid;
	window.open = !strcmp(argv[1], "open");
	return run(&window);
}
