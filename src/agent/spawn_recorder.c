/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a recorder from inside a program (docs/live.md, section 5) without side effects on it: no
 * child process, no signal, no open descriptor, no terminal.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/tracer.h"

#define STACK_BYTES (64u << 10)

extern char **environ;

/* Prepared in advance for the two short-lived processes, which share our memory. */
struct launch {
	char program[1024];
	char area[64];
	char output[1024];
	bool makes_folders;
	char **environment;
	size_t environment_bytes;
	pid_t recorder;
	int error; /* of execve */
	char stacks[2][STACK_BYTES] __attribute__((aligned(16)));
};

/* ---- finding the tool ---- */

static bool is_program(const char *path)
{
	return path[0] == '/' && !access(path, X_OK);
}

/*
 * Looks next to the agent's file: build/; lib/ of a prefix whose bin/ holds the tool;
 * tracesmith/lib/ of `pip install --target`; lib/python3/site-packages/tracesmith/lib/ of a Python
 * environment.
 */
static bool find_beside(char *program, size_t bytes)
{
	static const char *const candidates[] = { "tracesmith", "../bin/tracesmith",
						  "../../bin/tracesmith",
						  "../../../../../bin/tracesmith" };
	Dl_info info;
	const char *slash;

	if (!dladdr((void *)(uintptr_t)find_beside, &info) || !info.dli_fname)
		return false;
	slash = strrchr(info.dli_fname, '/');
	for (size_t i = 0; slash && i < sizeof(candidates) / sizeof(candidates[0]); i++) {
		snprintf(program, bytes, "%.*s%s", (int)(slash + 1 - info.dli_fname),
			 info.dli_fname, candidates[i]);
		if (is_program(program))
			return true;
	}
	return false;
}

static bool find_in_path(char *program, size_t bytes)
{
	const char *path = getenv("PATH");

	while (path && *path) {
		size_t length = strcspn(path, ":");

		snprintf(program, bytes, "%.*s/tracesmith", (int)length, path);
		if (is_program(program))
			return true;
		path += length + (path[length] == ':');
	}
	return false;
}

static bool find_recorder(char *program, size_t bytes)
{
	const char *given = getenv("TRACESMITH_RECORDER");

	if (given) {
		snprintf(program, bytes, "%s", given);
		return is_program(program);
	}
	return find_beside(program, bytes) || find_in_path(program, bytes);
}

/* True if a live recorder holds the output: it will find our area. */
static bool is_held(const char *output)
{
	size_t length = strlen(output);
	char path[1100];
	bool held;
	int fd;

	/* A recorder of x.json, or of x, holds the trace from which that file is exported. */
	snprintf(path, sizeof(path), "%s%s", output,
		 length >= 4 && !strcmp(output + length - 4, ".sbt") ? "" : ".sbt");
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	held = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
	close(fd);
	return held;
}

/* ---- environment: without the variables that would make it a target ---- */

static bool is_ours(const char *variable)
{
	static const char *const names[] = { "LD_PRELOAD=", "TRACESMITH_OUT=", "FERRUM_TRACE_OUT=",
					     "TRACESMITH_AGENT=", "TRACESMITH_LIVE=" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(variable, names[i], strlen(names[i])))
			return true;
	return false;
}

static bool copy_environment(struct launch *launch)
{
	size_t count = 0, used = 0;
	void *memory;

	while (environ && environ[count])
		count++;
	launch->environment_bytes = (count + 1) * sizeof(char *);
	memory = mmap(NULL, launch->environment_bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	launch->environment = memory;
	for (size_t i = 0; i < count; i++)
		if (!is_ours(environ[i]))
			launch->environment[used++] = environ[i];
	return true;
}

/* ---- the two nested clones ---- */

static void close_from_three(void)
{
#ifdef SYS_close_range
	if (!syscall(SYS_close_range, 3, ~0u, 0))
		return;
#endif
	struct rlimit limit = { 0, 0 };

	getrlimit(RLIMIT_NOFILE, &limit);
	for (int fd = 3; fd < (int)(limit.rlim_cur < 65536 ? limit.rlim_cur : 65536); fd++)
		close(fd);
}

/* Limits set for the program are not meant for the recorder. */
static void raise_limits(void)
{
	static const int kinds[] = { RLIMIT_FSIZE, RLIMIT_CPU, RLIMIT_AS, RLIMIT_DATA,
				     RLIMIT_NOFILE };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct rlimit limit;

		if (!getrlimit(kinds[i], &limit)) {
			limit.rlim_cur = limit.rlim_max;
			setrlimit(kinds[i], &limit);
		}
	}
}

/* The future recorder. Shares our memory until execve, so it must not change anything. */
static int become_recorder(void *argument)
{
	struct launch *launch = argument;
	char *arguments[] = { (char *)"tracesmith",
			      (char *)"record",
			      (char *)"--detached",
			      (char *)"--area",
			      launch->area,
			      (char *)"-o",
			      launch->output,
			      NULL,
			      NULL };
	struct sigaction plain = { .sa_handler = SIG_DFL };
	sigset_t none;
	int null;

	if (launch->makes_folders)
		arguments[7] = (char *)"--make-folders";
	setsid();
	raise_limits();
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; null >= 0 && fd < 3; fd++)
		dup2(null, fd);
	close_from_three();
	if (chdir("/"))
		_exit(127);
	/* The recorder must not inherit the mask that is blocked for the clones. */
	for (int number = 1; number < NSIG; number++)
		sigaction(number, &plain, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve(launch->program, arguments, launch->environment);
	launch->error = errno;
	_exit(127);
}

/* Exits at once, so that the recorder is not our child. Exit signal 0: no SIGCHLD. */
static int step_between(void *argument)
{
	struct launch *launch = argument;

	launch->recorder = clone(become_recorder, launch->stacks[1] + STACK_BYTES,
				 CLONE_VM | CLONE_VFORK, launch);
	if (launch->recorder < 0)
		launch->error = errno;
	_exit(0);
}

static void run(struct launch *launch)
{
	int pid, status;

	/* Without CLONE_SIGHAND, sigaction in the clone changes only its own table. */
	pid = clone(step_between, launch->stacks[0] + STACK_BYTES, CLONE_VM | CLONE_VFORK, launch);
	if (pid < 0) {
		launch->error = errno;
		return;
	}
	while (waitpid(pid, &status, __WCLONE) < 0 && errno == EINTR)
		;
}

static int start(struct launch *launch, const struct core *core, const char *output)
{
	const char *slash = strrchr(core->path, '/');

	if (!find_recorder(launch->program, sizeof(launch->program)))
		return ENOENT;
	snprintf(launch->area, sizeof(launch->area), "%.63s", slash ? slash + 1 : core->path);
	snprintf(launch->output, sizeof(launch->output), "%s", output);
	launch->makes_folders = core->settings.makes_folders;
	if (!copy_environment(launch))
		return ENOMEM;
	run(launch);
	munmap((void *)launch->environment, launch->environment_bytes);
	return launch->error;
}

int agent_start_recorder(struct core *core, const char *output, bool anyway)
{
	struct launch *launch;
	int error;

	core->relies_on_other = !anyway && is_held(output);
	if (core->relies_on_other)
		return 0;
	launch = mmap(NULL, sizeof(*launch), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	if (launch == MAP_FAILED)
		return ENOMEM;
	error = start(launch, core, output);
	core->recorder = error ? 0 : launch->recorder;
	munmap(launch, sizeof(*launch));
	return error;
}
