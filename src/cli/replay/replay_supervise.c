/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the child that runs a trace, and says how it ended if it cannot say so itself. */
#include "cli/replay/replay_supervise.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "base/text.h"
#include "cli/common/amount.h"
#include "cli/common/report.h"

/* In memory of both processes. */
struct shared {
	struct ts_replay_monitor monitor;
	bool is_done; /* the verb has an exit code: the driver did not call exit() */
};

int ts_replay_parse_time_limit(const char *text, int64_t *ret_limit_ns)
{
	if (text && !strcmp(text, "none")) {
		*ret_limit_ns = TS_REPLAY_LIMIT_NONE;
		return TS_EXIT_DONE;
	}
	return ts_amount_seconds("time-limit", text, ret_limit_ns);
}

/* ---- messages ---- */

/* What it was doing when it ended. */
static void append_activity(struct ts_text *text, const struct ts_replay_monitor *monitor)
{
	static const char *const activities[] = {
		[TS_REPLAY_LOADING] = "while the trace was loaded",
		[TS_REPLAY_OPENING] = "while the driver was started",
		[TS_REPLAY_BUILDING] = "while it was compiled",
		[TS_REPLAY_RUNNING] = "while commands ran",
		[TS_REPLAY_FINISHING] = "after all commands had run",
	};
	size_t activity = (size_t)monitor->activity % TS_ARRAY_SIZE(activities);

	ts_text_append_str(text, monitor->command ? "while it ran" : activities[activity]);
}

/* What to replay instead. */
static void append_advice(struct ts_text *text, const struct ts_replay_monitor *monitor)
{
	if (monitor->command)
		ts_text_printf(text, "; '--to %" PRIu64 "' replays what comes before it",
			       monitor->command);
}

static int report_time_limit(const struct ts_replay_monitor *monitor, int64_t limit_ns)
{
	TS_SCOPED(ts_text) text = { 0 };
	char limit[TS_FORMAT_BYTES], recorded[TS_FORMAT_BYTES];

	ts_format_duration_ns(limit, sizeof(limit), limit_ns);
	ts_text_printf(&text, "%s: not %s within %s", monitor->subject,
		       monitor->activity == TS_REPLAY_BUILDING ? "compiled" : "complete", limit);
	if (monitor->command && monitor->recorded_ns >= 0)
		ts_text_printf(
			&text, " (in the recording: %s)",
			ts_format_duration_ns(recorded, sizeof(recorded), monitor->recorded_ns));
	ts_text_append_str(&text, "; '--time-limit 10m' allows more time, 'none' any");
	append_advice(&text, monitor);
	ts_report_event("%s", ts_text_cstr(&text));
	return TS_EXIT_CAPABILITY;
}

static int report_crash(const struct ts_replay_monitor *monitor, const struct ts_supervised *end,
			const struct ts_replay_target *target)
{
	TS_SCOPED(ts_text) text = { 0 };

	if (monitor->subject[0])
		ts_text_printf(&text, "%s: ", monitor->subject);
	if (end->signal)
		ts_text_printf(&text, "the target crashed (signal %d, %s) ", end->signal,
			       strsignal(end->signal));
	else
		ts_text_printf(&text, "the target ended the process (exit code %d) ",
			       end->exit_code);
	append_activity(&text, monitor);
	if (end->signal == SIGKILL)
		ts_text_append_str(&text, "; the system kills programs when memory runs out");
	append_advice(&text, monitor);
	if (monitor->command && target->finds_crashes)
		ts_text_printf(&text, ", and %s", target->finds_crashes);
	ts_report_event("%s", ts_text_cstr(&text));
	return TS_EXIT_CAPABILITY;
}

/* The child has ended; its exit code, if it could give one, is that of the verb. */
static int report_end(const struct shared *shared, const struct ts_supervised *end,
		      const struct ts_replay_target *target)
{
	if (end->remains)
		ts_report_warning("process %d was killed, but still exists: the device's driver "
				  "holds it, or the machine is busy",
				  (int)end->remains);
	if (end->timed_out)
		return report_time_limit(&shared->monitor, end->limit_ns);
	if (end->exit_code >= 0 && shared->is_done)
		return end->exit_code;
	if (end->stop_signal) {
		/* It did not end by itself: a command that hangs is named. */
		if (end->signal == SIGKILL && shared->monitor.command)
			ts_report_event("%s: stopped while it ran", shared->monitor.subject);
		return TS_EXIT_SIGNAL + end->stop_signal;
	}
	if (end->signal == SIGPIPE || end->signal == SIGINT || end->signal == SIGTERM ||
	    end->signal == SIGHUP)
		return TS_EXIT_SIGNAL + end->signal;
	return report_crash(&shared->monitor, end, target);
}

/* ---- both processes ---- */

bool ts_replay_supervise(const struct ts_replay_target *target,
			 struct ts_replay_monitor **ret_monitor, int *ret_exit_code,
			 bool *ret_is_doubtful)
{
	struct shared *shared = ts_supervise_alloc(sizeof(*shared));
	struct ts_supervised end;
	struct ts_error err;

	*ret_is_doubtful = false;
	if (!shared) {
		*ret_exit_code = ts_report_exit_code(TS_ENOMEM);
		return false;
	}
	if (ts_supervise(&shared->monitor.heartbeat, &end, &err)) {
		*ret_exit_code = ts_report_error(&err);
		return false;
	}
	if (end.is_child) {
		*ret_monitor = &shared->monitor;
		return true;
	}
	*ret_exit_code = report_end(shared, &end, target);
	*ret_is_doubtful = shared->monitor.is_doubtful && shared->is_done && !end.timed_out &&
			   !end.stop_signal;
	return false;
}

void ts_replay_supervise_done(struct ts_replay_monitor *monitor)
{
	struct shared *shared = (struct shared *)monitor;

	if (shared)
		shared->is_done = true;
}
