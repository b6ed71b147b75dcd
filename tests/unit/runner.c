/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test runner, see runner.h. It does not use TraceSmith, so that a bug there cannot hide a
 * failed test here. Heap leaks are left to the sanitizer builds, where a leak fails the child.
 */
#include "unit/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that passes exits with a special code, so that exit(0) within a test is not a success. */
enum { EXIT_PASSED = 42, EXIT_SKIPPED = 77 };
enum { MAX_FD = 1024 };

static struct ts_test *tests;
/* In a child a failed check ends the process; otherwise it aborts, which stops a debugger. */
static bool in_child;

void ts_test_register(struct ts_test *test)
{
	struct ts_test **end = &tests;

	while (*end)
		end = &(*end)->next;
	*end = test;
}

/* Not exit(): leaks of an aborted test do not matter. */
static void end_test(int code) __attribute__((noreturn));
static void end_test(int code)
{
	fflush(NULL);
	if (!in_child && code == EXIT_FAILURE)
		abort();
	_exit(code);
}

void ts_test_skip(const char *reason)
{
	printf("skip: %s\n", reason);
	end_test(EXIT_SKIPPED);
}

void ts_test_fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "%s:%d: ", file, line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	end_test(EXIT_FAILURE);
}

void ts_test_check_int(const char *file, int line, const char *text, intmax_t a, intmax_t b)
{
	if (a != b)
		ts_test_fail(file, line, "not so: %s: %jd (%#jx) and %jd (%#jx)", text, a,
			     (uintmax_t)a, b, (uintmax_t)b);
}

void ts_test_check_str(const char *file, int line, const char *text, const char *a, const char *b)
{
	if (a == b || (a && b && strcmp(a, b) == 0))
		return;
	ts_test_fail(file, line, "not so: %s:\n\t%s%s%s\n\t%s%s%s", text, a ? "\"" : "",
		     a ? a : "NULL", a ? "\"" : "", b ? "\"" : "", b ? b : "NULL", b ? "\"" : "");
}

void ts_test_check_mem(const char *file, int line, const char *text, const void *a, const void *b,
		       size_t size)
{
	const unsigned char *x = a, *y = b;

	for (size_t i = 0; i < size; i++)
		if (x[i] != y[i])
			ts_test_fail(file, line, "not so: %s: byte %zu of %zu: %#04x and %#04x",
				     text, i, size, x[i], y[i]);
}

static void list_descriptors(bool open_fds[MAX_FD])
{
	for (int fd = 0; fd < MAX_FD; fd++)
		open_fds[fd] = fcntl(fd, F_GETFD) >= 0;
}

static bool leaked_descriptors(const bool before[MAX_FD])
{
	bool after[MAX_FD], leaked = false;

	list_descriptors(after);
	for (int fd = 0; fd < MAX_FD; fd++) {
		char link[64], path[256];
		ssize_t length;

		if (!after[fd] || before[fd])
			continue;
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		length = readlink(link, path, sizeof(path) - 1);
		path[length > 0 ? length : 0] = '\0';
		/* NVIDIA's driver keeps its own until the process exits. */
		if (!strncmp(path, "/dev/nvidia", 11))
			continue;
		fprintf(stderr, "descriptor %d is left open: %s\n", fd, path);
		leaked = true;
	}
	return leaked;
}

/* Returns whether it passed; a failed check does not return. */
static bool run_in_process(const struct ts_test *test)
{
	bool before[MAX_FD];

	list_descriptors(before);
	test->run();
	return !leaked_descriptors(before);
}

static unsigned int time_limit_s(void)
{
	const char *text = getenv("TS_TEST_SECONDS");
	long seconds = text ? strtol(text, NULL, 10) : 0;

	if (seconds > 0)
		return (unsigned int)seconds;
	/* Long forms run under emulation and sanitizers. */
	return getenv("TS_LONG") ? 1440 : 120;
}

enum outcome { PASSED, FAILED, SKIPPED, OUTCOMES };

static enum outcome classify(int status)
{
	if (WIFSIGNALED(status)) {
		if (WTERMSIG(status) == SIGALRM)
			fprintf(stderr, "took longer than %u s\n", time_limit_s());
		else
			fprintf(stderr, "died of: %s\n", strsignal(WTERMSIG(status)));
		return FAILED;
	}
	switch (WEXITSTATUS(status)) {
	case EXIT_PASSED:
		return PASSED;
	case EXIT_SKIPPED:
		return SKIPPED;
	default:
		fprintf(stderr, "exit code %d\n", WEXITSTATUS(status));
		return FAILED;
	}
}

static enum outcome run_child(const struct ts_test *test)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		perror("fork");
		return FAILED;
	}
	if (pid == 0) {
		in_child = true;
		setpgid(0, 0); /* Ctrl-C does not reach it: it dies with us */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(time_limit_s());
		/* exit(), not _exit(): the sanitizer checks for leaks there. */
		exit(run_in_process(test) ? EXIT_PASSED : EXIT_FAILURE);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR) {
			perror("waitpid");
			return FAILED;
		}
	/* Processes left by a failed test would hold our output open. */
	kill(-pid, SIGKILL);
	return classify(status);
}

static int run_all(void)
{
	static const char *const names[OUTCOMES] = { "ok", "FAILED", "skipped" };
	unsigned int counts[OUTCOMES] = { 0 };

	for (const struct ts_test *test = tests; test; test = test->next) {
		enum outcome outcome = run_child(test);

		printf("%-8s %s\n", names[outcome], test->name);
		counts[outcome]++;
	}
	printf("%u passed, %u failed", counts[PASSED], counts[FAILED]);
	printf(counts[SKIPPED] ? ", %u skipped\n" : "\n", counts[SKIPPED]);
	if (!tests)
		fputs("no test is registered\n", stderr);
	if (counts[FAILED] || !tests)
		return EXIT_FAILURE;
	return counts[PASSED] ? EXIT_SUCCESS : EXIT_SKIPPED;
}

int main(int argc, char **argv)
{
	if (argc == 1)
		return run_all();
	for (const struct ts_test *test = tests; test; test = test->next) {
		if (strcmp(argv[1], "--list") == 0)
			puts(test->name);
		else if (strcmp(argv[1], test->name) == 0)
			return run_in_process(test) ? EXIT_SUCCESS : EXIT_FAILURE;
	}
	if (strcmp(argv[1], "--list") == 0)
		return EXIT_SUCCESS;
	fprintf(stderr, "%s: no test '%s' (--list names them)\n", argv[0], argv[1]);
	return 2;
}
