/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A third-party backend: copy this file to write your own. It records calls of nanosleep() and
 * clock_nanosleep(), and uses every field of struct ts_backend except `metrics` (see mydevice.c).
 *
 *	cc -shared -fPIC $(pkg-config --cflags tracesmith-emit) \
 *	   -o libtracesmith-backend-sleeps.so sleeps.c
 *	export LD_LIBRARY_PATH=.
 *	tracesmith doctor sleeps
 *	tracesmith record --backends sleeps --help
 *	tracesmith record --backends sleeps --sleeps-at-least 5 -o t.sbt -- sleep 0.1
 *	tracesmith record --backends sleeps --window sleeps:3 -o t.sbt -- ./program
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tracesmith/accelerator.h>
#include <tracesmith/backend.h>
#include <tracesmith/emit.h>

#define PUBLIC __attribute__((visibility("default")))

/* ---- in the target ---- */

static int is_started;
static long long shortest_ms;  /* shorter ones are not recorded */
static unsigned int window_at; /* the window opens before this sleep; 0: no such window */
static unsigned int count;

/* Settings come from the options of `tracesmith record`. */
static int start(void)
{
	const char *shortest = ts_accelerator_setting("sleeps_at_least_ms");
	const char *window = ts_accelerator_setting("window");

	shortest_ms = shortest ? strtoll(shortest, NULL, 10) : 0;
	if (window && !strncmp(window, "sleeps:", strlen("sleeps:")))
		window_at = (unsigned int)strtoul(window + strlen("sleeps:"), NULL, 10);
	__atomic_store_n(&is_started, 1, __ATOMIC_RELEASE);
	return 0;
}

/* A fact is a row of the table `meta`; the summary below reads it back. */
static void stop(void)
{
	char json[64];

	snprintf(json, sizeof(json), "{\"count\": %u}", __atomic_load_n(&count, __ATOMIC_RELAXED));
	ts_accelerator_fact("sleeps", json);
}

static long long milliseconds_of(const struct timespec *time)
{
	return time->tv_sec * 1000ll + time->tv_nsec / 1000000;
}

/* Name and category of an event are string literals: one call site each. */
static void before_sleep(long long milliseconds)
{
	if (!__atomic_load_n(&is_started, __ATOMIC_ACQUIRE) || milliseconds < shortest_ms)
		return;
	if (__atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) == window_at)
		ts_accelerator_window("sleeps", true);
	TS_INSTANT("sleep", "sleeps", TS_INT("requested_ms", milliseconds));
}

PUBLIC int nanosleep(const struct timespec *time, struct timespec *remaining)
{
	static int (*next)(const struct timespec *, struct timespec *);

	if (!next)
		next = (int (*)(const struct timespec *, struct timespec *))dlsym(RTLD_NEXT,
										  "nanosleep");
	before_sleep(milliseconds_of(time));
	return next(time, remaining);
}

PUBLIC int clock_nanosleep(clockid_t clock_id, int flags, const struct timespec *req,
			   struct timespec *rem)
{
	static int (*next)(clockid_t, int, const struct timespec *, struct timespec *);
	struct timespec now = { 0, 0 };

	if (!next)
		next = (int (*)(clockid_t, int, const struct timespec *, struct timespec *))dlsym(
			RTLD_NEXT, "clock_nanosleep");
	if (flags & TIMER_ABSTIME)
		clock_gettime(clock_id, &now);
	before_sleep(milliseconds_of(req) - milliseconds_of(&now));
	return next(clock_id, flags, req, rem);
}

/* ---- in the tool ---- */

/* This library is preloaded before libc, whose functions it wraps. */
static const char *const preload[] = { "libtracesmith-backend-sleeps.so", NULL };

static const struct ts_backend_variable environment[] = {
	{ "SLEEPS_RECORDED", TS_BACKEND_TEXT, TS_BACKEND_KEEP, "1" },
	{ 0 },
};

static int parse_milliseconds(const char *text, char *ret_value, size_t bytes, char *why,
			      size_t why_bytes)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (end == text || *end || value < 0) {
		snprintf(why, why_bytes, "'%s' is not a number of milliseconds", text);
		return 1;
	}
	snprintf(ret_value, bytes, "%ld", value);
	return 0;
}

static const struct ts_backend_option options[] = {
	{
		.name = "sleeps-at-least",
		.type = TS_BACKEND_OPTION_VALUE,
		.value = "MS",
		.help = "record only sleeps of at least MS milliseconds; default: 1",
		.setting = "sleeps_at_least_ms",
		.default_value = "1",
		.parse = parse_milliseconds,
	},
	{ 0 },
};

static int check_number(const char *argument, char *why, size_t why_bytes)
{
	if (strtol(argument, NULL, 10) > 0)
		return 0;
	snprintf(why, why_bytes, "sleeps: needs a number from 1 on, as in sleeps:3");
	return 1;
}

static const struct ts_backend_window windows[] = {
	{
		.name = "sleeps",
		.argument = "N",
		.help = "from the N-th sleep on",
		.check = check_number,
		.never_opened = "no process slept that often",
	},
	{ 0 },
};

/* Actually tries it. SLEEPS_BROKEN is for the tests of this example. */
static void check_clock(struct ts_finding *ret_finding)
{
	const struct timespec time = { .tv_nsec = 1000 };

	if (getenv("SLEEPS_BROKEN") || clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL)) {
		ret_finding->state = TS_CHECK_NO;
		snprintf(ret_finding->text, sizeof(ret_finding->text), "nothing sleeps here");
		snprintf(ret_finding->fix, sizeof(ret_finding->fix), "unset SLEEPS_BROKEN");
		return;
	}
	ret_finding->state = TS_CHECK_YES;
	snprintf(ret_finding->text, sizeof(ret_finding->text), "CLOCK_MONOTONIC");
}

static const struct ts_backend_check checks[] = {
	{ "sleeps_clock", "sleeping", check_clock, NULL, NULL },
	{ 0 },
};

static void add_count(void *user, const char *json)
{
	const char *number = strchr(json, ':');

	*(unsigned long *)user += number ? strtoul(number + 1, NULL, 10) : 0;
}

/* Recorded and observed sleeps: they differ if a window was open only for a while. */
static void summarize(const struct ts_backend_recording *recording)
{
	unsigned long seen = 0;
	char text[128];

	recording->facts(recording->context, "sleeps", add_count, &seen);
	snprintf(text, sizeof(text), "sleeps: %lu of at least %s ms", seen,
		 recording->setting(recording->context, "sleeps_at_least_ms"));
	recording->note(recording->context, text);
	snprintf(text, sizeof(text), "%lu", seen);
	recording->json(recording->context, "sleeps", text);
}

/* The symbol that the loader looks up. */
PUBLIC extern const struct ts_backend ts_backend;

const struct ts_backend ts_backend = {
	.abi = TS_BACKEND_ABI,
	.size = sizeof(ts_backend),
	.name = "sleeps",
	.summary = "calls of nanosleep() and clock_nanosleep()",
	.start = start,
	.stop = stop,
	.preload = preload,
	.environment = environment,
	.options = options,
	.windows = windows,
	.checks = checks,
	.summarize = summarize,
};
