/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader against this machine's python3: stacks, names and lines of a program that stands
 * still, and processes without Python.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "python/reader/python_reader.h"
#include "unit/runner.h"

struct target {
	pid_t pid;
	int pipe; /* its output, then its input */
};

/* Stops in a thread 200 calls deep, and in a generator in the main thread. */
static const char program[] =
	"import sys, threading\n"
	"done = threading.Event()\n"
	"def wait(): done.wait()\n"
	"def deep(n):\n"
	"    if n: return deep(n - 1)\n"
	"    return wait()\n"
	"threading.Thread(target=deep, args=(200,), name='side', daemon=True).start()\n"
	"def generate():\n"
	"    print('ready', flush=True)\n"
	"    yield sys.stdin.read()\n"
	"def main():\n"
	"    for part in generate(): pass\n"
	"main()\n";

static void start_target(struct target *target, const char *text)
{
	int in[2], out[2];
	char line[16] = "";

	TS_CHECK(pipe(in) == 0 && pipe(out) == 0);
	target->pid = fork();
	TS_CHECK(target->pid >= 0);
	if (target->pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		execlp("python3", "python3", "-c", text, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	target->pipe = out[0];
	if (read(target->pipe, line, sizeof(line)) <= 0)
		ts_test_skip("there is no python3 here");
	/* From here on the descriptor only keeps its input open. */
	dup2(in[1], target->pipe);
	close(in[1]);
}

static void end_target(struct target *target)
{
	kill(target->pid, SIGKILL);
	waitpid(target->pid, NULL, 0);
	close(target->pipe);
}

static int open_target(struct ts_python_reader **ret_python, const struct target *target,
		       unsigned int flags)
{
	struct ts_error err;
	int status = ts_python_reader_open(ret_python, target->pid, 0, flags, &err);

	if (status == TS_EVERSION || status == TS_ECAP)
		ts_test_skip(err.message);
	return status;
}

static bool is_settled(const struct ts_python_sweep *sweep)
{
	unsigned int settled = 0;

	for (size_t i = 0; i < sweep->count; i++) {
		const struct ts_python_thread *thread = &sweep->threads[i];

		settled += thread->depth > 203 || (thread->is_main && thread->depth >= 3 &&
						   thread->frames[thread->depth - 3].line == 10);
	}
	return settled == 2;
}

/* Sweeps until both threads have stopped. */
static void sweep_settled(struct ts_python_reader *python, struct ts_python_sweep *ret_sweep)
{
	for (int i = 0; i < 500; i++) {
		TS_CHECK_INT(ts_python_sweep(python, ret_sweep, NULL), TS_OK);
		if (is_settled(ret_sweep))
			return;
		usleep(10000);
	}
	ts_test_fail(__FILE__, __LINE__, "its threads are never where they should stop");
}

static const char *last_part(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

TS_TEST(stacks_of_a_program)
{
	struct target target;
	TS_AUTO(ts_python_reader) python = NULL;
	struct ts_python_sweep sweep;
	bool has_main = false, has_side = false;

	start_target(&target, program);
	TS_CHECK_INT(open_target(&python, &target, TS_PYTHON_NAMES | TS_PYTHON_KERNEL), TS_OK);
	sweep_settled(python, &sweep);
	TS_CHECK_INT(ts_python_sweep(python, &sweep, NULL), TS_OK);
	TS_CHECK_INT(sweep.count, 2);
	for (size_t i = 0; i < sweep.count; i++) {
		const struct ts_python_thread *thread = &sweep.threads[i];

		TS_CHECK(!thread->is_rejected);
		TS_CHECK(thread->tid > 0);
		if (thread->is_main) {
			has_main = true;
			TS_CHECK_INT(thread->tid, target.pid);
			TS_CHECK_STR(thread->name, "MainThread");
			TS_CHECK_STR(thread->frames[thread->depth - 1].code->name, "<module>");
			TS_CHECK_INT(thread->frames[thread->depth - 1].line, 13);
			TS_CHECK_STR(thread->frames[thread->depth - 2].code->name, "main");
			TS_CHECK_STR(last_part(thread->frames[thread->depth - 3].code->name),
				     "generate");
			TS_CHECK_INT(thread->frames[thread->depth - 3].line, 10);
		} else {
			has_side = true;
			TS_CHECK_STR(thread->name, "side");
			TS_CHECK(thread->depth > 203);
			TS_CHECK_STR(thread->frames[thread->depth - 5].code->name, "deep");
			TS_CHECK_INT(thread->frames[thread->depth - 5].line, 5);
			TS_CHECK_INT(thread->frames[thread->depth - 5].code->first_line, 4);
			TS_CHECK_STR(thread->frames[thread->depth - 5].code->file, "<string>");
		}
	}
	TS_CHECK(has_main && has_side);
	end_target(&target);
	TS_CHECK_INT(ts_python_sweep(python, &sweep, NULL), TS_ENOTFOUND);
}

TS_TEST(a_second_sweep_is_the_same)
{
	struct target target;
	TS_AUTO(ts_python_reader) python = NULL;
	struct ts_python_sweep sweep;
	struct ts_python_reader_counts before, after;

	start_target(&target, program);
	TS_CHECK_INT(open_target(&python, &target, 0), TS_OK);
	sweep_settled(python, &sweep);
	for (int i = 0; i < 50; i++)
		TS_CHECK_INT(ts_python_sweep(python, &sweep, NULL), TS_OK);
	for (size_t i = 0; i < sweep.count; i++) {
		TS_CHECK(sweep.threads[i].depth > 0);
		TS_CHECK_INT(sweep.threads[i].same, sweep.threads[i].depth);
	}
	/*
	 * All reads are prefetched by now: one call per sweep, or a few if there are many ranges.
	 */
	ts_python_reader_counts(python, &before);
	TS_CHECK_INT(ts_python_sweep(python, &sweep, NULL), TS_OK);
	ts_python_reader_counts(python, &after);
	TS_CHECK(after.system_calls - before.system_calls <= 2);
	TS_CHECK_INT(after.speculations_missed, before.speculations_missed);
	TS_CHECK_INT(after.stacks - before.stacks, sweep.count);
	end_target(&target);
}

TS_TEST(the_main_thread_alone)
{
	struct target target;
	TS_AUTO(ts_python_reader) python = NULL;
	struct ts_python_sweep sweep;

	start_target(&target, program);
	TS_CHECK_INT(open_target(&python, &target, TS_PYTHON_MAIN_ONLY | TS_PYTHON_NAMES), TS_OK);
	for (int i = 0; i < 10; i++) {
		TS_CHECK_INT(ts_python_sweep(python, &sweep, NULL), TS_OK);
		TS_CHECK_INT(sweep.count, 1);
		TS_CHECK(sweep.threads[0].is_main);
		TS_CHECK_INT(sweep.threads[0].tid, target.pid);
	}
	end_target(&target);
}

/* Call chains at the same stack addresses; a callee of one chain is never called by another. */
static const char busy[] = "print('ready', flush=True)\n"
			   "def a_3(): return 1\n"
			   "def a_2(): return a_3()\n"
			   "def a_1(): return a_2()\n"
			   "def b_3(): return 1\n"
			   "def b_2(): return b_3()\n"
			   "def b_1(): return b_2()\n"
			   "while True: a_1(); b_1()\n";

static bool is_possible(const char *callee, const char *caller)
{
	if (callee[1] != '_')
		return true;
	if (callee[2] == '1')
		return strcmp(caller, "<module>") == 0;
	return caller[0] == callee[0] && caller[1] == '_' && caller[2] == callee[2] - 1;
}

TS_TEST(a_busy_program_has_no_impossible_stacks)
{
	struct target target;
	TS_AUTO(ts_python_reader) python = NULL;
	struct ts_python_sweep sweep;
	struct ts_python_reader_counts counts;
	unsigned int impossible = 0;

	start_target(&target, busy);
	TS_CHECK_INT(open_target(&python, &target, 0), TS_OK);
	for (int i = 0; i < 20000; i++) {
		TS_CHECK_INT(ts_python_sweep(python, &sweep, NULL), TS_OK);
		for (size_t k = 0; k < sweep.count; k++)
			for (uint32_t at = 0; at + 1 < sweep.threads[k].depth; at++)
				impossible +=
					!is_possible(sweep.threads[k].frames[at].code->name,
						     sweep.threads[k].frames[at + 1].code->name);
	}
	ts_python_reader_counts(python, &counts);
	TS_CHECK_INT(counts.sweeps, 20000);
	TS_CHECK(counts.stacks > 10000);
	TS_CHECK(impossible <= 4); /* the target is 1 in 100,000, on an undisturbed machine */
	end_target(&target);
}

TS_TEST(no_python)
{
	struct ts_python_reader *python;
	struct ts_error err;
	pid_t pid = fork();
	char expected[64];

	TS_CHECK(pid >= 0);
	if (pid == 0) {
		pause();
		_exit(0);
	}
	TS_CHECK_INT(ts_python_reader_open(&python, pid, 0, 0, &err), TS_ENOTFOUND);
	snprintf(expected, sizeof(expected), "no Python in process %d (", (int)pid);
	TS_CHECK(strncmp(err.message, expected, strlen(expected)) == 0);
	TS_CHECK_INT(ts_python_reader_open(&python, pid, 1, 0, &err), TS_ENOTFOUND);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	TS_CHECK_INT(ts_python_reader_open(&python, pid, 0, 0, &err), TS_ENOTFOUND);
}
