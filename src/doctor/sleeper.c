/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes for checks to experiment on: a child, or an orphan, which is unrelated to this process
 * but of the same user. Both end with the probe or its process group, and by themselves after a
 * while.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "doctor/checks.h"

#define SLEEP_SECONDS 60

static void become_sleeper(int fd)
{
	pid_t self = getpid();

	alarm(SLEEP_SECONDS);
	(void)!write(fd, &self, sizeof(self));
	close(fd);
	for (;;)
		pause();
}

pid_t ts_sleeper_start(bool is_orphan)
{
	pid_t pid = 0, child;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return 0;
	child = fork();
	if (child == 0) {
		if (!is_orphan)
			prctl(PR_SET_PDEATHSIG, SIGKILL);
		else if (fork() != 0)
			_exit(0);
		become_sleeper(ends[1]);
	}
	close(ends[1]);
	/* Once its parent has been reaped, the orphan is a child of init only. */
	if (child > 0 && is_orphan)
		waitpid(child, NULL, 0);
	if (child < 0 || ts_read_some(ends[0], &pid, sizeof(pid)) != (ssize_t)sizeof(pid))
		pid = 0;
	close(ends[0]);
	return pid;
}

void ts_sleeper_stop(pid_t pid, bool is_orphan)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	if (!is_orphan)
		waitpid(pid, NULL, 0);
}
