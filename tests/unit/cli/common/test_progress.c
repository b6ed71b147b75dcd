/* SPDX-License-Identifier: Apache-2.0 */
/* Signals end work that takes no notice of them, and leave other work its time. */
#include "cli/common/progress.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/runner.h"

/* Starts work in another process, which has caught its signals when this returns. */
static pid_t start(void (*work)(struct ts_progress *progress))
{
	int ready[2];
	pid_t pid;
	char byte;

	TS_CHECK_INT(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		struct ts_progress progress;

		ts_progress_start(&progress, "test", TS_PROGRESS_ROWS);
		(void)!write(ready[1], "x", 1);
		close(ready[0]);
		close(ready[1]);
		work(&progress);
		_exit(0);
	}
	TS_CHECK_INT(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static int status_of(pid_t pid)
{
	int status = -1;

	TS_CHECK_INT(waitpid(pid, &status, 0), pid);
	return status;
}

static void compute_forever(struct ts_progress *progress)
{
	volatile unsigned int count = 0;

	(void)progress;
	for (;;)
		count++;
}

static void check_killed(int status, int number)
{
	TS_CHECK(WIFSIGNALED(status));
	TS_CHECK_INT(WTERMSIG(status), number);
}

TS_TEST(sigterm_ends_work_without_steps)
{
	pid_t pid = start(compute_forever);

	kill(pid, SIGTERM);
	check_killed(status_of(pid), SIGTERM);
}

/* The second counts as soon as the first was delivered, which a pending signal shows. */
TS_TEST(two_interrupts_end_work_without_steps)
{
	pid_t pid = start(compute_forever);
	int status = 0;

	for (int sent = 0; sent < 2000 && !waitpid(pid, &status, WNOHANG); sent++) {
		kill(pid, SIGINT);
		usleep(50000);
	}
	check_killed(status, SIGINT);
}

/* Finishing takes longer than a second, during which nothing asks. */
static void finish_slowly(struct ts_progress *progress)
{
	while (!ts_progress_step(progress, 0, 0))
		usleep(1000);
	for (int i = 0; i < 150; i++)
		usleep(10000);
	_exit(ts_stop_signal());
}

TS_TEST(work_that_takes_notice_may_finish)
{
	static const int numbers[] = { SIGINT, SIGTERM };

	for (int i = 0; i < 2; i++) {
		pid_t pid = start(finish_slowly);
		int status;

		kill(pid, numbers[i]);
		status = status_of(pid);
		TS_CHECK(WIFEXITED(status));
		TS_CHECK_INT(WEXITSTATUS(status), numbers[i]);
	}
}
