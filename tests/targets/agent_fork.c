/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates processes in every possible way; all of them emit and print their event counts:
 * `agent_fork CASE`.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "agent_count.h"

extern char **environ;

static const char *self;

/* Waits for all children. One that was killed, or that is not ours, is an error. */
static unsigned int children;

static void wait_for_children(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, 0)) > 0) {
		children--;
		if (status)
			_exit(5);
	}
	if (children || errno != ECHILD)
		_exit(6);
}

static void end_child(void)
{
	print_emitted();
	wait_for_children();
	_exit(0);
}

/* The child has not emitted yet. */
static bool is_child(pid_t pid)
{
	if (pid < 0)
		_exit(7);
	if (pid == 0) {
		emitted = 0;
		children = 0;
	} else {
		children++;
	}
	return pid == 0;
}

/* Parent, child and grandchild emit before and after; one child emits nothing. */
static void run_tree(void)
{
	emit_some(5);
	if (is_child(fork())) {
		emit_some(7);
		if (is_child(fork())) {
			emit_some(3);
			end_child();
		}
		emit_some(2);
		end_child();
	}
	if (is_child(fork()))
		end_child();
	emit_some(11);
}

static void run_late(void)
{
	/* The grandparent has emitted, the parent has not. */
	emit_some(4);
	if (is_child(fork())) {
		if (is_child(fork())) {
			emit_some(6);
			end_child();
		}
		end_child();
	}
}

/* Handlers of pthread_atfork() do not see these. */
static void run_clone(void)
{
	emit_some(5);
	if (is_child((pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0))) {
		emit_some(8);
		if (is_child((pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0))) {
			emit_some(9);
			end_child();
		}
		end_child();
	}
	emit_some(1);
}

static void run_vfork(void)
{
	char *arguments[] = { (char *)self, (char *)"emit", NULL };
	pid_t pid;

	emit_some(5);
	pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
	if (pid == 0) {
		execv(self, arguments);
		_exit(8);
	}
	children += pid > 0;
	if (posix_spawn(&pid, self, NULL, NULL, arguments, environ))
		_exit(8);
	children++;
	emit_some(5);
}

/* The same process twice: two areas. */
static void run_exec(void)
{
	char *arguments[] = { (char *)self, (char *)"emit", NULL };

	emit_some(12);
	print_emitted();
	execv(self, arguments);
	_exit(8);
}

/*
 * The child inherits a manual tracer, too. (There is no recorder, so it keeps everything in
 * memory.)
 */
static void run_by_hand(void)
{
	struct ts_tracer *tracer = ts_tracer_enabled("by-hand.sbt");
	bool child;

	emit_some(5);
	ts_tracer_instant(tracer, "hand", "count", TS_TRACK_THREAD, NULL, 0);
	emitted++;
	child = is_child(fork());
	emit_some(2);
	for (int i = 0; i < 3; i++, emitted++)
		ts_tracer_instant(tracer, "hand", "count", 7, NULL, 0);
	if (child)
		end_child();
}

static volatile bool stop;

static void *emit_always(void *unused)
{
	(void)unused;
	while (!stop)
		emit_some(10);
	return NULL;
}

static void *emit_three(void *unused)
{
	emit_some(3);
	return unused;
}

/* Short-lived threads, which take the agent's lock. */
static void *make_threads(void *unused)
{
	(void)unused;
	while (!stop) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, emit_three, NULL))
			_exit(7);
		pthread_join(thread, NULL);
	}
	return NULL;
}

static void run_busy(void)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, i < 2 ? emit_always : make_threads, NULL))
			_exit(7);
	for (int i = 0; i < 60; i++) {
		if (is_child(i % 3 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0))) {
			emit_some(20);
			end_child();
		}
		emit_some(1);
	}
	stop = true;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = { { "tree", run_tree },   { "late", run_late }, { "clone", run_clone },
		      { "vfork", run_vfork }, { "exec", run_exec }, { "busy", run_busy },
		      { "hand", run_by_hand } };

	self = argv[0];
	if (argc == 2 && !strcmp(argv[1], "emit"))
		emit_some(6);
	for (size_t i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(argv[1], cases[i].name))
			cases[i].run();
	print_emitted();
	wait_for_children();
	return 0;
}
