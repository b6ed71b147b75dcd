/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program with limits. A guard process, which shares our memory, starts the program, reads
 * its output, kills it when necessary and reaps it, while the calling thread waits. A plain child
 * would send SIGCHLD and could be reaped by any wait in this process; the guard does neither (its
 * exit signal is 0, and it only answers to __WCLONE). If we die, the guard kills the program.
 * Orphans of the program are reparented to the guard and killed with it.
 *
 * Guard and child only make calls that need no libc state. All they share with the calling thread
 * is errno, which nobody reads meanwhile.
 */
#include "base/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/procfs.h"

#define STACK_BYTES (64u << 10)
#define NS_PER_MS INT64_C(1000000)
/* How long a killed program may take to die. */
#define DEATH_NS (1000 * NS_PER_MS)
/* Poll interval where the kernel cannot notify us. */
#define LOOK_MS 10

extern char **environ;

/* Everything that guard and child need, prepared in advance. */
struct run {
	const struct ts_subprocess *program;
	struct ts_subprocess_result *result; /* its output buffer holds everything */
	char *const *environment;
	pid_t caller;
	/* Of the guard. */
	pid_t pid;
	int pid_fd;    /* -1: not supported by this kernel */
	int caller_fd; /* likewise */
	int output_fd; /* -1: closed at the other end */
	int input_fd;  /* the program's end */
	int64_t started_ns;
	bool finished;
	char stacks[2][STACK_BYTES] __attribute__((aligned(16)));
};

/* ---- where is it? ---- */

static bool is_program(const char *path)
{
	struct stat status;

	return path[0] == '/' && !stat(path, &status) && S_ISREG(status.st_mode) &&
	       !access(path, X_OK);
}

bool ts_subprocess_find(const char *name, const char *const *folders, char *ret_path, size_t bytes)
{
	const char *path = getenv("PATH");

	while (path && *path) {
		size_t length = strcspn(path, ":");

		snprintf(ret_path, bytes, "%.*s/%s", (int)length, path, name);
		if (length && is_program(ret_path))
			return true;
		path += length + (path[length] == ':');
	}
	for (size_t i = 0; folders && folders[i]; i++) {
		snprintf(ret_path, bytes, "%s/%s", folders[i], name);
		if (is_program(ret_path))
			return true;
	}
	return false;
}

/* ---- its environment ---- */

/* Length of NAME in "NAME=VALUE" or "NAME". */
static size_t name_length(const char *variable)
{
	return strcspn(variable, "=");
}

static bool has_name(const char *const *list, const char *variable)
{
	size_t length = name_length(variable);

	for (size_t i = 0; list && list[i]; i++)
		if (name_length(list[i]) == length && strncmp(list[i], variable, length) == 0)
			return true;
	return false;
}

static size_t count_of(const char *const *list)
{
	size_t count = 0;

	while (list && list[count])
		count++;
	return count;
}

/*
 * Our environment with the changes, without what would load our agent. Caller frees the list, not
 * the strings.
 */
static char **make_environment(const char *const *changes)
{
	static const char *const never[] = { "LD_PRELOAD",
					     "TRACESMITH_OUT",
					     "FERRUM_TRACE_OUT",
					     "TRACESMITH_AGENT",
					     "TRACESMITH_LIVE",
					     "CUDA_INJECTION64_PATH",
					     "NVTX_INJECTION64_PATH",
					     NULL };
	const char *const *ours = (const char *const *)environ;
	const char **list = ts_alloc_array(count_of(ours) + count_of(changes) + 1, sizeof(*list));
	size_t used = 0;

	if (!list)
		return NULL;
	for (size_t i = 0; ours && ours[i]; i++)
		if (!has_name(never, ours[i]) && !has_name(changes, ours[i]))
			list[used++] = ours[i];
	for (size_t i = 0; changes && changes[i]; i++)
		if (strchr(changes[i], '='))
			list[used++] = changes[i];
	list[used] = NULL;
	return (char **)list;
}

/* ---- the child, until it is the program ---- */

void ts_subprocess_close_from(int first)
{
#ifdef SYS_close_range
	if (!syscall(SYS_close_range, first, ~0u, 0))
		return;
#endif
	struct rlimit limit = { 0, 0 };

	getrlimit(RLIMIT_NOFILE, &limit);
	for (int fd = first; fd < (int)TS_MIN(limit.rlim_cur, 65536); fd++)
		close(fd);
}

/*
 * Guard and program have their own signal tables. Ours may ignore SIGCHLD, and then there would be
 * no status.
 */
static void forget_handlers(void)
{
	struct sigaction plain = { .sa_handler = SIG_DFL };

	for (int number = 1; number < NSIG; number++)
		sigaction(number, &plain, NULL);
}

/* All signals are blocked until here. */
static void unblock_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int become_program(void *argument)
{
	struct run *run = argument;

	/* 0 is already /dev/null; the pipe may be 1 or 2 and must not close itself. */
	int output_fd = fcntl(run->input_fd, F_DUPFD, 3);

	setsid();
	/* In case somebody kills the guard. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(output_fd, 1);
	dup2(output_fd, 2);
	ts_subprocess_close_from(3);
	unblock_signals();
	execve(run->program->arguments[0], (char *const *)(uintptr_t)run->program->arguments,
	       run->environment);
	run->result->spawn_errno = errno;
	return 127;
}

/* ---- the guard ---- */

static int open_process(pid_t pid)
{
#ifdef SYS_pidfd_open
	return (int)syscall(SYS_pidfd_open, pid, 0);
#else
	return -1;
#endif
}

static bool has_caller(const struct run *run)
{
	return getppid() == run->caller;
}

/* Close our descriptors: a lock or pipe must not outlive ours. */
static bool prepare_descriptors(struct run *run)
{
	int ends[2];

	ts_subprocess_close_from(0);
	if (open("/dev/null", O_RDONLY) || pipe2(ends, O_CLOEXEC))
		return false;
	run->output_fd = ends[0];
	run->input_fd = ends[1];
	run->caller_fd = open_process(run->caller);
	return !fcntl(run->output_fd, F_SETFL, O_NONBLOCK);
}

static bool start_program(struct run *run)
{
	run->pid = clone(become_program, run->stacks[1] + STACK_BYTES,
			 CLONE_VM | CLONE_VFORK | SIGCHLD, run);
	if (run->pid < 0) {
		run->result->spawn_errno = errno;
		return false;
	}
	close(run->input_fd);
	run->pid_fd = open_process(run->pid);
	return !run->result->spawn_errno;
}

/* WNOWAIT: its pid and process group stay reserved. */
static bool has_ended(const struct run *run)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_PID, (id_t)run->pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
	       info.si_pid == run->pid;
}

/* Everything available now. */
static void read_output(struct run *run)
{
	struct ts_text *output = &run->result->output;
	size_t max_bytes = run->program->max_bytes;

	while (run->output_fd >= 0 && !run->result->cut) {
		/* One byte beyond the limit, to detect excess. */
		ssize_t got = read(run->output_fd, output->data + output->length,
				   max_bytes + 1 - output->length);

		if (got > 0) {
			run->result->cut = (size_t)got > max_bytes - output->length;
			output->length = TS_MIN(output->length + (size_t)got, max_bytes);
		} else if (got < 0 && errno == EAGAIN) {
			return;
		} else if (got == 0 || errno != EINTR) {
			close(run->output_fd);
			run->output_fd = -1;
		}
	}
}

/* Until it prints or exits, the caller dies, or `until_ns` is reached. */
static void wait_for_something(const struct run *run, int64_t until_ns)
{
	int64_t left_ns = until_ns - ts_clock_monotonic_ns();
	int left_ms = left_ns <= 0 ? 0 : (int)TS_MIN(left_ns / NS_PER_MS + 1, 3600000);
	struct pollfd fds[] = {
		{ .fd = run->output_fd, .events = POLLIN },
		{ .fd = run->pid_fd, .events = POLLIN },
		{ .fd = run->caller_fd, .events = POLLIN },
	};
	bool has_wakeups = run->pid_fd >= 0 && run->caller_fd >= 0;

	poll(fds, TS_ARRAY_SIZE(fds), has_wakeups ? left_ms : TS_MIN(left_ms, LOOK_MS));
}

static void watch(struct run *run)
{
	int64_t until_ns;

	if (__builtin_add_overflow(run->started_ns, run->program->limit_ns, &until_ns))
		until_ns = INT64_MAX;
	for (;;) {
		bool ended = has_ended(run);

		/*
		 * In this order: output from before its exit is available now. Its children may
		 * keep the pipe open.
		 */
		read_output(run);
		if (ended || run->result->cut || !has_caller(run))
			return;
		if (ts_clock_monotonic_ns() >= until_ns) {
			run->result->timed_out = true;
			return;
		}
		wait_for_something(run, until_ns);
	}
}

static void note_end(struct ts_subprocess_result *result, int status)
{
	if (WIFEXITED(status))
		result->exit_code = WEXITSTATUS(status);
	else if (!result->timed_out && !result->cut)
		result->signal = WTERMSIG(status);
}

/*
 * As far as the kernel lists them (CONFIG_PROC_CHILDREN). No pid can have been reused: nobody else
 * reaps them.
 */
static void kill_children(void)
{
	int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
	char text[4096];
	ssize_t got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
	const char *at = text;
	uint64_t pid;

	if (fd >= 0)
		close(fd);
	text[TS_MAX(got, 0)] = '\0';
	while ((at = ts_procfs_scan_number(at, &pid)))
		if (pid > 1 && pid <= INT32_MAX)
			kill((pid_t)pid, SIGKILL);
}

/*
 * Orphans are our children now, from any group or session; when one dies, its children follow. Ends
 * when none is left.
 */
static void end_children(int64_t until_ns)
{
	for (;;) {
		pid_t pid = waitpid(-1, NULL, WNOHANG);

		if (pid < 0)
			return;
		if (pid > 0)
			continue;
		kill_children();
		if (ts_clock_monotonic_ns() >= until_ns)
			return;
		poll(NULL, 0, 1);
	}
}

/* From now on only the program's exit counts. */
static void close_others(struct run *run)
{
	if (run->output_fd >= 0)
		close(run->output_fd);
	if (run->caller_fd >= 0)
		close(run->caller_fd);
	run->output_fd = run->caller_fd = -1;
}

/* Kills it and everything it started. One that hangs in the kernel is left behind. */
static void finish(struct run *run)
{
	int64_t until_ns = ts_clock_monotonic_ns() + DEATH_NS;
	int status = 0;

	close_others(run);
	kill(-run->pid, SIGKILL);
	kill(run->pid, SIGKILL);
	while (!has_ended(run) && ts_clock_monotonic_ns() < until_ns)
		wait_for_something(run, until_ns);
	if (waitpid(run->pid, &status, WNOHANG) == run->pid)
		note_end(run->result, status);
	else
		run->result->remains = run->pid;
	end_children(until_ns);
	run->result->ran_ns = ts_clock_monotonic_ns() - run->started_ns;
}

static int guard(void *argument)
{
	struct run *run = argument;

	if (!has_caller(run))
		return 1;
	forget_handlers();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (!prepare_descriptors(run)) {
		run->result->spawn_errno = errno;
	} else if (start_program(run)) {
		watch(run);
		finish(run);
	}
	run->finished = true;
	return 0;
}

/* ---- the caller ---- */

/* Returns when the guard has exited. */
static int start_guard(struct run *run)
{
	sigset_t all, before;
	int error = 0, status = 0;
	pid_t pid;

	/* Our signal handlers must not run in guard or child. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = clone(guard, run->stacks[0] + STACK_BYTES, CLONE_VM, run);
	if (pid < 0)
		error = errno;
	else
		while (waitpid(pid, &status, __WCLONE) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	/* Somebody killed it. */
	if (!error && !run->finished)
		error = run->result->spawn_errno ? run->result->spawn_errno : ECANCELED;
	return error;
}

static int run_guarded(struct run *run, const struct ts_subprocess *program,
		       struct ts_subprocess_result *result)
{
	TS_AUTO_FREE char **environment = make_environment(program->environment);
	int error;

	if (!environment || program->max_bytes == SIZE_MAX ||
	    !ts_text_reserve(&result->output, program->max_bytes + 1))
		return ENOMEM;
	run->program = program;
	run->result = result;
	run->environment = environment;
	run->caller = getpid();
	run->pid_fd = run->caller_fd = run->output_fd = -1;
	run->started_ns = ts_clock_monotonic_ns();
	error = start_guard(run);
	if (!ts_process_exists(result->remains, &result->remains_start))
		result->remains = 0;
	return error ? error : result->spawn_errno;
}

int ts_subprocess_run(const struct ts_subprocess *program, struct ts_subprocess_result *ret_result,
		      struct ts_error *err)
{
	/*
	 * On the heap, so that a sanitizer forgets the frames of an earlier child that never
	 * returned on these stacks.
	 */
	TS_AUTO_FREE struct run *run = calloc(1, sizeof(*run));

	memset(ret_result, 0, sizeof(*ret_result));
	ret_result->exit_code = -1;
	ret_result->limit_ns = program->limit_ns;
	ret_result->spawn_errno = run ? run_guarded(run, program, ret_result) : ENOMEM;
	if (ret_result->spawn_errno)
		return ts_error_errno(err, ret_result->spawn_errno, "cannot start '%s'",
				      program->arguments[0]);
	return TS_OK;
}

void ts_subprocess_result_release(struct ts_subprocess_result *result)
{
	ts_text_release(&result->output);
}

/* ---- how it ended ---- */

bool ts_subprocess_succeeded(const struct ts_subprocess_result *result)
{
	return !result->spawn_errno && !result->timed_out && !result->cut && !result->exit_code;
}

const char *ts_subprocess_describe_end(const struct ts_subprocess_result *result, char *buffer,
				       size_t bytes)
{
	char text[TS_FORMAT_BYTES];

	if (result->spawn_errno)
		snprintf(buffer, bytes, "could not be started: %s", strerror(result->spawn_errno));
	else if (result->timed_out)
		snprintf(buffer, bytes, "did not end within %s and was killed",
			 ts_format_duration_ns(text, sizeof(text), result->limit_ns));
	else if (result->cut)
		snprintf(buffer, bytes, "printed more than %s and was killed",
			 ts_format_bytes(text, sizeof(text), result->output.length));
	else if (result->exit_code >= 0)
		snprintf(buffer, bytes, "exited with code %d", result->exit_code);
	else
		snprintf(buffer, bytes, "was killed by signal %d", result->signal);
	return buffer;
}
