/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the agent's settings from the environment: TRACESMITH_AGENT (set by a recorder for programs
 * it starts), TRACESMITH_OUT or FERRUM_TRACE_OUT (start a recorder), TRACESMITH_LIVE (only keep the
 * newest events).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <tracesmith/accelerator.h>

#include "agent/agent_python.h"
#include "agent/launch_stack.h"
#include "agent/tracer.h"
#include "base/local/macros.h"

#define ABSENT INT64_MIN
#define SNAPSHOT_LIMIT (UINT64_C(4) << 30)
#define WINDOW_TIMEOUT_NS INT64_C(10000000000)

/* ---- paths ---- */

/* "x.sbt" becomes "/current/dir/x.sbt"; *ret_base is the offset of the given path in it. */
static int make_absolute(const char *path, char *ret_path, size_t bytes, uint32_t *ret_base)
{
	size_t used = 0, length;

	ret_path[0] = 0;
	if (path[0] != '/') {
		if (!getcwd(ret_path, bytes - 1))
			return errno;
		used = strlen(ret_path);
		if (used == 0 || ret_path[used - 1] != '/')
			ret_path[used++] = '/';
		while (!strncmp(path, "./", 2))
			path += 2;
	}
	length = strlen(path);
	if (length >= bytes - used)
		return ENAMETOOLONG;
	memcpy(ret_path + used, path, length + 1);
	*ret_base = (uint32_t)used;
	return 0;
}

/*
 * "t" becomes "t.sbt", which the recorder writes then, so that all processes know the file by the
 * same name. What is too long, or a folder, is refused as it is.
 */
static void complete_name(char *path, size_t bytes)
{
	static const char *const endings[] = { ".sbt", ".json", ".folded" };
	size_t length = strlen(path);

	for (size_t i = 0; i < TS_ARRAY_SIZE(endings); i++) {
		size_t tail = strlen(endings[i]);

		if (length > tail && !strcmp(path + length - tail, endings[i]))
			return;
	}
	if (length && path[length - 1] != '/' && length + sizeof(".sbt") <= bytes)
		memcpy(path + length, ".sbt", sizeof(".sbt"));
}

bool agent_prepare_output(const char *path, char *ret_path, size_t bytes, uint32_t *ret_base,
			  char *ret_why)
{
	struct ts_path_values values = { 0 };
	char expanded[1024], number[16];
	struct ts_rank rank;
	int error;

	if (ts_rank_of_self(&rank)) {
		snprintf(number, sizeof(number), "%d", (int)rank.rank);
		values.rank = number;
	}
	if (!ts_path_expand(path, &values, expanded, sizeof(expanded), ret_why, TS_PATH_WHY_BYTES))
		return false;
	complete_name(expanded, sizeof(expanded));
	error = make_absolute(expanded, ret_path, bytes, ret_base);
	if (error)
		snprintf(ret_why, TS_PATH_WHY_BYTES, "%s", strerrordesc_np(error));
	return !error;
}

bool agent_output_path(const char *path, char *ret_path, size_t bytes, char *ret_why)
{
	const struct ts_path_values values = { .pid = getpid() };
	char absolute[1024];
	uint32_t base;

	if (!agent_prepare_output(path, absolute, sizeof(absolute), &base, ret_why))
		return false;
	if (base >= bytes) {
		snprintf(ret_why, TS_PATH_WHY_BYTES, "%s", strerrordesc_np(ENAMETOOLONG));
		return false;
	}
	memcpy(ret_path, absolute, base);
	return ts_path_expand(absolute + base, &values, ret_path + base, bytes - base, ret_why,
			      TS_PATH_WHY_BYTES);
}

/* Processes that write to the same file share a session, hence one recorder. FNV-1a. */
static uint64_t session_of(const char *output)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)getuid();

	for (; *output; output++)
		hash = (hash ^ (unsigned char)*output) * UINT64_C(0x100000001b3);
	return hash | 1;
}

/* Parses bytes: "33554432", "32M"; 0, the default, for anything else. */
static uint64_t parse_bytes(const char *text)
{
	static const char units[] = "KMG";
	char *end;
	uint64_t bytes = strtoull(text, &end, 10);
	char letter = (char)(*end & ~0x20); /* upper case */
	const char *unit = letter ? strchr(units, letter) : NULL;

	if (unit) {
		unsigned int shift = 10 * (unsigned int)(unit - units + 1);

		bytes = bytes < UINT64_MAX >> shift ? bytes << shift : 0;
		end++;
	}
	return *end && strcmp(end, "iB") != 0 && strcmp(end, "B") != 0 ? 0 : bytes;
}

/* ---- TRACESMITH_AGENT: key=value;key=value ---- */

/* Sets a replay setting; false: not one of these keys. */
static bool set_replay_key(struct ts_replay_settings *replay, const char *key, const char *value)
{
	if (!strcmp(key, "replayable"))
		replay->mode = value[0] == '1'   ? TS_REPLAY_PLAIN
			       : value[0] == '2' ? TS_REPLAY_CHECKED
						 : TS_REPLAY_OFF;
	else if (!strcmp(key, "from_start"))
		replay->from_start = value[0] != '0';
	else if (!strcmp(key, "snapshot_limit"))
		replay->snapshot_limit = strtoull(value, NULL, 10);
	else if (!strcmp(key, "window_timeout"))
		replay->window_timeout_ns = strtoll(value, NULL, 10);
	else if (!strcmp(key, "keep_contents"))
		replay->keep_contents = strtoull(value, NULL, 10);
	else
		return false;
	return true;
}

static void set_key(struct agent_settings *settings, const char *key, const char *value)
{
	if (set_replay_key(&settings->replay, key, value))
		return;
	if (!strcmp(key, "session"))
		settings->session = strtoull(value, NULL, 16);
	else if (!strcmp(key, "mode"))
		settings->mode = strcmp(value, "flight") ? TS_LIVE_STREAM : TS_LIVE_FLIGHT;
	else if (!strcmp(key, "enabled"))
		settings->enabled = value[0] != '0';
	else if (!strcmp(key, "redact"))
		settings->redact |= value[0] != '0';
	else if (!strcmp(key, "budget"))
		settings->budget = strtoull(value, NULL, 10);
	else if (!strcmp(key, "max_steps"))
		settings->max_steps = strtoll(value, NULL, 10);
	else if (!strcmp(key, "stacks"))
		settings->stacks = agent_stacks_parse(value);
	else if (!strcmp(key, "backends"))
		strncpy(settings->backends, value, sizeof(settings->backends) - 1);
	else if (!strcmp(key, "steps")) {
		char *dash;

		settings->step_open = strtoll(value, &dash, 10);
		settings->step_close = *dash == '-' ? strtoll(dash + 1, NULL, 10) : INT64_MAX;
	}
}

static void read_agent(struct agent_settings *settings, const char *text)
{
	char part[512];

	settings->mode = TS_LIVE_STREAM;
	settings->enabled = true;
	settings->replay.snapshot_limit = SNAPSHOT_LIMIT;
	settings->replay.window_timeout_ns = WINDOW_TIMEOUT_NS;
	while (*text) {
		size_t length = strcspn(text, ";");
		char *equals;

		if (length < sizeof(part)) {
			memcpy(part, text, length);
			part[length] = 0;
			equals = strchr(part, '=');
			if (equals) {
				*equals = 0;
				set_key(settings, part, equals + 1);
			}
		}
		text += length + (text[length] == ';');
	}
	settings->wanted = settings->session != 0;
}

/* ---- environment ---- */

static const char *output_variable(void)
{
	const char *output = getenv("TRACESMITH_OUT");

	if (!output || !output[0])
		output = getenv("FERRUM_TRACE_OUT");
	return output && output[0] ? output : NULL;
}

static void want_output(struct agent_settings *settings)
{
	settings->wanted = true;
	settings->enabled = true;
	settings->start_recorder = true;
	settings->mode = TS_LIVE_STREAM;
}

/* Settings common to all tracers. */
static void read_common(struct agent_settings *settings)
{
	const char *budget = getenv("TRACESMITH_BUDGET");
	const char *directory = getenv("TRACESMITH_LIVE_DIR");
	const char *redact = getenv("TRACESMITH_REDACT");
	uint32_t unused;

	memset(settings, 0, sizeof(*settings));
	settings->step_open = settings->step_close = ABSENT;
	ts_rank_of_self(&settings->rank);
	settings->redact = settings->always_redact = redact && redact[0] && redact[0] != '0';
	if (budget)
		settings->budget = parse_bytes(budget);
	if (directory && directory[0] &&
	    make_absolute(directory, settings->directory, sizeof(settings->directory), &unused))
		settings->has_no_directory = true;
}

/* The environment at load of the agent, or at the first request of a library loaded before it. */
static struct {
	uint32_t state; /* 0 not read, 1 being read, 2 known */
	struct agent_settings settings;
	char text[2048]; /* TRACESMITH_AGENT, for backends */
} remembered;

/*
 * Without a recorder that selects backends: takes from TRACESMITH_BACKENDS those that run in
 * programs and were preloaded.
 */
static void read_backends(struct agent_settings *settings, const char *list)
{
	while (list && *list) {
		size_t length = strcspn(list, ",");

		if (length == 4 && !memcmp(list, "cuda", 4)) {
			memcpy(settings->backends, "cuda", sizeof("cuda"));
			settings->stacks = agent_stacks_parse("all");
		}
		list += length + (list[length] == ',');
	}
}

/* An output that cannot be named is reported when the first event would go there. */
static void read_output(struct agent_settings *settings, const char *output)
{
	settings->makes_folders = ts_path_is_pattern(output);
	if (agent_prepare_output(output, settings->output, sizeof(settings->output),
				 &settings->output_base, settings->why_not))
		want_output(settings);
	else
		snprintf(settings->output, sizeof(settings->output), "%s", output);
}

static void read_environment(struct agent_settings *settings)
{
	const char *agent = getenv("TRACESMITH_AGENT"), *live = getenv("TRACESMITH_LIVE");
	const char *output = output_variable();

	read_common(settings);
	/* A setuid program must not be controlled by its user's environment. */
	if (getauxval(AT_SECURE))
		return;
	settings->python = agent_python_parse(getenv("TRACESMITH_PYTHON_STACKS"));
	if (agent && agent[0]) {
		snprintf(remembered.text, sizeof(remembered.text), "%s", agent);
		read_agent(settings, agent);
	} else if (output) {
		read_output(settings, output);
	} else if (live && live[0] && strcmp(live, "0") != 0) {
		settings->wanted = true;
		settings->enabled = true;
		settings->mode = TS_LIVE_FLIGHT;
	}
	if (settings->wanted && !settings->session)
		read_backends(settings, getenv("TRACESMITH_BACKENDS"));
}

static bool is_known(void)
{
	return __atomic_load_n(&remembered.state, __ATOMIC_ACQUIRE) == 2;
}

/* Runs once, with signals blocked, since a handler would wait for its own thread. */
static void remember(void)
{
	struct agent_signals saved;
	uint32_t none = 0;

	if (is_known())
		return;
	agent_block_signals(&saved);
	if (__atomic_compare_exchange_n(&remembered.state, &none, 1, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE)) {
		read_environment(&remembered.settings);
		agent_python_requested = remembered.settings.python;
		agent_stacks_requested = remembered.settings.stacks;
		__atomic_store_n(&remembered.state, 2, __ATOMIC_RELEASE);
	}
	for (unsigned int spins = 0; !is_known(); spins++)
		agent_relax(spins);
	agent_restore_signals(&saved);
}

bool agent_settings_remember(bool *ret_at_once)
{
	const struct agent_settings *settings = &remembered.settings;

	remember();
	/* A backend must start before the library that it watches. */
	*ret_at_once = (settings->session && !settings->start_recorder) || settings->backends[0];
	/* The first event says why there is nothing to record. */
	return settings->wanted || settings->why_not[0];
}

void agent_settings_host(uint64_t session, uint32_t ring_bytes, bool redact)
{
	struct agent_settings *settings = &remembered.settings;

	read_common(settings);
	settings->session = session;
	settings->ring_bytes = ring_bytes;
	settings->redact |= redact;
	settings->wanted = settings->enabled = true;
	settings->mode = TS_LIVE_STREAM;
	settings->role = TS_LIVE_RECORDER;
	__atomic_store_n(&remembered.state, 2, __ATOMIC_RELEASE);
}

const struct ts_replay_settings *ts_replay_settings(void)
{
	static const struct ts_replay_settings off;

	if (!agent_settings_are_known())
		return &off;
	remember();
	return &remembered.settings.replay;
}

const char *ts_accelerator_setting(const char *key)
{
	static __thread char value[256] __attribute__((tls_model("initial-exec")));
	size_t length = strlen(key);
	const char *at;

	if (!agent_settings_are_known())
		return NULL;
	remember();
	for (at = remembered.text; *at; at += strcspn(at, ";"), at += *at == ';') {
		if (strncmp(at, key, length) != 0 || at[length] != '=')
			continue;
		at += length + 1;
		length = strcspn(at, ";");
		if (length >= sizeof(value))
			return NULL;
		memcpy(value, at, length);
		value[length] = 0;
		return value;
	}
	return NULL;
}

/* Explicitly created tracers do not inherit settings requested for the process-wide one. */
static void forget_session(struct agent_settings *settings)
{
	settings->step_open = settings->step_close = ABSENT;
	settings->max_steps = 0;
	settings->redact = settings->always_redact;
	settings->backends[0] = 0;
	settings->python = settings->stacks = 0;
	memset(&settings->replay, 0, sizeof(settings->replay));
}

/* One of two, so that a child that is forked meanwhile finds a complete one. */
static struct agent_settings run_time_settings[2];
static const struct agent_settings *run_time; /* atomic; NULL: the environment's */

void agent_settings_set(const struct agent_settings *settings)
{
	struct agent_settings *free_one = &run_time_settings[run_time == &run_time_settings[0]];

	if (settings)
		*free_one = *settings;
	__atomic_store_n(&run_time, settings ? free_one : NULL, __ATOMIC_RELEASE);
}

void agent_settings_common(struct agent_settings *settings)
{
	remember();
	*settings = remembered.settings;
	forget_session(settings);
	settings->wanted = settings->enabled = settings->start_recorder = false;
	settings->session = 0;
	settings->mode = TS_LIVE_FLIGHT;
	settings->output[0] = 0;
}

bool agent_settings_are_known(void)
{
	return is_known() || environ;
}

void agent_settings_read(struct agent_settings *settings, const struct ts_tracer *tracer)
{
	const struct ts_path_values values = { .pid = getpid() };
	const char *output = tracer->output;
	uint32_t base = tracer->output_base;

	const struct agent_settings *at_run_time = __atomic_load_n(&run_time, __ATOMIC_ACQUIRE);

	remember();
	if (at_run_time && !tracer->by_hand) {
		*settings = *at_run_time;
		return;
	}
	*settings = remembered.settings;
	if (tracer->by_hand) {
		forget_session(settings);
		want_output(settings);
		settings->makes_folders = tracer->makes_folders;
		settings->why_not[0] = 0;
	} else {
		output = remembered.settings.output;
		base = settings->output_base;
	}
	if (!settings->start_recorder)
		return;
	memcpy(settings->output, output, base);
	settings->wanted = ts_path_expand(output + base, &values, settings->output + base,
					  sizeof(settings->output) - base, settings->why_not,
					  sizeof(settings->why_not));
	settings->session = session_of(settings->output);
}
