/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler's threads: which sources are asked and how often, and sources that hang, fail or are
 * broken.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/process.h"
#include "sample/metrics/metric_sources.h"
#include "sample/metrics/metrics_sampler.h"
#include "unit/runner.h"

#define MS INT64_C(1000000)

/* Rows so far. */
struct seen {
	pthread_mutex_t lock;
	unsigned int system, process, device_rows, devices, messages;
	uint32_t device;
	int32_t pid;
	char message[256];
};

static void on_device(void *context, const struct ts_metrics_device *device)
{
	struct seen *seen = context;

	pthread_mutex_lock(&seen->lock);
	seen->devices++;
	seen->device = device->number;
	pthread_mutex_unlock(&seen->lock);
}

static void on_row(void *context, const struct ts_metrics_subject *subject, const char *name,
		   const struct ts_emit_arg *values, unsigned int count)
{
	struct seen *seen = context;

	(void)name, (void)values, (void)count;
	pthread_mutex_lock(&seen->lock);
	seen->system += subject->kind == TS_METRICS_SYSTEM;
	seen->process += subject->kind == TS_METRICS_PROCESS;
	seen->device_rows += subject->kind == TS_METRICS_DEVICE;
	if (subject->kind == TS_METRICS_PROCESS)
		seen->pid = subject->pid;
	pthread_mutex_unlock(&seen->lock);
}

static void on_message(void *context, const char *source, const char *text)
{
	struct seen *seen = context;

	pthread_mutex_lock(&seen->lock);
	seen->messages++;
	snprintf(seen->message, sizeof(seen->message), "%s: %s", source, text);
	pthread_mutex_unlock(&seen->lock);
}

static unsigned int look(struct seen *seen, const unsigned int *counter)
{
	unsigned int value;

	pthread_mutex_lock(&seen->lock);
	value = *counter;
	pthread_mutex_unlock(&seen->lock);
	return value;
}

static void nap(void)
{
	const struct timespec pause = { .tv_nsec = MS };

	nanosleep(&pause, NULL);
}

/* Waits for at most a minute. */
static bool reaches(struct seen *seen, const unsigned int *counter, unsigned int count)
{
	for (int i = 0; i < 60000; i++) {
		if (look(seen, counter) >= count)
			return true;
		nap();
	}
	return false;
}

static bool grows(struct seen *seen, const unsigned int *counter, unsigned int by)
{
	return reaches(seen, counter, look(seen, counter) + by);
}

/* Waits until a counter no longer grows: a sample may be in progress. */
static bool rests(struct seen *seen, const unsigned int *counter)
{
	for (int i = 0; i < 500; i++) {
		unsigned int before = look(seen, counter);

		for (int k = 0; k < 20; k++)
			nap();
		if (look(seen, counter) == before)
			return true;
	}
	return false;
}

/* The backend `slow` is already in the process, so dlopen() finds it by its name. */
static volatile char *slow_mode;
static volatile int *slow_closed;

static void load_slow(void)
{
	const char *build = getenv("TS_BUILD");
	char path[1024];
	void *library;

	snprintf(path, sizeof(path), "%s/tests/backends/libtracesmith-backend-slow.so",
		 build ? build : ".");
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	TS_CHECK(library != NULL);
	slow_mode = dlsym(library, "slow_mode");
	slow_closed = dlsym(library, "slow_closed");
	TS_CHECK(slow_mode && slow_closed);
}

static void set_mode(const char *mode)
{
	for (size_t i = 0; i <= strlen(mode); i++)
		slow_mode[i] = mode[i];
}

#define CONSUMER(seen)                                                                       \
	{                                                                                    \
		.context = (seen), .device = on_device, .row = on_row, .message = on_message \
	}
#define SEEN                                      \
	{                                         \
		.lock = PTHREAD_MUTEX_INITIALIZER \
	}

TS_TEST(the_machine_is_sampled_and_pauses)
{
	struct seen seen = SEEN;
	const struct ts_metrics_consumer consumer = CONSUMER(&seen);
	struct ts_metrics_sampler *sampler = NULL;

	TS_CHECK_INT(ts_metrics_sampler_open(&sampler, "host", &consumer, NULL), TS_OK);
	TS_CHECK_INT(look(&seen, &seen.system), 0);
	ts_metrics_sampler_set_interval(sampler, MS);
	TS_CHECK(grows(&seen, &seen.system, 20));
	ts_metrics_sampler_set_interval(sampler, 0);
	TS_CHECK(rests(&seen, &seen.system));
	ts_metrics_sampler_set_interval(sampler, MS);
	TS_CHECK(grows(&seen, &seen.system, 10));
	ts_metrics_sampler_close(sampler);
	TS_CHECK_INT(seen.process, 0);
	TS_CHECK_INT(seen.devices, 0);
}

TS_TEST(processes_come_and_go)
{
	struct seen seen = SEEN;
	const struct ts_metrics_consumer consumer = CONSUMER(&seen);
	struct ts_metrics_sampler *sampler = NULL;
	struct ts_sampled_process process = { .interval_ns = MS };

	TS_CHECK_INT(ts_metrics_sampler_open(&sampler, "host", &consumer, NULL), TS_OK);
	process.pid = fork();
	if (!process.pid)
		for (;;)
			pause();
	process.start_time = ts_process_start_time(process.pid);
	TS_CHECK_INT(ts_metrics_sampler_set_processes(sampler, &process, 1, NULL), TS_OK);
	TS_CHECK(grows(&seen, &seen.process, 10));
	TS_CHECK_INT(seen.pid, process.pid);
	/* It exits while it is sampled. */
	kill(process.pid, SIGKILL);
	waitpid(process.pid, NULL, 0);
	TS_CHECK(rests(&seen, &seen.process));
	/* One that never existed. */
	TS_CHECK_INT(ts_metrics_sampler_set_processes(sampler, &process, 1, NULL), TS_OK);
	process = (struct ts_sampled_process){ .pid = getpid(),
					       .start_time = ts_process_start_time(getpid()),
					       .interval_ns = MS };
	TS_CHECK_INT(ts_metrics_sampler_set_processes(sampler, &process, 1, NULL), TS_OK);
	TS_CHECK(grows(&seen, &seen.process, 10));
	TS_CHECK_INT(seen.pid, getpid());
	TS_CHECK_INT(ts_metrics_sampler_set_processes(sampler, NULL, 0, NULL), TS_OK);
	ts_metrics_sampler_close(sampler);
	TS_CHECK_INT(seen.system, 0);
}

TS_TEST(a_source_of_others_is_sampled)
{
	struct seen seen = SEEN;
	const struct ts_metrics_consumer consumer = CONSUMER(&seen);
	struct ts_metrics_sampler *sampler = NULL;

	load_slow();
	set_mode("ready");
	TS_CHECK_INT(ts_metrics_sampler_open(&sampler, "slow", &consumer, NULL), TS_OK);
	ts_metrics_sampler_set_interval(sampler, MS);
	TS_CHECK(grows(&seen, &seen.device_rows, 10));
	ts_metrics_sampler_close(sampler);
	/* A thread that does not end soon enough closes it later. */
	for (int i = 0; i < 60000 && !*slow_closed; i++)
		nap();
	TS_CHECK_INT(*slow_closed, 1);
	TS_CHECK_INT(seen.devices, 1);
	TS_CHECK_INT(ts_metrics_device_number(seen.device), 3);
	TS_CHECK_INT(seen.system, 0);
}

TS_TEST(one_that_hangs_delays_nobody)
{
	static struct seen seen = SEEN; /* it may return after the test */
	static const struct ts_metrics_consumer consumer = CONSUMER(&seen);
	struct ts_metrics_sampler *sampler = NULL;

	load_slow();
	set_mode("hang");
	TS_CHECK_INT(ts_metrics_sampler_open(&sampler, "host,slow", &consumer, NULL), TS_OK);
	ts_metrics_sampler_set_interval(sampler, MS);
	TS_CHECK(grows(&seen, &seen.system, 50));
	TS_CHECK_INT(look(&seen, &seen.device_rows), 0);
	/* Nor does it prevent closing the sampler. */
	ts_metrics_sampler_close(sampler);
	set_mode("hang-open");
	TS_CHECK_INT(ts_metrics_sampler_open(&sampler, "slow,host", &consumer, NULL), TS_OK);
	ts_metrics_sampler_set_interval(sampler, MS);
	TS_CHECK(grows(&seen, &seen.system, 50));
	ts_metrics_sampler_close(sampler);
	/* Abandoned threads end, and free what is theirs. */
	set_mode("ready");
	for (int i = 0; i < 50; i++)
		nap();
	TS_CHECK_INT(look(&seen, &seen.device_rows), 0);
}

TS_TEST(what_is_broken_says_so)
{
	struct seen seen = SEEN;
	const struct ts_metrics_consumer consumer = CONSUMER(&seen);
	struct ts_metrics_sampler *sampler = NULL;

	load_slow();
	set_mode("broken");
	TS_CHECK_INT(ts_metrics_sampler_open(&sampler, "slow", &consumer, NULL), TS_OK);
	TS_CHECK(reaches(&seen, &seen.messages, 1));
	TS_CHECK_STR(seen.message, "slow: its door is locked: unlock it");
	ts_metrics_sampler_close(sampler);
	set_mode("fail");
	TS_CHECK_INT(ts_metrics_sampler_open(&sampler, "slow", &consumer, NULL), TS_OK);
	ts_metrics_sampler_set_interval(sampler, MS);
	TS_CHECK(reaches(&seen, &seen.messages, 2));
	TS_CHECK_STR(seen.message, "slow: it fell off the bus: restart the machine");
	ts_metrics_sampler_close(sampler);
	set_mode("none");
	TS_CHECK_INT(ts_metrics_sampler_open(&sampler, "slow", &consumer, NULL), TS_OK);
	ts_metrics_sampler_close(sampler);
	TS_CHECK_INT(seen.messages, 2);
}

TS_TEST(names_are_checked)
{
	struct seen seen = SEEN;
	const struct ts_metrics_consumer consumer = CONSUMER(&seen);
	struct ts_metrics_sampler *sampler = NULL;
	struct ts_error err;

	TS_CHECK_INT(ts_metrics_sampler_open(&sampler, "host,nosuchthing", &consumer, &err),
		     TS_ENOTFOUND);
	TS_CHECK(strstr(err.message, "nosuchthing") != NULL);
	TS_CHECK_INT(ts_metrics_sampler_open(&sampler, "../slow", &consumer, &err), TS_ENOTFOUND);
	TS_CHECK(sampler == NULL);
}
