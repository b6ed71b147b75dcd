/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The current task of a thread's asyncio event loop. Up to 3.13 asyncio keeps it in a dictionary
 * {loop: task}, and a loop written in Python knows its thread; since 3.14 it is in the thread
 * state. Offsets differ by version and build, so they are found by invariants: a task of asyncio's
 * type that contains a coroutine, followed by a name.
 */
#include <stdio.h>

#include "python/local/python_objects_internal.h"

#define MAX_LOOPS 256
#define THREAD_WORDS 512   /* bytes of a thread state that are searched */
#define TASK_WORDS 40      /* of a task */
#define COROUTINE_WORDS 16 /* of a coroutine */
#define SEARCH_PAUSE 256   /* maximum calls between two searches that find nothing */

/* ---- names ---- */

static bool is_text(struct ts_python_process_view *view, uint64_t object)
{
	struct ts_python_type type;

	return ts_python_type_of(view, object, &type) && type.flags & TS_PYTHON_TYPE_TEXT;
}

/* Name and qualified name are the first two strings of a coroutine, adjacent, in every version. */
int ts_python_coroutine_name(struct ts_python_process_view *view, uint64_t coroutine, char *buffer,
			     size_t bytes)
{
	uint64_t words[COROUTINE_WORDS];

	if (!ts_python_is_address(coroutine) ||
	    !ts_python_memory_read(view->memory, coroutine + view->layout->object.bytes, words,
				   sizeof(words)))
		return -1;
	for (size_t i = 0; i + 1 < COROUTINE_WORDS; i++)
		if (is_text(view, words[i]) && is_text(view, words[i + 1]))
			return ts_python_read_text(view, words[i + 1], buffer, bytes);
	return -1;
}

static bool is_coroutine(struct ts_python_process_view *view, uint64_t object)
{
	char type[32];

	return ts_python_type_name(view, object, type, sizeof(type)) &&
	       (!strcmp(type, "coroutine") || !strcmp(type, "generator"));
}

/* A task's name is a string, or a number until it is asked for (3.12 on). */
static int name_text(struct ts_python_process_view *view, uint64_t name, char *buffer, size_t bytes)
{
	uint64_t number;

	if (ts_python_read_unsigned(view, name, &number))
		return snprintf(buffer, bytes, "Task-%llu", (unsigned long long)number);
	return ts_python_read_text(view, name, buffer, bytes);
}

static int join(struct ts_python_process_view *view, uint64_t name, uint64_t coroutine,
		char *buffer, size_t bytes)
{
	char name_bytes[128], function[256];
	int written;

	if (name_text(view, name, name_bytes, sizeof(name_bytes)) < 0)
		return 0;
	if (ts_python_coroutine_name(view, coroutine, function, sizeof(function)) < 0)
		written = snprintf(buffer, bytes, "%s", name_bytes);
	else
		written = snprintf(buffer, bytes, "%s (%s)", name_bytes, function);
	if (written < (int)bytes)
		return written;
	/* Truncated at a character boundary. */
	written = (int)bytes - 1;
	while (written && (buffer[written - 1] & 0xc0) == 0x80)
		written--;
	if (written && buffer[written - 1] & 0x80)
		written--;
	buffer[written] = '\0';
	return written;
}

/* asyncio's own task: the name follows the coroutine. A task written in Python: attributes. */
static int describe(struct ts_python_process_view *view, uint64_t task, char *buffer, size_t bytes)
{
	uint64_t words[TASK_WORDS];
	uint16_t known = view->layout->task.coroutine;
	struct ts_python_wanted wanted[] = { { "_name", 0 }, { "_coro", 0 } };

	ts_python_attributes(view, task, wanted, 2);
	if (wanted[0].value)
		return join(view, wanted[0].value, wanted[1].value, buffer, bytes);
	if (!ts_python_memory_read(view->memory, task, words, sizeof(words)))
		return 0;
	if (known && ts_python_has(known) && known / 8 < TASK_WORDS - 1 &&
	    is_coroutine(view, words[known / 8]))
		return join(view, words[known / 8 + 1], words[known / 8], buffer, bytes);
	for (size_t i = view->layout->object.bytes / 8; i + 1 < TASK_WORDS; i++)
		if (is_coroutine(view, words[i]))
			return join(view, words[i + 1], words[i], buffer, bytes);
	return 0;
}

/* ---- 3.8 to 3.13 ---- */

struct search {
	struct ts_python_process_view *view;
	uint64_t thread_id;
	uint64_t task;
};

static bool compare_loop(void *context, uint64_t loop, uint64_t task)
{
	struct search *search = context;
	uint64_t thread_id;

	if (!ts_python_read_unsigned(search->view,
				     ts_python_attribute(search->view, loop, "_thread_id"),
				     &thread_id) ||
	    thread_id != search->thread_id)
		return true;
	search->task = task;
	return false;
}

static uint64_t name_in_module(struct ts_python_process_view *view, uint64_t modules,
			       const char *module, const char *name)
{
	uint64_t found = ts_python_dict_find(view, modules, module);
	uint64_t names = found ? ts_python_module_dict(view, found) : 0;

	return names ? ts_python_dict_find(view, names, name) : 0;
}

/* Whether a search is due: most processes have no asyncio and need no search in each sweep. */
static bool is_due(struct ts_python_process_view *view)
{
	if (view->found.searched++ < view->found.search_due)
		return false;
	view->found.search_due = view->found.searched + (view->found.searched < SEARCH_PAUSE
								 ? view->found.searched + 8
								 : SEARCH_PAUSE);
	return true;
}

static uint64_t task_of_loops(struct ts_python_process_view *view, uint64_t modules,
			      uint64_t thread)
{
	struct search search = { .view = view };

	if (!view->found.tasks) {
		if (!is_due(view))
			return 0;
		view->found.tasks =
			name_in_module(view, modules, "asyncio.tasks", "_current_tasks");
	}
	if (!view->found.tasks ||
	    !ts_python_memory_read_pointer(view->memory, thread + view->layout->thread.thread_id,
					   &search.thread_id))
		return 0;
	ts_python_dict_each(view, view->found.tasks, MAX_LOOPS, compare_loop, &search);
	return search.task;
}

/* ---- 3.14 on ---- */

static bool is_task(struct ts_python_process_view *view, uint64_t object)
{
	struct ts_python_type type;
	uint64_t address;

	if (!ts_python_type_of(view, object, &type))
		return false;
	address = type.address;
	for (int i = 0; i < 8 && ts_python_is_address(address); i++) {
		if (address == view->found.task_type)
			return true;
		if (!ts_python_memory_read_pointer(view->memory, address + view->layout->type.base,
						   &address))
			break;
	}
	return false;
}

/* The running loop precedes the running task. */
static void find_running_task(struct ts_python_process_view *view, uint64_t modules,
			      uint64_t thread)
{
	uint64_t words[64];

	if (!view->found.task_type)
		view->found.task_type = name_in_module(view, modules, "_asyncio", "Task");
	if (!view->found.task_type)
		return;
	for (uint32_t first = 0; first < THREAD_WORDS; first += 64) {
		if (!ts_python_memory_read(view->memory, thread + first * 8u, words, sizeof(words)))
			return;
		for (uint32_t i = 0; i < 64; i++)
			if (is_task(view, words[i])) {
				view->found.running_task = (first + i) * 8;
				return;
			}
	}
}

static uint64_t task_of_thread(struct ts_python_process_view *view, uint64_t modules,
			       uint64_t thread)
{
	uint16_t known = view->layout->thread.running_task;
	uint64_t task;

	if (known && ts_python_has(known))
		view->found.running_task = known;
	if (!view->found.running_task) {
		if (!is_due(view))
			return 0;
		find_running_task(view, modules, thread);
	}
	if (!view->found.running_task ||
	    !ts_python_memory_read_pointer(view->memory, thread + view->found.running_task, &task))
		return 0;
	return task;
}

int ts_python_task_name(struct ts_python_process_view *view, uint64_t modules, uint64_t thread,
			char *buffer, size_t bytes)
{
	uint64_t task;

	if (!bytes)
		return 0;
	buffer[0] = '\0';
	task = view->layout->minor >= 14 ? task_of_thread(view, modules, thread)
					 : task_of_loops(view, modules, thread);
	return ts_python_is_address(task) ? describe(view, task, buffer, bytes) : 0;
}
