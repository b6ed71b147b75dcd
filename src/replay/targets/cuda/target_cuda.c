/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target `cuda`: opens a session with everything that the plan needs and runs the plan on
 * NVIDIA's devices. cuda_session.h lists the other files.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "replay/targets/cuda/cuda_session.h"
#include "replay/targets/target_pace.h"
#include "replay/targets/target_watch.h"

#define ILLEGAL_ADDRESS 700

/* ---- errors ---- */

int ts_cuda_fail(const struct ts_replay_session *session, int code, struct ts_error *err,
		 const char *format, ...)
{
	char subject[256], text[96];
	va_list args;

	va_start(args, format);
	vsnprintf(subject, sizeof(subject), format, args);
	va_end(args);
	/* Whatever asks the driver first, to clear memory for example, hears of a kernel's error.
	 */
	if (ts_cuda_is_sticky(code) && session->outcome && !session->is_serial && !session->running)
		ts_replay_monitor_doubt(session->replay);
	return ts_error_set(err, ts_cuda_error_code(code), "%s: %s", subject,
			    ts_cuda_error_text(&session->cu, code, text, sizeof(text)));
}

int ts_cuda_fail_object(const struct ts_replay_session *session, uint32_t object, int code,
			struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_cuda_info(session, object);

	return ts_cuda_fail(session, code, err, "%s %" PRIu64,
			    ts_enum_name("object_kind", info->kind), info->number);
}

/* Did the recorded program's kernels read memory of the host that is not captured? */
static bool was_pageable(const struct ts_replay_session *session)
{
	for (uint32_t i = 0; i < session->device_count; i++)
		if (session->objects[session->devices[i].object].details.pageable)
			return true;
	return false;
}

/* The command that an error belongs to is known if commands run one at a time. */
static const char *doubt(const struct ts_replay_session *session, int code)
{
	if (!ts_cuda_is_sticky(code) || session->is_serial || session->running)
		return "";
	return ts_replay_monitor_doubt(session->replay)
		       ? "; it, or a command shortly before or after it"
		       : "; it, or a command shortly before or after it ('--check each' says which)";
}

int ts_cuda_fail_command(const struct ts_replay_session *session, uint32_t position, int code,
			 struct ts_error *err)
{
	uint32_t command;
	char text[256];

	if (session->running && ts_cuda_is_sticky(code))
		position = session->running - 1;
	position = TS_MIN(position, session->plan->count - 1);
	command = session->plan->order[position];
	ts_replay_command_text(session->stream, command, text, sizeof(text));
	return ts_cuda_fail(session, code, err, "%s%s%s", text, doubt(session, code),
			    code == ILLEGAL_ADDRESS && was_pageable(session)
				    ? "; kernels of this recording could read pageable memory of "
				      "the host, which is not captured"
				    : "");
}

/* What is out of memory is this machine, whether host or device: the trace is not bad input. */
static int blame_machine(int rc, struct ts_error *err)
{
	if (rc != TS_ENOMEM)
		return rc;
	if (err)
		err->code = TS_ECAP;
	return TS_ECAP;
}

/* ---- a session ---- */

static void close_session(struct ts_replay_session *session)
{
	if (!session)
		return;
	ts_cuda_activity_close(session);
	ts_cuda_free_events(session);
	ts_cuda_free_graphs(session);
	ts_cuda_keep_release(session, &session->keep);
	ts_cuda_free_staging(session);
	ts_cuda_free_hashers(session);
	ts_cuda_free_images(session);
	ts_cuda_free_streams(session);
	ts_cuda_unmap_host(session);
	ts_cuda_unmap_arenas(session);
	ts_cuda_free_contexts(session);
	ts_map_release(&session->configs);
	ts_arena_release(&session->arena);
	free(session);
}
TS_DEFINE_AUTO(ts_replay_session, close_session);

static int open_driver(struct ts_replay_session *session, struct ts_error *err)
{
	int rc;

	/* The driver reads it when it starts; streams would not run concurrently. */
	if (session->replay->options.monitor)
		unsetenv("CUDA_LAUNCH_BLOCKING");
	rc = ts_cuda_open(&session->cu, err);
	if (!rc)
		ts_cuda_activity_open(session);
	return rc;
}

static int make_session(struct ts_replay_session *session, struct ts_error *err)
{
	/* Memory at fixed addresses comes first: later calls map memory anywhere. */
	static int (*const makers[])(struct ts_replay_session * session, struct ts_error * err) = {
		ts_cuda_mark_needed,    ts_cuda_map_host,       open_driver,
		ts_cuda_choose_devices, ts_cuda_reserve_arenas, ts_cuda_make_contexts,
		ts_cuda_reserve_arenas, ts_cuda_map_arenas,     ts_cuda_register_host,
		ts_cuda_make_streams,   ts_cuda_load_images,    ts_cuda_make_moves,
		ts_cuda_make_hashers,   ts_cuda_make_steps,     ts_cuda_make_graphs,
	};
	int rc = TS_OK;

	for (size_t i = 0; i < TS_ARRAY_SIZE(makers) && !rc; i++)
		rc = makers[i](session, err);
	return rc;
}

static int open_session(struct ts_replay *replay, struct ts_replay_session **ret_session,
			struct ts_error *err)
{
	TS_AUTO(ts_replay_session) session = calloc(1, sizeof(*session));
	int rc;

	if (!session)
		return ts_error_set(err, TS_ENOMEM, "no memory for a session");
	session->replay = replay;
	session->stream = replay->stream;
	session->plan = &replay->plan;
	session->opened_ns = ts_clock_monotonic_ns();
	session->objects = ts_arena_alloc_zeroed(&session->arena, replay->stream->object_count + 1u,
						 sizeof(*session->objects));
	if (!session->objects)
		return ts_error_set(err, TS_ENOMEM, "no memory for objects");
	rc = make_session(session, err);
	if (!rc)
		*ret_session = TS_STEAL(session);
	return blame_machine(rc, err);
}

static const char *describe_session(const struct ts_replay_session *session)
{
	return session->text;
}

/* ---- a run ---- */

/* Waits until the command is due. */
static void keep_pace(const struct ts_replay_session *session, uint32_t position, int64_t begin)
{
	int64_t due = ts_target_due_ns(session->replay, position, begin);

	if (!session->outcome->order && due > ts_clock_monotonic_ns())
		ts_target_sleep_until(due);
}

static bool is_captured(const struct ts_replay_session *session, const struct ts_cuda_step *step)
{
	for (uint32_t i = 0; i < step->capture_count; i++)
		if (session->replay->captures[step->first_capture + i].is_pages)
			return true;
	return false;
}

/* A command alone, and what is captured behind it. */
static int run_alone(struct ts_replay_session *session, uint32_t position, struct ts_error *err)
{
	const struct ts_cuda_step *step = &session->steps[position];
	int rc;

	__atomic_store_n(&session->running, position + 1, __ATOMIC_RELEASE);
	rc = ts_cuda_submit(session, position, err);
	if (!rc && session->is_pending)
		rc = ts_cuda_wait_all(session, position, err);
	if (!rc && !is_captured(session, step))
		session->knows_pages = false;
	if (!rc)
		rc = ts_cuda_capture_after(session, position, err);
	__atomic_fetch_add(&session->progress, 1, __ATOMIC_RELEASE);
	if (!rc)
		__atomic_store_n(&session->running, 0, __ATOMIC_RELEASE);
	return rc;
}

/* A graph runs as one if nothing is captured between its nodes. */
static bool runs_as_graph(const struct ts_replay_session *session, uint32_t position)
{
	const struct ts_cuda_step *step = &session->steps[position];

	if (!step->graph_end || session->plan->order[position] != step->command->graph_first ||
	    !session->objects[step->command->graph].handle)
		return false;
	for (uint32_t i = position; i + 1 < step->graph_end; i++)
		for (uint32_t j = 0; j < session->steps[i].capture_count; j++)
			if (session->replay->captures[session->steps[i].first_capture + j]
				    .range.memory != TS_REPLAY_NONE)
				return false;
	return true;
}

static int launch_graph(struct ts_replay_session *session, uint32_t position, struct ts_error *err)
{
	struct ts_cuda_step *step = &session->steps[position];
	int code = ts_cuda_enter(session, step->context);

	if (!session->has_activity)
		step->begin = ts_cuda_take_event(session, step->context);
	step->end = ts_cuda_take_event(session, step->context);
	session->is_pending = true;
	if (!code && step->begin && step->end)
		code = session->cu.EventRecord(step->begin, step->stream);
	if (!code)
		code = session->cu.GraphLaunch(session->objects[step->command->graph].handle,
					       step->stream);
	if (!code && step->end)
		code = session->cu.EventRecord(step->end, step->stream);
	for (uint32_t i = position; i < step->graph_end; i++)
		session->steps[i].is_in_graph = true;
	return code ? ts_cuda_fail_command(session, position, code, err) : TS_OK;
}

static int run_among_others(struct ts_replay_session *session, uint32_t position,
			    struct ts_error *err)
{
	struct ts_cuda_step *step = &session->steps[position];
	int rc = TS_OK;

	if (!step->is_in_graph)
		rc = runs_as_graph(session, position) ? launch_graph(session, position, err)
						      : ts_cuda_submit(session, position, err);
	__atomic_store_n(&session->submitted, position + 1, __ATOMIC_RELEASE);
	if (!rc && step->capture_count)
		rc = ts_cuda_capture_after(session, position, err);
	return rc ? rc : ts_cuda_read_times(session, position, false, err);
}

static int run_step(struct ts_replay_session *session, uint32_t position, struct ts_error *err)
{
	struct ts_replay_times *times = &session->outcome->times[position];
	int rc;

	times->called = ts_clock_monotonic_ns();
	rc = session->is_serial ? run_alone(session, position, err)
				: run_among_others(session, position, err);
	times->returned = ts_clock_monotonic_ns();
	return rc;
}

static int run_steps(struct ts_replay_session *session, struct ts_error *err)
{
	const uint32_t *order = session->outcome->order;
	uint32_t count = session->plan->count, timed = ts_cuda_timed_position(session);
	int64_t begin = ts_clock_monotonic_ns();
	int rc = TS_OK;

	if (!session->setup_ns)
		session->setup_ns = begin - session->opened_ns;
	for (uint32_t i = 0; i < count && !rc; i++) {
		uint32_t position = order ? order[i] : i;

		rc = ts_target_progress(session->replay, i, err);
		if (!rc)
			keep_pace(session, position, begin);
		if (!rc && position == timed && session->number == 0)
			rc = ts_cuda_time_kernel(session, position, err);
		if (!rc)
			rc = run_step(session, position, err);
	}
	if (rc || !count)
		return rc;
	__atomic_store_n(&session->is_ending, true, __ATOMIC_RELEASE);
	return ts_cuda_wait_all(session, count - 1, err);
}

/* Captures may change between runs. */
static void assign_captures(struct ts_replay_session *session)
{
	const struct ts_replay *replay = session->replay;

	for (uint32_t i = 0; i < session->plan->count; i++)
		session->steps[i].first_capture = session->steps[i].capture_count = 0;
	for (uint32_t i = 0; i < replay->capture_count; i++) {
		struct ts_cuda_step *step;

		if (replay->captures[i].position >= session->plan->count)
			continue;
		step = &session->steps[replay->captures[i].position];
		if (!step->capture_count++)
			step->first_capture = i;
	}
}

static void begin_run(struct ts_replay_session *session, unsigned int number,
		      struct ts_replay_outcome *outcome)
{
	session->outcome = outcome;
	session->number = number;
	session->is_serial = ts_cuda_is_serial(session) || outcome->order;
	session->has_pages = false;
	session->knows_pages = true;
	session->is_pending = false;
	session->submitted = session->running = session->progress = 0;
	session->is_ending = false;
	for (uint32_t i = 0; i < session->plan->count; i++)
		session->steps[i].is_in_graph = false;
	assign_captures(session);
}

/*
 * Kernels may print, which the driver writes to the standard output. That of this process is the
 * report: what kernels print goes to standard error, if the process belongs to the replay.
 */
static int divert_output(const struct ts_replay_session *session)
{
	int output;

	if (!session->replay->options.monitor)
		return -1;
	fflush(stdout);
	output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (output >= 0)
		dup2(STDERR_FILENO, STDOUT_FILENO);
	return output;
}

static void return_output(int output)
{
	if (output < 0)
		return;
	fflush(stdout);
	dup2(output, STDOUT_FILENO);
	close(output);
}

static int run_session(struct ts_replay_session *session, unsigned int number,
		       struct ts_replay_outcome *outcome, struct ts_error *err)
{
	int output = divert_output(session), rc;

	begin_run(session, number, outcome);
	rc = ts_cuda_restore(session, err);
	if (!rc)
		rc = ts_cuda_watch_start(session, err);
	if (!rc && number)
		rc = ts_cuda_reset_settings(session, false, err);
	if (!rc)
		rc = ts_cuda_begin_times(session, err);
	ts_cuda_activity_begin(session);
	if (!rc)
		rc = run_steps(session, err);
	ts_target_watch_stop(session->watch);
	session->watch = NULL;
	if (!rc)
		rc = ts_cuda_read_times(session, session->plan->count, true, err);
	if (!rc)
		ts_cuda_activity_times(session);
	if (!rc)
		rc = ts_cuda_capture_end(session, err);
	ts_cuda_drop_events(session);
	return_output(output);
	session->outcome = NULL;
	return blame_machine(rc, err);
}

static void report_session(const struct ts_replay_session *session, struct ts_replay_report *report)
{
	uint32_t timed = ts_cuda_timed_position(session);
	size_t length = strlen(report->note);

	ts_cuda_report_moves(session, report);
	report->setup_ns = session->setup_ns;
	report->restored_bytes = session->restored_bytes;
	if (session->notes[0])
		snprintf(report->note + length, sizeof(report->note) - length, "%s%s",
			 length ? "; " : "", session->notes);
	if (timed == TS_REPLAY_NONE || !session->timed.runs)
		return;
	report->timed_runs = session->timed.runs;
	report->timed_recorded_ns =
		session->replay->recorded_ns ? session->replay->recorded_ns[timed] : TS_ABSENT;
	report->timed_warm_ns = session->timed.warm;
	report->timed_warm_low_ns = session->timed.warm_low;
	report->timed_warm_high_ns = session->timed.warm_high;
	report->timed_cold_ns = session->timed.cold;
	report->timed_cold_low_ns = session->timed.cold_low;
	report->timed_cold_high_ns = session->timed.cold_high;
	snprintf(report->timed_clocks, sizeof(report->timed_clocks), "%s", session->timed.clocks);
	ts_replay_command_text(session->stream, session->plan->order[timed], report->timed_kernel,
			       sizeof(report->timed_kernel));
}

static const char *note_session(const struct ts_replay_session *session)
{
	return session->notes;
}

const struct ts_replay_target ts_replay_target_cuda = {
	.name = "cuda",
	.summary = "runs a recorded command stream on an NVIDIA GPU through CUDA's driver",
	.example = "trace.sbt --target cuda --repeat 3",
	.needs = TS_REPLAY_NEEDS_STREAM | TS_REPLAY_NEEDS_FIXED_ADDRESSES,
	.can = (TS_REPLAY_CAN_ALL & ~TS_REPLAY_CAN_REPLACE_KERNEL) | TS_REPLAY_CAN_HASH_PAGES |
	       TS_REPLAY_CAN_REORDER | TS_REPLAY_CAN_TIME_KERNEL | TS_REPLAY_CAN_DUMP_ADDRESS,
	.default_check = TS_REPLAY_CHECK_FINAL,
	.open = open_session,
	.run = run_session,
	.device = describe_session,
	.report = report_session,
	.notes = note_session,
	.close = close_session,
};
