/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identity and state of a thread: its kernel id (through pid namespaces, and for versions that do
 * not store it), its name, whether it runs. The kernel is asked rarely, so that sampling at 10 kHz
 * or 500 threads stays cheap: a thread whose stack moves runs; for others the answer is kept for a
 * millisecond, and for an eighth of the time since it last ran, up to 50 ms.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/process.h"
#include "base/process_internal.h"
#include "python/reader/python_reader_internal.h"

#define KERNEL_NS INT64_C(1000000) /* minimum validity of the kernel's answer */
#define KERNEL_MOST_NS                                                                            \
	INT64_C(50000000)                /* and at most, for a thread that has been idle for long \
					  */
#define NAMES_NS INT64_C(2000000000)     /* names are reread */
#define NAMES_SOON_NS INT64_C(20000000)  /* while some thread has none */
#define INNER_TIDS_NS INT64_C(100000000) /* between two scans of all threads of a namespace */
#define LIBC_THREAD_BYTES 2048u          /* that its id is looked for in */
#define LIBC_HEAD_BYTES 1024u            /* with the id in glibc and musl; more may not be mapped */

/* ---- ids ---- */

/* Fills inner_tids from /proc/PID/task. */
static void read_inner_tids(struct ts_python_reader *python)
{
	char path[32];
	DIR *directory;
	const struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)python->pid);
	directory = opendir(path);
	ts_map_clear(&python->inner_tids);
	while (directory && (entry = readdir(directory))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		pid_t inner;

		if (tid <= 0)
			continue;
		inner = ts_process_inner_pid(tid);
		if (inner > 0)
			ts_map_put(&python->inner_tids, (uint64_t)inner, (uint64_t)tid);
	}
	if (directory)
		closedir(directory);
}

/* As seen from here; 0: unknown. */
static pid_t outer_tid(struct ts_python_reader *python, uint64_t inner, int64_t now_ns)
{
	uint64_t tid = 0;

	if (!python->is_inside || !inner)
		return (pid_t)inner;
	if (inner == (uint64_t)python->inner_pid)
		return python->pid;
	if (!ts_map_get(&python->inner_tids, inner, &tid) &&
	    (!python->inner_tids_ns || now_ns - python->inner_tids_ns > INNER_TIDS_NS)) {
		python->inner_tids_ns = now_ns;
		read_inner_tids(python);
		ts_map_get(&python->inner_tids, inner, &tid);
	}
	return (pid_t)tid;
}

/*
 * Where a thread's id is in libc's thread structure (pthread_self() is its address). 0: nowhere.
 */
static uint32_t find_id(const uint8_t *copy, size_t bytes, uint64_t id)
{
	for (uint32_t at = 64; at < bytes; at += 4)
		if (ts_python_half_of(copy, at) == (uint32_t)id)
			return at;
	return 0;
}

/* 3.8 to 3.10: the main thread, whose id is known, tells where libc has it. */
static uint64_t libc_tid(struct ts_python_reader *python, const struct python_thread *thread)
{
	uint8_t copy[LIBC_THREAD_BYTES];
	uint32_t tid = 0;

	if (thread->is_main) {
		if (!python->tid_offset &&
		    ts_python_memory_read(&python->memory, thread->thread_id, copy, sizeof(copy)))
			python->tid_offset =
				find_id(copy, sizeof(copy), (uint64_t)python->inner_pid);
		return (uint64_t)python->inner_pid;
	}
	if (!python->tid_offset ||
	    !ts_python_memory_read(&python->memory, thread->thread_id + python->tid_offset, &tid,
				   sizeof(tid)) ||
	    tid > INT32_MAX)
		return 0;
	return tid;
}

static bool is_thread(const struct ts_python_reader *python, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)python->pid, (int)tid);
	return tid > 0 && access(path, F_OK) == 0;
}

static void set_tid(struct ts_python_reader *python, struct python_thread *thread, uint64_t inner,
		    int64_t now_ns)
{
	pid_t tid = outer_tid(python, inner, now_ns);

	if (thread->kernel_fd >= 0)
		close(thread->kernel_fd);
	thread->kernel_fd = -1;
	thread->kernel_ns = 0;
	thread->tid = is_thread(python, tid) ? tid : 0;
}

/*
 * A forked child has its parent's thread states, with the parent's ids, until Python has deleted
 * the states of all threads but the one that called fork(), and updated its id; if native code
 * called fork(), forever. In libc's structure of that thread the kernel has set the new id. The
 * others do not exist in this process: their ids are as before, or glibc has cleared them.
 */
static void identify_forked(struct ts_python_reader *python, struct python_thread *thread,
			    int64_t now_ns)
{
	bool is_certain = !python->is_inside || python->inner_tids_ns == now_ns;
	uint8_t copy[LIBC_HEAD_BYTES];
	bool has_old, has_new;

	if (!ts_python_memory_read(&python->memory, thread->thread_id, copy, sizeof(copy)))
		return;
	has_old = find_id(copy, sizeof(copy), thread->native_id);
	has_new = find_id(copy, sizeof(copy), (uint64_t)python->inner_pid);
	if (has_new && !has_old) {
		thread->tid = python->pid;
		thread->is_main = thread->interpreter_id == 0;
		thread->is_absent = false;
	} else if (is_certain) {
		thread->is_absent = !has_new;
	}
}

void ts_python_thread_identify(struct ts_python_reader *python, struct python_thread *thread,
			       bool is_last, int64_t now_ns)
{
	const struct ts_python_layout *layout = &python->runtime_info.layout;
	bool has_native = layout->thread.native_thread_id != TS_PYTHON_NONE;
	uint64_t id = ts_python_word_of(thread->stack.head, layout->thread.thread_id);
	uint64_t native =
		has_native ? ts_python_word_of(thread->stack.head, layout->thread.native_thread_id)
			   : 0;

	if (id == thread->thread_id && native == thread->native_id && (thread->tid || !native))
		return;
	if (id != thread->thread_id || native != thread->native_id)
		thread->is_absent = false;
	thread->thread_id = id;
	thread->native_id = native;
	thread->is_named = false;
	thread->is_main = thread->interpreter_id == 0 &&
			  (native ? native == (uint64_t)python->inner_pid : is_last);
	set_tid(python, thread, native ? native : libc_tid(python, thread), now_ns);
	if (!thread->tid && native && id)
		identify_forked(python, thread, now_ns);
	/* After exec() a fixed-address interpreter is where it was; the main thread is not. */
	if (thread->is_main && native) {
		python->is_replaced = python->main_thread_id && python->main_thread_id != id;
		python->main_thread_id = id;
	}
}

/* ---- names ---- */

static void name_thread(void *context, uint64_t thread_id, const char *name, bool is_main,
			uint64_t native_id)
{
	struct ts_python_reader *python = context;

	(void)is_main;
	for (size_t i = 0; i < python->thread_count; i++) {
		struct python_thread *thread = python->threads[i];

		if (thread->thread_id != thread_id)
			continue;
		snprintf(thread->name, sizeof(thread->name), "%s", name);
		thread->is_named = true;
		if (!thread->tid && native_id)
			set_tid(python, thread, native_id, python->named_ns);
	}
}

void ts_python_threads_name(struct ts_python_reader *python, int64_t now_ns, bool has_new)
{
	bool is_nameless = false;

	for (size_t i = 0; i < python->thread_count && !is_nameless; i++)
		is_nameless = !python->threads[i]->is_named;
	if (!(python->flags & TS_PYTHON_NAMES) ||
	    (!has_new && python->named_ns &&
	     now_ns - python->named_ns < (is_nameless ? NAMES_SOON_NS : NAMES_NS)))
		return;
	python->named_ns = now_ns;
	for (size_t i = 0; i < python->interpreter_count; i++)
		if (python->interpreters[i].modules)
			ts_python_thread_names(&python->view, python->interpreters[i].modules,
					       name_thread, python);
	/* Threads created by native code have none; they are not looked up each time. */
	if (now_ns - python->nameless_ns > NAMES_NS)
		for (size_t i = 0; i < python->thread_count; i++)
			python->threads[i]->is_named = true;
	python->nameless_ns = has_new || !is_nameless ? now_ns : python->nameless_ns;
	if (python->flags & TS_PYTHON_TASKS && python->runtime_info.layout.minor >= 14 &&
	    python->runtime_info.layout.task.name == TS_PYTHON_NONE)
		ts_python_find_asyncio(&python->memory, python->pid, &python->runtime_info);
}

/* ---- the kernel ---- */

static int open_kernel(const struct ts_python_reader *python, const struct python_thread *thread)
{
	char name[64];
	int fd;

	/* "running", or the system call it is blocked in: a quarter of the cost of `stat`. */
	snprintf(name, sizeof(name), "task/%d/syscall", (int)thread->tid);
	fd = ts_proc_open(python->pid, name, O_RDONLY);
	if (fd >= 0)
		return fd;
	snprintf(name, sizeof(name), "task/%d/stat", (int)thread->tid);
	return ts_proc_open(python->pid, name, O_RDONLY);
}

static bool is_running_state(const char *text)
{
	const char *end = strrchr(text, ')');

	if (end) /* of stat */
		return end[1] == ' ' && end[2] == 'R';
	return text[0] == 'r';
}

void ts_python_thread_query_kernel(struct ts_python_reader *python, struct python_thread *thread,
				   bool has_moved, int64_t now_ns)
{
	char text[512];
	ssize_t got;

	int64_t hold_ns = (now_ns - thread->ran_ns) / 8;

	if (has_moved) {
		thread->runs = true;
		thread->kernel_ns = 0;
		thread->ran_ns = now_ns;
		return;
	}
	hold_ns = TS_MIN(TS_MAX(hold_ns, KERNEL_NS), KERNEL_MOST_NS);
	if (!thread->tid || (thread->kernel_ns && now_ns - thread->kernel_ns < hold_ns))
		return;
	thread->kernel_ns = now_ns;
	thread->runs = false;
	if (thread->kernel_fd < 0)
		thread->kernel_fd = open_kernel(python, thread);
	if (thread->kernel_fd < 0)
		return;
	got = pread(thread->kernel_fd, text, sizeof(text) - 1, 0);
	if (got <= 0) {
		close(thread->kernel_fd);
		thread->kernel_fd = -1;
		return;
	}
	text[got] = '\0';
	thread->runs = is_running_state(text);
	if (thread->runs)
		thread->ran_ns = now_ns;
}

void ts_python_thread_free(struct python_thread *thread)
{
	if (thread->kernel_fd >= 0)
		close(thread->kernel_fd);
	ts_python_stack_release(&thread->stack);
	free(thread->frames);
	free(thread->last_frames);
	free(thread);
}
