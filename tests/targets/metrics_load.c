/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with known resource use, controlled by its arguments:
 *
 *	cpu:MS       computes until it has used this CPU time
 *	sleep:MS     sleeps
 *	write:FILE   writes 32 MiB to a file, 1 MiB at a time
 *	memory:MIB   allocates memory and touches it
 *	threads:N    starts N threads, which sleep
 *	naps:N       sleeps N times for 1 ms
 *	fork:FILE    a child does the rest; the parent waits for it, then for the file, and exits
 *	spawn:N      N children that compute for 20 ms each, one after another
 *	say          prints its resource use so far as a JSON line
 *	make:FILE    creates a file with its pid in it
 *	await:FILE   waits until a file exists
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "file_signals.h"

#define MIB ((size_t)1 << 20)
#define WRITES 32

static uint64_t written;

static void die(const char *what)
{
	fprintf(stderr, "metrics_load: %s\n", what);
	exit(1);
}

static double seconds_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void sleep_ms(long ms)
{
	const struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

static void compute(long ms)
{
	double end = seconds_of(CLOCK_PROCESS_CPUTIME_ID) + (double)ms / 1e3;

	while (seconds_of(CLOCK_PROCESS_CPUTIME_ID) < end)
		for (volatile int i = 0; i < 10000; i++)
			;
}

static void write_file(const char *path)
{
	char *data = calloc(1, MIB);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (!data || fd < 0)
		die("cannot write");
	for (int i = 0; i < WRITES; i++) {
		if (write(fd, data, MIB) != (ssize_t)MIB)
			die("cannot write");
		written += MIB;
	}
	close(fd);
	free(data);
}

static void take_memory(long mib)
{
	static char *volatile held; /* until the end */

	held = malloc((size_t)mib * MIB);
	if (!held)
		die("no memory");
	for (size_t at = 0; at < (size_t)mib * MIB; at += 4096)
		((volatile char *)held)[at] = 1;
}

static void *sleep_for_ever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void start_threads(long count)
{
	pthread_t thread;

	while (count--)
		if (pthread_create(&thread, NULL, sleep_for_ever, NULL))
			die("cannot start a thread");
}

static void spawn(long count)
{
	while (count--) {
		pid_t pid = fork();

		if (pid == 0) {
			compute(20);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			die("cannot start a child");
	}
}

static void divide(const char *path)
{
	pid_t pid = fork();

	if (pid < 0)
		die("cannot fork");
	if (pid == 0) {
		written = 0;
		return;
	}
	waitpid(pid, NULL, 0);
	await_file(path);
	exit(0);
}

/* A member of /proc/self/io, or -1. */
static long long io_of(const char *key)
{
	FILE *file = fopen("/proc/self/io", "re");
	char line[128];
	long long value = -1;

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, key, strlen(key)) && line[strlen(key)] == ':')
			value = strtoll(line + strlen(key) + 1, NULL, 10);
	if (file)
		fclose(file);
	return value;
}

static long long resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	char line[128] = "", *second;

	if (!file || !fgets(line, sizeof(line), file))
		die("cannot read /proc/self/statm");
	fclose(file);
	second = strchr(line, ' ');
	return second ? strtoll(second, NULL, 10) * sysconf(_SC_PAGESIZE) : 0;
}

static void print_state(void)
{
	struct rusage self, children;

	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	printf("{\"pid\": %d, \"cpu_s\": %.6f, \"children_cpu_s\": %.6f, \"written\": %" PRIu64
	       ", \"wchar\": %lld, \"write_bytes\": %lld, \"cancelled_bytes\": %lld, \"rss\": %lld, "
	       "\"faults\": %ld, \"voluntary\": %ld}\n",
	       (int)getpid(), seconds_of(CLOCK_PROCESS_CPUTIME_ID),
	       (double)(children.ru_utime.tv_sec + children.ru_stime.tv_sec) +
		       (double)(children.ru_utime.tv_usec + children.ru_stime.tv_usec) / 1e6,
	       written, io_of("wchar"), io_of("write_bytes"), io_of("cancelled_write_bytes"),
	       resident_bytes(), self.ru_minflt, self.ru_nvcsw);
	fflush(stdout);
}

static void run_command(const char *command)
{
	const char *value = strchr(command, ':') ? strchr(command, ':') + 1 : "";
	long number = strtol(value, NULL, 10);
	size_t length = strcspn(command, ":");

	if (!strncmp(command, "cpu", length))
		compute(number);
	else if (!strncmp(command, "sleep", length))
		sleep_ms(number);
	else if (!strncmp(command, "write", length))
		write_file(value);
	else if (!strncmp(command, "memory", length))
		take_memory(number);
	else if (!strncmp(command, "threads", length))
		start_threads(number);
	else if (!strncmp(command, "fork", length))
		divide(value);
	else if (!strncmp(command, "spawn", length))
		spawn(number);
	else if (!strncmp(command, "say", length))
		print_state();
	else if (!strncmp(command, "make", length))
		make_file(value);
	else if (!strncmp(command, "naps", length))
		while (number--)
			sleep_ms(1);
	else if (!strncmp(command, "await", length))
		await_file(value);
	else
		die("a word that it does not know");
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		run_command(argv[i]);
	return 0;
}
