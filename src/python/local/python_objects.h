/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python objects in the memory of a process: texts, code objects, line tables, dictionaries. All
 * bounded, all distrusted: an object that changes while it is read gives wrong bytes, never a
 * crash. The first half is libc only and has no heap: the agent is built from it (python_objects.c,
 * python_lines.c); the second half is for tools (walk_objects.c, python_locals.c).
 */
#ifndef TS_PYTHON_LOCAL_PYTHON_OBJECTS_H
#define TS_PYTHON_LOCAL_PYTHON_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "python/local/python_layout.h"
#include "python/local/python_memory.h"

/* What the functions below work with. */
struct ts_python_process_view {
	struct ts_python_memory *memory;
	const struct ts_python_layout *layout;
	uint64_t code_type; /* address of PyCode_Type; 0: not known yet */
	/*
	 * What the functions below have found in this process and use again; zero at first, so keep
	 * the view. All of it is checked at each use.
	 */
	struct {
		uint64_t modules, threads; /* sys.modules, and threading._active in it */
		uint64_t tasks, task_type; /* asyncio.tasks._current_tasks, _asyncio.Task */
		uint32_t running_task;     /* of a thread state; 0: not found yet */
		uint32_t searched,
			search_due; /* a search that found nothing is not made at each call */
	} found;
};

/* ---- python_objects.c ---- */

/*
 * A str as UTF-8, cut at a character's end to fit, ended by NUL: its bytes, or -1 where it is none.
 */
int ts_python_read_text(struct ts_python_process_view *view, uint64_t object, char *buffer,
			size_t bytes);

/* What tells a code object from another one that later stands at its address. */
struct ts_python_code_identity {
	uint64_t address;
	uint64_t name, file, line_table; /* addresses of the objects */
	int32_t first_line;
};

/* The fixed part of a code object, out of a copy of layout->code.bytes bytes. False: it is none. */
bool ts_python_code_identify(const struct ts_python_layout *layout, uint64_t address,
			     uint64_t code_type, const void *copy,
			     struct ts_python_code_identity *ret_identity);

struct ts_python_code_text {
	char name[512], file[1024];
	/* The line table, raw; cut to fit: lines beyond are not known. */
	uint32_t table_bytes;
	uint64_t instructions;      /* address of the first one */
	uint32_t instruction_bytes; /* 0: not known */
};
/* Names and the place of the instructions. `table`: room for the line table, may be NULL. */
bool ts_python_code_read(struct ts_python_process_view *view,
			 const struct ts_python_code_identity *identity,
			 struct ts_python_code_text *ret_text, void *table, size_t table_room);

/* ---- python_lines.c ---- */

/*
 * The line of an instruction, by its offset in bytes from the first one (of f_lasti, prev_instr or
 * instr_ptr as python_layout.h says: the caller has made it the offset of the instruction that
 * runs). 0: it has none.
 */
int32_t ts_python_line(enum ts_python_lines format, const uint8_t *table, size_t bytes,
		       int32_t first_line, uint32_t offset);

/* ---- dictionaries (python_dict.c) ---- */

/*
 * Calls for each pair of a dict, in order, until it returns false. At most `limit` pairs. False: it
 * is none, or changed meanwhile.
 */
bool ts_python_dict_each(struct ts_python_process_view *view, uint64_t dict, size_t limit,
			 bool (*pair)(void *context, uint64_t key, uint64_t value), void *context);
/* The value of a key that is a str; 0: none. */
uint64_t ts_python_dict_find(struct ts_python_process_view *view, uint64_t dict, const char *key);
/* An attribute in an instance's __dict__, inline values and all; 0: none. */
uint64_t ts_python_attribute(struct ts_python_process_view *view, uint64_t object,
			     const char *name);
/* tp_name of an object's type, as text. */
bool ts_python_type_name(struct ts_python_process_view *view, uint64_t object, char *buffer,
			 size_t bytes);

/* ---- threads (python_thread_names.c) ---- */

/*
 * Names of threads by Python's thread id: sys.modules["threading"]._active. Calls for each;
 * `modules`: address of the dict sys.modules. `native_id`: the kernel's thread id as the process
 * itself sees it (Thread._native_id, also of 3.8 to 3.10), 0: not known; threads that native code
 * has made have none here. After a fork it may still be the parent's. False: could not be read.
 */
bool ts_python_thread_names(struct ts_python_process_view *view, uint64_t modules,
			    void (*named)(void *context, uint64_t thread_id, const char *name,
					  bool is_main, uint64_t native_id),
			    void *context);

/* ---- asyncio (asyncio_tasks.c) ---- */

/*
 * What a thread's event loop runs now, "Task-3 (fetch)": the task's name and its coroutine's, ended
 * by NUL, cut to fit. Its bytes; 0: none, or this version does not tell (loops that are not written
 * in Python, 3.8 to 3.13). `modules`: address of the dict sys.modules of the thread's interpreter.
 */
int ts_python_task_name(struct ts_python_process_view *view, uint64_t modules, uint64_t thread,
			char *buffer, size_t bytes);

/* ---- python_locals.c ---- */

struct ts_text;
/* As ts_python_locals() of python_reader.h, of the frame at an address with that code object. */
int ts_python_frame_locals(struct ts_python_process_view *view, uint64_t frame, uint64_t code,
			   size_t limit, struct ts_text *out);
/* A shortened repr of any object. */
int ts_python_repr(struct ts_python_process_view *view, uint64_t object, size_t limit,
		   struct ts_text *out);

#endif
