/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that hang, crash, return garbage or leave things behind: the other checks and the caller
 * continue.
 */
#include "unit/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor/doctor.h"

#define SHORT_NS INT64_C(300000000)
#define LONG_NS INT64_C(60000000000)
#define MANY 40

/* What probes leave for the test to see. */
static struct {
	volatile pid_t grandchild;
	volatile int is_ours; /* standard output or error was still the test's */
	volatile int mask_is_empty;
	volatile uint64_t core_bytes;
} * shared;

static void share(void)
{
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	TS_CHECK(shared != MAP_FAILED);
}

static struct ts_finding run_one(void (*probe)(const struct ts_machine *, struct ts_finding *),
				 int64_t limit_ns)
{
	struct ts_check check = { .id = "one", .group = "g", .title = "t", .probe = probe };
	struct ts_probe probes[] = { { .check = &check } };
	struct ts_machine machine = { .yama = 7 };
	struct ts_probe_options options = { .limit_ns = limit_ns };

	ts_probes_run(probes, 1, &machine, &options);
	TS_CHECK(probes[0].is_done);
	/* No child remains, except one that does not exit soon enough after its kill. */
	if (limit_ns == LONG_NS)
		TS_CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
	while (waitpid(-1, NULL, 0) > 0)
		;
	return probes[0].finding;
}

static void expect_unknown(struct ts_finding finding, const char *why)
{
	TS_CHECK_INT(finding.state, TS_CHECK_UNKNOWN);
	TS_CHECK_STR(finding.text, why);
}

/* ---- good probes ---- */

static void answer(const struct ts_machine *machine, struct ts_finding *finding)
{
	ts_finding_set(finding, TS_CHECK_LIMITED, "scope %d", machine->yama);
	ts_finding_fix(finding, "do %s", "this");
	ts_finding_note(finding, "note");
}

TS_TEST(answer_arrives)
{
	struct ts_finding finding = run_one(answer, LONG_NS);

	TS_CHECK_INT(finding.state, TS_CHECK_LIMITED);
	TS_CHECK_STR(finding.text, "scope 7");
	TS_CHECK_STR(finding.fix, "do this");
	TS_CHECK_STR(finding.note, "note");
}

static void answer_with_noise(const struct ts_machine *machine, struct ts_finding *finding)
{
	struct stat now, null;

	stat("/dev/null", &null);
	for (int fd = 0; fd <= 2; fd++) {
		if (fstat(fd, &now) || now.st_rdev != null.st_rdev)
			shared->is_ours = 1;
	}
	for (int i = 0; i < 100000; i++)
		(void)!write(1, "noise", 5);
	ts_finding_set(finding, TS_CHECK_YES, "%s", "");
}

TS_TEST(what_a_library_prints_is_not_seen)
{
	share();
	TS_CHECK_INT(run_one(answer_with_noise, LONG_NS).state, TS_CHECK_YES);
	TS_CHECK_INT(shared->is_ours, 0);
}

static void look_at_state(const struct ts_machine *machine, struct ts_finding *finding)
{
	struct rlimit core;
	sigset_t mask;

	sigprocmask(SIG_BLOCK, NULL, &mask);
	shared->mask_is_empty = sigisemptyset(&mask);
	getrlimit(RLIMIT_CORE, &core);
	shared->core_bytes = core.rlim_cur;
	ts_finding_set(finding, signal(SIGTERM, SIG_DFL) == SIG_DFL ? TS_CHECK_YES : TS_CHECK_NO,
		       "%s", "");
}

TS_TEST(signals_are_as_new_and_no_core_is_left)
{
	sigset_t all;

	share();
	signal(SIGTERM, SIG_IGN);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	TS_CHECK_INT(run_one(look_at_state, LONG_NS).state, TS_CHECK_YES);
	TS_CHECK_INT(shared->mask_is_empty, 1);
	TS_CHECK_INT(shared->core_bytes, 0);
}

static void talk_too_much(const struct ts_machine *machine, struct ts_finding *finding)
{
	char text[2 * TS_FINDING_TEXT_BYTES];

	/* Two bytes each; cut in the middle of one. */
	for (size_t i = 0; i < sizeof(text) - 2; i += 2)
		memcpy(text + i, "\xc3\xa9", 2);
	text[sizeof(text) - 2] = '\0';
	ts_finding_set(finding, TS_CHECK_YES, "x%s", text);
	ts_finding_fix(finding, "a\nb\tc\033[1m");
}

TS_TEST(texts_are_one_line_and_cut_at_a_character)
{
	struct ts_finding finding = run_one(talk_too_much, LONG_NS);
	size_t length = strlen(finding.text);

	TS_CHECK(length == TS_FINDING_TEXT_BYTES - 1 || length == TS_FINDING_TEXT_BYTES - 2);
	TS_CHECK_INT(length % 2, 1);
	TS_CHECK_INT((unsigned char)finding.text[length - 1], 0xa9);
	TS_CHECK_STR(finding.fix, "a b c [1m");
}

/* ---- bad probes ---- */

static void hang(const struct ts_machine *machine, struct ts_finding *finding)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	for (;;)
		pause();
}

TS_TEST(hanging_is_unknown)
{
	struct ts_finding finding = run_one(hang, SHORT_NS);

	expect_unknown(finding, "did not answer within 0.3 s");
	TS_CHECK_STR(finding.fix, "tracesmith doctor --limit 3 one");
}

static void stop(const struct ts_machine *machine, struct ts_finding *finding)
{
	raise(SIGSTOP);
}

TS_TEST(stopped_is_unknown)
{
	expect_unknown(run_one(stop, SHORT_NS), "did not answer within 0.3 s");
}

static void crash(const struct ts_machine *machine, struct ts_finding *finding)
{
	ts_finding_set(finding, TS_CHECK_YES, "all is well");
	raise(SIGSEGV);
}

static void give_up(const struct ts_machine *machine, struct ts_finding *finding)
{
	abort();
}

TS_TEST(crash_is_unknown)
{
	expect_unknown(run_one(crash, LONG_NS), "crashed with SIGSEGV");
	expect_unknown(run_one(give_up, LONG_NS), "crashed with SIGABRT");
}

static void leave(const struct ts_machine *machine, struct ts_finding *finding)
{
	_exit(3);
}

TS_TEST(end_without_an_answer_is_unknown)
{
	expect_unknown(run_one(leave, LONG_NS), "exited without an answer (exit status 3)");
}

static void close_all(const struct ts_machine *machine, struct ts_finding *finding)
{
	for (int fd = 0; fd < 256; fd++)
		close(fd);
	ts_finding_set(finding, TS_CHECK_YES, "%s", "");
}

TS_TEST(closed_pipe_is_unknown)
{
	expect_unknown(run_one(close_all, LONG_NS), "exited without an answer (exit status 0)");
}

/* Descriptors inherited by the test: their pipes may have no reader. */
static bool is_inherited[256];

static void note_inherited(void)
{
	for (int fd = 3; fd < 256; fd++)
		is_inherited[fd] = fcntl(fd, F_GETFD) >= 0;
}

/* Writes to every pipe opened for the probe. */
static void write_to_pipes(const void *data, size_t bytes)
{
	for (int fd = 3; fd < 256; fd++) {
		struct stat status;

		if (!is_inherited[fd] && !fstat(fd, &status) && S_ISFIFO(status.st_mode))
			(void)!write(fd, data, bytes);
	}
}

static void talk_nonsense(const struct ts_machine *machine, struct ts_finding *finding)
{
	write_to_pipes("hello", 5);
	_exit(0);
}

static void talk_before(const struct ts_machine *machine, struct ts_finding *finding)
{
	write_to_pipes("hello", 5);
	ts_finding_set(finding, TS_CHECK_YES, "%s", "");
}

static void talk_endlessly(const struct ts_machine *machine, struct ts_finding *finding)
{
	static const char data[65536];

	for (int i = 0; i < 100; i++)
		write_to_pipes(data, sizeof(data));
	_exit(0);
}

static void break_answer(const struct ts_machine *machine, struct ts_finding *finding)
{
	memset(finding, 0xff, sizeof(*finding));
}

static void break_state(const struct ts_machine *machine, struct ts_finding *finding)
{
	finding->state = TS_CHECK_STATES;
}

static void break_text(const struct ts_machine *machine, struct ts_finding *finding)
{
	finding->state = TS_CHECK_YES;
	memset(finding->fix, 'x', sizeof(finding->fix));
}

/* A library that forks, and both processes return. */
static void answer_twice(const struct ts_machine *machine, struct ts_finding *finding)
{
	if (fork() > 0)
		waitpid(-1, NULL, 0);
	ts_finding_set(finding, TS_CHECK_YES, "%s", "");
}

TS_TEST(nonsense_is_unknown)
{
	static void (*const probes[])(const struct ts_machine *, struct ts_finding *) = {
		talk_nonsense, talk_before, talk_endlessly, break_answer,
		break_state,   break_text,  answer_twice,
	};

	note_inherited();
	for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++)
		expect_unknown(run_one(probes[i], LONG_NS), "gave an invalid answer");
}

/* ---- leftovers ---- */

static void leave_child(const struct ts_machine *machine, struct ts_finding *finding)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (;;)
			pause();
	}
	shared->grandchild = pid;
	ts_finding_set(finding, TS_CHECK_YES, "%s", "");
}

static void leave_child_and_hang(const struct ts_machine *machine, struct ts_finding *finding)
{
	leave_child(machine, finding);
	hang(machine, finding);
}

static void expect_gone(pid_t pid)
{
	char path[64], state = 0;
	FILE *file;

	TS_CHECK(pid > 0);
	/* Killed; init may take its time to reap it. */
	for (int i = 0; i < 500 && !kill(pid, 0) && state != 'Z'; i++) {
		snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
		file = fopen(path, "r");
		if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			state = 0;
		if (file)
			fclose(file);
		usleep(10000);
	}
	TS_CHECK(state == 'Z' || kill(pid, 0) != 0);
}

TS_TEST(what_it_started_ends_with_it)
{
	share();
	/* Its child holds the pipe: the answer must not wait for it. */
	TS_CHECK_INT(run_one(leave_child, LONG_NS).state, TS_CHECK_YES);
	expect_gone(shared->grandchild);
	TS_CHECK_INT(run_one(leave_child_and_hang, SHORT_NS).state, TS_CHECK_UNKNOWN);
	expect_gone(shared->grandchild);
}

/* ---- many probes ---- */

static unsigned int progress_calls;

static void on_waiting(void *context, const struct ts_probe *probes, size_t count, int64_t since_ns)
{
	TS_CHECK(context == &progress_calls);
	TS_CHECK_INT(count, MANY);
	TS_CHECK(since_ns > 0);
	progress_calls++;
}

TS_TEST(hanging_ones_do_not_hold_up_the_others)
{
	struct ts_check good = { .id = "good", .group = "g", .title = "t", .probe = answer };
	struct ts_check bad = { .id = "bad", .group = "g", .title = "t", .probe = hang };
	struct ts_probe probes[MANY];
	struct ts_machine machine = { .yama = 7 };
	struct ts_probe_options options = { .limit_ns = 10 * SHORT_NS, /* for the good ones */
					    .waiting = on_waiting,
					    .context = &progress_calls };

	memset(probes, 0, sizeof(probes));
	for (size_t i = 0; i < MANY; i++)
		probes[i].check = i % 4 ? &good : &bad;
	ts_probes_run(probes, MANY, &machine, &options);
	for (size_t i = 0; i < MANY; i++) {
		TS_CHECK(probes[i].is_done);
		TS_CHECK_INT(probes[i].finding.state, i % 4 ? TS_CHECK_LIMITED : TS_CHECK_UNKNOWN);
	}
	TS_CHECK(progress_calls > 0);
}

/* In its own process: leak detection at the test's end creates one, too. */
static void expect_no_process(void)
{
	struct rlimit none = { 0, 0 };
	struct ts_finding finding;

	/* root has no such limit; another user has. */
	if ((geteuid() == 0 && (setgid(65534) || setuid(65534))) || setrlimit(RLIMIT_NPROC, &none))
		_exit(77);
	finding = run_one(answer, LONG_NS);
	if (finding.state == TS_CHECK_LIMITED)
		_exit(77);
	expect_unknown(finding,
		       "cannot create a process for the check: Resource temporarily unavailable");
	_exit(0);
}

TS_TEST(no_process_to_be_had)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		expect_no_process();
	TS_CHECK_INT(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		ts_test_skip("this user may make processes without limit");
	TS_CHECK_INT(status, 0);
}
