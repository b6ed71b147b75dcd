/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of struct ts_native_process, shared by the files that unwind. */
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

/* A file that a process runs code of, or memory that is like one. */
struct ts_native_module {
	uint64_t device, inode, bias_key; /* what it is told apart by: mapped twice, it is two */
	const char *path;
	const char *build_id;
	uint64_t bias;
	bool is_tried;  /* to be opened, which is done when a stack first leads here */
	bool is_used;   /* since the last renewal */
	bool is_python; /* the interpreter's loop is in here */
	struct ts_elf_range loop;
	struct ts_elf *elf;
	struct ts_cfi cfi;
};

struct ts_native_range {
	uint64_t start, end, file_offset; /* executable memory */
	struct ts_native_module *module;
};

/* How to go on from an address: its function, and the rules of .eh_frame there. Never changed. */
struct ts_native_step {
	struct ts_native_code *code;
	uint64_t pc;             /* relative to the module */
	uint64_t function_start; /* in the process's memory; 0: not known */
	const uint8_t *expressions;
	bool has_rules, is_signal, is_signed;
	uint8_t return_register;
	uint8_t count;
	uint32_t saved_bytes; /* from the frame's address down to the last register that is saved */
	struct ts_cfi_rule frame;
	struct {
		uint8_t whose;
		struct ts_cfi_rule rule;
	} rules[]; /* those that are not TS_CFI_SAME */
};

struct ts_native_process {
	pid_t pid;
	struct ts_native_range *ranges; /* by address */
	size_t range_count, range_capacity;
	struct ts_native_module **modules;
	size_t module_count, module_capacity;
	int64_t renewed_ns, wait_ns;
	struct ts_arena texts;   /* codes and names: until it is closed */
	struct ts_pairmap codes; /* (module, start) to struct ts_native_code */
	struct ts_arena step_texts;
	struct ts_map steps;   /* address to struct ts_native_step; NULL: nothing is there */
	struct ts_map returns; /* address to what the instruction ahead of it calls */
	uint8_t *stack;        /* a copy of a thread's, of unwind_blocked.c */
};

/* native_process.c; NULL: no code is there. */
const struct ts_native_range *ts_native_range_at(const struct ts_native_process *native,
						 uint64_t address);
/*
 * The same of what is mapped now: a library may have been loaded since. Pointers to ranges and
 * steps end here.
 */
const struct ts_native_range *ts_native_range_refresh(struct ts_native_process *native,
						      uint64_t address);
void ts_native_open_module(struct ts_native_process *native, const struct ts_native_range *range);
/* Copies memory of the process: how many bytes, from the first on. */
size_t ts_native_read(const struct ts_native_process *native, uint64_t address, void *to,
		      size_t bytes);

/* native_functions.c; `row`: NULL where there is none. NULL: no memory. */
struct ts_native_code *ts_native_code_at(struct ts_native_process *native,
					 const struct ts_native_range *range, uint64_t address,
					 const struct ts_cfi_row *row);

/* glue_frames.c: `is_python`: the interpreter's loop is in this module. */
bool ts_glue_frames_match(const char *name, const char *path, bool is_python);

/* cold_code.c: whether these rules are of a part of the interpreter's loop that lies elsewhere. */
bool ts_cold_code_is_loop(const struct ts_native_process *native, struct ts_native_module *module,
			  const struct ts_cfi_row *row);

/*
 * return_address.c: whether an instruction that calls ends right here. *ret_target: where to; 0:
 * that is not told.
 */
bool ts_return_address_check(struct ts_native_process *native, uint64_t address,
			     uint64_t *ret_target);

#endif
