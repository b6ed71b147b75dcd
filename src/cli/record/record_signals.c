/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals of a process that stands in for another. They are blocked and read from a descriptor: no
 * handler runs, the recorder's threads never see them, and the program inherits nothing changed.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/process.h"
#include "cli/common/cli_output.h"
#include "cli/common/report.h"
#include "cli/record/record.h"

/* Maximum depth at which a sender still counts as a descendant of the program. */
#define GENERATIONS 64

static bool is_ignored(int number)
{
	struct sigaction action;

	return !sigaction(number, NULL, &action) && action.sa_handler == SIG_IGN;
}

int ts_record_signals_take(struct ts_record_signals *signals, struct ts_error *err)
{
	static const int keyboard[] = { SIGINT, SIGQUIT };
	static const int requests[] = { SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };
	/* Broken pipes and file size limits become errors of write() instead of killing us. */
	static const int harmless[] = { SIGPIPE, SIGXFSZ };
	sigset_t handled, blocked;

	sigemptyset(&signals->ignored);
	sigemptyset(&signals->not_typed);
	sigemptyset(&handled);
	/* Shells make background jobs ignore keyboard signals, but kill(1) must still work. */
	for (size_t i = 0; i < TS_ARRAY_SIZE(keyboard); i++) {
		sigaddset(&handled, keyboard[i]);
		if (is_ignored(keyboard[i]))
			sigaddset(&signals->not_typed, keyboard[i]);
	}
	/* A blocked signal is queued even if ignored, which would defeat nohup. */
	for (size_t i = 0; i < TS_ARRAY_SIZE(requests); i++) {
		if (!is_ignored(requests[i]))
			sigaddset(&handled, requests[i]);
	}
	/* If SIGCHLD is ignored, children leave no wait status. */
	if (is_ignored(SIGCHLD)) {
		sigaddset(&signals->ignored, SIGCHLD);
		signal(SIGCHLD, SIG_DFL);
	}
	sigaddset(&handled, SIGCHLD);
	blocked = handled;
	for (size_t i = 0; i < TS_ARRAY_SIZE(harmless); i++)
		sigaddset(&blocked, harmless[i]);
	signals->fd = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals->fd < 0)
		return ts_error_errno(err, errno, "cannot receive signals");
	sigprocmask(SIG_BLOCK, &blocked, &signals->mask);
	return TS_OK;
}

bool ts_record_signals_next(const struct ts_record_signals *signals,
			    struct signalfd_siginfo *ret_info)
{
	do {
		if (read(signals->fd, ret_info, sizeof(*ret_info)) != (ssize_t)sizeof(*ret_info))
			return false;
	} while (ret_info->ssi_code == SI_KERNEL &&
		 sigismember(&signals->not_typed, (int)ret_info->ssi_signo) == 1);
	return true;
}

bool ts_record_signal_is_shared(const struct signalfd_siginfo *info, pid_t program)
{
	pid_t sender = (pid_t)info->ssi_pid;

	/* Ctrl-C goes to the whole process group, a hang-up to the leader of the session only. */
	if (info->ssi_code == SI_KERNEL)
		return info->ssi_signo != SIGHUP || getsid(0) != getpid();
	/* kill(0, ...) by the program or one of its descendants reaches the program as well. */
	for (int i = 0; sender > 1 && i < GENERATIONS; i++) {
		if (sender == program)
			return true;
		sender = ts_process_parent(sender);
	}
	return false;
}

static void die_of(int number)
{
	const struct rlimit no_core = { 0 };
	sigset_t only;

	/* The program has already dumped core; ours would replace it. */
	setrlimit(RLIMIT_CORE, &no_core);
	prctl(PR_SET_DUMPABLE, 0);
	signal(number, SIG_DFL);
	sigemptyset(&only);
	sigaddset(&only, number);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &only, NULL);
}

int ts_record_end_as(int wait_status)
{
	struct ts_error err;

	if (WIFEXITED(wait_status))
		return WEXITSTATUS(wait_status);
	/* main() would do this later. */
	ts_stdout_flush(&err);
	die_of(WTERMSIG(wait_status));
	/* Still alive: pid 1 of a container. */
	return TS_EXIT_SIGNAL + WTERMSIG(wait_status);
}
