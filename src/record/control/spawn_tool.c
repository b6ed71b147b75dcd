/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the tool and starts it in a grandchild: the process between exits at once, so that the tool
 * is not our child. Both share our memory until execve, and make only calls that need no libc
 * state.
 */
#include "record/control/spawn_tool.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/subprocess.h"

#define STACK_BYTES (64u << 10)

extern char **environ;

struct spawn {
	const char *const *arguments;
	char **environment;
	int socket_fd, null_fd; /* above TS_TOOL_SOCKET_FD */
	bool alone;
	sigset_t mask; /* the caller's */
	int error;     /* of clone() or execve() */
	char stacks[2][STACK_BYTES] __attribute__((aligned(16)));
};

/* ---- where is it? ---- */

static bool is_program(const char *path)
{
	struct stat status;

	return !stat(path, &status) && S_ISREG(status.st_mode) && !access(path, X_OK);
}

/*
 * build/, and programs in its folders; lib/ or lib/ARCHITECTURE/ of a prefix; a Python package in
 * its site-packages.
 */
static bool find_beside(char *path, size_t bytes)
{
	static const char *const candidates[] = { "tracesmith", "../tracesmith",
						  "../bin/tracesmith", "../../bin/tracesmith",
						  "../../../../../bin/tracesmith" };
	const char *slash;
	Dl_info info;

	if (!dladdr((void *)(uintptr_t)find_beside, &info) || !info.dli_fname)
		return false;
	slash = strrchr(info.dli_fname, '/');
	for (size_t i = 0; slash && i < TS_ARRAY_SIZE(candidates); i++) {
		snprintf(path, bytes, "%.*s%s", (int)(slash + 1 - info.dli_fname), info.dli_fname,
			 candidates[i]);
		if (is_program(path))
			return true;
	}
	return false;
}

int ts_tool_find(char *ret_path, size_t bytes, struct ts_error *err)
{
	const char *given = getenv("TRACESMITH_RECORDER");

	if (given && *given) {
		snprintf(ret_path, bytes, "%s", given);
		if (is_program(ret_path))
			return TS_OK;
		return ts_error_set(
			err, TS_ENOTFOUND,
			"cannot start a recorder: TRACESMITH_RECORDER is '%s', which is not a "
			"program",
			given);
	}
	if (find_beside(ret_path, bytes) || ts_subprocess_find("tracesmith", NULL, ret_path, bytes))
		return TS_OK;
	return ts_error_set(
		err, TS_ENOTFOUND,
		"cannot start a recorder: found no 'tracesmith' next to the library or in "
		"PATH; set TRACESMITH_RECORDER to its path");
}

/* ---- environment ---- */

static bool has_name(const char *variable, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(variable, name, length) && variable[length] == '=';
}

static bool is_removed(const char *variable, bool alone)
{
	static const char *const names[] = { "TRACESMITH_OUT", "FERRUM_TRACE_OUT",
					     "TRACESMITH_AGENT", "TRACESMITH_LIVE" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(names); i++)
		if (has_name(variable, names[i]))
			return true;
	return alone && has_name(variable, "LD_PRELOAD");
}

/* The caller frees the list, not the strings. */
static char **make_environment(bool alone)
{
	size_t count = 0, used = 0;
	char **list;

	while (environ && environ[count])
		count++;
	list = ts_alloc_array(count + 1, sizeof(*list));
	if (!list)
		return NULL;
	for (size_t i = 0; i < count; i++)
		if (!is_removed(environ[i], alone))
			list[used++] = environ[i];
	list[used] = NULL;
	return list;
}

/* ---- the processes ---- */

/* No handler of ours may run in a process that shares our memory. Its table is its own. */
static void forget_handlers(void)
{
	struct sigaction action, plain = { .sa_handler = SIG_DFL };

	for (int number = 1; number < NSIG; number++)
		if (!sigaction(number, NULL, &action) && action.sa_handler != SIG_IGN)
			sigaction(number, &plain, NULL);
}

/* All three are open in the tool: what it opens must not become its standard error. */
static void set_standard_streams(const struct spawn *spawn)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if ((spawn->alone && fd != STDERR_FILENO) || fcntl(fd, F_GETFD) != 0)
			dup2(spawn->null_fd, fd);
}

static int become_tool(void *argument)
{
	struct spawn *spawn = argument;

	forget_handlers();
	if (spawn->alone)
		setsid();
	set_standard_streams(spawn);
	dup2(spawn->socket_fd, TS_TOOL_SOCKET_FD);
	ts_subprocess_close_from(TS_TOOL_SOCKET_FD + 1);
	sigprocmask(SIG_SETMASK, &spawn->mask, NULL);
	execve(spawn->arguments[0], (char *const *)(uintptr_t)spawn->arguments, spawn->environment);
	spawn->error = errno;
	_exit(127);
}

static int step_between(void *argument)
{
	struct spawn *spawn = argument;

	if (clone(become_tool, spawn->stacks[1] + STACK_BYTES, CLONE_VM | CLONE_VFORK, spawn) < 0)
		spawn->error = errno;
	_exit(0);
}

static int run(struct spawn *spawn)
{
	int status, error = 0;
	sigset_t all;
	pid_t pid;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &spawn->mask);
	/* Exit signal 0: no SIGCHLD, and only __WCLONE finds it. */
	pid = clone(step_between, spawn->stacks[0] + STACK_BYTES, CLONE_VM | CLONE_VFORK, spawn);
	if (pid < 0)
		error = errno;
	else
		while (waitpid(pid, &status, __WCLONE) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &spawn->mask, NULL);
	return error ? error : spawn->error;
}

/* If a program has closed its standard streams, new descriptors have their numbers. */
static int duplicate_above(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, TS_TOOL_SOCKET_FD + 1);
}

int ts_tool_spawn(const char *const *arguments, int socket_fd, bool alone, struct ts_error *err)
{
	TS_AUTO_FREE struct spawn *spawn = calloc(1, sizeof(*spawn));
	TS_AUTO_FREE char **environment = make_environment(alone);
	TS_AUTO_FD int low_fd = ts_io_open("/dev/null", O_RDWR, 0);
	TS_AUTO_FD int null_fd = -1, tool_fd = -1;
	int error = ENOMEM;

	if (low_fd < 0)
		return ts_error_errno(err, errno, "cannot open '/dev/null'");
	null_fd = duplicate_above(low_fd);
	tool_fd = duplicate_above(socket_fd);
	if (null_fd < 0 || tool_fd < 0)
		return ts_error_errno(err, errno, "cannot start '%s'", arguments[0]);
	if (spawn && environment) {
		spawn->arguments = arguments;
		spawn->environment = environment;
		spawn->socket_fd = tool_fd;
		spawn->null_fd = null_fd;
		spawn->alone = alone;
		error = run(spawn);
	}
	if (error)
		return ts_error_errno(err, error, "cannot start '%s'", arguments[0]);
	return TS_OK;
}
