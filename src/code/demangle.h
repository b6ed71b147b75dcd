/* SPDX-License-Identifier: Apache-2.0 */
/* Demangles names of C++ and Rust functions. */
#ifndef TS_CODE_DEMANGLE_H
#define TS_CODE_DEMANGLE_H

#include <stdbool.h>

/*
 * A new string, which the caller frees; NULL: not a mangled name, or this machine has no libstdc++
 * (opened on first use). Thread-safe.
 */
char *ts_demangle(const char *name);

/*
 * The same with a limit of 64 KiB instead of 4: kernel names contain all their template arguments.
 * (libstdc++ leaves names beyond 1 KiB mangled.)
 */
char *ts_demangle_long(const char *name);

/* Whether this machine has libstdc++. */
bool ts_can_demangle(void);

#endif
