/* SPDX-License-Identifier: Apache-2.0 */
/* `stack`: groups of equal stacks, and the output. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/stack/stack_verb.h"
#include "unit/runner.h"

/* ---- handmade snapshots ---- */

/* Frames from a text, one letter each, innermost first; capitals are native. */
static size_t make_frames(const char *text, struct ts_stack_frame *frames)
{
	static char names[256][2];
	size_t count = 0;

	for (; *text; text++) {
		unsigned char letter = (unsigned char)*text;

		names[letter][0] = *text;
		frames[count++] = (struct ts_stack_frame){
			.function = names[letter],
			.file = "x.py",
			.line = letter,
			.is_native = letter < 'a',
		};
	}
	return count;
}

#define PROCESSES 8
#define THREADS 3

struct job {
	struct ts_stack_process processes[PROCESSES];
	struct ts_stack_thread threads[PROCESSES][THREADS];
	struct ts_stack_frame frames[PROCESSES][THREADS][16];
	size_t count;
};

/* A process with a main thread and further threads, separated by blanks. */
static void add_process(struct job *job, int64_t rank, const char *stacks)
{
	struct ts_stack_process *process = &job->processes[job->count];
	char copy[64], *rest = copy, *stack;

	snprintf(copy, sizeof(copy), "%s", stacks);
	*process = (struct ts_stack_process){
		.pid = 100 + (pid_t)job->count,
		.inner_pid = 100 + (pid_t)job->count,
		.rank = rank,
		.local_rank = -1,
		.world_size = -1,
		.is_python = true,
		.version = "3.11.2",
		.command = "python3 train.py",
		.threads = job->threads[job->count],
	};
	while ((stack = strsep(&rest, " "))) {
		struct ts_stack_thread *thread = &process->threads[process->count];
		struct ts_stack_frame *frames = job->frames[job->count][process->count];

		*thread = (struct ts_stack_thread){
			.tid = process->pid + 1000 * (pid_t)process->count,
			.name = process->count ? "worker" : "MainThread",
			.task = "",
			.native_missing = "",
			.is_main = !process->count,
			.frames = frames,
			.count = make_frames(stack, frames),
		};
		process->count++;
	}
	job->count++;
}

/* ---- groups ---- */

TS_TEST(odd_ones_out)
{
	static struct job job;
	struct ts_stack_groups groups;

	for (int64_t rank = 0; rank < 8; rank++)
		add_process(&job, rank, rank == 3 ? "zcba" : "dcba");
	TS_CHECK_INT(ts_stack_groups_init(&groups, job.processes, job.count, true), TS_OK);
	TS_CHECK_INT(groups.group_count, 2);
	TS_CHECK_INT(groups.groups[0].count, 7);
	TS_CHECK_INT(groups.groups[1].count, 1);
	TS_CHECK_INT(groups.groups[1].members[0].process->rank, 3);
	TS_CHECK_INT(groups.common, 3);
	TS_CHECK_INT(groups.process_count, 8);
	ts_stack_groups_release(&groups);
}

TS_TEST(lines_tell_places_apart)
{
	static struct job job;
	struct ts_stack_groups groups;

	add_process(&job, -1, "cba");
	add_process(&job, -1, "cba");
	add_process(&job, -1, "ba");
	job.frames[1][0][1].line++;
	TS_CHECK_INT(ts_stack_groups_init(&groups, job.processes, job.count, true), TS_OK);
	TS_CHECK_INT(groups.group_count, 3);
	TS_CHECK_INT(groups.common, 1);
	/* All of the same size: sorted by pid. */
	TS_CHECK_INT(groups.groups[0].members[0].process->pid, 100);
	TS_CHECK_INT(groups.groups[2].members[0].process->pid, 102);
	ts_stack_groups_release(&groups);
}

TS_TEST(threads_without_a_stack_are_in_no_group)
{
	static struct job job;
	struct ts_stack_groups groups;

	add_process(&job, -1, "");
	TS_CHECK_INT(ts_stack_groups_init(&groups, job.processes, job.count, true), TS_OK);
	TS_CHECK_INT(groups.group_count, 0);
	TS_CHECK_INT(groups.process_count, 0);
	ts_stack_groups_release(&groups);
}

TS_TEST(groups_as_text)
{
	static struct job job;
	TS_SCOPED(ts_text) text = { 0 };

	for (int64_t rank = 0; rank < 6; rank++)
		add_process(&job, rank, rank == 4 ? "zba w" : rank == 0 ? "dcba w w" : "dcba w");
	TS_CHECK_INT(ts_stack_put_groups_text(&text, job.processes, job.count, false), TS_OK);
	TS_CHECK_STR(ts_text_cstr(&text), "6 processes at 2 places (main threads)\n"
					  "    5 of 6: d (x.py:100)\n"
					  "    1 of 6: z (x.py:122)  <- rank 4 (pid 104)\n"
					  "\n"
					  "common to all, outermost frame first:\n"
					  "    a (x.py:97)\n"
					  "    b (x.py:98)\n"
					  "\n"
					  "5 of 6, ranks 0-3,5 (pids 100-103,105), continue with:\n"
					  "    c (x.py:99)\n"
					  "    d (x.py:100)\n"
					  "\n"
					  "1 of 6, rank 4 (pid 104), continue with:\n"
					  "    z (x.py:122)\n"
					  "\n"
					  "7 other threads at 1 place\n"
					  "    7 threads of 6 processes: w (x.py:119)\n");
}

TS_TEST(one_place_for_all)
{
	static struct job job;
	TS_SCOPED(ts_text) text = { 0 };

	add_process(&job, -1, "ba");
	add_process(&job, -1, "ba");
	TS_CHECK_INT(ts_stack_put_groups_text(&text, job.processes, job.count, false), TS_OK);
	TS_CHECK_STR(ts_text_cstr(&text), "2 processes at 1 place (main threads)\n"
					  "    2 of 2: b (x.py:98)\n"
					  "\n"
					  "their stack, outermost frame first:\n"
					  "    a (x.py:97)\n"
					  "    b (x.py:98)\n");
	ts_text_clear(&text);
	TS_CHECK_INT(ts_stack_put_groups_json(&text, job.processes, 1), TS_OK);
	TS_CHECK_STR(
		ts_text_cstr(&text),
		"{\"main\":true,\"processes\":1,\"of\":1,\"common\":2,\"threads\":[{\"pid\":100,\"tid\":100,"
		"\"rank\":null,\"name\":\"MainThread\"}],\"frames\":[{\"func\":\"b\",\"file\":\"x.py\",\"lineno\":98,"
		"\"depth\":1,\"frame_type\":\"python\"},{\"func\":\"a\",\"file\":\"x.py\",\"lineno\":97,"
		"\"depth\":0,\"frame_type\":\"python\"}]}\n");
}

/* ---- a process ---- */

TS_TEST(process_as_text)
{
	static struct job job;
	TS_SCOPED(ts_text) text = { 0 };
	struct ts_stack_process *process = &job.processes[0];

	add_process(&job, 3, "Xb w");
	process->world_size = 8;
	process->local_rank = 1;
	process->inner_pid = 7;
	process->threads[0].state = TS_PYTHON_RUNS | TS_PYTHON_HAS_GIL;
	process->threads[0].task = "Task-1";
	process->threads[0].frames[1].locals = "{\"n\":\"1\",\"t\\u001b\":\"'a\\nb'\"}";
	process->threads[1].native_missing = "because";
	process->threads[1].interpreter = 2;
	ts_stack_put_text(&text, process, false);
	TS_CHECK_STR(ts_text_cstr(&text),
		     "process 100: python3 train.py\n"
		     "    Python 3.11.2, rank 3 of 8, local rank 1, pid 7 in its own namespace\n"
		     "\n"
		     "    thread 100 \"MainThread\": running, holds the GIL, task Task-1\n"
		     "        X (x.py+0x58)\n"
		     "        b (x.py:98)\n"
		     "            n: 1\n"
		     "            t\\x1b: 'a\\nb'\n"
		     "\n"
		     "    thread 1100 \"worker\": idle, interpreter 2\n"
		     "        w (x.py:119)\n"
		     "        (without native frames: because)\n");
}

TS_TEST(process_as_json)
{
	static struct job job;
	TS_SCOPED(ts_text) text = { 0 };

	add_process(&job, -1, "Xb");
	job.processes[0].threads[0].state = TS_PYTHON_COLLECTS | TS_PYTHON_HAS_GIL;
	job.processes[0].threads[0].frames[1].locals = "{\"n\":\"1\"}";
	ts_stack_put_json(&text, &job.processes[0]);
	TS_CHECK_STR(
		ts_text_cstr(&text),
		"{\"pid\":100,\"inner_pid\":100,\"command\":\"python3 train.py\",\"version\":\"3.11.2\",\"rank\":null,"
		"\"local_rank\":null,\"world_size\":null,\"stopped\":false,\"threads\":[{\"tid\":100,\"name\":\"MainThread\",\"main\":true,"
		"\"interpreter\":0,\"state\":\"collecting\",\"running\":false,\"gil\":true,\"task\":null,\"rejected\":false,"
		"\"frames\":[{\"func\":\"X\",\"file\":\"x.py\",\"lineno\":null,\"depth\":1,\"frame_type\":\"native\",\"address\":88},"
		"{\"func\":\"b\",\"file\":\"x.py\",\"lineno\":98,\"depth\":0,\"frame_type\":\"python\",\"locals\":{\"n\":\"1\"}}]}]}\n");
}

TS_TEST(states)
{
	TS_CHECK_STR(ts_stack_state_name(0), "idle");
	TS_CHECK_STR(ts_stack_state_name(TS_PYTHON_RUNS), "running");
	TS_CHECK_STR(ts_stack_state_name(TS_PYTHON_RUNS | TS_PYTHON_HAS_GIL), "gil");
	TS_CHECK_STR(ts_stack_state_name(TS_PYTHON_WAITS_GIL), "waiting for gil");
	TS_CHECK_STR(ts_stack_state_name(TS_PYTHON_COLLECTS | TS_PYTHON_HAS_GIL), "collecting");
}
