/* SPDX-License-Identifier: Apache-2.0 */
/* Disassembles a CUDA function with NVIDIA's nvdisasm or cuobjdump, if installed. */
#ifndef TS_CODE_DISASSEMBLE_H
#define TS_CODE_DISASSEMBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "base/memory.h"

/* The path of the program that disassembles; false: not installed. */
bool ts_disassembler_find(char *ret_path, size_t bytes, bool *ret_is_nvdisasm);

struct ts_disassembly;

/*
 * `function` and `symbol`: its name and symbol number in the image, a cubin. TS_ENOTFOUND: no
 * disassembler found; the message names the folders searched.
 */
int ts_disassemble(struct ts_disassembly **ret_disassembly, const void *image, size_t bytes,
		   const char *function, size_t symbol, struct ts_error *err);
void ts_disassembly_free(struct ts_disassembly *disassembly);
TS_DEFINE_AUTO(ts_disassembly, ts_disassembly_free);

/* The instruction at an address of the function's section, or NULL. Borrowed. */
const char *ts_disassembly_at(const struct ts_disassembly *disassembly, uint64_t address);

#endif
