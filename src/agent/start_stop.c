/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts and stops the process-wide tracer at run time (docs/live.md, section 4.6). The process
 * keeps one area: rings and registered call sites stay valid, and only the words that say who
 * records what change, while no recorder has the area.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "agent/tracer.h"
#include "base/local/path_pattern.h"

static uint32_t lock; /* held with all signals blocked */
/* This process has started its tracer, not the environment or its parent. */
static bool is_started;

static void take_lock(struct agent_signals *saved)
{
	agent_block_signals(saved);
	for (unsigned int spins = 0; __atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE); spins++)
		agent_relax(spins);
}

static void release_lock(const struct agent_signals *saved)
{
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
	agent_restore_signals(saved);
}

void agent_forget_starts(void)
{
	lock = 0;
	is_started = false;
}

#define HAS(options, member) \
	((options)->size >= offsetof(struct ts_start_options, member) + sizeof((options)->member))

/* 0, or an errno. */
static int read_options(const struct ts_start_options *options, struct agent_settings *settings,
			char *output, size_t bytes)
{
	bool has_output = options && HAS(options, output) && options->output;
	char why[TS_PATH_WHY_BYTES];

	agent_settings_common(settings);
	output[0] = 0;
	if (options && HAS(options, why_bytes) && options->ret_why && options->why_bytes)
		options->ret_why[0] = 0;
	settings->wanted = settings->enabled = true;
	if (options && HAS(options, flags))
		settings->redact |= (options->flags & TS_START_REDACT) != 0;
	if (options && HAS(options, budget) && options->budget)
		settings->budget = options->budget;
	if (options && HAS(options, backends) && options->backends)
		strncpy(settings->backends, options->backends, sizeof(settings->backends) - 1);
	if (!has_output)
		return 0;
	settings->mode = TS_LIVE_STREAM;
	settings->session = agent_draw_id();
	settings->makes_folders = ts_path_is_pattern(options->output);
	if (!options->output[0])
		snprintf(why, sizeof(why), "the path is empty");
	else if (options->output[strlen(options->output) - 1] == '/')
		snprintf(why, sizeof(why), "the path ends with '/': it needs the name of a file");
	else if (agent_output_path(options->output, output, bytes, why))
		return 0;
	if (HAS(options, why_bytes) && options->ret_why && options->why_bytes)
		snprintf(options->ret_why, options->why_bytes, "%s", why);
	return EINVAL;
}

static bool is_running(const struct ts_live_control *control)
{
	return control->target_state == TS_LIVE_RUNNING;
}

/* Stores what belongs to the new recording; no recorder has the area. */
static void arm(struct core *core, const struct agent_settings *settings, const char *output)
{
	struct ts_live_control *control = core->control;

	/* What flight mode keeps is the beginning of the recording. */
	if (!is_running(control) || control->mode != TS_LIVE_FLIGHT)
		control->since = ts_counter_read(control->clock);
	agent_set_budget(core, settings->budget);
	core->settings.makes_folders = settings->makes_folders;
	control->redact = settings->redact;
	control->flush_done = control->flush_request;
	control->recorder_pid = 0;
	control->heartbeat = 0;
	control->notice[0] = 0;
	core->recorder = 0;
	memset(control->output, 0, sizeof(control->output));
	memcpy(control->output, output, strlen(output));
	memcpy(core->settings.output, control->output, sizeof(core->settings.output));
	__atomic_store_n(&control->mode, settings->mode, __ATOMIC_RELAXED);
	__atomic_store_n(&control->session, settings->session, __ATOMIC_RELEASE);
	__atomic_store_n(&control->target_state, TS_LIVE_RUNNING, __ATOMIC_RELEASE);
	__atomic_store_n(&control->enabled, TS_LIVE_ENABLED, __ATOMIC_RELEASE);
	agent_set_switch(core);
}

static void disarm(struct core *core)
{
	struct ts_live_control *control = core->control;

	agent_settings_set(NULL);
	is_started = false;
	__atomic_store_n(&control->enabled, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&control->target_state, TS_LIVE_STOPPED, __ATOMIC_RELEASE);
}

/* No recorder has it any more. */
static void detach(struct core *core)
{
	struct ts_live_control *control = core->control;

	/* A recorder that attached at the last moment has switched events on. */
	__atomic_store_n(&control->enabled, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&control->mode, TS_LIVE_FLIGHT, __ATOMIC_RELAXED);
	__atomic_store_n(&control->session, 0, __ATOMIC_RELEASE);
	memset(control->output, 0, sizeof(control->output));
	control->recorder_pid = 0;
	control->heartbeat = 0;
	core->recorder = 0;
}

static bool is_busy(const struct core *core)
{
	const struct ts_live_control *control = core->control;

	return (control->session && is_running(control)) || agent_recorder_lives(core);
}

static int start_recorder(struct core *core, const char *output)
{
	int error = agent_start_recorder(core, output, false);

	/* It would not look for this session. */
	return !error && core->relies_on_other ? ETXTBSY : error;
}

static int start_locked(const struct agent_settings *settings, const char *output)
{
	struct core *core = __atomic_load_n(&ts_process_tracer.core, __ATOMIC_ACQUIRE);
	uint32_t state = core ? __atomic_load_n(&core->state, __ATOMIC_ACQUIRE) : CORE_NEW;
	bool is_first;
	int error;

	/* A tracer that the environment requests starts first, with its settings. */
	if (state == CORE_NEW || state == CORE_BUSY) {
		core = agent_start(&ts_process_tracer);
		state = core ? CORE_READY : CORE_OFF;
	}
	is_first = state != CORE_READY;
	if (!is_first && is_busy(core))
		return EBUSY;
	agent_settings_set(settings);
	if (is_first)
		core = agent_start_again(&ts_process_tracer, &error);
	if (!core) {
		agent_settings_set(NULL);
		return error;
	}
	arm(core, settings, output);
	error = output[0] ? start_recorder(core, output) : 0;
	if (error) {
		disarm(core);
		detach(core);
		return error;
	}
	is_started = true;
	if (!is_first)
		agent_add_backends(settings->backends);
	return 0;
}

int ts_start(const struct ts_start_options *options)
{
	struct agent_settings settings;
	struct agent_signals saved;
	char output[1024];
	int error;

	if (getauxval(AT_SECURE))
		return -EPERM;
	if (!agent_settings_are_known())
		return -EAGAIN;
	error = read_options(options, &settings, output, sizeof(output));
	if (error)
		return -error;
	take_lock(&saved);
	error = start_locked(&settings, output);
	release_lock(&saved);
	return -error;
}

static void copy_notice(const struct ts_live_control *control, char *ret_notice, size_t bytes)
{
	if (ret_notice && bytes)
		snprintf(ret_notice, bytes, "%.*s", (int)sizeof(control->notice), control->notice);
}

int ts_stop(char *ret_notice, size_t bytes)
{
	struct agent_signals saved;
	struct core *core;
	int error = 0;

	if (ret_notice && bytes)
		ret_notice[0] = 0;
	/* While events are still stored: what a device has done reports late. */
	if (__atomic_load_n(&is_started, __ATOMIC_RELAXED))
		agent_pause_backends();
	take_lock(&saved);
	core = is_started ? ts_process_tracer.core : NULL;
	if (core)
		disarm(core);
	release_lock(&saved);
	if (!core)
		return -ESRCH;
	/* Without the lock, and open to signals: writing the file may take a while. */
	if (core->control->session)
		error = agent_wait_for_end(core);
	copy_notice(core->control, ret_notice, bytes);
	if (error == ETIMEDOUT)
		return -error;
	take_lock(&saved);
	if (core->control->target_state == TS_LIVE_STOPPED)
		detach(core);
	release_lock(&saved);
	return -error;
}

int ts_start_output(char *ret_path, size_t bytes)
{
	const struct core *core = ts_process_tracer.core;
	struct agent_signals saved;
	int length = 0;

	take_lock(&saved);
	if (is_started && core->control->output[0])
		length = snprintf(ret_path, bytes, "%s", core->control->output);
	release_lock(&saved);
	if (!length)
		return -ESRCH;
	return (size_t)length < bytes ? 0 : -ENOSPC;
}

int ts_start_environment(char *ret_text, size_t bytes)
{
	const struct core *core = ts_process_tracer.core;
	struct agent_signals saved;
	int length = 0;

	take_lock(&saved);
	if (is_started && core->control->session)
		length = snprintf(ret_text, bytes, "session=%llx;redact=%u",
				  (unsigned long long)core->control->session,
				  core->control->redact);
	release_lock(&saved);
	if (!length)
		return -ESRCH;
	return (size_t)length < bytes ? 0 : -ENOSPC;
}
