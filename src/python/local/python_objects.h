/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python objects in a process's memory: strings, code objects, line tables, dictionaries.
 * Everything is bounded and untrusted: an object that changes while it is read gives wrong bytes,
 * never a crash. The first half is libc only and without heap, for the agent (python_objects.c,
 * python_lines.c); the second half is for tools (python_dict.c, python_locals.c).
 */
#ifndef TS_PYTHON_LOCAL_PYTHON_OBJECTS_H
#define TS_PYTHON_LOCAL_PYTHON_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "python/local/python_layout.h"
#include "python/local/python_memory.h"

/* Context of the functions below. */
struct ts_python_process_view {
	struct ts_python_memory *memory;
	const struct ts_python_layout *layout;
	uint64_t code_type; /* address of PyCode_Type; 0: unknown */
	/*
	 * Cache of the functions below; zero at first, so keep the view. Everything is checked on
	 * each use.
	 */
	struct {
		uint64_t modules, threads; /* sys.modules, and threading._active in it */
		uint64_t tasks, task_type; /* asyncio.tasks._current_tasks, _asyncio.Task */
		uint32_t running_task;     /* of a thread state; 0: not found yet */
		uint32_t searched,
			search_due; /* a search that found nothing is not repeated in each call */
	} found;
};

/* ---- python_objects.c ---- */

/*
 * A str as UTF-8, truncated at a character boundary, NUL-terminated. Returns its length, or -1 if
 * it is not a str.
 */
int ts_python_read_text(struct ts_python_process_view *view, uint64_t object, char *buffer,
			size_t bytes);

/* Identity of a code object, to detect another one at the same address. */
struct ts_python_code_identity {
	uint64_t address;
	uint64_t name, file, line_table; /* addresses of the objects */
	int32_t first_line;
};

/*
 * The fixed part of a code object, from a copy of layout->code.bytes bytes. False: not a code
 * object.
 */
bool ts_python_code_identify(const struct ts_python_layout *layout, uint64_t address,
			     uint64_t code_type, const void *copy,
			     struct ts_python_code_identity *ret_identity);

struct ts_python_code_text {
	char name[512], file[1024];
	/* The raw line table, truncated to fit: lines beyond are unknown. */
	uint32_t table_bytes;
	uint64_t instructions;      /* address of the first one */
	uint32_t instruction_bytes; /* 0: not known */
};
/* Names and the address of the instructions. `table`: buffer for the line table, may be NULL. */
bool ts_python_code_read(struct ts_python_process_view *view,
			 const struct ts_python_code_identity *identity,
			 struct ts_python_code_text *ret_text, void *table, size_t table_capacity);

/* ---- python_lines.c ---- */

/*
 * The line of an instruction, by its byte offset from the first one (f_lasti, prev_instr or
 * instr_ptr, see python_layout.h, already converted to the running instruction). 0: none.
 */
int32_t ts_python_line(enum ts_python_lines format, const uint8_t *table, size_t bytes,
		       int32_t first_line, uint32_t offset);

/* ---- dictionaries (python_dict.c) ---- */

/*
 * Calls back for each pair of a dict, in order, until it returns false. At most `limit` pairs.
 * False: not a dict, or it changed meanwhile.
 */
bool ts_python_dict_each(struct ts_python_process_view *view, uint64_t dict, size_t limit,
			 bool (*pair)(void *context, uint64_t key, uint64_t value), void *context);
/* The value of a str key; 0: none. */
uint64_t ts_python_dict_find(struct ts_python_process_view *view, uint64_t dict, const char *key);
/* An attribute in an instance's __dict__, including inline values; 0: none. */
uint64_t ts_python_attribute(struct ts_python_process_view *view, uint64_t object,
			     const char *name);
/* tp_name of an object's type. */
bool ts_python_type_name(struct ts_python_process_view *view, uint64_t object, char *buffer,
			 size_t bytes);

/* ---- threads (python_thread_names.c) ---- */

/*
 * Thread names by Python's thread id: sys.modules["threading"]._active. Calls back for each;
 * `modules`: address of the dict sys.modules. `native_id`: the kernel's thread id as the process
 * sees it (Thread._native_id, also in 3.8 to 3.10), 0: unknown; threads created by native code are
 * missing. After a fork it may still be the parent's. False: unreadable.
 */
bool ts_python_thread_names(struct ts_python_process_view *view, uint64_t modules,
			    void (*named)(void *context, uint64_t thread_id, const char *name,
					  bool is_main, uint64_t native_id),
			    void *context);

/* ---- asyncio (asyncio_tasks.c) ---- */

/*
 * The current task of a thread's event loop, "Task-3 (fetch)": the names of the task and its
 * coroutine, NUL-terminated, truncated to fit. Returns the length; 0: none, or unavailable in this
 * version (loops not written in Python, 3.8 to 3.13). `modules`: address of the dict sys.modules of
 * the thread's interpreter.
 */
int ts_python_task_name(struct ts_python_process_view *view, uint64_t modules, uint64_t thread,
			char *buffer, size_t bytes);

/* ---- python_locals.c ---- */

struct ts_text;
/* Like ts_python_locals() of python_reader.h, for the frame at an address with that code object. */
int ts_python_frame_locals(struct ts_python_process_view *view, uint64_t frame, uint64_t code,
			   size_t limit, struct ts_text *out);
/* A shortened repr of any object. */
int ts_python_repr(struct ts_python_process_view *view, uint64_t object, size_t limit,
		   struct ts_text *out);

#endif
