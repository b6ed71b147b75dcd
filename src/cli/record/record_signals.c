/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals of a process that stands in for another one. They are blocked and read from a
 * descriptor: no handler runs, threads of the recorder never see them, and nothing that the
 * program inherits has been changed.
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

/* So many generations below the program a sender is still taken for its own. */
#define GENERATIONS 64

static bool is_ignored(int number)
{
	struct sigaction action;

	return !sigaction(number, NULL, &action) && action.sa_handler == SIG_IGN;
}

int ts_record_signals_take(struct ts_record_signals *signals, struct ts_error *err)
{
	static const int keyboard[] = { SIGINT, SIGQUIT };
	static const int asked[] = { SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };
	/* Broken pipes and file size limits come as errors of write(), not as ends of us. */
	static const int harmless[] = { SIGPIPE, SIGXFSZ };
	sigset_t read_here, blocked;

	sigemptyset(&signals->ignored);
	sigemptyset(&signals->not_typed);
	sigemptyset(&read_here);
	/* Shells have background jobs ignore the keyboard; a kill is meant for us all the same. */
	for (size_t i = 0; i < TS_ARRAY_SIZE(keyboard); i++) {
		sigaddset(&read_here, keyboard[i]);
		if (is_ignored(keyboard[i]))
			sigaddset(&signals->not_typed, keyboard[i]);
	}
	/* A blocked signal is queued even if it is ignored: nohup would be in vain. */
	for (size_t i = 0; i < TS_ARRAY_SIZE(asked); i++) {
		if (!is_ignored(asked[i]))
			sigaddset(&read_here, asked[i]);
	}
	/* Where it is ignored, children leave no status. */
	if (is_ignored(SIGCHLD)) {
		sigaddset(&signals->ignored, SIGCHLD);
		signal(SIGCHLD, SIG_DFL);
	}
	sigaddset(&read_here, SIGCHLD);
	blocked = read_here;
	for (size_t i = 0; i < TS_ARRAY_SIZE(harmless); i++)
		sigaddset(&blocked, harmless[i]);
	signals->fd = signalfd(-1, &read_here, SFD_CLOEXEC | SFD_NONBLOCK);
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

	/* Ctrl-C and hang-ups go to the whole process group. */
	if (info->ssi_code == SI_KERNEL)
		return true;
	/* kill(0, ...) of the program or of one that it started: it knows what it did. */
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

	/* The program has left its core already; ours would replace it. */
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
	/* What main() would do later. */
	ts_stdout_flush(&err);
	die_of(WTERMSIG(wait_status));
	/* Still here: we are pid 1 of a container. */
	return TS_EXIT_SIGNAL + WTERMSIG(wait_status);
}
