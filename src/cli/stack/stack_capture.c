/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures one process: its identity, and the stacks of its threads. Retries stacks that could not
 * be read completely.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/local/rank.h"
#include "base/process.h"
#include "cli/stack/stack_verb.h"

#define TRIES 5
#define PAUSE_NS INT64_C(2000000)
#define LOCALS_BYTES 4096u

void ts_stack_sleep(int64_t ns)
{
	struct timespec left = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	while (nanosleep(&left, &left))
		;
}

/* ---- identity ---- */

/* Set by launchers of distributed jobs. Not readable for every process. */
static void read_ranks(struct ts_stack_process *process)
{
	struct ts_rank rank;
	bool is_known = ts_process_rank(process->pid, &rank);

	process->rank = is_known ? rank.rank : -1;
	process->local_rank = is_known ? rank.local_rank : -1;
	process->world_size = is_known ? rank.world_size : -1;
}

/* The command line, separated by blanks. */
static void read_command(struct ts_stack_process *process)
{
	size_t length =
		ts_process_command(process->pid, process->command, sizeof(process->command));

	for (size_t i = 0; i + 1 < length; i++)
		if (!process->command[i])
			process->command[i] = ' ';
	while (length && (!process->command[length - 1] || process->command[length - 1] == ' '))
		process->command[--length] = '\0';
	ts_process_name(process->pid, process->name, sizeof(process->name));
	if (!process->command[0])
		snprintf(process->command, sizeof(process->command), "%s", process->name);
}

/* 'R' and so on; 0: it has exited. */
static char state_of_thread(pid_t pid, pid_t tid)
{
	char path[64], text[512];
	TS_AUTO_FD int fd = -1;
	const char *name_end;
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	fd = ts_io_open(path, O_RDONLY, 0);
	got = fd >= 0 ? ts_read_some(fd, text, sizeof(text) - 1) : 0;
	text[got > 0 ? got : 0] = '\0';
	name_end = strrchr(text, ')');
	return name_end && name_end[1] == ' ' ? name_end[2] : '\0';
}

static int read_identity(struct ts_stack_process *process, pid_t pid, struct ts_error *err)
{
	bool exists = ts_process_exists(pid, &process->start_time);

	process->pid = pid;
	ts_process_name(pid, process->name, sizeof(process->name));
	if (!exists && process->name[0])
		return ts_error_set(err, TS_ENOTFOUND,
				    "process %d (%s) is a zombie (exited, not yet reaped)",
				    (int)pid, process->name);
	if (!exists)
		return ts_error_set(err, TS_ENOTFOUND, "there is no process %d", (int)pid);
	read_command(process);
	read_ranks(process);
	process->is_stopped = tolower(state_of_thread(pid, pid)) == 't';
	process->inner_pid = ts_process_inner_pid(pid);
	return TS_OK;
}

/* ---- Python threads ---- */

static const char *keep(struct ts_stack_process *process, const char *text)
{
	return ts_arena_strdup_len(&process->texts, text, strlen(text));
}

/* Reads the variables now, shortly after the frame was read. */
static const char *keep_locals(struct ts_stack_process *process,
			       const struct ts_python_frame *frame)
{
	TS_SCOPED(ts_text) text = { 0 };

	if (ts_python_locals(process->python, frame, LOCALS_BYTES, &text) || text.failed)
		return NULL;
	return ts_arena_strdup_len(&process->texts, text.data, text.length);
}

int ts_stack_keep_frames(struct ts_stack_process *process, struct ts_stack_thread *thread,
			 const struct ts_python_thread *seen,
			 const struct ts_stack_options *options)
{
	struct ts_stack_frame *frames = ts_arena_alloc_zeroed(
		&process->texts, seen->depth ? seen->depth : 1, sizeof(*frames));

	if (!frames)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < seen->depth; i++) {
		frames[i] = (struct ts_stack_frame){
			.function = seen->frames[i].code->name,
			.file = seen->frames[i].code->file,
			.line = seen->frames[i].line,
		};
		if (options->locals)
			frames[i].locals = keep_locals(process, &seen->frames[i]);
	}
	thread->frames = frames;
	thread->count = seen->depth;
	return TS_OK;
}

uint32_t ts_stack_query_kernel(const struct ts_stack_process *process,
			       const struct ts_python_thread *seen)
{
	uint32_t state = seen->state;

	if (seen->tid) {
		state &= ~(uint32_t)TS_PYTHON_RUNS;
		state |= state_of_thread(process->pid, seen->tid) == 'R' ? TS_PYTHON_RUNS : 0;
	}
	return state;
}

static int keep_thread(struct ts_stack_process *process, struct ts_stack_thread *thread,
		       const struct ts_python_thread *seen, const struct ts_stack_options *options)
{
	*thread = (struct ts_stack_thread){
		.tid = seen->tid,
		.thread_id = seen->thread_id,
		.interpreter = seen->interpreter,
		.name = keep(process, seen->name),
		.task = keep(process, seen->task),
		.is_main = seen->is_main,
		.is_rejected = seen->is_rejected,
		.native_missing = "",
		.state = ts_stack_query_kernel(process, seen),
	};
	if (!thread->name || !thread->task)
		return TS_ENOMEM;
	return ts_stack_keep_frames(process, thread, seen, options);
}

static struct ts_stack_thread *add_thread(struct ts_stack_process *process)
{
	if (ts_grow_array((void **)&process->threads, &process->capacity, process->count + 1,
			  sizeof(*process->threads)))
		return NULL;
	return &process->threads[process->count++];
}

static int keep_sweep(struct ts_stack_process *process, const struct ts_python_sweep *sweep,
		      const struct ts_stack_options *options)
{
	int rc = TS_OK;

	for (size_t i = 0; i < sweep->count && !rc; i++) {
		struct ts_stack_thread *thread = add_thread(process);

		rc = thread ? keep_thread(process, thread, &sweep->threads[i], options) : TS_ENOMEM;
	}
	return rc;
}

/* Threads with an incomplete stack, from a later sweep. */
static int repair(struct ts_stack_process *process, const struct ts_python_sweep *sweep,
		  const struct ts_stack_options *options)
{
	for (size_t i = 0; i < process->count; i++) {
		struct ts_stack_thread *thread = &process->threads[i];

		for (size_t k = 0; k < sweep->count && thread->is_rejected; k++) {
			const struct ts_python_thread *seen = &sweep->threads[k];

			if (seen->thread_id == thread->thread_id &&
			    seen->interpreter == thread->interpreter && !seen->is_rejected &&
			    keep_thread(process, thread, seen, options))
				return TS_ENOMEM;
		}
	}
	return TS_OK;
}

static bool is_complete(const struct ts_stack_process *process)
{
	for (size_t i = 0; i < process->count; i++) {
		if (process->threads[i].is_rejected)
			return false;
	}
	return true;
}

static int take_python(struct ts_stack_process *process, const struct ts_stack_options *options,
		       struct ts_error *err)
{
	struct ts_python_sweep sweep;
	/* The first sweep learns the layout; the second one reads all threads at once. */
	int rc = ts_python_sweep(process->python, &sweep, err);

	if (!rc)
		rc = ts_python_sweep(process->python, &sweep, err);
	if (rc)
		return rc;
	rc = keep_sweep(process, &sweep, options);
	for (int i = 1; i < TRIES && !rc && !is_complete(process); i++) {
		ts_stack_sleep(PAUSE_NS);
		/* It has exited meanwhile: keep the first sweep. */
		if (ts_python_sweep(process->python, &sweep, NULL))
			break;
		rc = repair(process, &sweep, options);
	}
	return rc ? ts_error_set(err, rc, "no memory for its stacks") : TS_OK;
}

/* ---- threads in /proc ---- */

static void name_thread(struct ts_stack_process *process, struct ts_stack_thread *thread)
{
	char path[64], text[64] = "";
	TS_AUTO_FD int fd = -1;
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)process->pid, (int)thread->tid);
	fd = ts_io_open(path, O_RDONLY, 0);
	got = fd >= 0 ? ts_read_some(fd, text, sizeof(text) - 1) : 0;
	text[got > 0 ? got : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	thread->name = keep(process, text);
	if (!thread->name)
		thread->name = "";
}

static bool has_thread(const struct ts_stack_process *process, pid_t tid)
{
	for (size_t i = 0; i < process->count; i++) {
		if (process->threads[i].tid == tid)
			return true;
	}
	return false;
}

/* Threads unknown to Python, for native stacks. */
static void add_kernel_threads(struct ts_stack_process *process)
{
	char path[64];
	struct dirent *entry;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)process->pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		struct ts_stack_thread *thread;
		int64_t tid;
		char state;

		if (ts_parse_int64(entry->d_name, strlen(entry->d_name), &tid) ||
		    has_thread(process, (pid_t)tid))
			continue;
		state = state_of_thread(process->pid, (pid_t)tid);
		thread = state ? add_thread(process) : NULL;
		if (!thread)
			continue;
		*thread = (struct ts_stack_thread){
			.tid = (pid_t)tid,
			.task = "",
			.native_missing = "",
			.is_native = true,
			.is_main = !process->is_python && tid == process->pid,
			.state = state == 'R' ? TS_PYTHON_RUNS : 0,
		};
		name_thread(process, thread);
	}
	if (tasks)
		closedir(tasks);
}

/* ---- entry points ---- */

static void note_version(struct ts_stack_process *process)
{
	const struct ts_python_info *about = ts_python_info(process->python);

	process->is_python = true;
	process->is_free_threaded = about->is_free_threaded;
	snprintf(process->version, sizeof(process->version), "%s", about->version);
}

static int compare_threads(const void *left, const void *right)
{
	const struct ts_stack_thread *a = left, *b = right;

	if (a->is_main != b->is_main)
		return a->is_main ? -1 : 1;
	if (a->is_native != b->is_native)
		return a->is_native ? 1 : -1;
	if (a->interpreter != b->interpreter)
		return TS_COMPARE(a->interpreter, b->interpreter);
	return a->tid != b->tid ? TS_COMPARE(a->tid, b->tid)
				: TS_COMPARE(a->thread_id, b->thread_id);
}

int ts_stack_capture(struct ts_stack_process *process, pid_t pid,
		     const struct ts_stack_options *options, struct ts_error *err)
{
	int rc = read_identity(process, pid, err);

	if (rc)
		return rc;
	rc = ts_python_reader_open(&process->python, pid, process->start_time,
				   TS_PYTHON_NAMES | TS_PYTHON_KERNEL | TS_PYTHON_TASKS, err);
	if (!rc) {
		note_version(process);
		rc = take_python(process, options, err);
	} else if (rc == TS_ENOTFOUND && options->native &&
		   ts_process_lives(pid, process->start_time)) {
		rc = TS_OK;
	}
	if (!rc && options->native)
		add_kernel_threads(process);
	ts_sort(process->threads, process->count, sizeof(*process->threads), compare_threads);
	return rc || !options->native ? rc : ts_stack_add_native(process, options, err);
}

void ts_stack_process_release(struct ts_stack_process *process)
{
	free(process->threads);
	ts_python_reader_close(process->python);
	ts_native_process_close(process->native);
	ts_arena_release(&process->texts);
}
