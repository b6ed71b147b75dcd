/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler with real Pythons: which processes are found, what is delivered, and when nothing is.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/process.h"
#include "sample/python/python_sampler.h"
#include "unit/runner.h"

#define INTERVAL_NS INT64_C(5000000)

/* ---- programs ---- */

struct program {
	pid_t pid;
	int out; /* its standard output */
};

static void require_python(void)
{
	if (system("python3 -c 'import threading' >/dev/null 2>&1"))
		ts_test_skip("there is no python3");
}

static struct program start(const char *const *argv)
{
	struct program program;
	int pipes[2];

	TS_CHECK(!pipe(pipes));
	program.pid = fork();
	TS_CHECK(program.pid >= 0);
	if (!program.pid) {
		dup2(pipes[1], STDOUT_FILENO);
		close(pipes[0]);
		close(pipes[1]);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	close(pipes[1]);
	program.out = pipes[0];
	return program;
}

static struct program start_python(const char *script)
{
	const char *argv[] = { "python3", "-u", "-c", script, NULL };

	return start(argv);
}

/* Waits until it has written a line. */
static void await_line(const struct program *program)
{
	char c = 0;

	while (c != '\n')
		TS_CHECK_INT(read(program->out, &c, 1), 1);
}

static void end(struct program *program)
{
	kill(program->pid, SIGKILL);
	waitpid(program->pid, NULL, 0);
	close(program->out);
}

/* ---- delivered samples ---- */

#define SEEN 64

struct seen_thread {
	pid_t pid, tid;
	char name[64];
	uint32_t slot;
	unsigned int samples;
	int64_t time_ns;
	/* As a consumer reconstructs them: outermost first, by `same`. */
	const void *frames[256];
	int32_t lines[256];
};

struct seen {
	pthread_mutex_t lock;
	struct seen_thread threads[SEEN];
	size_t count;
	unsigned int samples, closed, messages, counters;
	unsigned int wrong;   /* samples that contradict themselves */
	char functions[4096]; /* all names seen, each between blanks */
	char triggers[2048];
	char counter_names[2048];
	char message[256];
	char locals[256];
};

static struct seen seen;

static void note(char *list, size_t bytes, const char *word)
{
	char text[256];

	snprintf(text, sizeof(text), " %s;", word);
	if (!strstr(list, text))
		strncat(list, text, bytes - strlen(list) - 1);
}

static bool has(const char *list, const char *word)
{
	char text[256];
	bool found;

	snprintf(text, sizeof(text), " %s;", word);
	pthread_mutex_lock(&seen.lock);
	found = strstr(list, text) != NULL;
	pthread_mutex_unlock(&seen.lock);
	return found;
}

static struct seen_thread *find_thread(pid_t tid)
{
	for (size_t i = 0; i < seen.count; i++)
		if (seen.threads[i].tid == tid)
			return &seen.threads[i];
	TS_CHECK(seen.count < SEEN);
	seen.threads[seen.count] = (struct seen_thread){ .tid = tid };
	return &seen.threads[seen.count++];
}

/* Checks `same` against all frames. */
static void check_frames(struct seen_thread *thread, const struct ts_python_sample *sample)
{
	uint32_t count = sample->count;

	if (count > 256 || sample->same > count) {
		seen.wrong++;
		return;
	}
	for (uint32_t i = sample->same; i < count; i++) {
		thread->frames[i] = sample->frames[count - 1 - i].python;
		thread->lines[i] = sample->frames[count - 1 - i].line;
	}
	for (uint32_t i = 0; i < count; i++)
		seen.wrong += thread->frames[i] != sample->frames[count - 1 - i].python ||
			      thread->lines[i] != sample->frames[count - 1 - i].line;
}

static void on_sample(void *context, const struct ts_python_sample *sample)
{
	struct seen_thread *thread;

	(void)context;
	pthread_mutex_lock(&seen.lock);
	thread = find_thread(sample->tid);
	thread->pid = sample->pid;
	check_frames(thread, sample);
	seen.wrong += sample->time_ns <= thread->time_ns || sample->weight_ns <= 0;
	seen.wrong += thread->samples && thread->slot != sample->slot;
	thread->slot = sample->slot;
	thread->time_ns = sample->time_ns;
	thread->samples++;
	seen.samples++;
	for (uint32_t i = 0; i < sample->count; i++)
		if (sample->frames[i].python)
			note(seen.functions, sizeof(seen.functions),
			     sample->frames[i].python->name);
	if (sample->trigger)
		note(seen.triggers, sizeof(seen.triggers), sample->trigger);
	if (sample->locals)
		snprintf(seen.locals, sizeof(seen.locals), "%s", sample->locals);
	pthread_mutex_unlock(&seen.lock);
}

static void on_thread(void *context, pid_t pid, uint64_t start_time, pid_t tid, const char *name)
{
	(void)context, (void)pid, (void)start_time;
	pthread_mutex_lock(&seen.lock);
	snprintf(find_thread(tid)->name, sizeof(seen.threads[0].name), "%s", name);
	pthread_mutex_unlock(&seen.lock);
}

static void on_counter(void *context, pid_t pid, uint64_t start_time, const char *name,
		       const struct ts_python_counter *values, unsigned int count)
{
	char text[256];

	(void)context, (void)start_time;
	pthread_mutex_lock(&seen.lock);
	for (unsigned int i = 0; i < count; i++) {
		snprintf(text, sizeof(text), "%s%s.%s", pid ? "process " : "", name,
			 values[i].series);
		note(seen.counter_names, sizeof(seen.counter_names), text);
		seen.wrong += !(values[i].value >= 0);
	}
	seen.counters++;
	pthread_mutex_unlock(&seen.lock);
}

static void on_message(void *context, pid_t pid, const char *text)
{
	(void)context, (void)pid;
	pthread_mutex_lock(&seen.lock);
	seen.messages++;
	snprintf(seen.message, sizeof(seen.message), "%s", text);
	pthread_mutex_unlock(&seen.lock);
}

static void on_closed(void *context, pid_t pid, uint64_t start_time)
{
	(void)context, (void)start_time;
	pthread_mutex_lock(&seen.lock);
	seen.closed++;
	/* Its frames are dangling now. */
	for (size_t i = 0; i < seen.count; i++)
		if (seen.threads[i].pid == pid)
			memset(seen.threads[i].frames, 0, sizeof(seen.threads[i].frames));
	pthread_mutex_unlock(&seen.lock);
}

static struct ts_python_sampler *open_sampler(const struct ts_python_sampler_options *options)
{
	static const struct ts_python_consumer consumer = { .sample = on_sample,
							    .thread = on_thread,
							    .counter = on_counter,
							    .message = on_message,
							    .closed = on_closed };
	struct ts_python_sampler *sampler;
	struct ts_error err;

	memset(&seen, 0, sizeof(seen));
	pthread_mutex_init(&seen.lock, NULL);
	if (ts_python_sampler_open(&sampler, options, &consumer, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	return sampler;
}

static void watch(struct ts_python_sampler *sampler, const struct program *program,
		  int64_t interval_ns)
{
	const struct ts_sampled_process process = { program->pid,
						    ts_process_start_time(program->pid),
						    interval_ns };

	TS_CHECK(!ts_python_sampler_set_processes(sampler, &process, 1, NULL));
}

static void nap(int64_t ms)
{
	const struct timespec pause = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&pause, NULL);
}

/* Becomes true eventually: the runner ends a test that waits in vain. */
#define AWAIT(condition)     \
	while (!(condition)) \
	nap(10)

static unsigned int samples(void)
{
	unsigned int count;

	pthread_mutex_lock(&seen.lock);
	count = seen.samples;
	pthread_mutex_unlock(&seen.lock);
	return count;
}

/* Of complete sweeps. */
static unsigned int swept(struct ts_python_sampler *sampler)
{
	struct ts_python_sampler_status status = { 0 };

	ts_python_sampler_status(sampler, &status);
	return (unsigned int)status.samples;
}

static unsigned int samples_of(const char *name)
{
	unsigned int count = 0;

	pthread_mutex_lock(&seen.lock);
	for (size_t i = 0; i < seen.count; i++)
		if (!strcmp(seen.threads[i].name, name))
			count += seen.threads[i].samples;
	pthread_mutex_unlock(&seen.lock);
	return count;
}

#define THREADS                                                              \
	"import threading, time\n"                                           \
	"def inner():\n"                                                     \
	"    time.sleep(0.002)\n"                                            \
	"def outer():\n"                                                     \
	"    while True:\n"                                                  \
	"        inner()\n"                                                  \
	"def first():\n"                                                     \
	"    outer()\n"                                                      \
	"for i in range(3):\n"                                               \
	"    threading.Thread(target=first, name='worker-%d' % i).start()\n" \
	"print('ready')\n"                                                   \
	"def main_loop():\n"                                                 \
	"    while True:\n"                                                  \
	"        inner()\n"                                                  \
	"main_loop()\n"

TS_TEST(all_threads_of_a_program)
{
	const struct ts_python_sampler_options options = { .tasks = true };
	struct ts_python_sampler_status status;
	struct ts_python_sampler *sampler;
	struct program program;

	require_python();
	program = start_python(THREADS);
	await_line(&program);
	sampler = open_sampler(&options);
	watch(sampler, &program, INTERVAL_NS);
	AWAIT(samples_of("worker-0") > 30 && samples_of("worker-2") > 30 &&
	      samples_of("MainThread") > 30);
	ts_python_sampler_status(sampler, &status);
	TS_CHECK_INT(status.processes, 1);
	TS_CHECK_INT(status.threads, 4);
	TS_CHECK(status.samples > 90);
	ts_python_sampler_close(sampler);
	TS_CHECK(has(seen.functions, "main_loop"));
	TS_CHECK(has(seen.functions, "outer"));
	TS_CHECK(has(seen.functions, "inner"));
	TS_CHECK_INT(seen.wrong, 0);
	TS_CHECK_INT(seen.messages, 0);
	TS_CHECK_INT(seen.closed, 1);
	end(&program);
}

TS_TEST(the_main_thread_alone)
{
	const struct ts_python_sampler_options options = { .main_only = true };
	struct ts_python_sampler *sampler;
	struct program program;

	require_python();
	program = start_python(THREADS);
	await_line(&program);
	sampler = open_sampler(&options);
	watch(sampler, &program, INTERVAL_NS);
	AWAIT(samples() > 20);
	ts_python_sampler_close(sampler);
	TS_CHECK_INT(seen.count, 1);
	TS_CHECK_INT(seen.threads[0].tid, program.pid);
	end(&program);
}

/* Found when it has become a Python, and again when it becomes another one. */
TS_TEST(a_program_that_starts_and_executes_another)
{
	const struct ts_python_sampler_options options = { 0 };
	const char *argv[] = {
		"sh", "-c",
		"sleep 0.2; exec python3 -u -c 'import os, signal\n"
		"signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n"
		"def the_first(): signal.sigwait([signal.SIGUSR1])\n"
		"the_first()\n"
		"os.execvp(\"python3\", [\"python3\", \"-u\", \"-c\", \"import time\\ndef the_second():\\n  time.sleep(100)\\nthe_second()\"])'",
		NULL
	};
	struct ts_python_sampler *sampler;
	struct program program;

	require_python();
	program = start(argv);
	sampler = open_sampler(&options);
	watch(sampler, &program, INTERVAL_NS);
	AWAIT(has(seen.functions, "the_first"));
	kill(program.pid, SIGUSR1);
	AWAIT(has(seen.functions, "the_second"));
	ts_python_sampler_close(sampler);
	TS_CHECK_INT(seen.closed, 2);
	TS_CHECK_INT(seen.messages, 0);
	end(&program);
}

TS_TEST(a_program_that_ends)
{
	const struct ts_python_sampler_options options = { 0 };
	struct ts_python_sampler_status status = { .processes = 1 };
	struct ts_python_sampler *sampler;
	struct program program;
	unsigned int before;

	require_python();
	program = start_python(THREADS);
	await_line(&program);
	sampler = open_sampler(&options);
	watch(sampler, &program, INTERVAL_NS);
	AWAIT(samples() > 10);
	end(&program);
	while (status.processes) {
		nap(10);
		ts_python_sampler_status(sampler, &status);
	}
	before = samples();
	nap(50);
	TS_CHECK_INT(samples(), before);
	TS_CHECK_INT(seen.messages, 0);
	ts_python_sampler_close(sampler);
	TS_CHECK_INT(seen.closed, 1);
}

TS_TEST(what_is_no_python_is_no_news)
{
	const struct ts_python_sampler_options options = { 0 };
	const char *argv[] = { "sleep", "100", NULL };
	struct ts_python_sampler *sampler;
	struct program program = start(argv);

	sampler = open_sampler(&options);
	watch(sampler, &program, INTERVAL_NS);
	nap(300);
	ts_python_sampler_close(sampler);
	TS_CHECK_INT(seen.samples, 0);
	TS_CHECK_INT(seen.messages, 0);
	TS_CHECK_INT(seen.counters, 0);
	end(&program);
}

TS_TEST(a_pause_and_what_is_asked_for_in_it)
{
	const struct ts_python_sampler_options options = { 0 };
	struct ts_python_sampler *sampler;
	struct program program;
	unsigned int before;

	require_python();
	program = start_python(THREADS);
	await_line(&program);
	sampler = open_sampler(&options);
	watch(sampler, &program, 0);
	nap(100);
	TS_CHECK_INT(samples(), 0);
	ts_python_sampler_request(sampler, program.pid);
	AWAIT(swept(sampler) >= 3);
	before = samples();
	TS_CHECK(before <= 4);
	TS_CHECK(has(seen.triggers, "asked"));
	ts_python_sampler_request(sampler, program.pid + 1);
	nap(50);
	TS_CHECK_INT(samples(), before);
	ts_python_sampler_request(sampler, 0);
	AWAIT(samples() > before);
	watch(sampler, &program, INTERVAL_NS);
	AWAIT(samples() > before + 20);
	ts_python_sampler_close(sampler);
	end(&program);
}

TS_TEST(functions_that_come_and_go)
{
	static const char *const functions[] = { "want?d_*", NULL };
	const struct ts_python_sampler_options options = { .functions = functions };
	struct ts_python_sampler *sampler;
	struct program program;
	unsigned int count;

	require_python();
	program = start_python("import time\n"
			       "def wanted_one(): time.sleep(0.06)\n"
			       "def wanted_two(): time.sleep(0.06)\n"
			       "def other(): time.sleep(0.06)\n"
			       "def rounds():\n"
			       "    while True:\n"
			       "        wanted_one(); other(); wanted_two(); other()\n"
			       "print('ready')\n"
			       "rounds()\n");
	await_line(&program);
	sampler = open_sampler(&options);
	watch(sampler, &program, INTERVAL_NS);
	AWAIT(has(seen.triggers, "function wanted_one") &&
	      has(seen.triggers, "function wanted_two") &&
	      has(seen.triggers, "after function wanted_one"));
	ts_python_sampler_close(sampler);
	/* Far fewer than sweeps. */
	count = seen.samples;
	TS_CHECK(count >= 3 && count < 100);
	TS_CHECK(!strstr(seen.triggers, "other"));
	end(&program);
}

TS_TEST(local_variables_and_counters)
{
	const struct ts_python_sampler_options options = { .locals = true };
	struct ts_python_sampler *sampler;
	struct program program;

	require_python();
	program = start_python("import time\n"
			       "def held(answer):\n"
			       "    print('ready')\n"
			       "    time.sleep(100)\n"
			       "held(42)\n");
	await_line(&program);
	sampler = open_sampler(&options);
	watch(sampler, &program, INTERVAL_NS);
	AWAIT(samples() > 10);
	AWAIT(has(seen.counter_names, "python_cpu_percent.sampler"));
	ts_python_sampler_close(sampler);
	TS_CHECK(strstr(seen.locals, "\"answer\":\"42\""));
	TS_CHECK(has(seen.counter_names, "python_stacks_per_s.stored"));
	TS_CHECK(has(seen.counter_names, "python_stacks_per_s.rejected"));
	TS_CHECK(has(seen.counter_names, "python_ticks_per_s.late"));
	TS_CHECK(has(seen.counter_names, "python_phase_percent.read"));
	TS_CHECK(has(seen.counter_names, "process python_sweep_us.mean"));
	TS_CHECK(has(seen.counter_names, "process python_rejected_percent.stacks"));
	TS_CHECK_INT(seen.wrong, 0);
	end(&program);
}

TS_TEST(programs_that_come_and_go)
{
	const struct ts_python_sampler_options options = { 0 };
	struct ts_python_sampler *sampler;
	struct program programs[3];
	struct ts_sampled_process list[3];

	require_python();
	sampler = open_sampler(&options);
	for (int i = 0; i < 3; i++) {
		char script[200];

		snprintf(script, sizeof(script),
			 "import time\ndef number_%d():\n    print('ready')\n    time.sleep(100)\n"
			 "number_%d()\n",
			 i, i);
		programs[i] = start_python(script);
		await_line(&programs[i]);
		list[i] = (struct ts_sampled_process){ programs[i].pid,
						       ts_process_start_time(programs[i].pid),
						       INTERVAL_NS };
		TS_CHECK(!ts_python_sampler_set_processes(sampler, list, (size_t)i + 1, NULL));
	}
	AWAIT(has(seen.functions, "number_0") && has(seen.functions, "number_1") &&
	      has(seen.functions, "number_2"));
	end(&programs[1]);
	list[1] = list[2];
	TS_CHECK(!ts_python_sampler_set_processes(sampler, list, 2, NULL));
	AWAIT(seen.closed == 1);
	TS_CHECK(!ts_python_sampler_set_processes(sampler, NULL, 0, NULL));
	AWAIT(seen.closed == 3);
	ts_python_sampler_close(sampler);
	TS_CHECK_INT(seen.wrong, 0);
	end(&programs[0]);
	end(&programs[2]);
}
