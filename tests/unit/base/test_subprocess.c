/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that exit, fail, hang, print without end and leave children behind. */
#include "base/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "unit/runner.h"

#define MS INT64_C(1000000)

static struct ts_subprocess_result result;

static const char *run_shell(const char *script, int64_t limit_ms, size_t max_bytes,
			     const char *const *environment)
{
	const char *const arguments[] = { "/bin/sh", "-c", script, NULL };
	const struct ts_subprocess program = { arguments, environment, limit_ms * MS, max_bytes };
	struct ts_error err;

	ts_subprocess_result_release(&result);
	TS_CHECK_INT(ts_subprocess_run(&program, &result, &err), TS_OK);
	TS_CHECK_INT(result.remains, 0);
	return ts_text_cstr(&result.output);
}

static const char *shell(const char *script)
{
	return run_shell(script, 60000, 1u << 20, NULL);
}

static const char *end_of(const struct ts_subprocess_result *what)
{
	static char text[128];

	return ts_subprocess_describe_end(what, text, sizeof(text));
}

/* Gone, or a zombie that is not our child. */
static void expect_gone(pid_t pid)
{
	char path[64], text[256] = "";

	TS_CHECK(pid > 1);
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	for (int i = 0; i < 1000; i++) {
		int fd = open(path, O_RDONLY);
		const char *behind;

		if (fd < 0)
			return;
		memset(text, 0, sizeof(text));
		if (read(fd, text, sizeof(text) - 1) <= 0)
			text[0] = '\0';
		close(fd);
		behind = strrchr(text, ')');
		if (!behind || behind[2] == 'Z')
			return;
		usleep(10000);
	}
	ts_test_fail(__FILE__, __LINE__, "process %d is still there: %s", (int)pid, text);
}

static void expect_no_children(void)
{
	TS_CHECK_INT(waitpid(-1, NULL, WNOHANG | __WALL), -1);
	TS_CHECK_INT(errno, ECHILD);
}

TS_TEST(output_and_code_are_collected)
{
	TS_CHECK_STR(shell("echo one; echo two >&2; exit 3"), "one\ntwo\n");
	TS_CHECK_INT(result.exit_code, 3);
	TS_CHECK(!result.timed_out && !result.cut && !result.signal);
	TS_CHECK(!ts_subprocess_succeeded(&result));
	TS_CHECK_STR(end_of(&result), "exited with code 3");
	TS_CHECK_STR(shell("true"), "");
	TS_CHECK(ts_subprocess_succeeded(&result));
	shell("kill -SEGV $$");
	TS_CHECK_INT(result.signal, SIGSEGV);
	TS_CHECK_INT(result.exit_code, -1);
	TS_CHECK(!ts_subprocess_succeeded(&result));
	TS_CHECK_STR(end_of(&result), "was killed by signal 11");
	expect_no_children();
	ts_subprocess_result_release(&result);
}

TS_TEST(much_output_comes_whole)
{
	TS_CHECK_INT(strlen(shell("head -c 900000 /dev/zero | tr '\\0' x")), 900000);
	TS_CHECK(ts_subprocess_succeeded(&result));
	ts_subprocess_result_release(&result);
}

TS_TEST(it_starts_with_nothing_of_ours)
{
	int open_fd = open("/dev/null", O_RDONLY), high;
	sigset_t all;

	high = fcntl(open_fd, F_DUPFD, 200); /* without close-on-exec */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(SIGPIPE, SIG_IGN);
	setenv("TRACESMITH_OUT", "x.sbt", 1);
	/* 32 and 33 belong to the C library: our parent may have left them ignored. */
	TS_CHECK_STR(shell("cat; grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -s '\\t' ' ' | "
			   "sed s/0000000[0-3]80000000/0000000000000000/"),
		     "SigBlk: 0000000000000000\nSigIgn: 0000000000000000\n");
	/*
	 * A pipe would briefly be one of the shell's descriptors; if `ls` came last, the shell
	 * would become it.
	 */
	TS_CHECK_STR(shell("ls /proc/$$/fd; true"), "0\n1\n2\n");
	TS_CHECK_STR(shell("echo \"${TRACESMITH_OUT-none}\""), "none\n");
	/* Its own session: no terminal, and one group to kill. */
	TS_CHECK_STR(
		shell("set -- $(cut -d' ' -f1,5,6 /proc/$$/stat); [ $1 = $2 ] && [ $2 = $3 ] && echo own"),
		"own\n");
	close(open_fd);
	close(high);
	ts_subprocess_result_release(&result);
}

TS_TEST(environment_is_changed)
{
	const char *const changes[] = { "LC_ALL=C", "GONE", "NEW=1=2", NULL };

	setenv("LC_ALL", "zh_CN.UTF-8", 1);
	setenv("GONE", "1", 1);
	setenv("GONE_NOT", "1", 1);
	TS_CHECK_STR(run_shell("echo $LC_ALL ${GONE-none} $GONE_NOT $NEW; env | grep -c ^LC_ALL=",
			       60000, 4096, changes),
		     "C none 1 1=2\n1\n");
	ts_subprocess_result_release(&result);
}

TS_TEST(what_cannot_be_started_is_told)
{
	const char *const arguments[] = { "/nowhere/at/all", NULL };
	const struct ts_subprocess program = { arguments, NULL, 1000 * MS, 100 };
	struct ts_error err;

	TS_CHECK_INT(ts_subprocess_run(&program, &result, &err), TS_ENOTFOUND);
	TS_CHECK_INT(result.spawn_errno, ENOENT);
	TS_CHECK_STR(err.message, "cannot start '/nowhere/at/all': No such file or directory");
	TS_CHECK(!ts_subprocess_succeeded(&result));
	expect_no_children();
	ts_subprocess_result_release(&result);
}

TS_TEST(one_that_hangs_is_killed)
{
	const char *output;
	int64_t limit_ms = 75;
	char *behind;
	pid_t pid, child;

	/* On a busy machine it needs longer to print both pids. */
	do {
		limit_ms *= 2;
		output = run_shell(
			"trap '' TERM INT HUP; echo $$; sleep 1000 & echo $!; wait; sleep 1000",
			limit_ms, 4096, NULL);
		pid = (pid_t)strtol(output, &behind, 10);
		child = (pid_t)strtol(behind, NULL, 10);
	} while (!child && limit_ms < 60000);
	TS_CHECK(result.timed_out);
	TS_CHECK_INT(result.exit_code, -1);
	TS_CHECK_INT(result.signal, 0);
	TS_CHECK(!ts_subprocess_succeeded(&result));
	if (limit_ms == 150)
		TS_CHECK_STR(end_of(&result), "did not end within 150 ms and was killed");
	expect_gone(pid);
	expect_gone(child);
	expect_no_children();
	ts_subprocess_result_release(&result);
}

TS_TEST(one_that_drips_is_killed)
{
	for (int64_t limit_ms = 200; limit_ms < 60000; limit_ms *= 2) {
		run_shell("while :; do echo x; sleep 0.01; done", limit_ms, 1u << 20, NULL);
		if (result.output.length)
			break;
	}
	TS_CHECK(result.timed_out && !result.cut);
	TS_CHECK(result.output.length > 0);
	expect_no_children();
	ts_subprocess_result_release(&result);
}

TS_TEST(one_that_closes_its_output_is_awaited)
{
	TS_CHECK_STR(shell("echo a; exec >&- 2>&-; sleep 0.05; exit 7"), "a\n");
	TS_CHECK_INT(result.exit_code, 7);
	ts_subprocess_result_release(&result);
}

TS_TEST(endless_output_is_cut)
{
	const char *output = run_shell("yes", 60000, 10001, NULL);

	TS_CHECK(result.cut && !result.timed_out);
	TS_CHECK_INT(strlen(output), 10001);
	TS_CHECK(!ts_subprocess_succeeded(&result));
	TS_CHECK_STR(end_of(&result), "printed more than 9.77 KiB and was killed");
	expect_no_children();
	/* Exactly the maximum. */
	TS_CHECK_STR(run_shell("printf abcd", 60000, 4, NULL), "abcd");
	TS_CHECK(ts_subprocess_succeeded(&result));
	ts_subprocess_result_release(&result);
}

TS_TEST(children_left_behind_do_not_delay)
{
	const char *output = shell("sleep 1000 & echo $!");

	TS_CHECK(ts_subprocess_succeeded(&result));
	expect_gone((pid_t)strtol(output, NULL, 10));
	ts_subprocess_result_release(&result);
}

/* The text holds one pid per line. */
static void expect_all_gone(const char *text, int count)
{
	char *behind = (char *)text;

	for (int i = 0; i < count; i++)
		expect_gone((pid_t)strtol(behind, &behind, 10));
}

TS_TEST(children_in_other_sessions_end_with_it)
{
	expect_all_gone(shell("(setsid sleep 1000 & echo $!)"), 1);
	TS_CHECK(ts_subprocess_succeeded(&result));
	/* Their children as well; the pipe ends when all are in their sessions. */
	expect_all_gone(shell("(setsid sh -c 'setsid sleep 1000 >/dev/null & echo $!; echo $$;"
			      " exec >/dev/null; wait' &) | cat"),
			2);
	expect_no_children();
	ts_subprocess_result_release(&result);
}

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
	signals++;
}

TS_TEST(nobody_else_notices)
{
	signal(SIGCHLD, count_signal);
	shell("true");
	shell("exit 1");
	run_shell("sleep 1000", 50, 10, NULL);
	TS_CHECK_INT(signals, 0);
	expect_no_children();
	/* The exit code is known even if the caller ignores SIGCHLD. */
	signal(SIGCHLD, SIG_IGN);
	shell("exit 5");
	TS_CHECK_INT(result.exit_code, 5);
	ts_subprocess_result_release(&result);
}

/* `script` gets a file in $1 and writes its pids there, one per line. */
static void expect_death_with_us(const char *script, int count)
{
	int ends[2];
	char text[64] = "";
	pid_t caller;

	TS_CHECK_INT(pipe(ends), 0);
	caller = fork();
	if (caller == 0) {
		char received[256];

		snprintf(received, sizeof(received), "set -- /proc/%d/fd/%d; %s", (int)getpid(),
			 ends[1], script);
		shell(received);
		_exit(1);
	}
	TS_CHECK(read(ends[0], text, sizeof(text) - 1) > 0);
	kill(caller, SIGKILL);
	waitpid(caller, NULL, 0);
	expect_all_gone(text, count);
	close(ends[0]);
	close(ends[1]);
}

TS_TEST(it_dies_with_us)
{
	expect_death_with_us("echo $$ >$1; exec sleep 1000", 1);
	expect_death_with_us("sleep 1000 & printf '%d\\n%d\\n' $$ $! >$1; wait", 2);
	expect_death_with_us("setsid sleep 1000 & printf '%d\\n%d\\n' $$ $! >$1; wait", 2);
}

TS_TEST(it_works_without_standard_descriptors)
{
	pid_t caller = fork();
	int status;

	if (caller == 0) {
		close(0);
		close(1);
		close(2);
		_exit(strcmp(shell("cat; echo fine"), "fine\n") ? 1 : 0);
	}
	waitpid(caller, &status, 0);
	TS_CHECK_INT(status, 0);
}

/* Neither can be run, and opening the second would block forever. */
TS_TEST(folders_and_pipes_are_no_programs)
{
	char folder[] = "/tmp/ts-program-XXXXXX", path[256], other[64];
	const char *const folders[] = { folder, "/bin", NULL };

	TS_CHECK(mkdtemp(folder) != NULL);
	setenv("PATH", "/nowhere", 1);
	snprintf(other, sizeof(other), "%s/sh", folder);
	TS_CHECK_INT(mkdir(other, 0700), 0);
	TS_CHECK(ts_subprocess_find("sh", folders, path, sizeof(path)));
	TS_CHECK_STR(path, "/bin/sh");
	TS_CHECK_INT(rmdir(other), 0);
	TS_CHECK_INT(mkfifo(other, 0700), 0);
	TS_CHECK(ts_subprocess_find("sh", folders, path, sizeof(path)));
	TS_CHECK_STR(path, "/bin/sh");
	TS_CHECK(unlink(other) == 0 && rmdir(folder) == 0);
}

TS_TEST(programs_are_found)
{
	char folder[] = "/tmp/ts-program-XXXXXX", path[256], expected[256];
	const char *const folders[] = { "/nowhere", folder, NULL };
	int fd;

	TS_CHECK(mkdtemp(folder) != NULL);
	snprintf(expected, sizeof(expected), "%s/some-tool", folder);
	fd = creat(expected, 0600);
	setenv("PATH", "/bin:/usr/bin", 1);
	/* A file that is not executable is skipped. */
	TS_CHECK(!ts_subprocess_find("some-tool", folders, path, sizeof(path)));
	fchmod(fd, 0700);
	TS_CHECK(ts_subprocess_find("some-tool", folders, path, sizeof(path)));
	TS_CHECK_STR(path, expected);
	TS_CHECK(!ts_subprocess_find("some-tool", NULL, path, sizeof(path)));
	/*
	 * PATH entries that do not start with '/' depend on the current directory: they are
	 * ignored.
	 */
	TS_CHECK_INT(chdir(folder), 0);
	setenv("PATH", ".::/nowhere", 1);
	TS_CHECK(!ts_subprocess_find("some-tool", NULL, path, sizeof(path)));
	setenv("PATH", folder, 1);
	TS_CHECK(ts_subprocess_find("some-tool", NULL, path, sizeof(path)));
	close(fd);
	unlink(expected);
	TS_CHECK(chdir("/") == 0 && rmdir(folder) == 0);
}
