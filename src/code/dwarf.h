/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source lines and inlined functions from debug information, through elfutils' libdw, which is
 * opened on first use. libdw trusts its input: callers use this in a process that may crash
 * (symbolize.c).
 */
#ifndef TS_CODE_DWARF_H
#define TS_CODE_DWARF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "base/memory.h"

struct ts_dwarf;

/* A function that contains an address. Strings are borrowed until close. */
struct ts_dwarf_function {
	const char *name; /* linker name, else source name; NULL: unknown */
	const char *file; /* NULL: unknown */
	int64_t line; /* of the address, or of the call site of an inlined function; 0: unknown */
};

/* Whether this build and this machine have libdw. */
bool ts_dwarf_is_available(void);

/* The descriptor stays open until close. TS_ENOTFOUND: no debug information, or no libdw. */
int ts_dwarf_open(struct ts_dwarf **ret_dwarf, int fd, struct ts_error *err);
void ts_dwarf_close(struct ts_dwarf *dwarf);
TS_DEFINE_AUTO(ts_dwarf, ts_dwarf_close);

/* Innermost first. Returns their number, at most `most`; 0: nothing known about that address. */
size_t ts_dwarf_functions_at(struct ts_dwarf *dwarf, uint64_t address,
			     struct ts_dwarf_function *ret_functions, size_t most);

#endif
