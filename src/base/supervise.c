/* SPDX-License-Identifier: Apache-2.0 */
/* Forks a child that does the work, and waits for it: for its end, a signal, or its time limit. */
#include "base/supervise.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/output.h"

#define NS_PER_MS INT64_C(1000000)
#define TICK_NS (50 * NS_PER_MS)
/*
 * How long the child may take to end by itself after a signal, and to die when it is killed: the
 * kernel needs a second to release some GiB, more on a busy machine.
 */
#define GRACE_NS (500 * NS_PER_MS)
#define DEATH_NS (3000 * NS_PER_MS)

struct watch {
	const struct ts_heartbeat *heartbeat;
	struct ts_supervised *end;
	pid_t pid;
	sigset_t signals; /* those that are waited for */
	bool is_gone, is_killed;
	int stopped_by;    /* the child: by Ctrl-Z, a debugger; 0: it runs */
	uint64_t beats;    /* the last seen */
	int64_t still_ns;  /* since then */
	int64_t waited_ns; /* since the stop signal, or the kill */
	int64_t now_ns;
};

void *ts_supervise_alloc(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* ---- signals ---- */

/* Those that end a process and are not ignored (nohup), and the end of the child. */
static void list_signals(sigset_t *ret_signals)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action;

	sigemptyset(ret_signals);
	sigaddset(ret_signals, SIGCHLD);
	for (size_t i = 0; i < TS_ARRAY_SIZE(numbers); i++)
		if (!sigaction(numbers[i], NULL, &action) && action.sa_handler != SIG_IGN)
			sigaddset(ret_signals, numbers[i]);
}

/* If it was ignored, there would be no exit status. */
static void stop_ignoring_children(void)
{
	struct sigaction action;

	if (!sigaction(SIGCHLD, NULL, &action) && action.sa_handler == SIG_IGN)
		signal(SIGCHLD, SIG_DFL);
}

/* ---- the parent ---- */

static void end_child(struct watch *watch)
{
	watch->is_killed = true;
	watch->waited_ns = 0;
	kill(watch->pid, SIGKILL);
}

static void on_signal(struct watch *watch, int number)
{
	if (number <= 0 || number == SIGCHLD)
		return;
	watch->end->stop_signal = number;
	/* From a terminal the child has it as well; that it comes twice is harmless. */
	if (!watch->is_gone)
		kill(watch->pid, number);
}

/* Takes notice of what happened to the child. */
static void look(struct watch *watch)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(watch->pid, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
		if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
			watch->stopped_by = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
			continue;
		}
		watch->is_gone = true;
		if (WIFEXITED(status))
			watch->end->exit_code = WEXITSTATUS(status);
		else
			watch->end->signal = WTERMSIG(status);
		return;
	}
	/* Somebody else reaped it. */
	if (pid < 0 && errno != EINTR)
		watch->is_gone = true;
}

/*
 * A terminal stops the child alone if only that reads or writes it (stty tostop). This process
 * stops with it: the shell has to see that, or it will not continue them.
 */
static void stop_with_child(struct watch *watch)
{
	raise(watch->stopped_by);
	watch->stopped_by = 0;
	kill(watch->pid, SIGCONT);
}

/* One that has to end will be killed. */
static bool is_stopped_by_terminal(const struct watch *watch)
{
	return !watch->is_gone && !watch->is_killed && !watch->end->stop_signal &&
	       (watch->stopped_by == SIGTSTP || watch->stopped_by == SIGTTIN ||
		watch->stopped_by == SIGTTOU);
}

/* A tick that came late because this process was stopped, or the machine busy, counts as one. */
static void count_time(struct watch *watch)
{
	int64_t before_ns = watch->now_ns, passed_ns;
	uint64_t beats = __atomic_load_n(&watch->heartbeat->beats, __ATOMIC_ACQUIRE);

	watch->now_ns = ts_clock_monotonic_ns();
	passed_ns = TS_MIN(watch->now_ns - before_ns, 2 * TICK_NS);
	if (watch->end->stop_signal || watch->is_killed)
		watch->waited_ns += passed_ns;
	if (beats != watch->beats)
		watch->still_ns = 0;
	else if (!watch->stopped_by)
		watch->still_ns += passed_ns;
	watch->beats = beats;
}

static void check_limits(struct watch *watch)
{
	int64_t limit_ns = __atomic_load_n(&watch->heartbeat->limit_ns, __ATOMIC_ACQUIRE);

	if (watch->is_gone)
		return;
	if (watch->is_killed) {
		if (watch->waited_ns >= DEATH_NS)
			watch->end->remains = watch->pid;
	} else if (watch->end->stop_signal) {
		if (watch->waited_ns >= GRACE_NS)
			end_child(watch);
	} else if (limit_ns > 0 && watch->still_ns >= limit_ns) {
		watch->end->timed_out = true;
		watch->end->limit_ns = limit_ns;
		end_child(watch);
	}
}

static void wait_for_child(struct watch *watch)
{
	const struct timespec tick = { .tv_nsec = TICK_NS };

	watch->now_ns = ts_clock_monotonic_ns();
	while (!watch->is_gone && !watch->end->remains) {
		/* For longer than a tick: a shell continues both, but not at the same instant. */
		bool was_stopped = is_stopped_by_terminal(watch);

		on_signal(watch, sigtimedwait(&watch->signals, NULL, &tick));
		look(watch);
		if (was_stopped && is_stopped_by_terminal(watch))
			stop_with_child(watch);
		count_time(watch);
		check_limits(watch);
	}
	/* Also of a child that called exit() in the middle of its work. */
	ts_output_remove_parts_of(watch->pid);
}

/* ---- both ---- */

/* Without a parent there is nobody to end the child. */
static void start_child(pid_t parent, const sigset_t *mask)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	pthread_sigmask(SIG_SETMASK, mask, NULL);
}

int ts_supervise(const struct ts_heartbeat *heartbeat, struct ts_supervised *ret_end,
		 struct ts_error *err)
{
	struct watch watch = { .heartbeat = heartbeat, .end = ret_end };
	pid_t parent = getpid();
	sigset_t before;
	int rc = ts_output_share_parts(err);

	if (rc)
		return rc;
	*ret_end = (struct ts_supervised){ .exit_code = -1 };
	stop_ignoring_children();
	list_signals(&watch.signals);
	pthread_sigmask(SIG_BLOCK, &watch.signals, &before);
	watch.pid = fork();
	if (watch.pid == 0) {
		start_child(parent, &before);
		ret_end->is_child = true;
		return TS_OK;
	}
	if (watch.pid < 0)
		rc = ts_error_errno(err, errno, "cannot start a process");
	else
		wait_for_child(&watch);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}
