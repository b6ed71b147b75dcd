/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows: when events are stored, target by target (docs/live.md, section 4.3). The order of
 * writes makes them exact: OPEN block, then `enabled` on; `enabled` off, a pause for running emits,
 * a drain, then the CLOSE block. Windows by step and of backends are opened and closed by the
 * target; this file only writes their settings, if any.
 */
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/text.h"
#include "record/loop/record_internal.h"

/* Polling interval for the flag file: inotify misses changes on network file systems. */
#define FLAG_LOOK_NS (50 * TS_NS_PER_MS)
/*
 * Windows by time are switched on this early; the decoder drops events from before the start. A
 * busy recorder may still be late.
 */
#define EARLY_NS (20 * TS_NS_PER_MS)
#define SETTLE_NS TS_NS_PER_MS
/* Draining pauses this long before the end of a window by time. */
#define HOLD_NS (5 * TS_NS_PER_MS)

/* ---- parsing ---- */

static int parse_step(const char *text, size_t length, int64_t *ret_value)
{
	return ts_parse_int64(text, length, ret_value);
}

/* Without a unit: seconds. */
static int parse_time(const char *text, size_t length, int64_t *ret_value)
{
	char copy[64];

	if (!length || length >= sizeof(copy) - 2)
		return TS_EFORMAT;
	memcpy(copy, text, length);
	copy[length] = 0;
	if (strspn(copy, "0123456789.") == length)
		copy[length++] = 's';
	return ts_parse_duration_ns(copy, length, ret_value);
}

/* "A-B", "A-" (open end), "A" (one step only). */
static int parse_range(const char *text, int (*parse)(const char *, size_t, int64_t *),
		       struct ts_window_spec *spec)
{
	const char *dash = strchr(text, '-');
	size_t length = dash ? (size_t)(dash - text) : strlen(text);

	if (parse(text, length, &spec->first) || spec->first < 0)
		return TS_EFORMAT;
	if (!dash && spec->kind == TS_WINDOW_TIME)
		return TS_EFORMAT;
	spec->last = dash ? INT64_MAX : spec->first;
	if (dash && dash[1] && parse(dash + 1, strlen(dash + 1), &spec->last))
		return TS_EFORMAT;
	if (spec->last < spec->first || (spec->kind == TS_WINDOW_TIME && spec->last == spec->first))
		return TS_EFORMAT;
	return TS_OK;
}

/* TRACESMITH_AGENT cannot hold longer ones, and ';' ends a value in it. */
#define MARKED_BYTES 200

/* Parses a window of a backend: "nvtx:NAME", "cuda-profiler-api". */
static int parse_marked(const char *text, const struct ts_known_backend *known,
			const struct ts_backend_window *window, struct ts_window_spec *spec,
			struct ts_error *err)
{
	const char *argument = text + strlen(window->name) + 1;
	char why[256] = "";

	spec->kind = TS_WINDOW_BACKEND;
	spec->backend = known;
	spec->marked = window;
	if (window->argument && window->check && window->check(argument, why, sizeof(why)))
		return ts_error_set(err, TS_EINVAL, "window '%s': %s", text, why);
	if (window->argument && !*argument)
		return ts_error_set(err, TS_EINVAL, "window '%s': it needs an argument: %s:%s",
				    text, window->name, window->argument);
	if (strlen(text) > MARKED_BYTES || strchr(text, ';'))
		return ts_error_set(err, TS_EINVAL,
				    "window '%.60s': the name is longer than %zu bytes or "
				    "contains ';'",
				    text, MARKED_BYTES - strlen(window->name) - 1);
	snprintf(spec->path, sizeof(spec->path), "%s", text);
	return TS_OK;
}

static int unknown_window(const char *text, struct ts_error *err)
{
	TS_SCOPED(ts_text) kinds = { 0 };
	const struct ts_known_backend *known;

	for (size_t i = 0; (known = ts_backend_known(i)); i++) {
		const struct ts_backend_window *window = known->backend.windows;

		for (; window && window->name; window++)
			ts_text_printf(&kinds, "%s%s%s, ", window->name,
				       window->argument ? ":" : "",
				       window->argument ? window->argument : "");
	}
	return ts_error_set(
		err, TS_EINVAL,
		"unknown window '%s'; expected flag:PATH, steps:A-B, time:A-B, %scommand or "
		"always",
		text, ts_text_cstr(&kinds));
}

int ts_window_parse(const char *text, struct ts_window_spec *ret_spec, struct ts_error *err)
{
	struct ts_window_spec spec = { .kind = TS_WINDOW_ALWAYS };
	const struct ts_backend_window *window = NULL;
	const struct ts_known_backend *known;
	int rc = TS_OK;

	if (!strncmp(text, "flag:", 5)) {
		spec.kind = TS_WINDOW_FLAG;
		if (!text[5] || strlen(text + 5) >= sizeof(spec.path) ||
		    text[strlen(text) - 1] == '/')
			return ts_error_set(err, TS_EINVAL,
					    "window '%s': flag needs the path of a file, such as "
					    "flag:/tmp/record",
					    text);
		snprintf(spec.path, sizeof(spec.path), "%s", text + 5);
	} else if (!strncmp(text, "steps:", 6)) {
		spec.kind = TS_WINDOW_STEPS;
		rc = parse_range(text + 6, parse_step, &spec);
	} else if (!strncmp(text, "time:", 5)) {
		spec.kind = TS_WINDOW_TIME;
		rc = parse_range(text + 5, parse_time, &spec);
	} else if (!strcmp(text, "command")) {
		spec.kind = TS_WINDOW_COMMAND;
	} else if ((known = ts_backend_of_window(text, &window))) {
		rc = parse_marked(text, known, window, &spec, err);
		if (rc)
			return rc;
	} else if (strcmp(text, "always")) {
		return unknown_window(text, err);
	}
	if (rc)
		return ts_error_set(err, TS_EINVAL, "window '%s' is not a valid range, such as %s",
				    text,
				    spec.kind == TS_WINDOW_STEPS ? "steps:100-110" : "time:5s-10s");
	*ret_spec = spec;
	return TS_OK;
}

/* ---- flag file ---- */

static int watch_flag(struct ts_recorder *recorder)
{
	const char *path = recorder->options.window.path;
	const char *slash = strrchr(path, '/');
	char folder[sizeof(recorder->options.window.path)];
	size_t length = slash ? (size_t)(slash - path) + 1 : 0;

	if (recorder->inotify < 0)
		return -1;
	memcpy(folder, path, length);
	snprintf(folder + length, sizeof(folder) - length, "%s", ".");
	return inotify_add_watch(recorder->inotify, folder,
				 IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR |
					 IN_MASK_ADD);
}

int ts_windows_open(struct ts_recorder *recorder, struct ts_error *err)
{
	(void)err;
	recorder->windows.flag_watch = -1;
	if (recorder->options.window.kind == TS_WINDOW_FLAG)
		recorder->windows.flag_watch = watch_flag(recorder);
	return TS_OK;
}

void ts_windows_close(struct ts_recorder *recorder)
{
	pthread_mutex_destroy(&recorder->windows.lock);
	free(recorder->windows.closed);
}

/* ---- one target ---- */

static void fill_block(struct ts_recorder *recorder, const struct ts_target *target,
		       uint64_t counter, struct ts_block_window *block)
{
	const struct ts_live_control *control = ts_area_control(target->area);
	const struct ts_live_anchor *anchor = &recorder->anchor.anchor;
	/*
	 * Computed from the anchor, so that windows that close together have exactly the same time.
	 */
	int64_t since = counter < anchor->counter
				? -ts_clocks_ns(&recorder->clocks, anchor->counter - counter)
				: ts_clocks_ns(&recorder->clocks, counter - anchor->counter);

	*block = (struct ts_block_window){
		.counter = counter,
		.serial = target->serial,
		.step = control->steps ? control->step : TS_ABSENT,
		.realtime_ms = (anchor->realtime_ns + since) / TS_NS_PER_MS,
	};
	snprintf(block->cause, sizeof(block->cause), "%s", target->cause);
	if (recorder->options.window.kind == TS_WINDOW_FLAG)
		snprintf(block->name, sizeof(block->name), "%.*s", (int)sizeof(block->name) - 1,
			 recorder->options.window.path);
}

static const char *cause_of(const struct ts_recorder *recorder)
{
	switch (recorder->options.window.kind) {
	case TS_WINDOW_FLAG:
		return "flag";
	case TS_WINDOW_TIME:
		return "time";
	default:
		return "start";
	}
}

static void set_cause(struct ts_target *target, const char *cause)
{
	snprintf(target->cause, sizeof(target->cause), "%s", cause);
}

/* Stores the OPEN block, then switches events on. If it cannot be stored, a later pass retries. */
static int open_target(struct ts_recorder *recorder, struct ts_target *target, const char *cause,
		       uint64_t counter, struct ts_error *err)
{
	struct ts_block_window block;
	int rc;

	target->wanted = true;
	if (target->open || target->implied || recorder->limited || !target->announced)
		return TS_OK;
	set_cause(target, cause);
	target->serial++;
	fill_block(recorder, target, counter, &block);
	block.action = TS_LIVE_WINDOW_OPEN;
	rc = ts_recorder_append(recorder, TS_BLOCK_WINDOW, target->area_id, &block, sizeof(block),
				err);
	if (rc) {
		target->serial--;
		return rc;
	}
	target->open = true;
	TS_TARGET_SET(target, window_serial, target->serial);
	TS_TARGET_SET(target, enabled, TS_LIVE_ENABLED);
	return TS_OK;
}

static void switch_off(struct ts_target *target)
{
	if (!target->dead && !target->superseded)
		TS_TARGET_SET(target, enabled, 0);
}

/*
 * `counter` 0: now, read after the switch, so that events from before it belong to the window. To
 * close several windows together, switch all of them off first.
 */
static void close_target(struct ts_recorder *recorder, struct ts_target *target, const char *cause,
			 uint64_t counter)
{
	target->wanted = false;
	if ((!target->open && !target->implied) || target->closing || target->is_self)
		return;
	switch_off(target);
	set_cause(target, cause);
	target->implied = false;
	target->closing = counter ? counter : ts_clocks_now(&recorder->clocks);
	target->closed_ns = recorder->now_ns;
	recorder->settling = true;
}

int ts_windows_settle(struct ts_recorder *recorder, struct ts_target *target, struct ts_error *err)
{
	struct ts_block_window block;
	int rc;

	if (!target->closing)
		return TS_OK;
	if (recorder->now_ns - target->closed_ns < SETTLE_NS && !recorder->finishing &&
	    recorder->options.window.kind != TS_WINDOW_TIME && !target->dead &&
	    !target->superseded) {
		recorder->settling = true;
		return TS_OK;
	}
	/* Samples taken so far precede the CLOSE block. */
	rc = ts_sampled_take(recorder, err);
	if (rc)
		return rc;
	fill_block(recorder, target, target->closing, &block);
	block.action = TS_LIVE_WINDOW_CLOSE;
	rc = ts_recorder_append(recorder, TS_BLOCK_WINDOW, target->area_id, &block, sizeof(block),
				err);
	if (rc)
		return rc;
	target->closing = 0;
	target->open = false;
	recorder->windows.moved = true;
	recorder->windows.settled_ns = recorder->now_ns;
	return TS_OK;
}

static uint64_t counter_of_end(const struct ts_recorder *recorder)
{
	const struct ts_window_spec *spec = &recorder->options.window;
	uint64_t counts = ts_clocks_counts(&recorder->clocks, spec->last);

	if (spec->kind != TS_WINDOW_TIME || spec->last == INT64_MAX)
		return 0;
	return recorder->started_counter + counts;
}

void ts_windows_stop(struct ts_recorder *recorder, struct ts_target *target, const char *cause)
{
	uint64_t end = counter_of_end(recorder);
	uint64_t now = ts_clocks_now(&recorder->clocks);

	if (target->open)
		close_target(recorder, target, cause, end && end < now ? end : 0);
	else if (target->of_session)
		switch_off(target);
}

/* ---- a new target ---- */

/* After a restart: the target may still have the window that the previous recorder opened. */
static int attach_known(struct ts_recorder *recorder, struct ts_target *target,
			struct ts_error *err)
{
	target->open = target->was_enabled;
	target->wanted = recorder->windows.open;
	set_cause(target, cause_of(recorder));
	if (target->open && !recorder->windows.open &&
	    recorder->options.window.kind != TS_WINDOW_COMMAND)
		close_target(recorder, target, target->cause, counter_of_end(recorder));
	else if (!target->open && recorder->windows.open)
		return open_target(recorder, target, target->cause,
				   recorder->windows.opened_counter, err);
	return TS_OK;
}

/* Excludes what a target stored before its first window. */
static int close_before(struct ts_recorder *recorder, struct ts_target *target,
			struct ts_error *err)
{
	struct ts_block_window block;

	if (!target->announced)
		return TS_OK;
	set_cause(target, "start");
	fill_block(recorder, target, 0, &block);
	block.action = TS_LIVE_WINDOW_CLOSE;
	return ts_recorder_append(recorder, TS_BLOCK_WINDOW, target->area_id, &block, sizeof(block),
				  err);
}

static int attach_switched(struct ts_recorder *recorder, struct ts_target *target, bool known,
			   struct ts_error *err)
{
	uint64_t opened = recorder->windows.opened_counter;
	int rc;

	if (known)
		return attach_known(recorder, target, err);
	if (!recorder->windows.open)
		TS_TARGET_SET(target, enabled, 0);
	/* It has stored no events until now. */
	else if (!target->was_enabled)
		opened = TS_MAX(opened, ts_clocks_now(&recorder->clocks));
	rc = close_before(recorder, target, err);
	if (!rc && recorder->windows.open)
		rc = open_target(recorder, target, cause_of(recorder), opened, err);
	return rc;
}

/*
 * A program that was started with these settings follows its steps from the first one, and may have
 * closed its window before the recorder sees it.
 */
static bool has_step_settings(const struct ts_recorder *recorder, const struct ts_target *target)
{
	const struct ts_live_control *control = ts_area_control(target->area);
	const struct ts_window_spec *spec = &recorder->options.window;

	return target->of_session && control->max_steps == recorder->options.max_steps &&
	       (spec->kind != TS_WINDOW_STEPS || control->step_close == spec->last);
}

int ts_windows_attach(struct ts_recorder *recorder, struct ts_target *target, bool known,
		      struct ts_error *err)
{
	const struct ts_window_spec *spec = &recorder->options.window;
	bool has_steps = has_step_settings(recorder, target);
	int rc = TS_OK;

	TS_TARGET_SET(target, max_steps, recorder->options.max_steps);
	if (spec->kind == TS_WINDOW_STEPS) {
		if (!has_steps) {
			TS_TARGET_SET(target, step_close, spec->last);
			TS_TARGET_SET(target, step_open, spec->first);
		}
		if (!target->of_session)
			TS_TARGET_SET(target, enabled, 0);
	} else if (spec->kind == TS_WINDOW_BACKEND) {
		/* Set in its environment; the target may already be inside a window. */
	} else if (spec->kind == TS_WINDOW_ALWAYS) {
		target->implied = true;
		/* A window that the target closed after max_steps stays closed. */
		if (!recorder->limited && !(recorder->options.max_steps && (known || has_steps)))
			TS_TARGET_SET(target, enabled, TS_LIVE_ENABLED);
	} else {
		rc = attach_switched(recorder, target, known, err);
	}
	if (recorder->limited)
		TS_TARGET_SET(target, enabled, 0);
	return rc == TS_ENOSPC ? TS_OK : rc;
}

/* ---- all targets ---- */

static int open_all(struct ts_recorder *recorder, uint64_t counter, struct ts_error *err)
{
	recorder->windows.open = true;
	recorder->windows.opened_counter = counter;
	for (size_t i = 0; i < recorder->target_count; i++) {
		int rc;

		if (recorder->targets[i]->dead || recorder->targets[i]->superseded)
			continue;
		rc = open_target(recorder, recorder->targets[i], cause_of(recorder), counter, err);
		if (rc && rc != TS_ENOSPC)
			return rc;
	}
	return TS_OK;
}

static void close_all(struct ts_recorder *recorder, uint64_t counter)
{
	recorder->windows.open = false;
	for (size_t i = 0; i < recorder->target_count; i++)
		if (recorder->targets[i]->open)
			switch_off(recorder->targets[i]);
	if (!counter)
		counter = ts_clocks_now(&recorder->clocks);
	for (size_t i = 0; i < recorder->target_count; i++)
		close_target(recorder, recorder->targets[i], cause_of(recorder), counter);
}

static int evaluate_flag(struct ts_recorder *recorder, struct ts_error *err)
{
	struct stat status;
	bool exists;

	if (recorder->now_ns < recorder->windows.look_ns)
		return TS_OK;
	recorder->windows.look_ns = recorder->now_ns + FLAG_LOOK_NS;
	exists = !lstat(recorder->options.window.path, &status);
	if (exists == recorder->windows.open)
		return TS_OK;
	if (exists)
		return open_all(recorder, ts_clocks_now(&recorder->clocks), err);
	close_all(recorder, 0);
	return TS_OK;
}

/* Start and end of a window by time; CLOCK_MONOTONIC. */
static int64_t time_of_start(const struct ts_recorder *recorder)
{
	int64_t at;

	if (__builtin_add_overflow(recorder->started_ns, recorder->options.window.first, &at))
		return INT64_MAX;
	return at;
}

static int64_t time_of_end(const struct ts_recorder *recorder)
{
	int64_t at;

	if (__builtin_add_overflow(recorder->started_ns, recorder->options.window.last, &at))
		return INT64_MAX;
	return at;
}

/*
 * The end of a window by time is known in advance, so its CLOSE precedes what is still in the
 * rings; the decoder drops what came too late.
 */
static int settle_all(struct ts_recorder *recorder, struct ts_error *err)
{
	for (size_t i = 0; i < recorder->target_count; i++) {
		int rc = ts_windows_settle(recorder, recorder->targets[i], err);

		if (rc && rc != TS_ENOSPC)
			return rc;
	}
	return TS_OK;
}

bool ts_windows_holds(const struct ts_recorder *recorder)
{
	int64_t left = time_of_end(recorder) - recorder->now_ns;

	return recorder->options.window.kind == TS_WINDOW_TIME && recorder->windows.open &&
	       left > 0 && left < HOLD_NS;
}

/* Events between the planned start of the window and now were not stored. */
static int report_late(struct ts_recorder *recorder, uint64_t planned, struct ts_error *err)
{
	for (size_t i = 0; i < recorder->target_count; i++) {
		const struct ts_target *target = recorder->targets[i];
		int rc;

		if (target->dead || target->superseded || target->is_self)
			continue;
		rc = ts_recorder_lose(recorder, target->area_id, target->pid, "events",
				      "the recorder was busy and opened the window late", planned,
				      err);
		if (rc && rc != TS_ENOSPC)
			return rc;
	}
	return TS_OK;
}

static int open_by_time(struct ts_recorder *recorder, struct ts_error *err)
{
	uint64_t planned = recorder->started_counter +
			   ts_clocks_counts(&recorder->clocks, recorder->options.window.first);
	uint64_t now = ts_clocks_now(&recorder->clocks);
	int rc = now > planned ? report_late(recorder, planned, err) : TS_OK;

	return rc ? rc : open_all(recorder, TS_MAX(planned, now), err);
}

static int evaluate_time(struct ts_recorder *recorder, struct ts_error *err)
{
	bool inside = recorder->now_ns >= time_of_start(recorder) - EARLY_NS &&
		      recorder->now_ns < time_of_end(recorder);

	if (inside == recorder->windows.open)
		return TS_OK;
	if (inside)
		return open_by_time(recorder, err);
	close_all(recorder, counter_of_end(recorder));
	return settle_all(recorder, err);
}

int ts_windows_evaluate(struct ts_recorder *recorder, struct ts_error *err)
{
	switch (recorder->options.window.kind) {
	case TS_WINDOW_FLAG:
		return evaluate_flag(recorder, err);
	case TS_WINDOW_TIME:
		return evaluate_time(recorder, err);
	default:
		return TS_OK;
	}
}

int64_t ts_windows_due(const struct ts_recorder *recorder)
{
	int64_t start;

	switch (recorder->options.window.kind) {
	case TS_WINDOW_FLAG:
		return recorder->windows.look_ns;
	case TS_WINDOW_TIME:
		if (recorder->windows.open)
			return time_of_end(recorder);
		start = time_of_start(recorder) - EARLY_NS;
		return start > recorder->now_ns ? start : INT64_MAX;
	default:
		return INT64_MAX;
	}
}

int ts_windows_serve(struct ts_recorder *recorder, struct ts_target *target, struct ts_error *err)
{
	const struct ts_live_control *control = ts_area_control(target->area);
	uint32_t request = control->window_request;
	int rc = TS_OK;

	if (request == TS_LIVE_WINDOW_OPEN)
		rc = open_target(recorder, target, "command", ts_clocks_now(&recorder->clocks),
				 err);
	else if (request == TS_LIVE_WINDOW_CLOSE)
		close_target(recorder, target, "command", 0);
	else if (target->wanted && !target->open && !target->closing)
		rc = open_target(recorder, target, cause_of(recorder),
				 ts_clocks_now(&recorder->clocks), err);
	if (rc)
		return rc;
	if (request) {
		TS_TARGET_SET(target, window_request, 0);
		TS_TARGET_SET(target, window_reply, control->window_reply + 1);
	}
	return TS_OK;
}
