/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs checks in child processes, in parallel, and reads their results from pipes. Each child is a
 * process group, so that whatever it starts ends with it. Nothing that a child does, and no state
 * that a driver leaves it in, may block the parent: a child that does not answer in time is killed
 * and, if even that takes too long, abandoned.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "doctor/doctor.h"

#define NS_PER_MS INT64_C(1000000)
/* How often to poll children that have answered, and how often to call `waiting`. */
#define LOOK_MS 5
#define PROGRESS_NS (100 * NS_PER_MS)
/* How long to wait for a killed child; one that is stuck in a driver may never exit. */
#define REAP_NS (300 * NS_PER_MS)
/* Children at a time: must fit into a user's process limit. */
#define AT_ONCE 16

#define LONGEST_LIMIT_S 3600.0

#define ANSWER_MAGIC UINT64_C(0x7473646f63746f72)

struct answer {
	uint64_t magic;
	struct ts_finding finding;
	uint64_t end; /* ~magic */
};

/* A running child. */
struct run {
	bool is_running; /* false: free slot */
	struct ts_probe *probe;
	pid_t pid;
	int fd; /* -1: closed */
	int64_t begun_ns;
	size_t got; /* bytes received, including those beyond `answer` */
	bool is_killed;
	int64_t killed_ns;
	struct answer answer;
};

/* ---- the child ---- */

/*
 * Detaches from the terminal, so that vendor libraries write nothing to it, and disables core
 * files.
 */
static void leave_terminal(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; null >= 0 && fd <= 2; fd++)
		dup2(null, fd);
}

static void restore_signals(void)
{
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void become_probe(const struct ts_check *check, const struct ts_machine *machine, int fd,
			 pid_t parent)
{
	struct rlimit no_core = { 0, 0 };
	struct answer answer = { .magic = ANSWER_MAGIC, .end = ~ANSWER_MAGIC };

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	setrlimit(RLIMIT_CORE, &no_core);
	leave_terminal();
	restore_signals();
	ts_check_run(check, machine, &answer.finding);
	/* Less than PIPE_BUF, so the write is atomic. */
	(void)!write(fd, &answer, sizeof(answer));
	_exit(0);
}
_Static_assert(sizeof(struct answer) < 4096, "an answer is written at once");

/* ---- results ---- */

static bool is_text(const char *text, size_t bytes)
{
	return memchr(text, '\0', bytes) != NULL;
}

static bool is_complete(const struct run *run)
{
	const struct answer *answer = &run->answer;

	return run->got == sizeof(*answer) && answer->magic == ANSWER_MAGIC &&
	       answer->end == ~ANSWER_MAGIC &&
	       (unsigned int)answer->finding.state < TS_CHECK_STATES &&
	       is_text(answer->finding.text, sizeof(answer->finding.text)) &&
	       is_text(answer->finding.fix, sizeof(answer->finding.fix)) &&
	       is_text(answer->finding.note, sizeof(answer->finding.note));
}

static void describe_silence(struct run *run, int status, int64_t limit_ns)
{
	struct ts_finding *finding = &run->probe->finding;
	const char *signal_name = WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : NULL;

	if (run->is_killed) {
		ts_finding_set(finding, TS_CHECK_UNKNOWN, "did not answer within %g s",
			       (double)limit_ns / 1e9);
		ts_finding_fix(finding, "tracesmith doctor --limit %g %s",
			       TS_MIN((double)limit_ns / 1e8, LONGEST_LIMIT_S),
			       run->probe->check->id);
		ts_finding_note(finding, "raises the limit");
	} else if (WIFSIGNALED(status)) {
		ts_finding_set(finding, TS_CHECK_UNKNOWN, "crashed with SIG%s",
			       signal_name ? signal_name : "?");
	} else if (run->got) {
		ts_finding_set(finding, TS_CHECK_UNKNOWN, "gave an invalid answer");
	} else {
		ts_finding_set(finding, TS_CHECK_UNKNOWN,
			       "exited without an answer (exit status %d)", WEXITSTATUS(status));
	}
}

/* A complete answer counts, even if the child crashed later. */
static void finish(struct run *run, int status, int64_t limit_ns)
{
	if (is_complete(run))
		run->probe->finding = run->answer.finding;
	else
		describe_silence(run, status, limit_ns);
	run->probe->took_ns = ts_clock_monotonic_ns() - run->begun_ns;
	run->probe->is_done = true;
	if (run->fd >= 0)
		close(run->fd);
	*run = (struct run){ .fd = -1 };
}

/* ---- the parent ---- */

static void fail_to_start(struct ts_probe *probe, const char *what, int error)
{
	ts_finding_set(&probe->finding, TS_CHECK_UNKNOWN, "cannot create a %s for the check: %s",
		       what, strerror(error));
	probe->is_done = true;
}

static void start(struct run *run, struct ts_probe *probe, const struct ts_machine *machine)
{
	pid_t parent = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC)) {
		fail_to_start(probe, "pipe", errno);
		return;
	}
	*run = (struct run){ .is_running = true,
			     .probe = probe,
			     .fd = ends[0],
			     .begun_ns = ts_clock_monotonic_ns() };
	run->pid = fork();
	if (run->pid == 0)
		become_probe(probe->check, machine, ends[1], parent);
	close(ends[1]);
	if (run->pid < 0) {
		fail_to_start(probe, "process", errno);
		close(ends[0]);
		*run = (struct run){ .fd = -1 };
		return;
	}
	setpgid(run->pid, run->pid);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

/* Reads the available bytes. Excess bytes are only counted. */
static void take(struct run *run)
{
	char rest[4096];
	ssize_t got = 1;

	while (run->fd >= 0 && got > 0) {
		size_t space = run->got < sizeof(run->answer) ? sizeof(run->answer) - run->got : 0;

		got = space ? read(run->fd, (char *)&run->answer + run->got, space)
			    : read(run->fd, rest, sizeof(rest));
		if (got > 0)
			run->got += (size_t)got;
	}
	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
		close(run->fd);
		run->fd = -1;
	}
}

/* Kills the group, since the process may have started others. */
static void kill_run(struct run *run)
{
	kill(-run->pid, SIGKILL);
	kill(run->pid, SIGKILL);
	run->is_killed = true;
	run->killed_ns = ts_clock_monotonic_ns();
}

static void look(struct run *run, int64_t now_ns, int64_t limit_ns)
{
	int status = 0;
	pid_t ended;

	take(run);
	ended = waitpid(run->pid, &status, WNOHANG);
	if (ended == 0 && now_ns - run->begun_ns < limit_ns)
		return;
	if (ended == 0 && !run->is_killed) {
		kill_run(run);
		return;
	}
	if (ended == 0 && now_ns - run->killed_ns < REAP_NS)
		return;
	/* Processes that it left in its group. */
	kill(-run->pid, SIGKILL);
	take(run);
	finish(run, status, limit_ns);
}

static void wait_for_some(const struct run *runs)
{
	struct pollfd waits[AT_ONCE];
	nfds_t count = 0;
	int timeout_ms = 50;

	for (size_t i = 0; i < AT_ONCE; i++) {
		if (!runs[i].is_running)
			continue;
		/*
		 * It has answered or was killed: wait for its exit, for which no descriptor wakes
		 * us.
		 */
		if (runs[i].fd < 0 || runs[i].got || runs[i].is_killed)
			timeout_ms = LOOK_MS;
		else
			waits[count++] = (struct pollfd){ runs[i].fd, POLLIN, 0 };
	}
	poll(waits, count, timeout_ms);
}

/* Starts as many as there are free slots; returns the number that run. */
static size_t fill(struct run *runs, struct ts_probe *probes, size_t count, size_t *next,
		   const struct ts_machine *machine)
{
	size_t running = 0;

	for (size_t i = 0; i < AT_ONCE; i++) {
		while (!runs[i].is_running && *next < count)
			start(&runs[i], &probes[(*next)++], machine);
		running += runs[i].is_running;
	}
	return running;
}

void ts_probes_run(struct ts_probe *probes, size_t count, const struct ts_machine *machine,
		   const struct ts_probe_options *options)
{
	int64_t limit_ns = options->limit_ns ? options->limit_ns : TS_PROBE_LIMIT_NS;
	int64_t begun_ns = ts_clock_monotonic_ns(), progress_ns = begun_ns, now_ns;
	struct run runs[AT_ONCE] = { 0 };
	size_t next = 0;

	for (size_t i = 0; i < AT_ONCE; i++)
		runs[i].fd = -1;
	while (fill(runs, probes, count, &next, machine)) {
		wait_for_some(runs);
		now_ns = ts_clock_monotonic_ns();
		for (size_t i = 0; i < AT_ONCE; i++) {
			if (runs[i].is_running)
				look(&runs[i], now_ns, limit_ns);
		}
		if (options->waiting && now_ns - progress_ns >= PROGRESS_NS) {
			options->waiting(options->context, probes, count, now_ns - begun_ns);
			progress_ns = now_ns;
		}
	}
}
