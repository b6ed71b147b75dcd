/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offsets in CPython's data structures, by version and build. Since 3.13 the process itself reports
 * most of them (_Py_DebugOffsets); for 3.8 to 3.12 they are constants of each minor version, in
 * python_layout_tables.c. libc only: also linked into the agent.
 */
#ifndef TS_PYTHON_LOCAL_PYTHON_LAYOUT_H
#define TS_PYTHON_LOCAL_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TS_PYTHON_OLDEST_MINOR 8
#define TS_PYTHON_NEWEST_MINOR 15

#define TS_PYTHON_NONE 0xffffu /* this version has no such member */

/* How to find a thread's innermost frame, and its type. */
enum ts_python_frames {
	TS_PYTHON_FRAME_OBJECTS, /* 3.8 to 3.10: tstate->frame, PyFrameObject */
	TS_PYTHON_CFRAME,        /* 3.11, 3.12: tstate->cframe->current_frame */
	TS_PYTHON_CURRENT_FRAME, /* 3.13 on: tstate->current_frame */
};

enum ts_python_lines {
	TS_PYTHON_LNOTAB,       /* 3.8, 3.9 */
	TS_PYTHON_LINETABLE_10, /* 3.10 */
	TS_PYTHON_LOCATIONS,    /* 3.11 on: PEP 657 */
};

/* Offsets in bytes. */
struct ts_python_layout {
	uint8_t minor;
	bool is_free_threaded, is_debug;
	enum ts_python_frames frames;
	enum ts_python_lines lines;

	struct {
		uint16_t interpreters_head, main_interpreter;
		uint16_t current_thread; /* gilstate.tstate_current: 3.8 to 3.11 */
		uint16_t collecting;     /* runtime.gc.collecting: 3.8 */
	} runtime;
	struct {
		uint32_t bytes; /* bytes that cover all members below */
		uint32_t id, next, threads_head, threads_main;
		uint32_t modules;          /* dict: sys.modules */
		uint32_t collecting;       /* gc.collecting (int) */
		uint32_t collecting_frame; /* 3.15 */
		uint32_t gil; /* pointer to struct _gil_runtime_state (3.12 on), or the struct
				 itself (see gil_is_inside) */
		uint32_t code_generation; /* incremented when a code object is destroyed: 3.14 on;
					     TS_PYTHON_NONE_32 */
		bool gil_is_inside;
	} interpreter; /* 32 bits each, since it is large: TS_PYTHON_NONE_32 */
	struct {
		uint16_t locked, last_holder;
	} gil;
	struct {
		uint16_t bytes; /* bytes that cover all members below */
		uint16_t previous, next, interpreter;
		uint16_t frame; /* current_frame, cframe or frame: see `frames` */
		uint16_t thread_id, native_thread_id; /* NONE: 3.8 to 3.10 */
		uint16_t data_stack_chunk;            /* NONE: 3.8 to 3.10 */
		uint16_t data_stack_top, data_stack_limit;
		uint16_t status; /* bit field (3.13: _status; 3.12: _status), or NONE */
		uint16_t holds_gil, gil_requested; /* 3.15; NONE */
		uint16_t attached;     /* 1: it may run Python: free-threaded builds; NONE */
		uint16_t base_frame;   /* 3.15; NONE */
		uint16_t running_task; /* asyncio_running_task: 3.14 on; of _PyThreadStateImpl */
	} thread;
	struct {
		uint16_t current_frame; /* of struct _PyCFrame */
	} cframe;
	struct {
		uint16_t bytes;       /* bytes that cover all members but the locals */
		uint16_t previous;    /* f_back */
		uint16_t executable;  /* f_code, f_executable; see executable_is_tagged */
		uint16_t instruction; /* f_lasti (int) in 3.8 to 3.10; prev_instr; instr_ptr */
		uint16_t locals;      /* localsplus */
		uint16_t owner;
		uint16_t function; /* f_func, f_funcobj: 3.11 on */
		uint16_t state; /* f_executing (3.8, 3.9), f_state (3.10): state_executing while on
				   a stack */
		uint8_t state_executing;
		uint16_t generator;  /* f_gen: 3.8 to 3.10 */
		uint16_t is_entry;   /* 3.11 */
		uint16_t code_index; /* tlbc_index in free-threaded builds from 3.14 on */
		uint16_t stack_top;  /* stacktop (int), stackpointer */
		bool executable_is_tagged, locals_are_tagged;
		bool is_top_marked; /* stack_top is below 0 while the frame itself runs: 3.11
				       to 3.13 */
		/* Values of `owner`; 0xff: none. */
		uint8_t owner_thread, owner_generator, owner_frame_object, owner_c_stack,
			owner_interpreter;
		uint16_t in_generator; /* offset of the frame in a generator: 3.11 on */
	} frame;
	struct {
		uint16_t previous, bytes, top, data; /* of _PyStackChunk */
	} chunk;
	struct {
		uint16_t bytes; /* bytes that cover all members but the instructions */
		uint16_t first_line, file, name, qualified_name, line_table;
		uint16_t argument_count, local_names, local_kinds; /* localsplusnames (3.11 on) */
		uint16_t variable_names, cell_names, free_names;   /* 3.8 to 3.10 */
		uint16_t instructions;        /* co_code (bytes object) in 3.8 to 3.10, else
						 co_code_adaptive, inline */
		uint16_t thread_instructions; /* co_tlbc, or NONE */
		uint16_t first_traceable;     /* _co_firsttraceable: 3.11 on */
	} code;
	struct {
		uint16_t type, var_size, reference_count, bytes; /* of PyObject, PyVarObject */
	} object;
	struct {
		uint16_t code;     /* func_code: 3.11 on */
		uint16_t version;  /* func_version: 3.11 on */
		int8_t call_cache; /* from a caller's `instruction` to the version that its call
				      expects */
	} function;
	struct {
		uint16_t name, flags, basic_size, dictionary; /* tp_dictoffset */
		uint16_t base;
		uint16_t cached_keys; /* ht_cached_keys: 3.15 on (word 67 of its offsets); 0: see
					 python_dict.c */
	} type;
	struct {
		uint16_t length, state, ascii_bytes,
			compact_bytes; /* PyASCIIObject, PyCompactUnicodeObject */
		uint8_t kind_shift;    /* of `state` */
	} unicode;
	struct {
		uint16_t items; /* of PyTupleObject, inline */
	} tuple;
	struct {
		uint16_t items; /* pointer */
	} list;
	struct {
		uint16_t used, keys, values;
		/* of PyDictKeysObject */
		uint16_t keys_size, keys_log2_index, keys_kind, keys_count, keys_indices;
		uint8_t keys_size_is_log2; /* dk_log2_size, 3.11 on */
	} dict;
	struct {
		uint16_t bytes; /* ob_sval */
	} bytes;
	struct {
		uint16_t size, digits; /* lv_tag (3.12 on) or ob_size */
		uint8_t size_shift;    /* 3 from 3.12 on */
	} integer;
	struct {
		uint16_t value;
	} real;
	struct {
		uint16_t name, coroutine; /* of TaskObj; from asyncio's own offsets (section
					     .AsyncioDebug) since 3.14 */
	} task;
};

#define TS_PYTHON_NONE_32 0xffffffffu

/* 3.8 to 3.12. False: unknown. */
bool ts_python_layout_of_version(struct ts_python_layout *ret_layout, unsigned int minor,
				 bool is_debug);

/* Size of _Py_DebugOffsets, enough for every version. */
#define TS_PYTHON_DEBUG_OFFSETS_BYTES 2048u
#define TS_PYTHON_COOKIE "xdebugpy"

/*
 * From the start of _PyRuntime, 3.13 on. TS_OK, TS_EVERSION (*ret_version is then its
 * PY_VERSION_HEX), TS_EFORMAT: not a runtime, or implausible numbers.
 */
int ts_python_layout_of_runtime(struct ts_python_layout *ret_layout, const void *bytes,
				size_t count, uint64_t *ret_version);

#endif
