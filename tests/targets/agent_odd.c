/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does to itself what daemons, sandboxes and resource limits do, and emits before and after:
 * `agent_odd CASE [ARGUMENT]`. Prints the number of events emitted, or exits with a special code if
 * it was harmed.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "agent_count.h"

static const char *argument;

static void check(bool holds, int code)
{
	if (!holds)
		_exit(code);
}

static void limit(int kind, rlim_t value)
{
	struct rlimit limits = { value, value };

	check(!setrlimit(kind, &limits), 7);
}

/* Enough for rings to grow. */
static void emit_many(void)
{
	emit_some(20000);
}

/* ---- daemons ---- */

static void fork_away(void)
{
	pid_t pid = fork();

	check(pid >= 0, 7);
	if (pid)
		_exit(0);
}

/*
 * Forks twice, closes all descriptors, and reuses those of the agent for files of the program: not
 * a byte may end up in them. `argument` is a folder.
 */
static void run_daemon(void)
{
	char path[4096];
	int output;

	emit_some(3);
	print_emitted();
	fork_away();
	check(setsid() > 0, 7);
	fork_away();
	emitted = 0;
	emit_some(1);
	check(!chdir("/"), 7);
	umask(0);
	for (int fd = 0; fd < 1024; fd++)
		close(fd);
	snprintf(path, sizeof(path), "%s/data", argument);
	for (int fd = 0; fd < 700; fd++)
		check(open(path, O_RDWR | O_CREAT | O_APPEND, 0600) == fd, 10);
	emit_many();
	for (int fd = 0; fd < 700; fd++)
		check(lseek(fd, 0, SEEK_END) == 0, 11);
	snprintf(path, sizeof(path), "%s/counts.new", argument);
	output = open(path, O_WRONLY | O_CREAT, 0600);
	check(output == 700 && dup2(output, STDOUT_FILENO) == STDOUT_FILENO, 10);
	print_emitted();
	snprintf(path + 2048, 2048, "%s/counts", argument);
	check(!rename(path, path + 2048), 7);
}

/* Descriptors, children and signals are as without the agent. */
static volatile sig_atomic_t child_signals;

static void on_child(int number)
{
	(void)number;
	child_signals++;
}

static void run_unseen(void)
{
	int before[100];

	signal(SIGCHLD, on_child);
	for (int fd = 0; fd < 100; fd++)
		before[fd] = fcntl(fd, F_GETFD);
	emit_many();
	usleep(100000);
	for (int fd = 0; fd < 100; fd++)
		check(before[fd] == fcntl(fd, F_GETFD), 12);
	check(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, 13);
	check(child_signals == 0, 14);
}

/* The settings at the start count, not later changes of the environment. */
static void run_environment(void)
{
	check(!chdir("/") && !clearenv(), 7);
	emit_many();
}

/* ---- no space ---- */

static void run_chroot(void)
{
	emit_some(5);
	check(!chroot(argument), 7);
	check(!chdir("/"), 7);
	emit_many();
}

static void run_file_limit(void)
{
	limit(RLIMIT_FSIZE, strtoull(argument, NULL, 10));
	emit_many();
}

static void run_descriptor_limit(void)
{
	limit(RLIMIT_NOFILE, strtoull(argument, NULL, 10));
	emit_many();
}

static unsigned long address_space(void)
{
	char text[256] = "";
	FILE *file = fopen("/proc/self/statm", "r");

	check(file && fgets(text, sizeof(text), file), 7);
	fclose(file);
	return strtoul(text, NULL, 10) * 4096;
}

static void run_memory_limit(void)
{
	limit(RLIMIT_AS, address_space() + strtoull(argument, NULL, 10));
	emit_many();
}

/* A sandbox that allows no more memory files. */
static void run_sandbox(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(rules) / sizeof(rules[0]), rules };

	check(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 7);
	check(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 7);
	emit_many();
}

static volatile bool stop;

static void *emit_until_stop(void *unused)
{
	while (!stop)
		emit_some(10);
	return unused;
}

/* Fills the file system of the live area while events continue: `argument` is a file there. */
static void run_full(void)
{
	static char block[65536];
	int fd = open(argument, O_WRONLY | O_CREAT, 0600);
	pthread_t threads[3];
	ssize_t written;

	check(fd >= 0, 7);
	emit_some(1);
	for (int i = 0; i < 2; i++)
		check(!pthread_create(&threads[i], NULL, emit_until_stop, NULL), 7);
	while ((written = write(fd, block, sizeof(block))) > 0)
		emit_some(3);
	check(errno == ENOSPC, 7);
	/* A thread that starts now gets no ring. */
	check(!pthread_create(&threads[2], NULL, emit_until_stop, NULL), 7);
	usleep(100000);
	stop = true;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

/* Emits in rounds, one per input line: the script acts as the recorder meanwhile. */
static void run_rounds(void)
{
	char line[32];

	while (fgets(line, sizeof(line), stdin)) {
		emit_some((unsigned int)strtoul(line, NULL, 10));
		print_emitted();
	}
}

static void run_killed(void)
{
	emit_many();
	raise(SIGKILL);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{ "daemon", run_daemon },
		{ "unseen", run_unseen },
		{ "environment", run_environment },
		{ "chroot", run_chroot },
		{ "file_limit", run_file_limit },
		{ "descriptor_limit", run_descriptor_limit },
		{ "memory_limit", run_memory_limit },
		{ "sandbox", run_sandbox },
		{ "full", run_full },
		{ "rounds", run_rounds },
		{ "plain", emit_many },
		{ "killed", run_killed },
	};

	argument = argc > 2 ? argv[2] : "";
	for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(argv[1], cases[i].name))
			cases[i].run();
	if (argc > 1 && strcmp(argv[1], "daemon") != 0)
		print_emitted();
	return 0;
}
