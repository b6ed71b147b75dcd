/* SPDX-License-Identifier: Apache-2.0 */
/* Processes without the agent: which of them are reported, and when. */
#include <sys/ptrace.h>
#include <sys/socket.h>

#include "record/loop/record_internal.h"
#include "unit/record/record_target.h"

#define LONG_NS INT64_C(3600000000000)
/* The program that all tests start, and a file that it does not map. */
#define PROGRAM "/bin/sleep"
#define NOT_MAPPED "/proc/self/exe"

/* A recorder for which this file is the agent. */
static struct ts_recorder *start_recorder(const char *agent)
{
	struct ts_recorder_options options;

	make_folder();
	setenv("TRACESMITH_AGENT_PATH", agent, 1);
	options = plain_options("t.sbt");
	return open_recorder(&options);
}

/* A process that has just called exec: the dynamic linker has not loaded anything yet. */
static pid_t start_program(void)
{
	pid_t pid = fork();
	int status;

	TS_CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl(PROGRAM, "sleep", "1000", (char *)NULL);
		_exit(127);
	}
	TS_CHECK_INT(waitpid(pid, &status, 0), pid);
	TS_CHECK(WIFSTOPPED(status));
	return pid;
}

/* Looks at the process in the next pass, as if the recorder had known it for long. */
static struct ts_child *look(struct ts_recorder *recorder, pid_t pid)
{
	struct ts_child *child = ts_children_find(recorder, pid);

	TS_CHECK(child);
	child->seen_ns -= LONG_NS;
	child->check_ns = 0;
	pass(recorder);
	return ts_children_find(recorder, pid);
}

TS_TEST(a_program_that_still_loads_the_agent_is_not_reported)
{
	struct ts_recorder *recorder = start_recorder(NOT_MAPPED);
	pid_t pid = start_program();
	struct ts_child *child;

	ts_recorder_follow(recorder, pid);
	child = look(recorder, pid);
	TS_CHECK(child->without_agent_ns);
	TS_CHECK(!child->reported);
	/* The same program is still without it, much later. */
	child->without_agent_ns -= LONG_NS;
	TS_CHECK(look(recorder, pid)->reported);
	end_sleeper(pid);
	ts_recorder_exited(recorder, pid, SIGKILL);
	TS_CHECK_INT(finish_recorder(recorder).untraced.count, 1);
	TS_CHECK_INT(rows_of("t.sbt", TS_TABLE_LOSS), 1);
	remove_folder();
}

/* Another program in the same process starts anew, even if its exec was not noticed. */
TS_TEST(each_exec_has_its_own_time)
{
	struct ts_recorder *recorder = start_recorder(NOT_MAPPED);
	pid_t pid = start_program();
	struct ts_child *child;

	ts_recorder_follow(recorder, pid);
	child = look(recorder, pid);
	child->without_agent_ns -= LONG_NS;
	child->stack++;
	TS_CHECK(!look(recorder, pid)->reported);
	end_sleeper(pid);
	ts_recorder_exited(recorder, pid, SIGKILL);
	finish_recorder(recorder);
	remove_folder();
}

/* The agent is in the program, which made no live area: nothing of it is recorded. */
TS_TEST(a_program_without_an_area_is_a_loss)
{
	struct ts_recorder *recorder = start_recorder(PROGRAM);
	pid_t pid = start_program();
	struct ts_recorder_summary summary;

	ts_recorder_follow(recorder, pid);
	TS_CHECK(look(recorder, pid)->reported);
	end_sleeper(pid);
	ts_recorder_exited(recorder, pid, SIGKILL);
	summary = finish_recorder(recorder);
	TS_CHECK_INT(summary.unknown_losses, 1);
	TS_CHECK_INT(summary.untraced.count, 1);
	TS_CHECK_INT(summary.untraced.pid, pid);
	TS_CHECK_STR(summary.untraced.reason, "no live area, although the agent is loaded");
	TS_CHECK(summary.untraced.is_started && summary.untraced.advice[0] && !summary.has_traced);
	remove_folder();
}

/* As if it ran for an hour, or for moments, however long this test takes. */
static void set_age(struct ts_child *child, bool is_brief)
{
	child->seen_ns += is_brief ? LONG_NS : -LONG_NS;
}

/* What is reported about a program that a recorded one has run, without the agent. */
static struct ts_recorder_summary summary_of_helper(bool is_brief)
{
	struct ts_recorder *recorder = start_recorder(NOT_MAPPED);
	pid_t pid = start_program();
	struct ts_child *child = ts_children_add(recorder, pid, getpid());

	TS_CHECK(child);
	child->executed = true;
	set_age(child, is_brief);
	end_sleeper(pid);
	pass(recorder);
	return finish_recorder(recorder);
}

/* ldconfig and the like, which are static, must not make every recording look incomplete. */
TS_TEST(a_helper_that_ran_for_moments_is_no_loss)
{
	struct ts_recorder_summary summary = summary_of_helper(true);

	TS_CHECK_INT(summary.unknown_losses, 0);
	TS_CHECK_INT(summary.untraced.count, 0);
	TS_CHECK_INT(summary.untraced.brief_count, 1);
	TS_CHECK_STR(summary.untraced.brief_name, "sleep");
	TS_CHECK_INT(rows_of("t.sbt", TS_TABLE_LOSS), 0);
	remove_folder();
	summary = summary_of_helper(false);
	TS_CHECK_INT(summary.unknown_losses, 1);
	TS_CHECK_INT(summary.untraced.count, 1);
	TS_CHECK_INT(summary.untraced.brief_count, 0);
	remove_folder();
}

/* Whichever is found first. */
static void check_first_named(bool is_brief, bool is_reversed)
{
	struct ts_recorder *recorder = start_recorder(NOT_MAPPED);
	struct ts_recorder_summary summary;
	pid_t pids[3], first;

	for (int i = 0; i < 3; i++)
		pids[i] = start_program();
	for (int i = 0; i < 3; i++) {
		int at = is_reversed ? 2 - i : i;
		struct ts_child *child = ts_children_add(recorder, pids[at], getpid());

		TS_CHECK(child);
		child->executed = true;
		set_age(child, is_brief);
		/* As if the first one was the oldest, also if pids have begun at 1 again. */
		child->start_time = 100 + (uint64_t)at / 2;
		snprintf(child->name, sizeof(child->name), "helper %d", at);
	}
	first = TS_MIN(pids[0], pids[1]);
	for (int i = 0; i < 3; i++)
		end_sleeper(pids[i]);
	pass(recorder);
	summary = finish_recorder(recorder);
	if (is_brief) {
		TS_CHECK_INT(summary.untraced.brief_count, 3);
		TS_CHECK_INT(summary.untraced.brief_pid, first);
	} else {
		TS_CHECK_INT(summary.untraced.count, 3);
		TS_CHECK_INT(summary.untraced.pid, first);
	}
	remove_folder();
}

TS_TEST(the_first_of_several_programs_is_named)
{
	for (int i = 0; i < 4; i++)
		check_first_named(i / 2, i % 2);
}

/* An exec may be reported when the area of the new program is known, drained and gone. */
TS_TEST(a_program_whose_area_came_first_is_traced)
{
	struct ts_recorder *recorder = start_recorder(NOT_MAPPED);
	pid_t pid = start_sleeper();
	struct ts_recorder_summary summary;
	struct ts_child *child;
	struct fake area;

	make_area(&area, pid, SESSION, 5, true);
	emit(&area, 3);
	pass(recorder);
	TS_CHECK_INT(recorder->target_count, 1);
	child = ts_children_add(recorder, pid, getpid());
	TS_CHECK(child && child->has_area);
	child->executed = true;
	child->check_ns = INT64_MAX;
	end_sleeper(pid);
	for (int i = 0; i < 3; i++)
		pass(recorder);
	TS_CHECK_INT(recorder->target_count, 0);
	child = ts_children_find(recorder, pid);
	child->check_ns = 0;
	child->seen_ns -= LONG_NS;
	pass(recorder);
	summary = finish_recorder(recorder);
	TS_CHECK_INT(summary.untraced.count + summary.untraced.brief_count, 0);
	TS_CHECK_INT(summary.events, 3);
	free_area(&area);
	remove_folder();
}

/* Ends the process, but leaves it as a zombie. */
static void kill_sleeper(pid_t pid)
{
	siginfo_t info;

	TS_CHECK(!kill(pid, SIGKILL));
	TS_CHECK(!waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
}

/* What is reported about a program whose exec is read when its area is drained and gone. */
static struct ts_recorder_summary summary_of_late_exec(bool is_attached_alive)
{
	struct ts_recorder *recorder = start_recorder(NOT_MAPPED);
	pid_t pid = start_sleeper();
	struct ts_recorder_summary summary;
	struct ts_child *child;
	struct fake area;

	make_area(&area, pid, SESSION, 5, true);
	emit(&area, 3);
	if (is_attached_alive)
		pass(recorder);
	kill_sleeper(pid);
	for (int i = 0; i < 3; i++)
		pass(recorder);
	TS_CHECK_INT(recorder->target_count, 0);
	child = ts_children_add(recorder, pid, getpid());
	TS_CHECK(child);
	child->executed = true;
	pass(recorder);
	end_sleeper(pid);
	summary = finish_recorder(recorder);
	free_area(&area);
	return summary;
}

/* A process has several rows, with one id: its end is another one. */
static int64_t count_processes(const char *name)
{
	struct ts_reader *reader = open_trace(name);
	int64_t count = 0;

	while (ts_reader_entity(reader, TS_TABLE_PROCESS, count + 1))
		count++;
	ts_reader_close(reader);
	return count;
}

/* Neither reported, nor in the trace as another process. */
TS_TEST(a_program_whose_area_has_gone_is_traced)
{
	for (int is_attached_alive = 0; is_attached_alive < 2; is_attached_alive++) {
		struct ts_recorder_summary summary = summary_of_late_exec(is_attached_alive);

		TS_CHECK_INT(summary.untraced.count + summary.untraced.brief_count, 0);
		TS_CHECK_INT(summary.events, 3);
		TS_CHECK_INT(count_processes("t.sbt"), 1);
		remove_folder();
	}
}

/* A process that forks when it gets a byte, and answers with the child's pid. */
static pid_t start_forker(int *ret_socket)
{
	int sockets[2];
	pid_t pid, child;
	char go;

	TS_CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets));
	pid = fork();
	TS_CHECK(pid >= 0);
	*ret_socket = sockets[0];
	if (pid) {
		close(sockets[1]);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(sockets[1], &go, 1) != 1)
		_exit(1);
	child = start_sleeper();
	if (write(sockets[1], &child, sizeof(child)) != (ssize_t)sizeof(child))
		_exit(1);
	for (;;)
		pause();
}

/* A Python program's children are sampled from their start: no scan is due for long. */
TS_TEST(a_fork_is_found_ahead_of_the_next_scan)
{
	struct ts_recorder *recorder = start_recorder(NOT_MAPPED);
	int socket;
	pid_t pid = start_forker(&socket), child;

	ts_recorder_follow(recorder, pid);
	pass(recorder);
	recorder->scan_ns = INT64_MAX;
	TS_CHECK_INT(write(socket, "", 1), 1);
	TS_CHECK_INT(read(socket, &child, sizeof(child)), sizeof(child));
	TS_CHECK(!ts_children_find(recorder, child));
	recorder->look_ns = 0;
	recorder->python.is_reading = true;
	pass(recorder);
	TS_CHECK(ts_children_find(recorder, child));
	end_sleeper(pid);
	ts_recorder_exited(recorder, pid, SIGKILL);
	finish_recorder(recorder);
	close(socket);
	remove_folder();
}
