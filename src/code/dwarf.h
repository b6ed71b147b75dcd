/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source lines and inlined functions of an ELF file with debug information, by elfutils' libdw,
 * which is opened when it is first wanted. libdw trusts files more than we do: callers use this in
 * a process that may die (symbolize.c).
 */
#ifndef TS_CODE_DWARF_H
#define TS_CODE_DWARF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "base/memory.h"

struct ts_dwarf;

/* One of the functions that an address is in. Texts are borrowed until close. */
struct ts_dwarf_function {
	const char *name; /* as the linker knows it, else as in the source; NULL: not known */
	const char *file; /* NULL: not known */
	int64_t line;     /* of the address, or of the call of what is inlined; 0: not known */
};

/* Whether this build and this machine have libdw. */
bool ts_dwarf_is_available(void);

/* The descriptor stays open until close. TS_ENOTFOUND: no debug information in it, or no libdw. */
int ts_dwarf_open(struct ts_dwarf **ret_dwarf, int fd, struct ts_error *err);
void ts_dwarf_close(struct ts_dwarf *dwarf);
TS_DEFINE_AUTO(ts_dwarf, ts_dwarf_close);

/* Innermost first; how many, at most `most`; 0: nothing is known of that address. */
size_t ts_dwarf_functions_at(struct ts_dwarf *dwarf, uint64_t address,
			     struct ts_dwarf_function *ret_functions, size_t most);

#endif
