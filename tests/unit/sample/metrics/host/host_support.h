/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by tests of host metrics: a sink that keeps what it is given, and a worker process that
 * executes orders.
 */
#ifndef TS_TESTS_UNIT_SAMPLE_METRICS_HOST_HOST_SUPPORT_H
#define TS_TESTS_UNIT_SAMPLE_METRICS_HOST_HOST_SUPPORT_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tracesmith/metrics.h>

#include "unit/runner.h"

#define SECOND_NS INT64_C(1000000000)

/* ---- values ---- */

struct taken_value {
	struct ts_metrics_subject subject;
	char name[64], series[64];
	double value;
};

struct taken {
	struct ts_metrics_sink sink;
	struct taken_value values[128];
	size_t count;
	unsigned int messages;
	char message[256]; /* the last */
};

static inline void take_real(void *context, const struct ts_metrics_subject *subject,
			     const char *name, const char *series, double value)
{
	struct taken *taken = context;
	struct taken_value *slot = &taken->values[taken->count];

	TS_CHECK(taken->count < sizeof(taken->values) / sizeof(taken->values[0]));
	taken->count++;
	slot->subject = *subject;
	snprintf(slot->name, sizeof(slot->name), "%s", name);
	snprintf(slot->series, sizeof(slot->series), "%s", series);
	slot->value = value;
}

static inline void take_integer(void *context, const struct ts_metrics_subject *subject,
				const char *name, const char *series, int64_t value)
{
	take_real(context, subject, name, series, (double)value);
}

static inline void take_message(void *context, const char *text)
{
	struct taken *taken = context;

	taken->messages++;
	snprintf(taken->message, sizeof(taken->message), "%s", text);
}

static inline void taken_init(struct taken *taken)
{
	memset(taken, 0, sizeof(*taken));
	taken->sink = (struct ts_metrics_sink){ .size = sizeof(taken->sink),
						.context = taken,
						.real = take_real,
						.integer = take_integer,
						.message = take_message };
}

static inline const struct taken_value *taken_find(const struct taken *taken, const char *name,
						   const char *series)
{
	for (size_t i = 0; i < taken->count; i++) {
		if (strcmp(taken->values[i].name, name) == 0 &&
		    (!series || strcmp(taken->values[i].series, series) == 0))
			return &taken->values[i];
	}
	return NULL;
}

static inline double taken_value(const struct taken *taken, const char *name, const char *series)
{
	const struct taken_value *value = taken_find(taken, name, series);

	if (!value)
		ts_test_fail(__FILE__, __LINE__, "there is no %s of %s", series, name);
	return value->value;
}

/* ---- checks ---- */

static inline void check_between(const char *what, double low, double value, double high)
{
	if (!(value >= low && value <= high))
		ts_test_fail(__FILE__, __LINE__, "%s: %f is not from %f to %f", what, value, low,
			     high);
}

/* ---- texts ---- */

/* Reads numbers separated by blanks; returns how many there are. */
static inline size_t numbers_of(const char *at, uint64_t *ret_numbers, size_t count)
{
	size_t found = 0;

	while (found < count) {
		char *end;

		ret_numbers[found] = strtoull(at, &end, 10);
		if (end == at)
			break;
		at = end;
		found++;
	}
	return found;
}

/* The numbers after `key` at the start of a line, in a file or in a command's output. */
static inline size_t numbers_behind(FILE *file, const char *key, uint64_t *ret_numbers,
				    size_t count)
{
	char line[4096];
	size_t found = 0;

	TS_CHECK(file != NULL);
	while (!found && fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, strlen(key)) == 0)
			found = numbers_of(line + strlen(key), ret_numbers, count);
	}
	return found;
}

/* One number; fails if there is none. */
static inline uint64_t number_in(const char *path, const char *key)
{
	FILE *file = fopen(path, "re");
	uint64_t number = 0;

	if (numbers_behind(file, key, &number, 1) != 1)
		ts_test_fail(__FILE__, __LINE__, "there is no %s in %s", key, path);
	fclose(file);
	return number;
}

/* ---- the worker ---- */

enum order {
	BURN = 'b',        /* use 300 ms of CPU */
	WRITE = 'w',       /* 1,000,000 bytes in 10 calls */
	READ = 'r',        /* the same */
	TOUCH = 't',       /* 1000 new pages */
	NAP = 'n',         /* until 200 voluntary switches */
	THREADS = 'h',     /* become 7 */
	END_ONE = 'e',     /* 6 of them */
	CHILD = 'c',       /* one that uses 200 ms of CPU; waits for it */
	LEADER_ENDS = 'l', /* other threads continue; there is no answer */
};

/* The worker's account of itself, after the order. */
struct account {
	int64_t cpu_ns;
	int64_t children_cpu_ns;
	int64_t voluntary, involuntary, minor_faults;
};

struct worker {
	pid_t pid;
	int orders, answers;
};

static inline int64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * SECOND_NS + time.tv_nsec;
}

static inline void worker_burn(int64_t ns)
{
	int64_t end = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + ns;

	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < end)
		;
}

static inline void worker_pass(int read_fd, int write_fd)
{
	static char bytes[100000];

	for (int i = 0; i < 10; i++) {
		if (write_fd >= 0 && write(write_fd, bytes, sizeof(bytes)) != sizeof(bytes))
			_exit(3);
		if (read_fd >= 0 && read(read_fd, bytes, sizeof(bytes)) != sizeof(bytes))
			_exit(3);
	}
}

static inline void worker_touch(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 1000 * page;
	char *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		_exit(3);
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	for (size_t at = 0; at < bytes; at += page)
		*(volatile char *)(memory + at) = 1;
}

/* A nap that is over before the processor is given up is not a switch. */
static inline void worker_nap(void)
{
	struct timespec moment = { .tv_nsec = 1000 };
	struct rusage begin, now;

	getrusage(RUSAGE_SELF, &begin);
	do {
		nanosleep(&moment, NULL);
		getrusage(RUSAGE_SELF, &now);
	} while (now.ru_nvcsw - begin.ru_nvcsw < 200);
}

static int worker_ending[2] = { -1, -1 };
static pthread_barrier_t worker_begun;

static inline void *worker_wait(void *argument)
{
	char end;

	pthread_barrier_wait(&worker_begun);
	if (read(worker_ending[0], &end, 1) < 0)
		_exit(3);
	return NULL;
}

static inline void worker_threads(void)
{
	pthread_t thread;

	if (pipe2(worker_ending, O_CLOEXEC) || pthread_barrier_init(&worker_begun, NULL, 7))
		_exit(3);
	for (int i = 0; i < 6; i++) {
		if (pthread_create(&thread, NULL, worker_wait, NULL))
			_exit(3);
		pthread_detach(thread);
	}
	/* All have allocated what they need. */
	pthread_barrier_wait(&worker_begun);
}

/* Returns when the kernel shows no more than 6 threads: the thread is entirely gone. */
static inline void worker_end_one(void)
{
	if (write(worker_ending[1], "", 1) != 1)
		_exit(3);
	while (number_in("/proc/self/status", "Threads:") > 6)
		usleep(1000);
}

static inline void worker_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		worker_burn(200 * SECOND_NS / 1000);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static inline void worker_obey(char order, int null_fd, int zero_fd)
{
	if (order == BURN)
		worker_burn(300 * SECOND_NS / 1000);
	if (order == WRITE)
		worker_pass(-1, null_fd);
	if (order == READ)
		worker_pass(zero_fd, -1);
	if (order == TOUCH)
		worker_touch();
	if (order == NAP)
		worker_nap();
	if (order == THREADS)
		worker_threads();
	if (order == END_ONE)
		worker_end_one();
	if (order == CHILD)
		worker_child();
	if (order == LEADER_ENDS)
		syscall(SYS_exit, 0); /* of this thread only */
}

static inline int64_t worker_us(struct timeval time)
{
	return (time.tv_sec * INT64_C(1000000) + time.tv_usec) * 1000;
}

static inline void worker_account(struct account *ret_account)
{
	struct rusage self, children;

	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	*ret_account = (struct account){
		.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
		.children_cpu_ns = worker_us(children.ru_utime) + worker_us(children.ru_stime),
		.voluntary = self.ru_nvcsw,
		.involuntary = self.ru_nivcsw,
		.minor_faults = self.ru_minflt,
	};
}

static inline void worker_run(int orders, int answers)
{
	int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int zero_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct account account;
	char order;

	while (read(orders, &order, 1) == 1) {
		worker_obey(order, null_fd, zero_fd);
		worker_account(&account);
		if (write(answers, &account, sizeof(account)) != sizeof(account))
			break;
	}
	_exit(0);
}

static inline void worker_start(struct worker *worker)
{
	int orders[2], answers[2];

	TS_CHECK(pipe2(orders, O_CLOEXEC) == 0 && pipe2(answers, O_CLOEXEC) == 0);
	worker->pid = fork();
	TS_CHECK(worker->pid >= 0);
	if (worker->pid == 0) {
		close(orders[1]);
		close(answers[0]);
		worker_run(orders[0], answers[1]);
	}
	close(orders[0]);
	close(answers[1]);
	worker->orders = orders[1];
	worker->answers = answers[0];
}

/* Returns when the order is done. */
static inline void worker_order(const struct worker *worker, enum order order,
				struct account *ret_account)
{
	struct account account;
	char byte = (char)order;

	TS_CHECK(write(worker->orders, &byte, 1) == 1);
	TS_CHECK(read(worker->answers, &account, sizeof(account)) == sizeof(account));
	if (ret_account)
		*ret_account = account;
}

static inline void worker_stop(const struct worker *worker)
{
	close(worker->orders);
	close(worker->answers);
	kill(worker->pid, SIGKILL);
	waitpid(worker->pid, NULL, 0);
}

/* ---- a test in its own process, which may drop its privileges ---- */

enum { APART_PASSED = 0, APART_SKIPPED = 77 };

static inline void run_apart(void (*run)(void *argument), void *argument)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	TS_CHECK(pid >= 0);
	if (pid == 0) {
		run(argument);
		fflush(NULL);
		_exit(APART_PASSED);
	}
	TS_CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == APART_SKIPPED)
		_exit(APART_SKIPPED); /* it printed the reason */
	TS_CHECK_INT(status, 0);
}

#endif
