/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of struct ts_native_process, shared by the unwinder's files. */
#ifndef TS_CODE_NATIVE_INTERNAL_H
#define TS_CODE_NATIVE_INTERNAL_H

#include "base/arena.h"
#include "base/map.h"
#include "code/elf.h"
#include "code/local/cfi.h"
#include "code/local/registers.h"
#include "code/maps.h"
#include "code/unwind.h"

#define TS_PYTHON_LOOP "_PyEval_EvalFrameDefault"

/* A file that a process executes, or anonymous memory treated like one. */
struct ts_native_module {
	uint64_t device, inode, bias_key; /* identity: a file mapped twice is two modules */
	const char *path;
	const char *build_id;
	uint64_t bias;
	bool is_tried;  /* opening is deferred until a stack first leads here */
	bool is_used;   /* since the last refresh */
	bool is_python; /* contains the interpreter's loop */
	struct ts_elf_range loop;
	struct ts_elf *elf;
	struct ts_elf *debug; /* separate debug file, which names what a stripped binary does not */
	bool is_debug_tried;  /* opening is deferred until a function has no name */
	struct ts_cfi cfi;
};

struct ts_native_range {
	uint64_t start, end, file_offset; /* executable memory */
	struct ts_native_module *module;
};

/* How to unwind from an address: its function and its .eh_frame rules. Immutable. */
struct ts_native_step {
	struct ts_native_code *code;
	uint64_t pc;             /* relative to the module */
	uint64_t function_start; /* in the process's memory; 0: unknown */
	const uint8_t *expressions;
	bool has_rules, is_signal, is_signed;
	uint8_t return_register;
	uint8_t count;
	uint32_t saved_bytes; /* from the CFA down to the lowest saved register */
	struct ts_cfi_rule frame;
	struct {
		uint8_t whose;
		struct ts_cfi_rule rule;
	} rules[]; /* all except TS_CFI_SAME */
};

struct ts_native_process {
	pid_t pid;
	struct ts_native_range *ranges; /* by address */
	size_t range_count, range_capacity;
	struct ts_native_module **modules;
	size_t module_count, module_capacity;
	int64_t renewed_ns, wait_ns;
	struct ts_arena texts;   /* functions and names; freed on close */
	struct ts_pairmap codes; /* (module, start) to struct ts_native_code */
	struct ts_arena step_texts;
	struct ts_map steps;   /* address to struct ts_native_step; NULL: no code there */
	struct ts_map returns; /* address to the target of the call instruction before it */
	uint8_t *stack;        /* copy of a thread's stack, for unwind_blocked.c */
};

/* native_process.c; NULL: no code there. */
const struct ts_native_range *ts_native_range_at(const struct ts_native_process *native,
						 uint64_t address);
/*
 * The same after rereading the mappings: a library may have been loaded. Invalidates pointers to
 * ranges and steps.
 */
const struct ts_native_range *ts_native_range_refresh(struct ts_native_process *native,
						      uint64_t address);
void ts_native_open_module(struct ts_native_process *native, const struct ts_native_range *range);
/* Copies memory of the process; returns the number of leading bytes that could be read. */
size_t ts_native_read(const struct ts_native_process *native, uint64_t address, void *to,
		      size_t bytes);

/* native_functions.c; `row` may be NULL. NULL: no memory. */
struct ts_native_code *ts_native_code_at(struct ts_native_process *native,
					 const struct ts_native_range *range, uint64_t address,
					 const struct ts_cfi_row *row);

/* glue_frames.c. `is_python`: the module contains the interpreter's loop. */
bool ts_glue_frames_match(const char *name, const char *path, bool is_python);

/* cold_code.c: whether these rules belong to a cold part of the interpreter's loop. */
bool ts_cold_code_is_loop(const struct ts_native_process *native, struct ts_native_module *module,
			  const struct ts_cfi_row *row);

/*
 * return_address.c: whether a call instruction ends at this address. *ret_target: its target; 0:
 * unknown.
 */
bool ts_return_address_check(struct ts_native_process *native, uint64_t address,
			     uint64_t *ret_target);

#endif
