/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder loop: the steps of a pass and their order, the sleep after it, and how a recording
 * begins and ends. Discovery, windows and file names are in other files (record_internal.h); the
 * decoder interprets the blocks.
 */
#include "record/loop/recorder.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <tracesmith/reader.h>

#include "base/clock.h"
#include "record/loop/record_internal.h"

/* Time between two passes. */
#define SHORTEST_WAIT_NS TS_NS_PER_MS
#define BUSY_WAIT_NS (120 * TS_NS_PER_MS)
#define IDLE_WAIT_NS (120 * TS_NS_PER_MS)
#define IDLE_AFTER_NS TS_NS_PER_S
/* Idle passes may use 1/IDLE_SHARE of the time, but happen at least every IDLE_GREATEST_NS. */
#define IDLE_SHARE 2000
#define IDLE_GREATEST_NS (500 * TS_NS_PER_MS)
/* A window is closed this long after events were switched off, so that running emits can finish. */
#define SETTLE_NS TS_NS_PER_MS
#define BEAT_NS (500 * TS_NS_PER_MS)
#define CLOCK_NS TS_NS_PER_S
#define LINGER_NS TS_NS_PER_S
/* Our own metrics are drained after this many samples, and at least this often. */
#define SELF_SAMPLES 10
#define SELF_NS TS_NS_PER_S
/*
 * Stacks can be many: their ring is drained when it should be a quarter full. (A full ring grows at
 * first.)
 */
#define SELF_FILL 64
#define SELF_FIRST_NS (50 * TS_NS_PER_MS)
#define SELF_LEAST_NS (2 * TS_NS_PER_MS)
#define BEHIND_SAMPLE_NS (TS_NS_PER_MS / 2)
/* Each target needs two descriptors. */
#define MANY_TARGETS 128
/* How long to wait for the wait status of a dead target. */
#define STATUS_WAIT_NS TS_NS_PER_S

/* ---- shared with the other files ---- */

void ts_recorder_note(struct ts_recorder *recorder, const char *format, ...)
{
	char message[TS_ERROR_MESSAGE_BYTES];
	va_list args;

	if (!recorder->options.note)
		return;
	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	recorder->options.note(recorder->options.context, message);
}

void ts_recorder_completed(struct ts_recorder *recorder, const char *trace)
{
	if (recorder->options.completed)
		recorder->options.completed(recorder->options.context, trace);
}

int ts_recorder_watch(struct ts_recorder *recorder, int fd, bool *ready)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = ready };

	return epoll_ctl(recorder->epoll, EPOLL_CTL_ADD, fd, &event) ? TS_EIO : TS_OK;
}

/* Stores a clock anchor, once a second. */
static int write_clock(struct ts_recorder *recorder, struct ts_error *err)
{
	int rc;

	if (recorder->now_ns < recorder->clock_ns && !recorder->finishing)
		return TS_OK;
	recorder->clock_ns = recorder->now_ns + CLOCK_NS;
	ts_clocks_anchor(&recorder->clocks, &recorder->anchor);
	rc = ts_recorder_append(recorder, TS_BLOCK_CLOCK, 0, &recorder->anchor,
				sizeof(recorder->anchor), err);
	return rc == TS_ENOSPC ? TS_OK : rc;
}

/* ---- opening ---- */

static uint64_t draw_session(void)
{
	uint64_t session = 0;

	if (getrandom(&session, sizeof(session), 0) != (ssize_t)sizeof(session))
		session = ts_hash_mix64((uint64_t)ts_clock_realtime_ns() ^ (uint64_t)getpid());
	return session ? session : 1;
}

static uint64_t namespace_of_self(const char *path)
{
	struct stat status;

	return stat(path, &status) ? 0 : (uint64_t)status.st_ino;
}

static int copy_options(struct ts_recorder *recorder, const struct ts_recorder_options *options,
			struct ts_error *err)
{
	size_t length = options->output ? strlen(options->output) : 0;

	if (!length || length >= sizeof(recorder->output) - 64)
		return ts_error_set(err, TS_EINVAL, "output '%.40s%s': %s",
				    length ? options->output : "", length ? "..." : "",
				    length ? "path too long" : "no path given");
	recorder->options = *options;
	memcpy(recorder->output, options->output, length + 1);
	recorder->options.output = recorder->output;
	recorder->pids = ts_alloc_array(options->pid_count, sizeof(*recorder->pids));
	if (!recorder->pids)
		return ts_error_set(err, TS_ENOMEM, "no memory for a recorder");
	if (options->pid_count)
		memcpy(recorder->pids, options->pids, options->pid_count * sizeof(*options->pids));
	recorder->options.pids = recorder->pids;
	return TS_OK;
}

static int open_watches(struct ts_recorder *recorder, struct ts_error *err)
{
	recorder->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (recorder->epoll < 0)
		return ts_error_errno(err, errno, "cannot watch processes");
	/* Without inotify, directories are polled once a second. */
	recorder->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (recorder->inotify >= 0)
		ts_recorder_watch(recorder, recorder->inotify, &recorder->notified);
	return TS_OK;
}

static int open_recording(struct ts_recorder *recorder, struct ts_error *err)
{
	const struct ts_recorder_options *options = &recorder->options;
	struct ts_recording_options how = { .session = options->session ? options->session
									: draw_session(),
					    .window_closed = ts_windows_closed,
					    .context = recorder,
					    .spools = recorder->spools };
	const struct ts_block_open *origin;
	int rc;

	how.flags |= options->resume ? TS_RECORDING_RESUME : 0;
	how.flags |= options->sync ? TS_RECORDING_SYNC : 0;
	how.flags |= options->redact ? TS_RECORDING_REDACT : 0;
	how.rank = options->rank;
	rc = ts_recording_open(&recorder->recording, recorder->saves.trace_path, &how, err);
	if (rc)
		return rc;
	origin = ts_recording_origin(recorder->recording);
	recorder->session = origin->session;
	/* A successor leaves out what its predecessor did. */
	recorder->options.redact |= origin->redact != 0;
	recorder->clocks = (struct ts_clocks){ .kind = (enum ts_live_clock)origin->clock,
					       .mult = origin->counter_mult };
	recorder->started_counter = origin->started_counter;
	return TS_OK;
}

static int open_components(struct ts_recorder *recorder, struct ts_error *err)
{
	int rc = open_watches(recorder, err);

	if (!rc)
		rc = ts_saves_open(recorder, err);
	if (!rc)
		rc = ts_windows_open(recorder, err);
	if (!rc)
		rc = ts_spools_new(&recorder->spools, true, err);
	if (!rc)
		rc = ts_targets_open(recorder, err);
	if (!rc)
		rc = open_recording(recorder, err);
	if (rc)
		return rc;
	recorder->now_ns = ts_clock_monotonic_ns();
	recorder->moved_ns = recorder->now_ns;
	recorder->started_ns = recorder->now_ns -
			       ts_clocks_ns(&recorder->clocks, ts_clocks_now(&recorder->clocks) -
								       recorder->started_counter);
	ts_saves_start(recorder);
	rc = write_clock(recorder, err);
	if (!rc)
		rc = ts_windows_evaluate(recorder, err);
	return rc ? rc : ts_targets_scan(recorder, err);
}

int ts_recorder_open(struct ts_recorder **ret_recorder, const struct ts_recorder_options *options,
		     struct ts_error *err)
{
	TS_AUTO(ts_recorder) recorder = calloc(1, sizeof(*recorder));
	int rc;

	if (!recorder)
		return ts_error_set(err, TS_ENOMEM, "no memory for a recorder");
	recorder->epoll = recorder->inotify = recorder->execs = -1;
	recorder->now_ns = ts_clock_monotonic_ns();
	recorder->self = getpid();
	recorder->self_start = ts_process_start_time(recorder->self);
	recorder->self_namespace = namespace_of_self("/proc/self/ns/pid");
	recorder->self_mounts = namespace_of_self("/proc/self/ns/mnt");
	recorder->wait_ns = SHORTEST_WAIT_NS;
	ts_map_init(&recorder->refused);
	ts_map_init(&recorder->seen);
	ts_pairmap_init(&recorder->users);
	ts_pairmap_init(&recorder->traced);
	pthread_mutex_init(&recorder->windows.lock, NULL);
	rc = copy_options(recorder, options, err);
	if (!rc)
		rc = open_components(recorder, err);
	if (rc)
		return rc;
	*ret_recorder = TS_STEAL(recorder);
	return TS_OK;
}

const char *ts_recorder_trace(const struct ts_recorder *recorder)
{
	return recorder->saves.trace_path;
}

uint64_t ts_recorder_session(const struct ts_recorder *recorder)
{
	return recorder->session;
}

int ts_recorder_fd(const struct ts_recorder *recorder)
{
	return recorder->epoll;
}

void ts_recorder_follow(struct ts_recorder *recorder, pid_t pid)
{
	struct ts_child *child = ts_children_add(recorder, pid, recorder->self);

	if (!child)
		return;
	child->root = child->launched = true;
	ts_execs_open(recorder);
}

void ts_recorder_attach(struct ts_recorder *recorder, pid_t pid)
{
	struct ts_child *child = ts_children_add(recorder, pid, ts_process_parent(pid));

	if (!child)
		return;
	child->root = true;
	ts_execs_open(recorder);
}

void ts_recorder_exited(struct ts_recorder *recorder, pid_t pid, int wait_status)
{
	struct ts_child *child = ts_children_find(recorder, pid);

	if (!child)
		return;
	child->exited = true;
	child->status = wait_status;
}

/* ---- a pass ---- */

/* Sets the flags of the descriptors that are ready. */
static void collect_wakeups(struct ts_recorder *recorder)
{
	struct epoll_event events[64];
	int count = epoll_wait(recorder->epoll, events, TS_ARRAY_SIZE(events), 0);

	for (int i = 0; i < count; i++) {
		*(bool *)events[i].data.ptr = true;
		if (events[i].data.ptr != &recorder->execs_ready)
			recorder->take_ns = 0;
	}
}

static bool others_run(const struct ts_recorder *recorder, const struct ts_target *besides)
{
	for (size_t i = 0; i < recorder->target_count; i++) {
		const struct ts_target *target = recorder->targets[i];

		if (target != besides && !target->is_self && !target->dead && !target->ended &&
		    ts_area_control(target->area)->target_state == TS_LIVE_RUNNING)
			return true;
	}
	return false;
}

/*
 * Answers a flush request; records from before the drain are in the journal now. A flush while the
 * target runs, or by the last target of a detached recorder, also needs a readable file: it waits
 * for a save. Other exiting targets do not.
 */
static void answer_flush(struct ts_recorder *recorder, struct ts_target *target)
{
	const struct ts_live_control *control = ts_area_control(target->area);
	bool exiting = control->target_state == TS_LIVE_EXITING;
	uint64_t request = control->flush_request;

	if (request == control->flush_done || (recorder->full && !exiting))
		return;
	if (recorder->full ||
	    (exiting && (!recorder->options.detached || others_run(recorder, target)))) {
		TS_TARGET_SET(target, flush_done, request);
		return;
	}
	target->flush_wanted = request;
	recorder->flush_saves = true;
}

/* Nobody reads the messages of a detached recorder: the program prints this at exit. */
static void notify_not_saved(struct ts_recorder *recorder, struct ts_target *target,
			     const struct ts_error *why)
{
	struct ts_error notice;

	if (!recorder->options.detached ||
	    ts_area_control(target->area)->target_state != TS_LIVE_EXITING)
		return;
	ts_error_set(&notice, why->code, "%s; the recording is kept in '%s'", why->message,
		     recorder->saves.trace_path);
	ts_area_notify(target->area, notice.message);
}

static int save_for_flushes(struct ts_recorder *recorder, struct ts_error *err)
{
	int rc;

	if (!recorder->flush_saves)
		return TS_OK;
	recorder->flush_saves = false;
	rc = ts_saves_save(recorder, err);
	if (rc && rc != TS_ENOSPC)
		return rc;
	for (size_t i = 0; i < recorder->target_count; i++) {
		struct ts_target *target = recorder->targets[i];

		if (rc && target->flush_wanted)
			notify_not_saved(recorder, target, err);
		if (target->flush_wanted)
			TS_TARGET_SET(target, flush_done, target->flush_wanted);
		target->flush_wanted = 0;
	}
	return TS_OK;
}

static void beat(struct ts_recorder *recorder, struct ts_target *target)
{
	if (recorder->now_ns - target->beat_ns < BEAT_NS)
		return;
	target->beat_ns = recorder->now_ns;
	ts_target_tell_space(recorder, target);
	TS_TARGET_SET(target, heartbeat, recorder->now_ns);
}

/* True once nothing more can be learned about the end of a dead target. */
static bool end_is_known(struct ts_recorder *recorder, struct ts_target *target)
{
	const struct ts_child *child = ts_children_of(recorder, target);

	if (target->superseded || !child || !child->launched || child->exited ||
	    recorder->finishing)
		return true;
	if (!target->died_ns)
		target->died_ns = recorder->now_ns;
	return recorder->now_ns - target->died_ns >= STATUS_WAIT_NS;
}

/* Stops draining a damaged area (its LOSS block is stored). The process continues. */
static void give_up_area(struct ts_recorder *recorder, struct ts_target *target)
{
	target->damaged = true;
	ts_recorder_note(recorder, "process %d is no longer recorded: %s", (int)target->pid,
			 ts_area_damage(target->area));
}

/* Our own samples are not urgent: nobody waits for them, and the ring holds many more. */
static bool is_self_and_early(const struct ts_recorder *recorder, const struct ts_target *target)
{
	return target->is_self && recorder->now_ns < recorder->self_pace.take_ns;
}

/* Time until the ring is a quarter full at its current rate; at most twice the last wait. */
static int64_t wait_for_stacks(const struct ts_self_pace *pace, int64_t elapsed_ns, uint64_t fill)
{
	int64_t wait_ns = elapsed_ns * SELF_FILL / (int64_t)TS_MAX(fill, 1u);

	if (!pace->took_ns)
		return SELF_FIRST_NS;
	return TS_MAX(TS_MIN(wait_ns, pace->wait_ns * 2), SELF_LEAST_NS);
}

static void pace_self(struct ts_recorder *recorder, uint64_t fill)
{
	struct ts_self_pace *pace = &recorder->self_pace;
	int64_t elapsed_ns = recorder->now_ns - pace->took_ns, wait_ns = SELF_NS;

	if (recorder->metrics.sampler)
		wait_ns = TS_MIN(recorder->metrics.list.shortest_ns * SELF_SAMPLES, wait_ns);
	if (recorder->python.sampler)
		wait_ns = TS_MIN(wait_for_stacks(pace, elapsed_ns, fill), wait_ns);
	pace->wait_ns = wait_ns;
	pace->took_ns = recorder->now_ns;
	pace->take_ns = recorder->now_ns + wait_ns;
}

/* The fill level of our own ring does not affect the pace of the other rings. */
static int drain_self(struct ts_recorder *recorder, struct ts_target *target, struct ts_error *err)
{
	uint64_t others = recorder->fill;
	int rc;

	recorder->fill = 0;
	rc = ts_recorder_drain(recorder, target, 0, err);
	pace_self(recorder, recorder->fill);
	recorder->fill = others;
	return rc;
}

static int take_live(struct ts_recorder *recorder, struct ts_target *target, struct ts_error *err)
{
	int rc = TS_OK;

	beat(recorder, target);
	if (target->damaged || is_self_and_early(recorder, target))
		return TS_OK;
	/*
	 * A drain refreshes the control block first, so all that was requested in it is in the
	 * journal afterwards.
	 */
	if (recorder->full || recorder->limited || !target->announced || ts_windows_holds(recorder))
		ts_area_refresh(target->area, NULL);
	else if (target->is_self)
		rc = drain_self(recorder, target, err);
	else
		rc = ts_recorder_drain(recorder, target, 0, err);
	if (rc)
		return rc;
	if (ts_area_damage(target->area)) {
		give_up_area(recorder, target);
		return TS_OK;
	}
	if (target->is_self)
		return TS_OK;
	/* The program that started this recorder has stopped it. It waits for the end. */
	if (ts_target_has_stopped(recorder, target)) {
		recorder->done = true;
		return TS_OK;
	}
	if (!ts_windows_holds(recorder))
		answer_flush(recorder, target);
	rc = ts_windows_settle(recorder, target, err);
	return rc ? rc : ts_windows_serve(recorder, target, err);
}

/* The more rings, the higher the cost of a look, and the longer the wait. */
static int64_t idle_wait(const struct ts_recorder *recorder)
{
	int64_t wait_ns = TS_MIN(recorder->take_cost_ns * IDLE_SHARE, IDLE_GREATEST_NS);

	return TS_MAX(wait_ns, IDLE_WAIT_NS);
}

/* A ring more than half full: drain at once. More than a quarter: keep the pace. Else slow down. */
static void adapt_wait(struct ts_recorder *recorder)
{
	if (recorder->settling || recorder->fill > 128)
		recorder->wait_ns = SHORTEST_WAIT_NS;
	else if (recorder->now_ns - recorder->moved_ns >= IDLE_AFTER_NS)
		recorder->wait_ns = TS_MIN(recorder->wait_ns * 2, idle_wait(recorder));
	else if (recorder->fill <= 64)
		recorder->wait_ns = TS_MIN(recorder->wait_ns * 2, BUSY_WAIT_NS);
	else
		recorder->wait_ns = TS_MIN(recorder->wait_ns, BUSY_WAIT_NS);
}

/*
 * When to drain next. If only samples arrive, drain right after one: the CPU is awake then, and a
 * wakeup costs more than the drain.
 */
static int64_t next_take(const struct ts_recorder *recorder)
{
	int64_t due_ns = recorder->now_ns + recorder->wait_ns;
	int64_t interval_ns = recorder->metrics.sampler ? recorder->metrics.pace.interval_ns : 0;

	/* take_ns is in the past if nothing could be drained: full disk, size limit. */
	if (recorder->python.sampler)
		return recorder->self_pace.take_ns > recorder->now_ns
			       ? TS_MIN(due_ns, recorder->self_pace.take_ns)
			       : due_ns;
	if (recorder->wait_ns < IDLE_WAIT_NS || !interval_ns || interval_ns > IDLE_WAIT_NS ||
	    recorder->now_ns - recorder->moved_ns < IDLE_AFTER_NS)
		return due_ns;
	return (due_ns / interval_ns + 1) * interval_ns + BEHIND_SAMPLE_NS;
}

static int take_all(struct ts_recorder *recorder, struct ts_error *err)
{
	int64_t began;

	/* Woken for another reason (an exec, a check of children): not time to drain yet. */
	if (recorder->now_ns < recorder->take_ns && !recorder->finishing)
		return TS_OK;
	began = ts_clock_thread_cpu_ns();
	recorder->fill = 0;
	for (size_t i = 0; i < recorder->target_count; i++) {
		struct ts_target *target = recorder->targets[i];
		int rc = TS_OK;

		if (!target->dead && !target->superseded)
			rc = take_live(recorder, target, err);
		else if (!recorder->full && end_is_known(recorder, target))
			rc = ts_targets_end(recorder, target, err);
		if (rc && rc != TS_ENOSPC)
			return rc;
	}
	ts_targets_sweep(recorder);
	recorder->take_cost_ns = ts_clock_thread_cpu_ns() - began;
	adapt_wait(recorder);
	recorder->take_ns = next_take(recorder);
	return TS_OK;
}

/*
 * True while a target may still store events. A closed tracer reports that it is exiting although
 * its process lives on: do not wait for it.
 */
static bool is_any_busy(const struct ts_recorder *recorder)
{
	bool quiet = recorder->now_ns - recorder->moved_ns >= LINGER_NS;

	for (size_t i = 0; i < recorder->target_count; i++) {
		const struct ts_target *target = recorder->targets[i];

		/* Its rest cannot be stored now, and it will not grow; or all of it is. */
		if (target->is_self || target->ended ||
		    (recorder->full && (target->dead || target->superseded)))
			continue;
		if (!quiet || !recorder->options.detached ||
		    ts_area_control(target->area)->target_state != TS_LIVE_EXITING)
			return true;
	}
	return false;
}

/* True if there is nothing left to record. */
static bool is_done(struct ts_recorder *recorder)
{
	const struct ts_recorder_options *options = &recorder->options;

	if (recorder->done)
		return true;
	if (options->duration_ns && recorder->now_ns - recorder->started_ns >= options->duration_ns)
		return true;
	if (options->endless)
		return false;
	if (is_any_busy(recorder) || ts_children_root_alive(recorder)) {
		recorder->empty_ns = 0;
		return false;
	}
	if (!recorder->empty_ns)
		recorder->empty_ns = recorder->now_ns;
	/* Without named processes, new ones may be about to start. */
	return options->pid_count || recorder->child_count ||
	       recorder->now_ns - recorder->empty_ns >= LINGER_NS;
}

static int64_t wait_until_due(const struct ts_recorder *recorder)
{
	int64_t due = recorder->take_ns;

	due = TS_MIN(due, ts_windows_due(recorder));
	due = TS_MIN(due, ts_children_due(recorder));
	due = TS_MIN(due, ts_execs_due(recorder));
	if (recorder->options.duration_ns)
		due = TS_MIN(due, recorder->started_ns + recorder->options.duration_ns);
	return TS_MAX(due - recorder->now_ns, 0);
}

void ts_recorder_raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int discover(struct ts_recorder *recorder, struct ts_error *err)
{
	int rc;

	collect_wakeups(recorder);
	if (recorder->target_count >= MANY_TARGETS)
		ts_recorder_raise_limit();
	rc = ts_targets_scan(recorder, err);
	ts_execs_pass(recorder);
	if (!rc)
		rc = ts_children_scan(recorder, err);
	if (rc)
		return rc;
	ts_targets_check(recorder);
	return TS_OK;
}

int ts_recorder_pass(struct ts_recorder *recorder, int64_t *ret_wait_ns, bool *ret_done,
		     struct ts_error *err)
{
	int rc;

	recorder->now_ns = ts_clock_monotonic_ns();
	recorder->settling = false;
	ts_store_check_space(recorder);
	rc = discover(recorder, err);
	if (!rc)
		rc = ts_windows_evaluate(recorder, err);
	if (!rc)
		rc = ts_metrics_pass(recorder, err);
	if (!rc)
		rc = ts_python_pass(recorder, err);
	if (!rc)
		rc = take_all(recorder, err);
	if (!rc)
		rc = write_clock(recorder, err);
	if (!rc)
		rc = ts_windows_export(recorder, err);
	if (!rc)
		rc = ts_saves_pass(recorder, err);
	if (!rc)
		rc = save_for_flushes(recorder, err);
	if (rc)
		return rc;
	*ret_done = is_done(recorder);
	*ret_wait_ns = wait_until_due(recorder);
	return TS_OK;
}

/* ---- the end ---- */

/* Closes the windows of all targets first, so that they end together. */
static void stop_windows(struct ts_recorder *recorder)
{
	struct timespec pause = { .tv_nsec = SETTLE_NS };

	for (size_t i = 0; i < recorder->target_count; i++) {
		struct ts_target *target = recorder->targets[i];

		if (!target->dead && !target->superseded && !target->damaged && !target->is_self)
			ts_windows_stop(recorder, target, "end");
	}
	if (recorder->target_count)
		nanosleep(&pause, NULL);
}

static int end_targets(struct ts_recorder *recorder, struct ts_error *err)
{
	for (size_t i = 0; i < recorder->target_count; i++) {
		int rc = ts_targets_end(recorder, recorder->targets[i], err);

		if (rc)
			return rc;
	}
	return TS_OK;
}

/* What the predecessor recorded, and nobody has any more. */
static int lose_gone(struct ts_recorder *recorder, struct ts_error *err)
{
	TS_AUTO_FREE uint64_t *areas = NULL;
	size_t count = 0;
	int rc = ts_recording_open_areas(recorder->recording, &areas, &count, err);

	for (size_t i = 0; i < count && !rc; i++)
		rc = ts_recorder_lose(recorder, areas[i], 0, "events", TS_RECORDING_AREA_GONE, 0,
				      err);
	return rc;
}

static int finish_recording(struct ts_recorder *recorder, struct ts_error *err)
{
	int rc;

	ts_python_stop(recorder);
	ts_metrics_stop(recorder);
	recorder->now_ns = ts_clock_monotonic_ns();
	for (size_t i = 0; i < recorder->directory_count; i++)
		recorder->directories[i].due = true;
	for (size_t i = 0; i < recorder->child_count; i++)
		recorder->children[i].check_ns = 0;
	rc = discover(recorder, err);
	if (rc)
		return rc;
	recorder->finishing = true;
	recorder->full &= !ts_store_has_space(recorder);
	stop_windows(recorder);
	rc = end_targets(recorder, err);
	if (!rc && recorder->options.resume)
		rc = lose_gone(recorder, err);
	if (!rc)
		rc = ts_python_report_status(recorder, err);
	if (!rc)
		rc = write_clock(recorder, err);
	/* Decode everything, so that closed windows are reported and losses counted. */
	if (!rc && (recorder->options.split || recorder->limited))
		rc = ts_recording_checkpoint(recorder->recording, false, err);
	if (!rc)
		rc = ts_windows_export(recorder, err);
	if (!rc)
		rc = ts_recording_finish(recorder->recording, err);
	return rc ? rc : ts_saves_finish(recorder, err);
}

/* The files that a rotation has left of those that this recorder wrote. */
static void count_kept(struct ts_saves *saves, struct ts_recorder_summary *summary)
{
	struct ts_rotation *rotation = &saves->rotation;

	if (!saves->rotates)
		return;
	summary->kept_bytes = ts_rotation_expire(rotation, saves->stem, saves->ending, 0, 0, 0);
	summary->kept_files = TS_MIN(rotation->count + 1, saves->files);
	summary->kept_events = saves->last_events;
	for (size_t i = 0; i < rotation->count; i++)
		summary->kept_events += rotation->files[i].events;
}

/* The traces of ranks, instead of the one that was split. */
static void count_ranks(struct ts_saves *saves, struct ts_recorder_summary *summary)
{
	const struct ts_recorder_rank *last;
	struct stat status;

	summary->ranks = saves->ranks;
	if (!saves->rank_files)
		return;
	summary->rank_files = TS_STEAL(saves->rank_files);
	summary->files = summary->kept_files = summary->ranks;
	last = &summary->rank_files[summary->ranks - 1];
	snprintf(summary->path, sizeof(summary->path), "%s", last->path);
	for (const struct ts_recorder_rank *file = summary->rank_files; file < last; file++)
		summary->kept_bytes += stat(file->path, &status) ? 0 : (uint64_t)status.st_size;
}

/* Fills the summary from the finished file. */
static void summarize(struct ts_recorder *recorder, struct ts_recorder_summary *summary)
{
	const struct ts_trace_totals *totals = &recorder->saves.totals;
	struct ts_recording_status status = { 0 };

	ts_recording_status(recorder->recording, &status);
	*summary = (struct ts_recorder_summary){ .events = totals->events,
						 .lost = totals->lost.events,
						 .unknown_losses = totals->lost.unknown,
						 .lost_by_buffers = status.lost_by_buffers,
						 .disk_was_full = recorder->was_full,
						 .metrics = status.measured,
						 .samples = status.samples,
						 .trace_bytes = status.trace_bytes,
						 .processes = totals->processes,
						 .threads = totals->threads,
						 .devices = totals->devices,
						 .has_traced = recorder->has_traced,
						 .untraced = recorder->untraced,
						 .windows = recorder->windows.counted,
						 .files = recorder->saves.files,
						 .kept_files = recorder->saves.files,
						 .kept_events = totals->events,
						 .commands = status.commands,
						 .blob_bytes = status.blob_bytes,
						 .replayable_windows = status.replayable_windows,
						 .failed_windows = status.failed_windows,
						 .checks = status.checks,
						 .kept_checks = status.kept_checks,
						 .stacks = recorder->python.last.samples,
						 .stacks_rejected = recorder->python.last.rejected,
						 .stacks_left_out =
							 recorder->python.last.late_ticks +
							 recorder->python.last.left_out_ticks };
	count_kept(&recorder->saves, summary);
	memcpy(summary->not_replayable, status.not_replayable, sizeof(summary->not_replayable));
	memcpy(summary->not_split, recorder->saves.not_split, sizeof(summary->not_split));
	snprintf(summary->path, sizeof(summary->path), "%s", recorder->saves.public_path);
	count_ranks(&recorder->saves, summary);
}

int ts_recorder_finish(struct ts_recorder *recorder, struct ts_recorder_summary *ret_summary,
		       struct ts_error *err)
{
	int rc = finish_recording(recorder, err);

	if (rc)
		return rc;
	if (ret_summary)
		summarize(recorder, ret_summary);
	/* Release the lock on the output first: a target checks it after it has made its area. */
	ts_recording_close(TS_STEAL(recorder->recording));
	ts_targets_sweep(recorder);
	if (ret_summary)
		ret_summary->again = ts_targets_waiting(recorder);
	return TS_OK;
}

void ts_recorder_close(struct ts_recorder *recorder)
{
	if (!recorder)
		return;
	ts_python_release(recorder);
	ts_metrics_close(recorder);
	ts_targets_close(recorder);
	ts_children_close(recorder);
	ts_execs_close(recorder);
	ts_recording_close(recorder->recording);
	ts_spools_free(recorder->spools);
	ts_windows_close(recorder);
	ts_saves_release(&recorder->saves);
	ts_map_release(&recorder->refused);
	ts_map_release(&recorder->seen);
	ts_pairmap_release(&recorder->users);
	ts_pairmap_release(&recorder->traced);
	if (recorder->inotify >= 0)
		close(recorder->inotify);
	if (recorder->epoll >= 0)
		close(recorder->epoll);
	free(recorder->pids);
	free(recorder);
}
